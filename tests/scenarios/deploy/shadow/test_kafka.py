"""Shadow runs next to a job that reads a topic with three partitions and writes keyed and transactional topics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.rehearsal.restoring import Timeouts
from airflow_flinkcompat.deploy.shadow.report import ShadowReport
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding
from airflow_flinkcompat.deploy.shadow.sequence import ShadowOptions, shadow
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.local_flink.jars import fetch
from dev.benchmarks.rehearsal import Script, cluster, running
from dev.services.csv_job import wait_for
from dev.services.kafka import Broker, positions

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(900)]

GROUP = "orders-live"
OPTIONS = ShadowOptions(
    seconds=1.0, run_seconds=180.0, from_earliest=True, timeouts=Timeouts(start=120, savepoint=60, clean_up=60)
)
FIRST, SECOND, THIRD = ((f"ann,{n}", f"ben,{2 * n}", f"cid,{3 * n}") for n in (5, 7, 11))


def test_topics(local_flink: LocalFlink, broker: Broker, jvm: Any) -> None:
    source, totals, copies, latest = broker.topic(jvm, 3), *(broker.topic(jvm) for _ in range(3))
    at = f"'properties.bootstrap.servers' = '{broker.servers}'"
    text = f"""
    ADD JAR '{fetch("flink-sql-connector-kafka")}';
    CREATE TABLE orders (who STRING, amount BIGINT) WITH ('connector' = 'kafka', 'topic' = '{source}', {at},
      'properties.group.id' = '{GROUP}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'csv');
    CREATE TABLE totals (who STRING, total BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = '{totals}', {at}, 'key.format' = 'csv', 'value.format' = 'csv');
    CREATE TABLE copies (who STRING, amount BIGINT) WITH ('connector' = 'kafka', 'topic' = '{copies}', {at},
      'format' = 'csv', 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'orders-live',
      'properties.transaction.timeout.ms' = '600000');
    CREATE TABLE latest (who STRING, amount BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = '{latest}', {at}, 'key.format' = 'csv', 'value.format' = 'csv');
    EXECUTE STATEMENT SET BEGIN
    INSERT INTO totals SELECT who, SUM(amount) FROM orders GROUP BY who;
    INSERT INTO copies SELECT who, amount FROM orders;
    INSERT INTO latest SELECT who, amount FROM orders ON CONFLICT DO DEDUPLICATE;
    END;
    """
    old = Script(text, {"parallelism.default": "2", "execution.checkpointing.interval": "300 ms"}, "old.sql")
    new = replace(old, script=text.replace("SUM(amount)", "MIN(amount)"), source="new.sql")

    def send(rows: tuple[str, ...]) -> None:
        for partition, row in enumerate(rows):
            broker.send(jvm, source, [(None, row)], partition)

    def total(who: str) -> str | None:
        return dict(broker.received(jvm, totals)).get(who)

    with (
        SqlGateway(local_flink.gateway_url) as gateway,
        JobManager(local_flink.jobmanager_url) as jobs,
        running(gateway, jobs, old, "topics") as job_id,
    ):

        def compare(proposed: Script, rows: tuple[str, ...], last: str) -> ShadowReport:
            def log(line: str) -> None:
                print(line)
                if line.startswith("waiting"):
                    send(rows)
                    wait_for(lambda: total("ann") == last, "the live job reads the rows between the savepoints")
                if line == "old.sql reads the rows again":
                    send(THIRD)  # the live job reads on, and a shadow run does not read these rows

            found = shadow(cluster(gateway, jobs), job_id, old, proposed, OPTIONS, log)
            print("\n".join(found.lines()))
            assert found.left == ()
            return found

        send(FIRST)
        wait_for(lambda: total("ann") == "ann,5", "the live job reads the first rows")
        equal = compare(old, SECOND, "ann,12")
        assert [(each.finding, each.compared[0]) for each in equal.sinks] == [("equal", 6), ("equal", 3), ("equal", 3)]
        assert equal.state is not None
        assert equal.state.finding is ShadowFinding.EQUAL, equal.state.reason
        wrong = compare(new, SECOND, "ann,41")
        by_sink = {each.sink: each for each in wrong.sinks}
        assert wrong.finding is ShadowFinding.CHANGED, "all keys differ only in total"
        assert {by_sink[name].finding for name in ("copies", "latest")} == {ShadowFinding.EQUAL}
        assert by_sink["totals"].rows is not None
        assert by_sink["totals"].rows.to_pylist()[0] == {
            "who": "ann", "change": "changed", "total (old)": "41", "total (new)": "7"
        }  # fmt: skip
        assert wrong.state is not None
        states = {each.sink: each.finding for each in wrong.state.sinks}
        assert states.pop("totals") is ShadowFinding.DIFFERS
        assert set(states.values()) == {ShadowFinding.EQUAL}
        broker.delete_below(jvm, source, {1: 1})
        deleted = compare(old, SECOND, "ann,59").state
        assert deleted is not None
        assert deleted.finding is ShadowFinding.INCONCLUSIVE
        assert deleted.reason.startswith("a topic no longer contains its first rows: "), deleted.reason
        assert f"{source}-1" in deleted.reason, "the partition is named"
        assert set(positions(broker, jvm)) == {GROUP}, "the shadow runs committed no positions"
        assert [job.name for job in jobs.jobs().values() if not job.terminal] == ["topics"]
