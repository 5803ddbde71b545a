"""Whatever text comes: an answer or one clear input error, in bounded time."""
# ruff: noqa: SIM905 -- words read better than a list of them

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.compat import InputError, Outcome, Report, check
from airflow_flinkcompat.sql import ScriptError

WORDS = """
    SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT JOIN LEFT ON AS UNION ALL DISTINCT INSERT INTO CREATE TABLE VIEW
    TEMPORARY WITH SET RESET USE CATALOG DROP ALTER LIKE LATERAL UNNEST TUMBLE HOP SESSION DESCRIPTOR INTERVAL
    MINUTE OVER PARTITION ROW_NUMBER COUNT SUM CASE WHEN THEN END CAST NOT NULL IN BETWEEN AND OR EXISTS VALUES
    MATCH_RECOGNIZE PATTERN DEFINE MEASURES GROUPING SETS CUBE ROLLUP WINDOW QUALIFY FOR SYSTEM_TIME OF WATERMARK
    PRIMARY KEY ENFORCED METADATA EXECUTE STATEMENT BEGIN FILTER ROWS RANGE PRECEDING CURRENT ROW JSON_VALUE
    EXTRACT TRIM FETCH OFFSET FUNCTION JAR ADD
""".split()
TOKENS = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(["a", "b", "t", "u", "ts", "`x y`", "'text'", "''", "'1'", "1", "2.50", "1e3", "NULL", "TRUE"]),
    st.sampled_from([*"()[],;*=<>+-/%.|{}?:", "<>", "<=", "||", "=>", "/*+", "*/", "--", "/*", "\n", "'", "`"]),
)
TEXT = st.lists(TOKENS, min_size=1, max_size=25).map(" ".join)
START = "SELECT a, COUNT(*) FROM t WHERE {0} GROUP BY a;"


def answer(old: str, new: str) -> Report | None:
    """The report; None for an input error, the one thing that may be raised."""
    try:
        return check(old, new)
    except (ScriptError, InputError):
        return None


@given(TEXT, TEXT)
def test_any_text_is_answered(old: str, new: str) -> None:
    answer(old, new)
    same = answer(old, old)
    assert same is None or same.findings


@given(TEXT)
def test_any_condition_is_answered(condition: str) -> None:
    report = answer(START.format("a > 1"), START.format(condition))
    assert report is None or report.findings


@given(st.text(max_size=60))
def test_any_characters_are_answered(text: str) -> None:
    answer("SELECT a FROM t;", text)


@pytest.mark.nightly
def test_two_hundred_views_on_each_other_take_seconds() -> None:
    views = [
        "CREATE TABLE t (a BIGINT, b STRING) WITH ('connector' = 'kafka');",
        "CREATE TEMPORARY VIEW v0 AS SELECT * FROM t;",
    ]
    views += [f"CREATE TEMPORARY VIEW v{i} AS SELECT a + 1 AS a, b FROM v{i - 1} WHERE a > {i};" for i in range(1, 201)]
    script = "\n".join(views) + "SELECT b, SUM(a) FROM v200 GROUP BY b;"
    begin = time.process_time()
    report = check(script, script.replace("a + 1 AS a, b FROM v7 ", "a + 2 AS a, b FROM v7 "))
    assert time.process_time() - begin < 20
    assert report.outcome is Outcome.INCOMPATIBLE


@pytest.mark.slow
@pytest.mark.parametrize(
    "nested",
    [
        "SELECT " + "(" * 2000 + "a" + ")" * 2000 + " FROM t;",
        "SELECT " + " + ".join(["a"] * 2000) + " FROM t;",
        "SELECT " + "f(" * 1500 + "a" + ")" * 1500 + " FROM t;",
        "SELECT a FROM " + "(SELECT a FROM " * 500 + "t" + ")" * 500 + ";",
        "SELECT a FROM t WHERE " + " AND ".join(f"a <> {i}" for i in range(3000)) + ";",
        "SELECT a FROM t " + " UNION ALL SELECT a FROM t" * 800 + ";",
        "SELECT CASE " + "WHEN a = 1 THEN CASE " * 400 + "WHEN a = 2 THEN 1 END" + " END" * 400 + " FROM t;",
    ],
    ids=["brackets", "sums", "calls", "subqueries", "conditions", "unions", "cases"],
)
def test_deep_nesting_is_no_traceback(nested: str) -> None:
    for old, new in ((nested, nested), ("SELECT a FROM t;", nested), (nested, nested.replace("a", "b", 1))):
        report = answer(old, new)
        assert report is not None
        assert report.outcome is not Outcome.PARTIAL
