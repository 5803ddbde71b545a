"""What computes the accumulators of an aggregation from the rows of its table.

They are computed by the translations with which a backfill computes results, each part of a call by itself: of an
average the sum and the count. Rows of windows are put into the slices in which Flink keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from airflow_flinkcompat.backfill.compile.compiler import OPERATORS
from airflow_flinkcompat.backfill.compile.context import CompileContext
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.protocols import Locations, Range
from airflow_flinkcompat.backfill.spark_sql.expressions import aggregate, grouped, read_by
from airflow_flinkcompat.backfill.spark_sql.localtime import localised
from airflow_flinkcompat.backfill.steps import Group
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, InputRef, transform
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    Filter,
    Measure,
    Node,
    Scan,
    Table,
    Window,
    WindowAssign,
    WindowField,
    WindowKind,
    walk_nodes,
)
from airflow_flinkcompat.plan.operators import AggregateKind, AggregateOperator, Source, operators
from airflow_flinkcompat.plan.origins import SourceColumn
from airflow_flinkcompat.plan.program import Pipeline
from airflow_flinkcompat.plan.types import BIGINT, DOUBLE, Column, DataType, TimeAttribute, decimal, timestamp
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.field_values import field_writer
from airflow_flinkcompat.state.compiled.symbols import Symbols
from airflow_flinkcompat.state.layout import CallPart, StateField, StateLayout, StateNamespace
from airflow_flinkcompat.state.layouts.script_operator import operator_layout
from airflow_flinkcompat.state.matching import aggregates
from airflow_flinkcompat.state.model import StateSpec
from airflow_flinkcompat.state.windows import SlicedWindow

_BOUNDS = (WindowField.START, WindowField.END, WindowField.TIME)


class NotComputable(Exception):
    """A state cannot be computed from history; says why, as the end of a sentence."""


@dataclass(frozen=True)
class AccumulatorQuery:
    """What computes the state of one aggregation.

    Attributes:
        table: The table that it reads.
        steps: Their rows are the keys, of windows the end of the slice, and the accumulators, as columns ``c0`` ….
        keys: The columns of the key.
        accumulators: The fields of the stored row.
        windows: Of an aggregation of windows its windows; None of one without.
    """

    table: Table
    steps: Group
    keys: tuple[StateField, ...]
    accumulators: tuple[StateField, ...]
    windows: SlicedWindow | None


def accumulator_query(side: Side, spec: StateSpec, locations: Locations) -> AccumulatorQuery:
    """What computes the state of an operator of a script.

    Args:
        side: The script with all that it is planned with.
        spec: What the compiled plan of the script tells of the operator.
        locations: Where the rows of its tables lie.

    Returns:
        The steps that Spark runs, and the fields that they give.

    Raises:
        NotComputable: History does not say what stands in the state, or that was not measured.
    """
    pipeline, operator, layout = _of_script(side, spec)
    if any(state.time_to_live for state in layout.states):
        raise NotComputable(
            "when its values were last used, from which their time to live counts, history does not say"
        )
    if len(layout.states) > 1:
        raise NotComputable("what it keeps beside its row of accumulators is not computed from history yet")
    (state,) = layout.states
    table = _table(pipeline, operator)
    calls = [_call(field, table) for field in state.value.fields]
    for field in (*layout.key, *state.value.fields):
        try:
            field_writer(field.type)
        except SavepointUnreadable as error:
            raise NotComputable(str(error)) from None
    windows = _windows(operator, state.namespace)
    try:
        steps = _steps(pipeline, operator, table, calls, windows, locations)
    except BackfillError as error:
        raise NotComputable(str(error)) from None
    return AccumulatorQuery(table, steps, layout.key, state.value.fields, windows)


def _of_script(side: Side, spec: StateSpec) -> tuple[Pipeline, AggregateOperator, StateLayout]:
    """The operator of the script's own plan that stores and means what the compiled plan tells of one."""
    if not isinstance(spec.layout, StateLayout):
        raise NotComputable(spec.layout.reason if spec.layout is not None else "it keeps nothing by key")
    if not aggregates(spec):
        raise NotComputable("only aggregations are computed from history yet")
    if spec.layout.retracting:
        raise NotComputable("rows are taken back from it, and what was sent to it before is not in its tables")
    outputs, problems = side.outputs
    if problems:
        raise NotComputable(f"the script is not understood: {problems[0].message}")
    found: dict[AggregateOperator, tuple[Pipeline, StateLayout]] = {}
    reasons = []
    for place, output in outputs.items():
        for operator in operators(output):
            if not isinstance(operator, AggregateOperator):
                continue
            layout = operator_layout(operator, Symbols(), any(state.time_to_live for state in spec.layout.states))
            if not isinstance(layout, StateLayout):
                reasons.append(layout.reason)
            elif layout.stored == spec.layout.stored and _words(layout) == _words(spec.layout):
                found[operator] = (side.program.pipelines[place], layout)
    if len(found) > 1:
        raise NotComputable("several aggregations of the script store the same, and which of them it is is not told")
    for operator, (pipeline, layout) in found.items():
        return pipeline, operator, layout
    raise NotComputable(
        reasons[0] if len(set(reasons)) == 1 else "the script's own plan has no operator that stores it"
    )


def _words(layout: StateLayout) -> list[str]:
    """What the fields are of. Of a condition compiled plans know the column alone that it was computed into."""
    return [field.words.partition(" FILTER ")[0] for state in layout.states for field in state.row]


def _table(pipeline: Pipeline, operator: AggregateOperator) -> Table:
    origin = operator.segment.origin
    assert isinstance(origin, Source)
    tables = (node.table for node in walk_nodes(pipeline.sink) if isinstance(node, Scan))
    return next(table for table in tables if table.name == origin.table)


def _windows(operator: AggregateOperator, namespace: StateNamespace) -> SlicedWindow | None:
    if operator.kind is AggregateKind.GROUP:
        return None
    assigned = operator.window
    found = SlicedWindow.of(assigned.window) if assigned is not None else None
    if assigned is None or found is None or namespace is not StateNamespace.WINDOW_END:
        raise NotComputable("windows that are not kept in slices are not computed from history yet")
    if assigned.time_attribute is not TimeAttribute.ROWTIME:
        raise NotComputable("its windows go by processing time, and when a row came history does not say")
    return found


def _call(field: StateField, table: Table) -> AggregateCall:
    """What computes a field of the accumulators, over the columns of its table."""
    part = field.meaning
    if not isinstance(part, CallPart):
        raise NotComputable(f"{field.words} is not computed from history yet")
    assert isinstance(part.over, tuple)  # as script_aggregation makes it
    values, distinct, condition = part.over
    if distinct:
        raise NotComputable(f"{field.words} is not computed from history yet")
    arguments = tuple(_over_table(each, table) for each in values)
    wanted = None if condition is None else _over_table(condition, table)
    match part.part, part.function:
        case "count", _:
            return AggregateCall("COUNT", arguments, BIGINT, filter=wanted)
        case "sum", "AVG":
            total = _total(field.type)
            value = arguments[0] if arguments[0].type.name == total.name else FunctionCall("CAST", arguments, total)
            return AggregateCall("SUM", (value,), total, filter=wanted)
        case "sum", _:
            total = _total(field.type) if field.type.startswith("DECIMAL") else arguments[0].type
            return AggregateCall("SUM", arguments, total, filter=wanted)
        case "value", "MIN" | "MAX":
            return AggregateCall(part.function, arguments, arguments[0].type, filter=wanted)
    raise NotComputable(f"{field.words} is not computed from history yet")


def _over_table(part: Expression, table: Table) -> Expression:
    """A resolved expression over the columns of the only table below."""
    names = [column.name for column in table.columns]

    def leaf(each: Expression) -> Expression:
        if not isinstance(each, SourceColumn):
            return each
        place = names.index(each.column)
        return InputRef(place, table.columns[place].type, each.span)

    return transform(part, leaf)


def _total(type: str) -> DataType:
    """The type in which an average adds up."""
    if type.startswith("DECIMAL"):
        return decimal(38, int(type.partition(",")[2].partition(")")[0]))
    return {"BIGINT": BIGINT, "DOUBLE": DOUBLE}[type.partition(" ")[0]]


def _steps(
    pipeline: Pipeline,
    operator: AggregateOperator,
    table: Table,
    calls: Sequence[AggregateCall],
    windows: SlicedWindow | None,
    locations: Locations,
) -> Group:
    body: Node = Scan(table)
    for condition in operator.segment.filters:
        body = Filter(body, _over_table(condition, table))
    keys = tuple(_over_table(key, table) for key in operator.keys)
    if windows is not None:
        end = len(table.columns) + _BOUNDS.index(WindowField.END)
        body, keys = _in_slices(body, table, windows), (*keys, InputRef(end, timestamp(3)))
    settings = dict(pipeline.settings)
    made = localised(replace(pipeline.sink, input=Aggregate(body, keys, tuple(calls), ())), settings, {}).input
    assert isinstance(made, Aggregate)
    context = CompileContext(OPERATORS, locations, Range(), settings)
    below = context.compile(made.input, read_by(made.keys, made.aggregates))
    columns = tuple((len(keys) + i, aggregate(call)) for i, call in enumerate(made.aggregates))
    return Group(below, tuple(map(grouped, made.keys)), columns)


def _in_slices(body: Node, table: Table, windows: SlicedWindow) -> WindowAssign:
    """The rows of a table, each in the slice in which Flink keeps it."""
    assert table.watermark is not None
    place = [column.name for column in table.columns].index(table.watermark.column)
    column = table.columns[place]
    if column.type.name != "TIMESTAMP":
        raise NotComputable("windows in a local time zone are not computed from history yet")
    bounds: Iterable[Column] = (Column(f"slice_{field}", timestamp(3)) for field in _BOUNDS)
    slices = Window(WindowKind.TUMBLE, size=windows.step, offset=windows.offset, measure=Measure.TIME)
    return WindowAssign(body, slices, InputRef(place, column.type), (*table.columns, *bounds))
