"""Watermarks that follow from past rows: late rows, closed sessions, and the watermark at a savepoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_flinkcompat.backfill.connectors.kafka import KafkaSource
from airflow_flinkcompat.backfill.spark_sql.windows import micros_of
from airflow_flinkcompat.backfill.steps import Select, Where
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, last_name
from airflow_flinkcompat.history.archived_topic import OffsetArchive, topic_of
from airflow_flinkcompat.history.derived_rows import NotComputable
from airflow_flinkcompat.history.sources import RowsRead, SourceEnds, TopicEnd
from airflow_flinkcompat.history.state_rows import Doubt, exact
from airflow_flinkcompat.history.table_rows import TableRows
from airflow_flinkcompat.history.time_boundary import BoundaryArchive
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, InputRef
from airflow_flinkcompat.plan.nodes import Scan, Table, Window
from airflow_flinkcompat.plan.operators import Source, StatelessSegment
from airflow_flinkcompat.plan.program import Pipeline
from airflow_flinkcompat.plan.types import INT, Column, timestamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_IDLE = ("scan.watermark.idle-timeout", "table.exec.source.idle-timeout")


def rows_with_watermark(rows: TableRows, columns: Sequence[Expression], matter: str) -> Select:
    """Return the rows of a table, each with the highest watermark that was possible at its arrival."""
    table, source = rows.table, rows.locations.source(rows.table)
    assert table.watermark is not None
    if not rows.ordered:
        raise NotComputable(f"{source.place} does not show which rows arrived too late for {matter}")
    if any(table.option(option) or dict(rows.pipeline.settings).get(option) for option in _IDLE):
        raise NotComputable(
            f"partitions may become idle, so history does not show which rows arrived too late for {matter}"
        )
    width = len(columns)
    # Rows that fail a condition also advance the watermark.
    read = rows.selected(Scan(table), [*columns, rows.time, table.watermark.expression, *rows.conditions])
    # Each topic partition has a separate watermark, and the job uses the lowest. Files are read one after another.
    stream = "PARTITION BY arrival.stream " if isinstance(source, KafkaSource | OffsetArchive) else ""
    before = f"OVER ({stream}ORDER BY arrival ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    mixed = "FALSE" if stream else "min(arrival.stream) OVER () <> max(arrival.stream) OVER ()"
    found = [f"c{i}" for i in range(width)]
    found += [micros_of(f"c{width}"), f"max({micros_of(f'c{width + 1}')}) {before}", mixed]
    through = [f"c{width + 2 + i}" for i in range(len(rows.conditions))]
    met = Select(read, (*enumerate([*found, *through]),))
    if not through:
        return met
    let_through = Where(met, " AND ".join(f"c{width + 3 + i}" for i in range(len(through))))
    return Select(let_through, (*enumerate(f"c{i}" for i in range(width + 3)),))


def possibly_late_rows(rows: TableRows, keys: Sequence[Expression], sessions: Window) -> Doubt:
    """Find rows that may have been late for their session, or that joined parts of a closed session."""
    assert sessions.gap is not None
    gap, width = sessions.gap * 1000, len(keys)
    of_key = ", ".join(f"c{i}" for i in range(width)) or "1"
    met = rows_with_watermark(rows, keys, "a session")
    columns = [f"c{i}" for i in range(width)]
    time, watermark, unordered = f"c{width}", f"c{width + 1}", f"c{width + 2}"
    columns += [time, watermark, unordered]
    by_time = f"OVER (PARTITION BY {of_key} ORDER BY {time})"
    with_previous = Select(met, (*enumerate([*columns, f"lag({time}) {by_time}", f"lag({watermark}) {by_time}"]),))
    former, former_met = f"c{width + 3}", f"c{width + 4}"
    begins = f"({former} IS NULL OR {time} - {former} > {gap})"
    late = f"coalesce({watermark} >= {time} + {gap} - 1000, FALSE)"
    closed = f"coalesce(greatest({watermark}, {former_met}) >= {former} + {gap} - 1000, FALSE)"
    doubtful = f"{unordered} OR {late} OR (NOT {begins} AND {closed})"
    number = f"sum(IF({begins}, 1, 0)) OVER (PARTITION BY {of_key} ORDER BY {time} ROWS UNBOUNDED PRECEDING)"
    numbered = Select(with_previous, (*enumerate([*columns, f"{number}", doubtful]),))
    end = f"max({time}) OVER (PARTITION BY {of_key}, c{width + 3}) + {gap}"
    ended = Select(numbered, ((0, end), (1, f"c{width + 4}")))
    return Doubt(
        Select(Where(ended, "c1"), ((0, "c0"),)),
        "a row may have arrived too late for its session, and history does not show whether it did",
    )


NEVER = -(1 << 63)
"""Watermark of a job that has received no watermark."""
_PARTITION = "flinkcompat_partition"


@dataclass(frozen=True)
class Watermarking:
    """Origin of the watermarks of a table.

    ``by_split``: True if the source generates a watermark for each split. ``idle``: True if a split without rows
    becomes idle.
    """

    by_split: bool
    idle: bool = False

    @classmethod
    def of(cls, plan: CompiledPlan, table: Table) -> Watermarking:
        pushed = {_pushed(node.config["scanTableSource"], table) for node in plan.nodes if _reads(node.config, table)}
        if len(pushed) != 1:
            raise NotComputable(f"the plan does not show how watermarks of table {table.name} are generated")
        (found,) = pushed
        return found


def _reads(config: Any, table: Table) -> bool:
    scanned = config.get("scanTableSource")
    return scanned is not None and last_name(str(scanned["table"]["identifier"])) == table.path[2]


def _pushed(scan: Any, table: Table) -> Watermarking:
    for ability in scan.get("abilities") or ():
        if ability["type"] == "SourceWatermark":
            raise NotComputable(f"the connector of table {table.name} generates the watermarks itself")
        if ability["type"] == "WatermarkPushDown":
            of_table = (ability.get("watermarkParams") or {}).get("sourceIdleTimeout", -1)
            return Watermarking(True, max(int(ability.get("idleTimeoutMillis", -1)), int(of_table)) > 0)
    return Watermarking(False)


def watermark(session: SparkSession, pipeline: Pipeline, plan: CompiledPlan, table: Table, ends: SourceEnds) -> int:
    """Watermark of a job that has read a table up to an end position."""
    how = Watermarking.of(plan, table)
    rows = TableRows(pipeline, StatelessSegment(Source(table.name)), ends)
    end = dict(ends.ends)[table.path[2]]
    if how.by_split and not isinstance(end, TopicEnd):
        raise NotComputable(f"each split of table {table.name} has a separate watermark, and these splits are unknown")
    if not isinstance(end, TopicEnd) or not how.by_split:
        found = _highest(session, rows)
        return found if found > 0 else NEVER
    reached = _by_partition(session, rows)
    counted = [each.partition for each in end.partitions if each.partition in reached or not how.idle]
    return min((reached.get(partition, NEVER) for partition in counted), default=NEVER)


def least_watermark(session: SparkSession, rows: TableRows) -> int:
    """Lowest watermark that the job may have reached, regardless of how watermarks are generated."""
    table, locations = rows.table, rows.locations
    source = locations.source(table)
    topic = topic_of(source)
    if topic is not None:
        reached = _by_partition(session, rows)
        return min((reached.get(partition, NEVER) for partition, _ in topic.end.offsets), default=NEVER)
    if isinstance(locations, RowsRead) and locations.readers[table.path[2]].parallelism > 1:
        raise NotComputable(f"several subtasks read the files of {source.place}, each with a separate watermark")
    return _highest(session, rows)


def _highest(session: SparkSession, rows: TableRows) -> int:
    from airflow_flinkcompat.backfill.execution.frames import Execution

    steps = exact(rows.grouped(Scan(rows.table), (), (_highest_of(rows.table),)), ("TIMESTAMP(3)",))
    ((highest,),) = Execution(session).frame(steps).collect()
    return _millis(highest)


def _by_partition(session: SparkSession, rows: TableRows) -> dict[int, int]:
    """Highest watermark of each partition that contains rows."""
    from airflow_flinkcompat.backfill.execution.frames import Execution

    table = rows.table
    if isinstance(source := rows.locations.source(table), BoundaryArchive):
        rows = replace(rows, locations=_remaining_records(session, table, source))
    column = Column(_PARTITION, INT)
    numbered = replace(
        table, columns=(*table.columns, column), metadata=(*table.metadata, (_PARTITION, "partition", True))
    )
    number = InputRef(len(table.columns), INT)
    steps = exact(rows.grouped(Scan(numbered), (number,), (_highest_of(table),)), ("INT", "TIMESTAMP(3)"))
    return {row[0]: _millis(row[1]) for row in Execution(session).frame(steps).collect()}


def _remaining_records(session: SparkSession, table: Table, source: BoundaryArchive) -> SourceEnds:
    """Restrict a topic with an archive to the records in the topic.

    Each partition contains a record that is later than all deleted records.
    """
    from airflow_flinkcompat.history.time_boundary_spark import BoundaryArchiveReader

    if table.watermark_delay is None:
        raise NotComputable(
            f"the watermark of table {table.name} is not the event time minus a constant, so deleted records of "
            "the topic may have advanced it further"
        )
    newest = BoundaryArchiveReader(session, source).newest()
    return SourceEnds(ends=((table.path[2], TopicEnd(newest, ())),))


def _highest_of(table: Table) -> AggregateCall:
    assert table.watermark is not None
    return AggregateCall("MAX", (table.watermark.expression,), timestamp(3))


def _millis(micros: int | None) -> int:
    return NEVER if micros is None else micros // 1000
