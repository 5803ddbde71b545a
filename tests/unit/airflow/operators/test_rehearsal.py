"""The rehearsal's task: what it hands on, and what it fails on."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, TaskDeferred
from airflow.sdk import DAG, Connection
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.triggers.base import BaseTrigger

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.operators import FlinkRestoreRehearsalOperator
from airflow_flinkcompat.airflow.triggers.deploy import FlinkRehearsalTrigger
from airflow_flinkcompat.deploy import Ledger, LedgerError, Wait
from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, JobStart, RehearsedEntry
from airflow_flinkcompat.deploy.rehearsal import sequence
from airflow_flinkcompat.deploy.rehearsal.report import Rehearsal
from airflow_flinkcompat.deploy.rehearsal.waiting import Paused
from airflow_flinkcompat.model import JobSpec, RehearsalFinding
from tests.support.airflow.operators.fakes import Run, script
from tests.support.airflow.operators.versions import TaskDeferralError
from tests.unit.airflow.operators.conftest import Site


def rehearse(site: Site, **arguments: Any) -> tuple[Run, Any]:
    """The operator on version two of the script, in its DAG."""
    site.propose(script(size=5))
    common = {"deployment": "orders", "ledger": str(site.folder / "ledger")}
    with DAG("rehearsal", default_args=common, template_searchpath=str(site.folder)):
        task = FlinkRestoreRehearsalOperator(task_id="rehearse", script="orders.sql", **arguments)
    return Run(), task


@pytest.fixture(autouse=True)
def connection(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection of the site; it comes after the site's own stand-ins."""
    flink = Connection(conn_id="flink_default", conn_type="flink", host="gateway", port=8083, password="planted-token")
    monkeypatch.setattr(FlinkHook, "get_connection", staticmethod(lambda _conn_id: flink))


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Callable[[Rehearsal | Exception], list[tuple[Any, ...]]]:
    """Stands in for the rehearsal; what it was asked with."""

    def answer(found: Rehearsal | Exception) -> list[tuple[Any, ...]]:
        asked = []

        def instead(*arguments: Any) -> Rehearsal:
            asked.append(arguments)
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(sequence, "rehearse", instead)
        return asked

    return answer


def test_the_ledgers_job_and_both_scripts_are_rehearsed(
    deployed: Site, found: Callable[..., Any], logs: list[Any]
) -> None:
    asked = found(Rehearsal(RehearsalFinding.REFUSED, "Cannot map 'password' = 'planted-pw'", at="submit"))
    run, task = rehearse(deployed, savepoint_directory="file:/s", settle_seconds=1, start_timeout=2)
    result = run.execute(task)
    ((cluster, job_id, old, new, options, _log, state),) = asked
    assert state is None
    assert (job_id, old.script.strip(), new.script.strip()) == ("job-1", script().strip(), script(size=5).strip())
    assert (options.savepoint_directory, options.timeouts.settle, options.timeouts.start) == ("file:/s", 1, 2)
    # Before Airflow 3.3 nothing is left to the triggerer, which is told no kill.
    assert options.timeouts.here == (20 if hasattr(BaseTrigger, "on_kill") else None)
    assert cluster.location.target == "sql-gateway"
    assert cluster.location.addresses == {"gateway": "http://gateway:8083", "jobmanager": "http://jm:8081"}
    assert cluster.location.settings["password"] == "planted-token", "the watcher opens the target as this process does"
    assert (result["finding"], result["at"], result["deployment"]) == ("refused", "submit", "orders")
    assert result["new_sha256"] == new.sha256
    text = "\n".join(record["event"] % record.get("positional_args", ()) for record in logs)
    assert "refused at submit" in text
    assert "planted-pw" not in f"{text}{result}"


def test_findings_to_fail_on(deployed: Site, found: Callable[..., Any]) -> None:
    found(Rehearsal(RehearsalFinding.INCONCLUSIVE, "no slots"))
    run, task = rehearse(deployed, fail_on=("refused", "could not tell"))
    with pytest.raises(AirflowFailException, match="no slots"):
        run.execute(task)
    with DAG("d"), pytest.raises(ValueError, match="fail_on 'refuse' is not one of refused, restored"):
        FlinkRestoreRehearsalOperator(task_id="r", deployment="o", script="x.sql", fail_on=("refuse",))


@pytest.mark.parametrize("fail_on", [(), ("refused",)])
def test_what_was_found_is_noted_before_a_version_is_turned_down(
    deployed: Site, found: Callable[..., Any], fail_on: Any
) -> None:
    before = len(deployed.kinds())
    found(Rehearsal(RehearsalFinding.REFUSED, "Cannot map 'password' = 'planted-pw'", at="submit"))
    run, task = rehearse(deployed, fail_on=fail_on)
    with pytest.raises(AirflowFailException) if fail_on else nullcontext():
        run.execute(task)
    noted, *failed = deployed.ledger.entries()[before:]
    assert [entry.kind for entry in failed] == ["failed"] * len(fail_on)
    assert isinstance(noted, RehearsedEntry)
    assert (noted.rehearsal["finding"], noted.rehearsal["at"]) == ("refused", "submit")
    assert noted.message.startswith("REHEARSAL: ")
    assert noted.owner == "airflow:rehearsal/run-1/rehearse"
    assert "planted-pw" not in str(noted.to_dict())


def test_nothing_deployed_is_nothing_to_tell(site: Site, found: Callable[..., Any]) -> None:
    asked = found(Rehearsal(RehearsalFinding.RESTORED))
    run, task = rehearse(site)
    result = run.execute(task)
    assert (result["finding"], asked) == ("could not tell", [])
    assert "orders has no deployed job" in result["reason"]


def test_a_cluster_that_does_not_answer_may_be_asked_again(deployed: Site, found: Callable[..., Any]) -> None:
    found(DeployError("the JobManager does not answer"))
    run, task = rehearse(deployed)
    with pytest.raises(AirflowException, match="does not answer") as caught:
        run.execute(task)
    assert not isinstance(caught.value, AirflowFailException)


# --- waits in the triggerer -------------------------------------------------------------------------------------------

STATE = {"done": {"token": "t"}, "started": [{"verb": "start", "request_id": "1" * 32}]}


def paused(proven_since: float | None = None) -> Paused:
    return Paused("waiting: job 1 to go on", Wait("1" * 32, time.time(), time.time() + 60, None, proven_since), STATE)


@pytest.fixture
def abandoned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was ended without a finding."""
    seen: list[Any] = []
    monkeypatch.setattr(sequence, "abandon", lambda _cluster, state, *, timeout: seen.append(state) or [])
    return seen


@pytest.mark.parametrize("settles", [True, False])
def test_a_long_wait_goes_on_in_the_triggerer(deployed: Site, found: Callable[..., Any], settles: bool) -> None:
    found(paused(time.time() if settles else None))
    run, task = rehearse(deployed, settle_seconds=30)
    with pytest.raises(TaskDeferred) as deferred:
        run.execute(task)
    trigger, more = deferred.value.trigger, deferred.value.kwargs
    assert isinstance(trigger, FlinkRehearsalTrigger)
    assert (trigger.settle_seconds, trigger.state, deferred.value.method_name) == (
        30 if settles else 0, STATE, "execute_complete",
    )  # fmt: skip
    assert FlinkRehearsalTrigger(**trigger.serialize()[1]).serialize() == trigger.serialize()

    # Somebody deploys meanwhile: the rehearsal is still that of the entry it began with.
    assert more is not None
    deployed.ledger.append(DeployedEntry(job=JobSpec("SELECT 1"), start=JobStart(job_id="job-9")))
    asked = found(Rehearsal(RehearsalFinding.RESTORED))
    context = run.render(task)
    assert (
        task.execute_complete(context, {"wait": trigger.wait}, **json.loads(json.dumps(more)))["finding"] == "restored"
    )
    ((_cluster, job_id, _old, new, _options, _log, state),) = asked
    assert (job_id, new.sha256, state) == ("job-1", more["sha256"], STATE)


def test_a_worker_that_is_to_wait_does_so(deployed: Site, found: Callable[..., Any]) -> None:
    asked = found(Rehearsal(RehearsalFinding.RESTORED))
    run, task = rehearse(deployed, deferrable=False)
    run.execute(task)
    assert asked[0][4].timeouts.here is None


def test_nothing_is_left_to_a_triggerer_that_no_kill_is_told_to(
    deployed: Site, found: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Airflow before 3.3: what was started would be left running."""
    monkeypatch.delattr(BaseTrigger, "on_kill", raising=False)
    asked = found(Rehearsal(RehearsalFinding.RESTORED))
    run, task = rehearse(deployed, deferrable=True)
    run.execute(task)
    assert asked[0][4].timeouts.here is None


def test_a_script_that_changed_meanwhile_ends_the_rehearsal(
    deployed: Site, found: Callable[..., Any], abandoned: list[Any]
) -> None:
    found(paused())
    run, task = rehearse(deployed)
    with pytest.raises(TaskDeferred) as deferred:
        run.execute(task)
    deployed.propose(script(size=6))
    _, task = rehearse(deployed)
    deployed.propose(script(size=6))
    with pytest.raises(AirflowFailException, match=r"differs from the rehearsed one .*changed in between"):
        task.execute_complete(run.render(task), {}, **(deferred.value.kwargs or {}))
    assert abandoned == [STATE]


def test_a_ledger_that_cannot_be_read_any_more_ends_it_too(
    deployed: Site, found: Callable[..., Any], abandoned: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found(paused())
    run, task = rehearse(deployed)
    with pytest.raises(TaskDeferred) as deferred:
        run.execute(task)
    monkeypatch.setattr(Ledger, "entries", lambda _self: (_ for _ in ()).throw(LedgerError("gone")))
    with pytest.raises(AirflowException, match="gone"):
        task.execute_complete(run.render(task), {}, **(deferred.value.kwargs or {}))
    assert abandoned == [STATE]


def test_a_wait_that_fails_ends_what_was_started(
    deployed: Site, found: Callable[..., Any], abandoned: list[Any]
) -> None:
    """The triggerer's own failure, or its time-out, brings the task back without what it had handed over."""
    found(paused())
    run, task = rehearse(deployed)
    with pytest.raises(TaskDeferred):
        run.execute(task)
    with pytest.raises(TaskDeferralError):
        task.resume_execution("__fail__", {"error": "Trigger failure"}, run.render(task))
    assert abandoned == [STATE]


def test_a_kill_while_it_waits_ends_what_was_started(abandoned: list[Any], logs: list[Any]) -> None:
    trigger = FlinkRehearsalTrigger("flink_default", asdict(paused().wait), 0.0, 0.1, STATE)
    asyncio.run(trigger.on_kill())
    assert abandoned == [STATE]
    assert "the live job keeps running" in logs[-1]["event"]


def test_a_triggerer_that_lost_the_task_to_another_ends_nothing(
    abandoned: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow tells it so too; the task waits as before."""
    trigger = FlinkRehearsalTrigger("flink_default", asdict(paused().wait), 0.0, 0.1, STATE)
    trigger.task_instance = SimpleNamespace(dag_id="d", task_id="t", run_id="r", map_index=-1)  # type: ignore[assignment]
    states = {"r": {"t": "deferred"}}
    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", staticmethod(lambda **_: states))
    asyncio.run(trigger.on_kill())
    assert abandoned == []
    states["r"]["t"] = "failed"
    asyncio.run(trigger.on_kill())
    assert abandoned == [STATE]
