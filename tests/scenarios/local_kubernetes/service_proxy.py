"""Puts a JobManager of this machine behind a Service, so that the API server's own proxy leads to it.

The API server refuses a loopback address behind a Service and sends nothing to one. So a forwarder listens on an
address of this machine that is none, and a pod that nobody runs has that address, because the proxy wants a pod.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseRequestHandler, ThreadingTCPServer

from kubernetes import client

from airflow_flinkcompat.local_flink.processes import LOOPBACK
from dev.local_kubernetes.cluster import NAMESPACE, LocalKube


@contextmanager
def behind_service(kube: LocalKube, service: str, local_port: int) -> Iterator[None]:
    """Have the first port of a Service lead to a port on loopback, until the context ends.

    Args:
        kube: The Kubernetes, without the controller of endpoints.
        service: A Service that is there.
        local_port: The port on loopback, of a JobManager's REST API.

    Raises:
        OSError: This machine has no address but loopback's.
    """
    core = client.CoreV1Api(kube.api)
    address = machine_address()
    with _forwarder(address, local_port) as port:
        name = f"{service}-proxied"
        container = client.V1Container(name="jobmanager", image="none")
        pod = client.V1Pod(metadata=client.V1ObjectMeta(name=name), spec=client.V1PodSpec(containers=[container]))
        core.create_namespaced_pod(NAMESPACE, pod)
        status = {"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}}
        core.patch_namespaced_pod_status(name, NAMESPACE, status, _content_type="application/merge-patch+json")
        core.create_namespaced_endpoints(NAMESPACE, endpoints(core, service, address, port, name))
        try:
            yield
        finally:
            core.delete_namespaced_endpoints(service, NAMESPACE)
            core.delete_namespaced_pod(name, NAMESPACE, grace_period_seconds=0)


def endpoints(core: client.CoreV1Api, service: str, address: str, port: int, pod: str) -> client.V1Endpoints:
    """What is behind the first port of a Service: one address of a pod."""
    first = core.read_namespaced_service(service, NAMESPACE).spec.ports[0]
    target = client.V1ObjectReference(kind="Pod", name=pod, namespace=NAMESPACE)
    subset = client.V1EndpointSubset(
        addresses=[client.V1EndpointAddress(ip=address, target_ref=target)],
        ports=[client.CoreV1EndpointPort(name=first.name, port=port)],
    )
    return client.V1Endpoints(metadata=client.V1ObjectMeta(name=service), subsets=[subset])


def machine_address() -> str:
    """An address of this machine that is not loopback's. Raises OSError: there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # nothing is sent: it only asks for the way there
        return str(probe.getsockname()[0])


@contextmanager
def _forwarder(address: str, local_port: int) -> Iterator[int]:
    class Forward(BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection((LOOPBACK, local_port)) as inner:
                back = threading.Thread(target=_copy, args=(inner, self.request))
                back.start()
                _copy(self.request, inner)
                back.join()

    with ThreadingTCPServer((address, 0), Forward) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):  # either side may close
        while data := source.recv(65_536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
