"""Flink's csv and json formats: their options, and Spark SQL that reads and writes fields as text.

In measurements with Flink 2.3's filesystem connector, Flink and Spark read equal values and write equal bytes. If Flink
would reject a text, Spark fails too, unless the format ignores parse errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from airflow_flinkcompat.backfill.result import BackfillError, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import quoted, spark_type
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import APPROXIMATE, CHARACTERS, INTEGERS, Column, DataType

_UNQUOTED_LENGTH = 24  # Flink quotes every longer text.
_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\\\": "\\"}
_SQL_TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}%s[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{0,9})?"
_DECIMAL = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"


@dataclass(frozen=True)
class CsvFormat:
    """Options of the csv format.

    ``quote`` is "" if quoting is off; ``null_literal`` is None if no text means NULL.
    """

    delimiter: str = ","
    quote: str = '"'
    null_literal: str | None = None
    ignore_parse_errors: bool = False
    name = "csv"


@dataclass(frozen=True)
class JsonFormat:
    """Options of the json format. ``separator`` stands between date and time ("T" for ISO-8601)."""

    separator: str = " "
    ignore_parse_errors: bool = False
    ignore_null_fields: bool = False
    plain_decimals: bool = False
    name = "json"


Format = CsvFormat | JsonFormat


def format_of(table: Table, part: str = "") -> Format:
    """Format that a table declares. If ``part`` is "key.", the format of record keys."""
    options = dict(table.options)
    key = next((key for key in ((f"{part}format",) if part else ("format", "value.format")) if key in options), None)
    name = options[key] if key else None
    if key is None or name not in _READERS:
        declared = f"format {name}" if name else "no format"
        raise Untranslatable(
            f"table {table.name} declares {declared}, but a backfill supports only csv and json, and in files "
            "also parquet and orc",
            table.span,
        )
    prefix = f"{key.removesuffix('format')}{name}."
    settings = {option.removeprefix(prefix): value for option, value in options.items() if option.startswith(prefix)}
    known, build = _READERS[name]
    for option, value in sorted(settings.items()):
        if option not in known:
            raise Untranslatable(
                f"table {table.name}: the option {prefix}{option} = '{value}' has no exact translation to Spark. "
                "Remove the option, or compute these rows with Flink in batch mode",
                table.span,
            )
    try:
        return build(settings)
    except ValueError as error:
        raise BackfillError(f"table {table.name}: {error}", table.span) from None


def _flag(settings: Mapping[str, str], option: str) -> bool:
    value = settings.get(option, "false").strip().lower()
    if value not in ("true", "false"):
        raise ValueError(f"the option {option} is '{settings[option]}'. Write true or false")
    return value == "true"


def _character(settings: Mapping[str, str], option: str, default: str) -> str:
    value = settings.get(option, default)
    value = _ESCAPES.get(value, value)
    if len(value) != 1:
        raise ValueError(f"the option {option} is '{value}'. Write a single character")
    return value


def _csv(settings: Mapping[str, str]) -> CsvFormat:
    quote = _character(settings, "quote-character", '"')
    return CsvFormat(
        delimiter=_character(settings, "field-delimiter", ","),
        quote="" if _flag(settings, "disable-quote-character") else quote,
        null_literal=settings.get("null-literal"),
        ignore_parse_errors=_flag(settings, "ignore-parse-errors"),
    )


def _json(settings: Mapping[str, str]) -> JsonFormat:
    standard = settings.get("timestamp-format.standard", "SQL").upper()
    if standard not in ("SQL", "ISO-8601"):
        raise ValueError(f"the option timestamp-format.standard is '{standard}'. Write SQL or ISO-8601")
    if _flag(settings, "fail-on-missing-field"):
        raise ValueError(
            "the option fail-on-missing-field = 'true' has no exact translation to Spark. Remove the option"
        )
    return JsonFormat(
        separator="T" if standard == "ISO-8601" else " ",
        ignore_parse_errors=_flag(settings, "ignore-parse-errors"),
        ignore_null_fields=_flag(settings, "encode.ignore-null-fields"),
        plain_decimals=_flag(settings, "encode.decimal-as-plain-number"),
    )


_CSV_OPTIONS = {"field-delimiter", "quote-character", "disable-quote-character", "null-literal", "ignore-parse-errors"}
# Flink 2.3 ignores this option when it writes decimals.
_CSV_OPTIONS |= {"write-bigdecimal-in-scientific-notation"}
_JSON_OPTIONS = {"timestamp-format.standard", "ignore-parse-errors", "fail-on-missing-field"}
_JSON_OPTIONS |= {"encode.ignore-null-fields", "encode.decimal-as-plain-number", "map-null-key.mode"}
_JSON_OPTIONS |= {"map-null-key.literal", "decode.json-parser.enabled"}
_READERS: dict[str, tuple[set[str], Callable[[Mapping[str, str]], Format]]] = {
    "csv": (_CSV_OPTIONS, _csv),
    "json": (_JSON_OPTIONS, _json),
}


# --- reading ----------------------------------------------------------------------------------------------------------


def decode(format: Format, column: Column, text: str, table: Table) -> str:
    """Spark SQL that converts a field's text to the column's value.

    The text is NULL if the field is missing.
    """
    kind = column.type
    if spark_type(kind) is None or kind.name == "NULL":
        raise Untranslatable(
            f"table {table.name}: column {column.name} of type {kind} cannot be read exactly from {format.name}. "
            "Remove the column from the query, or compute these rows with Flink in batch mode",
            table.span,
        )
    if isinstance(format, CsvFormat) and format.null_literal is not None:
        text = f"nullif({text}, {quoted(format.null_literal)})"
    if kind.name in CHARACTERS:
        return text
    if kind.name == "BOOLEAN":
        return f"(lower(btrim({text}, ' \\t\\r\\n')) = 'true')"
    what = f"table {table.name}, column {column.name}: "
    good, odd = _value(format, kind)
    refused = _raise(what, text, f" is not a valid {kind}")
    bad = "NULL" if format.ignore_parse_errors else refused
    # Every occurrence of {v} is the same text, and Spark evaluates equal expressions only once.
    branches = [f"WHEN {text} IS NULL THEN NULL", *(f"WHEN {test} THEN {value}" for test, value in good)]
    branches += [f"WHEN {test} THEN {_raise(what, text, ' is parsed by Flink with its own rules')}" for test in odd]
    body = f"(CASE {' '.join(branches)} ELSE {bad} END)".replace("{v}", text).replace(
        "{t}", f"btrim({text}, ' \\t\\r\\n')"
    )
    return f"coalesce({body}, {_raise(what, text, ' where NULL is not allowed')})" if not kind.nullable else body


def _raise(what: str, text: str, why: str) -> str:
    return f"raise_error(concat({quoted(ERROR + what)}, coalesce(substring({text}, 1, 80), 'NULL'), {quoted(why)}))"


def _value(format: Format, kind: DataType) -> tuple[list[tuple[str, str]], list[str]]:
    """Pairs (test, value) for texts that Flink accepts, and tests for texts that Flink reads differently.

    For example, Flink and Spark interpret the month 13 differently.
    """
    if kind.name in INTEGERS:
        good = [(f"try_cast({{t}} AS {kind.name}) IS NOT NULL", f"try_cast({{t}} AS {kind.name})")]
        # Flink truncates a JSON number with a fraction but rejects a JSON text with one. Both texts look alike here.
        return good, ["{t} RLIKE '[0-9][.eE]'"] if isinstance(format, JsonFormat) else []
    if kind.name == "DECIMAL":
        return [(f"{{v}} RLIKE '{_DECIMAL}'", f"try_cast({{v}} AS {spark_type(kind)})")], []
    if kind.name in APPROXIMATE:
        plain = "NOT {t} RLIKE '[a-zA-Z]' OR {t} RLIKE '^[0-9+.-]*[eE][0-9+-]*$|^[+-]?(NaN|Infinity)$'"
        return [(f"({plain}) AND try_cast({{t}} AS {kind.name}) IS NOT NULL", f"try_cast({{t}} AS {kind.name})")], []
    if kind.name == "DATE":
        shape = "^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}$" if isinstance(format, CsvFormat) else "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
        return [(f"{{v}} RLIKE '{shape}' AND try_cast({{v}} AS DATE) IS NOT NULL", "try_cast({v} AS DATE)")], [
            f"{{v}} RLIKE '{shape}'"
        ]
    separator = format.separator if isinstance(format, JsonFormat) else " "
    text = "{t}" if isinstance(format, CsvFormat) else "{v}"
    zone = "Z" if kind.name == "TIMESTAMP_LTZ" else ""
    shape = f"{text} RLIKE '^{_SQL_TIME % separator}{zone}$'"
    precision = kind.parameters[0] if kind.parameters else 6
    # Truncating the text truncates the fraction like Flink does. The truncation also removes a final Z or dot.
    digits = f"trim(TRAILING 'Z' FROM {text})" if zone else text
    length = 20 + precision if precision else 19
    cut = f"try_cast(trim(TRAILING '.' FROM substring({digits}, 1, {length})) AS TIMESTAMP_NTZ)"
    value = f"CAST({cut} AS TIMESTAMP_LTZ)" if zone else cut
    return [(f"{shape} AND {cut} IS NOT NULL", value)], [shape]


# --- writing ----------------------------------------------------------------------------------------------------------


def encode_line(
    format: Format, columns: tuple[Column, ...], values: tuple[str, ...] = (), *, record: bool = False
) -> str:
    """Spark SQL for one line of text. In a record of a topic (``record``), csv keeps all decimal digits."""
    values = values or tuple(f"c{i}" for i in range(len(columns)))
    if isinstance(format, CsvFormat):
        fields = [_csv_field(format, column.type, name, record) for column, name in zip(columns, values, strict=True)]
        return f"concat_ws({quoted(format.delimiter)}, {', '.join(fields)})"
    members = []
    for column, name in zip(columns, values, strict=True):
        value = f"concat({quoted(_json_text(column.name) + ':')}, {_json_value(format, column.type, name)})"
        skipped = "NULL" if format.ignore_null_fields else quoted(_json_text(column.name) + ":null")
        members.append(f"IF({name} IS NULL, {skipped}, {value})")
    return f"concat('{{', concat_ws(',', {', '.join(members)}), '}}')"


def _json_text(text: str) -> str:
    escaped = re.sub(r'["\\]', lambda match: "\\" + match.group(), text)
    return f'"{escaped}"'


def _json_value(format: JsonFormat, kind: DataType, column: str) -> str:
    if kind.name in CHARACTERS:
        return f"regexp_replace(to_json(named_struct('v', {column})), '^.{{5}}|.$', '')"
    if kind.name == "DECIMAL":
        return _plain_decimal(kind, column) if format.plain_decimals else _short_decimal(kind, column)
    if kind.name in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ"):
        text = _text(kind, column)
        return f"concat('\"', {text if format.separator == ' ' else _iso(text)}, '\"')"
    if kind.name in APPROXIMATE:  # NaN and Infinity are not valid JSON numbers.
        text = _text(kind, column)
        return f"IF({text} RLIKE '[a-z]', concat('\"', {text}, '\"'), {text})"
    return _text(kind, column)


def _iso(text: str) -> str:
    return f"replace({text}, ' ', 'T')"


def _csv_field(format: CsvFormat, kind: DataType, column: str, record: bool) -> str:
    if kind.name in (*CHARACTERS, "DATE", "TIMESTAMP", "TIMESTAMP_LTZ") and format.quote:
        text = _csv_quoted(format, _text(kind, column))
    elif kind.name == "DECIMAL":
        text = f"CAST({column} AS STRING)" if record else _short_decimal(kind, column)
    else:
        text = _text(kind, column)
    return f"coalesce({text}, {quoted(format.null_literal or '')})"


def _csv_quoted(format: CsvFormat, text: str) -> str:
    """Quote a text, as Flink does, if it is long or contains a backslash or a character up to a delimiter."""
    last = max(ord(format.delimiter), ord(format.quote), ord("\n"))
    length = f"(char_length({text}) + regexp_count({text}, '[\\\\x{{10000}}-\\\\x{{10FFFF}}]'))"
    unsafe = f"{text} RLIKE '[\\\\x00-\\\\x{{{last:x}}}\\\\\\\\]'"
    doubled = f"replace({text}, {quoted(format.quote)}, {quoted(format.quote * 2)})"
    inside = f"concat({quoted(format.quote)}, {doubled}, {quoted(format.quote)})"
    return f"IF({length} > {_UNQUOTED_LENGTH} OR {unsafe}, {inside}, {text})"


def _text(kind: DataType, column: str) -> str:
    if kind.name == "DECIMAL":
        return _plain_decimal(kind, column)
    return f"concat(CAST({column} AS STRING), 'Z')" if kind.name == "TIMESTAMP_LTZ" else f"CAST({column} AS STRING)"


def _plain_decimal(kind: DataType, column: str) -> str:
    """Decimal with all digits, and as many fractional digits as its type has.

    Spark would use scientific notation below 0.000001.
    """
    scale, text = kind.parameters[1], f"CAST({column} AS STRING)"
    if scale <= 6:
        return text
    digits = f"CAST(CAST(abs({column}) * CAST('1{'0' * scale}' AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) AS STRING)"
    tiny = f"concat(IF({column} < 0, '-', ''), '0.', lpad({digits}, {scale}, '0'))"
    return f"IF({text} LIKE '%E%', {tiny}, {text})"


def _short_decimal(kind: DataType, column: str) -> str:
    """Decimal in Flink's notation: no trailing zeros, scientific for short integers or below 0.000001."""
    text = f"CAST({column} AS STRING)"
    if kind.parameters[1] == 0:
        short = text
    else:
        mantissa = f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM substring_index({text}, 'E', 1)))"
        small = f"IF({text} LIKE '%E%', concat('E', substring_index({text}, 'E', -1)), '')"
        short = f"concat(IF({text} LIKE '%.%', {mantissa}, substring_index({text}, 'E', 1)), {small})"
    magnitude = f"trim(LEADING '-' FROM {short})"
    large = _scientific(f"trim(TRAILING '0' FROM {magnitude})", f"concat('E+', char_length({magnitude}) - 1)")
    branches = [
        f"WHEN {column} IS NULL THEN NULL",
        f"WHEN {column} = 0 THEN '0'",
        f"WHEN {short} RLIKE '^-?[0-9]+0$' THEN concat(IF({column} < 0, '-', ''), {large})",
    ]
    return f"(CASE {' '.join(branches)} ELSE {short} END)"


def _scientific(digits: str, exponent: str) -> str:
    fraction = f"IF(char_length({digits}) > 1, concat('.', substring({digits}, 2)), '')"
    return f"concat(substring({digits}, 1, 1), {fraction}, {exponent})"
