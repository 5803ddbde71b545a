"""Assumed declarations of the tables, functions and catalogs that a script uses but does not declare.

Flink's error messages lead: each names what the next question must declare or change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from airflow_flinkcompat.exec_graph.from_planner import refuses_statement
from airflow_flinkcompat.model.text import sql_name
from airflow_flinkcompat.planner.assumed_functions import AssumedFunctions, simple
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
from airflow_flinkcompat.planner.query_outputs import common_type, output_at, output_names, united_tables
from airflow_flinkcompat.sql import Statement, nodes
from airflow_flinkcompat.sql.grammar import nodes_of

OTHER_NUMBERS = ("DECIMAL(20, 4)", "DOUBLE")
"""Types of numbers to try after BIGINT."""
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
        case: The assumption in words, if the upgrade may depend on it alone; "" otherwise.
    """

    question: Mapping[str, Any]
    doubt: str
    condition: str = ""
    case: str = ""


@dataclass
class Assumptions:
    """Assumed declarations for one script.

    Attributes:
        statements: The statements of the script, in order.
        number: The type of columns with numbers.
        tables: The assumed tables, by the parts of their names.
        functions: The functions whose class is absent.
        refused: The planner's answer with a refusal that no change of the assumptions removes; None without one.
    """

    statements: Sequence[Statement]
    number: str = NUMBER
    tables: dict[Parts, AssumedTable] = field(default_factory=dict)
    functions: AssumedFunctions = field(default_factory=AssumedFunctions)
    refused: Mapping[str, Any] | None = None
    _namespaces: dict[int, list[str]] = field(default_factory=dict)
    _missing: set[str] = field(default_factory=set)
    _replaced: list[int] = field(default_factory=list)
    _tried: dict[int, set[str]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the assumed tables and functions."""
        return tuple(
            sorted({".".join(each) for each in self.tables} | {each.replace("`", "") for each in self.functions.known})
        )

    @property
    def variants(self) -> Sequence[Variant]:
        """Other assumptions, with the doubts if the planner's answers differ."""
        sinks = ", ".join(sorted(parts[-1] for parts, each in self.tables.items() if each.sink))
        condition = f"compatible unless {sinks} has a PRIMARY KEY by which the query does not update its rows"
        keyed = [{**self.question(key_at=place), "sink": "upsert"} for place in (0, -1)]
        different = keyed if keyed[0] != keyed[1] else keyed[:1]
        return [Variant(each, OF_DECLARATIONS, condition) for each in different] if sinks else []

    def of_numbers(self, ask: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Iterator[Variant]:
        """Yield the assumptions with other types of numbers, if they differ."""
        former = [self.question()]
        sources = ", ".join(sorted(parts[-1] for parts, each in self.tables.items() if not each.sink))
        for self.number in OTHER_NUMBERS:
            if self.settle(ask) and (question := self.question()) not in former:
                former.append(question)
                yield Variant(question, OF_DECLARATIONS, case=f"numbers of {sources} are of type {self.number}")

    def question(self, *, key_at: int | None = None, aggregate: str = "") -> dict[str, Any]:
        """The assumptions as a part of a question; ``aggregate`` is a function that is an aggregate function.

        ``key_at`` is the place of a column that is the primary key of each sink.
        """
        before: dict[str, list[str]] = {}
        for place, texts in self._namespaces.items():
            before.setdefault(str(place), []).extend(texts)
        for parts, table in self.tables.items():
            name = ".".join(map(sql_name, parts))
            before.setdefault(str(table.statement), []).append(table.ddl(name, self.number, key_at))
        functions = self.functions.question(aggregate)
        return {"assumed": {"before": before, "functions": functions, "replaced": [*self._replaced]}}

    def settle(self, ask: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> bool:
        """Change the assumptions until Flink plans the script; False if Flink's messages do not help.

        ``ask`` returns the planner's answer to a question with assumptions.
        """
        for _ in range(_MOST):
            answer = ask(self.question())
            if "refusal" not in answer:
                return True
            texts = [f"{each['message']}\n{each['class']}" for each in answer["refusal"]]
            try:
                if "statement" not in answer or not self.learn(texts, answer["statement"]):
                    self.refused = answer
                    return False
            except RecursionError:  # an expression is nested too deeply
                return False
        return False

    @property
    def refusal_stays(self) -> bool:
        """True if Flink refuses the script for any declarations of the undeclared tables and functions."""
        if self.refused is None:
            return False
        chain = self.refused["refusal"]
        tree = self.statements[self.refused["statement"]].tree if "statement" in self.refused else None
        explicit = tree is not None and not any(isinstance(each, exp.Star) for each in nodes_of(tree))
        counted = any("Cause: Different number of columns" in each["message"] for each in chain)
        return refuses_statement(chain) or (counted and explicit)

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
        self._missing.add(simple(found[1]))
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
                named_by = sinks[parts].args
                names = [each.name for each in named_by.get("columns") or ()] or output_names(named_by["expression"])
                table.partitions = tuple(each.this.name for each in named_by.get("partition") or ())
                table.columns = {each: columns.get(each, AssumedColumn()) for each in (*names, *table.partitions)}
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
        name = simple(found[1])
        return not self.functions.has(name) and name.upper() != "DEFAULT" and self._assume_function(name)

    def _assume_function(self, name: str) -> bool:
        self.functions.add(name, [each.tree for each in self.statements if each.tree is not None])
        return True

    def _aggregate(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        tree, column = self.statements[number].tree, found[1].rpartition(".")[2].strip("`")
        return tree is not None and self.functions.aggregate(tree, column)

    def _add_column(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        name, sink = found[1].rpartition(".")[2], "target" in found[0]
        table = next((each for each in self._of(number) if each.sink == sink and name not in each.columns), None)
        if table is not None:
            table.columns[name] = AssumedColumn()
        return table is not None

    def _add_copied_column(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        """Add a column to the table that CREATE TABLE copies by LIKE."""
        tree = self.statements[number].tree
        like = tree.args.get("like") if isinstance(tree, nodes.CreateTable) else None
        table = None if like is None else self.tables.get(tuple(part.name for part in like.this.parts))
        if table is None:
            return False
        new, column = found[1] not in table.columns, table.columns.setdefault(found[1], AssumedColumn())
        column.type = TIMESTAMP if "rowtime" in found[0] else column.type
        former, column.required = column.required, column.required or "rimary key" in found[0]
        return new or column.required != former

    def _add_united_columns(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        """Give a table of which a side of a set operation reads every column the columns of the other side."""
        changed, tree = False, self.statements[number].tree
        for parts, names in united_tables(tree) if tree is not None else ():
            table = self.tables.get(parts)
            if table is not None and table.columns.keys() != set(names):
                changed, table.columns = True, {each: table.columns.get(each, AssumedColumn()) for each in names}
        return changed

    def _retype_united(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        """Change the type of a column of a table that a side of a set operation reads whole."""
        tree, place = self.statements[number].tree, int(found[1]) - 1
        for parts, names in united_tables(tree) if tree is not None else ():
            table = self.tables.get(parts)
            column = table.columns.get(names[place]) if table is not None and place < len(names) else None
            if column is not None and self._retype_column(column, (TIMESTAMP, NUMBER, TEXT, "DOUBLE", "BOOLEAN")):
                return True
        return False

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
        sinks = [each for parts, each in self.tables.items() if each.sink and parts[-1] == simple(found[1])]
        if not sinks:
            return self._match_sources(number, simple(found[1]), columns_of(found[2]), columns_of(found[3]))
        sink = sinks[0]
        query = columns_of(found[2])
        names = list(sink.columns) if len(sink.columns) == len(query) else [name for name, _ in query]
        if len(set(names)) < len(names):
            names = [f"{name}_{place}" for place, name in enumerate(names)]
        former = [each.type for each in sink.columns.values()] if len(sink.columns) == len(query) else []
        former = former or [type_ for _, type_ in query]
        typed = zip(names, former, query, strict=True)
        columns = {name: AssumedColumn(common_type(before or type_, type_)) for name, before, (_, type_) in typed}
        if columns == sink.columns:
            return False
        sink.columns = columns
        return True

    def _match_sources(
        self, number: int, sink: str, query: Sequence[tuple[str, str]], wanted: Sequence[tuple[str, str]]
    ) -> bool:
        tree = self.statements[number].tree
        for place, ((name, has), (_, type_)) in enumerate(zip(query, wanted, strict=False)):
            span = f"{name} {output_at(tree, sink, place) if tree is not None else ''}"
            if has != type_ and self._retype(span, number, (type_,)):
                return True
        return False

    def _match_created(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        """Give the sources of CREATE TABLE AS the type of a declared column."""
        tree = self.statements[number].tree
        query = tree.args.get("expression") if isinstance(tree, nodes.CreateTable) else None
        names = output_names(query)
        if tree is None or found[1] not in names:
            return False
        span, wanted = output_at(tree, tree.this.name, names.index(found[1])), re.sub(r" NOT NULL$", "", found[3])
        if found[2] != wanted:
            return self._retype(span, number, (wanted,))
        free = [each for each in self._columns(self._names_in(span, number), number) if not each.required]
        for each in free:
            each.required = True
        return bool(free)

    def _change_type(self, number: int, found: re.Match[str], texts: Sequence[str]) -> bool:
        """Change the type of a column in the expression that Flink refuses."""
        span = refused_part(self.statements[number].text, texts)
        wanted = [TIMESTAMP] if "INTERVAL" in found[1] else []
        wanted += named_types(f"{found[2]} {found[1]}")
        return self._retype(span, number, (*wanted, NUMBER, TEXT, TIMESTAMP, "DOUBLE", "BOOLEAN"))

    def _retype(self, span: str, number: int, order: Sequence[str]) -> bool:
        """Give a column or function in a part of a statement the first type in an order that was not tried."""
        names = self._names_in(span, number)
        if any(self._retype_column(column, order) for column in self._columns(names, number)):
            return True
        return self.functions.retype(names, order)

    def _retype_column(self, column: AssumedColumn, order: Sequence[str]) -> bool:
        tried = self._tried.setdefault(id(column), {column.type or TEXT})
        type_ = next((each for each in order if each not in tried), None)
        if type_ is None or column.fields or column.type in (ROWTIME, PROCTIME):
            return False
        tried.add(type_)
        column.type = type_
        return True

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
    (r"Expression '([^']+)' is not being grouped", Assumptions._aggregate),
    (
        r"(?:Primary key column|Invalid primary key '[^']*'\. Column|rowtime attribute field|Unknown identifier)"
        r" '([^']+)'",
        Assumptions._add_copied_column,
    ),
    (r"Column count mismatch in (\w+)", Assumptions._add_united_columns),
    (r"Type mismatch in column (\d+) of", Assumptions._retype_united),
    (
        r"Incompatible types for sink column '([^']+)'.* has type '([^']+)', .* has type '([^']+)'",
        Assumptions._match_created,
    ),
    (rf"(?:{_REFUSED_ARGUMENTS})(.*?)Supported(.*)", Assumptions._change_type),
    (rf"(?:{_REFUSED_ARGUMENTS})(.*?)()$", Assumptions._change_type),
    (r"Rowtime attributes must not be in the input rows", Assumptions._drop_rowtime),
    (r"Sort on a non-time-attribute field|must be defined on a time attribute", Assumptions._add_rowtime),
)
"""Flink's messages, and the methods that they call for."""


def _sets_dialect(option: exp.Expr) -> bool:
    return option.this is not None and option.this.name == "table.sql-dialect"


def _is_insert(node: exp.Expr) -> bool:
    return isinstance(node, nodes.InsertInto) and isinstance(node.this, exp.Table)
