"""Engine ``flink``: how a restore ends where a query stays in the Table API, or in SQL, and its operations differ."""

from __future__ import annotations

from itertools import groupby

from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.changes.query_form import ENDS, QueryApi
from airflow_flinkcompat.compat.engines.flink.ranking import right, unmeasured, wrong
from airflow_flinkcompat.compat.engines.flink.single_operator_query import (
    NOT_PRUNED,
    ON_WINDOWS,
    SingleOperatorQuery,
    arguments,
    by_default,
    by_event_time,
    called,
    nothing_else,
    sides,
)
from airflow_flinkcompat.compat.rule import Verdict
from airflow_flinkcompat.model import Consequence
from airflow_flinkcompat.plan.expressions import FLIPPED, Expression, FunctionCall, Literal
from airflow_flinkcompat.plan.operators import AggregateOperator, Operator, Source
from airflow_flinkcompat.plan.origins import SourceColumn

COMPUTED_BELOW = (
    "notation-computed-tumble-to-legacy",
    "notation-computed-legacy-to-tumble",
    "notation-computed-select-added",
    "notation-computed-select-removed",
)
GROUPED_ALIKE = ("wording-two-keys-reordered",)
ELSEWHERE = "conditions in another place were not measured"
_COMPARISONS = frozenset({"=", "<>", *FLIPPED})


def columns_below(pair: PipelinePair) -> Verdict:
    """The same operations, over other columns that nobody reads."""
    old, new = sides(pair)
    if old is not None and new is not None and old.computes != new.computes:
        return chains_differ(old, new)
    if keys_change_places(pair):
        return wrong("wording-select-two-keys-reordered")
    same = nothing_else(pair) and by_default(pair)
    if old is not None and new is not None and same and _selects_otherwise(old, new):
        # One operator leaves out the computed column on both sides, and what is stored are values, not their places.
        return right("wording-select-wider", "wording-select-reordered")
    return unmeasured("other columns that stay below an operation of the Table API were not measured")


def keys_change_places(pair: PipelinePair) -> bool:
    """Whether a ``select`` in front puts keys into another order: the Table API groups by columns as they come in."""
    if any(side.operations != ("select", "window") for side in pair.query_forms) or len(pair.operators) != 1:
        return False
    old, new = (_as_they_come(side) for side in (pair.operators[0].old, pair.operators[0].new))
    return old is not None and new is not None and old != new and set(old) == set(new)


def grouped_alike(pair: OperatorPair) -> bool:
    """Whether only ``group_by`` names its columns in another order: the Table API takes them as they come in.

    Its planner groups by a set of places in the row that comes in (``ImmutableBitSet``); SQL puts the keys in front of
    that row first, in the order of GROUP BY.
    """
    if any(side.api is not QueryApi.TABLE_API for side in pair.pipeline.query_forms):
        return False
    old, new = _as_they_come(pair.old), _as_they_come(pair.new)
    return old is not None and old == new and all(map(_of_columns, (pair.old, pair.new)))


def _of_columns(operator: Operator) -> bool:
    """Whether it is on a window over a table's columns as they are, so that nothing is projected below it."""
    if not isinstance(operator, AggregateOperator) or not isinstance(operator.segment.origin, Source):
        return False
    plain = all(part in operator.input_columns for part in arguments(operator.aggregates))
    return by_event_time(operator) and plain and called(operator.aggregates, ON_WINDOWS)


def _as_they_come(operator: Operator) -> tuple[Expression, ...] | None:
    """The keys in the order of the columns that come in; None where one is computed."""
    if not isinstance(operator, AggregateOperator) or not set(operator.keys) <= set(operator.input_columns):
        return None
    return tuple(sorted(operator.keys, key=operator.input_columns.index))


def _selects_otherwise(old: SingleOperatorQuery, new: SingleOperatorQuery) -> bool:
    """Whether a ``select`` of stored columns is all that stands between a table and a window, on both sides."""
    return all(
        side.form.operations == ("select", "window")
        and side.prunes
        and side.table.computed
        and not side.computes
        and isinstance(side.operator, AggregateOperator)
        and by_event_time(side.operator)
        and called(side.operator.aggregates, ON_WINDOWS)
        and not side.operator.segment.filters
        and all(map(side.narrows, side.form.input_columns))
        for side in (old, new)
    )


def chains_differ(old: SingleOperatorQuery, new: SingleOperatorQuery) -> Verdict:
    """Something computed stays below a window on one side only."""
    if not (old.prunes and new.prunes):
        return unmeasured(NOT_PRUNED)
    return wrong(*COMPUTED_BELOW, consequence=Consequence.REFUSED_AT_SUBMIT)


def merged(pair: PipelinePair) -> Verdict:
    """The verdict for conditions in other places between the same operations: the planner makes one operator of them.

    FILTER_MERGE joins conditions that follow each other, and a projection with a condition is one Calc.
    """
    if not (nothing_else(pair) and by_default(pair)):
        return unmeasured(ELSEWHERE)
    if _inserts_query(pair):
        return right("wording-sql-query-inserted")
    old, new = (_runs(steps) for steps in pair.steps)
    if old == new and all(map(_filtered, sides(pair))):
        return right("wording-filters-joined", "wording-filter-moved")
    return unmeasured(ELSEWHERE)


def _inserts_query(pair: PipelinePair) -> bool:
    """Whether one side inserts the query by a statement and the other one as a table of its own."""
    said = [tuple(step for step in steps if step not in ENDS) for steps in pair.steps]
    return set(said) == {(), ("sql_query",)}


def _runs(steps: tuple[str, ...]) -> tuple[frozenset[str] | str, ...]:
    """The operations, filters and selects in a row as one."""
    found: list[frozenset[str] | str] = []
    for mixed, run in groupby(steps, lambda step: step == "filter" or step.startswith("select:")):
        said = tuple(run)
        found += [frozenset(said)] if mixed else said
    return tuple(found)


def _filtered(side: SingleOperatorQuery | None) -> bool:
    """Whether conditions that compare stored columns with constants stand below a window of the Table API."""
    if side is None or side.form.api is not QueryApi.TABLE_API or not side.prunes:
        return False
    operator = side.operator
    if not isinstance(operator, AggregateOperator) or not by_event_time(operator):
        return False
    selected = side.form.operations == ("select", "window") and side.selected and not side.computes
    bare = side.form.operations == ("window",)
    known = called(operator.aggregates, ON_WINDOWS) and all(map(_compares, operator.segment.filters))
    return bool(side.table.computed) and known and (bool(selected) or bare)


def _compares(condition: Expression) -> bool:
    if not isinstance(condition, FunctionCall) or condition.function not in _COMPARISONS:
        return False
    return all(isinstance(part, SourceColumn | Literal) for part in condition.args)
