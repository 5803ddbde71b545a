from __future__ import annotations

import contextlib
import json
import multiprocessing
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given, settings
from hypothesis import strategies as st
from upath import UPath

from airflow_flinkcompat.deploy import Ledger, LedgerConflict, LedgerEntry, LedgerError
from airflow_flinkcompat.deploy.ledger.entries import (
    AdoptedEntry,
    DeployedEntry,
    DeployingEntry,
    FailedEntry,
    FailedVersionEntry,
    HeadEntry,
    JobStart,
    JobVersion,
    RejectedEntry,
    Review,
    RolledBackEntry,
)
from airflow_flinkcompat.deploy.ledger.ledger import _checksum
from airflow_flinkcompat.deploy.ledger.status import Progress
from airflow_flinkcompat.model import FunctionDeclaration, JobSpec

ENTRY = DeployedEntry(
    job=JobSpec(
        "INSERT INTO k SELECT * FROM s -- ü",
        settings={"parallelism.default": "1"},
        functions=(FunctionDeclaration("f", "scalar", "python"),),
        catalog="CREATE TABLE s (a INT)",
        engine="flink",
        engine_version="2.3.0",
    ),
    start=JobStart("savepoint", "file:/s", job_id="j1"),
    review=Review("compatible", "r.json", "ann"),
    message="fine",
    owner="me",
)
FAILED = FailedVersionEntry(version=JobVersion())
CLAIM = DeployingEntry(job=ENTRY.job)
FAILED_START = FailedEntry(job=ENTRY.job, start=ENTRY.start, rolls_back_to=1)
BACK = RolledBackEntry(job=ENTRY.job, start=ENTRY.start)


@pytest.fixture(params=["local", "object store"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    root = str(tmp_path / "ledger") if request.param == "local" else f"memory://{uuid.uuid4().hex}"
    return Ledger(root, "orders-v1.eu")


def test_entries_come_back_as_written(ledger: Ledger) -> None:
    assert ledger.entries() == ()
    assert ledger.head() is None
    first = ledger.append(ENTRY)
    assert (first.number, first.schema) == (1, "flinkcompat-ledger/1")
    assert first.at.endswith("+00:00")
    second = ledger.append(RejectedEntry(version=JobVersion(sha256="cd")))
    assert ledger.entries() == (first, second)
    assert ledger.head() == first
    third = ledger.append(ENTRY)
    assert ledger.head() == third
    assert [path.name for path in sorted(ledger.directory.iterdir(), key=str) if path.is_file()] == [
        "000001.json",
        "000002.json",
        "000003.json",
    ]


def test_append_after_an_entry_that_is_no_longer_the_last(ledger: Ledger) -> None:
    ledger.append(ENTRY, after=0)
    with pytest.raises(LedgerConflict, match=r"a different run wrote to the ledger of orders-v1\.eu during this run"):
        ledger.append(ENTRY, after=0)
    ledger.append(ENTRY, after=1)
    assert len(ledger.entries()) == 2


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "a\\b", ".hidden", "a" * 129, "ä", "a\n", "reports", "-x"]
)
def test_names_that_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="is not a valid deployment name"):
        Ledger(tmp_path, name)


def test_place_that_cannot_be_used() -> None:
    with pytest.raises(LedgerError, match="'nosuch://x' cannot be used"):
        Ledger("nosuch://x", "orders")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("[]", "'list' object has no attribute"),
        ('{"schema": \n}', "Expecting value"),
        ('{"schema": "flinkcompat-ledger/2"}', "this release reads 'flinkcompat-ledger/1'"),
        ('{"schema": "flinkcompat-ledger/1"}', "kind or number is missing"),
        ('{"schema": "flinkcompat-ledger/1", "kind": "rejected", "number": 7}', "its content has the number 7"),
    ],
)
def test_unreadable_entry_is_told_and_never_passed_over(content: str, why: str, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, "orders")
    ledger.append(ENTRY)
    (tmp_path / "orders" / "000002.json").write_text(content)
    for read in (ledger.entries, ledger.head):
        with pytest.raises(
            LedgerError, match=r"000002\.json cannot be read: .*Restore the file from a backup"
        ) as caught:
            read()
        assert why in str(caught.value)


def whole_and_torn(tmp_path: Path) -> tuple[Ledger, Path]:
    """A ledger of one entry, and the path of the next one."""
    ledger = Ledger(tmp_path, "orders")
    ledger.append(ENTRY)
    return ledger, tmp_path / "orders" / "000002.json"


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_torn_last_entry_is_no_entry_and_is_passed_over(
    share: float, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ledger, second = whole_and_torn(tmp_path)
    whole = (tmp_path / "orders" / "000001.json").read_bytes().replace(b'"number": 1', b'"number": 2')
    second.write_bytes(whole[: int(share * len(whole))])
    assert [entry.number for entry in ledger.entries()] == [1]
    assert ledger.head() == ledger.entries()[0]
    assert f"{second} is incomplete" in caplog.text
    with pytest.raises(LedgerConflict):
        ledger.append(FAILED, after=2)
    third = ledger.append(FAILED, after=1)
    assert (third.number, third.passes_over) == (3, (2,))
    # Who was only slow, and finishes after all, changes nothing any more.
    for content in (second.read_bytes(), whole):
        second.write_bytes(content)
        assert [entry.number for entry in ledger.entries()] == [1, 3]
        assert ledger.append(FAILED).passes_over == ()
        (tmp_path / "orders" / "000004.json").unlink()


def test_zeros_instead_of_an_entry_are_torn_too(tmp_path: Path) -> None:
    """What a file system may leave of a file after a power failure."""
    ledger, second = whole_and_torn(tmp_path)
    second.write_bytes(bytes(700))
    assert [entry.number for entry in ledger.entries()] == [1]


def test_torn_entry_in_the_midst_is_an_error(tmp_path: Path) -> None:
    ledger, second = whole_and_torn(tmp_path)
    for _ in range(2):
        ledger.append(FAILED)
    second.write_bytes(second.read_bytes()[:-1])
    for read in (ledger.entries, ledger.head):
        with pytest.raises(LedgerError, match=r"000002\.json cannot be read"):
            read()


def test_missing_entry_is_an_error(tmp_path: Path) -> None:
    ledger, second = whole_and_torn(tmp_path)
    for _ in range(2):
        ledger.append(ENTRY)
    second.unlink()
    for call in (ledger.entries, ledger.head, lambda: ledger.append(ENTRY)):
        with pytest.raises(LedgerError, match=r"000002\.json is missing.*Restore the file from a backup"):
            call()


@pytest.mark.parametrize("last", [False, True])
def test_changed_entry_is_told_by_its_checksum(last: bool, tmp_path: Path) -> None:
    ledger, second = whole_and_torn(tmp_path)
    ledger.append(ENTRY)
    if not last:
        ledger.append(FAILED)
    second.write_text(second.read_text().replace('"job_id": "j1"', '"job_id": "j2"'))
    for read in (ledger.entries, ledger.head):
        with pytest.raises(LedgerError, match=r"000002\.json cannot be read: its checksum does not match its content"):
            read()


def test_entries_of_former_and_later_versions(tmp_path: Path) -> None:
    """A former version knew no checksum, a later one may know further fields."""
    ledger = Ledger(tmp_path, "orders")
    stored = ledger.append(ENTRY)
    path = tmp_path / "orders" / "000001.json"
    row = {**json.loads(path.read_text()), "invented_later": 1}
    del row["checksum"]
    for checksum in ({}, {"checksum": _checksum(row)}):
        path.write_text(json.dumps({**row, **checksum}))
        assert ledger.entries() == (stored,)


@pytest.mark.parametrize("kind", [AdoptedEntry, DeployedEntry, RolledBackEntry])
def test_kinds_that_are_heads(kind: type[HeadEntry], ledger: Ledger) -> None:
    ledger.append(ENTRY)
    head = ledger.append(kind(job=ENTRY.job, start=ENTRY.start))
    for _ in range(9):
        ledger.append(FAILED)
    assert ledger.head() == head
    assert [entry.number for entry in ledger.entries() if entry.is_head] == [1, 2]


@settings(max_examples=25, deadline=None)
@given(written=st.lists(st.sampled_from([ENTRY, BACK, FAILED_START, CLAIM, FAILED]), max_size=12))
def test_what_is_in_force_says_the_same_progress_as_every_entry(written: list[LedgerEntry]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(folder, "orders")
        for entry in written:
            ledger.append(entry)
        found, every = ledger.in_force(), ledger.entries()
        assert Progress.of(found) == Progress.of(every)
        assert found == every[-len(found) :] if found else every == ()
        assert [entry.is_head for entry in found[1:]] == [False] * len(found[1:])


def test_reading_needs_no_parser_and_no_http_client(tmp_path: Path) -> None:
    Ledger(tmp_path, "orders").append(ENTRY)
    code = (
        "import sys; from airflow_flinkcompat.deploy import Ledger;"
        f"assert Ledger({str(tmp_path)!r}, 'orders').head().job_id == 'j1';"
        "print([name for name in ('sqlglot', 'httpx', 'tenacity') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_messages_are_masked(ledger: Ledger) -> None:
    stored = ledger.append(FailedVersionEntry(version=JobVersion(), message="refused: 'password' = 'hunter2hunter2'"))
    assert "hunter2" not in stored.message
    assert "hunter2" not in (ledger.directory / "000001.json").read_text()


def test_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LedgerError, match="cannot"):
        Ledger(tmp_path / "file", "orders").append(ENTRY)


def _append_many(root: str, writer: int, count: int) -> None:
    for index in range(count):
        Ledger(root, "orders").append(replace(ENTRY, message=f"{writer}-{index}"))


@pytest.mark.slow
def test_processes_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append_many, args=(str(tmp_path), number, 15)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    entries = Ledger(tmp_path, "orders").entries()
    assert [entry.number for entry in entries] == list(range(1, 61))
    assert {entry.message for entry in entries} == {f"{w}-{i}" for w in range(4) for i in range(15)}
    assert [path.name for path in (tmp_path / "orders").iterdir() if path.name.startswith(".")] == []


def test_exactly_one_of_many_wins_a_number(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    # The store in memory stumbles over a file that is deleted while it lists them, as no real one does.
    lock = RLock()
    for name in ("ls", "_rm"):
        monkeypatch.setattr(MemoryFileSystem, name, _one_at_a_time(lock, getattr(MemoryFileSystem, name)))

    def claim(number: int) -> LedgerEntry | None:
        try:
            return ledger.append(replace(CLAIM, message=str(number)), after=0)
        except LedgerConflict:
            return None

    with ThreadPoolExecutor(4) as pool:
        won = [entry for entry in pool.map(claim, range(16)) if entry]
    assert ledger.entries() == tuple(won)
    assert len(won) == 1


def _one_at_a_time(lock: Any, former: Callable[..., Any]) -> Callable[..., Any]:
    def called(*given: Any, **named: Any) -> Any:
        with lock:
            return former(*given, **named)

    return called


def test_reports(ledger: Ledger) -> None:
    report = {"schema": "flinkcompat-report/1", "outcome": "partial", "findings": [{"message": "ü"}]}
    path = ledger.store_report(report, "# Partial ü\n")
    assert ledger.read_report(path) == (report, "# Partial ü\n")
    assert ledger.store_report(report, "# Partial ü\n") == path
    assert ledger.store_report(report, "# Other\n") != path
    assert ledger.entries() == ()
    for bad in ("x.json", "../000001.json", path.replace(".json", ".md"), "reports/" + "0" * 32 + ".json"):
        with pytest.raises(LedgerError):
            ledger.read_report(bad)


def test_the_proposed_version_is_kept_with_its_report_and_masked(ledger: Ledger) -> None:
    secret = "hunter2hunter2"
    job = JobSpec(
        f"CREATE TABLE t (a INT) WITH ('connector' = 'jdbc', 'password' = '{secret}');\nINSERT INTO k SELECT 1",
        settings={"s3.secret-key": secret, "parallelism.default": "2"},
        functions=(FunctionDeclaration("f", "scalar"),),
        catalog=f"CREATE TABLE s (a INT) WITH ('url' = 'x://u:{secret}@h/d', 'password' = '${{conn.db.password}}')",
        engine="flink",
        engine_version="2.3.0",
        source="orders.sql",
    )
    path = ledger.store_report({"outcome": "partial"}, "# Partial\n", job)
    assert path == ledger.store_report({"outcome": "partial"}, "# Partial\n"), "the report keeps its name"
    kept = ledger.read_proposed(path)
    assert kept is not None
    assert secret not in json.dumps(kept.to_dict())
    assert kept.script == job.script.replace(secret, "***")
    assert kept.settings == {"s3.secret-key": "***", "parallelism.default": "2"}
    assert "${conn.db.password}" in kept.catalog
    assert replace(kept, script=job.script, settings=job.settings, catalog=job.catalog) == job
    assert ledger.read_report(path)[0] == {"outcome": "partial"}


def test_a_program_and_the_files_beside_it_are_kept_masked(ledger: Ledger) -> None:
    secret = "hunter2hunter2"
    job = JobSpec(
        f'password = "{secret}"\n', language="python", variables={"DB_PASSWORD": secret},
        files={"query.sql": f"-- 'password' = '{secret}'", "helper.py": f'token = "{secret}"\n'},
    )  # fmt: skip
    kept = ledger.read_proposed(ledger.store_report({}, "", job))
    assert kept is not None
    assert (kept.language, {*kept.files}, {*kept.variables}) == ("python", {*job.files}, {"DB_PASSWORD"})
    assert secret not in json.dumps(kept.to_dict())


def test_a_report_of_before_has_no_proposed_version(ledger: Ledger) -> None:
    path = ledger.store_report({"outcome": "partial"}, "# Partial\n")
    assert ledger.read_proposed(path) is None
    with pytest.raises(LedgerError, match="is not a report of orders"):
        ledger.read_proposed("../000001.json")
    place = path.removesuffix("json") + "proposed.json"
    UPath(place).write_text('{"schema": "flinkcompat-proposed/9"}')
    with pytest.raises(LedgerError, match=r"proposed\.json cannot be read: its schema is 'flinkcompat-proposed/9'"):
        ledger.read_proposed(path)


def test_half_of_an_entry_that_is_being_written_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a store that shows a file while it grows and keeps no writers apart: who waited looks again."""
    root = f"memory://{uuid.uuid4().hex}"
    ledgers = [Ledger(root, "orders") for _ in range(2)]
    ledgers[0].append(replace(ENTRY, owner=""))
    half, done = threading.Event(), threading.Event()
    store = ledgers[0]._store

    def slowly(path: UPath, content: bytes) -> None:
        path.write_bytes(content[: len(content) // 2])
        half.set()
        assert done.wait(10)
        path.write_bytes(content)

    def late() -> LedgerEntry | None:
        assert half.wait(10)
        threading.Timer(0.5, done.set).start()
        with contextlib.suppress(LedgerConflict):
            return ledgers[1].append(replace(CLAIM, owner="late"), after=1)
        return None

    monkeypatch.setattr(store, "_put_checked", slowly)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(late)
        first = ledgers[0].append(replace(CLAIM, owner="first"), after=1)
        assert other.result() is None
    assert [entry.owner for entry in ledgers[1].entries()] == ["", "first"]
    assert first.number == 2
