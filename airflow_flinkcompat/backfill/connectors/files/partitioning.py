"""Partition folders as Flink lays them out, ``dt=2024-01-01/``, and what the values of their names stand for."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_flinkcompat.backfill.errors import FLINK_BATCH, BackfillError, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import CHARACTERS, INTEGERS, Column

# Flink writes a DATE as its number of days, which it then does not read; times and decimals do no better.
_TYPES = (*CHARACTERS, *INTEGERS, "BOOLEAN")
_POLICY = "sink.partition-commit.policy.kind"
_SUCCESS_FILE = "sink.partition-commit.success-file.name"
_SHAPES = {**dict.fromkeys(INTEGERS, "^[+-]?[0-9]+$"), "BOOLEAN": "^(?i)(true|false)$"}


@dataclass(frozen=True)
class Partitioning:
    """How a table's rows lie in folders.

    ``columns`` are the partition columns, outermost first; ``default_name`` stands for NULL and the empty text;
    ``success_file`` marks a folder that is complete.
    """

    columns: tuple[Column, ...] = ()
    default_name: str = ""
    success_file: str | None = None

    @classmethod
    def of(cls, table: Table) -> Partitioning:
        """Raises :class:`Untranslatable` for a partition column of a type whose names are not known exactly."""
        kinds = {column.name: column for column in table.columns}
        columns = tuple(kinds[name] for name in table.partitioned_by if name in table.physical)
        for column in columns:
            if column.type.name not in _TYPES:
                raise Untranslatable(
                    f"table {table.name}: partition column {column.name} of type {column.type} is neither read nor "
                    f"written by a backfill; {FLINK_BATCH}",
                    table.span,
                )
        if len(columns) != len(table.partitioned_by) or len(columns) == len(table.physical):
            raise BackfillError(
                f"table {table.name}: partition columns are stored ones, and there is at least one more", table.span
            )
        return cls(
            columns,
            table.option("partition.default-name", "__DEFAULT_PARTITION__") or "",
            table.option(_SUCCESS_FILE, "_SUCCESS") if "success-file" in (table.option(_POLICY) or "") else None,
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def check_commit(self, table: Table) -> None:
        """Raises :class:`Untranslatable` where committing a partition does more than write files."""
        others = {kind.strip() for kind in (table.option(_POLICY) or "").split(",")} - {"", "success-file"}
        if others:
            raise Untranslatable(
                f"sink {table.name}: {_POLICY} '{', '.join(sorted(others))}' is not carried out by a backfill; write "
                f"elsewhere with --sink {table.path[2]}=URI",
                table.span,
            )

    def value(self, column: Column, field: str, table: Table) -> str:
        """Spark SQL of a partition column's value from the name of its folder."""
        text, kind = f"nullif({field}, {quoted(self.default_name)})", column.type
        if kind.name not in CHARACTERS:
            shape = quoted(_SHAPES[kind.name])
            value = f"try_cast({text} AS {kind.name})"
            what = quoted(f"{ERROR}table {table.name}: a folder is named {column.name}=")
            refused = f"raise_error(concat({what}, {text}, {quoted(f', which is no {kind}')}))"
            text = (
                f"(CASE WHEN {text} IS NULL THEN NULL WHEN {text} RLIKE {shape} AND {value} IS NOT NULL THEN {value} "
                f"ELSE {refused} END)"
            )
        return text

    def folder(self, column: Column, value: str) -> str:
        """Spark SQL of the name a folder gets for a value."""
        return f"coalesce(nullif(CAST({value} AS STRING), ''), {quoted(self.default_name)})"


PLAIN = Partitioning()
"""All files in one folder, or in folders that mean nothing."""
