"""Aggregations of a script: the operators that Flink plans for them and their layout."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from airflow_flinkcompat.connectors.facts import Known
from airflow_flinkcompat.exec_graph.columns import stored_as
from airflow_flinkcompat.exec_graph.layout import (
    CannotLower,
    NamedState,
    StateField,
    StateLayout,
    StateNamespace,
    Stored,
    Unknown,
)
from airflow_flinkcompat.exec_graph.nodes.aggregate import MERGED_SESSIONS, PlannedCall, accumulated
from airflow_flinkcompat.exec_graph.nodes.sink import cast_by_calc
from airflow_flinkcompat.exec_graph.nodes.source import columns_read, derive_source, every_column, stretch_above
from airflow_flinkcompat.exec_graph.script_job import (
    CALC,
    GLOBAL,
    GROUP,
    LOCAL,
    SCAN,
    PlannedJob,
    PossibleChains,
    check_functions,
    check_no_operators,
    shown_output,
)
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, Literal
from airflow_flinkcompat.plan.nodes import Table, WindowField, WindowKind
from airflow_flinkcompat.plan.operators import AggregateKind, AggregateOperator, Source
from airflow_flinkcompat.plan.origins import SourceColumn, describe, window_field
from airflow_flinkcompat.plan.types import BIGINT, DataType, TimeAttribute
from airflow_flinkcompat.savepoint.kinds import KeyedStateKind

_NAMESPACES = {
    AggregateKind.GROUP: StateNamespace.NONE,
    AggregateKind.WINDOW: StateNamespace.WINDOW_END,
    AggregateKind.GROUP_WINDOW: StateNamespace.WINDOW,
}


@dataclass(frozen=True)
class _Call:
    """A call with the types of what it is over."""

    call: AggregateCall
    arguments: tuple[DataType, ...]

    @property
    def words(self) -> str:
        """For a reader, such as ``COUNT(DISTINCT c)``."""
        return describe(self.call)

    @property
    def over_values(self) -> tuple[Expression, ...]:
        """Its arguments, but that COUNT of a constant, or of a column that is never NULL, counts rows."""
        args = self.call.args
        never_null = all(isinstance(each, Literal) or not type.nullable for each, type in self.typed)
        return () if self.call.function == "COUNT" and never_null and not self.call.distinct else args

    @property
    def typed(self) -> Iterable[tuple[Expression, DataType]]:
        """Its arguments with their types."""
        return zip(self.call.args, self.arguments, strict=True)


_ROWS = _Call(AggregateCall("COUNT", (), BIGINT), ())


def derive_aggregation(
    operator: AggregateOperator,
    time_to_live: bool,
    keys_in_order: bool = False,
    retracting: bool = False,
    unretracted: Collection[int] = (),
) -> StateLayout:
    """The state of an aggregation to which rows come one by one."""
    namespace = _namespace(operator, keys_in_order)
    fields, beside = _accumulated(_calls(operator, retracting), retracting, unretracted)
    grouped = namespace is StateNamespace.NONE
    accumulators = NamedState(
        "accState" if grouped else "window-aggs", KeyedStateKind.VALUE, Stored("row", fields), namespace=namespace
    )
    lives = grouped and time_to_live
    states = tuple(replace(each, namespace=namespace, time_to_live=lives) for each in (accumulators, *beside))
    key = tuple(
        StateField(stored_as(type), ("key", key), describe(key))
        for key, type in zip(operator.keys, operator.key_types, strict=True)
    )
    timers = "user-timers" if grouped else "window-timers"
    return StateLayout(
        key, (*states, MERGED_SESSIONS) if _in_sessions(operator) else states, timers, retracting=retracting
    )


def planned_calls(operator: AggregateOperator) -> Mapping[AggregateCall, Hashable]:
    """The calls of a script as the layout of its aggregation names them."""
    return dict(zip(operator.aggregates, map(_meaning, _written(operator)), strict=True))


def _written(operator: AggregateOperator) -> list[_Call]:
    return [
        _Call(replace(call, distinct=False) if call.function in ("MIN", "MAX") else call, types)
        for call, types in zip(operator.aggregates, operator.argument_types, strict=True)
    ]


def _calls(operator: AggregateOperator, retracting: bool) -> list[_Call]:
    """The calls as Flink plans them, each once; of hopping windows, and where some are taken back, rows are counted."""
    calls = _written(operator)
    hops = operator.window is not None and operator.window.window.kind is WindowKind.HOP
    counted = retracting or (hops and operator.kind is AggregateKind.WINDOW)
    if counted and all(_meaning(each) != _meaning(_ROWS) for each in calls):
        calls.append(_ROWS)
    return list({_meaning(each): each for each in calls}.values())


def _namespace(operator: AggregateOperator, keys_in_order: bool) -> StateNamespace:
    odd = operator.grouping_sets is not None or operator.repeated_keys or operator.repeated_calls
    if odd or operator.pruned_inputs or operator.window_computations or operator.window_aggregates:
        raise CannotLower("this form of an aggregation is planned with further operators")
    on_event_time = operator.window is not None and operator.window.time_attribute is TimeAttribute.ROWTIME
    certain = keys_in_order or (operator.kind is AggregateKind.WINDOW and on_event_time)
    if operator.segment.filters and len(operator.keys) > 1 and not certain:
        raise CannotLower("the order of the keys may be that of the table's columns, or of what is put out")
    if operator.segment.filters and operator.kind is AggregateKind.WINDOW and _in_sessions(operator):
        raise CannotLower("a condition on its keys may have sessions assigned by an operator of its own")
    read = {part for call in operator.aggregates if call.function != "COUNT" for part in call.args}
    if read & set(operator.keys):
        raise CannotLower("an expression of a key alone is planned away")
    averaged = any(call.function == "AVG" for call in operator.aggregates)
    if averaged and not operator.keys and any(call.distinct for call in operator.aggregates):
        raise CannotLower("an average beside DISTINCT, without a key, may be planned as a sum and a count")
    if operator.kind not in _NAMESPACES:
        raise CannotLower(f"what a {operator.kind} keeps is not known")
    return StateNamespace.WINDOW if _in_sessions(operator) else _NAMESPACES[operator.kind]


def _in_sessions(operator: AggregateOperator) -> bool:
    return operator.window is not None and operator.window.window.kind is WindowKind.SESSION


def _accumulated(
    calls: Sequence[_Call], retracting: bool, unretracted: Collection[int]
) -> tuple[tuple[StateField, ...], tuple[NamedState, ...]]:
    """The row of accumulators, and the states beside it."""
    planned = []
    for number, each in enumerate(calls):
        if each.call.language != "builtin" or each.call.order_by:
            raise CannotLower("the state of a user-defined aggregate function is not known")
        values = each.over_values
        planned.append(
            PlannedCall(
                *_meaning(each),
                each.words,
                stored_as(_result(each)),
                stored_as(each.arguments[0]) if values else "",
                retracting and number not in unretracted,
                values if each.call.distinct else None,
                describe(values[0]) if values else "",
                hidden=each is _ROWS,
            )
        )
    made = accumulated(planned)
    if isinstance(made, Unknown):
        raise CannotLower(made.reason)
    return made


def _result(each: _Call) -> DataType:
    spec = functions.lookup(each.call.function)
    if spec is None:
        raise CannotLower(f"what {each.call.function} keeps is not known")
    return spec.result_type(each.arguments)


def _meaning(each: _Call) -> tuple[str, Hashable]:
    """Its function, and what it is over."""
    return each.call.function, (each.over_values, each.call.distinct, each.call.filter)


_IN_TWO_PHASES = frozenset({"SUM", "COUNT", "MAX", "MIN", "AVG"})
"""Calls that a windowed aggregation computes in two phases."""


def aggregated_table(job: PlannedJob, operator: AggregateOperator) -> tuple[Table, AggregateOperator]:
    """The table under an aggregation that is planned as one."""
    check_no_operators(operator.segment)
    check_no_operators(job.output.segment)
    if not isinstance(operator.segment.origin, Source) or job.output.segment.windows:
        raise CannotLower("only aggregations over one table are known")
    odd = operator.grouping_sets is not None or operator.repeated_keys or operator.repeated_calls
    if odd or operator.pruned_inputs or operator.window_computations or operator.window_aggregates:
        raise CannotLower("this form of an aggregation is planned with further operators")
    if any(call.language != "builtin" or call.order_by for call in operator.aggregates):
        raise CannotLower("aggregate functions of one's own are not known")
    check_functions(
        job, (*operator.expressions, *operator.segment.filters, *job.output.columns, *job.output.segment.filters)
    )
    return derive_source(job, operator.segment.origin), operator


def aggregation_operators(job: PlannedJob, operator: AggregateOperator, table: Table) -> PossibleChains:
    """The operators from the scan to what stands above the aggregation."""
    wanted = tuple(dict.fromkeys((*operator.keys, *(part for call in operator.aggregates for part in _taken(call)))))
    filtered = bool(operator.segment.filters)
    if operator.kind is AggregateKind.GROUP:
        if operator.segment.windows:
            raise CannotLower("only aggregations over one table are known")
        times = {column.name for column in table.columns if column.time_attribute is not None}
        if times & {part.column for part in wanted if isinstance(part, SourceColumn)}:
            raise CannotLower("a time that is grouped by or aggregated is planned as a value")
        below = stretch_above(table, wanted, filtered, ordered=False)
        if below == ((SCAN, CALC),) and not filtered and set(columns_read(wanted)) == every_column(table):
            below = (*below, (SCAN,))  # all columns in another order: the aggregation may take them as they come
        return tuple((*kinds, GROUP, *above) for kinds, above in product(below, _above(job, operator)))
    window = operator.window
    if operator.kind is not AggregateKind.WINDOW or window is None or len(operator.segment.windows) != 1:
        raise CannotLower(f"a {operator.kind} is not known")
    if window.window.kind is WindowKind.SESSION or window.time_attribute is not TimeAttribute.ROWTIME:
        raise CannotLower("session windows and windows of processing time are not known")
    if not isinstance(window.time, SourceColumn) or window.partition_by:
        raise CannotLower("a window over a computed time is not known")
    if any(call.function not in _IN_TWO_PHASES for call in operator.aggregates):
        raise CannotLower("whether these calls are computed in two phases is not known")
    wanted = tuple(dict.fromkeys((*wanted, window.time)))
    below = stretch_above(table, wanted, filtered, ordered=True)
    return tuple((*kinds, LOCAL, GLOBAL, *above) for kinds, above in product(below, _above(job, operator)))


def _taken(call: AggregateCall) -> Iterator[Expression]:
    """What a call wants of its input; COUNT of a constant counts rows."""
    for part in (*call.args, call.filter):
        if part is not None and not (call.function == "COUNT" and isinstance(part, Literal) and part.value is not None):
            # A condition is handed on as a value of its own.
            yield part if part is not call.filter else FunctionCall("IS TRUE", (part,), part.type)


def _above(job: PlannedJob, operator: AggregateOperator) -> PossibleChains:
    """Whether a Calc stands between an aggregation and the sink."""
    converted, columns = cast_by_calc(job), job.output.columns
    if job.output.segment.filters or converted is Known.YES:
        return ((CALC,),)
    handed = (*operator.keys, *operator.aggregates)
    shown = tuple(shown_output(column) for column in columns)
    fields = (WindowField.START, WindowField.END) if operator.window is not None else ()
    if shown[: len(handed)] == handed and tuple(map(window_field, columns[len(handed) :])) == fields:
        return ((),) if converted is Known.NO else ((), (CALC,))
    if operator.window is None:
        # A projection of nothing but columns may be merged into an aggregation with a condition below.
        merged = operator.segment.filters and len(operator.keys) > 1
        return ((), (CALC,)) if merged else ((CALC,),)
    return ((CALC,),) if not any(map(window_field, columns)) else ((), (CALC,))
