"""Reader of an archive without offsets and its topic, if the event time provably separates them.

Only the archive contains records that the topic has deleted. The proof therefore compares the common records, row by
row and with multiplicity:

* Below the boundary, the archive is read. It must contain each record that the job has read and the topic still has, as
  often as the topic does, and no record that the job has yet to read.
* From the boundary on, the topic is read. Every archived row there must be in the topic, so that none was deleted.
* A deleted record is noticed only if the archive contains it. An archive written in topic order does, provided that it
  contains a later record of the partition. The records that the topic still has show this order: the archive contains
  the first ones of each partition, some of them below the boundary and some above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.files import FileSource
from airflow_flinkcompat.backfill.connectors.files_spark import FileReader
from airflow_flinkcompat.backfill.connectors.kafka import KafkaSource, Position
from airflow_flinkcompat.backfill.connectors.kafka_spark import offsets
from airflow_flinkcompat.backfill.connectors.registry import reader as reader_of
from airflow_flinkcompat.backfill.protocols import BackfillSource, TimeBounded, TimeSpan
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.spark import pin
from airflow_flinkcompat.backfill.spark_sql.windows import micros_of
from airflow_flinkcompat.history.archived_topic_spark import between, by_partition, extent
from airflow_flinkcompat.history.time_boundary import BoundaryArchive
from airflow_flinkcompat.plan.types import APPROXIMATE
from airflow_flinkcompat.savepoint.source_positions import FilesRead

TIME, PARTITION, OFFSET = "m_time", "m_partition", "m_offset"
_FACTS = {
    "untimed": f"min(IF(read AND {TIME} IS NULL, {OFFSET}, NULL))",
    "missing": f"min(IF(below AND read AND archived < job, {OFFSET}, NULL))",
    "again": f"min(IF(below AND NOT read AND archived > job, {OFFSET}, NULL))",
    "twice": f"min(IF(below AND read AND archived > job, {OFFSET}, NULL))",
    "older": "count_if(below AND read)",
    "newer": "count_if(NOT below AND read AND copy <= archived)",
    "ends": f"min(IF(copy > archived, {OFFSET}, NULL))",
    "last": f"max(IF(copy <= archived, {OFFSET}, NULL))",
    "no_time": f"count_if({TIME} IS NULL)",
    "surplus": "count_if(NOT below AND archived > held)",
    "surplus_from": f"min(IF(NOT below AND archived > held, {TIME}, NULL))",
}
"""Facts about the records of a partition; the last three are about archived rows, which have none."""
_OFFSETS = "name the archive's columns of partition and offset, if it has them"
_OF_RECORDS = {
    "untimed": f"has no event time, so that the boundary cannot place it; {_OFFSETS}",
    "missing": (
        "lies below the boundary, but the archive contains fewer copies of it than the topic: it ends before the "
        "boundary, or has lost rows. Name an earlier boundary, or an archive that contains it"
    ),
    "again": (
        "lies below the boundary and is in the archive, but the job has not read it yet: it would count twice. "
        "Name an earlier boundary"
    ),
    "twice": (
        "lies below the boundary, but the archive contains more copies of it than the topic: it has duplicate rows, "
        f"or the topic has deleted an equal record, which cannot be distinguished; {_OFFSETS}"
    ),
}
"""Faults of the first such record of a partition, by their names in ``_FACTS``."""


@dataclass(frozen=True)
class Parted:
    """Compared records.

    Attributes:
        topic: Records of the topic; ``read`` is true for those that the job has read.
        archive: Rows of the archive, possibly without those older than the whole topic.
        lost: First remaining offset of each partition that has lost records.
    """

    topic: DataFrame
    archive: DataFrame
    lost: Mapping[int, int]


def problems(source: BoundaryArchive, parted: Parted) -> Sequence[str]:
    """Reasons why the boundary does not provably separate the records."""
    return list(_problems(source, parted.lost, {row[PARTITION]: row for row in _facts(source, parted)}))


def _facts(source: BoundaryArchive, parted: Parted) -> Sequence[Row]:
    """The facts of ``_FACTS`` for each partition, and for the archive's rows under None."""
    keys = [
        # -0.0 is not 0.0, and NaN is NaN.
        f"CAST(f{i} AS STRING) AS k{i}" if column.type.name in APPROXIMATE else f"f{i} AS k{i}"
        for i, column in enumerate(source.declared.stored)
    ]
    archive = parted.archive.withColumn("read", F.lit(False))
    both = archive.union(parted.topic.select(archive.columns)).selectExpr(
        *keys, TIME, f"{TIME} < {source.boundary} AS below", PARTITION, OFFSET, "read"
    )
    alike = f"PARTITION BY {', '.join(f'k{i}' for i, _ in enumerate(keys))} ORDER BY {PARTITION}, {OFFSET}"
    every = f"OVER ({alike} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    counted = both.selectExpr(
        *(TIME, "below", PARTITION, OFFSET, "read"),
        f"count_if({PARTITION} IS NULL) {every} AS archived",
        f"count_if({PARTITION} IS NOT NULL) {every} AS held",
        f"count_if(read) {every} AS job",
        # The archive's own rows come first, as they have no partition.
        f"row_number() OVER ({alike}) - count_if({PARTITION} IS NULL) {every} AS copy",
    )
    return counted.groupBy(PARTITION).agg(*(F.expr(sql).alias(name) for name, sql in _FACTS.items())).collect()


def _problems(source: BoundaryArchive, lost: Mapping[int, int], found: Mapping[int | None, Row]) -> Iterator[str]:
    archive, partitions = found.get(None), sorted(number for number in found if number is not None)
    if archive is not None and archive["no_time"]:
        yield (
            f"the archive has {archive['no_time']} rows without an event time, which the boundary cannot place; "
            f"{_OFFSETS}"
        )
    for number in partitions:
        for name, says in _OF_RECORDS.items():
            if (offset := found[number][name]) is not None:
                yield f"the record at offset {offset} of partition {number} {says}"
    if archive is not None and archive["surplus"]:
        yield (
            f"the archive has {archive['surplus']} rows from the boundary on that the topic lacks, the first at "
            f"{source.time_text(archive['surplus_from'])}: the topic has deleted them, or the archive has duplicate "
            f"rows. Name a later boundary, or {_OFFSETS}"
        )
    for number, first in sorted(lost.items()):
        row = found.get(number)
        begins = f"partition {number} now begins at offset {first}, and"
        if row is None or not row["older"]:
            yield (
                f"{begins} no record that the job has read and the topic still contains lies below the boundary, "
                f"so that deleted records may lie above it. Name a later boundary, or {_OFFSETS}"
            )
        elif not row["newer"]:
            yield (
                f"{begins} the archive contains no record from the boundary on that the job has read, so that it "
                "may lack deleted ones. Name an earlier boundary, or wait until the archive contains more"
            )
        elif row["ends"] is not None and row["last"] > row["ends"]:
            yield (
                f"{begins} the archive has its record at offset {row['last']}, but not the one at offset "
                f"{row['ends']}: it is truncated, or not written in topic order, and may lack deleted records. "
                f"Wait until it contains both, or {_OFFSETS}"
            )


@dataclass(frozen=True)
class _Joined:
    """Sources: the archive below the boundary, or None if the topic has all records, and the topic."""

    archive: BackfillSource | None
    topic: KafkaSource


class BoundaryArchiveReader:
    """Reader of records below an end offset in each partition, if the boundary provably separates them."""

    def __init__(self, session: SparkSession, source: BoundaryArchive) -> None:
        self._session, self._source = session, source

    def check(self) -> None:
        """Raise :class:`BackfillError` if the boundary does not provably separate them."""
        reader_of(self._session, self._source.archive).check()
        self._joined()

    def rows(self) -> DataFrame:
        """The decoded rows of archive and topic; after prepared rows, only those of the topic."""
        joined, source = self._joined(), self._source
        names = [f"f{i}" for i, _ in enumerate(source.declared.stored)]
        recent = self._timed(joined.topic)
        if joined.archive is None:
            return recent.select(*names)
        older = self._timed(_narrowed(source, joined.archive, source.span)).where(F.col(TIME) < source.boundary)
        return older.select(*names).union(recent.where(F.col(TIME) >= source.boundary).select(*names))

    def newest(self) -> KafkaSource:
        """The records in the topic, which include the latest event time of each partition."""
        return self._joined().topic

    def _joined(self) -> _Joined:
        return pin(self._session, replace(self._source, span=None), self._proven)

    def _proven(self) -> _Joined:
        session, source = self._session, self._source
        held, begin, end = extent(session, source.topic)
        start = {number: max(min(held[number], end[number]), begin[number]) for number in held}
        lost = {number: at for number, at in held.items() if at > begin[number]}
        if not lost:
            return _Joined(None, between(source.topic, start, end))
        if source.topic.start.mode == "after":
            missing = {number: at for number, at in lost.items() if end[number] > begin[number]}
            if not missing:
                return _Joined(None, between(source.topic, start, end))
            number, at = min(missing.items())
            raise BackfillError(
                f"{source.topic.place}: partition {number} now begins at offset {at}, after the prepared rows: "
                "run without the prepared history"
            )
        # The archive is listed before the end of the topic is read, so that the topic has had all its rows.
        archive = self._unchanging(source.archive)
        latest = {number: at for (_, number), at in offsets(session, source.topic.topics, Position("latest")).items()}
        if latest.keys() != end.keys():
            raise BackfillError(
                f"table {source.table}: {source.topic.place} got new partitions while it was read: run again"
            )
        last = {number: max(latest[number], at) for number, at in end.items()}
        topic = self._timed(between(source.topic, held, last)).withColumn("read", F.col(OFFSET) < by_partition(end))
        (first,) = topic.agg(F.min(TIME)).collect()[0]
        # Equal rows have equal event times.
        oldest = source.boundary if first is None else min(first, source.boundary)
        rows = self._timed(_narrowed(source, archive, None, oldest)).where(f"{TIME} IS NULL OR {TIME} >= {oldest}")
        if found := problems(source, Parted(topic, rows, lost)):
            raise BackfillError(
                f"table {source.table}: cannot prove that no row is missing between {source.archive.place} and "
                f"{source.topic.place} at the boundary {source.time_text(source.boundary)}: {found[0]}"
            )
        return _Joined(archive, between(source.topic, start, end))

    def _unchanging(self, archive: BackfillSource) -> BackfillSource:
        """The current archive; for a lake, its snapshot at the start of the run."""
        reader_of(self._session, archive).check()
        if not isinstance(archive, FileSource):
            return archive
        files = frozenset(path for path, _ in FileReader(self._session, archive).files())
        return replace(archive, read=FilesRead(files, (), ()))

    def _timed(self, side: BackfillSource) -> DataFrame:
        """Decoded rows of one side with their event time; those of the topic also with partition and offset."""
        source = self._source
        columns = source.declared.stored
        decoded = [side.decode(column, f"f{i}", source.declared) for i, column in enumerate(columns)]
        place = ("m_partition", "m_offset") if isinstance(side, KafkaSource) else ("CAST(NULL AS INT)", "NULL")
        rows = reader_of(self._session, side).rows()
        rows = rows.selectExpr(
            *(f"{value} AS c{i}" for i, value in enumerate(decoded)),
            f"{place[0]} AS {PARTITION}",
            f"CAST({place[1]} AS BIGINT) AS {OFFSET}",
        )
        names = (f"c{i} AS f{i}" for i, _ in enumerate(columns))
        return rows.selectExpr(*names, f"{micros_of(source.time)} AS {TIME}", PARTITION, OFFSET)


reader = BoundaryArchiveReader


def _narrowed(
    source: BoundaryArchive, archive: BackfillSource, span: TimeSpan | None, oldest: int | None = None
) -> BackfillSource:
    """The archive, restricted to requested times if the event time is one of its columns."""
    if source.field is None or not isinstance(archive, TimeBounded):
        return archive
    if oldest is not None:
        return archive.within(TimeSpan(source.field, oldest, None))
    if span is None or span.field != source.field:
        return archive.within(TimeSpan(source.field, None, source.boundary))
    last = source.boundary if span.last is None else min(span.last, source.boundary)
    return archive.within(TimeSpan(source.field, span.first, last))
