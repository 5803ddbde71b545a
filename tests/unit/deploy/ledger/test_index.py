"""The index says what the ledgers say, whoever dies or comes second, and reads few objects."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from airflow_flinkcompat.deploy import Ledger, LedgerEntry, LedgerError
from airflow_flinkcompat.deploy.ledger import index as index_module
from airflow_flinkcompat.deploy.ledger.entries import (
    CheckedEntry,
    DeployedEntry,
    DeployingEntry,
    DisposedEntry,
    FailedEntry,
    JobStart,
    JobStop,
    JobVersion,
    RejectedEntry,
    Review,
    StoppedEntry,
)
from airflow_flinkcompat.deploy.ledger.index import FOLDER, Index, IndexView, Marker
from airflow_flinkcompat.deploy.ledger.ledger import _encoded, deployments
from airflow_flinkcompat.deploy.ledger.listing import deployment_rows, rebuild_index
from airflow_flinkcompat.deploy.ledger.status import DeploymentRow
from airflow_flinkcompat.deploy.ledger.store import Store
from airflow_flinkcompat.deploy.target import JobRef, Snapshot, SnapshotStats, VertexState
from airflow_flinkcompat.model import JobSpec

JOB = JobSpec("INSERT INTO k SELECT a FROM s", engine="flink", engine_version="2.3.0")
VERSION = JobVersion.of(JOB)
STATE = SnapshotStats(Snapshot("s3://b/sp/1"), {"v": VertexState("sum", 1, 70)}, 3)
DEPLOYED = DeployedEntry(
    job=JOB, start=JobStart("stateless", job_id=JobRef("j1")), review=Review("partial", "r", "ann")
)
STOPPED = StoppedEntry(job=JOB, stop=JobStop(JobRef("j1"), "ab", savepoint=Snapshot("s3://b/sp/1"), state=STATE))
CHECKED = CheckedEntry(version=VERSION, review=Review("partial", "r"), branch="approve", policy="approve")
ENTRIES: tuple[LedgerEntry, ...] = (
    DEPLOYED,
    DeployingEntry(job=JOB),
    STOPPED,
    FailedEntry(job=JOB, start=JobStart(), rolls_back_to=1),
    CHECKED,
    replace(CHECKED, branch="resume"),
    RejectedEntry(version=VERSION, message="no"),
    DisposedEntry(savepoint=Snapshot("s3://b/sp/1")),
)
FEW = 3


class Died(BaseException):
    """A writer's process ends."""


def dies(*_: Any, **__: Any) -> Any:
    raise Died


def place() -> str:
    return f"memory://{uuid.uuid4().hex}/ledger"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot is made whenever more than three markers are newer."""
    monkeypatch.setattr(index_module, "MOST_MARKERS", FEW)


def written(root: str) -> Ledger:
    ledger = Ledger(root, "orders")
    ledger.append(DEPLOYED)
    return ledger


class Writers(RuleBasedStateMachine):
    """Writers of several ledgers, any of which may die, be slow, or come second, at any step."""

    names = st.sampled_from(["a", "b", "b.c"])
    entries = st.sampled_from(ENTRIES)

    @initialize()
    def begin(self) -> None:
        self.root = place()
        self.index = Index(self.root)
        self.most, index_module.MOST_MARKERS = index_module.MOST_MARKERS, FEW
        self.slow: list[DeploymentRow] = []
        self.views: list[IndexView] = []

    def teardown(self) -> None:
        index_module.MOST_MARKERS = self.most

    def _append(self, name: str, entry: LedgerEntry, hurt: Callable[[Ledger], None] = lambda _: None) -> None:
        ledger = Ledger(self.root, name)
        hurt(ledger)
        with contextlib.suppress(Died):
            ledger.append(entry)

    @rule(name=names, entry=entries)
    def one_entry(self, name: str, entry: LedgerEntry) -> None:
        self._append(name, entry)

    @rule(name=names, first=entries, second=entries)
    def one_object_writes_twice(self, name: str, first: LedgerEntry, second: LedgerEntry) -> None:
        ledger = Ledger(self.root, name)
        ledger.append(first)
        ledger.append(second)

    @rule(name=names, entry=entries)
    def dies_before_the_entry(self, name: str, entry: LedgerEntry) -> None:
        self._append(name, entry, lambda ledger: setattr(ledger._store, "create", dies))

    @rule(name=names, entry=entries)
    def dies_after_the_entry(self, name: str, entry: LedgerEntry) -> None:
        self._append(name, entry, lambda ledger: setattr(ledger._index, "settle", dies))

    @rule(name=names, entry=entries)
    def dies_before_what_is_covered_is_deleted(self, name: str, entry: LedgerEntry) -> None:
        self._append(name, entry, lambda ledger: setattr(ledger._index._store, "delete", dies))

    @rule(name=names, entry=entries)
    def is_slow_to_settle(self, name: str, entry: LedgerEntry) -> None:
        self._append(name, entry, lambda ledger: setattr(ledger._index, "settle", self.slow.append))

    @rule()
    def the_slow_ones_settle(self) -> None:
        while self.slow:
            self.index.settle(self.slow.pop())

    @rule(name=names, back=st.integers(0, 2))
    def announces_a_number_that_another_has_won(self, name: str, back: int) -> None:
        last = Ledger(self.root, name).row().last
        if last > back:
            self.index.announce(name, last - back)

    @rule()
    def begins_a_snapshot(self) -> None:
        if (view := self.index._read(self.index._list_files())) is not None:
            self.views.append(view)

    @rule()
    def ends_a_snapshot_begun_long_ago(self) -> None:
        if self.views:
            view = self.views.pop(0)
            with contextlib.suppress(FileExistsError):
                self.index._write(view, view.rows)

    @rule()
    def is_made_anew(self) -> None:
        rebuild_index(self.root)

    @invariant()
    def the_index_says_what_the_ledgers_say(self) -> None:
        if hasattr(self, "root"):
            assert deployment_rows(self.root) == deployment_rows(self.root, by_index=False)


Writers.TestCase.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
TestWriters = pytest.mark.slow(Writers.TestCase)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the store is asked, by what for."""
    counted: Counter[str] = Counter()
    for name in ("_read", "names", "folders", "put", "create", "_delete"):
        call = getattr(Store, name)

        def counting(self: Store, *given: Any, _call: Any = call, _name: str = name, **more: Any) -> Any:
            counted[_name] += 1
            return _call(self, *given, **more)

        monkeypatch.setattr(Store, name, counting)
    return counted


@pytest.mark.slow
def test_a_thousand_deployments_are_listed_by_few_objects(reads: Counter[str]) -> None:
    root = place()
    for number in range(1000):
        ledger = Ledger(root, f"job-{number:04d}")
        ledger._store._fs.pipe_file((ledger.directory / "000001.json").path, _encoded(replace(DEPLOYED, number=1)))
    rebuild_index(root)
    for number in range(40):
        Ledger(root, f"job-{number:04d}").append(CHECKED)
    Index(root).announce("job-0999", 2)
    reads.clear()
    rows = deployment_rows(root)
    # The markers and the snapshots; the snapshot, 41 markers that are newer, and one entry.
    assert (len(rows), reads["folders"], reads["names"], reads["_read"]) == (1000, 1, 3, 1 + 41)
    assert sum(reads.values()) < 60
    reads.clear()
    assert deployment_rows(root, by_index=False) == rows
    assert sum(reads.values()) > 3000


def test_an_append_asks_little_more(few: None, reads: Counter[str]) -> None:
    ledger = written(place())
    reads.clear()
    ledger.append(DeployingEntry(job=JOB))
    assert (reads["put"], reads["create"]) == (2, 1), "a marker before the entry and a row after it"
    assert reads["_read"] == 1, "whether the last entry is torn; the row before is known"
    reads.clear()
    ledger.append(CHECKED)
    # Of the names three are for the entry, on a store that keeps no writers apart by itself.
    assert (reads["_read"], reads["names"]) == (1, 4), "no snapshot is read to see that none is due"


def test_many_markers_become_one_snapshot_and_few_files_stay(few: None) -> None:
    root = place()
    ledger = written(root)
    for _ in range(40):
        ledger.append(CHECKED)
    store = Store(root, FOLDER)
    assert len([name for name in store.names() if "~" in name]) <= 2 * (FEW + 1)
    assert len(store.names("snapshots")) <= 2
    assert Index(root).read().rows["orders"] == ledger.row()


def test_a_store_that_denies_deletes_keeps_working(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_self: Store, names: Any) -> None:
        raise LedgerError("access denied")

    monkeypatch.setattr(Store, "delete", denied)
    root = place()
    ledger = written(root)
    for _ in range(20):
        ledger.append(CHECKED)
    assert deployment_rows(root) == {"orders": ledger.row()}
    assert len(Store(root, FOLDER).names("snapshots")) > 2


def test_a_store_that_denies_the_index_takes_every_entry_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FOLDER).write_text("no folder")
    ledger = Ledger(tmp_path, "orders")
    assert [ledger.append(DEPLOYED).number, ledger.append(CHECKED).number] == [1, 2]
    assert "Cannot announce entry 1 of orders to the index" in caplog.text
    assert "`flinkcompat ledger index` rebuilds the index" in caplog.text
    assert deployment_rows(tmp_path) == {"orders": ledger.row()}


def test_files_of_the_index_are_whole_on_a_local_disk_too(few: None, tmp_path: Path) -> None:
    for name in ("orders", "clicks"):
        for entry in ENTRIES:
            Ledger(tmp_path, name).append(entry)
    assert deployments(tmp_path) == ("clicks", "orders")
    assert [path.name for path in (tmp_path / FOLDER).rglob(".*")] == [], "no temporary file is left"
    assert deployment_rows(tmp_path) == deployment_rows(tmp_path, by_index=False)


@pytest.mark.parametrize("content", [b"", b'{"schema": "flinkcompat-index/4", "depl', b"[]", b'{"schema": "other/9"}'])
def test_a_marker_without_a_row_that_is_understood_sends_readers_to_the_ledger(content: bytes) -> None:
    root = place()
    ledger = written(root)
    ledger.append(CHECKED)
    Store(root, FOLDER).put(Marker("orders", 2).name, content)
    assert Index(root).read().dirty == {"orders"}
    assert deployment_rows(root) == {"orders": ledger.row()}


def test_a_snapshot_that_cannot_be_read_sends_readers_to_the_ledgers(
    few: None, caplog: pytest.LogCaptureFixture
) -> None:
    root = place()
    ledger = written(root)
    for _ in range(12):
        ledger.append(CHECKED)
    store = Store(root, FOLDER)
    for name in store.names("snapshots"):
        store.put(f"snapshots/{name}", b"{")
    assert deployment_rows(root) == {"orders": ledger.row()}
    assert "Cannot use snapshot" in caplog.text
    rebuild_index(root)
    caplog.clear()
    assert deployment_rows(root) == {"orders": ledger.row()}
    assert caplog.text == ""


def test_a_deployment_that_was_deleted_is_listed_no_more(tmp_path: Path) -> None:
    for name in ("orders", "clicks"):
        Ledger(tmp_path, name).append(DEPLOYED)
    (tmp_path / "orders" / "000001.json").unlink()
    (tmp_path / "orders").rmdir()
    assert list(deployment_rows(tmp_path)) == ["clicks"]


def test_what_was_restored_from_a_backup_is_seen_once_the_index_is_made_anew(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, "orders")
    for entry in (DEPLOYED, CHECKED, CHECKED):
        ledger.append(entry)
    (tmp_path / "orders" / "000003.json").unlink()
    rebuild_index(tmp_path)
    assert deployment_rows(tmp_path)["orders"] == Ledger(tmp_path, "orders").row()


def test_ledgers_of_before_are_read_themselves_and_then_indexed() -> None:
    root = Path(__file__).parents[3] / "fixtures" / "stored" / "ledger-1"
    row = deployment_rows(root)["orders"]
    assert isinstance(row, DeploymentRow)
    assert (row.last, row.head and row.head.number) == (36, 33)
    assert row.savepoint is not None
    assert not (root / FOLDER).exists(), "a reader writes nothing"


def test_one_append_after_a_release_without_an_index_tells_all(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    folder.mkdir()
    for number, entry in enumerate((DEPLOYED, STOPPED), 1):
        (folder / f"{number:06d}.json").write_bytes(
            _encoded(replace(entry, number=number, at="2026-01-01T00:00:00+00:00"))
        )
    Ledger(tmp_path, "orders").append(CHECKED)
    view = Index(tmp_path).read()
    assert view.dirty == frozenset()
    assert view.rows["orders"] == Ledger(tmp_path, "orders").row()
    assert view.rows["orders"].savepoint is not None


def test_damage_below_the_head_keeps_no_deployment_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ledger = Ledger(tmp_path, "orders")
    for entry in (DEPLOYED, CHECKED, DEPLOYED):
        ledger.append(entry)
    (tmp_path / "orders" / "000001.json").write_text("{\n}")
    with caplog.at_level(logging.WARNING):
        row = deployment_rows(tmp_path, by_index=False)["orders"]
    assert isinstance(row, DeploymentRow)
    assert row.head is not None
    assert row.head.number == 3
