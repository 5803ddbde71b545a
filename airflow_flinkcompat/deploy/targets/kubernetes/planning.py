"""Planned changes for a resource that Argo CD or Flux writes, executed by the operator's upgrade.

A merge of the plan makes the operator upgrade the job in one step. Therefore the plan sets modes and options so that
the operator either takes a savepoint or does nothing. The outcome of the upgrade is verified afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from airflow_flinkcompat.deploy.errors import DeployRefused
from airflow_flinkcompat.deploy.flink.statements import ScriptRefused
from airflow_flinkcompat.deploy.target import ChangePlan
from airflow_flinkcompat.deploy.targets.kubernetes.blue_green import KIND, OUTER, wrapped
from airflow_flinkcompat.deploy.targets.kubernetes.documents import (
    DEPLOYMENT,
    file_of,
    name_of,
    patch_of,
    secret_places,
    starting,
)
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import SCRIPT_FILE, Manifest
from airflow_flinkcompat.deploy.targets.kubernetes.resource import KEPT, REQUEST, STARTED, FlinkResource
from airflow_flinkcompat.model import JobSpec, StartMode
from airflow_flinkcompat.secrets import placeholders

# Fields of a job that a deployment sets. `parallelism` is set only if the settings contain it.
_JOB_KEYS = ("jarURI", "entryClass", "args", "state", "upgradeMode", "allowNonRestoredState")
_PARALLELISM = "parallelism.default"


def require_plannable(manifest: Manifest, job: JobSpec) -> None:
    """Raise ScriptRefused for a script with placeholders, unless the program reads a mounted script."""
    found = next(iter(placeholders(job.script)), None)
    if found is not None and not manifest.reads_script_file:
        raise ScriptRefused(
            f"{job.source}: {found} would be filled in before the script is written to the repository, where "
            "everybody could read its value. Pass the script with {script_uri}, from a Secret that you create"
        )


def upgrading(
    manifest: Manifest, job: JobSpec, base: FlinkResource | None, mode: StartMode, request_id: str
) -> dict[str, Any]:
    """The complete resource as it will be after the plan is carried out."""
    body = starting(manifest, job, job.script, base, request_id, None, ())
    # The operator reads it only at the first start, but a stateless change of color would also start from it.
    fixed = mode is not StartMode.STATELESS or manifest.kind != KIND
    if base is not None and "initialSavepointPath" in base.job and fixed:
        body["spec"]["job"]["initialSavepointPath"] = base.job["initialSavepointPath"]
    if base is not None and mode is StartMode.STATELESS:
        body["spec"]["job"]["upgradeMode"] = "stateless"
    ours = {"labels": (REQUEST, DEPLOYMENT), "annotations": (STARTED,)}
    if base is not None:
        metadata = body["metadata"]
        body["metadata"] = {
            "name": base.name,
            **{part: {key: metadata[part][key] for key in keys} for part, keys in ours.items()},
        }
    return body


def plan_of(
    manifest: Manifest,
    job: JobSpec,
    base: FlinkResource | None,
    mode: StartMode,
    body: Mapping[str, Any],
    namespace: str,
) -> ChangePlan:
    """The plan of a change that the API server has accepted in a dry run."""
    name, kind = name_of(job), manifest.kind
    place = f"{kind} {name} of namespace {namespace}"
    file = file_of(manifest, job, job.script, body["metadata"]["labels"][REQUEST])
    resource = {
        "apiVersion": body["apiVersion"],
        "kind": kind,
        "metadata": {**body["metadata"], "namespace": namespace},
        "spec": body["spec"] if base is None else _ours(manifest, job, body["spec"]),
    }
    _require_no_secret(manifest, resource, place, base)
    patch = None if base is None else patch_of(base.document, body)
    if kind == KIND:
        resource = wrapped({**resource, OUTER: body.get(OUTER) if base is None else None})
        patch = wrapped(patch) if patch is not None else None
    documents = [resource]
    if manifest.mounts and not file.secret:
        kept = {"name": file.name, "namespace": namespace, "labels": {DEPLOYMENT: name}}
        documents.insert(
            0, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": kept, "immutable": True, "data": {**file.texts}}
        )
    before = base.note(STARTED).get("settings") or () if base is not None else ()
    gone = sorted(({*before} - {*job.settings}).intersection(base.configuration if base is not None else ()))
    notes = [
        f"Plan of flinkcompat for {place}. Merge it into the manifests of the repository.",
        *(_change_of_color(mode) if kind == KIND and base is not None else _upgrade(base, mode)),
    ]
    if gone:
        notes.append(f"Remove from spec.flinkConfiguration: {', '.join(gone)}.")
    if file.secret:
        filled = ", ".join(sorted({str(each) for each in placeholders(job.script)}))
        notes.append(
            f"Before the merge, create the Secret {file.name} in namespace {namespace}. Its key {SCRIPT_FILE} must "
            f"contain the script with {filled} filled in (for example by an ExternalSecret or a SealedSecret). No "
            "document here contains this script."
        )
    return ChangePlan(
        place,
        yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120),
        patch,
        tuple(notes),
    )


def _require_no_secret(manifest: Manifest, resource: Mapping[str, Any], place: str, base: FlinkResource | None) -> None:
    """Raise DeployRefused for a secret, because a plan is written to a log, to XCom and to a repository."""
    spec = resource["spec"]
    # Skip the script, because the script was already checked for secrets.
    looked = {**spec, "job": {**spec["job"], "args": list(manifest.args)}}
    if found := secret_places({**resource, "spec": looked}):
        source = "the manifest of the connection" if base is None else "the resource"
        raise DeployRefused(
            f"{place}: everybody could read {', '.join(found)} in the plan. Remove this secret from {source}, and let "
            "Flink read it from a Secret (an environment variable with valueFrom.secretKeyRef, a mounted file, a "
            "service account's role), or add it in the repository itself. Then plan again"
        )


def _ours(manifest: Manifest, job: JobSpec, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a spec with only those fields that a deployment sets."""
    keys = [*_JOB_KEYS, *(["parallelism"] if _PARALLELISM in job.settings else [])]
    configuration = spec["flinkConfiguration"]
    ours = {
        "flinkConfiguration": {key: configuration[key] for key in (*job.settings, *KEPT)},
        "job": {key: spec["job"][key] for key in keys if key in spec["job"]},
    }
    return {**ours, "podTemplate": spec["podTemplate"]} if manifest.mounts else ours


def _upgrade(base: FlinkResource | None, mode: StartMode) -> list[str]:
    """Notes on the effects of the merge, and on the verification after it."""
    after = "The next run of the deployment records the change when the job runs and Flink reports"
    if base is None:
        return [
            "The operator starts the job without state.",
            f"{after} that it started empty (latest.restored).",
        ]
    if mode is StartMode.STATELESS:
        return [
            "After the merge, the operator cancels the job WITHOUT a savepoint and starts the script empty, in one "
            "step. To be able to return to the present state, take a savepoint before the merge.",
            f"{after} that it started empty (latest.restored).",
            "upgradeMode: stateless stays in the repository. Set it to savepoint with a second merge. Otherwise the "
            "next change by anybody also starts the job empty. The next plan of flinkcompat sets it to savepoint.",
        ]
    return [
        "After the merge, the operator stops the job with a savepoint and starts the script from it, in one step. "
        "Nothing checks the savepoint before the start, and nothing rolls back to the former script. If the job does "
        "not run, revert the merge, and compare Flink's restore error with the savepoint.",
        "The last-state fallback is off. If the savepoint fails, the job keeps running, and the operator tries again.",
        f"{after} that it was restored from the savepoint that the operator recorded (latest.restored).",
    ]


def _change_of_color(mode: StartMode) -> list[str]:
    """Notes on a change between blue and green."""
    begin = (
        "the operator starts the script empty in the other color"
        if mode is StartMode.STATELESS
        else "the operator takes a savepoint and starts the script from it in the other color"
    )
    return [
        f"After the merge, {begin}. Until that job is stable, the former job keeps running, and then it is deleted "
        "WITHOUT a savepoint.",
        "Both jobs write the rows of this time. A sink without a key contains these rows twice. Transactional Kafka "
        "sinks of both jobs need different values of sink.transactional-id-prefix, or one job fails the other.",
        "If the new job is not stable within kubernetes.operator.bluegreen.abort.grace-period, the operator suspends "
        "it, and the former job keeps running. Then revert the merge.",
        "The next run of the deployment records the change when the resource is active and Flink reports that the job "
        "was restored from the operator's savepoint (latest.restored).",
    ]


class _Dumper(yaml.SafeDumper):
    """YAML dumper that writes multi-line texts as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
