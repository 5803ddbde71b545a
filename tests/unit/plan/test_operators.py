"""The view of the stateful operators: every value resolved to where it comes from, whatever stands in between."""
# ruff: noqa: E501 -- one case a line

from __future__ import annotations

from typing import Any

import pytest

from airflow_flinkcompat.plan import build_program
from airflow_flinkcompat.plan.lineage import resolve_operators
from airflow_flinkcompat.plan.nodes import Opaque
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinOperator,
    OtherOperator,
    Output,
    Rows,
    TooLarge,
    operators,
    sources,
)
from airflow_flinkcompat.plan.origins import describe
from airflow_flinkcompat.sql import parse_script

TABLE = """\
CREATE TABLE orders (
  customer STRING, amount BIGINT, item STRING, placed TIMESTAMP(3), twice AS amount * 2, WATERMARK FOR placed AS placed
) WITH ('connector' = 'kafka');
"""
TUMBLE = "TABLE(TUMBLE(TABLE {0}, DESCRIPTOR(placed), INTERVAL '1' MINUTE))"
WINDOWED = TUMBLE.format("orders")
KEYS = "GROUP BY customer, window_start, window_end"


def output(sql: str) -> Output:
    (pipeline,) = build_program(parse_script(TABLE + sql)).pipelines
    return resolve_operators(pipeline.sink)


def aggregate(sql: str) -> AggregateOperator:
    (operator,) = operators(output(sql))
    assert isinstance(operator, AggregateOperator)
    return operator


PLAIN = f"SELECT customer, SUM(amount * 2) FROM {WINDOWED} WHERE amount > 1 {KEYS};"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT customer AS c, SUM(amount * 2) AS s FROM {WINDOWED} AS w WHERE w.amount > 1 {KEYS};",
        f"SELECT customer, SUM(twice) FROM {WINDOWED} WHERE amount > 1 {KEYS};",
        f"SELECT c, s FROM (SELECT customer AS c, SUM(d) AS s FROM (SELECT *, amount * 2 AS d FROM {WINDOWED}) "
        f"WHERE amount > 1 {KEYS});",
        f"WITH o AS (SELECT * FROM orders WHERE amount > 1) SELECT customer, SUM(amount * 2) FROM {TUMBLE.format('o')} {KEYS};",
        "CREATE TEMPORARY VIEW v (who, much, placed) AS SELECT customer, amount * 2, placed FROM orders WHERE amount > 1;"
        f"SELECT who, SUM(much) FROM {TUMBLE.format('v')} GROUP BY who, window_start, window_end;",
    ],
)
def test_the_way_a_value_takes_does_not_matter(sql: str) -> None:
    assert output(sql) == output(PLAIN)


@pytest.mark.parametrize("qualifier", ["'x'", "(amount + 1)", "ABS(amount)", "1"])
def test_a_call_behind_what_is_no_name_is_not_understood(qualifier: str) -> None:
    program = build_program(parse_script(f"{TABLE}SELECT {qualifier}.f(amount) FROM orders;"))
    assert program.pipelines or program.problems
    assert all(isinstance(pipeline.sink.input, Opaque) for pipeline in program.pipelines)


@pytest.mark.parametrize(
    ("columns", "said"),
    [("", ()), (" (a, part, b)", ()), (" (part, a, b)", ()), (" (part, a)", ("a", "part"))],
)
def test_a_column_list_says_at_most_which_columns_are_filled(columns: str, said: tuple[str, ...]) -> None:
    """Computed columns and virtual metadata are not written."""
    sink = (
        "CREATE TABLE s (a STRING, twice AS b * 2, part BIGINT METADATA, o BIGINT METADATA FROM 'offset' VIRTUAL, b BIGINT)"
        " WITH ('connector' = 'kafka');\n"
    )
    values = "customer, amount" if columns == " (part, a)" else "customer, amount, amount"
    assert output(f"{sink}INSERT INTO s{columns} SELECT {values} FROM orders;").insert_columns == said


@pytest.mark.parametrize(
    ("written", "planned"),
    [
        ("(y, x) SELECT SUM(amount), MAX(amount) FROM orders", "SELECT MAX(amount), SUM(amount) FROM orders"),
        (
            "(y, x) SELECT SUM(amount), 1 FROM orders UNION ALL (SELECT MIN(amount), 2 FROM orders)",
            "SELECT 1, SUM(amount) FROM orders UNION ALL SELECT 2, MIN(amount) FROM orders",
        ),
        ("(y, x) VALUES (1, 2), (3, 4)", "VALUES (2, 1), (4, 3)"),
    ],
)
def test_the_values_of_an_insert_are_planned_in_the_order_of_the_sink_s_columns(written: str, planned: str) -> None:
    """So are the aggregates, whose order is that of their accumulators (restored wrong on Flink 2.3)."""
    sink = "CREATE TABLE s (x BIGINT, y BIGINT) WITH ('connector' = 'print');\nINSERT INTO s "
    assert output(f"{sink}{written};") == output(f"{sink}{planned};")


def test_an_aggregation_in_all_its_parts() -> None:
    operator = aggregate(
        f"SELECT customer, SUM(amount), COUNT(*), SUM(amount) + 1 FROM {WINDOWED} "
        "WHERE window_start > TIMESTAMP '2026-01-01 00:00:00' AND item = 'x' GROUP BY window_end, customer, item, window_start;"
    )
    assert [describe(key) for key in operator.keys] == ["customer", "item"]
    assert operator.key_order == ("window_end", 0, 1, "window_start")
    assert [describe(call) for call in operator.aggregates] == ["SUM(amount)", "COUNT(*)"]
    assert [describe(part) for part in operator.segment.filters] == ["(item = 'x')"]
    assert [describe(part) for part in operator.segment.window_filters] == ["(window_start > '2026-01-01 00:00:00')"]
    assert operator.kind == "window aggregation"
    assert [source.table for source in sources(output(PLAIN))] == ["orders"]


def test_conditions_on_keys_move_below_and_those_on_metrics_stay() -> None:
    having = output(
        f"SELECT customer, SUM(amount) FROM {WINDOWED} {KEYS} HAVING customer <> 'x' AND SUM(amount) > 1 AND window_end > placed2;"
        .replace(" AND window_end > placed2", "")
    )  # fmt: skip
    (operator,) = operators(having)
    assert isinstance(operator, AggregateOperator)
    assert [describe(part) for part in operator.segment.filters] == ["(customer <> 'x')"]
    assert [describe(part) for part in having.segment.filters] == ["(SUM(amount) > 1)"]


def test_a_session_knows_which_conditions_it_saw() -> None:
    session = "TABLE(SESSION({0} PARTITION BY customer, DESCRIPTOR(placed), INTERVAL '1' MINUTE))"
    before = output(f"SELECT customer FROM {session.format('(SELECT * FROM orders WHERE amount > 1)')};")
    after = output(f"SELECT customer FROM {session.format('TABLE orders')} WHERE amount > 1;")
    assert before.segment.filters == after.segment.filters
    assert not before.segment.filters_above_session
    assert after.segment.filters_above_session == after.segment.filters


def test_repeated_keys_are_counted() -> None:
    twice = f"(SELECT customer, customer AS again, window_start, window_end FROM {WINDOWED})"
    assert (
        aggregate(f"SELECT customer FROM {twice} GROUP BY customer, again, window_start, window_end;").repeated_keys
        == 1
    )
    assert aggregate(f"SELECT customer FROM {twice} GROUP BY customer, window_start, window_end;").repeated_keys == 0


@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        ("SELECT a.customer FROM orders AS a JOIN orders AS b ON a.item = b.item;", ["regular join"]),
        ("SELECT SUM(amount) OVER (PARTITION BY item ORDER BY placed) FROM orders;", ["OVER aggregation"]),
        ("SELECT customer FROM orders UNION ALL SELECT item FROM orders;", ["UNION ALL"]),
        ("SELECT customer FROM orders INTERSECT SELECT item FROM orders;", ["INTERSECT"]),
        ("SELECT customer FROM orders ORDER BY customer;", ["ORDER BY"]),
        ("SELECT customer FROM orders LIMIT 3;", ["LIMIT"]),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT customer FROM orders);", ["group aggregation"] * 2),
        ("SELECT customer FROM f(TABLE orders PARTITION BY item, 1);", ["process table function"]),
    ],
)
def test_other_constructs_keep_their_kind(sql: str, kinds: list[str]) -> None:
    assert [operator.kind for operator in operators(output(sql))] == kinds


def test_the_sides_of_a_self_join_are_two() -> None:
    join = "SELECT a.customer, b.customer FROM orders AS a JOIN orders AS b ON a.item = b.item;"
    one, other = output(join), output(join.replace("a.customer, b.customer", "b.customer, a.customer"))
    assert one != other
    (operator,) = operators(one)
    assert isinstance(operator, JoinOperator)
    assert len(operator.segments) == 2


def test_literal_rows_are_counted() -> None:
    one, two = (output(f"SELECT 'a' FROM (VALUES {rows}) AS v(x);") for rows in ("(1)", "(1), (1)"))
    assert one != two
    assert isinstance(two.segment.origin, Rows)


def test_what_grows_too_large_is_refused() -> None:
    views = ["CREATE TEMPORARY VIEW v0 AS SELECT amount FROM orders;"]
    views += [f"CREATE TEMPORARY VIEW v{i} AS SELECT amount + amount AS amount FROM v{i - 1};" for i in range(1, 40)]
    (pipeline,) = build_program(parse_script(TABLE + "\n".join(views) + "SELECT amount FROM v39;")).pipelines
    with pytest.raises(TooLarge):
        resolve_operators(pipeline.sink)


JOINED = "SELECT x FROM f(a => TABLE orders PARTITION BY item{0}, b => (SELECT twice AS t, item FROM orders) {1}{2});"


def test_a_process_table_function_in_all_its_parts() -> None:
    (operator,) = operators(output(JOINED.format(" ORDER BY placed", "PARTITION BY item", ", n => 3, uid => 'one'")))
    assert isinstance(operator, OtherOperator)
    parts = {name: str(value) for name, value in operator.attributes}
    assert [parts[name] for name in ("text", "function", "uid")] == ["n => 3", "f", "'one'"]
    assert {"partition", "partition order", "partition of input 2", "order of input 1"} < parts.keys()
    assert [len(row) for row in operator.rows] == [5, 2]


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        (("", "PARTITION BY item", ", uid => 'two'"), {"uid"}),
        (("", "PARTITION BY item", ", n => 4, uid => 'one'"), {"text"}),
        ((" ORDER BY placed", "PARTITION BY item", ", uid => 'one'"), {"order of input 1"}),
        (("", "PARTITION BY t", ", uid => 'one'"), {"partition of input 2", "partition order of input 2"}),
    ],
)
def test_parts_of_a_process_table_function_differ_each_by_itself(
    changed: tuple[str, str, str], names: set[str]
) -> None:
    def parts(*sides: str) -> set[tuple[str, Any]]:
        (operator,) = operators(output(JOINED.format(*sides)))
        assert isinstance(operator, OtherOperator)
        return set(operator.attributes)

    difference = parts(*changed) ^ parts("", "PARTITION BY item", ", uid => 'one'")
    assert {name for name, _ in difference} == names
