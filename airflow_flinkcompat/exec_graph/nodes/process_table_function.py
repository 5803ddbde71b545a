"""Process table functions, whose class declares state by partition key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow_flinkcompat.exec_graph.exec_node import ExecNode
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import Unknown
from airflow_flinkcompat.exec_graph.lowering import NodeFamily
from airflow_flinkcompat.exec_graph.model import LAYOUT, MEANING, UNSURE, Facets
from airflow_flinkcompat.exec_graph.streams import facets_aside, types_at
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols, frozen


def function_facets(node: ExecNode, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> Facets:
    """The facets of a process table function; a different uid means a different operator.

    The class decides how the state depends on arguments, columns and rows.
    """
    call = node.config["functionCall"]
    tables = list(_tables(call))
    keys = [(inputs[each["inputIndex"]], each["partitionKeys"]) for each in tables]
    orders = [(inputs[each["inputIndex"]], each["orderKeys"], each.get("orderDirections")) for each in tables]
    rest = [each for each in call["operands"] if each not in tables]
    return {
        (LAYOUT, "key types"): tuple(types_at(read, places) for read, places in keys),
        (MEANING, "keys"): tuple(read.at(place) for read, places in keys for place in places),
        (MEANING, "function"): call.get("internalName") or call.get("catalogName"),
        (UNSURE, "arguments"): frozen(rest),
        (UNSURE, "order"): tuple(
            (tuple(read.at(place) for place in places), frozen(directions)) for read, places, directions in orders
        ),
        (UNSURE, "columns"): tuple((read.symbols, read.types) for read in inputs),
        (UNSURE, "rows below"): tuple(read.rows for read in inputs),
        (UNSURE, "changelog"): frozen([node.config["inputChangelogModes"], node.config["outputChangelogMode"]]),
        **facets_aside(node),
    }


def function_layout(node: ExecNode, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> Unknown:
    """The unknown layout of a process table function with a uid; without a uid it is stateless."""
    return Unknown("the class of a process table function declares its state, and no plan shows it")


def _tables(call: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (each for each in call["operands"] if each["kind"] == "TABLE_ARG_CALL")


FAMILIES = (NodeFamily((ExecKind.PROCESS_TABLE_FUNCTION,), function_facets, function_layout),)
