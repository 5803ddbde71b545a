"""Workspace of Realtime Compute and its access key, from a connection or the environment.

The settings contain the access key, or name a connection of type ``alibaba_cloud`` that contains it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.access import VARIABLE, settings_from_environment
from airflow_flinkcompat.deploy.flink.rest import ApiError
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.model.engine import line_of
from airflow_flinkcompat.secrets.placeholders import Placeholder

_KEYS = (
    "endpoint",
    "region",
    "workspace",
    "namespace",
    "engine_version",
    "former_engine_version",
    "deployment_target",
    "timeout",
    "access_key_id",
    "access_key_secret",
    "security_token",
)
# Environment variables from which the vendor's own tools read an access key.
_CREDENTIALS = {
    "access_key_id": "ALIBABA_CLOUD_ACCESS_KEY_ID",
    "access_key_secret": "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
    "security_token": "ALIBABA_CLOUD_SECURITY_TOKEN",
}
_ENDPOINT = re.compile(r"(?:(?P<scheme>https?)://)?(?P<host>[\w.-]+(?::\d+)?)/?")
_ENGINE_VERSION = re.compile(r"vvr-(?P<version>\d+(?:\.\d+)+)(?:-jdk\d+)?-flink-\d+\.\d+.*")


@dataclass(frozen=True)
class Credential:
    """An access key; ``token`` is set for temporary keys of the Security Token Service."""

    key_id: str
    key_secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class WorkspaceSettings:
    """A namespace of a workspace.

    ``engine_version`` is the platform's name of the VVR version for all deployments. If ``engine_version`` is None,
    each deployment keeps its version. ``former_engine_version`` is the version from which jobs move to
    ``engine_version``, or None. ``deployment_target`` is the queue in which missing deployments are created. If
    ``deployment_target`` is None, no deployments are created.
    """

    host: str
    workspace: str
    namespace: str
    credential: Credential
    scheme: str = "https"
    engine_version: str | None = None
    deployment_target: str | None = None
    timeout: float = 60.0
    place: str = "the environment"
    former_engine_version: str | None = None

    @classmethod
    def of(cls, access: Access) -> WorkspaceSettings:
        settings = _from_environment() if access.settings is None else access.settings
        read = _Reader(settings, access)
        scheme, host = read.endpoint()
        version, former = read.engine_versions()
        return cls(
            host,
            read.required("workspace", "the id of the workspace, as the console shows it"),
            read.required("namespace", "the name of the namespace, for example workspace-default"),
            read.credential(),
            scheme,
            version,
            read.text("deployment_target"),
            read.timeout(),
            access.place,
            former,
        )


def version_of(engine_version: str, place: str) -> str:
    """The version of VVR in the platform's version name: ``8.0.9`` in ``vvr-8.0.9-flink-1.17``."""
    found = _ENGINE_VERSION.fullmatch(engine_version)
    if found is None:
        raise ApiError(
            f"{place} is {engine_version!r}. Write the platform's name of the version, for example vvr-8.0.9-flink-1.17"
        )
    return found["version"]


def _from_environment() -> Mapping[str, Any]:
    found = settings_from_environment(_KEYS)
    return {**found, **{key: found[key] or os.environ.get(name) for key, name in _CREDENTIALS.items()}}


@dataclass(frozen=True)
class _Reader:
    settings: Mapping[str, Any]
    access: Access

    def text(self, key: str) -> str | None:
        return str(self.settings.get(key) or "").strip() or None

    def named(self, key: str) -> str:
        return f"{VARIABLE}{key.upper()}" if self.access.settings is None else key

    def required(self, key: str, what: str) -> str:
        found = self.text(key)
        if found is None:
            raise ApiError(f"{self.access.place}: {self.named(key)} is missing. Set {self.named(key)} to {what}")
        return found

    def endpoint(self) -> tuple[str, str]:
        region = self.text("region")
        value = self.text("endpoint") or (f"ververica.{region}.aliyuncs.com" if region else None)
        if value is None:
            raise ApiError(
                f"{self.access.place}: the endpoint is missing. Set {self.named('endpoint')} "
                f"(ververica.<region>.aliyuncs.com), or {self.named('region')} (eu-central-1)"
            )
        found = _ENDPOINT.fullmatch(value)
        if found is None:
            raise ApiError(
                f"{self.access.place}: {self.named('endpoint')} {value!r} is not an endpoint. Write "
                "ververica.<region>.aliyuncs.com"
            )
        return found["scheme"] or "https", found["host"]

    def engine_versions(self) -> tuple[str | None, str | None]:
        """The engine version, and the version from which jobs move, each None if unset."""
        version, former = self.text("engine_version"), self.text("former_engine_version")
        numbers = [
            None if name is None else line_of(version_of(name, f"{self.access.place}: {key}"))
            for key, name in (("engine_version", version), ("former_engine_version", former))
        ]
        if former is not None and (version is None or numbers[0] == numbers[1]):
            raise ApiError(
                f"{self.access.place}: {self.named('former_engine_version')} is {former}, so set "
                f"{self.named('engine_version')} to the other version to which jobs move"
            )
        return version, former

    def timeout(self) -> float:
        value = self.text("timeout")
        try:
            seconds = 60.0 if value is None else float(value)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < float("inf"):
            raise ApiError(f"{self.access.place}: {self.named('timeout')} {value!r} is not a number of seconds")
        return seconds

    def credential(self) -> Credential:
        conn_id = self.text("alibaba_conn_id")
        if conn_id is not None:
            found = self._borrowed(conn_id)
        else:
            key_id = self.text("access_key_id") or self.text("login")
            secret = self.text("access_key_secret") or self.text("password")
            if key_id is None or secret is None:
                raise ApiError(
                    f"{self.access.place}: the access key is missing. Set {self.named('access_key_id')} and "
                    f"{self.named('access_key_secret')}"
                    + ("" if self.access.settings is None else ", login and password, or alibaba_conn_id")
                )
            found = Credential(key_id, secret, self.text("security_token"))
        for each in filter(None, (found.key_secret, found.token)):
            self.access.on_secret(each)
        return found

    def _borrowed(self, conn_id: str) -> Credential:
        """The access key in a connection of type ``alibaba_cloud``, from its hook or its extras."""
        if self.access.hook is not None:
            try:
                hook = self.access.hook(conn_id)
            except Exception:  # without the Alibaba provider, Airflow has no hook of this type
                hook = None
            if hasattr(hook, "get_access_key_credential"):
                try:
                    key_id, secret = hook.get_access_key_credential()
                except ValueError as error:  # the error message names the missing part of the access key
                    raise ApiError(f"{self.access.place}: the connection {conn_id!r}: {error}") from None
                return Credential(str(key_id), str(secret))
        if self.access.lookup is None:
            raise ApiError(
                f"{self.access.place}: alibaba_conn_id {conn_id!r} cannot be used outside Airflow. Set "
                f"{self.named('access_key_id')} and {self.named('access_key_secret')}"
            )
        try:
            return Credential(
                self.access.lookup(Placeholder(conn_id, "extra.access_key_id")),
                self.access.lookup(Placeholder(conn_id, "extra.access_key_secret")),
            )
        except DeployError:
            raise
        except Exception as error:  # Airflow's own error, which names the missing part of the connection
            raise ApiError(f"{self.access.place}: alibaba_conn_id: {error}") from None
