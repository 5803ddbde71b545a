from collections.abc import Container, Iterable, Mapping

from airflow_flinkcompat.compat.changes.format import format_setting
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.engines.flink import restores as flink
from airflow_flinkcompat.compat.engines.flink import sinks
from airflow_flinkcompat.compat.engines.flink.emission import DELAYS, LATENESS, PREFIX, fires, in_force, repeating
from airflow_flinkcompat.compat.rule import (
    UNCHANGED,
    Example,
    Rule,
    RuleMatch,
    RuleScope,
    Verdict,
    documented,
    inferred,
    measured,
)
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan.nodes import WindowKind
from airflow_flinkcompat.plan.operators import AggregateKind, AggregateOperator, operators
from airflow_flinkcompat.plan.program import Program
from airflow_flinkcompat.plan.types import TimeAttribute

EARLY, LATE = DELAYS
MEASURED = ({EARLY, DELAYS[EARLY]}, {LATE, DELAYS[LATE], LATENESS})
"""What was set together when a fire came or went across a restore."""
NOTHING_FIRES = "no operator of this query keeps state that could fire"
# Without late rows it restored right (g-latefire-add).
LATE_ADDED = measured(
    Outcome.INCOMPATIBLE,
    "group-windows-late-added",
    note="a late row reopens a window that had closed, whose state is gone",
    consequence=Consequence.SILENTLY_WRONG,
)


def _grouped(pair: PipelinePair) -> bool:
    """Whether a legacy group window stands on either side."""
    every = (*operators(pair.old), *operators(pair.new))
    return any(isinstance(o, AggregateOperator) and o.kind == AggregateKind.GROUP_WINDOW for o in every)


def on_vvr(pair: PipelinePair) -> Verdict | None:
    """What the difference means on VVR; None where nothing takes effect."""
    old, new = in_force(pair.old_pipeline), in_force(pair.new_pipeline)
    values = {value for side in (old, new) for key, value in side.items() if key in DELAYS}
    grouped = _grouped(pair)
    if grouped and values:
        no_boolean = inferred(Outcome.UNKNOWN, "the value is neither true nor false")
        return RULE.verdicts["vvr"] if "true" in values else no_boolean
    if old == new:
        return None
    if not pair.stateful:
        return inferred(Outcome.COMPATIBLE, NOTHING_FIRES)
    why = "no row names these settings without a fire" if grouped else "the rows speak of legacy group windows"
    return inferred(Outcome.UNKNOWN, why)


def on_flink(pair: PipelinePair) -> Verdict | None:
    """The verdict on Flink for a change of the fires of a window.

    What was measured: one fire added, kept or removed, or an early one at another pace, and nothing else, on an
    event-time TUMBLE or HOP into a stateless sink.

    A window that sends a result more than once also stores what it sent last, window fields included; lateness alone
    makes it do so. Whatever reads the updates plans another changelog.
    """
    old, new = in_force(pair.old_pipeline), in_force(pair.new_pipeline)
    if old == new:
        if not _grouped(pair) or not repeating(pair.new_pipeline):
            return None
        kept = measured(Outcome.COMPATIBLE, "group-windows-early-unchanged", "group-windows-late-unchanged")
        return inferred(Outcome.UNKNOWN, "a fire was kept only by an unchanged query") if pair.changed else kept
    if not pair.stateful:
        return inferred(Outcome.COMPATIBLE, NOTHING_FIRES, ids=UNCHANGED)
    fired = fires(pair.old_pipeline) or fires(pair.new_pipeline)
    came_or_went = {} in (old, new) and set(old or new) in MEASURED
    paced = set(old) == set(new) == MEASURED[0] and old[EARLY] == new[EARLY]
    alone = fired and not pair.changed and _one_job(pair) and (came_or_went or paced)
    kinds = {WindowKind.TUMBLE, *([WindowKind.HOP] if set(old or new) == MEASURED[0] else ())}
    if alone and _measured_window(pair, kinds) and _takes_updates(pair):
        return LATE_ADDED if LATE in new else RULE.verdicts["flink"]
    return inferred(
        Outcome.UNKNOWN, "measured: one fire on an event-time TUMBLE or HOP in front of a print sink, by itself"
    )


def _one_job(pair: PipelinePair) -> bool:
    """No other query of a statement set shares the job."""
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


def _takes_updates(pair: PipelinePair) -> bool:
    """A primary key would put an operator in front of the sink that sorts updates out."""

    def keyed(program: Program) -> bool:
        return any(table.primary_key for table in program.tables if table.name == pair.new.sink)

    old, new = sinks.connectors(pair)
    nameless = not pair.old.sink and not pair.new.sink
    plain = old == new and old in flink.STATELESS_SINKS
    return nameless or (plain and not keyed(pair.old_program) and not keyed(pair.new_program))


def find(pair: PipelinePair) -> Iterable[RuleMatch]:
    old, new = (dict(p.settings) for p in (pair.old_pipeline, pair.new_pipeline))
    changed = sorted(key for key in {*old, *new} if key.startswith(PREFIX) and old.get(key) != new.get(key))
    verdicts: Mapping[str, Verdict | None] = {"vvr": on_vvr(pair), "flink": on_flink(pair)}
    if not changed and not any(verdicts.values()):
        return
    shown = changed or sorted(repeating(pair.new_pipeline))
    firing = fires(pair.old_pipeline) or fires(pair.new_pipeline)
    yield RuleMatch(
        "windows fire early or late"
        if firing
        else "windows may send a result more than once without early or late fire",
        tuple(f"setting/{key}" for key in changed),
        ", ".join(format_setting(key, old.get(key)) for key in shown),
        ", ".join(format_setting(key, new.get(key)) for key in shown),
        verdicts={engine: verdict or NO_EFFECT[engine] for engine, verdict in verdicts.items()},
    )


SAME = "what takes effect at the query is the same"
NO_EFFECT = {"vvr": inferred(Outcome.COMPATIBLE, SAME), "flink": inferred(Outcome.COMPATIBLE, SAME, ids=UNCHANGED)}
GROUPED = "SELECT customer, SUM(amount){0}\nFROM orders\nGROUP BY customer, TUMBLE(order_time, INTERVAL '1' MINUTE);"
SET = f"SET '{EARLY}' = 'true';\nSET '{DELAYS[EARLY]}' = '500 ms';\n"
RULE = Rule(
    code="early-or-late-fire",
    title="A group window that fires early or late",
    scope=RuleScope.PIPELINE,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Group Window Aggregate rows 16 and 21: before, after or changed"),
        "flink": measured(
            Outcome.COMPATIBLE,
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
    },
    rationale="Results that leave before or after their window's end make it a retracting operator, which keeps other "
    "state. Open-source Flink restored one fire by itself right, except where late fire was added: with late rows its "
    "rows were wrong (group-windows-late-added).",
    example=Example(GROUPED.format(""), SET + GROUPED.format("")),
    find=find,
    case_dependent=("flink",),
)
