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
from airflow_flinkcompat.migration.entries import StoredKey
from airflow_flinkcompat.migration.fields import NotMigratable
from airflow_flinkcompat.migration.moving import OF_SLICES, OF_TIMERS, OTHER_TIMERS
from airflow_flinkcompat.migration.runs import WITHOUT_SLICES
from airflow_flinkcompat.migration.workers import Workers
from airflow_flinkcompat.plan.nodes import WindowKind
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, write_long
from airflow_flinkcompat.savepoint.compiled import numbers
from airflow_flinkcompat.savepoint.keyed_state import (
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
_SIGN = 1 << 63
_NEVER = -(1 << 62)
"""A watermark earlier than every window, with which compiled loops can compute."""
EVER = 1 << 50
"""A watermark later than every row whose microseconds fit into a BIGINT."""


@dataclass(frozen=True)
class StoredSlices:
    """Assignment of one operator's stored slices to its new windows."""

    windows: SlicedWindow
    watermark: int

    def plan(self, kind: int, timers: int) -> list[int]:
        """Plan the assignment for a kind of entries. ``timers``: number of the new state with the timers."""
        windows, watermark = self.windows, max(self.watermark, _NEVER)
        lengths = windows.size, windows.step, windows.offset
        return numbers([kind, windows.kind is WindowKind.CUMULATE, *lengths, watermark, timers])


def slice_plans(slices: StoredSlices | None, old: Sequence[KeyedState], new: Sequence[str]) -> list[list[int]]:
    """Plan the assignment of each old state's entries to new windows. ``new``: names of the new states."""
    if slices is None:
        return [WITHOUT_SLICES for _ in old]
    timers = new.index(TIMERS)
    return [
        slices.plan(
            OF_SLICES if each.kind is not KeyedStateKind.TIMERS else OF_TIMERS if each.name == TIMERS else OTHER_TIMERS,
            timers,
        )
        for each in old
    ]


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


def timer_moment(fires: int) -> bytes:
    """Stored form of a timer's firing time. The bytes sort in the order of time."""
    return (fires + _SIGN).to_bytes(_LONG, "big")


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
