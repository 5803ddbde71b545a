"""State for changed windows or fewer subtasks: slices and timers merged, operator lists joined."""

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
from airflow_flinkcompat.migration.entries import GroupChange, StoredKey, prefix_length
from airflow_flinkcompat.migration.fields import NotMigratable
from airflow_flinkcompat.migration.workers import Workers, read_parts
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, write_long
from airflow_flinkcompat.savepoint.keyed_state import Entry, KeyedHeader, KeyedState, open_keyed, read_entries
from airflow_flinkcompat.savepoint.metadata import KeyGroups, ListState, OperatorLists, OperatorState
from airflow_flinkcompat.savepoint.store import BROADCAST, elements, header_of, read_handle, stored_lists, with_elements

TIMERS = "_timer_state/event_window-timers"
USER_TIMERS = "_timer_state/event_user-timers"
_WATERMARK = "watermark"
OVER = ExecKind.OVER_AGGREGATE
_LONG = 8
_END = 8
"""Length of the end of a slice or window, before a map's key."""
_SIGN = 1 << 63
EVER = 1 << 50
"""A watermark after all rows whose microseconds fit into a BIGINT."""


@dataclass(frozen=True)
class StoredSlices:
    """Slices of an operator's entries under its present windows."""

    windows: SlicedWindow
    watermark: int

    def moved(self, parts: StoredKey, state: KeyedState) -> StoredKey | None:
        """A key under the present windows."""
        if state.kind is not KeyedStateKind.TIMERS:
            found = self.slice_of(parts)
            return found and found[0]
        end = _end(parts)
        if state.name != TIMERS or parts.moment != timer_moment(end - 1):
            raise NotMigratable("a timer fires at a time that is not the end of its window")
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
        """Function that merges the entries of one key group, with the timers that its slices need."""
        number = next(place for place, state in enumerate(header.states) if state.name == TIMERS)

        def change(entries: list[Entry]) -> list[Entry]:
            kept = [entry for entry in entries if entry.state != number]
            in_slices = ((key[:prefix], self.slice_of(StoredKey.read(key[prefix:], timer=False))) for _, key, _ in kept)
            needed = {group + found[1].to_bytes() for group, found in in_slices if found is not None}
            if not needed <= {entry.key for entry in entries if entry.state == number}:
                raise NotMigratable("a slice belongs to no window that will fire")
            return [*(unite(kept) if unite is not None else kept), *(Entry(number, key, b"") for key in sorted(needed))]

        return change


def slices(made: OperatorMigration, old: OperatorState, path: str) -> StoredSlices | None:
    """Slices of an operator's entries under its present windows."""
    if made.windows is None:
        return None
    watermark = sole_watermark(old, path)
    if watermark is None:
        raise NotMigratable("its windows have changed, but its subtasks store no watermarks")
    return StoredSlices(made.windows, watermark)


def sole_watermark(operator: OperatorState, path: str) -> int | None:
    """Watermark of all subtasks of a windowed operator; None if it stores none."""
    found = set(watermarks(operator, path))
    if len(found) > 1:
        raise NotMigratable(f"the subtasks of {operator.name or operator.id} have different watermarks")
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
    """Watermark of an operator, from its state in a savepoint; None if it stores none."""
    if spec is None or not timers_show_pending(spec):
        return sole_watermark(operator, path)
    keyed = [each.keyed for each in operator.subtasks or () if each.keyed is not None]
    looked_at = partial(_first_timer_and_last_sent, path, prefix_length(operator.max_parallelism))
    found = workers.each(looked_at, read_parts(keyed, workers))
    first = min((timer for timer, _ in found), default=EVER)
    if first <= max((sent for _, sent in found), default=-EVER):
        raise NotMigratable(
            f"a late row waits in {operator.name or operator.id}, so that its timers do not show which rows "
            "were emitted: take another savepoint"
        )
    return EVER if first == EVER else first - 1


def timers_show_pending(spec: StateSpec) -> bool:
    """True if an operator's timers show its rows not yet emitted, as those of an event-time OVER do."""
    kept = spec.layout.states if isinstance(spec.layout, StateLayout) else ()
    return spec.name == OVER and any(state.name == OVER_ROWS for state in kept)


def _first_timer_and_last_sent(path: str, prefix: int, part: tuple[KeyGroups, range]) -> tuple[int, int]:
    """First timer and last emitted time of an event-time OVER, in milliseconds; infinite if none."""
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
    """Start of an operator's first stored window; all windows that end by then were emitted."""
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
    """An operator with this watermark, if it stores one."""
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
    """End of a slice, or of a timer's window."""
    return int.from_bytes(parts.rest[:_END], "big", signed=True)


def window_timer(parts: StoredKey, end: int) -> StoredKey:
    return StoredKey(timer_moment(end - 1), parts.row, write_long(end))


def timer_moment(fires: int) -> bytes:
    """Stored form of the time at which a timer fires; its bytes sort by time."""
    return (fires + _SIGN).to_bytes(_END, "big")


def merge_operator_state(stored: Sequence[tuple[OperatorLists, bytes]]) -> tuple[OperatorLists, bytes]:
    """The lists of several subtasks as those of one."""
    header = header_of(*stored[0])
    lists, held = dict[str, ListState](), dict[str, list[bytes]]()
    for each, own in stored:
        if header_of(each, own) != header:
            raise NotMigratable(
                "its subtasks store their lists in different formats, which cannot be merged into fewer subtasks"
            )
        for state, found in elements(each, own):
            former = held.setdefault(state.name, [])
            if lists.setdefault(state.name, state).mode != BROADCAST or not former:
                former += found
    return stored_lists(header, ((lists[name], found) for name, found in held.items()))
