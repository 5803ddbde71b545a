"""Expressions of the Table API, as the SQL that says the same.

Kinds of :class:`~airflow_flinkcompat.program.values.Expr`: ``column`` (name), ``sql`` (text of a literal), ``infix``
(operator, left, right), ``prefix`` (operator, operand), ``postfix`` (operator, operand), ``call`` (function,
arguments), ``cast`` (operand, type), ``aggregate`` (function, argument, distinct), ``over`` (aggregate, window alias),
``alias`` (operand, name), ``field`` (operand, window field), ``interval`` (milliseconds), ``months`` (count), ``rows``
(count), ``order`` (operand, ASC or DESC) and ``bound`` (name of an open bound).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence

from airflow_flinkcompat.program.values import Expr, Known, NotRead, Spec, Type, Unknown, Value

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
"""Milliseconds of each unit of a length (table-api digest: months, quarters and years are no sizes)."""
_MONTHS = {f"{unit}{end}": months for unit, months in (("month", 1), ("quarter", 3), ("year", 12)) for end in ("", "s")}
AGGREGATES = ("sum", "min", "max", "avg", "count", "stddev_pop", "stddev_samp", "var_pop", "var_samp", "collect")
FIELDS = ("start", "end", "rowtime", "proctime")
_CALLS = {"upper_case": "UPPER", "lower_case": "LOWER", "abs": "ABS", "char_length": "CHAR_LENGTH", "ln": "LN"}
_POSTFIX = {
    "is_null": "IS NULL",
    "is_not_null": "IS NOT NULL",
    "is_true": "IS TRUE",
    "is_false": "IS FALSE",
    "is_not_true": "IS NOT TRUE",
    "is_not_false": "IS NOT FALSE",
}
METHODS = ("alias", "cast", "over", "like", "between")
_TYPES = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "STRING", "BYTES")
_SIZED = {"DECIMAL": 2, "TIMESTAMP": 1, "TIMESTAMP_LTZ": 1, "CHAR": 1, "VARCHAR": 1}
_BOUNDS = {
    "UNBOUNDED_ROW": ("ROWS", "UNBOUNDED"),
    "UNBOUNDED_RANGE": ("RANGE", "UNBOUNDED"),
    "CURRENT_ROW": ("ROWS", "CURRENT ROW"),
    "CURRENT_RANGE": ("RANGE", "CURRENT ROW"),
}
BOUNDS = tuple(_BOUNDS)
PROCTIME = Expr("call", ("PROCTIME", ()))
"""The time of a window of FLIP-11 that names none."""


def quoted(name: str) -> str:
    """A name as SQL writes it whatever it is."""
    return "`" + name.replace("`", "``") + "`"


def text(value: str) -> str:
    """A text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def path(name: str) -> str:
    """A dotted path, each part quoted. Raises :class:`NotRead` for one that is not plain."""
    if not re.fullmatch(r"\w+(\.\w+){0,2}", name):
        raise NotRead("a path that is no plain dotted name is not read")
    return ".".join(quoted(part) for part in name.split("."))


def literal(value: Value) -> Expr:
    """A constant as an expression; an expression as it is. Raises :class:`NotRead` for anything else."""
    match value:
        case Expr():
            return value
        case Known(bool(given)):
            return Expr("sql", ("TRUE" if given else "FALSE",))
        case Known(int(given)):
            return Expr("sql", (str(given) if given >= 0 else f"({given})",))
        case Known(float(given)) if math.isfinite(given):
            # A Python number is a DOUBLE, a number with a point in SQL a DECIMAL.
            digits = repr(given)
            return Expr("sql", (f"({digits}{'' if 'e' in digits else 'E0'})",))
        case Known(str(given)):
            return Expr("sql", (text(given),))
        case Unknown(why):
            raise NotRead(f"a value in an expression is not known: {why}")
    raise NotRead("a value that is no constant stands in an expression")


def attribute(expr: Expr, name: str) -> Expr:
    """What ``expr.name`` says. Raises :class:`NotRead` for what is not read."""
    if expr == Expr("column", ("*",)):
        raise NotRead(f"col('*').{name} is not read")
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
    if name in _CALLS:
        return Expr("call", (_CALLS[name], (expr,)))
    if name in _POSTFIX:
        return Expr("postfix", (_POSTFIX[name], expr))
    raise NotRead(f".{name} of an expression is not read")


def _interval(expr: Expr, unit: str) -> Expr:
    if expr.kind != "sql" or not re.fullmatch(r"\d+|\(-\d+\)|\(-?[\d.]+(E0|e-?\d+)\)", expr.parts[0]):
        raise NotRead(f"only a number has .{unit}")
    # Flink drops a fraction: BigDecimal.longValue (ApiExpressionUtils of 2.3.0).
    written = expr.parts[0].strip("()")
    number = int(written) if re.fullmatch(r"-?\d+", written) else int(float(written))
    return Expr("interval", (number * UNITS[unit],))


def data_type(name: str, args: Sequence[Value]) -> Type:
    """``DataTypes.NAME(args)``. Raises :class:`NotRead` for a type that is not read."""
    numbers = [arg.value for arg in args if isinstance(arg, Known) and isinstance(arg.value, int)]
    if name in _TYPES and not args:
        return Type(name)
    if name in _SIZED and len(numbers) == len(args) == _SIZED[name]:
        return Type(f"{name}({', '.join(map(str, numbers))})")
    raise NotRead(f"the type {name} is not read")


Special = Callable[[Expr], str | None]
"""What decides about an expression before anything else does: a window field, an aggregate over a row window."""


def sql(expr: Expr, special: Special = lambda expr: None) -> str:
    """The expression as SQL. Raises :class:`NotRead` for what does not stand for a value here."""
    decided = special(expr)
    if decided is not None:
        return decided

    def inner(part: Expr) -> str:
        return sql(part, special)

    match expr.kind, expr.parts:
        case "column", (name,):
            return "*" if name == "*" else quoted(name)
        case "sql", (written,):
            return str(written)
        case "infix", (operator, left, right):
            return f"({inner(left)} {operator} {inner(right)})"
        case "prefix", (operator, operand):
            return f"({operator} {inner(operand)})"
        case "postfix", (operator, operand):
            return f"({inner(operand)} {operator})"
        case "call", (function, args):
            return f"{function}({', '.join(map(inner, args))})"
        case "between", (operand, low, high):
            return f"({inner(operand)} BETWEEN {inner(low)} AND {inner(high)})"
        case "cast", (operand, Type(type)):
            return f"CAST({inner(operand)} AS {type})"
        case "aggregate", (function, arg, distinct):
            return f"{function}({'DISTINCT ' if distinct else ''}{inner(arg)})"
        case "interval", (milliseconds,):
            return duration(milliseconds)
        case "alias", (operand, name):
            return f"{inner(operand)} AS {quoted(name)}"
        case "field", (_, name):
            raise NotRead(f".{name} stands where there is no window of that name")
        case "over", _:
            raise NotRead("an aggregate names a row window that is not there")
    raise NotRead("an interval of rows or an open bound is no value")


def duration(milliseconds: int) -> str:
    """A day-time interval as SQL writes it."""
    sign, rest = ("-", -milliseconds) if milliseconds < 0 else ("", milliseconds)
    return f"INTERVAL '{sign}{rest // 1000}.{rest % 1000:03}' SECOND(10, 3)"


def aggregates(expr: Expr) -> bool:
    """Whether an aggregate that belongs to no row window stands in the expression."""
    if expr.kind == "aggregate":
        return True
    return expr.kind != "over" and any(map(aggregates, _parts(expr)))


def over(expr: Expr) -> bool:
    """Whether an aggregate that names a row window stands in the expression."""
    return expr.kind == "over" or any(map(over, _parts(expr)))


def _parts(expr: Expr) -> list[Expr]:
    parts = [*expr.parts, *(arg for part in expr.parts if isinstance(part, tuple) for arg in part)]
    return [part for part in parts if isinstance(part, Expr)]


def group_window(spec: Spec) -> tuple[str, Special]:
    """A group window as the call that GROUP BY holds, and what decides about its fields."""
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
    """A length of time, or one in rows: ``ROW_INTERVAL(10)``, which only the plan of a program knows."""
    return duration(expr.parts[0]) if expr.kind == "interval" else f"ROW_INTERVAL({expr.parts[0]})"


def _is_time(expr: Expr) -> bool:
    return expr.kind == "column" or expr == PROCTIME


def row_windows(specs: Iterable[Spec]) -> Special:
    """What decides about aggregates over several row windows, each by its alias."""
    each = [row_window(spec) for spec in specs]
    return lambda expr: next((found for special in each if (found := special(expr)) is not None), None)


def row_window(spec: Spec) -> Special:
    """What decides about aggregates over a row window: ``SUM(b) OVER (…)``.

    A window that ends (``within``: FLIP-11's TumbleRows and SessionRows) is the last PARTITION BY item, which only the
    plan of a program knows: its rows up to the current one are aggregated, in the order they come.
    """
    keys, order = spec.get("partition_by") or (), spec.get("order_by")
    if order is None or len(order) != 1 or not _is_time(order[0]) or not spec.alias:
        raise NotRead("Over needs .order_by(a time column) and .alias(a name)")
    unit, preceding = _bound(spec.get("preceding"), "PRECEDING", ("RANGE", "UNBOUNDED PRECEDING"))
    other, following = _bound(spec.get("following"), "FOLLOWING", (unit, "CURRENT ROW"))
    if other != unit:
        raise NotRead("the bounds of Over are of two kinds, rows and time")
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
    """The unit of a frame, and how far it goes to one side."""
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
