"""What a value, or a piece of source, has to do with tables, and what else it could change."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from airflow_flinkcompat.frontends.pyflink.objects import (
    Arguments,
    Class,
    File,
    Function,
    Instance,
    Module,
    NameScope,
    Super,
    Template,
)
from airflow_flinkcompat.frontends.table_api.values import Const, Container, Described, Path, Ref, UnknownValue, Value

Spend = Callable[[int], None]
CODE = (
    "exec", "eval", "compile", "__import__", "globals", "locals", "vars", "getattr", "setattr", "delattr", "super",
)  # fmt: skip
"""Builtins that may do anything with anything."""
KNOWS_NO_TABLES = frozenset(
    {
        "yaml", "toml", "tomli", "dotenv", "requests", "numpy", "pandas", "boto3", "pydantic", "pydantic_settings",
        "jinja2", "click", "attr", "attrs", "loguru", "structlog", "redis", "psycopg2", "google", "pytz", "dateutil",
        "scipy", "sklearn", "torch", "transformers", "sentence_transformers", "tensorflow", "joblib", "openai",
        "sqlalchemy", "pymysql", "mysql", "pymongo", "elasticsearch", "jmespath", "bs4", "httpx", "aiohttp", "avro",
        "fastavro",
        "typing_extensions", "confluent_kafka", "kafka", "faker", "ujson", "orjson", "simplejson", "colorlog",
    }
)  # fmt: skip
"""Libraries everybody has, which know nothing of PyFlink: with no table among the arguments they reach none."""


def touches(value: Value, spend: Spend) -> bool:
    """Whether a value is, holds or does something with tables, or may; ``spend`` is told how much work that is."""
    return _touches(value, set(), spend)


def mentions(node: ast.AST, frame: NameScope, spend: Spend) -> bool:
    """Whether a name in this piece of source, or in a function that it names, touches tables."""
    return _mentions(node, frame, set(), spend)


def knows_no_tables(ref: Ref) -> bool:
    """Whether what an import brings has nothing to do with tables by itself."""
    return ref.module in sys.stdlib_module_names or ref.module in KNOWS_NO_TABLES


def _touches(value: Value, seen: set[int], spend: Spend) -> bool:
    if id(value) in seen:
        return False
    spend(1)
    if isinstance(value, Described):
        return True
    match value:
        case UnknownValue():
            return value.tables
        case Ref():
            if value.module == "builtins":
                return value.name in CODE
            return value.module == "pyflink" or not knows_no_tables(value)
    seen.add(id(value))
    if isinstance(value, Class) and (value.strange or value.function):
        return True
    if any(_touches(part, seen, spend) for part in parts(value)):
        return True
    return isinstance(value, Function) and _mentions(value.node, value.frame, seen, spend)


def _mentions(node: ast.AST, frame: NameScope, seen: set[int], spend: Spend) -> bool:
    for part in ast.walk(node):
        spend(1)
        if isinstance(part, ast.Global | ast.Nonlocal | ast.Import | ast.ImportFrom | ast.Yield | ast.YieldFrom):
            return True
        if isinstance(part, ast.Name) and _touches(named(part.id, frame), seen, spend):
            return True
    return False


def named(name: str, frame: NameScope) -> Value:
    return frame.find(name) or Ref(f"builtins.{name}")


def parts(value: Value) -> Iterable[Value]:
    """The values inside of one: elements, attributes, what is bound to a function."""
    match value:
        case Container(dict(inner)):
            return inner.values()
        case Container(list(inner)):
            return inner
        case Function(receiver=receiver, defaults=defaults, bound=bound, named=given):
            own = () if receiver is None else (receiver,)
            return (*own, *bound, *defaults.values(), *given.values())
        case Class(names=names, base=base):
            return (*names.values(), *(() if base is None else (base,)))
        case Instance(type=kind, names=names):
            return (*names.values(), kind)
        case Super(receiver=receiver):
            return (receiver,)
        case Module(frame=frame):
            return frame.names.values()
        case Const() | Path() | File() | Template() | Arguments():
            return ()
    return ()


@dataclass
class Reach:
    """Everything that pieces of source and values could change: ``sets`` where an attribute is set in one of them."""

    spend: Spend
    found: list[Value] = field(default_factory=list)
    sets: bool = False
    variables: set[str] = field(default_factory=set)
    """Variables of the environment that one of them may set; an empty name is any."""
    _seen: set[int] = field(default_factory=set)

    def source(self, node: ast.AST, frame: NameScope) -> None:
        names = set()
        for part in ast.walk(node):
            self.spend(1)
            if isinstance(part, ast.Name):
                names.add(part.id)
            self.sets |= isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load)
            self._variable(part, frame)
        self.values(value for name in names if (value := frame.find(name)) is not None)

    def _variable(self, part: ast.AST, frame: NameScope) -> None:
        match part:
            case ast.Subscript(value=owner, slice=key, ctx=ast.Store() | ast.Del()) if _is_environ(owner, frame):
                self.variables.add(str(key.value) if isinstance(key, ast.Constant) else "")
            case ast.Attribute(value=owner, attr="update" | "pop" | "setdefault" | "clear" | "popitem") if _is_environ(
                owner, frame
            ):
                self.variables.add("")
            case ast.Attribute(attr="putenv" | "unsetenv"):
                self.variables.add("")

    def values(self, given: Iterable[Value]) -> None:
        pending = list(given)
        while pending:
            value = pending.pop()
            if id(value) in self._seen or isinstance(value, Const | UnknownValue | Ref | Described):
                continue
            self.spend(1)
            self._seen.add(id(value))
            self.found.append(value)
            pending += parts(value)
            if isinstance(value, Function):
                self.source(value.node, value.frame)

    def lose(self, reason: str, everything: bool = False) -> None:
        """What was found is not known any more: lists and dictionaries, and objects where attributes may be set."""
        for value in self.found:
            match value:
                case Container():
                    value.broken = reason
                case Instance() | Class() | Module() if self.sets or (everything and isinstance(value, Instance)):
                    _lost(value, reason)
                case File():
                    value.read = True


def _lost(value: Instance | Class | Module, reason: str) -> None:
    if isinstance(value, Module):
        for name in value.frame.names:
            value.frame.names[name] = UnknownValue(reason, tables=True)
        return
    value.broken = reason


def within(node: ast.AST) -> Iterator[ast.AST]:
    """A statement and its parts, without the functions defined in it."""
    yield node
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield from within(part)


def changed(items: Container, values: Sequence[Value], number: int) -> bool:
    """Whether a list or dictionary is no longer what a loop began with, from the next round on."""
    if items.kind == "iterator":
        return False
    if items.broken or len(items.value) != len(values):
        return True
    following = items.value[number : number + 1] if isinstance(items.value, list) else []
    return any(value is not values[number] for value in following)


def _is_environ(node: ast.expr, frame: NameScope) -> bool:
    if isinstance(node, ast.Name):
        return frame.find(node.id) == Ref("os.environ")
    return isinstance(node, ast.Attribute) and node.attr == "environ"


def loaded(target: ast.expr) -> ast.expr:
    """The target of an assignment in place, as it is read before."""
    match target:
        case ast.Attribute(value=owner, attr=name):
            found: ast.expr = ast.Attribute(owner, name, ast.Load())
        case ast.Subscript(value=owner, slice=key):
            found = ast.Subscript(owner, key, ast.Load())
        case _:
            found = ast.Name(target.id if isinstance(target, ast.Name) else "", ast.Load())
    return ast.copy_location(found, target)
