"""Expressions of the Table API, as the SQL that says the same.

Kinds of :class:`~airflow_flinkcompat.frontends.table_api.values.Expr`: ``column`` (name), ``sql`` (text of a literal),
``infix`` (operator, left, right), ``prefix`` (operator, operand), ``postfix`` (operator, operand), ``call`` (function,
arguments), ``cast`` (operand, type), ``aggregate`` (function, argument, distinct), ``over`` (aggregate, window alias),
``alias`` (operand, name), ``field`` (operand, window field), ``interval`` (milliseconds), ``months`` (count), ``rows``
(count), ``order`` (operand, ASC or DESC), ``bound`` (name of an open bound), ``form`` (template, arguments), ``list``
(expressions), ``item`` (operand, key), ``get`` (operand, field), ``try cast`` (operand, type) and ``own`` (function of
no known kind, arguments).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from airflow_flinkcompat.frontends.table_api import vocabulary
from airflow_flinkcompat.frontends.table_api.inputs import MARKED
from airflow_flinkcompat.frontends.table_api.values import (
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
"""The time of a window of FLIP-11 that names none."""


_PART = rf"(?:\w|{MARKED.pattern.replace('(', '(?:')})+"
_PATH = re.compile(rf"{_PART}(?:\.{_PART}){{0,2}}")


def path(name: str) -> str:
    """A dotted path, each part quoted. Raises :class:`NotRead` for one that is not plain."""
    if not _PATH.fullmatch(name):
        raise NotRead("a path that is no plain dotted name is not read")
    return ".".join(map(sql_name, re.findall(_PART, name)))


def literal(value: Value) -> Expr:
    """A constant as an expression; an expression as it is. Raises :class:`NotRead` for anything else."""
    match value:
        case Expr():
            return value
        case Const(bool(given)):
            return Expr("sql", ("TRUE" if given else "FALSE",))
        case Const(int(given)):
            return Expr("sql", (str(given) if given >= 0 else f"({given})",))
        case Const(float(given)) if math.isfinite(given):
            # A Python number is a DOUBLE, a number with a point in SQL a DECIMAL.
            digits = repr(given)
            return Expr("sql", (f"({digits}{'' if 'e' in digits else 'E0'})",))
        case Const(str(given)):
            return Expr("sql", (sql_text(given),))
        case UnknownValue(why):
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
    if name in vocabulary.AGGREGATED:
        return Expr("aggregate", (vocabulary.AGGREGATED[name], expr, False))
    if name in vocabulary.PROPERTIES:
        return Expr("call", (vocabulary.PROPERTIES[name], (expr,)))
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


def method(expr: Expr, name: str, args: Sequence[Value]) -> Expr | None:
    """``expr.name(args)`` where it stands for a function; None for what is not one of these."""
    match name, list(args):
        case unit, [Ref(path=path, name=by)] if unit in vocabulary.WITH_UNIT and path.startswith("pyflink."):
            if by not in vocabulary.UNITS:
                raise NotRead(f"the unit {by} is not read")
            return Expr("form", (vocabulary.WITH_UNIT[unit].format(unit=by), (expr,)))
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
    written = vocabulary.METHODS.get((name, len(args)))
    return None if written is None else _written(written, (expr, *map(literal, args)))


def function(name: str, args: Sequence[Value]) -> Expr | None:
    """A function of ``pyflink.table.expressions``; None for what is not one of these."""
    match name, list(args):
        case "timestamp_diff", [Ref(name=unit), start, end] if unit in vocabulary.UNITS:
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
    written, low, high = vocabulary.FUNCTIONS.get(name, ("", 1, 0))
    return _written(written, tuple(map(literal, args))) if low <= len(args) <= high else None


def _written(written: str, args: tuple[Expr, ...]) -> Expr:
    if "{" in written:
        return Expr("form", (written, args))
    return Expr("sql", (written,)) if written in vocabulary.WITHOUT_BRACKETS else Expr("call", (written, args))


Inner = Callable[[Expr], str]
Special = Callable[[Expr], str | None]
"""What decides about an expression before anything else does: a window field, an aggregate over a row window."""


def sql(expr: Expr, special: Special = lambda expr: None) -> str:
    """The expression as SQL. Raises :class:`NotRead` for what does not stand for a value here."""
    decided = special(expr)
    if decided is not None:
        return decided

    if expr.kind not in _WRITTEN:
        raise NotRead("an interval of rows or an open bound is no value")
    return _WRITTEN[expr.kind](partial(sql, special=special), *expr.parts)


def _no_window(inner: Inner, _: Expr, name: str) -> str:
    raise NotRead(f".{name} stands where there is no window of that name")


def _no_row_window(inner: Inner, *_: object) -> str:
    raise NotRead("an aggregate names a row window that is not there")


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
"""How each kind of expression that stands for a value is written: ``inner`` writes its operands."""


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
