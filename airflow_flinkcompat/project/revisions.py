"""Files of a Git revision, and changes of files in a history, read with the command ``git``."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from airflow_flinkcompat.model import InputError

# Variables with the target branch of a pull request, in jobs of GitHub and of GitLab.
_TARGET_BRANCHES = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
_REMOTE_HEAD = "origin/HEAD"
_REDIRECTIONS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_NAMESPACE")
FILE_MODES = ("100644", "100755")
"""Git's modes of regular files; links and submodules have other modes."""
_FIRST_PUSH = (
    ". If origin has no branch yet, this is its first push and there is nothing to compare with: skip the "
    "hook this once (SKIP=flinkcompat-diff git push …)"
)
_LINK, _SUBMODULE = "120000", "160000"
_MOST_LINKS = 40
"""Maximum number of symbolic links in a path, as in Linux; a longer chain is reported as circular."""
_SHALLOW = "fetch the whole history (actions/checkout: fetch-depth: 0; GitLab: GIT_DEPTH: 0)"


def git_environment() -> dict[str, str]:
    """Environment variables for a Git process with English messages.

    In a hook, Git sets variables such as ``GIT_DIR`` that would select another repository. These variables are left
    out.
    """
    return {**{name: value for name, value in os.environ.items() if name not in _REDIRECTIONS}, "LC_ALL": "C"}


def run_git(
    *arguments: str, cwd: Path | None = None, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run Git with English output."""
    variables = git_environment() | dict(environment or {})
    return subprocess.run(["git", *arguments], cwd=cwd, input=stdin, capture_output=True, check=False, env=variables)


def words_of(done: subprocess.CompletedProcess[bytes]) -> str:
    """The first line of Git's error message."""
    return done.stderr.decode(errors="replace").strip().partition("\n")[0].removeprefix("fatal: ")


def repository_of(folder: Path) -> Path | None:
    """The root of a folder's Git repository; None outside of a repository or without Git."""
    try:
        done = run_git("rev-parse", "--show-toplevel", cwd=folder)
    except FileNotFoundError:
        return None
    if done.returncode == 0:
        return Path(os.fsdecode(done.stdout.removesuffix(b"\n"))).resolve()
    words = words_of(done)
    if words.startswith("not a git repository"):
        return None
    remedy = "; git config --global --add safe.directory FOLDER trusts it" if "ownership" in words else ""
    raise InputError(f"{folder}: git does not open the repository: {words}{remedy}")


def root_of(folder: Path) -> Path:
    """The folder from which files are named: the root of the Git repository, else the folder itself."""
    return repository_of(folder) or folder.resolve()


def committer(folder: Path) -> str:
    """Name and address of the committer from Git's settings for a folder."""
    try:
        name, address = (run_git("config", "--get", key, cwd=folder) for key in ("user.name", "user.email"))
    except FileNotFoundError:
        return ""
    found = [each.stdout.decode(errors="replace").strip() for each in (name, address)]
    return f"{found[0]} <{found[1]}>" if all(found) else "".join(found)


def commit_of(repository: Path, revision: str) -> str:
    """The commit of a revision. Raises InputError for an unknown revision."""
    found = _verified(repository, revision)
    if found is None:
        raise InputError(
            f"{revision}: is not a revision of this Git repository; a shallow clone lacks most revisions: {_SHALLOW}"
        )
    return found


def base_commit(repository: Path, environment: Mapping[str, str]) -> tuple[str, str]:
    """The target branch of a change, and the commit at which the change branched off."""
    target = next((environment[name] for name in _TARGET_BRANCHES if environment.get(name)), None)
    branch = f"origin/{target}" if target else _REMOTE_HEAD
    if _verified(repository, branch) is None:
        first = "" if _git_answer(repository, "for-each-ref", "--count=1", "refs/remotes/origin") else _FIRST_PUSH
        raise InputError(
            f"the commit to compare with is unknown: there is no {branch} here. In CI, {_SHALLOW}; elsewhere "
            "run git remote set-head origin --auto; or name a commit (--against git:REF) or a "
            "ledger (--against ledger:URI, FLINKCOMPAT_LEDGER, or ledger = … in the project "
            f"file){'' if target else first}"
        )
    base = _git_answer(repository, "merge-base", branch, "HEAD")
    if base is None:
        raise InputError(f"HEAD and {branch} have no common commit here: {_SHALLOW}, or name one: --against git:REF")
    return branch, base


@dataclass(frozen=True)
class RevisionFiles:
    """The files of a commit.

    Attributes:
        label: The name of the commit in messages.
        modes: Git's mode of each file, link and submodule, by its path from the root.
    """

    repository: Path
    commit: str
    label: str
    modes: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, repository: Path, commit: str, label: str = "") -> RevisionFiles:
        """List the files of a commit. Raises InputError if Git cannot list the files."""
        done = run_git("ls-tree", "-r", "-z", commit, cwd=repository)
        _done(done, commit)
        rows = (os.fsdecode(row).partition("\t") for row in done.stdout.split(b"\0") if row)
        return cls(repository, commit, label or commit[:10], {path: head.split(" ")[0] for head, _, path in rows})

    def followed(self, path: str) -> str:
        """Follow the symbolic links in a path of the commit."""
        pending, done, links = deque(path.split("/")), list[str](), 0
        while pending:
            part = pending.popleft()
            if part in ("", "."):
                continue
            if part == "..":
                if not done:
                    raise self._outside(path, "leads out of the repository")
                done.pop()
                continue
            place = "/".join((*done, part))
            mode = self.modes.get(place)
            if mode == _SUBMODULE:
                raise self._outside(path, f"lies in the submodule {place}")
            if mode != _LINK:
                done.append(part)
                continue
            links += 1
            target = os.fsdecode(self._blob(place) or b"")
            if target.startswith("/"):
                raise self._outside(path, f"is reached by {place}, a link to an absolute path")
            if links > _MOST_LINKS:
                raise self._outside(path, f"is reached by {place}, a circular link")
            pending.extendleft(reversed(target.split("/")))
        return "/".join(done)

    def text(self, path: str) -> str | None:
        """Text of the file at a path from the root, with links followed; None without this file.

        Raises InputError if the file is not UTF-8, or a link leads out of the repository.
        """
        content = self._blob(self.followed(path))
        try:
            return None if content is None else content.decode()
        except UnicodeDecodeError:
            raise InputError(f"{self.label}:{path}: is not UTF-8 text") from None

    def new_files(self, folder: Path, suffix: str) -> tuple[str, ...]:
        """Files of the working tree that the commit lacks, except for ignored files."""
        listed = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", f"*{suffix}")
        done = run_git(*listed, cwd=folder)
        _done(done, self.commit)
        names = sorted({os.fsdecode(name) for name in done.stdout.split(b"\0") if name})
        place = folder.resolve().relative_to(self.repository)
        return tuple(name for name in names if (place / name).as_posix() not in self.modes)

    def check_out(self, paths: Iterable[str] | None, into: Path) -> None:
        """Write files of the commit to a folder, without a change of the working tree or the Git index."""
        wanted = {*self.modes} if paths is None else {*paths}
        files = [name for name, mode in self.modes.items() if mode in FILE_MODES and name in wanted]
        names = [*files, *(name for name, mode in self.modes.items() if mode == _LINK and self._is_inside(name))]
        index = {"GIT_INDEX_FILE": str(into.parent / f"{into.name}.index")}
        read = ("read-tree", "--no-sparse-checkout", self.commit)
        _done(run_git(*read, cwd=self.repository, environment=index), self.commit)
        written = run_git(
            "checkout-index", "-z", "--stdin", f"--prefix={into}/",
            cwd=self.repository, stdin=b"".join(os.fsencode(name) + b"\0" for name in names), environment=index,
        )  # fmt: skip
        _done(written, self.commit)

    def _is_inside(self, name: str) -> bool:
        try:
            self.followed(name)
        except InputError:
            return False
        return True

    def _blob(self, path: str) -> bytes | None:
        if self.modes.get(path) not in (*FILE_MODES, _LINK):
            return None
        done = run_git("cat-file", "blob", f"{self.commit}:{path}", cwd=self.repository)
        _done(done, self.commit)
        return done.stdout

    def _outside(self, path: str, why: str) -> InputError:
        return InputError(
            f"{self.label}:{path}: {why}, so it cannot be compared: keep the file in the repository, use only links "
            "with relative paths, or compare with a ledger (--against ledger:URI)"
        )


def _verified(repository: Path, revision: str) -> str | None:
    return (
        _git_answer(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        or None
    )


def _git_answer(repository: Path, *arguments: str) -> str | None:
    try:
        done = run_git(*arguments, cwd=repository)
    except FileNotFoundError:
        raise InputError("comparing with a Git revision needs git, which is not installed") from None
    return done.stdout.decode().strip() if done.returncode == 0 else None


def _done(process: subprocess.CompletedProcess[bytes], commit: str) -> None:
    if process.returncode:
        raise InputError(f"the files of commit {commit[:10]} cannot be read: {words_of(process)}")


_BLOCK = 1 << 16


@dataclass(frozen=True)
class FileChange:
    """Change of a file by a commit.

    Attributes:
        status: ``A`` added, ``D`` deleted, ``M`` changed, ``R`` moved and perhaps changed.
        path: Path of the file from the root, after the commit.
        old: The blob before the commit; "" for an added file. new: The blob after the commit; "" for a deleted file.
    """

    commit: str
    status: str
    path: str
    old: str
    new: str


def file_changes(repository: Path, revisions: str, paths: Sequence[str]) -> Iterator[FileChange]:
    """Every change of a file in a history, oldest commit first, without merge commits."""
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
        """Content of the blob with this hash; raises InputError if the repository lacks the blob."""
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
    """Run a Git process until the end of the ``with`` block."""
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
