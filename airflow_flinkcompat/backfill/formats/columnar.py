"""Flink's parquet and orc formats: their options, and types whose values are equal in Flink and Spark.

According to measurements with Flink 2.3, parquet times depend on the time zone of the TaskManager's JVM and on Java's
old calendar unless ``parquet.utc-timezone`` is true. Times are exact only if ``parquet.utc-timezone`` is true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_flinkcompat.backfill.protocols import TimeSpan
from airflow_flinkcompat.backfill.result import FLINK_BATCH, BackfillError, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted, spark_type
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.backfill.spark_sql.windows import from_micros, micros_of, timestamp
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import TIMESTAMPS, Column, DataType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

NAMES = ("parquet", "orc")
_REFORM = "1582-10-15"
_UTC, _INT64, _UNIT = "utc-timezone", "write.int64.timestamp", "timestamp.time.unit"
# Options for the layout of files, which have no effect on values.
_LAYOUT = {
    "parquet": {"batch-size", "compression", "block.size", "page.size", "dictionary.page.size", "enable.dictionary"},
    "orc": {"compress", "compress.size", "stripe.size", "row.index.stride", "create.index"},
}


@dataclass(frozen=True)
class ColumnarFormat:
    """Options of a columnar format.

    ``utc``: True if times are stored in UTC. ``int64``: True if times are stored as 64-bit microseconds.
    """

    name: str
    utc: bool = True
    int64: bool = False
    compression: str | None = None

    @property
    def prunes(self) -> bool:
        """True if the reader skips rows outside a time span."""
        return self.name == "parquet"

    def read(self, column: Column, field: str, table: Table) -> str:
        """Spark SQL for the value of a column.

        Raises :class:`Untranslatable` if Flink may read a different value.
        """
        self.check(column, table, "read")
        text = checked_value(column, field, table, self.name)
        if self.name == "orc" and column.type.name == "DATE":
            what = (
                f"{ERROR}table {table.name}: column {column.name} contains a date before {_REFORM}, which orc "
                "changes. Use parquet"
            )
            return f"IF({field} < DATE '{_REFORM}', raise_error({quoted(what)}), {text})"
        return text

    def write(self, column: Column, value: str) -> str:
        """Spark SQL that writes like Flink: INT96 for TIMESTAMP_LTZ, 64-bit microseconds for TIMESTAMP_NTZ."""
        if column.type.name not in TIMESTAMPS:
            return value
        return f"CAST({value} AS {'TIMESTAMP_NTZ' if self.int64 else 'TIMESTAMP_LTZ'})"

    @property
    def layout(self) -> dict[str, str]:
        """Options of Spark's file writer."""
        # Flink's orc format does not support zstd.
        compression = self.compression or ("zlib" if self.name == "orc" else "")
        return {"compression": compression} if compression else {}

    def check(self, column: Column, table: Table, verb: str) -> None:
        """Raise :class:`Untranslatable` for a type whose values differ between Flink and Spark."""
        if column.type.name not in TIMESTAMPS:
            return
        if self.name == "orc":
            raise Untranslatable(
                f"table {table.name}: column {column.name} of type {column.type} is not {verb} in orc, where "
                "times depend on the time zones of two machines. Declare a BIGINT and compute the time, use "
                f"parquet, or {FLINK_BATCH}",
                table.span,
            )
        if not self.utc:
            raise Untranslatable(
                f"table {table.name}: times like {column.name} are {verb} in the time zone of Flink's "
                f"TaskManagers, which the script does not show. Set 'parquet.{_UTC}' = 'true', or {FLINK_BATCH}. "
                "If the TaskManagers run in UTC, the option does not change times since 1970",
                table.span,
            )


def columnar(table: Table, name: str, settings: Mapping[str, str]) -> ColumnarFormat:
    known = _LAYOUT[name] | ({_UTC, _INT64, _UNIT} if name == "parquet" else set())
    for option, text in sorted(settings.items()):
        if option not in known:
            raise Untranslatable(
                f"table {table.name}: the option {name}.{option} = '{text}' has no exact translation to Spark. "
                f"Remove the option, or {FLINK_BATCH}",
                table.span,
            )
    if settings.get(_UNIT, "micros").lower() != "micros":
        raise Untranslatable(
            f"table {table.name}: a backfill does not support the option {name}.{_UNIT} = '{settings[_UNIT]}'. "
            "Remove the option",
            table.span,
        )
    flags = [settings.get(option, "false").strip().lower() for option in (_UTC, _INT64)]
    for option, text in zip((_UTC, _INT64), flags, strict=True):
        if text not in ("true", "false"):
            raise ValueError(f"the option {name}.{option} is '{text}'. Write true or false")
    utc, int64 = (flag == "true" for flag in flags)
    return ColumnarFormat(name, name == "orc" or utc, int64, settings.get("compression") or settings.get("compress"))


MICROSECONDS = 6
"""Number of fractional digits of a second that Spark, Delta Lake and Iceberg store."""


def column_type(kind: DataType) -> str:
    """Column type of a Flink type in Delta Lake, Iceberg and Parquet, such as ``timestamp_ntz``."""
    text = (spark_type(kind) or "").lower().replace(" ", "")
    return {"timestamp_ltz": "timestamp"}.get(text, text)


def cast_type(stored: str) -> str:
    """Name of a stored type in a cast. In a cast, a bare ``timestamp`` would depend on the session."""
    return {"timestamp": "timestamp_ltz"}.get(stored, stored)


def checked_value(column: Column, field: str, table: Table, what: str) -> str:
    """Spark SQL for a column's value; raises :class:`Untranslatable` for a type without an equivalent.

    Spark fails on a time that is more precise than declared, and on a NULL that is not allowed.
    """
    kind = column.type
    if spark_type(kind) is None or kind.name == "NULL":
        raise Untranslatable(
            f"table {table.name}: column {column.name} of type {kind} cannot be read exactly from {what}. Remove "
            f"the column from the query, or {FLINK_BATCH}",
            table.span,
        )
    text = field
    if kind.name in TIMESTAMPS and kind.parameters[0] < MICROSECONDS:
        rest = f"pmod({micros_of(field)}, {10 ** (MICROSECONDS - kind.parameters[0])})"
        text = f"IF({rest} <> 0, raise_error({quoted(finer_time_message(table.name, column))}), {field})"
    if not kind.nullable:
        message = f"{ERROR}table {table.name}: column {column.name} contains NULL, but is declared NOT NULL"
        text = f"coalesce({text}, raise_error({quoted(message)}))"
    return text


def finer_time_message(table: str, column: Column) -> str:
    """Error for a stored time that is more precise than the type of its column."""
    return (
        f"{ERROR}table {table}: column {column.name} contains a time that is more precise than {column.type}. "
        f"Declare the column as {column.type.name}({MICROSECONDS})"
    )


def stored_types(
    table: str, columns: Iterable[Column], stored: StructType, place: str, also: Mapping[str, str], *, all: bool = False
) -> dict[str, str]:
    """Stored type of each column, by name. Declared columns without a Spark type are skipped.

    ``also``: A stored type that is also accepted, by declared type. ``all``: True if the table must have no other
    columns.
    """
    real = {field.name: field.dataType.simpleString() for field in stored.fields}
    problems = []
    columns = tuple(columns)
    for column in columns:
        wanted = column_type(column.type)
        if wanted and column.name not in real:
            problems.append(f"{place} has no column {column.name} (names are case-sensitive)")
        elif wanted and real[column.name] not in (wanted, also.get(wanted)):
            problems.append(
                f"column {column.name} is {real[column.name]} at {place}, but {column.type} requires {wanted}"
            )
    others = sorted(set(real) - {column.name for column in columns})
    if all and others:
        problems.append(f"{place} has a column {others[0]} that the table does not declare")
    if problems:
        raise BackfillError(f"table {table}: {'; '.join(problems)}")
    return real


def rows_within(rows: DataFrame, span: TimeSpan | None, name: str, stored: str) -> DataFrame:
    """Keep rows that may be in a time span. Readers can use file statistics to evaluate the condition."""
    if span is None:
        return rows
    kind = "TIMESTAMP_NTZ" if stored == "timestamp_ntz" else "TIMESTAMP_LTZ"
    for operator, micros in ((">=", span.first), ("<", span.last)):
        if micros is not None:
            moment = timestamp(from_micros(micros), kind)
            rows = rows.where(f"{identifier(name)} IS NULL OR {identifier(name)} {operator} {moment}")
    return rows


def identifier(name: str) -> str:
    """A column name in Spark SQL."""
    return "`{}`".format(name.replace("`", "``"))
