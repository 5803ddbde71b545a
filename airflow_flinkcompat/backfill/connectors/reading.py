"""Text as Spark reads it, from files and from records of a topic: every field as the text Flink would see."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from airflow_flinkcompat.backfill.connectors.text import CsvFormat, Format, JsonFormat
from airflow_flinkcompat.backfill.expressions import quoted
from airflow_flinkcompat.plan.translations import ERROR

_LINE = "flinkcompat_line"
_TEXT = "flinkcompat_text"
_JSON_OPTIONS = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}


def csv(session: SparkSession, table: str, place: str, format: CsvFormat, fields: tuple[str, ...]) -> DataFrame:
    """All fields ``f0`` … as text, exactly as Flink splits a line; an empty field is an empty text."""
    reader = session.read.options(recursiveFileLookup=True, **_csv_options(format))
    rows = reader.schema(_csv_schema(format, len(fields))).csv(place)
    return _csv_fields(rows, table, format, len(fields), "f")


def json(session: SparkSession, table: str, place: str, format: JsonFormat, fields: tuple[str, ...]) -> DataFrame:
    """All fields ``f0`` … as text; what is no text in json keeps the words it is written with."""
    mode = "DROPMALFORMED" if format.ignore_parse_errors else "FAILFAST"
    reader = session.read.options(mode=mode, recursiveFileLookup=True, multiLine=False, **_JSON_OPTIONS)
    return reader.schema(_json_schema(fields)).json(place).toDF(*(f"f{i}" for i in range(len(fields))))


def messages(
    rows: DataFrame, binary: str, table: str, format: Format, fields: tuple[str, ...], prefix: str = "f"
) -> DataFrame:
    """Fields ``f0`` … (or by another prefix) of the texts in a binary column beside all other columns, as in files.

    NULL and what is no row (with parse errors ignored) drop out; a json array gives a row for every element.
    """
    lenient = format.ignore_parse_errors
    text = f"{'try_validate_utf8' if lenient else 'validate_utf8'}(CAST({binary} AS STRING))"
    rows = rows.where(f"{binary} IS NOT NULL").withColumn(_TEXT, F.expr(text)).where(f"{_TEXT} IS NOT NULL")
    others = [name for name in rows.columns if name != _TEXT]
    if isinstance(format, JsonFormat):
        options = {"mode": "PERMISSIVE" if lenient else "FAILFAST", **_JSON_OPTIONS}
        parsed = F.from_json(_TEXT, ArrayType(_json_schema(fields)), options)
        rows = rows.select(*others, F.explode(parsed).alias(_TEXT)).where(f"{_TEXT} IS NOT NULL")
        return rows.select(
            *others, *(F.col(_TEXT).getField(name).alias(f"{prefix}{i}") for i, name in enumerate(fields))
        )
    empty = "false" if lenient else f"raise_error('{ERROR}a record of {table} is empty')"
    rows = rows.where(f"IF({_TEXT} = '', {empty}, true)")
    options = {key: str(value) for key, value in _csv_options(format).items()}
    parsed = F.from_csv(_TEXT, _csv_schema(format, len(fields), prefix), options)
    rows = rows.select(*others, parsed.alias(_TEXT)).select(*others, f"{_TEXT}.*")
    return _csv_fields(rows, table, format, len(fields), prefix, others)


def _json_schema(fields: tuple[str, ...]) -> StructType:
    return StructType([StructField(name, StringType()) for name in fields])


def _csv_options(format: CsvFormat) -> dict[str, str | bool | int]:
    return {
        "sep": format.delimiter,
        "quote": format.quote,
        "escape": format.quote or "\\",
        # Only a text can hold a line's end, in quotes; without quotes big files can be split.
        "multiLine": bool(format.quote),
        "mode": "PERMISSIVE" if format.ignore_parse_errors else "FAILFAST",
        "emptyValue": "",
        "positiveInf": "Infinity",
        "maxCharsPerColumn": -1,
        "columnNameOfCorruptRecord": _LINE,
    }


def _csv_schema(format: CsvFormat, count: int, prefix: str = "f") -> str:
    names = [f"{prefix}{i}" for i in range(count)] + [_LINE] * format.ignore_parse_errors
    return ", ".join(f"{name} STRING" for name in names)


def _csv_fields(
    rows: DataFrame, table: str, format: CsvFormat, count: int, prefix: str, others: Sequence[str] = ()
) -> DataFrame:
    """The fields as Flink has them, from what Spark's parser gives."""
    names = [f"{prefix}{i}" for i in range(count)]
    if not format.ignore_parse_errors:
        return rows.select(*others, *(F.expr(f"coalesce({name}, '')").alias(name) for name in names))
    # Flink keeps a line that is too short, with NULL for what is missing, and skips one that is too long.
    given = f"size(split({_LINE}, concat('\\\\Q', {quoted(format.delimiter)}, '\\\\E'), -1))"
    unclear = f"raise_error(concat('{ERROR}a line of {table} has quotes and the wrong number of fields: ', {_LINE}))"
    fields = f"IF({_LINE} IS NULL, {count}, " + (
        f"IF(instr({_LINE}, {quoted(format.quote)}) > 0, {unclear}, {given}))" if format.quote else f"{given})"
    )
    rows = rows.withColumn("n", F.expr(fields))
    trailing = f"(n = {count + 1} AND {_LINE} LIKE {quoted('%' + format.delimiter)})"
    rows = rows.where(f"n <= {count} OR {trailing}")
    return rows.select(
        *others, *(F.expr(f"IF(n > {i}, coalesce({name}, ''), NULL)").alias(name) for i, name in enumerate(names))
    )
