"""How far sources had read, of savepoints of a real Flink and of bytes as its classes write them."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable, write_int, write_long, write_text
from airflow_flinkcompat.savepoint.metadata import Inline, ListState, OperatorLists, OperatorState, SubtaskState
from airflow_flinkcompat.savepoint.source_positions import (
    FileSplit,
    FilesRead,
    PartitionRead,
    file_positions,
    kafka_positions,
    with_files,
    with_partitions,
    with_waiting_files,
)
from airflow_flinkcompat.savepoint.store import read_metadata
from tests.support.savepoint.savepoints import FOLDER

READ = "file:/data/flink-measured/savepoints-{line}/data/{number}/orders/before.csv"


@pytest.mark.parametrize(("name", "number"), [("2.3/tumble", 1), ("2.3/group-rocksdb", 11), ("1.20/tumble", 1)])
def test_a_job_that_waits_for_files_has_read_those_that_it_found(name: str, number: int) -> None:
    (source,) = (each for each in read_metadata(str(FOLDER / name)).operators if each.coordinator is not None)
    place = READ.format(line=name.partition("/")[0], number=number)
    assert file_positions(source, str(FOLDER / name)) == FilesRead(frozenset({place}), (), ())


def _nullable(text: str | None) -> bytes:
    if text is None:
        return b"\x00"
    characters = b"".join(bytes([ord(each)]) if ord(each) < 128 else _long(ord(each)) for each in text)
    return b"\x01" + _long(len(text) + 1) + characters


def _long(number: int) -> bytes:
    out = bytearray()
    while number >= 128:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def file_split(
    path: str, *, offset: int = 0, length: int = 10, size: int = 10, position: tuple[int, int] | None = None
) -> bytes:
    uri = b"\x01" + _nullable("file") + _nullable(None) * 2 + write_int(-1) + _nullable(path) + _nullable(None) * 2
    numbers = b"".join(map(write_long, (0, 10, 1_700_000_000_000, 10)))
    hosts = write_int(1) + write_text("localhost")
    told = b"\x00" if position is None else b"\x01" + b"".join(map(write_long, position))
    return write_text("0000000001") + uri + numbers + hosts + told


def enumerator(*splits: bytes, paths: tuple[str, ...] = (), magic: int = 0xDEADBEEF) -> bytes:
    parts = [*splits, *(path.encode() for path in paths)]
    content = struct.pack("<Iiii", magic, 1, len(splits), len(paths))
    content += b"".join(struct.pack("<i", len(part)) + part for part in parts)
    return write_int(1) + write_int(1) + write_int(len(content)) + content


def source(coordinator: bytes, *splits: bytes, version: int = 1) -> OperatorState:
    elements = [write_int(len(split) + 8) + write_int(version) + write_int(len(split)) + split for split in splits]
    begins, content = [], b"header"
    for element in elements:
        begins.append(len(content))
        content += element
    lists = OperatorLists((ListState("SourceReaderState", 0, tuple(begins)),), Inline("lists", content))
    return OperatorState("0" * 32, "Source: t", "", 1, 128, Inline("c", coordinator), (SubtaskState(0, managed=lists),))


def test_files_that_wait_and_files_that_are_being_read_are_told() -> None:
    found = file_positions(
        source(
            enumerator(file_split("/t/waits.csv"), paths=("file:/t/a.csv", "file:/t/ü.csv", "file:/t/waits.csv")),
            file_split("/t/ü.csv", position=(-1, 3)),
        ),
        "nowhere",
    )
    assert found == FilesRead(
        frozenset({"file:/t/a.csv", "file:/t/ü.csv", "file:/t/waits.csv"}),
        (FileSplit("file:/t/waits.csv", 0, 10, 10),),
        (FileSplit("file:/t/ü.csv", 0, 10, 10, 3),),
    )


def test_a_source_that_looks_once_knows_what_it_has_not_read() -> None:
    assert file_positions(source(enumerator(file_split("/t/b.csv"))), "nowhere").seen == frozenset()


def test_offsets_of_a_topic_are_told_by_partition() -> None:
    splits = [
        write_text("orders") + write_int(n) + write_long(at) + write_long(-(2**63)) for n, at in ((1, 7), (0, -2))
    ]
    assert kafka_positions(source(b"", *splits, version=0), "nowhere") == (
        PartitionRead("orders", 0, -2),
        PartitionRead("orders", 1, 7),
    )


@pytest.mark.parametrize(
    ("coordinator", "reason"),
    [
        (enumerator(magic=7), "has an unknown form"),
        (write_int(9), "coordinator state has version 9, which is not supported"),
        (enumerator(b"\x00\x00"), "damaged"),
    ],
)
def test_what_is_damaged_or_new_is_refused(coordinator: bytes, reason: str) -> None:
    with pytest.raises(SavepointUnreadable, match=reason):
        file_positions(source(coordinator), "nowhere")


def test_splits_of_another_version_are_refused() -> None:
    with pytest.raises(SavepointUnreadable, match="version 9"):
        kafka_positions(source(b"", b"", version=9), "nowhere")
    with pytest.raises(SavepointUnreadable, match="version 9"):
        file_positions(source(enumerator(), b"", version=9), "nowhere")


def reading(own: int, subtasks: int = 2) -> OperatorState:
    """A source of Kafka whose enumerator writes this version, before it has found anything."""
    empty = source(write_int(1) + write_int(own) + write_int(3) + b"old" + b"rest")
    (only,) = empty.subtasks or ()
    return replace(empty, subtasks=tuple(replace(only, index=index) for index in range(subtasks)))


PARTITIONS = (PartitionRead("orders", 0, 1200), PartitionRead("orders", 1, 0), PartitionRead("orders", 2, 7))
NAMES = [write_text("orders") + write_int(number) for number in range(3)]
SPLITS = [name + write_long(each.offset) + b"\x80" + bytes(7) for name, each in zip(NAMES, PARTITIONS, strict=True)]
ASSIGNED = write_int(0)


@pytest.mark.parametrize(
    ("own", "known"),
    [
        (2, write_int(3) + b"".join(name + ASSIGNED for name in NAMES) + b"\x01"),
        (
            3,
            write_int(3) + write_int(0) + b"".join(write_int(len(one)) + one + ASSIGNED for one in SPLITS) + b"\x01",
        ),
    ],
)
def test_partitions_are_written_in_the_version_of_the_connector(own: int, known: bytes) -> None:
    """As KafkaSourceEnumStateSerializer of the connectors 3.4 and 5.0 writes them; in turn for the subtasks."""
    made = with_partitions(reading(own), "nowhere", PARTITIONS)
    assert kafka_positions(made, "nowhere") == PARTITIONS
    assert [len(each.managed.lists[0].begins) for each in made.subtasks or () if each.managed] == [2, 1]
    head = write_int(1) + write_int(own) + write_int(len(known))
    assert made.coordinator == Inline("coordinator", head + known + b"rest")


def test_files_are_written_as_read_to_their_end() -> None:
    found = source(enumerator(file_split("/t/waits.csv"), paths=("file:/t/a.csv",)), file_split("/t/b.csv"))
    made = with_files(found, "nowhere", {"file:/t/ü.csv", "file:/t/b.csv"})
    assert file_positions(made, "nowhere") == FilesRead(frozenset({"file:/t/ü.csv", "file:/t/b.csv"}), (), ())
    assert made.coordinator == Inline("coordinator", enumerator(paths=("file:/t/b.csv", "file:/t/ü.csv")))


def test_a_partition_ends_at_its_stop() -> None:
    partitions = tuple(replace(each, stop=each.offset + 5) for each in PARTITIONS)
    assert kafka_positions(with_partitions(reading(3), "nowhere", partitions), "nowhere") == partitions


def test_files_are_added_to_those_that_wait() -> None:
    found = source(enumerator(file_split("/t/waits.csv"), paths=("file:/t/a.csv", "file:/t/waits.csv")))
    added = {"file:/t/ü.csv": 7, "hdfs://name:8020/t/b.csv": 9, "s3://bucket/t/c d.csv": 0}
    made = with_waiting_files(found, "nowhere", added)
    assert file_positions(made, "nowhere") == FilesRead(
        frozenset({"file:/t/a.csv", "file:/t/waits.csv", *added}),
        (
            FileSplit("file:/t/waits.csv", 0, 10, 10),
            *(FileSplit(uri, 0, size, size) for uri, size in sorted(added.items())),
        ),
        (),
    )


def test_positions_of_a_form_that_is_not_known_are_not_written() -> None:
    with pytest.raises(SavepointUnreadable, match="enumerator state has version 4, which is not supported"):
        with_partitions(reading(4), "nowhere", PARTITIONS)
    with pytest.raises(SavepointUnreadable, match="has an unknown form"):
        with_files(source(enumerator(magic=7)), "nowhere", ())
    bare = replace(reading(3), subtasks=(SubtaskState(0),))
    with pytest.raises(SavepointUnreadable, match="stores no list of splits"):
        with_partitions(bare, "nowhere", PARTITIONS)
    with pytest.raises(SavepointUnreadable, match="stores no enumerator state"):
        with_partitions(replace(bare, coordinator=None), "nowhere", PARTITIONS)
