"""Numbers of stored states: entries, bytes, keys, windows, last accesses. Each file is read once."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from airflow_flinkcompat.savepoint.batches import NO_ROW_KEY, EntryForm, EntryPart, entry_error
from airflow_flinkcompat.savepoint.column_loops import NOT_ROWS
from airflow_flinkcompat.savepoint.compiled import (
    add_hash,
    compiled,
    equal,
    hash_sum,
    numbers,
    uint32,
    zeros,
)
from airflow_flinkcompat.savepoint.keyed_state import open_keyed
from airflow_flinkcompat.savepoint.metadata import OperatorState
from airflow_flinkcompat.savepoint.runs import Runs, end_of_entry, value_is_null
from airflow_flinkcompat.state.columns import window_columns
from airflow_flinkcompat.state.tables import OpenSavepoint, StateTable, require_order

_LARGEST = (1 << 63) - 1
_FIRST, _LAST, _OLDEST, _NEWEST = range(4)


@dataclass(frozen=True)
class StateSummary:
    """The numbers of one named state, or of one timer service.

    Attributes:
        operator_id: Id under which Flink stores the operator.
        state: Name of the state.
        table: Name of its table; "" if the operator has no tables.
        entries: Number of stored entries. A whole list is one entry.
        bytes: Number of bytes of all entries, before compression.
        keys: Number of different keys; None if keys are not rows.
        windows: The first start, or the first end if no start is stored, and the last end, in milliseconds since 1970.
        accesses: The first and the last time of a last access, in milliseconds since 1970; None without a state TTL.
    """

    operator_id: str
    state: str
    table: str
    entries: int
    bytes: int
    keys: int | None
    windows: tuple[int, int] | None
    accesses: tuple[int, int] | None

    def to_dict(self) -> dict[str, Any]:
        """Convert the numbers to JSON values.

        Returns:
            The numbers, with times as text in UTC.
        """
        first_window, last_window = map(_text, self.windows or (None, None))
        first_access, last_access = map(_text, self.accesses or (None, None))
        return {
            "entries": self.entries,
            "bytes": self.bytes,
            "keys": self.keys,
            "first_window": first_window,
            "last_window": last_window,
            "first_access": first_access,
            "last_access": last_access,
        }


def _text(millis: int | None) -> str | None:
    """A moment as text; numpy also formats moments that Python's datetime cannot represent."""
    if millis is None:
        return None
    return str(np.datetime64(millis, "ms")).replace("T", " ").removesuffix(".000")


def summarize(savepoint: OpenSavepoint, operators: Container[str] | None = None) -> tuple[StateSummary, ...]:
    """Read the numbers of all keyed states.

    Args:
        savepoint: The savepoint.
        operators: Ids of the operators to read; None for all operators.

    Returns:
        One summary for each state, in the order of the operators in the savepoint.

    Raises:
        SavepointUnreadable: The savepoint is out of reach or damaged; the message names the file.
    """
    found: list[StateSummary] = []
    for operator in savepoint.operators:
        if operators is None or operator.id in operators:
            tables = [table for table in savepoint.tables if table.operator_id == operator.id]
            found += _of_operator(operator, {table.form.number: table for table in tables}, savepoint.path)
    return tuple(found)


def _of_operator(operator: OperatorState, tables: dict[int, StateTable], path: str) -> Iterator[StateSummary]:
    totals: list[RunningNumbers] = []
    names: tuple[str, ...] = ()
    for subtask in operator.subtasks or ():
        if subtask.keyed is None:
            continue
        with open_keyed(subtask.keyed, path) as file:
            if not totals:
                names = tuple(state.name for state in file.header.states)
                totals = [
                    RunningNumbers(tables[number].form if number in tables else None) for number in range(len(names))
                ]
            require_order(file, names)
            for number, group in file.groups():
                with file.naming(number):
                    _add_group(Runs(group, len(totals)), totals)
    for number, total in enumerate(totals):
        table = tables.get(number)
        yield StateSummary(
            operator.id,
            names[number] if table is None else table.state,
            "" if table is None else table.name,
            total.entries,
            total.bytes,
            total.keys if table is not None else None,
            total.span(_FIRST, _LAST),
            total.span(_OLDEST, _NEWEST),
        )


def _add_group(runs: Runs, totals: list[RunningNumbers]) -> None:
    for state in runs:
        begin, entries = runs.skip()
        totals[state].add(runs, begin, entries)


class RunningNumbers:
    """Running numbers of one state."""

    def __init__(self, form: EntryForm | None) -> None:
        self.entries = self.bytes = self.keys = 0
        self._spans = numbers([_LARGEST, -_LARGEST, _LARGEST, -_LARGEST])
        self._plan = numbers(_plan(form)) if form is not None else None

    def add(self, runs: Runs, begin: int, entries: int) -> None:
        """Add the entries of a run, which ends at ``runs.at``."""
        self.entries += entries
        self.bytes += runs.at - begin
        if self._plan is None:
            return
        hashes = zeros(entries)
        count = _scan(runs.content, begin, runs.at, self._plan, self._spans, hashes, hash_sum())
        if count < 0:
            raise entry_error(count)
        # A key group contains all entries of a key, but in Flink's heap backend they need not be adjacent.
        self.keys += len(np.unique(np.asarray(hashes, np.uint64)[:count]))

    def span(self, first: int, last: int) -> tuple[int, int] | None:
        """The least and the greatest of two moments; None if no entry has them."""
        least, most = int(self._spans[first]), int(self._spans[last])
        return None if least > most else (least, most)


def _plan(form: EntryForm) -> list[int]:
    """Bytes before the key, offsets of the window after the key, offset of the last access; -1: none."""
    windows = [
        8 * each.place if each.part is EntryPart.NAMESPACE else form.namespace + each.place
        for each in window_columns(form)
    ]
    first, last = (windows[0], windows[-1]) if windows else (-1, -1)
    return [form.prefix + 8 * form.timers, first, last, form.flag if form.stamp else -1]


@compiled
def _scan(
    source: memoryview, at: int, end: int, plan: list[int], spans: list[int], hashes: list[int], total: list[int]
) -> int:
    """Widen the spans by the entries of a run; hash each key that follows a different key.

    Returns the number of hashes, or an error code.
    """
    prefix, first, last, stamp = plan[0], plan[1], plan[2], plan[3]
    count, key, size = 0, 0, -1
    while at < end:
        end_of_key, after = end_of_entry(source, at)
        place = at + 4 + prefix + 4
        if place > end_of_key:
            return NO_ROW_KEY
        row_size = uint32(source, place - 4)
        if place + row_size + last + 8 * (last >= 0) > end_of_key:
            return NO_ROW_KEY
        if row_size != size or not equal(source, key, key + size, source, place):
            total[0], total[1] = 0, 0
            add_hash(source, place, place + row_size, total, 1)
            hashes[count] = total[0]
            count += 1
        key, size = place, row_size
        if first >= 0:
            spans[_FIRST] = min(spans[_FIRST], _signed(source, place + row_size + first))
            spans[_LAST] = max(spans[_LAST], _signed(source, place + row_size + last))
        if stamp >= 0 and not value_is_null(source, end_of_key + 4, after, stamp):
            value = end_of_key + 4 + stamp
            if value + 8 > after:
                return NOT_ROWS
            spans[_OLDEST] = min(spans[_OLDEST], _signed(source, value))
            spans[_NEWEST] = max(spans[_NEWEST], _signed(source, value))
        at = after
    return count


@compiled
def _signed(source: memoryview, at: int) -> int:
    """A big-endian number of eight bytes, signed."""
    high = uint32(source, at)
    if high >= 1 << 31:
        high -= 1 << 32
    return high << 32 | uint32(source, at + 4)
