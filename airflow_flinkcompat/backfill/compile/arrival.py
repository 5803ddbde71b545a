"""Arrival order of rows at an operator, from a source or declared columns.

Operators that count rows, or add them up one after the other, need the job's own order. Rows of one key that could also
have arrived in another order are an error of the run, and a relation without any known order is refused beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_flinkcompat.backfill.errors import FLINK_BATCH, Untranslatable
from airflow_flinkcompat.backfill.protocols import Locations
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall, InputRef, through, transform
from airflow_flinkcompat.plan.nodes import (
    Filter,
    GroupWindowAggregate,
    Node,
    Over,
    OverCall,
    Project,
    Scan,
    Union,
    walk_nodes,
)
from airflow_flinkcompat.plan.types import TimeAttribute

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
            # On event time, rows leave sorted by it; those of one moment as they came, but beside those of other keys.
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
    """Raise :class:`Untranslatable` if Flink may forget a key in between, depending on its machine."""
    if (value := settings.get(TTL, "0").strip()) not in ("0", "0 ms", "0 s"):
        raise Untranslatable(
            f"with {TTL} = '{value}' Flink drops the state of a key that pauses, depending on "
            "processing time, which no history records; leave the setting out of the backfilled "
            "script",
            node.span,
        )


def clock_of(node: Over, call: OverCall | None = None) -> TimeAttribute | None:
    """The time attribute that rows of an OVER, of one of its calls, are ordered by."""
    keys = (call or node.calls[0]).order_by
    first = keys[0][0] if keys else None
    if isinstance(first, FunctionCall) and first.function == "PROCTIME":
        return TimeAttribute.PROCTIME
    return node.input.schema[first.index].time_attribute if isinstance(first, InputRef) else None


def remedy(node: Node) -> str:
    """Remedy: how a person declares the arrival order of a relation's rows."""
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
