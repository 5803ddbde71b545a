"""The stateful operators of a compiled plan: how the state of each is laid out and what it means.

What a restore compares was measured on 2.3.0 and 1.20.3. A field that no row of ``facets.toml`` speaks of counts as
meaning.
"""

from __future__ import annotations

import re
from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from airflow_flinkcompat.connectors.facts import ColumnIdentity
from airflow_flinkcompat.exec_graph.compiled.changes import adds_only
from airflow_flinkcompat.exec_graph.compiled.facets import Effect, rows_about
from airflow_flinkcompat.exec_graph.compiled.nodes import (
    PROCTIME,
    ROWTIME,
    CompiledPlan,
    Node,
    call_function,
    time_attribute,
)
from airflow_flinkcompat.exec_graph.compiled.streams import (
    ASIDE,
    LOCAL,
    is_stateless,
    looked_up,
    lookup_identifier,
    made,
    own,
    passed_on,
    scanned,
)
from airflow_flinkcompat.exec_graph.compiled.symbols import (
    ColumnMeanings,
    Symbol,
    Symbols,
    frozen,
    joined,
    plain,
    resolved,
)

AGGREGATIONS = frozenset(("group-aggregate", "global-group-aggregate", "group-window-aggregate", "window-aggregate",
                          "global-window-aggregate"))  # fmt: skip


SETTINGS_TELL_TTL = frozenset(("over-aggregate", "temporal-join"))
"""Operators whose nodes do not show the time to live of the job's state."""


class Aspect(StrEnum):
    """What of an operator differs. ``OTHER``: something of which it is not known whether it matters to state."""

    LAYOUT = "layout"
    MEANING = "meaning"
    OTHER = "other"


Facets = dict[tuple[Aspect, str], Hashable]


@dataclass(frozen=True, eq=False)
class CompiledOperator:
    """A stateful operator, or a sink that keeps nothing.

    Its node, the facets of its state by aspect and name, and the columns of what it reads; of a source its rows.
    """

    node: Node
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
    """The plan's stateful operators, and all its sinks, in its order.

    ``tables``: the name under which a table's identifier is known to both sides. ``stateless_sinks``: identifiers of
    the sinks that keep nothing. ``identities``: of a source what makes a column of it the same one. ``waiting``:
    identifiers of tables of which rows may wait for an answer, whatever the plan says.
    """
    columns: list[ColumnMeanings] = []
    found: list[CompiledOperator] = []
    for node in plan.nodes:
        inputs = [columns[place] for place in node.inputs]
        if node.kind == "table-source-scan":
            columns.append(scanned(node, symbols, tables, identities))
            found.append(CompiledOperator(node, _source(node, tables), rows=columns[-1].rows))
        elif not inputs:  # rows written in the query, or a source of another kind
            written = frozen({"kind": node.kind, **own(node)})
            rows = symbols.of("source", written)
            columns.append(made(node, [symbols.of("of source", rows, i) for i in range(len(node.names))], rows))
            found.append(
                CompiledOperator(node, {(Aspect.MEANING, "rows"): written, (Aspect.LAYOUT, "types"): node.types})
            )
        elif node.kind == "sink":
            columns.append(inputs[0])
            keeps = keeps_rows(node) or sink_identifier(node) not in stateless_sinks
            found.append(CompiledOperator(node, _sink(node, inputs[0], symbols, keeps), keeps, tuple(inputs)))
        elif node.kind in LOCAL:
            columns.append(_local(node, inputs[0], symbols))
        elif node.kind == "lookup-join":
            table = lookup_identifier(node)
            columns.append(looked_up(node, inputs[0], tables.get(table, table), symbols))
            if not is_stateless(node) or table in waiting:
                asked = replace(node, config={**node.config, "temporalTable": tables.get(table, table)})
                found.append(CompiledOperator(node, _keeping_rows(asked, inputs, symbols), inputs=tuple(inputs)))
        elif is_stateless(node):
            columns.append(passed_on(node, inputs, symbols))
        else:
            facets = (
                _aggregation(node, inputs[0], symbols)
                if node.kind in AGGREGATIONS
                else _keeping_rows(node, inputs, symbols)
            )
            columns.append(_handed_up(node, inputs, facets, symbols))
            found.append(CompiledOperator(node, facets, inputs=tuple(inputs)))
        columns[-1] = replace(columns[-1], appends=adds_only(node, [each.appends for each in inputs]))
    return found


def _meaning(kind: str, facets: Facets, symbols: Symbols, but: Container[str] = ()) -> Symbol:
    """The meaning of an operator's output rows, with everything below it.

    What an operator stores may stay right under another condition, join type or rank. Its output rows do not.
    """
    told = (
        (name, value)
        for (aspect, name), value in facets.items()
        if aspect is not Aspect.LAYOUT and name not in _SAME_ROWS and name not in but
    )
    return symbols.of(kind, *told)


_SAME_ROWS = ASIDE | {"argument types"}
"""Facets that leave the output rows equal: settings, times to live, and the types in which a call reads its values."""


_COLUMNS = frozenset(("aggregates", "stored columns"))
"""What the columns of a row say each by itself: which rows there are is the same whatever stands beside in them."""


def _aside(node: Node) -> Facets:
    return {(Aspect.OTHER, key): frozen(node.config[key]) for key in sorted(ASIDE) if key in node.config}


def _types(below: ColumnMeanings, places: Sequence[int]) -> tuple[str, ...]:
    return tuple(below.types[place] if place < len(below.types) else "constant" for place in places)


def _handed_up(node: Node, inputs: Sequence[ColumnMeanings], facets: Facets, symbols: Symbols) -> ColumnMeanings:
    if node.kind in AGGREGATIONS:
        op = _meaning("aggregate", facets, symbols, _COLUMNS)
        keys, calls = facets[Aspect.MEANING, "keys"], facets[Aspect.MEANING, "aggregates"]
        fields = [each["property"]["kind"] for each in node.config.get("namedWindowProperties") or ()]
        parts = [*keys, *calls, *fields]  # type: ignore[misc]
        parts += [(i, calls) for i in range(len(node.names) - len(parts))]
    elif node.kind == "match":  # it hands up its measures, in order
        op = _meaning(node.kind, facets, symbols)
        parts = [(i, facets.get((Aspect.OTHER, "measures"))) for i in range(len(node.names))]
    else:
        op = _meaning(node.kind, facets, symbols, _COLUMNS)
        calls = facets.get((Aspect.MEANING, "aggregates"), ())
        parts = [*joined(inputs).symbols, *calls]  # type: ignore[misc]
        parts = parts[: len(node.names)] + [("beside", i) for i in range(len(node.names) - len(parts))]
    columns = made(node, [symbols.of("from", op, part) for part in parts], symbols.of("rows of", op))
    return replace(columns, at_window_end="window" in node.kind and node.kind in AGGREGATIONS)


# -- sources and sinks


def _source(node: Node, tables: Mapping[str, str]) -> Facets:
    """Which table is read at this place: Flink tells sources apart by place alone (measured)."""
    identifier = node.config["scanTableSource"]["table"]["identifier"]
    return {(Aspect.MEANING, "table"): tables.get(identifier, identifier), (Aspect.OTHER, "table"): identifier}


def sink_identifier(node: Node) -> str:
    """The table a sink node writes to, as the plan names it."""
    return str(node.config["dynamicTableSink"]["table"]["identifier"])


def keeps_rows(sink: Node) -> bool:
    """Whether a materializer stands in front of the sink."""
    return bool(sink.config.get("state")) or bool(sink.config.get("requireUpsertMaterialize"))


def enforcers(sink: Node, input_types: Sequence[str]) -> tuple[Hashable, ...]:
    """What decides which operators stand in front of the sink: NOT NULL columns, its key, a time attribute."""
    schema = sink_schema(sink)
    return _has_not_null(schema), frozen(schema.get("primaryKey")), has_rowtime(input_types)


def enforces(sink: Node) -> bool:
    """Whether an operator in front of the sink holds rows against NOT NULL columns or declared lengths."""
    schema = sink_schema(sink)
    lengths = sink.config.get("configuration", {}).get("table.exec.sink.type-length-enforcer", "IGNORE") != "IGNORE"
    return _has_not_null(schema) or (lengths and any(_LIMITED.search(str(kind)) for kind in _physical(schema)))


def has_rowtime(types: Sequence[str]) -> bool:
    """Whether rows of these types carry an event time, which is set on what the sink is handed."""
    return any(time_attribute(kind) == ROWTIME for kind in types)


_LIMITED = re.compile(r"\b(?:VAR)?(?:CHAR|BINARY)\((?!2147483647\))")


def sink_schema(sink: Node) -> Mapping[str, Any]:
    found: Mapping[str, Any] = sink.config["dynamicTableSink"]["table"].get("resolvedTable", {}).get("schema", {})
    return found


def sink_columns(sink: Node) -> tuple[str, ...]:
    """The names of the columns that a sink takes, as its table declares them where it declares so many."""
    declared = [each for each in sink_schema(sink).get("columns", ()) if each.get("kind") != "COMPUTED"]
    names = tuple(each["name"] for each in declared if not each.get("isVirtual"))
    return names if len(names) == len(sink.names) else sink.names


def _physical(schema: Mapping[str, Any]) -> list[Any]:
    return [
        column.get("dataType") for column in schema.get("columns", ()) if column.get("kind", "PHYSICAL") == "PHYSICAL"
    ]


def _has_not_null(schema: Mapping[str, Any]) -> bool:
    return any(not _nullable(kind) for kind in _physical(schema))


def _nullable(kind: Any) -> bool:
    return bool(kind.get("nullable", True)) if isinstance(kind, Mapping) else not str(kind).endswith(" NOT NULL")


def _sink(node: Node, rows: ColumnMeanings, symbols: Symbols, keeps: bool) -> Facets:
    """A sink that keeps nothing may take what it likes, as long as nothing else comes to stand in front of it."""
    facets: Facets = {(Aspect.OTHER, "enforcers"): enforcers(node, rows.types), **_aside(node)}
    if keeps:
        facets[Aspect.OTHER, "declaration"] = frozen(sink_schema(node))
        facets |= {
            (Aspect.OTHER, key): resolved({key: part}, rows, symbols)
            for key, part in own(node, "dynamicTableSink").items()
        }
    if keeps_rows(node):
        facets |= {(Aspect.LAYOUT, "stored types"): rows.types, (Aspect.MEANING, "stored columns"): rows.symbols}
        facets[Aspect.MEANING, "rows below"] = rows.rows
    return facets


# -- aggregations


def _local(node: Node, below: ColumnMeanings, symbols: Symbols) -> ColumnMeanings:
    """Keys as they are, partial results; the global aggregation is configured in terms of what this one reads."""
    facets = _aggregation(node, below, symbols)
    keys = [symbols.number(below.at(place)) for place in node.config["grouping"]]
    op = _meaning("aggregate", facets, symbols)
    partial = [symbols.of("partial", op, i) for i in range(len(node.names) - len(keys))]
    columns = made(node, [*keys, *partial], below.rows)
    return replace(columns, before=below, window=facets[Aspect.MEANING, "window"])


def _aggregation(node: Node, below: ColumnMeanings, symbols: Symbols) -> Facets:
    """Keys, calls and window resolved, through a local aggregation, to what it read."""
    read = below.before or below
    calls: list[dict[str, Any]] = node.config["aggCalls"]
    window = resolved(node.config.get("windowing") or node.config.get("window") or {}, read, symbols)
    needs = bool(node.config.get("needRetraction")), *map(bool, node.config.get("aggCallNeedRetractions") or ())
    rest = own(node, "grouping", "aggCalls", "windowing", "window", "needRetraction", "aggCallNeedRetractions")
    return {
        (Aspect.LAYOUT, "key types"): _types(below, node.config["grouping"]),
        (Aspect.LAYOUT, "accumulators"): tuple(accumulator(call, read) for call in calls),
        (Aspect.LAYOUT, "window state"): _window_state(node.config),
        (Aspect.LAYOUT, "retraction"): needs,
        (Aspect.MEANING, "window"): window if below.window is None else below.window,
        (Aspect.MEANING, "keys"): tuple(below.at(place) for place in node.config["grouping"]),
        (Aspect.MEANING, "aggregates"): tuple(_call(call, read, symbols) for call in calls),
        (Aspect.MEANING, "rows below"): below.rows,
        (Aspect.OTHER, "argument types"): tuple(_types(read, call["argList"]) for call in calls),
        (Aspect.OTHER, "configuration beside"): resolved(rest, read, symbols),
        **_aside(node),
    }


def _window_state(config: Mapping[str, Any]) -> str:
    """Hopping windows and sessions keep their slices and merged windows in states of their own (measured)."""
    kind = config.get("windowing", {}).get("window", {}).get("type") or config.get("window", {}).get("kind")
    own_state = {"HoppingWindow": "hopping", "SessionWindow": "session", "SESSION": "session"}
    return own_state.get(kind, "plain")


def _call(call: Mapping[str, Any], read: ColumnMeanings, symbols: Symbols) -> Hashable:
    told = {key: part for key, part in call.items() if key != "type"}
    if call.get("filterArg", -1) >= 0 and symbols.is_true(read.at(call["filterArg"])):
        told["filterArg"] = -1
    return resolved(told, read, symbols)


def accumulator(call: Mapping[str, Any], read: ColumnMeanings) -> Hashable:
    """What one call keeps. Lengths of texts and NOT NULL of what it reads do not show in it (measured)."""
    function = call_function(call)
    arguments = tuple(_stored(kind) for kind in _types(read, call["argList"]))
    kept: tuple[str, ...]
    if function == "COUNT":
        kept = ("BIGINT",)
    elif function in ("SUM", "SUM0", "MAX", "MIN"):
        kept = (_stored(call.get("type")),)
    else:
        kept = (function, _stored(call.get("type")), *arguments)
    distinct = (arguments, call.get("filterArg", -1) >= 0) if call.get("distinct") else None
    return kept, distinct


def _stored(kind: Any) -> str:
    text = plain(kind)
    return text.partition("(")[0] if text.startswith(("VARCHAR", "CHAR")) else text


# -- operators that store the rows they read


_AT_WINDOW_END = "rows at the end of a window"
"""A condition of the table of facets: the node reads rows that all come out when their window ends."""
_NESTED = ("intervalJoinSpec", "joinSpec", "matchSpec", "overSpec")
_SAME_STATE = {"SEMI": "existence", "ANTI": "existence"}


def _keeping_rows(node: Node, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> Facets:
    """What an operator is configured to do, and every column it may store, in order."""
    config = _flat(own(node))
    every = joined(inputs)
    constants = tuple(symbols.of("constant", frozen(each)) for each in config.pop("constants", None) or ())
    every = replace(every, symbols=every.symbols + constants)
    join = config.get("joinType") if node.kind == "join" else None
    calls = [call for group in config.get("groups") or () for call in group.pop("aggCalls")]
    facets: Facets = {}
    told = {**config, _AT_WINDOW_END: inputs[0].at_window_end}
    for key, part in sorted(config.items()):
        aspect = _aspect(node.kind, key, told)
        if aspect is None or (key == "joinType" and join):
            continue
        columns = inputs[0] if key.startswith("left") else inputs[-1] if key.startswith("right") else every
        if (value := resolved({key: part}, columns, symbols)) != ():  # a default, which some versions leave out
            facets[aspect, key] = value
    if node.kind == "deduplicate" and config.get("isRowtime"):
        # The node does not say by which time: rows of one event time come, those of several are not planned.
        times = zip(every.symbols, every.types, strict=False)
        facets[Aspect.MEANING, "event time"] = tuple(each for each, kind in times if time_attribute(kind) == ROWTIME)
    if "frame" in config:
        facets[Aspect.LAYOUT, "bounded frame"] = tuple(map(is_bounded, config["frame"]))
    if join:
        facets[Aspect.LAYOUT, "join type"] = _SAME_STATE.get(join, join)
        facets[Aspect.OTHER, "join type"] = join
    facets[_aspect(node.kind, "rows below", told) or Aspect.MEANING, "rows below"] = tuple(each.rows for each in inputs)
    facets[Aspect.LAYOUT, "key types"] = _types(every, _keys(config))
    if node.kind != "temporal-sort":  # it sorts when a watermark comes (measured)
        facets[Aspect.LAYOUT, "sort key types"] = _types(every, _sort_keys(config))
    facets[Aspect.LAYOUT, "accumulators"] = tuple(accumulator(call, every) for call in calls)
    if calls:
        facets[Aspect.MEANING, "aggregates"] = tuple(_call(call, every, symbols) for call in calls)
    if not _keeps_no_rows(node.kind, config, every):
        ends = {config["orderBy"]["fields"][0]["index"]} if node.kind == "temporal-sort" else set()
        kept = [i for i in range(len(every.types)) if i not in ends]
        facets[Aspect.LAYOUT, "stored types"] = (*(len(each.types) for each in inputs), *(every.types[i] for i in kept))
        aspect = _aspect(node.kind, "stored columns", told) or Aspect.MEANING
        facets[aspect, "stored columns"] = tuple(every.symbols[i] for i in kept)
    return {**facets, **_aside(node)}


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """Nested specifications as one mapping; the times of an interval join apart from its bounds."""
    for key in _NESTED:
        if isinstance(config.get(key), Mapping):
            config |= config.pop(key)
    if "windowBounds" in config:
        bounds = dict(config["windowBounds"])
        times = {key: bounds.pop(key, None) for key in ("isEventTime", "leftTimeIndex", "rightTimeIndex")}
        config |= {**times, "windowBounds": bounds}
    if "groups" in config:  # of an OVER: where the frame begins is apart from what is computed in it
        ends = ("isRows", "lowerBound", "upperBound")
        frames = [{key: group.get(key) for key in ends} for group in config["groups"]]
        config["groups"] = [{key: part for key, part in group.items() if key not in ends} for group in config["groups"]]
        config |= {
            "frame": frames,
            "counted frame": [frame for frame in frames if frame["isRows"] and is_bounded(frame)],
        }
    if isinstance(config.get("rankRange"), Mapping):
        config["rankRange"] = dict(config["rankRange"])
        config["first rank"] = config["rankRange"].pop("start", None)
    return config


def is_bounded(frame: Mapping[str, Any]) -> bool:
    return bool(frame["lowerBound"]["kind"] != "UNBOUNDED_PRECEDING")


def _aspect(kind: str, facet: str, config: Mapping[str, Any]) -> Aspect | None:
    """What a facet of a node says by the table of facets; None where it takes no part in state."""
    effects = {row.effect for row in rows_about(kind, facet) if row.holds_of(config)}
    if Effect.NONE in effects:
        return None
    return Aspect.OTHER if effects - {Effect.WRONG} else Aspect.MEANING


def _keys(config: Mapping[str, Any]) -> list[int]:
    for key in ("uniqueKeys", "partitionKeys", "partition", "partitionSpec"):
        found = config.get(key)
        found = found.get("fields") if isinstance(found, Mapping) else found
        if isinstance(found, list) and all(isinstance(each, int) for each in found):
            return found
    return []


def _sort_keys(config: Mapping[str, Any]) -> list[int]:
    specs = [config[key] for key in ("orderBy", "sortSpec") if isinstance(config.get(key), Mapping)]
    return [field["index"] for spec in specs for field in spec["fields"]]


def _keeps_no_rows(kind: str, config: Mapping[str, Any], below: ColumnMeanings) -> bool:
    """By processing time the first row is a flag, an unbounded OVER keeps accumulators, a sort nothing (measured)."""
    if kind == "temporal-sort":
        return time_attribute(below.types[config["orderBy"]["fields"][0]["index"]]) == PROCTIME
    if kind == "deduplicate":
        return not config.get("isRowtime") and not config.get("keepLastRow")
    if kind != "over-aggregate":
        return False
    orders = [field["index"] for group in config["groups"] for field in group["orderBy"]["fields"]]
    by_arrival = all(time_attribute(below.types[place]) == PROCTIME for place in orders)
    return by_arrival and not any(map(is_bounded, config["frame"]))
