"""Rows as Flink stores them (``BinaryRowData``): bytes read into fields, and fields written as bytes."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable

_TYPE = re.compile(r"(?P<root>\w+)(?:\((?P<precision>\d+))?")
_IN_ITS_WORD = frozenset(
    {"BOOLEAN", "TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIME", "INTERVAL"}
)
_TEXTS = frozenset({"CHAR", "VARCHAR", "STRING", "BINARY", "VARBINARY", "BYTES"})
_COMPACT_DECIMAL, _COMPACT_TIMESTAMP = 18, 3
DECIMAL_ROOM, TIMESTAMP_ROOM = 16, 8
_WORD = 8
_INLINE = 1 << 63
_LOW = 0xFFFFFFFF


class FieldForm(Enum):
    """Place of a field's value."""

    WORD = auto()
    """A value in the eight bytes of its field."""
    TEXT = auto()
    """A value in the eight bytes of its field if it has at most seven, else in the variable part."""
    DECIMAL = auto()
    """A value after all words, always with room for sixteen bytes."""
    TIMESTAMP = auto()
    """Its milliseconds in the variable part, the rest in its word."""
    VARIABLE = auto()
    """A value after all words."""


class Field(NamedTuple):
    """One field of a row.

    ``null``: it has no value. ``word`` holds its eight bytes without the offset of its variable part. ``variable_part``
    has its padded size; None without one.
    """

    null: bool
    word: bytes
    variable_part: bytes | None = None


NULL = Field(True, bytes(_WORD))


def field_form(type: str) -> FieldForm:
    """Place of the values of a type in Flink's spelling, such as ``DECIMAL(38, 2) NOT NULL``.

    Measured on savepoints of 1.20.3 and 2.3.0 (``state-migration.md`` §3.3).
    """
    match = _TYPE.match(type)
    root, precision = (match["root"].upper(), match["precision"]) if match else ("", None)
    if root in _IN_ITS_WORD:
        return FieldForm.WORD
    if root in _TEXTS:
        return FieldForm.TEXT
    if root == "DECIMAL":
        return FieldForm.WORD if int(precision or 10) <= _COMPACT_DECIMAL else FieldForm.DECIMAL
    if root.startswith("TIMESTAMP"):
        return FieldForm.WORD if int(precision or 6) <= _COMPACT_TIMESTAMP else FieldForm.TIMESTAMP
    return FieldForm.VARIABLE


def zero(type: str) -> Field:
    """The number zero as a field of a type in Flink's spelling."""
    if field_form(type) is FieldForm.DECIMAL:
        return Field(False, struct.pack("<II", 1, 0), bytes(DECIMAL_ROOM))
    return Field(False, bytes(_WORD))


EMPTY_VIEW = Field(False, struct.pack("<II", 1, 0), bytes(_WORD))
"""A map that an accumulator stores separately, before it holds anything."""


NO_SPREAD = Field(False, struct.pack("<II", 4 * _WORD, 0), bytes(4 * _WORD))
"""A row of three numbers, all of them 0."""


def read_row(row: bytes, forms: Sequence[FieldForm]) -> tuple[Field, ...]:
    """Split a stored row without its length into its fields, which :func:`write_row` accepts.

    Raises SavepointUnreadable if the row is shorter than its fields require.
    """
    begin = null_bytes(len(forms))
    if len(row) < begin + _WORD * len(forms):
        raise SavepointUnreadable(f"a row of {len(row)} bytes is too short for {len(forms)} fields")
    return tuple(_read(row, begin + _WORD * place, place + 8, form) for place, form in enumerate(forms))


def _read(row: bytes, at: int, bit: int, form: FieldForm) -> Field:
    null = bool(row[bit >> 3] & (1 << (bit & 7)))
    word = row[at : at + _WORD]
    number = int.from_bytes(word, "little")
    place, low = number >> 32, number & _LOW
    if form is FieldForm.WORD or (form is FieldForm.TEXT and number & _INLINE):
        return NULL if null else Field(False, word)
    room = {FieldForm.DECIMAL: DECIMAL_ROOM, FieldForm.TIMESTAMP: TIMESTAMP_ROOM}.get(form)
    if room is None:
        if null:
            return NULL
        room = low + -low % _WORD
    # A decimal or timestamp that is NULL takes its room all the same, if the row was written with it.
    variable_part = row[place : place + room] if place else None
    if variable_part is not None and (
        len(variable_part) < room or (form in (FieldForm.TEXT, FieldForm.VARIABLE) and place + low > len(row))
    ):
        raise SavepointUnreadable("a field of a row begins or ends after the row")
    return Field(null, struct.pack("<II", low, 0), variable_part)


def write_row(fields: Sequence[Field], head: int = 0) -> bytes:
    """Build a row, without its length, from fields; ``head`` is its first byte, the kind of its change."""
    nulls = bytearray(null_bytes(len(fields)))
    nulls[0] = head
    words, variable_part = [], b""
    begin = len(nulls) + _WORD * len(fields)
    for place, field in enumerate(fields):
        if field.null:
            bit = place + 8
            nulls[bit >> 3] |= 1 << (bit & 7)
        if field.variable_part is None:
            words.append(field.word)
        else:
            words.append(field.word[:4] + struct.pack("<I", begin + len(variable_part)))
            variable_part += field.variable_part
    return b"".join([bytes(nulls), *words, variable_part])


def null_bytes(arity: int) -> int:
    """Number of bytes of a row's kind and its null bits."""
    return (arity + 71) // 64 * _WORD
