"""Which operator of a script one of a compiled plan is, and what of its rows history does not tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.from_script import operator_layout
from airflow_flinkcompat.exec_graph.layout import NamedState, StateField, StateLayout, Stored, stored_as
from airflow_flinkcompat.exec_graph.stored_columns import derive_aggregation
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.history.derived_rows import NotComputable
from airflow_flinkcompat.history.queries import state_query
from airflow_flinkcompat.history.sources import AssumedHistory, HistoryLocations
from airflow_flinkcompat.plan.operators import AggregateOperator, JoinOperator, RankOperator, operators
from airflow_flinkcompat.savepoint.binary import KeyedStateKind
from tests.unit.history.planned import as_compiled, spec_of

TOPIC = "'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json'"
GROUPED = f"""
CREATE TABLE orders (a STRING, b BIGINT, came AS PROCTIME(), ts TIMESTAMP(3)) WITH ('connector' = {TOPIC});
CREATE TABLE printed (a STRING, b BIGINT) WITH ('connector' = 'print');
INSERT INTO printed SELECT """
TWO = GROUPED.replace("INSERT", "EXECUTE STATEMENT SET BEGIN INSERT")
ALIKE = "several operators of the script match this node"


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("a, SUM(b) FROM orders GROUP BY a", "a, SUM(b) FROM orders WHERE b > 1 GROUP BY a"),
        ("a, SUM(b) FROM orders GROUP BY a", "a, SUM(s) FROM (SELECT a, b + 1 AS s FROM orders) GROUP BY a"),
    ],
)
def test_one_operator_is_not_taken_for_another(first: str, other: str) -> None:
    """Queries of two sinks are apart; which INSERT into one table is which, nothing says."""
    apart = TWO.replace("EXECUTE", "CREATE TABLE other LIKE printed; EXECUTE", 1)
    script = f"{{}}{first}; INSERT INTO {{}} SELECT {other}; END;"
    one, two = (Side(script.format(*each), engine="flink") for each in ((TWO, "printed"), (apart, "other")))
    for side in (one, two):
        found = [operator for output in side.outputs[0].values() for operator in operators(output)]
        specs = [spec_of(side, each, derive_aggregation(each, False)) for each in found]  # type: ignore[arg-type]
        if side is two:
            first_query, other_query = (state_query(side, spec, AssumedHistory()) for spec in specs)
            assert first_query.states[0].steps != other_query.states[0].steps
            assert state_query(side, specs[0], AssumedHistory()) == first_query
            continue
        for spec in specs:
            with pytest.raises(NotComputable, match=ALIKE):
                state_query(side, spec, AssumedHistory())


LEFT = "FROM orders o LEFT JOIN orders p ON o.a = p.a"


@pytest.mark.parametrize(
    ("query", "compiled_join", "reason"),
    [
        (f"SELECT o.a, p.b {LEFT}", "LEFT", ""),
        (f"SELECT o.a, p.b {LEFT} WHERE p.b > 1", "INNER", "has no operator that stores this state"),
        (
            f"SELECT o.a, p.b {LEFT.replace('LEFT', 'FULL')} WHERE o.b > 1",
            "LEFT",
            "has no operator that stores this state",
        ),
    ],
)
def test_a_join_that_is_planned_as_a_simpler_one_is_another(query: str, compiled_join: str, reason: str) -> None:
    side = Side(GROUPED.removesuffix("SELECT ") + query, engine="flink")
    (operator,) = (each for output in side.outputs[0].values() for each in operators(output))
    assert isinstance(operator, JoinOperator)
    planned = replace(operator, join=compiled_join)
    layout = operator_layout(planned, Symbols())
    assert isinstance(layout, StateLayout), layout
    spec = replace(spec_of(side, operator, layout), layout=as_compiled(planned, layout))
    if not reason:
        assert state_query(side, spec, AssumedHistory()).states
    else:
        with pytest.raises(NotComputable, match=reason):
            state_query(side, spec, AssumedHistory())


ROUNDED = "(SELECT a, SUM(CAST(b AS DOUBLE)) AS d FROM orders GROUP BY a)"
COUNTED = "(SELECT a, COUNT(*) AS b FROM orders GROUP BY a)"


@pytest.mark.parametrize(
    ("query", "unretracted", "reason"),
    [
        (f"b, COUNT(*) FROM {COUNTED} GROUP BY b", (), ""),
        (f"a, MAX(b) FROM {COUNTED} GROUP BY a", (0,), ""),
        (f"a, MAX(b) FILTER (WHERE b < 10) FROM {COUNTED} GROUP BY a", (0,), "planned without retractions"),
        (f"a, MAX(b) FROM {COUNTED} WHERE MOD(b, 2) = 1 GROUP BY a", (0,), "planned without retractions"),
        ("o.a, MAX(p.b) " + LEFT + " GROUP BY o.a", (0,), ""),
        ("p.a, MAX(o.b) " + LEFT + " GROUP BY p.a", (0,), "planned without retractions"),
        ("o.a, MAX(o.b) " + LEFT + " WHERE p.a IS NULL GROUP BY o.a", (0,), "planned without retractions"),
        ("o.a, MAX(COALESCE(p.b, 9)) " + LEFT + " GROUP BY o.a", (0,), "planned without retractions"),
        (
            "a, SUM(d) FROM (SELECT a, SUM(CAST(b AS DOUBLE)) AS d FROM orders GROUP BY a) GROUP BY a",
            (),
            "order in which FLOAT or DOUBLE values are added|rounding cannot be reproduced",
        ),
        (
            "a, SUM(b) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY came DESC) AS n FROM orders) "
            "WHERE n <= 3 GROUP BY a",
            (),
            "this form|tables directly|are told",
        ),
    ],
)
def test_rows_that_are_taken_back(query: str, unretracted: tuple[int, ...], reason: str) -> None:
    side = Side(GROUPED + query, engine="flink")
    assert not side.outputs[1]
    operator = next(each for output in side.outputs[0].values() for each in operators(output))
    assert isinstance(operator, AggregateOperator)
    derived = derive_aggregation(operator, False, retracting=True, unretracted=unretracted)
    spec = spec_of(side, operator, derived)
    if not reason:
        assert state_query(side, spec, AssumedHistory()).states
    else:
        with pytest.raises(NotComputable, match=reason):
            state_query(side, spec, AssumedHistory())


LEAST = "(SELECT a, MIN(b) AS b, COUNT(*) AS n FROM orders GROUP BY a)"


@pytest.mark.parametrize(
    ("order", "row", "last", "state", "reason"),
    [
        ("n DESC", "a, n", 2, "data-state-with-update", ""),
        ("n DESC", "a, n", 1, "Top1-Rank-State", ""),
        ("n DESC", "a, b, n", 1, "Top1-Rank-State", "history does not show which value of .* the operator stored last"),
        ("b", "a, b", 2, "data-state-with-update", "sorts first while it is NULL"),
        ("b DESC", "a, b", 2, "data-state-with-update", ""),
        ("n DESC", "a, n", 2, "data-state", ""),
    ],
)
def test_a_ranking_of_groups(order: str, row: str, last: int, state: str, reason: str) -> None:
    ranked = f"(SELECT *, ROW_NUMBER() OVER (ORDER BY {order}) AS rn FROM {LEAST}) WHERE rn <= {last}"
    tables = GROUPED.partition("CREATE TABLE printed")[0]
    side = Side(f"{tables}SELECT {row} FROM {ranked}", engine="flink")
    assert not side.outputs[1]
    (operator, _) = (each for output in side.outputs[0].values() for each in operators(output))
    assert isinstance(operator, RankOperator)
    fields = tuple(StateField(stored_as(type)) for type in operator.row_types)
    by = (fields[0],) if state.endswith("update") else (StateField(stored_as(operator.order_types[0])),)
    forms = {"data-state-with-update": "Tuple<row, Int>", "Top1-Rank-State": "row", "data-state": "List<row>"}
    key = None if state == "Top1-Rank-State" else Stored("row", by)
    kind = KeyedStateKind.VALUE if key is None else KeyedStateKind.MAP
    states = [NamedState(state, kind, Stored(forms[state], fields), key)]
    if state == "data-state":
        states.append(NamedState("sorted-map", KeyedStateKind.VALUE, Stored("SortedMap<row, Long>", by)))
    spec = spec_of(side, operator, StateLayout((), tuple(states)))
    if not reason:
        assert state_query(side, spec, AssumedHistory()).states
    else:
        with pytest.raises(NotComputable, match=reason):
            state_query(side, spec, AssumedHistory())


@pytest.mark.parametrize(
    "declared",
    ["'connector' = 'upsert-kafka'", "'connector' = 'mysql-cdc'", "'connector' = 'kafka', 'format' = 'debezium-json'"],
)
def test_changelogs_are_no_history(declared: str) -> None:
    tables = GROUPED.replace(f"'connector' = {TOPIC}", declared)
    assert declared in tables
    side = Side(tables + f"b, COUNT(*) FROM {COUNTED} GROUP BY b", engine="flink")
    operator = next(each for output in side.outputs[0].values() for each in operators(output))
    assert isinstance(operator, AggregateOperator)
    spec = spec_of(side, operator, derive_aggregation(operator, False, retracting=True))
    with pytest.raises(NotComputable, match="is a changelog"):
        state_query(side, spec, HistoryLocations(tables={"orders": "parquet:/lake/orders"}))


def test_nothing_is_kept_of_no_rows() -> None:
    """Spark makes a row of none where there is no key."""
    side = Side(GROUPED + "'x', SUM(b) FROM orders", engine="flink")
    (operator,) = (each for output in side.outputs[0].values() for each in operators(output))
    assert isinstance(operator, AggregateOperator)
    spec = spec_of(side, operator, derive_aggregation(operator, time_to_live=False))
    (made,) = state_query(side, spec, AssumedHistory()).states
    assert "Where(" in str(made.steps)
    assert "c1 > 0" in str(made.steps)
