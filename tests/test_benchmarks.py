"""The benchmark runs and says what it should; what it takes is never tested."""

from __future__ import annotations

import re

import pytest

from airflow_flinkcompat.compat import Outcome, check
from airflow_flinkcompat.sql import parse_script
from benchmarks.check import Timing, batch_rate, fixtures, row, timed
from benchmarks.scripts import LEVELS, LINES, SMALL, changed, large


@pytest.mark.parametrize("lines", [500, 1000])
def test_a_large_script_has_its_lines_and_is_read_whole(lines: int) -> None:
    script = parse_script(large(lines))
    assert abs(len(large(lines).splitlines()) - lines) <= LINES
    assert all(statement.tree is not None for statement in script.statements)
    assert (
        sum(statement.text.startswith("CREATE TEMPORARY VIEW") for statement in script.statements)
        == len(large(lines).splitlines()) * LEVELS // LINES
    )


def test_the_pairs_are_changes_that_have_to_be_judged() -> None:
    assert len(SMALL.splitlines()) == 5
    for script in (SMALL, large(100)):
        report = check(script, changed(script))
        assert report.outcome is Outcome.PARTIAL
        assert "statement-not-read" not in {finding.rule for finding in report.findings}


def test_the_smallest_case_is_timed_and_printed() -> None:
    timing = timed("five lines", SMALL, changed(SMALL), rounds=1)
    assert timing.check > timing.parse > 0
    assert re.fullmatch(r"\| five lines \| 5 \| [\d.]+ \| [\d.]+ \| [\d.]+ \| ≤ 2: (met|missed) \|", row(timing))


def test_a_row_says_whether_the_goal_is_met() -> None:
    assert row(Timing("a", 1, 10, 20)).endswith("| 2.00 | ≤ 2: met |")
    assert row(Timing("a", 1, 10, 20.1)).endswith("≤ 2: missed |")
    assert row(Timing("a", 1, 10, 15), holds=False).endswith("missed |")


def test_the_batch_rate_counts_pairs() -> None:
    assert batch_rate(fixtures()[:3], seconds=0.01) > 0
