"""A restore of a rehearsal: run a script with stand-in sinks from a savepoint until it is verified.

Stand-ins can change the operator ids of a script. A job then starts from a copy of the savepoint's metadata with the
ids that the job has. Callers know only the ids of the script with its real sinks.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from airflow_flinkcompat.deploy.errors import (
    DeployError,
    SavepointFailed,
    StateFault,
    StateRefused,
    TargetError,
)
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.rehearsal.place import RestoreTestTarget, ShadowTarget, TrialTarget, Watcher
from airflow_flinkcompat.deploy.rehearsal.waiting import Journal, SavepointTaker, step_of
from airflow_flinkcompat.deploy.target import (
    TERMINAL,
    JobRef,
    JobStatus,
    Operation,
    RestoreTest,
    Snapshot,
    Verb,
)
from airflow_flinkcompat.exec_graph.stand_ins import UNKNOWN_IDS, StandInIds, StandIns
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.savepoint.replay import reached_end, write_renamed

# Maximum seconds between a failure and its reason in REST answers (web.refresh-interval is 3 s by default).
_REASON_SECONDS = 6.0
# Longest time in seconds between two savepoints of a job that has not read all rows.
_LONGEST_LOOK_SECONDS = 5.0
_BAD_STATES = frozenset({"FAILING", "FAILED", "CANCELLING", "CANCELED", "SUSPENDED"})


class Inconclusive(DeployError):
    """The rehearsal could not determine a result. The error message names the reason."""


class RestoreRefused(DeployError):
    """Flink refused the state, with Flink's message; phase ``at`` is ``submit``, ``restore`` or ``run``."""

    def __init__(self, message: str, at: str) -> None:
        super().__init__(message)
        self.at = at


def require_running(target: TrialTarget, job: JobRef) -> None:
    """Raise Inconclusive unless all tasks of a job run."""
    live = target.status(job)
    if live is None or not live.tasks_running or live.state != "RUNNING":
        raise Inconclusive(
            f"job {job} is {live.state if live else 'unknown to the cluster'}, and not all of its tasks run"
        )


def trial_prefix(name: str, kind: str, longest: float) -> str:
    """Beginning of the names of the trial jobs of a run, with the longest time in seconds of each job."""
    return f"{name} {kind} {longest:.0f}s"


def cancel_leftovers(target: TrialTarget, name: str, kind: str, log: Callable[[str], None]) -> None:
    """Cancel trial jobs of a kind that an earlier run left: those that exceed the time in their own name."""
    pattern = re.compile(rf"{re.escape(name)} {kind} ([0-9]+)s [a-z]+ [0-9a-f]{{32}}")
    for job in target.jobs():
        found = pattern.fullmatch(job.name)
        if found is None or job.terminal:
            continue
        if job.seconds is None or job.seconds <= int(found[1]):
            log(f"another {kind} of {name} is in progress, in job {job.job_id}")
            continue
        log(f"cancelling {job.job_id}, which an earlier {kind} left")
        target.cancel(job.job_id)


class RunnableSide(Protocol):
    """A version of a job: script, effective settings, engine version and source, as in ``compat.Side``."""

    @property
    def script(self) -> str: ...
    @property
    def settings(self) -> Mapping[str, str]: ...
    @property
    def engine_version(self) -> str | None: ...
    @property
    def source(self) -> str: ...


def job_of(version: RunnableSide) -> JobSpec:
    """The job that a target runs for a version."""
    return JobSpec(version.script, version.settings, engine_version=version.engine_version, source=version.source)


@dataclass(frozen=True)
class Checked:
    """A version of the script that can run next to the live job; ``ids``: its operator ids with stand-ins."""

    version: RunnableSide
    test: RestoreTest
    ids: StandInIds = UNKNOWN_IDS[StandIns.DISCARDING]


def check_side(target: RestoreTestTarget, version: RunnableSide, private: str, *, empty: bool = False) -> Checked:
    """Check that a version can run next to the live job; ``private`` names resources, such as a group.

    Raises CannotRehearse, TargetError.
    """
    job = job_of(version)
    return Checked(version, target.restore_test(job, private, empty=empty))


@dataclass(frozen=True)
class Restored:
    """A successful restore, with the job's own savepoint (None if a bounded job ended by itself)."""

    job_id: JobRef
    savepoint: Snapshot | None


@dataclass(frozen=True)
class Timeouts:
    """Time limits in seconds, for the start, observation after the start, a savepoint, and cleanup.

    ``here`` is the maximum time of a single wait, after which ``Paused`` is raised. If ``here`` is None, each wait
    lasts until its time limit.
    """

    settle: float = 5.0
    start: float = 180.0
    savepoint: float = 600.0
    clean_up: float = 120.0
    here: float | None = None

    @property
    def longest(self) -> float:
        """Longest time of a trial job that reads no rows up to a position."""
        return self.start + self.settle + self.savepoint + self.clean_up


class RestoreRunner(SavepointTaker):
    """Runner of restores on a target."""

    _target: TrialTarget

    def __init__(self, target: TrialTarget, timeouts: Timeouts, journal: Journal) -> None:
        super().__init__(target, timeouts.savepoint, journal)
        self._timeouts = timeouts

    def restore(
        self,
        watcher: Watcher,
        checked: Checked,
        name: str,
        savepoint: Snapshot | None,
        directory: str | None,
        *,
        ignore: bool = True,
    ) -> Restored:
        """Run the script until all tasks are restored and the job's own savepoint is complete.

        If ``savepoint`` is None, the job begins without state. Raises RestoreRefused, Inconclusive, Waiting.
        """
        once = self._journal.once
        job_id = JobRef(once(f"{name}: submitted", lambda: self._submit(watcher, checked, name, savepoint, ignore)))
        once(f"{name}: running", lambda: self._come_up(job_id).state)
        if once(f"{name}: settled", lambda: self._settle(job_id).state) == "FINISHED":
            return Restored(job_id, None)

        def stop() -> str:
            asked = Operation(Verb.STOP, new_id(), job_id)
            watcher.announce(asked)
            self._target.stop(job_id, asked.request_id, directory)
            return asked.request_id

        # Omit the folder, because it also contains other savepoints. Otherwise it would be searched for the stop's
        # savepoint.
        stopped = Operation(Verb.STOP, once(f"{name}: stopped", stop), job_id)
        return Restored(job_id, self.awaited(watcher, stopped))

    def submit_only(self, watcher: Watcher, checked: Checked, name: str, savepoint: Snapshot) -> None:
        """Submit the script so that the job must claim all state of the savepoint, then cancel the job.

        Raises RestoreRefused.
        """
        self._target.cancel(JobRef(self._submit(watcher, checked, name, savepoint, ignore=False)))

    def run_to_end(self, watcher: Watcher, checked: Checked, name: str, savepoint: str, timeout: float) -> JobRef:
        """Run the script from a savepoint (path or URI) until the job ends by itself.

        ``timeout`` in seconds. Raises RestoreRefused, Inconclusive, SavepointUnreadable.
        """
        start = self._target.savepoint_at(savepoint)
        job_id = JobRef(self._submit(watcher, checked, name, start, ignore=True))
        self._come_up(job_id)
        self._watched(job_id, lambda _seen: True, timeout, "end", ran=True)
        return job_id

    def read_to_end(
        self,
        target: ShadowTarget,
        watcher: Watcher,
        checked: Checked,
        name: str,
        savepoint: str,
        directory: str,
        timeout: float,
    ) -> tuple[JobRef, str]:
        """Run the script until its sources have read all rows up to their end positions, then cancel it.

        Return the job, and the path or URI of its own savepoint in ``directory``, which the watcher does not delete.
        ``timeout`` in seconds. Raises RestoreRefused, Inconclusive, SavepointUnreadable.
        """
        job_id = JobRef(self._submit(watcher, checked, name, target.savepoint_at(savepoint), ignore=True))
        self._come_up(job_id)
        try:
            # Only a savepoint shows exactly what was read.
            own = poll(
                lambda: self._own_savepoint(target, job_id, directory),
                lambda found: found is None,
                timeout=timeout,
                every=_LONGEST_LOOK_SECONDS,
            )
        except Overdue:
            raise Inconclusive(f"job {job_id} did not read all rows within {timeout:.0f} s") from None
        target.cancel(job_id)
        assert own is not None
        place = target.location(own)
        write_renamed(place, place, checked.ids.real)
        return job_id, place

    def left_aside(self, checked: Checked, job: JobRef) -> frozenset[str]:
        """The operators of the savepoint whose state a job did not restore. Raises Inconclusive if unknown."""
        found = self._target.left_aside(job)
        if found is None:
            raise Inconclusive(f"the log of {self._target} does not show which state job {job} restored")
        return checked.ids.all_real(found)

    def _own_savepoint(self, target: ShadowTarget, job_id: JobRef, directory: str) -> Snapshot | None:
        """A savepoint of a job that has read all rows, or None if it has not."""
        self._watched(job_id, lambda seen: not seen.tasks_running, self._timeouts.start, "keep running", ran=True)
        asked = Operation(Verb.SAVEPOINT, new_id(), job_id)
        target.native_savepoint(job_id, asked.request_id, directory)
        try:
            own = self.awaited(None, asked)
        except SavepointFailed:
            self._settle(job_id)  # a failed job takes no savepoint, and its failure is the reason
            raise
        if reached_end(self._target.location(own)):
            return own
        self._target.dispose(own)
        return None

    def _submit(self, watcher: Watcher, checked: Checked, name: str, savepoint: Snapshot | None, ignore: bool) -> str:
        """Announce a job and submit it. Raises RestoreRefused, Inconclusive and SavepointUnreadable."""
        start = Operation(Verb.START, new_id())
        if savepoint is not None and checked.ids.ids:
            savepoint = self._renamed(watcher, checked.ids, savepoint)
        try:
            with watcher.submitting(start):
                start = checked.test.start(name, savepoint, start.request_id, ignore_unclaimed=ignore)
                job = start.job or poll(
                    lambda: self._target.poll(start).job, lambda seen: seen is None, timeout=self._timeouts.start
                )
        except Overdue:
            raise Inconclusive(f"{self._target} did not return the id of the job that it started") from None
        except TargetError as error:
            if isinstance(error, StateRefused) and error.fault is StateFault.MISFIT:
                raise RestoreRefused(str(error), "submit") from None
            raise Inconclusive(str(error)) from None
        return str(job)

    def _renamed(self, watcher: Watcher, ids: StandInIds, savepoint: Snapshot) -> Snapshot:
        """A copy of a savepoint's metadata, with the operator ids of the job with stand-ins."""
        place = self._target.location(savepoint).rstrip("/")
        copy = f"{place}-{new_id()}"
        watcher.announce_folder(copy)
        write_renamed(place, copy, ids.with_stand_ins)
        return self._target.savepoint_at(copy)

    def _come_up(self, job_id: JobRef) -> JobStatus:
        """Wait until every task runs, so that no task still restores its state."""
        return self._watched(job_id, lambda seen: not seen.tasks_running, self._timeouts.start, "start")

    def _settle(self, job_id: JobRef) -> JobStatus:
        """Wait until the job has run without failure for the settle time. Return the job's last status."""
        begin = self._journal.begun(step_of(job_id, "keep running"))

        def is_early(_seen: JobStatus) -> bool:
            return time.time() - begin < self._timeouts.settle

        return self._watched(job_id, is_early, self._timeouts.settle + self._timeouts.start, "keep running", ran=True)

    def _watched(
        self, job_id: JobRef, pending: Callable[[JobStatus], bool], timeout: float, what: str, *, ran: bool = False
    ) -> JobStatus:
        """Poll the job's status until ``pending`` is False; ``ran``: all tasks ran.

        Raises RestoreRefused, Inconclusive.
        """

        def look() -> JobStatus | None:
            seen = self._target.status(job_id)
            if seen is not None and (seen.failure or seen.state in _BAD_STATES):
                self._fail(job_id, ran)
            return seen

        try:
            status = self._journal.until(
                step_of(job_id, what),
                look,
                lambda seen: seen is None or (not seen.terminal and pending(seen)),
                timeout,
                job_id,
                settles=ran,
            )
        except Overdue as overdue:
            seen = overdue.last
            slots = self._target.slots()
            raise Inconclusive(
                f"the job did not {what} within {timeout:.0f} s. The job is {seen.state if seen else 'unknown'}, and "
                f"{slots.free} of {slots.total} slots are free"
            ) from None
        assert status is not None
        return status

    def _fail(self, job_id: JobRef, ran: bool) -> None:
        """Wait for the reason of a failure, then raise RestoreRefused or Inconclusive."""
        try:
            seen = poll(
                lambda: self._target.status(job_id),
                lambda seen: seen is None or not seen.failure or seen.state not in TERMINAL,
                timeout=_REASON_SECONDS,
            )
        except Overdue as overdue:
            seen = overdue.last
        why = (seen.failure if seen else None) or "no reason reported"
        if seen is not None and seen.state == "CANCELED":
            raise Inconclusive(f"someone else cancelled the job ({why})")
        if self._target.failed_at_restore(job_id):
            raise RestoreRefused(why, "restore")
        if ran:
            raise RestoreRefused(why, "run")
        raise Inconclusive(f"the job failed before it ran, but not because of its state: {why}")
