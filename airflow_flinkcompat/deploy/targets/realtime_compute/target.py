"""Deployments of Realtime Compute as a target: found by name, with job instances as jobs.

Start and stop are two phases, each with an explicit state, never with the one that the platform considers the latest.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

from airflow_flinkcompat.deploy.errors import (
    SavepointFailed,
    StateFault,
    StateRefused,
    StopFailed,
    SubmissionUnknown,
    TargetError,
    condense,
    refusal,
)
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.flink.statements import JOB_NAME, Prepared, ScriptRefused, prepare_job
from airflow_flinkcompat.deploy.target import (
    JobRef,
    Operation,
    Snapshot,
    Start,
    Verb,
)
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.realtime_compute import instances
from airflow_flinkcompat.deploy.targets.realtime_compute.jobs import RealtimeComputeJobs
from airflow_flinkcompat.deploy.targets.realtime_compute.openapi import OpenApi, RealtimeComputeError
from airflow_flinkcompat.deploy.targets.realtime_compute.settings import WorkspaceSettings
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.secrets import placeholders
from airflow_flinkcompat.secrets.placeholders import placeholders_in_script

_log = logging.getLogger(__name__)
_STREAMING = "STREAMING"
# Seconds that a job may take until all its tasks run, before it is stopped anyway.
_UP_SECONDS = 60.0


class RealtimeComputeTarget(RealtimeComputeJobs):
    """One namespace of a workspace of Realtime Compute for Apache Flink; close it to end its connections.

    Args:
        api: The OpenAPI of the namespace.
    """

    settle_seconds = 10.0
    """Seconds for which the list of savepoints may lag after the end of the job that made the last one."""

    @classmethod
    def connect(cls, access: Access) -> Self:
        """Open the target. Raises DeployError if a setting is wrong or the vendor's SDK is missing."""
        return cls(OpenApi(WorkspaceSettings.of(access)))

    def manual_start(self, snapshot: Snapshot, statements: str) -> str:
        return (
            f"in the console of namespace {self._api.settings.namespace}:\n"
            f"  deploy {statements}\n"
            f"  Start > Resume from a specified state > savepoint {snapshot}"
        )

    # ------------------------------------------------------------------------------------------------------- starts
    def validate(self, job: JobSpec, start: Start) -> str:
        """Validate the script with its settings by the platform; nothing is written."""
        name = self._name(job, self._prepared(job))
        deployment = self._deployment(name)
        if deployment is None:
            self._require_queue(name)
        else:
            self._require_fitting(deployment)
        sql = deployment.artifact.sql_artifact if deployment is not None else None
        asked = self._api.models.SqlStatementWithContext(
            statement=job.script,
            batch_mode=False,
            version_name=self._engine_version(deployment),
            flink_configuration={key: value for key, value in job.settings.items() if key != JOB_NAME},
            additional_dependencies=sql.additional_dependencies if sql else None,
        )
        found = self._api.validate(asked)
        if not _is_valid(found):
            raise TargetError(self._invalid(job, found))
        return "the platform validated the script; its API does not check before the start that a savepoint fits"

    def start(self, job: JobSpec, start: Start, request_id: str) -> Operation:
        """Write the script into the deployment, read it back, and start a job instance from a state."""
        name = self._name(job, self._prepared(job))
        found = self._deployment(name)
        if found is not None and (own := self._instance(found, request_id)) is not None:
            return Operation(Verb.START, request_id, own)
        if start.savepoint is not None:
            self._require_savepoint(start.savepoint)
        deployment = self._written(found, name, job, request_id)
        # Once more, because time has passed, and a retry may have resumed a run that is late.
        started = self._instance(deployment, request_id) or self._started(deployment, job, start, request_id)
        return Operation(Verb.START, request_id, started)

    def _instance(self, deployment: Any, request_id: str) -> JobRef | None:
        """The job instance of an earlier start. Raises TargetError if one of another start has not ended."""
        jobs = self._api.jobs(deployment.deployment_id)
        if (own := instances.of_request(jobs, request_id)) is not None:
            return JobRef(own.job_id)
        if others := [each.job_id for each in jobs if instances.is_active(each)]:
            raise TargetError(
                f"the deployment {deployment.name!r} of {self} has a job instance that has not ended and "
                f"does not belong to this start: {', '.join(others)}. Stop it first"
            )
        return None

    def _prepared(self, job: JobSpec) -> Prepared:
        prepared = prepare_job(job, variables=True)
        named = [str(each) for each in placeholders_in_script(job.script)]
        for key, value in job.settings.items():
            named += [f"{each} of the setting {key!r}" for each in placeholders(value)]
        if named:
            raise ScriptRefused(
                f"{job.source}: the platform stores and shows the text of scripts and settings, so "
                f"placeholders are not filled in: {', '.join(named)}. Create a variable of the namespace in "
                "the console, and write ${secret_values.<name>} in its place"
            )
        return prepared

    def _name(self, job: JobSpec, prepared: Prepared) -> str:
        name = prepared.job_name or job.settings.get(JOB_NAME)
        if not name:
            raise ScriptRefused(f"{job.source}: the deployment has no name: set '{JOB_NAME}'")
        return name

    def _require_queue(self, name: str) -> str:
        queue = self._api.settings.deployment_target
        if queue is None:
            raise TargetError(
                f"there is no deployment {name!r} in {self}: create it in the console, with its resources, "
                f"or set deployment_target of {self._api.settings.place} to the queue in which to create it"
            )
        return queue

    def _require_fitting(self, deployment: Any) -> None:
        """Raise TargetError unless it is a SQL streaming deployment."""
        if not instances.is_sql(deployment) or (deployment.execution_mode or _STREAMING) != _STREAMING:
            kind = deployment.artifact.kind if deployment.artifact else "unknown"
            raise TargetError(
                f"the deployment {deployment.name!r} of {self} is of kind {kind}, {deployment.execution_mode}: only "
                f"{instances.SQL}, {_STREAMING} is deployed here"
            )

    def _engine_version(self, deployment: Any | None) -> str:
        pinned = self._api.settings.engine_version
        return str(pinned or (deployment and deployment.engine_version) or self._api.default_engine_version())

    def _require_savepoint(self, savepoint: Snapshot) -> None:
        found = self._api.savepoint(savepoint)
        state = "not there" if found is None else instances.savepoint_state(found)
        if state != instances.COMPLETED:
            raise StateRefused(f"the savepoint {savepoint} of {self} is {state}", StateFault.GONE)

    def _invalid(self, job: JobSpec, found: Any) -> str:
        details = getattr(found, "error_details", None)
        reason = (details and details.message) or getattr(found, "message", None) or "no reason reported"
        place = job.source
        if details and str(details.line_number or "").isdigit():
            column = details.column_number if str(details.column_number or "").isdigit() else 1
            place = f"{job.source}:{details.line_number}:{column}"
        if details and details.invalidflink_conf:
            reason = f"{reason} (settings: {', '.join(map(str, details.invalidflink_conf))})"
        return f"{place}: the platform refused the script: {condense(str(reason), self._api.redactor)}"

    def _written(self, found: Any | None, name: str, job: JobSpec, request_id: str) -> Any:
        """The deployment to start, read back from the platform. Raises TargetError."""
        models = self._api.models
        before = None if found is None else self._api.deployment(found.deployment_id)
        settings, gone = instances.with_settings(before, job.settings, request_id)
        if before is None:
            wanted = self._new(name, job, settings, request_id)
            deployment_id = self._api.create(wanted).deployment_id
        else:
            self._require_fitting(before)
            artifact = models.Artifact().from_map(before.artifact.to_map())
            artifact.sql_artifact.sql_script = job.script
            wanted = instances.configured(
                models,
                before,
                artifact=artifact,
                engine_version=self._engine_version(before),
                flink_conf=settings,
                labels={**(before.labels or {}), instances.START_LABEL: request_id},
            )
            deployment_id = before.deployment_id
            self._api.update(deployment_id, wanted)
        written = self._api.deployment(deployment_id)
        if differing := instances.not_as_written(before, wanted, written, gone):
            raise TargetError(
                f"the deployment {name!r} of {self} differs from the written one: {', '.join(differing)}. It "
                "was not started. Somebody else may be changing it: try again, or check it in the console"
            )
        return written

    def _new(self, name: str, job: JobSpec, settings: Mapping[str, Any], request_id: str) -> Any:
        """A new deployment, with the default size of the console."""
        models, parallelism = self._api.models, job.settings.get("parallelism.default", "1")
        size = models.BasicResourceSettingSpec(cpu=1.0, memory="4Gi")
        basic = models.BasicResourceSetting(
            parallelism=int(parallelism) if parallelism.isdigit() else 1,
            jobmanager_resource_setting_spec=size,
            taskmanager_resource_setting_spec=size,
        )
        return models.Deployment(
            name=name,
            artifact=models.Artifact(kind=instances.SQL, sql_artifact=models.SqlArtifact(sql_script=job.script)),
            engine_version=self._engine_version(None),
            execution_mode=_STREAMING,
            deployment_target=models.BriefDeploymentTarget(mode="PER_JOB", name=self._require_queue(name)),
            flink_conf=dict(settings),
            labels={instances.START_LABEL: request_id},
            streaming_resource_setting=models.StreamingResourceSetting(
                resource_setting_mode="BASIC", basic_resource_setting=basic
            ),
        )

    def _started(self, deployment: Any, job: JobSpec, start: Start, request_id: str) -> JobRef:
        """Start a job instance. Raises SubmissionUnknown, StateRefused, TargetError."""
        models = self._api.models
        strategy = models.DeploymentRestoreStrategy(
            kind="FROM_SAVEPOINT" if start.savepoint else "NONE",
            savepoint_id=start.savepoint,
            allow_non_restored_state=False,
        )
        parameters = models.JobStartParameters(
            deployment_id=deployment.deployment_id,
            restore_strategy=strategy,
            local_variables=deployment.local_variables,  # otherwise the SDK sends an empty list
        )
        try:
            made = self._api.start(parameters)
        except RealtimeComputeError as error:
            if error.unanswered:
                raise SubmissionUnknown(f"{job.source}: {error}") from None
            own = instances.of_request(self._api.jobs(deployment.deployment_id), request_id)
            if own is None:
                raise refusal(f"{job.source}: {error}", error.reason) from None
            return JobRef(own.job_id)
        if made is None or not made.job_id:
            raise SubmissionUnknown(f"{job.source}: {self} started a job instance but named none")
        return self._only(deployment, made.job_id, request_id)

    def _only(self, deployment: Any, made: str, request_id: str) -> JobRef:
        """The one job instance of a request, because an earlier call may have started one first."""
        jobs = [each for each in self._api.jobs(deployment.deployment_id) if instances.is_active(each)]
        first = instances.of_request((each for each in jobs if each.job_id != made), request_id)
        if first is None:
            return JobRef(made)
        self.cancel(JobRef(made))
        return JobRef(first.job_id)

    # ----------------------------------------------------------------------------------- stops, savepoints, requests
    def stop(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Request the stop unless one runs or has failed. A label stores its id."""
        operation = Operation(Verb.STOP, request_id, job, directory=directory)
        if directory is not None:
            _log.warning("%s: the workspace stores its savepoints, not %s", self, directory)
        with suppress(Overdue):  # the platform's own error gives the reason
            poll(lambda: self.status(job), lambda seen: seen is not None and seen.starting, timeout=_UP_SECONDS)
        found = self._api.job(job)
        if found is None:
            raise TargetError(f"{self} has no job {job}")
        if not instances.is_active(found):
            return operation
        deployment = self._api.deployment(found.deployment_id)
        savepoints, mark = self._api.savepoints(job_id=job), instances.StopMark.of(deployment)
        if mark is None or mark.request_id != request_id:
            mark = instances.StopMark(request_id, instances.failed_stops(savepoints))
            labels = {**(deployment.labels or {}), instances.STOP_LABEL: str(mark)}
            self._api.update(
                deployment.deployment_id, instances.configured(self._api.models, deployment, labels=labels)
            )
        if not instances.stop_savepoints(savepoints, mark, request_id):
            try:
                self._api.stop(job, instances.STOPPED_BY)
            except RealtimeComputeError as error:
                if error.unanswered or self._runs(job):
                    raise
        return operation

    def savepoint(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Request a savepoint of the job instance that its deployment runs. The description stores its id."""
        found = self._api.job(job)
        if found is None or not instances.is_active(found):
            raise TargetError(f"job {job} of {self} {'is unknown' if found is None else 'has ended'}")
        if self._savepoint_of(found.deployment_id, request_id) is None:
            self._api.create_savepoint(found.deployment_id, _described(request_id))
        return Operation(Verb.SAVEPOINT, request_id, job, directory=directory)

    def poll(self, operation: Operation) -> Operation:
        """The outcome by labels, configurations of job instances, and savepoints of the platform."""
        match operation.verb:
            case Verb.START:
                return replace(operation, job=self._job_of(operation.request_id))
            case Verb.STOP:
                return replace(operation, snapshot=self._stopped(operation))
        assert operation.job is not None
        found = self._api.job(operation.job)
        savepoint = self._savepoint_of(found.deployment_id, operation.request_id) if found else None
        if savepoint is None:
            raise SavepointFailed(f"{self} has no savepoint of request {operation.request_id}")
        if instances.savepoint_state(savepoint) == instances.SAVEPOINT_FAILED:
            raise SavepointFailed(f"the savepoint {savepoint.savepoint_id} of {self} failed: {self._why(savepoint)}")
        complete = instances.savepoint_state(savepoint) == instances.COMPLETED
        return replace(operation, snapshot=Snapshot(savepoint.savepoint_id) if complete else None)

    def _job_of(self, request_id: str) -> JobRef | None:
        """The job instance that a request started, under any name of its deployment."""
        labelled = self._api.deployments(label_key=instances.START_LABEL, label_value_array=request_id)
        for deployment in labelled:
            if (deployment.labels or {}).get(instances.START_LABEL) == request_id:
                found = instances.of_request(self._api.jobs(deployment.deployment_id), request_id)
                if found is not None:
                    return JobRef(found.job_id)
        return None

    def _stopped(self, stop: Operation) -> Snapshot | None:
        """The savepoint once it has ended the job; None while the stop runs. Raises StopFailed."""
        job = stop.job
        assert job is not None

        def look() -> tuple[Any, list[Any]]:
            # The job first, because the last savepoint is in the list once the job has ended.
            found = self._api.job(job)
            mark = instances.StopMark.of(self._api.deployment(found.deployment_id)) if found else None
            return found, instances.stop_savepoints(self._api.savepoints(job_id=job), mark, stop.request_id)

        def lags(seen: tuple[Any, list[Any]]) -> bool:
            return seen[0] is not None and not instances.is_active(seen[0]) and not seen[1]

        try:
            found, savepoints = poll(look, lags, timeout=self.settle_seconds)
        except Overdue as overdue:
            found, savepoints = overdue.last
        runs = found is not None and instances.is_active(found)
        latest = savepoints[0] if savepoints else None
        state = instances.savepoint_state(latest) if latest is not None else ""
        if state == instances.COMPLETED:
            return None if runs or latest is None else Snapshot(latest.savepoint_id)
        if state == instances.SAVEPOINT_FAILED:
            raise StopFailed(f"the savepoint of the stop of job {job} failed: {self._why(latest)}")
        if runs or latest is not None:
            return None
        ended = "is unknown" if found is None else f"is {instances.state_of(found)}"
        raise StopFailed(f"job {job} {ended}, and {self} has no savepoint from its stop")

    def _savepoint_of(self, deployment_id: str, request_id: str) -> Any | None:
        found = self._api.savepoints(deployment_id=deployment_id)
        return next((each for each in found if each.description == _described(request_id)), None)

    def _why(self, savepoint: Any) -> str:
        return condense(instances.failure_of(savepoint.status), self._api.redactor)


def _is_valid(found: Any) -> bool:
    """The platform's judgement of a script; its ``success`` concerns the call only, as documented."""
    if found is None or found.success is not True:
        return False
    details = found.error_details
    result = str(found.validation_result or "")
    return not re.search("INVALID|UNSUPPORTED", result) and not (
        details and (details.message or details.invalidflink_conf)
    )


def _described(request_id: str) -> str:
    return f"flinkcompat {request_id}"
