"""Loops over stored bytes, compiled by numba if it is installed; plain Python otherwise.

A loop is one function for both. It receives bytes from :func:`readable` and :func:`writable` and numbers from
:func:`numbers`, and computes with signed 64-bit integers alone. Only functions that read, write and hash bytes exist
twice; tests compare both forms.
"""

from __future__ import annotations

from importlib.util import find_spec
from os import environ
from typing import TYPE_CHECKING

COMPILED = find_spec("numba") is not None and environ.get("NUMBA_DISABLE_JIT", "0") == "0"
"""True if loops are compiled."""

if TYPE_CHECKING or not COMPILED:
    from airflow_flinkcompat.savepoint.plain_bytes import (
        add_hash,
        clear,
        compiled,
        copy,
        equal,
        hash_sum,
        little32,
        number_hash,
        numbers,
        put_little32,
        put_uint16,
        put_uint32,
        readable,
        row_hash,
        uint16,
        uint32,
        writable,
    )
else:
    from airflow_flinkcompat.savepoint.numba_bytes import (
        add_hash,
        clear,
        compiled,
        copy,
        equal,
        hash_sum,
        little32,
        number_hash,
        numbers,
        put_little32,
        put_uint16,
        put_uint32,
        readable,
        row_hash,
        uint16,
        uint32,
        writable,
    )

__all__ = [
    "COMPILED",
    "add_hash",
    "clear",
    "compiled",
    "copy",
    "equal",
    "hash_sum",
    "group_of_key",
    "little32",
    "number_hash",
    "numbers",
    "put_little32",
    "put_uint16",
    "put_uint32",
    "readable",
    "row_hash",
    "uint16",
    "uint32",
    "writable",
]


@compiled
def group_of_key(content: memoryview, begin: int, end: int, max_parallelism: int) -> int:
    """The key group of a key, from its stored row without its length."""
    mixed = number_hash(row_hash(content, begin, end))
    if mixed == -(1 << 31):
        return 0
    return abs(mixed) % max_parallelism
