"""Lookup joins on engine ``flink``: an asynchronous one keeps rows in flight, and which one is, its script has to tell.

What is asserted was measured with a connector of its own (``al-…`` in ``tests/fixtures/measured``).
"""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Consequence, Outcome, Report, Side, check

SCRIPT = """\
CREATE TABLE orders (customer STRING, amount {type}, item STRING, arrived AS PROCTIME())
WITH ('connector' = 'filesystem', 'path' = '/in', 'format' = 'csv');
CREATE TABLE names (customer STRING, name STRING, level BIGINT) WITH ({options});
CREATE TABLE out_1 (a STRING, b BIGINT, c STRING, d STRING) WITH ('connector' = 'print');
SET 'parallelism.default' = '1';
INSERT INTO out_1
{query};
"""
QUERY = (
    "SELECT {hint} orders.customer, orders.amount, {columns} "
    "FROM orders {join} names FOR SYSTEM_TIME AS OF orders.arrived ON {key} = names.customer{where}"
)
HBASE = "'connector' = 'hbase-2.2', 'lookup.async' = 'true'"
OWN = "'connector' = 'my-lookup', 'lookup.async' = 'true'"
SILENT = "'connector' = 'my-lookup'"
JDBC = "'connector' = 'jdbc'"
HINTED = "/*+ LOOKUP('table'='names', 'async'='true') */"
NOT_HINTED = "/*+ LOOKUP('table'='names', 'async'='false') */"
ROW = {"columns": "names.name, orders.item"}
KEY = {"key": "orders.item"}
TYPE = {"type": "INT"}


def script(options: str, **changes: str) -> str:
    parts = {
        "hint": "",
        "columns": "names.name, names.name",
        "join": "LEFT JOIN",
        "key": "orders.customer",
        "where": "",
    }
    query = changes.get("query") or QUERY.format(**parts | {k: v for k, v in changes.items() if k in parts})
    return SCRIPT.format(options=options, query=query, type=changes.get("type", "BIGINT"))


def judged(options: str, hint: str = "", **changes: str) -> Report:
    return check(script(options, hint=hint), script(options, **{"hint": hint, **changes}), "flink")


@pytest.mark.parametrize(("options", "hint"), [(HBASE, ""), (OWN, ""), (SILENT, HINTED)])
@pytest.mark.parametrize("change", [ROW, KEY, TYPE], ids=["column", "key", "type"])
def test_another_row_in_the_queue_is_refused(options: str, hint: str, change: dict[str, str]) -> None:
    report = judged(options, hint, **change)
    assert report.outcome is Outcome.INCOMPATIBLE
    assert Consequence.REFUSED_AT_RESTORE in {finding.consequence for finding in report.deciding}


@pytest.mark.parametrize(("options", "hint"), [(HBASE, ""), (OWN, ""), (SILENT, HINTED)])
def test_an_asynchronous_lookup_that_goes_is_refused(options: str, hint: str) -> None:
    report = judged(options, hint, query="SELECT customer, amount, item, item FROM orders")
    assert report.outcome is Outcome.INCOMPATIBLE
    assert {finding.consequence for finding in report.deciding} == {Consequence.REFUSED_AT_SUBMIT}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(script(OWN), script(OWN.replace("true", "false")), id="option"),
        pytest.param(script(HBASE), script(HBASE.replace("true", "false")), id="option of a known connector"),
        pytest.param(script(HBASE), script("'connector' = 'hbase-2.2'"), id="option left out"),
        pytest.param(script(SILENT, hint=HINTED), script(SILENT, hint=NOT_HINTED), id="hint"),
        pytest.param(
            script(SILENT).replace("names FOR", "names /*+ OPTIONS('lookup.async'='true') */ FOR"),
            script(SILENT).replace("names FOR", "names /*+ OPTIONS('lookup.async'='false') */ FOR"),
            id="option in a hint",
        ),
    ],
)
def test_rows_in_flight_are_lost_where_it_becomes_synchronous(old: str, new: str) -> None:
    report = check(old, new, "flink")
    assert report.outcome is Outcome.INCOMPATIBLE
    (found,) = (finding for finding in report.deciding if finding.rule == "lookup-mode-changed")
    assert found.consequence is Consequence.SILENTLY_WRONG
    assert "lookup-mode-changed" not in {finding.rule for finding in check(new, old, "flink").findings}


CHANGES = [ROW, KEY, {"join": "JOIN"}, {"where": " WHERE names.level > 1"}, {"columns": "names.name, names.customer"}]
GONE = {"query": "SELECT customer, amount, item, item FROM orders"}


MAY_WAIT = [SILENT, HBASE.replace("'true'", "'${async}'"), "'connector' = 'paimon'"]
NOT_QUEUED = [{"join": "JOIN"}, {"columns": "names.name, names.customer"}, {"where": " WHERE names.level > 1"}]
READ = {"columns": "names.name, orders.item"}
"""Another column of the rows that wait."""


@pytest.mark.parametrize("change", [ROW, KEY, TYPE, GONE], ids=str)
@pytest.mark.parametrize("options", MAY_WAIT)
def test_what_may_wait_in_a_queue_is_not_compatible(options: str, change: dict[str, str]) -> None:
    assert judged(options, **change).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("change", NOT_QUEUED, ids=str)
@pytest.mark.parametrize("options", MAY_WAIT)
def test_what_no_queue_holds_is_compatible_whatever_a_lookup_is(options: str, change: dict[str, str]) -> None:
    assert judged(options, **change).outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize("options", [HBASE, SILENT])
def test_another_key_waits_in_a_queue_where_it_is_computed(options: str) -> None:
    """A key among the columns that are read anyway changes no row; a computed one is one more column of it."""
    old = script(options, **READ)
    assert check(old, script(options, **READ, key="orders.item"), "flink").outcome is Outcome.COMPATIBLE
    assert check(old, script(options, **READ, key="UPPER(orders.item)"), "flink").outcome is Outcome.UNKNOWN


EQUATIONS = [
    ("BIGINT", {"key": "orders.amount = names.level AND orders.customer"}, Outcome.COMPATIBLE),
    ("BIGINT", {"where": " WHERE orders.amount = names.level"}, Outcome.COMPATIBLE),
    ("INT", {"key": "orders.amount = names.level AND orders.customer"}, Outcome.UNKNOWN),
    ("INT", {"where": " WHERE orders.amount = names.level"}, Outcome.UNKNOWN),
    ("BIGINT", {"key": "orders.amount + 1 = names.level AND orders.customer"}, Outcome.UNKNOWN),
    ("BIGINT", {"where": " WHERE names.level = orders.amount + 1"}, Outcome.UNKNOWN),
    ("BIGINT", {"where": " WHERE names.level > orders.amount + 1"}, Outcome.COMPATIBLE),
    ("BIGINT", {"key": "orders.amount = names.level + 1 AND orders.customer"}, Outcome.UNKNOWN),
]


@pytest.mark.parametrize("options", [HBASE, SILENT])
@pytest.mark.parametrize(("kind", "change", "outcome"), EQUATIONS, ids=str)
def test_what_an_equation_asks_of_a_row_waits_with_it(
    options: str, kind: str, change: dict[str, str], outcome: Outcome
) -> None:
    """A computed side, or one that is cast to the type of the other, is one more column of the rows that wait."""
    old = script(options, type=kind, join="JOIN")
    assert check(old, script(options, type=kind, join="JOIN", **change), "flink").outcome is outcome


@pytest.mark.parametrize(("options", "outcome"), [(HBASE, Outcome.UNKNOWN), (JDBC, Outcome.COMPATIBLE)])
def test_a_looked_up_key_of_another_type_casts_what_waits(options: str, outcome: Outcome) -> None:
    old = script(options, type="INT", key="orders.amount = names.level AND orders.customer")
    new = old.replace("level BIGINT", "level INT")
    assert check(new, old, "flink").outcome is outcome
    assert check(new, new, "flink").outcome is Outcome.COMPATIBLE


def test_a_lookup_of_which_nothing_is_said_may_become_another_one_with_its_connector() -> None:
    old, new = script(SILENT), script("'connector' = 'your-lookup'", join="JOIN")
    assert check(old, new, "flink").outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("change", NOT_QUEUED, ids=str)
def test_what_was_restored_right_beside_a_queue_is_compatible(change: dict[str, str]) -> None:
    assert judged(HBASE, **change).outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize("change", [*CHANGES, GONE], ids=str)
def test_a_synchronous_lookup_keeps_nothing(change: dict[str, str]) -> None:
    assert judged(JDBC, **change).outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_jdbc_knows_no_other_way_whatever_a_hint_asks_for(change: dict[str, str]) -> None:
    """As in ``sk-group-lookup-hint-async``."""
    assert judged(JDBC, HINTED, **change).outcome is Outcome.COMPATIBLE


def test_two_lookups_and_one_hint_are_not_told_apart() -> None:
    twice = (
        "SELECT /*+ LOOKUP('table'='n', 'async'='false') */ orders.customer, orders.amount, n.name, m.name FROM orders "
        "{0} names FOR SYSTEM_TIME AS OF orders.arrived AS n ON orders.customer = n.customer "
        "JOIN names FOR SYSTEM_TIME AS OF orders.arrived AS m ON orders.item = m.customer"
    )
    old, new = (script(SILENT, query=twice.format(join)) for join in ("JOIN", "LEFT JOIN"))
    assert check(old, new, "flink").outcome is Outcome.UNKNOWN


DECLARED = "name STRING, level BIGINT"
INTO_KAFKA = "'connector' = 'kafka', 'topic' = 'u', 'format' = 'json'"


def declared(options: str, declaration: str, sink: str = "'connector' = 'print'", **changes: str) -> Side:
    text = script(options, **changes).replace(DECLARED, declaration).replace("'connector' = 'print'", sink)
    return Side(text, engine="flink")


@pytest.mark.parametrize("options", [HBASE, OWN, SILENT, JDBC])
@pytest.mark.parametrize(
    "columns",
    [
        "name STRING, level BIGINT, note STRING",
        "name STRING",
        "name VARCHAR(9), level STRING",
        "level BIGINT, name STRING",
    ],
)
@pytest.mark.parametrize("sink", ["'connector' = 'print'", INTO_KAFKA])
def test_what_a_table_declares_that_is_looked_up_is_in_no_state(options: str, columns: str, sink: str) -> None:
    """The last column that is put out is one that came in: a Calc stands behind the lookup for certain."""
    shown = {"columns": "names.name, orders.item"}
    report = check(declared(options, DECLARED, sink, **shown), declared(options, columns, sink, **shown))
    assert report.outcome is Outcome.COMPATIBLE, report.findings


@pytest.mark.parametrize("options", [HBASE, OWN, SILENT])
def test_rows_that_wait_go_on_under_another_key(options: str) -> None:
    shown = {"columns": "names.name, orders.item"}
    old, new = (declared(options, DECLARED, INTO_KAFKA, **shown, **key) for key in ({}, KEY))
    assert check(old, new).outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize("change", [ROW, KEY, TYPE], ids=["column", "key", "type"])
def test_another_row_may_come_in_where_nothing_says_how_a_lookup_asks(change: dict[str, str]) -> None:
    assert judged(SILENT, **change).outcome is Outcome.UNKNOWN


def test_another_connector_may_ask_in_another_way() -> None:
    old = declared(SILENT, DECLARED)
    for options in (SILENT.replace("my", "your"), OWN, OWN.replace("true", "false")):
        assert check(old, declared(options, "name STRING")).outcome is Outcome.UNKNOWN


def test_a_writer_may_get_another_id_where_a_calc_is_not_certain() -> None:
    """Every column as the lookup hands it on: what is looked up decides whether something stands behind it."""
    old, new = (declared(JDBC, columns, INTO_KAFKA) for columns in (DECLARED, "name STRING"))
    assert check(old, new).outcome is Outcome.UNKNOWN


# --- in front of a sink that keeps something --------------------------------------------------------------------------

WRITTEN = """\
CREATE TABLE orders (customer STRING, amount BIGINT, item STRING, arrived AS PROCTIME())
WITH ('connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'k:9092', 'format' = 'json');
CREATE TABLE names (customer STRING, name STRING, level BIGINT) WITH ({options});
CREATE TABLE out_1 (a STRING, b BIGINT, c STRING, d STRING)
WITH ('connector' = 'kafka', 'topic' = 'u', 'properties.bootstrap.servers' = 'k:9092', 'format' = 'json');
INSERT INTO out_1
SELECT {columns}
FROM orders LEFT JOIN names FOR SYSTEM_TIME AS OF orders.arrived ON {key} = names.customer
WHERE orders.item {where};
"""
ALL = "orders.customer, orders.amount, names.name, orders.item"


def written(options: str = HBASE, columns: str = ALL, key: str = "orders.customer", where: str = "IS NOT NULL") -> str:
    return WRITTEN.format(options=options, columns=columns, key=key, where=where)


@pytest.mark.parametrize("options", [HBASE, JDBC])
@pytest.mark.parametrize(
    "change",
    [
        {"key": "orders.item"},
        {"where": "<> 'x'"},
        {"columns": ALL.replace("names.name", "CAST(names.level AS STRING)")},
    ],
    ids=["key", "condition", "column"],
)
def test_the_same_rows_wait_in_front_of_a_writer(options: str, change: dict[str, str]) -> None:
    assert check(written(options), written(options, **change), "flink").outcome is Outcome.COMPATIBLE


KEYS = "SET 'table.exec.async-lookup.key-ordered-enabled' = 'true';\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (written(), written(columns=ALL.replace("orders.item", "'x'"))),  # the waiting rows are the same, the Calc is
        (written(), written(key="UPPER(orders.item)")),  # a computed key waits too
        (KEYS + written(), KEYS + written(key="orders.item")),  # spread by key in front
        (written(columns="orders.customer, orders.amount, orders.item, names.name"),
         written(columns="orders.customer, orders.amount, orders.item, names.name", key="orders.item")),
    ],
    ids=["another front", "computed", "by key", "a Calc that may stand"],
)  # fmt: skip
def test_what_may_wait_otherwise_in_front_of_a_writer_is_not_compatible(old: str, new: str) -> None:
    assert check(old, new, "flink").outcome is not Outcome.COMPATIBLE


@pytest.mark.parametrize(("old", "new"), [(HBASE, JDBC), (HBASE, SILENT)])
def test_a_queue_that_goes_is_not_compatible(old: str, new: str) -> None:
    assert check(written(old), written(new), "flink").outcome is not Outcome.COMPATIBLE


# --- above windows ----------------------------------------------------------------------------------------------------

ABOVE = """\
CREATE TABLE orders (customer STRING, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'k:9092', 'format' = 'json');
CREATE TABLE names (customer STRING, name STRING, level BIGINT) WITH ({options});
CREATE TABLE out_1 (a STRING, b BIGINT, c STRING, PRIMARY KEY (a) NOT ENFORCED) WITH ({sink});
INSERT INTO out_1
SELECT w.customer, {column}, names.name
FROM (SELECT customer, SUM(amount) AS total, PROCTIME() AS pt {windows}) AS w
{join} names FOR SYSTEM_TIME AS OF w.pt ON {key} = names.customer
ON CONFLICT DO DEDUPLICATE;
"""
BY_WINDOW = (
    "FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY customer, window_start, window_end"
)


def above(**changes: str) -> str:
    parts = {"options": JDBC, "sink": JDBC, "column": "w.total", "join": "LEFT JOIN", "key": "w.customer"}
    return ABOVE.format(**parts | {"windows": BY_WINDOW} | changes)


OVER_WINDOWS = [{"column": "w.total * 2"}, {"join": "JOIN"}, {"key": "UPPER(w.customer)"}]


@pytest.mark.parametrize("change", OVER_WINDOWS, ids=["output", "join", "key"])
def test_a_lookup_above_windows_keeps_nothing(change: dict[str, str]) -> None:
    assert check(above(), above(**change), "flink").outcome is Outcome.COMPATIBLE


@pytest.mark.parametrize("change", OVER_WINDOWS, ids=["output", "join", "key"])
@pytest.mark.parametrize(
    "both",
    [
        {"options": HBASE},
        {"options": SILENT},
        {"sink": "'connector' = 'own-sink'"},
        {"windows": "FROM orders GROUP BY customer"},
    ],
    ids=["asynchronous", "silent", "another sink", "no window"],
)
def test_what_may_be_kept_above_windows_is_not_compatible(both: dict[str, str], change: dict[str, str]) -> None:
    assert check(above(**both), above(**both, **change), "flink").outcome is not Outcome.COMPATIBLE


def test_a_function_that_nobody_declares_may_be_an_operator_above_windows() -> None:
    report = check(above(), above(key="MY_NAME(w.customer)"), "flink")
    assert report.outcome is Outcome.UNKNOWN
    assert "my_name" in report.deciding[0].source
