"""Scalar expressions and aggregate calls of a plan, as frozen values without parser nodes.

Spans contain the place in the script. Two expressions with different spans can be equal, so moved or re-indented text
is no change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Generic, TypeVar

from airflow_flinkcompat.lazy import cached_property, quick_init
from airflow_flinkcompat.model import Span
from airflow_flinkcompat.plan.types import UNKNOWN, DataType

LiteralValue = bool | int | Decimal | float | str | None


FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Comparison operators, with the operator for exchanged sides."""


@quick_init
@dataclass(frozen=True)
class InputRef:
    """The column at position ``index`` of a node's input row; for a join, of the joined row."""

    index: int
    type: DataType = field(hash=False)
    span: Span | None = field(default=None, compare=False)


@quick_init
@dataclass(frozen=True)
class Literal:
    """A constant value.

    Day-time intervals are in milliseconds, and year-month intervals in months. Dates and timestamps are ISO texts.
    """

    value: LiteralValue
    type: DataType = field(hash=False)
    span: Span | None = field(default=None, compare=False)


ACCESSES = frozenset({"FIELD", "ITEM"})
"""Names of calls that access a part of a value. No script contains these names."""


@quick_init
@dataclass(frozen=True)
class FunctionCall:
    """A scalar function or operator applied to arguments.

    ``function`` is the upper-case name in Flink, such as ``+`` or ``CAST``.
    """

    function: str
    args: tuple[Expression, ...]
    type: DataType
    span: Span | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        # Every FunctionCall needs the memo, and the first access to a cached_property is as slow as two calls.
        self.__dict__["memo"] = {}

    @cached_property
    def memo(self) -> dict[str, Any]:
        """A cache of values that are derived from this call, by name.

        A column that is expanded through views contains the same call in many places. The cache avoids repeated
        analysis.
        """
        return {}

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, FunctionCall):
            return NotImplemented
        mine, theirs = self.memo, other.memo
        if mine.get("twin") is other:
            return True
        if "hash" in mine and "hash" in theirs and mine["hash"] != theirs["hash"]:
            return False
        same = (self.function, self.args, self.type) == (other.function, other.args, other.type)
        if same:
            mine["twin"], theirs["twin"] = other, self
        return same

    def __hash__(self) -> int:
        found = self.memo.get("hash")
        if found is None:
            found = self.memo["hash"] = hash((self.function, self.args))
        return int(found)

    def __reduce__(self) -> tuple[Any, ...]:
        # String hashes differ between processes, so the cache is not pickled.
        return FunctionCall, (self.function, self.args, self.type, self.span)


@dataclass(frozen=True)
class Leaf:
    """A resolved origin (see ``operators``): a column, with all upstream projections expanded."""

    type: DataType = field(kw_only=True, hash=False)
    span: Span | None = field(default=None, compare=False, kw_only=True)


Expression = InputRef | Literal | FunctionCall | Leaf


def placed(value: Expression, span: Span | None) -> Expression:
    """The same expression at a different place of the script."""
    # This is faster than dataclasses.replace(), and runs for every column of every view.
    if isinstance(value, Literal):
        return Literal(value.value, value.type, span)
    if isinstance(value, InputRef):
        return InputRef(value.index, value.type, span)
    if isinstance(value, FunctionCall):
        return FunctionCall(value.function, value.args, value.type, span)
    made = object.__new__(type(value))
    made.__dict__.update(value.__dict__, span=span)
    return made


def untyped(leaf: Leaf) -> Leaf:
    """The same origin without its type."""
    if leaf.type is UNKNOWN:
        return leaf
    made = object.__new__(type(leaf))
    made.__dict__.update(leaf.__dict__, type=UNKNOWN)
    return made


@quick_init
@dataclass(frozen=True)
class AggregateCall:
    """One aggregate call: function (upper case), arguments, DISTINCT, FILTER and result type.

    ``language`` is ``builtin``, ``undeclared``, or the language of the function's declaration (``java``, ``scala``,
    ``python``). ``approximate`` and ``order_by`` are stored because they change results.
    """

    function: str
    args: tuple[Expression, ...]
    type: DataType = field(hash=False)
    distinct: bool = False
    filter: Expression | None = None
    language: str = "builtin"
    order_by: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False)


def transform(expression: Expression, leaf: Callable[[Expression], Expression]) -> Expression:
    """Apply ``leaf`` to every part of an expression that is not a call.

    A call is only rebuilt if an argument changed.
    """
    if not isinstance(expression, FunctionCall):
        return leaf(expression)
    args = tuple(transform(arg, leaf) for arg in expression.args)
    if all(new is old for new, old in zip(args, expression.args, strict=True)):
        return expression
    return FunctionCall(expression.function, args, expression.type, expression.span)


def transform_aggregate(call: AggregateCall, leaf: Callable[[Expression], Expression]) -> AggregateCall:
    """Apply ``leaf`` to the leaves of the arguments and the filter of an aggregate."""
    condition = None if call.filter is None else transform(call.filter, leaf)
    return with_inputs(call, tuple(transform(arg, leaf) for arg in call.args), condition, call.type)


def with_inputs(
    call: AggregateCall, args: tuple[Expression, ...], condition: Expression | None, kind: DataType
) -> AggregateCall:
    """The aggregate with different arguments, filter and result type."""
    # Like in placed(), this is faster than dataclasses.replace().
    return AggregateCall(call.function, args, kind, call.distinct, condition, call.language, call.order_by, call.span)


def through(outputs: Sequence[Expression]) -> Callable[[Expression], Expression]:
    """A leaf function for :func:`transform` that replaces a projected column by its expression."""
    return lambda part: outputs[part.index] if isinstance(part, InputRef) else part


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all its parts, outermost first."""
    pending = [expression]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, FunctionCall):
            pending.extend(reversed(part.args))


def called(*expressions: Expression) -> list[FunctionCall]:
    """All calls in these expressions, outermost first, without calls of table functions."""
    found: list[FunctionCall] = []
    pending = list(reversed(expressions))
    while pending:
        part = pending.pop()
        if isinstance(part, FunctionCall):
            found.append(part)
            pending.extend(reversed(part.args))
    return found


def conjuncts(condition: Expression) -> tuple[Expression, ...]:
    """The conjuncts of a condition, in written order."""
    if isinstance(condition, FunctionCall) and condition.function == "AND":
        return tuple(part for arg in condition.args for part in conjuncts(arg))
    return (condition,)


Function = TypeVar("Function")


@dataclass(frozen=True)
class Pass(Generic[Function]):
    """A pass that normalises a plan.

    ``summary`` describes the planner's behaviour. ``seen_on`` is the version of Flink in which EXPLAIN or a restore
    showed this behaviour; all engines are assumed to behave like this version. ``apply`` performs the pass; its
    signature depends on the stage.
    """

    name: str
    summary: str
    apply: Function
    seen_on: str = "2.3"
