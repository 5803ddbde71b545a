"""Where a value comes from once every projection, view, CTE and subquery below it is unfolded.

These leaves replace :class:`InputRef` in the operators' view: two queries that compute the same from the same
columns get
equal expressions, whatever their aliases and nesting. Types take no part in meaning (``meaning`` strips them); the
layout of state is compared apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from airflow_flinkcompat.plan.expressions import FLIPPED, AggregateCall, Call, Expression, InputRef, Leaf, Literal
from airflow_flinkcompat.plan.nodes import WindowField
from airflow_flinkcompat.plan.types import SYMBOL, UNKNOWN, DataType


@dataclass(frozen=True)
class SourceColumn(Leaf):
    """A physical or metadata column of a table; ``source`` counts the scans below the operator, left to right."""

    source: int
    column: str


@dataclass(frozen=True)
class WindowColumn(Leaf):
    """window_start, window_end or window_time of the nearest window below; ``level`` counts windows below that one."""

    field: WindowField
    level: int = 0


@dataclass(frozen=True)
class OperatorColumn(Leaf):
    """An output of a stateful operator below: which of the region's operators, and what that output means."""

    operator: int
    output: Any


@dataclass(frozen=True)
class FunctionColumn(Leaf):
    """A column that a table function adds: the function call and the position among its columns."""

    call: Call
    index: int


@dataclass(frozen=True)
class KeyOutput:
    """A grouping key as an operator's output."""

    key: Expression


@dataclass(frozen=True)
class ColumnOutput:
    """Column ``index`` of an operator that is kept without rules of its own."""

    index: int


@dataclass(frozen=True)
class PassedOutput:
    """A column of input ``input`` that an operator hands on as it is."""

    input: int
    column: Expression

    @cached_property
    def _hash(self) -> int:
        return hash((self.input, self.column))

    def __hash__(self) -> int:
        # Kept, because through a chain of joins every column is passed on, and looked up, at each of them.
        return self._hash


@dataclass(frozen=True)
class RankNumber:
    """The number a ranking gives a row, as its output."""


def meaning(value: Expression) -> Expression:
    """The expression without types; a CAST keeps its target as an argument, because the target decides the value."""
    if isinstance(value, Call):
        found: Expression | None = value.memo.get("meaning")
        if found is None:
            found = value.memo["meaning"] = _call_meaning(value)
        return found
    if isinstance(value, FunctionColumn):
        call = meaning(value.call)
        assert isinstance(call, Call)
        return replace(value, call=call, type=UNKNOWN)
    if isinstance(value, Literal):
        # A decimal's scale goes on into everything computed with it; the length of a text does not.
        parameters = value.type.parameters if value.type.name == "DECIMAL" else ()
        if value.type.nullable and value.type.parameters == parameters:
            return value
        bare = DataType(value.type.name, parameters, value.type.elements, value.type.names)
        return Literal(value.value, bare, value.span)
    return value if value.type is UNKNOWN else replace(value, type=UNKNOWN)


def _call_meaning(value: Call) -> Call:
    args = tuple(meaning(arg) for arg in value.args)
    if value.function in ("CAST", "TRY_CAST"):
        args += (Literal(str(replace(value.type, nullable=True)), SYMBOL),)
    if value.function == "IN":
        args = (args[0], *_members(args[1:]))
    comparison = value.function in {*FLIPPED, "=", "<>"} and len(args) == 2
    if comparison and isinstance(args[0], Literal) and not isinstance(args[1], Literal):
        # The planner turns them alike (filters-respelled, filter-clauses-respelled).
        return Call(FLIPPED.get(value.function, value.function), args[::-1], UNKNOWN, value.span)
    return Call(value.function, args, UNKNOWN, value.span)


def _members(values: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """The constants of an IN list, each once and in one order: the planner makes a set of them (EXPLAIN, 2.3.0)."""
    constants = [value for value in values if isinstance(value, Literal) and value.value is not None]
    if len(constants) < len(values) or len({value.type.name for value in constants}) > 1:
        return values
    unique: Any = dict.fromkeys(constants)
    return tuple(sorted(unique, key=lambda constant: constant.value))


def aggregate_meaning(call: AggregateCall) -> AggregateCall:
    """The aggregate without types, as survivors are compared (readings.md, "Aggregates")."""
    return replace(
        call,
        args=tuple(meaning(arg) for arg in call.args),
        filter=None if call.filter is None else meaning(call.filter),
        type=UNKNOWN,
    )


def leaves(value: Expression) -> tuple[Expression, ...]:
    """All leaves of a resolved expression from left to right, table function arguments included."""
    if not isinstance(value, Call):
        return _leaves(value)
    found: tuple[Expression, ...] | None = value.memo.get("leaves")
    if found is None:
        found = value.memo["leaves"] = _leaves(value)
    return found


def _leaves(value: Expression) -> tuple[Expression, ...]:
    found: list[Expression] = []
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, Call):
            known = part.memo.get("leaves")
            if known is None:
                left.extend(reversed(part.args))
            else:
                found += known
            continue
        found.append(part)
        if isinstance(part, FunctionColumn):
            left.append(part.call)
    return tuple(found)


def window_field(value: Expression) -> WindowField | None:
    """The window field a bare column is, also where an operator below passes it up: an aggregation as one of its keys,
    others as a column of their rows.
    """
    if isinstance(value, WindowColumn):
        return value.field
    if isinstance(value, OperatorColumn):
        if isinstance(value.output, KeyOutput):
            return window_field(value.output.key)
        if isinstance(value.output, PassedOutput):
            return window_field(value.output.column)
        if isinstance(value.output, WindowColumn):
            return value.output.field
    return None


def uses_window_field(value: Expression) -> bool:
    """True where a window field occurs anywhere in the expression."""
    if isinstance(value, Call):
        if "window field" not in value.memo:
            value.memo["window field"] = any(uses_window_field(arg) for arg in value.args)
        return bool(value.memo["window field"])
    return any(window_field(leaf) is not None for leaf in leaves(value))


def describe(value: Any) -> str:
    """A resolved value as a reader would write it, for messages."""
    match value:
        case SourceColumn():
            return value.column
        case WindowColumn():
            return value.field.value
        case OperatorColumn():
            return describe(value.output)
        case KeyOutput():
            return describe(value.key)
        case PassedOutput():
            return describe(value.column)
        case ColumnOutput():
            return f"column {value.index + 1}"
        case RankNumber():
            return "ROW_NUMBER()"
        case FunctionColumn():
            return f"{describe(value.call)} column {value.index + 1}"
        case AggregateCall():
            args = ", ".join(describe(arg) for arg in value.args) or ("*" if value.function == "COUNT" else "")
            text = f"{value.function}({'DISTINCT ' if value.distinct else ''}{args})"
            return text if value.filter is None else f"{text} FILTER (WHERE {describe(value.filter)})"
        case Literal():
            return _literal(value)
        case InputRef():
            return f"${value.index}"
        case Call():
            if "text" not in value.memo:
                value.memo["text"] = _call(value)
            return str(value.memo["text"])
    return str(value)


def _literal(value: Literal) -> str:
    if value.type.name == "INTERVAL_DAY_TIME":
        return f"INTERVAL {duration(int(value.value or 0))}"
    if value.value is None:
        return "NULL"
    if isinstance(value.value, str) and value.type.name != "SYMBOL":
        return "'" + value.value.replace("'", "''") + "'"
    return str(value.value)


def _call(value: Call) -> str:
    args = [describe(arg) for arg in value.args]
    if value.function in ("CAST", "TRY_CAST"):
        target = args[1] if len(args) > 1 else str(value.type)
        return f"{value.function}({args[0]} AS {target})"
    if not value.function[0].isalpha() and len(args) > 1:
        return "(" + f" {value.function} ".join(args) + ")"
    if value.function in ("AND", "OR", "LIKE") and len(args) > 1:
        return "(" + f" {value.function} ".join(args) + ")"
    if value.function in ("IS NULL", "IS NOT NULL"):
        return f"{args[0]} {value.function}"
    return f"{value.function}({', '.join(args)})"


_UNITS = (("DAY", 86_400_000), ("HOUR", 3_600_000), ("MINUTE", 60_000), ("SECOND", 1_000))


def duration(milliseconds: int) -> str:
    """Milliseconds in the largest unit that divides them, as Flink writes an interval: ``'5' MINUTE``."""
    for unit, length in _UNITS:
        if milliseconds and milliseconds % length == 0:
            return f"'{milliseconds // length}' {unit}"
    return f"'{milliseconds / 1000:g}' SECOND"


__all__ = [
    "ColumnOutput",
    "FunctionColumn",
    "KeyOutput",
    "OperatorColumn",
    "PassedOutput",
    "RankNumber",
    "SourceColumn",
    "WindowColumn",
    "aggregate_meaning",
    "describe",
    "duration",
    "leaves",
    "meaning",
    "uses_window_field",
    "window_field",
]
