"""How far time had come for a job that has read rows: the watermark that its operators of windows would hold.

Read in Flink 2.3, and measured: an operator that assigns watermarks hands on the highest one, counted up from 1970. A
source into which they are pushed does so for each of its splits and goes by the lowest of them; one without a row holds
back all others, unless it counts as idle. Several readers would mix splits as they come: what is told is where one
reader had come to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_flinkcompat.bootstrap.archived_topic.spec import topic_of
from airflow_flinkcompat.bootstrap.errors import NotComputable
from airflow_flinkcompat.bootstrap.positions import RowsRead
from airflow_flinkcompat.bootstrap.source_ends import SourceEnds, TopicEnd
from airflow_flinkcompat.bootstrap.state_rows import exact
from airflow_flinkcompat.bootstrap.table_rows import TableRows
from airflow_flinkcompat.bootstrap.time_boundary.spec import BoundaryArchive
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, last_name
from airflow_flinkcompat.plan.expressions import AggregateCall, InputRef
from airflow_flinkcompat.plan.nodes import Scan, Table
from airflow_flinkcompat.plan.operators import Source, StatelessSegment
from airflow_flinkcompat.plan.program import Pipeline
from airflow_flinkcompat.plan.types import INT, Column, timestamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEVER = -(1 << 63)
"""The watermark of a job to which none has come."""
_PARTITION = "flinkcompat_partition"


@dataclass(frozen=True)
class Watermarking:
    """Where the watermarks of a table come from.

    Attributes:
        by_split: Whether its source makes them, for each split by itself.
        idle: Whether a split without rows counts as idle then.
    """

    by_split: bool
    idle: bool = False

    @classmethod
    def of(cls, plan: CompiledPlan, table: Table) -> Watermarking:
        """What a compiled plan tells."""
        pushed = {_pushed(node.config["scanTableSource"], table) for node in plan.nodes if _reads(node.config, table)}
        if len(pushed) != 1:
            raise NotComputable(f"where the watermarks of table {table.name} come from its plan does not tell")
        (found,) = pushed
        return found


def _reads(config: Any, table: Table) -> bool:
    scanned = config.get("scanTableSource")
    return scanned is not None and last_name(str(scanned["table"]["identifier"])) == table.path[2]


def _pushed(scan: Any, table: Table) -> Watermarking:
    for ability in scan.get("abilities") or ():
        if ability["type"] == "SourceWatermark":
            raise NotComputable(f"the watermarks of table {table.name} are those of its connector")
        if ability["type"] == "WatermarkPushDown":
            of_table = (ability.get("watermarkParams") or {}).get("sourceIdleTimeout", -1)
            return Watermarking(True, max(int(ability.get("idleTimeoutMillis", -1)), int(of_table)) > 0)
    return Watermarking(False)


def watermark(session: SparkSession, pipeline: Pipeline, plan: CompiledPlan, table: Table, ends: SourceEnds) -> int:
    """How far time had come for who has read the rows of a table."""
    how = Watermarking.of(plan, table)
    rows = TableRows(pipeline, StatelessSegment(Source(table.name)), ends)
    end = dict(ends.ends)[table.path[2]]
    if how.by_split and not isinstance(end, TopicEnd):
        raise NotComputable(f"the splits of table {table.name}, which have watermarks of their own, are not known")
    if not isinstance(end, TopicEnd) or not how.by_split:
        found = _highest(session, rows)
        return found if found > 0 else NEVER
    reached = _by_partition(session, rows)
    counted = [each.partition for each in end.partitions if each.partition in reached or not how.idle]
    return min((reached.get(partition, NEVER) for partition in counted), default=NEVER)


def least_watermark(session: SparkSession, rows: TableRows) -> int:
    """What no row of a table to come lies before, if it is not late, whoever makes the watermarks."""
    table, locations = rows.table, rows.locations
    source = locations.source(table)
    topic = topic_of(source)
    if topic is not None:
        reached = _by_partition(session, rows)
        return min((reached.get(partition, NEVER) for partition, _ in topic.end.offsets), default=NEVER)
    if isinstance(locations, RowsRead) and locations.readers[table.path[2]].parallelism > 1:
        raise NotComputable(f"several readers share the files of {source.place}, each with a watermark of its own")
    return _highest(session, rows)


def _highest(session: SparkSession, rows: TableRows) -> int:
    """The highest watermark of all rows of a table."""
    from airflow_flinkcompat.backfill.execution.frames import Execution

    steps = exact(rows.grouped(Scan(rows.table), (), (_highest_of(rows.table),)), ("TIMESTAMP(3)",))
    ((highest,),) = Execution(session).frame(steps).collect()
    return _millis(highest)


def _by_partition(session: SparkSession, rows: TableRows) -> dict[int, int]:
    """The highest watermark of each partition of a table that has rows."""
    from airflow_flinkcompat.backfill.execution.frames import Execution

    table = rows.table
    if isinstance(source := rows.locations.source(table), BoundaryArchive):
        rows = replace(rows, locations=_still_held(session, table, source))
    column = Column(_PARTITION, INT)
    numbered = replace(
        table, columns=(*table.columns, column), metadata=(*table.metadata, (_PARTITION, "partition", True))
    )
    number = InputRef(len(table.columns), INT)
    steps = exact(rows.grouped(Scan(numbered), (number,), (_highest_of(table),)), ("INT", "TIMESTAMP(3)"))
    return {row[0]: _millis(row[1]) for row in Execution(session).frame(steps).collect()}


def _still_held(session: SparkSession, table: Table, source: BoundaryArchive) -> SourceEnds:
    """The records that the topic still holds, in each partition one that is later than all that were deleted."""
    from airflow_flinkcompat.bootstrap.time_boundary.read import BoundaryArchiveReader

    if table.watermark_delay is None:
        raise NotComputable(
            f"the watermark of table {table.name} does not follow its event time by a constant, so that records which "
            "the topic has deleted may have brought it further"
        )
    newest = BoundaryArchiveReader(session, source).newest()
    return SourceEnds(ends=((table.path[2], TopicEnd(newest, ())),))


def _highest_of(table: Table) -> AggregateCall:
    assert table.watermark is not None
    return AggregateCall("MAX", (table.watermark.expression,), timestamp(3))


def _millis(micros: int | None) -> int:
    return NEVER if micros is None else micros // 1000
