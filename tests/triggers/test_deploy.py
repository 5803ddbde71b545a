"""The trigger looks at a job until there is something to go on with, and asks a silent cluster again."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict
from typing import Any

import pytest

from airflow_flinkcompat.deploy import ApiError, DeployError, Wait
from airflow_flinkcompat.hooks.flink import FlinkHook
from airflow_flinkcompat.triggers.deploy import FlinkJobTrigger
from tests.deploy.pretended import Pretended


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Pretended:
    found = Pretended()
    monkeypatch.setattr(FlinkHook, "get_conn", lambda _self: found)
    return found


def wait(trigger_id: str | None = None, seconds: float = 20) -> Wait:
    return Wait("job-1", time.time(), time.time() + seconds, trigger_id)


def fired(cluster: Pretended, wait: Wait, settle: float = 0, after: Any = None) -> tuple[dict[str, Any], int]:
    """The event's wait, and how often the cluster was looked at before ``after`` was called."""
    trigger = FlinkJobTrigger("flink_default", asdict(wait), settle, 0.02)

    async def scenario() -> tuple[dict[str, Any], int]:
        waiting = asyncio.create_task(anext(trigger.run()))  # type: ignore[arg-type]
        looks = 0
        if after is not None:
            await asyncio.sleep(0.2)
            assert not waiting.done()
            looks = len(cluster.calls)
            after()
        event = await asyncio.wait_for(waiting, 20)
        return dict(event.payload)["wait"], looks

    return asyncio.run(scenario())


def test_it_waits_for_the_savepoint(cluster: Pretended) -> None:
    found, looks = fired(cluster, wait("stop-1"), after=lambda: cluster.stops.update({"stop-1": "file:/sp"}))
    assert (found["trigger_id"], found["proven_since"]) == ("stop-1", None)
    assert looks > 1


def test_a_stop_that_failed_is_for_the_task_to_judge(cluster: Pretended) -> None:
    cluster.fail = "result"
    assert fired(cluster, wait("stop-1"))[0]["trigger_id"] == "stop-1"


def test_a_silent_cluster_is_asked_again(cluster: Pretended) -> None:
    cluster.fail, cluster.error = "result", ApiError
    found, looks = fired(cluster, wait("stop-1"), after=lambda: setattr(cluster, "error", DeployError))
    assert looks > 1
    assert found["job_id"] == "job-1"


def test_it_waits_for_the_job_to_settle(cluster: Pretended) -> None:
    found, _ = fired(cluster, wait(), settle=0.3, after=lambda: cluster.run("job-1"))
    assert found["proven_since"] == pytest.approx(time.time(), abs=2)
    assert time.time() - found["proven_since"] >= 0.3


def test_a_job_that_failed_needs_no_more_waiting(cluster: Pretended) -> None:
    cluster.run("job-1")
    cluster.end("job-1", "FAILED")
    assert fired(cluster, wait(), settle=60)[0]["proven_since"] is None


def test_the_time_is_over(cluster: Pretended) -> None:
    begin = time.monotonic()
    assert fired(cluster, wait("stop-1", seconds=0.3))[0]["trigger_id"] == "stop-1"
    assert time.monotonic() - begin < 10


def test_it_survives_serialisation() -> None:
    trigger = FlinkJobTrigger("flink_default", asdict(wait("stop-1")), 10.0, 5.0)
    name, arguments = trigger.serialize()
    assert name == "airflow_flinkcompat.triggers.deploy.FlinkJobTrigger"
    assert FlinkJobTrigger(**arguments).serialize() == (name, arguments)
