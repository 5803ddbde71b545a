"""Rows of a sink that a run replaces, and rows of Delta Lake and Iceberg tables in Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from airflow_flinkcompat.backfill.formats.columnar import cast_type, checked_value, column_type, identifier, rows_within
from airflow_flinkcompat.backfill.protocols import PublishedRows, Range, TimeSpan
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.spark_sql.windows import timestamp
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Comparison(NamedTuple):
    """The comparison ``column operator time`` with ``>=`` or ``<=``. The column contains a window bound."""

    column: str
    operator: str
    moment: datetime

    def sql(self, column: str, kind: str = "TIMESTAMP_NTZ") -> str:
        """SQL of the comparison, for a column with this name and type."""
        return f"{column} {self.operator} {timestamp(self.moment, kind)}"


def replaced_rows(rows: PublishedRows, bounds: Range) -> tuple[Comparison, ...]:
    """Comparisons that select exactly the rows whose windows are in the range; empty if it is open."""
    windows = rows.windows
    size = None if windows.size is None else timedelta(microseconds=windows.size)
    found: list[Comparison] = []
    for bound, own, other, operator, name in (
        (bounds.from_, windows.start, windows.end, ">=", "window_start"),
        (bounds.to, windows.end, windows.start, "<=", "window_end"),
    ):
        if bound is None:
            continue
        if own is not None:
            found.append(Comparison(own, operator, bound))
        elif other is not None and size is not None:
            found.append(Comparison(other, operator, bound + size if operator == ">=" else bound - size))
        else:
            raise BackfillError(
                f"sink {rows.name}: a backfill of a time range replaces the rows of that range, but the sink has "
                f"no column of {name} as TIMESTAMP(3). Add such a column to the sink and the query, or omit "
                "--from and --to to replace all rows",
                rows.table.span,
            )
    return tuple(found)


def order_column(rows: PublishedRows) -> str | None:
    """Column that orders windows; None if the sink has no such column."""
    windows = rows.windows
    return windows.end or (windows.start if windows.size is not None else None)


@dataclass(frozen=True)
class LakeSource:
    """A lake table. The reader of a lake table may skip rows outside the span."""

    table: str
    columns: tuple[Column, ...]
    span: TimeSpan | None = field(default=None, kw_only=True)
    system: ClassVar[str]
    ordered: ClassVar[bool] = False

    def decode(self, column: Column, field: str, table: Table) -> str:
        return checked_value(column, field, table, self.system)

    def within(self, span: TimeSpan) -> Self:
        return replace(self, span=span)


@dataclass(frozen=True)
class LakeSink:
    """A lake sink. One commit replaces the rows of the range, or all rows of an exclusive location."""

    exclusive: bool
    replaces: ClassVar[bool] = True

    @property
    def write_mode(self) -> str:
        return f"one commit replaces {'the whole table' if self.exclusive else 'the rows of the range'}"

    def check(self, rows: PublishedRows, bounds: Range) -> None:
        self.replaced(rows, bounds)

    def replaced(self, rows: PublishedRows, bounds: Range) -> tuple[Comparison, ...]:
        if self.exclusive:
            return ()
        windows, key, compared = rows.windows, rows.table.primary_key, replaced_rows(rows, bounds)
        if compared and key and windows.end not in key and (windows.size is None or windows.start not in key):
            raise BackfillError(
                f"sink {rows.name}: because of the PRIMARY KEY ({', '.join(key)}), windows outside the range may "
                "have the same keys as windows inside, and Flink would keep only one row. Add window_end to the "
                "key, remove the key, or omit --from and --to to replace all rows",
                rows.table.span,
            )
        return compared


_KINDS = {"timestamp": "TIMESTAMP_LTZ", "timestamp_ntz": "TIMESTAMP_NTZ"}


def declared_columns(
    rows: DataFrame, columns: tuple[Column, ...], span: TimeSpan | None, stored: Mapping[str, str]
) -> DataFrame:
    """Rows that may be in a time span, as columns ``f0`` … of the declared types.

    ``stored``: Types of the table.
    """
    from pyspark.sql import functions as F

    if span is not None:
        name = columns[span.field].name
        rows = rows_within(rows, span, name, stored[name])
    return rows.select(
        *(
            (
                F.col(identifier(column.name)).cast(cast_type(kind))
                if (kind := column_type(column.type))
                else F.lit(None)
            ).alias(f"f{i}")
            for i, column in enumerate(columns)
        )
    )


def check_keys(staged: DataFrame, rows: PublishedRows) -> None:
    """Raise :class:`BackfillError` if several rows have the same primary key.

    Flink would keep only the last row.
    """
    key = rows.table.primary_key
    if key and (twice := staged.groupBy(*map(identifier, key)).count().where("count > 1").take(1)):
        values = ", ".join(map(str, twice[0][: len(key)]))
        raise BackfillError(
            f"sink {rows.name}: the query returns {twice[0][len(key)]} rows for the primary key "
            f"({', '.join(key)}) = ({values}), of which Flink would keep only one. Add window_end, and other "
            "columns that distinguish the rows, to the key"
        )


def stored_columns(frame: DataFrame, rows: PublishedRows, types: Mapping[str, str]) -> DataFrame:
    """The published rows with their column names and stored types."""
    from pyspark.sql import functions as F

    return frame.select(
        *(F.col(f"c{i}").cast(cast_type(types[c.name])).alias(c.name) for i, c in enumerate(rows.columns))
    )


def replaced_condition(replaced: tuple[Comparison, ...], types: Mapping[str, str]) -> str:
    """Spark SQL condition that selects the replaced rows, for columns of the stored types."""
    compare = (c.sql(identifier(c.column), _KINDS[types[c.column]]) for c in replaced)
    return " AND ".join(compare) or "true"
