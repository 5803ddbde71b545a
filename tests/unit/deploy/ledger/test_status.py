"""What a list shows of a deployment follows from its entries, one after another."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_flinkcompat.deploy import Ledger, LedgerEntry
from airflow_flinkcompat.deploy.ledger.entries import (
    ApprovedEntry,
    DeployedEntry,
    DeployingEntry,
    DisposedEntry,
    FailedEntry,
    FailedVersionEntry,
    JobStart,
    JobStop,
    JobVersion,
    RejectedEntry,
    RolledBackEntry,
    ShadowedEntry,
    StoppedEntry,
)
from airflow_flinkcompat.deploy.ledger.status import DeploymentRow, Progress, SavepointRow, last_savepoint
from airflow_flinkcompat.deploy.target import JobRef, Snapshot
from tests.unit.deploy.ledger.test_index import CHECKED, DEPLOYED, ENTRIES, JOB, STOPPED, VERSION

STORED = Path(__file__).parents[3] / "fixtures" / "stored"


def numbered(entries: list[LedgerEntry]) -> list[LedgerEntry]:
    return [
        replace(each, number=number, at=f"2026-01-01T00:00:{number:02d}+00:00")
        for number, each in enumerate(entries, 1)
    ]


def row_of(*entries: LedgerEntry) -> DeploymentRow:
    return DeploymentRow("orders").after_all(numbered(list(entries)))


@settings(max_examples=50, deadline=None)
@given(written=st.lists(st.sampled_from(ENTRIES), max_size=12))
def test_a_row_says_of_head_and_redeploy_what_the_progress_says(written: list[LedgerEntry]) -> None:
    entries = numbered(written)
    row, progress = DeploymentRow("orders").after_all(entries), Progress.of(entries)
    assert row.last == progress.last
    assert (row.head and row.head.number) == (progress.head and progress.head.number)
    assert (row.unfinished and row.unfinished.number) == (progress.unfinished and progress.unfinished.number)
    assert DeploymentRow.from_dict(json.loads(json.dumps(row.to_dict()))) == row
    assert row.savepoint == last_savepoint(entries)


def test_what_waits_for_a_person_and_what_ends_the_wait() -> None:
    waits = row_of(DEPLOYED, CHECKED)
    assert waits.pending == waits.checked
    assert waits.pending is not None
    assert (waits.pending.number, waits.pending.outcome, waits.pending.branch) == (2, "partial", "approve")
    other = JobVersion("flink", "2.3.0", "ab")
    for entry in (
        RejectedEntry(version=other),
        DisposedEntry(savepoint=Snapshot("s")),
        FailedVersionEntry(version=other),
    ):
        assert row_of(DEPLOYED, CHECKED, entry).pending == waits.pending
    settling: tuple[LedgerEntry, ...] = (
        ApprovedEntry(version=VERSION), RejectedEntry(version=VERSION), FailedVersionEntry(version=VERSION),
        DeployingEntry(job=JOB), DEPLOYED, replace(CHECKED, branch="resume"),
        replace(CHECKED, version=other, branch="reject"),
    )  # fmt: skip
    for entry in settling:
        assert row_of(DEPLOYED, CHECKED, entry).pending is None, entry


def test_a_shadow_run_makes_a_checked_version_wait_for_a_person() -> None:
    resumes = replace(CHECKED, branch="resume")
    asks, goes = (ShadowedEntry(version=VERSION, branch=branch) for branch in ("approve", "resume"))
    waits = row_of(DEPLOYED, resumes, asks)
    assert waits.pending == waits.checked is not None
    assert row_of(DEPLOYED, resumes, asks, ApprovedEntry(version=VERSION)).pending is None
    assert row_of(DEPLOYED, CHECKED, goes).pending is None
    assert row_of(DEPLOYED, resumes, replace(asks, version=JobVersion("flink", "2.3.0", "ab"))).pending is None


def test_the_last_savepoint_its_size_and_its_age() -> None:
    taken = replace(STOPPED.stop, savepoint_bytes=9, savepoint_at="2026-01-01T00:00:00.500+00:00")
    entries = numbered([DEPLOYED, STOPPED, replace(STOPPED, stop=taken)])
    found = last_savepoint(entries)
    assert found == SavepointRow("s3://b/sp/1", 9, "2026-01-01T00:00:00.500+00:00", 3, ("",))
    assert found.age(datetime(2026, 1, 1, 0, 1, tzinfo=UTC)) == 59.5


def test_of_an_entry_of_an_earlier_release_the_size_is_that_of_its_statistics() -> None:
    (entry,) = numbered([STOPPED])
    assert last_savepoint([entry]) == SavepointRow("s3://b/sp/1", 70, "2026-01-01T00:00:01+00:00", 1, ("",))
    assert STOPPED.stop.state is not None
    others = replace(STOPPED.stop, state=replace(STOPPED.stop.state, path=Snapshot("s3://b/sp/0")))
    found = last_savepoint([replace(STOPPED, stop=others)])
    assert found is not None
    assert found.bytes is None, "the statistics were of another one"


def test_a_savepoint_is_of_who_left_it_and_of_who_started_from_it() -> None:
    start = JobStart("migrated", Snapshot("s3://b/migrated/1"), migrated_from=Snapshot("s3://b/sp/1"))
    left, began = replace(STOPPED, owner="a"), DeployedEntry(job=JOB, start=start, owner="b")
    for entries, owners in (
        ([left], ("a",)),
        ([left, began, began], ("a", "b")),
        ([left, replace(began, start=JobStart("stateless"))], ("a",)),
        ([left, began, replace(left, owner="c")], ("c",)),
    ):
        found = last_savepoint(entries)
        assert found is not None
        assert found.owners == owners


def test_no_savepoint_is_named_that_is_not_there() -> None:
    assert last_savepoint([]) is None
    gone = DisposedEntry(savepoint=Snapshot("s3://b/sp/1"))
    assert last_savepoint([STOPPED, gone]) is None
    assert last_savepoint([STOPPED, replace(gone, savepoint=Snapshot("s3://b/sp/0"))]) is not None
    assert last_savepoint([replace(STOPPED, stop=JobStop(JobRef("j")))]) is None


@pytest.mark.parametrize(
    ("folder", "head", "size"),
    [("ledger-1", 33, None), ("ledger-2", 10, 4096)],
)
def test_ledgers_of_before_have_a_row(folder: str, head: int, size: int | None) -> None:
    entries = Ledger(STORED / folder, "orders").entries()
    row = DeploymentRow("orders").after_all(entries)
    stop = next(each for each in reversed(entries) if isinstance(each, StoppedEntry))
    assert row.savepoint == SavepointRow(str(stop.stop.savepoint), size, stop.at, stop.number, (stop.owner,))
    assert (row.checked, row.head and row.head.number) == (None, head)


def test_what_failed_last_and_until_when() -> None:
    gave_up = FailedEntry(job=JOB, start=JobStart(), claim_seconds=9, message="no slots")
    way_back = replace(gave_up, rolls_back_to=1)
    assert row_of(DEPLOYED).failed is None
    failed = row_of(DEPLOYED, DeployingEntry(job=JOB), gave_up)
    assert failed.failed is not None
    assert (failed.failed.number, failed.failed.claim_seconds, failed.unfinished) == (3, 9, None)
    assert row_of(DEPLOYED, FailedVersionEntry(version=VERSION)).failed is not None
    # The former script runs again, and the reason stays.
    back = row_of(DEPLOYED, way_back, RolledBackEntry(job=JOB, start=JobStart("savepoint")))
    assert (back.head and back.head.kind, back.failed and back.failed.number) == ("rolled-back", 2)
    for entry in (DeployingEntry(job=JOB), DEPLOYED):
        assert row_of(DEPLOYED, gave_up, entry).failed is None
    assert row_of(DEPLOYED, gave_up, CHECKED).failed is not None
