"""One restore of a rehearsal: a script over stand-ins, from a savepoint, until it has proved itself."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from airflow_flinkcompat.deploy.errors import DeployError, SubmissionUnknown, TargetError
from airflow_flinkcompat.deploy.flink.execution import ScriptRunner
from airflow_flinkcompat.deploy.flink.gateway import Session, SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.flink.statements import Prepared, check_settings, prepare
from airflow_flinkcompat.deploy.restore_test import cluster
from airflow_flinkcompat.deploy.restore_test.journal import Journal
from airflow_flinkcompat.deploy.restore_test.substitutes import Substitutes, Tables, tables_of
from airflow_flinkcompat.deploy.restore_test.watcher import Watcher
from airflow_flinkcompat.deploy.target import TERMINAL, JobStatus
from airflow_flinkcompat.secrets import Lookup

# How long the reason of a failure may come after the failure itself (web.refresh-interval is 3 s by default).
_REASON_SECONDS = 6.0
_BAD_STATES = frozenset({"FAILING", "FAILED", "CANCELLING", "CANCELED", "SUSPENDED"})


class Inconclusive(DeployError):
    """What the new script would do cannot be told; the message says why."""


class Unanswered(Inconclusive):
    """The Gateway did not answer a submission to its end: the job may still come up."""


class RestoreRefused(DeployError):
    """Flink does not take the state; the message is Flink's own, ``at`` is ``submit``, ``restore`` or ``run``."""

    def __init__(self, message: str, at: str) -> None:
        super().__init__(message)
        self.at = at


class Version(Protocol):
    """One side: script and effective settings, as ``compat.Side`` has them."""

    @property
    def script(self) -> str: ...
    @property
    def settings(self) -> Mapping[str, str]: ...
    @property
    def source(self) -> str: ...


@dataclass(frozen=True)
class Checked:
    """A version that may run beside the live job, and the tables that need stand-ins."""

    version: Version
    prepared: Prepared
    tables: Tables


@dataclass(frozen=True)
class Restored:
    """A restore that held: the job, and its own savepoint (None where a bounded job ended by itself)."""

    job_id: str
    savepoint: str | None


@dataclass(frozen=True)
class Timeouts:
    """Times in seconds: watched after the start, for the start, for one savepoint, for cleaning up.

    ``here``: how long one wait may take before ``Paused`` is raised instead; None: to its time-out.
    """

    settle: float = 5.0
    start: float = 180.0
    savepoint: float = 600.0
    clean_up: float = 120.0
    here: float | None = None


class Runner:
    """Where restores take place. ``private`` names what they have of their own."""

    def __init__(
        self,
        gateway: SqlGateway,
        jobmanager: JobManager,
        lookup: Lookup,
        private: str,
        timeouts: Timeouts,
        journal: Journal,
    ) -> None:
        self._gateway = gateway
        self._jobmanager = jobmanager
        self._runner = ScriptRunner(lookup, gateway, jobmanager)
        self._private = private
        self._timeouts = timeouts
        self._journal = journal

    def check(self, version: Version) -> Checked:
        """The version, found to be able to run beside the live job. Starts nothing.

        Raises CannotRehearse, and TargetError where Flink does not take the script.
        """
        prepared = prepare(version.script, version.source)
        with self._session(version) as session:
            self._set_up(session, prepared)
            rows = self._runner.run(session, prepared.job, prepared.explain_sql, prefix=prepared.explain_shift).rows
            tables = tables_of("\n".join(str(row[0]) for row in rows))
            Substitutes(session, self._private).check(tables)
        return Checked(version, prepared, tables)

    def restore(
        self,
        watcher: Watcher,
        checked: Checked,
        name: str,
        savepoint: str,
        directory: str | None,
        *,
        ignore: bool = True,
    ) -> Restored:
        """Run the script from ``savepoint`` until every task has restored and its own savepoint is complete.

        ``ignore``: whether state that the program has no operator for is left aside.

        Raises RestoreRefused, Inconclusive, Waiting.
        """
        once = self._journal.once
        job_id = once(f"{name}: submitted", lambda: self._submit(watcher, checked, name, savepoint, ignore))
        once(f"{name}: came up", lambda: self._come_up(job_id).state)
        if once(f"{name}: settled", lambda: self._settle(job_id).state) == "FINISHED":
            return Restored(job_id, None)

        def stop() -> str:
            trigger = uuid.uuid4().hex
            watcher.savepoint(job_id, trigger)
            self._jobmanager.trigger_stop_with_savepoint(job_id, directory, trigger)
            return trigger

        trigger, timeout = once(f"{name}: stopped", stop), self._timeouts.savepoint
        path = cluster.savepoint_path(self._jobmanager, self._journal, job_id, trigger, timeout=timeout)
        watcher.savepoint(job_id, trigger, path)
        self._jobmanager.wait_terminal(job_id, timeout=self._timeouts.clean_up)
        return Restored(job_id, path)

    def submit_only(self, watcher: Watcher, checked: Checked, name: str, savepoint: str) -> None:
        """Submit the script strictly, every piece of state must be taken, and cancel it.

        Raises RestoreRefused, Inconclusive.
        """
        job_id = self._submit(watcher, checked, name, savepoint, ignore=False)
        self._jobmanager.cancel(job_id, timeout=self._timeouts.clean_up)

    def _session(self, version: Version) -> AbstractContextManager[Session]:
        check_settings(version.settings)
        return self._gateway.session(self._runner.settings(version.settings))

    def _set_up(self, session: Session, prepared: Prepared) -> None:
        for statement in prepared.setup:
            self._runner.run(session, statement, statement.text)

    def _submit(self, watcher: Watcher, checked: Checked, name: str, savepoint: str, ignore: bool) -> str:
        """The id of the job, which the watcher knows before there is one. Raises RestoreRefused and Inconclusive."""
        job_id = uuid.uuid4().hex
        watcher.job(job_id)
        config = {
            "$internal.pipeline.job-id": job_id,
            "pipeline.name": name,
            "table.dml-sync": "false",
            "execution.state-recovery.path": savepoint,
            "execution.state-recovery.claim-mode": "NO_CLAIM",
            "execution.state-recovery.ignore-unclaimed-state": str(ignore).lower(),
            # A failure is to show, and nothing to stay behind.
            "restart-strategy.type": "disable",
            "execution.checkpointing.externalized-checkpoint-retention": "DELETE_ON_CANCELLATION",
        }
        try:
            with self._session(checked.version) as session:
                self._set_up(session, checked.prepared)
                Substitutes(session, self._private).put(checked.tables)
                started = self._runner.run(session, checked.prepared.job, checked.prepared.job_sql, config).job_id
        except SubmissionUnknown as error:
            raise Unanswered(str(error)) from None
        except TargetError as error:
            if "checkpoint/savepoint" in str(error):
                raise RestoreRefused(str(error), "submit") from None
            raise Inconclusive(str(error)) from None
        if started != job_id:
            if started:
                watcher.job(started)
            raise Inconclusive(f"the SQL Gateway started job {started or 'without an id'} instead of {job_id}")
        return job_id

    def _come_up(self, job_id: str) -> JobStatus:
        """Until every task runs, so that none restores any more."""
        return self._watched(job_id, lambda seen: not seen.tasks_running, self._timeouts.start, "come up")

    def _settle(self, job_id: str) -> JobStatus:
        """Until nothing has failed for a while; how it was last seen."""
        begin = self._journal.begun(_step(job_id, "go on"))

        def is_early(_seen: JobStatus) -> bool:
            return time.time() - begin < self._timeouts.settle

        return self._watched(job_id, is_early, self._timeouts.settle + self._timeouts.start, "go on", ran=True)

    def _watched(
        self, job_id: str, pending: Callable[[JobStatus], bool], timeout: float, what: str, *, ran: bool = False
    ) -> JobStatus:
        """Look until the job, which may end by itself, is not pending. Raises RestoreRefused and Inconclusive.

        ``ran``: every task was seen running before.
        """

        def look() -> JobStatus | None:
            seen = self._jobmanager.status(job_id)
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
            slots = self._jobmanager.get("overview")
            raise Inconclusive(
                f"the job did not {what} within {timeout:.0f} s: it is {seen.state if seen else 'unknown'}, "
                f"{slots['slots-available']} of {slots['slots-total']} slots are free"
            ) from None
        assert status is not None
        return status

    def _fail(self, job_id: str, ran: bool) -> None:
        """Raises RestoreRefused or Inconclusive, once the reason is known."""
        try:
            seen = poll(
                lambda: self._jobmanager.status(job_id),
                lambda seen: seen is None or not seen.failure or seen.state not in TERMINAL,
                timeout=_REASON_SECONDS,
            )
        except Overdue as overdue:
            seen = overdue.last
        why = (seen.failure if seen else None) or "no reason is given"
        if seen is not None and seen.state == "CANCELED":
            raise Inconclusive(f"the job was cancelled by someone else ({why})")
        if cluster.failed_at_restore(self._jobmanager, job_id):
            raise RestoreRefused(why, "restore")
        if ran:
            raise RestoreRefused(why, "run")
        raise Inconclusive(f"the job failed before it ran, not over its state: {why}")


def _step(job_id: str, what: str) -> str:
    return f"job {job_id} to {what}"
