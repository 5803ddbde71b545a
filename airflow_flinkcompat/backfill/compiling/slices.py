"""Slices: the pieces that lie wholly inside or outside of every window. Aggregated first, then combined into windows.

What is decomposable (plan/translations.py, PARTS) is computed once per key and slice instead of once per key and
window, which is less work where a slice has many rows of a key. Sums of DOUBLE are then added up in another order, as
they are between Spark's tasks and between Flink's own slices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from airflow_flinkcompat.backfill.compiling.steps import Slices
from airflow_flinkcompat.backfill.spark_sql.expressions import aggregate, grouped, read_by, scalar, typed
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
from airflow_flinkcompat.plan.translations import PARTS

_ADDED = 3  # window_start, window_end, window_time
_EXACT_SUM = 28  # a sum of DECIMAL has ten digits more; up to 38 no partial sum can overflow
DENSE = 1.5
"""Rows per key and slice from which on slices are worth their second aggregation."""


def slices_of(node: Aggregate) -> Slices | None:
    """How an aggregation over windowed rows is computed by slices; None where it cannot be, or windows are their own.

    Filters and projections between window and aggregation are computed on the rows of a slice, so none may read the
    window's fields; as a key they may stand as they are.
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
    """The same for the older syntax, where the window's start, end and time stand after the keys."""
    count = len(node.keys)
    if not _covering(node.window):
        return None
    fields = tuple((count + field, field) for field in range(_ADDED))
    return _slices(
        len(node.input.schema), tuple(enumerate(node.keys)), fields, node.aggregates, (), count + len(fields)
    )


def _covering(window: Window) -> bool:
    """Whether slices fill windows, one for each where windows follow one another."""
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
    return not (sums and any(kind.name == "DECIMAL" and kind.parameters[0] > _EXACT_SUM for kind in kinds))


def density(sample: Sequence[tuple[int, int, int]], piece: int, total: float = math.inf) -> float:
    """Estimated rows per key and slice, from the first rows of the data: (hash of the key, slice, time).

    ``piece`` is the length of a slice, ``total`` how many rows there are, about. Rows in the order of time show how
    many there are of a slice; rows in any order do so only together with the total.
    """
    if not sample:
        return math.inf
    seen = len(sample) / len({(key, slice) for key, slice, _ in sample})
    if seen >= DENSE:
        return seen
    times = [time for _, _, time in sample]
    extent = max(max(times) - min(times), 1)
    half = len(times) // 2
    first, second = times[:half] or times, times[half:]
    common = min(max(first), max(second)) - max(min(first), min(second))
    rows = total if common > extent / 2 else len(sample)
    per_slice = rows * piece / max(extent, piece if rows == total else 1)
    return max(seen, per_slice / _distinct(per_slice, _population(len(sample), len({key for key, _, _ in sample}))))


def _distinct(draws: float, population: float) -> float:
    """How many different ones so many draws show, of so many."""
    if math.isinf(draws):
        return population
    return max(population * -math.expm1(-draws / population), min(1.0, draws))


def _population(draws: int, distinct: int) -> float:
    """Of how many the draws were, by what they showed twice."""
    low, high = float(distinct), float(draws) * draws
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _distinct(draws, middle) < distinct else (low, middle)
    return high
