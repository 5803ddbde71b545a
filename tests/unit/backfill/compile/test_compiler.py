"""What is refused before Spark starts, where it says the trouble is, and what a plan becomes."""

from __future__ import annotations

import re
from datetime import datetime

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, Untranslatable, plan
from airflow_flinkcompat.backfill.connectors.files import FileSource
from airflow_flinkcompat.backfill.spark_sql.windows import from_micros, to_micros
from airflow_flinkcompat.backfill.steps import Assign, Group, Read, Select, Step, UnionAll, reads_of
from airflow_flinkcompat.model import JobSpec
from tests.support.backfill.scripts import BID_COLUMNS, TUMBLE, bids, requested, script, table

WINDOWED = "window_start TIMESTAMP(3), window_end TIMESTAMP(3), total DECIMAL(38, 2)"
SUM = f"SELECT window_start, window_end, SUM(price) FROM {TUMBLE} GROUP BY window_start, window_end"


def refusal(text: str, **request: object) -> str:
    with pytest.raises(BackfillError) as caught:
        plan(requested(text, **{"source": "job.sql", **request}))
    return str(caught.value)


def test_a_windowed_aggregation_becomes_steps() -> None:
    text = bids(SUM, WINDOWED)
    work = plan(BackfillRequest(JobSpec(text), from_=datetime(2020, 4, 15, 8, 5), to=datetime(2020, 4, 15, 8, 35))).work
    (write,) = work.writes
    assert (write.target.place, write.target.exclusive) == ("file:///results", False)
    (select,) = write.inputs
    assert isinstance(select, Select)
    group = select.input.input if isinstance(select.input, Select) else select.input
    assert isinstance(group, Group)
    assert group.keys == ("c3", "c4")
    assert isinstance(group.input, Assign)
    # Only windows wholly inside: neither 08:00 nor 08:30.
    first, last = datetime(2020, 4, 15, 8, 10), datetime(2020, 4, 15, 8, 30)
    assert group.input.windows.span(group.input.window_range) == (to_micros(first), to_micros(last))


def test_columns_nobody_reads_are_not_decoded() -> None:
    (write,) = plan(BackfillRequest(JobSpec(bids(SUM, WINDOWED)))).work.writes
    (read,) = reads_of(write.inputs[0])
    assert [position for position, _ in read.columns] == [0, 1]
    assert isinstance(read.source, FileSource)
    assert [column.name for column in read.source.columns] == ["bidtime", "price", "item"]


def test_a_column_spark_cannot_hold_is_no_obstacle_while_nobody_reads_it() -> None:
    columns = BID_COLUMNS + ", more ARRAY<INT>"
    good = script(table("bid", columns, "/h"), table("results", WINDOWED, "/r"), f"INSERT INTO results {SUM}")
    plan(BackfillRequest(JobSpec(good)))
    bad = good.replace("SUM(price)", "COUNT(more)").replace("DECIMAL(38, 2)", "BIGINT")
    assert "column more of type ARRAY<INT>" in refusal(bad)


@pytest.mark.parametrize(
    ("query", "columns", "words"),
    [
        ("SELECT item, SUM(price) FROM bid GROUP BY item", "item STRING, p DECIMAL(38, 2)", "a group aggregation"),
        ("SELECT a.item FROM bid a JOIN bid b ON a.item = b.item", "item STRING", "INNER join"),
        (
            "SELECT item, LAG(price) OVER (PARTITION BY item ORDER BY bidtime) FROM bid",
            "item STRING, p DECIMAL(10, 2)",
            "recomputes only OVER aggregations",
        ),
        ("SELECT item FROM bid ORDER BY item", "item STRING", "ORDER BY or LIMIT"),
        ("SELECT x FROM (VALUES (1)) AS v(x)", "x INT", "VALUES"),
        ("SELECT my_function(item) FROM bid", "item STRING", "function my_function cannot run in Spark"),
        ("SELECT REGEXP_EXTRACT(item, 'a', 1) FROM bid", "item STRING", "REGEXP_EXTRACT has no exact translation"),
        ("SELECT JSON_QUERY(item, '$.a') FROM bid", "item STRING", "JSON_QUERY has no exact translation"),
        ("SELECT DATE_FORMAT(bidtime, 'EEEE') FROM bid", "item STRING", "DATE_FORMAT of TIMESTAMP.*EEEE"),
        (
            SUM.replace("SUM(price)", "LISTAGG(item)"),
            WINDOWED.replace("DECIMAL(38, 2)", "STRING"),
            "LISTAGG has no exact translation",
        ),
        (
            SUM.replace("SUM(price)", "my_aggregate(price)"),
            WINDOWED,
            "aggregate my_aggregate cannot run in Spark",
        ),
        ("SELECT item FROM bid", "item INT", "Flink does not cast STRING implicitly to column item of type INT"),
        ("SELECT item, item FROM bid", "item STRING", "has 2 columns"),
    ],
)  # fmt: skip
def test_what_is_not_exact_is_refused_with_its_place(query: str, columns: str, words: str) -> None:
    text = bids(query, columns)
    message = refusal(text)
    assert message.startswith("job.sql:")
    assert re.search(words, message), message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("'format' = 'csv'", "'format' = 'avro'"), "declares format avro"),
        (("'format' = 'csv'", "'format' = 'csv', 'csv.allow-comments' = 'true'"), "option csv.allow-comments = 'true'"),
        (("'format' = 'csv'", "'format' = 'csv', 'csv.ignore-parse-errors' = 'yes'"), "Write true or false"),
        (("'format' = 'csv'", "'format' = 'csv', 'csv.field-delimiter' = ';;'"), "Write a single character"),
        (("'format' = 'csv'", "'format' = 'json', 'json.fail-on-missing-field' = 'true'"), "fail-on-missing-field"),
        (("'connector' = 'filesystem'", "'connector' = 'datagen'"), "connector datagen"),
        (("WATERMARK", "p AS PROCTIME(), WATERMARK"), ""),
        (("DESCRIPTOR(bidtime)", "DESCRIPTOR(p)"), "processing time"),
        (("TIMESTAMP(3)", "TIMESTAMP(6)"), "precision 'p' is from 0 to 3, but the time field type is TIMESTAMP(6)"),
    ],
)
def test_tables_that_cannot_be_read_exactly(change: tuple[str, str], words: str) -> None:
    text = bids(SUM, WINDOWED)
    if change[1] == "DESCRIPTOR(p)":
        text = text.replace("WATERMARK", "p AS PROCTIME(), WATERMARK")
    text = text.replace(*change, 1)
    if words:
        assert words in refusal(text)
    else:
        plan(BackfillRequest(JobSpec(text)))


def test_a_conflict_clause_is_computed_where_no_order_of_arrival_decides() -> None:
    text = bids(SUM, WINDOWED).rstrip().removesuffix(";")
    plan(BackfillRequest(JobSpec(f"{text} ON CONFLICT DO DEDUPLICATE;")))
    for action in ("NOTHING", "ERROR"):
        assert f"ON CONFLICT DO {action} depends on which row" in refusal(f"{text} ON CONFLICT DO {action};")


def _window(function: str) -> str:
    return f"SELECT price FROM TABLE({function})"


FIVE, TEN, TWELVE = (f"INTERVAL '{minutes}' MINUTES" for minutes in (5, 10, 12))
INNER = f"SELECT bidtime, price, window_time AS wt FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(bidtime), {FIVE}))"


# The words are those Flink 2.3 refuses the same statement with.
@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            _window(f"CUMULATE(TABLE bid, DESCRIPTOR(bidtime), {FIVE}, {TWELVE})"),
            "requires maxSize must be an integral multiple of step, but got maxSize 720000 ms and step 300000 ms",
        ),
        (
            _window(f"TUMBLE(TABLE bid, DESCRIPTOR(bidtime), {TEN}, INTERVAL '-16' MINUTES)"),
            "parameters must satisfy abs(offset) < size, but got size 600000 ms and offset -960000 ms",
        ),
        (
            _window(f"HOP(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '0' MINUTES, {TEN})"),
            "requires slide and size to be positive",
        ),
        (
            _window(f"TUMBLE(TABLE bid, DESCRIPTOR(other), {TEN})"),
            "requires the timecol is a time attribute type, but other is TIMESTAMP(3)",
        ),
        (
            _window(f"TUMBLE(({INNER}), DESCRIPTOR(bidtime), {TEN})"),
            "requires the timecol is a time attribute type, but bidtime is TIMESTAMP(3)",
        ),
        (
            _window(f"TUMBLE(TABLE bid, DESCRIPTOR(price), {TEN})"),
            "requires the timecol to be TIMESTAMP or TIMESTAMP_LTZ, but price is DECIMAL(10, 2)",
        ),
        (
            _window(f"TUMBLE(({INNER.replace('wt', 'window_time')}), DESCRIPTOR(window_time), {TEN})"),
            "Field names must be unique. Found duplicates: [window_time]",
        ),
        (_window(f"TUMBLE(TABLE bid, DESCRIPTOR(p), {TEN})"), "processing time"),
        (
            f"SELECT SUM(price) FROM bid GROUP BY TUMBLE(other, {TEN})",
            "requires the timecol is a time attribute type, but other is TIMESTAMP(3)",
        ),
        (
            _window(f"CUMULATE(TIMECOL => DESCRIPTOR(bidtime), STEP => {FIVE}, SIZE => {TEN})"),
            "CUMULATE requires a table as its first argument (DATA)",
        ),
        (
            _window(f"TUMBLE(TIMECOL => DESCRIPTOR(bidtime), DATA => TABLE bid, SIZE => {TEN})"),
            "DATA must be the first argument of TUMBLE",
        ),
    ],
)
def test_windows_flink_refuses_are_refused_with_its_reason(query: str, words: str) -> None:
    columns = BID_COLUMNS.replace("item STRING", "item STRING, other TIMESTAMP(3), p AS PROCTIME()")
    results = table("results", "price DECIMAL(38, 2)", "/results")
    message = refusal(script(table("bid", columns, "/history"), results, f"INSERT INTO results {query}"))
    assert message.startswith("job.sql:3:")
    assert words in message


def test_in_batch_mode_any_timestamp_is_a_time() -> None:
    text = bids(SUM, WINDOWED).replace(", WATERMARK FOR bidtime AS bidtime - INTERVAL '1' SECOND", "")
    assert "Declare a WATERMARK" in refusal(text)
    plan(BackfillRequest(JobSpec(text, settings={"execution.runtime-mode": "batch"})))


def test_arguments_by_name_may_follow_in_any_order() -> None:
    function = f"TUMBLE(DATA => TABLE bid, SIZE => {TEN}, TIMECOL => DESCRIPTOR(bidtime))"
    plan(BackfillRequest(JobSpec(bids(_window(function), "price DECIMAL(10, 2)"))))


@pytest.mark.parametrize(
    ("inner", "spans"),
    [
        # An outer window of ten minutes inside [08:05, 08:35) needs the inner ones from 08:10 to 08:30.
        (f"HOP(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '4' MINUTES, {FIVE})", ("08:08", "08:29")),
        (f"CUMULATE(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '4' MINUTES, {TWELVE})", ("08:00", "08:28")),
    ],
)
@pytest.mark.parametrize("aggregated", [False, True])
def test_a_window_over_windows_asks_for_the_rows_it_needs(inner: str, spans: tuple[str, str], aggregated: bool) -> None:
    rows = (
        f"SELECT window_time AS wt, SUM(price) AS price FROM TABLE({inner}) "
        "GROUP BY window_start, window_end, window_time"
        if aggregated
        else f"SELECT window_time AS wt, price FROM TABLE({inner})"
    )
    query = (
        f"SELECT window_start, window_end, SUM(price) FROM TABLE(TUMBLE(({rows}), DESCRIPTOR(wt), {TEN})) "
        "GROUP BY window_start, window_end"
    )
    bounds = {"from_": datetime(2020, 4, 15, 8, 5), "to": datetime(2020, 4, 15, 8, 35)}
    (write,) = plan(BackfillRequest(JobSpec(bids(query, WINDOWED)), **bounds)).work.writes
    found = []
    step: Step = write.inputs[0]
    while not isinstance(step, Read):
        assert not isinstance(step, UnionAll)
        if isinstance(step, Assign):
            found.append(tuple(str(from_micros(at or 0))[11:16] for at in step.windows.span(step.window_range)))
        step = step.input
    assert found == [("08:10", "08:30"), spans]


BOTH_BOUNDS = [
    f"SELECT window_start, window_end, SUM(price) FROM {TUMBLE} "
    "GROUP BY window_start, window_end, CAST(window_start AS DATE)",
    "SELECT ws, we, SUM(price) FROM "
    f"(SELECT window_start AS ws, window_end AS we, price FROM {TUMBLE} UNION ALL "
    f"SELECT window_start, window_end, price FROM {TUMBLE.replace('10', '5')}) GROUP BY ws, we",
    "SELECT window_start, window_end, SUM(s) FROM "
    f"(SELECT window_start, window_end, item, SUM(price) AS s FROM {TUMBLE} "
    "GROUP BY window_start, window_end, item) GROUP BY window_start, window_end",
    f"SELECT s, e, SUM(p) FROM (SELECT TUMBLE_START(bidtime, {TEN}) AS s, TUMBLE_END(bidtime, {TEN}) AS e, "
    f"SUM(price) AS p FROM bid GROUP BY item, TUMBLE(bidtime, {TEN})) GROUP BY s, e",
]


@pytest.mark.parametrize("query", BOTH_BOUNDS)
def test_groups_that_lie_in_one_window_are_computed_whatever_else_is_among_their_keys(query: str) -> None:
    plan(BackfillRequest(JobSpec(bids(query, WINDOWED)), to=datetime(2020, 4, 16)))


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT window_start, MAX(window_end), SUM(price) FROM {TUMBLE} GROUP BY window_start",
        f"SELECT window_start, window_end + INTERVAL '1' HOUR, SUM(price) FROM {TUMBLE} "
        "GROUP BY window_start, window_end + INTERVAL '1' HOUR",
        # The outer windows cut the inner ones apart.
        f"SELECT a, b, SUM(price) FROM TABLE(HOP((SELECT window_start AS a, window_end AS b, window_time AS wt, price "
        f"FROM {TUMBLE}), DESCRIPTOR(wt), {FIVE}, {TEN})) GROUP BY a, b",
    ],
)
def test_groups_across_windows_are_refused(query: str) -> None:
    message = refusal(bids(query, WINDOWED), to=datetime(2020, 4, 16))
    assert "a backfill does not recompute a group aggregation yet unless both window_start and window_end" in message


def test_older_hops_at_clock_changes() -> None:
    hop = f"HOP(bidtime, {FIVE}, {TWELVE})"
    text = bids(f"SELECT SUM(price) FROM bid GROUP BY {hop}", "total DECIMAL(38, 2)")
    text = text.replace("bidtime TIMESTAMP(3)", "bidtime TIMESTAMP_LTZ(3)")
    assert "Write TABLE(HOP(" in refusal(text, settings={"table.local-time-zone": "America/Los_Angeles"})
    plan(BackfillRequest(JobSpec(text.replace(TWELVE, TEN), settings={"table.local-time-zone": "America/Los_Angeles"})))
    plan(BackfillRequest(JobSpec(text, settings={"table.local-time-zone": "GMT+01:00"})))


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        ("item LIKE 'a.%'", "(c2 LIKE 'a.%')"),
        ("item LIKE 'a._%'", r"(c2 RLIKE '\\Aa\\..(?s:.*)\\z')"),
        (
            "TIMESTAMPDIFF(MINUTE, bidtime, bidtime) = 0",
            "div 60000 AS INT) = CAST('0' AS INT))",
        ),
        ("price * 1e0 > 1", "raise_error('backfill: NaN compares"),
    ],
)
def test_expressions_in_spark(expression: str, sql: str) -> None:
    (write,) = plan(BackfillRequest(JobSpec(bids(f"SELECT {expression} FROM bid", "b BOOLEAN")))).work.writes
    step = write.inputs[0]
    found = []
    while isinstance(step, Select):
        found += [text for _, text in step.columns]
        step = step.input
    assert any(sql in text for text in found), found


def test_a_range_needs_windows() -> None:
    text = bids("SELECT item FROM bid", "item STRING")
    assert "no time range can be applied" in refusal(text, from_=datetime(2020, 1, 1))
    plan(BackfillRequest(JobSpec(text)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("TABLE bid, DESCRIPTOR(bidtime), ", "DESCRIPTOR(bidtime), "), "TUMBLE"),
        (("DESCRIPTOR(bidtime)", "DESCRIPTOR(nowhere)"), "nowhere"),
        (("INTERVAL '10' MINUTES", "INTERVAL '1x' MINUTES"), "1x"),
        (("SUM(price)", "LISTAGG(item)"), "LISTAGG has no exact translation"),
        ((SUM, "SELECT * FROM elsewhere"), "the columns of * are not known"),
    ],
)
def test_a_range_hides_no_other_reason(change: tuple[str, str], words: str) -> None:
    text = bids(SUM, WINDOWED).replace(*change)
    without, message = refusal(text), refusal(text, from_=datetime(2020, 1, 1))
    assert words in message
    assert message == without
    assert "belong to no window" not in message


def test_a_range_needs_windows_in_every_branch() -> None:
    text = bids(f"SELECT item FROM {TUMBLE} UNION ALL SELECT item FROM bid", "item STRING")
    assert "no time range can be applied" in refusal(text, to=datetime(2020, 1, 1))


def test_all_trouble_is_told_at_once() -> None:
    text = script(
        table("bid", BID_COLUMNS, "/h"),
        table("a", "x STRING", "/a"),
        table("b", "x STRING", "/b"),
        "INSERT INTO a SELECT JSON_QUERY(item, '$.x') FROM bid",
        "INSERT INTO b SELECT my_function(item) FROM bid",
    )
    message = refusal(text)
    assert "JSON_QUERY" in message
    assert "my_function" in message


def test_the_catalog_declares_what_the_script_leaves_out() -> None:
    text = script(table("results", "item STRING", "/r"), "INSERT INTO results SELECT item FROM bid")
    assert "table bid is not declared" in refusal(text)
    plan(BackfillRequest(JobSpec(text, catalog=script(table("bid", BID_COLUMNS, "/h")))))


def test_an_archive_stands_in_for_a_topic() -> None:
    kafka = (
        f"CREATE TABLE bid ({BID_COLUMNS}) WITH ('connector' = 'kafka', 'topic' = 'bids', 'format' = 'json', "
        "'properties.bootstrap.servers' = '${conn.kafka.host}:9092', 'json.timestamp-format.standard' = 'ISO-8601')"
    )
    text = script(kafka, table("results", WINDOWED, "/r"), f"INSERT INTO results {SUM}")
    (declared,) = plan(BackfillRequest(JobSpec(text))).work.writes
    assert reads_of(declared.inputs[0])[0].source.place == "kafka://${conn.kafka.host}:9092/bids"
    (write,) = plan(BackfillRequest(JobSpec(text), tables={"bid": "/archive"})).work.writes
    (read,) = reads_of(write.inputs[0])
    assert isinstance(read, Read)
    assert isinstance(read.source, FileSource)
    assert (read.source.place, read.source.format.name) == ("file:///archive", "json")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELECT item FROM bid", "a SELECT without INSERT INTO has no sink"),
        ("INSERT OVERWRITE results SELECT * FROM bid", "INSERT OVERWRITE"),
        ("INSERT INTO results PARTITION (item = 'x') SELECT * FROM bid", "not a partition column"),
        ("INSERT INTO bid SELECT * FROM bid", "but table bid is read there"),
    ],
)
def test_sinks_that_cannot_be_written(statement: str, words: str) -> None:
    columns = "bidtime TIMESTAMP(3), price DECIMAL(10, 2), item STRING"
    assert words in refusal(script(table("bid", BID_COLUMNS, "/h"), table("results", columns, "/r"), statement))


def test_a_sink_inside_a_source_is_refused() -> None:
    text = bids(SUM, WINDOWED)
    assert "--sink results=URI" in refusal(text, sinks={"results": "/history/new"})


def test_two_sinks_need_two_places() -> None:
    text = script(
        table("bid", BID_COLUMNS, "/h"), table("a", "x STRING", "/r"), table("b", "x STRING", "/r"),
        "INSERT INTO a SELECT item FROM bid", "INSERT INTO b SELECT item FROM bid",
    )  # fmt: skip
    assert "the same location" in refusal(text)


def test_two_inserts_into_one_sink_are_one_write() -> None:
    text = script(
        table("bid", BID_COLUMNS, "/h"), table("a", "x STRING", "/r"),
        "INSERT INTO a SELECT item FROM bid WHERE price > 1", "INSERT INTO a SELECT item FROM bid WHERE price <= 1",
    )  # fmt: skip
    (write,) = plan(BackfillRequest(JobSpec(text))).work.writes
    assert len(write.inputs) == 2


def test_a_field_of_another_window_is_refused() -> None:
    select = "SELECT TUMBLE_START(bidtime, INTERVAL '5' MINUTE), SUM(price)"
    query = select + " FROM bid GROUP BY TUMBLE(bidtime, INTERVAL '{}' MINUTE)"
    columns = "s TIMESTAMP(3), total DECIMAL(38, 2)"
    plan(BackfillRequest(JobSpec(bids(query.format(5), columns))))
    assert "it belongs to a different window than the GROUP BY" in refusal(bids(query.format(10), columns))


def test_what_cannot_be_parsed_says_where_once() -> None:
    assert refusal(bids("SELEC item FROM bid", "item STRING")) == "job.sql:3:21: Expected a query"


def test_windows_on_instants_need_a_time_zone() -> None:
    text = bids(SUM, WINDOWED).replace("bidtime TIMESTAMP(3)", "bidtime TIMESTAMP_LTZ(3)", 1)
    for settings in ({}, {"table.local-time-zone": "default"}):
        assert "SET 'table.local-time-zone' = 'UTC'" in refusal(text, settings=settings)
    # What Flink takes and what it does not was measured.
    for zone in ("UTC", "Europe/Berlin", "America/Los_Angeles", "GMT+08:00", "GMT-3", "Etc/GMT+8", "CET", "GMT0"):
        plan(BackfillRequest(JobSpec(text, settings={"table.local-time-zone": zone})))
    for zone in ("Nope/City", "+08:00", "UTC+8", "EST", "europe/berlin", "GMT+8:30", "Z", "../etc"):
        assert f"is {zone}, which Flink refuses" in refusal(text, settings={"table.local-time-zone": zone})


@pytest.mark.parametrize(
    "setting", ["table.exec.legacy-cast-behaviour=enabled", "table.exec.sink.type-length-enforcer=trim_pad"]
)
def test_settings_that_change_values_are_refused(setting: str) -> None:
    key, _, value = setting.partition("=")
    assert key in refusal(bids(SUM, WINDOWED), settings={key: value})


def test_a_statement_that_cannot_be_read_is_no_gap_in_silence() -> None:
    with pytest.raises(Untranslatable):
        plan(BackfillRequest(JobSpec(bids(SUM, WINDOWED) + "INSERT INTO results SELEC 1;")))


@pytest.mark.parametrize("drop", ["DROP TABLE bid", "DROP TABLE IF EXISTS default_database.`bid`"])
def test_what_is_dropped_is_not_read(drop: str) -> None:
    text = bids(SUM, WINDOWED)
    assert "does not support DROP" in refusal(text.replace("INSERT", f"{drop};\nINSERT"))
    plan(BackfillRequest(JobSpec(text + drop + ";")))
    plan(BackfillRequest(JobSpec("DROP TABLE IF EXISTS bid;\n" + text)))


def test_a_function_in_the_place_of_one_of_flinks_is_not_taken_for_it() -> None:
    query = "SELECT UPPER(item) FROM bid"
    for kind, refused in (("TEMPORARY SYSTEM", True), ("TEMPORARY", False)):
        text = f"CREATE {kind} FUNCTION upper AS 'com.example.Upper';\n" + bids(query, "item STRING")
        if refused:
            assert "replaces Flink's built-in UPPER" in refusal(text)
        else:
            plan(BackfillRequest(JobSpec(text)))


def test_a_window_over_what_is_not_declared() -> None:
    assert "table nothing is not declared" in refusal(bids(SUM.replace("TABLE bid", "TABLE nothing"), WINDOWED))


def test_a_script_that_writes_nothing() -> None:
    assert "has no INSERT INTO statement" in refusal(script(table("bid", BID_COLUMNS, "/h")))


def test_no_message_shows_a_secret() -> None:
    from airflow_flinkcompat.backfill import run_backfill

    text = bids(SUM, WINDOWED).replace("'path' = '/history'", "'path' = 's3://user:hunter2@bucket/*'")
    with pytest.raises(BackfillError) as caught:
        run_backfill(BackfillRequest(JobSpec(text)))
    assert "hunter2" not in str(caught.value)
