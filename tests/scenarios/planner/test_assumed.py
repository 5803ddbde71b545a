"""Upgrades of scripts whose tables and functions are declared elsewhere, on the planners of two lines."""

from __future__ import annotations

import re

import pytest

from airflow_flinkcompat.compat import Outcome, Report, Side
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.planner.judgement import NoJob, judge
from tests.support.nightly import mostly_nightly

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("planners")]


def judged(script: str, old: str = "1.20", new: str = "2.3") -> Report:
    before, after = (Side(script, engine="flink", engine_version=each, source="job.sql") for each in (old, new))
    return judge(before, after, "always")


@pytest.mark.parametrize(
    ("script", "assumed"),
    mostly_nightly(
        [
            ("SELECT k, SUM(v), MAX(w) FROM orders WHERE s LIKE 'a%' GROUP BY k", "orders"),
            ("SELECT COUNT(*) FROM orders", "orders"),
            ("SELECT a, b, COUNT(*) FROM l JOIN r ON x = y AND l.v > 1 GROUP BY a, b", "l, r"),
            (
                "USE CATALOG hive; USE sales; SELECT k, window_start, AVG(v) FROM TABLE(HOP(TABLE orders, "
                "DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)) GROUP BY k, window_start, window_end",
                "orders",
            ),
            ("SELECT o.k, f(o.v) FROM c.d.orders AS o, UNNEST(o.items) AS i WHERE i.id > 1", "c.d.orders, f"),
            (
                "CREATE TEMPORARY FUNCTION split AS 'org.example.Split'; "
                "SELECT k, COUNT(w) FROM orders, LATERAL TABLE(split(words)) AS t(w) GROUP BY k",
                "orders, split",
            ),
            (
                "SELECT o.k, o.price * r.rate FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.c = r.c",
                "orders, rates",
            ),
        ],
        2,
    ),
)
def test_what_both_lines_plan_for_every_variant_is_compatible(script: str, assumed: str) -> None:
    report = judged(script)
    assert report.outcome is Outcome.COMPATIBLE, [each.message for each in report.deciding]
    assert report.ground == f"planned by Flink 2.3.0, with assumed declarations of {assumed}"


def test_a_sink_without_declaration_may_need_on_conflict() -> None:
    report = judged("INSERT INTO totals SELECT a, b + 1 FROM orders")
    assert report.outcome is Outcome.UNKNOWN
    assert [each.message for each in report.deciding] == [
        "compatible unless totals has a PRIMARY KEY by which the query does not update its rows, which Flink 2.3.0 "
        "then refuses: pass a file with the missing DDL as --catalog"
    ]


@pytest.mark.nightly
def test_no_sink_needs_on_conflict_before_flink_2_3() -> None:
    assert judged("INSERT INTO totals SELECT a, b + 1 FROM orders", new="2.2").outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize(
    "script",
    mostly_nightly(
        [
            "SELECT k, best(v) FROM orders GROUP BY k",
            "SELECT best(v) FROM orders",
            "SELECT best(v) OVER (PARTITION BY k ORDER BY ts) FROM orders",
        ],
        1,
    ),
)
def test_an_aggregate_function_without_its_class_is_a_condition(script: str) -> None:
    report = judged(script)
    assert (report.outcome, report.is_conditional) == (Outcome.UNKNOWN, True)
    (finding,) = report.deciding
    assert finding.rule == "absent-class"
    assert "both versions store" in finding.message
    assert {each.effect for each in report.restored} == {"right"}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("SELECT a FROM orders OFFSET 2", "FETCH is missed"),
        ("INSERT INTO orders VALUES (DEFAULT, 'a')", "No match found for function signature DEFAULT"),
        ("CREATE FUNCTION f AS 'x.F'; CREATE TABLE t (a INT,) WITH ('connector' = 'print'); SELECT f(a) FROM t",
         'Encountered ")"'),
    ],
)  # fmt: skip
def test_a_script_that_no_declaration_makes_valid_is_refused(script: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        judged(script)


@pytest.mark.parametrize(
    "script",
    mostly_nightly(
        [
            "SELECT a, d FROM orders UNION ALL SELECT * FROM others",
            "INSERT INTO totals PARTITION (d = 1) SELECT k, COUNT(*) FROM orders GROUP BY k",
            "EXECUTE STATEMENT SET BEGIN INSERT INTO s SELECT 'a', 1; INSERT INTO s SELECT 'abc', b + 1 FROM t; END",
            "CREATE TABLE t (k INT, v INT) WITH ('connector' = 'values', 'changelog-mode' = 'I,UA,UB,D'); "
            "SELECT k, SUM(v) FROM t GROUP BY k",
            "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a, window_start, window_end ORDER BY b) AS r "
            "FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(rowtime), INTERVAL '1' MINUTE))) WHERE r <= 1",
            "CREATE TABLE t (id INT PRIMARY KEY NOT ENFORCED, v INT) DISTRIBUTED BY (id) INTO 2 BUCKETS; "
            "SELECT v, COUNT(*) FROM t GROUP BY v",
        ],
        3,
    ),
)
def test_what_both_lines_plan_alike_has_a_verdict(script: str) -> None:
    report = judged(script)
    assert report.outcome is Outcome.COMPATIBLE or report.is_conditional, [each.message for each in report.deciding]


def test_a_table_that_copies_an_undeclared_table_is_no_job() -> None:
    script = "CREATE TABLE t (PRIMARY KEY (k) NOT ENFORCED, WATERMARK FOR ts AS ts) WITH ('a' = 'b') LIKE `files/*`"
    with pytest.raises(NoJob):
        judged(script)


def test_state_that_the_new_line_refuses_is_incompatible() -> None:
    assert judged("SELECT k, STDDEV_POP(v) FROM orders GROUP BY k").outcome is Outcome.INCOMPATIBLE


def test_on_one_line_a_table_without_declaration_stays_unknown() -> None:
    assert judged("SELECT k, SUM(v) FROM orders GROUP BY k", new="1.20").ground != "planned by Flink 1.20.3"
