"""A savepoint whose sources read only the rows between two savepoints of a job.

Jobs that start from it read exactly the same rows, and then end. The new savepoint consists of metadata: its keyed
state stays in the files of the first savepoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.metadata import (
    Handle,
    KeyGroups,
    OperatorLists,
    OperatorState,
    StateFile,
    SubtaskState,
)
from airflow_flinkcompat.savepoint.source_positions import (
    FilesRead,
    PartitionRead,
    positions,
    with_partitions,
    with_waiting_files,
)
from airflow_flinkcompat.savepoint.store import METADATA, place, read_metadata, reading

Part = TypeVar("Part", OperatorLists, KeyGroups)
_EARLIEST = -2
"""Kafka's position of a partition whose first record has not been read."""


def write_replay(first: str, last: str, folder: str) -> None:
    """Write a savepoint that replays the rows between two savepoints of the same job.

    Args:
        first: Path or URI of the savepoint at which the rows begin.
        last: Path or URI of a later savepoint of the job, at which the rows end.
        folder: Path or URI of the new savepoint, which refers to the files of ``first``.

    Raises:
        SavepointUnreadable: A savepoint cannot be read or written, or a position in a source is unknown.
    """
    begin = read_metadata(first)
    ends = {each.id: each for each in read_metadata(last).operators}
    operators = []
    for each in begin.operators:
        if each.coordinator is not None:
            each = _ending(each, first, ends.get(each.id), last)
        operators.append(_with_handles(each, lambda handle: _absolute(handle, first)))
    content = replace(begin, operators=tuple(operators)).to_bytes()
    with reading(folder):
        place(folder).mkdir(parents=True)
        place(f"{folder}/{METADATA}").write_bytes(content)


def _ending(source: OperatorState, first: str, later: OperatorState | None, last: str) -> OperatorState:
    """The source, with the position of the later savepoint as its end."""
    name = source.name or source.id
    begin = positions(source, first)
    end = None if later is None else positions(later, last)
    if isinstance(begin, FilesRead) and isinstance(end, FilesRead):
        return with_waiting_files(source, first, {uri: _size(uri) for uri in end.seen - begin.seen})
    if isinstance(begin, tuple) and isinstance(end, tuple):
        return with_partitions(source, first, _ending_partitions(name, begin, end))
    raise SavepointUnreadable(f"{name}: the position of the source in {first} or {last} is unknown")


def _ending_partitions(
    name: str, begin: tuple[PartitionRead, ...], end: tuple[PartitionRead, ...]
) -> list[PartitionRead]:
    starts = {(each.topic, each.partition): each.offset for each in begin}
    found = []
    for each in end:
        offset = starts.get((each.topic, each.partition), _EARLIEST)
        if offset < 0 and offset != _EARLIEST:
            raise SavepointUnreadable(
                f"{name} had not read partition {each.partition} of topic {each.topic} yet, so the first row is unknown"
            )
        found.append(replace(each, offset=offset, stop=max(each.offset, 0)))
    return found


def _size(uri: str) -> int:
    with reading(uri):
        return int(place(uri).stat().st_size)


def _absolute(handle: Handle, savepoint: str) -> Handle:
    if isinstance(handle, StateFile) and handle.relative:
        return replace(handle, path=f"{savepoint}/{handle.path}", relative=False)
    return handle


def _with_handles(operator: OperatorState, change: Callable[[Handle], Handle]) -> OperatorState:
    """Replace each handle of an operator."""

    def changed(part: Part | None) -> Part | None:
        return part if part is None or part.handle is None else replace(part, handle=change(part.handle))

    def of_subtask(each: SubtaskState) -> SubtaskState:
        lists, raw = changed(each.managed), changed(each.raw)
        return replace(each, managed=lists, raw=raw, keyed=changed(each.keyed), raw_keyed=changed(each.raw_keyed))

    coordinator = operator.coordinator and change(operator.coordinator)
    subtasks = operator.subtasks and tuple(map(of_subtask, operator.subtasks))
    return replace(operator, coordinator=coordinator, subtasks=subtasks)
