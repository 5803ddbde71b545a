"""The local Flink: it starts, says clearly why it does not, and never outlives its owner."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from airflow_flinkcompat.local_flink import LocalFlink, LocalFlinkError, jars
from airflow_flinkcompat.local_flink.cluster import cluster_options, flink_home, gateway_jar
from airflow_flinkcompat.local_flink.processes import choose_ports, find_java, spawn, stop_all
from dev.services.csv_job import wait_for


def java_that_says(folder: Path, version: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.2-ea"])
def test_java_that_will_do(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = java_that_says(tmp_path / "jdk", version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert find_java() == java


@pytest.mark.parametrize(("version", "said"), [("11.0.2", "Java 11"), ("1.8.0_402", "Java 8"), ("25", "Java 25")])
def test_java_of_another_version(version: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java_that_says(tmp_path / "jdk", version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    with pytest.raises(
        LocalFlinkError, match=rf"is {said}\. Flink needs Java 17 or 21\. Install Java .* or set JAVA_HOME"
    ):
        find_java()


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(LocalFlinkError, match=r"no Java found on PATH\. Flink needs Java 17 or 21"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(LocalFlinkError, match="no Java found in JAVA_HOME="):
        find_java()


def test_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(LocalFlinkError, match=f"port {port} for the Gateway is in use .* choose another port"):
            choose_ports({"the JobManager": None, "the Gateway": port})


def test_free_ports_differ() -> None:
    chosen = choose_ports({str(number): None for number in range(20)})
    assert len(set(chosen.values())) == 20


def test_folder_without_flink(tmp_path: Path) -> None:
    with pytest.raises(LocalFlinkError, match=r"contains no flink-dist-\*\.jar"):
        flink_home(tmp_path)


def test_gateway_of_another_version(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "flink-dist-1.18.1.jar").touch()
    with pytest.raises(
        LocalFlinkError, match=r"is Flink 1\.18\.1, but the only pinned SQL Gateways are .*flink-sql-gateway-1\.18\.1"
    ):
        gateway_jar(tmp_path)
    (tmp_path / "opt").mkdir()
    own = tmp_path / "opt" / "flink-sql-gateway-1.18.1.jar"
    own.touch()
    assert gateway_jar(tmp_path) == own


def test_the_gateway_is_of_the_version_of_the_flink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "flink-dist-1.20.3.jar").touch()
    fetched = []
    monkeypatch.setattr(jars, "fetch_jar", lambda jar: fetched.append(jar.coordinates) or tmp_path / jar.filename)
    assert gateway_jar(tmp_path) == tmp_path / "flink-sql-gateway-1.20.3.jar"
    assert fetched == ["org.apache.flink:flink-sql-gateway:1.20.3"]


def test_everything_listens_on_loopback_only(tmp_path: Path) -> None:
    options = cluster_options(tmp_path, 1, 2, 3, 4)
    addresses = {key: value for key, value in options.items() if key.endswith(("address", "host"))}
    assert set(addresses.values()) == {"127.0.0.1"}
    assert len(addresses) == 8


def test_stubborn_child_is_killed_with_its_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that ignores TERM, under a guard that dies: the kernel ends it."""
    pid_file = tmp_path / "pid"
    script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    child = spawn(
        "stubborn",
        [sys.executable, "-c", script],
        output=tmp_path / "out",
        log=tmp_path / "log",
        pid_file=pid_file,
        environment=os.environ,
    )
    wait_for(lambda: child.pid, "the child runs")
    process = psutil.Process(child.pid)
    child.guard.kill()
    process.wait(10)
    stop_all([child])


def test_log_tail_shows_errors_and_no_secret(tmp_path: Path) -> None:
    command = "import sys; print('INFO fine'); sys.exit(\"ERROR bad option 'password' = 'hunter2hunter2'\")"
    child = spawn(
        "brief",
        [sys.executable, "-c", command],
        output=tmp_path / "out",
        log=tmp_path / "log",
        pid_file=tmp_path / "pid",
        environment=os.environ,
    )
    assert child.guard.wait(30) == 1
    assert "ERROR bad option" in child.log_tail()
    assert "fine" not in child.log_tail()
    assert "hunter2" not in child.log_tail()
    stop_all([child])


@pytest.mark.slow
def test_answers_on_both_addresses(local_flink: LocalFlink) -> None:
    with httpx.Client(trust_env=False) as client:
        assert client.get(f"{local_flink.gateway_url}/info").json()["productName"] == "Apache Flink"
        assert client.get(f"{local_flink.jobmanager_url}/overview").json()["slots-total"] == local_flink.slots
    assert sorted(local_flink.pids) == ["jobmanager", "sql-gateway", "taskmanager"]
    for pid in local_flink.pids.values():
        for connection in psutil.Process(pid).net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN:
                assert connection.laddr.ip.removeprefix("::ffff:") in ("127.0.0.1", "::1")


@pytest.mark.slow
@pytest.mark.nightly
def test_child_that_dies_is_told_with_its_last_words(tmp_path: Path) -> None:
    flink = LocalFlink(tmp_path, config={"taskmanager.memory.managed.size": "lots"})
    with pytest.raises(LocalFlinkError, match=r"(?s)the taskmanager of the local Flink ended with exit code.*lots"):
        flink.start()
    assert flink.pids == {}


def _run(work_dir: Path) -> tuple[subprocess.Popen[str], list[psutil.Process], dict[str, str]]:
    """``python -m airflow_flinkcompat.local_flink``, ready: the process, its JVMs, the printed addresses."""
    owner = subprocess.Popen(
        [sys.executable, "-m", "airflow_flinkcompat.local_flink", "--work-dir", str(work_dir), "--slots", "1"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    lines = [owner.stdout.readline() for _ in range(2)]
    addresses = dict(line.split() for line in lines)
    jvms = [psutil.Process(int(path.read_text())) for path in (work_dir / "pids").iterdir()]
    assert len(jvms) == 3
    return owner, jvms, addresses


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_jvm_outlives_its_owner(how: signal.Signals, tmp_path: Path) -> None:
    owner, jvms, addresses = _run(tmp_path)
    assert httpx.get(f"{addresses['jobmanager']}/overview", trust_env=False).json()["slots-total"] == 1
    assert httpx.get(f"{addresses['gateway']}/info", trust_env=False).status_code == 200
    owner.send_signal(how)
    code = owner.wait(30)
    assert code == (-signal.SIGKILL if how is signal.SIGKILL else 0)
    gone, alive = psutil.wait_procs(jvms, timeout=20)
    assert alive == []
    assert len(gone) == 3
    assert owner.stdout is not None
    owner.stdout.close()


@pytest.mark.slow
def test_command_line_tells_errors(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "airflow_flinkcompat.local_flink", "--work-dir", str(tmp_path)]
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        taken = subprocess.run([*command, "--rest-port", port], capture_output=True, text=True, check=False)
    assert taken.returncode == 1
    assert taken.stderr.startswith(f"error: port {port} for the JobManager's REST API is in use")
    wrong = subprocess.run([*command, "--config", "nonsense"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "--config 'nonsense' is not KEY=VALUE" in wrong.stderr
