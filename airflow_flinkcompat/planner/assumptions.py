"""Assumed declarations of the tables, functions and catalogs that a script uses but does not declare.

Flink's error messages lead: each names what the next question must declare or change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from airflow_flinkcompat.model.text import sql_name
from airflow_flinkcompat.planner.assumed_table import (
    NUMBER,
    PROCTIME,
    ROWTIME,
    TEXT,
    TIMESTAMP,
    AssumedColumn,
    AssumedTable,
    Parts,
    leaves,
)
from airflow_flinkcompat.planner.column_uses import ColumnUses
from airflow_flinkcompat.planner.flink_messages import columns_of, named_types, refused_part
from airflow_flinkcompat.sql import Statement, nodes
from airflow_flinkcompat.sql.grammar import nodes_of

DECIMAL = "DECIMAL(20, 4)"
DECLARE = "pass a file with the missing DDL as --catalog"
OF_DECLARATIONS = f"the result depends on the columns and keys of tables without a declaration: {DECLARE}"
_MOST = 60
"""Maximum number of questions about one script."""
_REFUSED_ARGUMENTS = (
    "Cannot apply|Invalid function call|Invalid number of|Invalid input arguments|Parameters must be|Values passed to"
    "|Illegal mixing|type mismatch|must be of"
)


@dataclass(frozen=True)
class Variant:
    """A different assumption about the parts of a job that are unknown.

    Attributes:
        question: The part of the question to the planner that differs.
        doubt: The doubt if the planner's answer differs.
        condition: The clause with the case in which the new version alone refuses the script; "" if that is a doubt.
    """

    question: Mapping[str, Any]
    doubt: str
    condition: str = ""


@dataclass
class Assumptions:
    """Assumed declarations for one script.

    Attributes:
        statements: The statements of the script, in order.
        number: The type of columns with numbers.
        tables: The assumed tables, by the parts of their names.
        functions: Kind and result of each function whose class is absent, by name.
    """

    statements: Sequence[Statement]
    number: str = NUMBER
    tables: dict[Parts, AssumedTable] = field(default_factory=dict)
    functions: dict[str, dict[str, Any]] = field(default_factory=dict)
    _namespaces: dict[int, list[str]] = field(default_factory=dict)
    _missing: set[str] = field(default_factory=set)
    _replaced: list[int] = field(default_factory=list)
    _tried: dict[int, set[str]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the assumed tables and functions."""
        return tuple(
            sorted({".".join(each) for each in self.tables} | {each.replace("`", "") for each in self.functions})
        )

    @property
    def scalars(self) -> tuple[str, ...]:
        """The names of the assumed scalar functions."""
        return tuple(name for name, each in self.functions.items() if each["kind"] == "scalar")

    @property
    def variants(self) -> Sequence[Variant]:
        """Other assumptions, with the doubts if the planner's answers differ."""
        sinks = ", ".join(sorted(parts[-1] for parts, each in self.tables.items() if each.sink))
        condition = f"compatible unless {sinks} has a PRIMARY KEY by which the query does not update its rows"
        keyed = {**self.question(keyed=True), "sink": "upsert"}
        return [Variant(keyed, OF_DECLARATIONS, condition)] if sinks else []

    def question(self, *, keyed: bool = False, aggregate: str = "") -> dict[str, Any]:
        """The assumptions as a part of a question; ``aggregate`` is a function that is an aggregate function."""
        before: dict[str, list[str]] = {}
        for place, texts in self._namespaces.items():
            before.setdefault(str(place), []).extend(texts)
        for parts, table in self.tables.items():
            name = ".".join(map(sql_name, parts))
            before.setdefault(str(table.statement), []).append(table.ddl(name, self.number, keyed))
        functions = {
            name: {**each, "kind": "aggregate"} if name == aggregate else each for name, each in self.functions.items()
        }
        return {"assumed": {"before": before, "functions": functions, "replaced": self._replaced}}

    def learn(self, texts: Sequence[str], statement: int) -> bool:
        """Change the assumptions after a refusal of a statement; False if Flink's message does not help."""
        for pattern, lesson in _LESSONS:
            for text in texts:
                found = re.search(pattern, text, re.DOTALL)
                if found is not None and lesson(self, statement, found, texts):
                    return True
        return False

    # One method for each kind of error. Each returns True if it changed the assumptions.

    def _declare_tables(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        """Declare every undeclared table of the statement, with the columns that the whole script uses."""
        tree = self.statements[number].tree
        if tree is None:
            return False
        self._missing.add(_simple(found[1]))
        uses = ColumnUses(self._missing)
        for place, each in enumerate(self.statements):
            if each.tree is not None and place not in self._replaced:
                uses.read(each.tree)
        before = len(self.tables)
        named = {tuple(part.name for part in each.parts) for each in nodes_of(tree) if isinstance(each, exp.Table)}
        sinks = {tuple(part.name for part in each.this.parts): each for each in nodes_of(tree) if _is_insert(each)}
        for parts in sorted(uses.tables.keys() & named - self.tables.keys()):
            columns = uses.tables[parts]
            table = self.tables[parts] = AssumedTable(columns, number, sink=parts in sinks)
            if table.sink:
                names = [each.name for each in sinks[parts].args.get("columns") or ()] or _outputs(sinks[parts])
                table.columns = {each: columns.get(each, AssumedColumn()) for each in names}
            else:
                table.settle_times(uses.versioned.get(parts, {}))
        if len(self.tables) > before:
            return True
        if any(len(each) > 2 and each[0] == found[1] for each in self.tables):
            return self._declare_catalog(number, found, texts)
        in_database = any(found[1] in each[:-1] for each in self.tables)
        return in_database and self._declare_database(number, found, texts)

    def _declare_catalog(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        return self._declare_before(number, f"CREATE CATALOG {sql_name(found[1])} WITH ('type' = 'assumed')")

    def _declare_database(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        return self._declare_before(number, f"CREATE DATABASE IF NOT EXISTS {sql_name(found[1])}")

    def _declare_before(self, number: int, text: str) -> bool:
        known = self._namespaces.setdefault(number, [])
        known += [text] if (new := text not in known) else []
        return new

    def _pass_over(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        """Assume the function that the statement declares with an absent class."""
        tree = self.statements[number].tree
        if not isinstance(tree, nodes.CreateFunction) or number in self._replaced:
            return False
        self._replaced.append(number)
        return self._assume_function(tree.this.name)

    def _pass_over_dialect(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        """Leave out declarations in a dialect whose parser is absent."""
        trees = enumerate(each.tree for each in self.statements)
        sets = [place for place, tree in trees if isinstance(tree, nodes.SetOption) and _sets_dialect(tree)]
        first = max((place for place in sets if place < number), default=number)
        after = min((place for place in sets if place > number), default=len(self.statements))
        jobs = (exp.Query, nodes.InsertInto, nodes.StatementSet)
        if number in self._replaced or any(isinstance(each.tree, jobs) for each in self.statements[first:after]):
            return False
        self._replaced += range(first, after)
        return True

    def _declare_function(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        simple = _simple(found[1])
        known = any(_simple(each) == simple for each in self.functions)
        return not known and simple.upper() != "DEFAULT" and self._assume_function(simple)

    def _assume_function(self, simple: str) -> bool:
        """Assume a scalar or table function, by its use; False for an aggregate function."""
        trees = (each.tree for each in self.statements if each.tree is not None)
        for each in (node for tree in trees for node in nodes_of(tree)):
            if isinstance(each, nodes.TableFunction) and _simple(_path(each.this)) == simple:
                fresh = {"kind": "table", "types": {"": "ROW<f0 STRING>"}}
                function = self.functions.setdefault(_path(each.this), fresh)
                if (alias := each.args.get("alias")) is not None and alias.columns:
                    type_ = f"ROW<{', '.join(f'{sql_name(one.name)} STRING' for one in alias.columns)}>"
                    function["types"] |= {str(len(each.expressions)): type_, "": type_}
            elif isinstance(each, exp.Window) and isinstance(each.this, exp.Anonymous) and each.this.name == simple:
                return False
        if not any(_simple(each) == simple for each in self.functions):
            self.functions[simple] = {"kind": "scalar", "types": {"": TEXT}}
        return True

    def _add_column(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        name, sink = found[1].rpartition(".")[2], "target" in found[0]
        table = next((each for each in self._of(number) if each.sink == sink and name not in each.columns), None)
        if table is not None:
            table.columns[name] = AssumedColumn()
        return table is not None

    def _remove_column(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        owners = [each for each in self._of(number) if found[1] in each.columns and not each.sink]
        if len(owners) > 1:
            del owners[-1].columns[found[1]]
        return len(owners) > 1

    def _prefer_numbers(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        """Make the columns of unknown types numbers."""
        columns = [each for table in self._of(number) for each in table.columns.values() if not table.sink]
        free = [each for each in columns if not each.type and not each.fields]
        for each in free:
            each.type = NUMBER
        return bool(free)

    def _match_sink(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        """Give a sink the columns of its query, or the query's sources the types of a declared sink."""
        sinks = [each for parts, each in self.tables.items() if each.sink and parts[-1] == _simple(found[1])]
        if not sinks:
            return self._match_sources(number, columns_of(found[2]), columns_of(found[3]))
        sink = sinks[0]
        query = columns_of(found[2])
        names = list(sink.columns) if len(sink.columns) == len(query) else [name for name, _ in query]
        if len(set(names)) < len(names):
            names = [f"{name}_{place}" for place, name in enumerate(names)]
        columns = {name: AssumedColumn(type_) for name, (_, type_) in zip(names, query, strict=True)}
        if columns == sink.columns:
            return False
        sink.columns = columns
        return True

    def _match_sources(self, number: int, query: Sequence[tuple[str, str]], sink: Sequence[tuple[str, str]]) -> bool:
        for (name, has), (_, wanted) in zip(query, sink, strict=False):
            for column in self._columns(self._names_in(name, number), number) if has != wanted else ():
                tried = self._tried.setdefault(id(column), {column.type or TEXT})
                if wanted not in tried and not column.fields and column.type not in (ROWTIME, PROCTIME):
                    tried.add(wanted)
                    column.type = wanted
                    return True
        return False

    def _change_type(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        """Change the type of a column in the expression that Flink refuses."""
        span = refused_part(self.statements[number].text, texts)
        wanted = [TIMESTAMP] if "INTERVAL" in found[1] else []
        wanted += named_types(f"{found[2]} {found[1]}")
        order = list(dict.fromkeys((*wanted, NUMBER, TEXT, TIMESTAMP, "DOUBLE", "BOOLEAN")))
        names = self._names_in(span, number)
        for column in self._columns(names, number):
            tried = self._tried.setdefault(id(column), {column.type or TEXT})
            type_ = next((each for each in order if each not in tried), None)
            if type_ is not None and not column.fields and column.type not in (ROWTIME, PROCTIME):
                tried.add(type_)
                column.type = type_
                return True
        for name, function in self.functions.items():
            tried = self._tried.setdefault(id(function), {TEXT})
            type_ = next((each for each in order if each not in tried), None)
            if _simple(name) in names and function["kind"] == "scalar" and type_ is not None:
                tried.add(type_)
                function["types"] = {"": type_}
                return True
        return False

    def _drop_rowtime(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        timed = [each for each in self._of(number) if each.rowtime]
        for table in timed:
            table.rowtime = ""
        return bool(timed)

    def _add_rowtime(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        """Make the columns of ORDER BY time attributes."""
        tree = self.statements[number].tree
        ordered = [each.this.name for each in nodes_of(tree) if isinstance(each, exp.Ordered)] if tree else []
        for table in self._of(number):
            name = next((each for each in ordered if each in table.columns), None)
            if not table.rowtime and name is not None and not table.sink:
                table.columns[name].type, table.rowtime = ROWTIME, name
                return True
        return False

    def _of(self, number: int) -> list[AssumedTable]:
        """The assumed tables that a statement uses."""
        tree = self.statements[number].tree
        if tree is None:
            return [each for each in self.tables.values() if each.statement == number]
        used = {tuple(part.name for part in each.parts) for each in nodes_of(tree) if isinstance(each, exp.Table)}
        return [table for parts, table in self.tables.items() if parts in used] or list(self.tables.values())

    def _names_in(self, span: str, number: int) -> dict[str, None]:
        """The names in a part of a statement, and in the expressions that these names are aliases of."""
        names = dict.fromkeys(re.findall(r"[\w$]+", span))
        tree = self.statements[number].tree
        named = [each for each in nodes_of(tree) if isinstance(each, exp.Alias | nodes.ComputedColumn)] if tree else []
        size = 0
        while size < (size := len(names)):
            meant = " ".join(each.sql("flink") for each in named if (each.alias or each.name) in names)
            names |= dict.fromkeys(re.findall(r"[\w$]+", meant))
        return names

    def _columns(self, names: Collection[str], number: int) -> Iterator[AssumedColumn]:
        for table in self._of(number):
            for name, column in table.columns.items() if not table.sink else ():
                yield from (each for label, each in leaves(name, column) if label in names)


_LESSONS: Sequence[tuple[str, Callable[[Assumptions, int, re.Match[str], Sequence[str]], bool]]] = (
    (r"Object '([^']+)' not found", Assumptions._declare_tables),
    (r"Cannot find table '([^']+)'", Assumptions._declare_tables),
    (r"toIndex = (\d+)", Assumptions._declare_tables),  # as above, if another catalog is in use
    (r"Source table '([^']+)' of the LIKE clause not found", Assumptions._declare_tables),
    (r"[Cc]atalog (?:with name \[)?([^\]\s]+?)\]? does not exist", Assumptions._declare_catalog),
    (r"[Dd]atabase (?:with name \[)?([^\]\s]+?)\]? does not exist", Assumptions._declare_database),
    (r"No match found for function signature ([^(]+)", Assumptions._declare_function),
    (
        r"ClassNotFound|implementation class|[Cc]ould not (?:load|find)|[Cc]annot instantiate|ython",
        Assumptions._pass_over,
    ),
    (r"(?:Column|Unknown target column) '([^']+)'(?: not found|\n)", Assumptions._add_column),
    (
        r"sink (?:for )?'([^']+)' do not match.*?Query schema: \[(.*?)\]\nSink schema: +\[(.*)\]",
        Assumptions._match_sink,
    ),
    (r"implicit type conversion between", Assumptions._prefer_numbers),
    (r"identifier '\w+' that implements '[\w.]+\.ParserFactory'", Assumptions._pass_over_dialect),
    (r"Column '([^']+)' is ambiguous", Assumptions._remove_column),
    (rf"(?:{_REFUSED_ARGUMENTS})(.*?)Supported(.*)", Assumptions._change_type),
    (rf"(?:{_REFUSED_ARGUMENTS})(.*?)()$", Assumptions._change_type),
    (r"Rowtime attributes must not be in the input rows", Assumptions._drop_rowtime),
    (r"Sort on a non-time-attribute field|must be defined on a time attribute", Assumptions._add_rowtime),
)
"""Flink's messages, and the methods that they call for."""


def assume(
    statements: Sequence[Statement], ask: Callable[[Mapping[str, Any]], Mapping[str, Any]], number: str = NUMBER
) -> Assumptions | None:
    """Find declarations with which Flink plans a script; None if Flink's messages do not lead to any.

    ``ask`` returns the planner's answer to a question with assumptions.
    """
    made = Assumptions(statements, number)
    for _ in range(_MOST):
        answer = ask(made.question())
        if "refusal" not in answer:
            return made
        texts = [f"{each['message']}\n{each['class']}" for each in answer["refusal"]]
        try:
            if "statement" not in answer or not made.learn(texts, answer["statement"]):
                return None
        except RecursionError:  # an expression is nested too deeply
            return None
    return None


def _outputs(insert: exp.Expr) -> list[str]:
    """The names of the columns of an INSERT's query; empty if the query does not name all of them."""
    query = insert.expression
    names = [each.alias_or_name for each in query.expressions] if isinstance(query, exp.Select) else []
    return names if all(each not in ("", "*") for each in names) and len(set(names)) == len(names) else []


def _sets_dialect(option: exp.Expr) -> bool:
    return option.this is not None and option.this.name == "table.sql-dialect"


def _is_insert(node: exp.Expr) -> bool:
    return isinstance(node, nodes.InsertInto) and isinstance(node.this, exp.Table)


def _simple(name: str) -> str:
    return name.rpartition(".")[2].strip("`")


def _path(name: exp.Expr) -> str:
    """The name of a function: simple, or with quoted parts."""
    parts: list[str] = []
    while isinstance(name, exp.Dot):
        parts, name = [name.expression.name, *parts], name.this
    return ".".join(map(sql_name, (name.name, *parts))) if parts else name.name
