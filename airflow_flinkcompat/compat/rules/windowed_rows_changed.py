from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_window
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rule_builders.examples import MINUTE
from airflow_flinkcompat.model import Outcome


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    if "windows" in pair.parts:
        old, new = (side.segment.windows for side in (pair.old, pair.new))
        yield RuleMatch(
            "the window of rows that are not aggregated changed",
            pair.claim("windows"),
            ", ".join(format_window(w) for w in old) or "no window",
            ", ".join(format_window(w) for w in new) or "no window",
        )


RULE = Rule(
    code="windowed-rows-changed",
    title="The window of plain windowed rows changed",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "the pages speak of windows that are aggregated"),
        "flink": inferred(Outcome.UNKNOWN, "not measured"),
    },
    rationale="A windowing function without an aggregation keeps no state on an aligned window, but SESSION does.",
    example=Example(f"SELECT * FROM {MINUTE};", f"SELECT * FROM {MINUTE.replace(chr(39) + '1', chr(39) + '2')};"),
    find=find,
)
