"""Project-file values for the command line, and clear errors for invalid ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.model import (
    PROGRAM_SUFFIXES,
    FunctionDeclaration,
    InputError,
    JobSpec,
    PlannerNetwork,
    Policy,
    is_path,
)
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.model.shadow import ShadowPolicy, shadow_policy
from airflow_flinkcompat.model.text import misspelling
from airflow_flinkcompat.project.file import DEPLOYMENT_KEYS, ProjectTables, flat_options, read_tables, unknown_key
from airflow_flinkcompat.project.job_options import CHECK_KEYS, FILLED_ELSEWHERE, KEYS, NETWORK, JobOptions
from airflow_flinkcompat.project.positions import TomlPositions
from airflow_flinkcompat.project.upgrade import FleetUpgrade, upgrade_of

TEMPLATE = ("{{", "{%")
_NOT_OF_PATHS = frozenset("\n\0")
"""Characters that a path, or one line of a message, cannot contain."""
_OF_TARGET = "auto"
"""Value of ``engine`` for the engine of an Airflow check's target; the command line ignores it."""

T = TypeVar("T")


@dataclass(frozen=True)
class ProjectDeployment:
    """One deployment of the project file, reduced to the options that affect the verdict on its script.

    Attributes:
        name: The name of the deployment, in this file and in the ledger.
        script: The path of the script, relative to the project's folder.
        ledger: The location of the ledger; None if the file does not set it.
        policy: The branch that the gate takes for each outcome.
        backfills: True if a backfill recomputes past rows after a start without state.
        migrates: True if an incompatible change may start from a rewritten savepoint.
        rehearses: True if the restore is rehearsed before the job resumes.
        shadow: Choices about shadow runs; None if no shadow run precedes a resume or a decision.
        backfill: The unchecked table ``backfill``.
        table: The unchecked table of the deployment, with defaults.
    """

    name: str
    script: str
    options: JobOptions = field(default_factory=JobOptions)
    ledger: str | None = None
    policy: Policy = field(default_factory=Policy)
    backfills: bool = False
    migrates: bool = False
    rehearses: bool = False
    shadow: ShadowPolicy | None = None
    backfill: Mapping[str, Any] = field(default_factory=dict)
    table: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class ProjectFile:
    """A parsed project file.

    Attributes:
        path: The path of the file. Relative paths in the file start from its folder.
        common: Options for a script that no deployment uses.
        deployments: The usable deployments, in the order of the file.
        fail_on: The mildest outcome that fails, or ``never``; None if the file does not set it.
        ledger: Location of the ledgers, unless a deployment sets a different one.
        broken: Faults of each unusable deployment, one line each, by deployment name.
        stopped: A text about the stopped job of each deleted deployment, by name, with author, time and savepoint.
        network: Permission for connectors to connect while Flink plans; None if the file does not set it.
        upgrade: The planned move of all jobs to another Flink version; None if the file does not plan one.
    """

    path: Path
    positions: TomlPositions
    common: JobOptions = field(default_factory=JobOptions)
    deployments: tuple[ProjectDeployment, ...] = ()
    fail_on: str | None = None
    ledger: str | None = None
    broken: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stopped: Mapping[str, str] = field(default_factory=dict)
    network: PlannerNetwork | None = None
    upgrade: FleetUpgrade | None = None

    @property
    def folder(self) -> Path:
        """Folder from which relative paths in the file start."""
        return self.path.absolute().parent

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all deployments: the usable ones in the order of the file, then the unusable ones."""
        return (*(each.name for each in self.deployments), *self.broken)

    def deployments_of(self, script: Path) -> tuple[ProjectDeployment, ...]:
        """The deployments of a script."""
        return self._by_script.get(script.resolve(), ())

    @cached_property
    def _by_script(self) -> Mapping[Path, tuple[ProjectDeployment, ...]]:
        """The deployments of each script, indexed for audits of many scripts."""
        found: dict[Path, tuple[ProjectDeployment, ...]] = {}
        for each in self.deployments:
            path = (self.folder / each.script).resolve()
            found[path] = (*found.get(path, ()), each)
        return found


def load_project(path: str | os.PathLike[str]) -> ProjectFile:
    """Read a project file.

    ``broken`` lists unusable deployments. Raises InputError if the file cannot be read, or if a value for all
    deployments is invalid; each line of the message names file and key.
    """
    return project_of(read_tables(path))


def project_of(tables: ProjectTables, *, is_former: bool = False) -> ProjectFile:
    """Read a project from the tables of its file; see :func:`load_project`."""
    place = tables.positions.place
    reader = _TableReader(tables.common, tables.positions, is_former=is_former)
    common = reader.options()
    ledger = reader.text("ledger") or None
    reader.policy()
    problems = [*tables.problems, *reader.problems]
    for key, value in (("fail_on", tables.fail_on), (NETWORK, tables.network)):
        if value not in (None, *KEYS[key].choices):
            problems.append(f"{place(key)}: {key}: {value!r} is not one of {', '.join(KEYS[key].choices)}")
    problems += [f"{place(key)}: {key}: {words}" for key, words in _wrong_of_stopped(tables)]
    filled = tables.filled_elsewhere
    if not isinstance(filled, bool):
        problems.append(f"{place(FILLED_ELSEWHERE)}: {FILLED_ELSEWHERE}: true or false is needed")
    upgrade = None
    if tables.upgrade is not None:
        try:
            upgrade = upgrade_of(tables)
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError("\n  ".join(problems))
    common = replace(common, filled_elsewhere=filled)
    found, broken = [], dict(tables.broken)
    for name, table in tables.deployments.items():
        reader = _TableReader(table, tables.positions, name, is_former=is_former)
        deployment = reader.deployment(name)
        if reader.problems:
            broken[name] = tuple(reader.problems)
        else:
            found.append(replace(deployment, options=replace(deployment.options, filled_elsewhere=filled)))
    return ProjectFile(
        tables.path,
        tables.positions,
        common,
        tuple(found),
        tables.fail_on,
        ledger,
        broken,
        dict(tables.stopped),
        tables.network,
        upgrade,
    )


def _wrong_of_stopped(tables: ProjectTables) -> Iterator[tuple[str, str]]:
    for name, words in tables.stopped.items():
        if not isinstance(words, str) or not words.strip():
            yield f"stopped.{name}", "a text is needed: write who stopped the job, when, and with which savepoint"
        elif name in {*tables.deployments, *tables.broken}:
            yield (
                f"stopped.{name}",
                "is a deployment of this file, so its job must run; remove the deployment or this entry",
            )


class _TableReader:
    """Reader of one table that collects faults. Messages quote no settings or variables."""

    def __init__(
        self, table: Mapping[str, Any], positions: TomlPositions, deployment: str | None = None, *, is_former: bool
    ) -> None:
        self.table = table
        self._is_former = is_former
        self.problems: list[str] = []
        self._positions = positions
        self._deployment = deployment
        for key in table:
            if key not in DEPLOYMENT_KEYS:
                self._report(key, unknown_key(key, DEPLOYMENT_KEYS))
        self._check: Mapping[str, Any] = self._get(table, "check", "check", Mapping, "a table", {})

    def deployment(self, name: str) -> ProjectDeployment:
        script = self.text("script")
        if script is None:
            if "script" not in self.table:
                self._report("script", "is missing")
        elif not script.endswith((".sql", *PROGRAM_SUFFIXES)) or not _NOT_OF_PATHS.isdisjoint(script):
            self._report("script", f"is not the path of a file that ends in .sql, {' or '.join(PROGRAM_SUFFIXES)}")
        backfill = self.table.get("backfill")
        backfills = backfill not in (None, False)
        return ProjectDeployment(
            name,
            script or "",
            self.options(),
            self.text("ledger") or None,
            self.policy(backfills),
            backfills,
            self.table.get("migrate") not in (None, False),
            self.table.get("rehearse") not in (None, False),
            self._shadow(),
            backfill if isinstance(backfill, Mapping) else {},
            self.table,
        )

    def _shadow(self) -> ShadowPolicy | None:
        """Read the choices about shadow runs; a fault is placed at its key."""
        try:
            return shadow_policy(self.table)
        except ValueError as error:
            key, _, words = str(error).partition(": ")
            self._report(key, words)
            return None

    def options(self) -> JobOptions:
        for key in self._check:
            # Other keys are arguments that only the Airflow task knows. A misspelt key of the gate would change the
            # verdict.
            if words := misspelling(key, CHECK_KEYS):
                self._report(f"check.{key}", words)
        engine = self._choice("engine", _OF_TARGET)
        version = self._checked(self._check, "engine_version", "check.engine_version")
        named = None if engine == _OF_TARGET else engine
        if version is not None and named is None:
            self._report("check.engine_version", "the version has no engine: set engine next to the version")
        elif version is not None and named is not None:
            self._tried("check.engine_version", lambda: JobSpec("", engine=named, engine_version=version, source="it"))
            if not ENGINE_FACTS[named].has_version(version):
                label = ENGINE_FACTS[named].label
                self._report("check.engine_version", f"{label} has no version {version!r}")
        functions = (
            self._tried("functions", partial(FunctionDeclaration.of, name, text), f"functions.{name}")
            for name, text in self._texts("functions").items()
        )
        catalog = self.catalog()
        return JobOptions(
            self._texts("settings"),
            tuple(each for each in functions if each is not None),
            catalog if isinstance(catalog, str) else "",
            self._texts("variables"),
            named,
            version,
            catalog_files=() if isinstance(catalog, str) else catalog,
            planner=self._choice("planner"),
            jars=() if self._is_former else tuple(self._jars()),
        )

    def _choice(self, key: str, *more: str) -> Any:
        """Read an argument of the gate that has a closed list of values; None if absent or invalid."""
        value, known = self._checked(self._check, key, f"check.{key}"), (*KEYS[key].choices, *more)
        if value is not None and value not in known:
            self._report(f"check.{key}", f"{value!r} is not one of {', '.join(known)}")
            return None
        return value

    def _jars(self) -> Iterator[Path]:
        """The files that match the patterns, sorted by name for each pattern."""
        patterns = self._get(self._check, "jars", "check.jars", list, 'a list of files, such as ["lib/*.jar"],', [])
        every = {str(number): each for number, each in enumerate(patterns, start=1)}
        for key in every:
            place = f"check.jars.{key}"
            if (pattern := self._checked(every, key, place)) is None:
                continue
            root = Path(pattern).anchor
            found = sorted(each for each in Path(root).glob(pattern.removeprefix(root)) if each.is_file())
            if not found:
                self._report(place, f"no file matches {pattern}: put the jar there, or correct the pattern")
            yield from found

    def catalog(self) -> str | tuple[str, ...]:
        """The DDL of a catalog, or the paths of its files."""
        value = self.table.get("catalog")
        if not isinstance(value, list | tuple):
            text = self.text("catalog") or ""
            return (text,) if is_path(text, (".sql",)) else text
        every = {str(number): each for number, each in enumerate(value, start=1)}
        files = tuple(path for key in every if (path := self._checked(every, key, f"catalog.{key}")) is not None)
        for number, path in enumerate(files, start=1):
            if not is_path(path, (".sql",)):
                self._report(
                    f"catalog.{number}", "is not the path of a file that ends in .sql, as each item of a list must be"
                )
        return files

    def policy(self, backfills: bool = False) -> Policy:
        value = self._get(self._check, "policy", "check.policy", Mapping, "a table of outcomes", None)
        for outcome, branch in (value or {}).items():
            one = {outcome: branch}
            if self._tried("check.policy", partial(Policy.of, one), f"check.policy.{outcome}") is None:
                return Policy()
        found = self._tried("check.policy", lambda: Policy.of(value, backfill=backfills))
        return Policy() if found is None else found

    def text(self, key: str) -> str | None:
        return self._checked(self.table, key, key)

    def _texts(self, key: str) -> dict[str, str]:
        """Read a table of texts; nested keys are flattened to dotted keys."""
        table = flat_options(self._get(self.table, key, key, Mapping, "a table", {}))
        return {name: text for name in table if (text := self._checked(table, name, f"{key}.{name}")) is not None}

    def _checked(self, table: Mapping[str, Any], key: str, place: str) -> str | None:
        """Read a text; None if the text is absent or a template."""
        value: str | None = self._get(table, key, place, str, "a text", None)
        if value is not None and any(mark in value for mark in TEMPLATE):
            self._report(place, "is a template, which only Airflow renders: write the rendered value")
            return None
        return value

    def _get(self, table: Mapping[str, Any], key: str, place: str, kind: type, words: str, default: Any) -> Any:
        value = table.get(key)
        if value is None:
            return default
        if isinstance(value, kind):
            return value
        self._report(place, f"{words} is needed")
        return default

    def _report(self, key: str, words: str, at: str = "") -> None:
        """Report a problem of ``key`` at the place of the key ``at``, or of ``key`` itself if ``at`` is empty."""
        whose = "" if self._deployment is None else f"deployment {self._deployment!r}: "
        self.problems.append(f"{self._positions.place(at or key, self._deployment)}: {whose}{key}: {words}")

    def _tried(self, key: str, make: Callable[[], T], at: str = "") -> T | None:
        try:
            return make()
        except ValueError as error:
            self._report(key, str(error).removeprefix("policy: "), at)
            return None
