"""Another sink table on engine ``flink``, where a connector makes the ids of its operators of the table's name."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Consequence, Outcome, check

SCRIPT = """\
CREATE TABLE orders (customer STRING, amount BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json',
  'properties.group.id' = 'g', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE {name} (customer STRING, amount BIGINT, PRIMARY KEY (customer) NOT ENFORCED)
WITH ('connector' = 'hudi', 'path' = '{path}');
INSERT INTO {name} SELECT customer, amount FROM orders;
"""


@pytest.mark.parametrize("path", ["/lake/a", "/lake/b"])
def test_another_hudi_table_finds_no_state(path: str) -> None:
    report = check(SCRIPT.format(name="a", path="/lake/a"), SCRIPT.format(name="b", path=path), "flink")
    assert report.outcome is Outcome.INCOMPATIBLE
    assert {each.consequence for each in report.deciding if each.rule == "sink-changed"} == {
        Consequence.REFUSED_AT_SUBMIT
    }


def test_a_table_of_the_same_name_in_another_database_may_find_it() -> None:
    """Hudi's ids hold the database since 0.13; earlier ones the name alone."""
    old, new = (SCRIPT.format(name=name, path="/lake/a") for name in ("one.a", "two.a"))
    assert check(old, new, "flink").outcome is Outcome.UNKNOWN
