"""Aggregations as operators, built from resolved keys and calls."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from airflow_flinkcompat.plan.expressions import AggregateCall, Expression
from airflow_flinkcompat.plan.nodes import Aggregate, GroupWindowAggregate, WindowAggregate, WindowField, WindowKind
from airflow_flinkcompat.plan.operators import AggregateOperator, AssignedWindow, StatelessSegment
from airflow_flinkcompat.plan.origins import (
    KeyOutput,
    OperatorColumn,
    WindowColumn,
    normalize,
    normalize_aggregate,
    uses_window_field,
    window_field,
)
from airflow_flinkcompat.plan.types import UNKNOWN, DataType


@dataclass(frozen=True)
class Calls:
    """The calls of an aggregation.

    ``written`` are the calls in written order, and ``each`` are their meanings. ``unique`` are the different meanings
    in order of first use.
    """

    written: tuple[AggregateCall, ...]
    each: tuple[AggregateCall, ...]
    unique: tuple[AggregateCall, ...]
    argument_types: tuple[tuple[DataType, ...], ...]

    @property
    def repeated(self) -> int:
        """The number of calls that equal another call only after columns are resolved; Flink keeps both."""
        return len({normalize_aggregate(call) for call in self.written}) - len(self.unique)


def aggregation(
    node: Aggregate,
    segment: StatelessSegment,
    input_columns: tuple[Expression, ...],
    keys: tuple[Expression, ...],
    calls: Calls,
) -> AggregateOperator:
    """The operator of an aggregation over ``segment``, whose rows have the columns ``input_columns``."""
    bare_keys = tuple(map(normalize, keys))
    fields = [window_field(key) for key in bare_keys]
    plain = tuple({key: None for key, field in zip(bare_keys, fields, strict=True) if field is None})
    places = {key: i for i, key in enumerate(plain)}
    order = {field or places[key]: None for key, field in zip(bare_keys, fields, strict=True)}
    written = dict(zip(reversed(bare_keys), reversed(keys), strict=True))
    window = segment.windows[-1] if segment.windows else None
    windowed = isinstance(node, WindowAggregate) and not _of_other_sessions(window, bare_keys)
    below = segment.origin
    if window is None and isinstance(below, AggregateOperator) and any(map(uses_window_field, bare_keys)):
        # A lower aggregation passes window fields up, so this aggregation runs on the same window.
        window = below.window
    return AggregateOperator(
        segment=segment,
        keys=plain,
        window_keys=frozenset({field for field in fields if field is not None}),
        key_order=tuple(order),
        aggregates=calls.unique,
        grouping_sets=_sets(node.grouping_sets, bare_keys),
        window=window,
        windowed=windowed,
        repeated_keys=len(bare_keys) - len(set(bare_keys)),
        repeated_calls=calls.repeated,
        input_columns=tuple(map(normalize, input_columns)),
        key_types=tuple(written[key].type for key in plain),
        argument_types=calls.argument_types,
        span=node.span,
    )


def group_window_aggregation(
    node: GroupWindowAggregate,
    segment: StatelessSegment,
    input_columns: tuple[Expression, ...],
    time: Expression,
    keys: tuple[Expression, ...],
    calls: Calls,
) -> AggregateOperator:
    """The operator of an aggregation on a group window, from legacy SQL or the Table API."""
    bare_keys = tuple(normalize(key) for key in keys)
    position = node.window_position
    return AggregateOperator(
        segment=segment,
        keys=bare_keys,
        window_keys=frozenset(),
        # The position of the window call among the keys shows if the window key was moved.
        key_order=(*range(position), WindowField.START, *range(position, len(keys))),
        aggregates=calls.unique,
        grouping_sets=_sets(node.grouping_sets, bare_keys),
        window=AssignedWindow(
            window=node.window,
            time=normalize(time),
            time_attribute=node.time_attribute,
            notation="group window",
            mismatched=node.mismatched,
            span=node.span,
        ),
        windowed=True,
        repeated_calls=calls.repeated,
        input_columns=tuple(map(normalize, input_columns)),
        key_types=tuple(key.type for key in keys),
        argument_types=calls.argument_types,
        span=node.span,
    )


def result_columns(keys: tuple[Expression, ...], calls: Calls) -> tuple[Expression, ...]:
    """The result columns of an aggregation: its keys, then its calls in written order."""
    of_keys = [OperatorColumn(0, KeyOutput(normalize(key)), type=key.type, span=key.span) for key in keys]
    of_calls = [
        OperatorColumn(0, bare, type=call.type, span=call.span)
        for call, bare in zip(calls.written, calls.each, strict=True)
    ]
    return (*of_keys, *of_calls)


def properties(node: GroupWindowAggregate) -> tuple[Expression, ...]:
    """The selected fields of a group window."""
    columns = node.schema[len(node.schema) - len(node.properties) :]
    return tuple(
        OperatorColumn(0, WindowColumn(name, type=UNKNOWN), type=column.type)
        for name, column in zip(node.properties, columns, strict=True)
    )


def _of_other_sessions(window: AssignedWindow | None, keys: tuple[Expression, ...]) -> bool:
    """True if sessions and groups have different keys; Flink then plans no windowed aggregation (EXPLAIN)."""
    if window is None or window.window.kind is not WindowKind.SESSION:
        return False
    return set(window.partition_by) != {key for key in keys if window_field(key) is None}


def _sets(
    grouping_sets: tuple[tuple[int, ...], ...] | None, keys: tuple[Expression, ...]
) -> frozenset[tuple[frozenset[Expression], int]] | None:
    """Each grouping set as its keys and its multiplicity. The order of the keys has no effect (measured)."""
    if grouping_sets is None:
        return None
    return frozenset(Counter(frozenset(keys[i] for i in one) for one in grouping_sets).items())
