"""Window aggregations: their adjacent operators, and the state of SESSION table functions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from airflow_flinkcompat.connectors.facts import Known
from airflow_flinkcompat.exec_graph.exec_node import ExecNode
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import LONG, MAP, VALUE, CannotLower, NamedState, StateLayout, StateNamespace
from airflow_flinkcompat.exec_graph.lowering import (
    CALC,
    GLOBAL,
    GROUP,
    LOCAL,
    SCAN,
    NodeFamily,
    PlannedJob,
    PossibleChains,
    check_functions,
    check_no_operators,
    of_one_input,
    shown_output,
)
from airflow_flinkcompat.exec_graph.nodes.aggregate import (
    MERGED_SESSIONS,
    accumulator_states,
    aggregation_facets,
    aggregation_layout,
    lower_aggregation,
    require_plain_form,
)
from airflow_flinkcompat.exec_graph.nodes.kept_rows import kept_row_facets
from airflow_flinkcompat.exec_graph.nodes.sink import cast_by_calc
from airflow_flinkcompat.exec_graph.nodes.source import columns_read, derive_source, every_column, stretch_above
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols, columns, row
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, Literal
from airflow_flinkcompat.plan.nodes import Table, WindowField, WindowKind
from airflow_flinkcompat.plan.operators import AggregateKind, AggregateOperator, Source
from airflow_flinkcompat.plan.origins import SourceColumn, window_field
from airflow_flinkcompat.plan.types import TimeAttribute


def session_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout:
    """The layout of a SESSION table function: the rows of each open session."""
    states = (
        NamedState("session-window-tvf-counter", VALUE, LONG),
        NamedState("session-window-tvf-acc", MAP, row(below), LONG, StateNamespace.WINDOW),
        MERGED_SESSIONS,
    )
    key = columns(below, node.config["windowing"]["window"]["partition_key_indices"])
    return StateLayout(key, states, "session-window-tvf-timers", carried_only=True)


_IN_TWO_PHASES = frozenset({"SUM", "COUNT", "MAX", "MIN", "AVG"})
"""Functions that a windowed aggregation computes in two phases."""


def aggregated_table(job: PlannedJob, operator: AggregateOperator) -> tuple[Table, AggregateOperator]:
    """The table that an aggregation reads; raise CannotLower if its plan is uncertain."""
    check_no_operators(operator.segment)
    check_no_operators(job.output.segment)
    if not isinstance(operator.segment.origin, Source) or job.output.segment.windows:
        raise CannotLower("only aggregations that read one table directly are supported")
    require_plain_form(operator)
    if any(call.language != "builtin" or call.order_by for call in operator.aggregates):
        raise CannotLower("user-defined aggregate functions are not supported")
    check_functions(
        job, (*operator.expressions, *operator.segment.filters, *job.output.columns, *job.output.segment.filters)
    )
    return derive_source(job, operator.segment.origin), operator


def aggregation_operators(job: PlannedJob, operator: AggregateOperator, table: Table) -> PossibleChains:
    """The possible operators from the scan to the projection of the aggregation's results."""
    wanted = tuple(
        dict.fromkeys((*operator.keys, *(part for call in operator.aggregates for part in _call_inputs(call))))
    )
    filtered = bool(operator.segment.filters)
    if operator.kind is AggregateKind.GROUP:
        if operator.segment.windows:
            raise CannotLower("only aggregations that read one table directly are supported")
        times = {column.name for column in table.columns if column.time_attribute is not None}
        if times & {part.column for part in wanted if isinstance(part, SourceColumn)}:
            raise CannotLower("a grouped or aggregated time attribute is planned as a plain value")
        below = stretch_above(table, wanted, filtered, ordered=False)
        if below == ((SCAN, CALC),) and not filtered and set(columns_read(wanted)) == every_column(table):
            below = (*below, (SCAN,))  # all columns are read, so the aggregation may keep their order
        return tuple((*kinds, GROUP, *above) for kinds, above in product(below, _above(job, operator)))
    window = operator.window
    if operator.kind is not AggregateKind.WINDOW or window is None or len(operator.segment.windows) != 1:
        raise CannotLower(f"the operators of a {operator.kind} are unknown")
    if window.window.kind is WindowKind.SESSION or window.time_attribute is not TimeAttribute.ROWTIME:
        raise CannotLower("the operators of session windows and processing-time windows are unknown")
    if not isinstance(window.time, SourceColumn) or window.partition_by:
        raise CannotLower("the operators of a window over a computed time are unknown")
    if any(call.function not in _IN_TWO_PHASES for call in operator.aggregates):
        raise CannotLower("these calls may be computed in one phase or two")
    wanted = tuple(dict.fromkeys((*wanted, window.time)))
    below = stretch_above(table, wanted, filtered, ordered=True)
    return tuple((*kinds, LOCAL, GLOBAL, *above) for kinds, above in product(below, _above(job, operator)))


def _call_inputs(call: AggregateCall) -> Iterator[Expression]:
    """The inputs of a call; a COUNT of a constant has none."""
    for part in (*call.args, call.filter):
        if part is not None and not (call.function == "COUNT" and isinstance(part, Literal) and part.value is not None):
            # Flink computes a FILTER condition as a separate column.
            yield part if part is not call.filter else FunctionCall("IS TRUE", (part,), part.type)


def _above(job: PlannedJob, operator: AggregateOperator) -> PossibleChains:
    """The possible operators between an aggregation and the sink, with or without a Calc."""
    converted, columns = cast_by_calc(job), job.output.columns
    if job.output.segment.filters or converted is Known.YES:
        return ((CALC,),)
    handed = (*operator.keys, *operator.aggregates)
    shown = tuple(shown_output(column) for column in columns)
    fields = (WindowField.START, WindowField.END) if operator.window is not None else ()
    if shown[: len(handed)] == handed and tuple(map(window_field, columns[len(handed) :])) == fields:
        return ((),) if converted is Known.NO else ((), (CALC,))
    if operator.window is None:
        # Flink may merge a projection of plain columns into an aggregation with a condition on its input.
        merged = operator.segment.filters and len(operator.keys) > 1
        return ((), (CALC,)) if merged else ((CALC,),)
    return ((CALC,),) if not any(map(window_field, columns)) else ((), (CALC,))


FAMILIES = (
    NodeFamily(
        (ExecKind.WINDOW_AGGREGATE, ExecKind.GLOBAL_WINDOW_AGGREGATE, ExecKind.GROUP_WINDOW_AGGREGATE),
        of_one_input(aggregation_facets),
        of_one_input(aggregation_layout),
        accumulator_states,
        lower_aggregation,
    ),
    NodeFamily((ExecKind.WINDOW_TABLE_FUNCTION,), kept_row_facets, of_one_input(session_layout)),
)
