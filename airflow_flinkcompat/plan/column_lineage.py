"""Lineage from columns of source tables to each sink column, through views, joins and aggregations.

A column is an origin if its value reaches the sink column: unchanged, in a computation, aggregated, or in the filter
of an aggregate. A column that only decides which rows exist (WHERE, join conditions) is no origin. If a construct
hides its columns (MATCH_RECOGNIZE, a query that could not be analysed), no origin is guessed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_

from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, InputRef, Literal
from airflow_flinkcompat.plan.nodes import Sink
from airflow_flinkcompat.plan.operators import Operator, OtherKind, OtherOperator, Output, Source, StatelessSegment
from airflow_flinkcompat.plan.origins import (
    ColumnOutput,
    KeyOutput,
    OperatorColumn,
    PassedOutput,
    RankNumber,
    SourceColumn,
    WindowColumn,
    leaves,
)

ColumnOrigin = tuple[str, str]
"""The name of a table and the name of one of its columns."""
_Part = ColumnOrigin | str | Literal
"""A column, the name of a function, or a constant."""


# Constructs whose output columns are their input columns.
_PASSING = frozenset({OtherKind.UNION_ALL, OtherKind.LIMIT, OtherKind.TEMPORAL_SORT})


@dataclass(frozen=True)
class Composition:
    """The columns, functions and constants from which a value is computed.

    Attributes:
        columns: The table columns.
        functions: The names of the called functions, in upper case. A planner may have replaced some functions.
        literals: The constants as text. A planner may have folded some constants.
    """

    columns: frozenset[Hashable] = frozenset()
    functions: frozenset[str] = frozenset()
    literals: frozenset[str] = frozenset()

    def __or__(self, other: Composition) -> Composition:
        return Composition(
            self.columns | other.columns, self.functions | other.functions, self.literals | other.literals
        )


def together(parts: Iterable[Composition | None]) -> Composition | None:
    """Combine the compositions of several values; None if one of them is unknown."""
    known = list(parts)
    return None if None in known else reduce(or_, (each for each in known if each is not None), Composition())


class _HiddenOrigin(Exception):
    """Raised if a construct hides the origin of a column."""


def column_origins(sink: Sink, output: Output) -> Mapping[str, tuple[ColumnOrigin, ...]]:
    """The origins of each column that an INSERT writes."""
    names = _names(sink)
    if len(names) != len(output.columns):
        return {}
    found: dict[str, tuple[ColumnOrigin, ...]] = {}
    for name, column in zip(names, output.columns, strict=True):
        try:
            parts = dict.fromkeys(_of(column, output.segment))
        except _HiddenOrigin:
            continue
        found[name] = tuple(part for part in parts if isinstance(part, tuple))
    return found


def composition(value: Expression, segment: StatelessSegment) -> Composition | None:
    """The composition of a value, traced through all upstream operators; None if unknown."""
    try:
        parts = set(_of(value, segment))
    except _HiddenOrigin:
        return None
    return Composition(
        frozenset(part for part in parts if isinstance(part, tuple)),
        frozenset(part for part in parts if isinstance(part, str)),
        frozenset(str(part.value) for part in parts if isinstance(part, Literal)),
    )


def _names(sink: Sink) -> tuple[str, ...]:
    if sink.columns or sink.table is None:
        return sink.columns
    fixed = {name for name, _ in sink.partition}
    return tuple(column.name for column in sink.table.written if column.name not in fixed)


def _of(value: Expression, segment: StatelessSegment) -> Iterator[_Part]:
    if isinstance(value, FunctionCall):
        yield value.function
        for argument in value.args:
            yield from _of(argument, segment)
        return
    for leaf in leaves(value):
        match leaf:
            case Literal():
                yield leaf
            case SourceColumn(column=column) if isinstance(segment.origin, Source):
                yield segment.origin.table, column
            case OperatorColumn(output=output) if isinstance(segment.origin, Operator):
                yield from _output_origins(segment.origin, output)
            case WindowColumn(field=field, level=level) if level < len(segment.windows):
                yield field.value
                yield from _of(segment.windows[-1 - level].time, segment)
            case SourceColumn() | OperatorColumn() | WindowColumn() | InputRef():
                raise _HiddenOrigin


def _output_origins(operator: Operator, output: object) -> Iterator[_Part]:
    """The origins of one output of an operator."""
    match output:
        case KeyOutput(key=inner):
            yield from _of(inner, operator.segments[0])
        case PassedOutput(input=side, column=inner):
            yield from _of(inner, operator.segments[side])
        case AggregateCall(args=args, filter=condition):
            yield output.function
            for part in (*args, *([] if condition is None else [condition])):
                yield from _of(part, operator.segments[0])
        case WindowColumn():
            yield from _of(output, operator.segments[0])
        case ColumnOutput(index=index) if isinstance(operator, OtherOperator) and operator.kind in _PASSING:
            for row, segment in zip(operator.input_columns, operator.segments, strict=True):
                yield from _of(row[index], segment)
        case RankNumber():
            return
        case _:
            raise _HiddenOrigin
