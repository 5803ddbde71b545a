"""Translation of Table API expressions to SQL, with tables of methods and functions.

An entry with ``{0}`` is a template, in which ``{0}`` is the object of a method or the first argument of a function. Any
other entry is the name of a function that accepts all arguments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from airflow_flinkcompat.frontends.table_api.values import (
    MARKED,
    Const,
    Expr,
    NotRead,
    Ref,
    Spec,
    TableValue,
    Type,
    UnknownValue,
    Value,
)
from airflow_flinkcompat.model.text import sql_name, sql_text

PROPERTIES: Mapping[str, str] = {
    "upper_case": "UPPER", "lower_case": "LOWER", "init_cap": "INITCAP", "char_length": "CHAR_LENGTH",
    "reverse": "REVERSE", "ascii": "ASCII", "chr": "CHR", "from_base64": "FROM_BASE64", "to_base64": "TO_BASE64",
    "md5": "MD5", "sha1": "SHA1", "sha224": "SHA224", "sha256": "SHA256", "sha384": "SHA384", "sha512": "SHA512",
    "abs": "ABS", "sign": "SIGN", "sqrt": "SQRT", "exp": "EXP", "ln": "LN", "log10": "LOG10", "log2": "LOG2",
    "sin": "SIN", "cos": "COS", "tan": "TAN", "cot": "COT", "asin": "ASIN", "acos": "ACOS", "atan": "ATAN",
    "sinh": "SINH", "cosh": "COSH", "tanh": "TANH", "degrees": "DEGREES", "radians": "RADIANS", "bin": "BIN",
    "hex": "HEX", "cardinality": "CARDINALITY", "element": "ELEMENT",
}  # fmt: skip
"""Attributes that call a function."""
AGGREGATED: Mapping[str, str] = {"first_value": "FIRST_VALUE", "last_value": "LAST_VALUE", "array_agg": "ARRAY_AGG"}
"""Less common aggregates that are written as attributes."""

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
"""SQL of each method, by name and number of arguments."""
WITH_UNIT: Mapping[str, str] = {
    "extract": "EXTRACT({unit} FROM {{0}})", "floor": "FLOOR({{0}} TO {unit})", "ceil": "CEIL({{0}} TO {unit})",
}  # fmt: skip
"""SQL of methods that accept a ``TimeIntervalUnit``."""
TIME_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")

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
"""SQL of each function, with its minimum and maximum number of arguments."""
WITHOUT_BRACKETS = (
    "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP",
)  # fmt: skip


UNITS = {
    unit: factor
    for factor, units in {
        1: ("milli", "millis"),
        1_000: ("second", "seconds"),
        60_000: ("minute", "minutes"),
        3_600_000: ("hour", "hours"),
        86_400_000: ("day", "days"),
        604_800_000: ("week", "weeks"),
    }.items()
    for unit in units
}
"""Milliseconds of each time unit; months, quarters and years have no fixed length."""
_MONTHS = {f"{unit}{end}": months for unit, months in (("month", 1), ("quarter", 3), ("year", 12)) for end in ("", "s")}
AGGREGATES = ("sum", "min", "max", "avg", "count", "stddev_pop", "stddev_samp", "var_pop", "var_samp", "collect")
FIELDS = ("start", "end", "rowtime", "proctime")
_POSTFIX = {
    "is_null": "IS NULL",
    "is_not_null": "IS NOT NULL",
    "is_true": "IS TRUE",
    "is_false": "IS FALSE",
    "is_not_true": "IS NOT TRUE",
    "is_not_false": "IS NOT FALSE",
}
_BOUNDS = {
    "UNBOUNDED_ROW": ("ROWS", "UNBOUNDED"),
    "UNBOUNDED_RANGE": ("RANGE", "UNBOUNDED"),
    "CURRENT_ROW": ("ROWS", "CURRENT ROW"),
    "CURRENT_RANGE": ("RANGE", "CURRENT ROW"),
}
BOUNDS = tuple(_BOUNDS)
PROCTIME = Expr("call", ("PROCTIME", ()))
"""The time attribute of a FLIP-11 window without ``on``."""


_PART = rf"(?:\w|{MARKED.pattern.replace('(', '(?:')})+"
_PATH = re.compile(rf"{_PART}(?:\.{_PART}){{0,2}}")


def path(name: str) -> str:
    """Quote each part of a dotted path. Raises :class:`NotRead` if the path is not plain."""
    if not _PATH.fullmatch(name):
        raise NotRead("a path that is not a plain dotted name is not supported")
    return ".".join(map(sql_name, re.findall(_PART, name)))


def literal(value: Value) -> Expr:
    """Convert a constant to an expression. Raises :class:`NotRead` for any other value."""
    match value:
        case Expr():
            return value
        case Const(bool(given)):
            return Expr("sql", ("TRUE" if given else "FALSE",))
        case Const(int(given)):
            return Expr("sql", (str(given) if given >= 0 else f"({given})",))
        case Const(float(given)) if math.isfinite(given):
            # A Python float is a DOUBLE, but an SQL literal with a decimal point is a DECIMAL.
            digits = repr(given)
            return Expr("sql", (f"({digits}{'' if 'e' in digits else 'E0'})",))
        case Const(str(given)):
            return Expr("sql", (sql_text(given),))
        case UnknownValue(why):
            raise NotRead(f"a value in an expression is unknown: {why}")
    raise NotRead("an expression contains a value that is not a constant")


def attribute(expr: Expr, name: str) -> Expr:
    """The value of ``expr.name``. Raises :class:`NotRead` for an unknown attribute."""
    if expr == Expr("column", ("*",)):
        raise NotRead(f"col('*').{name} is not supported")
    if name in UNITS:
        return _interval(expr, name)
    if name in _MONTHS and expr.kind == "sql" and str(expr.parts[0]).isdigit():
        return Expr("months", (int(expr.parts[0]) * _MONTHS[name],))
    if name in ("asc", "desc"):
        return Expr("order", (expr, name.upper()))
    if name in AGGREGATES:
        return Expr("aggregate", (name.upper(), expr, False))
    if name == "distinct" and expr.kind == "aggregate":
        return Expr("aggregate", (expr.parts[0], expr.parts[1], True))
    if name in FIELDS and expr.kind == "column":
        return Expr("field", (expr, name))
    if name in AGGREGATED:
        return Expr("aggregate", (AGGREGATED[name], expr, False))
    if name in PROPERTIES:
        return Expr("call", (PROPERTIES[name], (expr,)))
    if name in _POSTFIX:
        return Expr("postfix", (_POSTFIX[name], expr))
    raise NotRead(f".{name} of an expression is not supported")


def _interval(expr: Expr, unit: str) -> Expr:
    if expr.kind != "sql" or not re.fullmatch(r"\d+|\(-\d+\)|\(-?[\d.]+(E0|e-?\d+)\)", expr.parts[0]):
        raise NotRead(f"only a number has .{unit}")
    # Flink drops the fraction: BigDecimal.longValue (ApiExpressionUtils in 2.3.0).
    written = expr.parts[0].strip("()")
    number = int(written) if re.fullmatch(r"-?\d+", written) else int(float(written))
    return Expr("interval", (number * UNITS[unit],))


def method(expr: Expr, name: str, args: Sequence[Value]) -> Expr | None:
    """Result of ``expr.name(args)``; None for an unsupported method."""
    match name, list(args):
        case unit, [Ref(path=path, name=by)] if unit in WITH_UNIT and path.startswith("pyflink."):
            if by not in TIME_UNITS:
                raise NotRead(f"the unit {by} is not supported")
            return Expr("form", (WITH_UNIT[unit].format(unit=by), (expr,)))
        case "in_", [_, *_] if not any(isinstance(arg, TableValue) for arg in args):
            given = tuple(map(literal, args))
            places = ", ".join(f"{{{place + 1}}}" for place in range(len(given)))
            return Expr("form", (f"({{0}} IN ({places}))", (expr, *given)))
        case "cast" | "try_cast", [Type()]:
            return Expr("cast" if name == "cast" else "try cast", (expr, args[0]))
        case "list_agg", [] | [_]:
            separator = literal(args[0]) if args else Expr("sql", ("','",))
            return Expr("aggregate", ("LISTAGG", Expr("list", ((expr, separator),)), False))
        case "get", [Const(str(field))] if expr.kind in ("column", "get"):
            return Expr("get", (expr, field))
        case "at", [key]:
            return Expr("item", (expr, literal(key)))
    written = METHODS.get((name, len(args)))
    return None if written is None else _written(written, (expr, *map(literal, args)))


def function(name: str, args: Sequence[Value]) -> Expr | None:
    """Result of a function of ``pyflink.table.expressions``; None for an unsupported function."""
    match name, list(args):
        case "timestamp_diff", [Ref(name=unit), start, end] if unit in TIME_UNITS:
            return Expr("form", (f"TIMESTAMPDIFF({unit}, {{0}}, {{1}})", (literal(start), literal(end))))
        case "null_of", [Type(sql=type)]:
            return Expr("sql", (f"CAST(NULL AS {type})",))
        case "lit", [Const(None), Type(sql=type)]:
            return Expr("sql", (f"CAST(NULL AS {type})",))
        case "lit", [Const() as given, Type()]:
            return Expr("cast", (literal(given), args[1]))
        case "row", [_, *_]:
            return Expr("call", ("ROW", tuple(map(literal, args))))
        case "array" | "map_", [_, *_] if name == "array" or len(args) % 2 == 0:
            places = ", ".join(f"{{{place}}}" for place in range(len(args)))
            return Expr("form", (f"{'ARRAY' if name == 'array' else 'MAP'}[{places}]", tuple(map(literal, args))))
    written, low, high = FUNCTIONS.get(name, ("", 1, 0))
    return _written(written, tuple(map(literal, args))) if low <= len(args) <= high else None


def _written(written: str, args: tuple[Expr, ...]) -> Expr:
    if "{" in written:
        return Expr("form", (written, args))
    return Expr("sql", (written,)) if written in WITHOUT_BRACKETS else Expr("call", (written, args))


Inner = Callable[[Expr], str]
Special = Callable[[Expr], str | None]
"""Function that writes window fields and aggregates over row windows; None for any other expression."""


def sql(expr: Expr, special: Special = lambda expr: None) -> str:
    """Write an expression as SQL. Raises :class:`NotRead` if the expression is not a value."""
    decided = special(expr)
    if decided is not None:
        return decided

    if expr.kind not in _WRITTEN:
        raise NotRead("an interval of rows or an open bound is not a value")
    return _WRITTEN[expr.kind](partial(sql, special=special), *expr.parts)


def _no_window(inner: Inner, _: Expr, name: str) -> str:
    raise NotRead(f".{name} is used without a window of that name")


def _no_row_window(inner: Inner, *_: object) -> str:
    raise NotRead("an aggregate names a row window that does not exist")


_WRITTEN: Mapping[str, Callable[..., str]] = {
    "column": lambda inner, name: "*" if name == "*" else sql_name(name),
    "sql": lambda inner, written: str(written),
    "infix": lambda inner, operator, left, right: f"({inner(left)} {operator} {inner(right)})",
    "prefix": lambda inner, operator, operand: f"({operator} {inner(operand)})",
    "postfix": lambda inner, operator, operand: f"({inner(operand)} {operator})",
    "call": lambda inner, function, args: f"{function}({', '.join(map(inner, args))})",
    "own": lambda inner, function, args: f"{function}({', '.join(map(inner, args))})",
    "form": lambda inner, template, args: str(template).format(*map(inner, args)),
    "list": lambda inner, args: ", ".join(map(inner, args)),
    "item": lambda inner, operand, key: f"{inner(operand)}[{inner(key)}]",
    "get": lambda inner, operand, field: f"{inner(operand)}.{sql_name(field)}",
    "cast": lambda inner, operand, type: f"CAST({inner(operand)} AS {type.sql})",
    "try cast": lambda inner, operand, type: f"TRY_CAST({inner(operand)} AS {type.sql})",
    "aggregate": lambda inner, function, arg, distinct: f"{function}({'DISTINCT ' if distinct else ''}{inner(arg)})",
    "interval": lambda inner, milliseconds: duration(milliseconds),
    "alias": lambda inner, operand, name: f"{inner(operand)} AS {sql_name(name)}",
    "field": _no_window,
    "over": _no_row_window,
}
"""The writer of each kind of expression; ``inner`` writes its operands."""


def duration(milliseconds: int) -> str:
    """Write a day-time interval as SQL."""
    sign, rest = ("-", -milliseconds) if milliseconds < 0 else ("", milliseconds)
    return f"INTERVAL '{sign}{rest // 1000}.{rest % 1000:03}' SECOND(10, 3)"


def aggregates(expr: Expr) -> bool:
    """True if an expression contains an aggregate outside of row windows."""
    if expr.kind == "aggregate":
        return True
    return expr.kind != "over" and any(map(aggregates, _parts(expr)))


def over(expr: Expr) -> bool:
    """True if an expression contains an aggregate over a row window."""
    return expr.kind == "over" or any(map(over, _parts(expr)))


def _parts(expr: Expr) -> list[Expr]:
    parts = [*expr.parts, *(arg for part in expr.parts if isinstance(part, tuple) for arg in part)]
    return [part for part in parts if isinstance(part, Expr)]


def group_window(spec: Spec) -> tuple[str, Special]:
    """The GROUP BY call of a group window, and the writer of its fields."""
    names = {"Tumble": ("over",), "Slide": ("every", "over"), "Session": ("with_gap",)}[spec.kind]
    time = spec.get("on")
    lengths = [spec.get(name) for name in names]
    if time is None or len(time) != 1 or not _is_time(time[0]) or not spec.alias:
        raise NotRead(f"{spec.kind} needs .on(a time column) and .alias(a name)")
    written = []
    for length in lengths:
        if length is None or len(length) != 1 or length[0].kind not in ("interval", "rows"):
            raise NotRead(f"the lengths of {spec.kind} must be constants: lit(10).minutes or row_interval(10)")
        written.append(_length(length[0]))
    head = {"Tumble": "TUMBLE", "Slide": "HOP", "Session": "SESSION"}[spec.kind]
    args = ", ".join((sql(time[0]), *written))

    def special(expr: Expr) -> str | None:
        if expr.kind == "field" and expr.parts[0].parts[0] == spec.alias:
            return f"{head}_{expr.parts[1].upper()}({args})"
        return None

    return f"{head}({args})", special


def _length(expr: Expr) -> str:
    """SQL of a length: an interval, or ``ROW_INTERVAL(10)``, which only occurs in programs."""
    return duration(expr.parts[0]) if expr.kind == "interval" else f"ROW_INTERVAL({expr.parts[0]})"


def _is_time(expr: Expr) -> bool:
    return expr.kind == "column" or expr == PROCTIME


def row_windows(specs: Iterable[Spec]) -> Special:
    """The writer of aggregates over several row windows."""
    each = [row_window(spec) for spec in specs]
    return lambda expr: next((found for special in each if (found := special(expr)) is not None), None)


def row_window(spec: Spec) -> Special:
    """The writer of aggregates over a row window: ``SUM(b) OVER (…)``.

    A window with an end (``within``, from FLIP-11's TumbleRows and SessionRows) becomes the last PARTITION BY item.
    This item occurs only in programs. The aggregate covers the rows of this window up to the current row, in arrival
    order.
    """
    keys, order = spec.get("partition_by") or (), spec.get("order_by")
    if order is None or len(order) != 1 or not _is_time(order[0]) or not spec.alias:
        raise NotRead("Over needs .order_by(a time column) and .alias(a name)")
    unit, preceding = _bound(spec.get("preceding"), "PRECEDING", ("RANGE", "UNBOUNDED PRECEDING"))
    other, following = _bound(spec.get("following"), "FOLLOWING", (unit, "CURRENT ROW"))
    if other != unit:
        raise NotRead("the bounds of Over mix rows and time")
    written = [*map(sql, keys)]
    if (within := spec.get("within")) is not None:
        call, length = within[0].parts
        written.append(f"{call}({sql(order[0])}, {_length(length)})")
        unit = "ROWS"
    partition = f"PARTITION BY {', '.join(written)} " if written else ""
    clause = f"{partition}ORDER BY {sql(order[0])} {unit} BETWEEN {preceding} AND {following}"

    def special(expr: Expr) -> str | None:
        if expr.kind == "over" and expr.parts[1] == spec.alias and expr.parts[0].kind == "aggregate":
            return f"{sql(expr.parts[0])} OVER ({clause})"
        return None

    return special


def _bound(given: tuple[Expr, ...] | None, side: str, default: tuple[str, str]) -> tuple[str, str]:
    """The unit of a frame, and its bound on one side."""
    if given is None:
        return default
    match given:
        case (Expr("bound", (name,)),):
            unit, far = _BOUNDS[name]
            return unit, far if far == "CURRENT ROW" else f"{far} {side}"
        case (Expr("rows", (count,)),):
            return "ROWS", f"{count} {side}"
        case (Expr("interval", (length,)),):
            return "RANGE", f"{duration(length)} {side}"
    raise NotRead("a bound of Over must be a constant")
