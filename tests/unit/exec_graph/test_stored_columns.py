"""Parts of a script are found in what a compiled plan stores, or nobody says which is which."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.from_script import operator_layout
from airflow_flinkcompat.exec_graph.layout import CannotLower, StateLayout, Stored
from airflow_flinkcompat.exec_graph.stored_columns import Part, TableColumns, align, derive_aggregation, in_stored_order
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.plan.column_lineage import Composition
from airflow_flinkcompat.plan.operators import AggregateOperator, JoinOperator, operators
from tests.unit.history.planned import as_compiled

TABLES = """
CREATE TABLE orders (a STRING, b BIGINT, c STRING, d BIGINT, twice AS b * 2) WITH ('connector' = 'kafka');
CREATE TABLE printed (a STRING) WITH ('connector' = 'print');
INSERT INTO printed SELECT """


def part(columns: str, functions: str = "", literals: str = "") -> Part:
    told = (frozenset(words.split()) for words in (columns, functions, literals))
    return Part("BIGINT", Composition(*told))


@pytest.mark.parametrize(
    ("wanted", "given_parts", "places"),
    [
        ([part("a"), part("b")], [part("b"), part("a")], [1, 0]),
        ([part("a"), part("b")], [part("a"), part("c")], None),
        ([part("a")], [part("a"), part("b")], None),
        (
            [part("a", literals="1"), part("a", literals="2")],
            [part("a", literals="2"), part("a", literals="1")],
            [1, 0],
        ),
        ([part("a", "+"), part("a", "*")], [part("a", "*"), part("a", "+")], [1, 0]),
        # What both plans write otherwise tells nothing, and one alone is meant whatever it is computed with.
        ([part("a", "SEARCH", "x")], [part("a", "IN", "y")], [0]),
        ([part("a b", "+", "1"), part("a b", "-", "1")], [part("a b", "-", "1"), part("a b", "+", "1")], [1, 0]),
        ([replace(part("a"), shape="INT"), part("a")], [part("a"), replace(part("a"), shape="INT")], [1, 0]),
    ],
)
def test_which_part_is_which(wanted: list[Part], given_parts: list[Part], places: list[int] | None) -> None:
    assert align(wanted, given_parts, "metrics", [str(place) for place in range(9)]) == places


@pytest.mark.parametrize(
    "parts",
    [
        [part("a"), part("a")],
        [part("a b", "-"), part("a b", "-")],
        [Part("BIGINT", None), Part("BIGINT", None)],
        [Part("BIGINT", None)],
    ],
)
def test_what_is_not_told_apart(parts: list[Part]) -> None:
    with pytest.raises(CannotLower, match="the position of its metrics in the state"):
        align(parts, parts, "metrics", ["one", "other"])


PARTS = st.builds(
    lambda columns, functions, literals: Part("BIGINT", Composition(columns, functions, literals)),
    *[st.frozensets(st.sampled_from(names), max_size=2) for names in ("ab", "+*", "12")],
)


@given(st.lists(PARTS, min_size=1, max_size=5), st.randoms())
def test_the_order_of_a_plan_is_found_or_nothing(parts: list[Part], order: object) -> None:
    """Parts that are all different are found in any order; where two are alike, nobody says which."""
    shuffled = [*range(len(parts))]
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    try:
        found = align([parts[place] for place in shuffled], parts, "metrics", [*map(str, parts)])
    except CannotLower:
        return
    assert found is not None
    assert [parts[place] for place in found] == [parts[place] for place in shuffled]
    alike = [place for place in found if parts.count(parts[place]) > 1]
    assert not alike


def aggregation(query: str) -> tuple[AggregateOperator, StateLayout, TableColumns]:
    side = Side(TABLES + query, engine="flink")
    assert not side.outputs[1]
    (operator,) = (each for output in side.outputs[0].values() for each in operators(output)[:1])
    assert isinstance(operator, AggregateOperator)
    layout = as_compiled(operator, derive_aggregation(operator, time_to_live=False))
    return operator, layout, TableColumns(side.program.tables)


@pytest.mark.parametrize(
    ("query", "swapped"),
    [
        ("SUM(b * d), SUM(b + d) FROM orders GROUP BY a", True),
        ("SUM(IF(c = 'p', b, 0)), SUM(IF(c = 'q', b, 0)) FROM orders GROUP BY a", True),
        ("SUM(b), SUM(d) FROM orders GROUP BY a", True),
        ("SUM(b), SUM(b) FILTER (WHERE c = 'p') FROM orders GROUP BY a", True),
        ("SUM(twice), SUM(b) FROM orders GROUP BY a", False),
    ],
)
def test_metrics_of_one_type_are_told_apart(query: str, swapped: bool) -> None:
    """A plan in which they stand in another order stores something else."""
    operator, layout, columns = aggregation(query)
    found = in_stored_order(operator, layout, columns)
    assert found is not None
    assert found[1].stored == layout.stored
    (state,) = layout.states
    other = replace(state, value=Stored(state.value.form, state.value.fields[::-1]))
    if swapped:
        assert in_stored_order(operator, replace(layout, states=(other,)), columns) is None


@pytest.mark.parametrize(
    "query",
    [
        "SUM(b - d), SUM(d - b) FROM orders GROUP BY a",
        "SUM(o.b), SUM(p.b) FROM orders o JOIN orders p ON o.a = p.c GROUP BY o.a",
        "COUNT(*) FROM orders o JOIN orders p ON o.a = p.c GROUP BY o.a, p.a",
    ],
)
def test_what_is_alike_is_refused(query: str) -> None:
    operator, layout, columns = aggregation(query)
    with pytest.raises(CannotLower, match="in the state is unknown"):
        in_stored_order(operator, layout, columns)


def test_keys_stand_in_the_order_of_the_plan() -> None:
    operator, layout, columns = aggregation("c, COUNT(*) FROM orders WHERE b > 1 GROUP BY c, a || '!'")
    found = in_stored_order(operator, replace(layout, key=layout.key[::-1]), columns)
    assert found is not None
    assert isinstance(found[0], AggregateOperator)
    assert found[0].keys == operator.keys[::-1]


def test_rows_of_a_join_stand_in_the_order_of_the_plan() -> None:
    side = Side(TABLES + "o.a, o.b, p.d FROM orders o JOIN orders p ON o.a = p.c", engine="flink")
    (operator,) = (each for output in side.outputs[0].values() for each in operators(output))
    assert isinstance(operator, JoinOperator)
    layout = operator_layout(operator, Symbols())
    assert isinstance(layout, StateLayout)
    compiled = as_compiled(operator, layout)
    left, right = compiled.states
    assert left.map_key is not None
    turned = replace(left, map_key=Stored(left.map_key.form, left.map_key.fields[::-1]))
    found = in_stored_order(operator, replace(compiled, states=(turned, right)), TableColumns(side.program.tables))
    assert found is not None
    assert found[0].rows == (operator.rows[0][::-1], operator.rows[1])
    assert in_stored_order(operator, replace(compiled, states=(right, left)), TableColumns(side.program.tables)) is None
