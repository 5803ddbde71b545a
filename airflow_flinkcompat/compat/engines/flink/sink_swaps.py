"""Engine ``flink``: another connector of a sink; the old one's state is found, lost, or was empty."""

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
"""Cases from a sink without state to another one."""


INTO_STATE = (
    "sk-stateless-print-to-kafka",
    "sk-tumble-print-to-kafka-eo",
    "sk-group-direct-print-to-kafka",
    "sk-stateless-direct-print-to-filesystem",
    "sk-stateless-direct-jdbc-to-kafka",
)
"""Cases from a sink without state to one with state, with and without a Calc in front."""


INTO_UPSERTS = ("sk-group-print-to-jdbc", "sk-group-direct-print-to-kafka")


TAKEN_AWAY = {
    "kafka": ("sk-stateless-kafka-to-print", "sk-stateless-kafka-to-jdbc", "sk-tumble-kafka-to-blackhole"),
    "upsert-kafka": ("sk-group-upsert-to-print", "sk-group-upsert-to-jdbc"),
    "filesystem": ("sk-stateless-direct-filesystem-to-print",),
}
"""Cases of a sink whose state has no operator in the new job: refused at submit."""


KAFKA_TO_FILES = ("sk-stateless-kafka-to-filesystem",)


_UNCHAINED = replace(
    unknown(
        "the writer of files is chained like Kafka's only at parallelism 1, and parallelism.default is not "
        "set to 1 on both sides"
    ),
    remedy=Remedy.PARALLELISM_ONE,
)


ROW_BEFORE = (
    "a source may emit updates, and perhaps only one of the sinks needs the row before an update: "
    "Flink then stores the rows of the source again for that sink only"
)


_ALIKE = ({Known.YES}, {Known.NO})


_GUARANTEES = ("sink.delivery-guarantee", "sink.semantic")


def connector_verdict(pair: PipelinePair) -> Verdict | None:
    """The effect of another sink connector on a restore."""
    names = sinks.connectors(pair)
    if names[0] == names[1]:
        return None
    # A writer that stores no row under its options is still named in a savepoint, and then finds no operator.
    old, new = registry.sink(names[0]), _as_declared(names[1], sinks.tables(pair)[1])
    if names[0] is None or old.state is SinkState.NOT_KNOWN:
        return unknown(f"{sinks.only_the_sink(names[0])}: its state may find no operator in a different sink")
    if new.state is SinkState.NONE and names[0] in TAKEN_AWAY:
        return refused_at_submit(
            *TAKEN_AWAY[names[0]], note=f"the state of sink {names[0]} no longer finds an operator"
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
    """Facts about a sink with the options of its table, some of which make it stateless."""
    facts = registry.sink(connector)
    return facts if table is None else replace(facts, state=facts.state_with(dict(table.options)))


def _between_stateful(pair: PipelinePair, names: tuple[str | None, str | None]) -> Verdict:
    """Verdict from one sink with state to another: rows in flight are lost, unless there can be none."""
    table = sinks.tables(pair)[0]
    guarantees = {table.option(key) for key in _GUARANTEES} if table is not None else {"exactly-once"}
    if names == ("kafka", "filesystem") and "exactly-once" not in guarantees:
        return right(*KAFKA_TO_FILES) if at_parallelism_one(pair) else _UNCHAINED
    if names == ("filesystem", "kafka"):
        return unknown("rows in unfinished files are lost; without such files a restore was correct")
    return unknown(f"restoring the state of sink {names[0]} into sink {names[1]} was not measured")


def _sinks_append(pair: PipelinePair) -> bool:
    """Return whether the results of both sides only append."""
    return all(appends(output.segment) for output in (pair.old, pair.new)) and sources_append(pair)


def sources_append(pair: PipelinePair) -> bool:
    """Return whether the tables that are read surely only append, on both sides."""
    sides = ((pair.old, pair.old_program), (pair.new, pair.new_program))
    read = ((each, program) for output, program in sides for each in segments(output))
    return all(appends_only(each, program) for each, program in read if isinstance(each.origin, Source))


def _planned(pair: PipelinePair, old: SinkFacts, new: SinkFacts) -> str:
    """Reason why Flink may plan something else before the new sink, or nothing; "" if it surely does not."""
    if reason := sinks.front_stays(pair):
        return reason
    table = sinks.tables(pair)[1]
    if table is not None and (table.option("auto-compaction") or "").lower() == "true":
        return "operators that compact files read their stored state at a restore, and there is none"
    projected = all(map(surely_projected, (pair.old, pair.new)))
    if new.state is not SinkState.NOT_KNOWN and new.operators is None and not projected:
        only = sinks.only_the_sink(sinks.connectors(pair)[1])
        return f"{only}: it may plan additional operators, and it is unknown which operators are chained to them"
    if sinks.shares_its_job(pair) and old.operators != new.operators:
        return "a different number of sink operators renumbers the operators of the statement set's other queries"
    if pair.operators and sinks.shares_its_job(pair) and not projected:
        return "several sinks follow one operator: its id depends on how many are chained to it"
    if new.updates is Known.YES or table is None:
        return ""
    top = pair.new.segment.origin
    keyed = isinstance(top, AggregateOperator) and top.kind == AggregateKind.GROUP
    if table.primary_key:
        return "" if keyed else "Flink 2.3 requires ON CONFLICT if the sink's primary key is not the key of the results"
    return "" if _sinks_append(pair) else "the sink may not accept updates without a primary key"


_ICEBERG = "iceberg"


RECOMMITTED = expected(
    "IcebergFilesCommitter, IcebergCommitter (1.10): files in the savepoint are committed again, into "
    "the new table, whose history does not know their job",
    Consequence.SILENTLY_WRONG,
)


def another_table(pair: PipelinePair, change: Change) -> Verdict | None:
    """Verdict on a restore that writes to another table of the same Iceberg catalog."""
    names = [name.split(".") for name in (pair.old.sink, pair.new.sink)]
    if any(len(parts) != 3 or "`" in "".join(parts) for parts in names) or names[0][0] != names[1][0]:
        return None
    old, new = (_catalogs(side).get(names[0][0]) for side in (change.old, change.new))
    return RECOMMITTED if old is not None and old == new and old.get("type") == _ICEBERG else None


def _catalogs(side: Side) -> Mapping[str, Mapping[str, str]]:
    """The options of every catalog that a script creates."""
    created = (node for statement in side.parsed.statements for node in statement.nodes[:1])
    return {
        node.this.name: dict(options(node.args.get("options")))
        for node in created
        if isinstance(node, nodes.CreateNamespace) and node.args["kind"] == "CATALOG"
    }
