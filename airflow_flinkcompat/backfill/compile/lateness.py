"""Late rows, which a streaming job drops because their window has fired, and the order of arrival.

A row meets the highest watermark of all rows that arrived earlier, as if Flink emitted a watermark after each row. A
row is too late for a window if the watermark that the row meets has reached the window's last millisecond (measured
with Flink 2.3). Only operators that keep windows open drop rows: aggregations and Top-N. Windowed rows without an
aggregation or a Top-N are never dropped.

Operators that count rows, or add them one by one, need the job's own order of rows. If rows of one key could have
arrived in a different order, the run fails. A relation without any known order is refused before the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_flinkcompat.backfill.compile.context import CompileContext
from airflow_flinkcompat.backfill.compile.sink_columns import origins
from airflow_flinkcompat.backfill.protocols import BackfillSource, Locations
from airflow_flinkcompat.backfill.result import FLINK_BATCH, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import grouped, quoted, scalar
from airflow_flinkcompat.backfill.spark_sql.windows import Aligned, WindowRange, micros_of
from airflow_flinkcompat.backfill.steps import DropLate, DropOverLate, Step
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall, InputRef, through, transform
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    Filter,
    GroupWindowAggregate,
    Node,
    Over,
    OverCall,
    Project,
    Scan,
    Union,
    WindowAggregate,
    WindowAssign,
    WindowField,
    WindowKind,
    walk_nodes,
)
from airflow_flinkcompat.plan.types import TimeAttribute

_INCLUDE = "include late rows"
_LATENESS = "table.exec.emit.allow-lateness"


def watermark(node: Scan, source: BackfillSource, declared: bool = False) -> str | None:
    """Spark SQL for the watermark that each row of a table implies; None without a WATERMARK."""
    table = node.table
    if table.watermark is None:
        return None
    if not declared and not source.ordered:
        raise Untranslatable(
            f"table {table.name}: late rows depend on the order of arrival, which {source.place} does not record. "
            f"Either {_INCLUDE}, read files in the order in which they were written, or specify the order with "
            f"--order-by {table.path[2]}=COLUMN",
            node.span,
        )
    return scalar(table.watermark.expression)


def in_time(context: CompileContext, node: Aggregate | GroupWindowAggregate | Over, below: Step) -> Step:
    """Return the rows that reach a windowed operator. Omit late rows if the backfill drops late rows."""
    windowed = isinstance(node, WindowAggregate | GroupWindowAggregate | Over)
    if not context.drop_late or not windowed:
        return below
    _check_settings(context, node)
    window = _window(node)
    if window is None or not _may_be_late(window.input):
        return below
    if window.window.kind is WindowKind.SESSION:
        return below  # Late rows of sessions are dropped when sessions are cut: see session_drops.
    end = _end(node)
    fires = f"{end} - INTERVAL '0.001' SECOND"
    if zone := _zone(context, node, window):
        fires = f"to_utc_timestamp({fires}, {quoted(zone)})"
    windows = Aligned.of(window.window)
    return DropLate(below, fires, late_in(windows, end, context.own), (windows, end))


def session_drops(context: CompileContext, node: WindowAssign | GroupWindowAggregate) -> bool:
    """True if sessions drop late rows, so that each row needs its position in the order of arrival.

    A row is late if a watermark has reached the end of its own single-row session, unless the row touches an open
    session. A row that would touch a closed session starts a new session. Flink's operators cut sessions in the order
    of arrival (measured).
    """
    if not context.drop_late or context.batch:
        return False
    _check_settings(context, node)
    _zone(context, node, node)
    below = node.input
    while isinstance(below, Project | Filter):
        below = below.input
    if isinstance(below, Union):
        raise Untranslatable(_UNION, node.span)
    if not isinstance(below, Scan):
        raise Untranslatable(
            "late rows of a SESSION are known only if it reads a table directly, not the output of another "
            f"operator. Either {_INCLUDE}, or compute these rows with Flink",
            node.span,
        )
    return True


def _zone(context: CompileContext, node: Node, window: WindowAssign | GroupWindowAggregate) -> str:
    """Time zone that determines a window's boundaries; "" if the window's time has no zone."""
    if not isinstance(window.time, InputRef) or window.input.schema[window.time.index].type.name != "TIMESTAMP_LTZ":
        return ""
    zone = context.settings["table.local-time-zone"]
    if zone != "UTC" and not zone.startswith("GMT"):
        raise Untranslatable(
            f"late rows are unknown for windows in the time zone {zone}, whose clocks change. Either {_INCLUDE}, "
            "or SET 'table.local-time-zone' = 'UTC' here and in the job",
            node.span,
        )
    return zone


def over_in_time(context: CompileContext, node: Over, below: Step, time: InputRef | None) -> Step:
    """Return the rows that reach an OVER aggregation, without rows that are too late for it.

    In event time, an unbounded frame accepts rows that no watermark has passed. A bounded ROWS frame accepts rows that
    are later than the last emitted row of their key. A bounded frame accepts no row at or before 1970-01-01 00:00:00.
    These rules are Flink's, and were measured.
    """
    frame = node.calls[0].frame
    alone = len({(call.partition_by, call.order_by, call.frame) for call in node.calls}) == 1
    of_flink = alone and frame.window is None and frame.following == 0 and not context.batch
    if time is None or not of_flink:
        if context.drop_late and time is not None:
            raise Untranslatable(
                (
                    "Flink does not support this OVER in streaming mode, so its late rows are unknown. To "
                    f"recompute it, {_INCLUDE}"
                ),
                node.span,
            )
        return below
    bounded = frame.preceding is not None
    drops = context.drop_late and _may_be_late(node.input)
    if bounded:
        if drops and frame.unit == "RANGE":
            raise Untranslatable(
                (
                    "late rows of a bounded OVER … RANGE depend on the timers with which Flink drops keys. To "
                    f"recompute it, {_INCLUDE}"
                ),
                node.span,
            )
        keys = tuple(grouped(key) for key in node.calls[0].partition_by)
        return DropOverLate(below, time.index, keys if drops else None)
    return DropLate(below, f"c{time.index}", "TRUE") if drops else below


def _check_settings(context: CompileContext, node: Node) -> None:
    """Raise :class:`Untranslatable` if Flink accepts rows into windows that have already fired."""
    # For legacy group windows, Flink uses the state TTL as the allowed lateness unless the script sets a lateness.
    for key in (_LATENESS, *([TTL] if isinstance(node, GroupWindowAggregate) else [])):
        if (value := context.settings.get(key, "0")).strip() != "0":
            raise Untranslatable(
                f"windows accept late rows because of {key} = '{value}', so the dropped rows are unknown. Either "
                f"{_INCLUDE}, or remove the setting",
                node.span,
            )


def _window(node: Node) -> WindowAssign | GroupWindowAggregate | None:
    """Window whose rows a node stores; None if an upstream operator has closed the window."""
    if isinstance(node, GroupWindowAggregate):
        return node
    below = node.inputs[0]
    while isinstance(below, Project | Filter):
        below = below.input
    if isinstance(below, Union):
        raise Untranslatable(_UNION, node.span)
    return below if isinstance(below, WindowAssign) else None


_UNION = (
    f"late rows of a UNION ALL depend on the order of arrival across its branches. Either {_INCLUDE}, or backfill "
    "each branch separately"
)


def _may_be_late(node: Node) -> bool:
    """True if rows may arrive after the watermark that completes their window.

    Operators that close windows emit their rows in time.
    """
    while isinstance(node, Project | Filter | WindowAssign):
        if isinstance(node, WindowAssign) and node.window.kind is WindowKind.SESSION:
            return False
        node = node.input
    match node:
        case Scan():
            return True
        case WindowAggregate() | GroupWindowAggregate():
            return False
        case Over(calls=calls) if clock_of(node) is TimeAttribute.ROWTIME and calls[0].frame.preceding is not None:
            pass  # An OVER with a bounded frame also accepts and emits some rows that a watermark has passed.
        case Over():
            return clock_of(node) is TimeAttribute.PROCTIME and _may_be_late(node.input)
        case Union() if not any(_may_be_late(branch) for branch in node.branches):
            return False
        case Union():
            raise Untranslatable(_UNION, node.span)
    raise Untranslatable(f"late rows are unknown for this query. Either {_INCLUDE}, or {FLINK_BATCH}", node.span)


def _end(node: Aggregate | GroupWindowAggregate | Over) -> str:
    """Spark SQL for the window end in the input rows of a node."""
    if isinstance(node, GroupWindowAggregate):
        return f"c{len(node.input.schema) + 1}"
    keys = node.calls[0].partition_by if isinstance(node, Over) else node.keys
    for key in keys:
        if isinstance(key, InputRef) and any(
            origin is not None and origin[1] is WindowField.END for origin in origins(node.input, key.index)
        ):
            return scalar(key)
    raise Untranslatable("the end of the window is not one of the keys: add window_end to them", node.span)


TTL = "table.exec.state.ttl"


@dataclass(frozen=True)
class AskedOrder:
    """Required order of rows with equal ``keys``: by event time if ``by_time``, then by arrival."""

    keys: tuple[Expression, ...]
    by_time: bool


def missing_order(locations: Locations, node: Node, order: AskedOrder) -> str:
    """Reason why a relation's order of arrival is unknown, with a remedy; "" if it is known."""
    match node:
        case Scan():
            return _unknown_of_table(locations, node)
        case Filter():
            return missing_order(locations, node.input, order)
        case Project():
            leaf = through(node.expressions)
            return missing_order(
                locations, node.input, AskedOrder(tuple(transform(key, leaf) for key in order.keys), order.by_time)
            )
        case Over() if (clock := clock_of(node)) is not None:
            # In event time, rows leave sorted by time. Rows with equal times keep their order, mixed with other keys'
            # rows.
            kept = clock is TimeAttribute.PROCTIME or (
                order.by_time and set(node.calls[0].partition_by) <= set(order.keys)
            )
            if kept:
                return missing_order(locations, node.input, order)
            return (
                "an OVER aggregation in event time emits rows when a watermark arrives, not in their order of arrival; "
            ) + FLINK_BATCH
        case Union():
            return _unknown_of_branches(locations, node, order)
    return f"the order of rows after {_NAMES.get(type(node).__name__, 'an operator')} is not recorded; {FLINK_BATCH}"


_NAMES = {
    "WindowAssign": "a window",
    "Aggregate": "an aggregation",
    "WindowAggregate": "an aggregation",
    "GroupWindowAggregate": "an aggregation",
    "Join": "a join",
    "Sort": "an ORDER BY",
}


def check_no_expiry(settings: Mapping[str, str], node: Over | GroupWindowAggregate) -> None:
    """Raise :class:`Untranslatable` if Flink may drop a key's state depending on processing time."""
    if (value := settings.get(TTL, "0").strip()) not in ("0", "0 ms", "0 s"):
        raise Untranslatable(
            f"because of {TTL} = '{value}', Flink drops the state of keys without new rows. The time of the drop "
            "depends on processing time, which no history records. Remove the setting from the backfilled script",
            node.span,
        )


def clock_of(node: Over, call: OverCall | None = None) -> TimeAttribute | None:
    """Time attribute that orders the rows of an OVER, or of one of its calls."""
    keys = (call or node.calls[0]).order_by
    first = keys[0][0] if keys else None
    if isinstance(first, FunctionCall) and first.function == "PROCTIME":
        return TimeAttribute.PROCTIME
    return node.input.schema[first.index].time_attribute if isinstance(first, InputRef) else None


def remedy(node: Node) -> str:
    """Remedy for an unknown order of arrival: specify columns that define the order."""
    names = dict.fromkeys(scan.table.path[2] for scan in walk_nodes(node) if isinstance(scan, Scan))
    return ("specify the columns that define this order with ") + " ".join(
        f"--order-by {name}=COLUMN[,COLUMN]" for name in names
    )


def _unknown_of_table(locations: Locations, node: Scan) -> str:
    table = node.table
    if locations.order(table):
        return ""
    source = locations.source(table)
    if source.ordered:
        return ""
    return f"{source.place} (table {table.name}) does not record in which order its rows arrived; {remedy(node)}"


def _unknown_of_branches(locations: Locations, node: Union, order: AskedOrder) -> str:
    tables = [scan.table for scan in walk_nodes(node) if isinstance(scan, Scan)]
    kinds = {tuple(table.columns[i].type.name for i in locations.order(table)) for table in tables}
    if () in kinds or len(kinds) > 1:
        return (
            f"the order of arrival across the branches of a UNION ALL is not recorded; {remedy(node)}, using "
            "columns of the same types"
        )
    return next(filter(None, (missing_order(locations, branch, order) for branch in node.branches)), "")


def late_in(windows: Aligned, end: str, own: WindowRange) -> str:
    """Spark SQL that is true if the window that ends at ``end`` belongs to this range.

    Each window belongs to exactly one chunk.
    """
    micros = micros_of(end)
    bounds = ((windows.start(micros), ">=", own.starts), (micros, ">=", own.ends), (micros, "<=", own.until))
    return " AND ".join(f"{value} {sign} {moment}" for value, sign, moment in bounds if moment is not None) or "TRUE"
