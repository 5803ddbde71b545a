"""Commit and author of a script version, from the Git work tree of its files."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from airflow_flinkcompat.project.revisions import git_environment

# Time limit of a Git command, long enough for a slow disk. After this time, the commit is unknown.
_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True)
class GitOrigin:
    """Commit and author (``name <address>``) of files; ``why`` explains missing values, if possible."""

    commit: str | None = None
    author: str | None = None
    why: str = ""


def of_work_tree(places: Sequence[Path]) -> GitOrigin | None:
    """Read the repository of the first file; None without a repository, or if Git fails."""
    answer = _git(places[0].parent, "rev-parse", "--show-toplevel", "--is-shallow-repository")
    if answer is None or len(lines := answer.splitlines()) != 2:
        return None
    root, shallow = Path(lines[0]).resolve(), lines[1] == "true"
    own = [str(place) for place in places if place.is_relative_to(root)]
    edits = _git(root, "status", "--porcelain", "--untracked-files=all", "--", *own)
    if edits is None:
        return None
    if edits.strip():
        return GitOrigin(why="its files have uncommitted edits")
    last = _git(root, "log", "-1", "--format=%H%x00%aN <%aE>%x00%P", "--", *own)
    if last is None:
        return None
    if not last.strip():
        return GitOrigin(why="its files are not committed")
    commit, author, parents = last.strip("\n").split("\0")
    if shallow and not parents:
        return GitOrigin(why="the clone is too shallow to determine the commit of its files")
    return GitOrigin(commit, author)


def _git(folder: Path, *arguments: str) -> str | None:
    """Run Git and return its output; None if Git is missing, fails, or takes too long."""
    environment = git_environment() | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    # A repository may configure a file watcher, which must not be started.
    options = ("-c", "core.fsmonitor=false", "--literal-pathspecs")
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *options, *arguments],
            capture_output=True, encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL, env=environment,
            timeout=_TIMEOUT_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
