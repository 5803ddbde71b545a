"""Matching operators of two jobs, and of a compiled plan and its script.

Two jobs' operators that may share state are matched by kind, rows and keys.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, ExecNode, last_name
from airflow_flinkcompat.exec_graph.facets import rows_about
from airflow_flinkcompat.exec_graph.kinds import ExecKind, Trait
from airflow_flinkcompat.exec_graph.layout import StateLayout, Unknown
from airflow_flinkcompat.exec_graph.model import UNSURE, RestoreEffect, StateKind, StateSpec
from airflow_flinkcompat.exec_graph.nodes.aggregate import KINDS
from airflow_flinkcompat.exec_graph.nodes.join import JOINS
from airflow_flinkcompat.exec_graph.nodes.sink import sink_identifier
from airflow_flinkcompat.exec_graph.rewriting import means, stored_fields
from airflow_flinkcompat.plan.operators import (
    AggregateKind,
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Operator,
    OtherKind,
    OtherOperator,
    Output,
    OverOperator,
    RankOperator,
    Source,
    StatelessSegment,
)


def family(spec: StateSpec) -> str:
    """Name of the group of operators that may reuse each other's state: one kind, or one sink."""
    if spec.kind is StateKind.OPERATOR:
        return ExecKind(spec.name).in_one_phase
    return f"sink {spec.name}" if spec.kind is StateKind.SINK else ""


def aggregates(spec: StateSpec) -> bool:
    """True if an operator stores accumulators by key in a known layout."""
    return _has(spec, Trait.AGGREGATES) and isinstance(spec.layout, StateLayout)


def same_properties(old: StateSpec, new: StateSpec) -> bool:
    """True if no unmeasured property differs.

    A property that the plans of only one version of Flink contain does not differ if restores across versions were
    right.
    """
    if old.unmeasured_properties == new.unmeasured_properties:
        return True
    if not (old.compiled and new.compiled) or old.compiled[0].version == new.compiled[0].version:
        return False
    differing = {name for name, _ in set(old.facets.items()) ^ set(new.facets.items()) if name[0] is UNSURE}
    return all(
        (name in old.facets) != (name in new.facets)
        and any(row.effect is RestoreEffect.RIGHT for row in rows_about(new.operator, name[1]))
        for name in differing
    )


def holds_rows(spec: StateSpec) -> bool:
    """True if an operator stores rows in a known layout."""
    return _has(spec, Trait.HOLDS_ROWS) and isinstance(spec.layout, StateLayout)


def _has(spec: StateSpec, trait: Trait) -> bool:
    return spec.kind is StateKind.OPERATOR and trait in ExecKind(spec.name).traits


def known_layout(spec: StateSpec) -> StateLayout:
    """The layout of an operator, which must be known."""
    assert isinstance(spec.layout, StateLayout)
    return spec.layout


def key_meanings(spec: StateSpec) -> Counter[object]:
    """The meanings of an operator's key columns."""
    return Counter(means(known_layout(spec).key))


def states_for(new: StateSpec, pool: Iterable[StateSpec], *, sinks: Iterable[Set[str]]) -> list[StateSpec]:
    """The old states that a new operator may reuse, selected by the sinks downstream.

    A sink that contains the results of an operator needs the state of that operator. If a new sink used this state,
    it would receive retractions of rows that it never received.
    """
    if new.kind is not StateKind.OPERATOR:
        return list(pool)
    before, after = sinks
    found = [
        old
        for old in pool
        if old.kind is StateKind.OPERATOR and (old.sinks & new.sinks or not (old.sinks & after or new.sinks & before))
    ]
    return sorted(
        found, key=lambda old: (old.sinks != new.sinks, old.unmeasured_properties != new.unmeasured_properties)
    )


def shared_fields(old: StateSpec, new: StateSpec) -> int:
    """The number of fields that both operators store."""
    return len(set(stored_fields(known_layout(old))) & set(stored_fields(known_layout(new))))


def matching_operators(
    new: StateSpec, left: Iterable[StateSpec], keys: Callable[[Counter[object], Counter[object]], bool]
) -> list[StateSpec]:
    """The old operators with the same rows and windows, and with keys that satisfy a comparison."""
    if not (aggregates(new) or holds_rows(new)):
        return []
    found = [old for old in left if family(old) == family(new) and old.meaning == new.meaning]
    found = [old for old in found if aggregates(old) or (holds_rows(old) and same_properties(old, new))]
    found = [old for old in found if keys(key_meanings(new), key_meanings(old))]
    return sorted(found, key=lambda old: -shared_fields(old, new))


def _aggregate_alike(old: StateSpec, new: StateSpec) -> bool:
    alike = aggregates(new) and aggregates(old) and family(old) == family(new)
    return alike and key_meanings(old) == key_meanings(new) and old.meaning != new.meaning


def other_condition(old: StateSpec, new: StateSpec) -> bool:
    """True if two aggregations differ only in the condition on their rows."""
    if not _aggregate_alike(old, new) or known_layout(old).retracting or known_layout(new).retracting:
        return False
    return old.meaning_without_filter == new.meaning_without_filter is not None


def only_windows_differ(old: StateSpec, new: StateSpec) -> bool:
    """True if two aggregations differ only in their windows, and both store slices."""
    sliced = old.windows is not None and new.windows is not None
    return _aggregate_alike(old, new) and sliced and old.meaning_without_window == new.meaning_without_window


_ADDED = frozenset(
    {
        ExecKind.CHANGELOG_NORMALIZE,
        ExecKind.INCREMENTAL_GROUP_AGGREGATE,
        ExecKind.PYTHON_ASYNC_CALC,
        ExecKind.PYTHON_CALC,
        ExecKind.PYTHON_CORRELATE,
        ExecKind.WINDOW_TABLE_FUNCTION,
    }
)
"""Stateful kinds of nodes that never correspond to an operator of the script."""
_JOINS = {**JOINS, JoinForm.TEMPORAL: ExecKind.TEMPORAL_JOIN, JoinForm.LOOKUP: ExecKind.LOOKUP_JOIN}
_RANKS = frozenset({ExecKind.RANK, ExecKind.DEDUPLICATE})
_RANKS_OF_WINDOWS = frozenset({ExecKind.WINDOW_RANK, ExecKind.WINDOW_DEDUPLICATE})
_OTHERS = {
    OtherKind.LIMIT: frozenset({ExecKind.LIMIT}),
    OtherKind.SORT: frozenset({ExecKind.SORT, ExecKind.TEMPORAL_SORT}),
    OtherKind.SORT_LIMIT: frozenset({ExecKind.SORT_LIMIT}),
    OtherKind.TEMPORAL_SORT: frozenset({ExecKind.TEMPORAL_SORT}),
    OtherKind.MATCH_RECOGNIZE: frozenset({ExecKind.MATCH}),
    OtherKind.PROCESS_TABLE_FUNCTION: frozenset({ExecKind.PROCESS_TABLE_FUNCTION}),
}


@dataclass(frozen=True)
class Linked:
    """An operator of a script, with the position of its query in the program."""

    query: int
    operator: Operator


class _Differs(Exception):
    """Raised if Flink's operators for a query differ from the script's operators."""


def unify(
    plan: CompiledPlan, outputs: Mapping[int, Output], tables: Mapping[str, str]
) -> Mapping[int, Linked | Unknown]:
    """Map each node of a compiled plan to the script's operator for which it was planned.

    Each query is compared from its sink to its tables. Nodes are linked only if all operators of the query match in
    order.
    """
    found: dict[int, dict[Operator, int]] = defaultdict(dict)
    reason = "the script has no query for this sink"
    for sink in (node for node in plan.nodes if node.kind is ExecKind.SINK):
        name = last_name(sink_identifier(sink))
        for number, output in outputs.items():
            if output.sink and tables.get(output.sink, last_name(output.sink)) != name:
                continue
            try:
                pairs = [*_pairs(plan, sink.inputs[0], output.segment, tables)]
            except _Differs as error:
                reason = str(error)
                continue
            for place, operator in pairs:
                found[place].setdefault(operator, number)

    def link(node: ExecNode) -> Linked | Unknown:
        match [*found[node.place].items()]:
            case []:
                return Unknown(reason)
            case [(operator, number)]:
                return Linked(number, operator)
        return Unknown("several operators of the script match this node")

    return {node.place: link(node) for node in plan.nodes}


def _pairs(
    plan: CompiledPlan, place: int, segment: StatelessSegment, tables: Mapping[str, str]
) -> Iterator[tuple[int, Operator]]:
    """Match a node and its upstream nodes to a segment's operators; raise _Differs on a difference."""
    node, origin = _operator_node(plan, place), segment.origin
    if not isinstance(origin, Operator):
        scan = node.config.get("scanTableSource")
        read = None if scan is None else last_name(scan["table"]["identifier"])
        if node.inputs or read != (tables.get(origin.table, "") if isinstance(origin, Source) else None):
            raise _Differs(_difference(node, origin))
        return
    inputs, segments = node.inputs, origin.segments
    united = isinstance(origin, OtherOperator) and origin.kind == OtherKind.UNION_ALL
    if united:
        inputs, segments = tuple(_union_inputs(plan, node)), tuple(_union_branches(origin))
    elif node.kind is ExecKind.LOOKUP_JOIN:
        segments = segments[:1]
    kinds = frozenset({ExecKind.UNION}) if united else _kinds(origin)
    if node.kind.in_one_phase not in kinds or len(inputs) != len(segments):
        raise _Differs(_difference(node, origin))
    if not united:
        yield node.place, origin
    for below, read_by in zip(inputs, segments, strict=True):
        yield from _pairs(plan, below, read_by, tables)


def _operator_node(plan: CompiledPlan, place: int) -> ExecNode:
    """The nearest node at or upstream of a place that is an operator of the script, a union, or a source."""
    node = plan.nodes[place]
    row_by_row = node.kind.traits & (Trait.STATELESS | Trait.WAITS)
    written = node.kind in (ExecKind.LOOKUP_JOIN, ExecKind.UNION) or len(node.inputs) != 1
    passes = (row_by_row or node.kind in _ADDED) and not written
    return _operator_node(plan, node.inputs[0]) if passes else node


def _kinds(operator: Operator) -> frozenset[ExecKind]:
    """The possible kinds of an operator's node; the one-phase kind also represents two phases."""
    match operator:
        case AggregateOperator():
            return frozenset({KINDS.get(operator.kind, KINDS[AggregateKind.GROUP])})
        case OverOperator():
            return frozenset({ExecKind.OVER_AGGREGATE})
        case RankOperator():
            return _RANKS if operator.window is None else _RANKS_OF_WINDOWS
        case JoinOperator():
            return frozenset({_JOINS[operator.form]} if operator.form in _JOINS else _JOINS.values())
        case OtherOperator(kind=OtherKind() as kind):
            return _OTHERS.get(kind, frozenset())
    return frozenset()


def _union_inputs(plan: CompiledPlan, union: ExecNode) -> Iterator[int]:
    for place in union.inputs:
        below = _operator_node(plan, place)
        if below.kind is ExecKind.UNION:
            yield from _union_inputs(plan, below)
        else:
            yield place


def _union_branches(union: Operator) -> Iterator[StatelessSegment]:
    for segment in union.segments:
        below = segment.origin
        if isinstance(below, OtherOperator) and below.kind == OtherKind.UNION_ALL:
            yield from _union_branches(below)
        else:
            yield segment


def _difference(node: ExecNode, origin: object) -> str:
    match origin:
        case Operator():
            written = str(origin.kind)
        case Source():
            written = f"table {origin.table}"
        case _:
            written = "rows"
    return f"the script and Flink's plan differ: the script has {written} where Flink plans {node.kind}"
