"""A rehearsal beside a job on Kafka: its consumer group and its transactions stay its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.deploy.flink import second_readers
from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.rehearsal.report import Rehearsal
from airflow_flinkcompat.deploy.rehearsal.sequence import rehearse
from airflow_flinkcompat.deploy.rehearsal.waiting import Paused
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.local_flink.jars import fetch
from airflow_flinkcompat.model import RehearsalFinding
from dev.benchmarks.rehearsal import QUICK, Script, cluster, running
from dev.services.csv_job import wait_for
from dev.services.kafka import Broker, positions

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

GROUP = "orders-live"


def values(broker: Broker, jvm: Any, topic: str, isolation: str = "read_committed") -> list[str | None]:
    return [value for _, value in broker.received(jvm, topic, isolation)]


@pytest.mark.timeout(900)
def test_positions_and_transactions_are_untouched(
    local_flink: LocalFlink, broker: Broker, jvm: Any, tmp_path: Path
) -> None:
    source, sink = broker.topic(jvm), broker.topic(jvm)
    text = f"""
    ADD JAR '{fetch("flink-sql-connector-kafka")}';
    CREATE TABLE orders (who STRING, met TIMESTAMP_LTZ(3) METADATA FROM 'timestamp') WITH (
      'connector' = 'kafka', 'topic' = '{source}', 'properties.bootstrap.servers' = '{broker.servers}',
      'properties.group.id' = '{GROUP}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'csv');
    CREATE TABLE shouted (who STRING, met TIMESTAMP_LTZ(3) METADATA FROM 'timestamp') WITH (
      'connector' = 'kafka', 'topic' = '{sink}', 'properties.bootstrap.servers' = '{broker.servers}', 'format' = 'csv',
      'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'orders-live',
      'properties.transaction.timeout.ms' = '600000');
    INSERT INTO shouted SELECT UPPER(who), met FROM orders;
    """
    # Only checkpoints that are asked for: each commits positions and transactions.
    old = Script(text, {"parallelism.default": "1", "execution.checkpointing.interval": "1 h"}, "orders.sql")
    with (
        SqlGateway(local_flink.gateway_url) as gateway,
        JobManager(local_flink.jobmanager_url) as jobs,
        running(gateway, jobs, old, "kafka") as job_id,
    ):
        broker.send(jvm, source, [(None, "ann"), (None, "ben"), (None, "cid")])
        _checkpoint(jobs, job_id, lambda: positions(broker, jvm).get(GROUP) == {f"{source}-0": 3})
        wait_for(lambda: values(broker, jvm, sink) == ["ANN", "BEN", "CID"], "the first rows are committed")
        # Read by the live job and part of its savepoint; neither their position nor their rows are committed.
        broker.send(jvm, source, [(None, "dan"), (None, "eve")])
        wait_for(lambda: len(values(broker, jvm, sink, "read_uncommitted")) == 5, "all rows were read and written")
        before = positions(broker, jvm)

        # Beside it checkpoints come often, and would each commit what is not the rehearsal's to commit.
        often = replace(old, settings={**old.settings, "execution.checkpointing.interval": "200 ms"})
        options = replace(QUICK, timeouts=replace(QUICK.timeouts, settle=3, here=1.0))

        def found_beside(until: Callable[[], bool] | None = None) -> Rehearsal:
            """What is found; each job beside goes on until then, or until it has completed several checkpoints."""
            state = None
            while True:
                try:
                    return rehearse(cluster(gateway, jobs), job_id, often, often, options, print, state)
                except Paused as paused:
                    state, wait = paused.state, paused.wait
                    if wait.proven_since is not None:
                        wait_for(until or partial(_checkpointed, jobs, wait.job_id), "commits, or what would commit")

        found = found_beside()
        assert found.finding is RehearsalFinding.RESTORED, found.lines()
        (claimed,) = found.claimed or ()
        assert claimed.name.startswith("Source: ")
        assert found.unclaimed, "the sink's transactions are in the savepoint, and no stand-in took them"
        assert (found.live, found.left) == ("RUNNING, no restart meanwhile", ())
        assert positions(broker, jvm) == before == {GROUP: {f"{source}-0": 3}}
        assert values(broker, jvm, sink) == ["ANN", "BEN", "CID"]

        # Positions are kept apart twice: by a group of its own, which keeps them apart alone …
        with only("properties.group.id", "properties.client.id.prefix"):
            assert found_beside(lambda: len(positions(broker, jvm)) > 1).finding is RehearsalFinding.RESTORED
        seen = positions(broker, jvm)
        (own,) = seen.keys() - {GROUP}
        assert own.startswith("flinkcompat-rehearsal-")
        assert (seen[GROUP], seen[own]) == ({f"{source}-0": 3}, {f"{source}-0": 5}), "it did commit, to its own group"
        # … and by committing nothing, which does so too.
        with only("properties.commit.offsets.on.checkpoint", "properties.enable.auto.commit"):
            assert found_beside().finding is RehearsalFinding.RESTORED
        assert positions(broker, jvm) == seen

        live = {GROUP: {f"{source}-0": 5}, own: seen[own]}
        _checkpoint(jobs, job_id, lambda: positions(broker, jvm) == live)
        committed = ["ANN", "BEN", "CID", "DAN", "EVE"]
        wait_for(lambda: values(broker, jvm, sink) == committed, "the others are committed")

        # With neither, this test sees the live group moved.
        broker.send(jvm, source, [(None, "fay"), (None, "gus")])
        wait_for(lambda: len(values(broker, jvm, sink, "read_uncommitted")) == 7, "these rows were read and written")
        moved = {f"{source}-0": 7}
        with only():
            assert found_beside(lambda: positions(broker, jvm)[GROUP] == moved).finding is RehearsalFinding.RESTORED
        assert positions(broker, jvm)[GROUP] == moved
        assert values(broker, jvm, sink) == committed


def _checkpointed(jobs: JobManager, job_id: str) -> bool:
    return int(jobs.checkpoints(job_id)["counts"]["completed"]) > 3


@contextmanager
def only(*names: str) -> Iterator[None]:
    """Of the options that keep a second reader apart from the live job, these alone."""
    admitted = second_readers.ADMITTED["kafka"]
    kept = replace(admitted, options={name: admitted.options[name] for name in names})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(second_readers.ADMITTED, "kafka", kept)  # type: ignore[arg-type]
        yield


def _checkpoint(jobs: JobManager, job_id: str, seen: Any) -> None:
    jobs.request_checkpoint(job_id)

    def look() -> bool:
        if not seen():
            jobs.request_checkpoint(job_id)  # what was asked for may have come before the rows
            return False
        return True

    wait_for(look, "a checkpoint has committed the positions")
