"""The metadata of savepoints, as Flink writes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.metadata import (
    Handle,
    Inline,
    KeyedForm,
    KeyGroups,
    ListState,
    OperatorLists,
    OperatorState,
    SavepointMetadata,
    StateFile,
    SubtaskState,
    parse_metadata,
)
from tests.support.savepoint.savepoints import FOLDER, TAKEN

_INTS = st.integers(-(2**31), 2**31 - 1)
_LONGS = st.integers(-(2**63), 2**63 - 1)
_TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
_HANDLES: st.SearchStrategy[Handle | None] = (
    st.none() | st.builds(Inline, _TEXTS, st.binary(max_size=9)) | st.builds(StateFile, _TEXTS, _LONGS, st.booleans())
)
_BEGINS = st.lists(_LONGS, max_size=3).map(tuple)
_LISTS = st.builds(
    OperatorLists, st.lists(st.builds(ListState, _TEXTS, st.integers(0, 2), _BEGINS), max_size=2).map(tuple), _HANDLES
)


@st.composite
def _key_groups(draw: st.DrawFn) -> KeyGroups:
    form = draw(st.sampled_from(KeyedForm))
    id = draw(_TEXTS) if form is KeyedForm.KEY_GROUPS_WITH_ID else ""
    return KeyGroups(form, draw(_INTS), draw(_BEGINS), draw(_HANDLES), id)


@st.composite
def _subtasks(draw: st.DrawFn) -> SubtaskState:
    index = draw(_INTS)
    if index < 0:
        return SubtaskState(index)
    managed, raw = draw(st.none() | _LISTS), draw(st.none() | _LISTS)
    keyed, raw_keyed = draw(st.none() | _key_groups()), draw(st.none() | _key_groups())
    marked = (draw(st.booleans()) or managed is not None, draw(st.booleans()) or raw is not None)
    return SubtaskState(index, managed, raw, keyed, raw_keyed, marked)


@st.composite
def _metadata(draw: st.DrawFn) -> SavepointMetadata:
    version = draw(st.integers(4, 6))
    names = _TEXTS if version >= 5 else st.just("")
    operators = st.builds(
        OperatorState,
        st.binary(min_size=16, max_size=16).map(bytes.hex),
        names,
        names,
        _INTS,
        _INTS,
        _HANDLES,
        st.none() | st.lists(_subtasks(), max_size=2).map(tuple),
    )
    return SavepointMetadata(
        version,
        draw(_LONGS),
        tuple(draw(st.lists(st.binary(max_size=5), max_size=2))),
        tuple(draw(st.lists(operators, max_size=3))),
        draw(st.binary(max_size=9)),
    )


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_read_and_written_again_is_the_same(name: str) -> None:
    content = (FOLDER / name / "_metadata").read_bytes()
    assert parse_metadata(content).to_bytes() == content


@given(_metadata())
def test_whatever_is_written_is_read(metadata: SavepointMetadata) -> None:
    assert parse_metadata(metadata.to_bytes(), headers=True) == metadata


@given(st.data())
def test_a_damaged_file_is_unreadable_or_read_to_the_byte(data: st.DataObject) -> None:
    whole = bytearray((FOLDER / "2.3" / "left-join" / "_metadata").read_bytes())
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    damaged = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        read = parse_metadata(damaged)
    except SavepointUnreadable:
        return
    # Whether lists that hold nothing are marked as there is the one thing that several numbers say.
    assert len(read.to_bytes()) == len(damaged)


def test_an_operator_of_a_join_is_told() -> None:
    operators = parse_metadata((FOLDER / "2.3" / "left-join" / "_metadata").read_bytes()).operators
    (join,) = (each for each in operators if each.name.startswith("Join["))
    assert (join.parallelism, join.max_parallelism, join.has_state, join.uid) == (1, 128, True, "")
    (source,) = (each for each in operators if each.name.startswith("Source:"))
    assert source.coordinator is not None
    assert {state.name for lists in source.lists for state in lists.lists} == {"SourceReaderState"}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (3, "has the form of a checkpoint or a native savepoint"),
        (5, "consists of files of RocksDB or ForSt, as in a checkpoint or a native savepoint"),
        (11, "consists of files of RocksDB or ForSt, as in a checkpoint or a native savepoint"),
        (12, "has the form of a checkpoint or a native savepoint"),
        (14, "is a log of changes, as in a changelog checkpoint"),
        (99, "has the unknown kind 99"),
    ],
)
def test_a_checkpoint_or_native_savepoint_is_refused_by_name(kind: int, name: str) -> None:
    operator = OperatorState("0" * 32, "", "", 1, 128, None, (SubtaskState(0),))
    content = SavepointMetadata(6, 1, (), (operator,), b"").to_bytes()
    # The keyed state of the only subtask stands 10 bytes from the end: two of them, then two numbers.
    damaged = content[:-10] + bytes([kind]) + content[-9:]
    with pytest.raises(SavepointUnreadable, match=f"its keyed state {name}: only a canonical savepoint"):
        parse_metadata(damaged)


@pytest.mark.parametrize("version", [3, 7])
def test_a_version_that_was_never_read_is_refused(version: int) -> None:
    content = SavepointMetadata(version, 1, (), (), b"").to_bytes()
    with pytest.raises(SavepointUnreadable, match=rf"_metadata has version {version}, which .* \(supported: 4, 5, 6\)"):
        parse_metadata(content)


def test_files_of_a_database_are_written_as_they_were_read() -> None:
    content = (FOLDER.parent / "checkpoints" / "2.3" / "rocksdb-incremental" / "_metadata").read_bytes()
    stored = parse_metadata(content, headers=True)
    assert stored.to_bytes() == content
    keyed, *_ = (part for each in stored.operators for subtask in each.subtasks or () for part in subtask.by_key)
    assert keyed.files is not None
    assert len([*keyed.handles]) > 2
    moved = keyed.with_handles(lambda handle: Inline("moved", b""))
    assert {handle.name for handle in moved.handles if isinstance(handle, Inline)} == {"moved"}
