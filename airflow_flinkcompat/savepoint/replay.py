"""Savepoints whose sources read only the rows between two savepoints of a job.

Jobs that start from such a savepoint read exactly the same rows, and then end or stop reading. The new savepoint
consists of metadata: its keyed state stays in the files of the first savepoint.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

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
    with_files,
    with_partitions,
    with_waiting_files,
)
from airflow_flinkcompat.savepoint.store import METADATA, place, read_metadata, reading

_EARLIEST = -2
"""Kafka's position of a partition whose first record has not been read."""


def write_replay(
    first: str,
    last: str,
    folder: str,
    *,
    ends: bool = True,
    ids: Mapping[str, str] = MappingProxyType({}),
    without: Collection[str] = (),
) -> None:
    """Write a savepoint that replays the rows between two savepoints of the same job.

    Args:
        first: Path or URI of the savepoint at which the rows begin.
        last: Path or URI of a later savepoint of the job, at which the rows end.
        folder: Path or URI of the new savepoint, which refers to the files of ``first``.
        ends: True if the sources end after the last row. False if they stop reading, but the job keeps running. Then
            the job emits no final watermark.
        ids: For each source whose operator id differs between both savepoints: the id in ``last`` by the id in
            ``first``.
        without: Ids of sources to leave out. They read all rows of their tables.

    Raises:
        SavepointUnreadable: A savepoint cannot be read or written, or a position in a source is unknown. With
            ``ends=False``, also if ``last`` contains a file that was read in part.
    """
    sources = {each.id: each for each in read_metadata(last, headers=True).operators}

    def ending(source: OperatorState) -> OperatorState | None:
        if source.id in without:
            return None
        return _ending(source, first, sources.get(ids.get(source.id, source.id)), last, ends)

    _write(first, folder, lambda each: each if each.coordinator is None else ending(each))


def write_beginning(last: str, folder: str, ids: Mapping[str, str] | None = None) -> None:
    """Write a savepoint without state, from which sources read all rows up to a savepoint, but do not end.

    A topic is read from its offset 0.

    Args:
        last: Path or URI of the savepoint at which the rows end.
        folder: Path or URI of the new savepoint.
        ids: The id in ``last`` of each source, by the id in the new savepoint. If None, all sources keep their ids.

    Raises:
        SavepointUnreadable: The savepoint cannot be read, a position in a source is unknown, or a file was read in
            part.
    """
    sources = {each.id: each for each in read_metadata(last, headers=True).operators if each.coordinator is not None}
    taken = {each: each for each in sources} if ids is None else ids
    made = [replace(_beginning(sources[old], last), id=new) for new, old in taken.items()]
    _write(last, folder, lambda _: None, made)


def _beginning(source: OperatorState, last: str) -> OperatorState:
    """The source at its earliest row, with its position in ``last`` as its end."""
    read = positions(source, last)
    if isinstance(read, FilesRead):
        _require_complete(source, read, last)
        return with_waiting_files(with_files(source, last, ()), last, {uri: _size(uri) for uri in read.seen})
    if read is None:
        raise _unknown(source, last)
    # the first offset of a topic, even if retention has deleted its row
    begin = tuple(replace(each, offset=0) for each in read)
    return with_partitions(source, last, _ending_partitions(_name(source), begin, read), ends=False)


def write_resumable(own: str, positions_of: str, folder: str, ids: Mapping[str, str]) -> None:
    """Write a savepoint with the state of one job and the source positions of another job.

    Args:
        own: Path or URI of the savepoint with the state.
        positions_of: Path or URI of the savepoint with the positions, and with uncommitted rows of sinks.
        folder: Path or URI of the new savepoint, which refers to the files of both savepoints.
        ids: The id in ``positions_of`` of each source and sink, by the id in the new savepoint.

    Raises:
        SavepointUnreadable: A savepoint cannot be read or written, or ``positions_of`` does not fit the job.
    """
    head = read_metadata(positions_of, headers=True)
    others = {each.id: each for each in head.operators}
    taken = {new: others[old] for new, old in ids.items() if old in others}
    held = {each.id: each for each in read_metadata(own, headers=True).operators}
    # Flink rejects a savepoint if an operator's stored maximum parallelism differs from the job's value.
    widths = {each.max_parallelism: held[new].max_parallelism for new, each in taken.items() if new in held}
    added = {}
    for new, each in taken.items():
        width = widths.get(each.max_parallelism, each.max_parallelism)
        if each.parallelism > width:
            raise SavepointUnreadable(f"{_name(each)} has {each.parallelism} subtasks, and the new job at most {width}")
        made = replace(each, id=new, max_parallelism=width)
        added[new] = _with_handles(made, lambda handle: _absolute(handle, positions_of))
    # A sink names its transactions by the number of the checkpoint, so the new job must not use these numbers again.
    _write(own, folder, lambda each: None if each.id in added else each, tuple(added.values()), head.checkpoint_id)


def write_renamed(savepoint: str, folder: str, renamed: Callable[[str], str | None]) -> None:
    """Write a savepoint with other operator ids.

    Args:
        savepoint: Path or URI of the savepoint.
        folder: Path or URI of the new savepoint, which refers to the files of ``savepoint``. If both are equal, only
            the metadata is replaced.
        renamed: Function that returns the new id of an operator, or None for an operator to leave out.

    Raises:
        SavepointUnreadable: The savepoint cannot be read or written.
    """

    def change(operator: OperatorState) -> OperatorState | None:
        id = renamed(operator.id)
        return None if id is None else replace(operator, id=id)

    _write(savepoint, folder, change)


def reached_end(savepoint: str) -> bool:
    """True if all sources of a job with end positions had read all of their rows.

    Args:
        savepoint: Path or URI of the job's savepoint.

    Returns:
        False if a source still had rows to read.

    Raises:
        SavepointUnreadable: The savepoint cannot be read, or a position in a source is unknown.
    """
    for source in read_metadata(savepoint, headers=True).operators:
        if source.coordinator is None:
            continue
        read = positions(source, savepoint)
        if read is None:
            raise _unknown(source, savepoint)
        if (read.waiting or read.in_progress) if isinstance(read, FilesRead) else read:
            return False
    return True


def partitions_by_reader(replay: str, own: str) -> int:
    """Highest number of Kafka partitions that a subtask of a source read.

    Args:
        replay: Path or URI of the savepoint from which the job started.
        own: Path or URI of a savepoint of the job.

    Returns:
        The number; 0 if the job reads no topic.

    Raises:
        SavepointUnreadable: A savepoint cannot be read.
    """
    subtasks = {each.id: each.parallelism for each in read_metadata(own, headers=True).operators}
    read = (
        (positions(each, replay), subtasks.get(each.id, 1))
        for each in read_metadata(replay, headers=True).operators
        if each.coordinator is not None
    )
    return max((-(-len(each) // readers) for each, readers in read if isinstance(each, tuple)), default=0)


def _write(
    savepoint: str,
    folder: str,
    change: Callable[[OperatorState], OperatorState | None],
    added: Sequence[OperatorState] = (),
    checkpoint_id: int = 0,
) -> None:
    """Write metadata with changed operators, which refers to the files of ``savepoint``.

    The job's next checkpoint has a higher number than ``checkpoint_id``.
    """
    stored = read_metadata(savepoint, headers=True)
    changed = [made for each in stored.operators if (made := change(each)) is not None]
    operators = [
        each if folder == savepoint else _with_handles(each, lambda handle: _absolute(handle, savepoint))
        for each in (*changed, *added)
    ]
    number = max(stored.checkpoint_id, checkpoint_id)
    content = replace(stored, checkpoint_id=number, operators=tuple(operators)).to_bytes()
    with reading(folder):
        place(folder).mkdir(parents=True, exist_ok=True)
        place(f"{folder}/{METADATA}").write_bytes(content)


def _ending(source: OperatorState, first: str, later: OperatorState | None, last: str, ends: bool) -> OperatorState:
    """The source, with the position of the later savepoint as its end."""
    begin = positions(source, first)
    end = None if later is None else positions(later, last)
    if isinstance(begin, FilesRead) and isinstance(end, FilesRead):
        if not ends:
            _require_complete(source, end, last)
            if begin.seen - end.seen:
                raise _earlier(source, first, last)
        return with_waiting_files(source, first, {uri: _size(uri) for uri in end.seen - begin.seen})
    if isinstance(begin, tuple) and isinstance(end, tuple):
        ends_at = {(each.topic, each.partition): each.offset for each in end}
        # A job that recovers from a checkpoint may be behind an earlier savepoint.
        if any(ends_at.get((each.topic, each.partition), _EARLIEST) < each.offset for each in begin):
            raise _earlier(source, first, last)
        return with_partitions(source, first, _ending_partitions(_name(source), begin, end), ends=ends)
    raise _unknown(source, f"{first} or {last}")


def _require_complete(source: OperatorState, read: FilesRead, savepoint: str) -> None:
    if unfinished := sorted({each.path for each in (*read.waiting, *read.in_progress)}):
        raise SavepointUnreadable(f"{_name(source)} had not read {unfinished[0]} to its end in {savepoint}")


def _name(operator: OperatorState) -> str:
    return operator.name or operator.id


def _earlier(source: OperatorState, first: str, last: str) -> SavepointUnreadable:
    return SavepointUnreadable(f"{_name(source)} has a later position in {first} than in {last}")


def _unknown(source: OperatorState, savepoint: str) -> SavepointUnreadable:
    return SavepointUnreadable(f"{_name(source)}: the position of the source in {savepoint} is unknown")


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

    def lists(part: OperatorLists | None) -> OperatorLists | None:
        return part and replace(part, handle=part.handle and change(part.handle))

    def groups(part: KeyGroups | None) -> KeyGroups | None:
        return part and part.with_handles(change)

    def of_subtask(each: SubtaskState) -> SubtaskState:
        return replace(
            each,
            managed=lists(each.managed),
            raw=lists(each.raw),
            keyed=groups(each.keyed),
            raw_keyed=groups(each.raw_keyed),
        )

    coordinator = operator.coordinator and change(operator.coordinator)
    subtasks = operator.subtasks and tuple(map(of_subtask, operator.subtasks))
    return replace(operator, coordinator=coordinator, subtasks=subtasks)
