"""Status of an application's runs from one answer of the service: pure functions.

The service shows no id of a job. A run of an application is identified by the request of its start, which the target
writes into the application's record beforehand. A run that somebody else started is identified by the id of that
operation.
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
    """Status of an application's run as a state of Flink's; ``snapshot``: the snapshot of its stop."""

    state: str
    tasks_running: bool = False
    failure: str | None = None
    snapshot: Snapshot | None = None


@dataclass(frozen=True)
class ApplicationLook:
    """An application as it is now, and its operations, the latest first."""

    application: ManagedApplication
    operations: Sequence[ServiceOperation]

    @property
    def record(self) -> RunRecord:
        """The request to which the application's configuration belongs."""
        return RunRecord.of(self.application.groups)

    @property
    def start(self) -> ServiceOperation | None:
        return next((each for each in self.operations if each.kind == "StartApplication"), None)

    @property
    def stop(self) -> ServiceOperation | None:
        """The latest stop of the latest start."""
        began = self.start.began if self.start else datetime.fromtimestamp(0, UTC)
        stops = (each for each in self.operations if each.kind.endswith("StopApplication"))
        return next((each for each in stops if each.began >= began), None)

    @property
    def stops(self) -> bool:
        at_work = self.stop is not None and self.stop.in_progress
        return at_work or self.application.status in ("STOPPING", "FORCE_STOPPING")

    @property
    def runs(self) -> bool:
        """True if a job runs; an application that is READY may be UPDATING too."""
        if self.application.status != "UPDATING":
            return self.application.status != "READY"
        ended = self.stop is not None and self.stop.status == "SUCCESSFUL"
        return self.start is not None and not self.start.failed and not ended

    @property
    def job(self) -> JobRef | None:
        """The run of the application or request, the latest one if READY; None if there is none."""
        request, start = self.record.request, self.start
        asked_for = request is not None and start is not None and start.id != self.record.after
        # The list of operations may lag after the status; a start follows the update of its request.
        if asked_for or (request is not None and self.application.status not in ("READY", "UPDATING")):
            return job_ref(self.application.name, str(request))
        if request is not None or start is None:
            return job_ref(self.application.name, f"version-{self.application.version}") if self.runs else None
        return job_ref(self.application.name, start.id)

    def knows(self, request: str) -> bool:
        """True if the start of a request was made, whatever its outcome."""
        return request in self.record.former or self.job == job_ref(self.application.name, request)

    def outcome(
        self,
        snapshots: Callable[[], Sequence[ServiceSnapshot]],
        failure: Callable[[ServiceOperation], str],
    ) -> RunOutcome:
        """Status or end of the latest run; ``CANCELLING`` until its stop and the stop's snapshot are done."""
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
                remedy = "start the application from the later one by hand, then run flinkcompat ledger adopt"
                return RunOutcome("CANCELED", failure=f"{unclear}, so the snapshot of the stop is unknown: {remedy}")
            if left.status not in ("CREATING", "READY"):
                return RunOutcome("CANCELED", failure=f"snapshot {left.name} of the stop is {left.status}")
            if left.status == "CREATING":
                return RunOutcome("CANCELLING")
            return RunOutcome("FINISHED", snapshot=snapshot_ref(self.application.name, left.name))
        since = [each for each in self.operations if start is not None and each.began >= start.began]
        failed = next((each for each in since if each.failed), None)
        return RunOutcome(
            "FAILED",
            failure=failure(failed) if failed else "the application is READY, and no operation gives the reason",
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
        """The snapshot that a stop took: the first one of the running version that is not older than the stop.

        A READY application takes none, so a later one is the stop's own. The service does not promise equal precision
        of both times.
        """
        application = self.application
        updated = application.version_since is not None and application.version_since > stop.began

        def belongs(snapshot: ServiceSnapshot) -> bool:
            began = stop.began if snapshot.created.microsecond else stop.began.replace(microsecond=0)
            return snapshot.created >= began and (updated or snapshot.version == application.version)

        return tuple(filter(belongs, snapshots))

    def next_record(self, request: str, outcome: RunOutcome | None) -> RunRecord:
        """The record of the next request, with the end of the run before it."""
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
    """The application of a run or a snapshot, and its name there; None if another target made it."""
    application, slash, name = (ref or "").partition("/")
    return (application, name) if slash and application and name else (None, name)
