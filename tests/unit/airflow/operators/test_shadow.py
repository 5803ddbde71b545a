"""The shadow run's task: both scripts, the entry, and the branch by the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from airflow.sdk import DAG, Connection

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.operators import Deployment, FlinkShadowRunOperator, redeploy_dag
from airflow_flinkcompat.airflow.operators import summary as summaries
from airflow_flinkcompat.airflow.operators.summary import Summary
from airflow_flinkcompat.airflow.tasks.arguments import ShadowTable
from airflow_flinkcompat.deploy.errors import DeployError, DeployRefused
from airflow_flinkcompat.deploy.ledger.entries import CheckedEntry, DeployedEntry, JobStart, ShadowedEntry
from airflow_flinkcompat.deploy.migration import SavepointMigration
from airflow_flinkcompat.deploy.shadow import gating
from airflow_flinkcompat.deploy.shadow.report import ShadowReport, StateComparison
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding
from airflow_flinkcompat.deploy.target import JobRef
from airflow_flinkcompat.model import JobSpec, Policy
from airflow_flinkcompat.planner.judgement import compile_plans
from tests.support.airflow.operators.fakes import Run, script
from tests.unit.airflow.operators.conftest import Site
from tests.unit.cli.test_shadow import DIFFERS

BRANCHES = {"resume": "resume", "approve": "approve"}
Found = Callable[[ShadowReport | Exception], list[tuple[Any, ...]]]


@pytest.fixture(autouse=True)
def connection(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection of the site; it comes after the site's own stand-ins."""
    flink = Connection(conn_id="flink_default", conn_type="flink", host="gateway", port=8083, password="planted-token")
    monkeypatch.setattr(FlinkHook, "get_connection", staticmethod(lambda _conn_id: flink))


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Found:
    """Stand-in for the shadow run; returns its arguments."""

    def answer(found: ShadowReport | Exception) -> list[tuple[Any, ...]]:
        asked = []

        def instead(*arguments: Any, plan: Any, migration: Any) -> ShadowReport:
            assert plan is compile_plans
            asked.append(arguments if migration is None else (*arguments, migration))
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(gating, "shadow", instead)
        return asked

    return answer


def lines(logs: list[Any]) -> list[str]:
    return [each["event"] % each.get("positional_args", ()) for each in logs]


def checked(
    site: Site, text: str = "", *, policy: dict[str, str] | None = None, migrate: bool = False, **shadow: Any
) -> tuple[Run, Any]:
    """A DAG whose check has run on a new version of the script."""
    site.propose(text or script() + "-- a comment\n")
    one = Deployment(
        name="orders", script="orders.sql", ledger=str(site.folder / "ledger"), start_mode="shadow",
        shadow=cast("ShadowTable", shadow), migrate=migrate,
        check={"policy": Policy.of(policy)},
    )  # fmt: skip
    dag = redeploy_dag(one, template_searchpath=str(site.folder), start_date=datetime(2026, 1, 1), schedule=None)
    run = Run("run-1", {"redeploy_unchanged": True})
    run.execute(dag.get_task("check"))
    return run, dag.get_task("shadow")


def test_the_deployed_and_the_checked_script_run_next_to_the_ledgers_job(
    deployed: Site, found: Found, logs: list[Any]
) -> None:
    asked = found(DIFFERS)
    run, task = checked(
        deployed, duration="90s", timeout="1h", expect=["total"], savepoint_directory="file:/s", plan_dir="/p"
    )
    assert run.execute(task) is None, "a return value would replace the result"
    ((cluster, job_id, old, new, options, _log),) = asked
    assert (job_id, old.script.strip(), new.script.strip()) == ("job-1", script().strip(), script() + "-- a comment")
    assert (options.seconds, options.run_seconds, options.expected) == (90, 3600, ["total"])
    assert (options.savepoint_directory, options.plan_dir, options.store) == ("file:/s", "/p", None)
    assert cluster.location.target == "sql-gateway"
    assert cluster.location.settings["password"] == "planted-token", "the watcher opens the target as this process does"
    result = run.pushed["shadow", "return_value"]
    assert (result["finding"], result["branch"], result["new_sha256"]) == ("differs", "approve", new.sha256)
    text = "\n".join(lines(logs))
    assert "Shadow run: differs → approve" in text
    assert "differing keys: 2 (by column: total 2)" in text


@pytest.mark.parametrize(
    ("outcome", "branch", "extent", "migrates"),
    [
        ("incompatible", "migrate", "whole", True),
        ("incompatible", "approve", "partial", True),
        ("incompatible", "approve", "none", False),
        ("unknown", "approve", "whole", False),
    ],
)
def test_a_change_that_is_migrated_starts_from_a_migrated_savepoint(
    outcome: str,
    branch: str,
    extent: str,
    migrates: bool,
    deployed: Site,
    found: Found,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, pull = found(ShadowReport(ShadowFinding.EQUAL)), summaries.pull

    def pulled(*arguments: Any) -> Summary:
        return replace(pull(*arguments), outcome=outcome, branch=branch, migration=extent)

    monkeypatch.setattr(summaries, "pull", pulled)
    run, task = checked(deployed, migrate=True)
    run.execute(task)
    assert [isinstance(arguments[-1], SavepointMigration) for arguments in asked] == (
        [True] if migrates else [False] * (outcome == "unknown")
    )


@pytest.mark.parametrize(
    ("finding", "on_expected", "branch"),
    [
        (ShadowFinding.EQUAL, "ask", "resume"),
        (ShadowFinding.EXPECTED, "ask", "approve"),
        (ShadowFinding.EXPECTED, "switch", "resume"),
        (ShadowFinding.CHANGED, "switch", "approve"),
        (ShadowFinding.DIFFERS, "switch", "approve"),
        (ShadowFinding.REFUSED, "switch", "approve"),
        (ShadowFinding.INCONCLUSIVE, "switch", "approve"),
    ],
)
def test_the_result_chooses_the_branch(
    deployed: Site, found: Found, logs: list[Any], finding: ShadowFinding, on_expected: str, branch: str
) -> None:
    found(ShadowReport(finding, "'password' = 'planted-pw'"))
    run, task = checked(deployed, on_expected=on_expected)
    run.execute(task)
    assert f"Branch into ['{branch}']" in lines(logs)
    entry = deployed.ledger.entries()[-1]
    assert isinstance(entry, ShadowedEntry)
    assert (entry.branch, entry.shadow["finding"], entry.review.outcome) == (branch, finding, "compatible")
    assert (entry.message, entry.owner) == (
        ShadowReport(finding).lines()[0], "airflow:redeploy_orders/run-1/shadow",
    )  # fmt: skip
    assert "planted-pw" not in str(entry.to_dict())
    assert (deployed.ledger.row().pending is not None) == (branch == "approve")
    assert run.pushed["shadow", "return_value"]["branch"] == branch


def test_equal_rows_from_wrong_state_need_a_person(deployed: Site, found: Found) -> None:
    asked = found(ShadowReport(ShadowFinding.EQUAL, state=StateComparison(ShadowFinding.DIFFERS)))
    run, task = checked(deployed, from_earliest=True, until_rows=5)
    run.execute(task)
    assert run.pushed["shadow", "return_value"]["branch"] == "approve"
    options = asked[0][4]
    assert (options.from_earliest, options.until_rows) == (True, 5)


def test_equal_rows_do_not_answer_for_a_person(deployed: Site, found: Found) -> None:
    found(ShadowReport(ShadowFinding.EQUAL))
    run, task = checked(deployed, policy={"compatible": "approve"})
    run.execute(task)
    entry = deployed.ledger.entries()[-1]
    assert isinstance(entry, ShadowedEntry)
    assert entry.branch == "approve"


def test_other_outcomes_follow_the_check_at_once(deployed: Site, found: Found, logs: list[Any]) -> None:
    asked = found(ShadowReport(ShadowFinding.EQUAL))
    run, task = checked(deployed, when=["partial"])
    run.execute(task)
    assert "Branch into ['resume']" in lines(logs)
    assert (asked, deployed.kinds()[-1]) == ([], "checked")
    assert "No shadow run: the change is compatible" in str(logs)


def test_a_retry_makes_a_new_run(deployed: Site, found: Found) -> None:
    found(DeployError("the JobManager does not answer"))
    run, task = checked(deployed)
    with pytest.raises(AirflowException, match="does not answer") as caught:
        run.execute(task)
    assert not isinstance(caught.value, AirflowFailException)
    assert deployed.kinds()[-1] == "checked"
    for _ in range(2):
        asked = found(ShadowReport(ShadowFinding.EQUAL))
        run.execute(task)
        assert len(asked) == 1
    assert deployed.kinds()[-2:] == ["shadowed", "shadowed"]


def test_a_target_without_shadow_runs_fails_without_a_retry(deployed: Site, found: Found) -> None:
    found(DeployRefused("shadow runs are not possible on jobmanager"))
    run, task = checked(deployed)
    with pytest.raises(AirflowFailException, match="shadow runs are not possible on jobmanager"):
        run.execute(task)


def test_only_what_was_checked_runs_against_what_is_deployed(deployed: Site, found: Found) -> None:
    asked = found(ShadowReport(ShadowFinding.EQUAL))
    run, task = checked(deployed)
    deployed.propose(script() + "-- another comment\n")
    with pytest.raises(AirflowFailException, match="differs from the checked one"):
        run.execute(task)
    run, task = checked(deployed)
    deployed.ledger.append(DeployedEntry(job=JobSpec("SELECT 1"), start=JobStart(job_id=JobRef("job-9"))))
    with pytest.raises(AirflowFailException, match=r"entry \d+ of the ledger\) is not about the deployed version"):
        run.execute(task)
    assert asked == []


def test_a_deployment_without_a_job_has_no_result(deployed: Site, found: Found) -> None:
    asked = found(ShadowReport(ShadowFinding.EQUAL))
    deployed.ledger.append(DeployedEntry(job=JobSpec(script()), start=JobStart()))
    run, task = checked(deployed, script(size=10) + "-- a comment\n")
    head = deployed.ledger.head()
    assert head is not None
    run.execute(task)
    entry = deployed.ledger.entries()[-1]
    assert isinstance(entry, ShadowedEntry)
    assert (asked, entry.branch, entry.shadow["finding"]) == ([], "approve", "could not tell")
    assert entry.shadow["reason"] == f"entry {head.number} of the ledger has no job"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"branches": {"resume": "r"}}, "branches: 'approve' missing"),
        (
            {"branches": {**BRANCHES, "restart": "r"}},
            "branches: unknown 'restart'; choose from resume",
        ),
        ({"branches": BRANCHES, "duration": "soon"}, "duration: 'soon' is not a duration"),
        ({"branches": BRANCHES, "when": ["equal"]}, "when: 'equal' is not one of compatible"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], words: str) -> None:
    with DAG("d"), pytest.raises(ValueError, match=words):
        FlinkShadowRunOperator(task_id="s", deployment="o", script="x.sql", **arguments)


def test_a_kill_is_logged(deployed: Site, found: Found, logs: list[Any]) -> None:
    found(ShadowReport(ShadowFinding.EQUAL))
    _, task = checked(deployed)
    task.on_kill()
    assert "the live job keeps running" in logs[-1]["event"]


def test_the_check_stays_recorded_as_it_was(deployed: Site, found: Found) -> None:
    found(DIFFERS)
    run, task = checked(deployed)
    run.execute(task)
    entries = deployed.ledger.entries()
    assert [each.branch for each in entries if isinstance(each, CheckedEntry)][-1] == "resume"
