"""Calls to the API server for Flink's custom resources, with strict validation of each write."""

from __future__ import annotations

import base64
import json
import logging
import ssl
from collections.abc import Generator, Mapping
from functools import partial
from typing import Any

import httpx
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.rest import ApiError, Endpoint
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.kubernetes.blue_green import (
    KIND,
    color_names,
    left_over,
    presented,
    wrapped,
)

GROUP, VERSION = "flink.apache.org", "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"
PLURALS = {
    "FlinkSessionJob": "flinksessionjobs",
    "FlinkDeployment": "flinkdeployments",
    KIND: "flinkbluegreendeployments",
}
_COLOR = "FlinkDeployment"
_MANAGER = "flinkcompat"
_STRICT = {"field_manager": _MANAGER, "field_validation": "Strict"}
_NOT_FOUND, _CONFLICT = 404, 409
_TIMEOUT_SECONDS = 30.0


class Conflict(ApiError):
    """A resource has changed since its last read, or a resource to create already exists."""


def connect(access: Access) -> client.ApiClient:
    """Create a client of the API server. Raises DeployError."""
    # At level DEBUG, the client logs request bodies, including the content of Secrets.
    logging.getLogger("kubernetes.client.rest").setLevel(logging.INFO)
    conn_id = (access.settings or {}).get("kubernetes_conn_id")
    try:
        if conn_id and access.hook is None:
            raise DeployError(f"{access.place}: kubernetes_conn_id {conn_id!r} can be used only in Airflow")
        if conn_id and access.hook is not None:
            return access.hook(str(conn_id)).get_conn()
        found = client.Configuration()
        config.load_config(client_configuration=found)
        return client.ApiClient(found)
    except DeployError:
        raise
    except ConfigException as error:
        raise DeployError(
            f"{access.place} sets no kubernetes_conn_id, and no cluster is configured on this machine: {error}. Set "
            "kubernetes_conn_id to an Airflow connection of type kubernetes, or set KUBECONFIG"
        ) from None
    except Exception as error:  # a connection's settings or a cloud's login can raise any error
        raise DeployError(f"{access.place}: connection {conn_id!r} cannot be used: {error}") from None


class KubernetesApi:
    """Flink's custom resources, ConfigMaps and Secrets in a namespace. Methods raise ApiError.

    A ``FlinkBlueGreenDeployment`` is read and written as the ``FlinkDeployment`` of the color in force.
    """

    def __init__(self, api_client: client.ApiClient, namespace: str) -> None:
        self._client = api_client
        self._custom = client.CustomObjectsApi(api_client)
        self._core = client.CoreV1Api(api_client)
        self.namespace = namespace

    @property
    def place(self) -> str:
        return str(self._client.configuration.host)

    def close(self) -> None:
        self._client.close()

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        """The resource with this name, or None."""
        found = self._found(kind, name)
        if kind != KIND:
            return found
        colors = [each for each in (self._found(_COLOR, each) for each in color_names(name)) if each is not None]
        return left_over(name, colors) if found is None else presented(found, colors)

    def _found(self, kind: str, name: str) -> dict[str, Any] | None:
        try:
            return self._flink("get", kind, name=name)
        except ApiError as error:
            if error.status == _NOT_FOUND and name in error.reason:  # a 404 without the name: no operator
                return None
            raise

    def all(self, kind: str, label: str | None = None) -> list[dict[str, Any]]:
        """All resources of a kind, or only resources with ``label`` (``key=value``)."""
        found: list[dict[str, Any]] = self._flink("list", kind, **({"label_selector": label} if label else {}))["items"]
        if kind != KIND or not found:
            return found
        colors = {each["metadata"]["name"]: each for each in self._flink("list", _COLOR)["items"]}
        names = (color_names(each["metadata"]["name"]) for each in found)
        return [
            presented(each, [colors[name] for name in own if name in colors])
            for each, own in zip(found, names, strict=True)
        ]

    def create(self, body: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """Create a resource. Raises Conflict if a resource of this name exists."""
        kind = str(body["kind"])
        sent = wrapped(body) if kind == KIND else body
        made = self._flink("create", kind, body=sent, **_STRICT, **_dry(dry_run))
        return presented(made, ()) if kind == KIND else made

    def patch(self, kind: str, name: str, patch: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """Merge a patch into a resource. Raises Conflict if the ``metadata.resourceVersion`` is outdated."""
        sent = wrapped(patch) if kind == KIND else patch
        made = self._flink("patch", kind, name=name, body=sent, **_STRICT, **_dry(dry_run))
        return presented(made, ()) if kind == KIND else made

    def delete(self, kind: str, name: str, read: Mapping[str, Any]) -> None:
        """Request the deletion of a resource, which the operator executes later."""
        asread = client.V1Preconditions(uid=read["uid"], resource_version=read["resourceVersion"])
        try:
            self._flink("delete", kind, name=name, body=client.V1DeleteOptions(preconditions=asread))
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise

    def keep(
        self,
        name: str,
        files: Mapping[str, str],
        labels: Mapping[str, str],
        *,
        secret: bool = False,
        dry_run: bool = False,
    ) -> str:
        """Store files in an immutable ConfigMap or Secret. If an equal ConfigMap exists, it is kept."""
        body: dict[str, Any] = {"metadata": {"name": name, "labels": dict(labels)}, "immutable": True}
        if secret:
            body["data"] = {key: base64.b64encode(text.encode()).decode() for key, text in files.items()}
        else:
            body["data"] = dict(files)
        create = self._core.create_namespaced_secret if secret else self._core.create_namespaced_config_map
        document = f"{'secrets' if secret else 'configmaps'}/{name}"
        try:
            self._call(create, self.namespace, body, **_dry(dry_run))
        except Conflict:
            if dry_run or (not secret and self._files_of(name) == body["data"]):
                return document
            self.drop(document)
            self._call(create, self.namespace, body)
        return document

    def file(self, name: str, key: str) -> str | None:
        text = self._files_of(name).get(key)
        return None if text is None else str(text)

    def _files_of(self, name: str) -> Mapping[str, str]:
        try:
            found = self._call(self._core.read_namespaced_config_map, name, self.namespace)
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
            return {}
        return found.data or {}

    def put_entry(self, secret: str, key: str, text: str | None, *, dry_run: bool = False) -> None:
        """Set an entry of a shared Secret, or remove it if ``text`` is None."""
        data = {key: None if text is None else base64.b64encode(text.encode()).decode()}
        body = {"metadata": {"name": secret}, "data": data}
        patch = partial(
            self._call, self._core.patch_namespaced_secret, secret, self.namespace, {"data": data}, **_dry(dry_run)
        )
        try:
            patch()
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
            if text is None:
                return
            try:
                self._call(self._core.create_namespaced_secret, self.namespace, body, **_dry(dry_run))
            except Conflict:  # a different deployment created the Secret first
                patch()

    def entry(self, secret: str, key: str) -> str | None:
        """An entry of a shared Secret, or None."""
        try:
            found = self._call(self._core.read_namespaced_secret, secret, self.namespace)
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
            return None
        encoded = (found.data or {}).get(key)
        return None if encoded is None else base64.b64decode(encoded).decode()

    def drop(self, document: str) -> None:
        """Delete a ConfigMap or Secret that :meth:`keep` created, if it still exists."""
        plural, _, name = document.partition("/")
        secret = plural == "secrets"
        delete = self._core.delete_namespaced_secret if secret else self._core.delete_namespaced_config_map
        try:
            self._call(delete, name, self.namespace)
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise

    def service(self, name: str, port: str) -> Endpoint:
        """The endpoint of a service through the API server's proxy, with the credentials of this client."""
        settings = self._client.configuration
        url = f"{settings.host}/api/v1/namespaces/{self.namespace}/services/{name}:{port}/proxy"
        token = _token(settings)
        verify: ssl.SSLContext | bool = bool(settings.verify_ssl)
        if settings.verify_ssl and (settings.ssl_ca_cert or settings.cert_file):
            verify = ssl.create_default_context(cafile=settings.ssl_ca_cert)
        if settings.cert_file:
            context = verify if isinstance(verify, ssl.SSLContext) else _unverified()
            context.load_cert_chain(settings.cert_file, settings.key_file)
            verify = context
        return Endpoint(
            url,
            # Use this token only to mask messages. Each request sends the token that is valid at that time.
            headers={"Authorization": token} if token else {},
            auth=_Token(settings),
            verify=verify,
            timeout=_TIMEOUT_SECONDS,
            proxy=httpx.Proxy(settings.proxy) if settings.proxy else None,
        )

    def _flink(self, verb: str, kind: str, **more: Any) -> dict[str, Any]:
        call = getattr(self._custom, f"{verb}_namespaced_custom_object")
        arguments = {"group": GROUP, "version": VERSION, "namespace": self.namespace, "plural": PLURALS[kind]}
        found: dict[str, Any] = self._call(call, **arguments, **more)
        return found

    def _call(self, call: Any, *arguments: Any, **more: Any) -> Any:
        try:
            return call(*arguments, **more, _request_timeout=_TIMEOUT_SECONDS)
        except ApiException as error:
            reason = _reason_of(error)
            message = f"the Kubernetes API at {self.place} answered {error.status}: {reason}"
            # The outcome of a request is unknown if the server or a proxy did not finish it.
            status = None if error.status in (0, 500, 502, 503, 504) else error.status
            raise (Conflict if status == _CONFLICT else ApiError)(message, status, reason) from None
        except HTTPError as error:
            raise ApiError(f"the Kubernetes API at {self.place} does not answer ({type(error).__name__})") from None


class _Token(httpx.Auth):
    """The bearer token, read for each request, because cloud logins and pods renew tokens."""

    def __init__(self, settings: client.Configuration) -> None:
        self._settings = settings

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if token := _token(self._settings):
            request.headers["Authorization"] = token
        yield request


def _token(settings: client.Configuration) -> str | None:
    names = ("BearerToken", "authorization")  # keys since version 36 of the client, and before version 36
    return next((str(found) for each in names if (found := settings.get_api_key_with_prefix(each))), None)


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dry_run": "All"} if dry_run else {}


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _reason_of(error: ApiException) -> str:
    """The server's message in its ``Status`` object."""
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return str(error.reason or "no reason reported")
