"""The JobManager is killed in the middle of a redeploy and comes back with its jobs: never two of one deployment."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy import DeployError, StartFailed
from airflow_flinkcompat.deploy.flink.polling import poll
from dev.services.csv_job import SETTINGS, Side, wait_for
from tests.scenarios.deploy.deployment_fixture import OPTIONS, DeploymentFixture, RecoveringFlink
from tests.scenarios.deploy.failures import Cases

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1800)]

case = Cases("high-availability", "Redeploys in which a highly available JobManager is killed")
PATIENT = replace(OPTIONS, start_timeout=240, stop_timeout=240)
NO_ANSWER = re.compile(r"does not answer|answered 503|It is unknown if")


def _recovering(stage: DeploymentFixture) -> RecoveringFlink:
    assert isinstance(stage.flink, RecoveringFlink)
    return stage.flink


def _killed(
    stage: DeploymentFixture, when: str, call: str, until: Callable[[], object] = lambda: None, **more: object
) -> list[str]:
    """What a run is told whose JobManager is killed before or after a call, and what its retries come to.

    The first retry is made while the JobManager starts; there is another one for as long as it does not answer.
    """
    flink, target = _recovering(stage), stage.reached_by()

    def kill() -> None:
        until()
        flink.kill("jobmanager")

    getattr(target, when)[call] = kill
    told = []

    def deployed() -> bool:
        try:
            told.append(stage.run(target, options=PATIENT, **more).kind)
        except StartFailed as error:
            told.append(f"{type(error).__name__}: {error}")
        except DeployError as error:
            if not NO_ANSWER.search(str(error)):
                raise
            told.append(str(error))
            return False
        return True

    try:
        assert not deployed(), told
        known = stage.kinds
    finally:
        flink.respawn("jobmanager")
    poll(deployed, lambda done: not done, timeout=600, every=10)
    return [told[0], f"after {known[-1]}", told[-1]]


def _goes_on(stage: DeploymentFixture, told: list[str], *ends: str) -> str:
    """One job runs, the ledger's; its rows are whole; one savepoint or another is where it says."""
    head = stage.ledger.head()
    assert head is not None
    assert told[-1].startswith(ends), told
    assert stage.jobs <= {entry.job_id for entry in stage.ledger.entries()}
    stage.goes_on(head.job_id)
    return "; ".join(told)


@case("in a stop that was asked for")
def in_a_stop(stage: DeploymentFixture) -> str:
    told = _killed(stage, "after", "stop")
    return _goes_on(stage, told, "deployed")


@case("in a stop whose savepoint was complete")
def after_the_savepoint(stage: DeploymentFixture) -> str:
    def complete() -> None:
        wait_for(lambda: stage.savepoints, "the savepoint is complete")

    return _goes_on(stage, _killed(stage, "after", "stop", complete), "deployed")


@case("after the stop, before the start")
def after_the_stop(stage: DeploymentFixture) -> str:
    told = _killed(stage, "before", "start")
    assert len(stage.savepoints) == 1
    return _goes_on(stage, told, "deployed")


@case("right after the start")
def after_the_start(stage: DeploymentFixture) -> str:
    return _goes_on(stage, _killed(stage, "after", "start"), "deployed", "RolledBack")


@case("while the new job is verified")
def while_verified(stage: DeploymentFixture) -> str:
    return _goes_on(stage, _killed(stage, "before", "restored_from"), "deployed", "RolledBack")


@case("when the new job, which restarts for ever, is to be cancelled")
def before_the_way_back(stage: DeploymentFixture) -> str:
    more = "customer STRING, total BIGINT, since TIMESTAMP(3), most BIGINT"
    script = stage.files.script(select="customer, SUM(amount), window_start, MAX(amount)", columns=more)
    refused = Side(script, {**SETTINGS, "restart-strategy.type": "exponential-delay"})
    told = _killed(stage, "before", "cancel", side=refused)
    return _goes_on(stage, told, "RolledBack")


# ----------------------------------------------------------------------------------------------------------- the runs
@pytest.fixture(scope="module")
def recovering_flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecoveringFlink]:
    # A JobManager that recovers gives up when a busy machine keeps it waiting.
    soon = {"heartbeat.interval": "1 s", "heartbeat.timeout": "20 s", "pekko.ask.timeout": "120 s"}
    with RecoveringFlink(tmp_path_factory.mktemp("recovering"), slots=2, config=soon) as flink:
        yield flink


@pytest.mark.parametrize("name", case.sample(1))
def test_one_job_runs_when_the_jobmanager_is_back(name: str, recovering_flink: RecoveringFlink, tmp_path: Path) -> None:
    case.run(name, recovering_flink, tmp_path)
