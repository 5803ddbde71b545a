"""Compilers of row-count windows (TUMBLE and HOP of the Table API) and GROUPING SETS.

The behavior was measured with a streaming job of Flink 2.3. Window k of a key (k = 0, 1, …) contains the rows k · slide
+ 1 to k · slide + size. Event times have no effect. A window is emitted when it is full. A window that never becomes
full is never emitted.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_flinkcompat.backfill.compile import lateness
from airflow_flinkcompat.backfill.compile.context import CompileContext
from airflow_flinkcompat.backfill.compile.lateness import AskedOrder
from airflow_flinkcompat.backfill.result import FLINK_BATCH, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import aggregate, grouped, read_by
from airflow_flinkcompat.backfill.steps import Expand, Group, OverAggregate, Select, Step, Where
from airflow_flinkcompat.plan.expressions import AggregateCall
from airflow_flinkcompat.plan.nodes import Aggregate, GroupWindowAggregate, Measure, WindowAggregate, WindowKind
from airflow_flinkcompat.plan.types import TimeAttribute


def counts_rows(node: GroupWindowAggregate) -> bool:
    """True if a window is measured in rows."""
    return node.window.measure is Measure.ROWS


def counted_windows(context: CompileContext, node: GroupWindowAggregate) -> Step:
    """Aggregate every full window; raise :class:`Untranslatable` if the rows of a window are unknown."""
    check_sets(node)
    lateness.check_no_expiry(context.settings, node)
    size, slide = _lengths(context, node)
    missing = lateness.missing_order(context.locations, node.input, AskedOrder(node.keys, by_time=False))
    if missing:
        raise Untranslatable(f"a window counts rows in their order of arrival: {missing}", node.span)
    keys = tuple(grouped(key) for key in node.keys)
    width = len(node.input.schema)
    rows, again = f"c{width}", f"c{width + 1}"
    below: Step = context.under({}).following_arrival(True).compile(node.input, read_by(node.keys, node.aggregates))
    by = f"PARTITION BY {', '.join(keys)} " if keys else ""
    numbered = (width, f"row_number() OVER ({by}ORDER BY arrival)")
    clash = (
        "the order of arrival is unknown for some rows of a key, but it decides which window contains a row; "
    ) + lateness.remedy(node.input)
    below = OverAggregate(below, keys, None, True, (numbered,), clash)
    window, times = f"({rows} - 1) div {slide}", -(-size // slide)
    if times > 1:
        below, window = Expand(below, width + 1, times), f"({window} - {again})"
    if times > 1 or slide > size:
        below = Where(below, f"{window} >= 0 AND {rows} <= {window} * {slide} + {size}")
    first = len(keys) + 1
    calls = tuple((first + i, aggregate(call, node.aggregates)) for i, call in enumerate(node.aggregates))
    full = first + len(calls)
    group = Group(below, (*keys, window), (*calls, (full, "count(1)")))
    outputs = [*range(len(keys)), *(position for position, _ in calls)]
    return Select(Where(group, f"c{full} = {size}"), tuple((i, f"c{position}") for i, position in enumerate(outputs)))


def _lengths(context: CompileContext, node: GroupWindowAggregate) -> tuple[int, int]:
    """Size and slide in rows.

    Raises :class:`Untranslatable` for a window that Flink refuses, or if a time range is requested.
    """
    window = node.window
    if context.bounds.bounded:
        raise Untranslatable(
            "windows over rows start at the first row of each key, so their backfill must start there too. Omit "
            "--from and --to",
            node.span,
        )
    if node.time_attribute is TimeAttribute.ROWTIME:
        raise Untranslatable(
            "Flink refuses this window: Event-time grouping windows on row intervals are currently not supported.",
            node.span,
        )
    if context.batch:
        raise Untranslatable(
            "Flink refuses this window in batch mode: a window over rows is not supported right now. Remove "
            "execution.runtime-mode, like in the job",
            node.span,
        )
    size, slide = window.size or 0, (window.slide if window.kind is WindowKind.HOP else window.size) or 0
    if window.kind not in (WindowKind.TUMBLE, WindowKind.HOP) or size <= 0 or slide <= 0:
        raise Untranslatable(f"Flink refuses this window: {window.kind} over {size} rows every {slide} rows", node.span)
    if node.properties:
        raise Untranslatable(
            "Flink refuses this window: Window start and Window end cannot be selected for a row-count window.",
            node.span,
        )
    return size, slide


_GROUPING = ("GROUPING", "GROUPING_ID")


def check_sets(node: Aggregate | GroupWindowAggregate) -> None:
    """Raise :class:`Untranslatable` for grouping sets that Flink refuses or computes wrongly (measured)."""
    sets = node.grouping_sets
    if sets is None:
        return
    if isinstance(node, GroupWindowAggregate):
        raise Untranslatable(
            "Flink does not plan GROUPING SETS, CUBE or ROLLUP as a windowed aggregation if GROUP BY contains "
            "TUMBLE, HOP or SESSION. Use TABLE(TUMBLE(…)) and group by window_start and window_end",
            node.span,
        )
    if isinstance(node, WindowAggregate) and node.window.kind is WindowKind.SESSION:
        raise Untranslatable(
            f"Flink does not plan GROUPING SETS, CUBE or ROLLUP over SESSION as a windowed aggregation; {FLINK_BATCH}",
            node.span,
        )
    if len({frozenset(one) for one in sets}) < len(sets):
        raise Untranslatable(
            "a grouping set is listed twice, which Flink refuses in streaming mode and computes wrongly in batch "
            "mode. List each set once",
            node.span,
        )


def aggregate_sets(context: CompileContext, node: Aggregate) -> Select:
    """Compile an aggregation with several grouping sets.

    Raises :class:`Untranslatable` if the result is not exact.
    """
    check_sets(node)
    sets = node.grouping_sets or ()
    width = len(node.input.schema)
    below = lateness.in_time(context, node, context.compile(node.input, read_by(node.keys, node.aggregates)))
    repeated = Expand(below, width, len(sets))
    keys = [
        _key(grouped(key), [n for n, one in enumerate(sets) if i in one], sets, width)
        for i, key in enumerate(node.keys)
    ]
    calls = [call for call in node.aggregates if call.function not in _GROUPING]
    # The index of the grouping set is the last key.
    first = len(keys) + 1
    group = Group(
        repeated, (*keys, f"c{width}"), tuple((first + i, aggregate(call, calls)) for i, call in enumerate(calls))
    )
    places = {call: f"c{first + i}" for i, call in enumerate(calls)}
    values = [places.get(call) or _grouping(call, node, f"c{len(keys)}") for call in node.aggregates]
    return Select(group, tuple(enumerate([*(f"c{i}" for i in range(len(keys))), *values])))


def _key(key: str, members: Sequence[int], sets: Sequence[object], width: int) -> str:
    if len(members) == len(sets):
        return key
    return f"IF(c{width} IN ({', '.join(map(str, members))}), {key}, NULL)"


def _grouping(call: AggregateCall, node: Aggregate, number: str) -> str:
    """Spark SQL for GROUPING and GROUPING_ID: one bit per argument, set if the set lacks the key.

    The last argument determines the lowest bit.
    """
    if not call.args or any(arg not in node.keys for arg in call.args):
        raise Untranslatable(f"the arguments of {call.function} must be keys of the GROUP BY", call.span)
    positions = [node.keys.index(arg) for arg in call.args]
    branches = []
    for i, one in enumerate(node.grouping_sets or ()):
        bits = "".join("0" if position in one else "1" for position in positions)
        branches.append(f"WHEN {i} THEN {int(bits, 2)}")
    return f"CAST(CASE {number} {' '.join(branches)} END AS BIGINT)"
