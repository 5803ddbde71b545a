"""A ``FlinkBlueGreenDeployment`` as if it were the ``FlinkDeployment`` of the color in force.

The operator (1.14 and later) creates a ``FlinkDeployment`` ``NAME-blue`` or ``NAME-green`` from ``spec.template.spec``.
A changed template makes the operator take a savepoint of the running color, start the other color from it, and delete
the former color as soon as the new one is stable. Until then, both jobs process the rows after the savepoint. So a
redeploy of this target does not use this transition: it suspends the color in force and resumes it, which the operator
does in place. Only a plan uses the transition. (Read in the source of operator 1.15.0.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

KIND = "FlinkBlueGreenDeployment"
COLORS = ("blue", "green")
OUTER, CLUSTER, SETTLING, CHANGING, ABORTED = "outer", "cluster", "settling", "changing", "aborted"
"""Keys of a presented document.

In this order: the spec outside of the template's spec, the color's name, the state while the resource is not active,
the state while it changes its color, and True if the operator has aborted a change of color.
"""
_OURS = (OUTER, CLUSTER, SETTLING, CHANGING, ABORTED)
# The operator sets these fields of a color itself.
_OF_A_COLOR = ("initialSavepointPath",)


def color_names(name: str) -> tuple[str, ...]:
    """Names of the ``FlinkDeployment`` resources that can belong to a resource."""
    return tuple(f"{name}-{color}" for color in COLORS)


def wrapped(document: Mapping[str, Any]) -> dict[str, Any]:
    """The resource, or a patch of it, as the API server stores it."""
    outer = document.get(OUTER) or {}
    template = {**(outer.get("template") or {}), "spec": document["spec"]}
    found = {key: value for key, value in document.items() if key not in _OURS}
    return {**found, "spec": {**outer, "template": template}}


def outer_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a resource's spec outside of ``template.spec``."""
    template = {key: value for key, value in (spec.get("template") or {}).items() if key != "spec"}
    found = {key: value for key, value in spec.items() if key != "template"}
    return {**found, **({"template": template} if template else {})}


def presented(document: Mapping[str, Any], colors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The resource as a ``FlinkDeployment``; ``colors`` are the existing resources of its colors.

    If the operator has aborted a change, the former color runs. Then the spec of this color is the resource's spec.
    """
    spec = document.get("spec") or {}
    requested: dict[str, Any] = (spec.get("template") or {}).get("spec") or {}
    said = document.get("status") or {}
    state = str(said.get("blueGreenState") or "INITIALIZING_BLUE")
    name = f"{document['metadata']['name']}-{state.rpartition('_')[2].lower()}"
    color = next((each for each in colors if each["metadata"]["name"] == name), None)
    seen = _contains(_template_spec(said), requested)
    own = seen and color is not None and _contains(color["spec"], requested)
    active = state.startswith("ACTIVE_")
    aborted = color is not None and active and seen and not own
    changing = state if not active and (len(colors) > 1 or "SAVEPOINTING" in state) else ""
    found = {key: value for key, value in document.items() if key not in ("spec", "status")}
    return {
        **found,
        "spec": deepcopy(color["spec"]) if aborted and color is not None else requested,
        "status": _status(document, color, done=own and not changing, active=active, requested=requested),
        OUTER: outer_of(spec),
        CLUSTER: name,
        SETTLING: "" if active else state,
        CHANGING: changing,
        ABORTED: aborted,
    }


def left_over(name: str, colors: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """A deleted resource whose colors still exist, or None."""
    for each in colors:
        owners = each["metadata"].get("ownerReferences") or ()
        if any(owner.get("kind") == KIND and owner.get("name") == name for owner in owners):
            gone = {"deletionTimestamp": "deleted", **each["metadata"], "name": name}
            return {"kind": KIND, "metadata": gone, "spec": each["spec"], CLUSTER: each["metadata"]["name"]}
    return None


def _status(
    document: Mapping[str, Any],
    color: Mapping[str, Any] | None,
    *,
    done: bool,
    active: bool,
    requested: Mapping[str, Any],
) -> dict[str, Any]:
    """The status of a color, in which the generations are those of the resource."""
    generation, said = int(document["metadata"].get("generation", 1)), document.get("status") or {}
    status = deepcopy(dict((color or {}).get("status") or {}))
    current = color is not None and int(status.get("observedGeneration") or 0) >= int(color["metadata"]["generation"])
    status["observedGeneration"] = generation if done and current else generation - 1
    taken = (status.get("jobStatus") or {}).get("upgradeSavepointPath") or ""
    if taken.startswith("/"):  # the operator removes the scheme
        status["jobStatus"]["upgradeSavepointPath"] = f"file:{taken}"
    if said.get("error") and not status.get("error"):
        status["error"] = said["error"]
    reconciliation = status.get("reconciliationStatus") or {}
    last = _loaded(reconciliation.get("lastReconciledSpec"))
    if job := (last.get("spec") or {}).get("job"):
        # The operator starts a color from its savepoint as from a user's savepoint.
        for key in _OF_A_COLOR:
            job[key] = (requested.get("job") or {}).get(key)
        if not active and (requested.get("job") or {}).get("state") == "suspended":
            job["state"] = "running"  # the resource can be resumed only when it is active again
        reconciliation["lastReconciledSpec"] = json.dumps(last)
    return status


def _template_spec(status: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = _loaded(status.get("lastReconciledSpec")).get("spec") or {}
    return (spec.get("template") or {}).get("spec") or {}


def _loaded(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}


def _contains(full: Any, part: Any, key: str = "") -> bool:
    """True if ``full`` has all fields of ``part``. The operator adds defaults, but no option of Flink."""
    if isinstance(part, Mapping) and isinstance(full, Mapping):
        if key == "flinkConfiguration":
            return dict(full) == dict(part)
        return all(
            name in _OF_A_COLOR or name == "ingress" or _contains(full.get(name), value, name)
            for name, value in part.items()
        )
    return bool(full == part or (not part and not full))
