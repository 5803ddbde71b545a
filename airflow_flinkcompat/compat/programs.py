"""Queries that came through the Table API: what the rules, which were measured on SQL, may say of them.

Flink plans the Table API otherwise than SQL: columns that nobody reads stay below a window, calls over row windows are
not rewritten, and a ``select`` in front of a window is an operator of its own (measured). So how a query is written is
a part of what is compared.
"""

from __future__ import annotations

from airflow_flinkcompat.compat.change import Change
from airflow_flinkcompat.compat.outcome import Outcome
from airflow_flinkcompat.compat.pairs import PipelinePair
from airflow_flinkcompat.compat.report import Finding

MOVED = "no measurement says that a query keeps its state when it is written through other operations"
MEASURED_ON_SQL = "this was measured on SQL; Flink may plan the Table API otherwise"


def shape(steps: tuple[str, ...]) -> tuple[str, ...]:
    """The operations without what other rules compare: filters, and which columns are selected."""
    return tuple(step.partition(":")[0] for step in steps if step != "filter")


def moved(pair: PipelinePair) -> bool:
    """Whether the query is written through other operations: between SQL and the Table API, or within it."""
    old, new = map(shape, pair.steps)
    return old != new


def doubt(finding: Finding, change: Change) -> str:
    """Why a finding says too much of the queries it speaks of; empty where it does not."""
    if change.unchanged or finding.outcome not in (Outcome.COMPATIBLE, Outcome.PARTIAL):
        return ""
    pairs = change.pipelines if finding.sink is None else change.pipelines_into(finding.sink)
    if any(map(moved, pairs)):
        return MOVED
    return MEASURED_ON_SQL if change.engine == "flink" and any(any(pair.steps) for pair in pairs) else ""
