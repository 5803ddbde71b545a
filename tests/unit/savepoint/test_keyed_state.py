"""Files of keyed state, as Flink writes them with the heap backend and with RocksDB."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.savepoint.binary import KeyedStateKind, SavepointUnreadable, write_int, write_text
from airflow_flinkcompat.savepoint.keyed_state import (
    END_OF_GROUP,
    Entry,
    KeyedFile,
    KeyedHeader,
    key_group,
    read_entries,
    read_header,
)
from airflow_flinkcompat.savepoint.metadata import KeyGroups
from airflow_flinkcompat.savepoint.serializers import Serializer, serializer_names
from airflow_flinkcompat.savepoint.store import StoredContent
from dev.stored_rows import write_entries
from tests.support.savepoint.savepoints import TAKEN, keyed

_ENTRIES = st.lists(
    st.builds(
        Entry,
        st.integers(0, 3),
        st.binary(min_size=1, max_size=5).map(lambda key: bytes([key[0] & 0x7F]) + key[1:]),
        st.binary(max_size=5),
    ),
    max_size=8,
).map(lambda entries: sorted(entries, key=lambda entry: entry.state))


def in_memory(groups: KeyGroups, header: KeyedHeader, content: bytes) -> KeyedFile:
    return KeyedFile(header, groups, StoredContent("file", len(content), BytesIO(content)))


def test_states_are_told_with_their_types(snapshot: SnapshotAssertion) -> None:
    told = {
        f"{name} {operator.name.partition('[')[0] or operator.id}": {
            "key": str(header.key),
            **{state.name: f"{state.kind} {state.namespace or ''} {state.value}" for state in header.states},
        }
        for name in TAKEN
        for operator, _, header, _ in keyed(name)
    }
    assert told == snapshot


@pytest.mark.parametrize("name", TAKEN)
def test_entries_are_read_and_written_again_the_same_and_lie_in_the_group_of_their_key(name: str) -> None:
    for operator, groups, header, content in keyed(name):
        prefix = 1 if operator.max_parallelism <= 128 else 2
        entries = 0
        for number, group in in_memory(groups, header, content).groups():
            read = list(read_entries(group))
            assert write_entries(read) == group
            for entry in read:
                # A timer's time stands in front of its key.
                begin = prefix + 8 * (header.states[entry.state].kind is KeyedStateKind.TIMERS)
                row = begin + 4
                size = int.from_bytes(entry.key[begin:row], "big")
                assert key_group(entry.key[row : row + size], operator.max_parallelism) == number
            entries += len(read)
        assert entries or not any(groups.begins)


def test_every_savepoint_with_an_aggregation_is_looked_into() -> None:
    assert {name for name in TAKEN if any(True for _ in keyed(name))} == set(TAKEN) - {"2.3/files"}


@given(_ENTRIES)
def test_whatever_is_written_is_read(entries: list[Entry]) -> None:
    assert list(read_entries(write_entries(entries)) if entries else ()) == entries


def test_a_key_group_without_entries_is_not_written() -> None:
    """Flink restored none that is said to begin somewhere and holds nothing: it reads what follows as an entry."""
    assert write_entries([]) == b""
    with pytest.raises(SavepointUnreadable, match="contains no entry"):
        list(read_entries(END_OF_GROUP.to_bytes(2, "big")))


@given(st.data())
def test_a_damaged_file_is_unreadable_or_read(data: st.DataObject) -> None:
    _, groups, header, content = next(iter(keyed("2.3/group-compressed")))
    whole = bytearray(content)
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        read_header(bytes(whole), len(header.stored))
        for _, group in in_memory(groups, header, bytes(whole)).groups():
            list(read_entries(group))
    except SavepointUnreadable:
        pass


def test_a_header_that_ends_elsewhere_is_refused() -> None:
    _, _, header, content = next(iter(keyed("2.3/group")))
    with pytest.raises(SavepointUnreadable, match="ends at byte"):
        read_header(content, len(header.stored) + 1)
    with pytest.raises(SavepointUnreadable, match="bytes are missing at byte"):
        read_header(content, len(header.stored) - 1)


def _snapshots(serializer: Serializer) -> Iterator[Serializer]:
    yield serializer
    for nested in serializer.nested:
        yield from _snapshots(nested)


def test_a_serializer_snapshot_of_a_version_that_was_never_read_is_refused() -> None:
    """Each class that a kept savepoint holds, once in the next version: Flink's main has a RowDataSerializer in 4."""
    seen = set()
    for name in TAKEN:
        for _, _, header, _ in keyed(name):
            states = (each for state in header.states for each in (state.namespace, state.value) if each is not None)
            for snapshot in (each for whole in (header.key, *states) for each in _snapshots(whole)):
                if snapshot.class_name in seen:
                    continue
                seen.add(snapshot.class_name)
                head = write_text(snapshot.class_name)
                version = int.from_bytes(snapshot.stored[len(head) : len(head) + 4], "big")
                newer = header.stored.replace(head + write_int(version), head + write_int(version + 1), 1)
                with pytest.raises(
                    SavepointUnreadable, match=rf"version {version + 1}, .* \(supported: {version}\)"
                ) as error:
                    read_header(newer)
                assert snapshot.class_name in str(error.value)
                renamed = header.stored.replace(head, head[:-1] + b"?", 1)
                with pytest.raises(SavepointUnreadable, match=r"\? has version .* not supported$"):
                    read_header(renamed)
    assert any(each.endswith("RowDataSerializerSnapshot") for each in seen)
    assert any(each.endswith("TtlSerializerSnapshot") for each in seen)


def test_other_versions_of_a_header_and_of_a_part_are_refused() -> None:
    _, _, header, _ = next(iter(keyed("2.3/group-ttl")))
    with pytest.raises(
        SavepointUnreadable, match=r"keyed state has version 7, which is not supported \(supported: 6\)"
    ):
        read_header(write_int(7) + header.stored[4:])
    magic = struct.pack(">I", 911108)
    newer = header.stored.replace(magic + write_int(2), magic + write_int(3), 1)
    with pytest.raises(SavepointUnreadable, match=r"the own part of serializer snapshot .* has version 3"):
        read_header(newer)


def test_an_object_without_a_type_is_damaged() -> None:
    _, _, header, _ = next(iter(keyed("2.3/group-distinct")))
    assert b"logicalType" in header.stored
    with pytest.raises(SavepointUnreadable, match="None is not a known logical type"):
        read_header(header.stored.replace(b"logicalType", b"logicalTypf"))


@pytest.mark.parametrize(
    ("begins", "reason"), [((0, 9), "after the end of its file"), ((3, 3), "two key groups begin at the same byte")]
)
def test_groups_that_are_not_in_the_file_are_refused(begins: tuple[int, ...], reason: str) -> None:
    _, groups, header, _ = next(iter(keyed("2.3/group")))
    with pytest.raises(SavepointUnreadable, match=f"^file: .*{reason}"):
        list(in_memory(replace(groups, begins=begins), header, b"12345").groups())


def test_names_of_serializers_include_unknown_classes() -> None:
    classes = (
        "org.apache.flink.table.runtime.typeutils.RowDataSerializer$RowDataSerializerSnapshot",
        "org.apache.flink.api.java.typeutils.runtime.kryo.KryoSerializerSnapshot",
        "org.apache.flink.api.common.typeutils.base.MapSerializerSnapshot",
        "org.apache.flink.runtime.state.VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot",
    )
    header = b"".join(len(each).to_bytes(2, "big") + each.encode() + b"\0\0\0\3" for each in classes)
    assert serializer_names(header) == {"RowData", "Kryo", "Map"}
