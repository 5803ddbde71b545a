"""Values and rows of stored entries one by one, for tests and generated savepoints.

The package reads and writes them in compiled loops. Tests compare both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from airflow_flinkcompat.exec_graph.layout import STAMP, NamedState
from airflow_flinkcompat.savepoint.binary import RowFraming, SavepointUnreadable, write_int
from airflow_flinkcompat.savepoint.keyed_state import END_OF_GROUP, LAST_OF_RUN, Entry

_LENGTH = 4
_BETWEEN = b","
"""Separator between elements of a list state.

A list inside a value has no separators, but begins with its number of elements.
"""


class StoredRow(NamedTuple):
    """A row inside a stored value, with the bytes that follow the row, such as a count."""

    row: bytes
    trailing: bytes = b""


def stored_rows(value: bytes, state: NamedState) -> list[StoredRow]:
    form, trailing = state.value.form, state.trailing
    between = len(_BETWEEN) if state.framing is RowFraming.SEPARATED else 0
    counted = state.framing is RowFraming.COUNTED
    at = _LENGTH if counted else 0
    wanted = int.from_bytes(value[:_LENGTH], "big") if counted else None if between else 1
    rows: list[StoredRow] = []
    while at < len(value) and len(rows) != wanted:
        if between and rows:
            if value[at : at + between] != _BETWEEN:
                break
            at += between
        end = at + _LENGTH + int.from_bytes(value[at : at + _LENGTH], "big")
        rows.append(StoredRow(value[at + _LENGTH : end], value[end : end + trailing]))
        at = end + trailing
    if at != len(value) or (wanted is not None and len(rows) != wanted):
        raise SavepointUnreadable(
            f"a value of the form {form} has unexpected bytes after its rows: the savepoint is damaged or its "
            "format is unknown"
        )
    return rows


def write_rows(rows: Iterable[StoredRow], state: NamedState) -> bytes:
    """Encode rows as one stored value."""
    parts = [write_int(len(row)) + row + trailing for row, trailing in rows]
    if state.framing is RowFraming.SEPARATED:
        return _BETWEEN.join(parts)
    return b"".join([write_int(len(parts)), *parts] if state.framing is RowFraming.COUNTED else parts)


def pack_entry(entry: Entry) -> bytes:
    """Encode an entry for its transport to its new key group."""
    parts = entry.state.to_bytes(2, "big"), write_int(len(entry.key)), entry.key, write_int(len(entry.value))
    return b"".join((*parts, entry.value))


def last_written(state: NamedState, value: bytes) -> int:
    begin = state.content_begin
    return int.from_bytes(value[begin - STAMP : begin], "big", signed=True)


def write_entries(entries: list[Entry]) -> bytes:
    """Uncompressed content of a key group; entries of one state must be adjacent."""
    if not entries:
        return b""
    out = []
    for place, (state, key, value) in enumerate(entries):
        if place == 0 or entries[place - 1].state != state:
            out.append(state.to_bytes(2, "big"))
        last = place + 1 == len(entries) or entries[place + 1].state != state
        marked = bytes([key[0] | LAST_OF_RUN]) + key[1:] if last else key
        out += [write_int(len(key)), marked, write_int(len(value)), value]
    return b"".join([*out, END_OF_GROUP.to_bytes(2, "big")])
