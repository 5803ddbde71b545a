"""Binding of scalar expressions and aggregate calls of a syntax tree to the columns of a relation."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

from sqlglot import exp

from airflow_flinkcompat.lazy import cached_property, quick_init
from airflow_flinkcompat.model import Span
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.catalog import BindError, Environment, data_type, qualified_name
from airflow_flinkcompat.plan.expressions import (
    ACCESSES,
    AggregateCall,
    Expression,
    FunctionCall,
    InputRef,
    Literal,
    placed,
)
from airflow_flinkcompat.plan.intervals import interval
from airflow_flinkcompat.plan.nodes import dotted
from airflow_flinkcompat.plan.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    NULL,
    SYMBOL,
    UNKNOWN,
    Column,
    DataType,
    TimeAttribute,
    decimal,
)
from airflow_flinkcompat.sql import Statement, nodes
from airflow_flinkcompat.sql.script import span_of

GROUP_WINDOWS = ("TUMBLE", "HOP", "SESSION")
_BINARY: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "/",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "AND",
    exp.Or: "OR",
    exp.DPipe: "||",
    exp.Overlaps: "OVERLAPS",
    exp.SimilarTo: "SIMILAR TO",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}


@quick_init
@dataclass(frozen=True)
class Scope:
    """The columns that an expression can use, each with its qualifier (table alias) by position."""

    qualifiers: tuple[str | None, ...]
    columns: tuple[Column, ...]
    optional: tuple[bool, ...] = ()
    """True for columns of undeclared tables. A declared column has priority over an equal name."""

    def concat(self, other: Scope) -> Scope:
        """The columns of both scopes, one scope after the other, as in a join."""
        return Scope(self.qualifiers + other.qualifiers, self.columns + other.columns, self.flags + other.flags)

    @property
    def flags(self) -> tuple[bool, ...]:
        """The value of ``optional`` for every column."""
        return self.optional or (False,) * len(self.columns)

    @cached_property
    def _places(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = {}
        for i, column in enumerate(self.columns):
            found.setdefault(column.name, []).append(i)
        return found

    def find(self, name: str, qualifier: str | None = None) -> int | None:
        """The position of a column; None if there is none. Raise :class:`BindError` for an ambiguous name."""
        hits = self._places.get(name, ())
        if qualifier is not None:
            hits = [i for i in hits if self.qualifiers[i] == qualifier]
        if len(hits) > 1:
            declared = [i for i in hits if not self.flags[i]]
            hits = declared or hits
        if len(hits) > 1:
            raise BindError("ambiguous-name", f"column {name} is ambiguous")
        return hits[0] if hits else None

    def find_field(self, name: str, qualifier: str | None = None) -> tuple[int, tuple[str, ...]] | None:
        """A row column and the path to its field with this name, which Flink treats like a column.

        The outermost field with the name applies (observed with Flink 2.3.0).
        """
        columns = [i for i, other in enumerate(self.qualifiers) if qualifier is None or other == qualifier]
        rows: list[tuple[int, tuple[str, ...], DataType]] = [(i, (), self.columns[i].type) for i in columns]
        while rows:
            rows = [
                (i, (*path, field), inner)
                for i, path, kind in rows
                for field, inner in zip(kind.names, kind.elements, strict=False)
            ]
            hits = [(i, path) for i, path, _ in rows if path[-1] == name]
            if len(hits) > 1:
                raise BindError("ambiguous-name", f"column {name} is ambiguous")
            if hits:
                return hits[0]
        return None


Special = Callable[[exp.Expression], Expression | None]


class ScalarBinder:
    """Binder of the expressions of one statement to one scope.

    ``special`` is called first for every tree. It replaces grouped expressions, aggregates and OVER calls that have
    become columns.
    """

    def __init__(self, environment: Environment, statement: Statement, scope: Scope, special: Special | None = None):
        self.environment = environment
        self.statement = statement
        self.scope = scope
        self.special = special

    def span(self, tree: exp.Expression) -> Span:
        return span_of(tree, self.statement)

    def bind(self, tree: exp.Expression) -> Expression:
        """The bound expression. Raises :class:`BindError` for an expression that the plan cannot represent."""
        if self.special is not None and (found := self.special(tree)) is not None:
            return found if found.span is not None else placed(found, self.span(tree))
        if type(tree) in _READ:
            unread(tree, self.span)
        bound = self._bind(tree)
        if tree.args.get("negate"):
            bound = self._call("NOT", (bound,), tree)
        return bound if bound.span is not None else placed(bound, self.span(tree))

    def numbered_name(self, column: exp.Column) -> str | None:
        """The text of a column in a normal form: its name, and its number among columns of the same name."""
        name, qualifier = column.name, column.table or None
        index = self.scope.find(name, qualifier)
        if index is None:
            return None
        return f"{json.dumps(name)}#{sum(each.name == name for each in self.scope.columns[:index])}"

    def call(self, name: str, trees: list[exp.Expression], tree: exp.Expression) -> FunctionCall:
        """A call of a built-in or user function over bound arguments."""
        return self._call(name, tuple(self.bind(arg) for arg in trees), tree)

    def _call(self, name: str, args: tuple[Expression, ...], tree: exp.Expression) -> FunctionCall:
        result = functions.call_type(name, args)
        return FunctionCall(name, args, result, self.span(tree))

    def _bind(self, tree: exp.Expression) -> Expression:
        kind = type(tree)
        if kind in _BINARY:
            return self._call(_BINARY[kind], self._operands(tree, kind), tree)
        bound = _BOUND.get(kind)
        if bound is None:
            raise BindError("construct", f"{_title(tree)} is not understood here", self.span(tree))
        return bound(self, tree)

    def _negative(self, tree: exp.Expression) -> Expression:
        inner = self.bind(tree.this)
        if isinstance(inner, Literal) and isinstance(inner.value, int | float | Decimal):
            return Literal(-inner.value, inner.type)
        return self._call("NEG", (inner,), tree)

    def _not(self, tree: exp.Expression) -> Expression:
        if isinstance(tree.this, exp.Is):
            return self._is(tree.this, negated=True)
        return self._call("NOT", (self.bind(tree.this),), tree)

    def _between(self, tree: exp.Expression) -> Expression:
        value = self.bind(tree.this)
        if tree.args.get("symmetric"):
            bounds = self.bind(tree.args["low"]), self.bind(tree.args["high"])
            return self._call("BETWEEN SYMMETRIC", (value, *bounds), tree)
        low = self._call(">=", (value, self.bind(tree.args["low"])), tree)
        high = self._call("<=", (value, self.bind(tree.args["high"])), tree)
        return self._call("AND", (low, high), tree)

    def _operands(self, tree: exp.Expression, kind: type[exp.Expression]) -> tuple[Expression, ...]:
        """Bind both operands of a binary operator. A chain of the same AND or OR becomes one call."""
        if kind not in (exp.And, exp.Or):
            return self.bind(tree.this), self.bind(tree.expression)
        parts: list[Expression] = []
        pending: list[Any] = [tree]
        while pending:
            inner = pending.pop().unnest()
            if isinstance(inner, kind) and (self.special is None or self.special(inner) is None):
                pending += [inner.expression, inner.this]
            else:
                parts.append(self.bind(inner))
        return tuple(parts)

    def _column(self, parts: list[str], tree: exp.Expression) -> Expression:
        """A column, a qualified column, or a field of a row column."""
        span = span_of(tree, self.statement)
        ways: list[tuple[str, str | None, list[str]]] = [(parts[0], None, parts[1:])]
        if len(parts) > 1:
            ways.insert(0, (parts[1], parts[0], parts[2:]))
        try:
            for name, qualifier, rest in ways:
                if (index := self.scope.find(name, qualifier)) is not None:
                    return self._fields(index, rest, span)
            # A full column name: catalog and database before table and column.
            if len(parts) > 2 and (index := self.scope.find(parts[-1], parts[-2])) is not None:
                return self._fields(index, [], span)
            for name, qualifier, rest in ways:
                if (field := self.scope.find_field(name, qualifier)) is not None:
                    return self._fields(field[0], [*field[1], *rest], span)
        except BindError as error:
            raise BindError(error.reason, error.message, span) from None
        raise BindError("unknown-column", f"column {'.'.join(parts)} is not found", span)

    def _fields(self, value: Expression | int, names: Sequence[str], span: Span) -> Expression:
        """A field of nested rows, starting at an expression or at a column of the scope."""
        if isinstance(value, int):
            value = InputRef(value, self.scope.columns[value].type, span)
        for name in names:
            kind = value.type
            if kind.is_known and name not in kind.names:
                raise BindError("unknown-column", f"field {name} of {kind} is not found", span)
            inner = kind.elements[kind.names.index(name)] if name in kind.names else UNKNOWN
            value = FunctionCall("FIELD", (value, Literal(name, SYMBOL)), inner, span)
        return value

    def _dot(self, tree: exp.Dot) -> Expression:
        names: list[str] = []
        inner: exp.Expression = tree
        while isinstance(inner, exp.Dot):
            if isinstance(inner.expression, exp.Anonymous) and not names:
                return self._qualified_function(tree)
            if not isinstance(inner.expression, exp.Identifier):
                raise BindError("construct", f"{_title(tree)} is not understood here", self.span(tree))
            names.insert(0, inner.expression.name)
            inner = inner.this
        if isinstance(inner, exp.Column):
            return self._column([*(part.name for part in inner.parts), *names], tree)
        return self._fields(self.bind(inner), names, self.span(tree))

    def interval(self, tree: exp.Interval) -> Literal:
        """A constant interval in milliseconds or months; raises :class:`BindError` for an unsupported form."""
        return interval(tree, self.span(tree))

    def _binary(self, tree: exp.HexString) -> Expression:
        """A binary literal, such as ``X'1F'``."""
        digits = str(tree.this).upper()
        kind = DataType("BINARY", (len(digits) // 2,), nullable=False)
        return FunctionCall("BINARY LITERAL", (Literal(digits, SYMBOL),), kind, self.span(tree))

    def _is(self, tree: exp.Is, negated: bool) -> Expression:
        value = self.bind(tree.this)
        what = tree.expression
        if isinstance(what, exp.Not):
            negated, what = not negated, what.this
        word = "NULL" if isinstance(what, exp.Null) else str(what.this).upper()
        return self._call(f"IS {'NOT ' if negated else ''}{word}", (value,), tree)

    def _in(self, tree: exp.In) -> Expression:
        if tree.args.get("query") is not None or tree.args.get("unnest") is not None:
            raise BindError("subquery", "a subquery inside a condition is not understood", self.span(tree))
        return self.call("IN", [tree.this, *tree.expressions], tree)

    def _escape(self, tree: exp.Escape) -> Expression:
        """``x [NOT] LIKE pattern ESCAPE c``, or the same with SIMILAR TO."""
        matched = tree.this
        name = "LIKE" if isinstance(matched, exp.Like) else _BINARY[type(matched)]
        found = self.call(name, [matched.this, matched.expression, tree.expression], tree)
        return self._call("NOT", (found,), tree) if matched.args.get("negate") else found

    def _case(self, tree: exp.Case) -> Expression:
        operand = tree.this
        args: list[Expression] = []
        for branch in tree.args.get("ifs", []):
            condition = self.bind(branch.this)
            if operand is not None:
                condition = self._call("=", (self.bind(operand), condition), tree)
            args += [condition, self.bind(branch.args["true"])]
        default = tree.args.get("default")
        args.append(self.bind(default) if default is not None else Literal(None, NULL))
        return self._call("CASE", tuple(args), tree)

    def _function(self, tree: exp.Anonymous) -> Expression:
        name = tree.name
        if name.upper() in _OPERATORS or " " in name or not any(map(str.isalnum, name)):
            message = f"Flink has no function {name}, and functions of catalogs are not supported"
            raise BindError("function", message, self.span(tree))
        if is_aggregate(tree, self.environment):
            raise BindError("aggregate", f"aggregate {name} is not understood here", self.span(tree))
        if any(isinstance(arg, exp.Star | exp.Distinct) for arg in tree.expressions):
            raise BindError("construct", f"{_title(tree)} is not understood here", self.span(tree))
        # Names of built-in functions are in upper case; those of user-defined functions are in lower case.
        known = functions.lookup(name.upper()) is not None
        return self.call(name.upper() if known else name.lower(), tree.expressions, tree)

    def _qualified_function(self, tree: exp.Dot) -> Expression:
        """A call of a function with its database, which is never a function of Flink."""
        call = tree.expression
        name = qualified_name(tree.this, call.name)
        if name is None:
            raise BindError("construct", f"{_title(tree)} is not understood here", self.span(tree))
        path = dotted(self.environment.path(name)).lower()
        if self.environment.functions.get(path) is None or functions.lookup(path.upper()) is not None:
            raise BindError("construct", f"{_title(tree)} is not understood here", self.span(tree))
        if is_aggregate(exp.Anonymous(this=path), self.environment):
            raise BindError("aggregate", f"aggregate {path} is not understood here", self.span(tree))
        return self.call(path, call.expressions, tree)

    def _keyword_call(self, tree: nodes.KeywordCall) -> Expression:
        args = [self.bind(arg) for arg in tree.expressions]
        words = [str(word) for word in tree.args.get("keywords") or ()]
        returned = None
        for clause in tree.args.get("clauses") or ():
            words.append(str(clause.this))
            value = clause.args.get("expression")
            if isinstance(value, nodes.FlinkType):
                returned = data_type(value)
                words.append(str(returned))
            elif value is not None:
                args.append(self.bind(value))
        if words:
            args.append(Literal(" ".join(words), SYMBOL))
        call = self._call(str(tree.this), tuple(args), tree)
        return call if returned is None else replace(call, type=returned)

    def aggregate(self, tree: exp.Expression) -> AggregateCall:
        """An aggregate call with DISTINCT and FILTER. COUNT of a constant is COUNT(*) (measured as equal)."""
        condition = None
        span = self.span(tree)
        if isinstance(tree, exp.Filter):
            condition = self.bind(tree.expression.this)
            tree = tree.this
        if isinstance(tree, nodes.KeywordCall):
            call = self.bind(tree)
            assert isinstance(call, FunctionCall)
            return AggregateCall(call.function, call.args, call.type, False, condition, span=span)
        if not isinstance(tree, exp.Anonymous):
            raise BindError("aggregate", f"{_title(tree)} is not understood as an aggregate", span)
        written = tree.name
        name = written.upper()
        trees = tree.expressions
        distinct = False
        if trees and isinstance(trees[0], exp.Distinct):
            distinct, trees = True, [*trees[0].expressions, *trees[1:]]
        args = tuple([self.bind(arg) for arg in trees if not isinstance(arg, exp.Star)])
        if name == "COUNT" and not distinct and all(isinstance(a, Literal) and a.value is not None for a in args):
            args = ()
        declared = self.environment.function(written)
        spec = None if declared else functions.lookup(name)
        if spec is not None:
            return AggregateCall(
                name, args, spec.result_type(tuple([arg.type for arg in args])), distinct, condition, span=span
            )
        language = declared.language if declared else "undeclared"
        return AggregateCall(written.lower(), args, UNKNOWN, distinct, condition, language, span=span)


_OPERATORS = ACCESSES | {"AND", "CASE", "IN", "LIKE", "NEG", "NOT", "OR"}
"""Names in plans for SQL syntax that is not a function."""
_READ: dict[type[exp.Expr], frozenset[str]] = {
    **dict.fromkeys(_BINARY, frozenset({"this", "expression", "negate"})),
    exp.Div: frozenset({"this", "expression", "typed", "safe"}),
    exp.DPipe: frozenset({"this", "expression", "safe"}),
    exp.Between: frozenset({"this", "low", "high", "symmetric", "negate"}),
    exp.In: frozenset({"this", "expressions", "query", "unnest", "negate"}),
    exp.Like: frozenset({"this", "expression", "negate"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.Anonymous: frozenset({"this", "expressions"}),
    exp.Bracket: frozenset({"this", "expressions"}),
    exp.Select: frozenset(
        {"with_", "with", "expressions", "distinct", "from_", "from", "joins", "where", "group", "having", "qualify"}
        | {"windows", "order", "limit", "offset", "hint"}
    ),
    exp.Table: frozenset({"this", "db", "catalog", "alias", "joins", "hints", "version"}),
    exp.Join: frozenset({"this", "on", "side", "kind", "using", "method"}),
    exp.Window: frozenset({"this", "partition_by", "order", "spec", "alias", "over"}),
    exp.Fetch: frozenset({"direction", "count", "limit_options"}),
    exp.LimitOptions: frozenset({"rows"}),
}
"""The arguments of tree nodes that binders read. All others are refused instead of ignored."""


def _cast(binder: ScalarBinder, tree: Any) -> Expression:
    name = "TRY_CAST" if isinstance(tree, exp.TryCast) else "CAST"
    return FunctionCall(name, (binder.bind(tree.this),), data_type(tree.args["to"]))


def _typed_literal(_binder: ScalarBinder, tree: Any) -> Expression:
    text = str(tree.this.name)
    return Literal(text, _typed(str(tree.args["kind"]), text))


def _column(binder: ScalarBinder, tree: Any) -> Expression:
    return binder._column([part.name for part in tree.parts], tree)


def _constructor(name: str) -> Callable[[ScalarBinder, Any], Expression]:
    return lambda binder, tree: binder.call(name, tree.expressions, tree)


_BOUND: Mapping[type[exp.Expr], Callable[[ScalarBinder, Any], Expression]] = {
    exp.Paren: lambda binder, tree: binder.bind(tree.this),
    exp.Column: _column,
    exp.Pseudocolumn: _column,
    exp.Dot: lambda binder, tree: binder._dot(tree),
    exp.Identifier: lambda binder, tree: binder._column([tree.name], tree),
    exp.Literal: lambda _binder, tree: _literal(tree),
    exp.Boolean: lambda _binder, tree: Literal(bool(tree.this), BOOLEAN),
    exp.Null: lambda _binder, _tree: Literal(None, NULL),
    exp.Interval: lambda binder, tree: binder.interval(tree),
    exp.Neg: lambda binder, tree: binder._negative(tree),
    exp.Not: lambda binder, tree: binder._not(tree),
    exp.Is: lambda binder, tree: binder._is(tree, negated=False),
    exp.Between: lambda binder, tree: binder._between(tree),
    exp.In: lambda binder, tree: binder._in(tree),
    exp.Like: lambda binder, tree: binder.call("LIKE", [tree.this, tree.expression], tree),
    exp.Escape: lambda binder, tree: binder._escape(tree),
    exp.Case: lambda binder, tree: binder._case(tree),
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.JSONCast: _cast,
    exp.Anonymous: lambda binder, tree: binder._function(tree),
    nodes.Niladic: lambda binder, tree: binder._call(str(tree.this).upper(), (), tree),
    nodes.TypedLiteral: _typed_literal,
    nodes.KeywordCall: lambda binder, tree: binder._keyword_call(tree),
    exp.Var: lambda _binder, tree: Literal(tree.name.upper(), SYMBOL),
    exp.Array: _constructor("ARRAY"),
    exp.Tuple: _constructor("ROW"),
    nodes.MapConstructor: _constructor("MAPCONSTRUCTOR"),
    nodes.MultisetConstructor: _constructor("MULTISETCONSTRUCTOR"),
    exp.Bracket: lambda binder, tree: binder.call("ITEM", [tree.this, *tree.expressions], tree),
    exp.HexString: lambda binder, tree: binder._binary(tree),
    nodes.JsonPair: lambda binder, tree: binder.call("KEY VALUE", [tree.this, tree.expression], tree),
}
"""Binders by type of tree, except for binary operators."""


def unread(tree: exp.Expr, span: Callable[[Any], Span], at: exp.Expr | None = None) -> None:
    """Raise :class:`BindError` for a part of a tree that is not read, at the place of ``at`` or the tree."""
    known = _READ.get(type(tree))
    lost = [] if known is None else [name for name, value in tree.args.items() if value and name not in known]
    if lost:
        message = f"{lost[0].rstrip('_').upper()} is not understood here: {_title(tree)}"
        raise BindError("construct", message, span(at or tree))


def is_aggregate(tree: exp.Expression, environment: Environment) -> bool:
    """True for a call of a built-in or declared aggregate function."""
    if isinstance(tree, exp.Filter):
        return True
    if not isinstance(tree, exp.Anonymous | nodes.KeywordCall):
        return False
    declared = environment.function(tree.name)
    if declared is not None:
        return declared.kind == "aggregate"
    spec = functions.lookup(tree.name.upper())
    return spec is not None and spec.kind is functions.FunctionKind.AGGREGATE


def aggregates_in(tree: exp.Expression, environment: Environment) -> Iterator[exp.Expression]:
    """The outermost aggregate calls of an expression in order, except in OVER calls and subqueries."""
    if isinstance(tree, exp.Window | exp.Query):
        return
    if is_aggregate(tree, environment):
        yield tree
        return
    for child in _operands(tree):
        yield from aggregates_in(child, environment)


def _operands(tree: exp.Expression) -> Iterable[exp.Expression]:
    """The child trees of an expression; none for a column or literal, which contains no call."""
    return () if isinstance(tree, exp.Column | exp.Literal) else tree.iter_expressions()


def overs_in(tree: exp.Expression) -> Iterator[exp.Window]:
    """The OVER calls of an expression, in written order."""
    if isinstance(tree, exp.Window):
        yield tree
        return
    if isinstance(tree, exp.Query):
        return
    for child in _operands(tree):
        yield from overs_in(child)


def time_attribute_of(expression: Expression, columns: tuple[Column, ...]) -> TimeAttribute | None:
    """The time attribute of a column or of PROCTIME(); None for other expressions."""
    if isinstance(expression, InputRef):
        return columns[expression.index].time_attribute
    if isinstance(expression, FunctionCall) and expression.function == "PROCTIME":
        return TimeAttribute.PROCTIME
    return None


def _typed(kind: str, text: str) -> DataType:
    if kind == "TIMESTAMP":
        fraction = text.partition(".")[2]
        return DataType("TIMESTAMP", (len(fraction),), nullable=False)
    return DataType(kind, (0,) if kind == "TIME" else (), nullable=False)


@lru_cache
def _text_type(length: int) -> DataType:
    return DataType("CHAR", (length,), nullable=False)


_INT, _BIGINT, _DOUBLE = (replace(each, nullable=False) for each in (INT, BIGINT, DOUBLE))


def _literal(tree: exp.Literal) -> Literal:
    text = tree.name
    if tree.is_string:
        return Literal(text, _text_type(max(len(text), 1)))
    if "e" in text.lower():
        approximate = float(text)
        if math.isinf(approximate):
            raise BindError("construct", f"{text} is outside of the range of DOUBLE")
        return Literal(approximate, _DOUBLE)
    if "." in text:
        number = Decimal(text)
        exponent = number.as_tuple().exponent
        scale = -exponent if isinstance(exponent, int) else 0
        return Literal(number, replace(decimal(max(len(number.as_tuple().digits), scale, 1), scale), nullable=False))
    value = int(text)
    return Literal(value, _INT if abs(value) < 2**31 else _BIGINT)


def _title(tree: exp.Expr) -> str:
    text = tree.sql(dialect="flink") if not isinstance(tree, exp.Command) else str(tree)
    return text if len(text) <= 60 else text[:57] + "…"
