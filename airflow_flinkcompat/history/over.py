"""State of an OVER aggregation: accumulators and, in event time, rows not emitted yet.

According to Flink 2.3's code and savepoints, each event-time row waits for the watermark with a timer. With an
unbounded frame, an emitted row remains only in the accumulators. A row whose event time the watermark has passed is
dropped. With a bounded frame, Flink also keeps the frame's rows, to retract them when they leave the frame. A bounded
frame drops a row if a later row of the same key was emitted. A time frame removes all state of a key after 1.5 times
the frame length without new rows, or earlier, depending on arrivals. The first watermark removes expired keys that this
module writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace

from airflow_flinkcompat.backfill.spark_sql.expressions import references
from airflow_flinkcompat.backfill.spark_sql.windows import micros_of
from airflow_flinkcompat.backfill.steps import Group, Select, Step, Where
from airflow_flinkcompat.exec_graph.layout import NamedState, StateLayout
from airflow_flinkcompat.exec_graph.nodes.over import BESIDE_ACCUMULATORS, OVER_ROWS
from airflow_flinkcompat.history.aggregations import aggregation_query
from airflow_flinkcompat.history.derived_rows import Computed, NotComputable, order_error
from airflow_flinkcompat.history.state_rows import Doubt, Moment, StateQuery, StateRows, exact, exact_value
from airflow_flinkcompat.history.table_rows import LONG_AGO, TableRows
from airflow_flinkcompat.history.watermarks import rows_with_watermark
from airflow_flinkcompat.plan.expressions import Expression, InputRef
from airflow_flinkcompat.plan.nodes import Frame, Node
from airflow_flinkcompat.plan.operators import OverOperator
from airflow_flinkcompat.plan.types import APPROXIMATE, TimeAttribute

_CLEANED, _COUNTED = "cleanupTsState", "processedCountState"
_ALWAYS = (1 << 63) - 1
"""Window end that no watermark reaches."""


def over_query(rows: TableRows, operator: OverOperator, layout: StateLayout) -> StateQuery:
    frame = operator.frame
    if frame != Frame(frame.unit, frame.preceding) or [ascending for _, ascending, _ in operator.order] != [True]:
        raise NotComputable(
            "history supports an OVER only if its frame ends at the current row and its order is ascending time"
        )
    grouped = operator.as_aggregation
    if operator.clock is TimeAttribute.PROCTIME:
        if frame.preceding is not None:
            raise NotComputable("history does not record when the rows in a processing-time OVER frame arrived")
        return aggregation_query(rows, grouped, layout)
    if any(type.name in APPROXIMATE for type in operator.partition_types):
        raise NotComputable("an OVER with partition keys of type FLOAT or DOUBLE is not computed from history yet")
    accumulators = tuple(state for state in layout.states if state.name not in BESIDE_ACCUMULATORS)
    framed = FramedRows(**{each.name: getattr(rows, each.name) for each in fields(rows)}, over=operator)
    query = aggregation_query(framed, grouped, replace(layout, states=accumulators))
    types = [each.type for each in layout.key]
    kept = (state for state in layout.states if state.name in BESIDE_ACCUMULATORS)
    others = (made for state in kept for made in framed.other_states(state, types))
    of_time = frame.unit == "RANGE" and frame.preceding is not None
    return replace(
        query,
        states=(*query.states, *others),
        doubts=(framed.late,),
        incomparable=("the time at which it removes rows from its frame depends on the order of arrival")
        if of_time
        else "",
        stores_watermark=False,
        timers_show_pending=True,
    )


@dataclass(frozen=True)
class FramedRows(TableRows):
    """Rows in the accumulators of an event-time OVER: emitted rows that are still in the frame."""

    over: OverOperator = field(kw_only=True)

    @property
    def _in_parts(self) -> bool:
        """False, because the content of a frame depends on all rows and changes with time."""
        return False

    @property
    def node(self) -> Node:
        called = (part for call in self.over.aggregates for part in (*call.args, call.filter) if part is not None)
        read = sorted(references([*self._keys, *map(self.over_table, called)]))
        columns = [InputRef(place, self.table.columns[place].type) for place in read]
        width = len(self._keys)
        timed = self._timed(columns)
        placed = tuple((place, f"c{width + i}") for i, place in enumerate(read))
        return Computed((), self.columns, steps=Select(self._sent(timed, width + len(read)), placed, unordered=True))

    @property
    def reach(self) -> int:
        """Length of a time frame in milliseconds; 0 for a row frame or an unbounded frame."""
        return (self.over.frame.preceding or 0) if self.over.frame.unit == "RANGE" else 0

    @property
    def _removal_delay(self) -> int:
        """Milliseconds after a key's last row at which a time frame removes all state of the key."""
        return self.reach * 3 // 2 + 1

    @property
    def _keys(self) -> list[Expression]:
        return [self.over_table(key) for key in self.over.partition_by]

    @property
    def _sent_until(self) -> int | None:
        """Time in microseconds up to which rows were emitted: the watermark, but at least ``LONG_AGO``."""
        return None if self.watermark is None else max(self.watermark, LONG_AGO) * 1000

    @property
    def _framed(self) -> bool:
        return self.over.frame.preceding is not None

    def _timed(self, columns: Sequence[Expression]) -> Select:
        """Key, requested columns and event time in microseconds of all rows."""
        read = self.selected(super().node, [*self._keys, *columns, self.time])
        last = len(read.columns) - 1
        return Select(read, (*enumerate([*(f"c{i}" for i in range(last)), micros_of(f"c{last}")]),))

    def _waiting(self, timed: Select) -> Step:
        time = f"c{len(timed.columns) - 1}"
        return timed if self._sent_until is None else Where(timed, f"{time} > {self._sent_until}")

    def _sent(self, timed: Select, place: int, ties: bool = False) -> Step:
        """Rows that were emitted and are still in the frame."""
        width, time, frame = len(timed.columns), f"c{place}", self.over.frame
        sent: Step = timed if self._sent_until is None else Where(timed, f"{time} <= {self._sent_until}")
        if frame.preceding is None:
            return sent
        sent = Where(sent, f"{time} > 0")  # A frame contains no row at or before 1970-01-01 00:00:00.
        columns, of_key = [f"c{i}" for i in range(width)], ", ".join(f"c{i}" for i in range(len(self._keys))) or "1"
        if frame.unit == "RANGE":
            last = Select(sent, (*enumerate([*columns, f"max({time}) OVER (PARTITION BY {of_key})"]),))
            return Where(last, f"{time} >= c{width} - {self.reach * 1000}")
        if ties:
            number, differ = f"rank() OVER (PARTITION BY {of_key} ORDER BY {time} DESC)", "FALSE"
        else:
            alike = f"OVER (PARTITION BY {of_key}, {time})"
            number = f"row_number() OVER (PARTITION BY {of_key} ORDER BY {time} DESC, arrival DESC)"
            differ = f"min(arrival.stream) {alike} <> max(arrival.stream) {alike}"
        numbered = Select(sent, (*enumerate([*columns, number, differ]),))
        kept = f"c{width} <= {frame.preceding + 1}"
        return Where(numbered, f"IF({kept} AND c{width + 1}, {order_error('BOOLEAN')}, {kept})")

    @property
    def late(self) -> Doubt:
        """Rows that may have arrived late. If rows arrived late, the accumulators lack them."""
        met = rows_with_watermark(self, self._keys, "an OVER")
        time, watermark, unordered = (f"c{len(self._keys) + i}" for i in range(3))
        sent = self._sent(met, len(self._keys), ties=True)
        doubtful = Where(sent, f"{unordered} OR coalesce({watermark} >= {time}, FALSE)")
        return Doubt(
            Select(doubtful, ((0, str(_ALWAYS)),)),
            "a row may have arrived too late for an OVER, and history does not show whether it did",
        )

    def other_states(self, state: NamedState, types: Sequence[str]) -> Iterator[StateRows]:
        """States that are not accumulators."""
        keys = [f"c{i}" for i in range(len(self._keys))]
        time = f"c{len(keys)}"
        if state.name == OVER_ROWS:
            yield from self._lists(state, keys, types)
            return
        timed, cleaned = self._timed(()), state.name == _CLEANED
        rows = Where(timed, f"{time} > 0") if cleaned else self._sent(timed, len(keys))
        last, number = f"max({time})" + (f" + {self._removal_delay * 1000}" if cleaned else ""), f"c{len(keys) + 1}"
        # Without a key, a Spark aggregation over no rows would return one row.
        found = Where(Group(rows, (*keys,), ((len(keys), last), (len(keys) + 1, "count(1)"))), f"{number} > 0")
        if cleaned:
            columns = Select(found, (*enumerate([*keys, time, f"{time} DIV 1000"]),))
            yield StateRows(state, exact(columns, [*types, "BIGINT", "BIGINT"]), Moment.TIMED)
        else:
            value = number if state.name == _COUNTED else f"{time} DIV 1000"
            yield StateRows(state, exact(Select(found, (*enumerate([*keys, value]),)), [*types, "BIGINT"]))

    def _lists(self, state: NamedState, keys: Sequence[str], types: Sequence[str]) -> Iterator[StateRows]:
        """Lists of rows, sorted by time and then by order of arrival."""
        row = self.stored(self.over.row, [self.over_table(column).type for column in self.over.row])
        timed = self._timed(row)
        stored = [field.type for field in state.value.fields]
        time = f"c{len(keys) + len(row)}"
        values = ", ".join(exact_value(type, f"c{len(keys) + i}") for i, type in enumerate(stored))

        def listed(rows: Step, after_keys: Sequence[str]) -> Select:
            of_rows = f"sort_array(collect_list(struct(arrival, struct({values}) AS row)))"
            by_time = Group(rows, (*keys, time), ((len(keys) + 1, f"transform({of_rows}, each -> each.row)"),))
            columns = [*keys, *after_keys, f"c{len(keys) + 1}"]
            return exact(Select(by_time, (*enumerate(columns),)), [*types, *["BIGINT"] * len(after_keys), "ARRAY"])

        moment, by_time = f"c{len(keys)}", f"c{len(keys)} DIV 1000"
        waiting = self._waiting(timed)
        if self._framed:
            waiting = Where(waiting, f"{time} > 0")
            yield StateRows(state, listed(self._sent(timed, len(timed.columns) - 1), [by_time]))
        yield StateRows(state, listed(waiting, [moment, by_time]), Moment.WAITING)
