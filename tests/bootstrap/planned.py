"""Layouts as compiled plans tell them, made of what scripts tell."""

from __future__ import annotations

from dataclasses import replace

from airflow_flinkcompat.bootstrap.over import as_group_by
from airflow_flinkcompat.exec_graph.layout import CallPart, NamedState, StateField, StateLayout
from airflow_flinkcompat.exec_graph.nodes.join import JOINS
from airflow_flinkcompat.exec_graph.nodes.rank import RANKS
from airflow_flinkcompat.exec_graph.script_compositions import with_script_compositions
from airflow_flinkcompat.plan.operators import (
    AggregateKind,
    AggregateOperator,
    JoinOperator,
    Operator,
    OverOperator,
    RankOperator,
)


def planned_as(operator: Operator) -> str:
    """The name that compiled plans have for an operator."""
    match operator:
        case AggregateOperator():
            return {AggregateKind.WINDOW: "window-aggregate", AggregateKind.GROUP: "group-aggregate"}[operator.kind]
        case OverOperator():
            return "over-aggregate"
        case RankOperator():
            return RANKS[operator.kind]
        case JoinOperator():
            return JOINS[operator.form]
    raise AssertionError(operator)


def as_compiled(operator: Operator, layout: StateLayout) -> StateLayout:
    """The layout of an operator whose columns are named as a compiled plan does."""
    grouped = as_group_by(operator) if isinstance(operator, OverOperator) else operator
    told = with_script_compositions(grouped, layout)

    def field(each: StateField) -> StateField:
        meaning, composed = each.meaning, each.composition
        match meaning:
            case CallPart(over=(values, distinct, condition)) as part:
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
