"""What is asked of Git: repositories, commits, and files of a commit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.project.revisions import RevisionFiles, base_commit, commit_of, repository_of
from tests.support.fleet.repository import git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits: ``a/é b.txt`` in both, ``a/new.txt`` in the second alone."""
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/é b.txt").write_text("one\n", encoding="utf-8")
    (tmp_path / "a/bytes").write_bytes(b"\xff")
    for message in ("first", "second"):
        git(tmp_path, "add", "--all")
        git(tmp_path, "commit", "--quiet", "--message", message)
        (tmp_path / "a/new.txt").write_text("two\n", encoding="utf-8")
    return tmp_path.resolve()


def test_the_root_is_found_from_below(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert repository_of(repository / "a") == repository
    assert repository_of(tmp_path_factory.mktemp("none")) is None


def test_a_repository_that_git_does_not_open_is_no_missing_one(repository: Path) -> None:
    (repository / ".git" / "config").write_text("[core\n", encoding="utf-8")
    with pytest.raises(InputError, match="git does not open the repository: bad config line 1"):
        repository_of(repository)


def test_without_git_there_is_none(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    assert repository_of(repository) is None
    with pytest.raises(InputError, match="needs git, which is not installed"):
        commit_of(repository, "main")


def test_files_of_a_commit(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    files = RevisionFiles.of(repository, commit_of(repository, "main~1"))
    assert files.text("a/é b.txt") == "one\n"
    assert files.text("a/new.txt") is None
    with pytest.raises(InputError, match="a/bytes: is not UTF-8 text"):
        files.text("a/bytes")
    for paths, written in ((None, {"a/é b.txt", "a/bytes"}), ({"a/é b.txt", "a/new.txt"}, {"a/é b.txt"})):
        into = tmp_path_factory.mktemp("tree") / "tree"
        into.mkdir()
        files.check_out(paths, into)
        assert {path.relative_to(into).as_posix() for path in into.rglob("*") if path.is_file()} == written
    with pytest.raises(InputError, match="the files of commit 0000000000 cannot be read"):
        RevisionFiles.of(repository, "0" * 40)


def test_links_of_a_commit_are_followed_within_it(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    links = {"b": "a", "a/up": "../b/é b.txt", "out": "../x", "absolute": str(repository / "a/bytes"), "round": "round"}
    for name, target in links.items():
        (repository / name).symlink_to(target)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "links")
    files = RevisionFiles.of(repository, commit_of(repository, "main"))
    assert [files.followed(each) for each in ("b/up", "b/../b/./é b.txt", "b/none")] == [
        "a/é b.txt", "a/é b.txt", "a/none",
    ]  # fmt: skip
    assert files.text("b/up") == "one\n"
    for path, why in (
        ("out", "leads out of the repository"),
        ("b/../../x", "leads out of the repository"),
        ("absolute", "is reached by absolute, a link to an absolute path"),
        ("round", "is reached by round, a circular link"),
    ):
        with pytest.raises(InputError, match=f"{why}, so it cannot be compared: keep the file in the repository"):
            files.followed(path)
    into = tmp_path_factory.mktemp("tree") / "tree"
    into.mkdir()
    files.check_out({files.followed("b/up")}, into)
    assert (into / "b/up").read_text(encoding="utf-8") == "one\n"
    assert not any((into / name).is_symlink() for name in ("out", "absolute", "round"))


def test_files_outside_of_a_sparse_checkout_are_there(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    git(repository, "sparse-checkout", "set", "--no-cone", "elsewhere")
    into = tmp_path_factory.mktemp("tree") / "tree"
    into.mkdir()
    RevisionFiles.of(repository, commit_of(repository, "main")).check_out({"a/é b.txt"}, into)
    assert (into / "a/é b.txt").is_file()


def test_variables_that_git_sets_in_a_hook_name_no_other_repository(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", "none")
    assert repository_of(repository / "a") == repository


def test_a_folder_whose_name_is_not_utf_8(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    git(folder, "init", "--quiet")
    assert repository_of(folder) == folder.resolve()


def test_the_base_is_where_a_branch_left(repository: Path) -> None:
    with pytest.raises(
        InputError,
        match=r"there is no origin/HEAD here\. In CI, fetch the whole history .* name a commit",
    ):
        base_commit(repository, {})
    git(repository, "update-ref", "refs/remotes/origin/main", "main~1")
    assert base_commit(repository, {"GITHUB_BASE_REF": "main"}) == ("origin/main", commit_of(repository, "main~1"))
    git(repository, "checkout", "--quiet", "--orphan", "other")
    git(repository, "commit", "--quiet", "--message", "other")
    with pytest.raises(InputError, match="HEAD and origin/main have no common commit here: fetch the whole history"):
        base_commit(repository, {**os.environ, "GITHUB_BASE_REF": "main"})


def test_a_first_push_is_told_how_it_passes(tmp_path: Path) -> None:
    """Of a remote without a branch Git can ask for no HEAD."""
    git(tmp_path, "init", "--quiet")
    with pytest.raises(InputError, match=r"its first push .* skip the hook this once"):
        base_commit(tmp_path, {})
    with pytest.raises(InputError, match=r"there is no origin/main here") as told:
        base_commit(tmp_path, {"GITHUB_BASE_REF": "main"})
    assert "first push" not in str(told.value)
