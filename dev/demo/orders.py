"""The orders of the demo: made by a formula, written as csv, and added up by hand to know what Flink must say.

Event time runs from START on, in slices of 20 seconds; a file holds orders of one slice, not in order of time. Nothing
here is random, so every total is known beforehand.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

START = datetime(2026, 3, 2, 12, 0)
SLICE = timedelta(seconds=20)
# As in the scripts' WATERMARK.
DELAY = timedelta(seconds=30)
BROKEN_PRICE = "n/a"
_ITEMS = ("chair", "desk", "lamp")
_SECONDS = (3, 11, 0, 17, 8)

Row = tuple[str, ...]


@dataclass(frozen=True)
class Order:
    """One order. ``price`` None: what the file holds is no number."""

    item: str
    price: int | None
    at: datetime

    @property
    def line(self) -> str:
        price = BROKEN_PRICE if self.price is None else self.price
        return f"{self.item},{price},{self.at:%Y-%m-%d %H:%M:%S}\n"


def orders_of(number: int, slice_start: datetime, *, broken: bool = False) -> tuple[Order, ...]:
    """The orders of file ``number``, all within one slice; with ``broken`` the first one's price cannot be read."""
    orders = [
        Order(_ITEMS[(number + i) % len(_ITEMS)], 10 + (number * 7 + i * 13) % 90, slice_start + timedelta(seconds=s))
        for i, s in enumerate(_SECONDS)
    ]
    if broken:
        orders[0] = Order(orders[0].item, None, orders[0].at)
    return tuple(orders)


def totals(
    orders: Iterable[Order], minutes: int, *, average: bool, before: datetime, highest: bool = False
) -> list[Row]:
    """The rows of all windows that end at or before ``before``, as the sink holds them, sorted."""
    size = timedelta(minutes=minutes)
    groups: dict[tuple[datetime, str], list[int | None]] = {}
    for order in orders:
        start = order.at - (order.at - START) % size
        if start + size <= before:
            groups.setdefault((start, order.item), []).append(order.price)
    rows = []
    for (start, item), prices in groups.items():
        known = [price for price in prices if price is not None]
        total, count = sum(known), len(prices)
        # SUM passes NULL over, COUNT(*) counts it; a sum of nothing is NULL, which csv writes as nothing.
        values = [str(total), str(count), str(total // count)] if known else ["", str(count), ""]
        values = values if average else values[:2]
        values += [str(max(known)) if known else ""] if highest else []
        rows.append((text(start), text(start + size), item, *values))
    return sorted(rows)


def text(moment: datetime) -> str:
    """A time as Flink writes it into csv."""
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def read_rows(files: Iterable[Path]) -> list[Row]:
    """The rows of csv files, sorted; a row that is there twice comes twice."""
    rows: list[Row] = []
    for path in files:
        with path.open(encoding="utf-8", newline="") as stream:
            rows += [tuple(row) for row in csv.reader(stream)]
    return sorted(rows)


def ended(rows: Sequence[Row], before: datetime, after: datetime = datetime.min) -> list[Row]:
    """The rows of windows that end in (after, before]."""
    return [row for row in rows if after < datetime.fromisoformat(row[1]) <= before]


def differences(found: Sequence[Row], wanted: Sequence[Row], most: int = 6) -> str:
    """What is missing and what is too much, in a few lines; empty when both are the same rows."""
    rest = list(found)
    missing = []
    for row in wanted:
        if row in rest:
            rest.remove(row)
        else:
            missing.append(row)
    lines = [f"missing: {','.join(row)}" for row in missing[:most]] + [
        f"extra:   {','.join(row)}" for row in rest[:most]
    ]
    more = max(0, len(missing) - most) + max(0, len(rest) - most)
    return "\n".join([*lines, *([f"and {more} more"] if more else [])])
