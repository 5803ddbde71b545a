"""``airflow flinkcompat``: the commands of ``flinkcompat ledger`` with the connections of Airflow.

An Airflow connection replaces the addresses of ledger, Gateway and JobManager. ``airflow --help`` needs only the
definitions, so each command is loaded when it is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand, positive_int

if TYPE_CHECKING:
    from argparse import Namespace

    import click

    from airflow_flinkcompat.airflow.hooks.flink import FlinkHook

_CONNECTION = Arg(
    ("--conn-id",),
    default="flink_default",
    help="Airflow connection of type flink with the ledger and the target (default: flink_default)",
)
_LEDGER = Arg(
    ("--ledger",),
    metavar="URI",
    help="Folder or object-store address of the ledgers, if the DAG uses a different ledger than the connection",
)
_FORMAT = Arg(
    ("--format",), choices=("text", "json"), default="text", dest="style", help="Output format (default: text)"
)
_PLACE = (_CONNECTION, _LEDGER, _FORMAT)
_DEPLOYMENT = Arg(("deployment",), help="Name of the deployment")
_NUMBER = positive_int(allow_zero=False)


def _lazy(name: str) -> Callable[[Namespace], None]:
    def call(args: Namespace) -> None:
        run_command(name, args)

    call.__name__ = f"flinkcompat_{name}"
    return call


def _command(name: str, words: str, *arguments: Arg) -> ActionCommand:
    return ActionCommand(name=name, help=words, func=_lazy(name), args=(*arguments, *_PLACE))


def get_flinkcompat_cli_commands() -> list[GroupCommand]:
    """Command group ``airflow flinkcompat``, which Airflow finds through the provider's key ``cli``."""
    commands = (
        _command(
            "list",
            "List all deployments with their deployed version, its time and author, and unfinished redeploys",
            Arg(("--no-index",), action="store_true", help="Read every ledger instead of the index"),
        ),
        _command("index", "Rebuild the index that `list` reads"),
        _command(
            "show",
            "Show the deployed version, and its unfinished redeploy if there is one",
            _DEPLOYMENT,
            Arg(
                ("--entry",),
                type=_NUMBER,
                metavar="N",
                dest="number",
                help="Entry to show instead of the deployed version",
            ),
        ),
        _command("history", "List all ledger entries, oldest first, one per line", _DEPLOYMENT),
        _command(
            "diff",
            "Compare entries A and B: script, files, settings, functions, catalog",
            _DEPLOYMENT,
            Arg(("old",), nargs="?", type=_NUMBER, metavar="A", help="Default: the previously deployed version"),
            Arg(("new",), nargs="?", type=_NUMBER, metavar="B", help="Default: the deployed version"),
        ),
        _command(
            "adopt",
            "Record a running job and its script in the ledger",
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
                help="Setting that applies before the settings of the script",
            ),
            Arg(
                ("--function",),
                action="append",
                dest="functions",
                metavar="NAME=KIND[:LANGUAGE]",
                help="Function that the script uses but does not declare",
            ),
            Arg(
                ("--catalog",),
                action="append",
                dest="catalog",
                metavar="FILE",
                help="DDL of tables that the script does not declare; several files are read as one, in the listed "
                "order",
            ),
            Arg(("--target",), metavar="NAME", help="Target of the job, if the connection sets none"),
            Arg(("--engine-version",), metavar="V", help="Flink version, which must be the version of the cluster"),
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


# Options whose values come from the Airflow connection, so that the command does not offer them.
_OF_CONNECTION = ("root", "config", "gateway", "jobmanager", "target")


def run_command(name: str, args: Namespace) -> NoReturn:
    """Run a command of the ledger, and exit with the exit code of ``flinkcompat ledger``."""
    from airflow.providers.common.compat.sdk import AirflowException
    from airflow.utils.cli import action_cli

    from airflow_flinkcompat.cli import run
    from airflow_flinkcompat.cli.ledger import ledger_command
    from airflow_flinkcompat.model import InputError

    def call(args: Namespace) -> Any:
        command = ledger_command.commands[name]
        hook = _hook(args.conn_id, getattr(args, "target", None))
        try:
            arguments = [
                "--ledger",
                hook.ledger_uri(args.ledger),
                "--config",  # a project file in Airflow's working directory must not apply
                os.devnull,
                *_options(command, args),
                "--",
                *_positional(command, args),
            ]
            return command.main(
                arguments, prog_name=f"airflow flinkcompat {name}", standalone_mode=False, obj=hook.get_conn
            )
        except AirflowException as error:
            raise InputError(str(error)) from None

    # Airflow logs the call like its own commands.
    call.__name__ = f"flinkcompat_{name}"
    run(lambda: action_cli(check_db=False)(call)(args))


def _hook(conn_id: str, target: str | None) -> FlinkHook:
    """The connection's hook. Raises InputError if no connection has this id."""
    from airflow.providers.common.compat.sdk import AirflowNotFoundException

    from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
    from airflow_flinkcompat.model import InputError

    # Finds connections in the database, too, like Airflow's own commands.
    os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"
    hook = FlinkHook(conn_id, target=target)
    try:
        hook.connection  # noqa: B018
    except AirflowNotFoundException:
        raise InputError(
            f"there is no Airflow connection {conn_id!r}: pass a connection of type flink with --conn-id"
        ) from None
    return hook


def _options(command: click.Command, args: Namespace) -> Iterator[str]:
    import click

    for each in command.params:
        value = None if each.name in _OF_CONNECTION else getattr(args, str(each.name))
        if not isinstance(each, click.Option) or not value:
            continue
        if each.is_flag:
            yield each.opts[0]
        else:
            for part in value if each.multiple else [value]:
                yield from (each.opts[0], str(part))


def _positional(command: click.Command, args: Namespace) -> Iterator[str]:
    import click

    values = (getattr(args, str(each.name)) for each in command.params if isinstance(each, click.Argument))
    return (str(value) for value in values if value is not None)
