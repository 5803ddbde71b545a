"""Judgement of a change by rules, plans and engines, and the precedence of findings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.differences import Difference
from airflow_flinkcompat.compat.changes.format import clause_spans, differing_values, format_value, name_difference
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.deployable import UNENDED, exposed_secrets, unfilled_message
from airflow_flinkcompat.compat.engines.flink.engine import FlinkEngine
from airflow_flinkcompat.compat.engines.flink.sinks import begins_empty
from airflow_flinkcompat.compat.engines.flink.upgrade import UPGRADE_FIRST, lines_of
from airflow_flinkcompat.compat.engines.protocol import AdjusterContext, Engine, FindingAdjuster
from airflow_flinkcompat.compat.engines.vvr import VvrEngine
from airflow_flinkcompat.compat.findings import (
    apply_precedence,
    one_for_each_column,
    one_for_each_table,
    overrule_across_sinks,
)
from airflow_flinkcompat.compat.migration_report import MigrationReport
from airflow_flinkcompat.compat.plan_comparison import ComparedPlans, Plans, UnknownPlan
from airflow_flinkcompat.compat.planned_upgrade import CONDITIONS, PlannedUpgrade, restored_operators
from airflow_flinkcompat.compat.refusals import notes
from airflow_flinkcompat.compat.report import (
    PLANNED,
    READ,
    UNDECIDED,
    Finding,
    Report,
    Reports,
    tool_version,
)
from airflow_flinkcompat.compat.reports.entries import operator_reports, sink_outcomes
from airflow_flinkcompat.compat.restore_verdict import RestoreVerdict, script_migration
from airflow_flinkcompat.compat.rule import NOT_COVERED, Level, Rule, RuleMatch
from airflow_flinkcompat.compat.rule_builders.table_options import startup_positions
from airflow_flinkcompat.compat.rules import applicable_rules, script, statements
from airflow_flinkcompat.compat.side import Side, environments
from airflow_flinkcompat.compat.verdict import SAFE, Remedy, Verdict, unknown
from airflow_flinkcompat.exec_graph.migration import Accept, Migration, MigrationExtent
from airflow_flinkcompat.exec_graph.prediction import Prediction
from airflow_flinkcompat.model import ENGINES, Basis, Consequence, InputError, Outcome, Reason, Span
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.plan.program import Program
from airflow_flinkcompat.secrets.detect import Secret

_ELSEWHERE = {
    True: "use a placeholder such as ${conn.my_connection.password}",
    False: "take it from the environment: os.environ['NAME']",
}
_ONE_JOB = (
    "the state that a rewritten savepoint would keep is shown only for scripts with one job: put the INSERTs into one "
    "statement set"
)
NO_INSERT = (
    "contains SELECTs without an INSERT, like a notebook or a SQL client session: each is a job that ends with its "
    "session and leaves no savepoint; pass the script of the deployed job"
)
IN_BATCH = (
    "runs in batch mode, in which a job neither writes savepoints nor resumes from them: each run starts from "
    "the beginning"
)
TOO_DEEP = Finding.of(
    statements.statement_not_read,
    unknown(reason=Reason.NOT_READ),
    "an expression or query is nested too deeply to be compared",
)


WithHistory = Callable[[Migration, Side, Side], Migration]
"""Function that adds, to a migration between both sides, the state that it computes from past rows."""

ENGINE_BY_NAME: Mapping[str, Engine] = {engine.name: engine for engine in (VvrEngine(), FlinkEngine())}


def check(
    old: Side | str,
    new: Side | str,
    engine: str | None = None,
    *,
    with_other_engine: bool = False,
    plans: Plans | None = None,
    accepted: Collection[Accept] = (),
    history: WithHistory | None = None,
    prediction: Prediction | None = None,
) -> Report:
    """Judge the effect of the change from ``old`` to ``new`` on stored state.

    Args:
        old: The deployed side. A string is SQL text without settings.
        new: The proposed side or its SQL text. The engine and version of this side determine the verdict.
        engine: ``flink`` or ``vvr``, which replaces the engine of both sides. None: the engine of each side, and
            ``vvr`` for a side that is a string.
        with_other_engine: True to add the outcome on the other engine to the report.
        plans: Flink's compiled plans of both sides, only for engine ``flink`` and SQL scripts. Plans make the verdict
            more exact.
        accepted: Losses and doubts that a migration may accept, such as dropped state. The report shows the state that
            such a migration keeps.
        history: Provides the state that a migration can compute from the rows that the job has already read; None if it
            is unknown which rows those are.
        prediction: The restore result predicted by Flink's planner, if the planner was asked. Requires ``plans``.

    Returns:
        The report with the outcome, the findings, and the fate of each operator and sink.

    Raises:
        ScriptError: A script contains no statement.
        InputError: The engine is unknown, a script contains no query, or plans are passed for an engine or a program
            that cannot use them.
    """
    sides = [
        Side(side, engine=engine or "vvr", source=name) if isinstance(side, str) else side.on(engine or side.engine)
        for side, name in ((old, "old"), (new, "new"))
    ]
    if plans is None and any(side.language == "python" for side in sides):
        return _in_each_environment(sides[0], sides[1], with_other_engine)
    change = _change(*sides)
    explained = None if plans is None else _explained(change, plans, accepted, prediction)
    return _check(change, with_other_engine, explained, accepted, history)


def _change(old: Side, new: Side) -> Change:
    return Change(old, replace(new, beside=old))


def _explained(
    change: Change, plans: Plans, accepted: Collection[Accept], prediction: Prediction | None
) -> ComparedPlans:
    """The change with its plans. Raises InputError if the engine or a program cannot use plans."""
    if not ENGINE_FACTS[change.engine].compiles_plans:
        raise InputError(
            f"compiled plans apply only to engine flink, but the change is judged for {change.engine}: choose engine "
            f"flink or check without plans"
        )
    if any(side.language != "sql" for side in (change.old, change.new)):
        raise InputError("compiled plans apply only to SQL scripts, but one side is a program: check without plans")
    return ComparedPlans(change, plans, accepted=accepted, prediction=prediction)


def _in_each_environment(old: Side, new: Side, with_other_engine: bool) -> Report:
    """The worst report on a program over all possible results of conditions on its environment."""
    found = environments(old, new)
    reports = [(_check(_change(each.old, each.new), with_other_engine), each) for each in found]
    report, where = max(reports, key=lambda pair: pair[0].outcome.rank)
    if len(reports) > 1 and report.outcome is not Outcome.COMPATIBLE:
        warning = f"judged for {len(reports)} possible results of conditions on the environment; reported: {where}"
        report = replace(report, warnings=(*report.warnings, warning))
    return replace(report, environments=len(reports))


def _check(
    change: Change,
    with_other_engine: bool,
    explained: ComparedPlans | None = None,
    accepted: Collection[Accept] = (),
    history: WithHistory | None = None,
) -> Report:
    sides = (change.old, change.new)
    restore = None if explained is None else RestoreVerdict(explained)
    upgrade = None if restore is None else PlannedUpgrade.of(restore)
    try:
        for side in sides:
            side.require_query()
        fired = _evaluate(change, restore, upgrade)
        findings = one_for_each_column(apply_precedence(fired), change)
        sinks, entries = sink_outcomes(change, fired), operator_reports(change, fired)
    except RecursionError:
        findings, sinks, entries = [TOO_DEEP], (), ()
    outcome = _roll_up(findings)
    other = None
    if with_other_engine:
        name = next(name for name in ENGINES if name != change.engine)
        other = (name, _other(Change(sides[0].on(name), sides[1].on(name))))
    report = Report(
        outcome=outcome,
        engine=change.engine,
        engine_version=change.new.version,
        findings=tuple(sorted(findings, key=lambda f: (bool(f.overruled_by), -f.outcome.rank))),
        old_sha256=change.old.sha256,
        new_sha256=change.new.sha256,
        old_source=change.old.source,
        new_source=change.new.source,
        other=other,
        warnings=_secrets(sides)
        + tuple(f"{place}: {UNENDED}" for side in sides for place in side.unended)
        + _environment_inputs(change.programs)
        + _session(change, outcome)
        + tuple(dict.fromkeys([note for program in change.programs for note in notes(program)]))
        + (() if restore is None or outcome is Outcome.INCOMPATIBLE else restore.warnings),
        tool_version=tool_version(),
        sinks=sinks,
        operators=entries,
        sources=startup_positions(change.new),
        sinks_begin_empty=tuple(dict.fromkeys([pair.sink for pair in change.pipelines if begins_empty(pair)])),
        restored=() if restore is None else restored_operators(restore),
        old_version=change.old.engine_version or "",
    )
    return _with_migration(report, change, explained, accepted, history)


def _secrets(sides: Iterable[Side]) -> tuple[str, ...]:
    """Warnings about secrets; equal warnings are joined into one with all places."""
    places: dict[str, dict[str, None]] = {}
    for side in sides:
        for secret in exposed_secrets(side) if side.secrets else ():
            words = f"{_exposed(secret)}; {_ELSEWHERE[side.language == 'sql']}"
            places.setdefault(words, {})[str(secret.span)] = None
    return tuple(f"{', '.join(found)}: {words}" for words, found in places.items())


def _exposed(secret: Secret) -> str:
    fault = unfilled_message(secret.variables)
    return f"{secret.key} {fault}" if fault else f"a literal secret ({secret.key})"


def _with_migration(
    report: Report,
    change: Change,
    explained: ComparedPlans | None,
    accepted: Collection[Accept],
    history: WithHistory | None,
) -> Report:
    """Add the state that a rewritten savepoint would keep, unless Flink refuses the new script itself."""
    if report.outcome is not Outcome.INCOMPATIBLE or report.is_refused:
        return report
    migrations = (script_migration(change, accepted),) if explained is None else explained.migrations
    kept = [
        each if history is None else history(each, change.old, change.new) for each in migrations if each is not None
    ]
    if explained is None and any(each.kept is MigrationExtent.NONE for each in kept):
        return report  # plans may show kept state that the scripts do not show
    match list(map(MigrationReport.of, kept)):
        case [one]:
            return replace(report, migration=one)
        case [_, _, *_]:
            return replace(report, warnings=(*report.warnings, _ONE_JOB))
    return report


def check_planned(
    old: Side,
    new: Side,
    prediction: Prediction,
    plans: Plans | None,
    *,
    with_other_engine: bool = True,
    accepted: Collection[Accept] = (),
    history: WithHistory | None = None,
) -> Report:
    """Judge a change by the diff of the two jobs that Flink plans.

    Rules decide about differences that the jobs do not show. Rules also decide if the planner has no answer.
    """
    change = _change(old, new)
    judged = partial(_check, change, with_other_engine, accepted=accepted, history=history)
    read, doubt = judged(), prediction.doubt
    explained = _explained(change, plans or ((), ()), accepted, prediction)
    stores_nothing = change.is_upgrade and _in_batch(change)
    compared = None if plans is None and not stores_nothing else RestoreVerdict(explained)
    try:
        report = read if doubt else _planned_report(read, lambda: judged(explained), prediction, compared)
        if report.outcome is Outcome.COMPATIBLE or report.is_conditional:
            report = _unless_unproven(report, change, prediction, None if doubt else compared)
    except UnknownPlan as error:
        doubt, report = str(error), read
    if doubt:
        report = replace(report, ground=READ, doubt=f"Flink {prediction.flink} cannot decide: {doubt}")
    if (doubt or compared is None) and old.engine == new.engine:
        report = _explained_upgrade(report, change, doubt or f"Flink {prediction.flink} compiles no plan of this job")
    if prediction.contradicted and not doubt and prediction.refusal is None:
        report = _without_refusals(report)
    if not change.unchanged and (report.outcome is Outcome.COMPATIBLE or report.is_conditional):
        report = _doubtful(report, ((CONDITIONS[kind], each) for kind, each in prediction.conditions))
    if report.outcome.rank < Outcome.UNKNOWN.rank or report.is_conditional:
        report = _doubtful(report, ((NOT_COVERED, each) for each in prediction.contradicted))
    else:
        # A contradicted report has no state to migrate.
        migration = None if prediction.contradicted else report.migration
        report = replace(report, migration=migration, warnings=(*report.warnings, *prediction.contradicted))
    return replace(report, read_outcome=None if report.outcome is read.outcome else read.outcome)


def _planned_report(
    read: Report, planned: Callable[[], Report], prediction: Prediction, compared: RestoreVerdict | None
) -> Report:
    """The report by the diff of the planned jobs.

    If Flink neither compiles plans nor refuses a script, the rules decide.
    """
    if compared is None and prediction.refusal is None:
        return replace(read, ground=f"{UNDECIDED} {prediction.flink}")
    report = planned()
    if prediction.refuses_script or (compared is not None and PlannedUpgrade.of(compared) is not None):
        decides = report.outcome is not Outcome.UNKNOWN or report.is_conditional
    else:
        decides = (compared is None or compared.decides) and not report.is_refused
    ground = f"{PLANNED if decides else UNDECIDED} {prediction.flink}"
    if prediction.stand_ins:
        ground += f" with stand-ins for {', '.join(prediction.stand_ins)}"
    if prediction.assumed:
        ground += f", with assumed declarations of {', '.join(prediction.assumed)}"
    return replace(report, ground=ground)


def _unless_unproven(report: Report, change: Change, prediction: Prediction, compared: RestoreVerdict | None) -> Report:
    """Set the report to unknown if the change depends on something that the planner cannot see."""
    reasons = list(prediction.unproven)
    if prediction.lookups and (compared is None or compared.depends_on_lookups):
        tables = ", ".join(prediction.lookups)
        reasons.append(
            f"it is unknown whether Flink looks up {tables} asynchronously: pass the jar of its connector with "
            f"--jar FILE"
        )
    reasons += _changed_stubs(report, change, prediction)
    return report if change.unchanged else _doubtful(report, ((NOT_COVERED, each) for each in reasons))


def _explained_upgrade(report: Report, change: Change, doubt: str) -> Report:
    """Explain an unknown upgrade by the doubt of the planners, which are installed."""
    more = f"; or {UPGRADE_FIRST}" if not change.is_upgrade else ""
    findings = (
        replace(each, message=f"{lines_of(change)}: {doubt}{more}")
        if each.rule == script.engine_version_changed.code and each.outcome is Outcome.UNKNOWN
        else each
        for each in report.findings
    )
    return replace(report, findings=tuple(findings))


def _without_refusals(report: Report) -> Report:
    """Overrule predicted refusals, because Flink accepts the stored state."""
    refused = (Consequence.REFUSED_AT_SUBMIT, Consequence.REFUSED_AT_RESTORE)
    findings = tuple(
        replace(each, overruled_by=each.overruled_by or NOT_COVERED.code) if each.consequence in refused else each
        for each in report.findings
    )
    outcome = _roll_up(findings)
    most = Outcome.worst((outcome, Outcome.UNKNOWN))
    sinks = tuple((name, min(each, most, key=lambda one: one.rank)) for name, each in report.sinks)
    return replace(report, findings=findings, outcome=outcome, sinks=sinks)


def _doubtful(report: Report, reasons: Iterable[tuple[Rule, str]]) -> Report:
    """Set a report to unknown with a finding for each reason and its rule; unchanged without reasons."""
    doubts = [Finding.of(rule, rule.flink, each) for rule, each in reasons]
    if not doubts:
        return report
    return replace(report, outcome=Outcome.UNKNOWN, findings=tuple(overrule_across_sinks([*doubts, *report.findings])))


def _changed_stubs(report: Report, change: Change, prediction: Prediction) -> Iterator[str]:
    """Doubts about changed options of tables without a jar, if no restore or document covers the options."""
    stubs = {name.rpartition(".")[2] for name in prediction.stubs}
    judged = {key for each in report.findings if each.evidence or each.basis is Basis.DOCUMENT for key in each.claims}
    for each in change.script_differences:
        place, _, table = each.key.removesuffix(f"/{each.part}").partition("/")
        named = place == "table" and each.part in ("options", "connector") and each.key not in judged
        if named and table.rpartition(".")[2] in stubs:
            absent = ", ".join(prediction.stand_ins)
            yield (
                f"options of {table} changed, but the stand-in for its connector ignores options: pass the jar of "
                f"{absent} with --jar"
            )


def check_engines(old: Side, new: Side) -> Reports:
    """Judge the change for every engine, each in its default version.

    Args:
        old: The deployed side. The engine of this side is ignored.
        new: The proposed side. The engine of this side is ignored.

    Returns:
        A report per engine, worst first. Each report also contains the outcome on the other engine.

    Raises:
        ScriptError: A script contains no statement.
        InputError: A script contains no query.
    """
    # If both outcomes are equal, the report on Flink is first: it predicts the result of a restore.
    found = [check(old.on(engine), new.on(engine)) for engine in reversed(ENGINES)]
    others = dict(zip((report.engine for report in found), reversed(found), strict=True))
    named = (replace(report, other=(others[report.engine].engine, others[report.engine].outcome)) for report in found)
    return Reports.of(named)


def _other(change: Change) -> Outcome:
    """The outcome of a change by the rules alone."""
    try:
        return _roll_up(apply_precedence(_evaluate(change)))
    except RecursionError:
        return TOO_DEEP.outcome


def _roll_up(findings: Iterable[Finding]) -> Outcome:
    return Outcome.worst([finding.outcome for finding in findings if not finding.overruled_by])


def _evaluate(
    change: Change, restore: RestoreVerdict | None = None, upgrade: PlannedUpgrade | None = None
) -> list[tuple[Level, Finding]]:
    """Every finding after the engine's adjusters, with its precedence level."""
    engine = ENGINE_BY_NAME[change.engine]
    if upgrade is not None:
        return [(engine.level(rule), finding) for rule, finding in upgrade.findings()]
    if change.unchanged:
        found, certain, adjusters = _unchanged(change), set(), engine.unchanged_adjusters
    else:
        found, certain, adjusters = _found(change, engine), _certain(change), engine.finding_adjusters
    by_rules = tuple(found)
    spelled = any(finding.remedy is Remedy.EXPLAIN_PLAN for _, finding in by_rules)
    planned = () if restore is None else restore.findings(spelled)
    case = AdjusterContext(
        change,
        frozenset({*certain, *((rule.code, finding.sink) for rule, finding in planned)}),
        None if restore is None else restore.adjust,
    )
    adjusted = [(rule, _adjusted(finding, rule, case, adjusters)) for rule, finding in (*by_rules, *planned)]
    if not (restore and restore.is_proven) and all(finding.outcome in SAFE for _, finding in adjusted):
        adjusted = [(rule, _adjusted(finding, rule, case, engine.safe_finding_adjusters)) for rule, finding in adjusted]
    return [(engine.level(rule), finding) for rule, finding in adjusted]


def _environment_inputs(programs: Iterable[Program]) -> tuple[str, ...]:
    """Warn of inputs that both sides read from their environment and that were not compared."""
    found = dict.fromkeys(name for program in programs for name in program.inputs)
    if not found:
        return ()
    assumption = "values from the environment are assumed to be equal on both sides: "
    return (f"{assumption}{', '.join(found)}; pass them with --var or --file to compare them",)


def _in_batch(change: Change) -> bool:
    """True if each query of both sides runs in batch mode. Flink compiles no plan of such a job."""
    queries = [pipeline for program in change.programs for pipeline in program.pipelines]
    modes = {dict(each.settings).get("execution.runtime-mode", "").upper() for each in queries}
    return modes == {"BATCH"}


def _session(change: Change, outcome: Outcome) -> tuple[str, ...]:
    """Warn of a batch job, and of an unknown change to queries without an INSERT."""
    if _in_batch(change):
        return (f"{change.new.source}: {IN_BATCH}",)
    queries = [pipeline for program in change.programs for pipeline in program.pipelines]
    if outcome is not Outcome.UNKNOWN or not queries or any(each.sink.name for each in queries):
        return ()
    return (f"{change.new.source}: {NO_INSERT}",)


def _adjusted(finding: Finding, rule: Rule, case: AdjusterContext, adjusters: tuple[FindingAdjuster, ...]) -> Finding:
    for adjuster in adjusters:
        finding = adjuster(finding, rule, case)
    return finding


def _at_its_options(match: RuleMatch, change: Change) -> RuleMatch:
    """The match with the places of its options or settings."""
    if not match.options:
        return match
    before = change.old.place_of(match.options, match.before_span) or match.before_span
    after = change.new.place_of(match.options, match.after_span) or match.after_span
    return replace(match, before_span=before, after_span=after)


def _unchanged(change: Change) -> Iterator[tuple[Rule, Finding]]:
    rule = script.unchanged
    for match in rule.find(change):
        yield (
            rule,
            _finding(
                rule, match, match.verdicts.get(change.engine) or rule.verdicts[change.engine], change, change.engine
            ),
        )


def _found(change: Change, engine: Engine) -> Iterator[tuple[Rule, Finding]]:
    """Findings of every rule on its pairs, then a finding for each unclaimed difference."""
    claimed: set[str] = set()
    for rule, target in applicable_rules(change):
        if not (matches := tuple(rule.find(target))):
            continue
        for found in one_for_each_table(matches, rule, change):
            match = _at_its_options(found, change)
            claimed.update(match.claims)
            yield rule, _finding(rule, match, _verdict(rule, match, target, change, engine), target, engine.name)
    for difference in change.differences:
        if difference.key not in claimed:
            yield NOT_COVERED, _unclaimed(difference, change)


def _certain(change: Change) -> set[tuple[str, str | None]]:
    """Incompatible findings, by rule and sink, that remain if both sides declare the same tables."""
    alike = change.with_shared_declarations if change.declared_on_one_side else None
    again = () if alike is None else _evaluate(alike, None)
    return {(finding.rule, finding.sink) for _, finding in again if finding.outcome is Outcome.INCOMPATIBLE}


def _sink(target: Any) -> str | None:
    match target:
        case PipelinePair():
            return target.sink
        case OperatorPair():
            return target.pipeline.sink
    return None


def _verdict(rule: Rule, match: RuleMatch, target: Any, change: Change, engine: Engine) -> Verdict:
    """The rule's verdict on this engine, after the engine's adjusters."""
    verdict = match.verdicts.get(engine.name) or rule.verdicts[engine.name]
    for adjuster in engine.verdict_adjusters:
        verdict = adjuster(verdict, target, change)
    return verdict


def _finding(rule: Rule, match: RuleMatch, verdict: Verdict, target: Any, engine: str) -> Finding:
    of_target: tuple[Span | None, Span | None] = (None, None)
    spans = of_target
    if isinstance(target, OperatorPair | PipelinePair):
        of_target = target.old.span, target.new.span
        spans = clause_spans([each for each in target.differences if each.key in match.claims])
    return Finding.of(
        rule,
        verdict,
        match.message + match.notes.get(engine, ""),
        before=match.before,
        after=match.after,
        fates=tuple((metric, fate.under(verdict.outcome)) for metric, fate in match.fates),
        sink=_sink(target),
        before_span=match.before_span or spans[0] or of_target[0],
        after_span=match.after_span or spans[1] or of_target[1],
        operator=target.path if isinstance(target, OperatorPair) else "",
        remedy_tables=_tables(match) if verdict.remedy is Remedy.RESTART_SOURCE else (),
        claims=match.claims,
    )


def _tables(match: RuleMatch) -> tuple[str, ...]:
    """The tables whose declarations a match claims."""
    named = (key.removeprefix("table/").rpartition("/")[0] for key in match.claims if key.startswith("table/"))
    return tuple(dict.fromkeys(named))


def _unclaimed(difference: Difference, change: Change) -> Finding:
    before, after = differing_values(difference)
    spans = clause_spans([difference])
    undeclared = difference.part == "declared"
    remedy = (
        "and its definition on the other side is unknown; pass the definition with --catalog"
        if undeclared
        else "which no rule covers"
    )
    return Finding.of(
        NOT_COVERED,
        unknown(reason=Reason.UNDECLARED if undeclared else Reason.NOT_COVERED),
        f"{name_difference(difference, change)}, {remedy}",
        before=format_value(before),
        after=format_value(after),
        before_span=spans[0] or difference.before_span,
        after_span=spans[1] or difference.after_span,
    )
