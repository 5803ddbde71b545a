"""Asset events of the operators: in the database of a real run, and of every kind of start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, Asset, AssetAlias

from airflow_flinkcompat.airflow.operators import FlinkSqlDeployOperator, tables_alias
from airflow_flinkcompat.airflow.tasks import assets
from tests.support.airflow.operators.fakes import Run, script
from tests.unit.airflow.operators.conftest import Site

REPOSITORY = Path(__file__).parents[4]


@pytest.mark.slow
@pytest.mark.nightly
def test_a_real_run_leaves_events_that_other_dags_follow(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.airflow.operators.one_run", str(tmp_path)], cwd=REPOSITORY, text=True,
        capture_output=True, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["state"] == "success"
    job, table = found["events"]
    assert (job["uri"], job["aliases"]) == ("flink://flink_default/orders", ["flink-deployment:flink_default/orders"])
    assert (table["uri"], table["aliases"]) == ("file:///out", ["flink-tables:flink_default/orders"])
    for each in found["events"]:
        said = each["extra"]
        assert (each["task"], said["event"], said["start_mode"]) == ("deploy_first", "deployed", "stateless")
        assert len(said["sha256"]) == 64
        assert said["job_id"]
        assert said["entry"] == 5
    assert table["extra"]["table"] == "totals"
    assert found["queued"] == ["follows_its_tables", "follows_one_table", "follows_the_job"]


def test_a_resume_tells_from_what_it_goes_on(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script())
    run.execute(tasks["resume"])
    head, summary = deployed.ledger.head(), run.pushed["check", "summary"]
    assert head is not None
    events = run.asset_events("resume")
    assert list(events) == ["flink://flink_default/orders", "file:///out"]
    said = events["flink://flink_default/orders"]
    assert said == {
        "event": "deployed",
        "deployment": "orders",
        "outcome": "compatible",
        "entry": head.number,
        "sha256": head.sha256,
        "old_entry": summary["old_entry"],
        "old_sha256": summary["old_sha256"],
        "engine": "flink",
        "engine_version": "2.3.0",
        "start_mode": "savepoint",
        "savepoint": "file:/sp/orders/job-2/job-1",
        "migrated_from": None,
        "job_id": "job-2",
        "commit": None,
    }
    assert events["file:///out"] == {**said, "table": "totals"}
    json.dumps(said)


def test_what_fails_or_is_only_planned_tells_nothing(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    deployed.propose(script(size=6))
    with pytest.raises(Exception, match="differs from the checked one"):
        run.execute(tasks["restart"])
    assert run.asset_events("restart") == {}
    with DAG("d"):
        planned = FlinkSqlDeployOperator(task_id="plan", deployment="orders", script="orders.sql", plan_only=True)
    assert planned.outlets == []


def test_the_aliases_stand_beside_outlets_of_ones_own() -> None:
    own = Asset("s3://lake/totals")
    with DAG("d"):
        task = FlinkSqlDeployOperator(
            task_id="deploy", deployment="{{ params.name }}", flink_conn_id="prod", script="SELECT 1", outlets=[own]
        )
    job, tables = (
        AssetAlias("flink-deployment:prod/{{ params.name }}"),
        tables_alias("{{ params.name }}", flink_conn_id="prod"),
    )
    assert task.outlets == [own, job, tables]
    run = Run(conf={"name": "orders"})
    context = run.render(task)
    assert task.deployment == "orders"
    assets.emit(task, context, assets.deployment_alias(**task._about), {assets.deployment_uri("orders", "prod"): {}})
    assert run.asset_events("deploy") == {"flink://prod/orders": {}}
    assert list(run.events["deploy"]) == [job]


def test_a_place_that_the_script_does_not_tell_is_said(site: Site, logs: list[Any]) -> None:
    run, tasks, _ = site.checked(script().replace("'filesystem', 'path' = '/out'", "'print'"))
    run.execute(tasks["first"])
    assert list(run.asset_events("first")) == ["flink://flink_default/orders"]
    said = [each["event"] % each.get("positional_args", ()) for each in logs]
    assert "No asset event on totals: the script does not show where the data is" in said
