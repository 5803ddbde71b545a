"""Names that Flink's validator refuses: columns that no table has or several, and what exists already."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from py4j.protocol import Py4JJavaError

from airflow_flinkcompat.compat import Outcome, Side, check
from airflow_flinkcompat.sql import parse_script

TABLES = """\
CREATE TABLE o (a STRING, b BIGINT, r ROW<x STRING, n ROW<deep STRING>>,
  arr ARRAY<ROW<p STRING, q INT>>, ints ARRAY<INT>,
  ts TIMESTAMP(3), pt AS PROCTIME(), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen');
CREATE TABLE d (a STRING, v STRING)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/x', 'table-name' = 'd');
CREATE TABLE s (x STRING) WITH ('connector' = 'blackhole');
"""
OLD = TABLES + "INSERT INTO s SELECT a FROM o"
PROCESSING_TIME = (
    "INSERT INTO s SELECT d.v FROM (SELECT a, {0}(pt) AS pt FROM o GROUP BY a) q "
    "LEFT JOIN d FOR SYSTEM_TIME AS OF q.pt ON q.a = d.a"
)


@dataclass(frozen=True)
class Case:
    """Statements behind the tables; ``refused`` are words of Flink's refusal, "" where it takes them."""

    title: str
    text: str
    refused: str = ""


NOWHERE, SEVERAL, THERE = "not found", "ambiguous", "already exists"
TWICE = "A column with the same name `a` has been defined"
CASES = [
    Case("a column of another case", "INSERT INTO s SELECT A FROM o", NOWHERE),
    Case("a column of no table", "INSERT INTO s SELECT o.nope FROM o", NOWHERE),
    Case("a field of a row as a column", "INSERT INTO s SELECT x FROM o"),
    Case("a field of a field", "INSERT INTO s SELECT o.n.deep FROM (SELECT ROW(a, r.x) AS f, r.n FROM o) AS o"),
    Case("no field of a row", "INSERT INTO s SELECT r.nope FROM o", NOWHERE),
    Case("a field of elements", "INSERT INTO s SELECT p FROM o", NOWHERE),
    Case("a field of a row", "INSERT INTO s SELECT r.x FROM o"),
    Case("a table that is not in FROM", "INSERT INTO s SELECT d.v FROM o", "not found"),
    Case("an alias in GROUP BY", "INSERT INTO s SELECT UPPER(a) AS k FROM o GROUP BY k", NOWHERE),
    Case("an alias in WHERE", "INSERT INTO s SELECT UPPER(a) AS k FROM o WHERE k = 'A'", NOWHERE),
    Case("an alias in the same SELECT", "INSERT INTO s SELECT k FROM (SELECT a AS k, k || 'x' AS l FROM o)", NOWHERE),
    Case("an alias in ORDER BY", "INSERT INTO s SELECT UPPER(a) AS k FROM o ORDER BY k LIMIT 3"),
    Case("a column of both sides", "INSERT INTO s SELECT a FROM o JOIN d ON o.a = d.a", SEVERAL),
    Case("two columns of a subquery", "INSERT INTO s SELECT a FROM (SELECT a, r.x AS a FROM o)", SEVERAL),
    Case("two columns of a view", "CREATE VIEW w AS SELECT a, r.x AS a FROM o; INSERT INTO s SELECT 'x'", TWICE),
    Case("named columns of a view", "CREATE VIEW w (a, x) AS SELECT a, r.x AS a FROM o; INSERT INTO s SELECT x FROM w"),
    Case("a field of an unnested row", "INSERT INTO s SELECT t.p FROM o CROSS JOIN UNNEST(arr) AS t"),
    Case("no field of an unnested row", "INSERT INTO s SELECT t.z FROM o CROSS JOIN UNNEST(arr) AS t", NOWHERE),
    Case("an unnested number", "INSERT INTO s SELECT CAST(t AS STRING) FROM o CROSS JOIN UNNEST(ints) AS t"),
    Case(
        "a table that exists",
        "CREATE TABLE s (y STRING) WITH ('connector' = 'print'); INSERT INTO s SELECT a FROM o",
        THERE,
    ),
    Case(
        "a table that was dropped",
        "DROP TABLE s; CREATE TABLE s (y STRING) WITH ('connector' = 'print'); INSERT INTO s SELECT a FROM o",
    ),
    Case(
        "a temporary table over another",
        "CREATE TEMPORARY TABLE s (y STRING) WITH ('connector' = 'print'); INSERT INTO s SELECT a FROM o",
    ),
    Case(
        "if it does not exist",
        "CREATE TABLE IF NOT EXISTS s (y STRING) WITH ('connector' = 'print'); INSERT INTO s SELECT a FROM o",
    ),
    Case("the latest processing time", PROCESSING_TIME.format("MAX")),
    Case("the first processing time", PROCESSING_TIME.format("MIN")),
]  # fmt: skip
BY_TITLE = pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)


@BY_TITLE
def test_a_name_that_flink_refuses_is_told_and_no_other(case: Case) -> None:
    new = TABLES + case.text
    report = check(Side(OLD, engine="flink"), Side(new, engine="flink"))
    told = [finding for finding in report.findings if finding.rule == "program-refused"]
    assert bool(told) == bool(case.refused), [finding.message for finding in report.findings]
    assert not case.refused or report.outcome is Outcome.INCOMPATIBLE
    assert not any("join of an unknown kind" in finding.message for finding in report.findings)


@pytest.mark.parametrize("case", [each for each in CASES if each.refused], ids=lambda case: case.title)
def test_what_the_deployed_script_has_too_keeps_it_from_nothing(case: Case) -> None:
    new = TABLES + case.text
    report = check(Side(new, engine="flink"), Side("-- as before\n" + new, engine="flink"))
    assert report.outcome is Outcome.COMPATIBLE
    other = check(Side(new, engine="flink"), Side(OLD, engine="flink"))
    assert other.outcome is Outcome.UNKNOWN
    assert "Flink refuses the deployed script" in " ".join(finding.message for finding in other.findings)


@pytest.mark.parametrize("query", ["m.headers.op", "m.op", "t.op", "t.headers.op"])
def test_a_table_that_nobody_declares_may_have_any_column_and_field(query: str) -> None:
    old = TABLES + f"INSERT INTO s SELECT {query} FROM m CROSS JOIN UNNEST(m.list) AS t"
    report = check(Side(old, engine="flink"), Side(old.replace(query, f"UPPER({query})"), engine="flink"))
    messages = [finding.message for finding in report.findings]
    assert not any("not found" in message or "cannot be resolved" in message for message in messages), messages


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_flink_says_the_same() -> None:
    from airflow_flinkcompat.local_flink.jars import fetch
    from dev.services.flink_batch import flink_batch

    with flink_batch(map(fetch, ("flink-connector-jdbc-core", "flink-connector-jdbc-postgres"))) as flink:
        for case in CASES:
            texts = [statement.text.strip() for statement in parse_script(TABLES + case.text).statements]
            said = ""
            try:
                flink.run([*texts[:-1], f"EXPLAIN {texts[-1]}"], streaming=True)
            except Py4JJavaError as error:
                said = str(error)
            assert bool(said) == bool(case.refused), f"{case.title}: {said}"
            assert case.refused in said, f"{case.title}: {said}"
