"""Changes by which others attacked ``compatible``, or that they found in public: none is called so that Flink refuses.

They lie outside of the project, like the public scripts of ``tests.support.corpus``; ``FLINKCOMPAT_MEASURED`` names the
folder, by default ``shared/measured`` beside the checkout.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.compat import InputError, Outcome, Side, check
from airflow_flinkcompat.compat.deployable import obstacles

FOLDER = Path(os.environ.get("FLINKCOMPAT_MEASURED") or Path(__file__).parents[4] / "shared" / "measured")
ATTACK, FIELD = FOLDER / "attack-2026-11-28.jsonl.gz", FOLDER / "field-2026-11-28.jsonl.gz"
TABLES = FOLDER / "field-plan-tables.sql"
BY_DOCUMENT = {"doc-kafka-naming-strategy", "doc-ttl-on-2.3"}
"""Restored right on 2.3, though documents warn of them (sk-stateless-kafka-eo-naming, ga-ttl-set)."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not ATTACK.is_file(), reason=f"{ATTACK} is not there")]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _outcome(pair: dict[str, Any], catalog: str = "") -> str:
    versions = {"old": pair.get("old_version") or pair["version"], "new": pair["version"]}
    old, new = (
        Side(pair[side], pair.get(f"settings_{side}", {}), engine="flink", engine_version=version, catalog=catalog)
        for side, version in versions.items()
    )
    try:
        return "bad input" if any(obstacles(new)) else check(old, new).outcome.value
    except InputError:
        return "bad input"


@pytest.mark.parametrize(
    ("truth", "at_least"), [("refused at plan", 150), ("refused at restore", 60), ("wrong rows", 2)]
)
def test_no_attack_that_flink_refuses_or_gets_wrong_is_called_compatible(truth: str, at_least: int) -> None:
    attacks = [pair for pair in _lines(ATTACK) if pair["truth"] == truth]

    assert len(attacks) >= at_least
    assert [pair["id"] for pair in attacks if _outcome(pair) == Outcome.COMPATIBLE] == []


def test_no_public_change_that_does_not_fit_is_called_compatible() -> None:
    tables = TABLES.read_text(encoding="utf-8")
    unfit = [pair for pair in _lines(FIELD) if not pair["expected"].startswith("compatible")]
    false = {
        pair["id"]
        for pair in unfit
        if _outcome(pair, tables if pair["id"].startswith(("plan-", "shape-")) else "") == Outcome.COMPATIBLE
    }

    assert len(unfit) > 30
    assert false <= BY_DOCUMENT


def test_what_restored_right_is_said_to_be_refused_in_few_attacks() -> None:
    """A measured consequence is claimed of no spelling that was not measured."""
    right = [pair for pair in _lines(ATTACK) if pair["truth"] == "right"]
    wrong = {pair["id"] for pair in right if _outcome(pair) in ("incompatible", "bad input")}

    assert wrong <= {"distinct-added", "agg-where-key", "dedup-union-reorder"}
