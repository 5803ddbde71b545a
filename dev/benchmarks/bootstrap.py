"""Cost of a warm start from a topic, compared with Flink replaying the topic.

A topic of three partitions holds a day of JSON records. Flink replays it from the earliest offset until it has read all
records and completed a checkpoint. Ours is ``flinkcompat bootstrap`` over the topic, and the job's start from that
savepoint until it has completed a checkpoint. Both take turns on the same cores, with two subtasks and two of Spark's
cores. Processor time is that of all processes except the broker: the command with its Spark, and Flink's processes,
which plan the script, take the template and run the job. With ``--lake``, ours also reads the same rows from Parquet
files with their partitions and offsets. If Flink has not read all records after ``--longest`` seconds, it is stopped,
and the true ratios are lower than shown.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from argparse import SUPPRESS
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from airflow_flinkcompat.backfill.connectors.kafka import NEEDS
from airflow_flinkcompat.backfill.spark import spark_session
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.local_flink.jars import fetch
from dev.benchmarks.downtime import Cluster
from dev.measure.progress import checkpoint, progress, wait_running
from dev.services.kafka import Broker, ivy_directory, kafka_broker
from dev.tools import Cost, benchmark_parser, cost_of, explanation, publish

GOAL = 1.0
PARTITIONS, HOURS = 3, 24
SETTINGS = {"parallelism.default": "2", "execution.checkpointing.interval": "1 h", "state.backend.type": "rocksdb"}
QUERIES = {
    "TUMBLE": "FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR)) "
    "GROUP BY k, window_start, window_end",
    "GROUP BY": "FROM orders GROUP BY k",
}
PACKAGES = {
    "spark.jars.ivy": str(ivy_directory()),
    # Kafka's delegation tokens are unused here, and Ivy finds them in no cache.
    "spark.jars.excludes": "org.apache.spark:spark-token-provider-kafka-0-10_2.13",
}


@dataclass(frozen=True)
class Shape:
    """One job over one topic."""

    query: str
    rows: int
    keys: int

    @property
    def topic(self) -> str:
        """Name of the topic, which all queries of one size read."""
        return f"orders-{self.keys}-{self.rows}"

    def statements(self, servers: str) -> list[str]:
        return [
            "CREATE TABLE orders (k BIGINT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) "
            f"WITH ('connector' = 'kafka', 'topic' = '{self.topic}', 'properties.bootstrap.servers' = '{servers}', "
            "'properties.group.id' = 'bench', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json')",
            "CREATE TABLE totals (k BIGINT, total BIGINT, n BIGINT, most BIGINT) WITH ('connector' = 'blackhole')",
            f"INSERT INTO totals SELECT k, SUM(v), COUNT(*), MAX(v) {QUERIES[self.query]}",
        ]

    def script(self, servers: str) -> str:
        settings = [f"SET '{key}' = '{value}'" for key, value in SETTINGS.items()]
        return ";\n".join([*settings, *self.statements(servers), ""])


def fill(servers: str, topic: str, rows: int, keys: int, lake: str) -> None:
    """Send a day of records in the order of time, up to a few seconds.

    Then write the same rows to a lake, if named.
    """
    with spark_session("local[2]", NEEDS) as session:
        Broker(servers).topic(session._jvm, PARTITIONS, topic)
        millis = f"CAST(id * {HOURS * 3_600_000 / rows} + rand(7) * 4000 AS BIGINT)"
        made = session.range(rows).selectExpr(
            f"to_json(struct(CAST(rand(3) * {keys} AS BIGINT) AS k, CAST(rand(5) * 10000 AS BIGINT) AS v, "
            f"date_format(timestamp_millis(1704067200000 + {millis}), 'yyyy-MM-dd HH:mm:ss.SSS') AS ts)) AS value",
            f"CAST(id % {PARTITIONS} AS INT) AS partition",
        )
        server = {"kafka.bootstrap.servers": servers}
        made.write.format("kafka").options(**server, topic=topic).option("kafka.compression.type", "lz4").save()
        if lake:
            records = session.read.format("kafka").options(**server, subscribe=topic).load()
            row = "from_json(CAST(value AS STRING), 'k BIGINT, v BIGINT, ts TIMESTAMP_NTZ')"
            place = ("partition AS kafka_partition", "offset AS kafka_offset")
            records.selectExpr(f"inline(array({row}))", *place).write.parquet(lake)


def ran(command: Sequence[str]) -> Cost:
    found = cost_of(command, 4 * 3600)
    if found.status:
        raise SystemExit(found.output)
    return found


class Bench:
    """One Flink and one broker for all measurements."""

    def __init__(self, flink: LocalFlink, servers: str, folder: Path) -> None:
        self._flink, self._servers, self._folder = flink, servers, folder
        self._cluster = Cluster(flink.jobmanager_url, flink.gateway_url)
        self._jobs = JobManager(flink.jobmanager_url)

    def replayed(self, shape: Shape, longest: float) -> tuple[Cost, int]:
        """Cost of Flink's replay, and the number of records that it read."""
        read: list[int] = []

        def run() -> None:
            try:
                read.append(self._run(shape, None, shape.rows, longest))
            except Overdue as overdue:
                read.append(int(overdue.last.get("orders", 0)))

        return self._measured(run), read[0]

    def computed(self, shape: Shape, place: str) -> tuple[Cost, Cost]:
        """Costs of the savepoint and of the job's start from it."""
        script, target = self._folder / "job.sql", self._folder / "warm"
        script.write_text(shape.script(self._servers), encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        command = [sys.executable, "-m", "airflow_flinkcompat.cli", "bootstrap", str(script), "--to", target.as_uri()]
        command += ["--history", f"orders={place}" if place else "orders", "--engine-version", "2.3"]
        command += ["--gateway", self._flink.gateway_url, "--jobmanager", self._flink.jobmanager_url]
        own: list[Cost] = []
        others = self._measured(lambda: own.append(ran([*command, "--master", "local[2]"])))
        written = Cost(own[0].cpu + others.cpu, own[0].wall, 0, own[0].output)
        return written, self._measured(lambda: self._run(shape, target.as_uri(), 0, 600))

    def _measured(self, work: Callable[[], object]) -> Cost:
        """Cost of work in Flink's processes."""
        processes = [psutil.Process(pid) for pid in self._flink.pids.values()]

        def used() -> float:
            return sum(sum(each.cpu_times()[:2]) for each in processes)

        before, started = used(), time.monotonic()
        work()
        return Cost(used() - before, time.monotonic() - started, 0)

    def _run(self, shape: Shape, savepoint: str | None, due: int, longest: float) -> int:
        """Run the job until it has read all records and completed a checkpoint; raises Overdue."""
        job_id = self._cluster.submit(shape.statements(self._servers), SETTINGS, savepoint)
        try:
            rows: Mapping[str, int] = poll(
                lambda: progress(self._jobs, job_id).rows,
                lambda rows: "orders" not in rows or rows["orders"] < due,
                timeout=longest,
                every=0.5,
            )
            wait_running(self._jobs, job_id)
            checkpoint(self._jobs, job_id)
            return rows["orders"]
        finally:
            self._jobs.cancel(job_id)


def results(bench: Bench, shapes: Sequence[Shape], lakes: Path | None, longest: float) -> Iterator[str]:
    """The benchmark as Markdown, line by line as it is measured."""
    yield f"# A warm start from a topic, {datetime.now(UTC):%Y-%m-%d}"
    yield ""
    yield f"Flink 2.3.0, Spark 4.1, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; `make bench-bootstrap`."
    yield ""
    yield explanation(__doc__)
    yield ""
    yield (
        "| job | rows | keys | Flink replays: rows | CPU s | elapsed s | history | savepoint: CPU s | elapsed s | "
        f"start: CPU s | elapsed s | CPU, ours / Flink (goal ≤ {GOAL:g}) | elapsed, ours / Flink |"
    )
    yield f"|{'---|' * 13}"
    for shape in shapes:
        peer, read = bench.replayed(shape, longest)
        less = "" if read >= shape.rows else "< "
        places = {"topic": ""}
        if lakes is not None:
            places["lake"] = f"parquet:{(lakes / shape.topic).as_uri()}#kafka_partition,kafka_offset"
        for name, place in places.items():
            written, start = bench.computed(shape, place)
            cpu, wall = ((getattr(written, of) + getattr(start, of)) / getattr(peer, of) for of in ("cpu", "wall"))
            figures = [peer.cpu, peer.wall, name, written.cpu, written.wall, start.cpu, start.wall]
            cells = " | ".join(each if isinstance(each, str) else f"{each:.1f}" for each in figures)
            met = "met" if cpu <= GOAL else "not shown" if less else "missed"
            sizes = f"{shape.query} | {shape.rows:,} | {shape.keys:,} | {read:,}"
            yield f"| {sizes} | {cells} | {less}{cpu:.2f}, {met} | {less}{wall:.2f} |"


def main() -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000, help="records of the topic (default: %(default)s)")
    parser.add_argument("--keys", type=int, nargs="+", default=[1000, 1_000_000], help="(default: %(default)s)")
    parser.add_argument("--queries", nargs="+", default=list(QUERIES), choices=QUERIES, help="(default: all)")
    parser.add_argument("--lake", action="store_true", help="read the same rows from a lake, too")
    parser.add_argument("--longest", type=float, default=3600, help="seconds for Flink (default: %(default)s)")
    parser.add_argument("--folder", metavar="DIR", type=Path, help="parent of the topics and lakes")
    parser.add_argument("--fill", nargs=3, help=SUPPRESS)
    options = parser.parse_args()
    if options.fill:
        servers, topic, lake = options.fill
        fill(servers, topic, options.rows, options.keys[0], lake)
        return
    with tempfile.TemporaryDirectory(prefix="flinkcompat-bench-", dir=options.folder) as own:
        folder = Path(own)
        (folder / "kafka").mkdir()
        defaults = {**PACKAGES, "spark.jars": str(fetch("spark-token-provider-kafka"))}
        lines = "".join(f"{key} {value}\n" for key, value in defaults.items())
        (folder / "spark-defaults.conf").write_text(lines, encoding="utf-8")
        os.environ["SPARK_CONF_DIR"] = str(folder)
        with kafka_broker(folder / "kafka") as broker:
            for keys in options.keys:
                topic = Shape("", options.rows, keys).topic
                lake = str(folder / topic) if options.lake else ""
                command = [sys.executable, "-m", "dev.benchmarks.bootstrap", "--rows", str(options.rows)]
                ran([*command, "--keys", str(keys), "--fill", broker.servers, topic, lake])
            jars = [fetch("flink-sql-connector-kafka")]
            with LocalFlink(folder / "flink", slots=4, extra_jars=jars) as flink:
                shapes = [Shape(query, options.rows, keys) for keys in options.keys for query in options.queries]
                lakes = folder if options.lake else None
                publish(results(Bench(flink, broker.servers, folder), shapes, lakes, options.longest), options.write)


if __name__ == "__main__":
    main()
