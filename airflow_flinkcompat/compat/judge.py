"""Judges a change: every rule over every pair, what nothing claimed, and who decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from airflow_flinkcompat.compat import not_covered
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.clauses import plain
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.changes.parts import Difference
from airflow_flinkcompat.compat.changes.ranking import WINDOW_TOP_N_DECIDES
from airflow_flinkcompat.compat.flink import restores as flink
from airflow_flinkcompat.compat.flink.jobs import disturbs
from airflow_flinkcompat.compat.flink.keys import keys_may_move
from airflow_flinkcompat.compat.outcome import Basis, Outcome, Reason
from airflow_flinkcompat.compat.planner import Explained, Plans
from airflow_flinkcompat.compat.precedence import Fired, contests
from airflow_flinkcompat.compat.programs import beyond_the_pages, by_rows, doubt
from airflow_flinkcompat.compat.refusals import notes
from airflow_flinkcompat.compat.report import Finding, Report, Reports, tool_version
from airflow_flinkcompat.compat.reports.entries import operator_reports, sink_outcomes
from airflow_flinkcompat.compat.rule import Hit, Level, Rule, Scope, Verdict
from airflow_flinkcompat.compat.rules import ALL, BY_CODE
from airflow_flinkcompat.compat.side import ENGINES, InputError, Side
from airflow_flinkcompat.compat.source_starts import beginnings

_ELSEWHERE = {
    True: "use a placeholder such as ${conn.my_connection.password}",
    False: "take it from the environment: os.environ['NAME']",
}
TOO_DEEP = Finding(
    rule="statement-not-read",
    title=BY_CODE["statement-not-read"].title,
    outcome=Outcome.UNKNOWN,
    message="an expression or query is nested too deeply to be compared",
    reason=Reason.NOT_READ,
)


def check(
    old: Side | str,
    new: Side | str,
    engine: str | None = None,
    *,
    with_other_engine: bool = False,
    plans: Plans | None = None,
) -> Report:
    """What the change from ``old`` to ``new`` does to stored state.

    Strings are short for sides. ``engine`` overrides the sides' engine (default ``vvr``); the proposed side's
    engine judges.
    ``with_other_engine`` adds what the other engine would say. ``plans``: what Flink compiled of both sides, for engine
    ``flink``; they sharpen the judgement. Raises
    :class:`~airflow_flinkcompat.sql.ScriptError` where a
    script holds no statement, :class:`~airflow_flinkcompat.compat.side.InputError` where it holds no query.
    """
    sides = tuple(
        Side(side, engine=engine or "vvr", source=name) if isinstance(side, str) else side.on(engine or side.engine)
        for side, name in ((old, "old"), (new, "new"))
    )
    sides = (sides[0], replace(sides[1], beside=sides[0]))
    change = Change(*sides)
    if plans is not None and change.engine != "flink":
        raise InputError(f"compiled plans tell of engine flink, the change is judged for {change.engine}")
    if plans is not None and any(side.language != "sql" for side in sides):
        raise InputError("compiled plans tell of SQL scripts only: how Flink plans a program they do not show")
    explained = None if plans is None else Explained(change, plans)
    try:
        for side in sides:
            side.require_query()
        fired = _fired(change, explained)
        findings = _decided(fired)
        sinks, entries = sink_outcomes(change, fired), operator_reports(change, fired)
    except RecursionError:
        findings, sinks, entries = [TOO_DEEP], (), ()
    outcome = _worst(findings)
    other = None
    if with_other_engine:
        name = next(engine for engine in ENGINES if engine != change.engine)
        other = (name, _other(Change(sides[0].on(name), sides[1].on(name))))
    return Report(
        outcome=outcome,
        engine=change.engine,
        engine_version=change.new.version,
        findings=tuple(sorted(findings, key=lambda f: (bool(f.overruled_by), -f.outcome.rank))),
        old_sha256=change.old.sha256,
        new_sha256=change.new.sha256,
        old_source=change.old.source,
        new_source=change.new.source,
        other=other,
        warnings=tuple(
            f"{secret.span}: a literal secret ({secret.key}); {_ELSEWHERE[side.language == 'sql']}"
            for side in sides
            for secret in side.secrets
        )
        + tuple(dict.fromkeys(note for program in change.programs for note in notes(program)))
        + (() if explained is None else explained.warnings),
        tool_version=tool_version(),
        sinks=sinks,
        operators=entries,
        sources=beginnings(change.programs[1]),
    )


def check_engines(old: Side, new: Side) -> Reports:
    """What the change does to stored state on every engine, each of the version that is judged by default.

    Args:
        old: The deployed side; its own engine does not matter.
        new: The proposed side; neither does its own.

    Returns:
        A report per engine, worst first; each names the other's outcome too.

    Raises:
        ScriptError: A script holds no statement.
        InputError: A script holds no query.
    """
    # Where both are as bad the report on Flink comes first: it tells how a restore would end.
    found = [check(old.on(engine), new.on(engine)) for engine in reversed(tuple(ENGINES))]
    others = dict(zip((report.engine for report in found), reversed(found), strict=True))
    named = (replace(report, other=(others[report.engine].engine, others[report.engine].outcome)) for report in found)
    return Reports(tuple(sorted(named, key=lambda report: -report.outcome.rank)))


def _other(change: Change) -> Outcome:
    """What another engine says of a change."""
    try:
        return _worst(_decided(_fired(change, None)))
    except RecursionError:
        return TOO_DEEP.outcome


def _worst(findings: list[Finding]) -> Outcome:
    return Outcome.worst(finding.outcome for finding in findings if not finding.overruled_by)


def _fired(change: Change, explained: Explained | None) -> list[tuple[Level, Finding]]:
    """Every finding with its rule's level; on ``flink``, where the worst wins, all are of one level."""
    planned = () if explained is None else explained.findings
    if change.unchanged:
        rule = BY_CODE["unchanged"]
        said = [(hit, {**rule.verdicts, **hit.verdicts}[change.engine]) for hit in rule.find(change)]
        same = [_finding(rule, hit, verdict, None) for hit, verdict in said]
        return [(rule.level, _numbered(finding, change)) for finding in (*same, *planned)]
    claimed: set[str] = set()
    fired: list[tuple[Level, Finding]] = []
    for rule in ALL:
        if rule.level is Level.UNCHANGED:
            continue
        for target in _targets(rule.scope, change):
            for hit in rule.find(target):
                verdict = _verdict(rule, hit, target, change)
                claimed.update(hit.claims)
                if verdict is not None:
                    fired.append((rule.level, _finding(rule, hit, verdict, target)))
    for difference in change.differences:
        if difference.key not in claimed:
            fired.append((Level.REST, _unclaimed(difference)))
    fired = [(level, _doubted(finding, doubt(finding, change))) for level, finding in fired]
    if change.declared_on_one_side:
        fired = _told_without_declaration(fired, change)
    if change.engine == "flink":
        every = (*(finding for _, finding in fired), *planned)
        fired = [(Level.REST, _as_a_job(finding, change, explained)) for finding in every]
    return fired


def _told_without_declaration(fired: list[tuple[Level, Finding]], change: Change) -> list[tuple[Level, Finding]]:
    """What is refused or wrong by the types of a table that one side does not declare is unknown.

    It stays where it is found just so with the table declared on both sides.
    """
    alike = change.declared_alike
    again = () if alike is None else _fired(alike, None)
    stays = {(found.rule, found.sink) for _, found in again if found.outcome is Outcome.INCOMPATIBLE}
    tables = ", ".join(sorted(change.declared_on_one_side))
    why = f"{tables} is declared on one side only, or its declaration on the other was not read; pass it with --catalog"

    def told(finding: Finding) -> Finding:
        if finding.outcome is not Outcome.INCOMPATIBLE or (finding.rule, finding.sink) in stays:
            return finding
        return replace(
            finding,
            outcome=Outcome.UNKNOWN,
            reason=Reason.UNDECLARED,
            basis=Basis.INFERRED,
            consequence=None,
            message=f"{finding.message}, as far as it can be told: {why}",
        )

    return [(level, told(finding)) for level, finding in fired]


def _targets(scope: Scope, change: Change) -> Iterator[Any]:
    match scope:
        case Scope.SCRIPT:
            yield change
        case Scope.PIPELINE:
            yield from change.pipelines
        case Scope.OPERATOR:
            for pipeline in change.pipelines:
                yield from pipeline.operators


def _sink(target: Any) -> str | None:
    match target:
        case PipelinePair():
            return target.sink
        case OperatorPair():
            return target.pipeline.sink
    return None


def _verdict(rule: Rule, hit: Hit, target: Any, change: Change) -> Verdict | None:
    """The rule's answer on this engine, sharpened where the pair says how a restore ends; None: nothing to say."""
    if change.engine in rule.silent:
        return None
    verdict = hit.verdicts.get(change.engine) or rule.verdicts[change.engine]
    if change.engine != "flink":
        return beyond_the_pages(verdict) if isinstance(target, OperatorPair) and by_rows(target) else verdict
    if verdict.outcome is Outcome.INCOMPATIBLE and verdict.consequence is None and isinstance(target, OperatorPair):
        sides = target.aggregations
        found = flink.over_consequence(target.old, target.new)
        if sides is not None:
            found = flink.consequence(*sides, change.programs)
        verdict = replace(verdict, consequence=found)
    return verdict.on(change.engine, change.new.version)


def _finding(rule: Rule, hit: Hit, verdict: Verdict, target: Any) -> Finding:
    spans = (target.old.span, target.new.span) if isinstance(target, OperatorPair | PipelinePair) else (None, None)
    return Finding(
        rule=rule.code,
        title=rule.title,
        outcome=verdict.outcome,
        message=hit.message,
        before=hit.before,
        after=hit.after,
        basis=verdict.basis,
        source=verdict.grounds,
        evidence=verdict.evidence,
        reason=verdict.reason,
        consequence=verdict.consequence,
        fates=tuple((metric, fate.under(verdict.outcome)) for metric, fate in hit.fates),
        sink=_sink(target),
        before_span=hit.before_span or spans[0],
        after_span=hit.after_span or spans[1],
        operator=target.path if isinstance(target, OperatorPair) else "",
    )


def _unclaimed(difference: Difference) -> Finding:
    return Finding(
        rule=not_covered.RULE.code,
        title=not_covered.RULE.title,
        outcome=Outcome.UNKNOWN,
        message=f"{difference.key}: no rule covers this difference",
        before=plain(difference.before),
        after=plain(difference.after),
        basis=Basis.INFERRED,
        reason=Reason.NOT_COVERED,
        before_span=difference.before_span,
        after_span=difference.after_span,
    )


def _decided(fired: Fired) -> list[Finding]:
    """Marks what another finding decides over: in a sink's pipeline the highest level, within it the worst."""
    return _across([finding for group, deciders in contests(fired) for finding in _marked(group, deciders)])


def _marked(group: Fired, deciders: Fired) -> list[Finding]:
    worst = max((finding for _, finding in deciders), key=lambda finding: finding.outcome.rank)
    deciding = {id(finding) for _, finding in deciders}
    ranks = {finding.rule: finding.outcome.rank for _, finding in group}
    marked = []
    for _, finding in group:
        loses = finding.outcome.rank < worst.outcome.rank or (
            id(finding) not in deciding and finding.outcome is not worst.outcome
        )
        page = WINDOW_TOP_N_DECIDES.get(finding.rule, "")
        by = page if ranks.get(page, -1) > finding.outcome.rank else worst.rule
        marked.append(replace(finding, overruled_by=by) if loses else finding)
    return marked


def _across(findings: list[Finding]) -> list[Finding]:
    """Between sinks and the script as a whole the worst decides."""
    counting = [finding for finding in findings if not finding.overruled_by]
    if not counting:
        return findings
    worst = max(counting, key=lambda finding: finding.outcome.rank)
    return [
        replace(finding, overruled_by=worst.rule)
        if not finding.overruled_by and finding.outcome.rank < worst.outcome.rank
        else finding
        for finding in findings
    ]


def _as_a_job(finding: Finding, change: Change, explained: Explained | None) -> Finding:
    """A finding in the light of the whole job that open-source Flink plans."""
    finding = _reordered(_shared(finding, change), change)
    return _numbered(finding if explained is None else explained.settled(finding), change)


def _numbered(finding: Finding, change: Change) -> Finding:
    """Ids from a counter differ from start to start: on ``flink`` even an unchanged script is refused (measured)."""
    if change.engine != "flink" or finding.outcome is not Outcome.COMPATIBLE:
        return finding
    settings = {p.settings for program in change.programs for p in program.pipelines}
    always = any(dict(each).get("table.exec.uid.generation", "").upper() == "ALWAYS" for each in settings)
    return _doubted(finding, "table.exec.uid.generation = ALWAYS numbers operators anew") if always else finding


def _shared(finding: Finding, change: Change) -> Finding:
    """Queries of one job are planned together; what comes or goes in one of them may reach the others (measured)."""
    why = "other queries of its statement set may be planned otherwise with it"
    changed = change.pipelines_into(finding.sink)
    return _doubted(finding, why) if any(disturbs(pair, change) for pair in changed) else finding


def _reordered(finding: Finding, change: Change) -> Finding:
    """What is put out may decide in which order keys are kept (seen in plans of 2.3.0)."""
    why = "the order of the keys in state may follow the columns that are put out"
    return _doubted(finding, why) if any(map(keys_may_move, change.pipelines_into(finding.sink))) else finding


def _doubted(finding: Finding, why: str) -> Finding:
    if not why or finding.outcome not in (Outcome.COMPATIBLE, Outcome.PARTIAL):
        return finding
    message = f"{finding.message} ({why})"
    return replace(finding, outcome=Outcome.UNKNOWN, reason=Reason.NOT_COVERED, message=message)
