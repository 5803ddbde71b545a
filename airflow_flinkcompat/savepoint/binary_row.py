"""Rows as Flink stores them (``BinaryRowData``): bytes, fields and plain values, converted both ways."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from enum import Enum, auto
from typing import NamedTuple, cast

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable

_TYPE = re.compile(r"(?P<root>\w+)(?:\((?P<precision>\d+)(?:, ?(?P<scale>\d+))?\))?")
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
    """A text of at most seven bytes in the eight bytes of its field; a longer text in the variable part."""
    DECIMAL = auto()
    """A value in the variable part, which always reserves sixteen bytes."""
    TIMESTAMP = auto()
    """Milliseconds in the variable part; nanoseconds of the millisecond in the bytes of the field."""
    VARIABLE = auto()
    """A value in the variable part, which follows the eight bytes of every field."""


class Field(NamedTuple):
    """One field of a row.

    ``null``: True if the field has no value. ``word``: its eight bytes, without the offset of its variable part.
    ``variable_part``: its bytes in the variable part of the row, with padding; None if it has none there.
    """

    null: bool
    word: bytes
    variable_part: bytes | None = None


NULL = Field(True, bytes(_WORD))


def field_form(type: str) -> FieldForm:
    """Place of the values of a type in Flink's spelling, such as ``DECIMAL(38, 2) NOT NULL``.

    Measured on savepoints of 1.20.3 and 2.3.0.
    """
    root, precision, _ = split_type(type)
    if root in _IN_ITS_WORD:
        return FieldForm.WORD
    if root in _TEXTS:
        return FieldForm.TEXT
    if root == "DECIMAL":
        return FieldForm.WORD if (10 if precision is None else precision) <= _COMPACT_DECIMAL else FieldForm.DECIMAL
    if root.startswith("TIMESTAMP"):
        return FieldForm.WORD if (6 if precision is None else precision) <= _COMPACT_TIMESTAMP else FieldForm.TIMESTAMP
    return FieldForm.VARIABLE


def split_type(type: str) -> tuple[str, int | None, int]:
    """The root of a type in Flink's spelling, its precision or None, and its scale."""
    match = _TYPE.match(type)
    if match is None:
        return "", None, 0
    precision = match["precision"]
    return match["root"].upper(), None if precision is None else int(precision), int(match["scale"] or 0)


def type_arguments(type: str) -> list[str]:
    """Split the text between the outer brackets of a type at commas outside of brackets and quotes."""
    text = type[type.index("<") + 1 : type.rindex(">")]
    parts, depth, start, quoted = [], 0, 0, ""
    for place, letter in enumerate(text):
        if quoted:
            quoted = "" if letter == quoted else quoted
        elif letter in "`'":
            quoted = letter
        elif letter in "<(":
            depth += 1
        elif letter in ">)":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    rest = text[start:].strip()
    return [*parts, rest] if rest else parts


def named_type(text: str) -> tuple[str, str]:
    """Split `` `name` type`` into name and type; a doubled back-tick is part of the name."""
    end = 1
    while text[end] != "`" or text[end : end + 2] == "``":
        end += 2 if text[end : end + 2] == "``" else 1
    return text[1:end].replace("``", "`"), text[end + 1 :].strip()


def zero(type: str) -> Field:
    """The number zero as a field of a type in Flink's spelling."""
    if field_form(type) is FieldForm.DECIMAL:
        return Field(False, struct.pack("<II", 1, 0), bytes(DECIMAL_ROOM))
    return Field(False, bytes(_WORD))


EMPTY_VIEW = Field(False, struct.pack("<II", 1, 0), bytes(_WORD))
"""Field of an accumulator in place of a map whose entries a separate state stores."""
NO_SPREAD = Field(False, struct.pack("<II", 4 * _WORD, 0), bytes(4 * _WORD))
"""A row of three numbers, all of them 0."""


def read_row(row: bytes, forms: Sequence[FieldForm]) -> tuple[Field, ...]:
    """Split a stored row without its length into its fields, which :func:`write_row` accepts."""
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
    # A NULL decimal or timestamp has space in the variable part if its offset is not 0.
    variable_part = row[place : place + room] if place else None
    if variable_part is not None and (
        len(variable_part) < room or (form in (FieldForm.TEXT, FieldForm.VARIABLE) and place + low > len(row))
    ):
        raise SavepointUnreadable("a field of a row begins or ends after the row")
    return Field(null, struct.pack("<II", low, 0), variable_part)


def write_row(fields: Sequence[Field], head: int = 0) -> bytes:
    """Build a row without a length prefix from fields; ``head`` is the first byte of the row, its RowKind."""
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
    """Number of bytes that the RowKind and the NULL bits of a row occupy."""
    return (arity + 71) // 64 * _WORD


PlainValue = bool | int | float | Decimal | str | bytes | None
"""A value in Python: DATE in days and TIMESTAMP in microseconds since 1970, TIME in milliseconds."""
_INLINE_MARK, _LONGEST_INLINE = 0x80, 7
_DIGITS = 80
_NUMBERS = {
    "BOOLEAN": "<?", "TINYINT": "<b", "SMALLINT": "<h", "INT": "<i", "INTEGER": "<i", "BIGINT": "<q", "FLOAT": "<f",
    "DOUBLE": "<d", "DATE": "<i", "TIME": "<i",
}  # fmt: skip
_BYTES = frozenset({"BINARY", "VARBINARY", "BYTES"})
_CHARACTERS = frozenset({"CHAR", "VARCHAR", "STRING"})
_ROOM = {FieldForm.DECIMAL: DECIMAL_ROOM, FieldForm.TIMESTAMP: TIMESTAMP_ROOM}


def field_writer(type: str) -> Callable[[PlainValue], Field]:
    """Serializer of values to fields for a type in Flink's spelling, such as ``DECIMAL(10, 2) NOT NULL``."""
    root, form, scale = _parts(type)
    missing = Field(True, bytes(_WORD), bytes(_ROOM[form])) if form in _ROOM else NULL

    def stored(value: PlainValue) -> Field:
        match value:
            case None:
                return missing
            case str() | bytes():
                return _text(value.encode("utf-8") if isinstance(value, str) else value)
            case Decimal():
                return _decimal(value, scale, form)
            case int() if root.startswith("TIMESTAMP"):
                millis, micros = divmod(value, 1000)
                if form is FieldForm.WORD:
                    return Field(False, struct.pack("<q", millis))
                return Field(False, struct.pack("<II", micros * 1000, 0), struct.pack("<q", millis))
        return Field(False, struct.pack(_NUMBERS[root], value).ljust(_WORD, b"\0"))

    return stored


def field_reader(type: str) -> Callable[[Field], PlainValue]:
    """Inverse of :func:`field_writer`."""
    root, form, scale = _parts(type)

    def value(field: Field) -> PlainValue:
        if field.null:
            return None
        if form is FieldForm.TEXT:
            content = (
                field.word[: field.word[-1] & ~_INLINE_MARK]
                if field.variable_part is None
                else field.variable_part[: _low(field)]
            )
            return content if root in _BYTES else content.decode("utf-8")
        if root == "DECIMAL":
            variable_part = field.variable_part or b""
            unscaled = (
                struct.unpack("<q", field.word)[0]
                if form is FieldForm.WORD
                else int.from_bytes(variable_part[: _low(field)], "big", signed=True)
            )
            return _scaled(unscaled, scale)
        if root.startswith("TIMESTAMP"):
            if form is FieldForm.WORD:
                return int(struct.unpack("<q", field.word)[0]) * 1000
            return int(struct.unpack("<q", field.variable_part or b"")[0]) * 1000 + _low(field) // 1000
        number: bool | int | float = struct.unpack_from(_NUMBERS[root], field.word)[0]
        return number

    return value


def value_writer(type: str) -> Callable[[PlainValue], bytes]:
    """Serializer of non-NULL values that are stored outside a row, such as keys and values of a map."""
    root, kind, scale = _parts(type)
    if root in _CHARACTERS:
        return lambda value: _sized(str(value).encode("utf-8"))
    if root == "DECIMAL":
        in_word = kind is FieldForm.WORD
        return lambda value: _unscaled_bytes(_unscaled(cast(Decimal, value), scale), in_word)
    if root not in _NUMBERS:
        raise SavepointUnreadable(f"the stored form of a {type} outside a row was not measured")
    form = _NUMBERS[root].replace("<", ">")
    return lambda value: struct.pack(form, value)


def value_reader(type: str) -> Callable[[bytes], PlainValue]:
    """Inverse of :func:`value_writer`."""
    root, kind, scale = _parts(type)
    if root in _CHARACTERS:
        return lambda stored: stored[4:].decode("utf-8")
    if root == "DECIMAL":
        begin = 0 if kind is FieldForm.WORD else 4
        return lambda stored: _scaled(int.from_bytes(stored[begin:], "big", signed=True), scale)
    if root not in _NUMBERS:
        raise SavepointUnreadable(f"the stored form of a {type} outside a row was not measured")
    number = struct.Struct(_NUMBERS[root].replace("<", ">"))

    def value(stored: bytes) -> PlainValue:
        (found,) = number.unpack(stored)
        made: bool | int | float = found
        return made

    return value


def _unscaled_bytes(unscaled: int, in_word: bool) -> bytes:
    """Serialize a decimal outside a row: as a long, or as its shortest bytes, preceded by their number."""
    if in_word:
        return unscaled.to_bytes(_WORD, "big", signed=True)
    return _sized(unscaled.to_bytes(_length(unscaled), "big", signed=True))


def _sized(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def decimal_field(unscaled: int) -> Field:
    """Build the field of a decimal with more than eighteen digits, from its unscaled integer."""
    length = _length(unscaled)
    variable_part = unscaled.to_bytes(length, "big", signed=True).ljust(DECIMAL_ROOM, b"\0")
    return Field(False, struct.pack("<II", length, 0), variable_part)


def _parts(type: str) -> tuple[str, FieldForm, int]:
    """The root of a type, the place of its values, and the scale of a decimal."""
    (root, _, scale), form = split_type(type), field_form(type)
    if form is FieldForm.VARIABLE or (form is FieldForm.WORD and root not in _STORED):
        raise SavepointUnreadable(f"the stored form of {type} is unknown")
    return root, form, scale


_STORED = {*_NUMBERS, "DECIMAL", "TIMESTAMP", "TIMESTAMP_LTZ"}


def _text(content: bytes) -> Field:
    if len(content) <= _LONGEST_INLINE:
        return Field(False, content.ljust(_LONGEST_INLINE, b"\0") + bytes([_INLINE_MARK | len(content)]))
    padding = bytes(-len(content) % _WORD)
    return Field(False, struct.pack("<II", len(content), 0), content + padding)


def _length(unscaled: int) -> int:
    """Number of bytes of the shortest two's complement of an integer."""
    return (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1


def _scaled(unscaled: int, scale: int) -> Decimal:
    with localcontext(prec=_DIGITS):
        return Decimal(unscaled).scaleb(-scale)


def _unscaled(value: Decimal, scale: int) -> int:
    with localcontext(prec=_DIGITS):
        return int(value.scaleb(scale))


def _decimal(value: Decimal, scale: int, form: FieldForm) -> Field:
    unscaled = _unscaled(value, scale)
    return Field(False, struct.pack("<q", unscaled)) if form is FieldForm.WORD else decimal_field(unscaled)


def _low(field: Field) -> int:
    return int.from_bytes(field.word, "little") & _LOW
