"""What an audit says of a pair is what a check says of it; whatever is wrong with one is said in its row."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side, check, check_engines
from airflow_flinkcompat.compat.report import RestoredOperator
from airflow_flinkcompat.fleet.audit import judging
from airflow_flinkcompat.fleet.audit.judging import REASONS, audit_pair
from airflow_flinkcompat.fleet.audit.sources import plain_job
from airflow_flinkcompat.fleet.audit.values import AuditPair, AuditResult, AuditRow
from airflow_flinkcompat.model import JobSpec, Outcome
from airflow_flinkcompat.testing.fixture_cases import load_cases
from dev.measure import measured
from tests.support.cli.command import BROKEN, OF_OUTCOME, SECRETIVE, TABLES, V1
from tests.support.nightly import sample

VENDOR = Path(__file__).parents[3] / "fixtures" / "vvr"


def job(script: str, source: str = "jobs/orders.sql", engine: str = "flink", version: str | None = None) -> JobSpec:
    return JobSpec(script, engine=engine, engine_version=version, source=source)


def cases() -> Sequence[tuple[str, Side, Side]]:
    """Pairs of every kind: the vendor's rows and measured restores, some of them from an older line."""
    of_vendor = [
        (case.id, Side(case.old_script, case.settings_old), Side(case.new_script, case.settings_new))
        for folder in sorted(VENDOR.iterdir())
        if folder.is_dir()
        for case in load_cases(folder)
    ]
    restores = [(str(each), *each.sides()) for each in (*measured.narrow(), *measured.connectors())]
    return [*sample(of_vendor, 25), *sample(restores, 25)]


@pytest.mark.parametrize("engine_named", [True, False])
def test_the_row_says_what_a_check_says(engine_named: bool) -> None:
    seen = set()
    for name, old, new in cases():
        row = audit_pair(AuditPair(name, plain_job(old), plain_job(new), engine_named))
        reports = (check(old, new),) if engine_named else check_engines(old, new).each
        outcome = Outcome.worst(each.outcome for each in reports)
        assert row.result.value == outcome, name
        assert [(each.engine, each.outcome, each.new_version) for each in row.engines] == [
            (each.engine, each.outcome, each.engine_version) for each in reports
        ], name
        worst = [each for each in reports if each.outcome is outcome]
        deciding = {f.rule for each in worst for f in each.deciding if f.outcome is outcome}
        assert {cause.reason for cause in row.causes} == deciding, name
        seen.add(outcome)
    assert len(seen) >= 3


@pytest.mark.parametrize("outcome", [*OF_OUTCOME])
def test_every_outcome(outcome: str) -> None:
    row = audit_pair(AuditPair("orders", job(V1), job(OF_OUTCOME[outcome])))
    assert row.result.value == check(Side(V1), Side(OF_OUTCOME[outcome]), "flink").outcome
    assert all(cause.reason and cause.message for cause in row.causes)
    assert pickle.loads(pickle.dumps(row)) == row


def test_an_upgrade_names_both_versions() -> None:
    row = audit_pair(AuditPair("orders", job(V1, version="1.20.3"), job(V1, version="2.3")))
    (engine,) = row.engines
    assert (engine.old_version, engine.new_version) == ("1.20", "2.3")
    assert [cause.reason for cause in row.causes] == ["engine-version-changed"]


def test_the_row_of_an_upgrade_lists_its_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    operators = (RestoredOperator("GroupAggregate", "right"), RestoredOperator("t (read, x)", "unknown", "no restore"))
    report = replace(check(Side(V1), Side(V1), "flink"), restored=operators)
    monkeypatch.setattr(judging, "judge", lambda *_: report)
    row = audit_pair(AuditPair("orders", job(V1, version="1.20"), job(V1, version="2.3")))
    assert row.operators == operators


def test_flink_reads_a_script_that_the_grammar_of_this_package_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = replace(check(Side(V1), Side(V1), "flink"), ground="planned by Flink 2.3.0")
    for report, expected in ((planned, AuditResult.COMPATIBLE), (replace(planned, ground=""), AuditResult.UNREADABLE)):
        monkeypatch.setattr(judging, "judge", lambda *_, report=report: report)
        pair = AuditPair("orders", job(BROKEN, version="1.20"), job(BROKEN, version="2.3"), planner="always")
        assert audit_pair(pair).result is expected


def unreadable(row: AuditRow) -> tuple[str, str]:
    assert row.result is AuditResult.UNREADABLE
    (cause,) = row.causes
    assert cause.reason in REASONS
    return cause.reason, cause.message


def test_what_cannot_be_judged_says_why() -> None:
    reason, message = unreadable(audit_pair(AuditPair("orders", job(V1), job(BROKEN))))
    assert (reason, message) == ("syntax", "jobs/orders.sql:5:1: Expected something after SELECT")
    reason, message = unreadable(audit_pair(AuditPair("orders", job(V1), job(TABLES))))
    assert reason == "not-judged"
    assert "contains no INSERT and no SELECT" in message
    reason, message = unreadable(audit_pair(AuditPair("orders", fault="orders.sql: cannot be read: no such file")))
    assert (reason, message) == ("cannot-be-read", "orders.sql: cannot be read: no such file")


def test_a_script_without_a_query_is_no_job() -> None:
    row = audit_pair(AuditPair("ddl", job(TABLES), job(TABLES)))
    assert row.result is AuditResult.NO_JOB
    assert row.exit_code("partial") == 0


def test_an_error_of_the_check_itself_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise KeyError("password = 'hunter2-plain'")

    monkeypatch.setattr(judging, "judge", fails)
    reason, message = unreadable(audit_pair(AuditPair("orders", job(V1), job(V1))))
    assert reason == "internal-error"
    assert message.startswith("KeyError: ")
    assert "hunter2" not in message


def test_deep_nesting_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(judging, "judge", fails)
    assert unreadable(audit_pair(AuditPair("orders", job(V1), job(V1))))[0] == "nested-too-deeply"


def test_secrets_are_counted_and_keep_no_verdict_back() -> None:
    row = audit_pair(AuditPair("orders", job(V1), job(SECRETIVE)))
    assert row.secrets == 1
    assert row.engines
    assert "hunter2" not in repr(row)


def test_a_name_that_is_no_text_can_be_written() -> None:
    row = audit_pair(AuditPair("jobs/\udcff.sql", fault="jobs/\udcff.sql: gone"))
    assert row.name == "jobs/\\udcff.sql"
    row.causes[0].message.encode()
