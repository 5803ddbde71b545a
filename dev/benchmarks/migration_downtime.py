"""Downtime of a migration by state size: stop, rewriting and start on a real Flink.

A savepoint of a real Flink is enlarged to many keys. The old job starts from this savepoint on one slot, and stops with
a canonical savepoint. *Stop* is the time from the request until the job has ended. *Rewrite* is the time to write and
read back the new savepoint in one process, and *on Spark* the same on `local[2]`, after Spark has started. The new job
starts from the new savepoint: *start* is the time from its first statement until all tasks run, and *checkpoint* the
time until its first checkpoint, requested at this moment, is complete. All files are on one local disk. Seconds are
elapsed time; in parentheses is the processor time of the TaskManager. JVMs and loops were warmed up by a small state.

The second table shows if it pays to rewrite an earlier savepoint while the job runs: the number of key groups that are
equal in two savepoints of a running job, between which rows of random keys arrived.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import psutil

from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.polling import poll
from airflow_flinkcompat.deploy.target import Snapshot, Start
from airflow_flinkcompat.deploy.targets.gateway import state_options
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.migration import migrate_savepoint
from airflow_flinkcompat.savepoint.keyed_state import open_keyed
from airflow_flinkcompat.savepoint.store import read_metadata
from airflow_flinkcompat.spark_migration import migration_workers
from airflow_flinkcompat.sql import parse_script
from dev.benchmarks.migrate import FIXED, SHAPES, VARIABLE, case_of
from dev.measure.savepoint_fixtures import FOLDER, NOW
from dev.tools import benchmark_parser, explanation, publish

BACKENDS = ("rocksdb", "hashmap")
_KEY_BYTES = {FIXED: 142, VARIABLE: 164}
_WARM_UP = 20_000
_UPDATES = (10, 100, 300, 1_000)
_SECONDS = 600.0
_JVM = "-XX:TieredStopAtLevel=4 -XX:-UseSerialGC -XX:+UseG1GC -Xmx{heap}g"
"""The JVM options of a cluster for jobs that run for long; a local Flink has options for short runs."""
_CLUSTER = {
    "web.refresh-interval": "100",
    "metrics.fetcher.update-interval": "100",
    "taskmanager.memory.managed.size": "1g",
    "execution.checkpointing.interval": "1 h",
    "execution.checkpointing.timeout": "1 h",
}


@dataclass(frozen=True)
class Spent:
    """Elapsed seconds, and processor seconds of the TaskManager."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.1f} ({self.cpu:.1f})"


@dataclass(frozen=True)
class Downtime:
    """Size of the stored state in MB, and the time of each part."""

    size: float
    stop: Spent
    rewrite: float
    start: Spent
    checkpoint: Spent

    @property
    def sum(self) -> float:
        return self.stop.wall + self.rewrite + self.start.wall + self.checkpoint.wall


class Cluster:
    """A local Flink with jobs that start from savepoints."""

    def __init__(self, flink: LocalFlink, orders: Path, parallelism: int) -> None:
        self._gateway, self._jobs = SqlGateway(flink.gateway_url), JobManager(flink.jobmanager_url)
        self._process = psutil.Process(flink.pids["taskmanager"])
        self._orders, self._parallelism = orders, parallelism

    def spent(self, work: Callable[[], None]) -> Spent:
        started, used = time.monotonic(), sum(self._process.cpu_times()[:2])
        work()
        return Spent(time.monotonic() - started, sum(self._process.cpu_times()[:2]) - used)

    def start(self, script: str, backend: str, savepoint: Path) -> str:
        """Start a job, and wait until all of its tasks run."""
        *setup, job = parse_script(script, "<benchmark>").statements
        settings = {"state.backend.type": backend, "parallelism.default": str(self._parallelism)}
        with self._gateway.session(settings) as session:
            for statement in setup:
                session.execute(statement.text.replace("file://DATA", self._orders.as_uri()))
            job_id = session.execute(job.text, state_options(Start(Snapshot(str(savepoint))))).job_id
        assert job_id is not None
        poll(lambda: self._jobs.status(job_id), lambda seen: not (seen and seen.tasks_running), timeout=_SECONDS)
        return job_id

    def checkpoint(self, job_id: str) -> None:
        self._jobs.request_checkpoint(job_id)
        poll(lambda: self._jobs.checkpoints(job_id)["counts"]["completed"], lambda seen: not seen, timeout=_SECONDS)

    def savepoint(self, job_id: str, rows: int) -> str:
        """Take a savepoint after the job has read this number of rows."""
        poll(lambda: self._jobs.get(f"jobs/{job_id}"), lambda job: _read_rows(job) < rows, timeout=_SECONDS)
        request = uuid4().hex
        self._jobs.trigger_savepoint(job_id, None, request)
        found = poll(lambda: self._jobs.savepoint_result(job_id, request), lambda seen: seen is None, timeout=_SECONDS)
        return str(found).removeprefix("file:")

    def stop(self, job_id: str) -> Path:
        return Path(self._jobs.stop_with_savepoint(job_id, timeout=_SECONDS).removeprefix("file:"))

    def cancel(self, job_id: str) -> None:
        self._jobs.cancel(job_id)


def downtime(cluster: Cluster, name: str, backend: str, source: Path, target: Path) -> tuple[Downtime, Path]:
    """Stop, rewrite and start once; also return the savepoint of the stop."""
    old, new = ((FOLDER / name / f"{side}.sql").read_text("utf-8") for side in ("old", "new"))
    running, stopped = cluster.start(old, backend, source), []
    stop = cluster.spent(lambda: stopped.append(cluster.stop(running)))
    (savepoint,) = stopped
    started = time.monotonic()
    _, template, made = case_of(name)
    migrate_savepoint(str(savepoint), template, str(target), made, NOW)
    rewrite, jobs = time.monotonic() - started, []
    start = cluster.spent(lambda: jobs.append(cluster.start(new, backend, target)))
    checkpoint = cluster.spent(lambda: cluster.checkpoint(jobs[0]))
    cluster.cancel(jobs[0])
    shutil.rmtree(target)
    size = read_metadata(str(savepoint)).keyed_size / 1e6
    return Downtime(size, stop, rewrite, start, checkpoint), savepoint


def on_spark(name: str, savepoint: Path, target: Path) -> float:
    """Elapsed seconds on Spark, without its start."""
    _, template, made = case_of(name)
    with migration_workers(str(savepoint), True, "local[2]", lambda _: None) as workers:
        started = time.monotonic()
        migrate_savepoint(str(savepoint), template, str(target), made, NOW, workers)
        seconds = time.monotonic() - started
    shutil.rmtree(target)
    return seconds


def equal_groups(cluster: Cluster, source: Path, keys: int, orders: Path) -> Iterator[str]:
    """The table of key groups that are equal in two savepoints, with the speed of the comparison."""
    yield "| backend | rows between | key groups | equal | compared, MB/s |"
    yield "|---|---|---|---|---|"
    random = Random(7)
    for backend in BACKENDS:
        for file in orders.iterdir():
            file.unlink()
        job, read = cluster.start((FOLDER / VARIABLE / "old.sql").read_text("utf-8"), backend, source), 0
        earlier = cluster.savepoint(job, read)
        for rows in _UPDATES:
            lines = (
                f"{random.randrange(keys):010d},{random.randrange(10**6)},text,1,2026-01-01 00:00:00.000\n"
                for _ in range(rows)
            )
            (orders / ".hidden").write_text("".join(lines))
            (orders / ".hidden").rename(orders / f"{backend}-{rows}.csv")
            read += rows
            later = cluster.savepoint(job, read)
            started = time.process_time()
            equal = [one == other for one, other in zip(_groups(earlier), _groups(later), strict=True)]
            rate = 2 * read_metadata(later).keyed_size / 1e6 / (time.process_time() - started)
            yield f"| {backend} | {rows:,} | {len(equal)} | {sum(equal)} | {rate:.0f} |"
            shutil.rmtree(earlier)
            earlier = later
        cluster.cancel(job)


def _read_rows(job: Mapping[str, Any]) -> int:
    return int(job["vertices"][-1]["metrics"]["read-records"])


def _groups(savepoint: str) -> Iterator[tuple[int, bytes]]:
    for operator in read_metadata(savepoint).operators:
        for subtask in operator.subtasks or ():
            if subtask.keyed is not None:
                with open_keyed(subtask.keyed, savepoint) as file:
                    yield from file.groups()


def enlarged(name: str, keys: int, folder: Path) -> Path:
    """Savepoint with many keys, which a separate process generates once."""
    source = folder / f"{name}-{keys}"
    if not source.exists():
        command = [sys.executable, "-m", "dev.benchmarks.migrate", "--generate", name, str(keys), str(source)]
        subprocess.run(command, check=True)
    return source


def results(folder: Path, sizes: Sequence[int], parallelism: int, heap: int) -> Iterator[str]:
    """The benchmark as Markdown, line by line as it is measured."""
    yield f"# Downtime of a migration by state size, {datetime.now(UTC):%Y-%m-%d}"
    yield ""
    machine = f"Flink 2.3.0, Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}"
    yield f"{machine}, parallelism {parallelism}; `make bench-migration-downtime`."
    yield ""
    yield explanation(__doc__)
    yield ""
    yield "| rows | backend | MB | stop, s | rewrite, s | on Spark, s | start, s | checkpoint, s | sum, s | load |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    os.environ["_JAVA_OPTIONS"] = _JVM.format(heap=heap)
    (folder / "orders").mkdir(exist_ok=True)
    with LocalFlink(folder / "flink", slots=parallelism, config=_CLUSTER) as flink:
        cluster = Cluster(flink, folder, parallelism)
        del os.environ["_JAVA_OPTIONS"]
        for name in _KEY_BYTES:
            for backend in BACKENDS:
                _, savepoint = downtime(cluster, name, backend, enlarged(name, _WARM_UP, folder), folder / "migrated")
                shutil.rmtree(savepoint)
        for name, bytes_of_key in _KEY_BYTES.items():
            for size in sizes:
                source = enlarged(name, size * 1_000_000 // bytes_of_key, folder)
                for backend in BACKENDS:
                    load = os.getloadavg()[0]
                    found, savepoint = downtime(cluster, name, backend, source, folder / "migrated")
                    large = size == max(sizes)
                    spark = f"{on_spark(name, savepoint, folder / 'migrated'):.1f}" if large else ""
                    shutil.rmtree(savepoint)
                    yield (
                        f"| {SHAPES[name][0].partition(':')[0]} | {backend} | {found.size:.0f} | {found.stop} | "
                        f"{found.rewrite:.1f} | {spark} | {found.start} | {found.checkpoint} | "
                        f"{found.sum:.1f} | {load:.1f} |"
                    )
                shutil.rmtree(source)
        yield ""
        yield from equal_groups(cluster, enlarged(VARIABLE, _WARM_UP, folder), _WARM_UP, folder / "orders")


def main() -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--folder", metavar="DIR", type=Path, help="where savepoints lie meanwhile, 5 GB")
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 200, 1000], help="in MB (default: 50 200 1000)")
    parser.add_argument("--parallelism", type=int, default=1, help="of the jobs (default: 1)")
    parser.add_argument("--heap", type=int, default=8, help="of a JVM in GB (default: 8)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flinkcompat-bench-") as own:
        folder = options.folder or Path(own)
        folder.mkdir(parents=True, exist_ok=True)
        publish(results(folder, options.sizes, options.parallelism, options.heap), options.write)


if __name__ == "__main__":
    main()
