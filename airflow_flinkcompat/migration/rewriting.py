"""Rewriting of one operator's keyed state. To limit memory, key groups are rewritten one at a time.

If entries keep their key groups, each range of key groups is rewritten directly. If keys or the number of key groups
change, entries are first scattered to their new groups, then written group by group. Each part of the work is a range
of key groups with separate files. Any process with access to both folders can do a part of the work.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from upath import UPath

from airflow_flinkcompat.exec_graph.migration import OperatorMigration
from airflow_flinkcompat.migration.computed import COMPUTED_BIT, Differences, EntryJoin
from airflow_flinkcompat.migration.entries import (
    EntryRewrite,
    GroupChange,
    StoredKey,
    entry_rewrites,
    key_change,
    merge_entries,
)
from airflow_flinkcompat.migration.fields import NotMigratable
from airflow_flinkcompat.migration.runs import Scatter, gathered_group, rewritten
from airflow_flinkcompat.migration.slices import StoredSlices
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, naming_file
from airflow_flinkcompat.savepoint.keyed_state import (
    END_OF_GROUP,
    Entry,
    KeyedFile,
    KeyedFileWriter,
    KeyedHeader,
    key_group,
    open_keyed,
    prefix_length,
    read_entries,
    write_entries,
)
from airflow_flinkcompat.savepoint.metadata import KeyGroups
from airflow_flinkcompat.savepoint.row_mapping import RowMapping
from airflow_flinkcompat.savepoint.runs import Runs, unknown_state

_HELD = 16 << 20
"""Maximum number of bytes of scattered entries in memory."""
_NUMBER, _SIZE = struct.Struct(">H"), struct.Struct(">I")
_END = _NUMBER.pack(END_OF_GROUP)


@dataclass(frozen=True)
class WrittenPart:
    """A written file: its key groups, and the number of entries of each state.

    ``differences``: Differences between history and the old savepoint; if there are any, no job may start from the
    file.
    """

    groups: KeyGroups
    entries: Mapping[str, int]
    differences: Differences | None = None


@dataclass(frozen=True)
class OperatorRewriting:
    """Rewriting of one operator's keyed state.

    Attributes:
        source: Path or URI of the old savepoint.
        header: Header of the new operator, with uncompressed key groups.
        widths: Number of key groups of the old and of the new operator.
        now: Last access timestamp, in milliseconds since 1970, of values that gain such a timestamp.
        slices: Assignment of stored slices to new windows; None if windows are unchanged.
    """

    source: str
    stored: tuple[KeyGroups, ...]
    made: OperatorMigration
    header: KeyedHeader
    widths: tuple[int, int]
    target: str
    now: int
    slices: StoredSlices | None = None

    @property
    def in_place(self) -> bool:
        """True if every entry keeps its key group and none is merged with another entry."""
        alone = key_change(self.made) is None and self._group_change() is None and not self.made.from_history
        return alone and self.widths[0] == self.widths[1]

    def copy(self, groups: range) -> WrittenPart:
        """Write a range of key groups to one file, if all entries keep their key groups."""
        counts = [0] * len(self.header.states)
        with KeyedFileWriter(UPath(self.target), self.header, groups) as writer:
            for each in self.stored:
                if not _overlap(each, groups):
                    continue
                with open_keyed(each, self.source) as file:
                    change = entry_rewrites(self.made, file.header, self.header, self.now)
                    for number, group in file.groups(groups):
                        with naming_file(file.content.name):
                            writer.group(number, rewritten_group(group, change, file.header, counts))
            return WrittenPart(writer.finish(), self._counts_by_name(counts))

    def scatter(self, part: tuple[KeyGroups, range]) -> Iterator[tuple[int, bytes]]:
        """Rewrite a range of old key groups, and yield their entries by new key group."""
        keyed, groups = part
        with open_keyed(keyed, self.source) as file:
            change = entry_rewrites(self.made, file.header, self.header, self.now)
            one_by_one = self.slices is not None or any(way.entry for ways in change for way in ways)
            scattered = self._scattered_one_by_one if one_by_one else self._scattered_runs
            yield from scattered(file, groups, change)

    def _scattered_runs(
        self, file: KeyedFile, groups: range, change: Sequence[Sequence[EntryRewrite]]
    ) -> Iterator[tuple[int, bytes]]:
        old, new = map(prefix_length, self.widths)
        scatter = Scatter((old, new), self.widths[1], key_change(self.made))
        states = file.header.states
        for _, group in file.groups(groups):
            with naming_file(file.content.name):
                runs = Runs(group)
                for state in runs:
                    if state >= len(states):
                        raise unknown_state(state)
                    begin = runs.at
                    if not change[state]:
                        _check_dropped_state(file.header, state)
                        runs.skip()
                    for way in change[state]:
                        runs.at = begin
                        timers = states[state].kind is KeyedStateKind.TIMERS
                        yield from scatter.run(runs, timers, way.number, way.value)
        yield from scatter.blocks()

    def _scattered_one_by_one(
        self, file: KeyedFile, groups: range, change: Sequence[Sequence[EntryRewrite]]
    ) -> Iterator[tuple[int, bytes]]:
        held: dict[int, bytearray] = {}
        key, size = key_change(self.made), 0
        for _, group in file.groups(groups):
            with naming_file(file.content.name):
                for number, entry in self._moved(group, change, file.header, key):
                    content = held.setdefault(number, bytearray())
                    before = len(content)
                    content += pack_entry(entry)
                    size += len(content) - before
                    if size > _HELD:
                        yield from ((each, bytes(some)) for each, some in held.items())
                        held.clear()
                        size = 0
        yield from ((each, bytes(some)) for each, some in held.items())

    def gather(self, groups: range, entries: Iterable[tuple[int, bytes]]) -> WrittenPart:
        """Write a range of new key groups to one file."""
        unite = self._group_change()
        join = EntryJoin(self.made, self.header, prefix_length(self.widths[1])) if self.made.from_history else None
        counts = [0] * len(self.header.states)
        with KeyedFileWriter(UPath(self.target), self.header, groups) as writer:
            for number, content in entries:
                if unite is None and join is None:
                    writer.group(number, [gathered_group(content, counts)])
                    continue
                group = list(_scattered_entries(content))
                if join is not None:
                    group, computed = _by_origin(group)
                group = unite(group) if unite is not None and group else group
                if join is not None:
                    group = join.entries(group, computed)
                group.sort(key=lambda entry: entry.state)
                for entry in group:
                    counts[entry.state] += 1
                writer.group(number, [write_entries(group)])
            return WrittenPart(
                writer.finish(), self._counts_by_name(counts), join.differences if join is not None else None
            )

    def compare(self, groups: range, entries: Iterable[tuple[int, bytes]]) -> Differences:
        """Compare the stored entries of a range of key groups with the computed entries, without writing."""
        join = EntryJoin(self.made, self.header, prefix_length(self.widths[1]))
        for _, content in entries:
            join.entries(*_by_origin(_scattered_entries(content)))
        return join.differences

    def _group_change(self) -> GroupChange | None:
        unite = merge_entries(self.made, self.header)
        return (
            unite
            if self.slices is None
            else self.slices.merge_entries(unite, self.header, prefix_length(self.widths[1]))
        )

    def _moved(
        self, group: bytes, change: Sequence[Sequence[EntryRewrite]], header: KeyedHeader, key: RowMapping | None
    ) -> Iterator[tuple[int, Entry]]:
        """Rewrite an old key group for the new operator, and yield its entries with their new key groups."""
        old, new = map(prefix_length, self.widths)
        states = header.states
        timers = [state.kind is KeyedStateKind.TIMERS for state in states]
        for state, stored_key, value in read_entries(group):
            if state >= len(states):
                raise unknown_state(state)
            if not change[state]:
                _check_dropped_state(header, state)
                continue
            parts = StoredKey.read(stored_key[old:], timers[state])
            if self.slices is not None:
                in_slice = self.slices.moved(parts, states[state])
                if in_slice is None:
                    continue
                parts = in_slice
            moved = parts if key is None else StoredKey(parts.moment, key(parts.row), parts.rest)
            number = key_group(moved.row, self.widths[1])
            stored = number.to_bytes(new, "big") + moved.to_bytes()
            for way in change[state]:
                if way.entry is not None:
                    rest, made = way.entry(moved.rest, value)
                    key_of_row = replace(moved, rest=rest).to_bytes()
                    yield number, Entry(way.number, number.to_bytes(new, "big") + key_of_row, made)
                else:
                    yield number, Entry(way.number, stored, value if way.value is None else way.value(value))

    def _counts_by_name(self, counts: Sequence[int]) -> Mapping[str, int]:
        named = zip(self.header.states, counts, strict=True)
        return {state.name: count for state, count in named if count}


def rewritten_group(
    group: bytes, change: Sequence[Sequence[EntryRewrite]], header: KeyedHeader, counts: list[int]
) -> Iterator[bytes]:
    """Rewrite a key group whose keys are unchanged. The entries of unchanged states are copied as a whole."""
    runs, anything = Runs(group), False
    for state in runs:
        if state >= len(change):
            raise unknown_state(state)
        if not change[state]:
            _check_dropped_state(header, state)
            runs.skip()
        begin = runs.at
        for way in change[state]:
            anything, runs.at = True, begin
            yield _NUMBER.pack(way.number)
            if way.value is None:
                _, entries = runs.skip()
                yield group[begin : runs.at]
            else:
                entries = yield from rewritten(runs, way.value)
            counts[way.number] += entries
    if anything:
        yield _END


def _check_dropped_state(header: KeyedHeader, state: int) -> None:
    """Check that no timer is lost. The migration plan announces the loss of other entries."""
    stored = header.states[state]
    if stored.kind is KeyedStateKind.TIMERS:
        raise NotMigratable(
            f"the timers {stored.name.removeprefix('_timer_state/')} would be lost: the new operator does not "
            "register them"
        )


def _overlap(stored: KeyGroups, groups: range) -> bool:
    return stored.first < groups.stop and groups.start < stored.first + len(stored.begins)


def _scattered_entries(content: bytes) -> Iterator[Entry]:
    at = 0
    while at < len(content):
        begin = at + 6
        end = begin + _SIZE.unpack_from(content, at + 2)[0]
        after = end + 4 + _SIZE.unpack_from(content, end)[0]
        yield Entry(_NUMBER.unpack_from(content, at)[0], content[begin:end], content[end + 4 : after])
        at = after


def pack_entry(entry: Entry) -> bytes:
    """Encode an entry for its transport to its new key group."""
    size = _SIZE.pack
    return b"".join((_NUMBER.pack(entry.state), size(len(entry.key)), entry.key, size(len(entry.value)), entry.value))


def _by_origin(entries: Iterable[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Separate entries of the old savepoint from entries computed from history."""
    stored: list[Entry] = []
    computed: list[Entry] = []
    for entry in entries:
        if entry.state & COMPUTED_BIT:
            computed.append(entry._replace(state=entry.state & ~COMPUTED_BIT))
        else:
            stored.append(entry)
    return stored, computed
