"""Upserts into a Kafka topic: a record per changed key, a tombstone per key that the range has lost.

A run publishes the difference between its rows and those of the topic in the range, key by key. A repeated run writes
nothing new, and a run after a killed one ends at its own rows, whatever that one left. Each key changes at once, the
keys one after another: a reader in between sees old and new windows together. A key that holds the row of a window
after the range keeps it. The topic is compared as of the start of the run; keys that a job adds later stay.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.kafka.read import client, offsets, records
from airflow_flinkcompat.backfill.connectors.kafka.spec import KafkaSink, Position, RecordPart
from airflow_flinkcompat.backfill.connectors.replaced_rows import Comparison, order_column, replaced_rows
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.formats import text_reader
from airflow_flinkcompat.backfill.formats.text import decode, encode_line
from airflow_flinkcompat.backfill.protocols import PublishedRows, Range
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.plan.types import Column


def publication(session: SparkSession, sink: KafkaSink, rows: PublishedRows, bounds: Range) -> KafkaPublication:
    """Open a publication into a topic."""
    return KafkaPublication(session, sink, rows, replaced_rows(rows, bounds))


class KafkaPublication:
    """One sink's rows on their way into a topic; see :class:`Publication`."""

    def __init__(
        self, session: SparkSession, target: KafkaSink, rows: PublishedRows, replaced: tuple[Comparison, ...]
    ) -> None:
        self.session = session
        self.target = target
        self.rows = rows
        self.replaced = replaced
        # Records of a transaction that was given up never were in the topic.
        properties = {**dict(target.topics.properties), "isolation.level": "read_committed"}
        self._topics = replace(target.topics, properties=tuple(sorted(properties.items())))
        self._end: dict[tuple[str, int], int] = {}
        self._staged: DataFrame | None = None

    def check(self) -> None:
        self._end = offsets(self.session, self._topics, Position("latest"))

    def stage(self, rows: DataFrame) -> None:
        key, value = (
            F.expr(self._encoded(part)).cast("binary").alias(name)
            for part, name in ((self.target.key, "key"), (self.target.value, "value"))
        )
        staged = rows.select(key, value, F.expr(self._window()).alias("window")).persist(StorageLevel.DISK_ONLY)
        self._staged = staged
        staged.count()
        if twice := staged.groupBy("key").count().where("count > 1").take(1):
            raise BackfillError(
                f"sink {self.rows.name}: the query returns {twice[0]['count']} rows for the key "
                f"{bytes(twice[0]['key']).decode()}, and which of them stays is undefined; declare a "
                "PRIMARY KEY that distinguishes the rows of the query"
            )

    def publish(self) -> tuple[str, ...]:
        assert self._staged is not None
        rows, held = self._staged.alias("rows"), self._held().alias("held")
        both = rows.join(held, F.expr("rows.key = held.key"), "full_outer").where(
            "rows.key IS NULL AND held.replaced OR rows.key IS NOT NULL AND NOT rows.value <=> held.value "
            "AND (held.key IS NULL OR held.replaced OR NOT coalesce(held.window > rows.window, false))"
        )
        changes = both.selectExpr("coalesce(rows.key, held.key) AS key", "rows.value AS value")
        options = {name: value for name, value in client(self.target.topics).items() if "isolation" not in name}
        changes.write.format("kafka").options(**options).option("topic", self.target.topics.names[0]).save()
        return ()

    def discard(self) -> None:
        if self._staged is not None:
            self._staged.unpersist()

    def _window(self) -> str:
        """Spark SQL that orders the windows of two rows; NULL if no order is needed."""
        column = order_column(self.rows) if self.replaced else None
        names = [held.name for held in self.rows.columns]
        return "NULL" if column is None else f"c{names.index(column)}"

    def _encoded(self, part: RecordPart) -> str:
        columns = tuple(replace(self._column(position), name=name) for name, position in part.fields)
        values = tuple(f"c{self._place(position)}" for _, position in part.fields)
        return encode_line(part.format, columns, values, record=True)

    def _column(self, position: int) -> Column:
        return self.rows.columns[self._place(position)]

    def _place(self, position: int) -> int:
        """Position of a stored column among the published ones."""
        name = self.rows.table.physical[position]
        return next(i for i, column in enumerate(self.rows.columns) if column.name == name)

    def _held(self) -> DataFrame:
        """The topic's last record per key, unless it is a tombstone; ``replaced``: its window is in the range."""
        start = offsets(self.session, self._topics, Position("earliest"))
        topic = records(self.session, self._topics, start, self._end).where("key IS NOT NULL")
        last = topic.groupBy("key").agg(
            F.expr("max_by(value, offset) AS value"), F.expr("count(DISTINCT partition) AS partitions")
        )
        moved = f"{ERROR}a key of sink {self.rows.name} is in several partitions, so its last record is unknown"
        last = last.where(f"IF(partitions > 1, raise_error({quoted(moved)}), value IS NOT NULL)")
        if not self.replaced:
            return last.selectExpr("key", "value", "true AS replaced", "NULL AS window")
        column = order_column(self.rows)
        wanted = sorted({comparison.column for comparison in self.replaced} | ({column} if column else set()))
        frame, decoded = last, {"": "NULL"}
        for number, name in enumerate(wanted):
            position = self.rows.table.physical.index(name)
            part, binary = self._holding(position)
            names = tuple(name for name, _ in part.fields)
            prefix = f"w{number}_"
            frame = text_reader.messages(frame, binary, self.rows.name, part.format, names, prefix)
            field = next(i for i, (_, held) in enumerate(part.fields) if held == position)
            decoded[name] = decode(part.format, self._column(position), f"{prefix}{field}", self.rows.table)
        tests = (comparison.sql(decoded[comparison.column]) for comparison in self.replaced)
        replaced = f"coalesce({' AND '.join(tests)}, false) AS replaced"
        return frame.selectExpr("key", "value", replaced, f"{decoded[column or '']} AS window")

    def _holding(self, position: int) -> tuple[RecordPart, str]:
        """The part of a record that holds a column."""
        if any(held == position for _, held in self.target.value.fields):
            return self.target.value, "value"
        return self.target.key, "key"
