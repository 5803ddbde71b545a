"""The kinds of keyed state, in Flink's words; imports nothing."""

from __future__ import annotations

from enum import StrEnum


class KeyedStateKind(StrEnum):
    """Kind of a named state for a key and a namespace."""

    VALUE = "VALUE"
    LIST = "LIST"
    REDUCING = "REDUCING"
    AGGREGATING = "AGGREGATING"
    MAP = "MAP"
    TIMERS = "TIMERS"
