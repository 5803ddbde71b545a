"""Loops over stored bytes, compiled by numba if it is installed; plain Python otherwise.

The same code of a loop runs with and without numba. It receives bytes from :func:`readable` and :func:`writable` and
numbers from :func:`numbers`, and computes only with signed 64-bit integers. The functions in this module also have
compiled versions in :mod:`~airflow_flinkcompat.savepoint.numba_bytes`. Tests compare both versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from math import copysign, inf
from os import environ
from struct import pack_into, unpack_from
from typing import TYPE_CHECKING, Any, TypeVar

import mmh3

from airflow_flinkcompat.model import install_command

F = TypeVar("F", bound=Callable[..., Any])

COMPILED = False
"""True if loops are compiled."""
LARGE = 100 << 20
"""Size of a state in bytes from which loops in plain Python take minutes."""
_HALF = (1 << 64) - 1
_KEY_SEED = 42
"""Seed of Flink's hash of a stored row."""


def compiled(function: F) -> F:
    """Return a loop unchanged; the version for numba compiles the loop."""
    return function


def readable(content: bytes) -> memoryview:
    """Bytes that a loop reads."""
    return memoryview(content)


def writable(size: int) -> memoryview:
    """Buffer into which a loop writes."""
    return memoryview(bytearray(size))


def numbers(values: Iterable[int]) -> list[int]:
    """Numbers that a loop reads or writes."""
    return list(values)


def zeros(count: int) -> list[int]:
    """Numbers that a loop writes, all 0."""
    return [0] * count


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


def signed(content: memoryview, at: int, size: int) -> int:
    """A little-endian integer of up to eight bytes."""
    return int.from_bytes(content[at : at + size], "little", signed=True)


def put_signed(out: memoryview, at: int, size: int, value: int) -> None:
    """Write a little-endian integer of up to eight bytes. A greater integer wraps around, as in Java."""
    out[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")


def real(content: memoryview, at: int, size: int) -> float:
    """A FLOAT of four or a DOUBLE of eight bytes."""
    found: float = unpack_from("<f" if size == 4 else "<d", content, at)[0]
    return found


def put_real(out: memoryview, at: int, size: int, value: float) -> None:
    """Write a FLOAT of four or a DOUBLE of eight bytes. As in Java, a FLOAT may become infinite."""
    try:
        pack_into("<f" if size == 4 else "<d", out, at, value)
    except OverflowError:
        pack_into("<f", out, at, copysign(inf, value))


def hash_sum() -> list[int]:
    """The lower and the upper half of an empty sum of hashes."""
    return [0, 0]


def add_hash(content: memoryview, begin: int, end: int, total: list[int], times: int) -> None:
    """Add the 128-bit Murmur hash of a range to a sum, as often as ``times`` states: less than 2**32."""
    found = (total[1] << 64 | total[0]) + times * mmh3.mmh3_x64_128_uintdigest(bytes(content[begin:end]))
    total[0], total[1] = found & _HALF, found >> 64 & _HALF


def row_hash(content: memoryview, begin: int, end: int) -> int:
    """Flink's hash of a stored row: Murmur, 32 bits, signed."""
    return mmh3.hash(bytes(content[begin:end]), _KEY_SEED)


def number_hash(number: int) -> int:
    """Flink's hash of a hash, from which it computes a key group."""
    return mmh3.hash(number.to_bytes(4, "little", signed=True), 0)


if not TYPE_CHECKING and environ.get("NUMBA_DISABLE_JIT", "0") == "0":
    with suppress(ImportError):  # numba is missing, or does not support the installed version of numpy
        from airflow_flinkcompat.savepoint.numba_bytes import *  # noqa: F403 - replaces the functions above

        COMPILED = True


def interpreted_hint(size: int) -> str:
    """Advice to install numba for a state of ``size`` bytes; "" if none is needed."""
    if COMPILED or size < LARGE:
        return ""
    megabytes = size >> 20
    return f"numba is missing, so that {megabytes:,} MB of state are read at some 4 MB/s: {install_command('state')}"


@compiled
def group_of_key(content: memoryview, begin: int, end: int, max_parallelism: int) -> int:
    """Key group of a key, which is a stored row without a length prefix."""
    mixed = number_hash(row_hash(content, begin, end))
    if mixed == -(1 << 31):
        return 0
    return abs(mixed) % max_parallelism


@compiled
def long_at(content: memoryview, at: int) -> int:
    """A big-endian signed integer of eight bytes."""
    high = uint32(content, at)
    return (high - (high >> 31 << 32)) << 32 | uint32(content, at + 4)


@compiled
def put_long(out: memoryview, at: int, value: int) -> None:
    """Write a big-endian signed integer of eight bytes."""
    put_uint32(out, at, value >> 32 & 0xFFFFFFFF)
    put_uint32(out, at + 4, value & 0xFFFFFFFF)
