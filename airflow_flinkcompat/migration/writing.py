"""Writing of a migrated savepoint: state of the old job, operator ids and serializers of the new job.

The template is a savepoint of the new job that has read no rows. The ids and headers of the template are copied, so
that no serializer runs here. The old savepoint is never changed. ``_metadata`` is written last, so that Flink cannot
read an incomplete savepoint.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO

from upath import UPath

from airflow_flinkcompat.exec_graph.from_savepoint import layout_differences
from airflow_flinkcompat.exec_graph.layout import StateLayout, Unknown
from airflow_flinkcompat.exec_graph.migration import Migration, OperatorMigration
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateKind, StateSpec
from airflow_flinkcompat.exec_graph.rewriting import StateRewrite
from airflow_flinkcompat.migration.computed import ComputedOperator, Differences, StateComputer
from airflow_flinkcompat.migration.entries import entry_rewrites, entry_union, key_change
from airflow_flinkcompat.migration.fields import NotMigratable
from airflow_flinkcompat.migration.rewriting import OperatorRewriting, compressed_copy
from airflow_flinkcompat.migration.slices import merge_operator_state, reached, slices, watermarks
from airflow_flinkcompat.migration.target_folder import TargetFolder
from airflow_flinkcompat.migration.verifying import verify
from airflow_flinkcompat.migration.workers import LocalWorkers, Workers
from airflow_flinkcompat.savepoint.keyed_state import KeyedHeader, KeyedState, group_parts, group_ranges, keyed_headers
from airflow_flinkcompat.savepoint.metadata import (
    Handle,
    OperatorState,
    SavepointMetadata,
    StateFile,
    SubtaskState,
    parse_metadata,
)
from airflow_flinkcompat.savepoint.serializers import Serializer
from airflow_flinkcompat.savepoint.store import StoredContent, open_handle, read_handle, read_metadata


@dataclass(frozen=True)
class WrittenState:
    """The written state of one operator.

    Attributes:
        made: The operator's migration.
        entries: Number of entries by state; empty unless the operator was rewritten.
        sums: Sum of the hashes of kept parts by state, as returned by :func:`verify`; empty if verification did not
            run.
    """

    made: OperatorMigration
    entries: Mapping[str, int]
    sums: Mapping[str, str] = field(default_factory=dict)


def migrate_savepoint(
    source: str,
    template: str,
    target: str,
    migration: Migration,
    now: int,
    workers: Workers | None = None,
    history: StateComputer | None = None,
) -> tuple[WrittenState, ...]:
    """Write the savepoint from which the new job resumes. Publish the savepoint only after verification.

    Args:
        source: Path or URI of the old job's canonical savepoint, which is not changed.
        template: Path or URI of a savepoint that the new job took before it read any rows.
        target: Path or URI of the folder to write. The folder must be empty, except for files of a killed run.
        migration: Migration of each state.
        now: Last access timestamp, in milliseconds since 1970, of values that gain such a timestamp.
        workers: Workers that read and write keyed state; None to use this process.
        history: Computer of state from history; None if the migration needs no history.

    Returns:
        Written state of each operator that keeps or gains state.

    Raises:
        NotMigratable: A state cannot be kept, would be lost silently, or differs from the predicted layout.
        HistoryDiffers: State computed from history differs from the savepoint's kept state.
        SampleDiffers: The computed state of a key differs from the state that plain Python computes from its rows.
        MigrationVerificationFailed: The written state differs from the old state; nothing is published.
        SavepointUnreadable: A savepoint cannot be read, is damaged, or has an unknown format.
    """
    run = _Writing(source, template, target, now, workers, history)
    with run.target:
        metadata, written = run.write(migration)
        sums = verify(source, target, migration, parse_metadata(metadata.to_bytes()), run.workers, template)
        run.target.publish(metadata)
    return tuple(replace(each, sums=sums.get(each.made.new.id if each.made.new else "", {})) for each in written)


def write_migrated(source: str, template: str, target: str, migration: Migration, now: int) -> tuple[WrittenState, ...]:
    """Write the savepoint from which the new job resumes, without verification."""
    run = _Writing(source, template, target, now)
    with run.target:
        metadata, written = run.write(migration)
        run.target.publish(metadata)
    return written


def require_predicted_state(migration: Migration, savepoint: str) -> None:
    """Check that the old job's savepoint has the state layout that the old plan predicts."""
    # If the job has never run, the template replaces its savepoint. A template has stand-ins for sinks.
    compared = (line.old for line in migration.operators if not _is_sink_that_begins(line))
    _require_predicted("old", compared, savepoint, "savepoint")


def _is_sink_that_begins(line: OperatorMigration) -> bool:
    return line.effect is RestoreEffect.EMPTY and line.old is not None and line.old.kind is StateKind.SINK


def require_rewritable(migration: Migration) -> None:
    """Build all rewritings from predicted layouts only, so that a dry run fails like a real run."""
    for line in migration.operators:
        layouts = [spec and spec.layout for spec in (line.old, line.new)]
        if line.effect is RestoreEffect.REWRITTEN:
            old, new = (_predicted_header(each) for each in layouts if isinstance(each, StateLayout))
            key_change(line)
            entry_rewrites(line, old, new, 0)
            entry_union(line, new)


def _predicted_header(layout: StateLayout) -> KeyedHeader:
    """Build a header with the predicted names and kinds of states."""
    no_serializer = Serializer("", (), (), b"")
    states = tuple(KeyedState(state.name, state.kind, None, no_serializer) for state in layout.states)
    return KeyedHeader(False, no_serializer, states, b"")


def require_predicted_template(migration: Migration, template: str) -> None:
    """Check that the template has the state layout that the new plan predicts."""
    _require_predicted("new", (line.new for line in migration.operators), template, "template")


def _require_predicted(which: str, specs: Iterable[StateSpec | None], path: str, name: str) -> None:
    found = layout_differences((spec for spec in specs if spec is not None), path, muted_sinks=name == "template")
    if found:
        differences = "; ".join(f"{each.operator}: {each.words(f'the {which} plan', f'the {name}')}" for each in found)
        remedy = f". {_OTHER_OPERATORS}" if name == "template" and any(each.is_missing for each in found) else ""
        raise NotMigratable(f"the {name} differs from the layout that the {which} plan predicts: {differences}{remedy}")


_OTHER_OPERATORS = (
    "If Flink plans other operators before stand-ins than before the real sinks, take a template with sinks of the "
    "same connectors, and pass it to migrate apply with --template"
)
_DRAINED = (
    "the savepoint stores no open windows, and rows that arrive later would be late. Take a savepoint without drain"
)
_END_OF_TIME = (1 << 63) - 1
"""The watermark that Flink emits when a source ends, which is later than all rows."""


class _Writing:
    def __init__(
        self,
        source: str,
        template: str,
        target: str,
        now: int,
        workers: Workers | None = None,
        history: StateComputer | None = None,
    ) -> None:
        self._history = history
        self._source, self._template, self._now = source, template, now
        self.target = TargetFolder(UPath(_plain(target)))
        self.workers = workers or LocalWorkers(self.target.disk)
        self._head = read_metadata(source)
        self._old = {each.id: each for each in self._head.operators}
        self._new = read_metadata(template)
        self._copied: dict[str, StateFile] = {}

    def write(self, migration: Migration) -> tuple[SavepointMetadata, tuple[WrittenState, ...]]:
        require_predicted_state(migration, self._source)
        require_predicted_template(migration, self._template)
        taken = self._matched(migration)
        for line in taken.values():
            self._require_equal_headers(line)
        if self._head.drained:
            raise NotMigratable(f"the job was stopped with drain: {_DRAINED}")
        for each in self._old.values():
            if _END_OF_TIME in watermarks(each, self._source):
                raise NotMigratable(
                    f"{each.name or each.id} has reached the final watermark, as after a stop with drain: {_DRAINED}"
                )
        self.target.begin()
        written: list[WrittenState] = []
        operators = []
        for operator in (*self._new.operators, *self._missing_sinks(taken)):
            made = taken.get(operator.id)
            if made is None:
                operators.append(_empty(operator))
                continue
            if made.old is None and made.new is not None and made.new.kind is StateKind.POSITIONS:
                if self._history is None:
                    raise NotMigratable(f"{_name(made)} needs state from history: pass the history")
                operators.append(self._history.advance_source(operator, self._template))
                continue
            state, counts = self._operator(operator, self._old[made.old.id] if made.old else _empty(operator), made)
            operators.append(state)
            written.append(WrittenState(made, counts))
        head = self._head
        metadata = SavepointMetadata(
            self._new.format, head.checkpoint_id, head.masters, tuple(operators), head.properties
        )
        return metadata, tuple(written)

    def _matched(self, migration: Migration) -> Mapping[str, OperatorMigration]:
        """Return the migration of each operator that has state to write, by the new operator's id.

        Every state of the old savepoint must have a migration.
        """
        for line in migration.operators:
            if line.effect is RestoreEffect.NOT_MIGRATABLE:
                raise NotMigratable(f"the state of {_name(line)} cannot be kept: {line.reason}")
            if line.effect is RestoreEffect.DROPPED and line.old is not None and line.old.kind is StateKind.SINK:
                raise NotMigratable(
                    f"uncommitted data of the sink {line.old.name} would be lost, because the new job has no such sink"
                )
        templates = {operator.id for operator in self._new.operators}
        taken = {}
        for line in migration.of_savepoint({each.id for each in self._old.values() if each.has_state}):
            computed = line.effect is RestoreEffect.COMPUTED
            if line.effect in (RestoreEffect.EMPTY, RestoreEffect.DROPPED) or line.new is None:
                continue
            if line.old is None and not computed:
                continue
            if line.new.id not in templates and not self._needs_no_template(line):
                raise NotMigratable(f"the template has no operator {_name(line)}: take a template from the new script")
            taken[line.new.id] = line
        return taken

    def _require_equal_headers(self, line: OperatorMigration) -> None:
        """Raise NotMigratable if a state without a predicted layout has different serializers in the template."""
        if line.old is None or line.new is None or not isinstance(line.old.layout, Unknown):
            return
        if line.effect in (RestoreEffect.RIGHT, RestoreEffect.MOVED):
            old, new = self._old[line.old.id], next(each for each in self._new.operators if each.id == line.new.id)
            stored, wanted = _serializers(old, self._source), _serializers(new, self._template)
            if stored and stored != wanted:
                why = line.old.layout.reason
                raise NotMigratable(
                    f"the serializers of {_name(line)} differ between the savepoint and the template, and {why}"
                )

    def _needs_no_template(self, line: OperatorMigration) -> bool:
        """True if sink state needs no template, because its lists contain their serializers."""
        assert line.old is not None
        return line.old.kind is StateKind.SINK and not any(each.keyed for each in self._old[line.old.id].subtasks or ())

    def _missing_sinks(self, taken: Mapping[str, OperatorMigration]) -> Iterator[OperatorState]:
        """Yield the sinks that the template lacks because it has stand-ins for them."""
        held = {operator.id: operator for operator in self._new.operators}
        # Flink rejects a savepoint if an operator's stored maximum parallelism differs from the job's value.
        limits = {
            self._old[line.old.id].max_parallelism: held[number].max_parallelism
            for number, line in taken.items()
            if number in held and line.old is not None
        }
        for number, line in taken.items():
            if number not in held and line.old is not None:
                old = self._old[line.old.id]
                yield replace(old, id=number, max_parallelism=limits.get(old.max_parallelism, old.max_parallelism))

    def _operator(
        self, new: OperatorState, old: OperatorState, made: OperatorMigration
    ) -> tuple[OperatorState, Mapping[str, int]]:
        # Flink cannot restore an operator with more subtasks than its maximum parallelism.
        parallelism = min(old.parallelism, new.max_parallelism)
        subtasks = self._lists(old, parallelism)
        state = replace(new, parallelism=parallelism, coordinator=self._carried(old.coordinator), subtasks=subtasks)
        keyed = tuple(each.keyed for each in old.subtasks or () if each.keyed is not None)
        if made.effect is RestoreEffect.COMPUTED:
            return self._computed(state, new, old, made, parallelism)
        if not keyed:
            if made.from_history:
                raise NotMigratable(
                    f"{_name(made)} has no keyed state in the savepoint that computed state could be added to"
                )
            return state, {}
        if made.effect is not RestoreEffect.REWRITTEN and new.max_parallelism == old.max_parallelism:
            carried = tuple(
                replace(each, keyed=own.keyed and compressed_copy(own.keyed, self._source, self.target.path))
                for each, own in zip(subtasks or (), old.subtasks or (), strict=True)
            )
            return replace(state, subtasks=carried), {}
        widths = old.max_parallelism, new.max_parallelism
        header = self._header(new, made)
        made_of = slices(made, old, self._source)
        work = OperatorRewriting(
            self._source, keyed, _complete_migration(made), header, widths, self.target.path, self._now, made_of
        )
        return self._rewritten(
            state, work, parallelism, reached(made.old, old, self._source, self.workers) if made.from_history else None
        )

    def _computed(
        self, state: OperatorState, new: OperatorState, old: OperatorState, made: OperatorMigration, parallelism: int
    ) -> tuple[OperatorState, Mapping[str, int]]:
        """Write an operator whose keyed state is all computed from history. Its operator lists are kept."""
        watermark, header = reached(made.old, old, self._source, self.workers), self._header(new, made)
        widths = old.max_parallelism, new.max_parallelism
        work = OperatorRewriting(self._source, (), made, header, widths, self.target.path, self._now)
        return self._rewritten(state, work, parallelism, watermark)

    def _rewritten(
        self, state: OperatorState, work: OperatorRewriting, parallelism: int, watermark: int | None
    ) -> tuple[OperatorState, Mapping[str, int]]:
        """Write one file per subtask of an operator. Flink can distribute the files at any parallelism."""
        size = sum(each.handle.size for each in work.stored if each.handle is not None)
        if any(each.index < 0 for each in state.subtasks or ()):
            raise NotMigratable(
                f"a subtask of {_name(work.made)} has finished: take a savepoint while all subtasks run"
            )
        parts = min(max(parallelism, self.workers.parts(size, work.widths[1])), work.widths[1])
        ranges = group_ranges(work.widths[1], parts)
        stored = group_parts(work.stored, self.workers.parts)
        if work.made.from_history:
            if self._history is None:
                raise NotMigratable(f"{_name(work.made)} needs state from history: pass the history")
            wanted = ComputedOperator(work.made, work.header, work.widths[1], watermark, self._now)
            written = self._history.regroup(wanted, work.scatter, stored, work.gather, ranges)
            differences = Differences()
            for part in written:
                differences += part.differences or Differences()
            self._history.report_differences(_name(work.made), differences)
            if not differences:
                self._history.check_sample(wanted, [part.groups for part in written], self.target.path)
        elif work.in_place:
            written = self.workers.each(work.copy, ranges)
        else:
            written = self.workers.regroup(work.scatter, stored, work.gather, ranges)
        counts: Counter[str] = Counter()
        for part in written:
            counts.update(part.entries)
        lists = {each.index: each for each in state.subtasks or ()}
        subtasks = tuple(
            replace(lists.get(index, SubtaskState(index)), keyed=part.groups) for index, part in enumerate(written)
        )
        return replace(state, parallelism=parts, subtasks=subtasks), counts

    def _header(self, new: OperatorState, made: OperatorMigration) -> KeyedHeader:
        for header in keyed_headers(new, self._template):
            return header
        raise NotMigratable(f"the template has no keyed state of {_name(made)}")

    def _lists(self, old: OperatorState, parallelism: int) -> tuple[SubtaskState, ...] | None:
        """Operator lists of each subtask. If there are fewer subtasks than before, lists are merged."""
        if any(each.raw is not None or each.raw_keyed is not None for each in old.subtasks or ()):
            raise NotMigratable(f"{old.name or old.id} has raw state, which cannot be migrated")
        subtasks = old.subtasks and tuple(replace(each, keyed=None) for each in old.subtasks)
        if not subtasks or max(each.index for each in subtasks) < parallelism:
            return subtasks and tuple(map(self._copied_lists, subtasks))
        if any(each.index < 0 for each in subtasks):
            raise NotMigratable(
                f"a subtask of {old.name or old.id} has finished: take a savepoint while all subtasks run"
            )
        alike = ([each for each in subtasks if each.index % parallelism == index] for index in range(parallelism))
        return tuple(self._merge(index, each) for index, each in enumerate(alike))

    def _copied_lists(self, subtask: SubtaskState) -> SubtaskState:
        lists = subtask.managed
        return replace(subtask, managed=lists and replace(lists, handle=self._carried(lists.handle)))

    def _merge(self, index: int, subtasks: Sequence[SubtaskState]) -> SubtaskState:
        managed = [each.managed for each in subtasks if each.managed is not None]
        stored = [(each, read_handle(each.handle, self._source)) for each in managed]
        if not stored:
            return SubtaskState(index)
        lists, content = merge_operator_state(stored)
        handle = self.target.copy(StoredContent("lists", len(content), BytesIO(content)))
        return SubtaskState(index, replace(lists, handle=handle))

    def _carried(self, handle: Handle | None) -> Handle | None:
        """Copy a file to the new folder. Flink may delete the files of a savepoint that the new job claims."""
        if not isinstance(handle, StateFile):
            return handle
        if handle.path not in self._copied:
            with open_handle(handle, self._source) as content:
                self._copied[handle.path] = self.target.copy(content)
        return self._copied[handle.path]


def _empty(operator: OperatorState) -> OperatorState:
    subtasks = operator.subtasks and tuple(SubtaskState(each.index) for each in operator.subtasks)
    return replace(operator, coordinator=None, subtasks=subtasks)


def _complete_migration(made: OperatorMigration) -> OperatorMigration:
    """Complete the migration of an unchanged operator whose entries move to other key groups."""
    if made.effect is RestoreEffect.REWRITTEN:
        return made
    layout = made.new.layout if made.new is not None else None
    if not isinstance(layout, StateLayout):
        raise NotMigratable(f"the key groups of {_name(made)} have changed, but its state layout is unknown")
    states = tuple(StateRewrite(each, each, tuple(range(len(each.row)))) for each in layout.states)
    return replace(made, key=tuple(range(len(layout.key))), states=states)


def _serializers(operator: OperatorState, path: str) -> set[object]:
    """Serializers of each subtask's keys and states.

    The order of the states depends on the state backend and is ignored.
    """
    return {(header.key, frozenset(header.states)) for header in keyed_headers(operator, path)}


def _name(line: OperatorMigration) -> str:
    spec = line.new or line.old
    return spec.name if spec is not None else ""


def _plain(path: str) -> str:
    return re.sub(r"^file:/+", "/", path)
