"""What ``airflow flinkcompat --help`` tells is what ``flinkcompat ledger`` has, and costs nothing."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import click
import pytest
from airflow.cli.cli_config import ActionCommand
from airflow.cli.cli_parser import _add_command

from airflow_flinkcompat.airflow.cli import get_flinkcompat_cli_commands
from airflow_flinkcompat.airflow.cli.commands import _OF_CONNECTION, _options, _positional
from airflow_flinkcompat.airflow.provider_info import get_provider_info
from airflow_flinkcompat.cli.ledger import ledger_command

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
        "from airflow_flinkcompat.airflow.cli.definition import get_flinkcompat_cli_commands as get; get(); "
        "print(sorted(name for name in set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = eval(done.stdout.splitlines()[-1])
    assert [name for name in loaded if not name.startswith("airflow_flinkcompat")] == []
    assert len(loaded) <= 4
