"""Rewriting of one operator's keyed state. To limit memory, key groups are rewritten one at a time.

If entries keep their key groups, each range of key groups is rewritten directly. If keys or the number of key groups
change, entries are first scattered to their new groups, then written group by group. Each part of the work is a range
of key groups with separate files. Any process with access to both folders can do a part of the work.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from upath import UPath

from airflow_flinkcompat.exec_graph.migration import OperatorMigration
from airflow_flinkcompat.migration.computed import Differences, EntryJoin
from airflow_flinkcompat.migration.entries import (
    EntryRewrite,
    entry_rewrites,
    entry_union,
    key_change,
)
from airflow_flinkcompat.migration.fields import NotMigratable
from airflow_flinkcompat.migration.runs import Scatter, gathered_group, rewritten
from airflow_flinkcompat.migration.slices import StoredSlices, slice_plans
from airflow_flinkcompat.savepoint.binary import KeyedStateKind
from airflow_flinkcompat.savepoint.keyed_state import (
    END_OF_GROUP,
    KeyedFileWriter,
    KeyedHeader,
    open_keyed,
    prefix_length,
)
from airflow_flinkcompat.savepoint.metadata import KeyGroups
from airflow_flinkcompat.savepoint.runs import Runs

_NUMBER = struct.Struct(">H")
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
        header: Header of the new operator, which declares compressed key groups.
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
        alone = key_change(self.made) is None and entry_union(self.made, self.header) is None
        alone = alone and not self.made.from_history
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
                        with file.naming(number):
                            writer.group(number, rewritten_group(group, change, file.header, counts))
            return WrittenPart(writer.finish(), self._counts_by_name(counts))

    def scatter(self, part: tuple[KeyGroups, range]) -> Iterator[tuple[int, bytes]]:
        """Rewrite a range of old key groups, and yield their entries by new key group."""
        keyed, groups = part
        old, new = map(prefix_length, self.widths)
        scatter = Scatter((old, new), self.widths[1], key_change(self.made))
        with open_keyed(keyed, self.source) as file:
            change = entry_rewrites(self.made, file.header, self.header, self.now)
            states = file.header.states
            slices = slice_plans(self.slices, states, [state.name for state in self.header.states])
            for number, group in file.groups(groups):
                with file.naming(number):
                    runs = Runs(group, len(states))
                    for state in runs:
                        begin = runs.at
                        if not change[state]:
                            _check_dropped_state(file.header, state)
                            runs.skip()
                        for way in change[state]:
                            runs.at = begin
                            timers = states[state].kind is KeyedStateKind.TIMERS
                            yield from scatter.run(runs, timers, way.number, way.value, slices[state])
        yield from scatter.blocks()

    def gather(self, groups: range, entries: Iterable[tuple[int, bytes]]) -> WrittenPart:
        """Write a range of new key groups to one file."""
        union = entry_union(self.made, self.header)
        join = EntryJoin(self.made, self.header, prefix_length(self.widths[1])) if self.made.from_history else None
        counts = [0] * len(self.header.states)
        with KeyedFileWriter(UPath(self.target), self.header, groups) as writer:
            for number, content in entries:
                united = content if union is None else union(content)
                joined = united if join is None else join(united)
                writer.group(number, [gathered_group(joined, counts)])
            return WrittenPart(
                writer.finish(), self._counts_by_name(counts), join.differences if join is not None else None
            )

    def compare(self, groups: range, entries: Iterable[tuple[int, bytes]]) -> Differences:
        """Compare the stored entries of a range of key groups with the computed entries, without writing."""
        union = entry_union(self.made, self.header)
        join = EntryJoin(self.made, self.header, prefix_length(self.widths[1]))
        for _, content in entries:
            join(content if union is None else union(content))
        return join.differences

    def _counts_by_name(self, counts: Sequence[int]) -> Mapping[str, int]:
        named = zip(self.header.states, counts, strict=True)
        return {state.name: count for state, count in named if count}


def compressed_copy(stored: KeyGroups, source: str, target: str) -> KeyGroups:
    """Copy a file of keyed state to a folder, with compressed key groups."""
    with (
        open_keyed(stored, source) as file,
        KeyedFileWriter(UPath(target), file.header.with_compression(True), stored.numbers) as writer,
    ):
        for number, group in file.groups():
            writer.group(number, [group])
        return writer.finish()


def rewritten_group(
    group: bytes, change: Sequence[Sequence[EntryRewrite]], header: KeyedHeader, counts: list[int]
) -> Iterator[bytes]:
    """Rewrite a key group whose keys are unchanged. The entries of unchanged states are copied as a whole."""
    runs, anything = Runs(group, len(change)), False
    for state in runs:
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
