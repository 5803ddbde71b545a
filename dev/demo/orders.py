"""The orders of the demo: made by a formula, written as files that keep arriving, and added up by hand.

Event time begins at START, in slices of 20 seconds; a file holds orders of one slice, not in order of time. Nothing
here is random, so every total is known beforehand.
"""

from __future__ import annotations

import csv
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from dev.demo.narration import LIMIT_SECONDS, DemoError, wait_for

START = datetime(2026, 3, 2, 12, 0)
SLICE = timedelta(seconds=20)
MINUTE = timedelta(minutes=1)
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


@dataclass(frozen=True)
class Arrived:
    """One file that was written: its place then, the slice of event time it belongs to, its orders, and when.

    ``in_step``: nothing more was written until the job had seen it.
    """

    path: Path
    slice_start: datetime
    orders: tuple[Order, ...]
    at: float
    in_step: bool


class Feed:
    """Writes files, ``pause`` seconds apart. Event time goes on to the goal, slice by slice, and stays there.

    Each slice waits until the job has seen the one before it (``watermark``), so a slow machine never makes an order
    late. At the goal more orders of the last slice keep arriving, ``linger`` seconds apart. ``patience`` is how many
    seconds the job may take to see a slice.
    """

    def __init__(
        self,
        folder: Path,
        watermark: Callable[[], datetime | None],
        *,
        pause: float = 0.3,
        linger: float = 1.0,
        patience: float = LIMIT_SECONDS,
    ) -> None:
        self.folder = folder
        self.clock = START
        self.arrived: tuple[Arrived, ...] = ()
        self._watermark = watermark
        self.pause, self._linger, self.patience = pause, linger, patience
        self._goal = START
        self._broken = False
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    def check(self) -> None:
        """Raises DemoError when the thread died."""
        if self._error is not None:
            raise DemoError(f"no more files arrive: {self._error}")

    def go_on(self, goal: datetime, *, broken: bool = False) -> None:
        """Let event time run on to ``goal``; with ``broken`` the next order has a price that is no number."""
        with self._lock:
            self._broken, self._goal = broken, goal
        self._wake.set()

    def there(self) -> bool:
        """True if event time is at the goal, and the job has seen all of it."""
        self.check()
        return self.clock >= self._goal and self._is_seen()

    def orders(self) -> Iterable[Order]:
        """Every order written so far."""
        return (order for file in self.arrived for order in file.orders)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                if self.clock < self._goal:
                    self._write(self.clock, in_step=True)
                    self.clock += SLICE
                    self._wait_until_seen()
                    self._stop.wait(self.pause)
                    continue
                if self.arrived:
                    self._write(self.clock - SLICE, in_step=False)
                self._wake.wait(self._linger)
                self._wake.clear()
        except Exception as error:  # told by check()
            self._error = error

    def _write(self, slice_start: datetime, *, in_step: bool) -> None:
        """A file is complete the moment it is seen: it gets its name when it is."""
        number = len(self.arrived) + 1
        with self._lock:
            broken, self._broken = self._broken, False
        orders = orders_of(number, slice_start, broken=broken)
        path = self.folder / f"orders-{number:05d}.csv"
        hidden = path.with_name(f".{path.name}")
        hidden.write_text("".join(order.line for order in orders), encoding="utf-8")
        hidden.rename(path)
        self.arrived = (*self.arrived, Arrived(path, slice_start, orders, path.stat().st_mtime, in_step))

    def _wait_until_seen(self) -> None:
        wait_for(
            f"the job to see the orders up to {self.clock:%H:%M:%S}",
            lambda: self._stop.is_set() or self._is_seen(),
            moved=self._watermark,
            quiet=self.patience,
            limit=self.patience,
            seen=lambda: f"Its watermark is {self._watermark()}",
        )

    def _is_seen(self) -> bool:
        """True if the job's watermark is where the latest order has brought it."""
        if not self.arrived:
            return True
        seen = self._watermark()
        return seen is not None and seen >= max(order.at for order in self.arrived[-1].orders) - DELAY


@dataclass(frozen=True)
class Before:
    """How things stood when a version was proposed: files, the ledger's deployment, event time."""

    arrived: tuple[Arrived, ...]
    entry: int
    at: datetime

    @property
    def orders(self) -> int:
        """How many orders had arrived."""
        return sum(len(file.orders) for file in self.arrived)

    def counts(self, start: datetime, size: timedelta = MINUTE) -> dict[str, int]:
        """Orders of the window by item that the running job has surely read."""
        return counts_of([file for file in self.arrived if file.in_step], start, size)


def counts_of(files: Iterable[Arrived], start: datetime, size: timedelta = MINUTE) -> dict[str, int]:
    """Orders of the window that begins at ``start``, by item."""
    counts: dict[str, int] = {}
    for order in (order for file in files for order in file.orders if start <= order.at < start + size):
        counts[order.item] = counts.get(order.item, 0) + 1
    return counts


def windows_of(rows: Iterable[Row]) -> int:
    """How many windows the rows belong to."""
    return len({row[:2] for row in rows})
