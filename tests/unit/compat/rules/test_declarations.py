"""A different source table on engine ``flink``, where its name says which data are read."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Outcome, check

SCRIPT = """\
CREATE TABLE {name} (customer STRING, amount BIGINT){options};
CREATE TABLE totals (customer STRING, amount BIGINT) WITH ('connector' = 'print');
INSERT INTO totals SELECT customer, amount FROM {name};
"""
ICEBERG = " WITH ('connector' = 'iceberg', 'catalog-name' = 'lake', 'catalog-type' = 'hive'{})"


def renamed(options: str, catalog: str = "") -> Outcome:
    old, new = (SCRIPT.format(name=catalog + name, options=options) for name in ("bought", "sold"))
    return check(old, new, "flink").outcome


@pytest.mark.parametrize("catalog", ["", "lake.sales."])
def test_a_table_without_a_connector_is_found_by_its_name(catalog: str) -> None:
    assert renamed("", catalog) is Outcome.UNKNOWN


def test_nobody_knows_what_a_connector_of_ones_own_makes_of_a_name() -> None:
    assert renamed(" WITH ('connector' = 'ours', 'place' = 'p')") is Outcome.UNKNOWN


def test_an_iceberg_table_is_found_by_its_name_where_no_option_gives_it() -> None:
    assert renamed(ICEBERG.format("")) is Outcome.UNKNOWN


@pytest.mark.parametrize(
    "options",
    [
        " WITH ('connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json')",
        ICEBERG.format(", 'catalog-table' = 't'"),
    ],
)
def test_a_table_whose_options_say_what_is_read_may_have_any_name(options: str) -> None:
    assert renamed(options) is Outcome.COMPATIBLE


ROWS = """\
CREATE TABLE totals (customer STRING, amount INT) WITH ('connector' = 'print');
INSERT INTO totals VALUES {};
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("('x', 1), ('y', 2)", "('x', 1), ('y', 3)"),
        ("('x', 1)", "('x', 1), ('y', 2)"),
        ("('x', 1), ('y', 2)", "('x', 1)"),
    ],
)
def test_rows_of_a_script_are_read_once(old: str, new: str) -> None:
    report = check(*(ROWS.format(rows) for rows in (old, new)), "flink")
    assert report.outcome is Outcome.INCOMPATIBLE
    (found,) = (each for each in report.findings if each.rule == "source-renamed")
    assert "Literal(" not in f"{found.before}{found.after}"
    assert "a table" not in found.message


def test_rows_in_place_of_a_table_are_another_matter() -> None:
    new = ROWS.format("('x', 1), ('y', 2)")
    old = SCRIPT.format(name="bought", options=ICEBERG.format(", 'catalog-table' = 't'"))
    found = [each for each in check(old, new, "flink").findings if each.rule == "source-renamed"]
    assert [each.message for each in found] == ["a different table is read"]
