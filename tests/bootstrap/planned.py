"""Layouts as compiled plans tell them, made of what scripts tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from airflow_flinkcompat.plan.column_lineage import composition
from airflow_flinkcompat.plan.composition import Composition, together
from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.operators import (
    AggregateKind,
    AggregateOperator,
    JoinOperator,
    Operator,
    OverOperator,
    RankOperator,
    StatelessSegment,
)
from airflow_flinkcompat.plan.origins import OperatorColumn, window_field
from airflow_flinkcompat.state.layout import CallPart, NamedState, StateField, StateLayout, Stored
from airflow_flinkcompat.state.layouts.script_rows import JOINS, RANKS


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
    match operator:
        case RankOperator():
            return _of_rows(operator, layout)
        case JoinOperator():
            return _of_join(operator, layout)
    (segment,) = operator.segments

    def field(each: StateField) -> StateField:
        match each.meaning:
            case CallPart(over=(values, distinct, condition)) as part:
                told_by_plan = ("argList", values), ("distinct", distinct)
                over = (*filter(lambda pair: pair[1], told_by_plan), ("filterArg", condition and 9))
                composed = _told((*values, *([] if condition is None else [condition])), segment)
                return replace(each, words="$f1", meaning=replace(part, over=over), composition=composed)
            case ("key", key):
                return replace(each, words="$f0", composition=_told([key], segment))
        return each

    def state(each: NamedState) -> NamedState:
        return replace(each, value=Stored(each.value.form, tuple(map(field, each.value.fields))))

    return replace(layout, key=tuple(map(field, layout.key)), states=tuple(map(state, layout.states)))


def _of_rows(operator: RankOperator, layout: StateLayout) -> StateLayout:
    keys = sorted((key for key in operator.partition if not window_field(key)), key=operator.row.index)

    def state(each: NamedState) -> NamedState:
        row = _named(each.value.fields, operator.row, operator.segment)
        order = each.map_key and [key for key, _, _ in operator.order]
        sorted_by = each.map_key and Stored(
            each.map_key.form, _named(each.map_key.fields, order or (), operator.segment)
        )
        return replace(each, value=Stored(each.value.form, row), map_key=sorted_by)

    return replace(layout, key=_named(layout.key, keys, operator.segment), states=tuple(map(state, layout.states)))


def _of_join(operator: JoinOperator, layout: StateLayout) -> StateLayout:
    keys = [one.output for one, _ in operator.keys if isinstance(one, OperatorColumn)]

    def state(each: NamedState, row: Sequence[Expression], segment: StatelessSegment) -> NamedState:
        named = _named(each.row, row, segment)
        if each.map_key is None or not each.counts_rows:
            return replace(each, value=Stored(each.value.form, named), retracting=False)
        return replace(each, map_key=Stored(each.map_key.form, named), retracting=False)

    sides = zip(layout.states, operator.rows, operator.segments, strict=True)
    return replace(
        layout, key=_named(layout.key, keys, operator.segments[0]), states=tuple(state(*side) for side in sides)
    )


def _named(
    fields: Sequence[StateField], parts: Sequence[Expression], segment: StatelessSegment
) -> tuple[StateField, ...]:
    if not fields:
        return ()
    return tuple(
        replace(field, words=f"$f{place}", composition=_told([part], segment))
        for place, (field, part) in enumerate(zip(fields, parts, strict=True))
    )


def _told(parts: Sequence[Any], segment: StatelessSegment) -> Composition | None:
    found = together(composition(part, segment) for part in parts)
    if found is None:
        return None
    columns = (("column", f"`default_catalog`.`default_database`.`{table}`", of) for table, of in found.columns)  # type: ignore[misc]
    return replace(found, columns=frozenset(columns))
