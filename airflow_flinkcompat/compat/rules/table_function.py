from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.rule import (
    UNCHANGED,
    Example,
    Level,
    Rule,
    RuleMatch,
    RuleScope,
    Verdict,
    documented,
    inferred,
    measured,
)
from airflow_flinkcompat.compat.rule_builders.examples import MINUTE, windowed
from airflow_flinkcompat.model import Consequence, Outcome


def kept_on_flink(pipeline: PipelinePair) -> Mapping[str, Verdict]:
    """A clause kept inside an unchanged pipeline was restored right; inside a changed one nothing was measured."""
    if pipeline.changed:
        return {}
    return {"flink": measured(Outcome.COMPATIBLE, *UNCHANGED, note="an unchanged pipeline")}


CAME_OR_WENT = {"flink": measured(Outcome.INCOMPATIBLE, "w-unnest-add", consequence=Consequence.REFUSED_AT_SUBMIT)}


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    old, new = ([call for segment in side for call, _ in segment.functions] for side in pair.segments)
    if not old and not new:
        return
    same = old == new
    claims = pair.claim("table functions") + tuple(
        key for operators in pair.operators for key in operators.claim("table functions")
    )
    known = pair.stateful and not pair.others and not (old and new)
    word = "stands on both sides" if same else "was added" if not old else "was deleted" if not new else "changed"
    yield RuleMatch(
        f"a table function {word}: the check cannot see into it",
        claims,
        format_expressions(old),
        format_expressions(new),
        verdicts=kept_on_flink(pair) if same else CAME_OR_WENT if known else {},
    )


RULE = Rule(
    code="table-function",
    title="A table function (UDTF)",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": documented(Outcome.UNKNOWN, "Window TVF row 23"),
        "flink": inferred(Outcome.UNKNOWN, "only unchanged table functions were measured"),
    },
    rationale="Nobody but the function knows how many rows it makes of one, and of which value.",
    example=Example(
        windowed("customer, SUM(amount)"),
        windowed("customer, SUM(amount)", source=MINUTE + ",\n  LATERAL TABLE(split(item)) AS part(word)"),
        outcomes={"flink": Outcome.INCOMPATIBLE},
    ),
    find=find,
    level=Level.OPAQUE,
)
