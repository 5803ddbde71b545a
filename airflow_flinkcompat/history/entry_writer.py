"""Encoder of computed rows as keyed state entries, with Flink's bytes, key groups and timers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_flinkcompat.exec_graph.layout import NamedState, StateField, StateNamespace, Stored
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.history.entries import LocalClock
from airflow_flinkcompat.history.state_rows import Moment
from airflow_flinkcompat.history.stored_bytes import (
    Columns,
    big_endian,
    concatenated,
    integers,
    map_key_content,
    row_writer,
    sized,
    value_content,
)
from airflow_flinkcompat.migration.joining import EXPIRED
from airflow_flinkcompat.migration.moving import groups_of_keys
from airflow_flinkcompat.migration.slices import TIMERS, USER_TIMERS
from airflow_flinkcompat.migration.uniting import COMPUTED
from airflow_flinkcompat.savepoint.compiled import numbers, readable, zeros
from airflow_flinkcompat.savepoint.keyed_state import KeyedHeader, prefix_length

_VOID = b"\0"
"""Namespace of a state without windows."""
SCHEMA = "key_group int, entries binary"
"""Columns of the encoded entries in Spark."""
_SCHEMA = pa.schema([("key_group", pa.int32()), ("entries", pa.binary())])


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

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Encode batches of rows; yields the entries of each key group in a batch."""
        for batch in batches:
            groups, entries = self._entries(batch)
            yield pa.RecordBatch.from_arrays([pa.array(groups, pa.int32()), entries], schema=_SCHEMA)

    def _entries(self, batch: pa.RecordBatch) -> tuple[Any, pa.Array]:
        """Key groups, and their concatenated entries."""
        bounds = 2 if self.spans else int(self.windows is not None or self.moment is not None)
        width = len(self.key)
        first = value_begin = width + bounds
        namespace: pa.Array | bytes = _VOID
        timers: tuple[pa.Array, pa.Array | bytes] | None = None
        if bounds:
            kept, namespace, timers = self._placed([integers(each) // 1000 for each in batch.columns[width:first]])
            batch = batch.filter(kept)
        if self.state.namespace is StateNamespace.NONE:
            namespace = _VOID
        columns, count = batch.columns, batch.num_rows
        if not count:
            return [], pa.array([], pa.binary())
        key = sized(row_writer(self.key)(columns[:width], count))
        if self.state.map_key is not None:
            value_begin = first + _columns(self.state.map_key)
            map_key = map_key_content(self.state)(columns[first:value_begin], count)
        else:
            map_key = b""
        value = value_content(self.state)(self._alive(columns[value_begin:]), count)
        groups = self._groups(key)
        head = big_endian(groups, prefix_length(self.max_parallelism))
        parts = [_packed(self._number(self.state.name), concatenated(head, key, namespace, map_key), value)]
        if timers is not None:
            name = TIMERS if self.moment is None else USER_TIMERS
            moments, windows = timers
            parts.append(_packed(self._number(name), concatenated(head, moments, key, windows), b""))
        return _by_group(groups, concatenated(*parts))

    def _number(self, name: str) -> int:
        return [state.name for state in self.header.states].index(name) | COMPUTED

    def _groups(self, keys: pa.Array) -> Any:
        """Key groups of keys that are preceded by their length."""
        _, offsets, content = keys.buffers()
        groups = zeros(len(keys))
        ends = numbers(np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1])
        groups_of_keys(readable(content or b""), ends, self.max_parallelism, groups)
        return np.asarray(groups, np.int64)

    def _alive(self, columns: Columns) -> Columns:
        """Replace the write times of expired values."""
        if not self.state.time_to_live:
            return columns
        written = integers(columns[-1])
        return [*columns[:-1], pa.array(np.where(written > self.expired, written, EXPIRED))]

    def _placed(self, bounds: list[Any]) -> tuple[pa.Array, pa.Array | bytes, tuple[pa.Array, pa.Array | bytes] | None]:
        """Stored rows, and the namespaces and the timers of these rows. ``bounds``: in milliseconds."""
        ends = bounds[-1]
        if self.moment is not None:
            kept = np.ones(len(ends), bool)
            if self.moment is not Moment.TIMED:
                assert self.watermark is not None
                kept = (ends <= self.watermark) if self.moment is Moment.PASSED else (ends > self.watermark)
            timers = None if self.moment is Moment.PASSED else (_moments(ends[kept]), _VOID)
            return pa.array(kept), _VOID, timers
        clock = LocalClock(self.zone)
        reached = 0 if self.watermark is None else clock.reached(self.watermark)
        distinct, places = np.unique(ends, return_inverse=True)
        found = [self._place(int(end), reached) for end in distinct]
        kept = np.array([place is not None for place in found], bool)[places]
        stored, fires, timed = (
            np.array([0 if place is None else column(place) for place in found], np.int64)[places][kept]
            for column in (lambda place: place[0], lambda place: place[1], lambda place: clock.fires(place[1]))
        )
        window = big_endian(fires, 8)
        namespace = big_endian(stored, 8)
        if self.spans:
            namespace = window = concatenated(*(big_endian(each[kept], 8) for each in bounds))
        return pa.array(kept), namespace, (_moments(timed), window)

    def _place(self, end: int, reached: int) -> tuple[int, int] | None:
        """The ends of a slice or window and of the next window to fire; None after the last firing."""
        if self.windows is not None:
            return self.windows.place(end, reached)
        return None if end - 1 <= reached else (end, end)


def _moments(times: Any) -> pa.Array:
    """Stored firing times of timers; the sign bit is inverted."""
    return big_endian(times ^ np.int64(-(1 << 63)), 8)


def _packed(state: int, key: pa.Array, value: pa.Array | bytes) -> pa.Array:
    """Encode entries for their transport to their key groups."""
    stored = sized(value) if isinstance(value, pa.Array) else bytes(4)
    return concatenated(state.to_bytes(2, "big"), sized(key), stored)


def _by_group(groups: Any, entries: pa.Array) -> tuple[Any, pa.Array]:
    """Concatenate the entries of each key group."""
    order = np.argsort(groups, kind="stable")
    found, begins = np.unique(groups[order], return_index=True)
    offsets = pa.array(np.append(begins, len(groups)), pa.int32())
    return found, pc.binary_join(pa.ListArray.from_arrays(offsets, entries.take(pa.array(order))), b"")


def _columns(stored: Stored) -> int:
    return {"TimeWindow": 2, "Long": 1}.get(stored.form, len(stored.fields))
