"""Compiler of OVER aggregations, by time or by arrival, and of a window's Top-N.

Rows are ordered by event time, then by order of arrival. In processing time, rows are ordered by arrival. A RANGE frame
ends with all rows that have the current row's time. A ROWS frame ends with the current row.

A window's Top-N is a ROW_NUMBER with a filter that keeps a constant range of ranks. All other rankings keep state
across windows and are refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from airflow_flinkcompat.backfill.compile import lateness
from airflow_flinkcompat.backfill.compile.context import CompileContext, FiltersAbove
from airflow_flinkcompat.backfill.compile.lateness import AskedOrder, clock_of
from airflow_flinkcompat.backfill.compile.sink_columns import window_fields
from airflow_flinkcompat.backfill.compile.windowing import zone_of
from airflow_flinkcompat.backfill.result import FLINK_BATCH, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import (
    aggregate,
    aggregate_references,
    grouped,
    references,
    scalar,
    spark_type,
    typed,
)
from airflow_flinkcompat.backfill.spark_sql.translations import AGGREGATES, ERROR, ordered
from airflow_flinkcompat.backfill.spark_sql.windows import MILLISECOND, Aligned, WindowRange
from airflow_flinkcompat.backfill.steps import Assign, AssignSessions, OverAggregate, Rank, Step, Where
from airflow_flinkcompat.plan.expressions import FLIPPED, Expression, FunctionCall, InputRef, Literal
from airflow_flinkcompat.plan.nodes import Frame, Measure, Over, OverCall, Window, WindowField, WindowKind
from airflow_flinkcompat.plan.ranks import kept_ranks, numbers_rows
from airflow_flinkcompat.plan.types import APPROXIMATE, INTEGERS, TIMESTAMPS, TimeAttribute


def is_over_aggregate(node: Over) -> bool:
    """True if an OVER aggregates rows instead of ranking rows or accessing other rows."""
    return all(call.call.function in AGGREGATES for call in node.calls)


@dataclass(frozen=True)
class _OverWindow:
    """Order in which the calls of one OVER window process rows: by event time or by arrival.

    ``time``: The event-time column; None if rows are ordered by arrival. ``by_rows``: True if the frame counts
    rows, or ends with a row instead of a time. ``missing``: Why the order of arrival is unknown; "" if it is known.
    """

    first: OverCall
    clock: TimeAttribute
    time: InputRef | None
    by_rows: bool
    missing: str

    @classmethod
    def of(cls, context: CompileContext, node: Over, first: OverCall) -> _OverWindow:
        """Find the order of an OVER window.

        Raises :class:`Untranslatable` if Flink refuses the window, or if its results would be inexact.
        """
        clock, time = _clock(context, node, first)
        _check_frame(context, node, first.frame, clock)
        if clock is not TimeAttribute.PROCTIME and first.frame.unit != "ROWS" and first.frame.window is None:
            return cls(first, clock, time, False, "")
        missing = lateness.missing_order(
            context.locations, node.input, AskedOrder(first.partition_by, time is not None)
        )
        if missing and time is None:
            raise Untranslatable(
                f"an OVER in processing time processes rows in their order of arrival: {missing}", node.span
            )
        return cls(first, clock, time, True, missing)

    @property
    def ordered(self) -> bool:
        return self.by_rows and not self.missing

    @property
    def read(self) -> tuple[Expression, ...]:
        return (*self.first.partition_by, *([] if self.time is None else [self.time]))


def over_rows(context: CompileContext, node: Over, needed: frozenset[int]) -> Step:
    """Return the rows with the results of the OVER calls."""
    width = len(node.input.schema)
    used = {width + i: call for i, call in enumerate(node.calls) if width + i in needed} or {width: node.calls[0]}
    firsts = {_window_of(call): call for call in node.calls}
    _check_whole(context, node, len(firsts))
    windows = {key: _OverWindow.of(context, node, call) for key, call in firsts.items()}
    wanted = frozenset(i for i in needed if i < width) | references(
        [each for window in windows.values() for each in window.read]
    )
    wanted = wanted.union(*(aggregate_references(call.call) for call in used.values()))
    # Earlier rows affect the results of the requested range.
    ordered = any(window.ordered for window in windows.values()) or context.arriving
    below = context.under({}).following_arrival(ordered).compile(node.input, wanted)
    below = lateness.over_in_time(context, node, below, next(iter(windows.values())).time)
    for key, window in windows.items():
        calls = {position: call for position, call in used.items() if _window_of(call) == key}
        below = _aggregated(context, node, below, window, calls) if calls else below
    return below


def _window_of(call: OverCall) -> tuple[Hashable, ...]:
    return call.partition_by, call.order_by, call.frame


def _aggregated(
    context: CompileContext, node: Over, below: Step, window: _OverWindow, calls: Mapping[int, OverCall]
) -> OverAggregate:
    time, frame = window.time, window.first.frame
    keys = tuple(grouped(key) for key in window.first.partition_by)
    order = OverAggregate(below, keys, None if time is None else time.index, window.ordered, (), _clash(node, window))
    if time is not None and context.batch:
        order = replace(order, input=_timed(below, time, node))
    if frame.window is not None:
        order = _within(context, node, order, frame.window, time)
    spec = _spec(order, frame, window.by_rows)
    return replace(order, columns=tuple((position, _call(call, spec)) for position, call in calls.items()))


def _check_whole(context: CompileContext, node: Over, windows: int) -> None:
    """Raise :class:`Untranslatable` for time ranges, several windows in one SELECT, and state with a TTL."""
    if context.bounds.bounded and context.asked is None:
        raise Untranslatable(
            "an OVER aggregation depends on all earlier rows of its key, so its backfill must start at the first "
            "row. Omit --from and --to",
            node.span,
        )
    lateness.check_no_expiry(context.settings, node)
    if windows > 1 and not context.written:
        raise Untranslatable(
            "several OVER windows in one SELECT: Flink refuses this in streaming mode (All aggregates must be "
            "computed on the same window.). Write one query for each window, where each query reads the previous "
            "one",
            node.span,
        )


def _clock(context: CompileContext, node: Over, call: OverCall) -> tuple[TimeAttribute, InputRef | None]:
    """Time attribute that orders rows, and the event-time column; the column is None in processing time."""
    keys = call.order_by
    if len(keys) != 1 or not keys[0][1]:
        raise Untranslatable(
            "a backfill recomputes an OVER aggregation only in ascending order of a single time attribute: write "
            "ORDER BY and the time attribute",
            node.span,
        )
    key, clock = keys[0][0], clock_of(node, call)
    if clock is TimeAttribute.PROCTIME:
        if context.batch:
            raise Untranslatable(
                "batch mode does not support ORDER BY processing time: use an event time in ORDER BY", node.span
            )
        return clock, None
    if not isinstance(key, InputRef) or typed(key).type.name not in TIMESTAMPS or (clock is None and not context.batch):
        raise Untranslatable(
            "an OVER aggregation that is not ordered by a time attribute updates earlier rows, which a backfill "
            f"does not recompute. ORDER BY the column that has the WATERMARK, or {FLINK_BATCH}",
            key.span or node.span,
        )
    return TimeAttribute.ROWTIME, key


def _check_frame(context: CompileContext, node: Over, frame: Frame, clock: TimeAttribute) -> None:
    if frame.other or frame.unit not in ("ROWS", "RANGE"):
        raise Untranslatable(
            f"a backfill does not recompute an OVER with {frame.other or frame.unit}; {FLINK_BATCH}", node.span
        )
    if (frame.following != 0 or frame.preceding == 0) and not context.batch and not context.written:
        raise Untranslatable(
            "Flink refuses this window: OVER RANGE FOLLOWING windows are not supported yet. Write … PRECEDING "
            "AND CURRENT ROW",
            node.span,
        )
    if clock is not TimeAttribute.PROCTIME:
        return
    timed = frame.window is not None and frame.window.measure is Measure.TIME
    if timed or (frame.unit == "RANGE" and (frame.preceding is not None or frame.following != 0)):
        raise Untranslatable(
            "an interval of processing time depends on when the job ran, so it cannot be recomputed from "
            "history: use ROWS, or ORDER BY an event time",
            node.span,
        )


def _clash(node: Over, window: _OverWindow) -> str:
    """Error for rows whose order is ambiguous; "" if the order has no effect."""
    if not window.by_rows:
        return ""
    why = window.missing or lateness.remedy(node)
    if window.time is None:
        return (
            "the order of arrival is unknown for some rows of a key, but an OVER in processing time depends on "
            f"this order; {why}"
        )
    name = node.input.schema[window.time.index].name
    return (
        f"several rows of a key have the same {name}, and OVER … ROWS depends on their order of arrival, which is "
        f"unknown; {why}"
    )


def _timed(below: Step, time: InputRef, node: Over) -> Step:
    """Check that every row has a time. Flink in batch mode would sort rows without a time first or last."""
    name = node.input.schema[time.index].name
    refused = (
        f"raise_error('{ERROR}a row has no {name}, so it has no place in event-time order; filter rows without {name}')"
    )
    return Where(below, f"IF(c{time.index} IS NULL, CAST({refused} AS BOOLEAN), TRUE)")


def _within(
    context: CompileContext, node: Over, order: OverAggregate, window: Window, time: InputRef | None
) -> OverAggregate:
    """Partition an OVER by windows, for TumbleRows and SessionRows of FLIP-11."""
    width = len(node.schema)
    if window.kind not in (WindowKind.TUMBLE, WindowKind.SESSION) or (window.kind is WindowKind.SESSION) == bool(
        window.size
    ):
        raise Untranslatable(f"a backfill does not recompute an OVER within {window.kind} windows", node.span)
    if window.measure is Measure.ROWS:
        number = f"row_number() OVER ({_clauses(order)})"
        counted = replace(order, columns=((width, number),))
        return replace(
            order, input=counted, partition=(*order.partition, f"(c{width} - 1) div {window.size}"), clashing=""
        )
    assert time is not None
    zone = zone_of(context.settings, node, time)
    below = order.input
    if window.kind is WindowKind.SESSION:
        assert window.gap is not None
        gap = window.gap * MILLISECOND
        below = AssignSessions(below, time.index, width, gap, order.partition, WindowRange(), zone)
    else:
        below = Assign(below, time.index, width, Aligned.of(window), WindowRange(), zone)
    return replace(order, input=below, partition=(*order.partition, f"c{width}"))


def _spec(order: OverAggregate, frame: Frame, by_rows: bool) -> str:
    if frame.window is not None or (by_rows and frame.unit == "RANGE"):
        return f"{_clauses(order)} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    scale, suffix = (1, "") if frame.unit == "ROWS" else (MILLISECOND, "L")

    def bound(length: int | None, side: str) -> str:
        if length == 0:
            return "CURRENT ROW"
        return f"{'UNBOUNDED' if length is None else f'{length * scale}{suffix}'} {side}"

    between = f"{bound(frame.preceding, 'PRECEDING')} AND {bound(frame.following, 'FOLLOWING')}"
    return f"{_clauses(order)} {frame.unit} BETWEEN {between}"


def _clauses(order: OverAggregate) -> str:
    by = [*([] if order.time is None else ["micros"]), *(["arrival"] if order.arrival else [])]
    return (f"PARTITION BY {', '.join(order.partition)} " if order.partition else "") + f"ORDER BY {', '.join(by)}"


def _call(over: OverCall, spec: str) -> str:
    """Spark SQL for an OVER call."""
    call, frame = over.call, over.frame
    kind = typed(call.args[0]).type.name if call.args else ""
    if call.filter is not None:
        raise Untranslatable(
            f"{call.function} with a FILTER has no exact translation to OVER in Spark; {FLINK_BATCH}", call.span
        )
    if kind == "DOUBLE" and call.function in ("SUM", "AVG") and _is_sliding(frame):
        raise Untranslatable(
            f"{call.function} of DOUBLE over a sliding frame is inexact: Flink subtracts values that leave the "
            "frame, with errors that depend on all earlier values. Use DECIMAL",
            call.span,
        )
    if call.distinct and call.function == "COUNT" and len(call.args) == 1:
        return f"CAST(size(collect_set({grouped(call.args[0])}) OVER ({spec})) AS BIGINT)"
    if call.distinct and call.function not in ("MIN", "MAX"):
        raise Untranslatable(
            f"{call.function}(DISTINCT …) OVER has no exact translation to Spark; {FLINK_BATCH}", call.span
        )
    plain = replace(call, distinct=False)
    # Here, Flink's planner computes AVG as SUM and COUNT. The sum may overflow.
    other_calls = [replace(plain, function=name) for name in ("SUM", "COUNT")] if kind in INTEGERS else []
    return aggregate(plain, other_calls, (lambda name, text: f"{text} OVER ({spec})"))


def _is_sliding(frame: Frame) -> bool:
    return frame.window is None and (frame.preceding is not None or frame.following != 0)


_BOUNDS = {WindowField.START, WindowField.END}


def rank(context: CompileContext, node: Over, needed: frozenset[int], above: FiltersAbove | None) -> Rank:
    """Number the rows of a window's Top-N. Raises :class:`Untranslatable` for all other rankings."""
    width, call = len(node.input.schema), node.calls[0]
    if not numbers_rows(node):
        raise Untranslatable(
            f"a backfill recomputes only OVER aggregations with {', '.join(AGGREGATES)}, and ROW_NUMBER() only if "
            f"it ranks the rows of one window; {FLINK_BATCH}",
            node.span,
        )
    keys = call.partition_by
    fields = {only for key in keys if isinstance(key, InputRef) and (only := _only(node, key)) is not None}
    if not fields >= _BOUNDS:
        raise Untranslatable(
            "ROW_NUMBER() ranks rows of several windows, which a backfill does not recompute: add both "
            "window_start and window_end of one window to PARTITION BY, unchanged",
            node.span,
        )
    first, last = _range(node, width, above)
    order = tuple(
        (_ordered(key), ascending, ascending if nulls_first is None else nulls_first)
        for key, ascending, nulls_first in call.order_by
    )
    inputs = [*keys, *(key for key, _, _ in call.order_by)]
    wanted = frozenset(i for i in needed if i < width) | references(inputs)
    assert above is not None
    return Rank(
        lateness.in_time(context, node, context.compile(node.input, wanted)),
        tuple(range(width, len(node.schema))),
        tuple(grouped(key) for key in keys),
        order,
        tuple(sorted(wanted)),
        first,
        last,
        any(position >= width for position in above.read),
    )


def _only(node: Over, key: InputRef) -> WindowField | None:
    fields = window_fields(node.input, key.index)
    return next(iter(fields)) if len(fields) == 1 else None


def _ordered(key: Expression) -> str:
    """Spark SQL for a sort key. NaN is refused, because Flink's comparison does not order it."""
    kind = typed(key).type
    if spark_type(kind) is None:
        raise Untranslatable(f"ORDER BY a {kind} has no exact translation to Spark; {FLINK_BATCH}", key.span)
    text = scalar(key)
    return ordered(text) if kind.name in APPROXIMATE else text


def _range(node: Over, width: int, above: FiltersAbove | None) -> tuple[int, int]:
    """First and last rank that the filters keep."""
    comparisons = []
    for condition in above.conditions if above is not None else ():
        if not any(position >= width for position in references([condition])):
            continue
        comparison = _comparison(condition, width)
        if comparison is None:
            raise Untranslatable(
                "a Top-N may compare its row number only with constants: write rownum <= N, = N or BETWEEN M AND N",
                condition.span or node.span,
            )
        comparisons.append(comparison)
    first, last = kept_ranks(comparisons)
    if last is None:
        raise Untranslatable(
            "ROW_NUMBER() without a condition on the row number is not a Top-N: add WHERE rownum <= N", node.span
        )
    return first, last


def _comparison(condition: Expression, width: int) -> tuple[str, int] | None:
    """Operator and constant of a comparison, with the row number on the left side."""
    if not isinstance(condition, FunctionCall) or condition.function not in {*FLIPPED, "="} or len(condition.args) != 2:
        return None
    (left, right), sign = condition.args, condition.function
    if isinstance(left, Literal):
        left, right, sign = right, left, FLIPPED.get(sign, sign)
    if not isinstance(left, InputRef) or left.index < width or not isinstance(right, Literal):
        return None
    return (sign, right.value) if isinstance(right.value, int) and not isinstance(right.value, bool) else None
