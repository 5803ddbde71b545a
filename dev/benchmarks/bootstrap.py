"""Cost of giving a new job the state of a long history, next to Flink replaying it.

A topic of three partitions holds a day of rows, a lake the same rows with their partitions and offsets. Flink replays
the topic from the earliest offset until it has read all and has completed a checkpoint. Ours is ``flinkcompat
bootstrap`` over the topic, and over the lake, and then the job's start from that savepoint until it has completed a
checkpoint. Processor time is that of all processes but the broker's: of the command with its Spark, and of Flink's,
which plans the script, takes the template and runs the job. Seconds are by the clock, on the same cores, one after the
other, with two subtasks and two of Spark's cores. What is sent nobody takes. Where Flink had not read all after
``--longest`` seconds it was stopped: reading all takes more than that, and the ratios are less than what is given.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from airflow_flinkcompat.backfill.connectors.kafka import NEEDS
from airflow_flinkcompat.deploy import JobManager
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.local_flink.jars import fetch
from dev.benchmarks.downtime import Cluster
from dev.benchmarks.processes import Cost, cost_of
from dev.measure.progress import checkpoint, progress, wait_running
from dev.services.kafka import Broker, kafka_broker
from dev.services.spark_packages import CONF

GOAL = 0.25
PARTITIONS = 3
HOURS = 24
HISTORIES = ("topic", "lake")
SETTINGS = {"parallelism.default": "2", "execution.checkpointing.interval": "1 h", "state.backend.type": "rocksdb"}
METRICS = "SUM(v), COUNT(*), MAX(v)"
QUERIES = {
    "TUMBLE": "SELECT k, {0} FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR)) "
    "GROUP BY k, window_start, window_end",
    "GROUP BY": "SELECT k, {0} FROM orders GROUP BY k",
}
LONGEST = 4 * 3600
_LOOK = 0.5


@dataclass(frozen=True)
class Shape:
    """One job over one topic."""

    query: str
    rows: int
    keys: int
    metrics: str = METRICS

    @property
    def topic(self) -> str:
        """Its topic, which all queries of a size read."""
        return f"orders-{self.keys}-{self.rows}"

    def statements(self, servers: str) -> list[str]:
        """What is executed, the settings left out."""
        topic = {
            "connector": "kafka",
            "topic": self.topic,
            "properties.bootstrap.servers": servers,
            "properties.group.id": "bench",
            "scan.startup.mode": "earliest-offset",
            "format": "json",
        }
        declared = "".join(f", m{number} BIGINT" for number, _ in enumerate(self.metrics.split(", ")))
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in topic.items())
        return [
            "CREATE TABLE orders (k BIGINT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) "
            f"WITH ({listed})",
            f"CREATE TABLE totals (k BIGINT{declared}) WITH ('connector' = 'blackhole')",
            f"INSERT INTO totals {QUERIES[self.query].format(self.metrics)}",
        ]

    def script(self, servers: str) -> str:
        """The same as a script, with its settings."""
        given = [f"SET '{key}' = '{value}'" for key, value in SETTINGS.items()]
        return ";\n".join([*given, *self.statements(servers), ""])


def send(servers: str, topic: str, rows: int, keys: int, first: int = 0, lake: Path | None = None) -> None:
    """Has a process of its own :func:`fill` a topic, which ends its Spark too."""
    told = ["--rows", str(rows), "--keys", str(keys), "--fill", servers, topic, str(first), str(lake or "")]
    ran([sys.executable, "-m", "dev.benchmarks.bootstrap", *told])


def ran(command: Sequence[str]) -> Cost:
    """What a command costs; one that fails ends the benchmark with what it said."""
    found = cost_of(command, LONGEST)
    if found.status:
        raise SystemExit(found.output)
    return found


def fill(servers: str, topic: str, rows: int, keys: int, first: int, lake: str) -> None:
    """Rows in a topic, a day of them or as many more as come behind that, in the order of time but for some seconds.

    Then the same in a lake, where one is named.
    """
    from airflow_flinkcompat.backfill.spark import spark_session

    with spark_session("local[2]", NEEDS) as session:
        if not first:
            Broker(servers).topic(session._jvm, PARTITIONS, topic)
        millis = f"CAST(id * {HOURS * 3_600_000 / (first or rows)} + rand(7) * 4000 AS BIGINT)"
        moment = f"timestamp_millis(1704067200000 + {millis})"
        made = session.range(first, first + rows).selectExpr(
            f"to_json(struct(CAST(rand(3) * {keys} AS BIGINT) AS k, CAST(rand(5) * 10000 AS BIGINT) AS v, "
            f"date_format({moment}, 'yyyy-MM-dd HH:mm:ss.SSS') AS ts)) AS value",
            f"CAST(id % {PARTITIONS} AS INT) AS partition",
        )
        server = {"kafka.bootstrap.servers": servers}
        made.write.format("kafka").options(**server, topic=topic).option("kafka.compression.type", "lz4").save()
        if not lake:
            return
        records = session.read.format("kafka").options(**server, subscribe=topic).load()
        row = "from_json(CAST(value AS STRING), 'k BIGINT, v BIGINT, ts TIMESTAMP_NTZ')"
        records.selectExpr(
            f"inline(array({row}))", "partition AS kafka_partition", "offset AS kafka_offset"
        ).write.parquet(lake)


def read_packages(folder: Path) -> None:
    """Has every Spark that is started from here find its packages, as that of the tests does."""
    defaults = "".join(f"{key} {value}\n" for key, value in CONF.items())
    (folder / "spark-defaults.conf").write_text(defaults, encoding="utf-8")
    os.environ["SPARK_CONF_DIR"] = str(folder)


class Bench:
    """One Flink and one broker, for all that is measured."""

    def __init__(self, flink: LocalFlink, servers: str, folder: Path) -> None:
        self._flink, self._servers, self._folder = flink, servers, folder
        self._cluster = Cluster(flink.jobmanager_url, flink.gateway_url)
        self._jobs = JobManager(flink.jobmanager_url)

    def replayed(self, shape: Shape, longest: float) -> tuple[Cost, int]:
        """Flink from the earliest offset until it is caught up, or so many seconds; and how many rows it read."""
        read: list[int] = []

        def run() -> None:
            try:
                read.append(self._run(shape, None, shape.rows, longest))
            except Overdue as overdue:
                read.append(int(overdue.last.get("orders", 0)))

        return self._measured(run), read[0]

    def computed(self, shape: Shape, place: str) -> tuple[Cost, Cost]:
        """Ours: the savepoint, and the job's start from it."""
        script, target = self._folder / "job.sql", self._folder / "begun"
        script.write_text(shape.script(self._servers), encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        command = [sys.executable, "-m", "airflow_flinkcompat.cli", "bootstrap", str(script), "--to", target.as_uri()]
        command += ["--history", f"orders={place}" if place else "orders", "--engine-version", "2.3"]
        command += ["--gateway", self._flink.gateway_url, "--jobmanager", self._flink.jobmanager_url]
        command += ["--master", "local[2]"]

        own: list[Cost] = []
        beside = self._measured(lambda: own.append(ran(command)))
        written = Cost(own[0].cpu + beside.cpu, own[0].wall, 0)
        return written, self._measured(lambda: self._run(shape, target.as_uri(), 0))

    def _measured(self, work: Callable[[], object]) -> Cost:
        """The processor time of Flink's processes meanwhile."""
        processes = [psutil.Process(pid) for pid in self._flink.pids.values()]

        def used() -> float:
            return sum(sum(each.cpu_times()[:2]) for each in processes)

        before, started = used(), time.monotonic()
        work()
        return Cost(used() - before, time.monotonic() - started, 0)

    def _run(self, shape: Shape, savepoint: str | None, due: int, longest: float = LONGEST) -> int:
        """The job until it has read so many rows and completed a checkpoint; rows read. Raises Overdue."""
        job_id = self._cluster.submit(shape.statements(self._servers), SETTINGS, savepoint)
        try:
            rows = poll(
                lambda: progress(self._jobs, job_id).rows,
                lambda rows: "orders" not in rows or rows["orders"] < due,
                timeout=longest,
                every=_LOOK,
            )
            wait_running(self._jobs, job_id)
            checkpoint(self._jobs, job_id)
            return int(rows["orders"])
        finally:
            self._jobs.cancel(job_id)


def results(
    bench: Bench, shapes: Sequence[Shape], lakes: Path, histories: Sequence[str], longest: float
) -> Iterator[str]:
    """The benchmark as Markdown, line by line as it is measured."""
    yield f"# The state of a long history, {datetime.now(UTC):%Y-%m-%d}"
    yield ""
    yield f"Flink 2.3.0, Spark 4.1, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; `make bench-bootstrap`."
    yield ""
    yield (__doc__ or "").partition("\n\n")[2].strip().replace("``", "`")
    yield ""
    yield (
        "| job | rows | keys | Flink replays: rows | CPU s | elapsed s | history | savepoint: CPU s | elapsed s | "
        f"start: CPU s | elapsed s | CPU, ours / Flink (goal ≤ {GOAL:g}) | elapsed, ours / Flink |"
    )
    yield f"|{'---|' * 13}"
    for shape in shapes:
        peer, read = bench.replayed(shape, longest)
        less = "" if read >= shape.rows else "< "
        places = {"topic": "", "lake": f"parquet:{(lakes / shape.topic).as_uri()}#kafka_partition,kafka_offset"}
        for name, place in ((name, places[name]) for name in histories):
            written, start = bench.computed(shape, place)
            cpu, wall = ((getattr(written, of) + getattr(start, of)) / getattr(peer, of) for of in ("cpu", "wall"))
            figures = [peer.cpu, peer.wall, name, written.cpu, written.wall, start.cpu, start.wall]
            told = " | ".join(each if isinstance(each, str) else f"{each:.1f}" for each in figures)
            met = "met" if cpu <= GOAL else "not shown" if less else "missed"
            sizes = f"{shape.query} | {shape.rows:,} | {shape.keys:,} | {read:,}"
            yield f"| {sizes} | {told} | {less}{cpu:.2f}, {met} | {less}{wall:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the results there too")
    parser.add_argument("--rows", type=int, default=100_000_000, help="of the history (default: %(default)s)")
    parser.add_argument("--keys", type=int, nargs="+", default=[1000, 1_000_000], help="(default: %(default)s)")
    parser.add_argument("--histories", nargs="+", default=HISTORIES, choices=HISTORIES, help="(default: both)")
    parser.add_argument("--longest", type=float, default=LONGEST, help="seconds for Flink (default: %(default)s)")
    parser.add_argument("--folder", metavar="DIR", type=Path, help="where topics and lakes lie, 20 GB")
    parser.add_argument("--fill", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fill:
        servers, topic, first, lake = given.fill
        fill(servers, topic, given.rows, given.keys[0], int(first), lake)
        return
    shapes = [Shape(query, given.rows, keys) for keys in given.keys for query in QUERIES]
    with tempfile.TemporaryDirectory(prefix="flinkcompat-bench-", dir=given.folder) as own:
        folder = Path(own)
        (folder / "kafka").mkdir()
        read_packages(folder)
        with kafka_broker(folder / "kafka") as broker:
            for topic, keys in {shape.topic: shape.keys for shape in shapes}.items():
                send(broker.servers, topic, given.rows, keys, lake=folder / topic)
            jars = [fetch("flink-sql-connector-kafka")]
            with LocalFlink(folder / "flink", slots=4, extra_jars=jars) as flink:
                lines = []
                for line in results(
                    Bench(flink, broker.servers, folder), shapes, folder, given.histories, given.longest
                ):
                    print(line, flush=True)
                    lines.append(line)
                    if given.write:  # a run that ends early leaves what it measured
                        given.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
