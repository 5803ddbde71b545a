"""References of resolved expressions and of unresolved text, and the options in hints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from airflow_flinkcompat.model import NormalForm
from airflow_flinkcompat.plan.expressions import AggregateCall, FunctionCall
from airflow_flinkcompat.plan.operators import Output, operators, segments, sources
from airflow_flinkcompat.plan.origins import FunctionColumn, KeyOutput, OperatorColumn, PassedOutput
from airflow_flinkcompat.plan.program import Program


def function_names(value: Any) -> Iterable[str]:
    """The function names in any resolved value."""
    return (call.function.lower() for call in calls(value))


def calls(value: Any) -> Iterator[FunctionCall | AggregateCall]:
    """The calls in any resolved value."""
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
    """Every resolved expression between the sources and the sink."""
    found = stateless_expressions(output)
    for operator in operators(output):
        found += operator.expressions
    return found


def stateless_expressions(output: Output) -> list[Any]:
    """The resolved expressions around the operators of a pipeline."""
    found: list[Any] = [*output.columns]
    for segment in segments(output):
        found += segment.filters | segment.window_filters
        found += [call for call, _ in segment.functions]
        for window in segment.windows:
            found += (window.time, *window.partition_by)
    return found


def never_null(output: Output, program: Program) -> set[str]:
    """The columns of a query's tables, by name, that are declared never to be NULL."""
    read = {source.table for source in sources(output)}
    tables = [table for table in program.tables if table.name in read]
    declared = {column.name for table in tables for column in table.columns if not column.type.nullable}
    return declared | {name for table in tables for name in table.primary_key}


def words(*texts: object) -> frozenset[str]:
    """Every word of some texts in lower case: names consist of these words."""
    spelled = (f"{text.form} {text.text}" if isinstance(text, NormalForm) else str(text) for text in texts)
    return frozenset(word for text in spelled for word in re.findall(r"\w+", text.lower()))


def with_views(found: frozenset[str], views: Mapping[str, object]) -> frozenset[str]:
    """Words together with those of the views that they may name, and of the views these may name."""
    left = {name: words(text) for name, text in views.items()}
    while reached := [name for name in left if may_name(found, name)]:
        found = found.union(*(left.pop(name) for name in reached))
    return found


def may_name(found: frozenset[str], name: str) -> bool:
    """True if words may name an object: its catalog and database may be omitted, so the last part counts."""
    return words(name.replace("`", "").rpartition(".")[2]) <= found


_PAIR = re.compile(r"(?P<key>[\w.-]+)='(?P<value>(?:[^']|'')*)'")


OPTIONS = "OPTIONS"


def hinted(hints: Iterable[tuple[str, str]], name: str) -> Iterator[tuple[str, str]]:
    """The keys and values in hints of one name."""
    for hint, text in hints:
        if hint == name:
            yield from ((found["key"], found["value"]) for found in _PAIR.finditer(text))
