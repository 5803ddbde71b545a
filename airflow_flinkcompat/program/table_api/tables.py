"""The calls of PyFlink that are read: what each makes of tables, windows, settings and statement sets.

Every other call on one of these objects raises :class:`NotRead`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.program.flip.meaning import strings
from airflow_flinkcompat.program.table_api import datatypes, descriptors, environment, functions, inserts, validation
from airflow_flinkcompat.program.table_api import expressions as e
from airflow_flinkcompat.program.table_api import relations as r
from airflow_flinkcompat.program.table_api.arguments import columns as columns_of
from airflow_flinkcompat.program.table_api.arguments import expression, table_of, text_of
from airflow_flinkcompat.program.table_api.parameters import positional
from airflow_flinkcompat.program.table_api.session import Session
from airflow_flinkcompat.program.values import (
    Config,
    Described,
    Descriptor,
    Expr,
    Inserts,
    Known,
    NotRead,
    Options,
    Pipe,
    Prepared,
    Ref,
    Relation,
    Result,
    Settings,
    Shape,
    Spec,
    Stream,
    Streams,
    Tables,
    Type,
    Unknown,
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
    "Relation": (
        "select", "filter", "where", "group_by", "join", "left_outer_join", "right_outer_join", "full_outer_join",
        "order_by", "add_columns", "add_or_replace_columns", "rename_columns", "drop_columns",
    ),
    "Prepared": ("select", "group_by"),
    "Spec": (
        "over", "every", "with_gap", "on", "partition_by", "order_by", "preceding", "following",
    ),
}  # fmt: skip
"""Methods that took one of the old string expressions."""
_OLD_STRINGS = "old string expressions (Flink up to 1.15 only: write col('a') instead of a text)"
_LAST_WITH_STRINGS = "1.15"
_LOOK = Unknown("what a call only looks up is not known")
_LOOKS = {
    "Tables": (
        "list_tables",
        "list_views",
        "list_temporary_tables",
        "list_temporary_views",
        "explain_sql",
        "list_catalogs",
        "list_databases",
        "list_functions",
        "list_user_defined_functions",
        "get_current_catalog",
        "list_modules",
        "get_current_database",
        "list_full_modules",
    ),
    "Relation": ("print_schema", "explain", "print_explain", "get_schema", "get_resolved_schema"),
    "Result": ("print", "wait", "collect", "get_job_client", "get_result_kind", "get_table_schema"),
    "Streams": ("get_parallelism", "get_max_parallelism", "get_execution_plan", "get_stream_graph"),
    "Pipe": ("explain", "print_explain", "get_sink_identifier"),
    "Config": ("get", "get_string", "get_integer", "get_boolean", "get_local_timezone"),
    "Inserts": ("explain", "print_explain"),
}
"""Calls that change nothing."""


def call_name(ref: Ref, args: Args, names: Names, session: Session, node: ast.AST) -> Value:
    """A call of what pyflink exports: ``col('a')``, ``Tumble.over(…)``, ``TableEnvironment.create(…)``."""
    owner = ref.path.rpartition(".")[0].rpartition(".")[2]
    begun = descriptors.begin(owner, ref.name, args) if not names else None
    if begun is not None:
        return begun
    match owner, ref.name:
        case (("StreamTableEnvironment" | "TableEnvironment"), "create"):
            return environment.made([*args, *names.values()], session, node)
        case "StreamExecutionEnvironment", "get_execution_environment":
            return environment.streams(args, names, session, node)
        case "EnvironmentSettings", ("in_streaming_mode" | "in_batch_mode" | "new_instance"):
            return Settings(ref.name == "in_batch_mode")
        case _, "Configuration" if not args and not names:
            return Options()
        case "DataTypes", name:
            return datatypes.data_type(name, args, names)
    if environment.of_streams(ref):
        return Stream()
    args, names = positional(ref.name, args, names)
    if names:
        raise NotRead(f"{ref.name} with named arguments is not read")
    match owner, ref.name:
        case (("Tumble" | "Slide" | "Session" | "Over"), name):
            return call(Spec(owner), name, args, {}, session, node)
        case _, "col" if len(args) == 1:
            return Expr("column", (text_of(args[0], "the name of a column"),))
        case _, "lit" if len(args) == 1:
            return e.literal(args[0])
        case _, "row_interval" if len(args) == 1:
            match args[0]:
                case Known(int(count)) if not isinstance(count, bool):
                    return Expr("rows", (count,))
            raise NotRead("row_interval takes a whole number that is known")
        case _, ("and_" | "or_") if len(args) > 1:
            first, *rest = map(expression, args)
            for part in rest:
                first = Expr("infix", (ref.name.strip("_").upper(), first, part))
            return first
        case _, "not_" if len(args) == 1:
            return Expr("prefix", ("NOT", expression(args[0])))
        case _, "call" if args:
            return functions.by_name(text_of(args[0], "the name of a function"), args[1:], session)
        case _, "call_sql" if len(args) == 1:
            return Expr("sql", (f"({session.fragment(text_of(args[0], 'the SQL of an expression'))})",))
    found = e.function(ref.name, args)
    if found is not None:
        return found
    raise NotRead(f"{ref.name} of pyflink is not read")


def call(owner: Described, name: str, args: Args, names: Names, session: Session, node: ast.AST) -> Value:
    """A method of a described object. Raises :class:`NotRead` for one that is not read."""
    kind = type(owner).__name__
    if name in _LOOKS.get(kind, ()):
        return _LOOK
    if isinstance(owner, Stream):
        return owner
    if name in (*environment.BEGINS, *environment.FROM_ELSEWHERE, *environment.TO_STREAMS):
        names = {}
    if not isinstance(owner, Shape | Type):
        args, names = positional(name, args, names)
    if names and not (
        isinstance(owner, Relation | Inserts | Shape) and set(names) <= {"overwrite", "metadata_key", "is_virtual"}
    ):
        raise NotRead(f"{name} with named arguments is not read")
    args = with_strings(owner, name, args, session, node)
    found: Value | None = None
    match owner:
        case Tables():
            found = _tables(name, args, session, node)
        case Relation():
            found = r.relation(session.read(owner), name, args, names, session, node)
        case Prepared():
            found = r.prepared(owner, name, args, session, node)
        case Inserts():
            found = inserts.method(owner, name, args, names, session, node)
        case Spec():
            found = _spec(owner, name, args, session)
        case Expr():
            found = _expression(owner, name, args)
        case Config():
            found = environment.of_config(owner, name, args, session, node)
        case Streams():
            found = environment.of_stream_environment(name, args, session, node)
        case Settings():
            found = environment.of_settings(owner, name, args)
        case Options():
            found = environment.of_options(owner, name, args)
        case Shape():
            found = descriptors.of_shape(owner, name, args, names, session)
        case Descriptor():
            found = descriptors.of_descriptor(owner, name, args)
        case Type():
            found = datatypes.method(owner, name, args)
        case Pipe() if name == "execute" and not args:
            if owner.epoch != session.epoch:
                raise NotRead("a name was dropped or declared anew after insert_into")
            session.say(owner.sql, node, owner.steps)
            found = Result()
    if found is None:
        why = next((f": {arg.reason}" for arg in args if isinstance(arg, Unknown)), "")
        raise NotRead(f"{name} of {_KINDS[kind]} is not read, or not with these arguments{why}")
    return found


def with_strings(owner: Described, name: str, args: Args, session: Session, node: ast.AST) -> list[Value]:
    """The arguments of a method, an old string expression among them read: ``select("a, b.sum as total")``."""
    texts = [arg.value for arg in args if isinstance(arg, Known) and isinstance(arg.value, str)]
    if isinstance(owner, Relation) and name == "alias" and len(texts) == 1 and "," in texts[0]:
        raise NotRead("a text of several names: one column to today's Flink, several to Flink up to 1.15")
    if not texts or name not in _STRINGS.get(type(owner).__name__, ()):
        return list(args)
    if len(texts) > 1 or any(isinstance(arg, Expr) for arg in args):
        raise NotRead("several texts, or texts beside expressions: an old string expression is one text")
    read = strings(
        texts[0],
        lambda expr, method, given: call(expr, method, given, {}, session, node),
        lambda function, given: call_name(Ref(f"pyflink.table.expressions.{function}"), given, {}, session, node),
    )
    if not any(note.text == _OLD_STRINGS for note in session.notes.values()):
        session.note(node, _OLD_STRINGS, _LAST_WITH_STRINGS)
    return [part for arg in args for part in (read if isinstance(arg, Known) else (arg,))]


_KINDS = {
    "Tables": "the table environment",
    "Relation": "a table",
    "Prepared": "a grouped or windowed table",
    "Inserts": "a statement set",
    "Spec": "a window",
    "Expr": "an expression",
    "Config": "the configuration",
    "Streams": "the stream environment",
    "Settings": "EnvironmentSettings",
    "Result": "a result",
    "Type": "a data type",
    "Pipe": "an INSERT",
    "Shape": "a schema",
    "Descriptor": "a table descriptor",
    "Udf": "a Python function",
    "Stream": "a DataStream",
    "Options": "a configuration",
}


def _tables(name: str, args: Args, session: Session, node: ast.AST) -> Value | None:
    match name, len(args):
        case "execute_sql", 1:
            session.execute(args[0], node)
            return Result()
        case "sql_query", 1:
            return session.query(args[0])
        case (("from_path" | "scan"), 1):
            written = text_of(args[0], "the path of a table")
            known = session.columns.get(written.lower())
            return Relation(e.path(written), steps=("from_path",), epoch=session.epoch, columns=known)
        case "from_descriptor", 1 if isinstance(args[0], Descriptor):
            return descriptors.relation(args[0], session, node)
        case (("create_temporary_table" | "create_table"), (2 | 3)):
            return _create(name, args, session, node)
        case (("create_temporary_view" | "create_view" | "register_table"), 2):
            written = text_of(args[0], "the name of a view")
            if isinstance(args[1], Stream):
                args = [args[0], environment.from_stream(name, args[1:], session, node)]
            table = table_of(args[1], session)
            temporary = "" if name == "create_view" else "TEMPORARY "
            session.say(f"CREATE {temporary}VIEW {e.path(written)} AS {table.sql}", node, table.steps)
            session.columns[written.lower()] = table.columns
            return Known(None)
        case (("drop_temporary_view" | "drop_temporary_table" | "drop_table" | "drop_view"), 1):
            path = e.path(text_of(args[0], "the name of a table or view"))
            kind = name.removeprefix("drop_").replace("_", " ").upper()
            session.say(f"DROP {kind} {path}", node)
            return Unknown("whether there was a table or view")
        case (("use_catalog" | "use_database"), 1):
            path = e.path(text_of(args[0], "the name of a catalog or database"))
            session.say(f"USE {'CATALOG ' if name == 'use_catalog' else ''}{path}", node)
            return Known(None)
        case (("create_statement_set" | "create_stmt_set"), 0):
            session.sets.append(Inserts(node))
            return session.sets[-1]
        case "get_config", 0:
            return Config()
        case begins, _ if begins in environment.FROM_ELSEWHERE:
            return environment.from_stream(name, args, session, node)
        case ends, count if ends in environment.TO_STREAMS and count:
            return environment.to_stream(name, table_of(args[0], session), session, node)
        case dependency, count if dependency in _DEPENDENCIES and count:
            environment.dependency(name, args, session, node)
            return Known(None)
        case registers, (2 | 3) if registers in _REGISTERS:
            return _register(name, args, session, node)
        case (("drop_temporary_function" | "drop_temporary_system_function" | "drop_function"), 1):
            raise NotRead("a function that is dropped is not read")
        case "execute", _ if session.streams:
            return Result()
        case removed, _ if removed in _REMOVED:
            raise NotRead(f"{name} was removed from Flink: write {_REMOVED[name]}")
    return None


_DEPENDENCIES = ("add_python_file", "set_python_requirements", "add_python_archive")
_REGISTERS = {
    "create_temporary_function": False, "create_temporary_system_function": True, "register_function": True,
    "create_java_temporary_function": False, "create_java_temporary_system_function": True,
    "create_java_function": False, "register_java_function": True,
}  # fmt: skip
"""Calls that register a function: whether it is one of the system."""
_REMOVED = {"sql_update": "execute_sql", "insert_into": "execute_insert", "connect": "CREATE TABLE"}


def _create(name: str, args: Args, session: Session, node: ast.AST) -> Value | None:
    exists = len(args) == 3 and args[2] == Known(True)
    if not isinstance(args[1], Descriptor) or (len(args) == 3 and not isinstance(args[2], Known)):
        return None
    path = e.path(text_of(args[0], "the path of a table"))
    descriptors.create(path, args[1], session, node, temporary=name == "create_temporary_table", exists=exists)
    return Known(None)


def _register(name: str, args: Args, session: Session, node: ast.AST) -> Value:
    called = text_of(args[0], "the name of a function")
    system = _REGISTERS[name]
    if len(args) > 2:
        raise NotRead("a function that is created only where there is none is not read")
    if "java" in name:
        written = text_of(args[1], "the class of a function")
        functions.java(called, written, name != "create_java_function", system, session, node)
    else:
        functions.register(called, args[1], system, session, node)
    return Known(None)


def _spec(spec: Spec, name: str, args: Args, session: Session) -> Value | None:
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
        lengths = [part[0] for method, part in spec.said if method in validation.LENGTHS]
        validation.length(spec.kind, name, columns[0], lengths, session.batch)
    elif name in ("on", "order_by"):
        validation.time_column(spec.kind, name, columns[0])
        columns = tuple(column.parts[0] if column.kind == "order" else column for column in columns)
    elif name in ("preceding", "following"):
        validation.bounds(spec, name, columns[0])
    return replace(spec, said=(*spec.said, (name, columns)))


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
