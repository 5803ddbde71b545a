"""The entries of one operator, rewritten field by field: keys, values and timers."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from airflow_flinkcompat.migration.fields import NotMigratable, row_change
from airflow_flinkcompat.migration.merging import row_merger
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable, write_int, write_long
from airflow_flinkcompat.savepoint.keyed_state import Entry, KeyedHeader, KeyedState
from airflow_flinkcompat.savepoint.kinds import KeyedStateKind
from airflow_flinkcompat.savepoint.row_mapping import RowChange, WordMapping
from airflow_flinkcompat.state.layout import NamedState, StateField, StateLayout
from airflow_flinkcompat.state.migration import OperatorMigration
from airflow_flinkcompat.state.model import StateSpec
from airflow_flinkcompat.state.rewrites.parts import ROWS, StateRewrite

_LENGTH, _STAMP, _MOMENT = 4, 8, 8
_ONE_BYTE = 128
_SIZE = struct.Struct(">I")


def prefix_length(max_parallelism: int) -> int:
    """How many bytes of a stored key say its key group.

    Args:
        max_parallelism: Of the operator.

    Returns:
        The number of bytes.
    """
    return 1 if max_parallelism <= _ONE_BYTE else 2


def row_place(key: bytes, timer: bool) -> tuple[int, int]:
    """Where the key stands in a stored key.

    Args:
        key: Without its key group.
        timer: Whether it is one of a timer.

    Returns:
        Where its row begins and ends.
    """
    begin = (_MOMENT if timer else 0) + _LENGTH
    return begin, begin + int.from_bytes(key[begin - _LENGTH : begin], "big")


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
        begin, end = row_place(key, timer)
        return cls(key[: begin - _LENGTH], key[begin:end], key[end:])

    def to_bytes(self) -> bytes:
        """As it is stored, without a key group."""
        return self.moment + write_int(len(self.row)) + self.row + self.rest


GroupChange = Callable[[list[Entry]], list[Entry]]
"""What is written of all entries that come to one key group of the new operator."""


def united(made: OperatorMigration, header: KeyedHeader) -> GroupChange | None:
    """How entries that come to have one key become one.

    Args:
        made: Where the parts of each state come from.
        header: Of the new operator.

    Returns:
        What is written of the entries of a key group; None: each goes on alone.

    Raises:
        NotMigratable: The values of a field cannot be merged.
    """
    if not made.merges:
        return None
    mergers = {state.new.name: value_merger(state.new) for state in made.states}
    of_state = [mergers.get(state.name) for state in header.states]  # of timers one is enough

    def change(entries: list[Entry]) -> list[Entry]:
        found: dict[tuple[int, bytes], bytes] = {}
        for state, key, value in entries:
            merge, former = of_state[state], found.get((state, key))
            found[state, key] = value if former is None or merge is None else merge(former, value)
        return [Entry(state, key, value) for (state, key), value in found.items()]

    return change


def value_merger(state: NamedState) -> Callable[[bytes, bytes], bytes]:
    """How two values of a state become one.

    Args:
        state: Of an aggregation.

    Returns:
        A function over two values as they are stored.

    Raises:
        NotMigratable: They cannot be merged.
    """
    if state.value.form != "row":
        raise NotMigratable(f"what the state {state.name} holds of several keys cannot be merged")
    merge, skip = row_merger(state.value.fields), _STAMP if state.time_to_live else 0

    def merged(one: bytes, other: bytes) -> bytes:
        (left,), (right,) = (stored_rows(value[skip:], "row") for value in (one, other))
        # Of two stamps the later one: that key was used last.
        return max(one[:skip], other[:skip]) + write_rows([merge(left, right)], "row")

    return merged


def key_change(made: OperatorMigration) -> RowChange | None:
    """What becomes of the keys of an operator.

    Args:
        made: A rewriting.

    Returns:
        A function over a key row; None: they stay as they are.
    """
    old, new = (key_fields(spec) for spec in (made.old, made.new))
    return row_change(old, new, made.key)


def key_fields(spec: StateSpec | None) -> tuple[StateField, ...]:
    """The fields of an operator's keys.

    Args:
        spec: One that is rewritten.

    Returns:
        The fields, in order.
    """
    return spec.layout.key if spec is not None and isinstance(spec.layout, StateLayout) else ()


@dataclass(frozen=True)
class Way:
    """Where the entries of an old state go.

    Attributes:
        number: Of the new state.
        value: What becomes of a value as it is stored; None: it stays as it is.
        words: The same of a row by itself, where all rows are of one size.
    """

    number: int
    value: Callable[[bytes], bytes] | None
    words: WordMapping | None = None


def ways(made: OperatorMigration, old: KeyedHeader, new: KeyedHeader, now: int) -> tuple[tuple[Way, ...], ...]:
    """Where the entries of each old state go.

    Args:
        made: Where the parts of each state come from.
        old: The header of a file of the old operator.
        new: That of the new operator, from a savepoint of its own.
        now: Milliseconds since 1970, for values that are to carry when they were last used and did not.

    Returns:
        For each state of the old header, in order; none where it is dropped.

    Raises:
        NotMigratable: A field begins in a way that was not measured.
    """
    numbers = {state.name: number for number, state in enumerate(new.states)}
    return tuple(tuple(_ways(state, made.states, numbers, now)) for state in old.states)


def _ways(state: KeyedState, states: Sequence[StateRewrite], numbers: Mapping[str, int], now: int) -> Iterator[Way]:
    if state.kind is KeyedStateKind.TIMERS:
        if state.name in numbers:
            yield Way(numbers[state.name], None)
        return
    for each in states:
        if each.old is not None and each.old.name == state.name:
            yield Way(numbers[each.new.name], value_change(each, now), _of_words(each))


def _of_words(state: StateRewrite) -> WordMapping | None:
    """The change of a value that is one row and nothing else, all of one size."""
    old, new = state.old, state.new
    assert old is not None
    if new.kind is not KeyedStateKind.VALUE or new.value.form != "row" or old.time_to_live or new.time_to_live:
        return None
    change = _row_change(state)
    return change if isinstance(change, WordMapping) and change.sizes is not None else None


def value_change(state: StateRewrite, now: int) -> Callable[[bytes], bytes] | None:
    """What becomes of the values of a state.

    Args:
        state: Where they come from.
        now: Milliseconds since 1970.

    Returns:
        A function over a value as it is stored; None: it stays as it is.

    Raises:
        NotMigratable: A field begins in a way that was not measured, or a list gains or loses its time to live.
    """
    old, new = state.old, state.new
    assert old is not None
    row = _row_change(state)
    rows = row and each_row(row, new.value.form)
    before, after = old.time_to_live, new.time_to_live
    if new.kind is KeyedStateKind.LIST and before != after:
        raise NotMigratable(f"a time to live that comes to or leaves the list {new.name} was not measured")
    flag = 1 if new.kind is KeyedStateKind.MAP else 0  # of a map: whether the value is missing
    if before == after:
        skip = flag + (_STAMP if before else 0)
        if rows is None or not skip:
            return rows
        return lambda value: value[:skip] + rows(value[skip:])
    stamp = write_long(now)

    def change(value: bytes) -> bytes:
        rest = value[flag + (_STAMP if before else 0) :]
        return value[:flag] + (stamp if after else b"") + (rows(rest) if rows is not None else rest)

    return change


def _row_change(state: StateRewrite) -> RowChange | None:
    if state.old is None or state.new.value.form not in ROWS:
        return None
    return row_change(state.old.value.fields, state.new.value.fields, state.fields)


def each_row(change: RowChange, form: str) -> Callable[[bytes], bytes]:
    """A change of rows as one of the values that hold them.

    Args:
        change: Of a row.
        form: Of the value, one of ``ROWS``.

    Returns:
        A function over a value as it is stored, without a stamp.
    """
    if form != "row":
        return lambda value: write_rows(map(change, stored_rows(value, form)), form)

    def of_one(value: bytes) -> bytes:
        if int.from_bytes(value[:_LENGTH], "big") != len(value) - _LENGTH:
            raise SavepointUnreadable("a value of the form row holds something beside its row")
        row = change(value[_LENGTH:])
        return _SIZE.pack(len(row)) + row

    return of_one


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
