"""Columns of rows at the limits of their types, and of damaged rows."""

from __future__ import annotations

import datetime
import struct

import numpy as np
import pyarrow as pa
import pytest

from airflow_flinkcompat.savepoint.arrow_columns import field_column, nested_column
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
