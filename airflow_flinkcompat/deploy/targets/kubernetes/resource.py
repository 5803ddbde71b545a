"""A ``FlinkSessionJob``, ``FlinkDeployment`` or ``FlinkBlueGreenDeployment`` and its job's status.

The status fields differ between the operator's releases 1.7 to 1.15. Before operator 1.8, only ``lastReconciledSpec``
contains the reconciled generation. Before operator 1.10, ``savepointInfo.lastSavepoint`` is the savepoint of a stop.
Since operator 1.10, ``upgradeSavepointPath`` is the savepoint of a stop.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from airflow_flinkcompat.deploy.errors import DeployRefused, condense
from airflow_flinkcompat.deploy.target import TERMINAL, JobRef, Snapshot, same_snapshot
from airflow_flinkcompat.deploy.targets.kubernetes.blue_green import ABORTED, CHANGING, CLUSTER, OUTER, SETTLING

PREFIX = "flinkcompat/"
REQUEST = f"{PREFIX}request"
"""Label with the request id of the start whose job the resource describes."""
STARTED, STOPPED, REFUSED = f"{PREFIX}started", f"{PREFIX}stopped", f"{PREFIX}refused"
"""JSON annotations: records of the last start, the last stop, and the last refused start."""
FILES = f"{PREFIX}files"
"""JSON annotation: the ConfigMaps and Secrets of the resource's scripts, latest first."""
SUSPENDED, RUNNING = "suspended", "running"
FALLBACK = "kubernetes.operator.job.upgrade.last-state-fallback.enabled"
"""The option that lets a stop with savepoint fall back to a stop without savepoint."""
KEPT = {
    FALLBACK: "false",
    "kubernetes.operator.savepoint.cleanup.enabled": "false",
    "kubernetes.operator.savepoint.dispose-on-delete": "false",
}
"""Operator options that prevent a fallback of a stop, and the deletion of savepoints in the ledger."""
_NO_PATH = "KUBERNETES_OPERATOR_LAST_STATE"
# Fields that do not identify a job, because they only affect its stop or start.
_INCIDENTAL = frozenset(
    {
        "state",
        "upgradeMode",
        "allowNonRestoredState",
        "initialSavepointPath",
        "savepointTriggerNonce",
        "checkpointTriggerNonce",
        "autoscalerResetNonce",
    }
)
# Options of the operator and the autoscaler, which do not identify a job.
_NOT_OF_THE_JOB = ("kubernetes.operator.", "job.autoscaler.")
_PARALLELISM = "parallelism.default"
_COMING_UP = frozenset({"", "RECONCILING", "INITIALIZING", "CREATED"})
# Errors of jobs that Flink or Kubernetes refused, so that the operator's retries cannot succeed.
_IN_VAIN = re.compile(
    r"ProgramInvocationException|ValidationException|SqlParserException|TableException|CalciteContextException|"
    r"Failed to rollback to checkpoint|Cannot map checkpoint|Could not execute application|"
    r"DeploymentFailedException|exceeded quota|FailedCreate|ImagePullBackOff|ErrImagePull|CrashLoopBackOff"
)
_CUT_FRAME = re.compile(r"\n\s*at [^\n]*\Z")
_GITOPS = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
}
_CONTROLLERS = {
    "argocd-controller": "Argo CD",
    "argocd-application-controller": "Argo CD",
    "kustomize-controller": "Flux",
    "helm-controller": "Flux",
}


@dataclass(frozen=True)
class FlinkResource:
    """A custom resource with a job, as read from the API server."""

    document: Mapping[str, Any]

    # ----------------------------------------------------------------------------------------- requested spec and notes
    @property
    def metadata(self) -> Mapping[str, Any]:
        return self.document["metadata"]  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    @property
    def generation(self) -> int:
        return int(self.metadata.get("generation", 0))

    @property
    def revision(self) -> tuple[str, int]:
        """Identity of a resource's spec."""
        return str(self.metadata.get("uid")), self.generation

    @property
    def spec(self) -> Mapping[str, Any]:
        return self.document.get("spec") or {}

    @property
    def job(self) -> Mapping[str, Any]:
        """The requested job, empty for a session cluster."""
        return self.spec.get("job") or {}

    @property
    def wants_suspended(self) -> bool:
        """True if the spec requests a suspended job."""
        return bool(self.job.get("state", RUNNING) == SUSPENDED)

    @property
    def configuration(self) -> Mapping[str, str]:
        return self.spec.get("flinkConfiguration") or {}

    @cached_property
    def digest(self) -> str:
        """Digest of the spec fields that identify a job, without scaling and fields that the operator sets.

        The operator once rewrites a resource to add its finalizer and defaults (measured on operator 1.7.0:
        ``parallelism: 0``, and the ``kind`` of a pod template).
        """
        spec = {key: value for key, value in self.spec.items() if key != "restartNonce"}
        spec["job"] = {key: value for key, value in self.job.items() if key not in _INCIDENTAL}
        spec["flinkConfiguration"] = {
            key: value
            for key, value in self.configuration.items()
            if not key.startswith(_NOT_OF_THE_JOB)
            and (key != _PARALLELISM or key in (self.note(STARTED).get("settings") or ()))
        }
        if "taskManager" in spec:
            manager = spec["taskManager"] or {}
            spec["taskManager"] = {key: value for key, value in manager.items() if key != "replicas"}
        if "jobManager" in spec:
            spec["jobManager"] = {"replicas": 1, **(spec["jobManager"] or {})}
        for part in ("jobManager", "taskManager"):
            if part in spec:
                spec[part] = _plain_template(spec[part])
        spec = _plain_template(spec)
        return sha256(json.dumps(_without_empty(spec), sort_keys=True).encode()).hexdigest()

    def note(self, annotation: str) -> Mapping[str, Any]:
        """The record of a start or stop in an annotation; empty without such a record."""
        text = (self.metadata.get("annotations") or {}).get(annotation)
        try:
            found = json.loads(text) if text else {}
        except ValueError:
            found = {}
        return found if isinstance(found, dict) else {}

    @property
    def started(self) -> Mapping[str, Any]:
        """The record of this spec's start; empty if someone else has changed the spec since that start."""
        note = self.note(STARTED)
        return note if note.get("spec") == self.digest else {}

    @property
    def ref(self) -> JobRef:
        """The job that the resource describes, identified by request id, or else by uid and spec digest."""
        if request := self.started.get("request"):
            return JobRef(f"{self.name}/{request}")
        return JobRef(f"{self.name}/{self.metadata.get('uid', '')[:8]}-{self.digest[:8]}")

    @property
    def request(self) -> str | None:
        found = (self.metadata.get("labels") or {}).get(REQUEST)
        return None if found is None else str(found)

    @property
    def deleting(self) -> bool:
        return "deletionTimestamp" in self.metadata

    @property
    def session_job(self) -> bool:
        """True if the job runs on a session cluster, which outlives the job."""
        return "deploymentName" in self.spec

    @property
    def template(self) -> dict[str, Any]:
        """A document that re-creates the resource."""
        metadata = {key: dict(self.metadata.get(key) or {}) for key in ("labels", "annotations")}
        kept = {key: self.document[key] for key in ("apiVersion", "kind", OUTER) if key in self.document}
        return {**kept, "metadata": {"name": self.name, **metadata}, "spec": dict(self.spec)}

    @property
    def cluster(self) -> str:
        """The name of the ``FlinkDeployment`` whose JobManager runs the resource's job."""
        return str(self.document.get(CLUSTER) or self.spec.get("deploymentName") or self.name)

    @property
    def settling(self) -> bool:
        """True if the operator ignores a suspension, because an earlier change is not complete."""
        return bool(self.document.get(SETTLING))

    @property
    def aborted(self) -> bool:
        """True if the operator has aborted a change of color, so that the former job runs."""
        return bool(self.document.get(ABORTED))

    def require_its_own(self) -> None:
        """Raise DeployRefused if an owner resource or a change of color would undo changes."""
        kind = self.document.get("kind")
        if state := self.document.get(CHANGING):
            raise DeployRefused(
                f"{kind} {self.name} is {state}, so two jobs may run. Nothing was changed. Deploy again when the "
                "resource is ACTIVE_BLUE or ACTIVE_GREEN"
            )
        for each in self.metadata.get("ownerReferences") or ():
            if each.get("controller"):
                raise DeployRefused(
                    f"{kind} {self.name} is created and changed by {each.get('kind')} {each.get('name')}, which would "
                    "undo any other change. Nothing was changed. Deploy with a different resource"
                )

    def require_ours(self) -> None:
        """Raise DeployRefused if a GitOps controller or an owner resource would undo changes."""
        self.require_its_own()
        kind = self.document.get("kind")
        marks = {**(self.metadata.get("labels") or {}), **(self.metadata.get("annotations") or {})}
        owner = next((owner for mark, owner in _GITOPS.items() if mark in marks), None)
        managers = [each.get("manager") for each in self.metadata.get("managedFields") or ()]
        managing = next((each for each in managers if each in _CONTROLLERS), None)
        if owner is None and managing is None:
            return
        clear = ""
        if owner is None and managing is not None:
            owner = _CONTROLLERS[managing]
            clear = (
                f" (metadata.managedFields contains {managing}. After the removal, run kubectl patch {kind} "
                f"{self.name} "
                """--type=merge -p '{"metadata":{"managedFields":[{}]}}')"""
            )
        raise DeployRefused(
            f"{kind} {self.name} belongs to {owner}, which would undo any other change. Nothing was changed. Remove "
            f"the resource from {owner} (Argo CD: remove it from the application, because ignoreDifferences is not "
            "enough; Flux: annotate it with kustomize.toolkit.fluxcd.io/reconcile: disabled and remove its "
            f"labels){clear}. Or keep it in {owner}, and write the change as a pull request to its repository "
            "(plan_only=True of the deployment)"
        )

    # -------------------------------------------------------------------------------------------- reported status
    @property
    def status(self) -> Mapping[str, Any]:
        return self.document.get("status") or {}

    @property
    def job_status(self) -> Mapping[str, Any]:
        return self.status.get("jobStatus") or {}

    @property
    def job_name(self) -> str:
        """The job's name in Flink, from the record of the start or from the operator."""
        return str(self.started.get("name") or self.job_status.get("jobName") or self.name)

    @property
    def flink_job(self) -> str | None:
        """The job's id in Flink, or None if there is no job yet."""
        found = self.job_status.get("jobId")
        return str(found) if found else None

    @property
    def error(self) -> str | None:
        found = self.status.get("error")
        return str(found) if found else None

    @property
    def error_digest(self) -> str | None:
        return sha256(self.error.encode()).hexdigest()[:12] if self.error else None

    def why(self, redactor: Callable[[str], str]) -> str | None:
        """The operator's last error as one line, or None."""
        return condense(_trace(self.error), redactor) if self.error else None

    @property
    def in_vain(self) -> bool:
        """True if the operator's last error will recur with every retry of the operator."""
        return self.error is not None and _IN_VAIN.search(self.error) is not None

    @property
    def _reconciliation(self) -> Mapping[str, Any]:
        return self.status.get("reconciliationStatus") or {}

    @cached_property
    def _last(self) -> Mapping[str, Any]:
        """The spec that the operator last reconciled or is about to reconcile; empty without such a spec."""
        try:
            found = json.loads(self._reconciliation.get("lastReconciledSpec") or "{}")
        except ValueError:
            found = {}
        return found if isinstance(found, dict) else {}

    @property
    def last_job(self) -> Mapping[str, Any]:
        """The last reconciled job, whose state is ``suspended`` until a submission is accepted."""
        return (self._last.get("spec") or {}).get("job") or {}

    @property
    def reconciled_generation(self) -> int:
        """The generation that the operator has reconciled, or 0 if none."""
        observed = self.status.get("observedGeneration")
        metadata = (self._last.get("resource_metadata") or {}).get("metadata") or {}
        return int(observed if observed is not None else metadata.get("generation", 0) or 0)

    @property
    def reconciled(self) -> bool:
        """True if the job's status refers to this spec."""
        return self.reconciled_generation >= self.generation and self._reconciliation.get("state") == "DEPLOYED"

    @property
    def noticed(self) -> bool:
        """True if the operator has begun or finished the reconciliation of this spec."""
        return self.reconciled_generation >= self.generation or self._reconciliation.get("state") != "DEPLOYED"

    @property
    def unaccepted(self) -> bool:
        """True if no job of this spec was ever accepted, and no job of a former spec remains."""
        return bool(not self.reconciled and self.last_job.get("state", SUSPENDED) == SUSPENDED)

    @property
    def ended(self) -> bool:
        """True if the operator reports that no job of the resource runs, and none will start.

        If the resource is not ``reconciled``, its JobManager must confirm the end of the job. Since release 1.10, the
        operator cancels a session job in the background and never marks the spec as reconciled.
        """
        if not self.job:
            return True
        if self.wants_suspended:
            return bool(self.last_job.get("state", SUSPENDED) == SUSPENDED)
        return self.reconciled and self.job_state in TERMINAL

    def resumes_from(self, savepoint: Snapshot) -> bool:
        """True if the operator would certainly start the suspended resource from this savepoint."""
        last = self.last_job
        return bool(
            self.wants_suspended
            and self.reconciled
            and not self.deleting
            and self.error is None
            and (last.get("state"), last.get("upgradeMode")) == (SUSPENDED, "savepoint")
            and same_snapshot(self.upgrade_savepoint, savepoint)
        )

    def began_with(self, savepoint: Snapshot | None) -> bool:
        """True if the savepoint is the ``initialSavepointPath`` of the current or the last reconciled spec."""
        named = (job.get("initialSavepointPath") for job in (self.job, self.last_job))
        return any(each and same_snapshot(each, savepoint) for each in named)

    @property
    def drops_state(self) -> bool:
        """True if the current or the last reconciled spec lets the job drop unclaimed state."""
        return any(job.get("allowNonRestoredState") for job in (self.job, self.last_job))

    @property
    def final_state(self) -> str:
        """The final state of a job that its JobManager no longer knows."""
        if self.job_state in TERMINAL:
            return self.job_state
        return "FINISHED" if self.last_job.get("upgradeMode") == "savepoint" else "CANCELED"

    @property
    def coming_up(self) -> bool:
        """True if the operator saw no ready JobManager or job, so that the JobManager may not answer yet."""
        if self.session_job:
            return self.job_state in _COMING_UP
        return self.job_state in _COMING_UP or self.status.get("jobManagerDeploymentStatus") != "READY"

    @property
    def job_state(self) -> str:
        """The job state that the operator saw last, or ""."""
        return str(self.job_status.get("state") or "")

    @property
    def upgrade_savepoint(self) -> Snapshot | None:
        """The savepoint from which the operator would resume, or None."""
        if found := self.job_status.get("upgradeSavepointPath"):
            return Snapshot(str(found)) if found != _NO_PATH else None
        last = (self.job_status.get("savepointInfo") or {}).get("lastSavepoint") or {}
        return Snapshot(str(last["location"])) if last.get("location") else None


def _trace(error: str) -> str:
    """Convert an operator error (JSON with truncated texts) to one stack trace."""
    try:
        found = json.loads(error)
        parts = [found, *(found.get("throwableList") or ())]
        parts = [f"{part.get('type') or 'java.lang.Exception'}: {part.get('message') or ''}" for part in parts]
    except (ValueError, AttributeError):
        return error
    return "\nCaused by: ".join(_CUT_FRAME.sub("", each) for each in parts)


def _plain_template(part: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a spec, without ``apiVersion`` and ``kind`` in its pod template."""
    template = part.get("podTemplate")
    if not template:
        return dict(part)
    return {**part, "podTemplate": {key: each for key, each in template.items() if key not in ("apiVersion", "kind")}}


def _without_empty(value: Any) -> Any:
    """Remove empty values from a spec: zeros, empty texts, lists and objects."""
    if isinstance(value, Mapping):
        parts = {key: _without_empty(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part}
    return [_without_empty(part) for part in value] if isinstance(value, list) else value
