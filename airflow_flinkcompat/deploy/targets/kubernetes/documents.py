"""Documents for the API server: resources, patches, and the spec of a resource to re-create.

Before a resource is deleted, the spec of its successor is stored in a ConfigMap, so that nothing is lost if the run
dies. If the spec contains a literal secret (``s3.secret-key``), the spec is stored in a Secret instead, and the
ConfigMap refers to the Secret. More users may read ConfigMaps than Flink's resources, so a ConfigMap never contains
secrets. All deployments share one Secret, so that a Role can grant access to only this Secret.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from airflow_flinkcompat.deploy.flink.statements import JOB_NAME, prepare_job
from airflow_flinkcompat.deploy.target import Snapshot, checkpoint_number, same_snapshot
from airflow_flinkcompat.deploy.targets.kubernetes.api import KubernetesApi
from airflow_flinkcompat.deploy.targets.kubernetes.blue_green import OUTER
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import Manifest
from airflow_flinkcompat.deploy.targets.kubernetes.resource import (
    FILES,
    KEPT,
    PREFIX,
    REQUEST,
    RUNNING,
    STARTED,
    STOPPED,
    FlinkResource,
)
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.secrets import placeholders
from airflow_flinkcompat.secrets.redact import mask_option

DEPLOYMENT = f"{PREFIX}deployment"
"""Label with the name of the deployment that a resource belongs to."""


@dataclass(frozen=True)
class ScriptFile:
    """The ConfigMap or Secret of a mounted script; ``texts`` is its content by key."""

    name: str
    texts: Mapping[str, str]
    secret: bool

    @property
    def place(self) -> str:
        """Reference such as ``configmaps/NAME``, used in the annotation of a resource."""
        return f"{'secrets' if self.secret else 'configmaps'}/{self.name}"


def _parallelism(job: JobSpec) -> int:
    """The parallelism in a job's settings, or 0 if unset or no number."""
    setting = job.settings.get("parallelism.default", "").strip()
    return int(setting) if setting.isdecimal() else 0


def starting(
    manifest: Manifest,
    job: JobSpec,
    text: str,
    base: FlinkResource | None,
    request_id: str,
    savepoint: Snapshot | None,
    files: Sequence[str],
) -> dict[str, Any]:
    """The complete resource for a start."""
    name = name_of(job)
    spec_before = base.spec if base is not None else manifest.spec
    file = file_of(manifest, job, text, request_id)
    spec = manifest.with_script(file.name, text, spec_before, secret=file.secret)
    before = base.note(STARTED).get("settings") or () if base is not None else ()
    configuration = spec.get("flinkConfiguration") or {}
    others = {key: value for key, value in configuration.items() if key not in before}
    spec["flinkConfiguration"] = {**others, **job.settings, **KEPT}
    # In mode savepoint, a first start has no state. Any other mode would also apply to later edits.
    spec["job"] |= {"state": RUNNING, "upgradeMode": "savepoint", "allowNonRestoredState": False}
    # The operator requires ``parallelism`` (measured on operator 1.7.0), and prefers it to Flink's option.
    spec["job"]["parallelism"] = _parallelism(job) or spec["job"].get("parallelism") or 1
    spec["job"].pop("initialSavepointPath", None)
    if savepoint is not None:
        spec["job"]["initialSavepointPath"] = savepoint
    started = {
        "request": request_id,
        "name": prepare_job(job).job_name or job.settings.get(JOB_NAME) or name,
        "settings": sorted(job.settings),
        "first": base is None,
    }
    notes = {STARTED: started, **({FILES: {"names": [*files]}} if files else {})}
    if base is not None and (stopped := base.note(STOPPED)):
        notes[STOPPED] = {**stopped, "savepoint": stopped.get("savepoint") or left_by(base)}
    former = base.template["metadata"] if base is not None else {"labels": {}, "annotations": {}}
    metadata = {
        "labels": {**former["labels"], REQUEST: request_id, DEPLOYMENT: name},
        "annotations": {**former["annotations"], **{key: json.dumps(note) for key, note in notes.items()}},
    }
    document = manifest.document(name, spec, metadata)
    return document if base is None or OUTER not in base.document else {**document, OUTER: base.document[OUTER]}


def left_by(resource: FlinkResource) -> Snapshot | None:
    """The savepoint of a resource's last stop, or None if there is none or only a checkpoint."""
    note, found = resource.note(STOPPED), resource.upgrade_savepoint
    lacking = not resource.ended or note.get("failed") or checkpoint_number(found) is not None
    return None if lacking or same_snapshot(found, note.get("before")) else found


def name_of(job: JobSpec) -> str:
    """The name of a job's resource, which is the deployment's name."""
    return job.settings.get(JOB_NAME) or prepare_job(job).job_name or ""


def next_of(name: str) -> str:
    """Name of the ConfigMap that stores the spec of a resource to re-create."""
    return f"{name}-flinkcompat-next"


def file_of(manifest: Manifest, job: JobSpec, text: str, request_id: str) -> ScriptFile:
    """The ConfigMap or Secret with the script of a start, for a manifest that mounts the script.

    The name of a ConfigMap depends on its content, so that each script has only one ConfigMap. The name of a Secret
    depends on the request id instead, because a hash of its content would help to guess passwords.
    """
    secret = bool(placeholders(job.script))
    texts = manifest.files(text)
    content = sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()
    return ScriptFile(f"{name_of(job)}-sql-{(request_id if secret else content)[:12]}", texts, secret)


def asking(spec: Mapping[str, Any], notes: Mapping[str, Any]) -> dict[str, Any]:
    """A patch that sets a resource's spec and annotations."""
    annotations = {key: json.dumps(note) for key, note in notes.items()}
    return {"metadata": {"annotations": annotations} if annotations else {}, "spec": spec}


def note_digest(body: dict[str, Any], stored: FlinkResource) -> None:
    """Record the digest of the stored spec, which identifies the job of the start."""
    annotations = body["metadata"]["annotations"]
    annotations[STARTED] = json.dumps({**json.loads(annotations[STARTED]), "spec": stored.digest})


def patch_of(document: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """Merge patch (RFC 7386) that changes a resource's spec, labels and annotations to those of ``body``."""
    metadata = {key: body["metadata"][key] for key in ("labels", "annotations")}
    return {"metadata": metadata, "spec": _merge_patch(document.get("spec") or {}, body["spec"])}


def _merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key in old and old[key] == value:
            continue
        both = isinstance(value, Mapping) and isinstance(old.get(key), Mapping)
        patch[key] = _merge_patch(old[key], value) if both else value
    return patch


def secret_places(resource: Mapping[str, Any]) -> list[str]:
    """Paths of literal secrets in the spec and the annotations of a resource."""
    annotations = resource["metadata"].get("annotations") or {}
    # Skip the record of a start, which contains names of settings.
    notes = {key: value for key, value in annotations.items() if key != STARTED}
    return sorted({*_secret_places(resource["spec"], "spec"), *_secret_places(notes, "metadata.annotations")})


def _secret_places(part: Any, place: str, key: str = "") -> Iterator[str]:
    if isinstance(part, Mapping):
        if "name" in part and "value" in part:  # an environment variable
            yield from _secret_places(part["value"], f"{place}.{part['name']}", str(part["name"]))
        for name, each in part.items():
            yield from _secret_places(each, f"{place}.{name}", str(name))
    elif isinstance(part, list):
        for number, each in enumerate(part):
            before = str(part[number - 1]) if number else ""
            yield from _secret_places(each, f"{place}[{number}]", before.lstrip("-") if before[:1] == "-" else "")
    elif part is not None and not isinstance(part, bool) and mask_option(key, str(part)) != str(part):
        yield place


SECRET = "flinkcompat-next"
"""The Secret for specs that contain secrets. The keys of this Secret are names of deployments."""
_FILE, _FOLLOWS, _SECRET_FILE = "resource.json", "follows", "secret"


class Following:
    """Specs that are stored in a namespace for resources to re-create. Every method raises ApiError."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api

    def keep(self, name: str, document: Mapping[str, Any], follows: str, *, dry_run: bool = False) -> None:
        text = json.dumps(document)
        if secret_places(document):
            self._api.put_entry(SECRET, name, text, dry_run=dry_run)
            files = {_SECRET_FILE: SECRET, _FOLLOWS: follows}
            if dry_run:
                self._api.entry(SECRET, name)
        else:
            files = {_FILE: text, _FOLLOWS: follows}
            if not dry_run:
                self._drop_entry(name)
        self._api.keep(next_of(name), files, {DEPLOYMENT: name}, dry_run=dry_run)

    def find(self, name: str) -> FlinkResource | None:
        """The stored spec of a resource to re-create, or None."""
        text = self._api.file(next_of(name), _FILE)
        if text is None and (secret := self._api.file(next_of(name), _SECRET_FILE)) is not None:
            text = self._api.entry(secret, name)
        return None if text is None else FlinkResource(json.loads(text))

    def follows(self, name: str) -> str | None:
        """The uid of the deleted resource whose spec is stored for a re-creation, or None if none is stored."""
        return self._api.file(next_of(name), _FOLLOWS)

    def drop(self, name: str) -> None:
        """Delete a stored spec, if it still exists."""
        self._drop_entry(name)  # before the ConfigMap, because only the ConfigMap refers to the entry
        self._api.drop(f"configmaps/{next_of(name)}")

    def _drop_entry(self, name: str) -> None:
        if (secret := self._api.file(next_of(name), _SECRET_FILE)) is not None:
            self._api.put_entry(secret, name, None)
