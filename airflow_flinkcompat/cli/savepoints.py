"""Options, errors and output of commands that write savepoints."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from airflow_flinkcompat.cli.arguments import print_progress
from airflow_flinkcompat.exec_graph.migration import SAMPLED_KEYS, Migration
from airflow_flinkcompat.model import PROGRAM_SUFFIXES, InputError

if TYPE_CHECKING:
    from airflow_flinkcompat.migration.computed import StateComputer
    from airflow_flinkcompat.migration.workers import Workers

template_option = click.option(
    "--template",
    metavar="URI",
    help="Canonical savepoint that NEW's job took before it read any row (default: NEW is started to take it).",
)
sample_option = click.option(
    "--sample",
    type=click.IntRange(min=0),
    default=SAMPLED_KEYS,
    show_default=True,
    metavar="N",
    help=(
        "Before the savepoint is published, read the rows again, recompute N keys of each aggregation and join in "
        "plain Python, and compare them with the written state. 0: no comparison."
    ),
)


def history_of(texts: Iterable[str]) -> Mapping[str, str]:
    """Parse ``--history`` into the location of the rows by table."""
    found: dict[str, str] = {}
    for text in texts:
        table, _, place = text.partition("=")
        if not table:
            raise InputError(f"--history {text}: write TABLE or TABLE=URI")
        if table in found:
            raise InputError(
                f"--history {table}: the table has two locations; pass an archive and its topic as URI#COLUMNS"
            )
        found[table] = place
    return found


def require_sql(command: str, *scripts: str) -> None:
    """Raise InputError if a script is a program."""
    if programs := [path for path in scripts if path.endswith(PROGRAM_SUFFIXES)]:
        raise InputError(f"{programs[0]}: {command} compiles SQL scripts, not programs")


@contextmanager
def state_errors() -> Iterator[None]:
    """Turn errors of state and savepoints into errors of the command line."""
    from airflow_flinkcompat.migration import FolderTaken, MigrationVerificationFailed, NotMigratable
    from airflow_flinkcompat.savepoint.binary import SavepointUnreadable

    try:
        yield
    except FolderTaken as error:
        raise InputError(str(error)) from None
    except NotMigratable as error:
        print_progress(f"flinkcompat: {error}")
        sys.exit(1)
    except (MigrationVerificationFailed, SavepointUnreadable) as error:
        raise InputError(str(error)) from None


def require_predicted(migration: Migration, *, savepoint: str | None = None, template: str | None = None) -> None:
    """Check that state can be rewritten, and that a savepoint or template contains the predicted state."""
    from airflow_flinkcompat.migration.writing import (
        require_predicted_state,
        require_predicted_template,
        require_rewritable,
    )

    with state_errors():
        require_rewritable(migration)
        if savepoint is not None:
            require_predicted_state(migration, savepoint)
        if template is not None:
            require_predicted_template(migration, template)


def write_savepoint(
    savepoint: str, template: str, to: str, migration: Migration, workers: Workers | None, history: StateComputer | None
) -> None:
    """Write the savepoint of a migration, read it back, and print the number of entries."""
    from airflow_flinkcompat.migration import MigrationVerificationFailed, NotMigratable, migrate_savepoint
    from airflow_flinkcompat.savepoint.binary import SavepointUnreadable

    with state_errors():
        try:
            written = migrate_savepoint(savepoint, template, to, migration, int(time.time() * 1000), workers, history)
        except (InputError, MigrationVerificationFailed, NotMigratable, SavepointUnreadable):
            raise
        except Exception as error:  # each object-store library raises its own errors
            raise InputError(f"{to} cannot be written from here ({type(error).__name__}: {error})") from error
    entries = sum(count for each in written for count in each.entries.values())
    computed = " or computed" if history is not None else ""
    click.echo(f"{entries} entries rewritten{computed}, read back and equal: {to}", err=True)
