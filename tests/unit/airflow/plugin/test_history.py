"""Redeploys and savepoints, as the entries tell of them."""

from __future__ import annotations

from dataclasses import replace

from airflow_flinkcompat.airflow.plugin.history import attempts, lineage
from airflow_flinkcompat.deploy.ledger.entries import (
    AdoptedEntry,
    DeployedEntry,
    DeployingEntry,
    DisposedEntry,
    FailedEntry,
    JobStart,
    JobStop,
    LedgerEntry,
    PlannedEntry,
    RejectedEntry,
    StartedEntry,
    StartingEntry,
    StoppedEntry,
    StoppingEntry,
)
from airflow_flinkcompat.deploy.ledger.entries import JobVersion as LedgerVersion
from airflow_flinkcompat.deploy.target import JobRef, Snapshot
from tests.support.airflow.plugin.ledgers import job, numbered

ONE, TWO = job(1), job(2)
START = JobStart("savepoint", Snapshot("file:///sp/1"), request_id="1" * 32, job_id=JobRef("2" * 32))
STOP = JobStop(JobRef("0" * 32), "1" * 32)
LEFT = replace(STOP, savepoint=Snapshot("file:/sp/1"))
DEPLOYED = DeployedEntry(job=ONE, start=JobStart("stateless", job_id=JobRef("0" * 32)))


def ends(*entries: LedgerEntry) -> list[tuple[str, int, int, float | None]]:
    found = attempts(numbered(*entries))
    return [(each.end, each.steps[0].number, each.steps[-1].number, each.downtime_seconds) for each in found]


def test_each_redeploy_with_its_end_and_its_downtime() -> None:
    stopping, stopped = StoppingEntry(job=TWO, stop=STOP), StoppedEntry(job=TWO, stop=LEFT)
    starting, started = StartingEntry(job=TWO, start=START), StartedEntry(job=TWO, start=START)
    gave_up = FailedEntry(job=TWO, start=START)
    note = RejectedEntry(version=LedgerVersion.of(TWO))
    claim = DeployingEntry(job=TWO)
    assert ends(DEPLOYED, note, claim, stopping, stopped, starting, started, DeployedEntry(job=TWO, start=START)) == [
        ("deployed", 1, 1, None), ("deployed", 3, 8, 120.0),
    ]  # fmt: skip
    # A run died, another one took over: one redeploy. An earlier start that failed is no end of the downtime.
    assert ends(claim, stopping, stopped, starting, started, claim, starting, started, replace(DEPLOYED, job=TWO)) == [
        ("deployed", 1, 9, 300.0)
    ]
    assert ends(claim, gave_up, claim, stopping) == [("failed", 1, 2, None), ("unfinished", 3, 4, None)]
    # Nothing runs: the downtime has no end yet.
    assert ends(claim, stopped, starting) == [("unfinished", 1, 3, None)]
    assert ends(claim, stopped, gave_up) == [("failed", 1, 3, None)]
    assert ends(AdoptedEntry(job=ONE, start=JobStart()), PlannedEntry(job=TWO, start=JobStart())) == [
        ("adopted", 1, 1, None), ("planned", 2, 2, None),
    ]  # fmt: skip


def test_which_start_came_from_which_savepoint() -> None:
    again = replace(STOP, savepoint=Snapshot("file:/sp/2"))
    entries = numbered(
        DEPLOYED,
        StoppedEntry(job=TWO, stop=LEFT),
        DeployedEntry(job=TWO, start=replace(START, savepoint_bytes=7)),
        StoppedEntry(job=ONE, stop=again),
        DisposedEntry(savepoint=Snapshot("file:///sp/1/")),
    )
    first, second = lineage(entries)
    assert (first.stopped.number, first.left_by and first.left_by.number) == (2, 1)
    assert [each.number for each in first.starts] == [3]
    # The size was known only when the next job ran.
    assert (first.savepoint.bytes, first.disposed and first.disposed.number) == (7, 5)
    assert (second.savepoint.path, second.starts, second.disposed) == ("file:/sp/2", (), None)
    assert second.left_by is not None
    assert second.left_by.number == 3
