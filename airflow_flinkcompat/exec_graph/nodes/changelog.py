"""Changelogs: normalization by key, and nodes whose output only appends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import Known
from airflow_flinkcompat.connectors.registry import FORMATS
from airflow_flinkcompat.exec_graph.columns import USER_TIMERS, VALUE, columns, row
from airflow_flinkcompat.exec_graph.exec_node import ExecNode, time_attribute
from airflow_flinkcompat.exec_graph.kinds import ExecKind, Trait
from airflow_flinkcompat.exec_graph.layout import NamedState, StateLayout
from airflow_flinkcompat.exec_graph.lowering import NodeFamily, of_one_input
from airflow_flinkcompat.exec_graph.nodes.aggregate import in_batches
from airflow_flinkcompat.exec_graph.nodes.kept_rows import kept_row_facets
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols


def normalize_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout:
    """The layout of a ChangelogNormalize: the latest row of each key."""
    state = NamedState("deduplicate-state", VALUE, row(below))
    timers = "" if in_batches(node) else USER_TIMERS
    return StateLayout(columns(below, node.config["uniqueKeys"]), (state,), timers, carried_only=True)


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
            return False  # a row between other rows changes the results of all later rows
    return (Trait.APPENDS in node.kind.traits or inner or once) and all(inputs)


def _table_adds_only(table: Mapping[str, Any]) -> bool:
    resolved: Mapping[str, Any] = table.get("resolvedTable", {})
    options: Mapping[str, str] = resolved.get("options", {})
    keyed = bool(resolved.get("schema", {}).get("primaryKey"))
    formats = {value for key, value in options.items() if key in ("format", "value.format")}
    told = (FORMATS.get(each) for each in formats)
    appends = registry.source(options.get("connector")).appends is Known.YES
    return appends and not keyed and all(each is not None and each.appends is Known.YES for each in told)


FAMILIES = (NodeFamily((ExecKind.CHANGELOG_NORMALIZE,), kept_row_facets, of_one_input(normalize_layout)),)
