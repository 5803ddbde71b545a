"""PyFlink programs restored on a real Flink: what was refused or wrong is never compatible."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from airflow_flinkcompat.compat import Outcome, Report, render_text
from dev.measure import results
from dev.measure.pairs import PROGRAMS, load_pairs

PAIRS = {pair.id: pair for pair in load_pairs("2.3", folder=PROGRAMS)}


@cache
def measured() -> dict[str, Any]:
    path = results.newest("2.3", "programs")
    assert path is not None
    return {entry["id"]: entry for entry in results.read(path)["pairs"]}


@cache
def judged(name: str) -> Report:
    return results.judged(measured()[name], "2.3.0")


def test_every_pair_was_run_as_it_is_written() -> None:
    """Else run `make measure-pairs MEASURE_ARGS=--programs`, with `--only …` where that is enough."""
    assert set(measured()) == set(PAIRS)
    assert len(PAIRS) >= 60
    for name, pair in PAIRS.items():
        for side, key in ((pair.old, "old"), (pair.new, "new")):
            entry = measured()[name]
            assert (entry[key], entry[f"language_{key}"]) == (side.script.strip().removesuffix(";"), side.language)


@pytest.mark.parametrize("name", PAIRS)
def test_what_did_not_restore_right_is_never_compatible(name: str) -> None:
    outcome = measured()[name]["outcome"]
    if outcome != results.RIGHT:
        assert judged(name).outcome is not Outcome.COMPATIBLE, f"{outcome}\n{render_text(judged(name))}"


def test_every_way_a_restore_can_end_was_seen() -> None:
    outcomes = {entry["outcome"] for entry in measured().values()}
    assert outcomes >= {results.RIGHT, results.WRONG, results.REFUSED_AT_SUBMIT, results.REFUSED_AT_RESTORE}


def test_the_same_in_other_words_restores_right_and_is_recognised() -> None:
    """Where this fails on a new measurement, the measuring is at fault: rows or conditions."""
    unchanged = [name for name in PAIRS if name.endswith(("-unchanged", "-alias"))]
    assert len(unchanged) >= 5
    assert {measured()[name]["outcome"] for name in unchanged} == {results.RIGHT}
    assert {judged(name).outcome for name in unchanged} == {Outcome.COMPATIBLE}


@pytest.mark.slow
def test_nine_in_ten_that_restored_right_are_recognised(record_property: pytest.RecordProperty) -> None:
    right = [name for name, entry in measured().items() if entry["outcome"] == results.RIGHT]
    missed = [name for name in right if judged(name).outcome is not Outcome.COMPATIBLE]
    print(f"\nrecognised {len(right) - len(missed)} of {len(right)}; missed: {missed}")
    record_property("recognised", f"{len(right) - len(missed)}/{len(right)}")
    assert len(right) >= 50
    assert len(missed) <= len(right) / 10, missed


def test_the_file_holds_no_place_of_one_machine() -> None:
    assert all("file:/" not in (entry["exception"] or "") for entry in measured().values())
