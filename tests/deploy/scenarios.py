"""What a redeploy that is killed is to come to: scenarios as data, and one case of them on a real Flink."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess
from pathlib import Path

from airflow_flinkcompat.deploy import Ledger, Options, SqlGatewayTarget, Start
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, JobStart, StepEntry, StoppedEntry, StoppingEntry
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.model import JobSpec
from tests.deploy.faults import Result
from tests.deploy.jobs import SETTINGS, Files, Side, wait_for
from tests.deploy.kills import Attempt, Point, Told

OPTIONS = Options(settle_seconds=0.5, start_timeout=240, stop_timeout=240)
PATIENCE = 600.0
"""How long (seconds) a step of a case may take before the case is held to be wrong: six go on at once."""
# Rows may be ten minutes late, so that files which arrive while nothing runs may be read in any order.
FILES = {
    "before": [("ann", 1, "00:10"), ("ann", 2, "00:20"), ("ann", 4, "01:10"), ("ann", 100, "11:00")],  # ends minute 0
    "while it runs": [("ann", 8, "02:10"), ("bob", 1, "01:10"), ("ann", 200, "11:30")],
    "while nobody deploys": [("ann", 16, "02:30"), ("ann", 400, "12:10")],  # ends minute 1
    "after": [("ann", 32, "02:40"), ("ann", 800, "13:10")],  # ends minute 2
}
TOTALS = {
    "before": ['ann,3,"2026-01-01 00:00:00"'],
    "while nobody deploys": ['ann,4,"2026-01-01 00:01:00"', 'bob,1,"2026-01-01 00:01:00"'],
    "after": ['ann,56,"2026-01-01 00:02:00"'],
}
"""Rows of the windowed job, by the file whose watermark ends their window."""
COPIES = {name: [f'{who},{amount},"2026-01-01 00:{at}"' for who, amount, at in rows] for name, rows in FILES.items()}
"""Rows of a job that copies what it reads, in any order, from the first file on."""


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


def _migrated(files: Files) -> Side:
    """Other key groups, to which state is written by itself: Flink alone refuses the savepoint."""
    return Side(_script(files), {**SETTINGS, "pipeline.max-parallelism": "64"})


def _copies(files: Files) -> Side:
    """No state of the windowed job fits it."""
    tables, _, _ = _script(files).partition("INSERT INTO")
    return Side(f"{tables}INSERT INTO totals SELECT customer, amount, ts FROM orders;")


@dataclass(frozen=True)
class Scenario:
    """``comes_to`` is what a run ends in; ``first``: nothing was deployed before.

    ``recorded`` is the side that the ledger says runs, where that is not the one that does. ``only`` and ``late`` name
    the points at which a run is killed (where its way is not that of an earlier scenario), or paused until its retry is
    over; ``again``: retries are killed as well.
    """

    name: str
    proposed: Callable[[Files], Side]
    comes_to: str
    start_mode: str = "savepoint"
    first: bool = False
    recorded: Callable[[Files], Side] | None = None
    only: str = ""
    late: str | None = None
    again: bool = False

    @property
    def stops(self) -> int:
        """How many savepoints are taken."""
        return int(self.start_mode != "checkpoint" and not self.first)

    @property
    def rows(self) -> dict[str, list[str]]:
        """All rows that are written, by the file after which they are."""
        if self.proposed is not _copies:
            return TOTALS
        return COPIES if self.first else {**COPIES, "before": TOTALS["before"] + COPIES["before"]}

    def killed_at(self, points: Sequence[Point]) -> list[Point]:
        return [point for point in points if re.search(self.only, str(point))]

    def late_at(self, points: Sequence[Point]) -> list[Point]:
        """Where it does something, and where it begins to wait for the proof of its start."""
        late = self.late
        if late is None:
            return []
        return [
            point
            for point in points
            if (point.has_effect or (point.phase == "started" and point.after)) and re.search(late, str(point))
        ]

    def killed_again_at(self, points: Sequence[Point]) -> list[Point]:
        return [point for point in points if self.again and point.has_effect and point.after]


SCENARIOS = (
    Scenario("succeeds", _succeeds, "deployed", late="", again=True),
    Scenario("refused at submit", _refused_at_submit, "RolledBack", only="^(starting|failed|rolling-back)"),
    Scenario(
        "refused at restore",
        _refused_at_restore,
        "RolledBack",
        only="^(started|failed|rolling-back)",
        late="^(failed|rolling-back)",
        again=True,
    ),
    Scenario(
        "migrates", _migrated, "deployed", "migrated", only="^(stopped|migrating|migrated|starting)", late="migrat"
    ),
    Scenario("goes on from a checkpoint", _succeeds, "deployed", "checkpoint", only="PATCH"),
    Scenario("starts without state", _copies, "deployed", "stateless", only="^(stopped|starting|started)"),
    Scenario("first start", _copies, "deployed", "auto-first", first=True, late=""),
    Scenario(
        "cannot be rolled back",
        _refused_at_submit,
        "StartFailed",
        recorded=lambda files: Side(_script(files, where=" WHERE amount > 2")),
        only="^(failed|rolling-back)",
    ),
)


@dataclass
class Case:
    """One deployment, redeployed by runs that are killed at ``points``, each at one, and then by one that is let be.

    Without points the first one is let be, too. ``late``: the run is not killed but paused, and goes on when its retry
    has come to its end.
    """

    flink: LocalFlink
    root: Path
    scenario: Scenario
    name: str
    points: tuple[Point, ...] = ()
    late: bool = False
    told: list[Told] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.files = Files(self.root / self.name)
        self.ledger = Ledger(self.root / "ledger", self.name)

    @property
    def fault(self) -> str:
        points = ", then ".join(map(str, self.points)) or "none"
        return f"{points}; paused there until the retry was over" if self.late else points

    def run(self) -> Result:
        began = time.monotonic()
        with SqlGatewayTarget(self.flink.gateway_url, self.flink.jobmanager_url) as target:
            try:
                outcome, wrong = self._redeployed(target), ""
            except Exception as error:  # every case is told of, whatever became of it
                outcome, wrong = "", f"{type(error).__name__}: {error}"
            finally:
                for job_id in target.running(self.name):
                    target.cancel(job_id)
        print(f"{self.scenario.name}, {self.fault}: {wrong or outcome}", flush=True)
        return Result(self.scenario.name, self.fault, outcome, time.monotonic() - began, wrong)

    def _redeployed(self, target: SqlGatewayTarget) -> str:
        first = self.deployed(target)
        attempt = self.attempt(first)
        begun = self.ledger.entries()[-1].number if first else 0
        paused = None
        for turn, point in enumerate(self.points or (None,)):
            seen = self.root / f"{self.name}-{turn}.json"
            process = self._hit(attempt, point, seen)
            if turn == 0:
                self.files.arrive("while it runs", FILES["while it runs"])
            if self.late:
                wait_for(seen.exists, "the run pauses", PATIENCE)
                paused = process
                continue
            process.join(PATIENCE)
            assert process.exitcode == (-signal.SIGKILL if point else 0), f"it ended by {process.exitcode}"
            if point is None:
                self.told.append(Told.of(seen))
        reached = [entry.kind for entry in self.ledger.entries()][begun:]
        self.files.arrive("while nobody deploys", FILES["while nobody deploys"])
        told = self._let_be(attempt)
        assert told.outcome == self.scenario.comes_to, f"the retry came to {told.outcome}: {told.message}"
        words = f"{told.outcome}; {reached[-1] if reached else 'nothing'} was the last entry before the retry"
        if paused is not None:
            words = f"{words}; the late run came to {self._woken(paused)}"
        if told.outcome == "StartFailed":
            self._check_nothing_runs(target, told.message)
        else:
            self.check_cluster(target)
        self.check_ledger(first)
        self._check_rows()
        return words

    def _hit(self, attempt: Attempt, point: Point | None, seen: Path) -> BaseProcess:
        if not self.late:
            return attempt.hit_at(point, seen)
        if point and point.call.startswith("GET"):  # it waits for the proof: so that its time is over when it goes on
            attempt = replace(attempt, options=replace(OPTIONS, start_timeout=1))
        return attempt.hit_at(point, seen, signal.SIGSTOP)

    def _let_be(self, attempt: Attempt) -> Told:
        seen = self.root / f"{self.name}-let-be.json"
        process = attempt.hit_at(None, seen)
        process.join(PATIENCE)
        assert process.exitcode == 0, f"the retry ended by {process.exitcode}"
        self.told.append(Told.of(seen))
        return self.told[-1]

    def _woken(self, paused: BaseProcess) -> str:
        """The late run goes on to its end; what that is. It did not write to the ledger any more."""
        before = self.ledger.entries()
        assert paused.pid is not None
        os.kill(paused.pid, signal.SIGCONT)
        paused.join(PATIENCE)
        assert paused.exitcode == 0, f"the late run ended by {paused.exitcode}"
        assert self.ledger.entries() == before, "the late run wrote to the ledger"
        return Told.of(self.root / f"{self.name}-0.json").outcome

    def attempt(self, first: DeployedEntry | None) -> Attempt:
        """One call of the run ``worker``, whose change was checked against the first entry."""
        mode = self.scenario.start_mode
        return Attempt(
            self.flink.gateway_url,
            self.flink.jobmanager_url,
            self.root / "ledger",
            self.name,
            self.scenario.proposed(self.files),
            mode,
            first.sha256 if first else None,
            "worker",
            OPTIONS,
            "incompatible" if mode == "stateless" else "compatible",
        )

    @property
    def _former(self) -> Side:
        """What runs before."""
        kept = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
        return Side(_script(self.files), {**SETTINGS, **kept})

    def deployed(self, target: SqlGatewayTarget) -> DeployedEntry | None:
        """The job as an earlier redeploy left it, with an open window in its state; None where there is none."""
        self.files.arrive("before", FILES["before"])
        if self.scenario.first:
            return None
        job_id = new_id()
        self._submit(target, Start(), job_id)
        recorded = self.scenario.recorded(self.files) if self.scenario.recorded else self._former
        entry = DeployedEntry(job=recorded, start=JobStart(job_id=job_id), owner="an earlier run")
        wait_for(lambda: self.files.rows() == TOTALS["before"], "minute 0 is written", PATIENCE)
        return self.ledger.append(entry)

    def _submit(self, target: SqlGatewayTarget, start: Start, job_id: str) -> None:
        settings = {"pipeline.name": self.name, **self._former.settings}
        target.start(JobSpec(self._former.script, settings), start, job_id)

    def _known(self, target: SqlGatewayTarget) -> None:
        """There never was a job of this name that the ledger does not know."""
        known = {entry.job_id for entry in self.ledger.entries() if isinstance(entry, StepEntry)}
        had = {job.job_id for job in target._jobmanager.jobs().values() if job.name == self.name}
        assert had <= known, f"jobs the ledger does not know: {had - known}"

    def check_cluster(self, target: SqlGatewayTarget) -> None:
        """One job of this name runs, it is the ledger's, and began where the ledger says."""
        head = self.ledger.head()
        assert head is not None
        running = target.running(self.name)
        assert running == (head.job_id,), f"{len(running)} jobs run, the ledger's is {head.job_id}"
        self._known(target)
        stateless = head.start.start_mode == "stateless"
        assert target.restored_from(str(head.job_id)).snapshot == (None if stateless else head.start.savepoint)

    def _check_nothing_runs(self, target: SqlGatewayTarget, message: str) -> None:
        """Both ways failed: the message says so, names the savepoint, and what it tells to type brings the job back."""
        assert target.running(self.name) == ()
        self._known(target)
        (savepoint,) = {each.stop.savepoint for each in self.ledger.entries() if isinstance(each, StoppedEntry)}
        how, why = r"(was refused: |\w{32} is FAILED after its start: )", "Cannot map checkpoint/savepoint state "
        reason = rf"the job {how}[^\n]*{why}[^\n]*"
        said = re.fullmatch(rf"{reason}\. Rolling back failed too: {reason}\.\n(Nothing of .*)", message, re.DOTALL)
        assert said, message
        first = self.ledger.directory / "000001.json"
        assert said[3] == (
            f"Nothing of {self.name} runs now.\n"
            "To bring it back, deploy the script of ledger entry 1 again with start mode 'savepoint' (it starts from "
            "there); or by hand, in one session of the SQL Gateway:\n"
            f"  SET 'execution.state-recovery.path' = '{savepoint}';\n"
            "  SET 'execution.state-recovery.claim-mode' = 'NO_CLAIM';\n"
            f"  SET 'execution.savepoint.path' = '{savepoint}';\n"
            "  SET 'execution.savepoint-restore-mode' = 'NO_CLAIM';\n"
            f"  and the statements of {first}"
        ), message
        self._submit(target, Start(savepoint), new_id())

    def check_ledger(self, first: DeployedEntry | None) -> None:
        """Every entry can be read, none is missing; one stop at most, and its savepoint is where it says."""
        entries = self.ledger.entries()
        assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
        assert not [entry for entry in entries if entry.passes_over]
        stops = {each.stop.request_id for each in entries if isinstance(each, StoppingEntry)} - {None}
        assert len(stops) == self.scenario.stops, f"{len(stops)} stops"
        savepoints = list((self.flink.work_dir / "savepoints" / self.name).glob("*/savepoint-*/_metadata"))
        assert len(savepoints) == self.scenario.stops, f"{len(savepoints)} savepoints"
        stopped = {(each.job_id, each.stop.savepoint) for each in entries if isinstance(each, StoppedEntry)}
        if first is None:
            assert not stopped
            return
        assert len(stopped) == 1, f"stopped says {stopped}"
        ((job_id, savepoint),) = stopped
        assert job_id == first.job_id
        assert (Path(str(savepoint).removeprefix("file:")) / "_metadata").is_file()

    def _check_rows(self) -> None:
        """The rows of an undisturbed run: none lost, none written twice."""
        late = self.scenario.rows["after"]
        early = sorted(row for name, rows in self.scenario.rows.items() for row in rows if name != "after")
        wait_for(lambda: len(self.files.rows()) >= len(early), "what arrived before is written", PATIENCE)
        self.files.arrive("after", FILES["after"])
        wait_for(lambda: len(self.files.rows()) >= len(early + late), "all is written", PATIENCE)
        assert self.files.rows() == sorted(early + late)
