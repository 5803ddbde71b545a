"""Content of stored values: rows, and the counts or flags stored with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from airflow_flinkcompat.exec_graph.layout import NamedState
from airflow_flinkcompat.exec_graph.rewriting import ROWS
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable, write_int
from airflow_flinkcompat.savepoint.kinds import KeyedStateKind

_LENGTH = 4
_BETWEEN = b","
"""Separator of the elements of a list state; a list within a value stores its length instead."""


class StoredRow(NamedTuple):
    """A row of a stored value, and the bytes behind it that say something of it."""

    row: bytes
    beside: bytes = b""


def stored_rows(value: bytes, state: NamedState) -> list[StoredRow]:
    """The rows of a stored value."""
    form, beside = state.value.form, ROWS[state.value.form]
    between = len(_BETWEEN) if state.kind is KeyedStateKind.LIST else 0
    counted = form.startswith("List") and not between
    at = _LENGTH if counted else 0
    wanted = int.from_bytes(value[:_LENGTH], "big") if counted else None if between else 1
    rows: list[StoredRow] = []
    while at < len(value) and len(rows) != wanted:
        if between and rows:
            if value[at : at + between] != _BETWEEN:
                break
            at += between
        end = at + _LENGTH + int.from_bytes(value[at : at + _LENGTH], "big")
        rows.append(StoredRow(value[at + _LENGTH : end], value[end : end + beside]))
        at = end + beside
    if at != len(value) or (wanted is not None and len(rows) != wanted):
        raise SavepointUnreadable(f"a value of the form {form} has bytes after its rows")
    return rows


def write_rows(rows: Iterable[StoredRow], state: NamedState) -> bytes:
    """The value that holds these rows."""
    parts = [write_int(len(row)) + row + beside for row, beside in rows]
    if state.kind is KeyedStateKind.LIST:
        return _BETWEEN.join(parts)
    return b"".join([write_int(len(parts)), *parts] if state.value.form.startswith("List") else parts)
