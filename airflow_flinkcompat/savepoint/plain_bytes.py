"""The functions of :mod:`~airflow_flinkcompat.savepoint.compiled` in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import mmh3

F = TypeVar("F", bound=Callable[..., Any])

_HALF = (1 << 64) - 1
KEY_SEED = 42
"""Seed of Flink's hash of a stored row."""


def compiled(function: F) -> F:
    """Leave a loop as it is."""
    return function


def readable(content: bytes) -> memoryview:
    """Bytes that a loop reads."""
    return memoryview(content)


def writable(size: int) -> memoryview:
    """A buffer that a loop writes."""
    return memoryview(bytearray(size))


def numbers(values: Iterable[int]) -> list[int]:
    """Numbers that a loop reads or writes."""
    return list(values)


def copy(source: memoryview, begin: int, end: int, out: memoryview, at: int) -> None:
    """Copy bytes from one buffer to another."""
    out[at : at + end - begin] = source[begin:end]


def clear(out: memoryview, begin: int, end: int) -> None:
    """Set bytes to 0."""
    out[begin:end] = bytes(end - begin)


def equal(one: memoryview, begin: int, end: int, other: memoryview, at: int) -> bool:
    """True if the bytes of a range equal those of another buffer."""
    return one[begin:end] == other[at : at + end - begin]


def uint16(content: memoryview, at: int) -> int:
    """A big-endian number of two bytes."""
    return content[at] << 8 | content[at + 1]


def uint32(content: memoryview, at: int) -> int:
    """A big-endian number of four bytes."""
    return int.from_bytes(content[at : at + 4], "big")


def little32(content: memoryview, at: int) -> int:
    """A little-endian number of four bytes."""
    return int.from_bytes(content[at : at + 4], "little")


def put_uint16(out: memoryview, at: int, value: int) -> None:
    """Write a big-endian number of two bytes."""
    out[at : at + 2] = value.to_bytes(2, "big")


def put_uint32(out: memoryview, at: int, value: int) -> None:
    """Write a big-endian number of four bytes."""
    out[at : at + 4] = value.to_bytes(4, "big")


def put_little32(out: memoryview, at: int, value: int) -> None:
    """Write a little-endian number of four bytes."""
    out[at : at + 4] = value.to_bytes(4, "little")


def hash_sum() -> list[int]:
    """The lower and the upper half of an empty sum of hashes."""
    return [0, 0]


def add_hash(content: memoryview, begin: int, end: int, total: list[int]) -> None:
    """Add the 128-bit Murmur hash of a range to a sum."""
    found = (total[1] << 64 | total[0]) + mmh3.mmh3_x64_128_uintdigest(bytes(content[begin:end]))
    total[0], total[1] = found & _HALF, found >> 64 & _HALF


def row_hash(content: memoryview, begin: int, end: int) -> int:
    """Flink's hash of a stored row: Murmur, 32 bits, signed."""
    return mmh3.hash(bytes(content[begin:end]), KEY_SEED)


def number_hash(number: int) -> int:
    """Flink's hash of a hash, from which it computes a key group."""
    return mmh3.hash(number.to_bytes(4, "little", signed=True), 0)
