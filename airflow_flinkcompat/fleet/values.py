"""Results for the deployments of a project, as one frozen value for all formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from airflow_flinkcompat.compat import Finding, Report, ReportContext
from airflow_flinkcompat.compat.gate import ChangeIdentity
from airflow_flinkcompat.compat.report import PLANNED
from airflow_flinkcompat.compat.reports.advice import NO_CONTEXT
from airflow_flinkcompat.compat.reports.sections import format_inline
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.project.job_options import FAIL_ON

READ = "read"
"""Result of a script that ``lint`` passes."""
PASSED, FAILED, BAD_INPUT, OUT_OF_REACH = range(4)
"""The exit codes, best first."""


class Status(StrEnum):
    """Result of a deployment.

    ``LINTED``: it was read without a comparison. ``STOPPED``: it was deleted, and the file states that its
    job was stopped.
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
    """Urgency of an annotation; a note is for a waived finding."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class InputFault:
    """Fault of a script that cannot be read or deployed, with its remedy and place (from 1).

    ``path`` is the file, from the root of the repository, if it is not the script.
    """

    message: str
    line: int = 1
    column: int = 1
    path: str = ""


@dataclass(frozen=True)
class DeploymentReview:
    """Result of one deployment.

    Attributes:
        name: The deployment; the path of a script without one.
        script: The proposed script from the root of the repository; if there is none, the project file.
        baseline: Its baseline, in words; "" for nothing.
        reports: The verdict of each requested engine, worst first.
        faults: Reasons for a missing verdict, or faults that prevent a deployment whatever the verdict.
        branch: The branch that the gate in Airflow would take, for each engine; empty if it would reach none.
        action: The gate's action, in words.
        known: Facts in addition to the change, for the report.
        change: Digests of both sides, to which waivers are bound; None without a comparison.
        files: Paths, from the root of the repository, of its catalog and of a program's files, by their names in
        messages.
        stopped: The project file's text about the end of its job; "" without one.
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
        """The worst outcome without waived findings; None if nothing was judged."""
        return Outcome.worst(report.gate_outcome for report in self.reports) if self.reports else None

    @property
    def ground(self) -> str:
        """Reader of the scripts, from the worst report; "" if Flink's planner was not asked."""
        return self.reports[0].ground if self.reports else ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Deciding findings, those of the worst report first; findings that two engines share appear once."""
        found: dict[tuple[object, ...], Finding] = {}
        for report in self.reports:
            for each in report.deciding:
                found.setdefault((each.rule, each.message, each.after_span, each.is_waived), each)
        return tuple(found.values())

    @property
    def sentence(self) -> str:
        """The most important fact on one line, secrets masked."""
        if self.faults:
            return format_inline(self.faults[0].message)
        if self.status is Status.UNCHANGED:
            return "nothing that matters to a running job changed"
        if self.status is Status.STOPPED:
            return format_inline(f"deleted, and its job was stopped, as the file says: {self.stopped}")
        # Where something of it is waived, and not all: what is left.
        left = self.gate_outcome not in (self.outcome, Outcome.COMPATIBLE)
        decides = self.gate_outcome if left else self.outcome
        found = (each for each in self.findings if each.outcome is decides and not (left and each.is_waived))
        worst = next(found, None)
        if worst is None or (self.status is Status.LINTED and worst.outcome is Outcome.COMPATIBLE):
            return "nothing found"
        return format_inline(worst.message)

    def exit_code(self, fail_on: str) -> int:
        """The deployment's exit code under the gate ``fail_on``."""
        if self.status is Status.UNREACHABLE:
            return OUT_OF_REACH
        if self.faults:
            return BAD_INPUT
        if self.status is Status.DELETED:  # its job keeps running, whichever outcome fails
            return FAILED
        gate, outcome = FAIL_ON[fail_on], self.gate_outcome
        fails = gate is not None and outcome is not None and outcome.rank >= gate.rank
        return FAILED if fails else PASSED


@dataclass(frozen=True)
class FleetDiff:
    """Results of all requested deployments.

    Attributes:
        command: ``diff``, ``plan`` or ``lint``.
        project: The project file from the root of the repository; "" if there is none.
        against: The baseline of the deployments, in words; "" for nothing.
        deployments: The reviews in the order of the file.
    """

    command: str
    project: str
    against: str
    fail_on: str
    deployments: tuple[DeploymentReview, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """The worst exit code of the deployments: 0 passed, 1 gate, 2 input, 3 ledger out of reach."""
        return max((each.exit_code(self.fail_on) for each in self.deployments), default=PASSED)

    @property
    def summary(self) -> str:
        """Number of deployments of each kind, on one line."""
        words = Counter(result_label(each) for each in self.deployments)
        what = "script" if self.command == "lint" else "deployment"
        total = len(self.deployments)
        counts = ", ".join(f"{count} {word}" for word, count in words.items())
        planned = f"; {self._planned}" if self.command == "lint" and self._planned else ""
        return f"{total} {what}{'' if total == 1 else 's'}" + (f": {counts}" if counts else "") + planned

    @property
    def _planned(self) -> str:
        """The scripts that Flink planned; empty if none could be read."""
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
    """The word for a deployment's result: its outcome if it was judged, else its status."""
    if review.faults and review.reports:
        return "not deployable"
    if review.status in (Status.CHANGED, Status.LINTED) and review.outcome is not None:
        linted = review.status is Status.LINTED and review.outcome is Outcome.COMPATIBLE
        return READ if linted else review.outcome.value
    return review.status.value


def result_label(review: DeploymentReview) -> str:
    """The word of :func:`result_of` for people, with the outcome after waivers if that is better."""
    result, left = result_of(review), review.gate_outcome
    if left is None or left is review.outcome:
        return result
    if left is Outcome.COMPATIBLE:
        return f"{result} (waived)"
    judged = review.outcome is not None and result == review.outcome.value
    return f"{left.value} ({result} waived)" if judged else f"{result} (waived in part)"
