"""Which operators of stored plans are computed from history, and why the others are not; without Spark or Flink."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.backfill.steps import Group, inputs_of
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.from_script import operator_layout
from airflow_flinkcompat.exec_graph.layout import StateLayout
from airflow_flinkcompat.exec_graph.model import StateKind
from airflow_flinkcompat.exec_graph.stored_columns import derive_aggregation
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.history.aggregations import aggregation_query
from airflow_flinkcompat.history.derived_rows import NotComputable
from airflow_flinkcompat.history.known_history import KnownHistory
from airflow_flinkcompat.history.queries import require_plain, require_punctual, state_query
from airflow_flinkcompat.history.sources import AssumedHistory
from airflow_flinkcompat.history.state_rows import StateQuery
from airflow_flinkcompat.history.table_rows import TableRows
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.plan.nodes import WindowKind
from airflow_flinkcompat.plan.operators import AggregateOperator, OtherOperator, OverOperator, appends, operators
from dev.measure.savepoint_fixtures import load_scripts, migration_of
from tests.support.savepoint.savepoints import FOLDER, TAKEN
from tests.unit.history.planned import spec_of


def test_each_operator_is_computed_or_says_why_not(snapshot: SnapshotAssertion) -> None:
    sides = {each.name: each.side for each in load_scripts()}
    told = []
    for name in TAKEN:
        plan = (FOLDER / name / "plan.json").read_text("utf-8")
        side = sides[name.partition("/")[2]]
        script = Side(side.script.replace("file://DATA", "file:///data"), dict(side.settings), engine="flink")
        for line in migration_of(plan, plan).operators:
            spec = line.new
            if spec is None or spec.kind is not StateKind.OPERATOR:
                continue
            try:
                query = state_query(script, spec, AssumedHistory())
            except NotComputable as error:
                told.append(f"{name} {spec.name}: {error}")
            else:
                told.append(f"{name} {spec.name}: computed of {', '.join(table.name for table in query.tables)}")
    assert told == snapshot


def test_a_table_that_no_script_declares_is_named() -> None:
    plan = (FOLDER / "2.3/tumble/plan.json").read_text("utf-8")
    side = Side("CREATE TABLE t (a INT); CREATE TABLE u (a INT); INSERT INTO u SELECT a FROM t", engine="flink")
    with pytest.raises(InputError, match="history of orders: the new script declares no table with this name"):
        KnownHistory({"orders": ""}).extend(migration_of(plan, plan), side)


ORDERS = """
CREATE TABLE orders (a STRING, b BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka');
CREATE TABLE printed WITH ('connector' = 'print') LIKE orders;
INSERT INTO printed """
HOUR = 3_600_000
HOPPING = "TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE))"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT a, SUM(b), MAX(ts) FROM orders GROUP BY a", None),
        (f"SELECT a, SUM(b), window_end FROM {HOPPING} GROUP BY a, window_start, window_end", None),
        (
            f"SELECT a, SUM(b), window_end FROM {HOPPING} WHERE window_end > TIMESTAMP '2026-01-01 00:00:00' "
            "GROUP BY a, window_start, window_end",
            "conditions on window_start, window_end or window_time",
        ),
        (
            f"SELECT a, b, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS n FROM {HOPPING}) "
            "WHERE n < 3",
            "windows that are defined differently",
        ),
        (
            f"SELECT o.a, h.b, o.ts FROM orders AS o JOIN {HOPPING} AS h ON o.a = h.a",
            "windows that are defined differently",
        ),
        (
            "SELECT a, SUM(b), MAX(ts) FROM orders /*+ OPTIONS('scan.startup.mode' = 'latest-offset') */ GROUP BY a",
            "SQL hints are not supported",
        ),
    ],
)
def test_what_stands_between_an_operator_and_its_table(query: str, reason: str | None) -> None:
    outputs, problems = Side(ORDERS + query, engine="flink").outputs
    assert not problems
    (operator,) = operators(outputs[0])
    if reason is None:
        require_plain(operator)
    else:
        with pytest.raises(NotComputable, match=reason):
            require_plain(operator)


@pytest.mark.parametrize(
    ("version", "zone", "window", "reason"),
    [
        ("2.3", "Europe/Berlin", SlicedWindow(WindowKind.TUMBLE, 24 * HOUR, 24 * HOUR, HOUR), None),
        ("2.3", "Asia/Tokyo", SlicedWindow(WindowKind.HOP, 24 * HOUR, HOUR), None),
        ("2.3", "Asia/Shanghai", SlicedWindow(WindowKind.TUMBLE, 24 * HOUR, 24 * HOUR), "Flink fires them late"),
        ("1.20", "UTC", SlicedWindow(WindowKind.TUMBLE, 24 * HOUR, 24 * HOUR), None),
        (
            "1.20",
            "UTC",
            SlicedWindow(WindowKind.TUMBLE, 24 * HOUR, 24 * HOUR, HOUR),
            "windows with an offset fire late before Flink 2.3",
        ),
        ("1.20", "UTC", None, None),
    ],
)
def test_windows_that_fire_late(version: str, zone: str, window: SlicedWindow | None, reason: str | None) -> None:
    side, query = Side("", engine="flink", engine_version=version), StateQuery((), (), (), window, zone=zone)
    if reason is None:
        require_punctual(side, query)
    else:
        with pytest.raises(NotComputable, match=reason):
            require_punctual(side, query)


JOINED = ORDERS.partition("CREATE TABLE printed")[0] + (
    "CREATE TABLE printed (a STRING, b BIGINT) WITH ('connector' = 'print'); INSERT INTO printed SELECT o.a, p.b "
)
GROUPED = ORDERS.partition("CREATE TABLE printed")[0] + (
    "CREATE TABLE printed (a STRING, b BIGINT) WITH ('connector' = 'print'); INSERT INTO printed SELECT "
)
TOPIC = "'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json'"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (GROUPED + "a, SUM(b) FROM orders GROUP BY a", None),
        (GROUPED + "a, COUNT(DISTINCT b) FROM orders GROUP BY a", "distinct values with a separate state TTL"),
        (JOINED + "FROM orders o JOIN orders p ON o.a = p.a", None),
        (JOINED + "FROM orders o LEFT JOIN orders p ON o.a = p.a", "the match counts of an outer join"),
        (
            GROUPED + "a, b FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) n FROM orders) WHERE n < 3",
            "a state TTL is supported only for GROUP BY, joins and deduplications",
        ),
        (
            GROUPED.replace("b BIGINT, ts", "b BIGINT, came AS PROCTIME(), ts")
            + "a, MAX(b) OVER (PARTITION BY a ORDER BY came) FROM orders",
            "a state TTL is supported only for GROUP BY, joins and deduplications",
        ),
        (GROUPED + "/*+ STATE_TTL('orders' = '1d') */ a, SUM(b) FROM orders GROUP BY a", "the hint STATE_TTL sets"),
    ],
)
def test_what_has_a_time_to_live(script: str, reason: str | None) -> None:
    side = Side(script.replace("'kafka'", TOPIC), {"table.exec.state.ttl": "36 h"}, engine="flink")
    outputs, problems = side.outputs
    assert not problems
    (output,) = outputs.values()
    (operator,) = operators(output)
    if isinstance(operator, OverOperator):
        derived: Any = derive_aggregation(operator.as_aggregation, time_to_live=False)
    else:
        derived = operator_layout(operator, Symbols(), time_to_live=True)
    assert isinstance(derived, StateLayout)
    spec = spec_of(side, operator, derived)
    if reason is None:
        assert state_query(side, spec, AssumedHistory()).time_to_live == 36 * HOUR
    else:
        with pytest.raises(NotComputable, match=reason):
            state_query(side, spec, AssumedHistory())


WINDOWED = "TABLE({}(TABLE visits{}, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"
VISITS = (
    ORDERS.partition("CREATE TABLE printed")[0]
    + "CREATE TABLE printed (a STRING, b BIGINT) WITH ('connector' = 'print'); CREATE TEMPORARY VIEW visits AS "
    + "SELECT a, b, ts FROM orders UNION ALL SELECT a, b + 1, ts FROM orders WHERE b > 1; INSERT INTO printed SELECT "
)


@pytest.mark.parametrize(
    ("script", "settings", "reason"),
    [
        (JOINED.replace("p.b", "SUM(p.b)") + "FROM orders o JOIN orders p ON o.a = p.a GROUP BY o.a", {}, None),
        (
            JOINED.replace("p.b", "SUM(p.b)") + "FROM orders o LEFT JOIN orders p ON o.a = p.a GROUP BY o.a",
            {},
            None,
        ),
        (
            JOINED.replace("p.b", "SUM(p.b)") + "FROM orders o JOIN orders p ON o.a = p.a GROUP BY o.a",
            {"table.exec.state.ttl": "1 d"},
            "a state TTL is not supported yet if several tables",
        ),
        (VISITS + "a, SUM(b) FROM visits GROUP BY a", {}, None),
        (VISITS + f"a, SUM(b) FROM {WINDOWED.format('TUMBLE', '')} GROUP BY a, window_start, window_end", {}, None),
        (
            VISITS
            + f"a, SUM(b) FROM {WINDOWED.format('SESSION', ' PARTITION BY a')} GROUP BY a, window_start, window_end",
            {},
            "only operators that read tables directly",
        ),
        (VISITS.replace("b + 1,", "3,") + "a, SUM(b) FROM visits GROUP BY a", {}, "different column types"),
    ],
)
def test_what_is_over_several_tables(script: str, settings: dict[str, str], reason: str | None) -> None:
    side = Side(script.replace("'kafka'", TOPIC), settings, engine="flink")
    outputs, problems = side.outputs
    assert not problems
    (output,) = outputs.values()
    operator = operators(output)[0]
    assert isinstance(operator, AggregateOperator)
    layout = derive_aggregation(operator, bool(settings), retracting=not appends(operator.segment))
    spec = spec_of(side, operator, layout)
    if reason is None:
        query = state_query(side, spec, AssumedHistory())
        assert [table.path[2] for table in query.tables] == ["orders"]
        # What some rows of a table are joined with is not told by these rows.
        (group,) = inputs_of(query.states[0].steps)
        assert isinstance(group, Group)
        assert (group.merge is None) is ("JOIN" in script)
    else:
        with pytest.raises(NotComputable, match=reason):
            state_query(side, spec, AssumedHistory())


@pytest.mark.parametrize(
    ("query", "settings", "reason"),
    [
        ("SELECT a, SUM(b) FROM orders GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE)", {}, None),
        (
            "SELECT a, SUM(b) FROM orders GROUP BY a, HOP(ts, INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)",
            {},
            "other than TUMBLE are not computed",
        ),
        (
            "SELECT a, SUM(b) FROM orders GROUP BY a, TUMBLE(ts, INTERVAL '1' MINUTE)",
            {"table.exec.emit.early-fire.enabled": "true"},
            "windows with early or late firing",
        ),
    ],
)
def test_older_windows(query: str, settings: dict[str, str], reason: str | None) -> None:
    script = ORDERS.partition("CREATE TABLE printed")[0].replace("'kafka'", TOPIC)
    side = Side(script + query, settings, engine="flink")
    outputs, problems = side.outputs
    assert not problems
    ((place, output),) = outputs.items()
    (operator,) = operators(output)
    layout = operator_layout(operator, Symbols())
    assert isinstance(operator, AggregateOperator)
    assert isinstance(layout, StateLayout)
    rows = TableRows(side.program.pipelines[place], operator.segment, AssumedHistory())
    if reason is None:
        assert not aggregation_query(rows, operator, layout).stores_watermark
    else:
        with pytest.raises(NotComputable, match=reason):
            aggregation_query(rows, operator, layout)


SUMS = (
    "(SELECT a, window_start, window_end, SUM(b) AS b FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL {})) "
    "GROUP BY a, window_start, window_end)"
)
HIGHEST = "SELECT a, b FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end, window_start ORDER BY b) n FROM {}) "
HIGHEST += "WHERE n < 3"
OF_ROWS = HIGHEST.format("TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))")


@pytest.mark.parametrize(
    ("query", "zone", "reason"),
    [
        (HIGHEST.format(SUMS.format("'1' MINUTE")), "", None),
        (HIGHEST.format(SUMS.format("'1' DAY")), "Europe/Berlin", None),
        (HIGHEST.format(SUMS.format("'1' DAY")), "Asia/Shanghai", "Flink fires them late"),
        (OF_ROWS, "", "the plan of the script has no operator that stores this state"),
        (HIGHEST.format(SUMS.format("'1' MINUTE")) + " UNION ALL " + OF_ROWS, "", None),
        (
            OF_ROWS + " UNION ALL " + HIGHEST.format(SUMS.format("'1' MINUTE")),
            "",
            "the plan of the script has no operator that stores this state",
        ),
        (
            HIGHEST.format(SUMS.format("'1' MINUTE")).replace("window_end, window_start", "a"),
            "",
            "only operators that read tables directly are supported",
        ),
    ],
)
def test_a_ranking_of_what_windows_hand_on_holds_nothing_between_them(
    query: str, zone: str, reason: str | None
) -> None:
    """A ranking of rows holds them until their window ends."""
    script = GROUPED.replace("SELECT ", query).replace("'kafka'", TOPIC)
    settings = {"table.local-time-zone": zone} if zone else {}
    side = Side(script.replace("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)") if zone else script, settings, engine="flink")
    assert not side.outputs[1]
    found = [each for output in side.outputs[0].values() for each in operators(output)]
    operator = next(each for each in found if not isinstance(each, AggregateOperator | OtherOperator))
    spec = spec_of(side, operator, StateLayout((), ()))
    if reason is None:
        told = state_query(side, spec, AssumedHistory())
        assert told.states == ()
        assert [table.path[2] for table in told.tables] == ["orders"]
        assert told.windows is not None
    else:
        with pytest.raises(NotComputable, match=reason):
            state_query(side, spec, AssumedHistory())


RANKED = GROUPED.replace("b BIGINT, ts", "b BIGINT, came AS PROCTIME(), ts").replace("'kafka'", TOPIC)


@pytest.mark.parametrize(
    ("order", "last", "reason"),
    [
        ("came DESC", 1, None),
        ("came", 1, None),
        ("came", 3, "ranks by processing time are not computed"),
        ("b", 3, None),
    ],
)
def test_rows_in_the_order_in_which_they_came(order: str, last: int, reason: str | None) -> None:
    rows = f"(SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY {order}) AS n FROM orders)"
    side = Side(f"{RANKED}a, b FROM {rows} WHERE n <= {last}", engine="flink")
    (operator,) = (each for output in side.outputs[0].values() for each in operators(output))
    layout = operator_layout(operator, Symbols())
    assert isinstance(layout, StateLayout)
    spec = spec_of(side, operator, layout)
    if reason is None:
        assert state_query(side, spec, AssumedHistory()).states
    else:
        with pytest.raises(NotComputable, match=reason):
            state_query(side, spec, AssumedHistory())


def test_what_an_over_adds_up() -> None:
    side = Side(f"{RANKED}a, SUM(b) OVER (PARTITION BY a ORDER BY came) FROM orders", engine="flink")
    (operator,) = (each for output in side.outputs[0].values() for each in operators(output))
    assert isinstance(operator, OverOperator)
    layout = derive_aggregation(operator.as_aggregation, time_to_live=False)
    assert [field.words for field in layout.states[0].value.fields] == ["COUNT(b)", "SUM(b)"]
    spec = spec_of(side, operator, layout)
    assert [table.path[2] for table in state_query(side, spec, AssumedHistory()).tables] == ["orders"]
