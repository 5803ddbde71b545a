"""Pieces of the rules' examples, so that each example shows only what it is about."""

from __future__ import annotations

from airflow_flinkcompat.compat.rule import Example

MINUTE = "TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '1' MINUTE))"


def windowed(select: str, keys: str = "customer, window_start, window_end", source: str = MINUTE) -> str:
    """A windowed aggregation over the example table."""
    return f"SELECT {select}\nFROM {source}\nGROUP BY {keys};"


def selecting(old: str, new: str) -> Example:
    """An example that changes only the SELECT list."""
    return Example(windowed(old), windowed(new))


def grouping(select: str, old: str, new: str) -> Example:
    """An example that changes only the GROUP BY."""
    return Example(windowed(select, old), windowed(select, new))


def reading(select: str, old: str, new: str) -> Example:
    """An example that changes only what is read."""
    return Example(windowed(select, source=old), windowed(select, source=new))


def ranked(
    select: str = "customer, total, window_start",
    inner: str = "customer, SUM(amount) AS total, MAX(item) AS item",
    keys: str = "customer, window_start, window_end",
    partition: str = "window_start, window_end",
    order: str = "total DESC",
    condition: str = "place <= 3",
) -> str:
    """A window Top-N over a windowed aggregation of the example table."""
    rows = windowed(f"{inner}, window_start, window_end", keys).rstrip(";")
    number = f"ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY {order}) AS place"
    return f"SELECT {select}\nFROM (\nSELECT *, {number}\nFROM (\n{rows}\n))\nWHERE {condition};"
