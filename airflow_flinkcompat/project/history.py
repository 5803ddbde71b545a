"""Changes of files in a Git history, requested from ``git`` itself and read as they arrive."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.project.revisions import FILE_MODES, git_environment

_BLOCK = 1 << 16


@dataclass(frozen=True)
class FileChange:
    """Change of a file by a commit.

    Attributes:
        commit: The commit.
        status: ``A`` added, ``D`` deleted, ``M`` changed, ``R`` moved and perhaps changed.
        path: The file from the root, as the commit left it.
        old: The blob that the file was; "" if there was none.
        new: The blob that it is; "" if there is none.
    """

    commit: str
    status: str
    path: str
    old: str
    new: str


def file_changes(repository: Path, revisions: str, paths: Sequence[str]) -> Iterator[FileChange]:
    """Every change of files in a history, oldest commit first; a merge is no change of its own."""
    if revisions.startswith("-"):
        raise InputError(f"{revisions}: the name of a revision cannot begin with '-'")
    places = ["--", *paths] if paths else ["--"]
    with _git(repository, "rev-list", "--reverse", "--no-merges", revisions, *places) as listed:
        arguments = ("diff-tree", "--stdin", "-r", "-z", "--root", "--find-renames", "--no-ext-diff", *places)
        with _git(repository, *arguments, stdin=listed.stdout) as compared:
            assert compared.stdout is not None
            yield from _changes(_fields(compared.stdout))
        _require_success(listed, revisions)
        _require_success(compared, revisions)


class Blobs:
    """Contents of blobs from one process ``git cat-file --batch``."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def read(self, blob: str) -> bytes:
        """Content of the blob with this hash; raises InputError if the repository, a partial clone, lacks it."""
        to, answers = self._process.stdin, self._process.stdout
        assert to is not None
        assert answers is not None
        to.write(f"{blob}\n".encode())
        to.flush()
        head = answers.readline().split()
        if len(head) != 3:
            raise InputError(f"blob {blob[:10]} is not in this repository, which may be a partial or shallow clone")
        content = answers.read(int(head[2]))
        answers.read(1)
        return content


@contextmanager
def blobs(repository: Path) -> Iterator[Blobs]:
    """A reader of blobs."""
    with _git(repository, "cat-file", "--batch", stdin=subprocess.PIPE) as process:
        yield Blobs(process)


@contextmanager
def _git(
    repository: Path, *arguments: str, stdin: IO[bytes] | int | None = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """A running Git process, ended with the block."""
    try:
        process = subprocess.Popen(
            ["git", *arguments],
            cwd=repository,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=git_environment(),
        )
    except FileNotFoundError:
        raise InputError("a Git history needs git, which is not installed") from None
    with process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def _require_success(process: subprocess.Popen[bytes], revisions: str) -> None:
    error = b"" if process.stderr is None or process.stderr.closed else process.stderr.read()
    if process.wait():
        words = error.decode(errors="replace").strip().partition("\n")[0].removeprefix("fatal: ")
        raise InputError(
            f"--git {revisions}: {words or 'git failed'}; a shallow clone lacks most of the history "
            "(git fetch --unshallow)"
        )


def _fields(stream: IO[bytes]) -> Iterator[str]:
    """Split a stream at NUL bytes."""
    rest = b""
    while block := stream.read(_BLOCK):
        *whole, rest = (rest + block).split(b"\0")
        yield from (os.fsdecode(each) for each in whole)


def _changes(fields: Iterator[str]) -> Iterator[FileChange]:
    commit = ""
    for each in fields:
        if not each.startswith(":"):
            commit = each.strip()
            continue
        old_mode, new_mode, old, new, status = each[1:].split(" ")
        path = next(fields)
        if status[0] in "RC":
            path = next(fields)
        if (old_mode in FILE_MODES or status[0] == "A") and (new_mode in FILE_MODES or status[0] == "D"):
            yield FileChange(commit, status[0], path, old.strip("0") and old, new.strip("0") and new)
