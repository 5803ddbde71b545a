"""What a rehearsal waits for in the triggerer, by the target's word."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import asdict

import pytest

from airflow_flinkcompat.deploy import Operation, Start, Wait
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.target import Verb
from airflow_flinkcompat.hooks.flink import FlinkHook
from airflow_flinkcompat.testing.fake_target import FakeTarget
from airflow_flinkcompat.testing.target_contract import side
from airflow_flinkcompat.triggers.rehearsal import FlinkRehearsalTrigger

SCRIPT = "CREATE TABLE s (x INT); CREATE TABLE k (x INT); INSERT INTO k SELECT x FROM s;"


def test_a_savepoint_of_a_job_that_goes_on_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is complete while the job runs, other than that of a stop."""
    target = FakeTarget()
    monkeypatch.setattr(FlinkHook, "get_conn", lambda _hook: nullcontext(target))
    job = target.start(side(SCRIPT), Start(), new_id()).job
    assert job is not None
    now, request = time.time(), new_id()
    wait = Wait(job, now, now + 60, request, verb=str(Verb.SAVEPOINT))
    trigger = FlinkRehearsalTrigger("flink_default", asdict(wait), 0.0, 0.1, {})
    target.savepoint(job, request, None)
    assert trigger._look(Wait(**trigger.wait)) == wait
    assert target.poll(Operation(Verb.SAVEPOINT, request, job)).snapshot == "savepoint #1"
    assert trigger.what(wait) == f"a savepoint of job {job}"
