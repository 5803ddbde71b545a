"""Rewriting of the fields of a row."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence

from airflow_flinkcompat.exec_graph.layout import Begins, CallPart, StateField
from airflow_flinkcompat.exec_graph.rewriting import count_beside, sum_changes
from airflow_flinkcompat.savepoint.binary_row import (
    EMPTY_VIEW,
    NO_SPREAD,
    NULL,
    Field,
    FieldForm,
    decimal_field,
    field_form,
    read_row,
    write_row,
    zero,
)
from airflow_flinkcompat.savepoint.row_mapping import RowChange, row_mapping

_Take = Callable[[Sequence[Field]], Field]
_INTEGERS = {"TINYINT": "<b", "SMALLINT": "<h", "INT": "<i", "BIGINT": "<q"}
_WORD = 8


class NotMigratable(Exception):
    """A state that cannot be rewritten for the new job; the message names it and the reason."""


def row_change(old: Sequence[StateField], new: Sequence[StateField], places: Sequence[int | None]) -> RowChange | None:
    """Function that makes new rows from old ones; None if they are equal."""
    fields = [begin(field) if place is None else place for field, place in zip(new, places, strict=True)]
    takes = [None if place is None else _take(field, place, old) for field, place in zip(new, places, strict=True)]
    forms = [field_form(field.type) for field in old]
    if not any(takes):
        return None if fields == list(range(len(old))) else row_mapping(forms, fields)

    def change(row: bytes) -> bytes:
        found = read_row(row, forms)
        return write_row(
            [
                taken(found) if taken else found[field] if isinstance(field, int) else field
                for field, taken in zip(fields, takes, strict=True)
            ],
            row[0],
        )

    return change


def begin(field: StateField) -> Field:
    """Initial value of a field."""
    match field.begins:
        case Begins.NULL:
            return NULL
        case Begins.ZERO:
            return zero(field.type)
        case Begins.EMPTY_VIEW:
            return EMPTY_VIEW
        case Begins.NO_SPREAD:
            return NO_SPREAD
    raise NotMigratable(f"the initial value of {field.words} was not measured")


def _take(new: StateField, place: int, old: Sequence[StateField]) -> _Take | None:
    """Function that makes a new field from an old row; None: the field is copied."""
    if sum_changes(old[place], new):
        return _sum(new, place, old)
    widened = _widened(old[place].type, new.type)
    return None if widened is None else lambda row: row[place] if row[place].null else widened(row[place])


def _sum(new: StateField, place: int, old: Sequence[StateField]) -> _Take:
    """A sum of no values that is NULL in one of both, and 0 in the other."""
    nothing = zero(new.type)
    if isinstance(new.meaning, CallPart) and not new.meaning.null_at_first:
        return lambda row: nothing if row[place].null else row[place]
    count = count_beside(old[place], old)
    assert count is not None
    none_counted = zero(old[count].type)
    return lambda row: NULL if row[count] == none_counted else row[place]


def _widened(old: str, new: str) -> Callable[[Field], Field] | None:
    """Function that converts a value to a wider type; None: the stored form is the same."""
    before, after = (_INTEGERS.get(_root(type)) for type in (old, new))
    if before and after and before != after:
        return lambda field: Field(
            False, struct.pack(after, *struct.unpack_from(before, field.word)).ljust(_WORD, b"\0")
        )
    if field_form(old) is FieldForm.WORD and field_form(new) is FieldForm.DECIMAL:
        return lambda field: decimal_field(int.from_bytes(field.word, "little", signed=True))
    return None


def _root(type: str) -> str:
    match = re.match(r"\w+", type)
    return match[0].upper() if match else ""
