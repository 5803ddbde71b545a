"""Binding of GROUP BY: keys, grouping sets, aggregates and legacy group windows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, combinations, product

from sqlglot import exp

from airflow_flinkcompat.lazy import quick_init
from airflow_flinkcompat.model import NormalForm, Span
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.catalog import BindError, Environment
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, InputRef
from airflow_flinkcompat.plan.nodes import Aggregate, GroupWindowAggregate, Node, WindowAggregate, WindowField
from airflow_flinkcompat.plan.program import INVALID
from airflow_flinkcompat.plan.scalars import ScalarBinder, Special, aggregates_in, is_aggregate, time_attribute_of
from airflow_flinkcompat.plan.types import Column, TimeAttribute
from airflow_flinkcompat.plan.windows import (
    aggregation_window,
    group_window,
    is_group_window,
    property_column,
    window_property,
)
from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.normal_form import normal_form

SETS_LIMIT = 4_096
"""Maximum number of grouping sets that are expanded; a CUBE of 40 columns has 2**40."""


@dataclass(frozen=True)
class Grouping:
    """An aggregation under construction: its node, its keys, and a binder for grouped expressions."""

    node: Node
    special: Special
    keys: tuple[Expression, ...]

    @classmethod
    def of(cls, scalars: ScalarBinder, tree: exp.Select, outputs: list[exp.Expression], below: Node) -> Grouping | None:
        """The grouping of a SELECT; None without GROUP BY and without aggregates."""
        group = tree.args.get("group")
        environment = scalars.environment
        if group is None and not any(True for output in outputs for _ in aggregates_in(output, environment)):
            return None
        items = _group_items(group)
        window_call = next((part for sets in items for part in sets.all if is_group_window(part)), None)
        assert window_call is None or isinstance(window_call, exp.Anonymous)
        keys, sets, position = _keys(items, scalars, window_call)
        calls: dict[AggregateCall, int] = {}
        bound: dict[int, AggregateCall] = {}
        """Bound calls, by the identity of their trees, which stay alive in the SELECT or HAVING."""
        for output in outputs:
            for found in _aggregates(output, environment, scalars, keys):
                if next(_nested_aggregates(found, environment), None) is not None:
                    message = (
                        f"the argument of {found.sql(dialect='flink')} contains an aggregate: "
                        "compute the inner aggregate in a subquery"
                    )
                    raise BindError(INVALID, message, scalars.span(found))
                call = bound[id(found)] = scalars.aggregate(found)
                calls.setdefault(call, len(calls))
        aggregates = tuple(calls)
        # A key keeps its time attribute. If window_time is a key, it is the event time of the result.
        columns = [
            Column(_key_name(key, below.schema, i), key.type, time_attribute_of(key, below.schema))
            for i, key in enumerate(keys)
        ]
        columns += [Column(f"agg${i}", call.type, _clock(call, below.schema)) for i, call in enumerate(aggregates)]
        schema = tuple(columns)
        span = scalars.span(group) if group is not None else scalars.span(tree)
        if window_call is not None:
            return cls._group_window(
                scalars, window_call, outputs, below, keys, sets, position, aggregates, bound, schema, span
            )
        window = aggregation_window(below, keys, sets, aggregates)
        node: Node
        if window is not None:
            node = WindowAggregate(below, keys, aggregates, schema, sets, window=window, span=span)
        else:
            node = Aggregate(below, keys, aggregates, schema, sets, span=span)
        return cls(node, _special(environment, scalars, keys, aggregates, bound, node, {}), keys)

    @classmethod
    def _group_window(
        cls,
        scalars: ScalarBinder,
        call: exp.Anonymous,
        outputs: list[exp.Expression],
        below: Node,
        keys: tuple[Expression, ...],
        sets: tuple[tuple[int, ...], ...] | None,
        position: int,
        aggregates: tuple[AggregateCall, ...],
        bound: Mapping[int, AggregateCall],
        schema: tuple[Column, ...],
        span: Span,
    ) -> Grouping:
        time, window = group_window(call, scalars)
        attribute = time_attribute_of(time, below.schema)
        fields: dict[exp.Expression, int] = {}
        properties: list[WindowField] = []
        columns: list[Column] = []
        mismatched: dict[NormalForm, None] = {}
        for output in outputs:
            for found in output.find_all(exp.Anonymous):
                name = window_property(found)
                if name is not None and found not in fields:
                    if group_window(found, scalars) != (time, window):  # such as TUMBLE_START of a different window
                        mismatched[normal_form(found, column=scalars.numbered_name)] = None
                    if name not in properties:
                        properties.append(name)
                        columns.append(property_column(name, time.type, attribute))
                    fields[found] = len(schema) + properties.index(name)
        node = GroupWindowAggregate(
            below,
            window,
            time,
            attribute,
            keys,
            aggregates,
            tuple(properties),
            schema + tuple(columns),
            position,
            sets,
            tuple(mismatched),
            span=span,
        )
        return cls(node, _special(scalars.environment, scalars, keys, aggregates, bound, node, fields), keys)


def _clock(call: AggregateCall, columns: tuple[Column, ...]) -> TimeAttribute | None:
    """PROCTIME for MIN and MAX over a processing time, which Flink 2.3.0 can use in a lookup join."""
    of_time = any(time_attribute_of(each, columns) is TimeAttribute.PROCTIME for each in call.args)
    return TimeAttribute.PROCTIME if of_time and call.function in ("MIN", "MAX") else None


def _special(
    environment: Environment,
    scalars: ScalarBinder,
    keys: tuple[Expression, ...],
    aggregates: tuple[AggregateCall, ...],
    bound_calls: Mapping[int, AggregateCall],
    node: Node,
    fields: Mapping[exp.Expression, int],
) -> Special:
    places: dict[Expression | AggregateCall, int] = {}
    for index, column in enumerate((*keys, *aggregates)):
        places.setdefault(column, index)

    def special(part: exp.Expression) -> Expression | None:
        if fields and isinstance(part, exp.Anonymous) and part in fields:
            index = fields[part]
            return InputRef(index, node.schema[index].type)
        if isinstance(part, exp.Anonymous | exp.Filter | nodes.KeywordCall):
            call = bound_calls.get(id(part)) or _call(part, scalars)
            if call is not None and call in places and (call.language != "builtin" or is_aggregate(part, environment)):
                return InputRef(places[call], call.type)
        if isinstance(part, exp.Literal | exp.Interval | exp.Var | exp.Null | exp.Boolean):
            return None
        try:
            bound = scalars.bind(part)
        except BindError:
            if isinstance(part, exp.Column | exp.Dot):
                raise
            return None
        if bound in places:
            return InputRef(places[bound], bound.type)
        if isinstance(bound, InputRef):
            raise _not_grouped(part, scalars)
        return None

    return special


def _not_grouped(part: exp.Expression, scalars: ScalarBinder) -> BindError:
    remedy = "add it to GROUP BY, or aggregate it"
    return BindError(
        INVALID, f"{part.sql(dialect='flink')} is neither grouped nor aggregated: {remedy}", scalars.span(part)
    )


def _call(tree: exp.Expression, scalars: ScalarBinder) -> AggregateCall | None:
    """Bind a tree as an aggregate; None if it cannot be an aggregate."""
    try:
        return scalars.aggregate(tree)
    except BindError:
        return None


@quick_init
@dataclass(frozen=True)
class _GroupItem:
    """One item of GROUP BY, with the grouping sets that it generates."""

    sets: tuple[tuple[exp.Expression, ...], ...]
    simple: bool

    @property
    def all(self) -> tuple[exp.Expression, ...]:
        return tuple(chain.from_iterable(self.sets))


def _group_items(group: exp.Expression | None) -> list[_GroupItem]:
    if group is None:
        return []
    items = [_group_item(part) for part in group.expressions]
    for name in ("grouping_sets", "cube", "rollup"):
        extra = group.args.get(name)
        items += [_group_item(part) for part in (extra if isinstance(extra, list) else []) if part is not None]
    return items


def _group_item(tree: exp.Expression) -> _GroupItem:
    match tree:
        case exp.GroupingSets():
            inner = [_group_item(part) for part in tree.expressions]
            return _GroupItem(tuple(one for item in inner for one in item.sets), simple=False)
        case exp.Cube():
            parts = [_flat(part) for part in tree.expressions]
            _limited(2 ** len(parts))
            subsets = [c for size in range(len(parts), -1, -1) for c in combinations(parts, size)]
            return _GroupItem(tuple(tuple(p for part in one for p in part) for one in subsets), simple=False)
        case exp.Rollup():
            parts = [_flat(part) for part in tree.expressions]
            prefixes = [parts[:size] for size in range(len(parts), -1, -1)]
            return _GroupItem(tuple(tuple(p for part in one for p in part) for one in prefixes), simple=False)
    return _GroupItem((_flat(tree),), simple=True)


def _limited(sets: int) -> None:
    if sets > SETS_LIMIT:
        raise BindError("too-large", f"a GROUP BY with more than {SETS_LIMIT} grouping sets is not supported")


def _flat(tree: exp.Expression) -> tuple[exp.Expression, ...]:
    """Keys of an expression: two for ``(a, b)`` and ``ROW(a, b)`` (EXPLAIN), one for ``(a)``."""
    if isinstance(tree, exp.Anonymous) and tree.name.upper() == "ROW":
        return tuple(part for inner in tree.expressions for part in _flat(inner))
    if isinstance(tree, exp.Tuple):
        return tuple(part for inner in tree.expressions for part in _flat(inner))
    if isinstance(tree, exp.Paren):
        return _flat(tree.this)
    return (tree,)


def _keys(
    items: list[_GroupItem], scalars: ScalarBinder, window_call: exp.Expression | None
) -> tuple[tuple[Expression, ...], tuple[tuple[int, ...], ...] | None, int]:
    """The distinct keys in order of first use, the grouping sets, and the position of the window call."""
    keys: dict[Expression, int] = {}
    places: dict[int, int] = {}
    """Positions by the identity of each part, because a CUBE contains its parts in many sets."""
    position = 0
    for item in items:
        for part in item.all:
            if part is window_call:
                position = len(keys)
            elif not is_group_window(part) and id(part) not in places:
                places[id(part)] = keys.setdefault(scalars.bind(part), len(keys))
    if all(item.simple for item in items):
        return tuple(keys), None, position
    _limited(math.prod(len(item.sets) for item in items))
    sets = tuple(
        tuple(sorted({places[id(part)] for one in combined for part in one if id(part) in places}))
        for combined in product(*(item.sets for item in items))
    )
    return tuple(keys), sets, position


def _aggregates(
    tree: exp.Expression, environment: Environment, scalars: ScalarBinder, keys: tuple[Expression, ...]
) -> Iterator[exp.Expression]:
    """The aggregates of an output, and undeclared functions that read an ungrouped column."""
    if isinstance(tree, exp.Window):
        # The argument of an OVER call may itself be an aggregate of this query.
        for part in (*tree.this.iter_expressions(), *(tree.args.get("partition_by") or ()), tree.args.get("order")):
            if part is not None:
                yield from _aggregates(part, environment, scalars, keys)
        return
    if is_aggregate(tree, environment):
        yield tree
        return
    if _may_aggregate(tree, environment) and not list(_nested_aggregates(tree, environment)):
        try:
            bound = scalars.bind(tree)
        except BindError:
            bound = None
        if bound is not None and bound not in keys and _reads_ungrouped(bound, keys):
            yield tree
            return
    for child in tree.iter_expressions():
        yield from _aggregates(child, environment, scalars, keys)


def _nested_aggregates(tree: exp.Expression, environment: Environment) -> Iterator[exp.Expression]:
    call = tree.this if isinstance(tree, exp.Filter) else tree
    for child in (*call.iter_expressions(), *([tree.expression] if call is not tree else [])):
        yield from aggregates_in(child, environment)


def _may_aggregate(tree: exp.Expression, environment: Environment) -> bool:
    if not isinstance(tree, exp.Anonymous) or window_property(tree) is not None:
        return False
    declared = environment.function(tree.name)
    if declared is not None:
        return declared.kind in ("", "aggregate")
    return functions.lookup(tree.name.upper()) is None


def _reads_ungrouped(expression: Expression, keys: tuple[Expression, ...]) -> bool:
    if expression in keys:
        return False
    if isinstance(expression, FunctionCall):
        return any(_reads_ungrouped(arg, keys) for arg in expression.args)
    return isinstance(expression, InputRef)


def _key_name(key: Expression, columns: tuple[Column, ...], position: int) -> str:
    return columns[key.index].name if isinstance(key, InputRef) else f"key${position}"
