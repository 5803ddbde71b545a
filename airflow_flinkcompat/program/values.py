"""What a name of a program stands for while it is read: constants, tables, windows, and what is not known.

Nothing here is an object of the program: it is a description of one, and no code of the program ever runs.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from airflow_flinkcompat.program.objects import (
    Arguments,
    Class,
    File,
    Function,
    Instance,
    Module,
    Path,
    Super,
    Template,
)


class NotRead(Exception):
    """Something that touches tables and is not understood; the message says what, without quoting the source."""


class TooMuch(Exception):
    """The program asks for more work than a program may."""


@dataclass(frozen=True)
class Known:
    """A text, number, bool or None; ``origin`` is the literal it was written as, where it is one."""

    value: str | int | float | bool | None
    origin: ast.Constant | None = field(default=None, compare=False, repr=False)


@dataclass(eq=False)
class Items:
    """A list, tuple or dictionary; ``broken`` says why its content is no longer known, for all who share it.

    ``kind`` is what type Python would name; an ``iterator`` gives its values once. ``views`` are the lists made of a
    dictionary's keys or values, which change with it. ``moment`` says when an iterator was made.
    """

    value: list[Any] | dict[Any, Any]
    broken: str = ""
    kind: str = "list"
    views: list[Items] = field(default_factory=list)
    moment: int = -1

    def change(self) -> None:
        """Whoever goes through keys or values of this dictionary is no longer right."""
        for view in self.views:
            view.broken = "the dictionary it was made of was changed"
        self.views.clear()


@dataclass(frozen=True)
class Unknown:
    """A value that is not known. ``tables``: it may be a table, or something that acts on tables."""

    reason: str
    tables: bool = False


@dataclass(frozen=True)
class Ref:
    """A name of an imported module, dotted: ``pyflink.table.expressions.col``; a builtin is ``builtins.print``."""

    path: str

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def module(self) -> str:
        return self.path.partition(".")[0]


TEXT_LIMIT = 200_000
"""Characters of one text of a program: no query is that long."""
EXPRESSION_LIMIT = 2_000
"""Parts of one expression."""
EVERYTHING = "*"
"""Stands in a module for all the names that ``from … import *`` may have bound."""


@dataclass(eq=False)
class Frame:
    """The names of a module or of one call of a function; ``outer`` is where the others are looked up."""

    names: dict[str, Value] = field(default_factory=dict)
    outer: Frame | None = None
    elsewhere: dict[str, Frame] = field(default_factory=dict)
    """Names that a ``global`` or ``nonlocal`` statement leaves to another frame."""
    function: Function | None = None
    """The function whose call this is."""
    file: str = ""
    """Of a module, where its text lies: empty for the program itself."""
    package: str = ""
    """Of a module, the package that ``from . import`` starts at."""
    doubt: str = ""
    """Of a call, why what it returns is not known, whatever that is."""
    of_class: bool = False
    """Whether these are the names of a class while its body is read: no function in it sees them."""

    @property
    def around(self) -> Frame:
        """Where a function or a comprehension that stands here looks its names up."""
        return self if not self.of_class or self.outer is None else self.outer.around

    @property
    def module(self) -> Frame:
        return self if self.outer is None else self.outer.module

    def find(self, name: str) -> Value | None:
        """The value of a name; None where nothing binds it, and nothing could have by an import of everything."""
        scope: Frame | None = self
        while scope is not None:
            scope = scope.elsewhere.get(name, scope)
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return self.module.names.get(EVERYTHING)

    def bind(self, name: str, value: Value) -> None:
        """Bind a name here, or where a ``global`` or ``nonlocal`` statement says."""
        self.elsewhere.get(name, self).names[name] = value


@dataclass(frozen=True)
class Settings:
    """EnvironmentSettings, finished or not, and the options it was given."""

    batch: bool = False
    options: tuple[tuple[str, str], ...] = ()


@dataclass(eq=False)
class Options:
    """A Configuration that belongs to no environment yet."""

    values: dict[str, str] = field(default_factory=dict)

    def items(self) -> tuple[tuple[str, str], ...]:
        return tuple(self.values.items())


@dataclass(frozen=True)
class Streams:
    """A StreamExecutionEnvironment."""


@dataclass(frozen=True)
class Tables:
    """The table environment."""


@dataclass(frozen=True)
class Config:
    """The configuration of the table environment, or of its checkpoints."""

    checkpoints: bool = False


@dataclass(frozen=True)
class Result:
    """What a started job answers."""


@dataclass(frozen=True)
class Expr:
    """An expression of the Table API: a kind and its parts (``table_api.expressions`` makes them)."""

    kind: str
    parts: tuple[Any, ...]
    size: int = field(init=False, compare=False, repr=False, default=1)

    def __post_init__(self) -> None:
        inner = (*self.parts, *(arg for part in self.parts if isinstance(part, tuple) for arg in part))
        size = 1 + sum(part.size for part in inner if isinstance(part, Expr))
        if size > EXPRESSION_LIMIT:
            raise TooMuch(f"an expression grows beyond {EXPRESSION_LIMIT} parts")
        object.__setattr__(self, "size", size)


@dataclass(frozen=True)
class Type:
    """A data type, as SQL writes it."""

    sql: str


@dataclass(frozen=True)
class Spec:
    """A window (``Tumble``, ``Slide``, ``Session``, ``Over``) and what was said of it, by method."""

    kind: str
    said: tuple[tuple[str, tuple[Expr, ...]], ...] = ()
    alias: str = ""

    def get(self, name: str) -> tuple[Expr, ...] | None:
        return dict(self.said).get(name)


@dataclass(frozen=True)
class Relation:
    """A table: ``source`` stands behind FROM, ``where`` are the conditions on it, ``query`` is the same as a query.

    ``steps`` are the operations of the Table API it came through, ``epoch`` counts the names that were declared anew
    before it was made. ``rowtime`` is the column that FLIP-11's keyword means: empty where the table has no event time,
    None where that is not known. ``columns`` are the names of the columns, None where they are not known.
    """

    source: str
    where: tuple[str, ...] = ()
    query: str = ""
    steps: tuple[str, ...] = ()
    epoch: int = 0
    rowtime: str | None = None
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.source) + len(self.query) + sum(map(len, self.where)) > 2 * TEXT_LIMIT:
            raise TooMuch(f"a query grows beyond {TEXT_LIMIT} characters")

    @property
    def sql(self) -> str:
        """The table as a query."""
        if self.query and not self.where:
            return self.query
        condition = " WHERE " + " AND ".join(f"({part})" for part in self.where) if self.where else ""
        return f"SELECT * FROM {self.source}{condition}"


@dataclass(frozen=True)
class Prepared:
    """A table on which ``window``, ``over_window`` or ``group_by`` was called and ``select`` not yet.

    ``others`` are further row windows of one call, which only FLIP-11 has.
    """

    table: Relation
    window: Spec | None = None
    over: Spec | None = None
    others: tuple[Spec, ...] = ()
    keys: tuple[Expr, ...] | None = None


@dataclass(eq=False)
class Inserts:
    """A statement set: its INSERTs as (SQL, steps, epoch), and where it was made."""

    node: ast.AST
    inserts: list[tuple[str, tuple[str, ...], int]] = field(default_factory=list)


@dataclass(frozen=True)
class Pipe:
    """``insert_into``: an INSERT that is not executed yet."""

    sql: str
    steps: tuple[str, ...]
    epoch: int


@dataclass(frozen=True)
class Shape:
    """A Schema, or its builder: the lines of a column list, and the names of the columns."""

    lines: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Descriptor:
    """A TableDescriptor, a FormatDescriptor, or the builder of one: ``kind`` is ``table`` or ``format``."""

    kind: str
    options: tuple[tuple[str, str], ...]
    shape: Shape | None = None
    keys: tuple[str, ...] = ()
    clause: str = ""
    comment: str = ""


@dataclass(frozen=True)
class Udf:
    """A Python function for Flink: its name in the program, its kind, and a digest of its source text."""

    name: str
    kind: str
    digest: str


@dataclass(frozen=True)
class Stream:
    """A DataStream, or a part of one: nothing of it is read."""


Described = (
    Settings | Streams | Tables | Config | Result | Expr | Type | Spec | Relation | Prepared | Inserts | Pipe | Shape
    | Descriptor | Udf | Stream | Options
)  # fmt: skip
Value = (
    Known | Items | Unknown | Ref | Function | Class | Instance | Super | Module | Path | File | Template | Arguments
    | Described
)  # fmt: skip
