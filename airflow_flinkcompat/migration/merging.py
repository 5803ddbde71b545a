"""Values of keys that become one, merged as the new operator would have counted them."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

from airflow_flinkcompat.exec_graph.layout import Merges, StateField
from airflow_flinkcompat.migration.fields import NotMigratable
from airflow_flinkcompat.savepoint.binary_row import Field, FieldForm, decimal_field, field_form, read_row, write_row

_Number = int | float
_INTEGERS = {"TINYINT": "<b", "SMALLINT": "<h", "INT": "<i", "INTEGER": "<i", "BIGINT": "<q", "DECIMAL": "<q",
             "DATE": "<i", "TIME": "<i", "TIMESTAMP": "<q", "TIMESTAMP_LTZ": "<q", "BOOLEAN": "<?"}  # fmt: skip
_FLOATS = {"FLOAT": "<f", "DOUBLE": "<d"}
_WORD, _LOW, _LONGEST_DECIMAL = 8, 0xFFFFFFFF, 10**38
_INLINE = 1 << 63


def row_merger(fields: Sequence[StateField]) -> Callable[[bytes, bytes], bytes]:
    """Function that merges two accumulator rows."""
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
        raise NotMigratable(f"{field.words} of several keys cannot be merged")
    return left


def _without_null(merge: Callable[[Field, Field], Field]) -> Callable[[Field, Field], Field]:
    return lambda left, right: right if left.null else left if right.null else merge(left, right)


def _root(type: str) -> str:
    match = re.match(r"\w+", type)
    return match[0].upper() if match else ""


def _adder(field: StateField) -> Callable[[Field, Field], Field]:
    if field_form(field.type) is FieldForm.DECIMAL:
        return lambda left, right: _decimal(_unscaled(left) + _unscaled(right), field)
    form = {**_INTEGERS, **_FLOATS}.get(_root(field.type))
    if form is None or field_form(field.type) is not FieldForm.WORD:
        raise NotMigratable(f"sums of the type {field.type} were not measured")
    add = _float_sum if form in _FLOATS.values() else _wrapped_sum
    return lambda left, right: _word(form, add(form, _number(form, left), _number(form, right)))


def _number(form: str, field: Field) -> _Number:
    number: _Number = struct.unpack_from(form, field.word)[0]
    return number


def _word(form: str, number: _Number) -> Field:
    return Field(False, struct.pack(form, number).ljust(_WORD, b"\0"))


def _wrapped_sum(form: str, left: _Number, right: _Number) -> _Number:
    """Sum with Java's overflow, which begins at the other end."""
    half = 1 << (8 * struct.calcsize(form) - 1)
    return (int(left) + int(right) + half) % (2 * half) - half


def _float_sum(form: str, left: _Number, right: _Number) -> _Number:
    return left + right


def _reader(field: StateField) -> Callable[[Field], Any]:
    """Function that reads the values of a field for comparison."""
    match field_form(field.type):
        case FieldForm.DECIMAL:
            return _unscaled
        case FieldForm.TIMESTAMP:
            return lambda value: (*struct.unpack("<q", value.variable_part or b""), _low(value))
        case FieldForm.TEXT:
            return _text
        case FieldForm.WORD if form := {**_INTEGERS, **_FLOATS}.get(_root(field.type)):
            return lambda value: _number(form, value)
    raise NotMigratable(f"the order of values of the type {field.type} was not measured")


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
        raise NotMigratable(f"the merged {field.words} of several keys exceeds its type")
    return decimal_field(number)
