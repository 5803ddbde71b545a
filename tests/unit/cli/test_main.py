"""The command line as a whole: bad usage, help, and the installed module."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from airflow_flinkcompat.cli import cli
from tests.support.cli.command import ENVIRONMENT, INCOMPATIBLE, V1, Run, lines, save


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("old.sql",),
        ("old.sql", "new.sql", "more.sql"),
        ("old.sql", "new.sql", "--engine", "spark"),
        ("old.sql", "new.sql", "--format", "xml"),
        ("old.sql", "new.sql", "--fail-on", "compatible"),
        ("old.sql", "new.sql", "--set", "novalue"),
        ("old.sql", "new.sql", "--set", "=value"),
        ("old.sql", "new.sql", "--old-set", "novalue"),
        ("old.sql", "new.sql", "--function", "f"),
        ("old.sql", "new.sql", "--function", "f=window"),
        ("old.sql", "new.sql", "--function", "f=scalar:cobol"),
        ("old.sql", "new.sql", "--function", "=scalar"),
        ("old.sql", "new.sql", "--catalog", "missing.sql"),
        ("old.sql", "new.sql", "--nonsense"),
        (".", "new.sql"),
    ],
    ids=" ".join,
)
def test_bad_usage_is_exit_2(run: Run, args: tuple[str, ...]) -> None:
    save(old=V1, new=V1)
    result = run("check", *args)
    assert result.code == 2
    assert not result.out
    assert result.err.strip()


def test_help_and_version(run: Run) -> None:
    for args in (("--help",), ("check", "--help"), ("batch", "-h"), ("rules", "--help"), ("backfill", "--help")):
        result = run(*args)
        assert (result.code, result.err) == (0, "")
        assert "Usage: flinkcompat" in result.out
    assert run("--version").out.startswith("flinkcompat")
    assert run("nonsense").code == 2


@pytest.mark.slow
def test_the_installed_module_runs(tmp_path: Path) -> None:
    """Through a real process: the exit code and nothing on standard error."""
    for name, text in (("old", V1), ("new", INCOMPATIBLE)):
        (tmp_path / f"{name}.sql").write_text(text, encoding="utf-8")
    args = [sys.executable, "-m", "airflow_flinkcompat.cli", "check", "old.sql", "new.sql"]
    done = subprocess.run(args, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    assert done.returncode == 1
    assert done.stdout.startswith("INCOMPATIBLE")
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize("args", [("check", "old.sql", "old.sql"), ("batch", "pairs.jsonl"), ("rules",)], ids=" ".join)
def test_a_full_disk_is_exit_2(tmp_path: Path, args: tuple[str, ...]) -> None:
    (tmp_path / "old.sql").write_text(V1, encoding="utf-8")
    (tmp_path / "pairs.jsonl").write_bytes(lines({"id": 1, "old": V1, "new": V1}))
    command = [sys.executable, "-m", "airflow_flinkcompat.cli", *args]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, env=ENVIRONMENT
        )
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["flinkcompat: input or output failed: No space left on device"]


NEVER_LOADED = {"airflow", "httpx", "pyspark", "upath", "sqlglot.lineage", "sqlglot.executor", "sqlglot.dialects.spark"}


@pytest.mark.parametrize(
    ("args", "most", "others"),
    [
        (("--version",), 12, {"sqlglot", "airflow_flinkcompat.sql", "airflow_flinkcompat.compat"}),
        (("--help",), 12, {"sqlglot", "airflow_flinkcompat.sql", "airflow_flinkcompat.compat"}),
        (("check", "old.sql", "new.sql"), 360, {"airflow_flinkcompat.backfill", "airflow_flinkcompat.fleet"}),
        (
            ("lint", "old.sql"),
            275,
            {"xml.etree", "airflow_flinkcompat.backfill", "airflow_flinkcompat.compat.rules.aggregates"},
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_command_loads_what_it_needs(tmp_path: Path, args: tuple[str, ...], most: int, others: set[str]) -> None:
    for name in ("old", "new"):
        (tmp_path / f"{name}.sql").write_text(V1, encoding="utf-8")
    code = (
        "import sys; from airflow_flinkcompat.cli import main\n"
        "try: main()\n"
        "except SystemExit: print(*sorted(sys.modules), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, *args]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=ENVIRONMENT)
    loaded = set(done.stderr.split())
    ours = {name for name in loaded if name.startswith("airflow_flinkcompat")}
    assert done.stdout
    assert "airflow_flinkcompat.cli" in ours
    assert len(ours) <= most
    assert not loaded & (NEVER_LOADED | others)
    assert {name for name in loaded if name.startswith("sqlglot.dialects.")} <= {"sqlglot.dialects.dialect"}


def test_every_command_is_loaded_by_its_name() -> None:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert command.help


@pytest.mark.parametrize(
    ("args", "called", "said"),
    [
        (("check", "old.sql", "new.sql"), "check.read_pair", "nothing was changed; run the command again"),
        (("migrate", "old.sql", "new.sql", "--dry-run"), "migrate.read_named", "the old savepoint is unchanged"),
    ],
)
def test_an_interrupted_command_says_what_is_left(
    run: Run, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], called: str, said: str
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    save(old=V1, new=V1)
    module, _, name = called.partition(".")
    monkeypatch.setattr(import_module(f"airflow_flinkcompat.cli.{module}"), name, interrupted)
    result = run(*args)
    assert (result.code, result.out) == (130, "")
    assert result.err.startswith("flinkcompat: interrupted: ")
    assert said in result.err


def test_a_job_manager_that_does_not_answer_is_out_of_reach(run: Run) -> None:
    save(old=V1, new=V1)
    nowhere = ("--gateway", "http://localhost:9", "--jobmanager", "http://localhost:9")
    result = run("rehearse", "old.sql", "new.sql", "--job-id", "0" * 32, *nowhere)
    assert result.code == 3, result.err


def test_a_script_alone_is_offered_against_its_last_commit(run: Run) -> None:
    result = run("check", "jobs/a b.sql")
    assert (result.code, result.out) == (2, "")
    assert "flinkcompat check 'HEAD:jobs/a b.sql' 'jobs/a b.sql'" in result.err


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(("environment", "colours"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_outcomes_have_colours_on_a_terminal(
    environment: dict[str, str], colours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    save(old=V1, new=V1)
    for terminal in (True, False):
        result = CliRunner(env=environment).invoke(cli, ["check", "old.sql", "new.sql"], color=terminal)
        assert result.output.startswith("\x1b[32m\x1b[1mCOMPATIBLE\x1b[0m on ") is (terminal and colours)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('engine = "flink"\n\nparallelism = 4\n', "flinkcompat.toml:3:1: parallelism: is unknown; choose from "),
        ('engnie = "flink"\n', "flinkcompat.toml:1:1: engnie: is unknown; did you mean engine?"),
        (
            'engine = "flink"\nengine_version = "9.9"\n',
            "flinkcompat.toml:2:1: check.engine_version: open-source Flink has no version '9.9'",
        ),
        ("x = = 1\n", "flinkcompat.toml:1:5: is not valid TOML: Invalid value"),
    ],
)
def test_a_wrong_project_file_names_place_and_remedy(text: str, said: str, run: Run) -> None:
    save(old=V1)
    Path("flinkcompat.toml").write_text(text, encoding="utf-8")
    result = run("lint", "old.sql")
    assert result.code == 2
    assert said in result.err
