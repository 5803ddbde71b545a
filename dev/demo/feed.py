"""Files that keep arriving: a thread that writes one after the other into the folder the job watches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from dev.demo.orders import DELAY, SLICE, START, Order, orders_of
from dev.demo.waiting import LIMIT_SECONDS, DemoError, wait_for


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
        """Whether event time is at the goal, and the job has seen all of it."""
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
        """Whether the job's watermark is where the latest order has brought it."""
        if not self.arrived:
            return True
        seen = self._watermark()
        return seen is not None and seen >= max(order.at for order in self.arrived[-1].orders) - DELAY
