"""One ``FlinkSessionJob`` or ``FlinkDeployment``: what its document says of the job, by operators of 1.7 to 1.15.

Field history (the operator's releases): before 1.8 the reconciled generation stands in ``lastReconciledSpec`` alone;
before 1.10 the savepoint of a stop is ``savepointInfo.lastSavepoint``, later ``upgradeSavepointPath``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from airflow_flinkcompat.deploy.errors import DeployRefused
from airflow_flinkcompat.deploy.target import TERMINAL, JobRef, Snapshot

PREFIX = "flinkcompat/"
REQUEST = f"{PREFIX}request"
"""Label: the request of the start whose job the resource describes."""
STARTED, STOPPED = f"{PREFIX}started", f"{PREFIX}stopped"
"""Annotations, JSON: what the last start and the last stop wrote down."""
SUSPENDED, RUNNING = "suspended", "running"
FALLBACK = "kubernetes.operator.job.upgrade.last-state-fallback.enabled"
"""The option by which a stop with savepoint may quietly become one without."""
_NO_PATH = "KUBERNETES_OPERATOR_LAST_STATE"
# What changes without another job coming of it, and what only says how to stop or to begin.
_INCIDENTAL = frozenset(
    {
        "state",
        "upgradeMode",
        "allowNonRestoredState",
        "initialSavepointPath",
        "savepointTriggerNonce",
        "checkpointTriggerNonce",
    }
)
_GITOPS = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
}


@dataclass(frozen=True)
class FlinkResource:
    """A custom resource with a job, as it was read."""

    document: Mapping[str, Any]

    # ---------------------------------------------------------------------------------------------- what was asked for
    @property
    def metadata(self) -> Mapping[str, Any]:
        """Its metadata."""
        return self.document["metadata"]  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.metadata["name"])

    @property
    def generation(self) -> int:
        """The number of its spec."""
        return int(self.metadata.get("generation", 0))

    @property
    def revision(self) -> tuple[str, int]:
        """Names this very spec of this very resource."""
        return str(self.metadata.get("uid")), self.generation

    @property
    def spec(self) -> Mapping[str, Any]:
        """What it asks for."""
        return self.document.get("spec") or {}

    @property
    def job(self) -> Mapping[str, Any]:
        """What it asks for of its job; empty for a session cluster."""
        return self.spec.get("job") or {}

    @property
    def wants_suspended(self) -> bool:
        """Whether it asks for no job to run."""
        return bool(self.job.get("state", RUNNING) == SUSPENDED)

    @property
    def configuration(self) -> Mapping[str, str]:
        """Flink's options."""
        return self.spec.get("flinkConfiguration") or {}

    @cached_property
    def digest(self) -> str:
        """Of all in the spec that makes another job."""
        spec = {key: value for key, value in self.spec.items() if key not in ("restartNonce",)}
        spec["job"] = {key: value for key, value in self.job.items() if key not in _INCIDENTAL}
        spec["flinkConfiguration"] = {key: value for key, value in self.configuration.items() if key != FALLBACK}
        return sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()

    def note(self, annotation: str) -> Mapping[str, Any]:
        """What a start or stop wrote down; empty where there was none."""
        text = (self.metadata.get("annotations") or {}).get(annotation)
        try:
            found = json.loads(text) if text else {}
        except ValueError:
            found = {}
        return found if isinstance(found, dict) else {}

    @property
    def started(self) -> Mapping[str, Any]:
        """What the start of this very spec wrote down; empty where somebody else changed the spec since."""
        note = self.note(STARTED)
        return note if note.get("spec") == self.digest else {}

    @property
    def ref(self) -> JobRef:
        """The job it describes: by the request of its start, or by the spec of whoever else wrote that."""
        if request := self.started.get("request"):
            return JobRef(f"{self.name}/{request}")
        return JobRef(f"{self.name}/{self.metadata.get('uid', '')[:8]}-{self.digest[:8]}")

    @property
    def request(self) -> str | None:
        """The request of the last start."""
        found = (self.metadata.get("labels") or {}).get(REQUEST)
        return None if found is None else str(found)

    def require_ours(self) -> None:
        """Raises DeployRefused: a GitOps controller would undo what is written here."""
        marks = {**(self.metadata.get("labels") or {}), **(self.metadata.get("annotations") or {})}
        owner = next((owner for mark, owner in _GITOPS.items() if mark in marks), None)
        if owner is not None:
            raise DeployRefused(
                f"{self.document.get('kind')} {self.name} belongs to {owner}, which would undo any change made here. "
                f"Nothing was touched. Take it out of {owner} (Argo CD: ignoreDifferences does not do, remove it from "
                "the application; Flux: annotate it with kustomize.toolkit.fluxcd.io/reconcile: disabled and remove "
                "its labels), or deploy by a pull request"
            )

    # ------------------------------------------------------------------------------------------------ what became of it
    @property
    def status(self) -> Mapping[str, Any]:
        """What the operator says."""
        return self.document.get("status") or {}

    @property
    def job_status(self) -> Mapping[str, Any]:
        """What the operator says of the job."""
        return self.status.get("jobStatus") or {}

    @property
    def job_name(self) -> str:
        """The name of the job in Flink: as the start wrote it down, or the operator saw it."""
        return str(self.started.get("name") or self.job_status.get("jobName") or self.name)

    @property
    def flink_job(self) -> str | None:
        """The id of the job in Flink; None while there is none."""
        found = self.job_status.get("jobId")
        return str(found) if found else None

    @property
    def error(self) -> str | None:
        """What went wrong last, as the operator words it."""
        found = self.status.get("error")
        return str(found) if found else None

    @cached_property
    def reconciled_generation(self) -> int:
        """The generation that the operator has brought about; 0: none yet."""
        reconciled = (self.status.get("reconciliationStatus") or {}).get("lastReconciledSpec")
        try:
            metadata = json.loads(reconciled)["resource_metadata"]["metadata"] if reconciled else {}
        except (ValueError, KeyError, TypeError):
            metadata = {}
        observed = self.status.get("observedGeneration")
        return int(observed if observed is not None else metadata.get("generation", 0) or 0)

    @property
    def reconciled(self) -> bool:
        """Whether what is said of the job is said of this spec."""
        state = (self.status.get("reconciliationStatus") or {}).get("state")
        return self.reconciled_generation >= self.generation and state == "DEPLOYED"

    @property
    def ended(self) -> bool:
        """Whether no job of it runs, and none will by this spec."""
        if not self.job:
            return True
        if not self.reconciled:
            return False
        if self.wants_suspended:
            return self.status.get("lifecycleState") in ("SUSPENDED", None) and self.job_state in (*TERMINAL, "")
        return self.job_state in TERMINAL

    @property
    def job_state(self) -> str:
        """The state of the job as the operator saw it last; empty: it saw none."""
        return str(self.job_status.get("state") or "")

    @property
    def upgrade_savepoint(self) -> Snapshot | None:
        """The savepoint from which the operator would go on."""
        if found := self.job_status.get("upgradeSavepointPath"):
            return Snapshot(str(found)) if found != _NO_PATH else None
        last = (self.job_status.get("savepointInfo") or {}).get("lastSavepoint") or {}
        return Snapshot(str(last["location"])) if last.get("location") else None
