"""Compilers of windows and of aggregations over windows.

A slice is a time span that lies completely inside or outside each window. Slices are aggregated first, then combined
into windows. Decomposable calls (PARTS in spark_sql/translations.py) are computed once per key and slice instead of
once per key and window. Slices save work if a slice contains many rows of a key. Slices change the order in which
DOUBLE values are added. The order of addition also differs between Spark's tasks and between Flink's slices.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timezone

from airflow_flinkcompat.backfill.compile import lateness
from airflow_flinkcompat.backfill.compile.context import CompileContext
from airflow_flinkcompat.backfill.compile.row_windows import aggregate_sets, check_sets, counted_windows, counts_rows
from airflow_flinkcompat.backfill.compile.sessions import session_rows
from airflow_flinkcompat.backfill.compile.sink_columns import origins, window_is_grouped
from airflow_flinkcompat.backfill.result import FLINK_BATCH, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import EXACT_SUM, aggregate, grouped, read_by, scalar, typed
from airflow_flinkcompat.backfill.spark_sql.translations import PARTS
from airflow_flinkcompat.backfill.spark_sql.windows import DAY, Aligned, AskedWindows
from airflow_flinkcompat.backfill.steps import Assign, AssignSessions, Group, Select, Slices, Step
from airflow_flinkcompat.compat.hand_over import time_zone
from airflow_flinkcompat.plan.expressions import (
    AggregateCall,
    Expression,
    InputRef,
    through,
    transform,
    transform_aggregate,
)
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    Filter,
    GroupWindowAggregate,
    Measure,
    Node,
    Over,
    Project,
    Window,
    WindowAggregate,
    WindowAssign,
    WindowField,
    WindowKind,
)
from airflow_flinkcompat.plan.types import TIMESTAMPS, TimeAttribute
from airflow_flinkcompat.plan.windows import refusal


def windowed_rows(context: CompileContext, node: WindowAssign, needed: frozenset[int]) -> Assign | AssignSessions:
    """Compile a windowing function; raise :class:`Untranslatable` for a window without exact bounds."""
    return _assign(context, node, node.window, node.time, node.time_attribute, needed)


def _assign(
    context: CompileContext,
    node: WindowAssign | GroupWindowAggregate,
    window: Window,
    time: Expression,
    attribute: TimeAttribute | None,
    needed: frozenset[int],
) -> Assign | AssignSessions:
    """Assign rows to windows; raise :class:`Untranslatable` for a window without exact bounds."""
    below = node.input
    _check(context, node, window, time, attribute)
    assert isinstance(time, InputRef)
    zone = zone_of(context.settings, node, time)
    if window.kind is WindowKind.SESSION:
        return session_rows(context, node, time, zone, needed)
    width = len(below.schema)
    windows, asked = Aligned.of(window), context.requested_windows(node)
    windows_below = AskedWindows((windows, asked, DAY if zone else 0))
    under = context.under(requested_below(below, time.index, windows_below))
    body = under.compile(below, frozenset(i for i in needed if i < width) | {time.index})
    return Assign(body, time.index, width, windows, asked.within(context.own), zone, asked)


def requested_below(node: Node, position: int, asked: AskedWindows) -> dict[int, AskedWindows]:
    """Windows of upstream nodes that a window over windowed rows requests, by node."""
    found = (origin for origin in origins(node, position) if origin is not None)
    return {id(inner): asked for inner, field in found if field is WindowField.TIME}


def _check(
    context: CompileContext,
    node: WindowAssign | GroupWindowAggregate,
    window: Window,
    time: Expression,
    attribute: TimeAttribute | None,
) -> None:
    """Raise :class:`Untranslatable` for windows that Flink refuses, or whose bounds are inexact."""
    if window.kind is not WindowKind.SESSION and (reason := refusal(window)) is not None:
        raise Untranslatable(f"Flink refuses this window: {reason}", node.span)
    if window.measure is Measure.ROWS:
        raise Untranslatable("a backfill does not recompute a window over rows yet", node.span)
    if attribute is TimeAttribute.PROCTIME:
        raise Untranslatable(
            ("a window in processing time depends on when the job ran, so it cannot be recomputed from history"),
            node.span,
        )
    if not isinstance(time, InputRef):
        raise Untranslatable(
            ("a backfill does not recompute a window on a computed time. Compute the time in the table's DDL"),
            node.span,
        )
    column = node.input.schema[time.index]
    if not column.type.is_known:
        # An error in the input is the cause, and is more specific.
        context.compile(node.input, frozenset({time.index}))
    if column.type.name not in TIMESTAMPS:
        raise Untranslatable(
            "Flink refuses this window: The window function requires the timecol to be TIMESTAMP or TIMESTAMP_LTZ, "
            f"but {column.name} is {column.type}",
            time.span or node.span,
        )
    if attribute is None and not context.batch:
        raise Untranslatable(
            "Flink refuses this window: The window function requires the timecol is a time attribute type, but "
            f"{column.name} is {column.type}. Declare a WATERMARK or, over windowed rows, use window_time",
            time.span or node.span,
        )
    if isinstance(node, GroupWindowAggregate):
        if window.offset:
            raise Untranslatable(
                "Flink refuses this window: the legacy syntax does not support an offset. Use TABLE(…)", node.span
            )
        return
    if not node.data_first:
        raise Untranslatable(
            (f"Flink refuses this window: if arguments are named, DATA must be the first argument of {window.kind}"),
            node.span,
        )
    names = [column.name for column in node.schema]
    if twice := [name for name in names[-3:] if names.count(name) > 1]:
        raise Untranslatable(
            f"Flink refuses this window: Field names must be unique. Found duplicates: [{', '.join(twice)}]. "
            "Rename these columns of the input",
            node.span,
        )


def zone_of(settings: Mapping[str, str], node: WindowAssign | GroupWindowAggregate | Over, time: InputRef) -> str:
    """Time zone that determines window boundaries; "" for a time without a zone."""
    kind = node.input.schema[time.index].type
    if kind.name == "TIMESTAMP":
        return ""
    zone = settings.get("table.local-time-zone")
    if zone is None or zone == "default":
        raise Untranslatable(
            f"windows on {kind} use table.local-time-zone, which is not set, so Flink uses the zone of its "
            "machine. SET 'table.local-time-zone' = 'UTC' or that zone, or declare the time as TIMESTAMP",
            node.span,
        )
    clock = time_zone(zone)
    if clock is None:
        raise Untranslatable(
            f"table.local-time-zone is {zone}, which Flink refuses. Write a name of the time zone database such "
            "as 'America/Los_Angeles', an offset such as 'GMT+03:00', or 'UTC'",
            node.span,
        )
    uneven = isinstance(node, GroupWindowAggregate) and (node.window.size or 0) % (node.window.slide or 1)
    if uneven and not isinstance(clock, timezone):
        raise Untranslatable(
            "if clocks change, Flink's legacy HOP loses rows unless its size is a multiple of its slide "
            "(measured). Write TABLE(HOP(…))",
            node.span,
        )
    return zone


def aggregate_rows(context: CompileContext, node: Aggregate) -> Step:
    """Compile an aggregation in which each group lies in a single window.

    The aggregation is computed window by window, even if the query uses window fields elsewhere. Flink's state differs
    in that case, but its final rows are equal.
    """
    windowed = isinstance(node, WindowAggregate)
    if not window_is_grouped(node) and (not windowed or context.bounds.bounded):
        inner = "of the outermost window " if windowed else ""
        raise Untranslatable(
            "a backfill does not recompute a group aggregation yet unless both window_start and window_end "
            f"{inner}are keys; {FLINK_BATCH}",
            node.span,
        )
    if node.grouping_sets is not None:
        return aggregate_sets(context, node)
    below = lateness.in_time(context, node, context.compile(node.input, read_by(node.keys, node.aggregates)))
    keys = tuple(grouped(key) for key in node.keys)
    calls = tuple((len(keys) + i, aggregate(call, node.aggregates)) for i, call in enumerate(node.aggregates))
    return Group(below, keys, calls, slices_of(node))


def group_window(context: CompileContext, node: GroupWindowAggregate) -> Step:
    """Compile a legacy group window like a windowing function whose bounds are additional keys."""
    if node.mismatched:
        raise Untranslatable(
            f"Flink refuses {node.mismatched[0]}: it belongs to a different window than the GROUP BY", node.span
        )
    if counts_rows(node):
        return counted_windows(context, node)
    check_sets(node)
    read = read_by(node.keys, node.aggregates)
    below: Step = _assign(context, node, node.window, node.time, node.time_attribute, read)
    width, count = len(node.input.schema), len(node.keys)
    below = lateness.in_time(context, node, below)
    keys = (*(grouped(key) for key in node.keys), f"c{width}", f"c{width + 1}", f"c{width + 2}")
    calls = tuple((len(keys) + i, aggregate(call, node.aggregates)) for i, call in enumerate(node.aggregates))
    fields = {WindowField.START: 0, WindowField.END: 1, WindowField.TIME: 2}
    outputs = [*range(count), *(position for position, _ in calls)]
    for property in node.properties:
        if property not in fields:
            raise Untranslatable("the processing-time field of a window cannot be recomputed", node.span)
        outputs.append(count + fields[property])
    return Select(
        Group(below, keys, calls, legacy_slices_of(node)),
        tuple((i, f"c{position}") for i, position in enumerate(outputs)),
    )


_ADDED = 3  # The columns are window_start, window_end and window_time.


def slices_of(node: Aggregate) -> Slices | None:
    """Plan an aggregation over windowed rows by slices; None if slices are impossible or useless.

    Filters and projections between window and aggregation are computed on the rows of a slice. Filters and projections
    must not use window fields, except unchanged as keys.
    """
    below, keys, calls = node.input, node.keys, node.aggregates
    conditions: tuple[Expression, ...] = ()
    while isinstance(below, Project | Filter):
        if isinstance(below, Filter):
            conditions = (below.condition, *conditions)  # An upstream filter guards downstream filters.
        else:
            leaf = through(below.expressions)
            keys = tuple(transform(key, leaf) for key in keys)
            calls = tuple(transform_aggregate(call, leaf) for call in calls)
            conditions = tuple(transform(condition, leaf) for condition in conditions)
        below = below.input
    if not isinstance(below, WindowAssign) or not _covering(below.window):
        return None
    width = len(below.input.schema)
    fields = {i: key.index - width for i, key in enumerate(keys) if isinstance(key, InputRef) and key.index >= width}
    own = tuple((i, key) for i, key in enumerate(keys) if i not in fields)
    read = read_by([*(key for _, key in own), *conditions], calls)
    if any(position >= width for position in read):
        return None
    return _slices(width, own, tuple(fields.items()), calls, conditions, len(keys))


def legacy_slices_of(node: GroupWindowAggregate) -> Slices | None:
    """Plan a legacy group window by slices. The window's start, end and time follow the keys."""
    count = len(node.keys)
    if not _covering(node.window):
        return None
    fields = tuple((count + field, field) for field in range(_ADDED))
    return _slices(
        len(node.input.schema), tuple(enumerate(node.keys)), fields, node.aggregates, (), count + len(fields)
    )


def _covering(window: Window) -> bool:
    """True if windows are unions of slices. For consecutive windows, each window is one slice."""
    if window.kind is WindowKind.TUMBLE:
        return True
    hops = window.kind in (WindowKind.HOP, WindowKind.CUMULATE)
    return hops and window.slide is not None and window.size is not None and window.slide < window.size


def _slices(
    width: int,
    keys: tuple[tuple[int, Expression], ...],
    fields: tuple[tuple[int, int], ...],
    calls: tuple[AggregateCall, ...],
    conditions: tuple[Expression, ...],
    first: int,
) -> Slices | None:
    partials: dict[str, int] = {}
    values: dict[str, int] = {}
    decomposed: set[int] = set()

    def part(name: str, text: str) -> str:
        decomposed.add(position)
        return f"{PARTS[name][1]}(p{partials.setdefault(text, len(partials))})"

    finals = []
    for position, call in enumerate(calls, start=first):
        if not _decomposable(call):
            return None
        if call.distinct and call.function in ("COUNT", "SUM"):
            # The value becomes a key of the slice, which removes duplicates. The key is NULL where the filter rejects
            # the row.
            (arg,) = call.args
            value = grouped(arg) if call.filter is None else f"IF({scalar(call.filter)}, {grouped(arg)}, NULL)"
            index = values.setdefault(value, width + _ADDED + len(values))
            whole = AggregateCall(call.function, (InputRef(index, typed(arg).type),), call.type, distinct=True)
            finals.append((position, aggregate(whole)))
        else:
            finals.append((position, aggregate(call, calls, part)))
            if position not in decomposed:
                return None
    if len(values) > 1 or not finals:
        return None
    return Slices(
        condition=" AND ".join(f"({scalar(condition)})" for condition in conditions) or "TRUE",
        keys=tuple((position, grouped(key)) for position, key in keys),
        fields=fields,
        values=tuple((index, value) for value, index in values.items()),
        partials=tuple(partials),
        aggregates=tuple(finals),
    )


def _decomposable(call: AggregateCall) -> bool:
    if call.distinct and call.function == "AVG":
        return False
    kinds = [typed(arg).type for arg in call.args]
    sums = call.function in ("SUM", "AVG")
    return not (sums and any(kind.name == "DECIMAL" and kind.parameters[0] > EXACT_SUM for kind in kinds))
