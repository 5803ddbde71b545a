"""Findings with their places in files, which all service formats and the editor use."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from airflow_flinkcompat.compat import Finding
from airflow_flinkcompat.compat.reports.advice import CONSEQUENCES
from airflow_flinkcompat.compat.reports.sections import format_excerpt, format_inline
from airflow_flinkcompat.fleet.values import DeploymentReview, FleetDiff, Severity, Status
from airflow_flinkcompat.model import AppliedWaiver, Outcome, Span, WaiverState
from airflow_flinkcompat.project.job_options import FAIL_ON

BAD_INPUT_RULE = "input-not-readable"
OUT_OF_REACH_RULE = "ledger-out-of-reach"


@dataclass(frozen=True)
class Annotation:
    """One finding, with its place in the proposed script, the catalog, or a file of a program.

    Attributes:
        deployment: The deployment of the script.
        severity: ``ERROR`` if the finding fails the gate, ``NOTE`` if it is waived, else ``WARNING``.
        title: The title of the rule.
        message: The text of the finding, with masked secrets.
        path: The path of the file from the root of the repository.
        column: The first column, from 1, in characters.
        end_column: The column of the last character; None if only the beginning is known.
        fingerprint: A digest that stays the same if a commit moves the lines of the finding.
        finding: The finding of a rule; None for a fault of the input.
        ground: The basis of the verdict; "" if Flink's planner was not asked.
        disagrees: The outcome of the rules alone, if the planner's answer changes the outcome.
    """

    deployment: str
    severity: Severity
    rule: str
    title: str
    message: str
    path: str
    line: int
    column: int
    end_line: int
    end_column: int | None
    fingerprint: str
    finding: Finding | None = None
    ground: str = ""
    disagrees: Outcome | None = None

    @property
    def waiver(self) -> AppliedWaiver | None:
        """The waiver of the finding."""
        return None if self.finding is None else self.finding.waiver

    @property
    def explained(self) -> str:
        """The message with old and new clause and the effect, for readers without the report."""
        if self.finding is None:
            return self.message
        parts = [self.message]
        clauses = {"before": format_excerpt(self.finding.before), "after": format_excerpt(self.finding.after)}
        if any(clauses.values()):
            parts += [f"{side}: {clause or '-'}" for side, clause in clauses.items()]
        if self.finding.consequence is not None:
            parts.append(f"effect: {CONSEQUENCES[self.finding.consequence]}")
        return "; ".join(parts)


def annotations_of(fleet: FleetDiff) -> tuple[Annotation, ...]:
    """Annotations of all faults and findings that need attention, by deployment."""
    seen: Counter[str] = Counter()
    found = []
    for review in fleet.deployments:
        for severity, rule, title, message, span, clause, finding in _rows(review, fleet.fail_on):
            identity = "\0".join((fleet.project, review.name, rule, " ".join(clause.lower().split())))
            seen[identity] += 1
            digest = hashlib.sha256(f"{identity}\0{seen[identity]}".encode()).hexdigest()[:32]
            waiver = None if finding is None else finding.waiver
            shown = format_inline(message if waiver is None else f"{message} ({_of_waiver(waiver)})")
            place = (span.source, span.line, span.column, span.end_line, span.end_column or None)
            disagrees = review.reports[0].read_outcome if review.reports else None
            given = (finding, review.ground, disagrees)
            found.append(Annotation(review.name, severity, rule, title, shown, *place, digest, *given))
    return tuple(found)


def _of_waiver(applied: AppliedWaiver) -> str:
    waiver = applied.waiver
    match applied.state:
        case WaiverState.HOLDS:
            return f"waived by {waiver.by} until {waiver.until}: {waiver.reason}"
        case WaiverState.EXPIRED:
            return f"the waiver by {waiver.by} expired on {waiver.until}"
    return f"the waiver by {waiver.by} does not apply: it lacks even_silently_wrong = true"


def _rows(
    review: DeploymentReview, fail_on: str
) -> Iterator[tuple[Severity, str, str, str, Span, str, Finding | None]]:
    """Rows of severity, rule, title, message, place, identifying clause, and finding."""
    for fault in review.faults:
        away = review.status is Status.UNREACHABLE
        rule, title = (
            (OUT_OF_REACH_RULE, "The ledger is out of reach") if away else (BAD_INPUT_RULE, "The input cannot be used")
        )
        place = Span(fault.path or review.script, fault.line, fault.column, fault.line, 0)
        message = fault.message.removeprefix(f"{place}: ")
        yield Severity.ERROR, rule, title, message, place, message, None
    gate = Outcome.INCOMPATIBLE if review.status is Status.DELETED else FAIL_ON[fail_on]
    for finding in review.findings:
        if finding.outcome is not Outcome.COMPATIBLE:
            fails = gate is not None and finding.outcome.rank >= gate.rank
            severity = Severity.NOTE if finding.is_waived else Severity.ERROR if fails else Severity.WARNING
            message = finding.message.removeprefix(f"{finding.after_span}: ")
            clause = finding.after or finding.before or message
            place = _place(finding, review)
            yield severity, finding.rule, finding.title, message, place, clause, finding


def _place(finding: Finding, review: DeploymentReview) -> Span:
    span = finding.after_span
    path = None if span is None else {**review.files, review.script: review.script}.get(span.source)
    if span is None or path is None:
        return Span(review.script, 1, 1, 1, 0)
    return Span(path, span.line, span.column, span.end_line, span.end_column)
