"""One module for each family of exec nodes; the layout of any node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from airflow_flinkcompat.exec_graph.exec_node import ExecNode
from airflow_flinkcompat.exec_graph.facets import Facets
from airflow_flinkcompat.exec_graph.kinds import ExecKind, Trait
from airflow_flinkcompat.exec_graph.layout import NamedState, StateLayout, Unknown
from airflow_flinkcompat.exec_graph.lowering import Lowered
from airflow_flinkcompat.exec_graph.nodes.aggregate import (
    accumulator_states,
    aggregation_facets,
    aggregation_layout,
    incremental_layout,
)
from airflow_flinkcompat.exec_graph.nodes.changelog import normalize_layout, session_layout
from airflow_flinkcompat.exec_graph.nodes.join import (
    delta_join_layout,
    interval_join_layout,
    join_layout,
    lower_join,
    multi_join_layout,
    temporal_join_layout,
    window_join_layout,
)
from airflow_flinkcompat.exec_graph.nodes.kept_rows import kept_row_facets, row_states
from airflow_flinkcompat.exec_graph.nodes.match import match_layout
from airflow_flinkcompat.exec_graph.nodes.over import over_layout, over_states
from airflow_flinkcompat.exec_graph.nodes.process_table_function import function_facets, function_layout
from airflow_flinkcompat.exec_graph.nodes.rank import (
    WAITING,
    deduplicate_layout,
    lower_rank,
    rank_layout,
    window_deduplicate_layout,
    window_rank_layout,
)
from airflow_flinkcompat.exec_graph.nodes.script_aggregate import lower_aggregation
from airflow_flinkcompat.exec_graph.nodes.sink import keeps_rows, materializer_layout, sink_facets
from airflow_flinkcompat.exec_graph.nodes.sort_limit import limit_layout, sort_layout, sort_limit_layout
from airflow_flinkcompat.exec_graph.nodes.source import source_facets
from airflow_flinkcompat.exec_graph.rewriting import StateRewrite
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols
from airflow_flinkcompat.savepoint.kinds import KeyedStateKind

Layout = StateLayout | Unknown | None
T = TypeVar("T")


@dataclass(frozen=True)
class NodeFamily:
    """What is known of kinds of nodes that keep state. None: not known.

    Attributes:
        kinds: The kinds.
        meaning: The facets of a node.
        layout: The layout of a node's state by key.
        rewrite: The new states out of the old ones, or why they would be read wrong.
        lower: The exec node of a logical operator.
    """

    kinds: tuple[ExecKind, ...]
    meaning: Callable[..., Facets]
    layout: Callable[[ExecNode, Sequence[ColumnMeanings], Symbols], Layout] | None = None
    rewrite: Callable[[StateLayout, StateLayout], tuple[StateRewrite, ...] | str] | None = None
    lower: Callable[..., Lowered] | None = None


def _over_first(
    of_input: Callable[[ExecNode, ColumnMeanings, Symbols], T],
) -> Callable[[ExecNode, Sequence[ColumnMeanings], Symbols], T]:
    return lambda node, inputs, symbols: of_input(node, inputs[0], symbols)


_AGGREGATES = tuple(kind for kind in ExecKind if Trait.AGGREGATES in kind.traits)
_FAMILIES = (
    NodeFamily((ExecKind.TABLE_SOURCE_SCAN,), source_facets),
    NodeFamily((ExecKind.SINK,), sink_facets, _over_first(materializer_layout)),
    NodeFamily(
        _AGGREGATES,
        _over_first(aggregation_facets),
        _over_first(aggregation_layout),
        accumulator_states,
        lower_aggregation,
    ),
    NodeFamily((ExecKind.INCREMENTAL_GROUP_AGGREGATE,), kept_row_facets, _over_first(incremental_layout)),
    NodeFamily((ExecKind.OVER_AGGREGATE,), kept_row_facets, _over_first(over_layout), over_states),
    NodeFamily((ExecKind.RANK,), kept_row_facets, _over_first(rank_layout), row_states, lower_rank),
    NodeFamily((ExecKind.DEDUPLICATE,), kept_row_facets, _over_first(deduplicate_layout), row_states, lower_rank),
    NodeFamily((ExecKind.WINDOW_RANK,), kept_row_facets, _over_first(window_rank_layout), row_states, lower_rank),
    NodeFamily(
        (ExecKind.WINDOW_DEDUPLICATE,), kept_row_facets, _over_first(window_deduplicate_layout), row_states, lower_rank
    ),
    NodeFamily((ExecKind.JOIN,), kept_row_facets, join_layout, row_states, lower_join),
    NodeFamily((ExecKind.INTERVAL_JOIN,), kept_row_facets, interval_join_layout, row_states, lower_join),
    NodeFamily((ExecKind.WINDOW_JOIN,), kept_row_facets, window_join_layout, row_states, lower_join),
    NodeFamily((ExecKind.TEMPORAL_JOIN,), kept_row_facets, temporal_join_layout, row_states),
    NodeFamily((ExecKind.MULTI_JOIN,), kept_row_facets, multi_join_layout),
    NodeFamily((ExecKind.DELTA_JOIN,), kept_row_facets, delta_join_layout),
    NodeFamily((ExecKind.LOOKUP_JOIN,), kept_row_facets),
    NodeFamily((ExecKind.LIMIT,), kept_row_facets, _over_first(limit_layout)),
    NodeFamily((ExecKind.SORT_LIMIT,), kept_row_facets, _over_first(sort_limit_layout)),
    NodeFamily((ExecKind.TEMPORAL_SORT,), kept_row_facets, _over_first(sort_layout)),
    NodeFamily((ExecKind.PROCESS_TABLE_FUNCTION,), function_facets, function_layout),
    NodeFamily((ExecKind.MATCH,), kept_row_facets, _over_first(match_layout)),
    NodeFamily((ExecKind.CHANGELOG_NORMALIZE,), kept_row_facets, _over_first(normalize_layout)),
    NodeFamily((ExecKind.WINDOW_TABLE_FUNCTION,), kept_row_facets, _over_first(session_layout)),
)
FAMILIES: Mapping[ExecKind, NodeFamily] = {kind: family for family in _FAMILIES for kind in family.kinds}
"""The family of each kind of which anything is known."""


def family_of(kind: ExecKind) -> NodeFamily:
    """The family of a kind.

    Args:
        kind: A kind of exec node.

    Returns:
        Its family; of a kind of which nothing is known one with the facets of stored rows.
    """
    return FAMILIES.get(kind) or NodeFamily((kind,), kept_row_facets)


_NO_TIME = "0 ms"


def layout(node: ExecNode, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout | Unknown | None:
    """How an operator stores what it keeps by key.

    Args:
        node: An operator that keeps something, a source or a sink.
        inputs: What it reads.
        symbols: The table of meanings.

    Returns:
        Its layout, or why it is not known; None where it keeps nothing by key.
    """
    if not inputs or _keeps_nothing_by_key(node):
        return None
    family = family_of(node.kind)
    if family.layout is None:
        return Unknown(f"what an operator of kind {node.kind} keeps was not measured", place=node.description)
    made = family.layout(node, inputs, symbols)
    if isinstance(made, Unknown):
        return made.at(node.description)
    return made and _with_time_to_live(node, made)


def _keeps_nothing_by_key(node: ExecNode) -> bool:
    if node.kind is ExecKind.SINK:
        return not keeps_rows(node)
    return Trait.WAITS in node.kind.traits and not node.config.get("state")


def _with_time_to_live(node: ExecNode, made: StateLayout) -> StateLayout:
    """A time to live is told by place: that of a join's sides in their order, of any other operator one for all."""
    told = [state["ttl"] != _NO_TIME for state in node.config.get("state") or ()]
    if Trait.HIDES_TTL in node.kind.traits or not any(told):  # their layouts say what a time to live adds
        return made
    of = told if len(told) == len(made.states) else [told[0]] * len(made.states)
    states = (_expiring(state) if lives else state for state, lives in zip(made.states, of, strict=True))
    return replace(made, states=tuple(states))


def _expiring(state: NamedState) -> NamedState:
    """A state with a time to live. Each element of a list has its own time."""
    if state.name == WAITING:
        return state
    if state.kind is not KeyedStateKind.LIST:
        return replace(state, time_to_live=True)
    element = state.value.form.removeprefix("List<").removesuffix(">")
    return replace(state, value=replace(state.value, form=f"List<Ttl<Long, {element}>>"))


__all__ = ["FAMILIES", "NodeFamily", "family_of", "layout"]
