"""A Kafka topic whose records are parsed once in a run, as far as needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Self

from airflow_flinkcompat.backfill.connectors.kafka import KafkaSource
from airflow_flinkcompat.backfill.protocols import BackfillSource
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import Column


@dataclass(frozen=True)
class ParsedTopic(KafkaSource):
    """A topic whose reader decodes the rows.

    Attributes:
        columns: Stored columns of the table.
        needed: Indexes of the stored columns to read; None for all columns.
        stamped: True if the timestamps of records are read.
    """

    columns: tuple[Column, ...]
    declared: Table = field(compare=False, repr=False)
    needed: frozenset[int] | None = None
    stamped: bool = False

    @classmethod
    def of(cls, table: Table) -> Self:
        made = KafkaSource.of(table)
        return cls(
            **{each.name: getattr(made, each.name) for each in fields(made)}, columns=table.stored, declared=table
        )

    def decode(self, column: Column, field: str, table: Table) -> str:
        """Return the field unchanged, because the reader decodes it."""
        super().decode(column, field, table)
        return field

    def selecting(self, needed: frozenset[int], metadata: frozenset[str]) -> Self:
        stamped = self.stamped or any(key.startswith("timestamp") for key in metadata)
        return replace(self, needed=needed | (self.needed or frozenset()), stamped=stamped)

    def selected_by(self, reads: Iterable[BackfillSource]) -> Self:
        """Select all columns that some reads of this topic select."""
        own = [each for each in reads if isinstance(each, ParsedTopic) and each.table == self.table]
        needed = frozenset[int]().union(*(each.needed or () for each in own))
        return replace(self, needed=needed, stamped=any(each.stamped for each in own))
