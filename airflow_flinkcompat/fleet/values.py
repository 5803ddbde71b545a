"""Results for the deployments of a project, as immutable values for all output formats.

Annotations are findings with their places in files: the common form of SARIF, annotations, code quality and lint.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from airflow_flinkcompat.compat import Finding, Report, ReportContext
from airflow_flinkcompat.compat.gate import ChangeIdentity
from airflow_flinkcompat.compat.report import PLANNED
from airflow_flinkcompat.compat.reports.advice import CONSEQUENCES, NO_CONTEXT
from airflow_flinkcompat.compat.reports.sections import format_excerpt, format_inline
from airflow_flinkcompat.model import AppliedWaiver, Outcome, Span, WaiverState
from airflow_flinkcompat.project.job_options import FAIL_ON

READ = "read"
"""Result of a script in which ``lint`` found nothing."""
PASSED, FAILED, BAD_INPUT, OUT_OF_REACH = range(4)
"""Exit codes, best first."""


class Status(StrEnum):
    """Status of a deployment in a review.

    ``LINTED``: the script was read without a comparison. ``STOPPED``: the deployment was deleted, and the project file
    states that its job was stopped.
    """

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    ADDED = "added"
    DELETED = "deleted"
    STOPPED = "stopped"
    LINTED = "linted"
    UNREADABLE = "not readable"
    UNREACHABLE = "out of reach"


class Severity(StrEnum):
    """Urgency of an annotation. ``NOTE`` is used for waived findings."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class InputFault:
    """Fault of a script that cannot be read or deployed; line and column are counted from 1.

    ``path`` is the file, from the root of the repository; "" for the script.
    """

    message: str
    line: int = 1
    column: int = 1
    path: str = ""


@dataclass(frozen=True)
class DeploymentReview:
    """Result of one deployment.

    Attributes:
        name: The deployment, or the path of a script without a deployment.
        script: The path of the proposed script, or else of the project file, from the root of the repository.
        baseline: Description of the baseline; "" without a comparison.
        reports: The report of each requested engine, worst first.
        faults: Reasons for a missing verdict, or faults that prevent a deployment regardless of the verdict.
        branch: The branch that the gate in Airflow would take, for each engine; empty if the gate would fail.
        action: Description of the gate's action.
        known: Facts about the deployment for the advice in the report.
        change: Digests of both sides, which waivers must match; None without a comparison.
        files: Paths of the catalog and of a program's files from the root of the repository, by name in messages.
        stopped: The project file's text about the stopped job; "" without an entry.
    """

    name: str
    status: Status
    script: str
    baseline: str = ""
    reports: tuple[Report, ...] = ()
    faults: tuple[InputFault, ...] = ()
    branch: tuple[str, ...] = ()
    action: str = ""
    known: ReportContext = NO_CONTEXT
    change: ChangeIdentity | None = None
    notes: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    stopped: str = ""

    @property
    def outcome(self) -> Outcome | None:
        """The worst outcome; None if nothing was judged."""
        return Outcome.worst(report.outcome for report in self.reports) if self.reports else None

    @property
    def gate_outcome(self) -> Outcome | None:
        """The worst outcome apart from waived findings; None if nothing was judged."""
        return Outcome.worst(report.gate_outcome for report in self.reports) if self.reports else None

    @property
    def ground(self) -> str:
        """Basis of the worst verdict; "" if Flink's planner was not asked."""
        return self.reports[0].ground if self.reports else ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Deciding findings, starting with the worst report; a finding of several engines appears once."""
        found: dict[tuple[object, ...], Finding] = {}
        for report in self.reports:
            for each in report.deciding:
                found.setdefault((each.rule, each.message, each.after_span, each.is_waived), each)
        return tuple(found.values())

    @property
    def sentence(self) -> str:
        """The most important fact on one line, with masked secrets."""
        if self.faults:
            return format_inline(self.faults[0].message)
        if self.status is Status.UNCHANGED:
            return "nothing that affects a running job changed"
        if self.status is Status.STOPPED:
            return format_inline(f"deleted, and its job was stopped according to the project file: {self.stopped}")
        # If only some findings are waived, show the worst finding that is left.
        left = self.gate_outcome not in (self.outcome, Outcome.COMPATIBLE)
        decides = self.gate_outcome if left else self.outcome
        found = (each for each in self.findings if each.outcome is decides and not (left and each.is_waived))
        worst = next(found, None)
        if worst is None or (self.status is Status.LINTED and worst.outcome is Outcome.COMPATIBLE):
            return "nothing found"
        return format_inline(worst.message)

    def exit_code(self, fail_on: str) -> int:
        """The exit code of the deployment for the gate ``fail_on``."""
        if self.status is Status.UNREACHABLE:
            return OUT_OF_REACH
        if self.faults:
            return BAD_INPUT
        if self.status is Status.DELETED:  # the job keeps running, regardless of fail_on
            return FAILED
        gate, outcome = FAIL_ON[fail_on], self.gate_outcome
        fails = gate is not None and outcome is not None and outcome.rank >= gate.rank
        return FAILED if fails else PASSED


@dataclass(frozen=True)
class FleetDiff:
    """Results of all requested deployments.

    Attributes:
        command: ``diff``, ``plan`` or ``lint``.
        project: The path of the project file from the root of the repository; "" without a project file.
        against: Description of the baselines; "" without a comparison.
        deployments: The reviews in the order of the project file.
    """

    command: str
    project: str
    against: str
    fail_on: str
    deployments: tuple[DeploymentReview, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """The worst exit code of all deployments."""
        return max((each.exit_code(self.fail_on) for each in self.deployments), default=PASSED)

    @property
    def summary(self) -> str:
        """Number of deployments with each result, on one line."""
        words = Counter(result_label(each) for each in self.deployments)
        what = "script" if self.command == "lint" else "deployment"
        total = len(self.deployments)
        counts = ", ".join(f"{count} {word}" for word, count in words.items())
        planned = f"; {self._planned}" if self.command == "lint" and self._planned else ""
        return f"{total} {what}{'' if total == 1 else 's'}" + (f": {counts}" if counts else "") + planned

    @property
    def _planned(self) -> str:
        """Sentence about the scripts that Flink planned; "" if no script could be read."""
        read = [each.ground for each in self.deployments if each.reports]
        if not read:
            return ""
        grounds = Counter(each for each in read if each.startswith(PLANNED))
        total = len(self.deployments)
        if not grounds:
            return f"Flink did not plan {'it' if total == 1 else 'them'}"
        if len(grounds) == 1 and grounds.total() == total:
            return next(iter(grounds))
        return ", ".join(f"{count} {ground}" for ground, count in grounds.items())


def result_of(review: DeploymentReview) -> str:
    """Result of a deployment: the outcome if the deployment was judged, else the status."""
    if review.faults and review.reports:
        return "not deployable"
    if review.status in (Status.CHANGED, Status.LINTED) and review.outcome is not None:
        linted = review.status is Status.LINTED and review.outcome is Outcome.COMPATIBLE
        return READ if linted else review.outcome.value
    return review.status.value


def result_label(review: DeploymentReview) -> str:
    """Result in words, with a hint if waivers improve the outcome; see :func:`result_of`."""
    result, left = result_of(review), review.gate_outcome
    if left is None or left is review.outcome:
        return result
    if left is Outcome.COMPATIBLE:
        return f"{result} (waived)"
    judged = review.outcome is not None and result == review.outcome.value
    return f"{left.value} ({result} waived)" if judged else f"{result} (waived in part)"


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
        """The message with the old clause, the new clause and the effect, for readers without the report."""
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
