"""Which differences of two scripts an exec graph shows: there its diff decides, elsewhere a rule does."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Shown(StrEnum):
    """Where a difference shows that may matter to stored state, on engine ``flink``."""

    PLAN = "in a compiled plan"
    ONE_JOB = "in a compiled plan, where each script makes one job"
    SCHEMA = "in the operators that Flink would submit, where the table's own connector planned them"
    DECLARED = "in those operators, where the table is the sink of an INSERT that comes or goes with it"
    OPTIONS = "in those operators, where the table is a sink that keeps nothing"
    SETTING = "in those operators, where each has a counterpart"
    OPTIMIZER = "in those operators, where each has a counterpart and no connector has a stand-in"
    NOWHERE = "in no graph"


_OF_TABLES: Mapping[str, Shown] = {
    **dict.fromkeys(("columns", "types", "computed", "metadata", "watermark", "primary key", "order"), Shown.SCHEMA),
    "declared": Shown.DECLARED,
    "options": Shown.OPTIONS,
}
_OF_SETTINGS: Mapping[str, Shown] = dict.fromkeys(
    (
        "pipeline.max-parallelism",
        "table.column-expansion-strategy",
        "table.exec.async-state.enabled",
        "table.exec.sink.require-on-conflict",
        "table.exec.sink.upsert-materialize",
        "table.plan.force-recompile",
    ),
    Shown.SETTING,
)
"""Settings that decide about operators alone: with the same operators they change nothing."""
_OF_SETTINGS_BY_PREFIX = {"table.exec.async-lookup.": Shown.SETTING, "table.optimizer.": Shown.OPTIMIZER}
_OF_QUERIES: Mapping[str, Shown] = {
    **dict.fromkeys(("engine", "opaque", "unread"), Shown.NOWHERE),
    **dict.fromkeys(("source", "sink"), Shown.NOWHERE),  # a table of another name
    **dict.fromkeys(("inserts", "insert order", "pairing", "sharing", "statement set"), Shown.ONE_JOB),
}
"""Parts of queries and of the script; every other one shows in a plan."""


def where_shown(key: str) -> Shown:
    """Where a difference shows."""
    place, _, name = key.partition("/")
    part = key.rpartition("/")[2]
    match place:
        case "view":
            return Shown.PLAN
        case "table":
            return _OF_TABLES.get(part, Shown.NOWHERE)
        case "setting":
            by_prefix = (shown for prefix, shown in _OF_SETTINGS_BY_PREFIX.items() if name.startswith(prefix))
            return _OF_SETTINGS.get(name) or next(by_prefix, Shown.NOWHERE)
        case "function" | "statement":  # code, and what lasts outside of the session
            return Shown.NOWHERE
    return _OF_QUERIES.get(part, Shown.PLAN)
