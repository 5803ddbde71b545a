"""Rules about windows, their filters, and early or late firing."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from airflow_flinkcompat.compat.changes.format import format_conditions, format_setting, format_window
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.changes.settings import (
    DELAYS,
    LATENESS,
    PREFIX,
    effective_emit_settings,
    enabled_fires,
    repeating_settings,
)
from airflow_flinkcompat.compat.engines.flink import sinks
from airflow_flinkcompat.compat.engines.flink.table_api import computed_below
from airflow_flinkcompat.compat.rule import MINUTE, Example, Level, Rule, RuleMatch, reading, windowed
from airflow_flinkcompat.compat.rules.functions import unchanged_on_flink
from airflow_flinkcompat.compat.verdict import (
    UNCHANGED,
    Verdict,
    documented,
    expected,
    inferred,
    measured,
    refused,
    refused_at_submit,
    right,
    unknown,
    wrong,
)
from airflow_flinkcompat.connectors.registry import is_stateless_sink
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.nodes import Measure, WindowKind
from airflow_flinkcompat.plan.operators import AggregateKind, AggregateOperator, AssignedWindow, RankOperator, operators
from airflow_flinkcompat.plan.program import Program
from airflow_flinkcompat.plan.types import TimeAttribute

OVER_ROWS = (
    "row-counts-size-larger",
    "row-counts-slide-size",
    "row-counts-slide-slide",
    "row-counts-slide-to-tumble",
    "row-counts-tumble-to-slide",
)
PARTS = ("window", "time", "clock", "session keys", "lower windows")


def row_count_verdicts(old: AssignedWindow | None, new: AssignedWindow | None) -> dict[str, Verdict]:
    """Verdict on windows over a row count; empty if neither side has such a window."""
    counted = [side is not None and side.window.measure is Measure.ROWS for side in (old, new)]
    if not any(counted):
        return {}
    if all(counted) and old is not None and new is not None and old.time_attribute is new.time_attribute:
        return {"flink": wrong(*OVER_ROWS)}
    return {"flink": refused("row-counts-rows-to-time")}


@Rule(
    code="window-changed",
    title="Window type, size, offset or time attribute changed",
    vvr=documented(Outcome.INCOMPATIBLE, "Window TVF row 10; Group Window Aggregate rows 10 to 12"),
    flink=measured(
        Outcome.INCOMPATIBLE, "w-size-1to2-ws", "w-tumble-to-hop", "w-tumble-to-session", "w-hop-slide", "w-session-gap"
    ),
    rationale=(
        "Flink stores state for each window or slice of a window. Values of the old windows match no window of the "
        "new query, but open-source Flink usually emits these values anyway."
    ),
    example=reading("customer, SUM(amount)", MINUTE, MINUTE.replace("'1' MINUTE", "'2' MINUTE")),
    operators=(AggregateOperator, RankOperator),
    parts=PARTS,
    level=Level.WINDOW,
)
def window_changed(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windows
    if sides is None or not pair.parts & set(PARTS):
        return
    old, new = sides
    moved_time = "time" in pair.parts and old is not None and new is not None and old.window == new.window
    yield RuleMatch(
        "the window uses a different time column" if moved_time else "the window definition changed",
        pair.claim(*PARTS, "offset", "notation", "windowed", "kind"),
        *map(format_window, sides),
        before_span=old.span if old else None,
        after_span=new.span if new else None,
        verdicts=row_count_verdicts(old, new),
    )


COMPUTED = refused("notation-computed-tumble-to-tvf")


@Rule(
    code="window-notation-changed",
    title="The same window in a different notation",
    vvr=unknown("no page documents whether the two operators share state"),
    flink=refused_at_submit("w-tumble-to-legacytumble-samesize", "g-to-tvf"),
    rationale="Flink plans different operators for a windowing table-valued function and for a legacy group window.",
    example=Example(
        windowed("customer, SUM(amount)"),
        "SELECT customer, SUM(amount)\nFROM orders\nGROUP BY customer, TUMBLE(order_time, INTERVAL '1' MINUTE);",
    ),
    operators=(AggregateOperator,),
    parts=("notation",),
)
def window_notation_changed(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windowed
    if sides is None or "notation" not in pair.parts or pair.parts & set(PARTS):
        return
    old, new = (side.window.notation if side.window else "none" for side in sides)
    # The notation also changes the spelling of the window keys, but not their meaning.
    claims = pair.claim("notation", "kind", "windowed", "window keys", "key order")
    tumble = all(side.window is not None and side.window.window.kind is WindowKind.TUMBLE for side in sides)
    verdicts = {"flink": COMPUTED} if tumble and computed_below(pair.pipeline) else {}
    yield RuleMatch("the same window is written in a different notation", claims, old, new, verdicts=verdicts)


def _has_refused_offset(windowing: AssignedWindow | None) -> bool:
    if windowing is None or windowing.window.kind is not WindowKind.TUMBLE:
        return False
    return abs(windowing.window.offset) >= (windowing.window.size or 0)


@Rule(
    code="window-offset-refused",
    title="A TUMBLE offset of at least the size",
    vvr=inferred(Outcome.COMPATIBLE, "the Windowing TVF page shows offsets of 16 minutes for a size of 10"),
    flink=expected("the planners of 2.3 and 1.20 refuse the offset"),
    rationale="The planner requires abs(offset) < size only for TUMBLE. HOP and CUMULATE ran with larger offsets.",
    example=reading(
        "customer, SUM(amount)",
        MINUTE.replace("'1' MINUTE", "'10' MINUTE, INTERVAL '4' MINUTE"),
        MINUTE.replace("'1' MINUTE", "'10' MINUTE, INTERVAL '14' MINUTE"),
    ),
    operators=(AggregateOperator, RankOperator),
)
def window_offset_refused(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windows
    if sides is not None and _has_refused_offset(sides[1]):
        yield RuleMatch(
            "open-source Flink refuses a TUMBLE whose offset is not smaller than its size",
            (),
            *map(format_window, sides),
        )


@Rule(
    code="window-offset-respelled",
    title="A different offset with the same assignment",
    vvr=inferred(
        Outcome.COMPATIBLE,
        ("offsets are equal if they assign rows to the same windows; the Windowing TVF page lists equal offsets"),
    ),
    flink=right("offsets-tumble-negative", "offsets-hop-negative", "offsets-hop-whole-slide"),
    rationale=(
        "An offset shifts the windows. For a size of 10 minutes, the offsets -6 and 4 minutes result in the same "
        "windows."
    ),
    example=reading(
        "customer, SUM(amount)",
        MINUTE.replace("'1' MINUTE", "'10' MINUTE, INTERVAL '4' MINUTE"),
        MINUTE.replace("'1' MINUTE", "'10' MINUTE, INTERVAL '-6' MINUTE"),
    ),
    operators=(AggregateOperator, RankOperator),
    parts=("offset",),
)
def window_offset_respelled(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.windows
    if sides is None or "offset" not in pair.parts or pair.parts & set(PARTS):
        return
    yield RuleMatch(
        "a different offset assigns every row to the same window", pair.claim("offset"), *map(format_window, sides)
    )


CHANGED = {"flink": measured(Outcome.INCOMPATIBLE, "filters-window-filter-changed")}
ADDED = {"flink": refused_at_submit("w-filter-window-add", "filters-window-filter-removed")}


@Rule(
    code="window-filter",
    title="A filter on window fields",
    vvr=documented(Outcome.UNKNOWN, "Window TVF row 22"),
    flink=unknown("only unchanged window filters were measured"),
    rationale=(
        "Flink plans a condition on window fields as a separate operator below the aggregation, wherever the query "
        "contains the condition."
    ),
    example=Example(
        windowed("customer, SUM(amount)"),
        windowed("customer, SUM(amount)").replace(
            "\nGROUP", "\nWHERE window_start >= TIMESTAMP '2026-01-01 00:00:00'\nGROUP"
        ),
        outcomes={"flink": Outcome.INCOMPATIBLE},
    ),
    operators=(AggregateOperator, RankOperator),
)
def window_filter(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.aggregations or pair.ranks
    if sides is None:
        return
    old, new = (side.segment.window_filters for side in sides)
    if not old and not new:
        return
    word = "is in both versions" if old == new else "was added" if not old else "was deleted" if not new else "changed"
    verdicts = unchanged_on_flink(pair.pipeline) if old == new else CHANGED if old and new else ADDED
    yield RuleMatch(
        f"a filter on window fields {word}",
        pair.claim("window filters"),
        *map(format_conditions, (old, new)),
        verdicts=verdicts,
    )


FROM_GROUP_WINDOW = "FROM orders\nGROUP BY customer, TUMBLE(order_time, INTERVAL '1' MINUTE)"


@Rule(
    code="window-filter-above-state",
    title="A condition on window fields above the state changed",
    vvr=unknown("no row covers filters on the fields of a legacy group window"),
    flink=unknown("filters on the fields of a legacy group window were not measured"),
    rationale=(
        "The fields of a legacy group window exist only above the window. No page documents the effect of a "
        "condition on these fields."
    ),
    example=Example(
        f"SELECT customer, SUM(amount)\n{FROM_GROUP_WINDOW};",
        f"SELECT customer, SUM(amount)\n{FROM_GROUP_WINDOW}\n"
        "HAVING TUMBLE_START(order_time, INTERVAL '1' MINUTE) > TIMESTAMP '2026-01-01 00:00:00';",
    ),
    parts=("window filters",),
)
def window_filter_above_state(pair: PipelinePair) -> Iterable[RuleMatch]:
    old, new = (side.segment.window_filters for side in (pair.old, pair.new))
    if "window filters" in pair.parts:
        yield RuleMatch(
            "a condition on window fields above the state changed",
            pair.claim("window filters"),
            *map(format_conditions, (old, new)),
        )


@Rule(
    code="windowed-rows-changed",
    title="The window of rows without an aggregation changed",
    vvr=unknown("the pages cover only windows with an aggregation"),
    flink=unknown("windows without an aggregation were not measured"),
    rationale="Without an aggregation, a windowing function keeps state only for SESSION windows.",
    example=Example(f"SELECT * FROM {MINUTE};", f"SELECT * FROM {MINUTE.replace(chr(39) + '1', chr(39) + '2')};"),
    parts=("windows",),
)
def windowed_rows_changed(pair: PipelinePair) -> Iterable[RuleMatch]:
    if "windows" in pair.parts:
        old, new = (side.segment.windows for side in (pair.old, pair.new))
        yield RuleMatch(
            "the window of rows without an aggregation changed",
            pair.claim("windows"),
            ", ".join(format_window(w) for w in old) or "no window",
            ", ".join(format_window(w) for w in new) or "no window",
        )


EARLY, LATE = DELAYS
MEASURED = ({EARLY, DELAYS[EARLY]}, {LATE, DELAYS[LATE], LATENESS})
"""Emit settings that were added or removed together in measured changes."""
NOTHING_FIRES = "the query has no stateful operator that could fire early or late"
# Without late rows, the results were right (g-latefire-add).
LATE_ADDED = wrong("group-windows-late-added", note="a late row reopens a closed window after its state was removed")


def _has_group_window(pair: PipelinePair) -> bool:
    """True if either side has a legacy group window."""
    every = (*operators(pair.old), *operators(pair.new))
    return any(isinstance(o, AggregateOperator) and o.kind == AggregateKind.GROUP_WINDOW for o in every)


def fires_on_vvr(pair: PipelinePair) -> Verdict | None:
    """Verdict on VVR on changed emit settings; None if they have no effect."""
    old, new = effective_emit_settings(pair.old_pipeline), effective_emit_settings(pair.new_pipeline)
    values = {value for side in (old, new) for key, value in side.items() if key in DELAYS}
    grouped = _has_group_window(pair)
    if grouped and values:
        no_boolean = unknown("the value of the fire setting is neither true nor false")
        return early_or_late_fire.vvr if "true" in values else no_boolean
    if old == new:
        return None
    if not pair.stateful:
        return inferred(Outcome.COMPATIBLE, NOTHING_FIRES)
    why = (
        "no row covers other emit settings without early or late fire"
        if grouped
        else ("the rows cover only legacy group windows")
    )
    return unknown(why)


def fires_on_flink(pair: PipelinePair) -> Verdict | None:
    """Verdict on ``flink`` on changed emit settings; None if they have no effect.

    The measured jobs have an event-time TUMBLE or HOP window and a stateless sink. Each measured change adds, keeps or
    removes one kind of fire, or changes the delay of an early fire. The measured scripts have no other difference.

    A window that emits a result more than once also stores its last result with the window fields. Lateness alone makes
    a window emit updates, so downstream operators have a different changelog mode.
    """
    old, new = effective_emit_settings(pair.old_pipeline), effective_emit_settings(pair.new_pipeline)
    if old == new:
        if not _has_group_window(pair) or not repeating_settings(pair.new_pipeline):
            return None
        kept = right("group-windows-early-unchanged", "group-windows-late-unchanged")
        return unknown("early or late fire was measured only with an unchanged query") if pair.changed else kept
    if not pair.stateful:
        return inferred(Outcome.COMPATIBLE, NOTHING_FIRES, ids=UNCHANGED)
    fired = enabled_fires(pair.old_pipeline) or enabled_fires(pair.new_pipeline)
    came_or_went = {} in (old, new) and set(old or new) in MEASURED
    paced = set(old) == set(new) == MEASURED[0] and old[EARLY] == new[EARLY]
    alone = fired and not pair.changed and _is_alone_in_job(pair) and (came_or_went or paced)
    kinds = {WindowKind.TUMBLE, *([WindowKind.HOP] if set(old or new) == MEASURED[0] else ())}
    if alone and _measured_window(pair, kinds) and _sends_updates_directly(pair):
        return LATE_ADDED if LATE in new else early_or_late_fire.flink
    return unknown("only a change of one kind of fire was measured, on an event-time TUMBLE or HOP before a print sink")


def _is_alone_in_job(pair: PipelinePair) -> bool:
    """True if no other query shares the statement set."""
    sides = ((pair.old_pipeline, pair.old_program), (pair.new_pipeline, pair.new_program))
    return not any(
        own.statement_set is not None and [p.statement_set for p in program.pipelines].count(own.statement_set) > 1
        for own, program in sides
    )


def _measured_window(pair: PipelinePair, kinds: Container[WindowKind]) -> bool:
    every = operators(pair.new)
    if len(every) != 1 or not isinstance(every[0], AggregateOperator):
        return False
    window = every[0].window
    return (
        window is not None
        and window.notation == "group window"
        and window.window.kind in kinds
        and window.time_attribute is TimeAttribute.ROWTIME
    )


def _sends_updates_directly(pair: PipelinePair) -> bool:
    """True if the query has no sink, or has a stateless sink without a primary key on both sides."""

    def keyed(program: Program) -> bool:
        return any(table.primary_key for table in program.tables if table.name == pair.new.sink)

    old, new = sinks.connectors(pair)
    nameless = not pair.old.sink and not pair.new.sink
    plain = old == new and is_stateless_sink(old)
    return nameless or (plain and not keyed(pair.old_program) and not keyed(pair.new_program))


SAME = "the effective settings of the query are the same"
NO_EFFECT = {"vvr": inferred(Outcome.COMPATIBLE, SAME), "flink": inferred(Outcome.COMPATIBLE, SAME, ids=UNCHANGED)}
GROUPED = "SELECT customer, SUM(amount){0}\nFROM orders\nGROUP BY customer, TUMBLE(order_time, INTERVAL '1' MINUTE);"
SET = f"SET '{EARLY}' = 'true';\nSET '{DELAYS[EARLY]}' = '500 ms';\n"


@Rule(
    code="early-or-late-fire",
    title="A group window that fires early or late",
    vvr=documented(Outcome.INCOMPATIBLE, "Group Window Aggregate rows 16 and 21: before, after or changed"),
    flink=right(
        "g-earlyfire-add",
        "g-earlyfire-remove",
        "group-windows-early-unchanged",
        "group-windows-early-added",
        "group-windows-early-added-hop",
        "group-windows-early-removed",
        "group-windows-early-delay",
        "group-windows-late-unchanged",
        "group-windows-late-removed",
    ),
    rationale=(
        "With early or late results, the window becomes a retracting operator, which has different state. Open-source "
        "Flink restored a single early or late fire correctly, with one exception. When late fire was added, results "
        "for late rows were wrong (group-windows-late-added)."
    ),
    example=Example(GROUPED.format(""), SET + GROUPED.format("")),
    case_dependent=("flink",),
)
def early_or_late_fire(pair: PipelinePair) -> Iterable[RuleMatch]:
    old, new = dict(pair.old_pipeline.settings), dict(pair.new_pipeline.settings)
    if not old and not new:
        return
    changed = sorted(key for key in {*old, *new} if key.startswith(PREFIX) and old.get(key) != new.get(key))
    verdicts: Mapping[str, Verdict | None] = {"vvr": fires_on_vvr(pair), "flink": fires_on_flink(pair)}
    if not changed and not any(verdicts.values()):
        return
    shown = changed or sorted(repeating_settings(pair.new_pipeline))
    firing = enabled_fires(pair.old_pipeline) or enabled_fires(pair.new_pipeline)
    yield RuleMatch(
        "windows fire early or late"
        if firing
        else "windows may emit a result more than once without early or late fire",
        tuple(f"setting/{key}" for key in changed),
        ", ".join(format_setting(key, old.get(key)) for key in shown),
        ", ".join(format_setting(key, new.get(key)) for key in shown),
        verdicts={engine: verdict or NO_EFFECT[engine] for engine, verdict in verdicts.items()},
    )
