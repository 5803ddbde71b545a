"""What is advised where more is known than the change: the deployed job, who reads, and of a backfill."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_flinkcompat.compat import ReportContext, Side, check, render_markdown, render_text
from airflow_flinkcompat.compat.reports.advice import steps
from tests.operators.fakes import script

OLD = Side(script(), engine="flink", source="deployed #4")
INCOMPATIBLE = check(OLD, Side(script(size=5), engine="flink", source="orders.sql"))
UNKNOWN = check(OLD, Side(script().replace("'/out'", "'/out', 'k' = 'v'"), engine="flink", source="orders.sql"))
POLLED = script().replace("'/in',", "'/in', 'source.monitor-interval' = '1 s',")
COMPATIBLE = check(Side(POLLED, engine="flink"), Side(POLLED.replace("1 s'", "2 s'"), engine="flink"))
KNOWN = ReportContext(deployment="orders", job_id="0af1", entry=4, approver=True, backfill=True)


def told(report: object, known: ReportContext = ReportContext()) -> str:  # noqa: B008
    return "\n".join("\n".join((step.text, *step.commands)) for step in steps(report, known))  # type: ignore[arg-type]


def test_who_decides_is_not_told_to_let_a_person_decide() -> None:
    assert "let a person decide" in told(UNKNOWN)
    assert "let a person decide" not in told(UNKNOWN, KNOWN)
    assert "`approve`" not in told(UNKNOWN, KNOWN)


@pytest.mark.parametrize("report", [INCOMPATIBLE, UNKNOWN])
def test_ids_are_those_of_the_ledger(report: object) -> None:
    assert "<job id>" in told(report)
    assert "<job id>" not in told(report, KNOWN)
    assert "STOP JOB '0af1' WITH SAVEPOINT;" in told(report, KNOWN)
    page = render_markdown(report, KNOWN)  # type: ignore[arg-type]
    assert "Deployed: entry 4 of the ledger of `orders`, job `0af1`" in page
    assert "0af1" in render_text(report, known=KNOWN)  # type: ignore[arg-type]


@pytest.mark.parametrize("report", [INCOMPATIBLE, UNKNOWN, COMPATIBLE])
def test_a_job_of_a_platform_is_stopped_by_none_of_flinks_own_commands(report: object) -> None:
    """Nor is that advised which its target cannot do."""
    known = replace(KNOWN, job_id="orders/1", takes_commands=False, chooses_offsets=False)
    words = told(report, known)
    assert "savepoint" in words
    for command in ("STOP JOB", "RESET", "GET /jobs", "source_offsets", "orders/1"):
        assert command not in words


def test_a_backfill_is_advised_as_it_is_there_and_not_where_it_is_refused() -> None:
    assert "flinkcompat backfill orders.sql" in told(INCOMPATIBLE)
    assert "the backfill of this deployment recomputes" in told(INCOMPATIBLE, KNOWN)
    by_hand = told(INCOMPATIBLE, ReportContext(backfill=False))
    assert "No backfill follows the restart here" in by_hand
    assert "flinkcompat backfill orders.sql" in by_hand
    for backfill in (True, False, None):
        refused = told(
            INCOMPATIBLE, ReportContext(backfill=backfill, backfill_refused="a LEFT join is not recomputed.")
        )
        assert "cannot be recomputed by a backfill of orders.sql: a LEFT join is not recomputed." in refused
        assert "flinkcompat backfill" not in refused


def test_no_option_is_called_a_backfill_where_nobody_knows_of_one() -> None:
    assert "restart with backfill" not in told(UNKNOWN)
