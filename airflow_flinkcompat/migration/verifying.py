"""Verification of a written savepoint: read it back and compare it with its source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from airflow_flinkcompat.exec_graph.layout import NamedState, Stored
from airflow_flinkcompat.exec_graph.migration import Migration, OperatorMigration
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.exec_graph.rewriting import StateRewrite
from airflow_flinkcompat.migration.entries import EntryUnion, key_change
from airflow_flinkcompat.migration.fields import begin, row_change
from airflow_flinkcompat.migration.loops import CHANGED, OTHER_GROUP
from airflow_flinkcompat.migration.runs import (
    UNCHANGED,
    EntrySum,
    Scatter,
    ValueMapping,
    counted_mapping,
    gathered_group,
    key_plan,
    value_mapping,
)
from airflow_flinkcompat.migration.slices import StoredSlices, slice_plans, slices
from airflow_flinkcompat.migration.uniting import KEEP_FIRST, MERGE_ROWS, ONLY_NEEDED
from airflow_flinkcompat.migration.workers import LocalWorkers, Workers
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, SavepointUnreadable
from airflow_flinkcompat.savepoint.binary_row import field_form
from airflow_flinkcompat.savepoint.compiled import hash_sum
from airflow_flinkcompat.savepoint.keyed_state import (
    KeyedHeader,
    KeyedState,
    group_parts,
    group_ranges,
    keyed_headers,
    open_keyed,
    prefix_length,
)
from airflow_flinkcompat.savepoint.metadata import KeyGroups, OperatorState, SavepointMetadata
from airflow_flinkcompat.savepoint.row_mapping import RowMapping, row_mapping
from airflow_flinkcompat.savepoint.runs import Runs
from airflow_flinkcompat.savepoint.store import BROADCAST, elements, header_of, read_handle, read_metadata

_SUM = (1 << 128) - 1


class MigrationVerificationFailed(Exception):
    """A written savepoint lacks its expected content. The message names the state and the difference."""


def verify(
    source: str,
    target: str,
    migration: Migration,
    written: SavepointMetadata | None = None,
    workers: Workers | None = None,
    template: str | None = None,
) -> Mapping[str, Mapping[str, str]]:
    """Compare a written savepoint with its source.

    For each rewritten operator, every key must be in the right key group, and files must have the template's header.
    Every state and its timers must have as many entries as in the source, minus merged entries. All kept fields of all
    entries must be equal to those in the source. If the state of an operator is copied, all its entries must be equal
    to those in the source.

    Args:
        source: Path or URI of the old savepoint.
        target: Path or URI of the written savepoint.
        migration: Planned migration of each state.
        written: Metadata of the written savepoint; None to read it from ``target``.
        workers: Workers that read state; None to read in this process.
        template: Path or URI of the template; None to skip the comparison of headers.

    Returns:
        Sums of hashes over all kept keys and fields, by the id of the new operator and by state name. A sum has 32 hex
        digits. The order of entries in files does not change a sum.

    Raises:
        MigrationVerificationFailed: The savepoints differ. No job may start from the written savepoint.
        SavepointUnreadable: The written savepoint cannot be read back.
    """
    workers = workers or LocalWorkers()
    old = {each.id: each for each in read_metadata(source).operators}
    new = {each.id: each for each in (written or read_metadata(target)).operators}
    wanted = {each.id: each for each in read_metadata(template).operators} if template else {}
    sums: dict[str, dict[str, str]] = {}
    for line in migration.of_savepoint({each.id for each in old.values() if each.has_state}):
        computed = line.effect is RestoreEffect.COMPUTED
        if line.new is None or line.effect in (RestoreEffect.NOT_MIGRATABLE, RestoreEffect.EMPTY):
            continue
        if line.old is None and not computed:
            continue
        before, after = old[line.old.id] if line.old is not None else None, new.get(line.new.id)
        if after is None:
            raise MigrationVerificationFailed(f"{line.new.name} is missing")
        lists = _lists if before is None or before.parallelism <= after.parallelism else _elements
        if before is not None and lists(source, before) != lists(target, after):
            raise MigrationVerificationFailed(f"{line.new.name}: its non-keyed state differs from the source savepoint")
        kept = line if line.effect in (RestoreEffect.REWRITTEN, RestoreEffect.COMPUTED) else None
        if kept is not None and template and _headers(target, after) - _headers(template, wanted[line.new.id]):
            raise MigrationVerificationFailed(
                f"{line.new.name}: the header of its files differs from the template's header"
            )
        if before is None or computed:
            written_side = _Side(target, after.max_parallelism, kept, True, True)
            totals = _totals(written_side, after, workers)
            sums[line.new.id] = {name: f"{total.sum:032x}" for name, total in sorted(totals.items())}
            continue
        in_groups = kept is not None or before.max_parallelism != after.max_parallelism
        sides = (
            _Side(source, before.max_parallelism, kept, False, in_groups, slices(line, before, source)),
            _Side(target, after.max_parallelism, kept, True, in_groups),
        )
        found = [_totals(side, operator, workers) for side, operator in zip(sides, (before, after), strict=True)]
        computed_states = {state.new.name for state in line.states if line.from_history and state.old is None}
        for name in sorted({*found[0], *found[1]} - computed_states):
            if found[0].get(name, _Total()) != found[1].get(name, _Total()):
                raise MigrationVerificationFailed(
                    f"{line.new.name}: the kept part of its state {name} differs from the source savepoint"
                )
        sums[line.new.id] = {name: f"{total.sum:032x}" for name, total in sorted(found[1].items())}
    return sums


def _headers(path: str, operator: OperatorState) -> set[bytes]:
    return {header.stored for header in keyed_headers(operator, path)}


def _lists(path: str, operator: OperatorState) -> object:
    coordinator = read_handle(operator.coordinator, path)
    return coordinator, [(each.lists, read_handle(each.handle, path)) for each in operator.lists]


def _elements(path: str, operator: OperatorState) -> object:
    """Count the elements of all lists, regardless of the subtask that stores an element."""
    found: Counter[object] = Counter()
    for each in operator.lists:
        content = read_handle(each.handle, path)
        for state, held in elements(each, content):
            head = state.name, state.mode, header_of(each, content)
            found[head] = 1
            for element in held:
                found[*head, element] = 1 if state.mode == BROADCAST else found[*head, element] + 1
    return read_handle(operator.coordinator, path), found


class _Total(NamedTuple):
    """Number of a state's entries, and an order-independent sum over their kept parts."""

    entries: int = 0
    sum: int = 0

    def plus(self, other: _Total) -> _Total:
        """Add a total."""
        return _Total(self.entries + other.entries, (self.sum + other.sum) & _SUM)


@dataclass(frozen=True)
class _Side:
    """One of the two savepoints in the comparison.

    Attributes:
        line: Migration of the operator; None if only the operator's position in the job changed.
        new: True for the written savepoint, False for its source.
        in_groups: True to check that each key is in its key group. Keys must then be rows.
        slices: For the source, the assignment of slices to new windows; None if windows are unchanged.
    """

    path: str
    groups: int
    line: OperatorMigration | None
    new: bool
    in_groups: bool
    slices: StoredSlices | None = None

    @property
    def merges(self) -> bool:
        """True if several entries may merge into one."""
        return self.slices is not None or (self.line is not None and self.line.merges and not self.new)


def _totals(side: _Side, operator: OperatorState, workers: Workers) -> Mapping[str, _Total]:
    keyed = [subtask.keyed for subtask in operator.subtasks or () if subtask.keyed is not None]
    parts = group_parts(keyed, workers.parts)
    found = workers.each(partial(_of_part, side), parts)
    if side.merges and keyed:
        # The first pass has checked the source. Its entries are summed after they are united.
        names = _names(side, next(keyed_headers(operator, side.path)))
        ranges = group_ranges(side.groups, workers.parts(0, side.groups))
        found = workers.regroup(partial(_scattered, side, names), parts, partial(_united, side, names), ranges)
    totals: dict[str, _Total] = {}
    for each in found:
        for name, total in each.items():
            totals[name] = totals.get(name, _Total()).plus(total)
    return totals


def _of_part(side: _Side, part: tuple[KeyGroups, range]) -> Mapping[str, _Total]:
    """Totals of some key groups of a file, by the name of the new state."""
    stored, groups = part
    prefix, key = prefix_length(side.groups), _key(side)
    with open_keyed(stored, side.path) as file:
        compared = [list(_compared_states(side, state)) for state in file.header.states]
        timers = [state.kind is KeyedStateKind.TIMERS for state in file.header.states]
        totals = {name: _Total() for ways in compared for name, _ in ways}
        for number, group in file.groups(groups):
            with file.naming(number):
                runs = Runs(group, len(compared))
                for state in runs:
                    begin = runs.at
                    if not compared[state]:
                        runs.skip()
                    for name, part_of_value in compared[state]:
                        runs.at = begin
                        keys = key_plan((prefix, prefix), timers[state], side.groups, key is not None)
                        summed = EntrySum(*part_of_value, keys, side.in_groups, key)
                        totals[name] = totals[name].plus(_sum(summed, runs, number, name, side))
    return totals


def _sum(summed: EntrySum, runs: Runs, group: int, name: str, side: _Side) -> _Total:
    """Sum the entries of a state in a key group."""
    total = hash_sum()
    entries, found = summed.add(runs, group, total)
    if found == OTHER_GROUP:
        words = "a key is not in the key group where Flink looks for it"
        raise MigrationVerificationFailed(words) if side.new else SavepointUnreadable(words)
    if found == CHANGED:
        raise MigrationVerificationFailed(f"a row of the state {name} differs in more than its fields")
    return _Total(entries, int(total[1]) << 64 | int(total[0]))


def _names(side: _Side, header: KeyedHeader) -> tuple[str, ...]:
    """Names of the new states that are compared, in the order of their numbers."""
    assert side.line is not None
    kept = [state.new.name for state in side.line.states if state.old is not None]
    return (*kept, *sorted(state.name for state in header.states if state.kind is KeyedStateKind.TIMERS))


def _scattered(side: _Side, names: Sequence[str], part: tuple[KeyGroups, range]) -> Iterator[tuple[int, bytes]]:
    """Yield the kept parts of entries with their new keys, by key group."""
    stored, groups = part
    prefix = prefix_length(side.groups)
    scatter = Scatter((prefix, prefix), side.groups, _key(side))
    with open_keyed(stored, side.path) as file:
        states = file.header.states
        compared = [list(_compared_states(side, state)) for state in states]
        slices = slice_plans(side.slices, states, names)
        for _, group in file.groups(groups):
            runs = Runs(group)
            for state in runs:
                begin = runs.at
                if not compared[state]:
                    runs.skip()
                for name, (kept, _, _) in compared[state]:
                    runs.at = begin
                    timers = states[state].kind is KeyedStateKind.TIMERS
                    yield from scatter.run(runs, timers, names.index(name), kept, slices[state])
    yield from scatter.blocks()


def _united(
    side: _Side, names: Sequence[str], groups: range, entries: Iterable[tuple[int, bytes]]
) -> Mapping[str, _Total]:
    """Totals of the united entries of some key groups, by the name of the new state."""
    assert side.line is not None
    kept = {state.new.name: _kept_state(state) for state in side.line.states if state.old is not None}
    merged = MERGE_ROWS if side.line.merges else KEEP_FIRST
    timers = KEEP_FIRST if side.slices is None else ONLY_NEEDED
    union = EntryUnion.of(2 * [(merged, kept[name]) if name in kept else (timers, None) for name in names])
    totals = dict.fromkeys(names, _Total())
    prefix = prefix_length(side.groups)
    for number, content in entries:
        group = gathered_group(union(content), [0] * len(names))
        runs = Runs(group)
        for state in runs if group else ():
            keys = key_plan((prefix, prefix), names[state] not in kept, side.groups, False)
            summed = EntrySum(UNCHANGED, None, False, keys, True, None)
            totals[names[state]] = totals[names[state]].plus(_sum(summed, runs, number, names[state], side))
    return totals


def _kept_state(state: StateRewrite) -> NamedState:
    """Restrict a new state to its kept fields."""
    fields = tuple(state.new.value.fields[number] for _, number in _pairs(state))
    lives = state.new.time_to_live and state.old is not None and state.old.time_to_live
    return replace(state.new, value=Stored(state.new.value.form, fields), time_to_live=lives)


def _pairs(state: StateRewrite) -> list[tuple[int, int]]:
    """Pairs of positions of each kept field: in the old row, and in the new row."""
    return sorted((place, number) for number, place in enumerate(state.fields) if place is not None)


def _key(side: _Side) -> RowMapping | None:
    """Return the mapping of old keys to new ones; None if the keys are unchanged."""
    return None if side.line is None or side.new else key_change(side.line)


class _KeptPart(NamedTuple):
    """Mapping of a value to its kept part, and a mapping that must reproduce the whole content."""

    kept: ValueMapping
    whole: ValueMapping | None = None
    of_kept: bool = False


def _compared_states(side: _Side, state: KeyedState) -> Iterator[tuple[str, _KeptPart]]:
    """Yield the new states that a stored state is compared with, and how to extract the compared parts."""
    if side.line is None or state.kind is KeyedStateKind.TIMERS:
        yield state.name, _KeptPart(UNCHANGED)
        return
    made = [each for each in side.line.states if each.old is not None]
    for each in made:
        stored = each.new if side.new else each.old
        if stored is not None and stored.name == state.name:
            yield each.new.name, _kept_part(each, side.new, side.line.from_history)
    if side.new and state.name not in {each.new.name for each in made}:
        yield state.name, _KeptPart(UNCHANGED)  # A new state that replaces no old state must be empty.


def _kept_part(state: StateRewrite, new: bool, from_history: bool) -> _KeptPart:
    """Build the mapping of a value to its kept fields, in their new form and in the order of the old row.

    New fields must have their initial values.
    """
    stored, other = (state.new, state.old) if new else (state.old, state.new)
    assert state.old is not None
    assert stored is not None
    assert other is not None
    # The last write time is compared only if both jobs store it.
    stamps = stored.time_to_live, stored.time_to_live and other.time_to_live
    if state.adds_counts:
        taken, again = _kept_fields(state, stored, new)
        return _KeptPart(counted_mapping(stored, taken, stamps[1]), value_mapping(stored, again, False, False), new)
    if not stored.framing or row_change(state.old.row, state.new.row, state.fields) is None:
        return _KeptPart(value_mapping(stored, None, *stamps))
    taken, again = _kept_fields(state, stored, new)
    kept = value_mapping(stored, taken, *stamps)
    if new and from_history:
        return _KeptPart(kept)
    return _KeptPart(kept, value_mapping(stored, again, False, False, flag=False), new)


def _kept_fields(state: StateRewrite, stored: NamedState, new: bool) -> tuple[RowMapping, RowMapping]:
    """Return two mappings: from a row to its kept fields, and from kept fields to the whole row."""
    assert state.old is not None
    forms = [field_form(field.type) for field in stored.row]
    pairs = _pairs(state)
    places = [number if new else place for place, number in pairs]
    change = None if new else row_change(state.old.row, [state.new.row[number] for _, number in pairs], places)
    whole = [
        (places.index(place) if place in places else begin(field)) if new else place
        for place, field in enumerate(stored.row)
    ]
    return change or row_mapping(forms, places), row_mapping(
        [forms[place] for place in places] if new else forms, whole
    )
