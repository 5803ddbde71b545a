"""Rules about output columns, nesting, UNION ALL, and added or removed operators."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import NESTING, OperatorPair, PipelinePair
from airflow_flinkcompat.compat.engines.flink import sinks, stateless
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, selecting
from airflow_flinkcompat.compat.rule_builders.part_rules import STATELESS, has_state_above, keeps_state
from airflow_flinkcompat.compat.rule_builders.projections import (
    judge_added_or_removed,
    projected_columns,
    projection_on_flink,
    projection_on_vvr,
)
from airflow_flinkcompat.compat.verdict import (
    Verdict,
    documented,
    inferred,
    measured,
    refused_at_submit,
    right,
    unknown,
    wrong,
)
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan.operators import JoinForm, Operator, OtherKind, OtherOperator, Source, operators


@Rule(
    code="output-changed",
    title="Output columns changed above the state",
    vvr=documented(Outcome.COMPATIBLE, "Alias page; WHERE page: operators without state"),
    flink=right("w-add-window-start", "w-having-add", note="a Calc above the state"),
    rationale="Flink computes expressions over keys and metrics at emission and stores nothing for them.",
    example=selecting("customer, SUM(amount)", "customer, SUM(amount) * 100"),
    parts=("columns",),
    case_dependent=("vvr", "flink"),
    beside_operators=True,
)
def output_changed(pair: PipelinePair) -> Iterable[RuleMatch]:
    if "columns" not in pair.parts or pair.others:
        return
    if projected_columns(pair.old) == projected_columns(pair.new) and pair.operators:
        return
    above = " above the state" if operators(pair.old) or operators(pair.new) else ""
    yield RuleMatch(
        f"the output computes its columns differently{above}",
        pair.claim("columns"),
        *map(format_expressions, (pair.old.columns, pair.new.columns)),
        verdicts={"vvr": projection_on_vvr(pair), "flink": projection_on_flink(pair)},
    )


INNER = "SELECT customer, amount, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC) AS place FROM orders"


@Rule(
    code="nested-otherwise",
    title="A query is nested differently",
    vvr=inferred(Outcome.COMPATIBLE, "both versions are equal after normalization"),
    flink=unknown("Flink refused QUALIFY instead of a subquery, and a subquery below UNNEST"),
    rationale=(
        "If a subquery, view or WITH query only selects and filters, Flink's planner merges it into the outer query, "
        "as plans and restores confirm. The planner does not merge three forms, so state may find no operator. These "
        "are QUALIFY, a subquery below UNNEST, and a subquery that calls a non-deterministic or user-defined "
        "function."
    ),
    example=Example(
        f"SELECT customer, amount FROM ({INNER}) WHERE place <= 3;",
        "SELECT customer, amount FROM orders\n"
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC) <= 3;",
    ),
    parts=(NESTING,),
)
def nested_otherwise(pair: PipelinePair) -> Iterable[RuleMatch]:
    if NESTING in pair.parts:
        yield RuleMatch(
            "the query is nested differently: its result is the same, but Flink may plan different operators",
            pair.claim(NESTING),
        )


UNION = OtherKind.UNION_ALL


def keeps_state_anywhere(pair: OperatorPair) -> bool:
    """True if anything between the sources and the sink stores state."""
    sides = (pair.pipeline.old, pair.pipeline.new)
    return has_state_above(pair) or any(o.kind not in STATELESS for side in sides for o in operators(side))


def judge_added_input(pair: OperatorPair) -> Verdict:
    """Verdict on an added or removed last input of a UNION ALL; other inputs keep their positions."""
    gone, come = (dict(side.attributes)["further inputs"] for side in (pair.old, pair.new))  # type: ignore[attr-defined]
    if gone or keeps_state_anywhere(pair):
        return refused_at_submit("ua-remove-last", "ua-stateless-remove", "ua-single-to-union")
    inputs = (*pair.new.segments, *(segment for segment, _ in come))
    tables = [segment.origin.table for segment in inputs if isinstance(segment.origin, Source)]
    alone = len(set(tables)) == len(inputs) and not any(segment.functions or segment.windows for segment in inputs)
    moved = sinks.stays(pair.pipeline) if pair.pipeline.new.sink else ""
    if moved or not alone:
        return unknown(moved or "only a union whose inputs read different tables was measured")
    return right("ua-stateless-add")


BRANCH = "SELECT customer, amount FROM orders"
OTHER = "SELECT region, amount FROM orders WHERE amount > 5"


@Rule(
    code="union-changed",
    title="A UNION ALL changed",
    vvr=documented(Outcome.COMPATIBLE, "UNION ALL page: order of the inputs"),
    flink=wrong("ua-reorder", "ua-remove-last"),
    rationale=(
        "A union keeps no state, but open-source Flink finds sources by their position in the job. If inputs are "
        "reordered, the sources do not find their stored positions and read all data again."
    ),
    example=Example(f"{BRANCH}\nUNION ALL\n{OTHER};", f"{OTHER}\nUNION ALL\n{BRANCH};"),
    operators=(OtherOperator,),
    parts=("input order", "further inputs", "filters", "row"),
    case_dependent=("vvr",),
)
def union_changed(pair: OperatorPair) -> Iterable[RuleMatch]:
    if not all(isinstance(side, OtherOperator) and side.kind == UNION for side in (pair.old, pair.new)):
        return
    for difference in pair.differences:
        part = difference.part.partition(" of input ")[0]
        if part == "input order":
            yield RuleMatch(
                "the inputs of a UNION ALL are in a different order",
                (difference.key,),
                verdicts={
                    "vvr": documented(Outcome.COMPATIBLE, "UNION ALL page: order of the inputs"),
                    "flink": wrong("ua-reorder", "ua-reorder-filtered", "ua-stateless-reorder"),
                },
            )
        elif part == "further inputs":
            page = documented(Outcome.INCOMPATIBLE, "UNION ALL page: an input added or removed above state")
            free = inferred(Outcome.COMPATIBLE, "no downstream operator keeps state")
            yield RuleMatch(
                "inputs of a UNION ALL were added or removed",
                (difference.key,),
                f"{len(pair.old.segments) + len(difference.before)} inputs",
                f"{len(pair.new.segments) + len(difference.after)} inputs",
                verdicts={"vvr": page if has_state_above(pair) else free, "flink": judge_added_input(pair)},
            )
        elif part in ("filters", "row"):
            below = wrong("ua-branch-filter-change", consequence=None) if keeps_state_anywhere(pair) else None
            vvr = documented(Outcome.INCOMPATIBLE, "WHERE page") if has_state_above(pair) else None
            yield RuleMatch(
                "the columns or filters of an input of a UNION ALL changed",
                (difference.key,),
                verdicts={
                    "vvr": vvr or inferred(Outcome.COMPATIBLE, "no downstream operator keeps state"),
                    "flink": below or unknown("a different input of a union was not measured"),
                },
            )


NOT_UNDERSTOOD = frozenset({OtherKind.QUERY, JoinForm.JOIN})
"""Kinds of operators for constructs that were not analyzed and may have state."""
REFUSED = Consequence.REFUSED_AT_SUBMIT
GONE = refused_at_submit("li-removed", "lj-agg-removed")
INSERTED = refused_at_submit("rj-third-add", "tj-cast-right", "ua-single-to-union")
REPLACED = measured(Outcome.INCOMPATIBLE, "se-intersect-to-except")
LIMITED = wrong("li-added")
EMPTY = inferred(
    Outcome.INCOMPATIBLE,
    (
        "the added operator starts empty, as an added LIMIT did (li-added). Its results lack the rows that were read "
        "earlier, unless Flink refuses the state of the sources"
    ),
)
NOTHING_KEPT = unknown("no operator keeps state; the effect on the sources was not measured")


def judge_moved_operators(pair: PipelinePair) -> Verdict:
    """Verdict on added or removed operators: unmatched state is refused; an added operator starts empty."""
    if found := judge_added_or_removed(pair):
        return found
    if any(map(keeps_state, (*pair.removed, *(operators.old for operators in pair.operators)))):
        if not pair.removed:
            return INSERTED
        return REPLACED if pair.added else GONE
    kinds = {operator.kind for operator in pair.added if keeps_state(operator)}
    if not kinds:
        return stateless.settled(pair, NOTHING_KEPT, *stateless.LOOKUP_CAME_OR_WENT)
    return LIMITED if kinds == {OtherKind.LIMIT} else EMPTY


def _kinds(operators: Iterable[Operator]) -> str:
    return ", ".join(operator.kind for operator in operators) or "none"


@Rule(
    code="operators-added-or-removed",
    title="A stateful operator was added or removed",
    vvr=unknown("no row covers an added or removed operator in a query"),
    flink=GONE,
    rationale=(
        "Open-source Flink finds operators by their position in the topology. Flink refuses state whose operator was "
        "removed or moved. If a stateful operator is added to a stateless query, the job restores and the operator "
        "starts empty. VVR's pages cover only changes within an operator."
    ),
    example=Example("SELECT customer, amount FROM orders LIMIT 3;", "SELECT customer, amount FROM orders;"),
    parts=("operators",),
)
def operators_added_or_removed(pair: PipelinePair) -> Iterable[RuleMatch]:
    moved = (*pair.removed, *pair.added)
    # A separate rule (operator-not-covered) covers unresolved constructs.
    if "operators" not in pair.parts or any(operator.kind in NOT_UNDERSTOOD for operator in moved):
        return
    # The output reads the columns of the operator instead of the columns of its input.
    claims = pair.claim("operators", *(("columns", "filters") if judge_added_or_removed(pair) else ()))
    what = "stateful operators" if any(map(keeps_state, moved)) else "operators"
    yield RuleMatch(
        f"{what} were added to or removed from the pipeline",
        claims,
        *map(_kinds, (pair.removed, pair.added)),
        verdicts={"flink": judge_moved_operators(pair)},
    )
