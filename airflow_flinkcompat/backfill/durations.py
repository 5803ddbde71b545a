"""Lengths of time as users write them."""

from __future__ import annotations

import re
from datetime import timedelta

from airflow_flinkcompat.backfill.errors import BackfillError

_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_DURATION = re.compile(r"\s*([0-9]+)\s*(ms|s|min|m|h|d)\s*")


def parse_duration(text: str) -> timedelta:
    """Read a length of time.

    Args:
        text: As ``1d``, ``6h``, ``30 min``, ``90s`` or ``500ms``.

    Returns:
        The length, longer than zero.

    Raises:
        BackfillError: The text is anything else, or zero.
    """
    found = _DURATION.fullmatch(text)
    if found is None or not int(found[1]):
        raise BackfillError(f"{text!r} is no length of time; write it as 1d, 6h, 30min or 90s")
    try:
        return int(found[1]) * _UNITS[found[2]]
    except OverflowError:
        raise BackfillError(f"{text!r} is longer than any history") from None


def shown_duration(length: timedelta) -> str:
    """A length of time as :func:`parse_duration` reads it, in the largest unit that divides it."""
    unit = next(unit for unit in ("d", "h", "min", "s", "ms") if not length % _UNITS[unit])
    return f"{length // _UNITS[unit]}{unit}"
