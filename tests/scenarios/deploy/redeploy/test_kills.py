"""A redeploy killed at every call of its sequence, and taken up by a retry: on a real Flink."""

from __future__ import annotations

import signal
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from tests.scenarios.deploy.kill_cases import Hit, Matrix
from tests.scenarios.deploy.kills import Point
from tests.scenarios.deploy.scenarios import CATCHES_UP, FROM_HISTORY, OPTIONS, SCENARIOS, FlinkCase, FlinkScenario
from tests.support.nightly import NIGHTLY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200 if NIGHTLY else 600)]

AT_ONCE = 6 if NIGHTLY else 4
RUN = new_id()[:6]  # in every name: no other run's jobs are taken for this one's
_NOTES = (
    "A redeploy on a real Flink, killed (SIGKILL) before and after every request that does something, before and after "
    "every entry of the ledger gets its name, and at the looks that decide what is done next. Then the same run once "
    "more; in some cases that one is killed as well, and a third one is let be; in others the first one is paused "
    "(SIGSTOP) and goes on when its retry has come to its end. Right is: exactly one job of that name runs (none where "
    "the way back fails, too: the message then names the savepoint, from which the job is started by hand), its rows "
    "are those of an undisturbed run, the ledger has no gap and nothing from a late run, one stop and one savepoint. A "
    "point is within the phase that begins with the named entry. `make test-full` makes this file."
)


def _case(
    flink: LocalFlink,
    root: Path,
    scenario: FlinkScenario,
    name: str,
    points: tuple[Point, ...] = (),
    hit: Hit = Hit.KILLED,
) -> FlinkCase:
    place = partial(SqlGatewayTarget, flink.gateway_url, flink.jobmanager_url)
    location = TargetLocation("sql-gateway", {"gateway": flink.gateway_url, "jobmanager": flink.jobmanager_url})
    return FlinkCase(root, scenario, name, points, hit, flink=flink, place=place, location=location)


@pytest.mark.nightly
def test_a_killed_run_is_taken_up_by_its_retry(local_flink: LocalFlink, tmp_path: Path) -> None:
    """Exactly one job runs, with the rows of an undisturbed run; the ledger is whole; one savepoint was taken."""
    numbers = count()

    def case(scenario: FlinkScenario, points: tuple[Point, ...], hit: Hit, losses: int) -> FlinkCase:
        name = f"{scenario.name.replace(' ', '-')}-{RUN}-{next(numbers):03d}"
        return _case(local_flink, tmp_path, scenario, name, points, hit)

    Matrix(case, "kills", "Redeploys killed and taken up", _NOTES, AT_ONCE).whole(SCENARIOS)


@pytest.mark.nightly
def test_a_killed_run_that_computes_state_is_taken_up_by_its_retry(local_flink: LocalFlink, tmp_path: Path) -> None:
    """Before and after it is prepared, once the job has stopped, and while its savepoint is written."""
    numbers = count()

    def case(scenario: FlinkScenario, points: tuple[Point, ...], hit: Hit, losses: int) -> FlinkCase:
        return _case(local_flink, tmp_path, scenario, f"history-{RUN}-{next(numbers):03d}", points, hit)

    title = "Redeploys that compute state from history, killed and taken up"
    Matrix(case, "kills-history", title, _NOTES, at_once=2).whole([FROM_HISTORY])


@pytest.mark.nightly
def test_a_killed_run_that_catches_up_is_resumed_by_its_retry(local_flink: LocalFlink, tmp_path: Path) -> None:
    """Before the stop, next to the running job, and after the stop."""
    numbers = count()

    def case(scenario: FlinkScenario, points: tuple[Point, ...], hit: Hit, losses: int) -> FlinkCase:
        return _case(local_flink, tmp_path, scenario, f"catch-up-{RUN}-{next(numbers):03d}", points, hit)

    title = "Redeploys that catch up before the stop, killed and resumed"
    Matrix(case, "kills-catch-up", title, _NOTES, at_once=2).whole([CATCHES_UP])


@pytest.mark.nightly
def test_another_owner_waits_for_a_killed_run_and_then_takes_it_up(local_flink: LocalFlink, tmp_path: Path) -> None:
    """The name of a run is what lets its retry in at once; everybody else waits until it is held for dead."""
    case = _case(local_flink, tmp_path, SCENARIOS[0], f"other-{RUN}")
    with case.staged() as target:
        first = case.deployed(target)
        attempt = case.attempt(first)
        killed = attempt.hit_at(Point("stopping", "POST /jobs/*/stop", 1, True), tmp_path / "killed.json")
        killed.join(120)
        assert killed.exitcode == -signal.SIGKILL
        outcome, message = replace(attempt, owner="another").said()
        assert outcome == "DeployRefused"
        assert f"worker is deploying other-{RUN} (entry 3, stopping" in message
        later = replace(attempt, owner="another", options=replace(OPTIONS, claim_seconds=0))
        assert later.run() == "deployed"
        case.check_job(target)
        case.check_ledger(first)
