"""A file of keyed state in a savepoint: read and written one key group at a time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO, Self
from uuid import uuid4

import cramjam
from upath import UPath

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable, named
from airflow_flinkcompat.savepoint.keyed_state import KeyedHeader, first_group, read_header
from airflow_flinkcompat.savepoint.metadata import Handle, Inline, KeyedForm, KeyGroups, StateFile
from airflow_flinkcompat.savepoint.store import StoredContent, open_handle

_INLINE = 20 * 1024
_BLOCK = 1 << 20


@dataclass(frozen=True)
class KeyedFile:
    """The keyed state of one subtask.

    Attributes:
        header: Header of the file.
        stored: Its key groups and their offsets.
        content: The file, open.
    """

    header: KeyedHeader
    stored: KeyGroups
    content: StoredContent

    def groups(self, within: range | None = None) -> Iterator[tuple[int, bytes]]:
        """Number and uncompressed content of the key groups that hold anything, each read in its turn.

        ``within``: only these numbers; None: all. Raises SavepointUnreadable if a group begins outside of the file, or
        is damaged.
        """
        begins = sorted(begin for begin in self.stored.begins if begin > 0)
        if len(set(begins)) != len(begins):
            raise SavepointUnreadable(f"{self.content.name}: two key groups begin at the same byte")
        for group, begin in enumerate(self.stored.begins, self.stored.first):
            if begin > 0 and (within is None or group in within):
                after = bisect_right(begins, begin)
                yield group, self._group(begin, begins[after] if after < len(begins) else self.content.size)

    def _group(self, begin: int, end: int) -> bytes:
        with named(self.content.name):
            if begin >= end:
                raise SavepointUnreadable(f"a key group begins at byte {begin}, after the end of its file")
            group = self.content.read(begin, end)
            try:
                return bytes(cramjam.snappy.decompress(group)) if self.header.compressed else group
            except cramjam.DecompressionError as error:
                raise SavepointUnreadable(f"the key group at byte {begin} cannot be decompressed: {error}") from None


@contextmanager
def open_keyed(stored: KeyGroups, path: str) -> Iterator[KeyedFile]:
    """Open the keyed state of a subtask for the block, with its header read.

    ``path``: path or URI of the savepoint's folder. Raises SavepointUnreadable if the state cannot be read here, or its
    header is damaged or of an unknown form.
    """
    with open_handle(stored.handle, path) as content:
        end = first_group(stored.begins)
        with named(content.name):
            header = read_header(content.read(0, content.size if end is None else end))
        yield KeyedFile(header, stored, content)


class KeyedFileWriter:
    """Writer of keyed state, one key group after another; small content goes into the metadata itself.

    ``header``: the operator's, with uncompressed key groups. ``groups``: the numbers of its key groups.
    """

    def __init__(self, folder: UPath, header: KeyedHeader, groups: range) -> None:
        self._folder, self._groups = folder, groups
        self._name = str(uuid4())
        self._block = bytearray(header.stored)
        self._begins = [0] * len(groups)
        self._written = 0
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        """Enter without writing; files are written as late as possible."""
        return self

    def __exit__(self, *error: tuple[type[BaseException] | None, BaseException | None, TracebackType | None]) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def group(self, number: int, content: Iterable[bytes]) -> None:
        """Write a key group in pieces; without any, it holds nothing.

        Raises SavepointUnreadable if it was written before, because it is stored twice.
        """
        if self._begins[number - self._groups.start]:
            raise SavepointUnreadable(f"key group {number} is stored twice")
        begin = self._written + len(self._block)
        for piece in content:
            self._block += piece
            if len(self._block) >= _BLOCK:
                self._flush()
        if self._written + len(self._block) > begin:
            self._begins[number - self._groups.start] = begin

    def finish(self) -> KeyGroups:
        """The key groups and the handle of the file, for the metadata."""
        handle: Handle
        if self._written + len(self._block) < _INLINE:
            handle = Inline(self._name, bytes(self._block))
        else:
            self._flush()
            handle = StateFile(self._name, self._written, relative=True)
        return KeyGroups(KeyedForm.SAVEPOINT_KEY_GROUPS, self._groups.start, tuple(self._begins), handle)

    def _flush(self) -> None:
        if self._file is None:
            self._file = (self._folder / self._name).open("wb")
        self._file.write(self._block)
        self._written += len(self._block)
        self._block.clear()
