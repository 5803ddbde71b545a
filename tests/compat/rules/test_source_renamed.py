"""Another source table on engine ``flink``, where its name says which data are read."""

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
