"""Flink's csv and json formats: their options, and how fields are read from and written as text.

Everything here was measured with Flink 2.3's filesystem connector: reading gives the same values, writing the same
bytes. A text that Flink refuses raises an error while Spark runs, unless the format ignores parse errors, as in Flink.
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

_UNQUOTED_LENGTH = 24  # a longer text is quoted without looking into it
_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\\\": "\\"}
_SQL_TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}%s[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{0,9})?"
_DECIMAL = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"


@dataclass(frozen=True)
class CsvFormat:
    """Options of the csv format; ``quote`` "": quoting is off, ``null_literal`` None: no text means NULL."""

    delimiter: str = ","
    quote: str = '"'
    null_literal: str | None = None
    ignore_parse_errors: bool = False
    name = "csv"


@dataclass(frozen=True)
class JsonFormat:
    """Options of the json format; ``separator`` is between date and time ("T" for ISO-8601)."""

    separator: str = " "
    ignore_parse_errors: bool = False
    ignore_null_fields: bool = False
    plain_decimals: bool = False
    name = "json"


Format = CsvFormat | JsonFormat


def format_of(table: Table, part: str = "") -> Format:
    """The format a table declares, for ``part`` "key." that of its records' keys."""
    options = dict(table.options)
    key = next((key for key in ((f"{part}format",) if part else ("format", "value.format")) if key in options), None)
    name = options[key] if key else None
    if key is None or name not in _READERS:
        declared = f"format {name}" if name else "no format"
        raise Untranslatable(
            f"table {table.name} declares {declared}; a backfill reads and writes csv and json, as files also parquet "
            "and orc",
            table.span,
        )
    prefix = f"{key.removesuffix('format')}{name}."
    settings = {option.removeprefix(prefix): value for option, value in options.items() if option.startswith(prefix)}
    known, build = _READERS[name]
    for option, value in sorted(settings.items()):
        if option not in known:
            raise Untranslatable(
                f"table {table.name}: option {prefix}{option} = '{value}' has no exact translation to Spark; "
                "leave it out, or compute these rows with Flink in batch mode",
                table.span,
            )
    try:
        return build(settings)
    except ValueError as error:
        raise BackfillError(f"table {table.name}: {error}", table.span) from None


def _flag(settings: Mapping[str, str], option: str) -> bool:
    value = settings.get(option, "false").strip().lower()
    if value not in ("true", "false"):
        raise ValueError(f"option {option} is '{settings[option]}'; write true or false")
    return value == "true"


def _character(settings: Mapping[str, str], option: str, default: str) -> str:
    value = settings.get(option, default)
    value = _ESCAPES.get(value, value)
    if len(value) != 1:
        raise ValueError(f"option {option} is '{value}'; write one character")
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
        raise ValueError(f"option timestamp-format.standard is '{standard}'; write SQL or ISO-8601")
    if _flag(settings, "fail-on-missing-field"):
        raise ValueError("option fail-on-missing-field = 'true' has no exact translation to Spark; leave it out")
    return JsonFormat(
        separator="T" if standard == "ISO-8601" else " ",
        ignore_parse_errors=_flag(settings, "ignore-parse-errors"),
        ignore_null_fields=_flag(settings, "encode.ignore-null-fields"),
        plain_decimals=_flag(settings, "encode.decimal-as-plain-number"),
    )


_CSV_OPTIONS = {"field-delimiter", "quote-character", "disable-quote-character", "null-literal", "ignore-parse-errors"}
# Flink 2.3 writes decimals the same way regardless of this option.
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
    """Spark SQL that turns a field's text (NULL when the field is missing) into the column's value."""
    kind = column.type
    if spark_type(kind) is None or kind.name == "NULL":
        raise Untranslatable(
            f"table {table.name}: column {column.name} of type {kind} cannot be read exactly from {format.name}; "
            "leave the column out of the query, or compute these rows with Flink in batch mode",
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
    # Every use of {v} is the same text; Spark evaluates equal parts once.
    branches = [f"WHEN {text} IS NULL THEN NULL", *(f"WHEN {test} THEN {value}" for test, value in good)]
    branches += [f"WHEN {test} THEN {_raise(what, text, ' is parsed by Flink with its own rules')}" for test in odd]
    body = f"(CASE {' '.join(branches)} ELSE {bad} END)".replace("{v}", text).replace(
        "{t}", f"btrim({text}, ' \\t\\r\\n')"
    )
    return f"coalesce({body}, {_raise(what, text, ' where NULL is not allowed')})" if not kind.nullable else body


def _raise(what: str, text: str, why: str) -> str:
    return f"raise_error(concat({quoted(ERROR + what)}, coalesce(substring({text}, 1, 80), 'NULL'), {quoted(why)}))"


def _value(format: Format, kind: DataType) -> tuple[list[tuple[str, str]], list[str]]:
    """(test, value) pairs for texts that Flink accepts; tests for texts it reads differently (month 13)."""
    if kind.name in INTEGERS:
        good = [(f"try_cast({{t}} AS {kind.name}) IS NOT NULL", f"try_cast({{t}} AS {kind.name})")]
        # A json number with a fraction is cut off, a json text with one refused: both look alike here.
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
    # Cutting the text cuts the fraction as Flink does; a closing Z or dot is cut with it.
    digits = f"trim(TRAILING 'Z' FROM {text})" if zone else text
    length = 20 + precision if precision else 19
    cut = f"try_cast(trim(TRAILING '.' FROM substring({digits}, 1, {length})) AS TIMESTAMP_NTZ)"
    value = f"CAST({cut} AS TIMESTAMP_LTZ)" if zone else cut
    return [(f"{shape} AND {cut} IS NOT NULL", value)], [shape]


# --- writing ----------------------------------------------------------------------------------------------------------


def encode_line(
    format: Format, columns: tuple[Column, ...], values: tuple[str, ...] = (), *, record: bool = False
) -> str:
    """Spark SQL for one line of text; ``record``: for a topic, where csv keeps all digits of a decimal."""
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
    if kind.name in APPROXIMATE:  # NaN and Infinity are no json numbers
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
    """Quote as Flink's writer does: over 24 characters, a backslash, or a character up to the delimiter."""
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
    """All digits, as many after the point as the type has. Spark itself turns scientific below 0.000001."""
    scale, text = kind.parameters[1], f"CAST({column} AS STRING)"
    if scale <= 6:
        return text
    digits = f"CAST(CAST(abs({column}) * CAST('1{'0' * scale}' AS DECIMAL(38, 0)) AS DECIMAL(38, 0)) AS STRING)"
    tiny = f"concat(IF({column} < 0, '-', ''), '0.', lpad({digits}, {scale}, '0'))"
    return f"IF({text} LIKE '%E%', {tiny}, {text})"


def _short_decimal(kind: DataType, column: str) -> str:
    """A decimal as Flink writes it: no trailing zeros, scientific for short integers or below 0.000001."""
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
