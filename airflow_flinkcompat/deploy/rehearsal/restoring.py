"""A restore of a rehearsal: run a script with stand-in sinks from a savepoint until it is verified.

The journal stores the progress as JSON values, so that a different process can resume after a long wait. The resuming
process runs the sequence from the beginning. For completed steps, the sequence uses the stored results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from airflow_flinkcompat.deploy.errors import (
    DeployError,
    SavepointFailed,
    StateFault,
    StateRefused,
    SubmissionUnknown,
    TargetError,
)
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.redeploy.run import Wait, Waiting, new_id
from airflow_flinkcompat.deploy.rehearsal.place import RestoreTestTarget, Started, TrialTarget, Watcher
from airflow_flinkcompat.deploy.target import (
    TERMINAL,
    JobRef,
    JobStatus,
    Operation,
    RestoreTest,
    ShadowRuns,
    Snapshot,
    Verb,
)
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.savepoint.replay import reached_end

# Maximum seconds between a failure and its reason in REST answers (web.refresh-interval is 3 s by default).
_REASON_SECONDS = 6.0
# Longest time in seconds between two savepoints of a job that has not read all rows.
_LONGEST_LOOK_SECONDS = 5.0
_BAD_STATES = frozenset({"FAILING", "FAILED", "CANCELLING", "CANCELED", "SUSPENDED"})


class Inconclusive(DeployError):
    """The rehearsal could not determine a result. The error message names the reason."""


class Unanswered(Inconclusive):
    """No complete response to a submission arrived, so the job may still start."""


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
    """A checked version of the script that can run next to the live job."""

    version: RunnableSide
    test: RestoreTest


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


class RestoreRunner:
    """Runner of restores on a target."""

    def __init__(self, target: TrialTarget, timeouts: Timeouts, journal: Journal) -> None:
        self._target = target
        self._timeouts = timeouts
        self._journal = journal

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
        return Restored(job_id, self.savepoint(watcher, stopped))

    def savepoint(self, watcher: Watcher | None, asked: Operation) -> Snapshot:
        """Wait for the savepoint of a running job or of a stop. Raises DeployError, Waiting.

        The watcher deletes the savepoint at its end. With None, the savepoint is kept.
        """
        timeout = self._timeouts.savepoint
        try:
            done = self._journal.until(
                f"savepoint {asked.request_id} of job {asked.job}",
                lambda: self._target.poll(asked),
                lambda seen: seen.snapshot is None,
                timeout,
                str(asked.job),
                asked=asked,
            )
        except Overdue:
            raise TargetError(f"the savepoint of job {asked.job} did not complete within {timeout:.0f} s") from None
        if watcher is not None:
            watcher.announce(done)
        assert done.snapshot is not None
        return done.snapshot

    def submit_only(self, watcher: Watcher, checked: Checked, name: str, savepoint: Snapshot) -> None:
        """Submit the script so that the job must claim all state of the savepoint, then cancel the job.

        Raises RestoreRefused.
        """
        self._target.cancel(JobRef(self._submit(watcher, checked, name, savepoint, ignore=False)))

    def run_to_end(self, watcher: Watcher, checked: Checked, name: str, savepoint: Snapshot, timeout: float) -> JobRef:
        """Run the script from a savepoint until the job ends by itself; ``timeout`` in seconds.

        Raises RestoreRefused, Inconclusive.
        """
        job_id = JobRef(self._submit(watcher, checked, name, savepoint, ignore=True))
        self._come_up(job_id)
        self._watched(job_id, lambda _seen: True, timeout, "end", ran=True)
        return job_id

    def read_to_end(
        self,
        runs: ShadowRuns,
        watcher: Watcher,
        checked: Checked,
        name: str,
        savepoint: Snapshot,
        directory: str,
        timeout: float,
    ) -> Restored:
        """Run the script until its sources have read all rows up to their end positions, then cancel it.

        The job's own savepoint is in ``directory``. The watcher does not delete it. ``timeout`` in seconds. Raises
        RestoreRefused, Inconclusive.
        """
        job_id = JobRef(self._submit(watcher, checked, name, savepoint, ignore=True))
        self._come_up(job_id)
        try:
            # Only a savepoint shows exactly what was read.
            own = poll(
                lambda: self._own_savepoint(runs, job_id, directory),
                lambda found: found is None,
                timeout=timeout,
                every=_LONGEST_LOOK_SECONDS,
            )
        except Overdue:
            raise Inconclusive(f"job {job_id} did not read all rows within {timeout:.0f} s") from None
        self._target.cancel(job_id)
        return Restored(job_id, own)

    def _own_savepoint(self, runs: ShadowRuns, job_id: JobRef, directory: str) -> Snapshot | None:
        """A savepoint of a job that has read all rows, or None if it has not."""
        self._watched(job_id, lambda seen: not seen.tasks_running, self._timeouts.start, "keep running", ran=True)
        asked = Operation(Verb.SAVEPOINT, new_id(), job_id)
        runs.native_savepoint(job_id, asked.request_id, directory)
        try:
            own = self.savepoint(None, asked)
        except SavepointFailed:
            self._settle(job_id)  # a failed job takes no savepoint, and its failure is the reason
            raise
        if reached_end(self._target.location(own)):
            return own
        self._target.dispose(own)
        return None

    def _submit(self, watcher: Watcher, checked: Checked, name: str, savepoint: Snapshot | None, ignore: bool) -> str:
        """Announce a job to the watcher and submit it. Raises RestoreRefused and Inconclusive."""
        start = Operation(Verb.START, new_id())
        watcher.announce(start)
        try:
            start = checked.test.start(name, savepoint, start.request_id, ignore_unclaimed=ignore)
            job = start.job or poll(
                lambda: self._target.poll(start).job, lambda seen: seen is None, timeout=self._timeouts.start
            )
        except SubmissionUnknown as error:
            raise Unanswered(str(error)) from None
        except Overdue:
            raise Unanswered(f"{self._target} did not return the id of the job that it started") from None
        except TargetError as error:
            if isinstance(error, StateRefused) and error.fault is StateFault.MISFIT:
                raise RestoreRefused(str(error), "submit") from None
            raise Inconclusive(str(error)) from None
        return str(job)

    def _come_up(self, job_id: JobRef) -> JobStatus:
        """Wait until every task runs, so that no task still restores its state."""
        return self._watched(job_id, lambda seen: not seen.tasks_running, self._timeouts.start, "start")

    def _settle(self, job_id: JobRef) -> JobStatus:
        """Wait until the job has run without failure for the settle time. Return the job's last status."""
        begin = self._journal.begun(_step(job_id, "keep running"))

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
                _step(job_id, what),
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


def _step(job_id: str, what: str) -> str:
    return f"job {job_id} to {what}"


T = TypeVar("T")
# Minimum seconds of a wait that a later process resumes.
_AGAIN_SECONDS = 5.0


class Paused(Waiting):
    """A long wait, which is no failure. To resume, call ``rehearse`` again with ``state``.

    The jobs of the rehearsal keep running during the wait. A caller that does not resume must cancel these jobs.
    ``Started.of(state)`` lists the jobs of the rehearsal.
    """

    def __init__(self, what: str, wait: Wait, state: Mapping[str, Any]) -> None:
        super().__init__(what, wait)
        self.state = state


@dataclass
class Journal:
    """Results of completed steps; ``patience``: maximum seconds of a wait, or None."""

    done: dict[str, Any] = field(default_factory=dict)
    patience: float | None = None

    def once(self, step: str, do: Callable[[], T]) -> T:
        """Run a step and store its result (JSON values), or return the stored result of the step."""
        if step not in self.done:
            self.done[step] = do()
        found: T = self.done[step]
        return found

    def until(
        self,
        step: str,
        look: Callable[[], T],
        pending: Callable[[T], bool],
        timeout: float,
        job_id: str,
        *,
        asked: Operation | None = None,
        settles: bool = False,
    ) -> T:
        """Poll until the value is not pending. Raises Overdue, or Waiting after ``patience``."""
        since = self.begun(step)
        left = max(timeout - (time.time() - since), _AGAIN_SECONDS)
        try:
            return poll(look, pending, timeout=left if self.patience is None else min(left, self.patience))
        except Overdue:
            if self.patience is None or left <= self.patience:
                raise
            wait = Wait(JobRef(job_id), since, time.time() + left, proven_since=since if settles else None)
            if asked is not None:
                wait = replace(wait, request_id=asked.request_id, verb=str(asked.verb))
            raise Waiting(f"waiting: {step}", wait) from None

    def begun(self, step: str) -> float:
        """Start time of a step in seconds since the epoch, even if an earlier process began the step."""
        return self.once(f"{step}, since", time.time)

    def state(self, started: Started) -> dict[str, Any]:
        return {"done": self.done, "started": started.messages()}
