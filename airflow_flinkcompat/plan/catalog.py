"""Names in a script: tables, views, functions, and the statements that change their meaning.

The environment grows statement by statement, like Flink's session. A view is bound when it is created, and a setting
applies to all later statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from operator import attrgetter

from sqlglot import exp

from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.model import FunctionDeclaration, NormalForm, Span
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.nodes import Node, Table, dotted
from airflow_flinkcompat.plan.program import Text
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
from airflow_flinkcompat.sql import Script, nodes
from airflow_flinkcompat.sql.normal_form import normal_form, unquoted

Path = tuple[str, str, str]


class BindError(ValueError):
    """A construct that the plan cannot analyse; ``reason`` is a code, and ``message`` is for users."""

    def __init__(self, reason: str, message: str, span: Span | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.span = span


@dataclass(frozen=True)
class View:
    """A view, bound when it was created; ``error`` is the reason why binding failed.

    ``steps`` are the view's operations of the Table API.
    """

    node: Node | None
    text: Text
    error: BindError | None = None
    steps: tuple[str, ...] = ()


_CATALOG, _DATABASE = "default_catalog", "default_database"
# Flink's table functions for windows and UNNEST, including those of the legacy GROUP BY.
_OWN_TABLE_FUNCTIONS = frozenset({"TUMBLE", "HOP", "CUMULATE", "SESSION", "UNNEST"})
# The default database of a catalog, by type of the catalog.
_DEFAULT_DATABASES = {"generic_in_memory": "default", "hive": "default", "iceberg": "default", "paimon": "default"}


@dataclass(frozen=True)
class Namespace:
    """The current catalog and database, which resolve names.

    The initial ``default_catalog`` and ``default_database`` are written as "". The default database of every other
    catalog is also written as "", so that a table has the same path in every spelling. ``defaults`` are the default
    databases of the catalogs that the script creates.
    """

    catalog: str = ""
    database: str = ""
    defaults: tuple[tuple[str, str], ...] = ()

    def path(self, name: exp.Expression) -> Path:
        """The path of a dotted name. Raises :class:`BindError` for a name of more than three parts."""
        parts = [str(part.this) for part in name_parts(name)]
        if len(parts) > 3:
            raise BindError("name", f"a name has at most three parts: {'.'.join(parts)}")
        namespace = self
        if len(parts) == 3:
            namespace = self._at(*parts[:2])
        elif len(parts) == 2:
            namespace = self._at(self.catalog, parts[0])
        return namespace.catalog, namespace.database, parts[-1]

    def use(self, kind: str, names: list[str]) -> Namespace | None:
        """The namespace after ``USE [CATALOG] names``; None if the names are invalid."""
        if kind == "CATALOG" and len(names) == 1:
            return self._at(names[0], "")
        if kind == "DATABASE" and len(names) in (1, 2):
            return self._at(*([self.catalog, *names][-2:]))
        return None

    def with_catalog(self, name: str, given: Mapping[str, str]) -> Namespace:
        """The namespace after a catalog with these options is created."""
        default = given.get("default-database") or _DEFAULT_DATABASES.get(given.get("type", ""))
        if default is None:
            return self
        return replace(self, defaults=tuple({**dict(self.defaults), name: default}.items()))

    def _at(self, catalog: str, database: str) -> Namespace:
        catalog = "" if catalog == _CATALOG else catalog
        default = dict(self.defaults).get(catalog, "") if catalog else _DATABASE
        return replace(self, catalog=catalog, database="" if database == default else database)

    def normal_form(self, tree: exp.Expr) -> NormalForm:
        """The normal form of a statement or query, with paths of tables and user functions."""
        resolved = tree.copy()
        for call in list(resolved.find_all(exp.Anonymous)):
            self._resolve_call(call)
        for function in resolved.find_all(nodes.TableFunction):
            if not (isinstance(function.this, exp.Identifier) and function.this.name.upper() in _OWN_TABLE_FUNCTIONS):
                function.set("this", exp.to_identifier(dotted(self.path(function.this)).lower()))
        return replace(normal_form(resolved, self.path), text=tree.sql(dialect="flink", comments=False))

    def _resolve_call(self, call: exp.Anonymous) -> None:
        """Name a function by its path. Only a name without a database can be a function of Flink."""
        written = call.name
        qualified = call.parent if isinstance(call.parent, exp.Dot) and call.arg_key == "expression" else None
        own = functions.lookup(written.upper()) is not None or written.upper() in _OWN_TABLE_FUNCTIONS
        if qualified is None and not own:
            call.set("this", dotted((self.catalog, self.database, written)))
        elif qualified is not None and not own and (name := qualified_name(qualified.this, written)) is not None:
            call.set("this", dotted(self.path(name)))
            qualified.replace(call)

    def __str__(self) -> str:
        return ".".join((self.catalog, self.database)).strip(".")


@dataclass
class Environment:
    """The session while a script is read: current namespace, settings, and declarations so far."""

    settings: dict[str, str] = field(default_factory=dict)
    namespace: Namespace = field(default_factory=lambda: Namespace())
    tables: dict[Path, Table] = field(default_factory=dict)
    views: dict[Path, View] = field(default_factory=dict)
    functions: dict[str, FunctionDeclaration] = field(default_factory=dict)
    scripts: Sequence[Script] = ()
    """The scripts of the session. Any column name in these scripts may belong to an undeclared table."""
    undeclared: set[Path | str] = field(default_factory=set)
    """Tables (by path) and functions (by lower-case name) that were used before their declaration."""

    def path(self, table: exp.Expression) -> Path:
        """The full path of a name. Raises :class:`BindError` for a name of more than three parts."""
        return self.namespace.path(table)

    def table(self, path: Path, span: Span | None) -> Table:
        """The declared table, or an undeclared table with all column names of the script."""
        declared = self.tables.get(path)
        if declared is not None:
            return replace(declared, span=span)
        self.undeclared.add(path)
        names = tuple(map(attrgetter("name"), self.mentioned))
        return Table(path, self.mentioned, names, declared=False, span=span)

    @cached_property
    def mentioned(self) -> tuple[Column, ...]:
        """A column for each name in the scripts that may be a column."""
        named: frozenset[str] = frozenset().union(
            *(e.column_names for script in self.scripts for e in script.statements)
        )
        return tuple(map(Column, sorted(named), repeat(UNKNOWN)))

    def function(self, name: str) -> FunctionDeclaration | None:
        """The declaration of a function. Flink ignores the case of function names.

        A name without a database refers to a function of the session or of the current database.
        """
        if self.functions:
            own = dotted((self.namespace.catalog, self.namespace.database, name)).lower()
            declared = self.functions.get(name.lower()) or self.functions.get(own)
            if declared is not None:
                return declared
        self.undeclared.add(name.lower())
        return None

    def ask_for_all(self, tree: exp.Expr) -> None:
        """Look up every table and function of a query that cannot be analysed, so that their use is recorded."""
        for node in tree.walk():
            if isinstance(node, exp.Table) and self.path(node) not in self.views:
                self.table(self.path(node), None)
            elif isinstance(node, exp.Anonymous):
                self.function(node.name)


def qualified_name(qualifier: exp.Expression, name: str) -> exp.Expression | None:
    """The function name with its qualifier; None if the qualifier is no name of a database or catalog."""
    if not all(isinstance(part, exp.Dot | exp.Column | exp.Identifier) for part in qualifier.walk()):
        return None
    return exp.Dot.build([*(part.copy() for part in name_parts(qualifier)), exp.to_identifier(name)])


def name_parts(name: exp.Expression) -> list[exp.Identifier]:
    """The identifiers of a dotted name, outermost first."""
    match name:
        case exp.Table() | exp.Column():
            return [part for part in name.parts if isinstance(part, exp.Identifier)]
        case exp.Dot():
            return [*name_parts(name.this), *name_parts(name.expression)]
        case exp.Identifier():
            return [name]
    return []


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
    "VARCHAR": STRING.parameters,
    "BINARY": (1,),
    "VARBINARY": BYTES.parameters,
    "TIMESTAMP": (6,),
    "TIMESTAMP_LTZ": (6,),
    "TIME": (0,),
}
_SYNONYMS = {"NUMERIC": "DECIMAL", "DEC": "DECIMAL", "CHARACTER": "CHAR"}


def data_type(tree: exp.Expression | None) -> DataType:
    """The Flink type of a type tree, without synonyms; UNKNOWN for RAW, structured and user types."""
    if not isinstance(tree, nodes.FlinkType):
        return UNKNOWN
    name = _SYNONYMS.get(str(tree.this), str(tree.this))
    nullable = not tree.args.get("not_null")
    parts = tree.expressions
    if name in _SIMPLE:
        return _SIMPLE[name].with_nullability(nullable)
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
    # Keep the text of the type, so that two different types stay different.
    return replace(UNKNOWN, names=(unquoted(tree),))


def options(trees: list[exp.Expression] | None) -> tuple[tuple[str, str], ...]:
    """Options of WITH or a hint as sorted (key, value) pairs, because their order has no effect."""
    found = {option.this.name: option.expression.name for option in trees or () if isinstance(option, nodes.Option)}
    return tuple(sorted(found.items()))
