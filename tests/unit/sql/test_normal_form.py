"""The normal form of SQL: what says the same has one form, and what says something else has another."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.model import NormalForm
from airflow_flinkcompat.sql import parse_script
from airflow_flinkcompat.sql.normal_form import normal_form, normal_words

MATCH = """
SELECT m.peak FROM orders AS o MATCH_RECOGNIZE (
  PARTITION BY customer ORDER BY placed
  MEASURES LAST(up.price) AS peak ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
  PATTERN (lo up{2,3}? (dn | hi)+) WITHIN INTERVAL '1' HOUR SUBSET both = (lo, up)
  DEFINE up AS up.price > PREV(up.price, 1), dn AS dn.price < 5
) AS m"""
SUBQUERY = "SELECT a AS c FROM t WHERE b IN (SELECT u.x AS y FROM u WHERE u.k = t.k) AND EXISTS (SELECT 1 FROM v)"


def form_of(text: str) -> NormalForm:
    (statement,) = parse_script(text).statements
    assert statement.tree is not None, statement.error
    return normal_form(statement.tree)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT upper(a) FROM t", "select UPPER ( `a` ) -- note\nFROM `t`"),
        ("SELECT f(a) FROM t", "SELECT `F`(a) FROM t"),
        ("SELECT a + b FROM t WHERE c > 1 AND d", "SELECT ((a) + (b)) FROM t WHERE ((c > 1) AND (d))"),
        ("SELECT a FROM t WHERE b AND c AND d", "SELECT a FROM t WHERE b AND (c AND d)"),
        ("SELECT x.a FROM t AS x", "SELECT y.a FROM t y"),
        ("SELECT t.a FROM t", "SELECT x.a FROM t AS x"),
        ("SELECT a AS b FROM t", "SELECT a FROM t"),
        ("SELECT a AS b FROM t ORDER BY b", "SELECT a AS c FROM t ORDER BY c"),
        ("SELECT x.a FROM (SELECT a FROM t AS i) AS x", "SELECT y.a FROM (SELECT a FROM t AS j) AS y"),
        ("WITH x AS (SELECT a FROM t) SELECT a FROM x", "WITH y AS (SELECT a FROM t) SELECT a FROM y"),
        ("SELECT a FROM t INNER JOIN u ON t.k = u.k", "SELECT a FROM t AS x JOIN u AS y ON x.k = y.k"),
        ("SELECT a FROM t LEFT JOIN u ON t.k = u.k", "SELECT a FROM t LEFT OUTER JOIN u ON t.k = u.k"),
        (
            "SELECT MAX(a) OVER w FROM t WINDOW w AS (ORDER BY b)",
            "SELECT MAX(a) OVER v FROM t WINDOW v AS (ORDER BY b)",
        ),
        ("SELECT a FROM t, LATERAL TABLE(split(t.b)) AS s(w)", "SELECT a FROM t, LATERAL TABLE(Split(t.b)) AS r(w)"),
        (
            "SELECT /*+ STATE_TTL('x' = '1d', 'y' = '2d') */ * FROM t AS x JOIN u AS y ON x.k = y.k",
            "SELECT /*+ state_ttl('b' = '2d', 'a' = '1d') */ * FROM t AS a JOIN u AS b ON a.k = b.k",
        ),
        (
            "SELECT /*+ LOOKUP('table' = 'x', 'async' = 'true') */ * FROM t AS x",
            "SELECT /*+ LOOKUP('async' = 'true', 'table' = 'y') */ * FROM t AS y",
        ),
        ("SELECT /*+ BROADCAST(x) */ * FROM t AS x, u", "SELECT /*+ broadcast(`y`) */ * FROM t AS y, u"),
        (SUBQUERY, SUBQUERY.replace("u.", "z.").replace("FROM u", "FROM u AS z").replace("AS y", "AS other")),
        (MATCH, MATCH.replace("m.", "n.").replace("AS m", "AS n").replace("AS o", "")),
        (MATCH, MATCH.replace("up.price > PREV(up.price, 1)", "((`up`.`price`) > (prev(up.price, 1)))").lower()
         .replace("interval '1' hour", "INTERVAL '1' HOUR")),
        ("ALTER TABLE t SET ('b' = '1', 'a' = '2')", "alter table `t` set ('b' = '1', 'a' = '2')"),
        ("CREATE VIEW v AS SELECT x.a FROM t AS x", "create view `v` as select y.a from t as y"),
    ],
)  # fmt: skip
def test_what_says_the_same_has_one_form(one: str, other: str) -> None:
    assert form_of(one) == form_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t", "SELECT A FROM t"),
        ("SELECT a FROM t", "SELECT a FROM T"),
        ("SELECT 'a' FROM t", "SELECT 'A' FROM t"),
        ("SELECT 'a' FROM t", "SELECT a FROM t"),
        ("SELECT U&'\\0061' FROM t", "SELECT U&'\\0041' FROM t"),
        ("SELECT a, b FROM t", "SELECT b, a FROM t"),
        ("SELECT current_date FROM t", "SELECT `current_date` FROM t"),
        ("SELECT `a.b` FROM t", "SELECT a.b FROM t"),
        ("SELECT * FROM `a.b`", "SELECT * FROM a.b"),
        ("SELECT TRUE FROM t", "SELECT FALSE FROM t"),
        ("SELECT (a + b) * c FROM t", "SELECT a + b * c FROM t"),
        ("SELECT a FROM t WHERE b AND c OR d", "SELECT a FROM t WHERE b AND (c OR d)"),
        ("SELECT a FROM t WHERE NOT (b OR c)", "SELECT a FROM t WHERE (NOT b) OR c"),
        ("SELECT x.a FROM t AS x, u AS y", "SELECT y.a FROM t AS x, u AS y"),
        ("SELECT x.a FROM t AS x, u AS y", "SELECT x.a FROM u AS x, t AS y"),
        ("SELECT a FROM t", "SELECT x.a FROM t, u AS x"),
        ("SELECT a AS b FROM t ORDER BY b", "SELECT a AS c FROM t ORDER BY b"),
        ("SELECT x.b FROM (SELECT a AS b FROM t) AS x", "SELECT x.b FROM (SELECT a AS c FROM t) AS x"),
        ("CREATE VIEW v AS SELECT a AS b FROM t", "CREATE VIEW v AS SELECT a AS c FROM t"),
        ("CREATE TABLE v AS SELECT a AS b FROM t", "CREATE TABLE v AS SELECT a AS c FROM t"),
        ("WITH x AS (SELECT a FROM t) SELECT a FROM x", "WITH x AS (SELECT a FROM t) SELECT a FROM y"),
        ("SELECT a FROM t LEFT JOIN u ON t.k = u.k", "SELECT a FROM t JOIN u ON t.k = u.k"),
        # A row column that is called like an alias outside of the subquery, where that alias is not seen.
        (
            "SELECT 1 FROM o AS x, (SELECT x.f FROM t) AS q",
            "SELECT 1 FROM o AS y, (SELECT y.f FROM t) AS q",
        ),
        (
            "SELECT a FROM t AS x WHERE EXISTS (SELECT 1 FROM u AS y WHERE y.k = x.k)",
            "SELECT a FROM t AS x WHERE EXISTS (SELECT 1 FROM u AS y WHERE y.k = y.k)",
        ),
        (
            "SELECT MAX(a) OVER w FROM t WINDOW w AS (ORDER BY b)",
            "SELECT MAX(a) OVER w FROM t WINDOW w AS (ORDER BY c)",
        ),
        ("SELECT SUM(a) FROM t", "SELECT SUM(DISTINCT a) FROM t"),
        (
            "SELECT /*+ STATE_TTL('x' = '1d', 'y' = '2d') */ * FROM t AS x JOIN u AS y ON x.k = y.k",
            "SELECT /*+ STATE_TTL('x' = '2d', 'y' = '1d') */ * FROM t AS x JOIN u AS y ON x.k = y.k",
        ),
        # An option that is called like an alias is no relation.
        (
            "SELECT * FROM t /*+ OPTIONS('path' = '1') */ AS path",
            "SELECT * FROM t /*+ OPTIONS('root' = '1') */ AS root",
        ),
        ("SELECT /*+ LOOKUP('x' = '1') */ * FROM t AS x", "SELECT /*+ LOOKUP('y' = '1') */ * FROM t AS y"),
        (
            "SELECT * FROM t /*+ OPTIONS('a' = '1', 'a' = '2') */",
            "SELECT * FROM t /*+ OPTIONS('a' = '2', 'a' = '1') */",
        ),
        ("SELECT a - b - c FROM t", "SELECT a - (b - c) FROM t"),
        (SUBQUERY, SUBQUERY.replace("u.x", "u.z")),
        (SUBQUERY, SUBQUERY.replace("IN (", "NOT IN (")),
        (SUBQUERY, SUBQUERY.replace("EXISTS", "NOT EXISTS")),
        (SUBQUERY, SUBQUERY.replace("t.k)", "t.l)")),
        (MATCH, MATCH.replace("PREV(up.price, 1)", "PREV(up.price, 2)")),
        (MATCH, MATCH.replace("PREV(up", "PREV(lo")),
        (MATCH, MATCH.replace("LAST(up", "FIRST(up")),
        (MATCH, MATCH.replace("{2,3}?", "{2,3}")),
        (MATCH, MATCH.replace("(dn | hi)+", "(dn | hi)*")),
        (MATCH, MATCH.replace("dn | hi", "hi | dn")),
        (MATCH, MATCH.replace("(lo, up)", "(lo, dn)")),
        (MATCH, MATCH.replace("TO NEXT ROW", "PAST LAST ROW")),
        (MATCH, MATCH.replace("'1' HOUR", "'1' DAY")),
        (MATCH, MATCH.replace("hi)+", "Hi)+")),
        ("ALTER TABLE t SET ('a' = 'x')", "ALTER TABLE t SET ('a' = 'X')"),
        ("DROP TABLE t", "DROP TABLE T"),
        ("ADD JAR '/a.jar'", "ADD JAR '/A.jar'"),
    ],
)  # fmt: skip
def test_what_says_something_else_has_another_form(one: str, other: str) -> None:
    assert one != other
    assert form_of(one) != form_of(other)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("SELECT FROM `a` -- x\nWHERE", "select  from a\nwhere", True),
        ("LOCK TABLE /*+ OPTIONS ( 'a'='b') */ t", "lock table /*+ OPTIONS('a' = 'b')*/ t", False),
        ("LOCK TABLE /*+ OPTIONS ( 'a'='b') */ t", "LOCK table /*+ OPTIONS('a' = 'b')*/ t", True),
        ("SELECT FROM a WHERE", "SELECT FROM A WHERE", False),
        ("SELECT FROM a WHERE 'x'", "SELECT FROM a WHERE 'X'", False),
        ("SELECT FROM `current_date` WHERE", "SELECT FROM current_date WHERE", False),
        ("SELECT FROM `a b` WHERE", "SELECT FROM a b WHERE", False),
        ("SELECT FROM a -- b\nWHERE", "SELECT FROM a -- b WHERE", False),
    ],
)
def test_a_statement_that_cannot_be_parsed_is_compared_by_its_words(one: str, other: str, same: bool) -> None:
    assert (normal_words(one) == normal_words(other)) is same


def test_a_reader_sees_the_statement_as_it_is_written() -> None:
    assert str(form_of("select `x`.a from t as x -- note")) == "SELECT `x`.a FROM t AS x"
    assert str(normal_words("SELECT  FROM `a` -- note")) == "SELECT FROM `a`"


@pytest.mark.slow
def test_a_long_chain_has_a_form() -> None:
    """A view or a statement that could not be bound is compared later, where nothing may fail any more."""
    chain = " + ".join(["a"] * 3000)
    assert form_of(f"SELECT {chain} FROM t") == form_of(f"SELECT ({chain}) FROM t")
    assert form_of(f"SELECT {chain} FROM t") != form_of(f"SELECT {chain} + b FROM t")
