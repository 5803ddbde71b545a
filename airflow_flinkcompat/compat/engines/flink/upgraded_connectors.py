"""The effect of an upgrade on connectors, whose own jar reads their state.

A connector needs a release for the new line, and this release must read the state that an earlier release stored. Both
facts come from measured restores or from the catalogue of connectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.engines.flink import lookups
from airflow_flinkcompat.compat.evidence import RIGHT, upgrades
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import PART_OF_FLINK, ConnectorFacts, SinkState, SourceState, TableUse
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, last_name
from airflow_flinkcompat.exec_graph.from_compiled import QUERY_SINK, lookups_of, sinks_of, sources_of
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.plan.catalog import options
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import Source, operators, segments
from airflow_flinkcompat.plan.program import Program
from airflow_flinkcompat.sql.nodes import CreateNamespace

UNKNOWN_PART = "not known: "
"""The prefix of rows about parts that were not parsed, are not declared, or have an unknown type."""
_OF_FLINK = "datagen"
_ENDED = (SourceState.NOTHING, SourceState.ENDED)
"""Sources without stored positions; Flink itself stores the mark of a source that has read everything."""


@dataclass(frozen=True)
class ConnectorEffect:
    """The effect of an upgrade on a connector that a job uses.

    Attributes:
        table: The table; several of its declarations may exist.
        connector: The connector; "" if no statement names it. The connector is then assumed to read its state.
        effect: ``RIGHT``, ``REFUSED_AT_SUBMIT`` without a release for the new line, or ``UNKNOWN``.
        message: A sentence about the cause.
        row: The row of ``upgrades.json`` with the measured restores; "" without state or without restores.
        release: The release for the new line that replaces the present jar; "" if the present jar may stay.
    """

    table: str
    use: TableUse
    connector: str
    effect: RestoreEffect
    message: str = ""
    row: str = ""
    release: str = ""

    @property
    def name(self) -> str:
        """The use, the table and the connector."""
        return f"{self.table} ({self.use.value}{f', {self.connector}' if self.connector else ''})"


def connectors_of(side: Side) -> frozenset[str]:
    """Rows of ``upgrades.json`` for connectors with state, which the connector's jar restores.

    There is no row for datagen, which is part of Flink.
    """
    found, program = set(), side.program
    for output in side.outputs[0].values():
        every = operators(output)
        looked_up = {id(each.segments[1]) for each in every if lookups.is_lookup(each)}
        found |= {
            row
            for segment in segments(output)
            if isinstance(segment.origin, Source) and id(segment) not in looked_up
            for row in _rows(segment.origin.table, TableUse.SOURCE, program)
        }
        found |= set(_rows(output.sink, TableUse.SINK, program))
    return frozenset(found)


def _rows(name: str, use: TableUse, program: Program) -> Iterator[str]:
    found = program.table(name)
    if found is None or not found.declared:
        if name:
            yield f"{UNKNOWN_PART}table {name}, which is not declared"
        return
    row = _row(found, use)
    if row is not None:
        yield row or f"{UNKNOWN_PART}connector of table {name}"


def _row(table: Table, use: TableUse) -> str | None:
    """The row of ``upgrades.json`` for a table's connector; "" without a connector, None without state."""
    connector = table.option("connector") or ""
    if use is TableUse.SOURCE:
        if connector == _OF_FLINK or registry.source(connector).positions is SourceState.NOTHING:
            return None
        return f"source: {connector}" if connector else ""
    facts = registry.sink(connector)
    if facts.state is SinkState.NONE and facts.operators == 1:
        return None
    guarantee = (table.option("sink.delivery-guarantee") or "").lower()
    exact = ", exactly once" if guarantee == "exactly-once" else ""
    compacted = ", compacted" if _is_compacted(table) else ""
    files = f" of {table.option('format')}{compacted}" if connector == "filesystem" else ""
    return f"sink: {connector}{files}{exact}" if connector else ""


def _is_compacted(table: Table) -> bool:
    return (table.option("auto-compaction") or "").lower() == "true"


def restored_connectors() -> frozenset[str]:
    """Connectors whose state was restored on a different line of Flink; only the connector's jar matters."""
    every = (each for run in upgrades().values() for each in run.values() if each.outcome == RIGHT)
    return frozenset(row for each in every for row in each.stored if row.startswith(("source: ", "sink: ")))


def connector_effects(change: Change, plans: Iterable[CompiledPlan]) -> tuple[ConnectorEffect, ...]:
    """The effect of an upgrade on every table that the new job uses, by the plans of the new side.

    Without a plan, the tables of the queries count.
    """
    every, catalogs = list(plans), _catalogs(change.new)
    found = [(name, TableUse.SOURCE) for name in sources_of(every)]
    found += [(name, TableUse.LOOKUP) for name in lookups_of(every)]
    found += [(name, TableUse.SINK) for plan in every for name in sinks_of(plan)]
    if not every:
        sinks = {pipeline.sink.name for pipeline in change.new.program.pipelines}
        used = sorted(change.new.program.used_tables)
        found = [(name, TableUse.SINK if name in sinks else TableUse.SOURCE) for name in used if name]
    return tuple(_effect(name, use, change, catalogs) for name, use in dict.fromkeys(found) if QUERY_SINK not in name)


def _catalogs(side: Side) -> Mapping[str, str]:
    """The connector of all tables of a catalog, by name of the catalog that the script creates."""
    trees = (each.tree for each in side.parsed.statements)
    created = (tree for tree in trees if isinstance(tree, CreateNamespace) and tree.args["kind"] == "CATALOG")
    types = ((tree.this.name, dict(options(tree.args.get("options"))).get("type", "")) for tree in created)
    return {name: kind for name, kind in types if kind in registry.catalogue()}


def _effect(identifier: str, use: TableUse, change: Change, catalogs: Mapping[str, str]) -> ConnectorEffect:
    name = last_name(identifier)
    of_catalog = catalogs.get(identifier.split("`")[1] if identifier.startswith("`") else "", "")
    declared = [each for each in change.new.program.tables if each.path[2] == name and each.declared]
    tables: list[Table | None] = [*declared] or [None]
    found = [_judged(name, use, table, _connector(table) or of_catalog, change) for table in tables]
    return min(found, key=lambda each: tuple(RestoreEffect).index(each.effect))


def _connector(table: Table | None) -> str:
    return "" if table is None else table.option("connector") or ""


def _judged(name: str, use: TableUse, table: Table | None, connector: str, change: Change) -> ConnectorEffect:
    if not connector:
        return ConnectorEffect(name, use, "", RestoreEffect.RIGHT, "no statement names the connector of this table")
    old, new = change.versions
    facts, release = registry.catalogue().get(connector, ConnectorFacts((connector,))), ""
    if old.startswith("1.") and not new.startswith("1."):
        if use in facts.not_on_flink_2:
            message = f"no release of the connector {connector} runs on Flink {new} ({facts.releases})"
            return ConnectorEffect(name, use, connector, RestoreEffect.REFUSED_AT_SUBMIT, message)
        if not facts.releases:
            message = f"no release of the connector {connector} of table {name} is known for Flink {new}"
            return ConnectorEffect(name, use, connector, RestoreEffect.UNKNOWN, message)
        release = "" if facts.releases == PART_OF_FLINK else facts.releases
    row = "" if table is None else _row(table, use) or ""
    if row in restored_connectors():
        return ConnectorEffect(name, use, connector, RestoreEffect.RIGHT, row=row, release=release)
    compacted = table is not None and _is_compacted(table)
    if (facts.reads_older_state and not compacted) or _is_without_state(connector, use, table):
        return ConnectorEffect(name, use, connector, RestoreEffect.RIGHT, release=release)
    return ConnectorEffect(
        name, use, connector, RestoreEffect.UNKNOWN,
        f"the state of the connector {connector} of table {name} was not measured between lines of Flink",
    )  # fmt: skip


def _is_without_state(connector: str, use: TableUse, table: Table | None) -> bool:
    match use:
        case TableUse.SOURCE:
            return connector == _OF_FLINK or registry.source(connector).positions in _ENDED
        case TableUse.SINK:
            facts = registry.sink(connector)
            given = {} if table is None else dict(table.options)
            return facts.state_with(given) is SinkState.NONE
    return registry.catalogue().get(connector) is not None  # the exec graph shows the state of a lookup
