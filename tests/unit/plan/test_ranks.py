"""Top-N and deduplication: which shapes are one, which ranks are kept, and which row is stored.

The expected rows, ranks and kinds are those of Flink 2.3's planner (EXPLAIN of the same queries).
"""
# ruff: noqa: E501 -- one case a line

from __future__ import annotations

import pytest

from airflow_flinkcompat.plan import build_program
from airflow_flinkcompat.plan.lineage import resolve_operators
from airflow_flinkcompat.plan.operators import AggregateOperator, Operator, Output, RankOperator, operators
from airflow_flinkcompat.plan.origins import describe
from airflow_flinkcompat.plan.types import TimeAttribute
from airflow_flinkcompat.sql import parse_script

TABLE = """\
CREATE TABLE t (a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts)
WITH ('connector' = 'kafka');
"""
MINUTE = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"
SUMS = (
    f"(SELECT a, SUM(b) AS b, MAX(c) AS c, window_start, window_end FROM {MINUTE} GROUP BY a, window_start, window_end)"
)
BOUNDS = "window_start, window_end"


def output(sql: str) -> Output:
    (pipeline,) = build_program(parse_script(TABLE + sql)).pipelines
    return resolve_operators(pipeline.sink)


def top(sql: str) -> Operator:
    return operators(output(sql))[0]


def rank(sql: str) -> RankOperator:
    operator = top(sql)
    assert isinstance(operator, RankOperator), operator.kind
    return operator


def numbered(rows: str, partition: str, order: str, columns: str = "*") -> str:
    return f"SELECT {columns}, ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY {order}) AS rk FROM {rows}"


def kept(inner: str, condition: str = "rk <= 2", columns: str = "a, b, c") -> str:
    return f"SELECT {columns} FROM ({inner}) WHERE {condition};"


OVER_SUMS = numbered(SUMS, BOUNDS, "c")
OVER_ROWS = numbered(MINUTE, BOUNDS, "b")
PLAIN = numbered("t", "a", "b DESC")


@pytest.mark.parametrize(
    ("condition", "first", "last"),
    [
        ("rk <= 2", 1, 2),
        ("rk < 3", 1, 2),
        ("3 > rk", 1, 2),
        ("2 >= rk", 1, 2),
        ("rk = 1", 1, 1),
        ("rk = 2", 2, 2),
        ("rk BETWEEN 2 AND 3", 2, 3),
        ("rk > 1 AND rk <= 3", 2, 3),
        ("rk <= 1 + 2", 1, 3),
        ("rk <= 5 AND rk < 3", 1, 2),
        ("2 >= rk AND rk >= 1", 1, 2),
        ("rk <= 3000000000", 1, 3_000_000_000),
    ],
)
def test_kept_ranks(condition: str, first: int, last: int) -> None:
    for inner in (OVER_SUMS, PLAIN):
        operator = rank(kept(inner, condition))
        assert (operator.first, operator.last) == (first, last)
        assert not output(kept(inner, condition)).segment.filters


@pytest.mark.parametrize(
    "condition",
    [
        "rk + 1 <= 3",  # computed
        "rk <= 3 AND rk <> 2",  # no range: planned as an OVER aggregation
        "rk IN (1, 2)",
        "rk <= 2 OR rk = 4",
        "rk >= 2",  # no end
        "rk <= b",  # not constant
        "rk <= 2 AND rk < b",
        "rk <= 2.5",  # planned as rank 25 (a bug of the planner)
        "rk <= 0",  # refused
        "rk <= 2 AND rk > 4",  # no row at all
        "a = 'x'",
    ],
)
def test_what_is_no_constant_range_is_no_rank(condition: str) -> None:
    for inner in (OVER_SUMS, PLAIN):
        assert not isinstance(top(kept(inner, condition)), RankOperator)
        assert output(kept(inner, condition)).segment.filters


@pytest.mark.parametrize(
    "sql",
    [
        PLAIN + ";",
        kept(PLAIN.replace("ROW_NUMBER", "RANK")),
        kept(PLAIN.replace("ROW_NUMBER", "DENSE_RANK")),
        kept(numbered("t", "a", "b").replace(" ORDER BY b", "")),
        kept(
            "SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS rk, ROW_NUMBER() OVER (PARTITION BY a ORDER BY c) AS r2 FROM t"
        ),
        kept(
            "SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY p) AS rk, SUM(b) OVER (PARTITION BY a ORDER BY p) AS s FROM t"
        ),
    ],
)
def test_other_uses_of_over_stay_what_they_are(sql: str) -> None:
    assert top(sql).kind == "OVER aggregation"


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        (kept(OVER_SUMS), "window Top-N"),
        (kept(OVER_ROWS), "window Top-N"),
        (kept(numbered(MINUTE, f"a, {BOUNDS}", "ts"), "rk = 1"), "window deduplication"),
        (kept(numbered(MINUTE, f"a, {BOUNDS}", "window_time DESC"), "rk = 1"), "window deduplication"),
        (kept(numbered(MINUTE, f"a, {BOUNDS}", "b"), "rk = 1"), "window Top-N"),
        (kept(numbered(MINUTE, f"a, {BOUNDS}", "ts")), "window Top-N"),
        (kept(numbered(MINUTE, "window_start", "b")), "Top-N"),
        (kept(numbered(SUMS, "a", "b")), "Top-N"),
        (kept(PLAIN), "Top-N"),
        (kept(numbered("t", "a", "ts DESC"), "rk = 1"), "deduplication"),
        (kept(numbered("t", "a", "ts DESC"), "rk <= 1"), "deduplication"),
        (kept(numbered("t", "a", "p"), "rk < 2"), "deduplication"),
        (kept(numbered(MINUTE, "a", "ts DESC"), "rk = 1"), "deduplication"),
        (kept(numbered("t", "a", "ts DESC")), "Top-N"),
        (kept(numbered("t", "a", "ts DESC, b"), "rk = 1"), "Top-N"),
        (kept(numbered("(SELECT a, b, c, CAST(ts AS TIMESTAMP(3)) AS ts FROM t)", "a", "ts"), "rk = 1"), "Top-N"),
        (kept(numbered("(SELECT a, b, MAX(ts) AS c FROM t GROUP BY a, b)", "a", "c"), "rk = 1"), "Top-N"),
        (kept(numbered(f"(SELECT * FROM ({PLAIN}) WHERE rk <= 2)", "c", "ts", "a, b, c"), "rk = 1"), "Top-N"),
        (
            kept(numbered("(SELECT a, SUM(b) AS b, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS s, TUMBLE_END(ts, INTERVAL '1' MINUTE) AS e FROM t GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE))", "s, e", "b"), columns="a, b"),
            "Top-N",
        ),
    ],
)  # fmt: skip
def test_kinds(sql: str, kind: str) -> None:
    assert rank(sql).kind == kind


@pytest.mark.parametrize(
    ("sql", "row"),
    [
        (kept(OVER_SUMS), "a, window_start, window_end, SUM(b), MAX(c)"),
        (kept(OVER_SUMS, columns="a, c"), "a, window_start, window_end, MAX(c)"),
        (kept(OVER_SUMS, columns="c, b"), "a, window_start, window_end, SUM(b), MAX(c)"),
        (kept(OVER_SUMS, columns="b + 1, a"), "a, window_start, window_end, SUM(b), MAX(c)"),
        (kept(OVER_SUMS, "rk <= 2 AND b > 5", "a"), "a, window_start, window_end, SUM(b), MAX(c)"),
        (kept(numbered(SUMS, BOUNDS, "c", f"c, b, a, {BOUNDS}")), "a, window_start, window_end, SUM(b), MAX(c)"),
        (kept(numbered(SUMS.replace("SUM(b) AS b, MAX(c) AS c", "MAX(c) AS c, SUM(b) AS b"), BOUNDS, "c")), "a, window_start, window_end, MAX(c), SUM(b)"),
        (kept(numbered(SUMS.replace("SELECT a, SUM(b) AS b, MAX(c) AS c, window_start, window_end", "SELECT window_end, SUM(b) AS b, a, MAX(c) AS c, window_start"), BOUNDS, "c")), "a, window_start, window_end, SUM(b), MAX(c)"),
        (kept(numbered(SUMS.replace("BY a, window_start, window_end", "BY window_end, a, window_start"), BOUNDS, "c")), "window_end, a, window_start, SUM(b), MAX(c)"),
        (kept(numbered(SUMS.replace("SUM(b) AS b", "SUM(b) * 2 AS b"), BOUNDS, "c")), "a, window_start, window_end, MAX(c), (SUM(b) * 2)"),
        (kept(numbered(SUMS, BOUNDS, "c", "a, b * 2 AS b, c")), "a, window_start, window_end, MAX(c), (SUM(b) * 2)"),
        (kept(numbered(SUMS, BOUNDS, "c", "*, a AS a2"), columns="a, a2, c"), "a, window_start, window_end, MAX(c)"),
        (kept(OVER_ROWS, columns="a, b"), "a, b, window_start, window_end"),
        (kept(numbered(f"(SELECT window_end, c, window_start, b, a FROM {MINUTE})", BOUNDS, "b")), "a, b, c, window_start, window_end"),
        (kept(numbered(MINUTE, f"a, {BOUNDS}", "window_time"), "rk = 1", "b"), "a, b, window_start, window_end, window_time"),
        (kept(PLAIN), "a, b, c"),
        (kept(PLAIN, columns="1"), "a, b"),
        (kept(numbered("(SELECT c, b, a FROM t)", "a", "b")), "a, b, c"),
        (kept(numbered("(SELECT c, b + 1 AS b, a FROM t)", "a", "b")), "a, c, (b + 1)"),
        (kept(numbered("t", "a", "ts", "a, b + 1 AS b"), "rk = 1", "a, b"), "a, ts, (b + 1)"),
        (kept(numbered("t", "a", "ts", "a, b + 1 AS b"), "rk = 1", "a"), "a, ts"),
        (kept(numbered("t", "a", "ts", "a, 7 AS b"), "rk = 1", "a, b"), "a, ts"),
        ("SELECT a, b + 1 AS b FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts DESC) = 1;", "a, ts, (b + 1)"),
        (kept(numbered("t", "a", "p"), "rk = 1", "a, d"), "a, d, p"),
        (kept(numbered("(SELECT a, c, COUNT(*) AS m FROM t GROUP BY a, c)", "a", "m DESC"), columns="a, m"), "a, c, COUNT(*)"),
        (kept(numbered("(SELECT COUNT(*) AS m, c, a FROM t GROUP BY a, c)", "a", "m DESC"), columns="a, c, m"), "a, c, COUNT(*)"),
        (kept(numbered(SUMS, "a", "b DESC"), columns="a, b"), "a, window_start, window_end, SUM(b)"),
    ],
)  # fmt: skip
def test_the_stored_row(sql: str, row: str) -> None:
    operator = rank(sql)
    assert ", ".join(map(describe, operator.row)) == row
    assert len(operator.row_types) == len(operator.row)
    assert all(kind.is_known for kind in operator.row_types)


def test_partition_and_order_as_the_planner_cleans_them() -> None:
    operator = rank(kept(numbered("t", "a, a, 1", "b DESC, b, 2, c NULLS LAST")))
    assert [describe(key) for key in operator.partition] == ["a"]
    assert [(describe(key), up, nulls) for key, up, nulls in operator.order] == [
        ("b", False, False),
        ("c", True, False),
    ]
    assert [str(kind) for kind in (*operator.partition_types, *operator.order_types)] == ["STRING", "BIGINT", "STRING"]


def test_the_number_is_read_or_not() -> None:
    assert not rank(kept(PLAIN)).number_read
    assert rank(kept(PLAIN, columns="a, rk")).number_read
    assert rank(kept(PLAIN, columns="a, rk + 1")).number_read
    # A single rank is a constant.
    assert not rank(kept(PLAIN, "rk = 2", "a, rk")).number_read


def test_the_clock_of_the_order() -> None:
    assert rank(kept(numbered("t", "a", "ts"), "rk = 1")).order_clock is TimeAttribute.ROWTIME
    assert rank(kept(numbered("t", "a", "p DESC"), "rk = 1")).order_clock is TimeAttribute.PROCTIME
    assert rank(kept(PLAIN)).order_clock is None
    assert rank(kept(numbered("t", "a", "ts, b"), "rk = 1")).order_clock is None


@pytest.mark.parametrize(
    "sql",
    [
        f"CREATE TEMPORARY VIEW v AS {OVER_SUMS}; SELECT a, b, c FROM v WHERE rk <= 2;",
        f"CREATE TEMPORARY VIEW v (a, m, n, s, e, place) AS {OVER_SUMS}; SELECT a, m, n FROM v WHERE 3 > place;",
        f"WITH w AS ({OVER_SUMS}), x AS (SELECT * FROM w WHERE rk <= 4) SELECT a AS k, b, c FROM x WHERE rk < 3;",
        f"SELECT a, b, c FROM {SUMS} QUALIFY ROW_NUMBER() OVER (PARTITION BY {BOUNDS} ORDER BY c) <= 2;",
        f"SELECT a, b, c FROM {SUMS} QUALIFY ROW_NUMBER() OVER w <= 2 WINDOW w AS (PARTITION BY {BOUNDS} ORDER BY c);",
        kept(
            f"SELECT x.*, ROW_NUMBER() OVER (PARTITION BY x.window_start, x.window_end ORDER BY x.c ASC NULLS FIRST) AS rk FROM {SUMS} AS x"
        ),
        kept(
            "SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY c) AS rk, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY c) AS r2 FROM "
            + SUMS
        ),
    ],
)
def test_the_way_a_ranking_is_written_does_not_matter(sql: str) -> None:
    written = output(sql)
    assert (written.segment, written.columns) == (output(kept(OVER_SUMS)).segment, output(kept(OVER_SUMS)).columns)


def test_two_rankings_stacked() -> None:
    lower = kept(numbered(MINUTE, f"a, {BOUNDS}", "c"), "rk <= 5", f"a, b, rk AS place, {BOUNDS}").rstrip(";")
    found = operators(output(kept(numbered(f"({lower})", BOUNDS, "b"), columns="a, b")))
    upper, below = (operator for operator in found if isinstance(operator, RankOperator))
    assert [(operator.kind, operator.last) for operator in (upper, below)] == [("window Top-N", 2), ("window Top-N", 5)]
    # The upper one runs on the lower one's window, and keeps the lower number where it is read.
    assert upper.window == below.window is not None
    assert [describe(column) for column in upper.row] == ["a", "b", "window_start", "window_end"]
    with_place = rank(kept(numbered(f"({lower})", BOUNDS, "b"), columns="a, place"))
    assert "ROW_NUMBER()" in [describe(column) for column in with_place.row]


def test_a_condition_beside_the_rank_stays_above() -> None:
    (extra,) = output(kept(OVER_SUMS, "rk < 3 AND b > 100")).segment.filters
    assert describe(extra) == "(SUM(b) > 100)"
    (bound,) = output(
        kept(OVER_SUMS, "rk < 3 AND window_start > TIMESTAMP '2026-01-01 00:00:00'")
    ).segment.window_filters
    assert describe(bound).startswith("(window_start > ")


def test_metrics_below_are_planned_whoever_reads_them() -> None:
    """Unlike below a projection alone: the planner prunes the row of the ranking, not the aggregation."""
    dropped = numbered(f"(SELECT a, c, {BOUNDS} FROM {SUMS})", BOUNDS, "c")
    for sql in (kept(OVER_SUMS, columns="a"), kept(dropped, columns="a, c")):
        below = operators(output(sql))[1]
        assert isinstance(below, AggregateOperator)
        assert [describe(call) for call in below.aggregates] == ["SUM(b)", "MAX(c)"]


def test_numberings_in_numberings_are_read_in_linear_time() -> None:
    sql = "SELECT a FROM t"
    for _ in range(40):
        sql = f"SELECT a, ROW_NUMBER() OVER (PARTITION BY a ORDER BY a) + 1 AS n FROM ({sql})"
    assert len(operators(output(sql + ";"))) == 40
