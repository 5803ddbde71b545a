"""Kafka topics at run time. Kafka's client finds partitions and offsets, and Spark reads the records.

Secrets are filled in here. Spark does not show secrets.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.kafka import KafkaSink, KafkaSource, Position, RecordPart, Topics
from airflow_flinkcompat.backfill.connectors.replaced_rows import order_column, replaced_rows
from airflow_flinkcompat.backfill.formats import text_reader
from airflow_flinkcompat.backfill.formats.text import decode, encode_line
from airflow_flinkcompat.backfill.protocols import PublishedRows, Range
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.spark import fill_in, pin
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.plan.types import Column

Partition = tuple[str, int]
_TIMEOUT_MS = "30000"
_UNKNOWN_CONFIG = ("AuthorizationException", "UnsupportedVersionException", "InvalidRequestException")
"""Errors if the user may not describe a topic, or if brokers do not answer."""
PLACE = {
    "m_topic": "topic",
    "m_partition": "partition",
    "m_offset": "offset",
    "m_timestamp": "timestamp",
    "m_timestamp_type": "timestampType",
}
"""Columns of each record's metadata, with Spark's names."""


class KafkaReader:
    """Reader of topics, between offsets that are fixed for a run."""

    def __init__(self, session: SparkSession, source: KafkaSource) -> None:
        self._session, self._source = session, source

    def check(self) -> None:
        reach(self._session, self._source)

    def version(self) -> str:
        """Offsets between which the run reads. Later records are omitted."""
        start, end = reach(self._session, self._source)
        return ", ".join(f"{topic}-{number}: {start[topic, number]} to {end[topic, number]}" for topic, number in end)

    def rows(self) -> DataFrame:
        return rows_of(self._source, numbered_records(self._session, self._source))

    def ordered_rows(self) -> DataFrame:
        """Rows in the order of their offsets within each partition."""
        return in_order(self.rows())

    def check_sequence(self) -> None:
        """Refuse several partitions, because the order in which a job read their rows is unknown."""
        source = self._source
        if len(reach(self._session, source)[1]) > 1:
            raise BackfillError(
                f"table {source.table}: late rows depend on how a job interleaves the partitions of "
                f"{source.place}. Include late rows, or specify the columns that define the order with --order-by "
                f"{source.table}=COLUMN"
            )


def in_order(rows: DataFrame) -> DataFrame:
    """Rows of topics with three columns for their order, which is by offset within each partition."""
    part, stream = "struct(m_topic, m_partition) AS part", "concat(m_topic, '-', m_partition) AS stream"
    return rows.selectExpr("*", part, "m_offset AS place", stream)


def offsets(
    session: SparkSession, topics: Topics, position: Position, since: Mapping[int, int] = MappingProxyType({})
) -> dict[Partition, int]:
    """Find the offset of a position in every partition.

    If no record is at or after the position, the offset is the end of the partition. ``since``: Offset of each
    partition from which records are needed; empty if all records are needed.
    """
    with _admin(session, topics) as admin:
        known = _partitions(session, admin, topics)
        if position.mode == "specific":
            return _specific(topics, known, position)
        spec = _jvm(session).org.apache.kafka.clients.admin.OffsetSpec
        if position.mode in ("earliest", "read", "after"):
            first, wanted = _listed(session, admin, topics, known, spec.earliest()), dict(position.offsets)
            if position.mode == "read":
                return _read_to(topics, first, wanted, since)
            return {partition: max(wanted.get(partition[1], 0), offset) for partition, offset in first.items()}
        ends = _listed(session, admin, topics, known, spec.latest())
        if position.mode == "latest":
            return ends
        found = _listed(session, admin, topics, known, spec.forTimestamp(position.millis))
        return {partition: ends[partition] if offset < 0 else offset for partition, offset in found.items()}


def is_compacted(session: SparkSession, topics: Topics) -> bool | None:
    """True if compaction may have deleted records, which offsets do not show.

    None if the brokers do not reveal the policy.
    """
    config = _jvm(session).org.apache.kafka.common.config
    resources = _jvm(session).java.util.ArrayList()
    for name in topics.names:
        resources.add(config.ConfigResource(getattr(config, "ConfigResource$Type").TOPIC, name))

    def ask() -> bool | None:
        with _admin(session, topics) as admin:
            try:
                found = admin.describeConfigs(resources).all().get()
            except Py4JJavaError as error:
                if any(name in str(error.java_exception) for name in _UNKNOWN_CONFIG):
                    return None
                raise
        policies = [found[each].get("cleanup.policy") for each in resources]
        values = [str(policy.value()) for policy in policies if policy is not None and policy.value() is not None]
        return any("compact" in each for each in values) if len(values) == len(policies) else None

    return pin(session, (is_compacted, topics), ask)


def reach(session: SparkSession, source: KafkaSource) -> tuple[dict[Partition, int], dict[Partition, int]]:
    """First offset in every partition, and the offset after the last record; fixed for a run."""
    topics, positions = source.topics, (source.start, source.end)

    def ask() -> tuple[dict[Partition, int], dict[Partition, int]]:
        start = offsets(session, topics, source.start)
        # A start time does not show that later records are missing, because records may be out of time order.
        return start, offsets(session, topics, source.end, dict(source.start.offsets))

    return pin(session, (topics, *positions), ask)


def numbered_records(session: SparkSession, source: KafkaSource) -> DataFrame:
    """Records between the positions of a source: key, value, and the columns of :data:`PLACE`."""
    start, end = reach(session, source)
    return records(session, source.topics, start, end).selectExpr(
        "key", "value", *(f"{column} AS {name}" for name, column in PLACE.items())
    )


def rows_of(source: KafkaSource, rows: DataFrame) -> DataFrame:
    """Parse records into the stored fields ``f0`` …, as texts; the columns of :data:`PLACE` remain."""
    fields: dict[int, str] = {}
    for part, binary in ((source.key, "key"), (source.value, "value")):
        if part is None:
            continue
        names = tuple(name for name, _ in part.fields)
        rows = text_reader.messages(rows, binary, source.table, part.format, names, f"{binary}_")
        fields |= {position: f"{binary}_{i}" for i, (_, position) in enumerate(part.fields)}
    return rows.selectExpr(*(f"{name} AS f{position}" for position, name in sorted(fields.items())), *PLACE)


def records(session: SparkSession, topics: Topics, start: dict[Partition, int], end: dict[Partition, int]) -> DataFrame:
    """Records between two offsets of each partition, in the columns of Spark's reader."""
    first = {partition: min(offset, end[partition]) for partition, offset in start.items()}
    reader = session.read.format("kafka").options(**client(topics))
    reader = reader.option("assign", _json(dict.fromkeys(end)))
    return reader.option("startingOffsets", _json(first)).option("endingOffsets", _json(end)).load()


def client(topics: Topics) -> dict[str, str]:
    """Client options of Spark's kafka format, with secrets filled in."""
    return {f"kafka.{name}": value for name, value in _properties(topics).items()}


def _properties(topics: Topics) -> dict[str, str]:
    return {name: fill_in(value, os.environ) for name, value in topics.properties}


def _json(values: dict[Partition, int] | dict[Partition, None]) -> str:
    topics: dict[str, dict[str, int | None]] = {}
    for (topic, partition), value in values.items():
        topics.setdefault(topic, {})[str(partition)] = value
    if all(value is None for value in values.values()):
        return json.dumps({topic: [int(number) for number in numbers] for topic, numbers in topics.items()})
    return json.dumps(topics)


def _jvm(session: SparkSession) -> Any:
    return session._jvm


@contextmanager
def _admin(session: SparkSession, topics: Topics) -> Iterator[Any]:
    properties = _jvm(session).java.util.Properties()
    timeouts = {"default.api.timeout.ms": _TIMEOUT_MS, "request.timeout.ms": _TIMEOUT_MS}
    for name, value in {**timeouts, **_properties(topics)}.items():
        properties.setProperty(name, value)
    try:
        admin = _jvm(session).org.apache.kafka.clients.admin.AdminClient.create(properties)
    except Py4JJavaError as error:
        raise _unreachable(topics, error) from None
    try:
        yield admin
    except Py4JJavaError as error:
        raise _unreachable(topics, error) from None
    finally:
        admin.close()


def _unreachable(topics: Topics, error: Py4JJavaError) -> BackfillError:
    cause = error.java_exception
    while (inner := cause.getCause()) is not None:
        cause = inner
    return BackfillError(f"{topics.place} cannot be read: {cause.getMessage()}")


def _partitions(session: SparkSession, admin: Any, topics: Topics) -> tuple[Partition, ...]:
    names = _jvm(session).java.util.ArrayList()
    for name in topics.names:
        names.add(name)
    found = admin.describeTopics(names).allTopicNames().get()
    return tuple(
        (name, int(partition.partition())) for name in topics.names for partition in found.get(name).partitions()
    )


def _listed(
    session: SparkSession, admin: Any, topics: Topics, known: tuple[Partition, ...], spec: Any
) -> dict[Partition, int]:
    jvm = _jvm(session)
    wanted = jvm.java.util.HashMap()
    keys = {partition: jvm.org.apache.kafka.common.TopicPartition(*partition) for partition in known}
    for key in keys.values():
        wanted.put(key, spec)
    levels = jvm.org.apache.kafka.common.IsolationLevel
    committed = dict(topics.properties).get("isolation.level") == "read_committed"
    options = jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(
        levels.READ_COMMITTED if committed else levels.READ_UNCOMMITTED
    )
    found = admin.listOffsets(wanted, options)
    return {partition: int(found.partitionResult(key).get().offset()) for partition, key in keys.items()}


def _read_to(
    topics: Topics, first: dict[Partition, int], read: dict[int, int], since: Mapping[int, int]
) -> dict[Partition, int]:
    for (_, number), offset in first.items():
        if offset > since.get(number, 0) and read.get(number, -1) > since.get(number, 0):
            raise BackfillError(
                f"{topics.place}: partition {number} now begins at offset {offset}, but the job had also read "
                "earlier records. Specify an archive that contains the earlier records"
            )
    return {partition: max(read.get(partition[1], 0), offset) for partition, offset in first.items()}


def _specific(topics: Topics, known: tuple[Partition, ...], position: Position) -> dict[Partition, int]:
    wanted = dict(position.offsets)
    if missing := [partition for _, partition in known if partition not in wanted]:
        raise BackfillError(
            f"{topics.place}: the specific offsets lack partition {missing[0]}. Add an offset for this partition"
        )
    return {(topic, partition): wanted[partition] for topic, partition in known}


class KafkaPublication:
    """Publication of upserts to a topic: a record for each changed key, a tombstone for each removed key.

    A run compares its rows with the topic's rows in the range, key by key, and publishes the difference. A repeated run
    writes nothing new. After a killed run and a second run, the topic contains exactly the rows of the second run. Keys
    change one after another, so readers may temporarily see old and new windows together. If a key already has a row of
    a window that is later than the range, that row remains. The run compares with the topic's content at its start.
    Keys that a job adds later remain.
    """

    def __init__(self, session: SparkSession, target: KafkaSink, rows: PublishedRows, bounds: Range) -> None:
        self.session, self.target, self.rows = session, target, rows
        self.replaced = replaced_rows(rows, bounds)
        # Records of an aborted transaction are not content of the topic.
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
                f"{bytes(twice[0]['key']).decode()}, and it is undefined which row remains. Declare a PRIMARY KEY "
                "that distinguishes the rows of the query"
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
        """Spark SQL for a column that orders windows; NULL if no order is needed."""
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
        """Index of a stored column among the published columns."""
        name = self.rows.table.physical[position]
        return next(i for i, column in enumerate(self.rows.columns) if column.name == name)

    def _held(self) -> DataFrame:
        """Last record of each key in the topic, except tombstones; ``replaced`` if its window is in the range."""
        start = offsets(self.session, self._topics, Position("earliest"))
        topic = records(self.session, self._topics, start, self._end).where("key IS NOT NULL")
        last = topic.groupBy("key").agg(
            F.expr("max_by(value, offset) AS value"), F.expr("count(DISTINCT partition) AS partitions")
        )
        moved = (
            f"{ERROR}a key of sink {self.rows.name} is in several partitions, so its last record is unknown. "
            "Recreate the topic"
        )
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
        if any(held == position for _, held in self.target.value.fields):
            return self.target.value, "value"
        return self.target.key, "key"


reader, publication = KafkaReader, KafkaPublication
