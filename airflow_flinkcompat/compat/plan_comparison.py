"""Two scripts with compiled plans: the diff of the jobs, and the state that a migration keeps."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from importlib.resources import files

from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.engines.flink.settings import zone_matters
from airflow_flinkcompat.compat.engines.flink.sinks import at_own_parallelism, chained
from airflow_flinkcompat.compat.evidence import lines_restored_right
from airflow_flinkcompat.compat.rule_builders.option_matches import judge_options
from airflow_flinkcompat.compat.rule_builders.table_options import uses_of
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.connectors.facts import ColumnIdentity, OptionEffect, SinkState, TableUse
from airflow_flinkcompat.connectors.registry import column_identity, option, sink
from airflow_flinkcompat.exec_graph.diff import diff_jobs
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, PlanError, last_name, read_plan
from airflow_flinkcompat.exec_graph.from_compiled import (
    QUERY_SINK,
    JobSettings,
    PlanFacts,
    job_graphs,
    sinks_of,
    sources_of,
)
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.migration import Accept, DdlEffects, Migration, migration
from airflow_flinkcompat.exec_graph.model import ExecGraph, Restore, RestoreEffect, StateEffect, StateKind, StateSpec
from airflow_flinkcompat.exec_graph.prediction import Prediction
from airflow_flinkcompat.exec_graph.stand_ins import IdsByStandIns, stand_in_ids
from airflow_flinkcompat.exec_graph.written_columns import ChangedColumns, SinkPath, changed_columns
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.model import InputError, Outcome
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import sources

Plans = tuple[Sequence[CompiledPlan], Sequence[CompiledPlan]]
"""The compiled plans of the old side and of the new side, one plan for each job."""


class UnknownPlan(InputError):
    """Raised for a compiled plan in a format that no measured version of Flink writes."""


@dataclass(frozen=True)
class SourceOverrides:
    """Overrides for the stored positions of sources, by table name.

    Attributes:
        restarted: Sources that do not resume from their stored positions.
        renamed: The old name of a renamed source by its new name.
    """

    restarted: Collection[str] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)


def migrations(
    old: Side, new: Side, plans: Plans, asked: SourceOverrides | None = None, accepted: Collection[Accept] = ()
) -> tuple[Migration, ...]:
    """State that a rewritten savepoint can keep, for each job."""
    return ComparedPlans(Change(old, new), plans, asked or SourceOverrides(), accepted).migrations


def stand_ins(old: Side, new: Side, plans: Plans) -> tuple[IdsByStandIns, IdsByStandIns]:
    """The operator ids of the only job of each script, with stand-ins for its sinks."""
    return ComparedPlans(Change(old, new), plans).stand_ins


def require_one_job(what: str, plans: Iterable[Sequence[object]]) -> None:
    """Raise InputError unless each side has exactly one job; ``what`` begins the message."""
    if any(len(each) != 1 for each in plans):
        raise InputError(
            f"{what} the savepoint of one job: put the INSERTs of each script into one statement set, "
            "or pass scripts with one job each"
        )


def example_plans(code: str) -> Plans | None:
    """The compiled plans of a rule's example; None if the example needs no plans."""
    file = files("airflow_flinkcompat.exec_graph").joinpath("examples.json")
    examples = json.loads(file.read_text(encoding="utf-8"))
    if code not in examples:
        return None
    old, new = (read_plan(json.dumps(plan)) for plan in examples[code])
    return (old,), (new,)


def _identified(names: Set[str], every: Iterable[str]) -> frozenset[str]:
    """The identifiers in a plan whose table name is in ``names``."""
    return frozenset(identifier for identifier in every if last_name(identifier) in names)


def positions(state: ExecGraph) -> list[StateSpec]:
    """The states of a job that store source positions."""
    return [spec for spec in state.specs if spec.kind is StateKind.POSITIONS]


def _require(wanted: Iterable[str], sources: Iterable[str]) -> None:
    """Raise InputError for a table that is not a source."""
    known = sorted({last_name(name) for name in sources})
    if unknown := sorted(set(wanted) - set(known)):
        raise InputError(
            f"no source is named {', '.join(unknown)}; choose from the sources that store positions: "
            f"{', '.join(known) or 'none'}"
        )


_ANOTHER_ZONE = "table.local-time-zone changed, but stored values were computed in the old zone"
_FIRST_ROWS = "if it keeps the first row by event time, the lines of Flink store the known keys differently"
_FIRES_OTHERWISE = "if its windows fire early or late, it also stores results, but plans do not show this state"
_STAYS = (
    OptionEffect.TUNES,
    OptionEffect.STARTUP,
    OptionEffect.CREDENTIALS,
    OptionEffect.DECODING,
    OptionEffect.IGNORED,
)
"""Effects of source options that do not invalidate stored positions."""


def _changed_keys(before: Iterable[tuple[str, str]], after: Iterable[tuple[str, str]]) -> list[str]:
    old, new = dict(before), dict(after)
    return sorted(key for key in {*old, *new} if old.get(key) != new.get(key))


def _reads_same_data(before: Table, after: Table, key: str) -> bool:
    """True if a source reads the same data with a changed option."""
    fact = option(after.option("connector"), TableUse.SOURCE, key) if key != "connector" else None
    if fact is None:
        return False
    if fact.effect is OptionEffect.ADDRESS:  # lists with a common broker name one cluster
        return bool(set.intersection(*(set((each.option(key) or "").split(",")) for each in (before, after))) - {""})
    return fact.effect in _STAYS


def sinks_elsewhere(change: Change) -> Set[str]:
    """Sink tables whose savepoint state may belong to a different external table."""
    old, new = ({last_name(table.name): table for table in program.tables} for program in change.programs)
    found = set()
    for name in old.keys() & new.keys():
        before, after = old[name], new[name]
        uses = [use for use in uses_of(change, after.name) if use.use is TableUse.SINK]
        if before.options != after.options and uses and before.option("connector") == after.option("connector"):
            options = dict(before.options), dict(after.options)
            judged = judge_options(after.name, after.option("connector"), *options, uses)
            if judged is not None and judged.verdict.outcome is not Outcome.COMPATIBLE:
                found.add(name)
    return found


@dataclass(frozen=True)
class ComparedPlans:
    """A change with the compiled plans of both sides."""

    change: Change
    plans: Plans
    asked: SourceOverrides = field(default_factory=SourceOverrides)
    accepted: Collection[Accept] = ()
    prediction: Prediction | None = None

    @cached_property
    def jobs(self) -> tuple[tuple[ExecGraph, ExecGraph], ...]:
        """The old and the new exec graph of each job.

        Raises :class:`UnknownPlan`.
        """
        facts = PlanFacts(
            self._sinks(_are_stateless),
            self._column_independent_sinks,
            self._column_identities,
            self._renamed(),
            self._unknown_lookups,
            self._job_settings,
        )
        try:
            return job_graphs(*self.plans, facts)
        except PlanError as error:
            raise UnknownPlan(str(error)) from None

    @cached_property
    def restore(self) -> Restore:
        """Effects of a restore by the compiled plans and by measured restores on this line of Flink.

        Raises :class:`UnknownPlan`.
        """
        restored = self.prediction is not None and self.prediction.refusal is None
        old, new = map(len, self.plans)
        found = diff_jobs(self.jobs, (old, new), restored=restored)
        return Restore(tuple(map(self._by_evidence, found.states)))

    def _by_evidence(self, state: StateEffect) -> StateEffect:
        old, new = self.change.versions
        right = not {new, f"{old} to {new}"}.isdisjoint(lines_restored_right(state.evidence))
        return replace(state, effect=RestoreEffect.RIGHT) if right else state

    @property
    def changed_columns(self) -> Mapping[SinkPath, ChangedColumns]:
        """The columns that the change names, for each sink that both scripts write.

        Raises :class:`UnknownPlan`.
        """
        try:
            return changed_columns(*self.plans, self._column_identities)
        except PlanError as error:
            raise UnknownPlan(str(error)) from None

    @property
    def _unknown_lookups(self) -> frozenset[str]:
        """Table identifiers of lookups that may be asynchronous."""
        lookups = () if self.prediction is None else self.prediction.lookups
        return frozenset(".".join(f"`{part}`" for part in name.split(".")) for name in lookups)

    @property
    def _column_independent_sinks(self) -> frozenset[str]:
        return self._sinks(lambda found: all(sink(each).state_survives_columns for each in found))

    @property
    def migrations(self) -> tuple[Migration, ...]:
        """State that a rewritten savepoint can keep, for each job that both scripts contain.

        Raises :class:`UnknownPlan`.
        """
        sources = [
            (spec.name, next((each.name for each in positions(old) if each.meaning == spec.meaning), None))
            for old, new in self.jobs
            for spec in positions(new)
        ]
        _require(self.asked.restarted, [name for name, _ in sources])
        declared = DdlEffects(
            column_independent_sinks=self._column_independent_sinks,
            replaced=self._sinks(lambda found: len(found) > 1) | self._sinks_named(sinks_elsewhere(self.change)),
            moved={new: why for new, old in sources if old and (why := self._moved(old, new))},
            restarted=frozenset(name for name, _ in sources if last_name(name) in self.asked.restarted),
            converted=_ANOTHER_ZONE if zone_matters(self.change) else "",
            stored_otherwise=self._hidden_state,
        )
        return tuple(migration(old, new, declared, self.accepted) for old, new in self.jobs)

    @property
    def stand_ins(self) -> tuple[IdsByStandIns, IdsByStandIns]:
        """The operator ids of the only job of each script, with stand-ins for its sinks.

        Raises :class:`UnknownPlan`.
        """
        stateless, printing = self._sinks(_are_stateless), self._sinks(lambda found: found == {"print"})
        try:
            old, new = (
                stand_in_ids(plan, stateless, printing, settings)
                for (plan,), settings in zip(self.plans, self._job_settings, strict=True)
            )
        except PlanError as error:
            raise UnknownPlan(str(error)) from None
        return old, new

    def _renamed(self) -> Mapping[str, str]:
        """The old identifier of each renamed source, by its new identifier."""
        old, new = (sources_of(side) for side in self.plans)
        _require(self.asked.renamed.values(), old)
        _require(self.asked.renamed, new)
        by_name = {last_name(name): name for name in old}
        return {
            name: by_name[self.asked.renamed[last_name(name)]] for name in new if last_name(name) in self.asked.renamed
        }

    def _moved(self, stored: str, read: str) -> str:
        """Reason why stored positions may belong to a different table; "" if they do not."""
        before, after = last_name(stored), last_name(read)
        names = before, after
        old, new = (
            [each for each in side.tables if last_name(each.name) == name]
            for side, name in zip(self.change.programs, names, strict=True)
        )
        ways = f"restart it with --restart-source {after}, or in a DAG with source-moved in check.accept"
        if stored != read and not (old and new) and self.asked.renamed.get(after) != before:
            same = f"if it is the same table, pass --source-renamed {before}={after}"
            return f"it has a different name than {before if before != after else stored}; {same}, or {ways}"
        if self._hints_differ(after):
            return f"a changed hint may change the data that is read; {ways}"
        if len(old) != len(new) or len(old) > 1:
            return "" if old == new else f"its declaration changed; {ways}"
        for one, other in zip(old, new, strict=True):
            changed = _changed_keys(one.options, other.options)
            if moved := [key for key in changed if not _reads_same_data(one, other, key)]:
                return (
                    f"{', '.join(moved)} changed, so it may read different data, and the stored positions belong to "
                    f"the old data; {ways}"
                )
        return ""

    def _hints_differ(self, table: str) -> bool:
        """True if both scripts read a table, but with different hints."""
        old, new = (
            {source.hints for each in side for source in sources(each) if last_name(source.table) == table}
            for side in zip(*((pair.old, pair.new) for pair in self.change.pipelines), strict=True)
        )
        return bool(old and new) and old != new

    @cached_property
    def _column_identities(self) -> Mapping[str, ColumnIdentity]:
        """The identity of columns in the state of each source, by the source's identifier in plans."""
        identities: dict[str, set[ColumnIdentity]] = {}
        for program in self.change.programs:
            for table in program.tables:
                identity = column_identity(dict(table.options), partitioned=bool(table.partitioned_by))
                identities.setdefault(last_name(table.name), set()).add(identity)
        every = {identifier for side in self.plans for identifier in sources_of(side)}
        found = {identifier: identities.get(last_name(identifier), {ColumnIdentity.NAME}) for identifier in every}
        return {name: next(iter(each)) if len(each) == 1 else ColumnIdentity.BOTH for name, each in found.items()}

    @property
    def _hidden_state(self) -> Mapping[str, str]:
        """Exec kinds with state that plans do not show, or whose format depends on the Flink line."""
        found: dict[str, str] = {}
        pipelines = (each for program in self.change.programs for each in program.pipelines)
        if any(map(settings.effective_emit_settings, pipelines)):
            found[ExecKind.GROUP_WINDOW_AGGREGATE] = _FIRES_OTHERWISE
        nodes = [
            node for plans in self.plans for plan in plans for node in plan.nodes if node.kind is ExecKind.DEDUPLICATE
        ]
        if self.change.old.version != self.change.new.version and any(
            node.config.get("isRowtime") and not node.config.get("keepLastRow") for node in nodes
        ):
            found[ExecKind.DEDUPLICATE] = _FIRST_ROWS  # 1.20 and 2.3 store the keys differently (measured)
        return found

    @property
    def _job_settings(self) -> tuple[JobSettings, JobSettings]:
        """The settings of both sides that plans do not show."""
        old, new = (
            JobSettings(
                chained(program),
                _identified(
                    at_own_parallelism(program),
                    {*sources_of(plans), *(name for plan in plans for name in sinks_of(plan))},
                ),
                settings.state_expires(program),
            )
            for program, plans in zip(self.change.programs, self.plans, strict=True)
        )
        return old, new

    def _sinks(self, wanted: Callable[[Set[str | None]], bool]) -> frozenset[str]:
        """Identifiers of the sinks whose connectors on both sides, as one set, satisfy ``wanted``."""
        connectors: dict[str, set[str | None]] = {QUERY_SINK: {"blackhole"}}
        for program in self.change.programs:
            for table in program.tables:
                connectors.setdefault(last_name(table.name), set()).add(table.option("connector"))
        return self._sinks_named({name for name, found in connectors.items() if wanted(found)})

    def _sinks_named(self, names: Set[str]) -> frozenset[str]:
        """The identifiers of these sinks in the plans."""
        return _identified(names, (identifier for side in self.plans for plan in side for identifier in sinks_of(plan)))


def _are_stateless(connectors: Set[str | None]) -> bool:
    """True if each connector writes with a single, stateless operator."""
    return all((found := sink(each)).state is SinkState.NONE and found.operators == 1 for each in connectors)
