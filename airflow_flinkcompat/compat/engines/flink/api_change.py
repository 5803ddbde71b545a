"""Engine ``flink``: verdicts on queries that move between SQL and the Table API.

The verdicts were measured on 2.3.0 with PyFlink. SQL drops unused columns before it reads a table, but the Table API
does not. In the Table API, a computed column therefore stays as a separate operator before the window, unless a
preceding ``select`` drops the column. SQL replaces SUM and AVG over rows by COUNT and $SUM0, but the Table API does
not.
"""

from __future__ import annotations

from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.query_form import QueryApi, QueryForm
from airflow_flinkcompat.compat.engines.flink.ranking import REFUSED, WRONG
from airflow_flinkcompat.compat.engines.flink.sinks import surely_projected
from airflow_flinkcompat.compat.engines.flink.table_api import (
    NOT_PRUNED,
    ON_WINDOWS,
    SingleOperatorQuery,
    arguments,
    by_default,
    by_event_time,
    called,
    chains_differ,
    columns_below,
    nothing_else,
    sides,
)
from airflow_flinkcompat.compat.verdict import Verdict, refused_at_submit, right, unknown, wrong
from airflow_flinkcompat.plan.operators import AggregateOperator, Output, OverOperator
from airflow_flinkcompat.plan.origins import OperatorColumn, WindowColumn
from airflow_flinkcompat.plan.types import TimeAttribute

REWRITTEN = ("SUM", "AVG")
"""Calls over row windows that SQL replaces by different calls."""
OVER_ROWS = frozenset({"MAX", "COUNT"})
WITHOUT_WINDOW = frozenset({"SUM", "MAX"})
"""Calls whose state is the same in SQL and in the Table API, by measurement."""
WITHOUT_ONE_CHAIN = frozenset({"SUM", "MAX", "AVG"})
"""Calls for which a restore is refused if only SQL plans an extra operator before the aggregation."""
UNLIKE = "the only measured query is one aggregation of plain columns by one key, between a table and a sink"
AND_MORE = "the other changes were not measured together with this change"
BEHIND_SELECT = (
    "notation-computed-select-tumble-to-legacy",
    "notation-computed-legacy-to-select-tumble",
    "notation-computed-select-slide-to-legacy",
    "notation-computed-select-session-to-legacy",
    "notation-computed-select-filter-to-where",
    "notation-computed-select-avg-to-legacy",
    "notation-computed-select-distinct-to-legacy",
)
NOTHING_COMPUTED = (
    "notation-plain-tumble-to-legacy",
    "notation-plain-legacy-to-tumble",
    "notation-plain-slide-to-legacy",
    "notation-plain-session-to-legacy",
    "notation-plain-filter-to-where",
)
REWRITTEN_CALLS = (
    "over-sum-rows-to-sql",
    "over-sum-range-to-sql",
    "over-avg-rows-to-sql",
    "over-avg-range-to-sql",
    "over-sum-unbounded-to-sql",
)


def api_change_verdict(pair: PipelinePair) -> Verdict | None:
    """Verdict on a query that changes between SQL and the Table API; None if the form is unchanged."""
    old, new = pair.query_forms
    if not pair.moved:
        return None if old == new else columns_below(pair)
    if _rewritten(pair, old, new):
        bounded = all(over.frame.preceding is not None for over in _overs(pair))
        return wrong(
            *REWRITTEN_CALLS, note="the calls are stored differently", consequence=WRONG if bounded else REFUSED
        )
    before, after = sides(pair)
    if before is None or after is None:
        return unknown(UNLIKE)
    if not by_default(pair):
        return unknown("the only measured queries are separate jobs that are planned with Flink's defaults")
    if not nothing_else(pair):
        return unknown(AND_MORE)
    return _moved(before, after, pair)


def _moved(old: SingleOperatorQuery, new: SingleOperatorQuery, pair: PipelinePair) -> Verdict:
    operator = old.operator
    if isinstance(operator, OverOperator):
        return _over(old, new, operator)
    if operator.window is None:
        return _without_window(old, new, operator)
    return _on_window(old, new, operator, pair)


def _on_window(
    old: SingleOperatorQuery, new: SingleOperatorQuery, operator: AggregateOperator, pair: PipelinePair
) -> Verdict:
    if not by_event_time(operator):
        return unknown("only event-time windows were measured in both notations")
    if not called(operator.aggregates, ON_WINDOWS, distinct=True) or operator.grouping_sets is not None:
        return unknown(UNLIKE)
    if old.computes != new.computes:
        return chains_differ(old, new)
    if not (old.leaves_out and new.leaves_out):
        # PushProjectIntoTableSourceScanRule keeps a projection of all columns, and SQL moves the window's time column
        # to the front.
        return unknown("only a table with unread columns was measured")
    if _shows_window(pair.old) and not all(map(surely_projected, (pair.old, pair.new))):
        # EXPLAIN: the Table API passes on the selected window fields; SQL passes on the same fields in every query.
        return unknown(
            "the window's fields are the last columns of the output, so only SQL adds a projection after "
            "the window (EXPLAIN)"
        )
    through_api = [side for side in (old, new) if side.form.api is QueryApi.TABLE_API]
    if len(through_api) > 1:
        return unknown("a select before a window was measured only over computed columns")
    if all(side.selected for side in through_api):
        return right(*BEHIND_SELECT) if old.prunes and new.prunes else unknown(NOT_PRUNED)
    if any(side.selected is None for side in through_api):
        return unknown("only a select of exactly the needed columns was measured")
    if old.computes or old.table.computed or new.table.computed:
        return unknown("both versions read computed columns, which was not measured")
    if not (old.prunes and new.prunes):
        return unknown(NOT_PRUNED)
    return right(*NOTHING_COMPUTED)


def _without_window(old: SingleOperatorQuery, new: SingleOperatorQuery, operator: AggregateOperator) -> Verdict:
    functions = {call.function for call in operator.aggregates}
    counted = functions == {"COUNT"} and not arguments(operator.aggregates)
    measured = called(operator.aggregates, WITHOUT_ONE_CHAIN | {"COUNT"}) and len(functions) == 1
    if not measured or ("COUNT" in functions and not counted) or operator.segment.filters:
        return unknown("only queries with a single SUM, MAX, AVG or COUNT(*) over all rows were measured")
    if not (old.prunes and new.prunes):
        return unknown(NOT_PRUNED)
    if any(side.table.computed or len(side.needed) == len(side.table.columns) for side in (old, new)):
        return unknown("only a table with unread columns and without computed columns was measured")
    marks = {side.table.watermark is not None for side in (old, new)}
    selects = [side.selected for side in (old, new) if side.form.api is QueryApi.TABLE_API]
    if len(marks) > 1 or len(selects) != 1:
        return unknown(AND_MORE)
    return _marked(old, functions, selects[0]) if marks == {True} else _unmarked(functions, selects[0])


def _unmarked(functions: set[str], selected: bool | None) -> Verdict:
    """Verdict for a source without a watermark, which drops unread columns itself."""
    if selected is not False or not functions <= WITHOUT_WINDOW:
        return unknown("without a watermark, only SUM and MAX without a preceding select were measured")
    return right("group-by-plain-to-sql", "group-by-plain-from-sql", "group-by-plain-max-to-sql")


def _marked(side: SingleOperatorQuery, functions: set[str], selected: bool | None) -> Verdict:
    """Verdict for a source with a watermark; SQL then drops unread columns in an operator downstream."""
    if selected is False and functions <= WITHOUT_ONE_CHAIN:
        note = "SQL drops unread columns in an operator after the watermark"
        ids = ("group-by-to-sql", "group-by-from-sql", "group-by-max-to-sql", "group-by-avg-to-sql")
        return refused_at_submit(*ids, note=note)
    if selected is True and functions == {"SUM"}:
        # The select results in the same operator that SQL adds.
        return right("group-by-select-to-sql")
    if selected is False and all(column.type.nullable for column in side.table.columns):
        # A separate operator computes lit(1). To count a column that is never NULL, Flink needs no such operator.
        return right("group-by-count-to-sql")
    return unknown("with a watermark, only select and SUM, and COUNT(*) without a select, were measured")


def _over(old: SingleOperatorQuery, new: SingleOperatorQuery, operator: OverOperator) -> Verdict:
    if not called(operator.aggregates, OVER_ROWS) or len(operator.aggregates) > 1:
        return unknown("only one MAX or COUNT was measured")
    bounded = operator.frame.preceding is not None and not operator.frame.other
    if operator.clock is not TimeAttribute.ROWTIME or not bounded or operator.segment.filters:
        return unknown("only bounded frames by event time, without a condition, were measured")
    if old.table.computed or new.table.computed or "select" in (*old.form.operations, *new.form.operations):
        return unknown("only rows directly from a table without computed columns were measured")
    return right("over-max-rows-to-sql", "over-max-range-to-sql", "over-count-rows-to-sql", "over-count-range-to-sql")


def _rewritten(pair: PipelinePair, old: QueryForm, new: QueryForm) -> bool:
    """True if Flink replaces calls over row windows on only one side."""
    if {old.api, new.api} != {QueryApi.SQL, QueryApi.TABLE_API}:
        return False
    return any(call.function in REWRITTEN and not call.distinct for over in _overs(pair) for call in over.aggregates)


def _overs(pair: PipelinePair) -> list[OverOperator]:
    return [each.new for each in pair.operators if isinstance(each.new, OverOperator)]


def _shows_window(output: Output) -> bool:
    """True if the output has a window field."""
    shown = (column.output for column in output.columns if isinstance(column, OperatorColumn))
    return any(isinstance(each, WindowColumn) for each in shown)
