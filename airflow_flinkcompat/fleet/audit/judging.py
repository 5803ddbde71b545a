"""Judgement of pairs of scripts as rows of an audit, in one or several processes."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from itertools import islice

from airflow_flinkcompat.compat import Report, Side, check_engines
from airflow_flinkcompat.compat.deployable import UNREADABLE, bad_input, obstacles
from airflow_flinkcompat.compat.engines.flink.upgrade import ignored_settings
from airflow_flinkcompat.compat.gate import ChangeIdentity, apply_waivers, utc_day
from airflow_flinkcompat.compat.reports.sections import format_inline
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.fleet.audit.changed_tables import NotReplacedError, ReplacementTable, with_changed_tables
from airflow_flinkcompat.fleet.audit.values import AuditPair, AuditResult, AuditRow, Cause, EngineOutcome
from airflow_flinkcompat.model import InputError, JobSpec, Outcome
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.planner.judgement import NoJob, judge, without_notice
from airflow_flinkcompat.sql import ScriptError

REASONS = {
    "cannot-be-read": "The script, or a file that belongs to it, cannot be read",
    "version-not-known": "The version that runs the job is unknown",
    "syntax": "The script has syntax errors",
    "not-judged": "The script cannot be judged",
    "table-in-program": "A program declares the changed table itself",
    "nested-too-deeply": "The script is nested too deeply",
    "process-ended": "The process that judged the script ended",
    "internal-error": "The check failed because of an error in flinkcompat: please report it",
    "no-query": "The script contains no INSERT and no SELECT",
}
"""Titles of the reasons for a missing verdict. All other reasons are codes of rules."""


class _NoVerdictError(Exception):
    """A pair has no verdict, for a reason of ``REASONS``."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def audit_pair(pair: AuditPair, tables: tuple[ReplacementTable, ...] = ()) -> AuditRow:
    """Judge a pair; an error becomes part of the row."""
    try:
        return _judged(pair, tables)
    except _NoVerdictError as error:
        return failed_row(pair.name, error.reason, str(error))
    except NoJob as error:
        return failed_row(pair.name, "no-query", str(error))
    except NotReplacedError as error:
        return failed_row(pair.name, "table-in-program", str(error))
    except (ScriptError, InputError) as error:
        return failed_row(pair.name, "not-judged", str(error))
    except RecursionError:
        return failed_row(pair.name, "nested-too-deeply", "an expression or query is nested too deeply to be read")
    except Exception as error:  # a single script must never end an audit
        return failed_row(pair.name, "internal-error", f"{type(error).__name__}: {error}")


def failed_row(name: str, reason: str, message: str) -> AuditRow:
    """The row of a pair that could not be judged."""
    result = AuditResult.NO_JOB if reason == "no-query" else AuditResult.UNREADABLE
    return AuditRow(_one_line(name), result, (Cause(reason, _one_line(message)),))


def _one_line(text: str) -> str:
    """Put a text on one line, mask secrets, and escape bytes of file names that are not UTF-8."""
    return format_inline(text.encode(errors="backslashreplace").decode())


def _judged(pair: AuditPair, tables: tuple[ReplacementTable, ...]) -> AuditRow:
    if pair.old is None or pair.new is None:
        raise _NoVerdictError(pair.reason, pair.fault)
    changed, touched = with_changed_tables(pair.new, tables)
    old = Side.of(pair.old)
    new = replace(Side.of(changed), beside=old)
    found = obstacles(new)
    malformed = [str(each) for each in found if each.kind in UNREADABLE] + bad_input(old, old.engine, deployed=True)
    if malformed and pair.planner == "never":
        raise _NoVerdictError("syntax", malformed[0])
    if not _holds_query(old) and not _holds_query(new):
        raise _NoVerdictError("no-query", f"{new.source}: contains no INSERT and no SELECT")
    if pair.engine_named:
        report, notice = without_notice(judge(old, new, pair.planner, pair.jars))
        reports: tuple[Report, ...] = (report,)
    else:
        reports, notice = check_engines(old, new).each, ""
    if malformed and not any(report.is_planned for report in reports):
        raise _NoVerdictError("syntax", malformed[0])  # Flink's planner accepted no version of the script either
    change = ChangeIdentity.of(pair.old, pair.new)
    reports = apply_waivers(reports, pair.waivers, change, utc_day(), (pair.name, pair.name)).reports
    worst = Outcome.worst(report.outcome for report in reports)
    outcomes = tuple(_outcome(report, pair.old) for report in reports)
    causes = _causes(reports, worst)
    restored = tuple(each for report in reports for each in report.restored)
    kept = _kept(reports[0]) if len(reports) == 1 else MigrationExtent.NONE
    gate = Outcome.worst(report.gate_outcome for report in reports)
    ignored = tuple(map(_one_line, _ignored(old, new)))
    conditional = all(report.is_conditional for report in reports if report.outcome is worst)
    result = AuditResult.CONDITIONAL if conditional else AuditResult(worst.value)
    return AuditRow(
        _one_line(pair.name), result, causes, outcomes, touched, len(found), notice, restored, kept,
        gate, ignored,
    )  # fmt: skip


def _ignored(old: Side, new: Side) -> tuple[str, ...]:
    flink = all(ENGINE_FACTS[side.engine].compiles_plans for side in (old, new))
    return ignored_settings(new, old.version, new.version) if flink and new.language == "sql" else ()


def _kept(report: Report) -> MigrationExtent:
    return report.migration.kept if report.migration is not None and report.keeps_state else MigrationExtent.NONE


def _holds_query(side: Side) -> bool:
    return bool(side.program.pipelines or side.program.problems)


def _causes(reports: tuple[Report, ...], worst: Outcome) -> tuple[Cause, ...]:
    """The causes of the worst outcome, one for each rule."""
    found: dict[str, Cause] = {}
    for report in reports:
        for each in report.deciding if report.outcome is worst else ():
            if each.outcome is worst and each.rule not in found:
                place = str(each.after_span or each.before_span or "")
                ends = each.consequence.value if each.consequence else ""
                found[each.rule] = Cause(each.rule, _one_line(each.message), _one_line(place), ends)
    return tuple(found.values())


def _outcome(report: Report, old: JobSpec) -> EngineOutcome:
    before = (
        old.version if old.engine == report.engine else replace(old, engine=report.engine, engine_version=None).version
    )
    versions = before, report.engine_version
    return EngineOutcome(report.engine, *versions, report.outcome, report.ground, report.read_outcome)


_CHUNK = 16
"""Pairs per request to a process: large enough to save transfers, small enough to balance the load."""
_AHEAD = 3
"""Number of chunks that are read ahead for each process."""

Tables = tuple[ReplacementTable, ...]


def audit_here(pairs: Iterable[AuditPair], tables: Tables = ()) -> Iterator[AuditRow]:
    """Judge pairs in this process."""
    for pair in pairs:
        yield audit_pair(pair, tables)


def audit_in_processes(pairs: Iterable[AuditPair], tables: Tables, processes: int) -> Iterator[AuditRow]:
    """Judge pairs in several processes.

    If a process ends unexpectedly, for example because memory runs out, each of its pairs is judged again in a separate
    process. If the separate process also ends, the row of that pair reports the fault.
    """
    waiting: deque[tuple[list[AuditPair], Future[list[AuditRow]]]] = deque()
    reading = iter(pairs)
    pool = _pool(processes)
    try:
        while True:
            while len(waiting) < processes * _AHEAD and (chunk := list(islice(reading, _CHUNK))):
                waiting.append((chunk, pool.submit(_judge, chunk, tables)))
            if not waiting:
                return
            chunk, future = waiting.popleft()
            try:
                rows = future.result()
            except BrokenProcessPool:
                pool.shutdown()
                rows = [_by_itself(pair, tables) for pair in chunk]
                # Pending requests to the broken pool are sent to a new pool.
                pool = _pool(processes)
                waiting = deque((each, pool.submit(_judge, each, tables)) for each, _ in waiting)
            yield from rows
    finally:
        pool.shutdown(cancel_futures=True)


def _judge(pairs: list[AuditPair], tables: Tables) -> list[AuditRow]:
    return list(map(partial(audit_pair, tables=tables), pairs))


def _by_itself(pair: AuditPair, tables: Tables) -> AuditRow:
    """Judge a pair in a separate process."""
    with _pool(1) as pool:
        try:
            return pool.submit(audit_pair, pair, tables).result()
        except BrokenProcessPool:
            return failed_row(
                pair.name, "process-ended", "the process that judged the script was killed, or ran out of memory"
            )


def _pool(processes: int) -> ProcessPoolExecutor:
    # A fork would copy the locks of other threads in this process.
    return ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))
