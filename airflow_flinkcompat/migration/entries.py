"""The entries of one operator, rewritten field by field: keys, values and timers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable, write_int, write_long
from airflow_flinkcompat.savepoint.binary_row import (
    EMPTY_VIEW,
    NULL,
    Field,
    FieldForm,
    field_form,
    read_row,
    write_row,
    zero,
)
from airflow_flinkcompat.savepoint.key_groups import key_group
from airflow_flinkcompat.savepoint.keyed_state import Entry, KeyedHeader, group_contents, read_entries
from airflow_flinkcompat.savepoint.kinds import KeyedStateKind
from airflow_flinkcompat.state.layout import Begins, NamedState, StateField
from airflow_flinkcompat.state.migration import OperatorMigration
from airflow_flinkcompat.state.rewrites.parts import ROWS, StateRewrite

_LENGTH, _STAMP, _MOMENT = 4, 8, 8
_ONE_BYTE = 128


class NotMigratable(Exception):
    """A state cannot be rewritten so that the new job reads it right; says which and why."""


@dataclass(frozen=True)
class StoredKeys:
    """The keyed state of one subtask: its header, the first of its key groups, where they begin, and the file."""

    header: KeyedHeader
    first: int
    begins: tuple[int, ...]
    content: bytes

    def entries(self) -> Iterator[Entry]:
        """Every entry, in the order of the file.

        Yields:
            Each, with its key group in front of the key.

        Raises:
            SavepointUnreadable: The file is damaged.
        """
        for _, group in group_contents(self.content, self.begins, self.header.compressed):
            for entry in read_entries(group):
                if entry.state >= len(self.header.states):
                    raise SavepointUnreadable(f"an entry is of state {entry.state}, which its header does not name")
                yield entry


def prefix_length(max_parallelism: int) -> int:
    """How many bytes of a stored key say its key group.

    Args:
        max_parallelism: Of the operator.

    Returns:
        The number of bytes.
    """
    return 1 if max_parallelism <= _ONE_BYTE else 2


@dataclass(frozen=True)
class StoredKey:
    """A stored key without its key group.

    Attributes:
        moment: Of a timer when it fires, as it is stored; else empty.
        row: The key.
        rest: The namespace, and of a map the key of the user.
    """

    moment: bytes
    row: bytes
    rest: bytes

    @classmethod
    def read(cls, key: bytes, timer: bool) -> StoredKey:
        """The parts of a stored key.

        Args:
            key: Without its key group.
            timer: Whether it is one of a timer.

        Returns:
            The parts.
        """
        at = _MOMENT if timer else 0
        begin = at + _LENGTH
        end = begin + int.from_bytes(key[at:begin], "big")
        return cls(key[:at], key[begin:end], key[end:])

    def to_bytes(self) -> bytes:
        """As it is stored, without a key group."""
        return self.moment + write_int(len(self.row)) + self.row + self.rest


def rewritten(
    stored: Iterable[StoredKeys], made: OperatorMigration, header: KeyedHeader, widths: tuple[int, int], now: int
) -> Iterator[tuple[int, Entry]]:
    """The entries of an operator as the new one reads them.

    Args:
        stored: What the old operator keeps, of all its subtasks.
        made: Where the parts of each state come from.
        header: Of the new operator, from a savepoint of its own.
        widths: The numbers of key groups of the old and of the new operator.
        now: Milliseconds since 1970, for values that are to carry when they were last used and did not.

    Yields:
        The key group of each entry, and the entry with that group in front of its key.

    Raises:
        NotMigratable: A timer finds no timers of its kind, or a field begins in a way that was not measured.
    """
    numbers = {state.name: number for number, state in enumerate(header.states)}
    key = _key_change(made)
    for each in stored:
        ways = [list(_ways(state.name, state.kind, made.states, numbers, now)) for state in each.header.states]
        timers = [state.kind is KeyedStateKind.TIMERS for state in each.header.states]
        for entry in each.entries():
            parts = StoredKey.read(entry.key[prefix_length(widths[0]) :], timers[entry.state])
            if timers[entry.state] and not ways[entry.state]:
                name = each.header.states[entry.state].name
                raise NotMigratable(f"the new operator sets no timers {name.removeprefix('_timer_state/')}")
            if not ways[entry.state]:
                continue
            moved = StoredKey(parts.moment, key(parts.row), parts.rest)
            group = key_group(moved.row, widths[1])
            stored_key = group.to_bytes(prefix_length(widths[1]), "big") + moved.to_bytes()
            for number, value in ways[entry.state]:
                yield group, Entry(number, stored_key, value(entry.value))


def _ways(
    name: str, kind: KeyedStateKind, states: Sequence[StateRewrite], numbers: Mapping[str, int], now: int
) -> Iterator[tuple[int, Callable[[bytes], bytes]]]:
    """Where the entries of an old state go: numbers of new states, and what becomes of a value."""
    if kind is KeyedStateKind.TIMERS:
        if name in numbers:
            yield numbers[name], lambda value: value
        return
    for state in states:
        if state.old is not None and state.old.name == name:
            yield numbers[state.new.name], value_change(state, now)


def _key_change(made: OperatorMigration) -> Callable[[bytes], bytes]:
    if made.key == tuple(range(len(made.key))):
        return lambda row: row
    assert made.old is not None
    forms = key_forms(made)
    return lambda row: write_row([read_row(row, forms)[place] for place in made.key], row[0])


def key_forms(made: OperatorMigration) -> tuple[FieldForm, ...]:
    """The forms of the fields of an operator's old keys.

    Args:
        made: A rewriting, whose new key says from where each of its fields comes.

    Returns:
        The forms, in the order of the old key.
    """
    new = made.new.layout.key if made.new is not None else ()  # type: ignore[union-attr]
    types = {place: field.type for place, field in zip(made.key, new, strict=True)}
    return tuple(field_form(types[place]) for place in range(len(types)))


def value_change(state: StateRewrite, now: int) -> Callable[[bytes], bytes]:
    """What becomes of the values of a state.

    Args:
        state: Where they come from.
        now: Milliseconds since 1970.

    Returns:
        A function over a value as it is stored.

    Raises:
        NotMigratable: A field begins in a way that was not measured, or a list gains or loses its time to live.
    """
    old, new = state.old, state.new
    assert old is not None
    row = _row_change(old.value.fields, new, state.fields)
    before, after = old.time_to_live, new.time_to_live
    if new.kind is KeyedStateKind.LIST and before != after:
        raise NotMigratable(f"a time to live that comes to or leaves the list {new.name} was not measured")
    flag = 1 if new.kind is KeyedStateKind.MAP else 0  # of a map: whether the value is missing
    stamp = write_long(now)

    def change(value: bytes) -> bytes:
        head, rest = value[:flag], value[flag:]
        used, rest = (rest[:_STAMP], rest[_STAMP:]) if before else (stamp, rest)
        return head + (used if after else b"") + row(rest)

    return change


def _row_change(old: Sequence[StateField], new: NamedState, places: Sequence[int | None]) -> Callable[[bytes], bytes]:
    if new.value.form not in ROWS or (tuple(places) == tuple(range(len(old)))):
        return lambda value: value
    forms = [field_form(field.type) for field in old]
    begun = [None if place is not None else begin(field) for place, field in zip(places, new.value.fields, strict=True)]

    def change(row: bytes) -> bytes:
        fields = read_row(row, forms)
        taken = [
            fields[place] if place is not None else made or NULL for place, made in zip(places, begun, strict=True)
        ]
        return write_row(taken, row[0])

    return lambda value: write_rows(map(change, stored_rows(value, new.value.form)), new.value.form)


def stored_rows(value: bytes, form: str) -> list[bytes]:
    """The rows of a stored value.

    Args:
        value: As it is stored, without a stamp.
        form: One of ``ROWS``.

    Returns:
        One row, or those of a list.

    Raises:
        SavepointUnreadable: It holds something else.
    """
    rows: list[bytes] = []
    at = _LENGTH if form != "row" else 0
    wanted = int.from_bytes(value[:_LENGTH], "big") if form != "row" else 1
    while at < len(value) and len(rows) < wanted:
        end = at + _LENGTH + int.from_bytes(value[at : at + _LENGTH], "big")
        rows.append(value[at + _LENGTH : end])
        at = end
    if at != len(value) or len(rows) != wanted:
        raise SavepointUnreadable(f"a value of the form {form} holds something beside its rows")
    return rows


def write_rows(rows: Iterable[bytes], form: str) -> bytes:
    """The value that holds these rows.

    Args:
        rows: One, or those of a list.
        form: One of ``ROWS``.

    Returns:
        It as it is stored; :func:`stored_rows` reads it back.
    """
    parts = [write_int(len(row)) + row for row in rows]
    return b"".join(parts if form == "row" else [write_int(len(parts)), *parts])


def begin(field: StateField) -> Field:
    """What stands in a field before any row came.

    Args:
        field: Of a stored row.

    Returns:
        Its value.

    Raises:
        NotMigratable: It was not measured.
    """
    match field.begins:
        case Begins.NULL:
            return NULL
        case Begins.ZERO:
            return zero(field.type)
        case Begins.EMPTY_VIEW:
            return EMPTY_VIEW
    raise NotMigratable(f"what {field.words} begins with was not measured")
