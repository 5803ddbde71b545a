"""Columns of rows at the limits of their types, and of damaged rows."""

from __future__ import annotations

import datetime
import struct

import numpy as np
import pyarrow as pa
import pytest

from airflow_flinkcompat.savepoint.arrow_columns import arrow_type, field_column, nested_column
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.binary_row import NULL, Field, field_writer, write_row
from airflow_flinkcompat.savepoint.compiled import readable
from airflow_flinkcompat.state.output import json_rows


def column(type: str, fields: list[Field]) -> list[object]:
    """The values of one column, from a row for each field."""
    rows = [write_row([field]) for field in fields]
    ends = np.cumsum([len(row) for row in rows])
    begins = ends - [len(row) for row in rows]
    found: list[object] = field_column(readable(b"".join(rows)), begins, ends, 1, 0, type).to_pylist()
    return found


def test_timestamps_at_the_ends_of_their_range() -> None:
    moments = [datetime.datetime(9999, 12, 31, 23, 59, 59), datetime.datetime(1, 1, 1), None]
    epoch = datetime.datetime(1970, 1, 1)
    for type in ("TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)"):
        write = field_writer(type)
        stored = [
            write(None if each is None else (each - epoch) // datetime.timedelta(microseconds=1)) for each in moments
        ]
        assert column(type, stored) == moments


def test_the_end_of_time_is_infinite_in_sql() -> None:
    """Flink sets timers for the largest number of milliseconds, which no time in microseconds can express."""
    for type in ("TIMESTAMP(3)", "TIMESTAMP(6)"):
        found = []
        for millis in ((1 << 63) - 1, -(1 << 63), (1 << 63) // 1000 + 1):
            number = struct.pack("<q", millis)
            stored = Field(False, number) if type == "TIMESTAMP(3)" else Field(False, bytes(8), number)
            row = write_row([stored])
            moments = field_column(readable(row), np.array([0]), np.array([len(row)]), 1, 0, type)
            found += json_rows(pa.table({"t": moments}))
        assert found == ['{"t": "infinity"}', '{"t": "-infinity"}', '{"t": "infinity"}']


def test_negative_numbers_of_every_width() -> None:
    for type, size in (
        ("TINYINT", "b"),
        ("SMALLINT", "h"),
        ("INT", "i"),
        ("BIGINT", "q"),
        ("INTERVAL YEAR TO MONTH", "i"),
    ):
        stored = [Field(False, struct.pack(f"<{size}", number).ljust(8, b"\0")) for number in (-3, 0, 100)]
        assert column(type, stored) == [-3, 0, 100]


@pytest.mark.parametrize("size", [0x88, 0xFF])
def test_an_inline_text_longer_than_its_word_is_damaged(size: int) -> None:
    with pytest.raises(SavepointUnreadable, match="begins or ends after the row"):
        column("STRING", [Field(False, b"x" * 7 + bytes([size]))])


def test_bytes_that_are_no_text_are_damaged() -> None:
    with pytest.raises(SavepointUnreadable, match="not valid UTF-8"):
        column("STRING", [Field(False, b"\xff\xfe" + bytes(5) + b"\x82")])


def row_field(inner: bytes) -> Field:
    """A field that contains a row."""
    return Field(False, struct.pack("<II", len(inner), 0), inner)


def test_a_field_of_a_row_that_is_a_field_of_a_row() -> None:
    number = field_writer("BIGINT")
    fields = [row_field(write_row([number(1), number(each)])) for each in (7, None)]
    rows = [write_row([number(5), field]) for field in (fields[0], NULL, fields[1])]
    ends = np.cumsum([len(row) for row in rows])
    begins = ends - [len(row) for row in rows]
    found = nested_column(readable(b"".join(rows)), begins, ends, 2, 1, (1, 2), "BIGINT")
    assert found.to_pylist() == [7, None, None]


def test_a_row_shorter_than_its_fields_is_damaged() -> None:
    row = write_row([row_field(bytes(8))])
    with pytest.raises(SavepointUnreadable, match="begins or ends after the row"):
        nested_column(readable(row), np.array([0]), np.array([len(row)]), 1, 0, (0, 1), "BIGINT")


def stored_array(width: int, elements: list[bytes | None], variable_part: bytes = b"") -> bytes:
    """An array as ``BinaryArrayData`` stores it."""
    nulls = bytearray((len(elements) + 31) // 32 * 4)
    for place, element in enumerate(elements):
        nulls[place >> 3] |= (element is None) << (place & 7)
    fixed = b"".join((element or b"").ljust(width, b"\0") for element in elements)
    return struct.pack("<i", len(elements)) + bytes(nulls) + fixed + variable_part


LONG_TEXT = b"a text of more than seven bytes"


@pytest.mark.parametrize(
    ("type", "stored", "value"),
    [
        ("ARRAY<BOOLEAN>", stored_array(1, [b"\1", None, b"\0"]), [True, None, False]),
        ("ARRAY<SMALLINT> NOT NULL", stored_array(2, [b"\xfd\xff", b"\2"]), [-3, 2]),
        ("ARRAY<INT>", stored_array(4, [struct.pack("<i", each) for each in range(40)]), list(range(40))),
        ("ARRAY<INT>", stored_array(4, []), []),
        (
            "ARRAY<STRING>",
            stored_array(8, [b"ab".ljust(7, b"\0") + b"\x82", None, struct.pack("<II", 31, 32)], LONG_TEXT),
            ["ab", None, LONG_TEXT.decode()],
        ),
        (
            "ARRAY<ARRAY<BIGINT>>",
            stored_array(8, [struct.pack("<II", 16, 16)], stored_array(8, [struct.pack("<q", -7)])),
            [[-7]],
        ),
        (
            "MAP<INT, BIGINT>",
            struct.pack("<i", 16) + stored_array(4, [b"\5", None]) + stored_array(8, [None, b"\7"]),
            [{"key": 5, "value": None}, {"key": None, "value": 7}],
        ),
        ("MULTISET<INT>", struct.pack("<i", 12) + stored_array(4, [b"\5"]) * 2, [{"key": 5, "value": 5}]),
        ("ROW<`a` BIGINT, `b``c` STRING>", write_row([field_writer("BIGINT")(1), NULL]), {"a": 1, "b`c": None}),
    ],
)  # fmt: skip
def test_nested_values(type: str, stored: bytes, value: object) -> None:
    fields = [row_field(stored), NULL, row_field(stored)]
    assert column(type, fields) == [value, None, value]


@pytest.mark.parametrize(
    ("type", "stored"),
    [
        ("ARRAY<INT>", b"\1\0"),
        ("ARRAY<BIGINT>", stored_array(4, [b"\1"] * 3)),
        ("ARRAY<INT>", struct.pack("<i", -1) + bytes(60)),
        ("ARRAY<STRING>", stored_array(8, [struct.pack("<II", 31, 32)], LONG_TEXT[:-20])),
        ("MAP<INT, INT>", struct.pack("<i", 999) + stored_array(4, [b"\1"]) * 2),
        ("MAP<INT, INT>", struct.pack("<i", 12) + stored_array(4, [b"\1"]) + stored_array(4, [])),
        ("ROW<`a` BIGINT>", bytes(8)),
    ],
)
def test_damaged_nested_values(type: str, stored: bytes) -> None:
    with pytest.raises(SavepointUnreadable, match="begins or ends after the row"):
        column(type, [row_field(stored)])


def test_a_row_whose_names_are_equal_in_sql_stays_bytes() -> None:
    assert arrow_type("ROW<`a` INT, `A` INT>") == pa.binary()
