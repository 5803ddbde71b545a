"""Plans that rewrite the fields of a row for a new layout, or merge the fields of equal keys."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from airflow_flinkcompat.exec_graph.layout import Begins, CallPart, Merges, StateField
from airflow_flinkcompat.exec_graph.rewriting import count_position, spread_places, sum_changes
from airflow_flinkcompat.migration.uniting import (
    ADD_DECIMALS,
    ADD_INTEGERS,
    ADD_REALS,
    DECIMAL,
    GREATER,
    INTEGER,
    LESSER,
    REAL,
    SAME,
    TEXT,
    TIMESTAMP,
)
from airflow_flinkcompat.savepoint.binary_row import (
    EMPTY_VIEW,
    NO_SPREAD,
    NULL,
    Field,
    FieldForm,
    field_form,
    field_writer,
    null_bytes,
    zero,
)
from airflow_flinkcompat.savepoint.row_mapping import BY_WORD, ROOM, Converted, RowMapping, row_mapping

_INTEGERS = {"TINYINT": "<b", "SMALLINT": "<h", "INT": "<i", "BIGINT": "<q"}
_NUMBERS = {**_INTEGERS, "INTEGER": "<i", "DECIMAL": "<q", "DATE": "<i", "TIME": "<i", "TIMESTAMP": "<q",
            "TIMESTAMP_LTZ": "<q", "BOOLEAN": "<?", "FLOAT": "<f", "DOUBLE": "<d"}  # fmt: skip
_WORD = 8


class NotMigratable(Exception):
    """A state cannot be rewritten for the new job. The message names the state and the reason."""


def row_change(old: Sequence[StateField], new: Sequence[StateField], places: Sequence[int | None]) -> RowMapping | None:
    """Build the mapping of old rows to new rows; None if rows are unchanged."""
    fields = [
        begin(field) if place is None else _converted(field, place, old)
        for field, place in zip(new, places, strict=True)
    ]
    forms = [field_form(field.type) for field in old]
    return None if fields == list(range(len(old))) else row_mapping(forms, fields)


def begin(field: StateField) -> Field:
    match field.begins:
        case Begins.NULL:
            return NULL
        case Begins.ZERO:
            return zero(field.type)
        case None if field.constant is not None:
            return field_writer(field.type)(field.constant)
        case Begins.EMPTY_VIEW:
            return EMPTY_VIEW
        case Begins.NO_SPREAD:
            return NO_SPREAD
    raise NotMigratable(f"the initial value of {field.words} was not measured, so that the field cannot be added")


def _converted(new: StateField, place: int, old: Sequence[StateField]) -> int | Converted:
    """Return the position of the old field that becomes a new field, or the conversion of the old field."""
    before, after = old[place].type, new.type
    if (spread := spread_places(new, old)) is not None and place == spread[0]:
        return Converted(place, spread=(spread[1], spread[2], real_size(before) > 0))
    if sum_changes(old[place], new):
        # A sum of no values is NULL in one job and 0 in the other.
        if isinstance(new.meaning, CallPart) and not new.meaning.null_at_first:
            return Converted(place, instead_of_null=zero(after))
        return Converted(place, null_if_zero=count_position(old[place], old))
    sizes = _integer_size(before), _integer_size(after)
    if sizes[0] and sizes[1] and sizes[0] != sizes[1]:
        return Converted(place, widened=sizes)
    if field_form(before) is FieldForm.WORD and field_form(after) is FieldForm.DECIMAL:
        return Converted(place, to_decimal=True)
    return place


def _integer_size(type: str) -> int:
    form = _INTEGERS.get(_root(type))
    return 0 if form is None else struct.calcsize(form)


def _root(type: str) -> str:
    match = re.match(r"\w+", type)
    return match[0].upper() if match else ""


def merge_plan(fields: Sequence[StateField]) -> list[int]:
    """Plan the merge of two accumulator rows in a compiled loop."""
    words = null_bytes(len(fields))
    steps = [each for field in fields for each in (ROOM.get(field_form(field.type), BY_WORD), *_merge(field))]
    return [len(fields), words, words + _WORD * len(fields), *steps]


def _merge(field: StateField) -> tuple[int, int]:
    """The merge of two values of a field, and the form of the values."""
    if field.merges is None:
        return SAME, 0
    form, number = field_form(field.type), _NUMBERS.get(_root(field.type))
    size = struct.calcsize(number) if number else 0
    if field.merges is Merges.ADDED:
        if form is FieldForm.DECIMAL:
            return ADD_DECIMALS, 0
        if form is not FieldForm.WORD or number is None:
            raise NotMigratable(f"sums of the type {field.type} cannot be added: their stored form was not measured")
        return (ADD_REALS if number in _REALS else ADD_INTEGERS), size
    merge = LESSER if field.merges is Merges.LEAST else GREATER
    if form in _COMPARED:
        return merge, _COMPARED[form]
    if form is FieldForm.WORD and number is not None:
        return merge, (REAL if number in _REALS else INTEGER) + size
    raise NotMigratable(f"values of the type {field.type} cannot be compared: their order was not measured")


_REALS = ("<f", "<d")
_COMPARED = {FieldForm.DECIMAL: DECIMAL, FieldForm.TIMESTAMP: TIMESTAMP, FieldForm.TEXT: TEXT}


def real_size(type: str) -> int:
    """Number of bytes of a FLOAT or a DOUBLE; 0 for other types."""
    number = _NUMBERS.get(_root(type))
    return struct.calcsize(number) if number in _REALS else 0
