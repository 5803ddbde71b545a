"""A Flink job as a value, with its language, engine and declarations."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.model.engine import ENGINE_FACTS, ENGINES, line_of
from airflow_flinkcompat.model.options import FUNCTION_KINDS, FUNCTION_LANGUAGES, LANGUAGES
from airflow_flinkcompat.model.text import NormalForm, Span

_VERSION = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,6}){0,3}(?:[-+][0-9A-Za-z.+-]{1,40})?")
"""Pattern of an engine's version: 2.3, 1.20.3, 8.0.11, 2.4-SNAPSHOT."""


class InputError(ValueError):
    """A job that cannot be checked; the message states the place, the fault and the remedy."""


class ScriptError(ValueError):
    """A script that cannot be used at all: missing, not UTF-8, or without a statement."""


class OutOfReachError(Exception):
    """A ledger or server does not answer. The message is readable and masks secrets."""


@dataclass(frozen=True)
class FunctionDeclaration:
    """A user-defined function.

    ``kind`` is ``scalar``, ``aggregate``, ``table``, or "" if unknown. ``language`` is ``java``, ``scala`` or
    ``python``.
    """

    name: str
    kind: str = ""
    language: str = "java"
    definition: str | NormalForm = ""
    span: Span | None = field(default=None, compare=False)

    @classmethod
    def of(cls, name: str, text: str) -> FunctionDeclaration:
        """Parse a declaration from configuration, written as ``kind`` or ``kind:language``.

        Args:
            name: The function's name.
            text: The kind, optionally followed by a colon and the language, in any case. The default language is
                ``java``.

        Returns:
            The declaration.

        Raises:
            InputError: The kind or the language is unknown.
        """
        kind, colon, language = text.lower().partition(":")
        if kind not in FUNCTION_KINDS:
            raise InputError(
                f"function {name!r} has the unknown kind {kind!r}: choose one of {', '.join(FUNCTION_KINDS)}"
            )
        if colon and language not in FUNCTION_LANGUAGES:
            raise InputError(
                f"function {name!r} has the unknown language {language!r}: choose one of "
                f"{', '.join(FUNCTION_LANGUAGES)}"
            )
        return cls(name, kind, language or "java")

    def to_dict(self) -> dict[str, str]:
        """The declaration as JSON values, without its place in the script.

        Returns:
            The name, kind, language and definition, each a string.
        """
        return {
            "name": self.name, "kind": self.kind, "language": self.language, "definition": str(self.definition),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> FunctionDeclaration:
        """Read the values of :meth:`to_dict`; unknown keys of later versions are ignored.

        Args:
            row: The declaration as JSON values; only ``name`` is required.

        Returns:
            The declaration.

        Raises:
            KeyError: The row has no name.
        """
        return cls(row["name"], **{key: row[key] for key in ("kind", "language", "definition") if key in row})


@dataclass(frozen=True)
class JobSpec:
    """One job, as it is checked, deployed, recorded and backfilled.

    Attributes:
        script: The text of the script, either Flink SQL or a program of the Table API.
        settings: Settings that apply before the SET statements of the script.
        functions: Declarations of functions that the script uses but does not declare.
        catalog: DDL of tables that the script uses but does not declare.
        engine: The engine that runs the job; ``vvr`` by default.
        engine_version: The version of the engine; None for its default version.
        source: The name of the script, for messages.
        language: The language of the script: ``sql``, ``python`` or ``table``.
        variables: Environment variables of a program, by name.
        files: The files that a Python program imports or reads, by their path relative to the folder of the
            program.

    Raises:
        InputError: A field contains an invalid value; the message states the remedy.
    """

    script: str
    settings: Mapping[str, str] = field(default_factory=dict)
    functions: tuple[FunctionDeclaration, ...] = ()
    catalog: str = ""
    engine: str = "vvr"
    engine_version: str | None = None
    source: str = "<script>"
    language: str = "sql"
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise InputError(f"engine {self.engine!r} is unknown: choose one of {', '.join(ENGINES)}")
        if self.engine_version is not None and not _VERSION.fullmatch(self.engine_version):
            examples = ENGINE_FACTS[self.engine].version_examples
            raise InputError(
                f"engine version {self.engine_version!r} of {self.source} is not a version of {self.engine}: "
                f"write numbers separated by points, such as {examples}"
            )
        if self.language not in LANGUAGES:
            raise InputError(f"language {self.language!r} is unknown: choose one of {', '.join(LANGUAGES)}")
        if self.variables and self.language == "sql":
            raise InputError("variables are only for programs, but this job is an SQL script: remove the variables")
        if self.files and self.language != "python":
            raise InputError("files are only for Python programs, but this job is not one: remove the files")

    @cached_property
    def version(self) -> str:
        """The first one or two numbers of the engine version."""
        return line_of(self.engine_version or ENGINE_FACTS[self.engine].default_version)

    def digest(self) -> str:
        """The SHA-256 of everything that a check compares, in hex; the script's name is not included.

        The digest proves that the deployed version is the checked version. Ledgers and summaries contain digests, so
        the formula must never change.

        Returns:
            64 hex digits.
        """
        functions = sorted((f.name, f.kind, f.language, f.definition) for f in self.functions)
        parts = [self.script, sorted(self.settings.items()), functions, self.catalog, self.engine, self.engine_version]
        if self.language != "sql":
            parts += [self.language, sorted(self.variables.items())]
        if self.files:
            parts.append(sorted(self.files.items()))
        return _sha256(parts)

    def part_digests(self) -> dict[str, str]:
        """A SHA-256 for each part that determines the rows: script, settings, functions and catalog.

        The engine is not included, and leading or trailing blank lines are ignored. Hand-over records contain these
        digests.

        Returns:
            A digest of 64 hex digits for each of the keys ``script``, ``settings``, ``functions`` and ``catalog``.
        """
        # The rows of a program also depend on its variables and on the files next to it.
        given = [*sorted(self.variables.items()), *sorted(self.files.items())]
        script = "\n".join([self.script, *(f"{name}={value}" for name, value in given)])
        functions = sorted([f.name, f.kind, f.language or "java"] for f in self.functions)
        parts = {
            "script": script.strip(),
            "settings": sorted(self.settings.items()),
            "functions": functions,
            "catalog": self.catalog.strip(),
        }
        return {name: _sha256(part) for name, part in parts.items()}

    def to_dict(self) -> dict[str, Any]:
        """The job as JSON values, for :meth:`from_dict`.

        Returns:
            A mapping with one key per field.
        """
        row = {each.name: getattr(self, each.name) for each in fields(JobSpec)}
        maps = {name: dict(row[name]) for name in ("settings", "variables", "files")}
        return {**row, **maps, "functions": [function.to_dict() for function in self.functions]}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        """Read a job from the values of :meth:`to_dict`.

        Args:
            row: The fields of the job; missing fields have defaults, and unknown keys are ignored.

        Returns:
            The job.

        Raises:
            InputError: A field contains an invalid value.
            KeyError: The script or the name of a function is missing.
        """
        known = {each.name: row[each.name] for each in fields(JobSpec) if each.name in row}
        functions = tuple(FunctionDeclaration.from_dict(each) for each in row.get("functions", ()))
        return cls(**{**known, "script": row["script"], "functions": functions})


_ENCODER = json.JSONEncoder(ensure_ascii=False)


def _sha256(value: object) -> str:
    return hashlib.sha256(_ENCODER.encode(value).encode()).hexdigest()
