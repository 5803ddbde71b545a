"""Rows of accumulators whose keys become one, and fields that go on in other forms."""

from __future__ import annotations

import struct
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.exec_graph.layout import CallPart, Merges, NamedState, StateField, Stored
from airflow_flinkcompat.migration.entries import EntryUnion, scattered_entries
from airflow_flinkcompat.migration.fields import NotMigratable, row_change
from airflow_flinkcompat.migration.uniting import MERGE_ROWS
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, SavepointUnreadable
from airflow_flinkcompat.savepoint.binary_row import NULL, Field, decimal_field, field_form, read_row, write_row
from airflow_flinkcompat.savepoint.keyed_state import Entry
from dev.stored_rows import StoredRow, pack_entry, stored_rows, write_rows

LONGS = st.none() | st.integers(-(2**63), 2**63 - 1)


def long_field(number: int | None) -> Field:
    return NULL if number is None else Field(False, struct.pack("<q", number))


def text_field(text: str | None) -> Field:
    if text is None:
        return NULL
    content = text.encode()
    if len(content) <= 7:
        return Field(False, content.ljust(7, b"\0") + bytes([0x80 | len(content)]))
    return Field(False, struct.pack("<II", len(content), 0), content.ljust(-(-len(content) // 8) * 8, b"\0"))


def merged(field: StateField, one: Field, other: Field) -> Field:
    """Merge the rows of two entries with one key."""
    state = NamedState("sums", KeyedStateKind.VALUE, Stored("row", (field,)))
    rows = (write_rows([StoredRow(write_row([each]))], state) for each in (one, other))
    union = EntryUnion.of(2 * [(MERGE_ROWS, state)])
    (entry,) = scattered_entries(union(b"".join(pack_entry(Entry(0, b"key", row)) for row in rows)))
    ((row, _),) = stored_rows(entry.value, state)
    (found,) = read_row(row, [field_form(field.type)])
    return found


@given(LONGS, LONGS)
def test_sums_are_added_as_java_adds(one: int | None, other: int | None) -> None:
    found = merged(StateField("BIGINT", merges=Merges.ADDED), long_field(one), long_field(other))
    given_ = [each for each in (one, other) if each is not None]
    wrapped = (sum(given_) + 2**63) % 2**64 - 2**63
    assert found == long_field(wrapped if given_ else None)


@given(LONGS, LONGS)
def test_the_lesser_and_the_greater_number_is_left(one: int | None, other: int | None) -> None:
    given_ = [each for each in (one, other) if each is not None]
    for merges, best in ((Merges.LEAST, min), (Merges.GREATEST, max)):
        found = merged(StateField("BIGINT", merges=merges), long_field(one), long_field(other))
        assert found == long_field(best(given_) if given_ else None)


@given(st.text(max_size=12), st.text(max_size=12))
def test_texts_are_compared_by_their_bytes(one: str, other: str) -> None:
    found = merged(StateField("VARCHAR(2147483647)", merges=Merges.LEAST), text_field(one), text_field(other))
    assert found == text_field(min(one, other, key=str.encode))


@given(st.integers(-(10**37), 10**37), st.integers(-(10**37), 10**37))
def test_decimals_are_added_exactly(one: int, other: int) -> None:
    field = StateField("DECIMAL(38, 2)", merges=Merges.ADDED)
    assert merged(field, decimal_field(one), decimal_field(other)) == decimal_field(one + other)


def test_a_sum_that_its_type_does_not_take_is_refused() -> None:
    field = StateField("DECIMAL(38, 0)", words="SUM(b)", merges=Merges.ADDED)
    with pytest.raises(NotMigratable, match="of several keys exceeds its type"):
        merged(field, decimal_field(10**38 - 1), decimal_field(1))


def test_what_no_merging_is_known_of_must_be_equal() -> None:
    field = StateField("BIGINT", words="FIRST_VALUE(b)")
    assert merged(field, long_field(1), long_field(1)) == long_field(1)
    with pytest.raises(NotMigratable, match="FIRST_VALUE"):
        merged(field, long_field(1), long_field(2))


@given(st.integers(-(2**31), 2**31 - 1))
def test_a_longer_integer_is_the_same_number(number: int) -> None:
    change = row_change([StateField("INT", "b")], [StateField("BIGINT", "b")], [0])
    assert change is not None
    old = write_row([Field(False, struct.pack("<ixxxx", number))])
    assert change(old) == write_row([long_field(number)])


@given(st.integers(-(10**18) + 1, 10**18 - 1))
def test_a_decimal_of_more_digits_is_the_same_number(number: int) -> None:
    change = row_change([StateField("DECIMAL(18, 2)", "b")], [StateField("DECIMAL(30, 2)", "b")], [0])
    assert change is not None
    (found,) = read_row(change(write_row([long_field(number)])), [field_form("DECIMAL(30, 2)")])
    assert found.variable_part is not None
    length = int.from_bytes(found.word[:4], "little")
    assert Decimal(int.from_bytes(found.variable_part[:length], "big", signed=True)) == number


@pytest.mark.parametrize(
    ("total", "count", "as_sum"), [(None, 0, None), (0, 0, None), (0, 3, 0), (7, 2, 7)], ids=["null", "none", "0", "7"]
)
def test_a_sum_of_no_values_is_null_or_zero_by_its_function(total: int | None, count: int, as_sum: int | None) -> None:
    with_null, with_zero, counted = (
        StateField("BIGINT", CallPart(function, "b", part))
        for function, part in (("SUM", "sum"), ("SUM0", "sum"), ("COUNT", "count"))
    )
    to_zero = row_change([with_null], [with_zero], [0])
    to_null = row_change([with_zero, counted], [with_null], [0])
    assert to_zero is not None
    assert to_null is not None
    assert to_zero(write_row([long_field(total)])) == write_row([long_field(total or 0)])
    assert to_null(write_row([long_field(total or 0), long_field(count)])) == write_row([long_field(as_sum)])


SPREAD = StateField("ROW<`n` BIGINT, `mean` DOUBLE, `m2` DOUBLE>", CallPart("WELFORD_M2", "b", "spread"), "VAR(b)")
BEGUN = StateField("BIGINT NOT NULL", 7, "n", constant=1)


def spread(values: list[int] | list[float], type: str) -> tuple[int, float, float]:
    """Number, mean and spread that are computed from stored sums."""
    number = struct.Struct("<q" if type == "BIGINT" else "<d")
    sums = [sum(value * value for value in values), sum(values)]
    old = (
        StateField(type, CallPart("SUM", "b * b", "sum", square_of="b")),
        StateField(type, CallPart("SUM", "b", "sum")),
        StateField("BIGINT", CallPart("COUNT", "b", "count")),
    )
    stored = [Field(False, number.pack(each)) if values else NULL for each in sums]
    change = row_change(old, (BEGUN, SPREAD), (None, 0))
    assert change is not None
    one, made = read_row(change(write_row([*stored, long_field(len(values))])), [*map(field_form, ("BIGINT", "ROW"))])
    assert (one, made.null, made.variable_part and made.variable_part[:8]) == (long_field(1), False, bytes(8))
    assert made.variable_part is not None
    found: tuple[int, float, float] = struct.unpack("<qdd", made.variable_part[8:])
    return found


@given(st.lists(st.integers(-(10**6), 10**6), max_size=50))
def test_a_spread_of_integers_is_exact(values: list[int]) -> None:
    number, mean, square = spread(values, "BIGINT")
    assert number == len(values)
    if not values:
        assert (mean, square) == (0, 0)
        return
    exact = sum(Fraction(value) ** 2 for value in values) - Fraction(sum(values)) ** 2 / len(values)
    assert mean == sum(values) / len(values)
    assert square == pytest.approx(float(exact), rel=1e-12)


@given(st.lists(st.floats(-1000, 1000), min_size=1, max_size=50))
def test_a_spread_of_reals_is_that_of_the_sums(values: list[float]) -> None:
    number, mean, square = spread(values, "DOUBLE")
    assert (number, mean) == (len(values), sum(values) / len(values))
    assert square >= 0
    assert square == pytest.approx(sum((value - mean) ** 2 for value in values), abs=1e-6)


def test_a_sum_of_squares_that_overflowed_is_an_error() -> None:
    old = (
        StateField("BIGINT", CallPart("SUM", "b * b", "sum", square_of="b")),
        StateField("BIGINT", CallPart("SUM", "b", "sum")),
        StateField("BIGINT", CallPart("COUNT", "b", "count")),
    )
    change = row_change(old, (SPREAD,), (0,))
    assert change is not None
    with pytest.raises(SavepointUnreadable, match="it exceeded BIGINT"):
        change(write_row([*map(long_field, (3, 10, 2))]))
