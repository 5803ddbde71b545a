"""A whole script as a plan: its pipelines, tables, settings and other statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_flinkcompat.frontends import Note, WindowUse
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.model import FunctionDeclaration, NormalForm, Span
from airflow_flinkcompat.plan.nodes import Node, Scan, Sink, Table
from airflow_flinkcompat.sql import Statement, nodes
from airflow_flinkcompat.sql.normal_form import normal_form, unquoted
from airflow_flinkcompat.sql.script import span_of
from airflow_flinkcompat.sql.type_parser import USER_TYPE, meant_type

REFUSED = "refused"
"""Reason of a :class:`Problem`: Flink refuses the program."""
REFUSED_NAME = "refused-name"
"""Reason of a :class:`Problem`: Flink refuses a name that already exists or is missing."""
INVALID = "invalid-query"
"""Reason of a :class:`Problem`: Flink refuses the query, whatever its tables are."""
REFUSALS = frozenset({REFUSED, REFUSED_NAME, INVALID})


ELSEWHERE = ("program", "plan-file")
"""Reasons of a :class:`Problem` after which equal text may refer to different objects."""


@dataclass(frozen=True)
class OtherStatement:
    """A statement outside of any pipeline (ADD JAR, CREATE CATALOG, ALTER TABLE …), compared as a whole.

    ``after`` is the position: the number of earlier queries and, for ALTER and DROP, all names declared so far,
    because ALTER and DROP change the meaning of these names. ``subject`` is the named object: a kind such as
    ``TABLE`` or ``CATALOG``, and the path.
    """

    kind: str
    name: str
    text: str | NormalForm
    after: tuple[int | str, ...] = ()
    span: Span | None = field(default=None, compare=False)
    subject: tuple[str, str] = field(default=("", ""), compare=False)

    def __str__(self) -> str:
        return str(self.text)

    @property
    def queries_before(self) -> int:
        """The number of queries before this statement."""
        return int(self.after[0]) if self.after else 0

    @property
    def declared_before(self) -> frozenset[str]:
        """The tables and views declared before this statement, for ALTER and DROP."""
        return frozenset(str(name).removeprefix("temporary ") for name in self.after[1:])


@dataclass(frozen=True, eq=False)
class Text:
    """A statement that is compared by its normal form, which is only created if two texts differ.

    ``source`` is the statement as written, and ``make`` creates the normal form.
    """

    source: str = field(repr=False)
    make: Callable[[], NormalForm] = field(repr=False)

    @cached_property
    def normal(self) -> NormalForm:
        return self.make()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and (self.source == other.source or self.normal == other.normal)

    def __hash__(self) -> int:
        return hash(self.normal)

    def __str__(self) -> str:
        return str(self.normal)


@dataclass(frozen=True)
class Problem:
    """A statement that could not be read or bound: reason code, message and place.

    The message may contain the place, so it is not compared. ``malformed`` is True if Flink's parser also refuses the
    statement.
    """

    reason: str
    message: str = field(compare=False)
    text: str | NormalForm
    span: Span | None = field(default=None, compare=False)
    malformed: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Absence:
    """A name in a statement that refers to no object, or to an object of a different kind.

    Attributes:
        certain: False if a catalog outside of the script may contain the name.
    """

    message: str
    span: Span | None
    certain: bool


@dataclass(frozen=True)
class Pipeline:
    """An INSERT or SELECT with its sink, its settings, and the number of its statement set (or None).

    ``steps`` are the Table API operations of the query and its views; empty for plain SQL.
    """

    sink: Sink
    settings: tuple[tuple[str, str], ...]
    statement_set: int | None = None
    span: Span | None = field(default=None, compare=False)
    steps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """The content of a script: pipelines in order, declarations, other statements and problems.

    ``view_plans`` contains the plans of views that could be bound. ``notes``, ``windows``, ``opaque`` and ``inputs``
    have the same meaning as in the script of a program.
    """

    pipelines: tuple[Pipeline, ...]
    tables: tuple[Table, ...] = ()
    views: tuple[tuple[str, Text], ...] = ()
    functions: tuple[FunctionDeclaration, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    other_statements: tuple[OtherStatement, ...] = ()
    problems: tuple[Problem, ...] = ()
    absences: tuple[Absence, ...] = field(default=(), compare=False)
    view_plans: tuple[tuple[str, Node], ...] = field(default=(), compare=False)
    opaque: str = ""
    inputs: tuple[str, ...] = field(default=(), compare=False)
    notes: tuple[Note, ...] = field(default=(), compare=False)
    windows: tuple[WindowUse, ...] = field(default=(), compare=False)

    @cached_property
    def _tables(self) -> Mapping[str, Table]:
        return {table.name: table for table in reversed(self.tables)}

    def table(self, name: str) -> Table | None:
        """The declared table with a name.

        Args:
            name: The name of the table in the script.

        Returns:
            The table; None if the script declares no table with this name.
        """
        return self._tables.get(name)

    @cached_property
    def used_tables(self) -> frozenset[str]:
        """The names of the tables that the queries read or write."""
        sinks = [pipeline.sink for pipeline in self.pipelines]
        read = {node.table.name for sink in sinks for node in sink.nodes if isinstance(node, Scan)}
        return frozenset({sink.name for sink in sinks} | read)


def type_problems(statement: Statement) -> Iterator[Problem]:
    """Find types in a statement that Flink does not have.

    Tests with Flink 2.3 showed that it refuses each type that this function finds. A name with a database may be a
    type that is declared elsewhere, so its effect is unknown.
    """
    for node in statement.nodes:
        if not isinstance(node, nodes.FlinkType) or node.this != USER_TYPE:
            continue
        (name,) = node.expressions
        written, span = unquoted(name), span_of(node, statement)
        if isinstance(name, exp.Dot):
            reason = "user-type"
            words = f"the fields of the type {written} are unknown; write it as ROW<…> or STRUCTURED<…>"
        else:
            reason = REFUSED
            flink = f"Unknown identifier '{name.name}'"
            words = f"{written} is not a Flink type; {meant_type(name.name)} (Flink: {flink})"
        yield Problem(reason, words, normal_form(node), span)
