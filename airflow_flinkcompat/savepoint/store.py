"""Where a savepoint lies: its files, on any store that universal-pathlib reaches."""

from __future__ import annotations

import re
from pathlib import Path

from upath import UPath

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.metadata import Handle, Inline, SavepointMetadata, parse_metadata

METADATA = "_metadata"
_LARGEST = 256 * 2**20


def read_metadata(path: str) -> SavepointMetadata:
    """The metadata of a savepoint.

    Args:
        path: Path or URI of its folder.

    Returns:
        What its ``_metadata`` says.

    Raises:
        SavepointUnreadable: It cannot be had from here, is damaged, or of no canonical savepoint.
    """
    return parse_metadata(_read(f"{path}/{METADATA}"))


def read_handle(handle: Handle | None, path: str) -> bytes:
    """The content that a handle of the metadata stands for.

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
    if isinstance(handle, Inline):
        return handle.content
    file = f"{path}/{handle.path}" if handle.relative else handle.path
    content = _read(file)
    if len(content) != handle.size:
        raise SavepointUnreadable(f"{file} holds {len(content)} bytes, not {handle.size} as its metadata says")
    return content


def copy_savepoint(source: str, folder: Path) -> None:
    """Copy a savepoint, whose metadata comes last.

    Args:
        source: Path or URI of its folder.
        folder: Where to put it; it must not exist.

    Raises:
        SavepointUnreadable: It cannot be had from here, is damaged, or of no canonical savepoint.
    """
    stored = _read(f"{source}/{METADATA}")
    parse_metadata(stored)
    folder.mkdir(parents=True)
    for file in _place(source).iterdir():
        if file.name != METADATA:
            (folder / file.name).write_bytes(_read(str(file)))
    (folder / METADATA).write_bytes(stored)


def _read(path: str) -> bytes:
    try:
        file = _place(path)
        if file.stat().st_size > _LARGEST:
            raise SavepointUnreadable(f"{path} is larger than {_LARGEST >> 20} MiB")
        content: bytes = file.read_bytes()
        return content
    except SavepointUnreadable:
        raise
    except Exception as error:  # a store raises whatever its own library does
        raise SavepointUnreadable(f"{path} cannot be read from here ({type(error).__name__})") from None


def _place(path: str) -> UPath:
    return UPath(re.sub(r"^file:/+", "file:///", path))  # Flink writes file:/x for file:///x
