"""Commit and author of files, from their Git work tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from airflow_flinkcompat.project.origin import GitOrigin, of_work_tree

ANN, BEN = "Ann Example <ann@example.org>", "Ben <ben@example.org>"


def git_as(folder: Path, *arguments: str, author: str = ANN) -> str:
    given = ("-c", "user.name=c", "-c", "user.email=c@example.org", "-c", "commit.gpgsign=false")
    more = ("--author", author) if arguments[0] == "commit" else ()
    done = subprocess.run(
        ["git", "-C", str(folder), *given, *arguments, *more], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(folder: Path, name: str, text: str, author: str = ANN) -> str:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    git_as(folder, "add", name)
    git_as(folder, "commit", "-q", "-m", f"change {name}", author=author)
    return git_as(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    folder = tmp_path / "dags"
    folder.mkdir()
    git_as(folder, "init", "-q")
    return folder


def test_the_commit_that_last_changed_a_file_and_who_made_it(repository: Path) -> None:
    first = commit(repository, "jobs/orders.sql", "SELECT 1")
    second = commit(repository, "jobs/clicks.sql", "SELECT 1", BEN)
    orders, clicks = (repository / "jobs" / name for name in ("orders.sql", "clicks.sql"))
    assert of_work_tree([orders]) == GitOrigin(first, ANN)
    assert of_work_tree([clicks]) == GitOrigin(second, BEN)
    assert of_work_tree([orders, clicks]) == GitOrigin(second, BEN), "of several files the newest"


def test_a_file_with_edits_has_no_commit(repository: Path) -> None:
    commit(repository, "orders.sql", "SELECT 1")
    commit(repository, "notes.txt", "a")
    (repository / "notes.txt").write_text("b")
    place = repository / "orders.sql"
    found = of_work_tree([place])
    assert found is not None
    assert found.author == ANN, "edits of other files do not count"
    place.write_text("SELECT 2")
    assert of_work_tree([place]) == GitOrigin(why="its files have uncommitted edits")
    new = repository / "new.sql"
    new.write_text("SELECT 1")
    assert of_work_tree([new]) == GitOrigin(why="its files have uncommitted edits")
    commit(repository, ".gitignore", "new.sql")
    assert of_work_tree([new]) == GitOrigin(why="its files are not committed")


def test_a_shallow_clone_does_not_name_the_commit_that_it_ends_at(repository: Path, tmp_path: Path) -> None:
    commit(repository, "orders.sql", "SELECT 1")
    newest = commit(repository, "clicks.sql", "SELECT 1", BEN)
    clone = tmp_path / "clone"
    git_as(tmp_path, "clone", "-q", "--depth", "1", repository.as_uri(), str(clone))
    why = "the clone is too shallow to determine the commit of its files"
    assert of_work_tree([clone / "orders.sql"]) == GitOrigin(why=why)
    git_as(clone, "fetch", "-q", "--unshallow")
    assert of_work_tree([clone / "clicks.sql"]) == GitOrigin(newest, BEN)


def test_names_are_no_patterns(repository: Path) -> None:
    commit(repository, "a.sql", "SELECT 1", BEN)
    odd = commit(repository, "[a].sql", "SELECT 1")
    commit(repository, "b.sql", "SELECT 1", BEN)
    assert of_work_tree([repository / "[a].sql"]) == GitOrigin(odd, ANN)


def test_nothing_is_said_outside_of_a_repository_or_without_git(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "orders.sql").write_text("SELECT 1")
    assert of_work_tree([tmp_path / "orders.sql"]) is None
    commit(repository, "orders.sql", "SELECT 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert of_work_tree([repository / "orders.sql"]) is None


def test_a_repository_that_the_environment_names_is_not_asked(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = commit(repository, "orders.sql", "SELECT 1")
    monkeypatch.setenv("GIT_DIR", str(repository / "nowhere"))
    assert of_work_tree([repository / "orders.sql"]) == GitOrigin(made, ANN)
