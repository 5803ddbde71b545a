"""Scripts of a repository that hold a job, and which of them no deployment names."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.deployable import ObstacleKind, obstacles
from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.statements import Role, role
from airflow_flinkcompat.project import ProjectFile, find_project_file
from airflow_flinkcompat.sql import ScriptError, read_text


def holds_job(side: Side) -> bool:
    """Whether a script can be a deployment's: it holds an INSERT, and can be read.

    Args:
        side: The script.

    Returns:
        False where it holds queries or declarations alone.

    Raises:
        ScriptError: It has errors of syntax.
        DeployError: It changes data in a way that no job does.
    """
    if Role.JOB not in [role(statement) for statement in side.parsed.statements]:
        return False
    malformed = next((str(each) for each in obstacles(side) if each.kind is ObstacleKind.SYNTAX), None)
    if malformed is not None:
        raise ScriptError(malformed)
    return True


def unnamed_scripts(project: ProjectFile, names: Iterable[str]) -> tuple[str, ...]:
    """The scripts that hold a job and that no deployment names, so that nothing judges them.

    Args:
        project: The project file.
        names: The files that may be such a script, by their path from the project's folder.

    Returns:
        Their names. Those below another project file, and those that cannot be read, are none of these; where a
        deployment of the file cannot be used there are none, for one may be its script.
    """
    return () if project.broken else tuple(name for name in names if _is_unnamed(project, name))


def _is_unnamed(project: ProjectFile, name: str) -> bool:
    path = project.folder / name
    if not name.isprintable() or not path.is_file() or project.deployments_of(path):
        return False
    file = find_project_file(path)
    if file is None or file.parent != project.folder.resolve():
        return False
    try:
        return holds_job(Side(read_text(path), source=name))
    except (ScriptError, DeployError, RecursionError):
        return False
