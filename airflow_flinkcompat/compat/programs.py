"""Queries that came through the Table API: what the rules, which were measured on SQL, may say of them."""

from __future__ import annotations

from dataclasses import replace

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.notations import Notation
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.flink.notations import standing
from airflow_flinkcompat.compat.flink.within import GROUPED_ALIKE
from airflow_flinkcompat.compat.outcome import Basis, Outcome
from airflow_flinkcompat.compat.report import Finding
from airflow_flinkcompat.compat.rule import Verdict
from airflow_flinkcompat.plan.nodes import Frame, Measure, Window
from airflow_flinkcompat.plan.operators import AggregateOperator, OverOperator, Windowing

TABLE_API_CHANGED = "table-api-changed"
MOVED = "no measurement says that a query keeps its state when it is written through other operations"
MEASURED_ON_SQL = "this was measured on SQL; Flink may plan the Table API otherwise"
NOTHING_PLANNED = ("view-rewritten", "unused-declaration")
"""Rules over what is gone before a query is planned."""
OF_ONE_QUERY = "statement-set-changed"
"""The rule measured on a program of one query too."""
OF_WINDOWS = ("window-field-output", "sink-table-changed")
"""Rules measured on a window of the Table API too: its start was no longer put out."""
OF_PROGRAMS = frozenset({"oa-range-narrower", *GROUPED_ALIKE})
"""What was measured on the Table API: on its over windows too, as a restore of SQL is called, and on its keys."""


def doubt(finding: Finding, change: Change) -> str:
    """Why a finding says too much of the queries it speaks of; empty where it does not."""
    if change.unchanged or finding.outcome not in (Outcome.COMPATIBLE, Outcome.PARTIAL):
        return ""
    if finding.rule == TABLE_API_CHANGED:
        return ""
    pairs = change.pipelines if finding.sink is None else change.pipelines_into(finding.sink)
    if change.engine != "flink":
        return MOVED if any(pair.moved for pair in pairs) else ""
    if not all(map(_stands, pairs)):
        return MOVED
    programs = [pair for pair in pairs if any(pair.steps)]
    return "" if all(_measured(finding, pair) for pair in programs) else MEASURED_ON_SQL


def by_rows(pair: OperatorPair) -> bool:
    """Whether an operator is on a window that SQL has no words for: over rows, or a row window of FLIP-11's own."""
    for side in (pair.old, pair.new):
        match side:
            case AggregateOperator(window=Windowing(window=Window(measure=Measure.ROWS))):
                return True
            case OverOperator(frame=Frame(following=following, window=window)) if window is not None or following != 0:
                return True
    return False


def beyond_the_pages(verdict: Verdict) -> Verdict:
    """What a page says of windows in SQL, taken for one that it does not speak of."""
    if verdict.basis is not Basis.DOCUMENT or verdict.outcome is Outcome.UNKNOWN:
        return verdict
    return replace(verdict, basis=Basis.INFERRED, source=f"as for windows in SQL: {verdict.source}")


def _stands(pair: PipelinePair) -> bool:
    verdict = standing(pair)
    return verdict is None or verdict.outcome is Outcome.COMPATIBLE


def _measured(finding: Finding, pair: PipelinePair) -> bool:
    """Whether a finding was seen on the Table API as well."""
    if finding.rule in NOTHING_PLANNED:
        return True
    if finding.rule == OF_ONE_QUERY:
        return all(len(program.pipelines) == 1 for program in (pair.old_program, pair.new_program))
    if any(side.notation is not Notation.TABLE_API for side in pair.written) or len(pair.operators) != 1:
        return False
    on_window = isinstance(pair.operators[0].new, AggregateOperator) and pair.operators[0].windowed is not None
    return (bool(finding.evidence) and OF_PROGRAMS.issuperset(finding.evidence)) or (
        on_window and finding.rule in OF_WINDOWS
    )
