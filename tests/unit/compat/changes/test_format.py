"""Clauses and differences as reports quote them: no key of ours, but the change and its place."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Side, check
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.format import format_expressions, name_difference
from airflow_flinkcompat.plan.origins import SourceColumn
from airflow_flinkcompat.plan.types import STRING

TABLES = """\
CREATE TABLE orders (customer STRING, amount BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o');
CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print');
"""
QUERY = "INSERT INTO totals SELECT customer, SUM(amount) FROM orders GROUP BY customer;\n"
SECRET = "CREATE CATALOG lake WITH ('type' = 'hive', 'password' = 'hunter2-plain');\n"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (TABLES + QUERY, TABLES.replace("'o'", "'p'") + QUERY, "the options of table orders changed"),
        (TABLES + QUERY, TABLES.splitlines()[1] + QUERY, "the proposed script does not declare table orders"),
        (TABLES + QUERY, TABLES + "CREATE VIEW v AS SELECT 1;" + QUERY, "view v was added"),
        (TABLES + QUERY, "SET 'a' = 'b';" + TABLES + QUERY, "setting a was added"),
        (TABLES + QUERY, TABLES + "DROP TABLE orders;" + QUERY, "the statement DROP TABLE orders was added"),
        (
            TABLES + QUERY,
            TABLES + QUERY.replace(", SUM", ", MAX"),
            "the aggregates of the group aggregation in the query into totals changed",
        ),
        (
            TABLES + QUERY,
            TABLES + QUERY.replace("SELECT customer", "SELECT UPPER(customer)"),
            "the columns of the query into totals changed",
        ),
    ],
)
def test_a_difference_is_named_by_what_it_is_of(old: str, new: str, words: str) -> None:
    change = Change(Side(old, engine="flink"), Side(new, engine="flink"))
    assert words in [name_difference(difference, change) for difference in change.differences]


def test_no_secret_is_named() -> None:
    change = Change(Side(TABLES + QUERY, engine="flink"), Side(SECRET + TABLES + QUERY, engine="flink"))
    named = [name_difference(difference, change) for difference in change.differences]
    assert named
    assert "hunter2" not in " ".join(named)


def test_a_set_is_quoted_in_one_order_in_every_process() -> None:
    """The order of a set differs from process to process, and with it the text of a report."""
    columns = [SourceColumn(0, name, type=STRING) for name in ("d", "a", "c", "b", "f", "e")]
    assert format_expressions(columns) == "d, a, c, b, f, e"
    assert format_expressions(frozenset(columns)) == "a, b, c, d, e, f"


def test_the_input_of_a_union_is_quoted_as_a_reader_knows_it() -> None:
    names = ("orders", "returns", "exchanges")
    tables = "".join(f"CREATE TABLE {name} (item STRING, n INT) WITH ('connector' = 'datagen');\n" for name in names)
    two = "SELECT item, n FROM orders UNION ALL SELECT item, n FROM returns"
    scripts = [
        f"{tables}SELECT item, COUNT(*), SUM(n) FROM ({inputs}) GROUP BY item;"
        for inputs in (two, f"{two} UNION ALL SELECT item, n FROM exchanges WHERE n > 3")
    ]
    report = check(*(Side(script, engine="flink") for script in scripts))
    quoted = {part: (before, after) for operator in report.operators for part, before, after in operator.parts}
    assert quoted["further inputs"] == ("none", "exchanges WHERE (n > 3), item, n")
