"""What shows that an event time parts the records of an archive from those of its topic.

Of a record that the topic has deleted nothing but the archive tells. So what both hold is held together, row by row as
often as each occurs:

* Below the boundary the archive is read. Of each record there that the job has read and the topic still holds it has
  as many, and none of those that the job is still to read.
* From the boundary on the topic is read. The archive has no row there that the topic does not hold: none was deleted.
* For a deleted record to be seen so, the archive has to hold it. An archive that is written in the order of the topic
  does, if it holds a later record of the partition; that it is written so, and not cut at some time, the records show
  which the topic still holds: of each partition it has the first ones, some of them below the boundary and some beyond.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from airflow_flinkcompat.bootstrap.time_boundary.spec import BoundaryArchive
from airflow_flinkcompat.plan.types import APPROXIMATE

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
"""What is asked of the records of a partition; of the rows of the archive, which have no partition, the last three."""
_OFFSETS = "name the archive's columns of partition and offset, if it has them"
_OF_RECORDS = {
    "untimed": f"has no event time and lies on neither side of a boundary; {_OFFSETS}",
    "missing": "lies below the boundary, and the archive does not hold it as often as the topic: it ends in front of "
    "the boundary, or has lost rows. Name an earlier boundary, or an archive that holds it",
    "again": "lies below the boundary and is in the archive, and the job is still to read it: it would count twice. "
    "Name an earlier boundary",
    "twice": "lies below the boundary, and the archive holds it more often than the topic: it has rows twice, or the "
    f"topic has deleted a record that is equal, which nothing tells apart; {_OFFSETS}",
}
"""What is wrong with the first record of a partition of which ``_FACTS`` have one."""


@dataclass(frozen=True)
class Parted:
    """What is held together.

    Attributes:
        topic: The records that it holds up to its end, whether or not the job has ``read`` them.
        archive: Its rows, of which those may be left out that are older than all of the topic.
        lost: By partition the first offset that is left, of those that have lost records.
    """

    topic: DataFrame
    archive: DataFrame
    lost: Mapping[int, int]


def problems(source: BoundaryArchive, parted: Parted) -> Sequence[str]:
    """Why the boundary is not shown to part the records."""
    return list(_problems(source, parted.lost, {row[PARTITION]: row for row in _facts(source, parted)}))


def _facts(source: BoundaryArchive, parted: Parted) -> Sequence[Row]:
    """Of each partition, and of the archive's rows under None, what ``_FACTS`` ask."""
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
        yield f"the archive has {archive['no_time']} rows without an event time, which lie on neither side; {_OFFSETS}"
    for number in partitions:
        for name, says in _OF_RECORDS.items():
            if (offset := found[number][name]) is not None:
                yield f"the record at offset {offset} of partition {number} {says}"
    if archive is not None and archive["surplus"]:
        yield (
            f"the archive has {archive['surplus']} rows from the boundary on, the first of "
            f"{source.told(archive['surplus_from'])}, that the topic does not hold as often: it has deleted them, or "
            f"the archive has rows twice. Name a later boundary, or {_OFFSETS}"
        )
    for number, first in sorted(lost.items()):
        row = found.get(number)
        begins = f"partition {number} begins at offset {first} by now, and"
        if row is None or not row["older"]:
            yield (
                f"{begins} none of its records that the job has read and the topic still holds lies below the "
                f"boundary, so that deleted ones may lie beyond. Name a later boundary, or {_OFFSETS}"
            )
        elif not row["newer"]:
            yield (
                f"{begins} none of its records from the boundary on that the job has read is in the archive, so that "
                "nothing shows whether the archive goes on there or lacks deleted ones. Name an earlier boundary, or "
                "wait until the archive holds more"
            )
        elif row["ends"] is not None and row["last"] > row["ends"]:
            yield (
                f"{begins} the archive has its record at offset {row['last']}, and not that at offset {row['ends']}: "
                "it is cut, or not written in the order of the topic, and may lack deleted ones. Wait until it holds "
                f"both, or {_OFFSETS}"
            )
