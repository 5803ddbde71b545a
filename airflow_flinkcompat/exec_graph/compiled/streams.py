"""What scans and stateless operators of a compiled plan hand on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow_flinkcompat.connectors.facts import ColumnIdentity
from airflow_flinkcompat.exec_graph.compiled.nodes import PROCTIME, Node, row_type, time_attribute
from airflow_flinkcompat.exec_graph.compiled.symbols import (
    ColumnMeanings,
    Symbol,
    Symbols,
    conjuncts,
    expression,
    frozen,
    resolved,
)

UNMEANT = frozenset(("inputProperties", "localAggInputRowType", "namedWindowProperties"))
"""Fields that repeat what inputs say, or what is handed up and not kept."""

ASIDE = frozenset(("configuration", "state", "generateUpdateBefore"))
"""Settings, times to live and what is emitted: judged from the settings, or not measured."""

LOCAL = frozenset(("local-group-aggregate", "local-window-aggregate"))
_STATELESS = frozenset(("calc", "correlate", "exchange", "union", "expand", "watermark-assigner", "mini-batch-assigner",
                        "drop-update-before", "lookup-join", *LOCAL))  # fmt: skip


def is_stateless(node: Node) -> bool:
    """Whether a node is known to keep nothing; every other one counts as stateful."""
    if node.kind == "window-table-function":  # a session has to keep its rows
        return bool(node.config["windowing"]["window"]["type"] != "SessionWindow")
    if is_sort_by_arrival(node):
        return True
    return node.kind in _STATELESS and not node.config.get("state") and not node.config.get("asyncOptions")


def is_sort_by_arrival(node: Node) -> bool:
    """Whether a sort is by processing time alone: Flink makes no operator of it, the rows come in that order."""
    if node.kind != "temporal-sort":
        return False
    fields = node.config["orderBy"]["fields"]
    alone = len(fields) == 1 and fields[0]["isAscending"]
    return alone and time_attribute(node.types[fields[0]["index"]]) == PROCTIME


def own(node: Node, *but: str) -> dict[str, Any]:
    """What a node is configured to do, without what takes no part in state or is compared by itself."""
    return {key: part for key, part in node.config.items() if key not in (*UNMEANT, *ASIDE, *but)}


def made(node: Node, symbols: Sequence[Symbol], rows: Symbol) -> ColumnMeanings:
    return ColumnMeanings(tuple(symbols), node.names, node.types, rows)


def scanned(
    node: Node, symbols: Symbols, tables: Mapping[str, str], identities: Mapping[str, ColumnIdentity] | None = None
) -> ColumnMeanings:
    """The columns of a table by what makes them the same, its rows after what was pushed into it."""
    table = node.config["scanTableSource"]["table"]
    identity = (identities or {}).get(table["identifier"], ColumnIdentity.NAME)
    name = tables.get(table["identifier"], table["identifier"])
    schema = table.get("resolvedTable", {}).get("schema", {}).get("columns", ())
    metadata = {
        each["name"]: each.get("metadataKey") or each["name"] for each in schema if each.get("kind") == "METADATA"
    }

    # A projection counts the columns that are stored; metadata columns stand behind them.
    stored = [each for each in schema if each.get("kind") not in ("COMPUTED", "METADATA")]
    names = tuple(each["name"] for each in stored)
    places = {each: place for place, each in enumerate(names)}

    def column(each: str) -> Symbol:
        """A column as rows tell it, metadata by what it is called in the connector."""
        if each in metadata:
            return symbols.of("metadata", name, metadata[each])
        if identity is ColumnIdentity.NAME or each not in places:
            return symbols.of("column", name, each)
        type_ = json.dumps(stored[places[each]].get("dataType"), sort_keys=True)
        # The fields of a ROW within it are told by their places too.
        fields = (type_,) if "ROW" in type_ else ()
        named = (each,) if identity is ColumnIdentity.BOTH else ()
        return symbols.of("column", name, *named, places[each], *fields)

    shown = ColumnMeanings(tuple(map(column, names)), names, (), symbols.of("table", name))
    for ability in node.config["scanTableSource"].get("abilities") or ():
        match ability["type"]:
            case "ProjectPushDown":
                paths = [tuple(path) for path in ability["projectedFields"]]
                picked = [_picked(shown, path, stored, symbols) for path in paths]
                names = tuple(shown.names[path[0]] if path[0] < len(shown.names) else "" for path in paths)
                shown = replace(shown, symbols=tuple(picked), names=names)
            case "ReadingMetadata" | "WatermarkPushDown" | "SourceWatermark":
                pass  # what a watermark is computed from takes no part in state (measured)
            case kind:
                what = resolved({k: v for k, v in ability.items() if k not in ("type", "producedType")}, shown, symbols)
                shown = replace(shown, rows=symbols.of("read", kind, shown.rows, what))
    behind = node.names[len(shown.symbols) :]
    if len(shown.symbols) + len(behind) != len(node.names) or not set(behind) <= metadata.keys():
        shown = replace(shown, symbols=tuple(map(column, node.names)))
    else:
        shown = replace(shown, symbols=(*shown.symbols, *map(column, behind)))
    return made(node, shown.symbols, shown.rows)


def _picked(
    shown: ColumnMeanings, path: tuple[int, ...], stored: Sequence[Mapping[str, Any]], symbols: Symbols
) -> Symbol:
    """A column, or a field within it; a place there is the same one in rows of one type alone."""
    column = symbols.number(shown.at(path[0]))
    if len(path) == 1:
        return column
    type_ = json.dumps(stored[path[0]].get("dataType"), sort_keys=True) if path[0] < len(stored) else ""
    return symbols.of("path", column, path[1:], type_)


def passed_on(node: Node, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> ColumnMeanings:
    """What a stateless node makes of its inputs; a local aggregation is read with its global one."""
    first = inputs[0]
    match node.kind:
        case "exchange" | "mini-batch-assigner" | "drop-update-before" | "watermark-assigner" | "temporal-sort":
            return replace(first, names=node.names, types=node.types)
        case "union":
            return _union(node, inputs, symbols)
        case "calc":
            condition = node.config.get("condition")
            rows = symbols.filtered(first.rows, conjuncts(condition, first, symbols)) if condition else first.rows
            columns = made(node, [expression(rex, first, symbols) for rex in node.config["projection"]], rows)
            return replace(columns, at_window_end=first.at_window_end)
        case "expand":
            versions = [[expression(rex, first, symbols) for rex in project] for project in node.config["projects"]]
            rows = symbols.of("expanded", first.rows, len(versions))
            return made(node, [symbols.of("expanded", *each) for each in zip(*versions, strict=True)], rows)
        case "window-table-function":
            window = symbols.of("window", resolved(own(node), first, symbols))
            fields = (symbols.of("window field", window, i) for i in range(len(node.names) - len(first.names)))
            return made(node, (*first.symbols, *fields), symbols.of("windowed", first.rows, window))
    # A table function: the row's own columns go through by name, the others are made here.
    op = symbols.of(node.kind, resolved(own(node), first, symbols), first.rows)
    known = dict(zip(first.names, first.symbols, strict=True))
    every = [known.get(name, symbols.of("made", op, i)) for i, name in enumerate(node.names)]
    return made(node, every, symbols.of("rows of", op))


def looked_up(node: Node, first: ColumnMeanings, table: str, symbols: Symbols) -> ColumnMeanings:
    """A row with what is found for it in another table, each column by its name there; how it is asked for is aside."""
    found = node.config.get("projectionOnTemporalTable")
    conditions = (node.config.get(each) for each in ("filterOnTemporalTable", "joinCondition"))
    # Places in conditions count the columns that are asked for.
    asked = () if any(conditions) else ("projectionOnTemporalTable",)
    but = ("retryOptions", "asyncOptions", "temporalTable", *asked)
    op = symbols.of(node.kind, table, resolved(own(node, *but), first, symbols), first.rows)
    names, _ = row_type(node.config["temporalTable"]["outputType"])
    places = range(len(names)) if found is None else [each.get("inputIndex") for each in found]
    columns = [symbols.of("made", op, i if place is None else names[place]) for i, place in enumerate(places)]
    known = [*first.symbols, *columns]
    if len(known) != len(node.names):
        known = [symbols.of("made", op, frozen(found), i) for i in range(len(node.names))]
    return made(node, known, symbols.of("rows of", op))


def lookup_identifier(node: Node) -> str:
    """The table that a lookup asks, as the plan names it; of an older kind of source all that is said of it."""
    table = node.config["temporalTable"]
    return str(table.get("lookupTableSource", {}).get("table", {}).get("identifier") or frozen(table))


def _union(node: Node, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> ColumnMeanings:
    """The rows of all inputs, in whichever order; a column is one of each input."""
    parts = sorted((each.rows, each.symbols) for each in inputs)
    of_rows = [rows for rows, _ in parts]
    # Of inputs over equal rows only their columns say which column of the one goes with which of the other.
    rows = symbols.of("union", tuple(of_rows if len({*of_rows}) == len(parts) else parts))
    columns = zip(*(columns for _, columns in parts), strict=True)
    return made(node, [symbols.of("of union", rows, column) for column in columns], rows)
