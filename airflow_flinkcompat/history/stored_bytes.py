"""Stored bytes of Arrow columns: rows, map keys and values as Flink stores them, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_flinkcompat.exec_graph.layout import Begins, NamedState, StateField
from airflow_flinkcompat.history.entries import EXTREME
from airflow_flinkcompat.migration.fields import begin
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, RowFraming
from airflow_flinkcompat.savepoint.binary_row import (
    DECIMAL_ROOM,
    EMPTY_VIEW,
    NULL,
    Field,
    FieldForm,
    field_form,
    field_writer,
    null_bytes,
    split_type,
)

Columns = Sequence[pa.Array]
Content = Callable[[Columns, int], pa.Array]
"""Function of columns and the number of their rows, which returns a binary column."""
_NUMBERS = {
    "BOOLEAN": (pa.int8(), "i1"), "TINYINT": (pa.int8(), "i1"), "SMALLINT": (pa.int16(), "i2"),
    "INT": (pa.int32(), "i4"), "INTEGER": (pa.int32(), "i4"), "BIGINT": (pa.int64(), "i8"),
    "FLOAT": (pa.float32(), "f4"), "DOUBLE": (pa.float64(), "f8"), "DATE": (pa.int32(), "i4"),
    "TIME": (pa.int32(), "i4"),
}  # fmt: skip
"""Arrow type of a number, and its numpy type without the order of bytes."""
_WORD, _LONGEST_INLINE, _INLINE_MARK = 8, 7, 0x80
_THERE = b"\0"
"""Flag before a map value that is not NULL."""


def concatenated(*parts: pa.Array | bytes) -> pa.Array:
    """Concatenate binary columns row by row."""
    scalars = (pa.scalar(each, pa.binary()) if isinstance(each, bytes) else each for each in parts)
    return pc.binary_join_element_wise(*scalars, pa.scalar(b"", pa.binary()))


def fixed(content: Any) -> pa.Array:
    """Convert a table of bytes to a binary column."""
    count, size = content.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(size)
    data = pa.py_buffer(np.ascontiguousarray(content))
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), data])


def big_endian(values: Any, size: int) -> pa.Array:
    """Store integers with their most significant byte first."""
    return fixed(_bytes(values, f">i{size}"))


def integers(column: pa.Array) -> Any:
    """Integers of a column, with 0 instead of NULL."""
    return column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)


def sized(content: pa.Array) -> pa.Array:
    """Precede each value by its length."""
    return concatenated(big_endian(integers(pc.binary_length(content)), 4), content)


def _bytes(values: Any, form: str) -> Any:
    made = np.ascontiguousarray(values.astype(form))
    return made.view(np.uint8).reshape(len(values), made.itemsize)


@dataclass(frozen=True)
class _Words:
    """Fields of one column: their eight bytes, and their variable parts if there are any."""

    words: Any
    parts: pa.Array | None = None


def row_writer(fields: Sequence[StateField]) -> Content:
    """Serializer of rows without their length."""
    views = [field.begins is Begins.EMPTY_VIEW for field in fields]
    writers = [_constant(EMPTY_VIEW) if view else _writer(field) for field, view in zip(fields, views, strict=True)]
    head, width = null_bytes(len(fields)), _WORD * len(fields)

    def written(columns: Columns, count: int) -> pa.Array:
        left = iter(columns)
        nulls, words = np.zeros((count, head), np.uint8), np.zeros((count, len(fields), _WORD), np.uint8)
        ends, parts = np.full(count, head + width, np.int64), []
        for place, (writer, view) in enumerate(zip(writers, views, strict=True)):
            column = None if view else next(left)
            null, stored = writer(column, count)
            nulls[:, (place + 8) >> 3] |= null.astype(np.uint8) << ((place + 8) & 7)
            words[:, place] = stored.words
            if stored.parts is None:
                continue
            sizes = integers(pc.binary_length(stored.parts))
            begins = _bytes(ends, "<i4")
            words[sizes > 0, place, 4:] = begins[sizes > 0]
            ends += sizes
            parts.append(stored.parts)
        return concatenated(fixed(nulls), fixed(words.reshape(count, width)), *parts)

    return written


_Writer = Callable[[pa.Array | None, int], tuple[Any, _Words]]


def _constant(field: Field) -> _Writer:
    def written(column: pa.Array | None, count: int) -> tuple[Any, _Words]:
        part = None if field.variable_part is None else pa.array([field.variable_part] * count, pa.binary())
        return np.full(count, field.null), _Words(np.tile(np.frombuffer(field.word, np.uint8), (count, 1)), part)

    return written


def _writer(field: StateField) -> _Writer:
    """Serializer of a column with NULL, which becomes the initial value of the field if that is known."""
    extreme = EXTREME.fullmatch(field.type)
    missing = NULL if extreme else field_writer(field.type)(None)
    missing = missing if field.begins is None else begin(field)
    stored = _extreme(extreme["value"]) if extreme else _words(field.type)

    def written(column: pa.Array | None, count: int) -> tuple[Any, _Words]:
        assert column is not None
        null = column.is_null().to_numpy(zero_copy_only=False)
        made = stored(column, count)
        words, parts = made.words, made.parts
        if null.any():
            words[null] = np.frombuffer(missing.word, np.uint8)
            if parts is not None or missing.variable_part is not None:
                instead = pa.scalar(missing.variable_part or b"", pa.binary())
                parts = pc.if_else(pa.array(null), instead, pa.scalar(b"", pa.binary()) if parts is None else parts)
        return null & missing.null, _Words(words, parts)

    return written


def _words(type: str) -> Callable[[pa.Array, int], _Words]:
    """Serializer of the values of a type in fields."""
    root, _, scale = split_type(type)
    form = field_form(type)
    if form is FieldForm.TEXT:
        return _texts
    if root == "DECIMAL":
        in_word = form is FieldForm.WORD
        return lambda column, count: _decimals_in_words(_unscaled(column, scale), in_word)
    if root.startswith("TIMESTAMP"):
        return _moments_in_words if form is FieldForm.WORD else _moments
    arrow, kind = _NUMBERS[root]

    def numbers(column: pa.Array, count: int) -> _Words:
        words = np.zeros((count, _WORD), np.uint8)
        stored = _bytes(column.cast(arrow).fill_null(0).to_numpy(zero_copy_only=False), f"<{kind}")
        words[:, : stored.shape[1]] = stored
        return _Words(words)

    return numbers


def _texts(column: pa.Array, count: int) -> _Words:
    content = column.cast(pa.binary()).fill_null(b"")
    sizes = integers(pc.binary_length(content))
    inline = sizes <= _LONGEST_INLINE
    words = _sizes(sizes)
    first = pc.binary_slice(concatenated(content, bytes(_LONGEST_INLINE)), 0, _LONGEST_INLINE)
    words[inline, :_LONGEST_INLINE] = _data(first, _LONGEST_INLINE)[inline]
    words[inline, _LONGEST_INLINE] = _INLINE_MARK | sizes[inline]
    padding = pa.array([bytes(size) for size in range(_WORD)], pa.binary()).take(pa.array(-sizes % _WORD))
    return _Words(words, pc.if_else(pa.array(inline), pa.scalar(b"", pa.binary()), concatenated(content, padding)))


def _sizes(sizes: Any) -> Any:
    """Words with a length, and space for an offset."""
    return _bytes(sizes, "<i8")


def _data(content: pa.Array, size: int) -> Any:
    """The bytes of a column whose values have equal lengths."""
    _, offsets, data = content.buffers()
    first = np.frombuffer(offsets, np.int32)[content.offset] if len(content) else 0
    return np.frombuffer(data, np.uint8)[first : first + size * len(content)].reshape(len(content), size)


def _unscaled(column: pa.Array, scale: int) -> Any:
    """Unscaled decimals as sixteen big-endian bytes."""
    cast = column.cast(pa.decimal128(38, scale), safe=False).fill_null(0)
    data = np.frombuffer(cast.buffers()[1], np.uint8)[16 * cast.offset : 16 * (cast.offset + len(cast))]
    return data.reshape(len(cast), 16)[:, ::-1]


def _shortest(unscaled: Any) -> tuple[Any, Any]:
    """Shortest two's complement of sixteen big-endian bytes, at the begin of the space, and its length."""
    sign = (unscaled[:, :1] >> 7) * np.uint8(0xFF)
    spare = (unscaled[:, :-1] == sign) & ((unscaled[:, 1:] ^ sign) < _INLINE_MARK)
    dropped = np.cumprod(spare, axis=1).sum(axis=1)
    places = dropped[:, None] + np.arange(DECIMAL_ROOM)
    moved = np.take_along_axis(unscaled, np.minimum(places, DECIMAL_ROOM - 1), axis=1)
    return np.where(places < DECIMAL_ROOM, moved, 0).astype(np.uint8), DECIMAL_ROOM - dropped


def _decimals_in_words(unscaled: Any, in_word: bool) -> _Words:
    if in_word:
        return _Words(np.ascontiguousarray(unscaled[:, :7:-1]))
    content, sizes = _shortest(unscaled)
    return _Words(_sizes(sizes), fixed(content))


def _moments_in_words(column: pa.Array, count: int) -> _Words:
    return _Words(_bytes(integers(column) // 1000, "<i8"))


def _moments(column: pa.Array, count: int) -> _Words:
    micros = integers(column)
    return _Words(_sizes(micros % 1000 * 1000), fixed(_bytes(micros // 1000, "<i8")))


def _extreme(type: str) -> Callable[[pa.Array, int], _Words]:
    """Serializer of a retractable MIN or MAX from pairs of the value and the number of all values."""
    view = StateField("", begins=Begins.EMPTY_VIEW)
    of_row = row_writer((StateField(type), StateField("BIGINT"), view))

    def written(column: pa.Array, count: int) -> _Words:
        rows = of_row(column.flatten(), count)
        return _Words(_sizes(integers(pc.binary_length(rows))), rows)

    return written


def _value_of(type: str) -> Callable[[pa.Array], pa.Array]:
    """Serializer of values outside of rows."""
    root, _, scale = split_type(type)
    if field_form(type) is FieldForm.TEXT:
        return lambda column: sized(column.cast(pa.binary()))
    if root != "DECIMAL":
        arrow, kind = _NUMBERS[root]
        return lambda column: fixed(_bytes(column.cast(arrow).to_numpy(zero_copy_only=False), f">{kind}"))
    if field_form(type) is FieldForm.WORD:
        return lambda column: fixed(_unscaled(column, scale)[:, 8:])

    def decimals(column: pa.Array) -> pa.Array:
        content, sizes = _shortest(_unscaled(column, scale))
        kept = np.arange(DECIMAL_ROOM) < sizes[:, None]
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(content[kept]))]
        return sized(pa.Array.from_buffers(pa.binary(), len(column), buffers))

    return decimals


def map_key_content(state: NamedState) -> Content:
    """Serializer of a map key, which follows the namespace."""
    assert state.map_key is not None
    if state.map_key.form == "TimeWindow":
        return _window
    if state.map_key.form == "row":
        of_row = row_writer(state.map_key.fields)
        return lambda columns, count: sized(of_row(columns, count))
    if state.map_key.form == "Long":
        return _long
    (field,) = state.map_key.fields
    of_value = _value_of(field.type)
    return lambda columns, count: of_value(columns[0])


def value_content(state: NamedState) -> Content:
    """Serializer of the values of a state."""
    content = _CONTENTS[state.value.form](state)
    flag = _THERE if state.kind is KeyedStateKind.MAP else b""
    if not state.time_to_live:
        return lambda columns, count: concatenated(flag, content(columns, count))
    return lambda columns, count: concatenated(flag, _long(columns[-1:], count), content(columns[:-1], count))


def _row(state: NamedState) -> Content:
    of_row = row_writer(state.value.fields)
    return lambda columns, count: sized(of_row(columns, count))


def _row_and_count(state: NamedState) -> Content:
    of_row = _row(state)
    return lambda columns, count: concatenated(of_row(columns[:-1], count), _counts(columns[-1:], count))


def _value(state: NamedState) -> Content:
    (field,) = state.value.fields
    of_value = _value_of(field.type)
    return lambda columns, count: of_value(columns[0])


def _listed(column: pa.Array, content: Callable[[pa.StructArray], pa.Array], between: bytes) -> pa.Array:
    """Serializer of lists, from the serializer of their elements."""
    offsets = column.offsets.to_numpy() - column.offsets[0].as_py()
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), content(column.flatten()))
    return pc.binary_join(lists, between)


def _rows(state: NamedState) -> Content:
    """Serializer of a list from a column of sorted rows. The flag after each row is false."""
    of_row, trailing = row_writer(state.value.fields), bytes(state.trailing)
    counted = state.framing is RowFraming.COUNTED

    def written(columns: Columns, count: int) -> pa.Array:
        listed = _listed(
            columns[0],
            lambda rows: concatenated(sized(of_row(rows.flatten(), len(rows))), trailing),
            b"" if counted else b",",
        )
        return concatenated(big_endian(integers(pc.list_value_length(columns[0])), 4), listed) if counted else listed

    return written


def _sorted_map(state: NamedState) -> Content:
    """Serializer of a map from a column that contains its sorted keys with their counts."""
    of_row = row_writer(state.value.fields)

    def element(elements: pa.StructArray) -> pa.Array:
        keys, counts = elements.flatten()
        return concatenated(sized(of_row(keys.flatten(), len(keys))), _THERE, big_endian(integers(counts), 8))

    def written(columns: Columns, count: int) -> pa.Array:
        sizes = integers(pc.list_value_length(columns[0]))
        return concatenated(big_endian(sizes, 4), _listed(columns[0], element, b""))

    return written


def _counts(columns: Columns, count: int) -> pa.Array:
    return concatenated(*(big_endian(integers(each), 4) for each in columns))


def _long(columns: Columns, count: int) -> pa.Array:
    return big_endian(integers(columns[0]), 8)


def _window(columns: Columns, count: int) -> pa.Array:
    return concatenated(*(big_endian(integers(bound) // 1000, 8) for bound in columns))


def _boolean(columns: Columns, count: int) -> pa.Array:
    return big_endian(integers(columns[0]) != 0, 1)


_CONTENTS: Mapping[str, Callable[[NamedState], Content]] = {
    "row": _row,
    "Tuple<row, Int>": _row_and_count,
    "value": _value,
    "List<row>": _rows,
    "List<Tuple<row, Boolean>>": _rows,
    "SortedMap<row, Long>": _sorted_map,
    "Int": lambda state: _counts,
    "Tuple<Int, Int>": lambda state: _counts,
    "TimeWindow": lambda state: _window,
    "Boolean": lambda state: _boolean,
    "Long": lambda state: _long,
}
