"""The controller of ``FlinkBlueGreenDeployment`` in operator 1.15.0, on the stand-in for the API server."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.deploy.targets.kubernetes_stand_in import FlinkJob, KubernetesStandIn

PLURAL, COLORS = "flinkbluegreendeployments", "flinkdeployments"


@dataclass
class BlueGreenStandIn(KubernetesStandIn):
    """``aborts``: a new color that is not stable is suspended at once. ``overlap``: both colors stay."""

    aborts: bool = False
    overlap: bool = False

    def reconcile(self) -> None:
        """Bring every resource about, and the colors of each."""
        for (plural, name), document in list(self.objects.items()):
            if plural == PLURAL:
                before = copy.deepcopy(document.get("status"))
                if "deletionTimestamp" in document["metadata"]:
                    del self.objects[plural, name]
                    for color in ("blue", "green"):
                        if (child := self.objects.get((COLORS, f"{name}-{color}"))) is not None:
                            child["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
                    continue
                self._control(name, document)
                if document.get("status") != before:
                    document["metadata"]["resourceVersion"] = self._version()
        super().reconcile()

    def _control(self, name: str, document: dict[str, Any]) -> None:
        status = document.setdefault("status", {"jobStatus": {}, "blueGreenState": "INITIALIZING_BLUE"})
        spec, state = document["spec"], status["blueGreenState"]
        last = json.loads(status["lastReconciledSpec"])["spec"] if "lastReconciledSpec" in status else None
        color = state.rpartition("_")[2].lower()
        other = "green" if color == "blue" else "blue"
        child, former = (self.objects.get((COLORS, f"{name}-{each}")) for each in (color, other))
        template = spec["template"]["spec"]
        if state.startswith("TRANSITIONING"):
            assert child is not None
            self._transition(status, child, former, color, other)
        elif last is None:
            self._reconciled(status, spec, "TRANSITIONING_TO_BLUE")
            self._put(name, document, "blue", template)
        elif template != (before := last["template"]["spec"]):
            assert child is not None
            states = before["job"].get("state", "running"), template["job"].get("state", "running")
            if states != ("running", "running"):
                self._reconciled(status, spec, f"TRANSITIONING_TO_{color.upper()}")
                self._put(name, document, color, template)
            elif (job := self._job(child)) is not None and job.state == "RUNNING":
                self._reconciled(status, spec, f"TRANSITIONING_TO_{other.upper()}")
                self._put(name, document, other, self._from_savepoint(template, job))

    def _transition(
        self, status: dict[str, Any], child: dict[str, Any], former: dict[str, Any] | None, color: str, other: str
    ) -> None:
        said, wants = child.get("status") or {}, child["spec"]["job"].get("state", "running")
        if said.get("lifecycleState") == ("SUSPENDED" if wants == "suspended" else "STABLE"):
            if not self.overlap:
                status |= {"blueGreenState": f"ACTIVE_{color.upper()}", "error": None}
                if former is not None and wants == "running":
                    former["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        elif self.aborts and said and former is not None:
            child["spec"]["job"]["state"] = "suspended"
            child["metadata"]["generation"] += 1
            status |= {"blueGreenState": f"ACTIVE_{other.upper()}", "error": "Aborting deployment"}

    def _from_savepoint(self, template: Mapping[str, Any], job: FlinkJob) -> dict[str, Any]:
        """The template with a new savepoint of a job, which keeps running."""
        if template["job"]["upgradeMode"] == "stateless":
            return dict(template)
        path = self.flink.stop(job)
        job.state = "RUNNING"
        return {**template, "job": {**template["job"], "initialSavepointPath": path.replace("file:", "")}}

    def _reconciled(self, status: dict[str, Any], spec: Mapping[str, Any], state: str) -> None:
        status |= {"blueGreenState": state, "lastReconciledSpec": json.dumps({"spec": spec})}

    def _put(self, name: str, document: Mapping[str, Any], color: str, spec: Mapping[str, Any]) -> None:
        """Create or replace a color."""
        key = COLORS, f"{name}-{color}"
        known = self.objects.get(key)
        owner = {"kind": document["kind"], "name": name, "uid": document["metadata"]["uid"], "controller": False}
        made = copy.deepcopy(dict(spec))
        if known is not None and (path := (known["status"]["jobStatus"]).get("upgradeSavepointPath")):
            made["job"]["initialSavepointPath"] = path
        self.objects[key] = {
            "metadata": {
                "name": key[1],
                "ownerReferences": [owner],
                "uid": known["metadata"]["uid"] if known else str(uuid.uuid4()),
                "generation": known["metadata"]["generation"] + 1 if known else 1,
                "resourceVersion": self._version(),
            },
            "spec": made,
            **({"status": known["status"]} if known and "status" in known else {}),
        }
