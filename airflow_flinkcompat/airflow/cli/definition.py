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
    help="The connection, of type flink, that names the ledger and where jobs run (default: flink_default)",
)
_LEDGER = Arg(
    ("--ledger",),
    metavar="URI",
    help="Folder or object-store address of the ledgers, for a deployment whose DAG names another than the connection",
)
_FORMAT = Arg(
    ("--format",), choices=("text", "json"), default="text", dest="style", help="How to print (default: text)"
)
_PLACE = (_CONNECTION, _LEDGER, _FORMAT)
_DEPLOYMENT = Arg(("deployment",), help="The name of the deployment")
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
            "Every deployment that has a ledger: what is deployed, since when and by whom, and unfinished redeploys",
            Arg(("--no-index",), action="store_true", help="Read every ledger itself, whatever the index says"),
        ),
        _command("index", "Make the index, which `list` reads, anew from the ledgers"),
        _command(
            "show",
            "What is deployed, and a redeploy that has not come to its end",
            _DEPLOYMENT,
            Arg(("--entry",), type=_NUMBER, metavar="N", dest="number", help="This entry instead of the head"),
        ),
        _command("history", "Every entry of the ledger, oldest first, a line each", _DEPLOYMENT),
        _command(
            "diff",
            "What differs between entries A and B: script, files, settings, functions, catalog",
            _DEPLOYMENT,
            Arg(("old",), nargs="?", type=_NUMBER, metavar="A", help="By default what was deployed before"),
            Arg(("new",), nargs="?", type=_NUMBER, metavar="B", help="By default what is deployed"),
        ),
        _command(
            "adopt",
            "Take over a job that already runs: record the script that you say it runs",
            _DEPLOYMENT,
            Arg(("--job-id",), required=True, metavar="ID", help="The job, as its target names it"),
            Arg(("--script",), required=True, metavar="FILE", help="The script, or the program, that it runs"),
            Arg(
                ("--var",),
                action="append",
                dest="variables",
                metavar="NAME=VALUE",
                help="A value only a program's environment knows",
            ),
            Arg(
                ("--set",),
                action="append",
                dest="settings",
                metavar="K=V",
                help="A setting in force before the script's own",
            ),
            Arg(
                ("--function",),
                action="append",
                dest="functions",
                metavar="NAME=KIND[:LANGUAGE]",
                help="Declare a function",
            ),
            Arg(
                ("--catalog",),
                action="append",
                dest="catalogs",
                metavar="FILE",
                help="DDL of tables the script does not declare; several files count as one, in this order",
            ),
            Arg(("--target",), metavar="NAME", help="Where the job runs, for a connection that names no target"),
            Arg(("--engine-version",), metavar="V", help="Flink's version; the cluster's has to be this one"),
            Arg(
                ("--former-ended",),
                action="store_true",
                help="Say that the job of the ledger, or the one being started, has ended",
            ),
        ),
    )
    return [
        GroupCommand(
            name="flinkcompat",
            help="What is deployed of Flink jobs: ledgers, by the connections of Airflow",
            subcommands=commands,
        )
    ]
