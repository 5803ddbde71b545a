"""Slices: pieces inside or outside of every window, aggregated first and combined into windows.

Decomposable calls (spark_sql/translations.py, PARTS) are computed once per key and slice instead of once per key and
window, which is less work if a slice has many rows of a key. Sums of DOUBLE are then added up in another order, as they
are between Spark's tasks and between Flink's own slices.
"""

from __future__ import annotations

from airflow_flinkcompat.backfill.spark_sql.expressions import EXACT_SUM, aggregate, grouped, read_by, scalar, typed
from airflow_flinkcompat.backfill.spark_sql.translations import PARTS
from airflow_flinkcompat.backfill.steps import Slices
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
    Project,
    Window,
    WindowAssign,
    WindowKind,
)

_ADDED = 3  # window_start, window_end, window_time


def slices_of(node: Aggregate) -> Slices | None:
    """Plan an aggregation over windowed rows by slices; None if impossible or if windows are slices.

    Filters and projections between window and aggregation are computed on the rows of a slice, so none may read the
    window's fields; as a key they may appear unchanged.
    """
    below, keys, calls = node.input, node.keys, node.aggregates
    conditions: tuple[Expression, ...] = ()
    while isinstance(below, Project | Filter):
        if isinstance(below, Filter):
            conditions = (below.condition, *conditions)  # an inner filter guards what stands above it
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
    """Plan the legacy syntax by slices, in which the window's start, end and time follow the keys."""
    count = len(node.keys)
    if not _covering(node.window):
        return None
    fields = tuple((count + field, field) for field in range(_ADDED))
    return _slices(
        len(node.input.schema), tuple(enumerate(node.keys)), fields, node.aggregates, (), count + len(fields)
    )


def _covering(window: Window) -> bool:
    """True if slices fill windows, one for each if windows are consecutive."""
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
            # De-duplicated per key and slice: the value becomes a key there, NULL where the row does not count.
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
