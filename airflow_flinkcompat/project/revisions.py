"""Files of a Git revision, asked of ``git`` itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from airflow_flinkcompat.model import InputError

# The branch that a pull request goes into, as the two services tell their jobs.
_TARGET_BRANCHES = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
_REMOTE_HEAD = "origin/HEAD"
_SHALLOW = "fetch the whole history (actions/checkout: fetch-depth: 0; GitLab: GIT_DEPTH: 0)"


def run_git(
    *arguments: str, cwd: Path | None = None, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """What Git answers, in English, whatever it says.

    Args:
        *arguments: The command behind ``git``.
        cwd: Where it is asked; None: here.
        stdin: What it reads.
        environment: Variables beside those of this process.

    Returns:
        The finished process.

    Raises:
        FileNotFoundError: Git is not installed.
    """
    variables = {**os.environ, **(environment or {}), "LC_ALL": "C"}
    return subprocess.run(["git", *arguments], cwd=cwd, input=stdin, capture_output=True, check=False, env=variables)


def words_of(done: subprocess.CompletedProcess[bytes]) -> str:
    """The first line of what Git says of a failure."""
    return done.stderr.decode(errors="replace").strip().partition("\n")[0].removeprefix("fatal: ")


def repository_of(folder: Path) -> Path | None:
    """The root of the Git repository that a folder lies in.

    Args:
        folder: A folder.

    Returns:
        The root, with links resolved; None where there is no repository, or no Git.

    Raises:
        InputError: Git does not open the repository, as one that belongs to another user.
    """
    try:
        done = run_git("rev-parse", "--show-toplevel", cwd=folder)
    except FileNotFoundError:
        return None
    if done.returncode == 0:
        return Path(done.stdout.decode().rstrip("\n")).resolve()
    words = words_of(done)
    if words.startswith("not a git repository"):
        return None
    remedy = "; git config --global --add safe.directory FOLDER trusts it" if "ownership" in words else ""
    raise InputError(f"{folder}: git does not open the repository: {words}{remedy}")


def root_of(folder: Path) -> Path:
    """The root from which files are called: that of the repository of a folder; the folder where it is in none."""
    return repository_of(folder) or folder.resolve()


def committer(folder: Path) -> str:
    """Who commits in a folder, by Git's settings.

    Args:
        folder: A folder.

    Returns:
        Name and address, or what there is of both; "" where Git does not know, or is not installed.
    """
    try:
        name, address = (run_git("config", "--get", key, cwd=folder) for key in ("user.name", "user.email"))
    except FileNotFoundError:
        return ""
    told = [each.stdout.decode(errors="replace").strip() for each in (name, address)]
    return f"{told[0]} <{told[1]}>" if all(told) else "".join(told)


def commit_of(repository: Path, revision: str) -> str:
    """The commit that a revision is.

    Args:
        repository: The root of the repository.
        revision: As Git takes it: a branch, a tag, a commit.

    Returns:
        Its hash.

    Raises:
        InputError: There is no such revision.
    """
    found = _verified(repository, revision)
    if found is None:
        raise InputError(
            f"{revision}: there is no such revision in this Git repository; a shallow clone lacks most: {_SHALLOW}"
        )
    return found


def base_commit(repository: Path, environment: Mapping[str, str]) -> tuple[str, str]:
    """The commit on which a change was begun: where it left the branch that it goes into.

    Args:
        repository: The root of the repository.
        environment: The variables of the process, by which CI says which branch that is.

    Returns:
        The branch and the commit.

    Raises:
        InputError: Neither CI nor the clone says which branch it is, or both have no common history here.
    """
    target = next((environment[name] for name in _TARGET_BRANCHES if environment.get(name)), None)
    branch = f"origin/{target}" if target else _REMOTE_HEAD
    if _verified(repository, branch) is None:
        raise InputError(
            f"which commit to compare with is not known: there is no {branch} here. Name one, --against git:REF, or "
            "a ledger (--against ledger:URI, FLINKCOMPAT_LEDGER, or ledger = … in the project file)"
        )
    base = _asked(repository, "merge-base", branch, "HEAD")
    if base is None:
        raise InputError(f"HEAD and {branch} have no common commit here: {_SHALLOW}, or name one: --against git:REF")
    return branch, base


def text_at(repository: Path, commit: str, path: str) -> str | None:
    """The text of a file of a commit.

    Args:
        repository: The root of the repository.
        commit: The commit.
        path: The file from the root.

    Returns:
        The text; None where the commit has no such file.

    Raises:
        InputError: It is not UTF-8.
    """
    done = run_git("cat-file", "blob", f"{commit}:{path}", cwd=repository)
    if done.returncode:
        return None
    try:
        return done.stdout.decode()
    except UnicodeDecodeError:
        raise InputError(f"{commit[:10]}:{path}: is not UTF-8 text") from None


def check_out(repository: Path, commit: str, paths: Iterable[str] | None, into: Path) -> None:
    """Write files of a commit into a folder; neither the working tree nor the index of the repository is touched.

    Args:
        repository: The root of the repository.
        commit: The commit.
        paths: The files from the root, those that it has not are left out; None: all.
        into: An empty folder.

    Raises:
        InputError: Git cannot write them.
    """
    index = {"GIT_INDEX_FILE": str(into.parent / f"{into.name}.index")}
    _done(run_git("read-tree", commit, cwd=repository, environment=index), commit)
    listed = run_git("ls-files", "-z", cwd=repository, environment=index).stdout.split(b"\0")
    wanted = None if paths is None else {os.fsencode(path) for path in paths}
    names = [name for name in listed if name and (wanted is None or name in wanted)]
    written = run_git(
        "checkout-index", "-z", "--stdin", f"--prefix={into}/",
        cwd=repository, stdin=b"\0".join((*names, b"")), environment=index,
    )  # fmt: skip
    _done(written, commit)


def _verified(repository: Path, revision: str) -> str | None:
    return _asked(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}") or None


def _asked(repository: Path, *arguments: str) -> str | None:
    try:
        done = run_git(*arguments, cwd=repository)
    except FileNotFoundError:
        raise InputError("comparing with a Git revision needs git, which is not installed") from None
    return done.stdout.decode().strip() if done.returncode == 0 else None


def _done(process: subprocess.CompletedProcess[bytes], commit: str) -> None:
    if process.returncode:
        raise InputError(f"the files of commit {commit[:10]} cannot be read: {words_of(process)}")
