"""State of regular and interval joins, computed from the rows of both inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_flinkcompat.backfill.spark_sql.expressions import grouped
from airflow_flinkcompat.backfill.spark_sql.windows import micros_of
from airflow_flinkcompat.backfill.steps import Group, Select, Step, UnionAll, Where
from airflow_flinkcompat.exec_graph.layout import NamedState, StateField, StateLayout
from airflow_flinkcompat.history.derived_rows import NotComputable
from airflow_flinkcompat.history.recomputing import PlainAggregation, PlainCall, PlainState
from airflow_flinkcompat.history.state_rows import (
    Moment,
    PlainRows,
    StateQuery,
    StateRows,
    exact,
    exact_value,
    ttl_types,
)
from airflow_flinkcompat.history.table_rows import TableRows
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, InputRef
from airflow_flinkcompat.plan.nodes import Scan
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Operator,
    RankOperator,
    StatelessSegment,
    appends,
)
from airflow_flinkcompat.plan.origins import OperatorColumn, leaves
from airflow_flinkcompat.plan.types import BIGINT


def join_query(sides: Sequence[TableRows], operator: JoinOperator, layout: StateLayout) -> StateQuery:
    """Build the query for a regular join: counts of rows and, for an outer join, counts of matches."""
    if operator.form is not JoinForm.REGULAR:
        raise NotComputable(f"{operator.form}s are not computed from history yet")
    for state, segment in zip(layout.states, operator.segments, strict=True):
        if not state.counts_rows and not _has_derived_key(segment):
            raise NotComputable(
                "joins whose input rows Flink stores by the declared key of a table are not computed from history yet"
            )
    if any(state.counts_matches and state.time_to_live for state in layout.states):
        raise NotComputable("the match counts of an outer join with a state TTL are not computed from history yet")
    if operator.join != "INNER" and any(len(_sides(condition)) < 2 for condition in operator.conditions):
        raise NotComputable("the planner may push a condition on one input of an outer join below the join")
    replaced = [side for side in (0, 1) if _counts_replaced(operator, layout, side)]
    if any(_may_be_retracted(operator.segments[1 - side]) for side in replaced):
        raise NotComputable(
            "the match counts of the outer join depend on how often matching rows were replaced, which history "
            "does not show"
        )
    rows = tuple(JoinSide(each, operator, side, layout) for side, each in enumerate(sides))
    states = (StateRows(state, rows[side].stored(rows[1 - side])) for side, state in enumerate(layout.states))
    tables = tuple(dict.fromkeys(table for side in sides for table in side.tables))
    plain = tuple(each.plain for each in rows if layout.states[each.side].value.form == "Int")
    return StateQuery(
        tables,
        layout.key,
        tuple(states),
        incomparable="the match count of a row increases each time the matching row is replaced" if replaced else "",
        plain=plain,
    )


def _has_derived_key(segment: StatelessSegment) -> bool:
    """True if an operator determines the key of an input's rows, not just the declaration of a table."""
    origin = segment.origin
    return isinstance(origin, AggregateOperator) or (isinstance(origin, RankOperator) and origin.last == 1)


def _counts_replaced(operator: JoinOperator, layout: StateLayout, side: int) -> bool:
    """True if the match count of a row increases each time the matching row is replaced by key.

    This was measured.
    """
    other = layout.states[1 - side]
    by_key = not other.counts_rows and other.map_key is None
    return layout.states[side].counts_matches and by_key and not appends(operator.segments[1 - side])


def _may_be_retracted(segment: StatelessSegment) -> bool:
    """True if a replaced row may be retracted later, so that its exact match count matters."""
    # With a condition, Flink also emits UPDATE_BEFORE rows, so that no match is counted twice.
    below = segment.origin
    return isinstance(below, Operator) and not segment.filters and not all(map(appends, below.segments))


def _sides(condition: Expression) -> set[int]:
    """Positions of the join inputs whose columns a condition uses."""
    return {leaf.operator for leaf in leaves(condition) if isinstance(leaf, OperatorColumn)}


@dataclass(frozen=True)
class JoinSide:
    """The rows of one join input."""

    rows: TableRows
    operator: JoinOperator
    side: int
    layout: StateLayout

    @property
    def keys(self) -> list[Expression]:
        """Key expressions over the columns of the table."""
        return [*map(self.rows.over_table, self._outputs)]

    @property
    def _outputs(self) -> list[Any]:
        """Key expressions over the columns of the join input."""
        keys = (pair[self.side] for pair in self.operator.keys)
        return [key.output for key in keys if isinstance(key, OperatorColumn)]

    @property
    def row(self) -> list[Expression]:
        """Stored columns of a row, as expressions over the columns of the table."""
        columns = zip(self.operator.rows[self.side], self.operator.row_types[self.side], strict=True)
        return [self.rows.of_type(column, type) for column, type in columns]

    @property
    def types(self) -> list[str]:
        return [field.type for field in (*self.layout.key, *self.layout.states[self.side].row)]

    def stored(self, other: JoinSide) -> Step:
        """Rows that the join stores for this input."""
        state, width = self.layout.states[self.side], len(self.types)
        found = self.with_matches(other) if state.counts_matches else self.counted()
        if state.counts_rows:
            return found
        # A row is unique by the key of the join or of a map, so a row has no count.
        row = [*range(len(self.layout.key), width)]
        of_map = [] if state.map_key is None else [row[_place(state, each)] for each in state.map_key.fields]
        match_count = [width + 1] if state.counts_matches else []
        columns = [*range(len(self.layout.key)), *of_map, *row, *match_count]
        return Select(found, tuple(enumerate(f"c{i}" for i in columns)))

    def counted(self) -> Step:
        counts = self._counts([*self.keys, *self.row])
        return exact(counts, [*self.types, "BIGINT", *ttl_types(self.layout.states[self.side])])

    @property
    def plain(self) -> PlainRows:
        columns, key = [*self.keys, *self.row], len(self.layout.key)
        steps = exact(self.rows.selected(self.rows.node, columns, in_order=False), self.types)
        by = tuple(range(key, len(columns)))
        state = PlainState(self.layout.states[self.side], (PlainCall("COUNT"),), by)
        return PlainRows(steps, PlainAggregation(key, (state,)))

    def _counts(self, keys: Sequence[Expression]) -> Step:
        return self.rows.grouped(self.rows.node, keys, [AggregateCall("COUNT", (), BIGINT)])

    def with_matches(self, other: JoinSide) -> Step:
        """Rows of this input, with the count of each and its number of matches in the other input."""
        if self.operator.conditions:
            return self._with_pairs()
        width, key = len(self.types), len(self.layout.key)
        columns = [f"c{i}" for i in range(width)]
        keys, nothing = columns[:key], ["NULL"] * (width - key + 1)
        own = Select(self._counts([*self.keys, *self.row]), (*enumerate([*columns, f"c{width}", _NONE]),))
        others = Select(other._counts(other.keys), (*enumerate([*keys, *nothing, f"c{key}"]),))
        both = UnionAll((own, others), tuple(range(width + 2)))
        no_key = " OR ".join(f"{column} IS NULL" for column in keys)
        matches = f"IF({no_key}, 0, sum(c{width + 1}) OVER (PARTITION BY {', '.join(keys)}))"
        matched = Select(both, (*enumerate([*columns, f"c{width}", matches]),))
        return exact(Where(matched, f"c{width} IS NOT NULL"), [*self.types, "BIGINT", "BIGINT"])

    def _with_pairs(self) -> Step:
        """Count the matching pairs of a join that has conditions in addition to its key."""
        joined = replace(self.rows, segment=StatelessSegment(replace(self.operator, join="INNER")))
        columns = [
            joined.joined_column(self.side, column) for column in (*self._outputs, *self.operator.rows[self.side])
        ]
        pairs = joined.grouped(joined.node, columns, [AggregateCall("COUNT", (), BIGINT)])
        width = len(columns)
        of_row = [*enumerate(f"c{i}" for i in range(width))]
        own = Select(self._counts([*self.keys, *self.row]), (*of_row, (width, f"c{width}"), (width + 1, _NONE)))
        both = UnionAll((own, Select(pairs, (*of_row, (width, _NONE), (width + 1, f"c{width}")))), (*range(width + 2),))
        by = tuple(grouped(InputRef(i, column.type)) for i, column in enumerate(columns))
        counted = Group(both, by, ((width, f"sum(c{width})"), (width + 1, f"sum(c{width + 1})")))
        # If a row arrived several times, each copy has separate matches.
        matched = Select(counted, (*of_row, (width, f"c{width}"), (width + 1, f"c{width + 1} DIV c{width}")))
        return exact(matched, [*self.types, "BIGINT", "BIGINT"])


def _place(state: NamedState, field: StateField) -> int:
    """Index of a map key field in the row."""
    return [each.meaning for each in state.value.fields].index(field.meaning)


_NONE = "CAST(0 AS BIGINT)"
_EPOCH = 1
"""Flink's event-time clock before the first watermark, in milliseconds since 1970."""


def interval_join_query(sides: Sequence[TableRows], operator: JoinOperator, layout: StateLayout) -> StateQuery:
    if operator.join != "INNER":
        raise NotComputable(
            "an outer interval join does not store its watermark, so the savepoint does not show which "
            "unmatched rows were emitted"
        )
    for side in sides:
        assert side.table.watermark is not None
        side.selected(
            Scan(side.table), [side.table.watermark.expression]
        )  # Check that Spark can compute the event time.
    assert operator.bounds is not None
    first, last = operator.bounds
    states = {state.name: state for state in layout.states}
    left, right = (
        _TimedSide(JoinSide(rows, operator, side, layout), states[f"IntervalJoin{name}Cache"], reach)
        for side, (rows, name, reach) in enumerate(zip(sides, ("Left", "Right"), (-first, last), strict=True))
    )
    # Flink stores the timers for one input's rows under the name of the other input.
    computed = (
        *(StateRows(each.state, each.cached()) for each in (left, right)),
        StateRows(states["IntervalJoinRightTimerState"], left.timers(), Moment.TIMED),
        StateRows(states["IntervalJoinLeftTimerState"], right.timers(), Moment.TIMED),
    )
    return StateQuery(
        tuple(dict.fromkeys(side.table for side in sides)),
        layout.key,
        computed,
        incomparable=(
            "it keeps rows for some time after their last match, and that time depends on the order of arrival"
        ),
        clocks=tuple({side.table: side for side in sides}.values()),
    )


@dataclass(frozen=True)
class _TimedSide:
    """The rows of one interval join input.

    ``reach``: Maximum time from a row to a later matching row of the other input, in milliseconds.
    """

    side: JoinSide
    state: NamedState
    reach: int

    @property
    def _keys(self) -> list[str]:
        return [field.type for field in self.side.layout.key]

    @property
    def _time(self) -> int:
        """Index of the time column, which follows the key and the row."""
        return len(self._keys) + len(self.state.value.fields)

    def _still_joined(self) -> Step:
        """Key, row and time in microseconds of all rows that may still find a match."""
        side, place = self.side, self._time
        (time,) = (
            side.rows.over_table(time.output)
            for time in side.operator.times
            if isinstance(time, OperatorColumn) and time.operator == side.side
        )
        read = side.rows.selected(side.rows.node, [*side.keys, *side.row, time])
        timed = Select(read, (*enumerate([*(f"c{i}" for i in range(place)), micros_of(f"c{place}")]),))
        watermark = side.rows.watermark
        if watermark is None:
            return timed
        return Where(timed, f"c{place} >= {(max(watermark, _EPOCH) - self.reach) * 1000}")

    def cached(self) -> Step:
        """Stored rows, sorted by time and then by order of arrival."""
        width, place = len(self._keys), self._time
        types = [field.type for field in self.state.value.fields]
        values = ", ".join(exact_value(type, f"c{width + i}") for i, type in enumerate(types))
        arrival = "arrival, " if self.side.rows.ordered else ""
        listed = f"sort_array(collect_list(struct({arrival}struct({values}) AS row)))"
        by = (*(f"c{i}" for i in range(width)), f"c{place}")
        grouped = Group(self._still_joined(), by, ((width + 1, f"transform({listed}, each -> each.row)"),))
        columns = [*(f"c{i}" for i in range(width)), f"c{width} DIV 1000", f"c{width + 1}"]
        return exact(Select(grouped, (*enumerate(columns),)), [*self._keys, "BIGINT", "ARRAY"])

    def timers(self) -> Step:
        """Time at which the next rows of each key are removed."""
        keys = [f"c{i}" for i in range(len(self._keys))]
        grouped = Group(self._still_joined(), tuple(keys), ((len(keys), f"min(c{self._time})"),))
        fires = f"c{len(keys)} + {(self.reach + 1) * 1000}"
        columns = [*keys, fires, f"({fires}) DIV 1000"]
        return exact(Select(grouped, (*enumerate(columns),)), [*self._keys, "BIGINT", "BIGINT"])
