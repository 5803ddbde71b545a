"""A topic that is parsed once: every value of a plain record is the value of the strict reader."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.kafka import KafkaSource, Position
from airflow_flinkcompat.backfill.connectors.registry import reader
from airflow_flinkcompat.backfill.formats import text_reader
from airflow_flinkcompat.backfill.formats.text import JsonFormat, decode
from airflow_flinkcompat.backfill.spark import pinned_snapshots
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.history.json_records import JsonRecords
from airflow_flinkcompat.history.parsed_topic import ParsedTopic
from airflow_flinkcompat.plan.nodes import Table
from dev.services.kafka import Broker, Record, kafka_broker
from tests.support.backfill.topics import topic_table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (
    "s STRING, ch CHAR(3), tiny TINYINT, small SMALLINT, i INT, l BIGINT, d DECIMAL(10, 2), e DECIMAL(38, 18), "
    "w DECIMAL(18, 0), f FLOAT, g DOUBLE, b BOOLEAN, day DATE, at0 TIMESTAMP(0), at3 TIMESTAMP(3), at6 TIMESTAMP(6), "
    "z TIMESTAMP_LTZ(3), `n n` INT, `ü` BIGINT"
)
NUMBERS = (
    "0", "-0", "7", "-7", "127", "-128", "128", "32768", "2147483647", "-2147483648", "2147483648", "99999999999",
    "9223372036854775807", "9223372036854775808", "123456789012345678", "1234567890123456789", "1.5", "-1.50", "1.005",
    "0.1", "99999999.99", "100000000.00", "1e2", "1E+2", "1.5e-3", "1e400", "1e38", "3.4028235e38", "1e-45", "4.9e-324",
    "1e-400", "0.30000001192092896", "16777217", "2.2250738585072014e-308", "01", "1.", ".5", "+1", "1e", "--1", "NaN",
    "0.000000000000000001", "12345678901234567890.123456789012345678", "-0.0",
)  # fmt: skip
TIMES = (
    "2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "0000-01-01", "0001-01-01", "9999-12-31", "2024-13-01",
    "2024-1-1", "10000-01-01", "1969-12-31 23:59:59.999999999", "2024-01-01 00:00:00", "2024-01-01T00:00:00",
    "2024-01-01 00:00:00.", "2024-01-01 00:00:00.1", "2024-01-01 00:00:00.123456", "2024-01-01 00:00:00.1234567891",
    "2024-01-01 24:00:00", "2024-01-01 23:59:60", "2024-01-01 23:59:59.999Z", "2024-01-01T23:59:59.999Z",
    "2024-01-01 00:00:00Z", "1582-10-10 10:00:00Z", "2024-01-01 00:00", "2024-01-01 00:00:00+01:00",
    "0001-01-01 00:00:00",
)  # fmt: skip
TEXTS = (
    "", "x", "true", "false", "TRUE", " true", "null", "é", "日本", "😀", "a,b", "{", "[1.5]", "[x", "1 2", " 7 ",
    "\\n", '\\"', "\\\\", "\\u0041", "\\ud83d\\ude00", "\\ud83d", "\\x", "a\\/b", "\\b\\f\\r\\t", "\t", "\x7f",
    "\\u0000", "'",
    "7",
)  # fmt: skip
NESTED = (
    "{}", "[]", '{"x":1}', '{"x":{"y":[1,2,{"z":null}]}}', "[1,[2,[3]]]", '{"x":1.5}', "[1,]", '{"x"}', '{"x":1,}',
    "[" * 70 + "]" * 70, '["a" "b"]', '{"s":"in","s":"out"}', '{"x":tru}', "[01]", '{"a\\u0041":[{}]}', "[nul]",
)  # fmt: skip
WORDS = ("true", "false", "null", "True", "nul", "truefalse", "undefined")
SPACES = ("", "", "", " ", "\n", "\t \r", "\v", "\u00a0", "/**/")
FORMATS = (JsonFormat(), JsonFormat(separator="T"))


def table_of(columns: str, topic: str = "t", servers: str = "localhost:9", **options: str) -> Table:
    script = topic_table("t", columns, topic, servers, **{"format": "json", **options})
    sink = "CREATE TABLE o (n BIGINT) WITH ('connector' = 'print')"
    side = Side(f"{script}; {sink}; INSERT INTO o SELECT COUNT(*) FROM t;", engine="flink")
    return next(each for each in side.program.tables if each.path[2] == "t")


def record(draw: random.Random, names: list[str]) -> bytes:
    """A record that is plain, odd or damaged."""
    odd = draw.random() < 0.5
    spaces = SPACES if odd and draw.random() < 0.2 else SPACES[:4]

    def value(name: str) -> str:
        pool = draw.choice((NUMBERS, TIMES, TEXTS, NESTED, WORDS)) if odd else likely(name)
        text = number() if pool is NUMBERS and draw.random() < 0.3 else draw.choice(pool)
        return f'"{text}"' if pool in (TIMES, TEXTS) or draw.random() < (0.2 if odd else 0.05) else text

    def number() -> str:
        """A number of up to 45 digits, with any exponent."""
        digits = [str(draw.randrange(10 ** draw.randrange(1, 23))) for _ in range(2)]
        exponent = draw.choice(("", "", f"e{draw.randrange(-330, 310)}"))
        return draw.choice(("", "-")) + draw.choice((digits[0], ".".join(digits))) + exponent

    def key(name: str) -> str:
        return f"\\u{ord(name[0]):04x}{name[1:]}" if odd and draw.random() < 0.05 else name

    def likely(name: str) -> tuple[str, ...]:
        if name in ("s", "ch", "extra"):
            return TEXTS[1:3]
        if name == "b":
            return WORDS[:3]
        return TIMES if name.startswith(("day", "at", "z")) else NUMBERS

    keys = draw.sample([*names, "extra"], draw.randrange(1, 6)) if odd else draw.sample(names, draw.randrange(4))
    if odd and draw.random() < 0.1:
        keys.append(draw.choice(keys))
    space = lambda: draw.choice(spaces)  # noqa: E731
    members = [f'{space()}"{key(name)}"{space()}:{space()}{value(name)}{space()}' for name in keys]
    made = f"{space()}{{{','.join(members)}}}{space()}".encode()
    if odd and draw.random() < 0.15:
        at = draw.randrange(len(made))
        made = draw.choice((made[:at], made[:at] + bytes([draw.randrange(256)]) + made[at + 1 :], b"[" + made + b"]"))
    return made


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_a_plain_record_has_the_values_of_the_strict_reader(spark: SparkSession, seed: int) -> None:
    draw, table, format = random.Random(seed), table_of(COLUMNS), FORMATS[seed % 2]
    columns = table.stored
    names = [column.name for column in columns]
    rows = [(i, bytearray(record(draw, names))) for i in range(20_000)]
    parser = JsonRecords(tuple((column.name, column.type) for column in columns), format.separator)
    records = spark.createDataFrame(rows, "id INT, value BINARY").repartition(2).persist()

    def one_by_one(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return parser.read(batch.slice(i, 1) for batch in batches for i in range(batch.num_rows))

    # A record that is not plain takes its neighbours to the strict reader, so only two of these remain.
    plain = records.mapInArrow(one_by_one, parser.schema("id INT"))
    plain = plain.where("value IS NULL OR id % 10000 = 0").select("id")
    mixed = records.join(plain, "id").repartition(2)
    parsed = mixed.mapInArrow(parser.read, parser.schema("id INT")).where("value IS NULL").drop("value")
    both = parsed.join(records, "id").persist()
    strict = text_reader.messages(both, "value", "t", format, tuple(names), "t")
    # As texts, -0.0 and 0.0 differ.
    tests = [
        f"CAST(v{i} AS STRING) <=> CAST({decode(format, column, f't{i}', table)} AS STRING)"
        for i, column in enumerate(columns)
    ]
    compared = strict.selectExpr("id", "value", *(f"{test} AS e{i}" for i, test in enumerate(tests)))
    wrong = compared.where(" OR ".join(f"NOT e{i}" for i, _ in enumerate(columns))).limit(5).collect()
    assert [(bytes(row["value"]), [names[i] for i, _ in enumerate(names) if not row[f"e{i}"]]) for row in wrong] == []
    # Each plain record is one row, and common records are plain.
    assert compared.count() == both.count() > 2_000
    read = both.agg(*(F.count(f"v{i}") for i, _ in enumerate(names))).first()
    assert read is not None
    assert [name for name, found in zip(names, read, strict=True) if not found] == []
    records.unpersist()
    both.unpersist()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


RECORDS = (
    '{"a":1,"b":"x"}', "{}", '{"a":null,"b":null}', '{"a":2}', '{"a":3,"a":4,"b":"y"}', '[{"a":5},{"b":"z","a":6}]',
    "[]", '{"b":{"k": 1},"a":7}', '{"b":"\\u00e9","c":"2020-01-01 00:00:00.1239","a":8}', None, '{"d":1.5,"a":9}',
    '{"d":1.234567890123,"a":10}', '{"a":"11","extra":{"deep":[1.5]}}', ' {"a" : 12 , "b" : "é\\n" } ',
    '{"a":13,"b":6}',
)  # fmt: skip
DAMAGED = (
    "{",
    "",
    '{"a":99999999999}',
    '{"a":true}',
    b'{"b":"\xff"}',
    "[null]",
    '{"c":"2020-01-01"}',
    "null",
    '{"a":1}x',
)
ROW = "a INT, b STRING, c TIMESTAMP(3), d DECIMAL(10, 3)"


def by_both(spark: SparkSession, table: Table, read: Position) -> tuple[list[object], list[object]]:
    """Rows of the strict reader, and the rows that are parsed once."""
    place = ["m_partition", "m_offset"]
    values = [f"f{i}" for i, _ in enumerate(table.stored)]
    strict, once = replace(KafkaSource.of(table), end=read), replace(ParsedTopic.of(table), end=read)

    def sorted_rows(rows: DataFrame) -> list[object]:
        return sorted(map(str, rows.collect()))

    decoded = [f"{strict.decode(column, f'f{i}', table)} AS f{i}" for i, column in enumerate(table.stored)]
    expected = sorted_rows(reader(spark, strict).rows().selectExpr(*decoded, *place))
    with pinned_snapshots(spark):
        found = reader(spark, once).rows().select(*values, *place)
        assert "InMemoryRelation" in found._jdf.queryExecution().withCachedData().toString()
        assert sorted_rows(found) == sorted_rows(found)
        return expected, sorted_rows(found)


@pytest.mark.slow
@pytest.mark.parametrize("ignored", mostly_nightly(["true", "false"]))
def test_a_topic_has_the_rows_of_the_strict_reader(spark: SparkSession, broker: Broker, ignored: str) -> None:
    jvm, end = spark._jvm, Position("latest")
    topic = broker.topic(jvm, 2)
    records: list[Record] = [(None, each) for each in RECORDS + (DAMAGED if ignored == "true" else ())]
    broker.send(jvm, topic, records)
    broker.send(jvm, topic, records[::-1], partition=1)
    options = {"json__ignore_parse_errors": ignored, "scan__startup__mode": "earliest-offset"}
    expected, found = by_both(spark, table_of(ROW, topic, broker.servers, **options), end)
    assert found == expected
    assert len(found) > 20


@pytest.mark.slow
def test_records_of_another_format_are_parsed_once(spark: SparkSession, broker: Broker) -> None:
    jvm, end = spark._jvm, Position("latest")
    topic = broker.topic(jvm, 2)
    records: list[Record] = [
        (None, each)
        for each in ("1,x,2020-01-01 00:00:00.1239,1.5", "2,é,2021-01-01 00:00:00,2", None, "3,,1969-12-31 23:59:59,7")
    ]
    broker.send(jvm, topic, records)
    broker.send(jvm, topic, records[::-1], partition=1)
    table = table_of(ROW, topic, broker.servers, format="csv", scan__startup__mode="earliest-offset")
    expected, found = by_both(spark, table, end)
    assert found == expected
    assert len(found) == 6


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("value", DAMAGED)
def test_a_damaged_record_is_the_error_of_the_strict_reader(
    spark: SparkSession, broker: Broker, value: str | bytes
) -> None:
    jvm = spark._jvm
    topic = broker.topic(jvm)
    broker.send(jvm, topic, [(None, '{"a":1}'), (None, value)])
    table = table_of(ROW, topic, broker.servers, scan__startup__mode="earliest-offset")
    said = []
    for of in (KafkaSource.of(table), ParsedTopic.of(table)):
        with pinned_snapshots(spark):
            values = [f"{of.decode(column, f'f{i}', table)} AS f{i}" for i, column in enumerate(table.stored)]
            try:
                rows = reader(spark, of).rows().selectExpr(*values).collect()
                said.append(str(sorted(map(str, rows))))
            except Exception as error:
                said.append(str(sorted(set(re.findall(r"\[[A-Z]\w{5,}[.\w]*\] [^\n]{,60}", str(error))))))
    assert said[0] == said[1] != "[]"
