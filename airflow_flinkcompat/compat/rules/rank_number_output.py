from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import values
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.ranking import is_number, rankings
from airflow_flinkcompat.compat.flink import ranking as flink_ranking
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, Verdict, documented, inferred, measured, together
from airflow_flinkcompat.compat.rules.output_changed import computed_columns, projection_on_flink
from airflow_flinkcompat.compat.shapes.examples import ranked


def find(pair: PipelinePair) -> Iterable[Hit]:
    read = [ranking for ranking in rankings(pair) if "number read" in ranking.pair.parts]
    shown = [any(map(is_number, side.columns)) for side in (pair.old, pair.new)]
    if not read and shown[0] == shown[1]:
        return
    alone = computed_columns(pair.old) == computed_columns(pair.new)
    claims = [key for ranking in read for key in ranking.pair.claim("number read")]
    kinds = {kind for ranking in rankings(pair) for kind in ranking.kinds}
    on_flink = [flink_ranking.number(ranking) for ranking in read]
    on_flink += [*projection_on_flink(pair).values()] if "columns" in pair.parts else []
    verdicts = {"flink": together(on_flink)} if on_flink else {}
    yield Hit(
        "the number of the rank came into what is read, or left it",
        (*claims, *(pair.claim("columns") if alone else ())),
        values(pair.old.columns),
        values(pair.new.columns),
        verdicts={"vvr": _on_vvr(kinds), **verdicts},
    )


def _on_vvr(kinds: set[str]) -> Verdict:
    if "window deduplication" in kinds:
        return inferred(Outcome.UNKNOWN, "no page speaks of window deduplication")
    if "deduplication" in kinds:
        return inferred(Outcome.COMPATIBLE, "the number of the only row kept is always 1")
    page = "Window Top-N" if kinds == {"window Top-N"} else "Top-N page"
    return documented(Outcome.COMPATIBLE, f"{page}: rank in or out of the result")


RULE = Rule(
    code="rank-number-output",
    title="The number of the rank came into the output or left it",
    scope=Scope.PIPELINE,
    verdicts={
        "vvr": documented(Outcome.COMPATIBLE, "Window Top-N: rank in or out of the result"),
        "flink": measured(Outcome.COMPATIBLE, "t-add-rk", "t-del-rk", "r-add-rk"),
    },
    why="A row's number is counted when it leaves. Only a Top-N without a window stores one row more for it on "
    "open-source Flink, which goes wrong when the number is taken out again.",
    example=Example(ranked(), ranked("customer, total, window_start, place")),
    find=find,
    by_case=("vvr", "flink"),
)
