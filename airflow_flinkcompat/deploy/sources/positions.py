"""Positions of a stopped job's Kafka sources, read from its savepoint, the only exact source.

Measured on Flink 2.3 with Kafka's connector 5.0: the offset that REST shows before a stop (``currentOffset``) lags by
the rows read since, and so does the consumer group. Commits are asynchronous, that of a stop with savepoint was never
seen (4 of 4 stops, one of them of a group that had committed 3 and was at 503), and a job's first commit may fail.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from airflow_flinkcompat.deploy.flink.snapshot import StoredList, read_lists
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable

EARLIEST, COMMITTED = -2, -3
"""Placeholders for a position of an unread partition; -1, the end, would be ambiguous later."""
_READERS = "SourceReaderState"
_LENGTH = struct.Struct(">i")
_PARTITION = struct.Struct(">iqq")


class PositionsUnknown(Exception):
    """Positions that a savepoint lacks, or that cannot be read here; the message names the reason."""


def read_positions(savepoint: str) -> dict[str, dict[int, int]]:
    """Topic → partition → the next offset to read. Raises PositionsUnknown."""
    try:
        return positions_of(read_lists(savepoint, _READERS))
    except SavepointUnreadable as error:
        raise PositionsUnknown(f"cannot read the job's offsets in the savepoint {savepoint}: {error}") from None


def positions_of(states: Iterable[StoredList]) -> dict[str, dict[int, int]]:
    """Positions in the states of source readers; other connectors are skipped. Raises PositionsUnknown."""
    found: dict[str, dict[int, int]] = {}
    for state in states:
        for begin in state.begins:
            split = _split(state.content, begin)
            if split is None:
                continue
            topic, partition, offset = split
            before = found.setdefault(topic, {}).setdefault(partition, offset)
            if before != offset:
                raise PositionsUnknown(
                    f"two sources of the job read topic {topic} at different offsets of partition "
                    f"{partition} ({before} and {offset}), so no single position resumes without loss or "
                    "duplicates"
                )
    return found


def specific_offsets(partitions: Mapping[int, int]) -> str:
    """Offsets in the form of Flink's Kafka option: ``partition:0,offset:42;partition:1,offset:300``."""
    return ";".join(f"partition:{number},offset:{offset}" for number, offset in sorted(partitions.items()))


def _split(content: bytes, begin: int) -> tuple[str, int, int] | None:
    """A reader's partition: length, version, length, then topic, partition, position and where to stop.

    None for content in any other form.
    """
    try:
        (whole,) = _LENGTH.unpack_from(content, begin)
        version, length = struct.unpack_from(">ii", content, begin + 4)
        (name,) = struct.unpack_from(">H", content, begin + 12)
        if version != 0 or whole != length + 8 or length != 2 + name + _PARTITION.size:
            return None
        topic = content[begin + 14 : begin + 14 + name].decode("ascii")
        partition, offset, _stop = _PARTITION.unpack_from(content, begin + 14 + name)
    except (struct.error, UnicodeDecodeError):
        return None
    return (topic, partition, offset) if partition >= 0 and offset >= COMMITTED else None
