"""Engine ``flink`` against restores on a real Flink 2.3.0 and 1.20.3: what was refused or wrong is never compatible."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from airflow_flinkcompat.compat import Consequence, Outcome, Report, check, evidence, render_text
from dev.measure.measured import RIGHT, Restore, everything, load, narrow
from dev.measure.results import stated_consequence

CONSEQUENCES = {
    "refused_at_submit": {Consequence.REFUSED_AT_SUBMIT},
    "refused_at_restore": {Consequence.REFUSED_AT_RESTORE},
    "restored_WRONG": {Consequence.SILENTLY_WRONG},
    # Wrong or unproven on other data.
    "restored_right_on_this_data": {Consequence.SILENTLY_WRONG},
}


RIGHT_BY_CHANCE = {
    "ga-avg-to-sum-count": "right-by-chance-average-of-nothing-to-sum",
    "dd-ra-col-swap": "right-by-chance-waiting-first-row-column-swapped",
    "dd-rap-col-swap": "right-by-chance-waiting-first-row-column-swapped",
    "li-n-6-to-8": "right-by-chance-reached-limit-raised",
}
"""Restores that ended right over the rows of their measurement, and the same change over rows that tell."""


@cache
def judged(restore: Restore) -> Report:
    return check(*restore.sides())


def restores(version: str) -> list[Restore]:
    return [restore for restore in everything() if restore.version.startswith(version)]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.3", "1.20"])
def test_what_did_not_restore_right_is_never_compatible(version: str) -> None:
    pairs = restores(version)
    assert len(pairs) > 130
    assert {pair.outcome for pair in pairs} > {RIGHT, "refused_at_submit", "refused_at_restore", "restored_WRONG"}
    false = [pair for pair in pairs if pair.outcome != RIGHT and judged(pair).outcome is Outcome.COMPATIBLE]
    assert not false, "\n\n".join(f"{pair} ended {pair.outcome}\n{render_text(judged(pair))}" for pair in false)


@pytest.mark.slow
def test_open_source_flink_never_reuses_state_in_part() -> None:
    for pair in everything():
        report = judged(pair)
        assert all(finding.outcome is not Outcome.PARTIAL for finding in report.findings), str(pair)


@pytest.mark.slow
def test_every_unknown_and_incompatible_answer_says_why() -> None:
    for pair in everything():
        for finding in judged(pair).findings:
            assert (finding.reason is not None) == (finding.outcome is Outcome.UNKNOWN), f"{pair}: {finding.rule}"
            assert finding.message, str(pair)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.3", "1.20"])
def test_nine_in_ten_that_restored_right_are_recognised(version: str) -> None:
    """Windows and every other operator alike; what is missed rests on its data or on what no query tells."""
    right = [pair for pair in restores(version) if pair.outcome == RIGHT]
    missed = [pair.id for pair in right if judged(pair).outcome is not Outcome.COMPATIBLE]
    assert len(missed) <= len(right) / 10, missed


@pytest.mark.slow
def test_nine_in_ten_of_the_other_operators_are_recognised() -> None:
    windows = {pair.id for pair in narrow()}
    right = [p for p in restores("2.3") if p.outcome == RIGHT and p.id.removesuffix(" into a sink") not in windows]
    missed = [pair.id for pair in right if judged(pair).outcome is not Outcome.COMPATIBLE]
    assert len(right) > 140
    assert len(missed) <= len(right) / 10, missed


@pytest.mark.slow
def test_95_of_100_of_the_other_operators_that_any_rows_restore_right_are_recognised() -> None:
    table = evidence.restores()
    assert {table[again]["2.3"] for again in RIGHT_BY_CHANCE.values()} == {"restored_WRONG"}
    right = [pair for pair in load("flink-2.3-restores-wide.json") if pair.outcome == RIGHT]
    missed = {pair.id for pair in right if judged(pair).outcome is not Outcome.COMPATIBLE}
    sound = len(right) - len(RIGHT_BY_CHANCE)
    assert missed >= RIGHT_BY_CHANCE.keys() | {"sm-clause-dropped"}, "what the sink of the last keeps is unknown"
    assert len(missed - RIGHT_BY_CHANCE.keys() - {"sm-clause-dropped"}) <= 0.05 * sound, missed


@pytest.mark.slow
def test_the_stated_consequence_is_the_measured_one(record_property: pytest.RecordProperty) -> None:
    said = [
        (pair, stated_consequence(judged(pair))) for pair in narrow() if judged(pair).outcome is Outcome.INCOMPATIBLE
    ]
    said = [(pair, each) for pair, each in said if each is not None]
    right = [pair for pair, each in said if each in CONSEQUENCES.get(pair.outcome, set())]
    misses = {pair.id: (pair.outcome, each.value) for pair, each in said if pair not in right and each is not None}
    print(f"\nconsequence right for {len(right)} of {len(said)}; not for: {misses}")
    record_property("consequences", f"{len(right)}/{len(said)}")
    assert len(said) >= 60
    assert len(right) >= 0.85 * len(said)


@pytest.mark.slow
def test_a_version_nobody_measured_is_not_called_compatible() -> None:
    """But for an unchanged script, which every version restores."""
    seen: Counter[Outcome] = Counter()
    for pair in narrow():
        old, new = pair.sides()
        other = check(
            *(type(side)(side.script, side.settings, engine="flink", engine_version="2.4") for side in (old, new))
        )
        unchanged = [finding.rule for finding in other.deciding] == ["unchanged"]
        assert unchanged or other.outcome is not Outcome.COMPATIBLE, str(pair)
        seen[other.outcome] += 1
    assert set(seen) == {Outcome.COMPATIBLE, Outcome.UNKNOWN, Outcome.INCOMPATIBLE}
