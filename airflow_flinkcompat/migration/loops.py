"""Compiled loops over the entries of one state in a key group.

Plans of numbers describe the bytes of keys and values. A loop reads an entry from one buffer, and writes it to another
one. It returns if the buffer is full, so that a buffer of fixed size serves key groups of any size.
"""

from __future__ import annotations

from airflow_flinkcompat.exec_graph.layout import STAMP, StateNamespace
from airflow_flinkcompat.savepoint.binary import RowFraming
from airflow_flinkcompat.savepoint.compiled import (
    add_hash,
    compiled,
    copy,
    equal,
    group_of_key,
    put_long,
    put_uint32,
    uint32,
)
from airflow_flinkcompat.savepoint.keyed_state import LAST_OF_RUN
from airflow_flinkcompat.savepoint.row_mapping import NEW_END, OLD_END, map_row
from airflow_flinkcompat.savepoint.runs import NO_KEY, end_of_entry

_SEPARATOR = ord(",")
_WHOLE, _, _COUNTED, SEPARATED = (form.value for form in RowFraming)

AFTER_ROWS, CHANGED, OTHER_GROUP, AFTER_MAP_KEY, OTHER_TIME, NOT_FIRED, NO_TIME = range(-21, -28, -1)
ROW_BECOMES_KEY, ROW_STAYS_KEY = 4, 5
"""Forms of values if the new state counts equal rows: the old row is in the value, or in the map key."""
_FLAG, _OLD_STAMP, _NEW_STAMP, _NOW, FORM, _TRAILING, _REPEATS, _GROWTH = range(8)
"""Indexes of the numbers in the plan of a value.

The numbers are the sizes of a map's flag and of both timestamps, the timestamp for values without an old timestamp, the
form of the rows, the number of bytes after each row, and the limits of a new value's size.
"""
PREFIX, NEW_PREFIX, MOMENT, GROUPS, _CHANGED_KEYS = range(5)
"""Indexes of the numbers in the plan of a key.

The numbers are the bytes of the key group in old and in new keys, the bytes of a timer's time, the number of key
groups, and 1 if keys are rewritten.
"""
_VOID = StateNamespace.NONE.size


@compiled
def map_value(
    source: memoryview,
    at: int,
    end: int,
    out: memoryview,
    to: int,
    value: list[int],
    row: list[int],
    constants: memoryview,
) -> int:
    """Write a new value. Returns the end of the value, or an error code."""
    content = at + value[_FLAG] + value[_OLD_STAMP]
    if content > end:
        return AFTER_ROWS
    to = _put_head(source, at, out, to, value)
    return map_rows(source, content, end, out, to, value, row, constants)


@compiled
def _put_head(source: memoryview, at: int, out: memoryview, to: int, value: list[int]) -> int:
    """Write the bytes before the content of a new value; returns their end."""
    copy(source, at, at + value[_FLAG], out, to)
    to += value[_FLAG]
    if value[_NEW_STAMP] and value[_OLD_STAMP]:
        copy(source, at + value[_FLAG], at + value[_FLAG] + STAMP, out, to)
    elif value[_NEW_STAMP]:
        put_long(out, to, value[_NOW])
    return to + value[_NEW_STAMP]


@compiled
def _counted_row(source: memoryview, rest: int, key: int, end: int, value: list[int]) -> tuple[int, int, int, int]:
    """Find a row that is counted: its begin and end, the begin of its matches, and how often it is stored.

    ``rest``: the end of the key's row; ``key`` and ``end``: the ends of key and value. An error code replaces the
    begin.
    """
    content = key + 4 + value[_FLAG] + value[_OLD_STAMP]
    begin = rest + _VOID + 4 if value[FORM] == ROW_STAYS_KEY else content + 4
    if content + 4 > end or begin > end or (value[FORM] == ROW_STAYS_KEY and begin > key):
        return AFTER_ROWS, 0, 0, 0
    end_of_row = begin + uint32(source, begin - 4)
    if value[FORM] == ROW_STAYS_KEY:
        return (begin if end_of_row == key else AFTER_MAP_KEY), key, content + 4, uint32(source, content)
    return (begin if end_of_row + value[_TRAILING] == end else AFTER_ROWS), end_of_row, end_of_row, 1


@compiled
def count_row(
    source: memoryview,
    rest: int,
    key: int,
    end: int,
    out: memoryview,
    to: int,
    value: list[int],
    row: list[int],
    constants: memoryview,
) -> tuple[int, int]:
    """Write the rest of the key and the value of an entry that counts equal rows.

    Returns the ends of key and value; an error code replaces both.
    """
    begin, end_of_row, matches, times = _counted_row(source, rest, key, end, value)
    if begin < 0:
        return begin, begin
    copy(source, rest, rest + _VOID, out, to)
    made = map_row(source, begin, end_of_row - begin, out, to + _VOID + 4, row, constants)
    if made < 0:
        return made, made
    put_uint32(out, to + _VOID, made - to - _VOID - 4)
    to = _put_head(source, key + 4, out, made + 4, value)
    put_uint32(out, to, times)
    copy(source, matches, end, out, to + 4)
    return made, to + 4 + end - matches


@compiled
def map_rows(
    source: memoryview,
    at: int,
    end: int,
    out: memoryview,
    to: int,
    value: list[int],
    row: list[int],
    constants: memoryview,
) -> int:
    """Write the content of a new value, which follows the timestamp."""
    if value[FORM] == _WHOLE:
        copy(source, at, end, out, to)
        return to + end - at
    wanted, done = 1, 0
    if value[FORM] == _COUNTED:
        if at + 4 > end:
            return AFTER_ROWS
        wanted = uint32(source, at)
        copy(source, at, at + 4, out, to)
        at += 4
        to += 4
    while at < end and (done < wanted or value[FORM] == SEPARATED):
        if value[FORM] == SEPARATED and done:
            if source[at] != _SEPARATOR:
                return AFTER_ROWS
            out[to] = _SEPARATOR
            at += 1
            to += 1
        begin = at + 4
        if begin > end:
            return AFTER_ROWS
        size = uint32(source, at)
        at = begin + size + value[_TRAILING]
        if at > end:
            return AFTER_ROWS
        made = map_row(source, begin, size, out, to + 4, row, constants)
        if made < 0:
            return made
        put_uint32(out, to, made - to - 4)
        copy(source, begin + size, at, out, made)
        to = made + value[_TRAILING]
        done += 1
    if at != end or (value[FORM] != SEPARATED and done != wanted):
        return AFTER_ROWS
    return to


@compiled
def size_limit(size: int, value: list[int], row: list[int]) -> int:
    """Upper limit for the size of a new value."""
    rows = size // (4 + row[OLD_END] + value[_TRAILING]) + 1
    return size * value[_REPEATS] + rows * value[_GROWTH] + STAMP


@compiled
def rewrite_run(
    source: memoryview, at: int, out: memoryview, value: list[int], row: list[int], constants: memoryview
) -> tuple[int, int, int, int]:
    """Write entries with new values.

    Returns four numbers: the end of the read entries, the end of the written entries, the number of entries, and a
    status. The status is 0 at the end of the run, the buffer size that the next entry requires, or an error code.
    """
    to, entries = 0, 0
    while True:
        key, end = end_of_entry(source, at)
        if key < 0:
            return at, to, entries, key
        limit = key - at + 4 + size_limit(end - key - 4, value, row)
        if to + limit > len(out):
            return at, to, entries, limit
        copy(source, at, key, out, to)
        to += key - at
        made = map_value(source, key + 4, end, out, to + 4, value, row, constants)
        if made < 0:
            return at, to, entries, made
        put_uint32(out, to, made - to - 4)
        to = made
        entries += 1
        if source[at + 4] & LAST_OF_RUN:
            return end, to, entries, 0
        at = end


@compiled
def end_of_key_row(source: memoryview, begin: int, end: int, keys: list[int]) -> int:
    """End offset of the key row in a stored key, or an error code."""
    at = begin + keys[PREFIX] + keys[MOMENT]
    if at + 4 > end:
        return NO_KEY
    row = at + 4 + uint32(source, at)
    return row if row <= end else NO_KEY


@compiled
def map_key(
    source: memoryview,
    begin: int,
    end_of_row: int,
    end: int,
    out: memoryview,
    to: int,
    keys: list[int],
    row: list[int],
    constants: memoryview,
) -> tuple[int, int]:
    """Write the part of a key that follows its key group.

    Returns the end of its row and the end of the key; an error code replaces both.
    """
    at = begin + keys[PREFIX]
    row_at = at + keys[MOMENT] + 4
    if not keys[_CHANGED_KEYS]:
        copy(source, at, end, out, to)
        return to + end_of_row - at, to + end - at
    copy(source, at, row_at - 4, out, to)
    to += keys[MOMENT] + 4
    made = map_row(source, row_at, end_of_row - row_at, out, to, row, constants)
    if made < 0:
        return made, made
    put_uint32(out, to - 4, made - to)
    copy(source, end_of_row, end, out, made)
    return made, made + end - end_of_row


@compiled
def _end_of_row_in_group(source: memoryview, begin: int, end: int, group: int, keys: list[int]) -> int:
    """End offset of the key row, if the key is stored in its key group; otherwise an error code."""
    end_of_row = end_of_key_row(source, begin, end, keys)
    if end_of_row < 0:
        return end_of_row
    found = source[begin] & (LAST_OF_RUN - 1)
    if keys[PREFIX] > 1:
        found = found << 8 | source[begin + 1]
    row = begin + keys[PREFIX] + keys[MOMENT] + 4
    if found != group or group_of_key(source, row, end_of_row, keys[GROUPS]) != group:
        return OTHER_GROUP
    return end_of_row


@compiled
def sum_run(
    source: memoryview,
    at: int,
    group: int,
    total: list[int],
    scratch: memoryview,
    keys: list[int],
    in_groups: bool,
    key_row: list[int],
    key_constants: memoryview,
    key_limit: int,
    kept: list[int],
    kept_row: list[int],
    kept_constants: memoryview,
    whole: list[int],
    whole_row: list[int],
    whole_constants: memoryview,
    of_kept: bool,
) -> tuple[int, int, int]:
    """Add the hashes of the keys and kept fields of entries to a sum.

    The mapping ``whole`` must reproduce the whole content of each value, from the kept fields if ``of_kept``, otherwise
    from the value. Returns three numbers: the end of the read entries, the number of entries, and a status as in
    :func:`rewrite_run`.
    """
    entries = 0
    while True:
        key, end = end_of_entry(source, at)
        if key < 0:
            return at, entries, key
        size = end - key - 4
        kept_limit = size_limit(size, kept, kept_row)
        limit = 4 + (key - at) * key_limit + key_row[NEW_END] + kept_limit
        limit += size_limit(kept_limit if of_kept else size, whole, whole_row)
        if limit > len(scratch):
            return at, entries, limit
        begin = at + 4
        end_of_row = key if key - begin >= keys[PREFIX] else NO_KEY
        if in_groups:
            end_of_row = _end_of_row_in_group(source, begin, key, group, keys)
        if end_of_row < 0:
            return at, entries, end_of_row
        _, end_of_key = map_key(source, begin, end_of_row, key, scratch, 4, keys, key_row, key_constants)
        if end_of_key < 0:
            return at, entries, end_of_key
        put_uint32(scratch, 0, end_of_key - 4)
        made = map_value(source, key + 4, end, scratch, end_of_key, kept, kept_row, kept_constants)
        if made < 0:
            return at, entries, made
        add_hash(scratch, 0, made, total, 1)
        if whole[FORM] != _WHOLE:
            content = key + 4 + kept[_FLAG] + kept[_OLD_STAMP]
            if of_kept:
                kept_at = end_of_key + kept[_FLAG] + kept[_NEW_STAMP]
                again = map_rows(scratch, kept_at, made, scratch, made, whole, whole_row, whole_constants)
            else:
                again = map_rows(source, content, end, scratch, made, whole, whole_row, whole_constants)
            if again - made != end - content or not equal(source, content, end, scratch, made):
                return at, entries, again if again < 0 else CHANGED
        entries += 1
        if source[begin] & LAST_OF_RUN:
            return end, entries, 0
        at = end


@compiled
def sum_counts(
    source: memoryview,
    at: int,
    group: int,
    total: list[int],
    scratch: memoryview,
    keys: list[int],
    in_groups: bool,
    key_row: list[int],
    key_constants: memoryview,
    key_limit: int,
    kept: list[int],
    kept_row: list[int],
    kept_constants: memoryview,
    _whole: list[int],
    whole_row: list[int],
    whole_constants: memoryview,
    of_kept: bool,
) -> tuple[int, int, int]:
    """Add the hashes of keys, kept fields and matches to a sum, as often as their rows are stored.

    Rows that become equal are thus summed as before. Returns the same numbers as :func:`sum_run`.
    """
    rows = 0
    while True:
        key, end = end_of_entry(source, at)
        if key < 0:
            return at, rows, key
        size = end - at
        limit = size * key_limit + key_row[NEW_END] + 2 * (size * kept[_REPEATS] + kept[_GROWTH]) + size
        if limit > len(scratch):
            return at, rows, limit
        begin = at + 4
        end_of_row = (
            _end_of_row_in_group(source, begin, key, group, keys)
            if in_groups
            else end_of_key_row(source, begin, key, keys)
        )
        if end_of_row < 0:
            return at, rows, end_of_row
        found, row_end, matches, times = _counted_row(source, end_of_row, key, end, kept)
        if found < 0:
            return at, rows, found
        _, to = map_key(source, begin, end_of_row, end_of_row, scratch, 0, keys, key_row, key_constants)
        if to < 0:
            return at, rows, to
        made = map_row(source, found, row_end - found, scratch, to, kept_row, kept_constants)
        if made < 0:
            return at, rows, made
        if of_kept:
            again = map_row(scratch, to, made - to, scratch, made, whole_row, whole_constants)
        else:
            again = map_row(source, found, row_end - found, scratch, made, whole_row, whole_constants)
        if again - made != row_end - found or not equal(source, found, row_end, scratch, made):
            return at, rows, again if again < 0 else CHANGED
        copy(source, matches, end, scratch, made)
        add_hash(scratch, 0, made + end - matches, total, times)
        rows += times
        if source[begin] & LAST_OF_RUN:
            return end, rows, 0
        at = end
