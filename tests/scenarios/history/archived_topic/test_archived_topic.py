"""Archives beside a topic whose oldest records are gone, on a real broker: every row once, or the reason why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillError
from airflow_flinkcompat.backfill.connectors.kafka import KafkaSource, Position
from airflow_flinkcompat.backfill.connectors.kafka_spark import KafkaReader
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.history.archived_topic import OffsetArchive
from airflow_flinkcompat.history.archived_topic_spark import OffsetArchiveReader
from airflow_flinkcompat.history.sources import HistoryLocations, check_source
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.plan.nodes import Table
from dev.services.kafka import Broker, kafka_broker
from tests.support.backfill.topics import topic_table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


ROWS = 12
"""In each of two partitions; the topic still holds those from offset 5 and 3 on, and 10 and 12 are read."""
GONE, READ = {0: 5, 1: 3}, ((0, 10), (1, 12))
ALL = sorted((partition, offset, f"{partition}-{offset}") for partition, end in READ for offset in range(end))
Archive = Callable[["DataFrame"], "DataFrame"]
Case = tuple[Table, Path]


def table_of(topic: str, servers: str, **options: str) -> Table:
    given = {"format": "json", "scan__startup__mode": "earliest-offset", **options}
    script = topic_table("t", "a STRING, part INT METADATA FROM 'partition' VIRTUAL", topic, servers, **given)
    sink = "CREATE TABLE s (a STRING) WITH ('connector' = 'print')"
    side = Side(f"{script}; {sink}; INSERT INTO s SELECT a FROM t;", engine="flink")
    return next(each for each in side.program.tables if each.path[2] == "t")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture(scope="module")
def topic(spark: SparkSession, broker: Broker) -> Table:
    """Of which the oldest records are gone."""
    name = broker.topic(spark._jvm, 2)
    for partition, _ in READ:
        records = [(None, f'{{"a": "{partition}-{offset}"}}') for offset in range(ROWS)]
        broker.send(spark._jvm, name, records, partition=partition)
    broker.delete_below(spark._jvm, name, GONE)
    return table_of(name, broker.servers)


def test_a_compacted_topic_has_lost_rows(spark: SparkSession, broker: Broker) -> None:
    said: list[str] = []
    for cleanup in ("delete", "compact", "compact,delete"):
        source = KafkaSource.of(table_of(broker.topic(spark._jvm, 2, cleanup=cleanup), broker.servers))
        if cleanup == "delete":
            check_source(spark, source, said.append)
        else:
            with pytest.raises(BackfillError, match=r"is compacted .*, so some records were removed"):
                check_source(spark, source, said.append)
    assert said == []


@pytest.mark.nightly
def test_what_stands_in_front_of_the_start_of_a_job_is_not_missed(spark: SparkSession, topic: Table) -> None:
    """By a moment nothing tells it: a record that is gone may have been as late as one that is there."""
    read = replace(KafkaSource.of(topic), end=Position("read", offsets=READ))
    behind = Position("specific", offsets=((0, 6), (1, 3)))
    assert KafkaReader(spark, replace(read, start=behind)).rows().count() == 13
    late = Position("timestamp", millis=10**12 + 7)
    for start in (late, Position("specific", offsets=((0, 6), (1, 2))), Position("earliest")):
        with pytest.raises(BackfillError, match="but the job had also read earlier records"):
            KafkaReader(spark, replace(read, start=start)).check()


def archived(spark: SparkSession, topic: Table, folder: Path, of: Archive) -> OffsetArchive:
    rows = [(a, partition, offset) for partition, offset, a in ALL]
    whole = spark.createDataFrame(rows, "a STRING, kafka_partition INT, kafka_offset BIGINT")
    of(whole).write.parquet(str(folder / "lake"))
    place = f"parquet:{(folder / 'lake').as_uri()}#kafka_partition,kafka_offset"
    found = HistoryLocations({"t": place}).source(topic)
    assert isinstance(found, OffsetArchive)
    return replace(found, topic=replace(found.topic, end=Position("read", offsets=READ)))


WHOLE: list[Archive] = [
    lambda rows: rows.where("kafka_offset < IF(kafka_partition = 0, 5, 3)"),
    lambda rows: rows.union(rows.where("kafka_offset < 4")),
    lambda rows: rows,
    lambda rows: rows.where("kafka_offset < 6"),
    lambda rows: rows.where("kafka_offset <> 7"),
]
"""What is gone from the topic alone, rows twice, and more than is needed, without one that the topic still holds."""


@pytest.mark.slow
@pytest.mark.parametrize("of", mostly_nightly(WHOLE, 0))
def test_every_record_is_read_once(of: Archive, spark: SparkSession, topic: Table, tmp_path: Path) -> None:
    reader = OffsetArchiveReader(spark, archived(spark, topic, tmp_path, of))
    reader.check()
    rows = reader.rows().selectExpr("m_partition", "m_offset", "f0").collect()
    assert sorted(map(tuple, rows)) == ALL
    parts = {row["part"]["m_partition"] for row in reader.ordered_rows().select("part").collect()}
    assert parts == {0, 1}


@pytest.mark.nightly
@pytest.mark.slow
def test_what_a_job_had_never_read_is_left_out(spark: SparkSession, topic: Table, tmp_path: Path) -> None:
    """It began at offset 2 of one partition, and the archive has what stood before."""
    source = archived(spark, topic, tmp_path, lambda rows: rows)
    begun = replace(source.topic, start=Position("specific", offsets=((0, 2), (1, 0))))
    rows = OffsetArchiveReader(spark, replace(source, topic=begun)).rows().selectExpr("m_partition", "m_offset", "f0")
    assert sorted(map(tuple, rows.collect())) == [row for row in ALL if row[0] == 1 or row[1] >= 2]


LACKING: list[tuple[Archive, int]] = [
    (lambda rows: rows.where("kafka_offset <> 2").union(rows.where("kafka_offset = 3")), 2),
    (lambda rows: rows.where("kafka_offset <> 2"), 2),
    (lambda rows: rows.where("kafka_offset > 0"), 0),
    (lambda rows: rows.where("kafka_offset < 4"), 4),
    (lambda rows: rows.where("kafka_partition = 1"), 0),
]
"""One record in the midst, in whose place another one is there twice, too; the first; those in front of the topic; all
of a partition.
"""


@pytest.mark.slow
@pytest.mark.parametrize(("of", "offset"), mostly_nightly(LACKING, 0))
def test_a_record_that_is_in_neither_is_named(
    of: Archive, offset: int, spark: SparkSession, topic: Table, tmp_path: Path
) -> None:
    reader = OffsetArchiveReader(spark, archived(spark, topic, tmp_path, of))
    with pytest.raises(BackfillError, match=rf"has no row for offset {offset} of partition 0, and kafka://"):
        reader.check()


@pytest.mark.parametrize("columns", ["kafka_partition", "a,b,c", "yesterday", ""])
def test_what_names_no_columns_is_bad_input(columns: str) -> None:
    with pytest.raises(
        InputError, match=r"history of t: .* is not a pair of columns. .* as in URI#kafka_partition,kafka_offset, or"
    ):
        HistoryLocations({"t": f"parquet:/lake#{columns}"}).source(table_of("orders", "broker:9092"))


def test_a_job_that_begins_at_a_moment_tells_no_offsets() -> None:
    begun = {"scan__startup__mode": "timestamp", "scan__startup__timestamp_millis": "1"}
    with pytest.raises(BackfillError, match="starts at a timestamp"):
        HistoryLocations({"t": "parquet:/lake#p,o"}).source(table_of("orders", "broker:9092", **begun))


def test_offsets_are_of_topics() -> None:
    sink = "CREATE TABLE s (a STRING) WITH ('connector' = 'print')"
    files = "CREATE TABLE t (a STRING) WITH ('connector' = 'filesystem', 'path' = '/in', 'format' = 'json')"
    side = Side(f"{files}; {sink}; INSERT INTO s SELECT a FROM t;", engine="flink")
    table = next(each for each in side.program.tables if each.path[2] == "t")
    with pytest.raises(BackfillError, match="table t is not read from a Kafka topic"):
        HistoryLocations({"t": "parquet:/lake#p,o"}).source(table)
