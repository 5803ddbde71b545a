"""A different sink table on engine ``flink``, where a connector makes the ids of its operators of the table's name."""

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
    places = "CREATE DATABASE one;\nCREATE DATABASE two;\n"
    assert check(places + old, places + new, "flink").outcome is Outcome.UNKNOWN


GROUPED = """\
CREATE TABLE orders (customer STRING, amount BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json');
CREATE TABLE {name} ({columns}) WITH ({options});
INSERT INTO {name} SELECT customer, {metric} FROM orders{group};
"""
JDBC = "'connector' = 'jdbc', 'url' = 'jdbc:postgresql://h/d', 'table-name' = 't'"
KAFKA = "'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json'"
SUMMED = {"metric": "SUM(amount)", "group": " GROUP BY customer"}
PLAIN = {"metric": "amount", "group": ""}
KEYED = "c STRING, total BIGINT, PRIMARY KEY (c) NOT ENFORCED"


@pytest.mark.parametrize(
    ("options", "query", "columns", "outcome"),
    [
        (JDBC, SUMMED, "cust STRING, total BIGINT, PRIMARY KEY (cust) NOT ENFORCED", Outcome.COMPATIBLE),
        (JDBC, SUMMED, KEYED.replace("(c)", "(total)"), Outcome.UNKNOWN),
        (JDBC, SUMMED, KEYED.replace("total BIGINT", "total AS 1, sum BIGINT"), Outcome.UNKNOWN),
        (KAFKA, PLAIN, "cust STRING, total BIGINT", Outcome.UNKNOWN),
    ],
)
def test_another_table_with_other_columns(options: str, query: dict[str, str], columns: str, outcome: Outcome) -> None:
    """A sink that keeps nothing takes other columns under another name as it does under its own."""
    first = KEYED if options is JDBC else "c STRING, total BIGINT"
    old, new = (
        GROUPED.format(name=name, columns=each, options=options, **query)
        for name, each in (("a", first), ("b", columns))
    )
    found = [each for each in check(old, new, "flink").findings if each.rule == "sink-changed"]
    assert [each.outcome for each in found] == [outcome]


LAKE = """\
CREATE TABLE orders (customer STRING, amount BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json');
CREATE CATALOG lake WITH ('type' = '{type}', 'warehouse' = 'file:///lake');
{declared}INSERT INTO {table} SELECT customer, amount FROM orders;
"""


def into(table: str, type: str = "iceberg", declared: str = "") -> str:
    return LAKE.format(table=table, type=type, declared=declared and f"CREATE TABLE {table} {declared};\n")


@pytest.mark.parametrize("declared", ["", "(customer STRING, amount BIGINT)"])
@pytest.mark.parametrize("table", ["lake.sales.b", "lake.`default`.a"])
def test_files_of_one_iceberg_table_are_committed_into_the_other(declared: str, table: str) -> None:
    report = check(into("lake.sales.a", declared=declared), into(table, declared=declared), "flink")
    assert report.outcome is Outcome.INCOMPATIBLE
    assert {each.consequence for each in report.deciding if each.rule == "sink-changed"} == {Consequence.SILENTLY_WRONG}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(into("lake.sales.a", "hive"), into("lake.sales.b", "hive"), id="a catalog of any tables"),
        pytest.param(into("lake.sales.a"), into("lake.sales.b", "paimon"), id="a catalog of another kind"),
        pytest.param(into("other.sales.a"), into("other.sales.b"), id="a catalog that another script creates"),
        pytest.param(into("lake.sales.a"), into("other.sales.a"), id="another catalog"),
    ],
)
def test_whether_another_table_of_a_catalog_is_one_of_iceberg_may_not_be_told(old: str, new: str) -> None:
    assert check(old, new, "flink").outcome is Outcome.UNKNOWN


def test_the_default_database_of_an_iceberg_catalog_may_be_left_out() -> None:
    old = into("lake.`default`.a")
    new = old.replace("INSERT INTO lake.`default`.a", "USE CATALOG lake;\nINSERT INTO a").replace(
        "FROM orders", "FROM default_catalog.default_database.orders"
    )
    assert "sink-changed" not in {each.rule for each in check(old, new, "flink").findings}
