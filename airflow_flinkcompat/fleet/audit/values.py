"""Values of an audit: pairs, rows, and all rows counted by outcome and reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from airflow_flinkcompat.fleet.values import BAD_INPUT, FAILED, PASSED
from airflow_flinkcompat.model import JobSpec, Outcome, PlannerMode
from airflow_flinkcompat.project.job_options import FAIL_ON

MOST_KEPT = 200
"""Number of a group's rows that are displayed; the others are counted, and only the JSON has them all."""
_MOST_MESSAGES = 500
"""Maximum number of different messages that a group counts; each script may have its own."""


class AuditResult(StrEnum):
    """Result of a pair, in the order in which results need attention."""

    INCOMPATIBLE = "incompatible"
    UNREADABLE = "unreadable"
    UNKNOWN = "unknown"
    PARTIAL = "partial"
    COMPATIBLE = "compatible"
    NO_JOB = "no job"


@dataclass(frozen=True)
class AuditPair:
    """A job's present and future version.

    Attributes:
        name: The deployment, or the path of the script; in a history with its commit.
        old: The present job; None if it cannot be read.
        new: The future job, whose engine and version judge.
        engine_named: True if an engine is named for the job; else each engine judges it.
        fault: The reason why the pair cannot be judged; "" if it can.
    """

    name: str
    old: JobSpec | None = None
    new: JobSpec | None = None
    engine_named: bool = True
    fault: str = ""
    reason: str = "cannot-be-read"
    planner: PlannerMode = "never"
    jars: tuple[Path, ...] = ()


@dataclass(frozen=True)
class EngineOutcome:
    """Verdict of one engine about a pair: the versions of both sides, and the outcome.

    ``ground`` names who read the scripts, "" if Flink's planner was not asked; ``disagrees`` is the outcome by the
    rules alone, if the planner's answer changes it.
    """

    engine: str
    old_version: str
    new_version: str
    outcome: Outcome
    ground: str = ""
    disagrees: Outcome | None = None


@dataclass(frozen=True)
class Cause:
    """One reason of a result; secrets are masked.

    Attributes:
        reason: The code of the deciding rule, or of the reason why the pair is not judged.
        message: Its first message, on one line.
        place: Its place in the new script, or else in the old one; "" if it has none.
        consequence: The result in Flink if the job is resumed nevertheless; "" if unknown.
    """

    reason: str
    message: str
    place: str = ""
    consequence: str = ""


@dataclass(frozen=True)
class AuditRow:
    """Result of one pair; secrets are masked.

    Attributes:
        name: The name of the pair.
        result: The worst outcome of the requested engines, or the reason for a missing outcome.
        engines: Result of each engine, worst first.
        tables: The changed tables that the job declares or uses.
        secrets: Number of literal secrets and unknown placeholders, which prevent a deployment.
        notice: The remark that no planner is installed; "" if none is missing.
    """

    name: str
    result: AuditResult
    causes: tuple[Cause, ...]
    engines: tuple[EngineOutcome, ...] = ()
    tables: tuple[str, ...] = ()
    secrets: int = 0
    notice: str = ""

    def exit_code(self, fail_on: str) -> int:
        """The row's exit code under the gate ``fail_on``."""
        if self.result is AuditResult.UNREADABLE:
            return BAD_INPUT
        gate = FAIL_ON[fail_on]
        return FAILED if gate is not None and self.engines and Outcome(self.result).rank >= gate.rank else PASSED


@dataclass
class AuditGroup:
    """The rows of one result and one reason.

    Attributes:
        reason: The reason; a row with several reasons belongs to several groups.
        alone: Number of rows with this reason only.
        examples: The first rows, with their messages for this reason.
        messages: Number of occurrences of each message.
    """

    result: AuditResult
    reason: str
    jobs: int = 0
    alone: int = 0
    examples: list[tuple[str, Cause]] = field(default_factory=list)
    messages: Counter[str] = field(default_factory=Counter)

    def add(self, row: AuditRow, cause: Cause) -> None:
        self.jobs += 1
        self.alone += len(row.causes) == 1
        if len(self.examples) < MOST_KEPT:
            self.examples.append((row.name, cause))
        if cause.message in self.messages or len(self.messages) < _MOST_MESSAGES:
            self.messages[cause.message] += 1


@dataclass(frozen=True)
class AuditSubject:
    """The question of an audit.

    Attributes:
        source: The source of the jobs, in words.
    """

    source: str
    question: str
    fail_on: str
    tables: tuple[str, ...] = ()


class AuditSummary:
    """Counts of all rows, in memory that does not grow with their number."""

    def __init__(self, subject: AuditSubject) -> None:
        self.subject = subject
        self.results: Counter[AuditResult] = Counter()
        self.notes: list[str] = []
        self.secrets = 0
        self.used: set[str] = set()
        self._groups: dict[tuple[AuditResult, str], AuditGroup] = {}
        self._exit_code = PASSED
        self._notices: dict[str, None] = {}
        self._grounds: Counter[str] = Counter()

    def add(self, row: AuditRow) -> None:
        """Count a row."""
        self.results[row.result] += 1
        self.secrets += row.secrets > 0
        if row.notice:
            self._notices[row.notice] = None
        self._grounds.update({each.ground for each in row.engines if each.ground})
        self.used.update(row.tables)
        self._exit_code = max(self._exit_code, row.exit_code(self.subject.fail_on))
        for cause in row.causes:
            self._groups.setdefault((row.result, cause.reason), AuditGroup(row.result, cause.reason)).add(row, cause)

    @property
    def jobs(self) -> int:
        """Number of pairs that were judged or failed; scripts without a query are excluded."""
        return self.results.total() - self.results[AuditResult.NO_JOB]

    @property
    def groups(self) -> tuple[AuditGroup, ...]:
        """The rows by result and reason: urgent ones first, then the most frequent."""
        order = {result: place for place, result in enumerate(AuditResult)}
        return tuple(sorted(self._groups.values(), key=lambda each: (order[each.result], -each.jobs, each.reason)))

    @property
    def unused(self) -> tuple[str, ...]:
        """The changed tables that no job declares or uses."""
        return tuple(name for name in self.subject.tables if name not in self.used)

    @property
    def exit_code(self) -> int:
        """The worst exit code; bad input if nothing was judged, or no job has any of the changed tables."""
        missed = bool(self.subject.tables) and len(self.unused) == len(self.subject.tables)
        return BAD_INPUT if not self.jobs or missed else self._exit_code

    @property
    def sentence(self) -> str:
        """Number of jobs of each result, on one line."""
        judged = (result for result in AuditResult if self.results[result] and result is not AuditResult.NO_JOB)
        counts = ", ".join(f"{self.results[result]:,} {result}" for result in judged)
        return f"{self.jobs:,} job{'' if self.jobs == 1 else 's'}" + (f": {counts}" if counts else "")

    @property
    def remarks(self) -> tuple[str, ...]:
        """Further remarks, a line each."""
        found = list(self.notes)
        if not self.jobs:
            found.append(f"no job to judge was found in {self.subject.source}, so nothing passes")
        if self.secrets:
            found.append(
                f"scripts with literal secrets or unknown placeholders: {self.secrets:,}; they are "
                "judged, but cannot be deployed (flinkcompat lint names them)"
            )
        found += [f"{name}: no job declares or uses it; check its name" for name in self.unused]
        if self.results[AuditResult.NO_JOB]:
            found.append(f"scripts without INSERT and SELECT: {self.results[AuditResult.NO_JOB]:,}")
        found += [f"{ground}: {count:,}" for ground, count in self._grounds.most_common()]
        return (*found, *self._notices)


def counted(rows: Iterable[AuditRow], subject: AuditSubject) -> AuditSummary:
    """The summary of rows."""
    summary = AuditSummary(subject)
    for row in rows:
        summary.add(row)
    return summary
