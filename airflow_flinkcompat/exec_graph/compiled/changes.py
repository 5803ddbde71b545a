"""Whether the rows that a node of a compiled plan hands on are only ever added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import Known
from airflow_flinkcompat.connectors.formats import FORMATS
from airflow_flinkcompat.exec_graph.compiled.nodes import Node, time_attribute

_AS_ITS_INPUTS = frozenset(
    ("calc", "correlate", "exchange", "union", "expand", "watermark-assigner", "mini-batch-assigner", "lookup-join",
     "window-table-function", "local-window-aggregate", "global-window-aggregate", "window-aggregate", "window-rank",
     "window-deduplicate", "window-join", "interval-join", "temporal-join", "temporal-sort", "over-aggregate", "match")
)  # fmt: skip
"""What takes nothing back of what it handed on, where nothing is taken back from it; group windows may."""


def adds_only(node: Node, inputs: Sequence[bool]) -> bool:
    """Whether the rows that a node hands on are surely only ever added.

    Args:
        node: Of a compiled plan.
        inputs: Whether those of each of its inputs are.

    Returns:
        False also where nobody knows.
    """
    if node.kind == "table-source-scan":
        return _table_adds_only(node.config["scanTableSource"]["table"])
    if node.kind == "values":
        return True
    inner = node.kind == "join" and node.config["joinSpec"]["joinType"] in ("INNER", "SEMI")
    first = node.kind == "deduplicate" and not node.config.get("keepLastRow")
    once = first and (not node.config.get("isRowtime") or bool(node.config.get("outputInsertOnly")))
    if node.kind == "over-aggregate":
        orders = (group["orderBy"]["fields"][0]["index"] for group in node.config["overSpec"]["groups"])
        if not all(time_attribute(node.types[place]) for place in orders):
            return False  # a row that comes between others changes the results of all after it
    return (node.kind in _AS_ITS_INPUTS or inner or once) and all(inputs)


def _table_adds_only(table: Mapping[str, Any]) -> bool:
    resolved: Mapping[str, Any] = table.get("resolvedTable", {})
    options: Mapping[str, str] = resolved.get("options", {})
    keyed = bool(resolved.get("schema", {}).get("primaryKey"))
    formats = {value for key, value in options.items() if key in ("format", "value.format")}
    told = (FORMATS.get(each) for each in formats)
    appends = registry.source(options.get("connector")).appends is Known.YES
    return appends and not keyed and all(each is not None and each.appends is Known.YES for each in told)
