"""Rewriting of one operator's stored entries: keys, values, timers and the rows in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from airflow_flinkcompat.exec_graph.layout import NamedState, StateField, StateLayout
from airflow_flinkcompat.exec_graph.migration import OperatorMigration
from airflow_flinkcompat.exec_graph.model import StateSpec
from airflow_flinkcompat.exec_graph.rewriting import StateRewrite
from airflow_flinkcompat.migration.fields import NotMigratable, merge_plan, row_change
from airflow_flinkcompat.migration.moving import NEEDED
from airflow_flinkcompat.migration.runs import ValueMapping, counted_mapping, loop_error, value_mapping
from airflow_flinkcompat.migration.uniting import (
    ADD_COUNTS,
    COMPUTED,
    DIFFERS,
    ENTRY,
    KEEP_FIRST,
    MERGE_ROWS,
    NOT_MERGED,
    NOT_NEEDED,
    ONLY_NEEDED,
    OTHER_MATCHES,
    SEVERAL_VALUES,
    TOO_LARGE,
    TOO_MANY,
    count_entries,
    link_equal,
    unite,
)
from airflow_flinkcompat.savepoint.binary import DataReader, KeyedStateKind
from airflow_flinkcompat.savepoint.compiled import numbers, readable, writable, zeros
from airflow_flinkcompat.savepoint.keyed_state import Entry, KeyedHeader, KeyedState
from airflow_flinkcompat.savepoint.row_mapping import RowMapping

_LENGTH, _MOMENT = 4, 8


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
        begin = (_MOMENT if timer else 0) + _LENGTH
        end = begin + int.from_bytes(key[begin - _LENGTH : begin], "big")
        return cls(key[: begin - _LENGTH], key[begin:end], key[end:])


def scattered_entries(content: bytes | memoryview) -> Iterator[Entry]:
    """Decode entries on their way to a key group."""
    reader = DataReader(bytes(content))
    while reader.at < len(content):
        yield Entry(reader.uint16(), reader.take(reader.int32()), reader.take(reader.int32()))


@dataclass(frozen=True)
class EntryUnion:
    """Union of a key group's scattered entries whose keys have become equal.

    ``states``: the states whose values are merged, by number, for messages.
    """

    plans: list[int]
    states: tuple[NamedState | None, ...]

    @classmethod
    def of(cls, kinds: Sequence[tuple[int, NamedState | None]]) -> EntryUnion:
        """Plan the union for each state: its kind, and the state if values are merged."""
        heads, plans = [len(kinds) // 2], list[int]()
        for kind, state in kinds:
            heads.append(1 + len(kinds) + len(plans))
            plans += [kind, 0 if state is None else state.content_begin]
            if kind == MERGE_ROWS and state is not None:
                plans += _row_plan(state)
        return cls(numbers([*heads, *plans]), tuple(state for _, state in kinds))

    def __call__(self, content: bytes) -> bytes:
        """Unite entries; the first entry with a key determines the place of the union."""
        source = readable(content)
        count = count_entries(source)
        entries, out = zeros(ENTRY * count), writable(2 * len(content))
        link_equal(source, entries, zeros(1 << (2 * count).bit_length()), NEEDED)
        end, state = unite(source, count, entries, out, self.plans)
        if end < 0:
            raise self._error(end, state)
        return out[:end].tobytes()

    def _error(self, code: int, number: int) -> Exception:
        state = self.states[(number & ~COMPUTED) + (len(self.states) // 2 if number & COMPUTED else 0)]
        if code == NOT_NEEDED:
            return NotMigratable("a slice belongs to no window that will still fire: take another savepoint")
        if state is None or code > OTHER_MATCHES:
            return loop_error(code)
        if code == OTHER_MATCHES:
            reason = f"rows that become equal in {state.name} have different match counts and cannot be merged"
            return NotMigratable(reason)
        if code == SEVERAL_VALUES:
            return _not_merged(state)
        if code == TOO_MANY:
            return NotMigratable(f"too many rows become equal in {state.name} to be counted")
        if code <= TOO_LARGE:
            field = state.value.fields[TOO_LARGE - code]
            return NotMigratable(f"the merged {field.words} of several keys exceeds its type {field.type}")
        field = state.value.fields[DIFFERS - code]
        return NotMigratable(f"{field.words} differs between keys that become equal, and cannot be merged")


def _row_plan(state: NamedState) -> list[int]:
    if state.value.form != "row":
        raise _not_merged(state)
    return merge_plan(state.value.fields)


def _not_merged(state: NamedState) -> NotMigratable:
    return NotMigratable(f"the state {state.name} would have to merge values of several keys, which is not supported")


def entry_union(made: OperatorMigration, header: KeyedHeader) -> EntryUnion | None:
    """Plan the union of entries whose new keys are equal; None if no keys become equal."""
    if made.merges:
        kinds = {s.new.name: (MERGE_ROWS, _without_new_fields(s)) for s in made.states if s.old is not None}
    else:
        kinds = {s.new.name: (ADD_COUNTS, s.new) for s in made.states if s.adds_counts}
    if not (kinds or made.merges or made.windows is not None or made.from_history):
        return None
    # If windows have changed, only the timers are kept that slices need.
    timers = KEEP_FIRST if made.windows is None else ONLY_NEEDED
    of_timers = {each.name: (timers, None) for each in header.states if each.kind is KeyedStateKind.TIMERS}
    # If several computed slices become one stored slice, each of them has a part of the value.
    computed = {s.new.name: (MERGE_ROWS if _has_plan(s.new) else NOT_MERGED, s.new) for s in made.states}
    known: Sequence[Mapping[str, tuple[int, NamedState | None]]] = ({**kinds, **of_timers}, computed)
    return EntryUnion.of([each.get(state.name, (KEEP_FIRST, None)) for each in known for state in header.states])


def _has_plan(state: NamedState) -> bool:
    with suppress(NotMigratable):
        return bool(_row_plan(state))
    return False


def _without_new_fields(state: StateRewrite) -> NamedState:
    """Disable merging for the new fields of a state, because their values are equal for every key."""
    fields = (
        field if place is not None else replace(field, merges=None)
        for field, place in zip(state.new.value.fields, state.fields, strict=True)
    )
    return replace(state.new, value=replace(state.new.value, fields=tuple(fields)))


def key_change(made: OperatorMigration) -> RowMapping | None:
    """Build the mapping of an operator's keys; None if the keys are unchanged."""
    old, new = (key_fields(spec) for spec in (made.old, made.new))
    return row_change(old, new, made.key)


def key_fields(spec: StateSpec | None) -> tuple[StateField, ...]:
    return spec.layout.key if spec is not None and isinstance(spec.layout, StateLayout) else ()


class EntryRewrite(NamedTuple):
    """Target state of an old state's entries, and the mapping of values unless they are unchanged."""

    number: int
    value: ValueMapping | None


def entry_rewrites(
    made: OperatorMigration, old: KeyedHeader, new: KeyedHeader, now: int
) -> tuple[tuple[EntryRewrite, ...], ...]:
    """Return the targets of each old state's entries."""
    number_of = {state.name: number for number, state in enumerate(new.states)}
    return tuple(tuple(_entry_targets(state, made.states, number_of, now)) for state in old.states)


def _entry_targets(
    state: KeyedState, states: Sequence[StateRewrite], number_of: Mapping[str, int], now: int
) -> Iterator[EntryRewrite]:
    if state.kind is KeyedStateKind.TIMERS:
        if state.name in number_of:
            yield EntryRewrite(number_of[state.name], None)
        return
    for each in states:
        if each.old is not None and each.old.name == state.name:
            yield EntryRewrite(number_of[each.new.name], value_change(each, now))


def value_change(state: StateRewrite, now: int) -> ValueMapping | None:
    """Build the mapping of a state's values; None if the values are unchanged."""
    old, new = state.old, state.new
    assert old is not None
    if state.adds_counts:
        return counted_mapping(old, row_change(old.row, new.row, state.fields), new.time_to_live, now)
    rows = row_change(old.value.fields, new.value.fields, state.fields) if new.framing else None
    if old.time_to_live == new.time_to_live:
        return None if rows is None else value_mapping(new, rows, old.time_to_live, new.time_to_live)
    if new.kind is KeyedStateKind.LIST:
        raise NotMigratable(
            f"the list state {new.name} gains or loses a state TTL, which was not measured and is not supported"
        )
    return value_mapping(new, rows, old.time_to_live, new.time_to_live, now)
