"""Storage of a savepoint: its files, on any store that universal-pathlib reaches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from upath import UPath

from airflow_flinkcompat.savepoint.binary import DataReader, SavepointUnreadable, named
from airflow_flinkcompat.savepoint.logical_types import read_object
from airflow_flinkcompat.savepoint.metadata import (
    Handle,
    SavepointMetadata,
    StateFile,
    parse_metadata,
)

METADATA = "_metadata"


def read_metadata(path: str, *, headers: bool = False) -> SavepointMetadata:
    """The metadata of a savepoint.

    Args:
        path: Path or URI of its folder.
        headers: Whether keyed state is wanted by its headers alone, which incremental checkpoints have too.

    Returns:
        What its ``_metadata`` says.

    Raises:
        SavepointUnreadable: It cannot be had from here, is damaged, or of no canonical savepoint.
    """
    content = _read(f"{path}/{METADATA}")
    with named(f"{path}/{METADATA}"):
        found = parse_metadata(content, headers=headers)
        properties = DataReader(found.properties)
        read_object(properties)
        if properties.rest():
            raise SavepointUnreadable("bytes follow its end")
    return found


def read_handle(handle: Handle | None, path: str) -> bytes:
    """Read the content of a metadata handle.

    Args:
        handle: Of a state; None: there is nothing.
        path: Path or URI of the savepoint's folder.

    Returns:
        The whole content.

    Raises:
        SavepointUnreadable: Its file cannot be had from here, or is shorter or longer than the metadata says.
    """
    if handle is None:
        return b""
    with open_handle(handle, path) as content:
        return content.read(0, content.size)


class StoredContent:
    """Content of a savepoint that is read by ranges, however large it is.

    Args:
        name: What it is called in errors.
        size: In bytes.
        file: It, open.
    """

    def __init__(self, name: str, size: int, file: BinaryIO) -> None:
        self.name, self.size = name, size
        self._file = file

    def read(self, begin: int, end: int) -> bytes:
        """Read a range of bytes.

        Args:
            begin: Its first byte.
            end: The byte behind it.

        Returns:
            The bytes.

        Raises:
            SavepointUnreadable: The content cannot be had from here, or ends before.
        """
        with reading(self.name):
            self._file.seek(begin)
            content = self._file.read(end - begin)
        if len(content) != end - begin:
            raise SavepointUnreadable(f"{self.name} ends at byte {begin + len(content)}, before byte {end}")
        return content


@contextmanager
def open_handle(handle: Handle | None, path: str) -> Iterator[StoredContent]:
    """Open the content of a metadata handle for the duration of the block.

    Args:
        handle: Of a state; None: there is nothing.
        path: Path or URI of the savepoint's folder.

    Yields:
        The content.

    Raises:
        SavepointUnreadable: Its file cannot be had from here, or is shorter or longer than the metadata says.
    """
    if not isinstance(handle, StateFile):
        inline = handle.content if handle is not None else b""
        yield StoredContent(f"{path}/{METADATA}", len(inline), BytesIO(inline))
        return
    name = f"{path}/{handle.path}" if handle.relative else handle.path
    with reading(name):
        file = _place(name)
        size = file.stat().st_size
        opened = file.open("rb")
    with opened:
        if size != handle.size:
            raise SavepointUnreadable(f"{name} has {size} bytes, not the {handle.size} bytes that its metadata states")
        yield StoredContent(name, size, opened)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Whatever a store raises in the block becomes an error that names the file.

    Args:
        name: Of the file.

    Yields:
        Nothing.

    Raises:
        SavepointUnreadable: It cannot be had from here.
    """
    try:
        yield
    except Exception as error:  # a store raises whatever its own library does
        raise SavepointUnreadable(f"{name} cannot be read from here ({type(error).__name__})") from None


def copy_savepoint(source: str, folder: Path) -> None:
    """Copy a savepoint, whose metadata comes last.

    Args:
        source: Path or URI of its folder.
        folder: Where to put it; it must not exist.

    Raises:
        SavepointUnreadable: It cannot be had from here, is damaged, or of no canonical savepoint.
    """
    stored = _read(f"{source}/{METADATA}")
    with named(f"{source}/{METADATA}"):
        parse_metadata(stored)
    folder.mkdir(parents=True)
    for file in _place(source).iterdir():
        if file.name != METADATA:
            (folder / file.name).write_bytes(_read(str(file)))
    (folder / METADATA).write_bytes(stored)


def _read(path: str) -> bytes:
    with reading(path):
        content: bytes = _place(path).read_bytes()
        return content


def _place(path: str) -> UPath:
    return UPath(re.sub(r"^file:/+", "file:///", path))  # Flink writes file:/x for file:///x
