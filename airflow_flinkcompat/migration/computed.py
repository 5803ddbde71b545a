"""Join of state computed from history with stored state: add new state, compare the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

from airflow_flinkcompat.exec_graph.layout import NamedState, StateField, StateNamespace
from airflow_flinkcompat.exec_graph.migration import Accept, OperatorMigration
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.exec_graph.nodes.aggregate import MERGED_SESSIONS
from airflow_flinkcompat.exec_graph.rewriting import StateRewrite, words
from airflow_flinkcompat.migration.entries import (
    StoredKey,
    key_fields,
    last_written,
    value_merger,
)
from airflow_flinkcompat.migration.fields import NotMigratable
from airflow_flinkcompat.migration.workers import Scattered
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, write_int
from airflow_flinkcompat.savepoint.binary_row import Field, FieldForm, field_form, field_reader, read_row, write_row
from airflow_flinkcompat.savepoint.keyed_state import Entry, KeyedHeader
from airflow_flinkcompat.savepoint.metadata import KeyGroups, OperatorState

_WINDOW = StateNamespace.WINDOW.size
_SHOWN = 5
"""Maximum number of differing keys in a message."""
ROUNDING = 1e-9
"""Maximum relative difference between two sums of DOUBLE values that were added in different orders."""
COMPUTED_BIT = 0x8000
"""Bit of a state number that marks an entry as computed. Writing the entry clears the bit."""
EXPIRED = 0
"""Last write time of a computed value whose TTL has expired. Flink may still store such a value."""
R = TypeVar("R")
_Join = Callable[[bytes, bytes], tuple[bytes, str]]
"""Function of a stored and a computed value. Returns the value to write and the difference as text."""


class HistoryDiffers(NotMigratable):
    """The state computed from history differs from the savepoint: rows are missing or duplicated."""


class SampleDiffers(NotMigratable):
    """The written state of a key differs from the state that plain Python computes from the key's rows."""


class StateComputer(Protocol):
    """Computer of operator state from history, which also joins that state with stored entries."""

    def regroup(
        self,
        wanted: ComputedOperator,
        scatter: Callable[[tuple[KeyGroups, range]], Scattered],
        parts: Sequence[tuple[KeyGroups, range]],
        gather: Callable[[range, Iterable[tuple[int, bytes]]], R],
        groups: Sequence[range],
    ) -> list[R]:
        """Regroup stored entries as :meth:`.workers.Workers.regroup` does, and add computed entries."""

    def advance_source(self, source: OperatorState, template: str) -> OperatorState:
        """State of a source that the old savepoint lacks.

        The source starts after the rows that the history covers.
        """

    def report_differences(self, operator: str, found: Differences) -> None:
        """Report differences between history and the savepoint."""

    def check_sample(self, wanted: ComputedOperator, written: Sequence[KeyGroups], folder: str) -> None:
        """Recompute some keys in plain Python and compare them with the written keys."""


@dataclass(frozen=True)
class ComputedOperator:
    """An operator whose state is computed from history.

    ``watermark``: The watermark in the savepoint, or None if the operator stores no watermark. ``now``: Time of the
    migration in milliseconds since 1970, which decides if values with a state TTL have expired.
    """

    made: OperatorMigration
    header: KeyedHeader
    max_parallelism: int
    watermark: int | None
    now: int


@dataclass
class Differences:
    """Differences between history and the savepoint: counts, and descriptions of the first few.

    Attributes:
        compared: Number of keys and windows that are in both the savepoint and the history.
        unknown: Number of keys and windows that only the savepoint contains.
        added: Number of keys and windows that only history contains.
        other: Number of keys and windows whose values differ.
    """

    compared: int = 0
    unknown: int = 0
    added: int = 0
    other: int = 0
    shown: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.unknown or self.added or self.other)

    def __iadd__(self, more: Differences) -> Differences:
        self.compared += more.compared
        self.unknown += more.unknown
        self.added += more.added
        self.other += more.other
        self.shown = [*self.shown, *more.shown][:_SHOWN]
        return self

    def __str__(self) -> str:
        counted = (
            (self.unknown, "missing in history"),
            (self.added, "missing in the savepoint"),
            (self.other, "with a different value in history"),
        )
        difference = ", ".join(f"{count} {words}" for count, words in counted if count)
        return f"{difference} (of {self.compared + self.unknown}): {'; '.join(self.shown)}"

    def to_error(self, operator: str) -> HistoryDiffers:
        return HistoryDiffers(
            f"{operator}: the history differs from the rows that the job has read. Differing keys or windows: "
            f"{self}. The history must contain exactly the rows before the savepoint's positions, each once. Pass "
            f"the right history, or accept {Accept.HISTORY}"
        )


class EntryJoin:
    """Join of the stored and the computed entries of one operator.

    ``header``: The header of the operator's new files. ``prefix``: Length in bytes of the key group at the start of a
    stored key.
    """

    def __init__(self, made: OperatorMigration, header: KeyedHeader, prefix: int) -> None:
        named = {state.new.name: state for state in made.states}
        states = [named.get(state.name) for state in header.states]
        self._prefix, self._key = prefix, key_fields(made.new)
        self._stored = made.effect is RestoreEffect.REWRITTEN
        self._open_alone = made.stored_windows_are_open
        self._timers = [state.kind is KeyedStateKind.TIMERS for state in header.states]
        self._states = states
        self._sessions = next((i for i, each in enumerate(header.states) if each.name == MERGED_SESSIONS.name), None)
        self._joins = [_join(state) for state in states]
        self.differences = Differences()

    def entries(self, stored: Iterable[Entry], computed: Iterable[Entry]) -> list[Entry]:
        """Return the entries to write for one key group."""
        found: dict[tuple[int, bytes], bytes] = {}
        for (
            state,
            key,
            value,
        ) in computed:  # If several computed slices become one stored slice, each has a part of the value.
            former, of = found.get((state, key)), self._states[state]
            found[state, key] = value if former is None or of is None else value_merger(of.new)(former, value)
        if not self._stored:
            return [
                Entry(state, key, value) for (state, key), value in found.items() if not self._expired(state, value)
            ]
        stored = list(stored)
        return list(self._joined(stored, self._as_stored(stored, found)))

    def _as_stored(
        self, stored: Iterable[Entry], computed: dict[tuple[int, bytes], bytes]
    ) -> dict[tuple[int, bytes], bytes]:
        """Replace windows in keys with those that Flink stored when the first row of a session arrived."""
        first: dict[tuple[bytes, bytes], bytes] = {}
        for state, key, value in stored:
            if state == self._sessions:
                parts = StoredKey.read(key[self._prefix :], timer=False)
                first[parts.row, parts.rest[-_WINDOW:]] = value[-_WINDOW:]

        def renamed(state: int, key: bytes) -> bytes:
            of = self._states[state]
            if of is None or of.new.namespace is not StateNamespace.WINDOW:
                return key
            parts = StoredKey.read(key[self._prefix :], timer=False)
            window = first.get((parts.row, parts.rest[:_WINDOW]), parts.rest[:_WINDOW])
            return key[: self._prefix] + replace(parts, rest=window + parts.rest[_WINDOW:]).to_bytes()

        return {(state, renamed(state, key)): value for (state, key), value in computed.items()} if first else computed

    def _joined(self, stored: Iterable[Entry], computed: dict[tuple[int, bytes], bytes]) -> Iterator[Entry]:
        for entry in stored:
            state, key, value = entry
            other = computed.pop((state, key), None)
            join = self._joins[state]
            if join is None or (other is None and self._is_empty_map(state, value)):
                yield entry
            elif other is None:
                self._differs("unknown", state, key, "is not in history")
                yield entry
            else:
                value, difference = join(value, other)
                self.differences.compared += 1
                if difference:
                    self._differs("other", state, key, difference)
                yield Entry(state, key, value)
        computed = {of: value for of, value in computed.items() if not self._expired(of[0], value)}
        added: set[bytes] = set()
        for (state, key), _ in computed.items():
            of = self._states[state]
            if of is not None and of.old is not None:
                if not self._open_alone:  # If only open windows are joined, this window was emitted earlier.
                    self._differs("added", state, key, "is in history only")
                added.add(key[self._prefix :])
        for (state, key), value in computed.items():
            of = self._states[state]
            # This key or window is not written, so a new field of the same key or window must not be written either.
            if of is not None and of.old is None and not self._has_added_key(state, key, added):
                yield Entry(state, key, value)

    def _is_empty_map(self, state: int, value: bytes) -> bool:
        """True if a value is an empty map, which a Top-N stores for a key without remaining rows."""
        of = self._states[state]
        if of is None or not of.new.value.form.startswith("SortedMap<"):
            return False
        return value[of.new.content_begin :] == write_int(0)

    def _expired(self, state: int, value: bytes) -> bool:
        of = self._states[state]
        return of is not None and of.new.time_to_live and last_written(of.new, value) == EXPIRED

    def _has_added_key(self, state: int, key: bytes, added: Collection[bytes]) -> bool:
        """True if one of the added entries has the same key and window."""
        if not added:
            return False
        parts = StoredKey.read(key[self._prefix :], timer=False)
        of = self._states[state]
        length = of.new.namespace.size if of is not None else 0
        return replace(parts, rest=parts.rest[:length]).to_bytes() in added

    def _differs(self, kind: str, state: int, key: bytes, difference: str) -> None:
        setattr(self.differences, kind, getattr(self.differences, kind) + 1)
        if len(self.differences.shown) < _SHOWN:
            self.differences.shown.append(f"{self._key_text(state, key)} {difference}")

    def _key_text(self, number: int, key: bytes) -> str:
        """Text of a key, and of the window end if there is one."""
        state = self._states[number]
        parts = StoredKey.read(key[self._prefix :], timer=False)
        windowed = state is not None and state.new.namespace is StateNamespace.WINDOW_END
        window = (
            [(f"window or slice that ends at {int.from_bytes(parts.rest[:8], 'big', signed=True)} ms")]
            if windowed
            else []
        )
        return ", ".join([key_words(self._key, parts.row), *window])


def key_words(fields: Sequence[StateField], row: bytes) -> str:
    values = zip(fields, read_row(row, [field_form(each.type) for each in fields]), strict=True)
    return ", ".join(f"{each.words}={field_reader(each.type)(value)!r}" for each, value in values) or "the only key"


def _join(state: StateRewrite | None) -> _Join | None:
    """Return a function that joins a stored and a computed value; None for timers and new states."""
    if state is None or state.old is None:
        return None
    if state.new == MERGED_SESSIONS:
        return lambda stored, computed: (stored, "")
    if state.new.kind is KeyedStateKind.VALUE and state.new.value.form == "row":
        return _RowJoin(state.new, state.fields)
    return partial(_equal, state.new)


def _equal(state: NamedState, stored: bytes, computed: bytes) -> tuple[bytes, str]:
    begin = state.content_begin
    other = f"has a different {', '.join(words(state.row)) or state.name} in history"
    return stored, "" if stored[begin:] == computed[begin:] else other


class _RowJoin:
    """Join of two accumulator rows. Kept fields come from the stored row and are compared."""

    def __init__(self, state: NamedState, places: Sequence[int | None]) -> None:
        self._fields = state.value.fields
        self._forms = [field_form(each.type) for each in self._fields]
        self._stored = [place is not None for place in places]
        # A field of variable length is compared in its stored form.
        self._readers = [
            field_reader(each.type) if kept and form is not FieldForm.VARIABLE else None
            for each, form, kept in zip(self._fields, self._forms, self._stored, strict=True)
        ]
        self._begin = state.content_begin

    def __call__(self, stored: bytes, computed: bytes) -> tuple[bytes, str]:
        """Return the value to write and a description of the differences."""
        begin = self._begin
        one, other = (read_row(value[begin + 4 :], self._forms) for value in (stored, computed))
        difference = [
            self._difference(place, one[place], other[place])
            for place, kept in enumerate(self._stored)
            if kept and one[place] != other[place] and not self._rounded(place, one[place], other[place])
        ]
        row = write_row(
            [left if kept else right for kept, left, right in zip(self._stored, one, other, strict=True)],
            stored[begin + 4],
        )
        return stored[:begin] + len(row).to_bytes(4, "big") + row, ", ".join(difference)

    def _difference(self, place: int, one: Field, other: Field) -> str:
        read = self._readers[place]
        words = self._fields[place].words
        return f"{words} is {read(one)!r}, but {read(other)!r} in history" if read else f"{words} differs in history"

    def _rounded(self, place: int, one: Field, other: Field) -> bool:
        """True if the two values differ only by rounding, as sums added in different orders do."""
        if (read := self._readers[place]) is None:
            return False
        left, right = read(one), read(other)
        return isinstance(left, float) and isinstance(right, float) and math.isclose(left, right, rel_tol=ROUNDING)
