"""What a rehearsal waits for in the triggerer, by the target's word."""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any

import pytest

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.triggers.rehearsal import FlinkRehearsalTrigger
from airflow_flinkcompat.deploy import Operation, Start, Wait
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.target import Verb
from airflow_flinkcompat.testing.fake_target import FakeTarget
from airflow_flinkcompat.testing.target_contract import side

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


def test_a_wait_of_an_earlier_release_is_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the request otherwise, and does not say whether a savepoint or a stop is waited for."""
    target = FakeTarget()
    monkeypatch.setattr(FlinkHook, "get_conn", lambda _hook: nullcontext(target))
    job = target.start(side(SCRIPT), Start(), new_id()).job
    assert job is not None
    now, request = time.time(), new_id()
    stored = {"job_id": job, "since": now, "until": now + 60, "trigger_id": request, "proven_since": None}
    trigger = FlinkRehearsalTrigger("flink_default", stored, 0.0, 0.1, {})
    target.savepoint(job, request, None)
    (event,) = asyncio.run(_events(trigger))
    assert event == {"wait": asdict(Wait(job, now, now + 60, request, verb="savepoint"))}


async def _events(trigger: FlinkRehearsalTrigger) -> list[Any]:
    return [event.payload async for event in trigger.run()]
