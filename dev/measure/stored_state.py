"""Stored state read one entry and one field at a time, and state written again from what was read.

The tables of a savepoint and the rewriting of its entries are compared with the results.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta

import pyarrow as pa
from upath import UPath

from airflow_flinkcompat.exec_graph.exec_node import row_type
from airflow_flinkcompat.exec_graph.from_savepoint import layout_of, namespace_of
from airflow_flinkcompat.exec_graph.layout import NamedState, StateLayout, StateNamespace
from airflow_flinkcompat.migration.entries import EntryRewrite, StoredKey
from airflow_flinkcompat.migration.rewriting import rewritten_group
from airflow_flinkcompat.migration.runs import value_mapping
from airflow_flinkcompat.savepoint.batches import EntryPart, StoredColumn
from airflow_flinkcompat.savepoint.binary import KeyedStateKind
from airflow_flinkcompat.savepoint.binary_row import (
    Field,
    FieldForm,
    field_form,
    field_reader,
    read_row,
    split_type,
    type_arguments,
    value_reader,
)
from airflow_flinkcompat.savepoint.keyed_state import KeyedFileWriter, KeyedHeader, KeyedState, open_keyed, read_entries
from airflow_flinkcompat.savepoint.row_mapping import row_mapping
from airflow_flinkcompat.savepoint.store import read_handle, read_metadata
from airflow_flinkcompat.state import StateTable
from dev.stored_rows import StoredRow, stored_rows

_SIGN, _LAST_MILLI = 1 << 63, (1 << 63) // 1000 - 1
_TIMES = (EntryPart.NAMESPACE, EntryPart.MOMENT, EntryPart.STAMP)


def slow_rows(table: StateTable) -> Iterator[list[object]]:
    """The values of all columns of each row of a table."""
    for stored in table.stored:
        with open_keyed(stored, table.path) as file:
            layout, number = layout_of(file.header), table.form.number
            state = next((each for each in layout.states if each.name == table.state), None)
            for _, group in file.groups():
                for entry in read_entries(group):
                    if entry.state == number:
                        key = StoredKey.read(entry.key[table.form.prefix :], state is None)
                        parts = _parts_of_key(key, file.header.states[number], state, layout)
                        for of_row in _parts_of_value(entry.value, state):
                            yield [_cell(column, parts | of_row) for column in table.form.columns]


_Parts = dict[EntryPart, Sequence[object]]


def _parts_of_key(key: StoredKey, stored: KeyedState, state: NamedState | None, layout: StateLayout) -> _Parts:
    namespace = namespace_of(stored.value.nested[1]) if state is None else state.namespace
    size = (namespace or StateNamespace.NONE).size
    longs = struct.unpack(f">{size // 8}q", key.rest[:size]) if size > 1 else ()
    parts: _Parts = {EntryPart.KEY: _fields(key.row, [each.type for each in layout.key]), EntryPart.NAMESPACE: longs}
    if state is None:
        parts[EntryPart.MOMENT] = [int.from_bytes(key.moment, "big") - _SIGN]
    elif state.map_key is not None:
        content, fields = key.rest[size:], state.map_key.fields
        parts[EntryPart.MAP_KEY_VALUE] = [content]
        if state.map_key.form == "row":
            assert int.from_bytes(content[:4], "big") == len(content) - 4
            parts[EntryPart.MAP_KEY] = _fields(content[4:], [each.type for each in fields])
    return parts


def _parts_of_value(value: bytes, state: NamedState | None) -> Iterator[_Parts]:
    if state is None:
        assert not value
        yield {}
        return
    if state.kind is KeyedStateKind.MAP and value[0]:
        yield {EntryPart.POSITION: [0]}
        return
    content, types = value[state.content_begin :], [each.type for each in state.value.fields]
    stamp = int.from_bytes(value[state.content_begin - 8 : state.content_begin], "big", signed=True)
    rows = [StoredRow(b"", content)]
    if state.framing:
        rows = stored_rows(content, state)
    elif state.value.form == "List<value>" and types[0].startswith("VARCHAR"):
        rows = [StoredRow(text) for text in _texts(content)]
    for position, (row, trailing) in enumerate(rows):
        yield {
            EntryPart.STAMP: [stamp],
            EntryPart.VALUE: _fields(row, types) if state.framing else (),
            EntryPart.ELEMENT: [row],
            EntryPart.WHOLE: [trailing],
            EntryPart.POSITION: [position],
        }


def _texts(content: bytes) -> Iterator[bytes]:
    """The elements of a list of texts, each with its length, which commas separate."""
    while content:
        end = 4 + int.from_bytes(content[:4], "big")
        assert content[end : end + 1] in (b"", b",")
        yield content[:end]
        content = content[end + 1 :]


def _cell(column: StoredColumn, parts: _Parts) -> object:
    found = parts.get(column.part)
    if found is None:
        return None
    if column.part not in (EntryPart.WHOLE, EntryPart.MAP_KEY_VALUE, EntryPart.ELEMENT):
        value = found[column.place]
        if column.inner is not None and isinstance(value, list):
            return value[column.inner[0]]
        return _moment(value) if column.part in _TIMES and isinstance(value, int) else value
    (content,) = found
    assert isinstance(content, bytes)
    content = content[column.place :]
    if column.type == "TIMESTAMP(3)":
        return _moment(int.from_bytes(content[:8], "big", signed=True))
    if column.part is EntryPart.WHOLE and column.type in ("INT", "BOOLEAN"):
        content = content[: {"INT": 4, "BOOLEAN": 1}[column.type]]
    return content if column.type == "BYTES" else value_reader(column.type)(content)


def _moment(millis: int) -> int:
    """Microseconds, or the number for an infinite time."""
    if abs(millis) > _LAST_MILLI:
        return _SIGN - 1 if millis > 0 else 1 - _SIGN
    return millis * 1000


def _fields(row: bytes, types: Sequence[str]) -> list[object]:
    """The values of the fields of a row; None for views."""
    fields = zip(types, read_row(row, list(map(field_form, types))), strict=True)
    return [None if type.startswith("RAW(") else _field(type, field) for type, field in fields]


_ACCUMULATORS = ("org.apache.flink.table.runtime.functions.aggregate.", "ROW<`firstValue` ", "ROW<`lastValue` ")


def _field(type: str, field: Field) -> object:
    if field_form(type) is not FieldForm.VARIABLE:
        return field_reader(type)(field)
    if field.null:
        return None
    content = (field.variable_part or b"")[: int.from_bytes(field.word[:4], "little")]
    if type.startswith((*_ACCUMULATORS, "ROW<")):
        return _fields(content, [*row_type(type)[1]])
    if type.startswith("ARRAY<"):
        return _array(content, *type_arguments(type))
    if type.startswith("MAP<"):
        end = 4 + int.from_bytes(content[:4], "little")
        parts = zip((content[4:end], content[end:]), type_arguments(type), strict=True)
        return [list(entry) for entry in zip(*(_array(*part) for part in parts), strict=True)]
    return content


def _array(content: bytes, type: str) -> list[object]:
    """The elements of a stored array, each as the only field of a row."""
    count = int.from_bytes(content[:4], "little")
    width = _WIDTHS.get(split_type(type)[0], 8)
    begin, found = 4 + (count + 31) // 32 * 4, list[object]()
    for place in range(count):
        word = content[begin + width * place : begin + width * (place + 1)].ljust(8, b"\0")
        null = content[4 + place // 8] >> place % 8 & 1
        # The variable part of an element is addressed from the begin of its array.
        at, inline = int.from_bytes(word[4:], "little"), field_form(type) is FieldForm.WORD or word[7] & 0x80
        part = content[at:] if at and not inline and not null else None
        found.append(None if null else _field(type, Field(False, word if part is None else word[:4] + bytes(4), part)))
    return found


_WIDTHS = {"BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INT": 4, "INTEGER": 4, "FLOAT": 4, "DATE": 4, "TIME": 4}


def rows_of(table: StateTable) -> Iterator[list[object]]:
    """The rows of a table, with values as the slow reader returns them."""
    for batch in table.batches():
        yield from map(list, zip(*map(_plain_values, batch), strict=True))


def _plain_values(column: pa.Array) -> list[object]:
    if not pa.types.is_timestamp(column.type):
        return [_plain(value) for value in column.to_pylist()]
    factor = 1000 if column.type.unit == "ms" else 1
    numbers = column.cast(pa.int64()).to_pylist()
    return [each * factor if each is not None and abs(each) < _SIGN - 1 else each for each in numbers]


def _plain(value: object) -> object:
    match value:
        case list():
            return [_plain(each) for each in value]
        case dict():
            return [_plain(each) for each in value.values()]
        case datetime():
            return (value.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(microseconds=1)
        case date():
            return (value - date(1970, 1, 1)).days
        case time():
            return (value.hour * 3600 + value.minute * 60 + value.second) * 1000 + value.microsecond // 1000
    return value


def written_again(path: str) -> Iterator[str]:
    """Differences between keyed state and the bytes that are written from what was read of it.

    Each file is written twice: with entries copied, and with each row built from its fields.
    """
    for operator in read_metadata(path).operators:
        for keyed in (each.keyed for each in operator.subtasks or () if each.keyed is not None):
            groups = range(keyed.first, keyed.first + len(keyed.begins))
            with open_keyed(keyed, path) as file:
                stored, header = dict(file.groups()), file.header.with_compression(False)
                content = read_handle(keyed.handle, path)
            for change in (_copied(header), _rebuilt(header)):
                with (
                    tempfile.TemporaryDirectory() as folder,
                    KeyedFileWriter(UPath(folder), header, groups) as writer,
                ):
                    for number, group in sorted(stored.items()):
                        counts = [0] * len(header.states)
                        writer.group(number, rewritten_group(group, change, header, counts))
                    made = writer.finish()
                    again = read_handle(made.handle, folder)
                if file.header.compressed:
                    content = header.stored + b"".join(stored[number] for number in sorted(stored))
                elif made.begins != keyed.begins:
                    yield f"{operator.name}: other offsets of key groups"
                if again != content:
                    yield f"{operator.name}: other bytes"


def _copied(header: KeyedHeader) -> list[list[EntryRewrite]]:
    return [[EntryRewrite(number, None)] for number in range(len(header.states))]


def _rebuilt(header: KeyedHeader) -> list[list[EntryRewrite]]:
    by_name = {state.name: state for state in layout_of(header).states}
    change = _copied(header)
    for number, stored in enumerate(header.states):
        state = by_name.get(stored.name)
        if state is not None and state.framing:
            forms = [field_form(each.type) for each in state.value.fields]
            rows = row_mapping(forms, range(len(forms)))
            lives = state.time_to_live
            change[number] = [EntryRewrite(number, value_mapping(state, rows, lives, lives))]
    return change
