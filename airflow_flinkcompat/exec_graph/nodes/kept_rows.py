"""Facets and rewriting of operators that store their input rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow_flinkcompat.exec_graph.exec_node import PROCTIME, ROWTIME, ExecNode, time_attribute
from airflow_flinkcompat.exec_graph.facets import facet_effect
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import NamedState, StateLayout
from airflow_flinkcompat.exec_graph.model import LAYOUT, MEANING, UNSURE, Facets
from airflow_flinkcompat.exec_graph.nodes.accumulators import accumulator_facet, call_meaning
from airflow_flinkcompat.exec_graph.rewriting import StateRewrite, as_it_is, by_fields, means, new_fields, words
from airflow_flinkcompat.exec_graph.streams import facets_aside, own, types_at
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols, frozen, joined, resolved
from airflow_flinkcompat.savepoint.binary_row import FieldForm, field_form

AT_WINDOW_END = "rows at the end of a window"
"""A condition in ``facets.toml``: all input rows arrive at the end of a window."""
_NESTED = ("intervalJoinSpec", "joinSpec", "matchSpec", "overSpec")
_SAME_STATE = {"SEMI": "existence", "ANTI": "existence"}


def kept_row_facets(node: ExecNode, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> Facets:
    """The facets of an operator that stores rows: its configuration and every column that it may store."""
    config = _flat(own(node))
    every = joined(inputs)
    constants = tuple(symbols.of("constant", frozen(each)) for each in config.pop("constants", None) or ())
    every = replace(every, symbols=every.symbols + constants)
    join = config.get("joinType") if node.kind is ExecKind.JOIN else None
    calls = [call for group in config.get("groups") or () for call in group.pop("aggCalls")]
    facets: Facets = {}
    conditions = {**config, AT_WINDOW_END: inputs[0].at_window_end}
    for key, part in sorted(config.items()):
        effect = facet_effect(node.kind, key, conditions)
        if effect is None or (key == "joinType" and join):
            continue
        columns = inputs[0] if key.startswith("left") else inputs[-1] if key.startswith("right") else every
        if (value := resolved({key: part}, columns, symbols)) != ():  # some Flink versions omit default values
            facets[effect, key] = value
    if node.kind is ExecKind.DEDUPLICATE and config.get("isRowtime"):
        # The node does not name its time column. Flink plans only rows with a single event time.
        times = zip(every.symbols, every.types, strict=False)
        facets[MEANING, "event time"] = tuple(each for each, kind in times if time_attribute(kind) == ROWTIME)
    if "frame" in config:
        facets[LAYOUT, "bounded frame"] = tuple(map(is_bounded, config["frame"]))
    if join:
        facets[LAYOUT, "join type"] = _SAME_STATE.get(join, join)
        facets[UNSURE, "join type"] = join
    facets[facet_effect(node.kind, "rows below", conditions) or MEANING, "rows below"] = tuple(
        each.rows for each in inputs
    )
    facets[LAYOUT, "key types"] = types_at(every, _keys(config))
    if node.kind is not ExecKind.TEMPORAL_SORT:  # it sorts only when a watermark arrives (measured)
        facets[LAYOUT, "sort key types"] = types_at(every, _sort_keys(config))
    facets[LAYOUT, "accumulators"] = tuple(accumulator_facet(call, every) for call in calls)
    if calls:
        facets[MEANING, "aggregates"] = tuple(call_meaning(call, every, symbols) for call in calls)
    if not _keeps_no_rows(node.kind, config, every):
        ends = {config["orderBy"]["fields"][0]["index"]} if node.kind is ExecKind.TEMPORAL_SORT else set()
        kept = [i for i in range(len(every.types)) if i not in ends]
        facets[LAYOUT, "stored types"] = (*(len(each.types) for each in inputs), *(every.types[i] for i in kept))
        effect = facet_effect(node.kind, "stored columns", conditions) or MEANING
        facets[effect, "stored columns"] = tuple(every.symbols[i] for i in kept)
    return {**facets, **facets_aside(node)}


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """Merge nested specifications into one mapping; the times of an interval join stay separate."""
    for key in _NESTED:
        if isinstance(config.get(key), Mapping):
            config |= config.pop(key)
    if "windowBounds" in config:
        bounds = dict(config["windowBounds"])
        times = {key: bounds.pop(key, None) for key in ("isEventTime", "leftTimeIndex", "rightTimeIndex")}
        config |= {**times, "windowBounds": bounds}
    if "groups" in config:  # separate the frame of an OVER from the calls
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
    """True if an operator stores only a flag or accumulators, such as by processing time (measured)."""
    if kind == ExecKind.TEMPORAL_SORT:
        return time_attribute(below.types[config["orderBy"]["fields"][0]["index"]]) == PROCTIME
    if kind == ExecKind.DEDUPLICATE:
        return not config.get("isRowtime") and not config.get("keepLastRow")
    if kind != ExecKind.OVER_AGGREGATE:
        return False
    orders = [field["index"] for group in config["groups"] for field in group["orderBy"]["fields"]]
    by_arrival = all(time_attribute(below.types[place]) == PROCTIME for place in orders)
    return by_arrival and not any(map(is_bounded, config["frame"]))


_IN_TWO_WAYS = frozenset({FieldForm.DECIMAL, FieldForm.TIMESTAMP})
"""Forms of fields whose NULL may be stored with or without space for a value."""


def row_states(before: StateLayout, after: StateLayout) -> tuple[StateRewrite, ...] | str:
    """Rewrite the states of an operator that stores its input rows."""
    states = tuple(
        by_fields(state, before)
        if state.framing or state.counts_rows
        else as_it_is(state, next((old for old in before.states if _stores_the_same(old, state)), None))
        for state in after.states
    )
    if len(states) != len(before.states):
        return "its stored layout differs"
    return next(filter(None, map(_refused, states)), "") or states


def _stores_the_same(old: NamedState, new: NamedState) -> bool:
    return replace(old, time_to_live=new.time_to_live) == new


def _refused(state: StateRewrite) -> str:
    """The reason why rewritten rows would be read wrongly; "" if they would not."""
    old, new, added = state.old, state.new, new_fields([state])
    if old is None:
        return "its stored layout differs"
    if retyped := {field.meaning for field in added} & set(means(old.row)):
        return f"{', '.join(words(field for field in added if field.meaning in retyped))} has a different type"
    if added and (old.retracting or new.retracting):
        return f"retracted rows contain {', '.join(words(added))}, which stored rows lack"
    if needed := words(field for field in added if field.begins is None):
        return f"{', '.join(needed)} cannot be NULL, but stored rows contain no value for it"
    if state.adds_counts and new.retracting:
        twice = words(field for field in new.row if _is_null_in_two_ways(field.type))
        if twice:
            return f"retracted rows are found by their bytes, but a NULL in {twice[0]} may have different bytes"
    return ""


def _is_null_in_two_ways(type: str) -> bool:
    return not type.endswith(" NOT NULL") and field_form(type) in _IN_TWO_WAYS
