"""Ledgers with a history each: what the tests of the pages are about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_flinkcompat.compat import Side, check, render_markdown
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import (
    ApprovedEntry,
    BackfilledEntry,
    CheckedEntry,
    DeployedEntry,
    DeployingEntry,
    DisposedEntry,
    FailedEntry,
    JobStart,
    JobStop,
    JobVersion,
    LedgerEntry,
    MigratedEntry,
    MigratingEntry,
    Origin,
    RehearsedEntry,
    RejectedEntry,
    Review,
    RolledBackEntry,
    RollingBackEntry,
    ShadowedEntry,
    StartedEntry,
    StartingEntry,
    StoppedEntry,
    StoppingEntry,
)
from airflow_flinkcompat.deploy.rehearsal.report import StoredOperator
from airflow_flinkcompat.deploy.shadow.report import ShadowReport, StateComparison
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding, SinkDifference
from airflow_flinkcompat.deploy.target import JobRef, Snapshot
from airflow_flinkcompat.exec_graph.written_columns import ChangedColumns
from airflow_flinkcompat.model import JobSpec

SECRET = "hunter2hunter2"
TABLES = (
    "CREATE TABLE orders (customer STRING, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
    "WITH ('connector' = 'kafka', 'topic' = 'orders');\n"
    "CREATE TABLE totals (customer STRING, amount BIGINT, n BIGINT) WITH ('connector' = 'blackhole');\n"
)
SCRIPTS = {
    1: TABLES + "INSERT INTO totals SELECT customer, SUM(amount), COUNT(*) FROM orders GROUP BY customer;\n",
    2: TABLES + "INSERT INTO totals SELECT customer, SUM(amount), MAX(amount) FROM orders GROUP BY customer;\n",
    3: TABLES + "INSERT INTO totals SELECT customer, MIN(amount), COUNT(*) FROM orders GROUP BY customer;\n",
}
ORIGIN = Origin("c0ffee" * 6 + "c0ff", "Ann Example <ann@example.org>", "payments", "ann")


def job(number: int, **changes: Any) -> JobSpec:
    given = {"settings": {"table.exec.state.ttl": "1 d", "s3.secret-key": SECRET}, "engine": "flink", **changes}
    return JobSpec(SCRIPTS[number], engine_version="2.3.0", source=f"orders_v{number}.sql", **given)


def shadow_report(
    text: str = "gold", name: str = "audit", finding: ShadowFinding = ShadowFinding.CHANGED
) -> ShadowReport:
    """A result with all kinds of sinks; ``text`` is a value, ``name`` the name of a sink and of a column."""
    keyed = pa.table(
        {
            "customer": ["ann", "bob", "cem", text],
            "change": ["changed", "changed", "not written → written", "changed"],
            "points (old)": ["1250", "310", None, "75"],
            "points (new)": ["1190", "310", "42", "60"],
            "level (old)": [text, "silver", None, None],
            "level (new)": ["silver", text, "silver", "silver"],
            "orders (old)": ["17", "4", None, "2"],
            "orders (new)": ["17", "4", "1", "2"],
        }
    )
    rows = pa.table(
        {
            "only in": ["new", "old"],
            "times": [1, 2],
            "customer": ["ann", "ann"],
            name: ["60", "75"],
        }
    )
    named = ChangedColumns(frozenset({"points", "level"}))
    return ShadowReport(
        finding,
        job_id="e" * 32,
        seconds=(600.0, 31.2, 29.4),
        sinks=(
            SinkDifference(
                "points_by_customer", finding, (48, 49), True, 23, {"points": 23, "level": 3}, ("last_order",), keyed,
                ("level",), named,
            ),
            SinkDifference("bookings", finding, (6120, 6119), False, 3, rows=rows, changed=ChangedColumns(rows=True)),
            SinkDifference(name, ShadowFinding.EQUAL, (6120, 6120), False, changed=ChangedColumns()),
        ),
        dropped=(StoredOperator("b" * 32, "GroupAggregate[3]", True),),
    )  # fmt: skip


def wrong_state_report() -> ShadowReport:
    """Equal rows from wrong state."""
    rows = {"only in": ["all rows", "stored state"], "times": [1, 1], "customer": ["ann", "ann"], "total": ["60", "7"]}
    keyed = {"customer": ["bob"], "change": ["changed"], "n (stored state)": ["4"], "n (all rows)": ["5"]}
    sinks = (
        SinkDifference("totals", ShadowFinding.DIFFERS, (12, 12), False, 2, rows=pa.table(rows)),
        SinkDifference("counts", ShadowFinding.DIFFERS, (3, 4), True, 1, {"n": 1}, rows=pa.table(keyed)),
        SinkDifference("audit", ShadowFinding.EQUAL, (1, 1), False),
    )
    equal = tuple(SinkDifference(each.sink, ShadowFinding.EQUAL, (2, 2), each.by_key) for each in sinks)
    state = StateComparison(ShadowFinding.DIFFERS, sinks=sinks, seconds=61.0)
    return ShadowReport(ShadowFinding.EQUAL, seconds=(600.0, 31.2, 29.4), sinks=equal, state=state)


def shadowed(checked: JobVersion, review: Review, report: ShadowReport) -> ShadowedEntry:
    """Ledger entry of a shadow run after which a person decides."""
    return ShadowedEntry(
        version=checked, review=review, branch="approve", shadow=report.to_dict(), message=report.decisive[1]
    )


def moment(minute: float) -> str:
    return f"2026-11-20T{9 + int(minute) // 60:02d}:{int(minute) % 60:02d}:{int(minute * 60) % 60:02d}.000+00:00"


def numbered(*entries: LedgerEntry) -> list[LedgerEntry]:
    """The entries as a ledger has them."""
    return [replace(each, number=number, at=moment(number)) for number, each in enumerate(entries, 1)]


class Writing:
    """Writes a ledger as a DAG's runs do, a minute between two entries."""

    def __init__(self, root: Path | str, name: str, dag_id: str | None) -> None:
        self.ledger = Ledger(root, name)
        self.dag_id = dag_id
        self.run = 1
        self.minute = 0.0

    def owner(self, task: str) -> str:
        return f"airflow:{self.dag_id}/manual__{self.run}/{task}" if self.dag_id else "bob@host:7"

    def put(self, task: str, *entries: LedgerEntry, minutes: float = 1) -> LedgerEntry:
        for entry in entries:
            self.minute += minutes
            stored = self.ledger.append(replace(entry, owner=self.owner(task), at=moment(self.minute)))
        return stored

    def check(self, old: JobSpec | None, new: JobSpec, branch: str) -> Review:
        if old is None:
            self.put("check", CheckedEntry(version=JobVersion.of(new), origin=ORIGIN, branch="first"))
            return Review()
        report = replace(check(Side.of(old), Side.of(new), engine="flink"), ground="planned by Flink 2.3.0")
        path = self.ledger.store_report(report.to_dict(), render_markdown(report), new)
        review = Review(report.outcome.value, path)
        self.put(
            "check",
            CheckedEntry(version=JobVersion.of(new), review=review, origin=ORIGIN, branch=branch, policy=branch),
        )
        return review


def fill_orders(root: Path | str, dag_id: str | None = "redeploy_orders", name: str = "orders") -> Ledger:
    """A first start; an approved change, migrated, with rehearsal and backfill; one that is rolled back; one waits."""
    at = Writing(root, name, dag_id)
    one, two, three = job(1), job(2), job(3)
    first = JobStart("stateless", request_id="1" * 32, job_id=JobRef("2" * 32))
    common: dict[str, Any] = {"job": one, "origin": ORIGIN, "review": at.check(None, one, "first")}
    at.put("first", DeployingEntry(**common), StartingEntry(**common, start=first), StartedEntry(**common, start=first))
    at.put("first", DeployedEntry(**common, start=first, evidence=("RUNNING for 10 s",), message="RUNNING, verified"))

    at.run = 2
    left = Snapshot("s3://bucket/savepoints/savepoint-1")
    review = at.check(one, two, "approve")
    decided = replace(review, approved_by="ann", reason="agreed in review #7")
    at.put(
        "rehearse", RehearsedEntry(version=JobVersion.of(two), rehearsal={"finding": "restored", "job": "rehearsal"})
    )
    at.put("approve", ApprovedEntry(version=JobVersion.of(two), review=decided, message="ann chose 'Resume'"))
    stop = JobStop(JobRef("2" * 32), "3" * 32)
    stopped = replace(stop, savepoint=left, savepoint_bytes=5_000_000, savepoint_at=moment(10.5))
    new_home = "s3://bucket/migrated/1"
    then = JobStart("migrated", Snapshot(new_home), request_id="3" * 32, job_id=JobRef("4" * 32), migrated_from=left)
    kept = {
        "kept": "partial",
        "operators": [
            {"operator": "totals, group aggregation", "state": "kept in part", "reason": "", "keeps": ["SUM(amount)"],
             "begins": ["MAX(amount)"], "gone": ["COUNT(*)"]},
        ],
    }  # fmt: skip
    common = {"job": two, "origin": ORIGIN, "review": decided}
    at.put(
        "migrate", DeployingEntry(**common), StoppingEntry(**common, stop=stop), StoppedEntry(**common, stop=stopped)
    )
    at.put("migrate", MigratingEntry(**common, savepoint=left, migrated_to=new_home))
    at.put("migrate", MigratedEntry(**common, savepoint=left, migrated_to=new_home, migration=kept))
    at.put("migrate", StartingEntry(**common, start=then), StartedEntry(**common, start=then))
    at.put("migrate", DeployedEntry(**common, start=then, evidence=("restored from the savepoint",)))
    at.put(
        "backfill",
        BackfilledEntry(
            version=JobVersion.of(two), range_to="2026-11-20 09:00:00", sinks={"totals": "s3://bucket/history"},
            counts={"rows": 1200, "windows": 24},
        ),
    )  # fmt: skip

    at.run = 3
    review = at.check(two, three, "approve")
    at.put("approve", ApprovedEntry(version=JobVersion.of(three), review=replace(review, approved_by="ann")))
    left = Snapshot("s3://bucket/savepoints/savepoint-2")
    stop = JobStop(JobRef("4" * 32), "5" * 32)
    then = JobStart("savepoint", left, request_id="5" * 32, job_id=JobRef("6" * 32))
    back = JobStart("savepoint", left, request_id="7" * 32, job_id=JobRef("8" * 32))
    former, common = common, {"job": three, "origin": ORIGIN, "review": replace(review, approved_by="ann")}
    at.put("resume", DeployingEntry(**common), StoppingEntry(**common, stop=stop))
    at.put("resume", StoppedEntry(**common, stop=replace(stop, savepoint=left, savepoint_bytes=6_000_000)))
    at.put("resume", StartingEntry(**common, start=then))
    at.put("resume", FailedEntry(**common, start=then, rolls_back_to=18, message=f"refused: 'password' = '{SECRET}'"))
    at.put("resume", RollingBackEntry(**former, start=back), RolledBackEntry(**former, start=back))
    at.put("resume", DisposedEntry(savepoint=Snapshot("s3://bucket/savepoints/savepoint-1")))
    at.run = 4
    at.check(two, three, "approve")
    return at.ledger


def fill_rejected(root: Path | str, dag_id: str | None, name: str) -> Ledger:
    """Adopted by hand or started, then a change that a person turned down."""
    at = Writing(root, name, dag_id)
    one, two = job(1), job(2)
    start = JobStart("stateless", job_id=JobRef("a" * 32))
    at.put("first", DeployedEntry(job=one, start=start, origin=ORIGIN))
    at.run = 2
    review = at.check(one, two, "approve")
    why = replace(review, reason="not before Christmas")
    at.put("approve", RejectedEntry(version=JobVersion.of(two), review=why, message="ann chose 'Reject'"))
    return at.ledger


def fill_interrupted(root: Path | str, dag_id: str | None, name: str) -> Ledger:
    """A redeploy whose run was last heard of after the stop."""
    at = Writing(root, name, dag_id)
    at.put("first", DeployedEntry(job=job(1), start=JobStart("stateless", job_id=JobRef("b" * 32))))
    stop = JobStop(JobRef("b" * 32), "c" * 32)
    at.put("resume", DeployingEntry(job=job(2), claim_seconds=600), StoppingEntry(job=job(2), stop=stop))
    return at.ledger
