"""What computes the state of interval joins by event time: the rows that rows to come may still be joined with.

Read in Flink 2.3 (``TimeIntervalJoin``), and held against stored savepoints: a row stands under its time until the
watermark has passed all times of the other side that it is joined with. It is taken away when a timer fires, or a row
of the other side comes; what still stands there later is joined with no row that is on time. A timer lies behind the
least time of a key, or behind that of the row which came first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_flinkcompat.backfill.spark_sql.windows import micros_of
from airflow_flinkcompat.backfill.steps import Group, Select, Step, Where
from airflow_flinkcompat.bootstrap.errors import NotComputable
from airflow_flinkcompat.bootstrap.joins import JoinSide
from airflow_flinkcompat.bootstrap.state_rows import Moment, StateQuery, StateRows, exact, exact_value
from airflow_flinkcompat.bootstrap.table_rows import TableRows
from airflow_flinkcompat.exec_graph.layout import NamedState, StateLayout
from airflow_flinkcompat.plan.nodes import Scan
from airflow_flinkcompat.plan.operators import JoinOperator
from airflow_flinkcompat.plan.origins import OperatorColumn

_EPOCH = 1
"""As long as no watermark has come Flink takes time to stand at 1970, up to which no row is stored."""


def interval_join_query(sides: Sequence[TableRows], operator: JoinOperator, layout: StateLayout) -> StateQuery:
    """What computes the state of an interval join by event time."""
    if operator.join != "INNER":
        raise NotComputable(
            "which rows an outer interval join had sent without a match follows from its watermark, which it does not "
            "store"
        )
    for side in sides:
        assert side.table.watermark is not None
        side.selected(Scan(side.table), [side.table.watermark.expression])  # it is read before all else
    assert operator.bounds is not None
    first, last = operator.bounds
    states = {state.name: state for state in layout.states}
    left, right = (
        _TimedSide(JoinSide(rows, operator, side, layout), states[f"IntervalJoin{name}Cache"], reach)
        for side, (rows, name, reach) in enumerate(zip(sides, ("Left", "Right"), (-first, last), strict=True))
    )
    # The timer that looks after the rows of a side is stored by the name of the other one.
    computed = (
        *(StateRows(each.state, each.cached()) for each in (left, right)),
        StateRows(states["IntervalJoinRightTimerState"], left.timers(), Moment.TIMED),
        StateRows(states["IntervalJoinLeftTimerState"], right.timers(), Moment.TIMED),
    )
    return StateQuery(
        tuple(dict.fromkeys(side.table for side in sides)),
        layout.key,
        computed,
        incomparable="it keeps rows for a while that are joined with none any more, by how they came",
        clocks=tuple({side.table: side for side in sides}.values()),
    )


@dataclass(frozen=True)
class _TimedSide:
    """The rows of one side.

    Attributes:
        side: What comes to it.
        state: In which its rows are stored.
        reach: How far behind a row the last one of the other side may lie that it is joined with, in milliseconds.
    """

    side: JoinSide
    state: NamedState
    reach: int

    @property
    def _keys(self) -> list[str]:
        return [field.type for field in self.side.layout.key]

    @property
    def _time(self) -> int:
        """The place of the time, behind the key and the row."""
        return len(self._keys) + len(self.state.value.fields)

    def _still_joined(self) -> Step:
        """The key, the row and its time in microseconds, of rows that may still be joined."""
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
        """The rows by their time, those of one time as they came."""
        width, place = len(self._keys), self._time
        types = [field.type for field in self.state.value.fields]
        values = ", ".join(exact_value(type, f"c{width + i}") for i, type in enumerate(types))
        came = "arrival, " if self.side.rows.ordered else ""
        listed = f"sort_array(collect_list(struct({came}struct({values}) AS row)))"
        by = (*(f"c{i}" for i in range(width)), f"c{place}")
        grouped = Group(self._still_joined(), by, ((width + 1, f"transform({listed}, each -> each.row)"),))
        columns = [*(f"c{i}" for i in range(width)), f"c{width} DIV 1000", f"c{width + 1}"]
        return exact(Select(grouped, (*enumerate(columns),)), [*self._keys, "BIGINT", "ARRAY"])

    def timers(self) -> Step:
        """When rows of a key are taken away next."""
        keys = [f"c{i}" for i in range(len(self._keys))]
        grouped = Group(self._still_joined(), tuple(keys), ((len(keys), f"min(c{self._time})"),))
        fires = f"c{len(keys)} + {(self.reach + 1) * 1000}"
        columns = [*keys, fires, f"({fires}) DIV 1000"]
        return exact(Select(grouped, (*enumerate(columns),)), [*self._keys, "BIGINT", "BIGINT"])
