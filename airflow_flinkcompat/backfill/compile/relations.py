"""Compilers of tables, projections, filters and unions."""

from __future__ import annotations

from dataclasses import replace

from airflow_flinkcompat.backfill.compile import lateness
from airflow_flinkcompat.backfill.compile.context import CompileContext, FiltersAbove
from airflow_flinkcompat.backfill.protocols import BackfillSource, Metadata, Selective
from airflow_flinkcompat.backfill.result import FLINK_BATCH, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import converted, references, scalar
from airflow_flinkcompat.backfill.steps import Read, Select, Step, UnionAll, Where
from airflow_flinkcompat.plan.expressions import InputRef
from airflow_flinkcompat.plan.nodes import Filter, Node, Project, Scan, Table, Union
from airflow_flinkcompat.plan.types import TIMESTAMPS, Column


def filtered(context: CompileContext, node: Filter, needed: frozenset[int], above: FiltersAbove | None) -> Step:
    wanted = needed | references([node.condition])
    below = context.compile(node.input, wanted, FiltersAbove.under(node, needed, above))
    return Where(below, scalar(node.condition))


def union(context: CompileContext, node: Union, needed: frozenset[int]) -> Step:
    positions = tuple(sorted(needed)) or (0,)
    return UnionAll(tuple(_branch(context, branch, node, positions) for branch in node.branches), positions)


def _branch(context: CompileContext, branch: Node, union: Union, positions: tuple[int, ...]) -> Step:
    """Compile a branch of a UNION ALL, and convert its columns to the common types."""
    body = context.compile(branch, frozenset(positions))
    return Select(
        body,
        tuple((i, converted(InputRef(i, branch.schema[i].type, branch.span), union.schema[i].type)) for i in positions),
    )


def scan(context: CompileContext, node: Scan, needed: frozenset[int]) -> Read:
    """Compile a table: needed stored columns, and the computed columns of the declaration."""
    table = node.table
    source = context.locations.source(table)
    if node.hints:
        raise Untranslatable(
            f"table {table.name}: a backfill does not support the hint {node.hints[0][0]}. Write the options of the "
            "hint into WITH",
            node.span,
        )
    _check_watermark(table)
    computed, metadata = dict(table.computed), {name: key for name, key, _ in table.metadata}
    names = [column.name for column in table.columns]
    wanted = set(needed)
    late = context.drop_late and table.watermark is not None
    if late and table.watermark is not None:
        wanted |= references([table.watermark.expression])
    order = context.locations.order(table) if late or context.arriving else ()
    wanted |= set(order)
    for position in tuple(wanted):
        expression = computed.get(table.columns[position].name)
        wanted |= references([expression]) if expression is not None else set()
    columns: list[tuple[int, str]] = []
    fields: list[tuple[int, int]] = []
    later: list[tuple[int, str]] = []
    for position in sorted(wanted):
        column = table.columns[position]
        if column.name in computed:
            later.append((position, scalar(computed[column.name])))
        elif column.name in metadata:
            columns.append((position, _metadata(context, node, source, column, metadata[column.name])))
        else:
            field = table.physical.index(column.name)
            columns.append((position, source.decode(column, f"f{field}", replace(table, span=node.span))))
            fields.append((position, field))
    if isinstance(source, Selective):
        keys = frozenset(key for name, key in metadata.items() if names.index(name) in wanted)
        source = source.selecting(frozenset(field for _, field in fields), keys)
    watermark = lateness.watermark(node, source, bool(order)) if context.drop_late else None
    arrival = tuple(f"c{position}" for position in order) if order or context.arriving else None
    return Read(table.name, source, tuple(columns), tuple(later), tuple(fields), watermark, arrival=arrival)


def _metadata(context: CompileContext, node: Scan, source: BackfillSource, column: Column, key: str) -> str:
    """Spark SQL for a column METADATA FROM ``key``, cast to its declared type."""
    found = source.metadata(key) if isinstance(source, Metadata) else None
    if found is None:
        raise Untranslatable(
            f"table {node.table.name}: a backfill does not support the metadata column {column.name}; {FLINK_BATCH}",
            node.span,
        )
    kind, sql = found
    plain = replace(column.type, nullable=True)
    if plain == kind:
        return sql
    if (kind.name, plain.name) == ("TIMESTAMP_LTZ", "TIMESTAMP") and plain.parameters >= kind.parameters:
        zone = context.settings.get("table.local-time-zone", "default")
        if zone == "UTC":
            return f"CAST({sql} AS TIMESTAMP_NTZ)"
        raise Untranslatable(
            f"table {node.table.name}: the metadata column {column.name} is a local time in "
            f"table.local-time-zone, which is {zone}. SET 'table.local-time-zone' = 'UTC', or declare the column "
            f"as {kind}",
            node.span,
        )
    raise Untranslatable(
        f"table {node.table.name}: metadata {key} is {kind}, but column {column.name} is {column.type}, which "
        f"cannot be converted exactly. Declare the column as {kind}",
        node.span,
    )


def project(context: CompileContext, node: Project, needed: frozenset[int], above: FiltersAbove | None) -> Step:
    chosen = [(i, node.expressions[i]) for i in sorted(needed)]
    wanted = references([expression for _, expression in chosen])
    below = context.compile(node.input, wanted, None if above is None else above.through(node))
    return Select(below, tuple((i, scalar(expression)) for i, expression in chosen))


def _check_watermark(table: Table) -> None:
    """Raise :class:`Untranslatable` for a watermark that Flink refuses, with Flink's error message."""
    for column in table.columns:
        precision = column.type.parameters[:1] if column.type.name in TIMESTAMPS else ()
        if table.watermark is not None and column.name == table.watermark.column and precision > (3,):
            raise Untranslatable(
                f"table {table.name}: Flink refuses this watermark: the supported precision 'p' is from 0 to 3, but "
                f"the time field type is {column.type}",
                table.span,
            )
