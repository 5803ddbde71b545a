"""Reader of a topic and an archive without offsets, if an event time provably separates them.

Records that the topic has deleted are only in the archive. To prove that no record is missing, the common records of
archive and topic are compared, including duplicates:

* Before the boundary, the archive is read. The archive must contain all records that the job has read and the topic
  still contains, with the same number of copies. The archive must contain no record that the job has not read yet.
* From the boundary on, the topic is read. The topic must contain every archived row from the boundary on. If the
  topic contains these rows, it has not deleted any row at or after the boundary.
* A deleted record is detected only if the archive contains it. If an archive is written in topic order, it contains a
  deleted record whenever it contains a later record of the same partition. The topic's remaining records show whether
  the archive has this order. To show the order, the archive must contain the first remaining records of each
  partition, some from before the boundary and some from after the boundary.
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
"""Facts about the records of a partition.

The facts ``no_time``, ``surplus`` and ``surplus_from`` are about archived rows.
"""
_OFFSETS = "specify the archive's columns of partition and offset, if it has them"
_OF_RECORDS = {
    "untimed": f"has no event time, so the boundary cannot assign it; {_OFFSETS}",
    "missing": (
        "is before the boundary, but the archive contains fewer copies of it than the topic: the archive ends "
        "before the boundary, or has lost rows. Specify an earlier boundary, or an archive that contains the "
        "record"
    ),
    "again": (
        "is before the boundary and is in the archive, but the job has not read it yet: the record would count "
        "twice. Specify an earlier boundary"
    ),
    "twice": (
        "is before the boundary, but the archive contains more copies of it than the topic. The archive has "
        f"duplicate rows, or the topic has deleted an equal record; {_OFFSETS}"
    ),
}
"""Descriptions of faults in ``_FACTS``. Each of these facts is the offset of the first faulty record."""


@dataclass(frozen=True)
class Parted:
    """Records to compare.

    Attributes:
        topic: Records of the topic. The column ``read`` is true for records that the job has read.
        archive: Rows of the archive. Rows that are older than the whole topic may be omitted.
        lost: First remaining offset of each partition that has deleted records.
    """

    topic: DataFrame
    archive: DataFrame
    lost: Mapping[int, int]


def problems(source: BoundaryArchive, parted: Parted) -> Sequence[str]:
    """Explain why the boundary does not provably separate the records; empty if it does."""
    return list(_problems(source, parted.lost, {row[PARTITION]: row for row in _facts(source, parted)}))


def _facts(source: BoundaryArchive, parted: Parted) -> Sequence[Row]:
    """Compute ``_FACTS`` for each partition, and for the archive's rows under the key None."""
    keys = [
        # As strings, -0.0 and 0.0 differ, and NaN equals NaN.
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
        # The archive's rows come first, because their partition is NULL.
        f"row_number() OVER ({alike}) - count_if({PARTITION} IS NULL) {every} AS copy",
    )
    return counted.groupBy(PARTITION).agg(*(F.expr(sql).alias(name) for name, sql in _FACTS.items())).collect()


def _problems(source: BoundaryArchive, lost: Mapping[int, int], found: Mapping[int | None, Row]) -> Iterator[str]:
    archive, partitions = found.get(None), sorted(number for number in found if number is not None)
    if archive is not None and archive["no_time"]:
        yield (
            f"the archive has {archive['no_time']} rows without an event time, which the boundary cannot assign; "
            f"{_OFFSETS}"
        )
    for number in partitions:
        for name, says in _OF_RECORDS.items():
            if (offset := found[number][name]) is not None:
                yield f"the record at offset {offset} of partition {number} {says}"
    if archive is not None and archive["surplus"]:
        yield (
            f"the archive has {archive['surplus']} rows at or after the boundary that the topic lacks, the first "
            f"at {source.time_text(archive['surplus_from'])}. The topic has deleted them, or the archive has "
            f"duplicate rows. Specify a later boundary, or {_OFFSETS}"
        )
    for number, first in sorted(lost.items()):
        row = found.get(number)
        begins = f"partition {number} now begins at offset {first}, and"
        if row is None or not row["older"]:
            yield (
                f"{begins} no record that the job has read and the topic still contains is before the boundary, "
                f"so deleted records may be at or after the boundary. Specify a later boundary, or {_OFFSETS}"
            )
        elif not row["newer"]:
            yield (
                f"{begins} the archive contains no record at or after the boundary that the job has read, so the "
                "archive may lack deleted records. Specify an earlier boundary, or wait until the archive "
                "contains more records"
            )
        elif row["ends"] is not None and row["last"] > row["ends"]:
            yield (
                f"{begins} the archive contains the record at offset {row['last']}, but not the record at offset "
                f"{row['ends']}. The archive is truncated or not written in topic order, and may lack deleted "
                f"records. Wait until the archive contains both, or {_OFFSETS}"
            )


@dataclass(frozen=True)
class _Joined:
    """Sources to combine: the archive before the boundary, and the topic.

    ``archive`` is None if the topic contains all records.
    """

    archive: BackfillSource | None
    topic: KafkaSource


class BoundaryArchiveReader:
    """Reader of the records below an end offset, if the boundary provably separates archive and topic."""

    def __init__(self, session: SparkSession, source: BoundaryArchive) -> None:
        self._session, self._source = session, source

    def check(self) -> None:
        """Raise :class:`BackfillError` unless the boundary provably separates archive and topic."""
        reader_of(self._session, self._source.archive).check()
        self._joined()

    def rows(self) -> DataFrame:
        """Decoded rows of the archive and the topic. If older rows are prepared, only the topic is read."""
        joined, source = self._joined(), self._source
        names = [f"f{i}" for i, _ in enumerate(source.declared.stored)]
        recent = self._timed(joined.topic)
        if joined.archive is None:
            return recent.select(*names)
        older = self._timed(_narrowed(source, joined.archive, source.span)).where(F.col(TIME) < source.boundary)
        return older.select(*names).union(recent.where(F.col(TIME) >= source.boundary).select(*names))

    def newest(self) -> KafkaSource:
        """The topic's remaining records, which include the latest event time of each partition."""
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
                f"{source.topic.place}: partition {number} now begins at offset {at}, after the end of the "
                "prepared rows. Run without the prepared history"
            )
        # The archive is listed before the topic's end is read. All archived rows were in the topic by that time.
        archive = self._unchanging(source.archive)
        latest = {number: at for (_, number), at in offsets(session, source.topic.topics, Position("latest")).items()}
        if latest.keys() != end.keys():
            raise BackfillError(
                f"table {source.table}: {source.topic.place} gained partitions during the run: run again"
            )
        last = {number: max(latest[number], at) for number, at in end.items()}
        topic = self._timed(between(source.topic, held, last)).withColumn("read", F.col(OFFSET) < by_partition(end))
        (first,) = topic.agg(F.min(TIME)).collect()[0]
        # The comparison can omit older rows, because equal rows have equal event times.
        oldest = source.boundary if first is None else min(first, source.boundary)
        rows = self._timed(_narrowed(source, archive, None, oldest)).where(f"{TIME} IS NULL OR {TIME} >= {oldest}")
        if found := problems(source, Parted(topic, rows, lost)):
            raise BackfillError(
                f"table {source.table}: it cannot be proved that no row is missing between {source.archive.place} "
                f"and {source.topic.place} at the boundary {source.time_text(source.boundary)}: {found[0]}"
            )
        return _Joined(archive, between(source.topic, start, end))

    def _unchanging(self, archive: BackfillSource) -> BackfillSource:
        """Pin the archive to the files that exist now. Lake tables are already pinned to a snapshot."""
        reader_of(self._session, archive).check()
        if not isinstance(archive, FileSource):
            return archive
        files = frozenset(path for path, _ in FileReader(self._session, archive).files())
        return replace(archive, read=FilesRead(files, (), ()))

    def _timed(self, side: BackfillSource) -> DataFrame:
        """Decode the rows of one side and add their event time.

        Rows of the topic also have a partition and an offset.
        """
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
    """Restrict the archive to a range of event time, if the event time is a stored column."""
    if source.field is None or not isinstance(archive, TimeBounded):
        return archive
    if oldest is not None:
        return archive.within(TimeSpan(source.field, oldest, None))
    if span is None or span.field != source.field:
        return archive.within(TimeSpan(source.field, None, source.boundary))
    last = source.boundary if span.last is None else min(span.last, source.boundary)
    return archive.within(TimeSpan(source.field, span.first, last))
