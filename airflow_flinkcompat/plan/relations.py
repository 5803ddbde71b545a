"""Binding of the queries of a syntax tree to nodes of the logical DAG."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_flinkcompat.frontends import ProgramStatement
from airflow_flinkcompat.lazy import quick_init
from airflow_flinkcompat.model import Span
from airflow_flinkcompat.model.text import sql_text
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.catalog import BindError, Environment
from airflow_flinkcompat.plan.expressions import Expression, InputRef
from airflow_flinkcompat.plan.grouping import Grouping
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    Clause,
    Correlate,
    Filter,
    Join,
    Node,
    Opaque,
    Project,
    Scan,
    Union,
    Values,
    WindowAggregate,
    WindowAssign,
    WindowKind,
    dotted,
    walk_nodes,
)
from airflow_flinkcompat.plan.operators import OtherKind
from airflow_flinkcompat.plan.ordering import OrderBinder, scope_of, with_kept_sorts
from airflow_flinkcompat.plan.program import INVALID
from airflow_flinkcompat.plan.result_types import common_type
from airflow_flinkcompat.plan.scalars import ScalarBinder, Scope, aggregates_in, overs_in, time_attribute_of, unread
from airflow_flinkcompat.plan.types import UNKNOWN, Column, DataType
from airflow_flinkcompat.plan.windows import (
    aggregation_window,
    define_window,
    is_window_function,
    window_arguments,
    window_columns,
)
from airflow_flinkcompat.sql import Statement, nodes
from airflow_flinkcompat.sql.normal_form import hint_options, normal_form, relation_names, unquoted


@quick_init
@dataclass(frozen=True)
class Relation:
    """A bound relation: its node, and the names by which its columns can be used."""

    node: Node
    scope: Scope


class QueryBinder(OrderBinder):
    """Binder of the queries of one statement; ``ctes`` contains the WITH queries in scope."""

    def __init__(self, environment: Environment, statement: Statement, ctes: Mapping[str, Node] | None = None) -> None:
        super().__init__(environment, statement)
        self.ctes = dict(ctes or {})

    # ------------------------------------------------------------------------------------------- queries
    def query(self, tree: exp.Expr, *, root: bool = False) -> Node:
        """The plan of a query; ``root`` is True if Flink keeps its ORDER BY, as in statements and views.

        Raises :class:`BindError` for a construct that the plan cannot analyse.
        """
        unread(tree, self.span)
        if isinstance(self.statement, ProgramStatement):  # the Table API sorts at any level
            return self._query(tree, root=True)
        return with_kept_sorts(self._query(tree, root=root), root=root)

    def _query(self, tree: exp.Expr, *, root: bool) -> Node:
        inner = self._with_ctes(tree)
        match tree:
            case exp.Select():
                return inner.ordered(tree, *inner._select(tree), root=root)
            case exp.Union() | exp.Intersect() | exp.Except():
                return inner.ordered(tree, inner._set_operation(tree), root=root)
            case exp.Values():
                return inner._values(tree).node
            case exp.Subquery():
                return inner.ordered(tree, inner.query(tree.this, root=root), root=root)
            case exp.Paren():
                return inner.query(tree.this, root=root)
            case exp.Table():
                return inner._table(tree).node
        raise BindError("construct", f"{type(tree).__name__} is not understood as a query", self.span(tree))

    def _with_ctes(self, tree: exp.Expr) -> QueryBinder:
        clause = tree.args.get("with_") or tree.args.get("with")
        if clause is None:
            return self
        inner = QueryBinder(self.environment, self.statement, self.ctes)
        if clause.args.get("recursive"):
            raise BindError("construct", "WITH RECURSIVE is not understood", self.span(clause))
        for cte in clause.expressions:
            node = inner.query(cte.this)
            inner.ctes[cte.alias] = renamed(node, [column.name for column in cte.args["alias"].columns])
        return inner

    def _set_operation(self, tree: exp.SetOperation) -> Node:
        left, right = self.query(tree.this), self.query(tree.expression)
        if len(left.schema) != len(right.schema):
            sides = f"{len(left.schema)} and {len(right.schema)} columns"
            raise BindError(
                INVALID,
                f"the sides of a set operation have {sides}: select the same number of columns",
                self.span(tree),
            )
        schema = tuple(
            Column(a.name, _either(a.type, b.type), a.time_attribute if b.time_attribute else None)
            for a, b in zip(left.schema, right.schema, strict=True)
        )
        span = self.span(tree)
        if not isinstance(tree, exp.Union):
            kind = type(tree).__name__.upper() + ("" if tree.args.get("distinct") else " ALL")
            return Opaque(kind, kind, (left, right), schema, "set operations other than UNION have no rules", span)
        branches = tuple(
            part for side in (left, right) for part in (side.branches if isinstance(side, Union) else (side,))
        )
        union = Union(branches, schema, span)
        return union if not tree.args.get("distinct") else _distinct(union, span)

    def _values(self, tree: exp.Values) -> Relation:
        binder = ScalarBinder(self.environment, self.statement, Scope((), ()))
        rows = tuple(
            tuple(binder.bind(cell) for cell in (row.expressions if isinstance(row, exp.Tuple) else [row]))
            for row in tree.expressions
        )
        if len({len(row) for row in rows}) > 1:
            raise BindError(INVALID, "the rows of VALUES have different numbers of columns", self.span(tree))
        schema = tuple(Column(f"EXPR${i}", cell.type) for i, cell in enumerate(rows[0]))
        node = Values(rows, schema, self.span(tree))
        return self._aliased(node, tree)

    # --------------------------------------------------------------------------------------------- FROM
    def _aliased(self, node: Node, tree: exp.Expression, optional: bool = False) -> Relation:
        alias = tree.args.get("alias")
        if isinstance(alias, exp.TableAlias):
            node = renamed(node, [column.name for column in alias.columns])
        return Relation(node, scope_of(node, (alias.name or None) if alias is not None else None, optional))

    def relation(self, tree: exp.Expression) -> Relation:
        """A relation of FROM, with the names of its columns."""
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
        unread(tree, self.span)
        alias = tree.args.get("alias")
        name = tree.name
        if tree.args.get("version") is not None and not isinstance(tree.parent, exp.Join):
            raise BindError("construct", "FOR SYSTEM_TIME AS OF outside of a join is not understood", span)
        if tree.args.get("hints") and (
            (not tree.args.get("db") and name in self.ctes) or self.environment.path(tree) in self.environment.views
        ):
            raise BindError("construct", "hints on a view are not understood", span)
        if not tree.args.get("db") and name in self.ctes:
            node = self.ctes[name]
            return self._relation_of(node, tree, name, alias)
        path = self.environment.path(tree)
        view = self.environment.views.get(path)
        if view is not None:
            if view.node is None:
                assert view.error is not None
                raise view.error
            select = tree.parent.parent if isinstance(tree.parent, exp.From) else None
            alone = select is not None and not select.args.get("joins") and not tree.args.get("joins")
            kept = alone or isinstance(self.statement, ProgramStatement)
            node = view.node if kept else with_kept_sorts(view.node, root=False)
            return self._relation_of(node, tree, name, alias)
        table = self.environment.table(path, span)
        scan = Scan(table, table_hints(tree), span)
        return self._relation_of(scan, tree, name, alias, optional=not table.declared)

    def _relation_of(
        self, node: Node, tree: exp.Table, name: str, alias: exp.Expression | None, optional: bool = False
    ) -> Relation:
        if alias is not None:
            return self._aliased(node, tree, optional)
        return Relation(node, scope_of(node, name, optional))

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
        unread(join, self.span)
        what = join.this
        side = str(join.args.get("side") or "").upper()
        kind = str(join.args.get("kind") or "").upper()
        lateral = what.this if isinstance(what, exp.Lateral) else what
        if isinstance(lateral, nodes.TableFunction) and (
            lateral.args.get("lateral") or not is_window_function(lateral)
        ):
            return self._correlate(left, lateral, lateral.expressions, side == "LEFT", join)
        if isinstance(lateral, exp.Unnest):
            return self._correlate(left, lateral, lateral.expressions, side == "LEFT", join)
        if isinstance(what, exp.Lateral):
            raise BindError(
                "construct", "LATERAL (SELECT …), a subquery for each row, is not supported", self.span(join)
            )
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
            raise BindError("construct", "a table function can only be joined ON TRUE", self.span(join))
        if any(isinstance(arg, nodes.TableArgument | nodes.ModelArgument | nodes.NamedArgument) for arg in args):
            what = "a process table function, or a function with named arguments, and cannot be joined"
            raise BindError("construct", f"{tree.this.name} is {what}", self.span(tree))
        binder = ScalarBinder(self.environment, self.statement, left.scope)
        bound = tuple(binder.bind(arg) for arg in args)
        name = "UNNEST" if isinstance(tree, exp.Unnest) else _function_name(tree, self.environment)
        if tree.args.get("offset"):
            name = f"{name} WITH ORDINALITY"
        alias = tree.args.get("alias") or join.this.args.get("alias")
        names = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
        qualifier = None if alias is None else alias.name
        added = tuple(Column(column, UNKNOWN) for column in names) or self._unnamed(name, bound, qualifier or "f0")
        known = added is not self.environment.mentioned
        node = Correlate(left.node, name, bound, outer, left.node.schema + added, span=self.span(tree))
        right = Scope((qualifier,) * len(added), added, (not known,) * len(added))
        return Relation(node, left.scope.concat(right))

    def _unnamed(self, function: str, arguments: tuple[Expression, ...], alias: str) -> tuple[Column, ...]:
        """The columns of a table function without column aliases; if unknown, all names in the scripts."""
        (kind,) = [each.type for each in arguments] if function == "UNNEST" else [UNKNOWN]
        if kind.name != "ARRAY" or kind.elements[0].name == "UNKNOWN":
            return self.environment.mentioned
        return tuple(Column(name, UNKNOWN) for name in kind.elements[0].names or (alias,))

    def _match(self, tree: nodes.MatchRecognize) -> Relation:
        below = self.relation(tree.this)
        measures = [measure.alias for measure in tree.args.get("measures") or ()]
        keys = tree.args.get("partition_by") or ()
        schema = tuple(Column(name, UNKNOWN) for name in (*(key.name for key in keys), *measures))
        pattern = tree.copy()
        pattern.set("this", exp.to_identifier("input"))
        for clause in ("alias", "partition_by", "measures", "within"):
            pattern.set(clause, None)
        taken = tree.args.get("measures") or ()
        written = ", ".join(measure.sql(dialect="flink", comments=False) for measure in taken)
        # Measures are read by position, so their names have no effect.
        bare = self._pattern_clause([measure.this for measure in taken], tree, below.scope)
        binder = ScalarBinder(self.environment, self.statement, below.scope)
        length = None if tree.args.get("within") is None else binder.interval(tree.args["within"])
        node = Opaque(
            OtherKind.MATCH_RECOGNIZE,
            self._pattern_clause([pattern], tree, below.scope),
            (below.node,),
            schema,
            "pattern recognition has no rules yet",
            self.span(tree),
            (
                ("measures", replace(bare, form=replace(bare.form, text=written))),
                ("within", "" if length is None else f"{length.value} {length.type}"),
            ),
            ((0, tuple(binder.bind(key) for key in keys)),),
        )
        return self._aliased(node, tree)

    def _pattern_clause(self, trees: list[exp.Expr], tree: nodes.MatchRecognize, scope: Scope) -> Clause:
        """Normal form of clauses of a pattern recognition, in which input columns are numbered.

        Raises :class:`BindError` for a column that the input does not have.
        """
        declared = [tree.args["pattern"], *(tree.args.get("subsets") or ())]
        found = (each for part in declared for each in part.find_all(nodes.PatternVariable, nodes.PatternSubset))
        variables = {each.name for each in found}
        columns: dict[InputRef, int] = {}

        def column(part: exp.Column) -> str:
            names = [each.name for each in part.parts]
            variable = names.pop(0) if len(names) > 1 and names[0] in variables else ""
            index = scope.find(names[0])
            if index is None:
                written = ".".join(filter(None, [variable, *names]))
                raise BindError("unknown-column", f"column {written} is not found", self.span(part))
            number = columns.setdefault(InputRef(index, scope.columns[index].type, self.span(part)), len(columns))
            return f"(Column {json.dumps([variable, *names[1:]])} #i{number})"

        form = normal_form(trees, self.environment.path, column)
        return Clause(form, tuple(columns))

    def _process_table_function(self, tree: nodes.TableFunction) -> Relation:
        """A process table function over its table arguments. All other arguments remain as written."""
        inputs: list[Node] = []
        keys: list[tuple[int, tuple[Expression, ...]]] = []
        clauses: list[tuple[str, Clause | str]] = [("function", _function_name(tree, self.environment))]
        rest: list[exp.Expr] = []
        for argument in tree.expressions:
            value = _argument(argument)
            if isinstance(value, nodes.TableArgument):
                below = self.relation(value.this)
                binder = ScalarBinder(self.environment, self.statement, below.scope)
                keys.append((len(inputs), tuple(binder.bind(key) for key in value.args.get("partition_by") or ())))
                if order := value.args.get("order"):
                    clauses.append((f"order of input {len(inputs) + 1}", self._order(order, binder, len(inputs))))
                inputs.append(below.node)
            elif isinstance(argument, nodes.NamedArgument) and argument.name.lower() == "uid":
                clauses.append(("uid", str(normal_form(value))))
            else:
                rest.append(argument)
        node = Opaque(
            OtherKind.PROCESS_TABLE_FUNCTION,
            normal_form(rest),
            tuple(inputs),
            self.environment.mentioned,  # only the class of the function declares the columns
            "a user class computes its rows",
            self.span(tree),
            tuple(clauses),
            tuple(keys),
        )
        return self._aliased(node, tree, optional=True)

    def _order(self, order: exp.Expression, binder: ScalarBinder, place: int) -> Clause:
        """The ORDER BY of a table argument, which only contains columns."""
        columns: dict[Expression, int] = {}
        named = {id(each): columns.setdefault(binder.bind(each), len(columns)) for each in order.find_all(exp.Column)}
        form = normal_form(order, self.environment.path, lambda part: f"#i{named[id(part)]}")
        return Clause(form, tuple(columns), place)

    # -------------------------------------------------------------------------------------------- windows
    def _table_function(self, tree: nodes.TableFunction) -> Relation:
        if not is_window_function(tree):
            if any(isinstance(_argument(each), nodes.TableArgument) for each in tree.expressions):
                return self._process_table_function(tree)
            empty = Relation(Values(((),), (), self.span(tree)), Scope((), ()))
            return self._correlate(empty, tree, tree.expressions, False, exp.Join(this=tree))
        kind = tree.this.name.upper()
        constants = ScalarBinder(self.environment, self.statement, Scope((), ()))
        args = window_arguments(tree, constants)
        data_first = next(iter(args), "DATA") == "DATA"
        data = args.pop("DATA", None)
        if not isinstance(data, nodes.TableArgument):
            raise BindError("window", f"{kind} requires a table as its first argument (DATA)", self.span(tree))
        if data.args.get("order") is not None:
            raise BindError("window", f"{kind} does not accept ORDER BY", self.span(tree))
        below = self.relation(data.this)
        timecol = args.pop("TIMECOL", None)
        if not isinstance(timecol, nodes.Descriptor) or len(timecol.expressions) != 1:
            raise BindError("window", f"{kind} requires DESCRIPTOR(time column)", self.span(tree))
        column = timecol.expressions[0]
        index = below.scope.find(column.name)
        if index is None:
            raise BindError("unknown-column", f"column {column.name} is not found", self.span(column))
        time = below.node.schema[index]
        binder = ScalarBinder(self.environment, self.statement, below.scope)
        window = define_window(WindowKind(kind), args, tree, constants)
        passed = list(below.node.schema)
        if time.time_attribute is not None:
            passed[index] = Column(time.name, time.type)
        node = WindowAssign(
            below.node,
            window,
            InputRef(index, time.type, self.span(column)),
            (*passed, *window_columns(time)),
            tuple(binder.bind(key) for key in data.args.get("partition_by") or ()),
            data_first,
            span=self.span(tree),
        )
        found = self._aliased(node, tree)
        # An undeclared table may seem to have a column window_start, because the script mentions this name.
        optional = (*below.scope.flags, False, False, False)
        return Relation(found.node, Scope(found.scope.qualifiers, found.scope.columns, optional))

    # -------------------------------------------------------------------------------------------- SELECT
    def _select(self, tree: exp.Select) -> tuple[Node, ScalarBinder | None]:
        """The plan of a SELECT, and a binder for clauses such as ORDER BY; no binder if it has DISTINCT."""
        below = self._from(tree)
        where = tree.args.get("where")
        if where is not None:
            for call in (*aggregates_in(where.this, self.environment), *overs_in(where.this)):
                message = f"{call.sql(dialect='flink')} is in WHERE: write it in HAVING, or in a subquery"
                raise BindError(INVALID, message, self.span(call))
            condition = ScalarBinder(self.environment, self.statement, below.scope).bind(where.this)
            below = replace(below, node=Filter(below.node, condition, span=self.span(where.this)))
        outputs = list(self._expanded(tree, below))
        having, qualify = tree.args.get("having"), tree.args.get("qualify")
        trees = [output for _, output in outputs if not isinstance(output, InputRef)]
        trees += _conditions(having, qualify)
        binder = ScalarBinder(self.environment, self.statement, below.scope)
        grouped = Grouping.of(binder, tree, trees, below.node)
        node = below.node
        if grouped is not None:
            node = grouped.node
            outputs = [(name, self._grouped(each, grouped, below.scope)) for name, each in outputs]
            binder = ScalarBinder(self.environment, self.statement, scope_of(node, None), grouped.special)
            if having is not None:
                node = Filter(node, binder.bind(having.this), span=self.span(having.this))
        windows = [over for output in trees for over in overs_in(output)]
        if windows:
            named = {window.this.name: window for window in tree.args.get("windows") or ()}
            over, calls = self.over(node, windows, binder, named)
            node = over
            base = binder.special
            places: dict[exp.Expression, int] = {}
            for index, window in enumerate(windows, start=len(node.schema) - len(calls)):
                places.setdefault(window, index)

            def special(part: exp.Expression) -> Expression | None:
                if isinstance(part, exp.Window):
                    return InputRef(places[part], over.schema[places[part]].type)
                return base(part) if base is not None else None

            binder = ScalarBinder(self.environment, self.statement, binder.scope, special)
        bound = [output if isinstance(output, InputRef) else binder.bind(output) for _, output in outputs]
        expressions = tuple(bound)
        columns = node.schema
        schema = [
            Column(name or f"EXPR${i}", e.type, time_attribute_of(e, columns))
            for i, ((name, _), e) in enumerate(zip(outputs, expressions, strict=True))
        ]
        if qualify is not None:
            aliases = {name: tree_ for name, tree_ in outputs if name and not isinstance(tree_, InputRef)}
            node = Filter(node, self._qualified(qualify.this, binder, aliases), span=self.span(qualify.this))
        node = Project(node, expressions, tuple(schema), _query_hints(tree, self.span), span=self.span(tree))
        return (_distinct(node, self.span(tree)), None) if tree.args.get("distinct") else (node, binder)

    def _grouped(self, output: exp.Expression | InputRef, grouped: Grouping, scope: Scope) -> exp.Expression | InputRef:
        """An output of a SELECT with GROUP BY. A column of SELECT * must be a grouping key."""
        if not isinstance(output, InputRef):
            return output
        if output not in grouped.keys:
            name = scope.columns[output.index].name
            raise BindError(
                INVALID, f"{name}, a column of *, is not grouped: list the columns of GROUP BY instead", output.span
            )
        return InputRef(grouped.keys.index(output), output.type, output.span)

    def _qualified(
        self, tree: exp.Expression, binder: ScalarBinder, aliases: Mapping[str, exp.Expression | InputRef]
    ) -> Expression:
        """The condition of QUALIFY, which may use aliases of the SELECT list."""
        base = binder.special

        def special(part: exp.Expression) -> Expression | None:
            if isinstance(part, exp.Column) and len(part.parts) == 1 and part.name in aliases:
                named = aliases[part.name]
                return named if isinstance(named, InputRef) else binder.bind(named)
            return base(part) if base is not None else None

        return ScalarBinder(self.environment, self.statement, binder.scope, special).bind(tree)

    def _expanded(self, tree: exp.Select, below: Relation) -> Iterator[tuple[str | None, exp.Expression | InputRef]]:
        """The SELECT list with stars expanded, as (name, tree or column)."""
        scope = below.scope
        for output in tree.expressions:
            star = output.this if isinstance(output, exp.Column) else output
            if isinstance(star, exp.Star):
                qualifier = output.table if isinstance(output, exp.Column) else None
                hits = [i for i in range(len(scope.columns)) if not qualifier or scope.qualifiers[i] == qualifier]
                # An undeclared table may seem to have no columns, if the script mentions none.
                nameless = not hits and any(
                    isinstance(n, Scan) and not n.table.declared for n in walk_nodes(below.node)
                )
                if nameless or (scope.optional and any(scope.optional[i] for i in hits)):
                    raise BindError(
                        "undeclared-table",
                        "the columns of * are not known: declare the table, or name the columns of a function",
                        self.span(output),
                    )
                if not hits:
                    raise BindError(
                        "unknown-column", f"{output.sql(dialect='flink')} matches no columns", self.span(output)
                    )
                for i in hits:
                    yield scope.columns[i].name, InputRef(i, scope.columns[i].type, self.span(output))
            elif isinstance(output, exp.Alias):
                yield output.alias, output.this
            else:
                inner = output.this if isinstance(output, exp.Paren) else output
                named = isinstance(inner, exp.Column | exp.Dot | exp.Identifier)
                yield (inner.name if named else None), output


def _conditions(*clauses: exp.Expression | None) -> list[exp.Expression]:
    return [clause.this for clause in clauses if clause is not None]


def _argument(tree: exp.Expression) -> exp.Expression:
    """The value of an argument, with or without a name."""
    return tree.expression if isinstance(tree, nodes.NamedArgument) else tree


def _function_name(tree: exp.Expression, environment: Environment) -> str:
    name = tree.this
    if isinstance(name, exp.Dot):  # a name with a database is never a function of Flink
        return dotted(environment.path(name)).lower()
    written = str(name.name)
    spec = functions.lookup(written.upper())
    return written.upper() if spec is not None and environment.function(written) is None else written.lower()


_NAMING = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP", "STATE_TTL", "LOOKUP")
"""Hints whose arguments are relations of FROM."""


def _misnamed(tree: exp.Select, hint: nodes.HintCall) -> str:
    """The first relation in a hint that FROM lacks. An alias hides its table, and a view hides its inputs."""
    kind = hint.this.name.upper()
    if kind not in _NAMING:
        return ""
    given = hint_options(hint, {})
    names = [value for key, value in given if kind == "LOOKUP" and key == "table"]
    names = [key for key, _ in given] if kind == "STATE_TTL" else names or [unquoted(e) for e in hint.expressions]
    if kind == "LOOKUP" and given and not any(key == "table" for key, _ in given):
        return ""
    relations = [(name, each) for name, each in relation_names(tree) if isinstance(each, exp.Table | exp.Subquery)]
    tables = {name for name, relation in relations if not relation.args.get("alias")}
    shown = {name for name, _ in relations}
    return next((n for n in names if n not in shown and not ("." in n and n.rpartition(".")[2] in tables)), "")


def _query_hints(tree: exp.Select, span: Callable[[exp.Expr], Span]) -> tuple[tuple[str, str], ...]:
    """The hints after SELECT, as name and arguments. A relation is identified by its table, not its alias."""
    clause = tree.args.get("hint")
    if clause is None:
        return ()
    if any(tree.args.get(part) for part in ("joins", "group", "distinct")):
        # Flink checks the names only if a join or an aggregation uses the hint.
        for hint in clause.expressions:
            if name := _misnamed(tree, hint):
                message = (
                    f"the hint {hint.this.name} names {name}, but FROM has no such relation: "
                    "write its alias or its name"
                )
                raise BindError(INVALID, message, span(hint))
    relations = relation_names(tree)
    tables = {name: relation.name if isinstance(relation, exp.Table) else "" for name, relation in relations}
    shared = Counter(tables.values())
    called = {
        name: table if table and shared[table] == 1 else f"{table}#{number}"
        for number, (name, table) in enumerate(tables.items(), start=1)
    }
    return tuple(sorted(_hint(hint, called) for hint in clause.expressions))


def table_hints(tree: exp.Table) -> tuple[tuple[str, str], ...]:
    """The hints after a table's name, as name and arguments. The order of options has no effect."""
    return tuple(sorted(_hint(hint, {}) for hint in tree.args.get("hints") or ()))


def _hint(hint: nodes.HintCall, called: Mapping[str, str]) -> tuple[str, str]:
    pairs = hint_options(hint, called)
    # The value is quoted, so that a comma in a value does not start another option.
    written = [f"{k}={sql_text(v)}" for k, v in pairs]
    written = written or [called.get(each.name) or unquoted(each) for each in hint.expressions]
    return hint.this.name.upper(), ", ".join(written)


def renamed(node: Node, names: list[str]) -> Node:
    if not names:
        return node
    if len(names) != len(node.schema):
        given = len(node.schema)
        raise BindError(
            INVALID, f"{len(names)} names were written for {given} column{'s' * (given != 1)}: name each column"
        )
    columns = tuple(replace(column, name=name) for column, name in zip(node.schema, names, strict=True))
    return Project(node, tuple(InputRef(i, c.type) for i, c in enumerate(columns)), columns, span=node.span)


def _either(left: DataType, right: DataType) -> DataType:
    """The type of a column that combines both sides of a set operation."""
    if not (left.is_known and right.is_known):
        return left if left.is_known else right
    return common_type((left, right))


def _distinct(node: Node, span: Span) -> Node:
    """SELECT DISTINCT as an aggregation without metrics."""
    keys = tuple(InputRef(i, column.type) for i, column in enumerate(node.schema))
    window = aggregation_window(node, keys, None)
    if window is not None:
        return WindowAggregate(node, keys, (), node.schema, None, window=window, span=span)
    return Aggregate(node, keys, (), node.schema, None, span=span)
