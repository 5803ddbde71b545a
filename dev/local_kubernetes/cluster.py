"""A local Kubernetes without nodes: etcd, API server and, on request, controllers and an operator.

It stands beside :class:`~airflow_flinkcompat.local_flink.LocalFlink`: child processes on loopback that never outlive
the process that started them. What would run in a pod runs elsewhere: the session cluster of
:mod:`dev.local_kubernetes.rigs` is a LocalFlink, and pods are processes of
:mod:`dev.local_kubernetes.kubelet`.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
import trustme
import yaml
from kubernetes import client, config

from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.local_flink.processes import LOOPBACK, Child, choose_ports, find_java, spawn, stop_all
from dev.local_kubernetes import flink_operator
from dev.local_kubernetes.binary import control_plane

NAMESPACE = "default"
GROUP, GROUP_VERSION = "flink.apache.org", "v1beta1"
# Controllers for Flink's native mode: pods of Deployments, and the deletion of dependents.
_CONTROLLERS = ("deployment-controller", "replicaset-controller", "garbage-collector-controller")
_OPERATOR_OPTIONS = {
    # Tests wait for the operator, so it checks more often than by default (15 s to a minute).
    "kubernetes.operator.reconcile.interval": "2 s",
    "kubernetes.operator.observer.progress-check.interval": "1 s",
    "kubernetes.operator.observer.rest-ready.delay": "1 s",
    "kubernetes.operator.resource.cleanup.timeout": "60 s",
    # By default, the sixth reconciliation of a resource within 15 s is delayed.
    "kubernetes.operator.rate-limiter.limit": "1000",
    "kubernetes.operator.health.probe.enabled": "false",
    # From 1.15 on, the operator fetches jars only by https, unless it is configured otherwise.
    "kubernetes.operator.user.artifacts.allowed-schemes": "file;http;https",
}
# Who wrote what into a resource, and when: two writers of one status are told by nothing else.
_AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  verbs: [create, update, patch, delete]
  resources: [{group: flink.apache.org}]
- level: None
"""
CONSOLE_LOG = """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
appender.console.name = console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c{1} %X{resource.name} %m%n
"""
"""Log4j configuration for standard output; the operator adds the resource's name to each line."""
_OPERATOR_READY = re.compile(r"'flinksessionjobcontroller' controller started", re.IGNORECASE)


class LocalKubernetesError(Exception):
    """A component of the local Kubernetes did not start, or died; the message names its log."""


class LocalKube:
    """etcd and an API server on loopback, for as long as the ``with`` block lasts.

    Args:
        work_dir: Folder for certificates, data and logs, which stay there.
        controllers: Also start the controllers of Deployments, ReplicaSets and garbage, for application clusters.
        crds: The release of the operator whose CRDs are installed; None: none are.
        ready_timeout: Seconds that each part may take until it answers.
    """

    def __init__(
        self,
        work_dir: Path | str,
        *,
        controllers: bool = False,
        crds: str | None = flink_operator.VERSION,
        ready_timeout: float = 120.0,
    ) -> None:
        self.work_dir = Path(work_dir).resolve()
        self.logs = self.work_dir / "log"
        self.kubeconfig = self.work_dir / "kubeconfig"
        self.ca_file = self.work_dir / "certs" / "ca.pem"
        self.token = secrets.token_hex(16)
        self.url = ""
        self._controllers = controllers
        self._crds = crds
        self._ready_timeout = ready_timeout
        self._children: tuple[Child, ...] = ()
        self._operator: Child | None = None
        self._api: client.ApiClient | None = None

    def __enter__(self) -> LocalKube:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def api(self) -> client.ApiClient:
        """The Python client's own way to the API server, as the administrator."""
        if self._api is None:
            raise LocalKubernetesError("the API server was not started: use the LocalKube in a with block")
        return self._api

    def start(self) -> None:
        """Start all components and wait until they answer; after a failure, nothing keeps running."""
        binary = str(control_plane())
        wanted = ("etcd", "etcd's peers", "the API server", "the controller manager")
        etcd, peers, secure, manager = choose_ports(dict.fromkeys(wanted)).values()
        for folder in ("certs", "log", "pids", "etcd"):
            (self.work_dir / folder).mkdir(parents=True, exist_ok=True)
        self.url = f"https://{LOOPBACK}:{secure}"
        self._write_credentials()
        try:
            self._start("etcd", [binary, "etcd", *_etcd_flags(self.work_dir / "etcd", etcd, peers)])
            self._start("kube-apiserver", [binary, "kube-apiserver", *self._apiserver_flags(etcd, secure)])
            self._wait_for("the API server", self._missing)
            self._api = config.new_client_from_config(str(self.kubeconfig))
            if self._controllers:
                flags = self._controller_flags(manager)
                self._start("kube-controller-manager", [binary, "kube-controller-manager", *flags])
            if self._crds:
                self.install_crds(self._crds)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything: TERM, then KILL. Does nothing if nothing runs."""
        operator, self._operator = self._operator, None
        children, self._children = self._children, ()
        # The operator ends first, or it would log errors about the missing API server.
        stop_all([operator] if operator else [])
        stop_all(children[::-1])
        if self._api is not None:
            self._api.close()
            self._api = None

    def check(self) -> None:
        """Raise LocalKubernetesError, with the last log lines, if a component died."""
        for child in (*self._children, *([self._operator] if self._operator else [])):
            if not child.running:
                raise LocalKubernetesError(
                    f"the {child.name} of the local Kubernetes ended with exit code {child.guard.returncode}; "
                    f"its last words (more in {self.logs}):\n{child.log_tail() or '(none)'}"
                )

    def install_crds(self, version: str) -> None:
        """Install the CRDs of an operator release, or replace those of another release."""
        extensions = client.ApiextensionsV1Api(self.api)
        names = []
        for body in flink_operator.custom_resource_definitions(version):
            names.append(name := body["metadata"]["name"])
            try:
                extensions.create_custom_resource_definition(body)
            except client.ApiException as error:
                if error.status != 409:
                    raise
                there = extensions.read_custom_resource_definition(name)
                body["metadata"]["resourceVersion"] = there.metadata.resource_version
                extensions.replace_custom_resource_definition(name, body)
        self._wait_for(f"the CRDs of {version}", lambda: self._not_served(extensions, names))

    def start_operator(self, options: Mapping[str, str] | None = None, version: str = flink_operator.VERSION) -> None:
        """Start Flink's operator, which watches one namespace, and wait until its controllers run."""
        if self._operator and self._operator.running:
            raise LocalKubernetesError("the operator runs already")
        jars = os.pathsep.join(map(str, flink_operator.class_path(version)))
        folder = self.work_dir / "operator"
        conf, plugins = folder / "conf", folder / "plugins"
        for each in (conf, plugins):
            each.mkdir(parents=True, exist_ok=True)
        artifacts = {"kubernetes.operator.user.artifacts.base.dir": str(folder / "artifacts")}
        lines = (f"{key}: {value}\n" for key, value in {**_OPERATOR_OPTIONS, **artifacts, **(options or {})}.items())
        (conf / "flink-conf.yaml").write_text("".join(lines), encoding="utf-8")
        (conf / "log4j2.properties").write_text(CONSOLE_LOG, encoding="utf-8")
        environment = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "FLINK_CONF_DIR": str(conf),
            "FLINK_PLUGINS_DIR": str(plugins),
            "OPERATOR_NAMESPACE": NAMESPACE,
            "OPERATOR_NAME": "flink-kubernetes-operator",
            "HOSTNAME": "operator",
            "WATCH_NAMESPACES": NAMESPACE,
        }
        # With this variable, the operator would use its pod's credentials, and JobManagers behind Services.
        environment.pop("KUBERNETES_SERVICE_HOST", None)
        log = self.logs / "operator.out"
        log.unlink(missing_ok=True)  # what an earlier one said would be taken for this one's
        java = [str(find_java()), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        logging = f"-Dlog4j.configurationFile={(conf / 'log4j2.properties').as_uri()}"
        command = [*java, logging, "-cp", jars, flink_operator.MAIN_CLASS]
        self._operator = self._spawn("operator", command, environment)
        self._wait_for("the operator", lambda: "" if _OPERATOR_READY.search(_text(log)) else "it starts")

    def kill_operator(self) -> None:
        """End the operator with SIGKILL, like a node that dies."""
        operator, self._operator = self._operator, None
        if operator is None or (pid := operator.pid) is None:
            raise LocalKubernetesError("no operator runs")
        os.kill(pid, signal.SIGKILL)
        stop_all([operator])

    def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create a custom resource of Flink's; unknown fields are refused. Raises ApiException."""
        return self._call("create", body["kind"], dict(body), field_validation="Strict")

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """A custom resource of Flink's, of a kind such as ``FlinkSessionJob``. Raises ApiException."""
        return self._call("get", kind, name)

    def all(self, kind: str) -> list[dict[str, Any]]:
        """Every custom resource of a kind. Raises ApiException."""
        found: list[dict[str, Any]] = self._call("list", kind)["items"]
        return found

    def patch(self, kind: str, name: str, change: Mapping[str, Any]) -> dict[str, Any]:
        """Merge a change into a custom resource; unknown fields are refused. Raises ApiException."""
        return self._call("patch", kind, name, dict(change), field_validation="Strict")

    def _call(self, verb: str, kind: str, *arguments: Any, **options: Any) -> dict[str, Any]:
        call = getattr(self._custom(), f"{verb}_namespaced_custom_object")
        answer: dict[str, Any] = call(GROUP, GROUP_VERSION, NAMESPACE, f"{kind.lower()}s", *arguments, **options)
        return answer

    def delete(self, kind: str, name: str, timeout: float = 60.0) -> None:
        """Delete a custom resource and wait until it is gone. Raises ApiException, LocalKubernetesError."""
        self._call("delete", kind, name)

        def there() -> str:
            try:
                return f"it is still there: {json.dumps(self.get(kind, name).get('status'))[:500]}"
            except client.ApiException as error:
                if error.status == 404:
                    return ""
                raise

        self._wait_for(f"the end of {kind} {name}", there, timeout)

    def wait(
        self,
        kind: str,
        name: str,
        done: Callable[[dict[str, Any]], bool],
        what: str,
        timeout: float = 120.0,
        settle: float = 1.0,
    ) -> dict[str, Any]:
        """Read a custom resource until ``done`` says so of it, and return it.

        What is seen has to last for ``settle`` seconds: the operator writes each status up to three times, and where
        the resource is changed in between, it forgets what it has just done.
        """
        seen: list[tuple[float, str]] = [(0.0, "")]

        def look() -> dict[str, Any]:
            self.check()
            return self.get(kind, name)

        def lasts(resource: dict[str, Any]) -> bool:
            status = json.dumps(resource.get("status"), sort_keys=True) if done(resource) else ""
            if status != seen[-1][1]:
                seen.append((time.monotonic(), status))
            return bool(status) and time.monotonic() - seen[-1][0] >= settle

        try:
            return poll(look, lambda resource: not lasts(resource), timeout=timeout)
        except Overdue as overdue:
            status = json.dumps(overdue.last.get("status"), indent=1)
            raise LocalKubernetesError(
                f"{kind} {name} is not {what} after {timeout:.0f} s (logs in {self.logs}):\n{status}"
            ) from None

    def _custom(self) -> client.CustomObjectsApi:
        return client.CustomObjectsApi(self.api)

    def _write_credentials(self) -> None:
        authority = trustme.CA()
        server = authority.issue_cert(LOOPBACK, "localhost")
        authority.cert_pem.write_to_path(self.ca_file)
        server.cert_chain_pems[0].write_to_path(self.ca_file.with_name("server.pem"))
        server.private_key_pem.write_to_path(self.ca_file.with_name("server.key"))
        (self.work_dir / "audit.yaml").write_text(_AUDIT_POLICY, encoding="utf-8")
        tokens = self.work_dir / "tokens.csv"
        tokens.write_text(f"{self.token},admin,1,system:masters\n", encoding="ascii")
        cluster = {"server": self.url, "certificate-authority": str(self.ca_file)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": "admin", "namespace": NAMESPACE}}],
            "current-context": "local",
        }
        self.kubeconfig.write_text(yaml.safe_dump(content), encoding="utf-8")
        for secret in (tokens, self.kubeconfig, self.ca_file.with_name("server.key")):
            secret.chmod(0o600)

    def _apiserver_flags(self, etcd: int, port: int) -> list[str]:
        certs = self.ca_file.parent
        return [
            f"--etcd-servers=http://{LOOPBACK}:{etcd}",
            f"--secure-port={port}",
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            f"--tls-cert-file={certs / 'server.pem'}",
            f"--tls-private-key-file={certs / 'server.key'}",
            f"--token-auth-file={self.work_dir / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={certs / 'server.key'}",
            f"--service-account-signing-key-file={certs / 'server.key'}",
            # No controller creates tokens for service accounts here, so pods that need one would be refused.
            "--disable-admission-plugins=ServiceAccount",
            # The Service "kubernetes" must not have a loopback address.
            "--endpoint-reconciler-type=none",
            f"--audit-policy-file={self.work_dir / 'audit.yaml'}",
            f"--audit-log-path={self.logs / 'audit.log'}",
            "--enable-priority-and-fairness=false",
            "--profiling=false",
        ]

    def _controller_flags(self, port: int) -> list[str]:
        return [
            *(f"--{flag}={self.kubeconfig}" for flag in _KUBECONFIG_FLAGS),
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            f"--cert-dir={self.work_dir / 'certs' / 'controllers'}",
            f"--controllers={','.join(_CONTROLLERS)}",
            "--leader-elect=false",
            "--use-service-account-credentials=false",
        ]

    def _start(self, name: str, command: Sequence[str]) -> None:
        self._children += (self._spawn(name, command, os.environ),)

    def _spawn(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> Child:
        output = self.logs / f"{name}.out"
        pid_file = self.work_dir / "pids" / name
        # Everything is logged to the output, because there is no separate log file.
        log = output.with_suffix(".log")
        return spawn(name, command, output=output, log=log, pid_file=pid_file, environment=environment)

    def _wait_for(self, what: str, missing: Callable[[], str], timeout: float | None = None) -> None:
        """Wait until the API server is ready. Raises LocalKubernetesError."""

        def look() -> str:
            self.check()
            return missing()

        limit = timeout or self._ready_timeout
        try:
            poll(look, bool, timeout=limit)
        except Overdue as overdue:
            tails = "\n".join(f"{child.name}:\n{child.log_tail()}" for child in self._children)
            raise LocalKubernetesError(
                f"{what}: not there after {limit:.0f} s: {overdue.last} (logs in {self.logs})\n{tails}"
            ) from None

    def _missing(self) -> str:
        """The API server's own reason for not being ready; "" if it is ready."""
        trust = ssl.create_default_context(cafile=str(self.ca_file))
        try:
            # Ignore the environment's proxy settings, because loopback is never behind a proxy.
            with httpx.Client(verify=trust, trust_env=False, headers={"Authorization": f"Bearer {self.token}"}) as web:
                ready = web.get(f"{self.url}/readyz")
                there = web.get(f"{self.url}/api/v1/namespaces/{NAMESPACE}")
        except httpx.HTTPError as error:
            return f"no answer yet ({error})"
        if ready.status_code != 200:
            return ready.text
        return "" if there.status_code == 200 else f"the namespace {NAMESPACE} is not made yet"

    def _not_served(self, extensions: client.ApiextensionsV1Api, names: Sequence[str]) -> str:
        for name in names:
            conditions = extensions.read_custom_resource_definition(name).status.conditions or ()
            if not any(each.type == "Established" and each.status == "True" for each in conditions):
                return f"{name} is not established"
        # The API server serves the new group only a moment later.
        try:
            served = {each.name for each in self._custom().get_api_resources(GROUP, GROUP_VERSION).resources}
        except client.ApiException as error:
            if error.status != 404:
                raise
            return f"{GROUP}/{GROUP_VERSION} is not served"
        return next((f"{name} is not served" for name in names if name.partition(".")[0] not in served), "")


_KUBECONFIG_FLAGS = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")


def _etcd_flags(data: Path, clients: int, peers: int) -> list[str]:
    client_url, peer_url = f"http://{LOOPBACK}:{clients}", f"http://{LOOPBACK}:{peers}"
    return [
        "--name=local",
        f"--data-dir={data}",
        f"--listen-client-urls={client_url}",
        f"--advertise-client-urls={client_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=local={peer_url}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
