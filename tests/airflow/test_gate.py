"""The whole road in a real Airflow, around a real Flink and Spark: what a user edits, answers, and gets."""

from __future__ import annotations

import psutil
import pytest

from demo.airflow_client import AirflowApiError
from tests.airflow.conftest import DAG_ID, SECRET, Gate
from tests.deploy.jobs import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

MINUTE_0 = 'ann,3,"2026-01-01 00:00:00"'
MINUTE_1 = 'ann,12,"2026-01-01 00:01:00"'


def script(gate: Gate, size: int = 1, option: str = "") -> str:
    """v1; with ``option`` the sink has one more option, with ``size`` other windows."""
    text = gate.files.script()
    text = text.replace(f"'{gate.files.sink.as_uri()}'", f"'${{conn.lake.extra.totals}}'{option}")
    return text.replace("INTERVAL '1' MINUTE", f"INTERVAL '{size}' MINUTE")


def restored_from(gate: Gate) -> str | None:
    head = gate.ledger.head()
    assert head is not None
    return head.savepoint if head.start_mode == "savepoint" else None


def test_from_the_first_deployment_to_a_backfill(gate: Gate) -> None:
    client = gate.client

    # Nothing is deployed yet: the first version starts empty, without backfill.
    gate.files.arrive("1.csv", [("ann", 1, "00:10"), ("ann", 2, "00:20"), ("ann", 5, "01:10")])
    gate.propose(script(gate))
    client.unpause(DAG_ID)
    run = gate.run()
    assert client.wait_for_run(DAG_ID, run) == "success"
    states = client.task_states(DAG_ID, run)
    assert states["deploy_first"] == "success"
    assert {states[task] for task in ("resume", "restart", "approve", "backfill")} == {"skipped"}
    wait_for(lambda: gate.files.rows() == [MINUTE_0], "minute 0 is written")

    # The next run waits, in the triggerer, until the script changes.
    run = gate.run()
    gate.wait(run, "changed", "deferred")
    assert "is what entry 3 deployed" in gate.log(run, "changed")

    # A change that restores: resumed from a savepoint, with the open window in it.
    gate.propose(script(gate) + "-- a comment\n")
    assert client.wait_for_run(DAG_ID, run) == "success"
    assert client.task_states(DAG_ID, run)["resume"] == "success"
    assert client.xcom(DAG_ID, run, "check", "summary")["outcome"] == "compatible"
    assert restored_from(gate)
    gate.files.arrive("2.csv", [("ann", 7, "01:20"), ("ann", 1, "02:10")])
    wait_for(lambda: gate.files.rows() == sorted([MINUTE_0, MINUTE_1]), "minute 1 has rows from both sides of the savepoint")

    # One that cannot be told: a person is asked, and rejects it. It is not offered again.
    run = gate.run()
    gate.propose(script(gate, option=", 'sink.rolling-policy.rollover-interval' = '9 min'"))
    client.wait_for_question(DAG_ID, run, "approve")
    question = client.question(DAG_ID, run, "approve")
    assert question["options"] == ["Resume from savepoint", "Restart with backfill", "Reject"]
    assert "sink-table-changed" in question["body"]
    assert client.answer(DAG_ID, run, "approve", "Reject") == "success"
    assert client.wait_for_run(DAG_ID, run) == "success"
    assert client.task_states(DAG_ID, run)["resume"] == client.task_states(DAG_ID, run)["restart"] == "skipped"
    run = gate.run()
    gate.wait(run, "changed", "deferred")
    assert "is not offered again (rejected at" in gate.log(run, "changed")

    # Another one that cannot be told: approved, resumed, and the approver is on record.
    gate.propose(script(gate, option=", 'sink.rolling-policy.rollover-interval' = '8 min'"))
    assert client.answer(DAG_ID, run, "approve", "Resume from savepoint") == "success"
    assert client.wait_for_run(DAG_ID, run) == "success"
    head = gate.ledger.head()
    assert head is not None
    assert (head.approved_by, head.outcome, head.start_mode) == ("admin", "unknown", "savepoint")

    # Another window size: restarted empty, and history recomputed.
    archive = gate.root / "archive"
    archive.mkdir()
    (archive / "old.csv").write_text(
        "ann,40,2026-01-01 00:00:30\nann,2,2026-01-01 00:01:30\nann,9,2026-01-01 00:09:00\n"
    )
    run = gate.run()
    gate.propose(script(gate, size=2))
    assert client.wait_for_run(DAG_ID, run, timeout=300) == "success"
    states = client.task_states(DAG_ID, run)
    assert (states["restart"], states["backfill"], states["resume"]) == ("success", "success", "skipped")
    assert restored_from(gate) is None
    history = [line for path in (gate.root / "history").glob("**/*.csv") for line in path.read_text().splitlines()]
    assert history == ['ann,42,"2026-01-01 00:00:00"']

    # The verdict reads well in the log, and the task points to the report and to the job.
    log = client.log(DAG_ID, run, "check")
    opened = log.index("::group::Findings in full")
    assert any("window-changed" in line for line in log[:opened])
    stored, markdown = gate.ledger.read_report(client.xcom(DAG_ID, run, "check", "report"))
    assert (stored["outcome"], "window-changed" in markdown) == ("incompatible", True)
    assert "/#/job/running/" in client.xcom(DAG_ID, run, "restart", "_link_FlinkJobLink")


def test_secrets_stay_in_the_connection(gate: Gate) -> None:
    client = gate.client
    run = gate.run()
    gate.wait(run, "changed", "deferred")
    secretive = script(gate, size=3).replace("'format' = 'csv')", "'format' = 'csv', 'password' = 'planted-literal')")
    gate.propose(secretive)
    gate.wait(run, "restart", "failed")
    fields = [client.task(DAG_ID, run, task)["rendered_fields"] for task in ("changed", "check", "restart")]
    assert all("TUMBLE" in row["script"] for row in fields)
    seen = [gate.log(run, task) for task in ("changed", "check", "restart")]
    assert "secrets in plain text" in seen[-1]
    stored = [path.read_text() for path in (gate.root / "ledger").rglob("*.*") if path.is_file()]
    logs = [path.read_text(errors="replace") for path in (gate.airflow.home / "logs").rglob("*.log")]
    database = (gate.airflow.home / "airflow.db").read_bytes().decode("latin-1")
    everything = "\n".join([*map(str, fields), *seen, *stored, *logs, database])
    assert "planted-literal" not in everything
    assert SECRET not in everything


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
    places = {c.laddr.ip for part in children for c in part.net_connections() if c.status == psutil.CONN_LISTEN}
    assert places == {"127.0.0.1"}


def test_nothing_outlives_it(gate: Gate) -> None:
    parts = [part for pid in gate.airflow.pids.values() for part in _tree(pid)]
    assert len(parts) > 4
    gate.airflow.stop()
    wait_for(lambda: not [part for part in parts if part.is_running() and part.status() != "zombie"], "all ended", 20)


def _tree(pid: int) -> list[psutil.Process]:
    top = psutil.Process(pid)
    return [top, *top.children(recursive=True)]
