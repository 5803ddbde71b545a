"""Catalogue of Flink's operators and built-in functions, with their result types.

The catalogue serves comparisons (kind, determinism, decomposability) and the types in plans. The Spark SQL of each
function is in :mod:`airflow_flinkcompat.backfill.spark_sql.translations`. A name that is not in the catalogue is a
user-defined or unknown function; :func:`lookup` then returns None.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from airflow_flinkcompat.plan import result_types as r
from airflow_flinkcompat.plan.expressions import Expression, Literal
from airflow_flinkcompat.plan.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMPS,
    UNKNOWN,
    DataType,
    timestamp,
    timestamp_ltz,
)


class FunctionKind(StrEnum):
    """Kind of a function: by row, by group of rows, or from one row to many rows."""

    SCALAR = "scalar"
    AGGREGATE = "aggregate"
    TABLE = "table"


@dataclass(frozen=True)
class FunctionSpec:
    """An operator or built-in function.

    ``result_type`` maps argument types to the result type and never raises. The result is UNKNOWN if the argument
    types do not determine it.
    """

    name: str
    kind: FunctionKind
    result_type: r.ResultType


ANEW_FOR_EACH_ROW = frozenset({
    "RAND", "RAND_INTEGER", "UUID", "NOW", "UNIX_TIMESTAMP", "PROCTIME", "CURRENT_WATERMARK", "CURRENT_DATE",
    "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_ROW_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP",
})  # fmt: skip
"""Functions that may return a different value at each call."""


def _scalar(result: r.ResultType, *names: str) -> Iterator[FunctionSpec]:
    for name in names:
        yield FunctionSpec(name, FunctionKind.SCALAR, result)


def _aggregate(result: r.ResultType, *names: str) -> Iterator[FunctionSpec]:
    for name in names:
        yield FunctionSpec(name, FunctionKind.AGGREGATE, result)


def _char(length: int) -> DataType:
    return DataType("CHAR", (length,))


def _array(types: r.Types) -> DataType:
    common = r.common_type(types)
    return DataType("ARRAY", elements=(common,), nullable=False) if common.is_known else UNKNOWN


def _map(types: r.Types) -> DataType:
    key, value = r.common_type(types[::2]), r.common_type(types[1::2])
    return DataType("MAP", elements=(key, value), nullable=False) if key.is_known and value.is_known else UNKNOWN


def _item(types: r.Types) -> DataType:
    """``collection[index]``: an element of an ARRAY, or a value of a MAP."""
    if types and types[0].name in ("ARRAY", "MAP") and types[0].elements:
        return types[0].elements[-1].with_nullability(True)
    return UNKNOWN


def _collected(types: r.Types) -> DataType:
    return DataType("MULTISET", elements=(types[0],), nullable=False) if types else UNKNOWN


def _array_of_argument(types: r.Types) -> DataType:
    return DataType("ARRAY", elements=(types[0],)) if types else UNKNOWN


def _specs() -> Iterator[FunctionSpec]:
    yield from _scalar(r.add, "+")
    yield from _scalar(r.subtract, "-")
    yield from _scalar(r.multiply, "*")
    yield from _scalar(r.divide, "/")
    yield from _scalar(r.modulo, "%", "MOD")
    yield from _scalar(r.argument(0), "NEG", "ABS", "SIGN")
    yield from _scalar(r.strict(BOOLEAN), "=", "<>", "<", "<=", ">", ">=", "AND", "OR", "NOT", "IN", "NOT IN")
    yield from _scalar(r.strict(BOOLEAN), "LIKE", "NOT LIKE", "SIMILAR TO", "NOT SIMILAR TO", "BETWEEN", "OVERLAPS")
    yield from _scalar(r.strict(BOOLEAN), "BETWEEN SYMMETRIC")
    yield from _scalar(r.not_null(BOOLEAN), "IS NULL", "IS NOT NULL", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
    yield from _scalar(r.not_null(BOOLEAN), "IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS UNKNOWN")
    yield from _scalar(r.not_null(BOOLEAN), "IS NOT UNKNOWN", "EXISTS", "IS JSON", "IS NOT JSON")
    for kind in ("VALUE", "OBJECT", "ARRAY", "SCALAR"):
        yield from _scalar(r.not_null(BOOLEAN), f"IS JSON {kind}", f"IS NOT JSON {kind}")
    yield from _scalar(r.unknown, "CAST", "TRY_CAST", "FIELD", "ROW", "KEY VALUE", "BINARY LITERAL")
    yield from _scalar(r.case, "CASE")
    yield from _scalar(r.concatenation, "||")
    # conditional
    yield from _scalar(r.coalesce, "COALESCE", "IFNULL")
    yield from _scalar(r.nullable_first, "NULLIF")
    yield from _scalar(r.if_else, "IF")
    yield from _scalar(r.common_type, "GREATEST", "LEAST")
    # strings
    yield from _scalar(r.argument(0), "UPPER", "LOWER", "INITCAP")
    yield from _scalar(r.strict(STRING), "CONCAT", "CONCAT_WS", "REPLACE", "LPAD", "RPAD", "REPEAT", "REVERSE")
    yield from _scalar(r.strict(STRING), "REGEXP_REPLACE", "TRANSLATE", "HEX", "BIN", "URL_ENCODE", "BTRIM")
    yield from _scalar(r.strict(STRING), "OVERLAY", "URL_DECODE")
    yield from _scalar(r.strict(DataType("VARCHAR", (128,))), "SHA2")
    yield from _scalar(r.strict(_char(32)), "MD5")
    yield from _scalar(r.strict(_char(40)), "SHA1")
    yield from _scalar(r.strict(_char(56)), "SHA224")
    yield from _scalar(r.strict(_char(64)), "SHA256")
    yield from _scalar(r.strict(_char(96)), "SHA384")
    yield from _scalar(r.strict(_char(128)), "SHA512")
    yield from _scalar(lambda types: r.varying(types[-1:]), "TRIM")
    yield from _scalar(r.varying, "LTRIM", "RTRIM", "SUBSTRING")
    yield from _scalar(r.nullable_varying, "SUBSTR", "LEFT", "RIGHT")
    yield from _scalar(r.nullable(STRING), "CHR", "REGEXP_EXTRACT", "SPLIT_INDEX", "PARSE_URL", "TO_BASE64")
    yield from _scalar(r.nullable(DataType("MAP", elements=(STRING, STRING))), "STR_TO_MAP")
    yield from _scalar(r.nullable(STRING), "FROM_BASE64", "JSON_VALUE", "JSON_QUERY", "DECODE", "ELT")
    yield from _scalar(r.nullable(STRING), "REGEXP_SUBSTR", "PRINTF", "TYPEOF")
    yield from _scalar(r.not_null(STRING), "JSON_STRING", "JSON_OBJECT", "JSON_ARRAY", "CURRENT_DATABASE")
    yield from _scalar(r.strict(INT), "CHAR_LENGTH", "CHARACTER_LENGTH", "POSITION", "INSTR", "LOCATE", "ASCII")
    yield from _scalar(r.strict(INT), "REGEXP_COUNT", "REGEXP_INSTR")
    yield from _scalar(r.strict(BOOLEAN), "REGEXP", "STARTSWITH", "ENDSWITH")
    yield from _scalar(r.not_null(BOOLEAN), "IS_DECIMAL", "IS_DIGIT", "IS_ALPHA")
    yield from _scalar(r.nullable(BOOLEAN), "JSON_EXISTS")
    yield from _scalar(r.nullable(BYTES), "ENCODE", "UNHEX")
    # numbers
    yield from _scalar(r.whole_number, "FLOOR", "CEIL", "CEILING")
    yield from _scalar(_round, "ROUND", "TRUNCATE")
    yield from _scalar(r.strict(DOUBLE), "POWER", "SQRT", "LN", "LOG", "LOG10", "LOG2", "EXP", "SIN", "COS", "TAN")
    yield from _scalar(r.strict(DOUBLE), "COT", "ASIN", "ACOS", "ATAN", "ATAN2", "SINH", "COSH", "TANH", "DEGREES")
    yield from _scalar(r.strict(DOUBLE), "RADIANS")
    yield from _scalar(r.not_null(DOUBLE), "PI", "E")
    yield from _scalar(r.not_null(DOUBLE), "RAND")
    yield from _scalar(r.strict(INT), "RAND_INTEGER")
    yield from _scalar(r.not_null(_char(36)), "UUID")
    # time
    yield from _scalar(r.strict(BIGINT), "EXTRACT", "YEAR", "QUARTER", "MONTH", "WEEK", "DAYOFYEAR", "DAYOFMONTH")
    yield from _scalar(r.strict(BIGINT), "DAYOFWEEK", "HOUR", "MINUTE", "SECOND")
    yield from _scalar(r.strict(INT), "TIMESTAMPDIFF")
    yield from _scalar(r.strict(STRING), "DATE_FORMAT", "FROM_UNIXTIME", "CONVERT_TZ")
    yield from _scalar(_moved, "TIMESTAMPADD")
    yield from _scalar(r.nullable(DATE), "TO_DATE")
    yield from _scalar(r.nullable(timestamp(3)), "TO_TIMESTAMP")
    yield from _scalar(r.nullable(timestamp_ltz(3)), "TO_TIMESTAMP_LTZ")
    yield from _scalar(lambda types: BIGINT.with_nullability(bool(types)), "UNIX_TIMESTAMP")
    yield from _scalar(r.not_null(DATE), "CURRENT_DATE")
    yield from _scalar(r.not_null(DataType("TIME", (0,))), "LOCALTIME", "CURRENT_TIME")
    yield from _scalar(r.not_null(timestamp(3)), "LOCALTIMESTAMP")
    yield from _scalar(r.not_null(timestamp_ltz(3)), "NOW", "CURRENT_TIMESTAMP")
    yield from _scalar(r.not_null(timestamp_ltz(3)), "CURRENT_ROW_TIMESTAMP", "PROCTIME")
    yield from _scalar(r.nullable(timestamp_ltz(3)), "CURRENT_WATERMARK")
    # collections
    yield from _scalar(_array, "ARRAY")
    yield from _scalar(_map, "MAP")
    yield from _scalar(_item, "ITEM", "ELEMENT")
    yield from _scalar(r.strict(INT), "CARDINALITY", "ARRAY_POSITION")
    yield from _scalar(r.nullable(BOOLEAN), "ARRAY_CONTAINS")
    yield from _scalar(r.nullable_first, "ARRAY_DISTINCT", "ARRAY_REVERSE", "ARRAY_SLICE", "ARRAY_SORT")
    yield from _scalar(r.nullable_first, "ARRAY_REMOVE", "ARRAY_APPEND", "ARRAY_PREPEND", "ARRAY_UNION")
    yield from _scalar(r.nullable_first, "ARRAY_EXCEPT", "ARRAY_INTERSECT", "MAP_UNION")
    yield from _scalar(r.unknown, "ARRAY_CONCAT", "ARRAY_MAX", "ARRAY_MIN", "MAP_KEYS", "MAP_VALUES", "MAP_ENTRIES")
    yield from _scalar(r.unknown, "MAP_FROM_ARRAYS")
    yield from _scalar(r.nullable(STRING), "ARRAY_JOIN")
    # aggregates
    yield from _aggregate(r.count, "COUNT", "REGR_COUNT")
    yield from _aggregate(r.total, "SUM")
    yield from _aggregate(r.total0, "SUM0", "$SUM0")
    yield from _aggregate(r.average, "AVG")
    yield from _aggregate(r.argument(0), "MIN", "MAX")
    yield from _aggregate(r.argument(0), "FIRST_VALUE", "LAST_VALUE", "ANY_VALUE", "SINGLE_VALUE", "PERCENTILE_DISC")
    yield from _aggregate(r.nullable_first, "LAG", "LEAD", "NTH_VALUE")
    yield from _aggregate(r.average, "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP")
    yield from _aggregate(r.nullable(DOUBLE), "PERCENTILE", "APPROX_PERCENTILE")
    yield from _aggregate(r.argument(0), "LISTAGG")
    yield from _aggregate(_collected, "COLLECT")
    yield from _aggregate(_array_of_argument, "ARRAY_AGG")
    yield from _aggregate(r.count, "APPROX_COUNT_DISTINCT")
    yield from _aggregate(r.not_null(BIGINT), "RANK", "DENSE_RANK", "ROW_NUMBER", "NTILE", "GROUPING", "GROUPING_ID")
    yield from _aggregate(r.not_null(DOUBLE), "CUME_DIST", "PERCENT_RANK")
    yield from _aggregate(r.not_null(STRING), "JSON_OBJECTAGG", "JSON_ARRAYAGG")
    # table functions
    yield FunctionSpec("UNNEST", FunctionKind.TABLE, _item)
    yield FunctionSpec("UNNEST WITH ORDINALITY", FunctionKind.TABLE, r.unknown)


def _round(types: r.Types) -> DataType:
    """ROUND(x) is ROUND(x, 0). The type of ROUND(decimal, n) depends on n."""
    if not types or (types[0].name == "DECIMAL" and len(types) > 1):
        return UNKNOWN
    result = r.round_decimal(types[0], 0)
    return result.with_nullability(r.any_nullable(types))


def _moved(types: r.Types) -> DataType:
    """TIMESTAMPADD has the type of its timestamp; the type for a date depends on the unit."""
    return r.argument(1)(types) if len(types) == 2 and types[1].name in TIMESTAMPS else UNKNOWN


_NO_MORE_KNOWN = frozenset({
    "SPLIT", "REGEXP_EXTRACT_ALL", "JSON", "JSON_QUOTE", "JSON_UNQUOTE", "PARSE_JSON", "TRY_PARSE_JSON", "INET_ATON",
    "INET_NTOA", "OBJECT_OF", "OBJECT_UPDATE", "HASH_CODE", "PRINT", "GROUP_ID", "SOURCE_WATERMARK",
    "STREAMRECORD_TIMESTAMP", "BITMAP_AND", "BITMAP_ANDNOT", "BITMAP_AND_AGG", "BITMAP_AND_CARDINALITY_AGG",
    "BITMAP_BUILD", "BITMAP_BUILD_AGG", "BITMAP_BUILD_CARDINALITY_AGG", "BITMAP_CARDINALITY", "BITMAP_FROM_BYTES",
    "BITMAP_OR", "BITMAP_OR_AGG", "BITMAP_OR_CARDINALITY_AGG", "BITMAP_TO_ARRAY", "BITMAP_TO_BYTES",
    "BITMAP_TO_STRING", "BITMAP_XOR", "BITMAP_XOR_AGG", "BITMAP_XOR_CARDINALITY_AGG", "MATCH_ROWTIME",
    "MATCH_PROCTIME", "ML_PREDICT", "ML_EVALUATE", "VECTOR_SEARCH", "TO_CHANGELOG", "FROM_CHANGELOG",
})  # fmt: skip
"""Other functions of Flink 2.3.0, by name only (BuiltInFunctionDefinitions, FlinkSqlOperatorTable)."""
_SPECS = {spec.name: spec for spec in _specs()}


def lookup(name: str) -> FunctionSpec | None:
    """The operator or built-in function of this name, in any case; None if the catalogue lacks it."""
    return _SPECS.get(name.upper())


def is_built_in(name: str) -> bool:
    """True if Flink has a function of this name, even if the catalogue has no details."""
    return lookup(name) is not None or name.upper() in _NO_MORE_KNOWN


def call_type(name: str, args: Sequence[Expression]) -> DataType:
    """The result type of a call, including types that depend on a constant argument (ROUND's digits)."""
    spec = lookup(name)
    if spec is None:
        return UNKNOWN
    if spec.name in ("ROUND", "TRUNCATE") and len(args) == 2 and isinstance(args[1], Literal):
        digits = args[1].value
        if isinstance(digits, int) and args[0].type.name == "DECIMAL":
            return r.round_decimal(args[0].type, digits)
    return spec.result_type(tuple(arg.type for arg in args if arg.type.name != "SYMBOL"))


def names() -> tuple[str, ...]:
    """All names in the catalogue."""
    return tuple(_SPECS)
