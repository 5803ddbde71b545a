"""A case of a matrix of kills, on any target: a redeploy is hit at points, taken up, and its outcome looked at."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import zip_longest
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Generic, TypeVar

from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, LedgerEntry, StoppedEntry, StoppingEntry
from airflow_flinkcompat.deploy.target import Strength, Target
from dev.services.csv_job import wait_for
from tests.scenarios.deploy.faults import Result, write
from tests.scenarios.deploy.kills import ANY_PHASE, Attempt, Point, Told, exit_code
from tests.support.nightly import NIGHTLY, sample

OWNER = "worker"
"""The run that is hit, and its retries."""


class Hit(StrEnum):
    """What happens to a run at a point.

    ``PAUSED``: it goes on when its retry is over; ``OVERTAKEN``: when a run of somebody else is; ``LOST``: the answer
    to that call is lost, or, before it, the call itself. ``BESIDE``: at no point, another run begins with it.
    """

    KILLED = "killed"
    PAUSED = "paused"
    OVERTAKEN = "overtaken"
    LOST = "lost"
    BESIDE = "beside"


@dataclass(frozen=True)
class Scenario:
    """``comes_to`` is what a run ends in; ``first``: nothing was deployed before.

    ``only`` and ``late`` name the points at which a run is killed (where its way is not that of an earlier scenario),
    or paused until its retry is over; ``again``: retries are killed as well. ``unheard`` names the requests whose
    answers are lost; ``two``: another run begins while one is paused.
    """

    name: str
    comes_to: str
    start_mode: str = "savepoint"
    first: bool = False
    only: str = ""
    late: str | None = None
    again: bool = False
    unheard: str | None = None
    two: bool = False

    @property
    def stops(self) -> int:
        """How many savepoints are taken."""
        return int(self.start_mode != "checkpoint" and not self.first)

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

    def unheard_at(self, points: Sequence[Point]) -> list[Point]:
        """Requests that do something."""
        unheard = self.unheard
        if unheard is None:
            return []
        return [point for point in points if point.has_effect and point.is_request and re.search(unheard, str(point))]

    def overtaken_at(self, points: Sequence[Point]) -> list[Point]:
        return [point for point in points if self.two and point.has_effect]


S = TypeVar("S", bound=Scenario)
T = TypeVar("T", bound=Target)


@dataclass
class Case(Generic[S, T]):
    """One deployment, redeployed by runs that are hit at ``points``, each at one, and then by one that is let be.

    Without points the first one is let be, too. ``losses``: how many answers are lost. A subclass says on which target,
    how something is deployed there, and what is to be seen afterwards.
    """

    root: Path
    scenario: S
    name: str
    points: tuple[Point, ...] = ()
    hit: Hit = Hit.KILLED
    losses: int = 0
    patience: float = 300.0
    """How long (seconds) a step of a case may take before the case is held to be wrong."""
    told: list[Told] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.root / "ledger", self.name)

    @property
    def fault(self) -> str:
        points = ", then ".join(map(str, self.points)) or "none"
        what = "the answer" if self.points and self.points[-1].after else "the call"
        times = "twice" if self.losses == 2 else "once"
        return (
            points
            + {
                Hit.KILLED: "",
                Hit.PAUSED: "; paused there until the retry was over",
                Hit.OVERTAKEN: "; paused there until another run was over",
                Hit.LOST: f"; {what} is lost {times}",
                Hit.BESIDE: "; another run begins at the same time",
            }[self.hit]
        )

    # ---------------------------------------------------------------------------------------- what a target's case says
    def staged(self) -> AbstractContextManager[T]:
        """The target as another process opens it; of this case nothing runs there afterwards."""
        raise NotImplementedError

    def deployed(self, target: T) -> DeployedEntry | None:
        """The job as an earlier redeploy left it; None where there is none."""
        raise NotImplementedError

    def attempt(self, first: DeployedEntry | None) -> Attempt:
        """One call of the run ``OWNER``, whose change was checked against the first entry."""
        raise NotImplementedError

    def while_it_runs(self) -> None:
        """Happens once the first run goes on."""

    def while_nobody_deploys(self) -> None:
        """Happens before the run that is let be."""

    def check_platform(self, target: T, told: Told) -> None:
        """What is to be seen of the platform, by its own word."""
        raise NotImplementedError

    def savepoints(self) -> list[str]:
        """Every savepoint of this deployment that is there, as the target names it."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------------- the case
    def run(self) -> Result:
        began = time.monotonic()
        try:
            with self.staged() as target:
                outcome, wrong = self._redeployed(target), ""
        except Exception as error:  # every case is told of, whatever became of it
            outcome, wrong = "", f"{type(error).__name__}: {error}"
        print(f"{self.scenario.name}, {self.fault}: {wrong or outcome}", flush=True)
        return Result(self.scenario.name, self.fault, outcome, time.monotonic() - began, wrong)

    def _redeployed(self, target: T) -> str:
        first = self.deployed(target)
        attempt = self.attempt(first)
        another = replace(attempt, owner="another")
        begun = self.ledger.entries()[-1].number if first else 0
        beside = another.hit_at(None, self._seen("another")) if self.hit is Hit.BESIDE else None
        run = self._hit(attempt)
        reached = [entry.kind for entry in self.ledger.entries()][begun:]
        words = [f"{reached[-1] if reached else 'nothing'} was the last entry before the retry"]
        if self.hit is Hit.LOST:
            words.insert(0, f"the run came to {self.told[-1].outcome}")
        self.while_nobody_deploys()
        if beside is not None:
            told, words = self._one_of(self.told[-1], self._ended(beside, "another"))
        elif self.hit is Hit.OVERTAKEN:
            other = self._ended(another.hit_at(None, self._seen("another")), "another")
            told, words = self._one_of(self._gone_on(run), other)
        else:
            told = self._ended(attempt.hit_at(None, self._seen("let-be")), "let-be")
        assert told.outcome == self.scenario.comes_to, f"the retry came to {told.outcome}: {told.message}"
        if self.hit is Hit.PAUSED:
            words.append(f"the late run came to {self._woken(run)}")
        self.check(target, first, told)
        return "; ".join([told.outcome, *words])

    def _hit(self, attempt: Attempt) -> BaseProcess:
        """Every run that is hit; the last one."""
        left = self.losses
        for turn, point in enumerate(self.points or (None,)):
            process = self._begun(attempt, point, left, turn)
            assert self.hit is not Hit.LOST or self.told[-1].lost, "no call was lost"
            while self.hit is Hit.LOST and (left := left - self.told[-1].lost) > 0:
                if self.told[-1].lost == 0 or self.told[-1].outcome == self.scenario.comes_to:
                    break  # no call of this name is made any more
                assert point is not None
                turn += 1
                process = self._begun(attempt, replace(point, phase=ANY_PHASE), left, turn)
        return process

    def _begun(self, attempt: Attempt, point: Point | None, losses: int, turn: int) -> BaseProcess:
        """A run that is hit: one that has ended, or that is paused."""
        seen = self._seen(turn)
        pauses = self.hit in (Hit.PAUSED, Hit.OVERTAKEN)
        if pauses and point and point.call.startswith("GET"):  # it waits for the proof: so that its time is over then
            attempt = replace(attempt, options=replace(attempt.options, start_timeout=1))
        process = attempt.hit_at(point, seen, signal.SIGSTOP if pauses else signal.SIGKILL, losses=losses)
        if turn == 0:
            self.while_it_runs()
        if pauses:
            wait_for(seen.exists, "the run pauses", self.patience)
        elif point is not None and self.hit is Hit.KILLED:
            code = exit_code(process, self.patience)
            assert code == -signal.SIGKILL, f"it ended by {code}"
        else:
            self._ended(process, turn)
        return process

    def _seen(self, turn: int | str) -> Path:
        return self.root / f"{self.name}-{turn}.json"

    def _ended(self, process: BaseProcess, turn: int | str) -> Told:
        """What a run has come to by itself."""
        code = exit_code(process, self.patience)
        assert code == 0, f"the run ended by {code}"
        self.told.append(Told.of(self._seen(turn)))
        return self.told[-1]

    def _woken(self, paused: BaseProcess) -> str:
        """The late run goes on to its end; what that is. It did not write to the ledger any more."""
        before = self.ledger.entries()
        told = self._gone_on(paused)
        assert self.ledger.entries() == before, "the late run wrote to the ledger"
        return told.outcome

    def _gone_on(self, paused: BaseProcess) -> Told:
        assert paused.pid is not None
        os.kill(paused.pid, signal.SIGCONT)
        code = exit_code(paused, self.patience)
        assert code == 0, f"the late run ended by {code}"
        return Told.of(self._seen(0))

    def _one_of(self, own: Told, other: Told) -> tuple[Told, list[str]]:
        """Of two runs at once one does what it is to do, and the other one is refused; that of the former."""
        done, refused = (own, other) if own.outcome == self.scenario.comes_to else (other, own)
        said = f"it came to {own.outcome}: {own.message}; the other run came to {other.outcome}: {other.message}"
        assert done.outcome == self.scenario.comes_to, said
        assert refused.outcome in ("DeployRefused", "LedgerConflict"), said
        assert re.search(
            "at the same time|is deploying|a different run wrote to the ledger|check the change", refused.message
        ), said
        return done, [f"the run came to {own.outcome}, the other one to {other.outcome}"]

    # ------------------------------------------------------------------------------------------- what is right of it
    def check(self, target: T, first: DeployedEntry | None, told: Told) -> None:
        self.check_job(target)
        self.check_ledger(first)
        self.check_platform(target, told)

    def check_job(self, target: T) -> None:
        """One job of this name runs, it is the ledger's, and began where the ledger says."""
        head = self.ledger.head()
        assert head is not None
        running = target.running(self.name)
        assert running == (head.job_id,), f"{len(running)} jobs run, the ledger's is {head.job_id}"
        stateless = head.start.start_mode == "stateless"
        proof = target.restored_from(running[0])
        assert proof.strength is not Strength.UNKNOWN
        assert proof.snapshot == (None if stateless else head.start.savepoint)

    def check_ledger(self, first: DeployedEntry | None) -> None:
        """Every entry can be read, none is missing; one stop at most, and its savepoint is where it says."""
        entries = self.ledger.entries()
        assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
        assert not [entry for entry in entries if entry.passes_over]
        stops = {each.stop.request_id for each in entries if isinstance(each, StoppingEntry)} - {None}
        assert len(stops) == self.scenario.stops, f"{len(stops)} stops"
        savepoints = self.savepoints()
        assert len(savepoints) == self.scenario.stops, f"{len(savepoints)} savepoints: {savepoints}"
        self.check_stopped(entries, first, savepoints)

    def check_stopped(
        self, entries: Sequence[LedgerEntry], first: DeployedEntry | None, savepoints: Sequence[str]
    ) -> None:
        """The ledger tells one stop, of the first job, and which savepoint that left."""
        stopped = {(each.job_id, each.stop.savepoint) for each in entries if isinstance(each, StoppedEntry)}
        if first is None:
            assert not stopped
            return
        assert len(stopped) == 1, f"stopped says {stopped}"
        ((job_id, savepoint),) = stopped
        assert job_id == first.job_id
        assert savepoint
        assert self.scenario.stops == 0 or [savepoint] == [*savepoints], f"stopped says {savepoint}, not {savepoints}"


C = TypeVar("C", bound=Case)  # type: ignore[type-arg]


@dataclass
class Matrix(Generic[S, C]):
    """Cases as they are run; what became of them is written down after every one, so that a run may be cut.

    ``case`` makes one by its scenario, its points, how it is hit and how many answers are lost. ``result``: the name of
    the results, ``title`` and ``notes`` what stands above them. Of a few in place of all, ``few`` are killed.
    """

    case: Callable[[S, tuple[Point, ...], Hit, int], C]
    result: str
    title: str
    notes: str
    at_once: int
    few: int = 3
    results: list[Result] = field(default_factory=list)

    def run(self, cases: Sequence[C]) -> None:
        if not cases:
            return
        with ThreadPoolExecutor(self.at_once) as pool:
            for left, done in enumerate(as_completed([pool.submit(case.run) for case in cases]), 1 - len(cases)):
                self.results.append(done.result())
                if NIGHTLY:
                    write(self.result, self.title, self.results, [self.notes], -left)

    def whole(self, scenarios: Sequence[S]) -> None:
        """Every scenario, undisturbed and hit at its points. Raises AssertionError: some came to something wrong."""
        undisturbed = [self.case(scenario, (), Hit.KILLED, 0) for scenario in sample(scenarios, 1)]
        self.run(undisturbed)
        hit: dict[Hit, list[C]] = {each: [] for each in Hit}
        for case in undisturbed:
            if len(case.told) < 2:  # it went wrong, and its result says how
                continue
            points = case.told[0].points
            assert case.told[0].outcome == case.scenario.comes_to
            assert len(points) == len(set(points))
            for how, point, losses in self._hits(case.scenario, points):
                hit[how].append(self.case(case.scenario, (point,) if point else (), how, losses))
        turns = zip_longest(*hit.values())  # by turns, so that a run that is cut has some of each
        self.run([case for turn in turns for case in turn if case is not None])
        again = [
            self.case(case.scenario, (*case.points, point), Hit.KILLED, 0)
            for case in hit[Hit.KILLED]
            if case.scenario.killed_again_at(case.points) and case.told
            for point in case.scenario.killed_again_at(case.told[-1].points)
        ]
        self.run(sample(again, 1))
        wrong = [f"{result.scenario}, {result.fault}: {result.wrong}" for result in self.results if result.wrong]
        assert not wrong, f"{len(wrong)} of {len(self.results)} cases are wrong:\n" + "\n".join(wrong)

    def _hits(self, scenario: S, points: Sequence[Point]) -> Iterator[tuple[Hit, Point | None, int]]:
        killed = scenario.killed_at(points)
        assert killed, f"{scenario.name}: nothing to kill it at"
        if not NIGHTLY:  # the few are of those that do something
            killed = [point for point in killed if point.has_effect] or killed
        yield from ((Hit.KILLED, point, 0) for point in sample(killed, self.few))
        yield from ((Hit.PAUSED, point, 0) for point in sample(scenario.late_at(points), 1))
        yield from ((Hit.OVERTAKEN, point, 0) for point in sample(scenario.overtaken_at(points), 1))
        yield from ((Hit.BESIDE, None, 0) for _ in sample(range(6 * scenario.two), 1))
        unheard = [(point, losses) for point in scenario.unheard_at(points) for losses in (1, 2)]
        yield from ((Hit.LOST, point, losses) for point, losses in sample(unheard, 2))
