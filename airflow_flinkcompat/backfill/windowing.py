"""Windows and the aggregations over them as steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from zoneinfo import available_timezones

from airflow_flinkcompat.backfill.errors import FLINK_BATCH, Untranslatable
from airflow_flinkcompat.backfill.expressions import aggregate, aggregate_references, references, scalar
from airflow_flinkcompat.backfill.grouping import aggregate_sets, check_sets
from airflow_flinkcompat.backfill.steps import Assign, Group, Select, Step
from airflow_flinkcompat.backfill.windows import Aligned, Demand, refusal
from airflow_flinkcompat.plan.expressions import Expression, InputRef
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    GroupWindowAggregate,
    Node,
    Window,
    WindowAssign,
    WindowField,
    WindowKind,
    walk_nodes,
)
from airflow_flinkcompat.plan.types import TimeAttribute

if TYPE_CHECKING:
    from airflow_flinkcompat.backfill.relations import Relations

# What Flink takes beside names of the time zone database, and the names it does not take (measured).
_OFFSET = re.compile(r"GMT[+-]([0-9]|0[0-9]|1[0-8])|GMT[+-](0[0-9]|1[0-7]):[0-5][0-9]|GMT[+-]18:00|UTC")
_SHORT = {"EST", "MST", "HST", "ROC"}


def assign(
    relations: Relations,
    node: WindowAssign | GroupWindowAggregate,
    window: Window,
    time: Expression,
    attribute: TimeAttribute | None,
    needed: frozenset[int],
) -> Assign:
    """The input's rows in their windows. Raises :class:`Untranslatable` for a window that is not cut exactly."""
    below = node.input
    if window.kind is WindowKind.SESSION:
        raise Untranslatable(f"a SESSION window is not recomputed by a backfill yet; {FLINK_BATCH}", node.span)
    if (reason := refusal(window)) is not None:
        raise Untranslatable(f"Flink refuses this window: {reason}", node.span)
    if attribute is TimeAttribute.PROCTIME:
        raise Untranslatable(
            "a window on processing time depends on when the job ran; history cannot be recomputed", node.span
        )
    if not isinstance(time, InputRef):
        raise Untranslatable("a window on a computed time is not recomputed; compute it in the table's DDL", node.span)
    if any(isinstance(inner, WindowAssign | GroupWindowAggregate) for inner in walk_nodes(below)):
        raise Untranslatable(
            f"a window over windowed rows is not recomputed by a backfill yet; {FLINK_BATCH}", node.span
        )
    zone = _zone(relations, below, time, node)
    width = len(below.schema)
    body = relations.node(below, frozenset(i for i in needed if i < width) | {time.index})
    demand = Demand.inside(relations.bounds.from_, relations.bounds.to, relations.bounds.after)
    return Assign(body, time.index, width, Aligned.of(window), demand, zone)


def _zone(relations: Relations, below: Node, time: InputRef, node: Node) -> str:
    """The time zone in which windows are cut, "" where the time is without one."""
    kind = below.schema[time.index].type
    if kind.name == "TIMESTAMP":
        return ""
    if kind.name != "TIMESTAMP_LTZ":
        raise Untranslatable(f"a window needs an event time of type TIMESTAMP or TIMESTAMP_LTZ, not {kind}", node.span)
    zone = relations.settings.get("table.local-time-zone")
    if zone is None or zone == "default":
        raise Untranslatable(
            f"windows on {kind} are cut in table.local-time-zone, which is not set, so Flink takes that of its "
            "machine: SET 'table.local-time-zone' = 'UTC' or what that is, or declare the time as TIMESTAMP",
            node.span,
        )
    if not _is_zone(zone):
        raise Untranslatable(
            f"table.local-time-zone is {zone}, which Flink refuses: write a name of the time zone database such as "
            "'America/Los_Angeles', an offset as in 'GMT+03:00', or 'UTC'",
            node.span,
        )
    return zone


def _is_zone(name: str) -> bool:
    return bool(_OFFSET.fullmatch(name)) or name in available_timezones() - _SHORT


def aggregate_rows(relations: Relations, node: Aggregate) -> Step:
    """An aggregation whose keys hold the window."""
    if node.grouping_sets is not None:
        return aggregate_sets(relations, node)
    below = relations.node(node.input, _read_by(node))
    keys = tuple(scalar(key) for key in node.keys)
    calls = tuple((len(keys) + i, aggregate(call, node.aggregates)) for i, call in enumerate(node.aggregates))
    return Group(below, keys, calls)


def group_window(relations: Relations, node: GroupWindowAggregate) -> Step:
    """The legacy group window is the same window, with its start as one more key."""
    check_sets(node)
    below = assign(relations, node, node.window, node.time, node.time_attribute, _read_by(node))
    width, count = len(node.input.schema), len(node.keys)
    keys = (*(scalar(key) for key in node.keys), f"c{width}", f"c{width + 1}", f"c{width + 2}")
    calls = tuple((len(keys) + i, aggregate(call, node.aggregates)) for i, call in enumerate(node.aggregates))
    fields = {WindowField.START: 0, WindowField.END: 1, WindowField.TIME: 2}
    outputs = [*range(count), *(position for position, _ in calls)]
    for property in node.properties:
        if property not in fields:
            raise Untranslatable("a processing-time field of a window cannot be recomputed", node.span)
        outputs.append(count + fields[property])
    return Select(Group(below, keys, calls), tuple((i, f"c{position}") for i, position in enumerate(outputs)))


def _read_by(node: Aggregate | GroupWindowAggregate) -> frozenset[int]:
    return references(node.keys).union(*(aggregate_references(call) for call in node.aggregates))
