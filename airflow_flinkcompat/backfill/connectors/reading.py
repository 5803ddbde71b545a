"""Text files as Spark reads them: every field as the text Flink would see."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from airflow_flinkcompat.backfill.connectors.text import CsvFormat, JsonFormat
from airflow_flinkcompat.backfill.expressions import quoted
from airflow_flinkcompat.plan.translations import ERROR

_LINE = "flinkcompat_line"


def csv(session: SparkSession, table: str, place: str, format: CsvFormat, fields: tuple[str, ...]) -> DataFrame:
    """All fields ``f0`` … as text, exactly as Flink splits a line; an empty field is an empty text."""
    names = [f"f{i}" for i in range(len(fields))]
    reader = session.read.options(
        sep=format.delimiter,
        quote=format.quote,
        escape=format.quote or "\\",
        # Only a text can hold a line's end, in quotes; without quotes big files can be split.
        multiLine=bool(format.quote),
        recursiveFileLookup=True,
        mode="PERMISSIVE" if format.ignore_parse_errors else "FAILFAST",
        emptyValue="",
        positiveInf="Infinity",
        maxCharsPerColumn=-1,
    )
    if not format.ignore_parse_errors:
        rows = reader.schema(", ".join(f"{name} STRING" for name in names)).csv(place)
        return rows.select(*(F.expr(f"coalesce({name}, '')").alias(name) for name in names))
    # Flink keeps a line that is too short, with NULL for what is missing, and skips one that is too long.
    columns = ", ".join(f"{name} STRING" for name in names)
    rows = reader.option("columnNameOfCorruptRecord", _LINE).schema(f"{columns}, {_LINE} STRING").csv(place)
    given = f"size(split({_LINE}, concat('\\\\Q', {quoted(format.delimiter)}, '\\\\E'), -1))"
    unclear = f"raise_error(concat('{ERROR}a line of {table} has quotes and the wrong number of fields: ', {_LINE}))"
    count = f"IF({_LINE} IS NULL, {len(names)}, " + (
        f"IF(instr({_LINE}, {quoted(format.quote)}) > 0, {unclear}, {given}))" if format.quote else f"{given})"
    )
    rows = rows.withColumn("n", F.expr(count))
    trailing = f"(n = {len(names) + 1} AND {_LINE} LIKE {quoted('%' + format.delimiter)})"
    rows = rows.where(f"n <= {len(names)} OR {trailing}")
    return rows.select(
        *(F.expr(f"IF(n > {i}, coalesce({name}, ''), NULL)").alias(name) for i, name in enumerate(names))
    )


def json(session: SparkSession, table: str, place: str, format: JsonFormat, fields: tuple[str, ...]) -> DataFrame:
    """All fields ``f0`` … as text; what is no text in json keeps the words it is written with."""
    reader = session.read.options(
        mode="DROPMALFORMED" if format.ignore_parse_errors else "FAILFAST",
        allowSingleQuotes=False,
        allowNonNumericNumbers=False,
        recursiveFileLookup=True,
        multiLine=False,
    )
    schema = StructType([StructField(name, StringType()) for name in fields])
    return reader.schema(schema).json(place).toDF(*(f"f{i}" for i in range(len(fields))))
