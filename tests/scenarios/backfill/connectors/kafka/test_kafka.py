"""Kafka topics as Flink's own connector reads and writes them, on a real broker."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest
from airflow_flinkcompat.backfill.planning import plan
from airflow_flinkcompat.backfill.steps import reads_of
from airflow_flinkcompat.model import JobSpec
from tests.scenarios.backfill.engines import by_both
from tests.support.backfill.scripts import BID_COLUMNS, SUM, SUM_COLUMNS, Run, lines, script, table
from tests.support.backfill.topics import held, topic_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dev.services.flink_batch import FlinkBatch
    from dev.services.kafka import Broker, Record


UTC = {"table.local-time-zone": "UTC"}
KEYED = "window_start TIMESTAMP(3), window_end TIMESTAMP(3), item STRING, total DECIMAL(38, 2)"
KEYS = "PRIMARY KEY (item, window_start) NOT ENFORCED"
BY_ITEM = SUM.replace("window_end, SUM", "window_end, item, SUM") + ", item"


def planned(source: str, sink: str = "", query: str = SUM) -> str:
    sink = sink or table("results", SUM_COLUMNS, "/r")
    return script(source, sink, f"INSERT INTO results {query}")


META = {
    "part": "INT METADATA FROM 'partition' VIRTUAL",
    "nr": "BIGINT METADATA FROM 'offset' VIRTUAL",
    "met": "TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL",
    "how": "STRING METADATA FROM 'timestamp-type' VIRTUAL",
}
JSON = [
    '{"a":1,"b":"x"}', "{}", '{"a":null,"b":null}', None, "", "  ", "{", '{"a":"5","b":6}', '{"a":"x","b":true}',
    '[{"a":1},{"b":"z"}]', "[]", "null", '"text"', "17", '{"b":{"k":1}}', '{"b":[1, 2]}', '{"a":1} {"a":2}', '{"a":1}x',
    '{"a":99999999999}', '{"A":17,"b":"first","b":"second"}', '{"b":1.50}', b'{"b":"\xff"}', "{'a':20}", '{"b":NaN}',
    '\ufeff{"a":22}', '[1,{"a":23}]', '[{"a":24},{"a":"x"}]', ' {"b":"é"}\n', "[null]", '{"b":""}', '{"b":1e2}',
    '{"c":"2020-01-01 00:00:00"}', '{"c":"2020-01-01T00:00:00"}', '{"a":true}', '{"a":" 7 "}', '{"b":01}',
    '{"d":1.23456789012345678901}', '[{"b":1.50,"d":0.10},{"b":[1, {"x":2}]}]', '{"b":"-1.50 \\" 2","d":"1.5"}',
]  # fmt: skip
CSV = [
    "1,x,2020-01-01 00:00:00,1.5", "1,x", None, "", "1,x,,,y", "1,x,,1,", ",,,", "a,b,c,d", '"1","x,y",,', '1,"x""y",,',
    "1,x,,2\n", "1,x,,3\n4,y,,", ' 1, x,,', '1,"x\ny",,', "NULL,NULL,NULL,NULL", "1",
    b"1,\xff,,", "1,x,,\r\n", "#1,2,3,4",
]  # fmt: skip
COLUMNS = "a INT, b STRING, c TIMESTAMP(3), d DECIMAL(38, 20)"


@pytest.mark.slow
@pytest.mark.parametrize("format", ["json", "csv"])
def test_every_record_is_read_as_flink_reads_it(
    flink: FlinkBatch, spark: SparkSession, broker: Broker, tmp_path: Path, format: str
) -> None:
    """Malformed ones are skipped, tombstones are no rows, and each row carries where its record stood."""
    jvm = spark._jvm
    topic = broker.topic(jvm, 2)
    records: list[Record] = [(None, value) for value in (JSON if format == "json" else CSV)]
    broker.send(jvm, topic, records)
    broker.send(jvm, topic, records[:1], partition=1)
    columns = ", ".join([COLUMNS, *(f"{name} {kind}" for name, kind in META.items())])
    source = topic_table(
        "t", columns, topic, broker.servers, format=format, scan__startup__mode="earliest-offset",
        scan__bounded__mode="latest-offset", **{f"{format}__ignore_parse_errors": "true"},
    )  # fmt: skip
    out = table(
        "o", f"{COLUMNS}, part INT, nr BIGINT, met TIMESTAMP_LTZ(3), how STRING", "OUT", csv__null_literal="NULL"
    )
    insert = f"INSERT INTO o SELECT a, b, c, d, {', '.join(META)} FROM t"
    by_flink, by_spark, result = by_both(flink, tmp_path, [source, out, insert], UTC, streaming=False)
    assert by_spark == by_flink
    assert result.rows_read == result.rows_written > 10


@pytest.mark.nightly
@pytest.mark.slow
def test_keys_are_read_as_flink_reads_them(
    flink: FlinkBatch, spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    jvm = spark._jvm
    topic = broker.topic(jvm)
    broker.send(
        jvm,
        topic,
        [
            ('{"k":"a","j":1}', '{"v":1}'), (None, '{"v":2}'), ('{"k":"b"}', None), ("bad", '{"v":3}'),
            ("{}", '{"v":4}'), ('[{"k":"c"},{"k":"d"}]', '[{"v":5},{"v":6}]'), ('{"k":"e","j":"x"}', '{"v":7}'),
        ],
    )  # fmt: skip
    options = {"scan__startup__mode": "earliest-offset", "scan__bounded__mode": "latest-offset"}
    options |= {"key__format": "json", "key__json__ignore_parse_errors": "true", "key__fields": "k_k;k_j"}
    options |= {"key__fields_prefix": "k_", "value__format": "json", "value__fields_include": "EXCEPT_KEY"}
    source = topic_table("t", "k_k STRING, k_j INT, v INT", topic, broker.servers, **options)
    # An option's name is all lower case; field names keep their underscores.
    source = source.replace("'k-k;k-j'", "'k_k;k_j'")
    out = table("o", "k STRING, j INT, v INT", "OUT")
    by_flink, by_spark, _ = by_both(
        flink, tmp_path, [source, out, "INSERT INTO o SELECT * FROM t"], UTC, streaming=False
    )
    assert by_spark == by_flink != []


@pytest.mark.nightly
@pytest.mark.slow
def test_malformed_records_and_missing_topics_end_the_run(
    run: Run, spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    jvm = spark._jvm
    out = table("o", COLUMNS, tmp_path / "out")
    for format, value, words in (
        ("json", "{", "does not fit the table's format"),
        ("json", '[null,{"a":1}]', "an array that contains null"),
        ("json", '{"b":{"x":1.50}}', "fractions in a nested value"),
        ("json", b'{"b":"\xff"}', "INVALID_UTF8|Invalid UTF8"),
        ("csv", "", "a record of t is empty"),
        ("csv", '1,"x', "quotes that Flink may parse differently"),
        ("csv", "\n1,x,,", "begins with a line end"),
    ):
        topic = broker.topic(jvm)
        broker.send(jvm, topic, [(None, value)])
        source = topic_table("t", COLUMNS, topic, broker.servers, format=format)
        with pytest.raises(BackfillError, match=words):
            run(script(source, out, "INSERT INTO o SELECT * FROM t"))
    source = topic_table("t", COLUMNS, "missing", broker.servers, format="json")
    with pytest.raises(BackfillError, match="cannot be read"):
        run(script(source, out, "INSERT INTO o SELECT * FROM t"))


@pytest.mark.nightly
@pytest.mark.slow
def test_where_reading_starts_and_ends(run: Run, spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Records bounded by their own timestamps and offsets; a secret comes from the environment."""
    jvm = spark._jvm
    topic = broker.topic(jvm, 2)
    broker.send(jvm, topic, [(None, f'{{"a":{i}}}') for i in range(5)], millis=1_600_000_000_000)
    broker.send(jvm, topic, [(None, f'{{"a":{i}}}') for i in range(10, 12)], partition=1, millis=1_600_000_000_003)
    cases = (
        ({}, "0 1 2 3 4 10 11"),
        ({"scan__startup__mode": "latest-offset"}, "0 1 2 3 4 10 11"),
        ({"scan__startup__mode": "timestamp", "scan__startup__timestamp_millis": "1600000000002"}, "2 3 4 10 11"),
        ({"scan__bounded__mode": "timestamp", "scan__bounded__timestamp_millis": "1600000000004"}, "0 1 2 3 10"),
        (
            {
                "scan__startup__mode": "specific-offsets",
                "scan__startup__specific_offsets": "partition:0,offset:4;partition:1,offset:1",
            },
            "4 11",
        ),
    )
    for number, (options, expected) in enumerate(cases):
        place = tmp_path / str(number)
        source = topic_table("t", "a INT", topic, "${env.FLINKCOMPAT_TEST_SERVERS}", format="json", **options)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FLINKCOMPAT_TEST_SERVERS", broker.servers)
            run(script(source, table("o", "a INT", place), "INSERT INTO o SELECT a FROM t"))
        assert lines(place) == sorted(expected.split())


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("formats", [("json", "json", "ALL"), ("csv", "csv", "EXCEPT_KEY")])
def test_an_upsert_writes_the_bytes_flink_writes(
    flink: FlinkBatch, run: Run, spark: SparkSession, broker: Broker, tmp_path: Path, formats: tuple[str, str, str]
) -> None:
    jvm = spark._jvm
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rows.csv").write_text(
        "a,1,2020-04-15 08:05:00,4.50,1.5,true,2020-01-02,é x\nb,2,2020-04-15 08:06:00.123,NULL,NULL,NULL,NULL,NULL\n"
        'c,3,NULL,100.00,1e10,false,1969-12-31,"q""uote, and more than twenty-four"\nd,-4,NULL,0.00,0,false,NULL,\n',
        encoding="utf-8",
    )
    columns = "k STRING, i INT, ts TIMESTAMP(3), d DECIMAL(10, 2), f DOUBLE, bo BOOLEAN, da DATE, s STRING"
    source = table("rows_", columns, tmp_path / "in", csv__null_literal="NULL")
    keyed = (
        columns.replace("k STRING, i INT", "k STRING NOT NULL, i INT NOT NULL") + ", PRIMARY KEY (i, k) NOT ENFORCED"
    )
    options = {"key__format": formats[0], "value__format": formats[1], "value__fields_include": formats[2]}
    written = []
    for engine in (flink.run, lambda statements: run(script(*statements))):
        topic = broker.topic(jvm, 3)
        sink = topic_table("o", keyed, topic, broker.servers, "upsert-kafka", **options)
        engine([source, sink, "INSERT INTO o SELECT * FROM rows_"])
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.servers).option("subscribe", topic)
        written.append(sorted(map(tuple, reader.load().select("key", "value", "partition").collect())))
    assert written[1] == written[0]
    assert len(written[0]) == 4


@pytest.mark.slow
@pytest.mark.nightly
def test_an_upsert_replaces_its_range_and_only_that(
    run: Run, spark: SparkSession, broker: Broker, history: Path
) -> None:
    """Keys the range has lost become tombstones, whatever a killed run left; a repeated run writes nothing."""
    jvm = spark._jvm
    topic = broker.topic(jvm, 2)
    options = {"key__format": "json", "value__format": "json", "value__fields_include": "EXCEPT_KEY"}
    sink = topic_table("results", f"{KEYED}, {KEYS}", topic, broker.servers, "upsert-kafka", **options)
    text = planned(table("bid", BID_COLUMNS, history), sink, BY_ITEM)
    bounds = ("2020-04-15 08:00:00", "2020-04-15 08:10:00")
    run(text)
    first = held(spark, broker, topic)
    assert (
        first['{"item":"A","window_start":"2020-04-15 08:00:00"}'] == '{"window_end":"2020-04-15 08:10:00","total":2}'
    )
    assert len(first) == 6
    (history / "a.csv").write_text("2020-04-15 08:07:00,3.00,A\n2020-04-15 08:09:00,9.00,G\n", encoding="utf-8")
    for _ in range(2):
        run(text, *bounds)
        second = held(spark, broker, topic)
        in_range = {key[9]: value for key, value in second.items() if "08:00:00" in key}
        assert sorted(in_range) == ["A", "G"]
        assert {key: value for key, value in second.items() if "08:10:00" in key} == {
            key: value for key, value in first.items() if "08:10:00" in key
        }
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.servers).option("subscribe", topic)
    assert reader.load().count() == 6 + 1 + 1 + 2, "A anew, G, tombstones for C and D, and nothing the second time"
    narrow = f"{KEYED}, PRIMARY KEY (window_start) NOT ENFORCED"
    one = topic_table("results", narrow, topic, broker.servers, "upsert-kafka", **options)
    with pytest.raises(BackfillError, match="2 rows for the key"):
        run(planned(table("bid", BID_COLUMNS, history), one, BY_ITEM), *bounds)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("columns", ["window_start, window_end", "window_start"])
def test_an_upsert_leaves_the_row_of_a_later_window(
    run: Run, spark: SparkSession, broker: Broker, history: Path, columns: str
) -> None:
    """A key without the window holds its latest window's row, whichever range is computed when."""
    topic = broker.topic(spark._jvm)
    declared = ", ".join(f"{name} TIMESTAMP(3)" for name in columns.split(", "))
    key = f"{declared}, item STRING, total DECIMAL(38, 2), PRIMARY KEY (item) NOT ENFORCED"
    sink = topic_table("results", key, topic, broker.servers, "upsert-kafka", key__format="csv", value__format="json")
    text = planned(table("bid", BID_COLUMNS, history), sink, BY_ITEM.replace("window_start, window_end", columns, 1))
    (history / "more.csv").write_text("2020-04-15 08:12:00,7.00,A\n", encoding="utf-8")

    def totals() -> dict[str, int]:
        return {item: json.loads(value)["total"] for item, value in held(spark, broker, topic).items()}

    run(text, "2020-04-15 08:10:00", "2020-04-15 08:20:00")
    later = totals()
    assert later["A"] == 7
    run(text, "2020-04-15 08:00:00", "2020-04-15 08:10:00")
    assert totals() == {**later, "C": 4, "D": 5}
    (history / "more.csv").write_text("2020-04-15 08:12:00,8.00,A\n2020-04-15 08:13:00,9.00,C\n", encoding="utf-8")
    run(text, "2020-04-15 08:10:00", "2020-04-15 08:20:00")
    assert totals() == {**later, "A": 8, "C": 9, "D": 5}


def test_an_upsert_whose_later_window_cannot_be_told_is_refused() -> None:
    query = "SELECT window_start, item, SUM(price) FROM {} GROUP BY window_start, window_end, item".format(
        "TABLE(CUMULATE(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '10' MINUTES, INTERVAL '1' HOUR))"
    )
    columns = "window_start TIMESTAMP(3), item STRING, total DECIMAL(38, 2), PRIMARY KEY (item) NOT ENFORCED"
    formats = {"key__format": "csv", "value__format": "json"}
    sink = topic_table("results", columns, "r", SERVERS, "upsert-kafka", **formats)
    text = planned(table("bid", BID_COLUMNS, "/h"), sink, query)
    with pytest.raises(BackfillError, match="may already have a row of a later window"):
        plan(BackfillRequest(JobSpec(text), from_=datetime(2020, 4, 15)))
    plan(BackfillRequest(JobSpec(text)))


@pytest.mark.nightly
@pytest.mark.slow
def test_windows_over_the_timestamp_of_the_records(
    run: Run, spark: SparkSession, broker: Broker, results: Path
) -> None:
    jvm = spark._jvm
    topic = broker.topic(jvm)
    noon = int(datetime.fromisoformat("2020-04-15T08:09:59.999+00:00").timestamp() * 1000)
    broker.send(jvm, topic, [(None, f'{{"price":{price}}}') for price in (1, 2, 4)], millis=noon)
    columns = "price DECIMAL(10, 2), bidtime TIMESTAMP(3) METADATA FROM 'timestamp', WATERMARK FOR bidtime AS bidtime"
    source = topic_table("bid", columns, topic, broker.servers, format="json")
    run(planned(source, table("results", SUM_COLUMNS, results)), settings=UTC)
    assert [line.rpartition(",")[2] for line in lines(results)] == ["1", "6"]


SERVERS = "broker:9092"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scan__startup__mode": "sometimes"}, "scan.startup.mode = 'sometimes' does not define the history"),
        ({"scan__bounded__mode": "group-offsets"}, "scan.bounded.mode = 'group-offsets' does not define"),
        ({"scan__startup__mode": "timestamp"}, "Write milliseconds since 1970"),
        (
            {"scan__bounded__mode": "specific-offsets", "scan__bounded__specific_offsets": "0"},
            "Write offsets as in partition:0,offset",
        ),
        ({"topic_pattern": "b.*"}, "does not support the option topic-pattern = 'b.*'"),
        ({"key__format": "json"}, "a key.format but no key.fields"),
        ({"key__fields": "item"}, "key.fields but no key.format"),
        ({"key__format": "raw", "key__fields": "item"}, "declares format raw"),
        (
            {"key__format": "csv", "key__fields": "item", "key__fields_prefix": "k_"},
            "all key fields must start with this prefix",
        ),
        ({"value__fields_include": "NONE"}, "Write ALL or EXCEPT_KEY"),
        ({"properties__interceptor__classes": "x"}, "may change records"),
        ({"format": "avro"}, "declares format avro"),
        ({"connector": "upsert-kafka"}, "an upsert-kafka table, whose records replace each other"),
    ],
)
def test_options_of_a_source_that_are_not_read_exactly(options: dict[str, str], words: str) -> None:
    with pytest.raises(BackfillError, match=words):
        plan(
            BackfillRequest(
                JobSpec(planned(topic_table("bid", BID_COLUMNS, "b", SERVERS, **{"format": "json"} | options)))
            )
        )


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        (KEYED, {"connector": "kafka", "format": "json"}, "where rows cannot be replaced"),
        (KEYED, {"key__format": "json", "value__format": "json"}, "without a PRIMARY KEY"),
        (f"{KEYED}, {KEYS}", {"value__format": "json"}, "no option key.format"),
        (
            f"{KEYED}, h TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', {KEYS}",
            {"key__format": "json", "value__format": "json"},
            "a backfill cannot write the metadata column h",
        ),
    ],
)
def test_sinks_that_are_refused(columns: str, options: dict[str, str], words: str) -> None:
    sink = topic_table("results", columns, "r", SERVERS, **{"connector": "upsert-kafka"} | options)
    with pytest.raises(BackfillError, match=words):
        plan(BackfillRequest(JobSpec(planned(table("bid", BID_COLUMNS, "/h"), sink, BY_ITEM))))


def test_a_metadata_column_has_the_type_of_the_metadata() -> None:
    def source(column: str) -> str:
        return planned(
            topic_table("bid", f"{BID_COLUMNS}, {column}", "b", SERVERS, format="json"),
            query=SUM.replace("SUM(price)", "SUM(price) FILTER (WHERE x IS NOT NULL)"),
        )

    plan(BackfillRequest(JobSpec(source("x TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'"))))
    plan(BackfillRequest(JobSpec(source("x TIMESTAMP(3) METADATA FROM 'timestamp'"), settings=UTC)))
    for column, words in (
        ("x TIMESTAMP(3) METADATA FROM 'timestamp'", "SET 'table.local-time-zone' = 'UTC'"),
        ("x BIGINT METADATA FROM 'timestamp'", r"Declare the column as TIMESTAMP_LTZ\(3\)"),
        ("x MAP<STRING, BYTES> METADATA FROM 'headers'", "does not support the metadata column x"),
    ):
        with pytest.raises(BackfillError, match=words):
            plan(BackfillRequest(JobSpec(source(column))))


def test_secrets_stay_placeholders_in_the_plan() -> None:
    jaas = 'x.PlainLoginModule required username="u" password="${conn.k.password}";'
    text = planned(topic_table("bid", BID_COLUMNS, "b", SERVERS, format="json", properties__sasl__jaas__config=jaas))
    (write,) = plan(BackfillRequest(JobSpec(text))).work.writes
    (read,) = reads_of(write.inputs[0])
    assert "password" not in repr(read.source) + read.source.place


@pytest.mark.nightly
@pytest.mark.slow
def test_rows_arrive_by_partition_and_offset(run: Run, spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """A key's rows in one partition stand in its order; in two, nothing tells which a job meets first."""
    jvm = spark._jvm
    topic = broker.topic(jvm, 2)
    broker.send(jvm, topic, [(None, f'{{"k":"a","v":{value}}}') for value in (1, 2, 3)])
    broker.send(jvm, topic, [(None, f'{{"k":"b","v":{value}}}') for value in (4, 5)], partition=1)
    columns = f"k STRING, v INT, nr {META['nr']}, part {META['part']}"
    source = topic_table(
        "t", columns, topic, broker.servers, format="json", scan__startup__mode="earliest-offset",
        scan__bounded__mode="latest-offset",
    )  # fmt: skip
    insert = (
        "INSERT INTO o SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY PROCTIME() "
        "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t"
    )
    text = script(source, table("o", "k STRING, s INT", tmp_path / "out"), insert)
    run(text)
    assert lines(tmp_path / "out") == ["a,1", "a,3", "a,5", "b,4", "b,9"]
    broker.send(jvm, topic, [(None, '{"k":"a","v":6}')], partition=1)
    with pytest.raises(
        BackfillError, match=r"the order of arrival is unknown for some rows of a key.*--order-by t=COLUMN"
    ):
        run(text)
    with pytest.raises(BackfillError, match=r"the order of arrival is unknown for some rows of a key"):
        run(text, order_by={"t": "nr"})
    run(text, order_by={"t": "nr,part"})
    assert lines(tmp_path / "out") == ["a,1", "a,3", "a,5", "a,9", "b,4", "b,9"]
