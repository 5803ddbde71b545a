"""Upgrade of many jobs to a new line of Flink: the edits of each script, and how each job moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

from airflow_flinkcompat.compat.report import REFUSALS, RestoredOperator
from airflow_flinkcompat.compat.reports.sections import format_inline
from airflow_flinkcompat.compat.restore_verdict import UPGRADE
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.fleet.audit.document import what
from airflow_flinkcompat.fleet.audit.judging import audit_pair
from airflow_flinkcompat.fleet.audit.values import AuditPair, AuditResult, AuditRow
from airflow_flinkcompat.fleet.values import FAILED, PASSED
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.planner.daemon import PlannerFailure
from airflow_flinkcompat.planner.installation import PlannerMissing, find
from airflow_flinkcompat.planner.upgrade_edits import EditedJob, edit_for
from airflow_flinkcompat.sql import ScriptError


class Way(StrEnum):
    """Ways to move a job to the new line, from least to most work."""

    UNTOUCHED = "untouched"
    EDITED = "with edits"
    CONDITIONAL = "on a condition"
    MIGRATED = "with migrated state"
    RESTARTED = "without its state"
    REFUSED = "not at all"
    UNDECIDED = "not decided"
    UNREADABLE = "unreadable"


_MOVES = frozenset({Way.UNTOUCHED, Way.EDITED})
"""Ways on which a job keeps its state by a redeploy of its script."""


@dataclass(frozen=True)
class JobUpgrade:
    """The upgrade of one job.

    Attributes:
        row: The verdict on the edited script, which starts on the new line from the savepoint of the old line.
        way: How the job moves.
        reason: One line that explains the way, with masked secrets. For a job that keeps its state, the line contains
            the connectors whose jars the upgrade replaces, and the assumptions of the verdict.
        edited: The script with its edits; None if the script was not planned.
    """

    row: AuditRow
    way: Way
    reason: str
    edited: EditedJob | None = None

    @property
    def state(self) -> str:
        """One line on the stored state: the operators that the new line reads, and each that it does not read."""
        operators = [*_without_replacements(self.row.operators)]
        if not operators:
            return "not compared" if self.way in (Way.REFUSED, Way.UNDECIDED) else ""
        others = [each for each in operators if not each.is_right]
        read = len(operators) - len(others) if others else "all"
        counts = f"{len(operators)} operators and connectors: {read} read"
        lost = [
            each.reason if each.reason.startswith(each.operator) else f"{each.operator}: {each.reason or each.effect}"
            for each in others
        ]
        serializers = sorted({name for each in self.row.operators for name in each.serializers})
        stored = [f"serializers {', '.join(serializers)}"] if serializers else []
        return format_inline("; ".join([counts, *lost, *stored]))


def _without_replacements(operators: Iterable[RestoredOperator]) -> Iterator[RestoredOperator]:
    """The operators, without a new operator that replaces a refused operator of the same name."""
    operators = [*operators]
    replaced = Counter(each.operator for each in operators if each.effect == "refused at submit")
    for each in operators:
        if each.effect == "begins empty" and replaced[each.operator]:
            replaced[each.operator] -= 1
        else:
            yield each


@dataclass
class UpgradeSummary:
    """Counts of all upgrades.

    Attributes:
        source: Description of the source of the jobs.
        lines: The old and the new line of Flink; the old line is "" if each job names its own.
    """

    source: str
    lines: tuple[str, str]
    ways: Counter[Way] = field(default_factory=Counter)
    jobs: list[JobUpgrade] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, job: JobUpgrade) -> None:
        """Count a job, and keep it without its script."""
        self.ways[job.way] += 1
        self.jobs.append(job)

    @property
    def exit_code(self) -> int:
        """0 if every job keeps its state by a redeploy of its script."""
        return PASSED if self.ways.total() and {way for way, count in self.ways.items() if count} <= _MOVES else FAILED


def upgrades(pairs: Iterable[AuditPair]) -> Iterator[JobUpgrade]:
    """Edit and judge jobs, each on its present and its future version; scripts without a job are left out.

    Raises:
        InputError: A planner is not installed, or an engine has no planner.
    """
    for pair in pairs:
        edited, fault = _edited(pair)
        if edited is not None:
            pair = replace(pair, new=edited.job)
        row = audit_pair(replace(pair, planner="always"))
        if row.result is not AuditResult.NO_JOB:
            way, reason = _way(row, edited)
            yield JobUpgrade(row, way, format_inline(fault or reason), edited)


def _edited(pair: AuditPair) -> tuple[EditedJob | None, str]:
    """The edited job of a pair, and the reason if it was not planned."""
    if pair.old is None or pair.new is None:
        return None, pair.fault
    for job in (pair.old, pair.new):
        if not ENGINE_FACTS[job.engine].compiles_plans:
            raise InputError(f"{pair.name}: the planners of Flink judge an upgrade: add --engine flink")
    if pair.new.language != "sql":
        return None, ""
    try:
        find(pair.old.version, pair.jars)
        return edit_for(pair.new, pair.old.version, find(pair.new.version, pair.jars)), ""
    except PlannerMissing as error:
        raise InputError(str(error)) from None
    except (PlannerFailure, ScriptError) as error:
        return None, str(error)


def _way(row: AuditRow, edited: EditedJob | None) -> tuple[Way, str]:
    cause = what(row.causes[0]) if row.causes else ""
    match row.result:
        case AuditResult.UNREADABLE:
            return Way.UNREADABLE, cause
        case AuditResult.CONDITIONAL:
            return Way.CONDITIONAL, cause
        case AuditResult.UNKNOWN:
            return Way.UNDECIDED, cause
        case AuditResult.COMPATIBLE:
            planned = "; ".join(each.message for each in row.causes if each.reason == UPGRADE)
            return Way.EDITED if edited is not None and edited.edits else Way.UNTOUCHED, planned
    refused = next((what(each) for each in row.causes if each.reason in REFUSALS), "")
    if refused or (edited is not None and edited.refusal is not None):
        return Way.REFUSED, refused or cause
    if row.kept is not MigrationExtent.NONE:
        part = "" if row.kept is MigrationExtent.WHOLE else "a part of "
        return Way.MIGRATED, f"flinkcompat migrate keeps {part}the state: {cause}"
    return Way.RESTARTED, cause
