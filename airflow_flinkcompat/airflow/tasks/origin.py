"""Origin of a proposed version: the Git commit that last changed its files, and its author."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_flinkcompat.airflow.tasks.bundles import repository_of
from airflow_flinkcompat.project.revisions import git_environment

# Where a repository lies on a slow disk; without an answer the version is of no known commit.
_TIMEOUT_SECONDS = 10.0
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True)
class GitOrigin:
    """The commit and its author as ``name <address>``; if they are None, ``why`` is the known cause."""

    commit: str | None = None
    author: str | None = None
    why: str = ""


def git_origin(files: Iterable[str], bundle: Any = None) -> GitOrigin:
    """The commit of a version."""
    places = [Path(file).resolve() for file in files]
    found = _of_work_tree(places) if places else None
    if found is not None:
        return found
    version = getattr(bundle, "version", None)
    if not isinstance(version, str) or not _COMMIT.fullmatch(version):
        return GitOrigin()
    root = repository_of(bundle).resolve()
    return GitOrigin(version) if all(place.is_relative_to(root) for place in places) else GitOrigin()


def _of_work_tree(places: list[Path]) -> GitOrigin | None:
    """Read the repository of the first file; None if there is none, or Git does not answer."""
    told = _git(places[0].parent, "rev-parse", "--show-toplevel", "--is-shallow-repository")
    if told is None or len(lines := told.splitlines()) != 2:
        return None
    root, shallow = Path(lines[0]).resolve(), lines[1] == "true"
    own = [str(place) for place in places if place.is_relative_to(root)]
    edits = _git(root, "status", "--porcelain", "--untracked-files=all", "--", *own)
    if edits is None:
        return None
    if edits.strip():
        return GitOrigin(why="its files have edits that are in no commit")
    last = _git(root, "log", "-1", "--format=%H%x00%aN <%aE>%x00%P", "--", *own)
    if last is None:
        return None
    if not last.strip():
        return GitOrigin(why="its files are in no commit")
    commit, author, parents = last.strip("\n").split("\0")
    if shallow and not parents:
        return GitOrigin(why="the clone is too shallow to tell the commit of its files")
    return GitOrigin(commit, author)


def _git(folder: Path, *arguments: str) -> str | None:
    """Output of Git; None if it is missing, fails, or takes too long."""
    environment = git_environment() | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    # A repository may name a program that watches its files; none is to be started for a look.
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
