"""The target for Realtime Compute: deployments are found by name, and jobs are job instances.

Start and stop of a job are separate requests. Each request uses an explicit savepoint, never the platform's latest
state.
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
from airflow_flinkcompat.deploy.targets.realtime_compute.settings import WorkspaceSettings, version_of
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.model.engine import line_of
from airflow_flinkcompat.secrets import placeholders
from airflow_flinkcompat.secrets.placeholders import placeholders_in_script

_log = logging.getLogger(__name__)
_STREAMING = "STREAMING"
# Maximum seconds to wait until all tasks of a job run, before the job is stopped anyway.
_UP_SECONDS = 60.0


class RealtimeComputeTarget(RealtimeComputeJobs):
    """A namespace of Realtime Compute for Apache Flink. Closing the target ends its connections.

    Args:
        api: The OpenAPI of the namespace.
    """

    settle_seconds = 10.0
    """Seconds after a job's end for which the list of savepoints may lack the job's last savepoint."""

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
        """Let the platform validate the script and its settings. Nothing is written."""
        name = self._name(job, self._prepared(job))
        deployment = self._deployment(name)
        if deployment is None:
            self._require_queue(name)
        else:
            self._require_fitting(deployment)
            self._require_offered(deployment, job)
        sql = deployment.artifact.sql_artifact if deployment is not None else None
        asked = self._api.models.SqlStatementWithContext(
            statement=job.script,
            batch_mode=False,
            version_name=self._engine_version(deployment, job),
            flink_configuration={key: value for key, value in job.settings.items() if key != JOB_NAME},
            additional_dependencies=sql.additional_dependencies if sql else None,
        )
        found = self._api.validate(asked)
        if not _is_valid(found):
            raise TargetError(self._invalid(job, found))
        return "the platform validated the script, but its API cannot check before the start that the savepoint fits"

    def start(self, job: JobSpec, start: Start, request_id: str) -> Operation:
        """Write the script into the deployment, read the deployment back, and start a job instance."""
        name = self._name(job, self._prepared(job))
        found = self._deployment(name)
        if found is not None and (own := self._instance(found, request_id)) is not None:
            return Operation(Verb.START, request_id, own)
        if start.savepoint is not None:
            self._require_savepoint(start.savepoint)
        deployment = self._write(found, name, job, request_id)
        # Check again, because a retry of a late run may have started the job instance meanwhile.
        started = self._instance(deployment, request_id) or self._start_instance(deployment, job, start, request_id)
        return Operation(Verb.START, request_id, started)

    def _instance(self, deployment: Any, request_id: str) -> JobRef | None:
        """The job instance of this request. Raises TargetError if an instance of a different start runs."""
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
                f"{job.source}: the platform stores and shows the text of scripts and settings, so placeholders are "
                f"not filled in: {', '.join(named)}. Create a namespace variable in the console, and write "
                "${secret_values.<name>} instead"
            )
        return prepared

    def _name(self, job: JobSpec, prepared: Prepared) -> str:
        name = prepared.job_name or job.settings.get(JOB_NAME)
        if not name:
            raise ScriptRefused(f"{job.source}: the deployment has no name. Set '{JOB_NAME}'")
        return name

    def _require_queue(self, name: str) -> str:
        queue = self._api.settings.deployment_target
        if queue is None:
            raise TargetError(
                f"there is no deployment {name!r} in {self}. Create the deployment with its resources in the console, "
                f"or set deployment_target of {self._api.settings.place} to the queue for new deployments"
            )
        return queue

    def _require_fitting(self, deployment: Any) -> None:
        """Raise TargetError unless the deployment is a SQL streaming deployment."""
        if not instances.is_sql(deployment) or (deployment.execution_mode or _STREAMING) != _STREAMING:
            kind = deployment.artifact.kind if deployment.artifact else "unknown"
            raise TargetError(
                f"the deployment {deployment.name!r} of {self} is of kind {kind}, {deployment.execution_mode}, but "
                f"this target only supports {instances.SQL}, {_STREAMING}"
            )

    def _require_offered(self, deployment: Any, job: JobSpec) -> None:
        """Raise TargetError if a deployment moves to an engine version that the platform does not offer."""
        version = self._engine_version(deployment, job)
        if self._api.settings.former_engine_version is None or version == deployment.engine_version:
            return
        if version not in (offered := self._api.offered_engine_versions()):
            raise TargetError(
                f"{job.source}: the deployment {deployment.name!r} cannot move to {version}, because {self} offers "
                f"only {', '.join(offered)}. Correct engine_version of {self._api.settings.place}"
            )

    def _engine_version(self, deployment: Any | None, job: JobSpec) -> str:
        """The platform's name of a job's version: while jobs move, a rollback uses the former version."""
        pinned, former = self._api.settings.engine_version, self._api.settings.former_engine_version
        if former is not None and line_of(version_of(former, "")) == job.version:
            return former
        return str(pinned or (deployment and deployment.engine_version) or self._api.default_engine_version())

    def _require_savepoint(self, savepoint: Snapshot) -> None:
        found = self._api.savepoint(savepoint)
        state = "missing" if found is None else instances.savepoint_state(found)
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

    def _write(self, found: Any | None, name: str, job: JobSpec, request_id: str) -> Any:
        """Write the deployment and read it back from the platform. Raises TargetError."""
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
                engine_version=self._engine_version(before, job),
                flink_conf=settings,
                labels={**(before.labels or {}), instances.START_LABEL: request_id},
            )
            deployment_id = before.deployment_id
            self._api.update(deployment_id, wanted)
        written = self._api.deployment(deployment_id)
        if differing := instances.not_as_written(before, wanted, written, gone):
            raise TargetError(
                f"the deployment {name!r} of {self} differs from the written deployment: {', '.join(differing)}. The "
                "deployment was not started. Someone else may be changing it. Try again, or check the deployment in "
                "the console"
            )
        return written

    def _new(self, name: str, job: JobSpec, settings: Mapping[str, Any], request_id: str) -> Any:
        """A new deployment with the console's default resources."""
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
            engine_version=self._engine_version(None, job),
            execution_mode=_STREAMING,
            deployment_target=models.BriefDeploymentTarget(mode="PER_JOB", name=self._require_queue(name)),
            flink_conf=dict(settings),
            labels={instances.START_LABEL: request_id},
            streaming_resource_setting=models.StreamingResourceSetting(
                resource_setting_mode="BASIC", basic_resource_setting=basic
            ),
        )

    def _start_instance(self, deployment: Any, job: JobSpec, start: Start, request_id: str) -> JobRef:
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
            local_variables=deployment.local_variables,  # if omitted, the SDK sends an empty list
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
            raise SubmissionUnknown(f"{job.source}: {self} started a job instance, but returned no id")
        return self._only_instance(deployment, made.job_id, request_id)

    def _only_instance(self, deployment: Any, made: str, request_id: str) -> JobRef:
        """The job instance that a start request created.

        Cancels a second instance if an earlier call started the first.
        """
        jobs = [each for each in self._api.jobs(deployment.deployment_id) if instances.is_active(each)]
        first = instances.of_request((each for each in jobs if each.job_id != made), request_id)
        if first is None:
            return JobRef(made)
        self.cancel(JobRef(made))
        return JobRef(first.job_id)

    # ----------------------------------------------------------------------------------- stops, savepoints, requests
    def stop(self, job: JobRef, request_id: str, directory: str | None) -> Operation:
        """Request the stop unless it already runs or failed. A label stores the request id."""
        operation = Operation(Verb.STOP, request_id, job, directory=directory)
        if directory is not None:
            _log.warning("%s: the workspace stores its savepoints, not %s", self, directory)
        with suppress(Overdue):  # after the wait, the platform's refusal of the stop gives the reason
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
        """Request a savepoint of a running job instance. The description stores the request id."""
        found = self._api.job(job)
        if found is None or not instances.is_active(found):
            raise TargetError(f"job {job} of {self} {'is unknown' if found is None else 'has ended'}")
        if self._savepoint_of(found.deployment_id, request_id) is None:
            self._api.create_savepoint(found.deployment_id, _described(request_id))
        return Operation(Verb.SAVEPOINT, request_id, job, directory=directory)

    def poll(self, operation: Operation) -> Operation:
        """The outcome, from labels, job instances' configurations, and the platform's savepoints."""
        match operation.verb:
            case Verb.START:
                return replace(operation, job=self._job_of(operation.request_id))
            case Verb.STOP:
                return replace(operation, snapshot=self._savepoint_of_stop(operation))
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
        """The job instance that this request started, even if the deployment was renamed."""
        labelled = self._api.deployments(label_key=instances.START_LABEL, label_value_array=request_id)
        for deployment in labelled:
            if (deployment.labels or {}).get(instances.START_LABEL) == request_id:
                found = instances.of_request(self._api.jobs(deployment.deployment_id), request_id)
                if found is not None:
                    return JobRef(found.job_id)
        return None

    def _savepoint_of_stop(self, stop: Operation) -> Snapshot | None:
        """The savepoint of a stop, or None until the job has ended. Raises StopFailed."""
        job = stop.job
        assert job is not None

        def look() -> tuple[Any, list[Any]]:
            # Read the job before the savepoints, because the list is complete only after the job's end.
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
    """True if the platform accepts a script. The field ``success`` only shows that the call succeeded."""
    if found is None or found.success is not True:
        return False
    details = found.error_details
    result = str(found.validation_result or "")
    return not re.search("INVALID|UNSUPPORTED", result) and not (
        details and (details.message or details.invalidflink_conf)
    )


def _described(request_id: str) -> str:
    return f"flinkcompat {request_id}"
