"""Rules about added, deleted and changed metrics. A metric is an aggregate call of a query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from airflow_flinkcompat.compat.changes.differences import MetricFates, listed
from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import MINUTE, Example, Rule, RuleMatch, selecting, windowed
from airflow_flinkcompat.compat.verdict import (
    SAFE,
    Verdict,
    compatible_engines,
    documented,
    inferred,
    measured,
    right,
    unknown,
)
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.expressions import AggregateCall
from airflow_flinkcompat.plan.operators import AggregateKind, AggregateOperator, OverOperator, appends

PAGES = {AggregateKind.GROUP: "Group Aggregate page", OverOperator.KIND: "Over Aggregate page"}
"""The vendor's pages about aggregations without a window, by the kind of operator."""


@dataclass(frozen=True)
class Unwindowed:
    """Restores of a metric rule on an unwindowed operator; ``on_page``: the vendor's page has a row."""

    restores: tuple[str, ...] = ()
    on_page: bool = False


UNSEEN = Unwindowed()
"""No page and no restore covers the operator."""


def _without_window(known: Unwindowed, vvr: Outcome, flink: Verdict, pair: OperatorPair) -> Mapping[str, Verdict]:
    """The verdicts of a metric rule on an operator without a window."""
    page = PAGES[pair.new.kind]
    on_vvr = documented(vvr, page) if known.on_page else inferred(vvr, "per the window pages")
    sides = [side for side in (pair.old, pair.new) if isinstance(side, OverOperator)]
    if len({tuple(call for call, _ in side.planned_calls) for side in sides}) == 1:
        return {"vvr": on_vvr, "flink": right("oa-mod-sum-avg")}
    if known.restores:
        return {"vvr": on_vvr, "flink": measured(flink.outcome, *known.restores)}
    ids = flink.evidence if flink.outcome in SAFE else ()
    return {"vvr": on_vvr, "flink": inferred(flink.outcome, "as measured for windowed aggregations", ids=ids)}


_SUMS_OF_SQUARES = dict.fromkeys(("STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP"), "VAR")
"""Functions that Flink's planner computes from a sum of squares, a sum and a count."""
_STORED_ALIKE = unknown("the planner may store the same sums and counts for both queries")


def _may_store_alike(pair: OperatorPair) -> bool:
    """True if the metrics differ only in functions that are computed from the same sums and counts."""
    if pair.aggregations is None:
        return False
    old, new = map(_stored_metrics, pair.aggregations)
    return old == new


def _stored_metrics(operator: AggregateOperator) -> tuple[AggregateCall, ...]:
    """The stored metrics; a final COUNT(*) is left out if Flink stores a row count for retractions anyway."""
    calls = tuple(
        call if call.distinct else replace(call, function=_SUMS_OF_SQUARES.get(call.function, call.function))
        for call in operator.aggregates
    )
    if operator.kind is not AggregateKind.GROUP or appends(operator.segment) or not calls:
        return calls
    last = calls[-1]
    counts_rows = last.function == "COUNT" and not (last.args or last.distinct or last.filter)
    return calls[:-1] if counts_rows else calls


def _metric_rule(
    code: str,
    title: str,
    *,
    vvr: Outcome,
    rows: tuple[int, int],
    flink: Verdict,
    sentence: Callable[[MetricFates], str],
    rationale: str,
    example: Example,
    group: Unwindowed = UNSEEN,
    over: Unwindowed = UNSEEN,
    yields_to: str = "",
) -> Rule:
    """Rule that applies if :attr:`MetricFates.codes` has its code; ``rows``: numbers on the window pages."""
    windowless = {AggregateKind.GROUP: group, OverOperator.KIND: over}
    on_vvr = documented(vvr, "Window TVF row {}; Group Window Aggregate row {}".format(*rows))
    # The pages about aggregations without a window lack some rows.
    elsewhere = not (group.on_page and over.on_page)

    @Rule(
        code=code,
        title=title,
        vvr=on_vvr,
        flink=flink,
        rationale=rationale,
        example=example,
        operators=(AggregateOperator, OverOperator),
        # Without metrics, no part differs.
        parts=() if code == "no-aggregates" else ("aggregates",),
        case_dependent=compatible_engines(vvr=on_vvr, flink=flink) if elsewhere else (),
        yields_to=yields_to,
    )
    def found(pair: OperatorPair) -> Iterable[RuleMatch]:
        fates = pair.fates
        if fates is not None and code in fates.codes:
            old, new = (listed(side) or "no metric" for side in (fates.old, fates.new))
            verdicts = {} if pair.windowed else _without_window(windowless[pair.new.kind], vvr, flink, pair)
            if fates.changed and _may_store_alike(pair):
                verdicts = {**verdicts, "flink": _STORED_ALIKE}
            yield RuleMatch(sentence(fates), pair.claim("aggregates"), old, new, fates=fates.table, verdicts=verdicts)

    return found


def format_changes(changes: tuple[tuple[AggregateCall, AggregateCall], ...]) -> str:
    """Format changed metrics as ``MAX(c) became MIN(c)``."""
    old, new = (listed(side) for side in zip(*changes, strict=True))
    return f"{old} became {new}"


METRIC_RULES = (
    _metric_rule(
        code="aggregate-added",
        title="A metric was added",
        vvr=Outcome.PARTIAL,
        rows=(1, 1),
        flink=measured(Outcome.INCOMPATIBLE, "w-add-agg", "w-add-agg-front", "w-add-agg-bigint"),
        sentence=lambda fates: f"{listed(fates.added)} is new; {listed(fates.kept)} did not change",
        rationale=(
            "Stored accumulators contain no value for the new metric. VVR starts the new metric at zero and keeps the "
            "other metrics. Open-source Flink finds a different accumulator layout and refuses the state."
        ),
        example=selecting("customer, SUM(amount)", "customer, SUM(amount), COUNT(item)"),
        yields_to="ranked-row-changed",
        group=Unwindowed(("ga-add-sametype-input", "ga-add-sum-plain"), on_page=True),
        over=Unwindowed(("oa-add-count",), on_page=True),
    ),
    _metric_rule(
        code="aggregate-added-and-deleted",
        title="Metrics were added and deleted together",
        vvr=Outcome.PARTIAL,
        rows=(3, 3),
        flink=measured(Outcome.INCOMPATIBLE, "w-add-del-sametypes"),
        sentence=lambda fates: (
            f"{listed(fates.added)} is new, {listed(fates.dropped)} is deleted; {listed(fates.kept)} did not change"
        ),
        rationale=(
            "VVR judges each metric separately. Open-source Flink stores accumulators by position and refuses a "
            "different set of metrics. If the types happen to match, Flink misreads the state without an error."
        ),
        example=selecting("customer, SUM(amount), MAX(item)", "customer, MAX(item), COUNT(region)"),
        yields_to="ranked-row-changed",
        group=Unwindowed(on_page=True),
        over=Unwindowed(on_page=True),
    ),
    _metric_rule(
        code="aggregate-deleted",
        title="A metric was deleted",
        vvr=Outcome.COMPATIBLE,
        rows=(2, 2),
        flink=measured(Outcome.INCOMPATIBLE, "w-del-agg", "g-del-agg"),
        sentence=lambda fates: f"{listed(fates.dropped)} is deleted; {listed(fates.kept)} did not change",
        rationale=(
            "VVR drops the state of the deleted metric and keeps all other state. Open-source Flink compares the "
            "whole accumulator layout and refuses the shorter layout."
        ),
        example=selecting("customer, SUM(amount), COUNT(item)", "customer, SUM(amount)"),
        yields_to="ranked-row-changed",
        group=Unwindowed(("ga-del-first",), on_page=True),
        over=Unwindowed(("oa-del-max", "oa-del-first"), on_page=True),
    ),
    _metric_rule(
        code="aggregate-input-changed",
        title="The input of a metric is computed differently",
        vvr=Outcome.PARTIAL,
        rows=(6, 6),
        flink=measured(Outcome.INCOMPATIBLE, "w-substr-view", "w-expr-input-numeric", "wc-substr-5to3"),
        sentence=lambda fates: f"the input of a metric is computed differently: {format_changes(fates.input_changes)}",
        rationale=(
            "Values accumulated from the old expression are wrong for the new expression, even if the function and "
            "the column name stay the same. If the old query already had a projection, open-source Flink mixes both "
            "without an error."
        ),
        example=selecting("customer, SUM(amount), MAX(item)", "customer, SUM(amount), MAX(SUBSTRING(item, 1, 5))"),
        yields_to="ranked-row-changed",
        group=Unwindowed(("ga-input-col-swap",), on_page=True),
        over=Unwindowed(("oa-input-col-swap",)),
    ),
    _metric_rule(
        code="aggregate-modified",
        title="A metric's function changed",
        vvr=Outcome.PARTIAL,
        rows=(4, 4),
        flink=measured(Outcome.INCOMPATIBLE, "w-mod-max-min", "g-mod-max-min", "w-first-last"),
        sentence=lambda fates: f"{format_changes(fates.function_changes)}: a different function is a different metric",
        rationale=(
            "VVR treats a changed metric as a deleted and an added metric. If the types match, open-source Flink uses "
            "the old accumulator for the new metric. For example, MAX continues from a MIN without an error."
        ),
        example=selecting("customer, SUM(amount), MAX(item)", "customer, SUM(amount), MIN(item)"),
        yields_to="ranked-row-changed",
        group=Unwindowed(("ga-mod-sum-max", "ga-mod-sum-count", "ga-mod-sum-avg"), on_page=True),
        over=Unwindowed(("oa-rows-mod-sum-max",), on_page=True),
    ),
    _metric_rule(
        code="aggregate-reordered",
        title="Metrics were reordered",
        vvr=Outcome.COMPATIBLE,
        rows=(5, 5),
        flink=measured(Outcome.INCOMPATIBLE, "w-reorder", "w-reorder-sametypes", "wc-reorder-sametypes"),
        sentence=lambda _: "the same metrics are in a different order",
        rationale="VVR finds each metric at any position. Open-source Flink finds accumulators by position.",
        example=selecting("customer, SUM(amount), MAX(item)", "customer, MAX(item), SUM(amount)"),
        yields_to="ranked-row-changed",
        group=Unwindowed(("ga-reorder-difftypes", "ga-reorder-sametypes"), on_page=True),
        over=Unwindowed(("oa-reorder-difftypes", "oa-reorder-sametypes"), on_page=True),
    ),
    _metric_rule(
        code="aggregates-replaced",
        title="All metrics were replaced",
        vvr=Outcome.INCOMPATIBLE,
        rows=(17, 20),
        flink=measured(Outcome.INCOMPATIBLE, "g-all-different", "g-one-sum-to-max"),
        sentence=lambda _: "no metric of the deployed query survives",
        rationale="A partial reuse needs at least one unchanged metric.",
        example=selecting("customer, SUM(amount)", "customer, MIN(amount)"),
        group=Unwindowed(("ga-global-mod", "ga-first-to-last")),
    ),
    _metric_rule(
        code="all-aggregates-deleted",
        title="All metrics were deleted",
        vvr=Outcome.INCOMPATIBLE,
        rows=(14, 15),
        flink=measured(Outcome.INCOMPATIBLE, "w-del-all-aggs", "g-del-all"),
        sentence=lambda _: "no metric is left",
        rationale="No remaining metric can use the stored state.",
        example=selecting("customer, SUM(amount), window_start", "customer, window_start"),
        group=Unwindowed(("ga-del-all",)),
    ),
    _metric_rule(
        code="distinct-aggregate-changed",
        title="A DISTINCT metric changed",
        vvr=Outcome.INCOMPATIBLE,
        rows=(13, 14),
        flink=measured(Outcome.INCOMPATIBLE, "w-distinct-add", "w-distinct-del", "w-distinct-mod-func"),
        sentence=lambda _: "a DISTINCT metric was added, deleted, changed or reordered among the DISTINCT metrics",
        rationale="The state layout contains the distinct values, in the order of the DISTINCT metrics.",
        example=selecting(
            "customer, SUM(amount), COUNT(DISTINCT item)", "customer, SUM(amount), COUNT(DISTINCT region)"
        ),
        group=Unwindowed(("ga-distinct-del", "ga-distinct-func", "ga-distinct-swap-sametype")),
    ),
    _metric_rule(
        code="first-aggregate-added",
        title="The first metric was added",
        vvr=Outcome.INCOMPATIBLE,
        rows=(15, 18),
        flink=measured(Outcome.INCOMPATIBLE, "g-add-to-none"),
        sentence=lambda _: "there was no metric before",
        rationale="State without metrics has no accumulators from which a metric could continue.",
        example=selecting("customer, window_start", "customer, window_start, COUNT(*)"),
        group=Unwindowed(("ga-add-first",)),
    ),
    _metric_rule(
        code="no-aggregates",
        title="No metrics before or after",
        vvr=Outcome.COMPATIBLE,
        rows=(8, 9),
        flink=right("w-noagg-unchanged", "w-noagg-addwstart", "g-none-both"),
        sentence=lambda _: "neither version computes a metric; the stored keys are kept",
        rationale="The state contains only the keys of each window.",
        example=selecting("customer", "customer, window_start"),
        group=Unwindowed(("ga-noagg-unchanged",)),
    ),
    _metric_rule(
        code="only-aggregate-changed",
        title="The computation of the only metric changed",
        vvr=Outcome.INCOMPATIBLE,
        rows=(16, 19),
        flink=measured(Outcome.INCOMPATIBLE, "w-one-agg-calc-change", "wc-one-agg-calc", "g-only-one-left-calc"),
        sentence=lambda _: "the only metric is computed differently, so no metric is left unchanged",
        rationale="A partial reuse needs at least one unchanged metric.",
        example=selecting("customer, SUM(amount)", "customer, SUM(amount + 1)"),
        group=Unwindowed(("ga-input-cast-double",)),
    ),
)
VIEW = "CREATE TEMPORARY VIEW sums AS\n{0}\nSELECT customer, total FROM sums;"


@Rule(
    code="unread-metric-changed",
    title="A metric that no query reads",
    vvr=inferred(Outcome.COMPATIBLE, "the planner removes the metric, so nothing is stored for it"),
    flink=unknown("EXPLAIN: the metric is removed, but the projection that computes its input may stay"),
    rationale=(
        "Flink's planner removes an unread metric, but only after it has planned the projection below it. This can "
        "add an operator to the job or remove an operator."
    ),
    example=Example(
        VIEW.format(windowed("customer, SUM(amount) AS total")),
        VIEW.format(windowed("customer, SUM(amount) AS total, MAX(UPPER(item)) AS last")),
    ),
    operators=(AggregateOperator,),
    parts=("metrics nobody reads",),
)
def unread_metric_changed(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.aggregations
    if sides is not None and "metrics nobody reads" in pair.parts:
        old, new = (format_expressions(side.pruned_inputs) for side in sides)
        yield RuleMatch(
            "unread metrics use different columns, or the same columns in a different order",
            pair.claim("metrics nobody reads"),
            old,
            new,
        )


QUERY = """\
SELECT customer, {0}
FROM (SELECT customer, amount, amount AS paid, window_start, window_end
  FROM {1})
GROUP BY customer, window_start, window_end;
"""


@Rule(
    code="metric-written-twice",
    title="A metric over an alias of its column",
    vvr=inferred(
        Outcome.COMPATIBLE, "a repeated call is one metric if its arguments resolve to the same source columns"
    ),
    flink=inferred(Outcome.INCOMPATIBLE, "EXPLAIN: both calls have an accumulator"),
    rationale=(
        "Flink stores a repeated call once, but only if both calls use the same column name. MAX(amount) and "
        "MAX(paid) have two accumulators even if paid is an alias of amount or an equal computed column."
    ),
    example=Example(QUERY.format("MAX(amount)", MINUTE), QUERY.format("MAX(amount), MAX(paid)", MINUTE)),
    operators=(AggregateOperator,),
    parts=("metrics written twice",),
)
def metric_written_twice(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.aggregations
    if sides is not None and "metrics written twice" in pair.parts:
        old, new = (
            (f"{format_expressions(side.aggregates)} and {side.repeated_calls} of them repeated") for side in sides
        )
        yield RuleMatch(
            "a repeated metric over an equal column was added or deleted", pair.claim("metrics written twice"), old, new
        )
