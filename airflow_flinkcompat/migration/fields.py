"""Fields of a row: rewrite them for a new layout, and merge rows if several keys become equal."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

from airflow_flinkcompat.exec_graph.layout import Begins, CallPart, Merges, StateField
from airflow_flinkcompat.exec_graph.rewriting import count_position, sum_changes
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
from airflow_flinkcompat.savepoint.row_mapping import Converted, RowMapping, row_mapping

_INTEGERS = {"TINYINT": "<b", "SMALLINT": "<h", "INT": "<i", "BIGINT": "<q"}
_NUMBERS = {**_INTEGERS, "INTEGER": "<i", "DECIMAL": "<q", "DATE": "<i", "TIME": "<i", "TIMESTAMP": "<q",
            "TIMESTAMP_LTZ": "<q", "BOOLEAN": "<?", "FLOAT": "<f", "DOUBLE": "<d"}  # fmt: skip
_WORD, _LOW, _LONGEST_DECIMAL = 8, 0xFFFFFFFF, 10**38


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
        case Begins.EMPTY_VIEW:
            return EMPTY_VIEW
        case Begins.NO_SPREAD:
            return NO_SPREAD
    raise NotMigratable(f"the initial value of {field.words} was not measured, so that the field cannot be added")


def _converted(new: StateField, place: int, old: Sequence[StateField]) -> int | Converted:
    """Return the position of the old field that becomes a new field, or the conversion of the old field."""
    before, after = old[place].type, new.type
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


def row_merger(fields: Sequence[StateField]) -> Callable[[bytes, bytes], bytes]:
    """Return a function that merges two accumulator rows."""
    forms = [field_form(field.type) for field in fields]
    mergers = [_merger(field) for field in fields]

    def merged(one: bytes, other: bytes) -> bytes:
        pairs = zip(mergers, read_row(one, forms), read_row(other, forms), strict=True)
        return write_row([merge(left, right) for merge, left, right in pairs], one[0])

    return merged


def _merger(field: StateField) -> Callable[[Field, Field], Field]:
    if field.merges is None:
        return lambda left, right: _equal(field, left, right)
    if field.merges is Merges.ADDED:
        return _without_null(_adder(field))
    value, sign = _reader(field), 1 if field.merges is Merges.LEAST else -1

    def better(left: Field, right: Field) -> Field:
        one, other = value(left), value(right)
        return left if (one <= other if sign > 0 else one >= other) else right

    return _without_null(better)


def _equal(field: StateField, left: Field, right: Field) -> Field:
    if left != right:
        raise NotMigratable(f"{field.words} differs between keys that become equal, and cannot be merged")
    return left


def _without_null(merge: Callable[[Field, Field], Field]) -> Callable[[Field, Field], Field]:
    return lambda left, right: right if left.null else left if right.null else merge(left, right)


def _adder(field: StateField) -> Callable[[Field, Field], Field]:
    if field_form(field.type) is FieldForm.DECIMAL:
        return lambda left, right: _decimal(_unscaled(left) + _unscaled(right), field)
    form = _NUMBERS.get(_root(field.type))
    if form is None or field_form(field.type) is not FieldForm.WORD:
        raise NotMigratable(f"sums of the type {field.type} cannot be added: their stored form was not measured")
    if form in ("<f", "<d"):
        return lambda left, right: _word(form, _number(form, left) + _number(form, right))
    half = 1 << (8 * struct.calcsize(form) - 1)
    # Java's integers wrap around.
    return lambda left, right: _word(
        form, (int(_number(form, left)) + int(_number(form, right)) + half) % (2 * half) - half
    )


def _number(form: str, field: Field) -> int | float:
    number: int | float = struct.unpack_from(form, field.word)[0]
    return number


def _word(form: str, number: int | float) -> Field:
    return Field(False, struct.pack(form, number).ljust(_WORD, b"\0"))


def _reader(field: StateField) -> Callable[[Field], Any]:
    """Return a function that reads a field's values in a comparable form."""
    match field_form(field.type):
        case FieldForm.DECIMAL:
            return _unscaled
        case FieldForm.TIMESTAMP:
            return lambda value: (*struct.unpack("<q", value.variable_part or b""), _low(value))
        case FieldForm.TEXT:
            return _text
        case FieldForm.WORD if form := _NUMBERS.get(_root(field.type)):
            return lambda value: _number(form, value)
    raise NotMigratable(f"values of the type {field.type} cannot be compared: their order was not measured")


def _low(field: Field) -> int:
    return int.from_bytes(field.word, "little") & _LOW


def _text(field: Field) -> bytes:
    if field.variable_part is not None:
        return field.variable_part[: _low(field)]
    return field.word[: field.word[-1] & 0x7F]


def _unscaled(field: Field) -> int:
    return int.from_bytes((field.variable_part or b"")[: _low(field)], "big", signed=True)


def _decimal(number: int, field: StateField) -> Field:
    if abs(number) >= _LONGEST_DECIMAL:
        raise NotMigratable(f"the merged {field.words} of several keys exceeds its type {field.type}")
    return decimal_field(number)
