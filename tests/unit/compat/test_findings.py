"""One column that a source, a query and its sink get or lose together is one finding."""

from __future__ import annotations

import re

import pytest

from airflow_flinkcompat.compat import Outcome, Report, check

TABLES = """
CREATE TABLE orders (a STRING, b BIGINT, {read}ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json');
CREATE TABLE kept (a STRING, b BIGINT{written}) WITH ('connector' = '{sink}');
"""
STATELESS = "INSERT INTO kept SELECT a, b{put_out} FROM orders;"
SUMS = "INSERT INTO kept SELECT a, SUM(b){put_out} FROM orders GROUP BY a;"


def script(query: str, more: bool, put_out: str, sink: str = "print") -> str:
    tables = TABLES.format(read="c BIGINT, " if more else "", written=", c BIGINT" if more else "", sink=sink)
    return tables + query.format(put_out=put_out if more else "")


def added(query: str, put_out: str = ", c", sink: str = "print") -> Report:
    return check(script(query, False, put_out, sink), script(query, True, put_out, sink), engine="flink")


@pytest.mark.parametrize("sink", ["print", "hudi", "kafka"])
@pytest.mark.parametrize(("query", "put_out"), [(STATELESS, ", c"), (STATELESS, ", c * 2"), (SUMS, ", MAX(c)")])
def test_a_column_that_comes_everywhere_is_one_finding(query: str, put_out: str, sink: str) -> None:
    (finding,) = added(query, put_out, sink).findings
    tables = {name for name in ("orders", "kept") if f"table {name}" in finding.message}
    assert tables == {"orders", "kept"}
    assert re.search("gets? a column$", finding.message)


def test_a_column_that_goes_everywhere_is_one_finding() -> None:
    report = check(script(SUMS, True, ", MAX(c)"), script(SUMS, False, ""), engine="flink")
    (finding,) = report.findings
    assert re.search("loses? a column$", finding.message)


def test_the_outcome_is_that_of_the_worst_with_the_grounds_of_all_that_say_the_same() -> None:
    report = added(SUMS, ", MAX(c)")
    assert report.outcome is Outcome.INCOMPATIBLE
    assert report.findings[0].rule == "aggregate-added"
    stateless = added(STATELESS)
    assert stateless.outcome is Outcome.COMPATIBLE
    assert {"stateless-column-added", "ks-stateless-unread-end"} <= set(stateless.findings[0].evidence)


def test_columns_that_have_nothing_to_do_with_each_other_are_told_apart() -> None:
    """The sink's column holds another one than the source's new one."""
    report = added(STATELESS, ", b + 1")
    assert {finding.rule for finding in report.findings} == {"source-table-changed", "output-changed"}


def test_two_columns_are_told_as_before() -> None:
    old = script(STATELESS, False, "")
    new = (
        script(STATELESS, True, ", c")
        .replace("c BIGINT", "c BIGINT, d BIGINT")
        .replace("a, b, c FROM", "a, b, c, d FROM")
    )
    assert len(check(old, new, engine="flink").findings) > 1


def test_a_column_that_is_declared_otherwise_beside_it_is_told() -> None:
    old, new = script(STATELESS, False, ""), script(STATELESS, True, ", c")
    report = check(old, new.replace("orders (a STRING, b BIGINT", "orders (a STRING, b INT"), engine="flink")
    assert any("b declared otherwise" in finding.message or "b" in finding.before for finding in report.findings)
    assert len(report.findings) > 1
