"""A repository of 30 Flink SQL jobs with a history, made anew: each job of the working tree has a fate of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.cli.command import QUERY, TABLES

MAIN = "main"
_IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
# The dates are part of a commit's hash, and the hash is shown.
_DATES = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}

EDITS: Mapping[str, Callable[[str], str]] = {
    "clicks": lambda sql: f"-- who clicks\n{sql}",
    "orders": lambda sql: sql.replace("'1' MINUTE", "'2' MINUTE"),
    "payments": lambda sql: sql.replace("SUM(amount)", "SUM(amount) * 100"),
    "refunds": lambda sql: sql.replace("SUM(amount)", "SUM(amount) + COUNT(item)"),
    "sessions": lambda sql: sql.replace("'topic' =", "'our.own' = 'x', 'topic' ="),
    "broken": lambda sql: sql.replace("GROUP BY", "GRUOP BY"),
    "secretive": lambda sql: sql.replace("'topic' =", "'properties.sasl.password' = 'hunter2-plain', 'topic' ="),
    "two_jobs": lambda sql: sql.replace("SUM(amount)", "SUM(amount) * 2") + QUERY,
}
"""What the change does to a script, by deployment; the other ones stay as they are."""
OF_VVR = "refunds"
"""The deployment that runs on the vendor's engine."""
UNTOUCHED = tuple(f"job_{number:02d}" for number in range(1, 21))
DELETED, MOVED, ADDED = "retired", "renamed", "fresh"
NAMES = (*EDITS, DELETED, MOVED, *UNTOUCHED)
"""The deployments before the change: 30."""


def script_of(name: str) -> str:
    """The SQL of a deployment as it was committed first."""
    return TABLES.replace("'orders'", f"'{name}'") + QUERY


def project_text(paths: Mapping[str, str], head: str) -> str:
    """The project file: what it says for all, and the deployments by their scripts."""
    tables = {name: f'\n[deployments.{name}]\nscript = "{path}"\n' for name, path in paths.items()}
    return head + "".join(tables.values()).replace(tables[OF_VVR], f'{tables[OF_VVR]}engine = "vvr"\n')


def git(folder: Path, *arguments: str) -> str:
    """What Git answers in that folder; commits are the same on every day."""
    done = subprocess.run(
        ["git", *_IDENTITY, *arguments], cwd=folder, check=True, capture_output=True, env={**os.environ, **_DATES}
    )
    return done.stdout.decode().strip()


def make_repository(folder: Path, head: str = 'engine = "flink"\n') -> Path:
    """The repository: what is deployed is ``origin/main``, two commits back; the change is committed on a branch.

    Args:
        folder: An empty folder.
        head: What the project file says before its deployments.

    Returns:
        The folder.
    """
    (folder / "jobs").mkdir(parents=True)
    paths = {name: f"jobs/{name}.sql" for name in NAMES}
    git(folder, "init", "--quiet", "--initial-branch", MAIN)
    for name, path in paths.items():
        (folder / path).write_text(script_of(name), encoding="utf-8")
    (folder / "flinkcompat.toml").write_text(project_text(paths, head), encoding="utf-8")
    _commit(folder, "thirty jobs")
    git(folder, "update-ref", "refs/remotes/origin/main", MAIN)
    git(folder, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git(folder, "checkout", "--quiet", "-b", "change")
    for name, edit in EDITS.items():
        (folder / paths[name]).write_text(edit(script_of(name)), encoding="utf-8")
    _commit(folder, "change eight of them")
    (folder / paths.pop(DELETED)).unlink()
    (folder / "moved").mkdir()
    git(folder, "mv", paths[MOVED], f"moved/{MOVED}.sql")
    paths |= {MOVED: f"moved/{MOVED}.sql", ADDED: f"jobs/{ADDED}.sql"}
    (folder / paths[ADDED]).write_text(script_of(ADDED), encoding="utf-8")
    (folder / "flinkcompat.toml").write_text(project_text(paths, head), encoding="utf-8")
    _commit(folder, "one retired, one moved, one more")
    return folder


def _commit(folder: Path, message: str) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
