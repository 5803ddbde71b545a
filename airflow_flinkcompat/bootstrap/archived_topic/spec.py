"""A topic and an archive of its records, which tells of each row the partition and the offset it had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from airflow_flinkcompat.backfill.connectors.kafka.spec import KafkaSource
from airflow_flinkcompat.backfill.errors import BackfillError, Untranslatable
from airflow_flinkcompat.backfill.protocols import BackfillSource, Needs, TimeSpan
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import BIGINT, INT, STRING, Column, DataType

_METADATA = {"topic": (STRING, "m_topic"), "partition": (INT, "m_partition"), "offset": (BIGINT, "m_offset")}


@dataclass(frozen=True)
class ArchivedTopic:
    """A table read from an archive as far as that goes, and from its topic from there on.

    Attributes:
        topic: Its records, with how far they are read.
        archive: The same table with the columns that tell partition and offset.
        declared: The table as it is declared.
        stored: The table of the archive.
        partition: The position of the partition among its stored columns.
        offset: The position of the offset.
        span: The archive may leave out rows outside of it.
    """

    topic: KafkaSource
    archive: BackfillSource
    declared: Table
    stored: Table
    partition: int
    offset: int
    span: TimeSpan | None = None
    ordered: ClassVar[bool] = True

    @classmethod
    def of(
        cls, table: Table, topic: KafkaSource, archive: Callable[[Table], BackfillSource], names: str
    ) -> ArchivedTopic:
        """The rows of both.

        Args:
            table: The table.
            topic: Its records.
            archive: Makes the archive of a table.
            names: The archive's columns of partition and offset, ``p,o``.

        Returns:
            The source.

        Raises:
            BackfillError: These are not two columns, or the archive is not read exactly.
        """
        partition, offset, *more = [*(name.strip().strip("`") for name in names.split(",")), "", ""][:3]
        if not (partition and offset) or any(more):
            raise BackfillError(
                f"table {table.name}: the archive's columns are named {names!r}; name those of partition and offset, "
                "as in URI#kafka_partition,kafka_offset"
            )
        if len(topic.topics.names) > 1:
            raise Untranslatable(f"table {table.name}: of several topics no archive is read yet", table.span)
        if topic.start.mode == "timestamp":
            raise Untranslatable(
                f"table {table.name} begins at a moment (scan.startup.mode), and an archive tells offsets alone",
                table.span,
            )
        beside = tuple(
            Column(name, kind) for name, kind in ((partition, INT), (offset, BIGINT)) if name not in table.physical
        )
        columns = (*table.stored, *beside)
        physical = tuple(column.name for column in columns)
        stored = replace(table, columns=columns, physical=physical, metadata=(), computed=(), partitioned_by=())
        places = physical.index(partition), physical.index(offset)
        return cls(topic, archive(stored), table, stored, *places)

    @property
    def table(self) -> str:
        """The table's name."""
        return self.topic.table

    @property
    def place(self) -> str:
        """Both places."""
        return f"{self.archive.place}, then {self.topic.place}"

    @property
    def needs(self) -> Needs:
        """What both need."""
        return self.topic.needs | self.archive.needs

    def within(self, span: TimeSpan) -> ArchivedTopic:
        """The same, of which the archive may leave out rows.

        Args:
            span: Of the rows that are needed.

        Returns:
            The source.
        """
        return replace(self, span=span)

    def decode(self, column: Column, field: str, table: Table) -> str:
        """The field itself: each side's rows are decoded where they are read.

        Args:
            column: A physical column.
            field: The raw field.
            table: The table.

        Returns:
            Spark SQL of its value.

        Raises:
            Untranslatable: One side does not read it exactly.
        """
        for side in (self.topic, self.archive):
            side.decode(column, field, table)
        return field

    def metadata(self, key: str) -> tuple[DataType, str] | None:
        """What METADATA FROM ``key`` reads.

        Args:
            key: Its name.

        Returns:
            Its type and Spark SQL over the raw frame; None: the archive does not tell it.
        """
        return _METADATA.get(key)
