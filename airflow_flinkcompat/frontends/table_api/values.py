"""Values of a program during reading: constants, tables, windows, inputs and unknown values.

A value only describes an object of the program, because no code of the program ever runs. An input is a value that only
the environment knows. In a text, the name of an input is between two marks, which no source contains. In SQL, the input
is written as ``${name}``.
"""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass, field
from typing import Any


class NotRead(Exception):
    """A part of a program is not supported. ``node`` is the place; the message never quotes the source."""

    node: ast.AST | None = None


class TooMuch(Exception):
    """A program exceeds a limit for reading."""


@dataclass(frozen=True)
class Const:
    """A text, number, bool or None; ``origin`` is the literal in the source, if any."""

    value: str | int | float | bool | None
    origin: ast.Constant | None = field(default=None, compare=False, repr=False)


@dataclass(eq=False)
class Container:
    """A list, tuple or dictionary (``kind``); ``broken`` is the reason why the content is unknown."""

    value: list[Any] | dict[Any, Any]
    broken: str = ""
    kind: str = "list"


class Asked(str):
    """The reason why a value is unknown, with the command-line option that sets the value."""

    def __new__(cls, why: str, variable: str) -> Asked:
        given = f"{variable}=…"
        return super().__new__(cls, f"{why}: give --var {repr(given) if '[' in variable else given}")


@dataclass(frozen=True)
class UnknownValue:
    """An unknown value; if ``tables`` is True, it may be a table or act on tables.

    ``name`` is the expression of an input; "" if the value is not an input. ``quiet`` is True if the methods of the
    value have no effects outside of it.
    """

    reason: str
    tables: bool = False
    name: str = ""
    quiet: bool = False


@dataclass(frozen=True)
class Ref:
    """Dotted name of an import or builtin, such as ``pyflink.table.expressions.col``."""

    path: str

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def module(self) -> str:
        return self.path.partition(".")[0]


INPUT_BEGINS, INPUT_ENDS = "\ue000", "\ue001"
"""Marks before and after the name of an input in a text."""
NUMBER_LIMIT = 2**63
"""Exclusive upper limit of the numbers in a program."""
Constant = str | int | float | bool | None


def bounded(value: Constant) -> Const:
    """Make a constant. Raises :class:`TooMuch` if the value exceeds a limit."""
    if isinstance(value, str) and len(value) > TEXT_LIMIT:
        raise TooMuch(f"a text grows beyond {TEXT_LIMIT} characters")
    if isinstance(value, int) and abs(value) >= NUMBER_LIMIT:
        raise TooMuch("a number grows beyond 64 bits")
    return Const(value)


@dataclass(frozen=True)
class Path:
    """A path of :mod:`pathlib`, as text."""

    text: str


class LanguageObject:
    """Base class for objects of the program's language, such as functions and classes."""


TEXT_LIMIT = 200_000
"""Maximum number of characters of one text of a program."""
EXPRESSION_LIMIT = 2_000
"""Maximum number of parts of one expression."""


@dataclass(frozen=True)
class Settings:
    """EnvironmentSettings or its builder, with its options."""

    batch: bool = False
    options: tuple[tuple[str, str], ...] = ()


@dataclass(eq=False)
class ConfigurationValue:
    """A Configuration outside of an environment."""

    values: dict[str, str] = field(default_factory=dict)

    def items(self) -> tuple[tuple[str, str], ...]:
        return tuple(self.values.items())


@dataclass(frozen=True)
class StreamEnvironment:
    """A StreamExecutionEnvironment."""


@dataclass(frozen=True)
class TableEnvironment:
    """The table environment."""


@dataclass(frozen=True)
class Config:
    """The configuration of the table environment, or of its checkpoints."""


@dataclass(frozen=True)
class JobResult:
    """The result of a started job."""


@dataclass(frozen=True)
class Expr:
    """A Table API expression, with its kind and its parts."""

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
    """A data type in SQL; ``fields`` are the names and types of the fields of a row type."""

    sql: str
    fields: tuple[tuple[str, str], ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Spec:
    """A window (``Tumble``, ``Slide``, ``Session``, ``Over``) with the calls that define it."""

    kind: str
    calls: tuple[tuple[str, tuple[Expr, ...]], ...] = ()
    alias: str = ""

    def get(self, name: str) -> tuple[Expr, ...] | None:
        return dict(self.calls).get(name)


@dataclass(frozen=True)
class TableValue:
    """A table as the ``source`` of a FROM clause with conditions ``where``, or as a ``query``.

    ``steps`` are the Table API operations that created the table. ``epoch`` is the session's ``epoch`` at the table's
    creation. ``rowtime`` is the column for which FLIP-11's keyword ``'rowtime`` stands: "" if the table has no event
    time, None if unknown. ``columns`` are the names of the columns, or None if the names are unknown.
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
class GroupedTable:
    """A table between ``window``, ``over_window`` or ``group_by`` and its ``select``.

    ``others`` are additional row windows of one call, which only FLIP-11 supports.
    """

    table: TableValue
    window: Spec | None = None
    over: Spec | None = None
    others: tuple[Spec, ...] = ()
    keys: tuple[Expr, ...] | None = None


@dataclass(eq=False)
class Inserts:
    """A statement set, with its INSERTs as (SQL, steps, epoch), and the node that created it."""

    node: ast.AST
    inserts: list[tuple[str, tuple[str, ...], int]] = field(default_factory=list)


@dataclass(frozen=True)
class TablePipeline:
    """An INSERT of ``insert_into`` that is not executed yet."""

    sql: str
    steps: tuple[str, ...]
    epoch: int


@dataclass(frozen=True)
class SchemaValue:
    """A Schema or its builder, with the lines of a column list and the names of the columns."""

    lines: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class DescriptorValue:
    """A TableDescriptor or FormatDescriptor (``kind`` is ``table`` or ``format``), or its builder."""

    kind: str
    options: tuple[tuple[str, str], ...]
    shape: SchemaValue | None = None
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Udf:
    """A Python function for Flink, with its name, its kind, and a digest of its source text."""

    name: str
    kind: str
    digest: str


@dataclass(frozen=True)
class Stream:
    """A DataStream, or an object that only DataStreams use."""


Described = (
    Settings | StreamEnvironment | TableEnvironment | Config | JobResult | Expr | Type | Spec | TableValue
    | GroupedTable | Inserts | TablePipeline | SchemaValue | DescriptorValue | Udf | Stream | ConfigurationValue
)  # fmt: skip
Value = Const | Container | UnknownValue | Ref | Path | LanguageObject | Described


MARKED = re.compile(f"{INPUT_BEGINS}([^{INPUT_ENDS}]*){INPUT_ENDS}")
_TOKEN = re.compile(
    rf"'(?:[^']|'')*'|`[^`]*`|--[^\n]*|/\*.*?\*/|(?P<bare>\w*(?:{INPUT_BEGINS}[^{INPUT_ENDS}]*{INPUT_ENDS}\w*)+)",
    re.DOTALL,
)
_NAMES_SOMETHING = re.compile(r"(\b(FROM|JOIN|INTO|OVERWRITE|TABLE|EXISTS|VIEW|CATALOG|DATABASE|USE)\s+|\.)\Z", re.I)
"""Keywords before the name of a table, catalog or database."""


def shown(name: str) -> str:
    """Remove characters from a name that could end a text in SQL, and add a digest if there are any."""
    plain = re.sub(r"[^\w./:\[\]=~ -]", "", name)
    return plain if plain == name and len(name) <= 120 else f"{plain[:120]}~{digest(name)}"


def digest(text: str) -> str:
    """A short digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def marked(name: str) -> str:
    """The text that stands for an input, with its marked name."""
    return f"{INPUT_BEGINS}{name}{INPUT_ENDS}"


def names(text: str) -> list[str]:
    """The names of the inputs in a text."""
    return [match[1] for match in MARKED.finditer(text)]


def placeholders(text: str) -> str:
    """Replace each input in a text with ``${name}``."""
    return MARKED.sub(lambda match: f"${{{shown(match[1])}}}", text) if INPUT_BEGINS in text else text


def in_sql(text: str) -> str:
    """SQL with placeholders for inputs that are text literals or names of tables.

    Raises :class:`NotRead` for an input at any other place, because it may be any SQL.
    """
    return _TOKEN.sub(_placed, text) if INPUT_BEGINS in text else text


def _placed(token: re.Match[str]) -> str:
    text = placeholders(token.group())
    if token["bare"] is None:
        return text
    if _NAMES_SOMETHING.search(token.string[max(token.start() - 40, 0) : token.start()]):
        return f"`{text}`"
    (first, *_) = names(token.group())
    raise NotRead(f"the SQL is unknown: {shown(first)} is unknown, and is neither a text nor a name in the SQL")
