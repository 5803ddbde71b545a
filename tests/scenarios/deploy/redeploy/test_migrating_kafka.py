"""A migrated job between two topics of a real broker: no record is lost or read twice, and none is written twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy import Ledger, Options, deploy
from airflow_flinkcompat.deploy.ledger.entries import MigratedEntry
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.local_flink import LocalFlink
from dev.services.csv_job import wait_for
from dev.services.kafka import Broker, kafka_broker, kafka_client
from tests.scenarios.deploy.redeploy.test_migrating_flink import migrated

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    with kafka_client() as client:
        yield client


def script(broker: Broker, orders: str, totals: str, *, most: bool) -> Side:
    column, metric = (", most BIGINT", ", MAX(amount)") if most else ("", "")
    text = f"""
    CREATE TABLE orders (customer STRING, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
      'connector' = 'kafka', 'topic' = '{orders}', 'properties.bootstrap.servers' = '{broker.servers}',
      'properties.group.id' = '{orders}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'csv');
    CREATE TABLE totals (customer STRING, since TIMESTAMP(3), total BIGINT{column}) WITH (
      'connector' = 'kafka', 'topic' = '{totals}', 'properties.bootstrap.servers' = '{broker.servers}',
      'format' = 'csv', 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{totals}',
      'properties.transaction.timeout.ms' = '600000');
    INSERT INTO totals SELECT customer, window_start, SUM(amount){metric}
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY customer, window_start, window_end;
    """
    settings = {"parallelism.default": "2", "execution.checkpointing.interval": "500 ms"}
    return Side(text, settings, engine="flink", engine_version="2.3.0", source="orders.sql")


def test_a_metric_is_added_between_two_topics(
    local_flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger, broker: Broker, jvm: Any
) -> None:
    orders, totals = broker.topic(jvm, partitions=2), broker.topic(jvm)

    def arrive(*rows: tuple[str, int, str]) -> None:
        """The same rows of another customer in each partition, so that both watermarks go on."""
        for partition, mark in enumerate(("a", "b")):
            lines = [(None, f"{mark}{who},{amount},2026-01-01 00:{at}") for who, amount, at in rows]
            broker.send(jvm, orders, lines, partition)

    def written() -> list[str]:
        return sorted(str(value) for _, value in broker.received(jvm, totals))

    minute = '"2026-01-01 00:0{}:00"'.format
    arrive(("nn", 1, "00:10"), ("nn", 50, "01:10"))
    options = Options(settle_seconds=1, start_timeout=120)
    old, new = (script(broker, orders, totals, most=most) for most in (False, True))
    deploy(target, ledger, old, checked_old_sha256=None, options=options, log=print)
    first = [f"ann,{minute(0)},1", f"bnn,{minute(0)},1"]
    wait_for(lambda: written() == first, "minute 0 is written")
    entry = migrated(local_flink, target, ledger, new, at_least=MigrationExtent.PARTIAL)
    (done,) = [each for each in ledger.entries() if isinstance(each, MigratedEntry)]
    states = {each["operator"]: each["state"] for each in done.migration["operators"]}
    assert states["sink totals"] == states["source orders"] == "carried as it is"
    arrive(("nn", 7, "01:20"), ("nn", 1, "02:10"))
    expected = sorted([*first, f"ann,{minute(1)},57,7", f"bnn,{minute(1)},57,7"])
    wait_for(lambda: len(written()) >= len(expected), "minute 1 is written")
    assert written() == expected
    assert target.running(ledger.deployment) == (entry.job_id,)
