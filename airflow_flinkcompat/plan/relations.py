"""Binds queries of a syntax tree to the logical DAG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product

from sqlglot import exp

from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.catalog import BindError, Environment, options, place
from airflow_flinkcompat.plan.expressions import (
    AggregateCall,
    Call,
    Expression,
    InputRef,
    Literal,
    conjunction,
    walk,
)
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    Correlate,
    Filter,
    GroupWindowAggregate,
    Join,
    Node,
    Opaque,
    Over,
    OverCall,
    Project,
    Scan,
    Sort,
    Table,
    Union,
    Values,
    Window,
    WindowAggregate,
    WindowAssign,
    WindowField,
    WindowKind,
)
from airflow_flinkcompat.plan.scalars import (
    GROUP_WINDOWS,
    ScalarBinder,
    Scope,
    aggregates_in,
    is_aggregate,
    overs_in,
    time_attribute_of,
)
from airflow_flinkcompat.plan.types import (
    BIGINT,
    BOOLEAN,
    UNKNOWN,
    Column,
    DataType,
    TimeAttribute,
    timestamp,
)
from airflow_flinkcompat.sql import Span, Statement, nodes

_PARAMETERS = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}
_PROPERTIES = {
    "START": WindowField.START,
    "END": WindowField.END,
    "ROWTIME": WindowField.TIME,
    "PROCTIME": WindowField.PROCTIME,
}


@dataclass(frozen=True)
class Relation:
    """A bound relation: its node and how its columns may be named."""

    node: Node
    scope: Scope


def _scope(node: Node, alias: str | None, optional: bool = False) -> Scope:
    count = len(node.schema)
    return Scope((alias,) * count, node.schema, (optional,) * count)


class QueryBinder:
    """Binds the queries of one statement; ``ctes`` are the WITH relations in sight."""

    def __init__(self, environment: Environment, statement: Statement, ctes: Mapping[str, Node] | None = None) -> None:
        self.environment = environment
        self.statement = statement
        self.ctes = dict(ctes or {})

    def span(self, tree: exp.Expression) -> Span:
        return place(tree, self.statement)

    # ------------------------------------------------------------------------------------------- queries
    def query(self, tree: exp.Expression) -> Node:
        """The plan of a query. Raises :class:`BindError` for what the plan cannot take apart."""
        inner = self._with_ctes(tree)
        match tree:
            case exp.Select():
                return inner._ordered(tree, inner._select(tree))
            case exp.Union() | exp.Intersect() | exp.Except():
                return inner._ordered(tree, inner._set_operation(tree))
            case exp.Values():
                return inner._values(tree).node
            case exp.Subquery():
                return inner._ordered(tree, inner.query(tree.this))
            case exp.Paren():
                return inner.query(tree.this)
            case exp.Table():
                return inner._table(tree).node
        raise BindError("construct", f"{type(tree).__name__} is not understood as a query", self.span(tree))

    def _with_ctes(self, tree: exp.Expression) -> QueryBinder:
        clause = tree.args.get("with_") or tree.args.get("with")
        if clause is None:
            return self
        inner = QueryBinder(self.environment, self.statement, self.ctes)
        if clause.args.get("recursive"):
            raise BindError("construct", "WITH RECURSIVE is not understood", self.span(clause))
        for cte in clause.expressions:
            node = inner.query(cte.this)
            inner.ctes[cte.alias] = _renamed(node, [column.name for column in cte.args["alias"].columns])
        return inner

    def _set_operation(self, tree: exp.SetOperation) -> Node:
        left, right = self.query(tree.this), self.query(tree.expression)
        if len(left.schema) != len(right.schema):
            raise BindError("construct", "both sides of a set operation need as many columns", self.span(tree))
        schema = tuple(
            Column(a.name, a.type if a.type.is_known else b.type, a.time_attribute if b.time_attribute else None)
            for a, b in zip(left.schema, right.schema, strict=True)
        )
        span = self.span(tree)
        if not isinstance(tree, exp.Union):
            kind = type(tree).__name__.upper() + ("" if tree.args.get("distinct") else " ALL")
            return Opaque(kind, kind, (left, right), schema, "a set operation without rules", span)
        branches = tuple(
            part for side in (left, right) for part in (side.branches if isinstance(side, Union) else (side,))
        )
        union = Union(branches, schema, span)
        return union if not tree.args.get("distinct") else _distinct(union, span)

    def _ordered(self, tree: exp.Expression, node: Node) -> Node:
        order, limit, offset = (tree.args.get(name) for name in ("order", "limit", "offset"))
        if order is None and limit is None and offset is None:
            return node
        binder = ScalarBinder(self.environment, self.statement, _scope(node, None))
        keys = self._order_keys(order, binder)
        numbers = []
        for part in (limit, offset):
            value = None if part is None else part.args.get("expression") or part.args.get("count")
            if value is not None and not isinstance(value, exp.Literal):
                raise BindError("construct", f"LIMIT {value} is no number", self.span(tree))
            numbers.append(None if value is None else int(value.name))
        return Sort(node, keys, numbers[0], numbers[1], span=self.span(order or limit or offset or tree))

    def _order_keys(
        self, order: exp.Expression | None, binder: ScalarBinder
    ) -> tuple[tuple[Expression, bool, bool | None], ...]:
        if order is None:
            return ()
        return tuple(
            (binder.bind(key.this), not key.args.get("desc"), key.args.get("nulls_first"))
            if isinstance(key, exp.Ordered)
            else (binder.bind(key), True, None)
            for key in order.expressions
        )

    def _values(self, tree: exp.Values) -> Relation:
        binder = ScalarBinder(self.environment, self.statement, Scope((), ()))
        rows = tuple(
            tuple(binder.bind(cell) for cell in (row.expressions if isinstance(row, exp.Tuple) else [row]))
            for row in tree.expressions
        )
        schema = tuple(Column(f"EXPR${i}", cell.type) for i, cell in enumerate(rows[0]))
        node = Values(rows, schema, self.span(tree))
        return self._aliased(node, tree)

    # --------------------------------------------------------------------------------------------- FROM
    def _aliased(self, node: Node, tree: exp.Expression, optional: bool = False) -> Relation:
        alias = tree.args.get("alias")
        if not isinstance(alias, exp.TableAlias):
            return Relation(node, _scope(node, alias.name if alias is not None else None, optional))
        node = _renamed(node, [column.name for column in alias.columns])
        return Relation(node, _scope(node, alias.name or None, optional))

    def relation(self, tree: exp.Expression) -> Relation:
        """A relation of FROM with its columns' names."""
        match tree:
            case exp.Table():
                return self._table(tree)
            case exp.Subquery():
                joins = tree.args.get("joins")
                inner = tree.this
                if isinstance(inner, exp.Table | nodes.TableFunction):
                    found = self._joined(self.relation(inner), joins or [])
                    return self._aliased(found.node, tree) if tree.args.get("alias") else found
                return self._joined(self._aliased(self._with_ctes(tree).query(inner), tree), joins or [])
            case exp.Values():
                return self._values(tree)
            case nodes.TableFunction():
                return self._table_function(tree)
            case nodes.MatchRecognize():
                return self._match(tree)
        raise BindError("construct", f"{type(tree).__name__} is not understood in FROM", self.span(tree))

    def _table(self, tree: exp.Table) -> Relation:
        span = self.span(tree)
        alias = tree.args.get("alias")
        name = tree.name
        if not tree.args.get("db") and name in self.ctes:
            node = self.ctes[name]
            return self._named(node, tree, name, alias)
        path = self.environment.path(tree)
        view = self.environment.views.get(path)
        if view is not None:
            if view.node is None:
                assert view.error is not None
                raise view.error
            return self._named(view.node, tree, name, alias)
        table = self.environment.table(path, span)
        scan = Scan(table, _hints(tree), span)
        return self._named(scan, tree, name, alias, optional=not table.declared)

    def _named(
        self, node: Node, tree: exp.Table, name: str, alias: exp.Expression | None, optional: bool = False
    ) -> Relation:
        if alias is not None:
            return self._aliased(node, tree, optional)
        return Relation(node, _scope(node, name, optional))

    def _from(self, tree: exp.Select) -> Relation:
        clause = tree.args.get("from_") or tree.args.get("from")
        if clause is None:
            node = Values(((),), (), self.span(tree))
            return Relation(node, Scope((), ()))
        return self._joined(self._with_joins(clause.this), tree.args.get("joins") or [])

    def _with_joins(self, tree: exp.Expression) -> Relation:
        found = self.relation(tree)
        if isinstance(tree, exp.Table) and tree.args.get("joins"):
            return self._joined(found, tree.args["joins"])
        return found

    def _joined(self, left: Relation, joins: list[exp.Expression]) -> Relation:
        for join in joins:
            left = self._join(left, join)
        return left

    def _join(self, left: Relation, join: exp.Expression) -> Relation:
        what = join.this
        side = str(join.args.get("side") or "").upper()
        kind = str(join.args.get("kind") or "").upper()
        lateral = what.this if isinstance(what, exp.Lateral) else what
        if isinstance(lateral, nodes.TableFunction) and (lateral.args.get("lateral") or not _is_window(lateral)):
            return self._correlate(left, lateral, lateral.expressions, side == "LEFT", join)
        if isinstance(lateral, exp.Unnest):
            ordinal = lateral.args.get("offset")
            if ordinal:
                raise BindError("construct", "UNNEST … WITH ORDINALITY is not understood", self.span(join))
            return self._correlate(left, lateral, lateral.expressions, side == "LEFT", join)
        if isinstance(what, exp.Lateral):
            raise BindError("construct", "a lateral subquery is not understood", self.span(join))
        right = self.relation(what)
        scope = left.scope.concat(right.scope)
        binder = ScalarBinder(self.environment, self.statement, scope)
        if join.args.get("using") or str(join.args.get("method") or "").upper() == "NATURAL":
            raise BindError("construct", "JOIN … USING and NATURAL JOIN are not understood", self.span(join))
        on = join.args.get("on")
        version = what.args.get("version")
        temporal = None
        if isinstance(version, nodes.SystemTime):
            temporal = ScalarBinder(self.environment, self.statement, scope).bind(version.this)
        node = Join(
            left.node,
            right.node,
            side or kind or ("INNER" if on is not None else "CROSS"),
            None if on is None else binder.bind(on),
            temporal,
            span=self.span(join),
        )
        kept = scope if len(node.schema) == len(scope.columns) else left.scope
        return Relation(node, replace(kept, columns=node.schema))

    def _correlate(
        self, left: Relation, tree: exp.Expression, args: list[exp.Expression], outer: bool, join: exp.Expression
    ) -> Relation:
        on = join.args.get("on")
        if on is not None and not (isinstance(on, exp.Boolean) and on.this):
            raise BindError("construct", "a table function is joined ON TRUE only", self.span(join))
        binder = ScalarBinder(self.environment, self.statement, left.scope)
        bound = tuple(binder.bind(arg) for arg in args)
        name = "UNNEST" if isinstance(tree, exp.Unnest) else _function_name(tree, self.environment)
        alias = tree.args.get("alias") or join.this.args.get("alias")
        names = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
        added = tuple(Column(column, UNKNOWN) for column in names or ["f0"])
        node = Correlate(left.node, name, bound, outer, left.node.schema + added, span=self.span(tree))
        right = Scope((alias.name if alias is not None else None,) * len(added), added)
        return Relation(node, left.scope.concat(right))

    def _match(self, tree: nodes.MatchRecognize) -> Relation:
        below = self.relation(tree.this)
        measures = [measure.alias for measure in tree.args.get("measures") or ()]
        keys = [key.name for key in tree.args.get("partition_by") or ()]
        schema = tuple(Column(name, UNKNOWN) for name in (*keys, *measures))
        bare = tree.copy()
        bare.set("this", exp.to_identifier("input"))
        bare.set("alias", None)
        text = bare.sql(dialect="flink")
        node = Opaque("MATCH_RECOGNIZE", text, (below.node,), schema, "pattern recognition has no rules yet", self.span(tree))
        return self._aliased(node, tree)

    # -------------------------------------------------------------------------------------------- windows
    def _table_function(self, tree: nodes.TableFunction) -> Relation:
        if not _is_window(tree):
            empty = Relation(Values(((),), (), self.span(tree)), Scope((), ()))
            if any(isinstance(arg, nodes.TableArgument | nodes.NamedArgument) for arg in tree.expressions):
                raise BindError("construct", f"table function {tree.this.name} is not understood", self.span(tree))
            return self._correlate(empty, tree, tree.expressions, False, exp.Join(this=tree))
        kind = tree.this.name.upper()
        args = self._window_arguments(kind, tree)
        data = args.pop("DATA", None)
        if not isinstance(data, nodes.TableArgument):
            raise BindError("window", f"{kind} needs a table as its first argument (DATA)", self.span(tree))
        below = self.relation(data.this)
        timecol = args.pop("TIMECOL", None)
        if not isinstance(timecol, nodes.Descriptor) or len(timecol.expressions) != 1:
            raise BindError("window", f"{kind} needs DESCRIPTOR(time column)", self.span(tree))
        column = timecol.expressions[0]
        index = below.scope.find(column.name)
        if index is None:
            raise BindError("unknown-column", f"column {column.name} is not found", self.span(column))
        time = below.node.schema[index]
        binder = ScalarBinder(self.environment, self.statement, below.scope)
        window = self._window(WindowKind(kind), args, tree)
        passed = tuple(
            replace(c, time_attribute=None) if c.time_attribute is not None and i == index else c
            for i, c in enumerate(below.node.schema)
        )
        node = WindowAssign(
            below.node,
            window,
            InputRef(index, time.type, self.span(column)),
            passed + _window_columns(time),
            tuple(binder.bind(key) for key in data.args.get("partition_by") or ()),
            span=self.span(tree),
        )
        return self._aliased(node, tree)

    def _window_arguments(self, kind: str, tree: nodes.TableFunction) -> dict[str, exp.Expression]:
        names = _PARAMETERS[kind]
        found: dict[str, exp.Expression] = {}
        for i, arg in enumerate(tree.expressions):
            if isinstance(arg, nodes.NamedArgument):
                name, arg = arg.this.name.upper(), arg.expression
            elif i < len(names):
                name = names[i]
            else:
                raise BindError("window", f"{kind} takes at most {len(names)} arguments", self.span(tree))
            if name not in names or name in found:
                raise BindError("window", f"{kind} has no argument {name} here", self.span(arg))
            if isinstance(arg, exp.Table | exp.Subquery):
                arg = nodes.TableArgument(this=arg)
            found[name] = arg
        return found

    def _window(self, kind: WindowKind, args: Mapping[str, exp.Expression], tree: exp.Expression) -> Window:
        lengths = {name: self._length(arg) for name, arg in args.items()}
        needed = set(_PARAMETERS[kind]) - {"DATA", "TIMECOL", "OFFSET"}
        if missing := sorted(needed - lengths.keys()):
            raise BindError("window", f"{kind} lacks {', '.join(missing)}", self.span(tree))
        return Window(
            kind,
            size=lengths.get("SIZE"),
            slide=lengths.get("SLIDE", lengths.get("STEP")),
            gap=lengths.get("GAP"),
            offset=lengths.get("OFFSET", 0),
        )

    def _length(self, tree: exp.Expression) -> int:
        inner = tree.this if isinstance(tree, exp.Paren) else tree
        value = ScalarBinder(self.environment, self.statement, Scope((), ())).bind(inner)
        if not isinstance(value, Literal) or value.type.name != "INTERVAL_DAY_TIME" or not isinstance(value.value, int):
            raise BindError("window", "a window length must be a constant day-time interval", self.span(tree))
        return value.value

    # -------------------------------------------------------------------------------------------- SELECT
    def _select(self, tree: exp.Select) -> Node:
        below = self._from(tree)
        where = tree.args.get("where")
        if where is not None:
            condition = ScalarBinder(self.environment, self.statement, below.scope).bind(where.this)
            below = replace(below, node=Filter(below.node, condition, span=self.span(where.this)))
        outputs = list(self._expanded(tree, below.scope))
        having, qualify = tree.args.get("having"), tree.args.get("qualify")
        trees = [*(output for _, output in outputs if not isinstance(output, InputRef)), *_conditions(having, qualify)]
        grouped = _Grouping.of(self, tree, trees, below)
        binder = ScalarBinder(self.environment, self.statement, below.scope)
        node = below.node
        if grouped is not None:
            node = grouped.node
            binder = ScalarBinder(self.environment, self.statement, _scope(node, None), grouped.special)
            if having is not None:
                node = Filter(node, binder.bind(having.this), span=self.span(having.this))
        windows = [over for output in trees for over in overs_in(output)]
        if windows:
            named = {window.this.name: window for window in tree.args.get("windows") or ()}
            over, calls = self._over(node, windows, binder, named)
            node = over
            base = binder.special
            width = len(node.schema) - len(calls)

            def special(part: exp.Expression) -> Expression | None:
                if isinstance(part, exp.Window):
                    index = width + windows.index(part)
                    return InputRef(index, over.schema[index].type)
                return base(part) if base is not None else None

            binder = ScalarBinder(self.environment, self.statement, binder.scope, special)
        expressions = tuple(
            output if isinstance(output, InputRef) else binder.bind(output) for _, output in outputs
        )
        columns = node.schema
        schema = tuple(
            Column(name or f"EXPR${i}", e.type, time_attribute_of(e, columns))
            for i, ((name, _), e) in enumerate(zip(outputs, expressions, strict=True))
        )
        if qualify is not None:
            aliases = {name: tree_ for name, tree_ in outputs if name and not isinstance(tree_, InputRef)}
            node = Filter(node, self._qualified(qualify.this, binder, aliases), span=self.span(qualify.this))
        node = Project(node, expressions, schema, span=self.span(tree))
        return _distinct(node, self.span(tree)) if tree.args.get("distinct") else node

    def _qualified(
        self, tree: exp.Expression, binder: ScalarBinder, aliases: Mapping[str, exp.Expression | InputRef]
    ) -> Expression:
        """QUALIFY may name the SELECT's aliases."""
        base = binder.special

        def special(part: exp.Expression) -> Expression | None:
            if isinstance(part, exp.Column) and len(part.parts) == 1 and part.name in aliases:
                named = aliases[part.name]
                return named if isinstance(named, InputRef) else binder.bind(named)
            return base(part) if base is not None else None

        return ScalarBinder(self.environment, self.statement, binder.scope, special).bind(tree)

    def _expanded(
        self, tree: exp.Select, scope: Scope
    ) -> Iterator[tuple[str | None, exp.Expression | InputRef]]:
        """The SELECT list with stars unfolded: (name, tree or column)."""
        for output in tree.expressions:
            star = output.this if isinstance(output, exp.Column) else output
            if isinstance(star, exp.Star):
                qualifier = output.table if isinstance(output, exp.Column) else None
                hits = [
                    i for i in range(len(scope.columns)) if not qualifier or scope.qualifiers[i] == qualifier
                ]
                if scope.optional and any(scope.optional[i] for i in hits):
                    raise BindError(
                        "undeclared-table", "the columns of * are not known: declare the table", self.span(output)
                    )
                if not hits:
                    raise BindError("unknown-column", f"{output} names no columns", self.span(output))
                for i in hits:
                    yield scope.columns[i].name, InputRef(i, scope.columns[i].type, self.span(output))
            elif isinstance(output, exp.Alias):
                yield output.alias, output.this
            else:
                inner = output.this if isinstance(output, exp.Paren) else output
                named = isinstance(inner, exp.Column | exp.Dot | exp.Identifier)
                yield (inner.name if named else None), output

    def _over(
        self, node: Node, windows: list[exp.Window], binder: ScalarBinder, named: Mapping[str, exp.Window]
    ) -> tuple[Over, tuple[OverCall, ...]]:
        calls = []
        for tree in windows:
            alias = tree.args.get("alias")
            function = tree.this
            if alias is not None:
                if alias.name not in named or tree.args.get("partition_by") or tree.args.get("order"):
                    raise BindError("construct", f"window {alias.name} is not understood", self.span(tree))
                tree = named[alias.name]
            inner = function.this if isinstance(function, exp.Filter) else function
            name = str(inner.this).upper() if isinstance(inner, exp.Anonymous) else str(inner.this)
            if isinstance(inner, exp.Anonymous) and is_aggregate(function, self.environment):
                call = binder.aggregate(function)
            else:
                args = tuple(binder.bind(arg) for arg in inner.expressions)
                spec = functions.lookup(name)
                result = spec.result_type(tuple(a.type for a in args)) if spec else BIGINT
                call = AggregateCall(name, args, result, span=self.span(function))
            spec_tree = tree.args.get("spec")
            calls.append(
                OverCall(
                    call,
                    tuple(binder.bind(key) for key in tree.args.get("partition_by") or ()),
                    self._order_keys(tree.args.get("order"), binder),
                    "" if spec_tree is None else spec_tree.sql(dialect="flink").upper(),
                )
            )
        schema = node.schema + tuple(Column(f"w${i}", call.call.type) for i, call in enumerate(calls))
        return Over(node, tuple(calls), schema, span=self.span(windows[0])), tuple(calls)


@dataclass(frozen=True)
class _Grouping:
    """An aggregation under construction: its node, and where each grouped tree or aggregate is found in its row."""

    node: Node
    special: ScalarSpecial

    @classmethod
    def of(
        cls, binder: QueryBinder, tree: exp.Select, outputs: list[exp.Expression], below: Relation
    ) -> _Grouping | None:
        """The grouping of a SELECT; None where it neither groups nor aggregates."""
        group = tree.args.get("group")
        environment = binder.environment
        if group is None and not any(
            True for output in outputs for _ in aggregates_in(output, environment)
        ):
            return None
        scalars = ScalarBinder(environment, binder.statement, below.scope)
        items = _group_items(group)
        window_call = next((part for sets in items for part in sets.all if _is_group_window(part)), None)
        keys, sets, position = _keys(items, scalars, window_call)
        calls: dict[AggregateCall, int] = {}
        for output in outputs:
            for found in _aggregates(output, environment, scalars, keys):
                calls.setdefault(scalars.aggregate(found), len(calls))
        aggregates = tuple(calls)
        schema = tuple(
            Column(_key_name(key, below.node.schema, i), key.type, _kept_time(key, below.node.schema))
            for i, key in enumerate(keys)
        ) + tuple(Column(f"agg${i}", call.type) for i, call in enumerate(aggregates))
        span = binder.span(group) if group is not None else binder.span(tree)
        if window_call is not None:
            return cls._group_window(
                binder, window_call, outputs, below, scalars, keys, sets, position, aggregates, schema, span
            )
        window = _aggregation_window(below.node, keys, sets, aggregates)
        node: Node
        if window is not None:
            node = WindowAggregate(below.node, keys, aggregates, schema, sets, window=window, span=span)
        else:
            node = Aggregate(below.node, keys, aggregates, schema, sets, span=span)
        return cls(node, _special(environment, scalars, keys, aggregates, node, {}))

    @classmethod
    def _group_window(
        cls,
        binder: QueryBinder,
        call: exp.Expression,
        outputs: list[exp.Expression],
        below: Relation,
        scalars: ScalarBinder,
        keys: tuple[Expression, ...],
        sets: tuple[tuple[int, ...], ...] | None,
        position: int,
        aggregates: tuple[AggregateCall, ...],
        schema: tuple[Column, ...],
        span: Span,
    ) -> _Grouping:
        kind = str(call.this).upper()
        names = {"TUMBLE": ("SIZE",), "HOP": ("SLIDE", "SIZE"), "SESSION": ("GAP",)}[kind]
        trees = call.expressions
        if len(trees) not in (len(names) + 1, len(names) + 2):
            raise BindError("window", f"{kind} takes a time column and {' and '.join(names).lower()}", binder.span(call))
        time = scalars.bind(trees[0])
        window = binder._window(WindowKind(kind), dict(zip((*names, "OFFSET"), trees[1:], strict=False)), call)
        attribute = time_attribute_of(time, below.node.schema)
        fields: dict[exp.Expression, int] = {}
        properties: list[WindowField] = []
        columns: list[Column] = []
        for output in outputs:
            for found in output.find_all(exp.Anonymous):
                name = _window_property(found)
                if name is not None and found not in fields:
                    if name not in properties:
                        properties.append(name)
                        columns.append(_property_column(name, time.type, attribute))
                    fields[found] = len(schema) + properties.index(name)
        node = GroupWindowAggregate(
            below.node,
            window,
            time,
            attribute,
            keys,
            aggregates,
            tuple(properties),
            schema + tuple(columns),
            position,
            sets,
            span=span,
        )
        return cls(node, _special(binder.environment, scalars, keys, aggregates, node, fields))


ScalarSpecial = "Special"


def _special(
    environment: Environment,
    scalars: ScalarBinder,
    keys: tuple[Expression, ...],
    aggregates: tuple[AggregateCall, ...],
    node: Node,
    fields: Mapping[exp.Expression, int],
):  # type: ignore[no-untyped-def]
    def special(part: exp.Expression) -> Expression | None:
        if isinstance(part, exp.Anonymous) and part in fields:
            index = fields[part]
            return InputRef(index, node.schema[index].type)
        if isinstance(part, exp.Anonymous | exp.Filter):
            try:
                call = scalars.aggregate(part)
            except BindError:
                call = None
            if call is not None and call in aggregates and (
                call.language != "builtin" or is_aggregate(part, environment)
            ):
                return InputRef(len(keys) + aggregates.index(call), call.type)
        if isinstance(part, exp.Literal | exp.Interval | exp.Var | exp.Null | exp.Boolean):
            return None
        try:
            bound = scalars.bind(part)
        except BindError:
            if isinstance(part, exp.Column | exp.Dot):
                raise
            return None
        if bound in keys:
            return InputRef(keys.index(bound), bound.type)
        if isinstance(bound, InputRef):
            raise BindError("construct", f"{part.sql(dialect='flink')} is neither grouped nor aggregated", scalars.span(part))
        return None

    return special


@dataclass(frozen=True)
class _GroupItem:
    """One item of GROUP BY: the alternative sets it stands for."""

    sets: tuple[tuple[exp.Expression, ...], ...]
    simple: bool

    @property
    def all(self) -> tuple[exp.Expression, ...]:
        return tuple(part for one in self.sets for part in one)


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
            subsets = [c for size in range(len(parts), -1, -1) for c in combinations(parts, size)]
            return _GroupItem(tuple(tuple(p for part in one for p in part) for one in subsets), simple=False)
        case exp.Rollup():
            parts = [_flat(part) for part in tree.expressions]
            prefixes = [parts[:size] for size in range(len(parts), -1, -1)]
            return _GroupItem(tuple(tuple(p for part in one for p in part) for one in prefixes), simple=False)
    return _GroupItem((_flat(tree),), simple=True)


def _flat(tree: exp.Expression) -> tuple[exp.Expression, ...]:
    """``(a, b)`` is two keys (readings.md), ``(a)`` one, ``()`` none."""
    if isinstance(tree, exp.Tuple):
        return tuple(part for inner in tree.expressions for part in _flat(inner))
    if isinstance(tree, exp.Paren):
        return _flat(tree.this)
    return (tree,)


def _keys(
    items: list[_GroupItem], scalars: ScalarBinder, window_call: exp.Expression | None
) -> tuple[tuple[Expression, ...], tuple[tuple[int, ...], ...] | None, int]:
    """The distinct keys in order of first mention, the grouping sets by position, the window call's place."""
    keys: dict[Expression, int] = {}
    position = 0
    for item in items:
        for part in item.all:
            if part is window_call:
                position = len(keys)
            elif not _is_group_window(part):
                keys.setdefault(scalars.bind(part), len(keys))
    if all(item.simple for item in items):
        return tuple(keys), None, position
    sets = tuple(
        tuple(sorted({keys[scalars.bind(part)] for one in combined for part in one if not _is_group_window(part)}))
        for combined in product(*(item.sets for item in items))
    )
    return tuple(keys), sets, position


def _aggregates(
    tree: exp.Expression, environment: Environment, scalars: ScalarBinder, keys: tuple[Expression, ...]
) -> Iterator[exp.Expression]:
    """The aggregates of an output; a function nobody declared counts as one where it reads what is not grouped."""
    if isinstance(tree, exp.Window):
        # What an OVER call ranks or sums may itself be an aggregate of this query.
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
    for child in tree.iter_expressions():
        yield from aggregates_in(child, environment)


def _may_aggregate(tree: exp.Expression, environment: Environment) -> bool:
    if not isinstance(tree, exp.Anonymous) or _window_property(tree) is not None:
        return False
    declared = environment.function(str(tree.this))
    if declared is not None:
        return declared.kind in ("", "aggregate")
    return functions.lookup(str(tree.this).upper()) is None


def _reads_ungrouped(expression: Expression, keys: tuple[Expression, ...]) -> bool:
    if expression in keys:
        return False
    if isinstance(expression, Call):
        return any(_reads_ungrouped(arg, keys) for arg in expression.args)
    return isinstance(expression, InputRef)


def _aggregation_window(
    node: Node,
    keys: tuple[Expression, ...],
    sets: tuple[tuple[int, ...], ...] | None,
    calls: tuple[AggregateCall, ...] = (),
) -> Window | None:
    """The window of a windowed aggregation: both bounds of one windowing function in every grouping set."""
    found = [window_origin(node, key) for key in keys]
    for one in sets if sets is not None else (tuple(range(len(keys))),):
        bounds = {origin for i in one if (origin := found[i]) is not None}
        windows = {id(assign) for assign, _ in bounds}
        if len(windows) != 1 or not {WindowField.START, WindowField.END} <= {name for _, name in bounds}:
            return None
    assign = next(origin for origin in found if origin is not None)[0]
    used = (*keys, *(arg for call in calls for arg in call.args))
    # A computation on a window field that the aggregation uses makes Flink materialise the window first (measured).
    return None if any(_computes_on_window(node, part) for part in used) else assign.window


def window_origin(node: Node, expression: Expression) -> tuple[_WindowSource, WindowField] | None:
    """Where a column passes a window field on unchanged: the windowing node and the field."""
    while isinstance(expression, InputRef):
        match node:
            case Project():
                node, expression = node.input, node.expressions[expression.index]
            case Filter() | Sort():
                node = node.input
            case Correlate():
                if expression.index >= len(node.input.schema):
                    return None
                node = node.input
            case WindowAssign():
                place = expression.index - len(node.input.schema)
                if place >= 0:
                    return node, (WindowField.START, WindowField.END, WindowField.TIME)[place]
                node = node.input
            case WindowAggregate():
                if expression.index >= len(node.keys):
                    return None
                below = window_origin(node.input, node.keys[expression.index])
                # The aggregation hands its window up: a further aggregation on the fields runs on the same window.
                return below
            case _:
                return None
    return None


_WindowSource = WindowAssign


def _computes_on_window(node: Node, expression: Expression) -> bool:
    """Whether something is computed from a window field on the way to this expression."""
    if isinstance(expression, Call):
        parts = [part for part in walk(expression) if isinstance(part, InputRef)]
        return any(window_origin(node, p) is not None or _computes_on_window(node, p) for p in parts)
    while isinstance(expression, InputRef):
        if isinstance(node, Project):
            node, expression = node.input, node.expressions[expression.index]
        elif isinstance(node, Filter | Sort) or (
            isinstance(node, Correlate) and expression.index < len(node.input.schema)
        ):
            node = node.input
        else:
            return False
    return _computes_on_window(node, expression)


def _conditions(*clauses: exp.Expression | None) -> list[exp.Expression]:
    return [clause.this for clause in clauses if clause is not None]


def _kept_time(key: Expression, columns: tuple[Column, ...]) -> TimeAttribute | None:
    """A key keeps its time attribute (window_time as a key is the event time of the result)."""
    return time_attribute_of(key, columns)


def _key_name(key: Expression, columns: tuple[Column, ...], position: int) -> str:
    return columns[key.index].name if isinstance(key, InputRef) else f"key${position}"


def _is_window(tree: nodes.TableFunction) -> bool:
    return isinstance(tree.this, exp.Identifier) and tree.this.name.upper() in _PARAMETERS


def _is_group_window(tree: exp.Expression) -> bool:
    return isinstance(tree, exp.Anonymous) and str(tree.this).upper() in GROUP_WINDOWS


def _window_property(tree: exp.Expression) -> WindowField | None:
    """The field that TUMBLE_START and its kin name."""
    if not isinstance(tree, exp.Anonymous):
        return None
    head, _, tail = str(tree.this).upper().partition("_")
    return _PROPERTIES.get(tail) if head in GROUP_WINDOWS else None


def _property_column(name: WindowField, time: DataType, attribute: TimeAttribute | None) -> Column:
    if name in (WindowField.START, WindowField.END):
        return Column(name.value, timestamp(3))
    return Column(name.value, time if name is WindowField.TIME else UNKNOWN, attribute)


def _window_columns(time: Column) -> tuple[Column, ...]:
    """window_start and window_end are TIMESTAMP(3) also on TIMESTAMP_LTZ; window_time keeps the time column's type."""
    return (
        Column(WindowField.START.value, timestamp(3)),
        Column(WindowField.END.value, timestamp(3)),
        Column(WindowField.TIME.value, time.type, time.time_attribute),
    )


def _function_name(tree: exp.Expression, environment: Environment) -> str:
    name = tree.this
    written = name.name if isinstance(name, exp.Identifier) else name.sql(dialect="flink")
    spec = functions.lookup(written.upper())
    return written.upper() if spec is not None and environment.function(written) is None else written.lower()


def _hints(tree: exp.Table) -> tuple[tuple[str, str], ...]:
    found = []
    for hint in tree.args.get("hints") or ():
        pairs = options(hint.expressions)
        text = ", ".join(f"{k}={v}" for k, v in pairs) if pairs else ", ".join(e.sql(dialect="flink") for e in hint.expressions)
        found.append((hint.this.name.upper(), text))
    return tuple(sorted(found))


def _renamed(node: Node, names: list[str]) -> Node:
    if not names:
        return node
    if len(names) != len(node.schema):
        raise BindError("construct", f"{len(names)} names for {len(node.schema)} columns")
    columns = tuple(replace(column, name=name) for column, name in zip(node.schema, names, strict=True))
    return Project(node, tuple(InputRef(i, c.type) for i, c in enumerate(columns)), columns, span=node.span)


def _distinct(node: Node, span: Span) -> Node:
    """SELECT DISTINCT is an aggregation without metrics (readings.md)."""
    keys = tuple(InputRef(i, column.type) for i, column in enumerate(node.schema))
    window = _aggregation_window(node, keys, None)
    if window is not None:
        return WindowAggregate(node, keys, (), node.schema, None, window=window, span=span)
    return Aggregate(node, keys, (), node.schema, None, span=span)


__all__ = ["QueryBinder", "Relation", "conjunction", "window_origin", "Table", "BOOLEAN"]
