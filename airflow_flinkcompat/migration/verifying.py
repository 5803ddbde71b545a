"""Reads a written savepoint back, before any job starts from it, and compares it with the one that it was made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

from airflow_flinkcompat.migration.entries import StoredKey, StoredKeys, begin, key_forms, prefix_length, stored_rows
from airflow_flinkcompat.savepoint.binary_row import Field, field_form, read_row, write_row
from airflow_flinkcompat.savepoint.key_groups import key_group
from airflow_flinkcompat.savepoint.keyed_state import first_group, read_header
from airflow_flinkcompat.savepoint.kinds import KeyedStateKind
from airflow_flinkcompat.savepoint.metadata import OperatorState
from airflow_flinkcompat.savepoint.store import read_handle, read_metadata
from airflow_flinkcompat.state.layout import NamedState
from airflow_flinkcompat.state.migration import Keep, Migration, OperatorMigration
from airflow_flinkcompat.state.rewrites.parts import ROWS, StateRewrite

_STAMP = 8


class MigrationUnsound(Exception):
    """A written savepoint does not hold what it should; says of which state, and what."""


def verify(source: str, target: str, migration: Migration) -> None:
    """Compares a written savepoint with the one that it was made of.

    Of each operator that was rewritten: every key stands in its own key group, every state and its timers have as many
    entries as before, and all kept fields of all entries are equal. Of each that was carried: its bytes are.

    Args:
        source: Path or URI of the old savepoint.
        target: The same of the written one.
        migration: What was to become of each state.

    Raises:
        MigrationUnsound: Something differs. No job may start from the savepoint.
        SavepointUnreadable: It cannot be read back.
    """
    old = {each.id: each for each in read_metadata(source).operators}
    new = {each.id: each for each in read_metadata(target).operators}
    for line in migration.of_savepoint({each.id for each in old.values() if each.has_state}):
        if line.old is None or line.new is None or line.keep in (Keep.IMPOSSIBLE, Keep.BEGINS):
            continue
        before, after = old[line.old.id], new.get(line.new.id)
        if after is None:
            raise MigrationUnsound(f"{line.new.name} is missing")
        if _lists(source, before) != _lists(target, after):
            raise MigrationUnsound(f"{line.new.name}: what it keeps beside its keys differs")
        _compare(line, list(stored_keys(source, before)), list(stored_keys(target, after)), before, after)


def stored_keys(path: str, operator: OperatorState) -> Iterator[StoredKeys]:
    """The keyed state of an operator.

    Args:
        path: Path or URI of the savepoint.
        operator: Of its metadata.

    Yields:
        That of each subtask.

    Raises:
        SavepointUnreadable: A file of it cannot be read.
    """
    for subtask in operator.subtasks or ():
        if subtask.keyed is not None:
            content = read_handle(subtask.keyed.handle, path)
            header = read_header(content, first_group(subtask.keyed.begins))
            yield StoredKeys(header, subtask.keyed.first, subtask.keyed.begins, content)


def _lists(path: str, operator: OperatorState) -> object:
    coordinator = read_handle(operator.coordinator, path)
    return coordinator, [(each.lists, read_handle(each.handle, path)) for each in operator.lists]


def _compare(
    line: OperatorMigration,
    before: Sequence[StoredKeys],
    after: Sequence[StoredKeys],
    old: OperatorState,
    new: OperatorState,
) -> None:
    name = line.new.name if line.new is not None else ""
    if line.keep is not Keep.REWRITTEN:
        if Counter(_plain(before, old)) != Counter(_plain(after, new)):
            raise MigrationUnsound(f"{name}: its entries differ")
        return
    _in_their_groups(name, after, new)
    for state in line.states:
        if state.old is not None and _sums(line, state, before, old, False) != _sums(line, state, after, new, True):
            raise MigrationUnsound(f"{name}: kept fields of its state {state.new.name} differ")
    if _timers(line, before, old, False) != _timers(line, after, new, True):
        raise MigrationUnsound(f"{name}: its timers differ")


def _plain(stored: Sequence[StoredKeys], operator: OperatorState) -> Iterator[tuple[str, bytes, bytes]]:
    for each in stored:
        for entry in each.entries():
            key = entry.key[prefix_length(operator.max_parallelism) :]
            yield each.header.states[entry.state].name, key, entry.value


def _in_their_groups(name: str, stored: Sequence[StoredKeys], operator: OperatorState) -> None:
    length = prefix_length(operator.max_parallelism)
    for each in stored:
        for entry in each.entries():
            timer = each.header.states[entry.state].kind is KeyedStateKind.TIMERS
            row = StoredKey.read(entry.key[length:], timer).row
            if key_group(row, operator.max_parallelism) != int.from_bytes(entry.key[:length], "big"):
                raise MigrationUnsound(f"{name}: a key stands in another key group than Flink looks for it in")


def _sums(
    line: OperatorMigration, state: StateRewrite, stored: Sequence[StoredKeys], operator: OperatorState, new: bool
) -> tuple[int, int]:
    """How many entries a state has, and a sum over what is kept of each, which no order changes."""
    named = state.new if new else state.old
    assert named is not None
    kept = [(place, number) for number, place in enumerate(state.fields) if place is not None]
    # A row in the order of the old fields, whichever side it is of.
    places = [number if new else place for place, number in sorted(kept)]
    begun = {n: begin(state.new.value.fields[n]) for n, place in enumerate(state.fields) if new and place is None}
    entries = total = 0
    for each in stored:
        for entry in each.entries():
            if each.header.states[entry.state].name != named.name:
                continue
            key = StoredKey.read(entry.key[prefix_length(operator.max_parallelism) :], False)
            value = _kept(entry.value, named, places, begun)
            total += _digest(_key(line, key.row, new), key.rest, value)
            entries += 1
    return entries, total


def _timers(
    line: OperatorMigration, stored: Sequence[StoredKeys], operator: OperatorState, new: bool
) -> Counter[tuple[str, bytes, object, bytes]]:
    found: Counter[tuple[str, bytes, object, bytes]] = Counter()
    for each in stored:
        for entry in each.entries():
            state = each.header.states[entry.state]
            if state.kind is KeyedStateKind.TIMERS:
                key = StoredKey.read(entry.key[prefix_length(operator.max_parallelism) :], True)
                found[state.name, key.moment, _key(line, key.row, new), key.rest] += 1
    return found


def _key(line: OperatorMigration, row: bytes, new: bool) -> tuple[Field, ...]:
    """The fields of a key in the order of the old one."""
    forms = key_forms(line)
    order = line.key if new else range(len(forms))
    fields = read_row(row, [forms[place] for place in order])
    if write_row(fields, row[0]) != row:
        raise MigrationUnsound("a key holds something beside its fields")
    if not new:
        return fields
    return tuple(fields[line.key.index(place)] for place in range(len(fields)))


def _kept(value: bytes, state: NamedState, places: Sequence[int], begun: Mapping[int, Field]) -> object:
    """What of a value goes on. What begins in it must stand there as it begins, and nothing beside the fields."""
    flag = 1 if state.kind is KeyedStateKind.MAP else 0
    head, rest = value[:flag], value[flag + (_STAMP if state.time_to_live else 0) :]
    if state.value.form not in ROWS:
        return head, rest
    kept = []
    for row in stored_rows(rest, state.value.form):
        fields = read_row(row, [field_form(field.type) for field in state.value.fields])
        if write_row(fields, row[0]) != row:
            raise MigrationUnsound(f"a row of the state {state.name} holds something beside its fields")
        for place, field in begun.items():
            if fields[place] != field:
                raise MigrationUnsound(f"{state.value.fields[place].words} does not begin as it should")
        kept.append((row[0], tuple(fields[place] for place in places)))
    return head, kept


def _digest(*parts: object) -> int:
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=16).digest(), "big")
