"""Status of an application's runs, computed from the service's answers without further calls.

The service shows no job ids. A run of an application is identified by the request id of its start. The target writes
this id into the application's record before the start. If someone else started a run, it is identified by the operation
id of the start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from airflow_flinkcompat.deploy.target import JobRef, Snapshot
from airflow_flinkcompat.deploy.targets.aws.properties import FormerRun, RunRecord
from airflow_flinkcompat.deploy.targets.aws.service import ManagedApplication, ServiceOperation, ServiceSnapshot

# The state of a job for each status of an application.
_STATES = {
    "STARTING": "CREATED",
    "RUNNING": "RUNNING",
    "UPDATING": "RUNNING",
    "AUTOSCALING": "RUNNING",
    "MAINTENANCE": "RUNNING",
    "STOPPING": "CANCELLING",
    "FORCE_STOPPING": "CANCELLING",
    "DELETING": "CANCELLING",
    "ROLLING_BACK": "FAILING",
    "ROLLED_BACK": "FAILING",
}


@dataclass(frozen=True)
class RunOutcome:
    """Status of an application's run in Flink's terms; ``snapshot`` is the snapshot of its stop."""

    state: str
    tasks_running: bool = False
    failure: str | None = None
    snapshot: Snapshot | None = None


@dataclass(frozen=True)
class ApplicationLook:
    """The current state of an application, with its operations, latest first."""

    application: ManagedApplication
    operations: Sequence[ServiceOperation]

    @property
    def record(self) -> RunRecord:
        """The record of the request that wrote the application's configuration."""
        return RunRecord.of(self.application.groups)

    @property
    def start(self) -> ServiceOperation | None:
        return next((each for each in self.operations if each.kind == "StartApplication"), None)

    @property
    def stop(self) -> ServiceOperation | None:
        """The latest stop after the latest start."""
        began = self.start.began if self.start else datetime.fromtimestamp(0, UTC)
        stops = (each for each in self.operations if each.kind.endswith("StopApplication"))
        return next((each for each in stops if each.began >= began), None)

    @property
    def stops(self) -> bool:
        at_work = self.stop is not None and self.stop.in_progress
        return at_work or self.application.status in ("STOPPING", "FORCE_STOPPING")

    @property
    def runs(self) -> bool:
        """True if a job runs. An UPDATING application may be running or stopped."""
        if self.application.status != "UPDATING":
            return self.application.status != "READY"
        ended = self.stop is not None and self.stop.status == "SUCCESSFUL"
        return self.start is not None and not self.start.failed and not ended

    @property
    def job(self) -> JobRef | None:
        """The current run of the application, or the latest run of a READY application, or None."""
        request, start = self.record.request, self.start
        asked_for = request is not None and start is not None and start.id != self.record.after
        # The service's list of operations may be older than its status. The update that records a request precedes
        # the start.
        if asked_for or (request is not None and self.application.status not in ("READY", "UPDATING")):
            return job_ref(self.application.name, str(request))
        if request is not None or start is None:
            return job_ref(self.application.name, f"version-{self.application.version}") if self.runs else None
        return job_ref(self.application.name, start.id)

    def knows(self, request: str) -> bool:
        """True if the start of this request was executed, with any outcome."""
        return request in self.record.former or self.job == job_ref(self.application.name, request)

    def outcome(
        self,
        snapshots: Callable[[], Sequence[ServiceSnapshot]],
        failure: Callable[[ServiceOperation], str],
    ) -> RunOutcome:
        """Status or end of the latest run. The status is ``CANCELLING`` until the stop's snapshot is complete."""
        start, stop = self.start, self.stop
        if self.runs:
            return self._live(failure)
        if stop is not None and stop.in_progress:
            return RunOutcome("CANCELLING")
        if stop is not None and not stop.failed:
            left, *more = self._left_by(stop, snapshots()) or (None,)
            if left is None:
                return RunOutcome("CANCELED")
            if more and more[0].created == left.created:
                unclear = f"snapshots {left.name} and {more[0].name} were created at the same time, {left.created}"
                remedy = "Start the application manually from the later snapshot, then run flinkcompat ledger adopt"
                return RunOutcome("CANCELED", failure=f"{unclear}, so the snapshot of the stop is unknown. {remedy}")
            if left.status not in ("CREATING", "READY"):
                return RunOutcome("CANCELED", failure=f"snapshot {left.name} of the stop is {left.status}")
            if left.status == "CREATING":
                return RunOutcome("CANCELLING")
            return RunOutcome("FINISHED", snapshot=snapshot_ref(self.application.name, left.name))
        since = [each for each in self.operations if start is not None and each.began >= start.began]
        failed = next((each for each in since if each.failed), None)
        return RunOutcome(
            "FAILED",
            failure=failure(failed) if failed else "the application is READY, and no operation shows the reason",
        )

    def _live(self, failure: Callable[[ServiceOperation], str]) -> RunOutcome:
        start, status = self.start, self.application.status
        if status in ("ROLLING_BACK", "ROLLED_BACK"):
            to = f" to version {self.application.rolled_back_to}" if self.application.rolled_back_to else ""
            return RunOutcome(_STATES[status], failure=f"the service rolled the application back{to}")
        if start is not None and start.failed and start.id != self.record.after:
            return RunOutcome("FAILING", failure=failure(start))
        if self.stops:
            return RunOutcome("CANCELLING")
        up = start is not None and start.id != self.record.after and start.status == "SUCCESSFUL"
        return RunOutcome(_STATES[status], up and status == "RUNNING")

    def _left_by(self, stop: ServiceOperation, snapshots: Sequence[ServiceSnapshot]) -> tuple[ServiceSnapshot, ...]:
        """Snapshots that a stop may have taken, latest first: all of the running version since the stop began.

        A READY application takes no snapshots, so the latest snapshot belongs to the stop. The service may report the
        times of snapshots and stops with different precision.
        """
        application = self.application
        updated = application.version_since is not None and application.version_since > stop.began

        def belongs(snapshot: ServiceSnapshot) -> bool:
            began = stop.began if snapshot.created.microsecond else stop.began.replace(microsecond=0)
            return snapshot.created >= began and (updated or snapshot.version == application.version)

        return tuple(filter(belongs, snapshots))

    def next_record(self, request: str, outcome: RunOutcome | None) -> RunRecord:
        """The record of the next request, with the outcome of the former run."""
        if self.record.request == request:
            return self.record
        _, run = split(self.job) if self.job else (None, None)
        ended = None
        if outcome is not None:
            left = None if outcome.snapshot is None else outcome.snapshot.partition("/")[2]
            ended = FormerRun(outcome.state, datetime.now(UTC).isoformat(timespec="milliseconds"), left)
        return self.record.followed_by(request, self.start.id if self.start else None, run, ended)


def job_ref(application: str, run: str) -> JobRef:
    return JobRef(f"{application}/{run}")


def snapshot_ref(application: str, snapshot: str) -> Snapshot:
    return Snapshot(f"{application}/{snapshot}")


def split(ref: JobRef | Snapshot | None) -> tuple[str | None, str]:
    """The application and the name of a run or snapshot.

    The application is None if a different target made the reference.
    """
    application, slash, name = (ref or "").partition("/")
    return (application, name) if slash and application and name else (None, name)
