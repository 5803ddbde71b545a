"""Output of stateless nodes: columns, rows and conditions."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Any

from airflow_flinkcompat.exec_graph.exec_node import PROCTIME, ExecNode, time_attribute
from airflow_flinkcompat.exec_graph.kinds import ExecKind, Trait
from airflow_flinkcompat.exec_graph.model import LAYOUT, UNSURE, Facets
from airflow_flinkcompat.exec_graph.symbols import (
    ColumnMeanings,
    Symbol,
    Symbols,
    conjuncts,
    expression,
    frozen,
    resolved,
)

UNMEANT = frozenset(("inputProperties", "localAggInputRowType", "namedWindowProperties"))
"""Configuration fields that repeat the input, or describe output that is not stored."""
ASIDE = frozenset(("configuration", "state", "generateUpdateBefore"))
"""Configuration fields for settings, time to live and emission, which this module does not compare."""
_SAME_ROWS = ASIDE | {"argument types", "unboundedOverVersion"}
"""Facets that do not change the output rows."""


def rows_meaning(kind: str, facets: Facets, symbols: Symbols, but: Container[str] = ()) -> Symbol:
    """The meaning of an operator's output rows, including everything upstream.

    If an operator's condition, join type or rank changes, its state may still be correct, but its output rows change.
    """
    properties = (
        (name, value)
        for (effect, name), value in facets.items()
        if effect is not LAYOUT and name not in _SAME_ROWS and name not in but
    )
    return symbols.of(kind, *properties)


def facets_aside(node: ExecNode) -> Facets:
    return {(UNSURE, key): frozen(node.config[key]) for key in sorted(ASIDE) if key in node.config}


def types_at(below: ColumnMeanings, places: Sequence[int]) -> tuple[str, ...]:
    return tuple(below.types[place] if place < len(below.types) else "constant" for place in places)


def is_stateless(node: ExecNode) -> bool:
    """True if a node certainly keeps no state."""
    if node.kind is ExecKind.WINDOW_TABLE_FUNCTION:  # an open session stores its rows
        return bool(node.config["windowing"]["window"]["type"] != "SessionWindow")
    if (
        node.kind is ExecKind.PROCESS_TABLE_FUNCTION
    ):  # Flink assigns a uid to each function that may keep state or timers
        return node.config.get("uid") is None
    if is_sort_by_arrival(node):
        return True
    return Trait.STATELESS in node.kind.traits and not node.config.get("state") and not node.config.get("asyncOptions")


def is_sort_by_arrival(node: ExecNode) -> bool:
    """True if a sort is by processing time alone, for which Flink creates no operator."""
    if node.kind is not ExecKind.TEMPORAL_SORT:
        return False
    fields = node.config["orderBy"]["fields"]
    alone = len(fields) == 1 and fields[0]["isAscending"]
    return alone and time_attribute(node.types[fields[0]["index"]]) == PROCTIME


def own(node: ExecNode, *but: str) -> dict[str, Any]:
    """The configuration of a node without fields that do not affect state or are compared separately."""
    return {key: part for key, part in node.config.items() if key not in (*UNMEANT, *ASIDE, *but)}


def output_meanings(node: ExecNode, symbols: Sequence[Symbol], rows: Symbol) -> ColumnMeanings:
    return ColumnMeanings(tuple(symbols), node.names, node.types, rows)


def stateless_output(node: ExecNode, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> ColumnMeanings:
    """The output columns of a stateless node."""
    first = inputs[0]
    match node.kind:
        case ExecKind.UNION:
            return _union(node, inputs, symbols)
        case kind if Trait.PASSES_COLUMNS in kind.traits:
            return replace(first, names=node.names, types=node.types)
        case ExecKind.CALC:
            condition = node.config.get("condition")
            rows = symbols.filtered(first.rows, conjuncts(condition, first, symbols)) if condition else first.rows
            columns = output_meanings(
                node, [expression(rex, first, symbols) for rex in node.config["projection"]], rows
            )
            return replace(columns, at_window_end=first.at_window_end)
        case ExecKind.EXPAND:
            versions = [[expression(rex, first, symbols) for rex in project] for project in node.config["projects"]]
            rows = symbols.of("expanded", first.rows, len(versions))
            return output_meanings(node, [symbols.of("expanded", *each) for each in zip(*versions, strict=True)], rows)
        case ExecKind.WINDOW_TABLE_FUNCTION:
            window = symbols.of("window", resolved(own(node), first, symbols))
            fields = (symbols.of("window field", window, i) for i in range(len(node.names) - len(first.names)))
            return output_meanings(node, (*first.symbols, *fields), symbols.of("windowed", first.rows, window))
        case ExecKind.PROCESS_TABLE_FUNCTION:
            op = symbols.of(node.kind, frozen(own(node)), *((each.rows, each.symbols) for each in inputs))
            return output_meanings(
                node, [symbols.of("made", op, i) for i in range(len(node.names))], symbols.of("rows of", op)
            )
    # A table function passes the columns of its input on by name, and creates the other columns.
    op = symbols.of(node.kind, resolved(own(node), first, symbols), first.rows)
    known = dict(zip(first.names, first.symbols, strict=True))
    every = [known.get(name, symbols.of("made", op, i)) for i, name in enumerate(node.names)]
    return output_meanings(node, every, symbols.of("rows of", op))


def _union(node: ExecNode, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> ColumnMeanings:
    """The rows of all inputs in any order. Each output column combines one column of each input."""
    parts = sorted((each.rows, each.symbols) for each in inputs)
    of_rows = [rows for rows, _ in parts]
    # If inputs have equal rows, only their columns distinguish them.
    rows = symbols.of("union", tuple(of_rows if len({*of_rows}) == len(parts) else parts))
    columns = zip(*(columns for _, columns in parts), strict=True)
    return output_meanings(node, [symbols.of("of union", rows, column) for column in columns], rows)
