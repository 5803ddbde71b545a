"""Operator ids: the hashes of the operator graph by which Flink finds state.

SQL sets no operator ids, so Flink computes them (``StreamGraphHasherV2``, the same in 1.20 to 2.3). An operator's id
depends on the number of operators that were hashed before it, the number of readers that are chained to it, and the
ids of its inputs. Names, expressions and tables have no influence on the id.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass
from functools import cached_property

from airflow_flinkcompat.exec_graph.kinds import OperatorKind

_MASK = 2**64 - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


@dataclass(frozen=True)
class StreamNode:
    """An operator of a job.

    Attributes:
        kind: The kind, as named in compiled plans.
        inputs: The positions of the inputs in the graph, one for each edge, in order.
        chained: True if the operator runs in one task with its input, without an exchange in between. An operator
            with several inputs is never chained.
    """

    kind: OperatorKind
    inputs: tuple[int, ...] = ()
    chained: bool = False


@dataclass(frozen=True)
class StreamGraph:
    """The operators of a job in the order of creation: each after its inputs, sink by sink."""

    nodes: tuple[StreamNode, ...]

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """For each node, the positions of its readers, once for each edge."""
        readers: list[list[int]] = [[] for _ in self.nodes]
        for place, node in enumerate(self.nodes):
            for each in node.inputs:
                readers[each].append(place)
        return tuple(map(tuple, readers))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The order of hashing: breadth first from the sources, each node after all its inputs."""
        waiting = deque(place for place, node in enumerate(self.nodes) if not node.inputs)
        visited, hashed = set(waiting), dict[int, None]()
        while waiting:
            place = waiting.popleft()
            if not all(each in hashed for each in self.nodes[place].inputs):
                visited.discard(place)  # the node is added again after its next input
                continue
            hashed[place] = None
            for reader in self.readers[place]:
                if reader not in visited:
                    visited.add(reader)
                    waiting.append(reader)
        return tuple(hashed)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The id of each node: 32 hex digits, as in Flink's error messages about savepoints."""
        hashes: dict[int, bytes] = {}
        for number, place in enumerate(self.order):
            chained = sum(self.nodes[reader].chained for reader in self.readers[place])
            found = murmur3_128(struct.pack("<i", number) * (1 + chained))
            for each in self.nodes[place].inputs:
                found = bytes((one * 37 & 0xFF) ^ other for one, other in zip(found, hashes[each], strict=True))
            hashes[place] = found
        return tuple(hashes[place].hex() for place in range(len(self.nodes)))

    def upstream_of(self, operator_id: str) -> frozenset[int]:
        """The positions of all operators upstream of an operator."""
        waiting = [place for place, each in enumerate(self.ids) if each == operator_id]
        found: set[int] = set()
        while waiting:
            inputs = set(self.nodes[waiting.pop()].inputs) - found
            found |= inputs
            waiting += inputs
        return frozenset(found)


def murmur3_128(data: bytes) -> bytes:
    """MurmurHash3 for x64, 128 bits, seed 0, in Guava's byte order: both halves little-endian."""
    h1 = h2 = 0
    whole = len(data) // 16 * 16
    for place in range(0, whole, 16):
        k1, k2 = struct.unpack_from("<QQ", data, place)
        h1 = (_rotated(h1 ^ _first(k1), 27) + h2) & _MASK
        h1 = (h1 * 5 + 0x52DCE729) & _MASK
        h2 = (_rotated(h2 ^ _second(k2), 31) + h1) & _MASK
        h2 = (h2 * 5 + 0x38495AB5) & _MASK
    rest = data[whole:]
    h1 ^= _first(int.from_bytes(rest[:8], "little"))
    h2 ^= _second(int.from_bytes(rest[8:], "little"))
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1, h2 = _mixed(h1), _mixed(h2)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    return struct.pack("<QQ", h1, h2)


def _first(k: int) -> int:
    return _rotated(k * _C1 & _MASK, 31) * _C2 & _MASK


def _second(k: int) -> int:
    return _rotated(k * _C2 & _MASK, 33) * _C1 & _MASK


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK


def _mixed(h: int) -> int:
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & _MASK
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return h ^ h >> 33
