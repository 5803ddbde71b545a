"""Time in which a thousand deployments are listed, with the ledger index and without.

Each deployment has the entries of a first start, a redeploy and a check that waits for a person. The ledgers lie on a
local disk and on a stand-in for S3 on this machine, which answers at once: requests are counted too, because on a real
object store each of them takes its time.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
from airflow_flinkcompat.deploy.ledger.history import _encoded
from airflow_flinkcompat.deploy.ledger.index import MOST_MARKERS
from airflow_flinkcompat.deploy.ledger.listing import deployment_rows, rebuild_index
from airflow_flinkcompat.deploy.target import JobRef, Snapshot
from airflow_flinkcompat.model import JobSpec
from dev.services.object_stores import S3StandIn, serving
from dev.tools import publish

DEPLOYMENTS = 1000
ROUNDS = 3


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


@dataclass(frozen=True)
class Timed:
    """Seconds of the best round, the requests of one (0 where none are counted), and what the call returned."""

    seconds: float
    requests: int
    result: Any


def timed(call: Callable[[], Any], requests: list[Any], rounds: int = ROUNDS) -> Timed:
    """The best of several rounds."""
    best, result = float("inf"), None
    for _ in range(rounds):
        requests.clear()
        begin = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - begin)
    return Timed(best, len(requests), result)


def measured(
    root: str, count: int, requests: list[Any], write: Callable[[str, bytes], None], **options: Any
) -> list[str]:
    """Rows of a table: listing by the index, by every ledger, and what an entry costs."""
    names = [f"job_{number:04d}" for number in range(count)]
    for name in names:
        for number, entry in enumerate(history(name), 1):
            stored = replace(entry, number=number, at="2026-11-26T18:00:00.000+00:00")
            write(f"{name}/{number:06d}.json", _encoded(stored))
    rebuild_index(root, **options)
    appended = timed(lambda: Ledger(root, names[0], **options).append(history(names[0])[-1]), requests, rounds=5)
    for name in names[:MOST_MARKERS]:  # as many as a snapshot leaves
        Ledger(root, name, **options).append(history(name)[-1])
    by_index = timed(lambda: deployment_rows(root, **options), requests)
    by_ledgers = timed(lambda: deployment_rows(root, by_index=False, **options), requests, rounds=1)
    if by_index.result != by_ledgers.result:
        raise SystemExit("the index does not say what the ledgers say")
    ratio = by_ledgers.seconds / by_index.seconds
    return [
        f"| list by the index | {by_index.seconds:.2f} s | {by_index.requests or '-'} | |",
        f"| list by every ledger | {by_ledgers.seconds:.2f} s | {by_ledgers.requests or '-'} | {ratio:.0f} times |",
        f"| one entry, with its index | {appended.seconds * 1000:.0f} ms | {appended.requests or '-'} | |",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deployments", type=int, default=DEPLOYMENTS, metavar="N")
    parser.add_argument("--on-s3", type=int, metavar="N", help="how many on the stand-in; default: as many")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there, too")
    given = parser.parse_args()
    logging.getLogger("airflow_flinkcompat").setLevel(logging.ERROR)
    count, head = given.deployments, ["| what | best of three | requests | beside |", "|---|---|---|---|"]
    on_s3 = given.on_s3 or count
    lines = [
        f"# The index over ledgers, {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"`python -m dev.benchmarks ledger-index`: deployments of {len(history('a'))} entries each, "
        f"{MOST_MARKERS} of them with a marker newer than the snapshot;",
        f"Python {platform.python_version()}, {os.cpu_count()} cores that other work shares.",
        "",
    ]
    with tempfile.TemporaryDirectory() as folder:

        def to_disk(name: str, content: bytes) -> None:
            place = Path(folder) / name
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(content)

        lines += [f"## {count} deployments on a local disk", "", *head, *measured(folder, count, [], to_disk), ""]
    s3 = S3StandIn()
    with serving(s3):
        bucket = s3.bucket()
        rows = measured(
            f"s3://{bucket}/ledger",
            on_s3,
            s3.requests,
            lambda name, content: s3.put(bucket, f"ledger/{name}", content),
            **s3.options,
        )
    lines += [f"## {on_s3} deployments on a stand-in for S3 on this machine", "", *head, *rows, ""]
    text = "\n".join(lines)
    publish(text, given.write)


if __name__ == "__main__":
    main()
