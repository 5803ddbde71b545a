"""What Flink's planner drops or folds while it plans: metrics nobody reads, conditions over constants."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Outcome, Report, Side, check

TABLE = (
    "CREATE TABLE orders (item STRING, price BIGINT, note STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)"
    " WITH ('connector' = 'filesystem', 'path' = '/orders', 'format' = 'csv');\n"
)
WINDOW = "TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' MINUTE))"
KEYS = "GROUP BY item, window_start, window_end"
VIEW = f"CREATE TEMPORARY VIEW sums AS SELECT item, SUM(price) AS total, MAX(note) AS last {{0}}FROM {WINDOW} {KEYS};\n"
BASE = f"SELECT item, SUM(price) FROM {WINDOW} {KEYS}"


def report(old: str, new: str, engine: str) -> Report:
    return check(Side(TABLE + old, engine=engine), Side(TABLE + new, engine=engine))


@pytest.mark.parametrize(
    ("old", "new", "vvr", "flink"),
    [
        ("item, total", "item, total, last", Outcome.PARTIAL, Outcome.INCOMPATIBLE),
        ("item, total", "item, last", Outcome.INCOMPATIBLE, Outcome.INCOMPATIBLE),
        ("item, total, last", "item, total", Outcome.COMPATIBLE, Outcome.INCOMPATIBLE),
    ],
)
def test_a_metric_counts_once_it_is_read(old: str, new: str, vvr: Outcome, flink: Outcome) -> None:
    view = VIEW.format("")
    before, after = (f"{view}SELECT {columns} FROM sums" for columns in (old, new))
    assert report(before, after, "vvr").outcome is vvr
    assert report(before, after, "flink").outcome is flink


@pytest.mark.parametrize("metric", ["SUM(price + 1)", "SUM(price) FILTER (WHERE note = 'x')"])
def test_a_metric_nobody_reads_is_doubted_where_something_is_computed_for_it(metric: str) -> None:
    """The planner drops the metric and leaves the projection, so the window is materialized (EXPLAIN)."""
    query = "SELECT item, total FROM sums"
    found = report(VIEW.format("") + query, VIEW.format(f", {metric} AS n ") + query, "flink")
    assert found.outcome is Outcome.UNKNOWN
    assert [finding.rule for finding in found.deciding] == ["unread-metric-changed"]


@pytest.mark.parametrize(
    ("unread", "outcome"),
    [
        # EXPLAIN on 2.3: MIN(note) in front puts a Calc below the window, for the columns' order.
        ("MIN(note) AS n, SUM(price) AS total, MAX(note) AS last", Outcome.UNKNOWN),
        ("SUM(price) AS total, MAX(note) AS last, MIN(note) AS n", Outcome.COMPATIBLE),
        ("COUNT(*) AS n, SUM(price) AS total, MAX(note) AS last", Outcome.COMPATIBLE),
    ],
)
def test_a_metric_nobody_reads_is_doubted_where_columns_are_asked_for_in_another_order(
    unread: str, outcome: Outcome
) -> None:
    scripts = [
        f"SELECT item, total, last FROM (SELECT item, {metrics} FROM {WINDOW} {KEYS})"
        for metrics in ("SUM(price) AS total, MAX(note) AS last", unread)
    ]
    assert report(scripts[0], scripts[1], "flink").outcome is outcome
    assert report(scripts[0], scripts[1], "vvr").outcome is Outcome.COMPATIBLE


def test_a_condition_reads_its_metric() -> None:
    view = VIEW.format("")
    before, after = f"{view}SELECT item, total FROM sums", f"{view}SELECT item, total FROM sums WHERE last > 'x'"
    assert "aggregate-added" in {finding.rule for finding in report(before, after, "flink").deciding}


@pytest.mark.parametrize("engine", ["vvr", "flink"])
def test_a_metric_nobody_reads_is_no_change(engine: str) -> None:
    query = "SELECT item, total FROM sums"
    assert (
        report(VIEW.format("") + query, VIEW.format(", COUNT(*) AS n ") + query, engine).outcome is Outcome.COMPATIBLE
    )


@pytest.mark.parametrize("engine", ["vvr", "flink"])
@pytest.mark.parametrize(
    "condition",
    ["FALSE", "1 = 0", "SUM(price) = NULL", "SUM(price) > 3 AND SUM(price) < 1", "SUM(price) > 3 AND FALSE"],
)
def test_a_condition_the_planner_may_decide_is_doubted(condition: str, engine: str) -> None:
    found = report(BASE, f"{BASE} HAVING {condition}", engine)
    assert found.outcome is Outcome.UNKNOWN
    assert "constant-condition" in {finding.rule for finding in found.deciding}
    assert report(BASE, f"{BASE} HAVING SUM(price) > 3", engine).outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize("engine", ["vvr", "flink"])
@pytest.mark.parametrize(
    "select", ["odd(item), SUM(price)", "item, SUM(price), odd('x')", "item, SUM(price), odd(window_end)"]
)
def test_a_function_nobody_declares_may_be_an_aggregate(select: str, engine: str) -> None:
    found = report(BASE, BASE.replace("item, SUM(price)", select, 1), engine)
    assert found.outcome is Outcome.UNKNOWN
    assert "undeclared-aggregate" in {finding.rule for finding in found.deciding}


@pytest.mark.parametrize("engine", ["vvr", "flink"])
def test_a_watermark_is_compared_by_name(engine: str) -> None:
    columns = "item STRING, x STRING, y STRING, {0}, WATERMARK FOR ts AS {1}"
    table = (
        "CREATE TABLE orders (" + columns + ") WITH ('connector' = 'filesystem', 'path' = '/o', 'format' = 'csv');\n"
    )
    query = f"SELECT item, COUNT(*) FROM {WINDOW} {KEYS}"
    ts, u = "ts AS TO_TIMESTAMP(x)", "u AS TO_TIMESTAMP(y)"
    before, after = table.format(f"{ts}, {u}", "ts"), table.format(f"{u}, {ts}", "u")
    sides = [Side(text + query, engine=engine) for text in (before, after)]
    assert check(*sides).outcome is Outcome.UNKNOWN
    assert check(sides[0], Side(table.format(f"{u}, {ts}", "ts") + query, engine=engine)).outcome is Outcome.COMPATIBLE


COMPUTED = TABLE.replace("note STRING", "note STRING, dear AS price + 1")


def computed(select: str, keys: str = KEYS, window: str = WINDOW) -> Side:
    return Side(COMPUTED + f"SELECT item, {select} FROM {window} {keys}", engine="flink")


def test_a_metric_over_a_computed_column_is_kept_beside_the_one_it_repeats() -> None:
    """SUM(dear) and SUM(price + 1) are two accumulators (EXPLAIN), SUM(price) twice is one."""
    both, one = "SUM(dear), SUM(price + 1)", "SUM(dear)"
    assert check(computed(both), computed(one)).outcome is Outcome.INCOMPATIBLE
    assert check(computed("SUM(price), SUM(price)"), computed("SUM(price)")).outcome is Outcome.COMPATIBLE
    assert check(computed(one), computed("SUM(price + 1)")).outcome is Outcome.COMPATIBLE


def test_sessions_of_other_keys_make_no_windowed_aggregation() -> None:
    """Their window fields are keys of the state (EXPLAIN), so the order of those counts."""
    keys, swapped = "GROUP BY item, window_start, window_end", "GROUP BY item, window_end, window_start"
    session = "TABLE(SESSION(TABLE orders{0}, DESCRIPTOR(ts), INTERVAL '10' MINUTE))"
    for partition, outcome in ((" PARTITION BY item", Outcome.COMPATIBLE), ("", Outcome.INCOMPATIBLE)):
        window = session.format(partition)
        found = check(computed("SUM(price)", keys, window), computed("SUM(price)", swapped, window))
        assert found.outcome is outcome


GROUPED = "SELECT {0} FROM orders WHERE price > 4 GROUP BY note, item"


@pytest.mark.parametrize(
    ("after", "outcome"),
    [
        ("item, note, SUM(price) * 2", Outcome.UNKNOWN),
        ("note, item, SUM(price)", Outcome.UNKNOWN),
        ("SUM(price), item, note", Outcome.UNKNOWN),
    ],
)
def test_keys_may_follow_the_output(after: str, outcome: Outcome) -> None:
    """Above a condition, keys put out in another order than GROUP BY's are kept in that order (EXPLAIN)."""
    before = GROUPED.format("item, note, SUM(price)")
    assert report(before, GROUPED.format(after), "flink").outcome is outcome
    in_order = GROUPED.replace("note, item", "item, note")
    plain = "item, note, SUM(price) * 2"
    assert (
        report(in_order.format("item, note, SUM(price)"), in_order.format(plain), "flink").outcome is Outcome.COMPATIBLE
    )


NULLS = (
    "CREATE TABLE orders (a STRING, b BIGINT, n BIGINT NOT NULL, f BOOLEAN) WITH ('connector' = 'filesystem', "
    "'path' = '/orders', 'format' = 'csv');\nCREATE TABLE seen (a STRING, b BIGINT) WITH ('connector' = '{}');\n"
    "INSERT INTO seen SELECT a, b FROM orders"
)


@pytest.mark.parametrize("sink", ["print", "blackhole"])
@pytest.mark.parametrize(
    ("condition", "outcome"),
    [
        # EXPLAIN on 2.3: Values in place of the source, whose positions then find no operator.
        ("b > 3 AND NOT b > 3", Outcome.UNKNOWN),
        ("b > 3 AND NOT b > 2", Outcome.UNKNOWN),
        ("n IS NULL", Outcome.UNKNOWN),
        ("CAST(n AS BIGINT) IS NULL", Outcome.UNKNOWN),
        ("COALESCE(b, n) IS NULL", Outcome.UNKNOWN),
        ("b <> b", Outcome.UNKNOWN),
        ("f AND NOT f", Outcome.UNKNOWN),
        ("f IS TRUE AND f IS FALSE", Outcome.UNKNOWN),
        ("NOT (b > 3 OR b <= 3)", Outcome.UNKNOWN),
        ("(b > 3 AND b < 2) OR (b > 9 AND b < 7)", Outcome.UNKNOWN),
        ("FALSE", Outcome.UNKNOWN),
        ("TRUE", Outcome.COMPATIBLE),
        ("b IS NULL", Outcome.COMPATIBLE),
        ("NOT b > 3", Outcome.COMPATIBLE),
        ("b > 3 AND a = 'x'", Outcome.COMPATIBLE),
        ("b IN (1, 2)", Outcome.COMPATIBLE),
    ],
)
def test_a_condition_that_never_holds_takes_the_source_away(sink: str, condition: str, outcome: Outcome) -> None:
    script = NULLS.format(sink)
    found = check(Side(f"{script};", engine="flink"), Side(f"{script} WHERE {condition};", engine="flink"))
    assert found.outcome is outcome
