"""Evaluation of a PyFlink program's expressions from its syntax tree, without running the program."""

from __future__ import annotations

import ast
import builtins
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow_flinkcompat.frontends.pyflink import constants, inputs
from airflow_flinkcompat.frontends.pyflink.inputs import Files, Surroundings, join, symbolic
from airflow_flinkcompat.frontends.pyflink.python_functions import FunctionText
from airflow_flinkcompat.frontends.pyflink.scopes import (
    Arguments,
    Class,
    Function,
    Module,
    NameScope,
    ProgramEnded,
    knows_no_tables,
    touches,
)
from airflow_flinkcompat.frontends.table_api import expression_sql as e
from airflow_flinkcompat.frontends.table_api import validation
from airflow_flinkcompat.frontends.table_api.arguments import expression
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.validation import RefusedByFlink, called
from airflow_flinkcompat.frontends.table_api.values import (
    INPUT_BEGINS,
    MARKED,
    Asked,
    Const,
    Container,
    Described,
    Expr,
    NotRead,
    Path,
    Ref,
    TableValue,
    TooMuch,
    UnknownValue,
    Value,
    bounded,
    marked,
)

STEPS_LIMIT = 200_000
"""Maximum number of steps for reading a program."""
SECONDS_LIMIT = 30.0
"""Maximum processor time for reading a program, which is more than ``STEPS_LIMIT`` steps usually need."""
_OPERATORS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "Mod": "%", "Eq": "=", "NotEq": "<>", "Lt": "<", "LtE": "<=",
    "Gt": ">", "GtE": ">=", "BitAnd": "AND", "BitOr": "OR",
}  # fmt: skip
_ASKS = {"Eq": "==", "Is": "is", "In": "in", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}
_OBJECTS = (Described, Function, Module, Path, Container)
"""Types of values that are never None."""


@dataclass(eq=False)
class Expressions(ABC):
    """Evaluator of a program's expressions; ``given`` are the variables of the command line."""

    session: ScriptBuilder
    given: Mapping[str, str]
    files: Files
    decided: Mapping[str, bool] = field(default_factory=dict)
    """The outcome of conditions on inputs, by the name of the condition."""
    steps: int = 0
    began: float = field(default_factory=time.thread_time)
    """The processor time of this thread at the start of reading."""
    environ: dict[str, Value] = field(default_factory=dict)
    """Environment variables that the program itself sets."""
    undecided: dict[str, None] = field(default_factory=dict)
    """Conditions on inputs whose outcome the program needs, but that are not decided."""
    surroundings: Surroundings = field(default_factory=Surroundings)

    @abstractmethod
    def call(self, node: ast.Call, frame: NameScope) -> Value:
        """The result of a call."""

    @abstractmethod
    def bind(self, target: ast.expr, value: Value, frame: NameScope) -> None:
        """Bind the target of an assignment or loop."""

    @abstractmethod
    def of_module(self, module: Module, name: str) -> Value:
        """The value of a name in a module next to the program."""

    def function_text(self) -> FunctionText:
        """Collector for the text of a Python function, with the environment variables that the program sets."""
        text = FunctionText(self.session.trees, self.given, self.step, self.files.beside, self.files.used)
        for name, value in sorted(self.environ.items()):
            text.say(f"os.environ[{name!r}] = {value.value if isinstance(value, Const) else ''!r}")
        return text

    def step(self, cost: int = 1) -> None:
        """Count steps of reading. Raises :class:`TooMuch` beyond the limit of steps or time."""
        self.steps += cost
        if self.steps > STEPS_LIMIT:
            raise TooMuch(f"reading it takes more than {STEPS_LIMIT} steps")
        if time.thread_time() - self.began > SECONDS_LIMIT:
            raise TooMuch(f"reading it takes more than {SECONDS_LIMIT:.0f} s")

    def eval(self, node: ast.expr, frame: NameScope) -> Value:
        """The value of an expression. Raises :class:`NotRead` for an expression that is not read."""
        self.step()
        try:
            return self.surroundings.known(self._eval(node, frame))
        except RefusedByFlink as error:
            error.node = error.node or called(node)
            raise

    def _eval(self, node: ast.expr, frame: NameScope) -> Value:
        match node:
            case ast.Constant(value=bool() | int() | str() | float() | None as value):
                return Const(bounded(value).value, node)
            case ast.Name(id=name):
                return self._name(name, frame)
            case ast.Attribute():
                return self.attribute(self.eval(node.value, frame), node)
            case ast.Call():
                return self.call(node, frame)
            case ast.Lambda():
                return Function(node, frame, self.defaults(node.args, frame))
        read = self._PARTS.get(type(node))
        if read is None:
            kind = type(node).__name__
            raise NotRead(f"{_NAMES.get(kind, kind)} is not supported")
        return read(self, node, frame)

    def unknown(self, reason: str, *values: Value) -> UnknownValue:
        """An unknown value derived from other values, with the reason of the first unknown value."""
        for value in values:
            match value:
                case UnknownValue(reason=why):
                    reason = why
                    break
                case Container(broken=why) if why:
                    reason = why
                    break
                case Ref(path) if not knows_no_tables(value) and value.module not in ("pyflink", "builtins"):
                    reason = Asked(f"{path} is unknown here", path)
                    break
        tables = (isinstance(each, UnknownValue | Container | Described) and touches(each) for each in values)
        return UnknownValue(reason, any(tables))

    def defaults(self, spec: ast.arguments, frame: NameScope) -> dict[str, Value]:
        """The default values of parameters, by name."""
        positional = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        found = dict(zip(reversed(positional), reversed(spec.defaults), strict=False))
        found |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
        return {name: self.eval(default, frame) for name, default in found.items()}

    def _name(self, name: str, frame: NameScope) -> Value:
        value = frame.find(name)
        if value is not None:
            return value
        if hasattr(builtins, name):
            return Ref(f"builtins.{name}")
        return UnknownValue(f"{name} is not defined here", tables=True)

    # -------------------------------------------------------------------------------------------- conditions
    def truth(self, value: Value) -> bool | None:
        """The truth value of a value; None if it is unknown."""
        match value:
            case UnknownValue(tables=False, name=name) if name:
                return self.decide(name)
            case Const(str(text)) if text.startswith(INPUT_BEGINS):
                # The text may be empty, unless it contains more than inputs.
                return True if MARKED.sub("", text) else self.decide(inputs.canonical(value))
            case Const(given):
                return bool(given)
            case Container(inner, ""):
                return bool(inner)
        return True if isinstance(value, _OBJECTS) and not isinstance(value, Container) else None

    def decide(self, name: str) -> bool | None:
        """The outcome of a condition on inputs; if it is unknown, None and a note in ``undecided``."""
        if name.startswith("not "):
            found = self.decide(name.removeprefix("not "))
            return None if found is None else not found
        if name not in self.decided:
            self.undecided[name] = None
        return self.decided.get(name)

    def environment(self, name: Value, default: Value | None = None) -> Value:
        """The value of an environment variable, or its default."""
        if not isinstance(name, Const) or not isinstance(name.value, str):
            return UnknownValue("the name of an environment variable is unknown")
        if name.value in self.environ:
            return self.environ[name.value]
        if name.value in self.given:
            return Const(self.given[name.value])
        why = Asked("the environment decides", name.value)
        if default is None or default == Const(None):
            return self.surroundings.input(name.value, why, text=True)
        written = inputs.canonical(default)
        return self.surroundings.input(written and f"({name.value} or {written})", why, text=True)

    def _conditional(self, node: ast.IfExp, frame: NameScope) -> Value:
        test = self.eval(node.test, frame)
        truth = self.truth(test)
        if truth is None:
            return self._either((node.body, node.orelse), test, frame)
        return self.eval(node.body if truth else node.orelse, frame)

    def _bool(self, node: ast.BoolOp, frame: NameScope) -> Value:
        stops = isinstance(node.op, ast.Or)
        value: Value = Const(None)
        for number, part in enumerate(node.values, 1):
            value = self.eval(part, frame)
            if number == len(node.values):
                return value
            truth = self.truth(value)
            if truth is None:
                return self._either(node.values[number:], value, frame)
            if truth is stops:
                return value
        return value

    def _either(self, parts: Sequence[ast.expr], test: Value, frame: NameScope) -> Value:
        """The value of a conditional expression or ``and``/``or`` whose condition is unknown."""
        why = test.reason if isinstance(test, UnknownValue) else "its condition is unknown"
        if any(isinstance(inner, ast.Call | ast.NamedExpr) for part in parts for inner in ast.walk(part)):
            raise NotRead(f"a conditional expression is not supported: {why}")
        return UnknownValue(why, any(touches(self.eval(part, frame)) for part in parts))

    def _comparison(self, node: ast.Compare, frame: NameScope) -> Value:
        if len(node.ops) > 1:
            raise NotRead("a chained comparison is not supported")
        left, right = self.eval(node.left, frame), self.eval(node.comparators[0], frame)
        name = type(node.ops[0]).__name__
        if (isinstance(left, Expr) or isinstance(right, Expr)) and name in _OPERATORS:
            return _of_expressions(name, left, right)
        found: Value | None = None
        match left, right:
            case Const(a), Const(b):
                found = constants.compare(name, a, b)
            case (Const(None), other) | (other, Const(None)) if name in ("Is", "IsNot") and isinstance(other, _OBJECTS):
                found = Const(name == "IsNot")
        found = found or self._input_condition(name, left, right)
        return found or self.unknown("the result of a comparison is unknown", left, right)

    def _input_condition(self, name: str, left: Value, right: Value) -> Value | None:
        """A comparison of two job inputs; ``is`` and ``is not`` yield the same named condition."""
        same = {"NotEq": "Eq", "IsNot": "Is", "NotIn": "In"}.get(name, name)
        if same == "Eq" and Const(None) in (left, right):
            same = "Is"
        if same in ("Eq", "Is") and isinstance(left, Const) and not inputs.has_input(left):
            left, right = right, left
        found = inputs.operation(left, _ASKS.get(same, same), right)
        if found is not None and name in ("NotEq", "IsNot", "NotIn"):
            return inputs.named(f"not {found.name}", (found,))
        return found

    # -------------------------------------------------------------------------------------------- attributes, elements
    def attribute(self, owner: Value, node: ast.Attribute) -> Value:
        """The value of ``owner.name``."""
        name, written = node.attr, dotted(node)
        if written in self.given:
            return Const(self.given[written])
        match owner:
            case Expr():
                self.session.note(node, validation.trap(owner, name))
                return e.attribute(owner, name)
            case TableValue():
                return Expr("column", (name,))
            case Ref(path) if name in ("__file__", "__version__"):
                return inputs.named(f"{path}.{name}", reason=f"the place of {path} is unknown")
            case Ref(path):
                return Ref(f"{path}.{name}")
            case Module():
                return self.of_module(owner, name)
            case Arguments(parsed=True):
                return self._argument(name, owner)
            case Path():
                return constants.of_path(owner, name) or UnknownValue(f"{name} of a path is unknown")
            case UnknownValue():
                return _of_unknown(owner, name, written)
            case Class(plain=True):
                return UnknownValue(Asked(f"{name} of the class {owner.node.name} is not supported", written))
        what = f"the class {owner.node.name}" if isinstance(owner, Class) else "an object"
        return UnknownValue(f"{name} of {what} is not supported", tables=touches(owner))

    def _argument(self, name: str, arguments: Arguments) -> Value:
        """A command-line argument."""
        if name in self.given and (kind := arguments.types.get(name, "str")) is not None:
            found = constants.converted(kind, self.given[name])
            if found is not None:
                return found
        why = Asked("the command line decides", name)
        return self.surroundings.input(arguments.names.get(name, ""), why, text=True)

    def _subscript(self, node: ast.Subscript, frame: NameScope) -> Value:
        if (written := dotted(node)) in self.given:
            return Const(self.given[written])
        owner = self.eval(node.value, frame)
        if isinstance(node.slice, ast.Slice):
            return self._slice(owner, node.slice, frame)
        key = self.eval(node.slice, frame)
        asked = inputs.element(owner, key)
        if asked is not None and owner == Ref("sys.argv"):
            asked = self.surroundings.input(asked.name, asked.reason, text=True)
        if asked is not None:
            return asked
        match owner, key:
            case Expr(), Const():
                return Expr("item", (owner, expression(key)))
            case Const(None), _:
                raise ProgramEnded
            case Container(dict()), Const(at) if symbolic(at):
                return UnknownValue("the key of an element is unknown", touches(owner))
            case Ref("os.environ"), _:
                return self.environment(key)
            case Container(values, "", "list" | "tuple" | "dict"), Const(at):
                try:
                    found: Value = values[at]  # type: ignore[index]
                except (LookupError, TypeError):
                    raise NotRead("a key or index does not exist") from None
                return found
        return self.unknown("an element is unknown", owner, key)

    def _slice(self, owner: Value, part: ast.Slice, frame: NameScope) -> Value:
        ends = [Const(None) if end is None else self.eval(end, frame) for end in (part.lower, part.upper, part.step)]
        numbers = [end.value for end in ends if isinstance(end, Const) and isinstance(end.value, int | None)]
        if len(numbers) == 3 and inputs.has_input(owner) and (where := inputs.canonical(owner)):
            written = ":".join("" if number is None else str(number) for number in numbers)
            return self.surroundings.current(inputs.named(f"({where})[{written}]", (owner,))) or owner
        match owner:
            case Container(list(values), "", kind) if len(numbers) == 3 and numbers[2] != 0:
                return Container(values[slice(*numbers)], kind=kind)
        return self.unknown("a part of a sequence is unknown", owner, *ends)

    # -------------------------------------------------------------------------------------------- lists, dictionaries
    def iterate(self, value: Value) -> list[Value] | None:
        """The values of a list, tuple or dictionary; None if they are unknown."""
        match value:
            case Container(dict(inner), ""):
                return [Const(key) for key in inner]
            case Container(list(inner), ""):
                return list(inner)
        return None

    def unpacked(self, nodes: Sequence[ast.expr], frame: NameScope) -> list[Value]:
        """The values of a list display or of call arguments, with ``*`` expanded."""
        values: list[Value] = []
        for node in nodes:
            if not isinstance(node, ast.Starred):
                values.append(self.eval(node, frame))
                continue
            inner = self.iterate(self.eval(node.value, frame))
            if inner is None:
                raise NotRead("the values after a * are unknown")
            values += inner
        return values

    def _sequence(self, node: ast.List | ast.Tuple, frame: NameScope) -> Value:
        return Container(self.unpacked(node.elts, frame), kind=type(node).__name__.lower())

    def _dict(self, node: ast.Dict, frame: NameScope) -> Value:
        found: dict[Any, Any] = {}
        for key, part in zip(node.keys, node.values, strict=True):
            value = self.eval(part, frame)
            name = None if key is None else self.eval(key, frame)
            if not isinstance(name, Const) or symbolic(name.value):
                raise NotRead("a key of a dictionary is unknown")
            found[name.value] = value
        return Container(found, kind="dict")

    def comprehension(self, node: ast.ListComp | ast.DictComp | ast.GeneratorExp, frame: NameScope) -> Value:
        """Evaluate a comprehension over known values, or a generator as a list."""
        inner = NameScope(outer=frame)
        said = self.session.counts
        found: dict[Any, Any] = {}
        values: list[Value] = []
        for _ in self._rounds(node.generators, inner):
            if isinstance(node, ast.DictComp):
                key = self.eval(node.key, inner)
                if not isinstance(key, Const) or symbolic(key.value):
                    raise NotRead("a key of a dictionary is unknown")
                found[key.value] = self.eval(node.value, inner)
            else:
                values.append(self.eval(node.elt, inner))
        if isinstance(node, ast.GeneratorExp) and self.session.counts != said:
            raise NotRead("a generator that executes statements is not supported")
        return Container(found, kind="dict") if isinstance(node, ast.DictComp) else Container(values)

    def _rounds(self, generators: Sequence[ast.comprehension], frame: NameScope) -> Iterator[None]:
        """Bind the names for each iteration of a comprehension."""
        if not generators:
            yield None
            return
        first, *rest = generators
        values = None if first.is_async else self.iterate(self.eval(first.iter, frame))
        if values is None:
            raise NotRead("the values of a comprehension are unknown")
        for value in values:
            self.step()
            self.bind(first.target, value, frame)
            tests = [self.truth(self.eval(test, frame)) for test in first.ifs]
            if None in tests:
                raise NotRead("the condition of a comprehension is unknown")
            if all(tests):
                yield from self._rounds(rest, frame)

    # -------------------------------------------------------------------------------------------- texts, operators
    def text(self, value: Value) -> str | None:
        """``str(value)``; None if the text is unknown."""
        match value:
            case Const(given):
                return str(given)
            case Path(text):
                return text
            case UnknownValue(name=name) if name:
                return marked(name)
        return None

    def shown(self, value: Value) -> Const | None:
        """A value as an operand of ``%`` and ``format``; None if it is unknown."""
        if isinstance(value, Const):
            return value
        text = self.text(value)
        return None if text is None else Const(text)

    def _joined(self, node: ast.JoinedStr, frame: NameScope) -> Value:
        parts: list[str] = []
        unknown: UnknownValue | None = None
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.eval(part.value, frame)
                shown = self._formatted(value, part, frame)
                if shown is not None:
                    parts.append(shown)
                elif isinstance(value, Described):
                    raise NotRead("a table inside a text is not supported")
                else:
                    unknown = unknown or self.unknown("a formatted value is unknown", value)
            elif isinstance(part, ast.Constant):
                parts.append(str(part.value))
        if unknown is not None:
            return unknown
        self.step(sum(map(len, parts)) // 1000)
        return constants.joined(parts)

    def _formatted(self, value: Value, part: ast.FormattedValue, frame: NameScope) -> str | None:
        spec = self.eval(part.format_spec, frame) if part.format_spec is not None else Const("")
        if not isinstance(spec, Const):
            return None
        if isinstance(value, Const):
            conversion = None if part.conversion == -1 else chr(part.conversion)
            return constants.shaped(value.value, str(spec.value), conversion)
        if isinstance(value, UnknownValue) and value.name:
            # A format always yields the same text for the same value.
            how = "" if part.conversion == -1 else f"!{chr(part.conversion)}"
            how += f":{spec.value}" if spec.value else ""
            return self.text(inputs.named(f"({value.name}){how}", (value,)) if how else value)
        return self.text(value) if not spec.value and part.conversion in (-1, ord("s")) else None

    def _binary(self, node: ast.BinOp, frame: NameScope) -> Value:
        return self.operate(type(node.op).__name__, self.eval(node.left, frame), self.eval(node.right, frame))

    def operate(self, name: str, left: Value, right: Value) -> Value:
        """``left OP right``, with the operator as the name of its :mod:`ast` node."""
        if isinstance(left, Expr) or isinstance(right, Expr):
            return _of_expressions(name, left, right)
        found: Value | None = None
        match left, right:
            case (Const(str()), UnknownValue(tables=False, name=of)) | (
                UnknownValue(tables=False, name=of),
                Const(str()),
            ) if of and name == "Add" and (texts := (self.text(left), self.text(right)))[0] and texts[1]:
                found = constants.joined([texts[0], texts[1]])
            case Const(a), Const(b):
                self.step((len(a) if isinstance(a, str) else 0) // 1000)
                found = constants.binary(name, a, b)
            case Const(str(a)), _ if name == "Mod":
                found = self._percent(a, right)
            case (Path(a), Const(str(b)) | Path(b)) | (Const(str(a)), Path(b)) if name == "Div" and (
                INPUT_BEGINS not in b
            ):
                found = Path(constants.joined([join(a, b)]).value)  # type: ignore[arg-type]
        if found is None and any(isinstance(each, Described) for each in (left, right)):
            raise NotRead("an operator on a table is not supported")
        found = found or inputs.operation(left, _OPERATORS.get(name, name), right)
        return found or self.unknown("the result of an operator is unknown", left, right)

    def _percent(self, text: str, right: Value) -> Value | None:
        match right:
            case Container(list(values), "", "tuple"):
                shown = [self.shown(value) for value in values]
                if None not in shown:
                    return constants.percent(text, [each.value for each in shown if each is not None])
            case UnknownValue(name=of) if of and (only := self.shown(right)):
                return constants.percent(text, [only.value])
            case Container(dict(values), ""):
                known = {key: each.value for key, value in values.items() if (each := self.shown(value)) is not None}
                return constants.percent(text, known)
        return None

    def _unary(self, node: ast.UnaryOp, frame: NameScope) -> Value:
        value = self.eval(node.operand, frame)
        match node.op, value:
            case ast.Invert(), Expr():
                return Expr("postfix", ("IS NOT TRUE", value))
            case ast.USub(), Expr():
                return Expr("prefix", ("-", value))
            case ast.USub(), Const(int() | float() as number):
                return Const(-number)
            case ast.Not(), UnknownValue(tables=False, name=of) if of:
                return inputs.named(of.removeprefix("not ") if of.startswith("not ") else f"not {of}", (value,))
            case ast.Not(), _ if (truth := self.truth(value)) is not None:
                return Const(not truth)
        return self.unknown("the result of an operator is unknown", value)

    _PARTS: ClassVar[Mapping[type[ast.expr], Callable[[Any, Any, NameScope], Value]]] = {
        ast.JoinedStr: _joined,
        ast.BinOp: _binary,
        ast.Compare: _comparison,
        ast.UnaryOp: _unary,
        ast.BoolOp: _bool,
        ast.IfExp: _conditional,
        ast.List: _sequence,
        ast.Tuple: _sequence,
        ast.Dict: _dict,
        ast.Subscript: _subscript,
        ast.ListComp: comprehension,
        ast.DictComp: comprehension,
    }
    """The reader of each kind of expression."""


def _of_unknown(owner: UnknownValue, name: str, written: str) -> UnknownValue:
    """An attribute of an unknown value, with the command-line variable that would set it."""
    if owner.tables:
        return owner
    if owner.name:
        return inputs.named(f"{owner.name}.{name}", (owner,))
    ask = written and owner.reason and not isinstance(owner.reason, Asked)
    return UnknownValue(Asked(owner.reason, written)) if ask else owner


def dotted(node: ast.expr) -> str:
    """The text of an expression such as ``sys.argv[1]`` or ``settings.SIZE``; "" for any other expression."""
    parts = node
    while isinstance(parts, ast.Attribute | ast.Subscript):
        if isinstance(parts, ast.Subscript) and not isinstance(parts.slice, ast.Constant):
            return ""
        parts = parts.value
    return ast.unparse(node) if isinstance(parts, ast.Name) else ""


def _of_expressions(name: str, left: Value, right: Value) -> Expr:
    """An operator between Table API expressions."""
    if name == "Pow":
        return Expr("call", ("POWER", (expression(left), expression(right))))
    if name not in _OPERATORS:
        raise NotRead("an operator between expressions is not supported")
    return Expr("infix", (_OPERATORS[name], expression(left), expression(right)))


_NAMES = {
    "SetComp": "a comprehension of a set",
    "GeneratorExp": "a generator",
    "Await": "an await",
    "NamedExpr": "an assignment inside an expression",
    "Set": "a set",
    "Yield": "a yield",
    "YieldFrom": "a yield",
}
