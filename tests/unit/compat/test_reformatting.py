"""Text never decides: a script in another layout gets the verdict that it gets beside itself."""

from __future__ import annotations

import re
from functools import cache

import pytest

from airflow_flinkcompat.cli.rules import example_sides
from airflow_flinkcompat.compat import InputError, Outcome, Side, check
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.reports.catalogue import ENTRIES
from airflow_flinkcompat.plan.program import REFUSED_NAME
from airflow_flinkcompat.sql import ScriptError, parse_script
from tests.support import corpus
from tests.support.fuzzing import originals
from tests.support.nightly import mostly_slow, sample
from tests.support.reformatting import reformatted

ENGINES = ("flink", "vvr")


@cache
def fixtures() -> dict[str, str]:
    found = {original.name: original.text for original in originals()}
    for rule in ENTRIES:
        for name, side in zip(("old", "new"), example_sides(rule, "flink"), strict=True):
            found[f"rule {rule.code} {name}"] = side.script
    return found


def outcome(old: str, new: str, engine: str) -> Outcome | None:
    """The outcome; None where the script is refused."""
    try:
        return check(Side(old, engine=engine), Side(new, engine=engine)).outcome
    except (InputError, ScriptError):
        return None


def names() -> list[str]:
    """Some of the project's own scripts and of the public ones; all of them in a nightly run."""
    return [*sample(sorted(fixtures()), 40), *sample(sorted(corpus.scripts()), 60)]


# In parts and not by name: whoever only collects tests does not read all these scripts.
@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_a_script_in_another_layout_is_the_same(part: int) -> None:
    for name in names()[part::10]:
        text = fixtures().get(name) or corpus.scripts()[name]
        try:
            parse_script(text)
        except ScriptError:
            continue
        other = reformatted(text, name)
        for engine in ENGINES:
            if any(each.reason == REFUSED_NAME for each in Side(text, engine=engine).program.problems):
                continue  # what is wrong is told with the aliases of the script, and those have changed
            found = outcome(text, other, engine)
            assert found is outcome(text, text, engine), f"{name} on {engine}: {found}\n{text}\n-----\n{other}"


TABLES = """\
CREATE TABLE orders (customer STRING, price INT, placed TIMESTAMP(3), WATERMARK FOR placed AS placed)
  WITH ('connector' = 'kafka', 'topic' = 'orders');
CREATE TABLE sink (customer STRING, price INT) WITH ('connector' = 'print');
INSERT INTO sink
"""
KEPT_WHOLE = {
    "pattern": """\
SELECT m.customer, m.peak FROM (SELECT customer, price AS cost, placed FROM orders) AS o MATCH_RECOGNIZE (
  PARTITION BY customer ORDER BY placed MEASURES LAST(up.cost) AS peak ONE ROW PER MATCH
  AFTER MATCH SKIP TO NEXT ROW PATTERN (lo up{2,3}? (dn | hi)+) WITHIN INTERVAL '1' HOUR
  DEFINE up AS up.cost > PREV(up.cost, 1) AND up.cost > 1, dn AS dn.cost < 5 OR UPPER(dn.customer) = 'x'
) AS m;""",
    "IN": "SELECT customer, price FROM orders AS o WHERE o.customer IN (SELECT r.k FROM gone AS r WHERE r.n > 1);",
    "EXISTS": "SELECT customer, price FROM orders AS o WHERE EXISTS (SELECT 1 FROM r WHERE r.k = o.customer);",
    "scalar": "SELECT customer, 1 FROM orders AS o WHERE o.price > (SELECT MAX(r.n) FROM r WHERE r.k <> o.customer);",
    "undeclared": "SELECT * FROM elsewhere AS e WHERE e.n > 1 AND UPPER(e.k) <> 'x';",
    "hint": "SELECT /*+ STATE_TTL('o' = '1d') */ o.customer, 1 FROM orders o JOIN orders p ON o.price = p.price;",
    "table function": "SELECT o.customer, 1 FROM orders o, LATERAL TABLE(split(o.customer)) AS s(w) WHERE s.w <> 'a';",
    "process table function": "SELECT customer, 1 FROM f(input => TABLE orders PARTITION BY customer, uid => 'x');",
    "frame": "SELECT customer, SUM(price) OVER (ORDER BY placed ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM orders;",
    "INTERSECT": "SELECT o.customer, o.price FROM orders AS o INTERSECT SELECT p.k, p.n FROM p WHERE p.n > 1;",
    "unread": "SELECT customer, FROM orders AS o WHERE o.price > 1;",
    "ALTER": "SELECT customer, 1 FROM orders; ALTER TABLE sink SET ('b' = '1', 'a' = ''); DROP TABLE IF EXISTS gone;",
}  # fmt: skip


@pytest.mark.parametrize("seed", ["1", "2", "3", "4"])
@pytest.mark.parametrize("name", mostly_slow(sorted(KEPT_WHOLE), 4))
def test_what_the_plan_keeps_whole_is_the_same_in_another_layout(name: str, seed: str) -> None:
    text = TABLES + KEPT_WHOLE[name]
    other = reformatted(text, seed)
    assert other != text
    for engine in ENGINES:
        report = check(Side(text, engine=engine), Side(other, engine=engine))
        expected = check(Side(text, engine=engine), Side(text, engine=engine))
        assert [f.rule for f in report.findings] == [f.rule for f in expected.findings], other
        assert report.outcome is expected.outcome


ALIASES = [
    ("pattern", {"AS m;": "AS n;", "m.": "n."}),
    ("pattern", {"AS peak": "AS top", "m.peak": "m.top"}),
    ("pattern", {"AS cost": "AS c", ".cost": ".c"}),
    ("hint", {"o JOIN": "q JOIN", "o.": "q.", "'o'": "'q'"}),
    ("scalar", {"MAX(r.n)": "MAX(r.n) AS top"}),
    ("IN", {"r.k FROM": "r.k AS anything FROM"}),
    ("IN", {"AS r": "AS z", "r.": "z."}),
    ("undeclared", {"AS e": "AS f", "e.": "f."}),
]


@pytest.mark.parametrize(("name", "renamed"), ALIASES)
def test_names_of_aliases_say_nothing(name: str, renamed: dict[str, str]) -> None:
    text = TABLES + KEPT_WHOLE[name]
    other = KEPT_WHOLE[name]
    for before, after in renamed.items():
        other = re.sub(r"(?<!\w)" + re.escape(before) if before[0].isalpha() else re.escape(before), after, other)
    assert other != KEPT_WHOLE[name]
    for engine in ENGINES:
        change = Change(Side(text, engine=engine), Side(TABLES + other, engine=engine))
        assert not change.differences
        assert change.unchanged


EDITS = [
    ("pattern", "{2,3}?", "{2,3}"),
    ("pattern", "dn | hi", "hi | dn"),
    ("pattern", "dn.cost < 5", "dn.cost < 6"),
    ("pattern", "PREV(up.cost, 1)", "PREV(up.cost, 2)"),
    ("pattern", "LAST(up.cost)", "LAST(up.placed)"),
    ("pattern", "LAST(up.cost)", "LAST(dn.cost)"),
    ("pattern", "LAST(up.cost)", "FIRST(up.cost)"),
    ("pattern", "TO NEXT ROW", "PAST LAST ROW"),
    ("pattern", "'1' HOUR", "'2' HOUR"),
    ("pattern", "ORDER BY placed", "ORDER BY placed DESC"),
    ("pattern", "PARTITION BY customer", "PARTITION BY cost"),
    ("pattern", "price AS cost", "price + 1 AS cost"),
    ("pattern", "'x'", "'X'"),
    ("pattern", "up AS", "lo AS"),
    ("IN", "IN (", "NOT IN ("),
    ("IN", "r.k FROM", "r.n FROM"),
    ("IN", "FROM gone", "FROM Gone"),
    ("IN", "r.n > 1", "r.n > 2"),
    ("EXISTS", "EXISTS", "NOT EXISTS"),
    ("EXISTS", "o.customer)", "r.customer)"),
    ("scalar", "MAX", "MIN"),
    ("scalar", "o.customer)", "r.k)"),
    ("undeclared", "elsewhere", "Elsewhere"),
    ("undeclared", "'x'", "'X'"),
    ("undeclared", "e.n", "e.N"),
    ("hint", "'o' = ", "'p' = "),
    ("hint", "'1d'", "'2d'"),
    ("process table function", "'x'", "'X'"),
    ("process table function", "PARTITION BY customer", "PARTITION BY price"),
    ("frame", "1 FOLLOWING", "2 FOLLOWING"),
    ("INTERSECT", "p.k, p.n", "p.n, p.k"),
    ("unread", "o.price", "o.Price"),
    ("ALTER", "'b' = '1'", "'b' = '2'"),
    ("ALTER", "gone", "Gone"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "before", "after"), mostly_slow(EDITS, 5))
def test_what_is_kept_whole_still_differs_where_it_says_something_else(name: str, before: str, after: str) -> None:
    text = TABLES + KEPT_WHOLE[name]
    changed = text.replace(before, after, 1)
    assert changed != text
    for engine in ENGINES:
        change = Change(Side(text, engine=engine), Side(changed, engine=engine))
        assert change.differences
        assert not change.unchanged
        # As a person would save it, in a layout of their own.
        formatted = Change(Side(text, engine=engine), Side(reformatted(changed, before), engine=engine))
        assert formatted.differences


PROGRAM = """\
from pyflink.table import EnvironmentSettings, TableEnvironment

env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
env.execute_sql('''CREATE TABLE orders (customer STRING, price INT) WITH ('connector' = 'kafka')''')
env.execute_sql('''CREATE TABLE sink (customer STRING, price INT) WITH ('connector' = 'print')''')
env.execute_sql({!r})
"""


def programmed(query: str) -> Side:
    return Side(PROGRAM.format(f"INSERT INTO sink {query}"), engine="flink", language="python")


@pytest.mark.parametrize("name", ["IN", "EXISTS", "scalar", "undeclared"])
def test_sql_in_a_program_goes_the_same_way(name: str) -> None:
    query = KEPT_WHOLE[name].rstrip(";")
    other = reformatted(query, name)
    assert other != query
    old, new = (programmed(each) for each in (query, other))
    assert [finding.rule for finding in check(old, new).findings] == ["unchanged"]
    edited = programmed(query.replace("> 1", "> 2").replace("MAX", "MIN").replace("1 FROM", "2 FROM"))
    assert check(old, edited).outcome is Outcome.UNKNOWN
