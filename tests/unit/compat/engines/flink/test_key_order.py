"""The order in which a window over processing time keeps its keys, as plans that Flink 2.3.0 compiled show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Outcome, Side, check
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayPlanner
from airflow_flinkcompat.local_flink import LocalFlink

TABLE = (
    "CREATE TABLE t (a STRING, b BIGINT, c INT NOT NULL, d DECIMAL(10, 2), e DOUBLE, g INT, "
    "ts TIMESTAMP(3), pt AS PROCTIME(), WATERMARK FOR ts AS ts) WITH "
    "('connector' = 'filesystem', 'path' = 'file:///t', 'format' = 'csv', 'source.monitor-interval' = '1 s');\n"
)
QUERY = (
    "SELECT {} FROM TABLE(TUMBLE(TABLE {}, DESCRIPTOR({}), INTERVAL '1' MINUTE)) {}"
    "GROUP BY g, c, window_start, window_end;\n"
)
SHOWN, CONDITION = "g, c, SUM(d), AVG(e)", "WHERE c > 3 "
OLD = TABLE + QUERY.format(SHOWN, "t", "pt", CONDITION)
VIEW = TABLE + "CREATE VIEW v AS SELECT * FROM t WHERE c > 3;\n" + QUERY.format(SHOWN, "v", "pt", "")
EXPRESSION = TABLE + QUERY.format("g, c + 1, SUM(d), AVG(e)", "t", "pt", CONDITION)


@pytest.mark.parametrize("new", [VIEW, EXPRESSION], ids=["view", "expression"])
def test_what_may_move_keys_is_not_compatible(new: str) -> None:
    assert check(OLD, new, "flink").outcome is Outcome.UNKNOWN
    assert check(new, OLD, "flink").outcome is Outcome.UNKNOWN


def test_the_same_statements_are_planned_alike() -> None:
    assert check(OLD, OLD.replace("SELECT", "  SELECT\n"), "flink").outcome is Outcome.COMPATIBLE


def test_event_time_keeps_the_order_of_group_by() -> None:
    old, new = (TABLE + QUERY.format(shown, "t", "ts", CONDITION) for shown in (SHOWN, "g, c + 1, SUM(d), AVG(e)"))
    assert check(old, new, "flink").outcome is Outcome.COMPATIBLE


@pytest.mark.nightly
@pytest.mark.slow
def test_flink_keeps_keys_in_either_order(tmp_path: Path) -> None:
    with (
        LocalFlink(tmp_path / "client", gateway_only=True) as client,
        SqlGatewayPlanner(client.gateway_url) as planner,
    ):
        orders = []
        for script in (OLD, VIEW, EXPRESSION):
            (plan,) = planner.compile_plans(Side(script, engine="flink", source="q.sql"), str(tmp_path))
            (window,) = (node for node in plan.nodes if "window-aggregate" in node.kind)
            (below,) = window.inputs
            orders.append([plan.nodes[below].names[place] for place in window.config["grouping"]])
    assert orders == [["c", "g"], ["g", "c"], ["g", "c"]]
