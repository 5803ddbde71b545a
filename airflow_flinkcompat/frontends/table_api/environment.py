"""Environments of a program, their settings, DataStreams, and tables with rows from the program.

Rows that are literals in the program become a table with a special connector and a digest of the rows as an option.
Other rows and DataStreams are opaque. Opaque parts become tables without a declaration, and the script has a digest of
the whole program. The state of opaque parts is unknown, so the effect of any change of the program is unknown.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

from airflow_flinkcompat.frontends.table_api.arguments import setting_of, text_of
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.values import (
    Config,
    ConfigurationValue,
    Const,
    Container,
    Expr,
    JobResult,
    NotRead,
    Ref,
    SchemaValue,
    Settings,
    Stream,
    StreamEnvironment,
    TableEnvironment,
    TableValue,
    Type,
    UnknownValue,
    Value,
)
from airflow_flinkcompat.model.text import sql_name, sql_text

BEGINS = (
    "from_collection", "from_source", "add_source", "read_text_file", "create_input", "from_elements",
    "generate_sequence",
)  # fmt: skip
"""Calls that begin a DataStream."""
FROM_ELSEWHERE = ("from_data_stream", "from_changelog_stream", "from_pandas", "from_elements", "from_collection")
"""Calls that create a table from rows that are in no other table."""
TO_STREAMS = ("to_data_stream", "to_changelog_stream", "to_append_stream", "to_retract_stream")
"""Calls that convert a table to a DataStream."""
_ROWS = ("from_elements", "from_collection")
_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "STRING"}
_NOT_KNOWN = "{} is one opaque {}: its state is unknown, and so is the effect of any change of it"


def stream(session: ScriptBuilder, node: ast.AST) -> Stream:
    """Begin a DataStream."""
    session.streams = session.opaque = True
    session.note(node, _NOT_KNOWN.format("a DataStream", "part of the job"))
    return Stream()


def from_elsewhere(
    name: str, args: Args, names: Mapping[str, Value], session: ScriptBuilder, node: ast.AST
) -> TableValue:
    """A table of rows that are in no other table. It has a declaration if rows and types are known."""
    given = [*args, *names.values()]
    schema = next((each for each in given[1:] if isinstance(each, SchemaValue | Type | Container)), None)
    columns, types = _columns(schema, given)
    if not columns and all(isinstance(each, Expr) and each.kind in ("column", "alias") for each in given[1:]):
        columns = tuple(str(each.parts[-1]) for each in given[1:] if isinstance(each, Expr))
    rows = _rows(given) if name in _ROWS and types else ""
    path = _path("elements" if name in _ROWS else "pandas" if name == "from_pandas" else "stream", session)
    if rows:
        listed = ", ".join(f"{sql_name(column)} {type}" for column, type in zip(columns, types, strict=True))
        options = f"'connector' = 'rows of the program', 'rows' = {sql_text(rows)}"
        session.say(f"CREATE TEMPORARY TABLE {path} ({listed}) WITH ({options})", node)
    else:
        session.opaque = True
        session.note(node, _NOT_KNOWN.format(f"what {name} gives", "source"))
    return TableValue(path, steps=(name,), epoch=session.epoch, columns=columns or None)


def to_stream(name: str, table: TableValue, session: ScriptBuilder, node: ast.AST) -> Stream:
    """Convert a table to a DataStream, as an INSERT of the table's query into one opaque sink."""
    session.say(f"INSERT INTO {_path('stream', session)} {table.sql}", node, (*table.steps, name))
    return stream(session, node)


def executed(session: ScriptBuilder, node: ast.AST) -> Value:
    """Execute the DataStreams of the program, as an INSERT from one opaque source into one opaque sink."""
    source, sink = _path("stream", session), _path("stream", session)
    session.say(f"INSERT INTO {sink} SELECT * FROM {source}", node, ("execute",))
    return JobResult()


def _path(kind: str, session: ScriptBuilder) -> str:
    """A unique path for a table of rows that are in no other table."""
    session.sources += 1
    return sql_name(f"{kind}_{session.sources}")


def _columns(schema: Value | None, given: Args) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names and the types of the columns, or () if they are unknown."""
    match schema:
        case SchemaValue(lines, columns):
            plain = [line.removeprefix(f"{sql_name(name)} ") for line, name in zip(lines, columns, strict=False)]
            stored = len(lines) == len(columns) and not any(line.startswith("AS ") for line in plain)
            return columns, tuple(plain) if stored else ()
        case Type(fields=fields) if fields:
            return tuple(name for name, _ in fields), tuple(type for _, type in fields)
        case Container(list(inner), ""):
            names = [each.value for each in inner if isinstance(each, Const) and isinstance(each.value, str)]
            if len(names) == len(inner) and schema is not given[0]:
                return tuple(names), _inferred(given[0], len(names))
    return (), ()


def _inferred(rows: Value, width: int) -> tuple[str, ...]:
    """The types of columns; empty unless each column has a single plain type in all rows."""
    listed = [_items(row) for row in _items(rows)]
    if not listed or any(len(row) != width for row in listed):
        return ()
    found = []
    for column in zip(*listed, strict=True):
        types = {type(each.value) if isinstance(each, Const) else None for each in column}
        (one, *others) = types
        if others or one not in _TYPES:
            return ()
        found.append(_TYPES[one])
    return tuple(found)


def _items(value: Value) -> list[Value]:
    return value.value if isinstance(value, Container) and isinstance(value.value, list) and not value.broken else []


def _rows(given: Args) -> str:
    """Digest of rows that are literals in the program; "" if a row is unknown."""
    written = _written(given[0]) if given else ""
    if not written:
        return ""
    return hashlib.sha256(
        f"{written} {[_written(each) or type(each).__name__ for each in given[1:]]}".encode()
    ).hexdigest()[:16]


def _written(value: Value) -> str:
    match value:
        case Const(given):
            return repr(given)
        case Type(sql):
            return sql
        case Container(list(inner), "", kind) if kind in ("list", "tuple"):
            parts = [_written(each) for each in inner]
            return f"{kind}({', '.join(parts)})" if all(parts) else ""
    return ""


Args = Sequence[Value]

_SETTERS = ("set", "set_string", "set_integer", "set_boolean", "set_float")
_GETTERS = ("get", "get_string", "get_integer", "get_boolean", "get_float", "contains_key", "to_dict")
_PARALLELISM = {"set_parallelism": "parallelism.default", "set_max_parallelism": "pipeline.max-parallelism"}
STREAM_MODULES = ("pyflink.datastream.", "pyflink.common.")
"""Modules that only DataStreams use."""
PLANNERS = ("use_blink_planner", "use_any_planner")
"""Calls in old programs that have no effect in current Flink."""


def of_streams(ref: Ref) -> bool:
    """True if a pyflink name, such as a source, type or function, is only for DataStreams."""
    known = ("StreamExecutionEnvironment", "Configuration", "RuntimeExecutionMode", "TimeCharacteristic")
    return ref.path.startswith(STREAM_MODULES) and not any(part in known for part in ref.path.split("."))


def table_environment(args: Args, session: ScriptBuilder, node: ast.AST) -> Value:
    """Result of ``TableEnvironment.create(…)`` or ``StreamTableEnvironment.create(…)``."""
    if not all(isinstance(arg, StreamEnvironment | Settings | ConfigurationValue) for arg in args):
        why = next((f": {arg.reason}" for arg in args if isinstance(arg, UnknownValue)), "")
        raise NotRead(f"the settings of the table environment are not supported{why}")
    if session.made:
        raise NotRead("a second table environment is not supported")
    session.made = True
    for arg in args:
        options = (
            arg.options if isinstance(arg, Settings) else arg.items() if isinstance(arg, ConfigurationValue) else ()
        )
        _put_all(options, session, node)
    session.batch = any(isinstance(arg, Settings) and arg.batch for arg in args)
    if session.batch:
        put("execution.runtime-mode", "batch", session, node)
    return TableEnvironment()


def streams(args: Args, names: Mapping[str, Value], session: ScriptBuilder, node: ast.AST) -> Value:
    """Result of ``StreamExecutionEnvironment.get_execution_environment(…)``."""
    for arg in (*args, *names.values()):
        if not isinstance(arg, ConfigurationValue):
            raise NotRead("the configuration of the stream environment is not supported")
        _put_all(arg.items(), session, node)
    return StreamEnvironment()


def of_settings(settings: Settings, name: str, args: Args) -> Value | None:
    """Result of a method of ``EnvironmentSettings`` or its builder."""
    match name, list(args):
        case "in_streaming_mode" | "in_batch_mode", []:
            return Settings(name == "in_batch_mode", settings.options)
        case "with_configuration", [ConfigurationValue() as options]:
            return Settings(settings.batch, (*settings.options, *options.items()))
        case "build", []:
            return settings
        case planner, [] if planner in PLANNERS:
            return settings
    return None


def of_options(options: ConfigurationValue, name: str, args: Args) -> Value | None:
    """Result of a method of ``Configuration``."""
    if name in _SETTERS and len(args) == 2:
        options.values[text_of(args[0], "the key of a setting")] = setting_of(args[1], "a setting")
        return options
    return UnknownValue("the content of a configuration is unknown") if name in _GETTERS else None


def of_config(config: Config, name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value | None:
    """Result of a method of the table environment's configuration."""
    match name, list(args):
        case setter, [key, value] if setter in _SETTERS:
            put(text_of(key, "the key of a setting"), setting_of(value, "a setting"), session, node)
        case "set_local_timezone", [value]:
            put("table.local-time-zone", setting_of(value, "a setting"), session, node)
        case "add_configuration", [ConfigurationValue() as options]:
            _put_all(options.items(), session, node)
        case "set_idle_state_retention_time" | "set_idle_state_retention", _:
            raise NotRead("the retention of idle state is set in an unsupported way: set table.exec.state.ttl")
        case "get_configuration", []:
            pass
        case _:
            return None
    return config


def of_stream_environment(name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value | None:
    match name, list(args):
        case setter, [Const(int(count))] if setter in _PARALLELISM:
            put(_PARALLELISM[setter], str(count), session, node)
        case "enable_checkpointing", [Const(int(count))]:
            put("execution.checkpointing.interval", f"{count} ms", session, node)
        case "set_runtime_mode", [Ref(name=mode)] if mode in ("STREAMING", "BATCH", "AUTOMATIC"):
            session.batch = mode == "BATCH"
            put("execution.runtime-mode", mode.lower(), session, node)
        case "set_stream_time_characteristic", [Ref(name="EventTime")]:
            pass
        case "get_checkpoint_config", []:
            return Config()
        case "configure", [ConfigurationValue() as options]:
            _put_all(options.items(), session, node)
        case "add_jars" | "add_classpaths", [_, *_]:
            for jar in args:
                session.say(f"ADD JAR {sql_text(_file(jar))}", node)
        case begins, _ if begins in BEGINS:
            return stream(session, node)
        case "execute" | "execute_async", _ if session.streams:
            return executed(session, node)
        case _:
            return None
    return StreamEnvironment()


def dependency(name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> None:
    """Add a dependency of Python functions to the setting for dependencies of its kind."""
    key = {"add_python_file": "python.files", "set_python_requirements": "python.requirements"}.get(
        name, "python.archives"
    )
    session.dependencies.setdefault(key, []).append("#".join(_file(arg) for arg in args))
    put(key, ",".join(session.dependencies[key]), session, node)


def _file(value: Value) -> str:
    return setting_of(value, "the path of a library")


# ------------------------------------------------------------------------------------------------ settings
def put(key: str, value: str, session: ScriptBuilder, node: ast.AST) -> None:
    if not re.fullmatch(r"[\w.$-]+", key):
        raise NotRead("the key of a setting is malformed")
    session.say(f"SET {sql_text(key)} = {sql_text(value)}", node)


def _put_all(options: Iterable[tuple[str, str]], session: ScriptBuilder, node: ast.AST) -> None:
    for key, value in options:
        put(key, value, session, node)
