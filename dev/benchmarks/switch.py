"""Gap in the output of a switch: plain resume, migration after the stop, and catch-up before the stop.

A job reads a topic of three partitions, into which rows arrive all the time. It writes totals by key into a keyed
topic, and each row into a topic with transactions. Each redeploy swaps two aggregates, which only a migration carries
over; a plain resume keeps the script. *Gap* is the longest time between two rows of the transactional topic, by the
time at which the job emitted them. At the end, both topics are compared with the rows that arrived: *lost* and *double*
count rows of the transactional topic, *wrong* counts keys with other totals.
"""

from __future__ import annotations

import json
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy import Ledger, Options, deploy
from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.polling import poll
from airflow_flinkcompat.deploy.ledger.entries import Review
from airflow_flinkcompat.deploy.migration import SavepointMigration
from airflow_flinkcompat.deploy.rehearsal.place import Cluster
from airflow_flinkcompat.deploy.shadow.rows import compare_rows
from airflow_flinkcompat.deploy.target import SinkTable
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.local_flink.jars import fetch
from dev.benchmarks.rehearsal import Script, running
from dev.services.kafka import Broker, kafka_broker, kafka_client
from dev.tools import benchmark_parser, explanation, publish

_log = logging.getLogger(__name__)
MODES = ("resume", "migrate after the stop", "catch up")
_ROWS_PER_SECOND = 100
# The source keeps all numbers of the sequence in memory.
_MOST_ROWS = 300_000
_CLUSTER = {"web.refresh-interval": "200", "metrics.fetcher.update-interval": "200"}
_SECONDS = 600.0
_CHECK = {"parallelism.default": "1", "state.backend.type": "rocksdb"}
"""Settings of the jobs that read the results; the latest row of each key does not fit into memory."""


class Workload:
    """Topics, the scripts that fill and read them, and the check of the result."""

    def __init__(self, broker: Broker, jvm: Any, keys: int) -> None:
        self._broker, self._jvm, self._keys = broker, jvm, keys
        self._orders, self._totals, self._copies = broker.topic(jvm, 3), broker.topic(jvm), broker.topic(jvm)

    def _table(self, name: str, columns: str, topic: str, options: str) -> str:
        at = f"'properties.bootstrap.servers' = '{self._broker.servers}', 'topic' = '{topic}'"
        return f"CREATE TABLE {name} ({columns}) WITH ({at}, {options});\n"

    def _tables(self, bounded: str = "") -> str:
        group = f"'properties.group.id' = '{self._orders}', 'scan.startup.mode' = 'earliest-offset'{bounded}"
        columns = "id BIGINT, k BIGINT, amount BIGINT"
        return f"ADD JAR '{fetch('flink-sql-connector-kafka')}';\n" + self._table(
            "orders", columns, self._orders, f"'connector' = 'kafka', 'format' = 'json', {group}"
        )

    def _keyed(self, names: Sequence[str], options: str = "") -> str:
        columns = ", ".join(("k BIGINT", *(f"{name} BIGINT" for name in names), "PRIMARY KEY (k) NOT ENFORCED"))
        formats = "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'"
        return self._table("totals", columns, self._totals, formats + options)

    def filling(self, first: int, rows: int, rate: int | None) -> Script:
        """Script that sends rows, numbered from ``first``; without a rate as fast as it can."""
        pace = "" if rate is None else f"'rows-per-second' = '{rate}', "
        text = self._tables() + (
            "CREATE TABLE numbers (id BIGINT) WITH ('connector' = 'datagen', "
            f"{pace}'fields.id.kind' = 'sequence', 'fields.id.start' = '{first}', "
            f"'fields.id.end' = '{first + rows - 1}');\n"
            f"INSERT INTO orders SELECT id, MOD(id, {self._keys}), MOD(id, 97) FROM numbers;"
        )
        return Script(text, {"parallelism.default": "1"}, "fill.sql")

    def script(self, *names: str) -> Side:
        """The job, with the two aggregates in this order."""
        metrics = {"total": "SUM(amount)", "most": "MAX(amount)"}
        exactly = (
            f"'connector' = 'kafka', 'format' = 'json', 'sink.delivery-guarantee' = 'exactly-once', "
            f"'sink.transactional-id-prefix' = '{self._copies}', 'properties.transaction.timeout.ms' = '600000'"
        )
        text = (
            self._tables()
            + self._keyed(names)
            + self._table("copies", "id BIGINT, emitted STRING", self._copies, exactly)
            + "EXECUTE STATEMENT SET BEGIN\n"
            + f"INSERT INTO totals SELECT k, {', '.join(metrics[name] for name in names)} FROM orders GROUP BY k;\n"
            + "INSERT INTO copies SELECT id, CAST(CURRENT_ROW_TIMESTAMP() AS STRING) FROM orders "
            + f"WHERE id >= {self._keys};\nEND;"
        )
        settings = {
            "parallelism.default": "3",
            "execution.checkpointing.interval": "1 s",
            "state.backend.type": "rocksdb",
            "table.local-time-zone": "UTC",
        }
        return Side(text, settings, engine="flink", engine_version="2.3.0", source="orders.sql")

    def emitted(self) -> dict[int, list[float]]:
        """Times at which rows were emitted, in seconds, by their number."""
        found: dict[int, list[float]] = {}
        for _, value in self._broker.received(self._jvm, self._copies):
            row = json.loads(str(value))
            found.setdefault(row["id"], []).append(datetime.fromisoformat(row["emitted"]).timestamp())
        return found

    def wrong_totals(self, gateway: SqlGateway, jobs: JobManager, folder: Path) -> int:
        """Number of keys whose totals differ from the rows that arrived."""
        ends = ", 'scan.bounded.mode' = 'latest-offset'"
        rows = "'connector' = 'filesystem', 'format' = 'debezium-json', 'path' = '{}'"
        columns = "k BIGINT, total BIGINT, most BIGINT, PRIMARY KEY (k) NOT ENFORCED"
        queries = {
            "expected": "SELECT k, SUM(amount), MAX(amount) FROM orders GROUP BY k",
            "found": "SELECT * FROM totals",
        }
        for name, query in queries.items():
            text = self._tables(ends) + self._keyed(("total", "most"), ends)
            text += f"CREATE TABLE {name} ({columns}) WITH ({rows.format((folder / name).as_uri())});\n"
            side = Script(f"{text}INSERT INTO {name} {query};", _CHECK, f"{name}.sql")
            with running(gateway, jobs, side, name) as job:
                poll(lambda: jobs.status(job), lambda seen: not (seen and seen.terminal), timeout=_SECONDS)
        sink = SinkTable(("", "", "totals"), {"k": "BIGINT", "total": "BIGINT", "most": "BIGINT"}, ("k",))
        (found,) = compare_rows([(sink, str(folder / "expected"))], [(sink, str(folder / "found"))])
        return found.differing


def switch(flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, new: Side, mode: str) -> None:
    """Redeploy once."""
    head = ledger.head()
    assert head is not None
    options = Options(settle_seconds=0, stop_timeout=_SECONDS, start_timeout=_SECONDS)
    common: dict[str, Any] = {"checked_old_sha256": head.sha256, "options": options}
    if mode == "resume":
        deploy(
            target, ledger, new, start_mode="savepoint", review=Review("compatible"), owner=f"{time.time()}", **common
        )
        return
    location = TargetLocation("sql-gateway", {"gateway": flink.gateway_url, "jobmanager": flink.jobmanager_url})
    with ExitStack() as opened:
        migration = SavepointMigration(
            Side.of(head.job), new, Cluster(target, location), head.job_id, at_least=MigrationExtent.WHOLE,
            plan_dir=None, rehearsed=False, log=_log.info, hold=opened.enter_context,
            catch_up="always" if mode == "catch up" else False,
        )  # fmt: skip
        deploy(target, ledger, new, start_mode="migrated", review=Review("incompatible"), migration=migration, **common)


def results(folder: Path, keys: int, rounds: int) -> Iterator[str]:
    """The benchmark as Markdown, line by line as it is measured."""
    yield f"# Gap of a switch, {datetime.now(UTC):%Y-%m-%d}"
    yield ""
    yield f"Flink 2.3.0 with RocksDB, {os.cpu_count()} cores, parallelism 3, {keys:,} keys; `make bench-switch`."
    yield ""
    yield explanation(__doc__)
    yield ""
    with (
        LocalFlink(folder / "flink", slots=8, config=_CLUSTER) as flink,
        kafka_broker(folder) as broker,
        kafka_client() as jvm,
        SqlGateway(flink.gateway_url) as gateway,
        JobManager(flink.jobmanager_url) as jobs,
        closing(SqlGatewayTarget(flink.gateway_url, flink.jobmanager_url)) as target,
    ):
        work, ledger = Workload(broker, jvm, keys), Ledger(folder / "ledger", "orders")
        with running(gateway, jobs, work.filling(0, keys, None), "fill") as job:
            poll(lambda: jobs.status(job), lambda seen: not (seen and seen.terminal), timeout=_SECONDS)
        side = work.script("total", "most")
        options = Options(settle_seconds=0, start_timeout=_SECONDS)
        deploy(target, ledger, side, checked_old_sha256=None, options=options)
        begun: list[tuple[str, float, float]] = []
        order = ["total", "most"]
        with running(gateway, jobs, work.filling(keys, _MOST_ROWS, _ROWS_PER_SECOND), "arrive"):
            poll(work.emitted, lambda seen: len(seen) < _ROWS_PER_SECOND, timeout=_SECONDS)
            for mode in MODES * rounds:
                if mode != "resume":
                    order.reverse()
                before = time.time()
                switch(flink, target, ledger, work.script(*order), mode)
                begun.append((mode, before, time.time()))
                _wait_for_more(work)
        time_ends = [end for _, _, end in begun]
        head = ledger.head()
        assert head is not None
        end = poll(lambda: _at_end(jobs, str(head.job_id)), lambda seen: not seen, timeout=_SECONDS)
        assert end
        emitted = work.emitted()
        wrong = work.wrong_totals(gateway, jobs, folder)
    every = sorted(at for times in emitted.values() for at in times)
    gaps: dict[str, list[float]] = {mode: [] for mode in MODES}
    for (mode, before, _), until in zip(
        begun, [*(start for _, start, _ in begun[1:]), max(time_ends) + 60], strict=True
    ):
        times = [at for at in every if before - 1 <= at <= until]
        gaps[mode].append(max(later - at for at, later in pairwise(times)))
    yield "| switch | gap, s (median) | all |"
    yield "|---|---|---|"
    for mode, found in gaps.items():
        yield f"| {mode} | {statistics.median(found):.1f} | {', '.join(f'{each:.1f}' for each in found)} |"
    yield ""
    ids = sorted(emitted)
    lost = ids[-1] - ids[0] + 1 - len(ids)
    double = sum(len(times) - 1 for times in emitted.values())
    more = statistics.median(gaps["catch up"]) - statistics.median(gaps["resume"])
    yield f"Rows: {len(ids):,}; lost: {lost}; double: {double}; keys with wrong totals: {wrong}."
    yield f"Catch up takes {more:.1f} s more than a plain resume (goal: at most 5 s)."


def _wait_for_more(work: Workload) -> None:
    """Wait until the job that runs now has committed rows."""
    before = len(work.emitted())
    poll(lambda: len(work.emitted()), lambda seen: seen <= before, timeout=_SECONDS)


def _at_end(jobs: JobManager, job: str) -> bool:
    """True if the last checkpoint began after the job had read all rows."""
    first = jobs.checkpoints(job)["counts"]["completed"]
    poll(lambda: jobs.checkpoints(job)["counts"]["completed"], lambda seen: seen < first + 3, timeout=_SECONDS)
    return True


def main() -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000, help="number of keys of the job's state")
    parser.add_argument("--rounds", type=int, default=3, help="number of switches of each kind")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        publish(results(Path(folder), given.keys, given.rounds), given.write)


if __name__ == "__main__":
    main()
