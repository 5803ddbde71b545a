"""A backfill as a tree of steps that any Spark session can run, without a decision left to take.

Steps hold Spark SQL text only. The column at position i of a step's rows is called ``c{i}``; positions nobody reads are
left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_flinkcompat.backfill.formats import Format
from airflow_flinkcompat.plan.types import Column


@dataclass(frozen=True)
class Read:
    """Reads a table's files: every stored field as text ``f{i}``, then ``columns`` as (position, SQL over the fields),
    then ``computed`` as (position, SQL over the columns)."""

    table: str
    place: str
    format: Format
    fields: tuple[str, ...]
    columns: tuple[tuple[int, str], ...]
    computed: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Select:
    """Computes columns: (position, SQL)."""

    input: Step
    columns: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Where:
    """Keeps rows for which the condition is true."""

    input: Step
    condition: str


@dataclass(frozen=True)
class Assign:
    """Puts each row into its tumbling window: columns ``width`` (start), ``width + 1`` (end), ``width + 2`` (time).

    ``time`` is the position of the event time; rows where it is NULL are counted and dropped. Only rows of the windows
    from ``first`` (start of the first) to ``last`` (end of the last) are kept, None where open. All in microseconds.
    ``instant``: the event time is a TIMESTAMP_LTZ, its local time zone UTC.
    """

    input: Step
    time: int
    width: int
    size: int
    offset: int
    first: int | None
    last: int | None
    instant: bool = False


@dataclass(frozen=True)
class Group:
    """Groups by the keys and aggregates; output columns are the keys, then the aggregates, in order."""

    input: Step
    keys: tuple[str, ...]
    aggregates: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Together:
    """All rows of all inputs; each input has the columns at ``positions``."""

    inputs: tuple[Step, ...]
    positions: tuple[int, ...]


Step = Read | Select | Where | Assign | Group | Together


@dataclass(frozen=True)
class Write:
    """Writes the columns ``c0`` … of all inputs as lines of text.

    ``exclusive``: the place then holds these rows and nothing else; otherwise files named by the range replace those
    of an earlier run over the same range, next to whatever else lies there.
    """

    table: str
    place: str
    format: Format
    columns: tuple[Column, ...]
    inputs: tuple[Step, ...]
    exclusive: bool


@dataclass(frozen=True)
class Work:
    """Everything a backfill does: one write per sink table."""

    writes: tuple[Write, ...]
