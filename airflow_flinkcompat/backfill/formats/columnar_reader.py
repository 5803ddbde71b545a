"""Parquet and orc files as Spark reads them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.formats.text_reader import ORDER, ordered_rows
from airflow_flinkcompat.backfill.formats.typed_columns import column_type, identifier, rows_within
from airflow_flinkcompat.backfill.protocols import TimeSpan
from airflow_flinkcompat.backfill.spark.filesystem import FileSystem
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted, spark_type
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.plan.types import Column


def columns(
    session: SparkSession,
    format: str,
    table: str,
    place: str,
    stored: Sequence[Column],
    partitions: tuple[str, ...] = (),
    span: tuple[Column, TimeSpan] | None = None,
    ordered: bool = False,
) -> DataFrame:
    """The columns of parquet or orc files under their names, in the types they are declared with.

    One that no file has is NULL; one that Flink would not read so raises an error when it is asked for, and no sooner.
    """
    calendar = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"} if format == "parquet" else {}
    reader = session.read.format(format).options(recursiveFileLookup=not partitions, **calendar)
    found = {} if FileSystem(session, place).is_bare(place) else _found(reader, place)
    wanted = {column.name: column_type(column.type) for column in stored}
    real = {name: found.get(name, kind) for name, kind in wanted.items() if kind}
    held = {name: real[name] for name in real if real[name] in _alike(wanted[name])}
    schema = [f"{identifier(name)} {kind}" for name, kind in held.items()]
    rows = reader.schema(", ".join([*schema, *(f"{identifier(name)} STRING" for name in partitions)])).load(place)
    rows = ordered_rows(rows, ordered)
    if span is not None and span[0].name in held:
        rows = rows_within(rows, span[1], span[0].name, held[span[0].name])
    values = []
    for column in stored:
        name, kind = column.name, spark_type(column.type)
        message = f"{ERROR}table {table}: column {name} is {real.get(name)} in the files, which is no {column.type}"
        text = f"CAST({identifier(name)} AS {kind})" if name in held else f"raise_error({quoted(message)})"
        values.append(F.expr(text).alias(name) if kind and held.get(name) != wanted[name] else F.col(identifier(name)))
    return rows.select(*values, *(identifier(name) for name in partitions), *(ORDER if ordered else ()))


def _found(reader: DataFrameReader, place: str) -> dict[str, str]:
    """The types of the columns that are in the files; none where all files are hidden ones."""
    try:
        return {field.name: field.dataType.simpleString() for field in reader.load(place).schema.fields}
    except AnalysisException as error:
        if error.getCondition() != "UNABLE_TO_INFER_SCHEMA":
            raise
        return {}


def _alike(kind: str) -> tuple[str, ...]:
    """Times are kept in either way, and stand for those of UTC."""
    return ("timestamp_ntz", "timestamp") if kind.startswith("timestamp") else (kind,)
