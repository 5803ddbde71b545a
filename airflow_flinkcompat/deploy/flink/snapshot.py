"""Which operators a savepoint holds, and which of them have state: its ``_metadata`` file, read without Flink.

Formats 3 to 6 (Flink 1.11 to 2.3), as far as a canonical savepoint is made of them; measured on files of 2.3.0 and
1.20.3. Names of operators are stored since format 5.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from upath import UPath

_MAGIC = 0x4960672D
_MASTER_MAGIC = 0xC96B1696
_VERSIONS = range(3, 7)
_NAMED_SINCE = 5
_LARGEST = 256 * 2**20
_NOTHING, _BYTES, _FILE, _RELATIVE = 0, 1, 2, 6
# What a canonical savepoint holds of keyed state; the last one carries an id.
_KEY_GROUPS, _SAVEPOINT_KEY_GROUPS, _KEY_GROUPS_WITH_ID = 3, 7, 12
_PARTITIONED = 4


class SnapshotUnreadable(Exception):
    """The savepoint's file cannot be had from here, or is of a form that is not known; says which."""


@dataclass(frozen=True)
class StoredOperator:
    """One operator of a savepoint. ``id``: 32 hex digits; ``name`` is empty where the savepoint stores none."""

    id: str
    name: str
    has_state: bool


@dataclass(frozen=True)
class StoredList:
    """A list of operator state: its bytes, and where in them each element begins."""

    name: str
    begins: tuple[int, ...]
    content: bytes


def read_snapshot(path: str) -> tuple[StoredOperator, ...]:
    """The operators of the savepoint at ``path`` (path or URI of its folder). Raises SnapshotUnreadable."""
    return parse_snapshot(_read(f"{path}/_metadata"))


def read_lists(path: str, name: str) -> tuple[StoredList, ...]:
    """The lists of that name in the savepoint at ``path``, of every operator. Raises SnapshotUnreadable."""
    reader = _Reader(_read(f"{path}/_metadata"))
    _parsed(reader)
    lists = [(begins, place) for found, begins, place in reader.lists if found == name]
    # What does not stand in the metadata is in a file beside it, or one whose full path is given.
    return tuple(
        StoredList(
            name, begins, place if isinstance(place, bytes) else _read(place if ":" in place else f"{path}/{place}")
        )
        for begins, place in lists
    )


def _read(path: str) -> bytes:
    try:
        file = UPath(re.sub(r"^file:/+", "file:///", path))  # Flink writes file:/x for file:///x
        if file.stat().st_size > _LARGEST:
            raise SnapshotUnreadable(f"{path} is larger than {_LARGEST >> 20} MiB")
        content: bytes = file.read_bytes()
        return content
    except SnapshotUnreadable:
        raise
    except Exception as error:  # a store raises whatever its own library does
        raise SnapshotUnreadable(f"{path} cannot be read from here ({type(error).__name__})") from None


def parse_snapshot(content: bytes) -> tuple[StoredOperator, ...]:
    """The operators of a ``_metadata`` file. Raises SnapshotUnreadable."""
    return _parsed(_Reader(content))


def _parsed(reader: _Reader) -> tuple[StoredOperator, ...]:
    try:
        return _operators(reader)
    except (struct.error, UnicodeDecodeError):
        raise SnapshotUnreadable("its metadata ends early, or is damaged") from None


def _operators(reader: _Reader) -> tuple[StoredOperator, ...]:
    if reader.unsigned() != _MAGIC:
        raise SnapshotUnreadable("its _metadata is no file of Flink's")
    version = reader.number()
    if version not in _VERSIONS:
        raise SnapshotUnreadable(f"its metadata is of format {version}, which is not known here")
    reader.skip(8)  # the checkpoint's id
    for _ in range(reader.number()):
        if reader.unsigned() != _MASTER_MAGIC:
            raise SnapshotUnreadable("a master state is damaged")
        reader.skip(reader.number())
    return tuple(_operator(reader, version >= _NAMED_SINCE) for _ in range(reader.number()))


def _operator(reader: _Reader, named: bool) -> StoredOperator:
    name = reader.text() if named else ""
    if named:
        reader.text()  # the uid a program gave
    identity = reader.take(16).hex()
    reader.skip(8)  # parallelism, maximum parallelism
    has_state = _stream(reader) is not None  # of the coordinator
    subtasks = reader.number()  # -1: every subtask has finished
    for _ in range(max(subtasks, 0)):
        if reader.number() >= 0:  # a negative index: a finished subtask, which has none
            # All are read, whatever the first one says.
            has_state = any([_subtask(reader), has_state])
    return StoredOperator(identity, name, has_state)


def _subtask(reader: _Reader) -> bool:
    managed = [_partitioned(reader) for _ in range(2) if reader.number()]
    keyed = [_keyed(reader) for _ in range(2)]
    for _ in range(2):  # rows under way: none where barriers are aligned, as a savepoint's are
        if reader.number():
            raise SnapshotUnreadable("it holds rows under way")
    return any([*managed, *keyed])


def _partitioned(reader: _Reader) -> bool:
    kind = reader.byte()
    if kind == _NOTHING:
        return False
    if kind != _PARTITIONED:
        raise SnapshotUnreadable(f"an operator state of kind {kind} is not known here")
    lists = []
    for _ in range(reader.number()):
        name = reader.text()
        reader.skip(1)
        lists.append((name, tuple(reader.long() for _ in range(reader.number()))))
    place = _stream(reader)
    if place is not None:
        reader.lists += [(name, begins, place) for name, begins in lists]
    return True


def _keyed(reader: _Reader) -> bool:
    kind = reader.byte()
    if kind == _NOTHING:
        return False
    if kind not in (_KEY_GROUPS, _KEY_GROUPS_WITH_ID, _SAVEPOINT_KEY_GROUPS):
        raise SnapshotUnreadable(f"a keyed state of kind {kind} is not known here")
    reader.skip(4)
    reader.skip(8 * reader.number())
    _stream(reader)
    if kind == _KEY_GROUPS_WITH_ID:
        reader.text()
    return True


def _stream(reader: _Reader) -> bytes | str | None:
    """What a handle holds, or the path of the file that does: a full one, or one below the savepoint's folder."""
    kind = reader.byte()
    if kind == _BYTES:
        reader.text()
        return reader.take(reader.number())
    if kind == _FILE:
        reader.skip(8)
        return reader.text()
    if kind == _RELATIVE:
        path = reader.text()
        reader.skip(8)
        return path
    if kind != _NOTHING:
        raise SnapshotUnreadable(f"a state handle of kind {kind} is not known here")
    return None


class _Reader:
    """Java's DataInput over bytes. Raises struct.error at the end."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0
        # Lists of operator state as they are met: name, where elements begin, and what or which file holds them.
        self.lists: list[tuple[str, tuple[int, ...], bytes | str]] = []

    def take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._content):
            raise struct.error("the end")
        self._at += count
        return self._content[self._at - count : self._at]

    def skip(self, count: int) -> None:
        self.take(count)

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def long(self) -> int:
        return int.from_bytes(self.take(8), "big", signed=True)

    def unsigned(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def text(self) -> str:
        # Java's modified UTF-8 differs beyond the basic plane and at NUL only: enough for a name to show.
        return self.take(int.from_bytes(self.take(2), "big")).decode("utf-8", "replace")
