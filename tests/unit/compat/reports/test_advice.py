"""What is advised where more is known than the change: the deployed job, who reads, and of a backfill."""

from __future__ import annotations

from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.compat import Report, ReportContext, Side, check, render_markdown, render_text
from airflow_flinkcompat.compat.migration_report import MigrationReport
from airflow_flinkcompat.compat.reports.advice import possible_answers, steps
from airflow_flinkcompat.compat.single_script import added_report
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.model import Outcome
from tests.support.airflow.operators.fakes import script

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
    by_hand = replace(KNOWN, approver=False)
    assert "<job id>" not in told(report, by_hand)
    assert "STOP JOB '0af1' WITH SAVEPOINT;" in told(report, by_hand)
    assert "STOP JOB" not in told(report, KNOWN), "the branch that is chosen does that"
    page = render_markdown(report, KNOWN)  # type: ignore[arg-type]
    assert "Deployed: entry 4 of the ledger of `orders`, job `0af1`" in page
    assert "0af1" in render_text(report, known=by_hand)  # type: ignore[arg-type]


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
    assert "No backfill follows a restart" in by_hand
    assert "flinkcompat backfill orders.sql" in by_hand
    for backfill in (True, False, None):
        refused = told(
            INCOMPATIBLE, ReportContext(backfill=backfill, backfill_refused="a LEFT join is not recomputed.")
        )
        assert "A backfill of orders.sql cannot recompute history: a LEFT join is not recomputed." in refused
        assert "flinkcompat backfill" not in refused


def test_no_option_is_called_a_backfill_where_nobody_knows_of_one() -> None:
    assert "restart with backfill" not in told(UNKNOWN)


# ------------------------------------------------------------------------------------------------- what an answer does
MORE = script().replace("total DOUBLE)", "total DOUBLE, most DOUBLE)").replace("SUM(price)", "SUM(price), MAX(price)")
ADDED = check(OLD, Side(MORE, engine="flink", source="orders.sql"))
PARTIAL = check(Side(script(), engine="vvr"), Side(MORE, engine="vvr", source="orders.sql"))
REFUSED = check(OLD, Side("INSERT INTO", engine="flink", source="orders.sql"))
FIRST = added_report(OLD, "orders.sql")
CHANGES = {
    "compatible": COMPATIBLE, "partial": PARTIAL, "unknown": UNKNOWN, "incompatible": INCOMPATIBLE,
    "migratable": ADDED, "refused": REFUSED, "first": FIRST,
}  # fmt: skip


def test_what_each_answer_does(snapshot: SnapshotAssertion) -> None:
    told = {name: {each.branch: each.text for each in possible_answers(report)} for name, report in CHANGES.items()}
    assert told == snapshot


def test_the_answer_that_migrates_names_the_downtime() -> None:
    known = ReportContext(downtime="Expected downtime: about 4 min for 12.0 GB of state.")
    told = {each.branch: each.text for each in possible_answers(ADDED, known)}
    assert [branch for branch, text in told.items() if known.downtime in text] == ["migrate"]


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (ReportContext(), ""),
        (ReportContext(backfill=True), "A backfill then recomputes the results that a start without state lacks."),
        (ReportContext(backfill=False), "No backfill recomputes the results that a start without state lacks."),
        (ReportContext(backfill=True, backfill_refused="no."), "A backfill cannot recompute history: no."),
    ],
)
def test_what_a_restart_does_about_history(known: ReportContext, words: str) -> None:
    (restart,) = (each.text for each in possible_answers(INCOMPATIBLE, known) if each.branch == "restart")
    begins = "All state is discarded, including state that would fit. Without state, table orders starts with all files"
    assert restart.startswith(begins)
    assert restart.partition("read before.")[2].strip() == words


def test_a_restart_discards_the_stored_state_in_numbers() -> None:
    known = ReportContext(stored="window: 5 keys, 848 bytes.")
    (restart,) = (each.text for each in possible_answers(INCOMPATIBLE, known) if each.branch == "restart")
    assert "state that would fit. Stored state: window: 5 keys, 848 bytes." in restart


def test_what_is_known_beside_a_change_is_read_back_and_holds_no_secret() -> None:
    assert ReportContext.from_dict({**KNOWN.to_dict(), "of_a_later_release": 1}) == KNOWN
    refused = replace(KNOWN, backfill_refused="not with 'password' = 'hunter2hunter2'")
    assert refused.to_dict()["backfill_refused"] == "not with 'password' = '***'"


# ------------------------------------------------------------------------------------------- what keeps the most, first
SEVERAL = """
CREATE TABLE orders (customer STRING, amount BIGINT)
  WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');
CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE large (customer STRING, amount BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO totals SELECT customer, SUM(amount) FROM orders GROUP BY customer;
INSERT INTO large SELECT customer, amount FROM orders WHERE amount > 100;
"""
OTHER_METRIC, OTHER_LIMIT, OTHER_TOPIC = (
    ("SUM(", "MAX("),
    ("> 100", "> 200"),
    ("'topic' = 'orders'", "'topic' = 'sales'"),
)


def several(*edits: tuple[str, str]) -> Report:
    new = SEVERAL
    for before, after in edits:
        new = new.replace(before, after)
    return check(Side(SEVERAL, engine="flink", source="old.sql"), Side(new, engine="flink", source="new.sql"))


def test_statements_that_lose_less_are_split_off() -> None:
    split = "Or split the change, and check and deploy the statements for large first, then those for totals."
    both = [step.text for step in steps(several(OTHER_METRIC, OTHER_LIMIT))]
    places = [next(n for n, text in enumerate(both) if text.startswith(lead)) for lead in ("Do not", split, "Or start")]
    assert places == sorted(places)
    for edits in ((OTHER_METRIC,), (OTHER_LIMIT,), (OTHER_METRIC, OTHER_TOPIC), (OTHER_LIMIT, OTHER_TOPIC)):
        assert split not in told(several(*edits))


@pytest.mark.parametrize("kept", [None, *MigrationExtent])
def test_a_moved_source_begins_anew_in_the_step_that_keeps_state(kept: MigrationExtent | None) -> None:
    found = several(OTHER_TOPIC)
    found = Report.from_dict({**found.to_dict()})  # as a ledger keeps it
    if kept is not None:
        found = replace(found, migration=MigrationReport(kept, ()))
    first = "\n".join((steps(found)[0].text, *steps(found)[0].commands))
    assert "--restart-source orders" in first
    in_airflow = steps(found, ReportContext(entry=4, migrates=True))[0].text
    assert (
        "With source-moved in check.accept, orders starts from the beginning and the rest of the state is kept."
        in in_airflow
    )


def test_a_migration_to_another_version_names_both_versions_and_is_accepted_unseen() -> None:
    report = several(OTHER_METRIC)
    findings = tuple(replace(each, consequence=None) for each in report.findings)
    report = replace(report, outcome=Outcome.INCOMPATIBLE, findings=findings)
    asked, versions = replace(report, old_version="1.20"), " --old-engine-version 1.20 --engine-version 2.3"
    assert "\n".join(steps(asked)[0].commands) == f"{steps(report)[0].commands[0]}{versions}"
    kept = MigrationReport(MigrationExtent.WHOLE, ())
    made, same = (steps(replace(each, migration=kept))[0].commands for each in (asked, report))
    assert made == (same[0], f" {versions} --accept unseen \\", *same[1:])
