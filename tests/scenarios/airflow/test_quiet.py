"""A fleet that is quiet: what lasts until somebody mends it begins no run after another, in a real Airflow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, JobStart
from airflow_flinkcompat.local_flink.processes import choose_ports
from dev.demo.airflow_client import AirflowClient
from dev.demo.airflow_instance import AirflowStandalone
from dev.services.csv_job import wait_for
from tests.support.airflow.operators.fakes import script
from tests.support.deploy.servers import rest_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WATCHED = """\
from airflow_flinkcompat.airflow.operators import Deployment, redeploy_dag

dag = redeploy_dag(Deployment(**{fields!r}))
"""
TRIGGERED = """\
from datetime import datetime

from airflow.sdk import DAG

from airflow_flinkcompat.airflow.operators import Deployment, gated_redeploy

with DAG("redeploy_triggered", schedule=None, start_date=datetime(2026, 1, 1), max_active_runs=1):
    gated_redeploy(Deployment(**{fields!r}), watch=False)
"""


@dataclass
class Fleet:
    """An Airflow, and a port at which Gateway and JobManager answer once a test starts them."""

    root: Path
    airflow: AirflowStandalone
    port: int

    @property
    def client(self) -> AirflowClient:
        return self.airflow.client

    def add(self, name: str, text: str = WATCHED, **fields: Any) -> str:
        """A DAG about a job that is deployed, with another window than the script proposes; the id of the DAG."""
        given = {"changed": {"poke_interval": 1}, **fields}
        given = {**given, "check": {"policy": {"incompatible": "approve"}, **fields.get("check", {})}}
        side = Side(script(size=5), engine="flink", engine_version="2.3.0")
        Ledger(self.root / "ledger", name).append(DeployedEntry(job=side, start=JobStart(job_id="job-1")))
        given = {"name": name, "script": str(self.root / f"{name}.sql"), **given}
        (self.airflow.dags / f"{name}.py").write_text(text.format(fields=given), encoding="utf-8")
        return f"redeploy_{name}"

    def propose(self, name: str, size: int = 10) -> None:
        (self.root / f"{name}.sql").write_text(script(size), encoding="utf-8")

    def first_run(self, dag_id: str) -> str:
        self.client.unpause(dag_id)
        wait_for(lambda: self.client.runs(dag_id), f"a run of {dag_id}", 60)
        return self.client.runs(dag_id)[0]

    def log(self, dag_id: str, run: str, task_id: str) -> str:
        return "\n".join(self.client.log(dag_id, run, task_id))

    def assert_quiet(self, dag_id: str, run: str, says: str) -> None:
        """Several looks have ended in the same problem: it is one run, and the problem was said once."""
        waits: set[str] = set()

        def has_looked_again() -> bool:
            if trigger := self.client.task(dag_id, run, "changed").get("trigger"):
                waits.add(trigger["created_date"])
            return len(waits) >= 3

        wait_for(has_looked_again, "three waits, each after a look", 180)
        assert self.client.runs(dag_id) == [run]
        assert self.client.run_state(dag_id, run) == "running"
        log = self.log(dag_id, run, "changed")
        assert log.count("Waiting until this is corrected; nothing is started") == log.count(says) == 1
        assert says in self.client.xcom(dag_id, run, "changed", "waiting_for")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    root = tmp_path_factory.mktemp("fleet")
    (root / "dags").mkdir()
    (port,) = choose_ports({"Flink": None}).values()
    flink = {
        "conn_type": "flink",
        "host": "127.0.0.1",
        "port": port,
        "extra": {"jobmanager_url": f"http://127.0.0.1:{port}", "ledger": str(root / "ledger")},
    }
    # A sensor without a time-out of its own would fail within 5 s.
    config = {"AIRFLOW__SENSORS__DEFAULT_TIMEOUT": "5"}
    airflow = AirflowStandalone(
        root / "airflow", root / "dags", connections={"flink_default": flink}, config=config, log=print
    )
    with airflow:
        yield Fleet(root, airflow, port)


@pytest.mark.nightly
def test_a_missing_script_begins_one_run_which_goes_on_when_it_appears(fleet: Fleet) -> None:
    dag_id = fleet.add("missing")
    run = fleet.first_run(dag_id)
    fleet.assert_quiet(dag_id, run, "missing.sql' does not exist")
    with rest_server(port=fleet.port):
        fleet.propose("missing")
        fleet.client.wait_for_question(dag_id, run, "approve")
    assert "missing.sql differs from entry 1" in fleet.log(dag_id, run, "changed")
    assert fleet.client.runs(dag_id) == [run]


@pytest.mark.nightly
def test_a_gateway_that_is_away_begins_one_run_which_goes_on_when_it_is_back(fleet: Fleet) -> None:
    dag_id = fleet.add("away")
    fleet.propose("away")
    run = fleet.first_run(dag_id)
    fleet.assert_quiet(dag_id, run, "does not answer")
    assert fleet.client.task_states(dag_id, run)["check"] is None
    with rest_server(port=fleet.port):
        fleet.client.wait_for_question(dag_id, run, "approve")
    assert fleet.client.runs(dag_id) == [run]


@pytest.mark.nightly
def test_the_check_waits_in_the_triggerer_while_the_gateway_is_away(fleet: Fleet) -> None:
    dag_id = fleet.add("triggered", TRIGGERED)
    fleet.propose("triggered")
    fleet.client.unpause(dag_id)
    run = fleet.client.trigger(dag_id)
    fleet.client.wait_for_task(dag_id, run, "check", ("deferred",))
    wait_for(lambda: "trying again every" in fleet.log(dag_id, run, "check"), "the triggerer asks", 60)
    with rest_server(port=fleet.port):
        fleet.client.wait_for_task(dag_id, run, "check", ("success",))
        fleet.client.wait_for_question(dag_id, run, "approve")
    assert fleet.client.task(dag_id, run, "check")["try_number"] == 1


@pytest.mark.nightly
def test_a_job_that_nobody_edits_fails_nothing_unless_a_time_is_given(fleet: Fleet) -> None:
    for name in ("unedited", "impatient"):
        fleet.propose(name, size=5)  # as it is deployed
    soon = {"poke_interval": 1, "timeout": 20, "recheck": 5}
    unedited, impatient = fleet.add("unedited"), fleet.add("impatient", changed=soon)
    quiet = fleet.first_run(unedited)
    fleet.client.wait_for_task(unedited, quiet, "changed", ("deferred",))
    hasty = fleet.first_run(impatient)
    # Its 20 s begin after those of the other one, whose default would have been 5 s.
    fleet.client.wait_for_task(impatient, hasty, "changed", ("failed",))
    said = "no new version of impatient within 20 s"
    # The state of a task comes before the last lines of its log.
    wait_for(lambda: said in fleet.log(impatient, hasty, "changed"), f"the log says: {said}", 60)
    assert fleet.client.task_states(unedited, quiet)["changed"] == "deferred"
    assert fleet.client.runs(unedited) == [quiet]


@pytest.mark.nightly
def test_what_fails_all_the_same_stops_by_itself(fleet: Fleet) -> None:
    fleet.propose("failing")
    dag_id = fleet.add(
        "failing",
        changed={"poke_interval": 1, "require_cluster": False},
        check={"deferrable": False, "retries": 0},
    )
    fleet.client.unpause(dag_id)
    wait_for(lambda: fleet.client.is_paused(dag_id), "Airflow pauses the DAG", 400)
    states = [fleet.client.run_state(dag_id, run) for run in fleet.client.runs(dag_id)]
    assert states.count("failed") == 5
    assert len(states) <= 6
