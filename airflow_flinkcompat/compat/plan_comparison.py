"""What Flink's own planner says of a change, where its compiled plans of both sides are at hand.

It may make an outcome worse. It makes one ``compatible`` only where chain, layout and meaning of everything that keeps
state are equal, or differ as in restores that ended right, and where what the rules doubt shows at all. Compiled plans
alone settle what is unknown about queries. Where the jobs themselves are known, they also decide over what the rules
call incompatible, over columns of tables, INSERTs of one job, settings of the optimizer, and sinks that keep nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.respelling import may_be_same_query
from airflow_flinkcompat.compat.changes.table_use import uses_of
from airflow_flinkcompat.compat.engines.flink import emission
from airflow_flinkcompat.compat.engines.flink.restores import STATELESS_SINKS
from airflow_flinkcompat.compat.engines.flink.settings import zone_matters
from airflow_flinkcompat.compat.engines.flink.sinks import at_own_parallelism, chained
from airflow_flinkcompat.compat.evidence import lines_restored_right
from airflow_flinkcompat.compat.report import REFUSALS, Finding
from airflow_flinkcompat.compat.rule import Example, PlanCover, Remedy, Rule, RuleScope, Verdict, inferred, measured
from airflow_flinkcompat.compat.rule_builders.examples import windowed
from airflow_flinkcompat.compat.rule_builders.options.matches import options_judged
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.connectors.facts import ColumnIdentity, OptionEffect, SinkState, TableUse
from airflow_flinkcompat.connectors.formats import column_identity
from airflow_flinkcompat.connectors.registry import option, sink
from airflow_flinkcompat.exec_graph.compare import (
    CHAIN,
    QUERY_SINK,
    PlanDifference,
    compare_plans,
    job_states,
    sinks_of,
    sources_of,
)
from airflow_flinkcompat.exec_graph.compiled import Aspect, CompiledPlan, PlanError, read_plan
from airflow_flinkcompat.exec_graph.from_compiled import JobSettings
from airflow_flinkcompat.exec_graph.migration import Accept, DdlEffects, Migration, migration
from airflow_flinkcompat.exec_graph.model import JobState, StateKind, StateSpec
from airflow_flinkcompat.exec_graph.prediction import Prediction
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.model import Consequence, InputError, Outcome, Reason
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import Output, sources

Plans = tuple[Sequence[CompiledPlan], Sequence[CompiledPlan]]
"""The compiled plans of the old and of the new side, a plan for each job."""

_SOURCE = "compiled plans of these and other restores"
CONSEQUENCES = {
    Aspect.CHAIN: Consequence.REFUSED_AT_SUBMIT,
    Aspect.LAYOUT: Consequence.REFUSED_AT_RESTORE,
    Aspect.MEANING: Consequence.SILENTLY_WRONG,
}
_WORDS = {
    Aspect.CHAIN: "other operators lead to it",
    Aspect.LAYOUT: "its state is laid out otherwise",
    Aspect.MEANING: "its state means something else",
    Aspect.OTHER: "it is not known whether that matters to state",
}
_RESPELLED = "its expressions are compiled otherwise, and may be two spellings of one"
_NOT_RESTORED = inferred(Outcome.UNKNOWN, "no restore shows what becomes of state under another spelling")

DIFFERS = Rule(
    code="plan-differs",
    title="Flink plans another job",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "plans tell of open-source Flink only"),
        "flink": measured(Outcome.INCOMPATIBLE, "w-add-agg", "w-size-1to2-ws", "w-filter-nonwindow-add", note=_SOURCE),
    },
    rationale="Flink's planner plans both scripts. Other operators up to one that keeps state are refused at submit, "
    "another layout of its state at restore, another meaning of it runs with wrong rows.",
    example=Example(windowed("customer, SUM(amount)"), windowed("customer, MAX(amount)")),
    find=lambda change: (),
    not_applicable=("vvr",),
)
EQUAL = Rule(
    code="plan-equal",
    title="Flink plans the same state",
    scope=RuleScope.SCRIPT,
    verdicts={
        "vvr": inferred(Outcome.UNKNOWN, "plans tell of open-source Flink only"),
        "flink": measured(
            Outcome.COMPATIBLE, "w-unchanged", "x-view-rename", "x-inline-view", "w-interval-spelling", note=_SOURCE
        ),
    },
    rationale="Flink's planner compiles both scripts, and chain, layout and meaning of all state are equal, or differ "
    "as in restores that ended right. That decides over what shows in a plan: options of tables and functions do not.",
    example=Example(windowed("customer, SUM(amount)"), windowed("customer, SUM(amount), window_start")),
    find=lambda change: (),
    not_applicable=("vvr",),
)
RULES = (DIFFERS, EQUAL)


class UnknownPlan(InputError):
    """A compiled plan is written in a way that no measured version of Flink writes."""


@dataclass(frozen=True)
class SourceOverrides:
    """What is asked for of sources, by the names of their tables.

    Attributes:
        restarted: Those that are to begin anew.
        renamed: By the new name of one its old name.
    """

    restarted: Collection[str] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)


def migrations(
    old: Side, new: Side, plans: Plans, asked: SourceOverrides | None = None, accepted: Collection[Accept] = ()
) -> tuple[Migration, ...]:
    """What of the state of each job a rewritten savepoint could keep.

    Args:
        old: What is deployed.
        new: What is proposed.
        plans: The compiled plans of both sides.
        asked: What is asked for of sources; None: nothing.
        accepted: What is done on request alone.

    Returns:
        One for each job that both sides have.

    Raises:
        InputError: A plan is not as the measured versions write it, or no job reads a source of which something is
            asked.
    """
    return ComparedPlans(Change(old, new), plans, asked or SourceOverrides(), accepted).migrations


def example_plans(code: str) -> Plans | None:
    """The compiled plans of a rule's example; None for a rule that asks for none."""
    file = files("airflow_flinkcompat.exec_graph").joinpath("examples.json")
    examples = json.loads(file.read_text(encoding="utf-8"))
    if code not in examples:
        return None
    old, new = (read_plan(json.dumps(plan)) for plan in examples[code])
    return (old,), (new,)


def _identified(names: Set[str], every: Iterable[str]) -> frozenset[str]:
    """Those of a plan's names of tables that end with one of these."""
    return frozenset(identifier for identifier in every if _last(identifier) in names)


def _positions(state: JobState) -> list[StateSpec]:
    return [spec for spec in state.specs if spec.kind is StateKind.POSITIONS]


def _require(wanted: Iterable[str], sources: Iterable[str]) -> None:
    """Raises InputError: something is asked of a table that is no source of that side."""
    known = sorted({_last(name) for name in sources})
    if unknown := sorted(set(wanted) - set(known)):
        raise InputError(
            f"no source is named {', '.join(unknown)}; sources that keep positions: {', '.join(known) or 'none'}"
        )


_ANOTHER_ZONE = "table.local-time-zone is another one, in which values that are stored were made"
_FIRST_ROWS = "where it keeps the first row by event time, each line of Flink stores which keys were seen otherwise"
_FIRES_OTHERWISE = "where its windows fire early or late it keeps results too, which plans do not tell"
_STAYS = (
    OptionEffect.TUNES,
    OptionEffect.STARTUP,
    OptionEffect.CREDENTIALS,
    OptionEffect.DECODING,
    OptionEffect.IGNORED,
)
"""What an option of a source may do so that stored positions are still its own."""


def _changed(before: Iterable[tuple[str, str]], after: Iterable[tuple[str, str]]) -> list[str]:
    old, new = dict(before), dict(after)
    return sorted(key for key in {*old, *new} if old.get(key) != new.get(key))


def _keeps_its_place(before: Table, after: Table, key: str) -> bool:
    """Whether a source reads the same place with another value of an option."""
    fact = option(after.option("connector"), TableUse.SOURCE, key) if key != "connector" else None
    if fact is None:
        return False
    if fact.effect is OptionEffect.ADDRESS:  # one of several brokers is enough to reach the same ones
        return bool(set.intersection(*(set((each.option(key) or "").split(",")) for each in (before, after))) - {""})
    return fact.effect in _STAYS


def sinks_elsewhere(change: Change) -> Set[str]:
    """Sink tables that may find in a savepoint what was begun at another place.

    Args:
        change: Both scripts.

    Returns:
        The names of the tables.
    """
    old, new = ({_last(table.name): table for table in program.tables} for program in change.programs)
    found = set()
    for name in old.keys() & new.keys():
        before, after = old[name], new[name]
        uses = [used for used in uses_of(change, after.name) if used.use is TableUse.SINK]
        if before.options != after.options and uses and before.option("connector") == after.option("connector"):
            options = dict(before.options), dict(after.options)
            judged = options_judged(after.name, after.option("connector"), *options, uses)
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
    def _found(self) -> tuple[PlanDifference, ...]:
        """Raises :class:`UnknownPlan`."""
        said = self.prediction
        try:
            return compare_plans(
                *self.plans,
                self._stateless_sinks,
                self._column_identities,
                self._column_independent_sinks,
                said is not None and said.consequence is None,
                self._waiting,
            )
        except PlanError as error:
            raise UnknownPlan(str(error)) from None

    @property
    def differences(self) -> tuple[PlanDifference, ...]:
        """What no restore on this line of Flink shows to be right.

        Raises :class:`UnknownPlan`.
        """
        return tuple(each for each in self._found if not self._restored_right(each))

    @property
    def seen(self) -> tuple[PlanDifference, ...]:
        """What differs as in restores that ended right."""
        return tuple(filter(self._restored_right, self._found))

    def _restored_right(self, difference: PlanDifference) -> bool:
        return self.change.new.version in lines_restored_right(difference.evidence)

    @property
    def _column_independent_sinks(self) -> frozenset[str]:
        return self._sinks(lambda found: all(sink(each).state_survives_columns for each in found))

    @property
    def migrations(self) -> tuple[Migration, ...]:
        """What of the state of each job that both sides have a rewritten savepoint could keep.

        Raises :class:`UnknownPlan`.
        """
        try:
            states = job_states(
                *self.plans,
                self._sinks(_keep_nothing),
                self._renamed(),
                self._column_identities,
                self._job_settings,
            )
        except PlanError as error:
            raise UnknownPlan(str(error)) from None
        sources = [
            (spec.name, next((each.name for each in _positions(old) if each.meaning == spec.meaning), None))
            for old, new in states
            for spec in _positions(new)
        ]
        _require(self.asked.restarted, [name for name, _ in sources])
        declared = DdlEffects(
            column_independent_sinks=self._column_independent_sinks,
            replaced=self._sinks(lambda found: len(found) > 1) | self._sinks_named(sinks_elsewhere(self.change)),
            moved={new: why for new, old in sources if old and (why := self._moved(old, new))},
            restarted=frozenset(name for name, _ in sources if _last(name) in self.asked.restarted),
            converted=_ANOTHER_ZONE if zone_matters(self.change) else "",
            stored_otherwise=self._stored_otherwise,
        )
        return tuple(migration(old, new, declared, self.accepted) for old, new in states)

    def _renamed(self) -> Mapping[str, str]:
        """By the new identifier of each source that got another name its old one."""
        old, new = (sources_of(side) for side in self.plans)
        _require(self.asked.renamed.values(), old)
        _require(self.asked.renamed, new)
        by_name = {_last(name): name for name in old}
        return {name: by_name[self.asked.renamed[_last(name)]] for name in new if _last(name) in self.asked.renamed}

    def _moved(self, stored: str, read: str) -> str:
        """Why positions that were stored of one table may not be those of another, "" where they are."""
        before, after = _last(stored), _last(read)
        names = before, after
        old, new = (
            [each for each in side.tables if _last(each.name) == name]
            for side, name in zip(self.change.programs, names, strict=True)
        )
        ways = f"begin it anew with --restart-source {after}, in a DAG with source-moved in check.accept"
        if stored != read and not (old and new) and self.asked.renamed.get(after) != before:
            same = f"where it is the same, say --source-renamed {before}={after}"
            return f"it is another table than {before if before != after else stored}; {same}, or {ways}"
        if self._hinted(after):
            return f"a hint changes what is read of it; {ways}"
        if len(old) != len(new) or len(old) > 1:
            return "" if old == new else f"its declaration is not the one of before; {ways}"
        for one, other in zip(old, new, strict=True):
            changed = _changed(one.options, other.options)
            if moved := [key for key in changed if not _keeps_its_place(one, other, key)]:
                return (
                    f"{', '.join(moved)} changed, so that it may read another place, and stored positions are those of "
                    f"the old one; {ways}"
                )
        return ""

    def _hinted(self, table: str) -> bool:
        """Return whether hints of a table that both scripts read differ."""
        old, new = (
            {source.hints for each in side for source in sources(each) if _last(source.table) == table}
            for side in zip(*((pair.old, pair.new) for pair in self.change.pipelines), strict=True)
        )
        return bool(old and new) and old != new

    @property
    def _stateless_sinks(self) -> frozenset[str]:
        return self._sinks(frozenset(STATELESS_SINKS).issuperset)

    @cached_property
    def _column_identities(self) -> Mapping[str, ColumnIdentity]:
        """What makes a column of each source the same one on both sides, by the plans' names of the sources."""
        told: dict[str, set[ColumnIdentity]] = {}
        for program in self.change.programs:
            for table in program.tables:
                identity = column_identity(dict(table.options), partitioned=bool(table.partitioned_by))
                told.setdefault(_last(table.name), set()).add(identity)
        every = {identifier for side in self.plans for identifier in sources_of(side)}
        found = {identifier: told.get(_last(identifier), {ColumnIdentity.NAME}) for identifier in every}
        return {name: next(iter(each)) if len(each) == 1 else ColumnIdentity.BOTH for name, each in found.items()}

    @property
    def _stored_otherwise(self) -> Mapping[str, str]:
        """Operators of which more is stored than plans tell, or by each line of Flink in its own way."""
        found = {}
        pipelines = (each for program in self.change.programs for each in program.pipelines)
        if any(map(emission.in_force, pipelines)):
            found["group-window-aggregate"] = _FIRES_OTHERWISE
        nodes = [node for plans in self.plans for plan in plans for node in plan.nodes if node.kind == "deduplicate"]
        if self.change.old.version != self.change.new.version and any(
            node.config.get("isRowtime") and not node.config.get("keepLastRow") for node in nodes
        ):
            found["deduplicate"] = _FIRST_ROWS  # measured between 1.20 and 2.3
        return found

    @property
    def _job_settings(self) -> tuple[JobSettings, JobSettings]:
        """The settings of either side that plans do not show."""
        old, new = (
            JobSettings(
                chained(program),
                _identified(
                    at_own_parallelism(program),
                    {*sources_of(plans), *(name for plan in plans for name in sinks_of(plan))},
                ),
                emission.expires(program),
            )
            for program, plans in zip(self.change.programs, self.plans, strict=True)
        )
        return old, new

    def _sinks(self, wanted: Callable[[Set[str | None]], bool]) -> frozenset[str]:
        """Sinks with such connectors on both sides together, by the names the plans have for them."""
        connectors: dict[str, set[str | None]] = {QUERY_SINK: {STATELESS_SINKS[0]}}
        for program in self.change.programs:
            for table in program.tables:
                connectors.setdefault(_last(table.name), set()).add(table.option("connector"))
        return self._sinks_named({name for name, found in connectors.items() if wanted(found)})

    def _sinks_named(self, names: Set[str]) -> frozenset[str]:
        """The names that the plans have for these sinks."""
        return _identified(names, (identifier for side in self.plans for plan in side for identifier in sinks_of(plan)))

    def findings(self, respelled: bool = False) -> tuple[tuple[Rule, Finding], ...]:
        """What differs, each by itself; or that all is equal, unless nothing was changed anyway. Each with its rule.

        ``respelled``: the rules found no row that tells the expressions apart, so that other words in a plan show none.
        """
        said = self.prediction
        if said is not None and said.consequence is not None:
            verdict = replace(DIFFERS.verdicts["flink"], consequence=said.consequence)
            return ((DIFFERS, _finding(DIFFERS, f"Flink {said.flink}: {said.message}", verdict)),)
        known = [difference for difference in self.differences if difference.aspect is not Aspect.OTHER]
        if known:
            return tuple((DIFFERS, self._differs(difference, respelled)) for difference in known)
        if self.differences or self.change.unchanged or len(self.plans[0]) != len(self.plans[1]):
            return ()
        if not self.seen:
            message = "Flink's planner makes the same of both scripts: chain, layout and meaning of all state are equal"
            return ((EQUAL, _finding(EQUAL, message, EQUAL.verdicts["flink"].on_line(self.change.new.version))),)
        what = "; ".join(dict.fromkeys(f"{each.operator}, {' and '.join(each.what)}" for each in self.seen))
        ids = tuple(dict.fromkeys(name for each in self.seen for name in each.evidence))
        message = f"Flink's planner makes the same of both scripts but for what was restored right elsewhere: {what}"
        return ((EQUAL, _finding(EQUAL, message, measured(Outcome.COMPATIBLE, *ids))),)

    @property
    def _waiting(self) -> frozenset[str]:
        """Lookups of which nobody knows whether they are asynchronous, by the plans' names of their tables."""
        lookups = () if self.prediction is None else self.prediction.lookups
        return frozenset(".".join(f"`{part}`" for part in name.split(".")) for name in lookups)

    @property
    def depends_on_lookups(self) -> bool:
        """Whether it matters that a lookup by a stand-in may be asynchronous."""
        mine = self.prediction is not None and bool(self.prediction.lookups)
        of_plans = any(each.operator == "lookup-join" or each.what == CHAIN for each in self.differences)
        return mine and (of_plans or any(map(_made_synchronous, self.change.differences)))

    @property
    def contradictions(self) -> tuple[str, ...]:
        """What state of operators means otherwise by the plans, whatever the rules say of it."""
        return tuple(
            f"Flink's planner: {each.operator}: {_WORDS[each.aspect]} ({', '.join(each.what)})"
            for each in self.differences
            if each.aspect is Aspect.MEANING and each.operator != "sink"
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What differs in the plans without its being known whether it matters."""
        return tuple(
            f"Flink's planner: {difference.operator}, {' and '.join(difference.what)}: {_WORDS[Aspect.OTHER]}"
            for difference in self.differences
            if difference.aspect is Aspect.OTHER
        )

    def _differs(self, difference: PlanDifference, respelled: bool) -> Finding:
        what = ", ".join(difference.what)
        message = f"Flink's planner: {difference.operator}: {_WORDS[difference.aspect]} ({what})"
        verdict = replace(DIFFERS.verdicts["flink"], consequence=CONSEQUENCES[difference.aspect])
        names = {_last(identifier) for identifier in difference.sinks}
        if difference.aspect is Aspect.MEANING and (respelled or self._may_be_respelled(names)):
            message, verdict = f"Flink's planner: {difference.operator}: {_RESPELLED} ({what})", _NOT_RESTORED
        sinks = [pair.sink for pair in self.change.pipelines if _last(pair.sink) in names]
        sink = sinks[0] if len(names) == len(sinks) == 1 else None
        return replace(_finding(DIFFERS, message, verdict), before=difference.before, after=difference.after, sink=sink)

    def _may_be_respelled(self, sinks: Set[str]) -> bool:
        """Return whether scripts differ, for these sinks, only in possible spellings of one expression."""
        pairs = [each for each in self.change.pipelines if _last(each.sink or QUERY_SINK) in sinks and each.changed]
        return bool(pairs) and not self.change.script_differences and all(map(may_be_same_query, pairs))

    @property
    def is_proven(self) -> bool:
        """Whether Flink's own planner makes the same job of both scripts, state included."""
        return self.prediction is not None and not self.prediction.is_uncertain and not self.differences

    def settled(self, finding: Finding, rule: Rule) -> Finding:
        """A finding on what shows in the plans is compatible where they are equal; any other one stays as it is.

        Where Flink refuses the restore, no finding of a rule names another end.
        """
        if rule is not DIFFERS and self.prediction is not None and self.prediction.consequence is not None:
            return replace(finding, consequence=None)
        if self._is_refuted(finding):
            message = f"{finding.message} (Flink {self.change.new.version} was asked and plans it)"
            return replace(finding, outcome=Outcome.COMPATIBLE, reason=None, consequence=None, message=message)
        versions = {self.change.old.version, self.change.new.version}
        if (
            not (self._may_settle(finding, rule) or self._shows(finding))
            or not (self.prediction is None or self.is_proven)
            or self.differences
            or len(versions) > 1
            or not versions <= set(EQUAL.verdicts["flink"].versions)
        ):
            return finding
        alone = f"{finding.outcome.value} by the rules alone; the compiled plans are equal"
        return replace(
            finding,
            outcome=Outcome.COMPATIBLE,
            reason=None,
            remedy=None,
            consequence=None,
            message=f"{finding.message} ({alone})",
            basis=EQUAL.verdicts["flink"].basis,
            source=EQUAL.verdicts["flink"].grounds,
            evidence=EQUAL.verdicts["flink"].evidence,
        )

    def _is_refuted(self, finding: Finding) -> bool:
        """Whether Flink has planned, with all jars, a script that the rules think it may refuse."""
        planned = self.prediction is not None and not self.prediction.stand_ins
        return planned and finding.rule in REFUSALS and finding.outcome is Outcome.UNKNOWN

    def _may_settle(self, finding: Finding, rule: Rule) -> bool:
        """Whether plans from anywhere show all that a finding speaks of."""
        return plans_may_settle(finding, rule) and (
            finding.remedy is Remedy.EXPLAIN_PLAN or _SHOWN[rule.plan_cover](self.change)
        )

    def _shows(self, finding: Finding) -> bool:
        """Whether the jobs that Flink's own planner makes show all that a finding speaks of."""
        if self.prediction is None or not finding.claims:
            return False
        settled = finding.outcome is Outcome.INCOMPATIBLE or finding.reason in _FOR_LACK_OF_COVER
        differences = {each.key: each for each in self.change.differences}
        return settled and all(key in differences and self._shown(differences[key]) for key in finding.claims)

    def _shown(self, difference: Difference) -> bool:
        """Whether a difference shows in the operators that Flink would submit, in their state and in compiled plans."""
        place, _, name = difference.key.removesuffix(f"/{difference.part}").partition("/")
        if place == "setting":
            assert self.prediction is not None
            optimizes = name.startswith(_OPTIMIZER) and not self.prediction.stand_ins  # a stand-in offers it less
            return self.prediction.alike and (name in _PLANNING_ALONE or name.startswith(_LOOKUPS) or optimizes)
        if place == "table":
            if difference.part == "declared":
                return self._with_its_insert(difference.before or difference.after)
            if difference.part == "options":
                used = {each.use for each in uses_of(self.change, name)}
                return used == {TableUse.SINK} and self.prediction is not None and name in self.prediction.bare_sinks
            return difference.part in _OF_SCHEMAS and name not in self._stubs
        if difference.part in _OF_INSERTS:
            return _one_job(self.change) and all(self._keeps_nothing(each.sink) for each in self._come_and_gone)
        if difference.part in _OF_ONE_JOB:
            return _one_job(self.change)
        if self.prediction is not None and self.prediction.lookups and _made_synchronous(difference):
            return False
        if difference.part.startswith("source hints") or difference.part == "sink hints":
            return not any(text[0].upper() == "OPTIONS" for side in _both(difference) for text in side or ())
        return place == "view" or not (difference.part in _OUTSIDE or place in _OUTSIDE)

    @cached_property
    def _stubs(self) -> frozenset[str]:
        return frozenset(map(_last, self.prediction.stubs if self.prediction else ()))

    @property
    def _come_and_gone(self) -> tuple[Output, ...]:
        return (*self.change.removed, *self.change.added)

    def _with_its_insert(self, table: Table) -> bool:
        """Whether a table that one side alone declares is the sink of an INSERT that comes or goes, and of no other."""
        name = _last(table.name)
        into = {_last(pair.sink) for pair in self.change.pipelines if pair.sink}
        return name not in into and any(name == _last(each.sink or "") for each in self._come_and_gone)

    def _keeps_nothing(self, sink_name: str | None) -> bool:
        tables = [table for program in self.change.programs for table in program.tables if table.name == sink_name]
        return bool(tables) and all(table.option("connector") in STATELESS_SINKS for table in tables)


_FOR_LACK_OF_COVER = (Reason.NOT_COVERED, Reason.AMBIGUOUS, Reason.VERSION)
_OPTIMIZER, _LOOKUPS = "table.optimizer.", "table.exec.async-lookup."
_PLANNING_ALONE = frozenset(
    (
        "pipeline.max-parallelism",
        "table.column-expansion-strategy",
        "table.exec.async-state.enabled",
        "table.exec.sink.require-on-conflict",
        "table.exec.sink.upsert-materialize",
        "table.plan.force-recompile",
    )
)
"""Settings that decide about operators alone: with the same operators they change nothing."""
_OF_SCHEMAS = frozenset(("columns", "types", "computed", "metadata", "watermark", "primary key", "order"))
_OF_INSERTS = frozenset(("inserts", "statement set"))
_OF_ONE_JOB = frozenset(("insert order", "pairing", "sharing"))
_OUTSIDE = frozenset(("engine", "function", "opaque", "sink", "source", "statement", "table", "unread"))
"""What a job's operators do not show: code, tables under other names, statements beside the queries."""


def _made_synchronous(difference: Difference) -> bool:
    """Whether a hint comes that makes a lookup wait, so that nothing reads the rows that waited for an answer."""
    old, new = (
        dict(side or ()).get("LOOKUP", "") if difference.part == "query hints" else "" for side in _both(difference)
    )
    return old != new and "async='false'" in new


def _both(difference: Difference) -> tuple[Any, Any]:
    return difference.before, difference.after


def plans_may_settle(finding: Finding, rule: Rule) -> bool:
    """Return whether equal plans could settle a finding: one on spelling, or on something that a plan shows.

    Args:
        finding: What was found.
        rule: The rule that found it.

    Returns:
        False for any finding that is not unknown for lack of cover.
    """
    shown = rule.plan_cover is not PlanCover.NEVER or finding.remedy is Remedy.EXPLAIN_PLAN
    return shown and finding.reason in (Reason.NOT_COVERED, Reason.AMBIGUOUS)


def _finding(rule: Rule, message: str, verdict: Verdict) -> Finding:
    return Finding(
        rule.code, rule.title, verdict.outcome, message, basis=verdict.basis, source=verdict.grounds,
        evidence=verdict.evidence, reason=verdict.reason, consequence=verdict.consequence,
    )  # fmt: skip


def _last(name: str) -> str:
    """A table's own name, of ```catalog`.`database`.`table``` or of the name a script has for it."""
    return name.rpartition(".")[2].strip("`")


def _keep_nothing(connectors: Set[str | None]) -> bool:
    """Whether each of these connectors writes with one operator that keeps nothing; a plan tells what precedes it."""
    return all((found := sink(each)).state is SinkState.NONE and found.operators == 1 for each in connectors)


def _one_job(change: Change) -> bool:
    """Whether each side makes one job: which savepoint goes to which of several is in no plan."""
    sets = [{pipeline.statement_set for pipeline in program.pipelines} for program in change.programs]
    single = [len(program.pipelines) == 1 for program in change.programs]
    return all(alone or (len(found) == 1 and None not in found) for alone, found in zip(single, sets, strict=True))


def _columns_of_stateless_sinks(change: Change) -> bool:
    """Whether written tables keep nothing, and changed their columns alone."""
    written = {pair.sink for pair in change.pipelines}
    tables = [table for program in change.programs for table in program.tables if table.name in written]
    parts = {
        difference.part
        for difference in change.script_differences
        for place, _, name in [difference.key.rpartition("/")[0].partition("/")]
        if place == "table" and name in written
    }
    stateless = all(table.option("connector") in STATELESS_SINKS for table in tables)
    return stateless and parts <= {"columns", "types", "order"}


_SHOWN: Mapping[PlanCover, Callable[[Change], bool]] = {
    PlanCover.NEVER: lambda change: False,
    PlanCover.ALWAYS: lambda change: True,
    PlanCover.ONE_JOB: _one_job,
    PlanCover.COLUMNS_OF_STATELESS_SINKS: _columns_of_stateless_sinks,
}
"""Whether all that a rule looks at shows in the plans of a change."""
