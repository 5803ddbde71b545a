"""When Flink's planner is asked about a change, and what happens where it gives no answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Outcome, Report, Side, render_text
from airflow_flinkcompat.compat.report import READ
from airflow_flinkcompat.exec_graph.from_planner import PlannedScript, PlannerRefusal
from airflow_flinkcompat.exec_graph.prediction import Prediction, predicted
from airflow_flinkcompat.model import Consequence, InputError, Span
from airflow_flinkcompat.planner import installation, questions
from airflow_flinkcompat.planner.daemon import PlannerFailure
from airflow_flinkcompat.planner.installation import Installation
from airflow_flinkcompat.planner.judgement import NoJob, PlannerUnavailable, compile_plans, judge
from airflow_flinkcompat.planner.questions import PlannedChange
from tests.support.cli.command import COMPATIBLE, V1

LINE = installation.LINES["2.3"]
REFUSED = PlannerRefusal("Column 'nope' not found in any table", Span("a.sql", 3, 4, 3, 4), conclusive=True)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Installation(LINE, Path("/flink"), Path("/java"), ())
    monkeypatch.setattr(installation, "find", lambda *_: found)


def sides() -> tuple[Side, Side]:
    return Side(V1, engine="flink"), Side(COMPATIBLE, engine="flink")


def answering(monkeypatch: pytest.MonkeyPatch, old: PlannedScript, new: PlannedScript) -> None:
    said = Prediction("2.3.0", doubt="a script is refused")
    monkeypatch.setattr(questions, "predict", lambda *_: PlannedChange(old, new, said))


def test_a_planner_that_dies_is_a_warning_unless_it_must_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> PlannedChange:
        raise PlannerFailure("Flink's planner crashed on this script")

    monkeypatch.setattr(questions, "predict", dies)
    report = judge(*sides())
    assert (report.ground, report.outcome) == (READ, Outcome.COMPATIBLE)
    assert report.doubt == "Flink's planner crashed on this script"
    assert Report.from_dict(report.to_dict()) == report
    assert report.to_dict()["warnings"] == [*report.warnings, report.doubt]
    assert render_text(report).endswith(f"\nRead from the script, because {report.doubt}.\n")
    with pytest.raises(PlannerUnavailable, match="crashed on this script"):
        judge(*sides(), "always")


def test_a_proposed_script_that_flink_refuses_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, PlannedScript("2.3.0"), PlannedScript("2.3.0", refusal=REFUSED))
    with pytest.raises(InputError, match=r"a\.sql:3:4: Flink 2\.3\.0 refuses it: Column 'nope'"):
        judge(*sides())


def test_a_deployed_script_that_flink_refuses_leaves_the_outcome_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, PlannedScript("2.3.0", refusal=REFUSED), PlannedScript("2.3.0"))
    report = judge(*sides())
    assert (report.outcome, report.read_outcome) == (Outcome.UNKNOWN, Outcome.COMPATIBLE)
    (deciding,) = [each for each in report.findings if not each.overruled_by]
    assert deciding.before_span == REFUSED.place
    assert "Column 'nope' not found in any table. Its job runs on a different version" in deciding.message
    assert {outcome for _, outcome in report.sinks} == {Outcome.UNKNOWN}
    assert report.ground == "planned by Flink 2.3.0, the proposed script alone"
    text = " ".join(render_text(report).split())
    assert "1. Flink refuses the deployed script. Check again with the engine version that runs the job" in text
    assert "Correct or remove" not in text


def test_scripts_without_a_job_are_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, PlannedScript("2.3.0"), PlannedScript("2.3.0"))
    with pytest.raises(NoJob, match="contains no INSERT and no SELECT"):
        judge(*sides())


def upgrade() -> tuple[Side, Side]:
    old, new = (Side(V1, engine="flink", engine_version=each) for each in ("1.20", "2.3"))
    return old, new


def test_a_script_that_only_the_new_version_refuses_is_incompatible(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = PlannedScript("1.20.3"), PlannedScript("2.3.0", refusal=REFUSED)
    said = predicted(old, new, upgrade=True)
    monkeypatch.setattr(questions, "predict", lambda *_: PlannedChange(old, new, said))
    report = judge(*upgrade())
    assert (report.outcome, report.ground) == (Outcome.INCOMPATIBLE, "planned by Flink 2.3.0")
    assert [(each.rule, each.consequence) for each in report.deciding] == [
        ("statement-refused", Consequence.REFUSED_AT_SUBMIT)
    ]
    assert report.deciding[0].message == "Flink 2.3.0: a.sql:3:4: Column 'nope' not found in any table"


@pytest.mark.parametrize("new", [None, REFUSED])
def test_an_unchanged_script_that_the_old_version_refuses_has_no_job(
    monkeypatch: pytest.MonkeyPatch, new: PlannerRefusal | None
) -> None:
    answering(monkeypatch, PlannedScript("1.20.3", refusal=REFUSED), PlannedScript("2.3.0", refusal=new))
    with pytest.raises(InputError, match=r"a\.sql:3:4: Flink 1\.20\.3 refuses it"):
        judge(*upgrade())


def test_other_operators_name_the_options_of_one_script_or_of_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "plan_of_job", lambda *_: None)
    old, new = sides()
    for script, options in ((old, r"\(--set, --engine-version\)"), (new, r"\(--old-set, --old-engine-version\)")):
        with pytest.raises(InputError, match=f"differ from the operators of the job.*: pass them {options}"):
            compile_plans(old, script)


def test_a_missing_jar_of_an_upgrade_is_named_for_the_new_version(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = PlannedScript("1.20.3", stand_ins={"orders": "kafka"})
    monkeypatch.setattr(questions, "plan_of_job", lambda *_: planned)
    monkeypatch.setattr(questions, "plan", lambda *_: planned)
    with pytest.raises(
        InputError, match=r"table orders needs org\.apache\.flink:flink-sql-connector-kafka:5\.0\.0-2\.2 \(Maven"
    ):
        compile_plans(*upgrade())
