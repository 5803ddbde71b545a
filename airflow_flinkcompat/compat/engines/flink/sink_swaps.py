"""Engine ``flink``: verdicts on a sink whose connector or Iceberg table changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.engines.flink import sinks
from airflow_flinkcompat.compat.engines.flink.ranking import appends_only, at_parallelism_one
from airflow_flinkcompat.compat.engines.flink.sinks import surely_projected
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.compat.verdict import Remedy, Verdict, expected, inferred, refused_at_submit, right, unknown
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import Known, SinkFacts, SinkState
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan.catalog import options
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import AggregateKind, AggregateOperator, Source, appends, segments
from airflow_flinkcompat.sql import nodes

BETWEEN = (
    "sk-stateless-print-blackhole",
    "sk-stateless-blackhole-print",
    "sk-tumble-print-blackhole",
    "sk-stateless-jdbc-to-print",
    "sk-group-jdbc-to-blackhole",
)
"""Restores from one sink without state to another."""


INTO_STATE = (
    "sk-stateless-print-to-kafka",
    "sk-tumble-print-to-kafka-eo",
    "sk-group-direct-print-to-kafka",
    "sk-stateless-direct-print-to-filesystem",
    "sk-stateless-direct-jdbc-to-kafka",
)
"""Restores from a sink without state to a sink with state, with and without a preceding Calc."""


INTO_UPSERTS = ("sk-group-print-to-jdbc", "sk-group-direct-print-to-kafka")


TAKEN_AWAY = {
    "kafka": ("sk-stateless-kafka-to-print", "sk-stateless-kafka-to-jdbc", "sk-tumble-kafka-to-blackhole"),
    "upsert-kafka": ("sk-group-upsert-to-print", "sk-group-upsert-to-jdbc"),
    "filesystem": ("sk-stateless-direct-filesystem-to-print",),
}
"""Restores that Flink refused at submit, because the new job has no operator for the sink's state."""


KAFKA_TO_FILES = ("sk-stateless-kafka-to-filesystem",)


_UNCHAINED = replace(
    unknown(
        "the file writer is chained like Kafka's writer only at parallelism 1, and parallelism.default is not set to "
        "1 on both sides"
    ),
    remedy=Remedy.PARALLELISM_ONE,
)


ROW_BEFORE = (
    "a source may emit updates, and possibly only one of the sinks needs the row before an update: Flink then also "
    "stores the rows of the source, but only for this sink"
)


_ALIKE = ({Known.YES}, {Known.NO})


_GUARANTEES = ("sink.delivery-guarantee", "sink.semantic")


def connector_verdict(pair: PipelinePair) -> Verdict | None:
    """Verdict on a changed sink connector; None if the connector is unchanged."""
    names = sinks.connectors(pair)
    if names[0] == names[1]:
        return None
    # For the old sink, options do not matter: a savepoint contains the writer's id even if the writer stores no row.
    old, new = registry.sink(names[0]), _as_declared(names[1], sinks.tables(pair)[1])
    if names[0] is None or old.state is SinkState.NOT_KNOWN:
        return unknown(f"{sinks.only_the_sink(names[0])}: a different sink may have no operator for its state")
    if new.state is SinkState.NONE and names[0] in TAKEN_AWAY:
        return refused_at_submit(
            *TAKEN_AWAY[names[0]], note=f"the new job has no operator for the state of sink {names[0]}"
        )
    if {old.takes_row_before, new.takes_row_before} not in _ALIKE and not sources_append(pair):
        return unknown(ROW_BEFORE)
    if reason := _planned(pair, old, new):
        return unknown(reason)
    if old.state is not SinkState.NONE:
        return _between_stateful(pair, names)
    if new.state is SinkState.NOT_KNOWN:
        return unknown(f"{sinks.only_the_sink(names[1])}: its effect on the operators before it is unknown")
    ids: tuple[str, ...] = BETWEEN if new.state is SinkState.NONE else INTO_STATE
    ids = INTO_UPSERTS if new.upserts is Known.YES and not _sinks_append(pair) else ids
    if all(facts.ids for facts in (old, new)):
        return right(*ids)
    return inferred(Outcome.COMPATIBLE, f"{names[0]} stores nothing: {old.document}; {new.document}", ids=ids)


def _as_declared(connector: str | None, table: Table | None) -> SinkFacts:
    """Facts about a sink with the options of its table. Some options make a sink stateless."""
    facts = registry.sink(connector)
    return facts if table is None else replace(facts, state=facts.state_with(dict(table.options)))


def _between_stateful(pair: PipelinePair, names: tuple[str | None, str | None]) -> Verdict:
    """Verdict on a change between two sinks with state, which loses the pending rows of the old sink."""
    table = sinks.tables(pair)[0]
    guarantees = {table.option(key) for key in _GUARANTEES} if table is not None else {"exactly-once"}
    if names == ("kafka", "filesystem") and "exactly-once" not in guarantees:
        return right(*KAFKA_TO_FILES) if at_parallelism_one(pair) else _UNCHAINED
    if names == ("filesystem", "kafka"):
        return unknown("rows in unfinished files are lost; without unfinished files a measured restore was correct")
    return unknown(f"restoring the state of sink {names[0]} into sink {names[1]} was not measured")


def _sinks_append(pair: PipelinePair) -> bool:
    """True if the results of both sides are append-only."""
    return all(appends(output.segment) for output in (pair.old, pair.new)) and sources_append(pair)


def sources_append(pair: PipelinePair) -> bool:
    """True if all source tables on both sides are certainly append-only."""
    sides = ((pair.old, pair.old_program), (pair.new, pair.new_program))
    read = ((each, program) for output, program in sides for each in segments(output))
    return all(appends_only(each, program) for each, program in read if isinstance(each.origin, Source))


def _planned(pair: PipelinePair, old: SinkFacts, new: SinkFacts) -> str:
    """Reason why Flink may plan different operators before the new sink; "" if it certainly does not."""
    if reason := sinks.front_stays(pair):
        return reason
    table = sinks.tables(pair)[1]
    if table is not None and (table.option("auto-compaction") or "").lower() == "true":
        return "at a restore, operators that compact files expect stored state, but the savepoint contains none"
    projected = all(map(surely_projected, (pair.old, pair.new)))
    if new.state is not SinkState.NOT_KNOWN and new.operators is None and not projected:
        only = sinks.only_the_sink(sinks.connectors(pair)[1])
        return f"{only}: it may plan additional operators with an unknown chain"
    if sinks.shares_its_job(pair) and old.operators != new.operators:
        return "a different number of sink operators renumbers the operators of the statement set's other queries"
    if pair.operators and sinks.shares_its_job(pair) and not projected:
        return "several sinks follow one operator, and the number of chained sinks affects the operator's id"
    if new.updates is Known.YES or table is None:
        return ""
    top = pair.new.segment.origin
    keyed = isinstance(top, AggregateOperator) and top.kind == AggregateKind.GROUP
    if table.primary_key:
        return "" if keyed else "Flink 2.3 requires ON CONFLICT if the sink's primary key is not the key of the results"
    return "" if _sinks_append(pair) else "the sink may not accept updates without a primary key"


_ICEBERG = "iceberg"


RECOMMITTED = expected(
    "IcebergFilesCommitter, IcebergCommitter (1.10): files in the savepoint are committed again, into the new table, "
    "because its history does not contain their job",
    Consequence.SILENTLY_WRONG,
)


def another_table(pair: PipelinePair, change: Change) -> Verdict | None:
    """Verdict on a sink that moves to a different table in the same Iceberg catalog; else None."""
    names = [name.split(".") for name in (pair.old.sink, pair.new.sink)]
    if any(len(parts) != 3 or "`" in "".join(parts) for parts in names) or names[0][0] != names[1][0]:
        return None
    old, new = (_catalogs(side).get(names[0][0]) for side in (change.old, change.new))
    return RECOMMITTED if old is not None and old == new and old.get("type") == _ICEBERG else None


def _catalogs(side: Side) -> Mapping[str, Mapping[str, str]]:
    """The options of every catalog that a script creates, by catalog name."""
    created = (node for statement in side.parsed.statements for node in statement.nodes[:1])
    return {
        node.this.name: dict(options(node.args.get("options")))
        for node in created
        if isinstance(node, nodes.CreateNamespace) and node.args["kind"] == "CATALOG"
    }
