from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.engines.flink import stateless
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, Verdict, inferred, measured
from airflow_flinkcompat.compat.rule_builders.part_rules import keeps_state
from airflow_flinkcompat.compat.rule_builders.projections import coming_or_going
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan.operators import JoinForm, Operator, OtherKind

NOT_UNDERSTOOD = frozenset({OtherKind.QUERY, JoinForm.JOIN})
"""Operators that stand for what could not be taken apart: whether they keep anything is not known."""
REFUSED = Consequence.REFUSED_AT_SUBMIT
GONE = measured(Outcome.INCOMPATIBLE, "li-removed", "lj-agg-removed", consequence=REFUSED)
INSERTED = measured(Outcome.INCOMPATIBLE, "rj-third-add", "tj-cast-right", "ua-single-to-union", consequence=REFUSED)
REPLACED = measured(Outcome.INCOMPATIBLE, "se-intersect-to-except")
LIMITED = measured(Outcome.INCOMPATIBLE, "li-added", consequence=Consequence.SILENTLY_WRONG)
EMPTY = inferred(
    Outcome.INCOMPATIBLE,
    "it begins empty, as a LIMIT did that came (li-added): what was read before is missing from its results, unless "
    "its sources are refused",
)
NOTHING_KEPT = inferred(Outcome.UNKNOWN, "no operator keeps state; what becomes of the sources was not measured")


def on_flink(pair: PipelinePair) -> Verdict:
    """Stored state that finds no operator is refused; an operator that comes to a query without state begins empty."""
    if found := coming_or_going(pair):
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


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    moved = (*pair.removed, *pair.added)
    # What could not be taken apart is told of as such (operator-not-covered).
    if "operators" not in pair.parts or any(operator.kind in NOT_UNDERSTOOD for operator in moved):
        return
    # What stands above reads the operator's columns in place of its input's.
    claims = pair.claim("operators", *(("columns", "filters") if coming_or_going(pair) else ()))
    what = "stateful operators" if any(map(keeps_state, moved)) else "operators"
    yield RuleMatch(
        f"{what} came into or left the pipeline",
        claims,
        _kinds(pair.removed),
        _kinds(pair.added),
        verdicts={"flink": on_flink(pair)},
    )


RULE = Rule(
    code="operators-added-or-removed",
    title="A stateful operator came or went",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "no row covers an operator that comes or goes inside a query"),
        "flink": GONE,
    },
    rationale="Open-source Flink finds operators by their place in the topology: state whose operator is gone, or got "
    "another place, is refused. An operator that comes to a query without state is not: it restores, and begins empty. "
    "VVR's pages speak of changes within an operator.",
    example=Example("SELECT customer, amount FROM orders LIMIT 3;", "SELECT customer, amount FROM orders;"),
    find=find,
)
