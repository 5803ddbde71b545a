"""Rows built from other rows field by field, by a plan that is made once for all rows of a state.

:mod:`~airflow_flinkcompat.savepoint.binary_row` does the same slowly, one field at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.binary_row import (
    DECIMAL_ROOM,
    TIMESTAMP_ROOM,
    Field,
    FieldForm,
    null_bytes,
)
from airflow_flinkcompat.savepoint.compiled import (
    clear,
    compiled,
    copy,
    little32,
    numbers,
    put_little32,
    put_real,
    put_signed,
    readable,
    real,
    signed,
    writable,
)

_WORD = 8
_INLINE, _TOP_BIT = 1 << 31, 0x80
IN_WORD, BY_WORD = -1, 0
ROOM = {FieldForm.WORD: IN_WORD, FieldForm.DECIMAL: DECIMAL_ROOM, FieldForm.TIMESTAMP: TIMESTAMP_ROOM}

_COPIED, _NULL_REPLACED, _NULL_IF_ZERO, _WIDENED, _TO_DECIMAL, _SPREAD = range(6)
_SPREAD_ROOM = 32
"""Size of a row of three numbers."""


@dataclass(frozen=True)
class Converted:
    """A new field that is converted from an old one. NULL stays NULL without ``instead_of_null``.

    Attributes:
        source: Position of the old field.
        instead_of_null: Value of the new field if the old one is NULL.
        null_if_zero: Position of an old field in eight bytes; if it is 0, the new field is NULL.
        widened: Sizes in bytes of the old and the new integer; None if the integer keeps its size.
        to_decimal: True if a decimal of at most eighteen digits becomes a decimal of more digits.
        spread: For a row of number, mean and spread that is computed from a sum of squares, the positions of the sum
            and of the count, and True if the sums are DOUBLE values rather than BIGINT values.
    """

    source: int
    instead_of_null: Field | None = None
    null_if_zero: int | None = None
    widened: tuple[int, int] | None = None
    to_decimal: bool = False
    spread: tuple[int, int, bool] | None = None


# A plan is a single list of numbers, because tuples of lists make a compiled loop slow. The plan contains a head, then
# seven numbers for each new field, then the positions of the new fields with a variable part.
_STEP = 7
_SOURCE, _CHANGE, _ARGUMENT, _SPACE, _NULL, _CONSTANT, _PART = range(_STEP)
_FIELDS, _OLD_HEAD, OLD_END, _SIZED, _NEW_HEAD, NEW_END, _WHOLE, _STEPS = range(8)

ROW_TOO_SHORT, FIELD_OUTSIDE, OVERFLOWN = -1, -2, -3
_ERRORS = {
    ROW_TOO_SHORT: "a row is too short for its fields",
    FIELD_OUTSIDE: "a field of a row begins or ends after the row",
    OVERFLOWN: "a sum of squares is less than its values require: it exceeded BIGINT, and its results are wrong",
}


@dataclass(frozen=True)
class RowMapping:
    """Builder of new rows from old ones, both as stored without their length.

    A new row has at most ``repeats`` times the bytes of the old one, and ``growth`` more. ``constants``: words and
    variable parts of new fields.
    """

    plan: list[int]
    constants: memoryview
    repeats: int
    growth: int

    def __call__(self, row: bytes) -> bytes:
        """Build a new row; raises SavepointUnreadable if the old row is too short for its fields."""
        out = writable(len(row) * self.repeats + self.growth)
        end = map_row(readable(row), 0, len(row), out, 0, self.plan, self.constants)
        if end < 0:
            raise row_error(end)
        return bytes(out[:end])


def row_error(code: int) -> SavepointUnreadable:
    """The error of a row that cannot be mapped."""
    return SavepointUnreadable(_ERRORS[code])


def row_mapping(forms: Sequence[FieldForm], fields: Sequence[int | Field | Converted]) -> RowMapping:
    """Plan the construction of new rows from old ones.

    ``fields``: for each field of a new row, the position or the conversion of an old field, or the new field itself.
    """
    constants = bytearray()
    steps: list[int] = []
    variable: list[int] = []
    sources: list[int] = []
    in_order = True
    for place, field in enumerate(fields):
        change = None if isinstance(field, Field) else field if isinstance(field, Converted) else Converted(field)
        constant = field if isinstance(field, Field) else change.instead_of_null if change else None
        part = None if constant is None else constant.variable_part
        space = IN_WORD if change is None else ROOM.get(forms[change.source], BY_WORD)
        code, argument = _change(change)
        null = constant is not None and constant.null
        steps += [
            change.source if change else -1,
            code,
            argument,
            space,
            null,
            len(constants),
            -1 if part is None else len(part),
        ]
        if constant is not None:
            constants += constant.word + (part or b"")
        if space != IN_WORD or part is not None or code in (_TO_DECIMAL, _SPREAD):
            variable.append(place)
            sources.append(change.source if change else -len(variable))
            in_order = in_order and code == _COPIED
    parts = [place for place, form in enumerate(forms) if form is not FieldForm.WORD]
    old_end = null_bytes(len(forms)) + _WORD * len(forms)
    new_end = null_bytes(len(fields)) + _WORD * len(fields)
    whole = bool(parts) and in_order and sources == parts
    head = (
        len(fields), null_bytes(len(forms)), old_end, not parts, null_bytes(len(fields)), new_end, whole,
    )  # fmt: skip
    growth = max(0, new_end - old_end) + len(constants) + _SPREAD_ROOM * len(fields)
    return RowMapping(
        numbers([*head, *steps, *variable]),
        readable(bytes(constants or 1)),
        max(Counter(sources).values(), default=1),
        growth,
    )


def _change(change: Converted | None) -> tuple[int, int]:
    """The code of a conversion, and its argument."""
    if change is None:
        return _COPIED, 0
    if change.instead_of_null is not None:
        return _NULL_REPLACED, 0
    if change.null_if_zero is not None:
        return _NULL_IF_ZERO, change.null_if_zero
    if change.widened is not None:
        return _WIDENED, change.widened[0] << 4 | change.widened[1]
    if change.spread is not None:
        total, count, reals = change.spread
        return _SPREAD, total << 17 | count << 1 | reals
    return (_TO_DECIMAL if change.to_decimal else _COPIED), 0


@compiled
def map_row(
    source: memoryview, at: int, size: int, out: memoryview, to: int, plan: list[int], constants: memoryview
) -> int:
    """Write the new row that replaces an old row; returns the new row's end, or an error code."""
    if size < plan[OLD_END] or (plan[_SIZED] and size != plan[OLD_END]):
        return ROW_TOO_SHORT
    old_words, new_words = at + plan[_OLD_HEAD], to + plan[_NEW_HEAD]
    clear(out, to, new_words)
    out[to] = source[at]  # the kind of change
    for field in range(plan[_FIELDS]):
        step = _STEPS + field * _STEP
        old, word, code = plan[step + _SOURCE], new_words + 8 * field, plan[step + _CHANGE]
        null = old >= 0 and is_null(source, at, old)
        if old < 0 or (null and code == _NULL_REPLACED):
            begin = plan[step + _CONSTANT]
            copy(constants, begin, begin + 8, out, word)
            null = plan[step + _NULL] > 0
        elif code == _SPREAD:
            null = False  # Flink stores a row of zeros before the first value
        elif code == _NULL_IF_ZERO and _is_zero(source, at, old_words, plan[step + _ARGUMENT]):
            clear(out, word, word + 8)
            null = True
        else:
            begin = old_words + 8 * old
            copy(source, begin, begin + 8, out, word)
            if code == _WIDENED and not null:
                _widen(out, word, plan[step + _ARGUMENT])
        if null:
            out[to + ((8 + field) >> 3)] |= 1 << (field & 7)
    if plan[_WHOLE]:
        return _moved_tail(source, at, size, out, to, plan)
    end = to + plan[NEW_END]
    for number in range(_STEPS + _STEP * plan[_FIELDS], len(plan)):
        end = _add_part(source, at, size, out, to, end, plan[number], plan, constants)
        if end < 0:
            return end
    return end


@compiled
def is_null(source: memoryview, at: int, field: int) -> bool:
    return source[at + ((8 + field) >> 3)] >> (field & 7) & 1 > 0


@compiled
def _is_zero(source: memoryview, at: int, words: int, field: int) -> bool:
    word = words + 8 * field
    return not is_null(source, at, field) and little32(source, word) == 0 and little32(source, word + 4) == 0


@compiled
def _widen(out: memoryview, word: int, sizes: int) -> None:
    """Extend the sign of an integer."""
    fill = 0xFF if out[word + (sizes >> 4) - 1] & _TOP_BIT else 0
    for place in range(sizes >> 4, sizes & 15):
        out[word + place] = fill


@compiled
def _moved_tail(source: memoryview, at: int, size: int, out: memoryview, to: int, plan: list[int]) -> int:
    """Copy all variable parts at once: only their offset changes."""
    copy(source, at + plan[OLD_END], at + size, out, to + plan[NEW_END])
    for number in range(_STEPS + _STEP * plan[_FIELDS], len(plan)):
        field = plan[number]
        word = to + plan[_NEW_HEAD] + 8 * field
        begin, space = little32(out, word + 4), plan[_STEPS + field * _STEP + _SPACE]
        if begin == 0 or (begin >= _INLINE and space == BY_WORD):
            continue
        if begin < plan[OLD_END] or begin + (little32(out, word) if space == BY_WORD else space) > size:
            return FIELD_OUTSIDE
        put_little32(out, word + 4, begin - plan[OLD_END] + plan[NEW_END])
    return to + plan[NEW_END] + size - plan[OLD_END]


@compiled
def _add_part(
    source: memoryview,
    at: int,
    size: int,
    out: memoryview,
    to: int,
    end: int,
    field: int,
    plan: list[int],
    constants: memoryview,
) -> int:
    """Append the variable part of a new field; returns its end, or the code of an error."""
    step, word = _STEPS + field * _STEP, to + plan[_NEW_HEAD] + 8 * field
    old, code = plan[step + _SOURCE], plan[step + _CHANGE]
    if old < 0 or (code == _NULL_REPLACED and is_null(source, at, old)):
        length = plan[step + _PART]
        begin = plan[step + _CONSTANT] + 8
        if length < 0:
            return end
        copy(constants, begin, begin + length, out, end)
    elif code == _TO_DECIMAL:
        if is_null(source, at, old):
            return end
        digits = _put_decimal(out, word, end)
        put_little32(out, word, digits)
        length = DECIMAL_ROOM
    elif code == _SPREAD:
        if not _put_spread(source, at + plan[_OLD_HEAD], old, plan[step + _ARGUMENT], out, end):
            return OVERFLOWN
        length = _SPREAD_ROOM
        put_little32(out, word, length)
    else:
        return add_stored_part(source, at, size, out, to, end, word, plan[step + _SPACE])
    put_little32(out, word + 4, end - to)
    return end + length


@compiled
def part_of(source: memoryview, word: int, space: int) -> tuple[int, int]:
    """Begin in the row and length of a field's variable part; twice 0 if the field has none."""
    begin = little32(source, word + 4)
    if space == IN_WORD or begin == 0 or (begin >= _INLINE and space == BY_WORD):
        return 0, 0
    return begin, (little32(source, word) + 7) // 8 * 8 if space == BY_WORD else space


@compiled
def part_outside(source: memoryview, word: int, size: int, space: int) -> bool:
    """True if a variable part ends after its row."""
    begin, length = part_of(source, word, space)
    return begin + length > size


@compiled
def add_stored_part(
    source: memoryview, at: int, size: int, out: memoryview, to: int, end: int, word: int, space: int
) -> int:
    """Append the variable part of a field whose eight bytes are copied; returns its end, or an error code."""
    begin, length = part_of(out, word, space)
    if length == 0 and begin == 0:
        return end
    if begin + length > size or end + length > len(out):
        return FIELD_OUTSIDE
    copy(source, at + begin, at + begin + length, out, end)
    put_little32(out, word + 4, end - to)
    return end + length


@compiled
def _put_spread(source: memoryview, words: int, squares: int, argument: int, out: memoryview, to: int) -> bool:
    """Write number, mean and spread of stored sums; False if the sums contradict each other."""
    total = words + 8 * (argument >> 17)
    count = signed(source, words + 8 * (argument >> 1 & 0xFFFF), 8)
    clear(out, to, to + _SPREAD_ROOM)
    put_signed(out, to + 8, 8, count)
    if count == 0:
        return True
    if argument & 1:
        summed = real(source, total, 8)
        spread = real(source, words + 8 * squares, 8) - summed * summed / count
        put_real(out, to + 16, 8, summed / count)
        put_real(out, to + 24, 8, 0.0 if spread < 0.0 else spread)
        return True
    # Squares of large integers exceed the exact range of DOUBLE, so whole means are subtracted as integers.
    whole = signed(source, total, 8)
    mean = whole // count
    rest = whole - mean * count
    square = signed(source, words + 8 * squares, 8) - mean * (whole + rest)
    spread = square - rest * (rest / count)
    put_real(out, to + 16, 8, whole / count)
    put_real(out, to + 24, 8, spread)
    return spread >= 0.0


@compiled
def _put_decimal(out: memoryview, word: int, end: int) -> int:
    """Write an integer of eight bytes as a decimal of more than eighteen digits; returns its length."""
    top = 7
    sign = 0xFF if out[word + 7] & _TOP_BIT else 0
    while top > 0 and out[word + top] == sign and (out[word + top - 1] ^ sign) & _TOP_BIT == 0:
        top -= 1
    clear(out, end, end + DECIMAL_ROOM)
    for place in range(top + 1):
        out[end + place] = out[word + top - place]
    return top + 1
