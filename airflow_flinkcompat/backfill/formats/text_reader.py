"""Reader of CSV and JSON in files and topic records. Every field is the text that Flink would parse."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from airflow_flinkcompat.backfill.formats.columnar import identifier
from airflow_flinkcompat.backfill.formats.text import CsvFormat, Format, JsonFormat
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR

_LINE = "flinkcompat_line"
_TEXT = "flinkcompat_text"
# Group 1 is everything before the next number outside strings. Group 2 is the number.
_JSON_NUMBER = (
    r'(?s)\G([^"0-9-]*+(?:"(?:[^"\\]++|\\.)*+"[^"0-9-]*+)*+)'
    r"(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![0-9A-Za-z_.+-]))"
)
_JSON_OPTIONS = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}


# Order of rows. A part is a section of a file that one task reads from its beginning.
_PART = "struct(_metadata.file_modification_time, _metadata.file_path, _metadata.file_block_start)"
ORDER = {"part": _PART, "place": "monotonically_increasing_id()", "stream": "_metadata.file_path"}


def csv(
    session: SparkSession,
    table: str,
    place: str,
    format: CsvFormat,
    fields: tuple[str, ...],
    partitions: tuple[str, ...] = (),
    ordered: bool = False,
) -> DataFrame:
    """CSV fields ``f0`` … as text, split like in Flink. Additional columns store partitions and order."""
    reader = session.read.options(recursiveFileLookup=not partitions, **_csv_options(format))
    folders = [identifier(name) for name in partitions]
    schema = ", ".join([_csv_schema(format, len(fields)), *(f"{name} STRING" for name in folders)])
    rows = ordered_rows(reader.schema(schema).csv(place), ordered)
    return _csv_fields(rows, table, format, len(fields), "f", [*folders, *(ORDER if ordered else ())])


def ordered_rows(rows: DataFrame, ordered: bool) -> DataFrame:
    """Add the columns of :class:`OrderedReader` to rows, if requested."""
    return rows.select("*", *(F.expr(sql).alias(name) for name, sql in ORDER.items())) if ordered else rows


def json(
    session: SparkSession,
    table: str,
    place: str,
    format: JsonFormat,
    fields: tuple[str, ...],
    partitions: tuple[str, ...] = (),
    ordered: bool = False,
) -> DataFrame:
    """JSON fields ``f0`` … as text. Values that are not JSON strings keep their notation."""
    mode = "DROPMALFORMED" if format.ignore_parse_errors else "FAILFAST"
    reader = session.read.options(mode=mode, recursiveFileLookup=not partitions, multiLine=False, **_JSON_OPTIONS)
    rows = ordered_rows(reader.schema(_json_schema((*fields, *partitions))).json(place), ordered)
    names = [F.col(identifier(name)).alias(f"f{i}") for i, name in enumerate(fields)]
    return rows.select(*names, *(identifier(name) for name in partitions), *(ORDER if ordered else ()))


def messages(
    rows: DataFrame, binary: str, table: str, format: Format, fields: tuple[str, ...], prefix: str = "f"
) -> DataFrame:
    """Parse texts in a binary column like texts in files, into fields ``f0`` … or with another prefix.

    Other columns remain.

    NULL and ignored parse errors produce no row. Each element of a JSON array becomes a row.
    """
    text = f"{'try_validate_utf8' if format.ignore_parse_errors else 'validate_utf8'}(CAST({binary} AS STRING))"
    rows = rows.where(f"{binary} IS NOT NULL").withColumn(_TEXT, F.expr(text)).where(f"{_TEXT} IS NOT NULL")
    others = [name for name in rows.columns if name != _TEXT]
    if isinstance(format, JsonFormat):
        # A separate column stores the parsed text, because Spark would otherwise parse the text again for each use.
        rows = rows.select(*others, _json_parsed(table, format, fields).alias(_TEXT))
        rows = rows.select(*others, F.explode(_json_rows(table, format)).alias(_TEXT))
        return rows.select(
            *others, *(F.col(_TEXT).getField(name).alias(f"{prefix}{i}") for i, name in enumerate(fields))
        )
    rows = rows.withColumn(_TEXT, F.expr(_csv_line(table, format))).where(f"{_TEXT} IS NOT NULL")
    options = {key: str(value) for key, value in _csv_options(format).items()}
    parsed = F.from_csv(_TEXT, _csv_schema(format, len(fields), prefix), options)
    rows = rows.select(*others, parsed.alias(_TEXT)).select(*others, f"{_TEXT}.*")
    return _csv_fields(rows, table, format, len(fields), prefix, others)


def _json_rows(table: str, format: JsonFormat) -> Column:
    """Objects in the parsed text; NULL if there are none and parse errors are ignored."""
    parsed = F.col(_TEXT)
    refused = F.expr(f"raise_error({quoted(f'{ERROR}a record of {table} is an array that contains null')})")
    return F.when(~F.exists(parsed, lambda row: row.isNull()), parsed).otherwise(
        F.lit(None) if format.ignore_parse_errors else F.when(parsed.isNotNull(), refused)
    )


def _json_parsed(table: str, format: JsonFormat, fields: tuple[str, ...]) -> Column:
    """Objects of a JSON text, single or in an array; NULL for an ignored parse error.

    Spark's parser would convert numbers to DOUBLE before it converts them to text, so numbers are quoted first. Numbers
    in nested values are not quoted, because Flink also rewrites them, with a different notation of fractions.
    """
    options = {"mode": "PERMISSIVE" if format.ignore_parse_errors else "FAILFAST", **_JSON_OPTIONS}
    schema = ArrayType(_json_schema(fields))
    text = F.regexp_replace(_TEXT, "^\ufeff", "")
    exact = F.from_json(F.regexp_replace(text, _JSON_NUMBER, '$1"$2"'), schema, options)
    unclear = F.expr(f"raise_error({quoted(f'{ERROR}a record of {table} has fractions in a nested value')})")

    def chosen(plain: Column, exact: Column) -> Column:
        values = []
        for name in fields:
            value = F.when(plain.getField(name).rlike(r"^[\[{].*[0-9][.eE][0-9+-]"), unclear)
            value = value.when(plain.getField(name).rlike(r"^[\[{]"), plain.getField(name))
            values.append(value.otherwise(exact.getField(name)).alias(name))
        return F.when(plain.isNotNull(), F.struct(*values))

    flat = F.expr(f"instr({_TEXT}, '[') = 0 AND instr(substring({_TEXT}, instr({_TEXT}, '{{') + 1), '{{') = 0")
    return F.when(flat, exact).otherwise(F.zip_with(F.from_json(text, schema, options), exact, chosen))


def _csv_line(table: str, format: CsvFormat) -> str:
    """Spark SQL for the first line of a record. Flink ignores all other lines.

    If parse errors are ignored, an empty line becomes NULL.
    """
    quote, delimiter = (f"\\x{{{ord(character):x}}}" for character in (format.quote or ",", format.delimiter))
    ending, line = r"[\r\n]", r"^[^\r\n]*"
    first = f"regexp_extract({_TEXT}, {quoted(line)}, 0)"
    error = f"raise_error(concat({quoted(f'{ERROR}a record of {table} ')}, {{0}}, substring({_TEXT}, 1, 80)))"
    empty = "NULL" if format.ignore_parse_errors else error.format("'is empty'")
    begins = error.format("'begins with a line end: '")
    branches = [f"WHEN {_TEXT} = '' THEN {empty}", f"WHEN {_TEXT} RLIKE {quoted(f'^{ending}')} THEN {begins}"]
    if format.quote:
        inside = f"{quote}[^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+{quote}"
        plain = f"[^{quote}{delimiter}\\r\\n][^{delimiter}\\r\\n]*+"
        field = f"(?:{inside}|{plain})?"
        clear = f"{_TEXT} RLIKE {quoted(f'^{field}(?:{delimiter}{field})*+{ending}*$')}"
        whole = f"regexp_replace({_TEXT}, {quoted(f'{ending}+$')}, '')"
        unclear = error.format("'has quotes that Flink may parse differently: '")
        found = f"instr({_TEXT}, {quoted(format.quote)}) > 0"
        branches += [f"WHEN {found} AND {clear} THEN {whole}", f"WHEN {found} THEN {unclear}"]
    return f"CASE {' '.join(branches)} ELSE {first} END"


def _json_schema(fields: tuple[str, ...]) -> StructType:
    return StructType([StructField(name, StringType()) for name in fields])


def _csv_options(format: CsvFormat) -> dict[str, str | bool | int]:
    return {
        "sep": format.delimiter,
        "quote": format.quote,
        "escape": format.quote or "\\",
        # Only a quoted text can contain a line end. Without quotes, Spark can split large files.
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
    """Convert the fields from Spark's parser to Flink's values."""
    names = [f"{prefix}{i}" for i in range(count)]
    if not format.ignore_parse_errors:
        return rows.select(*others, *(F.expr(f"coalesce({name}, '')").alias(name) for name in names))
    # Flink keeps a line with too few fields, with NULL for missing fields. Flink skips a line with too many fields.
    parts = f"size(split({_LINE}, concat('\\\\Q', {quoted(format.delimiter)}, '\\\\E'), -1))"
    unclear = f"raise_error(concat('{ERROR}a line of {table} has quotes and the wrong number of fields: ', {_LINE}))"
    fields = f"IF({_LINE} IS NULL, {count}, " + (
        f"IF(instr({_LINE}, {quoted(format.quote)}) > 0, {unclear}, {parts}))" if format.quote else f"{parts})"
    )
    rows = rows.withColumn("n", F.expr(fields))
    trailing = f"(n = {count + 1} AND {_LINE} LIKE {quoted('%' + format.delimiter)})"
    rows = rows.where(f"n <= {count} OR {trailing}")
    return rows.select(
        *others, *(F.expr(f"IF(n > {i}, coalesce({name}, ''), NULL)").alias(name) for i, name in enumerate(names))
    )
