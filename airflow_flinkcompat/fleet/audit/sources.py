"""Sources of jobs for an audit: files, changes in a Git history, a project's deployments, or ledgers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.fleet.audit.values import AuditPair
from airflow_flinkcompat.fleet.sides import name_from, side_of_deployment, side_of_script
from airflow_flinkcompat.model import ENGINES, InputError, JobSpec, OutOfReachError, language_of
from airflow_flinkcompat.project.job_options import JobOptions
from airflow_flinkcompat.project.revisions import Blobs, FileChange, blobs, file_changes
from airflow_flinkcompat.project.settings import ProjectFile
from airflow_flinkcompat.sql import ScriptError
from airflow_flinkcompat.sql.script import decode_script

SCRIPTS = (".sql", ".table")
"""File suffixes of scripts. A Python file need not be a job, so it must be passed explicitly."""
_PROGRAM, _OF_FLINK = ".py", b"pyflink"
"""Suffix and content of a file that is probably a PyFlink program."""
_NEVER_LOOKED_INTO = ("node_modules", "site-packages")
_AT_ONCE = 64

OptionsOf = Callable[[Path], JobOptions]
"""Function that returns a script's options. Raises InputError or ScriptError for unknown options."""
OverDeployment = Callable[[JobOptions], JobOptions]


@dataclass(frozen=True)
class Versions:
    """The requested upgrade.

    Attributes:
        old: The version that runs the jobs; None: the version that is known for each job.
        new: The version after the upgrade; None for no upgrade.
    """

    engine: str | None = None
    old: str | None = None
    new: str | None = None

    @property
    def wanted(self) -> bool:
        """True if a version is requested. Jobs of other engines are then skipped."""
        return self.old is not None or self.new is not None

    def pair(self, name: str, job: JobSpec, options: JobOptions) -> AuditPair:
        """Pair a job with itself on the version after the upgrade."""
        if self.new is not None and self.old is None and job.engine_version is None:
            why = "the present version of its engine is unknown: add --old-engine-version"
            return AuditPair(name, fault=f"{name}: {why}", reason="version-not-known")
        old = job if self.old is None else replace(job, engine_version=self.old)
        return _pair(name, old, old if self.new is None else replace(old, engine_version=self.new), options)


def _pair(name: str, old: JobSpec, new: JobSpec, options: JobOptions) -> AuditPair:
    planner = options.planner or "auto"
    return AuditPair(name, old, new, options.engine is not None, planner=planner, jars=options.jars)


class Jobs:
    """Iterator of the pairs from one source, with notes about skipped jobs.

    ``notes`` are complete only after all pairs are read. ``words`` describes the source.
    """

    def __init__(self, pairs: Iterator[AuditPair], words: str, notes: list[str]) -> None:
        self._pairs, self.words, self.notes = pairs, words, notes

    def __iter__(self) -> Iterator[AuditPair]:
        return self._pairs


def jobs_of_files(paths: Sequence[Path], root: Path, options_of: OptionsOf, versions: Versions) -> Jobs:
    """Pair every script in some files and folders with itself."""
    if missing := [path for path in paths if not path.exists()]:
        raise InputError(f"{missing[0]}: cannot be read: there is no such file or folder")
    left_out: dict[str, int] = {}
    notes: list[str] = []

    def pairs() -> Iterator[AuditPair]:
        named, programs = {path.resolve() for path in paths}, 0
        for path in dict.fromkeys(_files(paths)):
            if path.suffix == _PROGRAM and path.resolve() not in named:
                programs += _holds_flink(path)
                continue
            name = name_from(path, root)
            try:
                options = options_of(path)
                if _of_other_engine(options.engine, versions, left_out):
                    continue
                side = side_of_script(path, options, Path(), root)
            except (ScriptError, InputError) as error:
                yield AuditPair(name, fault=str(error))
                continue
            if side is None:
                yield AuditPair(name, fault=f"{name}: cannot be read: there is no such file")
            else:
                yield versions.pair(name, plain_job(side), options)
        if programs:
            notes.append(
                f"PyFlink programs in folders, which are judged only if they are passed explicitly: {programs:,}"
            )

    return _noting(pairs(), f"the scripts of {', '.join(map(str, paths))}", left_out, notes)


def jobs_of_history(
    repository: Path, revisions: str, paths: Sequence[str], options_of: OptionsOf, versions: Versions
) -> Jobs:
    """Pair the old and the new version of each script that a commit of a Git history changes."""
    left_out: dict[str, int] = {}
    notes: list[str] = []

    def pairs() -> Iterator[AuditPair]:
        one_sided, moved, programs = 0, 0, 0
        with blobs(repository) as contents:
            for change in file_changes(repository, revisions, paths):
                if not change.path.endswith(SCRIPTS):
                    is_program = change.path.endswith(_PROGRAM) and change.old and change.new
                    programs += bool(is_program) and _OF_FLINK in contents.read(change.new)
                    continue
                if not (change.old and change.new):
                    one_sided += 1
                elif change.old == change.new:
                    moved += 1
                elif (pair := _of_commit(change, contents, options_of, repository, versions, left_out)) is not None:
                    yield pair
        if one_sided:
            notes.append(f"added or deleted scripts, which cannot be compared: {one_sided:,}")
        if programs:
            notes.append(f"changes of PyFlink programs, which are not judged in a history: {programs:,}")
        if moved:
            notes.append(f"moved scripts without changes: {moved:,}")

    return _noting(pairs(), f"the changes of {revisions} in {', '.join(paths) or 'all folders'}", left_out, notes)


def _of_commit(
    change: FileChange,
    contents: Blobs,
    options_of: OptionsOf,
    repository: Path,
    versions: Versions,
    left_out: dict[str, int],
) -> AuditPair | None:
    """Pair of a script's change; None if its engine was not requested."""
    commit = change.commit[:10]
    name = f"{change.path}@{commit}"
    try:
        options = options_of(repository / change.path)
        if _of_other_engine(options.engine, versions, left_out):
            return None
        before, after = (
            JobSpec(
                decode_script(contents.read(blob), f"{label}:{change.path}", program=True),
                options.settings,
                options.functions,
                options.catalog,
                options.engine or ENGINES[0],
                version or options.engine_version,
                f"{label}:{change.path}",
                language_of(change.path),
                options.variables if language_of(change.path) != "sql" else {},
            )
            for blob, label, version in (
                (change.old, f"{commit}^", versions.old or versions.new),
                (change.new, commit, versions.new or versions.old),
            )
        )
    except (ScriptError, InputError) as error:
        return AuditPair(name, fault=f"{name}: {error}")
    return _pair(name, before, after, options)


def jobs_of_project(project: ProjectFile, root: Path, laid_over: OverDeployment, versions: Versions) -> Jobs:
    """Pair the script of each deployment of a project with itself."""
    left_out: dict[str, int] = {}

    def pairs() -> Iterator[AuditPair]:
        for each in project.deployments:
            if _of_other_engine(each.options.engine, versions, left_out):
                continue
            options = laid_over(each.options)
            try:
                side = side_of_deployment(replace(each, options=options), project.folder, root)
            except (ScriptError, InputError) as error:
                yield AuditPair(each.name, fault=str(error))
                continue
            if side is None:
                script = name_from(project.folder / each.script, root)
                yield AuditPair(each.name, fault=f"{script}: cannot be read: there is no such file")
            else:
                yield versions.pair(each.name, plain_job(side), options)
        for name, lines in project.broken.items():
            yield AuditPair(name, fault="; ".join(lines))

    return _noting(pairs(), f"the deployments of {os.path.relpath(project.path)}", left_out)


def jobs_of_ledgers(roots: Sequence[str], versions: Versions, options: JobOptions) -> Jobs:
    """Pair each deployed job of some ledgers with itself."""
    from airflow_flinkcompat.deploy.errors import DeployError
    from airflow_flinkcompat.deploy.ledger.ledger import deployments

    known: dict[str, tuple[str, ...]] = {}
    for root in dict.fromkeys(roots):
        try:
            known[root] = deployments(root)
        except DeployError as error:
            raise OutOfReachError(str(error)) from None
        if not known[root]:
            raise OutOfReachError(f"no deployment in {root}: check that this folder or address contains the ledgers")
    left_out: dict[str, int] = {}

    def pairs() -> Iterator[AuditPair]:
        for name, found in chain.from_iterable(_deployed(*each) for each in known.items()):
            if isinstance(found, str):
                yield AuditPair(name, fault=f"the ledger of {name} cannot be read: {found}")
            elif versions.engine not in (None, found.engine):
                left_out[found.engine] = left_out.get(found.engine, 0) + 1
            else:
                yield versions.pair(name, found, replace(options, engine=found.engine))

    return _noting(pairs(), f"the deployed versions in {', '.join(known)}", left_out)


def _deployed(root: str, names: Sequence[str]) -> Iterator[tuple[str, JobSpec | str]]:
    """The deployed job of each deployment, or an error message; several ledgers are read in parallel."""
    from airflow_flinkcompat.deploy.errors import DeployError
    from airflow_flinkcompat.deploy.ledger.ledger import Ledger
    from airflow_flinkcompat.deploy.ledger.store import Store

    def job(name: str) -> JobSpec | str | None:
        try:
            head = Ledger(root, name).head()
        except DeployError as error:
            return str(error)
        return None if head is None else head.job

    for begin in range(0, len(names), _AT_ONCE):
        some = names[begin : begin + _AT_ONCE]
        for name, found in zip(some, Store(root, "").at_once(job, some), strict=True):
            if found is not None:
                yield name, found


def plain_job(side: Side) -> Side:
    """Copy of a job without cached values, to send to a different process."""
    own = {name: getattr(side, name) for name in JobSpec.__dataclass_fields__}
    return Side(**own, catalog_sources=side.catalog_sources)


def _of_other_engine(engine: str | None, versions: Versions, left_out: dict[str, int]) -> bool:
    """True if the requested version is for an engine other than the job's; also counts the skipped jobs."""
    if engine is None or not versions.wanted or engine == versions.engine:
        return False
    left_out[engine] = left_out.get(engine, 0) + 1
    return True


def _noting(pairs: Iterator[AuditPair], words: str, left_out: dict[str, int], notes: list[str] | None = None) -> Jobs:
    notes = [] if notes is None else notes

    def read() -> Iterator[AuditPair]:
        yield from pairs
        notes.extend(
            f"skipped, because a different engine was requested: {count:,} of engine {engine}"
            for engine, count in sorted(left_out.items())
        )

    return Jobs(read(), words, notes)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        for place, folders, names in os.walk(path):
            folders[:] = sorted(each for each in folders if each[0] != "." and each not in _NEVER_LOOKED_INTO)
            yield from (Path(place, name) for name in sorted(names) if name.endswith((*SCRIPTS, _PROGRAM)))


def _holds_flink(path: Path) -> bool:
    """True if a Python file mentions PyFlink; False if the file is unreadable."""
    try:
        return _OF_FLINK in path.read_bytes()
    except OSError:
        return False
