"""Join of state computed from history with stored state: add new state, compare the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from airflow_flinkcompat.exec_graph.layout import NamedState, StateField, StateNamespace
from airflow_flinkcompat.exec_graph.migration import Accept, OperatorMigration
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.exec_graph.nodes.aggregate import MERGED_SESSIONS
from airflow_flinkcompat.exec_graph.rewriting import StateRewrite, words
from airflow_flinkcompat.migration.entries import StoredKey, key_fields, scattered_entries
from airflow_flinkcompat.migration.fields import NotMigratable, real_size
from airflow_flinkcompat.migration.joining import (
    ADDED,
    COMPARED,
    COUNTS,
    IGNORED,
    KEPT,
    KINDS,
    NEW,
    ROUNDING,
    ROWS,
    UNKNOWN,
    join,
    rename_windows,
    take_computed,
)
from airflow_flinkcompat.migration.runs import loop_error
from airflow_flinkcompat.migration.uniting import COMPUTED, ENTRY, FIRST, SECOND, count_entries, link_equal
from airflow_flinkcompat.migration.workers import Scattered
from airflow_flinkcompat.savepoint.binary import KeyedStateKind
from airflow_flinkcompat.savepoint.binary_row import FieldForm, field_form, field_reader, null_bytes, read_row
from airflow_flinkcompat.savepoint.compiled import copy, numbers, readable, writable, zeros
from airflow_flinkcompat.savepoint.keyed_state import KeyedHeader
from airflow_flinkcompat.savepoint.metadata import KeyGroups, OperatorState
from airflow_flinkcompat.savepoint.row_mapping import BY_WORD, ROOM

_SHOWN = 5
"""Maximum number of differing keys in a message."""
R = TypeVar("R")


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
        self._states = [named.get(state.name) for state in header.states]
        self._prefix, self._key = prefix, key_fields(made.new)
        self._stored = made.effect is RestoreEffect.REWRITTEN
        self._open_alone = made.stored_windows_are_open
        names = [each.name for each in header.states]
        self._sessions = names.index(MERGED_SESSIONS.name) if MERGED_SESSIONS.name in names else None
        self._windows = numbers(of is not None and of.new.namespace is StateNamespace.WINDOW for of in self._states)
        heads, plans = list[int](), list[int]()
        for of in self._states:
            heads.append(len(self._states) + len(plans))
            plans += _join_plan(of)
        self._plans = numbers([*heads, *plans])
        self.differences = Differences()

    def __call__(self, content: bytes) -> bytes:
        """Return the scattered entries to write for one key group."""
        source = writable(len(content))
        copy(readable(content), 0, len(content), source, 0)
        count = count_entries(source)
        entries, size = zeros(ENTRY * count), 1 << (2 * count).bit_length()
        link_equal(source, entries, zeros(size), 0)
        if self._sessions is not None:
            rename_windows(source, entries, zeros(size), self._windows, self._sessions, self._prefix)
        link_equal(source, entries, zeros(size), COMPUTED)
        out = writable(2 * len(content))
        if not self._stored:
            return out[: take_computed(source, entries, out, self._plans)].tobytes()
        counts, shown = zeros(COUNTS), zeros(1 + KINDS * _SHOWN)
        end = join(source, entries, zeros(size), out, self._plans, self._prefix, counts, shown)
        if end < 0:
            raise loop_error(end)
        self._count(source, counts, shown)
        return out[:end].tobytes()

    def _count(self, source: memoryview, counts: Sequence[int], shown: Sequence[int]) -> None:
        """Add the differences of one key group."""
        compared, unknown, added, other = map(int, counts)
        # If only open windows are joined, windows that only history contains were emitted earlier.
        added = 0 if self._open_alone else added
        found = [tuple(map(int, shown[1 + KINDS * place :][:KINDS])) for place in range(int(shown[0]))]
        words = [self._words(source, *each) for each in found if each[0] != ADDED or added]
        self.differences += Differences(compared, unknown, added, other, words)

    def _words(self, source: memoryview, kind: int, at: int, computed: int) -> str:
        """Text of a difference between two entries."""
        (state, key, value), (_, _, other) = (next(scattered_entries(source[begin:])) for begin in (at, computed))
        of = self._states[state & ~COMPUTED]
        assert of is not None
        if kind == UNKNOWN:
            difference = "is not in history"
        elif kind == ADDED:
            difference = "is in history only"
        else:
            difference = _difference(of, value, other)
        return f"{self._key_text(of.new, key)} {difference}"

    def _key_text(self, state: NamedState, key: bytes) -> str:
        """Text of a key, and of the window end if there is one."""
        parts = StoredKey.read(key[self._prefix :], timer=False)
        windowed = state.namespace is StateNamespace.WINDOW_END
        window = (
            [(f"window or slice that ends at {int.from_bytes(parts.rest[:8], 'big', signed=True)} ms")]
            if windowed
            else []
        )
        return ", ".join([key_words(self._key, parts.row), *window])


def _join_plan(state: StateRewrite | None) -> list[int]:
    """Plan the join of a state's stored and computed values."""
    if state is None:
        return [IGNORED, 0, 0, 0, 0]
    new = state.new
    rows = new.kind is KeyedStateKind.VALUE and new.value.form == "row"
    kind = NEW if state.old is None else KEPT if new == MERGED_SESSIONS else ROWS if rows else COMPARED
    empty_map = new.value.form.startswith("SortedMap<")
    head = [kind, new.content_begin, new.time_to_live, new.namespace.size, empty_map]
    if kind != ROWS:
        return head
    fields = new.value.fields
    words = null_bytes(len(fields))
    steps = [
        number
        for each, place in zip(fields, state.fields, strict=True)
        for number in (
            ROOM.get(field_form(each.type), BY_WORD),
            SECOND if place is None else FIRST,
            real_size(each.type),
        )
    ]
    return [*head, len(fields), words, words + 8 * len(fields), *steps]


def _difference(state: StateRewrite, stored: bytes, computed: bytes) -> str:
    """Text of the difference between two values."""
    new = state.new
    if not (new.kind is KeyedStateKind.VALUE and new.value.form == "row"):
        return f"has a different {', '.join(words(new.row)) or new.name} in history"
    fields, begin = new.value.fields, new.content_begin + 4
    rows = (read_row(value[begin:], [field_form(each.type) for each in fields]) for value in (stored, computed))
    found = []
    for each, place, one, other in zip(fields, state.fields, *rows, strict=True):
        if place is None or one == other:
            continue
        # A field of variable length is compared in its stored form.
        if field_form(each.type) is FieldForm.VARIABLE:
            found.append(f"{each.words} differs in history")
            continue
        left, right = map(field_reader(each.type), (one, other))
        if not (isinstance(left, float) and isinstance(right, float) and math.isclose(left, right, rel_tol=ROUNDING)):
            found.append(f"{each.words} is {left!r}, but {right!r} in history")
    return ", ".join(found)


def key_words(fields: Sequence[StateField], row: bytes) -> str:
    values = zip(fields, read_row(row, [field_form(each.type) for each in fields]), strict=True)
    return ", ".join(f"{each.words}={field_reader(each.type)(value)!r}" for each, value in values) or "the only key"
