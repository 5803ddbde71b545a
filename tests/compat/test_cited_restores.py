"""Every restore a measured verdict names is in the measured sets."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import airflow_flinkcompat.compat
from tests.measured import FOLDER, connectors

RESULTS = Path(__file__).parents[2] / "measure" / "results"
CODE = Path(airflow_flinkcompat.compat.__file__).parent
CITE = frozenset({"measured", "right", "wrong", "refused", "refused_later", "Above"})
"""Calls whose texts say which restores a verdict rests on."""
PROSE = frozenset({"passed-on"})
HYPHENED = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")


def known() -> set[str]:
    ids: set[str] = set()
    for file in (*FOLDER.glob("*.json"), *RESULTS.glob("*.json")):
        data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        ids |= {pair["id"] for pair in data.get("pairs", ())}
    return ids | {pair.id for pair in connectors()}


def cited() -> Iterator[tuple[str, str]]:
    """Place and id of everything that reads like one."""
    for file in sorted(CODE.rglob("*.py")):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", getattr(call.func, "attr", "")) in CITE:
                texts = (part for arg in call.args for part in ast.walk(arg) if isinstance(part, ast.Constant))
                for text in texts:
                    for name in HYPHENED.findall(text.value) if isinstance(text.value, str) else ():
                        yield f"{file.name}:{call.lineno}", name


def test_every_cited_restore_was_measured() -> None:
    found = [(place, name) for place, name in cited() if name not in PROSE]
    assert len(found) > 150
    ids = known()
    assert [f"{place} {name}" for place, name in found if name not in ids] == []
