"""Engine ``vvr``: the vendor's documents decide, and undocumented changes are unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.protocol import (
    MOVED,
    AdjusterContext,
    lowered_to_unknown,
    undeclared_table_adjuster,
    unknown_value_adjuster,
)
from airflow_flinkcompat.compat.report import Finding
from airflow_flinkcompat.compat.rule import Level, Rule, TableApiCover
from airflow_flinkcompat.compat.verdict import Verdict
from airflow_flinkcompat.model import Basis, Outcome
from airflow_flinkcompat.plan.nodes import Frame, Measure, Window
from airflow_flinkcompat.plan.operators import AggregateOperator, AssignedWindow, OverOperator


def row_window_adjuster(verdict: Verdict, target: Any, change: Change) -> Verdict:
    """Lower a documented verdict on SQL windows to inferred if SQL cannot express the window."""
    if not isinstance(target, OperatorPair) or not _by_rows(target):
        return verdict
    if verdict.basis is not Basis.DOCUMENT or verdict.outcome is Outcome.UNKNOWN:
        return verdict
    return replace(verdict, basis=Basis.INFERRED, source=f"like windows in SQL: {verdict.source}")


def table_api_adjuster(finding: Finding, rule: Rule, case: AdjusterContext) -> Finding:
    """Lower findings on a query with changed Table API operations, which no document covers."""
    if rule.table_api_cover is TableApiCover.OWN:
        return finding
    moved = any(pair.moved for pair in case.change.pipelines_about(finding.sink))
    return lowered_to_unknown(finding, MOVED) if moved else finding


def _by_rows(pair: OperatorPair) -> bool:
    """True if either side has a row-count window, or a FLIP-11 row window."""
    for side in (pair.old, pair.new):
        match side:
            case AggregateOperator(window=AssignedWindow(window=Window(measure=Measure.ROWS))):
                return True
            case OverOperator(frame=Frame(following=following, window=window)) if window is not None or following != 0:
                return True
    return False


class VvrEngine:
    """The vendor's engine. The rules with the highest precedence level decide."""

    name = "vvr"
    verdict_adjusters = (row_window_adjuster,)
    finding_adjusters = (table_api_adjuster, undeclared_table_adjuster, unknown_value_adjuster)
    unchanged_adjusters = ()
    safe_finding_adjusters = ()

    def level(self, rule: Rule) -> Level:
        """The precedence level of the rule."""
        return rule.level
