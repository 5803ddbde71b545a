"""Names a script declares: tables, views, functions and what the statements around them say.

The environment grows statement by statement, as Flink's own session does: a view is bound where it is created, a
setting counts
from where it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from airflow_flinkcompat.plan.nodes import Node, Table
from airflow_flinkcompat.plan.program import FunctionDeclaration, Text
from airflow_flinkcompat.plan.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    UNKNOWN,
    Column,
    DataType,
)
from airflow_flinkcompat.sql import Span, Statement, nodes, span_of

Path = tuple[str, str, str]


class BindError(ValueError):
    """A construct the plan cannot take apart: a reason code, what it is, where it stands."""

    def __init__(self, reason: str, message: str, span: Span | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.span = span


@dataclass(frozen=True)
class View:
    """A view as bound where it was created; ``error`` says why it could not be.

    ``steps`` are the operations of the Table API it came through.
    """

    node: Node | None
    text: Text
    error: BindError | None = None
    steps: tuple[str, ...] = ()


@dataclass
class Environment:
    """The session while a script is read: current catalog and database, settings and everything declared so far."""

    settings: dict[str, str] = field(default_factory=dict)
    catalog: str = ""
    database: str = ""
    tables: dict[Path, Table] = field(default_factory=dict)
    views: dict[Path, View] = field(default_factory=dict)
    functions: dict[str, FunctionDeclaration] = field(default_factory=dict)
    mentioned: Callable[[], frozenset[str]] = frozenset
    """Column names written anywhere in the script: the possible columns of a table nobody declares."""
    undeclared: set[Path | str] = field(default_factory=set)
    """Tables by path and functions by name (lower case) that were asked for before anything declared them."""

    def path(self, table: exp.Expression) -> Path:
        """The fully qualified path of a name, as far as the script says it."""
        parts = [part.name for part in name_parts(table)]
        if len(parts) > 3:
            raise BindError("name", f"a name has at most three parts: {'.'.join(parts)}")
        if len(parts) == 3:
            return parts[0], parts[1], parts[2]
        if len(parts) == 2:
            return self.catalog, parts[0], parts[1]
        return self.catalog, self.database, parts[0]

    def table(self, path: Path, span: Span | None) -> Table:
        """The declared table, or an undeclared one whose columns are whatever the script mentions, types unknown."""
        declared = self.tables.get(path)
        if declared is not None:
            return replace(declared, span=span)
        self.undeclared.add(path)
        columns = tuple(Column(name, UNKNOWN) for name in sorted(self.mentioned()))
        return Table(path, columns, tuple(column.name for column in columns), declared=False, span=span)

    def function(self, name: str) -> FunctionDeclaration | None:
        """The declaration of a function; Flink finds functions whatever their case."""
        declared = self.functions.get(name.lower())
        if declared is None:
            self.undeclared.add(name.lower())
        return declared

    def ask_for_all(self, tree: exp.Expr) -> None:
        """Look up every table and function of a tree that is kept whole, so that they count as asked for."""
        for node in tree.walk():
            if isinstance(node, exp.Table) and self.path(node) not in self.views:
                self.table(self.path(node), None)
            elif isinstance(node, exp.Anonymous):
                self.function(str(node.this))


def name_parts(name: exp.Expression) -> list[exp.Identifier]:
    """The identifiers of a dotted name, outermost first."""
    if isinstance(name, exp.Table):
        return [part for part in name.parts if isinstance(part, exp.Identifier)]
    return list(name.find_all(exp.Identifier))


_SIMPLE = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": TINYINT,
    "SMALLINT": SMALLINT,
    "INT": INT,
    "INTEGER": INT,
    "BIGINT": BIGINT,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "DATE": DATE,
    "STRING": STRING,
    "BYTES": BYTES,
}
_DEFAULT_PARAMETERS = {
    "DECIMAL": (10, 0),
    "CHAR": (1,),
    "VARCHAR": (1,),
    "BINARY": (1,),
    "VARBINARY": (1,),
    "TIMESTAMP": (6,),
    "TIMESTAMP_LTZ": (6,),
    "TIME": (0,),
}
_SYNONYMS = {"NUMERIC": "DECIMAL", "DEC": "DECIMAL", "CHARACTER": "CHAR"}


def data_type(tree: exp.Expression | None) -> DataType:
    """The Flink type a type tree writes, synonyms settled; UNKNOWN for RAW, structured and user-defined types."""
    if not isinstance(tree, nodes.FlinkType):
        return UNKNOWN
    name = _SYNONYMS.get(str(tree.this), str(tree.this))
    nullable = not tree.args.get("not_null")
    parts = tree.expressions
    if name in _SIMPLE:
        return replace(_SIMPLE[name], nullable=nullable)
    if name == "ROW":
        return DataType(
            "ROW",
            elements=tuple(data_type(part.args["kind"]) for part in parts),
            names=tuple(part.name for part in parts),
            nullable=nullable,
        )
    if name in ("ARRAY", "MAP", "MULTISET"):
        return DataType(name, elements=tuple(data_type(part) for part in parts), nullable=nullable)
    if name in _DEFAULT_PARAMETERS:
        given = tuple(int(part.name) for part in parts if isinstance(part, exp.Literal) and not part.is_string)
        default = _DEFAULT_PARAMETERS[name]
        return DataType(name, given + default[len(given) :], nullable=nullable)
    # Kept as written, so that two of them differ.
    return replace(UNKNOWN, names=(tree.sql(dialect="flink"),))


def options(trees: list[exp.Expression] | None) -> tuple[tuple[str, str], ...]:
    """WITH or hint options as (key, value), sorted: their order says nothing."""
    found = {option.this.name: option.expression.name for option in trees or () if isinstance(option, nodes.Option)}
    return tuple(sorted(found.items()))


def place(tree: exp.Expr, statement: Statement) -> Span:
    """Where a tree stands in its script."""
    return span_of(tree, statement)
