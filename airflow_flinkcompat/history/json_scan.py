"""Compiled loop over JSON records that reads the values of plain records.

A record is plain if it is one object in which every declared field that is needed occurs at most once, and if the
value of every needed field has the common notation of its type. All other records are left to the strict reader
(:mod:`~airflow_flinkcompat.backfill.formats.text_reader`), with their errors.
"""

from __future__ import annotations

from airflow_flinkcompat.savepoint.compiled import compiled

TEXT, WHOLE, DECIMAL, REAL, BOOLEAN, DATE, MOMENT = range(7)
"""Kinds of fields.

TEXT and REAL result in the range of the value's bytes; DECIMAL in the unscaled number; BOOLEAN in 0 or 1; DATE in days
and MOMENT in microseconds since 1970.
"""
ABSENT, VALUE, ESCAPED = range(3)
"""States of a value. ABSENT is NULL. ESCAPED is a text with escapes."""
WIDTH, ZONE = 4, 256
"""Count of the numbers that describe a field, and a flag in the last of them.

The numbers are the kind, the end of the name, and two limits: the least and the greatest number of WHOLE; the digits
before and after the point of DECIMAL; the greatest exponent of REAL; the number of fractional digits of MOMENT, and its
separator of date and time, with ZONE if the time has a zone.
"""
FOUND, FILLED, EXPECTED = range(2, 5)
"""Indexes of intermediate results.

The results are the bits of the fields that were read, the bits of those that are not NULL, and the next field.
"""
_QUOTE, _BACKSLASH, _COMMA, _COLON, _MINUS, _POINT, _ZERO, _NINE = b'"\\,:-.09'
_OPEN, _CLOSE, _OPEN_ARRAY, _CLOSE_ARRAY = b"{}[]"
_T, _F, _N, _U, _E, _LARGE_E, _Z = b"tfnueEZ"
_BAD = -1
_NO_DAY = -1_000_000
_DEEPEST = 60
_LONGEST_RECORD, _LONGEST_KEY, _LONGEST_NUMBER = 1 << 20, 1000, 1000
"""Numbers of bytes below the limits of Spark's parser."""


@compiled
def past_space(content: memoryview, at: int, end: int) -> int:
    while at < end and (content[at] == 32 or content[at] == 10 or content[at] == 13 or content[at] == 9):
        at += 1
    return at


@compiled
def is_digit(content: memoryview, at: int) -> bool:
    return _ZERO <= content[at] <= _NINE


@compiled
def past_digits(content: memoryview, at: int, end: int) -> int:
    while at < end and _ZERO <= content[at] <= _NINE:
        at += 1
    return at


@compiled
def is_continuation(content: memoryview, at: int, end: int, least: int, most: int) -> bool:
    return at < end and least <= content[at] <= most


@compiled
def past_character(content: memoryview, at: int, end: int) -> int:
    """End of a character outside of ASCII, or _BAD if it is not valid UTF-8."""
    first = content[at]
    if 0xC2 <= first <= 0xDF:
        size, least, most = 2, 0x80, 0xBF
    elif 0xE0 <= first <= 0xEF:
        size, least, most = 3, 0xA0 if first == 0xE0 else 0x80, 0x9F if first == 0xED else 0xBF
    elif 0xF0 <= first <= 0xF4:
        size, least, most = 4, 0x90 if first == 0xF0 else 0x80, 0x8F if first == 0xF4 else 0xBF
    else:
        return _BAD
    if not is_continuation(content, at + 1, end, least, most):
        return _BAD
    for place in range(at + 2, at + size):
        if not is_continuation(content, place, end, 0x80, 0xBF):
            return _BAD
    return at + size


@compiled
def past_text(content: memoryview, at: int, end: int) -> int:
    """Closing quote of a text that begins at ``at``, or _BAD. Only two-character escapes are accepted."""
    while at < end:
        character = content[at]
        if character == _QUOTE:
            return at
        if character < 32:
            return _BAD
        if character == _BACKSLASH:
            if at + 1 >= end or unescaped(content[at + 1]) == _BAD:
                return _BAD
            at += 2
        elif character < 0x80:
            at += 1
        else:
            at = past_character(content, at, end)
            if at == _BAD:
                return _BAD
    return _BAD


@compiled
def unescaped(character: int) -> int:
    """Character of a two-character escape, or _BAD."""
    if character in (_QUOTE, _BACKSLASH, 47):
        return int(character)
    if character == 110:
        return 10
    if character == 116:
        return 9
    if character == 114:
        return 13
    if character == 98:
        return 8
    return 12 if character == 102 else _BAD


@compiled
def past_number(content: memoryview, at: int, end: int) -> int:
    """End of a JSON number, or _BAD."""
    begin = at
    if at < end and content[at] == _MINUS:
        at += 1
    whole = past_digits(content, at, end)
    if whole == at or (whole > at + 1 and content[at] == _ZERO):
        return _BAD
    at = whole
    if at < end and content[at] == _POINT:
        at = past_digits(content, whole + 1, end)
        if at == whole + 1:
            return _BAD
    if at < end and (content[at] == _E or content[at] == _LARGE_E):
        at += 1
        if at < end and (content[at] == _MINUS or content[at] == 43):
            at += 1
        power = at
        at = past_digits(content, power, end)
        if at == power:
            return _BAD
    return at if at - begin <= _LONGEST_NUMBER else _BAD


@compiled
def past_word(content: memoryview, at: int, end: int) -> int:
    """End of ``true``, ``false`` or ``null``, or _BAD."""
    if at + 4 <= end and content[at] == _T and content[at + 1] == 114 and content[at + 2] == _U:
        return at + 4 if content[at + 3] == _E else _BAD
    if at + 4 <= end and content[at] == _N and content[at + 1] == _U and content[at + 2] == 108:
        return at + 4 if content[at + 3] == 108 else _BAD
    if at + 5 <= end and content[at] == _F and content[at + 1] == 97 and content[at + 2] == 108:
        return at + 5 if content[at + 3] == 115 and content[at + 4] == _E else _BAD
    return _BAD


@compiled
def past_scalar(content: memoryview, at: int, end: int) -> int:
    """End of a value that is not an object or array, or _BAD."""
    if at >= end:
        return _BAD
    if content[at] == _QUOTE:
        closing = past_text(content, at + 1, end)
        return _BAD if closing == _BAD else closing + 1
    if content[at] == _MINUS or is_digit(content, at):
        return past_number(content, at, end)
    return past_word(content, at, end)


@compiled
def past_key(content: memoryview, at: int, end: int) -> int:
    """Begin of the value after a key that begins at ``at``, or _BAD."""
    at = past_space(content, at, end)
    if at >= end or content[at] != _QUOTE:
        return _BAD
    key = at + 1
    at = past_text(content, key, end)
    if at == _BAD or at - key > _LONGEST_KEY:
        return _BAD
    at = past_space(content, at + 1, end)
    return past_space(content, at + 1, end) if at < end and content[at] == _COLON else _BAD


@compiled
def opens(content: memoryview, at: int, end: int) -> bool:
    return at < end and (content[at] == _OPEN or content[at] == _OPEN_ARRAY)


@compiled
def closes(content: memoryview, at: int, end: int, of_object: int) -> bool:
    return at < end and content[at] == (_CLOSE if of_object & 1 else _CLOSE_ARRAY)


@compiled
def past_value(content: memoryview, at: int, end: int) -> int:
    """End of any value, or _BAD if it is malformed or too deep."""
    return past_nested(content, at, end) if opens(content, at, end) else past_scalar(content, at, end)


@compiled
def past_nested(content: memoryview, at: int, end: int) -> int:
    """End of an object or array, or _BAD."""
    depth, objects = 0, 0  # A bit of objects is 1 for an object, 0 for an array.
    while True:
        if opens(content, at, end):
            if depth == _DEEPEST:
                return _BAD
            depth, objects = depth + 1, objects << 1 | (1 if content[at] == _OPEN else 0)
            at = past_space(content, at + 1, end)
            if not closes(content, at, end, objects):
                if objects & 1:
                    at = past_key(content, at, end)
                if at == _BAD:
                    return _BAD
                continue
        else:
            at = past_scalar(content, at, end)
            if at == _BAD:
                return _BAD
            at = past_space(content, at, end)
        while closes(content, at, end, objects):
            depth, objects = depth - 1, objects >> 1
            if depth == 0:
                return at + 1
            at = past_space(content, at + 1, end)
        if at >= end or content[at] != _COMMA:
            return _BAD
        at = past_key(content, at + 1, end) if objects & 1 else past_space(content, at + 1, end)
        if at == _BAD:
            return _BAD


@compiled
def read_digits(content: memoryview, at: int, end: int) -> int:
    """Number of a range of digits."""
    number = 0
    for place in range(at, end):
        number = number * 10 + (content[place] - _ZERO)
    return number


@compiled
def fixed_digits(content: memoryview, at: int, count: int) -> int:
    """Number of so many digits, or _BAD."""
    for place in range(at, at + count):
        if not is_digit(content, place):
            return _BAD
    return read_digits(content, at, at + count)


@compiled
def read_whole(content: memoryview, begin: int, end: int, field: int, numbers: list[int], value: list[int]) -> bool:
    first = begin + 1 if content[begin] == _MINUS else begin
    if first == end or end - first > 18 or past_digits(content, first, end) != end:
        return False
    if content[first] == _ZERO and end > first + 1:
        return False
    number = read_digits(content, first, end)
    value[0] = -number if first > begin else number
    return numbers[field + 2] <= value[0] <= numbers[field + 3]


@compiled
def read_decimal(content: memoryview, begin: int, end: int, field: int, numbers: list[int], value: list[int]) -> bool:
    """Read a number without exponent that needs no rounding, as its unscaled value."""
    first = begin + 1 if content[begin] == _MINUS else begin
    point = past_digits(content, first, end)
    last = point if point == end else past_digits(content, point + 1, end)
    scale = 0 if point == end else end - point - 1
    if point == first or last != end or (point < end and (content[point] != _POINT or scale == 0)):
        return False
    if point - first > numbers[field + 2] or scale > numbers[field + 3] or point - first + numbers[field + 3] > 18:
        return False
    number = read_digits(content, first, point)
    if scale:
        number = number * 10**scale + read_digits(content, point + 1, end)
    for _ in range(numbers[field + 3] - scale):
        number *= 10
    value[0] = -number if first > begin else number
    return True


@compiled
def read_real(content: memoryview, begin: int, end: int, field: int, numbers: list[int]) -> bool:
    """True for a number that is neither too large nor too small to be rounded like in Java."""
    if past_number(content, begin, end) != end:
        return False
    for place in range(begin, end):
        if content[place] == _E or content[place] == _LARGE_E:
            power = place + 1
            if content[power] == _MINUS or content[power] == 43:
                power += 1
            return place - begin <= 20 and end - power <= 4 and read_digits(content, power, end) <= numbers[field + 2]
    return end - begin <= 20


@compiled
def read_date(content: memoryview, at: int) -> int:
    """Days of a date of ten characters since 1970, or _NO_DAY."""
    year, month, day = fixed_digits(content, at, 4), fixed_digits(content, at + 5, 2), fixed_digits(content, at + 8, 2)
    if content[at + 4] != _MINUS or content[at + 7] != _MINUS or year < 1 or month < 1 or month > 12 or day < 1:
        return _NO_DAY
    leap = 1 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 0
    if month == 2:
        days = 28 + leap
    elif month == 4 or month == 6 or month == 9 or month == 11:
        days = 30
    else:
        days = 31
    if day > days:
        return _NO_DAY
    # Years begin in March, so that the leap day is the last day of its year.
    since, of_march = (year - 1, month + 9) if month <= 2 else (year, month - 3)
    return since * 365 + since // 4 - since // 100 + since // 400 + (153 * of_march + 2) // 5 + day - 1 - 719468


@compiled
def read_moment(content: memoryview, begin: int, end: int, field: int, numbers: list[int], value: list[int]) -> bool:
    separator, zone = numbers[field + 3] & 0xFF, numbers[field + 3] >> 8
    if zone:
        if end == begin or content[end - 1] != _Z:
            return False
        end -= 1
    if end - begin < 19 or content[begin + 10] != separator:
        return False
    days = read_date(content, begin)
    hour, minute = fixed_digits(content, begin + 11, 2), fixed_digits(content, begin + 14, 2)
    second = fixed_digits(content, begin + 17, 2)
    if content[begin + 13] != _COLON or content[begin + 16] != _COLON or days == _NO_DAY:
        return False
    if not (0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59):
        return False
    fraction = 0
    if end - begin > 19:
        first = begin + 20
        if content[begin + 19] != _POINT or end - first > 9 or past_digits(content, first, end) != end:
            return False
        last = min(end, first + numbers[field + 2])
        fraction = read_digits(content, first, last)
        for _ in range(6 - (last - first)):
            fraction *= 10
    value[0] = ((days * 24 + hour) * 60 + minute) * 60_000_000 + second * 1_000_000 + fraction
    return True


@compiled
def read_value(content: memoryview, begin: int, end: int, field: int, numbers: list[int], value: list[int]) -> int:
    """State of a value in the notation of its type, or _BAD. Numbers are written into ``value``."""
    kind, quoted = numbers[field], content[begin] == _QUOTE
    if content[begin] == _N:
        return ABSENT
    if opens(content, begin, end):
        return _BAD
    if quoted:
        begin += 1
        end -= 1
    if kind == TEXT:
        value[0], value[1] = begin, end
        # The strict reader does not distinguish these texts from nested values.
        if quoted and opens(content, begin, end):
            return _BAD
        return ESCAPED if has_escape(content, begin, end) else VALUE
    if begin == end or (kind >= DATE and not quoted):
        return _BAD
    return VALUE if read_typed(content, begin, end, field, numbers, value) else _BAD


@compiled
def has_escape(content: memoryview, begin: int, end: int) -> bool:
    for place in range(begin, end):  # noqa: SIM110 - numba compiles no generators
        if content[place] == _BACKSLASH:
            return True
    return False


@compiled
def read_typed(content: memoryview, begin: int, end: int, field: int, numbers: list[int], value: list[int]) -> bool:
    """Read a value that is not a text; return False if it has no plain notation."""
    kind = numbers[field]
    if kind == WHOLE:
        return read_whole(content, begin, end, field, numbers, value)
    if kind == DECIMAL:
        return read_decimal(content, begin, end, field, numbers, value)
    if kind == REAL:
        value[0], value[1] = begin, end
        return read_real(content, begin, end, field, numbers)
    if kind == BOOLEAN:
        value[0] = 1 if content[begin] == _T else 0
        return past_word(content, begin, end) == end and content[begin] != _N
    if kind == DATE:
        value[0] = read_date(content, begin) if end - begin == 10 else _NO_DAY
        return value[0] != _NO_DAY
    return read_moment(content, begin, end, field, numbers, value)


@compiled
def field_of_key(
    content: memoryview, begin: int, end: int, names: memoryview, numbers: list[int], count: int, expected: int
) -> int:
    """Index of a field by its name, or ``count``. The expected field is tried first."""
    for tried in range(count):
        field = expected + tried
        if field >= count:
            field -= count
        first = numbers[field * WIDTH - WIDTH + 1] if field else 0
        if numbers[field * WIDTH + 1] - first == end - begin:
            same = True
            for place in range(end - begin):
                if names[first + place] != content[begin + place]:
                    same = False
                    break
            if same:
                return field
    return count


@compiled
def scan_member(
    content: memoryview,
    at: int,
    end: int,
    names: memoryview,
    numbers: list[int],
    count: int,
    row: int,
    rows: int,
    states: memoryview,
    values: list[int],
    ends: list[int],
    value: list[int],
) -> int:
    """Read a member that begins with a quote; return its end, or _BAD."""
    key = at + 1
    after = past_text(content, key, end)
    if after == _BAD or after - key > _LONGEST_KEY or has_escape(content, key, after):
        return _BAD
    field = field_of_key(content, key, after, names, numbers, count, value[EXPECTED])
    at = past_space(content, after + 1, end)
    if at >= end or content[at] != _COLON:
        return _BAD
    at = past_space(content, at + 1, end)
    after = past_value(content, at, end)
    if after == _BAD or field == count:
        return after
    if value[FOUND] >> field & 1:
        return _BAD
    state = read_value(content, at, after, field * WIDTH, numbers, value)
    if state == _BAD:
        return _BAD
    if state != ABSENT:
        value[FILLED] |= 1 << field
    place = field * rows + row
    states[place], values[place], ends[place] = state, value[0], value[1]
    value[FOUND] |= 1 << field
    value[EXPECTED] = field + 1
    return after


@compiled
def scan_record(
    content: memoryview,
    at: int,
    end: int,
    names: memoryview,
    numbers: list[int],
    count: int,
    row: int,
    rows: int,
    states: memoryview,
    values: list[int],
    ends: list[int],
    value: list[int],
) -> bool:
    """Read the needed fields of one record; return False if it is not plain."""
    value[FOUND], value[FILLED], value[EXPECTED] = 0, 0, 0
    if end - at > _LONGEST_RECORD:
        return False
    at = past_space(content, at, end)
    if at >= end or content[at] != _OPEN:
        return False
    at = past_space(content, at + 1, end)
    if closes(content, at, end, 1):
        return past_space(content, at + 1, end) == end
    while at < end and content[at] == _QUOTE:
        at = scan_member(content, at, end, names, numbers, count, row, rows, states, values, ends, value)
        if at == _BAD:
            return False
        at = past_space(content, at, end)
        if closes(content, at, end, 1):
            return past_space(content, at + 1, end) == end
        if at >= end or content[at] != _COMMA:
            return False
        at = past_space(content, at + 1, end)
    return False


@compiled
def scan(
    content: memoryview,
    offsets: list[int],
    names: memoryview,
    numbers: list[int],
    count: int,
    required: int,
    plain: memoryview,
    states: memoryview,
    values: list[int],
    ends: list[int],
    value: list[int],
) -> int:
    """Scan all records; return how many are plain.

    ``offsets``: Begin of each record, and the end of the last. ``required``: Bits of the fields that are not NULL in a
    plain record. ``plain``: 1 for each plain record. ``states``, ``values`` and ``ends``: For each field, the values of
    all rows. ``value``: Five numbers for intermediate results.
    """
    rows, found = len(plain), 0
    for row in range(rows):
        begin, end = offsets[row], offsets[row + 1]
        good = scan_record(content, begin, end, names, numbers, count, row, rows, states, values, ends, value)
        if good and required & ~value[FILLED] == 0:
            plain[row] = 1
            found += 1
        else:
            for field in range(count):
                states[field * rows + row] = ABSENT
    return found


@compiled
def copy_texts(
    content: memoryview, states: memoryview, values: list[int], ends: list[int], first: int, offsets: list[int],
    out: memoryview,
) -> int:  # fmt: skip
    """Copy the texts of a field without their escapes; return the number of bytes."""
    to = 0
    for row in range(len(offsets) - 1):
        offsets[row] = to
        state = states[first + row]
        if state != ABSENT:
            at, end = values[first + row], ends[first + row]
            while at < end:
                character = content[at]
                if state == ESCAPED and character == _BACKSLASH:
                    at += 1
                    out[to] = unescaped(content[at])
                else:
                    out[to] = character
                at += 1
                to += 1
    offsets[len(offsets) - 1] = to
    return to
