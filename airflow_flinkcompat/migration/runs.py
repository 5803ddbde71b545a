"""Entries of one state in a key group: rewrite, move or sum them in compiled loops."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

from airflow_flinkcompat.exec_graph.layout import FLAG, STAMP, NamedState
from airflow_flinkcompat.migration.fields import NotMigratable
from airflow_flinkcompat.migration.loops import (
    AFTER_MAP_KEY,
    AFTER_ROWS,
    CHANGED,
    FORM,
    NO_TIME,
    NOT_FIRED,
    OTHER_GROUP,
    OTHER_TIME,
    ROW_BECOMES_KEY,
    ROW_STAYS_KEY,
    rewrite_run,
    sum_counts,
    sum_run,
)
from airflow_flinkcompat.migration.moving import NO_SLICES, gather, scatter_run, sort_by_group
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, RowFraming, SavepointUnreadable
from airflow_flinkcompat.savepoint.binary_row import FieldForm, field_form
from airflow_flinkcompat.savepoint.compiled import numbers, readable, writable, zeros
from airflow_flinkcompat.savepoint.row_mapping import RowMapping, row_error, row_mapping
from airflow_flinkcompat.savepoint.runs import RUN_ERRORS, Runs, run_error

_BUFFER = 1 << 20
"""Number of bytes of new entries that a loop writes before it returns them."""


_DAMAGED = {
    AFTER_ROWS: "a value has unexpected bytes after its rows: the savepoint is damaged or its format is unknown",
    AFTER_MAP_KEY: "a map key has unexpected bytes after its row: the savepoint is damaged",
    NO_TIME: "a slice ends at an impossible time: the savepoint is damaged",
}
_REFUSED = {
    OTHER_TIME: "a timer fires at a time other than the end of its window",
    NOT_FIRED: "a window has ended but has not fired yet: take another savepoint",
}


def loop_error(code: int) -> SavepointUnreadable | NotMigratable:
    """The error for the code that a loop returns."""
    if code in _REFUSED:
        return NotMigratable(_REFUSED[code])
    if code in _DAMAGED:
        return SavepointUnreadable(_DAMAGED[code])
    return run_error(code) if code in RUN_ERRORS else row_error(code)


_ANY_ROW = row_mapping([FieldForm.WORD], [0])


@dataclass(frozen=True)
class ValueMapping:
    """Mapping of old values to new values.

    Attributes:
        flag: Number of bytes of a map's NULL flag, which precedes the timestamp.
        stamps: Number of bytes of the last access timestamp in old and in new values.
    """

    flag: int
    stamps: tuple[int, int]
    row: RowMapping
    plan: list[int]

    @property
    def counts(self) -> bool:
        """True if the new state counts equal rows."""
        return bool(self.plan[FORM] in (ROW_BECOMES_KEY, ROW_STAYS_KEY))


def value_mapping(
    state: NamedState, rows: RowMapping | None, old_stamp: bool, new_stamp: bool, now: int = 0, flag: bool = True
) -> ValueMapping:
    """Plan the construction of a state's new values.

    Args:
        state: State that contains the rows. It may be the old or the new state, because both have the same form.
        rows: Mapping of the rows; None if the content is unchanged.
        old_stamp: True if old values begin with a last access timestamp.
        new_stamp: True if new values begin with a last access timestamp.
        now: Last access timestamp, in milliseconds since 1970, of new values whose old values have no timestamp.
        flag: True if the values of a map begin with a NULL flag.
    """
    row = rows or _ANY_ROW
    has_flag = FLAG if flag and state.kind is KeyedStateKind.MAP else 0
    stamps = STAMP * old_stamp, STAMP * new_stamp
    rest = (RowFraming.NONE, 0) if rows is None else (state.framing, state.trailing)
    return ValueMapping(has_flag, stamps, row, numbers([has_flag, *stamps, now, *rest, row.repeats, row.growth]))


def counted_mapping(old: NamedState, rows: RowMapping | None, new_stamp: bool, now: int = 0) -> ValueMapping:
    """Plan the construction of values that count equal rows from the entries of an old state."""
    form = ROW_STAYS_KEY if old.counts_rows else ROW_BECOMES_KEY
    row = rows or row_mapping(forms := [field_form(field.type) for field in old.row], list(range(len(forms))))
    stamps = STAMP * old.time_to_live, STAMP * new_stamp
    return ValueMapping(FLAG, stamps, row, numbers([FLAG, *stamps, now, form, old.trailing, row.repeats, row.growth]))


UNCHANGED = ValueMapping(0, (0, 0), _ANY_ROW, numbers([0, 0, 0, 0, RowFraming.NONE, 0, 1, 0]))
"""Mapping of values to themselves."""


def key_plan(prefixes: tuple[int, int], timers: bool, groups: int, changed: bool) -> list[int]:
    """Plan the reading of stored keys.

    ``prefixes``: Number of bytes of the key group in old and in new keys. ``groups``: Number of the new operator's key
    groups. ``changed``: True if keys are rewritten.
    """
    return numbers([*prefixes, STAMP * timers, groups, changed])


def rewritten(runs: Runs, mapping: ValueMapping) -> Generator[bytes, None, int]:
    """Yield the entries of a state with new values, in blocks. Returns the number of entries."""
    out, count = writable(_BUFFER), 0
    while True:
        runs.at, end, entries, wanted = rewrite_run(
            runs.content, runs.at, out, mapping.plan, mapping.row.plan, mapping.row.constants
        )
        if wanted < 0:
            raise loop_error(wanted)
        count += entries
        if end:
            yield out[:end].tobytes()
        if not wanted:
            return count
        if wanted > len(out):
            out = writable(wanted)


WITHOUT_SLICES = numbers([NO_SLICES])


class Scatter:
    """Buffer of entries that move to the key groups of a different operator.

    It yields blocks in the order of key groups.

    Args:
        prefixes: Number of bytes of the key group in old and in new keys.
        max_parallelism: Number of the new operator's key groups.
        key: Mapping of the keys; None if keys are unchanged.
    """

    def __init__(self, prefixes: tuple[int, int], max_parallelism: int, key: RowMapping | None) -> None:
        self._plans = [key_plan(prefixes, timers, max_parallelism, key is not None) for timers in (False, True)]
        self._key = key or _ANY_ROW
        self._out, self._sorted = writable(_SCATTERED), writable(_SCATTERED)
        self._found, self._ends = zeros(_SCATTERED // 16), zeros(max_parallelism)
        self._end = self._count = 0

    def run(
        self, runs: Runs, timers: bool, state: int, value: ValueMapping | None, slices: list[int] = WITHOUT_SLICES
    ) -> Iterator[tuple[int, bytes]]:
        """Add the entries of an old state for the new state with the index ``state``. Yields full blocks."""
        value, key = value or UNCHANGED, self._key
        while True:
            runs.at, self._end, self._count, wanted = scatter_run(
                runs.content, runs.at, state, self._out, self._end, self._found, self._count,
                self._plans[timers], key.plan, key.constants, key.repeats,
                value.plan, value.row.plan, value.row.constants, slices,
            )  # fmt: skip
            if wanted < 0:
                raise loop_error(wanted)
            if not wanted:
                return
            yield from self.blocks()
            if wanted > len(self._out):
                self._out, self._sorted = writable(wanted), writable(wanted)

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yield the buffered entries of each key group, and empty the buffer."""
        sort_by_group(self._out, self._end, self._found, self._count, self._ends, self._sorted)
        begin = 0
        for group, end in enumerate(self._ends):
            if end > begin:
                yield group, self._sorted[begin:end].tobytes()
            begin = end
        self._end = self._count = 0


_SCATTERED = 8 << 20
"""Maximum number of bytes of scattered entries in memory."""


def gathered_group(content: bytes, counts: list[int]) -> bytes:
    """Build the content of a key group from scattered entries.

    Adds the number of entries of each state to ``counts``.
    """
    found = zeros(len(counts))
    out = writable(len(content) + 2 * len(counts) + 2)
    end = gather(readable(content), out, found)
    for state, count in enumerate(found):
        counts[state] += int(count)
    return out[:end].tobytes()


@dataclass(frozen=True)
class EntrySum:
    """Sum of the hashes of a state's entries, over keys and kept fields of values.

    Attributes:
        kept: Mapping of a value to its kept part.
        whole: Mapping to the whole content of a value after its timestamp; None if the whole content is not compared.
        of_kept: True if ``whole`` maps the kept part instead of the value.
        key: Mapping of the keys to compare; None if keys are compared without a change.
    """

    kept: ValueMapping
    whole: ValueMapping | None
    of_kept: bool
    keys: list[int]
    in_groups: bool
    key: RowMapping | None

    def add(self, runs: Runs, group: int, total: list[int]) -> tuple[int, int]:
        """Add the entries of a state in a key group to a sum.

        Returns:
            Number of entries, or of the rows that they count, and a status: 0, or :data:`CHANGED` or
            :data:`OTHER_GROUP` if an entry does not match.
        """
        whole, key, scratch, count = self.whole or UNCHANGED, self.key or _ANY_ROW, writable(_BUFFER), 0
        add = sum_counts if self.kept.counts else sum_run
        while True:
            runs.at, entries, wanted = add(
                runs.content, runs.at, group, total, scratch, self.keys, self.in_groups,
                key.plan, key.constants, key.repeats,
                self.kept.plan, self.kept.row.plan, self.kept.row.constants,
                whole.plan, whole.row.plan, whole.row.constants, self.of_kept,
            )  # fmt: skip
            count += entries
            if wanted in (0, CHANGED, OTHER_GROUP):
                return count, wanted
            if wanted < 0:
                raise loop_error(wanted)
            scratch = writable(wanted)
