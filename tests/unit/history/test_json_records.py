"""Records that pyarrow reads, and records that it leaves to the strict reader."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from airflow_flinkcompat.history import json_records
from airflow_flinkcompat.plan.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, DataType, timestamp, timestamp_ltz

FIELDS = (
    ("a", INT),
    ("s", STRING),
    ("d", DataType("DECIMAL", (6, 2))),
    ("g", DOUBLE),
    ("b", BOOLEAN),
    ("day", DataType("DATE")),
    ("t", timestamp(3)),
    ("z", timestamp_ltz(3)),
)


def read(records: list[bytes], fields: tuple[tuple[str, DataType], ...] = FIELDS) -> list[dict[str, object]]:
    parser = json_records.JsonRecords(fields, " ")
    batch = pa.record_batch([pa.array(range(len(records))), pa.array(records, pa.binary())], ["id", "value"])
    (made,) = parser.read([batch.slice(0)])
    found: list[dict[str, object]] = made.to_pylist()
    return found


@pytest.mark.parametrize(
    ("record", "values"),
    [
        ("{}", {}),
        (' { "a" : 1 } \n', {"a": 1}),
        ('{"a":-12,"d":"7.50","s":"7.50"}', {"a": -12, "d": Decimal("7.50"), "s": "7.50"}),
        ('{"\\u0061":1,"s":"\\u0041\\ud83d\\ude00"}', {"a": 1, "s": "A\U0001f600"}),
        ('{"s":"é\\n\\"","extra":{"x":[1,{"y":null}]},"a":null}', {"s": 'é\n"'}),
        ('{"d":-12.5}', {"d": Decimal("-12.50")}),
        ('{"d":1e2}', {"d": Decimal("100.00")}),
        ('{"g":1.5e-3,"b":true}', {"g": 0.0015, "b": True}),
        ('{"b":false,"day":"2024-02-29"}', {"b": False, "day": date(2024, 2, 29)}),
        ('{"t":"2024-01-01 10:11:12.1239"}', {"t": datetime(2024, 1, 1, 10, 11, 12, 123_000)}),
        ('{"z":"1969-12-31 23:59:59.999Z"}', {"z": datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)}),
    ],
)
def test_plain_records(record: str, values: dict[str, object]) -> None:
    expected = {f"v{i}": values.get(name) for i, (name, _) in enumerate(FIELDS)}
    assert read([b"[]", record.encode()])[1] == {"id": 1, "value": None, **expected}


@pytest.mark.parametrize(
    "record",
    [
        "", "null", "[]", '[{"a":1}]', "{", '{"a":1', '{"a":1}x', '{"a":1}{"a":2}', '{"a":1,}', '{"a":1,"a":2}',
        '{"a":2147483648}', '{"a":1.0}', '{"a":01}', '{"a":true}', '{"a":{}}', '{"s":[1]}', '{"s":"[1"}',
        '{"s":"\\ud83d"}', '{"a":1,"\\u0061":2}',
        '{"a":"1"}', '{"s":1}', '{"b":"true"}', '{"d":1.234}', '{"d":12345}',
        '{"d":1e9}', '{"g":1e400}', '{"b":1}',
        '{"day":"2023-02-29"}', '{"t":"2024-01-01T00:00:00"}', '{"t":"2024-01-01 24:00:00"}',
        '{"z":"2024-01-01 00:00:00"}',
        '{"extra":tru}', '{"extra":{"x":1,}}', '{"extra":[1}', "\ufeff{}",
        "{}null{}", "{}1{}", "{}{}{}", "{}\0{}",
        '{"x":NaN}', '{"x":[-Infinity]}', '{"g":Inf}', '{"x":"\t"}', '{"x":1\0}',
        '{"x":' + "1" * 1001 + "}", '{"x":' + "[" * 1001 + "]" * 1001 + "}", '{"' + "x" * 50_001 + '":1}',
    ],
)  # fmt: skip
def test_other_records_keep_their_bytes(record: str) -> None:
    assert read([record.encode()]) == [
        {"id": 0, "value": record.encode(), **{f"v{i}": None for i, _ in enumerate(FIELDS)}}
    ]


def test_a_text_outside_of_utf_8_is_not_plain() -> None:
    for text in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xe2\x82", b"\xf5\x80\x80\x80"):
        (row,) = read([b'{"x":"' + text + b'"}'])
        assert row["value"] is not None


def test_a_rejected_record_takes_few_neighbours_to_the_strict_reader() -> None:
    records = [b'{"a":%d}' % number for number in range(5000)]
    records[2000] = b'{"a":true}'
    batch = pa.record_batch([pa.array(records, pa.binary())], ["value"])
    rows = pa.Table.from_batches(json_records.JsonRecords(FIELDS, " ").read([batch])).to_pylist()
    read = [row["v0"] for row in rows if row["value"] is None]
    assert read == [number for number in range(5000) if not 1875 <= number < 2187]
    assert [row["value"] for row in rows if row["value"] is not None] == records[1875:2187]


@pytest.mark.parametrize(
    ("first", "second"),
    [("{}{}", ""), ("{}{}", "{"), ("{}null{}", "{}"), ('{"x":[{}', "{}]}"), ('{"x":"}', '{"}'), ("{} {", "}")],
)
def test_two_faults_do_not_cancel_each_other(first: str, second: str) -> None:
    rows = read([first.encode(), second.encode()])
    assert rows[0]["value"] == first.encode()
    assert rows[1]["value"] == second.encode()


def test_a_decimal_of_38_digits() -> None:
    fields = (("d", DataType("DECIMAL", (38, 18))),)
    digits = "12345678901234567890.123456789012345678"
    good, large = (
        read([f'{{"d":{digits}}}'.encode()], fields),
        read([b'{"d":1969002455009902487443812807081839008}'], fields),
    )
    assert (good[0]["v0"], good[0]["value"]) == (Decimal(digits), None)
    assert (large[0]["v0"], large[0]["value"] is None) == (None, False)


def test_a_field_that_is_not_null() -> None:
    fields = (("a", BIGINT.with_nullability(False)),)
    rows = read([b'{"a":1}', b"{}", b'{"a":null}'], fields)
    assert [(row["v0"], row["value"]) for row in rows] == [(1, None), (None, b"{}"), (None, b'{"a":null}')]
