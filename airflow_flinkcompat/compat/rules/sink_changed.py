from collections.abc import Iterable

from airflow_flinkcompat import connectors
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.diff_fields import table_parts
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.changes.table_use import UsedTable
from airflow_flinkcompat.compat.engines.flink import sinks
from airflow_flinkcompat.compat.engines.flink.catalog_tables import another_table
from airflow_flinkcompat.compat.engines.flink.sink_swaps import connector_verdict
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
from airflow_flinkcompat.compat.rule_builders.options.matches import options_judged
from airflow_flinkcompat.connectors import TableUse
from airflow_flinkcompat.model import Basis, Consequence, Outcome, Reason

IGNORE = "table.optimizer.state-compatibility.ignore-sink"
CHECKED = Verdict(
    Outcome.UNKNOWN, Basis.DOCUMENT, f"Sink table page (read in part): {IGNORE} = false", Reason.DOCUMENTED
)
ALIKE = "the sinks are not declared alike: not measured"
RENAMED = {
    "kafka": ("sk-stateless-kafka-topic", "sk-stateless-kafka-eo-topic"),
    "upsert-kafka": ("sk-group-upsert-renamed",),
    "jdbc": ("sk-stateless-jdbc-renamed", "sk-group-jdbc-renamed"),
    "filesystem": ("file-sinks-renamed",),
}
"""Sinks under another table's name: nothing that is stored holds it."""


def on_flink(pair: PipelinePair, change: Change) -> Verdict | None:
    """None, where both sinks keep no state and no operator in front of them comes or goes."""
    for side, name in zip(change.programs, (pair.old.sink, pair.new.sink), strict=True):
        if sum(pipeline.sink.name == name for pipeline in side.pipelines) > 1:
            return inferred(Outcome.UNKNOWN, "several queries write into one of the sinks: they are planned as a union")
    if found := connector_verdict(pair) if any(sinks.connectors(pair)) else another_table(pair, change):
        return found
    tables = [table for table in sinks.tables(pair) if table is not None]
    connector = sinks.connectors(pair)[0]
    if len(tables) < 2:
        return inferred(Outcome.UNKNOWN, sinks.UNDECLARED)
    facts = connectors.sink(connector)
    if facts.ids_use_table_name and len({table.path[-1] for table in tables}) > 1:
        return Verdict(Outcome.INCOMPATIBLE, Basis.INFERRED, f"{facts.document}: those of the new table find no state",
                       consequence=Consequence.REFUSED_AT_SUBMIT)  # fmt: skip
    before, after = map(table_parts, tables)
    options = options_judged(tables[0].name, connector, before["options"], after["options"], _written(pair))
    if connector not in RENAMED or any(before[part] != after[part] for part in before if part != "options"):
        if reason := sinks.stays(pair):
            return inferred(Outcome.UNKNOWN, reason)
        if not all(before[part] == after[part] for part in ("metadata", "computed")):
            return inferred(Outcome.UNKNOWN, ALIKE)
    if connector not in RENAMED:
        return None if options is None else options.verdict
    renamed = measured(Outcome.COMPATIBLE, *RENAMED[connector], note="nothing that is stored holds a table's name")
    return renamed if options is None else combined((renamed, options.verdict))


def _written(pair: PipelinePair) -> tuple[UsedTable]:
    return (UsedTable(TableUse.SINK, pair),)


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
            found = on_flink(pair, change)
            yield RuleMatch(
                "results go to another table",
                tuple(claims),
                old or "a bare SELECT",
                new or "a bare SELECT",
                pair.old.span,
                pair.new.span,
                verdicts={k: v for k, v in (("flink", found), ("vvr", checked)) if v is not None},
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
