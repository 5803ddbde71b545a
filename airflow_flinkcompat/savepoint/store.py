"""Where a savepoint lies: its files, on any store that universal-pathlib reaches."""

from __future__ import annotations

import re

from upath import UPath

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.metadata import Handle, Inline, SavepointMetadata, parse_metadata

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
    return parse_metadata(_read(f"{path}/_metadata"))


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


def _read(path: str) -> bytes:
    try:
        file = UPath(re.sub(r"^file:/+", "file:///", path))  # Flink writes file:/x for file:///x
        if file.stat().st_size > _LARGEST:
            raise SavepointUnreadable(f"{path} is larger than {_LARGEST >> 20} MiB")
        content: bytes = file.read_bytes()
        return content
    except SavepointUnreadable:
        raise
    except Exception as error:  # a store raises whatever its own library does
        raise SavepointUnreadable(f"{path} cannot be read from here ({type(error).__name__})") from None
