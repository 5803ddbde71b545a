"""Rows that Spark computed as entries of keyed state, in the bytes in which Flink stores them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from airflow_flinkcompat.migration.computed import COMPUTED_BIT
from airflow_flinkcompat.migration.entries import StoredKey, prefix_length
from airflow_flinkcompat.migration.fields import begin
from airflow_flinkcompat.migration.rewriting import pack_entry
from airflow_flinkcompat.migration.slices import TIMERS, window_timer
from airflow_flinkcompat.savepoint.binary import write_int, write_long
from airflow_flinkcompat.savepoint.binary_row import write_row
from airflow_flinkcompat.savepoint.field_values import PlainValue, field_writer
from airflow_flinkcompat.savepoint.key_groups import key_group
from airflow_flinkcompat.savepoint.keyed_state import Entry, KeyedHeader
from airflow_flinkcompat.state.layout import NamedState, StateField
from airflow_flinkcompat.state.windows import SlicedWindow

_VOID = b"\0"
"""The namespace of a state that is not told apart by windows."""


@dataclass(frozen=True)
class EntryWriter:
    """Makes entries of rows.

    Attributes:
        key: The fields of the key.
        state: The state of the accumulators.
        header: Of the new files.
        max_parallelism: The number of key groups.
        windows: The windows, of which the end of a slice follows the key; None without.
        watermark: How far time has come; what ended before is not stored.
    """

    key: tuple[StateField, ...]
    state: NamedState
    header: KeyedHeader
    max_parallelism: int
    windows: SlicedWindow | None
    watermark: int | None

    def entries(self, rows: Iterable[Sequence[PlainValue]]) -> Iterator[tuple[int, bytes]]:
        """The entries of some rows.

        Args:
            rows: Of each the key, of windows the end of the slice in microseconds, and the accumulators.

        Yields:
            The number of a key group, and an entry of it.
        """
        keys = [field_writer(field.type) for field in self.key]
        fields = [(field_writer(field.type), field) for field in self.state.value.fields]
        numbers = {state.name: number for number, state in enumerate(self.header.states)}
        value_number = numbers[self.state.name] | COMPUTED_BIT
        timer_number = numbers[TIMERS] | COMPUTED_BIT if self.windows is not None else 0
        prefix, width, first = prefix_length(self.max_parallelism), len(keys), len(keys) + (self.windows is not None)
        begins = [begin(field) if field.begins is not None else None for _, field in fields]
        for row in rows:
            key = write_row([write(value) for write, value in zip(keys, row[:width], strict=True)])
            namespace, timer = _VOID, None
            if self.windows is not None:
                assert self.watermark is not None
                place = self.windows.place(int(row[width] or 0) // 1000, self.watermark)
                if place is None:
                    continue
                namespace = write_long(place[0])
                timer = window_timer(StoredKey(b"", key, namespace), place[1]).to_bytes()
            accumulators = write_row(
                [
                    begins[number] or write(None) if value is None else write(value)
                    for number, ((write, _), value) in enumerate(zip(fields, row[first:], strict=True))
                ]
            )
            group = key_group(key, self.max_parallelism)
            head = group.to_bytes(prefix, "big")
            stored = head + StoredKey(b"", key, namespace).to_bytes()
            yield group, pack_entry(Entry(value_number, stored, write_int(len(accumulators)) + accumulators))
            if timer is not None:
                yield group, pack_entry(Entry(timer_number, head + timer, b""))
