"""State of an aggregation, computed from the rows of its input table.

Each part of a call's accumulator is computed separately with the SQL of a backfill. For an average, the parts are the
sum and the count. Windowed rows are assigned to the slices that Flink stores.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from airflow_flinkcompat.backfill.steps import Select, Step, Where
from airflow_flinkcompat.exec_graph.layout import (
    Begins,
    CallPart,
    NamedState,
    StateField,
    StateLayout,
    StateNamespace,
    call_parts,
    nullable,
)
from airflow_flinkcompat.exec_graph.nodes.accumulators import is_retractable_extreme
from airflow_flinkcompat.exec_graph.nodes.aggregate import MERGED_SESSIONS
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.history.derived_rows import NotComputable
from airflow_flinkcompat.history.recomputing import PlainAggregation, PlainCall, PlainState
from airflow_flinkcompat.history.state_rows import (
    BOUND_TYPE,
    PlainRows,
    StateQuery,
    StateRows,
    exact,
    exact_value,
    ttl_types,
)
from airflow_flinkcompat.history.table_rows import TableRows
from airflow_flinkcompat.history.watermarks import possibly_late_rows
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall
from airflow_flinkcompat.plan.nodes import Measure, Node, Window, WindowField, WindowKind
from airflow_flinkcompat.plan.operators import AggregateKind, AggregateOperator
from airflow_flinkcompat.plan.types import APPROXIMATE, BIGINT, DataType, TimeAttribute
from airflow_flinkcompat.savepoint.binary import KeyedStateKind


def aggregation_query(rows: TableRows, operator: AggregateOperator, layout: StateLayout) -> StateQuery:
    if operator.kind is AggregateKind.GROUP_WINDOW:
        return _group_windows(rows, operator, layout)
    of = _Aggregation(rows, operator, layout)
    if of.windows is not None:
        of = replace(of, rows=rows.omit_fired_windows(of.windows))
    states, sessions = tuple(of.computed(state) for state in layout.states), of.sessions
    doubts = () if sessions is None else (possibly_late_rows(rows, of.plain_keys, sessions),)
    zone = rows.zone if of.bounds else "UTC"
    if sessions is not None and zone != "UTC":
        raise NotComputable("session windows in a local time zone other than UTC are not computed from history yet")
    return StateQuery(
        rows.tables, layout.key, states, of.windows, sessions is not None, zone, doubts, plain=of.plain(zone)
    )


def _group_windows(rows: TableRows, operator: AggregateOperator, layout: StateLayout) -> StateQuery:
    """Build the query for legacy group windows, in which each window has a separate accumulator."""
    of = _Aggregation(rows, operator, layout)
    if operator.window is None or operator.window.window.kind is not WindowKind.TUMBLE:
        raise NotComputable("legacy group windows other than TUMBLE are not computed from history yet")
    if operator.window.time_attribute is not TimeAttribute.ROWTIME or rows.time.type.name != "TIMESTAMP":
        raise NotComputable("legacy group windows are computed from history only if the event time is a TIMESTAMP")
    if operator.window.window.measure is not Measure.TIME:
        raise NotComputable("windows that count rows are not computed from history yet")
    if early := [name for name in dict(rows.pipeline.settings) if name.startswith("table.exec.emit.")]:
        raise NotComputable(f"windows with early or late firing ({early[0]}) are not computed from history")
    states = tuple(of.computed(state) for state in layout.states)
    return StateQuery((rows.table,), layout.key, states, spans=True, stores_watermark=False, plain=of.plain("UTC"))


@dataclass(frozen=True)
class _Aggregation:
    rows: TableRows
    operator: AggregateOperator
    layout: StateLayout

    @property
    def sessions(self) -> Window | None:
        assigned = self.operator.window
        if self.operator.kind is not AggregateKind.WINDOW or assigned is None:
            return None
        if assigned.window.kind is not WindowKind.SESSION or assigned.time_attribute is not TimeAttribute.ROWTIME:
            return None
        if set(assigned.partition_by) != set(self.operator.keys):
            raise NotComputable(
                "session windows whose partition key differs from the GROUP BY key are not computed from history yet"
            )
        return assigned.window

    @property
    def windows(self) -> SlicedWindow | None:
        if self.operator.kind is not AggregateKind.WINDOW or self.sessions is not None:
            return None
        assigned = self.operator.window
        found = SlicedWindow.of(assigned.window) if assigned is not None else None
        kept = {state.namespace for state in self.layout.states}
        if assigned is None or found is None or kept != {StateNamespace.WINDOW_END}:
            raise NotComputable("windows whose state Flink does not store in slices are not computed from history yet")
        if assigned.time_attribute is not TimeAttribute.ROWTIME:
            raise NotComputable("the windows use processing time, and history does not record when a row arrived")
        return found

    @property
    def node(self) -> Node:
        """The input rows. Windowed rows are assigned to the slices that Flink stores."""
        if self.operator.kind is AggregateKind.GROUP_WINDOW and self.operator.window is not None:
            return self.rows.in_windows(self.operator.window.window)
        windows, sessions = self.windows, self.sessions
        if sessions is not None:
            return self.rows.in_windows(sessions, tuple(self.plain_keys))
        if windows is None:
            return self.rows.node
        return self.rows.in_windows(
            Window(WindowKind.TUMBLE, size=windows.step, offset=windows.offset, measure=Measure.TIME)
        )

    @property
    def plain_keys(self) -> tuple[Expression, ...]:
        return tuple(map(self.rows.of_type, self.operator.keys, self.operator.key_types))

    @property
    def bounds(self) -> tuple[WindowField, ...]:
        """Window fields that follow the key columns."""
        if self.sessions is not None or self.operator.kind is AggregateKind.GROUP_WINDOW:
            return (WindowField.START, WindowField.END)
        return () if self.windows is None else (WindowField.END,)

    @property
    def keys(self) -> tuple[Expression, ...]:
        return (*self.plain_keys, *map(self.rows.bound, self.bounds))

    @property
    def key_types(self) -> list[str]:
        return [field.type for field in self.layout.key] + [BOUND_TYPE] * len(self.bounds)

    def computed(self, state: NamedState) -> StateRows:
        if state.kind is KeyedStateKind.VALUE and state.value.form == "row":
            return self._accumulators(state)
        if state == MERGED_SESSIONS:
            found = exact(self.rows.grouped(self.node, self.keys, ()), self.key_types)
            bounds = [f"c{i}" for i in range(len(self.plain_keys), len(self.keys))]
            keys = [f"c{i}" for i in range(len(self.plain_keys))]
            return StateRows(state, Select(found, tuple(enumerate([*keys, *bounds, *bounds, *bounds]))))
        (field,) = state.value.fields
        if isinstance(field.meaning, CallPart) and field.meaning.part == "map":
            return self._distinct_values(state, [field.meaning.over])
        if users := _distinct_users(field.meaning):
            if self.windows is not None and self.windows.kind is WindowKind.CUMULATE:
                raise NotComputable(
                    "distinct values are not computed from history yet for CUMULATE windows, whose slices Flink merges"
                )
            return self._distinct_values(state, users)
        raise NotComputable(
            f"the state that {field.words} stores outside its accumulator is not computed from history yet"
        )

    def _accumulators(self, state: NamedState) -> StateRows:
        """Compute the row of accumulators, without the fields that a separate map state stores."""
        computed = [field for field in state.value.fields if field.begins is not Begins.EMPTY_VIEW]
        calls = [self._calls(field) for field in computed]
        flat = [call for of_field in calls for call in of_field]
        rows = [] if self.keys else [AggregateCall("COUNT", (), BIGINT)]
        steps: Step = self.rows.grouped(self.node, self.keys, [*flat, *rows])
        after_rows = len(self.keys) + len(flat)
        if rows:  # Without input rows Flink stores nothing, but Spark returns one row.
            steps = Where(steps, f"c{after_rows} > 0")
        if rows or any(len(of_field) > 1 for of_field in calls):
            numbers, columns = count(len(self.keys)), [f"c{i}" for i in range(len(self.keys))]
            for of_field in calls:
                places = [f"c{next(numbers)}" for _ in of_field]
                if len(of_field) > 1:
                    values = map(exact_value, (str(call.type) for call in of_field), places)
                    places = [f"struct({', '.join(values)})"]
                columns += places
            columns += [f"c{after_rows + len(rows)}" for _ in ttl_types(state)]
            steps = Select(steps, tuple(enumerate(columns)))
        types = ["ROW" if is_retractable_extreme(field.type) else field.type for field in computed]
        return StateRows(state, exact(steps, [*self.key_types, *types, *ttl_types(state)]))

    def _calls(self, field: StateField) -> list[AggregateCall]:
        """Calls that compute an accumulator field. A retractable MIN or MAX also needs a count of values."""
        if not is_retractable_extreme(field.type):
            return [self._call(field)]
        assert isinstance(field.meaning, CallPart)
        arguments, _, wanted = self._over(field.meaning.over)
        return [
            AggregateCall(field.meaning.function, arguments, arguments[0].type, filter=wanted),
            AggregateCall("COUNT", arguments, BIGINT, distinct=True, filter=wanted),
        ]

    def _call(self, field: StateField) -> AggregateCall:
        part = field.meaning
        if not isinstance(part, CallPart):
            raise NotComputable(f"{field.words} is not computed from history yet")
        arguments, distinct, wanted = self._over(part.over)
        if self.layout.retracting and part.part == "sum" and arguments[0].type.name in APPROXIMATE:
            raise NotComputable(
                f"{field.words} sums FLOAT or DOUBLE values and subtracts retracted rows, so its rounding cannot "
                "be reproduced"
            )
        match part.part, part.function:
            case "count", _:
                return AggregateCall("COUNT", arguments, BIGINT, distinct=distinct, filter=wanted)
            case "sum", _:
                total = DataType.read(nullable(field.type))
                value = arguments[0] if arguments[0].type.name == total.name else FunctionCall("CAST", arguments, total)
                return AggregateCall("SUM", (value,), total, distinct=distinct, filter=wanted)
            case "value", "MIN" | "MAX":
                return AggregateCall(part.function, arguments, arguments[0].type, filter=wanted)
        raise NotComputable(f"{field.words} is not computed from history yet")

    def _over(self, over: Hashable) -> tuple[tuple[Expression, ...], bool, Expression | None]:
        """Arguments of a call, True if the call is DISTINCT, and the filter of the call."""
        values, distinct, condition = call_parts(over)
        wanted = None if condition is None else self.rows.over_table(condition)
        return tuple(self.rows.of_type(value, self._types[value]) for value in values), distinct, wanted

    @property
    def _types(self) -> Mapping[Expression, DataType]:
        called = zip(self.operator.aggregates, self.operator.argument_types, strict=True)
        return {arg: type for call, types in called for arg, type in zip(call.args, types, strict=True)}

    def _distinct_values(self, state: NamedState, users: Sequence[Hashable]) -> StateRows:
        """Distinct values, each with a bit for every call that counts the value. Another state stores NULL."""
        over = list(map(self._over, users))
        calls = [AggregateCall("COUNT", (), BIGINT, filter=wanted) for _, _, wanted in over]
        ((value,), _, _) = over[0]
        keys = [*self.keys, value]
        grouped = self.rows.grouped(self.node, keys, calls)
        at = len(keys) - 1
        mask = " + ".join(f"IF(c{len(keys) + bit} > 0, {1 << bit}, 0)" for bit in range(len(users)))
        if self.layout.retracting:
            mask = f"c{len(keys)}"
        in_map = state.map_key is not None
        there = Where(grouped, f"c{at} IS {'NOT ' if in_map else ''}NULL AND ({mask}) > 0")
        columns = [*((i, f"c{i}") for i in range(at + in_map)), (at + in_map, f"CAST({mask} AS BIGINT)")]
        types = [*self.key_types, *(field.type for field in state.map_key.fields)] if state.map_key else self.key_types
        return StateRows(state, exact(Select(there, tuple(columns)), [*types, "BIGINT"]))

    def plain(self, zone: str) -> tuple[PlainRows, ...]:
        """Rows from which Python recomputes the state.

        Empty for session windows, and for a retractable MIN or MAX.
        """
        if self.sessions is not None or any(
            is_retractable_extreme(each.type) for each in self.layout.states[0].value.fields
        ):
            return ()
        columns = _Columns(list(self.plain_keys))
        assigned = self.operator.window
        windows = None if assigned is None else SlicedWindow.of(assigned.window)
        time = None if assigned is None else columns.at(self.rows.time)
        states, key = tuple(self._plain(state, columns) for state in self.layout.states), len(self.plain_keys)
        types = [*(field.type for field in self.layout.key), *(str(each.type) for each in columns.held[key:])]
        steps = exact(self.rows.selected(self.rows.node, columns.held, in_order=False), types)
        spans = self.operator.kind is AggregateKind.GROUP_WINDOW
        return (PlainRows(steps, PlainAggregation(key, states, time, windows, spans, zone)),)

    def _plain(self, state: NamedState, columns: _Columns) -> PlainState:
        if state.kind is KeyedStateKind.VALUE and state.value.form == "row":
            computed = [field for field in state.value.fields if field.begins is not Begins.EMPTY_VIEW]
            return PlainState(state, tuple(columns.call(self._call(field)) for field in computed))
        over = list(map(self._over, _distinct_users(state.value.fields[0].meaning)))
        calls = (columns.call(AggregateCall("COUNT", (), BIGINT, filter=wanted)) for _, _, wanted in over)
        ((value,), _, _) = over[0]
        column, in_map = columns.at(value), state.map_key is not None
        bits = not self.layout.retracting
        return PlainState(state, tuple(calls), (column,) * in_map, (column, in_map), mask=bits, there=False)


@dataclass
class _Columns:
    """Columns of the rows to recompute: key columns first, and no expression twice."""

    held: list[Expression]

    def at(self, part: Expression) -> int:
        if part not in self.held:
            self.held.append(part)
        return self.held.index(part)

    def call(self, call: AggregateCall) -> PlainCall:
        argument = self.at(call.args[0]) if call.args else None
        condition = None if call.filter is None else self.at(call.filter)
        return PlainCall(call.function, argument, condition, call.distinct, str(call.type))


def _distinct_users(meaning: Hashable) -> Sequence[Hashable]:
    """Inputs of the calls that share one state of distinct values, in the order of their bits."""
    match meaning:
        case (("distinct", tuple(users)), "values"):
            return [over for _, over in users]
    return ()
