"""The folder that is written: what killed runs leave there, and two runs at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import pytest
from upath import UPath

from airflow_flinkcompat.migration.fields import NotMigratable
from airflow_flinkcompat.migration.target_folder import TargetFolder
from airflow_flinkcompat.savepoint.metadata import SavepointMetadata, StateFile
from airflow_flinkcompat.savepoint.store import StoredContent, read_handle, read_metadata
from dev.measure.savepoint_fixtures import CASES, FOLDER

MARK = "_unfinished-migration"


@pytest.fixture(params=["disk", "store"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> UPath:
    return UPath(tmp_path / "new") if request.param == "disk" else UPath(f"memory://{uuid4().hex}/new")


class Run(TargetFolder):
    """A run that writes a savepoint of one file; ``after`` happens once, behind a step of the name."""

    def __init__(self, folder: UPath, after: dict[str, Callable[[], object]] | None = None) -> None:
        super().__init__(folder)
        self._after = after or {}

    def written(self) -> SavepointMetadata:
        file = self.copy(StoredContent("rows", 4, BytesIO(b"rows")))
        old = read_metadata(str(FOLDER / CASES[0] / "old"))
        return replace(old, operators=(replace(old.operators[0], coordinator=file),))

    def _then(self, step: str) -> None:
        self._after.pop(step, lambda: None)()

    def _names(self) -> set[str]:
        names = super()._names()
        self._then("names")
        return names

    def _is_ours(self) -> bool:
        ours = super()._is_ours()
        self._then("is_ours")
        return ours

    def _publish_metadata(self, metadata: bytes) -> None:
        self._then("before_put")
        super()._publish_metadata(metadata)
        self._then("put")


def names(folder: UPath) -> set[str]:
    return {each.name for each in folder.iterdir()}


def file_of(metadata: SavepointMetadata) -> str:
    (path,) = (each.path for each in metadata.handles() if isinstance(each, StateFile))
    return path


def whole(folder: UPath) -> bool:
    (operator,) = read_metadata(str(folder)).operators
    return read_handle(operator.coordinator, str(folder)) == b"rows" and MARK not in names(folder)


def test_it_becomes_a_savepoint_and_nothing_is_beside(folder: UPath) -> None:
    run = Run(folder)
    with run:
        run.begin()
        metadata = run.written()
        run.copy(StoredContent("of a task that was tried again", 4, BytesIO(b"rows")))
        run.publish(metadata)
    assert whole(folder)
    assert len(names(folder)) == 2


def test_a_run_that_begins_before_another_one_publishes(folder: UPath) -> None:
    """The later one removed the files of the earlier one, which must not publish any more."""
    second = Run(folder)
    first = Run(folder, {"before_put": second.begin})
    first.begin()
    metadata = first.written()
    with pytest.raises(NotMigratable, match="is being written by another run"), first:
        first.publish(metadata)
    assert not (folder / "_metadata").exists()
    second.publish(second.written())
    assert whole(folder)


def test_a_run_that_begins_when_another_one_has_published(folder: UPath) -> None:
    refused: list[NotMigratable] = []
    first = Run(folder, {"put": lambda: refused.append(_refused(Run(folder)))})
    first.begin()
    first.publish(first.written())
    assert "already contains a complete savepoint of another run" in str(refused[0])
    assert whole(folder)


def _refused(run: Run) -> NotMigratable:
    with pytest.raises(NotMigratable) as error, run:
        run.begin()
    return error.value


def test_a_savepoint_that_is_finished_meanwhile_is_left_alone(folder: UPath) -> None:
    first = Run(folder)
    first.begin()
    metadata = first.written()
    second = Run(folder, {"names": lambda: first.publish(metadata)})
    with pytest.raises(NotMigratable, match="is not empty"), second:
        second.begin()
    left = names(folder) - {MARK}
    assert left == {file_of(metadata), "_metadata"}
    assert "contains a complete savepoint" in str(_refused(Run(folder)))
    assert names(folder) - {MARK} == left


def test_of_two_runs_that_begin_at_once_one_goes_on(tmp_path: Path) -> None:
    folder = UPath(tmp_path)
    first = Run(folder)
    second = Run(folder, {"names": first.begin})
    with pytest.raises(NotMigratable, match="is being written by another run"), second:
        second.begin()
    first.publish(first.written())
    assert whole(folder)


def test_a_run_that_fails_removes_nothing_of_a_later_one(folder: UPath) -> None:
    kept: list[SavepointMetadata] = []
    second = Run(folder)

    def begins() -> None:
        second.begin()
        kept.append(second.written())

    first = Run(folder)
    first.begin()
    first.written()
    first._after["is_ours"] = begins
    first.__exit__(RuntimeError)
    assert file_of(kept[0]) in names(folder)
    with pytest.raises(NotMigratable, match="is being written by another run"):  # its mark is gone
        second.publish(kept[0])


def test_files_that_are_gone_when_it_is_published(folder: UPath) -> None:
    run = Run(folder)
    run.begin()
    metadata = run.written()
    run._after["put"] = (folder / file_of(metadata)).unlink
    with pytest.raises(NotMigratable, match="is being written by another run"), run:
        run.publish(metadata)
    assert not (folder / "_metadata").exists()
    assert not (folder / MARK).exists()


def test_a_run_that_was_killed_when_it_had_published(folder: UPath) -> None:
    """Its mark stands there beside a savepoint that is whole."""
    killed = Run(folder)
    killed.begin()
    metadata = killed.written()
    killed.publish(metadata)
    (folder / MARK).write_text("killed")
    left = names(folder)
    assert "already contains a complete savepoint of another run, which was still marked" in str(_refused(Run(folder)))
    assert names(folder) == left
    (folder / file_of(metadata)).unlink()
    with pytest.raises(NotMigratable, match="is not empty: pass a folder that does not exist"):
        Run(folder).begin()


def test_a_disk_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.link", refused)
    run = Run(UPath(tmp_path / "new"))
    run.begin()
    run.publish(run.written())
    assert whole(UPath(tmp_path / "new"))
