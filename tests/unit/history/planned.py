"""Operators of scripts as compiled plans show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, ExecNode
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import CallPart, NamedState, StateField, StateLayout, Stored, call_parts
from airflow_flinkcompat.exec_graph.model import StateKind, StateSpec
from airflow_flinkcompat.exec_graph.nodes.join import JOINS
from airflow_flinkcompat.exec_graph.nodes.rank import RANKS
from airflow_flinkcompat.plan.column_lineage import Composition, composition, together
from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.operators import (
    AggregateKind,
    AggregateOperator,
    JoinOperator,
    Operator,
    OtherKind,
    OtherOperator,
    OverOperator,
    RankOperator,
    Source,
    StatelessSegment,
)
from airflow_flinkcompat.plan.origins import OperatorColumn, window_field

_AGGREGATES = {
    AggregateKind.WINDOW: "window-aggregate",
    AggregateKind.GROUP: "group-aggregate",
    AggregateKind.GROUP_WINDOW: "group-window-aggregate",
    AggregateKind.OVER_WINDOWED_ROWS: "group-aggregate",
}
_OTHERS = {OtherKind.UNION_ALL: "union", OtherKind.LIMIT: "limit"}


def compiled(side: Side) -> tuple[CompiledPlan, Mapping[Operator, int]]:
    """A plan with the operators of a script and nothing else, and the place of each."""
    nodes: list[ExecNode] = []
    places: dict[Operator, int] = {}

    def add(kind: str, config: Mapping[str, Any] | None = None, inputs: tuple[int, ...] = ()) -> int:
        nodes.append(ExecNode(len(nodes), ExecKind(kind), kind, config or {}, (), (), inputs))
        return len(nodes) - 1

    def below(segment: StatelessSegment) -> int:
        origin = segment.origin
        if isinstance(origin, Source):
            path = {"identifier": f"`default_catalog`.`default_database`.`{origin.table}`"}
            return add("table-source-scan", {"scanTableSource": {"table": path}})
        assert isinstance(origin, Operator)
        place = add(planned_as(origin), {}, tuple(map(below, origin.segments)))
        return add("calc", {}, (places.setdefault(origin, place),))

    for output in side.outputs[0].values():
        path = {"identifier": f"`default_catalog`.`default_database`.`{output.sink or 'query'}`"}
        add("sink", {"dynamicTableSink": {"table": path}}, (below(output.segment),))
    return CompiledPlan("2.3", tuple(nodes)), places


def spec_of(side: Side, operator: Operator, layout: StateLayout, id: str = "1") -> StateSpec:
    """An operator of a script as its compiled plan shows it."""
    plan, places = compiled(side)
    name = planned_as(operator)
    return StateSpec(StateKind.OPERATOR, name, id, as_compiled(operator, layout), compiled=(plan, places[operator]))


def planned_as(operator: Operator) -> str:
    """The name that compiled plans have for an operator."""
    match operator:
        case AggregateOperator():
            return _AGGREGATES[operator.kind]
        case OverOperator():
            return "over-aggregate"
        case RankOperator():
            return RANKS[operator.kind]
        case JoinOperator():
            return JOINS[operator.form]
        case OtherOperator(kind=OtherKind() as kind):
            return _OTHERS[kind]
    raise AssertionError(operator)


def as_compiled(operator: Operator, layout: StateLayout) -> StateLayout:
    """The layout of an operator whose columns are named as a compiled plan does."""
    grouped = operator.as_aggregation if isinstance(operator, OverOperator) else operator
    told = _with_compositions(grouped, layout)

    def field(each: StateField) -> StateField:
        meaning, composed = each.meaning, each.composition
        match meaning:
            case CallPart() as part:
                values, distinct, condition = call_parts(part.over)
                told_by_plan = ("argList", values), ("distinct", distinct)
                over = (*filter(lambda pair: pair[1], told_by_plan), ("filterArg", condition and 9))
                meaning = replace(part, over=over)
        if composed is None:
            return replace(each, meaning=meaning)
        named = (("column", f"`default_catalog`.`default_database`.`{table}`", of) for table, of in composed.columns)  # type: ignore[misc]
        return replace(each, words="$f1", meaning=meaning, composition=replace(composed, columns=frozenset(named)))

    def state(each: NamedState) -> NamedState:
        key = each.map_key and replace(each.map_key, fields=tuple(map(field, each.map_key.fields)))
        value = replace(each.value, fields=tuple(map(field, each.value.fields)))
        return replace(each, value=value, map_key=key)

    return replace(told, key=tuple(map(field, told.key)), states=tuple(map(state, told.states)))


def _with_compositions(operator: Operator, layout: StateLayout) -> StateLayout:
    """A layout with the composition of each field."""
    match operator:
        case AggregateOperator():
            return layout.with_compositions(lambda meaning: _of_meaning(meaning, operator.segment))
        case RankOperator():
            return _of_ranking(operator, layout)
        case JoinOperator():
            return _of_join(operator, layout)
    return layout


def _of_meaning(meaning: Any, segment: StatelessSegment) -> Composition | None:
    match meaning:
        case CallPart():
            values, _, condition = call_parts(meaning.over)
            parts = (*values, *([] if condition is None else [condition]))
            return together(composition(each, segment) for each in parts)
        case (("distinct", _), _):
            return None
    return composition(meaning, segment)


def _of_ranking(operator: RankOperator, layout: StateLayout) -> StateLayout:
    keys = sorted((key for key in operator.partition if not window_field(key)), key=operator.row.index)

    def state(each: NamedState) -> NamedState:
        order = [key for key, _, _ in operator.order]
        key = each.map_key and _composed(each.map_key, order, operator.segment)
        return replace(each, value=_composed(each.value, operator.row, operator.segment), map_key=key)

    of_key = _fields(layout.key, keys, operator.segment)
    return replace(layout, key=of_key, states=tuple(map(state, layout.states)))


def _of_join(operator: JoinOperator, layout: StateLayout) -> StateLayout:
    if len(layout.states) != len(operator.segments):
        return layout
    keys = [one.output for one, _ in operator.keys if isinstance(one, OperatorColumn)]

    def state(each: NamedState, row: Sequence[Expression], segment: StatelessSegment) -> NamedState:
        if each.map_key is not None and each.counts_rows:
            return replace(each, map_key=_composed(each.map_key, row, segment))
        return replace(each, value=_composed(each.value, row, segment))

    sides = zip(layout.states, operator.rows, operator.segments, strict=True)
    of_key = _fields(layout.key, keys, operator.segments[0])
    return replace(layout, key=of_key, states=tuple(state(*side) for side in sides))


def _composed(stored: Stored, parts: Sequence[Expression], segment: StatelessSegment) -> Stored:
    return replace(stored, fields=_fields(stored.fields, parts, segment))


def _fields(
    fields: tuple[StateField, ...], parts: Sequence[Expression], segment: StatelessSegment
) -> tuple[StateField, ...]:
    if len(fields) != len(parts):
        return fields
    return tuple(
        replace(field, composition=composition(part, segment)) for field, part in zip(fields, parts, strict=True)
    )
