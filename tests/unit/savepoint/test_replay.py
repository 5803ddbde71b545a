"""Savepoints that replay the rows between two savepoints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.metadata import OperatorState, StateFile
from airflow_flinkcompat.savepoint.replay import write_replay
from airflow_flinkcompat.savepoint.source_positions import (
    PartitionRead,
    file_positions,
    kafka_positions,
    with_files,
    with_partitions,
)
from airflow_flinkcompat.savepoint.store import read_handle, read_metadata
from tests.support.savepoint.savepoints import FOLDER
from tests.unit.savepoint.test_source_positions import reading

STORED = FOLDER / "2.3" / "group-in-files"


def with_source(folder: Path, source: OperatorState) -> str:
    """Write the metadata of the stored savepoint with another source."""
    stored = read_metadata(str(STORED))
    others = tuple(each for each in stored.operators if each.coordinator is None)
    folder.mkdir()
    (folder / "_metadata").write_bytes(replace(stored, operators=(source, *others)).to_bytes())
    return str(folder)


def test_a_folder_of_files(tmp_path: Path) -> None:
    stored = read_metadata(str(STORED))
    (source,) = (each for each in stored.operators if each.coordinator is not None)
    seen = file_positions(source, str(STORED)).seen
    later = tmp_path / "later.csv"
    later.write_text("12345")
    last = with_source(tmp_path / "last", with_files(source, str(STORED), {*seen, later.as_uri()}))
    folder = str(tmp_path / "replay")
    write_replay(str(STORED), last, folder)
    made = read_metadata(folder)
    (source,) = (each for each in made.operators if each.coordinator is not None)
    (waiting,) = file_positions(source, folder).waiting
    assert (waiting.path, waiting.length) == (f"file:{later}", 5)
    handles = [handle for handle in made.handles() if isinstance(handle, StateFile)]
    assert handles
    assert not any(handle.relative for handle in handles)
    before = [read_handle(each, str(STORED)) for each in stored.handles() if isinstance(each, StateFile)]
    assert [read_handle(each, folder) for each in handles] == before, "keyed state is in the first savepoint"


def _topic(tmp_path: Path, *offsets: tuple[int, int]) -> list[tuple[int, int | None]]:
    """Offset and end of each partition in a replay; ``offsets``: offset of each partition in both savepoints."""
    first, last = (
        with_source(
            tmp_path / name,
            with_partitions(
                reading(3), "nowhere", [PartitionRead("t", number, pair[at]) for number, pair in enumerate(offsets)]
            ),
        )
        for at, name in enumerate(("first", "last"))
    )
    write_replay(first, last, str(tmp_path / "replay"))
    (source,) = (each for each in read_metadata(str(tmp_path / "replay")).operators if each.coordinator is not None)
    return [(each.offset, each.stop) for each in kafka_positions(source, "")]


def test_a_topic(tmp_path: Path) -> None:
    assert _topic(tmp_path, (3, 8), (-2, 4), (-2, -2)) == [(3, 8), (-2, 4), (-2, 0)]


def test_an_unknown_first_row(tmp_path: Path) -> None:
    with pytest.raises(SavepointUnreadable, match="had not read partition 0 of topic t yet"):
        _topic(tmp_path, (-3, 8))


def test_a_source_that_the_later_savepoint_lacks(tmp_path: Path) -> None:
    (other,) = (each for each in read_metadata(str(STORED)).operators if each.coordinator is not None)
    last = with_source(tmp_path / "last", replace(other, id="f" * 32))
    with pytest.raises(SavepointUnreadable, match=r"the position of the source in .* is unknown"):
        write_replay(str(STORED), last, str(tmp_path / "replay"))
