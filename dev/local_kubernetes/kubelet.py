"""A kubelet that runs the pods of Flink's application clusters as JVMs on this machine.

It does what a node's kubelet does as far as Flink and its operator can tell: it binds a pod, writes its volumes, starts
its main container, reports its status, starts it again with a growing back-off where it died, and lets a pod that is
deleted end. What a container is on this machine, :mod:`dev.local_kubernetes.containers` says;
cluster DNS is a hosts file of Java's, in which every Service leads to the pods that it selects.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from kubernetes import client
from urllib3.exceptions import HTTPError

from airflow_flinkcompat.local_flink.processes import LOOPBACK, Child, spawn, stop_all
from dev.local_kubernetes.cluster import NAMESPACE, LocalKube, LocalKubernetesError
from dev.local_kubernetes.containers import CONTAINER, NODE, Container, Unsupported

_LOOK_SECONDS = 0.25
_FIRST_BACK_OFF, _LONGEST_BACK_OFF = 2.0, 60.0


@dataclass
class _Run:
    """A pod that this kubelet runs, and the process of its main container."""

    name: str
    labels: Mapping[str, str]
    address: str
    folder: Path
    child: Child | None = None
    restarts: int = 0
    start_again_at: float = 0.0
    reported: str = ""
    ended: bool = False


@dataclass
class ProcessKubelet:
    """Runs the pods of a Kubernetes as processes, for as long as the ``with`` block lasts.

    Args:
        kube: The Kubernetes, with its controllers.
        home: The Flink folder that all other images are said to hold (the one with ``lib/``).
        image_files: What else the images hold: files or folders of this machine by their path in the container.
        homes: The Flink folder of an image, by the image's name.
    """

    kube: LocalKube
    home: Path
    image_files: Mapping[str, Path] = field(default_factory=dict)
    homes: Mapping[str, Path] = field(default_factory=dict)
    _runs: dict[str, _Run] = field(default_factory=dict)
    _addresses: int = 0
    _errors: list[str] = field(default_factory=list)
    _asked: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._core = client.CoreV1Api(self.kube.api)
        self._thread = threading.Thread(target=self._loop, name="kubelet", daemon=True)

    def __enter__(self) -> ProcessKubelet:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._asked.set()
        self._thread.join(60)
        stop_all([run.child for run in self._runs.values() if run.child])

    def check(self) -> None:
        """Raise LocalKubernetesError if a pod needs an unsupported feature, or if the kubelet failed."""
        if self._errors:
            raise LocalKubernetesError(f"the kubelet of the local Kubernetes: {'; '.join(self._errors)}")

    def _loop(self) -> None:
        while not self._asked.wait(_LOOK_SECONDS):
            try:
                self._sync()
            except (client.ApiException, HTTPError, OSError) as error:
                if not self._asked.is_set():  # a conflict, or an API server that ends: the next look tells
                    self._note(f"{type(error).__name__}: {str(error)[:300]}")
            except Exception as error:
                self._errors.append(f"{type(error).__name__}: {error}")
                raise

    def _note(self, line: str) -> None:
        with (self.kube.logs / "kubelet.log").open("a", encoding="utf-8") as log:
            log.write(f"{datetime.now(UTC):%H:%M:%S} {line}\n")

    def _sync(self) -> None:
        pods = {pod.metadata.uid: pod for pod in self._core.list_namespaced_pod(NAMESPACE).items}
        for uid, pod in pods.items():
            run = self._runs.get(uid)
            if pod.metadata.deletion_timestamp is not None:
                self._end(pod, run)
            elif run is None:
                self._take(pod)
            else:
                self._keep(pod, run)
        for uid in self._runs.keys() - pods.keys():  # deleted without grace
            if self._terminated(self._runs[uid]):
                del self._runs[uid]

    def _take(self, pod: Any) -> None:
        """Bind a new pod to the node; later calls write its volumes and start its process."""
        name = pod.metadata.name
        self._addresses += 1
        folder = self.kube.work_dir / "pods" / f"{name}-{pod.metadata.uid[:8]}"
        folder.mkdir(parents=True, exist_ok=True)
        # Each pod has its own loopback address, so that two JobManagers can use Flink's default ports.
        address = f"127.0.{1 + self._addresses // 250}.{1 + self._addresses % 250}"
        self._runs[pod.metadata.uid] = _Run(name, pod.metadata.labels or {}, address, folder)
        if pod.spec.node_name is None:
            binding = {"metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": NODE}}
            # The client cannot parse the answer, which has no target.
            self._core.create_namespaced_pod_binding(name, NAMESPACE, binding, _preload_content=False)

    def _keep(self, pod: Any, run: _Run) -> None:
        """Start the pod, restart it, or report its result."""
        if run.ended:
            return
        if run.child is not None and run.child.running:
            self._report(run, "Running", {"running": {"startedAt": _now()}}, ready=True)
        elif run.child is not None:
            self._died(pod, run, run.child)
        elif time.monotonic() >= run.start_again_at:
            try:
                run.child = self._start(pod, run)
            except Unsupported as error:
                self._errors.append(f"pod {run.name}: {error}")
                waiting = {"reason": "CreateContainerError", "message": str(error)}
                self._report(run, "Pending", {"waiting": waiting}, ready=False)
                run.ended = True
            except client.ApiException as error:
                if error.status != 404:
                    raise
                waiting = {"reason": "ContainerCreating", "message": f"a volume is not there yet: {error.reason}"}
                self._report(run, "Pending", {"waiting": waiting}, ready=False)
            else:
                self._note(f"{run.name}: started at {run.address}, start {run.restarts + 1}")

    def _died(self, pod: Any, run: _Run, child: Child) -> None:
        code = child.guard.returncode
        stop_all([child])
        run.child = None
        self._note(f"{run.name}: ended with exit code {code}")
        if pod.spec.restart_policy == "Never" or (pod.spec.restart_policy == "OnFailure" and code == 0):
            run.ended = True
            phase = "Failed" if code else "Succeeded"
            self._report(run, phase, {"terminated": {"exitCode": abs(code), "finishedAt": _now()}}, ready=False)
            return
        back_off = min(_FIRST_BACK_OFF * 2**run.restarts, _LONGEST_BACK_OFF)
        run.restarts += 1
        run.start_again_at = time.monotonic() + back_off
        message = f"back-off {back_off:.0f}s restarting failed container={CONTAINER} pod={run.name}"
        waiting = {"reason": "CrashLoopBackOff", "message": message}
        self._report(run, "Running", {"waiting": waiting}, ready=False)

    def _end(self, pod: Any, run: _Run | None) -> None:
        if run is not None and not self._terminated(run):
            return
        self._runs.pop(pod.metadata.uid, None)
        try:
            self._core.delete_namespaced_pod(pod.metadata.name, NAMESPACE, grace_period_seconds=0)
        except client.ApiException as error:
            if error.status != 404:
                raise

    def _terminated(self, run: _Run) -> bool:
        """Ask the process to end; True if it has ended. Its guard kills it after a grace period."""
        if run.child is None:
            return True
        if run.child.running:
            if not run.ended:
                run.child.guard.terminate()
                run.ended = True
            return False
        stop_all([run.child])
        self._note(f"{run.name}: ended, as it was deleted")
        return True

    def _report(self, run: _Run, phase: str, state: Mapping[str, Any], *, ready: bool) -> None:
        said = f"{phase} {ready} {run.restarts} {next(iter(state))}"
        if said == run.reported:
            return
        conditions = [
            {"type": kind, "status": str(good), "lastTransitionTime": _now()}
            for kind, good in (
                ("PodScheduled", True),
                ("Initialized", True),
                ("ContainersReady", ready),
                ("Ready", ready),
            )
        ]
        container = {"name": CONTAINER, "image": "local", "imageID": "", "restartCount": run.restarts}
        status = {
            "phase": phase,
            "podIP": run.address,
            "hostIP": LOOPBACK,
            "startTime": _now(),
            "conditions": conditions,
            "containerStatuses": [{**container, "ready": ready, "started": ready, "state": dict(state)}],
        }
        # The client's default, a strategic merge, would keep the former state next to the new one.
        merge = "application/merge-patch+json"
        self._core.patch_namespaced_pod_status(run.name, NAMESPACE, {"status": status}, _content_type=merge)
        run.reported = said

    def _start(self, pod: Any, run: _Run) -> Child:
        """Write its volumes and start its main container. Raises ApiException, Unsupported."""
        self._write_hosts(run.folder / "hosts", run)
        container = Container(self._core, pod, run.folder, run.address)
        image = next((str(each.image) for each in pod.spec.containers if each.name == CONTAINER), "")
        home = self.homes.get(image, self.home)
        prepared = container.prepare(home, self.image_files, self.kube.kubeconfig)
        output = self.kube.logs / f"pod-{run.name}.out"
        return spawn(
            run.name,
            prepared.command,
            output=output,
            log=output.with_suffix(".log"),
            pid_file=self.kube.work_dir / "pids" / run.name,
            environment=prepared.environment,
        )

    def _write_hosts(self, file: Path, run: _Run) -> None:
        lines = [f"{LOOPBACK} localhost {socket.gethostname()}", f"{run.address} {run.name}"]
        for service in self._core.list_namespaced_service(NAMESPACE).items:
            selector = (service.spec.selector or {}).items()
            name = service.metadata.name
            behind = [each.address for each in self._runs.values() if selector and selector <= each.labels.items()]
            if name.endswith("-rest"):  # where the JobManager's REST API was told to listen
                behind = [LOOPBACK]
            # Use the newest JobManager: during an upgrade, the older one is about to end.
            lines += [f"{address} {name} {name}.{NAMESPACE}" for address in behind[-1:]]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
