"""FLIP-11's row windows, as the row window of today that says the same: TumbleRows, SlideRows, SessionRows.

A :class:`~airflow_flinkcompat.frontends.table_api.values.Spec` of kind ``Over`` comes out: ``within`` is what the
window of TumbleRows and SessionRows ends by (a call of SQL and a length), ``preceding`` and ``following`` are those of
SlideRows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.frontends.table_api import validation
from airflow_flinkcompat.frontends.table_api.values import (
    Expr,
    NotRead,
    Spec,
    Value,
)

KINDS: Mapping[str, str] = {"TumbleRows": "Tumble", "SlideRows": "Over", "SessionRows": "Session"}
"""Row windows, and the window of today whose lengths follow the same rules."""
_LENGTH = {"TumbleRows": "over", "SessionRows": "with_gap"}
_CALL = {"TumbleRows": "TUMBLE", "SessionRows": "SESSION"}


def said(spec: Spec, method: str, args: Sequence[Value], batch: bool) -> Spec:
    """The row window after a call of a method. Raises :class:`NotRead` for what FLIP-11's row windows do not have."""
    if spec.kind == "SlideRows" and method == "unbounded_preceding" and not args:
        method, args = "preceding", [Expr("bound", ("UNBOUNDED_RANGE",))]
    known = ("preceding", "following", "on") if spec.kind == "SlideRows" else (_LENGTH[spec.kind], "on")
    if method not in known or spec.get(method) is not None or spec.alias:
        raise NotRead(f"{spec.kind} has no {method} here")
    given = args[0] if len(args) == 1 else None
    if not isinstance(given, Expr):
        raise NotRead(f"{method} of {spec.kind} takes one expression")
    if method == "on":
        validation.time_column("Over", method, given)
    elif spec.kind == "SlideRows":
        if given.kind not in ("interval", "rows", "bound"):
            raise validation.refused(f"{method} of SlideRows is no constant", "write 5.minutes or 5.rows")
    else:
        validation.length(KINDS[spec.kind], method, given, (), batch)
    return replace(spec, said=(*spec.said, (method, (given,))))


def today(spec: Spec, keys: Sequence[Expr], time: Expr) -> Spec:
    """The row window as today's ``Over``. Raises :class:`NotRead` where it lacks an alias or a length."""
    if not spec.alias:
        raise validation.refused("a row window has no alias", "end it with as 'w, which aggregates are over")
    parts: list[tuple[str, tuple[Expr, ...]]] = [("partition_by", tuple(keys))] if keys else []
    parts.append(("order_by", (time,)))
    if spec.kind == "Over":
        parts = [*(part for part in spec.said if part[0] == "partition_by"), *parts]
    elif spec.kind == "SlideRows":
        parts += _slide(spec)
    else:
        length = spec.get(_LENGTH[spec.kind])
        if length is None:
            raise validation.refused(f"{spec.kind} has no length", f"write {spec.kind} {_EXAMPLE[spec.kind]} as 'w")
        parts.append(("within", (Expr("within", (_CALL[spec.kind], length[0])),)))
    return Spec("Over", tuple(parts), spec.alias)


_EXAMPLE = {"TumbleRows": "over 10.minutes", "SessionRows": "withGap 10.minutes"}


def _slide(spec: Spec) -> list[tuple[str, tuple[Expr, ...]]]:
    preceding, following = spec.get("preceding"), spec.get("following")
    if preceding is None:
        raise NotRead("SlideRows without preceding: how far back it goes is not said; write unboundedPreceding")
    if preceding[0].kind == "bound" and following is not None and following[0].kind == "rows":
        preceding = (Expr("bound", ("UNBOUNDED_ROW",)),)
    parts = [("preceding", preceding)]
    if following is not None:
        validation.bounds(Spec("Over", tuple(parts)), "following", following[0])
        parts.append(("following", following))
    return parts
