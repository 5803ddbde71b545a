"""Source connectors that allow a second reader next to the live job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

PRIVATE = "{private}"
"""Placeholder in an option value for a name that only the rehearsal uses."""


@dataclass(frozen=True)
class SecondReader:
    """A source connector that allows a second reader next to the live job.

    ``options`` override table options. ``forbidden`` lists options that would share a resource with the live job. With
    the ``empty`` options, the source reads no existing rows and does not end. With the ``bounded`` options and without
    the ``unending`` options, the source ends at the end positions of its state. If ``bounded`` is None, two runs of the
    source read different rows. With the ``waiting`` options, the source stops at these positions, but does not end.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    forbidden: tuple[str, ...] = ()
    empty: Mapping[str, str] = field(default_factory=dict)
    bounded: Mapping[str, str] | None = None
    unending: tuple[str, ...] = ()
    waiting: Mapping[str, str] = field(default_factory=dict)

    def own_options(self, private: str, *, empty: bool = False) -> dict[str, str]:
        declared = {**self.options, **self.empty} if empty else self.options
        return {key: value.replace(PRIVATE, private) for key, value in declared.items()}


_ALONE = SecondReader()
# The pattern (?!) matches no path, so the source reads no file.
_FILES = SecondReader(
    empty={"source.path.regex-pattern": "(?!)", "source.monitor-interval": "1 h"},
    bounded={},
    unending=("source.monitor-interval",),
    waiting={"source.monitor-interval": "365 d"},  # a restored source searches its folder after this time
)
# The upsert-kafka source assigns partitions itself, so its consumer group only stores committed positions.
_UPSERT_KAFKA = SecondReader(
    {
        "properties.group.id": PRIVATE,
        "properties.client.id.prefix": PRIVATE,
        "properties.commit.offsets.on.checkpoint": "false",
        "properties.enable.auto.commit": "false",
    },
    bounded={"scan.bounded.mode": "latest-offset"},
)
# With these options, the source fails if the topic no longer contains the row at which the source resumes.
_NO_RESET = {"scan.startup.mode": "group-offsets", "properties.auto.offset.reset": "none"}
_KAFKA = replace(
    _UPSERT_KAFKA,
    empty={"scan.startup.mode": "latest-offset", "scan.bounded.mode": "unbounded"},
    waiting=_NO_RESET,
)

ADMITTED: Mapping[str, SecondReader] = {
    "filesystem": _FILES,
    "datagen": _ALONE,
    "faker": _ALONE,
    "kafka": _KAFKA,
    "upsert-kafka": _UPSERT_KAFKA,
    "jdbc": SecondReader(bounded={}),
    "iceberg": _ALONE,
    # Paimon retains snapshots for a consumer id.
    "paimon": SecondReader(forbidden=("consumer-id",)),
}

_ONE_READER = {
    "mysql-cdc": "two readers of one server id disconnect each other",
    "postgres-cdc": "a replication slot allows only one reader",
    "pulsar": "a subscription stores the position that its readers share",
    "kinesis": "readers share the throughput of a shard",
    "rabbitmq": "each message is delivered to only one reader",
}


def refusal(connector: str) -> str:
    """Reason why a source of this connector allows only one reader, or "" if two are possible."""
    if connector in ADMITTED:
        return ""
    if why := _ONE_READER.get(connector):
        return why
    if connector.endswith("-cdc"):
        return "a change stream may allow only one reader"
    return "it is unknown if the connector allows a second reader"
