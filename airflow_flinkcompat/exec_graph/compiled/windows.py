"""The windows of aggregations in compiled plans."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from decimal import Decimal

from airflow_flinkcompat.exec_graph.compiled.nodes import seconds
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.plan.nodes import WindowKind

_KINDS: Mapping[object, tuple[WindowKind, str, str]] = {
    "TumblingWindow": (WindowKind.TUMBLE, "size", "size"),
    "HoppingWindow": (WindowKind.HOP, "size", "slide"),
    "CumulativeWindow": (WindowKind.CUMULATE, "maxSize", "step"),
}
"""Of each kind what its size and the length of its slices are called."""
_BY_EVENT_TIME = {
    "strategy": "TimeAttribute",
    "isRowtime": True,
    "timeAttributeType": (("kind", "ROWTIME"), ("precision", 3), ("type", "TIMESTAMP_WITHOUT_TIME_ZONE")),
}
"""Windows that the aggregation itself assigns, by a time whose moments are those of its timers."""


def sliced_window(windowing: Hashable) -> SlicedWindow | None:
    """The windows of an aggregation.

    Args:
        windowing: What a compiled plan says of them, resolved.

    Returns:
        None where they are not kept in slices of event time, or where a time zone shifts them.
    """
    told = dict(windowing) if isinstance(windowing, tuple) else {}
    if any(told.get(key) != wanted for key, wanted in _BY_EVENT_TIME.items()):
        return None
    window = dict(told.get("window", ()))
    if window.get("type") not in _KINDS:
        return None
    kind, size, step = _KINDS[window["type"]]
    offset = Decimal(window.get("offset", 0))
    lengths = [1000 * length for length in (seconds(window[size]), seconds(window[step]), offset)]
    whole = all(length == int(length) for length in lengths)
    return SlicedWindow(kind, *map(int, lengths)) if whole else None


def meaning_without_window(windowing: Hashable) -> Hashable:
    """By which time windows are assigned, and how.

    Args:
        windowing: What a compiled plan says of them, resolved.

    Returns:
        The same without which windows they are.
    """
    return tuple(pair for pair in windowing if pair[0] != "window") if isinstance(windowing, tuple) else windowing
