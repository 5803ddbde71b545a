"""Encoder of computed rows as keyed state entries, with Flink's bytes, key groups and timers."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, cast

from airflow_flinkcompat.compat.hand_over import time_zone
from airflow_flinkcompat.exec_graph.layout import Begins, NamedState, StateField, StateNamespace, Stored
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.history.state_rows import Moment
from airflow_flinkcompat.migration import NotMigratable
from airflow_flinkcompat.migration.computed import COMPUTED_BIT, EXPIRED
from airflow_flinkcompat.migration.entries import StoredKey, StoredRow, write_rows
from airflow_flinkcompat.migration.fields import begin
from airflow_flinkcompat.migration.rewriting import pack_entry
from airflow_flinkcompat.migration.slices import TIMERS, USER_TIMERS, timer_moment
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, SavepointUnreadable, write_int, write_long
from airflow_flinkcompat.savepoint.binary_row import (
    EMPTY_VIEW,
    Field,
    PlainValue,
    field_writer,
    value_writer,
    write_row,
)
from airflow_flinkcompat.savepoint.keyed_state import Entry, KeyedHeader, key_group, prefix_length

_EPOCH = datetime(1970, 1, 1)
_MILLISECOND = timedelta(milliseconds=1)
_HOUR = 3_600_000
_FAR, _NEAR = 2090, 2037
"""A year that only recurring clock rules cover, and a year that Java's tables cover too."""


@dataclass(frozen=True)
class LocalClock:
    """Clock that determines window boundaries in a time zone; ``UTC`` for times without a zone."""

    zone: str = "UTC"

    def fires(self, end: int) -> int:
        """Time at which the timer of a window fires."""
        return self._moment(end - 1)

    def reached(self, watermark: int) -> int:
        """Local time that a watermark has reached. Windows whose last millisecond is not later have fired."""
        if self.zone == "UTC" or abs(watermark) > _FURTHEST:
            return watermark
        before, after = (self._offset(watermark + days * 24 * _HOUR) for days in (-2, 2))
        if before != after and not (self._by_season and abs(before - after) == _HOUR and before % _HOUR == 0):
            raise NotMigratable(f"clock changes of {self.zone} near {watermark} ms were not measured")
        if self._offset(watermark - _HOUR) > self._offset(watermark + _HOUR):
            raise NotMigratable(
                f"the clocks of {self.zone} repeat an hour near this savepoint, and Flink's output then depends "
                "on checkpoint times: take another savepoint later"
            )
        return watermark + self._offset(watermark)

    @cached_property
    def _by_season(self) -> bool:
        """True if the zone has seasonal clock changes in all future years.

        Seasonal changes affect how Flink sets timers.
        """
        near, far = (len({_offset(self.zone, datetime(year, month, 1, tzinfo=UTC)) for month in range(1, 13)}) > 1
                     for year in (_NEAR, _FAR))  # fmt: skip
        if near is not far:
            raise NotMigratable(f"Java and Python may disagree on seasonal clock changes of {self.zone}")
        return near

    def is_punctual(self, step: int) -> bool:
        """True if an aggregation fires every window as soon as the window ends."""
        if self.zone == "UTC" or self._by_season:
            return True
        months = (datetime(year, month, 1, tzinfo=UTC) for year in range(1970, _FAR) for month in range(1, 13))
        return all(_offset(self.zone, each) % step == 0 for each in months)

    def _offset(self, moment: int) -> int:
        return _offset(self.zone, (_EPOCH + moment * _MILLISECOND).replace(tzinfo=UTC))

    def _plain(self, local: int) -> int:
        """UTC time at which the clock first shows a local time; a skipped time uses the previous offset."""
        shown = (_EPOCH + local * _MILLISECOND).replace(tzinfo=time_zone(self.zone))
        return local - _millis(shown)

    def _moment(self, local: int) -> int:
        if self.zone == "UTC":
            return local
        first = self._plain(local)
        if self._by_season:
            hour_later = self._plain(local + _HOUR)
            if hour_later == first:
                return first - first % _HOUR
            if hour_later - first > _HOUR:
                return first + _HOUR
        return first


_FURTHEST = 200_000_000_000_000
"""Largest watermark, in milliseconds from 1970, of a job whose input has begun and has not ended."""


def _offset(zone: str, moment: datetime) -> int:
    return _millis(moment.astimezone(time_zone(zone)))


def _millis(time: datetime) -> int:
    offset = time.utcoffset()
    assert offset is not None
    return offset // _MILLISECOND


_VOID = b"\0"
"""Namespace of a state without windows."""
_THERE = b"\0"
"""Flag before a map value that is not NULL."""
Columns = Sequence[Any]
Content = Callable[[Columns], bytes]
_EXTREME = re.compile(r"[\w.$]+WithRetractAccumulator<`(?:min|max)` (?P<value>.+?), `mapSize` BIGINT, `map` .+>")
"""Type of a retractable MIN or MAX: the value, the number of all values, and a separate map."""
_NO_CONTENT: Content = lambda columns: b""  # noqa: E731


@dataclass(frozen=True)
class EntryWriter:
    """Writer that encodes rows as the entries of one state.

    Attributes:
        max_parallelism: Number of key groups.
        windows: Windows whose slice end follows the key; None if the state has no slices.
        spans: True if the start and end of a window follow the key.
        watermark: The watermark in milliseconds. Windows that ended by this time are not stored.
        moment: Rule that selects entries by the time column that follows the key.
        expired: Time in milliseconds. In state with a TTL, values last written at or before this time have expired.
    """

    key: tuple[StateField, ...]
    state: NamedState
    header: KeyedHeader
    max_parallelism: int
    windows: SlicedWindow | None
    spans: bool
    watermark: int | None
    zone: str = "UTC"
    moment: Moment | None = None
    expired: int = 0

    def entries(self, rows: Iterable[Columns]) -> Iterator[tuple[int, bytes]]:
        numbers = {state.name: number for number, state in enumerate(self.header.states)}
        value_number = numbers[self.state.name] | COMPUTED_BIT
        bounds = 2 if self.spans else int(self.windows is not None or self.moment is not None)
        timers = TIMERS if self.moment is None else USER_TIMERS
        timer_number = numbers[timers] | COMPUTED_BIT if bounds else 0
        prefix, width = prefix_length(self.max_parallelism), len(self.key)
        of_key, of_value, of_map_key = row_writer(self.key), value_content(self.state), _NO_CONTENT
        first = value_begin = width + bounds
        if self.state.map_key is not None:
            of_map_key, value_begin = map_key_content(self.state), first + _columns(self.state.map_key)
        clock = LocalClock(self.zone)
        reached = 0 if self.watermark is None else clock.reached(self.watermark)
        for row in rows:
            key, namespace, timer = of_key(row[:width]), _VOID, None
            if self.moment is not None:
                time = int(row[width]) // 1000
                if self.moment is not Moment.TIMED:
                    assert self.watermark is not None
                    if (time > self.watermark) is (self.moment is Moment.PASSED):
                        continue
                if self.moment is not Moment.PASSED:
                    timer = StoredKey(timer_moment(time), key, _VOID).to_bytes()
            elif bounds:
                place = self._place([int(bound) // 1000 for bound in row[width:first]], reached)
                if place is None:
                    continue
                namespace, fires, window = place
                timer = StoredKey(timer_moment(clock.fires(fires)), key, window).to_bytes()
            if self.state.namespace is StateNamespace.NONE:
                namespace = _VOID
            group = key_group(key, self.max_parallelism)
            head = group.to_bytes(prefix, "big")
            stored = head + StoredKey(b"", key, namespace + of_map_key(row[first:value_begin])).to_bytes()
            value = row[value_begin:]
            if self.state.time_to_live:
                value = (*value[:-1], value[-1] if value[-1] > self.expired else EXPIRED)
            yield group, pack_entry(Entry(value_number, stored, of_value(value)))
            if timer is not None:
                yield group, pack_entry(Entry(timer_number, head + timer, b""))

    def _place(self, bounds: Sequence[int], reached: int) -> tuple[bytes, int, bytes] | None:
        """Namespace of a slice or window, next firing time and timer namespace; None after the last firing."""
        end = bounds[-1]
        if self.windows is not None:
            place = self.windows.place(end, reached)
            return place and (write_long(place[0]), place[1], write_long(place[1]))
        span = b"".join(map(write_long, bounds))
        return None if end - 1 <= reached else (span, end, span)


def check_writable(key: Sequence[StateField], state: NamedState) -> None:
    """Check that the entries of a state can be encoded."""
    row_writer(key)
    value_content(state)
    if state.map_key is not None:
        map_key_content(state)


def row_writer(fields: Sequence[StateField]) -> Content:
    view = [field.begins is Begins.EMPTY_VIEW for field in fields]
    begins = [begin(field) if field.begins is not None else None for field in fields]
    writers = [None if no_column else _writer(field.type) for field, no_column in zip(fields, view, strict=True)]

    def written(columns: Columns) -> bytes:
        left = iter(columns)
        made = []
        for writer, first in zip(writers, begins, strict=True):
            value: PlainValue = None if writer is None else next(left)
            if value is None and first is not None:
                made.append(first)
            else:
                assert writer is not None
                made.append(writer(value))
        return write_row(made)

    return written


def _writer(type: str) -> Callable[[Any], Field]:
    """Serializer of a type. A retractable MIN or MAX is serialized from (value, count) pairs."""
    extreme = _EXTREME.fullmatch(type)
    if extreme is None:
        return field_writer(type)
    of_value, of_size = field_writer(extreme["value"]), field_writer("BIGINT")

    def written(column: Sequence[Any]) -> Field:
        value, size = column
        row = write_row([of_value(value), of_size(size), EMPTY_VIEW])
        return Field(False, struct.pack("<Q", len(row)), row)

    return written


def map_key_content(state: NamedState) -> Content:
    """Serializer of a map key, which follows the namespace."""
    assert state.map_key is not None
    if state.map_key.form == "TimeWindow":
        return _window
    if state.map_key.form == "row":
        of_row = row_writer(state.map_key.fields)
        return lambda columns: _sized(of_row(columns))
    if state.map_key.form == "Long":
        return _long
    (field,) = state.map_key.fields
    of_value = value_writer(field.type)
    return lambda columns: of_value(columns[0])


def value_content(state: NamedState) -> Content:
    """Serializer of the values of a state."""
    of = _CONTENTS.get(state.value.form)
    if of is None:
        raise SavepointUnreadable(
            f"values of the form {state.value.form} cannot be written: their stored bytes are unknown"
        )
    if state.time_to_live and state.kind is KeyedStateKind.LIST:
        raise SavepointUnreadable("lists with a state TTL are not computed from history yet")
    content = _with_write_time(of(state)) if state.time_to_live else of(state)
    return content if state.kind is not KeyedStateKind.MAP else lambda columns: _THERE + content(columns)


def _with_write_time(content: Content) -> Content:
    return lambda columns: _long(columns[-1:]) + content(columns[:-1])


def _columns(stored: Stored) -> int:
    return {"TimeWindow": 2, "Long": 1}.get(stored.form, len(stored.fields))


def _sized(row: bytes) -> bytes:
    return write_int(len(row)) + row


def _row(state: NamedState) -> Content:
    of_row = row_writer(state.value.fields)
    return lambda columns: _sized(of_row(columns))


def _row_and_count(state: NamedState) -> Content:
    of_row = _row(state)
    return lambda columns: of_row(columns[:-1]) + write_int(int(cast(int, columns[-1])))


def _value(state: NamedState) -> Content:
    (field,) = state.value.fields
    of_value = value_writer(field.type)
    return lambda columns: of_value(columns[0])


def _rows(state: NamedState) -> Content:
    """Serializer of a list from a column of sorted rows. The flag after each row is false."""
    of_row, trailing = row_writer(state.value.fields), bytes(state.trailing)
    return lambda columns: write_rows([StoredRow(of_row(row), trailing) for row in columns[0]], state)


def _sorted_map(state: NamedState) -> Content:
    """Serializer of a map from a column that contains its sorted keys with their counts."""
    of_row = row_writer(state.value.fields)

    def written(columns: Columns) -> bytes:
        entries = [_sized(of_row(key)) + _THERE + write_long(int(rows)) for key, rows in columns[0]]
        return b"".join([write_int(len(entries)), *entries])

    return written


def _counts(state: NamedState) -> Content:
    return lambda columns: b"".join(write_int(int(cast(int, each))) for each in columns)


def _long(columns: Columns) -> bytes:
    return write_long(int(cast(int, columns[0])))


def _window(columns: Columns) -> bytes:
    return b"".join(write_long(int(bound) // 1000) for bound in columns)


_CONTENTS: Mapping[str, Callable[[NamedState], Content]] = {
    "row": _row,
    "Tuple<row, Int>": _row_and_count,
    "value": _value,
    "List<row>": _rows,
    "List<Tuple<row, Boolean>>": _rows,
    "SortedMap<row, Long>": _sorted_map,
    "Int": _counts,
    "Tuple<Int, Int>": _counts,
    "TimeWindow": lambda state: _window,
    "Boolean": lambda state: lambda columns: bytes([bool(columns[0])]),
    "Long": lambda state: _long,
}
