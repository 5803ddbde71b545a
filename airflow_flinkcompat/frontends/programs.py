"""What reading a program tells beside its SQL: a script whose statements know the calls that they were made by."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from airflow_flinkcompat.model import Span
from airflow_flinkcompat.sql import Script, Statement, nodes


@dataclass(frozen=True)
class Unread:
    """A part of a program that may hold statements and was not understood; ``reason`` never quotes the source.

    ``refused``: it was understood, and Flink refuses it.
    """

    span: Span
    reason: str
    refused: bool = False


@dataclass(frozen=True)
class Note:
    """What Flink takes without a word although it may not mean what it seems to say.

    ``last``: the last version of open-source Flink that takes it, "" where none does, None where all do.
    """

    span: Span
    text: str
    last: str | None = None


@dataclass(frozen=True)
class WindowUse:
    """A window of the Table API where a query is made of it.

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
    """A statement that calls of the Table API stand for.

    ``query_steps`` are, for each of its queries in order, the operations of the Table API that it came through;
    ``function_kind`` is the kind of the function that it declares.
    """

    query_steps: tuple[tuple[str, ...], ...] = ()
    function_kind: str = ""

    def steps_of(self, query: exp.Expr) -> tuple[str, ...]:
        """The operations of the Table API that a query of this statement came through."""
        queries = self.tree.expressions if isinstance(self.tree, nodes.StatementSet) else [self.tree]
        return next((steps for tree, steps in zip(queries, self.query_steps, strict=False) if tree is query), ())


@dataclass(frozen=True)
class ProgramScript(Script):
    """A program as a script: its statements in order, and what there is to say of the program itself.

    ``unread`` are the parts of it that are no statements, ``notes`` and ``windows`` stand in the order they were read.
    ``undecided`` are the conditions on what only its environment knows, on which it depends what is read; ``inputs``
    are the values that only the environment knows, by the names they have in the statements. ``opaque`` is a digest of
    all that parts rest on that are not looked into, DataStreams above all; empty where there are none.
    """

    unread: tuple[Unread, ...] = ()
    notes: tuple[Note, ...] = ()
    windows: tuple[WindowUse, ...] = ()
    undecided: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    opaque: str = ""
