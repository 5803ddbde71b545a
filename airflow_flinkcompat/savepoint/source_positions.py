"""Positions of a savepoint's sources: the offsets of Kafka's partitions, the files of a folder.

``SourceOperator`` stores splits in a list of operator state, ``SourceCoordinator`` stores the state of the enumerator.
This module follows the code of Flink 1.20 and 2.3 and of the Kafka connectors 3.4 and 4.0. The module was compared with
savepoints of both Flink versions (``tests/fixtures/savepoints``).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_flinkcompat.savepoint.binary import DataReader, SavepointUnreadable, write_int, write_long, write_text
from airflow_flinkcompat.savepoint.metadata import Inline, OperatorState
from airflow_flinkcompat.savepoint.store import elements, read_handle, with_elements

SPLITS = "SourceReaderState"
"""The list in which the readers of a source keep their splits."""
_MAGIC = 0xDEADBEEF
_FILES = struct.pack("<I", _MAGIC)
_COORDINATOR_VERSIONS = (0, 1)
_PARTITIONS, _SPLITS = 2, 3
"""Versions of Kafka's enumerator state: it stores partitions, or splits, each with its status."""
_FILE_SPLIT_VERSION = 1
_SPLIT_VERSION, _ASSIGNED, _DISCOVERED = 0, 0, b"\x01"
_NO_STOP = -(1 << 63)
_NO_PARTITION = (1 << 31) - 1
_URI = re.compile(r"(?:([^:/]+):)?(?://([^/:]*)(?::(\d+))?)?(.*)", re.DOTALL)
"""Scheme, host, port and path of a file, as Flink writes them."""


class UnknownForm(SavepointUnreadable):
    """State of a source in a version or a form that is unknown."""


@dataclass(frozen=True)
class PartitionRead:
    """Position in one partition of a topic.

    ``offset``: the offset of the first record that has not been read; negative if no record has been read. ``stop``:
    the offset at which the source stops reading; None without an end.
    """

    topic: str
    partition: int
    offset: int
    stop: int | None = None


@dataclass(frozen=True)
class FileSplit:
    """A part of a file that has not been read to its end.

    ``records_read``: number of rows that were read after ``position``. ``position``: byte at which the count of rows
    starts; None for the start of the part.
    """

    path: str
    offset: int
    length: int
    file_size: int
    records_read: int = 0
    position: int | None = None


@dataclass(frozen=True)
class FilesRead:
    """Progress of a file source in its folder.

    Attributes:
        seen: The files that a source found, if it monitors its folder; none if it lists the folder once.
        waiting: The parts that no reader has begun to read.
        in_progress: The parts that readers are reading.
    """

    seen: frozenset[str]
    waiting: tuple[FileSplit, ...]
    in_progress: tuple[FileSplit, ...]


def kafka_positions(operator: OperatorState, path: str) -> tuple[PartitionRead, ...]:
    """Positions of a Kafka source in all assigned partitions, sorted by topic and partition number."""
    found = []
    for version, split in _splits(operator, path):
        if version not in (0, 1):
            raise UnknownForm(f"Kafka's splits have version {version}, which is not supported")
        reader = DataReader(split)
        topic, partition, offset, stop = reader.text(), reader.int32(), reader.int64(), reader.int64()
        found.append(PartitionRead(topic, partition, offset, None if stop == _NO_STOP else stop))
    return tuple(sorted(found, key=lambda each: (each.topic, each.partition)))


def file_positions(operator: OperatorState, path: str) -> FilesRead:
    """Progress of a file source, according to the state of its enumerator and its readers."""
    waiting, seen = _enumerated(_Coordinator.read(operator, path))
    in_progress = []
    for version, split in _splits(operator, path):
        _require_split_version(version)
        in_progress.append(_file_split(DataReader(split)))
    return FilesRead(seen, waiting, tuple(in_progress))


def positions(operator: OperatorState, path: str) -> tuple[PartitionRead, ...] | FilesRead | None:
    """Positions of a source of Kafka or of files, by the form of its state; None if the form is unknown."""
    coordinator = _Coordinator.read(operator, path)
    if coordinator.state.startswith(_FILES):
        return file_positions(operator, path)
    return kafka_positions(operator, path) if _is_of_kafka(coordinator) else None


def _is_of_kafka(coordinator: _Coordinator) -> bool:
    """True if an enumerator's state consists of partitions, each with its status, and a flag."""
    if coordinator.own not in (_PARTITIONS, _SPLITS):
        return False
    reader = DataReader(coordinator.state)
    try:
        count = reader.count()
        if coordinator.own == _SPLITS:
            reader.int32()  # the version of the splits
        for _ in range(count):
            if coordinator.own == _SPLITS:
                reader.take(reader.count())
            else:
                reader.text()
                reader.int32()
            reader.int32()
        reader.flag()
    except SavepointUnreadable:
        return False
    return reader.at == len(reader.content)


def with_partitions(
    operator: OperatorState, path: str, partitions: Sequence[PartitionRead], *, ends: bool = True
) -> OperatorState:
    """A Kafka source that resumes at these offsets, with partitions assigned to its subtasks in turn.

    ``ends``: the source ends if all partitions have a stop. Otherwise it stops reading, but does not end.
    """
    coordinator = _Coordinator.read(operator, path)
    if coordinator.own not in (_PARTITIONS, _SPLITS):
        raise SavepointUnreadable(f"Kafka's enumerator state has version {coordinator.own}, which is not supported")
    names = [write_text(each.topic) + write_int(each.partition) for each in partitions]
    splits = [
        name + write_long(each.offset) + write_long(_NO_STOP if each.stop is None else each.stop)
        for name, each in zip(names, partitions, strict=True)
    ]
    known = splits
    if ends and any(each.stop is not None for each in partitions):
        # With the bounded mode, a restored enumerator ends its readers only if partitions have changed. So add a
        # partition that does not exist.
        names = [*names, write_text(partitions[0].topic) + write_int(_NO_PARTITION)]
        known = [*splits, names[-1] + write_long(0) + write_long(0)]
    count, assigned = write_int(len(known)), write_int(_ASSIGNED)
    if coordinator.own == _PARTITIONS:
        parts = [count, *(name + assigned for name in names)]
    else:
        parts = [count, write_int(_SPLIT_VERSION), *(write_int(len(split)) + split + assigned for split in known)]
    advanced = coordinator.of(operator, b"".join((*parts, _DISCOVERED)))
    return _with_splits(advanced, path, [(_SPLIT_VERSION, split) for split in splits])


def with_files(operator: OperatorState, path: str, files: Collection[str]) -> OperatorState:
    """A file source that has completely read the files with these Flink URIs, and waits for other files."""
    coordinator = _Coordinator.read(operator, path)
    _enumerated(coordinator)
    return _with_splits(coordinator.of(operator, _enumerator((), files)), path, [])


def with_waiting_files(operator: OperatorState, path: str, files: Mapping[str, int]) -> OperatorState:
    """A file source that also has to read these files; ``files``: size in bytes by Flink URI."""
    coordinator = _Coordinator.read(operator, path)
    waiting, seen = _enumerator_parts(coordinator)
    added = [_new_split(number, uri, size) for number, (uri, size) in enumerate(sorted(files.items()))]
    return coordinator.of(operator, _enumerator((*waiting, *added), {*seen, *files}))


def _enumerator(splits: Sequence[bytes], files: Collection[str]) -> bytes:
    """State of the enumerator of a file source: its unassigned splits, and the files that it found."""
    parts = [*splits, *(each.encode() for each in sorted(files))]
    head = struct.pack("<Iiii", _MAGIC, _FILE_SPLIT_VERSION, len(splits), len(files))
    return head + b"".join(struct.pack("<i", len(part)) + part for part in parts)


def _new_split(number: int, uri: str, size: int) -> bytes:
    """A split with a whole file; its id must differ from the ids of all other splits."""
    scheme, host, port, path = _URI.fullmatch(uri).groups()  # type: ignore[union-attr]
    place = _stored_text(scheme) + _stored_text(None) + _stored_text(host or None) + write_int(int(port or -1))
    stored = b"\x01" + place + _stored_text(path) + _stored_text(None) * 2
    numbers = b"".join(map(write_long, (0, size, 0, size)))
    return write_text(f"added-{number}") + stored + numbers + write_int(0) + b"\x00"


def _with_splits(operator: OperatorState, path: str, splits: Sequence[tuple[int, bytes]]) -> OperatorState:
    """Assign splits, each with its version, to the readers of a source in turn."""
    subtasks = operator.subtasks or ()
    made = []
    for subtask in subtasks:
        lists = subtask.managed
        if lists is None or all(each.name != SPLITS for each in lists.lists):
            raise SavepointUnreadable(f"{operator.name or operator.id} stores no list of splits")
        own = (
            write_int(len(split) + 8) + write_int(version) + write_int(len(split)) + split
            for version, split in splits[subtask.index :: len(subtasks)]
        )
        made.append(replace(subtask, managed=with_elements(lists, read_handle(lists.handle, path), SPLITS, tuple(own))))
    return replace(operator, subtasks=tuple(made))


def _splits(operator: OperatorState, path: str) -> Iterator[tuple[int, bytes]]:
    """The version and the content of each split."""
    for each in operator.lists:
        for state, held in elements(each, read_handle(each.handle, path)):
            for element in held if state.name == SPLITS else ():
                reader = DataReader(element)
                reader.count()
                version = reader.int32()
                yield version, reader.take(reader.count())


@dataclass(frozen=True)
class _Coordinator:
    """State of a source's coordinator, with the enumerator's ``state``, whose version is ``own``."""

    version: int
    own: int
    state: bytes
    rest: bytes

    @classmethod
    def read(cls, operator: OperatorState, path: str) -> _Coordinator:
        if operator.coordinator is None:
            raise SavepointUnreadable(f"{operator.name or operator.id} stores no enumerator state")
        reader = DataReader(read_handle(operator.coordinator, path))
        version = reader.int32()
        if version not in _COORDINATOR_VERSIONS:
            raise UnknownForm(f"coordinator state has version {version}, which is not supported")
        return cls(version, reader.int32(), reader.take(reader.count()), reader.rest())

    def of(self, operator: OperatorState, state: bytes) -> OperatorState:
        """Return the operator with a different enumerator state."""
        head = write_int(self.version) + write_int(self.own) + write_int(len(state))
        return replace(operator, coordinator=Inline("coordinator", head + state + self.rest))


def _enumerated(coordinator: _Coordinator) -> tuple[tuple[FileSplit, ...], frozenset[str]]:
    """Parse the unassigned splits and the files that a file source found."""
    splits, files = _enumerator_parts(coordinator)
    return tuple(_file_split(DataReader(each)) for each in splits), files


def _enumerator_parts(coordinator: _Coordinator) -> tuple[tuple[bytes, ...], frozenset[str]]:
    """The unassigned splits as bytes, and the files that a file source found; lengths are little-endian."""
    reader = DataReader(coordinator.state)
    magic, splits_version, splits, paths = struct.unpack("<Iiii", reader.take(16))
    if magic != _MAGIC or coordinator.own != 1:
        raise UnknownForm("the enumerator state of the file source has an unknown form")

    def parts(count: int) -> Iterator[bytes]:
        for _ in range(count):
            yield reader.take(struct.unpack("<i", reader.take(4))[0])

    _require_split_version(splits_version)
    waiting = tuple(parts(splits))
    try:
        return waiting, frozenset(each.decode("utf-8") for each in parts(paths))
    except UnicodeDecodeError:
        raise SavepointUnreadable("the path of a file is not valid UTF-8: the savepoint is damaged") from None


def _require_split_version(version: int) -> None:
    if version != _FILE_SPLIT_VERSION:
        raise UnknownForm(f"file splits have version {version}, which is not supported")


def _file_split(reader: DataReader) -> FileSplit:
    reader.text()  # its id
    path = _path(reader)
    offset, length, _, size = (reader.int64() for _ in range(4))
    for _ in range(reader.count()):
        reader.text()  # a host
    if not reader.flag():
        return FileSplit(path, offset, length, size)
    position, records = reader.int64(), reader.int64()
    return FileSplit(path, offset, length, size, records, position if position > 0 else None)


def _path(reader: DataReader) -> str:
    """Read a URI, which is stored in parts."""
    if not reader.flag():
        raise SavepointUnreadable("a file split does not name its file")
    scheme, user, host = (_text(reader) for _ in range(3))
    port = reader.int32()
    path, query, fragment = (_text(reader) for _ in range(3))
    place = "".join((f"{user}@" if user else "", host or "", f":{port}" if port >= 0 else ""))
    return "".join(
        (
            f"{scheme}:" if scheme else "",
            f"//{place}" if place else "",
            path or "",
            f"?{query}" if query else "",
            f"#{fragment}" if fragment else "",
        )
    )


def _text(reader: DataReader) -> str | None:
    """Read a text: its length plus 1, then its characters, as numbers with seven bits in each byte."""
    if not reader.flag():
        return None
    length = _seven_bits(reader)
    if length == 0:
        return None
    try:
        return b"".join(_seven_bits(reader).to_bytes(2, "big") for _ in range(length - 1)).decode("utf-16-be")
    except (OverflowError, UnicodeDecodeError):
        raise SavepointUnreadable("the path of a file is not valid text: the savepoint is damaged") from None


def _stored_text(text: str | None) -> bytes:
    """The bytes that :func:`_text` reads."""
    if text is None:
        return b"\x00"
    units = text.encode("utf-16-be")
    characters = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return b"\x01" + b"".join(map(_in_seven_bits, (len(characters) + 1, *characters)))


def _in_seven_bits(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _seven_bits(reader: DataReader) -> int:
    number = shift = 0
    while True:
        byte = reader.uint8()
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number
        shift += 7
