"""Columns of stored rows and values as Arrow arrays, copied by compiled loops."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.binary_row import (
    FieldForm,
    field_form,
    named_type,
    null_bytes,
    split_type,
    type_arguments,
)
from airflow_flinkcompat.savepoint.column_loops import (
    NOT_ROWS,
    big_endian_longs,
    concatenated_texts,
    copy_elements,
    element_counts,
    field_words,
    fixed_parts,
    gather_parts,
    little_endian_decimals,
    variable_parts,
)
from airflow_flinkcompat.savepoint.compiled import numbers, writable, zeros

Places = Any
"""Offsets of the rows of a batch, a numpy array of 64-bit integers."""
_NUMBERS: Mapping[str, tuple[int, Any, Any]] = {
    "BOOLEAN": (1, np.int8, pa.bool_()),
    "TINYINT": (1, np.int8, pa.int8()),
    "SMALLINT": (2, np.int16, pa.int16()),
    "INT": (4, np.int32, pa.int32()),
    "INTEGER": (4, np.int32, pa.int32()),
    "BIGINT": (8, np.int64, pa.int64()),
    "INTERVAL": (8, np.int64, pa.int64()),
    "FLOAT": (4, np.int32, pa.float32()),
    "DOUBLE": (8, np.int64, pa.float64()),
    "DATE": (4, np.int32, pa.date32()),
    "TIME": (4, np.int32, pa.time32("ms")),
}
"""Size in bytes of a number that is stored outside a row, its numpy type, and its Arrow type."""
_TEXTS = frozenset({"CHAR", "VARCHAR", "STRING"})
_MILLIS, MICROS = 3, 6
NANOSECONDS = "NANOSECONDS"
"""Type of a column with the digits of a timestamp after the sixth, which the timestamp itself lacks."""
_LARGEST = (1 << 31) - 1
INFINITE = (1 << 63) - 1
"""The number that DuckDB reads as an infinite time. Flink stores it for the end of time."""
_LAST_MILLI = INFINITE // 1000 - 1
"""The last millisecond of a time in microseconds, in which DuckDB calculates."""
_MONTHS = re.compile("INTERVAL (YEAR|MONTH)")


def arrow_type(type: str) -> pa.DataType:
    """The Arrow type of a type in Flink's spelling; binary for unknown types."""
    root, precision, scale = split_type(type)
    match _parts_of_type(type):
        case [(_, element)] if root == "ARRAY":
            return pa.list_(arrow_type(element))
        case [*fields] if fields:
            row = pa.struct([(name, arrow_type(each)) for name, each in fields])
            return row if root == "ROW" else pa.list_(row)
    if root in _NUMBERS:
        return _NUMBERS[root][2]
    if root in _TEXTS:
        return pa.string()
    if root == NANOSECONDS:
        return pa.int64()
    if root == "DECIMAL":
        return pa.decimal128(10 if precision is None else precision, scale)
    if root.startswith("TIMESTAMP"):
        digits = MICROS if precision is None else precision
        # Nanoseconds of 64 bits end in 2262, so that digits after the sixth are cut.
        unit = "ms" if digits <= _MILLIS else "us"
        return pa.timestamp(unit, "UTC" if "LTZ" in root or "LOCAL TIME ZONE" in type else None)
    return pa.binary()


def _parts_of_type(type: str) -> list[tuple[str, str]]:
    """Names and types of the parts of an ARRAY, a MAP, a MULTISET or a ROW; none for other types."""
    root, arguments = split_type(type)[0], type_arguments(type) if "<" in type else []
    match root, arguments:
        case "ARRAY", [element]:
            return [("element", element)]
        case "MAP", [key, value]:
            return [("key", key), ("value", value)]
        case "MULTISET", [key]:
            return [("key", key), ("value", "INT")]
        case "ROW", [*fields] if all(each.startswith("`") for each in fields):
            named = [named_type(each) for each in fields]
            # Names in SQL do not depend on upper and lower case.
            return named if len({name.lower() for name, _ in named}) == len(named) else []
    return []


def field_column(source: memoryview, rows: Places, ends: Places, arity: int, field: int, type: str) -> pa.Array:
    """Read a field of stored rows.

    ``rows``, ``ends``: begin and end of each row. ``arity``: number of fields of a row.
    """
    begins, row_ends = numbers(rows), numbers(ends)
    words, nulls = writable(8 * len(rows)), writable(len(rows))
    field_words(source, begins, null_bytes(arity), field, words, nulls)
    return _values(source, begins, row_ends, words, nulls, type)


def _values(
    source: memoryview, begins: list[int], row_ends: list[int], words: memoryview, nulls: memoryview, type: str
) -> pa.Array:
    """Read fields of rows or elements of arrays, whose eight bytes and NULL bits are known."""
    count, form = len(begins), FieldForm.TIMESTAMP if type == NANOSECONDS else field_form(type)
    missing = np.asarray(nulls, np.uint8) > 0
    if form is FieldForm.WORD:
        return _of_longs(np.frombuffer(words, np.int64), missing, type)
    found, sizes = zeros(count), zeros(count)
    if form is FieldForm.TIMESTAMP:
        total = fixed_parts(begins, row_ends, words, nulls, 8, found)
        _require(total)
        millis = writable(8 * count)
        gather_parts(source, found, 8, millis)
        nanos = np.frombuffer(words, np.uint32)[::2].astype(np.int64)
        if type == NANOSECONDS:
            return pa.array(nanos % 1000, mask=missing)
        return _of_moments(np.frombuffer(millis, np.int64), nanos, missing, type)
    total = variable_parts(begins, row_ends, words, nulls, form is FieldForm.TEXT, found, sizes)
    _require(total)
    if _parts_of_type(type):
        present = ~missing
        begins_of_parts, sizes_of_parts = (np.asarray(each, np.int64)[present] for each in (found, sizes))
        return spread(_nested(source, begins_of_parts, sizes_of_parts, type), present)
    if form is FieldForm.DECIMAL:
        out = writable(16 * count)
        little_endian_decimals(source, found, sizes, out)
        return pa.Array.from_buffers(arrow_type(type), count, [_validity(missing), pa.py_buffer(out)])
    return _of_texts(source, words, found, sizes, total, missing, type)


def _nested(source: memoryview, begins: Places, sizes: Places, type: str) -> pa.Array:
    """Read nested values. A MAP becomes a list of entries, because its keys may be NULL."""
    (root, _, _), parts = split_type(type), _parts_of_type(type)
    wanted = arrow_type(type)
    if root == "ROW":
        if np.any(sizes < null_bytes(len(parts)) + 8 * len(parts)):
            _require(NOT_ROWS)
        fields = [
            field_column(source, begins, begins + sizes, len(parts), place, each)
            for place, (_, each) in enumerate(parts)
        ]
        return pa.StructArray.from_arrays(fields, fields=list(wanted))
    if root == "ARRAY":
        offsets, elements = _elements(source, begins, sizes, parts[0][1])
        return pa.ListArray.from_arrays(offsets, elements, type=wanted)
    if np.any(sizes < 4):
        _require(NOT_ROWS)
    size_of_keys = np.asarray(number_column(source, begins, 4, "INT"), np.int32).byteswap().astype(np.int64)
    if np.any((size_of_keys < 0) | (size_of_keys > sizes - 4)):
        _require(NOT_ROWS)
    begins, sizes = begins + 4, sizes - 4
    offsets, keys = _elements(source, begins, size_of_keys, parts[0][1])
    others, values = _elements(source, begins + size_of_keys, sizes - size_of_keys, parts[1][1])
    if not np.array_equal(offsets, others):
        _require(NOT_ROWS)
    entries = pa.StructArray.from_arrays([keys, values], fields=list(wanted.value_type))
    return pa.ListArray.from_arrays(offsets, entries, type=wanted)


def _elements(source: memoryview, begins: Places, sizes: Places, type: str) -> tuple[pa.Array, pa.Array]:
    """Offsets and elements of arrays, which store their count, NULL bits, elements and variable parts."""
    width = 4 if _MONTHS.search(type) else _NUMBERS.get(split_type(type)[0], (8,))[0]
    counts = zeros(len(begins))
    total = element_counts(source, numbers(begins), numbers(sizes), width, counts)
    _require(total)
    arrays, ends = zeros(total), zeros(total)
    words, nulls = writable(8 * total), writable(total)
    copy_elements(source, numbers(begins), numbers(sizes), counts, width, arrays, ends, words, nulls)
    offsets = np.concatenate(([0], np.cumsum(np.asarray(counts, np.int64))))
    return pa.array(offsets, pa.int32()), _values(source, arrays, ends, words, nulls, type)


def nested_column(
    source: memoryview, rows: Places, ends: Places, arity: int, field: int, inner: tuple[int, int], type: str
) -> pa.Array:
    """Read a field of rows that are a field of stored rows.

    ``inner``: position of the field in the inner row, and number of fields of the inner row.
    """
    count, (place, inner_arity) = len(rows), inner
    begins, sizes = zeros(count), zeros(count)
    words, nulls = writable(8 * count), writable(count)
    field_words(source, numbers(rows), null_bytes(arity), field, words, nulls)
    _require(variable_parts(numbers(rows), numbers(ends), words, nulls, False, begins, sizes))
    present = np.asarray(nulls, np.uint8) == 0
    inner_rows, lengths = np.asarray(begins, np.int64)[present], np.asarray(sizes, np.int64)[present]
    if np.any(lengths < null_bytes(inner_arity) + 8 * inner_arity):
        _require(NOT_ROWS)
    found = field_column(source, inner_rows, inner_rows + lengths, inner_arity, place, type)
    return spread(found, present)


def spread(found: pa.Array, present: Any) -> pa.Array:
    """Insert NULLs between the values of the rows that have a value."""
    return found if present.all() else found.take(pa.array(np.cumsum(present) - 1, mask=~present))


def number_column(source: memoryview, begins: Places, size: int, type: str) -> pa.Array:
    """Read big-endian numbers that are stored outside a row."""
    out = writable(8 * len(begins))
    big_endian_longs(source, numbers(begins), size, out)
    return _of_longs(np.frombuffer(out, np.int64), np.zeros(len(begins), bool), type)


def moment_column(source: memoryview, begins: Places, type: str) -> pa.Array:
    """Read the times of timers. The sign bit is stored inverted, so that bytes sort by time."""
    out = writable(8 * len(begins))
    big_endian_longs(source, numbers(begins), 8, out)
    moments = np.frombuffer(out, np.int64) ^ np.int64(-(1 << 63))
    return _of_longs(moments, np.zeros(len(begins), bool), type)


def value_column(source: memoryview, begins: Places, ends: Places, type: str) -> pa.Array:
    """Read numbers, times, decimals and texts outside a row; values of other types as bytes."""
    root, _, _ = split_type(type)
    if field_form(type) is FieldForm.WORD:
        size = _NUMBERS[root][0] if root in _NUMBERS else 8
        if np.any(ends - begins < size):
            raise SavepointUnreadable("a value is shorter than its type")
        return number_column(source, begins, size, type)
    sized = 4 if root in _TEXTS or root == "DECIMAL" else 0
    found, sizes = begins + sized, ends - begins - sized
    if np.any(sizes < 0):
        raise SavepointUnreadable("a value is shorter than its length")
    if root == "DECIMAL":
        out = writable(16 * len(begins))
        little_endian_decimals(source, numbers(found), numbers(sizes), out)
        return pa.Array.from_buffers(arrow_type(type), len(begins), [None, pa.py_buffer(out)])
    missing = np.zeros(len(begins), bool)
    return _of_texts(source, writable(0), numbers(found), numbers(sizes), int(sizes.sum()), missing, type)


def _require(total: int) -> None:
    if total < 0:
        raise SavepointUnreadable("a field of a row begins or ends after the row")


def _validity(missing: Any) -> pa.Buffer | None:
    return pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None


def _of_longs(longs: Any, missing: Any, type: str) -> pa.Array:
    """Build an array of values that fit in eight bytes."""
    root, _, _ = split_type(type)
    if root.startswith("TIMESTAMP"):
        return _of_moments(longs, np.zeros(len(longs), np.int64), missing, type)
    if root == "DECIMAL":
        halves = np.stack((longs, longs >> 63), axis=1)
        return pa.Array.from_buffers(arrow_type(type), len(longs), [_validity(missing), pa.py_buffer(halves)])
    _, own, wanted = _NUMBERS[root]
    values = longs.astype(np.int32 if _MONTHS.search(type) else own).astype(own)
    if root == "BOOLEAN":
        return pa.array(values != 0, wanted, mask=missing)
    return pa.Array.from_buffers(wanted, len(values), [_validity(missing), pa.py_buffer(values)])


def _of_moments(millis: Any, nanos: Any, missing: Any, type: str) -> pa.Array:
    wanted = arrow_type(type)
    ticks = {"ms": (1, 1_000_000), "us": (1_000, 1_000)}[wanted.unit]
    values = millis * ticks[0] + nanos // ticks[1]
    beyond = (millis > _LAST_MILLI) | (millis < -_LAST_MILLI)
    if beyond.any():
        values[beyond] = np.sign(millis[beyond]) * INFINITE
    return pa.Array.from_buffers(wanted, len(values), [_validity(missing), pa.py_buffer(values)])


def _of_texts(
    source: memoryview, words: memoryview, begins: list[int], sizes: list[int], total: int, missing: Any, type: str
) -> pa.Array:
    if total > _LARGEST:
        raise SavepointUnreadable(
            f"{len(sizes)} rows contain {total} bytes of text, which is more than Arrow can index"
        )
    offsets, out = zeros(len(sizes) + 1), writable(total)
    concatenated_texts(source, words, begins, sizes, offsets, out)
    buffers = [_validity(missing), pa.py_buffer(np.asarray(offsets, np.int32)), pa.py_buffer(out)]
    found = pa.Array.from_buffers(arrow_type(type), len(sizes), buffers)
    try:
        found.validate(full=True)
    except pa.ArrowInvalid:
        raise SavepointUnreadable("a text is not valid UTF-8: the savepoint is damaged") from None
    return found
