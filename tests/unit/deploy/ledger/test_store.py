"""The ledger on object stores: a real S3 client against moto's server, a real GCS client against a stand-in."""

from __future__ import annotations

import json
import logging
import multiprocessing
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry as registered

from airflow_flinkcompat.deploy import Ledger, LedgerConflict, LedgerError
from airflow_flinkcompat.deploy.ledger import index as index_module
from airflow_flinkcompat.deploy.ledger import store as store_module
from airflow_flinkcompat.deploy.ledger.entries import (
    DeployedEntry,
    DeployingEntry,
    FailedVersionEntry,
    JobStart,
    JobVersion,
)
from airflow_flinkcompat.deploy.ledger.index import FOLDER, Index
from airflow_flinkcompat.deploy.ledger.ledger import _encoded, deployments
from airflow_flinkcompat.deploy.ledger.listing import deployment_rows
from airflow_flinkcompat.deploy.ledger.status import DeploymentRow
from airflow_flinkcompat.deploy.ledger.store import Store
from airflow_flinkcompat.model import JobSpec
from dev.services.object_stores import GcsStandIn, S3StandIn, serving
from tests.support.nightly import mostly_nightly

pytestmark = pytest.mark.slow

FAILED = FailedVersionEntry(version=JobVersion())
ENTRY = DeployedEntry(job=JobSpec("INSERT INTO k SELECT * FROM s -- ü"), start=JobStart(job_id="j1"))


@pytest.fixture(scope="module")
def server() -> Iterator[S3StandIn]:
    stand_in = S3StandIn()
    with serving(stand_in):
        yield stand_in


@pytest.fixture
def s3(server: S3StandIn, monkeypatch: pytest.MonkeyPatch) -> S3StandIn:
    monkeypatch.setattr(server, "manner", "honours")
    server.requests.clear()
    return server


@pytest.fixture
def root(s3: S3StandIn) -> str:
    return f"s3://{s3.bucket()}/ledger"


@pytest.fixture
def ledger(s3: S3StandIn, root: str) -> Ledger:
    return Ledger(root, "orders", **s3.options)


@pytest.fixture
def gcs(monkeypatch: pytest.MonkeyPatch) -> Iterator[GcsStandIn]:
    # Else gcsfs asks Google's gRPC service which kind of bucket it is.
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    from gcsfs.core import GCSFileSystem

    fsspec.register_implementation("gs", GCSFileSystem, clobber=True)
    stand_in = GcsStandIn()
    with serving(stand_in):
        yield stand_in


MANNERS = ["honours", "terse", "conflict", "loses", "overlooks", "refuses"]


@pytest.mark.parametrize("manner", MANNERS)
def test_ledger_on_s3_whatever_its_manner(manner: str, s3: S3StandIn, ledger: Ledger) -> None:
    s3.manner = manner
    assert (ledger.entries(), ledger.head()) == ((), None)
    first = ledger.append(ENTRY, after=0)
    if manner == "loses":  # the probe's answer was lost before; now that of an entry
        s3.manner = manner
    second = ledger.append(FAILED, after=1)
    assert ledger.entries() == (first, second)
    assert ledger.head() == first
    with pytest.raises(LedgerConflict):
        ledger.append(ENTRY, after=1)
    path = ledger.store_report({"outcome": "partial"}, "# Partial ü\n")
    assert ledger.store_report({"outcome": "partial"}, "# Partial ü\n") == path
    assert ledger.read_report(path) == ({"outcome": "partial"}, "# Partial ü\n")
    assert ledger.entries() == (first, second)


@pytest.mark.parametrize(("manner", "conditional"), [(m, m not in ("overlooks", "refuses")) for m in MANNERS])
def test_stores_that_do_not_keep_writers_apart_are_found_out(
    manner: str, conditional: bool, s3: S3StandIn, root: str, caplog: pytest.LogCaptureFixture
) -> None:
    s3.manner = manner
    for _ in range(2):
        ledger = Ledger(root, "orders", **s3.options)
        assert ledger._store.conditional is conditional
        ledger.append(ENTRY)
    entries = [seen for seen in s3.requests if seen[0] == "PUT" and "/0000" in seen[1]]
    assert [condition for _, _, condition in entries] == [conditional] * 2
    probes = [seen for seen in s3.requests if seen[0] == "PUT" and seen[1].endswith("create.probe")]
    assert len(probes) == {"conflict": 3, "loses": 2, "refuses": 1}.get(manner, 2), "asked once per process"
    assert ("ignores the condition" in caplog.text) is not conditional


def test_the_probe_needs_one_request_once_it_is_there(s3: S3StandIn, ledger: Ledger) -> None:
    ledger.append(ENTRY)
    store_module._honours_condition.cache_clear()
    s3.requests.clear()
    ledger.append(ENTRY)
    assert Counter(seen[0] for seen in s3.requests if seen[1].endswith("create.probe")) == {"PUT": 1}


def test_an_object_in_parts_is_created_once_too(s3: S3StandIn, ledger: Ledger) -> None:
    path = (ledger.directory / "large").path
    parts: dict[str, Any] = {"chunksize": 5 * 2**20, "mode": "create"}
    fs = ledger.directory.fs
    fs.pipe_file(path, b"a" * (11 * 2**20), **parts)
    with pytest.raises(FileExistsError):
        fs.pipe_file(path, b"b" * (11 * 2**20), **parts)
    assert fs.cat_file(path)[:1] == b"a"
    assert [seen[0] for seen in s3.requests if seen[2]] == ["POST", "POST"], "the condition completes the upload"


def _race(root: str, options: dict[str, Any], rounds: int, barrier: Barrier, won: Any) -> None:
    who = uuid.uuid4().hex
    ledger = Ledger(root, "orders", **options)
    ledger.entries()  # connected before the race begins
    for number in range(rounds):
        barrier.wait(60)
        try:
            entry = ledger.append(DeployingEntry(job=ENTRY.job, message=who), after=number)
            won.put((entry.number, who))
        except LedgerError:
            pass
        barrier.wait(60)


@pytest.mark.parametrize(
    ("writers", "rounds", "manner"),
    mostly_nightly([(2, 4, "honours"), (2, 10, "overlooks"), (8, 20, "honours")]),
)
def test_processes_that_race_for_a_number(writers: int, rounds: int, manner: str, s3: S3StandIn, root: str) -> None:
    s3.manner = manner
    context = multiprocessing.get_context("spawn")
    barrier, won = context.Barrier(writers), context.Queue()
    given = (root, s3.options, rounds, barrier, won)
    processes = [context.Process(target=_race, args=given) for _ in range(writers)]
    for process in processes:
        process.start()
    winners = dict(won.get(timeout=120) for _ in range(rounds))
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert won.empty()
    entries = Ledger(root, "orders", **s3.options).entries()
    assert {entry.number: entry.message for entry in entries} == winners
    assert list(winners) == list(range(1, rounds + 1))


def test_threads_that_append_at_once_lose_nothing(s3: S3StandIn, ledger: Ledger) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: ledger.append(replace(FAILED, message=str(name))), range(12)))
    entries = ledger.entries()
    assert [entry.number for entry in entries] == list(range(1, 13))
    assert {entry.message for entry in entries} == {str(name) for name in range(12)}


def test_a_writer_is_refused_while_another_holds_its_claim(
    s3: S3StandIn, ledger: Ledger, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_CLAIM_SECONDS", 0.2)
    s3.manner = "overlooks"
    with ledger._store._claimed():
        with pytest.raises(LedgerError) as caught:
            Ledger(root, "orders", **s3.options).append(ENTRY)
        claim = next(name for name in ledger._store.names("writers"))
    message = str(caught.value)
    assert f"another writer has locked the ledger {root}/orders: {store_module.this_process()}, since 20" in message
    assert f"If it died, delete {root}/orders/writers/{claim}" in message
    assert ledger._store.names("writers") == []
    assert ledger.append(ENTRY).number == 1


def test_a_claim_stays_when_its_writer_is_killed(s3: S3StandIn, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its age does not say that it is dead: the user has to."""
    monkeypatch.setattr(store_module, "_CLAIM_SECONDS", 0.2)
    s3.manner = "overlooks"
    code = (
        "import os, signal, sys, json; from airflow_flinkcompat.deploy import Ledger\n"
        "ledger = Ledger(sys.argv[1], 'orders', **json.loads(sys.argv[2]))\n"
        "with ledger._store._claimed(): os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, root, json.dumps(s3.options)], check=False)
    ledger = Ledger(root, "orders", **s3.options)
    with pytest.raises(LedgerError, match="If it died, delete"):
        ledger.append(ENTRY)
    (claim,) = ledger._store.names("writers")
    (ledger.directory / "writers" / claim).unlink()
    assert ledger.append(ENTRY).number == 1


def test_what_was_written_over_at_once_is_told(s3: S3StandIn, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    s3.manner = "overlooks"
    ledger.append(ENTRY)
    pipe = ledger.directory.fs.pipe_file
    monkeypatch.setattr(
        ledger.directory.fs, "pipe_file", lambda path, content, **more: pipe(path, content + b"\n}", **more)
    )
    with pytest.raises(LedgerError, match="does not contain the content that was just written"):
        ledger.append(ENTRY)


def test_the_head_of_a_long_ledger_needs_few_requests(s3: S3StandIn, root: str) -> None:
    for number in range(1, 1001):
        entry = replace(ENTRY if number == 990 else FAILED, number=number)
        s3.put(root.split("/")[2], f"ledger/orders/{number:06d}.json", _encoded(entry))
    head = Ledger(root, "orders", **s3.options).head()
    assert head is not None
    assert head.number == 990
    assert len(s3.requests) < 30


def test_entries_are_read_many_at_a_time(s3: S3StandIn, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(16):
        ledger.append(ENTRY)
    s3.requests.clear()
    # Nobody gets an answer before four ask.
    monkeypatch.setattr(s3, "together", threading.Barrier(4))
    assert len(ledger.entries()) == 16
    assert len(s3.requests) <= 18, "a listing, and one request an entry"


@pytest.mark.parametrize("store", ["s3", "gcs"])
def test_the_deployments_of_an_object_store_are_listed(store: str, s3: S3StandIn, gcs: GcsStandIn) -> None:
    root = f"s3://{s3.bucket()}/ledger" if store == "s3" else "gs://bucket/ledger"
    options = s3.options if store == "s3" else gcs.options
    assert deployments(root, **options) == ()
    for name in ("orders", "clicks.v2"):
        Ledger(root, name, **options).append(ENTRY)
        assert name in deployments(root, **options), "what another process wrote is seen"
    Ledger(root, "orders", **options).store_report({"outcome": "partial"}, "# Partial\n")
    assert deployments(root, **options) == ("clicks.v2", "orders")


@pytest.mark.parametrize(("store", "manner"), [("s3", "honours"), ("s3", "overlooks"), ("gcs", "honours")])
def test_the_index_of_an_object_store(
    store: str, manner: str, s3: S3StandIn, gcs: GcsStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "MOST_MARKERS", 3)
    s3.manner = manner
    root = f"s3://{s3.bucket()}/ledger" if store == "s3" else "gs://bucket/ledger"
    options = s3.options if store == "s3" else gcs.options
    for name in ("orders", "clicks.v2"):
        for _ in range(5):
            Ledger(root, name, **options).append(ENTRY)
    Index(root, **options).announce("orders", 6)
    rows = deployment_rows(root, **options)
    assert rows == deployment_rows(root, by_index=False, **options)
    assert {name: row.last for name, row in rows.items() if isinstance(row, DeploymentRow)} == {
        "clicks.v2": 5,
        "orders": 5,
    }
    store_of = Store(root, FOLDER, **options)
    assert len(store_of.names("snapshots")) in (1, 2)
    assert len([name for name in store_of.names() if "~" in name]) < 10, "what is covered was deleted"


def test_threads_that_write_and_make_snapshots_at_once_leave_the_index_right(
    s3: S3StandIn, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "MOST_MARKERS", 2)

    def write(name: str) -> None:
        for _ in range(4):
            Ledger(root, name, **s3.options).append(FAILED)
            assert name in deployment_rows(root, **s3.options)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "abcd"))
    assert deployment_rows(root, **s3.options) == deployment_rows(root, by_index=False, **s3.options)


def test_gcs_is_sent_the_condition(gcs: GcsStandIn) -> None:
    ledger = Ledger("gs://bucket/ledger", "orders", **gcs.options)
    assert (ledger.entries(), ledger.head()) == ((), None)
    first = ledger.append(ENTRY, after=0)
    assert ledger._store.conditional
    assert ledger.append(FAILED).number == 2
    assert ledger.head() == first
    with pytest.raises(LedgerConflict):
        ledger.append(ENTRY, after=1)
    with pytest.raises(FileExistsError):
        ledger._store.create("000001.json", b"other")
    entries = [upload for upload, path in zip(gcs.uploads, gcs.uploaded, strict=True) if f"/{FOLDER}/" not in path]
    assert [upload.get("ifGenerationMatch") for upload in entries] == [["0"]] * len(entries) != []
    path = ledger.store_report({"outcome": "partial"}, "# Partial\n")
    assert ledger.read_report(path) == ({"outcome": "partial"}, "# Partial\n")


def test_clients_that_drop_the_condition_are_refused(root: str, s3: S3StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module.metadata, "version", lambda _: "2025.12.0")
    with pytest.raises(LedgerError, match=r"s3fs 2025\.12\.0 may not support conditional puts.*\[s3\]'"):
        Ledger(root, "orders", **s3.options)


@pytest.mark.parametrize(("uri", "extra"), [("s3://b/l", "s3"), ("gs://b/l", "gcs")])
def test_missing_client(uri: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, {"s3": "s3fs", "gcs": "gcsfs"}[extra], None)
    monkeypatch.delitem(registered, uri[:2], raising=False)
    with pytest.raises(LedgerError, match=rf"cannot be used: .*\[{extra}\]'"):
        Ledger(uri, "orders")


@pytest.mark.parametrize("login", ["AKIAX:hunter2secret@", "AKIAX:hunter2/secret@", "hunter2secret@", "AKIAX:hunter2"])
@pytest.mark.parametrize("protocol", ["s3", "s3a", "gs", "gcs"])
def test_a_login_before_a_bucket_is_refused_and_not_told(protocol: str, login: str) -> None:
    with pytest.raises(LedgerError, match=rf"^the ledger address {protocol}://\*\*\*/… contains a login") as found:
        Ledger(f"{protocol}://{login}bucket/l", "orders")
    assert "hunter2" not in str(found.value)


@pytest.mark.parametrize("place", ["arn:aws:s3:eu-west-1:123456789012:accesspoint/point/l", "bucket/team@x:1"])
def test_a_bucket_without_a_login_is_taken(place: str) -> None:
    assert Ledger(f"s3://{place}", "orders")


def test_a_password_in_an_address_is_masked_in_what_its_client_says(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("cannot log in as ann with hunter2@secret, nor with hunter2%40secret")

    monkeypatch.setattr(MemoryFileSystem, "ls", refuse)
    with pytest.raises(LedgerError) as found:
        Ledger("memory://ann:hunter2%40secret@host/l", "orders").entries()
    assert str(found.value).endswith("cannot be listed: cannot log in as ann with ***, nor with ***")


def test_errors_of_the_store_are_told_in_one_line(s3: S3StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LedgerError, match=r"^the ledger cannot write s3://no-such-bucket/l/orders: .*bucket"):
        Ledger("s3://no-such-bucket/l", "orders", **s3.options).append(ENTRY)


@pytest.mark.parametrize(
    ("uri", "client"), [pytest.param("gs://b/l", "gcsfs", marks=pytest.mark.nightly), ("s3://b/l", "s3fs")]
)
def test_a_client_logs_no_failure_beside_the_error(uri: str, client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracebacks of what the message says in a line; a level that somebody has set stays."""
    logger = logging.getLogger(client)
    for before, after in ((logging.NOTSET, logging.CRITICAL), (logging.DEBUG, logging.DEBUG)):
        monkeypatch.setattr(logger, "level", before)
        Ledger(uri, "orders", skip_instance_cache=True)
        assert logger.level == after
