"""Python functions for Flink: their bodies are compared as text and never understood."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from airflow_flinkcompat.frontends.pyflink.objects import Class, Function, NameScope
from airflow_flinkcompat.frontends.pyflink.udf_fingerprint import Body
from airflow_flinkcompat.frontends.table_api.values import Const, NotRead, Ref, Stream, Udf, UnknownValue, Value

Args = Sequence[Value]
Names = Mapping[str, Value]
_MAKERS = {"udf": "scalar", "udaf": "aggregate", "udtf": "table", "udtaf": "table aggregate"}
BASES = {
    "ScalarFunction": "scalar",
    "AsyncScalarFunction": "scalar",
    "AggregateFunction": "aggregate",
    "TableFunction": "table",
    "TableAggregateFunction": "table aggregate",
}
"""What a class of pyflink makes of those that extend it."""
STREAM = "of a DataStream"
"""The kind of what belongs to DataStreams alone."""


def maker(ref: Ref) -> str:
    """The kind of function that ``udf``, ``udaf`` and their like of pyflink make; empty for anything else."""
    return _MAKERS.get(ref.name, "") if ref.module == "pyflink" else ""


def decorated(kind: str, node: ast.FunctionDef, frame: NameScope, body: Body) -> Udf:
    """A function under ``@udf(…)``."""
    body.node(node, frame)
    return Udf(node.name, kind, body.digest())


def made(kind: str, node: ast.AST, args: Args, names: Names, frame: NameScope, body: Body) -> Value:
    """``udf(function, …)``. Raises :class:`NotRead` where the function is not known."""
    body.node(node, frame)
    match args[0] if args else names.get("f"):
        case Function(node=inner, frame=around, name=name) as function:
            body.node(inner, around)
            for value in (*function.bound, *function.named.values()):
                if not isinstance(value, Const):
                    raise NotRead("an argument that is bound to a Python function is not known")
                body.say(repr(value.value))
            return Udf("lambda" if isinstance(inner, ast.Lambda) else name, kind, body.digest())
        case Udf(name=name, digest=digest):
            body.say(digest)
            return Udf(name, kind, body.digest())
        case Ref(path=path, name=name) if path.partition(".")[0] != "pyflink":
            body.say(path)
            return Udf(name, kind, body.digest())
    raise NotRead("which Python function this makes one of is not known")


def of_class(kind: Class, node: ast.AST, args: Args, names: Names, frame: NameScope, body: Body) -> Value:
    """An object of a class that extends ``ScalarFunction`` or its like."""
    if kind.function == STREAM:
        return Stream()
    body.node(kind.node, kind.frame)
    body.node(node, frame)
    for value in (*args, *names.values()):
        if isinstance(value, UnknownValue):
            raise NotRead(f"what makes an object of {kind.node.name} is not known: {value.reason}")
        body.say(repr(value.value) if isinstance(value, Const) else "")
    return Udf(kind.node.name, kind.function, body.digest())
