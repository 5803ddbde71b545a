"""Matching of the nodes of a compiled plan to the operators of a script."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, ExecNode, last_name
from airflow_flinkcompat.exec_graph.kinds import ExecKind, Trait
from airflow_flinkcompat.exec_graph.layout import Unknown
from airflow_flinkcompat.exec_graph.nodes.aggregate import KINDS
from airflow_flinkcompat.exec_graph.nodes.join import JOINS
from airflow_flinkcompat.exec_graph.nodes.sink import sink_identifier
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
    """Match the nodes at and upstream of a place to a segment's operators; raise _Differs."""
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
        inputs, segments = tuple(_united(plan, node)), tuple(_flat(origin))
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


def _united(plan: CompiledPlan, union: ExecNode) -> Iterator[int]:
    for place in union.inputs:
        below = _operator_node(plan, place)
        if below.kind is ExecKind.UNION:
            yield from _united(plan, below)
        else:
            yield place


def _flat(union: Operator) -> Iterator[StatelessSegment]:
    for segment in union.segments:
        below = segment.origin
        if isinstance(below, OtherOperator) and below.kind == OtherKind.UNION_ALL:
            yield from _flat(below)
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
