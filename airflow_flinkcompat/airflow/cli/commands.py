"""Commands of ``airflow flinkcompat``: those of ``flinkcompat ledger`` with a connection's settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import click
from airflow.providers.common.compat.sdk import AirflowException, AirflowNotFoundException
from airflow.utils.cli import action_cli

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.cli import run
from airflow_flinkcompat.cli.ledger import ledger_command
from airflow_flinkcompat.model import InputError

if TYPE_CHECKING:
    from argparse import Namespace

# What a connection says in place of the command's own options.
_OF_CONNECTION = ("root", "config", "gateway", "jobmanager", "target")


def run_command(name: str, args: Namespace) -> NoReturn:
    """Run a command of the ledger, and exit as ``flinkcompat ledger`` does: 0, or 2 with a clear message."""

    def call(args: Namespace) -> Any:
        command = ledger_command.commands[name]
        hook = _hook(args.conn_id, getattr(args, "target", None))
        try:
            given = [
                "--ledger",
                hook.ledger_uri(args.ledger),
                "--config",  # no project file lies where Airflow runs, or another one
                os.devnull,
                *_options(command, args),
                "--",
                *_positional(command, args),
            ]
            return command.main(
                given, prog_name=f"airflow flinkcompat {name}", standalone_mode=False, obj=hook.get_conn
            )
        except AirflowException as error:
            raise InputError(str(error)) from None

    # Airflow notes the call as it notes those of its own commands.
    call.__name__ = f"flinkcompat_{name}"
    run(lambda: action_cli(check_db=False)(call)(args))


def _hook(conn_id: str, target: str | None) -> FlinkHook:
    """The connection's hook. Raises InputError: there is none of this id."""
    # As Airflow's own commands about connections do: those in its database are found, too.
    os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"
    hook = FlinkHook(conn_id, target=target)
    try:
        hook.connection  # noqa: B018
    except AirflowNotFoundException:
        raise InputError(f"there is no Airflow connection {conn_id!r}: name one of type flink with --conn-id") from None
    return hook


def _options(command: click.Command, args: Namespace) -> Iterator[str]:
    """Arguments as the command's own options."""
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
    values = (getattr(args, str(each.name)) for each in command.params if isinstance(each, click.Argument))
    return (str(value) for value in values if value is not None)
