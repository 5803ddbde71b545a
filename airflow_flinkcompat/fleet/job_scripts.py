"""Scripts and programs of a repository that make a job, and which of them no deployment names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.deployable import ObstacleKind, obstacles
from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.statements import Role, role
from airflow_flinkcompat.fleet.sides import side_of_script
from airflow_flinkcompat.model import PROGRAM_SUFFIXES, language_of
from airflow_flinkcompat.project import JobOptions, ProjectFile, find_project_file
from airflow_flinkcompat.sql import ScriptError

_BY_HAND = (
    "no query of the program could be read: where it is a job, write [deployments.NAME] with its script into the file"
)


SUFFIXES = (".sql", *PROGRAM_SUFFIXES)
"""Suffixes of files that may hold a job."""


def may_hold_job(path: Path) -> bool:
    """True if a file may hold a job; for Python, if it makes a table environment."""
    if path.suffix not in SUFFIXES or not path.is_file():
        return False
    try:
        return language_of(path) != "python" or b"TableEnvironment" in path.read_bytes()
    except OSError:
        return False


def holds_job(side: Side) -> bool:
    """True if a script or program can be a deployment's: readable, with an INSERT or a query that runs."""
    if side.language != "sql":
        if not side.program.pipelines and (problem := next(iter(side.program.problems), None)):
            raise ScriptError(f"{problem.span or side.source}: {problem.message}; {_BY_HAND}")
        return bool(side.program.pipelines)
    if Role.JOB not in [role(statement) for statement in side.parsed.statements]:
        return False
    malformed = next((str(each) for each in obstacles(side) if each.kind is ObstacleKind.SYNTAX), None)
    if malformed is not None:
        raise ScriptError(malformed)
    return True


def unnamed_scripts(project: ProjectFile, names: Iterable[str]) -> tuple[str, ...]:
    """The scripts and programs that make a job and that no deployment names, so that nothing judges them."""
    return () if project.broken else tuple(name for name in names if _is_unnamed(project, name))


def _is_unnamed(project: ProjectFile, name: str) -> bool:
    path = project.folder / name
    if not name.isprintable() or not may_hold_job(path) or project.deployments_of(path):
        return False
    file = find_project_file(path)
    if file is None or file.parent != project.folder.resolve():
        return False
    try:
        side = side_of_script(path, JobOptions(), project.folder, project.folder)
        return side is not None and holds_job(side)
    except (ScriptError, DeployError, RecursionError):
        return path.suffix == ".py"  # it makes an environment of tables, whatever of it can be read
