"""Query that computes an operator's states, with steps for the entries of each named state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from airflow_flinkcompat.backfill.steps import Read, Select, Step, reads_of
from airflow_flinkcompat.exec_graph.layout import NamedState, StateField
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.history.recomputing import PlainAggregation
from airflow_flinkcompat.history.table_rows import TableRows
from airflow_flinkcompat.plan.nodes import Table

BOUND_TYPE = "TIMESTAMP(3)"


class Moment(StrEnum):
    """Rule that selects which entries are stored, by their event times."""

    WAITING = "entries after the watermark, each with a timer"
    PASSED = "entries up to the watermark"
    TIMED = "all entries, each with a timer"


@dataclass(frozen=True)
class StateRows:
    """Query for the entries of one named state.

    ``steps``: Rows with columns ``c0`` …, in types that Python reads exactly. The columns are the key, the slice end,
    the time (with ``moment``), the map key, and the value. With a state TTL, the last column is the last write time in
    milliseconds. ``moment``: Rule that selects entries by the watermark; None to store all entries.
    """

    state: NamedState
    steps: Step
    moment: Moment | None = None


@dataclass(frozen=True)
class PlainRows:
    """Rows from which Python recomputes the state of some keys, in types that Python reads exactly."""

    steps: Step
    made: PlainAggregation


@dataclass(frozen=True)
class Doubt:
    """Rows for which history does not show how the job treated them.

    ``steps``: Rows with a single column: the end of the window that a row affects, in microseconds. ``reason``: The
    unknown fact, worded as the end of a sentence.
    """

    steps: Step
    reason: str


@dataclass(frozen=True)
class StateQuery:
    """Query for the state of one operator.

    Attributes:
        windows: Windows of the operator if its state is stored in slices; otherwise None.
        spans: True if a window start and end follow the key and identify the window.
        doubts: Rows that prevent the computation if their window is still open.
        incomparable: Why Flink's stored state may differ from correctly computed state; "" if it may not differ.
        stores_watermark: True if the operator stores its watermark.
        timers_show_pending: True if the operator's timers, instead of a stored watermark, show which rows were not
            emitted.
        clocks: Inputs that determine the watermark, if the operator does not store its watermark.
        time_to_live: State TTL in milliseconds; 0 if there is none.
        plain: Rows from which Python recomputes some keys; empty if this is not supported.
    """

    tables: tuple[Table, ...]
    key: tuple[StateField, ...]
    states: tuple[StateRows, ...]
    windows: SlicedWindow | None = None
    spans: bool = False
    zone: str = "UTC"
    doubts: tuple[Doubt, ...] = ()
    incomparable: str = ""
    stores_watermark: bool = True
    timers_show_pending: bool = False
    clocks: tuple[TableRows, ...] = ()
    time_to_live: int = 0
    plain: tuple[PlainRows, ...] = ()

    @property
    def in_windows(self) -> bool:
        """True if the states are windowed, so that the watermark decides which entries are stored."""
        return self.windows is not None or self.spans

    @property
    def reads(self) -> Sequence[Read]:
        """Sources that the query reads, with each table once."""
        return list({read.table: read for each in self.states for read in reads_of(each.steps)}.values())


def ttl_types(state: NamedState) -> tuple[str, ...]:
    """Column types after a state's values: the last write time, if the state has a TTL."""
    return ("BIGINT",) if state.time_to_live else ()


def exact(steps: Step, types: Sequence[str]) -> Select:
    """Convert all columns to types that Python reads exactly, such as times to integers."""
    return Select(steps, tuple((i, exact_value(type, f"c{i}")) for i, type in enumerate(types)))


def exact_value(type: str, value: str) -> str:
    """SQL that converts a value to a type that Python reads exactly."""
    if type.startswith("TIMESTAMP"):
        return f"unix_micros(CAST({value} AS TIMESTAMP_LTZ))"
    return f"unix_date({value})" if type.startswith("DATE") else value
