"""Late rows, which a streaming job drops because their window is complete, and the order of arrival.

A row meets the highest watermark of the rows that arrived before it, as if one was emitted with each row. It is too
late for a window whose last millisecond that watermark has reached (measured with Flink 2.3). Only operators that keep
windows open drop rows: aggregations and Top-N. Windowed rows by themselves are never late.

Operators that count rows, or add them up one after the other, need the job's own order. Rows of one key that could also
have arrived in another order are an error of the run, and a relation without any known order is refused beforehand.
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
    """Spark SQL of the watermark that each row of a table implies; None for a table without one."""
    table = node.table
    if table.watermark is None:
        return None
    if not declared and not source.ordered:
        raise Untranslatable(
            f"table {table.name}: which rows were late depends on their arrival order, which "
            f"{source.place} does not record; {_INCLUDE}, point to files in the order they were "
            f"written, or name the columns that define it with --order-by {table.path[2]}=COLUMN",
            node.span,
        )
    return scalar(table.watermark.expression)


def in_time(context: CompileContext, node: Aggregate | GroupWindowAggregate | Over, below: Step) -> Step:
    """Rows that reach a windowed operator, without late ones if late rows are dropped."""
    windowed = isinstance(node, WindowAggregate | GroupWindowAggregate | Over)
    if not context.drop_late or not windowed:
        return below
    _check_settings(context, node)
    window = _window(node)
    if window is None or not _may_be_late(window.input):
        return below
    if window.window.kind is WindowKind.SESSION:
        return below  # without them: see session_drops
    end = _end(node)
    fires = f"{end} - INTERVAL '0.001' SECOND"
    if zone := _zone(context, node, window):
        fires = f"to_utc_timestamp({fires}, {quoted(zone)})"
    windows = Aligned.of(window.window)
    return DropLate(below, fires, late_in(windows, end, context.own), (windows, end))


def session_drops(context: CompileContext, node: WindowAssign | GroupWindowAggregate) -> bool:
    """True if sessions leave out late rows, so that rows need their arrival position.

    A row is late if a watermark has reached the last millisecond of its own single-row session, unless it touches an
    open one. A row that would touch a closed session begins another: Flink's operators cut sessions
    as rows arrive (measured).
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
            "late rows of a SESSION are known only if it reads the rows of a table, not the output "
            f"of another operator; {_INCLUDE}, or compute these rows with Flink",
            node.span,
        )
    return True


def _zone(context: CompileContext, node: Node, window: WindowAssign | GroupWindowAggregate) -> str:
    """The time zone that cuts a window; "" if its time has none."""
    if not isinstance(window.time, InputRef) or window.input.schema[window.time.index].type.name != "TIMESTAMP_LTZ":
        return ""
    zone = context.settings["table.local-time-zone"]
    if zone != "UTC" and not zone.startswith("GMT"):
        raise Untranslatable(
            f"late rows of windows in the time zone {zone}, whose clocks change, are unknown; "
            f"{_INCLUDE}, or SET 'table.local-time-zone' = 'UTC' as for the job",
            node.span,
        )
    return zone


def over_in_time(context: CompileContext, node: Over, below: Step, time: InputRef | None) -> Step:
    """The rows that reach an OVER aggregation, without those that are too late for it.

    On event time, an unbounded frame takes rows that no watermark has passed. A bounded ROWS frame takes rows later
    than the last emitted row of their key. A bounded frame takes no row of 1970-01-01 00:00:00 or before (Flink's
    operators; measured).
    """
    frame = node.calls[0].frame
    alone = len({(call.partition_by, call.order_by, call.frame) for call in node.calls}) == 1
    of_flink = alone and frame.window is None and frame.following == 0 and not context.batch
    if time is None or not of_flink:
        if context.drop_late and time is not None:
            raise Untranslatable(
                f"Flink does not compute this OVER when streaming, so no rows are known to be late for it; {_INCLUDE}",
                node.span,
            )
        return below
    bounded = frame.preceding is not None
    drops = context.drop_late and _may_be_late(node.input)
    if bounded:
        if drops and frame.unit == "RANGE":
            raise Untranslatable(
                f"late rows of a bounded OVER … RANGE depend on the timers by which Flink drops keys; {_INCLUDE}",
                node.span,
            )
        keys = tuple(grouped(key) for key in node.calls[0].partition_by)
        return DropOverLate(below, time.index, keys if drops else None)
    return DropLate(below, f"c{time.index}", "TRUE") if drops else below


def _check_settings(context: CompileContext, node: Node) -> None:
    """Raise :class:`Untranslatable` if Flink accepts rows into windows that a watermark has completed."""
    # Flink's older windows use this setting as the allowed lateness, unless the script sets it.
    for key in (_LATENESS, *([TTL] if isinstance(node, GroupWindowAggregate) else [])):
        if (value := context.settings.get(key, "0")).strip() != "0":
            raise Untranslatable(
                f"{key} = '{value}' lets windows accept late rows, so the dropped rows are unknown; "
                f"{_INCLUDE}, or leave the setting out",
                node.span,
            )


def _window(node: Node) -> WindowAssign | GroupWindowAggregate | None:
    """The window whose rows a node stores; None if an operator below has closed the window."""
    if isinstance(node, GroupWindowAggregate):
        return node
    below = node.inputs[0]
    while isinstance(below, Project | Filter):
        below = below.input
    if isinstance(below, Union):
        raise Untranslatable(_UNION, node.span)
    return below if isinstance(below, WindowAssign) else None


_UNION = (
    f"late rows of a UNION ALL depend on the arrival order between its branches; {_INCLUDE}, or "
    "backfill the branches one by one"
)


def _may_be_late(node: Node) -> bool:
    """True if rows may arrive after a watermark that completes a window; closing operators emit in time."""
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
            pass  # accepts some rows that a watermark has passed, and emits them
        case Over():
            return clock_of(node) is TimeAttribute.PROCTIME and _may_be_late(node.input)
        case Union() if not any(_may_be_late(branch) for branch in node.branches):
            return False
        case Union():
            raise Untranslatable(_UNION, node.span)
    raise Untranslatable(f"late rows are unknown here; {_INCLUDE}, or {FLINK_BATCH}", node.span)


def _end(node: Aggregate | GroupWindowAggregate | Over) -> str:
    """The column of the window's end among the rows that reach a node."""
    if isinstance(node, GroupWindowAggregate):
        return f"c{len(node.input.schema) + 1}"
    keys = node.calls[0].partition_by if isinstance(node, Over) else node.keys
    for key in keys:
        if isinstance(key, InputRef) and any(
            origin is not None and origin[1] is WindowField.END for origin in origins(node.input, key.index)
        ):
            return scalar(key)
    raise Untranslatable("the end of the window is not a key", node.span)


TTL = "table.exec.state.ttl"


@dataclass(frozen=True)
class AskedOrder:
    """Requested order of rows with equal ``keys``: by event time first (``by_time``), then by arrival."""

    keys: tuple[Expression, ...]
    by_time: bool


def missing_order(locations: Locations, node: Node, order: AskedOrder) -> str:
    """Reason why the arrival order of a relation's rows is unknown, with the remedy; "" if it is known."""
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
            # On event time, rows leave sorted by it; rows of one time in arrival order, between those of other keys.
            kept = clock is TimeAttribute.PROCTIME or (
                order.by_time and set(node.calls[0].partition_by) <= set(order.keys)
            )
            if kept:
                return missing_order(locations, node.input, order)
            return (
                "rows leave an OVER aggregation on event time when a watermark arrives, not in arrival order; "
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
    """Raise :class:`Untranslatable` if Flink may drop a key's state, depending on processing time."""
    if (value := settings.get(TTL, "0").strip()) not in ("0", "0 ms", "0 s"):
        raise Untranslatable(
            f"with {TTL} = '{value}' Flink drops the state of a key that pauses, depending on processing time, which "
            "no history records; leave the setting out of the backfilled script",
            node.span,
        )


def clock_of(node: Over, call: OverCall | None = None) -> TimeAttribute | None:
    """The time attribute that orders the rows of an OVER or of one of its calls."""
    keys = (call or node.calls[0]).order_by
    first = keys[0][0] if keys else None
    if isinstance(first, FunctionCall) and first.function == "PROCTIME":
        return TimeAttribute.PROCTIME
    return node.input.schema[first.index].time_attribute if isinstance(first, InputRef) else None


def remedy(node: Node) -> str:
    """Remedy for an unknown arrival order: a declaration of the order of a relation's rows."""
    names = dict.fromkeys(scan.table.path[2] for scan in walk_nodes(node) if isinstance(scan, Scan))
    return "name the columns that define it with " + " ".join(f"--order-by {name}=COLUMN[,COLUMN]" for name in names)


def _unknown_of_table(locations: Locations, node: Scan) -> str:
    table = node.table
    if locations.order(table):
        return ""
    source = locations.source(table)
    if source.ordered:
        return ""
    return f"{source.place} (table {table.name}) does not record the arrival order of its rows; {remedy(node)}"


def _unknown_of_branches(locations: Locations, node: Union, order: AskedOrder) -> str:
    tables = [scan.table for scan in walk_nodes(node) if isinstance(scan, Scan)]
    kinds = {tuple(table.columns[i].type.name for i in locations.order(table)) for table in tables}
    if () in kinds or len(kinds) > 1:
        return (
            f"the arrival order between the branches of a UNION ALL is not recorded; {remedy(node)}, "
            "with columns of the same types"
        )
    return next(filter(None, (missing_order(locations, branch, order) for branch in node.branches)), "")


def late_in(windows: Aligned, end: str, own: WindowRange) -> str:
    """Spark SQL: the window that ends at ``end`` belongs to this range; exactly one chunk has each."""
    micros = micros_of(end)
    bounds = ((windows.start(micros), ">=", own.starts), (micros, ">=", own.ends), (micros, "<=", own.until))
    return " AND ".join(f"{value} {sign} {moment}" for value, sign, moment in bounds if moment is not None) or "TRUE"
