"""Data types, schemas and table descriptors, translated to DDL."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.frontends.table_api import expression_sql as e
from airflow_flinkcompat.frontends.table_api.arguments import setting_of, text_of
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.values import (
    Const,
    Container,
    DescriptorValue,
    Expr,
    NotRead,
    SchemaValue,
    TableValue,
    Type,
    UnknownValue,
    Value,
)
from airflow_flinkcompat.model.text import sql_name, sql_text

_PLAIN = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "STRING", "BYTES",
)  # fmt: skip
_SIZED = {
    "DECIMAL": (2, 2), "TIMESTAMP": (0, 1), "TIMESTAMP_LTZ": (0, 1), "CHAR": (1, 1), "VARCHAR": (1, 1), "TIME": (0, 1),
    "BINARY": (1, 1), "VARBINARY": (1, 1), "TIMESTAMP_WITH_LOCAL_TIME_ZONE": (0, 1),
}  # fmt: skip
"""Minimum and maximum number of numeric arguments of each data type."""
_WRITTEN = {"TIMESTAMP_WITH_LOCAL_TIME_ZONE": "TIMESTAMP_LTZ"}
_DEFAULTS: Mapping[str, tuple[int, ...]] = {
    "TIMESTAMP": (6,),
    "TIMESTAMP_LTZ": (6,),
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": (6,),
    "TIME": (0,),
}
"""Default of the numeric argument of each data type."""


def data_type(name: str, args: Sequence[Value], names: Mapping[str, Value] | None = None) -> Value:
    """The type of ``DataTypes.NAME(args)``. Raises :class:`NotRead` for an unsupported type."""
    given = dict(names or {})
    nullable = given.pop("nullable", Const(True))
    inner = list(args)
    if inner and isinstance(inner[-1], Const) and isinstance(inner[-1].value, bool):
        nullable = inner.pop()
    end = " NOT NULL" if nullable == Const(False) else ""
    numbers = [arg.value for arg in (*inner, *given.values()) if isinstance(arg, Const) and isinstance(arg.value, int)]
    if name == "FIELD" and len(inner) in (2, 3) and isinstance(inner[0], Const) and isinstance(inner[1], Type):
        return Expr("row field", (str(inner[0].value), inner[1].sql))
    if name in _PLAIN and not inner and not given:
        return Type(name + end)
    low, high = _SIZED.get(name, (1, 0))
    if low <= len(numbers) <= high and len(numbers) == len(inner) + len(given) and _in_order(given):
        shown = ", ".join(map(str, numbers or _DEFAULTS.get(name, ())))
        return Type(f"{_WRITTEN.get(name, name)}({shown}){end}" if shown else name + end)
    types = [arg.sql for arg in inner if isinstance(arg, Type)]
    if name in ("ARRAY", "MULTISET") and len(types) == len(inner) == 1:
        return Type(f"{name}<{types[0]}>{end}")
    if name == "MAP" and len(types) == len(inner) == 2:
        return Type(f"MAP<{types[0]}, {types[1]}>{end}")
    if name == "ROW" and len(inner) == 1 and isinstance(inner[0], Container) and not inner[0].broken:
        fields = [field for field in inner[0].value if isinstance(field, Expr) and field.kind == "row field"]
        if len(fields) == len(inner[0].value) and fields:
            written = ", ".join(f"{sql_name(f.parts[0])} {f.parts[1]}" for f in fields)
            return Type(f"ROW<{written}>{end}", tuple((f.parts[0], f.parts[1]) for f in fields))
    raise NotRead(f"the type {name} is not supported, or not with these arguments")


def _in_order(given: Mapping[str, Value]) -> bool:
    return list(given) in ([], ["precision"], ["length"], ["precision", "scale"], ["scale"])


def method(type: Type, name: str, args: Sequence[Value]) -> Type | None:
    """Result of ``not_null()`` or ``nullable()``."""
    if name == "not_null" and not args:
        return Type(f"{type.sql.removesuffix(' NOT NULL')} NOT NULL")
    return Type(type.sql.removesuffix(" NOT NULL")) if name == "nullable" and not args else None


Args = Sequence[Value]
Names = Mapping[str, Value]


def begin(owner: str, name: str, args: Args) -> Value | None:
    """The builder that ``for_connector(…)``, ``for_format(…)`` or ``Schema.new_builder()`` creates."""
    match owner, name, list(args):
        case "TableDescriptor", "for_connector", [connector]:
            return DescriptorValue("table", (("connector", text_of(connector, "the connector")),))
        case "FormatDescriptor", "for_format", [format]:
            return DescriptorValue("format", (("", text_of(format, "the format")),))
        case "Schema", "new_builder", []:
            return SchemaValue()
    return None


def of_shape(shape: SchemaValue, name: str, args: Args, names: Names, session: ScriptBuilder) -> Value | None:
    """Result of a method of ``Schema.Builder``."""
    match name, list(args):
        case "column", [column, type]:
            return _column(shape, text_of(column, "the name of a column"), _type(type, session))
        case "column_by_expression", [column, by]:
            return _column(shape, text_of(column, "the name of a column"), f"AS {_expression(by, session)}")
        case "column_by_metadata", [column, type, *rest] if len(rest) < 3:
            given = dict(zip(("metadata_key", "is_virtual"), rest, strict=False)) | dict(names)
            return _column(shape, text_of(column, "the name of a column"), _metadata(_type(type, session), given))
        case "watermark", [column, by]:
            written = sql_name(text_of(column, "the name of a column"))
            return replace(shape, lines=(*shape.lines, f"WATERMARK FOR {written} AS {_expression(by, session)}"))
        case "primary_key", keys if keys:
            listed = [key for arg in keys for key in (arg.value if isinstance(arg, Container) else [arg])]
            columns = ", ".join(sql_name(text_of(key, "a column of the primary key")) for key in listed)
            return replace(shape, lines=(*shape.lines, f"PRIMARY KEY ({columns}) NOT ENFORCED"))
        case "build", []:
            return shape
    return None


def _column(shape: SchemaValue, name: str, rest: str) -> SchemaValue:
    return SchemaValue((*shape.lines, f"{sql_name(name)} {rest}"), (*shape.columns, name))


def _type(type: Value, session: ScriptBuilder) -> str:
    match type:
        case Type(sql):
            return sql
        case Const(str(sql)):
            return session.fragment(sql)
    raise NotRead(f"the type of a column is unknown{f': {type.reason}' if isinstance(type, UnknownValue) else ''}")


def _expression(value: Value, session: ScriptBuilder) -> str:
    match value:
        case Expr():
            return e.sql(value)
        case Const(str(written)):
            return session.fragment(written)
    raise NotRead("the expression of a column is unknown")


def _metadata(type: str, given: Names) -> str:
    match given.get("metadata_key", Const(None)):
        case Const(None):
            source = ""
        case key:
            source = f" FROM {sql_text(text_of(key, 'the key of metadata'))}"
    match given.get("is_virtual", Const(False)):
        case Const(bool(virtual)) if given.keys() <= {"metadata_key", "is_virtual"}:
            return f"{type} METADATA{source}{' VIRTUAL' if virtual else ''}"
    raise NotRead("it is unknown if a column is virtual")


def of_descriptor(descriptor: DescriptorValue, name: str, args: Args) -> Value | None:
    """Result of a method of ``TableDescriptor.Builder`` or ``FormatDescriptor.Builder``."""
    prefix = descriptor.options[0][1] + "." if descriptor.kind == "format" else ""
    match name, list(args):
        case "option", [key, value]:
            option = prefix + text_of(key, "the key of an option"), setting_of(value, "an option")
            kept = tuple(each for each in descriptor.options if each[0] != option[0])
            return replace(descriptor, options=(*kept, option))
        case "build", []:
            return descriptor
    if descriptor.kind != "table":
        return None
    match name, list(args):
        case "schema", [SchemaValue() as shape]:
            return replace(descriptor, shape=shape)
        case "format", [format]:
            return _format(descriptor, "", format)
        case "format", [key, inner]:
            return _format(descriptor, text_of(key, "the option of a format").removesuffix("format"), inner)
        case "partitioned_by", keys if keys:
            listed = tuple(sql_name(text_of(key, "a partition key")) for key in keys)
            return replace(descriptor, keys=listed)
    return None


def _format(descriptor: DescriptorValue, prefix: str, format: Value) -> DescriptorValue:
    written: list[tuple[str, str]]
    match format:
        case DescriptorValue("format", options=options):
            # The option with the empty key is the format itself.
            written = [(f"{prefix}format" if not key else f"{prefix}{key}", value) for key, value in options]
        case _:
            written = [(f"{prefix}format", text_of(format, "the format"))]
    return replace(descriptor, options=(*descriptor.options, *written))


def create(
    path: str, descriptor: DescriptorValue, session: ScriptBuilder, node: ast.AST, temporary: bool, exists: bool = False
) -> None:
    """Execute the DDL of ``create_table`` or ``create_temporary_table``."""
    if descriptor.kind != "table":
        raise NotRead("a format is not a table")
    lines = ",\n".join(f"    {line}" for line in (descriptor.shape or SchemaValue()).lines)
    parts = (
        f"CREATE {'TEMPORARY ' if temporary else ''}TABLE {'IF NOT EXISTS ' if exists else ''}{path}",
        f"(\n{lines}\n)" if lines else "",
        f"PARTITIONED BY ({', '.join(descriptor.keys)})" if descriptor.keys else "",
        f"WITH ({', '.join(f'{sql_text(key)} = {sql_text(value)}' for key, value in descriptor.options)})",
    )
    session.say(" ".join(part for part in parts if part), node)


def inline(descriptor: DescriptorValue, session: ScriptBuilder, node: ast.AST) -> str:
    """Declare a table without a name under a unique path, and return the path."""
    session.sources += 1
    path = sql_name(f"anonymous_{dict(descriptor.options)['connector']}_{session.sources}")
    create(path, descriptor, session, node, temporary=True)
    return path


def relation(descriptor: DescriptorValue, session: ScriptBuilder, node: ast.AST) -> TableValue:
    """The table of ``from_descriptor``."""
    path = inline(descriptor, session, node)
    columns = None if descriptor.shape is None else descriptor.shape.columns
    return TableValue(path, steps=("from_descriptor",), epoch=session.epoch, columns=columns)
