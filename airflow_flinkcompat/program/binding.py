"""What a program binds to names: by assignment, by definition and by import."""

from __future__ import annotations

import ast
from abc import abstractmethod

from airflow_flinkcompat.program import expressions as e
from airflow_flinkcompat.program.calls import Caller
from airflow_flinkcompat.program.values import (
    EVERYTHING,
    Arguments,
    Described,
    Frame,
    Function,
    Items,
    Known,
    Namespace,
    NotRead,
    Ref,
    Unknown,
    Value,
)

_STARS = {
    "pyflink.table.expressions": ("col", "lit", "row_interval", "and_", "or_", "not_", "concat", *e.BOUNDS),
    "pyflink.table.window": ("Tumble", "Slide", "Session", "Over"),
    "pyflink.table": (
        "TableEnvironment", "StreamTableEnvironment", "EnvironmentSettings", "DataTypes",
    ),
    "pyflink.datastream": ("StreamExecutionEnvironment",),
}  # fmt: skip
"""What is read of the names that an import of everything brings."""


class Binder(Caller):
    """Binds names."""

    @abstractmethod
    def statement(self, node: ast.stmt, frame: Frame) -> None:
        """Read a statement. Raises :class:`NotRead` where it touches tables and is not understood."""

    def bind(self, target: ast.expr, value: Value, frame: Frame) -> None:
        match target:
            case ast.Name(id=name):
                frame.bind(name, value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                match value:
                    case Items(list(values), "") if len(values) == len(parts):
                        for part, inner in zip(parts, values, strict=True):
                            self.bind(part, inner, frame)
                    case _:
                        if self.touches(value):
                            raise NotRead("a table is unpacked in a way that is not read")
                        for part in parts:
                            self.bind(part, Unknown("what was unpacked is not known"), frame)
            case ast.Subscript(value=inner, slice=key):
                self._set_item(self.eval(inner, frame), self.eval(key, frame), value)
            case ast.Attribute(value=inner):
                owner = self.eval(inner, frame)
                if (
                    self.touches(value)
                    or self.touches(owner)
                    or isinstance(owner, Namespace | Described | Function | Ref | Arguments)
                ):
                    raise NotRead("an attribute that is set is not read")
            case _:
                raise NotRead("a target of an assignment is not read")

    def _set_item(self, owner: Value, key: Value, value: Value) -> None:
        match owner, key:
            case Ref("os.environ"), Known(str(name)):
                self.environ[name] = value
                return
            case Ref("os.environ"), _:
                raise NotRead("which variable of the environment is set is not known")
            case Items(), _:
                owner.broken = "an element of it was set"
        if self.touches(value) or self.touches(owner):
            raise NotRead("a table put into a container is not read")

    def define(self, node: ast.FunctionDef, frame: Frame) -> None:
        if node.decorator_list:
            reason = f"{node.name} has a decorator: what it does is not read"
            frame.bind(node.name, Unknown(reason, tables=True))
            for decorator in node.decorator_list:
                names = (part for part in ast.walk(decorator) if isinstance(part, ast.Name))
                found = [frame.find(part.id) for part in names]
                if any(value is not None and self.touches(value) and not _udf(value) for value in found):
                    raise NotRead(reason)
            return
        spec = node.args
        defaults = dict(zip(reversed([arg.arg for arg in spec.args]), reversed(spec.defaults), strict=False))
        defaults |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
        frame.bind(node.name, Function(node, frame, {name: self.eval(d, frame) for name, d in defaults.items()}))

    def class_(self, node: ast.ClassDef, frame: Frame) -> None:
        reason = f"class {node.name} is not read"
        constants = [part for part in node.body if not _docstring(part) and not isinstance(part, ast.Pass)]
        if not (node.bases or node.keywords or node.decorator_list) and all(
            isinstance(part, ast.Assign | ast.AnnAssign) for part in constants
        ):
            inner = Frame(outer=frame)
            for part in constants:
                self.statement(part, inner)
            frame.bind(node.name, Namespace(inner.names))
            return
        frame.bind(node.name, Unknown(reason, tables=True))
        # Its methods run when somebody calls them; everything else runs here.
        outside = [part for part in node.body if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
        ran: tuple[ast.AST, ...] = (*outside, *node.decorator_list)
        for piece in ran:
            names = (name for name in ast.walk(piece) if isinstance(name, ast.Name))
            if any(isinstance(frame.find(name.id), Described | Function | Unknown) for name in names):
                raise NotRead(reason)

    def import_(self, node: ast.ImportFrom, frame: Frame) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name != "*":
                frame.bind(alias.asname or alias.name, Ref(f"{module}.{alias.name}"))
                continue
            if module in _STARS:
                for name in _STARS[module]:
                    frame.bind(name, Ref(f"{module}.{name}"))
                continue
            frame.module.names[EVERYTHING] = Unknown(f"it may come from `from {module} import *`", tables=True)


def _udf(value: Value) -> bool:
    """Whether a decorator only wraps a function for Flink, or its arguments only name types."""
    return isinstance(value, Ref) and value.module == "pyflink"


def _docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
