"""Compiled loops over the entries of one state in a key group."""

from __future__ import annotations

from airflow_flinkcompat.exec_graph.layout import STAMP
from airflow_flinkcompat.savepoint.binary import RowFraming
from airflow_flinkcompat.savepoint.compiled import (
    add_hash,
    compiled,
    copy,
    equal,
    group_of_key,
    put_uint16,
    put_uint32,
    uint16,
    uint32,
)
from airflow_flinkcompat.savepoint.keyed_state import END_OF_GROUP, LAST_OF_RUN
from airflow_flinkcompat.savepoint.row_mapping import NEW_END, OLD_END, map_row
from airflow_flinkcompat.savepoint.runs import NO_KEY, end_of_entry

_SEPARATOR = ord(",")
_WHOLE, _, _COUNTED, _SEPARATED = (form.value for form in RowFraming)

AFTER_ROWS, CHANGED, OTHER_GROUP = range(-21, -24, -1)
_FLAG, _OLD_STAMP, _NEW_STAMP, _NOW, _ROWS, _TRAILING, _REPEATS, _GROWTH = range(8)
"""Indexes of the numbers in the plan of a value.

The numbers are the sizes of a map's flag and of both timestamps, the timestamp for values without an old timestamp, the
form of the rows, the number of bytes after each row, and the limits of a new value's size.
"""
_PREFIX, _NEW_PREFIX, _MOMENT, _GROUPS, _CHANGED_KEYS = range(5)
"""Indexes of the numbers in the plan of a key.

The numbers are the bytes of the key group in old and in new keys, the bytes of a timer's time, the number of key
groups, and 1 if keys are rewritten.
"""


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
    copy(source, at, at + value[_FLAG], out, to)
    to += value[_FLAG]
    if value[_NEW_STAMP] and value[_OLD_STAMP]:
        copy(source, content - STAMP, content, out, to)
    elif value[_NEW_STAMP]:
        put_uint32(out, to, value[_NOW] >> 32)
        put_uint32(out, to + 4, value[_NOW] & 0xFFFFFFFF)
    return map_rows(source, content, end, out, to + value[_NEW_STAMP], value, row, constants)


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
    if value[_ROWS] == _WHOLE:
        copy(source, at, end, out, to)
        return to + end - at
    wanted, done = 1, 0
    if value[_ROWS] == _COUNTED:
        if at + 4 > end:
            return AFTER_ROWS
        wanted = uint32(source, at)
        copy(source, at, at + 4, out, to)
        at += 4
        to += 4
    while at < end and (done < wanted or value[_ROWS] == _SEPARATED):
        if value[_ROWS] == _SEPARATED and done:
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
    if at != end or (value[_ROWS] != _SEPARATED and done != wanted):
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
def _end_of_row(source: memoryview, begin: int, end: int, keys: list[int]) -> int:
    """End offset of the key row in a stored key, or an error code."""
    at = begin + keys[_PREFIX] + keys[_MOMENT]
    if at + 4 > end:
        return NO_KEY
    row = at + 4 + uint32(source, at)
    return row if row <= end else NO_KEY


@compiled
def _map_key(
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
    at = begin + keys[_PREFIX]
    row_at = at + keys[_MOMENT] + 4
    if not keys[_CHANGED_KEYS]:
        copy(source, at, end, out, to)
        return to + end_of_row - at, to + end - at
    copy(source, at, row_at - 4, out, to)
    to += keys[_MOMENT] + 4
    made = map_row(source, row_at, end_of_row - row_at, out, to, row, constants)
    if made < 0:
        return made, made
    put_uint32(out, to - 4, made - to)
    copy(source, end_of_row, end, out, made)
    return made, made + end - end_of_row


_HEAD = 10
"""Number of bytes of a scattered entry in addition to its key and value."""


@compiled
def scatter_run(
    source: memoryview,
    at: int,
    state: int,
    out: memoryview,
    to: int,
    found: list[int],
    count: int,
    keys: list[int],
    key_row: list[int],
    key_constants: memoryview,
    key_limit: int,
    value: list[int],
    row: list[int],
    constants: memoryview,
) -> tuple[int, int, int, int]:
    """Write entries for their new key groups.

    ``found`` receives the key group and the start of each written entry. Returns the same four numbers as
    :func:`rewrite_run`.
    """
    while True:
        key, end = end_of_entry(source, at)
        if key < 0:
            return at, to, count, key
        size = key - at - 4
        limit = _HEAD + size * key_limit + keys[_NEW_PREFIX] + key_row[NEW_END] + size_limit(end - key - 4, value, row)
        if to + limit > len(out) or 2 * count + 2 > len(found):
            return at, to, count, limit
        end_of_row = _end_of_row(source, at + 4, key, keys)
        if end_of_row < 0:
            return at, to, count, end_of_row
        put_uint16(out, to, state)
        begin = to + 6
        row_at = begin + keys[_NEW_PREFIX]
        row_end, key_end = _map_key(source, at + 4, end_of_row, key, out, row_at, keys, key_row, key_constants)
        if row_end < 0:
            return at, to, count, row_end
        group = group_of_key(out, row_at + keys[_MOMENT] + 4, row_end, keys[_GROUPS])
        if keys[_NEW_PREFIX] == 1:
            out[begin] = group
        else:
            put_uint16(out, begin, group)
        put_uint32(out, to + 2, key_end - begin)
        made = map_value(source, key + 4, end, out, key_end + 4, value, row, constants)
        if made < 0:
            return at, to, count, made
        put_uint32(out, key_end, made - key_end - 4)
        found[2 * count] = group
        found[2 * count + 1] = to
        count += 1
        to = made
        if source[at + 4] & LAST_OF_RUN:
            return end, to, count, 0
        at = end


@compiled
def sort_by_group(
    source: memoryview, size: int, found: list[int], count: int, ends: list[int], out: memoryview
) -> None:
    """Order scattered entries by key group. ``ends`` receives the end of each group's entries."""
    for group in range(len(ends)):
        ends[group] = 0
    for entry in range(count):
        end = found[2 * entry + 3] if entry + 1 < count else size
        ends[found[2 * entry]] += end - found[2 * entry + 1]
    begin = 0
    for group in range(len(ends)):
        begin += ends[group]
        ends[group] = begin - ends[group]
    for entry in range(count):
        end = found[2 * entry + 3] if entry + 1 < count else size
        at, group = found[2 * entry + 1], found[2 * entry]
        copy(source, at, end, out, ends[group])
        ends[group] += end - at


@compiled
def gather(source: memoryview, out: memoryview, counts: list[int]) -> int:
    """Write the content of a key group from scattered entries, ordered by state.

    Returns the end of the content.
    """
    to = 0
    for state in range(len(counts)):
        at, last = 0, -1
        while at < len(source):
            key = at + 6
            end_of_key = key + uint32(source, at + 2)
            end = end_of_key + 4 + uint32(source, end_of_key)
            if uint16(source, at) == state:
                if last < 0:
                    put_uint16(out, to, state)
                    to += 2
                last = to + 4
                copy(source, at + 2, end, out, to)
                to += end - at - 2
                counts[state] += 1
            at = end
        if last >= 0:
            out[last] |= LAST_OF_RUN
    if to > 0:
        put_uint16(out, to, END_OF_GROUP)
        to += 2
    return to


@compiled
def _end_of_row_in_group(source: memoryview, begin: int, end: int, group: int, keys: list[int]) -> int:
    """End offset of the key row, if the key is stored in its key group; otherwise an error code."""
    end_of_row = _end_of_row(source, begin, end, keys)
    if end_of_row < 0:
        return end_of_row
    found = source[begin] & (LAST_OF_RUN - 1)
    if keys[_PREFIX] > 1:
        found = found << 8 | source[begin + 1]
    row = begin + keys[_PREFIX] + keys[_MOMENT] + 4
    if found != group or group_of_key(source, row, end_of_row, keys[_GROUPS]) != group:
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
        end_of_row = key if key - begin >= keys[_PREFIX] else NO_KEY
        if in_groups:
            end_of_row = _end_of_row_in_group(source, begin, key, group, keys)
        if end_of_row < 0:
            return at, entries, end_of_row
        _, end_of_key = _map_key(source, begin, end_of_row, key, scratch, 4, keys, key_row, key_constants)
        if end_of_key < 0:
            return at, entries, end_of_key
        put_uint32(scratch, 0, end_of_key - 4)
        made = map_value(source, key + 4, end, scratch, end_of_key, kept, kept_row, kept_constants)
        if made < 0:
            return at, entries, made
        add_hash(scratch, 0, made, total)
        if whole[_ROWS] != _WHOLE:
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
