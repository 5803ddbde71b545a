"""Verdict on an upgrade of Flink, by the planners of both versions and the catalogue of connectors.

A connector's own jar reads its state. So the connector needs a release for the new version, and this release must read
the state that an earlier release stored. The catalogue of connectors contains both facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.compat.verdict import Verdict, expected, inferred, unknown
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import PART_OF_FLINK, ConnectorFacts, SinkState, SourceState, TableUse
from airflow_flinkcompat.connectors.flink_options import current_name, is_declared, is_read
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, last_name
from airflow_flinkcompat.exec_graph.from_compiled import QUERY_SINK, lookups_of, sinks_of, sources_of
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateEffect
from airflow_flinkcompat.exec_graph.prediction import Prediction
from airflow_flinkcompat.model import Consequence, Outcome, Reason
from airflow_flinkcompat.model.engine import line_numbers
from airflow_flinkcompat.plan.catalog import options
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.sql import Statement
from airflow_flinkcompat.sql.nodes import CreateNamespace, SetOption

_OF_FLINK = "datagen"
_ENDED = (SourceState.NOTHING, SourceState.ENDED)
"""Sources without stored positions; Flink itself stores the mark of a source that has read everything."""
UPGRADE_FIRST = "upgrade the unchanged script first, and change the script afterwards"
"""A remedy if the planners do not decide on a change together with an upgrade."""
_PLANNED = "plans of both lines, and a dry restore"


@dataclass(frozen=True)
class Judged:
    """A sentence and a verdict on an upgrade.

    Attributes:
        message: The sentence.
        verdict: The outcome with its grounds.
        refused: True if the new version refuses the job even without state.
        conditional: True if the upgrade is compatible on a condition, which the sentence names.
    """

    message: str
    verdict: Verdict
    refused: bool = False
    conditional: bool = False


@dataclass(frozen=True)
class ConnectorEffect:
    """The effect of an upgrade on a connector that a job uses.

    Attributes:
        table: The table; several of its declarations may exist.
        connector: The connector; "" if no statement names it. The connector is then assumed to read its state.
        effect: ``RIGHT``, ``REFUSED_AT_SUBMIT`` without a release for the new line, or ``UNKNOWN``.
        message: A sentence about the cause.
        release: The release for the new line that replaces the present jar; "" if the present jar may stay.
    """

    table: str
    use: TableUse
    connector: str
    effect: RestoreEffect
    message: str = ""
    release: str = ""

    @property
    def name(self) -> str:
        """The use, the table and the connector."""
        return f"{self.table} ({self.use.value}{f', {self.connector}' if self.connector else ''})"


def _is_compacted(table: Table) -> bool:
    return (table.option("auto-compaction") or "").lower() == "true"


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
            declared = {} if table is None else dict(table.options)
            return facts.state_with(declared) is SinkState.NONE
    return registry.catalogue().get(connector) is not None  # the exec graph shows the state of a lookup


def replaced_settings(side: Side, old: str, new: str) -> Iterator[tuple[Statement, str, str]]:
    """Yield each SET of a setting that only the old line reads, with its key and its new name or ""."""
    for statement in side.parsed.statements:
        tree = statement.tree
        if isinstance(tree, SetOption) and tree.this is not None and statement.placed:
            key = tree.this.name
            if is_read(key, old) and not is_read(key, new):
                name = current_name(key)
                yield statement, key, name if is_declared(name, new) else ""


def ignored_settings(side: Side, old: str, new: str) -> tuple[str, ...]:
    """Sentences about settings without a successor on the new line, which Flink ignores."""
    return tuple(
        f"{statement.span}: Flink {new} ignores the setting {key}, which it does not have"
        for statement, key, name in replaced_settings(side, old, new)
        if not name
    )


def refused_by_connectors(change: Change, connectors: Iterable[ConnectorEffect]) -> tuple[Judged, ...]:
    """Judge the connectors that have no release for the new line, with or without state."""
    listed = expected("the connector's list of releases")
    absent = dict.fromkeys(each.message for each in connectors if each.effect is RestoreEffect.REFUSED_AT_SUBMIT)
    return tuple(Judged(f"{lines_of(change)}: {each}", listed, refused=True) for each in absent)


def lines_of(change: Change) -> str:
    """The versions of both sides, as the beginning of a message."""
    return f"Flink {change.versions[0]} to {change.versions[1]}"


def judged_by_planners(
    change: Change,
    prediction: Prediction,
    compiled: Iterable[StateEffect],
    connectors: Sequence[ConnectorEffect],
) -> tuple[Judged, ...]:
    """Judge an upgrade by the jobs that both versions plan, without a refusal of a state by Flink.

    ``compiled`` are the effects by the compiled plans.
    """
    lines = lines_of(change)
    refused = refused_by_connectors(change, connectors)
    lost = prediction.restore.having(RestoreEffect.DROPPED)
    if refused or lost:
        dropped = expected(_PLANNED, Consequence.SILENTLY_WRONG)
        return (
            *refused,
            *(Judged(f"{lines}: {each.message}; {_BEGINS_EMPTY}", dropped) for each in lost),
        )
    doubts = [each.message or each.operator for each in (*prediction.restore.differences, *compiled)]
    doubts += [*prediction.contradicted]
    untried = [each for each in connectors if each.effect is RestoreEffect.UNKNOWN]
    if doubts:
        doubts += [each.message for each in untried]
        return (_unknown(f"{lines}: {'; '.join(dict.fromkeys(doubts))}"),)
    planned = "the new line plans the same operators and reads the state of each"
    old, new = map(line_numbers, (change.old.version, change.new.version))
    if new < old:
        return (_unknown(f"{lines}: {planned}; no restore on an older line was measured"),)
    if untried:
        verdict = unknown("the connector's release for the new line decides", Reason.VERSION)
        return tuple(Judged(f"{lines}: {_condition(each, change)}", verdict, conditional=True) for each in untried)
    assumed = sorted({each.table for each in connectors if not each.connector})
    words = f"; assumed for tables without a declared connector: the new line reads its state ({', '.join(assumed)})"
    jars = sorted({f"{each.connector} ({each.release})" for each in connectors if each.release})
    also = f"; replace the jars of these connectors: {', '.join(jars)}"
    message = f"{lines}: {planned}{words if assumed else ''}{also if jars else ''}"
    return (Judged(message, inferred(Outcome.COMPATIBLE, _PLANNED)),)


_BEGINS_EMPTY = "start without state, or accept that this operator begins empty"


def _condition(each: ConnectorEffect, change: Change) -> str:
    old, new = change.versions
    return (
        f"compatible if the connector {each.connector} of table {each.table} has a release for Flink {new} that reads "
        f"the state of its release for Flink {old}: {each.message}"
    )


def _unknown(message: str) -> Judged:
    return Judged(message, unknown(_PLANNED, Reason.VERSION))
