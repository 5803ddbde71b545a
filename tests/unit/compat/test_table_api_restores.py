"""What is said of programs beside their outcome, against restores with real PyFlink: how a restore would have ended."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest

from airflow_flinkcompat.compat import Basis, Consequence, Outcome, Report, Side, check, render_text
from dev.measure import results
from dev.measure.pairs import PROGRAMS, load_pairs
from dev.measure.results import stated_consequence
from tests.support.nightly import mostly_slow

PAIRS = {pair.id: pair for pair in load_pairs("2.3", folder=PROGRAMS)}
CONSEQUENCES = {
    results.WRONG: Consequence.SILENTLY_WRONG,
    results.REFUSED_AT_SUBMIT: Consequence.REFUSED_AT_SUBMIT,
    results.REFUSED_AT_RESTORE: Consequence.REFUSED_AT_RESTORE,
}


@cache
def measured() -> Mapping[str, str]:
    path = results.newest("2.3", "programs")
    assert path is not None
    return {entry["id"]: entry["outcome"] for entry in results.read(path)["pairs"]}


@cache
def judged(pair: str, engine: str = "flink") -> Report:
    found = PAIRS[pair]
    old, new = (
        Side(each.script, dict(each.settings), engine=engine, source=name, language=each.language)
        for name, each in (("old", found.old), ("new", found.new))
    )
    return check(old, new)


@pytest.mark.slow
def test_the_stated_consequence_is_the_measured_one() -> None:
    said = {pair: stated_consequence(judged(pair)) for pair in PAIRS if measured().get(pair) in CONSEQUENCES}
    stated = {pair: one for pair, one in said.items() if one is not None}
    wrong = {pair: one for pair, one in stated.items() if CONSEQUENCES[measured()[pair]] is not one}
    assert len(stated) >= 40
    assert not wrong


@pytest.mark.parametrize("pair", sorted(pair for pair in PAIRS if pair.startswith("row-counts")))
def test_windows_over_rows_stand_only_unchanged(pair: str) -> None:
    for engine in ("flink", "vvr"):
        report = judged(pair, engine)
        unchanged = [finding.rule for finding in report.findings] == ["unchanged"]
        assert report.outcome is (Outcome.COMPATIBLE if unchanged else Outcome.INCOMPATIBLE), render_text(report)
        # No page speaks of windows over rows.
        assert unchanged or engine == "flink" or {finding.basis for finding in report.deciding} == {Basis.INFERRED}


@pytest.mark.parametrize(
    "pair", mostly_slow(sorted(pair for pair in PAIRS if pair.startswith(("notation", "group-by", "over"))), 6)
)
def test_a_move_between_sql_and_the_table_api_is_never_assumed_equal(pair: str) -> None:
    """On ``vvr`` no page covers it; on ``flink`` each that is called compatible names what was measured."""
    found = PAIRS[pair]
    if found.old.language == found.new.language:
        return
    assert judged(pair, "vvr").outcome is not Outcome.COMPATIBLE
    for finding in judged(pair).deciding:
        if finding.outcome is Outcome.COMPATIBLE:
            assert (finding.rule, finding.basis) == ("table-api-changed", Basis.MEASURED)
