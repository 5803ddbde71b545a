"""Verdict on engine ``flink`` if Flink planned both scripts: the worst effect of the jobs' diff.

A rule's finding over differences that the exec graph shows takes the effect of the diff. Rules decide over parts that
no graph shows (:class:`Shown`), and if the diff has no answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.differences import Difference
from airflow_flinkcompat.compat.changes.respelling import may_be_same_query
from airflow_flinkcompat.compat.changes.settings import TTL
from airflow_flinkcompat.compat.engines.flink.sinks import STATELESS_SINKS
from airflow_flinkcompat.compat.engines.flink.upgrade import judged_by_planners
from airflow_flinkcompat.compat.plan_comparison import ComparedPlans, positions, sinks_elsewhere
from airflow_flinkcompat.compat.report import REFUSALS, Finding
from airflow_flinkcompat.compat.rule import Example, Rule, RuleScope, windowed
from airflow_flinkcompat.compat.rule_builders.table_options import uses_of
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.compat.verdict import Remedy, measured, right, unknown
from airflow_flinkcompat.connectors.facts import TableUse
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
    """Visibility of a difference that may matter to stored state, on engine ``flink``."""

    PLAN = "in a compiled plan"
    ONE_JOB = "in a compiled plan, where each script makes one job"
    SCHEMA = "in the operators that Flink would submit, where the table's own connector planned them"
    DECLARED = "in those operators, where the table is the sink of an INSERT that comes or goes with it"
    OPTIONS = "in those operators, where the table is a sink that keeps nothing"
    SETTING = "in those operators, where each has a counterpart"
    OPTIMIZER = "in those operators, where each has a counterpart and no connector has a stand-in"
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
"""Settings that decide about operators alone: with the same operators they change nothing."""


_OF_SETTINGS_BY_PREFIX = {"table.exec.async-lookup.": Shown.SETTING, "table.optimizer.": Shown.OPTIMIZER}


_OF_QUERIES: Mapping[str, Shown] = {
    **dict.fromkeys(("engine", "opaque", "unread"), Shown.NOWHERE),
    **dict.fromkeys(("source", "sink"), Shown.NOWHERE),  # a table of another name
    **dict.fromkeys(("inserts", "insert order", "pairing", "sharing", "statement set"), Shown.ONE_JOB),
}
"""Parts of queries and of the script; every other one shows in a plan."""


def where_shown(key: str) -> Shown:
    """Visibility of a difference."""
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
        case "function" | "statement":  # code, and what lasts outside of the session
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


_RESPELLED = "its expressions are compiled differently, and may be two spellings of the same one"


_NOT_RESTORED = unknown("no restore shows the effect of another spelling on state")


DIFFERS = Rule(
    code="plan-differs",
    title="Flink plans a different job",
    vvr=unknown("plans apply only to open-source Flink"),
    flink=measured(Outcome.INCOMPATIBLE, "w-add-agg", "w-size-1to2-ws", "w-filter-nonwindow-add", note=_SOURCE),
    rationale=(
        "Flink's planner plans both scripts. If the operators up to a stateful one differ, the job is "
        "refused at submit. If the layout of its state differs, it is refused at restore. If the meaning "
        "of its state differs, it runs with wrong rows."
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
        "Flink's planner compiles both scripts, and chain, layout and meaning of all state are equal, or "
        "differ only as in restores with correct results. This overrules findings on the parts that a plan "
        "shows. Options of tables and functions are not among them."
    ),
    example=Example(windowed("customer, SUM(amount)"), windowed("customer, SUM(amount), window_start")),
    not_applicable=("vvr",),
)


RULES = (DIFFERS, EQUAL)


UPGRADE = "engine-version-changed"


_FOR_LACK_OF_COVER = (Reason.NOT_COVERED, Reason.AMBIGUOUS, Reason.VERSION)


@dataclass(frozen=True)
class RestoreVerdict:
    """The diff of two planned jobs as a voice among the rules.

    Attributes:
        compared: The change with the compiled plans of both sides.
    """

    compared: ComparedPlans

    @property
    def prediction(self) -> Prediction | None:
        """The answer of Flink's planner; None if only compiled plans are at hand, which show less."""
        return self.compared.prediction

    @property
    def change(self) -> Change:
        """Both scripts."""
        return self.compared.change

    @property
    def is_proven(self) -> bool:
        """True if Flink's own planner makes the same job of both scripts, state included."""
        return self.prediction is not None and not self.prediction.is_uncertain and self._is_right

    @property
    def _is_right(self) -> bool:
        return not self.compared.restore.differences

    @property
    def decides(self) -> bool:
        """True if the diff names an effect: a refusal, wrong rows, or that every state is read as written."""
        said, found = self.prediction, self.compared.restore
        refused = said is not None and said.refusal is not None
        return refused or found.worst_effect.consequence is not None or self.is_proven

    def findings(self, respelled: bool = False) -> tuple[tuple[Rule, Finding], ...]:
        """The effects of the diff with their rules; or that all is equal, unless nothing was changed.

        ``respelled``: the rules found no row that distinguishes the expressions, so other words in a plan do not
        matter.
        """
        said, compared = self.prediction, self.compared
        if said is not None and said.refusal is not None:
            verdict = replace(DIFFERS.flink, consequence=said.refusal.effect.consequence)
            return ((DIFFERS, Finding.of(DIFFERS, verdict, f"Flink {said.flink}: {said.refusal.message}")),)
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
            "Flink's planner plans both scripts alike, except for differences that were restored correctly "
            f"elsewhere: {what}"
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
        """Return whether scripts differ, for these sinks, only in possible spellings of one expression."""
        pairs = [each for each in self.change.pipelines if last_name(each.sink or QUERY_SINK) in sinks and each.changed]
        return bool(pairs) and not self.change.script_differences and all(map(may_be_same_query, pairs))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Differences of the plans with an unknown effect."""
        return tuple(
            f"Flink's planner: {each.operator}, {' and '.join(each.facets)}: {_WORDS[each.effect]}"
            for each in self.compared.restore.having(RestoreEffect.UNKNOWN, RestoreEffect.EMPTY)
        )

    def of(self, finding: Finding, rule: Rule) -> Finding:
        """A finding over shown differences with the effect of the diff, any other one as its rule decides.

        Where Flink refuses the restore, no finding of a rule names another end.
        """
        said = self.prediction
        if rule is not DIFFERS and said is not None and said.refusal is not None:
            return replace(finding, consequence=None)
        if self._is_refuted(finding):
            message = f"{finding.message} (Flink {self.change.new.version} was asked and plans it)"
            return replace(finding, outcome=Outcome.COMPATIBLE, reason=None, consequence=None, message=message)
        versions = {self.change.old.version, self.change.new.version}
        proven = self._is_right if said is None else self.is_proven
        if said is not None and proven and finding.rule == UPGRADE and finding.outcome is Outcome.UNKNOWN:
            upgraded = judged_by_planners(self.change)
            return Finding.of(
                rule, upgraded.verdict, upgraded.message,
                before=finding.before, after=finding.after, claims=finding.claims,
            )  # fmt: skip
        verdict = EQUAL.flink
        if not (self._shows(finding) and proven and versions <= set(verdict.versions)):
            return finding
        alone = f"the compiled plans are equal; by the rules alone it would be {finding.outcome.value}"
        return replace(
            finding, outcome=Outcome.COMPATIBLE, reason=None, remedy=None, consequence=None,
            message=f"{alone}: {finding.message}", basis=verdict.basis, source=verdict.grounds,
            evidence=verdict.evidence,
        )  # fmt: skip

    def _is_refuted(self, finding: Finding) -> bool:
        """True if Flink has planned, with all jars, a script that the rules think it may refuse."""
        planned = self.prediction is not None and not self.prediction.stand_ins
        return planned and finding.rule in REFUSALS and finding.outcome is Outcome.UNKNOWN

    def _shows(self, finding: Finding) -> bool:
        """True if the exec graphs show everything that a finding concerns."""
        open_to_it = finding.reason in _FOR_LACK_OF_COVER
        if self.prediction is not None:
            open_to_it |= finding.outcome is Outcome.INCOMPATIBLE
        spoken_of = self._differences(finding) if open_to_it else None
        return bool(spoken_of) and all(map(self._is_shown, spoken_of or ()))

    def _differences(self, finding: Finding) -> list[Difference] | None:
        """Differences of a finding: its claims, else its whole query; None without any."""
        if finding.claims:
            known = {each.key: each for each in self.change.differences}
            return [known[key] for key in finding.claims] if known.keys() >= {*finding.claims} else None
        pairs = self.change.pipelines_into(finding.sink)
        return [
            each for pair in pairs for each in (*pair.differences, *(d for o in pair.operators for d in o.differences))
        ]

    def _is_shown(self, difference: Difference) -> bool:
        said = self.prediction
        shown = where_shown(difference.key)
        name = difference.key.removesuffix(f"/{difference.part}").partition("/")[2]
        match shown:
            case Shown.NOWHERE:
                return False
            case Shown.ONE_JOB:
                alone = difference.part != "inserts" or all(
                    self._keeps_nothing(each.sink) for each in self._come_and_gone
                )
                return alone and _one_job(self.change)
            case Shown.PLAN:
                return not (_hints_at_options(difference) or (self._waits and _made_synchronous(difference)))
        if said is None:
            return False
        match shown:
            case Shown.SCHEMA:
                return name not in map(last_name, said.stubs)
            case Shown.DECLARED:
                return self._with_its_insert(difference.before or difference.after)
            case Shown.OPTIONS:
                return {each.use for each in uses_of(self.change, name)} == {TableUse.SINK} and name in said.bare_sinks
        return said.alike and (shown is Shown.SETTING or not said.stand_ins)  # a stand-in offers the optimizer less

    @property
    def _waits(self) -> bool:
        return self.prediction is not None and bool(self.prediction.lookups)

    @property
    def depends_on_lookups(self) -> bool:
        """True if the verdict depends on a stand-in's lookup being asynchronous."""
        of_plans = any(
            each.operator == ExecKind.LOOKUP_JOIN or each.facets == CHAIN for each in self.compared.restore.differences
        )
        return self._waits and (of_plans or any(map(_made_synchronous, self.change.differences)))

    @property
    def _come_and_gone(self) -> tuple[Output, ...]:
        return (*self.change.removed, *self.change.added)

    def _with_its_insert(self, table: Table) -> bool:
        """True if a one-sided table is the sink of an added or removed INSERT, and of no other."""
        name = last_name(table.name)
        into = {last_name(pair.sink) for pair in self.change.pipelines if pair.sink}
        return name not in into and any(name == last_name(each.sink or "") for each in self._come_and_gone)

    def _keeps_nothing(self, sink_name: str | None) -> bool:
        tables = [table for program in self.change.programs for table in program.tables if table.name == sink_name]
        return bool(tables) and all(table.option("connector") in STATELESS_SINKS for table in tables)


def graph_may_decide(finding: Finding, rule: Rule) -> bool:
    """True if the planner's exec graph may decide a rule's unknown."""
    if finding.reason not in (Reason.NOT_COVERED, Reason.AMBIGUOUS):
        return False
    if finding.claims:
        of_tables = Shown.OPTIONS, Shown.DECLARED  # of few tables
        return not any(where_shown(key) in (Shown.NOWHERE, *of_tables) for key in finding.claims)
    return finding.remedy is Remedy.EXPLAIN_PLAN or rule.scope is not RuleScope.SCRIPT


def _hints_at_options(difference: Difference) -> bool:
    if not difference.part.startswith(("source hints", "sink hints")):
        return False
    return any(text[0].upper() == "OPTIONS" for side in (difference.before, difference.after) for text in side or ())


def _made_synchronous(difference: Difference) -> bool:
    """True if a new hint makes a lookup synchronous, so rows queued by an asynchronous one are not read."""
    old, new = (
        dict(side or ()).get("LOOKUP", "") if difference.part == "query hints" else ""
        for side in (difference.before, difference.after)
    )
    return old != new and "async='false'" in new


def _one_job(change: Change) -> bool:
    """True if each side makes one job: plans do not show which savepoint belongs to which of several."""
    sets = [{pipeline.statement_set for pipeline in program.pipelines} for program in change.programs]
    single = [len(program.pipelines) == 1 for program in change.programs]
    return all(alone or (len(found) == 1 and None not in found) for alone, found in zip(single, sets, strict=True))


def script_migration(change: Change, accepted: Collection[Accept] = ()) -> Migration | None:
    """State of a job that a rewritten savepoint could keep, if the scripts alone determine all of it."""
    versions = {*change.versions}
    measured = len(versions) == 1 and versions <= set(EQUAL.flink.versions)
    if not measured or not ENGINE_FACTS[change.engine].compiles_plans or not _same_settings(change):
        return None
    symbols = Symbols()
    old = _kept(change.old, symbols)
    new = None if old is None else _kept(change.new, symbols)
    if old is None or new is None or positions(old) != positions(new):
        return None
    return migration(old, new, DdlEffects(replaced=sinks_elsewhere(change)), accepted)


def _same_settings(change: Change) -> bool:
    """True if no setting differs except the state's time to live."""
    old, new = ([dict(each.settings) | {TTL: ""} for each in program.pipelines] for program in change.programs)
    return old == new


def _kept(side: Side, symbols: Symbols) -> ExecGraph | None:
    outputs, untold = side.outputs
    if side.language != "sql" or side.program.problems or untold or len(side.program.pipelines) != 1:
        return None
    state = query_state(outputs[0], side.program.pipelines[0], side.program, symbols)
    return state if isinstance(state, ExecGraph) else None
