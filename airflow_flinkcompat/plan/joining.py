"""Joins as operators: keys, time bounds, and conditions on one or both inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from airflow_flinkcompat.plan.conditions import constant_value, normalize_predicate
from airflow_flinkcompat.plan.expressions import (
    FLIPPED,
    Expression,
    FunctionCall,
    InputRef,
    Literal,
    conjuncts,
    transform,
    walk,
)
from airflow_flinkcompat.plan.nodes import Join, Scan, WindowField
from airflow_flinkcompat.plan.operators import BOUNDS, JoinForm, JoinOperator, StatelessSegment
from airflow_flinkcompat.plan.origins import OperatorColumn, PassedOutput, WindowColumn, leaves
from airflow_flinkcompat.plan.types import Column, TimeAttribute

_MOVES_BELOW = {"INNER": (0, 1), "LEFT": (1,), "RIGHT": (0,), "FULL": ()}
"""Inputs to which the planner moves a join condition that reads only one input, by kind of join."""
_KEPT = {"INNER": (0, 1), "LEFT": (0,), "RIGHT": (1,), "FULL": ()}
"""Inputs to which the planner moves a condition from downstream of the join, by kind of join."""
Resolve = Callable[[Expression], Expression]
WithFilter = Callable[[StatelessSegment, Expression], StatelessSegment]


def join_operator(
    node: Join,
    segments: tuple[StatelessSegment, StatelessSegment],
    rows: tuple[tuple[Expression, ...], tuple[Expression, ...]],
    resolve: Resolve,
    with_filter: WithFilter,
) -> JoinOperator:
    """Build the operator of a join.

    The condition of ``node`` is simplified. ``rows`` are the untyped columns of both inputs. ``resolve`` converts an
    expression over the joined row, so that its ``OperatorColumn`` leaves are input columns. ``with_filter`` adds a
    conjunct to a segment.
    """
    schema = node.left.schema + node.right.schema
    asked = () if node.condition is None else conjuncts(node.condition)
    parts = [part for part in asked if constant_value(part) is not True]
    times = tuple(sorted({leaf.index for part in parts for leaf in _refs(part) if schema[leaf.index].time_attribute}))
    join = "INNER" if node.kind == "CROSS" else node.kind
    operator = JoinOperator(
        form=JoinForm.REGULAR,
        join=join,
        segments=segments,
        keys=(),
        conditions=frozenset(),
        bounds=None,
        times=(),
        clock=None,
        rows=rows,
        row_types=tuple(tuple(c.type for c in side.schema) for side in node.inputs),  # type: ignore[arg-type]
        span=node.span,
    )
    if node.temporal is not None:
        operator = _temporal_or_lookup(operator, node, resolve)
    elif times:
        found = _bounded(parts, schema, len(node.left.schema))
        if found is None:
            operator = replace(operator, form=JoinForm.JOIN)
        else:
            clock = schema[times[0]].time_attribute
            seen = tuple(resolve(InputRef(i, schema[i].type)) for i in times)
            operator = replace(operator, form=JoinForm.INTERVAL, bounds=found.bounds, times=seen, clock=clock)
            parts = found.others
    if join not in _MOVES_BELOW:
        operator = replace(operator, form=JoinForm.JOIN)
    resolved = [resolve(part) for part in parts]
    if operator.form is JoinForm.REGULAR:
        operator, resolved = _windowed(operator, resolved)
    for part in resolved:
        operator = _add_conjunct(operator, part, _MOVES_BELOW, with_filter)
    return operator


def filtered(operator: JoinOperator, part: Expression, with_filter: WithFilter) -> JoinOperator | None:
    """Move a downstream conjunct into a join or its inputs; None if the planner does not move it.

    ``part`` refers to the join's output columns. The conjunct moves to the preserved input of an outer join, or into an
    inner join. A conjunct of WHERE stays downstream of a temporal join (measured). It also stays downstream of a lookup
    join, unless the operator upstream of the lookup can pass it on.
    """
    if operator.form not in (JoinForm.REGULAR, JoinForm.INTERVAL, JoinForm.WINDOW, JoinForm.LOOKUP):
        return None
    own = [leaf for leaf in leaves(part) if not isinstance(leaf, Literal)]
    if not own or not all(isinstance(leaf, OperatorColumn) and isinstance(leaf.output, PassedOutput) for leaf in own):
        return None

    part = normalize_predicate(transform(part, _below))
    sides = _inputs(part)
    if operator.form is JoinForm.LOOKUP:
        return _below_lookup(operator, part, with_filter) if sides == {0} else None
    if len(sides) == 1 and not sides & set(_KEPT[operator.join]):
        return None
    if len(sides) > 1:
        if operator.join != "INNER":
            return None
        if not _equates(part):
            # The condition may bound the time between both inputs, which results in a different kind of join.
            operator = replace(operator, form=JoinForm.JOIN)
    return _add_conjunct(operator, part, _KEPT, with_filter)


def _below_lookup(operator: JoinOperator, part: Expression, with_filter: WithFilter) -> JoinOperator | None:
    """Move a conjunct through a lookup join and the next upstream operator; None if it does not move."""
    below, table = operator.segments
    moved = with_filter(below, transform(part, _own))
    if (moved.filters, moved.window_filters) != (below.filters, below.window_filters):
        return None
    return replace(operator, segments=(moved, table))


def _below(leaf: Expression) -> Expression:
    if isinstance(leaf, OperatorColumn) and isinstance(leaf.output, PassedOutput):
        return replace(leaf, operator=leaf.output.input, output=leaf.output.column)
    return leaf


def _add_conjunct(
    operator: JoinOperator, part: Expression, moves: dict[str, tuple[int, ...]], with_filter: WithFilter
) -> JoinOperator:
    """Add a conjunct to a join: as a key, as a condition, or as a filter of one input."""
    sides = _inputs(part)
    stays = operator.form in (JoinForm.TEMPORAL, JoinForm.LOOKUP, JoinForm.JOIN)
    if len(sides) == 1 and not stays and sides <= set(moves[operator.join]):
        (side,) = sides
        segments = list(operator.segments)
        segments[side] = with_filter(segments[side], transform(part, _own))
        return replace(operator, segments=tuple(segments))
    if _equates(part) and operator.form is not JoinForm.JOIN:
        assert isinstance(part, FunctionCall)
        one, other = part.args
        return replace(operator, keys=(*operator.keys, (one, other) if 0 in _inputs(one) else (other, one)))
    return replace(operator, conditions=operator.conditions | {part})


def _own(leaf: Expression) -> Expression:
    return leaf.output if isinstance(leaf, OperatorColumn) else leaf


def _equates(part: Expression) -> bool:
    """True for an equality between an expression of one input and an expression of the other input."""
    if not isinstance(part, FunctionCall) or part.function != "=":
        return False
    sides = [_inputs(arg) for arg in part.args]
    return all(len(side) == 1 for side in sides) and sides[0] != sides[1]


def _inputs(part: Expression) -> set[int]:
    return {leaf.operator for leaf in leaves(part) if isinstance(leaf, OperatorColumn)}


def _refs(part: Expression) -> list[InputRef]:
    return [leaf for leaf in walk(part) if isinstance(leaf, InputRef)]


def strict_join(join: Join, conditions: Sequence[Expression]) -> Join:
    """Convert an outer join to a stricter kind if downstream conditions drop its NULL-padded rows.

    Downstream conditions on one input also apply to the joins within that input. The row type must not change, so the
    columns that the join pads must also be nullable without the join.
    """
    schema, width = join.left.schema + join.right.schema, len(join.left.schema)
    timed = join.condition is not None and any(schema[ref.index].time_attribute for ref in _refs(join.condition))
    if join.temporal is not None or join.kind in ("SEMI", "ANTI") or timed:
        return join
    rejected = {ref.index < width for each in conditions if _rejects_null(each) for ref in _refs(each)}
    kind = join.kind
    if False in rejected and all(column.type.nullable for column in join.right.schema):
        kind = {"LEFT": "INNER", "FULL": "RIGHT"}.get(kind, kind)
    if True in rejected and all(column.type.nullable for column in join.left.schema):
        kind = {"RIGHT": "INNER", "FULL": "LEFT"}.get(kind, kind)
    left = join.left
    if isinstance(left, Join) and kind in ("INNER", "CROSS", "LEFT"):
        left = strict_join(left, [each for each in conditions if all(ref.index < width for ref in _refs(each))])
    return join if (kind, left) == (join.kind, join.left) else replace(join, kind=kind, left=left)


def _rejects_null(part: Expression) -> bool:
    """True for a condition that is never true if a column that it reads is NULL."""
    if not isinstance(part, FunctionCall) or not all(isinstance(arg, InputRef | Literal) for arg in part.args):
        return False
    return part.function == "IS NOT NULL" or part.function in (*FLIPPED, "=", "<>")


def _temporal_or_lookup(operator: JoinOperator, node: Join, resolve: Resolve) -> JoinOperator:
    """An event-time temporal join, or a processing-time lookup in a table that is read directly."""
    time, form = node.temporal, JoinForm.JOIN
    clock = None
    if isinstance(time, InputRef) and time.index < len(node.left.schema):
        clock = node.left.schema[time.index].time_attribute
        if clock is TimeAttribute.ROWTIME:
            form = JoinForm.TEMPORAL
        elif clock is TimeAttribute.PROCTIME and isinstance(node.right, Scan):
            form = JoinForm.LOOKUP
    assert time is not None
    return replace(operator, form=form, times=(resolve(time),), clock=clock)


def _windowed(operator: JoinOperator, parts: list[Expression]) -> tuple[JoinOperator, list[Expression]]:
    """Convert a join to a window join if both window bounds are equated, and return the other conditions."""
    fields = {_window_bound(part) for part in parts} - {None}
    if not fields:
        return operator, parts
    both = all(segment.windows for segment in operator.segments)
    form = JoinForm.WINDOW if fields == BOUNDS and both else JoinForm.JOIN
    return replace(operator, form=form), [part for part in parts if form is JoinForm.JOIN or not _window_bound(part)]


def _window_bound(part: Expression) -> WindowField | None:
    """The bound of both inputs' windows that a conjunct equates; None for other conjuncts."""
    if not _equates(part):
        return None
    assert isinstance(part, FunctionCall)
    columns = [arg.output for arg in part.args if isinstance(arg, OperatorColumn)]
    fields = {column.field for column in columns if isinstance(column, WindowColumn)}
    return fields.pop() if len(columns) == 2 and len(fields) == 1 and fields <= BOUNDS else None


@dataclass(frozen=True)
class _Bounded:
    bounds: tuple[int, int]
    others: list[Expression]


def _bounded(parts: Iterable[Expression], schema: tuple[Column, ...], width: int) -> _Bounded | None:
    """The bounds of the left time minus the right time in milliseconds, and the conjuncts without time.

    None unless there is exactly one lower and one upper bound, and no other use of time. Flink accepts only one bound
    of each kind.
    """
    lower: list[int] = []
    upper: list[int] = []
    others: list[Expression] = []
    columns: set[int] = set()
    for part in dict.fromkeys(parts):
        times = {ref.index for ref in _refs(part) if schema[ref.index].time_attribute}
        if not times:
            others.append(part)
            continue
        columns |= times
        if len(times) != 2 or not isinstance(part, FunctionCall) or part.function not in FLIPPED:
            return None  # a comparison of a time with another column is no bound
        one, other = (_shifted(arg, schema) for arg in part.args)
        if one is None or other is None:
            return None
        operator = part.function
        if one[0] >= width:
            one, other, operator = other, one, FLIPPED[operator]
        difference = other[1] - one[1]
        strict = operator in ("<", ">")
        if operator.startswith(">"):
            lower.append(difference + strict)
        else:
            upper.append(difference - strict)
    sides = sorted(columns)
    if len(sides) != 2 or not sides[0] < width <= sides[1]:
        return None
    if len(lower) != 1 or len(upper) != 1:
        return None
    if schema[sides[0]].time_attribute is not schema[sides[1]].time_attribute:
        return None
    return _Bounded((lower[0], upper[0]), others)


def _shifted(value: Expression, schema: tuple[Column, ...]) -> tuple[int, int] | None:
    """A time column, and the milliseconds that are added to it."""
    if isinstance(value, InputRef):
        return value.index, 0
    if not isinstance(value, FunctionCall) or value.function not in ("+", "-") or len(value.args) != 2:
        return None
    one, other = value.args
    if value.function == "+" and isinstance(one, Literal):
        one, other = other, one
    if not isinstance(one, InputRef) or not isinstance(other, Literal) or other.type.name != "INTERVAL_DAY_TIME":
        return None
    length = int(str(other.value))
    return one.index, length if value.function == "+" else -length
