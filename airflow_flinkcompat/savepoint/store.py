"""A savepoint's files and their operator state lists, on any store that universal-pathlib supports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from itertools import accumulate, pairwise
from pathlib import Path
from typing import BinaryIO

from upath import UPath

from airflow_flinkcompat.savepoint.binary import DataReader, SavepointMissing, SavepointUnreadable, naming_file
from airflow_flinkcompat.savepoint.metadata import (
    Handle,
    Inline,
    ListState,
    OperatorLists,
    SavepointMetadata,
    StateFile,
    parse_metadata,
)
from airflow_flinkcompat.savepoint.serializers import read_object

METADATA = "_metadata"


def read_metadata(path: str, *, headers: bool = False) -> SavepointMetadata:
    """Read a savepoint's metadata; ``headers``: only headers are used, so accept incremental checkpoints."""
    content = _read(f"{path}/{METADATA}")
    with naming_file(f"{path}/{METADATA}"):
        found = parse_metadata(content, headers=headers)
        properties = DataReader(found.properties)
        read_object(properties)
        if properties.rest():
            raise SavepointUnreadable("bytes follow its end")
    return found


def read_handle(handle: Handle | None, path: str) -> bytes:
    """Read the whole content of a metadata handle; b"" for None."""
    if handle is None:
        return b""
    with open_handle(handle, path) as content:
        return content.read(0, content.size)


class StoredContent:
    """Content of a savepoint that is read in ranges of bytes, never as a whole; errors show its ``name``."""

    def __init__(self, name: str, size: int, file: BinaryIO) -> None:
        self.name, self.size = name, size
        self._file = file

    def read(self, begin: int, end: int) -> bytes:
        """Read the bytes from ``begin`` to ``end``, exclusive."""
        with reading(self.name):
            self._file.seek(begin)
            content = self._file.read(end - begin)
        if len(content) != end - begin:
            raise SavepointUnreadable(f"{self.name} ends at byte {begin + len(content)}, before byte {end}")
        return content


@contextmanager
def open_handle(handle: Handle | None, path: str) -> Iterator[StoredContent]:
    """Open the content of a metadata handle for the block."""
    if not isinstance(handle, StateFile):
        inline = handle.content if handle is not None else b""
        yield StoredContent(f"{path}/{METADATA}", len(inline), BytesIO(inline))
        return
    name = f"{path}/{handle.path}" if handle.relative else handle.path
    with reading(name):
        file = place(name)
        size = file.stat().st_size
        opened = file.open("rb")
    with opened:
        if size != handle.size:
            raise SavepointUnreadable(f"{name} has {size} bytes, not the {handle.size} bytes that its metadata states")
        yield StoredContent(name, size, opened)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Convert any error that a store raises in the block to a SavepointUnreadable that names the file."""
    try:
        yield
    except Exception as error:  # a store raises errors of its own library
        unreadable = SavepointMissing if isinstance(error, FileNotFoundError) else SavepointUnreadable
        raise unreadable(f"{name} cannot be read from here ({type(error).__name__})") from None


def copy_savepoint(source: str, folder: Path) -> None:
    """Copy a savepoint, its metadata last, into a new folder."""
    stored = _read(f"{source}/{METADATA}")
    with naming_file(f"{source}/{METADATA}"):
        parse_metadata(stored)
    folder.mkdir(parents=True)
    for file in place(source).iterdir():
        if file.name != METADATA:
            (folder / file.name).write_bytes(_read(str(file)))
    (folder / METADATA).write_bytes(stored)


def _read(path: str) -> bytes:
    with reading(path):
        content: bytes = place(path).read_bytes()
        return content


def place(path: str) -> UPath:
    return UPath(re.sub(r"^file:/+", "file:///", path))  # Flink writes file:/x for file:///x


BROADCAST = 2
"""The mode of a list that is the same in each subtask."""


def header_of(lists: OperatorLists, content: bytes) -> bytes:
    """Names and serializers of a subtask's lists, which are stored before all elements."""
    return content[: min((begin for each in lists.lists for begin in each.begins), default=len(content))]


def elements(lists: OperatorLists, content: bytes) -> Iterator[tuple[ListState, list[bytes]]]:
    """Each list of a subtask with its elements in order."""
    begins = sorted(begin for each in lists.lists for begin in each.begins)
    ends = dict(pairwise([*begins, len(content)]))
    for each in lists.lists:
        yield each, [content[begin : ends[begin]] for begin in each.begins]


def stored_lists(header: bytes, held: Iterable[tuple[ListState, Sequence[bytes]]]) -> tuple[OperatorLists, bytes]:
    """Build operator state, still without a handle, and its content from a header and lists of elements."""
    content, lists = bytearray(header), []
    for state, found in held:
        begins = tuple(accumulate(map(len, found), initial=len(content)))[:-1]
        lists.append(replace(state, begins=begins))
        content += b"".join(found)
    return OperatorLists(tuple(lists), None), bytes(content)


def with_elements(lists: OperatorLists, content: bytes, name: str, wanted: Sequence[bytes]) -> OperatorLists:
    """Replace the elements of the list ``name`` in the operator state of a subtask."""
    held = ((state, wanted if state.name == name else found) for state, found in elements(lists, content))
    made, stored = stored_lists(header_of(lists, content), held)
    return replace(made, handle=Inline(name, stored))
