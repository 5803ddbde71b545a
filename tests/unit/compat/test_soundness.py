"""Changes that look small and are not: none is ever called compatible where it says so here."""
# ruff: noqa: E501 -- one pair a line

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from airflow_flinkcompat.compat import Outcome, Side, check

TABLES = """\
CREATE TABLE orders (
  id BIGINT, customer STRING, item STRING, region STRING, amount DECIMAL(10, 2), quantity INT,
  line ROW<code STRING, note STRING>, tags ARRAY<STRING>, placed TIMESTAMP(3), shipped TIMESTAMP(3),
  gross AS amount * quantity, arrived AS PROCTIME(), origin STRING METADATA FROM 'topic' VIRTUAL,
  WATERMARK FOR placed AS placed - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'orders');
CREATE TABLE refunds (id BIGINT, customer STRING, item STRING, placed TIMESTAMP(3), WATERMARK FOR placed AS placed)
  WITH ('connector' = 'kafka', 'topic' = 'refunds');
CREATE TABLE totals (customer STRING, total STRING) WITH ('connector' = 'print');
CREATE TABLE others (customer STRING, total STRING) WITH ('connector' = 'print');
"""
WINDOW = "TABLE(TUMBLE(TABLE {0}, DESCRIPTOR(placed), INTERVAL '10' MINUTE))"
ORDERS = WINDOW.format("orders")
KEYS = "GROUP BY customer, window_start, window_end"


def windowed(select: str, source: str = ORDERS, rest: str = KEYS) -> str:
    return f"INSERT INTO totals SELECT {select} FROM {source} {rest};\n"


BASE = windowed("customer, CAST(SUM(amount) AS STRING)")


@dataclass(frozen=True)
class Pair:
    """Two scripts behind :data:`TABLES`; ``engines`` on which the change must not be compatible."""

    id: str
    old: str
    new: str
    engines: tuple[str, ...] = ("vvr", "flink")
    settings: dict[str, str] = field(default_factory=dict)


def replaced(name: str, text: str, old: str, new: str, *engines: str, settings: dict[str, str] | None = None) -> Pair:
    changed = text.replace(old, new)
    assert changed != text, name
    return Pair(name, text, changed, engines or ("vvr", "flink"), settings or {})


VIEW = "CREATE TEMPORARY VIEW recent AS SELECT * FROM orders WHERE quantity > 1;\n"
OF_VIEW = windowed("customer, CAST(SUM(amount) AS STRING)", WINDOW.format("recent"))
SESSIONS = "TABLE(SESSION(TABLE orders PARTITION BY customer, DESCRIPTOR(placed), INTERVAL '5' MINUTE))"
JOIN = "INSERT INTO totals SELECT a.customer, b.item FROM orders AS a JOIN orders AS b ON a.id = b.id;\n"
UNION = "INSERT INTO totals SELECT customer, item FROM orders UNION ALL SELECT customer, item FROM refunds;\n"
MATCH = """\
INSERT INTO totals SELECT m.customer, CAST(m.peak AS STRING)
FROM (SELECT customer, amount AS x, quantity AS y, placed FROM orders) MATCH_RECOGNIZE (
  PARTITION BY customer ORDER BY placed MEASURES LAST(U.x) AS peak ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (D U+) DEFINE U AS U.x > 1, D AS D.y < 5) AS m;
"""
RANKED = (
    "INSERT INTO totals SELECT customer, item FROM (SELECT *, ROW_NUMBER() OVER "
    "(PARTITION BY customer ORDER BY amount DESC) AS rn FROM orders) WHERE rn <= 3;\n"
)
SET = "EXECUTE STATEMENT SET BEGIN\n{0}{1}END;\n"
SECOND = BASE.replace("INTO totals", "INTO others")
LEGACY = (
    "INSERT INTO totals SELECT customer, CAST(SUM(amount) AS STRING){0} FROM orders "
    "GROUP BY customer, TUMBLE(placed, INTERVAL '1' MINUTE);\n"
)
FUNCTION = "CREATE TEMPORARY FUNCTION {0} AS 'com.example.{1}';\n"
TIDY = windowed("customer, MAX(tidy(item))")

SHOUTED = windowed("customer, MAX(UPPER(item))")
SHADOW = "CREATE TEMPORARY SYSTEM FUNCTION upper AS 'com.example.Upper';\n"

LATE = "CREATE TABLE late (customer STRING, item STRING) WITH ('connector' = 'print');\n"
INTO_LATE = "INSERT INTO late SELECT customer, item FROM orders;\n"

PAIRS = [
    # values
    replaced("type of a literal", windowed("customer, CAST(SUM(amount * 2) AS STRING)"), "* 2", "* 2.0"),
    replaced("scale of a literal", windowed("customer, CAST(SUM(amount * 2.0) AS STRING)"), "* 2.0", "* 2.00"),
    replaced("target of a CAST", windowed("customer, MAX(CAST(amount AS INT))"), "AS INT", "AS BIGINT"),
    replaced("TRY_CAST", windowed("customer, MAX(CAST(item AS INT))"), "MAX(CAST", "MAX(TRY_CAST"),
    replaced("field of a row", windowed("customer, MAX(line.code)"), "line.code", "line.note"),
    replaced("index of an array", windowed("customer, MAX(tags[1])"), "tags[1]", "tags[2]"),
    replaced("operands", windowed("customer, MAX(amount - quantity)"), "amount - quantity", "quantity - amount"),
    replaced("NOT LIKE", windowed("customer, MAX(item)", rest="WHERE item NOT LIKE 'a%' " + KEYS), "NOT LIKE", "LIKE"),
    replaced("separator", windowed("customer, LISTAGG(item, ',')"), "','", "';'"),
    replaced("FILTER", windowed("customer, MAX(item) FILTER (WHERE quantity > 1)"), "> 1", "> 2"),
    replaced("case of a name", windowed("customer, MAX(item)"), "MAX(item)", "MAX(ITEM)"),
    # where a name leads
    replaced("what a view filters", VIEW + OF_VIEW, "quantity > 1", "quantity > 2"),
    Pair("a view that shadows a table", OF_VIEW.replace("recent", "orders"), VIEW.replace("recent", "`orders`") + OF_VIEW.replace("recent", "orders")),
    Pair("a view defined anew", VIEW + OF_VIEW, VIEW + VIEW.replace("> 1", "> 3").replace("TEMPORARY", "OR REPLACE TEMPORARY") + OF_VIEW),
    Pair("USE DATABASE", windowed("customer, item", "orders", ""), "USE elsewhere;\n" + windowed("customer, item", "orders", "")),
    Pair("USE moved", "USE a;\n" + BASE + "USE b;\n" + SECOND, "USE a;\n" + SECOND + "USE b;\n" + BASE),
    Pair("computed column", BASE.replace("SUM(amount)", "SUM(gross)"), BASE.replace("SUM(amount)", "SUM(amount)")),
    Pair("metadata column", windowed("customer, MAX(origin)"), windowed("customer, MAX(region)")),
    replaced("sides of a self join", JOIN, "SELECT a.customer, b.item", "SELECT b.customer, a.item"),
    replaced("branches of a union", UNION, "SELECT customer, item FROM orders UNION ALL SELECT customer, item FROM refunds", "SELECT customer, item FROM refunds UNION ALL SELECT customer, item FROM orders", "flink"),
    replaced("names a pattern reads", MATCH, "amount AS x, quantity AS y", "amount AS y, quantity AS x"),
    # functions
    Pair("class of a function", FUNCTION.format("tidy", "Tidy") + TIDY, FUNCTION.format("tidy", "Tidier") + TIDY),
    Pair("class of a function of another database", FUNCTION.format("lib.tidy", "Tidy") + TIDY, FUNCTION.format("lib.tidy", "Tidier") + TIDY),
    Pair("function of another catalog", windowed("customer, lake.lib.tidy(item)", "orders", ""), windowed("customer, sea.lib.tidy(item)", "orders", "")),
    Pair("function declared twice", FUNCTION.format("tidy", "Tidy") + TIDY + FUNCTION.format("tidy", "Last"), FUNCTION.format("tidy", "Tidier") + TIDY + FUNCTION.format("tidy", "Last")),
    # structure
    replaced("window over a window", windowed("customer, CAST(SUM(amount) AS STRING)", "(SELECT * FROM " + ORDERS + ")"), "'10' MINUTE", "'5' MINUTE"),
    Pair("DISTINCT in a subquery", windowed("customer, item", "(SELECT customer, item FROM orders)", ""), windowed("customer, item", "(SELECT DISTINCT customer, item FROM orders)", "")),
    Pair("LIMIT in a subquery", windowed("customer, item", "(SELECT customer, item FROM orders)", ""), windowed("customer, item", "(SELECT customer, item FROM orders LIMIT 5)", "")),
    replaced("N of a Top-N", RANKED, "rn <= 3", "rn <= 2"),
    replaced("order of a Top-N", RANKED, "DESC", "ASC"),
    Pair("WHERE instead of HAVING", windowed("customer, CAST(SUM(amount) AS STRING)", rest=KEYS + " HAVING SUM(amount) > 1"), windowed("customer, CAST(SUM(amount) AS STRING)", rest="WHERE amount > 1 " + KEYS)),
    Pair("filter behind a session window", windowed("customer, item", "(SELECT * FROM TABLE(SESSION((SELECT * FROM orders WHERE quantity > 1) PARTITION BY customer, DESCRIPTOR(placed), INTERVAL '5' MINUTE)))", ""), windowed("customer, item", "(SELECT * FROM " + SESSIONS + " WHERE quantity > 1)", "")),
    Pair("number of literal rows", "INSERT INTO totals SELECT 'a', 'b' FROM (VALUES (1)) AS v(x);\n", "INSERT INTO totals SELECT 'a', 'b' FROM (VALUES (1), (1)) AS v(x);\n"),
    Pair("key repeated under an alias", windowed("customer, CAST(COUNT(*) AS STRING)", "(SELECT customer, window_start, window_end FROM " + ORDERS + ")"), windowed("customer, CAST(COUNT(*) AS STRING)", "(SELECT customer, customer AS again, window_start, window_end FROM " + ORDERS + ")", "GROUP BY customer, again, window_start, window_end")),
    Pair("time attribute", BASE, BASE.replace("DESCRIPTOR(placed)", "DESCRIPTOR(arrived)")),
    # hints, settings and statements
    Pair("state TTL hint", JOIN, JOIN.replace("SELECT a", "SELECT /*+ STATE_TTL('a' = '1d') */ a"), ("vvr",)),
    Pair("table hint", BASE, BASE.replace("TABLE orders", "TABLE orders /*+ OPTIONS('topic' = 'purchases') */")),
    Pair("time zone", BASE, "SET 'table.local-time-zone' = 'Asia/Tokyo';\n" + BASE),
    Pair("RESET", "SET 'table.exec.mini-batch.enabled' = 'true';\n" + BASE, "SET 'table.exec.mini-batch.enabled' = 'true';\nRESET;\n" + BASE),
    Pair("SET behind the first query", "SET 'a.b' = 'c';\n" + BASE + SECOND, BASE + "SET 'a.b' = 'c';\n" + SECOND),
    Pair("ALTER TABLE moved", BASE + "ALTER TABLE orders SET ('topic' = 'x');\n" + SECOND, BASE + SECOND + "ALTER TABLE orders SET ('topic' = 'x');\n"),
    Pair("an INSERT doubled", SET.format(BASE, ""), SET.format(BASE, BASE), ("flink",)),
    Pair("one statement set becomes two", SET.format(BASE, SECOND), SET.format(BASE, "") + SET.format(SECOND, "")),
    Pair("two INSERTs into one sink", SET.format(BASE, BASE.replace("SUM", "MAX")), SET.format(BASE.replace("SUM", "MIN"), BASE.replace("SUM", "COUNT"))),
    # only one engine
    Pair("one of two queries that share an aggregation", SET.format(BASE, SECOND), SET.format(BASE, SECOND.replace("SELECT customer,", "SELECT UPPER(customer),")), ("flink",)),
    Pair("ids from a counter", BASE, BASE, ("flink",), {"table.exec.uid.generation": "ALWAYS"}),
    replaced("parallelism of a sink", "CREATE TABLE s (a STRING, b STRING) WITH ('connector' = 'print', 'sink.parallelism' = '1');\n" + BASE.replace("INTO totals", "INTO s"), "= '1')", "= '2')", "flink"),
    replaced("NOT NULL in a sink behind a running aggregation", "CREATE TABLE s (a STRING, b STRING) WITH ('connector' = 'print');\nINSERT INTO s SELECT customer, CAST(SUM(amount) AS STRING) FROM orders GROUP BY customer;\n", "TABLE s (a STRING", "TABLE s (a STRING NOT NULL", "flink"),
    Pair("early fire kept on a group window", LEGACY.format(""), LEGACY.format("").replace("SUM(amount)", "SUM(amount) + 1"), ("vvr",), {"table.exec.emit.early-fire.enabled": "true"}),
    Pair("sink that is checked", BASE, SECOND, ("vvr",), {"table.optimizer.state-compatibility.ignore-sink": "false"}),
    Pair("a system function takes a built-in's name", SHOUTED, SHADOW + SHOUTED),
    Pair("a built-in gets its name back", SHADOW + SHOUTED, SHOUTED),
    Pair("a function of a catalog is declared by the script", TIDY, FUNCTION.format("tidy", "Tidy") + TIDY),
    Pair("a sink is declared after its use", LATE + INTO_LATE, INTO_LATE + LATE),
    Pair("a function is declared after its call", FUNCTION.format("tidy", "Tidy") + TIDY, TIDY + FUNCTION.format("tidy", "Tidy")),
]  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
def test_is_not_called_compatible(pair: Pair) -> None:
    for engine in pair.engines:
        old, new = (Side(TABLES + text, pair.settings, engine=engine) for text in (pair.old, pair.new))
        for report in (check(old, new), check(new, old)):
            assert report.outcome is not Outcome.COMPATIBLE, (engine, [f.message for f in report.findings])


DECLARATIONS = {
    "type of a column": ("amount DECIMAL(10, 2)", "amount DECIMAL(12, 2)"),
    "computed column": ("amount * quantity", "amount * quantity * 2"),
    "watermark of another kind": ("placed - INTERVAL '5' SECOND", "LEAST(placed, shipped)"),
    "watermark removed": (",\n  WATERMARK FOR placed AS placed - INTERVAL '5' SECOND", ""),
    "topic": ("'topic' = 'orders'", "'topic' = 'orders2'"),
    "primary key": ("id BIGINT, customer STRING, item STRING, region", "id BIGINT PRIMARY KEY NOT ENFORCED, customer STRING, item STRING, region"),
    "metadata key": ("METADATA FROM 'topic'", "METADATA FROM 'key'"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(DECLARATIONS))
def test_a_source_declared_differently_is_not_called_compatible_on_flink(name: str) -> None:
    changed = TABLES.replace(*DECLARATIONS[name], 1)
    assert changed != TABLES
    query = windowed("customer, CAST(SUM(gross) AS STRING) || MAX(origin)")
    report = check(Side(TABLES + query, engine="flink"), Side(changed + query, engine="flink"))
    assert report.outcome is not Outcome.COMPATIBLE, [f.message for f in report.findings]


@pytest.mark.parametrize("key", ["scan.incremental.snapshot.chunk.key-column", "cdcMode", "changelog-mode", "format"])
def test_conditional_source_options_are_unknown_on_vvr(key: str) -> None:
    value = "debezium-json" if key == "format" else "x"
    changed = TABLES.replace("'topic' = 'orders'", f"'topic' = 'orders', '{key}' = '{value}'")
    report = check(Side(TABLES + BASE), Side(changed + BASE))
    assert report.outcome is Outcome.UNKNOWN
    plain = TABLES.replace("'topic' = 'orders'", "'topic' = 'orders', 'scan.startup.mode' = 'latest-offset'")
    assert check(Side(TABLES + BASE), Side(plain + BASE)).outcome is Outcome.COMPATIBLE


@pytest.mark.slow
def test_a_deep_expression_is_unknown_and_no_error() -> None:
    deep = "SELECT " + " + ".join(["a"] * 3000) + " FROM t;"
    for engine in ("vvr", "flink"):
        report = check(deep, deep.replace("a +", "b +", 1), engine=engine)
        assert report.outcome is Outcome.UNKNOWN


def test_a_note_where_a_field_names_another_window() -> None:
    old = LEGACY.format(" || CAST(TUMBLE_START(placed, INTERVAL '1' MINUTE) AS STRING)")
    new = old.replace("START(placed, INTERVAL '1'", "START(placed, INTERVAL '2'")
    on_vvr = check(Side(TABLES + old), Side(TABLES + new))
    assert (on_vvr.outcome, {f.rule for f in on_vvr.findings}) == (Outcome.COMPATIBLE, {"window-field-mismatch"})
    on_flink = check(Side(TABLES + old, engine="flink"), Side(TABLES + new, engine="flink"))
    assert on_flink.outcome is Outcome.INCOMPATIBLE
