"""Queries of one meaning on engine ``flink``: equal only where Flink surely plans the same operators for both."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Outcome, Side, check
from airflow_flinkcompat.testing.fixture_cases import Case, load_cases

CASES = load_cases(Path(__file__).parents[4] / "fixtures" / "sameness")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_query_of_the_same_meaning_is_judged_by_what_flink_plans(case: Case) -> None:
    report = check(*(Side(script, engine="flink") for script in (case.old_script, case.new_script)))

    assert report.outcome == case.outcome
    assert not case.fires or {finding.rule for finding in report.deciding} == {*case.fires}


def test_each_kind_has_near_misses_that_stay_compatible() -> None:
    near = {case.file for case in CASES if case.title.startswith("near miss")}

    assert near == {case.file for case in CASES}
    assert all(case.outcome == Outcome.COMPATIBLE for case in CASES if case.title.startswith("near miss"))
