"""What a step of the story is measured by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from dev.demo.feed import Arrived
from dev.demo.orders import Row

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Step:
    """What one version came to. ``facts`` are the measured values behind ``proofs``."""

    version: str
    change: str
    verdict: str
    branch: str
    proofs: tuple[str, ...]
    seconds: float
    facts: Mapping[str, Any] = field(default_factory=dict)


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


def excerpt(body: str, lines: int = 12) -> str:
    """The first lines of a text that are not empty."""
    shown = [line for line in body.splitlines() if line.strip()]
    return "\n".join([*shown[:lines], *(["…"] if len(shown) > lines else [])])
