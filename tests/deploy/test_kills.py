"""A redeploy killed at every call of its sequence, and taken up by a retry: on a real Flink."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy import Ledger, LedgerEntry, LocalFlink, Options, SqlGatewayTarget, Start
from airflow_flinkcompat.deploy.run import new_id
from airflow_flinkcompat.deploy.steps import STOPPED, STOPPING
from tests.deploy.faults import ALL, Result, sample, write
from tests.deploy.jobs import SETTINGS, Files, Side, wait_for
from tests.deploy.kills import Attempt, Point, undisturbed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200 if ALL else 600)]

OPTIONS = Options(settle_seconds=0.5, start_timeout=240, stop_timeout=240)
AT_ONCE = 8 if ALL else 4
RUN = new_id()[:6]  # in every name: no other run's jobs are taken for this one's
# Rows may be ten minutes late, so that files which arrive while nothing runs may be read in any order.
FILES = {
    "before": [("ann", 1, "00:10"), ("ann", 2, "00:20"), ("ann", 4, "01:10"), ("ann", 100, "11:00")],  # ends minute 0
    "while it runs": [("ann", 8, "02:10"), ("bob", 1, "01:10"), ("ann", 200, "11:30")],
    "while nobody deploys": [("ann", 16, "02:30"), ("ann", 400, "12:10")],  # ends minute 1
    "after": [("ann", 32, "02:40"), ("ann", 800, "13:10")],  # ends minute 2
}
ROWS = [
    'ann,3,"2026-01-01 00:00:00"',
    'ann,4,"2026-01-01 00:01:00"',
    'ann,56,"2026-01-01 00:02:00"',
    'bob,1,"2026-01-01 00:01:00"',
]


def _script(files: Files, **changes: str) -> str:
    """The jobs' script, with a patient watermark."""
    eager, patient = "FOR ts AS ts", "FOR ts AS ts - INTERVAL '10' MINUTE"
    text = files.script(**changes)
    assert eager in text
    return text.replace(eager, patient)


def _succeeds(files: Files) -> Side:
    return Side(_script(files), {**SETTINGS, "table.exec.state.ttl": "1 d"})


def _refused_at_submit(files: Files) -> Side:
    return Side(_script(files, where=" WHERE amount > 1"))


def _refused_at_restore(files: Files) -> Side:
    """It restarts for ever, so it has to be cancelled."""
    more = "customer STRING, total BIGINT, since TIMESTAMP(3), most BIGINT"
    script = _script(files, select="customer, SUM(amount), window_start, MAX(amount)", columns=more)
    return Side(script, {**SETTINGS, "restart-strategy.type": "exponential-delay"})


@dataclass(frozen=True)
class Scenario:
    """``comes_to`` is what a run ends in; ``only`` names the calls that no other scenario makes."""

    name: str
    proposed: Callable[[Files], Side]
    comes_to: str
    start_mode: str = "savepoint"
    only: str = ""

    @property
    def stops(self) -> int:
        return int(self.start_mode != "checkpoint")


SCENARIOS = (
    Scenario("succeeds", _succeeds, "deployed"),
    Scenario("refused at submit", _refused_at_submit, "RolledBack"),
    Scenario("refused at restore", _refused_at_restore, "RolledBack"),
    Scenario("goes on from a checkpoint", _succeeds, "deployed", "checkpoint", only="PATCH"),
)


@dataclass
class Case:
    """One deployment, redeployed by a run that is killed at ``point`` (None: by one that is not)."""

    flink: LocalFlink
    root: Path
    scenario: Scenario
    point: Point | None
    name: str

    def __post_init__(self) -> None:
        self.files = Files(self.root / self.name)
        self.ledger = Ledger(self.root / "ledger", self.name)
        self.seen = self.root / f"{self.name}.json"

    def run(self) -> Result:
        began = time.monotonic()
        fault = str(self.point) if self.point else "none"
        with SqlGatewayTarget(self.flink.gateway_url, self.flink.jobmanager_url) as target:
            try:
                outcome, wrong = self._redeployed(target), ""
            except Exception as error:  # every case is told of, whatever became of it
                outcome, wrong = "", f"{type(error).__name__}: {error}"
            finally:
                for job_id in target.running(self.name):
                    target.cancel(job_id)
        print(f"{self.scenario.name}, {fault}: {wrong or outcome}", flush=True)
        return Result(self.scenario.name, fault, outcome, time.monotonic() - began, wrong)

    def _redeployed(self, target: SqlGatewayTarget) -> str:
        first = self._deployed(target)
        attempt = self._attempt(first)
        killed = attempt.killed_at(self.point, self.seen)
        self.files.arrive("while it runs", FILES["while it runs"])
        killed.join(300)
        assert killed.exitcode == (0 if self.point is None else -signal.SIGKILL), f"it ended by {killed.exitcode}"
        reached = [entry.kind for entry in self.ledger.entries()][1:]
        self.files.arrive("while nobody deploys", FILES["while nobody deploys"])
        outcome, message = attempt.said()
        assert outcome == self.scenario.comes_to, f"the retry came to {outcome}: {message}"
        self._check_cluster(target)
        self._check_ledger(first)
        self._check_rows()
        return f"{outcome}; {reached[-1] if reached else 'nothing'} was the last entry before the retry"

    def _attempt(self, first: LedgerEntry) -> Attempt:
        """One call of the run ``worker``, whose change was checked against the first entry."""
        return Attempt(
            self.flink.gateway_url,
            self.flink.jobmanager_url,
            self.root / "ledger",
            self.name,
            self.scenario.proposed(self.files),
            self.scenario.start_mode,
            first.sha256,
            "worker",
            OPTIONS,
        )

    def _deployed(self, target: SqlGatewayTarget) -> LedgerEntry:
        """The job as an earlier redeploy left it, with an open window in its state."""
        kept = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
        side, job_id = Side(_script(self.files), {**SETTINGS, **kept}), new_id()
        self.files.arrive("before", FILES["before"])
        target.submit(side.script, {"pipeline.name": self.name, **side.settings}, Start(), job_id=job_id)
        entry = LedgerEntry(
            "deployed",
            side.script,
            side.settings,
            engine=side.engine,
            engine_version=side.engine_version,
            sha256=side.sha256,
            job_id=job_id,
            owner="an earlier run",
        )
        wait_for(lambda: self.files.rows() == ROWS[:1], "minute 0 is written", 240)
        return self.ledger.append(entry)

    def _check_cluster(self, target: SqlGatewayTarget) -> None:
        """One job of this name runs, it is the ledger's, and there never was one that the ledger does not know."""
        head = self.ledger.head()
        assert head is not None
        running = target.running(self.name)
        assert running == (head.job_id,), f"{len(running)} jobs run, the ledger's is {head.job_id}"
        known = {entry.job_id for entry in self.ledger.entries()}
        had = {job.job_id for job in target._jobmanager.jobs().values() if job.name == self.name}
        assert had <= known, f"jobs the ledger does not know: {had - known}"
        assert target.restored_from(str(head.job_id)) == head.savepoint

    def _check_ledger(self, first: LedgerEntry) -> None:
        """Every entry can be read, none is missing; one stop at most, and its savepoint is where it says."""
        entries = self.ledger.entries()
        assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
        assert not [entry for entry in entries if entry.passes_over]
        stops = {entry.trigger_id for entry in entries if entry.kind == STOPPING and entry.trigger_id}
        assert len(stops) == self.scenario.stops, f"{len(stops)} stops"
        savepoints = list((self.flink.work_dir / "savepoints" / self.name).glob("*/savepoint-*/_metadata"))
        assert len(savepoints) == self.scenario.stops, f"{len(savepoints)} savepoints"
        stopped = {(entry.job_id, entry.savepoint) for entry in entries if entry.kind == STOPPED}
        assert len(stopped) == 1, f"stopped says {stopped}"
        ((job_id, savepoint),) = stopped
        assert job_id == first.job_id
        assert (Path(str(savepoint).removeprefix("file:")) / "_metadata").is_file()

    def _check_rows(self) -> None:
        """The rows of an undisturbed run: none lost, none written twice."""

        early = [row for row in ROWS if "00:02" not in row]
        wait_for(lambda: len(self.files.rows()) >= len(early), "minute 1 is written", 240)
        self.files.arrive("after", FILES["after"])
        wait_for(lambda: len(self.files.rows()) >= len(ROWS), "minute 2 is written", 240)
        assert self.files.rows() == ROWS


def _name(scenario: Scenario, number: int) -> str:
    return f"{scenario.name.replace(' ', '-')}-{RUN}-{number:03d}"


def _run(cases: list[Case]) -> list[Result]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(Case.run, cases))


def _points(flink: LocalFlink, root: Path, scenario: Scenario) -> tuple[Result, list[Point]]:
    """The points of a run that is let be."""
    case = Case(flink, root, scenario, None, _name(scenario, 0))
    result = case.run()
    assert not result.wrong, f"{scenario.name}, undisturbed: {result.wrong}"
    outcome, points = undisturbed(case.seen)
    assert outcome == scenario.comes_to
    assert len(points) == len(set(points))
    return result, [point for point in points if scenario.only in point.call]


def test_a_killed_run_is_taken_up_by_its_retry(local_flink: LocalFlink, tmp_path: Path) -> None:
    """Exactly one job runs, with the rows of an undisturbed run; the ledger is whole; one savepoint was taken."""
    results, cases = [], []
    for scenario in sample(SCENARIOS, 1):
        result, points = _points(local_flink, tmp_path, scenario)
        results.append(result)
        assert points, f"{scenario.name}: nothing to kill it at"
        for number, point in enumerate(sample(points, 3), 1):
            cases.append(Case(local_flink, tmp_path, scenario, point, _name(scenario, number)))
    print("killed at:", *(f"{case.scenario.name}: {case.point}" for case in cases), sep="\n  ")
    results += _run(cases)
    if ALL:
        notes = [
            "A redeploy on a real Flink, killed (SIGKILL) before and after every request that does something, before "
            "and after every entry of the ledger gets its name, and at the looks that decide what is done next. Then "
            "the same run once more. Right is: exactly one job of that name runs, its rows are those of an undisturbed "
            "run, the ledger has no gap, one stop and one savepoint. A point is within the phase that begins with the "
            "named entry. `make test-full` makes this file."
        ]
        write("kills", "Redeploys killed and taken up", results, notes)
    wrong = [f"{result.scenario}, {result.fault}: {result.wrong}" for result in results if result.wrong]
    assert not wrong, f"{len(wrong)} of {len(results)} cases are wrong:\n" + "\n".join(wrong)


def test_another_owner_waits_for_a_killed_run_and_then_takes_it_up(local_flink: LocalFlink, tmp_path: Path) -> None:
    """The name of a run is what lets its retry in at once; everybody else waits until it is held for dead."""
    case = Case(local_flink, tmp_path, SCENARIOS[0], Point("stopping", "POST /jobs/*/stop", 1, True), f"other-{RUN}")
    with SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url) as target:
        first = case._deployed(target)
        attempt = case._attempt(first)
        killed = attempt.killed_at(case.point, case.seen)
        killed.join(120)
        assert killed.exitcode == -signal.SIGKILL
        outcome, message = replace(attempt, owner="another").said()
        assert outcome == "DeployRefused"
        assert f"worker is deploying other-{RUN} (entry 3, stopping" in message
        later = replace(attempt, owner="another", options=replace(OPTIONS, claim_seconds=0))
        try:
            assert later.run() == "deployed"
            case._check_cluster(target)
            case._check_ledger(first)
        finally:
            for job_id in target.running(case.name):
                target.cancel(job_id)
