"""Rewriting of one operator's stored entries: keys, values, timers and the rows in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from airflow_flinkcompat.exec_graph.layout import FLAG, STAMP, NamedState, StateField, StateLayout, StateNamespace
from airflow_flinkcompat.exec_graph.migration import OperatorMigration
from airflow_flinkcompat.exec_graph.model import StateSpec
from airflow_flinkcompat.exec_graph.rewriting import StateRewrite
from airflow_flinkcompat.migration.fields import NotMigratable, row_change, row_merger
from airflow_flinkcompat.migration.runs import ValueMapping, value_mapping
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, RowFraming, SavepointUnreadable, write_int, write_long
from airflow_flinkcompat.savepoint.keyed_state import Entry, KeyedHeader, KeyedState
from airflow_flinkcompat.savepoint.row_mapping import RowMapping

_BETWEEN = b","
"""Separator between elements of a list state.

A list inside a value has no separators, but begins with its number of elements.
"""


class StoredRow(NamedTuple):
    """A row inside a stored value, with the bytes that follow the row, such as a count."""

    row: bytes
    trailing: bytes = b""


def stored_rows(value: bytes, state: NamedState) -> list[StoredRow]:
    form, trailing = state.value.form, state.trailing
    between = len(_BETWEEN) if state.framing is RowFraming.SEPARATED else 0
    counted = state.framing is RowFraming.COUNTED
    at = _LENGTH if counted else 0
    wanted = int.from_bytes(value[:_LENGTH], "big") if counted else None if between else 1
    rows: list[StoredRow] = []
    while at < len(value) and len(rows) != wanted:
        if between and rows:
            if value[at : at + between] != _BETWEEN:
                break
            at += between
        end = at + _LENGTH + int.from_bytes(value[at : at + _LENGTH], "big")
        rows.append(StoredRow(value[at + _LENGTH : end], value[end : end + trailing]))
        at = end + trailing
    if at != len(value) or (wanted is not None and len(rows) != wanted):
        raise SavepointUnreadable(
            f"a value of the form {form} has unexpected bytes after its rows: the savepoint is damaged or its "
            "format is unknown"
        )
    return rows


def write_rows(rows: Iterable[StoredRow], state: NamedState) -> bytes:
    """Encode rows as one stored value."""
    parts = [write_int(len(row)) + row + trailing for row, trailing in rows]
    if state.framing is RowFraming.SEPARATED:
        return _BETWEEN.join(parts)
    return b"".join([write_int(len(parts)), *parts] if state.framing is RowFraming.COUNTED else parts)


_LENGTH, _MOMENT = 4, 8
_VOID = StateNamespace.NONE.size


def row_place(key: bytes, timer: bool) -> tuple[int, int]:
    """Start and end offset of the key row in a stored key."""
    begin = (_MOMENT if timer else 0) + _LENGTH
    return begin, begin + int.from_bytes(key[begin - _LENGTH : begin], "big")


@dataclass(frozen=True)
class StoredKey:
    """A stored key without its key group prefix.

    Attributes:
        moment: Stored time of a timer; empty for other states.
        row: The key, which is a row.
        rest: The namespace, followed by the user key if the state is a map.
    """

    moment: bytes
    row: bytes
    rest: bytes

    @classmethod
    def read(cls, key: bytes, timer: bool) -> StoredKey:
        begin, end = row_place(key, timer)
        return cls(key[: begin - _LENGTH], key[begin:end], key[end:])

    def to_bytes(self) -> bytes:
        return self.moment + write_int(len(self.row)) + self.row + self.rest


GroupChange = Callable[[list[Entry]], list[Entry]]
"""Function that merges the entries of one key group of the new operator."""


def merge_entries(made: OperatorMigration, header: KeyedHeader) -> GroupChange | None:
    """Return a function that merges entries whose new keys are equal; None if no entries merge."""
    if made.merges:
        mergers = {
            state.new.name: value_merger(_without_new_fields(state)) for state in made.states if state.old is not None
        }
    else:
        mergers = {state.new.name: partial(add_counts, state.new) for state in made.states if state.adds_counts}
    if not mergers and not made.merges:
        return None
    # Equal timers need no merging, because a single timer is enough.
    of_state = [mergers.get(state.name) for state in header.states]

    def change(entries: list[Entry]) -> list[Entry]:
        found: dict[tuple[int, bytes], bytes] = {}
        for state, key, value in entries:
            merge, former = of_state[state], found.get((state, key))
            found[state, key] = value if former is None or merge is None else merge(former, value)
        return [Entry(state, key, value) for (state, key), value in found.items()]

    return change


def _without_new_fields(state: StateRewrite) -> NamedState:
    """Disable merging for the new fields of a state, because their values are equal for every key."""
    fields = (
        field if place is not None else replace(field, merges=None)
        for field, place in zip(state.new.value.fields, state.fields, strict=True)
    )
    return replace(state.new, value=replace(state.new.value, fields=tuple(fields)))


def value_merger(state: NamedState) -> Callable[[bytes, bytes], bytes]:
    """Return a function that merges two values of a state."""
    if state.value.form != "row":
        raise NotMigratable(
            f"the state {state.name} would have to merge values of several keys, which is not supported"
        )
    merge, skip = row_merger(state.value.fields), STAMP if state.time_to_live else 0

    def merged(one: bytes, other: bytes) -> bytes:
        ((left, _),), ((right, _),) = (stored_rows(value[skip:], state) for value in (one, other))
        # The later of the two timestamps is the last access.
        return max(one[:skip], other[:skip]) + write_rows([StoredRow(merge(left, right))], state)

    return merged


def key_change(made: OperatorMigration) -> RowMapping | None:
    """Build the mapping of an operator's keys; None if the keys are unchanged."""
    old, new = (key_fields(spec) for spec in (made.old, made.new))
    return row_change(old, new, made.key)


def key_fields(spec: StateSpec | None) -> tuple[StateField, ...]:
    return spec.layout.key if spec is not None and isinstance(spec.layout, StateLayout) else ()


@dataclass(frozen=True)
class EntryRewrite:
    """Target state of an old state's entries, with the functions that rewrite the entries.

    Attributes:
        value: Mapping of the stored value; None if the value is unchanged.
        entry: Function that rewrites the namespace, map key and value together, if all of these change.
    """

    number: int
    value: ValueMapping | None
    entry: Callable[[bytes, bytes], tuple[bytes, bytes]] | None = None


def entry_rewrites(
    made: OperatorMigration, old: KeyedHeader, new: KeyedHeader, now: int
) -> tuple[tuple[EntryRewrite, ...], ...]:
    """Return the targets of each old state's entries."""
    numbers = {state.name: number for number, state in enumerate(new.states)}
    return tuple(tuple(_entry_targets(state, made.states, numbers, now)) for state in old.states)


def _entry_targets(
    state: KeyedState, states: Sequence[StateRewrite], numbers: Mapping[str, int], now: int
) -> Iterator[EntryRewrite]:
    if state.kind is KeyedStateKind.TIMERS:
        if state.name in numbers:
            yield EntryRewrite(numbers[state.name], None)
        return
    for each in states:
        if each.old is not None and each.old.name == state.name:
            number = numbers[each.new.name]
            if each.adds_counts:
                yield EntryRewrite(number, None, entry=counted_rows(each, now))
            else:
                yield EntryRewrite(number, value_change(each, now))


def value_change(state: StateRewrite, now: int) -> ValueMapping | None:
    """Build the mapping of a state's values; None if the values are unchanged."""
    old, new = state.old, state.new
    assert old is not None
    rows = row_change(old.value.fields, new.value.fields, state.fields) if new.framing else None
    if old.time_to_live == new.time_to_live:
        return None if rows is None else value_mapping(new, rows, old.time_to_live, new.time_to_live)
    if new.kind is KeyedStateKind.LIST:
        raise NotMigratable(
            f"the list state {new.name} gains or loses a state TTL, which was not measured and is not supported"
        )
    return value_mapping(new, rows, old.time_to_live, new.time_to_live, now)


def counted_rows(state: StateRewrite, now: int) -> Callable[[bytes, bytes], tuple[bytes, bytes]]:
    """Return a function that rewrites the entries of a join input. The new state counts equal rows."""
    old, new = state.old, state.new
    assert old is not None
    change = row_change(old.row, new.row, state.fields) or _unchanged_row
    stamp, begin_of_rest = write_long(now), old.content_begin

    def changed(rest: bytes, value: bytes) -> tuple[bytes, bytes]:
        used = (value[FLAG:begin_of_rest] or stamp) if new.time_to_live else b""
        times, row, matched = counted_row(old, rest, value)
        made = change(row)
        return rest[:_VOID] + write_int(len(made)) + made, value[:FLAG] + used + write_int(times) + matched

    return changed


def _unchanged_row(row: bytes) -> bytes:
    return row


def counted_row(state: NamedState, rest: bytes, value: bytes) -> tuple[int, bytes, bytes]:
    """Return the count, the row and the stored match count from an entry of a join input."""
    content = value[state.content_begin :]
    if not state.counts_rows:
        ((row, matched),) = stored_rows(content, state)
        return 1, row, matched
    begin = _VOID + _LENGTH
    if int.from_bytes(rest[_VOID:begin], "big") != len(rest) - begin:
        raise SavepointUnreadable(
            f"a key of the map {state.name} has unexpected bytes after its row: the savepoint is damaged"
        )
    return int.from_bytes(content[:_LENGTH], "big"), rest[begin:], content[_LENGTH:]


def last_written(state: NamedState, value: bytes) -> int:
    begin = state.content_begin
    return int.from_bytes(value[begin - STAMP : begin], "big", signed=True)


def add_counts(state: NamedState, one: bytes, other: bytes) -> bytes:
    """Merge the values of two rows that become equal: add their counts."""
    begin = state.content_begin
    end = begin + _LENGTH
    if one[end:] != other[end:]:
        raise NotMigratable(f"rows that become equal in {state.name} have different match counts and cannot be merged")
    count = int.from_bytes(one[begin:end], "big") + int.from_bytes(other[begin:end], "big")
    return max(one[:begin], other[:begin]) + write_int(count) + one[end:]
