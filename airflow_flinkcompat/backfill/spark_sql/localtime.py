"""Functions that interpret a TIMESTAMP_LTZ as local time in ``table.local-time-zone``.

Flink formats, splits and casts a TIMESTAMP_LTZ like the TIMESTAMP that a clock in this zone shows (measured).
Arguments of type TIMESTAMP_LTZ are replaced by a TIMESTAMP before translation, because the settings are known only
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from airflow_flinkcompat.backfill.result import Untranslatable
from airflow_flinkcompat.backfill.spark_sql.translations import ERROR
from airflow_flinkcompat.compat.hand_over import time_zone
from airflow_flinkcompat.model import Span
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall, Literal
from airflow_flinkcompat.plan.nodes import Node, Sink, Table
from airflow_flinkcompat.plan.types import CHARACTERS, INTEGERS, SYMBOL, DataType, timestamp

LOCAL = "LOCAL TIME"
"""Call that returns the TIMESTAMP or DATE that a clock shows at an instant.

The second argument is the time zone of the clock.
"""
OF_SECONDS = "LOCAL TIME OF SECONDS"
"""Call that returns the local time for a number of seconds since 1970."""
SECONDS = "SECONDS OF LOCAL TIME"
"""Call that returns the seconds since 1970 at which a clock in a zone shows the time in a text."""
CALLS = (LOCAL, OF_SECONDS, SECONDS)

_PARTS = ("EXTRACT", "YEAR", "QUARTER", "MONTH", "WEEK", "DAYOFYEAR", "DAYOFMONTH", "DAYOFWEEK", "HOUR", "MINUTE")
_LOCAL = (*_PARTS, "SECOND", "DATE_FORMAT", "CAST", "TRY_CAST")
_PLAIN = "yyyy-MM-dd HH:mm:ss"
_YEAR_9999 = 253_370_764_800  # Seconds since 1970 until the year 9999.


def localised(sink: Sink, settings: Mapping[str, str], done: dict[tuple[int, str], Any]) -> Sink:
    """Replace instants with local times in arguments of functions that interpret instants as local times."""
    found = _Rewriting(settings.get("table.local-time-zone", "default"), done).of(sink)
    assert isinstance(found, Sink)
    return found


class _Rewriting:
    def __init__(self, zone: str, done: dict[tuple[int, str], Any]) -> None:
        self.zone = zone
        self.done = done

    def of(self, value: Any) -> Any:
        """Rewrite every expression in a value. Returns the same object if nothing changes."""
        if isinstance(value, FunctionCall):
            return self.call(value)
        if isinstance(value, tuple):
            parts = tuple(self.of(part) for part in value)
            return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
        if not is_dataclass(value) or isinstance(value, type | Literal | DataType | Span):
            return value
        if not isinstance(value, Node | Table):
            return self.fields(value)
        key = (id(value), self.zone)
        if key not in self.done:
            # Storing the value keeps it alive, so that no new object can get the same id.
            self.done[key] = (value, self.fields(value))
        return self.done[key][1]

    def fields(self, value: Any) -> Any:
        changed = {}
        for field in fields(value):
            if not field.init:
                continue
            old = getattr(value, field.name)
            new = self.of(old)
            if new is not old:
                changed[field.name] = new
        return replace(value, **changed) if changed else value

    def call(self, call: FunctionCall) -> Expression:
        args = self.of(call.args)
        if args is not call.args:
            call = replace(call, args=args)
        if call.function == "FROM_UNIXTIME" and call.args:
            return self.text_of_seconds(call)
        if call.function == "UNIX_TIMESTAMP" and len(call.args) == 1:
            return replace(call, function=SECONDS, args=(*call.args, Literal(self.zone, SYMBOL)))
        if call.function not in _LOCAL or call.type.name == "TIMESTAMP_LTZ":
            return call
        if call.type.name == "DATE" and call.args[0].type.name == "TIMESTAMP_LTZ":
            # No conversion to TIMESTAMP: Flink counts the days of a TIMESTAMP before 1970 differently (measured).
            return replace(self.local(call.args[0], call.span), type=call.type)
        seen = tuple(self.local(arg, call.span) if arg.type.name == "TIMESTAMP_LTZ" else arg for arg in call.args)
        return replace(call, args=seen) if seen != call.args else call

    def local(self, instant: Expression, span: Span | None) -> FunctionCall:
        kind = DataType("TIMESTAMP", instant.type.parameters, nullable=instant.type.nullable)
        return FunctionCall(LOCAL, (instant, Literal(self.zone, SYMBOL)), kind, span)

    def text_of_seconds(self, call: FunctionCall) -> FunctionCall:
        shown = FunctionCall(OF_SECONDS, (call.args[0], Literal(self.zone, SYMBOL)), timestamp(0), call.span)
        shape = call.args[1] if len(call.args) > 1 else Literal(_PLAIN, DataType("CHAR", (len(_PLAIN),)))
        return FunctionCall("DATE_FORMAT", (shown, shape), call.type, call.span)


def _zone(call: FunctionCall) -> str:
    """Time zone that determines the result of a call.

    Raises :class:`Untranslatable` if the zone is unknown.
    """
    zone = call.args[1]
    name = str(zone.value) if isinstance(zone, Literal) else ""
    if name == "default":
        raise Untranslatable(
            "this expression depends on table.local-time-zone, which is not set, so Flink uses the zone of its "
            "machine. SET 'table.local-time-zone' = 'UTC' or that zone",
            call.span,
        )
    if time_zone(name) is None:
        raise Untranslatable(
            (
                f"table.local-time-zone is {name}, which Flink refuses. Write a name of the time zone database, an "
                "offset such as 'GMT+03:00', or 'UTC'"
            ),
            call.span,
        )
    return name


def translated(call: FunctionCall, argument: str) -> str:
    """Spark SQL for one of :data:`CALLS`. The session's zone is UTC."""
    zone = _zone(call)
    if call.function == LOCAL:
        time = _local(argument, zone)
        return f"CAST({time} AS DATE)" if call.type.name == "DATE" else time
    if call.args[0].type.name not in (INTEGERS if call.function == OF_SECONDS else CHARACTERS):
        raise Untranslatable(f"this expression of {call.args[0].type} has no exact translation to Spark", call.span)
    if call.function == OF_SECONDS:
        beyond = f"{argument} < 0 OR {argument} >= {_YEAR_9999}"
        message = f"{ERROR}FROM_UNIXTIME has no exact translation to Spark for seconds before 1970 or after 9998"
        return _local(f"timestamp_seconds(IF({beyond}, raise_error('{message}'), {argument}))", zone)
    if zone != "UTC" and not zone.startswith("GMT"):
        raise Untranslatable(
            f"UNIX_TIMESTAMP of a text has no exact translation to Spark in {zone}, whose clocks change", call.span
        )
    time = f"try_cast({argument} AS TIMESTAMP_NTZ)"
    instant = f"CAST({time} AS TIMESTAMP_LTZ)"
    instant = instant if zone == "UTC" else f"to_utc_timestamp({instant}, '{zone}')"
    plain = f"{argument} RLIKE '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}\\\\z'"
    message = f"concat('{ERROR}', {argument}, ' is not a time of the form {_PLAIN} since 1583')"
    return (
        f"CASE WHEN {plain} AND {argument} >= '1583' AND {time} IS NOT NULL THEN CAST({instant} AS BIGINT) "
        f"WHEN {argument} IS NOT NULL THEN raise_error({message}) END"
    )


def _local(instant: str, zone: str) -> str:
    shifted = instant if zone == "UTC" else f"from_utc_timestamp({instant}, '{zone}')"
    return f"CAST({shifted} AS TIMESTAMP_NTZ)"
