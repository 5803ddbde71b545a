"""The way of each job to a new line of Flink, by its verdict."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat.report import RestoredOperator
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.fleet import upgrades
from airflow_flinkcompat.fleet.audit.values import AuditPair, AuditResult, AuditRow, Cause
from airflow_flinkcompat.fleet.upgrades import JobUpgrade, Way
from airflow_flinkcompat.model import JobSpec

JOB = JobSpec("x", language="python", engine="flink", engine_version="2.3")
DIFFERS = Cause("plan-differs", "no operator with this id")


def upgraded(row: AuditRow, monkeypatch: pytest.MonkeyPatch) -> JobUpgrade:
    monkeypatch.setattr(upgrades, "audit_pair", lambda _: row)
    (found,) = upgrades.upgrades([AuditPair("a.py", JOB, JOB)])
    return found


def test_a_connector_without_a_release_keeps_a_job_from_any_move(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Cause("statement-refused", "no release of the connector faker runs on Flink 2.3")
    for causes in ((refusal,), (DIFFERS, refusal)):
        found = upgraded(AuditRow("a.py", AuditResult.INCOMPATIBLE, causes), monkeypatch)
        assert (found.way, found.reason) == (Way.REFUSED, refusal.message)
    for kept, way in ((MigrationExtent.NONE, Way.RESTARTED), (MigrationExtent.WHOLE, Way.MIGRATED)):
        row = AuditRow("a.py", AuditResult.INCOMPATIBLE, (DIFFERS,), kept=kept)
        assert upgraded(row, monkeypatch).way is way


def test_a_job_that_keeps_its_state_shows_the_jars_to_replace(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "the new line plans the same operators; replace the jars of these connectors: kafka"
    causes = (Cause("engine-version-changed", words), Cause("plan-equal", "Flink plans the same state"))
    found = upgraded(AuditRow("a.py", AuditResult.COMPATIBLE, causes), monkeypatch)
    assert (found.way, found.reason) == (Way.UNTOUCHED, words)


def test_the_state_counts_each_operator_once() -> None:
    refused = "the new job has no operator with this id"
    operators = (
        RestoredOperator("Source: t", "refused at submit", refused),
        RestoredOperator("Sum", "refused at submit", refused),
        RestoredOperator("Sum", "right", "", ("Long",)),
        RestoredOperator("Sum", "begins empty", "Sum begins without state"),
        RestoredOperator("Source: t", "begins empty", "Source: t begins without state", ("Row",)),
        RestoredOperator("Rank", "begins empty", "Rank begins without state"),
        RestoredOperator("t (read, x)", "unknown"),
    )
    row = AuditRow("a.sql", AuditResult.INCOMPATIBLE, (DIFFERS,), operators=operators)
    assert JobUpgrade(row, Way.RESTARTED, "").state == (
        f"5 operators and connectors: 1 read; Source: t: {refused}; Sum: {refused}; Rank begins without state; "
        "t (read, x): unknown; serializers Long, Row"
    )
