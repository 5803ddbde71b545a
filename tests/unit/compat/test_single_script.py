"""What one script shows by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_flinkcompat import Side, check
from airflow_flinkcompat.compat.single_script import added_report, lint
from airflow_flinkcompat.model import ENGINES, FunctionDeclaration, InputError, Outcome
from tests.support.cli.command import QUERY, TABLES, V1

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
    with pytest.raises(InputError, match="contains no INSERT and no SELECT"):
        lint(Side(TABLES))


NOT_RESOLVED = {
    "a mistyped COUNT(*)": ("SELECT customer, COUNTT(*) FROM timed GROUP BY customer", "COUNTT(*) is not understood"),
    "a subquery, which Flink takes": (
        "SELECT customer FROM timed WHERE amount NOT IN (SELECT amount FROM timed)",
        "a subquery inside a condition is not understood",
    ),
    "* of a table that nobody declares": ("SELECT * FROM elsewhere", "the columns of * are not known"),
}
TIMED = (
    "CREATE TABLE timed (customer STRING, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
    "WITH ('connector' = 'datagen');\n"
)


@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.parametrize("query", NOT_RESOLVED)
def test_a_query_that_cannot_be_resolved_is_not_passed_as_read(query: str, engine: str) -> None:
    text, why = NOT_RESOLVED[query]
    side = Side(TIMED + text + ";", engine=engine, source="new.sql")
    (found,) = lint(side)
    assert (found.rule, found.outcome) == ("statement-not-read", Outcome.UNKNOWN)
    assert found.message.startswith("the bare SELECT cannot be resolved: ")
    assert why in found.message
    assert str(found.after_span).startswith("new.sql:2:")
    assert added_report(side, "").outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    "query",
    [
        "SELECT amont FROM timed",
        "SELECT customer, amount FROM timed GROUP BY customer",
        "SELECT customer, window_time FROM TABLE(TUMBLE(TABLE timed, DESCRIPTOR(ts), INTERVAL '1' HOUR)) "
        "GROUP BY customer, window_start, window_end",
        "SELECT customer FROM timed UNION ALL SELECT customer, amount FROM timed",
        "CREATE VIEW unused AS SELECT customer || amount AS x FROM timed; SELECT customer FROM timed",
        "CREATE VIEW used AS SELECT customer || amount AS x FROM timed; SELECT x FROM used",
        "DROP VIEW gone; SELECT customer FROM timed",
    ],
)
def test_what_flink_refuses_is_told_once(query: str) -> None:
    (found,) = lint(Side(TIMED + query + ";", engine="flink"))
    assert (found.rule, found.outcome) in {
        ("program-refused", Outcome.INCOMPATIBLE),
        ("statement-refused", Outcome.INCOMPATIBLE),
    }


def test_what_a_catalog_may_hold_is_no_fault_of_a_script_by_itself() -> None:
    lake = "CREATE CATALOG lake WITH ('type' = 'hive'); USE CATALOG lake; USE sales; DROP TABLE orders; "
    assert not lint(Side(lake + TIMED + "SELECT customer FROM timed;", engine="flink"))


@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT FOO(customer) FROM timed", {"foo": "scalar"}),
        ("SELECT customer FROM timed WHERE amount > foo(bar(amount))", {"foo": "scalar", "bar": "scalar"}),
        ("SELECT customer, foo(amount) FROM timed GROUP BY customer", {"foo": "aggregate"}),
        ("SELECT customer, word FROM timed, LATERAL TABLE(foo(customer)) AS t (word)", {"foo": "table"}),
        ("SELECT customer, SUM(amount) FROM timed GROUP BY customer HAVING foo(customer)", {"foo": "scalar"}),
    ],
)
def test_a_function_that_nobody_declares_is_told_with_what_would_declare_it(
    query: str, told: dict[str, str], engine: str
) -> None:
    side = Side(TIMED + query + ";", engine=engine, source="new.sql")
    found = [each for each in lint(side) if each.rule == "undeclared-function"]
    assert {each.outcome for each in found} == {Outcome.UNKNOWN}
    assert all(str(each.after_span).startswith("new.sql:2:") for each in found)
    assert {each.message.split()[0]: each.message.split('"')[1].split(":")[0] for each in found} == told
    declared = {name: FunctionDeclaration(name, kind) for name, kind in told.items()}
    assert "undeclared-function" not in {each.rule for each in lint(replace(side, functions=tuple(declared.values())))}
    ddl = "".join(f"CREATE TEMPORARY FUNCTION {name} AS 'com.example.{name}';\n" for name in told)
    assert "undeclared-function" not in {each.rule for each in lint(replace(side, catalog=ddl))}


@pytest.mark.parametrize(
    "call", ["SPLIT(customer, ',')", "upper(customer)", "JSON_QUOTE(customer)", "CASE amount WHEN 1 THEN 2 END"]
)
def test_functions_of_flink_need_no_declaration(call: str) -> None:
    assert lint(Side(TIMED + f"SELECT {call} FROM timed;", engine="flink")) == ()


@pytest.mark.parametrize(
    ("expression", "other"),
    [
        ("JSON_OBJECT(KEY 'a' VALUE amount NULL ON NULL)", "JSON_OBJECT(KEY 'b' VALUE amount NULL ON NULL)"),
        ("JSON_OBJECT('a' VALUE amount)", "JSON_OBJECT('a' VALUE amount ABSENT ON NULL)"),
        (
            "JSON_VALUE(item, '$.a' RETURNING INT NULL ON EMPTY ERROR ON ERROR)",
            "JSON_VALUE(item, '$.a' RETURNING STRING NULL ON EMPTY ERROR ON ERROR)",
        ),
        ("item IS JSON", "item IS NOT JSON"),
        ("item IS NOT JSON OBJECT", "item IS NOT JSON SCALAR"),
        ("X'1F'", "X'1E'"),
        ("amount BETWEEN SYMMETRIC 3 AND 1", "amount BETWEEN 3 AND 1"),
        (
            "(order_time, INTERVAL '1' DAY) OVERLAPS (order_time, order_time)",
            "(order_time, INTERVAL '2' DAY) OVERLAPS (order_time, order_time)",
        ),
    ],
)
def test_an_expression_of_flink_is_read_with_all_that_it_says(expression: str, other: str) -> None:
    old, new = (
        Side(f"{TABLES}SELECT customer, COUNT({each}) FROM orders GROUP BY customer;", engine="flink")
        for each in (expression, other)
    )
    assert lint(old) == lint(new) == ()
    assert check(old, old).outcome is Outcome.COMPATIBLE
    assert check(old, new).outcome is not Outcome.COMPATIBLE


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "CREATE OR ALTER MATERIALIZED TABLE m AS SELECT customer FROM orders",
            "a materialized table is not supported",
        ),
        ("DELETE FROM totals", "the statement DELETE is not supported"),
        ("SELECT * FROM TO_CHANGELOG(input => TABLE orders)", "name the columns of a function"),
        ("SELECT 1 FROM orders, LATERAL TABLE(f(TABLE orders))", "f is a process table function"),
        ("SELECT * FROM orders, LATERAL (SELECT 1)", "LATERAL (SELECT …), a subquery for each row, is not supported"),
    ],
)
def test_what_is_not_judged_is_named(statement: str, said: str) -> None:
    (finding,) = lint(Side(f"{TABLES}{statement};", engine="flink"))
    assert said in finding.message
    assert finding.outcome is Outcome.UNKNOWN
