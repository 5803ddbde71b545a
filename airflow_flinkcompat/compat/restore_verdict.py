"""Verdict on engine ``flink`` if Flink planned both scripts: the worst effect in the diff of the jobs.

If the exec graph shows all differences of a rule's finding, the diff decides the finding. Rules decide about parts that
no graph shows (:class:`Shown`), and about all differences if the effect of the diff is unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.differences import Difference
from airflow_flinkcompat.compat.changes.respelling import may_be_same_query
from airflow_flinkcompat.compat.changes.settings import TTL
from airflow_flinkcompat.compat.engines.flink.upgrade import (
    UPGRADE_FIRST,
    connector_effects,
    judged_by_planners,
    lines_of,
    refused_by_connectors,
)
from airflow_flinkcompat.compat.plan_comparison import ComparedPlans, positions, sinks_elsewhere
from airflow_flinkcompat.compat.report import REFUSALS, Finding
from airflow_flinkcompat.compat.rule import Example, Rule, RuleScope, windowed
from airflow_flinkcompat.compat.rule_builders.table_options import uses_of
from airflow_flinkcompat.compat.rules import statements
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.compat.verdict import Remedy, measured, right, unknown
from airflow_flinkcompat.connectors.facts import TableUse
from airflow_flinkcompat.connectors.registry import is_stateless_sink
from airflow_flinkcompat.exec_graph.diff import CHAIN
from airflow_flinkcompat.exec_graph.exec_node import last_name
from airflow_flinkcompat.exec_graph.from_compiled import QUERY_SINK
from airflow_flinkcompat.exec_graph.from_script import query_state
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.migration import Accept, DdlEffects, Migration, migration
from airflow_flinkcompat.exec_graph.model import ExecGraph, RestoreEffect, StateEffect
from airflow_flinkcompat.exec_graph.prediction import Prediction
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.model import Consequence, Outcome, Reason
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import Output


class Shown(StrEnum):
    """The place in Flink's plans that shows a difference, on engine ``flink``."""

    PLAN = "in a compiled plan"
    ONE_JOB = "in a compiled plan, if each script has one job"
    SCHEMA = "in the operators that Flink would submit, if the table has no stand-in"
    DECLARED = (
        "in the operators that Flink would submit, if the table is added or removed together with its only INSERT"
    )
    OPTIONS = "in the operators that Flink would submit, if the table is a sink without state"
    SETTING = "in the operators that Flink would submit, if each has a counterpart"
    OPTIMIZER = "in the operators that Flink would submit, if each has a counterpart and no connector has a stand-in"
    NOWHERE = "in no graph"


_OF_TABLES: Mapping[str, Shown] = {
    **dict.fromkeys(("columns", "types", "computed", "metadata", "watermark", "primary key", "order"), Shown.SCHEMA),
    "declared": Shown.DECLARED,
    "options": Shown.OPTIONS,
}


_OF_SETTINGS: Mapping[str, Shown] = dict.fromkeys(
    (
        "pipeline.max-parallelism",
        "table.column-expansion-strategy",
        "table.exec.async-state.enabled",
        "table.exec.sink.require-on-conflict",
        "table.exec.sink.upsert-materialize",
        "table.exec.uid.generation",
        "table.plan.force-recompile",
    ),
    Shown.SETTING,
)
"""Settings that affect only the choice of operators, and have no effect if the operators are equal."""


_OF_SETTINGS_BY_PREFIX = {"table.exec.async-lookup.": Shown.SETTING, "table.optimizer.": Shown.OPTIMIZER}


_OF_QUERIES: Mapping[str, Shown] = {
    **dict.fromkeys(("engine", "opaque", "unread"), Shown.NOWHERE),
    **dict.fromkeys(("source", "sink"), Shown.NOWHERE),  # the query uses a table with a different name
    **dict.fromkeys(("inserts", "insert order", "pairing", "sharing", "statement set"), Shown.ONE_JOB),
}
"""Visibility of the parts of queries and scripts. A compiled plan shows every part that is not listed."""


def visibility(key: str) -> Shown:
    """The place in Flink's plans that shows a difference with this key."""
    place, _, name = key.partition("/")
    part = key.rpartition("/")[2]
    match place:
        case "view":
            return Shown.PLAN
        case "table":
            return _OF_TABLES.get(part, Shown.NOWHERE)
        case "setting":
            by_prefix = (shown for prefix, shown in _OF_SETTINGS_BY_PREFIX.items() if name.startswith(prefix))
            return _OF_SETTINGS.get(name) or next(by_prefix, Shown.NOWHERE)
        case "function" | "statement":  # plans show neither a function's code nor objects that outlive the session
            return Shown.NOWHERE
    return _OF_QUERIES.get(part, Shown.PLAN)


_SOURCE = "compiled plans of these and other restores"


_WORDS = {
    RestoreEffect.REFUSED_AT_SUBMIT: "its upstream operators differ",
    RestoreEffect.REFUSED_AT_RESTORE: "the layout of its state differs",
    RestoreEffect.SILENTLY_WRONG: "the meaning of its state differs",
    RestoreEffect.DROPPED: "its state is dropped",
    RestoreEffect.UNKNOWN: "the effect on state is unknown",
    RestoreEffect.EMPTY: "the effect on state is unknown",
}


_RESPELLED = "its expressions are compiled differently, but may be two spellings of one expression"


_NOT_RESTORED = unknown("no restore shows the effect of the different spelling on state")


DIFFERS = Rule(
    code="plan-differs",
    title="Flink plans a different job",
    vvr=unknown("plans apply only to open-source Flink"),
    flink=measured(Outcome.INCOMPATIBLE, "w-add-agg", "w-size-1to2-ws", "w-filter-nonwindow-add", note=_SOURCE),
    rationale=(
        "Flink's planner plans both scripts. If the operators before a stateful operator differ, Flink refuses the "
        "job at submit. If the layout of the state differs, Flink refuses the job at restore. If the meaning of the "
        "state differs, the job runs with wrong rows."
    ),
    example=Example(windowed("customer, SUM(amount)"), windowed("customer, MAX(amount)")),
    not_applicable=("vvr",),
)


EQUAL = Rule(
    code="plan-equal",
    title="Flink plans the same state",
    vvr=unknown("plans apply only to open-source Flink"),
    flink=right("w-unchanged", "x-view-rename", "x-inline-view", "w-interval-spelling", note=_SOURCE),
    rationale=(
        "Flink's planner compiles both scripts. Chain, layout and meaning of all state are equal, or differ only as "
        "in restores with correct results. This rule overrules findings on parts that a plan shows. A plan does not "
        "show table options and functions."
    ),
    example=Example(windowed("customer, SUM(amount)"), windowed("customer, SUM(amount), window_start")),
    not_applicable=("vvr",),
)


RULES = (DIFFERS, EQUAL)


UPGRADE = "engine-version-changed"
_DRY_RESTORE = (
    "compiled plans do not show if the new version reads the state; flinkcompat check --planner always restores each "
    "state in a dry run"
)


_FOR_LACK_OF_COVER = (Reason.NOT_COVERED, Reason.AMBIGUOUS, Reason.VERSION)


@dataclass(frozen=True)
class RestoreVerdict:
    """Findings from the diff of two planned jobs, in addition to those of the rules.

    Attributes:
        compared: The change with the compiled plans of both sides.
    """

    compared: ComparedPlans

    @property
    def prediction(self) -> Prediction | None:
        """The prediction of Flink's planner; None if only compiled plans are available."""
        return self.compared.prediction

    @property
    def change(self) -> Change:
        """Both scripts."""
        return self.compared.change

    @property
    def is_proven(self) -> bool:
        """True if Flink's own planner plans the same job for both scripts, with the same state."""
        return self.prediction is not None and not self.prediction.is_uncertain and self._is_right

    @property
    def _is_right(self) -> bool:
        return not self.compared.restore.differences

    @property
    def decides(self) -> bool:
        """True if the diff has a known effect: a refusal, wrong rows, or a correct restore of all state."""
        prediction, found = self.prediction, self.compared.restore
        refused = prediction is not None and prediction.refusal is not None
        return refused or found.worst_effect.consequence is not None or self.is_proven

    def findings(self, respelled: bool = False) -> tuple[tuple[Rule, Finding], ...]:
        """Findings on the effects of the diff, or one finding that Flink plans both scripts alike.

        If the scripts are equal or the effect is unknown, the result is empty. ``respelled`` is True if the rules found
        no row that distinguishes the expressions; then a different spelling in the plan does not matter.
        """
        prediction, compared = self.prediction, self.compared
        if prediction is not None and prediction.refusal is not None:
            verdict = replace(DIFFERS.flink, consequence=prediction.refusal.effect.consequence)
            return ((DIFFERS, Finding.of(DIFFERS, verdict, f"Flink {prediction.flink}: {prediction.refusal.message}")),)
        known = [each for each in compared.restore.differences if each.effect.consequence is not None]
        if known:
            return tuple((DIFFERS, self._differs(each, respelled)) for each in known)
        if not self._is_right or self.change.unchanged or len(compared.plans[0]) != len(compared.plans[1]):
            return ()
        seen = [each for each in compared.restore.states if each.facets]
        if not seen:
            message = "Flink's planner plans both scripts alike: chain, layout and meaning of all state are equal"
            return ((EQUAL, Finding.of(EQUAL, EQUAL.flink.on_line(self.change.new.version), message)),)
        what = "; ".join(dict.fromkeys(f"{each.operator}, {' and '.join(each.facets)}" for each in seen))
        ids = tuple(dict.fromkeys(name for each in seen for name in each.evidence))
        message = (
            "Flink's planner plans both scripts alike, except for differences that were restored correctly in "
            f"measurements: {what}"
        )
        return ((EQUAL, Finding.of(EQUAL, right(*ids), message)),)

    def _differs(self, state: StateEffect, respelled: bool) -> Finding:
        what = ", ".join(state.facets)
        message = f"Flink's planner: {state.operator}: {_WORDS[state.effect]} ({what})"
        verdict = replace(DIFFERS.flink, consequence=state.effect.consequence)
        names = set(map(last_name, state.sinks))
        wrong = state.effect.consequence is Consequence.SILENTLY_WRONG
        if wrong and (respelled or self._may_be_respelled(names)):
            message, verdict = f"Flink's planner: {state.operator}: {_RESPELLED} ({what})", _NOT_RESTORED
        sinks = [pair.sink for pair in self.change.pipelines if last_name(pair.sink) in names]
        sink = sinks[0] if len(names) == len(sinks) == 1 else None
        return Finding.of(DIFFERS, verdict, message, before=state.before, after=state.after, sink=sink)

    def _may_be_respelled(self, sinks: Set[str]) -> bool:
        """True if, for these sinks, the scripts may differ only in the spelling of one query."""
        pairs = [each for each in self.change.pipelines if last_name(each.sink or QUERY_SINK) in sinks and each.changed]
        return bool(pairs) and not self.change.script_differences and all(map(may_be_same_query, pairs))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about plan differences with an unknown effect."""
        return tuple(
            f"Flink's planner: {each.operator}, {' and '.join(each.facets)}: {_WORDS[each.effect]}"
            for each in self.compared.restore.having(RestoreEffect.UNKNOWN, RestoreEffect.EMPTY)
        )

    def adjust(self, finding: Finding, rule: Rule) -> Finding:
        """Adjust a rule's finding to the diff of the planned jobs.

        If the plans are equal and show all of the finding's differences, the finding becomes compatible. If Flink's
        planner predicts a refusal, the consequence of the finding is removed.
        """
        prediction = self.prediction
        if finding.rule == UPGRADE and self.change.old.engine == self.change.engine:
            if prediction is None:
                return replace(finding, message=f"{lines_of(self.change)}: {_DRY_RESTORE}")
            return self._upgraded(finding, rule, prediction)
        if rule is not DIFFERS and prediction is not None and prediction.refusal is not None:
            return replace(finding, consequence=None)
        if self._is_refuted(finding):
            message = f"{finding.message} (the planner of Flink {self.change.new.version} accepts it)"
            return replace(finding, outcome=Outcome.COMPATIBLE, reason=None, consequence=None, message=message)
        versions = {self.change.old.version, self.change.new.version}
        proven = self._is_right if prediction is None else self.is_proven
        verdict = EQUAL.flink
        if not (self._may_overrule(finding) and proven and versions <= set(verdict.versions)):
            return finding
        alone = f"the compiled plans are equal; the rules alone would decide {finding.outcome.value}"
        return replace(
            finding, outcome=Outcome.COMPATIBLE, reason=None, remedy=None, consequence=None,
            message=f"{alone}: {finding.message}", basis=verdict.basis, source=verdict.grounds,
            evidence=verdict.evidence,
        )  # fmt: skip

    def _upgraded(self, finding: Finding, rule: Rule, prediction: Prediction) -> Finding:
        """The finding on an upgrade together with a change, by the planners of both versions."""
        connectors = connector_effects(self.change, self.compared.plans[1])
        if refused := refused_by_connectors(self.change, connectors):
            upgraded, rule = refused[0], statements.statement_refused
        elif self.is_proven:
            upgraded = judged_by_planners(self.change, prediction, (), connectors)[0]
        else:
            return replace(finding, message=f"the planners of both versions plan different jobs: {UPGRADE_FIRST}")
        return Finding.of(
            rule, upgraded.verdict, upgraded.message,
            before=finding.before, after=finding.after, claims=finding.claims,
        )  # fmt: skip

    def _is_refuted(self, finding: Finding) -> bool:
        """True if a rule expects that Flink may refuse the script, but Flink planned it with all jars."""
        planned = self.prediction is not None and not self.prediction.stand_ins
        return planned and finding.rule in REFUSALS and finding.outcome is Outcome.UNKNOWN

    def _may_overrule(self, finding: Finding) -> bool:
        """True if the exec graphs show all differences of a finding and may overrule the finding."""
        overrulable = finding.reason in _FOR_LACK_OF_COVER
        if self.prediction is not None:
            overrulable |= finding.outcome is Outcome.INCOMPATIBLE
        differences = self._differences(finding) if overrulable else None
        return bool(differences) and all(map(self._is_shown, differences or ()))

    def _differences(self, finding: Finding) -> list[Difference] | None:
        """The differences that a finding claims, or all differences of its query; None if a claim is unknown."""
        if finding.claims:
            known = {each.key: each for each in self.change.differences}
            return [known[key] for key in finding.claims] if known.keys() >= {*finding.claims} else None
        pairs = self.change.pipelines_into(finding.sink)
        return [
            each for pair in pairs for each in (*pair.differences, *(d for o in pair.operators for d in o.differences))
        ]

    def _is_shown(self, difference: Difference) -> bool:
        prediction = self.prediction
        shown = visibility(difference.key)
        name = difference.key.removesuffix(f"/{difference.part}").partition("/")[2]
        match shown:
            case Shown.NOWHERE:
                return False
            case Shown.ONE_JOB:
                alone = difference.part != "inserts" or all(
                    self._is_stateless_sink(each.sink) for each in self._added_or_removed
                )
                return alone and _one_job(self.change)
            case Shown.PLAN:
                return not (
                    _hints_at_options(difference) or (self._has_unknown_lookups and _becomes_synchronous(difference))
                )
        if prediction is None:
            return False
        match shown:
            case Shown.SCHEMA:
                return name not in map(last_name, prediction.stubs)
            case Shown.DECLARED:
                return self._with_its_insert(difference.before or difference.after)
            case Shown.OPTIONS:
                return {each.use for each in uses_of(self.change, name)} == {
                    TableUse.SINK
                } and name in prediction.bare_sinks
        return prediction.alike and (
            shown is Shown.SETTING or not prediction.stand_ins
        )  # a stand-in table supports fewer optimizations

    @property
    def _has_unknown_lookups(self) -> bool:
        return self.prediction is not None and bool(self.prediction.lookups)

    @property
    def depends_on_lookups(self) -> bool:
        """True if the verdict depends on the lookup mode, synchronous or asynchronous, of a stand-in table."""
        of_plans = any(
            each.operator == ExecKind.LOOKUP_JOIN or each.facets == CHAIN for each in self.compared.restore.differences
        )
        return self._has_unknown_lookups and (of_plans or any(map(_becomes_synchronous, self.change.differences)))

    @property
    def _added_or_removed(self) -> tuple[Output, ...]:
        return (*self.change.removed, *self.change.added)

    def _with_its_insert(self, table: Table) -> bool:
        """True if a table that only one side declares is only the sink of added or removed INSERTs."""
        name = last_name(table.name)
        into = {last_name(pair.sink) for pair in self.change.pipelines if pair.sink}
        return name not in into and any(name == last_name(each.sink or "") for each in self._added_or_removed)

    def _is_stateless_sink(self, sink_name: str | None) -> bool:
        tables = [table for program in self.change.programs for table in program.tables if table.name == sink_name]
        return bool(tables) and all(is_stateless_sink(table.option("connector")) for table in tables)


def graph_may_decide(finding: Finding, rule: Rule) -> bool:
    """True if the planner's exec graph may decide a finding that a rule leaves unknown."""
    if finding.reason not in (Reason.NOT_COVERED, Reason.AMBIGUOUS):
        return False
    if finding.claims:
        of_tables = Shown.OPTIONS, Shown.DECLARED  # of few tables
        return not any(visibility(key) in (Shown.NOWHERE, *of_tables) for key in finding.claims)
    return finding.remedy is Remedy.EXPLAIN_PLAN or rule.scope is not RuleScope.SCRIPT


def _hints_at_options(difference: Difference) -> bool:
    if not difference.part.startswith(("source hints", "sink hints")):
        return False
    return any(text[0].upper() == "OPTIONS" for side in (difference.before, difference.after) for text in side or ())


def _becomes_synchronous(difference: Difference) -> bool:
    """True if a new hint makes a lookup synchronous, which ignores the queue of the asynchronous lookup."""
    old, new = (
        dict(side or ()).get("LOOKUP", "") if difference.part == "query hints" else ""
        for side in (difference.before, difference.after)
    )
    return old != new and "async='false'" in new


def _one_job(change: Change) -> bool:
    """True if each side has one job. Plans of several jobs do not show which job a savepoint belongs to."""
    sets = [{pipeline.statement_set for pipeline in program.pipelines} for program in change.programs]
    single = [len(program.pipelines) == 1 for program in change.programs]
    return all(alone or (len(found) == 1 and None not in found) for alone, found in zip(single, sets, strict=True))


def script_migration(change: Change, accepted: Collection[Accept] = ()) -> Migration | None:
    """The state that a rewritten savepoint can keep; None if the scripts alone do not determine it."""
    versions = {*change.versions}
    measured = len(versions) == 1 and versions <= set(EQUAL.flink.versions)
    if not measured or not ENGINE_FACTS[change.engine].compiles_plans or not _same_settings(change):
        return None
    symbols = Symbols()
    old = _graph_of(change.old, symbols)
    new = None if old is None else _graph_of(change.new, symbols)
    if old is None or new is None or positions(old) != positions(new):
        return None
    return migration(old, new, DdlEffects(replaced=sinks_elsewhere(change)), accepted)


def _same_settings(change: Change) -> bool:
    """True if no setting differs except the state TTL."""
    old, new = ([dict(each.settings) | {TTL: ""} for each in program.pipelines] for program in change.programs)
    return old == new


def _graph_of(side: Side, symbols: Symbols) -> ExecGraph | None:
    outputs, too_large = side.outputs
    if side.language != "sql" or side.program.problems or too_large or len(side.program.pipelines) != 1:
        return None
    state = query_state(outputs[0], side.program.pipelines[0], side.program, symbols)
    return state if isinstance(state, ExecGraph) else None
