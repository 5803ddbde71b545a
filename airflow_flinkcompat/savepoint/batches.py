"""Entries of keyed state as Arrow record batches, one row for each stored row.

A compiled loop finds the parts of each entry; further loops copy one column each. Memory is bounded by a key group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto

import numpy as np
import pyarrow as pa

from airflow_flinkcompat.savepoint.arrow_columns import (
    Places,
    arrow_type,
    field_column,
    moment_column,
    nested_column,
    number_column,
    spread,
    value_column,
)
from airflow_flinkcompat.savepoint.binary import RowFraming, SavepointUnreadable
from airflow_flinkcompat.savepoint.binary_row import null_bytes
from airflow_flinkcompat.savepoint.column_loops import NOT_ROWS
from airflow_flinkcompat.savepoint.compiled import compiled, numbers, uint32, zeros
from airflow_flinkcompat.savepoint.keyed_state import LAST_OF_RUN, KeyedFile
from airflow_flinkcompat.savepoint.runs import RUN_ERRORS, Runs, end_of_entry, run_error, value_is_null

_ROWS = 1 << 16
"""Rows of a batch."""
NO_ROW_KEY = -32
"""Error code for a key whose form differs from the form that its serializer states."""


class EntryPart(Enum):
    """The part of an entry that contains a column."""

    MOMENT = auto()
    """The time of a timer, eight bytes."""
    KEY = auto()
    """A field of Flink's key, which is a row."""
    NAMESPACE = auto()
    """A long of the namespace: the end of a window, or its start and end."""
    MAP_KEY = auto()
    """A field of the row that is a map's key."""
    MAP_KEY_VALUE = auto()
    """A map's key that is not a row."""
    STAMP = auto()
    """The last access time of a value with a state TTL."""
    VALUE = auto()
    """A field of a row of the value."""
    ELEMENT = auto()
    """An element of a list of texts."""
    WHOLE = auto()
    """A value without rows, or the bytes that follow each row of a value."""
    POSITION = auto()
    """The position of a row in its list."""


@dataclass(frozen=True)
class StoredColumn:
    """A column of a batch: its name, its type in Flink's spelling, and its place in an entry.

    ``place``: position of the field in its row, or of the long in a namespace; for a value that is not a row, the
    number of bytes before it. ``inner``: if the field is a row, the position of a field in it, and the number of its
    fields.
    """

    name: str
    type: str
    part: EntryPart
    place: int = 0
    inner: tuple[int, int] | None = None


@dataclass(frozen=True)
class EntryForm:
    """The form of the entries of one state.

    Attributes:
        number: Number of the state in its file's header.
        prefix: Number of bytes of the key group in a stored key.
        columns: The columns to read.
        arities: Number of fields of the rows in keys, map keys and values; 0 if a part is not a row.
        timers: True for timers, whose key begins with a time and whose value is empty.
        namespace: Number of bytes of the namespace.
        flag: True if values begin with the NULL flag of a map.
        stamp: True if values begin with a last access time.
        rows: The form of the rows in a value.
        trailing: Number of bytes after each row.
    """

    number: int
    prefix: int
    columns: tuple[StoredColumn, ...]
    arities: tuple[int, int, int]
    timers: bool = False
    namespace: int = 1
    flag: bool = False
    stamp: bool = False
    rows: RowFraming = RowFraming.NONE
    trailing: int = 0

    @property
    def schema(self) -> pa.Schema:
        """The schema of its batches."""
        return pa.schema([(column.name, arrow_type(column.type)) for column in self.columns])

    def only(self, names: Collection[str]) -> EntryForm:
        """The form with some of its columns."""
        return replace(self, columns=tuple(column for column in self.columns if column.name in names))

    def batches(self, file: KeyedFile, groups: Container[int]) -> Iterator[pa.RecordBatch]:
        """Read the entries of the state from key groups of a file.

        Raises SavepointUnreadable, which names the file, if the file is damaged.
        """
        columns = [self._reader(column) for column in self.columns]
        for number, group in file.groups(groups):
            with file.naming(number):
                yield from self._of_group(group, columns)

    def _of_group(self, group: bytes, columns: list[_ReadColumn]) -> Iterator[pa.RecordBatch]:
        runs, found = Runs(group), zeros(_PLACES * _ROWS)
        plan = self._plan()
        for state in runs:
            if state != self.number:
                runs.skip()
                continue
            wanted = 1
            while wanted:
                runs.at, count, wanted = _locate(runs.content, runs.at, plan, found)
                if wanted < 0:
                    raise entry_error(wanted)
                if count:
                    places = np.asarray(found, np.int64).reshape(-1, _PLACES)[:count]
                    arrays = [column(runs.content, places) for column in columns]
                    yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
                elif wanted:
                    found = zeros(_PLACES * wanted)

    def _reader(self, column: StoredColumn) -> _ReadColumn:
        """Return a function that reads a column of the rows that :func:`_locate` found."""
        type, place = column.type, column.place
        keys, map_keys, values = self.arities

        match column.part:
            case EntryPart.MOMENT:
                return lambda source, found: moment_column(source, found[:, _KEY] - 12, type)
            case EntryPart.KEY:
                return _field_reader(column, _KEY, _END_OF_KEY, keys)
            case EntryPart.NAMESPACE:
                return lambda source, found: number_column(source, found[:, _END_OF_KEY] + 8 * place, 8, type)
            case EntryPart.MAP_KEY:
                return _field_reader(column, _MAP_KEY, _END_OF_MAP_KEY, map_keys)
            case EntryPart.MAP_KEY_VALUE:
                return lambda source, found: value_column(
                    source, found[:, _MAP_KEY] + place, found[:, _END_OF_MAP_KEY], type
                )
            case EntryPart.STAMP:
                return self._nullable(lambda source, found: number_column(source, found[:, _STAMP], 8, type))
            case EntryPart.VALUE:
                return self._nullable(_field_reader(column, _ROW, _END_OF_ROW, values))
            case EntryPart.ELEMENT:
                return lambda source, found: value_column(source, found[:, _ROW] - 4, found[:, _END_OF_ROW], type)
            case EntryPart.WHOLE:
                return self._nullable(
                    lambda source, found: value_column(source, found[:, _WHOLE] + place, found[:, _END], type)
                )
            case EntryPart.POSITION:
                return lambda source, found: pa.array(found[:, _POSITION], arrow_type(type))

    def _nullable(self, read: _ReadColumn) -> _ReadColumn:
        """Add the NULL values of a map to a function that reads a column of values."""
        if not self.flag:
            return read

        def with_nulls(source: memoryview, found: Places) -> pa.Array:
            present = found[:, _WHOLE] >= 0
            return spread(read(source, found[present]), present)

        return with_nulls

    def _plan(self) -> list[int]:
        ends = [null_bytes(arity) + 8 * arity if arity else 0 for arity in self.arities]
        moment = 8 if self.timers else 0
        return numbers(
            [self.prefix, moment, self.namespace, self.flag, 8 * self.stamp, self.rows, self.trailing, *ends]
        )


def _field_reader(column: StoredColumn, begin: int, end: int, arity: int) -> _ReadColumn:
    """Return a function that reads a field of a row between two of its offsets."""
    type, place, inner = column.type, column.place, column.inner
    if inner is None:
        return lambda source, found: field_column(source, found[:, begin], found[:, end], arity, place, type)
    return lambda source, found: nested_column(source, found[:, begin], found[:, end], arity, place, inner, type)


_ReadColumn = Callable[[memoryview, Places], pa.Array]

_NONE, _, _COUNTED, _SEPARATED = (form.value for form in RowFraming)
_KEY, _END_OF_KEY, _MAP_KEY, _END_OF_MAP_KEY, _STAMP, _ROW, _END_OF_ROW, _WHOLE, _END, _POSITION = range(10)
_PLACES = 10
"""Number of offsets that are stored for each row."""
_ERRORS = {
    NOT_ROWS: "a value has another form than its serializer states",
    NO_ROW_KEY: "a key has another form than its serializer states",
}


def entry_error(code: int) -> SavepointUnreadable:
    """The error of an entry that cannot be read."""
    if code in RUN_ERRORS:
        return run_error(code)
    return SavepointUnreadable(f"{_ERRORS[code]}: the savepoint is damaged or its format is unknown")


@compiled
def _locate(source: memoryview, at: int, plan: list[int], found: list[int]) -> tuple[int, int, int]:
    """Find the offsets of the parts of entries.

    Returns the end of the read entries, the number of rows, and a status. The status is 0 at the end of the run, the
    number of rows that the next entry requires, or an error code.
    """
    prefix, moment, namespace, flag, stamp, form, trailing, key_size, map_size, row_size = (
        plan[0], plan[1], plan[2], plan[3], plan[4], plan[5], plan[6], plan[7], plan[8], plan[9],
    )  # fmt: skip
    count, capacity = 0, len(found) // _PLACES
    while True:
        end_of_key, end = end_of_entry(source, at)
        if end_of_key < 0:
            return at, count, end_of_key
        key = at + 4 + prefix + moment + 4
        if key > end_of_key:
            return at, count, NO_ROW_KEY
        after_row = key + uint32(source, key - 4)
        map_key = after_row + namespace + (4 if map_size > 0 else 0)
        if after_row < key + key_size or map_key > end_of_key or end_of_key < map_key + map_size:
            return at, count, NO_ROW_KEY
        content = end_of_key + 4 + flag + stamp
        null = value_is_null(source, end_of_key + 4, end, flag)
        if null:
            content, own_form, own_size = end, _NONE, 0
        else:
            own_form, own_size = form, row_size
        rows, place = _rows_of(source, content, end, own_form, own_size)
        if rows < 0:
            return at, count, rows
        if count + rows > capacity:
            return at, count, rows
        position = 0
        while (form < _SEPARATED and position < rows) or (form == _SEPARATED and place < end):
            row, end_of_row, place = _next_row(source, content, place, end, own_form, trailing, position)
            if row < 0 or end_of_row < row + own_size:
                return at, count, NOT_ROWS
            base = count * _PLACES
            found[base + _KEY], found[base + _END_OF_KEY] = key, after_row
            found[base + _MAP_KEY], found[base + _END_OF_MAP_KEY] = map_key, end_of_key
            found[base + _STAMP] = content - stamp
            found[base + _ROW], found[base + _END_OF_ROW] = row, end_of_row
            found[base + _WHOLE], found[base + _END] = -1 if null else end_of_row, place
            found[base + _POSITION] = position
            count += 1
            position += 1
        if place != end:
            return at, count, NOT_ROWS
        if source[at + 4] & LAST_OF_RUN:
            return end, count, 0
        at = end


@compiled
def _rows_of(source: memoryview, content: int, end: int, form: int, row_size: int) -> tuple[int, int]:
    """Return the maximum number of rows of a value, or an error code, and the offset of the first row."""
    if content > end:
        return NOT_ROWS, content
    if form == _SEPARATED:
        return (end - content) // (5 + row_size) + 1, content
    if form != _COUNTED:
        return 1, content
    if content + 4 > end:
        return NOT_ROWS, content
    rows = uint32(source, content)
    if rows * (4 + row_size) > end - content - 4:
        return NOT_ROWS, content
    return rows, content + 4


@compiled
def _next_row(
    source: memoryview, content: int, place: int, end: int, form: int, trailing: int, position: int
) -> tuple[int, int, int]:
    """Begin and end of a row, and the end of the bytes after it; an error code replaces the begin."""
    if form == _NONE:
        return content, content, end
    if form == _SEPARATED and position > 0:
        place += 1
    row = place + 4
    if row > end:
        return NOT_ROWS, end, end
    end_of_row = row + uint32(source, place)
    if end_of_row + trailing > end:
        return NOT_ROWS, end, end
    return row, end_of_row, end_of_row + trailing
