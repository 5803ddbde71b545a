"""Savepoints that replay the rows between two savepoints."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.metadata import OperatorState, StateFile
from airflow_flinkcompat.savepoint.replay import (
    partitions_by_reader,
    reached_end,
    write_beginning,
    write_renamed,
    write_replay,
    write_resumable,
)
from airflow_flinkcompat.savepoint.source_positions import (
    PartitionRead,
    file_positions,
    kafka_positions,
    with_files,
    with_partitions,
    with_waiting_files,
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


def topics(tmp_path: Path, *offsets: tuple[int, int]) -> list[str]:
    """Two savepoints of a job that reads a topic; ``offsets``: offset of each partition in both savepoints."""
    return [
        with_source(
            tmp_path / name,
            with_partitions(
                reading(3), "nowhere", [PartitionRead("t", number, pair[at]) for number, pair in enumerate(offsets)]
            ),
        )
        for at, name in enumerate(("first", "last"))
    ]


def source_of(savepoint: str) -> OperatorState:
    (source,) = (each for each in read_metadata(savepoint).operators if each.coordinator is not None)
    return source


def read(savepoint: str) -> list[tuple[int, int | None]]:
    """Offset and end of each partition."""
    return [(each.offset, each.stop) for each in kafka_positions(source_of(savepoint), "")]


def _topic(tmp_path: Path, *offsets: tuple[int, int]) -> list[tuple[int, int | None]]:
    first, last = topics(tmp_path, *offsets)
    write_replay(first, last, str(tmp_path / "replay"))
    return read(str(tmp_path / "replay"))


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


def test_sources_that_stop_without_an_end(tmp_path: Path) -> None:
    """Only a source that ends knows a partition that does not exist."""
    first, last = topics(tmp_path, (3, 8), (0, 4))
    ends, waits = str(tmp_path / "ends"), str(tmp_path / "waits")
    write_replay(first, last, ends)
    write_replay(first, last, waits, ends=False)
    assert read(ends) == read(waits) == [(3, 8), (0, 4)]
    known = [read_handle(source_of(each).coordinator, each) for each in (ends, waits)]
    assert len(known[0]) > len(known[1])
    assert partitions_by_reader(waits, waits) == 2, "the source has one subtask"


def test_a_source_with_another_id(tmp_path: Path) -> None:
    first, last = topics(tmp_path, (3, 8))
    renamed = with_source(tmp_path / "renamed", replace(source_of(first), id="a" * 32))
    write_replay(renamed, last, str(tmp_path / "replay"), ids={"a" * 32: source_of(last).id})
    assert read(str(tmp_path / "replay")) == [(3, 8)]


def test_the_beginning_of_a_topic(tmp_path: Path) -> None:
    _, last = topics(tmp_path, (3, 8), (0, -2))
    write_beginning(last, str(tmp_path / "beginning"))
    assert read(str(tmp_path / "beginning")) == [(0, 8), (0, 0)]
    assert len(read_metadata(str(tmp_path / "beginning")).operators) == 1, "no other operator has state"


def test_the_beginning_of_a_folder(tmp_path: Path) -> None:
    stored, later = source_of(str(STORED)), tmp_path / "later.csv"
    later.write_text("12345")
    last = with_source(tmp_path / "last", with_files(stored, str(STORED), {later.as_uri()}))
    write_beginning(last, str(tmp_path / "beginning"))
    (waiting,) = file_positions(source_of(str(tmp_path / "beginning")), "").waiting
    assert waiting.path == f"file:{later}"
    assert not reached_end(str(tmp_path / "beginning"))


def test_a_file_that_was_not_read_to_its_end(tmp_path: Path) -> None:
    stored, later = source_of(str(STORED)), tmp_path / "later.csv"
    later.write_text("12345")
    empty = with_files(stored, str(STORED), ())
    last = with_source(tmp_path / "last", with_waiting_files(empty, str(STORED), {later.as_uri(): 5}))
    with pytest.raises(SavepointUnreadable, match=r"had not read .*later.csv to its end in"):
        write_replay(str(STORED), last, str(tmp_path / "replay"), ends=False)
    with pytest.raises(SavepointUnreadable, match=r"had not read .*later.csv to its end in"):
        write_beginning(last, str(tmp_path / "beginning"))


def test_the_end_of_a_topic(tmp_path: Path) -> None:
    (savepoint, _) = topics(tmp_path, (3, 8))
    assert not reached_end(savepoint)
    read = with_source(tmp_path / "read", with_partitions(source_of(savepoint), savepoint, ()))
    assert reached_end(read)


def test_state_with_the_positions_of_another_job(tmp_path: Path) -> None:
    own, positions_of = topics(tmp_path, (3, 8))
    later = replace(read_metadata(positions_of), checkpoint_id=137)
    (tmp_path / "last" / "_metadata").write_bytes(later.to_bytes())
    folder, source = str(tmp_path / "resumable"), source_of(own)
    write_resumable(own, positions_of, folder, {source.id: source.id})
    assert read(folder) == [(8, None)]
    assert read_metadata(folder).checkpoint_id == 137, "a transaction of the sink has the number of this checkpoint"
    others = {each.id for each in read_metadata(own).operators}
    assert {each.id for each in read_metadata(folder).operators} == others


def test_positions_of_too_many_subtasks(tmp_path: Path) -> None:
    own, positions_of = topics(tmp_path, (3, 8))
    source = source_of(positions_of)
    wide = with_source(tmp_path / "wide", replace(source, id="b" * 32, parallelism=500))
    with pytest.raises(SavepointUnreadable, match="has 500 subtasks, and the new job at most 128"):
        write_resumable(own, wide, str(tmp_path / "resumable"), {source.id: "b" * 32})


def test_a_source_that_restores_the_position_of_another_folder(tmp_path: Path) -> None:
    """The source reads what its own folder contains beyond the stored position, as after a restart."""
    own, other = (tmp_path / name for name in ("own.csv", "other.csv"))
    for each in (own, other):
        each.write_text("1")
    stored = source_of(str(STORED))
    first = with_source(tmp_path / "first", with_files(stored, str(STORED), {other.as_uri()}))
    last = with_source(tmp_path / "last", replace(with_files(stored, str(STORED), {own.as_uri()}), id="b" * 32))
    write_replay(first, last, str(tmp_path / "replay"), ids={stored.id: "b" * 32})
    replayed = file_positions(source_of(str(tmp_path / "replay")), str(tmp_path / "replay"))
    assert [each.path for each in replayed.waiting] == [f"file:{own}"]
    write_replay(first, last, str(tmp_path / "without"), without=[stored.id])
    assert all(each.coordinator is None for each in read_metadata(str(tmp_path / "without")).operators)


def test_the_beginning_of_sources_with_other_ids(tmp_path: Path) -> None:
    _, last = topics(tmp_path, (3, 5))
    ids = {"b" * 32: source_of(last).id, "c" * 32: source_of(last).id}
    write_beginning(last, str(tmp_path / "beginning"), ids)
    made = read_metadata(str(tmp_path / "beginning")).operators
    assert [each.id for each in made] == ["b" * 32, "c" * 32]
    for each in made:
        assert kafka_positions(each, str(tmp_path / "beginning")) == (PartitionRead("t", 0, 0, 5),)


def test_a_job_that_is_behind_an_earlier_savepoint(tmp_path: Path) -> None:
    first, last = topics(tmp_path, (8, 3))
    with pytest.raises(SavepointUnreadable, match="has a later position in"):
        write_replay(first, last, str(tmp_path / "replay"), ends=False)


def test_other_operator_ids(tmp_path: Path) -> None:
    """In another folder, the metadata refers to the state of the first savepoint. In its own folder, it does not change
    places."""
    stored = read_metadata(str(STORED))
    first, *others = (each.id for each in stored.operators)
    renamed = {each: each[::-1] for each in others}
    folder, copy = str(tmp_path / "renamed"), tmp_path / "copy"
    shutil.copytree(STORED, copy)
    write_renamed(str(STORED), folder, renamed.get)
    write_renamed(str(copy), str(copy), renamed.get)
    for place, relative in ((folder, False), (str(copy), True)):
        made = read_metadata(place)
        assert [each.id for each in made.operators] == [*renamed.values()], f"without {first}"
        handles = [handle for handle in made.handles() if isinstance(handle, StateFile)]
        assert {handle.relative for handle in handles} == {relative}
        kept = [each for operator in stored.operators[1:] for each in replace(stored, operators=(operator,)).handles()]
        before = [read_handle(each, str(STORED)) for each in kept if isinstance(each, StateFile)]
        assert [read_handle(each, place) for each in handles] == before
