"""What an expression of a program stands for, without running anything."""

from __future__ import annotations

import ast
import builtins
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_flinkcompat.program import constants, validation
from airflow_flinkcompat.program import expressions as e
from airflow_flinkcompat.program.relations import expression
from airflow_flinkcompat.program.session import Session
from airflow_flinkcompat.program.touching import mentions, touches
from airflow_flinkcompat.program.validation import Refused, called
from airflow_flinkcompat.program.values import (
    Arguments,
    Expr,
    Frame,
    Items,
    Known,
    Namespace,
    NotRead,
    Ref,
    Relation,
    TooMuch,
    Unknown,
    Value,
)

STEPS_LIMIT = 200_000
"""Steps of a program beyond which it is not read further."""
_OPERATORS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "Mod": "%", "Eq": "=", "NotEq": "<>", "Lt": "<", "LtE": "<=",
    "Gt": ">", "GtE": ">=", "BitAnd": "AND", "BitOr": "OR",
}  # fmt: skip


@dataclass(eq=False)
class Evaluator(ABC):
    """Evaluates expressions under the names of a frame; ``given`` is what only the environment would know."""

    session: Session
    given: Mapping[str, str]
    steps: int = 0
    environ: dict[str, Value] = field(default_factory=dict)
    """Environment variables that the program sets itself."""

    @abstractmethod
    def call(self, node: ast.Call, frame: Frame) -> Value:
        """What a call gives. Raises :class:`NotRead` where tables are touched in a way that is not read."""

    def step(self, cost: int = 1) -> None:
        """Count work. Raises :class:`TooMuch` beyond the limit."""
        self.steps += cost
        if self.steps > STEPS_LIMIT:
            raise TooMuch(f"reading it takes more than {STEPS_LIMIT} steps")

    def eval(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression. Raises :class:`NotRead` where tables are touched in a way that is not read."""
        self.step()
        try:
            return self._eval(node, frame)
        except Refused as error:
            error.node = error.node or called(node)
            raise

    def _eval(self, node: ast.expr, frame: Frame) -> Value:
        match node:
            case ast.Constant(value=bool() | int() | str() | float() | None as value):
                return Known(constants.bounded(value).value, node)
            case ast.Name(id=name):
                return self._name(name, frame)
            case ast.Attribute():
                return self.attribute(self.eval(node.value, frame), node, frame)
            case ast.Call():
                return self.call(node, frame)
            case ast.JoinedStr():
                return self._joined(node, frame)
            case ast.BinOp():
                return self._binary(node, frame)
            case ast.Compare(ops=[operator], comparators=[right]):
                return self._compare(operator, self.eval(node.left, frame), self.eval(right, frame))
            case ast.UnaryOp():
                return self._unary(node, frame)
            case ast.BoolOp():
                return self._bool(node, frame)
            case ast.IfExp():
                test = self.truth(self.eval(node.test, frame))
                if test is not None:
                    return self.eval(node.body if test else node.orelse, frame)
            case ast.List() | ast.Tuple() if not any(isinstance(part, ast.Starred) for part in node.elts):
                return Items([self.eval(part, frame) for part in node.elts])
            case ast.Dict() if None not in node.keys:
                return self._dict(node, frame)
            case ast.Subscript():
                return self._subscript(node, frame)
        return self.whole(node, frame)

    def touches(self, value: Value) -> bool:
        """Whether a value is, holds or does something with tables, or may."""
        return touches(value, self.step)

    def mentions(self, node: ast.AST, frame: Frame) -> bool:
        """Whether a name in this piece of source, or in a function that it names, touches tables."""
        return mentions(node, frame, self.step)

    def first_unknown(self, reason: str, *values: Value) -> Unknown:
        tabled = any(map(self.touches, values))
        found = next((value.reason for value in values if isinstance(value, Unknown)), reason)
        return Unknown(found, tabled)

    def truth(self, value: Value) -> bool | None:
        """Whether a value counts as true; None where that is not known."""
        match value:
            case Known(given):
                return bool(given)
            case Items(inner, ""):
                return bool(inner)
        return None

    def whole(self, node: ast.expr, frame: Frame) -> Value:
        """An expression that is not taken apart."""
        kind = type(node).__name__
        if self.mentions(node, frame):
            raise NotRead(f"{_NAMES.get(kind, kind)} that touches a table is not read")
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(found := self._name(part.id, frame), Items):
                found.broken = f"it went into {_NAMES.get(kind, kind)}"
            if isinstance(part, ast.NamedExpr) and isinstance(part.target, ast.Name):
                frame.names[part.target.id] = Unknown("what := binds is not known")
        return Unknown(f"what {_NAMES.get(kind, kind)} gives is not known")

    def _name(self, name: str, frame: Frame) -> Value:
        value = frame.find(name)
        if value is not None:
            return value
        if hasattr(builtins, name):
            return Ref(f"builtins.{name}")
        return Unknown(f"{name} is not defined here", tables=True)

    def attribute(self, owner: Value, node: ast.Attribute, frame: Frame) -> Value:
        name = node.attr
        if (written := _dotted(node)) in self.given:
            return Known(self.given[written])
        match owner:
            case Expr():
                self.session.note(node, validation.trap(owner, name))
                return e.attribute(owner, name)
            case Relation():
                return Expr("column", (name,))
            case Ref(path):
                return Ref(f"{path}.{name}")
            case Namespace():
                return owner.names.get(name, Unknown(f"{name} is not in its class", tables=True))
            case Arguments(types, True):
                return self._argument(name, types)
            case Unknown():
                return owner
        tabled = self.touches(owner)
        return Unknown(f"{name} held as a value is not read" if tabled else f"{name} is not known", tables=tabled)

    def _argument(self, name: str, types: Mapping[str, str | None]) -> Value:
        if name in self.given and (kind := types.get(name, "str")) is not None:
            found = constants.converted(kind, self.given[name])
            if found is not None:
                return found
        return Unknown(f"the command line decides: give --var {name}=…")

    def environment(self, name: Value) -> Value:
        if not isinstance(name, Known) or not isinstance(name.value, str):
            return Unknown("which variable of the environment is read is not known")
        if name.value in self.environ:
            return self.environ[name.value]
        if name.value in self.given:
            return Known(self.given[name.value])
        return Unknown(f"the environment decides: give --var {name.value}=…")

    # -------------------------------------------------------------------------------------------- operators
    def _joined(self, node: ast.JoinedStr, frame: Frame) -> Value:
        parts: list[str] = []
        unknown: Unknown | None = None
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.eval(part.value, frame)
                if isinstance(value, Ref):
                    value = Unknown(f"{value.path} is not known here: give --var {ast.unparse(part.value)}=…")
                elif self.touches(value):
                    raise NotRead("a table inside a text is not read")
                plain = part.format_spec is None and part.conversion in (-1, ord("s"))
                if plain and isinstance(value, Known):
                    parts.append(str(value.value))
                else:
                    unknown = value if isinstance(value, Unknown) else Unknown("a formatted value is not known")
            elif isinstance(part, ast.Constant):
                parts.append(str(part.value))
        if unknown is not None:
            return unknown
        self.step(sum(map(len, parts)) // 1000)
        return constants.bounded("".join(parts))

    def _binary(self, node: ast.BinOp, frame: Frame) -> Value:
        left, right = self.eval(node.left, frame), self.eval(node.right, frame)
        name = type(node.op).__name__
        if isinstance(left, Expr) or isinstance(right, Expr):
            if name not in _OPERATORS:
                raise NotRead("an operator between expressions that is not read")
            return Expr("infix", (_OPERATORS[name], expression(left), expression(right)))
        if self.touches(left) or self.touches(right):
            raise NotRead("an operator on something that touches a table is not read")
        found: Known | None = None
        match left, right:
            case Known(a), Known(b):
                self.step((len(a) if isinstance(a, str) else 0) // 1000)
                found = constants.binary(name, a, b)
            case Known(str(a)), Items(list(values), "") if name == "Mod":
                if all(isinstance(value, Known) for value in values):
                    found = constants.percent(a, [value.value for value in values])
        return found or self.first_unknown("what an operator gives is not known", left, right)

    def _compare(self, operator: ast.cmpop, left: Value, right: Value) -> Value:
        name = type(operator).__name__
        if (isinstance(left, Expr) or isinstance(right, Expr)) and name in _OPERATORS:
            return Expr("infix", (_OPERATORS[name], expression(left), expression(right)))
        found = None
        if isinstance(left, Known) and isinstance(right, Known):
            found = constants.compare(name, left.value, right.value)
        return found or self.first_unknown("what a comparison gives is not known", left, right)

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Value:
        value = self.eval(node.operand, frame)
        match node.op, value:
            case ast.Invert(), Expr():
                return Expr("prefix", ("NOT", value))
            case ast.USub(), Expr():
                return Expr("prefix", ("-", value))
            case ast.USub(), Known(int() | float() as number):
                return Known(-number)
            case ast.Not(), _ if (truth := self.truth(value)) is not None:
                return Known(not truth)
        if self.touches(value) and not isinstance(node.op, ast.Not):
            raise NotRead("an operator on something that touches a table is not read")
        return self.first_unknown("what an operator gives is not known", value)

    def _bool(self, node: ast.BoolOp, frame: Frame) -> Value:
        stops = isinstance(node.op, ast.Or)
        value: Value = Known(None)
        for part in node.values:
            value = self.eval(part, frame)
            truth = self.truth(value)
            if truth is None:
                # What stands behind it may run or not.
                return self.whole(node, frame)
            if truth is stops:
                return value
        return value

    def _dict(self, node: ast.Dict, frame: Frame) -> Value:
        found = {}
        for key, part in zip(node.keys, node.values, strict=True):
            name = self.eval(key, frame) if key is not None else Known(None)
            value = self.eval(part, frame)
            if not isinstance(name, Known):
                return self.whole(node, frame)
            found[name.value] = value
        return Items(found)

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        if (written := _dotted(node)) in self.given:
            return Known(self.given[written])
        owner, key = self.eval(node.value, frame), self.eval(node.slice, frame)
        match owner, key:
            case Ref("os.environ"), _:
                return self.environment(key)
            case Items(values, ""), Known(at):
                try:
                    found: Value = values[at]  # type: ignore[index]
                except (LookupError, TypeError):
                    raise NotRead("a key or index that is not there") from None
                return found
            case Items(broken=why), _ if why:
                return Unknown(why, tables=self.touches(owner))
            case Ref(path), _ if path == "sys.argv":
                return Unknown(f"the command line decides: give --var '{ast.unparse(node)}=…'")
        if self.touches(owner):
            raise NotRead("an element of something that touches a table is not read")
        return self.first_unknown("an element is not known", owner, key)


_NAMES = {
    "Lambda": "a lambda",
    "ListComp": "a comprehension",
    "SetComp": "a comprehension",
    "DictComp": "a comprehension",
    "GeneratorExp": "a generator",
    "Await": "an await",
    "IfExp": "a conditional expression",
    "BoolOp": "a condition",
    "NamedExpr": "an assignment inside an expression",
    "Call": "a call with unpacked arguments",
}


def _dotted(node: ast.expr) -> str:
    """``sys.argv[1]`` or ``settings.SIZE`` as text; empty for anything longer."""
    parts = node
    while isinstance(parts, ast.Attribute | ast.Subscript):
        if isinstance(parts, ast.Subscript) and not isinstance(parts.slice, ast.Constant):
            return ""
        parts = parts.value
    return ast.unparse(node) if isinstance(parts, ast.Name) else ""
