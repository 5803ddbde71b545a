from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink import sinks
from airflow_flinkcompat.compat.engines.flink.ranking import right, unmeasured, wrong
from airflow_flinkcompat.compat.rule import (
    Example,
    Rule,
    RuleMatch,
    RuleScope,
    Verdict,
    documented,
    inferred,
    measured,
)
from airflow_flinkcompat.compat.rule_builders.part_rules import STATELESS, gathered_above, refused
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan.operators import OtherKind, OtherOperator, Source, operators

UNION = OtherKind.UNION_ALL


def keeps_state(pair: OperatorPair) -> bool:
    """Whether anything between the sources and the sink keeps state."""
    sides = (pair.pipeline.old, pair.pipeline.new)
    return gathered_above(pair) or any(o.kind not in STATELESS for side in sides for o in operators(side))


def added(pair: OperatorPair) -> Verdict:
    """A further input behind the others leaves their places; it must not share a source with them."""
    gone, come = (dict(side.attributes)["further inputs"] for side in (pair.old, pair.new))  # type: ignore[attr-defined]
    if gone or keeps_state(pair):
        return refused(
            "ua-remove-last", "ua-stateless-remove", "ua-single-to-union", consequence=Consequence.REFUSED_AT_SUBMIT
        )
    inputs = (*pair.new.segments, *(segment for segment, _ in come))
    tables = [segment.origin.table for segment in inputs if isinstance(segment.origin, Source)]
    alone = len(set(tables)) == len(inputs) and not any(segment.functions or segment.windows for segment in inputs)
    moved = sinks.stays(pair.pipeline) if pair.pipeline.new.sink else ""
    if moved or not alone:
        return unmeasured(moved or "measured with inputs that read a table of their own each")
    return right("ua-stateless-add")


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    if not all(isinstance(side, OtherOperator) and side.kind == UNION for side in (pair.old, pair.new)):
        return
    for difference in pair.differences:
        part = difference.part.partition(" of input ")[0]
        if part == "input order":
            yield RuleMatch(
                "the inputs of a UNION ALL stand in another order",
                (difference.key,),
                verdicts={
                    "vvr": documented(Outcome.COMPATIBLE, "UNION ALL page: order of the inputs"),
                    "flink": wrong("ua-reorder", "ua-reorder-filtered", "ua-stateless-reorder"),
                },
            )
        elif part == "further inputs":
            page = documented(Outcome.INCOMPATIBLE, "UNION ALL page: an input added or removed above state")
            free = inferred(Outcome.COMPATIBLE, "nothing after it keeps state")
            yield RuleMatch(
                "inputs of a UNION ALL came or went",
                (difference.key,),
                f"{len(pair.old.segments) + len(difference.before)} inputs",
                f"{len(pair.new.segments) + len(difference.after)} inputs",
                verdicts={"vvr": page if gathered_above(pair) else free, "flink": added(pair)},
            )
        elif part in ("filters", "row"):
            below = wrong("ua-branch-filter-change", consequence=None) if keeps_state(pair) else None
            vvr = documented(Outcome.INCOMPATIBLE, "WHERE page") if gathered_above(pair) else None
            yield RuleMatch(
                "what an input of a UNION ALL hands on changed",
                (difference.key,),
                verdicts={
                    "vvr": vvr or inferred(Outcome.COMPATIBLE, "nothing after it keeps state"),
                    "flink": below or unmeasured("another branch of a union was not measured"),
                },
            )


BRANCH = "SELECT customer, amount FROM orders"
OTHER = "SELECT region, amount FROM orders WHERE amount > 5"
RULE = Rule(
    code="union-changed",
    title="A UNION ALL changed",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "UNION ALL page: order of the inputs"),
        "flink": measured(Outcome.INCOMPATIBLE, "ua-reorder", "ua-remove-last", consequence=Consequence.SILENTLY_WRONG),
    },
    rationale="A union keeps nothing, but open-source Flink finds sources by their place: where inputs change places "
    "their positions do too, and everything is read again.",
    example=Example(f"{BRANCH}\nUNION ALL\n{OTHER};", f"{OTHER}\nUNION ALL\n{BRANCH};"),
    find=find,
    case_dependent=("vvr",),
)
