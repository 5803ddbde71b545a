"""The generator of drawn pairs, and what is drawn and found among them; no Flink runs."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_flinkcompat.sql import parse_script
from dev.measure import run_random
from dev.measure.random_pairs import KINDS, RandomPair, random_pairs
from dev.measure.random_scripts import OPERATORS, SINKS, SOURCES
from dev.measure.stacked_pairs import UPPERS


@pytest.fixture(scope="module")
def drawn() -> list[RandomPair]:
    return list(random_pairs(300, 1, "2.3"))


def test_a_seed_draws_the_same_pairs_and_a_greater_count_only_adds(drawn: list[RandomPair]) -> None:
    assert list(random_pairs(20, 1, "2.3")) == drawn[:20]
    assert list(random_pairs(20, 2, "2.3")) != drawn[:20]


def test_every_operator_connector_and_kind_of_change_is_drawn(drawn: list[RandomPair]) -> None:
    assert {name for each in drawn for name in each.operators} == OPERATORS.keys() | UPPERS.keys()
    connectors = {f"source {name}" for name in SOURCES} | {f"sink {name}" for name in SINKS}
    assert {name for each in drawn for name in each.connectors} == connectors
    assert {each.pair.area for each in drawn} == set(KINDS)


def test_both_sides_of_every_pair_parse_and_differ(drawn: list[RandomPair]) -> None:
    for pair in (each.pair for each in drawn):
        assert (pair.old.script, pair.old.settings) != (pair.new.script, pair.new.settings), pair.id
        for side in (pair.old, pair.new):
            assert parse_script(side.script, pair.id).statements
            assert "{" not in side.script.replace("${conn.postgres.password}", ""), side.script


def test_only_a_line_that_knows_it_is_asked_for_on_conflict(drawn: list[RandomPair]) -> None:
    assert any("ON CONFLICT" in each.pair.old.script for each in drawn)
    assert not any("ON CONFLICT" in each.pair.old.script for each in random_pairs(60, 1, "1.20"))


def row(id: str, predicted: str, verdict: str, real: str = "", read: str = "unknown") -> dict[str, Any]:
    said = {"predicted": predicted, "doubt": "", "message": "why", "verdict": verdict, "read": read}
    return {"set": "random", "id": id, "real": real, **said}


def test_pairs_of_each_prediction_are_drawn_and_more_are_added_to_them() -> None:
    kinds = (
        ("refused at submit", "incompatible"),
        ("refused at restore", "incompatible"),
        ("not refused", "compatible"),
        ("not refused", "unknown"),
    )
    rows = [row(f"{predicted} {verdict} {n}", predicted, verdict) for predicted, verdict in kinds for n in range(40)]
    rows.append({**row("refused", "not refused", "refused at plan"), "new_refusal": ["refused at plan", "why"]})
    found = run_random.draw(rows, 20, 1)
    drawn = [sum(name.startswith(f"{predicted} {verdict}") for name in found) for predicted, verdict in kinds]
    assert drawn == [5, 4, 7, 4]
    assert run_random.draw(rows, 30, 1)[:20] == found
    assert sorted(run_random.draw(rows, 999, 1)) == sorted(each["id"] for each in rows if each["id"] != "refused")


def test_predictions_that_did_not_hold_are_named() -> None:
    rows = [
        row("a", "refused at submit", "incompatible", "restored_right"),
        row("b", "not refused", "unknown", "refused_at_restore"),
        row("c", "not refused", "compatible", "restored_WRONG"),
        row("d", "refused at submit", "incompatible", "refused_at_submit", "compatible"),
        row("e", "refused at submit", "incompatible", "refused_at_submit"),
        row("f", "not refused", "compatible", "restored_right", "compatible"),
        row("not run", "not refused", "compatible"),
    ]
    assert list(run_random.faults(rows)) == [
        "false refusal: random a (restored_right): why",
        "missed refusal: random b (refused_at_restore): not refused; verdict unknown",
        "false compatible: random c (restored_WRONG)",
        "false compatible by the rules alone: d (refused_at_submit); with the planner incompatible",
    ]
