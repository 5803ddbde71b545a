"""Stateful operators of a compiled plan with the facets of their state, and append-only nodes."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import ColumnIdentity, Known
from airflow_flinkcompat.connectors.registry import FORMATS
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, ExecNode, time_attribute
from airflow_flinkcompat.exec_graph.kinds import ExecKind, Trait
from airflow_flinkcompat.exec_graph.model import LAYOUT, MEANING, UNSURE, Facets
from airflow_flinkcompat.exec_graph.nodes import family_of
from airflow_flinkcompat.exec_graph.nodes.aggregate import local_columns
from airflow_flinkcompat.exec_graph.nodes.kept_rows import kept_row_facets
from airflow_flinkcompat.exec_graph.nodes.lookup_join import looked_up, lookup_identifier
from airflow_flinkcompat.exec_graph.nodes.sink import keeps_rows, sink_facets, sink_identifier
from airflow_flinkcompat.exec_graph.nodes.source import scanned, source_facets
from airflow_flinkcompat.exec_graph.streams import is_stateless, output_meanings, own, rows_meaning, stateless_output
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbol, Symbols, frozen, joined


@dataclass(frozen=True, eq=False)
class CompiledOperator:
    """A stateful operator, or a sink without state.

    ``facets`` describes the state. ``inputs`` are the columns that the operator reads, and ``rows`` are the rows of a
    source.
    """

    node: ExecNode
    facets: Facets
    keeps: bool = True
    inputs: tuple[ColumnMeanings, ...] = ()
    rows: Symbol | None = None


def operators(
    plan: CompiledPlan,
    symbols: Symbols,
    tables: Mapping[str, str],
    stateless_sinks: frozenset[str],
    identities: Mapping[str, ColumnIdentity] | None = None,
    waiting: Container[str] = (),
) -> list[CompiledOperator]:
    """The stateful operators and all sinks of a plan, in plan order.

    ``tables`` maps each table identifier to the name that both sides share. ``stateless_sinks`` contains the
    identifiers of sinks without state. ``identities`` contains the column identity of each source. ``waiting``
    contains the tables whose lookups may wait for an answer, even if the plan does not show it.
    """
    columns: list[ColumnMeanings] = []
    found: list[CompiledOperator] = []
    for node in plan.nodes:
        inputs = [columns[place] for place in node.inputs]
        if node.kind is ExecKind.TABLE_SOURCE_SCAN:
            columns.append(scanned(node, symbols, tables, identities))
            found.append(CompiledOperator(node, source_facets(node, tables), rows=columns[-1].rows))
        elif not inputs:  # VALUES in the query, or a source of an unknown kind
            written = frozen({"kind": node.kind, **own(node)})
            rows = symbols.of("source", written)
            columns.append(
                output_meanings(node, [symbols.of("of source", rows, i) for i in range(len(node.names))], rows)
            )
            found.append(CompiledOperator(node, {(MEANING, "rows"): written, (LAYOUT, "types"): node.types}))
        elif node.kind is ExecKind.SINK:
            columns.append(inputs[0])
            keeps = keeps_rows(node) or sink_identifier(node) not in stateless_sinks
            found.append(CompiledOperator(node, sink_facets(node, inputs[0], symbols, keeps), keeps, tuple(inputs)))
        elif Trait.LOCAL in node.kind.traits:
            columns.append(local_columns(node, inputs[0], symbols))
        elif node.kind is ExecKind.LOOKUP_JOIN:
            table = lookup_identifier(node)
            columns.append(looked_up(node, inputs[0], tables.get(table, table), symbols))
            if not is_stateless(node) or table in waiting:
                asked = replace(node, config={**node.config, "temporalTable": tables.get(table, table)})
                found.append(CompiledOperator(node, kept_row_facets(asked, inputs, symbols), inputs=tuple(inputs)))
        elif is_stateless(node):
            columns.append(stateless_output(node, inputs, symbols))
        else:
            facets = family_of(node.kind).meaning(node, inputs, symbols)
            columns.append(_output_columns(node, inputs, facets, symbols))
            found.append(CompiledOperator(node, facets, inputs=tuple(inputs)))
        columns[-1] = replace(columns[-1], appends=adds_only(node, [each.appends for each in inputs]))
    return found


_COLUMNS = frozenset(("aggregates", "stored columns"))
"""Facets that describe single columns of a row, not the set of rows."""


def _output_columns(
    node: ExecNode, inputs: Sequence[ColumnMeanings], facets: Facets, symbols: Symbols
) -> ColumnMeanings:
    if node.kind is ExecKind.CHANGELOG_NORMALIZE and not node.config.get("filterCondition"):
        rows = symbols.normalized(inputs[0].rows, rows_meaning(node.kind, facets, symbols, _COLUMNS))
        return replace(inputs[0], names=node.names, types=node.types, rows=rows)
    if Trait.AGGREGATES in node.kind.traits:
        op = rows_meaning("aggregate", facets, symbols, _COLUMNS)
        keys, calls = facets[MEANING, "keys"], facets[MEANING, "aggregates"]
        fields = [each["property"]["kind"] for each in node.config.get("namedWindowProperties") or ()]
        parts = [*keys, *calls, *fields]  # type: ignore[misc]
        parts += [(i, calls) for i in range(len(node.names) - len(parts))]
    elif node.kind in (ExecKind.MATCH, ExecKind.PROCESS_TABLE_FUNCTION):  # only new columns, in order
        op = rows_meaning(node.kind, facets, symbols)
        parts = [(i, facets.get((UNSURE, "measures"))) for i in range(len(node.names))]
    else:
        op = rows_meaning(node.kind, facets, symbols, _COLUMNS)
        calls = facets.get((MEANING, "aggregates"), ())
        parts = [*joined(inputs).symbols, *calls]  # type: ignore[misc]
        parts = parts[: len(node.names)] + [("beside", i) for i in range(len(node.names) - len(parts))]
    columns = output_meanings(node, [symbols.of("from", op, part) for part in parts], symbols.of("rows of", op))
    return replace(columns, at_window_end="window" in node.kind and Trait.AGGREGATES in node.kind.traits)


def adds_only(node: ExecNode, inputs: Sequence[bool]) -> bool:
    """True if the output of a node is certainly append-only."""
    if node.kind is ExecKind.TABLE_SOURCE_SCAN:
        return _table_adds_only(node.config["scanTableSource"]["table"])
    if node.kind is ExecKind.VALUES:
        return True
    inner = node.kind is ExecKind.JOIN and node.config["joinSpec"]["joinType"] in ("INNER", "SEMI")
    first = node.kind is ExecKind.DEDUPLICATE and not node.config.get("keepLastRow")
    once = first and (not node.config.get("isRowtime") or bool(node.config.get("outputInsertOnly")))
    if node.kind is ExecKind.OVER_AGGREGATE:
        orders = (group["orderBy"]["fields"][0]["index"] for group in node.config["overSpec"]["groups"])
        if not all(time_attribute(node.types[place]) for place in orders):
            return False  # a row that sorts between earlier rows changes the results of all rows after it
    return (Trait.APPENDS in node.kind.traits or inner or once) and all(inputs)


def _table_adds_only(table: Mapping[str, Any]) -> bool:
    resolved: Mapping[str, Any] = table.get("resolvedTable", {})
    options: Mapping[str, str] = resolved.get("options", {})
    keyed = bool(resolved.get("schema", {}).get("primaryKey"))
    formats = {value for key, value in options.items() if key in ("format", "value.format")}
    told = (FORMATS.get(each) for each in formats)
    appends = registry.source(options.get("connector")).appends is Known.YES
    return appends and not keyed and all(each is not None and each.appends is Known.YES for each in told)
