"""Metrics that no window holds: plain group aggregations and OVER aggregations have pages of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Verdict, documented, inferred, measured
from airflow_flinkcompat.plan.expressions import AggregateCall
from airflow_flinkcompat.plan.operators import OverOperator
from airflow_flinkcompat.plan.types import INTEGERS


@dataclass(frozen=True)
class Page:
    """A page of the vendor's: the rules whose rows it holds, and the restores measured on Flink 2.3 by rule."""

    name: str
    rows: frozenset[str]
    measured: Mapping[str, tuple[str, ...]]


_ROWS = frozenset(
    {
        "aggregate-added",
        "aggregate-deleted",
        "aggregate-added-and-deleted",
        "aggregate-modified",
        "aggregate-reordered",
    }
)
PAGES = {
    "group aggregation": Page(
        "Group Aggregate page",
        _ROWS | {"aggregate-input-changed"},
        {
            "aggregate-added": ("ga-add-sametype-input", "ga-add-sum-plain"),
            "aggregate-deleted": ("ga-del-first",),
            "aggregate-modified": ("ga-mod-sum-max", "ga-mod-sum-count", "ga-mod-sum-avg"),
            "aggregate-reordered": ("ga-reorder-difftypes", "ga-reorder-sametypes"),
            "aggregate-input-changed": ("ga-input-col-swap",),
            "distinct-aggregate-changed": ("ga-distinct-del", "ga-distinct-func", "ga-distinct-swap-sametype"),
            "all-aggregates-deleted": ("ga-del-all",),
            "first-aggregate-added": ("ga-add-first",),
            "only-aggregate-changed": ("ga-input-cast-double",),
            "aggregates-replaced": ("ga-global-mod", "ga-first-to-last"),
            "no-aggregates": ("ga-noagg-unchanged",),
        },
    ),
    "OVER aggregation": Page(
        "Over Aggregate page",
        _ROWS,
        {
            "aggregate-added": ("oa-add-count",),
            "aggregate-deleted": ("oa-del-max", "oa-del-first"),
            "aggregate-modified": ("oa-rows-mod-sum-max",),
            "aggregate-reordered": ("oa-reorder-difftypes", "oa-reorder-sametypes"),
            "aggregate-input-changed": ("oa-input-col-swap",),
        },
    ),
}


def without_window(code: str, outcome: Outcome, pair: OperatorPair) -> Mapping[str, Verdict]:
    """The verdicts of a rule over metrics; ``outcome`` is what the window pages say on ``vvr``."""
    page = PAGES[pair.new.kind]
    vvr = documented(outcome, page.name) if code in page.rows else inferred(outcome, "as the window pages say")
    sides = [side for side in (pair.old, pair.new) if isinstance(side, OverOperator)]
    if len({planned(side) for side in sides}) == 1:
        return {"vvr": vvr, "flink": measured(Outcome.COMPATIBLE, "oa-mod-sum-avg")}
    kept = code == "no-aggregates"
    seen = page.measured.get(code)
    flink = Outcome.COMPATIBLE if kept else Outcome.INCOMPATIBLE
    return {
        "vvr": vvr,
        "flink": measured(flink, *seen)
        if seen
        else inferred(flink, "as windowed aggregations were", ids=("w-noagg-unchanged",) if kept else ()),
    }


def computed(operator: OverOperator) -> bool:
    """A SUM or AVG is computed behind the operator, and only then its input is cut to the columns that are read.

    Without any computed column the planner keeps all columns under an unbounded RANGE, and cuts them under ROWS
    (EXPLAIN; ``oa-del-first``).
    """
    return any(call.function == "$SUM0" for call in planned(operator))


def planned(operator: OverOperator) -> tuple[AggregateCall, ...]:
    """The calls an OVER aggregation is planned with: SUM and AVG are computed from a count and a sum (EXPLAIN)."""
    found: dict[AggregateCall, None] = {}
    for call, types in zip(operator.aggregates, operator.argument_types, strict=True):
        split = call.function in ("SUM", "AVG") and len(types) == 1 and types[0].name in (*INTEGERS, "DOUBLE")
        for function in ("COUNT", "$SUM0") if split else (call.function,):
            found[replace(call, function=function)] = None
    return tuple(found)
