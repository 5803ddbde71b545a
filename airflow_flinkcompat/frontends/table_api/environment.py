"""The environments of a program and their settings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence

from airflow_flinkcompat.frontends.table_api import opaque
from airflow_flinkcompat.frontends.table_api.arguments import setting_of, text_of
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.values import (
    Config,
    ConfigurationValue,
    Const,
    NotRead,
    Ref,
    Settings,
    StreamEnvironment,
    TableEnvironment,
    UnknownValue,
    Value,
)
from airflow_flinkcompat.model.text import sql_text

Args = Sequence[Value]

_SETTERS = ("set", "set_string", "set_integer", "set_boolean", "set_float")
_GETTERS = ("get", "get_string", "get_integer", "get_boolean", "get_float", "contains_key", "to_dict")
_CHECKPOINTS = {
    "set_min_pause_between_checkpoints": "execution.checkpointing.min-pause",
    "set_checkpoint_timeout": "execution.checkpointing.timeout",
    "set_max_concurrent_checkpoints": "execution.checkpointing.max-concurrent-checkpoints",
    "set_checkpoint_interval": "execution.checkpointing.interval",
}
_PARALLELISM = {"set_parallelism": "parallelism.default", "set_max_parallelism": "pipeline.max-parallelism"}
STREAM_MODULES = ("pyflink.datastream.", "pyflink.common.")
"""What belongs to DataStreams alone."""
PLANNERS = ("use_blink_planner", "use_any_planner")
"""Calls of old programs that say what has been the only way for long."""


def of_streams(ref: Ref) -> bool:
    """Whether a name of pyflink belongs to DataStreams alone: their sources, types, functions and strategies."""
    known = ("StreamExecutionEnvironment", "Configuration", "RuntimeExecutionMode", "TimeCharacteristic")
    return ref.path.startswith(STREAM_MODULES) and not any(part in known for part in ref.path.split("."))


def made(args: Args, session: ScriptBuilder, node: ast.AST) -> Value:
    """``TableEnvironment.create(…)`` and its like."""
    if not all(isinstance(arg, StreamEnvironment | Settings | ConfigurationValue) for arg in args):
        why = next((f": {arg.reason}" for arg in args if isinstance(arg, UnknownValue)), "")
        raise NotRead(f"the settings of the table environment are not read{why}")
    if session.made:
        raise NotRead("a second table environment is not read")
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
    """``StreamExecutionEnvironment.get_execution_environment(…)``."""
    for arg in (*args, *names.values()):
        if not isinstance(arg, ConfigurationValue):
            raise NotRead("the configuration of the stream environment is not read")
        _put_all(arg.items(), session, node)
    return StreamEnvironment()


def of_settings(settings: Settings, name: str, args: Args) -> Value | None:
    """A method of ``EnvironmentSettings`` or its builder."""
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
    """A method of ``Configuration``."""
    if name in _SETTERS and len(args) == 2:
        options.values[text_of(args[0], "the key of a setting")] = setting_of(args[1], "a setting")
        return options
    return UnknownValue("what a configuration holds is not known") if name in _GETTERS else None


def of_config(config: Config, name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value | None:
    """A method of the configuration of the table environment, or of checkpoints."""
    match name, list(args):
        case setter, [key, value] if setter in _SETTERS and not config.checkpoints:
            put(text_of(key, "the key of a setting"), setting_of(value, "a setting"), session, node)
        case "set_local_timezone", [value]:
            put("table.local-time-zone", setting_of(value, "a setting"), session, node)
        case "add_configuration", [ConfigurationValue() as options]:
            _put_all(options.items(), session, node)
        case "set_idle_state_retention_time" | "set_idle_state_retention", _:
            raise NotRead("how long idle state is kept is set in a way that is not read: set table.exec.state.ttl")
        case key, [Const(int(count))] if config.checkpoints and key in _CHECKPOINTS:
            unit = "" if key.startswith("set_max") else " ms"
            put(_CHECKPOINTS[key], f"{count}{unit}", session, node)
        case "get_configuration", []:
            pass
        case _:
            return None
    return config


def of_stream_environment(name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value | None:
    match name, list(args):
        case setter, [Const(int(count))] if setter in _PARALLELISM:
            put(_PARALLELISM[setter], str(count), session, node)
        case "enable_checkpointing", [Const(int(count)), *mode] if len(mode) < 2:
            put("execution.checkpointing.interval", f"{count} ms", session, node)
            _put_mode(mode, session, node)
        case "set_runtime_mode", [Ref(name=mode)] if mode in ("STREAMING", "BATCH", "AUTOMATIC"):
            session.batch = mode == "BATCH"
            put("execution.runtime-mode", mode.lower(), session, node)
        case "set_stream_time_characteristic", [Ref(name="EventTime")]:
            pass
        case "get_checkpoint_config", []:
            return Config(checkpoints=True)
        case "configure", [ConfigurationValue() as options]:
            _put_all(options.items(), session, node)
        case "add_jars" | "add_classpaths", [_, *_]:
            for jar in args:
                session.say(f"ADD JAR {sql_text(_file(jar))}", node)
        case "add_python_file" | "set_python_requirements" | "add_python_archive", [_, *_]:
            dependency(name, args, session, node)
        case begins, _ if begins in opaque.BEGINS:
            return opaque.stream(session, node)
        case "execute" | "execute_async", _ if session.streams:
            return opaque.executed(session, node)
        case _:
            return None
    return StreamEnvironment()


def _put_mode(modes: Args, session: ScriptBuilder, node: ast.AST) -> None:
    for mode in modes:
        if not isinstance(mode, Ref) or mode.name not in ("EXACTLY_ONCE", "AT_LEAST_ONCE"):
            raise NotRead("the mode of checkpoints is not known")
        put("execution.checkpointing.mode", mode.name, session, node)


def dependency(name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> None:
    """What Python functions need beside their own text: kept in order, as a setting."""
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
        raise NotRead("the key of a setting is none")
    session.say(f"SET {sql_text(key)} = {sql_text(value)}", node)


def _put_all(options: Iterable[tuple[str, str]], session: ScriptBuilder, node: ast.AST) -> None:
    for key, value in options:
        put(key, value, session, node)
