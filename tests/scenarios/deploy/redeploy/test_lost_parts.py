"""Parts of the cluster are killed in the middle of a redeploy: the old job is back, or the error says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy import DeployError, RolledBack, StartFailed
from dev.services.csv_job import wait_for
from tests.scenarios.deploy.deployment_fixture import OPTIONS, DeploymentFixture, FragileFlink
from tests.scenarios.deploy.failures import Cases

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

case = Cases("lost-parts", "Redeploys in which a part of the cluster is killed")
WATCHFUL = replace(OPTIONS, settle_seconds=5)  # longer than it takes the JobManager to miss a TaskManager


def _fragile(stage: DeploymentFixture) -> FragileFlink:
    assert isinstance(stage.flink, FragileFlink)
    return stage.flink


@case("TaskManager killed right after the restore, another one comes")
def taskmanager_killed(stage: DeploymentFixture) -> str:
    flink, target = _fragile(stage), stage.reached_by()

    def replaced() -> None:
        flink.kill("taskmanager")
        flink.revive("taskmanager")

    target.before["restored_from"] = replaced
    kind, message = stage.fails(target, options=WATCHFUL)
    assert kind is RolledBack, message
    assert re.search(r"job \w{32} is \w+ after its start: ", message)
    assert "may be written again" in message
    head = stage.ledger.head()
    assert head is not None
    stage.goes_on(head.job_id)
    return message


@case("TaskManager killed right after the restore, none comes")
def taskmanager_lost(stage: DeploymentFixture) -> str:
    flink, target = _fragile(stage), stage.reached_by()
    target.before["restored_from"] = lambda: flink.kill("taskmanager")
    try:
        kind, message = stage.fails(target, options=replace(WATCHFUL, start_timeout=15))
        assert kind is RolledBack, message
        head = stage.ledger.head()
        assert head is not None
        began = f"started again as job {head.job_id} from {head.start.savepoint}"
        for part in (began, "was not verified", "Check the job manually"):
            assert part in message
    finally:
        flink.revive("taskmanager")
    stage.goes_on(head.job_id)
    return message


def _jobmanager_killed(stage: DeploymentFixture, complete: bool) -> tuple[str, Path]:
    """Killed when the stop has been asked for. It knows nothing of any job when it is back: there is no HA."""
    flink, target = _fragile(stage), stage.reached_by()

    def die() -> None:
        wait_for(lambda: stage.savepoints, "the savepoint is complete")
        flink.kill("jobmanager")
        if not complete:
            (stage.savepoints[0] / "_metadata").unlink()

    target.after["stop"] = die
    place = flink.work_dir / "savepoints" / stage.name
    try:
        kind, message = stage.fails(target)
        assert issubclass(kind, DeployError)
        assert f"the JobManager at {flink.jobmanager_url} does not answer" in message
        assert stage.kinds == ["deploying", "stopping"]
    finally:
        flink.kill("taskmanager")  # it may write on for a job that is gone
        flink.revive("jobmanager", "taskmanager")
    return message, place


@case("JobManager killed in a stop whose savepoint was complete")
def jobmanager_killed_after(stage: DeploymentFixture) -> str:
    message, place = _jobmanager_killed(stage, complete=True)
    entry = stage.run()
    assert str(place) in str(entry.start.savepoint).replace("file://", ""), "found in the stop's own folder"
    assert entry.kind == "deployed"
    assert stage.running == (entry.job_id,)
    return f"{message}; the retry found the savepoint and deployed"


@case("JobManager killed in a stop whose savepoint was not complete")
def jobmanager_killed_mid(stage: DeploymentFixture) -> str:
    _jobmanager_killed(stage, complete=False)
    kind, message = stage.fails()
    assert kind is StartFailed
    for part in ("is unknown to the cluster", "its latest checkpoint was file:", "SET 'execution.", "ledger adopt"):
        assert part in message
    assert stage.kinds == ["deploying", "stopping", "deploying", "failed"]
    assert stage.running == ()
    return message


# ----------------------------------------------------------------------------------------------------------- the runs
@pytest.fixture(scope="module")
def fragile_flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FragileFlink]:
    soon = {"heartbeat.interval": "1 s", "heartbeat.timeout": "20 s"}  # the loss of a part is noticed
    with FragileFlink(tmp_path_factory.mktemp("fragile"), slots=2, config=soon) as flink:
        yield flink


@pytest.mark.parametrize("name", case.sample(1))
def test_one_job_runs_or_it_is_said_what_to_do(name: str, fragile_flink: FragileFlink, tmp_path: Path) -> None:
    case.run(name, fragile_flink, tmp_path)
