"""``--target`` on the command line: what the help says, and what is said of a target that cannot be used."""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import CliRunner
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.cli import cli
from airflow_flinkcompat.cli.targets import Planner, deployed_job
from airflow_flinkcompat.deploy import targets
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.project.job_options import JobOptions

JOB = "a" * 32
SCRIPT = """\
CREATE TABLE s (x INT) WITH ('connector' = 'datagen');
CREATE TABLE k (x INT) WITH ('connector' = 'blackhole');
INSERT INTO k SELECT x FROM s;
"""
COMMANDS = {
    "rehearse": ("rehearse", "a.sql", "a.sql", "--job-id", JOB),
    "shadow": ("shadow", "a.sql", "a.sql", "--job-id", JOB),
    "adopt": ("ledger", "adopt", "orders", "--job-id", JOB, "--script", "a.sql", "--ledger", "ledger"),
    "check": ("check", "a.sql", "a.sql", "--engine", "flink", "--explain-plan"),
}
OPTIONS = ("--target", "--gateway", "--jobmanager")


class Loaded:
    """An entry point of a target."""

    def __init__(self, loaded: type) -> None:
        self.loaded = loaded

    def load(self) -> type:
        return self.loaded


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What a command says that fails for its input; exactly the shipped targets are installed."""
    monkeypatch.chdir(tmp_path)
    Path("a.sql").write_text(SCRIPT, encoding="utf-8")
    found = {"jobmanager": Loaded(JobManagerTarget), "sql-gateway": Loaded(SqlGatewayTarget)}
    monkeypatch.setattr(targets, "_found", lambda: found)

    def run(command: str, *arguments: str) -> str:
        result = CliRunner().invoke(cli, [*COMMANDS[command], *arguments])
        assert isinstance(result.exception, InputError), result.output  # main() makes exit code 2 of it
        return str(result.exception)

    return run


@pytest.mark.parametrize("command", COMMANDS)
def test_what_the_help_says(command: str, snapshot: SnapshotAssertion) -> None:
    name = ["ledger", "adopt"] if command == "adopt" else [command]
    result = CliRunner().invoke(cli, [*name, "--help"], terminal_width=200, max_content_width=200)
    shown = [line for line in result.output.splitlines() if line.strip().startswith(OPTIONS)]
    assert "\n".join(shown) == snapshot


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_that_is_none_is_told_with_those_there_are(
    command: str, run: Callable[..., str], snapshot: SnapshotAssertion
) -> None:
    assert run(command, "--target", "gatway") == snapshot


@pytest.mark.parametrize("command", COMMANDS)
def test_an_address_that_is_missing_is_named(
    command: str, run: Callable[..., str], snapshot: SnapshotAssertion
) -> None:
    assert run(command, "--target", "sql-gateway") == snapshot


@pytest.mark.parametrize("command", ["rehearse", "check"])
def test_what_a_target_cannot_do_is_refused_by_its_name(
    command: str, run: Callable[..., str], snapshot: SnapshotAssertion
) -> None:
    assert run(command, "--target", "jobmanager", "--jobmanager", "http://jobs.test:8081") == snapshot


def test_options_that_nobody_asks_for(run: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "check", COMMANDS["check"][:-1])
    for given in (("--gateway", "http://g.test"), ("--plan-dir", "/plans")):
        assert run("check", *given) == "--gateway and --plan-dir need --explain-plan: add it"
    for given in (("--target", "jobmanager"), ("--jobmanager", "http://j.test"), ("--savepoint", "/s")):
        assert run("check", *given) == (
            "--target, --jobmanager and --savepoint are for Flink's planner: add --engine flink --planner auto"
        )
    savepoint = run("check", "--explain-plan", "--gateway", "http://g.test", "--savepoint", "/s")
    assert savepoint == "--savepoint is for the planner on this machine: leave out --gateway and --target"


class _Cluster(BaseHTTPRequestHandler):
    """A JobManager that shows its options."""

    OPTIONS: ClassVar = {"table.exec.state.ttl": "1 d", "parallelism.default": "4", "rest.port": "8081"}

    def do_GET(self) -> None:
        known = self.path == "/jobmanager/config"
        body = json.dumps([{"key": key, "value": value} for key, value in self.OPTIONS.items()]).encode()
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(body) if known else 0))
        self.end_headers()
        self.wfile.write(body if known else b"")

    def log_message(self, *_: object) -> None:
        pass


def test_the_options_of_a_cluster_that_decide_how_a_job_is_planned() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Cluster) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            place = f"http://127.0.0.1:{server.server_port}"
            found = deployed_job("check", Planner(jobmanager=place), None)
        finally:
            server.shutdown()
    assert found.options == {"table.exec.state.ttl": "1 d", "parallelism.default": "4"}


@pytest.mark.parametrize("command", [("check", "--engine", "flink", "--explain-plan"), ("migrate", "--dry-run")])
def test_what_is_no_jar_for_a_flink_of_this_machine(command: tuple[str, ...], run: Callable[..., str]) -> None:
    def refusal(*arguments: str) -> str:
        result = CliRunner().invoke(cli, [command[0], "a.sql", "a.sql", *command[1:], *arguments])
        assert result.exit_code in (1, 2), result.output
        return result.output + str(result.exception)

    with zipfile.ZipFile("kafka.jar", "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "")
    assert "File 'missing.jar' does not exist" in refusal("--jar", "missing.jar")
    assert "a.sql: is not a jar: pass a jar file" in refusal("--jar", "kafka.jar", "--jar", "a.sql")
    elsewhere = refusal("--jar", "kafka.jar", "--gateway", "http://localhost:9")
    assert "put the jar into the lib folder of the Flink at --gateway" in elsewhere


@pytest.mark.usefixtures("run")
def test_who_plans_a_migration() -> None:
    """A target that can; for any other one a SQL Gateway has to."""
    assert [Planner(name).compiling(JobOptions()).target for name in (None, "sql-gateway", "jobmanager")] == [
        None,
        "sql-gateway",
        None,
    ]
    always = Planner("sql-gateway", "http://g", "http://j").compiling(
        JobOptions(planner="always", jars=(Path("k.jar"),))
    )
    assert (always.is_local, always.jars, always.target) == (True, (Path("k.jar"),), "sql-gateway")
    elsewhere = Planner(gateway="http://g").compiling(JobOptions(planner="never", jars=(Path("k.jar"),)))
    assert (elsewhere.is_local, elsewhere.jars) == (False, ())
    with pytest.raises(InputError, match=r"there is no target 'gatway'\. Installed targets: jobmanager, sql-gateway"):
        Planner("gatway").compiling(JobOptions())


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("command", [("migrate", "a.sql", "a.sql"), ("bootstrap", "a.sql")])
def test_a_migration_without_any_planner(command: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, [*command, "--dry-run", "--planner", "never"])
    assert str(result.exception) == (
        f"{command[0]} needs compiled plans: pass a SQL Gateway with --gateway URL, or add --planner auto"
    )
