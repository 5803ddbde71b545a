"""Window Top-N: ROW_NUMBER over the rows of one window under a filter that keeps a constant range of ranks.

Any other ranking keeps state across windows and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_flinkcompat.backfill.compiling import lateness
from airflow_flinkcompat.backfill.compiling.origins import window_fields
from airflow_flinkcompat.backfill.compiling.steps import Rank
from airflow_flinkcompat.backfill.errors import FLINK_BATCH, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import grouped, references, scalar, spark_type, typed
from airflow_flinkcompat.plan.expressions import (
    FLIPPED,
    Call,
    Expression,
    InputRef,
    Literal,
    conjuncts,
    through,
    transform,
)
from airflow_flinkcompat.plan.nodes import Filter, Node, Over, Project, WindowField
from airflow_flinkcompat.plan.ranks import kept_ranks, numbers_rows
from airflow_flinkcompat.plan.translations import AGGREGATES, ordered
from airflow_flinkcompat.plan.types import APPROXIMATE

if TYPE_CHECKING:
    from airflow_flinkcompat.backfill.compiling.relations import Relations

_BOUNDS = {WindowField.START, WindowField.END}


@dataclass(frozen=True)
class Kept:
    """What stands above a relation without anything in between that changes rows: the conditions of the filters, and
    the columns read above all of them; both in terms of the relation's columns."""

    conditions: tuple[Expression, ...]
    read: frozenset[int]

    @classmethod
    def under(cls, node: Filter, needed: frozenset[int], above: Kept | None) -> Kept:
        """Of a filter's input."""
        if above is None:
            return cls(conjuncts(node.condition), needed)
        return replace(above, conditions=above.conditions + conjuncts(node.condition))

    def through(self, node: Project) -> Kept:
        """Of a projection's input."""
        leaf = through(node.expressions)
        conditions = tuple(part for each in self.conditions for part in conjuncts(transform(each, leaf)))
        return Kept(conditions, references([node.expressions[i] for i in self.read]))


def numbered(node: Node) -> bool:
    """Whether a relation is an OVER under nothing but filters and projections."""
    while isinstance(node, Filter | Project):
        node = node.input
    return isinstance(node, Over)


def rank(relations: Relations, node: Over, needed: frozenset[int], kept: Kept | None) -> Rank:
    """The numbered rows. Raises :class:`Untranslatable` for what is no window Top-N."""
    width, call = len(node.input.schema), node.calls[0]
    if not numbers_rows(node):
        raise Untranslatable(
            f"an OVER aggregation is recomputed by a backfill with {', '.join(AGGREGATES)}, a ranking only where "
            f"ROW_NUMBER() ranks the rows of one window; {FLINK_BATCH}",
            node.span,
        )
    keys = call.partition_by
    fields = {only for key in keys if isinstance(key, InputRef) and (only := _only(node, key)) is not None}
    if not fields >= _BOUNDS:
        raise Untranslatable(
            "ROW_NUMBER() ranks rows of several windows, which a backfill does not recompute: "
            "PARTITION BY needs both window_start and window_end, passed on unchanged from one window",
            node.span,
        )
    first, last = _range(node, width, kept)
    order = tuple(
        (_ordered(key), ascending, ascending if nulls_first is None else nulls_first)
        for key, ascending, nulls_first in call.order_by
    )
    inputs = [*keys, *(key for key, _, _ in call.order_by)]
    wanted = frozenset(i for i in needed if i < width) | references(inputs)
    assert kept is not None
    return Rank(
        lateness.in_time(relations, node, relations.node(node.input, wanted)),
        tuple(range(width, len(node.schema))),
        tuple(grouped(key) for key in keys),
        order,
        tuple(sorted(wanted)),
        first,
        last,
        any(position >= width for position in kept.read),
    )


def _only(node: Over, key: InputRef) -> WindowField | None:
    fields = window_fields(node.input, key.index)
    return next(iter(fields)) if len(fields) == 1 else None


def _ordered(key: Expression) -> str:
    """The key of an order; a number that is none has no place in it, because Flink's comparison gives it none."""
    kind = typed(key).type
    if spark_type(kind) is None:
        raise Untranslatable(f"ORDER BY a {kind} has no exact translation to Spark; {FLINK_BATCH}", key.span)
    text = scalar(key)
    return ordered(text) if kind.name in APPROXIMATE else text


def _range(node: Over, width: int, kept: Kept | None) -> tuple[int, int]:
    """The ranks that are kept; Flink, too, makes a Top-N only of constant bounds, and of no other use of the number in
    a condition."""
    comparisons = []
    for condition in kept.conditions if kept is not None else ():
        if not any(position >= width for position in references([condition])):
            continue
        comparison = _comparison(condition, width)
        if comparison is None:
            raise Untranslatable(
                "the number of a Top-N is compared with constants only: write rownum <= N, = N or BETWEEN M AND N",
                condition.span or node.span,
            )
        comparisons.append(comparison)
    first, last = kept_ranks(comparisons)
    if last is None:
        raise Untranslatable(
            "ROW_NUMBER() without a bound on the number above it is no Top-N; add WHERE rownum <= N", node.span
        )
    return first, last


def _comparison(condition: Expression, width: int) -> tuple[str, int] | None:
    """Sign and constant of a comparison with the number, the number on the left."""
    if not isinstance(condition, Call) or condition.function not in {*FLIPPED, "="} or len(condition.args) != 2:
        return None
    (left, right), sign = condition.args, condition.function
    if isinstance(left, Literal):
        left, right, sign = right, left, FLIPPED.get(sign, sign)
    if not isinstance(left, InputRef) or left.index < width or not isinstance(right, Literal):
        return None
    return (sign, right.value) if isinstance(right.value, int) and not isinstance(right.value, bool) else None
