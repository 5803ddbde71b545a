"""The trigger looks at a job until there is something to go on with, and asks a silent cluster again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowNotFoundException
from structlog.testing import capture_logs

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.triggers import deploy
from airflow_flinkcompat.airflow.triggers.deploy import FlinkJobTrigger, FlinkRehearsalTrigger, SqlGatewayTrigger
from airflow_flinkcompat.deploy import ApiError, DeployError, Ledger, Operation, Start, Wait
from airflow_flinkcompat.deploy.flink.gateway import GatewayError
from airflow_flinkcompat.deploy.ledger.entries import JobStart, StartedEntry
from airflow_flinkcompat.deploy.ledger.status import Progress
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.target import Verb
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.testing.fake_target import AnswerLost, FakeTarget
from airflow_flinkcompat.testing.target_contract import side
from tests.support.deploy.fake_cluster import FakeCluster


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    found = FakeCluster()
    monkeypatch.setattr(FlinkHook, "get_conn", lambda _self: found)
    return found


@pytest.fixture
def told() -> Iterator[Callable[[], str]]:
    """What was logged."""
    with capture_logs() as records:
        yield lambda: "\n".join(record["event"] % record.get("positional_args", ()) for record in records)


def wait(request_id: str | None = None, seconds: float = 20) -> Wait:
    return Wait("job-1", time.time(), time.time() + seconds, request_id)


class Counting(FlinkJobTrigger):
    looks = 0

    def _look(self, wait: Wait) -> Wait | float | None:
        found = super()._look(wait)
        self.looks += 1
        return found


def fired(wait: Wait, settle: float = 0, after: Any = None) -> dict[str, Any]:
    """The event's wait; ``after`` is called once the cluster was looked at twice, which ended nothing."""
    trigger = Counting("flink_default", asdict(wait), settle, 0.02)

    async def scenario() -> dict[str, Any]:
        waiting = asyncio.create_task(anext(trigger.run()))  # type: ignore[arg-type]
        if after is not None:
            while trigger.looks < 2:
                assert not waiting.done()
                await asyncio.sleep(0.01)
            assert not waiting.done()
            after()
        event = await asyncio.wait_for(waiting, 20)
        return dict(event.payload)["wait"]

    return asyncio.run(scenario())


def test_it_waits_for_the_savepoint(cluster: FakeCluster) -> None:
    found = fired(wait("stop-1"), after=lambda: cluster.stops.update({"stop-1": "file:/sp"}))
    assert (found["request_id"], found["proven_since"]) == ("stop-1", None)


def test_a_stop_that_failed_is_for_the_task_to_judge(cluster: FakeCluster) -> None:
    cluster.fail = "result"
    assert fired(wait("stop-1"))["request_id"] == "stop-1"


def test_a_silent_cluster_is_asked_again(cluster: FakeCluster) -> None:
    cluster.fail, cluster.error = "result", ApiError
    found = fired(wait("stop-1"), after=lambda: setattr(cluster, "error", DeployError))
    assert found["job_id"] == "job-1"


def test_it_waits_for_the_job_to_settle(cluster: FakeCluster) -> None:
    found = fired(wait(), settle=0.3, after=lambda: cluster.run("job-1"))
    assert found["proven_since"] == pytest.approx(time.time(), abs=2)
    assert time.time() - found["proven_since"] >= 0.3


def test_a_job_that_failed_needs_no_more_waiting(cluster: FakeCluster) -> None:
    cluster.run("job-1")
    cluster.end("job-1", "FAILED")
    assert fired(wait(), settle=60)["proven_since"] is None


def test_the_time_is_over(cluster: FakeCluster) -> None:
    begin = time.monotonic()
    assert fired(wait("stop-1", seconds=0.3))["request_id"] == "stop-1"
    assert time.monotonic() - begin < 10


def test_it_survives_serialisation() -> None:
    trigger = FlinkJobTrigger("flink_default", asdict(wait("stop-1")), 10.0, 5.0, target="kubernetes")
    name, arguments = trigger.serialize()
    assert name == "airflow_flinkcompat.airflow.triggers.deploy.FlinkJobTrigger"
    assert FlinkJobTrigger(**arguments).serialize() == (name, arguments)
    assert FlinkJobTrigger(**arguments).hook.target == "kubernetes"


# --- ended, cleared or marked by a person -----------------------------------------------------------------------------


def killed(trigger: FlinkJobTrigger) -> None:
    """As the triggerer does it: the run is cancelled, then it is told of the kill, which is cancelled all the while."""

    async def scenario() -> None:
        waiting = asyncio.create_task(anext(trigger.run()))  # type: ignore[arg-type]
        await asyncio.sleep(0.1)
        waiting.cancel()
        told = asyncio.create_task(trigger.on_kill())
        while not told.done():
            await asyncio.sleep(0.01)
            told.cancel()
        told.result()
        await trigger.cleanup()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("request_id", "state", "words"),
    [
        ("stop-1", "RUNNING", "the stop of job job-1 with a savepoint (request stop-1), which continues"),
        (None, "RUNNING", "the verification of job job-1; the job is RUNNING and is neither ended nor verified"),
        (None, None, "the job is in a state that the cluster does not report now"),
    ],
)
def test_a_kill_stops_nothing_and_is_told(
    cluster: FakeCluster, tmp_path: Path, request_id: str | None, state: str | None, words: str, told: Callable[[], str]
) -> None:
    cluster.run("job-1")
    if state is None:
        cluster.status = lambda _: (_ for _ in ()).throw(DeployError("no answer"))  # type: ignore[method-assign]
    held = {"deployment": "orders", "ledger": str(tmp_path), "owner": "airflow:d/r/t"}
    ledger = Ledger(tmp_path, "orders")
    ledger.append(StartedEntry(job=JobSpec("SELECT"), start=JobStart(job_id="job-1"), owner="airflow:d/r/t"))
    before = Progress.of(ledger.entries())
    killed(FlinkJobTrigger("flink_default", asdict(wait(request_id)), 60, 0.02, **held))
    last = ledger.entries()[-1]
    assert (last.kind, last.job_id, last.owner) == ("interrupted", "job-1", "airflow:d/r/t")
    assert words in last.message
    assert words in told()
    assert (cluster.now, {*cluster.calls} & {"stop", "cancel", "submit"}) == ({"job-1": "RUNNING"}, set())
    # It takes no part in the sequence: whoever goes on finds the step that was reached.
    assert Progress.of(ledger.entries()).unfinished == before.unfinished


def test_a_kill_is_told_although_the_ledger_cannot_be_written(
    cluster: FakeCluster, tmp_path: Path, told: Callable[[], str]
) -> None:
    cluster.run("job-1")
    (tmp_path / "file").write_text("")
    held = {"deployment": "orders", "ledger": str(tmp_path / "file"), "owner": "me"}
    killed(FlinkJobTrigger("flink_default", asdict(wait()), 60, 0.02, **held))
    assert "the job is RUNNING and is neither ended nor verified" in told()
    assert "could not be recorded in the ledger of orders" in told()


def test_a_triggerer_that_goes_away_is_no_kill(cluster: FakeCluster, tmp_path: Path) -> None:
    """It cancels what it runs and cleans up; another one takes the trigger up."""
    cluster.run("job-1")
    trigger = FlinkJobTrigger("flink_default", asdict(wait()), 60, 0.02, "orders", str(tmp_path), "me")

    async def scenario() -> None:
        waiting = asyncio.create_task(anext(trigger.run()))  # type: ignore[arg-type]
        await asyncio.sleep(0.1)
        waiting.cancel()
        await trigger.cleanup()

    asyncio.run(scenario())
    assert Ledger(tmp_path, "orders").entries() == ()
    assert "cancel" not in cluster.calls


def test_what_flink_says_is_shown_by_the_task_alone(cluster: FakeCluster, told: Callable[[], str]) -> None:
    """What its message holds of a connection is masked there."""
    cluster.fail, cluster.error = "result", lambda _: DeployError("the sink refused planted-word")
    fired(wait("stop-1"))
    assert "the wait has a result (StopFailed)" in told()
    assert "planted-word" not in told()


def test_a_connection_that_cannot_be_read_is_for_the_task_to_tell(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FlinkHook, "get_conn", lambda _self: (_ for _ in ()).throw(AirflowNotFoundException("none")))
    assert fired(wait("stop-1"))["request_id"] == "stop-1"


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


SILENT = GatewayError("the SQL Gateway does not answer")


def asked(monkeypatch: pytest.MonkeyPatch, answer: Callable[[int], Any], *, seconds: float = 20) -> tuple[int, float]:
    """How often the Gateway was asked until the trigger fired, and the time left then. ``answer``: by that number."""
    times = 0

    def engine(_hook: FlinkHook) -> Any:
        nonlocal times
        times += 1
        found = answer(times)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(FlinkHook, "engine", engine)
    until = time.time() + seconds
    event = asyncio.run(asyncio.wait_for(anext(SqlGatewayTrigger("f", until, first_pause=0.01).run()), 30))
    assert event.payload == {"until": until, "silent": times > 1}
    return times, until - time.time()


@pytest.mark.parametrize("silence", [SILENT, AnswerLost("nothing came")])
def test_it_fires_once_the_target_answers(monkeypatch: pytest.MonkeyPatch, silence: Exception) -> None:
    with capture_logs() as records:
        times, left = asked(monkeypatch, lambda time: silence if time < 4 else ("flink", "2.3.0"))
    assert times == 4
    assert left > 0
    assert len(records) == 1, "silence is said once"


def test_it_asks_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploy, "_LAST", 0.08)
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def paused(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", paused)
    asked(monkeypatch, lambda time: SILENT if time < 7 else ("flink", "2.3.0"))
    assert pauses == [0.01, 0.02, 0.04, 0.08, 0.08, 0.08]


def test_the_time_is_over_for_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    times, left = asked(monkeypatch, lambda _time: SILENT, seconds=0.3)
    assert times > 1
    assert left <= 0


@pytest.mark.parametrize("error", [GatewayError("login is wrong", 401), AirflowNotFoundException("f"), OSError("bug")])
def test_what_else_is_wrong_is_for_the_task_to_judge(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    assert asked(monkeypatch, lambda _time: error)[0] == 1


def test_it_survives_serialisation_for_the_gateway() -> None:
    path, arguments = SqlGatewayTrigger("flink_default", 5.0, target="kubernetes").serialize()
    assert path == "airflow_flinkcompat.airflow.triggers.deploy.SqlGatewayTrigger"
    assert SqlGatewayTrigger(**arguments).serialize() == (path, arguments)
    assert arguments["target"] == "kubernetes"
