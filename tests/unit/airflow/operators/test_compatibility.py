"""The gate: verdict, branch, log, XCom, ledger."""

from __future__ import annotations

import os
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, TaskDeferred
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Connection

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.operators import FlinkBackfillOperator, FlinkSqlCompatibilityOperator
from airflow_flinkcompat.airflow.operators.approval import REJECT
from airflow_flinkcompat.airflow.tasks import files
from airflow_flinkcompat.airflow.triggers.deploy import SqlGatewayTrigger
from airflow_flinkcompat.compat import Policy, Report, ReportContext, Side
from airflow_flinkcompat.compat.plan_comparison import example_plans
from airflow_flinkcompat.deploy import PlansUnavailable, SubmissionUnknown, TargetError
from airflow_flinkcompat.deploy.flink.gateway import GatewayError
from airflow_flinkcompat.deploy.ledger.entries import (
    CheckedEntry,
    DeployingEntry,
    FailedEntry,
    JobStart,
    JobStop,
    Origin,
    RolledBackEntry,
    StepEntry,
    StoppingEntry,
)
from airflow_flinkcompat.deploy.target import JobDescription, JobVertex, Snapshot, SnapshotStats, VertexState
from airflow_flinkcompat.exec_graph.from_savepoint import read_job
from airflow_flinkcompat.model import PLANNER_VARIABLE, Outcome, join_ddl
from airflow_flinkcompat.model.options import NETWORK_VARIABLE
from airflow_flinkcompat.planner import installation, questions
from airflow_flinkcompat.planner.daemon import PlannerFailure, close_all
from airflow_flinkcompat.planner.installation import install
from airflow_flinkcompat.project.origin import GitOrigin
from airflow_flinkcompat.savepoint.metadata import SavepointMetadata, parse_metadata
from airflow_flinkcompat.testing.fake_target import AnswerLost
from tests.support.airflow.operators.fakes import QUERY, TABLES, Run, script
from tests.support.cli.command import VALIDATOR
from tests.support.deploy.fake_cluster import FakeCluster
from tests.support.savepoint.savepoints import FOLDER as SAVEPOINTS
from tests.unit.airflow.operators.conftest import Site, answer, planner_compiles, worker_plans
from tests.unit.airflow.operators.test_approval import ASKING, event

FIND = installation.find
BRANCHES = {"first": "a", "resume": "b", "restart": "c", "approve": "d"}
# What nobody measured.
NOT_COVERED = script().replace("'/out'", "'/out', 'sink.of-a-later-release' = '9 min'")
# As a user has it who says nothing of these.
DEFAULTS = {"policy": None, "redeploy_unchanged": False}
COMMENTED = f"-- a comment\n{script()}"


def test_nothing_deployed_yet_is_a_branch_of_its_own(site: Site) -> None:
    run, _tasks, skipped = site.checked(script())
    assert skipped == ["approve", "restart", "resume"]
    summary = run.pushed["check", "summary"]
    assert (summary["branch"], summary["old_sha256"], summary["outcome"]) == ("first", None, None)
    assert site.kinds() == ["checked"]


def test_what_restores_resumes(deployed: Site) -> None:
    run, _tasks, skipped = deployed.checked(script())
    assert skipped == ["approve", "first", "restart"]
    assert run.pushed["check", "summary"]["outcome"] == "compatible"


def test_another_window_size_restarts(deployed: Site) -> None:
    run, _tasks, skipped = deployed.checked(script(size=5))
    assert skipped == ["approve", "first", "resume"]
    assert run.pushed["check", "summary"]["outcome"] == "incompatible"


def test_what_cannot_be_told_asks(deployed: Site) -> None:
    run, _tasks, skipped = deployed.checked(NOT_COVERED)
    # What the approval can lead to stays open.
    assert skipped == ["first"]
    assert run.pushed["check", "summary"]["outcome"] == "unknown"


def test_the_summary_points_to_the_report(deployed: Site) -> None:
    run, _tasks, _ = deployed.checked(script(size=5))
    summary = run.pushed["check", "summary"]
    assert run.pushed["check", "return_value"] == summary
    assert run.pushed["check", "report"] == summary["report"]
    stored, markdown = deployed.ledger.read_report(summary["report"])
    VALIDATOR.validate(stored)
    assert Report.from_dict(stored).new_sha256 == summary["new_sha256"]
    assert "window-changed" in markdown
    head = deployed.ledger.head()
    assert head is not None
    assert summary["old_sha256"] == head.sha256
    known = ReportContext.from_dict(stored["context"])
    assert (known.deployment, known.entry, known.job_id) == ("orders", head.number, head.job_id)
    assert (known.backfill, known.migrates) == (False, False), "its DAG has no such tasks"
    assert "window-changed" in {row["rule"] for row in summary["findings"]}


@pytest.mark.parametrize("policy", [{"incompatible": "approve"}, Policy(incompatible="approve")])
def test_a_policy_of_ones_own(deployed: Site, policy: Any) -> None:
    _run, _tasks, skipped = deployed.checked(script(size=5), check={"policy": policy})
    assert skipped == ["first"]


def test_a_policy_that_rejects_is_remembered(deployed: Site) -> None:
    _run, _tasks, skipped = deployed.checked(script(size=5), check={"policy": {"incompatible": "reject"}})
    assert skipped == ["approve", "first", "restart", "resume"]
    last = deployed.ledger.entries()[-1]
    assert (last.kind, last.review.outcome) == ("rejected", "incompatible")


@pytest.mark.parametrize("text", [script(), COMMENTED])
def test_what_is_unchanged_ends_the_run_and_touches_no_job(deployed: Site, text: str) -> None:
    run, _tasks, skipped = deployed.checked(text, check=DEFAULTS)
    assert skipped == ["approve", "first", "restart", "resume"]
    assert run.pushed["check", "summary"]["branch"] == "unchanged"
    assert deployed.kinds()[-1] == "unchanged"
    assert deployed.cluster.now == {"job-1": "RUNNING"}


def test_unchanged_can_be_a_branch_of_its_own(deployed: Site) -> None:
    _run, _tasks, skipped = deployed.checked(COMMENTED, branches={"unchanged": "first"}, check=DEFAULTS)
    assert skipped == ["approve", "restart", "resume"]
    assert deployed.kinds()[-1] == "unchanged"


@pytest.mark.parametrize("given", [True, "true", "{{ 'True' }}", "{{ params.get('redeploy_unchanged', False) }}"])
def test_a_redeploy_on_purpose_is_said(deployed: Site, given: Any) -> None:
    deployed.propose(script())
    run = Run(conf={"redeploy_unchanged": True})
    assert run.execute(deployed.tasks(check={**DEFAULTS, "redeploy_unchanged": given})["check"]) == [
        "approve", "first", "restart",
    ]  # fmt: skip


def test_a_switch_that_is_neither_on_nor_off_is_named(deployed: Site) -> None:
    with pytest.raises(AirflowFailException, match="redeploy_unchanged is 'maybe': write true or false"):
        deployed.checked(script(), check={**DEFAULTS, "redeploy_unchanged": "maybe"})


@pytest.mark.parametrize("state", ["FAILED", "CANCELED", "FINISHED", None])
def test_an_unchanged_script_whose_job_does_not_run_is_no_reason_to_end(deployed: Site, state: str | None) -> None:
    """The deploy task says then what became of the job, or starts it."""
    job = deployed.cluster.jobs.pop("job-1")
    if state is not None:
        deployed.cluster.jobs["job-1"] = replace(job, state=state)
    _run, _tasks, skipped = deployed.checked(script(), check=DEFAULTS)
    assert skipped == ["approve", "first", "restart"]


def test_a_redeploy_that_was_cut_off_is_taken_up_by_what_was_deployed_before(deployed: Site) -> None:
    head = deployed.ledger.head()
    assert head is not None
    deployed.ledger.append(DeployingEntry(job=head.job, owner="other"))
    assert deployed.checked(script(), check=DEFAULTS)[2] == ["approve", "first", "restart", "resume"], "only claimed"
    deployed.ledger.append(StoppingEntry(job=head.job, stop=JobStop("job-1", "t"), owner="other"))
    assert deployed.checked(script(), check=DEFAULTS)[2] == ["approve", "first", "restart"]


def test_what_was_rolled_back_to_is_unchanged(deployed: Site) -> None:
    head = deployed.ledger.head()
    assert head is not None
    job = replace(head.job, script=script(size=5))
    failed = FailedEntry(job=job, start=JobStart(job_id="job-2"), message="no")
    deployed.ledger.append(failed)
    deployed.ledger.append(RolledBackEntry(job=head.job, start=head.start))
    assert deployed.checked(script(), check=DEFAULTS)[2] == ["approve", "first", "restart", "resume"]
    assert deployed.checked(script(size=5), check=DEFAULTS)[2] == ["first"], "what failed is no more than a change"


def test_a_job_that_cannot_be_asked_about_is_left_alone(
    deployed: Site, monkeypatch: pytest.MonkeyPatch, logs: list[Any]
) -> None:
    def silent(_job_id: str) -> Any:
        raise TargetError("no answer")

    monkeypatch.setattr(deployed.cluster, "status", silent)
    assert deployed.checked(script(), check=DEFAULTS)[2] == ["approve", "first", "restart", "resume"]
    assert any("Cannot determine whether" in record["event"] for record in logs)


def test_state_is_not_thrown_away_unasked(deployed: Site) -> None:
    assert deployed.checked(script(size=5), check=DEFAULTS)[2] == ["first"]


def test_where_a_backfill_follows_an_incompatible_change_restarts(
    deployed: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner_compiles(monkeypatch, "w-size-1to2-ws")  # no window of the new size is made of stored ones
    deployed.propose(script(size=5))
    run, tasks = Run(), deployed.tasks(check=DEFAULTS)
    arguments = {"script": "orders.sql", "dag": tasks["check"].dag}
    tasks["restart"] >> FlinkBackfillOperator(task_id="of_another", **{**arguments, "deployment": "clicks"})
    assert run.execute(tasks["check"]) == ["first"], "another job's backfill is none of this one"
    tasks["restart"] >> FlinkBackfillOperator(task_id="backfill", **{**arguments, "deployment": "orders"})
    assert run.execute(tasks["check"]) == ["approve", "first", "resume"]


@pytest.mark.parametrize(
    ("plans", "migrates", "branch", "policy"),
    [
        ("w-size-1to2-ws", True, "restart", "restart"),
        ("w-add-agg", True, "approve", "approve"),
        ("w-add-agg", False, "approve", "approve"),
        ("dd-pa-part-reorder", True, "approve", "approve"),
        ("dd-pa-part-reorder", False, "approve", "approve"),
        ("", True, "approve", "approve"),
        ("", False, "approve", "approve"),
    ],
)
def test_state_is_given_up_unasked_only_where_the_planner_says_that_none_can_be_kept(
    deployed: Site, monkeypatch: pytest.MonkeyPatch, plans: str, migrates: bool, branch: str, policy: str
) -> None:
    """By the scripts alone nothing is kept of another window size, which is not enough to give state up."""
    if plans:
        planner_compiles(monkeypatch, plans)
    deployed.propose(script(size=5))
    branches = {name: name for name in ("first", "resume", "restart", "approve", *(["migrate"] if migrates else []))}
    run, tasks = Run(), deployed.tasks(check={**DEFAULTS, "branches": branches})
    tasks["check"] >> EmptyOperator(task_id="migrate", dag=tasks["check"].dag)
    arguments = {"script": "orders.sql", "dag": tasks["check"].dag, "deployment": "orders"}
    tasks["restart"] >> FlinkBackfillOperator(task_id="backfill", **arguments)
    run.execute(tasks["check"])
    summary = run.pushed["check", "summary"]
    assert (summary["branch"], summary["policy"]) == (branch, policy)
    warnings = deployed.ledger.read_report(summary["report"])[0]["warnings"]
    assert any("no planner here" in warning for warning in warnings) == (not plans)


@pytest.mark.parametrize(
    ("vertices", "migrates", "words"),
    [
        ({"v": VertexState("totals", 4, 12 << 30)}, True, "12.0 GB of state (stop "),
        ({"v": VertexState("totals", 4, 12 << 30)}, False, ""),
        ({}, True, ""),
    ],
)
def test_the_report_names_the_downtime_by_the_last_checkpoint(
    deployed: Site, monkeypatch: pytest.MonkeyPatch, vertices: dict[str, VertexState], migrates: bool, words: str
) -> None:
    planner_compiles(monkeypatch, "w-add-agg")
    head = deployed.ledger.head()
    assert head is not None
    deployed.cluster.states[str(head.job_id), "completed"] = SnapshotStats(Snapshot(""), vertices)
    deployed.propose(script(size=5))
    branches = {name: name for name in ("first", "resume", "restart", "approve", *(["migrate"] if migrates else []))}
    run, tasks = Run(), deployed.tasks(check={**DEFAULTS, "branches": branches})
    tasks["check"] >> EmptyOperator(task_id="migrate", dag=tasks["check"].dag)
    run.execute(tasks["check"])
    report, page = deployed.ledger.read_report(run.pushed["check", "summary"]["report"])
    assert words in report["context"]["downtime"]
    assert bool(report["context"]["downtime"]) == ("Expected downtime: about" in page) == bool(words)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (script() + "SELEC 1;\n", r"orders\.sql:8:1: Expected a query"),
        (script().replace("'/in'", "'/in', 'password' = 'hunter2-plain'"), r"orders\.sql:2:\d+: password is a secret"),
        (script() + QUERY.format(size=5), "the script defines 2 jobs"),
        ("SELECT 1;\n", "a bare query has no sink"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_what_cannot_be_deployed_reaches_no_person(site: Site, text: str, message: str, first: bool) -> None:
    if not first:
        site.deploy(script())
    with pytest.raises(AirflowFailException, match=message) as failed:
        site.checked(text, check={"policy": dict.fromkeys(Outcome, "approve")})
    assert "hunter2" not in str(failed.value)
    last = site.ledger.entries()[-1]
    assert (last.kind, last.to_dict()["script"]) == ("failed", "")
    assert "hunter2" not in last.message


def test_several_jobs_may_be_started_by_a_task_of_ones_own(deployed: Site) -> None:
    """What only the SQL Gateway cannot do is an obstacle only where it starts the job."""
    deployed.propose(TABLES + QUERY.format(size=10) + QUERY.format(size=5))
    with DAG("own", template_searchpath=str(deployed.folder)) as dag:
        check = FlinkSqlCompatibilityOperator(
            task_id="check", deployment="orders", script="orders.sql", ledger=str(deployed.folder / "ledger"),
            branches={"first": "a", "resume": "b", "restart": "c", "approve": "d"},
        )  # fmt: skip
        check >> [EmptyOperator(task_id=name) for name in "abcd"]
    assert dag.task_ids
    run = Run()
    run.execute(check)
    assert run.pushed["check", "summary"]["branch"] in ("resume", "approve"), "checked as any other"


def test_a_mapped_gate_is_refused_when_the_dag_is_parsed() -> None:
    with DAG("d"), pytest.raises(TypeError, match=r"cannot be mapped: .*one gate for each deployment.*redeploy_dags"):
        FlinkSqlCompatibilityOperator.partial(task_id="check", branches=BRANCHES).expand(deployment=["a", "b"])


def test_auto_is_what_the_gateway_runs(deployed: Site) -> None:
    deployed.cluster.version = "2.3.1"
    run, _tasks, _ = deployed.checked(script())
    summary = run.pushed["check", "summary"]
    assert (summary["engine"], summary["engine_version"]) == ("flink", "2.3.1")


def test_an_engine_version_is_a_version(deployed: Site) -> None:
    with pytest.raises(AirflowFailException, match=r"version 'banana' .* is not a version of flink: .* 2\.3 or 1\.20"):
        deployed.checked(script(), check={"engine": "flink", "engine_version": "banana"})
    # As a template that is rendered as a native object gives it.
    run, _tasks, _ = deployed.checked(script(), check={"engine": "flink", "engine_version": 2.3})
    assert run.pushed["check", "summary"]["engine_version"] == "2.3"


def test_a_named_engine_needs_no_gateway(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployed.cluster, "engine", None)
    run, _tasks, skipped = deployed.checked(script(size=5), check={"engine": "vvr"})
    assert run.pushed["check", "summary"]["engine"] == "vvr"
    assert skipped == ["first"], "what runs is flink: whether its state fits is for a person to say"


def test_another_engine_than_the_one_that_runs_is_not_unchanged(deployed: Site) -> None:
    run, _tasks, skipped = deployed.checked(script(), check={"engine": "vvr"})
    summary = run.pushed["check", "summary"]
    assert (summary["outcome"], summary["branch"], skipped) == ("unknown", "approve", ["first"])


def _silent(*_: Any, **__: Any) -> Any:
    raise GatewayError("the SQL Gateway at http://gw:8083 does not answer (ConnectError)")


def test_the_check_waits_in_the_triggerer_while_the_gateway_does_not_answer(
    deployed: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering = deployed.cluster.engine
    monkeypatch.setattr(deployed.cluster, "engine", _silent)
    before = time.time()
    with pytest.raises(TaskDeferred) as deferred:
        deployed.checked(script(size=5), check={"gateway_timeout": 600, "target": "sql-gateway"})
    trigger = deferred.value.trigger
    assert isinstance(trigger, SqlGatewayTrigger)
    assert trigger.target == "sql-gateway"
    assert before + 600 <= trigger.until <= time.time() + 600
    assert deployed.kinds()[-1] == "deployed", "nothing is said of the version"
    # It is away still when the triggerer takes it for answering: the time goes on from where it began.
    run, tasks = Run(), deployed.tasks(check={"gateway_timeout": 600})
    with pytest.raises(TaskDeferred) as again:
        run.complete(tasks["check"], {"until": trigger.until, "silent": True})
    assert again.value.trigger.until == trigger.until
    monkeypatch.setattr(deployed.cluster, "engine", answering)
    assert run.complete(tasks["check"], {"until": trigger.until, "silent": True}) == ["approve", "first", "resume"]


def test_a_target_of_others_is_waited_for_by_its_own_word(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost() -> Any:
        raise AnswerLost("the platform did not answer")

    monkeypatch.setattr(deployed.cluster, "engine", lost)
    with pytest.raises(TaskDeferred):
        deployed.checked(script(size=5))


def test_a_gateway_that_stays_away_fails_the_check_in_time_and_for_good(
    deployed: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed.propose(script(size=5))
    monkeypatch.setattr(deployed.cluster, "engine", _silent)
    check = deployed.tasks(check={"gateway_timeout": 600})["check"]
    with pytest.raises(AirflowFailException, match=r"does not answer \(ConnectError\): waited 600 s for it"):
        Run().complete(check, {"until": time.time() - 1, "silent": True})
    with pytest.raises(AirflowException, match="does not answer") as failed:
        deployed.checked(script(size=5), check={"deferrable": False})
    assert not isinstance(failed.value, AirflowFailException), "tried again, as retries say"


@pytest.mark.parametrize("status", [401, 404, 500])
def test_a_gateway_that_answers_is_not_waited_for(status: int, deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def answers() -> Any:
        raise GatewayError("the SQL Gateway answered", status)

    monkeypatch.setattr(deployed.cluster, "engine", answers)
    with pytest.raises(AirflowException, match="the SQL Gateway answered"):
        deployed.checked(script(size=5))


def test_a_gateway_that_goes_away_while_it_compiles_is_waited_for(
    deployed: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any) -> Any:
        raise SubmissionUnknown("orders.sql:1: the SQL Gateway does not answer")

    monkeypatch.setattr(FlinkHook, "explain_plans", gone)
    with pytest.raises(TaskDeferred):
        deployed.checked(script(size=5), check={"explain_plan": True})
    # It is not away, it takes too long for this: no wait would help.
    check = deployed.tasks(check={"explain_plan": True})["check"]
    with pytest.raises(AirflowException, match="does not answer"):
        Run().complete(check, {"until": time.time() + 60, "silent": False})


def test_plans_of_the_gateway_sharpen_the_verdict(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def explain(_hook: FlinkHook, old: Side, new: Side, folder: str | None) -> Any:
        asked.append((old.engine, new.engine, new.version, folder))
        return example_plans("plan-differs")

    monkeypatch.setattr(FlinkHook, "explain_plans", explain)
    check = {"explain_plan": True, "plan_dir": "{{ 's3://plans' }}"}
    run, _tasks, skipped = deployed.checked(f"-- a comment\n{script()}", check=check)
    assert asked == [("flink", "flink", "2.3", "s3://plans")]
    assert skipped == ["approve", "first", "resume"]
    summary = run.pushed["check", "summary"]
    assert {row["rule"] for row in summary["findings"]} >= {"plan-differs"}
    assert summary["ground"] == "planned by Flink 2.3"


def test_plans_that_cannot_be_had_fail_the_task(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(*_: Any) -> Any:
        raise PlansUnavailable("the SQL Gateway writes compiled plans to a folder: name one")

    monkeypatch.setattr(FlinkHook, "explain_plans", unavailable)
    with pytest.raises(AirflowException, match="name one"):
        deployed.checked(script(size=5), check={"explain_plan": True})


@pytest.mark.parametrize("asks", [{"explain_plan": True}, {"planner": "always"}])
def test_plans_are_of_open_source_flink(deployed: Site, asks: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="plans SQL scripts on engine flink"):
        deployed.checked(script(), check={**asks, "engine": "vvr"})
    with pytest.raises(AirflowFailException, match=r"this is orders\.sql on vvr"):
        deployed.checked(script(), check={**asks, "engine": "{{ 'vvr' }}"})


def test_the_planner_of_the_worker_judges_and_is_named_wherever_the_verdict_is(
    deployed: Site, monkeypatch: pytest.MonkeyPatch, logs: list[Any]
) -> None:
    asked = worker_plans(monkeypatch, answer("a"), answer("b"))
    run, _tasks, skipped = deployed.checked(script(size=5))
    assert skipped == ["approve", "first", "resume"]
    assert len(asked) == 4, "each script with one subtask and with two"
    summary = run.pushed["check", "summary"]
    assert summary["ground"] == "planned by Flink 2.3.0"
    report, markdown = deployed.ledger.read_report(summary["report"])
    assert report["ground"] == "planned by Flink 2.3.0"
    assert "Planned by Flink 2.3.0" in markdown
    lines = [record["event"] for record in logs]
    assert any(line.startswith("Verdict: incompatible on flink 2.3, planned by Flink 2.3.0, against") for line in lines)


def test_a_worker_without_a_planner_reads_the_script_and_says_what_is_missing(deployed: Site, monkeypatch: Any) -> None:
    monkeypatch.setenv(PLANNER_VARIABLE, "auto")
    run, _tasks, _skipped = deployed.checked(script(size=5))
    summary = run.pushed["check", "summary"]
    assert summary["ground"].startswith("read from the script")
    assert "run flinkcompat planner install 2.3" in deployed.ledger.read_report(summary["report"])[1]


def test_where_the_worker_has_planned_the_target_is_not_asked(
    deployed: Site, monkeypatch: pytest.MonkeyPatch, logs: list[Any]
) -> None:
    """Its ground is kept, also where a migration would have to know more."""
    worker_plans(monkeypatch, answer("a"))
    run, *_ = deployed.checked(script(size=5), check={**DEFAULTS, "explain_plan": True})
    assert run.pushed["check", "summary"]["ground"] == "read from the script, undecided by Flink 2.3.0"
    assert not [record for record in logs if "no planner here" in record["event"]]


def test_a_planner_that_dies_fails_no_task(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(_question: Any) -> Any:
        raise PlannerFailure("Flink's planner crashed on this script")

    worker_plans(monkeypatch, answer("a"))
    monkeypatch.setattr(questions, "daemon", lambda _: SimpleNamespace(ask=dies))
    run, _tasks, _skipped = deployed.checked(script(size=5))
    assert "crashed on this script" in deployed.ledger.read_report(run.pushed["check", "summary"]["report"])[1]
    with pytest.raises(
        AirflowFailException, match=r'planner is "always", but Flink.s planner did not answer: .* crashed on this'
    ):
        deployed.checked(script(size=6), check={"planner": "{{ 'always' }}"})
    assert deployed.kinds()[-1] == "checked", "it is no fault of the version"


def test_a_script_that_flink_refuses_fails_for_good_and_is_not_offered_again(
    deployed: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = [{"class": "org.apache.calcite.runtime.CalciteContextException", "message": "At line 1, column 7: no"}]
    refused = answer(refusal=chain, statement=2)
    worker_plans(monkeypatch, answer("a"), refused)
    with pytest.raises(AirflowFailException, match=r"orders\.sql:5:7: Flink 2\.3\.0 refuses it: At line 1"):
        deployed.checked(script(size=5))
    last = deployed.ledger.entries()[-1]
    assert (last.kind, last.message.endswith("no")) == ("failed", True)


@pytest.mark.slow
def test_a_real_planner_judges_refuses_and_is_named(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "find", FIND)
    install("2.3")
    run, _tasks, skipped = deployed.checked(script(size=5), check={"planner": "always"})
    assert skipped == ["approve", "first", "resume"]
    assert run.pushed["check", "summary"]["ground"] == "planned by Flink 2.3.0"
    with pytest.raises(AirflowFailException, match=r"orders\.sql:6:32: Flink 2\.3\.0 refuses it: Column 'nope'"):
        deployed.checked(script(size=5).replace("SUM(price)", "SUM(nope)"), check={"planner": "always"})
    assert deployed.kinds()[-1] == "failed"
    close_all()


@pytest.fixture
def shown(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A target that shows the job's vertices; what becomes of its options a test says."""
    job = JobDescription((JobVertex("b", "Source", 4), JobVertex("c", "Sink", 4)))
    connection = Connection(conn_id="flink_default", conn_type="flink", host="gateway")
    monkeypatch.setattr(FlinkHook, "get_connection", staticmethod(lambda _: connection))
    monkeypatch.setattr(FakeCluster, "describe", lambda *_: job, raising=False)
    monkeypatch.setattr(FakeCluster, "jobs", lambda _: (), raising=False)
    return deployed


def test_the_planner_knows_the_options_of_the_cluster(shown: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"parallelism.default": "4", "table.exec.state.ttl": "1 d", "pipeline.max-parallelism": "64", "x": "y"}
    monkeypatch.setattr(FakeCluster, "cluster_options", lambda *_: options)
    asked = worker_plans(monkeypatch, answer("b", "c"))
    opened, connect = [], FlinkHook.get_conn
    monkeypatch.setattr(FlinkHook, "get_conn", lambda hook: opened.append(hook) or connect(hook))
    settings = {"table.exec.state.ttl": "2 d"}
    run, *_ = shown.checked(script(size=5), settings=settings)
    assert len(opened) == 1, "the target is asked for its engine and its job at once"
    old, new = (each["settings"] for each in asked)
    assert (old["parallelism.default"], old["pipeline.max-parallelism"], "x" in old) == ("4", "64", False)
    assert (old["table.exec.state.ttl"], new["table.exec.state.ttl"]) == ("1 d", "2 d"), "the job's own come first"
    assert run.pushed["check", "summary"]["ground"] == "read from the script, undecided by Flink 2.3.0"


def test_operators_of_the_running_job_tell_how_many_subtasks_it_has(
    shown: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one subtask the operators would be others, and the change refused; the job has several."""
    worker_plans(monkeypatch, answer("a"), answer("x"), answer("b", "c"), answer("b", "c"))
    run, *_ = shown.checked(script(size=5))
    summary = run.pushed["check", "summary"]
    report = shown.ledger.read_report(summary["report"])[0]
    assert (summary["ground"], report["warnings"]) == ("read from the script, undecided by Flink 2.3.0", [])


def test_a_job_with_other_operators_has_other_settings(shown: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    worker_plans(monkeypatch, answer("b"))
    run, *_ = shown.checked(script(size=5))
    summary = run.pushed["check", "summary"]
    assert summary["ground"] == "read from the script"
    assert "runs with different settings" in shown.ledger.read_report(summary["report"])[1]
    planner_compiles(monkeypatch, "w-size-1to2-ws")
    run, *_ = shown.checked(script(size=6), check={"explain_plan": True})
    summary = run.pushed["check", "summary"]
    assert summary["ground"] == "planned by Flink 2.3", "the target knows its own settings"
    assert "runs with different settings" in shown.ledger.read_report(summary["report"])[1]


def test_a_target_that_does_not_answer_is_planned_without(
    shown: Site, monkeypatch: pytest.MonkeyPatch, logs: list[Any]
) -> None:
    def silent(*_: Any) -> Any:
        raise TargetError("the JobManager does not answer")

    monkeypatch.setattr(FakeCluster, "cluster_options", silent)
    worker_plans(monkeypatch, answer("z"))
    run, *_ = shown.checked(script(size=5))
    assert run.pushed["check", "summary"]["ground"] == "read from the script, undecided by Flink 2.3.0"
    assert any("the JobManager does not answer" in record["event"] for record in logs)


def test_jars_are_sought_in_the_folder_of_the_dag(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    (deployed.folder / "lib").mkdir()
    for name in ("kafka.jar", "avro.jar"):
        (deployed.folder / "lib" / name).touch()
    asked = worker_plans(monkeypatch, answer("a"))
    monkeypatch.setenv(NETWORK_VARIABLE, "")  # whatever the gate sets is undone
    monkeypatch.delenv(NETWORK_VARIABLE)
    deployed.checked(script(size=5), check={"jars": ["{{ 'lib' }}/*.jar"], "planner_network": "allow"})
    assert os.environ[NETWORK_VARIABLE] == "allow"
    assert asked[0]["jars"] == [str(deployed.folder / "lib" / name) for name in ("avro.jar", "kafka.jar")]
    with pytest.raises(AirflowFailException, match=r"jars: found no udf/\*\.jar; looked in "):
        deployed.checked(script(size=6), check={"jars": ["udf/*.jar"]})
    with pytest.raises(ValueError, match="write a list of paths"):
        deployed.checked(script(), check={"jars": "lib/kafka.jar"})


def test_the_mode_is_one_of_three(deployed: Site) -> None:
    with pytest.raises(ValueError, match="planner 'often' is not one of auto, always, never"):
        deployed.checked(script(), check={"planner": "often"})
    with pytest.raises(AirflowFailException, match="planner 'often' is not one of auto, always, never"):
        deployed.checked(script(), check={"planner": "{{ 'often' }}"})


def test_the_verdict_stands_outside_the_folded_details(deployed: Site, logs: list[Any]) -> None:
    deployed.checked(script(size=5))
    lines = [record["event"] for record in logs]
    assert all("\n" not in line for line in lines)
    opened, closed = lines.index("::group::All findings"), lines.index("::endgroup::")
    (verdict,) = [index for index, line in enumerate(lines) if line.startswith("Verdict: incompatible")]
    assert verdict < opened < closed
    assert any("window-changed" in line for line in lines[verdict:opened])
    assert any("window-changed" in line for line in lines[opened:closed])


def test_a_script_that_cannot_be_used_fails_for_good_and_is_remembered(deployed: Site) -> None:
    with pytest.raises(AirflowFailException, match=r"orders\.sql: contains no SQL statement"):
        deployed.checked("-- nothing\n")
    last = deployed.ledger.entries()[-1]
    assert (last.kind, last.to_dict()["script"]) == ("failed", "")
    assert "no SQL statement" in last.message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"branches": {**BRANCHES, "resum": "x"}}, "unknown 'resum'"),
        ({"branches": {"first": "a", "resume": "b", "restart": "c"}}, "'approve' missing"),
        ({"branches": {**BRANCHES, "restart": []}}, "'restart' missing"),
        ({"branches": BRANCHES, "policy": {"compatibel": "resume"}}, "unknown outcome 'compatibel'"),
        ({"branches": BRANCHES, "policy": {"partial": "go"}}, "partial has the unknown branch 'go'"),
        ({"branches": BRANCHES, "policy": {"incompatible": "resume"}}, "must not resume without approval"),
        ({"branches": BRANCHES, "engine": "spark"}, "engine 'spark'"),
        ({"branches": BRANCHES, "planner_network": "yes"}, "planner_network 'yes' is not one of allow, refuse"),
    ],
)
def test_wrong_arguments_are_named_when_the_dag_is_parsed(arguments: Any, message: str) -> None:
    with DAG("d"), pytest.raises(ValueError, match=message):
        FlinkSqlCompatibilityOperator(task_id="check", deployment="orders", script="x.sql", **arguments)


# -- where a script comes from


def run_check(site: Site, text: str, **arguments: Any) -> Any:
    run, tasks = Run(), site.tasks(script=text, **arguments)
    run.execute(tasks["check"])
    return run.pushed["check", "summary"]


def test_a_script_is_text_a_relative_file_or_an_absolute_one(site: Site) -> None:
    site.propose(script())
    texts = (script(), "orders.sql", str(site.folder / "orders.sql"))
    assert len({run_check(site, text)["new_sha256"] for text in texts}) == 1


def test_a_file_is_a_template_and_may_include_others(site: Site) -> None:
    (site.folder / "size.sql").write_text("5")
    site.propose(script(size=7).replace("'7'", "'{% include 'size.sql' %}'"))
    assert run_check(site, "orders.sql")["new_sha256"] == run_check(site, script(size=5))["new_sha256"]


@pytest.mark.parametrize("kind", [tuple, list])
def test_several_files_of_a_catalog_are_what_commands_make_of_them(site: Site, kind: Callable[..., Any]) -> None:
    """What is deployed, and waivers, are bound to the digest of it."""
    texts = {"a.sql": "CREATE TABLE a (b INT) WITH ('connector' = 'print')", "b.sql": "-- c\nCREATE TABLE b (c INT);\n"}
    for name, text in texts.items():
        (site.folder / name).write_text(text, encoding="utf-8")
    joined, sources = join_ddl(texts.items())
    assert sources == (("a.sql", 2), ("b.sql", 3))
    of_files = run_check(site, script(), catalog=kind(texts))["new_sha256"]
    assert of_files == run_check(site, script(), catalog=joined)["new_sha256"]
    assert of_files != run_check(site, script(), catalog=kind(reversed(texts)))["new_sha256"]
    with pytest.raises(
        AirflowFailException, match=r"catalog: each item of a list must be the path of a file that ends in \.sql"
    ):
        run_check(site, script(), catalog=kind(["a.sql", texts["b.sql"]]))


def test_a_program_is_no_catalog(site: Site) -> None:
    (site.folder / "job.py").write_text("x = 1")
    with pytest.raises(AirflowFailException, match=r"job\.py: is a program of the Table API; an SQL"):
        run_check(site, script(), catalog="job.py")


def test_a_file_is_read_when_the_task_runs(site: Site) -> None:
    site.propose(script())
    tasks = site.tasks()
    tasks["check"].resolve_template_files()  # as when the DAG is parsed
    site.propose(script(size=5))
    run = Run()
    run.execute(tasks["check"])
    assert run.pushed["check", "summary"]["new_sha256"] == run_check(site, script(size=5))["new_sha256"]


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda _path: None, r"'orders\.sql' does not exist; looked in .*absolute path"),
        (lambda path: path.write_bytes(b"-- \xff\n"), r"orders\.sql:1: is not UTF-8"),
        (lambda path: path.mkdir(), r"'orders\.sql' does not exist"),
    ],
)
def test_a_missing_file_is_named_with_the_places_looked_at(site: Site, prepare: Any, message: str) -> None:
    prepare(Path(site.folder) / "orders.sql")
    with pytest.raises(AirflowFailException, match=message):
        run_check(site, "orders.sql")


def test_an_unknown_kind_of_function_is_named(site: Site) -> None:
    with pytest.raises(AirflowFailException, match="function 'f' has the unknown kind 'scaler'"):
        run_check(site, script(), functions={"f": "scaler:python"})


# ------------------------------------------------------------------------------------------------ what is noted of it
def checks(site: Site) -> list[CheckedEntry]:
    return [entry for entry in site.ledger.entries() if isinstance(entry, CheckedEntry)]


def test_a_check_is_noted_with_its_branch_and_what_the_policy_said(deployed: Site) -> None:
    (first,) = checks(deployed)
    assert (first.branch, first.policy, first.review.outcome) == ("first", None, None)
    run, _tasks, _ = deployed.checked(script(size=5))
    summary, noted = run.pushed["check", "summary"], checks(deployed)[-1]
    assert (noted.branch, noted.policy) == ("restart", "restart")
    assert (noted.review.outcome, noted.review.report_path) == ("incompatible", summary["report"])
    assert (noted.version.sha256, noted.owner) == (summary["new_sha256"], "airflow:gate/run-1/check")
    assert noted.message == "incompatible: against the version of entry 5"
    assert checks(deployed) == [first, noted]


def test_a_retry_that_finds_the_same_notes_nothing_and_another_run_does(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5), **ASKING)
    seen, link = checks(deployed), tasks["check"].change_url
    run.execute(tasks["check"])
    assert (checks(deployed), tasks["check"].change_url) == (seen, link)
    assert link.endswith(f"&change={seen[-1].number}")
    run.complete(tasks["approve"], event(REJECT))
    run.execute(tasks["check"])
    assert len(checks(deployed)) == len(seen) + 1, "it was decided since, and is asked again"
    Run("run-2").execute(tasks["check"])
    assert len(checks(deployed)) == len(seen) + 2
    deployed.checked(script(size=6), **ASKING)
    assert len(checks(deployed)) == len(seen) + 3, "another version"


def test_what_changes_nothing_is_noted_once_by_a_retry(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(), check=DEFAULTS)
    run.execute(tasks["check"])
    assert [entry.branch for entry in checks(deployed)] == ["first", "unchanged"]


def test_the_proposed_script_is_kept_with_the_report(deployed: Site) -> None:
    run, _tasks, _ = deployed.checked(script(size=5), check={"engine": "vvr"})
    kept = deployed.ledger.read_proposed(run.pushed["check", "report"])
    assert kept is not None
    assert (kept.script.rstrip(), kept.engine, kept.source) == (script(size=5).rstrip(), "vvr", "orders.sql")


def test_where_a_version_comes_from_goes_with_it_to_what_runs(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "git_origin", lambda paths, _bundle: GitOrigin("c0ffee", f"ann of {len(paths)}"))
    run, tasks, _ = deployed.checked(script(size=5), owner="ben", check={"team": "{{ 'pay' }}ments"})
    want = Origin("c0ffee", "ann of 1", "payments", "ben")
    assert checks(deployed)[-1].origin == want
    run.execute(tasks["restart"])
    assert [entry.origin for entry in deployed.ledger.entries()[-6:] if isinstance(entry, StepEntry)] == [want] * 6
    # A way back is to what ran before, and to where that came from.
    run, tasks, _ = deployed.checked(script(size=6))
    deployed.cluster.fail = "restore"
    with pytest.raises(AirflowFailException, match="Rolled back"):
        run.execute(tasks["restart"])
    head = deployed.ledger.head()
    assert head is not None
    assert (head.kind, head.origin) == ("rolled-back", want)


def test_that_no_commit_is_known_is_said(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "git_origin", lambda *_: GitOrigin(why="its files have edits"))
    deployed.checked(script(size=5))
    noted = checks(deployed)[-1]
    assert noted.message.endswith("; the commit is unknown: its files have edits")
    assert noted.origin == Origin()


GROUP = SAVEPOINTS / "2.3" / "group"


@pytest.mark.parametrize(
    ("kind", "place", "read"),
    [("savepoint", GROUP, True), ("completed", GROUP, True), ("savepoint", "s3-not-here", False)],
)
def test_the_gate_restores_what_the_last_savepoint_holds(
    shown: Site, monkeypatch: pytest.MonkeyPatch, kind: str, place: str | Path, read: bool
) -> None:
    head = shown.ledger.head()
    assert head is not None
    shown.cluster.states[str(head.job_id), kind] = SnapshotStats(Snapshot(str(place)))
    job = read_job(str(GROUP))
    savepoint = b64encode(SavepointMetadata(job.format, 1, (), (), b"").to_bytes()).decode()
    planned = answer("b", "c", *job.stateful)
    planned["jobs"][0]["savepoint"] = savepoint
    asked = worker_plans(monkeypatch, planned)
    run, *_ = shown.checked(script(size=5))
    (restored,) = asked[1]["restore"]
    stored = {each.id for each in parse_metadata(b64decode(restored)).operators}
    assert (stored >= job.stateful) == read
    warnings = shown.ledger.read_report(run.pushed["check", "summary"]["report"])[0]["warnings"]
    unread = [each for each in warnings if "the stored state cannot be read" in each]
    assert len(unread) == (not read)
    assert all("s3-not-here/_metadata cannot be read from here (FileNotFoundError)" in each for each in unread)
    known = shown.ledger.read_report(run.pushed["check", "summary"]["report"])[0]["context"]
    assert known["stored"] == "", "no person is asked"
    asked.clear()
    shown.checked(script(), check={"redeploy_unchanged": True})
    assert asked == [], "nothing is restored"


def test_the_person_who_decides_sees_the_numbers_of_stored_state(shown: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    head = shown.ledger.head()
    assert head is not None
    shown.cluster.states[str(head.job_id), "savepoint"] = SnapshotStats(Snapshot(str(GROUP)))
    job = read_job(str(GROUP))
    planned = answer("b", "c", *job.stateful)
    planned["jobs"][0]["savepoint"] = b64encode(SavepointMetadata(job.format, 1, (), (), b"").to_bytes()).decode()
    worker_plans(monkeypatch, planned)
    run, *_ = shown.checked(script(size=5), check={"policy": {"incompatible": "approve"}})
    summary = run.pushed["check", "summary"]
    assert summary["branch"] == "approve"
    report, markdown = shown.ledger.read_report(summary["report"])
    VALIDATOR.validate(report)
    assert report["context"]["stored"] == "GroupAggregate: 5 keys, 826 bytes."
    assert "\nStored state: GroupAggregate: 5 keys, 826 bytes.\n" in markdown


def test_a_checkpoint_that_flink_deletes_during_the_check_is_replaced_by_the_then_latest_one(
    shown: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    head = shown.ledger.head()
    assert head is not None
    first, latest = copytree(GROUP, tmp_path / "chk-1"), (str(head.job_id), "completed")
    shown.cluster.states[latest] = SnapshotStats(Snapshot(str(first)))
    job = read_job(str(GROUP))
    planned = answer("b", "c", *job.stateful)
    planned["jobs"][0]["savepoint"] = b64encode(SavepointMetadata(job.format, 1, (), (), b"").to_bytes()).decode()
    worker_plans(monkeypatch, planned)
    planner = questions.daemon(installation.find("2.3"))

    def ask(question: Any) -> Any:
        if first.exists():
            rmtree(first)
            shown.cluster.states[latest] = SnapshotStats(Snapshot(str(GROUP)))
        return planner.ask(question)

    monkeypatch.setattr(questions, "daemon", lambda _: SimpleNamespace(ask=ask))
    run, *_ = shown.checked(script(size=5), check={"policy": {"incompatible": "approve"}})
    report, _ = shown.ledger.read_report(run.pushed["check", "summary"]["report"])
    assert not first.exists()
    assert report["context"]["stored"] == "GroupAggregate: 5 keys, 826 bytes."
