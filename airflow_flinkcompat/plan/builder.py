"""Builds a program from a script: each statement in order becomes a declaration or a computation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from sqlglot import exp

from airflow_flinkcompat.frontends import ProgramScript, ProgramStatement
from airflow_flinkcompat.model import FunctionDeclaration, NormalForm, Span
from airflow_flinkcompat.plan.catalog import (
    BindError,
    Environment,
    Namespace,
    Path,
    View,
    data_type,
    name_parts,
    options,
)
from airflow_flinkcompat.plan.existing import Existing
from airflow_flinkcompat.plan.intervals import refused_intervals
from airflow_flinkcompat.plan.nodes import DISTRIBUTION, Node, Opaque, Sink, Table, WatermarkStrategy, dotted
from airflow_flinkcompat.plan.operators import OtherKind
from airflow_flinkcompat.plan.program import (
    INVALID,
    REFUSED,
    REFUSED_NAME,
    Absence,
    OtherStatement,
    Pipeline,
    Problem,
    Program,
    Text,
    type_problems,
)
from airflow_flinkcompat.plan.relations import QueryBinder, renamed, table_hints
from airflow_flinkcompat.plan.scalars import ScalarBinder, Scope, time_attribute_of
from airflow_flinkcompat.plan.table_like import inherited, moved
from airflow_flinkcompat.plan.types import UNKNOWN, Column, TimeAttribute
from airflow_flinkcompat.plan.windows import is_window_function
from airflow_flinkcompat.sql import Script, Statement, nodes
from airflow_flinkcompat.sql.normal_form import normal_form, normal_words, unquoted
from airflow_flinkcompat.sql.script import AS_SUBMITTED, span_of


def build_program(
    script: Script,
    settings: Mapping[str, str] | None = None,
    functions: Sequence[FunctionDeclaration] = (),
    catalog: Script | None = None,
) -> Program:
    """Build the program of a script under these settings.

    A construct that cannot be read or bound becomes a :class:`Problem`, and never raises an error.

    Args:
        script: The parsed script.
        settings: Options by key that apply before the ``SET`` statements of the script.
        functions: Declarations of functions that the script uses but does not declare.
        catalog: DDL of tables that the script uses but does not declare.

    Returns:
        The program with its pipelines and problems.
    """
    builder = _Builder(settings or {}, functions, (script,) if catalog is None else (catalog, script))
    of_catalog = []
    if catalog is not None:
        for statement in catalog.statements:
            builder.statement(statement)
            of_catalog += [(statement.span, problem) for problem in type_problems(statement)]
        builder.texts.clear()
    for statement in script.statements:
        builder.statement(statement)
        builder.problems += type_problems(statement)
    program = builder.program()
    if of_catalog:  # Flink only receives the objects that the job uses
        used = {table.span for table in program.tables if table.name in program.used_tables}
        more = (problem for span, problem in of_catalog if span in used)
        program = replace(program, problems=(*more, *program.problems))
    if not isinstance(script, ProgramScript):
        return program
    unread = (Problem(REFUSED if each.refused else "program", each.reason, "", each.span) for each in script.unread)
    return replace(
        program,
        problems=(*program.problems, *unread),
        opaque=script.opaque,
        inputs=script.inputs,
        notes=script.notes,
        windows=script.windows,
    )


def _text(tree: exp.Expr, statement: Statement, namespace: Namespace) -> Text:
    """The text of a single statement, which is compared by its normal form."""
    # The meaning of names depends on the namespace of the statement.
    source = f"{statement.text} -- in {namespace}" if str(namespace) else statement.text
    return Text(source, partial(namespace.normal_form, tree))


def _in_table_order(tree: nodes.InsertInto, table: Table | None) -> tuple[tuple[str, ...], exp.Expr]:
    """Put the columns and the query of an INSERT in the order of the table's columns, as Flink does."""
    columns = tuple(unquoted(column) for column in tree.args.get("columns") or ())
    places = {column.name: place for place, column in enumerate(table.written)} if table and table.declared else {}
    if not places.keys() >= {*columns}:
        return columns, tree.expression
    order = sorted(range(len(columns)), key=lambda place: places[columns[place]])
    query = tree.expression
    if order != sorted(order):
        query = query.copy()
        for select in _selects(query):
            if len(select.expressions) != len(order) or select.is_star:
                return columns, tree.expression
            select.set("expressions", [select.expressions[place] for place in order])
    return tuple(columns[place] for place in order), query


def _selects(query: exp.Expr) -> Iterator[exp.Expr]:
    """The SELECTs or rows of VALUES that produce the rows of a query."""
    match query:
        case exp.SetOperation():
            yield from _selects(query.left)
            yield from _selects(query.right)
        case exp.Subquery():
            yield from _selects(query.this)
        case exp.Values():
            yield from query.expressions
        case _:
            yield query


def _name_of(tree: exp.Expr) -> str:
    name = tree.args.get("this")
    return unquoted(name) if isinstance(name, exp.Expression) else str(name or "")


class _Builder:
    def __init__(
        self, settings: Mapping[str, str], functions: Sequence[FunctionDeclaration], scripts: Sequence[Script]
    ) -> None:
        declared = {function.name.lower(): function for function in functions}
        self.environment = Environment(settings=dict(settings), functions=declared, scripts=scripts)
        self.pipelines: list[Pipeline] = []
        self.other_statements: list[OtherStatement] = []
        self.problems: list[Problem] = []
        self.sets = 0
        self.texts: dict[Path, Text] = {}
        """The script's own CREATE TABLE statements, by the path of the table."""
        self.compiled: dict[str, list[Pipeline]] = {}
        """The queries of each plan that the script compiles into a file, by the name of the file."""
        self.temporary: set[Path] = set()
        """The temporary tables and views of the script."""
        self.existing = Existing(open=len(scripts) > 1)
        self.absences: list[Absence] = []

    def program(self) -> Program:
        env = self.environment
        return Program(
            pipelines=tuple(self.pipelines),
            tables=tuple(table for _, table in sorted(env.tables.items())),
            views=tuple((dotted(path), view.text) for path, view in sorted(env.views.items())),
            functions=tuple(function for _, function in sorted(env.functions.items())),
            settings=tuple(sorted(env.settings.items())),
            other_statements=tuple(self.other_statements),
            problems=tuple(self.problems),
            absences=tuple(self.absences),
            view_plans=tuple((dotted(path), view.node) for path, view in sorted(env.views.items()) if view.node),
        )

    def statement(self, statement: Statement, statement_set: int | None = None) -> None:
        tree = statement.tree
        if tree is None:
            span = statement.span
            words = normal_words(statement.text)
            self.problems.append(Problem("statement", statement.error or "", words, span, statement.malformed))
            self.existing.open = True
            return
        if "INTERVAL" in statement.text.upper():
            self.problems += (
                Problem(REFUSED, words, normal_form(tree), span) for words, span in refused_intervals(statement)
            )
        if "${" in statement.text:
            self.problems += _templates(tree, statement)
        namespace = self.environment.namespace
        try:
            if not isinstance(statement, ProgramStatement):
                known = self.environment.functions.keys()
                self.absences += self.existing.absences(tree, namespace, statement.span, known)
            self._statement(tree, statement, statement_set)
        except BindError as error:
            self.environment.ask_for_all(tree)
            span = error.span or statement.span
            self.problems.append(Problem(error.reason, error.message, normal_form(tree), span))
        except RecursionError:
            text = normal_words(statement.text)
            self.problems.append(Problem("nesting", "the statement is nested too deeply", text, statement.span))
        with suppress(BindError):  # a name may have four parts
            self.existing.execute(tree, namespace)

    def _statement(self, tree: exp.Expr, statement: Statement, statement_set: int | None) -> None:
        env = self.environment
        match tree:
            case nodes.CreateTable():
                self._create_table(tree, statement, statement_set)
            case nodes.CreateView():
                self._create_view(tree, statement)
            case nodes.CreateFunction():
                self._create_function(tree, statement)
            case nodes.CreateNamespace() if tree.args["kind"] == "CATALOG":
                self._fact("CreateNamespace", tree.this.name, tree, statement)
                env.namespace = env.namespace.with_catalog(tree.this.name, dict(options(tree.args.get("options"))))
            case nodes.InsertInto():
                self._insert(tree, statement, statement_set)
            case nodes.StatementSet():
                self._statement_set(tree, statement)
            case nodes.SetOption() | nodes.ResetOption():
                self._option(tree, statement)
            case nodes.UseNamespace():
                self._use(tree, statement)
            case nodes.CompilePlan() | nodes.ExecutePlan():
                self._compiled_plan(tree, statement)
            case nodes.HiveTable():
                self._fact(f"Hive DDL of table {dotted(env.path(tree.this))}", "", tree, statement)
            case exp.Query() | exp.Values():
                sink = Sink(self._query(tree, statement), None, span=span_of(tree, statement))
                self._pipeline(sink, statement_set, tree, statement)
            case _:
                self._fact(type(tree).__name__, _name_of(tree), tree, statement)

    def _create_function(self, tree: nodes.CreateFunction, statement: Statement) -> None:
        env = self.environment
        system = bool(tree.args.get("system"))
        name = tree.this.name if system else dotted(env.path(tree.this))
        language = str(tree.args.get("language") or "JAVA").lower()
        self._asked_before(name.lower().rpartition(".")[2], tree, statement)
        known = env.functions.get(name.lower()) or env.functions.get(tree.this.name.lower())
        earlier = known.definition or None if known is not None else None
        if self._declared_before(tree, earlier is not None, earlier, statement):
            return
        said = statement.function_kind if isinstance(statement, ProgramStatement) else ""
        kind = known.kind if known is not None else said
        env.functions[name.lower()] = FunctionDeclaration(
            name, kind, language, env.namespace.normal_form(tree), span_of(tree, statement)
        )

    def _statement_set(self, tree: nodes.StatementSet, statement: Statement) -> None:
        number, self.sets = self.sets, self.sets + 1
        for inner in tree.expressions:
            try:
                self._statement(inner, statement, number)
            except BindError as error:
                span = error.span or span_of(inner, statement)
                self.problems.append(Problem(error.reason, error.message, normal_form(inner), span))

    def _option(self, tree: nodes.SetOption | nodes.ResetOption, statement: Statement) -> None:
        settings = self.environment.settings
        match tree:
            case nodes.SetOption(this=None):
                self._fact(type(tree).__name__, "", tree, statement)
            case nodes.SetOption():
                settings[tree.this.name] = tree.expression.name
            case _ if tree.this is None:
                settings.clear()
            case _:
                settings.pop(tree.this.name, None)

    def _compiled_plan(self, tree: nodes.CompilePlan | nodes.ExecutePlan, statement: Statement) -> None:
        if isinstance(tree, nodes.CompilePlan):
            self._compile_plan(tree, statement)
        else:
            self._execute_plan(tree, statement)

    def _compile_plan(self, tree: nodes.CompilePlan, statement: Statement) -> None:
        """Record the queries of COMPILE PLAN by the name of the file; EXECUTE PLAN runs these queries.

        Flink does not overwrite a file. If the statement contains IF NOT EXISTS or COMPILE AND EXECUTE, the file may
        contain an older plan.
        """
        before, self.pipelines = self.pipelines, []
        self._statement(tree.expression, statement, None)
        compiled, self.pipelines = self.pipelines, before
        self._fact("CompilePlan", tree.this.name, tree, statement)
        if not (tree.args.get("exists") or tree.args.get("execute")):
            self.compiled[tree.this.name] = compiled
        else:
            self.compiled.pop(tree.this.name, None)
        if tree.args.get("execute"):
            self._not_seen(tree, statement)

    def _execute_plan(self, tree: nodes.ExecutePlan, statement: Statement) -> None:
        if tree.this.name in self.compiled:
            self._fact("ExecutePlan", tree.this.name, tree, statement)
            self.pipelines += self.compiled[tree.this.name]
        else:
            self._not_seen(tree, statement)

    def _not_seen(self, tree: exp.Expr, statement: Statement) -> None:
        message = (
            "EXECUTE PLAN runs the content of its file, which is not compared; compile the plan in the same script and "
            "without IF NOT EXISTS, or check the scripts from which it was compiled"
        )
        self.problems.append(Problem("plan-file", message, normal_form(tree), span_of(tree, statement)))

    def _asked_before(self, name: Path | str, tree: exp.Expr, statement: Statement) -> None:
        """Record that earlier uses of a declared name refer to a different object."""
        if name in self.environment.undeclared:
            self._fact("declared after its use", "", tree, statement)

    def _use(self, tree: nodes.UseNamespace, statement: Statement) -> None:
        names = [part.name for part in name_parts(tree.expressions[0])] if len(tree.expressions) == 1 else []
        namespace = self.environment.namespace.use(str(tree.args["kind"]), names)
        if namespace is None:
            self._fact("UseNamespace", "", tree, statement)
        else:
            self.environment.namespace = namespace

    def _fact(self, kind: str, name: str, tree: exp.Expr, statement: Statement) -> None:
        declared = (*self.environment.tables, *self.environment.views) if kind in ("Alter", "Drop") else ()
        # A temporary table hides a permanent table of the same name. DROP TEMPORARY only drops the temporary table.
        names = sorted(("temporary " if path in self.temporary else "") + dotted(path) for path in declared)
        after: tuple[int | str, ...] = (len(self.pipelines), *names)
        text = self.environment.namespace.normal_form(tree)
        self.other_statements.append(OtherStatement(kind, name, text, after, statement.span, self._subject(tree)))

    def _subject(self, tree: exp.Expr) -> tuple[str, str]:
        """The kind and path of the object that a statement creates, alters or drops."""
        match tree:
            case nodes.HiveTable():
                return "TABLE", dotted(self.environment.path(tree.this))
            case nodes.Drop() | nodes.Alter() if tree.args["kind"] in ("TABLE", "VIEW"):
                return str(tree.args["kind"]), dotted(self.environment.path(tree.this))
            case nodes.Drop() | nodes.Alter() | nodes.CreateNamespace():
                return str(tree.args["kind"]), tree.this.name
        return "", ""

    def _declared_before(
        self, tree: exp.Expr, known: bool, text: Text | NormalForm | str | None, statement: Statement
    ) -> bool:
        """True if a CREATE has no effect because the object exists; replaced declarations are recorded.

        ``text`` is the script's earlier declaration; None if there is none, or if the catalog declares the object.
        """
        if known and tree.args.get("exists"):
            self._fact("not created: exists", "", tree, statement)
            if text is not None:  # the valid declaration may depend on the first, such as on TEMPORARY
                self.other_statements.append(
                    OtherStatement("kept", "", _normal(text), (len(self.pipelines),), statement.span)
                )
            return True
        if text is not None:
            path = self.environment.path(tree.this)
            relation = isinstance(tree, nodes.CreateTable | nodes.CreateView)
            taken = relation and self.existing.holds(path, temporary=bool(tree.args.get("temporary")))
            if taken and not (tree.args.get("replace") or isinstance(statement, ProgramStatement)):
                why = f"{tree.this.name} already exists: use a different name, or DROP the existing object first"
                self.problems.append(Problem(REFUSED_NAME, why, normal_form(tree), statement.span))
            # A temporary table hides a permanent table of the same name, in either order.
            plain = (
                isinstance(tree, nodes.CreateTable) and not tree.args.get("temporary") and path not in self.temporary
            )
            subject = ("TABLE", dotted(path)) if plain else ("", "")
            self.other_statements.append(
                OtherStatement("replaced", "", _normal(text), (len(self.pipelines),), statement.span, subject)
            )
        return False

    def _pipeline(self, sink: Sink, statement_set: int | None, tree: exp.Expr, statement: Statement) -> None:
        settings = tuple(sorted(self.environment.settings.items()))
        self.pipelines.append(Pipeline(sink, settings, statement_set, sink.span, self._steps(tree, statement)))

    def _steps(self, tree: exp.Expr, statement: Statement) -> tuple[str, ...]:
        """The Table API operations of a query: those of the views that it reads, then its own."""
        own = statement.steps_of(tree) if isinstance(statement, ProgramStatement) else ()
        if not any(view.steps for view in self.environment.views.values()):
            return own
        read = (self.environment.views.get(self.environment.path(table)) for table in tree.find_all(exp.Table))
        return (*(step for view in read if view is not None for step in view.steps), *own)

    def _query(self, tree: exp.Expr, statement: Statement) -> Node:
        """The plan of a query. A query that cannot be analysed becomes one node with the reason."""
        try:
            return QueryBinder(self.environment, statement).query(tree, root=True)
        except BindError as error:
            self.environment.ask_for_all(tree)
            span = error.span or span_of(tree, statement)
            self._refused_names(error, tree, span)
            text = self.environment.namespace.normal_form(tree)
            return Opaque(OtherKind.QUERY, text, (), (), error.message, span, error=error.reason)

    def _refused_names(self, error: BindError, tree: exp.Expr, span: Span) -> None:
        """Refuse a missing or ambiguous name, if every table of the query declares its columns."""
        if error.reason == INVALID:
            self.problems.append(Problem(INVALID, error.message, normal_form(tree), span))
        if error.reason not in ("unknown-column", "ambiguous-name") or "$" in error.message:
            return
        if any(not is_window_function(each) for each in tree.find_all(nodes.TableFunction)):
            return  # a table function produces additional columns
        own = {cte.alias for cte in tree.find_all(exp.CTE)}
        paths = {self.environment.path(each) for each in tree.find_all(exp.Table) if each.name not in own or each.db}
        if all(self._is_known(path) for path in paths):
            remedy = "write a column that a table in FROM has, with the alias of that table"
            self.problems.append(Problem(REFUSED_NAME, f"{error.message}: {remedy}", normal_form(tree), span))

    def _is_known(self, path: Path) -> bool:
        """True if every column of a table or view, and every field of its row columns, is known."""
        view = self.environment.views.get(path)
        table = self.environment.tables.get(path)
        columns = view.node.schema if view is not None and view.node is not None else table.columns if table else ()
        return bool(columns) and all(column.type.is_known for column in columns)

    def _insert(self, tree: nodes.InsertInto, statement: Statement, statement_set: int | None) -> None:
        span = span_of(tree, statement)
        # A SELECT … ON CONFLICT without INSERT writes into a sink without a name.
        target = tree.this
        table = None
        if target is not None:
            table = self.environment.table(self.environment.path(target), span_of(target, statement))
        partition = tuple(
            (part.this.name, "" if part.expression is None else unquoted(part.expression))
            for part in tree.args.get("partition") or ()
        )
        columns, query = _in_table_order(tree, table)
        sink = Sink(
            self._query(query, statement),
            table,
            columns,
            partition,
            bool(tree.args.get("overwrite")),
            (
                *(table_hints(target) if target is not None else ()),
                *((("ON CONFLICT", tree.args["conflict"]),) if tree.args.get("conflict") else ()),
            ),
            span=span,
        )
        self._pipeline(sink, statement_set, tree, statement)

    def _create_view(self, tree: nodes.CreateView, statement: Statement) -> None:
        text = _text(tree, statement, self.environment.namespace)
        names = [column.name for column in tree.args.get("columns") or ()]
        path = self.environment.path(tree.this)
        view = self.environment.views.get(path)
        if self._declared_before(tree, view is not None, None if view is None else view.text, statement):
            return
        self._asked_before(path, tree, statement)
        if tree.args.get("temporary"):
            self.temporary.add(path)
        try:
            node: Node | None = QueryBinder(self.environment, statement).query(tree.expression, root=True)
            if names and node is not None:
                node = renamed(node, names)
            if not (names or isinstance(statement, ProgramStatement)):
                self._refused_columns(node, tree, statement)
            self.environment.views[path] = View(node, text, steps=self._steps(tree, statement))
        except BindError as error:
            self.environment.ask_for_all(tree.expression)
            error.span = error.span or span_of(tree, statement)
            self._refused_names(error, tree.expression, error.span)
            self.environment.views[path] = View(None, text, error, self._steps(tree, statement))

    def _refused_columns(self, node: Node | None, tree: nodes.CreateView, statement: Statement) -> None:
        names = [] if node is None else [column.name for column in node.schema]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            why = f"two columns of the view {tree.this.name} have the name {twice[0]}: rename one of them"
            self.problems.append(Problem(REFUSED_NAME, why, normal_form(tree), span_of(tree, statement)))

    def _create_table(self, tree: nodes.CreateTable, statement: Statement, statement_set: int | None) -> None:
        path = self.environment.path(tree.this)
        if self._declared_before(tree, path in self.environment.tables, self.texts.get(path), statement):
            return
        self._asked_before(path, tree, statement)
        if tree.args.get("temporary"):
            self.temporary.add(path)
        self.texts[path] = _text(tree, statement, self.environment.namespace)
        base = self._like(tree)
        query = None if tree.expression is None else self._query(tree.expression, statement)
        table = self._table(tree, statement, path, base, query)
        self.environment.tables[path] = table
        if query is not None:
            self._pipeline(Sink(query, table, span=span_of(tree, statement)), statement_set, tree, statement)

    def _like(self, tree: nodes.CreateTable) -> Table | None:
        like = tree.args.get("like")
        if like is None:
            return None
        found = self.environment.tables.get(self.environment.path(like.this))
        if found is None:
            raise BindError("undeclared-table", f"the table {unquoted(like.this)} in LIKE is not declared")
        return found

    def _table(
        self,
        tree: nodes.CreateTable,
        statement: Statement,
        path: tuple[str, str, str],
        base: Table | None,
        query: Node | None,
    ) -> Table:
        parent, base = base, None if base is None else inherited(base, tree)
        columns = list(base.columns) if base else []
        physical = list(base.physical) if base else []
        metadata = list(base.metadata) if base else []
        computed_trees: list[nodes.ComputedColumn] = []
        if query is not None and not tree.args.get("columns"):
            columns += [replace(column, time_attribute=None) for column in query.schema]
            physical += [column.name for column in query.schema]
        for part in tree.args.get("columns") or ():
            if isinstance(part, exp.Identifier):
                kind = next((c.type for c in (query.schema if query else ()) if c.name == part.name), UNKNOWN)
                columns.append(Column(part.name, kind))
                physical.append(part.name)
                continue
            name = part.this.name
            if isinstance(part, nodes.ComputedColumn):
                computed_trees.append(part)
                _place_column(columns, Column(name, UNKNOWN), base)
                continue
            _place_column(columns, Column(name, data_type(part.args["kind"])), base)
            if isinstance(part, nodes.MetadataColumn):
                key = part.args.get("metadata_key")
                metadata = [each for each in metadata if each[0] != name]
                metadata.append((name, name if key is None else key.name, bool(part.args.get("virtual"))))
            else:
                physical.append(name)
        binder = ScalarBinder(self.environment, statement, Scope((path[2],) * len(columns), tuple(columns)))
        before = () if parent is None else parent.columns
        computed = {
            name: moved(expression, before, columns)
            for name, expression in (base.computed if base else ())
            if name not in {part.this.name for part in computed_trees}
        }
        for part in computed_trees:
            bound = binder.bind(part.expression)
            index = next(i for i, column in enumerate(columns) if column.name == part.this.name)
            columns[index] = Column(part.this.name, bound.type, time_attribute_of(bound, tuple(columns)))
            computed[part.this.name] = bound
        watermark = base.watermark if base else None
        if watermark is not None and not tree.args.get("watermarks"):
            watermark = replace(watermark, expression=moved(watermark.expression, before, columns))
        for mark in tree.args.get("watermarks") or ():
            name = mark.this.name if isinstance(mark.this, exp.Identifier) else unquoted(mark.this)
            scope = Scope((path[2],) * len(columns), tuple(columns))
            watermark = WatermarkStrategy(name, ScalarBinder(self.environment, statement, scope).bind(mark.expression))
        if watermark is not None:
            columns = [
                Column(c.name, c.type, TimeAttribute.ROWTIME) if c.name == watermark.column else c for c in columns
            ]
        merged = dict(base.options) if base else {}
        merged.update(options(tree.args.get("options")))
        partitioned = [part.name for part in tree.args.get("partitioned_by") or ()]
        distribution = tree.args.get("distribution")
        if distribution is not None:
            merged[DISTRIBUTION] = unquoted(distribution)
        return Table(
            path,
            tuple(columns),
            tuple(physical),
            tuple(metadata),
            tuple(computed.items()),
            watermark,
            _primary_key(tree, base),
            tuple(partitioned) or (base.partitioned_by if base else ()),
            tuple(sorted(merged.items())),
            span=span_of(tree, statement),
        )


def _primary_key(tree: nodes.CreateTable, base: Table | None) -> tuple[str, ...]:
    """The primary key that the table declares, at a column or separately; else the key of its LIKE table."""
    keys = base.primary_key if base else ()
    for part in tree.args.get("columns") or ():
        at_column = None if isinstance(part, exp.Identifier | nodes.ComputedColumn) else part.args.get("constraint")
        if at_column is not None and str(at_column.args["kind"]) == "PRIMARY KEY":
            keys = (part.this.name,)
    for constraint in tree.args.get("constraints") or ():
        if str(constraint.args["kind"]) == "PRIMARY KEY":
            keys = tuple(key.name for key in constraint.expressions)
    return keys


def _templates(tree: exp.Expr, statement: Statement) -> Iterator[Problem]:
    """Find names that are template variables, whose values are unknown."""
    for node in statement.nodes:
        if isinstance(node, exp.Identifier) and "${" in node.name:
            message = f"the value of {node.name} is unknown; {AS_SUBMITTED}"
            yield Problem("template", message, normal_form(tree), span_of(node, statement))


def _place_column(columns: list[Column], column: Column, base: Table | None) -> None:
    """Add a column. A column that overrides a column of the LIKE clause keeps its position."""
    index = next((i for i, each in enumerate(columns) if base is not None and each.name == column.name), None)
    if index is None:
        columns.append(column)
    else:
        columns[index] = column


def _normal(text: Text | NormalForm | str) -> NormalForm | str:
    return text.normal if isinstance(text, Text) else text


__all__ = ["build_program"]
