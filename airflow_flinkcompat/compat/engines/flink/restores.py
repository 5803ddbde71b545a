"""Engine ``flink``: what a restore compares, and how it ends when something differs (all measured on 2.3.0 and 1.20.3).

Open-source Flink identifies state by topology alone. A change of topology is refused at submit; the same topology with
another state layout is refused at restore; the same topology and layout with another meaning runs on with wrong rows.
"""

from __future__ import annotations

from typing import Any

from airflow_flinkcompat import connectors
from airflow_flinkcompat.connectors import Known, SinkState
from airflow_flinkcompat.model import Consequence
from airflow_flinkcompat.plan.nodes import Measure, WindowKind
from airflow_flinkcompat.plan.operators import AggregateOperator, Operator, Output, OverOperator, Source
from airflow_flinkcompat.plan.origins import (
    KeyOutput,
    OperatorColumn,
    SourceColumn,
    WindowColumn,
)
from airflow_flinkcompat.plan.program import Program
from airflow_flinkcompat.plan.types import BIGINT, DataType

STATELESS_SINKS = tuple(
    name
    for name, facts in connectors.catalogue().items()
    if facts.sink is not None and facts.sink.state is SinkState.NONE and facts.sink.updates is Known.YES
)
"""Sinks that keep nothing and take every result: what stands between the last operator and them is free to change."""

SINKS_WITH_KNOWN_CHAIN = ("filesystem",)
"""Sinks with state that were restored right while only the projection in front of them changed (measured here)."""


def needs_calc(operator: AggregateOperator, program: Program) -> bool | None:
    """Return whether the planner puts a Calc between the source and this aggregation; None where it is not known.

    It does where something is computed or filtered, or where the columns are wanted in another order than the table
    declares them (measured: ``w-reorder`` is refused at submit because a Calc appears).
    """
    segment = operator.segment
    if segment.filters or segment.window_filters or segment.functions:
        return True
    if not isinstance(segment.origin, Source):
        return None
    table = next((t for t in program.tables if t.name == segment.origin.table), None)
    if table is None:
        return None
    wanted = dict.fromkeys(
        (*operator.keys, *(arg for call in operator.aggregates for arg in (*call.args, call.filter) if arg is not None))
    )
    if not all(isinstance(part, SourceColumn) for part in wanted):
        return True
    order = [column.name for column in table.columns]
    places = [order.index(part.column) for part in wanted if isinstance(part, SourceColumn)]
    return places != sorted(places)


def chain(operator: AggregateOperator, program: Program) -> tuple[Any, ...]:
    """What decides the topology around an aggregation, as far as the SQL tells it."""
    window = operator.window
    legacy = window is not None and window.notation == "group window"
    return (
        operator.kind,
        operator.windowed,
        window is not None and not legacy and window.window.kind is WindowKind.SESSION,
        window and window.time_attribute,
        operator.grouping_sets is not None,
        bool(operator.segment.window_filters),
        tuple(call.function for call, _ in operator.segment.functions),
        bool(operator.window_computations or operator.window_aggregates),
        _filtered(operator, program) if legacy else needs_calc(operator, program),
    )


def _filtered(operator: AggregateOperator, program: Program) -> bool | None:
    """Whether conditions put a Calc below a legacy group window; None where one may be there to compute its time."""
    origin, window = operator.segment.origin, operator.window
    table = next((t for t in program.tables if isinstance(origin, Source) and t.name == origin.table), None)
    time = window.time if window is not None else None
    stored = table is not None and isinstance(time, SourceColumn) and time.column in table.physical
    return bool(operator.segment.filters) if stored else None


def layout(operator: AggregateOperator) -> tuple[Any, ...] | None:
    """Key types and accumulator types in order; None where a type is not known."""
    accumulators: list[Any] = []
    for call, types in zip(operator.aggregates, operator.argument_types, strict=True):
        if not all(kind.is_known for kind in (*operator.key_types, *types)):
            return None
        accumulators.append((_accumulator(call.function, types), types if call.distinct else None))
    return tuple(map(str, operator.key_types)), tuple(accumulators), _kept_of_windows(operator)


def _kept_of_windows(operator: AggregateOperator) -> tuple[bool, ...]:
    """What the kind of a window says of the state: a legacy group window is one operator whatever its kind.

    Measured: its →HOP runs on with wrong rows, its →SESSION and its rows → time are refused at restore.
    """
    if operator.window is None:
        return ()
    window = operator.window.window
    if operator.window.notation == "tvf":
        return (window.kind is WindowKind.HOP,)
    return (window.kind is WindowKind.SESSION, window.measure is Measure.ROWS)


def _accumulator(function: str, types: tuple[DataType, ...]) -> tuple[str, ...]:
    if function == "COUNT":
        return (str(BIGINT),)
    if function == "AVG":
        return (*map(str, types), str(BIGINT))
    return tuple(map(str, types))


def consequence(
    old: AggregateOperator, new: AggregateOperator, programs: tuple[Program, Program]
) -> Consequence | None:
    """How a restore ends for a changed aggregation; None where that cannot be told.

    Without a window over files, what is computed below puts nothing into the chain that was not there before (measured:
    ga-reorder-sametypes, ga-key-othercol, ga-filter-clause, ga-input-cast-double); a source that reads whole may.
    """
    (*old_chain, old_calc), (*new_chain, new_calc) = chain(old, programs[0]), chain(new, programs[1])
    if old_chain != new_chain:
        return Consequence.REFUSED_AT_SUBMIT
    if old_calc != new_calc and (old.window is not None or new.window is not None):
        return Consequence.REFUSED_AT_SUBMIT
    if old_calc != new_calc and not all(map(_reads_files, (old, new), programs)):
        return None
    layouts = layout(old), layout(new)
    if None in layouts:
        return None
    return Consequence.REFUSED_AT_RESTORE if layouts[0] != layouts[1] else Consequence.SILENTLY_WRONG


def _reads_files(operator: AggregateOperator, program: Program) -> bool:
    origin = operator.segment.origin
    tables = [t for t in program.tables if isinstance(origin, Source) and t.name == origin.table]
    return bool(tables) and all(table.option("connector") == "filesystem" for table in tables)


def over_consequence(old: Operator, new: Operator) -> Consequence | None:
    """How a restore ends for other calls of an OVER aggregation; None where it was not measured."""
    if not (isinstance(old, OverOperator) and isinstance(new, OverOperator)):
        return None
    calls = [[call.function for call in side.aggregates] for side in (old, new)]
    bounded = old.frame == new.frame and old.frame.unit == "ROWS" and old.frame.preceding is not None
    # oa-rows-mod-sum-max, and the same through the Table API.
    return Consequence.REFUSED_AT_RESTORE if bounded and calls == [["SUM"], ["MAX"]] else None


def surely_projected(output: Output) -> bool:
    """True where a Calc stands between the last aggregation and the sink for sure.

    The aggregation hands up its keys, aggregates and window fields in that order; only exactly that might need no Calc.
    """
    operator = output.segment.origin
    if not isinstance(operator, AggregateOperator):
        return False
    if output.segment.filters or output.segment.window_filters:
        return True
    handed_up = [*operator.keys, *operator.aggregates]
    columns = list(output.columns)
    for position, part in enumerate(handed_up):
        if position >= len(columns):
            return True
        column = columns[position]
        if not isinstance(column, OperatorColumn) or _meant(column) != part:
            return True
    return not all(_is_window(column) for column in columns[len(handed_up) :])


def _meant(column: OperatorColumn) -> Any:
    return column.output.key if isinstance(column.output, KeyOutput) else column.output


def _is_window(column: Any) -> bool:
    return isinstance(column, OperatorColumn) and isinstance(_meant(column), WindowColumn)
