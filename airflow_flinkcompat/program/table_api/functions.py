"""Functions of a program's own: Python functions for Flink, whose bodies are compared as text and never understood."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from airflow_flinkcompat.program.bodies import Body
from airflow_flinkcompat.program.objects import Class, Function
from airflow_flinkcompat.program.table_api import expressions as e
from airflow_flinkcompat.program.table_api.session import Session
from airflow_flinkcompat.program.values import Expr, Frame, Known, NotRead, Ref, Stream, Udf, Unknown, Value

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
AGGREGATES = frozenset(
    """
    COUNT SUM SUM0 MIN MAX AVG FIRST_VALUE LAST_VALUE LISTAGG COLLECT ARRAY_AGG STDDEV_POP STDDEV_SAMP VAR_POP VAR_SAMP
    VARIANCE STDDEV
    """.split()  # noqa: SIM905 -- a list of names
)
"""Aggregates of Flink's own that a program may name in a text."""


def maker(ref: Ref) -> str:
    """The kind of function that ``udf``, ``udaf`` and their like of pyflink make; empty for anything else."""
    return _MAKERS.get(ref.name, "") if ref.module == "pyflink" else ""


def decorated(kind: str, node: ast.FunctionDef, frame: Frame, body: Body) -> Udf:
    """A function under ``@udf(…)``."""
    body.node(node, frame)
    return Udf(node.name, kind, body.digest())


def made(kind: str, node: ast.AST, args: Args, names: Names, frame: Frame, body: Body) -> Value:
    """``udf(function, …)``. Raises :class:`NotRead` where the function is not known."""
    body.node(node, frame)
    match args[0] if args else names.get("f"):
        case Function(node=inner, frame=around, name=name) as function:
            body.node(inner, around)
            for value in (*function.bound, *function.named.values()):
                if not isinstance(value, Known):
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


def of_class(kind: Class, node: ast.AST, args: Args, names: Names, frame: Frame, body: Body) -> Value:
    """An object of a class that extends ``ScalarFunction`` or its like."""
    if kind.function == STREAM:
        return Stream()
    body.node(kind.node, kind.frame)
    body.node(node, frame)
    for value in (*args, *names.values()):
        if isinstance(value, Unknown):
            raise NotRead(f"what makes an object of {kind.node.name} is not known: {value.reason}")
        body.say(repr(value.value) if isinstance(value, Known) else "")
    return Udf(kind.node.name, kind.function, body.digest())


def register(name: str, function: Value, system: bool, session: Session, node: ast.AST) -> None:
    """``create_temporary_function`` and its like. Raises :class:`NotRead` where the function is not known."""
    if not isinstance(function, Udf):
        why = f": {function.reason}" if isinstance(function, Unknown) else ""
        raise NotRead(f"which Python function this is, is not known{why}")
    path = e.quoted(name) if system else e.path(name)
    _declare(path, function, system, session, node)
    session.functions[name.lower()] = function.kind


def java(name: str, written: str, temporary: bool, system: bool, session: Session, node: ast.AST) -> None:
    """A function by its class: the same as DDL."""
    words = " ".join(word for word, said in (("TEMPORARY", temporary), ("SYSTEM", system)) if said)
    path = e.quoted(name) if system else e.path(name)
    session.say(f"CREATE {words} FUNCTION {path} AS {e.text(written)} LANGUAGE JAVA", node)


def inline(function: Udf, args: Args, session: Session, node: ast.AST) -> Expr:
    """A Python function called in an expression: declared under a name of its own, once."""
    key = (function.name, function.digest)
    if key not in session.inlined:
        before = sum(name == function.name for name, _ in session.inlined)
        name = f"{function.name}__inline{before + 1 if before else ''}"
        if name.lower() in session.functions or not _plain(name):
            raise NotRead(f"a Python function called {function.name} is not read where it is called by itself")
        _declare(e.quoted(name), function, True, session, node)
        session.inlined[key] = name
    return called(session.inlined[key], function.kind, args)


def _declare(path: str, function: Udf, system: bool, session: Session, node: ast.AST) -> None:
    # What is compared is the text of the body: its digest stands where the class of a function stands.
    body = e.text(f"{function.name}@{function.digest}")
    kind = "TEMPORARY SYSTEM" if system else "TEMPORARY"
    session.say(f"CREATE {kind} FUNCTION {path} AS {body} LANGUAGE PYTHON", node, kind=function.kind)


def by_name(name: str, args: Args, session: Session) -> Expr:
    """``call('name', …)``: a function that the catalog, the session or Flink itself knows."""
    kind = session.functions.get(name.lower(), "aggregate" if name.upper() in AGGREGATES else "")
    if not _plain(name):
        raise NotRead("a function whose name is no plain dotted name is not read")
    return called(name, kind, args)


def _plain(name: str) -> bool:
    """Whether a name is one that SQL takes without quotes: with them a call is not found to mean a declaration."""
    return re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){0,2}", name, re.ASCII) is not None


def called(name: str, kind: str, args: Args) -> Expr:
    """The call as an expression; of an unknown kind it may be an aggregate too."""
    given = tuple(map(e.literal, args))
    if kind == "aggregate":
        return Expr("aggregate", (name, given[0] if len(given) == 1 else Expr("list", (given,)), False))
    return Expr("call" if kind else "own", (name, given))
