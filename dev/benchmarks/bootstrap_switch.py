"""Downtime of a job while its state is computed from history.

A job adds up a topic of three partitions, and gets a metric more. While it runs ``flinkcompat migrate prepare`` reads
what the topic holds up to a savepoint; then some more rows come, always as many. From there on time is taken: the job
is stopped with a savepoint, ``flinkcompat migrate apply --prepared`` reads what came since, and the new job starts from
what was written and completes a checkpoint. Beside it the same command without ``--prepared``, which reads all of the
history while nothing runs. A switch that does not depend on the length of the history takes as long over the last line
as over the first one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from airflow_flinkcompat.deploy import JobManager
from airflow_flinkcompat.deploy.flink.polling import poll
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.local_flink.jars import fetch
from dev.benchmarks.bootstrap import LONGEST, SETTINGS, Shape, ran, read_packages, send
from dev.benchmarks.downtime import Cluster
from dev.benchmarks.processes import Cost
from dev.measure.progress import checkpoint, progress, wait_running
from dev.services.kafka import kafka_broker

KEYS = 1000
SINCE = 10_000
"""How many rows come between what is prepared and the switch."""
_LOOK = 0.2


@dataclass(frozen=True)
class Switched:
    """Seconds by the clock: what is prepared, the stop, the command and the start, and the command over all rows."""

    prepared: float
    stopped: float
    migrated: float
    started: float
    unprepared: float

    @property
    def still(self) -> float:
        """How long no job runs, or begins to."""
        return self.stopped + self.migrated + self.started


def switched(flink: LocalFlink, servers: str, folder: Path, rows: int) -> Switched:
    """One switch behind a history of so many rows."""
    cluster = Cluster(flink.jobmanager_url, flink.gateway_url)
    jobs = JobManager(flink.jobmanager_url)
    old, new = (Shape("GROUP BY", rows, KEYS, metrics) for metrics in ("SUM(v), COUNT(*)", "SUM(v), COUNT(*), MAX(v)"))
    scripts = [folder / f"{name}-{rows}.sql" for name in ("old", "new")]
    for script, shape in zip(scripts, (old, new), strict=True):
        script.write_text(shape.script(servers), encoding="utf-8")
    send(servers, old.topic, rows, KEYS)
    job_id = cluster.submit(old.statements(servers), SETTINGS, None)

    def wait_read(due: int) -> None:
        poll(
            lambda: progress(jobs, job_id).rows.get("orders", 0),
            lambda found: found < due,
            timeout=LONGEST,
            every=_LOOK,
        )

    def migrate(step: str, savepoint: str, *more: str) -> Cost:
        command = [sys.executable, "-m", "airflow_flinkcompat.cli", "migrate", step, *map(str, scripts)]
        command += ["--history", "orders"]
        command += ["--engine-version", "2.3", "--savepoint", savepoint, "--master", "local[2]", *more]
        command += ["--gateway", flink.gateway_url, "--jobmanager", flink.jobmanager_url]
        return ran(command)

    wait_read(rows)
    trigger = uuid.uuid4().hex
    jobs.trigger_savepoint(job_id, None, trigger)
    earlier = poll(lambda: jobs.savepoint_result(job_id, trigger), lambda path: path is None, timeout=600, every=_LOOK)
    place = (folder / f"prepared-{rows}").as_uri()
    prepared = migrate("prepare", str(earlier), "--to", place)
    send(servers, old.topic, SINCE, KEYS, first=rows)
    wait_read(rows + SINCE)
    moments = [time.monotonic()]
    savepoint = jobs.stop_with_savepoint(job_id)
    moments.append(time.monotonic())
    target = (folder / f"switched-{rows}").as_uri()
    migrate("apply", savepoint, "--prepared", place, "--to", target)
    moments.append(time.monotonic())
    begun = cluster.submit(new.statements(servers), SETTINGS, target)
    wait_running(jobs, begun)
    checkpoint(jobs, begun)
    moments.append(time.monotonic())
    jobs.cancel(begun)
    whole = migrate("apply", savepoint, "--to", (folder / f"whole-{rows}").as_uri())
    stopped, migrated, started = (after - before for before, after in pairwise(moments))
    return Switched(prepared.wall, stopped, migrated, started, whole.wall)


def results(flink: LocalFlink, servers: str, folder: Path, sizes: Sequence[int]) -> Iterator[str]:
    """The benchmark as Markdown, line by line as it is measured."""
    yield f"# A switch behind a long history, {datetime.now(UTC):%Y-%m-%d}"
    yield ""
    load = f"load {os.getloadavg()[0]:.1f}"
    yield f"Flink 2.3.0, Spark 4.1, {os.cpu_count()} cores, {load}; `make bench-bootstrap-switch`. Times are seconds."
    yield ""
    yield (__doc__ or "").partition("\n\n")[2].strip().replace("``", "`")
    yield ""
    yield (
        "| rows prepared | rows since | prepare, the job runs | stop | migrate --prepared | start | no job runs "
        "| beside the first line | migrate, all rows |"
    )
    yield f"|{'---|' * 9}"
    first: float | None = None
    for rows in sizes:
        found = switched(flink, servers, folder, rows)
        first = first or found.still
        seconds = (found.prepared, found.stopped, found.migrated, found.started, found.still)
        told = " | ".join(f"{each:.1f}" for each in seconds)
        yield f"| {rows:,} | {SINCE:,} | {told} | {found.still / first:.2f} | {found.unprepared:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the results there too")
    sizes = [1_000_000, 5_000_000, 20_000_000]
    parser.add_argument("--rows", type=int, nargs="+", default=sizes, help="of the histories (default: %(default)s)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flinkcompat-bench-") as own:
        folder = Path(own)
        (folder / "kafka").mkdir()
        read_packages(folder)
        with (
            kafka_broker(folder / "kafka") as broker,
            LocalFlink(folder / "flink", slots=4, extra_jars=[fetch("flink-sql-connector-kafka")]) as flink,
        ):
            lines = []
            for line in results(flink, broker.servers, folder, given.rows):
                print(line, flush=True)
                lines.append(line)
                if given.write:
                    given.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
