"""Rows that operators derive from table rows, and the check that they can be recomputed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from airflow_flinkcompat.backfill.compile.compiler import OPERATORS
from airflow_flinkcompat.backfill.compile.context import Compile, CompileContext, FiltersAbove
from airflow_flinkcompat.backfill.spark_sql.expressions import aggregate, grouped, quoted, read_by, references, scalar
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.backfill.steps import Group, Joined, Select, Step, Where
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression
from airflow_flinkcompat.plan.nodes import Aggregate, Join, Node, Values
from airflow_flinkcompat.plan.operators import (
    AggregateKind,
    AggregateOperator,
    JoinForm,
    JoinOperator,
    OtherKind,
    OtherOperator,
    RankKind,
    RankOperator,
    Source,
    StatelessSegment,
)
from airflow_flinkcompat.plan.types import APPROXIMATE, DataType, TimeAttribute


class NotComputable(Exception):
    """State cannot be computed from history. The message is the reason, worded as the end of a sentence."""


def _pairs(context: CompileContext, node: Join, needed: frozenset[int], above: FiltersAbove | None) -> Step:
    assert node.condition is not None
    width, wanted = len(node.left.schema), needed | references([node.condition])
    left = context.compile(node.left, frozenset(i for i in wanted if i < width))
    right = context.compile(node.right, frozenset(i - width for i in wanted if i >= width))
    left = Select(left, tuple((i, f"c{i}") for i in sorted(wanted) if i < width))
    right = Select(right, tuple((i, f"c{i - width}") for i in sorted(wanted) if i >= width))
    return Joined((left, right), scalar(node.condition), node.kind)


def _groups(context: CompileContext, node: Aggregate, needed: frozenset[int], above: FiltersAbove | None) -> Step:
    below = context.compile(node.input, read_by(node.keys, node.aggregates))
    calls = tuple((len(node.keys) + i, aggregate(call, node.aggregates)) for i, call in enumerate(node.aggregates))
    return Group(below, tuple(map(grouped, node.keys)), calls)


_RECOMPUTABLE_CALLS = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})
"""Functions whose result does not depend on the order of rows or on retracted rows."""


def is_recomputable(segment: StatelessSegment) -> bool:
    """True if the output rows of a segment can be recomputed from the tables it reads."""
    if segment.functions:
        return False
    match segment.origin:
        case Source():
            return True
        case JoinOperator() as join:
            ok = join.form is JoinForm.REGULAR and join.join in ("INNER", "LEFT", "RIGHT", "FULL") and bool(join.keys)
        case OtherOperator() as other:
            ok = other.kind == OtherKind.UNION_ALL
        case AggregateOperator() as below:
            ok = below.kind is AggregateKind.GROUP and bool(below.keys) and below.grouping_sets is None
            ok = ok and {call.function for call in below.aggregates} <= _RECOMPUTABLE_CALLS
        case RankOperator() as ranking:
            first_by_time = ranking.order_clock is TimeAttribute.ROWTIME and ranking.order[0][1]
            by_arrival = ranking.order_clock is TimeAttribute.PROCTIME and ranking.kind is not RankKind.DEDUPLICATION
            ok = ranking.window is None and ranking.first == 1 and not (ranking.number_read or by_arrival)
            ok = ok and not first_by_time
            ok = ok and isinstance(ranking.segment.origin, Source)
        case _:
            return False
    return ok and all(map(is_recomputable, segment.origin.segments))


def result_type(call: AggregateCall, types: tuple[DataType, ...]) -> DataType:
    spec = functions.lookup(call.function)
    assert spec is not None
    return spec.result_type(types)


@dataclass(frozen=True)
class Computed(Values):
    """Rows that an already compiled step supplies, with the columns of the schema."""

    steps: Step = field(kw_only=True)


ROW_OPERATORS: Mapping[type[Node], Compile] = {
    **OPERATORS,
    Join: _pairs,
    Aggregate: _groups,
    Computed: lambda context, node, needed, above: node.steps,
}
"""Functions that compile operators which emit rows to other operators."""
_BY_TIME = (RankKind.DEDUPLICATION, RankKind.WINDOW_DEDUPLICATION)
_UNORDERED = "several rows of a key are equal in sort order, and their order of arrival is unknown"


def order_error(type: str) -> str:
    """SQL that stops the run because the order of arrival of two rows is unknown."""
    return f"CAST(raise_error({quoted(ERROR + _UNORDERED)}) AS {type})"


def ordered_by(operator: RankOperator) -> Sequence[tuple[Expression, bool, bool | None]]:
    """Explicit sort keys, which precede the order of arrival; empty for a ranking by processing time."""
    return () if operator.order_clock is TimeAttribute.PROCTIME else operator.order


def require_exact(operator: RankOperator) -> None:
    """Check that Spark orders and partitions the rows of a ranking exactly as Flink does."""
    if any(type.name in APPROXIMATE for type in (*operator.partition_types, *operator.order_types)):
        raise NotComputable("ranks by keys of type FLOAT or DOUBLE are not computed from history yet")


def first_ranks(
    operator: RankOperator,
    step: Step,
    by_key: range,
    by_order: range,
    of_row: range,
    arriving: bool = True,
    every: bool = False,
) -> Step:
    """Keep the rows whose rank the operator keeps."""
    newest = operator.kind in _BY_TIME and not operator.order[0][1]
    by = [
        f"c{i} {'ASC' if ascending else 'DESC'} NULLS "
        f"{'FIRST' if (ascending if nulls_first is None else nulls_first) else 'LAST'}"
        for i, (_, ascending, nulls_first) in zip(by_order, ordered_by(operator), strict=True)
    ]
    row = f"struct({', '.join(f'c{i}' for i in of_row)})"
    keys = [f"c{i}" for i in by_key]
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    alike = f"PARTITION BY {', '.join([*keys, *(f'c{i}' for i in by_order)])}"
    if arriving:
        by.append(f"arrival {'DESC' if newest else 'ASC'}")
    number = f"row_number() OVER ({partition}ORDER BY {', '.join(by)})"
    differ = f"min({row}) OVER ({alike}) <> max({row}) OVER ({alike})"
    if arriving:
        differ += f" AND min(arrival.stream) OVER ({alike}) <> max(arrival.stream) OVER ({alike})"
    width = of_row.stop
    columns = tuple(enumerate([*(f"c{i}" for i in range(width)), number, differ]))
    ranked = Select(step, columns)
    refused = order_error("BOOLEAN")
    kept = "TRUE" if every else f"c{width} <= {operator.last}"
    return Where(ranked, f"IF({kept} AND c{width + 1}, {refused}, {kept})")
