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
    """Rule by which a time decides whether an entry is stored."""

    WAITING = "those to which the watermark has not come, each with a timer"
    PASSED = "those to which it has come"
    TIMED = "all, each with a timer"


@dataclass(frozen=True)
class StateRows:
    """The query for the entries of one named state.

    Attributes:
        state: The state.
        steps: Their rows are the key, of windows the end of the slice, of a state with ``moment`` a time, of a map its
            key, and the value, as columns ``c0`` … that Python reads exactly; with a time to live when the value was
            last written, in milliseconds.
        moment: Which entries are stored, where that depends on whether the watermark has come to a time.
    """

    state: NamedState
    steps: Step
    moment: Moment | None = None


@dataclass(frozen=True)
class PlainRows:
    """Rows from which Python recomputes the state of some keys.

    Attributes:
        steps: Their columns are ``c0`` …, in values that Python reads exactly.
        made: What it computes of them.
    """

    steps: Step
    made: PlainAggregation


@dataclass(frozen=True)
class Doubt:
    """Rows whose treatment by the job history does not show.

    Attributes:
        steps: Their one column is the end of the window in which they matter, in microseconds.
        reason: What is not told, as the end of a sentence.
    """

    steps: Step
    reason: str


@dataclass(frozen=True)
class StateQuery:
    """The query for one operator's state.

    Attributes:
        tables: The tables that it reads.
        key: The fields of its key.
        states: What computes each of its states.
        windows: Of an operator whose states are told apart by slices of windows these windows.
        spans: Whether they are told apart by start and end of windows, which follow the key.
        zone: By whose clock the windows or sessions are cut.
        doubts: Nothing is computed where one of them has rows of a window that is still open.
        incomparable: Why what Flink stores need not equal what is computed, although both mean the same.
        stores_watermark: Whether the operator stores how far time has come.
        timers_tell: Of an operator that stores it not, whether its timers tell which of its rows it has not sent.
        clocks: Of an operator that stores it not, what comes from each table that tells it as far as matters.
        time_to_live: How long a value lives that is not written any more, in milliseconds; 0: for ever.
        plain: The rows of which Python computes the same of some keys; none where it does not.
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
    timers_tell: bool = False
    clocks: tuple[TableRows, ...] = ()
    time_to_live: int = 0
    plain: tuple[PlainRows, ...] = ()

    @property
    def in_windows(self) -> bool:
        """True if its states have windows, so that the watermark decides what is stored."""
        return self.windows is not None or self.spans

    @property
    def reads(self) -> Sequence[Read]:
        """Sources that it reads, each table once."""
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
