"""Values of an audit: pairs, rows, and counts of rows by outcome and reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from airflow_flinkcompat.compat.report import RestoredOperator
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.fleet.values import BAD_INPUT, FAILED, PASSED
from airflow_flinkcompat.model import JobSpec, Outcome, PlannerMode, Waiver
from airflow_flinkcompat.project.job_options import FAIL_ON

MOST_KEPT = 200
"""Number of rows that are shown for each group; only JSON contains all rows."""
_MOST_IGNORED = 10
"""Number of ignored settings that are named."""
_MOST_MESSAGES = 500
"""Maximum number of different messages that are counted in a group, to limit memory use."""


class AuditResult(StrEnum):
    """Possible results of a pair, from most to least urgent."""

    INCOMPATIBLE = "incompatible"
    UNREADABLE = "unreadable"
    UNKNOWN = "unknown"
    CONDITIONAL = "conditional"
    PARTIAL = "partial"
    COMPATIBLE = "compatible"
    NO_JOB = "no job"


@dataclass(frozen=True)
class AuditPair:
    """A job's present and future version.

    Attributes:
        name: The deployment, or the path of the script; in a Git history, path and commit.
        old: The present job; None if it cannot be read.
        new: The future job. The engine and version of the future job decide the verdict.
        engine_named: True if an engine is set for the job; otherwise, each engine judges the job.
        waivers: The waivers of the script. They leave the result unchanged.
        fault: The reason why the pair cannot be judged; "" if it can be judged.
    """

    name: str
    old: JobSpec | None = None
    new: JobSpec | None = None
    engine_named: bool = True
    fault: str = ""
    reason: str = "cannot-be-read"
    planner: PlannerMode = "never"
    jars: tuple[Path, ...] = ()
    waivers: tuple[Waiver, ...] = ()


@dataclass(frozen=True)
class EngineOutcome:
    """Verdict of one engine on a pair, with the versions of both sides.

    ``ground`` is the basis of the verdict; "" if Flink's planner was not asked. ``disagrees`` is the outcome of the
    rules alone, if the planner's answer changes the outcome.
    """

    engine: str
    old_version: str
    new_version: str
    outcome: Outcome
    ground: str = ""
    disagrees: Outcome | None = None


@dataclass(frozen=True)
class Cause:
    """One reason for a result, with masked secrets.

    Attributes:
        reason: The code of the deciding rule, or of the reason why the pair is not judged.
        message: The first message for this reason, without line breaks.
        place: The place in the new script, or else in the old script; "" without a place.
        consequence: The effect in Flink if the job is resumed nevertheless; "" if unknown.
    """

    reason: str
    message: str
    place: str = ""
    consequence: str = ""


@dataclass(frozen=True)
class AuditRow:
    """Result of one pair, with masked secrets.

    Attributes:
        name: The name of the pair.
        result: The worst outcome of all requested engines, or ``UNREADABLE`` or ``NO_JOB`` without an outcome. An
            unknown outcome is ``CONDITIONAL`` if the job is compatible on a condition.
        engines: The verdict of each engine, worst first.
        tables: The changed tables that the job declares or uses.
        secrets: Number of literal secrets and unknown placeholders, which prevent a deployment.
        notice: The notice that no planner is installed; "" if no planner is missing.
        operators: The effect of an upgrade on each stateful operator and connector; empty if no planner decided.
        kept: The share of the state that a migration keeps.
        gate: The worst outcome without waived findings; None without an outcome.
        ignored: Sentences about settings of the script that the new version of Flink does not have, nor a successor.
    """

    name: str
    result: AuditResult
    causes: tuple[Cause, ...]
    engines: tuple[EngineOutcome, ...] = ()
    tables: tuple[str, ...] = ()
    secrets: int = 0
    notice: str = ""
    operators: tuple[RestoredOperator, ...] = ()
    kept: MigrationExtent = MigrationExtent.NONE
    gate: Outcome | None = None
    ignored: tuple[str, ...] = ()

    def exit_code(self, fail_on: str) -> int:
        """The row's exit code under the gate ``fail_on``."""
        if self.result is AuditResult.UNREADABLE:
            return BAD_INPUT
        gate = FAIL_ON[fail_on]
        return FAILED if gate is not None and any(each.outcome.rank >= gate.rank for each in self.engines) else PASSED


@dataclass
class AuditGroup:
    """The rows that share a result and a reason.

    Attributes:
        reason: The reason; a row with several reasons belongs to several groups.
        alone: Number of rows that have only this reason.
        examples: Names of the first rows, with their cause.
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
    """The question that an audit answers.

    Attributes:
        source: Description of the source of the jobs.
    """

    source: str
    question: str
    fail_on: str
    tables: tuple[str, ...] = ()


class AuditSummary:
    """Counts of all rows; memory use does not grow with the number of rows."""

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
        self.operators: Counter[str] = Counter()
        self._ignored: list[str] = []
        self._further_ignored = 0

    def add(self, row: AuditRow) -> None:
        """Count a row."""
        self.results[row.result] += 1
        self.secrets += row.secrets > 0
        if row.notice:
            self._notices[row.notice] = None
        self._grounds.update({each.ground for each in row.engines if each.ground})
        self.used.update(row.tables)
        self.operators.update(each.effect for each in row.operators)
        self._ignored += row.ignored[: (room := _MOST_IGNORED - len(self._ignored))]
        self._further_ignored += len(row.ignored[room:])
        self._exit_code = max(self._exit_code, row.exit_code(self.subject.fail_on))
        for cause in row.causes:
            self._groups.setdefault((row.result, cause.reason), AuditGroup(row.result, cause.reason)).add(row, cause)

    @property
    def jobs(self) -> int:
        """Number of pairs that were judged or failed, without scripts that contain no query."""
        return self.results.total() - self.results[AuditResult.NO_JOB]

    @property
    def groups(self) -> tuple[AuditGroup, ...]:
        """The groups of rows by result and reason; most urgent first, then most frequent."""
        order = {result: place for place, result in enumerate(AuditResult)}
        return tuple(sorted(self._groups.values(), key=lambda each: (order[each.result], -each.jobs, each.reason)))

    @property
    def unused(self) -> tuple[str, ...]:
        """The changed tables that no job declares or uses."""
        return tuple(name for name in self.subject.tables if name not in self.used)

    @property
    def exit_code(self) -> int:
        """The worst exit code; bad input if nothing was judged or no job uses a changed table."""
        missed = bool(self.subject.tables) and len(self.unused) == len(self.subject.tables)
        return BAD_INPUT if not self.jobs or missed else self._exit_code

    @property
    def sentence(self) -> str:
        """Number of jobs with each result, on one line."""
        judged = (result for result in AuditResult if self.results[result] and result is not AuditResult.NO_JOB)
        counts = ", ".join(f"{self.results[result]:,} {result}" for result in judged)
        return f"{self.jobs:,} job{'' if self.jobs == 1 else 's'}" + (f": {counts}" if counts else "")

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes for the reader of the audit, one line each."""
        found = list(self.notes)
        if not self.jobs:
            found.append(f"no job to judge was found in {self.subject.source}, so nothing passes")
        if self.secrets:
            found.append(
                f"scripts with literal secrets or unknown placeholders: {self.secrets:,}; they are judged, but "
                f"cannot be deployed (flinkcompat lint shows them)"
            )
        found += [f"{name}: no job declares or uses it; check its name" for name in self.unused]
        if self.results[AuditResult.NO_JOB]:
            found.append(f"scripts without INSERT and SELECT: {self.results[AuditResult.NO_JOB]:,}")
        found += self._ignored
        if self._further_ignored:
            found.append(f"further settings that the new version does not have: {self._further_ignored:,}")
        if self.operators:
            effects = ", ".join(f"{count:,} {effect}" for effect, count in self.operators.most_common())
            found.append(f"stateful operators and connectors by the planners of both versions: {effects}")
        found += [f"{ground}: {count:,}" for ground, count in self._grounds.most_common()]
        return (*found, *self._notices)


def counted(rows: Iterable[AuditRow], subject: AuditSubject) -> AuditSummary:
    """Summarize rows."""
    summary = AuditSummary(subject)
    for row in rows:
        summary.add(row)
    return summary
