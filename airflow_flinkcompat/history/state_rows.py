"""The query for an operator's states: for each named state, steps whose rows become entries."""

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
    """Rule that selects the stored entries by their time."""

    WAITING = "entries after the watermark, each with a timer"
    PASSED = "entries up to the watermark"
    TIMED = "all entries, each with a timer"


@dataclass(frozen=True)
class StateRows:
    """The query for the entries of one named state.

    ``steps``: rows with columns ``c0`` … that Python reads exactly: the key, the end of a slice, the time of a state
    with ``moment``, the key of a map, and the value. With a time to live, the time of its last write follows, in
    milliseconds. ``moment``: rule that selects stored entries by the watermark; None: all are stored.
    """

    state: NamedState
    steps: Step
    moment: Moment | None = None


@dataclass(frozen=True)
class PlainRows:
    """Rows from which Python recomputes the state of some keys, in columns ``c0`` … that it reads exactly."""

    steps: Step
    made: PlainAggregation


@dataclass(frozen=True)
class Doubt:
    """Rows whose treatment by the job does not follow from history.

    ``steps``: their one column is the end of the window in which the row matters, in microseconds. ``reason``: the
    unknown fact, as the end of a sentence.
    """

    steps: Step
    reason: str


@dataclass(frozen=True)
class StateQuery:
    """The query for one operator's state.

    Attributes:
        windows: Windows of an operator whose state is stored in slices.
        spans: True if window start and end, which follow the key, identify them.
        doubts: Rows that prevent the computation if they belong to an open window.
        incomparable: Reason why Flink's stored state may differ from the computed one although both mean the same.
        stores_watermark: True if the operator stores its watermark.
        timers_show_pending: True if timers of an operator without a stored watermark show its rows not yet emitted.
        clocks: Inputs that determine the watermark of an operator that does not store it.
        time_to_live: State TTL in milliseconds; 0: none.
        plain: Rows from which Python recomputes some keys; empty without a recomputation.
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
        """True if its states have windows, so that the watermark decides what is stored."""
        return self.windows is not None or self.spans

    @property
    def reads(self) -> Sequence[Read]:
        """Sources that the query reads, each table once."""
        return list({read.table: read for each in self.states for read in reads_of(each.steps)}.values())


def of_life(state: NamedState) -> tuple[str, ...]:
    """Types of the columns after a state's values: with a time to live, the time of the last write."""
    return ("BIGINT",) if state.time_to_live else ()


def exact(steps: Step, types: Sequence[str]) -> Select:
    """Rows in values that Python reads exactly: times as numbers."""
    return Select(steps, tuple((i, exact_value(type, f"c{i}")) for i, type in enumerate(types)))


def exact_value(type: str, value: str) -> str:
    """A value that Python reads exactly."""
    if type.startswith("TIMESTAMP"):
        return f"unix_micros(CAST({value} AS TIMESTAMP_LTZ))"
    return f"unix_date({value})" if type.startswith("DATE") else value
