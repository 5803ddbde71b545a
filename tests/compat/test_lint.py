"""What one script shows by itself."""

from __future__ import annotations

import pytest

from airflow_flinkcompat import Side
from airflow_flinkcompat.compat.lint import lint
from airflow_flinkcompat.model import ENGINES, InputError
from tests.cli.command import QUERY, TABLES, V1

INTO = "INSERT INTO totals SELECT customer, {} FROM orders;"


@pytest.mark.parametrize(
    ("script", "rule", "outcomes", "place"),
    [
        (TABLES + INTO.format("amount, item"), "statement-refused", ("unknown", "incompatible"), "job.sql:5:1"),
        (TABLES + INTO.format("nope"), "program-refused", ("incompatible", "incompatible"), "job.sql:5:37"),
        (TABLES + "FOO BAR;\n" + QUERY, "statement-not-read", ("unknown", "unknown"), "job.sql:5:1"),
        (QUERY, "undeclared-table", ("compatible", "unknown"), "job.sql:1:1"),
    ],
)
def test_each_kind_at_its_place(script: str, rule: str, outcomes: tuple[str, str], place: str) -> None:
    for engine, outcome in zip(ENGINES, outcomes, strict=True):
        found = lint(Side(script, engine=engine, source="job.sql"))
        assert {(each.rule, each.outcome.value, str(each.after_span)) for each in found} == {(rule, outcome, place)}


@pytest.mark.parametrize("engine", list(ENGINES))
def test_a_script_in_order_shows_nothing(engine: str) -> None:
    assert lint(Side(V1, engine=engine)) == ()
    assert lint(Side(QUERY, catalog=TABLES, engine=engine)) == ()


def test_each_table_is_named_once_and_the_worst_comes_first() -> None:
    script = QUERY + QUERY + INTO.format("nope").replace("orders", "(SELECT 1 AS customer)")
    found = lint(Side(script, engine="flink"))
    assert [each.rule for each in found].count("undeclared-table") == 2
    assert [each.outcome.rank for each in found] == sorted((each.outcome.rank for each in found), reverse=True)


def test_a_script_without_a_query_is_bad_input() -> None:
    with pytest.raises(InputError, match="holds no INSERT and no SELECT"):
        lint(Side(TABLES))
