"""Origins of values through all upstream projections, views, CTEs and subqueries.

The leaves in this module replace :class:`InputRef` in the expressions of operators. Two queries that compute the same
from the same columns have equal expressions, whatever their aliases and nesting. Types are no part of the meaning
(``normalize`` removes them); the layout of state is compared separately.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from airflow_flinkcompat.lazy import cached_property, quick_init
from airflow_flinkcompat.model.text import sql_text
from airflow_flinkcompat.plan.expressions import (
    FLIPPED,
    AggregateCall,
    Expression,
    FunctionCall,
    InputRef,
    Leaf,
    Literal,
    Pass,
    untyped,
    with_inputs,
)
from airflow_flinkcompat.plan.nodes import WindowField
from airflow_flinkcompat.plan.types import SYMBOL, UNKNOWN, DataType


@quick_init
@dataclass(frozen=True)
class SourceColumn(Leaf):
    """A physical or metadata column; ``source`` is the number of the scan, from left to right."""

    source: int
    column: str


@quick_init
@dataclass(frozen=True)
class WindowColumn(Leaf):
    """A field of an upstream window; ``level`` is the number of windows upstream of that window."""

    field: WindowField
    level: int = 0


@quick_init
@dataclass(frozen=True)
class OperatorColumn(Leaf):
    """An output of an upstream stateful operator: the operator's number, and the output's meaning."""

    operator: int
    output: Any


@dataclass(frozen=True)
class FunctionColumn(Leaf):
    """A column of a table function: the function call, and the position of the column."""

    call: FunctionCall
    index: int


@quick_init
@dataclass(frozen=True)
class KeyOutput:
    """A grouping key as an operator's output."""

    key: Expression


@dataclass(frozen=True)
class ColumnOutput:
    """Column ``index`` of an operator without separate rules."""

    index: int


@quick_init
@dataclass(frozen=True)
class PassedOutput:
    """A column that an operator passes on unchanged; ``input`` is the number of the input."""

    input: int
    column: Expression

    @cached_property
    def _hash(self) -> int:
        return hash((self.input, self.column))

    def __hash__(self) -> int:
        # The hash is cached, because each join in a chain looks up every column.
        return self._hash


@dataclass(frozen=True)
class RankNumber:
    """The rank of a row as the output of a ranking."""


def normalize(value: Expression) -> Expression:
    """Remove types from an expression. The target type of a CAST becomes an argument."""
    if isinstance(value, FunctionCall):
        found: Expression | None = value.memo.get("meaning")
        if found is None:
            found = value.memo["meaning"] = _normalize_call(value)
        return found
    if isinstance(value, FunctionColumn):
        call = normalize(value.call)
        assert isinstance(call, FunctionCall)
        return replace(value, call=call, type=UNKNOWN)
    if isinstance(value, Literal):
        # The scale of a decimal affects every computation, but the length of a string does not.
        parameters = value.type.parameters if value.type.name == "DECIMAL" else ()
        if value.type.nullable and value.type.parameters == parameters:
            return value
        bare = DataType(value.type.name, parameters, value.type.elements, value.type.names)
        return Literal(value.value, bare, value.span)
    if isinstance(value, Leaf):
        return value if value.type is UNKNOWN else untyped(value)
    return InputRef(value.index, UNKNOWN, value.span)


def _normalize_call(value: FunctionCall) -> FunctionCall:
    args = tuple(normalize(arg) for arg in value.args)
    if value.function in ("CAST", "TRY_CAST"):
        args += (Literal(str(replace(value.type, nullable=True)), SYMBOL),)
    call = FunctionCall(value.function, args, UNKNOWN, value.span)
    for each in CALL_PASSES:
        call = each.apply(call)
    return call


def retyped(value: Expression) -> Expression:
    """Restore the types that :func:`normalize` removed from casts and constants."""
    if isinstance(value, FunctionCall):
        args = tuple(map(retyped, value.args))
        if value.function in ("CAST", "TRY_CAST") and len(args) > 1 and isinstance(args[1], Literal):
            return FunctionCall(value.function, args[:1], DataType.read(str(args[1].value)), value.span)
        return replace(value, args=args)
    if not isinstance(value, Literal) or value.value is None:
        return value
    parameters = value.type.parameters
    if value.type.name == "CHAR":
        parameters = (max(len(str(value.value)), 1),)
    elif value.type.name == "TIMESTAMP":
        parameters = (len(str(value.value).partition(".")[2]),)
    elif value.type.name == "TIME":
        parameters = (0,)
    return Literal(value.value, replace(value.type, parameters=parameters, nullable=False), value.span)


def _in_list(call: FunctionCall) -> FunctionCall:
    if call.function != "IN":
        return call
    args = (call.args[0], *_members(call.args[1:]))
    return call if args == call.args else FunctionCall(call.function, args, call.type, call.span)


def _constant_last(call: FunctionCall) -> FunctionCall:
    comparison = (call.function in FLIPPED or call.function in ("=", "<>")) and len(call.args) == 2
    if not comparison or not isinstance(call.args[0], Literal) or isinstance(call.args[1], Literal):
        return call
    return FunctionCall(FLIPPED.get(call.function, call.function), call.args[::-1], call.type, call.span)


CALL_PASSES: tuple[Pass[Callable[[FunctionCall], FunctionCall]], ...] = (
    Pass("in-list", "an IN list is a set of constants: order and repetition have no effect", _in_list),
    # Measured: filters-respelled, filter-clauses-respelled.
    Pass("constant-last", "constants move to the right of a comparison", _constant_last),
)
"""Passes over every call, innermost first."""


def _members(values: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """The distinct constants of an IN list in a fixed order; the planner creates a set (EXPLAIN, 2.3.0)."""
    constants = [value for value in values if isinstance(value, Literal) and value.value is not None]
    if len(constants) < len(values) or len({value.type.name for value in constants}) > 1:
        return values
    unique: Any = dict.fromkeys(constants)
    return tuple(sorted(unique, key=lambda constant: constant.value))


def normalize_aggregate(call: AggregateCall) -> AggregateCall:
    """The aggregate without types, for comparisons between two plans."""
    condition = None if call.filter is None else normalize(call.filter)
    return with_inputs(call, tuple(map(normalize, call.args)), condition, UNKNOWN)


def leaves(value: Expression) -> tuple[Expression, ...]:
    """All leaves of a resolved expression from left to right, including arguments of table functions."""
    if not isinstance(value, FunctionCall):
        return _leaves(value) if isinstance(value, FunctionColumn) else (value,)
    found: tuple[Expression, ...] | None = value.memo.get("leaves")
    if found is None:
        found = value.memo["leaves"] = _leaves(value)
    return found


def _leaves(value: Expression) -> tuple[Expression, ...]:
    found: list[Expression] = []
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, FunctionCall):
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
    """The window field that a bare column contains, even if an upstream operator passes it on.

    An aggregation passes the window field on as a key, and other operators as a column of their rows.
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
    """True if a window field occurs anywhere in an expression."""
    if isinstance(value, FunctionCall):
        if "window field" not in value.memo:
            value.memo["window field"] = any(map(uses_window_field, value.args))
        return bool(value.memo["window field"])
    return any(map(window_field, leaves(value)))


def describe(value: Any) -> str:
    """The text of a resolved value in SQL, for messages."""
    match value:
        case SourceColumn():
            return value.column
        case WindowColumn():
            return value.field.value
        case OperatorColumn(output=inner) | KeyOutput(key=inner) | PassedOutput(column=inner):
            return describe(inner)
        case ColumnOutput():
            return f"column {value.index + 1}"
        case RankNumber():
            return "ROW_NUMBER()"
        case FunctionColumn():
            return f"{describe(value.call)} column {value.index + 1}"
        case AggregateCall():
            return _aggregate(value)
        case Literal():
            return _literal(value)
        case InputRef():
            return f"${value.index}"
        case FunctionCall():
            if "text" not in value.memo:
                value.memo["text"] = _call(value)
            return str(value.memo["text"])
    return str(value)


def _aggregate(value: AggregateCall) -> str:
    args = ", ".join(map(describe, value.args)) or ("*" if value.function == "COUNT" else "")
    text = f"{value.function}({'DISTINCT ' if value.distinct else ''}{args})"
    return text if value.filter is None else f"{text} FILTER (WHERE {describe(value.filter)})"


def _literal(value: Literal) -> str:
    if value.type.name == "INTERVAL_DAY_TIME":
        return f"INTERVAL {duration(int(value.value or 0))}"
    if value.value is None:
        return "NULL"
    if isinstance(value.value, str) and value.type.name != "SYMBOL":
        return sql_text(value.value)
    return str(value.value)


def _call(value: FunctionCall) -> str:
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
    """Milliseconds in the largest unit that divides them, in Flink's notation: ``'5' MINUTE``."""
    for unit, length in _UNITS:
        if milliseconds and milliseconds % length == 0:
            return f"'{milliseconds // length}' {unit}"
    return f"'{milliseconds / 1000:g}' SECOND"


__all__ = [
    "ColumnOutput", "FunctionColumn", "KeyOutput", "OperatorColumn", "PassedOutput", "RankNumber", "SourceColumn",
    "WindowColumn", "normalize_aggregate", "describe", "duration", "leaves", "normalize", "uses_window_field",
    "window_field",
]  # fmt: skip
