"""The project file as it was at a commit, also where it has been moved since."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.project.file import PROJECT_FILES, find_project_file, tables_of
from airflow_flinkcompat.project.revisions import RevisionFiles
from airflow_flinkcompat.project.settings import ProjectFile, project_of


@dataclass(frozen=True)
class FormerProject:
    """A project file of a commit.

    Attributes:
        project: What it said, of which no script is read; None where the commit had no such file.
        path: Where it lay, from the root of the repository; today's path where the commit had none.
        is_moved: Whether it lies elsewhere today.
    """

    project: ProjectFile | None
    path: str
    is_moved: bool = False

    @property
    def folder(self) -> str:
        """Base of its paths, from the root of the repository."""
        return PurePosixPath(self.path).parent.as_posix()


def former_project(project: ProjectFile, files: RevisionFiles) -> FormerProject:
    """The project file as it was at a commit."""
    place = (project.path.absolute().parent.resolve() / project.path.name).relative_to(files.repository).as_posix()
    found = _project_at(place, files)
    if found is not None:
        return FormerProject(found, place)
    gone = [name for name in files.modes if PurePosixPath(name).name in PROJECT_FILES and _is_gone(name, files)]
    moved = {name: found for name in gone if (found := _project_at(name, files)) is not None}
    if len(moved) > 1:
        raise InputError(
            f"{files.label} has no {place}, but {', '.join(moved)}, of which none is there today: which one became "
            "this file is not known"
        )
    return next((FormerProject(found, name, True) for name, found in moved.items()), FormerProject(None, place))


def _project_at(place: str, files: RevisionFiles) -> ProjectFile | None:
    text = files.text(place)
    if text is None:
        return None
    tables = tables_of(text, Path(place), f"{files.label}:{place}")
    return None if tables is None else project_of(tables, is_former=True)


def _is_gone(name: str, files: RevisionFiles) -> bool:
    """True if a commit's file of this name is no project file today."""
    place = files.repository / name
    return find_project_file(place) != place
