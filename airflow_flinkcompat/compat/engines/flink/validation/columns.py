"""Whether the columns of a query go into those of its sink: how many there are, which are named, of which types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from airflow_flinkcompat.compat.engines.flink.validation.casts import fits
from airflow_flinkcompat.compat.engines.flink.validation.fault import Fault
from airflow_flinkcompat.plan.nodes import Opaque, Scan, Sink, Table, walk_nodes
from airflow_flinkcompat.plan.types import Column


def faults(sink: Sink) -> Iterator[Fault]:
    """What Flink refuses of the columns of an INSERT.

    Args:
        sink: The INSERT; of one whose tables are not declared, or whose query was not read, nothing is said.

    Yields:
        The faults.
    """
    table = sink.table
    if table is None or not table.declared or not _read_whole(sink):
        return
    columns = written(table)
    named = {column.name: column for column in columns}
    fixed = {name for name, value in sink.partition if value}
    if sink.columns:
        if found := list(_list(sink, table, named, fixed)):
            yield from found
            return
        targets: Sequence[Column] = [named[name] for name in sink.columns if name in named]
        if len(targets) < len(sink.columns):  # fields of a row, say
            return
    else:
        targets = [column for column in columns if column.name not in fixed]
    if len(sink.schema) != len(targets):
        given, wanted = len(sink.schema), ", ".join(column.name for column in targets)
        yield Fault(
            "number of columns",
            f"the query gives {given} column{'' if given == 1 else 's'} to sink {table.name}, which takes "
            f"{len(targets)} ({wanted}); give it one for each, or name those that it gives behind the sink's name",
        )
        return
    for column, target in zip(sink.schema, targets, strict=True):
        if fits(column.type, target.type) is False:
            yield Fault(
                f"type of {target.name}",
                f"the query gives a {_type(column)} to column {target.name} of sink {table.name}, which is a "
                f"{_type(target)}; CAST it, or declare the column as what it is given",
            )


def written(table: Table) -> tuple[Column, ...]:
    """The columns of a sink that an INSERT fills: not the computed ones, and no metadata that is only read."""
    metadata = {name for name, _, virtual in table.metadata if not virtual}
    return tuple(column for column in table.columns if column.name in table.physical or column.name in metadata)


def _type(column: Column) -> str:
    return str(column.type.with_nullability(True))


def _read_whole(sink: Sink) -> bool:
    """Whether the columns of the query are known for sure."""
    for node in walk_nodes(sink.input):
        if (isinstance(node, Opaque) and node.reason) or (isinstance(node, Scan) and not node.table.declared):
            return False
    return True


def _list(sink: Sink, table: Table, named: dict[str, Column], fixed: set[str]) -> Iterator[Fault]:
    """What is wrong with the list of columns behind a sink's name."""
    for name in dict.fromkeys(sink.columns):
        if name not in named and "." not in name:
            yield Fault(
                "column list",
                f"sink {table.name} has no column {name} to write into; name one that it has",
                of_name=True,
            )
        if sink.columns.count(name) > 1:
            yield Fault("column list", f"column {name} of sink {table.name} is named twice; name it once")
    for column in named.values():
        needed = not column.type.nullable or column.name in table.primary_key
        whole = (name for name in (*sink.columns, *fixed) if name.partition(".")[0] == column.name)
        if needed and not any(whole):
            yield Fault(
                "column list",
                f"column {column.name} of sink {table.name} takes no NULL, and the INSERT does not name it; name it, "
                "or let the column be NULL",
            )
