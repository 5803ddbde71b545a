"""A real API server of Airflow with the plugin, over a database and ledgers of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from airflow_flinkcompat.local_flink.processes import LOOPBACK, choose_ports, spawn, stop_all
from dev.services.csv_job import wait_for
from tests.scenarios.airflow.pages import database, world

REPOSITORY = Path(__file__).parents[4]
PASSWORDS = {"admin": "for-tests-alone", "viewer": "for-tests-too"}
_READY_SECONDS = 240.0


@dataclass
class ApiServer:
    """Where it answers, and who may sign in."""

    url: str
    home: Path
    passwords: Mapping[str, str] = field(default_factory=lambda: PASSWORDS)
    tokens: dict[str, str] = field(default_factory=dict)

    def token(self, user: str) -> str:
        """What the cookie of a user who is signed in holds."""
        if user not in self.tokens:
            given = {"username": user, "password": self.passwords[user]}
            answer = httpx.post(f"{self.url}/auth/token", json=given, timeout=60).raise_for_status()
            self.tokens[user] = answer.json()["access_token"]
        return self.tokens[user]

    def get(self, user: str, path: str, **params: str | int) -> Any:
        """What the plugin's API tells a user."""
        return self._get(user, f"flinkcompat/api/v1/{path}", params)

    def question(self, dag_id: str, run_id: str) -> Any:
        """The question of a run, as Airflow has it."""
        path = f"api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/approve/-1/hitlDetails"
        return self._get("admin", path, {})

    def _get(self, user: str, path: str, params: Mapping[str, str | int]) -> Any:
        cookies = {"_token": self.token(user)}
        answer = httpx.get(f"{self.url}/{path}", params=dict(params), cookies=cookies, timeout=60)
        return answer.raise_for_status().json()


@contextmanager
def serving(home: Path, port: int | None = None) -> Iterator[ApiServer]:
    """The API server alone: no page needs a scheduler. The plugin is there because the package is installed."""
    ledgers = [home / name for name in ("ledger", "fleet", "hostile")]
    database.write_dags(home / "dags")
    world.fill(*ledgers)
    (home / "passwords.json").write_text(json.dumps(PASSWORDS), encoding="utf-8")
    port = choose_ports({"Airflow": port})["Airflow"]
    url = f"http://{LOOPBACK}:{port}"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")},
        "PYTHONPATH": str(REPOSITORY),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,viewer:viewer",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__API__HOST": LOOPBACK,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__FLINKCOMPAT__LEDGERS": str(ledgers[2]),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    airflow = [sys.executable, "-m", "airflow"]
    for command in (
        [*airflow, "db", "migrate"],
        [*airflow, "dags", "reserialize"],
        [sys.executable, "-m", "tests.scenarios.airflow.pages.database", *map(str, ledgers[:2])],
    ):
        made = subprocess.run(
            command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False
        )
        assert made.returncode == 0, f"{command}: {(made.stdout + made.stderr)[-3000:]}"
    output = home / "api-server.out"
    child = spawn(
        "api-server",
        [*airflow, "api-server", "--workers", "1", "--apps", "core"],
        output=output,
        log=output,
        pid_file=home / "api-server.pid",
        environment=environment,
    )
    try:
        _wait(url, lambda: child.running, output)
        yield ApiServer(url, home)
    finally:
        stop_all((child,))


def _wait(url: str, alive: Callable[[], bool], output: Path) -> None:
    def healthy() -> bool:
        assert alive(), output.read_text(encoding="utf-8")[-3000:]
        try:
            return httpx.get(f"{url}/api/v2/monitor/health", timeout=30).is_success
        except httpx.TransportError:
            return False

    wait_for(healthy, f"the API server is healthy: see {output}", _READY_SECONDS)
