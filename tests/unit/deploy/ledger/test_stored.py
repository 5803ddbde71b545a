"""A ledger that version 0.1.0 wrote on 2026-11-23 is read to the last field, whatever became of its classes since.

``tests/fixtures/stored/ledger-1`` holds every kind of entry: a program taken over, a start without state by a hand-over
after a torn entry, a resume, a start that was rolled back, disposed savepoints, and what checks, an approval and a
killed task noted. Nothing may change these files.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.airflow.tasks.base import side_of
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import (
    ENTRY_TYPES,
    AdoptedEntry,
    ApprovedEntry,
    BackfilledEntry,
    CheckedEntry,
    DeployedEntry,
    DeployingEntry,
    DisposedEntry,
    FailedEntry,
    FailedVersionEntry,
    InterruptedEntry,
    JobStop,
    LedgerEntry,
    MigratedEntry,
    MigratingEntry,
    Origin,
    RehearsedEntry,
    RejectedEntry,
    Review,
    RolledBackEntry,
    RollingBackEntry,
    StartedEntry,
    StartingEntry,
    StepEntry,
    StoppedEntry,
    StoppingEntry,
    UnchangedEntry,
)
from airflow_flinkcompat.deploy.ledger.status import Progress
from airflow_flinkcompat.deploy.target import JobRef, Snapshot, SnapshotStats, VertexState
from airflow_flinkcompat.model import FunctionDeclaration

ROOT = Path(__file__).parents[3] / "fixtures" / "stored" / "ledger-1"
FILES = {int(path.stem): path for path in sorted((ROOT / "orders").glob("*.json"))}
TORN = 4
SINCE = {
    "request_id": None, "migrated_from": None, "migrated_to": None, "migration": {}, "reason": None, "branch": None,
    "policy": None, "commit": None, "author": None, "team": None, "owned_by": None, "savepoint_bytes": None,
    "savepoint_at": None, "rehearsal": {}, "shadow": {}, "range_from": None, "range_to": None, "sinks": {},
    "counts": {}, "prepared": None, "savepoint_before": None, "waivers": [],
}  # fmt: skip
"""Keys that were added since the stored ledger was written, and what they say where nothing is known."""
BESIDE = ("mark", "checksum")
"""What a file holds that is no field of an entry."""


def told(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of an entry that say something."""
    return {key: value for key, value in row.items() if key not in BESIDE and value not in (None, "", [], {}, 0)}


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return Ledger(ROOT, "orders")


def test_every_field_of_every_entry(ledger: Ledger) -> None:
    entries = {entry.number: entry for entry in ledger.entries()}
    assert set(entries) == set(FILES) - {TORN}
    for number, entry in entries.items():
        assert told(json.loads(json.dumps(entry.to_dict()))) == told(json.loads(FILES[number].read_text("utf-8")))


def test_every_kind_and_field_is_there(ledger: Ledger) -> None:
    rows = [json.loads(path.read_text("utf-8")) for number, path in FILES.items() if number != TORN]
    assert Counter(row["kind"] for row in rows) == {
        "deploying": 4, "stopping": 4, "stopped": 4, "starting": 4, "started": 4, "deployed": 3, "disposed": 3,
        "failed": 2, "adopted": 1, "approved": 1, "interrupted": 1, "rejected": 1, "rolled-back": 1, "rolling-back": 1,
        "unchanged": 1,
    }  # fmt: skip
    assert {key for row in rows for key in told(row)} == set(rows[0]) - set(BESIDE), "each field is used somewhere"


def test_what_it_says_is_in_force(ledger: Ledger) -> None:
    head = ledger.head()
    assert head is not None
    assert (head.number, head.kind, head.job_id) == (33, "deployed", "job-5")
    assert Progress.of(ledger.entries()).steps == ()
    assert [entry.passes_over for entry in ledger.entries() if entry.passes_over] == [(TORN,)]


def test_the_jobs_it_holds_have_the_digest_that_was_stored(ledger: Ledger) -> None:
    held = {entry.number: entry for entry in ledger.entries() if isinstance(entry, StepEntry)}
    stored = {number: json.loads(FILES[number].read_text("utf-8")) for number in set(FILES) - {TORN}}
    assert set(held) == {number for number, row in stored.items() if row["script"]}
    assert len({entry.sha256 for entry in held.values()}) == 5
    assert all(side_of(entry).sha256 == stored[number]["sha256"] for number, entry in held.items())


# ------------------------------------------------------------------------------------- every type and key of 2026-11-23
# ``ledger-2``: one entry of each type with every field filled, written by ``Ledger.append`` once starts and stops went
# by request ids. Nothing may change these files either.
TYPED = Ledger(ROOT.parent / "ledger-2", "orders").entries()
STORED_TYPES = {
    AdoptedEntry,
    ApprovedEntry,
    DeployedEntry,
    DeployingEntry,
    DisposedEntry,
    FailedEntry,
    FailedVersionEntry,
    InterruptedEntry,
    RejectedEntry,
    RolledBackEntry,
    RollingBackEntry,
    StartedEntry,
    StartingEntry,
    StoppedEntry,
    StoppingEntry,
    UnchangedEntry,
}
TYPED_FILES = sorted((ROOT.parent / "ledger-2" / "orders").glob("*.json"))


@pytest.mark.parametrize(("entry", "path"), zip(TYPED, TYPED_FILES, strict=True), ids=lambda each: "")
def test_a_filled_entry_of_each_type_is_read_whole(entry: LedgerEntry, path: Path) -> None:
    row = json.loads(path.read_text("utf-8"))
    kept = {**SINCE, **{key: value for key, value in row.items() if key not in BESIDE}}
    assert json.loads(json.dumps(entry.to_dict())) == kept
    assert type(entry) in ENTRY_TYPES, "a type that knows what its keys say, not one that only hands them on"
    # What was added since holds nothing here.
    kept = {each.name for each in fields(entry) if each.name not in ("passes_over", "origin", "prepared")}
    assert [name for name in kept if not getattr(entry, name)] == []


def test_there_is_one_of_each_type_and_their_values_are_understood() -> None:
    found = {type(entry): entry for entry in TYPED}
    assert len(found) == len(TYPED)
    assert set(found) == STORED_TYPES
    stopped, deployed, adopted = found[StoppedEntry], found[DeployedEntry], found[AdoptedEntry]
    assert isinstance(stopped, StoppedEntry)
    assert stopped.stop == JobStop(
        JobRef(f"{3:032}"), f"{4:032}", Snapshot("s3://b/chk/chk-16"), {"t-0": 12, "t-1": 7}, "s3://b/sp/stop-4",
        Snapshot("s3://b/sp/savepoint-1"),
        SnapshotStats(Snapshot("s3://b/sp/savepoint-1"), {"v1": VertexState("Source: t[1]", 2, 4096)}, 17),
    )  # fmt: skip
    assert isinstance(deployed, DeployedEntry)
    start = deployed.start
    assert (start.start_mode, start.savepoint, start.request_id, start.job_id) == (
        "savepoint", "s3://b/sp/savepoint-1", f"{1:032}", f"{2:032}",
    )  # fmt: skip
    assert start.offsets[0]["options"] == {"scan.startup.mode": "earliest-offset"}
    assert deployed.review == Review("partial", "reports/orders-7.json", "ann")
    assert deployed.job.functions == (FunctionDeclaration("f", "scalar", "java", "org.example.F"),)
    assert isinstance(adopted, AdoptedEntry)
    assert (adopted.job.language, adopted.job.variables, adopted.job.files) == (
        "python", {"Q": "INSERT INTO k SELECT 1"}, {"helper.py": "sha256:aa"},
    )  # fmt: skip


# ------------------------------------------------------------------------------- what the fleet's record holds since
def test_checks_rehearsals_backfills_and_where_a_version_comes_from_are_read_whole() -> None:
    """``ledger-4``, written by ``Ledger.append`` on 2026-11-26. Nothing may change these files either."""
    folder = ROOT.parent / "ledger-4"
    entries = Ledger(folder, "orders").entries()
    assert [type(entry) for entry in entries] == [
        CheckedEntry, RehearsedEntry, ApprovedEntry, StoppedEntry, DeployedEntry, BackfilledEntry,
    ]  # fmt: skip
    for entry, path in zip(entries, sorted((folder / "orders").glob("*.json")), strict=True):
        row = json.loads(path.read_text("utf-8"))
        kept = {**SINCE, **{key: row[key] for key in row if key not in BESIDE}}
        assert json.loads(json.dumps(entry.to_dict())) == kept
    checked, rehearsed, approved, stopped, deployed, backfilled = entries
    origin = Origin("c0ffee" * 6 + "c0ff", "Ann Example <ann@example.org>", "payments", "ann")
    assert isinstance(checked, CheckedEntry)
    assert (checked.branch, checked.policy, checked.origin) == ("approve", "resume", origin)
    assert isinstance(rehearsed, RehearsedEntry)
    assert rehearsed.rehearsal["finding"] == "restored"
    assert isinstance(approved, ApprovedEntry)
    assert approved.review == Review("partial", "reports/7.json", "ben", "the new metric may begin at zero")
    assert isinstance(stopped, StoppedEntry)
    assert (stopped.stop.savepoint_bytes, stopped.stop.savepoint_at) == (4096, "2026-11-26T18:00:00.250+00:00")
    assert stopped.stop.state is not None
    assert stopped.stop.state.taken == 1795716000.25
    assert isinstance(deployed, DeployedEntry)
    assert (deployed.origin, deployed.review.reason) == (origin, approved.review.reason)
    assert isinstance(backfilled, BackfilledEntry)
    assert (backfilled.range_to, backfilled.counts) == ("2026-11-26 00:00:00", {"rows_read": 12, "rows_written": 4})


# ------------------------------------------------------------------------------------- what a migration writes since
def test_the_steps_of_a_migration_are_read_whole() -> None:
    """``ledger-3``, written by ``Ledger.append`` on 2026-11-24. Nothing may change these files either."""
    folder = ROOT.parent / "ledger-3"
    entries = Ledger(folder, "orders").entries()
    assert [type(entry) for entry in entries] == [MigratingEntry, MigratedEntry, DeployedEntry]
    for entry, path in zip(entries, sorted((folder / "orders").glob("*.json")), strict=True):
        row = json.loads(path.read_text("utf-8"))
        assert json.loads(json.dumps(entry.to_dict())) == {
            **SINCE,
            **{key: row[key] for key in row if key not in BESIDE},
        }
    _, migrated, deployed = entries
    assert isinstance(migrated, MigratedEntry)
    assert isinstance(deployed, DeployedEntry)
    assert migrated.migration["operators"][0]["keeps"] == ["SUM(b)"]
    assert (deployed.start.start_mode, deployed.start.savepoint) == ("migrated", migrated.migrated_to)
    assert deployed.start.migrated_from == deployed.start.way_back == migrated.savepoint
