"""Arguments of Table API calls, and functions that a program registers or calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from airflow_flinkcompat.frontends.table_api import expression_sql as e
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.values import (
    Const,
    Expr,
    NotRead,
    Path,
    Ref,
    TableValue,
    Udf,
    UnknownValue,
    Value,
    marked,
)
from airflow_flinkcompat.model.text import sql_name, sql_text

_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "execute_sql": ("stmt",),
    "sql_query": ("query",),
    "from_path": ("path",),
    "from_descriptor": ("descriptor",),
    "create_temporary_view": ("view_path", "table_or_data_stream"),
    "create_view": ("view_path", "table"),
    "create_temporary_table": ("path", "descriptor"),
    "create_table": ("path", "descriptor", "ignoreIfExists"),
    "create_temporary_function": ("path", "function"),
    "create_temporary_system_function": ("name", "function"),
    "register_function": ("name", "function"),
    "add_insert_sql": ("stmt",),
    "add_insert": ("target_path_or_descriptor", "table", "overwrite"),
    "execute_insert": ("table_path_or_descriptor", "overwrite"),
    "insert_into": ("table_path_or_descriptor", "overwrite"),
    "set_parallelism": ("parallelism",),
    "enable_checkpointing": ("interval",),
    "set": ("key", "value"),
    "set_local_timezone": ("timezone_id",),
    "add_python_file": ("file_path",),
    "set_python_requirements": ("requirements_file_path", "requirements_cache_dir"),
    "col": ("name",),
    "lit": ("v", "data_type"),
    "call": ("f_name",),
    "call_sql": ("sql_expression",),
    "join": ("right", "join_predicate"),
    "left_outer_join": ("right", "join_predicate"),
    "right_outer_join": ("right", "join_predicate"),
    "full_outer_join": ("right", "join_predicate"),
    "union_all": ("right",),
    "to_data_stream": ("table",),
    "to_changelog_stream": ("table",),
    "to_append_stream": ("table",),
    "to_retract_stream": ("table",),
    "set_checkpointing_mode": ("checkpointing_mode",),
    "window": ("window",),
    "with_configuration": ("configuration",),
    "fetch": ("fetch",),
    "offset": ("offset",),
    "limit": ("fetch", "offset"),
    "for_connector": ("connector",),
}
"""Parameter names of PyFlink's methods, in order."""


def positional(name: str, args: Sequence[Value], names: Mapping[str, Value]) -> tuple[list[Value], dict[str, Value]]:
    """Move named arguments to their positions. Returns positional and remaining named arguments."""
    found, rest = list(args), dict(names)
    for parameter in _PARAMETERS.get(name, ())[len(args) :]:
        if parameter not in rest:
            break
        found.append(rest.pop(parameter))
    if rest.keys() & set(_PARAMETERS.get(name, ())[: len(args)]):
        raise NotRead(f"{name} receives an argument twice")
    return found, {key: value for key, value in rest.items() if not (key == "overwrite" and value == Const(False))}


Args = Sequence[Value]


def expression(value: Value) -> Expr:
    """Convert an argument to an expression. Raises :class:`NotRead` for any other value."""
    if isinstance(value, Ref) and value.name in e.BOUNDS and value.module == "pyflink":
        return Expr("bound", (value.name,))
    return e.literal(value)


def columns(args: Args) -> tuple[Expr, ...]:
    """Convert arguments to expressions. Raises :class:`NotRead` for an old string expression."""
    if any(isinstance(arg, Const) for arg in args):
        raise NotRead("the old string expressions are not supported: write col('a')")
    return tuple(map(expression, args))


def text_of(value: Value, what: str) -> str:
    if isinstance(value, Const) and isinstance(value.value, str):
        return value.value
    raise NotRead(f"{what} is unknown: {value.reason if isinstance(value, UnknownValue) else 'it is not a text'}")


def setting_of(value: Value, what: str) -> str:
    """The text of the value of an option or setting, which may be an input."""
    match value:
        case Const(bool(flag)):
            return str(flag).lower()
        case Const(int() | float() as number):
            return str(number)
        case Const(str(text)) | Path(text):
            return text
        case UnknownValue(name=name) if name:
            return marked(name)
    raise NotRead(f"the value of {what} is unknown{f': {value.reason}' if isinstance(value, UnknownValue) else ''}")


def table_of(value: Value, session: ScriptBuilder) -> TableValue:
    if isinstance(value, TableValue):
        return session.read(value)
    raise NotRead(f"the table is unknown: {value.reason if isinstance(value, UnknownValue) else 'it is not a table'}")


AGGREGATES = frozenset(
    """
    COUNT SUM SUM0 MIN MAX AVG FIRST_VALUE LAST_VALUE LISTAGG COLLECT ARRAY_AGG STDDEV_POP STDDEV_SAMP VAR_POP VAR_SAMP
    VARIANCE STDDEV
    """.split()  # noqa: SIM905 -- a list of names
)
"""Built-in aggregates that a program can call by name."""


def register(name: str, function: Value, system: bool, session: ScriptBuilder, node: ast.AST) -> None:
    """Register a Python function under a name. Raises :class:`NotRead` if the function is unknown."""
    if not isinstance(function, Udf):
        why = f": {function.reason}" if isinstance(function, UnknownValue) else ""
        raise NotRead(f"the Python function is unknown{why}")
    path = sql_name(name) if system else e.path(name)
    _declare(path, function, system, session, node)
    session.functions[name.lower()] = function.kind


def inline(function: Udf, args: Args, session: ScriptBuilder, node: ast.AST) -> Expr:
    """A call of a Python function in an expression; the function is declared once under its own name."""
    key = (function.name, function.digest)
    if key not in session.inlined:
        before = sum(name == function.name for name, _ in session.inlined)
        name = f"{function.name}__inline{before + 1 if before else ''}"
        if name.lower() in session.functions or not _plain(name):
            raise NotRead(f"a Python function called {function.name} is not supported as a direct call")
        _declare(sql_name(name), function, True, session, node)
        session.inlined[key] = name
    return called(session.inlined[key], function.kind, args)


def _declare(path: str, function: Udf, system: bool, session: ScriptBuilder, node: ast.AST) -> None:
    # Functions are compared by a digest of their body, which takes the place of the class name.
    body = sql_text(f"{function.name}@{function.digest}")
    kind = "TEMPORARY SYSTEM" if system else "TEMPORARY"
    session.say(f"CREATE {kind} FUNCTION {path} AS {body} LANGUAGE PYTHON", node, kind=function.kind)


def by_name(name: str, args: Args, session: ScriptBuilder) -> Expr:
    """Result of ``call('name', …)`` for a function of the catalog, the session or Flink."""
    kind = session.functions.get(name.lower(), "aggregate" if name.upper() in AGGREGATES else "")
    if not _plain(name):
        raise NotRead("a function whose name is not a plain dotted name is not supported")
    return called(name, kind, args)


def _plain(name: str) -> bool:
    """True if SQL accepts a name without quotes, so that a call matches its declaration."""
    return re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){0,2}", name, re.ASCII) is not None


def called(name: str, kind: str, args: Args) -> Expr:
    """The expression of a call; a function of unknown kind may be an aggregate."""
    given = tuple(map(e.literal, args))
    if kind == "aggregate":
        return Expr("aggregate", (name, given[0] if len(given) == 1 else Expr("list", (given,)), False))
    return Expr("call" if kind else "own", (name, given))
