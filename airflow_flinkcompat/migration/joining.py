"""Compiled loops that join stored entries with entries computed from history.

Kept fields come from the savepoint and are compared; new fields and new states come from history.
"""

from __future__ import annotations

from airflow_flinkcompat.exec_graph.layout import StateNamespace
from airflow_flinkcompat.migration.uniting import (
    BEGIN,
    COMPUTED,
    ENTRY,
    FIELDS,
    LAST,
    NEXT,
    SECOND,
    STEP,
    STEPS,
    WORDS,
    merge_row_values,
    same_fields,
)
from airflow_flinkcompat.savepoint.compiled import (
    compiled,
    copy,
    equal,
    long_at,
    put_uint16,
    put_uint32,
    real,
    row_hash,
    uint16,
    uint32,
)
from airflow_flinkcompat.savepoint.row_mapping import is_null

IGNORED, NEW, KEPT, COMPARED, ROWS = range(5)
"""Kinds of states: timers, states without old entries, and three comparisons of values."""
KIND, CONTENT, EXPIRES, NAMESPACE, EMPTY_MAP, ROW = range(6)
"""Indexes of the numbers in the plan of a state.

The numbers are the kind, the begin of a value's content, 1 for a state TTL, the bytes of the namespace, 1 if an empty
map stores nothing, and the plan of a row.
"""
COUNTS, KINDS = 4, 3
COMPARED_BOTH, UNKNOWN, ADDED, OTHER = range(COUNTS)
"""Counted keys: in both, only in the savepoint, only in history, and with different values."""
EXPIRED = 0
"""Last write time of a computed value whose TTL has expired. Flink may still store such a value."""
ROUNDING = 1e-9
"""Maximum relative difference between two sums of DOUBLE values that were added in different orders."""
_WINDOW = StateNamespace.WINDOW.size


@compiled
def join(
    source: memoryview,
    entries: list[int],
    slots: list[int],
    out: memoryview,
    plans: list[int],
    prefix: int,
    counts: list[int],
    shown: list[int],
) -> int:
    """Write the joined entries; returns their end, or an error code.

    ``counts`` receives the numbers of keys. ``shown`` receives the kind of the first differences, with the begin of the
    entry and of the computed entry.
    """
    to, count = 0, len(entries) // ENTRY
    for entry in range(count):
        at = entries[ENTRY * entry + BEGIN]
        if uint16(source, at) & COMPUTED:
            continue
        other = entries[ENTRY * entry + NEXT]
        if entries[ENTRY * entry + LAST] < 0:
            other = -1 - entries[ENTRY * entry + LAST]
        to = _joined(source, at, entries[ENTRY * other + BEGIN] if other >= 0 else -1, out, to, plans, counts, shown)
        if to < 0:
            return to
    added = False
    for entry in range(count):
        at = entries[ENTRY * entry + BEGIN]
        if _is_alone(source, entries, entry, plans) and plans[plans[uint16(source, at) & ~COMPUTED] + KIND] >= KEPT:
            added = True
            counts[ADDED] += 1
            _show(shown, ADDED, at, at)
            begin, end = at + 6 + prefix, at + 6 + uint32(source, at + 2)
            _put_slot(slots, row_hash(source, begin, end), at)
    for entry in range(count):
        at = entries[ENTRY * entry + BEGIN]
        plan = plans[uint16(source, at) & ~COMPUTED]
        if plans[plan + KIND] != NEW or not _is_alone(source, entries, entry, plans):
            continue
        # A new field of a key or window that is not written must not be written either.
        if not (added and _has_added_key(source, at, slots, prefix, plans[plan + NAMESPACE])):
            to = put_entry(source, at, out, to)
    return to


@compiled
def take_computed(source: memoryview, entries: list[int], out: memoryview, plans: list[int]) -> int:
    """Write the computed entries that have not expired; returns their end."""
    to = 0
    for entry in range(len(entries) // ENTRY):
        if _is_alone(source, entries, entry, plans):
            to = put_entry(source, entries[ENTRY * entry + BEGIN], out, to)
    return to


@compiled
def put_entry(source: memoryview, at: int, out: memoryview, to: int) -> int:
    """Copy an entry without the bit of computed entries; returns its end."""
    key = at + 6 + uint32(source, at + 2)
    end = key + 4 + uint32(source, key)
    copy(source, at, end, out, to)
    put_uint16(out, to, uint16(source, at) & ~COMPUTED)
    return to + end - at


@compiled
def _joined(
    source: memoryview,
    at: int,
    other: int,
    out: memoryview,
    to: int,
    plans: list[int],
    counts: list[int],
    shown: list[int],
) -> int:
    """Write a stored entry, with the new fields of the computed entry at ``other``, or -1."""
    plan = plans[uint16(source, at)]
    kind, content = plans[plan + KIND], plans[plan + CONTENT]
    key = at + 6 + uint32(source, at + 2)
    value, end = key + 4, key + 4 + uint32(source, key)
    written = put_entry(source, at, out, to)
    if kind <= NEW:
        return written
    if other < 0:
        empty = plans[plan + EMPTY_MAP] > 0 and end - value == content + 4 and uint32(source, value + content) == 0
        if not empty:
            counts[UNKNOWN] += 1
            _show(shown, UNKNOWN, at, at)
        return written
    counts[COMPARED_BOTH] += 1
    if kind == KEPT:
        return written
    other_value = other + 6 + uint32(source, other + 2) + 4
    other_end = other_value + uint32(source, other_value - 4)
    one, two = value + content, other_value + content
    if kind == COMPARED:
        same = end - value == other_end - other_value and equal(source, one, end, source, two)
    else:
        begin = to + value - at
        written = merge_row_values(out, begin + content, written, source, two, other_end, plans, plan + ROW)
        if written < 0:
            return written
        put_uint32(out, begin - 4, written - begin)
        same = _same_kept_fields(source, one + 4, two + 4, plans, plan + ROW)
    if not same:
        counts[OTHER] += 1
        _show(shown, OTHER, at, other)
    return written


@compiled
def _same_kept_fields(source: memoryview, one: int, other: int, plans: list[int], plan: int) -> bool:
    """True if the kept fields of two rows are equal, except for rounding."""
    for field in range(plans[plan + FIELDS]):
        step = plan + STEPS + STEP * field
        if plans[step + 1] == SECOND:
            continue
        left, right = one + plans[plan + WORDS] + 8 * field, other + plans[plan + WORDS] + 8 * field
        left_null, right_null = is_null(source, one, field), is_null(source, other, field)
        if same_fields(source, one, left, left_null, source, other, right, right_null, plans[step]):
            continue
        size = plans[step + 2]
        if size == 0 or left_null or right_null or not _is_close(real(source, left, size), real(source, right, size)):
            return False
    return True


@compiled
def _is_close(one: float, other: float) -> bool:
    """True if two numbers differ by rounding only."""
    largest = max(abs(one), abs(other))
    return one == other or (abs(one - other) <= ROUNDING * largest and largest - largest == 0)


@compiled
def _is_alone(source: memoryview, entries: list[int], entry: int, plans: list[int]) -> bool:
    """True if a computed entry has no stored entry, and its value has not expired."""
    at = entries[ENTRY * entry + BEGIN]
    if not uint16(source, at) & COMPUTED or entries[ENTRY * entry + LAST] != entry:
        return False
    plan = plans[uint16(source, at) & ~COMPUTED]
    value = at + 6 + uint32(source, at + 2) + 4
    return not (plans[plan + EXPIRES] > 0 and long_at(source, value + plans[plan + CONTENT] - 8) == EXPIRED)


@compiled
def _show(shown: list[int], kind: int, at: int, other: int) -> None:
    """Remember a difference if few are remembered yet. ``shown`` begins with their number."""
    if KINDS * shown[0] + KINDS < len(shown):
        place = 1 + KINDS * shown[0]
        shown[place], shown[place + 1], shown[place + 2] = kind, at, other
        shown[0] += 1


@compiled
def _put_slot(slots: list[int], hashed: int, at: int) -> None:
    slot = hashed & len(slots) - 1
    while slots[slot] > 0:
        slot = slot + 1 & len(slots) - 1
    slots[slot] = at + 1


@compiled
def _has_added_key(source: memoryview, at: int, slots: list[int], prefix: int, namespace: int) -> bool:
    """True if one of the entries in ``slots`` has the key and the window of an entry."""
    begin = at + 6 + prefix
    end = begin + 4 + uint32(source, begin) + namespace
    slot = row_hash(source, begin, end) & len(slots) - 1
    while slots[slot] > 0:
        other = slots[slot] - 1
        if uint32(source, other + 2) - prefix == end - begin and equal(source, begin, end, source, other + 6 + prefix):
            return True
        slot = slot + 1 & len(slots) - 1
    return False


@compiled
def rename_windows(
    content: memoryview, entries: list[int], slots: list[int], windows: list[int], sessions: int, prefix: int
) -> None:
    """Replace windows in computed keys with those of the first row of a session, which Flink stores.

    ``windows``: 1 for each state with a window in its key. ``sessions``: the state that maps windows to stored ones.
    """
    for entry in range(len(entries) // ENTRY):
        at = entries[ENTRY * entry + BEGIN]
        if uint16(content, at) == sessions:
            end = at + 6 + uint32(content, at + 2)
            _put_slot(slots, _window_hash(content, at, end - _WINDOW, prefix), at)
    for entry in range(len(entries) // ENTRY):
        at = entries[ENTRY * entry + BEGIN]
        state = uint16(content, at)
        if not state & COMPUTED or not windows[state & ~COMPUTED]:
            continue
        row = at + 6 + prefix
        end_of_row = row + 4 + uint32(content, row)
        slot = _window_hash(content, at, end_of_row, prefix) & len(slots) - 1
        while slots[slot] > 0:
            other = slots[slot] - 1
            end = other + 6 + uint32(content, other + 2)
            same_row = equal(content, row, end_of_row, content, other + 6 + prefix)
            if same_row and equal(content, end_of_row, end_of_row + _WINDOW, content, end - _WINDOW):
                stored = end + 4 + uint32(content, end) - _WINDOW
                copy(content, stored, stored + _WINDOW, content, end_of_row)
                break
            slot = slot + 1 & len(slots) - 1


@compiled
def _window_hash(content: memoryview, at: int, window: int, prefix: int) -> int:
    row = at + 6 + prefix
    end_of_row = row + 4 + uint32(content, row)
    return row_hash(content, row, end_of_row) ^ row_hash(content, window, window + _WINDOW)
