"""Reader of an archive and its topic that returns each record once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.kafka import KafkaSource, Position
from airflow_flinkcompat.backfill.connectors.kafka_spark import KafkaReader, in_order, offsets
from airflow_flinkcompat.backfill.connectors.registry import reader as reader_of
from airflow_flinkcompat.backfill.protocols import BackfillSource, TimeBounded
from airflow_flinkcompat.backfill.result import BackfillError, Untranslatable
from airflow_flinkcompat.backfill.spark import pin
from airflow_flinkcompat.history.archived_topic import OffsetArchive
from airflow_flinkcompat.plan.nodes import Table

_OFFSETS = {"number": "count(1)", "last": "max(m_offset)", "sum": "bit_xor(xxhash64(m_offset))"}
"""Aggregates over offsets that reveal missing and duplicate records."""


@dataclass(frozen=True)
class _Reach:
    """Offset ranges of the partitions.

    ``begin``: Offset of the first row. ``end``: Offset after the last row. ``taken``: First offset that is read from
    the topic; earlier rows are read from the archive. ``twice``: True if the archive contains duplicate records.
    """

    begin: Mapping[int, int]
    taken: Mapping[int, int]
    end: Mapping[int, int]
    twice: bool


class OffsetArchiveReader:
    """Reader of the records below an end offset in each partition, from the archive or the topic."""

    def __init__(self, session: SparkSession, source: OffsetArchive) -> None:
        self._session, self._source = session, source

    def check(self) -> None:
        """Raise :class:`BackfillError` if a record is missing in both the archive and the topic."""
        reader_of(self._session, self._source.archive).check()
        self._reach()

    def rows(self) -> DataFrame:
        """Decoded rows of the archive and the topic, with their partitions and offsets."""
        reach, source = self._reach(), self._source
        recent = reader_of(self._session, between(source.topic, reach.taken, reach.end)).rows()
        names = [f"f{i}" for i, _ in enumerate(source.declared.stored)]
        rows = recent.selectExpr(
            *_decoded(source.topic, source.declared, len(names)), "m_topic", "m_partition", "m_offset"
        )
        if reach.taken == reach.begin:
            return rows
        archive = source.archive
        if source.span is not None and isinstance(archive, TimeBounded):
            archive = archive.within(source.span)
        archived = _below(self._archived(archive, reach.begin), reach.taken)
        if reach.twice:
            archived = archived.dropDuplicates(["m_partition", "m_offset"])
        return archived.select(*names, "m_topic", "m_partition", "m_offset").union(rows)

    def ordered_rows(self) -> DataFrame:
        """Rows in the order of their offsets within each partition."""
        return in_order(self.rows())

    def check_sequence(self) -> None:
        """Refuse several partitions, because the order in which a job read their rows is unknown."""
        KafkaReader(self._session, self._source.topic).check_sequence()

    def reads_topic(self) -> bool:
        """True if the topic supplies at least one record."""
        reach = self._reach()
        return any(reach.taken[number] < end for number, end in reach.end.items())

    def _archived(self, archive: BackfillSource, begin: Mapping[int, int]) -> DataFrame:
        source = self._source
        (topic,) = source.topic.topics.names
        decoded = _decoded(source.archive, source.stored, len(source.stored.stored))
        return (
            reader_of(self._session, archive)
            .rows()
            .selectExpr(*decoded)
            .selectExpr(
                "*",
                f"'{topic}' AS m_topic",
                f"CAST(f{source.partition} AS INT) AS m_partition",
                f"CAST(f{source.offset} AS BIGINT) AS m_offset",
            )
            .where(F.col("m_offset") >= by_partition(begin))
        )

    def _reach(self) -> _Reach:
        return pin(self._session, replace(self._source, span=None), self._measured)

    def _measured(self) -> _Reach:
        session, topic = self._session, self._source.topic
        held, begin, end = extent(session, topic)
        needed = {number: max(min(held[number], end[number]), begin[number]) for number in held}
        if topic.start.mode == "after" and needed == begin:
            return _Reach(begin, begin, end, False)
        archived = self._archived(self._source.archive, begin)
        for rows, twice in ((archived, False), (archived.dropDuplicates(["m_partition", "m_offset"]), True)):
            for bounds in (end, needed):
                if (taken := self._whole(_below(rows, bounds), begin, needed)) is not None:
                    return _Reach(begin, taken, end, twice)
        raise self._missing(archived, begin, needed)

    def _whole(self, rows: DataFrame, begin: Mapping[int, int], needed: Mapping[int, int]) -> dict[int, int] | None:
        """End offset of the rows in each partition; None if required rows are missing."""
        ends = rows.groupBy("m_partition").agg(*(F.expr(sql).alias(name) for name, sql in _OFFSETS.items())).collect()
        found = {row["m_partition"]: row for row in ends}
        taken = {number: found[number]["last"] + 1 if number in found else begin[number] for number in begin}
        if any(taken[number] < needed[number] for number in needed):
            return None
        if any(row["number"] != taken[number] - begin[number] for number, row in found.items()):
            return None
        wanted = [
            self._session.range(begin[number], taken[number]).selectExpr(
                f"{number} AS m_partition", "bit_xor(xxhash64(id)) AS sum"
            )
            for number in found
        ]
        sums = reduce(DataFrame.union, wanted).collect() if wanted else []
        return taken if all(found[row["m_partition"]]["sum"] == row["sum"] for row in sums) else None

    def _missing(self, rows: DataFrame, begin: Mapping[int, int], needed: Mapping[int, int]) -> BackfillError:
        """Build the error for records that neither the archive nor the topic contains."""
        source = self._source
        for number in sorted(needed):
            there = rows.where(f"m_partition = {number}").selectExpr("m_offset AS id")
            gone = self._session.range(begin[number], needed[number]).join(there, "id", "left_anti").orderBy("id")
            if first := gone.take(1):
                return BackfillError(
                    f"table {source.table}: {source.archive.place} has no row for offset {first[0][0]} of "
                    f"partition {number}, and {source.topic.place} has no offset below {needed[number]}. Add the "
                    "missing rows to the archive. A producer's transaction markers also use offsets, and cannot "
                    "be distinguished from lost rows"
                )
        return BackfillError(
            f"table {source.table}: {source.archive.place} changed during the run. Run again while nothing writes "
            "to the archive"
        )


reader = OffsetArchiveReader


def extent(session: SparkSession, topic: KafkaSource) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Return the earliest offset, start offset and end offset of each partition of a topic."""
    held = {number: at for (_, number), at in offsets(session, topic.topics, Position("earliest")).items()}
    starts = dict(topic.start.offsets)
    begin = {number: starts.get(number, 0) for number in held}
    if topic.end.mode in ("read", "specific"):
        wanted = dict(topic.end.offsets)
        return held, begin, {number: max(wanted.get(number, 0), begin[number]) for number in held}
    return held, begin, {number: at for (_, number), at in offsets(session, topic.topics, topic.end).items()}


def between(topic: KafkaSource, start: Mapping[int, int], end: Mapping[int, int]) -> KafkaSource:
    """Restrict a topic to the records between two offsets in each partition."""
    first, last = (Position("specific", offsets=tuple(sorted(each.items()))) for each in (start, end))
    return replace(topic, start=first, end=last)


def _decoded(source: BackfillSource, table: Table, count: int) -> list[str]:
    """Spark SQL expressions that decode the first columns; NULL for a column that cannot be decoded."""
    found = []
    for position, column in enumerate(table.stored[:count]):
        text = "CAST(NULL AS STRING)"
        with suppress(Untranslatable):
            text = source.decode(column, f"f{position}", table)
        found.append(f"{text} AS f{position}")
    return found


def _below(rows: DataFrame, bounds: Mapping[int, int]) -> DataFrame:
    return rows.where(F.col("m_offset") < by_partition(bounds))


def by_partition(offsets: Mapping[int, int]) -> Column:
    number, by_offset = F.col("m_partition"), defaultdict[int, list[int]](list)
    for partition, offset in sorted(offsets.items()):
        by_offset[offset].append(partition)
    # Looking up each partition in a map would cost as much as reading the row.
    return F.coalesce(*(F.when(number.isin(each), F.lit(offset)) for offset, each in by_offset.items()), F.lit(None))
