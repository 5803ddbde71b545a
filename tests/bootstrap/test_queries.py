"""Which operators of stored plans are computed from history, and why the others are not; without Spark or Flink."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.backfill.connectors.locations import AssumedLocations
from airflow_flinkcompat.bootstrap import KnownHistory
from airflow_flinkcompat.bootstrap.queries import require_plain, state_query
from airflow_flinkcompat.bootstrap.state_rows import NotComputable
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.plan.operators import operators
from airflow_flinkcompat.state.model import StateKind
from measure.savepoints import load_cases
from tests.migration.cases import migration_of
from tests.savepoint.savepoints import FOLDER, TAKEN


def test_each_operator_is_computed_or_says_why_not(snapshot: SnapshotAssertion) -> None:
    sides = {each.name: each.side for each in load_cases()}
    told = []
    for name in TAKEN:
        plan = (FOLDER / name / "plan.json").read_text("utf-8")
        side = sides[name.partition("/")[2]]
        script = Side(side.script.replace("file://DATA", "file:///data"), dict(side.settings), engine="flink")
        for line in migration_of(plan, plan).operators:
            spec = line.new
            if spec is None or spec.kind is not StateKind.OPERATOR:
                continue
            try:
                query = state_query(script, spec, AssumedLocations())
            except NotComputable as error:
                told.append(f"{name} {spec.name}: {error}")
            else:
                told.append(f"{name} {spec.name}: computed of {', '.join(table.name for table in query.tables)}")
    assert told == snapshot


def test_a_table_that_no_script_declares_is_named() -> None:
    plan = (FOLDER / "2.3/tumble/plan.json").read_text("utf-8")
    side = Side("CREATE TABLE t (a INT); CREATE TABLE u (a INT); INSERT INTO u SELECT a FROM t", engine="flink")
    with pytest.raises(InputError, match="history of orders: the new script declares no table of that name; it declar"):
        KnownHistory({"orders": ""}).extend(migration_of(plan, plan), side)


ORDERS = """
CREATE TABLE orders (a STRING, b BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka');
CREATE TABLE printed WITH ('connector' = 'print') LIKE orders;
INSERT INTO printed """
HOPPING = "TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE))"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT a, SUM(b), MAX(ts) FROM orders GROUP BY a", None),
        (f"SELECT a, SUM(b), window_end FROM {HOPPING} GROUP BY a, window_start, window_end", None),
        (
            f"SELECT a, SUM(b), window_end FROM {HOPPING} WHERE window_end > TIMESTAMP '2026-01-01 00:00:00' "
            "GROUP BY a, window_start, window_end",
            "conditions on the bounds of windows",
        ),
        (
            f"SELECT a, b, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS n FROM {HOPPING}) "
            "WHERE n < 3",
            "windows of another definition",
        ),
        (f"SELECT o.a, h.b, o.ts FROM orders AS o JOIN {HOPPING} AS h ON o.a = h.a", "windows of another definition"),
        (
            "SELECT a, SUM(b), MAX(ts) FROM orders /*+ OPTIONS('scan.startup.mode' = 'latest-offset') */ GROUP BY a",
            "hints are not followed",
        ),
    ],
)
def test_what_stands_between_an_operator_and_its_table(query: str, reason: str | None) -> None:
    outputs, problems = Side(ORDERS + query, engine="flink").outputs
    assert not problems
    (operator,) = operators(outputs[0])
    if reason is None:
        require_plain(operator)
    else:
        with pytest.raises(NotComputable, match=reason):
            require_plain(operator)
