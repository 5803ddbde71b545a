"""Baselines of deployments, from a ledger or from the files of a Git revision."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol, Self

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.fleet.sides import SUFFIXES, side_of_script, unnamed_scripts
from airflow_flinkcompat.model import PROGRAM_SUFFIXES, InputError, OutOfReachError
from airflow_flinkcompat.model.options import LEDGER_VARIABLE
from airflow_flinkcompat.project.file import PROJECT_FILES, find_project_file, tables_of
from airflow_flinkcompat.project.revisions import RevisionFiles, base_commit, commit_of, repository_of
from airflow_flinkcompat.project.settings import ProjectDeployment, ProjectFile, project_of
from airflow_flinkcompat.sql import ScriptError

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy.ledger.entries import HeadEntry
    from airflow_flinkcompat.planner.judgement import DeployedJob

_MOST_NAMED = 5
_COMPARE_ELSEWHERE = (
    "if the correction is intended, compare with a different revision (--against git:REF), or with the ledger "
    "(--against ledger:URI)"
)


@dataclass(frozen=True)
class Baseline:
    """The version with which a deployment is compared.

    Attributes:
        side: The deployed script; None if nothing is deployed.
        words: Description of the script's source.
        entry: The number of the ledger entry; 0 for a Git revision.
        job_id: The id of the job that runs the script; "" if unknown.
        engine: The engine that is set for the script; None if none is set.
        job: Facts about the running job for Flink's planner; None if its cluster was not asked.
    """

    side: Side | None
    words: str
    entry: int = 0
    job_id: str = ""
    engine: str | None = None
    job: DeployedJob | None = None

    @classmethod
    def of_head(cls, head: HeadEntry | None, root: str) -> Self:
        """The deployed version of a ledger."""
        if head is None:
            return cls(None, f"the ledger {root}")
        side = Side.of(head.job)
        return cls(side, f"entry {head.number} of the ledger", head.number, head.job_id or "", side.engine)


FormerBaseline = Baseline | InputError | ScriptError
"""The deployed version of a removed deployment, or an error if the version is unknown."""


class Baselines(Protocol):
    """Source of the baselines of a project's deployments."""

    @property
    def words(self) -> str:
        """Description of the baselines."""

    def of(self, deployment: ProjectDeployment) -> Baseline:
        """The baseline of one deployment. Raises InputError, ScriptError, OutOfReachError."""

    def deleted(self, project: ProjectFile) -> Mapping[str, FormerBaseline]:
        """Deployed versions, or errors, of deployments that were removed from the project file.

        Raises OutOfReachError.
        """

    def notes(self, project: ProjectFile) -> tuple[str, ...]:
        """Notes for the reader of the review."""


@dataclass(frozen=True)
class RevisionBaselines:
    """Baselines from the project at a Git commit.

    Attributes:
        former: The project file of the commit.
        root: The folder that contains the files of the commit.
    """

    former: FormerProject
    files: RevisionFiles
    root: Path
    description: str

    @property
    def words(self) -> str:
        return self.description

    def of(self, deployment: ProjectDeployment) -> Baseline:
        project = self.former.project
        if project is None:  # the project file is new, but its scripts may be older
            return self._baseline(deployment)
        if deployment.name in project.broken:
            raise self._unusable(project.broken[deployment.name])
        found = next((each for each in project.deployments if each.name == deployment.name), None)
        return Baseline(None, self.files.label) if found is None else self._baseline_of(found)

    def deleted(self, project: ProjectFile) -> Mapping[str, FormerBaseline]:
        then = self.former.project
        if then is None:
            return {}
        found: dict[str, FormerBaseline] = {
            name: self._unusable(lines) for name, lines in then.broken.items() if name not in project.names
        }
        for each in then.deployments:
            if each.name not in project.names:
                try:
                    found[each.name] = self._baseline_of(each)
                except (InputError, ScriptError) as error:
                    found[each.name] = error
        return found

    def notes(self, project: ProjectFile) -> tuple[str, ...]:
        label, place = self.files.label, self.former.path
        unnamed = _unnamed(project, self.files)
        if self.former.project is None:
            return (f"{label} has no {project.path.name}: the paths of the present file are used", *unnamed)
        return (f"{label} has the project file at {place}", *unnamed) if self.former.is_moved else unnamed

    def _baseline_of(self, deployment: ProjectDeployment) -> Baseline:
        """The baseline of a deployment in the former project file. Raises InputError if the script is missing."""
        found = self._baseline(deployment)
        if found.side is None:
            raise InputError(
                f"{self.files.label}:{self._path(deployment.script)}: there is no such file, although deployment "
                f"{deployment.name!r} in the project file of that revision needs it: {_COMPARE_ELSEWHERE}"
            )
        return found

    def _baseline(self, deployment: ProjectDeployment) -> Baseline:
        options, label = deployment.options, self.files.label
        script = self._place(deployment.script)
        options = replace(options, catalog_files=tuple(str(self._place(path)) for path in options.catalog_files))
        side = side_of_script(script, options, self.root, self.root, prefix=f"{label}:")
        return Baseline(side, label, engine=deployment.options.engine)

    def _place(self, path: str) -> Path:
        """Path of an extracted file of the commit. Raises InputError if a link leads out of the commit."""
        place = self._path(path)
        self.files.followed(place)
        return self.root / place

    def _path(self, path: str) -> str:
        return path_in(path, self.former.folder, self.files.repository)

    def _unusable(self, lines: Iterable[str]) -> InputError:
        return InputError("\n  ".join((*lines, f"the project file of {self.files.label}: {_COMPARE_ELSEWHERE}")))


@contextmanager
def revision_baselines(
    project: ProjectFile, repository: Path, revision: str, description: str = ""
) -> Iterator[RevisionBaselines]:
    """Extract the project at a Git revision to a temporary folder."""
    commit = commit_of(repository, revision)
    files = RevisionFiles.of(repository, commit, commit[:10] if revision == commit else revision)
    try:
        former = former_project(project, files)
    except InputError as error:
        raise InputError(f"{error}\n  the project file of {files.label}: {_COMPARE_ELSEWHERE}") from None
    with tempfile.TemporaryDirectory(prefix="flinkcompat-") as work:
        root = Path(work, "tree").resolve()
        root.mkdir()
        files.check_out(_paths(former.project or project, former.folder, files), root)
        yield RevisionBaselines(former, files, root, description or f"Git revision {revision}")


def path_in(path: str, folder: str, repository: Path) -> str:
    """Convert a path in the project file to a path from the root of the repository."""
    return os.path.relpath(path, repository) if Path(path).is_absolute() else Path(folder, path).as_posix()


def _paths(project: ProjectFile, folder: str, files: RevisionFiles) -> set[str] | None:
    """Files of the deployments; None for all files, because a program may read any file."""
    scripts = [each.script for each in project.deployments]
    if any(script.endswith(PROGRAM_SUFFIXES) for script in scripts):
        return None
    found = set()
    for path in (*scripts, *(path for each in project.deployments for path in each.options.catalog_files)):
        with suppress(InputError):  # the error is reported later, for the deployment
            found.add(files.followed(path_in(path, folder, files.repository)))
    return found


@dataclass(frozen=True)
class LedgerBaselines:
    """Baselines from the deployed versions in ledgers.

    Attributes:
        root: Folder of all ledgers; None for the ledgers in the project file.
        former: Names of the deployments at the start of the change, in the target branch.
        unknown: The reason why ``former`` is unknown; "" if it is known.
        unnamed: Notes about scripts that were added by the change and have no deployment.
    """

    root: str | None
    former: frozenset[str] = frozenset()
    unknown: str = ""
    unnamed: tuple[str, ...] = ()
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def words(self) -> str:
        return f"the ledger {self.root}" if self.root else "the ledgers of the project file"

    def of(self, deployment: ProjectDeployment) -> Baseline:
        root = self.root or deployment.ledger
        if root is None:
            raise InputError(
                f"deployment {deployment.name!r} has no ledger: set it with --against ledger:URI, the variable "
                f"FLINKCOMPAT_LEDGER or ledger = … in the project file, or compare with --against git:REF"
            )
        return self._head(root, deployment.name)

    def deleted(self, project: ProjectFile) -> Mapping[str, FormerBaseline]:
        found: dict[str, FormerBaseline] = {}
        for root in self._roots(project):
            for name in self._names(root):
                if name in project.names:
                    continue
                if self.unknown:
                    found[name] = InputError(
                        f"{root} contains {name}, which the project file does not contain. It is unknown if the file "
                        f"contained {name} when the change began: {self.unknown}"
                    )
                elif name in self.former and (baseline := self._head(root, name)).side is not None:
                    found[name] = baseline
        return found

    def notes(self, project: ProjectFile) -> tuple[str, ...]:
        notes = []
        for root in () if self.unknown else self._roots(project):
            known = {*project.names, *self.former, *project.stopped}
            others = [name for name in self._names(root) if name not in known]
            if others:
                notes.append(f"{root} contains deployments that the project file does not contain: {_few(others)}")
        return (*notes, *self.unnamed)

    def _roots(self, project: ProjectFile) -> tuple[str, ...]:
        if self.root:
            return (self.root,)
        return tuple(dict.fromkeys(each.ledger for each in project.deployments if each.ledger))

    def _names(self, root: str) -> tuple[str, ...]:
        """Names of the deployments in ledgers. Raises OutOfReachError if no ledger contains one."""
        if root not in self._known:
            from airflow_flinkcompat.deploy.errors import DeployError
            from airflow_flinkcompat.deploy.ledger.ledger import deployments

            try:
                self._known[root] = deployments(root)
            except DeployError as error:
                raise OutOfReachError(str(error)) from None
        if not self._known[root]:
            raise OutOfReachError(
                f"no deployment in {root}: check that this folder or address contains the ledgers. Before "
                "the first deployment, compare with --against git:REF"
            )
        return self._known[root]

    def _head(self, root: str, name: str) -> Baseline:
        from airflow_flinkcompat.deploy.errors import DeployError
        from airflow_flinkcompat.deploy.ledger.ledger import Ledger

        if name not in self._names(root):
            return Baseline.of_head(None, root)
        try:
            return Baseline.of_head(Ledger(root, name).head(), root)
        except DeployError as error:
            raise OutOfReachError(str(error)) from None


def require_against(against: str | None) -> None:
    """Check the form of ``--against``. Raises InputError."""
    kind, _, value = (against or "ledger").partition(":")
    if kind not in ("ledger", "git") or (kind == "git" and not value):
        raise InputError(f"--against {against!r} must be ledger, ledger:URI or git:REF")


@contextmanager
def baselines_for(project: ProjectFile, against: str | None) -> Iterator[Baselines]:
    """Baselines of a project's deployments, from ``--against`` or by default."""
    require_against(against)
    kind, _, value = (against or "").partition(":")
    ledger = value if kind == "ledger" and value else os.environ.get(LEDGER_VARIABLE) or None
    repository = repository_of(project.folder)
    if kind == "ledger" or (against is None and (ledger or any(each.ledger for each in project.deployments))):
        yield LedgerBaselines(ledger, *_of_the_beginning(project, repository))
        return
    if repository is None:
        raise InputError(
            f"{project.path} is not in a Git repository (or git is not installed), so there is no revision to "
            f"compare with. Set a ledger: --against ledger:URI, {LEDGER_VARIABLE}, or ledger = … in that "
            "file"
        )
    if against is None:
        branch, commit = base_commit(repository, os.environ)
        words = f"commit {commit[:10]}, where this branch left {branch}"
        with revision_baselines(project, repository, commit, words) as found:
            yield found
    else:
        with revision_baselines(project, repository, value) as found:
            yield found


def _of_the_beginning(project: ProjectFile, repository: Path | None) -> tuple[frozenset[str], str, tuple[str, ...]]:
    """Deployments at the start of the change, or an error; and notes about new scripts without deployment.

    Outside of a Git repository, there are no deployments, errors or notes.
    """
    if repository is None:
        return frozenset(), "", ()
    try:
        branch, commit = base_commit(repository, os.environ)
        files = RevisionFiles.of(repository, commit, branch)
        former = former_project(project, files).project
        return frozenset(former.names if former else ()), "", _unnamed(project, files)
    except InputError as error:
        return frozenset(), str(error), ()


def _unnamed(project: ProjectFile, files: RevisionFiles) -> tuple[str, ...]:
    """Note about scripts that were added since a commit and have no deployment."""
    found = unnamed_scripts(project, [name for suffix in SUFFIXES for name in files.new_files(project.folder, suffix)])
    words = "new scripts with a job but without a deployment in the project file, so they are not judged"
    return (f"{words}: {_few(found)}",) if found else ()


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


@dataclass(frozen=True)
class FormerProject:
    """The project file of a commit.

    Attributes:
        project: The content of the file; None if the commit has no project file.
        path: Path of the file from the root of the repository; the present path if the commit has no project file.
        is_moved: True if the project file has a different path now.
    """

    project: ProjectFile | None
    path: str
    is_moved: bool = False

    @property
    def folder(self) -> str:
        """Path of the file's folder from the root of the repository; paths in the file start from this folder."""
        return PurePosixPath(self.path).parent.as_posix()


def former_project(project: ProjectFile, files: RevisionFiles) -> FormerProject:
    """Read the project file at a commit, even if it was moved."""
    place = (project.path.absolute().parent.resolve() / project.path.name).relative_to(files.repository).as_posix()
    found = _project_at(place, files)
    if found is not None:
        return FormerProject(found, place)
    gone = [name for name in files.modes if PurePosixPath(name).name in PROJECT_FILES and _is_gone(name, files)]
    moved = {name: found for name in gone if (found := _project_at(name, files)) is not None}
    if len(moved) > 1:
        raise InputError(
            f"{files.label} has no {place}, but {', '.join(moved)}, and none of these files exists now: the former "
            f"name of the project file is unknown"
        )
    return next((FormerProject(found, name, True) for name, found in moved.items()), FormerProject(None, place))


def _project_at(place: str, files: RevisionFiles) -> ProjectFile | None:
    text = files.text(place)
    if text is None:
        return None
    tables = tables_of(text, Path(place), f"{files.label}:{place}")
    return None if tables is None else project_of(tables, is_former=True)


def _is_gone(name: str, files: RevisionFiles) -> bool:
    """True if the working tree has no project file at the path of a project file of the commit."""
    place = files.repository / name
    return find_project_file(place) != place
