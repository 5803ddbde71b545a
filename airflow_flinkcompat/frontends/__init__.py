"""Front ends, which read scripts and programs as SQL statements, without running programs.

Each language other than SQL has a front end in :data:`FRONT_ENDS`, which is a module with a function ``read``. Front
ends are imported on first use, so a check of SQL loads none. The result for a program is a :class:`ProgramScript`, with
statements, the calls that created them, unread parts, notes and windows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType

from sqlglot import exp

from airflow_flinkcompat.model import JobSpec, Span
from airflow_flinkcompat.sql import Script, Statement, nodes, parse_script

__all__ = ["FRONT_ENDS", "read"]


FRONT_ENDS: Mapping[str, str] = MappingProxyType(
    {"python": "airflow_flinkcompat.frontends.pyflink.reader", "table": "airflow_flinkcompat.frontends.flip11"}
)
"""Module with the function ``read(job, catalog)`` for each language other than SQL."""


def read(
    job: JobSpec, catalog: Script | None = None, like: Script | None = None, decided: Mapping[str, bool] | None = None
) -> Script:
    """Read the statements of a job.

    Args:
        job: The job.
        catalog: Declarations of tables that a program uses but does not declare; ignored for SQL.
        like: A second script; equal SQL statements share its trees.
        decided: The outcome of conditions on inputs of a Python program, by the name of the condition.

    Returns:
        The script, which is a :class:`~airflow_flinkcompat.frontends.ProgramScript` if the job is a program.

    Raises:
        ScriptError: The text contains no statement, or is not in its language.
    """
    if job.language == "sql":
        return parse_script(job.script, job.source, like)
    front_end: Callable[..., Script] = import_module(FRONT_ENDS[job.language]).read
    return front_end(job, catalog, decided) if decided else front_end(job, catalog)


@dataclass(frozen=True)
class Unread:
    """A part of a program that was not read. ``reason`` never quotes the source.

    ``refused`` is True if Flink refuses the part.
    """

    span: Span
    reason: str
    refused: bool = False


@dataclass(frozen=True)
class Note:
    """A part of a program that Flink accepts, but with an unexpected meaning.

    ``last`` is the last version of open-source Flink that accepts the part: "" for none, None for all.
    """

    span: Span
    text: str
    last: str | None = None


@dataclass(frozen=True)
class WindowUse:
    """The use of a Table API window in a query.

    ``call`` is TUMBLE, HOP, SESSION or OVER. ``time`` is the time column. ``lengths`` are in milliseconds or rows, in
    the order of the SQL call. ``fields`` are the selected properties of the window.
    """

    span: Span
    call: str
    time: str
    lengths: tuple[int, ...] = ()
    alias: str = ""
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProgramStatement(Statement):
    """An SQL statement that is equivalent to Table API calls.

    ``query_steps`` contains the Table API operations of each query, in order. ``function_kind`` is the kind of the
    declared function.
    """

    query_steps: tuple[tuple[str, ...], ...] = ()
    function_kind: str = ""

    def steps_of(self, query: exp.Expr) -> tuple[str, ...]:
        """The Table API operations of a query in this statement."""
        queries = self.tree.expressions if isinstance(self.tree, nodes.StatementSet) else [self.tree]
        return next((steps for tree, steps in zip(queries, self.query_steps, strict=False) if tree is query), ())


@dataclass(frozen=True)
class ProgramScript(Script):
    """A program as a script, with its statements in order and facts about the program.

    ``unread`` are the parts that were not read. ``notes`` and ``windows`` are in the order of the program.
    ``undecided`` are the conditions on inputs whose outcome is unknown. ``inputs`` are the names that statements
    contain for values that only the environment knows. ``opaque`` is a digest of the program if parts of it are opaque,
    such as DataStreams; else "".
    """

    unread: tuple[Unread, ...] = ()
    notes: tuple[Note, ...] = ()
    windows: tuple[WindowUse, ...] = ()
    undecided: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    opaque: str = ""
