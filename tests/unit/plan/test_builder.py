"""From a script to its plan: names, scopes, declarations, windows, keys, time attributes and types."""
# ruff: noqa: E501 -- one case a line

from __future__ import annotations

import pytest

from airflow_flinkcompat.plan import FunctionDeclaration, Program, build_program
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    GroupWindowAggregate,
    Node,
    Opaque,
    Project,
    Scan,
    Window,
    WindowAggregate,
    WindowAssign,
    WindowField,
    WindowKind,
    walk_nodes,
)
from airflow_flinkcompat.plan.types import TimeAttribute
from airflow_flinkcompat.sql import parse_script

TABLES = """\
CREATE TABLE orders (
  customer STRING, amount DECIMAL(10, 2), quantity INT NOT NULL, line ROW<code STRING, tags ARRAY<STRING>>,
  placed TIMESTAMP(3), gross AS amount * quantity, arrived AS PROCTIME(), topic STRING METADATA VIRTUAL,
  sent TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  WATERMARK FOR placed AS placed - INTERVAL '5' SECOND, PRIMARY KEY (customer) NOT ENFORCED
) PARTITIONED BY (customer) WITH ('connector' = 'kafka', 'topic' = 'orders');
CREATE TABLE refunds (customer STRING, amount DECIMAL(10, 2)) WITH ('connector' = 'kafka', 'topic' = 'refunds');
"""
MINUTE = 60_000


def program(sql: str, **kwargs: object) -> Program:
    return build_program(parse_script(TABLES + sql), **kwargs)  # type: ignore[arg-type]


def plan(sql: str) -> Node:
    """The plan of the script's only query."""
    built = program(sql)
    assert not built.problems
    (pipeline,) = built.pipelines
    return pipeline.sink.input


def found(node: Node, kind: type) -> list[Node]:
    return [each for each in walk_nodes(node) if isinstance(each, kind)]


def columns(sql: str) -> list[tuple[str, str]]:
    return [(column.name, str(column.type)) for column in plan(sql).schema]


# -------------------------------------------------------------------------------------------- declarations
def test_a_table_in_all_its_parts() -> None:
    orders, refunds = program("SELECT 1 AS x;").tables
    assert (orders.name, refunds.name) == ("orders", "refunds")
    assert [c.name for c in orders.columns] == [
        "customer", "amount", "quantity", "line", "placed", "gross", "arrived", "topic", "sent",
    ]  # fmt: skip
    assert orders.physical == ("customer", "amount", "quantity", "line", "placed")
    assert orders.metadata == (("topic", "topic", True), ("sent", "timestamp", False))
    assert [name for name, _ in orders.computed] == ["gross", "arrived"]
    assert orders.watermark is not None
    assert orders.watermark.column == "placed"
    assert orders.primary_key == orders.partitioned_by == ("customer",)
    assert orders.option("topic") == "orders"
    clocks = {c.name: c.time_attribute for c in orders.columns if c.time_attribute is not None}
    assert clocks == {"placed": TimeAttribute.ROWTIME, "arrived": TimeAttribute.PROCTIME}
    assert {c.name: str(c.type) for c in orders.columns}["quantity"] == "INT NOT NULL"


def test_like_takes_over_and_overrides() -> None:
    copy = program("CREATE TABLE copy (extra INT) WITH ('topic' = 'copy') LIKE orders; SELECT 1 AS x;").tables[0]
    assert copy.name == "copy"
    assert copy.physical[-1] == "extra"
    assert (copy.option("connector"), copy.option("topic")) == ("kafka", "copy")
    assert copy.watermark is not None
    bare = program("CREATE TABLE bare LIKE orders (EXCLUDING OPTIONS EXCLUDING WATERMARKS); SELECT 1 AS x;").tables[0]
    assert (bare.options, bare.watermark) == ((), None)


def test_types_that_are_kept_as_written_differ() -> None:
    first, second = (
        program(f"CREATE TABLE t (a {kind}) WITH ('connector' = 'x'); SELECT 1 AS x;").tables[2].columns[0].type
        for kind in ("INTERVAL DAY", "INTERVAL YEAR")
    )
    assert first != second
    assert not first.is_known


def test_a_name_that_is_taken() -> None:
    redeclared = program("CREATE TABLE refunds (a INT) WITH ('connector' = 'print'); SELECT a FROM refunds;")
    assert redeclared.tables[1].physical == ("a",)
    assert [fact.kind for fact in redeclared.other_statements] == ["replaced"]
    kept = program(
        "CREATE TABLE IF NOT EXISTS refunds (a INT) WITH ('connector' = 'print'); SELECT amount FROM refunds;"
    )
    assert kept.tables[1].physical == ("customer", "amount")
    assert [fact.kind for fact in kept.other_statements] == ["not created: exists", "kept"]


def test_settings_count_from_where_they_stand() -> None:
    built = program(
        "SET 'a' = '1'; SELECT customer FROM orders; SET 'a' = '2'; RESET 'b'; SELECT amount FROM orders; RESET; "
        "SELECT placed FROM orders;",
        settings={"b": "0"},
    )
    assert [dict(pipeline.settings) for pipeline in built.pipelines] == [{"a": "1", "b": "0"}, {"a": "2"}, {}]


def test_statement_sets_are_numbered() -> None:
    built = program(
        "CREATE TABLE s (a STRING) WITH ('connector' = 'print');"
        "INSERT INTO s SELECT customer FROM orders;"
        "EXECUTE STATEMENT SET BEGIN INSERT INTO s SELECT 'a'; INSERT INTO s SELECT 'b'; END;"
        "BEGIN STATEMENT SET; INSERT INTO s SELECT 'c'; END;"
    )
    assert [pipeline.statement_set for pipeline in built.pipelines] == [None, 0, 0, 1]


# --------------------------------------------------------------------------------------------------- names
def test_use_changes_what_a_name_means() -> None:
    built = build_program(
        parse_script(
            "SELECT a FROM t; USE CATALOG c; SELECT a FROM t; USE d; SELECT a FROM t; USE e.f; SELECT a FROM x.t;"
        )
    )
    paths = [found(pipeline.sink.input, Scan)[0].table.path for pipeline in built.pipelines]  # type: ignore[union-attr]
    assert paths == [("", "", "t"), ("c", "", "t"), ("c", "d", "t"), ("e", "x", "t")]
    names = [found(pipeline.sink.input, Scan)[0].table.name for pipeline in built.pipelines]  # type: ignore[union-attr]
    assert names == ["t", "c..t", "c.d.t", "e.x.t"]


def test_a_view_is_bound_where_it_is_created() -> None:
    built = program(
        "CREATE TEMPORARY VIEW v AS SELECT customer AS c FROM orders;"
        "CREATE TEMPORARY VIEW w AS SELECT c FROM v;"
        "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT customer AS c FROM refunds;"
        "SELECT c FROM w; SELECT c FROM v;"
    )
    read = [found(pipeline.sink.input, Scan)[0].table.name for pipeline in built.pipelines]  # type: ignore[union-attr]
    assert read == ["orders", "refunds"]


def test_a_cte_hides_a_table_and_sees_the_ones_before_it() -> None:
    node = plan("WITH refunds AS (SELECT customer AS c FROM orders), x (y) AS (SELECT c FROM refunds) SELECT y FROM x;")
    assert [scan.table.name for scan in found(node, Scan)] == ["orders"]  # type: ignore[attr-defined]


def test_names_are_case_sensitive_and_functions_are_not() -> None:
    built = program("SELECT Customer FROM orders;")
    (opaque,) = found(built.pipelines[0].sink.input, Opaque)
    assert "Customer" in opaque.reason  # type: ignore[attr-defined]
    assert plan("SELECT upper(customer) AS x FROM orders;") == plan("SELECT UPPER(customer) AS x FROM orders;")


@pytest.mark.parametrize(
    ("select", "names"),
    [
        ("*", ["customer", "amount", "customer", "amount"]),
        ("b.*", ["customer", "amount"]),
        ("a.amount, b.amount AS other", ["amount", "other"]),
    ],
)
def test_stars_and_qualifiers(select: str, names: list[str]) -> None:
    node = plan(f"SELECT {select} FROM refunds AS a JOIN refunds AS b ON a.customer = b.customer;")
    assert [column.name for column in node.schema] == names


PATTERN = (
    "SELECT * FROM orders MATCH_RECOGNIZE (ORDER BY placed MEASURES {} AS m PATTERN (S U) SUBSET V = (S, U) "
    "DEFINE U AS U.amount > LAST(S.amount, 1))"
)


@pytest.mark.parametrize("measure", ["U.amount", "V.amount", "amount", "MATCH_ROWTIME()", "COUNT(*)"])
def test_a_pattern_names_its_variables_and_the_columns_of_its_input(measure: str) -> None:
    (node,) = found(program(PATTERN.format(measure) + ";").pipelines[0].sink.input, Opaque)
    assert isinstance(node, Opaque)
    assert node.kind == "MATCH_RECOGNIZE"


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SELECT customer FROM refunds AS a JOIN refunds AS b ON a.customer = b.customer", "ambiguous-name"),
        ("SELECT nothing FROM refunds", "unknown-column"),
        ("SELECT * FROM nowhere", "undeclared-table"),
        (PATTERN.format("U.nothing"), "unknown-column"),
        (PATTERN.format("nothing"), "unknown-column"),
        (PATTERN.format("X.customer"), "unknown-column"),
        ("SELECT amount FROM orders GROUP BY customer", "invalid-query"),
        ("SELECT customer FROM orders FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01 00:00:00'", "construct"),
        ("SELECT customer FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(nothing), INTERVAL '1' DAY))", "unknown-column"),
        ("SELECT customer FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(placed)))", "window"),
        ("SELECT customer FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(placed), INTERVAL '1' MONTH))", "window"),
        ("SELECT customer FROM orders WHERE customer IN (SELECT customer FROM refunds)", "subquery"),
        ("SELECT INTERVAL 'x' DAY TO SECOND AS i FROM orders", "construct"),
        ("SELECT x FROM (VALUES (1, 2), (3)) AS v(x, y)", "invalid-query"),
        ("SELECT INTERVAL 'NaN' DAY AS i FROM orders", "construct"),
        ("SELECT INTERVAL '1.5' MINUTE AS i FROM orders", "construct"),
        ("SELECT 1e400 AS x FROM orders", "construct"),
        (
            "SELECT TUMBLE_START(nowhere, INTERVAL '1' HOUR) FROM orders GROUP BY TUMBLE(placed, INTERVAL '1' HOUR)",
            "unknown-column",
        ),
        (
            "SELECT COUNT(*) FROM orders GROUP BY CUBE(" + ", ".join(f"amount + {i}" for i in range(40)) + ")",
            "too-large",
        ),
        ("SELECT COUNT(*) FROM orders GROUP BY " + ", ".join(["CUBE(amount, customer)"] * 12), "too-large"),
    ],
)
def test_what_cannot_be_taken_apart_is_kept_whole_with_its_reason(query: str, error: str) -> None:
    built = program(query + ";")
    (opaque,) = found(built.pipelines[0].sink.input, Opaque)
    assert isinstance(opaque, Opaque)
    assert opaque.error == error
    assert opaque.span is not None


def test_an_undeclared_table_gives_the_columns_that_are_named() -> None:
    node = build_program(
        parse_script(
            "SELECT k, SUM(v) AS s FROM TABLE(TUMBLE(TABLE nowhere, DESCRIPTOR(t), INTERVAL '1' MINUTE)) "
            "GROUP BY k, window_start, window_end;"
        )
    ).pipelines[0].sink.input  # fmt: skip
    (scan,) = found(node, Scan)
    assert isinstance(scan, Scan)
    assert not scan.table.declared
    assert {"k", "v", "t"} <= {column.name for column in scan.schema}
    assert found(node, WindowAggregate)


def test_functions_of_the_caller_and_of_the_script() -> None:
    declared = (FunctionDeclaration("Weigh", "aggregate", "java"),)
    built = program("SELECT customer, weigh(amount) AS w FROM orders GROUP BY customer;", functions=declared)
    (aggregate,) = found(built.pipelines[0].sink.input, Aggregate)
    assert isinstance(aggregate, Aggregate)
    assert [(call.function, call.language) for call in aggregate.aggregates] == [("weigh", "java")]
    built = program(
        "CREATE TEMPORARY FUNCTION weigh AS 'm.w' LANGUAGE PYTHON;"
        "SELECT customer, weigh(amount) AS w FROM orders GROUP BY customer;",
        functions=declared,
    )
    (aggregate,) = found(built.pipelines[0].sink.input, Aggregate)
    assert [call.language for call in aggregate.aggregates] == ["python"]  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------- windows
M = "INTERVAL '{0}' MINUTE"
WINDOWS = {
    "TUMBLE(TABLE orders, DESCRIPTOR(placed), INTERVAL '10' MINUTE)": Window(WindowKind.TUMBLE, size=10 * MINUTE),
    "TUMBLE(TABLE orders, DESCRIPTOR(placed), INTERVAL '600' SECOND(3), INTERVAL '1' MINUTE)": Window(
        WindowKind.TUMBLE, size=10 * MINUTE, offset=MINUTE
    ),
    "HOP(TABLE orders, DESCRIPTOR(placed), INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)": Window(
        WindowKind.HOP, size=10 * MINUTE, slide=5 * MINUTE
    ),
    "HOP(SIZE => INTERVAL '10' MINUTE, DATA => TABLE orders, TIMECOL => DESCRIPTOR(placed), "
    "SLIDE => INTERVAL '5' MINUTE)": Window(WindowKind.HOP, size=10 * MINUTE, slide=5 * MINUTE),
    "CUMULATE(TABLE orders, DESCRIPTOR(placed), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)": Window(
        WindowKind.CUMULATE, size=60 * MINUTE, slide=MINUTE
    ),
    "SESSION(TABLE orders PARTITION BY customer, DESCRIPTOR(placed), INTERVAL '5' MINUTE)": Window(
        WindowKind.SESSION, gap=5 * MINUTE
    ),
    "TUMBLE(DATA => TABLE orders, TIMECOL => DESCRIPTOR(placed), SIZE => INTERVAL '1' DAY, "
    "`OFFSET` => INTERVAL -'8' HOUR)": Window(WindowKind.TUMBLE, size=1440 * MINUTE, offset=-480 * MINUTE),
}


@pytest.mark.parametrize("call", list(WINDOWS))
def test_windows(call: str) -> None:
    node = plan(f"SELECT * FROM TABLE({call});")
    (assign,) = found(node, WindowAssign)
    assert isinstance(assign, WindowAssign)
    assert assign.window == WINDOWS[call]
    assert assign.time_attribute is TimeAttribute.ROWTIME
    assert [c.name for c in assign.schema[-3:]] == ["window_start", "window_end", "window_time"]
    # After a windowing function the original time column is no time attribute any more (measured).
    clocks = {c.name: c.time_attribute for c in assign.schema if c.time_attribute is not None}
    assert clocks == {"window_time": TimeAttribute.ROWTIME, "arrived": TimeAttribute.PROCTIME}


@pytest.mark.parametrize(("offset", "same"), [(4, 4), (-6, 4), (14, 4), (24, 4), (0, 0), (10, 0)])
def test_an_offset_is_an_assignment(offset: int, same: int) -> None:
    assert Window(WindowKind.TUMBLE, size=10, offset=offset).normalised_offset == same
    assert Window(WindowKind.HOP, size=100, slide=10, offset=offset).normalised_offset == same


@pytest.mark.parametrize(
    ("call", "window", "clock"),
    [
        ("TUMBLE(placed, INTERVAL '1' MINUTE)", Window(WindowKind.TUMBLE, size=MINUTE), TimeAttribute.ROWTIME),
        ("HOP(arrived, INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)", Window(WindowKind.HOP, 2 * MINUTE, MINUTE), TimeAttribute.PROCTIME),
        ("SESSION(placed, INTERVAL '1' MINUTE)", Window(WindowKind.SESSION, gap=MINUTE), TimeAttribute.ROWTIME),
    ],
)  # fmt: skip
def test_legacy_group_windows(call: str, window: Window, clock: TimeAttribute) -> None:
    kind, arguments = call.split("(", 1)
    node = plan(
        f"SELECT {kind}_END({arguments} AS e, customer, SUM(amount) AS s, {kind}_START({arguments} AS b "
        f"FROM orders GROUP BY quantity, {call}, customer;"
    )
    (grouped,) = found(node, GroupWindowAggregate)
    assert isinstance(grouped, GroupWindowAggregate)
    assert (grouped.window, grouped.time_attribute, grouped.window_position) == (window, clock, 1)
    assert grouped.properties == (WindowField.END, WindowField.START)
    assert [column.name for column in node.schema] == ["e", "customer", "s", "b"]
    assert not grouped.mismatched


def test_a_field_of_another_window_is_noted() -> None:
    node = plan(
        "SELECT TUMBLE_START(placed, INTERVAL '2' MINUTE) AS b FROM orders GROUP BY TUMBLE(placed, INTERVAL '1' MINUTE);"
    )
    (grouped,) = found(node, GroupWindowAggregate)
    assert len(grouped.mismatched) == 1  # type: ignore[attr-defined]


WINDOWED = "FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(placed), INTERVAL '1' MINUTE))"


@pytest.mark.parametrize(
    ("keys", "windowed"),
    [
        ("customer, window_start, window_end", True),
        ("window_end, customer, window_start, window_time", True),
        ("(customer, window_start, window_end)", True),
        ("customer, window_start", False),
        ("customer, window_start + INTERVAL '1' SECOND, window_end", False),
        ("GROUPING SETS ((customer, window_start, window_end), (window_start, window_end))", True),
        ("GROUPING SETS ((customer, window_start, window_end), (customer))", False),
    ],
)
def test_a_windowed_aggregation_has_both_bounds_in_every_set(keys: str, windowed: bool) -> None:
    node = plan(f"SELECT COUNT(*) AS n {WINDOWED} GROUP BY {keys};")
    assert bool(found(node, WindowAggregate)) is windowed
    assert len(found(node, Aggregate)) == 1


@pytest.mark.parametrize("literal", ["','", "INTERVAL '1' DAY", "1", "NULL", "CAST(NULL AS STRING)"])
def test_a_constant_argument_computes_nothing_on_the_window(literal: str) -> None:
    node = plan(f"SELECT LISTAGG(customer, {literal}) AS n {WINDOWED} GROUP BY window_start, window_end;")
    assert found(node, WindowAggregate)


@pytest.mark.parametrize(
    ("clause", "sets"),
    [
        ("GROUPING SETS ((customer, quantity), (customer), ())", {(0, 1), (0,), ()}),
        ("CUBE (customer, quantity)", {(0, 1), (0,), (1,), ()}),
        ("ROLLUP (customer, quantity)", {(0, 1), (0,), ()}),
        ("customer, ROLLUP (quantity)", {(0, 1), (0,)}),
        ("GROUPING SETS (customer, ROLLUP (quantity))", {(0,), (1,), ()}),
    ],
)
def test_grouping_sets_are_unfolded(clause: str, sets: set[tuple[int, ...]]) -> None:
    (aggregate,) = found(plan(f"SELECT COUNT(*) AS n FROM orders GROUP BY {clause};"), Aggregate)
    assert isinstance(aggregate, Aggregate)
    assert aggregate.grouping_sets is not None
    assert set(aggregate.grouping_sets) == sets
    assert len(aggregate.grouping_sets) == len(sets)


# --------------------------------------------------------------------------------------------------- types
@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("amount + 1", "DECIMAL(13, 2)"),
        ("quantity * 2", "INT NOT NULL"),
        ("line.code", "STRING"),
        ("line.tags[1]", "STRING"),
        ("CAST(amount AS BIGINT)", "BIGINT"),
        ("COUNT(*)", "BIGINT NOT NULL"),
        ("SUM(quantity)", "INT"),
        ("SUM(amount)", "DECIMAL(38, 2)"),
        ("window_start", "TIMESTAMP(3)"),
        ("unheard_of(amount)", "UNKNOWN"),
    ],
)
def test_types(expression: str, kind: str) -> None:
    grouped = (
        f"{WINDOWED} GROUP BY window_start, window_end" if "(" in expression and expression[0] in "CS" else WINDOWED
    )
    if expression.startswith("CAST"):
        grouped = WINDOWED
    ((_, found_kind),) = columns(f"SELECT {expression} AS x {grouped};")
    assert found_kind.replace(" NOT NULL", "") == kind.replace(" NOT NULL", "")


def test_window_time_stays_a_time_attribute_through_an_aggregation() -> None:
    node = plan(
        f"SELECT customer, window_time AS t {WINDOWED} GROUP BY customer, window_start, window_end, window_time;"
    )
    assert node.schema[1].time_attribute is TimeAttribute.ROWTIME
    assert isinstance(node, Project)


@pytest.mark.parametrize(
    ("use", "declaration"),
    [
        ("SELECT a FROM late;", "CREATE TABLE late (a BIGINT) WITH ('connector' = 'datagen');"),
        ("INSERT INTO late SELECT amount FROM orders;", "CREATE TABLE late (a BIGINT) WITH ('connector' = 'print');"),
        ("SELECT a FROM late;", "CREATE TEMPORARY VIEW late AS SELECT amount AS a FROM orders;"),
        ("SELECT late(amount) FROM orders;", "CREATE FUNCTION late AS 'shop.Late';"),
        ("SELECT UPPER(item) FROM orders;", "CREATE FUNCTION upper AS 'shop.Upper';"),
        (
            "SELECT amount FROM orders WHERE amount IN (SELECT a FROM late);",
            "CREATE TABLE late (a BIGINT) WITH ('connector' = 'datagen');",
        ),
    ],
)
def test_what_is_declared_after_its_use_was_not_used(use: str, declaration: str) -> None:
    assert [fact.kind for fact in program(use + declaration).other_statements] == ["declared after its use"]
    assert not program(declaration + use).other_statements


def test_what_is_not_read_is_compared_without_its_comments() -> None:
    texts = ("SELECT FROM a -- b\nWHERE", "SELECT FROM a -- c\n  WHERE", "SELECT FROM a -- b WHERE")
    one, other, cut = (program(text).problems[0].text for text in texts)
    assert one == other != cut


@pytest.mark.parametrize(
    ("watermark", "delay"),
    [
        ("ts", 0),
        ("ts - INTERVAL '5' SECOND", 5000),
        ("ts - INTERVAL '1' MONTH", None),
        ("other - INTERVAL '5' SECOND", None),
        ("ts + INTERVAL '5' SECOND", None),
        ("CAST(ts AS TIMESTAMP(3))", None),
    ],
)
def test_how_far_a_watermark_runs_behind(watermark: str, delay: int | None) -> None:
    text = f"CREATE TABLE t (ts TIMESTAMP(3), other TIMESTAMP(3), WATERMARK FOR ts AS {watermark}) WITH ('k' = 'v');"
    (table,) = build_program(parse_script(text)).tables
    assert table.watermark_delay == delay


@pytest.mark.parametrize(
    ("literal", "reason", "words"),
    [
        ("'99' DAY", "", ""),
        ("'099' SECOND", "", ""),
        ("'100' DAY(3)", "", ""),
        ("'1.123456789' SECOND(2, 9)", "", ""),
        ("'100 00:00:00' DAY(3) TO SECOND", "", ""),
        ("'100.5' SECOND", "refused", "Interval field value 100 exceeds precision of SECOND(2) field"),
        ("'36500' DAY(4)", "refused", "Interval field value 36,500 exceeds precision of DAY(4) field"),
        ("'100-1' YEAR TO MONTH", "refused", "Interval field value 100 exceeds precision of YEAR(2) field"),
        ("'101:00' HOUR TO MINUTE", "refused", "Interval field value 101 exceeds precision of HOUR(2) field"),
        ("'99 25:00' DAY TO MINUTE", "construct", "INTERVAL '99 25:00' DAY TO MINUTE is not understood"),
        ("'1-12' YEAR TO MONTH", "construct", "INTERVAL '1-12' YEAR TO MONTH is not understood"),
    ],
)
def test_intervals_hold_the_digits_flink_takes(literal: str, reason: str, words: str) -> None:
    """Measured with Flink 2.3, in its words."""
    script = program(f"SELECT placed + INTERVAL {literal} AS v FROM orders;")
    opaque = found(script.pipelines[0].sink.input, Opaque)
    assert [words in str(node.reason) for node in opaque] == ([True] if reason == "construct" else [])
    assert [(p.reason, words in p.message) for p in script.problems] == (
        [(reason, True)] if reason == "refused" else []
    )


# Types and rows measured with Flink 2.3: the first branch's type alone would cut 17.94 to 17.
@pytest.mark.parametrize(
    ("branches", "expected"),
    [
        (("i", "d", "b"), "DECIMAL(21, 2)"),
        (("d", "i"), "DECIMAL(12, 2)"),
        (("i", "b"), "BIGINT"),
        (("'a'", "'bcd'"), "VARCHAR(3) NOT NULL"),
        (("i", "'a'"), "UNKNOWN"),
    ],
)
def test_a_union_has_the_type_all_its_branches_go_into(branches: tuple[str, ...], expected: str) -> None:
    table = "CREATE TABLE numbers (i INT, b BIGINT, d DECIMAL(10, 2)) WITH ('connector' = 'filesystem');\n"
    query = " UNION ALL ".join(f"SELECT {branch} FROM numbers" for branch in branches)
    (pipeline,) = build_program(parse_script(f"{table}{query};")).pipelines
    assert [str(column.type) for column in pipeline.sink.input.schema] == [expected]
