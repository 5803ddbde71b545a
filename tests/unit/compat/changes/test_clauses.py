"""A finding stands at the line that was changed, where an expression tells it."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Side, check

TABLES = """\
CREATE TABLE a (id INT, k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka');
CREATE TABLE b (id INT, w BIGINT) WITH ('connector' = 'kafka');
CREATE TABLE s (k STRING, x BIGINT) WITH ('connector' = 'print');
INSERT INTO s
"""
GROUPED = "SELECT\n k,\n SUM(v)\nFROM a\nWHERE v > 0\nGROUP BY\n k;"
HAVING = "SELECT\n k,\n SUM(v)\nFROM a\nGROUP BY\n k\nHAVING SUM(v) > 1;"
JOINED = "SELECT\n a.k,\n b.w\nFROM a\nJOIN b\nON a.id = b.id\nAND a.v > 1;"
RANKED = (
    "SELECT k, x FROM (\nSELECT k, v AS x,\n ROW_NUMBER() OVER (PARTITION BY k\n ORDER BY v DESC) AS rn\nFROM a)\n"
    "WHERE rn <= 3;"
)
COUNTED = "SELECT\n k,\n COUNT(DISTINCT v)\nFROM a\nGROUP BY\n k;"
TWO = "SELECT\n k,\n SUM(v),\n MAX(v)\nFROM a\nGROUP BY\n k;"


@pytest.mark.parametrize(
    ("query", "old", "new"),
    [
        (GROUPED, "v > 0", "v > 5"),
        (GROUPED, "SUM(v)", "MAX(v)"),
        (GROUPED, "SUM(v)", "SUM(v + 1)"),
        (GROUPED, "SUM(v)", "SUM(v) + 1"),
        (GROUPED, "BY\n k", "BY\n k, id"),
        (HAVING, "> 1", "> 2"),
        (JOINED, "a.v > 1", "a.v > 2"),
        (RANKED, "<= 3", "<= 4"),
        (RANKED, "DESC", "ASC"),
        (COUNTED, "DISTINCT v", "v"),
        (TWO, "MAX(v)", "MIN(v)"),
    ],
)
def test_a_finding_stands_where_something_changed(query: str, old: str, new: str) -> None:
    before, after = TABLES + query, TABLES + query.replace(old, new)
    assert before != after
    (changed,) = (
        number
        for number, lines in enumerate(zip(before.splitlines(), after.splitlines(), strict=True), 1)
        if lines[0] != lines[1]
    )
    findings = [each for each in check(Side(before), Side(after), engine="flink").findings if not each.overruled_by]
    assert findings
    for finding in findings:
        assert finding.before_span is not None
        assert finding.after_span is not None
        places = {(span.line, span.end_line) for span in (finding.before_span, finding.after_span)}
        assert places == {(changed, changed)}, finding.rule


def test_of_metrics_in_another_order_those_that_moved() -> None:
    swapped = TWO.replace("SUM(v),\n MAX(v)", "MAX(v),\n SUM(v)")
    (finding,) = (
        each
        for each in check(Side(TABLES + TWO), Side(TABLES + swapped), engine="flink").findings
        if each.rule == "aggregate-reordered"
    )
    assert finding.after_span is not None
    assert (finding.after_span.line, finding.after_span.end_line) == (7, 8)


def test_what_is_gone_has_its_place_in_the_old_script_alone() -> None:
    """In the new one the whole operator is named, where its keys stand."""
    gone = TWO.replace(" SUM(v),\n MAX(v)", " SUM(v)")
    (finding,) = (
        each
        for each in check(Side(TABLES + TWO), Side(TABLES + gone), engine="flink").findings
        if each.rule == "aggregate-deleted"
    )
    assert finding.before_span is not None
    assert finding.after_span is not None
    assert (finding.before_span.line, finding.after_span.line) == (8, 10)
