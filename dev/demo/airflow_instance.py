"""A complete Airflow on this machine: the processes of ``airflow standalone``, on loopback.

The parts are started one by one, because ``airflow standalone`` opens its log servers on every interface. About 0.9 GB
resident; ready in about twenty seconds. For demonstrations and tests, never for production.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

import airflow_flinkcompat
from airflow_flinkcompat.local_flink.processes import LOOPBACK, Child, choose_ports, spawn, stop_all
from dev.demo.airflow_client import AirflowClient

_COMPONENTS: Mapping[str, tuple[str, ...]] = {
    "api-server": ("api-server", "--workers", "1"),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
    "triggerer": ("triggerer", "--skip-serve-logs"),
}
_HEALTHY = ("metadatabase", "scheduler", "triggerer", "dag_processor")
_READY_SECONDS = 180.0
_END_SECONDS = 30.0
_POLL_SECONDS = 0.5
_USER = "admin"
_log = logging.getLogger(__name__)


class AirflowError(Exception):
    """Airflow does not start, or one of its processes died; one readable message."""


class AirflowStandalone:
    """API server, scheduler, DAG processor and triggerer for as long as the ``with`` block lasts.

    ``home`` is AIRFLOW_HOME (database, logs, configuration; kept afterwards), ``dags`` the folder of DAG files.
    ``connections`` (id → fields as in Airflow's JSON form) and ``variables`` reach tasks by environment, so no secret
    is written to the database; ``config`` holds further ``AIRFLOW__SECTION__KEY`` settings or any other environment.
    None of the parts outlives the process that started them.
    """

    def __init__(
        self,
        home: Path | str,
        dags: Path | str,
        *,
        port: int | None = None,
        connections: Mapping[str, Mapping[str, Any]] | None = None,
        variables: Mapping[str, str] | None = None,
        config: Mapping[str, str] | None = None,
        parallelism: int = 4,
        ready_timeout: float = _READY_SECONDS,
        log: Callable[[str], None] = _log.info,
    ) -> None:
        self.home = Path(home).resolve()
        self.dags = Path(dags).resolve()
        self.url = ""
        self.user = _USER
        self.password = ""
        self._port = port
        self._extra = {
            **{f"AIRFLOW_CONN_{name.upper()}": json.dumps(fields) for name, fields in (connections or {}).items()},
            **{f"AIRFLOW_VAR_{name.upper()}": value for name, value in (variables or {}).items()},
            **(config or {}),
        }
        self._parallelism = parallelism
        self._ready_timeout = ready_timeout
        self._log = log
        self._children: tuple[Child, ...] = ()
        self._client: AirflowClient | None = None

    @property
    def client(self) -> AirflowClient:
        """The REST client, signed in as the administrator."""
        if self._client is None:
            raise AirflowError("this Airflow is not running")
        return self._client

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the running components."""
        return {child.name: pid for child in self._children if (pid := child.pid) is not None}

    def client_of(self, user: str, password: str) -> AirflowClient:
        """Create a client that signs in as this user."""
        return AirflowClient(self.url, user, password, alive=self.check, is_parked=self._is_parked)

    def _is_parked(self, dag_id: str, run_id: str, task_id: str, tried: int) -> bool:
        wanted = f"TaskInstance Finished: dag_id={dag_id}, task_id={task_id}, run_id={run_id},"
        with (self.home / "log" / "scheduler.out").open(encoding="utf-8", errors="replace") as log:
            return any(wanted in line and f" try_number={tried}," in line for line in log)

    def task_seconds(self) -> float:
        """Processor time of all running tasks and of their child processes."""
        total = 0.0
        for process in _descendants(self.pids.get("scheduler")):
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def __enter__(self) -> AirflowStandalone:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Create the database and start all processes until healthy. Raises AirflowError, LocalFlinkError."""
        if self._children:
            raise AirflowError("this Airflow runs already")
        (port,) = choose_ports({"Airflow": self._port}).values()
        self.url = f"http://{LOOPBACK}:{port}"
        environment = self._environment(port)
        try:
            self._prepare(environment)
            for name, arguments in _COMPONENTS.items():
                self._children += (self._spawn(name, arguments, environment),)
            self._client = self.client_of(self.user, self.password)
            self._wait_until_healthy()
        except BaseException:
            self.stop()
            raise
        self._log(f"Airflow is ready: {self.url} (user {self.user}, password in {self._password_file})")

    def stop(self) -> None:
        """End every component and the processes of its tasks. Does nothing if nothing runs."""
        children, self._children = self._children, ()
        if self._client is not None:
            self._client.close()
            self._client = None
        # A task and its Spark may have process groups of their own, and outlive their supervisor.
        started = [process for child in children for process in _descendants(child.guard.pid)]
        stop_all(children)
        for child in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.guard.pid, signal.SIGKILL)
        for process in started:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(started, timeout=_END_SECONDS)

    def restart(self, part: str) -> None:
        """End one component (``triggerer`` …) with its normal signal, and start it again."""
        old = next(child for child in self._children if child.name == part)
        stop_all((old,))
        new = self._spawn(part, _COMPONENTS[part], self._environment(int(self.url.rpartition(":")[2])))
        self._children = tuple(new if child is old else child for child in self._children)

    def check(self) -> None:
        """Raise AirflowError with the last log lines if a component died."""
        for child in self._children:
            if not child.running:
                raise AirflowError(
                    f"Airflow's {child.name} ended with exit code {child.guard.returncode}; "
                    f"its last words (more in {child.logs[0]}):\n{child.log_tail() or '(none)'}"
                )

    @property
    def _password_file(self) -> Path:
        return self.home / "passwords.json"

    def _environment(self, port: int) -> dict[str, str]:
        """Environment with only loopback addresses, and without the caller's own Airflow."""
        package_root = str(Path(airflow_flinkcompat.__file__).parent.parent)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
        scripts = str(Path(sys.executable).parent)  # spark-submit and flinkcompat are found by name
        return {
            **inherited,
            "PATH": os.pathsep.join([scripts, inherited.get("PATH", os.defpath)]),
            "PYTHONPATH": os.pathsep.join(filter(None, [package_root, inherited.get("PYTHONPATH")])),
            "NO_PROXY": ",".join(filter(None, [LOOPBACK, inherited.get("NO_PROXY")])),
            "no_proxy": ",".join(filter(None, [LOOPBACK, inherited.get("no_proxy")])),
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": str(self._parallelism),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://{LOOPBACK}:{port}/execution/",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{self.user}:admin",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self._password_file),
            "AIRFLOW__API__HOST": LOOPBACK,
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__BASE_URL": f"http://{LOOPBACK}:{port}",
            # A changed file is still parsed immediately.
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "60",
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
            **self._extra,
        }

    def _prepare(self, environment: Mapping[str, str]) -> None:
        try:
            for folder in ("log", "pids"):
                (self.home / folder).mkdir(parents=True, exist_ok=True)
            self.password = self._own_password()
        except OSError as error:
            raise AirflowError(f"cannot write to Airflow's home {self.home}: {error}") from error
        self._log("Airflow: making the database")
        try:
            made = subprocess.run(
                [sys.executable, "-m", "airflow", "db", "migrate"],
                env=dict(environment), capture_output=True, text=True, timeout=self._ready_timeout, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise AirflowError(f"`airflow db migrate` did not end within {self._ready_timeout:.0f} s") from None
        (self.home / "log" / "db-migrate.out").write_text(made.stdout + made.stderr, encoding="utf-8")
        if made.returncode:
            raise AirflowError(f"`airflow db migrate` failed:\n{(made.stdout + made.stderr)[-2000:]}")

    def _own_password(self) -> str:
        """Administrator's password: from an earlier run in this home, else a new one in a private file."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            return str(json.loads(self._password_file.read_text(encoding="utf-8"))[self.user])
        password = secrets.token_urlsafe(12)
        self._password_file.touch(mode=0o600)
        self._password_file.write_text(json.dumps({self.user: password}), encoding="utf-8")
        return password

    def _spawn(self, name: str, arguments: tuple[str, ...], environment: Mapping[str, str]) -> Child:
        output = self.home / "log" / f"{name}.out"
        output.unlink(missing_ok=True)  # errors of an earlier run would mislead
        return spawn(
            name,
            [sys.executable, "-m", "airflow", *arguments],
            output=output,
            log=output,
            pid_file=self.home / "pids" / name,
            environment=environment,
        )

    def _wait_until_healthy(self) -> None:
        self._log("Airflow: waiting until every component is healthy")
        deadline = time.monotonic() + self._ready_timeout
        while True:
            self.check()
            health = self.client.health()
            missing = [part for part in _HEALTHY if (health.get(part) or {}).get("status") != "healthy"]
            if not missing:
                return
            if time.monotonic() > deadline:
                raise AirflowError(
                    f"Airflow is not healthy after {self._ready_timeout:.0f} s, missing: {', '.join(missing)}; "
                    f"logs are in {self.home / 'log'}"
                )
            time.sleep(_POLL_SECONDS)


def _descendants(pid: int | None) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return [] if pid is None else psutil.Process(pid).children(recursive=True)
    return []
