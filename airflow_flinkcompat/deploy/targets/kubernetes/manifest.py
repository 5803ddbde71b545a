"""The manifest of a resource, with a placeholder for the script.

A manifest is a ``FlinkSessionJob``, ``FlinkDeployment`` or ``FlinkBlueGreenDeployment`` in YAML. The arguments of its
job contain one placeholder for the script. ``{script}`` is the script's text, ``{script_base64}`` its base64 form, and
``{statements}`` the argument for this package's runner. ``{script_uri}`` and ``{statements_uri}`` are URIs of a file,
mounted from a ConfigMap or, with secrets filled in, from a Secret. ``{script_path}`` and ``{statements_path}`` are
plain paths of the same files.
"""

from __future__ import annotations

import base64
import binascii
import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from upath import UPath

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.statements import ScriptRefused
from airflow_flinkcompat.deploy.targets.jar_run import encode_script
from airflow_flinkcompat.deploy.targets.kubernetes.api import API_VERSION, PLURALS
from airflow_flinkcompat.deploy.targets.kubernetes.blue_green import KIND, OUTER, outer_of

DRIVER = "org.apache.flink.table.runtime.application.SqlDriver"
SCRIPT_FILE, _STATEMENTS_FILE = "script.sql", "statements"
_ENGINE = ("image", "flinkVersion", "deploymentName")
"""Fields of a spec that a move to another Flink version changes."""
_MOUNT, _VOLUME = "/opt/flink/flinkcompat", "flinkcompat-script"
_CONTAINER = "flink-main-container"
_SCRIPTS, _STATEMENTS = ("{script_uri}", "{script_path}"), ("{statements_uri}", "{statements_path}")
_MOUNTED = (*_SCRIPTS, *_STATEMENTS)
_PLACEHOLDERS = ("{script}", "{script_base64}", "{statements}", *_MOUNTED)
_LARGEST_BYTES = 300_000
# Maximum size of all values in a ConfigMap or Secret.
_LARGEST_FILE_BYTES = 1024 * 1024
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,43}[a-z0-9])?")


@dataclass(frozen=True)
class Manifest:
    """Template of a new resource; ``args`` contain the placeholder for the script.

    ``spec`` is the spec of a job. For a ``FlinkBlueGreenDeployment``, it is the template's spec, and ``outer`` is the
    rest.
    """

    kind: str
    spec: Mapping[str, Any]
    args: tuple[str, ...]
    metadata: Mapping[str, Any]
    outer: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Mapping[str, Any], place: str) -> Manifest:
        """The manifest of a connection, from ``manifest`` (YAML or its path) or from ``session_cluster``."""
        manifest, cluster = settings.get("manifest"), settings.get("session_cluster")
        if manifest:
            return cls._read(manifest, f"{place}: manifest")
        if not cluster:
            raise DeployError(
                f"{place}: the target kubernetes requires session_cluster (the name of a FlinkDeployment that runs "
                "jobs), or manifest (a FlinkSessionJob or FlinkDeployment in YAML, or the path of such a file)"
            )
        job = {"entryClass": DRIVER, "args": ["--script", "{script}"]}
        return cls("FlinkSessionJob", {"deploymentName": str(cluster), "job": job}, tuple(job["args"]), {})

    @classmethod
    def former(cls, settings: Mapping[str, Any], place: str, new: Manifest) -> Manifest | None:
        """The manifest of the line from which jobs move, or None if no jobs move. Raises DeployError."""
        written = settings.get("former_manifest")
        if not written:
            return None
        found = cls._read(written, f"{place}: former_manifest")
        engines = {found._engine, new._engine}
        if found.kind != new.kind or found.mounts != new.mounts or len(engines) == 1 or None in engines:
            raise DeployError(
                f"{place}: former_manifest and manifest must be of the same kind, pass the script in the same way (in "
                "arguments, or as a file), and differ in the flinkVersion of a FlinkDeployment or the deploymentName "
                "of a FlinkSessionJob"
            )
        return found

    @classmethod
    def _read(cls, manifest: object, place: str) -> Manifest:
        try:
            document = manifest
            if isinstance(manifest, str):
                text = manifest if "\n" in manifest else UPath(manifest).read_text("utf-8")
                document = yaml.safe_load(text)
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise DeployError(f"{place} cannot be read: {error}") from None
        if not isinstance(document, Mapping) or document.get("kind") not in PLURALS:
            raise DeployError(f"{place} is not a {' or '.join(PLURALS)}")
        spec, outer = dict(document.get("spec") or {}), {}
        if document["kind"] == KIND:
            spec, outer = dict((spec.get("template") or {}).get("spec") or {}), outer_of(spec)
        args = tuple(str(each) for each in (spec.get("job") or {}).get("args") or ())
        if sum(arg.count(each) for arg in args for each in _PLACEHOLDERS) != 1:
            raise DeployError(
                f"{place}: spec.job.args must contain exactly one placeholder for the script: "
                f"{', '.join(_PLACEHOLDERS)}"
            )
        found = cls(str(document["kind"]), spec, args, dict(document.get("metadata") or {}), outer)
        if found.mounts and found.kind == "FlinkSessionJob":
            raise DeployError(
                f"{place}: {', '.join(_MOUNTED)} mount a file into the JobManager, but a FlinkSessionJob has no "
                "separate JobManager. Use {script} or {statements}, or a FlinkDeployment"
            )
        return found

    @property
    def mounts(self) -> bool:
        """True if the script is mounted as a file into the JobManager."""
        return any(each in arg for arg in self.args for each in _MOUNTED)

    @property
    def reads_script_file(self) -> bool:
        """True if the program reads the script's text from a file."""
        return any(each in arg for arg in self.args for each in _SCRIPTS)

    @property
    def _reads_statements(self) -> bool:
        """True if the program reads statements for this package's runner from a file."""
        return any(each in arg for arg in self.args for each in _STATEMENTS)

    @property
    def flink_version(self) -> str | None:
        """The Flink version in the manifest (``v1_20`` is 1.20), or None if it names none (a session job)."""
        found = re.fullmatch(r"v(\d+)_(\d+)", str(self.spec.get("flinkVersion", "")))
        return f"{found[1]}.{found[2]}" if found else None

    @property
    def session_cluster(self) -> str | None:
        """The session cluster of a ``FlinkSessionJob``, or None for an application."""
        cluster = self.spec.get("deploymentName")
        return None if cluster is None else str(cluster)

    @property
    def _engine(self) -> str | None:
        return self.session_cluster if self.kind == "FlinkSessionJob" else self.flink_version

    @property
    def needs_sql_driver(self) -> bool:
        """True if Flink's own ``SqlDriver`` runs the script. Flink 1.x has no ``SqlDriver``."""
        return (self.spec.get("job") or {}).get("entryClass") == DRIVER

    def differing(self, spec: Mapping[str, Any], *, of_job: bool = False) -> str:
        """Text about engine fields (with ``of_job``, also the program) that differ from this manifest, or ""."""
        engine = (_ENGINE, spec, self.spec)
        runner = (("jarURI", "entryClass"), spec.get("job") or {}, self.spec.get("job") or {})
        found = [
            f"{key} is {there.get(key)!r} in the resource but {here[key]!r} in the manifest"
            for keys, there, here in (engine, *([runner] if of_job else []))
            for key in keys
            if key in here and there.get(key) != here[key]
        ]
        return ", ".join(found)

    def with_script(self, file: str, text: str, base: Mapping[str, Any], *, secret: bool) -> dict[str, Any]:
        spec: dict[str, Any] = copy.deepcopy(dict(base))
        spec |= {key: self.spec[key] for key in _ENGINE if key in self.spec}
        job = {**(spec.get("job") or {}), "args": self._filled(text)}
        for key in ("entryClass", "jarURI"):
            if key in (self.spec.get("job") or {}):
                job[key] = self.spec["job"][key]
        if sum(len(arg.encode()) for arg in job["args"]) > _LARGEST_BYTES:
            raise ScriptRefused(
                f"the script has more than {_LARGEST_BYTES // 1000} kB, but the resource stores it several times. "
                "Pass the script as a file, with {script_uri} in the manifest of a FlinkDeployment"
            )
        spec["job"] = job
        if self.mounts:
            if (size := sum(len(each.encode()) for each in self.files(text).values())) > _LARGEST_FILE_BYTES:
                raise ScriptRefused(
                    f"the script's file has {size} bytes, but a ConfigMap or Secret can contain at most "
                    f"{_LARGEST_FILE_BYTES} (1 MiB). Split the script, or move its longest texts into the image"
                    + (
                        " ({script_uri} requires less than half the space of {statements_uri})"
                        if self._reads_statements
                        else ""
                    )
                )
            spec["podTemplate"] = _mounting(spec.get("podTemplate") or {}, file, secret=secret)
        return spec

    def _filled(self, text: str) -> list[str]:
        values = {
            "{script}": lambda: text,
            "{script_base64}": lambda: base64.b64encode(text.encode()).decode(),
            "{statements}": lambda: encode_script(text),
            "{script_path}": lambda: f"{_MOUNT}/{SCRIPT_FILE}",
            "{script_uri}": lambda: f"file://{_MOUNT}/{SCRIPT_FILE}",
            "{statements_path}": lambda: f"{_MOUNT}/{_STATEMENTS_FILE}",
            "{statements_uri}": lambda: f"file://{_MOUNT}/{_STATEMENTS_FILE}",
        }
        found = []
        for arg in self.args:
            placeholder = _placeholder_of(arg)
            found.append(arg if placeholder is None else arg.replace(placeholder, values[placeholder]()))
        return found

    def files(self, text: str) -> dict[str, str]:
        """The mounted files of a script: the script, and its statements if this package's runner reads them."""
        if not self.mounts:
            return {}
        return {SCRIPT_FILE: text, **({_STATEMENTS_FILE: encode_script(text)} if self._reads_statements else {})}

    def script_of(self, args: Iterable[str]) -> str | None:
        """The script in a resource's arguments, or None if they contain no script or do not fit the manifest."""
        passed = tuple(args)
        if len(passed) != len(self.args):
            return None
        for template, arg in zip(self.args, passed, strict=True):
            placeholder = _placeholder_of(template)
            if placeholder is None:
                if template != arg:
                    return None
                continue
            before, _, after = template.partition(placeholder)
            if not (arg.startswith(before) and arg.endswith(after)) or placeholder not in (
                "{script}",
                "{script_base64}",
            ):
                return None
            found = arg[len(before) : len(arg) - len(after)]
            return found if placeholder == "{script}" else _text_of(found)
        return None

    def document(self, name: str, spec: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
        merged = {**self.metadata, **metadata, "name": name}
        for key in ("labels", "annotations"):
            merged[key] = {**(self.metadata.get(key) or {}), **(metadata.get(key) or {})}
        outer = {OUTER: dict(self.outer)} if self.outer else {}
        return {"apiVersion": API_VERSION, "kind": self.kind, "metadata": merged, "spec": dict(spec), **outer}


def _placeholder_of(arg: str) -> str | None:
    return next((each for each in _PLACEHOLDERS if each in arg), None)


def require_name(name: str) -> str:
    """Check a resource name. Raises ScriptRefused if Kubernetes does not accept the name."""
    if not _NAME.fullmatch(name):
        raise ScriptRefused(
            f"{name!r} is not a valid name for Flink's Kubernetes resources. Use a deployment name with at most 45 "
            "lower-case letters, digits and '-'"
        )
    return name


def _mounting(template: Mapping[str, Any], file: str, *, secret: bool) -> dict[str, Any]:
    found: dict[str, Any] = copy.deepcopy(dict(template))
    pod = found.setdefault("spec", {})
    source = {"secret": {"secretName": file}} if secret else {"configMap": {"name": file}}
    others = [each for each in pod.get("volumes") or () if each.get("name") != _VOLUME]
    pod["volumes"] = [*others, {"name": _VOLUME, **source}]
    containers = pod.setdefault("containers", [])
    main = next((each for each in containers if each.get("name") == _CONTAINER), None)
    if main is None:
        main = {"name": _CONTAINER}
        containers.append(main)
    mounts = [each for each in main.get("volumeMounts") or () if each.get("name") != _VOLUME]
    main["volumeMounts"] = [*mounts, {"name": _VOLUME, "mountPath": _MOUNT, "readOnly": True}]
    return found


def mounted_file(spec: Mapping[str, Any]) -> str | None:
    """ConfigMap or Secret from which a spec mounts its script (``configmaps/NAME``), or None."""
    volumes = ((spec.get("podTemplate") or {}).get("spec") or {}).get("volumes") or ()
    ours: Mapping[str, Any] = next((each for each in volumes if each.get("name") == _VOLUME), {})
    if found := (ours.get("configMap") or {}).get("name"):
        return f"configmaps/{found}"
    found = (ours.get("secret") or {}).get("secretName")
    return f"secrets/{found}" if found else None


def _text_of(encoded: str) -> str | None:
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
