"""Each part of the proof that a boundary is clean: rows in which it alone says why nothing is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill.spark_sql.windows import to_micros
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.history.sources import HistoryLocations
from airflow_flinkcompat.history.time_boundary import BoundaryArchive
from airflow_flinkcompat.history.time_boundary_spark import Parted, problems
from tests.support.backfill.topics import topic_table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from syrupy.assertion import SnapshotAssertion

pytestmark = pytest.mark.slow
MIDNIGHT = datetime(2026, 1, 31)
BOUNDARY = 10
"""Minutes past midnight."""
COLUMNS = "f0, f1, f2, m_time, m_partition, m_offset"


@dataclass(frozen=True)
class Row:
    """A row of the table: of the topic with its place, of the archive without."""

    name: str
    minute: int | None
    value: float | None = 1.0


Records = Mapping[tuple[int, int], Row]


@dataclass(frozen=True)
class Rows:
    """What the topic holds still, how far the job has read, what is left of partitions, and the archive."""

    topic: Records
    archive: Sequence[Row]
    read: Mapping[int, int]
    lost: Mapping[int, int]


def record(partition: int, offset: int) -> Row:
    """One whose times rise with the offsets; those of partition 0 come to the boundary with offset 8."""
    return Row(f"{partition}-{offset}", offset + 2 + partition)


def clean() -> Rows:
    """Partitions 0 and 1 have lost records, 2 has none; the archive has some beyond the boundary, not the last."""
    every = [(partition, offset) for partition in range(3) for offset in range(12)]
    lost = {0: 5, 1: 3}
    topic = {place: record(*place) for place in every if place[1] >= lost.get(place[0], 0)}
    return Rows(topic, [record(*place) for place in every if place[1] < 10], dict.fromkeys(range(3), 11), lost)


def without(rows: Rows, *names: str) -> Rows:
    """The archive lacks some."""
    return replace(rows, archive=[row for row in rows.archive if row.name not in names])


def with_rows(rows: Rows, *more: Row) -> Rows:
    """The archive has some more."""
    return replace(rows, archive=[*rows.archive, *more])


def with_record(rows: Rows, partition: int, offset: int, row: Row) -> Rows:
    """The topic has another one there."""
    return replace(rows, topic={**rows.topic, (partition, offset): row})


def begins_at(rows: Rows, partition: int, first: int) -> Rows:
    """The topic has deleted more."""
    kept = {place: row for place, row in rows.topic.items() if place[0] != partition or place[1] >= first}
    return replace(rows, topic=kept, lost={**rows.lost, partition: first})


LATE = Row("late", 4)
SHOWN: dict[str, Callable[[Rows], Rows]] = {
    "as it should be": lambda rows: rows,
    "rows that the archive alone has": lambda rows: with_rows(rows, Row("old", 1), Row("older", -9), Row("older", -9)),
    "a late record to come that the archive does not have": lambda rows: with_record(rows, 0, 11, LATE),
    "equal records, all in the archive": lambda rows: with_record(
        with_rows(without(rows, "2-5"), record(2, 4)), 2, 5, record(2, 4)
    ),
    "equal records beyond, of which the archive has the first": lambda rows: with_record(rows, 0, 11, record(0, 9)),
    "not a number": lambda rows: with_record(
        with_rows(without(rows, "2-5"), Row("2-5", 9, float("nan"))), 2, 5, Row("2-5", 9, float("nan"))
    ),
    "NULL beside the time": lambda rows: with_record(
        with_rows(without(rows, "2-5"), Row("2-5", 9, None)), 2, 5, Row("2-5", 9, None)
    ),
    "a record to come without a time": lambda rows: with_record(rows, 0, 11, Row("0-11", None)),
}
NOT_SHOWN: dict[str, Callable[[Rows], Rows]] = {
    "the archive lacks a record below": lambda rows: without(rows, "2-5"),
    "the archive has a record to come": lambda rows: with_rows(with_record(rows, 2, 11, LATE), LATE),
    "a deleted record lay beyond": lambda rows: with_rows(rows, Row("0-1", 15)),
    "the archive ends at the boundary": lambda rows: without(rows, "0-8", "0-9"),
    "the archive has one of two equal records": lambda rows: with_record(without(rows, "2-5"), 2, 5, record(2, 4)),
    "another zero": lambda rows: with_record(
        with_rows(without(rows, "2-5"), Row("2-5", 9, 0.0)), 2, 5, Row("2-5", 9, -0.0)
    ),
    "the archive has a record twice": lambda rows: with_rows(rows, record(2, 5)),
    "the archive has a record beyond twice": lambda rows: with_rows(rows, record(0, 9)),
    "a record without a time": lambda rows: with_record(without(rows, "2-5"), 2, 5, Row("2-5", None)),
    "the archive has rows without a time": lambda rows: with_rows(rows, Row("old", None)),
    "the topic begins at the boundary": lambda rows: begins_at(rows, 0, 8),
    "the topic has deleted all of a partition": lambda rows: without(begins_at(rows, 1, 12), "1-7", "1-8", "1-9"),
    "the archive goes beyond with records to come alone": lambda rows: replace(rows, read={**rows.read, 0: 8}),
    "the archive has a later record without the one before": lambda rows: without(rows, "0-8"),
    "the archive is cut at a time": lambda rows: with_record(
        with_rows(without(rows, "0-9"), Row("0-10", 6)), 0, 10, Row("0-10", 6)
    ),
}


@pytest.fixture(scope="module")
def source() -> BoundaryArchive:
    columns = "a STRING, n DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"
    script = topic_table("t", columns, "orders", "broker:9092", format="json", scan__startup__mode="earliest-offset")
    sink = "CREATE TABLE s (a STRING) WITH ('connector' = 'print')"
    side = Side(f"{script}; {sink}; INSERT INTO s SELECT a FROM t;", engine="flink")
    table = next(each for each in side.program.tables if each.path[2] == "t")
    found = HistoryLocations({"t": "parquet:/lake#2026-01-31T00:10:00"}).source(table)
    assert isinstance(found, BoundaryArchive)
    return found


def _constants(row: Row, partition: int | None, offset: int | None) -> str:
    time = None if row.minute is None else MIDNIGHT + timedelta(minutes=row.minute)
    values = (
        (row.name, "STRING"),
        (row.value, "DOUBLE"),
        (time, "TIMESTAMP_NTZ"),
        (None if time is None else to_micros(time), "BIGINT"),
        (partition, "INT"),
        (offset, "BIGINT"),
    )
    return ", ".join(f"CAST({'NULL' if value is None else repr(str(value))} AS {kind})" for value, kind in values)


def said(spark: SparkSession, source: BoundaryArchive, rows: Rows) -> Sequence[str]:
    def frame(found: Sequence[tuple[Row, int | None, int | None]]) -> DataFrame:
        # Constants, as rows that come through Python take longer than the proof.
        listed = ", ".join(f"({_constants(row, partition, offset)})" for row, partition, offset in found)
        return spark.sql(f"SELECT * FROM VALUES {listed} AS t ({COLUMNS})")

    topic = frame([(row, *place) for place, row in rows.topic.items()])
    ends = " ".join(f"WHEN {partition} THEN {end}" for partition, end in rows.read.items())
    read = topic.selectExpr("*", f"m_offset < CASE m_partition {ends} END AS read")
    return problems(source, Parted(read, frame([(row, None, None) for row in rows.archive]), rows.lost))


@pytest.mark.parametrize("title", mostly_nightly([*SHOWN], 2))
def test_a_clean_boundary_is_shown_to_be_one(title: str, spark: SparkSession, source: BoundaryArchive) -> None:
    assert not said(spark, source, SHOWN[title](clean()))


@pytest.mark.parametrize("title", [*NOT_SHOWN])
def test_one_reason_is_told_where_nothing_is_shown(
    title: str, spark: SparkSession, source: BoundaryArchive, snapshot: SnapshotAssertion
) -> None:
    (problem,) = said(spark, source, NOT_SHOWN[title](clean()))
    assert problem == snapshot


@dataclass(frozen=True)
class Drawn:
    """Rows of which it is known what the job has read."""

    rows: Rows
    records: Records

    @property
    def taken(self) -> Counter[Row]:
        """What is read where the boundary counts as clean."""
        older = Counter(row for row in self.rows.archive if row.minute is not None and row.minute < BOUNDARY)
        newer = (row for place, row in self.read(self.rows.topic) if row.minute is not None and row.minute >= BOUNDARY)
        return older + Counter(newer)

    @property
    def wanted(self) -> Counter[Row]:
        """All records that the job has read."""
        return Counter(row for _, row in self.read(self.records))

    def read(self, records: Records) -> Iterator[tuple[tuple[int, int], Row]]:
        """Those of some records that the job has read."""
        return ((place, row) for place, row in records.items() if place[1] < self.rows.read[place[0]])


def drawn(seed: int) -> Drawn:
    """Records out of order, some late and some equal; an archive that follows them, sometimes with a fault."""
    random = Random(seed)
    records: dict[tuple[int, int], Row] = {}
    follows: list[Row] = []
    lost, read = {}, {}
    spread = random.choice((1, 1, 2, 6))
    for partition in range(2):
        end = random.randint(14, 20)
        ingested = random.randint(12, end)
        lost[partition], read[partition] = random.randint(1, 9), random.randint(11, end)
        for offset in range(end):
            minute = round(offset * 20 / end + random.uniform(-spread, spread))
            row = Row(f"{partition}-{offset}", minute)
            if random.random() < 0.05 and offset:
                row = records[partition, random.randrange(offset)]
            records[partition, offset] = row
            if offset < ingested:
                follows.append(row)
    topic = {place: row for place, row in records.items() if place[1] >= lost[place[0]]}
    held = [row for place, row in topic.items() if row in follows]
    match random.choice(("none", "none", "lacks", "twice")):
        case "lacks":
            follows.remove(random.choice(held))
        case "twice":
            follows.append(random.choice(held))
    return Drawn(Rows(topic, follows, read, lost), records)


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_what_is_shown_to_be_clean_is_what_the_job_has_read(spark: SparkSession, source: BoundaryArchive) -> None:
    """Whatever else is: of a hundred drawn histories those that pass give each record once."""
    passed = 0
    for seed in range(100):
        found = drawn(seed)
        if not said(spark, source, found.rows):
            passed += 1
            assert found.taken == found.wanted, seed
    assert 10 <= passed <= 50
