"""The command line ``flinkcompat``: the same judgement without Airflow.

Exit codes: 0 passed, 1 failed the gate, 2 bad input or usage (a clear message, no traceback), 3 out of reach: a ledger
cannot be read or holds nothing, a SQL Gateway, JobManager or platform does not answer.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import click

from airflow_flinkcompat import __version__
from airflow_flinkcompat.cli.accept import accept_command
from airflow_flinkcompat.cli.audit import audit_command
from airflow_flinkcompat.cli.backfill import backfill_command
from airflow_flinkcompat.cli.batch import batch_command
from airflow_flinkcompat.cli.bootstrap import bootstrap_command
from airflow_flinkcompat.cli.check import check_command
from airflow_flinkcompat.cli.diff import diff_command, lint_command, plan_command
from airflow_flinkcompat.cli.init import init_command
from airflow_flinkcompat.cli.ledger import ledger_command
from airflow_flinkcompat.cli.lsp import lsp_command
from airflow_flinkcompat.cli.migrate import migrate_command
from airflow_flinkcompat.cli.rehearse import rehearse_command
from airflow_flinkcompat.cli.rules import rules_command
from airflow_flinkcompat.model import InputError, OutOfReachError
from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.sql import ScriptError

__all__ = ["cli", "main", "run"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="flinkcompat")
def cli() -> None:
    """Know what a change to a Flink SQL job does to its state."""


for command in (
    check_command,
    batch_command,
    init_command,
    diff_command,
    plan_command,
    lint_command,
    lsp_command,
    accept_command,
    audit_command,
    rules_command,
    backfill_command,
    rehearse_command,
    migrate_command,
    bootstrap_command,
    ledger_command,
):
    cli.add_command(command)


def main() -> NoReturn:
    """Entry point."""
    run(lambda: cli.main(prog_name="flinkcompat", standalone_mode=False))


def run(command: Callable[[], Any]) -> NoReturn:
    """Run a command, and exit: usage and input errors with exit code 2 and one message, what is out of reach with 3.

    Args:
        command: What returns the exit code, or something that is none.
    """
    try:
        code = command()
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(2)
    except BrokenPipeError:
        # The reader closed the pipe (head): nothing is wrong here.
        sys.stderr.close()
        sys.exit(0)
    except (ScriptError, InputError) as error:
        click.echo(f"flinkcompat: {mask_secrets(str(error))}", err=True)
        sys.exit(2)
    except OutOfReachError as error:
        click.echo(f"flinkcompat: {mask_secrets(str(error))}", err=True)
        sys.exit(3)
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        click.echo(f"flinkcompat: {mask_secrets(place)}input or output failed: {error.strerror or error}", err=True)
        # What could not be written would be tried once more at exit.
        with contextlib.suppress(OSError):
            sys.stdout.close()
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)
