"""Columns of a sink: values with Flink's implicit casts and NOT NULL checks, and window columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from airflow_flinkcompat.backfill.protocols import WindowColumns
from airflow_flinkcompat.backfill.result import BackfillError, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import converted, quoted, spark_type
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.plan.expressions import Expression, InputRef, Literal
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    Correlate,
    Filter,
    GroupWindowAggregate,
    Node,
    Over,
    Project,
    Sink,
    Sort,
    Table,
    Union,
    Window,
    WindowAssign,
    WindowField,
    WindowKind,
    outermost_windows,
)
from airflow_flinkcompat.plan.types import CHARACTERS, INTEGERS, Column, DataType

_ENFORCER = "table.exec.sink.not-null-enforcer"
_NUMBERS = (*INTEGERS, "DECIMAL", "FLOAT", "DOUBLE")


@dataclass(frozen=True)
class SinkValues:
    """Values of all sink columns in order, as plan expressions and as Spark SQL in the sink's types."""

    sources: tuple[Expression, ...]
    sql: tuple[str, ...]


def sink_columns(sink: Sink, settings: Mapping[str, str]) -> tuple[tuple[Column, ...], SinkValues, str]:
    """Stored columns of a sink, their values, and a condition for rows to keep ("" for all rows)."""
    table = sink.table
    assert table is not None
    columns = table.stored
    named, static = named_columns(sink), _static(sink, columns)
    query = sink.input.schema
    if len(named) != len(query) or not set(named) <= {column.name for column in columns}:
        raise BackfillError(
            (
                f"the query has {len(query)} columns, but sink {table.name} has {len(named)} "
                f"({', '.join(named)}). Select one column for each"
            ),
            sink.span,
        )
    sources: list[Expression] = []
    sql: list[str] = []
    dropped: list[str] = []
    for column in columns:
        if column.name in named:
            index = named.index(column.name)
            source: Expression = InputRef(index, query[index].type, sink.span)
        else:
            source = static.get(column.name) or Literal(None, column.type, sink.span)
        value = _value(source, column, table)
        required = not column.type.nullable or column.name in table.primary_key
        if required and source.type.nullable:
            if settings.get(_ENFORCER, "ERROR").upper() == "DROP":
                dropped.append(f"({value}) IS NOT NULL")
            else:
                value = _not_null(value, column, table)
        sources.append(source)
        sql.append(value)
    return columns, SinkValues(tuple(sources), tuple(sql)), " AND ".join(dropped)


def named_columns(sink: Sink) -> list[str]:
    """Sink columns that the query supplies, in the order of the query."""
    static = {name.strip("`") for name, _ in sink.partition}
    stored = sink.table.physical if sink.table is not None else ()
    return [name.strip("`") for name in sink.columns] or [name for name in stored if name not in static]


def _static(sink: Sink, columns: tuple[Column, ...]) -> dict[str, Literal]:
    """Constants of a PARTITION clause; raises :class:`BackfillError` unless they are texts or numbers."""
    found: dict[str, Literal] = {}
    kinds = {column.name: column.type for column in columns}
    table = sink.table
    assert table is not None
    for name, text in ((name.strip("`"), text) for name, text in sink.partition):
        kind, inner = kinds.get(name), text[1:-1].replace("''", "'")
        if kind is None or name not in table.partitioned_by:
            raise BackfillError(
                f"sink {table.name}: PARTITION contains {name}, which is not a partition column", sink.span
            )
        if kind.name in CHARACTERS and text[:1] == "'":
            found[name] = Literal(inner, kind, sink.span)
        elif kind.name in INTEGERS and re.fullmatch(r"-?[0-9]+", text):
            found[name] = Literal(int(text), kind, sink.span)
        else:
            raise Untranslatable(
                f"sink {table.name}: PARTITION ({name} = {text}) is not a valid constant for a column of type "
                f"{kind}. SELECT the value instead",
                sink.span,
            )
    return found


def _value(source: Expression, column: Column, table: Table) -> str:
    if spark_type(column.type) is None:
        raise Untranslatable(
            f"sink {table.name}: a backfill cannot write column {column.name} of type {column.type}", table.span
        )
    if not source.type.is_known or not _implicit(source.type, column.type):
        raise Untranslatable(
            f"sink {table.name}: Flink does not cast {source.type} implicitly to column {column.name} of type "
            f"{column.type}. Write a CAST",
            source.span,
        )
    return converted(source, column.type)


def _implicit(source: DataType, target: DataType) -> bool:
    """True if an INSERT converts implicitly: same type family, wider number, DATE to TIMESTAMP, or NULL."""
    if source.name == "NULL" or {source.name, target.name} <= set(CHARACTERS):
        return True
    if source.name in _NUMBERS and target.name in _NUMBERS:
        return _NUMBERS.index(source.name) <= _NUMBERS.index(target.name)
    return source.name == target.name or (source.name, target.name) == ("DATE", "TIMESTAMP")


def _not_null(value: str, column: Column, table: Table) -> str:
    message = (
        f"{ERROR}column {column.name} of sink {table.name} is NOT NULL but the query returns NULL. Change the "
        f"query, or SET '{_ENFORCER}' = 'DROP' if the job does"
    )
    return f"coalesce({value}, CAST(raise_error({quoted(message)}) AS {spark_type(column.type)}))"


_FIELDS = (WindowField.START, WindowField.END, WindowField.TIME)
_ONE_LENGTH = (WindowKind.TUMBLE, WindowKind.HOP)


def windows_of(node: Node) -> tuple[Window | None, ...]:
    return tuple(None if found is None else found.window for found in outermost_windows(node))


def window_fields(node: Node, position: int) -> frozenset[WindowField | None]:
    """Window fields that a column contains unchanged, by branch; None for a branch without window field."""
    return frozenset(None if found is None else found[1] for found in origins(node, position))


Origin = tuple[WindowAssign | GroupWindowAggregate, WindowField]


def origins(node: Node, position: int) -> tuple[Origin | None, ...]:
    """Window fields as in :func:`window_fields`, with the node of each window; one per branch."""
    return tuple(_origins(node, InputRef(position, node.schema[position].type)))


def _origins(node: Node, expression: Expression) -> Iterator[Origin | None]:
    if not isinstance(expression, InputRef):
        yield None
        return
    position = expression.index
    match node:
        case Project():
            yield from _origins(node.input, node.expressions[position])
        case Filter() | Sort():
            yield from _origins(node.input, expression)
        case Over() | Correlate() if position < len(node.input.schema):
            yield from _origins(node.input, expression)
        case Union():
            for branch in node.branches:
                yield from _origins(branch, expression)
        case WindowAssign():
            place = position - len(node.input.schema)
            yield (node, _FIELDS[place]) if place >= 0 else None
        case GroupWindowAggregate():
            place = position - len(node.keys) - len(node.aggregates)
            yield (node, node.properties[place]) if place >= 0 else None
        case Aggregate() if position < len(node.keys) and _in_all_sets(node, position):
            yield from _origins(node.input, node.keys[position])
        case _:
            yield None


def window_is_grouped(node: Aggregate) -> bool:
    """True if both bounds of the outermost window of every branch are keys of every grouping set."""
    found: dict[WindowField, list[tuple[int, ...]]] = {WindowField.START: [], WindowField.END: []}
    for position, key in enumerate(node.keys):
        passed = list(_origins(node.input, key))
        fields = {None if origin is None else origin[1] for origin in passed}
        if len(fields) == 1 and (field := fields.pop()) in found and _in_all_sets(node, position):
            found[field].append(tuple(id(origin[0]) for origin in passed if origin is not None))
    return any(start in found[WindowField.END] for start in found[WindowField.START])


def _in_all_sets(node: Aggregate, position: int) -> bool:
    """True if a key is in all grouping sets. In a set without the key, the key column is NULL."""
    return all(position in one for one in node.grouping_sets or ())


def window_columns(sink: Sink) -> WindowColumns:
    """Stored sink columns that contain unchanged window bounds, with at least millisecond precision."""
    table = sink.table
    assert table is not None
    named = named_columns(sink)
    kept = {
        column.name for column in table.columns if column.type.name == "TIMESTAMP" and column.type.parameters >= (3,)
    }
    found: dict[WindowField, str] = {}
    for position, name in enumerate(named[: len(sink.schema)]):
        fields = window_fields(sink.input, position)
        if name in kept and len(fields) == 1 and (field := next(iter(fields))) is not None:
            found.setdefault(field, name)
    sizes = {
        window.size * 1000 if window and window.kind in _ONE_LENGTH and window.size else None
        for window in windows_of(sink.input)
    }
    return WindowColumns(
        found.get(WindowField.START), found.get(WindowField.END), sizes.pop() if len(sizes) == 1 else None
    )


def common_window_columns(first: WindowColumns, second: WindowColumns) -> WindowColumns:
    """Window columns that are valid for the rows of two INSERTs into one sink."""
    return replace(
        first,
        start=first.start if first.start == second.start else None,
        end=first.end if first.end == second.end else None,
        size=first.size if first.size == second.size else None,
    )
