"""Source offsets on a real Flink over a real broker: from each choice exactly the rows it stands for, once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.compat.hand_over import HandOver, SourceStart
from airflow_flinkcompat.deploy import DeployRefused, Ledger, Options, TargetError, deploy
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.local_flink.jars import fetch
from dev.services.csv_job import Side, wait_for
from dev.services.kafka import Broker, kafka_broker, kafka_client

pytestmark = pytest.mark.slow

# No checkpoint but those that are asked for: what is committed when is what the test says.
SETTINGS = {"parallelism.default": "1", "execution.checkpointing.interval": "1 h"}
OPTIONS = Options(settle_seconds=0.5, start_timeout=120)
SECOND = 1000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture(scope="module")
def jvm(broker: Broker) -> Iterator[Any]:
    with kafka_client() as jvm:
        yield jvm


@pytest.fixture
def target(local_flink: LocalFlink) -> Iterator[SqlGatewayTarget]:
    with SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url) as target:
        yield target


class Orders:
    """A deployment that copies a topic of four partitions: 0 and 1 are in use, 2 is idle, 3 is empty."""

    def __init__(self, target: SqlGatewayTarget, jobmanager_url: str, broker: Broker, jvm: Any, root: Path) -> None:
        self.jobmanager_url = jobmanager_url
        self.target, self.broker, self.jvm, self.root = target, broker, jvm, root
        self.topic = broker.topic(jvm, 4)
        self.ledger = Ledger(root / "ledger", f"offsets-{self.topic}")
        self.said: list[str] = []

    def side(self, version: int = 1, kind: str = "TABLE", **options: str) -> Side:
        given = {
            "connector": "kafka", "topic": self.topic, "properties.bootstrap.servers": self.broker.servers,
            "properties.group.id": f"live-{self.topic}", "scan.startup.mode": "earliest-offset", "format": "csv",
        }  # fmt: skip
        pairs = ", ".join(f"'{key}' = '{value}'" for key, value in {**given, **options}.items())
        script = f"""
        ADD JAR '{fetch("flink-sql-connector-kafka")}';
        CREATE {kind} orders (who STRING, met TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
          WATERMARK FOR met AS met) WITH ({pairs});
        CREATE TABLE copied (who STRING) WITH ('connector' = 'filesystem', 'path' = '{self.sink(version).as_uri()}',
          'format' = 'csv');
        CREATE VIEW named AS SELECT who FROM orders;
        INSERT INTO copied SELECT who FROM named;
        """
        return Side(script, SETTINGS)

    def sink(self, version: int) -> Path:
        return self.root / f"copied-{version}"

    def send(self, partition: int, *rows: str, second: int = 0) -> None:
        """Rows whose records are of these seconds since the epoch, and on."""
        self.broker.send(self.jvm, self.topic, [(None, row) for row in rows], partition, millis=second * SECOND)

    def deploy(self, side: Side, **arguments: Any) -> DeployedEntry:
        head = self.ledger.head()
        given = {"checked_old_sha256": head.sha256 if head else None, "options": OPTIONS, **arguments}
        return deploy(self.target, self.ledger, side, log=self.said.append, **given)

    def wait_for_checkpoints(self) -> None:
        """Until none that was asked for is under way."""
        path = f"jobs/{self.ledger.head().job_id}/checkpoints"  # type: ignore[union-attr]
        with JobManager(self.jobmanager_url) as jobs:
            wait_for(lambda: jobs.get(path)["counts"]["in_progress"] == 0, "no checkpoint is under way")

    def rows(self, version: int, count: int) -> list[str]:
        """What a version has written once it has written so many rows, and a checkpoint after them."""
        job_id = self.ledger.head().job_id  # type: ignore[union-attr]

        def written() -> list[str]:
            self.target.request_checkpoint(str(job_id))
            files = (path for path in self.sink(version).glob("**/*") if path.is_file() and path.name[0] not in "._")
            return sorted(line for path in files for line in path.read_text().splitlines())

        wait_for(lambda: len(written()) >= count, f"{count} rows of version {version}")
        return written()


@pytest.fixture
def orders(
    target: SqlGatewayTarget, local_flink: LocalFlink, broker: Broker, jvm: Any, tmp_path: Path
) -> Iterator[Orders]:
    made = Orders(target, local_flink.jobmanager_url, broker, jvm, tmp_path)
    yield made
    for job_id in target.running(made.ledger.deployment):
        target.cancel(job_id)


def test_as_stored_loses_no_row_and_reads_none_twice(orders: Orders) -> None:
    orders.send(0, "a1", "a2", "a3")
    orders.send(1, "b1")
    orders.deploy(orders.side())
    assert orders.rows(1, 4) == ["a1", "a2", "a3", "b1"]
    orders.wait_for_checkpoints()
    # Read after the last checkpoint, and partly by nobody yet when the stop comes.
    orders.send(0, *[f"c{i:03}" for i in range(500)])
    second = orders.deploy(orders.side(2), start_mode="stateless", offsets="as-stored")
    orders.send(0, "d1")
    orders.send(1, "e1")
    orders.send(2, "f1")
    orders.rows(2, 1)
    every = ["a1", "a2", "a3", "b1", *[f"c{i:03}" for i in range(500)], "d1", "e1", "f1"]
    wait_for(lambda: len(orders.rows(1, 4)) + len(orders.rows(2, 1)) >= len(every), "every row is written")
    assert sorted(orders.rows(1, 4) + orders.rows(2, 1)) == every
    (row,) = second.start.offsets
    assert row["options"]["scan.startup.mode"] == "specific-offsets"
    assert row["words"] in orders.said
    # And with state the choice is Flink's, not ours: the same again, from the savepoint.
    with pytest.raises(DeployRefused, match="Flink ignores other start offsets"):
        orders.deploy(orders.side(2), start_mode="savepoint", offsets="earliest")


@pytest.mark.nightly
def test_each_choice_gives_its_rows(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.send(0, "a1", "a2", second=100)
    orders.send(1, "b1", second=300)
    latest = {"scan.startup.mode": "latest-offset"}
    # A temporary table of a script that would begin at the end.
    orders.deploy(orders.side(1, "TEMPORARY TABLE", **latest), offsets="earliest")
    assert orders.rows(1, 3) == ["a1", "a2", "b1"]

    running = orders.target.running(orders.ledger.deployment)
    with monkeypatch.context() as patched:
        patched.setattr("airflow_flinkcompat.deploy.start_offsets._filled", lambda *_: {"scan.startup.mode": "nowhere"})
        with pytest.raises(TargetError, match="ScanStartupMode"):
            orders.deploy(orders.side(2), start_mode="stateless", offsets="latest")
    assert orders.target.running(orders.ledger.deployment) == running, "found out before the stop"
    orders.deploy(orders.side(2), start_mode="stateless", offsets="latest")
    orders.send(0, "c1", second=400)
    assert orders.rows(2, 1) == ["c1"]

    orders.deploy(orders.side(3), start_mode="stateless", offsets={"orders": "1970-01-01T01:05:00+01:00"})
    assert orders.rows(3, 2) == ["b1", "c1"]

    side = orders.side(4, **latest)
    start = SourceStart("orders", "met", 0, "1970-01-01T00:01:41Z", "1970-01-01T00:02:00Z", latest)
    record = HandOver("1970-01-01 00:01:00", (start,), (), side.part_digests(), "2026-01-01")
    orders.deploy(side, start_mode="stateless", hand_over=record)
    assert any("(from the hand-over)" in line for line in orders.said)
    assert orders.rows(4, 2) == ["b1", "c1"]


@pytest.mark.nightly
def test_a_partition_nobody_read_yet_goes_on_from_its_group(orders: Orders) -> None:
    group = f"live-{orders.topic}"
    orders.send(0, "a1", "a2")
    orders.send(1, "b1")
    commit(orders, group, {0: 1, 1: 1, 2: 0, 3: 0})
    side = orders.side(1, "TABLE", **{"scan.startup.mode": "group-offsets"})
    # States of their own files, as large ones are.
    side = replace(side, settings={**SETTINGS, "execution.checkpointing.data-inline-threshold": "0 kb"})
    orders.deploy(side)
    assert orders.rows(1, 1) == ["a2"]
    entry = orders.deploy(orders.side(2), start_mode="stateless", offsets="as-stored")
    assert len(list(Path(str(entry.start.savepoint).removeprefix("file:")).iterdir())) > 1
    places = entry.start.offsets[0]["options"]["scan.startup.specific-offsets"]
    assert places == "partition:0,offset:2;partition:1,offset:-3;partition:2,offset:-3;partition:3,offset:-3"
    orders.send(1, "b2")
    orders.send(3, "d1")
    assert orders.rows(2, 2) == ["b2", "d1"]


def commit(orders: Orders, group: str, places: dict[int, int]) -> None:
    """Let a consumer group stand there."""
    kafka = orders.jvm.org.apache.kafka
    properties = orders.jvm.java.util.Properties()
    properties.setProperty("bootstrap.servers", orders.broker.servers)
    offsets = orders.jvm.java.util.HashMap()
    for partition, offset in places.items():
        at = kafka.clients.consumer.OffsetAndMetadata(orders.jvm.java.lang.Long.parseLong(str(offset)))
        offsets.put(kafka.common.TopicPartition(orders.topic, partition), at)
    admin = kafka.clients.admin.AdminClient.create(properties)
    try:
        admin.alterConsumerGroupOffsets(group, offsets).all().get()
    finally:
        admin.close()
