"""Binding of ORDER BY, LIMIT and OVER: the order of rows, and computations that depend on the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from airflow_flinkcompat.model import Span
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.catalog import BindError, Environment, data_type
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, InputRef, Literal
from airflow_flinkcompat.plan.nodes import (
    Filter,
    Frame,
    Node,
    Over,
    OverCall,
    Project,
    Single,
    Sort,
    Window,
    WindowKind,
)
from airflow_flinkcompat.plan.scalars import ScalarBinder, Scope, is_aggregate, time_attribute_of, unread
from airflow_flinkcompat.plan.types import BIGINT, INTERVAL_DAY_TIME, Column
from airflow_flinkcompat.plan.windows import group_window, is_group_window, through_table_api
from airflow_flinkcompat.sql import Statement
from airflow_flinkcompat.sql.normal_form import normal_form
from airflow_flinkcompat.sql.script import span_of


def scope_of(node: Node, alias: str | None, optional: bool = False) -> Scope:
    """The columns of a node under one alias; ``optional`` marks the columns of an undeclared table."""
    count = len(node.schema)
    return Scope((alias,) * count, node.schema, (optional,) * count)


class OrderBinder:
    """Binder of the clauses that order rows, for the queries of one statement."""

    def __init__(self, environment: Environment, statement: Statement) -> None:
        self.environment = environment
        self.statement = statement

    def span(self, tree: exp.Expr) -> Span:
        """The place of a tree in the script."""
        return span_of(tree, self.statement)

    def ordered(
        self, tree: exp.Expression, node: Node, below: ScalarBinder | None = None, *, root: bool = False
    ) -> Node:
        """Add ORDER BY and LIMIT to a query; ``below`` binds sort keys that the SELECT list lacks.

        Flink drops the ORDER BY of a subquery or WITH query, unless LIMIT or OFFSET needs it. ``root`` is False for a
        subquery or WITH query.
        """
        order, limit, offset = map(tree.args.get, ("order", "limit", "offset"))
        if order is None and limit is None and offset is None:
            return node
        binder = ScalarBinder(self.environment, self.statement, scope_of(node, None))
        unsorted, wanted = node, node.schema
        if below is not None and isinstance(node, Project):
            node, binder = self._with_sort_keys(order, node, binder, below)
        keys = tuple(
            (self._ordinal(key, wanted, order), ascending, nulls)
            for key, ascending, nulls in self.order_keys(order, binder)
        )
        if limit is None and offset is None and not root:
            return unsorted
        numbers = []
        for part in (limit, offset):
            if part is not None:
                ties = part.args.get("limit_options")
                for each in (part, *((ties,) if ties is not None else ())):
                    unread(each, self.span, tree)
            value = None if part is None else part.args.get("expression") or part.args.get("count")
            number = None if value is None else constant_count(value)
            if value is not None and number is None:
                raise BindError("construct", f"LIMIT {value.sql(dialect='flink')} is not a number", self.span(tree))
            numbers.append(number)
        sort = Sort(node, keys, numbers[0], numbers[1], span=self.span(order or limit or offset or tree))
        if len(node.schema) == len(wanted):
            return sort
        columns = tuple(InputRef(i, column.type) for i, column in enumerate(wanted))
        return Project(sort, columns, wanted, span=node.span)

    def _ordinal(self, key: Expression, columns: Sequence[Column], order: exp.Expression | None) -> Expression:
        """Replace a whole number in ORDER BY by the column at that position."""
        if not isinstance(key, Literal) or not isinstance(key.value, int) or isinstance(key.value, bool):
            return key
        if not 0 < key.value <= len(columns):
            place = self.span(order) if order is not None else None
            raise BindError("construct", f"ORDER BY {key.value}: the query has {len(columns)} columns", place)
        return InputRef(key.value - 1, columns[key.value - 1].type)

    def _with_sort_keys(
        self, order: exp.Expression | None, node: Project, binder: ScalarBinder, below: ScalarBinder
    ) -> tuple[Project, ScalarBinder]:
        """Add a column to the projection for each sort key that the SELECT list lacks."""
        hidden: dict[exp.Expression, Expression] = {}
        for key in [] if order is None else order.expressions:
            tree = key.this if isinstance(key, exp.Ordered) else key
            try:
                binder.bind(tree)
            except BindError as missing:
                if missing.reason != "unknown-column":
                    raise
                hidden[tree] = below.bind(tree)
        if not hidden:
            return node, binder
        found = tuple(each for each in dict.fromkeys(hidden.values()) if each not in node.expressions)
        columns = below.scope.columns
        added = tuple(Column(f"{HIDDEN_KEY}{i}", e.type, time_attribute_of(e, columns)) for i, e in enumerate(found))
        wider = replace(node, expressions=node.expressions + found, schema=node.schema + added)
        places = {id(tree): wider.expressions.index(key) for tree, key in hidden.items()}

        def special(part: exp.Expression) -> Expression | None:
            place = places.get(id(part))
            return None if place is None else InputRef(place, wider.schema[place].type)

        return wider, ScalarBinder(self.environment, self.statement, binder.scope, special)

    def order_keys(
        self, order: exp.Expression | None, binder: ScalarBinder
    ) -> tuple[tuple[Expression, bool, bool | None], ...]:
        """The keys of an ORDER BY with their direction: (expression, ascending, nulls first)."""
        if order is None:
            return ()
        return tuple(
            (binder.bind(key.this), not key.args.get("desc"), key.args.get("nulls_first"))
            if isinstance(key, exp.Ordered)
            else (binder.bind(key), True, None)
            for key in order.expressions
        )

    def over(
        self, node: Node, windows: list[exp.Window], binder: ScalarBinder, named: Mapping[str, exp.Window]
    ) -> tuple[Over, tuple[OverCall, ...]]:
        """The node and the calls of a SELECT's OVER; ``named`` contains the windows of its WINDOW clause."""
        calls = []
        for tree in windows:
            alias = tree.args.get("alias")
            function = tree.this
            if alias is not None:
                if alias.name not in named or any(tree.args.get(part) for part in ("partition_by", "order", "spec")):
                    raise BindError("construct", f"window {alias.name} is not understood", self.span(tree))
                tree = named[alias.name]
            unread(tree, self.span)
            inner = function.this if isinstance(function, exp.Filter) else function
            if not isinstance(inner, exp.Anonymous):
                raise BindError("construct", f"{function.sql(dialect='flink')} OVER is not understood", self.span(tree))
            name = inner.name.upper()
            if is_aggregate(function, self.environment):
                call = binder.aggregate(function)
            else:
                args = tuple(binder.bind(arg) for arg in inner.expressions)
                spec = functions.lookup(name)
                result = spec.result_type(tuple(a.type for a in args)) if spec else BIGINT
                call = AggregateCall(name, args, result, span=self.span(function))
            order = self.order_keys(tree.args.get("order"), binder)
            keys, window = _row_window(tree.args.get("partition_by") or [], order, binder)
            frame = replace(_frame(tree.args.get("spec"), binder), window=window)
            calls.append(OverCall(call, tuple(map(binder.bind, keys)), order, frame))
        schema = node.schema + tuple(Column(f"w${i}", call.call.type) for i, call in enumerate(calls))
        return Over(node, tuple(calls), schema, span=self.span(windows[0])), tuple(calls)


def with_kept_sorts(node: Node, *, root: bool) -> Node:
    """Remove the sorts of views that Flink drops (planned on 2.3).

    Flink keeps the ORDER BY of a view only if the statement, or a view that the statement reads, selects directly
    from that view. A subquery, join, aggregation or LIMIT over the view drops the ORDER BY. Flink refuses an OVER
    over such a view, and an ORDER BY in a subquery of IN or EXISTS; these queries remain unchanged.
    """
    match node:
        case Project() | Filter():
            below = with_kept_sorts(node.input, root=root)
        case Sort(limit=None, offset=0 | None) if not root:
            return with_kept_sorts(node.input, root=False)
        case Over():
            return node
        case Single():
            below = with_kept_sorts(node.input, root=False)
        case _:
            return node
    return node if below is node.input else replace(node, input=below)


def _row_window(
    keys: list[exp.Expression], order: tuple[tuple[Expression, bool, bool | None], ...], binder: ScalarBinder
) -> tuple[list[exp.Expression], Window | None]:
    """The PARTITION BY items, and a final window at whose end a FLIP-11 frame restarts."""
    last = keys[-1] if keys else None
    if not isinstance(last, exp.Anonymous) or not (is_group_window(last) and through_table_api(binder.statement)):
        return keys, None
    time, window = group_window(last, binder)
    if window.kind is WindowKind.HOP or len(last.expressions) != 2:
        raise BindError(
            "window", "a row window with an end must be a TUMBLE or a SESSION without offset", binder.span(last)
        )
    if [key for key, _, _ in order] != [time]:
        raise BindError("window", "a row window must be ordered by the time column of its end", binder.span(last))
    return keys[:-1], window


def _frame(tree: exp.WindowSpec | None, binder: ScalarBinder) -> Frame:
    """The frame of an OVER call. The default is all rows up to the time of the current row."""
    if tree is None:
        return Frame()
    unit = str(tree.args.get("kind")).upper()
    back = _bound(tree.args.get("start"), tree.args.get("start_side"), "PRECEDING", unit, binder)
    ahead = _bound(tree.args.get("end") or "CURRENT ROW", tree.args.get("end_side"), "FOLLOWING", unit, binder)
    if back is None or ahead is None or (ahead != (0,) and not through_table_api(binder.statement)):
        return Frame(unit, None, normal_form(tree, column=binder.numbered_name))
    return Frame(unit, *back, following=ahead[0])


def _bound(bound: object, side: object, expected: str, unit: str, binder: ScalarBinder) -> tuple[int | None] | None:
    """The extent of a frame to one side, in rows or milliseconds; None for any other form."""
    bound = bound.upper() if isinstance(bound, str) else bound
    if bound == "CURRENT ROW":
        return (0,)
    if str(side).upper() != expected:
        return None
    match bound:
        case "UNBOUNDED":
            return (None,)
        case exp.Expression() if unit == "ROWS" and (rows := constant_count(bound)) is not None:
            return (rows,)
        case exp.Interval() if unit == "RANGE" and (far := binder.interval(bound)).type == INTERVAL_DAY_TIME:
            return (int(str(far.value)),)
    return None


HIDDEN_KEY = "SORT$"
"""Prefix of columns that only an ORDER BY needs."""
_LARGEST = {"TINYINT": 2**7, "SMALLINT": 2**15, "INT": 2**31, "BIGINT": 2**63}


def constant_count(tree: exp.Expression) -> int | None:
    """The value of an integer literal, also in parentheses or in a cast; None for other trees.

    ``CAST(2 AS BIGINT) PRECEDING`` is planned as ``2 PRECEDING`` (EXPLAIN, 2.3.0).
    """
    match tree:
        case exp.Paren():
            return constant_count(tree.this)
        case exp.Literal() if not tree.is_string and tree.name.isdecimal():
            return int(tree.name)
        case exp.Cast() if not isinstance(tree, exp.TryCast):
            number = constant_count(tree.this)
            return number if number is not None and number < _LARGEST.get(data_type(tree.args["to"]).name, 0) else None
    return None
