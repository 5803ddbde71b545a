"""Tables of lake formats and of Doris in pairs: filled and read back by batch jobs of the Flink at hand.

Scripts of pairs name a table's place ``file://LAKE/<name>``, which each run has in its own folder; a name of
``dev/measure/data`` is a table of those rows. What a family's ``database`` declares is made first, and what of it is
not filled is read back. Doris is a stand-in, whose tables ``shop.<name>`` are each run's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.sql import parse_script
from dev.measure import doris
from dev.measure.connectors import jar_file
from dev.measure.progress import DATA, Feed

JARS = (
    "org.apache.doris:flink-doris-connector-1.20:25.0.0",
    "org.apache.iceberg:iceberg-flink-runtime-1.20:1.8.1",
    "org.apache.paimon:paimon-flink-1.20:1.3.1",
    "org.apache.hadoop:hadoop-client-api:3.3.6",
    "org.apache.hadoop:hadoop-client-runtime:3.3.6",
    "commons-logging:commons-logging:1.2",
    "org.apache.hudi:hudi-flink1.17-bundle:0.14.0",  # last: it brings classes of Flink's own
)
LINE = "1.20"
_LAKE = "file://LAKE"
_BATCH = {"execution.runtime-mode": "batch", "parallelism.default": "1"}
_PLACES = re.compile(r"CREATE TABLE (\w+) (?:(?!CREATE TABLE).)*?file://LAKE/(\w+)", re.DOTALL)


class Lakes:
    """The tables of all runs; a run is known by its folder."""

    partitions = 1

    def __init__(self, gateway: str) -> None:
        self._gateway = SqlGateway(gateway)
        self._doris = doris.StandIn()
        self._tables: dict[Path, str] = {}

    def secret(self, placeholder: object) -> str:
        """What a placeholder stands for; there is none."""
        raise KeyError(str(placeholder))

    def prepare(self, folder: Path, tables: str) -> None:
        """Remember the tables of a run."""
        self._tables[folder] = tables

    def send(self, folder: Path, feed: Feed, phase: str) -> int:
        """Append the rows of a phase to their table; how many there are."""
        lines = feed.lines(phase)
        rows = ", ".join(f"({', '.join(_literal(value) for value in line.split(','))})" for line in lines)
        self._run(folder, f"INSERT INTO {feed.rows} VALUES {rows}")
        return len(lines)

    def bound(self, script: str, folder: Path) -> str:
        """The script with the places of a run."""
        script = script.replace(doris.ADDRESS, self._doris.address).replace("'shop.", f"'run{folder.name}.")
        return script.replace(_LAKE, f"{folder.as_uri()}/lake")

    def stored(self, folder: Path) -> Iterator[str]:
        """What lies in the tables that are not filled and were written, as ``table +I[…]``."""
        filled = {path.name for path in DATA.iterdir()}
        for table, place in _PLACES.findall(self._tables[folder]):
            if table not in filled and (folder / "lake" / place).exists():
                for row in self._run(folder, f"SELECT * FROM {table}"):
                    yield f"{table} +I[{', '.join(map(str, row))}]"
        for name, rows in list(self._doris.tables.items()):
            if name.startswith(f"run{folder.name}."):
                yield from (f"{name.partition('.')[2]} +I[{row}]" for row in rows)

    def _run(self, folder: Path, statement: str) -> list[tuple[object, ...]]:
        with self._gateway.session(_BATCH) as session:
            for each in parse_script(self.bound(self._tables[folder], folder), "<tables>").statements:
                session.execute(each.text)
            return list(session.execute(f"{statement}", {"table.dml-sync": "true"}, timeout=120).rows)


def jars() -> tuple[Path, ...]:
    """Flink's connectors of the lake formats, fetched on first use."""
    return tuple(map(jar_file, JARS))


def _literal(value: str) -> str:
    if re.fullmatch(r"-?\d+", value):
        return value
    return f"TIMESTAMP '{value}'" if re.match(r"\d{4}-\d\d-\d\d ", value) else f"'{value}'"
