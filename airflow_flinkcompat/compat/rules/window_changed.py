from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.format import format_window
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink.ranking import REFUSED, wrong
from airflow_flinkcompat.compat.rule import Level, Rule, RuleMatch, RuleScope, Verdict, documented, measured
from airflow_flinkcompat.compat.rule_builders.examples import MINUTE, reading
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.nodes import Measure
from airflow_flinkcompat.plan.operators import AssignedWindow

OVER_ROWS = (
    "row-counts-size-larger",
    "row-counts-slide-size",
    "row-counts-slide-slide",
    "row-counts-slide-to-tumble",
    "row-counts-tumble-to-slide",
)
PARTS = ("window", "time", "clock", "session keys", "lower windows")


def find(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windows
    if sides is None or not pair.parts & set(PARTS):
        return
    old, new = sides
    moved_time = "time" in pair.parts and old is not None and new is not None and old.window == new.window
    yield RuleMatch(
        "the window runs on another time column" if moved_time else "the window definition changed",
        pair.claim(*PARTS, "offset", "notation", "windowed", "kind"),
        format_window(old),
        format_window(new),
        old.span if old else None,
        new.span if new else None,
        verdicts=by_rows(old, new),
    )


def by_rows(old: AssignedWindow | None, new: AssignedWindow | None) -> dict[str, Verdict]:
    """Windows over rows go by a counter of their key's rows, whatever their size and kind."""
    counted = [side is not None and side.window.measure is Measure.ROWS for side in (old, new)]
    if not any(counted):
        return {}
    if all(counted) and old is not None and new is not None and old.time_attribute is new.time_attribute:
        return {"flink": wrong(*OVER_ROWS)}
    return {"flink": wrong("row-counts-rows-to-time", consequence=REFUSED)}


RULE = Rule(
    code="window-changed",
    title="Window type, size, offset or time attribute changed",
    scope=RuleScope.OPERATOR,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Window TVF row 10; Group Window Aggregate rows 10 to 12"),
        "flink": measured(
            Outcome.INCOMPATIBLE,
            "w-size-1to2-ws",
            "w-tumble-to-hop",
            "w-tumble-to-session",
            "w-hop-slide",
            "w-session-gap",
        ),
    },
    rationale="State is kept per window (or slice of a window). Values gathered for other windows belong to no window "
    "of the new query; open-source Flink mostly hands them out all the same.",
    example=reading("customer, SUM(amount)", MINUTE, MINUTE.replace("'1' MINUTE", "'2' MINUTE")),
    find=find,
    level=Level.WINDOW,
)
