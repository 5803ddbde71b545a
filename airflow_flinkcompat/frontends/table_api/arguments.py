"""What the calls of the Table API are given: expressions, texts and tables, in order or by PyFlink's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_flinkcompat.frontends.table_api import expression_sql as e
from airflow_flinkcompat.frontends.table_api.inputs import marked
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.values import (
    Const,
    Expr,
    NotRead,
    Path,
    Ref,
    TableValue,
    UnknownValue,
    Value,
)

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
    "create_java_temporary_function": ("path", "function_class_name"),
    "create_java_temporary_system_function": ("name", "function_class_name"),
    "create_java_function": ("path", "function_class_name", "ignore_if_exists"),
    "register_function": ("name", "function"),
    "add_insert_sql": ("stmt",),
    "add_insert": ("target_path_or_descriptor", "table", "overwrite"),
    "execute_insert": ("table_path_or_descriptor", "overwrite"),
    "insert_into": ("table_path_or_descriptor", "overwrite"),
    "set_parallelism": ("parallelism",),
    "enable_checkpointing": ("interval", "mode"),
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
"""What PyFlink calls the parameters of its methods, where a program may name them: in order, by method."""


def positional(name: str, args: Sequence[Value], names: Mapping[str, Value]) -> tuple[list[Value], dict[str, Value]]:
    """The arguments in order, as far as their names say where they belong; and those that are left with their names."""
    found, rest = list(args), dict(names)
    for parameter in _PARAMETERS.get(name, ())[len(args) :]:
        if parameter not in rest:
            break
        found.append(rest.pop(parameter))
    if rest.keys() & set(_PARAMETERS.get(name, ())[: len(args)]):
        raise NotRead(f"{name} is given an argument twice")
    return found, {key: value for key, value in rest.items() if not (key == "overwrite" and value == Const(False))}


Args = Sequence[Value]


def expression(value: Value) -> Expr:
    """A value where the Table API takes an expression. Raises :class:`NotRead` for what is none."""
    if isinstance(value, Ref) and value.name in e.BOUNDS and value.module == "pyflink":
        return Expr("bound", (value.name,))
    return e.literal(value)


def columns(args: Args) -> tuple[Expr, ...]:
    """Arguments that must be expressions: a text is one of the old string expressions."""
    if any(isinstance(arg, Const) for arg in args):
        raise NotRead("the old string expressions are not read: write col('a')")
    return tuple(map(expression, args))


def text_of(value: Value, what: str) -> str:
    if isinstance(value, Const) and isinstance(value.value, str):
        return value.value
    raise NotRead(f"{what} is not known: {value.reason if isinstance(value, UnknownValue) else 'it is no text'}")


def setting_of(value: Value, what: str) -> str:
    """The value of an option or setting: also one that only the environment knows, as ``${name}``."""
    match value:
        case Const(bool(flag)):
            return str(flag).lower()
        case Const(int() | float() as number):
            return str(number)
        case Const(str(text)) | Path(text):
            return text
        case UnknownValue(name=name) if name:
            return marked(name)
    raise NotRead(f"the value of {what} is not known{f': {value.reason}' if isinstance(value, UnknownValue) else ''}")


def table_of(value: Value, session: ScriptBuilder) -> TableValue:
    if isinstance(value, TableValue):
        return session.read(value)
    raise NotRead(f"the table is not known: {value.reason if isinstance(value, UnknownValue) else 'it is no table'}")
