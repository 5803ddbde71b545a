"""Public scripts to measure with, which belong to others and lie outside of the project; none where the folder is not.

``FLINKCOMPAT_CORPUS`` names the folder; by default it is ``shared/corpus`` beside the checkout.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("FLINKCOMPAT_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus")


def _lines(name: str) -> Iterator[dict[str, Any]]:
    path = FOLDER / name
    if path.is_file():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


@cache
def scripts() -> dict[str, str]:
    """Every script by its id, and both sides of every change by the id of the change; each text once."""
    found = {each["text"]: str(each["id"]) for each in _lines("scripts.jsonl.gz")}
    for change in _lines("real-changes.jsonl.gz"):
        for side in ("old", "new"):
            found.setdefault(change[side], f"{change['id']} {side}")
    return {name: text for text, name in found.items()}
