"""Compiled loops that move entries to their new key groups: scatter, sort and gather."""

from __future__ import annotations

from airflow_flinkcompat.exec_graph.windows import FIRED, slice_place
from airflow_flinkcompat.migration.loops import (
    FORM,
    GROUPS,
    MOMENT,
    NEW_PREFIX,
    NO_TIME,
    NOT_FIRED,
    OTHER_TIME,
    PREFIX,
    SEPARATED,
    count_row,
    end_of_key_row,
    map_key,
    map_value,
    size_limit,
)
from airflow_flinkcompat.savepoint.compiled import (
    compiled,
    copy,
    group_of_key,
    long_at,
    put_long,
    put_uint16,
    put_uint32,
    uint16,
    uint32,
)
from airflow_flinkcompat.savepoint.keyed_state import END_OF_GROUP, LAST_OF_RUN
from airflow_flinkcompat.savepoint.row_mapping import NEW_END
from airflow_flinkcompat.savepoint.runs import NO_KEY, end_of_entry

NO_SLICES, OF_SLICES, OF_TIMERS, OTHER_TIMERS = range(4)
_KIND, _CUMULATES, _SIZE, _STEP, _OFFSET, _WATERMARK, _TIMERS = range(7)
"""Indexes of the numbers in the plan of slices.

The numbers are the kind of the entries, the new windows, the watermark, and the new state with the timers of windows.
"""
NEEDED = 0x4000
"""Bit of a state number that marks a timer which a slice needs. The timer must also be stored."""
_END, _LATEST, _SIGN = 8, 1 << 62, -(1 << 63)
_LEFT_OUT = 1
_place = compiled(slice_place)

HEAD = 10
"""Number of bytes of a scattered entry in addition to its key and value."""


@compiled
def _slice_of(source: memoryview, moment: int, end_of_row: int, end: int, slices: list[int]) -> tuple[int, int, int]:
    """A status, and the ends of the new slice of an entry and of its next window.

    The status is 0, 1 for an entry that is left out, or an error code.
    """
    if slices[_KIND] == NO_SLICES:
        return 0, 0, 0
    if end_of_row + _END > end:
        return NO_KEY, 0, 0
    old = long_at(source, end_of_row)
    if old <= -_LATEST or old >= _LATEST:
        return NO_TIME, 0, 0
    if slices[_KIND] == OF_SLICES:
        new, fires = _place(
            slices[_CUMULATES] > 0, slices[_SIZE], slices[_STEP], slices[_OFFSET], old, slices[_WATERMARK]
        )
        return (_LEFT_OUT if fires == FIRED else 0), new, fires
    # The sign bit of a stored time is inverted, so that bytes sort by time.
    if slices[_KIND] == OTHER_TIMERS or long_at(source, moment) ^ _SIGN != old - 1:
        return OTHER_TIME, 0, 0
    if old - 1 <= slices[_WATERMARK]:
        return NOT_FIRED, 0, 0
    fires = old + (slices[_OFFSET] - old) % slices[_STEP]
    return 0, fires, fires


@compiled
def _put_needed_timer(
    out: memoryview, key: int, end_of_row: int, to: int, fires: int, keys: list[int], state: int
) -> int:
    """Write the timer that a slice needs; returns its end. ``key``: begin of the key in ``out``."""
    put_uint16(out, to, state | NEEDED)
    begin = to + 6
    row = begin + keys[NEW_PREFIX] + _END
    copy(out, key, key + keys[NEW_PREFIX], out, begin)
    put_long(out, row - _END, (fires - 1) ^ _SIGN)
    copy(out, key + keys[NEW_PREFIX], end_of_row, out, row)
    end = row + end_of_row - key - keys[NEW_PREFIX]
    put_long(out, end, fires)
    put_uint32(out, to + 2, end + _END - begin)
    put_uint32(out, end + _END, 0)
    return end + _END + 4


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
    slices: list[int],
) -> tuple[int, int, int, int]:
    """Write entries for their new key groups.

    ``found`` receives the key group and the start of each written entry. Returns the same four numbers as
    :func:`rewrite_run`. An entry whose windows have all fired is left out. An entry of a slice also writes the timer
    that the slice needs.
    """
    while True:
        key, end = end_of_entry(source, at)
        if key < 0:
            return at, to, count, key
        limit = _scattered_limit(key - at - 4, end - key - 4, keys, key_row, key_limit, value, row, slices)
        if to + limit > len(out) or 2 * count + 4 > len(found):
            return at, to, count, limit
        end_of_row = end_of_key_row(source, at + 4, key, keys)
        if end_of_row < 0:
            return at, to, count, end_of_row
        status, new_end, fires = _slice_of(source, at + 4 + keys[PREFIX], end_of_row, key, slices)
        if status < 0:
            return at, to, count, status
        if status != _LEFT_OUT:
            group, row_end, made = _put_scattered(
                source, at + 4, end_of_row, key, end, out, to, state,
                keys, key_row, key_constants, value, row, constants, slices, new_end,
            )  # fmt: skip
            if made < 0:
                return at, to, count, made
            found[2 * count], found[2 * count + 1] = group, to
            count += 1
            if slices[_KIND] == OF_SLICES:
                found[2 * count], found[2 * count + 1] = group, made
                count += 1
                made = _put_needed_timer(out, to + 6, row_end, made, fires, keys, slices[_TIMERS])
            to = made
        if source[at + 4] & LAST_OF_RUN:
            return end, to, count, 0
        at = end


@compiled
def _scattered_limit(
    key: int,
    size: int,
    keys: list[int],
    key_row: list[int],
    key_limit: int,
    value: list[int],
    row: list[int],
    slices: list[int],
) -> int:
    """Upper limit for the size of a scattered entry, from the sizes of its old key and its old value."""
    limit = HEAD + key * key_limit + keys[NEW_PREFIX] + key_row[NEW_END]
    if slices[_KIND] != NO_SLICES:
        limit += limit + 2 * _END
    if value[FORM] > SEPARATED:
        limit += size_limit(key, value, row) + 8
    return limit + size_limit(size, value, row)


@compiled
def _put_scattered(
    source: memoryview,
    begin_of_key: int,
    end_of_row: int,
    key: int,
    end: int,
    out: memoryview,
    to: int,
    state: int,
    keys: list[int],
    key_row: list[int],
    key_constants: memoryview,
    value: list[int],
    row: list[int],
    constants: memoryview,
    slices: list[int],
    new_end: int,
) -> tuple[int, int, int]:
    """Write a scattered entry. Returns its key group, its key row's end, and its end or an error code."""
    put_uint16(out, to, state)
    begin = to + 6
    row_at = begin + keys[NEW_PREFIX]
    row_end, key_end = map_key(source, begin_of_key, end_of_row, key, out, row_at, keys, key_row, key_constants)
    if row_end < 0:
        return 0, 0, row_end
    group = group_of_key(out, row_at + keys[MOMENT] + 4, row_end, keys[GROUPS])
    if keys[NEW_PREFIX] == 1:
        out[begin] = group
    else:
        put_uint16(out, begin, group)
    if slices[_KIND] != NO_SLICES:
        put_long(out, row_end, new_end)
        if keys[MOMENT]:
            put_long(out, row_at, (new_end - 1) ^ _SIGN)
    if value[FORM] > SEPARATED:
        key_end, made = count_row(source, end_of_row, key, end, out, row_end, value, row, constants)
    else:
        made = map_value(source, key + 4, end, out, key_end + 4, value, row, constants)
    if made < 0:
        return 0, 0, made
    put_uint32(out, to + 2, key_end - begin)
    put_uint32(out, key_end, made - key_end - 4)
    return group, row_end, made


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
def groups_of_keys(source: memoryview, offsets: list[int], max_parallelism: int, groups: list[int]) -> None:
    """Find the key groups of consecutive keys, which are preceded by their length."""
    for number in range(len(groups)):
        groups[number] = group_of_key(source, offsets[number] + 4, offsets[number + 1], max_parallelism)
