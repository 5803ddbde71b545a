from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat import flink
from airflow_flinkcompat.compat.clauses import setting
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.pairs import PipelinePair
from airflow_flinkcompat.compat.rule import Example, Hit, Rule, Scope, Verdict, documented, inferred, measured
from airflow_flinkcompat.compat.rules.output_changed import sink_connector
from airflow_flinkcompat.plan.nodes import WindowKind
from airflow_flinkcompat.plan.operators import AggregateOperator, Output, operators
from airflow_flinkcompat.plan.program import Pipeline, Program
from airflow_flinkcompat.plan.types import TimeAttribute

EMIT = "table.exec.emit."
"""Settings under this name are judged here, window by window, and nowhere else."""

DELAYS = {f"{EMIT}{fire}-fire.enabled": f"{EMIT}{fire}-fire.delay" for fire in ("early", "late")}
EARLY, LATE = DELAYS
MEASURED = ({EARLY, DELAYS[EARLY]}, {LATE, DELAYS[LATE], f"{EMIT}allow-lateness"})
"""What was set together when a fire came or went across a restore."""


def in_force(pipeline: Pipeline) -> dict[str, str]:
    """The emit settings that take effect at an INSERT: a fire set to false is none, and its delay then says nothing."""
    found = {key: "".join(value.split()).lower() for key, value in pipeline.settings if key.startswith(EMIT)}
    for fire, delay in DELAYS.items():
        if found.get(fire, "false") == "false":
            found.pop(fire, None)
            found.pop(delay, None)
    return found


def fires(pipeline: Pipeline) -> list[str]:
    """The fires that are enabled at an INSERT."""
    return [fire for fire, value in in_force(pipeline).items() if fire in DELAYS and value == "true"]


def _notations(output: Output) -> set[str]:
    return {o.window.notation for o in operators(output) if isinstance(o, AggregateOperator) and o.window is not None}


def on_vvr(pair: PipelinePair) -> Verdict | None:
    """What the difference means on VVR; None where nothing takes effect."""
    old, new = in_force(pair.old_pipeline), in_force(pair.new_pipeline)
    values = {value for side in (old, new) for key, value in side.items() if key in DELAYS}
    grouped = "group window" in _notations(pair.old) | _notations(pair.new)
    if grouped and values:
        no_boolean = inferred(Outcome.UNKNOWN, "the value is neither true nor false")
        return RULE.verdicts["vvr"] if "true" in values else no_boolean
    if old == new:
        return None
    if not pair.stateful:
        return inferred(Outcome.COMPATIBLE, "no operator of this query keeps state that could fire")
    why = "no row names these settings without a fire" if grouped else "the rows speak of legacy group windows"
    return inferred(Outcome.UNKNOWN, why)


def on_flink(pair: PipelinePair) -> Verdict | None:
    """As measured: one fire added, kept or removed, and nothing else, on an event-time TUMBLE into a stateless sink.

    Where updates leave, the operator also stores what it sent last, window fields included, and lateness alone makes
    it do so; whatever reads the updates plans another changelog.
    """
    old, new = in_force(pair.old_pipeline), in_force(pair.new_pipeline)
    if old == new:
        if not DELAYS.keys() & new.keys():
            return None
        kept = measured(Outcome.COMPATIBLE, "a fire kept: restored right")
        return inferred(Outcome.UNKNOWN, "a fire was kept only by an unchanged query") if pair.changed else kept
    if not pair.stateful:
        return inferred(Outcome.COMPATIBLE, "no operator of this query keeps state that could fire")
    fired = fires(pair.old_pipeline) or fires(pair.new_pipeline)
    alone = fired and not pair.changed and {} in (old, new) and set(old or new) in MEASURED
    if alone and _measured_window(pair) and _takes_updates(pair):
        return RULE.verdicts["flink"]
    return inferred(Outcome.UNKNOWN, "measured: one fire on an event-time TUMBLE in front of a print sink, by itself")


def _measured_window(pair: PipelinePair) -> bool:
    every = operators(pair.new)
    if len(every) != 1 or not isinstance(every[0], AggregateOperator):
        return False
    window = every[0].window
    return (
        window is not None
        and window.notation == "group window"
        and window.window.kind is WindowKind.TUMBLE
        and window.time_attribute is TimeAttribute.ROWTIME
    )


def _takes_updates(pair: PipelinePair) -> bool:
    """A primary key would put an operator in front of the sink that sorts updates out."""

    def keyed(program: Program) -> bool:
        return any(table.primary_key for table in program.tables if table.name == pair.new.sink)

    old, new = sink_connector(pair)
    nameless = not pair.old.sink and not pair.new.sink
    plain = old == new and old in flink.STATELESS_SINKS
    return nameless or (plain and not keyed(pair.old_program) and not keyed(pair.new_program))


def find(pair: PipelinePair) -> Iterable[Hit]:
    old, new = (dict(p.settings) for p in (pair.old_pipeline, pair.new_pipeline))
    changed = sorted(key for key in {*old, *new} if key.startswith(EMIT) and old.get(key) != new.get(key))
    verdicts: Mapping[str, Verdict | None] = {"vvr": on_vvr(pair), "flink": on_flink(pair)}
    if not changed and not any(verdicts.values()):
        return
    shown = changed or sorted(in_force(pair.new_pipeline))
    firing = fires(pair.old_pipeline) or fires(pair.new_pipeline)
    yield Hit(
        "windows fire early or late" if firing else "emit settings changed that enable neither early nor late fire",
        tuple(f"setting/{key}" for key in changed),
        ", ".join(setting(key, old.get(key)) for key in shown),
        ", ".join(setting(key, new.get(key)) for key in shown),
        verdicts={engine: verdict or NO_EFFECT for engine, verdict in verdicts.items()},
    )


NO_EFFECT = inferred(Outcome.COMPATIBLE, "what takes effect at the query is the same")
GROUPED = "SELECT customer, SUM(amount){0}\nFROM orders\nGROUP BY customer, TUMBLE(order_time, INTERVAL '1' MINUTE);"
SET = f"SET '{EARLY}' = 'true';\nSET '{DELAYS[EARLY]}' = '500 ms';\n"
RULE = Rule(
    code="early-or-late-fire",
    title="A group window that fires early or late",
    scope=Scope.PIPELINE,
    verdicts={
        "vvr": documented(Outcome.INCOMPATIBLE, "Group Window Aggregate rows 16 and 21: before, after or changed"),
        "flink": measured(Outcome.COMPATIBLE, "g-earlyfire-add, g-earlyfire-remove, g-latefire-add"),
    },
    why="Results that leave before or after their window's end make it a retracting operator, which keeps other state.",
    example=Example(GROUPED.format(""), SET + GROUPED.format("")),
    find=find,
)
