"""Deployments as sides of a change, and the scripts of a repository that no deployment uses."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.deployable import ObstacleKind, obstacles
from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.statements import Role, role
from airflow_flinkcompat.model import ENGINES, PROGRAM_SUFFIXES, Waiver, join_ddl, language_of
from airflow_flinkcompat.project.file import find_project_file
from airflow_flinkcompat.project.job_options import JobOptions
from airflow_flinkcompat.project.settings import ProjectDeployment, ProjectFile
from airflow_flinkcompat.project.waivers import read_waivers, waivers_path
from airflow_flinkcompat.sql import ScriptError
from airflow_flinkcompat.sql.script import decode_script


def side_of_deployment(
    deployment: ProjectDeployment, folder: Path, root: Path, *, unsaved: Mapping[Path, str] | None = None
) -> Side | None:
    """Read the script of a deployment, with everything that affects its verdict."""
    return side_of_script(folder / deployment.script, deployment.options, folder, root, unsaved=unsaved)


def side_of_script(
    path: Path,
    options: JobOptions,
    folder: Path,
    root: Path,
    *,
    prefix: str = "",
    unsaved: Mapping[Path, str] | None = None,
) -> Side | None:
    """Read a script with options; None if the file is missing."""
    source = prefix + name_from(path, root)
    text = _text(path, source, program=True, unsaved=unsaved)
    if text is None:
        return None
    catalog, catalog_sources = options.catalog, options.catalog_sources
    if options.catalog_files:
        catalog, catalog_sources = join_ddl(_catalog(options.catalog_files, folder, root, prefix, unsaved))
    language = language_of(path)
    variables: Mapping[str, str] = {}
    files, places = dict[str, str](), dict[str, str]()
    if language != "sql":
        from airflow_flinkcompat.frontends.pyflink.reader import find_local_files

        variables = options.variables
        for name, each in find_local_files(path, text, variables, root).items():
            files[name], places[name] = each.text, name_from(each.path, root)
    for name, _ in catalog_sources:
        if places.setdefault(name, name) != name:
            del places[name]  # two files have the same name in messages
    return Side(
        text,
        options.settings,
        options.functions,
        catalog,
        options.engine or ENGINES[0],
        options.engine_version,
        source,
        language,
        variables,
        files,
        catalog_sources=catalog_sources,
        filled_elsewhere=options.filled_elsewhere,
        places=places,
    )


def _catalog(
    files: Sequence[str], folder: Path, root: Path, prefix: str, unsaved: Mapping[Path, str] | None
) -> Iterator[tuple[str, str]]:
    """Names and texts of a catalog's files. Raises ScriptError if a file cannot be read."""
    for path in files:
        place = folder / path
        name = prefix + name_from(place, root)
        text = _text(place, name, unsaved=unsaved)
        if text is None:
            raise ScriptError(f"{name}: cannot be read: there is no such file (catalog)")
        yield name, text


def waivers_of(path: Path, root: Path) -> tuple[Waiver, ...]:
    """Read the waivers next to a script."""
    place = waivers_path(path)
    name = name_from(place, root)
    text = _text(place, name)
    return () if text is None else read_waivers(text, name)


def name_from(path: Path, root: Path) -> str:
    """Path relative to the root of the repository, with slashes."""
    return Path(os.path.relpath(path.parent.resolve() / path.name, root)).as_posix()


def _text(path: Path, source: str, *, program: bool = False, unsaved: Mapping[Path, str] | None = None) -> str | None:
    try:
        held = unsaved.get(path.resolve()) if unsaved else None
        if held is None and path.exists() and not path.is_file():  # reading a pipe may never end
            raise ScriptError(f"{source}: cannot be read: it is not a regular file")
        # Half of a surrogate pair is reported like invalid UTF-8 in a file.
        content = path.read_bytes() if held is None else held.encode(errors="surrogatepass")
        return decode_script(content, source, program)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ScriptError(f"{source}: cannot be read: {error.strerror}") from None


_ADD_DEPLOYMENT = (
    "no query of the program could be read: if the program is a job, add [deployments.NAME] with its script to the "
    "project file"
)


SUFFIXES = (".sql", *PROGRAM_SUFFIXES)
"""Suffixes of files that may contain a job."""


def may_hold_job(path: Path) -> bool:
    """True if a file may contain a job. A Python file must mention a TableEnvironment."""
    if path.suffix not in SUFFIXES or not path.is_file():
        return False
    try:
        return language_of(path) != "python" or b"TableEnvironment" in path.read_bytes()
    except OSError:
        return False


def holds_job(side: Side) -> bool:
    """True if the script contains an INSERT, or the program executes a query."""
    if side.language != "sql":
        if not side.program.pipelines and (problem := next(iter(side.program.problems), None)):
            raise ScriptError(f"{problem.span or side.source}: {problem.message}; {_ADD_DEPLOYMENT}")
        return bool(side.program.pipelines)
    if Role.JOB not in [role(statement) for statement in side.parsed.statements]:
        return False
    malformed = next((str(each) for each in obstacles(side) if each.kind is ObstacleKind.SYNTAX), None)
    if malformed is not None:
        raise ScriptError(malformed)
    return True


def unnamed_scripts(project: ProjectFile, names: Iterable[str]) -> tuple[str, ...]:
    """Scripts and programs that start a job but have no deployment, so that they are not judged."""
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
        return path.suffix == ".py"  # a program that creates a TableEnvironment counts, even if it is unreadable
