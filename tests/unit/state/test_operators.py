"""Operators, source positions and operator state of savepoints as rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable, write_int
from airflow_flinkcompat.savepoint.metadata import (
    Handle,
    Inline,
    ListState,
    OperatorLists,
    OperatorState,
    StateFile,
    SubtaskState,
)
from airflow_flinkcompat.savepoint.source_positions import PartitionRead, with_partitions
from airflow_flinkcompat.savepoint.store import read_metadata
from airflow_flinkcompat.state import OPERATORS, SOURCES, OpenSavepoint, compare, open_savepoint, operator_state, query
from dev.measure.savepoint_fixtures import SAVEPOINTS
from tests.unit.savepoint.test_source_positions import enumerator, file_split, source

FILES = SAVEPOINTS / "2.3" / "files"


def changed(folder: Path, change: Callable[[OperatorState], OperatorState]) -> OpenSavepoint:
    """A savepoint in which an operator with a coordinator or with operator state is replaced."""
    metadata = read_metadata(str(FILES))
    operators = tuple(change(each) if each.has_state else each for each in metadata.operators)
    (folder / "_metadata").write_bytes(replace(metadata, operators=operators).to_bytes())
    return open_savepoint(str(folder))


def test_operators_with_sizes_and_subtasks() -> None:
    rows = OPERATORS.read(open_savepoint(str(FILES))).to_pylist()
    assert [(row["name"], row["operator_state_bytes"], row["coordinator_bytes"]) for row in rows] == [
        ("Source: orders", 234, 97),
        ("Calc", 0, 0),
        ("WatermarkAssigner", 0, 0),
        ("end: Writer", 0, 0),
        ("StreamingFileWriter", 615, 0),
    ]
    assert {row["finished_subtasks"] for row in rows} == {0}


def test_offsets_of_a_topic(tmp_path: Path) -> None:
    def of_kafka(operator: OperatorState) -> OperatorState:
        if operator.coordinator is None:
            return operator
        empty = Inline("c", write_int(1) + write_int(2) + write_int(5) + write_int(0) + b"\1")
        read = (PartitionRead("orders", 0, 1200), PartitionRead("orders", 1, -3))
        return with_partitions(replace(operator, coordinator=empty), "nowhere", read)

    savepoint = changed(tmp_path, of_kafka)
    with query(savepoint, "SELECT connector, split, partition, position, status FROM _sources") as result:
        assert result.relation.fetchall() == [
            ("kafka", "orders", 0, 1200, "read"),
            ("kafka", "orders", 1, -3, "not read"),
        ]


def test_changed_positions_are_differences(tmp_path: Path) -> None:
    def reading(*read: PartitionRead) -> OpenSavepoint:
        def of_kafka(operator: OperatorState) -> OperatorState:
            if operator.coordinator is None:
                return operator
            empty = Inline("c", write_int(1) + write_int(2) + write_int(5) + write_int(0) + b"\1")
            return with_partitions(replace(operator, coordinator=empty), "nowhere", read)

        return changed(tmp_path, of_kafka)

    first = reading(PartitionRead("orders", 0, 1200), PartitionRead("orders", 1, 7))
    second = reading(PartitionRead("orders", 0, 1201), PartitionRead("orders", 1, 7), PartitionRead("orders", 2, -3))
    assert not any(compare(first, first))
    (found,) = compare(first, second)
    assert (found.table, found.added, found.removed, found.changed) == ("_sources", 1, 0, 1)
    assert found.rows is not None
    by_partition = {row["partition"]: row for row in found.rows.to_pylist()}
    assert by_partition.keys() == {0, 2}
    assert (by_partition[0]["position (first)"], by_partition[0]["position (second)"]) == (1200, 1201)
    assert "row_number" not in by_partition[0]


def test_files_of_a_folder_without_secrets(tmp_path: Path) -> None:
    paths = ("file:/t/read.csv", "file:/t/waits.csv", "s3://key:secret@bucket/a?token=s3cr3t")
    files = source(enumerator(file_split("/t/waits.csv"), paths=paths), file_split("/t/open.csv", position=(7, 3)))

    def of_files(operator: OperatorState) -> OperatorState:
        return operator if operator.coordinator is None else replace(files, id=operator.id)

    rows = SOURCES.read(changed(tmp_path, of_files)).to_pylist()
    assert [(row["split"], row["status"], row["position"], row["rows_read"]) for row in rows] == [
        ("file:/t/open.csv", "in progress", 7, 3),
        ("file:/t/waits.csv", "waiting", 0, 0),
        ("file:/t/read.csv", "read", None, None),
        ("s3://key:***@bucket/a?token=***", "read", None, None),
    ]


def test_positions_of_other_connectors_are_unknown(tmp_path: Path) -> None:
    def other(operator: OperatorState) -> OperatorState:
        if operator.coordinator is None:
            return operator
        return replace(operator, coordinator=Inline("c", write_int(1) + write_int(7) + write_int(1) + b"x"))

    (row,) = SOURCES.read(changed(tmp_path, other)).to_pylist()
    assert (row["operator"], row["connector"]) == ("Source: orders", None)
    assert row["status"] == "a connector whose positions cannot be read"


def test_an_unknown_version_is_a_status(tmp_path: Path) -> None:
    def newer(operator: OperatorState) -> OperatorState:
        if operator.coordinator is None:
            return operator
        return replace(operator, coordinator=Inline("c", write_int(9)))

    (row,) = SOURCES.read(changed(tmp_path, newer)).to_pylist()
    assert row["status"] == "cannot be read: coordinator state has version 9, which is not supported"


@pytest.mark.parametrize(
    ("coordinator", "reason"),
    [
        (StateFile("gone", 9, relative=True), r"/gone cannot be read from here \(FileNotFoundError\)"),
        (Inline("c", write_int(1) + b"\0"), "it is damaged or truncated: 4 bytes are missing at byte 4"),
        (enumerator(file_split("/\ud800")), "the path of a file is not valid text"),
    ],
)  # fmt: skip
def test_a_missing_or_damaged_position_names_its_source(
    coordinator: Handle | bytes, reason: str, tmp_path: Path
) -> None:
    def damaged(operator: OperatorState) -> OperatorState:
        if operator.coordinator is None:
            return operator
        made = Inline("c", coordinator) if isinstance(coordinator, bytes) else coordinator
        return replace(operator, coordinator=made)

    savepoint = changed(tmp_path, damaged)
    with pytest.raises(SavepointUnreadable, match=f"{tmp_path}: Source: orders: .*{reason}"):
        SOURCES.read(savepoint)
    with pytest.raises(SavepointUnreadable, match=reason), query(savepoint, "FROM _sources") as result:
        result.reader().read_all()


def test_rows_that_wait_in_a_sink(tmp_path: Path) -> None:
    lists = OperatorLists(
        (ListState("bucket-states", 0, (4, 14)), ListState("max-part-counter", 1, (24,))), Inline("lists", bytes(32))
    )

    def waiting(operator: OperatorState) -> OperatorState:
        if operator.coordinator is not None:
            return operator
        return replace(operator, subtasks=(SubtaskState(0, managed=lists), SubtaskState(1, managed=lists)))

    found = [
        (row["list"], row["elements"], row["bytes"], row["waits"]) for row in operator_state(changed(tmp_path, waiting))
    ]
    assert found == [("bucket-states", 4, 40, "files in progress"), ("max-part-counter", 2, 16, None)]
