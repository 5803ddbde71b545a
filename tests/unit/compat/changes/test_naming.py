"""What a reader sees of a difference that no rule covers: no key of ours, but what changed and where."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.naming import name_difference

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
