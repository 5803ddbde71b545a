"""The calls of PyFlink that are read: what each makes of tables, windows, settings and statement sets.

Every other call on one of these objects raises :class:`NotRead`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.program import expressions as e
from airflow_flinkcompat.program import relations as r
from airflow_flinkcompat.program import validation
from airflow_flinkcompat.program.flip.meaning import strings
from airflow_flinkcompat.program.session import Session
from airflow_flinkcompat.program.values import (
    Config,
    Described,
    Expr,
    Inserts,
    Known,
    NotRead,
    Prepared,
    Ref,
    Relation,
    Result,
    Settings,
    Spec,
    Streams,
    Tables,
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
    "Tables": ("list_tables", "list_views", "list_temporary_tables", "list_temporary_views", "explain_sql"),
    "Relation": ("print_schema", "explain", "get_schema"),
    "Result": ("print", "wait", "collect", "get_job_client"),
    "Config": ("get", "get_string", "get_integer", "get_boolean", "get_local_timezone"),
    "Inserts": ("explain",),
}
"""Calls that change nothing."""
_SETTERS = ("set", "set_string", "set_integer", "set_boolean", "set_float")


def call_name(ref: Ref, args: Args, names: Names, session: Session, node: ast.AST) -> Value:
    """A call of what pyflink exports: ``col('a')``, ``Tumble.over(…)``, ``TableEnvironment.create(…)``."""
    owner = ref.path.rpartition(".")[0].rpartition(".")[2]
    match owner, ref.name:
        case (("StreamTableEnvironment" | "TableEnvironment"), "create"):
            return _environment([*args, *names.values()], session, node)
        case "StreamExecutionEnvironment", "get_execution_environment" if not args and not names:
            return Streams()
        case "EnvironmentSettings", ("in_streaming_mode" | "in_batch_mode" | "new_instance"):
            return Settings(ref.name == "in_batch_mode")
    if names:
        raise NotRead(f"{ref.name} with named arguments is not read")
    match owner, ref.name:
        case "DataTypes", name:
            return e.data_type(name, args)
        case (("Tumble" | "Slide" | "Session" | "Over"), name):
            return call(Spec(owner), name, args, {}, session, node)
        case _, "col" if len(args) == 1:
            return Expr("column", (r.text_of(args[0], "the name of a column"),))
        case _, "lit" if len(args) == 1:
            return e.literal(args[0])
        case _, "row_interval" if len(args) == 1:
            match args[0]:
                case Known(int(count)) if not isinstance(count, bool):
                    return Expr("rows", (count,))
            raise NotRead("row_interval takes a whole number that is known")
        case _, ("and_" | "or_") if len(args) > 1:
            first, *rest = map(r.expression, args)
            for part in rest:
                first = Expr("infix", (ref.name.strip("_").upper(), first, part))
            return first
        case _, "not_" if len(args) == 1:
            return Expr("prefix", ("NOT", r.expression(args[0])))
        case _, "concat" if args:
            return Expr("call", ("CONCAT", tuple(map(r.expression, args))))
    raise NotRead(f"{ref.name} of pyflink is not read")


def call(owner: Described, name: str, args: Args, names: Names, session: Session, node: ast.AST) -> Value:
    """A method of a described object. Raises :class:`NotRead` for one that is not read."""
    kind = type(owner).__name__
    if name in _LOOKS.get(kind, ()):
        return _LOOK
    if names and not (isinstance(owner, Relation | Inserts) and set(names) == {"overwrite"}):
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
            found = _inserts(owner, name, args, names, session, node)
        case Spec():
            found = _spec(owner, name, args, session)
        case Expr():
            found = _expression(owner, name, args)
        case Config():
            found = _config(name, args, session, node)
        case Streams():
            found = _streams(name, args, session, node)
        case Settings() if name in ("in_streaming_mode", "in_batch_mode") and not args:
            found = Settings(name == "in_batch_mode")
        case Settings() if name == "build" and not args:
            found = owner
    if found is None:
        why = next((f": {arg.reason}" for arg in args if isinstance(arg, Unknown)), "")
        raise NotRead(f"{name} of {_KINDS[kind]} is not read, or not with these arguments{why}")
    return found


def with_strings(owner: Described, name: str, args: Args, session: Session, node: ast.AST) -> list[Value]:
    """The arguments of a method, an old string expression among them read: ``select("a, b.sum as total")``."""
    texts = [arg.value for arg in args if isinstance(arg, Known) and isinstance(arg.value, str)]
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
}


def _environment(args: Args, session: Session, node: ast.AST) -> Value:
    if not all(isinstance(arg, Streams | Settings) for arg in args):
        raise NotRead("the settings of the table environment are not read")
    if session.made:
        raise NotRead("a second table environment is not read")
    session.made = True
    session.batch = any(isinstance(arg, Settings) and arg.batch for arg in args)
    if session.batch:
        _set("execution.runtime-mode", "batch", session, node)
    return Tables()


def _tables(name: str, args: Args, session: Session, node: ast.AST) -> Value | None:
    match name, len(args):
        case "execute_sql", 1:
            session.execute(args[0], node)
            return Result()
        case "sql_query", 1:
            return session.query(args[0])
        case "from_path", 1:
            path = e.path(r.text_of(args[0], "the path of a table"))
            return Relation(path, steps=("from_path",), epoch=session.epoch)
        case "create_temporary_view", 2:
            path = e.path(r.text_of(args[0], "the name of a view"))
            table = r.table_of(args[1], session)
            session.say(f"CREATE TEMPORARY VIEW {path} AS {table.sql}", node, table.steps)
            return Known(None)
        case "drop_temporary_view", 1:
            path = e.path(r.text_of(args[0], "the name of a view"))
            session.say(f"DROP TEMPORARY VIEW {path}", node)
            return Unknown("whether there was a view")
        case (("use_catalog" | "use_database"), 1):
            path = e.path(r.text_of(args[0], "the name of a catalog or database"))
            session.say(f"USE {'CATALOG ' if name == 'use_catalog' else ''}{path}", node)
            return Known(None)
        case (("create_statement_set" | "create_stmt_set"), 0):
            session.sets.append(Inserts(node))
            return session.sets[-1]
        case "get_config", 0:
            return Config()
        case (("from_data_stream" | "from_changelog_stream" | "from_pandas" | "from_elements"), _):
            raise NotRead(f"the rows of {name} do not come from a table: what makes them is not read")
    return None


def _inserts(inserts: Inserts, name: str, args: Args, names: Names, session: Session, node: ast.AST) -> Value | None:
    match name, len(args):
        case "add_insert", (2 | 3):
            table = r.table_of(args[1], session)
            sql, _, steps = r.insert(args[0], table, [*args[2:], *names.values()], node)
            inserts.inserts.append((sql, steps, session.epoch))
            return inserts
        case "add_insert_sql", 1:
            sql = session.sql(args[0]).rstrip().rstrip(";")
            inserts.inserts.append((sql, (), session.epoch))
            return inserts
        case "execute", 0 if inserts.inserts:
            if any(epoch != session.epoch for _, _, epoch in inserts.inserts):
                raise NotRead("a name was dropped or declared anew after a query of the statement set was added")
            body = "".join(f"{sql}\n;\n" for sql, _, _ in inserts.inserts)
            session.say(f"EXECUTE STATEMENT SET BEGIN\n{body}END", node, *(steps for _, steps, _ in inserts.inserts))
            inserts.inserts.clear()
            return Result()
    return None


def _spec(spec: Spec, name: str, args: Args, session: Session) -> Value | None:
    known = name == "alias" or name in _WINDOWS[spec.kind]
    if not known or not args or spec.alias or spec.get(name) is not None:
        return None
    validation.call_order(spec, name)
    if name == "alias" and len(args) == 1:
        return replace(spec, alias=r.text_of(args[0], "the alias of a window"))
    columns = r.columns(args)
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
            return Expr("alias", (expr, r.text_of(args[0], "an alias")))
        case "cast", 1 if type(args[0]).__name__ == "Type":
            return Expr("cast", (expr, args[0]))
        case "over", 1:
            match args[0]:
                case Expr("column", (alias,)):
                    return Expr("over", (expr, alias))
        case "like", 1:
            return Expr("infix", ("LIKE", expr, r.expression(args[0])))
        case "between", 2:
            return Expr("between", (expr, r.expression(args[0]), r.expression(args[1])))
    return None


def _config(name: str, args: Args, session: Session, node: ast.AST) -> Value | None:
    match name, len(args):
        case setter, 2 if setter in _SETTERS:
            _set(r.text_of(args[0], "the key of a setting"), _setting(args[1]), session, node)
            return Config()
        case "set_local_timezone", 1:
            _set("table.local-time-zone", _setting(args[0]), session, node)
            return Config()
        case "get_configuration", 0:
            return Config()
    return None


def _streams(name: str, args: Args, session: Session, node: ast.AST) -> Value | None:
    match name, list(args):
        case "set_parallelism", [Known(int(count))]:
            _set("parallelism.default", str(count), session, node)
        case "set_max_parallelism", [Known(int(count))]:
            _set("pipeline.max-parallelism", str(count), session, node)
        case "enable_checkpointing", [Known(int(count))]:
            _set("execution.checkpointing.interval", f"{count} ms", session, node)
        case "add_jars", [*jars] if jars:
            for jar in jars:
                session.say(f"ADD JAR {e.text(r.text_of(jar, 'the path of a library'))}", node)
        case _:
            return None
    return Streams()


def _setting(value: Value) -> str:
    match value:
        case Known(bool(flag)):
            return str(flag).lower()
        case Known(str() | int() | float() as given):
            return str(given)
    raise NotRead(f"the value of a setting is not known{f': {value.reason}' if isinstance(value, Unknown) else ''}")


def _set(key: str, value: str, session: Session, node: ast.AST) -> None:
    if not re.fullmatch(r"[\w.$-]+", key):
        raise NotRead("the key of a setting is none")
    session.say(f"SET {e.text(key)} = {e.text(value)}", node)
