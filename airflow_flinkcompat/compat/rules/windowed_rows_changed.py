from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.clauses import window
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, inferred
from airflow_flinkcompat.compat.shapes.examples import MINUTE


def find(pair: PipelinePair) -> Iterable[Hit]:
    if "windows" in pair.parts:
        old, new = (side.region.windows for side in (pair.old, pair.new))
        yield Hit(
            "the window of rows that are not aggregated changed",
            pair.claim("windows"),
            ", ".join(window(w) for w in old) or "no window",
            ", ".join(window(w) for w in new) or "no window",
        )


RULE = Rule(
    code="windowed-rows-changed",
    title="The window of plain windowed rows changed",
    scope=Scope.PIPELINE,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "the pages speak of windows that are aggregated"),
        "flink": inferred(Outcome.UNKNOWN, "not measured"),
    },
    why="A windowing function without an aggregation keeps no state on an aligned window, but SESSION does.",
    example=Example(f"SELECT * FROM {MINUTE};", f"SELECT * FROM {MINUTE.replace(chr(39) + '1', chr(39) + '2')};"),
    find=find,
)
