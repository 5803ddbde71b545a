"""Values in the byte format of Java's ``DataInput`` and ``DataOutput``, and the kinds of keyed state."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from enum import IntEnum, StrEnum


class SavepointUnreadable(Exception):
    """A savepoint that is unreadable, damaged or of an unknown form; the message names file and reason."""


class SavepointMissing(SavepointUnreadable):
    """A savepoint whose file does not exist, such as a checkpoint that Flink has deleted."""


@contextmanager
def naming_file(file: str) -> Iterator[None]:
    """Add the file's name to a SavepointUnreadable that the block raises."""
    try:
        yield
    except SavepointUnreadable as error:
        raise error if str(error).startswith(file) else SavepointUnreadable(f"{file}: {error}") from None


def require_version(what: str, version: int, known: Collection[int]) -> None:
    """Raise SavepointUnreadable for a version of a format that was never read from Flink's savepoints."""
    if version not in known:
        versions = f" (supported: {', '.join(map(str, sorted(known)))})" if known else ""
        raise SavepointUnreadable(f"{what} has version {version}, which is not supported{versions}")


class DataReader:
    """Reader of consecutive values. Methods raise SavepointUnreadable if the content ends too early."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.content):
            raise SavepointUnreadable(f"it is damaged or truncated: {count} bytes are missing at byte {self.at}")
        self.at += count
        return self.content[self.at - count : self.at]

    def rest(self) -> bytes:
        return self.take(len(self.content) - self.at)

    def uint8(self) -> int:
        """One byte, unsigned."""
        return self.take(1)[0]

    def flag(self) -> bool:
        """One byte that is 0 or 1."""
        value = self.uint8()
        if value > 1:
            raise SavepointUnreadable(f"it is damaged: {value} is not a boolean at byte {self.at - 1}")
        return value == 1

    def uint16(self) -> int:
        """Two bytes, unsigned."""
        return int.from_bytes(self.take(2), "big")

    def int32(self) -> int:
        """Four bytes, signed."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def count(self) -> int:
        """Read a four-byte count of items of at least one byte each."""
        value = self.int32()
        if not 0 <= value <= len(self.content) - self.at:
            raise SavepointUnreadable(f"it is damaged: {value} is not a possible count at byte {self.at}")
        return value

    def int64(self) -> int:
        """Eight bytes, signed."""
        return int.from_bytes(self.take(8), "big", signed=True)

    def int64s(self, count: int) -> tuple[int, ...]:
        """Read ``count`` values of eight bytes."""
        return struct.unpack(f">{count}q", self.take(8 * count))

    def text(self) -> str:
        """Read a text; bytes of Java's encoding that are invalid UTF-8 are kept unchanged."""
        return self.take(self.uint16()).decode("utf-8", "surrogateescape")


def printable(text: str) -> str:
    """A text with a question mark in place of each byte that :meth:`DataReader.text` could not decode."""
    return text.encode("utf-8", "replace").decode("utf-8")


def write_int(value: int) -> bytes:
    """Four bytes, signed."""
    return struct.pack(">i", value)


def write_long(value: int) -> bytes:
    """Eight bytes, signed."""
    return struct.pack(">q", value)


def write_text(value: str) -> bytes:
    """A text, preceded by its length."""
    content = value.encode("utf-8", "surrogateescape")
    return struct.pack(">H", len(content)) + content


class KeyedStateKind(StrEnum):
    """Kind of a named state for a key and a namespace."""

    VALUE = "VALUE"
    LIST = "LIST"
    REDUCING = "REDUCING"
    AGGREGATING = "AGGREGATING"
    MAP = "MAP"
    TIMERS = "TIMERS"


class RowFraming(IntEnum):
    """The form of the rows in a value."""

    NONE = 0
    ONE = 1
    COUNTED = 2
    SEPARATED = 3
