from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat.changes.clauses import values
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.outcome import Consequence, Outcome
from airflow_flinkcompat.compat.rule import (
    UNCHANGED,
    Example,
    Hit,
    Level,
    Rule,
    Scope,
    Verdict,
    documented,
    inferred,
    measured,
)
from airflow_flinkcompat.compat.shapes.examples import MINUTE, windowed


def kept_on_flink(pipeline: PipelinePair) -> Mapping[str, Verdict]:
    """A clause kept inside an unchanged pipeline was restored right; inside a changed one nothing was measured."""
    if pipeline.changed:
        return {}
    return {"flink": measured(Outcome.COMPATIBLE, *UNCHANGED, note="an unchanged pipeline")}


CHANGED = {"flink": measured(Outcome.INCOMPATIBLE, "w-unnest-add", consequence=Consequence.REFUSED_AT_SUBMIT)}


def find(pair: PipelinePair) -> Iterable[Hit]:
    old, new = ([call for region in side for call, _ in region.functions] for side in pair.regions)
    if not old and not new:
        return
    same = old == new
    claims = pair.claim("table functions") + tuple(
        key for operators in pair.operators for key in operators.claim("table functions")
    )
    word = "stands on both sides" if same else "was added" if not old else "was deleted" if not new else "changed"
    yield Hit(
        f"a table function {word}: the check cannot see into it",
        claims,
        values(old),
        values(new),
        verdicts=kept_on_flink(pair) if same else CHANGED if pair.stateful else {},
    )


RULE = Rule(
    code="table-function",
    title="A table function (UDTF)",
    scope=Scope.PIPELINE,
    verdicts={
        "vvr": documented(Outcome.UNKNOWN, "Window TVF row 23"),
        "flink": inferred(Outcome.UNKNOWN, "only unchanged table functions were measured"),
    },
    why="Nobody but the function knows how many rows it makes of one, and of which value.",
    example=Example(
        windowed("customer, SUM(amount)"),
        windowed("customer, SUM(amount)", source=MINUTE + ",\n  LATERAL TABLE(split(item)) AS part(word)"),
    ),
    find=find,
    level=Level.OPAQUE,
)
