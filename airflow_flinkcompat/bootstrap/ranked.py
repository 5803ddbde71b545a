"""The rows of the ranks that a Top-N or a deduplication keeps, as steps of Spark."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_flinkcompat.backfill.spark_sql.expressions import quoted
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.backfill.steps import Select, Step, Where
from airflow_flinkcompat.bootstrap.errors import NotComputable
from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.operators import RankKind, RankOperator
from airflow_flinkcompat.plan.types import APPROXIMATE, TimeAttribute

_BY_TIME = (RankKind.DEDUPLICATION, RankKind.WINDOW_DEDUPLICATION)
_UNORDERED = "rows of one key share their place in the order, and nothing tells which of them arrived first"


def refused_as(type: str) -> str:
    """What ends a run where nothing tells which of two rows came first."""
    return f"CAST(raise_error({quoted(ERROR + _UNORDERED)}) AS {type})"


def ordered_by(operator: RankOperator) -> Sequence[tuple[Expression, bool, bool | None]]:
    """What rows are ordered by before their arrival, which is the order of processing time."""
    return () if operator.order_clock is TimeAttribute.PROCTIME else operator.order


def require_exact(operator: RankOperator) -> None:
    """Sees that Spark orders and parts rows as Flink does."""
    if any(type.name in APPROXIMATE for type in (*operator.partition_types, *operator.order_types)):
        raise NotComputable("ranks by FLOAT or DOUBLE are not computed from history yet")


def first_ranks(
    operator: RankOperator,
    step: Step,
    by_key: range,
    by_order: range,
    of_row: range,
    arriving: bool = True,
    every: bool = False,
) -> Step:
    """The rows of the ranks that are kept."""
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
    refused = refused_as("BOOLEAN")
    kept = "TRUE" if every else f"c{width} <= {operator.last}"
    return Where(ranked, f"IF({kept} AND c{width + 1}, {refused}, {kept})")
