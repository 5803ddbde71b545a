"""Interval literals: their lengths, and the literals that Flink's validator refuses.

Every refusal was observed with Flink 2.3. The messages are Flink's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal

from sqlglot import exp

from airflow_flinkcompat.model import Span
from airflow_flinkcompat.plan.catalog import BindError
from airflow_flinkcompat.plan.expressions import Literal
from airflow_flinkcompat.plan.types import INTERVAL_DAY_TIME, INTERVAL_YEAR_MONTH
from airflow_flinkcompat.sql import Statement
from airflow_flinkcompat.sql.script import span_of

_MILLISECONDS = {"SECOND": 1_000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000, "WEEK": 604_800_000}
_WITHIN = {"HOUR": 24, "MINUTE": 60, "SECOND": 60}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_AMOUNT = re.compile(r"\s*[+-]?[0-9]{1,18}(?P<fraction>\.[0-9]+)?\s*")
_FIELDS = ["DAY", "HOUR", "MINUTE", "SECOND"]
# Default digits of the first field, and of the fraction of seconds.
_DIGITS, _PLACES = 2, 6
_MOST_DIGITS, _MOST_PLACES = 10, 9


def interval(tree: exp.Interval, span: Span) -> Literal:
    """The value of an interval literal; raise :class:`BindError` for an unsupported form."""
    unit = tree.args["unit"]
    sign, value = (-1, tree.this.this) if isinstance(tree.this, exp.Neg) else (1, tree.this)
    if not isinstance(value, exp.Literal) or not value.is_string:
        raise BindError("construct", "an interval that is not a constant is not understood here", span)
    if isinstance(unit, exp.IntervalSpan):
        return _of_several_fields(value.name, unit, sign, span)
    name = _unit(unit)
    found = _AMOUNT.fullmatch(value.name)
    if found is None or (found["fraction"] and name != "SECOND"):
        raise BindError("construct", f"INTERVAL '{value.name}' {name} is not understood", span)
    amount = sign * Decimal(found.group())
    if name in _MONTHS:
        return Literal(int(amount * _MONTHS[name]), INTERVAL_YEAR_MONTH, span)
    return Literal(int(amount * _MILLISECONDS[name]), INTERVAL_DAY_TIME, span)


def _of_several_fields(text: str, unit: exp.IntervalSpan, sign: int, span: Span) -> Literal:
    """Read a literal with several fields, such as ``INTERVAL '1 02:03:04.5' DAY TO SECOND``."""
    first, last = _unit(unit.this), _unit(unit.expression)
    refused = BindError("construct", f"INTERVAL '{text}' {first} TO {last} is not understood", span)
    digits = text.strip().lstrip("+-")
    sign = -sign if text.strip().startswith("-") else sign
    if (first, last) == ("YEAR", "MONTH"):
        years, _, months = digits.partition("-")
        if not (re.fullmatch("[0-9]{1,18}", years) and re.fullmatch("[0-9]{0,2}", months) and int(months or 0) < 12):
            raise refused
        return Literal(sign * (int(years) * 12 + int(months or 0)), INTERVAL_YEAR_MONTH, span)
    parts = digits.replace(":", " ").split()
    if first not in _FIELDS or last not in _FIELDS or len(parts) != _FIELDS.index(last) - _FIELDS.index(first) + 1:
        raise refused
    if not all(re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18})?", part) for part in parts):
        raise refused
    fields = dict(zip(_FIELDS[_FIELDS.index(first) :], map(Decimal, parts), strict=False))
    if any(name != first and value >= _WITHIN[name] for name, value in fields.items()):
        raise refused
    total = sum(value * _MILLISECONDS[name] for name, value in fields.items())
    return Literal(sign * math.floor(total), INTERVAL_DAY_TIME, span)


def refused_intervals(statement: Statement) -> Iterator[tuple[str, Span]]:
    """The interval literals of a statement that Flink refuses."""
    for node in statement.nodes:
        if isinstance(node, exp.Interval) and (words := interval_refusal(node)):
            yield words, span_of(node, statement)


def interval_refusal(tree: exp.Interval) -> str | None:
    """The reason why Flink refuses an interval literal, with a remedy; None if it is not refused."""
    unit = tree.args["unit"]
    value = tree.this.this if isinstance(tree.this, exp.Neg) else tree.this
    if not value.is_string:
        return None
    first = unit.this if isinstance(unit, exp.IntervalSpan) else unit
    name = _unit(first)
    given = [each.name for each in first.expressions] if isinstance(first, exp.Anonymous) else []
    if len(given) > 2 or not all(re.fullmatch("[0-9]{1,9}", each) for each in given):
        return None
    digits, places = [*map(int, given), *(_DIGITS, _PLACES)[len(given) :]]
    written = f"{name}({', '.join(given)})" if given else name
    if not 1 <= digits <= _MOST_DIGITS:
        return (
            f"Interval leading field precision '{digits}' out of range for INTERVAL {written}; "
            f"write a precision from 1 to {_MOST_DIGITS}"
        )
    if places > _MOST_PLACES:
        return (
            f"Interval fractional second precision '{places}' out of range for INTERVAL {written}; "
            f"write a precision of at most {_MOST_PLACES}"
        )
    leading = re.match(r"\s*[+-]?(?P<number>[0-9]{1,18})(?:\.(?P<fraction>[0-9]+)\s*$)?(?![0-9])", value.name)
    if leading is None:
        return None
    if (number := int(leading["number"])) >= 10**digits:
        return (
            f"Interval field value {number:,} exceeds precision of {name}({digits}) field; without a precision, a unit "
            f"has {_DIGITS} digits: write {name}({len(str(number))}), or use a larger unit"
        )
    if name == "SECOND" and len(leading["fraction"] or "") > places:
        return (
            f"Illegal interval literal format '{value.name}' for INTERVAL {written}; "
            f"write at most {places} digits after the point"
        )
    return None


def _unit(tree: exp.Expression) -> str:
    """The unit name: ``DAY`` for ``DAY``, ``DAYS`` and ``DAY(3)``."""
    return str(tree.name).upper().rstrip("S")
