"""A redeploy killed at every call of its sequence, and taken up by a retry: on a real Flink."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy import SqlGatewayTarget
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.local_flink import LocalFlink
from tests.deploy.faults import Result, write
from tests.deploy.kills import Point
from tests.deploy.scenarios import OPTIONS, SCENARIOS, Case, Scenario
from tests.nightly import NIGHTLY, sample

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


@dataclass
class Matrix:
    """Cases as they are run; what became of them is written down after every one, so that a run may be cut."""

    flink: LocalFlink
    root: Path
    results: list[Result] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def case(self, scenario: Scenario, *points: Point, late: bool = False) -> Case:
        name = f"{scenario.name.replace(' ', '-')}-{RUN}-{next(self.numbers):03d}"
        return Case(self.flink, self.root, scenario, name, points, late)

    def run(self, cases: list[Case]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for left, done in enumerate(as_completed([pool.submit(case.run) for case in cases]), 1 - len(cases)):
                self.results.append(done.result())
                if NIGHTLY:
                    write("kills", "Redeploys killed and taken up", self.results, [_NOTES], -left)


def test_a_killed_run_is_taken_up_by_its_retry(local_flink: LocalFlink, tmp_path: Path) -> None:
    """Exactly one job runs, with the rows of an undisturbed run; the ledger is whole; one savepoint was taken."""
    matrix = Matrix(local_flink, tmp_path)
    undisturbed = [matrix.case(scenario) for scenario in sample(SCENARIOS, 1)]
    matrix.run(undisturbed)
    killed, late = [], []
    for case in undisturbed:
        if len(case.told) < 2:  # it went wrong, and its result says how
            continue
        points = case.told[0].points
        assert case.told[0].outcome == case.scenario.comes_to
        assert len(points) == len(set(points))
        at = case.scenario.killed_at(points)
        assert at, f"{case.scenario.name}: nothing to kill it at"
        killed += [matrix.case(case.scenario, point) for point in sample(at, 3)]
        late += [matrix.case(case.scenario, point, late=True) for point in sample(case.scenario.late_at(points), 1)]
    matrix.run(late + killed)
    again = [
        matrix.case(case.scenario, *case.points, point)
        for case in killed
        if case.scenario.killed_again_at(case.points) and case.told
        for point in case.scenario.killed_again_at(case.told[-1].points)
    ]
    matrix.run(sample(again, 1))
    wrong = [f"{result.scenario}, {result.fault}: {result.wrong}" for result in matrix.results if result.wrong]
    assert not wrong, f"{len(wrong)} of {len(matrix.results)} cases are wrong:\n" + "\n".join(wrong)


def test_another_owner_waits_for_a_killed_run_and_then_takes_it_up(local_flink: LocalFlink, tmp_path: Path) -> None:
    """The name of a run is what lets its retry in at once; everybody else waits until it is held for dead."""
    case = Case(local_flink, tmp_path, SCENARIOS[0], f"other-{RUN}")
    with SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url) as target:
        first = case.deployed(target)
        attempt = case.attempt(first)
        killed = attempt.hit_at(Point("stopping", "POST /jobs/*/stop", 1, True), tmp_path / "killed.json")
        killed.join(120)
        assert killed.exitcode == -signal.SIGKILL
        outcome, message = replace(attempt, owner="another").said()
        assert outcome == "DeployRefused"
        assert f"worker is deploying other-{RUN} (entry 3, stopping" in message
        later = replace(attempt, owner="another", options=replace(OPTIONS, claim_seconds=0))
        try:
            assert later.run() == "deployed"
            case.check_cluster(target)
            case.check_ledger(first)
        finally:
            for job_id in target.running(case.name):
                target.cancel(job_id)
