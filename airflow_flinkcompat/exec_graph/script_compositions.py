"""What each field of a layout that a script's own plan tells is computed of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from airflow_flinkcompat.exec_graph.layout import CallPart, NamedState, StateField, StateLayout, Stored
from airflow_flinkcompat.plan.column_lineage import composition
from airflow_flinkcompat.plan.composition import Composition, together
from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.operators import AggregateOperator, JoinOperator, Operator, RankOperator, StatelessSegment
from airflow_flinkcompat.plan.origins import OperatorColumn, window_field


def with_script_compositions(operator: Operator, layout: StateLayout) -> StateLayout:
    """A layout with what each field is computed of."""
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
        case CallPart(over=(tuple(values), _, condition)):
            parts = (*values, *([] if condition is None else [condition]))
            return together(composition(each, segment) for each in parts)
        case ("key", key):
            return composition(key, segment)
    return None


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
