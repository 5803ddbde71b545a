"""The commit of a version: what Git says of its files, and nothing where it cannot say it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from airflow_flinkcompat.airflow.tasks.bundles import GitOrigin, git_origin

ANN, BEN = "Ann Example <ann@example.org>", "Ben <ben@example.org>"


def git(folder: Path, *arguments: str, author: str = ANN) -> str:
    given = ("-c", "user.name=c", "-c", "user.email=c@example.org", "-c", "commit.gpgsign=false")
    more = ("--author", author) if arguments[0] == "commit" else ()
    done = subprocess.run(
        ["git", "-C", str(folder), *given, *arguments, *more], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(folder: Path, name: str, text: str, author: str = ANN) -> str:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    git(folder, "add", name)
    git(folder, "commit", "-q", "-m", f"change {name}", author=author)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    folder = tmp_path / "dags"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


def test_the_commit_that_last_changed_a_file_and_who_made_it(repository: Path) -> None:
    first = commit(repository, "jobs/orders.sql", "SELECT 1")
    second = commit(repository, "jobs/clicks.sql", "SELECT 1", BEN)
    orders, clicks = (str(repository / "jobs" / name) for name in ("orders.sql", "clicks.sql"))
    assert git_origin([orders]) == GitOrigin(first, ANN)
    assert git_origin([clicks]) == GitOrigin(second, BEN)
    assert git_origin([orders, clicks]) == GitOrigin(second, BEN), "of several files the newest"


def test_a_file_with_edits_has_no_commit(repository: Path) -> None:
    commit(repository, "orders.sql", "SELECT 1")
    commit(repository, "notes.txt", "a")
    (repository / "notes.txt").write_text("b")
    place = repository / "orders.sql"
    assert git_origin([str(place)]).author == ANN, "edits of other files do not count"
    place.write_text("SELECT 2")
    assert git_origin([str(place)]) == GitOrigin(why="its files have uncommitted edits")
    new = repository / "new.sql"
    new.write_text("SELECT 1")
    assert git_origin([str(new)]) == GitOrigin(why="its files have uncommitted edits")
    commit(repository, ".gitignore", "new.sql")
    assert git_origin([str(new)]) == GitOrigin(why="its files are not committed")


def test_a_shallow_clone_does_not_name_the_commit_that_it_ends_at(repository: Path, tmp_path: Path) -> None:
    commit(repository, "orders.sql", "SELECT 1")
    newest = commit(repository, "clicks.sql", "SELECT 1", BEN)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", repository.as_uri(), str(clone))
    why = "the clone is too shallow to determine the commit of its files"
    assert git_origin([str(clone / "orders.sql")]) == GitOrigin(why=why)
    git(clone, "fetch", "-q", "--unshallow")
    assert git_origin([str(clone / "clicks.sql")]) == GitOrigin(newest, BEN)


def test_names_are_no_patterns(repository: Path) -> None:
    commit(repository, "a.sql", "SELECT 1", BEN)
    odd = commit(repository, "[a].sql", "SELECT 1")
    commit(repository, "b.sql", "SELECT 1", BEN)
    assert git_origin([str(repository / "[a].sql")]) == GitOrigin(odd, ANN)


def test_nothing_is_said_outside_of_a_repository_or_without_git(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "orders.sql").write_text("SELECT 1")
    assert git_origin([str(tmp_path / "orders.sql")]) == GitOrigin()
    assert git_origin([]) == GitOrigin()
    commit(repository, "orders.sql", "SELECT 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_origin([str(repository / "orders.sql")]) == GitOrigin()


def test_a_repository_that_the_environment_names_is_not_asked(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = commit(repository, "orders.sql", "SELECT 1")
    monkeypatch.setenv("GIT_DIR", str(repository / "nowhere"))
    assert git_origin([str(repository / "orders.sql")]) == GitOrigin(made, ANN)


def test_a_versioned_bundle_without_a_repository_tells_its_version(tmp_path: Path) -> None:
    (tmp_path / "orders.sql").write_text("SELECT 1")
    inside, outside = str(tmp_path / "orders.sql"), "/somewhere/orders.sql"
    bundle = SimpleNamespace(version="c0ffee" * 6 + "c0ff", path=tmp_path)
    assert git_origin([inside], bundle) == git_origin([], bundle) == GitOrigin(bundle.version)
    assert git_origin([outside], bundle) == GitOrigin()
    for version in (None, "7", SimpleNamespace()):
        assert git_origin([inside], SimpleNamespace(version=version, path=tmp_path)) == GitOrigin()
