"""A literal of any kind where another one is usual: an answer, never an exception."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.compat import Outcome, Side, check
from airflow_flinkcompat.sql import parse_script

TABLE = "CREATE TABLE t (a INT, b BIGINT, s STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('k' = 'x');\n"
LITERALS = (
    *("0", "-1", "1.5", "1e3", "1e400", ".5", "9" * 390, "9" * 5000, "'x'", "''", "'1'", "NULL", "TRUE", "DEFAULT"),
    *("CAST(2 AS BIGINT)", "CAST('x' AS INT)", "CAST(NULL AS INT)", "TRY_CAST(1 AS INT)", "1 + 1", "((2))", "-(-2)"),
    *("CAST(2 AS DECIMAL(38, 50))", "CAST(a AS ROW<x INT>)", "CAST(a AS INTERVAL DAY)", "CAST(2 AS TIMESTAMP(99))"),
    *("x'0a'", r"U&'\0041'", r"U&'\zz'", r"U&'\D800'", "U&'a' UESCAPE ''", "N'x'", "DATE 'x'", "TIME '99'"),
    *("INTERVAL '1' DAY", "INTERVAL '' DAY", "INTERVAL '.' SECOND", "INTERVAL '-' SECOND", "INTERVAL '1' MONTH"),
    *("INTERVAL '1-1-1' YEAR TO MONTH", "INTERVAL '1 1' SECOND TO DAY", f"INTERVAL '{'9' * 5000}' DAY"),
    *("INTERVAL '1' DAY(0)", "INTERVAL '1' DAY(99999999999999999999)", "INTERVAL '1' DAY(1.5)", "INTERVAL NULL DAY"),
    *("?", "*", "a", "ROW(1, 2)", "ARRAY[1]", "COUNT(*)", "(SELECT 1)", "CASE WHEN 1 = 1 THEN 2 END", "DISTINCT 1"),
)
PLACES = (
    "SELECT a, SUM(b) OVER (PARTITION BY a ORDER BY ts ROWS BETWEEN {} PRECEDING AND CURRENT ROW) FROM t",
    "SELECT a, SUM(b) OVER (PARTITION BY a ORDER BY ts RANGE BETWEEN {} PRECEDING AND CURRENT ROW) FROM t",
    "SELECT a, SUM(b) OVER (PARTITION BY a ORDER BY ts ROWS BETWEEN 1 PRECEDING AND {} FOLLOWING) FROM t",
    "SELECT a FROM t ORDER BY ts LIMIT {}",
    "SELECT a FROM t ORDER BY ts OFFSET {} ROWS FETCH FIRST {} ROWS ONLY",
    "SELECT a, SUM({}) FROM t GROUP BY a, {} HAVING SUM(b) > {}",
    "SELECT SUM(b) FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), {}, {})) GROUP BY window_start, window_end",
    "SELECT SUM(b) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY, {})) GROUP BY window_start, window_end",
    "SELECT a, TUMBLE_START(ts, {}) FROM t GROUP BY a, TUMBLE(ts, {})",
    "SELECT x.a FROM t x JOIN t y ON x.a = y.a AND x.ts BETWEEN y.ts - {} AND y.ts + {}",
    "SELECT x.a FROM t x JOIN t FOR SYSTEM_TIME AS OF {} y ON x.a = y.a",
    "SELECT * FROM (SELECT a, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts) AS n FROM t) WHERE n BETWEEN {} AND {}",
    "SELECT f({}), LAG(a, {}) OVER (ORDER BY ts), TIMESTAMPADD(DAY, {}, ts), FLOOR(ts TO {}), s[{}] FROM t",
    "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES x.b AS q PATTERN (x y) WITHIN {} DEFINE x AS x.b > {})",
    "CREATE TABLE z (a INT, c AS {}, ts TIMESTAMP(3), WATERMARK FOR ts AS {}) WITH ('k' = {}); SELECT * FROM z",
    "CREATE TABLE z (a DECIMAL({}), v ARRAY<CHAR({})>) WITH ('k' = 'v'); SELECT a FROM z",
    "SET 'table.exec.state.ttl' = {}; SET 'pipeline.max-parallelism' = {}; SELECT a, COUNT(*) FROM t GROUP BY a",
    "SELECT /*+ STATE_TTL('t' = {}) */ a, COUNT(*) FROM t /*+ OPTIONS('k' = {}) */ GROUP BY a",
    "ALTER TABLE t MODIFY WATERMARK FOR ts AS ts - {}; INSERT INTO t PARTITION (a = {}) VALUES ({}, {})",
)


@given(
    st.sampled_from(PLACES),
    st.lists(st.sampled_from(LITERALS), min_size=2, max_size=2),
    st.sampled_from(["vvr", "flink"]),
)
def test_every_literal_in_every_place_is_answered(place: str, literals: tuple[str, str], engine: str) -> None:
    old, new = (Side(TABLE + place.replace("{}", literal), engine=engine) for literal in literals)
    assert check(old, new).findings
    assert check(new, new).findings
    for statement in parse_script(new.script).statements:
        if statement.tree is not None:
            assert statement.tree.sql("flink")


@pytest.mark.parametrize("engine", ["vvr", "flink"])
def test_a_frame_of_a_cast_number_is_the_frame_of_the_number(engine: str) -> None:
    """EXPLAIN of 2.3.0 shows one plan for both."""
    cast, plain, other = (
        Side(TABLE + PLACES[0].replace("{}", rows), engine=engine) for rows in ("CAST((2) AS BIGINT)", "2", "3")
    )
    assert check(cast, cast).outcome is Outcome.COMPATIBLE
    assert check(cast, plain).outcome is Outcome.COMPATIBLE
    assert check(cast, other).outcome is Outcome.INCOMPATIBLE


def test_a_number_that_its_type_cannot_hold_is_not_read() -> None:
    """Flink's planner fails on it."""
    odd, plain = (Side(TABLE + PLACES[0].replace("{}", rows)) for rows in ("CAST(300 AS TINYINT)", "300"))
    assert check(odd, plain).outcome is not Outcome.COMPATIBLE
