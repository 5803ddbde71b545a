"""Connectors that admit a second reader next to the live job, and options that it must not share.

A connector that is not listed is not known to admit one, and nothing is started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

PRIVATE = "{private}"
"""Placeholder in an option for a name of the rehearsal's own."""


@dataclass(frozen=True)
class SecondReader:
    """A connector that admits a second reader.

    ``options`` replace those of the table; ``forbidden`` options would share with the live job. With the ``empty``
    options it reads no existing rows and does not end.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    forbidden: tuple[str, ...] = ()
    empty: Mapping[str, str] = field(default_factory=dict)

    def own_options(self, private: str, *, empty: bool = False) -> dict[str, str]:
        given = {**self.options, **self.empty} if empty else self.options
        return {key: value.replace(PRIVATE, private) for key, value in given.items()}


_ALONE = SecondReader()
# No path fits the pattern.
_FILES = SecondReader(empty={"source.path.regex-pattern": "(?!)", "source.monitor-interval": "1 h"})
# Partitions are assigned, not subscribed to, so a group is only where positions are committed to.
_UPSERT_KAFKA = SecondReader(
    {
        "properties.group.id": PRIVATE,
        "properties.client.id.prefix": PRIVATE,
        "properties.commit.offsets.on.checkpoint": "false",
        "properties.enable.auto.commit": "false",
    }
)
_KAFKA = replace(_UPSERT_KAFKA, empty={"scan.startup.mode": "latest-offset", "scan.bounded.mode": "unbounded"})

ADMITTED: Mapping[str, SecondReader] = {
    "filesystem": _FILES,
    "datagen": _ALONE,
    "faker": _ALONE,
    "kafka": _KAFKA,
    "upsert-kafka": _UPSERT_KAFKA,
    "jdbc": _ALONE,
    "iceberg": _ALONE,
    # Snapshots are kept for a consumer id.
    "paimon": SecondReader(forbidden=("consumer-id",)),
}

_ONE_READER = {
    "mysql-cdc": "two readers of one server id disconnect each other",
    "postgres-cdc": "a replication slot has one reader",
    "pulsar": "a subscription keeps the position of its readers",
    "kinesis": "readers share the throughput of a shard",
    "rabbitmq": "a message that one reader takes is lost for the others",
}


def refusal(connector: str) -> str:
    """Reason why a source of this connector is not read a second time; empty if it can be."""
    if connector in ADMITTED:
        return ""
    if why := _ONE_READER.get(connector):
        return why
    if connector.endswith("-cdc"):
        return "a change stream may admit one reader only"
    return "whether it admits a second reader is unknown"
