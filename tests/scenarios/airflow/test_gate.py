"""The whole road in a real Airflow, around a real Flink and Spark: what a user edits, answers, and gets."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from dev.demo.airflow_client import AirflowApiError
from dev.services.csv_job import Files, wait_for
from tests.scenarios.airflow.conftest import DAG_ID, REPOSITORY, SECRET
from tests.scenarios.airflow.gate import Gate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

MINUTE_0 = 'ann,3,"2026-01-01 00:00:00"'


def script(gate: Gate, *, size: int = 1, minutes: int = 0) -> str:
    """v1; with ``size`` other windows, with ``minutes`` one more option of the sink, which nobody has measured."""
    option = f", 'partition.default-name' = 'none-{minutes}'" if minutes else ""
    text = gate.files.script().replace(f"'{gate.files.sink.as_uri()}'", f"'${{conn.lake.extra.totals}}'{option}")
    return text.replace("INTERVAL '1' MINUTE", f"INTERVAL '{size}' MINUTE")


@pytest.mark.nightly
def test_first_deployment_rejection_and_restart_with_backfill(gate: Gate) -> None:
    client = gate.client

    # Nothing is deployed yet: the first version starts empty, without backfill.
    gate.files.arrive("1.csv", [("ann", 1, "00:10"), ("ann", 2, "00:20"), ("ann", 5, "01:10")])
    gate.propose(script(gate))
    client.unpause(DAG_ID)
    run = gate.run()
    assert client.wait_for_run(DAG_ID, run) == "success"
    states = client.task_states(DAG_ID, run)
    assert states["deploy_first"] == "success"
    assert "waiting in the triggerer" in gate.log(run, "deploy_first")
    assert "deployed: job" in gate.log(run, "deploy_first")
    assert {states[task] for task in ("resume", "restart", "approve", "backfill")} == {"skipped"}
    wait_for(lambda: gate.files.rows() == [MINUTE_0], "minute 0 is written")

    # The next run waits, in the triggerer, until the script changes. What cannot be told is asked, and rejected.
    run = gate.run()
    gate.wait(run, "changed", "deferred")
    deployed = gate.ledger.head()
    assert deployed is not None
    assert f"equals entry {deployed.number}, deployed at" in gate.log(run, "changed")
    gate.propose(script(gate, minutes=9))
    client.wait_for_question(DAG_ID, run, "approve")
    question = client.question(DAG_ID, run, "approve")
    assert question["options"] == ["Resume from savepoint", "Restart with backfill", "Reject"]
    assert "sink-table-changed" in question["body"]
    assert client.answer(DAG_ID, run, "approve", "Reject") == "success"
    assert client.wait_for_run(DAG_ID, run) == "success"
    states = client.task_states(DAG_ID, run)
    assert {states[task] for task in ("resume", "restart", "deploy_first", "backfill")} == {"skipped"}

    # The rejected version is not offered again. The next one is restarted at a person's word, and history recomputed.
    run = gate.run()
    gate.wait(run, "changed", "deferred")
    assert "is not offered again (rejected at" in gate.log(run, "changed")
    archive = gate.root / "archive"
    archive.mkdir()
    (archive / "old.csv").write_text(
        "ann,40,2026-01-01 00:00:30\nann,2,2026-01-01 00:00:40\nann,9,2026-01-01 00:09:00\n"
    )
    gate.propose(script(gate, minutes=8))
    assert client.answer(DAG_ID, run, "approve", "Restart with backfill") == "success"
    assert client.wait_for_run(DAG_ID, run, timeout=300) == "success"
    states = client.task_states(DAG_ID, run)
    assert (states["restart"], states["backfill"], states["resume"]) == ("success", "success", "skipped")
    history = [line for path in (gate.root / "history").glob("**/*.csv") for line in path.read_text().splitlines()]
    assert history == ['ann,42,"2026-01-01 00:00:00"']
    head = gate.ledger.head()
    assert head is not None
    assert (head.review.approved_by, head.review.outcome, head.start.start_mode) == ("admin", "unknown", "stateless")
    decision = client.xcom(DAG_ID, run, "approve", "decision")
    assert (decision["choice"], decision["by"]) == ("restart", "admin")

    # The verdict reads well in the log, and the tasks point to the report and to the job.
    log = client.log(DAG_ID, run, "check")
    opened = log.index("::group::All findings")
    assert any("sink-table-changed" in line for line in log[:opened])
    stored, markdown = gate.ledger.read_report(client.xcom(DAG_ID, run, "check", "report"))
    assert (stored["outcome"], "sink-table-changed" in markdown) == ("unknown", True)
    assert client.xcom(DAG_ID, run, "check")["outcome"] == "unknown"
    assert f"/#/job/running/{head.job_id}/overview" in client.xcom(DAG_ID, run, "restart", "_link_FlinkJobLink")


@pytest.mark.nightly  # goes on from the job that the first test deployed
def test_secrets_stay_in_the_connection(gate: Gate) -> None:
    client = gate.client
    run = gate.run()
    gate.wait(run, "changed", "deferred")
    secretive = script(gate, size=3).replace("'format' = 'csv')", "'format' = 'csv', 'password' = 'planted-literal')")
    gate.propose(secretive)
    assert client.wait_for_run(DAG_ID, run) == "failed"
    fields = [client.task(DAG_ID, run, task)["rendered_fields"] for task in ("changed", "check")]
    assert all("TUMBLE" in row["script"] for row in fields)
    seen = [gate.log(run, task) for task in ("changed", "check")]
    assert "is a secret in plain text; store it in an Airflow connection" in seen[-1]
    assert client.task_states(DAG_ID, run)["approve"] == "upstream_failed"
    everything = "\n".join([*map(str, fields), *seen, gate.everything_kept()])
    assert "planted-literal" not in everything
    assert SECRET not in everything


BY_HAND = """\
from datetime import datetime
from airflow.sdk import DAG
from airflow_flinkcompat.airflow.operators import Deployment, gated_redeploy

with DAG("by_hand", schedule=None, start_date=datetime(2026, 1, 1), max_active_runs=1):
    gated_redeploy(
        Deployment(
            name="orders-by-hand",
            script={script!r},
            default_args={{"on_success_callback": "bells:succeeded"}},
            approve={{"notifiers": {{"path": "bells:Bell", "arguments": {{"place": {bell!r}}}}}}},
            deploy={{"outlets": ["flink://orders-by-hand"], "priority_weight": 3}},
        ),
        watch=False,
    )
"""
BELLS = """\
from pathlib import Path
from typing import Any
from airflow.sdk import BaseNotifier

class Bell(BaseNotifier):
    def __init__(self, place):
        super().__init__()
        self.place = place

    def notify(self, context):
        Path(self.place).write_text(context["ti"].task_id)

def succeeded(context):
    print("the callback saw", context["ti"].task_id)
"""


@pytest.mark.nightly
def test_a_run_by_hand_stops_nothing_unasked(gate: Gate, local_flink: LocalFlink) -> None:
    """Nothing changed, no backfill, nothing that can be deployed: the job that runs is left alone each time."""
    client, dag_id = gate.client, "by_hand"
    files, proposed, bell = Files(gate.root / "by_hand"), gate.root / "by_hand.sql", gate.root / "bell.txt"
    files.arrive("1.csv", [("ann", 1, "00:10"), ("ann", 5, "01:10")])
    proposed.write_text(files.script(), encoding="utf-8")
    (gate.airflow.dags / "bells.py").write_text(BELLS, encoding="utf-8")
    (gate.airflow.dags / "by_hand.py").write_text(
        BY_HAND.format(script=str(proposed), bell=str(bell)), encoding="utf-8"
    )
    ledger = Ledger(gate.root / "ledger", "orders-by-hand")
    client.unpause(dag_id)
    run = client.trigger(dag_id)
    assert client.wait_for_run(dag_id, run, timeout=300) == "success"
    head = ledger.head()
    assert head is not None
    assert head.kind == "deployed"

    def untouched() -> bool:
        with SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url) as target:
            return target.running("orders-by-hand") == (head.job_id,)

    for text in (files.script(), f"-- reviewed by ann\n{files.script()}"):
        proposed.write_text(text, encoding="utf-8")
        run = client.trigger(dag_id)
        assert client.wait_for_run(dag_id, run) == "success"
        states = client.task_states(dag_id, run)
        assert states.pop("check") == "success"
        assert set(states.values()) == {"skipped"}
        assert client.xcom(dag_id, run, "check")["branch"] == "unchanged"
        assert untouched()

    # State is not thrown away unasked, and no backfill is offered where there is none.
    proposed.write_text(files.script().replace("INTERVAL '1' MINUTE", "INTERVAL '2' MINUTE"), encoding="utf-8")
    run = client.trigger(dag_id)
    client.wait_for_question(dag_id, run, "approve")
    question = client.question(dag_id, run, "approve")
    assert question["options"] == ["Resume from savepoint", "Restart without state", "Reject"]
    assert f"job `{head.job_id}`" in question["body"]
    assert "STOP JOB" not in question["body"], "the branch that is chosen does that"
    wait_for(lambda: bell.is_file() and bell.read_text() == "approve", "the notifier was called", 60)
    assert client.answer(dag_id, run, "approve", "Reject") == "success"
    assert client.wait_for_run(dag_id, run) == "success"
    assert untouched()

    # What cannot be deployed asks nobody.
    proposed.write_text(f"{files.script()}\nSELEC 1;\n", encoding="utf-8")
    run = client.trigger(dag_id)
    assert client.wait_for_run(dag_id, run) == "failed"
    assert client.task_states(dag_id, run)["approve"] == "upstream_failed"
    log = "\n".join(client.log(dag_id, run, "check"))
    assert re.search(r"by_hand\.sql:\d+:1: Expected a query", log)
    assert untouched()

    # On purpose it is redeployed.
    proposed.write_text(files.script(), encoding="utf-8")
    run = client.trigger(dag_id, {"redeploy_unchanged": True})
    assert client.wait_for_run(dag_id, run, timeout=300) == "success"
    assert client.task_states(dag_id, run)["resume"] == "success"
    again = ledger.head()
    assert again is not None
    assert (again.job_id != head.job_id, again.start.start_mode) == (True, "savepoint")
    with SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url) as target:
        target.cancel(str(again.job_id))


def test_a_dag_that_cannot_be_loaded_is_told(gate: Gate) -> None:
    broken = gate.airflow.dags / "broken.py"
    broken.write_text("from airflow.sdk import DAG\nraise ValueError('planted mistake')\n")
    try:
        with pytest.raises(AirflowApiError, match="planted mistake"):
            gate.client.unpause("broken", timeout=60)
    finally:
        broken.unlink()


def test_everything_listens_on_loopback_only(gate: Gate) -> None:
    children = [part for pid in gate.airflow.pids.values() for part in _tree(pid)]
    places = {c.laddr.ip for part in children for c in _connections(part) if c.status == psutil.CONN_LISTEN}
    assert places == {"127.0.0.1"}


def _connections(part: psutil.Process) -> list[Any]:
    """Those of a process; of a task's process that ended meanwhile, none."""
    try:
        return part.net_connections()
    except psutil.NoSuchProcess:
        return []


def test_nothing_outlives_it(gate: Gate) -> None:
    parts = [part for pid in gate.airflow.pids.values() for part in _tree(pid)]
    assert len(parts) > 4
    gate.airflow.stop()
    wait_for(lambda: not _alive(parts), "all ended", 20)


def _alive(parts: list[psutil.Process]) -> list[psutil.Process]:
    """Those that have not ended; one that nobody has reaped yet has."""
    return [part for part in parts if psutil.pid_exists(part.pid) and part.is_running() and not _is_zombie(part)]


def _is_zombie(part: psutil.Process) -> bool:
    try:
        return part.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _tree(pid: int) -> list[psutil.Process]:
    top = psutil.Process(pid)
    return [top, *top.children(recursive=True)]


@pytest.mark.nightly
def test_it_dies_with_its_owner(tmp_path: Path) -> None:
    """Killed, not stopped: no ``finally`` runs."""
    (tmp_path / "dags").mkdir()
    code = (
        "from dev.demo.airflow_instance import AirflowStandalone\n"
        f"AirflowStandalone({str(tmp_path / 'home')!r}, {str(tmp_path / 'dags')!r}).start()\n"
        "import signal; signal.pause()\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", code], cwd=REPOSITORY, start_new_session=True)
    try:
        pids = tmp_path / "home" / "pids"
        wait_for(lambda: pids.is_dir() and len(list(pids.iterdir())) == 4, "every part is started", 120)
        wait_for(lambda: len(_tree(owner.pid)) > 10, "each has children of its own", 120)
        parts = _tree(owner.pid)[1:]
    finally:
        owner.kill()
        owner.wait()
    wait_for(lambda: not _alive(parts), "nothing is left", 60)
