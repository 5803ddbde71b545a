"""Jobs whose tables of state are compared with the rows that Flink emits.

``dev/measure/state.sql`` contains the jobs in sections, which ``airflow_flinkcompat/testing/fixture_cases.py`` reads::

    --- case: hop-average
    -- about: HOP with an average   the job in words
    -- compare: closing             the rows to compare (optional, see Compared)
    -- settings: key=value          a setting of the session (optional, repeatable)
    -- flink: 2.3                   the only line of Flink to run the job on (optional)
    --- sql                         the job, which ends in a bare query or an INSERT
    --- state                       the query over the tables of the savepoint
    --- batch                       a query that Flink runs in batch mode over the same input (only with compare: batch)

Without ``--- sql``, the job is the script of the same name in ``tests/fixtures/savepoints/scripts.sql``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_flinkcompat.state import OpenSavepoint, query
from airflow_flinkcompat.testing import fixture_cases
from airflow_flinkcompat.testing.fixture_cases import FixtureError, FixtureSection
from dev.measure.pairs import Side
from dev.measure.results import net
from dev.measure.savepoint_fixtures import SAVEPOINTS, load_scripts

FILE = Path(__file__).parent / "state.sql"
_MONITORED = re.compile(r",\s*'source\.monitor-interval' = '[^']*'")
_BOUNDED = (
    ("execution.checkpointing.checkpoints-after-tasks-finish.enabled", "false"),
    # No row is late, whichever file is read first.
    ("pipeline.auto-watermark-interval", "1 h"),
)
_CELL = re.compile(r", (?![^\[]*\])")
_GENERAL = re.compile(r"(key|field|map_key)(_\d+)?|value|(.+_)?f\d+(_.+)?")
"""Names of columns that contain a place, or the planner's number of an expression."""
_DIGITS = 12
"""Significant digits of a floating-point number that are compared."""


class Compared(StrEnum):
    """The rows of Flink with which the rows of state are compared."""

    EMITTED = "emitted"
    """The rows that the job has emitted up to the savepoint, with its retractions applied."""
    CLOSING = "closing"
    """The rows that the job emits after the savepoint if its input ends there: open windows."""
    BATCH = "batch"
    """The rows of a batch query over the same input, for state that is not the result of the job."""


@dataclass(frozen=True)
class StateJob:
    """One job. ``state`` is the query over its tables, and ``batch`` a query to compare with."""

    id: str
    about: str
    compared: Compared
    side: Side
    state: str
    batch: Side | None
    line: str


def load_jobs(line: str, only: str = "", file: Path = FILE) -> list[StateJob]:
    """The jobs to run on a line of Flink. Raises FixtureError."""
    scripts = {script.name: script.side for script in load_scripts()}
    _, given, *rest = fixture_cases.split(
        file.read_text("utf-8"), file.name, ("given", "case", "sql", "state", "batch")
    )
    cases: list[list[FixtureSection]] = []
    for section in rest:
        if section.name == "case":
            cases.append([])
        cases[-1].append(section)
    jobs = [_job(each[0], {section.name: section.text for section in each[1:]}, given.text, scripts) for each in cases]
    names = Counter(job.id for job in jobs)
    if twice := [name for name, count in names.items() if count > 1]:
        raise FixtureError(f"{file.name}: several jobs have the name {', '.join(twice)}")
    return [job for job in jobs if job.line in ("", line) and re.search(only, job.id)]


def _job(head: FixtureSection, texts: Mapping[str, str], given: str, scripts: Mapping[str, Side]) -> StateJob:
    found = fixture_cases.headers(head, {"about", "compare", "settings", "flink"}, FILE.name, {"settings"})
    settings = tuple(fixture_cases.settings(found, "settings", FILE.name).items())
    ((_, compared),) = found.get("compare", [(0, Compared.EMITTED.value)])
    if (compared == Compared.BATCH) != ("batch" in texts):
        raise FixtureError.at(FILE.name, head.line, "'-- compare: batch' needs '--- batch', and '--- batch' needs it")
    batch = (*settings, ("execution.runtime-mode", "batch"))
    return StateJob(
        id=head.title,
        about=fixture_cases.required(found, "about", head, FILE.name)[1],
        compared=Compared(compared),
        side=Side(given + texts["sql"], settings) if "sql" in texts else scripts[head.title],
        state=texts["state"],
        batch=bounded(Side(given + texts["batch"], batch)) if "batch" in texts else None,
        line="".join(line for _, line in found.get("flink", ())),
    )


def bounded(side: Side) -> Side:
    """The side over files that it reads once, so that it ends by itself, without a last checkpoint."""
    return Side(_MONITORED.sub("", side.script), (*side.settings, *_BOUNDED))


def stored_jobs(line: str) -> Iterator[tuple[StateJob, Path]]:
    """The jobs whose savepoint on a line of Flink is a fixture, with its folder."""
    for job in load_jobs(line):
        folder = SAVEPOINTS / line / job.id
        if (folder / "_metadata").exists():
            yield job, folder


def state_rows(savepoint: OpenSavepoint, job: StateJob) -> pa.Table:
    """The rows of the job's query over the tables. Raises QueryFailed and SavepointUnreadable."""
    with query(savepoint, job.state) as result:
        return result.reader().read_all()


def columns_of(savepoint: OpenSavepoint) -> str:
    """The tables with their columns, for the message about a query that fails."""
    return "; ".join(f"{table.name}: {', '.join(table.columns)}" for table in savepoint.tables)


def nameless(savepoint: OpenSavepoint) -> tuple[list[str], list[str]]:
    """Columns without a name in SQL, and columns that are bytes without a binary type."""
    unnamed, binary = [], []
    for table in savepoint.tables:
        if table.kind == "timers":
            continue
        for column in table.form.columns:
            shown = f"{table.name}.{column.name}"
            if _GENERAL.fullmatch(column.name):
                unnamed.append(shown)
            if pa.types.is_binary(table.schema.field(column.name).type) and not re.match("(VAR)?BINARY", column.type):
                binary.append(shown)
    return unnamed, binary


def fault(found: pa.Table, expected: Mapping[str, int]) -> str:
    """The difference between the rows of state and the rows of Flink; "" if they are equal."""
    if not expected:
        return "Flink emits no row, so nothing is compared"
    if negative := [row for row, count in expected.items() if count < 0]:
        return f"Flink retracts rows that it has not emitted: {negative}"
    types = found.schema.types
    wanted: Counter[tuple[object, ...]] = Counter()
    for row, count in expected.items():
        cells = _CELL.split(row.partition(" ")[2][1:-1])
        if len(cells) != len(types):
            return f"Flink emits {len(cells)} columns, and the query has {len(types)}: {row}"
        wanted[tuple(map(_parsed, cells, types))] += count
    columns = [[_plain(value, type) for value in column.to_pylist()] for column, type in zip(found, types, strict=True)]
    stored = Counter(zip(*columns, strict=True))
    if stored == wanted:
        return ""
    return f"only in state: {_listed(stored - wanted)}; only from Flink: {_listed(wanted - stored)}"


def since(rows: Sequence[str], printed: Sequence[str]) -> dict[str, int]:
    """The net count of each row without the rows that were printed before."""
    counts = Counter(net(rows))
    counts.subtract(net(printed))
    return {row: count for row, count in counts.items() if count}


def _listed(rows: Counter[tuple[object, ...]]) -> str:
    return ", ".join(sorted(map(repr, rows.elements()))) or "nothing"


def _parsed(cell: str, type: pa.DataType) -> object:
    """A printed cell as a value of the type of its column."""
    if cell == "null":
        return None
    if pa.types.is_binary(type):
        return bytes(int(each) % 256 for each in re.findall(r"-?\d+", cell))
    if pa.types.is_boolean(type):
        return cell.lower() == "true"
    if pa.types.is_integer(type) or pa.types.is_decimal(type):
        return Decimal(cell)
    if pa.types.is_floating(type):
        return _plain(float(cell), type)
    if pa.types.is_timestamp(type):
        return datetime.fromisoformat(cell)
    if pa.types.is_date(type):
        return date.fromisoformat(cell)
    if pa.types.is_time(type):
        return time.fromisoformat(cell)
    return cell


def _plain(value: Any, type: pa.DataType) -> object:
    if isinstance(value, float):
        number = float(np.float32(value)) if pa.types.is_float32(type) else value
        return float(f"{number:.{_DIGITS}g}")
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value
