"""Runtime environments of applications, and the program for each runtime environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_flinkcompat.deploy.errors import DeployError

_RUNTIME = re.compile(r"FLINK-\d+_\d+")
_PROGRAM = re.compile(r"s3://(?P<bucket>[^/]+)/(?P<key>.+)")


@dataclass(frozen=True)
class Runtime:
    """A runtime environment (``FLINK-1_20``) and its program's URI; None keeps the present program."""

    name: str
    program: str | None = None

    @property
    def version(self) -> str:
        """Flink's version, such as ``1.20``."""
        return self.name.removeprefix("FLINK-").replace("_", ".")

    def differs_from(self, runtime: str, program: str | None) -> bool:
        """True if an application has a different runtime environment or program."""
        return runtime != self.name or self.program not in (None, program)

    def update_of(self, partition: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arguments of UpdateApplication that set this runtime: top level, and part of the configuration."""
        configuration = {}
        if self.program is not None:
            bucket, _, key = self.program.removeprefix("s3://").partition("/")
            place = {"BucketARNUpdate": f"arn:{partition}:s3:::{bucket}", "FileKeyUpdate": key}
            content = {"CodeContentUpdate": {"S3ContentLocationUpdate": place}}
            configuration["ApplicationCodeConfigurationUpdate"] = content
        return {"RuntimeEnvironmentUpdate": self.name}, configuration


def runtimes_of(settings: Mapping[str, Any]) -> tuple[Runtime, Runtime | None]:
    """The runtime of a connection, and the runtime from which jobs move, if any. Raises DeployError."""
    runtime = _runtime_of(settings)
    if not settings.get("former_runtime_environment"):
        if settings.get("program") or settings.get("former_program"):
            raise DeployError(
                "program and former_program replace an application's program while jobs move to another runtime. Set "
                "former_runtime_environment, or remove both"
            )
        return runtime, None
    former = _runtime_of(settings, "former_")
    if former.version == runtime.version:
        raise DeployError(f"former_runtime_environment and runtime_environment are both {runtime.name}. Remove one")
    if (former.program is None) != (runtime.program is None):
        raise DeployError("set both program and former_program, or neither: a rollback needs the former program")
    return runtime, former


def _runtime_of(settings: Mapping[str, Any], prefix: str = "") -> Runtime:
    key, program = f"{prefix}runtime_environment", settings.get(f"{prefix}program")
    runtime = str(settings.get(key) or "")
    if not _RUNTIME.fullmatch(runtime):
        raise DeployError(
            f"{key} {runtime!r} is not a Flink runtime. Set the runtime of the applications, for example FLINK-1_20"
        )
    if program and not _PROGRAM.fullmatch(str(program)):
        raise DeployError(f"{prefix}program {program!r} must have the form s3://BUCKET/KEY")
    return Runtime(runtime, str(program) if program else None)


def program_of(configuration: Mapping[str, Any]) -> str | None:
    """The URI of an application's program in S3, from the service's description."""
    code = configuration.get("ApplicationCodeConfigurationDescription", {}).get("CodeContentDescription", {})
    place = code.get("S3ApplicationCodeLocationDescription")
    return f"s3://{place['BucketARN'].rpartition(':')[2]}/{place['FileKey']}" if place else None
