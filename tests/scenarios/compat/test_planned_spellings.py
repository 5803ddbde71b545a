"""What the SQL fixtures say of one condition spelled otherwise, against Flink's own planner."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Finding, Side, check
from airflow_flinkcompat.testing.fixture_cases import Case, load_cases
from tests.support.planning import Planned, local_planner, read

FIXTURES = Path(__file__).parents[2] / "fixtures" / "vvr" / "where"
CASES = [case for case in load_cases(FIXTURES) if case.file.startswith("04-")]

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Planned]:
    scripts = [script for case in CASES for script in (case.old_script, case.new_script)]
    with local_planner(tmp_path_factory.mktemp("planner")) as planner:
        return dict(zip(scripts, planner.plan((script, {}) for script in scripts), strict=True))


def said(case: Case, planned: dict[str, Planned]) -> list[Finding]:
    """How the plans of both sides differ."""
    old, new = (Side(script, engine="flink") for script in (case.old_script, case.new_script))
    report = check(old, new, plans=(read(planned[old.script]), read(planned[new.script])))
    assert not report.warnings
    return [finding for finding in report.findings if finding.rule == "plan-differs"]


@pytest.mark.parametrize("case", [case for case in CASES if case.fires == ("unchanged",)], ids=lambda case: case.title)
def test_another_spelling_is_the_same_plan(case: Case, planned: dict[str, Planned]) -> None:
    assert not said(case, planned)


@pytest.mark.parametrize("case", [case for case in CASES if case.flink != "compatible"], ids=lambda case: case.title)
def test_another_meaning_is_another_plan(case: Case, planned: dict[str, Planned]) -> None:
    """So the comparison does see what a condition means."""
    assert said(case, planned)
