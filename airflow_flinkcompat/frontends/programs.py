"""Programs as scripts: statements with the calls that made them, unread parts, notes and windows."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from airflow_flinkcompat.model import Span
from airflow_flinkcompat.sql import Script, Statement, nodes


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
