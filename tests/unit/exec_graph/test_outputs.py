"""Which metrics of an aggregation the operators above it compute something of together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, ExecNode
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.outputs import column_uses, outputs_of

SUMS = ("group-aggregate", ("a", "s", "m"), {}, (0,))


def plan(*nodes: tuple[str, Sequence[str], Mapping[str, Any], Sequence[int]]) -> CompiledPlan:
    """A plan of a source and these nodes: kind, columns, configuration, places of what each reads."""
    every = (("table-source-scan", ("a", "v"), {}, ()), *nodes)
    made = (
        ExecNode(place, ExecKind(kind), kind, config, tuple(names), ("BIGINT",) * len(names), tuple(inputs))
        for place, (kind, names, config, inputs) in enumerate(every)
    )
    return CompiledPlan("2.3", tuple(made))


def calc(*projection: Sequence[int], condition: Sequence[int] = ()) -> tuple[Any, ...]:
    """A Calc that computes each of its columns of these."""

    def rex(places: Sequence[int]) -> Mapping[str, Any]:
        return {"kind": "CALL", "operands": [{"kind": "INPUT_REF", "inputIndex": place} for place in places]}

    config = {"projection": [rex(places) for places in projection]}
    names = [f"c{place}" for place, _ in enumerate(projection)]
    return "calc", names, config | ({"condition": rex(condition)} if condition else {})


S_AND_M = frozenset({1, 2})


@pytest.mark.parametrize(
    "between",
    [
        (),
        (("rank", ("a", "s", "m", "w0$o0"), {}, (1,)),),
        (("deduplicate", ("a", "s", "m"), {}, (1,)),),
        (("exchange", ("a", "s", "m"), {}, (1,)), ("over-aggregate", ("a", "s", "m", "w0$o0"), {}, (2,))),
    ],
)
def test_what_is_computed_behind_operators_that_hand_rows_on(between: tuple[Any, ...]) -> None:
    read = 1 + len(between)
    apart = plan(SUMS, *between, (*calc([0], [1], [2]), (read,)))
    assert S_AND_M not in column_uses(apart, apart.nodes[1])[0]
    mixed = plan(SUMS, *between, (*calc([0], [1, 2]), (read,)))
    assert S_AND_M in column_uses(mixed, mixed.nodes[1])[0]
    filtered = plan(SUMS, *between, (*calc([0], [1], condition=[2]), (read,)))
    assert column_uses(filtered, filtered.nodes[1])[1] == {2}


@pytest.mark.parametrize(
    "config",
    [
        {"orderBy": {"fields": [{"index": 2, "isAscending": False}]}, "partition": {"fields": [0]}},
        {"sortSpec": {"fields": [{"index": 0}]}, "partitionSpec": {"fields": [2]}},
    ],
)
def test_a_ranking_goes_by_what_it_is_asked_for(config: Mapping[str, Any]) -> None:
    found = plan(SUMS, ("rank", ("a", "s", "m"), config, (1,)), (*calc([0], [1]), (2,)))
    assert column_uses(found, found.nodes[1])[1] == {0, 2}


@pytest.mark.parametrize(("left", "columns"), [(True, [1, 2]), (False, [3, 4])])
def test_a_join_hands_its_sides_on_side_by_side(left: bool, columns: list[int]) -> None:
    other = ("calc", ("x", "y"), {"projection": []}, (0,))
    inputs = (1, 2) if left else (2, 1)
    names = ("a", "s", "m", "x", "y") if left else ("x", "y", "a", "s", "m")
    found = plan(SUMS, other, ("join", names, {}, inputs), (*calc(columns), (3,)))
    assert column_uses(found, found.nodes[1])[0] >= {S_AND_M}


def test_a_join_that_only_asks_counts_as_computed_of_all() -> None:
    other = ("calc", ("x", "y"), {"projection": []}, (0,))
    found = plan(SUMS, other, ("join", ("a", "s", "m"), {}, (1, 2)), (*calc([1]), (3,)))
    assert frozenset({0, 1, 2}) in column_uses(found, found.nodes[1])[0]


def test_a_call_of_another_aggregation_is_computed_of_all_that_it_takes() -> None:
    """Its condition with its arguments; what it groups by decides which rows go where. Behind it, nothing."""
    calls = [{"argList": [1], "filterArg": 2}, {"argList": [], "filterArg": -1}]
    upper = ("group-aggregate", ("s", "n", "o"), {"grouping": [0], "aggCalls": calls}, (1,))
    found = plan(SUMS, upper, (*calc([1, 2]), (2,)))
    assert column_uses(found, found.nodes[1]) == (frozenset({S_AND_M, frozenset()}), {0})


TABLE = {"resolvedTable": {"schema": {"columns": [{"name": "k"}, {"name": "dearest"}, {"name": "label"}]}}}
SINK = ("sink", ("a", "EXPR$1", "EXPR$2"), {"dynamicTableSink": {"table": TABLE}})
GROUPED = {"grouping": [0], "aggCalls": [{"argList": [1], "filterArg": 2}, {"argList": [0], "filterArg": -1}]}
OVER = {"overSpec": {"groups": [{"aggCalls": [{"argList": [2]}]}]}}


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ([], {"dearest": {1}, "label": {2}}),
        ([calc([0], [1, 2], [0])], {"dearest": {1, 2}, "label": {0}}),
        ([("group-aggregate", ("a", "n", "o"), GROUPED)], {"dearest": {1, 2}, "label": {0}}),
        (
            [("local-group-aggregate", ("a", "x", "y", "z"), GROUPED), ("global-group-aggregate", "ano", GROUPED)],
            {"dearest": {1, 2}, "label": {0}},
        ),
        ([("over-aggregate", ("a", "s", "m", "o"), OVER), calc([0], [3], [1])], {"dearest": {2}, "label": {1}}),
        ([("window-table-function", ("a", "s", "m", "w"), {"windowing": {"window": {"type": "Tumbling"}}}),
          calc([0], [3], [2])], {"label": {2}}),
        ([("correlate", ("a", "s", "m", "f"), {}), calc([0], [3], [1])], {"dearest": {0, 1, 2}, "label": {1}}),
    ],
)  # fmt: skip
def test_columns_of_sinks_through_operators(between: list[Any], expected: dict[str, set[int]]) -> None:
    nodes = [(*node[:3], (place,)) for place, node in enumerate([*between, SINK], start=1)]
    found = plan(SUMS, *nodes)
    assert outputs_of(found, found.nodes[1]) == {
        ("k", frozenset({0})), *((name, frozenset(places)) for name, places in expected.items())
    }  # fmt: skip
