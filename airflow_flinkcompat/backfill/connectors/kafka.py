"""Connector that reads Kafka topics as history, and writes upsert-kafka sinks by key.

A backfill reads from the earliest record, unless ``scan.startup.mode`` is timestamp or specific-offsets. A backfill
ends at a position that is fixed when the run starts: the end of the topics, or an earlier position from
``scan.bounded.mode``. The history does not include the position of a job's consumer group, so group-offsets and
latest-offset also start at the earliest record. Record timestamps never replace the event time. A range of windows
depends only on the event time of rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

from airflow_flinkcompat.backfill.connectors.registry import Connector
from airflow_flinkcompat.backfill.connectors.replaced_rows import order_column, replaced_rows
from airflow_flinkcompat.backfill.formats.text import Format, decode, format_of
from airflow_flinkcompat.backfill.protocols import REDACTION, Needs, PublishedRows, Range
from airflow_flinkcompat.backfill.result import FLINK_BATCH, BackfillError, Untranslatable
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import BIGINT, INT, STRING, Column, DataType, timestamp_ltz
from airflow_flinkcompat.secrets import mask_secrets

NEEDS = Needs(("org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3",), REDACTION)
_SHARED = ("connector", "topic", "format", "key.format", "value.format", "key.fields-prefix", "value.fields-include")
_SCAN = ("key.fields", *(f"scan.startup.{name}" for name in ("mode", "specific-offsets", "timestamp-millis")))
_SCAN += tuple(f"scan.bounded.{name}" for name in ("mode", "specific-offsets", "timestamp-millis"))
# Options for a job's parallelism, buffers and commits, which have no effect on a backfill.
_NEUTRAL = ("sink.", "scan.topic-partition-discovery.interval", "scan.parallelism", "scan.watermark.")
# Options of a consumer group, or set by Flink itself. A backfill reads partitions between two offsets instead.
_DROPPED = {"group.id", "auto.offset.reset", "enable.auto.commit", "auto.commit.interval.ms", "client.id"}
_DROPPED |= {"client.id.prefix", "partition.discovery.interval.ms", "commit.offsets.on.checkpoint"}
_DROPPED |= {"key.deserializer", "value.deserializer", "key.serializer", "value.serializer", "transactional.id"}
_DROPPED |= {"register.consumer.metrics", "allow.auto.create.topics"}
_OFFSETS = re.compile(r"partition:(\d+),offset:(\d+)")
_METADATA = {
    "topic": (STRING, "m_topic"),
    "partition": (INT, "m_partition"),
    "offset": (BIGINT, "m_offset"),
    "timestamp": (timestamp_ltz(3), "m_timestamp"),
    "timestamp-type": (
        STRING,
        "(CASE m_timestamp_type WHEN 0 THEN 'CreateTime' WHEN 1 THEN 'LogAppendTime' ELSE 'NoTimestampType' END)",
    ),
}


@dataclass(frozen=True)
class Position:
    """A position in every partition: earliest, latest, timestamp (``millis``) or specific (``offsets``).

    Mode ``read`` is the end of the rows that a job has read, given by ``offsets``. A missing or negative offset means
    that the job has read no row of the partition. Mode ``after`` is the start of the rows that a job with these
    ``offsets`` has not read.
    """

    mode: str
    millis: int = 0
    offsets: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class RecordPart:
    """Key or value of a record: its format, and the name and column index of each field."""

    format: Format
    fields: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Topics:
    """Topics of one Kafka cluster, and the client's ``properties`` with placeholders for secrets."""

    names: tuple[str, ...]
    properties: tuple[tuple[str, str], ...] = field(repr=False)

    @property
    def place(self) -> str:
        servers = dict(self.properties)["bootstrap.servers"]
        return f"kafka://{mask_secrets(servers)}/{','.join(self.names)}"

    @classmethod
    def of(cls, table: Table) -> Topics:
        if not (servers := table.option("properties.bootstrap.servers")):
            raise BackfillError(f"table {table.name} has no option properties.bootstrap.servers: add it", table.span)
        names = tuple(dict.fromkeys(name.strip() for name in (table.option("topic") or "").split(";") if name.strip()))
        if not names:
            raise BackfillError(f"table {table.name} has no option topic: add it", table.span)
        properties = {
            option.removeprefix("properties."): value
            for option, value in table.options
            if option.startswith("properties.")
        }
        if "interceptor.classes" in properties:
            raise Untranslatable(
                (f"table {table.name}: the option properties.interceptor.classes may change records. Remove it"),
                table.span,
            )
        kept = {name: value for name, value in properties.items() if name not in _DROPPED}
        return cls(names, tuple(sorted({**kept, "bootstrap.servers": servers}.items())))


@dataclass(frozen=True)
class KafkaSource:
    """A table that is read from topics. Within each topic, rows are ordered by partition and offset."""

    table: str
    topics: Topics
    start: Position
    end: Position
    value: RecordPart
    key: RecordPart | None
    needs: ClassVar[Needs] = NEEDS
    ordered: ClassVar[bool] = True

    @classmethod
    def of(cls, table: Table) -> KafkaSource:
        """Source of a table; raises :class:`BackfillError` if it cannot be read exactly."""
        _check_options(table, (*_SHARED, *_SCAN))
        keys = (name.strip() for name in (table.option("key.fields") or "").split(";"))
        key, value = _parts(table, tuple(filter(None, keys)))
        return cls(table.name, Topics.of(table), _start(table), _end(table), value, key)

    @property
    def place(self) -> str:
        return self.topics.place

    def decode(self, column: Column, field: str, table: Table) -> str:
        held = {position for _, position in self.value.fields}
        part = self.value if self.key is None or int(field[1:]) in held else self.key
        return decode(part.format, column, field, table)

    def metadata(self, key: str) -> tuple[DataType, str] | None:
        return _METADATA.get(key)


@dataclass(frozen=True)
class KafkaSink:
    """A sink topic with one row per key; see :mod:`~airflow_flinkcompat.backfill.connectors.kafka_spark`."""

    topics: Topics
    key: RecordPart
    value: RecordPart
    exclusive: ClassVar[bool] = False
    replaces: ClassVar[bool] = True
    write_mode: ClassVar[str] = (
        "an upsert for every changed key, and a tombstone for every key that the range no longer contains"
    )
    needs: ClassVar[Needs] = NEEDS

    @classmethod
    def of(cls, table: Table) -> KafkaSink:
        """Sink for a table; raises :class:`BackfillError` if rows cannot be written exactly."""
        _check_options(table, _SHARED)
        if not table.primary_key:
            raise BackfillError(
                f"sink {table.name} is an upsert-kafka table without a PRIMARY KEY, which Flink refuses. "
                "Declare a PRIMARY KEY"
            )
        if written := [name for name, _, virtual in table.metadata if not virtual]:
            raise Untranslatable(
                (
                    f"sink {table.name}: a backfill cannot write the metadata column {written[0]}. Declare the "
                    "column VIRTUAL"
                ),
                table.span,
            )
        plain = [
            option for option, _ in table.options if option.endswith("csv.write-bigdecimal-in-scientific-notation")
        ]
        if plain and table.option(plain[0]) != "true":
            raise Untranslatable(
                f"sink {table.name}: a backfill does not support the option {plain[0]}. Remove the option", table.span
            )
        key, value = _parts(table, table.primary_key)
        topics = Topics.of(table)
        if key is None or len(topics.names) != 1:
            missing = "has no option key.format" if key is None else "writes to several topics"
            raise BackfillError(f"sink {table.name} {missing}, which Flink refuses", table.span)
        return cls(topics, key, value)

    @property
    def place(self) -> str:
        return self.topics.place

    def check(self, rows: PublishedRows, bounds: Range) -> None:
        compared = {comparison.column for comparison in replaced_rows(rows, bounds)}
        if not compared <= {*rows.table.primary_key} and order_column(rows) is None:
            raise BackfillError(
                f"sink {rows.name}: a key may already have a row of a later window, and the sink has no column of "
                "window_end as TIMESTAMP(3) to detect that. Add such a column to the sink and the query, or omit "
                "--from and --to to replace all rows",
                rows.table.span,
            )


def _changelog(table: Table) -> KafkaSource:
    """Refuse an upsert-kafka table as a source."""
    raise Untranslatable(
        f"table {table.name} is an upsert-kafka table, whose records replace each other, so windows over the "
        "table depend on the order of arrival. Specify a location that contains all rows with --table "
        f"{table.path[2]}=URI, or {FLINK_BATCH}",
        table.span,
    )


def _appended(table: Table) -> KafkaSink:
    """Refuse a kafka table as a sink."""
    raise Untranslatable(
        f"sink {table.name} appends to a Kafka topic, where rows cannot be replaced, so a repeated or failed run "
        "would leave duplicates. Declare the sink with connector upsert-kafka and a PRIMARY KEY, or write to a "
        f"different location with --sink {table.path[2]}=URI",
        table.span,
    )


def _check_options(table: Table, known: tuple[str, ...]) -> None:
    formats = tuple(
        f"{prefix}{table.option(option)}."
        for prefix, option in (("", "format"), ("key.", "key.format"), ("value.", "value.format"))
        if table.option(option)
    )
    for option, value in table.options:
        if option not in known and not option.startswith(("properties.", *_NEUTRAL, *formats)):
            raise Untranslatable(
                f"table {table.name}: a backfill does not support the option {option} = '{mask_secrets(value)}'. "
                "Remove the option, or specify the location of the rows with --table or --sink "
                f"{table.path[2]}=URI",
                table.span,
            )


def _parts(table: Table, key_fields: tuple[str, ...]) -> tuple[RecordPart | None, RecordPart]:
    """Assign a table's columns to the key and the value of a record."""
    prefix = table.option("key.fields-prefix", "") or ""
    include = table.option("value.fields-include", "ALL") or "ALL"
    if include not in ("ALL", "EXCEPT_KEY"):
        raise BackfillError(f"table {table.name}: value.fields-include is '{include}'. Write ALL or EXCEPT_KEY")
    if unknown := [name for name in key_fields if name not in table.physical]:
        raise BackfillError(f"table {table.name}: the key field {unknown[0]} is not a stored column", table.span)
    if prefix and (include == "ALL" or not all(name.startswith(prefix) for name in key_fields)):
        raise BackfillError(
            f"table {table.name}: because of key.fields-prefix = '{prefix}', all key fields must start with this "
            "prefix, and value.fields-include must be EXCEPT_KEY",
            table.span,
        )
    key = None
    if table.option("key.format"):
        if not key_fields:
            raise BackfillError(
                (f"table {table.name} has a key.format but no key.fields, which Flink refuses. Add key.fields"),
                table.span,
            )
        fields = tuple((name.removeprefix(prefix), table.physical.index(name)) for name in key_fields)
        key = RecordPart(format_of(table, "key."), fields)
    elif key_fields and table.option("key.fields"):
        raise BackfillError(
            f"table {table.name} has key.fields but no key.format, which Flink refuses. Add key.format", table.span
        )
    left = [name for name in table.physical if include == "ALL" or name not in key_fields]
    return key, RecordPart(format_of(table), tuple((name, table.physical.index(name)) for name in left))


def _start(table: Table) -> Position:
    mode = table.option("scan.startup.mode", "group-offsets")
    if mode in ("earliest-offset", "latest-offset", "group-offsets"):
        return Position("earliest")
    return _position(table, "startup", mode or "")


def _end(table: Table) -> Position:
    mode = table.option("scan.bounded.mode", "unbounded")
    if mode in ("unbounded", "latest-offset"):
        return Position("latest")
    return _position(table, "bounded", mode or "")


def _position(table: Table, side: str, mode: str) -> Position:
    option = {"timestamp": f"scan.{side}.timestamp-millis", "specific-offsets": f"scan.{side}.specific-offsets"}.get(
        mode
    )
    if option is None:
        raise Untranslatable(
            f"table {table.name}: scan.{side}.mode = '{mode}' does not define the history. Write timestamp, "
            f"specific-offsets or {'earliest' if side == 'startup' else 'latest'}-offset",
            table.span,
        )
    text = (table.option(option) or "").strip()
    if mode == "timestamp":
        if not re.fullmatch(r"\d+", text):
            raise BackfillError(f"table {table.name}: the option {option} is '{text}'. Write milliseconds since 1970")
        return Position("timestamp", millis=int(text))
    parts = [_OFFSETS.fullmatch(part.strip()) for part in text.split(";")]
    offsets = tuple((int(part[1]), int(part[2])) for part in parts if part)
    if len(offsets) != len(parts):
        raise BackfillError(
            f"table {table.name}: the option {option} is '{text}'. Write offsets as in "
            "partition:0,offset:42;partition:1,offset:300"
        )
    return Position("specific", offsets=offsets)


CONNECTOR = Connector(
    sources={"kafka": KafkaSource.of, "upsert-kafka": _changelog},
    sinks={"kafka": _appended, "upsert-kafka": KafkaSink.of},
    listed=4,
)
