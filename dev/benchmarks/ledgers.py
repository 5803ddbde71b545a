"""Time to list a thousand deployments: with the ledger index, without it, and on the pages.

Each deployment has the entries of a first start, of a redeploy, and of a check that waits for a person. The ledgers
are on a local disk, and on a local stand-in for S3 that answers immediately. Requests are also counted, because each
request takes time on a real object store. The pages use the ledgers on the local disk. A user who may read every DAG
requests the first page, the last page, filtered pages, and one deployment. Airflow's own time for a request
(authentication, rights, the database) is not included.
"""

from __future__ import annotations

import logging
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow_flinkcompat.airflow.plugin import views
from airflow_flinkcompat.airflow.plugin.fleet import Attention, ListFilter, deployment_list
from airflow_flinkcompat.airflow.plugin.ledgers import FoundLedgers, NamedLedger, Rights
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import (
    CheckedEntry,
    DeployedEntry,
    DeployingEntry,
    JobStart,
    JobStop,
    JobVersion,
    LedgerEntry,
    Origin,
    Review,
    StartedEntry,
    StartingEntry,
    StoppedEntry,
    StoppingEntry,
)
from airflow_flinkcompat.deploy.ledger.index import MOST_MARKERS
from airflow_flinkcompat.deploy.ledger.ledger import _encoded
from airflow_flinkcompat.deploy.ledger.listing import deployment_rows, rebuild_index
from airflow_flinkcompat.deploy.target import JobRef, Snapshot
from airflow_flinkcompat.model import JobSpec
from dev.services.object_stores import S3StandIn, serving
from dev.tools import benchmark_parser, explanation, publish

LIMIT, ROUNDS = 50, 3


def history(name: str) -> list[LedgerEntry]:
    """The entries of one deployment."""
    job = JobSpec(f"INSERT INTO {name} SELECT shop, SUM(price) FROM orders GROUP BY shop\n" * 20, engine="flink")
    version, review = (
        JobVersion.of(job),
        Review("partial", f"s3://bucket/ledger/{name}/reports/1.json", "ann", "agreed"),
    )
    origin = Origin("c0ffee" * 6 + "c0ff", "Ann Example <ann@example.org>", "payments", "ann")
    common: dict[str, Any] = {
        "job": job,
        "review": review,
        "origin": origin,
        "owner": f"airflow:redeploy_{name}/run/resume",
    }
    first = JobStart("stateless", request_id="1" * 32, job_id=JobRef("2" * 32))
    savepoint = Snapshot(f"s3://bucket/savepoints/{name}/{'3' * 32}")
    then = JobStart("savepoint", savepoint, request_id="3" * 32, job_id=JobRef("4" * 32))
    stop = JobStop(JobRef("2" * 32), "3" * 32)
    checked = CheckedEntry(version=version, review=review, origin=origin, branch="approve", policy="approve")
    return [
        replace(checked, branch="first"),
        DeployingEntry(**common), StartingEntry(**common, start=first), StartedEntry(**common, start=first),
        DeployedEntry(**common, start=first),
        checked,
        DeployingEntry(**common), StoppingEntry(**common, stop=stop),
        StoppedEntry(**common, stop=replace(stop, savepoint=savepoint, savepoint_bytes=5_000_000)),
        StartingEntry(**common, start=then), StartedEntry(**common, start=then), DeployedEntry(**common, start=then),
        checked,
    ]  # fmt: skip


class _AuthManager:
    def __init__(self, readable: Iterable[str], connections: bool) -> None:
        self.readable, self.connections = set(readable), connections

    def get_authorized_dag_ids(self, **_: Any) -> set[str]:
        return self.readable

    def is_authorized_connection(self, **_: Any) -> bool:
        return self.connections


class OnlyDags(Rights):
    """A user who may read some DAGs of an Airflow."""

    def __init__(self, dags: Iterable[str], readable: Iterable[str], *, connections: bool = False) -> None:
        super().__init__(None, _AuthManager(readable, connections))  # type: ignore[arg-type]
        self.__dict__["_dags"] = set(dags)


@dataclass(frozen=True)
class Timed:
    """Elapsed and processor seconds of the best round, requests of one round, and the call's result."""

    seconds: float
    processor: float
    requests: int
    result: Any

    def row(self, words: str, note: str = "") -> str:
        """A row of the table."""
        return f"| {words} | {self.seconds:.3f} s | {self.processor:.3f} s | {self.requests or '-'} | {note} |"


def timed(call: Callable[[], Any], requests: list[Any], rounds: int = ROUNDS) -> Timed:
    """The best of several rounds."""
    seconds, processor, result = [], [], None
    for _ in range(rounds):
        requests.clear()
        begin, begin_processor = time.perf_counter(), time.process_time()
        result = call()
        seconds.append(time.perf_counter() - begin)
        processor.append(time.process_time() - begin_processor)
    return Timed(min(seconds), min(processor), len(requests), result)


def fill(root: str, count: int, write: Callable[[str, bytes], None], **options: Any) -> list[str]:
    """Write the ledgers and their index; the names of the deployments."""
    names = [f"job_{number:04d}" for number in range(count)]
    for name in names:
        for number, entry in enumerate(history(name), 1):
            stored = replace(entry, number=number, at="2026-11-26T18:00:00.000+00:00")
            write(f"{name}/{number:06d}.json", _encoded(stored))
    rebuild_index(root, **options)
    return names


def lists(root: str, names: list[str], requests: list[Any], **options: Any) -> Iterator[str]:
    """Rows of the table: a list by the index, by every ledger, and an entry."""
    appended = timed(lambda: Ledger(root, names[0], **options).append(history(names[0])[-1]), requests)
    for name in names[:MOST_MARKERS]:  # as many as a snapshot leaves
        Ledger(root, name, **options).append(history(name)[-1])
    by_index = timed(lambda: deployment_rows(root, **options), requests)
    by_ledgers = timed(lambda: deployment_rows(root, by_index=False, **options), requests, rounds=1)
    if by_index.result != by_ledgers.result:
        raise SystemExit("the index and the ledgers list different deployments")
    yield by_index.row("list by the index")
    yield by_ledgers.row("list by every ledger", f"{by_ledgers.seconds / by_index.seconds:.0f} times")
    yield appended.row("one entry, with its index")


def pages(root: str, names: list[str]) -> Iterator[str]:
    """Rows of the table: answers of the pages in Airflow."""
    ledger, dags = NamedLedger(root), [f"redeploy_{name}" for name in names]
    found, rights = FoundLedgers((ledger,)), OnlyDags(dags, dags)

    def page(wanted: ListFilter, offset: int = 0) -> Callable[[], int]:
        return lambda: len(deployment_list(found, rights, wanted, LIMIT, offset).model_dump_json())

    entries = ledger.entries(names[0])
    calls = {
        f"the first {LIMIT} on a page": page(ListFilter()),
        f"the last {LIMIT} on a page": page(ListFilter(), max(0, len(names) - LIMIT)),
        "those that wait, by a word": page(ListFilter(frozenset({Attention.PENDING}), text="payments")),
        f"the page of one deployment of {len(entries)} entries, once read": lambda: len(
            views.deployment_page(ledger, names[0], entries, rights).model_dump_json()
        ),
    }
    for words, call in calls.items():
        yield timed(call, []).row(words)


def results(count: int, on_s3: int) -> Iterator[str]:
    """The benchmark as Markdown, line by line as it is measured."""
    head = ["| what | best by the clock | processor | requests | compared |", "|---|---|---|---|---|"]
    yield f"# Lists of deployments, {datetime.now(UTC):%Y-%m-%d}"
    yield ""
    yield explanation(__doc__)
    yield ""
    yield f"`make bench-ledgers`: {len(history('a'))} entries each, {MOST_MARKERS} of them with a marker newer"
    yield f"than the snapshot; Python {platform.python_version()}, {os.cpu_count()} cores, the best of {ROUNDS}."
    yield ""
    with tempfile.TemporaryDirectory() as folder:

        def to_disk(name: str, content: bytes) -> None:
            place = Path(folder) / name
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(content)

        yield from (f"## {count} deployments on a local disk", "", *head)
        names = fill(folder, count, to_disk)
        yield from (*lists(folder, names, []), *pages(folder, names), "")
    s3 = S3StandIn()
    with serving(s3):
        bucket = s3.bucket()
        root = f"s3://{bucket}/ledger"
        yield from (f"## {on_s3} deployments on a stand-in for S3 on this machine", "", *head)
        names = fill(root, on_s3, lambda name, content: s3.put(bucket, f"ledger/{name}", content), **s3.options)
        yield from lists(root, names, s3.requests, **s3.options)


def main() -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--deployments", type=int, default=1000, metavar="N")
    parser.add_argument("--on-s3", type=int, metavar="N", help="deployments on the stand-in (default: as many)")
    options = parser.parse_args()
    logging.getLogger("airflow_flinkcompat").setLevel(logging.ERROR)
    publish(results(options.deployments, options.on_s3 or options.deployments), options.write)


if __name__ == "__main__":
    main()
