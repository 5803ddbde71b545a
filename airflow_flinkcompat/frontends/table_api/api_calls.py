"""PyFlink calls on environments, tables, windows, settings and statement sets.

Any other call on these objects raises :class:`NotRead`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from airflow_flinkcompat.frontends.table_api import arguments, descriptors, environment, table_calls, validation
from airflow_flinkcompat.frontends.table_api import expression_sql as e
from airflow_flinkcompat.frontends.table_api.arguments import columns as columns_of
from airflow_flinkcompat.frontends.table_api.arguments import expression, positional, table_of, text_of
from airflow_flinkcompat.frontends.table_api.expression_text import strings
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.values import (
    Config,
    ConfigurationValue,
    Const,
    Described,
    DescriptorValue,
    Expr,
    GroupedTable,
    Inserts,
    JobResult,
    NotRead,
    Ref,
    SchemaValue,
    Settings,
    Spec,
    Stream,
    StreamEnvironment,
    TableEnvironment,
    TablePipeline,
    TableValue,
    Type,
    UnknownValue,
    Value,
)

Args = Sequence[Value]
Names = Mapping[str, Value]

_WINDOWS = {
    "Tumble": ("over", "on"),
    "Slide": ("over", "every", "on"),
    "Session": ("with_gap", "on"),
    "Over": ("partition_by", "order_by", "preceding", "following"),
}
_STRINGS = {
    "TableValue": (
        "select", "filter", "where", "group_by", "join", "left_outer_join", "right_outer_join", "full_outer_join",
        "order_by", "add_columns", "add_or_replace_columns", "rename_columns", "drop_columns",
    ),
    "GroupedTable": ("select", "group_by"),
    "Spec": (
        "over", "every", "with_gap", "on", "partition_by", "order_by", "preceding", "following",
    ),
}  # fmt: skip
"""Methods that accepted an old string expression."""
_OLD_STRINGS = "old string expressions (Flink up to 1.15 only: write col('a') instead of a text)"
_LAST_WITH_STRINGS = "1.15"
_LOOK = UnknownValue("the result of a lookup is unknown")
_LOOKS = {
    "TableEnvironment": (
        "list_tables", "list_views", "list_temporary_tables", "list_temporary_views", "explain_sql", "list_catalogs",
        "list_databases", "list_functions", "list_user_defined_functions", "get_current_catalog", "list_modules",
        "get_current_database", "list_full_modules",
    ),
    "TableValue": ("print_schema", "explain", "print_explain", "get_schema", "get_resolved_schema"),
    "JobResult": ("print", "wait", "collect", "get_job_client", "get_result_kind", "get_table_schema"),
    "StreamEnvironment": ("get_parallelism", "get_max_parallelism", "get_execution_plan", "get_stream_graph"),
    "TablePipeline": ("explain", "print_explain", "get_sink_identifier"),
    "Config": ("get", "get_string", "get_integer", "get_boolean", "get_local_timezone"),
    "Inserts": ("explain", "print_explain"),
}  # fmt: skip
"""Calls that change nothing."""


def call_name(ref: Ref, args: Args, names: Names, session: ScriptBuilder, node: ast.AST) -> Value:
    """Result of a call of a pyflink name, such as ``col('a')`` or ``TableEnvironment.create(…)``."""
    owner = ref.path.rpartition(".")[0].rpartition(".")[2]
    begun = descriptors.begin(owner, ref.name, args) if not names else None
    if begun is not None:
        return begun
    made = _of_class(owner, ref.name, args, names, session, node)
    if made is not None:
        return made
    if environment.of_streams(ref):
        return Stream()
    args, names = positional(ref.name, args, names)
    if names:
        raise NotRead(f"{ref.name} with named arguments is not supported")
    if owner in _WINDOWS:
        return call(Spec(owner), ref.name, args, {}, session, node)
    found = _function(ref.name, args, session)
    if found is None:
        found = e.function(ref.name, args)
    if found is None:
        raise NotRead(f"{ref.name} of pyflink is not supported")
    return found


def _of_class(owner: str, name: str, args: Args, names: Names, session: ScriptBuilder, node: ast.AST) -> Value | None:
    """The environment, settings, configuration or data type that a pyflink class creates."""
    match owner, name:
        case (("StreamTableEnvironment" | "TableEnvironment"), "create"):
            return environment.table_environment([*args, *names.values()], session, node)
        case "StreamExecutionEnvironment", "get_execution_environment":
            return environment.streams(args, names, session, node)
        case "EnvironmentSettings", ("in_streaming_mode" | "in_batch_mode" | "new_instance"):
            return Settings(name == "in_batch_mode")
        case _, "Configuration" if not args and not names:
            return ConfigurationValue()
        case "DataTypes", _:
            return descriptors.data_type(name, args, names)
    return None


def _function(name: str, args: Args, session: ScriptBuilder) -> Expr | None:
    """Result of an expression function without a plain SQL equivalent; None for any other function."""
    match name, list(args):
        case "col", [column]:
            return Expr("column", (text_of(column, "the name of a column"),))
        case "lit", [value]:
            return e.literal(value)
        case "row_interval", [Const(int(count))] if not isinstance(count, bool):
            return Expr("rows", (count,))
        case "row_interval", [_]:
            raise NotRead("row_interval needs a known whole number")
        case (("and_" | "or_"), [_, _, *_]):
            word = name.strip("_").upper()
            return reduce(lambda left, right: Expr("infix", (word, left, right)), map(expression, args))
        case "not_", [operand]:
            return Expr("prefix", ("NOT", expression(operand)))
        case "call", [function, *given]:
            return arguments.by_name(text_of(function, "the name of a function"), given, session)
        case "call_sql", [written]:
            return Expr("sql", (f"({session.fragment(text_of(written, 'the SQL of an expression'))})",))
    return None


def call(owner: Described, name: str, args: Args, names: Names, session: ScriptBuilder, node: ast.AST) -> Value:
    """Result of a method of a described object. Raises :class:`NotRead` for an unsupported method."""
    kind = type(owner).__name__
    if name in _LOOKS.get(kind, ()):
        return _LOOK
    if isinstance(owner, Stream):
        return owner
    if isinstance(owner, TableEnvironment) and name in environment.FROM_ELSEWHERE:
        return environment.from_elsewhere(name, args, names, session, node)
    if name in environment.BEGINS:
        names = {}
    if not isinstance(owner, SchemaValue | Type):
        args, names = positional(name, args, names)
    if names and not (
        isinstance(owner, TableValue | Inserts | SchemaValue)
        and set(names) <= {"overwrite", "metadata_key", "is_virtual"}
    ):
        raise NotRead(f"{name} with named arguments is not supported")
    args = with_strings(owner, name, args, session, node)
    method = _METHODS.get(type(owner))
    found = None if method is None else method(owner, name, args, names, session, node)
    if found is None:
        why = next((f": {arg.reason}" for arg in args if isinstance(arg, UnknownValue)), "")
        raise NotRead(f"{name} of {_KINDS[kind]} is not supported, or not with these arguments{why}")
    return found


def with_strings(owner: Described, name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> list[Value]:
    """Parse an old string expression in the arguments of a method: ``select("a, b.sum as total")``."""
    texts = [arg.value for arg in args if isinstance(arg, Const) and isinstance(arg.value, str)]
    if isinstance(owner, TableValue) and name == "alias" and len(texts) == 1 and "," in texts[0]:
        raise NotRead("a text of several names: current Flink reads one column, Flink up to 1.15 reads several")
    if not texts or name not in _STRINGS.get(type(owner).__name__, ()):
        return list(args)
    if len(texts) > 1 or any(isinstance(arg, Expr) for arg in args):
        raise NotRead(
            "several texts, or texts next to expressions, are not supported: write an old string expression as one text"
        )
    read = strings(
        texts[0],
        lambda expr, method, given: call(expr, method, given, {}, session, node),
        lambda function, given: call_name(Ref(f"pyflink.table.expressions.{function}"), given, {}, session, node),
    )
    if not any(note.text == _OLD_STRINGS for note in session.notes.values()):
        session.note(node, _OLD_STRINGS, _LAST_WITH_STRINGS)
    return [part for arg in args for part in (read if isinstance(arg, Const) else (arg,))]


_KINDS = {
    "TableEnvironment": "the table environment",
    "TableValue": "a table",
    "GroupedTable": "a grouped or windowed table",
    "Inserts": "a statement set",
    "Spec": "a window",
    "Expr": "an expression",
    "Config": "the configuration",
    "StreamEnvironment": "the stream environment",
    "Settings": "EnvironmentSettings",
    "JobResult": "a result",
    "Type": "a data type",
    "TablePipeline": "an INSERT",
    "SchemaValue": "a schema",
    "DescriptorValue": "a table descriptor",
    "Udf": "a Python function",
    "Stream": "a DataStream",
    "ConfigurationValue": "a configuration",
}


def _pipeline(pipeline: TablePipeline, name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value | None:
    if name != "execute" or args:
        return None
    if pipeline.epoch != session.epoch:
        raise NotRead("a name was dropped or declared again after insert_into")
    session.say(pipeline.sql, node, pipeline.steps)
    return JobResult()


_METHODS: Mapping[type, Callable[[Any, str, Args, Names, ScriptBuilder, ast.AST], Value | None]] = {
    TableEnvironment: lambda _, name, args, __, session, node: _of_environment(name, args, session, node),
    TableValue: lambda table, name, args, names, session, node: table_calls.relation(
        session.read(table), name, args, names, session, node
    ),
    GroupedTable: lambda table, name, args, _, session, node: table_calls.prepared(table, name, args, session, node),
    Inserts: table_calls.statement_set,
    Spec: lambda spec, name, args, _, session, __: _spec(spec, name, args, session),
    Expr: lambda expr, name, args, *_: _expression(expr, name, args),
    Config: lambda config, name, args, _, session, node: environment.of_config(config, name, args, session, node),
    StreamEnvironment: lambda _, name, args, __, session, node: environment.of_stream_environment(
        name, args, session, node
    ),
    Settings: lambda settings, name, args, *_: environment.of_settings(settings, name, args),
    ConfigurationValue: lambda options, name, args, *_: environment.of_options(options, name, args),
    SchemaValue: lambda schema, name, args, names, session, _: descriptors.of_shape(schema, name, args, names, session),
    DescriptorValue: lambda descriptor, name, args, *_: descriptors.of_descriptor(descriptor, name, args),
    Type: lambda type, name, args, *_: descriptors.method(type, name, args),
    TablePipeline: lambda pipeline, name, args, _, session, node: _pipeline(pipeline, name, args, session, node),
}
"""The reader of method calls, by type of object."""


def _of_environment(name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value | None:
    """Result of a table-environment method; None if it is unsupported with these arguments."""
    if name in _REMOVED:
        raise NotRead(f"{name} was removed from Flink: write {_REMOVED[name]}")
    if name in _TABLES and len(args) in _TABLES[name][0]:
        return _TABLES[name][1](name, args, session, node)
    return None


def _execute_sql(name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value:
    session.execute(args[0], node)
    return JobResult()


def _from_path(name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value:
    written = text_of(args[0], "the path of a table")
    known = session.columns.get(written.lower())
    return TableValue(e.path(written), steps=("from_path",), epoch=session.epoch, columns=known)


def _from_descriptor(name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value | None:
    return descriptors.relation(args[0], session, node) if isinstance(args[0], DescriptorValue) else None


def _create_view(name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value:
    written = text_of(args[0], "the name of a view")
    rows = environment.from_elsewhere(name, args[1:], {}, session, node) if isinstance(args[1], Stream) else args[1]
    if rows is args[1] and len(args) > 2:
        raise NotRead("the columns of a view are passed next to a table")
    table = table_of(rows, session)
    temporary = "" if name == "create_view" else "TEMPORARY "
    session.say(f"CREATE {temporary}VIEW {e.path(written)} AS {table.sql}", node, table.steps)
    session.columns[written.lower()] = table.columns
    return Const(None)


def _drop(name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value:
    path = e.path(text_of(args[0], "the name of a table or view"))
    kind = name.removeprefix("drop_").replace("_", " ").upper()
    session.say(f"DROP {kind} {path}", node)
    return UnknownValue("whether there was a table or view")


def _use(name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value:
    path = e.path(text_of(args[0], "the name of a catalog or database"))
    session.say(f"USE {'CATALOG ' if name == 'use_catalog' else ''}{path}", node)
    return Const(None)


def _create_statement_set(name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value:
    session.sets.append(Inserts(node))
    return session.sets[-1]


def _to_stream(name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value:
    return environment.to_stream(name, table_of(args[0], session), session, node)


def _depend(name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value:
    environment.dependency(name, args, session, node)
    return Const(None)


_REGISTERS = {
    "create_temporary_function": False, "create_temporary_system_function": True, "register_function": True,
}  # fmt: skip
"""Calls that register a function; the value is True for a system function."""
_REMOVED = {"sql_update": "execute_sql", "insert_into": "execute_insert", "connect": "CREATE TABLE"}


def _create_table(name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value | None:
    exists = len(args) == 3 and args[2] == Const(True)
    if not isinstance(args[1], DescriptorValue) or (len(args) == 3 and not isinstance(args[2], Const)):
        return None
    path = e.path(text_of(args[0], "the path of a table"))
    descriptors.create(path, args[1], session, node, temporary=name == "create_temporary_table", exists=exists)
    return Const(None)


def _register(name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value:
    arguments.register(text_of(args[0], "the name of a function"), args[1], _REGISTERS[name], session, node)
    return Const(None)


_Counts = range | tuple[int, ...]
_ANY = range(sys.maxsize)
_TABLES: Mapping[str, tuple[_Counts, Callable[[str, Args, ScriptBuilder, ast.AST], Value | None]]] = {
    "execute_sql": ((1,), _execute_sql),
    "sql_query": ((1,), lambda _, args, session, __: session.query(args[0])),
    **dict.fromkeys(("from_path", "scan"), ((1,), _from_path)),
    "from_descriptor": ((1,), _from_descriptor),
    **dict.fromkeys(("create_temporary_table", "create_table"), ((2, 3), _create_table)),
    **dict.fromkeys(("create_temporary_view", "create_view", "register_table"), (_ANY[2:], _create_view)),
    **dict.fromkeys(("drop_temporary_view", "drop_temporary_table", "drop_table", "drop_view"), ((1,), _drop)),
    **dict.fromkeys(("use_catalog", "use_database"), ((1,), _use)),
    **dict.fromkeys(("create_statement_set", "create_stmt_set"), ((0,), _create_statement_set)),
    "get_config": ((0,), lambda *_: Config()),
    **dict.fromkeys(environment.TO_STREAMS, (_ANY[1:], _to_stream)),
    **dict.fromkeys(("add_python_file", "set_python_requirements", "add_python_archive"), (_ANY[1:], _depend)),
    **dict.fromkeys(_REGISTERS, ((2,), _register)),
    "execute": (_ANY, lambda _, __, session, ___: JobResult() if session.streams else None),
}
"""The allowed numbers of arguments and the reader of each table-environment method."""


def _spec(spec: Spec, name: str, args: Args, session: ScriptBuilder) -> Value | None:
    known = name == "alias" or name in _WINDOWS[spec.kind]
    if not known or not args or spec.alias or spec.get(name) is not None:
        return None
    validation.call_order(spec, name)
    if name == "alias" and len(args) == 1:
        return replace(spec, alias=text_of(args[0], "the alias of a window"))
    columns = columns_of(args)
    if len(columns) != 1 and name != "partition_by":
        return None
    if name in validation.LENGTHS:
        lengths = [part[0] for method, part in spec.calls if method in validation.LENGTHS]
        validation.length(spec.kind, name, columns[0], lengths, session.batch)
    elif name in ("on", "order_by"):
        validation.time_column(spec.kind, name, columns[0])
        columns = tuple(column.parts[0] if column.kind == "order" else column for column in columns)
    elif name in ("preceding", "following"):
        validation.bounds(spec, name, columns[0])
    return replace(spec, calls=(*spec.calls, (name, columns)))


def _expression(expr: Expr, name: str, args: Args) -> Value | None:
    match name, len(args):
        case "alias", 1:
            return Expr("alias", (expr, text_of(args[0], "an alias")))
        case "alias", count if count:
            return Expr("aliases", (expr, tuple(text_of(arg, "an alias") for arg in args)))
        case "over", 1:
            match args[0]:
                case Expr("column", (alias,)):
                    return Expr("over", (expr, alias))
    return e.method(expr, name, args)
