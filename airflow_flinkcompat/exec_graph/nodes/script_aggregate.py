"""Aggregations of a script: their exec node, and the operators that Flink plans around it."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, cast

from airflow_flinkcompat.connectors.facts import Known
from airflow_flinkcompat.exec_graph.columns import stored_as
from airflow_flinkcompat.exec_graph.exec_node import ExecNode, call_function
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import (
    CannotLower,
)
from airflow_flinkcompat.exec_graph.lowering import LIVES, Lowered
from airflow_flinkcompat.exec_graph.nodes.aggregate import call_over
from airflow_flinkcompat.exec_graph.nodes.sink import cast_by_calc
from airflow_flinkcompat.exec_graph.nodes.source import columns_read, derive_source, every_column, stretch_above
from airflow_flinkcompat.exec_graph.script_job import (
    CALC,
    GLOBAL,
    GROUP,
    LOCAL,
    SCAN,
    PlannedJob,
    PossibleChains,
    check_functions,
    check_no_operators,
    shown_output,
)
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbol, Symbols
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, Literal
from airflow_flinkcompat.plan.nodes import Table, WindowField, WindowKind
from airflow_flinkcompat.plan.operators import AggregateKind, AggregateOperator, Source
from airflow_flinkcompat.plan.origins import SourceColumn, describe, window_field
from airflow_flinkcompat.plan.types import DataType, TimeAttribute

KINDS = {
    AggregateKind.GROUP: ExecKind.GROUP_AGGREGATE,
    AggregateKind.GROUP_WINDOW: ExecKind.GROUP_WINDOW_AGGREGATE,
    AggregateKind.WINDOW: ExecKind.WINDOW_AGGREGATE,
}
"""The exec node of an aggregation, whether Flink plans one phase or two."""
_WINDOWS = {WindowKind.HOP: "HoppingWindow", WindowKind.SESSION: "SessionWindow"}
"""The windows of table functions whose aggregation stores more than that of any other."""
_Column = tuple[Expression, str]


def lower_aggregation(
    operator: AggregateOperator,
    symbols: Symbols,
    time_to_live: bool,
    keys_in_order: bool = False,
    retracting: bool = False,
    unretracted: Collection[int] = (),
) -> Lowered:
    """Lower an aggregation.

    ``keys_in_order``: the keys stand as they are stored, which a script need not show. ``unretracted``: the places of
    each MIN and MAX that no row taken back changes, as the planner knows. Columns mean the expressions of the script.
    """
    _require_one_node(operator, keys_in_order)
    columns = _columns(operator)
    calls = [_planned(*each, columns) for each in zip(operator.aggregates, operator.argument_types, strict=True)]
    calls = [call for place, call in enumerate(calls) if call not in calls[:place]]
    config: dict[str, Any] = {
        "grouping": [*range(len(operator.keys))],
        "aggCalls": calls,
        "needRetraction": retracting,
        "aggCallNeedRetractions": [retracting and place not in unretracted for place in range(len(calls))],
    }
    if operator.window is None:
        config["state"] = [LIVES[time_to_live]]
    elif operator.kind is AggregateKind.WINDOW:
        config["windowing"] = {"window": {"type": _WINDOWS.get(operator.window.window.kind)}}
    elif operator.window.window.kind is WindowKind.SESSION:
        config["window"] = {"kind": "SESSION"}
    kind = KINDS[operator.kind]
    return Lowered(ExecNode(0, kind, kind, config, (), (), ()), (_read(columns, symbols),))


def planned_calls(operator: AggregateOperator, symbols: Symbols) -> Mapping[AggregateCall, Hashable]:
    """Map the calls of a script to the calls that fields of its layout mean."""
    columns = _columns(operator)
    read = _read(columns, symbols)
    calls = (_planned(*each, columns) for each in zip(operator.aggregates, operator.argument_types, strict=True))
    meant = ((call_function(call), call_over(call, read, symbols)) for call in calls)
    return dict(zip(operator.aggregates, meant, strict=True))


def _columns(operator: AggregateOperator) -> list[_Column]:
    """The columns that an aggregation reads with their stored types, its keys first."""
    found = [(key, stored_as(type)) for key, type in zip(operator.keys, operator.key_types, strict=True)]
    for call, types in zip(operator.aggregates, operator.argument_types, strict=True):
        if call.language != "builtin" or call.order_by:
            raise CannotLower("the state of a user-defined aggregate function is not known")
        found += _arguments(call, types)
        found += [(call.filter, "BOOLEAN")] if call.filter is not None else []
    return found


def _arguments(call: AggregateCall, types: Sequence[DataType]) -> list[_Column]:
    """The arguments of a call; a COUNT of a constant, or of a column that is never NULL, counts rows."""
    typed = [*zip(call.args, types, strict=True)]
    never_null = all(isinstance(each, Literal) or not type.nullable for each, type in typed)
    counts_rows = call.function == "COUNT" and never_null and not call.distinct
    return [] if counts_rows else [(each, stored_as(type)) for each, type in typed]


def _planned(call: AggregateCall, types: tuple[DataType, ...], columns: Sequence[_Column]) -> Mapping[str, Any]:
    """A call as a compiled plan writes it."""
    function = functions.lookup(call.function)
    if function is None:
        raise CannotLower(f"what {call.function} keeps is not known")
    return {
        "internalName": f"${call.function}$1",
        "argList": [columns.index(each) for each in _arguments(call, types)],
        "filterArg": -1 if call.filter is None else columns.index((call.filter, "BOOLEAN")),
        "distinct": call.distinct and call.function not in ("MIN", "MAX"),
        "type": stored_as(function.result_type(types)),
    }


def _read(columns: Sequence[_Column], symbols: Symbols) -> ColumnMeanings:
    meanings = cast("tuple[Symbol, ...]", tuple(each for each, _ in columns))
    names = tuple(describe(each) for each, _ in columns)
    return ColumnMeanings(meanings, names, tuple(type for _, type in columns), symbols.of("rows", 0))


def _require_one_node(operator: AggregateOperator, keys_in_order: bool) -> None:
    """Raise CannotLower where Flink may plan more than one node, or another order of keys."""
    require_plain_form(operator)
    in_sessions = operator.window is not None and operator.window.window.kind is WindowKind.SESSION
    on_event_time = operator.window is not None and operator.window.time_attribute is TimeAttribute.ROWTIME
    certain = keys_in_order or (operator.kind is AggregateKind.WINDOW and on_event_time)
    if operator.segment.filters and len(operator.keys) > 1 and not certain:
        raise CannotLower("the order of the keys may be that of the table's columns, or of what is put out")
    if operator.segment.filters and operator.kind is AggregateKind.WINDOW and in_sessions:
        raise CannotLower("a condition on its keys may have sessions assigned by an operator of its own")
    read = {part for call in operator.aggregates if call.function != "COUNT" for part in call.args}
    if read & set(operator.keys):
        raise CannotLower("an expression of a key alone is planned away")
    averaged = any(call.function == "AVG" for call in operator.aggregates)
    if averaged and not operator.keys and any(call.distinct for call in operator.aggregates):
        raise CannotLower("an average beside DISTINCT, without a key, may be planned as a sum and a count")
    if operator.kind not in KINDS:
        raise CannotLower(f"what a {operator.kind} keeps is not known")


def require_plain_form(operator: AggregateOperator) -> None:
    """Raise CannotLower where Flink plans further nodes for an aggregation."""
    odd = operator.grouping_sets is not None or operator.repeated_keys or operator.repeated_calls
    if odd or operator.pruned_inputs or operator.window_computations or operator.window_aggregates:
        raise CannotLower("this form of an aggregation is planned with further operators")


_IN_TWO_PHASES = frozenset({"SUM", "COUNT", "MAX", "MIN", "AVG"})
"""Calls that a windowed aggregation computes in two phases."""


def aggregated_table(job: PlannedJob, operator: AggregateOperator) -> tuple[Table, AggregateOperator]:
    """The table under an aggregation that is planned as one."""
    check_no_operators(operator.segment)
    check_no_operators(job.output.segment)
    if not isinstance(operator.segment.origin, Source) or job.output.segment.windows:
        raise CannotLower("only aggregations over one table are known")
    require_plain_form(operator)
    if any(call.language != "builtin" or call.order_by for call in operator.aggregates):
        raise CannotLower("aggregate functions of one's own are not known")
    check_functions(
        job, (*operator.expressions, *operator.segment.filters, *job.output.columns, *job.output.segment.filters)
    )
    return derive_source(job, operator.segment.origin), operator


def aggregation_operators(job: PlannedJob, operator: AggregateOperator, table: Table) -> PossibleChains:
    """The operators from the scan to what stands above the aggregation."""
    wanted = tuple(dict.fromkeys((*operator.keys, *(part for call in operator.aggregates for part in _taken(call)))))
    filtered = bool(operator.segment.filters)
    if operator.kind is AggregateKind.GROUP:
        if operator.segment.windows:
            raise CannotLower("only aggregations over one table are known")
        times = {column.name for column in table.columns if column.time_attribute is not None}
        if times & {part.column for part in wanted if isinstance(part, SourceColumn)}:
            raise CannotLower("a time that is grouped by or aggregated is planned as a value")
        below = stretch_above(table, wanted, filtered, ordered=False)
        if below == ((SCAN, CALC),) and not filtered and set(columns_read(wanted)) == every_column(table):
            below = (*below, (SCAN,))  # all columns in another order: the aggregation may take them as they come
        return tuple((*kinds, GROUP, *above) for kinds, above in product(below, _above(job, operator)))
    window = operator.window
    if operator.kind is not AggregateKind.WINDOW or window is None or len(operator.segment.windows) != 1:
        raise CannotLower(f"a {operator.kind} is not known")
    if window.window.kind is WindowKind.SESSION or window.time_attribute is not TimeAttribute.ROWTIME:
        raise CannotLower("session windows and windows of processing time are not known")
    if not isinstance(window.time, SourceColumn) or window.partition_by:
        raise CannotLower("a window over a computed time is not known")
    if any(call.function not in _IN_TWO_PHASES for call in operator.aggregates):
        raise CannotLower("whether these calls are computed in two phases is not known")
    wanted = tuple(dict.fromkeys((*wanted, window.time)))
    below = stretch_above(table, wanted, filtered, ordered=True)
    return tuple((*kinds, LOCAL, GLOBAL, *above) for kinds, above in product(below, _above(job, operator)))


def _taken(call: AggregateCall) -> Iterator[Expression]:
    """What a call wants of its input; COUNT of a constant counts rows."""
    for part in (*call.args, call.filter):
        if part is not None and not (call.function == "COUNT" and isinstance(part, Literal) and part.value is not None):
            # A condition is handed on as a value of its own.
            yield part if part is not call.filter else FunctionCall("IS TRUE", (part,), part.type)


def _above(job: PlannedJob, operator: AggregateOperator) -> PossibleChains:
    """Whether a Calc stands between an aggregation and the sink."""
    converted, columns = cast_by_calc(job), job.output.columns
    if job.output.segment.filters or converted is Known.YES:
        return ((CALC,),)
    handed = (*operator.keys, *operator.aggregates)
    shown = tuple(shown_output(column) for column in columns)
    fields = (WindowField.START, WindowField.END) if operator.window is not None else ()
    if shown[: len(handed)] == handed and tuple(map(window_field, columns[len(handed) :])) == fields:
        return ((),) if converted is Known.NO else ((), (CALC,))
    if operator.window is None:
        # A projection of nothing but columns may be merged into an aggregation with a condition below.
        merged = operator.segment.filters and len(operator.keys) > 1
        return ((), (CALC,)) if merged else ((CALC,),)
    return ((CALC,),) if not any(map(window_field, columns)) else ((), (CALC,))
