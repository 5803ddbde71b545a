"""Which function compiles which operator."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_flinkcompat.backfill.compile import over, ranking, relations, windowing
from airflow_flinkcompat.backfill.compile.context import Compile, CompileContext, FiltersAbove
from airflow_flinkcompat.backfill.errors import Untranslatable
from airflow_flinkcompat.backfill.steps import Step
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    Filter,
    GroupWindowAggregate,
    Node,
    Opaque,
    Over,
    Project,
    Scan,
    Union,
    WindowAssign,
)


def _over(context: CompileContext, node: Over, needed: frozenset[int], above: FiltersAbove | None) -> Step:
    if over.is_over_aggregate(node):
        return over.over_rows(context, node, needed)
    return ranking.rank(context, node, needed, above)


def _opaque(context: CompileContext, node: Opaque, needed: frozenset[int], above: FiltersAbove | None) -> Step:
    raise Untranslatable(f"{node.kind} cannot be recomputed in Spark: {node.reason or str(node.text)[:80]}", node.span)


OPERATORS: Mapping[type[Node], Compile] = {
    Scan: lambda context, node, needed, above: relations.scan(context, node, needed),
    Project: relations.project,
    Filter: relations.filtered,
    Union: lambda context, node, needed, above: relations.union(context, node, needed),
    WindowAssign: lambda context, node, needed, above: windowing.windowed_rows(context, node, needed),
    Aggregate: lambda context, node, needed, above: windowing.aggregate_rows(context, node),
    GroupWindowAggregate: lambda context, node, needed, above: windowing.group_window(context, node),
    Over: _over,
    Opaque: _opaque,
}
"""What is not here is not recomputed."""
