"""Rows of an archive below an event time and of its topic from there on, each record once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.files.read import FileReader
from airflow_flinkcompat.backfill.connectors.files.spec import FileSource
from airflow_flinkcompat.backfill.connectors.kafka.read import offsets
from airflow_flinkcompat.backfill.connectors.kafka.spec import KafkaSource, Position
from airflow_flinkcompat.backfill.connectors.registry import reader as reader_of
from airflow_flinkcompat.backfill.connectors.snapshot_pinning import pin
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.protocols import BackfillSource, TimeBounded, TimeSpan
from airflow_flinkcompat.backfill.spark_sql.windows import micros_of
from airflow_flinkcompat.bootstrap.archived_topic.read import between, by_partition, extent
from airflow_flinkcompat.bootstrap.time_boundary.proof import OFFSET, PARTITION, TIME, Parted, problems
from airflow_flinkcompat.bootstrap.time_boundary.spec import BoundaryArchive
from airflow_flinkcompat.savepoint.source_positions import FilesRead


@dataclass(frozen=True)
class _Joined:
    """What is read: the archive below the boundary, None where the topic has all records, and the topic."""

    archive: BackfillSource | None
    topic: KafkaSource


class BoundaryArchiveReader:
    """Reads the records below one offset of each partition, once it is proven that the boundary parts them.

    Args:
        session: Of Spark.
        source: Both places.
    """

    def __init__(self, session: SparkSession, source: BoundaryArchive) -> None:
        self._session, self._source = session, source

    def check(self) -> None:
        """Raises :class:`BackfillError` where the boundary is not shown to part them."""
        reader_of(self._session, self._source.archive).check()
        self._joined()

    def rows(self) -> DataFrame:
        """The rows of both, decoded; behind what was prepared those of the topic, whatever their time."""
        joined, source = self._joined(), self._source
        names = [f"f{i}" for i, _ in enumerate(source.declared.stored)]
        recent = self._timed(joined.topic)
        if joined.archive is None:
            return recent.select(*names)
        older = self._timed(_narrowed(source, joined.archive, source.span)).where(F.col(TIME) < source.boundary)
        return older.select(*names).union(recent.where(F.col(TIME) >= source.boundary).select(*names))

    def newest(self) -> KafkaSource:
        """The records that the topic still holds: in each partition they have the greatest event time of all."""
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
        if source.topic.start.mode == "behind":
            missing = {number: at for number, at in lost.items() if end[number] > begin[number]}
            if not missing:
                return _Joined(None, between(source.topic, start, end))
            number, at = min(missing.items())
            raise BackfillError(
                f"{source.topic.place}: partition {number} begins at offset {at} by now, behind what was prepared: "
                "leave what was prepared out"
            )
        # All that the archive holds then was in the topic when the topic's end is asked.
        archive = self._unchanging(source.archive)
        latest = {number: at for (_, number), at in offsets(session, source.topic.topics, Position("latest")).items()}
        if latest.keys() != end.keys():
            raise BackfillError(
                f"table {source.table}: {source.topic.place} got partitions while it is read: repeat it"
            )
        last = {number: max(latest[number], at) for number, at in end.items()}
        topic = self._timed(between(source.topic, held, last)).withColumn("read", F.col(OFFSET) < by_partition(end))
        (first,) = topic.agg(F.min(TIME)).collect()[0]
        # A row is as old as one that is equal to it.
        oldest = source.boundary if first is None else min(first, source.boundary)
        rows = self._timed(_narrowed(source, archive, None, oldest)).where(f"{TIME} IS NULL OR {TIME} >= {oldest}")
        if found := problems(source, Parted(topic, rows, lost)):
            raise BackfillError(
                f"table {source.table}: {source.told(source.boundary)} is not shown to part {source.archive.place} "
                f"from {source.topic.place}: {found[0]}"
            )
        return _Joined(archive, between(source.topic, start, end))

    def _unchanging(self, archive: BackfillSource) -> BackfillSource:
        """The archive as it is now; lakes have snapshots, which the run keeps to since it first looked."""
        reader_of(self._session, archive).check()
        if not isinstance(archive, FileSource):
            return archive
        files = frozenset(path for path, _ in FileReader(self._session, archive).files())
        return replace(archive, read=FilesRead(files, (), ()))

    def _timed(self, side: BackfillSource) -> DataFrame:
        """The rows of one side, decoded, each with its event time; of the topic with partition and offset, too."""
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
    """The archive, which may leave out rows that are not asked for by their time, where that is one of its columns."""
    if source.field is None or not isinstance(archive, TimeBounded):
        return archive
    if oldest is not None:
        return archive.within(TimeSpan(source.field, oldest, None))
    if span is None or span.field != source.field:
        return archive.within(TimeSpan(source.field, None, source.boundary))
    last = source.boundary if span.last is None else min(span.last, source.boundary)
    return archive.within(TimeSpan(source.field, span.first, last))
