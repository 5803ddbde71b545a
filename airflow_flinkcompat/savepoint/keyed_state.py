"""A file of keyed state of a canonical savepoint: its header, and the entries of its key groups.

The heap backend and RocksDB write and read the same form; measured on files of 1.20.3 and 2.3.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from airflow_flinkcompat.savepoint.binary import DataReader, SavepointUnreadable, require_version, write_int
from airflow_flinkcompat.savepoint.kinds import KeyedStateKind
from airflow_flinkcompat.savepoint.serializers import Serializer, read_serializer

_VERSIONS = (6,)
_TIMERS = 3
_COMPRESSED = 4
"""Offset of the header's compression flag."""
_KIND = "KEYED_STATE_TYPE"
_KEY, _NAMESPACE, _VALUE = "KEY_SERIALIZER", "NAMESPACE_SERIALIZER", "VALUE_SERIALIZER"
END_OF_GROUP = 0xFFFF
LAST_OF_RUN = 0x80
_NUMBER, _LENGTH = struct.Struct(">H").unpack_from, struct.Struct(">I").unpack_from


@dataclass(frozen=True)
class KeyedState:
    """One named state of an operator.

    Attributes:
        name: Name that the operator registered.
        kind: Kind of its content for a key and a namespace.
        namespace: Serializer of the namespace; None for timers, where the value's includes it.
        value: Serializer of the value.
        options: Further options that Flink stores, such as the kind.
    """

    name: str
    kind: KeyedStateKind
    namespace: Serializer | None
    value: Serializer
    options: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class KeyedHeader:
    """Content before the first key group.

    Attributes:
        compressed: True if key groups are compressed with Snappy.
        key: Serializer of the keys.
        states: States, in the order of the numbers that entries use.
        stored: The bytes of the header.
    """

    compressed: bool
    key: Serializer
    states: tuple[KeyedState, ...]
    stored: bytes

    @property
    def uncompressed(self) -> KeyedHeader:
        """The header for uncompressed key groups."""
        stored = self.stored[:_COMPRESSED] + b"\0" + self.stored[_COMPRESSED + 1 :]
        return replace(self, compressed=False, stored=stored)


class Entry(NamedTuple):
    """One entry: the number of its state in the header, its key with key group and namespace, its value."""

    state: int
    key: bytes
    value: bytes


def read_header(content: bytes, end: int | None = None) -> KeyedHeader:
    """Read the header of a file of keyed state.

    ``end``: offset of the first key group; None: the file holds no key group. Raises SavepointUnreadable if the header
    is damaged, of an unknown form, or ends elsewhere.
    """
    reader = DataReader(content[:end])
    require_version("keyed state", reader.int32(), _VERSIONS)
    compressed = reader.flag()
    key = read_serializer(reader)
    states = tuple(_state(reader) for _ in range(reader.uint16()))
    if reader.at != len(reader.content):
        raise SavepointUnreadable(f"a header of keyed state ends at byte {reader.at}, not at {len(reader.content)}")
    return KeyedHeader(compressed, key, states, reader.content)


def _state(reader: DataReader) -> KeyedState:
    name = reader.text()
    kind = reader.int32()
    options = {reader.text(): reader.text() for _ in range(reader.count())}
    serializers = {reader.text(): read_serializer(reader) for _ in range(reader.count())}
    try:
        stored = KeyedStateKind.TIMERS if kind == _TIMERS else KeyedStateKind(options[_KIND])
        return KeyedState(name, stored, serializers.get(_NAMESPACE), serializers[_VALUE], options)
    except (KeyError, ValueError):
        raise SavepointUnreadable(f"the kind of the state {name} is unknown") from None


def first_group(begins: tuple[int, ...]) -> int | None:
    """Offset of the first key group, which is the header's end; None if no group holds anything.

    ``begins``: offset of each key group, 0 if it is empty.
    """
    return min((begin for begin in begins if begin > 0), default=None)


def read_entries(group: bytes) -> Iterator[Entry]:
    """Entries of a key group, from its uncompressed content, in their order.

    Raises SavepointUnreadable if the group is damaged.
    """
    at = 0
    try:
        while (state := _NUMBER(group, at)[0]) != END_OF_GROUP:
            at += 2
            last = 0
            while not last:
                begin = at + 4
                end = begin + _LENGTH(group, at)[0]
                at = end + 4 + _LENGTH(group, end)[0]
                if begin == end:
                    raise SavepointUnreadable("an entry of a key group has no key")
                key = group[begin:end]
                # The first bit of a key tells that another state follows; key groups leave it free.
                last = key[0] & LAST_OF_RUN
                yield Entry(state, bytes([key[0] & ~LAST_OF_RUN]) + key[1:] if last else key, group[end + 4 : at])
    except struct.error:
        raise SavepointUnreadable("a key group ends early") from None
    if at + 2 != len(group):
        raise SavepointUnreadable("bytes follow the end of a key group")
    if not at:  # Flink looks for an entry in each group that begins somewhere (measured)
        raise SavepointUnreadable("a key group with an offset holds no entry")


def write_entries(entries: list[Entry]) -> bytes:
    """Uncompressed content of a key group; entries of one state must be adjacent."""
    if not entries:
        return b""
    out = []
    for place, (state, key, value) in enumerate(entries):
        if place == 0 or entries[place - 1].state != state:
            out.append(state.to_bytes(2, "big"))
        last = place + 1 == len(entries) or entries[place + 1].state != state
        marked = bytes([key[0] | LAST_OF_RUN]) + key[1:] if last else key
        out += [write_int(len(key)), marked, write_int(len(value)), value]
    return b"".join([*out, END_OF_GROUP.to_bytes(2, "big")])
