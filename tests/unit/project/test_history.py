"""Changes of files in a history, as Git tells them."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.project import revisions
from airflow_flinkcompat.project.revisions import FileChange, blobs, file_changes
from tests.support.fleet.repository import git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three commits of files with odd names, a branch that was merged, and a link."""
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    odd = tmp_path / "jobs" / "a b\tü\n.sql"
    odd.parent.mkdir()

    def commit(**files: str) -> None:
        for name, text in files.items():
            (odd if name == "odd" else tmp_path / "jobs" / f"{name}.sql").write_text(text, encoding="utf-8")
        git(tmp_path, "add", "--all")
        git(tmp_path, "commit", "--quiet", "--message", "one")

    commit(odd="1\n", moved="the same\n" * 9, gone="x\n")
    git(tmp_path, "checkout", "--quiet", "-b", "side")
    commit(odd="2\n")
    git(tmp_path, "checkout", "--quiet", "main")
    (tmp_path / "jobs" / "moved.sql").rename(tmp_path / "elsewhere.sql")
    (tmp_path / "jobs" / "gone.sql").unlink()
    (tmp_path / "link.sql").symlink_to("elsewhere.sql")
    commit()
    git(tmp_path, "merge", "--quiet", "--no-ff", "--message", "merged", "side")
    return tmp_path


def told(changes: list[FileChange]) -> set[tuple[str, str, bool, bool]]:
    return {(each.status, each.path, bool(each.old), bool(each.new)) for each in changes}


def test_each_change_of_a_file(repository: Path) -> None:
    odd = "jobs/a b\tü\n.sql"
    changes = list(file_changes(repository, "HEAD", ()))
    assert told(changes) == {
        ("A", odd, False, True),
        ("A", "jobs/moved.sql", False, True),
        ("A", "jobs/gone.sql", False, True),
        ("D", "jobs/gone.sql", True, False),
        ("R", "elsewhere.sql", True, True),
        ("M", odd, True, True),
    }
    (changed,) = (each for each in changes if each.status == "M")
    assert changed.commit == git(repository, "rev-parse", "side")
    with blobs(repository) as contents:
        assert [contents.read(each) for each in (changed.old, changed.new, changed.old)] == [b"1\n", b"2\n", b"1\n"]


def test_a_range_and_a_path(repository: Path) -> None:
    assert told(list(file_changes(repository, "HEAD~1..HEAD", ()))) == {("M", "jobs/a b\tü\n.sql", True, True)}
    assert told(list(file_changes(repository, "HEAD", ("elsewhere.sql",)))) == {("A", "elsewhere.sql", False, True)}


def test_whoever_stops_reading_leaves_nothing_running(repository: Path) -> None:
    changes = file_changes(repository, "HEAD", ())
    next(changes)
    changes.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("revisions", "message"),
    [("nope", "--git nope: bad revision 'nope'"), ("--output=x", "the name of a revision cannot begin with '-'")],
)
def test_no_such_revision(repository: Path, revisions: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(file_changes(repository, revisions, ()))
    assert not (repository / "x").exists()


def test_a_blob_that_is_not_there(repository: Path) -> None:
    with blobs(repository) as contents, pytest.raises(InputError, match="which may be a partial or shallow clone"):
        contents.read("1" * 40)


def test_without_git(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(revisions.subprocess, "Popen", missing)
    with pytest.raises(InputError, match="git, which is not installed"):
        list(file_changes(repository, "HEAD", ()))
