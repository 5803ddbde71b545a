"""What joins keep: the rows of both inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_flinkcompat.savepoint.kinds import KeyedStateKind
from airflow_flinkcompat.state.compiled.nodes import Node
from airflow_flinkcompat.state.compiled.symbols import ColumnMeanings, Symbols
from airflow_flinkcompat.state.layout import LayoutUnknown, NamedState, StateLayout, StateNamespace, Stored
from airflow_flinkcompat.state.layouts.columns import columns, row

VALUE, MAP = KeyedStateKind.VALUE, KeyedStateKind.MAP
_LONG = Stored("Long")
_COUNTS_LEFT = ("LEFT", "FULL", "SEMI", "ANTI")
_COUNTS_RIGHT = ("RIGHT", "FULL")


def join_layout(node: Node, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout | LayoutUnknown:
    """The state of a regular join: rows of each side by its unique key, or how often each row came.

    A side whose rows also come out without a match counts its matches beside each row.
    """
    spec = node.config["joinSpec"]
    left, right = inputs
    sides = (
        _records(
            "left-records", left, spec["leftKeys"], node.config.get("leftUpsertKeys"), spec["joinType"] in _COUNTS_LEFT
        ),
        _records(
            "right-records",
            right,
            spec["rightKeys"],
            node.config.get("rightUpsertKeys"),
            spec["joinType"] in _COUNTS_RIGHT,
        ),
    )
    return StateLayout(columns(left, spec["leftKeys"]), sides)


def _records(
    name: str, side: ColumnMeanings, keys: Sequence[int], unique: Sequence[Sequence[int]] | None, counts: bool
) -> NamedState:
    stored = _of_side(side, name)
    if not unique:
        counted = Stored("Tuple<Int, Int>" if counts else "Int")
        return NamedState(name, MAP, counted, stored, retracting=not side.appends)
    value = replace(stored, form="Tuple<row, Int>" if counts else "row")
    if any(set(each) <= set(keys) for each in unique):
        return NamedState(name, VALUE, value, retracting=not side.appends)
    _, smallest = min((len(each), each) for each in unique)
    return NamedState(name, MAP, value, Stored("row", columns(side, smallest)), retracting=not side.appends)


def _of_side(read: ColumnMeanings, name: str, form: str = "row") -> Stored:
    """The rows of one side, with words that tell the sides apart."""
    rows, side = row(read, form), name.partition("-")[0].lower()
    return replace(rows, fields=tuple(replace(field, words=f"{side}.{field.words}") for field in rows.fields))


def interval_join_layout(node: Node, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout | LayoutUnknown:
    """The state of an interval join by event time: rows of both sides by their time, each with whether it matched."""
    spec = node.config["intervalJoinSpec"]
    if not spec["windowBounds"].get("isEventTime"):
        return LayoutUnknown("what an interval join by processing time keeps was not measured")
    states = tuple(
        state
        for name, side in zip(("Left", "Right"), inputs, strict=True)
        for state in (
            NamedState(f"IntervalJoin{name}Cache", MAP, _of_side(side, name, "List<Tuple<row, Boolean>>"), _LONG),
            NamedState(f"IntervalJoin{name}TimerState", VALUE, _LONG),
        )
    )
    return StateLayout(columns(inputs[0], spec["joinSpec"]["leftKeys"]), states, "user-timers")


def temporal_join_layout(node: Node, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout | LayoutUnknown:
    """The state of a temporal join by event time: rows that wait for a watermark, and versions."""
    left, right = inputs
    if node.config.get("leftTimeAttributeIndex", -1) < 0 or node.config.get("rightTimeAttributeIndex", -1) < 0:
        return LayoutUnknown("what a temporal join by processing time keeps was not measured")
    states = (
        NamedState("left", MAP, _of_side(left, "left"), _LONG, retracting=not left.appends),
        # A version takes the place of another by its time, and is never compared with one.
        NamedState("right", MAP, _of_side(right, "right"), _LONG),
        NamedState("next-index", VALUE, _LONG),
        NamedState("timer", VALUE, _LONG),
    )
    return StateLayout(columns(left, node.config["joinSpec"]["leftKeys"]), states, "timers")


def window_join_layout(node: Node, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout:
    """The state of a window join: the rows of both sides, window by window."""
    states = tuple(
        NamedState(name, KeyedStateKind.LIST, _of_side(side, name, "List<row>"), namespace=StateNamespace.WINDOW_END)
        for name, side in zip(("left-records", "right-records"), inputs, strict=True)
    )
    return StateLayout(columns(inputs[0], node.config["joinSpec"]["leftKeys"]), states, "window-timers")
