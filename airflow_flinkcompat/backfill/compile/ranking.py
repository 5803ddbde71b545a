"""Window Top-N: ROW_NUMBER in a window, with a filter that keeps a constant range of ranks.

Any other ranking keeps state across windows and is refused.
"""

from __future__ import annotations

from airflow_flinkcompat.backfill.compile import lateness
from airflow_flinkcompat.backfill.compile.context import CompileContext, FiltersAbove
from airflow_flinkcompat.backfill.compile.window_origins import window_fields
from airflow_flinkcompat.backfill.errors import FLINK_BATCH, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import grouped, references, scalar, spark_type, typed
from airflow_flinkcompat.backfill.spark_sql.translations import AGGREGATES, ordered
from airflow_flinkcompat.backfill.steps import Rank
from airflow_flinkcompat.plan.expressions import (
    FLIPPED,
    Expression,
    FunctionCall,
    InputRef,
    Literal,
)
from airflow_flinkcompat.plan.nodes import Over, WindowField
from airflow_flinkcompat.plan.ranks import kept_ranks, numbers_rows
from airflow_flinkcompat.plan.types import APPROXIMATE

_BOUNDS = {WindowField.START, WindowField.END}


def rank(context: CompileContext, node: Over, needed: frozenset[int], above: FiltersAbove | None) -> Rank:
    """The numbered rows. Raises :class:`Untranslatable` for anything but a window Top-N."""
    width, call = len(node.input.schema), node.calls[0]
    if not numbers_rows(node):
        raise Untranslatable(
            f"a backfill recomputes OVER aggregations with {', '.join(AGGREGATES)} only, and a "
            f"ranking only if ROW_NUMBER() ranks the rows of one window; {FLINK_BATCH}",
            node.span,
        )
    keys = call.partition_by
    fields = {only for key in keys if isinstance(key, InputRef) and (only := _only(node, key)) is not None}
    if not fields >= _BOUNDS:
        raise Untranslatable(
            "ROW_NUMBER() ranks rows of several windows, which a backfill does not recompute: "
            "PARTITION BY needs both window_start and window_end, unchanged from one window",
            node.span,
        )
    first, last = _range(node, width, above)
    order = tuple(
        (_ordered(key), ascending, ascending if nulls_first is None else nulls_first)
        for key, ascending, nulls_first in call.order_by
    )
    inputs = [*keys, *(key for key, _, _ in call.order_by)]
    wanted = frozenset(i for i in needed if i < width) | references(inputs)
    assert above is not None
    return Rank(
        lateness.in_time(context, node, context.compile(node.input, wanted)),
        tuple(range(width, len(node.schema))),
        tuple(grouped(key) for key in keys),
        order,
        tuple(sorted(wanted)),
        first,
        last,
        any(position >= width for position in above.read),
    )


def _only(node: Over, key: InputRef) -> WindowField | None:
    fields = window_fields(node.input, key.index)
    return next(iter(fields)) if len(fields) == 1 else None


def _ordered(key: Expression) -> str:
    """A sort key; NaN is refused, because Flink's comparison does not order it."""
    kind = typed(key).type
    if spark_type(kind) is None:
        raise Untranslatable(f"ORDER BY a {kind} has no exact translation to Spark; {FLINK_BATCH}", key.span)
    text = scalar(key)
    return ordered(text) if kind.name in APPROXIMATE else text


def _range(node: Over, width: int, above: FiltersAbove | None) -> tuple[int, int]:
    """The ranks that are kept.

    Flink, too, makes a Top-N only of constant bounds, and of no other use of the number in a condition.
    """
    comparisons = []
    for condition in above.conditions if above is not None else ():
        if not any(position >= width for position in references([condition])):
            continue
        comparison = _comparison(condition, width)
        if comparison is None:
            raise Untranslatable(
                "a Top-N compares its row number with constants only: write rownum <= N, = N or BETWEEN M AND N",
                condition.span or node.span,
            )
        comparisons.append(comparison)
    first, last = kept_ranks(comparisons)
    if last is None:
        raise Untranslatable(
            "ROW_NUMBER() without a condition on its number is not a Top-N; add WHERE rownum <= N", node.span
        )
    return first, last


def _comparison(condition: Expression, width: int) -> tuple[str, int] | None:
    """Sign and constant of a comparison with the number, the number on the left."""
    if not isinstance(condition, FunctionCall) or condition.function not in {*FLIPPED, "="} or len(condition.args) != 2:
        return None
    (left, right), sign = condition.args, condition.function
    if isinstance(left, Literal):
        left, right, sign = right, left, FLIPPED.get(sign, sign)
    if not isinstance(left, InputRef) or left.index < width or not isinstance(right, Literal):
        return None
    return (sign, right.value) if isinstance(right.value, int) and not isinstance(right.value, bool) else None
