"""A Kafka topic with an archive of its older records. The archive may store partitions and offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from airflow_flinkcompat.backfill.connectors.kafka import KafkaSource
from airflow_flinkcompat.backfill.protocols import BackfillSource, Needs, TimeSpan
from airflow_flinkcompat.backfill.result import Untranslatable
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import BIGINT, INT, STRING, Column, DataType

_METADATA = {"topic": (STRING, "m_topic"), "partition": (INT, "m_partition"), "offset": (BIGINT, "m_offset")}


@dataclass(frozen=True)
class TopicWithArchive:
    """A table whose older rows are read from an archive, and whose newer rows are read from a topic.

    ``archive``: Source of the same rows, including rows that the topic has deleted. ``span``: Range of event time that
    is needed. The archive may omit rows outside the range.
    """

    topic: KafkaSource
    archive: BackfillSource
    declared: Table
    span: TimeSpan | None = field(default=None, kw_only=True)
    ordered: ClassVar[bool]

    @property
    def table(self) -> str:
        return self.topic.table

    @property
    def place(self) -> str:
        return f"{self.archive.place}, then {self.topic.place}"

    @property
    def needs(self) -> Needs:
        return self.topic.needs | self.archive.needs

    def within(self, span: TimeSpan) -> Self:
        return replace(self, span=span)

    def decode(self, column: Column, field: str, table: Table) -> str:
        """Return the field unchanged, because both sides decode their rows while reading."""
        for side in (self.topic, self.archive):
            side.decode(column, field, table)
        return field


@dataclass(frozen=True)
class OffsetArchive(TopicWithArchive):
    """A topic with an archive that stores offsets. The archive is read to its end, then the topic.

    Attributes:
        stored: The table of the archive.
        partition: Index of the partition column among the archive's stored columns.
        offset: Index of the offset column among the archive's stored columns.
    """

    stored: Table
    partition: int
    offset: int
    ordered: ClassVar[bool] = True

    @classmethod
    def of(
        cls, table: Table, topic: KafkaSource, archive: Callable[[Table], BackfillSource], names: str
    ) -> OffsetArchive:
        partition, offset, *more = [*(name.strip().strip("`") for name in names.split(",")), "", ""][:3]
        if not (partition and offset) or any(more):
            raise InputError(
                f"history of {table.path[2]}: {names!r} is not a pair of columns. Specify the archive's columns "
                "of partition and offset, as in URI#kafka_partition,kafka_offset, or the event time up to which "
                "the archive is read, as in URI#2026-01-31T00:00:00Z"
            )
        require_one_topic(table, topic)
        if topic.start.mode == "timestamp":
            raise Untranslatable(
                (
                    f"table {table.name} starts at a timestamp (scan.startup.mode), but its archive stores only "
                    "offsets: declare a start at offsets or at the earliest offset"
                ),
                table.span,
            )
        added = tuple(
            Column(name, kind) for name, kind in ((partition, INT), (offset, BIGINT)) if name not in table.physical
        )
        columns = (*table.stored, *added)
        physical = tuple(column.name for column in columns)
        stored = replace(table, columns=columns, physical=physical, metadata=(), computed=(), partitioned_by=())
        places = physical.index(partition), physical.index(offset)
        return cls(topic, archive(stored), table, stored, *places)

    def metadata(self, key: str) -> tuple[DataType, str] | None:
        return _METADATA.get(key)


def topic_of(source: BackfillSource) -> KafkaSource | None:
    found = source.topic if isinstance(source, TopicWithArchive) else source
    return found if isinstance(found, KafkaSource) else None


def require_one_topic(table: Table, topic: KafkaSource) -> None:
    """Check that one archive can contain all records of a table."""
    if len(topic.topics.names) > 1:
        raise Untranslatable(
            (f"table {table.name} reads several topics, but an archive can replace only one topic"), table.span
        )
