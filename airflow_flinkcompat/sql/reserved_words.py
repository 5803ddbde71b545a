"""The words that Flink's parser takes as no name unless they are quoted."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

DATA = Path(__file__).with_suffix(".json")
"""Reserved words by line of Flink, written by ``python -m dev.measure reserved-words``."""
EVERY_LINE = "every line"


@lru_cache
def reserved_words(line: str = EVERY_LINE) -> frozenset[str]:
    """Return the words, in upper case, that one line of Flink refuses as a name without backticks."""
    by_line = json.loads(DATA.read_text())
    return frozenset(by_line[EVERY_LINE]).union(by_line[line]) if line in by_line else frozenset()
