"""What a hint behind a table says: its options, as Flink reads them over those of the declaration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_PAIR = re.compile(r"(?P<key>[\w.-]+)='(?P<value>(?:[^']|'')*)'")
OPTIONS = "OPTIONS"


def hinted(hints: Iterable[tuple[str, str]], name: str) -> Iterator[tuple[str, str]]:
    """The keys and values in hints of one name."""
    for hint, text in hints:
        if hint == name:
            yield from ((found["key"], found["value"]) for found in _PAIR.finditer(text))
