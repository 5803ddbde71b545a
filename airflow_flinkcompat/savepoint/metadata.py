"""The ``_metadata`` file of a canonical savepoint: its operators, and the place of their state.

Format versions 4 to 6 of canonical savepoints are supported, as found in savepoints of Flink 1.18 to 2.3. A file that
is read and written again has the same bytes. Operator names are stored since version 5.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from airflow_flinkcompat.savepoint.binary import (
    DataReader,
    SavepointUnreadable,
    require_version,
    write_int,
    write_long,
    write_text,
)

_MAGIC = 0x4960672D
_MASTER_MAGIC = 0xC96B1696
_VERSIONS = (4, 5, 6)
_NAMED_SINCE = 5
_TERMINATED = b"\x00\x09TERMINATE"
_NOTHING, _LISTS = 0, 4
_ALL_FINISHED = -1
_INCREMENTAL = 11
_OTHER_FORMS = {
    **dict.fromkeys((3, 12), "has the form of a checkpoint or a native savepoint"),
    **dict.fromkeys((5, 11), "consists of files of RocksDB or ForSt, as in a checkpoint or a native savepoint"),
    **dict.fromkeys((8, 9, 10, 13, 14), "is a log of changes, as in a changelog checkpoint"),
}
_ONLY_CANONICAL = "only a canonical savepoint can be read, which `flink stop --type canonical <job id>` takes"


class _HandleKind(IntEnum):
    NOTHING = 0
    INLINE = 1
    FILE = 2
    RELATIVE_FILE = 6


@dataclass(frozen=True)
class Inline:
    """Content in the metadata itself, as Flink stores anything below 20 kB."""

    name: str
    content: bytes

    @property
    def size(self) -> int:
        return len(self.content)

    def to_bytes(self) -> bytes:
        return bytes([_HandleKind.INLINE]) + write_text(self.name) + write_int(len(self.content)) + self.content


@dataclass(frozen=True)
class StateFile:
    """Content in a file. ``relative``: ``path`` is below the folder of the savepoint; ``size`` in bytes."""

    path: str
    size: int
    relative: bool

    def to_bytes(self) -> bytes:
        path, size = write_text(self.path), write_long(self.size)
        return (
            bytes([_HandleKind.RELATIVE_FILE]) + path + size
            if self.relative
            else bytes([_HandleKind.FILE]) + size + path
        )


Handle = Inline | StateFile


@dataclass(frozen=True)
class ListState:
    """A list of operator state.

    ``mode``: redistribution among subtasks: 0 split, 1 whole to each (union), 2 the same in each (broadcast).
    ``begins``: offset of each element in the content of the handle.
    """

    name: str
    mode: int
    begins: tuple[int, ...]


@dataclass(frozen=True)
class OperatorLists:
    """The operator state of one subtask: lists whose elements are stored in one handle."""

    lists: tuple[ListState, ...]
    handle: Handle | None

    def to_bytes(self) -> bytes:
        out = [bytes([_LISTS]), write_int(len(self.lists))]
        for state in self.lists:
            begins = b"".join(map(write_long, state.begins))
            out += [write_text(state.name), bytes([state.mode]), write_int(len(state.begins)), begins]
        return b"".join([*out, _stored(self.handle)])


class KeyedForm(IntEnum):
    """The forms of keyed state in files of key groups; a canonical savepoint has ``SAVEPOINT_KEY_GROUPS``."""

    KEY_GROUPS = 3
    SAVEPOINT_KEY_GROUPS = 7
    KEY_GROUPS_WITH_ID = 12


@dataclass(frozen=True)
class DatabaseFiles:
    """Files of RocksDB or ForSt with keyed state, which are not read.

    ``groups``: number of key groups. ``shared`` and ``private``: local name and content of each file.
    """

    checkpoint_id: int
    backend: str
    groups: int
    size: int
    shared: tuple[tuple[str, Handle | None], ...]
    private: tuple[tuple[str, Handle | None], ...]


@dataclass(frozen=True)
class KeyGroups:
    """The keyed state of one subtask.

    ``begins``: offset of each key group in the content of the handle; 0 if the group is empty. ``id``: id of the state;
    "" if the form stores no id. ``files``: the files of a database, whose header is in the handle.
    """

    form: KeyedForm
    first: int
    begins: tuple[int, ...]
    handle: Handle | None
    id: str = ""
    files: DatabaseFiles | None = None

    @property
    def size(self) -> int:
        """Size in bytes."""
        return sum(map(_size, self.handles))

    @property
    def handles(self) -> Iterator[Handle | None]:
        yield self.handle
        if self.files is not None:
            yield from (handle for _, handle in (*self.files.shared, *self.files.private))

    def with_handles(self, change: Callable[[Handle], Handle]) -> KeyGroups:
        """Replace each handle."""

        def changed(files: Sequence[tuple[str, Handle | None]]) -> tuple[tuple[str, Handle | None], ...]:
            return tuple((name, handle and change(handle)) for name, handle in files)

        files = self.files and replace(
            self.files, shared=changed(self.files.shared), private=changed(self.files.private)
        )
        return replace(self, handle=self.handle and change(self.handle), files=files)

    @property
    def numbers(self) -> range:
        """Numbers of the key groups."""
        return range(self.first, self.first + len(self.begins))

    @property
    def filled(self) -> list[int]:
        """Numbers of the key groups that contain entries."""
        return [number for number, begin in zip(self.numbers, self.begins, strict=True) if begin > 0]

    def to_bytes(self) -> bytes:
        if (files := self.files) is not None:
            return b"".join(
                (
                    bytes([_INCREMENTAL]),
                    write_long(files.checkpoint_id),
                    write_text(files.backend),
                    *(write_int(self.first), write_int(files.groups), write_long(files.size)),
                    _stored(self.handle),
                    *map(_stored_files, (files.shared, files.private)),
                    write_text(self.id),
                )
            )
        begins = struct.pack(f">{len(self.begins)}q", *self.begins)
        last = write_text(self.id) if self.form is KeyedForm.KEY_GROUPS_WITH_ID else b""
        return (
            bytes([self.form])
            + write_int(self.first)
            + write_int(len(self.begins))
            + begins
            + _stored(self.handle)
            + last
        )


@dataclass(frozen=True)
class SubtaskState:
    """State of one subtask of an operator.

    Attributes:
        index: Number of the subtask; negative if it had finished and stores nothing.
        raw: Lists that the operator wrote itself.
        raw_keyed: State by key that the operator wrote itself.
        marked: For managed and for raw lists: True if they are marked as present, even if they contain no state.
    """

    index: int
    managed: OperatorLists | None = None
    raw: OperatorLists | None = None
    keyed: KeyGroups | None = None
    raw_keyed: KeyGroups | None = None
    marked: tuple[bool, bool] = (False, False)

    @property
    def has_state(self) -> bool:
        return any(part is not None for part in (self.managed, self.raw, self.keyed, self.raw_keyed))

    @property
    def by_key(self) -> tuple[KeyGroups, ...]:
        """The managed and the raw keyed state."""
        return tuple(each for each in (self.keyed, self.raw_keyed) if each is not None)

    def to_bytes(self) -> bytes:
        out = [write_int(self.index)]
        if self.index < 0:
            return out[0]
        for marked, lists in zip(self.marked, (self.managed, self.raw), strict=True):
            out.append(write_int(int(marked or lists is not None)))
            if marked or lists is not None:
                out.append(_stored(lists))
        # Two zeros: no in-flight records.
        return b"".join([*out, _stored(self.keyed), _stored(self.raw_keyed), write_int(0), write_int(0)])


@dataclass(frozen=True)
class OperatorState:
    """One operator of a savepoint.

    Attributes:
        id: Id by which Flink finds the operator, 32 hex digits.
        uid: Uid set by a program; "" without one.
        coordinator: State of the operator's coordinator on the JobManager, such as the coordinator of a source.
        subtasks: State of each subtask; None if all subtasks had finished.
    """

    id: str
    name: str
    uid: str
    parallelism: int
    max_parallelism: int
    coordinator: Handle | None
    subtasks: tuple[SubtaskState, ...] | None

    @property
    def has_state(self) -> bool:
        """True if the operator has state. Flink refuses the savepoint if a job lacks such an operator."""
        return self.coordinator is not None or any(subtask.has_state for subtask in self.subtasks or ())

    @property
    def lists(self) -> tuple[OperatorLists, ...]:
        """The operator state of all subtasks; for each subtask, managed lists precede raw lists."""
        return tuple(lists for each in self.subtasks or () for lists in (each.managed, each.raw) if lists is not None)

    @property
    def keyed_size(self) -> int:
        """Size of the keyed state in bytes."""
        return sum(part.size for each in self.subtasks or () for part in each.by_key)

    @property
    def list_size(self) -> int:
        """Size of the operator state in bytes."""
        return sum(_size(lists.handle) for lists in self.lists)

    @property
    def coordinator_size(self) -> int:
        """Size of the coordinator's state in bytes."""
        return _size(self.coordinator)

    def to_bytes(self, named: bool) -> bytes:
        """The stored form. ``named``: True if the format stores operator names."""
        subtasks = _ALL_FINISHED if self.subtasks is None else len(self.subtasks)
        head = write_text(self.name) + write_text(self.uid) if named else b""
        return b"".join(
            (
                head,
                bytes.fromhex(self.id),
                write_int(self.parallelism),
                write_int(self.max_parallelism),
                _stored(self.coordinator),
                write_int(subtasks),
                *(subtask.to_bytes() for subtask in self.subtasks or ()),
            )
        )


@dataclass(frozen=True)
class SavepointMetadata:
    """A ``_metadata`` file.

    ``properties``: kind of the savepoint in Java's serialization; copied unchanged.
    """

    format: int
    checkpoint_id: int
    masters: tuple[bytes, ...]
    operators: tuple[OperatorState, ...]
    properties: bytes

    @property
    def drained(self) -> bool:
        """True if the savepoint is from a stop with drain, which emits all windows."""
        return _TERMINATED in self.properties

    @property
    def keyed_size(self) -> int:
        """Size of all keyed state in bytes."""
        return sum(operator.keyed_size for operator in self.operators)

    def handles(self) -> Iterator[Handle]:
        lists = (lists for operator in self.operators for lists in operator.lists)
        coordinators = (operator.coordinator for operator in self.operators)
        keyed = (part for each in self.operators for subtask in each.subtasks or () for part in subtask.by_key)
        found = (
            *coordinators,
            *(each.handle for each in lists),
            *(handle for each in keyed for handle in each.handles),
        )
        return (handle for handle in found if handle is not None)

    def to_bytes(self) -> bytes:
        masters = (struct.pack(">Ii", _MASTER_MAGIC, len(state)) + state for state in self.masters)
        return b"".join(
            (
                struct.pack(">Iiqi", _MAGIC, self.format, self.checkpoint_id, len(self.masters)),
                *masters,
                write_int(len(self.operators)),
                *(operator.to_bytes(self.format >= _NAMED_SINCE) for operator in self.operators),
                self.properties,
            )
        )


def parse_metadata(content: bytes, *, headers: bool = False) -> SavepointMetadata:
    """Parse a ``_metadata`` file; ``headers``: only headers are used, so accept incremental checkpoints."""
    reader = DataReader(content)
    if reader.take(4) != struct.pack(">I", _MAGIC):
        raise SavepointUnreadable("its _metadata was not written by Flink")
    version = reader.int32()
    require_version("its _metadata", version, _VERSIONS)
    checkpoint_id = reader.int64()
    masters = []
    for _ in range(reader.count()):
        if reader.take(4) != struct.pack(">I", _MASTER_MAGIC):
            raise SavepointUnreadable("a master state is damaged")
        masters.append(reader.take(reader.int32()))
    operators = tuple(_operator(reader, version >= _NAMED_SINCE, headers) for _ in range(reader.count()))
    return SavepointMetadata(version, checkpoint_id, tuple(masters), operators, reader.rest())


def _operator(reader: DataReader, named: bool, headers: bool) -> OperatorState:
    name, uid = (reader.text(), reader.text()) if named else ("", "")
    id = reader.take(16).hex()
    parallelism, max_parallelism = reader.int32(), reader.int32()
    coordinator = _handle(reader)
    if reader.content[reader.at : reader.at + 4] == write_int(_ALL_FINISHED):
        reader.take(4)
        return OperatorState(id, name, uid, parallelism, max_parallelism, coordinator, None)
    subtasks = tuple(_subtask(reader, headers) for _ in range(reader.count()))
    return OperatorState(id, name, uid, parallelism, max_parallelism, coordinator, subtasks)


def _subtask(reader: DataReader, headers: bool) -> SubtaskState:
    index = reader.int32()
    if index < 0:
        return SubtaskState(index)
    lists: list[OperatorLists | None] = []
    marked = []
    for _ in range(2):
        marked.append(bool(reader.int32()))
        lists.append(_lists(reader) if marked[-1] else None)
    keyed, raw_keyed = _key_groups(reader, headers), _key_groups(reader, True)
    if reader.int32() or reader.int32():
        raise SavepointUnreadable(f"it contains in-flight records, as an unaligned checkpoint does: {_ONLY_CANONICAL}")
    return SubtaskState(index, lists[0], lists[1], keyed, raw_keyed, (marked[0], marked[1]))


def _lists(reader: DataReader) -> OperatorLists | None:
    kind = reader.uint8()
    if kind == _NOTHING:
        return None
    if kind != _LISTS:
        raise SavepointUnreadable(f"an operator state has the unknown kind {kind}")
    lists = tuple(
        ListState(reader.text(), reader.uint8(), reader.int64s(reader.count())) for _ in range(reader.count())
    )
    return OperatorLists(lists, _handle(reader))


def _key_groups(reader: DataReader, headers: bool) -> KeyGroups | None:
    kind = reader.uint8()
    if kind == _NOTHING:
        return None
    if headers and kind == _INCREMENTAL:
        return _incremental(reader)
    if kind not in (tuple(KeyedForm) if headers else (KeyedForm.SAVEPOINT_KEY_GROUPS,)):
        found = _OTHER_FORMS.get(kind, f"has the unknown kind {kind}")
        raise SavepointUnreadable(f"its keyed state {found}: {_ONLY_CANONICAL}")
    form = KeyedForm(kind)
    first, begins, handle = reader.int32(), reader.int64s(reader.count()), _handle(reader)
    return KeyGroups(form, first, begins, handle, reader.text() if form is KeyedForm.KEY_GROUPS_WITH_ID else "")


def _incremental(reader: DataReader) -> KeyGroups:
    """The header of state that a checkpoint keeps in files of RocksDB or ForSt."""
    checkpoint_id, backend = reader.int64(), reader.text()
    first, groups, size = reader.int32(), reader.int32(), reader.int64()
    header = _handle(reader)
    shared, private = (
        tuple((reader.text(), _handle(reader)) for _ in range(reader.count())) for _ in ("shared", "private")
    )
    files = DatabaseFiles(checkpoint_id, backend, groups, size, shared, private)
    return KeyGroups(KeyedForm.KEY_GROUPS, first, (), header, reader.text(), files)


def _handle(reader: DataReader) -> Handle | None:
    match reader.uint8():
        case _HandleKind.NOTHING:
            return None
        case _HandleKind.INLINE:
            return Inline(reader.text(), reader.take(reader.int32()))
        case _HandleKind.FILE:
            size = reader.int64()
            return StateFile(reader.text(), size, relative=False)
        case _HandleKind.RELATIVE_FILE:
            return StateFile(reader.text(), reader.int64(), relative=True)
        case kind:
            raise SavepointUnreadable(f"a state handle has the unknown kind {kind}")


def _size(handle: Handle | None) -> int:
    return 0 if handle is None else handle.size


def _stored_files(files: Sequence[tuple[str, Handle | None]]) -> bytes:
    return write_int(len(files)) + b"".join(write_text(name) + _stored(handle) for name, handle in files)


def _stored(part: Handle | OperatorLists | KeyGroups | None) -> bytes:
    return bytes([_NOTHING]) if part is None else part.to_bytes()
