"""The form of a query that affects its plan, and the names in its expressions and texts.

Flink plans Table API queries differently from SQL. For the Table API, Flink keeps unread columns in the input of a
window or an aggregation and does not rewrite OVER calls (measured with EXPLAIN on 2.3).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from airflow_flinkcompat.model import NormalForm
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.expressions import (
    ACCESSES,
    AggregateCall,
    Expression,
    FunctionCall,
    InputRef,
    called,
    walk,
)
from airflow_flinkcompat.plan.nodes import Correlate, Filter, Node, Opaque, Over, Project, Union, WindowAssign
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    AssignedWindow,
    JoinOperator,
    Operator,
    OtherOperator,
    Output,
    OverOperator,
    operators,
    segments,
    sources,
)
from airflow_flinkcompat.plan.origins import FunctionColumn, KeyOutput, OperatorColumn, PassedOutput
from airflow_flinkcompat.plan.program import Pipeline, Program

ENDS = ("from_path", "insert", "execute")
"""Table API steps that begin or end a query."""


class QueryApi(StrEnum):
    """API in which the operators of a query are written."""

    SQL = "SQL"
    TABLE_API = "the Table API"
    BOTH = "SQL and the Table API"


@dataclass(frozen=True)
class QueryForm:
    """The form of a query on one side.

    ``operations``: Table API operations, sources first, without parts that other rules compare. ``input_columns``: all
    input columns of each operator of a Table API query, read or unread; the operator nearest the sink is first.
    """

    api: QueryApi
    operations: tuple[str, ...]
    input_columns: tuple[tuple[Expression, ...], ...] = ()

    @property
    def without_columns(self) -> tuple[QueryApi, tuple[str, ...]]:
        """The API and the operations, without the columns."""
        return self.api, self.operations


def operations(steps: Iterable[str], *, filters: bool = False) -> tuple[str, ...]:
    """Table API operations among the steps of a query; SQL steps after the last operation are left out."""
    found = [step.partition(":")[0] for step in steps if step not in ENDS]
    while found and found[-1] == "sql_query":
        found.pop()
    return tuple(step for step in found if filters or step != "filter")


def query_form(pipeline: Pipeline, output: Output) -> QueryForm:
    """The form of a query on one side."""
    used = operations(pipeline.steps)
    if not used:
        return QueryForm(QueryApi.SQL, used)
    api = _api(used, operators(output))
    if api is QueryApi.SQL:
        return QueryForm(api, used)
    return QueryForm(api, used, tuple(columns for each in operators(output) for columns in _input_columns(each)))


def _input_columns(operator: Operator) -> tuple[tuple[Expression, ...], ...]:
    """All columns of each input of an operator to which the Table API may pass unread columns."""
    if isinstance(operator, AggregateOperator):
        return (operator.input_columns,)
    return operator.input_columns if isinstance(operator, JoinOperator | OtherOperator) else ()


def _api(used: tuple[str, ...], found: tuple[Operator, ...]) -> QueryApi:
    """The API of a query; an operator without a corresponding Table API step is written in SQL."""
    there = Counter(_step(operator) for operator in found)
    made = Counter("aggregate" if step == "distinct" else step for step in used)
    counts = [(made[step], count) for step, count in there.items() if step != "other"]
    if not counts:
        return QueryApi.TABLE_API
    if all(by_api == count for by_api, count in counts):
        return QueryApi.TABLE_API
    return QueryApi.BOTH if any(by_api for by_api, _ in counts) else QueryApi.SQL


def _step(operator: Operator) -> str:
    """The Table API step of an operator; "sql" if only SQL has the operator, "other" for all others."""
    match operator:
        case AggregateOperator(window=None):
            return "aggregate"
        case AggregateOperator(window=AssignedWindow(notation="group window")):
            return "window"
        case OverOperator() | OtherOperator(kind=OverOperator.KIND):
            return "over"
        case AggregateOperator():
            return "sql"
    return "other"


def same_nesting(old: Node, new: Node) -> bool:
    """True if two queries have the same nesting, apart from projections and conditions that Flink merges."""
    numbers: dict[tuple[object, ...], int] = {}
    return _nesting(old, numbers, {}) == _nesting(new, numbers, {})


def _nesting(node: Node, numbers: dict[tuple[object, ...], int], seen: dict[int, int]) -> int:
    """A number for the nesting of a node; a view that is read several times is visited only once."""
    if id(node) not in seen:
        numbered = [_nesting(each, numbers, seen) for each in node.inputs]
        below = tuple(numbered)
        form = _form(node, below)
        seen[id(node)] = below[0] if form is None else numbers.setdefault(form, len(numbers))
    return seen[id(node)]


def _form(node: Node, below: tuple[int, ...]) -> tuple[object, ...] | None:
    """The contribution of a node to the nesting; None for merged projections and conditions."""
    match node:
        case Correlate() | Opaque():
            return (type(node).__name__, *(_selected_positions(each, in_order=False) for each in node.inputs), *below)
        case WindowAssign():
            return (type(node).__name__, _selected_positions(node.input, in_order=True), *below)
        case Filter(input=Over()):
            return ("QUALIFY", *below)
        case Project(input=Project() as inner) if called := _repeated_functions(inner, node.expressions):
            return ("not merged", called, *below)
        case Filter(input=Project() as inner) if called := _repeated_functions(inner, (node.condition,) * 2):
            return ("not merged", called, *below)
        case Project() | Filter():
            return None
        case Union():
            return ("Union", frozenset(below))
    return (type(node).__name__, *below)


def _selected_positions(below: Node, *, in_order: bool) -> tuple[int | None, ...]:
    """Positions of selected columns; empty for all columns and, with ``in_order``, for an ordered subset."""
    columns, whole = _columns(below)
    selected = [each for each in columns if each is not None]
    return () if selected == [*range(whole)] or (in_order and selected == sorted(selected)) else columns


def _columns(node: Node) -> tuple[tuple[int | None, ...], int]:
    """Input position of each projected column (None if computed), and the number of input columns."""
    while isinstance(node, Filter):
        node = node.input
    if not isinstance(node, Project):
        return tuple(range(len(node.schema))), len(node.schema)
    below, whole = _columns(node.input)
    return tuple(below[each.index] if isinstance(each, InputRef) else None for each in node.expressions), whole


def _repeated_functions(inner: Project, above: Iterable[Expression]) -> frozenset[str]:
    """Functions that a merged projection would call several times for a row with different results."""
    read = Counter(each.index for whole in above for each in walk(whole) if isinstance(each, InputRef))
    often = (column for place, column in enumerate(inner.expressions) if read[place] > 1)
    names = {call.function for call in called(*often)}
    known = (name for name in names if name in ACCESSES or functions.lookup(name) is not None)
    return frozenset(names.difference(known) | names & functions.ANEW_FOR_EACH_ROW)


def function_names(value: Any) -> Iterable[str]:
    """The lower-case names of the functions in a resolved value."""
    return (call.function.lower() for call in calls(value))


def calls(value: Any) -> Iterator[FunctionCall | AggregateCall]:
    """The function and aggregate calls in a resolved value."""
    match value:
        case tuple() | frozenset():
            for part in value:
                yield from calls(part)
        case FunctionCall(args=args):
            yield value
            yield from calls(args)
        case AggregateCall(args=args, filter=condition):
            yield value
            yield from calls((*args, condition))
        case FunctionColumn(call=inner) | OperatorColumn(output=inner) | KeyOutput(key=inner):
            yield from calls(inner)
        case PassedOutput(column=inner):
            yield from calls(inner)


def expressions(output: Output) -> list[Any]:
    """All resolved expressions between the sources and the sink."""
    found = stateless_expressions(output)
    for operator in operators(output):
        found += operator.expressions
    return found


def stateless_expressions(output: Output) -> list[Any]:
    """The resolved expressions outside the stateful operators of a pipeline."""
    found: list[Any] = [*output.columns]
    for segment in segments(output):
        found += segment.filters | segment.window_filters
        found += [call for call, _ in segment.functions]
        for window in segment.windows:
            found += (window.time, *window.partition_by)
    return found


def tables_of(output: Output) -> frozenset[str]:
    """Names of the tables that a query reads or writes."""
    return frozenset({output.sink, *(source.table for source in sources(output))})


def never_null(output: Output, program: Program) -> set[str]:
    """Names of the columns that the tables of a query declare as NOT NULL or as part of a primary key."""
    read = {source.table for source in sources(output)}
    tables = [table for table in program.tables if table.name in read]
    declared = {column.name for table in tables for column in table.columns if not column.type.nullable}
    return declared | {name for table in tables for name in table.primary_key}


def words(*texts: object) -> frozenset[str]:
    """All words of some texts in lower case. Each name in a text consists of one or more words."""
    spelled = (f"{text.form} {text.text}" if isinstance(text, NormalForm) else str(text) for text in texts)
    return frozenset(word for text in spelled for word in re.findall(r"\w+", text.lower()))


def with_views(found: frozenset[str], views: Mapping[str, object]) -> frozenset[str]:
    """Words of a text, with the words of all views that the text may name directly or through other views."""
    left = {name: words(text) for name, text in views.items()}
    while reached := [name for name in left if may_name(found, name)]:
        found = found.union(*(left.pop(name) for name in reached))
    return found


def may_name(found: frozenset[str], name: str) -> bool:
    """True if a text with these words may name the object; only the last part of the name is compared."""
    return words(name.replace("`", "").rpartition(".")[2]) <= found


_PAIR = re.compile(r"(?P<key>[\w.-]+)='(?P<value>(?:[^']|'')*)'")
OPTIONS = "OPTIONS"


def hint_options(hints: Iterable[tuple[str, str]], name: str) -> Iterator[tuple[str, str]]:
    """The keys and values in all hints with one name."""
    for hint, text in hints:
        if hint == name:
            yield from ((found["key"], found["value"]) for found in _PAIR.finditer(text))
