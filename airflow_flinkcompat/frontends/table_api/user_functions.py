"""Functions of a program's own: how they are registered and called, as SQL."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from airflow_flinkcompat.frontends.table_api import expression_sql as e
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.values import Expr, NotRead, Udf, UnknownValue, Value
from airflow_flinkcompat.model.text import sql_name, sql_text

Args = Sequence[Value]
AGGREGATES = frozenset(
    """
    COUNT SUM SUM0 MIN MAX AVG FIRST_VALUE LAST_VALUE LISTAGG COLLECT ARRAY_AGG STDDEV_POP STDDEV_SAMP VAR_POP VAR_SAMP
    VARIANCE STDDEV
    """.split()  # noqa: SIM905 -- a list of names
)
"""Aggregates of Flink's own that a program may name in a text."""


def register(name: str, function: Value, system: bool, session: ScriptBuilder, node: ast.AST) -> None:
    """``create_temporary_function`` and its like. Raises :class:`NotRead` where the function is not known."""
    if not isinstance(function, Udf):
        why = f": {function.reason}" if isinstance(function, UnknownValue) else ""
        raise NotRead(f"which Python function this is, is not known{why}")
    path = sql_name(name) if system else e.path(name)
    _declare(path, function, system, session, node)
    session.functions[name.lower()] = function.kind


def java(name: str, written: str, temporary: bool, system: bool, session: ScriptBuilder, node: ast.AST) -> None:
    """A function by its class: the same as DDL."""
    words = " ".join(word for word, said in (("TEMPORARY", temporary), ("SYSTEM", system)) if said)
    path = sql_name(name) if system else e.path(name)
    session.say(f"CREATE {words} FUNCTION {path} AS {sql_text(written)} LANGUAGE JAVA", node)


def inline(function: Udf, args: Args, session: ScriptBuilder, node: ast.AST) -> Expr:
    """A Python function called in an expression: declared under a name of its own, once."""
    key = (function.name, function.digest)
    if key not in session.inlined:
        before = sum(name == function.name for name, _ in session.inlined)
        name = f"{function.name}__inline{before + 1 if before else ''}"
        if name.lower() in session.functions or not _plain(name):
            raise NotRead(f"a Python function called {function.name} is not read where it is called by itself")
        _declare(sql_name(name), function, True, session, node)
        session.inlined[key] = name
    return called(session.inlined[key], function.kind, args)


def _declare(path: str, function: Udf, system: bool, session: ScriptBuilder, node: ast.AST) -> None:
    # What is compared is the text of the body: its digest stands where the class of a function stands.
    body = sql_text(f"{function.name}@{function.digest}")
    kind = "TEMPORARY SYSTEM" if system else "TEMPORARY"
    session.say(f"CREATE {kind} FUNCTION {path} AS {body} LANGUAGE PYTHON", node, kind=function.kind)


def by_name(name: str, args: Args, session: ScriptBuilder) -> Expr:
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
