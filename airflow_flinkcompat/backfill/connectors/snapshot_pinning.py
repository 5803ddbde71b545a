"""Snapshot of a source that others write to: fixed at the first look, for all sinks and chunks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
_PINS: WeakKeyDictionary[SparkSession, dict[Hashable, Any]] = WeakKeyDictionary()


@contextmanager
def pinned_snapshots(session: SparkSession) -> Iterator[None]:
    """Context of one run, in which :func:`pin` keeps the values that it found in a session."""
    _PINS[session] = {}
    try:
        yield
    finally:
        del _PINS[session]


def pin(session: SparkSession, key: Hashable, ask: Callable[[], T]) -> T:
    """The value found first in this run; outside of a run it is requested each time."""
    found = _PINS.get(session)
    if found is None:
        return ask()
    if key not in found:
        found[key] = ask()
    value: T = found[key]
    return value
