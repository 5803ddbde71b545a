"""The command line ``flinkcompat``, which works without Airflow.

Exit code 0: passed; 1: failed the gate; 2: bad input or usage, with a message and no traceback; 3: out of reach; 130:
interrupted by Ctrl-C. *Out of reach* means that a ledger is unreadable or empty, or that a SQL Gateway, JobManager or
platform does not answer.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

import click

from airflow_flinkcompat import __version__
from airflow_flinkcompat.model import InputError, OutOfReachError, ScriptError

__all__ = ["cli", "main", "run"]

_INTERRUPTED = 130
_COMMANDS = {
    "accept": ("accept", "Waive a finding, so that it passes the gate."),
    "audit": ("audit", "Judge all jobs on a different version or with a changed table."),
    "backfill": ("backfill", "Recompute a script over history with Spark."),
    "batch": ("batch", "Check many changes, one JSON object per line."),
    "bootstrap": ("bootstrap", "Write a savepoint for a script that has never run."),
    "check": ("check", "Check the change from script OLD to script NEW."),
    "deploy": ("deploy", "Check one deployment, and redeploy it without Airflow."),
    "diff": ("fleet", "Check every deployment of the project file."),
    "init": ("init", "Write a project file, flinkcompat.toml."),
    "ledger": ("ledger", "Show deployed versions and their history."),
    "lint": ("fleet", "Read scripts without a comparison, and report faults."),
    "lsp": ("fleet", "Run a language server for editors."),
    "migrate": ("migrate", "Rewrite a savepoint for a changed script."),
    "plan": ("fleet", "Show the branch of the gate in Airflow for one deployment."),
    "planner": ("planner", "Install Flink's own planner for checks."),
    "rehearse": ("rehearse", "Rehearse a restore of a script next to the running job."),
    "rules": ("rules", "List all rules, or explain one rule."),
    "shadow": ("rehearse", "Compare the rows of two scripts next to the running job."),
    "state": ("state", "Show and query the state in a savepoint."),
    "upgrade": ("upgrade", "Edit scripts for a newer Flink, and report how each job moves."),
}
"""Module of each command, and its line in ``--help``, which is shown without loading the module."""
_LEFT = {
    "backfill": "no sink contains unpublished results; run the command again with the same options",
    "bootstrap": "the unfinished folder of --to is removed; run the command again",
    "deploy": "running jobs keep running, and the ledger contains the completed steps; run the command again to resume",
    "ledger": "`flinkcompat ledger show` prints the recorded steps",
    "migrate": "the unfinished folder of --to is removed, and the old savepoint is unchanged; run the command again",
    "rehearse": "the jobs of the rehearsal are stopped, and the live job was not touched; run the command again",
    "shadow": "the jobs of the shadow run are stopped, and the live job was not touched; run the command again",
}
"""State of the system after an interrupted command. Commands that are not listed change nothing."""


class _Interrupted(Exception):
    """Raised for Ctrl-C; the text describes the state of the system."""


class _LazyGroup(click.Group):
    """Command group that imports a command only when it is called."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _Interrupted(
                _LEFT.get(ctx.invoked_subcommand or "", "nothing was changed; run the command again")
            ) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        gc.disable()  # collections during an import cost time and find no garbage
        try:
            command = getattr(import_module(f"airflow_flinkcompat.cli.{_COMMANDS[name][0]}"), f"{name}_command")
        finally:
            gc.freeze()
            gc.enable()
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="flinkcompat")
def cli() -> None:
    """Check how a change to a Flink SQL job affects its state."""


def main() -> NoReturn:
    """Run the command line, and exit."""
    run(lambda: cli.main(prog_name="flinkcompat", standalone_mode=False))


def run(command: Callable[[], Any]) -> NoReturn:
    """Run a command, print a message for an error, and exit with the exit code.

    Args:
        command: Function that returns the exit code; a value that is not an integer means 0.
    """
    try:
        code = command()
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except _Interrupted as error:
        _say(f"interrupted: {error}")
        sys.exit(_INTERRUPTED)
    except (click.Abort, KeyboardInterrupt):
        _say("interrupted")
        sys.exit(_INTERRUPTED)
    except BrokenPipeError:
        # The reader closed the pipe (head): nothing is wrong here.
        sys.stderr.close()
        sys.exit(0)
    except (ScriptError, InputError) as error:
        _say(str(error))
        sys.exit(2)
    except OutOfReachError as error:
        _say(str(error))
        sys.exit(3)
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        _say(f"{place}input or output failed: {error.strerror or error}")
        # Python would try to write the rest of the output again at exit.
        with contextlib.suppress(OSError):
            sys.stdout.close()
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def _say(message: str) -> None:
    from airflow_flinkcompat.secrets import mask_secrets

    click.echo(f"flinkcompat: {mask_secrets(message)}", err=True)
