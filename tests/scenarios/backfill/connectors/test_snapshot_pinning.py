"""What others write while a run lasts is not read by it: its end is where it was when the run began."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillRequest, plan, run_backfill
from airflow_flinkcompat.backfill.journal import history_of
from airflow_flinkcompat.backfill.spark import pin, pinned_snapshots
from airflow_flinkcompat.model import JobSpec
from tests.scenarios.backfill.connectors.test_lakes import lake
from tests.support.backfill.scripts import BID_COLUMNS, BIDS, FIRST, SECOND, SUM, SUM_COLUMNS, lines, script, table
from tests.support.backfill.topics import topic_table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dev.services.kafka import Broker

SPAN = {"from": "2020-04-15T08:00:00", "to": "2020-04-15T08:20:00"}
MORE = '"2020-04-15 08:10:00","2020-04-15 08:20:00",1.1E+2'


class Session:
    """Something to hold pins."""


def test_a_run_finds_once_and_the_next_one_anew() -> None:
    session, other = Session(), Session()
    found = iter(range(10))

    def ask() -> int:
        return pin(session, "end", lambda: next(found))  # type: ignore[arg-type]

    assert [ask(), ask()] == [0, 1]
    with pinned_snapshots(session):  # type: ignore[arg-type]
        assert [ask(), ask()] == [2, 2]
        assert pin(session, "start", lambda: 9) == 9  # type: ignore[arg-type]
        assert pin(other, "end", lambda: 7) == 7  # type: ignore[arg-type]
    assert [ask(), ask()] == [3, 4]


def follows(spark: SparkSession, text: str, results: Path, write: Callable[[], None]) -> None:
    """A row that comes while a run computes is the next run's; the state of the history tells it from the first."""
    assert spark.getActiveSession() is spark
    said: list[str] = []

    def say(line: str) -> None:
        if line.startswith("chunk 1"):
            write()
        said.append(line)

    request = BackfillRequest.from_dict({"script": text, **SPAN, "sinks": {"results": str(results)}, "chunk": "10min"})
    work = plan(request).work
    before = history_of(spark, work)
    assert len(before) == 1
    run_backfill(request, say)
    assert len([line for line in said if line.startswith("chunk")]) == 2
    assert lines(results) == [FIRST, SECOND]
    assert history_of(spark, work) != before
    assert request.chunk == timedelta(minutes=10)
    run_backfill(request)
    assert lines(results) == sorted([FIRST, MORE])


@pytest.mark.nightly
@pytest.mark.slow
def test_records_that_come_while_a_run_lasts(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(spark._jvm)
    broker.send(spark._jvm, topic, [(None, line) for line in BIDS.splitlines()])
    source = topic_table("bid", BID_COLUMNS, topic, broker.servers, format="csv")
    text = script(source, table("results", SUM_COLUMNS, tmp_path / "none"), f"INSERT INTO results {SUM}")

    def write() -> None:
        broker.send(spark._jvm, topic, [(None, "2020-04-15 08:12:00,100.00,G")])

    follows(spark, text, tmp_path / "results", write)


@pytest.mark.slow
@pytest.mark.parametrize("kind", mostly_nightly(["iceberg", "delta"], 0))
def test_commits_that_come_while_a_run_lasts(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "bid.csv"
    place.write_text(BIDS, encoding="utf-8")
    declared = lake("bid", BID_COLUMNS, kind, tmp_path)
    fill = script(
        table("csv", BID_COLUMNS, place), lake("bid", BID_COLUMNS.split(", WATERMARK")[0], kind, tmp_path),
        "INSERT INTO bid SELECT * FROM csv",
    )  # fmt: skip
    run_backfill(BackfillRequest(JobSpec(fill)))
    text = script(declared, table("results", SUM_COLUMNS, tmp_path / "none"), f"INSERT INTO results {SUM}")

    def write() -> None:
        place.write_text(BIDS + "2020-04-15 08:12:00,100.00,G\n", encoding="utf-8")
        spark_rows = "VALUES (TIMESTAMP_NTZ '2020-04-15 08:12:00', CAST(100 AS DECIMAL(10, 2)), 'G')"
        if kind == "delta":
            rows = spark.sql(f"SELECT col1 AS bidtime, col2 AS price, col3 AS item FROM {spark_rows}")
            rows.write.format("delta").mode("append").save(str(tmp_path / "bid"))
        else:
            (source,) = plan(BackfillRequest(JobSpec(text))).work.sources
            spark.sql(f"INSERT INTO {source.location.identifier} {spark_rows}")  # type: ignore[attr-defined]

    follows(spark, text, tmp_path / "results", write)
