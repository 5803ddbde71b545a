from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.ranking import is_number, rankings
from airflow_flinkcompat.compat.engines.flink import ranking as flink_ranking
from airflow_flinkcompat.compat.rule import (
    Example,
    Rule,
    RuleMatch,
    RuleScope,
    Verdict,
    combined,
    documented,
    inferred,
    measured,
)
from airflow_flinkcompat.compat.rule_builders.examples import ranked
from airflow_flinkcompat.compat.rules.output_changed import computed_columns, projection_on_flink
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import RankKind


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    read = [ranking for ranking in rankings(pair) if "number read" in ranking.pair.parts]
    shown = [any(map(is_number, side.columns)) for side in (pair.old, pair.new)]
    if not read and shown[0] == shown[1]:
        return
    alone = computed_columns(pair.old) == computed_columns(pair.new)
    claims = [key for ranking in read for key in ranking.pair.claim("number read")]
    kinds = {kind for ranking in rankings(pair) for kind in ranking.kinds}
    on_flink = [flink_ranking.number(ranking) for ranking in read]
    on_flink += [*projection_on_flink(pair).values()] if "columns" in pair.parts else []
    verdicts = {"flink": combined(on_flink)} if on_flink else {}
    yield RuleMatch(
        "the number of the rank came into what is read, or left it",
        (*claims, *(pair.claim("columns") if alone else ())),
        format_expressions(pair.old.columns),
        format_expressions(pair.new.columns),
        verdicts={"vvr": _on_vvr(kinds), **verdicts},
    )


def _on_vvr(kinds: set[str]) -> Verdict:
    if RankKind.WINDOW_DEDUPLICATION in kinds:
        return inferred(Outcome.UNKNOWN, "no page speaks of window deduplication")
    if RankKind.DEDUPLICATION in kinds:
        return inferred(Outcome.COMPATIBLE, "the number of the only row kept is always 1")
    page = "Window Top-N" if kinds == {RankKind.WINDOW_TOP_N} else "Top-N page"
    return documented(Outcome.COMPATIBLE, f"{page}: rank in or out of the result")


RULE = Rule(
    code="rank-number-output",
    title="The number of the rank came into the output or left it",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Window Top-N: rank in or out of the result"),
        "flink": measured(Outcome.COMPATIBLE, "t-add-rk", "t-del-rk", "r-add-rk"),
    },
    rationale="A row's number is counted when it leaves. Only a Top-N without a window stores one row more for it on "
    "open-source Flink, which goes wrong when the number is taken out again.",
    example=Example(ranked(), ranked("customer, total, window_start, place")),
    find=find,
    case_dependent=("vvr", "flink"),
)
