"""Front ends: scripts and programs as SQL statements; a program is read as text and never runs.

Each language other than SQL has a front end, a module with a function ``read`` in :data:`FRONT_ENDS`. It is imported on
first use: a check of SQL loads none. A program is read as a :class:`ProgramScript`: statements with the calls that made
them, unread parts, notes and windows.
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
"""The module whose ``read(job, catalog)`` reads a language other than SQL."""


def read(
    job: JobSpec, catalog: Script | None = None, like: Script | None = None, decided: Mapping[str, bool] | None = None
) -> Script:
    """Read the statements of a job.

    Args:
        job: The job.
        catalog: Declares tables that a program may use and does not declare; not used for SQL.
        like: Another script; equal statements of SQL share its trees.
        decided: The outcome of conditions on inputs of a Python program, by name.

    Returns:
        The script; a :class:`~airflow_flinkcompat.frontends.ProgramScript` where the job is a program.

    Raises:
        ScriptError: The text holds no statement, or is not of its language.
    """
    if job.language == "sql":
        return parse_script(job.script, job.source, like)
    front_end: Callable[..., Script] = import_module(FRONT_ENDS[job.language]).read
    return front_end(job, catalog, decided) if decided else front_end(job, catalog)


@dataclass(frozen=True)
class Unread:
    """A part of a program that was not read; ``reason`` never quotes the source.

    ``refused`` is true where Flink refuses the part.
    """

    span: Span
    reason: str
    refused: bool = False


@dataclass(frozen=True)
class Note:
    """A part of a program that Flink accepts although it may not mean what it seems to.

    ``last`` is the last version of open-source Flink that accepts it, "" for none, None for all.
    """

    span: Span
    text: str
    last: str | None = None


@dataclass(frozen=True)
class WindowUse:
    """The use of a window of the Table API in a query.

    ``call`` is TUMBLE, HOP, SESSION or OVER, ``time`` the column it is on, ``lengths`` are in milliseconds or rows as
    the call of SQL has them, ``fields`` the properties that are selected of it.
    """

    span: Span
    call: str
    time: str
    lengths: tuple[int, ...] = ()
    alias: str = ""
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProgramStatement(Statement):
    """A statement that is the equivalent of calls of the Table API.

    ``query_steps`` are, for each of its queries in order, the operations of the Table API that it came through;
    ``function_kind`` is the kind of the function that it declares.
    """

    query_steps: tuple[tuple[str, ...], ...] = ()
    function_kind: str = ""

    def steps_of(self, query: exp.Expr) -> tuple[str, ...]:
        """The operations of the Table API that made a query of this statement."""
        queries = self.tree.expressions if isinstance(self.tree, nodes.StatementSet) else [self.tree]
        return next((steps for tree, steps in zip(queries, self.query_steps, strict=False) if tree is query), ())


@dataclass(frozen=True)
class ProgramScript(Script):
    """A program as a script: its statements in order, and facts about the program itself.

    ``unread`` are parts that were not read, ``notes`` and ``windows`` are in the order of the program. ``undecided``
    are conditions on inputs that the program depends on. ``inputs`` are values that only the environment knows, by
    their names in the statements. ``opaque`` is a digest of the program where parts of it are opaque, above all
    DataStreams; empty if none is.
    """

    unread: tuple[Unread, ...] = ()
    notes: tuple[Note, ...] = ()
    windows: tuple[WindowUse, ...] = ()
    undecided: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    opaque: str = ""
