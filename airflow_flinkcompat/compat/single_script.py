"""Reports on a single script: lint, a new job, and a job whose script was deleted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

from airflow_flinkcompat.compat.changes.format import format_query
from airflow_flinkcompat.compat.changes.query_form import calls, expressions
from airflow_flinkcompat.compat.engines.flink.validation.query import Query, faults
from airflow_flinkcompat.compat.refusals import old_style_refusals, refusals
from airflow_flinkcompat.compat.report import Finding, Report, tool_version
from airflow_flinkcompat.compat.rule import Example, Rule, windowed
from airflow_flinkcompat.compat.rule_builders.table_options import startup_positions
from airflow_flinkcompat.compat.rules import declarations, statements
from airflow_flinkcompat.compat.rules.functions import is_known
from airflow_flinkcompat.compat.rules.statements import unresolved
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.compat.verdict import Verdict, inferred, unknown
from airflow_flinkcompat.model import InputError, Outcome, Reason, Span
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.expressions import AggregateCall
from airflow_flinkcompat.plan.operators import segments, sources
from airflow_flinkcompat.plan.program import REFUSALS
from airflow_flinkcompat.sql import ScriptError

UNDECLARED_FUNCTION = Rule(
    code="undeclared-function",
    title="A function without a declaration",
    vvr=unknown(reason=Reason.OPAQUE),
    flink=unknown(reason=Reason.OPAQUE),
    rationale=(
        "The function is not built into Flink, and neither the script nor the project file declares it. The function "
        "may belong to a catalog, or its name may be mistyped. A comparison reports only undeclared functions that "
        "may keep state; a check of a single script reports every undeclared function."
    ),
    example=Example("", windowed("clean(customer), SUM(amount)").replace("BY customer", "BY clean(customer)")),
)


def lint(side: Side) -> tuple[Finding, ...]:
    """Findings in one script, worst first, with places in ``after_span``.

    Raises ScriptError if the script contains no statement, and InputError if it contains no query.
    """
    side.require_query()
    found = dict.fromkeys((*_refused(side), *_unread(side), *_unresolved(side), *_undeclared(side), *_called(side)))
    return tuple(sorted(found, key=lambda finding: -finding.outcome.rank))


def _refused(side: Side) -> Iterator[Finding]:
    for refusal in (*refusals(side.program), *statements.refusals_of_declarations(side), *old_style_refusals(side)):
        # The catalog is unknown, so an object that may exist there is no fault.
        # A Flink session begins without tables, but a platform keeps tables of earlier scripts.
        if not refusal.of_session or (refusal.certain and ENGINE_FACTS[side.engine].takes_commands):
            message = f"Flink {refusal.verb} the {refusal.what}: {refusal.message}"
            yield _finding(
                statements.program_refused, side, message, refusal.span, statements.program_verdicts(refusal)
            )
    for place, output in side.outputs[0].items():
        pipeline = side.program.pipelines[place]
        for fault in faults(Query(pipeline, output, side.program, side.flink_line)):
            if fault.undescribed:
                continue  # an unknown connector is not a fault of the script
            message = f"Flink {'refuses' if fault.certain else 'may refuse'} the statement: {fault.message}"
            yield _finding(
                statements.statement_refused,
                side,
                message,
                pipeline.span,
                statements.statement_verdicts(fault),
                output.sink,
            )


def undescribed_tables(side: Side) -> tuple[str, ...]:
    """Declared tables with unknown connectors, which decide if Flink accepts a statement."""
    queries = (
        Query(side.program.pipelines[n], each, side.program, side.flink_line) for n, each in side.outputs[0].items()
    )
    return tuple(dict.fromkeys(fault.undescribed for query in queries for fault in faults(query) if fault.undescribed))


def _unread(side: Side) -> Iterator[Finding]:
    for problem in (*side.program.problems, *side.outputs[1]):
        if problem.reason not in REFUSALS:
            yield _finding(statements.statement_not_read, side, problem.message, problem.span, {})


def _unresolved(side: Side) -> Iterator[Finding]:
    """Findings on queries with unresolved names, unless another finding already reports the query."""
    refused = refusals(side.program)
    unread = [each.span for each in side.program.problems if each.reason not in REFUSALS]
    for pipeline in side.program.pipelines:
        if any(span is not None and _within(span, pipeline.span) for span in unread):
            continue
        for query in unresolved(pipeline.sink):
            if not any(each.span == query.span and each.message.startswith(query.reason) for each in refused):
                sink = pipeline.sink.table.name if pipeline.sink.table else ""
                message = f"{format_query(sink)} cannot be resolved: {query.reason}"
                yield _finding(
                    statements.statement_not_read, side, message, query.span or pipeline.span, {}, sink or None
                )


def _within(span: Span, whole: Span | None) -> bool:
    if whole is None or span.source != whole.source:
        return False
    begins, ends = (span.line, span.column), (span.end_line, span.end_column)
    return (whole.line, whole.column) <= begins and ends <= (whole.end_line, whole.end_column)


def _called(side: Side) -> Iterator[Finding]:
    """Findings on functions that are neither built in nor declared, each at its first call."""
    found: dict[str, tuple[str, Span | None]] = {}
    for place, output in side.outputs[0].items():
        of_tables = {call.function for segment in segments(output) for call, _ in segment.functions}
        for call in calls(tuple(expressions(output))):
            if not is_known(call, side.program) and not functions.is_built_in(call.function):
                kind = "aggregate" if isinstance(call, AggregateCall) else "scalar"
                kind = "table" if call.function in of_tables else kind
                found.setdefault(call.function, (kind, call.span or side.program.pipelines[place].span))
    for name, (kind, span) in found.items():
        message = (
            f"{name} is not a built-in function and is not declared: if the name is correct, declare it, for "
            f'example functions = {{ {name} = "{kind}:java" }} in the project file'
        )
        yield _finding(UNDECLARED_FUNCTION, side, message, span, {})


def _undeclared(side: Side) -> Iterator[Finding]:
    for name, place in undeclared_tables(side).items():
        yield _finding(
            declarations.undeclared_table,
            side,
            declarations.UNDECLARED_MESSAGE.format(name),
            side.program.pipelines[place].span,
            {},
        )


def undeclared_tables(side: Side) -> Mapping[str, int]:
    """The undeclared tables that a script uses, each with the position of a query that uses it."""
    declared = {table.name for table in side.program.tables}
    found: dict[str, int] = {}
    for place, output in side.outputs[0].items():
        for name in (*(source.table for source in sources(output)), output.sink):
            if name and name not in declared:
                found.setdefault(name, place)
    return found


def _finding(
    rule: Rule, side: Side, message: str, span: Span | None, own: Mapping[str, Verdict], sink: str | None = None
) -> Finding:
    verdict = own.get(side.engine) or rule.verdicts[side.engine]
    return Finding.of(rule, verdict, message, sink=sink, after_span=span)


ADDED = Rule(
    code="deployment-added",
    title="The deployment is new",
    vvr=inferred(Outcome.COMPATIBLE, "there is no state yet"),
    flink=inferred(Outcome.COMPATIBLE, "there is no state yet"),
    rationale="Nothing is deployed, so there is no state to lose and no script to compare with. The new script is "
    "checked alone, as by flinkcompat lint.",
    example=Example("", windowed("customer, SUM(amount)")),
)


REMOVED = Rule(
    code="deployment-removed",
    title="The script of a deployment was deleted",
    vvr=inferred(Outcome.INCOMPATIBLE, "no script remains that could resume"),
    flink=inferred(Outcome.INCOMPATIBLE, "no script remains that could resume"),
    rationale=(
        "Deleting a script does not stop its job. The job keeps running until somebody stops it, but no script can "
        "resume its state."
    ),
    example=Example(windowed("customer, SUM(amount)"), ""),
)


RULES = (ADDED, REMOVED, UNDECLARED_FUNCTION)


NO_SCRIPT = hashlib.sha256(b"").hexdigest()
"""The hash of an empty script, which stands for a missing side."""


def added_report(new: Side, old_source: str) -> Report:
    """The report on a new deployment."""
    try:
        shown = tuple(each for each in lint(new) if each.outcome is not Outcome.COMPATIBLE)
    except RecursionError:
        raise InputError(f"{new.source}: an expression or query is nested too deeply to be read") from None
    message = "there is no deployed script to compare with: the script is checked alone"
    sides = (NO_SCRIPT, old_source), (new.sha256, new.source)
    report = _report(ADDED, message, new, *sides, startup_positions(new))
    outcome = Outcome.worst((report.outcome, *(each.outcome for each in shown)))
    sinks = tuple((sink, outcome) for sink, _ in report.sinks)
    return replace(report, outcome=outcome, findings=(*report.findings, *shown), sinks=sinks)


def removed_report(old: Side, new_source: str) -> Report:
    """The report on a deployment whose script was deleted."""
    message = "the script was deleted, but its job keeps running until somebody stops it"
    return _report(REMOVED, message, old, (old.sha256, old.source), (NO_SCRIPT, new_source), ())


def _report(
    rule: Rule,
    message: str,
    side: Side,
    old: tuple[str, str],
    new: tuple[str, str],
    sources: tuple[tuple[str, str], ...],
) -> Report:
    verdict = rule.verdicts[side.engine]
    return Report(
        outcome=verdict.outcome,
        engine=side.engine,
        engine_version=side.version,
        findings=(Finding.of(rule, verdict, message),),
        old_sha256=old[0],
        new_sha256=new[0],
        old_source=old[1],
        new_source=new[1],
        tool_version=tool_version(),
        sinks=tuple((sink, verdict.outcome) for sink in _sinks(side)),
        sources=sources,
    )


def _sinks(side: Side) -> tuple[str, ...]:
    """The sinks of a side; empty if its script cannot be parsed."""
    try:
        return tuple(dict.fromkeys(output.sink for output in side.outputs[0].values()))
    except (RecursionError, ScriptError):
        return ()
