"""The rehearsal's task: what it hands on, and what it fails on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk import DAG, Connection
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_flinkcompat.deploy import rehearsal
from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.rehearsal import Finding, Rehearsal
from airflow_flinkcompat.hooks.flink import FlinkHook
from airflow_flinkcompat.operators import FlinkRestoreRehearsalOperator
from tests.operators.conftest import Site
from tests.operators.fakes import Run, script


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

        monkeypatch.setattr(rehearsal, "rehearse", instead)
        return asked

    return answer


def test_the_ledgers_job_and_both_scripts_are_rehearsed(
    deployed: Site, found: Callable[..., Any], logs: list[Any]
) -> None:
    asked = found(Rehearsal(Finding.REFUSED, "Cannot map 'password' = 'planted-pw'", at="submit"))
    run, task = rehearse(deployed, savepoint_directory="file:/s", settle_seconds=1, start_timeout=2)
    result = run.execute(task)
    ((cluster, job_id, old, new, options, _log),) = asked
    assert (job_id, old.script.strip(), new.script.strip()) == ("job-1", script().strip(), script(size=5).strip())
    assert (options.savepoint_directory, options.patience.settle, options.patience.start) == ("file:/s", 1, 2)
    assert (cluster.gateway.endpoint.url, cluster.jobmanager.endpoint.url) == ("http://gateway:8083", "http://jm:8081")
    assert cluster.access["password"] == "planted-token", "the watcher reaches the JobManager as this process does"
    assert (result["finding"], result["at"], result["deployment"]) == ("refused", "submit", "orders")
    assert result["new_sha256"] == new.sha256
    text = "\n".join(record["event"] % record.get("positional_args", ()) for record in logs)
    assert "refused at submit" in text
    assert "planted-pw" not in f"{text}{result}"


def test_findings_to_fail_on(deployed: Site, found: Callable[..., Any]) -> None:
    found(Rehearsal(Finding.UNTOLD, "no slots"))
    run, task = rehearse(deployed, fail_on=("refused", "could not tell"))
    with pytest.raises(AirflowFailException, match="no slots"):
        run.execute(task)
    with DAG("d"), pytest.raises(ValueError, match="fail_on 'refuse' is not one of refused, restored"):
        FlinkRestoreRehearsalOperator(task_id="r", deployment="o", script="x.sql", fail_on=("refuse",))


def test_nothing_deployed_is_nothing_to_tell(site: Site, found: Callable[..., Any]) -> None:
    asked = found(Rehearsal(Finding.RESTORED))
    run, task = rehearse(site)
    result = run.execute(task)
    assert (result["finding"], asked) == ("could not tell", [])
    assert "nothing of orders is deployed" in result["reason"]


def test_a_cluster_that_does_not_answer_may_be_asked_again(deployed: Site, found: Callable[..., Any]) -> None:
    found(DeployError("the JobManager does not answer"))
    run, task = rehearse(deployed)
    with pytest.raises(AirflowException, match="does not answer") as caught:
        run.execute(task)
    assert not isinstance(caught.value, AirflowFailException)
