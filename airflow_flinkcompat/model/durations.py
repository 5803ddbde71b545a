"""Durations as text, such as ``90s`` and ``10 min``."""

from __future__ import annotations

import re
from datetime import timedelta

from airflow_flinkcompat.model.job import InputError

_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_DURATION = re.compile(r"\s*([0-9]+)\s*(ms|s|min|m|h|d)\s*")


def parse_duration(text: object) -> timedelta:
    """Parse a positive duration.

    Args:
        text: A whole number and a unit: ms, s, m, min, h or d.

    Returns:
        The duration.

    Raises:
        InputError: The value is not a duration, or the duration is too long.
    """
    found = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if found is None or not int(found[1]):
        raise InputError(f"{text!r} is not a duration. Write a duration such as 1d, 6h, 30min or 90s")
    try:
        return int(found[1]) * _UNITS[found[2]]
    except OverflowError:
        raise InputError(f"{text!r} is too long for a duration") from None


def shown_duration(length: timedelta) -> str:
    """Text of a duration in its largest whole unit, which :func:`parse_duration` can parse."""
    unit = next(unit for unit in ("d", "h", "min", "s", "ms") if not length % _UNITS[unit])
    return f"{length // _UNITS[unit]}{unit}"
