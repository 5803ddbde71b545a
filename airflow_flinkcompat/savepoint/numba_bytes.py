"""The functions of :mod:`~airflow_flinkcompat.savepoint.compiled`, compiled by numba."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import FunctionCache

__all__ = [
    "add_hash",
    "clear",
    "compiled",
    "copy",
    "equal",
    "hash_sum",
    "little32",
    "number_hash",
    "numbers",
    "put_little32",
    "put_real",
    "put_signed",
    "put_uint16",
    "put_uint32",
    "readable",
    "real",
    "row_hash",
    "signed",
    "uint16",
    "uint32",
    "writable",
    "zeros",
]

F = TypeVar("F", bound=Callable[..., Any])

int64, uint64, uintp = np.int64, np.uint64, np.uintp
_M32, _KEY_SEED = int64(0xFFFFFFFF), int64(42)
_C1, _C2 = uint64(0x87C37B91114253D5), uint64(0x4CF5AD432745937F)


_sources: set[str] = set()


class _Cache(FunctionCache):
    """Numba's cache of compiled loops, which is also invalid after a change of a loop that a loop calls."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        contents = b"".join(Path(source).read_bytes() for source in sorted(_sources))
        return (*super()._index_key(sig, codegen), sha256(contents).hexdigest())


def compiled(function: F) -> F:
    """Compile a loop when it is first called; later processes load it from numba's cache."""
    _sources.add(function.__code__.co_filename)
    made: Any = numba.njit(nogil=True, forceinline=True)(function)
    with suppress(RuntimeError):  # no folder for the cache
        made._cache = _Cache(function)
    return cast(F, made)


def readable(content: bytes) -> Any:
    return np.frombuffer(content, np.uint8)


def writable(size: int) -> Any:
    return np.empty(size, np.uint8)


def numbers(values: Iterable[int]) -> Any:
    return np.ascontiguousarray(values if isinstance(values, np.ndarray) else list(values), np.int64)


def zeros(count: int) -> Any:
    return np.zeros(count, np.int64)


def hash_sum() -> Any:
    return np.zeros(2, np.uint64)


# For an unsigned index, numba omits the check for a negative index, which would count from the end.


@compiled
def copy(source: Any, begin: int, end: int, out: Any, at: int) -> None:
    if end > begin:
        first, to = uintp(begin), uintp(at)
        for place in range(uintp(end - begin)):
            out[to + place] = source[first + place]


@compiled
def clear(out: Any, begin: int, end: int) -> None:
    for place in range(uintp(begin), uintp(end)):
        out[place] = 0


@compiled
def equal(one: Any, begin: int, end: int, other: Any, at: int) -> bool:
    first, second = uintp(begin), uintp(at)
    for place in range(uintp(end - begin)):  # noqa: SIM110 - numba compiles no generators
        if one[first + place] != other[second + place]:
            return False
    return True


@compiled
def uint16(content: Any, at: int) -> Any:
    first = uintp(at)
    return int64(content[first]) << 8 | int64(content[first + uintp(1)])


@compiled
def uint32(content: Any, at: int) -> Any:
    return uint16(content, at) << 16 | uint16(content, at + 2)


@compiled
def little32(content: Any, at: int) -> Any:
    first = uintp(at)
    low = int64(content[first]) | int64(content[first + uintp(1)]) << 8
    return low | int64(content[first + uintp(2)]) << 16 | int64(content[first + uintp(3)]) << 24


@compiled
def put_uint16(out: Any, at: int, value: int) -> None:
    first = uintp(at)
    out[first] = value >> 8 & 0xFF
    out[first + uintp(1)] = value & 0xFF


@compiled
def put_uint32(out: Any, at: int, value: int) -> None:
    put_uint16(out, at, value >> 16)
    put_uint16(out, at + 2, value)


@compiled
def put_little32(out: Any, at: int, value: int) -> None:
    put_uint16(out, at, (value & 0xFF) << 8 | value >> 8 & 0xFF)
    put_uint16(out, at + 2, (value >> 16 & 0xFF) << 8 | value >> 24 & 0xFF)


@compiled
def signed(content: Any, at: int, size: int) -> Any:
    value = int64(0)
    for place in range(size):
        value |= int64(content[uintp(at + place)]) << int64(8 * place)
    spare = int64(64 - 8 * size)
    return value << spare >> spare


@compiled
def put_signed(out: Any, at: int, size: int, value: Any) -> None:
    for place in range(size):
        out[uintp(at + place)] = value >> int64(8 * place) & 0xFF


@compiled
def real(content: Any, at: int, size: int) -> Any:
    bits = int64(signed(content, at, size))
    return np.float64(np.int32(bits).view(np.float32)) if size == 4 else bits.view(np.float64)


@compiled
def put_real(out: Any, at: int, size: int, value: float) -> None:
    bits = int64(np.float32(value).view(np.int32)) if size == 4 else np.float64(value).view(np.int64)
    put_signed(out, at, size, bits)


@compiled
def _rotated(word: Any, bits: Any) -> Any:
    return word << uint64(bits) | word >> uint64(64 - bits)


@compiled
def _mixed(word: Any) -> Any:
    word ^= word >> uint64(33)
    word *= uint64(0xFF51AFD7ED558CCD)
    word ^= word >> uint64(33)
    word *= uint64(0xC4CEB9FE1A85EC53)
    return word ^ word >> uint64(33)


@compiled
def _word(content: Any, at: int) -> Any:
    return uint64(little32(content, at)) | uint64(little32(content, at + 4)) << uint64(32)


@compiled
def _short_word(content: Any, at: int, size: int) -> Any:
    word = uint64(0)
    for place in range(size):
        word |= uint64(content[uintp(at + place)]) << uint64(8 * place)
    return word


@compiled
def add_hash(content: Any, begin: int, end: int, total: Any, times: int) -> None:
    size = end - begin
    low, high = uint64(0), uint64(0)
    for at in range(begin, begin + size // 16 * 16, 16):
        low ^= _rotated(_word(content, at) * _C1, 31) * _C2
        low = (_rotated(low, 27) + high) * uint64(5) + uint64(0x52DCE729)
        high ^= _rotated(_word(content, at + 8) * _C2, 33) * _C1
        high = (_rotated(high, 31) + low) * uint64(5) + uint64(0x38495AB5)
    rest, at = size % 16, begin + size // 16 * 16
    if rest > 8:
        high ^= _rotated(_short_word(content, at + 8, rest - 8) * _C2, 33) * _C1
    if rest:
        low ^= _rotated(_short_word(content, at, min(rest, 8)) * _C1, 31) * _C2
    low ^= uint64(size)
    high ^= uint64(size)
    low += high
    high += low
    low, high = _mixed(low), _mixed(high)
    low += high
    high += low
    factor = uint64(times)
    least, most = (low & uint64(0xFFFFFFFF)) * factor, (low >> uint64(32)) * factor
    low = least + (most << uint64(32))
    total[0] += low
    total[1] += high * factor + (most >> uint64(32)) + uint64(low < least) + uint64(total[0] < low)


@compiled
def _mixed32(found: Any, word: Any) -> Any:
    word = word * int64(0xCC9E2D51) & _M32
    word = (word << 15 | word >> 17) & _M32
    found ^= word * int64(0x1B873593) & _M32
    return found


@compiled
def _next32(found: Any, word: Any) -> Any:
    found = _mixed32(found, word)
    found = (found << 13 | found >> 19) & _M32
    return (found * 5 + int64(0xE6546B64)) & _M32


@compiled
def _end32(found: Any, size: int) -> Any:
    found ^= size
    found ^= found >> 16
    found = found * int64(0x85EBCA6B) & _M32
    found ^= found >> 13
    found = found * int64(0xC2B2AE35) & _M32
    found ^= found >> 16
    return found - (found >> 31 << 32)


@compiled
def row_hash(content: Any, begin: int, end: int) -> Any:
    found, size = _KEY_SEED, end - begin
    for at in range(begin, begin + size // 4 * 4, 4):
        found = _next32(found, little32(content, at))
    if size % 4:
        found = _mixed32(found, int64(_short_word(content, end - size % 4, size % 4)))
    return _end32(found, size)


@compiled
def number_hash(number: int) -> Any:
    return _end32(_next32(int64(0), number & _M32), 4)
