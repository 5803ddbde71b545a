"""What an expression of a program stands for, without running anything."""

from __future__ import annotations

import ast
import builtins
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_flinkcompat.frontends.pyflink import inputs
from airflow_flinkcompat.frontends.pyflink.effects import Reach, mentions, touches
from airflow_flinkcompat.frontends.pyflink.objects import (
    Class,
    Function,
    Instance,
    Module,
    NameScope,
)
from airflow_flinkcompat.frontends.pyflink.paths import Files
from airflow_flinkcompat.frontends.pyflink.surroundings import Surroundings
from airflow_flinkcompat.frontends.pyflink.udf_fingerprint import Body
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.validation import RefusedByFlink, called
from airflow_flinkcompat.frontends.table_api.values import (
    INPUT_BEGINS,
    Asked,
    Config,
    Const,
    Container,
    Inserts,
    NotRead,
    Path,
    Ref,
    Stream,
    StreamEnvironment,
    TableEnvironment,
    TableValue,
    TooMuch,
    UnknownValue,
    Value,
    bounded,
)

STEPS_LIMIT = 200_000
"""Steps of a program beyond which it is not read further."""
SECONDS_LIMIT = 30.0
"""Processor time after which it is not, whatever a step cost: far more than the steps of any program take."""


@dataclass(eq=False)
class Evaluator(ABC):
    """Evaluates expressions under the names of a frame; ``given`` is what only the environment would know."""

    session: ScriptBuilder
    given: Mapping[str, str]
    files: Files
    steps: int = 0
    began: float = field(default_factory=time.thread_time)
    """The processor time of this thread when reading began."""
    moment: int = 0
    """How many statements were read."""
    environ: dict[str, Value] = field(default_factory=dict)
    """Environment variables that the program sets itself."""
    decided: Mapping[str, bool] = field(default_factory=dict)
    """How conditions on inputs turn out, by the name of the condition."""
    undecided: dict[str, None] = field(default_factory=dict)
    """Such conditions that were asked for and are not decided."""
    surroundings: Surroundings = field(default_factory=Surroundings)
    ahead: Mapping[str, ast.Module] = field(default_factory=dict)
    """Modules beside the program that an earlier reading of it met, by file."""
    digested: int | None = None
    """How many modules were known when the text of a Python function was first collected."""

    @abstractmethod
    def call(self, node: ast.Call, frame: NameScope) -> Value:
        """What a call gives. Raises :class:`NotRead` where tables are touched in a way that is not read."""

    @abstractmethod
    def attribute(self, owner: Value, node: ast.Attribute, frame: NameScope) -> Value:
        """What ``owner.name`` stands for."""

    @abstractmethod
    def apart(self, node: ast.expr, frame: NameScope) -> Value | None:
        """The value of an operator, a display, a subscript or a comprehension; None where it is not taken apart."""

    def function_text(self) -> Body:
        """Where the text of a Python function is collected, with the environment the program made for it."""
        if self.digested is None:
            self.digested = len({**self.ahead, **self.session.trees})
        body = Body({**self.ahead, **self.session.trees}, self.given, self.step, self.files.beside, self.files.used)
        for name, value in sorted(self.environ.items()):
            body.say(f"os.environ[{name!r}] = {value.value if isinstance(value, Const) else ''!r}")
        return body

    def step(self, cost: int = 1) -> None:
        """Count work. Raises :class:`TooMuch` beyond the limit."""
        self.steps += cost
        if self.steps > STEPS_LIMIT:
            raise TooMuch(f"reading it takes more than {STEPS_LIMIT} steps")
        if time.thread_time() - self.began > SECONDS_LIMIT:
            raise TooMuch(f"reading it takes more than {SECONDS_LIMIT:.0f} s")

    def eval(self, node: ast.expr, frame: NameScope) -> Value:
        """The value of an expression. Raises :class:`NotRead` where tables are touched in a way that is not read."""
        self.step()
        try:
            return self._eval(node, frame)
        except RefusedByFlink as error:
            error.node = error.node or called(node)
            raise

    def _eval(self, node: ast.expr, frame: NameScope) -> Value:
        match node:
            case ast.Constant(value=bool() | int() | str() | float() | None as value):
                return Const(bounded(value).value, node)
            case ast.Name(id=name):
                return self.name(name, frame)
            case ast.Attribute():
                return self.attribute(self.eval(node.value, frame), node, frame)
            case ast.Call():
                found = self.call(node, frame)
                if isinstance(found, Container) and found.kind == "iterator" and found.moment < 0:
                    found.moment = self.moment
                return self.instead(found, node) if isinstance(found, UnknownValue) else found
            case ast.Lambda():
                return Function(node, frame.around, self.defaults(node.args, frame))
        taken = self.apart(node, frame)
        return self.whole(node, frame) if taken is None else taken

    def instead(self, value: UnknownValue, node: ast.expr) -> Value:
        """What is given for a call, as it is written, where nobody knows what comes out."""
        if not self.given or value.tables or (node.end_lineno or 0) > node.lineno:
            return value
        written = ast.unparse(node)
        return Const(self.given[written]) if written in self.given else value

    def defaults(self, spec: ast.arguments, frame: NameScope) -> dict[str, Value]:
        """The defaults of parameters by name, evaluated where the function is defined."""
        positional = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        found = dict(zip(reversed(positional), reversed(spec.defaults), strict=False))
        found |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
        return {name: self.eval(default, frame) for name, default in found.items()}

    def touches(self, value: Value) -> bool:
        """Whether a value is, holds or does something with tables, or may."""
        return touches(value, self.step)

    def mentions(self, node: ast.AST, frame: NameScope) -> bool:
        """Whether a name in this piece of source, or in a function that it names, touches tables."""
        return mentions(node, frame, self.step)

    def first_unknown(self, reason: str, *values: Value) -> UnknownValue:
        tabled = any(map(self.touches, values))
        found = next((value.reason for value in values if isinstance(value, UnknownValue)), reason)
        return UnknownValue(found, tabled)

    def truth(self, value: Value) -> bool | None:
        """Whether a value counts as true; None where that is not known."""
        match value:
            case UnknownValue(tables=False) if value.name and self.known_input(value) is value:
                return self.decide(value.name)
            case Const(str(text)) if text.startswith(INPUT_BEGINS):
                # It may be empty, unless something else stands in it.
                return True if inputs.placed_beside_text(text) else self.decide(inputs.canonical(value))
            case Const(given):
                return bool(given)
            case Container(inner, "", kind):
                return bool(inner) or kind == "iterator"
            case Instance(type=kind) if all(kind.find(name) is None for name in ("__bool__", "__len__")):
                return None if kind.doubt else True
            case (
                Class()
                | Function()
                | Module()
                | Path()
                | TableEnvironment()
                | TableValue()
                | Inserts()
                | StreamEnvironment()
                | Stream()
            ):
                return True
            case Config():
                return True
        return None

    def decide(self, name: str) -> bool | None:
        """How a condition on inputs turns out; None where that is not decided, which is kept in mind."""
        if name.startswith("not "):
            found = self.decide(name.removeprefix("not "))
            return None if found is None else not found
        if name not in self.decided:
            self.undecided[name] = None
        return self.decided.get(name)

    def known_input(self, value: Value | None) -> Value | None:
        """The value, unless the program itself changed an input it is made of."""
        return self.surroundings.known(value)

    def whole(self, node: ast.expr, frame: NameScope) -> Value:
        """An expression that is not taken apart."""
        kind = type(node).__name__
        what = _NAMES.get(kind, kind)
        if self.mentions(node, frame):
            raise NotRead(f"{what} that touches a table is not read")
        reach = Reach(self.step)
        reach.source(node, frame)
        reach.lose(f"it went into {what}", everything=isinstance(node, ast.Call))
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr) and isinstance(part.target, ast.Name):
                frame.bind(part.target.id, UnknownValue("what := binds is not known"))
        return UnknownValue(f"what {what} gives is not known")

    def name(self, name: str, frame: NameScope) -> Value:
        value = frame.find(name)
        if value is not None:
            return value
        if hasattr(builtins, name):
            return Ref(f"builtins.{name}")
        return UnknownValue(f"{name} is not defined here", tables=True)

    def environment(self, name: Value, default: Value | None = None) -> Value:
        """A variable of the environment, or its default."""
        if not isinstance(name, Const) or not isinstance(name.value, str):
            return UnknownValue("which variable of the environment is read is not known")
        if name.value in self.environ:
            return self.environ[name.value]
        if name.value in self.given:
            return Const(self.given[name.value])
        why = Asked("the environment decides", name.value)
        if default is None or default == Const(None):
            return self.surroundings.input(name.value, why, text=True)
        written = inputs.canonical(default)
        return self.surroundings.input(written and f"({name.value} or {written})", why, text=True)


_NAMES = {
    "ListComp": "a comprehension",
    "SetComp": "a comprehension",
    "DictComp": "a comprehension",
    "GeneratorExp": "a generator",
    "Await": "an await",
    "IfExp": "a conditional expression",
    "BoolOp": "a condition",
    "NamedExpr": "an assignment inside an expression",
    "Call": "a call with unpacked arguments",
    "Set": "a set",
    "Dict": "a dictionary",
    "Yield": "a yield",
    "YieldFrom": "a yield",
}


def dotted(node: ast.expr) -> str:
    """``sys.argv[1]`` or ``settings.SIZE`` as text; empty for anything longer."""
    parts = node
    while isinstance(parts, ast.Attribute | ast.Subscript):
        if isinstance(parts, ast.Subscript) and not isinstance(parts.slice, ast.Constant):
            return ""
        parts = parts.value
    return ast.unparse(node) if isinstance(parts, ast.Name) else ""
