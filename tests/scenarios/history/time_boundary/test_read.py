"""An archive without offsets beside a topic whose oldest records are gone, on a real broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillError
from airflow_flinkcompat.backfill.connectors.kafka import Position
from airflow_flinkcompat.backfill.connectors.registry import TableLocations
from airflow_flinkcompat.backfill.protocols import BackfillSource, TimeSpan
from airflow_flinkcompat.backfill.spark import pinned_snapshots
from airflow_flinkcompat.backfill.spark_sql.windows import to_micros
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.history.derived_rows import NotComputable
from airflow_flinkcompat.history.sources import HistoryLocations
from airflow_flinkcompat.history.table_rows import TableRows
from airflow_flinkcompat.history.time_boundary import BoundaryArchive
from airflow_flinkcompat.history.time_boundary_spark import BoundaryArchiveReader
from airflow_flinkcompat.history.watermarks import least_watermark
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import operators
from dev.services.kafka import Broker, kafka_broker
from tests.support.backfill.topics import topic_table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow
MIDNIGHT = datetime(2026, 1, 31)
ROWS = 12
"""In each of two partitions, a minute apart."""
GONE, READ = {0: 5, 1: 3}, ((0, 10), (1, 12))
BOUNDARY = "2026-01-31T00:07:00"
Row = tuple[str, datetime]


def row(partition: int, offset: int) -> Row:
    """Of partition 1 in pairs that changed places."""
    return f"{partition}-{offset}", MIDNIGHT + timedelta(minutes=offset ^ partition)


READ_ROWS = sorted(row(partition, offset) for partition, end in READ for offset in range(end))


def side_of(topic: str, servers: str, watermark: str) -> Side:
    columns = f"a STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS {watermark}"
    script = topic_table("t", columns, topic, servers, format="json", scan__startup__mode="earliest-offset")
    sink = "CREATE TABLE s (a STRING, n BIGINT) WITH ('connector' = 'print')"
    return Side(f"{script}; {sink}; INSERT INTO s SELECT a, COUNT(*) FROM t GROUP BY a;", engine="flink")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


def filled(spark: SparkSession, broker: Broker) -> str:
    name = broker.topic(spark._jvm, 2)
    for partition, _ in READ:
        rows = [row(partition, offset) for offset in range(ROWS)]
        records = [(None, f'{{"a": "{a}", "ts": "{ts.isoformat(" ")}"}}') for a, ts in rows]
        broker.send(spark._jvm, name, records, partition=partition)
    return name


@pytest.fixture(scope="module")
def topic(spark: SparkSession, broker: Broker) -> str:
    """Of which the oldest records are gone."""
    name = filled(spark, broker)
    broker.delete_below(spark._jvm, name, GONE)
    return name


@dataclass(frozen=True)
class SomeRead(HistoryLocations):
    """Of which a job has read some."""

    def source(self, table: Table) -> BackfillSource:
        found = super().source(table)
        assert isinstance(found, BoundaryArchive)
        return replace(found, topic=replace(found.topic, end=Position("read", offsets=READ)))


def lake(spark: SparkSession, folder: Path, rows: Sequence[Row], format: str = "parquet") -> SomeRead:
    found = spark.createDataFrame(list(rows), "a STRING, ts TIMESTAMP_NTZ").coalesce(1)
    found.write.format(format).mode("append").save(str(folder))
    return SomeRead({"t": f"{format}:{folder.as_uri()}#{BOUNDARY}"})


def joined(side: Side, locations: TableLocations) -> BoundaryArchive:
    found = locations.source(next(each for each in side.program.tables if each.path[2] == "t"))
    assert isinstance(found, BoundaryArchive)
    return found


def read(spark: SparkSession, source: BoundaryArchive) -> list[Row]:
    return sorted(
        (found[0], found[1]) for found in BoundaryArchiveReader(spark, source).rows().select("f0", "f1").collect()
    )


def archived(until: int = 9) -> list[Row]:
    """The rows of an archive that has not come to the end."""
    return [row(partition, offset) for partition in range(2) for offset in range(until)]


@pytest.mark.parametrize("format", mostly_nightly(["parquet", "delta"], 0))
def test_every_record_is_read_once(
    format: str, spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    old = ("older", MIDNIGHT - timedelta(days=9))
    source = joined(side_of(topic, broker.servers, "ts"), lake(spark, tmp_path / "lake", [*archived(), old], format))
    BoundaryArchiveReader(spark, source).check()
    assert read(spark, source) == sorted([*READ_ROWS, old])
    late, early = (to_micros(MIDNIGHT + timedelta(minutes=minute)) for minute in (5, 8))
    some = read(spark, source.within(TimeSpan(1, late, early)))
    assert set(some) <= set(READ_ROWS)
    assert len(some) == len(set(some))
    assert {found for found in READ_ROWS if late <= to_micros(found[1]) < early} <= set(some)
    assert old not in some


@pytest.mark.nightly
def test_a_boundary_that_parts_nothing_is_refused(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    lacking = lake(spark, tmp_path / "lake", [found for found in archived() if found[0] != "0-6"])
    reader = BoundaryArchiveReader(spark, joined(side_of(topic, broker.servers, "ts"), lacking))
    says = (
        rf"table t: it cannot be proved that no row is missing between file:///.*/lake and kafka://.*/{topic} "
        rf"at the boundary {BOUNDARY}: the record at offset 6 of partition 0 is before the boundary, "
        "but the archive contains fewer"
    )
    with pytest.raises(BackfillError, match=says):
        reader.check()
    with pytest.raises(BackfillError, match=says):
        reader.rows()


def test_a_topic_that_has_lost_nothing_is_read_alone(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    whole = side_of(filled(spark, broker), broker.servers, "ts")
    assert read(spark, joined(whole, lake(spark, tmp_path / "lake", [("other", MIDNIGHT)]))) == READ_ROWS


@pytest.mark.nightly
def test_the_files_of_an_archive_stay_those_of_the_proof(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    locations = lake(spark, folder, archived())
    (first,) = folder.glob("*.parquet")
    source = joined(side_of(topic, broker.servers, "ts"), locations)
    with pinned_snapshots(spark):
        BoundaryArchiveReader(spark, source).check()
        lake(spark, folder, [("later", MIDNIGHT)])
        assert read(spark, source) == READ_ROWS
        first.unlink()
        with pytest.raises(BackfillError, match="no longer contains"):
            read(spark, source)


@pytest.mark.nightly
def test_watermarks_of_partitions_are_those_of_what_the_topic_holds(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    locations = lake(spark, tmp_path / "lake", archived())

    def rows(watermark: str) -> TableRows:
        side = side_of(topic, broker.servers, watermark)
        (operator,) = operators(side.outputs[0][0])
        return TableRows(side.program.pipelines[0], operator.segments[0], locations)

    # The last row of partition 0 that was read is of minute 9.
    last = to_micros(MIDNIGHT + timedelta(minutes=9)) // 1000
    assert least_watermark(spark, rows("ts - INTERVAL '5' SECOND")) == last - 5000
    with pytest.raises(NotComputable, match="is not the event time minus a constant"):
        least_watermark(spark, rows("ts - INTERVAL '1' MONTH"))
