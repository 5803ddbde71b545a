"""The time zones that ``table.local-time-zone`` takes (measured on Flink 2.3)."""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

_OFFSET = re.compile(r"GMT([+-])([0-9]{1,2}|[0-9]{2}:[0-5][0-9])")
_FURTHEST = timedelta(hours=18)
_REFUSED = {"EST", "MST", "HST", "ROC"}


@cache
def zone(name: str) -> tzinfo | None:
    """The time zone of a name; None for a name that Flink refuses, or that is unknown here.

    A name is ``UTC``, an offset as ``GMT+03:00``, or one of the time zone database. A zone whose clocks never change
    may be a :class:`datetime.timezone`.
    """
    if name == "UTC":
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        hours, _, minutes = offset[2].partition(":")
        length = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(length if offset[1] == "+" else -length) if length <= _FURTHEST else None
    return ZoneInfo(name) if name in available_timezones() - _REFUSED else None
