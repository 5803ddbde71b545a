"""State for changed windows or fewer subtasks: merge slices and timers, join operator lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import StateLayout
from airflow_flinkcompat.exec_graph.migration import OperatorMigration
from airflow_flinkcompat.exec_graph.model import StateSpec
from airflow_flinkcompat.exec_graph.nodes.over import OVER_LAST_SENT, OVER_ROWS
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.migration.entries import GroupChange, StoredKey
from airflow_flinkcompat.migration.fields import NotMigratable
from airflow_flinkcompat.migration.workers import Workers
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, write_long
from airflow_flinkcompat.savepoint.keyed_state import (
    Entry,
    KeyedHeader,
    KeyedState,
    group_parts,
    open_keyed,
    prefix_length,
    read_entries,
)
from airflow_flinkcompat.savepoint.metadata import KeyGroups, ListState, OperatorLists, OperatorState
from airflow_flinkcompat.savepoint.store import BROADCAST, elements, header_of, read_handle, stored_lists, with_elements

TIMERS = "_timer_state/event_window-timers"
USER_TIMERS = "_timer_state/event_user-timers"
_WATERMARK = "watermark"
OVER = ExecKind.OVER_AGGREGATE
_LONG = 8
_END = 8
"""Number of bytes of a slice or window end, which precedes a map's key."""
_SIGN = 1 << 63
EVER = 1 << 50
"""A watermark later than every row whose microseconds fit into a BIGINT."""


@dataclass(frozen=True)
class StoredSlices:
    """Assignment of one operator's stored slices to its new windows."""

    windows: SlicedWindow
    watermark: int

    def moved(self, parts: StoredKey, state: KeyedState) -> StoredKey | None:
        """Convert a key of the old windows to the new windows; None if the slice is in no open window."""
        if state.kind is not KeyedStateKind.TIMERS:
            found = self.slice_of(parts)
            return found and found[0]
        end = _end(parts)
        if state.name != TIMERS or parts.moment != timer_moment(end - 1):
            raise NotMigratable("a timer fires at a time other than the end of its window")
        if end - 1 <= self.watermark:
            raise NotMigratable("a window has ended but has not fired yet: take another savepoint")
        return window_timer(parts, self.windows.next_end(end))

    def slice_of(self, parts: StoredKey) -> tuple[StoredKey, StoredKey] | None:
        place = self.windows.place(_end(parts), self.watermark)
        if place is None:
            return None
        end, fires = place
        return replace(parts, rest=write_long(end) + parts.rest[_END:]), window_timer(parts, fires)

    def merge_entries(self, unite: GroupChange | None, header: KeyedHeader, prefix: int) -> GroupChange:
        """Return a function that merges a key group's entries and adds the timers that the slices need."""
        number = next(place for place, state in enumerate(header.states) if state.name == TIMERS)

        def change(entries: list[Entry]) -> list[Entry]:
            kept = [entry for entry in entries if entry.state != number]
            in_slices = ((key[:prefix], self.slice_of(StoredKey.read(key[prefix:], timer=False))) for _, key, _ in kept)
            needed = {group + found[1].to_bytes() for group, found in in_slices if found is not None}
            if not needed <= {entry.key for entry in entries if entry.state == number}:
                raise NotMigratable("a slice belongs to no window that will still fire: take another savepoint")
            return [*(unite(kept) if unite is not None else kept), *(Entry(number, key, b"") for key in sorted(needed))]

        return change


def slices(made: OperatorMigration, old: OperatorState, path: str) -> StoredSlices | None:
    """Return the assignment of an operator's slices to its new windows; None if windows are unchanged."""
    if made.windows is None:
        return None
    watermark = sole_watermark(old, path)
    if watermark is None:
        raise NotMigratable("the windows of the operator have changed, but its subtasks store no watermarks")
    return StoredSlices(made.windows, watermark)


def sole_watermark(operator: OperatorState, path: str) -> int | None:
    """Common watermark of a windowed operator's subtasks; None if they store no watermark."""
    found = set(watermarks(operator, path))
    if len(found) > 1:
        raise NotMigratable(
            f"the subtasks of {operator.name or operator.id} have different watermarks: take another savepoint"
        )
    return found.pop() if found else None


def watermarks(operator: OperatorState, path: str) -> Iterator[int]:
    """Watermarks of the subtasks of a windowed operator."""
    for each in operator.lists:
        if all(state.name != _WATERMARK for state in each.lists):
            continue
        for state, held in elements(each, read_handle(each.handle, path)):
            if state.name == _WATERMARK:
                yield from (int.from_bytes(element, "big", signed=True) for element in held)


def reached(spec: StateSpec | None, operator: OperatorState, path: str, workers: Workers) -> int | None:
    """Watermark up to which an operator has emitted rows; None if its state shows no watermark."""
    if spec is None or not timers_show_pending(spec):
        return sole_watermark(operator, path)
    keyed = [each.keyed for each in operator.subtasks or () if each.keyed is not None]
    looked_at = partial(_first_timer_and_last_sent, path, prefix_length(operator.max_parallelism))
    found = workers.each(looked_at, group_parts(keyed, workers.parts))
    first = min((timer for timer, _ in found), default=EVER)
    if first <= max((sent for _, sent in found), default=-EVER):
        raise NotMigratable(
            f"a late row is buffered in {operator.name or operator.id}, so its timers do not show which rows were "
            "emitted: take another savepoint"
        )
    return EVER if first == EVER else first - 1


def timers_show_pending(spec: StateSpec) -> bool:
    """True if timers mark the rows that an operator has not emitted, as in an event-time OVER."""
    kept = spec.layout.states if isinstance(spec.layout, StateLayout) else ()
    return spec.name == OVER and any(state.name == OVER_ROWS for state in kept)


def _first_timer_and_last_sent(path: str, prefix: int, part: tuple[KeyGroups, range]) -> tuple[int, int]:
    """First timer and last emitted time of an event-time OVER, in milliseconds; infinite if there is none."""
    keyed, groups = part
    timer, sent = EVER, -EVER
    with open_keyed(keyed, path) as file:
        names = [state.name for state in file.header.states]
        for _, group in file.groups(groups):
            for state, key, value in read_entries(group):
                if names[state] == USER_TIMERS:
                    moment = StoredKey.read(key[prefix:], timer=True).moment
                    timer = min(timer, int.from_bytes(moment, "big") - _SIGN)
                elif names[state] == OVER_LAST_SENT:
                    sent = max(sent, int.from_bytes(value[-_LONG:], "big", signed=True))
    return timer, sent


def least_begin(operator: OperatorState, path: str) -> int | None:
    """Start of the first stored window. All windows that end at or before this start were emitted."""
    least: int | None = None
    for subtask in operator.subtasks or ():
        if subtask.keyed is None:
            continue
        with open_keyed(subtask.keyed, path) as file:
            windows = [number for number, state in enumerate(file.header.states) if state.name == "window-aggs"]
            prefix = prefix_length(operator.max_parallelism)
            for _, group in file.groups(range(operator.max_parallelism)):
                for state, key, _ in read_entries(group):
                    if state in windows:
                        rest = StoredKey.read(key[prefix:], timer=False).rest
                        begin = int.from_bytes(rest[:8], "big", signed=True)
                        least = begin if least is None else min(least, begin)
    return least


def with_watermark(operator: OperatorState, path: str, watermark: int) -> OperatorState:
    """Replace the watermark of an operator, if it stores a watermark."""
    subtasks = tuple(
        replace(
            each,
            managed=each.managed
            and with_elements(
                each.managed, read_handle(each.managed.handle, path), _WATERMARK, (write_long(watermark),)
            ),
        )
        for each in operator.subtasks or ()
    )
    return replace(operator, subtasks=subtasks)


def _end(parts: StoredKey) -> int:
    """End of a slice, or of the window of a timer."""
    return int.from_bytes(parts.rest[:_END], "big", signed=True)


def window_timer(parts: StoredKey, end: int) -> StoredKey:
    return StoredKey(timer_moment(end - 1), parts.row, write_long(end))


def timer_moment(fires: int) -> bytes:
    """Stored form of a timer's firing time. The bytes sort in the order of time."""
    return (fires + _SIGN).to_bytes(_END, "big")


def merge_operator_state(stored: Sequence[tuple[OperatorLists, bytes]]) -> tuple[OperatorLists, bytes]:
    """Merge the operator lists of several subtasks for a single subtask."""
    header = header_of(*stored[0])
    lists, held = dict[str, ListState](), dict[str, list[bytes]]()
    for each, own in stored:
        if header_of(each, own) != header:
            raise NotMigratable(
                "the subtasks store their lists in different formats, which cannot be merged into fewer subtasks"
            )
        for state, found in elements(each, own):
            former = held.setdefault(state.name, [])
            if lists.setdefault(state.name, state).mode != BROADCAST or not former:
                former += found
    return stored_lists(header, ((lists[name], found) for name, found in held.items()))
