"""Spark SQL for Flink's operators and functions, for argument types with equal results in both.

Every line was compared with Flink 2.3 in batch mode, value by value. If a function or a combination of argument types
is missing here, it has no exact translation. The templates assume a Spark session in time zone UTC without ANSI mode,
so that integers overflow like in Flink. TIMESTAMP_NTZ stores a TIMESTAMP, and TIMESTAMP_LTZ stores a TIMESTAMP_LTZ.
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_flinkcompat.plan.functions import FunctionKind, FunctionSpec

ERROR = "backfill: "
"""Prefix of all error messages that translated expressions raise at run time."""


@dataclass(frozen=True)
class Translation:
    """Spark SQL template for one combination of argument types.

    ``takes``: One class of arguments per position. ``|`` separates alternatives, and ``*`` at the end repeats the last
    class. ``gives``: Restricts the result type. Classes of types are integer, decimal (decimal6: scale up to 6),
    double, float, text, boolean, date, timestamp, ltz, days and months (interval constants), null, and any. Classes of
    constants are ``pattern`` (LIKE pattern with ``_`` and without a backslash), ``simple`` (LIKE pattern without both),
    ``format`` (verified date-time letters), ``position`` (at least 1), ``digits`` (at least 0), ``=3`` (the constant
    3), and ``some`` (a text that is not empty). A word in capitals is a keyword of the call. ``gives`` also supports
    ``string`` (unlimited), ``varchar`` (limited), and two classes of timestamps: ``same-or-finer`` keeps every digit of
    the first argument, and ``milliseconds`` has precision 3 or more. Placeholders: ``{0}`` is an argument, and ``{d0}``
    is the argument as a decimal. ``{args}`` is all arguments, ``{rest}`` is all but the first, and ``{drest}`` is
    ``{rest}`` as decimals. ``{type}`` is the result's Spark type, and ``{length}`` its length. ``{end}`` and ``{end0}``
    are the lengths of the result and the first argument as the text of a timestamp. ``{scale0}`` is the scale of the
    first argument. ``{regex1}`` is a constant LIKE pattern as Flink's regular expression. In aggregates, the names of
    :data:`PARTS` are also placeholders.
    """

    takes: tuple[str, ...]
    spark: str
    gives: str = "any"


def _t(spark: str, *takes: str, gives: str = "any") -> Translation:
    return Translation(takes, spark, gives)


_DIVISION_BY_ZERO = f"raise_error('{ERROR}division by zero')"
_EXACT = "integer|decimal"
_NUMBER = "integer|decimal|double"
_AS_DOUBLES = "(CAST({{0}} AS DOUBLE) {0} CAST({{1}} AS DOUBLE))"


def _arithmetic(sign: str) -> tuple[Translation, ...]:
    return (
        _t(f"CAST({{0}} {sign} {{1}} AS {{type}})", "integer", "integer"),
        _t(f"CAST({{d0}} {sign} {{d1}} AS {{type}})", _EXACT, _EXACT),
        _t(_AS_DOUBLES.format(sign), _NUMBER, _NUMBER, gives="double"),
    )


# In Java, division by a zero of either sign returns an infinity of that sign, or NaN. Spark returns NULL.
_DOUBLE_DIVISION = (
    "CASE WHEN CAST({1} AS DOUBLE) = 0 THEN CAST({0} AS DOUBLE) * CAST(IF(CAST(CAST({1} AS DOUBLE) AS STRING) = "
    "'-0.0', '-Infinity', 'Infinity') AS DOUBLE) ELSE CAST({0} AS DOUBLE) / CAST({1} AS DOUBLE) END"
)
_SAME = ("text", "boolean", "date", "timestamp", "ltz")


def _no_nan(what: str) -> str:
    return f"raise_error('{ERROR}NaN {what}; compute these rows with Flink in batch mode')"


def ordered(number: str) -> str:
    """Spark SQL for a FLOAT or DOUBLE in a sort order. NaN is an error, because Flink does not order it."""
    return f"IF(isnan({number}), {_no_nan('has no exact sort order')}, {number})"


def distinguished(number: str) -> str:
    """Spark SQL for a FLOAT or DOUBLE as a grouping key.

    Flink distinguishes -0.0, 0.0 and NaN values by their bits.
    """
    message = f"{ERROR}Flink groups -0.0 and NaN by their bits, but Spark does not; compute these rows with Flink"
    odd = f"isnan({number}) OR ({number} = 0 AND CAST({number} AS STRING) = '-0.0')"
    return f"IF({odd}, raise_error('{message}'), {number})"


def _comparison(sign: str) -> tuple[Translation, ...]:
    """Translations of a comparison. A row in which a number is NaN is an error.

    Unlike Java's operators, Spark sorts NaN above all numbers and treats NaN as equal to itself. Flink's result depends
    on how its planner simplifies the condition, so the translation fails instead of guessing.
    """
    some_nan = "isnan(CAST({0} AS DOUBLE)) OR isnan(CAST({1} AS DOUBLE))"
    refused = _no_nan("compares differently in Flink, depending on the plan")
    return (
        _t(f"({{0}} {sign} {{1}})", "integer", "integer"),
        _t(f"({{d0}} {sign} {{d1}})", _EXACT, _EXACT),
        _t(f"IF({some_nan}, {refused}, {_AS_DOUBLES.format(sign)})", "integer|double", "integer|double"),
        *(_t(f"({{0}} {sign} {{1}})", kind, kind) for kind in _SAME),
    )


def _same(template: str, *kinds: str) -> tuple[Translation, ...]:
    return tuple(_t(template, kind, f"{kind}*") for kind in kinds)


def _predicates(*words: str) -> dict[str, tuple[Translation, ...]]:
    return {f"IS {word}": (_t(f"({{0}} IS {word})", "boolean"),) for word in words}


_UNITS = {"YEAR": "year", "QUARTER": "quarter", "MONTH": "month", "WEEK": "weekofyear", "DAY": "dayofmonth"}
_UNITS |= {"DOY": "dayofyear", "DOW": "dayofweek", "HOUR": "hour", "MINUTE": "minute", "SECOND": "second"}
_DAY_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOY", "DOW")
_FUNCTION_UNITS = {"DAYOFMONTH": "DAY", "DAYOFYEAR": "DOY", "DAYOFWEEK": "DOW"} | {
    u: u for u in _UNITS if u not in ("DAY", "DOY", "DOW")
}


def _after_1970(template: str, argument: str) -> str:
    """Make an expression fail for times before 1970.

    Flink rounds the parts of such times towards 1970, which can result in negative hours.
    """
    message = f"{ERROR}Flink computes parts of times before 1970 differently"
    return f"IF({argument} < TIMESTAMP_NTZ '1970-01-01 00:00:00', raise_error('{message}'), {template})"


def _parts(unit: str, position: int, takes: tuple[str, ...]) -> tuple[Translation, ...]:
    """Translations of a function that extracts a part of a date or time.

    ``takes`` has ``@`` in place of the time.
    """
    argument = f"{{{position}}}"
    part = f"CAST({_UNITS[unit]}({argument}) AS BIGINT)"
    of_time = tuple(kind.replace("@", "timestamp") for kind in takes)
    of_date = tuple(kind.replace("@", "date") for kind in takes)
    found = (Translation(of_time, _after_1970(part, argument)),)
    return (*found, Translation(of_date, part)) if unit in _DAY_UNITS else found


def _floor(unit: str) -> str:
    return f"CAST(date_trunc('{unit}', {{0}}) AS TIMESTAMP_NTZ)"


# Flink has special rules for texts that are not plain timestamps, so the translation fails instead of guessing.
_TEXT_TO_TIMESTAMP = (
    "CASE WHEN {0} RLIKE '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]{{1,9}})?\\\\z' "
    "AND try_cast({0} AS TIMESTAMP_NTZ) IS NOT NULL THEN try_cast(substring({0}, 1, {end}) AS TIMESTAMP_NTZ) "
    f"WHEN {{0}} IS NOT NULL THEN raise_error(concat('{ERROR}', {{0}}, ' is not a timestamp of the form "
    "yyyy-MM-dd HH:mm:ss[.fraction]')) END"
)
_TEXT_TO_DATE = (
    "CASE WHEN {0} RLIKE '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}\\\\z' AND try_cast({0} AS DATE) IS NOT NULL "
    f"THEN try_cast({{0}} AS DATE) WHEN {{0}} IS NOT NULL THEN raise_error(concat('{ERROR}', {{0}}, "
    "' is not a date of the form yyyy-MM-dd')) END"
)


def _text_to(kind: str, shape: str) -> str:
    return (
        f"CASE WHEN {{0}} RLIKE '{shape}' AND try_cast({{0}} AS {{type}}) IS NOT NULL THEN try_cast({{0}} AS {{type}}) "
        f"WHEN {{0}} IS NOT NULL THEN raise_error(concat('{ERROR}', {{0}}, ' is not a valid {kind}')) END"
    )


_TEXT_TO_INTEGER = _text_to("integer", r"^[+-]?[0-9]{{1,19}}\\z")
_TEXT_TO_DECIMAL = _text_to("decimal", r"^[+-]?[0-9]{{1,38}}([.][0-9]*)?\\z")
_TEXT_TO_DOUBLE = _text_to("number", r"^[+-]?[0-9]+([.][0-9]*)?([eE][+-]?[0-9]{{1,3}})?\\z")
_SHORTENED = "IF(char_length({0}) <= {length}, {0}, substring({0}, 1, {length}))"
_TRUNCATED = "try_cast(substring(date_format({0}, 'yyyy-MM-dd HH:mm:ss.SSSSSS'), 1, {end}) AS TIMESTAMP_NTZ)"

_MILLIS = "unix_millis(CAST({{{0}}} AS TIMESTAMP_LTZ))"  # Flink computes with whole milliseconds.

# Here, Flink rounds towards zero. Before 1970, the result is the next day unless the time is midnight.
_DAY = f"date_add(DATE '1970-01-01', CAST({_MILLIS.format(0)} div 86400000 AS INT))"

_ADDED = ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK")


def _ceil(unit: str) -> str:
    """Template that rounds up to a whole unit.

    Flink only considers milliseconds or, for months and years, only days (measured).
    """
    smallest = "DAY" if unit in ("YEAR", "MONTH") else "MILLISECOND"
    time = f"CAST(date_trunc('{smallest}', {{0}}) AS TIMESTAMP_NTZ)"
    text = f"IF({_floor(unit)} = {time}, {_floor(unit)}, {_floor(unit)} + INTERVAL '1' {unit})"
    return _after_1970(text, "{0}") if unit in ("YEAR", "MONTH") else text


# Flink's weeks begin on Sunday.
_WEEK = "CAST(date_trunc('WEEK', {0} + INTERVAL '1' DAY) AS TIMESTAMP_NTZ) - INTERVAL '1' DAY"
_WEEK_OF_DATE = "date_sub(trunc(date_add({0}, 1), 'WEEK'), 1)"


def _added(unit: str) -> str:
    time = f"timestampadd({unit}, {{1}}, {{2}})"
    message = f"{ERROR}the result of TIMESTAMPADD is outside the years 1 to 9999"
    beyond = f"{time} < TIMESTAMP_NTZ '0001-01-01' OR {time} >= TIMESTAMP_NTZ '9999-12-31'"
    return f"IF({beyond}, raise_error('{message}'), {time})"


_CLOCK_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
# From 2^52 on, every DOUBLE is a whole number. Zeros keep their sign, and so do numbers that are rounded to zero.
_WHOLE = "isnan({0}) OR abs({0}) >= 4503599627370496 OR {0} = 0"
_FLOOR_DOUBLE = f"IF({_WHOLE}, {{0}}, CAST(floor({{0}}) AS DOUBLE))"
_CEIL_DOUBLE = (
    f"CASE WHEN {_WHOLE} THEN {{0}} WHEN {{0}} > -1 AND {{0}} < 0 THEN CAST('-0.0' AS DOUBLE) "
    "ELSE CAST(ceil({0}) AS DOUBLE) END"
)
_ROUND_DOUBLE = (
    "IF(isnan({0}) OR abs({0}) = CAST('Infinity' AS DOUBLE), "
    f"raise_error('{ERROR}Flink fails to round NaN and infinities'), round({{0}}, {{1}}))"
)
_CUT = "CAST(IF({0} < 0, - floor(- {0}, {1}), floor({0}, {1})) AS {type})"

_CASTS = (
    _t("CAST({0} AS {type})", "null"),
    _t("CAST({0} AS {type})", "integer", gives="integer|decimal|double|float"),
    _t("CAST({0} AS STRING)", "integer|date", gives="string"),
    _t("CAST({0} AS {type})", "decimal", gives="integer|decimal|double"),
    _t("CAST({0} AS STRING)", "decimal6", gives="string"),
    _t("CAST({0} AS {type})", "double", gives="double|integer|decimal"),
    _t("CAST({0} AS {type})", "float", gives="float|double"),
    _t("{0}", "boolean", gives="boolean"),
    _t("{0}", "date", gives="date"),
    _t("{0}", "ltz", gives="ltz"),
    _t("upper(CAST({0} AS STRING))", "boolean", gives="string"),
    _t("{0}", "text", gives="string"),
    _t(_SHORTENED, "text", gives="varchar"),
    _t(_TEXT_TO_INTEGER, "text", gives="integer"),
    _t(_TEXT_TO_DECIMAL, "text", gives="decimal"),
    _t(_TEXT_TO_DOUBLE, "text", gives="double"),
    _t(_TEXT_TO_TIMESTAMP, "text", gives="timestamp"),
    _t(_TEXT_TO_DATE, "text", gives="date"),
    _t("{0}", "timestamp", gives="same-or-finer"),
    _t(_TRUNCATED, "timestamp", gives="milliseconds"),
    _t(_after_1970(_TRUNCATED, "{0}"), "timestamp", gives="timestamp"),
    _t("substring(date_format({0}, 'yyyy-MM-dd HH:mm:ss.SSSSSS'), 1, {end0})", "timestamp", gives="string"),
    _t(_DAY, "timestamp", gives="date"),
    _t("CAST({0} AS TIMESTAMP_NTZ)", "date", gives="timestamp"),
)


# Flink pads by Java characters. A character above U+FFFF consists of two Java characters, and may be cut in half.
def _padded(name: str) -> str:
    refused = f"raise_error('{ERROR}{name.upper()} of characters beyond U+FFFF, which Flink cuts in half')"
    beyond = " OR ".join(f"{{{position}}} RLIKE '[\U00010000-\U0010ffff]'" for position in (0, 2))
    return (
        f"CASE WHEN {{1}} < 0 OR {{2}} = '' THEN NULL WHEN {beyond} THEN {refused} ELSE {name}({{0}}, {{1}}, {{2}}) END"
    )


_WORDS = (  # A word in Flink consists only of ASCII letters and digits.
    "array_join(transform(regexp_extract_all({0}, '[A-Za-z0-9]+|[^A-Za-z0-9]+', 0), w -> "
    "IF(w RLIKE '^[A-Za-z0-9]', concat(upper(left(w, 1)), lower(substring(w, 2))), w)), '')"
)
# In Flink, the replacement is plain text, not a template with groups.
_REPLACED = r"regexp_replace({0}, {1}, replace(replace({2}, '\\', '\\\\'), '$', '\\$'))"
_PART = "IF({0} = '', NULL, get(split({0}, {plain1}, -1), {2}))"
_JSON = "try_parse_json({0})"
_JSON_FOUND = f"split(schema_of_variant(try_variant_get({_JSON}, {{1}}, 'variant')), '[(<]')[0]"


def _no_json(why: str) -> str:
    return f"raise_error(concat('{ERROR}JSON_VALUE of ', left({{0}}, 100), ': {why}'))"


# Flink may return a value for JSON with errors, duplicate keys or half characters. Flink keeps all digits of a number.
_JSON_VALUE = (
    f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {_JSON} IS NULL OR {{0}} RLIKE '\\\\\\\\u[dD][89a-fA-F]' THEN "
    f"{_no_json('the result of Flink for it is unknown')} ELSE CASE {_JSON_FOUND} "
    f"WHEN 'STRING' THEN try_variant_get({_JSON}, {{1}}, 'string') WHEN 'BIGINT' THEN "
    f"try_variant_get({_JSON}, {{1}}, 'string') WHEN 'BOOLEAN' THEN try_variant_get({_JSON}, {{1}}, 'string') "
    f"WHEN 'DECIMAL' THEN {_no_json('Flink keeps the digits of this number')} "
    f"WHEN 'DOUBLE' THEN {_no_json('Flink keeps the digits of this number')} END END"
)


def _extreme(name: str) -> tuple[Translation, ...]:
    """Translations of GREATEST and LEAST.

    For a NULL argument, Flink returns NULL, but Spark ignores the argument.
    """
    of_same = f"IF({{unknown}}, NULL, {name}({{args}}))"
    whole = Translation(("integer", "integer*"), f"IF({{unknown}}, NULL, CAST({name}({{args}}) AS {{type}}))")
    return (whole, *_same(of_same, "text", "date", "timestamp", "ltz"))


_TRUE_OR_FALSE = (
    "CASE WHEN lower({0}) IN ('t', 'true', 'y', 'yes', '1') THEN TRUE "
    "WHEN lower({0}) IN ('f', 'false', 'n', 'no', '0') THEN FALSE"
)


def _tried(kind: str, shape: str, value: str, no_value: str) -> str:
    """Template for TRY_CAST: the value of a plain text, NULL if Flink certainly returns NULL, or an error."""
    fits = f"{{0}} RLIKE '{shape}'" + (f" AND {value} IS NOT NULL" if kind == "DECIMAL" else "")
    return (
        f"CASE WHEN {fits} THEN {value} WHEN {{0}} = '' OR {no_value} THEN NULL "
        f"WHEN {{0}} IS NOT NULL THEN raise_error(concat('{ERROR}TRY_CAST of ', {{0}}, ' to {kind}: Flink has rules of "
        "its own for such texts')) END"
    )


_NO_BOOLEAN = f"WHEN {{0}} IS NOT NULL THEN raise_error(concat('{ERROR}', {{0}}, ' is not a valid BOOLEAN'))"
# Flink counts leading zeros as digits, and converts '99999999.995' to 100000000 as DECIMAL(10, 2) (measured).
_DECIMAL = r"^[+-]?(0|[1-9][0-9]{{0,19}})([.][0-9]{{0,18}})?\\z"
_NO_DIGIT = "{0} NOT RLIKE '[0-9]'"
_TRIED = (
    *(cast for cast in _CASTS if "text" not in cast.takes),
    _t("{0}", "text", gives="string"),
    _t(_SHORTENED, "text", gives="varchar"),
    _t(f"{_TRUE_OR_FALSE} END", "text", gives="boolean"),
    _t(
        _tried(
            "an integer",
            r"^[+-]?[0-9]+([.][0-9]*)?\\z",
            "try_cast(substring_index({0}, '.', 1) AS {type})",
            r"{0} RLIKE '[^-+.0-9\\x00- ]'",
        ),
        "text",
        gives="integer",
    ),
    _t(_tried("DECIMAL", _DECIMAL, "try_cast({0} AS {type})", "FALSE"), "text", gives="roomy"),
    _t(
        _tried(
            "DOUBLE",
            r"^[+-]?[0-9]+([.][0-9]*)?([eE][+-]?[0-9]{{1,3}})?\\z",
            "try_cast({0} AS DOUBLE)",
            r"{0} NOT RLIKE '[0-9NI]' OR {0} RLIKE '[^-+.0-9a-fA-FxXpPNnIity\\x00- ]'",
        ),
        "text",
        gives="double",
    ),
    _t(
        _tried("DATE", r"^(?!0000)[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}\\z", "try_cast({0} AS DATE)", _NO_DIGIT),
        "text",
        gives="date",
    ),
    _t(f"CASE WHEN {_NO_DIGIT} THEN NULL ELSE {_TEXT_TO_TIMESTAMP} END", "text", gives="timestamp"),
)

PARTS: dict[str, tuple[str, str]] = {
    "rows": ("count(1){filter}", "sum"),
    "count": ("count({distinct}{0}){filter}", "sum"),
    "sum": ("sum({distinct}{0}){filter}", "sum"),
    "min": ("min({0}){filter}", "min"),
    "max": ("max({0}){filter}", "max"),
}
"""Parts of decomposable aggregates: an aggregate over rows, and the function that merges its values."""

SCALARS: dict[str, tuple[Translation, ...]] = {
    "+": (
        *_arithmetic("+"),
        _t("({0} + {1})", "timestamp", "days|months"),
        _t("({1} + {0})", "days|months", "timestamp"),
        _t("({0} + {1})", "ltz", "days"),
        _t("CAST({0} + {1} AS DATE)", "date", "whole-days|months"),
    ),
    "-": (
        *_arithmetic("-"),
        _t("({0} - {1})", "timestamp", "days|months"),
        _t("({0} - {1})", "ltz", "days"),
        _t("CAST({0} - {1} AS DATE)", "date", "whole-days|months"),
    ),
    "*": _arithmetic("*"),
    "/": (
        _t(f"CAST(IF({{1}} = 0, {_DIVISION_BY_ZERO}, {{0}} div {{1}}) AS {{type}})", "integer", "integer"),
        _t(f"IF({{d1}} = 0, {_DIVISION_BY_ZERO}, CAST({{d0}} / {{d1}} AS {{type}}))", _EXACT, _EXACT),
        _t(_DOUBLE_DIVISION, _NUMBER, _NUMBER, gives="double"),
    ),
    "%": (
        _t(f"CAST(IF({{1}} = 0, {_DIVISION_BY_ZERO}, {{0}} % {{1}}) AS {{type}})", "integer", "integer"),
        _t(f"IF({{d1}} = 0, {_DIVISION_BY_ZERO}, CAST({{d0}} % {{d1}} AS {{type}}))", _EXACT, _EXACT),
    ),
    "NEG": (_t("(- {0})", "integer|decimal|double"),),
    "=": _comparison("="),
    "<>": _comparison("<>"),
    "<": _comparison("<"),
    "<=": _comparison("<="),
    ">": _comparison(">"),
    ">=": _comparison(">="),
    "AND": (_t("({and})", "boolean|null*"),),
    "OR": (_t("({or})", "boolean|null*"),),
    "NOT": (_t("(NOT {0})", "boolean"),),
    "IS NULL": (_t("({0} IS NULL)", "any"),),
    "IS NOT NULL": (_t("({0} IS NOT NULL)", "any"),),
    **_predicates("TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN"),
    "IS DISTINCT FROM": _same("(NOT {0} <=> {1})", "integer", *_SAME),
    "IS NOT DISTINCT FROM": _same("({0} <=> {1})", "integer", *_SAME),
    "IN": (*_same("({0} IN ({rest}))", "integer", *_SAME), _t("({d0} IN ({drest}))", _EXACT, f"{_EXACT}*")),
    "LIKE": (_t("({0} LIKE {1})", "text", "simple"), _t("({0} RLIKE {regex1})", "text", "pattern")),
    "CAST": (*_CASTS, _t(f"{_TRUE_OR_FALSE} {_NO_BOOLEAN} END", "text", gives="boolean")),
    "TRY_CAST": _TRIED,
    "||": (_t("concat({args})", "text*"),),
    "NULLIF": (*_same("IF({0} = {1}, NULL, {0})", "integer", *_SAME), _t("IF({d0} = {d1}, NULL, {0})", _EXACT, _EXACT)),
    "UPPER": (_t("upper({0})", "text"),),
    "LOWER": (_t("lower({0})", "text"),),
    "CONCAT": (_t("concat({args})", "text*"),),
    "CHAR_LENGTH": (_t("char_length({0})", "text"),),
    "CHARACTER_LENGTH": (_t("char_length({0})", "text"),),
    "SUBSTRING": (
        _t("substring({0}, {1})", "text", "position"),
        _t("substring({0}, {1}, {2})", "text", "position", "position"),
    ),
    "SUBSTR": (
        _t("substring({0}, {1})", "text", "position"),
        _t("substring({0}, {1}, {2})", "text", "position", "position"),
    ),
    "TRIM": (
        _t("trim({0})", "text"),
        _t("trim({1})", "BOTH", "text", "FROM"),
        _t("ltrim({1})", "LEADING", "text", "FROM"),
        _t("rtrim({1})", "TRAILING", "text", "FROM"),
        *(
            _t(f"trim({side} {{1}} FROM {{2}})", side, "some", "text", "FROM")
            for side in ("BOTH", "LEADING", "TRAILING")
        ),
    ),
    "LTRIM": (_t("ltrim({0})", "text"), _t("trim(LEADING {1} FROM {0})", "text", "some")),
    "RTRIM": (_t("rtrim({0})", "text"), _t("trim(TRAILING {1} FROM {0})", "text", "some")),
    "BTRIM": (_t("trim({0})", "text"), _t("trim(BOTH {1} FROM {0})", "text", "some")),
    "LEFT": (_t("left({0}, {1})", "text", "position"),),
    "RIGHT": (_t("right({0}, {1})", "text", "position"),),
    "POSITION": (_t("locate({0}, {1})", "text", "text", "IN"),),
    "INSTR": (_t("instr({0}, {1})", "text", "text"),),
    "REPLACE": (_t("replace({0}, {1}, {2})", "text", "some", "text"),),
    "REVERSE": (_t("reverse({0})", "text"),),
    "LPAD": (_t(_padded("lpad"), "text", "int", "text"),),
    "RPAD": (_t(_padded("rpad"), "text", "int", "text"),),
    "REPEAT": (_t("repeat({0}, {1})", "text", "int"),),
    "STARTSWITH": (_t("startswith({0}, {1})", "text", "text"),),
    "ENDSWITH": (_t("endswith({0}, {1})", "text", "text"),),
    "INITCAP": (_t(_WORDS, "text"),),
    "TRANSLATE": (_t("translate({0}, {1}, {2})", "text", "constant", "constant"),),
    "REGEXP": (_t("({0} RLIKE {1})", "text", "constant"),),
    "REGEXP_EXTRACT": (
        _t("IF({0} RLIKE {1}, regexp_extract({0}, {1}, 0), NULL)", "text", "constant"),
        _t("IF({0} RLIKE {1}, regexp_extract({0}, {1}, {2}), NULL)", "text", "constant", "digits"),
    ),
    "REGEXP_REPLACE": (_t(_REPLACED, "text", "constant", "text"),),
    "SPLIT_INDEX": (_t(_PART, "text", "some", "int"),),
    "JSON_VALUE": (_t(_JSON_VALUE, "text", "json-path"),),
    "GREATEST": _extreme("greatest"),
    "LEAST": _extreme("least"),
    "MD5": (_t("md5({0})", "text"),),
    "SHA1": (_t("sha1({0})", "text"),),
    **{f"SHA{bits}": (_t(f"sha2({{0}}, {bits})", "text"),) for bits in (224, 256, 384, 512)},
    "CONCAT_WS": (_t("concat_ws({args})", "text", "text*"),),
    "LOCATE": (_t("locate({0}, {1})", "text", "text"),),
    "ABS": (_t("CAST(abs({0}) AS {type})", "integer|decimal|double"),),
    "SIGN": (_t("CAST(sign({0}) AS {type})", "integer|decimal"), _t("sign({0})", "double")),
    "FLOOR": (
        _t("{0}", "integer"),
        _t("CAST(floor({0}) AS {type})", "decimal"),
        _t(_FLOOR_DOUBLE, "double"),
        *(
            _t(_after_1970(_floor(unit), "{0}") if unit in ("YEAR", "MONTH") else _floor(unit), "timestamp", unit, "TO")
            for unit in _CLOCK_UNITS
        ),
        _t(_after_1970(_WEEK, "{0}"), "timestamp", "WEEK", "TO"),
        _t(_after_1970(_floor("QUARTER"), "{0}"), "timestamp", "QUARTER", "TO"),
        _t(_after_1970(_WEEK_OF_DATE, "{0}"), "date", "WEEK", "TO"),
        *(
            _t(_after_1970(f"trunc({{0}}, '{unit}')", "{0}"), "date", unit, "TO")
            for unit in ("YEAR", "QUARTER", "MONTH")
        ),
    ),
    "CEIL": (
        _t("{0}", "integer"),
        _t("CAST(ceil({0}) AS {type})", "decimal"),
        _t(_CEIL_DOUBLE, "double"),
        *(_t(_ceil(unit), "timestamp", unit, "TO") for unit in _CLOCK_UNITS),
    ),
    "ROUND": (
        _t("{0}", "integer"),
        _t("{0}", "integer", "digits"),
        _t("CAST(round({0}) AS {type})", "decimal"),
        _t("CAST(round({0}, {1}) AS {type})", "decimal", "constant-number"),
        _t(_ROUND_DOUBLE.replace("{1}", "0"), "double"),
        _t(_ROUND_DOUBLE, "double", "constant-number"),
    ),
    "TRUNCATE": (
        _t("{0}", "integer"),
        _t("{0}", "integer", "digits"),
        _t(_CUT.replace("{1}", "0"), "decimal"),
        _t(_CUT, "decimal", "digits"),
    ),
    "DATE_FORMAT": (_t("date_format({0}, {1})", "timestamp", "format"),),
    "TO_TIMESTAMP": (_t(_TEXT_TO_TIMESTAMP, "text"),),
    "TO_TIMESTAMP_LTZ": (_t("timestamp_seconds({0})", "integer", "=0"), _t("timestamp_millis({0})", "integer", "=3")),
    "TO_DATE": (_t(_TEXT_TO_DATE, "text"),),
    "EXTRACT": tuple(part for unit in _UNITS for part in _parts(unit, 1, (unit, "@", "FROM"))),
    **{name: _parts(unit, 0, ("@",)) for name, unit in _FUNCTION_UNITS.items()},
    "TIMESTAMPADD": tuple(
        _t(_added(unit), unit, "int", kind)
        for unit in ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
        for kind in (("timestamp", "ltz") if unit in _ADDED else ("timestamp",))
    ),
    "HEX": (_t("hex({0})", "text|integer"),),
    "TO_BASE64": (_t(r"translate(base64({0}), '\r\n', '')", "text"),),
    "CHR": (_t("chr({0})", "int"),),
    "TIMESTAMPDIFF": tuple(
        _t(f"CAST(({_MILLIS.format(2)} - {_MILLIS.format(1)}) div {length} AS INT)", unit, kind, kind)
        for kind in ("timestamp", "ltz")
        for unit, length in (("SECOND", 1000), ("MINUTE", 60_000), ("HOUR", 3_600_000), ("DAY", 86_400_000))
    ),
}
SCALARS["MOD"] = SCALARS["%"]
SCALARS["CEILING"] = SCALARS["CEIL"]

BRANCHES: dict[str, str] = {"CASE": "case", "IF": "if", "COALESCE": "coalesce", "IFNULL": "coalesce"}
"""Functions that return one of several arguments. Each argument is first cast to the result type."""

AGGREGATES: dict[str, tuple[Translation, ...]] = {
    "COUNT": (_t("{rows}"), _t("{count}", "integer|decimal|double|text|boolean|date|timestamp|ltz")),
    # -0.0 equals 0.0 but is written differently. Flink adds values to the first value, and Spark adds them to 0.0, so a
    # sum of only -0.0 keeps its sign in Flink alone. If a group contains both -0.0 and 0.0, MIN and MAX return the zero
    # that arrives first.
    "SUM": (_t("CAST({sum} AS {type})", "integer|decimal"), _t("{sum}", "double")),
    "AVG": (
        _t("CAST({sum} div {count} AS {type})", "integer"),
        _t("CAST(CAST({sum} AS DECIMAL(38, {scale0})) / {count} AS {type})", "decimal"),
        _t("{sum} / {count}", "double"),
    ),
    "MIN": (_t("{min}", "integer|decimal|double|float|boolean|text|date|timestamp|ltz"),),
    "MAX": (_t("{max}", "integer|decimal|double|float|boolean|text|date|timestamp|ltz"),),
}


def translations_of(spec: FunctionSpec) -> tuple[Translation, ...]:
    """Exact translations of a function, with one for each combination of argument types."""
    table = AGGREGATES if spec.kind is FunctionKind.AGGREGATE else SCALARS
    return table.get(spec.name, ())
