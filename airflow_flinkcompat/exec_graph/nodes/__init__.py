"""The families of exec nodes, and the lookup of a node's family and layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.exec_graph.exec_node import ExecNode
from airflow_flinkcompat.exec_graph.kinds import ExecKind, Trait
from airflow_flinkcompat.exec_graph.layout import NamedState, StateField, StateLayout, Unknown
from airflow_flinkcompat.exec_graph.lowering import NodeFamily
from airflow_flinkcompat.exec_graph.nodes import (
    aggregate,
    join,
    lookup_join,
    match,
    over,
    process_table_function,
    rank,
    sink,
    source,
    window_aggregate,
)
from airflow_flinkcompat.exec_graph.nodes.kept_rows import kept_row_facets
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols
from airflow_flinkcompat.savepoint.binary import KeyedStateKind

_MODULES = (aggregate, join, lookup_join, match, over, process_table_function, rank, sink, source, window_aggregate)
FAMILIES: Mapping[ExecKind, NodeFamily] = {
    kind: family for module in _MODULES for family in module.FAMILIES for kind in family.kinds
}
"""The node families, by kind of node."""


def family_of(kind: ExecKind) -> NodeFamily:
    """The family of a kind.

    Args:
        kind: A kind of exec node.

    Returns:
        The family of the kind. An unknown kind has a family with the facets of stored rows.
    """
    return FAMILIES.get(kind) or NodeFamily((kind,), kept_row_facets)


_NO_TIME = "0 ms"


def layout(node: ExecNode, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout | Unknown | None:
    """The layout of a node's state, including its time to live.

    Args:
        node: A stateful operator, a source or a sink.
        inputs: The columns of the node's inputs.
        symbols: The table of meanings.

    Returns:
        The layout, or the reason why it is unknown; None without keyed state.
    """
    if not inputs or _keeps_nothing_by_key(node):
        return None
    family = family_of(node.kind)
    if family.layout is None:
        return Unknown(f"the state of an operator of kind {node.kind} was not measured", place=node.description)
    made = family.layout(node, inputs, symbols)
    if isinstance(made, Unknown):
        return made.at(node.description)
    return made and _with_constants(_with_time_to_live(node, made), symbols)


def _keeps_nothing_by_key(node: ExecNode) -> bool:
    if node.kind is ExecKind.SINK:
        return not sink.keeps_rows(node)
    return Trait.WAITS in node.kind.traits and not node.config.get("state")


def _with_time_to_live(node: ExecNode, made: StateLayout) -> StateLayout:
    """Add the node's time to live to its states: one for each side of a join, else one for all."""
    expires = [state["ttl"] != _NO_TIME for state in node.config.get("state") or ()]
    if Trait.HIDES_TTL in node.kind.traits or not any(
        expires
    ):  # such layouts already contain the effect of a time to live
        return made
    of = expires if len(expires) == len(made.states) else [expires[0]] * len(made.states)
    states = (_expiring(state) if lives else state for state, lives in zip(made.states, of, strict=True))
    return replace(made, states=tuple(states))


def _with_constants(made: StateLayout, symbols: Symbols) -> StateLayout:
    """Add their value to the columns of stored rows that the query computes as a constant."""

    def known(field: StateField) -> StateField:
        value = symbols.integer(field.meaning) if isinstance(field.meaning, int) else None
        return field if value is None else replace(field, constant=value)

    return replace(
        made,
        states=tuple(
            replace(state, value=replace(state.value, fields=tuple(map(known, state.value.fields))))
            for state in made.states
        ),
    )


def _expiring(state: NamedState) -> NamedState:
    """Add a time to live to a state; the elements of a list expire separately."""
    if state.name == rank.WAITING:
        return state
    if state.kind is not KeyedStateKind.LIST:
        return replace(state, time_to_live=True)
    element = state.value.form.removeprefix("List<").removesuffix(">")
    return replace(state, value=replace(state.value, form=f"List<Ttl<Long, {element}>>"))


__all__ = ["FAMILIES", "family_of", "layout"]
