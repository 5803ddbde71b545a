"""Savepoints of a real Flink rewritten: what is written, what is refused, and what reading back sees."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.compat.migration_report import MigrationReport
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.from_compiled import compiled_state, job_state
from airflow_flinkcompat.exec_graph.layout import NamedState, StateField, StateLayout, Stored, Unknown
from airflow_flinkcompat.exec_graph.migration import Migration, OperatorMigration, migration
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateKind, StateSpec
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.migration import MigrationVerificationFailed, NotMigratable, migrate_savepoint, verify
from airflow_flinkcompat.migration.writing import require_rewritable, write_migrated
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, SavepointUnreadable
from airflow_flinkcompat.savepoint.binary_row import (
    NULL,
    Field,
    FieldForm,
    field_form,
    read_row,
    write_row,
    zero,
)
from airflow_flinkcompat.savepoint.keyed_state import first_group, open_keyed
from airflow_flinkcompat.savepoint.metadata import Inline, KeyGroups, SavepointMetadata, parse_metadata
from airflow_flinkcompat.savepoint.store import read_handle, read_metadata
from dev.measure.savepoint_fixtures import CASES, FOLDER, NOW, change, migration_of
from dev.measure.stored_state import written_again
from dev.stored_rows import StoredRow, stored_rows, write_rows
from tests.support.savepoint.savepoints import FOLDER as SAVEPOINTS
from tests.support.savepoint.savepoints import TAKEN

ADDED = "a-metric-is-added-to-a-tumbling-window"


def migrated(name: str, target: Path) -> Path:
    migrate_savepoint(str(FOLDER / name / "old"), str(FOLDER / name / "template"), str(target), change(name), NOW)
    return target


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_a_savepoint_of_the_new_job(name: str, tmp_path: Path) -> None:
    target = migrated(name, tmp_path / "new")
    written, template = read_metadata(str(target)), read_metadata(str(FOLDER / name / "template"))
    assert [each.id for each in written.operators] == [each.id for each in template.operators]
    assert parse_metadata((target / "_metadata").read_bytes()).to_bytes() == (target / "_metadata").read_bytes()
    assert not [path for path in target.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("name", CASES)
def test_what_is_kept_is_said(name: str, snapshot: SnapshotAssertion) -> None:
    made = change(name)
    told = MigrationReport.of(made)
    assert "\n".join([told.headline, *told.lines()]) == snapshot
    assert MigrationReport.from_dict(json.loads(json.dumps(told.to_dict()))) == told


@pytest.mark.parametrize("name", TAKEN[::6])
def test_a_savepoint_migrated_to_its_own_job_is_whole(name: str, tmp_path: Path) -> None:
    place = SAVEPOINTS / name
    plan = (place / "plan.json").read_text("utf-8")
    migrate_savepoint(str(place), str(place), str(tmp_path / "new"), migration_of(plan, plan), NOW)
    for keyed in keyed_of(read_metadata(str(tmp_path / "new"))):
        with open_keyed(keyed, str(tmp_path / "new")) as file:
            assert file.header.compressed


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_read_and_written_again_is_the_same(name: str) -> None:
    assert list(written_again(str(SAVEPOINTS / name))) == []


@pytest.mark.parametrize("name", CASES)
def test_a_side_of_a_change_that_is_read_and_written_again_is_the_same(name: str) -> None:
    for side in ("old", "template"):
        assert list(written_again(str(FOLDER / name / side))) == []


def test_the_old_savepoint_is_only_read(tmp_path: Path) -> None:
    old = FOLDER / ADDED / "old"
    before = {path.name: path.read_bytes() for path in old.iterdir()}
    migrated(ADDED, tmp_path / "new")
    assert {path.name: path.read_bytes() for path in old.iterdir()} == before


@pytest.mark.parametrize("name", CASES)
def test_a_savepoint_of_a_stop_with_drain_is_refused(name: str, tmp_path: Path) -> None:
    """Whatever it holds: Flink says itself what came after it."""
    old = shutil.copytree(FOLDER / name / "old", tmp_path / "old")
    suspended, terminated = (bytes([0, len(text)]) + text.encode() for text in ("SUSPEND", "TERMINATE"))
    content = (old / "_metadata").read_bytes()
    assert content.count(suspended) == 1
    (old / "_metadata").write_bytes(content.replace(suspended, terminated))
    with pytest.raises(NotMigratable, match="the job was stopped with drain"):
        write_migrated(str(old), str(FOLDER / name / "template"), str(tmp_path / "new"), change(name), NOW)
    assert not (tmp_path / "new").exists()


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(NotMigratable, match="is not empty"):
        migrated(ADDED, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_savepoint_of_another_job_is_refused(tmp_path: Path) -> None:
    made, other = change(ADDED), FOLDER / "a-metric-is-added-to-sessions"
    template = FOLDER / ADDED / "template"
    with pytest.raises(NotMigratable, match="the savepoint does not"):
        write_migrated(str(other / "old"), str(template), str(tmp_path / "a"), made, NOW)
    other = FOLDER / "the-keys-of-a-group-aggregation-change-places"
    with pytest.raises(NotMigratable, match="the template differs from the layout that the new plan predicts"):
        write_migrated(str(FOLDER / ADDED / "old"), str(other / "template"), str(tmp_path / "b"), made, NOW)
    with pytest.raises(SavepointUnreadable):
        write_migrated(str(tmp_path / "none"), str(template), str(tmp_path / "c"), made, NOW)


def test_state_that_no_line_tells_of_is_not_lost(tmp_path: Path) -> None:
    made = change(ADDED)
    left = Migration(tuple(each for each in made.operators if each.effect is not RestoreEffect.REWRITTEN))
    with pytest.raises(
        NotMigratable, match=r"the old plan has no such state, but the savepoint contains .*window-aggs"
    ):
        write_migrated(str(FOLDER / ADDED / "old"), str(FOLDER / ADDED / "template"), str(tmp_path / "new"), left, NOW)


def test_a_wrong_layout_model_of_a_carried_operator_writes_nothing(tmp_path: Path) -> None:
    """OVER by a column that is no time, predicted as if it were by time: the job ran on with wrong rows once."""
    place = SAVEPOINTS / "2.3" / "over-by-value"
    plan = (place / "plan.json").read_text("utf-8")

    def wrong(spec: StateSpec | None) -> StateSpec | None:
        if spec is None or not isinstance(spec.layout, StateLayout):
            return spec
        sums = NamedState("accState", KeyedStateKind.VALUE, Stored("row", (StateField("BIGINT"),)))
        return replace(spec, layout=replace(spec.layout, states=(sums,)))

    made = migration_of(plan, plan)
    carried = Migration(tuple(replace(each, old=wrong(each.old), new=wrong(each.new)) for each in made.operators))
    assert {each.effect for each in carried.operators} == {RestoreEffect.RIGHT}
    with pytest.raises(
        NotMigratable, match=r"predicts accState VALUE .*, but the savepoint contains accMapState MAP .*"
    ):
        migrate_savepoint(str(place), str(place), str(tmp_path / "new"), carried, NOW)
    assert not (tmp_path / "new").exists()


def test_the_job_of_a_template_has_stand_ins_for_its_sinks(tmp_path: Path) -> None:
    """A job that has never run has the template in place of a savepoint."""
    template = str(SAVEPOINTS / "2.3" / "over-by-value")
    plan = (Path(template) / "plan.json").read_text("utf-8")
    made = migration_of(plan, plan)
    spec = next(each.new for each in made.operators if each.new is not None)
    sink = replace(spec, kind=StateKind.SINK, id="5" * 32, further_ids=(), layout=None)

    def with_sink(keep: RestoreEffect) -> Migration:
        return Migration((*made.operators, OperatorMigration(keep, sink, sink, "")))

    migrate_savepoint(template, template, str(tmp_path / "new"), with_sink(RestoreEffect.EMPTY), NOW)
    with pytest.raises(NotMigratable, match="the savepoint does not"):
        migrate_savepoint(template, template, str(tmp_path / "ran"), with_sink(RestoreEffect.RIGHT), NOW)


def test_carried_state_without_a_prediction_is_stored_as_the_template_stores_it(tmp_path: Path) -> None:
    def unknown(name: str) -> StateSpec:
        (found,) = (
            each.new for each in change(name).operators if each.new is not None and each.new.kind is StateKind.OPERATOR
        )
        return replace(found, layout=Unknown("it was not measured"))

    old, template = (str(FOLDER / ADDED / name) for name in ("old", "template"))
    spec = unknown(ADDED)
    others = [each for each in change(ADDED).operators if each.new and each.new.kind is not StateKind.OPERATOR]
    made = Migration((*others, OperatorMigration(RestoreEffect.RIGHT, spec, spec, "")))
    migrate_savepoint(old, old, str(tmp_path / "same"), made, NOW)
    with pytest.raises(NotMigratable, match=r"differ between the savepoint and the template, and it was not measured"):
        migrate_savepoint(old, template, str(tmp_path / "other"), made, NOW)


def test_a_rewriting_that_a_run_would_refuse_is_refused_without_a_savepoint() -> None:
    """What a field begins with that comes now, and the same where its values would be merged."""
    made = change(ADDED)
    (line,) = (each for each in made.operators if each.effect is RestoreEffect.REWRITTEN)
    require_rewritable(made)
    (state,) = line.states
    unknown = tuple(replace(field, begins=None) for field in state.new.value.fields)
    new = replace(state.new, value=Stored(state.new.value.form, unknown))
    with pytest.raises(NotMigratable, match=r"the initial value of MAX\(d\) was not measured"):
        require_rewritable(Migration((replace(line, states=(replace(state, new=new),)),)))


def test_what_cannot_be_kept_is_not_written(tmp_path: Path) -> None:
    made = change(ADDED)
    refused = Migration(
        tuple(replace(each, effect=RestoreEffect.NOT_MIGRATABLE, reason="of this") for each in made.operators)
    )
    with pytest.raises(NotMigratable, match="cannot be kept: of this"):
        write_migrated(
            str(FOLDER / ADDED / "old"), str(FOLDER / ADDED / "template"), str(tmp_path / "new"), refused, NOW
        )
    assert not (tmp_path / "new").exists()


def with_keyed(whole: SavepointMetadata, keyed: KeyGroups, content: bytes, begins: tuple[int, ...]) -> bytes:
    """The metadata with this content in place of the keyed state of one subtask."""
    damaged = replace(keyed, handle=Inline("flipped", content), begins=begins)
    operators = tuple(
        replace(
            operator,
            subtasks=operator.subtasks
            and tuple(
                replace(each, keyed=damaged if each.keyed is keyed else each.keyed) for each in operator.subtasks
            ),
        )
        for operator in whole.operators
    )
    return replace(whole, operators=operators).to_bytes()


def keyed_of(whole: SavepointMetadata) -> list[KeyGroups]:
    return [each.keyed for operator in whole.operators for each in operator.subtasks or () if each.keyed is not None]


def bits_flipped(content: bytes, begin: int, step: int) -> Iterator[bytes]:
    for at in range(begin, len(content), step):
        yield content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize("name", CASES)
def test_reading_back_sees_what_is_not_as_it_was(name: str, tmp_path: Path) -> None:
    """A bit of any entry, key or value, flipped: the files are read and compared as a whole."""
    target = migrated(name, tmp_path / "new")
    made = change(name)
    whole = read_metadata(str(target))
    for keyed in keyed_of(whole):
        with open_keyed(keyed, str(target)) as file:
            header, groups = file.header.with_compression(False).stored, dict(file.groups())
        content = header + b"".join(groups.values())
        begins = dict(zip(groups, accumulate(map(len, groups.values()), initial=len(header)), strict=False))
        for flipped in bits_flipped(content, len(header), 7):
            stored = with_keyed(whole, keyed, flipped, tuple(begins.get(number, 0) for number in keyed.numbers))
            (target / "_metadata").write_bytes(stored)
            with pytest.raises((MigrationVerificationFailed, SavepointUnreadable)):
                verify(str(FOLDER / name / "old"), str(target), made)


def test_a_bit_that_is_flipped_in_a_compressed_file_is_seen_or_changes_nothing(tmp_path: Path) -> None:
    """Flink itself does not compare the checksums; within repeated bytes, two distances of a copy mean the same."""
    target = migrated(ADDED, tmp_path / "new")
    whole = read_metadata(str(target))
    (keyed,) = keyed_of(whole)
    content = read_handle(keyed.handle, str(target))
    with open_keyed(keyed, str(target)) as file:
        assert file.header.compressed
        groups, same = dict(file.groups()), 0
    for flipped in bits_flipped(content, first_group(keyed.begins) or 0, 1):
        (target / "_metadata").write_bytes(with_keyed(whole, keyed, flipped, keyed.begins))
        try:
            verify(str(FOLDER / ADDED / "old"), str(target), change(ADDED))
        except SavepointUnreadable:
            continue
        with open_keyed(replace(keyed, handle=Inline("flipped", flipped)), str(target)) as file:
            assert dict(file.groups()) == groups
        same += 1
    assert 0 < same < len(content) / 100


def test_files_have_the_header_of_the_template(tmp_path: Path) -> None:
    old, template = (str(FOLDER / ADDED / name) for name in ("old", "template"))
    target = str(migrated(ADDED, tmp_path / "new"))
    verify(old, target, change(ADDED), template=template)
    with pytest.raises(MigrationVerificationFailed, match="the header of its files differs from the template's header"):
        verify(old, target, change(ADDED), template=old)


# --- rows ------------------------------------------------------------------------------------------------------------

_WORDS = st.binary(min_size=8, max_size=8)
_FIELDS = {
    FieldForm.WORD: st.one_of(st.just(NULL), _WORDS.map(lambda word: Field(False, word))),
    FieldForm.VARIABLE: st.binary(min_size=1, max_size=40).map(
        lambda text: Field(False, len(text).to_bytes(4, "little") + bytes(4), text + bytes(-len(text) % 8))
    ),
}


@given(
    st.lists(st.sampled_from(sorted(_FIELDS, key=str)).flatmap(lambda form: st.tuples(st.just(form), _FIELDS[form])))
)
def test_fields_are_read_as_they_were_written(fields: list[tuple[FieldForm, Field]]) -> None:
    forms, values = [form for form, _ in fields], [value for _, value in fields]
    row = write_row(values, 3)
    assert row[0] == 3
    assert list(read_row(row, forms)) == values


@pytest.mark.parametrize(
    ("type", "form"),
    [
        ("BIGINT NOT NULL", FieldForm.WORD),
        ("DECIMAL(18, 2)", FieldForm.WORD),
        ("DECIMAL(38, 2)", FieldForm.DECIMAL),
        ("TIMESTAMP(3)", FieldForm.WORD),
        ("TIMESTAMP_LTZ(9)", FieldForm.TIMESTAMP),
        ("VARCHAR(2147483647)", FieldForm.TEXT),
        ("ROW<`a` INT>", FieldForm.VARIABLE),
        ("MAP<INT, INT>", FieldForm.VARIABLE),
    ],
)
def test_where_values_of_a_type_stand(type: str, form: FieldForm) -> None:
    assert field_form(type) is form
    assert read_row(write_row([zero(type)]), [form])[0].null is False


def test_a_row_that_is_too_short() -> None:
    with pytest.raises(SavepointUnreadable, match="is too short for 2 fields"):
        read_row(write_row([NULL]), [FieldForm.WORD] * 2)


@given(
    st.sampled_from(["row", "List<row>", "Tuple<row, Int>", "List<Tuple<row, Boolean>>"]),
    st.lists(st.lists(_FIELDS[FieldForm.WORD]), max_size=5),
)
def test_rows_are_read_as_they_were_written(form: str, rows: list[list[Field]]) -> None:
    state = NamedState("rows", KeyedStateKind.VALUE, Stored(form))
    beside = b"\1" * state.trailing
    stored = [StoredRow(write_row(fields), beside) for fields in (rows if form.startswith("List") else [[]])]
    value = write_rows(stored, state)
    assert stored_rows(value, state) == stored
    for end in range(len(value)):
        with pytest.raises(SavepointUnreadable, match="has unexpected bytes after its rows"):
            stored_rows(value[:end], state)
    with pytest.raises(SavepointUnreadable, match="has unexpected bytes after its rows"):
        stored_rows(value + b"\0", state)


@given(st.lists(st.lists(_FIELDS[FieldForm.WORD]), min_size=1, max_size=5))
def test_rows_of_a_list_of_its_own_are_read_as_they_were_written(rows: list[list[Field]]) -> None:
    state = NamedState("rows", KeyedStateKind.LIST, Stored("List<row>"))
    stored = [StoredRow(write_row(fields)) for fields in rows]
    value = write_rows(stored, state)
    assert stored_rows(value, state) == stored
    for damaged in (value[:-1], value + b",", value + b";", value.replace(b",", b";") if len(rows) > 1 else b"\0"):
        with pytest.raises(SavepointUnreadable, match="has unexpected bytes after its rows"):
            stored_rows(damaged, state)


# --- sinks -----------------------------------------------------------------------------------------------------------


def test_what_a_sink_keeps_goes_on_though_the_template_has_a_stand_in(tmp_path: Path) -> None:
    """Its lists carry their serializers; keys need the header of a template."""
    symbols, place = Symbols(), FOLDER / ADDED
    plan = read_plan((place / "old.json").read_text("utf-8"))
    state = job_state(compiled_state(plan, symbols, {}, set()), symbols)
    made = migration(state, state)
    ((sink, behind),) = (
        (each.old.id, each.old.further_ids)
        for each in made.operators
        if each.old is not None and each.old.kind is StateKind.SINK
    )
    (committer,) = behind
    old = read_metadata(str(place / "old"))
    model = next(each for each in old.operators if any(part.keyed for part in each.subtasks or ()))
    keyed = replace(model, id=sink)
    lists = replace(keyed, subtasks=tuple(replace(each, keyed=None) for each in model.subtasks or ()))
    assert lists.has_state
    shutil.copytree(place / "old", tmp_path / "old")
    for operator, works in ((lists, True), (keyed, False)):
        commits = replace(lists, id=committer)
        stored = replace(old, operators=(*old.operators, operator, commits)).to_bytes()
        (tmp_path / "old" / "_metadata").write_bytes(stored)
        arguments = str(tmp_path / "old"), str(place / "old"), str(tmp_path / f"new-{works}"), made, NOW
        if not works:
            with pytest.raises(NotMigratable, match="the old plan has no such state"):
                migrate_savepoint(*arguments)
            continue
        migrate_savepoint(*arguments)
        found = {each.id: each for each in read_metadata(arguments[2]).operators}
        for number in (sink, committer):
            assert [each.lists for each in found[number].lists] == [each.lists for each in lists.lists]
