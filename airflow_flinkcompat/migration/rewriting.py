"""Rewriting of one operator's keyed state. To limit memory, key groups are rewritten one at a time.

If entries keep their key groups, they are copied in place, in ranges. If keys or the number of key groups change,
entries are first scattered to their new groups, then written group by group. Each part of the work is a range of key
groups with separate files. Any process with access to both folders can do a part.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
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
    prefix_length,
)
from airflow_flinkcompat.migration.fields import NotMigratable
from airflow_flinkcompat.migration.slices import StoredSlices
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, SavepointUnreadable, naming_file
from airflow_flinkcompat.savepoint.keyed_state import (
    END_OF_GROUP,
    LAST_OF_RUN,
    Entry,
    KeyedFileWriter,
    KeyedHeader,
    key_group,
    open_keyed,
    read_entries,
    write_entries,
)
from airflow_flinkcompat.savepoint.metadata import KeyGroups
from airflow_flinkcompat.savepoint.row_mapping import RowChange, WordMapping

_HELD = 16 << 20
"""Maximum number of bytes of scattered entries in memory."""
_PIECES = 1 << 13
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
        now: Milliseconds since 1970. Values that gain a last access timestamp get this time.
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
        alone = key_change(self.made) is None and self._united() is None and not self.made.from_history
        return alone and self.widths[0] == self.widths[1]

    def copied(self, groups: range) -> WrittenPart:
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

    def scattered(self, part: tuple[KeyGroups, range]) -> Iterator[tuple[int, bytes]]:
        """Rewrite a range of old key groups, and yield their entries by new key group."""
        keyed, groups = part
        held: dict[int, bytearray] = {}
        key, size = key_change(self.made), 0
        with open_keyed(keyed, self.source) as file:
            change = entry_rewrites(self.made, file.header, self.header, self.now)
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

    def gathered(self, groups: range, entries: Iterable[tuple[int, bytes]]) -> WrittenPart:
        """Write a range of new key groups to one file."""
        unite = self._united()
        join = EntryJoin(self.made, self.header, prefix_length(self.widths[1])) if self.made.from_history else None
        counts = [0] * len(self.header.states)
        with KeyedFileWriter(UPath(self.target), self.header, groups) as writer:
            for number, content in entries:
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

    def compared(self, groups: range, entries: Iterable[tuple[int, bytes]]) -> Differences:
        """Compare the stored entries of a range of key groups with the computed entries, without writing."""
        join = EntryJoin(self.made, self.header, prefix_length(self.widths[1]))
        for _, content in entries:
            join.entries(*_by_origin(_scattered_entries(content)))
        return join.differences

    def _united(self) -> GroupChange | None:
        unite = merge_entries(self.made, self.header)
        return (
            unite
            if self.slices is None
            else self.slices.merge_entries(unite, self.header, prefix_length(self.widths[1]))
        )

    def _moved(
        self, group: bytes, change: Sequence[Sequence[EntryRewrite]], header: KeyedHeader, key: RowChange | None
    ) -> Iterator[tuple[int, Entry]]:
        """Rewrite an old key group for the new operator, and yield its entries with their new key groups."""
        old, new = map(prefix_length, self.widths)
        states = header.states
        timers = [state.kind is KeyedStateKind.TIMERS for state in states]
        for state, stored_key, value in read_entries(group):
            if state >= len(states):
                raise _unknown_state(state)
            if not change[state]:
                _none_lost(header, state)
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
    """Rewrite a key group whose keys are unchanged. Unchanged ranges of bytes are copied as a whole."""
    at, anything = 0, False
    try:
        while (state := _NUMBER.unpack_from(group, at)[0]) != END_OF_GROUP:
            if state >= len(change):
                raise _unknown_state(state)
            if not change[state]:
                _none_lost(header, state)
            begin = at + 2
            if not change[state]:
                at, _ = _end_of_run(group, begin)
            for way in change[state]:
                anything = True
                yield _NUMBER.pack(way.number)
                at, entries = yield from _run(group, begin, way)
                counts[way.number] += entries
    except (struct.error, IndexError):
        raise SavepointUnreadable("a key group ends before its end marker: the savepoint is damaged") from None
    if at + 2 != len(group):
        raise SavepointUnreadable("bytes follow the end marker of a key group: the savepoint is damaged")
    if anything:
        yield _END


def _end_of_run(group: bytes, at: int) -> tuple[int, int]:
    """Return the end offset and the number of a state's entries that start at an offset."""
    length = _SIZE.unpack_from
    entries = last = 0
    while not last:
        end = at + 4 + length(group, at)[0]
        last = group[at + 4] & LAST_OF_RUN
        if end == at + 4:
            raise _no_key()
        at = end + 4 + length(group, end)[0]
        entries += 1
    return at, entries


Run = Generator[bytes, None, tuple[int, int]]
"""Generator of a state's new entries in blocks. Returns the old entries' end offset and number."""


def _run(group: bytes, at: int, way: EntryRewrite) -> Run:
    if way.words is not None:
        return (yield from _run_of_words(group, at, way.words))
    if way.value is not None:
        return (yield from _run_of_values(group, at, way.value))
    end, entries = _end_of_run(group, at)
    yield group[at:end]
    return end, entries


def _run_of_values(group: bytes, at: int, value: Callable[[bytes], bytes]) -> Run:
    length, pack = _SIZE.unpack_from, _SIZE.pack
    out: list[bytes] = []
    entries = last = 0
    while not last:
        end = at + 4 + length(group, at)[0]
        last = group[at + 4] & LAST_OF_RUN
        after = end + 4 + length(group, end)[0]
        made = value(group[end + 4 : after])
        if end == at + 4:
            raise _no_key()
        out += (group[at:end], pack(len(made)), made)
        at = after
        entries += 1
        if len(out) > _PIECES:
            yield b"".join(out)
            out.clear()
    yield b"".join(out)
    return at, entries


def _run_of_words(group: bytes, at: int, words: WordMapping) -> Run:
    """Rewrite entries whose rows have one size, and check the length and null bits of each in one lookup."""
    assert words.sizes is not None
    length, pick, added = _SIZE.unpack_from, words.pick, words.added
    fronts = _Fronts(words)
    front, whole = 8 + words.head, 8 + words.sizes[0]
    out: list[bytes] = []
    entries = last = 0
    while not last:
        end = at + 4 + length(group, at)[0]
        last = group[at + 4] & LAST_OF_RUN
        body = end + front
        after = end + whole
        if end == at + 4:
            raise _no_key()
        out += (group[at:end], fronts[group[end:body]], *pick(group[body:after] + added))
        at = after
        entries += 1
        if len(out) > _PIECES:
            yield b"".join(out)
            out.clear()
    yield b"".join(out)
    return at, entries


class _Fronts(dict[bytes, bytes]):
    """Cache from the first bytes of old values to those of new values: lengths and null bits."""

    def __init__(self, words: WordMapping) -> None:
        super().__init__()
        assert words.sizes is not None
        old, new = words.sizes
        self._old, self._new = (_SIZE.pack(size + 4) + _SIZE.pack(size) for size in (old, new))
        self._heads = words.heads

    def __missing__(self, front: bytes) -> bytes:
        if not front.startswith(self._old):
            raise SavepointUnreadable(
                "a value of the form row has unexpected bytes after its row: the savepoint is damaged or its "
                "format is unknown"
            )
        made = self._new + self._heads[front[8:]]
        if len(self) < _PIECES:
            self[front] = made
        return made


def _no_key() -> SavepointUnreadable:
    return SavepointUnreadable("an entry of a key group has no key: the savepoint is damaged")


def _unknown_state(state: int) -> SavepointUnreadable:
    return SavepointUnreadable(
        f"an entry belongs to state {state}, which the file's header does not declare: the savepoint is damaged"
    )


def _none_lost(header: KeyedHeader, state: int) -> None:
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
