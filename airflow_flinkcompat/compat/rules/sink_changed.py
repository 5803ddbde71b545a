from collections.abc import Iterable, Mapping

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.diff_fields import table_parts
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.engines.flink import restores as flink
from airflow_flinkcompat.compat.engines.flink import sinks
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, Verdict, documented, inferred, measured
from airflow_flinkcompat.model import Basis, Consequence, Outcome, Reason

IGNORE = "table.optimizer.state-compatibility.ignore-sink"
CHECKED = Verdict(
    Outcome.UNKNOWN, Basis.DOCUMENT, f"Sink table page (read in part): {IGNORE} = false", Reason.DOCUMENTED
)
MEASURED_OPTIONS = frozenset({"print-identifier", "standard-error", "sink.parallelism"})
"""Options of a stateless sink that leave the job's topology alone, as long as its parallelism is the job's."""
STATE_LOST = measured(
    Outcome.INCOMPATIBLE,
    "sk-stateless-direct-filesystem-to-print",
    note="its state is mapped too",
    consequence=Consequence.REFUSED_AT_SUBMIT,
)

FILES_RENAMED = measured(Outcome.COMPATIBLE, "file-sinks-renamed", note="the same files under another table's name")


def options_changed(old: Mapping[str, str], new: Mapping[str, str]) -> set[str]:
    """The keys whose values differ."""
    return {key for key in {*old, *new} if old.get(key) != new.get(key)}


def connector_on_flink(pair: PipelinePair) -> Verdict | None:
    """Refused where a sink's state finds no operator any more; None where both connectors are the same."""
    old, new = sinks.connectors(pair)
    if old in flink.SINKS_WITH_KNOWN_CHAIN and new in flink.STATELESS_SINKS:
        return STATE_LOST
    return None if old == new else inferred(Outcome.UNKNOWN, "a change between these sink connectors was not measured")


def on_flink(pair: PipelinePair, change: Change) -> Verdict | None:
    """None, where both sinks keep no state and no operator in front of them comes or goes."""
    for side, name in zip(change.programs, (pair.old.sink, pair.new.sink), strict=True):
        if sum(pipeline.sink.name == name for pipeline in side.pipelines) > 1:
            return inferred(Outcome.UNKNOWN, "several queries write into one of the sinks: they are planned as a union")
    if connector := connector_on_flink(pair):
        return connector
    declared = [table_parts(table) for table in sinks.tables(pair) if table is not None]
    if sinks.connectors(pair)[0] in flink.SINKS_WITH_KNOWN_CHAIN and declared[0] == declared[1]:
        return FILES_RENAMED
    if reason := sinks.stays(pair):
        return inferred(Outcome.UNKNOWN, reason)
    before, after = declared
    same = all(before[part] == after[part] for part in ("metadata", "computed"))
    if same and options_changed(before["options"], after["options"]) <= MEASURED_OPTIONS:
        return None
    return inferred(Outcome.UNKNOWN, "the sinks are not declared alike: not measured")


def sink_state_checked(change: Change) -> Verdict | None:
    """Unknown where ignore-sink is off on either side: then a sink counts as stateful, by rows that are not known."""
    on = [
        dict(pipeline.settings).get(IGNORE, "true").lower()
        for program in change.programs
        for pipeline in program.pipelines
    ]
    return CHECKED if "false" in on else None


def find(change: Change) -> Iterable[RuleMatch]:
    for pair in change.pipelines:
        if "sink" in pair.parts:
            old, new = pair.old.sink, pair.new.sink
            claims = [*pair.claim("sink")]
            claims += [d.key for d in change.parts("declared") if d.key.split("/")[1] in (old, new)]
            checked = sink_state_checked(change)
            yield RuleMatch(
                "results go to another table",
                tuple(claims),
                old or "a bare SELECT",
                new or "a bare SELECT",
                pair.old.span,
                pair.new.span,
                verdicts={k: v for k, v in (("flink", on_flink(pair, change)), ("vvr", checked)) if v is not None},
            )


SINK = "CREATE TABLE {0} (customer STRING, amount BIGINT) WITH ('connector' = 'print');\n"
QUERY = "INSERT INTO {0} SELECT customer, amount FROM orders;"
RULE = Rule(
    code="sink-changed",
    title="Another sink table",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": documented(
            Outcome.COMPATIBLE, "Sink table page (read in part): name, connector and WITH under ignore-sink = true"
        ),
        "flink": measured(Outcome.COMPATIBLE, "sinks-renamed"),
    },
    rationale="VVR's check leaves sinks out by default. Open-source Flink maps a sink's own state as well.",
    example=Example((SINK + QUERY).format("totals"), (SINK + QUERY).format("sums")),
    find=find,
    beside_operators=True,
    case_dependent=("vvr", "flink"),
)
