"""An operator that may have fewer subtasks than it had: what each of them kept goes on in those that are left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.migration import MigrationVerificationFailed, NotMigratable, migrate_savepoint, verify
from airflow_flinkcompat.migration.slices import merge_operator_state
from airflow_flinkcompat.savepoint.binary import write_long
from airflow_flinkcompat.savepoint.keyed_state import first_group
from airflow_flinkcompat.savepoint.metadata import Inline, ListState, OperatorLists, OperatorState, SubtaskState
from airflow_flinkcompat.savepoint.store import BROADCAST, elements, read_handle, read_metadata
from dev.benchmarks.generated_savepoints import entries_of
from dev.measure.savepoint_fixtures import FOLDER, NOW, change

ADDED = "a-metric-is-added-to-a-tumbling-window"
OLD, TEMPLATE = FOLDER / ADDED / "old", FOLDER / ADDED / "template"


def of_subtasks(operator: OperatorState, count: int) -> OperatorState:
    """The same operator, as many subtasks of which keep a watermark of their own; the first has all keys."""
    assert operator.subtasks is not None
    (first,) = operator.subtasks
    keyed = first.keyed
    if keyed is not None:
        header = read_handle(keyed.handle, str(OLD))[: first_group(keyed.begins)]
        keyed = replace(keyed, begins=(), handle=Inline("header", header))

    def subtask(index: int) -> SubtaskState:
        lists = first.managed
        if lists is not None and lists.handle is not None:
            begin = min((at for each in lists.lists for at in each.begins), default=None)
            content = read_handle(lists.handle, str(OLD))
            content = content if begin is None else content[:begin] + write_long(index)
            lists = replace(lists, handle=Inline(f"lists-{index}", content))
        return replace(first, index=index, managed=lists, keyed=keyed if index else first.keyed)

    return replace(operator, parallelism=count, subtasks=tuple(map(subtask, range(count))))


@pytest.fixture
def places(tmp_path: Path) -> tuple[str, str]:
    """An old savepoint of three subtasks, and a template whose operators have one key group each, as without keys."""
    old, new = read_metadata(str(OLD)), read_metadata(str(TEMPLATE))
    made = {
        "old": replace(old, operators=tuple(of_subtasks(each, 3) for each in old.operators)),
        "template": replace(new, operators=tuple(replace(each, max_parallelism=1) for each in new.operators)),
    }
    for name, metadata in made.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "_metadata").write_bytes(metadata.to_bytes())
    return str(tmp_path / "old"), str(tmp_path / "template")


def test_no_operator_has_more_subtasks_than_it_may(places: tuple[str, str], tmp_path: Path) -> None:
    target = str(tmp_path / "new")
    migrate_savepoint(*places, target, change(ADDED), NOW)
    watermarks = []
    for operator in read_metadata(target).operators:
        assert (operator.parallelism, operator.max_parallelism) == (1, 1)
        assert [each.index for each in operator.subtasks or ()] == [0]
        for lists in operator.lists:
            watermarks += [found for state, found in elements(lists, read_handle(lists.handle, target)) if found]
            assert [each.name for each in lists.lists] in (["watermark"], ["SourceReaderState"])
    assert watermarks == [[write_long(index) for index in range(3)]]
    migrate_savepoint(str(OLD), str(TEMPLATE), str(tmp_path / "wide"), change(ADDED), NOW)
    in_one, in_many = (
        sorted((id, name, key[1:], value) for id, name, key, value in entries_of(folder).elements())
        for folder in (tmp_path / "new", tmp_path / "wide")
    )
    assert in_one == in_many
    assert in_one


def test_an_element_that_is_lost_is_seen(places: tuple[str, str], tmp_path: Path) -> None:
    target = tmp_path / "new"
    migrate_savepoint(*places, str(target), change(ADDED), NOW)
    written = read_metadata(str(target))
    for operator in written.operators:
        for subtask in operator.subtasks or ():
            if subtask.managed is None or not any(each.begins for each in subtask.managed.lists):
                continue
            (state,) = subtask.managed.lists
            fewer = replace(subtask.managed, lists=(replace(state, begins=state.begins[1:]),))
            broken = replace(operator, subtasks=(replace(subtask, managed=fewer),))
            operators = tuple(broken if each is operator else each for each in written.operators)
            with pytest.raises(MigrationVerificationFailed, match="its non-keyed state differs"):
                verify(places[0], str(target), change(ADDED), replace(written, operators=operators))
            return
    pytest.fail("no operator keeps a list")


def test_a_list_that_is_the_same_in_each_subtask_is_kept_once() -> None:
    one, other = (
        (OperatorLists((ListState("split", 0, (4, 5)), ListState("same", BROADCAST, (6,))), None), content)
        for content in (b"headabS", b"headcdS")
    )
    lists, content = merge_operator_state([one, other])
    found = {state.name: held for state, held in elements(lists, content)}
    assert found == {"split": [b"a", b"b", b"c", b"d"], "same": [b"S"]}
    assert content.startswith(b"head")


def test_lists_of_several_forms_are_not_put_together() -> None:
    lists = OperatorLists((ListState("split", 0, (4,)),), None)
    with pytest.raises(NotMigratable, match="in different formats"):
        merge_operator_state([(lists, b"heada"), (lists, b"HEADa")])
