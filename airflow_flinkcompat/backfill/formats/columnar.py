"""Flink's parquet and orc formats: their options, and columns with equal values in Flink and Spark.

Measured with Flink 2.3: its parquet times pass through the time zone of the TaskManager's JVM unless
``parquet.utc-timezone`` is true, and through Java's old calendar as well. Only with that option are they exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_flinkcompat.backfill.errors import FLINK_BATCH, Untranslatable
from airflow_flinkcompat.backfill.formats.typed_columns import checked_value
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import TIMESTAMPS, Column

NAMES = ("parquet", "orc")
_REFORM = "1582-10-15"
_UTC, _INT64, _UNIT = "utc-timezone", "write.int64.timestamp", "timestamp.time.unit"
# How files are laid out; no value depends on it.
_LAYOUT = {
    "parquet": {"batch-size", "compression", "block.size", "page.size", "dictionary.page.size", "enable.dictionary"},
    "orc": {"compress", "compress.size", "stripe.size", "row.index.stride", "create.index"},
}


@dataclass(frozen=True)
class ColumnarFormat:
    """A format with own types; ``utc``: times are in UTC, ``int64``: written as 64-bit microseconds."""

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
            what = f"{ERROR}table {table.name}: column {column.name} holds a date before {_REFORM}, which orc changes"
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


def columnar(table: Table, name: str, given: Mapping[str, str]) -> ColumnarFormat:
    """The format with its options.

    Raises :class:`Untranslatable` for one that is not honoured, ValueError for a value that is none.
    """
    known = _LAYOUT[name] | ({_UTC, _INT64, _UNIT} if name == "parquet" else set())
    for option, text in sorted(given.items()):
        if option not in known:
            raise Untranslatable(
                f"table {table.name}: option {name}.{option} = '{text}' has no exact translation to Spark; leave it "
                f"out, or {FLINK_BATCH}",
                table.span,
            )
    if given.get(_UNIT, "micros").lower() != "micros":
        raise Untranslatable(
            f"table {table.name}: a backfill does not support option {name}.{_UNIT} = '{given[_UNIT]}'; leave it out",
            table.span,
        )
    flags = [given.get(option, "false").strip().lower() for option in (_UTC, _INT64)]
    for option, text in zip((_UTC, _INT64), flags, strict=True):
        if text not in ("true", "false"):
            raise ValueError(f"option {name}.{option} is '{text}'; write true or false")
    utc, int64 = (flag == "true" for flag in flags)
    return ColumnarFormat(name, name == "orc" or utc, int64, given.get("compression") or given.get("compress"))
