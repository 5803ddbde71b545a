"""Deploying acts on what was checked, and on nothing else."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, TaskDeferred
from airflow.providers.standard.operators import hitl
from airflow.sdk import DAG, Connection

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.links import FlinkChangeLink, FlinkJobLink
from airflow_flinkcompat.airflow.operators import FlinkSqlCompatibilityOperator, FlinkSqlDeployOperator
from airflow_flinkcompat.airflow.triggers.deploy import FlinkJobTrigger
from airflow_flinkcompat.compat.hand_over import HandOver, SourceStart
from airflow_flinkcompat.deploy.errors import TargetError
from airflow_flinkcompat.deploy.ledger.entries import Review
from airflow_flinkcompat.deploy.target import Sources, SourceTable
from airflow_flinkcompat.model import JobSpec
from tests.support.airflow.operators.fakes import Run, script
from tests.support.airflow.operators.versions import AwaitingAnswer
from tests.unit.airflow.operators.conftest import Site
from tests.unit.airflow.operators.test_approval import event


def test_the_first_deployment_starts_empty(site: Site) -> None:
    run, tasks, _ = site.checked(script())
    result = run.execute(tasks["first"])
    assert site.cluster.starts[-1][1].savepoint is None
    assert (result["job_id"], result["deployment"]) == ("job-1", "orders")
    assert "script" not in result
    head = site.ledger.head()
    assert head is not None
    assert head.sha256 == run.pushed["check", "summary"]["new_sha256"]
    assert head.owner == "airflow:gate/run-1/first"


def test_resume_starts_from_the_savepoint_of_the_stopped_job(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script())
    result = run.execute(tasks["resume"])
    assert deployed.cluster.now == {"job-1": "FINISHED", "job-2": "RUNNING"}
    assert result["savepoint"] == deployed.cluster.starts[-1][1].savepoint == "file:/sp/orders/job-2/job-1"


def test_restart_starts_empty_and_records_the_verdict(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    run.execute(tasks["restart"])
    assert deployed.cluster.starts[-1][1].savepoint is None
    head = deployed.ledger.head()
    assert head is not None
    summary = run.pushed["check", "summary"]
    assert head.review == Review("incompatible", summary["report"])


def test_a_retry_finds_what_its_earlier_try_deployed(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    first = run.execute(tasks["restart"])
    assert run.execute(tasks["restart"]) == first
    assert deployed.cluster.now == {"job-1": "FINISHED", "job-2": "RUNNING"}
    deployed.cluster.end("job-2", "FAILED")
    with pytest.raises(AirflowFailException, match="Check the change again"):
        run.execute(tasks["restart"])


def test_a_script_edited_after_the_check_is_refused(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    deployed.propose(script(size=6))
    with pytest.raises(AirflowFailException, match="differs from the checked one"):
        run.execute(tasks["restart"])
    assert deployed.cluster.now == {"job-1": "RUNNING"}


def test_a_script_edited_while_its_redeploy_is_at_work_does_not_leave_the_job_stopped(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    checked = run.pushed["check", "summary"]["new_sha256"]

    def die() -> None:
        raise KeyboardInterrupt

    deployed.cluster.before["submit"] = die
    with pytest.raises(KeyboardInterrupt):
        run.execute(tasks["restart"])
    assert deployed.cluster.now == {"job-1": "FINISHED"}
    deployed.propose(script(size=6))
    other = Run("other")
    with pytest.raises(AirflowFailException):
        other.execute(deployed.tasks()["restart"])
    assert run.execute(deployed.tasks()["restart"])["sha256"] == checked
    assert deployed.cluster.now == {"job-1": "FINISHED", "job-2": "RUNNING"}


def test_the_links_lead_to_the_ui(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = json.dumps({"ui_url": "https://flink.example.com/team/"})
    connection = Connection(conn_id="flink_default", conn_type="flink", host="gw", extra=extra)
    monkeypatch.setattr(FlinkHook, "get_connection", staticmethod(lambda _conn_id: connection))
    run, tasks, _ = deployed.checked(script(size=5))
    result = run.execute(tasks["restart"])
    page = "https://flink.example.com/team/#/job/running/{}/overview"
    assert tasks["check"].job_url == page.format("job-1")
    assert (tasks["restart"].job_url, result["job_url"]) == (page.format("job-2"),) * 2


def test_settings_are_part_of_what_was_checked(deployed: Site) -> None:
    run, _tasks, _ = deployed.checked(script(size=5))
    other = deployed.tasks(settings={"parallelism.default": "2"})
    with pytest.raises(AirflowFailException, match="differs from the checked one"):
        run.execute(other["restart"])


def test_a_ledger_that_went_on_is_refused(deployed: Site) -> None:
    early, tasks, _ = deployed.checked(script(size=5))
    late = Run("other")
    late.execute(deployed.tasks()["check"])
    late.execute(deployed.tasks()["restart"])
    with pytest.raises(AirflowFailException, match="Check the change again"):
        early.execute(tasks["restart"])
    assert deployed.cluster.now["job-2"] == "RUNNING"


def test_a_job_that_is_not_the_ledgers_is_refused(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    deployed.cluster.end("job-1", "FAILED")
    with pytest.raises(AirflowFailException, match=r"job-1 .* is FAILED"):
        run.execute(tasks["restart"])


def test_without_a_check_nothing_is_deployed(site: Site) -> None:
    site.propose(script())
    with pytest.raises(AirflowFailException, match="only a version that this run checked"):
        Run().execute(site.tasks()["first"])
    assert site.cluster.now == {}


def test_the_check_of_another_deployment_does_not_count(site: Site) -> None:
    run, tasks, _ = site.checked(script())
    tasks["first"].deployment = "clicks"
    with pytest.raises(AirflowFailException, match=r"only others: check \(orders\)"):
        run.execute(tasks["first"])


def test_the_approver_goes_into_the_ledger(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5), check={"policy": {"incompatible": "approve"}})
    sha256 = run.pushed["check", "summary"]["new_sha256"]
    run.pushed["approve", "decision"] = {"choice": "restart", "by": "ada", "new_sha256": sha256}
    run.execute(tasks["restart"])
    head = deployed.ledger.head()
    assert head is not None
    assert head.review.approved_by == "ada"


def test_a_decision_after_a_shadow_run_counts_whatever_the_check_chose(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script() + "-- a comment", check={"redeploy_unchanged": True})
    summary = run.pushed["check", "summary"]
    assert summary["branch"] == "resume"
    run.pushed["approve", "decision"] = {"choice": "reject", "by": "ada", "new_sha256": summary["new_sha256"]}
    with pytest.raises(AirflowFailException, match="is 'reject'"):
        run.execute(tasks["resume"])
    run.pushed["approve", "decision"]["choice"] = "resume"
    run.execute(tasks["resume"])
    head = deployed.ledger.head()
    assert head is not None
    assert head.review.approved_by == "ada"


def test_an_approval_of_another_version_is_no_approval(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5), check={"policy": {"incompatible": "approve"}})
    run.pushed["approve", "decision"] = {"choice": "restart", "by": "ada", "new_sha256": "another"}
    with pytest.raises(AirflowFailException, match="was not approved"):
        run.execute(tasks["restart"])
    assert deployed.cluster.now == {"job-1": "RUNNING"}


def test_literal_secrets_are_refused_and_remembered(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the check let them pass, which it does not do any more."""
    monkeypatch.setattr(FlinkSqlCompatibilityOperator, "_require_deployable", lambda *_: None)
    secret = script(size=5).replace("'/out'", "'/out', 'password' = 'planted-pw'")
    run, tasks, _ = deployed.checked(secret)
    with pytest.raises(AirflowFailException, match="secrets in plain text") as caught:
        run.execute(tasks["restart"])
    assert "planted-pw" not in str(caught.value)
    assert deployed.kinds()[-1] == "failed"
    assert deployed.cluster.now == {"job-1": "RUNNING"}


def test_what_the_engine_refuses_is_remembered(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    deployed.cluster.refuse = TargetError("orders.sql:5:1: no such column; 'password' = 'planted-pw'")
    with pytest.raises(AirflowException, match="no such column") as caught:
        run.execute(tasks["restart"])
    assert "planted-pw" not in str(caught.value)
    last = deployed.ledger.entries()[-1]
    assert (last.kind, last.version.sha256) == ("failed", run.pushed["check", "summary"]["new_sha256"])
    assert "planted-pw" not in last.message


def test_the_link_leads_to_the_job(site: Site) -> None:
    run, tasks, _ = site.checked(script())
    task = tasks["first"]
    (link,) = (each for each in task.operator_extra_links if isinstance(each, FlinkJobLink))
    assert link.get_link(task, ti_key=None) == ""
    run.execute(task)
    assert link.get_link(task, ti_key=None) == "http://jm:8081/#/job/running/job-1/overview"


def test_check_approval_and_deploy_link_to_the_change(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://example.org/airflow/")
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **_: None)
    run, tasks, _ = deployed.checked(script(size=5), check={"policy": {"incompatible": "approve"}})
    with pytest.raises(AwaitingAnswer):
        run.execute(tasks["approve"])
    run.complete(tasks["approve"], event("Restart without state"))
    run.execute(tasks["restart"])
    checked = next(each for each in reversed(deployed.ledger.entries()) if each.kind == "checked")
    place = f"ledger={deployed.ledger.id}&deployment=orders&change={checked.number}"
    for name in ("check", "approve", "restart"):
        (link,) = (each for each in tasks[name].operator_extra_links if isinstance(each, FlinkChangeLink))
        assert link.get_link(tasks[name], ti_key=None) == f"/airflow/plugin/flink?{place}"


def test_a_killed_deployment_says_how_far_it_came(deployed: Site, logs: list[Any]) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    tasks["restart"].on_kill()
    assert "nothing was changed yet" in logs[-1]["event"]
    run.execute(tasks["restart"])
    tasks["restart"].on_kill()
    assert "deployed: job job-2 is RUNNING" in logs[-1]["event"]


def test_an_unknown_start_mode_is_named() -> None:
    with DAG("d"), pytest.raises(ValueError, match="start_mode 'savepint'"):
        FlinkSqlDeployOperator(task_id="d", deployment="o", script="x.sql", start_mode="savepint")


@pytest.mark.parametrize(("decision", "task"), [(None, "resume"), ({"choice": "restart", "by": "ada"}, "resume")])
def test_a_restart_is_never_turned_into_a_resume(deployed: Site, decision: dict[str, str] | None, task: str) -> None:
    policy = {"incompatible": "approve" if decision else "restart"}
    run, tasks, _ = deployed.checked(script(size=5), check={"policy": policy})
    if decision:
        sha256 = run.pushed["check", "summary"]["new_sha256"]
        run.pushed["approve", "decision"] = {**decision, "new_sha256": sha256}
    with pytest.raises(AirflowFailException, match="the decision on orders is 'restart'"):
        run.execute(tasks[task])
    assert deployed.cluster.now == {"job-1": "RUNNING"}


def test_a_job_goes_on_from_a_backfill_of_its_own_script(deployed: Site) -> None:
    source = SourceStart("orders", "ts", 5000, "2026-01-01 23:59:55", "2026-01-02 00:00:05")
    record = HandOver("2026-01-02 00:00:00", (source,), (), JobSpec(script(size=5)).part_digests(), "2026-01-03")
    run, tasks, _ = deployed.checked(script(size=5), hand_over=record.to_dict())
    run.execute(tasks["restart"])
    head = deployed.ledger.head()
    assert head is not None
    assert HandOver.from_dict(head.hand_over) == record
    run, tasks, _ = deployed.checked(script(size=6), hand_over=record.to_json())
    with pytest.raises(AirflowFailException, match="computed with different values of script"):
        run.execute(tasks["restart"])


def test_a_long_wait_goes_on_in_the_triggerer(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    tasks["restart"].settle_seconds, tasks["restart"].patience = 60, 0.1
    tasks["restart"].target = "sql-gateway"
    with pytest.raises(TaskDeferred) as deferred:
        run.execute(tasks["restart"])
    assert deferred.value.method_name == "execute_complete"
    trigger = deferred.value.trigger
    assert isinstance(trigger, FlinkJobTrigger)
    assert trigger.target == "sql-gateway"
    assert (trigger.wait["job_id"], trigger.settle_seconds) == ("job-2", 60)
    assert trigger.wait["proven_since"] == pytest.approx(time.time(), abs=5)
    assert deployed.kinds()[-1] == "started"

    # Taken up again it neither validates nor claims anew, and what was proved then still counts.
    before = len(deployed.kinds())
    event = {"wait": {**trigger.wait, "proven_since": trigger.wait["proven_since"] - 60}}
    assert run.complete(tasks["restart"], event)["job_id"] == "job-2"
    assert deployed.kinds()[before:] == ["deployed"]
    assert deployed.cluster.calls.count("validate") == 2


def test_a_worker_that_is_to_wait_does_so(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    tasks["restart"].settle_seconds, tasks["restart"].patience = 0.5, 0.1
    tasks["restart"].deferrable = False
    assert run.execute(tasks["restart"])["job_id"] == "job-2"


def test_a_rollback_is_told_to_its_notifiers_and_another_failure_is_not(deployed: Site) -> None:
    told: list[Any] = []
    run, tasks, _ = deployed.checked(script(size=5))
    task = tasks["restart"]
    task.rollback_notifiers = (lambda context: told.append(context["flinkcompat"]),)
    deployed.propose(script(size=6))
    with pytest.raises(AirflowFailException, match="differs from the checked one"):
        run.execute(task)
    assert told == []
    run, tasks, _ = deployed.checked(script(size=5))
    tasks["restart"].rollback_notifiers = task.rollback_notifiers
    deployed.cluster.fail = "restore"
    with pytest.raises(AirflowFailException, match="Rolled back"):
        run.execute(tasks["restart"])
    (said,) = told
    assert (said["event"], said["deployment"], said["outcome"]) == ("rolled back", "orders", "incompatible")
    assert "Rolled back: the script of entry 5 runs again as job job-3" in said["why"]


def test_what_was_rolled_back_is_not_tried_again(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    deployed.cluster.fail = "restore"
    with pytest.raises(AirflowFailException, match="Rolled back: the script of entry 5 runs again as job job-3"):
        run.execute(tasks["restart"])
    assert deployed.cluster.now == {"job-1": "FINISHED", "job-2": "CANCELED", "job-3": "RUNNING"}


ORDERS = SourceTable(("default_catalog", "default_database", "orders"), "kafka", {"topic": "t"})


@pytest.mark.parametrize("given", ["latest", {"orders": "{{ 'latest' }}"}, '{"orders": "latest"}'])
def test_source_offsets_go_to_the_start_and_into_its_result(deployed: Site, given: Any) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    deployed.cluster.reads[script(size=5).strip()] = Sources((ORDERS,))
    task = tasks["restart"]
    task.source_offsets = given
    result = run.execute(task)
    assert deployed.cluster.starts[-1][1].tables == {ORDERS.path: {"scan.startup.mode": "latest-offset"}}
    assert [row["choice"] for row in result["offsets"]] == ["latest"]


def test_source_offsets_that_come_too_late_to_be_seen_before_fail_for_good(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    deployed.cluster.reads[script(size=5).strip()] = Sources((ORDERS,))
    tasks["restart"].source_offsets = "{{ 'newest' }}"
    with pytest.raises(AirflowFailException, match="'newest' are unknown"):
        run.execute(tasks["restart"])
    assert deployed.cluster.now == {"job-1": "RUNNING"}


@pytest.mark.parametrize(
    ("mode", "given", "words"),
    [
        ("stateless", "newest", "source_offsets: source offsets 'newest' are unknown"),
        ("stateless", {"orders": "2026-01-31T00:00:00"}, "have no time zone"),
        ("savepoint", "earliest", "Flink ignores other start offsets"),
        ("checkpoint", {"orders": "script"}, "Flink ignores"),
    ],
)
def test_source_offsets_that_cannot_be_are_an_import_error(mode: str, given: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        FlinkSqlDeployOperator(task_id="t", deployment="orders", script="x.sql", start_mode=mode, source_offsets=given)
