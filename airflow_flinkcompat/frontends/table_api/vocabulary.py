"""Which SQL says the same as a method of an expression, or a function of ``pyflink.table.expressions``.

Only what stands for the same built-in function of Flink is here. A template is written with ``{0}`` for what the method
is called on, or for the first argument; what is no template is the name of a function that takes all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

PROPERTIES: Mapping[str, str] = {
    "upper_case": "UPPER", "lower_case": "LOWER", "init_cap": "INITCAP", "char_length": "CHAR_LENGTH",
    "reverse": "REVERSE", "ascii": "ASCII", "chr": "CHR", "from_base64": "FROM_BASE64", "to_base64": "TO_BASE64",
    "md5": "MD5", "sha1": "SHA1", "sha224": "SHA224", "sha256": "SHA256", "sha384": "SHA384", "sha512": "SHA512",
    "abs": "ABS", "sign": "SIGN", "sqrt": "SQRT", "exp": "EXP", "ln": "LN", "log10": "LOG10", "log2": "LOG2",
    "sin": "SIN", "cos": "COS", "tan": "TAN", "cot": "COT", "asin": "ASIN", "acos": "ACOS", "atan": "ATAN",
    "sinh": "SINH", "cosh": "COSH", "tanh": "TANH", "degrees": "DEGREES", "radians": "RADIANS", "bin": "BIN",
    "hex": "HEX", "cardinality": "CARDINALITY", "element": "ELEMENT",
}  # fmt: skip
"""Attributes that are calls."""
AGGREGATED: Mapping[str, str] = {"first_value": "FIRST_VALUE", "last_value": "LAST_VALUE", "array_agg": "ARRAY_AGG"}
"""Attributes that are aggregates, beside those every program knows."""

METHODS: Mapping[tuple[str, int], str] = {
    ("substring", 1): "SUBSTRING", ("substring", 2): "SUBSTRING", ("substr", 1): "SUBSTR", ("substr", 2): "SUBSTR",
    ("replace", 2): "REPLACE", ("lpad", 2): "LPAD", ("rpad", 2): "RPAD", ("left", 1): "LEFT", ("right", 1): "RIGHT",
    ("instr", 1): "INSTR", ("locate", 1): "LOCATE", ("locate", 2): "LOCATE", ("repeat", 1): "REPEAT",
    ("ltrim", 0): "LTRIM", ("rtrim", 0): "RTRIM", ("btrim", 0): "BTRIM", ("starts_with", 1): "STARTSWITH",
    ("ends_with", 1): "ENDSWITH", ("regexp", 1): "REGEXP", ("regexp_replace", 2): "REGEXP_REPLACE",
    ("regexp_extract", 1): "REGEXP_EXTRACT", ("regexp_extract", 2): "REGEXP_EXTRACT", ("concat", 1): "CONCAT",
    ("split_index", 2): "SPLIT_INDEX", ("str_to_map", 0): "STR_TO_MAP", ("parse_url", 1): "PARSE_URL",
    ("parse_url", 2): "PARSE_URL", ("encode", 1): "ENCODE", ("decode", 1): "DECODE", ("round", 1): "ROUND",
    ("truncate", 0): "TRUNCATE", ("truncate", 1): "TRUNCATE", ("if_null", 1): "IFNULL", ("power", 1): "POWER",
    ("json_exists", 1): "JSON_EXISTS", ("json_value", 1): "JSON_VALUE", ("json_query", 1): "JSON_QUERY",
    ("floor", 0): "FLOOR", ("ceil", 0): "CEIL",
    ("like", 1): "({0} LIKE {1})", ("like", 2): "({0} LIKE {1} ESCAPE {2})", ("similar", 1): "({0} SIMILAR TO {1})",
    ("between", 2): "({0} BETWEEN {1} AND {2})", ("not_between", 2): "({0} NOT BETWEEN {1} AND {2})",
    ("position", 1): "POSITION({0} IN {1})", ("then", 2): "CASE WHEN {0} THEN {1} ELSE {2} END",
    ("trim_leading", 1): "TRIM(LEADING {1} FROM {0})", ("trim_leading", 0): "TRIM(LEADING FROM {0})",
    ("trim_trailing", 1): "TRIM(TRAILING {1} FROM {0})", ("trim_trailing", 0): "TRIM(TRAILING FROM {0})",
    ("trim", 1): "TRIM(BOTH {1} FROM {0})", ("trim", 0): "TRIM(BOTH FROM {0})",
}  # fmt: skip
"""By name and number of arguments."""
WITH_UNIT: Mapping[str, str] = {
    "extract": "EXTRACT({unit} FROM {{0}})", "floor": "FLOOR({{0}} TO {unit})", "ceil": "CEIL({{0}} TO {unit})",
}  # fmt: skip
"""Methods that take a ``TimeIntervalUnit``."""
UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")

FUNCTIONS: Mapping[str, tuple[str, int, int]] = {
    "concat": ("CONCAT", 1, 99), "concat_ws": ("CONCAT_WS", 2, 99), "coalesce": ("COALESCE", 1, 99),
    "if_then_else": ("CASE WHEN {0} THEN {1} ELSE {2} END", 3, 3),
    "current_date": ("CURRENT_DATE", 0, 0), "current_time": ("CURRENT_TIME", 0, 0),
    "current_timestamp": ("CURRENT_TIMESTAMP", 0, 0), "local_time": ("LOCALTIME", 0, 0),
    "local_timestamp": ("LOCALTIMESTAMP", 0, 0), "current_watermark": ("CURRENT_WATERMARK", 1, 1),
    "current_database": ("CURRENT_DATABASE", 0, 0),
    "to_date": ("TO_DATE", 1, 2), "to_timestamp": ("TO_TIMESTAMP", 1, 2),
    "to_timestamp_ltz": ("TO_TIMESTAMP_LTZ", 2, 2), "date_format": ("DATE_FORMAT", 2, 2),
    "convert_tz": ("CONVERT_TZ", 3, 3), "from_unixtime": ("FROM_UNIXTIME", 1, 2),
    "unix_timestamp": ("UNIX_TIMESTAMP", 0, 2), "pi": ("PI", 0, 0), "e": ("E", 0, 0), "rand": ("RAND", 0, 1),
    "rand_integer": ("RAND_INTEGER", 1, 2), "uuid": ("UUID", 0, 0), "atan2": ("ATAN2", 2, 2), "log": ("LOG", 1, 2),
    "negative": ("(- {0})", 1, 1),
}  # fmt: skip
"""Functions by name: what they are in SQL, and how many arguments they take."""
WITHOUT_BRACKETS = (
    "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP",
)  # fmt: skip
