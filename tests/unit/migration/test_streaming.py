"""However a migration is divided up, it writes the same entries; what is damaged is an error that names the file."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_flinkcompat.migration import MigrationVerificationFailed, NotMigratable, migrate_savepoint
from airflow_flinkcompat.migration.workers import LocalWorkers, Spill
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.binary_row import NULL, Field, FieldForm, read_row, write_row
from airflow_flinkcompat.savepoint.metadata import Inline, StateFile
from airflow_flinkcompat.savepoint.row_mapping import row_mapping
from airflow_flinkcompat.savepoint.store import read_handle, read_metadata
from dev.benchmarks.generated_savepoints import entries_of, generate
from dev.measure.savepoint_fixtures import CASES, FOLDER, NOW, change
from tests.support.nightly import NIGHTLY, mostly_nightly

TOP = "a-column-comes-to-the-highest-two-of-a-key"
ADDED, SWAPPED = "a-metric-is-added-to-a-tumbling-window", "the-keys-of-a-group-aggregation-change-places"


class Divided(LocalWorkers):
    """This process, in as many parts as are named."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def parts(self, size: int, groups: int) -> int:
        return min(self._count, groups)


def migrated(name: str, source: Path, target: Path, parts: int = 1) -> Path:
    template = str(FOLDER / name / "template")
    migrate_savepoint(str(source), template, str(target), change(name), NOW, Divided(parts))
    return target


@pytest.mark.parametrize("groups", [300, pytest.param(128, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CASES)
def test_parts_and_other_key_groups_give_the_same_entries(name: str, groups: int, tmp_path: Path) -> None:
    """With another number of old key groups every entry is scattered and gathered, and must come to the same place."""
    kept = entries_of(migrated(name, generate(FOLDER / name / "old", 60, tmp_path / "a"), tmp_path / "a-new"))
    source = generate(FOLDER / name / "old", 60, tmp_path / "b", groups)
    for parts in (1, 5):
        assert entries_of(migrated(name, source, tmp_path / f"new-{parts}", parts)) == kept
    assert kept


def test_rows_with_longer_texts_go_on(tmp_path: Path) -> None:
    source = generate(FOLDER / TOP / "old", 60, tmp_path / "old", text=30)
    kept = entries_of(migrated(TOP, source, tmp_path / "new"))
    assert any(b"x" * 30 in repr(each).encode() for each in kept)


def test_state_in_files_and_state_inline(tmp_path: Path) -> None:
    source = generate(FOLDER / ADDED / "old", 3000, tmp_path / "old")
    (keyed,) = (e.keyed for o in read_metadata(str(source)).operators for e in o.subtasks or () if e.keyed)
    assert isinstance(keyed.handle, StateFile)
    written = migrated(ADDED, source, tmp_path / "new")
    names = {path.name for path in written.iterdir()}
    assert {each.keyed.handle.path for o in read_metadata(str(written)).operators for each in o.subtasks or ()
            if each.keyed and isinstance(each.keyed.handle, StateFile)} | {"_metadata"} == names  # fmt: skip


def test_metadata_that_is_cut_off_is_named(tmp_path: Path) -> None:
    whole = (FOLDER / ADDED / "old" / "_metadata").read_bytes()
    for content in (*(whole[:end] for end in range(0, len(whole), 29)), whole[:-1], whole + b"\0"):
        (tmp_path / "_metadata").write_bytes(content)
        with pytest.raises(SavepointUnreadable, match=r"/_metadata: "):
            read_metadata(str(tmp_path))


# --- rows ------------------------------------------------------------------------------------------------------------


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[FieldForm], list[Field], list[int | Field]]:
    """Forms, the fields of a row, and what a new row is made of."""
    forms = draw(st.lists(st.sampled_from(FieldForm), min_size=1, max_size=70 if draw(st.booleans()) else 6))
    fields = [draw(_fields(form)) for form in forms]
    new = st.integers(0, len(forms) - 1) | st.sampled_from(FieldForm).flatmap(_fields)
    return forms, fields, draw(st.lists(new, min_size=1, max_size=8) | st.just(list(range(len(forms)))))


def _fields(form: FieldForm) -> st.SearchStrategy[Field]:
    words = st.binary(min_size=8, max_size=8).map(lambda word: Field(False, word))
    low = st.integers(0, 999_999).map(lambda number: number.to_bytes(4, "little") + bytes(4))
    match form:
        case FieldForm.WORD:
            return st.just(NULL) | words
        case FieldForm.DECIMAL | FieldForm.TIMESTAMP:
            size = 16 if form is FieldForm.DECIMAL else 8
            room = st.binary(min_size=size, max_size=size)
            return st.builds(Field, st.booleans(), low, room)
    behind = st.binary(min_size=8, max_size=30).map(
        lambda text: Field(False, len(text).to_bytes(4, "little") + bytes(4), text + bytes(-len(text) % 8))
    )
    inline = st.binary(max_size=7).map(lambda text: Field(False, text.ljust(7, b"\0") + bytes([0x80 | len(text)])))
    return st.just(NULL) | behind | (inline if form is FieldForm.TEXT else behind)


@pytest.mark.slow
@given(rows(), st.integers(0, 3))
@settings(max_examples=300 if NIGHTLY else 60)
def test_the_fast_way_makes_the_rows_of_the_slow_one(
    drawn: tuple[list[FieldForm], list[Field], list[int | Field]], head: int
) -> None:
    forms, fields, new = drawn
    row = write_row(fields, head)
    read = read_row(row, forms)
    expected = write_row([read[each] if isinstance(each, int) else each for each in new], head)
    made = row_mapping(forms, new)
    assert made(row) == expected
    for end in range(len(row)):
        try:
            assert len(made(row[:end])) <= len(expected)
        except SavepointUnreadable:
            continue


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [ADDED, SWAPPED])
def test_a_file_that_is_cut_off_is_named(name: str, tmp_path: Path) -> None:
    source = generate(FOLDER / name / "old", 3000, tmp_path / "old")
    (file,) = (path for path in source.iterdir() if path.name != "_metadata")
    content = file.read_bytes()
    old = read_metadata(str(source))
    for end in range(0, len(content), len(content) // 8):
        file.write_bytes(content[:end])
        with pytest.raises(SavepointUnreadable, match=file.name):
            migrated(name, source, tmp_path / "new")
        # Also where the metadata agree.
        operators = [
            replace(o, subtasks=tuple(replace(e, keyed=e.keyed and replace(
                e.keyed, handle=StateFile(file.name, end, relative=True))) for e in o.subtasks or ()))
            for o in old.operators
        ]  # fmt: skip
        stored = (source / "_metadata").read_bytes()
        (source / "_metadata").write_bytes(replace(old, operators=tuple(operators)).to_bytes())
        with pytest.raises(SavepointUnreadable, match=file.name):
            migrated(name, source, tmp_path / "new")
        (source / "_metadata").write_bytes(stored)
    assert not list((tmp_path / "new").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_nightly(CASES, 2))
def test_a_flipped_bit_of_a_key_or_length_is_seen(name: str, tmp_path: Path) -> None:
    """A value holds no sum of itself, so a flipped bit there is another value; whatever else it is, is an error."""
    source = FOLDER / name / "old"
    whole = read_metadata(str(source))
    kept = entries_of(migrated(name, source, tmp_path / "kept"))
    (operator, keyed) = next((o, e.keyed) for o in whole.operators for e in o.subtasks or () if e.keyed is not None)
    content = read_handle(keyed.handle, str(source))
    (tmp_path / "old").mkdir()
    first = min(begin for begin in keyed.begins if begin > 0)
    refused: list[Exception] = []
    for number, at in enumerate(range(first, len(content), 23)):
        flipped = content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :]
        broken = replace(operator, subtasks=tuple(
            replace(e, keyed=replace(keyed, handle=Inline("flipped", flipped))) if e.keyed is keyed else e
            for e in operator.subtasks or ()
        ))  # fmt: skip
        operators = tuple(broken if each is operator else each for each in whole.operators)
        (tmp_path / "old" / "_metadata").write_bytes(replace(whole, operators=operators).to_bytes())
        try:
            found = entries_of(migrated(name, tmp_path / "old", tmp_path / f"new-{number}"))
        except (SavepointUnreadable, NotMigratable, MigrationVerificationFailed) as error:
            refused.append(error)
            continue
        # At most one entry more and one less of each state that the value went into.
        assert sum((found - kept).values()) <= 2
        assert sum((kept - found).values()) <= 2
    unreadable = [str(error) for error in refused if isinstance(error, SavepointUnreadable)]
    assert unreadable
    assert all(error.startswith(str(tmp_path / "old")) for error in unreadable)


# --- what is left ----------------------------------------------------------------------------------------------------


def test_a_killed_run_leaves_no_savepoint_and_nothing_for_the_next(tmp_path: Path) -> None:
    source = generate(FOLDER / SWAPPED / "old", 3000, tmp_path / "old")
    script = (
        "import os, signal, sys\n"
        "from airflow_flinkcompat.migration import migrate_savepoint, verifying, writing\n"
        "from dev.measure.savepoint_fixtures import change, NOW\n"
        "def killed(*_): os.kill(os.getpid(), signal.SIGKILL)\n"
        "writing.verify = killed\n"
        "migrate_savepoint(*sys.argv[1:4], change(sys.argv[4]), NOW)\n"
    )
    places = str(source), str(FOLDER / SWAPPED / "template"), str(tmp_path / "new")
    ended = subprocess.run([sys.executable, "-c", script, *places, SWAPPED], cwd=Path(__file__).parents[3], check=False)
    assert ended.returncode == -signal.SIGKILL
    left = {path.name for path in (tmp_path / "new").iterdir()}
    assert "_metadata" not in left
    assert len(left) > 1
    migrated(SWAPPED, source, tmp_path / "new")
    now = {path.name for path in (tmp_path / "new").iterdir()}
    assert "_metadata" in now
    assert not now & (left - {"_metadata"})


def test_files_that_no_run_left_stay(tmp_path: Path) -> None:
    target = tmp_path / "new"
    target.mkdir()
    (target / "_unfinished-migration").write_text("another run")
    (target / "mine").write_text("mine")
    with pytest.raises(NotMigratable, match="is not empty"):
        migrated(ADDED, FOLDER / ADDED / "old", target)
    assert (target / "mine").read_text() == "mine"


def test_a_run_whose_folder_another_one_took_over_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_flinkcompat.migration import writing

    monkeypatch.setattr(writing, "verify", lambda *_: (tmp_path / "new" / "_unfinished-migration").write_text("other"))
    with pytest.raises(NotMigratable, match="is being written by another run"):
        migrated(ADDED, FOLDER / ADDED / "old", tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["_unfinished-migration"]


# --- spilling --------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 999), st.binary(max_size=20))), st.integers(1, 1000), st.integers(1, 7))
def test_what_is_spilled_comes_back_by_group(added: list[tuple[int, bytes]], groups: int, parts: int) -> None:
    added = [(group % groups, content) for group, content in added]
    expected: dict[int, bytes] = {}
    with Spill(range(groups)) as spill:
        for group, content in added:
            spill.add(group, content)
            expected[group] = expected.get(group, b"") + content
        step = -(-groups // parts)
        ranges = [range(at, min(at + step, groups)) for at in range(0, groups, step)]
        assert [each for within in ranges for each in spill.groups(within)] == sorted(expected.items())
