"""Nodes of compiled plans are linked to the operators of their scripts, or to none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, ExecNode
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import Unknown
from airflow_flinkcompat.exec_graph.matching import Linked, unify
from airflow_flinkcompat.plan.operators import operators
from tests.unit.history.planned import compiled

TABLES = """
CREATE TABLE orders (a STRING, b BIGINT, came AS PROCTIME()) WITH ('connector' = 'kafka');
CREATE TABLE refunds (a STRING, b BIGINT, came AS PROCTIME()) WITH ('connector' = 'kafka');
CREATE TABLE one (a STRING, b BIGINT) WITH ('connector' = 'print');
CREATE TABLE two (a STRING, b BIGINT) WITH ('connector' = 'print');
"""
SUMS = "SELECT a, SUM(b) AS b FROM {} GROUP BY a"
BOTH = "EXECUTE STATEMENT SET BEGIN INSERT INTO {} {}; INSERT INTO {} {}; END;"
UNION = f"INSERT INTO one {SUMS.format('orders')} UNION ALL {SUMS.format('refunds')} UNION ALL SELECT a, b FROM orders"
JOIN = (
    f"INSERT INTO one SELECT o.a, o.b FROM ({SUMS.format('orders')}) o JOIN ({SUMS.format('refunds')}) p ON o.a = p.a"
)


def links(script: str, plan: CompiledPlan | None = None) -> dict[str, list[Linked | Unknown]]:
    side = Side(TABLES + script, engine="flink")
    assert not side.outputs[1]
    plan = plan or compiled(side)[0]
    found = unify(plan, side.outputs[0], {table.name: table.path[2] for table in side.program.tables})
    kinds: dict[str, list[Linked | Unknown]] = {}
    for node in plan.nodes:
        kinds.setdefault(node.kind, []).append(found[node.place])
    return kinds


def plan_of(script: str) -> CompiledPlan:
    return compiled(Side(TABLES + script, engine="flink"))[0]


def changed(plan: CompiledPlan, changed_kind: str, /, **fields: object) -> CompiledPlan:
    """A plan whose first node of a kind is another one."""
    place = next(node.place for node in plan.nodes if node.kind == changed_kind)
    nodes = [replace(node, **fields) if node.place == place else node for node in plan.nodes]  # type: ignore[arg-type]
    return CompiledPlan(plan.version, tuple(nodes))


@pytest.mark.parametrize("script", [UNION, JOIN, BOTH.format("one", SUMS.format("orders"), "two", JOIN[16:])])
def test_each_operator_is_linked_in_its_place(script: str) -> None:
    side = Side(TABLES + script, engine="flink")
    plan, places = compiled(side)
    found = unify(plan, side.outputs[0], {table.name: table.path[2] for table in side.program.tables})
    for number, output in side.outputs[0].items():
        for operator in operators(output):
            if operator.kind != "UNION ALL":
                assert found[places[operator]] in [Linked(each, operator) for each in {number, 0}]


@pytest.mark.parametrize(
    ("script", "kind", "fields", "reason"),
    [
        (JOIN, "join", {"kind": ExecKind.DELTA_JOIN}, "has regular join where Flink plans delta-join"),
        (JOIN, "group-aggregate", {"kind": ExecKind.CALC}, "has group aggregation where Flink plans table-source-scan"),
        (UNION, "union", {"inputs": (2,)}, "has UNION ALL where Flink plans union"),
        (
            UNION,
            "sink",
            {"config": {"dynamicTableSink": {"table": {"identifier": "`c`.`d`.`two`"}}}},
            "no query for this sink",
        ),
    ],
)
def test_a_plan_of_other_operators_is_not_linked_in_part(
    script: str, kind: str, fields: dict[str, object], reason: str
) -> None:
    found = links(script, changed(plan_of(script), kind, **fields))
    left = {each.reason for one in found.values() for each in one if isinstance(each, Unknown)}
    assert not [each for one in found.values() for each in one if isinstance(each, Linked)]
    assert all(reason in each for each in left)


def test_swapped_inputs_are_another_plan() -> None:
    plan = plan_of(JOIN)
    join = next(node for node in plan.nodes if node.kind == "join")
    found = links(JOIN, changed(plan, "join", inputs=join.inputs[::-1]))
    assert not [each for each in found["group-aggregate"] if isinstance(each, Linked)]


def test_two_queries_of_one_table_are_not_told_apart() -> None:
    script = BOTH.format("one", SUMS.format("orders"), "one", SUMS.format("orders WHERE b > 1"))
    assert all("several operators" in each.reason for each in links(script)["group-aggregate"])  # type: ignore[union-attr]
    apart = BOTH.format("one", SUMS.format("orders"), "one", SUMS.format("refunds"))
    assert all(isinstance(each, Linked) for each in links(apart)["group-aggregate"])


def test_nodes_that_flink_adds_are_passed_through() -> None:
    script = f"INSERT INTO one {SUMS.format('orders')}"
    plan = plan_of(script)
    exchange = ExecNode(len(plan.nodes), ExecKind.CHANGELOG_NORMALIZE, "", {}, (), (), (0,))
    with_one = changed(CompiledPlan(plan.version, (*plan.nodes, exchange)), "group-aggregate", inputs=(exchange.place,))
    found = links(script, with_one)
    assert isinstance(found["group-aggregate"][0], Linked)
    assert isinstance(found["changelog-normalize"][0], Unknown)
