"""Where a source begins that is given no state: by its own options, or by others that choose it. Data by connector.

A source with restored state ignores such options (measured on Flink 2.3 with Kafka's connector 5.0): they count for a
start without state only. Options are those measured (kafka) or of the connector's own documentation (mysql-cdc 3,
kinesis 5); a connector that is not listed, or lacks one of the choices, cannot be told where to begin.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_flinkcompat.plan import Program
from airflow_flinkcompat.plan.nodes import Scan, walk_nodes

EARLIEST, LATEST, TIMESTAMP = "earliest", "latest", "timestamp"
_HINTED = re.compile(r"([\w.-]+)'?\s*=\s*'([^']*)'")
MILLIS, ISO = "{millis}", "{iso}"
"""Stand in an option for the chosen moment: milliseconds since 1970, or ISO 8601 in UTC with milliseconds."""


@dataclass(frozen=True)
class SourceConnector:
    """How sources of one connector begin.

    ``choices`` is the options for each choice that can be made, none where it begins so anyhow. ``option`` is its own
    option that says where it begins, ``default`` its value where a table does not set it, ``more`` options that belong
    to it; ``itself`` says how it begins where no option decides. ``positions``: where a job stood can be read from its
    savepoint and given to another job.
    """

    choices: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    option: str = ""
    default: str = ""
    more: tuple[str, ...] = ()
    itself: str = ""
    positions: bool = False


_SCAN = "scan.startup.mode"
_BY_OFFSET: Mapping[str, Mapping[str, str]] = {
    EARLIEST: {_SCAN: "earliest-offset"},
    LATEST: {_SCAN: "latest-offset"},
    TIMESTAMP: {_SCAN: "timestamp", "scan.startup.timestamp-millis": MILLIS},
}
_POSITION = "source.init.position"

CONNECTORS: Mapping[str, SourceConnector] = {
    "kafka": SourceConnector(
        choices=_BY_OFFSET,
        option=_SCAN,
        default="group-offsets",
        more=(
            "scan.startup.timestamp-millis",
            "scan.startup.specific-offsets",
            "properties.group.id",
            "properties.auto.offset.reset",
        ),
        positions=True,
    ),
    "upsert-kafka": SourceConnector(choices={EARLIEST: {}}, itself="with the topic's earliest record, as always"),
    "mysql-cdc": SourceConnector(
        choices=_BY_OFFSET,
        option=_SCAN,
        default="initial",
        more=(
            "scan.startup.timestamp-millis",
            "scan.startup.specific-offset.file",
            "scan.startup.specific-offset.pos",
            "scan.startup.specific-offset.gtid-set",
        ),
    ),
    "kinesis": SourceConnector(
        choices={
            EARLIEST: {_POSITION: "TRIM_HORIZON"},
            LATEST: {_POSITION: "LATEST"},
            TIMESTAMP: {
                _POSITION: "AT_TIMESTAMP",
                "source.init.timestamp": ISO,
                "source.init.timestamp.format": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
            },
        },
        option=_POSITION,
        default="LATEST",
        more=("source.init.timestamp",),
    ),
    "filesystem": SourceConnector(choices={EARLIEST: {}}, itself="with all its files, those read before included"),
    "jdbc": SourceConnector(choices={EARLIEST: {}}, itself="with all rows of its table, those read before included"),
    "datagen": SourceConnector(itself="anew: it makes its rows"),
    "faker": SourceConnector(itself="anew: it makes its rows"),
}


def options_that_count(connector: str) -> tuple[str, ...]:
    """The options of a table by which its source begins somewhere."""
    known = CONNECTORS.get(connector)
    return (known.option, *known.more) if known and known.option else ()


def by_itself(connector: str, options: Mapping[str, str]) -> str:
    """Where a source begins that is neither given state nor told where: ``begins …``. Options of others are ignored."""
    known = CONNECTORS.get(connector)
    if known is None:
        return f"begins as its connector ({connector or 'of its catalog'}) does, which is not known here"
    if not known.option:
        return f"begins {known.itself}"
    set_ = [f"{key} = {options[key]}" for key in known.more if key in options]
    if known.option in options:
        return f"begins by its own options: {', '.join([f'{known.option} = {options[known.option]}', *set_])}"
    more = f" ({', '.join(set_)})" if set_ else ""
    return f"begins by its connector's default, {known.option} = {known.default}{more}"


def startup_positions(program: Program) -> tuple[tuple[str, str], ...]:
    """Tables that a program reads and declares → where each begins by itself; hints win over options of the table."""
    scans = (node for each in program.pipelines for node in walk_nodes(each.sink) if isinstance(node, Scan))
    found: dict[str, str] = {}
    for scan in scans:
        if scan.table.declared:
            hinted = (pair for name, text in scan.hints if name == "OPTIONS" for pair in _HINTED.findall(text))
            options = {**dict(scan.table.options), **dict(hinted)}
            found.setdefault(scan.table.name, by_itself(options.get("connector", ""), options))
    return tuple(found.items())
