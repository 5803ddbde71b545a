"""Evaluation of old string expressions and FLIP-11's notation to the same values as PyFlink's calls."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from airflow_flinkcompat.frontends.table_api import expression_sql as e
from airflow_flinkcompat.frontends.table_api.expression_tree import Tree, Unreadable, parse_strings
from airflow_flinkcompat.frontends.table_api.validation import RefusedByFlink, refused
from airflow_flinkcompat.frontends.table_api.values import Const, Described, Expr, NotRead, Type, Value

Method = Callable[[Described, str, Sequence[Value]], Value]
"""Function that returns the result of a method of an object, by PyFlink's name."""
Function = Callable[[str, Sequence[Value]], Value]
"""Function that returns the result of a function of ``pyflink.table.expressions``, by name."""

_OPERATORS = {
    "===": "=", "!==": "<>", "<": "<", ">": ">", "<=": "<=", ">=": ">=",
    "+": "+", "-": "-", "*": "*", "/": "/", "%": "%", "&&": "AND", "||": "OR",
}  # fmt: skip
_OF_STRINGS = {**_OPERATORS, "==": "=", "=": "=", "!=": "<>", "<>": "<>"}
_NAMES = {"as": "alias", "in": "in_", "await": "wait"}
"""PyFlink names that are not simply the snake-case form of the method name."""
_TYPES = {
    "BYTE": "TINYINT", "SHORT": "SMALLINT", "INT": "INT", "LONG": "BIGINT", "FLOAT": "FLOAT", "DOUBLE": "DOUBLE",
    "BOOLEAN": "BOOLEAN", "STRING": "STRING", "SQL_DATE": "DATE", "SQL_TIMESTAMP": "TIMESTAMP(3)",
}  # fmt: skip
"""SQL types for the names in ``Types`` and in ``cast`` of a string expression."""
_TO = {"to_date": "DATE", "to_timestamp": "TIMESTAMP(3)"}
_PLAIN = re.compile(r"[^\W\d]\w*")


def snake(name: str) -> str:
    """The PyFlink name of a method: ``with_gap`` for ``withGap``."""
    found = name if name.isupper() else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return _NAMES.get(found, found)


def old_type(name: str) -> Type | None:
    """A type of ``Types``, such as ``LONG``; None for an unsupported type."""
    sql = _TYPES.get(name.upper())
    return None if sql is None else Type(sql)


class Meaning(ABC):
    """Evaluator of syntax trees; raises :class:`Unreadable` at the place of an unsupported part."""

    operators: Mapping[str, str] = _OPERATORS

    @abstractmethod
    def name(self, tree: Tree) -> Value:
        """The value of a bare name."""

    @abstractmethod
    def method(self, owner: Value, name: str, args: Sequence[Value], tree: Tree) -> Value:
        """The result of a method, by PyFlink's name."""

    @abstractmethod
    def function(self, tree: Tree, args: Sequence[Value]) -> Value:
        """The result of a call without an owner."""

    def value(self, tree: Tree) -> Value:
        """The value of a tree. Raises :class:`Unreadable` at the innermost unsupported part."""
        try:
            return self._value(tree)
        except Unreadable:
            raise
        except NotRead as error:
            raise Unreadable(str(error), tree.at, tree.end, isinstance(error, RefusedByFlink)) from error

    def _value(self, tree: Tree) -> Value:
        match tree.kind:
            case "column" | "symbol":
                return Expr("column", (tree.text,))
            case "text":
                return Const(tree.text)
            case "number":
                return number(tree.text)
            case "name":
                return self.name(tree)
            case "member":
                return self._member(tree)
            case "call":
                return self.function(tree, [self.value(arg) for arg in tree.args or ()])
            case "prefix":
                return self._prefix(tree)
            case "infix" if tree.text in self.operators:
                left, right = (e.literal(self.value(arg)) for arg in tree.args or ())
                return Expr("infix", (self.operators[tree.text], left, right))
            case "infix":
                raise NotRead(f"{tree.text} between expressions is not supported: write === or !==")
        raise NotRead("there are several values where one is expected")

    def _prefix(self, tree: Tree) -> Value:
        (operand,) = tree.args or ()
        if tree.text == "!":
            return Expr("prefix", ("NOT", e.literal(self.value(operand))))
        return Expr("prefix", ("-", e.literal(self.value(operand))))

    def _member(self, tree: Tree) -> Value:
        assert tree.owner is not None
        name, args = snake(tree.text), tree.args or ()
        owner = self.value(tree.owner)
        if name in ("alias", "over") and len(args) == 1 and isinstance(owner, Expr | Const | Described):
            label = label_of(args[0])
            if label is not None and name == "alias":
                return self.method(e.literal(owner) if isinstance(owner, Const) else owner, name, [Const(label)], tree)
            if label is not None and isinstance(owner, Expr):
                return self.method(owner, name, [Expr("column", (label,))], tree)
        if not isinstance(owner, Expr | Const):
            return self.method(owner, name, [self.value(arg) for arg in args], tree)
        expr, name = e.literal(owner), name.lower()
        if name == "rows" and not args:
            return rows(expr)
        if name in e.UNITS:
            expr = short(expr)
            if expr.kind == "sql" and "." in str(expr.parts[0]):
                raise refused("a length of time is not a whole number", "write it in a smaller unit: 90.seconds")
        if name == "cast" and len(args) == 1:
            return Expr("cast", (expr, self._type(args[0])))
        if name in _TO and not args:
            return Expr("cast", (expr, Type(_TO[name])))
        if not args:
            return e.attribute(expr, name)
        return self.method(expr, name, [self.value(arg) for arg in args], tree)

    def _type(self, tree: Tree) -> Type:
        found = old_type(tree.text) if tree.kind == "name" else None
        value = found or self.value(tree)
        if isinstance(value, Type):
            return value
        raise NotRead("the type of a cast is not supported")


class Strings(Meaning):
    """Evaluator of old string expressions, where a bare name is a column."""

    operators = _OF_STRINGS

    def __init__(self, method: Method, function: Function) -> None:
        self._method, self._function = method, function

    def name(self, tree: Tree) -> Value:
        word = tree.text
        if word.upper() in e.BOUNDS:
            return Expr("bound", (word.upper(),))
        if word.lower() in ("true", "false"):
            return Const(word.lower() == "true")
        if word != "*" and not _PLAIN.fullmatch(word):
            raise NotRead("a name that is not supported")
        return Expr("column", (word,))

    def method(self, owner: Value, name: str, args: Sequence[Value], tree: Tree) -> Value:
        assert isinstance(owner, Expr)
        return self._method(owner, name, args)

    def function(self, tree: Tree, args: Sequence[Value]) -> Value:
        name = snake(tree.text)
        if name == "cast" and tree.args is not None and len(tree.args) == 2:
            return Expr("cast", (e.literal(args[0]), self._type(tree.args[1])))
        if name in e.AGGREGATES and len(args) == 1:
            return e.attribute(e.literal(args[0]), name)
        return self._function(name, args)


def strings(text: str, method: Method, function: Function) -> tuple[Expr, ...]:
    """Evaluate an old string expression. Raises :class:`NotRead` if a part is unsupported."""
    meaning = Strings(method, function)
    try:
        return tuple(e.literal(meaning.value(tree)) for tree in parse_strings(text))
    except Unreadable as error:
        raise NotRead(f"at character {error.start + 1} of an old string expression: {error}") from None


def label_of(tree: Tree) -> str | None:
    """The name in a symbol, column, text or bare name; None for any other tree."""
    return tree.text if tree.kind in ("symbol", "column", "text", "name") else None


def rows(expr: Expr) -> Expr:
    """The interval ``10.rows``. Raises :class:`NotRead` unless the number is a whole number above 0."""
    match short(expr):
        case Expr("sql", (str(count),)) if re.fullmatch(r"[1-9]\d*", count):
            return Expr("rows", (int(count),))
    raise NotRead("a number of rows must be a whole number above 0")


def short(expr: Expr) -> Expr:
    """Convert ``10L`` to ``10``, because a count has no type."""
    match expr:
        case Expr("cast", (Expr("sql", _) as inner, Type("BIGINT"))):
            return inner
    return expr


def number(written: str) -> Value:
    """Parse a number of Scala, Java or a string expression; ``L`` means BIGINT. Raises :class:`NotRead`."""
    body, suffix = (written[:-1], written[-1].lower()) if written[-1] in "lLfFdDpP" else (written, "")
    whole = body.removeprefix("-").isdigit()
    if suffix in ("f", "p"):
        raise NotRead("a number of that kind is not supported")
    if suffix == "d" or not whole:
        return Const(float(body))
    if suffix == "l":
        return Expr("cast", (e.literal(Const(int(body))), Type("BIGINT")))
    if abs(int(body)) >= 2**31:
        raise NotRead("a number beyond 32 bits needs the suffix L")
    return Const(int(body))
