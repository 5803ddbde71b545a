"""State of Top-N and deduplication operators: the rows whose rank they store.

Rows with equal sort keys are in their order of arrival, if the table defines an order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from airflow_flinkcompat.backfill.connectors.files import FileSource
from airflow_flinkcompat.backfill.steps import Group, Select, Step, Where
from airflow_flinkcompat.exec_graph.layout import NamedState, StateLayout
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.history.derived_rows import NotComputable, first_ranks, order_error, ordered_by, require_exact
from airflow_flinkcompat.history.state_rows import BOUND_TYPE, Doubt, Moment, StateQuery, StateRows, exact, exact_value
from airflow_flinkcompat.history.table_rows import TableRows
from airflow_flinkcompat.history.watermarks import rows_with_watermark
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression
from airflow_flinkcompat.plan.nodes import Node, WindowField, WindowKind
from airflow_flinkcompat.plan.operators import AggregateOperator, RankKind, RankOperator, Source, appends
from airflow_flinkcompat.plan.origins import KeyOutput, OperatorColumn, describe, window_field
from airflow_flinkcompat.plan.types import BIGINT, TimeAttribute


def rank_query(rows: TableRows, operator: RankOperator, layout: StateLayout) -> StateQuery:
    """Build the query for a Top-N or a deduplication: rows with the first ranks, or keys that occurred."""
    (state, *more) = layout.states
    if more and rows.time_to_live:
        raise NotComputable(
            "deduplications that keep the first row by event time are not computed with a state TTL yet"
        )
    if not more and state.value.form == "Boolean":
        return StateQuery(
            (rows.table,), layout.key, (StateRows(state, _Ranking(rows, operator, layout, state).occurring_keys()),)
        )
    if not isinstance(operator.segment.origin, Source):
        return _derived_rows(rows, operator, layout)
    if not rows.ordered:
        place = rows.locations.source(rows.table).place
        raise NotComputable(f"{place} does not show in which order rows with equal sort keys arrived")
    require_exact(operator)
    if more and operator.kind is RankKind.DEDUPLICATION and operator.order_clock is TimeAttribute.ROWTIME:
        return _first_by_time(rows, operator, layout)
    if operator.kind is not RankKind.DEDUPLICATION and operator.order_clock is TimeAttribute.PROCTIME:
        raise NotComputable("ranks by processing time are not computed from history yet")
    if more or state.value.form not in ("row", "List<row>"):
        raise NotComputable("state that the operator stores in addition to its rows is not computed from history yet")
    ranking = _Ranking(rows, operator, layout, state)
    if ranking.defined is not None:
        ranking = replace(ranking, rows=rows.omit_fired_windows(ranking.defined))
    # Surplus rows are harmless. No row of this Top-N is retracted, so no lower row ever moves up.
    several = operator.kind is RankKind.WINDOW_TOP_N or (operator.number_read and state.map_key is not None)
    return StateQuery(
        (rows.table,),
        layout.key,
        (StateRows(state, ranking.unexpired_row() if rows.time_to_live else ranking.stored()),),
        ranking.windows,
        zone=rows.zone if ranking.windows is not None else "UTC",
        incomparable=("it stores surplus rows, and the order of arrival decides which rows these are")
        if several
        else "",
    )


def _derived_rows(rows: TableRows, operator: RankOperator, layout: StateLayout) -> StateQuery:
    """Build the query for a Top-N over derived rows. The order of arrival of derived rows is unknown."""
    require_exact(operator)
    kept = {state.name for state in layout.states}
    if not appends(operator.segment) and "data-state" not in kept:
        _require_growing(operator, one="Top1-Rank-State" in kept)
    states = []
    for state in layout.states:
        ranking = _Ranking(rows, operator, layout, state)
        match state.value.form:
            case "SortedMap<row, Long>":
                steps = ranking.sort_keys()
            case "Tuple<row, Int>":
                steps = ranking.by_row_key()
            case _:
                steps = ranking.stored(every=len(layout.states) > 1)
        states.append(StateRows(state, steps))
    dropping = "data-state-with-update" in kept
    return StateQuery(
        rows.tables,
        layout.key,
        tuple(states),
        incomparable="it stores with each row the number of rows with equal sort keys at the time of arrival"
        if dropping
        else "",
    )


def _require_growing(operator: RankOperator, one: bool) -> None:
    """Refuse rows whose rank may still change. Flink's planner wrongly considers too many ranks final."""
    below = operator.segment.origin
    if not isinstance(below, AggregateOperator) or not appends(below.segment) or operator.segment.filters:
        raise NotComputable("history does not show which rows a Top-N dropped before they reached their final rank")
    for (sort, ascending, nulls_first), type in zip(operator.order, operator.order_types, strict=True):
        of_group = isinstance(sort, OperatorColumn) and isinstance(sort.output, KeyOutput)
        if not of_group and type.nullable and (ascending if nulls_first is None else nulls_first):
            raise NotComputable(
                f"{describe(sort)} sorts first while it is NULL, so a row's rank may become worse later"
            )
    ordered = {key for key, _, _ in operator.order}
    for column in operator.row if one else ():
        key = isinstance(column, OperatorColumn) and isinstance(column.output, KeyOutput)
        if column not in ordered and not key:
            raise NotComputable(
                f"history does not show which value of {describe(column)} the operator stored last for the first row"
            )


def _first_by_time(rows: TableRows, operator: RankOperator, layout: StateLayout) -> StateQuery:
    """Build the query for a deduplication that stores the first row by event time until its emission."""
    states = tuple(_Ranking(rows, operator, layout, state).first_row() for state in layout.states)
    keys = _Ranking(rows, operator, layout, layout.states[0]).keys
    doubts = (_possibly_late_first_rows(rows, keys),)
    return StateQuery((rows.table,), layout.key, states, doubts=doubts, stores_watermark=False)


def _possibly_late_first_rows(rows: TableRows, keys: Sequence[Expression]) -> Doubt:
    """Keys whose first row may have been late, and the time from which an on-time row decides the result."""
    width = len(keys)
    time, watermark, unordered = (f"c{width + i}" for i in range(3))
    on_time = f"min(IF(NOT {unordered} AND ({watermark} IS NULL OR {time} > {watermark}), {time}, NULL))"
    columns = ((width, f"min({time})"), (width + 1, f"coalesce({on_time} + 1000, {_NEVER})"))
    first = Group(rows_with_watermark(rows, keys, "a first row"), tuple(f"c{i}" for i in range(width)), columns)
    return Doubt(
        Select(Where(first, f"c{width} + 1000 < c{width + 1}"), ((0, f"c{width + 1}"),)),
        "a first row may have arrived too late, and history does not show whether it did",
    )


@dataclass(frozen=True)
class _Ranking:
    rows: TableRows
    operator: RankOperator
    layout: StateLayout
    state: NamedState

    @property
    def defined(self) -> SlicedWindow | None:
        """Windows that the script defines."""
        if self.operator.window is None:
            return None
        found = SlicedWindow.of(self.operator.window.window)
        if found is None or self.operator.window.time_attribute is not TimeAttribute.ROWTIME:
            raise NotComputable(
                "windows whose definition does not determine where they end are not computed from history yet"
            )
        return found

    @property
    def windows(self) -> SlicedWindow | None:
        """Windows that do not overlap and have the same ends as the windows of the script."""
        found = self.defined
        return found and SlicedWindow(
            WindowKind.TUMBLE, found.step, found.step, (found.offset + found.size) % found.step
        )

    @property
    def node(self) -> Node:
        window = self.operator.window
        return self.rows.node if window is None else self.rows.in_windows(window.window)

    @property
    def keys(self) -> list[Expression]:
        """The key, in the order in which Flink stores its columns."""
        keys = (key for key in self.operator.partition if not window_field(key))
        ends = [] if self.operator.window is None else [self.rows.bound(WindowField.END)]
        return [*map(self.rows.over_table, keys), *ends]

    @property
    def row(self) -> list[Expression]:
        return self.rows.stored(self.operator.row, self.operator.row_types)

    def occurring_keys(self) -> Step:
        """Return every key that has a row, for a deduplication that keeps the first row to arrive."""
        columns, types = [f"c{i}" for i in range(len(self.keys))], [*self._key_types, "BOOLEAN"]
        if self.rows.time_to_live:
            # Flink writes the value for the first row, and again only after the value has expired.
            read = self.rows.selected(self.node, [*self.keys, self.rows.arrival_column], in_order=False)
            arrival = self.rows.checked_arrival(f"unix_millis(c{len(columns)})")
            expired = f"at - since >= {self.rows.time_to_live}"
            moments = f"sort_array(collect_list({arrival}))"
            written = f"aggregate({moments}, {moments}[0], (since, at) -> IF({expired}, at, since))"
            living = Group(read, tuple(columns), ((len(columns), written),))
            there = Select(living, tuple(enumerate([*columns, "TRUE", f"c{len(columns)}"])))
            return exact(there, [*types, "BIGINT"])
        met = self.rows.grouped(self.node, self.keys, [AggregateCall("COUNT", (), BIGINT)])
        return exact(Select(met, tuple(enumerate([*columns, "TRUE"]))), types)

    def unexpired_row(self) -> Step:
        """Return the row that each key stores, and its write time. After expiry, the next row is stored."""
        order = [self.rows.over_table(key) for key, _, _ in ordered_by(self.operator)]
        read = self.rows.selected(self.node, [*self.keys, *order, *self.row, self.rows.arrival_column])
        by_key, by_order, of_row = self._width
        keys, arrival = [f"c{i}" for i in by_key], f"c{of_row.stop}"
        # Files are read one after another. How a job interleaves partitions of a topic is unknown.
        of_files = isinstance(self.rows.locations.source(self.rows.table), FileSource)
        alike = f"OVER (PARTITION BY {', '.join([*keys, *([arrival] if of_files else [])])})"
        mixed = f"min(arrival.stream) {alike} <> max(arrival.stream) {alike}"
        numbered = Select(
            read, (*enumerate([*(f"c{i}" for i in range(of_row.stop)), f"unix_millis({arrival})", mixed]),)
        )
        row = ", ".join(f"c{i}" for i in of_row)
        time = f"c{by_order.start}" if order else "0"
        moment = f"IF(c{of_row.stop + 1}, {order_error('BIGINT')}, {self.rows.checked_arrival(arrival)})"
        rows = f"sort_array(collect_list(struct({moment} AS came, arrival, {time} AS time, struct({row}) AS row)))"
        newer = f"next.came - held.came >= {self.rows.time_to_live} OR next.time >= held.time"
        held = f"aggregate({rows}, {rows}[0], (held, next) -> IF({newer}, next, held))"
        found, place = Group(numbered, tuple(keys), ((len(keys), held),)), f"c{len(keys)}"
        columns = [*keys, *(f"{place}.row.c{i}" for i in of_row), f"{place}.came"]
        types = [*self._key_types, *(field.type for field in self.state.value.fields), "BIGINT"]
        return exact(Select(found, tuple(enumerate(columns))), types)

    def first_row(self) -> StateRows:
        """Return the first row and its time, or a flag for an emitted row."""
        ((order, _, _),) = self.operator.order
        columns, width = [*self.keys, self.rows.over_table(order), *self.row], len(self.keys)
        read = self.rows.selected(self.node, columns)
        of_row = range(width + 1, len(columns))
        found = first_ranks(self.operator, read, range(width), range(width, width + 1), of_row)
        types = [*(field.type for field in self.layout.key), BOUND_TYPE]
        if self.state.value.form == "Boolean":
            there = Select(found, tuple(enumerate([*(f"c{i}" for i in range(width + 1)), "TRUE"])))
            return StateRows(self.state, exact(there, [*types, "BOOLEAN"]), Moment.PASSED)
        types += [field.type for field in self.state.value.fields]
        return StateRows(self.state, exact(found, types), Moment.WAITING)

    @property
    def _width(self) -> tuple[range, range, range]:
        """Column ranges of the key, the sort keys and the row."""
        key, order = len(self.keys), len(ordered_by(self.operator))
        return range(key), range(key, key + order), range(key + order, key + order + len(self.operator.row))

    def _ranked(self, every: bool) -> Step:
        """Return the stored rows, with the rank in a column at the end."""
        order = [self.rows.over_table(key) for key, _, _ in ordered_by(self.operator)]
        columns, arriving = [*self.keys, *order, *self.row], isinstance(self.operator.segment.origin, Source)
        read = self.rows.selected(self.node, columns, in_order=arriving)
        return first_ranks(self.operator, read, *self._width, arriving, every)

    @property
    def _key_types(self) -> list[str]:
        return [field.type for field in self.layout.key] + [BOUND_TYPE] * (self.windows is not None)

    def stored(self, every: bool = False) -> Step:
        """Return the stored rows. Rows with equal sort keys are in their order of arrival."""
        found, (by_key, by_order, of_row) = self._ranked(every), self._width
        types = [field.type for field in self.state.value.fields]
        if self.state.map_key is None:
            columns = enumerate(f"c{i}" for i in (*by_key, *of_row))
            return exact(Select(found, tuple(columns)), [*self._key_types, *types])
        number = of_row.stop
        values = ", ".join(exact_value(type, f"c{i}") for i, type in zip(of_row, types, strict=True))
        listed = f"sort_array(collect_list(struct(c{number} AS number, struct({values}) AS row)))"
        grouped = Group(
            found,
            tuple(f"c{i}" for i in (*by_key, *by_order)),
            ((by_order.stop, f"transform({listed}, each -> each.row)"),),
        )
        sort_types = [field.type for field in self.state.map_key.fields]
        return exact(grouped, [*self._key_types, *sort_types, "ARRAY"])

    def by_row_key(self) -> Step:
        """Return the rows with the first ranks, by unique key. Sort keys must differ within a partition."""
        assert self.state.map_key is not None
        found, (by_key, _, of_row) = self._ranked(every=False), self._width
        fields = self.state.value.fields
        places = [[each.meaning for each in fields].index(field.meaning) for field in self.state.map_key.fields]
        columns = [*by_key, *(of_row[place] for place in places), *of_row]
        types = [*self._key_types, *(fields[place].type for place in places), *(field.type for field in fields), "INT"]
        return exact(Select(found, tuple(enumerate([*(f"c{i}" for i in columns), "1"]))), types)

    def sort_keys(self) -> Step:
        """Return the sorted sort keys, each with its number of rows."""
        found, (by_key, by_order, of_row) = self._ranked(every=True), self._width
        types = [field.type for field in self.state.value.fields]
        by, number = [f"c{i}" for i in (*by_key, *by_order)], by_order.stop
        counted = Group(found, tuple(by), ((number, "count(1)"), (number + 1, f"min(c{of_row.stop})")))
        values = ", ".join(exact_value(type, f"c{i}") for i, type in zip(by_order, types, strict=True))
        pair = f"struct(c{number + 1} AS number, struct({values}) AS key, c{number} AS rows)"
        listed = f"transform(sort_array(collect_list({pair})), each -> struct(each.key, each.rows))"
        grouped = Group(counted, tuple(by[: len(by_key)]), ((len(by_key), listed),))
        return exact(grouped, [*self._key_types, "ARRAY"])


_NEVER = (1 << 63) - 1
