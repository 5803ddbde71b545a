"""Verdicts on open documents, from projects that are cached with their deployed versions.

This module is independent of editors and their protocol.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.fleet.baselines import Baseline, Baselines, FormerBaseline, baselines_for
from airflow_flinkcompat.fleet.review import (
    LoneScript,
    Request,
    diff_fleet,
    judged_options,
    lint_scripts,
    lone_script,
    obstacles_of,
)
from airflow_flinkcompat.fleet.sides import name_from
from airflow_flinkcompat.fleet.values import FleetDiff, Status
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.project.file import find_project_file
from airflow_flinkcompat.project.job_options import DEFAULT_GATE, JobOptions
from airflow_flinkcompat.project.positions import TomlPositions
from airflow_flinkcompat.project.revisions import root_of
from airflow_flinkcompat.project.settings import ProjectDeployment, ProjectFile, load_project
from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.sql import ScriptError

_SQL = ".sql"


@dataclass(frozen=True)
class DocumentVerdict:
    """Verdict on a document's script.

    Attributes:
        fleet: The reviews of the script's deployments, or the result of ``lint`` if no deployment uses the script.
        deployed: The deployed versions that were compared, by deployment.
        warning: The reason why the script of a deployment was not compared; "" if it was compared.
    """

    project: Path
    fleet: FleetDiff
    deployed: Mapping[str, Baseline] = field(default_factory=dict)
    warning: str = ""


class KnownBaselines:
    """Cache of baselines that reads each baseline once; input errors are cached, too."""

    def __init__(self, asked: Baselines) -> None:
        self._asked = asked
        self._known: dict[object, Any] = {}

    @property
    def words(self) -> str:
        return self._asked.words

    def of(self, deployment: ProjectDeployment) -> Baseline:
        found: Baseline = self._once(("of", deployment.name), lambda: self._asked.of(deployment))
        return found

    def deleted(self, project: ProjectFile) -> Mapping[str, FormerBaseline]:
        found: Mapping[str, FormerBaseline] = self._once("deleted", lambda: self._asked.deleted(project))
        return found

    def notes(self, project: ProjectFile) -> tuple[str, ...]:
        found: tuple[str, ...] = self._once("notes", lambda: self._asked.notes(project))
        return found

    def _once(self, key: object, ask: Callable[[], object]) -> Any:
        if key not in self._known:
            try:
                self._known[key] = ask()
            except (InputError, ScriptError) as error:
                self._known[key] = error
        found = self._known[key]
        if isinstance(found, Exception):
            raise found.with_traceback(None)
        return found


class Projects:
    """The projects of the open documents.

    Several threads may ask for verdicts; requests for the same project run one at a time. ``given``: options of the
    command line, of which only engine and version apply. ``against``: as in ``flinkcompat diff --against``.
    """

    def __init__(self, given: JobOptions, against: str | None = None) -> None:
        self._given = replace(given, planner="never")  # the planner would be too slow for an editor
        self._against = against
        self._lock = threading.Lock()
        self._open: dict[Path, _OpenProject] = {}

    def verdict(self, path: Path, unsaved: Mapping[Path, str]) -> DocumentVerdict | None:
        """The verdict on a script; None without a project, or for a program that no deployment uses.

        ``unsaved`` contains the editor's unsaved texts by path. All paths must be resolved.
        """
        try:
            file = find_project_file(path)
        except InputError as error:  # a pyproject.toml in a parent folder is unreadable
            return self._unusable(path, path, error)
        if file is None:
            return None
        with self._lock:
            project = self._open.setdefault(file, _OpenProject(file, self._given, self._against))
        try:
            with project.lock:
                return project.verdict(path, unsaved)
        except (InputError, ScriptError) as error:
            return self._unusable(path, file, error)

    def refresh(self) -> None:
        """Read every project and its baselines again before the next verdict."""
        with self._lock:
            for each in self._open.values():
                each.wanted += 1

    def close(self) -> None:
        """Release the cached projects."""
        with self._lock:
            for each in self._open.values():
                with each.lock:
                    each.close()
            self._open.clear()

    def _unusable(self, path: Path, file: Path, error: InputError | ScriptError) -> DocumentVerdict | None:
        if path.suffix != _SQL:  # a Python file need not be a Flink program
            return None
        return DocumentVerdict(file, lint_scripts([LoneScript(path.name, error)], DEFAULT_GATE, file.name))


class _OpenProject:
    """A cached project file with baselines of its deployments, both read again when the file changes."""

    def __init__(self, file: Path, given: JobOptions, against: str | None) -> None:
        self.lock = threading.Lock()
        self.wanted = 1
        self._had = 0
        self._file = file
        self._given = given
        self._against = against
        self._stamp: tuple[int, int] | None = None
        self._kept = ExitStack()
        self._project = ProjectFile(file, TomlPositions(str(file), ""))
        self._root = file.parent
        self._baselines: KnownBaselines | None = None
        self._problem = ""

    def close(self) -> None:
        self._kept.close()
        self._baselines = None

    def verdict(self, path: Path, unsaved: Mapping[Path, str]) -> DocumentVerdict | None:
        self._renew()
        named = self._project.deployments_of(path)
        if not named:
            return self._of_no_deployment(path, unsaved)
        if self._baselines is None:
            return replace(self._linted(path, named[0].options, unsaved), warning=self._problem)
        names = tuple(each.name for each in named)
        request = Request(self._project, self._root, self._gate, self._given, names, unsaved=unsaved)
        fleet = diff_fleet(request, self._baselines)
        away = [each for each in fleet.deployments if each.status is Status.UNREACHABLE]
        if away:
            return replace(self._linted(path, named[0].options, unsaved), warning=away[0].sentence)
        compared = {each.name for each in fleet.deployments if each.status is Status.CHANGED}
        deployed = {each.name: self._baselines.of(each) for each in named if each.name in compared}
        return DocumentVerdict(self._file, fleet, deployed)

    @property
    def _gate(self) -> str:
        return self._project.fail_on or DEFAULT_GATE

    def _renew(self) -> None:
        """Read the file again if it changed or a refresh was requested. Raises InputError."""
        stamp = _stamp_of(self._file)
        wanted = self.wanted  # another thread may request a refresh meanwhile
        if self._had == wanted and stamp == self._stamp:
            return
        self.close()
        self._had = 0  # if reading fails, the next verdict tries again
        self._project = load_project(self._file)
        self._root = root_of(self._project.folder)
        try:
            asked = self._kept.enter_context(baselines_for(self._project, self._against))
            self._baselines, self._problem = KnownBaselines(asked), ""
        except InputError as error:
            self._problem = mask_secrets(str(error))
        self._had, self._stamp = wanted, stamp

    def _of_no_deployment(self, path: Path, unsaved: Mapping[Path, str]) -> DocumentVerdict | None:
        if path.suffix != _SQL:
            return None
        if self._project.broken:  # a broken deployment may use this script
            raise InputError("\n  ".join(line for lines in self._project.broken.values() for line in lines))
        return self._linted(path, self._project.common, unsaved)

    def _linted(self, path: Path, options: JobOptions, unsaved: Mapping[Path, str]) -> DocumentVerdict:
        options = judged_options(self._given, options)
        named = next((each.name for each in self._project.deployments_of(path)), "")
        script = lone_script(path, options, self._project.folder, self._root, deployment=named, unsaved=unsaved)
        scripts = [] if script is None or _declares_alone(script.side) else [script]
        return DocumentVerdict(
            self._file, lint_scripts(scripts, self._gate, name_from(self._file, self._root), self._project.positions)
        )


def _declares_alone(side: Side | InputError | ScriptError) -> bool:
    """True for a readable script that only declares tables; ``lint`` skips such a catalog."""
    if not isinstance(side, Side) or any(obstacles_of(side)):
        return False
    return not side.program.pipelines and not side.program.problems


def _stamp_of(file: Path) -> tuple[int, int]:
    """Modification time and size of a file. Raises InputError if the file cannot be read."""
    try:
        found = file.stat()
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None
    return found.st_mtime_ns, found.st_size
