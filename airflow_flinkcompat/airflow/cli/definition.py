"""Definition of ``airflow flinkcompat --help``: the commands of ``flinkcompat ledger``, unloaded.

A connection replaces the addresses of ledger, Gateway and JobManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand, positive_int

if TYPE_CHECKING:
    from argparse import Namespace

_CONNECTION = Arg(
    ("--conn-id",),
    default="flink_default",
    help="Airflow connection of type flink with the ledger and the target (default: flink_default)",
)
_LEDGER = Arg(
    ("--ledger",),
    metavar="URI",
    help="Folder or object-store address of the ledgers, if the DAG names another one than the connection",
)
_FORMAT = Arg(
    ("--format",), choices=("text", "json"), default="text", dest="style", help="Output format (default: text)"
)
_PLACE = (_CONNECTION, _LEDGER, _FORMAT)
_DEPLOYMENT = Arg(("deployment",), help="Name of the deployment")
_NUMBER = positive_int(allow_zero=False)


def _lazy(name: str) -> Callable[[Namespace], None]:
    def call(args: Namespace) -> None:
        from airflow_flinkcompat.airflow.cli.commands import run_command

        run_command(name, args)

    call.__name__ = f"flinkcompat_{name}"
    return call


def _command(name: str, words: str, *arguments: Arg) -> ActionCommand:
    return ActionCommand(name=name, help=words, func=_lazy(name), args=(*arguments, *_PLACE))


def get_flinkcompat_cli_commands() -> list[GroupCommand]:
    """The group ``flinkcompat`` of Airflow's command line; Airflow finds it by the provider's key ``cli``.

    Returns:
        The one group.
    """
    commands = (
        _command(
            "list",
            "List all deployments with their deployed version, its time and author, and unfinished redeploys",
            Arg(("--no-index",), action="store_true", help="Read every ledger instead of the index"),
        ),
        _command("index", "Rebuild the index that `list` reads"),
        _command(
            "show",
            "Show the deployed version, and a redeploy that has not ended",
            _DEPLOYMENT,
            Arg(("--entry",), type=_NUMBER, metavar="N", dest="number", help="Entry to show instead of the head"),
        ),
        _command("history", "List all entries of the ledger, oldest first, one line each", _DEPLOYMENT),
        _command(
            "diff",
            "Compare entries A and B: script, files, settings, functions, catalog",
            _DEPLOYMENT,
            Arg(("old",), nargs="?", type=_NUMBER, metavar="A", help="Default: the previously deployed version"),
            Arg(("new",), nargs="?", type=_NUMBER, metavar="B", help="Default: the deployed version"),
        ),
        _command(
            "adopt",
            "Record a running job with the script that it runs",
            _DEPLOYMENT,
            Arg(("--job-id",), required=True, metavar="ID", help="The job's id on its target"),
            Arg(("--script",), required=True, metavar="FILE", help="Script or program that the job runs"),
            Arg(
                ("--var",),
                action="append",
                dest="variables",
                metavar="NAME=VALUE",
                help="Value that the program reads from its environment",
            ),
            Arg(
                ("--set",),
                action="append",
                dest="settings",
                metavar="K=V",
                help="Setting that applies before the script's own",
            ),
            Arg(
                ("--function",),
                action="append",
                dest="functions",
                metavar="NAME=KIND[:LANGUAGE]",
                help="Function that the script uses and does not declare",
            ),
            Arg(
                ("--catalog",),
                action="append",
                dest="catalog",
                metavar="FILE",
                help="DDL of tables that the script does not declare; several files are read as one, in this order",
            ),
            Arg(("--target",), metavar="NAME", help="Target of the job, if the connection names none"),
            Arg(("--engine-version",), metavar="V", help="Flink version; it must be the version of the cluster"),
            Arg(
                ("--former-ended",),
                action="store_true",
                help="Confirm that the job of the ledger, or the job of an unfinished start, has ended",
            ),
        ),
    )
    return [
        GroupCommand(
            name="flinkcompat",
            help="Ledgers of deployed Flink jobs, with the connections of Airflow",
            subcommands=commands,
        )
    ]
