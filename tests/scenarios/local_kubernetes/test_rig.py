"""The local Kubernetes: Flink's real operator takes session jobs and application clusters through their lives on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from kubernetes import client

from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.targets.jar_run import encode_statements
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.local_flink.processes import choose_ports
from dev.local_kubernetes.cluster import NAMESPACE, LocalKube, LocalKubernetesError
from dev.local_kubernetes.kubelet import ProcessKubelet
from dev.local_kubernetes.resources import (
    application,
    arguments,
    job_id,
    job_spec,
    mounted_script,
    restored_from,
    runs,
    savepoint_of,
    session_job,
    statements,
    stopped,
    suspended,
)
from dev.local_kubernetes.rigs import create_session
from dev.services.csv_job import Files, wait_for
from tests.scenarios.local_kubernetes.service_proxy import behind_service

# Where nothing is built yet, the first test waits for the build, too.
pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.kubernetes, pytest.mark.timeout(3600)]

FIRST = 'ann,1,"2026-01-01 00:00:00"'
SECOND = 'ann,7,"2026-01-01 00:01:00"'


@pytest.fixture(scope="class")
def session_kube(session_flink: LocalFlink, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKube]:
    with LocalKube(tmp_path_factory.mktemp("kube")) as kube:
        kube.start_operator()
        create_session(kube, session_flink)
        yield kube


@pytest.fixture(scope="class")
def application_kube(kubernetes_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKube]:
    with LocalKube(tmp_path_factory.mktemp("kube"), controllers=True) as kube:
        kube.start_operator()
        yield kube


@pytest.fixture(scope="class")
def kubelet(application_kube: LocalKube, flink_1_20: Path, runner_jar_path: Path) -> Iterator[ProcessKubelet]:
    images = {"/opt/flink/usrlib/runner.jar": runner_jar_path}
    with ProcessKubelet(application_kube, flink_1_20, images) as kubelet:
        yield kubelet


class TestSessionJob:
    """A FlinkSessionJob on a LocalFlink."""

    @pytest.fixture
    def jobmanager(self, session_flink: LocalFlink) -> Iterator[JobManager]:
        with JobManager(session_flink.jobmanager_url) as jobmanager:
            yield jobmanager

    def test_a_job_is_stopped_and_goes_on_though_the_operator_died(
        self, session_kube: LocalKube, jobmanager: JobManager, runner_jar_path: Path, tmp_path: Path
    ) -> None:
        name, kind, files = f"orders-{uuid.uuid4().hex[:6]}", "FlinkSessionJob", Files(tmp_path)
        files.arrive("1.csv", [("ann", 1, "00:10"), ("ann", 2, "01:10")])
        job = job_spec(arguments(statements(files)), runner_jar_path.as_uri())
        session_kube.create(session_job(name, "session", job))
        first = job_id(session_kube.wait(kind, name, runs, "RUNNING"))
        assert restored_from(jobmanager, first) is None
        wait_for(lambda: files.rows() == [FIRST], "the first window's row")

        session_kube.patch(kind, name, {"spec": {"job": {"state": "suspended", "upgradeMode": "savepoint"}}})
        savepoint = savepoint_of(session_kube.wait(kind, name, suspended, "SUSPENDED"))
        assert savepoint is not None
        session_kube.kill_operator()
        files.arrive("2.csv", [("ann", 5, "01:20"), ("ann", 7, "02:10")])
        session_kube.patch(kind, name, {"spec": {"job": {"state": "running"}}})
        session_kube.start_operator()
        again = job_id(session_kube.wait(kind, name, runs, "RUNNING again"))
        assert again != first
        assert restored_from(jobmanager, again) == savepoint
        wait_for(lambda: files.rows() == [FIRST, SECOND], "the window that the savepoint held open")
        session_kube.delete(kind, name)
        assert jobmanager.status(again).terminal  # type: ignore[union-attr]

    def test_a_field_that_the_crd_lacks_is_refused(self, session_kube: LocalKube, tmp_path: Path) -> None:
        body = session_job("wrong", "session", job_spec([], "file:///x.jar", savepointRedeployNonce=1))
        with pytest.raises(client.ApiException, match="unknown field") as refused:
            session_kube.create(body)
        assert refused.value.status in (400, 422)

    def test_the_proxy_of_the_api_server(self, session_kube: LocalKube, session_flink: LocalFlink) -> None:
        """It leads to a JobManager behind a Service, by the name of the port."""
        core, service = client.CoreV1Api(session_kube.api), "session-rest"

        def overview() -> str:
            path = (f"{service}:rest", NAMESPACE, "overview")
            answer = core.connect_get_namespaced_service_proxy_with_path(*path, _preload_content=False)
            return str(answer.data.decode())

        with pytest.raises(client.ApiException, match="not found") as nothing_behind:
            overview()
        assert nothing_behind.value.status == 404
        with behind_service(session_kube, service, int(session_flink.jobmanager_url.rpartition(":")[2])):
            assert '"flink-version":"1.20.3"' in overview()


class TestApplication:
    """A FlinkDeployment in application mode, whose pods are processes."""

    def test_an_application_is_stopped_and_goes_on(
        self, application_kube: LocalKube, kubelet: ProcessKubelet, tmp_path: Path
    ) -> None:
        """Its script lies in a ConfigMap, which the pod template mounts."""
        kind, name, files = "FlinkDeployment", "app", Files(tmp_path / "files")
        files.arrive("1.csv", [("ann", 1, "00:10"), ("ann", 2, "01:10")])
        core = client.CoreV1Api(application_kube.api)
        script = {"metadata": {"name": "app-sql"}, "data": {"script": encode_statements(statements(files))}}
        core.create_namespaced_config_map(NAMESPACE, script)
        (port,) = choose_ports({"the JobManager": None}).values()
        from_file = ["--scriptUri", "file:///opt/flink/sql/script"]
        job = job_spec(from_file, "local:///opt/flink/usrlib/runner.jar")
        application_kube.create(application(name, job, port, tmp_path, mounted_script("app-sql", "/opt/flink/sql")))
        first = job_id(application_kube.wait(kind, name, runs, "RUNNING", timeout=240))
        with JobManager(f"http://127.0.0.1:{port}") as jobmanager:
            assert restored_from(jobmanager, first) is None
        wait_for(lambda: files.rows() == [FIRST], "the first window's row")

        application_kube.patch(kind, name, {"spec": {"job": {"state": "suspended", "upgradeMode": "savepoint"}}})
        savepoint = savepoint_of(application_kube.wait(kind, name, stopped, "SUSPENDED, its JobManager gone"))
        assert savepoint is not None
        files.arrive("2.csv", [("ann", 5, "01:20"), ("ann", 7, "02:10")])
        application_kube.patch(kind, name, {"spec": {"job": {"state": "running"}}})
        again = job_id(application_kube.wait(kind, name, runs, "RUNNING again", timeout=240))
        with JobManager(f"http://127.0.0.1:{port}") as jobmanager:
            assert restored_from(jobmanager, again) == savepoint
        wait_for(lambda: files.rows() == [FIRST, SECOND], "the window that the savepoint held open")
        application_kube.delete(kind, name)
        wait_for(lambda: not core.list_namespaced_pod(NAMESPACE).items, "the end of every pod")
        kubelet.check()


class TestProcesses:
    """No process outlives its owner, and one that dies is told."""

    def test_a_part_that_dies_is_told_with_its_log(self, kubernetes_binary: Path, tmp_path: Path) -> None:
        with LocalKube(tmp_path, crds=None) as kube:
            kube.check()
            os.kill(int((tmp_path / "pids" / "etcd").read_text()), signal.SIGKILL)
            with pytest.raises(LocalKubernetesError, match=r"(?s)etcd .* ended with exit code .*log"):
                wait_for(lambda: kube.check(), "the end of etcd")

    def test_nothing_outlives_an_owner_that_is_killed(self, kubernetes_binary: Path, tmp_path: Path) -> None:
        program = (
            "import sys, time; from dev.local_kubernetes.cluster import LocalKube\n"
            f"with LocalKube({str(tmp_path)!r}) as kube: print(kube.url, flush=True); time.sleep(600)"
        )
        owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        assert owner.stdout is not None
        assert owner.stdout.readline().startswith("https://127.0.0.1:")
        parts = [psutil.Process(int(path.read_text())) for path in (tmp_path / "pids").iterdir()]
        assert len(parts) == 2
        owner.kill()
        owner.wait()
        owner.stdout.close()
        assert psutil.wait_procs(parts, timeout=30)[1] == []
