"""What deployments are compared with: what the ledger says is deployed, or the files of a Git revision."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.fleet.sides import side_of_deployment
from airflow_flinkcompat.model import PROGRAM_SUFFIXES, InputError
from airflow_flinkcompat.project import ProjectDeployment, ProjectFile
from airflow_flinkcompat.project.file import content_of, tables_of
from airflow_flinkcompat.project.revisions import base_commit, check_out, commit_of, repository_of, text_at
from airflow_flinkcompat.project.settings import project_of

_MOST_NAMED = 5
_LEDGER_VARIABLE = "FLINKCOMPAT_LEDGER"


class OutOfReachError(Exception):
    """The ledger cannot be asked; the text is one masked, readable message."""


@dataclass(frozen=True)
class Baseline:
    """What one deployment is compared with.

    Attributes:
        side: Its script as it is deployed; None where nothing is.
        words: Where that is said.
        entry: Its entry in the ledger, 0 where it is of a revision.
        job_id: The job that runs it, as far as that is known.
        engine: The engine that is said to run it; None where none is named.
    """

    side: Side | None
    words: str
    entry: int = 0
    job_id: str = ""
    engine: str | None = None


class Baselines(Protocol):
    """What the deployments of a project are compared with."""

    @property
    def words(self) -> str:
        """What that is."""

    def of(self, deployment: ProjectDeployment) -> Baseline:
        """What a deployment of the project is compared with. Raises InputError, ScriptError, OutOfReachError."""

    def deleted(self, project: ProjectFile) -> Mapping[str, Baseline]:
        """What is deployed of deployments that the project does not name any more. Raises as :meth:`of` does."""

    def notes(self, project: ProjectFile) -> tuple[str, ...]:
        """What else a reader has to know."""


@dataclass(frozen=True)
class RevisionBaselines:
    """The project as it was at a commit.

    Attributes:
        project: The project file of that commit; None where it had none.
        folder: The folder of the project file, with the files of that commit.
        root: The root of the repository in these.
        label: What the commit is called.
        description: What it is, in words.
    """

    project: ProjectFile | None
    folder: Path
    root: Path
    label: str
    description: str

    @property
    def words(self) -> str:
        return self.description

    def of(self, deployment: ProjectDeployment) -> Baseline:
        if self.project is None:  # the file is new: its scripts may be older than it is
            return self._baseline(deployment)
        if deployment.name in self.project.broken:
            raise InputError("\n  ".join(self.project.broken[deployment.name]))
        found = next((each for each in self.project.deployments if each.name == deployment.name), None)
        return Baseline(None, self.label) if found is None else self._baseline(found)

    def deleted(self, project: ProjectFile) -> Mapping[str, Baseline]:
        if self.project is None:
            return {}
        gone = (each for each in self.project.deployments if each.name not in project.names)
        found = {each.name: self._baseline(each) for each in gone}
        return {name: each for name, each in found.items() if each.side is not None}

    def notes(self, project: ProjectFile) -> tuple[str, ...]:
        if self.project is None:
            return (f"{self.label} has no {project.path.name}: its scripts are those that the file names today",)
        return ()

    def _baseline(self, deployment: ProjectDeployment) -> Baseline:
        side = side_of_deployment(deployment, self.folder, self.root, prefix=f"{self.label}:")
        return Baseline(side, self.label, engine=deployment.options.engine)


@contextmanager
def revision_baselines(
    project: ProjectFile, repository: Path, revision: str, description: str = ""
) -> Iterator[RevisionBaselines]:
    """The project at a Git revision; its files lie in a folder of their own meanwhile.

    Args:
        project: The project of the working tree.
        repository: The root of the repository.
        revision: As Git takes it.
        description: What it is, in words; "": by its name.

    Yields:
        The baselines.

    Raises:
        InputError: There is no such revision, or its project file cannot be used.
    """
    commit = commit_of(repository, revision)
    label = commit[:10] if revision == commit else revision
    name = _name_in(project, repository)
    then = project_at(project, repository, commit, label)
    with tempfile.TemporaryDirectory(prefix="flinkcompat-") as work:
        root = Path(work, "tree")
        root.mkdir()
        folder = root / Path(name).parent
        check_out(repository, commit, _files(then or project, Path(name).parent), root)
        yield RevisionBaselines(then, folder, root, label, description or f"Git revision {revision}")


def project_at(project: ProjectFile, repository: Path, commit: str, label: str) -> ProjectFile | None:
    """The project file as it was at a commit.

    Args:
        project: The project of the working tree.
        repository: The root of the repository.
        commit: The commit.
        label: What the commit is called in messages.

    Returns:
        The project, of which no script is read; None where the commit had no such file.

    Raises:
        InputError: The file of that commit cannot be used.
    """
    name = _name_in(project, repository)
    text = text_at(repository, commit, name)
    place = Path(f"{label}:{name}")
    return None if text is None else project_of(tables_of(content_of(text, str(place)), place))


def _name_in(project: ProjectFile, repository: Path) -> str:
    return project.path.resolve().relative_to(repository).as_posix()


def _files(project: ProjectFile, folder: Path) -> set[str] | None:
    """The files of the deployments from the root; None: all, for what a Python program reads it says itself."""
    scripts = [each.script for each in project.deployments]
    if any(script.endswith(PROGRAM_SUFFIXES) for script in scripts):
        return None
    catalogs = [each.options.catalog_path for each in project.deployments]
    return {os.path.normpath(folder / path) for path in (*scripts, *catalogs) if path is not None}


@dataclass(frozen=True)
class LedgerBaselines:
    """What the ledgers say is deployed.

    Attributes:
        root: Where all ledgers lie; None: where the project says of each.
        former: The names of the deployments that the project had where the change was begun.
    """

    root: str | None
    former: frozenset[str] = frozenset()
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def words(self) -> str:
        return f"the ledger {self.root}" if self.root else "the ledgers of the project file"

    def of(self, deployment: ProjectDeployment) -> Baseline:
        root = self.root or deployment.ledger
        if root is None:
            raise InputError(
                f"deployment {deployment.name!r} has no ledger: name it with --against ledger:URI, the variable "
                "FLINKCOMPAT_LEDGER or ledger = … in the project file, or compare with --against git:REF"
            )
        return self._head(root, deployment.name)

    def deleted(self, project: ProjectFile) -> Mapping[str, Baseline]:
        found: dict[str, Baseline] = {}
        for root in self._roots(project):
            for name in self._names(root):
                if name in self.former and name not in project.names:
                    baseline = self._head(root, name)
                    if baseline.side is not None:
                        found[name] = baseline
        return found

    def notes(self, project: ProjectFile) -> tuple[str, ...]:
        notes = []
        for root in self._roots(project):
            others = [name for name in self._names(root) if name not in {*project.names, *self.former}]
            if others:
                more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
                names = ", ".join(others[:_MOST_NAMED]) + more
                notes.append(f"{root} holds deployments that this file does not name: {names}")
        return tuple(notes)

    def _roots(self, project: ProjectFile) -> tuple[str, ...]:
        if self.root:
            return (self.root,)
        return tuple(dict.fromkeys(each.ledger for each in project.deployments if each.ledger))

    def _names(self, root: str) -> tuple[str, ...]:
        """The deployments of a ledger. Raises OutOfReachError where there is none: a wrong address passes nothing."""
        if root not in self._known:
            from airflow_flinkcompat.deploy.errors import DeployError
            from airflow_flinkcompat.deploy.ledger.history import deployments

            try:
                self._known[root] = deployments(root)
            except DeployError as error:
                raise OutOfReachError(str(error)) from None
        if not self._known[root]:
            raise OutOfReachError(
                f"no deployment in {root}: is it the folder, or the address, that holds the ledgers? As long as "
                "nothing is deployed, compare with --against git:REF"
            )
        return self._known[root]

    def _head(self, root: str, name: str) -> Baseline:
        from airflow_flinkcompat.deploy.errors import DeployError
        from airflow_flinkcompat.deploy.ledger.history import Ledger

        if name not in self._names(root):
            return Baseline(None, f"the ledger {root}")
        try:
            head = Ledger(root, name).head()
        except DeployError as error:
            raise OutOfReachError(str(error)) from None
        if head is None:
            return Baseline(None, f"the ledger {root}")
        side = Side.of(head.job)
        return Baseline(side, f"entry {head.number} of the ledger", head.number, head.job_id or "", side.engine)


@contextmanager
def baselines_for(project: ProjectFile, against: str | None) -> Iterator[Baselines]:
    """What the deployments of a project are compared with, as it was named, or by default.

    Args:
        project: The project of the working tree.
        against: ``ledger``, ``ledger:URI`` or ``git:REF``; None: the ledger where one is named, else the commit where
            this branch left the one it goes into.

    Yields:
        The baselines, to be asked before the end.

    Raises:
        InputError: It is none of these, or there is no such revision.
    """
    kind, _, value = (against or "").partition(":")
    if against is not None and (kind not in ("ledger", "git") or (kind == "git" and not value)):
        raise InputError(f"--against {against!r} is neither ledger, nor ledger:URI, nor git:REF")
    ledger = value if kind == "ledger" and value else os.environ.get(_LEDGER_VARIABLE) or None
    repository = repository_of(project.folder)
    if kind == "ledger" or (against is None and (ledger or any(each.ledger for each in project.deployments))):
        yield LedgerBaselines(ledger, _former_names(project, repository))
        return
    if repository is None:
        raise InputError(
            f"{project.path} lies in no Git repository (or git is not installed), so there is no revision to compare "
            "with. Name a ledger: "
            f"--against ledger:URI, {_LEDGER_VARIABLE}, or ledger = … in that file"
        )
    if against is None:
        branch, commit = base_commit(repository, os.environ)
        words = f"commit {commit[:10]}, where this branch left {branch}"
        with revision_baselines(project, repository, commit, words) as found:
            yield found
    else:
        with revision_baselines(project, repository, value) as found:
            yield found


def _former_names(project: ProjectFile, repository: Path | None) -> frozenset[str]:
    """The deployments that the file had where the change was begun; none where that commit is not known here."""
    if repository is None:
        return frozenset()
    try:
        branch, commit = base_commit(repository, os.environ)
        former = project_at(project, repository, commit, branch)
    except InputError:
        return frozenset()
    return frozenset(former.names if former else ())
