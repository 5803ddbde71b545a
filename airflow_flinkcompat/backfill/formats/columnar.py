"""Flink's parquet and orc formats: their options, and columns with equal values in Flink and Spark.

Measured with Flink 2.3: its parquet times pass through the time zone of the TaskManager's JVM unless
``parquet.utc-timezone`` is true, and through Java's old calendar as well. Only with that option are they exact.
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
# Options for the layout of files, which do not affect values.
_LAYOUT = {
    "parquet": {"batch-size", "compression", "block.size", "page.size", "dictionary.page.size", "enable.dictionary"},
    "orc": {"compress", "compress.size", "stripe.size", "row.index.stride", "create.index"},
}


@dataclass(frozen=True)
class ColumnarFormat:
    """A columnar format; ``utc``: times are in UTC, ``int64``: written as 64-bit microseconds."""

    name: str
    utc: bool = True
    int64: bool = False
    compression: str | None = None

    @property
    def prunes(self) -> bool:
        """True if the reader leaves out rows outside of a range of times."""
        return self.name == "parquet"

    def read(self, column: Column, field: str, table: Table) -> str:
        """Spark SQL of a column's value. Raises :class:`Untranslatable` if Flink may read another one."""
        self.check(column, table, "read")
        text = checked_value(column, field, table, self.name)
        if self.name == "orc" and column.type.name == "DATE":
            what = (
                f"{ERROR}table {table.name}: column {column.name} contains a date before {_REFORM}, which orc changes"
            )
            return f"IF({field} < DATE '{_REFORM}', raise_error({quoted(what)}), {text})"
        return text

    def write(self, column: Column, value: str) -> str:
        """Spark SQL that writes as Flink does: INT96 for TIMESTAMP_LTZ, 64-bit microseconds for _NTZ."""
        if column.type.name not in TIMESTAMPS:
            return value
        return f"CAST({value} AS {'TIMESTAMP_NTZ' if self.int64 else 'TIMESTAMP_LTZ'})"

    @property
    def layout(self) -> dict[str, str]:
        """Options of Spark's writer."""
        compression = self.compression or ("zlib" if self.name == "orc" else "")  # Flink's orc knows no zstd
        return {"compression": compression} if compression else {}

    def check(self, column: Column, table: Table, verb: str) -> None:
        """Raise :class:`Untranslatable` for a type with different values on both sides."""
        if column.type.name not in TIMESTAMPS:
            return
        if self.name == "orc":
            raise Untranslatable(
                f"table {table.name}: column {column.name} of type {column.type} is not {verb} in "
                "orc, whose times depend on the zones of two machines; declare a BIGINT and compute "
                f"the time, use parquet, or {FLINK_BATCH}",
                table.span,
            )
        if not self.utc:
            raise Untranslatable(
                f"table {table.name}: times like {column.name} are {verb} in the time zone of Flink's "
                f"TaskManagers, which no script shows; set 'parquet.{_UTC}' = 'true' (if they run in "
                f"UTC, this changes nothing for times from 1970 on), or {FLINK_BATCH}",
                table.span,
            )


def columnar(table: Table, name: str, settings: Mapping[str, str]) -> ColumnarFormat:
    known = _LAYOUT[name] | ({_UTC, _INT64, _UNIT} if name == "parquet" else set())
    for option, text in sorted(settings.items()):
        if option not in known:
            raise Untranslatable(
                f"table {table.name}: option {name}.{option} = '{text}' has no exact translation to Spark; leave it "
                f"out, or {FLINK_BATCH}",
                table.span,
            )
    if settings.get(_UNIT, "micros").lower() != "micros":
        raise Untranslatable(
            f"table {table.name}: a backfill does not support option {name}.{_UNIT} = '{settings[_UNIT]}'; leave it "
            "out",
            table.span,
        )
    flags = [settings.get(option, "false").strip().lower() for option in (_UTC, _INT64)]
    for option, text in zip((_UTC, _INT64), flags, strict=True):
        if text not in ("true", "false"):
            raise ValueError(f"option {name}.{option} is '{text}'; write true or false")
    utc, int64 = (flag == "true" for flag in flags)
    return ColumnarFormat(name, name == "orc" or utc, int64, settings.get("compression") or settings.get("compress"))


MICROSECONDS = 6
"""Digits of a second's fraction that Spark and both table formats keep."""


def column_type(kind: DataType) -> str:
    """Column type of these tables for a Flink type, spelled as in Spark (``timestamp_ntz``, ``bigint``)."""
    text = (spark_type(kind) or "").lower().replace(" ", "")
    return {"timestamp_ltz": "timestamp"}.get(text, text)


def cast_type(stored: str) -> str:
    """The spelling of a cast to a stored type: a bare ``timestamp`` is the session's."""
    return {"timestamp": "timestamp_ltz"}.get(stored, stored)


def checked_value(column: Column, field: str, table: Table, what: str) -> str:
    """Spark SQL of a column's value; raises :class:`Untranslatable` for a type without an equivalent.

    A time finer than declared is an error while Spark runs, and so is a NULL that is not allowed.
    """
    kind = column.type
    if spark_type(kind) is None or kind.name == "NULL":
        raise Untranslatable(
            f"table {table.name}: column {column.name} of type {kind} cannot be read exactly from "
            f"{what}; leave the column out of the query, or {FLINK_BATCH}",
            table.span,
        )
    text = field
    if kind.name in TIMESTAMPS and kind.parameters[0] < MICROSECONDS:
        rest = f"pmod({micros_of(field)}, {10 ** (MICROSECONDS - kind.parameters[0])})"
        text = f"IF({rest} <> 0, raise_error({quoted(finer_time_message(table.name, column))}), {field})"
    if not kind.nullable:
        message = f"{ERROR}table {table.name}: column {column.name} contains NULL, which is not allowed"
        text = f"coalesce({text}, raise_error({quoted(message)}))"
    return text


def finer_time_message(table: str, column: Column) -> str:
    """Error for a stored time that is finer than its column's type."""
    return (
        f"{ERROR}table {table}: column {column.name} contains a time that is more precise than "
        f"{column.type}; declare it as {column.type.name}({MICROSECONDS})"
    )


def stored_types(
    table: str, columns: Iterable[Column], stored: StructType, place: str, also: Mapping[str, str], *, all: bool = False
) -> dict[str, str]:
    """The stored type of every column by name; declared ones that Spark cannot represent are skipped.

    ``also`` lists stored types that are accepted for a declared one; with ``all`` the table must have no other
    column.
    """
    real = {field.name: field.dataType.simpleString() for field in stored.fields}
    problems = []
    columns = tuple(columns)
    for column in columns:
        wanted = column_type(column.type)
        if wanted and column.name not in real:
            problems.append(f"{place} has no column {column.name} (names are case sensitive)")
        elif wanted and real[column.name] not in (wanted, also.get(wanted)):
            problems.append(
                f"column {column.name} is {real[column.name]} at {place}, but {column.type} requires {wanted}"
            )
    others = sorted(set(real) - {column.name for column in columns})
    if all and others:
        problems.append(f"{place} has a column {others[0]} that is not declared")
    if problems:
        raise BackfillError(f"table {table}: {'; '.join(problems)}")
    return real


def rows_within(rows: DataFrame, span: TimeSpan | None, name: str, stored: str) -> DataFrame:
    """Rows that may be in a span; the condition can be answered from the table's statistics."""
    if span is None:
        return rows
    kind = "TIMESTAMP_NTZ" if stored == "timestamp_ntz" else "TIMESTAMP_LTZ"
    for operator, micros in ((">=", span.first), ("<", span.last)):
        if micros is not None:
            moment = timestamp(from_micros(micros), kind)
            rows = rows.where(f"{identifier(name)} IS NULL OR {identifier(name)} {operator} {moment}")
    return rows


def identifier(name: str) -> str:
    """A column's name in Spark SQL."""
    return "`{}`".format(name.replace("`", "``"))
