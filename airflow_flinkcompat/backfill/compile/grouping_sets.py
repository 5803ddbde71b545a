"""GROUPING SETS, CUBE and ROLLUP: each row once per set, with NULL for the keys that are not in it."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_flinkcompat.backfill.compile import lateness
from airflow_flinkcompat.backfill.compile.context import CompileContext
from airflow_flinkcompat.backfill.errors import FLINK_BATCH, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import aggregate, grouped, read_by
from airflow_flinkcompat.backfill.steps import Expand, Group, Select
from airflow_flinkcompat.plan.expressions import AggregateCall
from airflow_flinkcompat.plan.nodes import Aggregate, GroupWindowAggregate, WindowAggregate, WindowKind

_GROUPING = ("GROUPING", "GROUPING_ID")


def check_sets(node: Aggregate | GroupWindowAggregate) -> None:
    """Raise :class:`Untranslatable` for sets that Flink refuses, or answers wrongly (measured)."""
    sets = node.grouping_sets
    if sets is None:
        return
    if isinstance(node, GroupWindowAggregate):
        raise Untranslatable(
            "Flink plans no windowed aggregation of GROUPING SETS, CUBE or ROLLUP next to TUMBLE, "
            "HOP or SESSION in GROUP BY; use TABLE(TUMBLE(…)) and group by window_start and "
            "window_end",
            node.span,
        )
    if isinstance(node, WindowAggregate) and node.window.kind is WindowKind.SESSION:
        raise Untranslatable(
            f"Flink plans no windowed aggregation of GROUPING SETS, CUBE or ROLLUP over SESSION; {FLINK_BATCH}",
            node.span,
        )
    if len({frozenset(one) for one in sets}) < len(sets):
        raise Untranslatable(
            "the same grouping set is listed twice, which Flink refuses when streaming and answers "
            "wrongly in batch mode; write it once",
            node.span,
        )


def aggregate_sets(context: CompileContext, node: Aggregate) -> Select:
    """An aggregation by several sets of keys. Raises :class:`Untranslatable` if it is not exact."""
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
    # The number of the set is the last key.
    first = len(keys) + 1
    group = Group(
        repeated,
        (*keys, f"c{width}"),
        tuple((first + i, aggregate(call, calls)) for i, call in enumerate(calls)),
    )
    places = {call: f"c{first + i}" for i, call in enumerate(calls)}
    values = [places.get(call) or _grouping(call, node, f"c{len(keys)}") for call in node.aggregates]
    return Select(group, tuple(enumerate([*(f"c{i}" for i in range(len(keys))), *values])))


def _key(key: str, members: Sequence[int], sets: Sequence[object], width: int) -> str:
    if len(members) == len(sets):
        return key
    return f"IF(c{width} IN ({', '.join(map(str, members))}), {key}, NULL)"


def _grouping(call: AggregateCall, node: Aggregate, number: str) -> str:
    """GROUPING and GROUPING_ID: a bit per argument, the last one lowest, set if the key is not in the set."""
    if not call.args or any(arg not in node.keys for arg in call.args):
        raise Untranslatable(f"{call.function} takes keys of the GROUP BY", call.span)
    positions = [node.keys.index(arg) for arg in call.args]
    branches = []
    for i, one in enumerate(node.grouping_sets or ()):
        bits = "".join("0" if position in one else "1" for position in positions)
        branches.append(f"WHEN {i} THEN {int(bits, 2)}")
    return f"CAST(CASE {number} {' '.join(branches)} END AS BIGINT)"
