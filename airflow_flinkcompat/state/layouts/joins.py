"""What joins keep: the rows of both inputs."""

from __future__ import annotations

from collections.abc import Sequence

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
    if not unique:
        return NamedState(name, MAP, Stored("Tuple<Int, Int>" if counts else "Int"), row(side))
    value = row(side, "Tuple<row, Int>" if counts else "row")
    if any(set(each) <= set(keys) for each in unique):
        return NamedState(name, VALUE, value)
    _, smallest = min((len(each), each) for each in unique)
    return NamedState(name, MAP, value, Stored("row", columns(side, smallest)))


def interval_join_layout(node: Node, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout | LayoutUnknown:
    """The state of an interval join by event time: rows of both sides by their time, each with whether it matched."""
    spec = node.config["intervalJoinSpec"]
    if not spec["windowBounds"].get("isEventTime"):
        return LayoutUnknown("what an interval join by processing time keeps was not measured")
    states = tuple(
        state
        for name, side in zip(("Left", "Right"), inputs, strict=True)
        for state in (
            NamedState(f"IntervalJoin{name}Cache", MAP, row(side, "List<Tuple<row, Boolean>>"), _LONG),
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
        NamedState("left", MAP, row(left), _LONG),
        NamedState("right", MAP, row(right), _LONG),
        NamedState("next-index", VALUE, _LONG),
        NamedState("timer", VALUE, _LONG),
    )
    return StateLayout(columns(left, node.config["joinSpec"]["leftKeys"]), states, "timers")


def window_join_layout(node: Node, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout:
    """The state of a window join: the rows of both sides, window by window."""
    states = tuple(
        NamedState(name, KeyedStateKind.LIST, row(side, "List<row>"), namespace=StateNamespace.WINDOW_END)
        for name, side in zip(("left-records", "right-records"), inputs, strict=True)
    )
    return StateLayout(columns(inputs[0], node.config["joinSpec"]["leftKeys"]), states, "window-timers")
