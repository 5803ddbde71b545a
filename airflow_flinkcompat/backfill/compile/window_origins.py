"""Origins of columns: the window for which a row is published, and columns that pass its fields on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from airflow_flinkcompat.backfill.compile.sink_columns import named_columns
from airflow_flinkcompat.backfill.protocols import WindowColumns
from airflow_flinkcompat.plan.expressions import Expression, InputRef
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
    Union,
    Window,
    WindowAssign,
    WindowField,
    WindowKind,
    outermost_windows,
)

_FIELDS = (WindowField.START, WindowField.END, WindowField.TIME)
_ONE_LENGTH = (WindowKind.TUMBLE, WindowKind.HOP)


def windows_of(node: Node) -> tuple[Window | None, ...]:
    """The windows of :func:`outermost_windows`."""
    return tuple(None if found is None else found.window for found in outermost_windows(node))


def window_fields(node: Node, position: int) -> frozenset[WindowField | None]:
    """Fields of outermost windows that a column passes on unchanged, over all branches of unions.

    None represents a branch in which the column is anything else.
    """
    return frozenset(None if found is None else found[1] for found in origins(node, position))


Origin = tuple[WindowAssign | GroupWindowAggregate, WindowField]


def origins(node: Node, position: int) -> tuple[Origin | None, ...]:
    """The same with the node of the window, one per branch."""
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
    """True if every group of an aggregation belongs to one window.

    That holds if both bounds of the outermost window of every branch are keys of every grouping set.
    """
    found: dict[WindowField, list[tuple[int, ...]]] = {WindowField.START: [], WindowField.END: []}
    for position, key in enumerate(node.keys):
        passed = list(_origins(node.input, key))
        fields = {None if origin is None else origin[1] for origin in passed}
        if len(fields) == 1 and (field := fields.pop()) in found and _in_all_sets(node, position):
            found[field].append(tuple(id(origin[0]) for origin in passed if origin is not None))
    return any(start in found[WindowField.END] for start in found[WindowField.START])


def _in_all_sets(node: Aggregate, position: int) -> bool:
    """Elsewhere the key is NULL."""
    return all(position in one for one in node.grouping_sets or ())


def window_columns(sink: Sink) -> WindowColumns:
    """Stored columns of a sink that hold the bounds of the windows of its rows.

    A column counts if every row has the unchanged bound there: passed on by all branches, in a type that keeps its
    milliseconds.
    """
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
    """Window columns that hold for the rows of both INSERTs into one sink."""
    return replace(
        first,
        start=first.start if first.start == second.start else None,
        end=first.end if first.end == second.end else None,
        size=first.size if first.size == second.size else None,
    )
