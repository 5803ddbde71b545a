"""Compiled loops that unite the scattered entries of a key group whose keys have become equal.

A chain links the entries of a state with equal keys in their stored order. The values of a chain are merged one after
the other, field by field, as a plan of numbers states.
"""

from __future__ import annotations

from airflow_flinkcompat.migration.loops import AFTER_ROWS
from airflow_flinkcompat.migration.moving import NEEDED
from airflow_flinkcompat.savepoint.binary_row import DECIMAL_ROOM
from airflow_flinkcompat.savepoint.compiled import (
    clear,
    compiled,
    copy,
    equal,
    little32,
    put_little32,
    put_real,
    put_signed,
    put_uint16,
    put_uint32,
    real,
    row_hash,
    signed,
    uint16,
    uint32,
)
from airflow_flinkcompat.savepoint.row_mapping import (
    BY_WORD,
    FIELD_OUTSIDE,
    IN_WORD,
    ROW_TOO_SHORT,
    add_stored_part,
    is_null,
    part_of,
    part_outside,
)

COMPUTED = 0x8000
"""Bit of a state number that marks an entry as computed from history."""
ENTRY = 3
"""Numbers for each entry: its begin, the next entry of its chain, and the last entry of the chain.

Unless the entry is the first of its chain, the third number is negative: -1 minus the first entry.
"""
BEGIN, NEXT, LAST = range(ENTRY)
KEEP_FIRST, MERGE_ROWS, ADD_COUNTS, ONLY_NEEDED, NOT_MERGED = range(5)
"""Kinds of unions of the values in a chain; ONLY_NEEDED is for timers."""
KIND, CONTENT, ROW = range(3)
"""Indexes in the plan of a state: the kind, the begin of a value's content, and the plan of a row."""
FIELDS, WORDS, PARTS, STEPS = range(4)
"""Indexes in the plan of a row: the number of fields, the begins of fields and of variable parts."""
STEP = 3
"""Numbers for each field: the space of its variable part, the merge, and the form of the values."""
SAME, ADD_INTEGERS, ADD_REALS, ADD_DECIMALS, LESSER, GREATER, FIRST, SECOND = range(8)
"""Merges of the two values of a field."""
INTEGER, REAL, TIMESTAMP, TEXT, DECIMAL = range(0, 80, 16)
"""Stored forms of comparable values; the number of bytes of an integer or a real number is added."""
NOT_NEEDED, OTHER_MATCHES, TOO_MANY, SEVERAL_VALUES = range(-41, -45, -1)
DIFFERS, TOO_LARGE = -1000, -10000
"""Error codes of a field, from which the number of the field is subtracted."""
_UNORDERED = 2
_LIMB, _LIMB_BYTES = (1 << 56) - 1, 7
_LEAST_TOO_LARGE, _GREATEST_TOO_SMALL = (
    (number >> 112, number >> 56 & _LIMB, number & _LIMB) for number in (10**38, -(10**38))
)


@compiled
def count_entries(source: memoryview) -> int:
    """Number of scattered entries."""
    count, at = 0, 0
    while at < len(source):
        end_of_key = at + 6 + uint32(source, at + 2)
        at = end_of_key + 4 + uint32(source, end_of_key)
        count += 1
    return count


@compiled
def link_equal(source: memoryview, entries: list[int], slots: list[int], ignored: int) -> None:
    """Link the entries of a state with equal keys.

    ``slots``: an empty hash table, whose size is a power of two. ``ignored``: a bit of the state's number.
    """
    entry, at = 0, 0
    while at < len(source):
        begin = at + 6
        end = begin + uint32(source, at + 2)
        slot = row_hash(source, begin, end) & len(slots) - 1
        state = uint16(source, at) & ~ignored
        first = slots[slot] - 1
        while first >= 0:
            other = entries[ENTRY * first + BEGIN]
            if uint16(source, other) & ~ignored == state and equal(source, at + 2, end, source, other + 2):
                break
            slot = slot + 1 & len(slots) - 1
            first = slots[slot] - 1
        entries[ENTRY * entry + BEGIN], entries[ENTRY * entry + NEXT] = at, -1
        if first < 0:
            slots[slot] = entry + 1
            entries[ENTRY * entry + LAST] = entry
        else:
            entries[ENTRY * entry + LAST] = -1 - first
            entries[ENTRY * entries[ENTRY * first + LAST] + NEXT] = entry
            entries[ENTRY * first + LAST] = entry
        entry += 1
        at = end + 4 + uint32(source, end)


@compiled
def unite(source: memoryview, count: int, entries: list[int], out: memoryview, plans: list[int]) -> tuple[int, int]:
    """Write one entry for each chain.

    ``plans`` begins with the number of states, and the indexes of the plans of stored and of computed states. Returns
    the end of the written entries and the state that caused an error; an error code replaces the end.
    """
    to = 0
    for entry in range(count):
        if entries[ENTRY * entry + LAST] < 0:
            continue
        at, other = entries[ENTRY * entry + BEGIN], entries[ENTRY * entry + NEXT]
        end_of_key = at + 6 + uint32(source, at + 2)
        end = end_of_key + 4 + uint32(source, end_of_key)
        state = uint16(source, at) & ~NEEDED
        plan = plans[1 + (state & ~COMPUTED) + (plans[0] if state & COMPUTED else 0)]
        if plans[plan + KIND] == ONLY_NEEDED:
            needed, stored = _origins(source, entry, entries)
            if not needed:
                continue
            if not stored:
                return NOT_NEEDED, state
        copy(source, at, end, out, to)
        put_uint16(out, to, state)
        value = to + end_of_key + 4 - at
        to += end - at
        if other >= 0 and plans[plan + KIND] == NOT_MERGED:
            return SEVERAL_VALUES, state
        while other >= 0 and (plans[plan + KIND] == MERGE_ROWS or plans[plan + KIND] == ADD_COUNTS):
            end_of_key = entries[ENTRY * other + BEGIN] + 6 + uint32(source, entries[ENTRY * other + BEGIN] + 2)
            end = end_of_key + 4 + uint32(source, end_of_key)
            to = _merge_values(out, value, to, source, end_of_key + 4, end, plans, plan)
            if to < 0:
                return to, state
            other = entries[ENTRY * other + NEXT]
        put_uint32(out, value - 4, to - value)
    return to, 0


@compiled
def _origins(source: memoryview, entry: int, entries: list[int]) -> tuple[bool, bool]:
    """True if a slice needs a timer, and true if the timer is stored."""
    needed = stored = False
    while entry >= 0:
        if uint16(source, entries[ENTRY * entry + BEGIN]) & NEEDED:
            needed = True
        else:
            stored = True
        entry = entries[ENTRY * entry + NEXT]
    return needed, stored


@compiled
def _merge_values(
    out: memoryview, one: int, end: int, source: memoryview, other: int, end_of_other: int, plans: list[int], plan: int
) -> int:
    """Merge a value into the last written value; returns the end of the value, or an error code."""
    content = plans[plan + CONTENT]
    left, right = one + content, other + content
    if left + 4 > end or right + 4 > end_of_other:
        return AFTER_ROWS
    _keep_greater(out, one, source, other, content)
    if plans[plan + KIND] == ADD_COUNTS:
        left_number, right_number = uint32(out, left), uint32(source, right)
        if end - left != end_of_other - right or not equal(source, right + 4, end_of_other, out, left + 4):
            return OTHER_MATCHES
        if left_number + right_number >= 1 << 31:
            return TOO_MANY
        put_uint32(out, left, left_number + right_number)
        return end
    return merge_row_values(out, left, end, source, right, end_of_other, plans, plan + ROW)


@compiled
def merge_row_values(
    out: memoryview, left: int, end: int, source: memoryview, right: int, end_of_other: int, plans: list[int], plan: int
) -> int:
    """Merge a row with a length into the last written one; returns the end of the row, or an error code."""
    if left + 4 > end or right + 4 > end_of_other:
        return AFTER_ROWS
    left_number, right_number = uint32(out, left), uint32(source, right)
    if left + 4 + left_number != end or right + 4 + right_number != end_of_other:
        return AFTER_ROWS
    made = merge_rows(out, left + 4, left_number, source, right + 4, right_number, end, plans, plan)
    if made < 0:
        return made
    copy(out, end, made, out, left + 4)
    put_uint32(out, left, made - end)
    return left + 4 + made - end


@compiled
def _keep_greater(out: memoryview, one: int, source: memoryview, other: int, size: int) -> None:
    """Keep the greater of two sequences of bytes, such as the later of two timestamps."""
    for place in range(size):
        if out[one + place] != source[other + place]:
            if out[one + place] < source[other + place]:
                copy(source, other, other + size, out, one)
            return


@compiled
def merge_rows(
    out: memoryview,
    one: int,
    one_size: int,
    source: memoryview,
    other: int,
    other_size: int,
    to: int,
    plans: list[int],
    plan: int,
) -> int:
    """Write the merge of two rows, the first of which lies in ``out``; returns its end, or an error code."""
    words, end = to + plans[plan + WORDS], to + plans[plan + PARTS]
    if one_size < plans[plan + PARTS] or other_size < plans[plan + PARTS] or end > len(out):
        return ROW_TOO_SHORT
    clear(out, to, words)
    out[to] = out[one]  # the kind of change
    for field in range(plans[plan + FIELDS]):
        step = plan + STEPS + STEP * field
        space, merge, form = plans[step], plans[step + 1], plans[step + 2]
        word = words + 8 * field
        left, right = one + plans[plan + WORDS] + 8 * field, other + plans[plan + WORDS] + 8 * field
        left_null, right_null = is_null(out, one, field), is_null(source, other, field)
        if part_outside(out, left, one_size, space) or part_outside(source, right, other_size, space):
            return FIELD_OUTSIDE
        if ADD_INTEGERS <= merge <= ADD_DECIMALS and not left_null and not right_null:
            end = _put_sum(out, one, left, source, other, right, to, word, end, merge, form)
            if end < 0:
                return end if end == FIELD_OUTSIDE else TOO_LARGE - field
            continue
        take_left = right_null or not left_null
        if merge == SAME:
            if not same_fields(out, one, left, left_null, source, other, right, right_null, space):
                return DIFFERS - field
        elif merge >= FIRST:
            take_left = merge == FIRST
        elif not left_null and not right_null:
            order = _compared(out, one, left, source, other, right, form)
            take_left = order == 0 or order == (-1 if merge == LESSER else 1)
        if take_left:
            end = put_field(out, one, one_size, left, left_null, out, to, word, end, field, space)
        else:
            end = put_field(source, other, other_size, right, right_null, out, to, word, end, field, space)
        if end < 0:
            return end
    return end


@compiled
def put_field(
    source: memoryview,
    at: int,
    size: int,
    old_word: int,
    null: bool,
    out: memoryview,
    to: int,
    word: int,
    end: int,
    field: int,
    space: int,
) -> int:
    """Copy a field to a new row; returns the end of the row, or an error code."""
    if null:
        out[to + ((8 + field) >> 3)] |= 1 << (field & 7)
        if space <= BY_WORD:
            clear(out, word, word + 8)
            return end
    copy(source, old_word, old_word + 8, out, word)
    return add_stored_part(source, at, size, out, to, end, word, space)


@compiled
def same_fields(
    out: memoryview,
    one: int,
    left: int,
    left_null: bool,
    source: memoryview,
    other: int,
    right: int,
    right_null: bool,
    space: int,
) -> bool:
    """True if the fields of two rows are equal."""
    if left_null != right_null:
        return False
    if left_null and space <= BY_WORD:
        return True
    begin, length = part_of(out, left, space)
    begin_of_other, length_of_other = part_of(source, right, space)
    compared = 8 if space == IN_WORD or begin == 0 else 4
    if (begin == 0) != (begin_of_other == 0) or length != length_of_other:
        return False
    if not equal(source, right, right + compared, out, left):
        return False
    return equal(source, other + begin_of_other, other + begin_of_other + length, out, one + begin)


@compiled
def _compared(out: memoryview, one: int, left: int, source: memoryview, other: int, right: int, form: int) -> int:
    """Order of two values that are not NULL: -1, 0, 1, or 2 if one of them is not a number."""
    if form < REAL:
        return _order(signed(out, left, form - INTEGER), signed(source, right, form - INTEGER))
    if form < TIMESTAMP:
        number, number_of_other = real(out, left, form - REAL), real(source, right, form - REAL)
        if number < number_of_other:
            return -1
        return 1 if number > number_of_other else 0 if number == number_of_other else _UNORDERED
    begin, size = _content_of(out, one, left, form)
    other_begin, other_size = _content_of(source, other, right, form)
    if form == TIMESTAMP:
        order = _order(signed(out, begin, 8), signed(source, other_begin, 8))
        return order if order != 0 else _order(size, other_size)
    if form == DECIMAL:
        for number in range(2, -1, -1):
            order = _order(_limb(out, begin, size, number), _limb(source, other_begin, other_size, number))
            if order != 0:
                return order
        return 0
    for place in range(min(size, other_size)):
        if out[begin + place] != source[other_begin + place]:
            return -1 if out[begin + place] < source[other_begin + place] else 1
    return _order(size, other_size)


@compiled
def _content_of(source: memoryview, row: int, word: int, form: int) -> tuple[int, int]:
    """Begin and size of a value: in its eight bytes, or in the variable part of its row."""
    if form == TEXT and source[word + 7] & 0x80:
        return word, min(source[word + 7] & 0x7F, 7)
    begin = little32(source, word + 4)
    return row + begin, little32(source, word) if begin > 0 else 0


@compiled
def _order(one: int, other: int) -> int:
    return -1 if one < other else 1 if one > other else 0


@compiled
def _limb(content: memoryview, begin: int, size: int, number: int) -> int:
    """Seven bytes of a big-endian decimal, counted from its end. Limb 2 is the last one and has a sign."""
    size = min(size, DECIMAL_ROOM)
    fill = 0xFF if size > 0 and content[begin] & 0x80 else 0
    value = 0
    for place in range(_LIMB_BYTES):
        at = size - 1 - _LIMB_BYTES * number - place
        value |= (content[begin + at] & 0xFF if at >= 0 else fill) << 8 * place
    return value - _LIMB - 1 if number == 2 and fill else value


@compiled
def _put_sum(
    out: memoryview,
    one: int,
    left: int,
    source: memoryview,
    other: int,
    right: int,
    to: int,
    word: int,
    end: int,
    merge: int,
    size: int,
) -> int:
    """Write the sum of two values; returns the end of the row, or an error code."""
    clear(out, word, word + 8)
    if merge == ADD_INTEGERS:
        put_signed(out, word, size, signed(out, left, size) + signed(source, right, size))
    elif merge == ADD_REALS:
        put_real(out, word, size, real(out, left, size) + real(source, right, size))
    elif end + DECIMAL_ROOM > len(out):
        return FIELD_OUTSIDE
    else:
        return _add_decimals(out, one, left, source, other, right, to, word, end)
    return end


@compiled
def _add_decimals(
    out: memoryview, one: int, left: int, source: memoryview, other: int, right: int, to: int, word: int, end: int
) -> int:
    """Write the sum of two decimals; returns the end of its variable part, or TOO_LARGE after 38 digits."""
    begin, size = _content_of(out, one, left, DECIMAL)
    other_begin, other_size = _content_of(source, other, right, DECIMAL)
    low = _limb(out, begin, size, 0) + _limb(source, other_begin, other_size, 0)
    middle = _limb(out, begin, size, 1) + _limb(source, other_begin, other_size, 1) + (low >> 56)
    high = _limb(out, begin, size, 2) + _limb(source, other_begin, other_size, 2) + (middle >> 56)
    low &= _LIMB
    middle &= _LIMB
    if (high, middle, low) >= _LEAST_TOO_LARGE or (high, middle, low) <= _GREATEST_TOO_SMALL:
        return TOO_LARGE
    sign, top = 0xFF if high < 0 else 0, DECIMAL_ROOM - 1
    while top > 0 and _byte(low, middle, high, top) == sign and not (_byte(low, middle, high, top - 1) ^ sign) & 0x80:
        top -= 1
    clear(out, end, end + DECIMAL_ROOM)
    for place in range(top + 1):
        out[end + place] = _byte(low, middle, high, top - place)
    put_little32(out, word, top + 1)
    put_little32(out, word + 4, end - to)
    return end + DECIMAL_ROOM


@compiled
def _byte(low: int, middle: int, high: int, place: int) -> int:
    limb = low if place < _LIMB_BYTES else middle if place < 2 * _LIMB_BYTES else high
    return limb >> 8 * (place % _LIMB_BYTES) & 0xFF
