"""``airflow flinkcompat`` run: a connection names ledger and target; output and exit codes are those of the ledger."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from airflow.cli.cli_config import ActionCommand
from airflow.cli.cli_parser import _add_command
from click.testing import CliRunner

from airflow_flinkcompat.airflow.cli import _OF_CONNECTION, _options, _positional, get_flinkcompat_cli_commands
from airflow_flinkcompat.airflow.provider_info import get_provider_info
from airflow_flinkcompat.cli import cli
from airflow_flinkcompat.cli.ledger import ledger_command
from airflow_flinkcompat.deploy import Ledger
from dev.services.object_stores import serving
from tests.unit.cli.test_ledger import FIRST, SECOND, SECRET
from tests.unit.deploy.jobmanager_stand_in import JobManagerStandIn
from tests.unit.deploy.redeploy.test_adopt import JOB, SCRIPT, TASKS

ROOT = Path(__file__).parents[4]
CONTEXT = "_AIRFLOW_PROCESS_CONTEXT"


@dataclass(frozen=True)
class Result:
    code: int | str | None
    out: str
    err: str


Airflow = Callable[..., Result]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "ledger", "orders")
    made.append(FIRST)
    made.append(SECOND)
    return made


@pytest.fixture
def airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Airflow:
    """Runs ``airflow`` in this process, with a connection ``flink_default`` in the environment."""
    extra = {"ledger": str(tmp_path / "ledger"), "target": "jobmanager", "jobmanager_url": "http://127.0.0.1:9"}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CONTEXT, os.environ.get(CONTEXT, ""))  # which the command sets is taken back
    monkeypatch.delenv("FLINKCOMPAT_LEDGER", raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str, **more: Any) -> Result:
        connection = {"conn_type": "flink", "extra": extra | more}
        monkeypatch.setenv("AIRFLOW_CONN_FLINK_DEFAULT", json.dumps(connection))
        parser = argparse.ArgumentParser(prog="airflow")
        _add_command(parser.add_subparsers(dest="subcommand"), get_flinkcompat_cli_commands()[0])
        args = parser.parse_args(arguments)
        with pytest.raises(SystemExit) as end:
            args.func(args)
        return Result(end.value.code, *capsys.readouterr())

    return call


@pytest.fixture
def cluster() -> Iterator[JobManagerStandIn]:
    stand_in = JobManagerStandIn()
    with serving(stand_in):
        yield stand_in


@pytest.mark.parametrize("line", ["list", "show orders", "history orders --format json", "diff orders 1 2", "index"])
def test_it_prints_what_flinkcompat_ledger_prints(airflow: Airflow, ledger: Ledger, line: str) -> None:
    expected = CliRunner().invoke(cli, ["ledger", *line.split(), "--ledger", str(ledger.directory.parent)])
    assert expected.exit_code == 0
    done = airflow("flinkcompat", *line.split())
    assert (done.code, done.out) == (0, expected.output), done.err
    assert SECRET not in done.out + done.err


def test_a_job_is_adopted_through_the_connection(
    airflow: Airflow, ledger: Ledger, cluster: JobManagerStandIn, tmp_path: Path
) -> None:
    cluster.job(JOB, "order totals", *TASKS)
    (tmp_path / "totals.sql").write_text(SCRIPT, encoding="utf-8")
    given = ("flinkcompat", "adopt", "totals", "--job-id", JOB, "--script", "totals.sql", "--set", "a=b")
    done = airflow(*given, jobmanager_url=cluster.url)
    assert done.code == 0, done.err
    assert f"adopted: job {JOB} (order totals, RUNNING) as totals, entry 1" in done.out
    head = Ledger(ledger.directory.parent, "totals").head()
    assert head is not None
    assert (head.kind, head.job.script, head.job.settings, head.job_id) == ("adopted", SCRIPT, {"a": "b"}, JOB)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "clicks"), "flinkcompat: no entry in "),
        (("show", "orders", "--entry", "9"), "has no entry 9: its last entry is 2"),
        (
            ("show", "orders", "--conn-id", "nowhere"),
            "no Airflow connection 'nowhere': pass a connection of type flink",
        ),
        (("adopt", "x", "--job-id", JOB, "--script", "none.sql"), "none.sql"),
        (("adopt", "x", "--job-id", JOB, "--script", "s.sql"), "http://127.0.0.1:9"),
        (("adopt", "x", "--job-id", JOB, "--script", "s.sql", "--target", "aws"), "is of target 'jobmanager'"),
        (("show", "orders", "--ledger", "nowhere"), "check the name 'orders' and the address nowhere"),
    ],
)
def test_what_is_wrong_is_said_with_exit_code_2(
    airflow: Airflow, ledger: Ledger, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "s.sql").write_text(SCRIPT, encoding="utf-8")
    done = airflow("flinkcompat", *arguments)
    assert done.code == (3 if "127.0.0.1:9" in said else 2), done.out + done.err
    assert said in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


def test_a_connection_without_a_ledger_says_what_to_set(airflow: Airflow) -> None:
    done = airflow("flinkcompat", "list", ledger=None)
    assert done.code == 2
    assert "no ledger is set" in done.err
    assert "`ledger` in the extra of connection 'flink_default'" in done.err


@pytest.mark.slow
@pytest.mark.nightly
def test_the_command_of_airflow_itself(ledger: Ledger, tmp_path: Path) -> None:
    """In processes of its own, with a connection in Airflow's database."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("FLINKCOMPAT_", "AIRFLOW_"))}
    environment = {**own, "AIRFLOW_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "airflow", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

    extra = json.dumps({"ledger": str(ledger.directory.parent)})
    for line in (
        ("db", "migrate"),
        ("connections", "add", "of_database", "--conn-type", "flink", "--conn-extra", extra),
    ):
        made = run(*line)
        assert made.returncode == 0, made.stderr
    done = run("flinkcompat", "list", "--conn-id", "of_database", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert [each["deployment"] for each in json.loads(done.stdout)["deployments"]] == ["orders"]
    refused = run("flinkcompat", "show", "clicks", "--conn-id", "nowhere")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "there is no Airflow connection 'nowhere'" in refused.stderr
    assert "Traceback" not in refused.stderr


ROOT = Path(__file__).parents[4]
(GROUP,) = get_flinkcompat_cli_commands()
ACTIONS: dict[str, ActionCommand] = {each.name: each for each in GROUP.subcommands}


@pytest.fixture(scope="module")
def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="airflow")
    _add_command(made.add_subparsers(dest="subcommand"), GROUP)
    return made


def test_every_command_of_the_ledger_is_there() -> None:
    assert set(ACTIONS) == set(ledger_command.commands)


@pytest.mark.parametrize("name", ACTIONS)
def test_a_command_takes_what_that_of_the_ledger_takes(name: str) -> None:
    of_ledger = ledger_command.commands[name]
    options = {
        tuple(each.opts)
        for each in of_ledger.params
        if isinstance(each, click.Option) and (each.name not in _OF_CONNECTION or each.name in ("root", "target"))
    }
    arguments = [(each.name,) for each in of_ledger.params if isinstance(each, click.Argument)]
    given = [tuple(each.flags) for each in ACTIONS[name].args]
    assert [each for each in given if not each[0].startswith("-")] == arguments
    assert {each for each in given if each[0].startswith("-")} == options | {("--conn-id",)}


@pytest.mark.parametrize("name", ACTIONS)
def test_a_command_is_described_as_that_of_the_ledger_is(name: str) -> None:
    first = (ledger_command.commands[name].help or "").partition("\n")[0].rstrip(".")
    told = first.replace("ledger list", "list").replace(" as DEPLOYMENT", "").replace(" of DEPLOYMENT", "")
    assert ACTIONS[name].help == told


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("list --no-index --format json", ["--format", "json", "--no-index"]),
        ("show orders --entry 3", ["--format", "text", "--entry", "3", "orders"]),
        ("diff orders 3 7 --conn-id x", ["--format", "text", "orders", "3", "7"]),
        ("diff orders", ["--format", "text", "orders"]),
        (
            "adopt orders --job-id J --script s.sql --set a=b --set c=d --former-ended --target kubernetes",
            ["--format", "text", "--job-id", "J", "--script", "s.sql", "--set", "a=b", "--set", "c=d", "--former-ended",
             "orders"],
        ),
    ],
)  # fmt: skip
def test_what_was_given_is_handed_on(parser: argparse.ArgumentParser, line: str, expected: list[str]) -> None:
    args = parser.parse_args(["flinkcompat", *line.split()])
    command = ledger_command.commands[line.split()[0]]
    assert [*_options(command, args), *_positional(command, args)] == expected


@pytest.mark.parametrize(
    "line", ["show", "show orders --entry 0", "adopt orders --job-id J", "diff orders x", "shows x"]
)
def test_what_is_wrong_is_refused_at_once(
    parser: argparse.ArgumentParser, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parser.parse_args(["flinkcompat", *line.split()])
    assert end.value.code == 2
    assert "Usage: airflow flinkcompat" in capsys.readouterr().err


def test_airflow_finds_the_group() -> None:
    assert get_provider_info()["cli"] == [
        f"{get_flinkcompat_cli_commands.__module__}.{get_flinkcompat_cli_commands.__name__}"
    ]


@pytest.mark.slow
def test_help_loads_none_of_what_runs() -> None:
    """Airflow's command line loads the group on every call, whatever is asked of it."""
    code = (
        "import sys, airflow.cli.cli_config; before = set(sys.modules); "
        "from airflow_flinkcompat.airflow.cli import get_flinkcompat_cli_commands as get; get(); "
        "print(sorted(name for name in set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = eval(done.stdout.splitlines()[-1])
    assert [name for name in loaded if not name.startswith("airflow_flinkcompat")] == []
    assert len(loaded) <= 4
