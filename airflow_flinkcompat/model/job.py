"""A job as a value: its language, the engine it runs on, and its declarations."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.model.engine import ENGINE_FACTS, ENGINES
from airflow_flinkcompat.model.options import FUNCTION_KINDS, FUNCTION_LANGUAGES, LANGUAGES
from airflow_flinkcompat.model.text import NormalForm, Span

_VERSION = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,6}){0,3}(?:[-+][0-9A-Za-z.+-]{1,40})?")
"""Pattern of an engine's version: 2.3, 1.20.3, 8.0.11, 2.4-SNAPSHOT."""


class InputError(ValueError):
    """A job that cannot be checked: the message names the place and the remedy."""


class ScriptError(ValueError):
    """The script as a whole cannot be used: missing, not UTF-8, or without a statement."""


class OutOfReachError(Exception):
    """A ledger or server without an answer; the text is one masked, readable message."""


@dataclass(frozen=True)
class FunctionDeclaration:
    """A user-defined function.

    ``kind`` is scalar, aggregate, table or "" (unknown), ``language`` java, scala or python.
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
            text: Its kind, and after a colon its language, in any case; ``java`` if there is none.

        Returns:
            The declaration.

        Raises:
            InputError: The kind or the language is unknown.
        """
        kind, colon, language = text.lower().partition(":")
        if kind not in FUNCTION_KINDS:
            raise InputError(f"function {name!r}: kind {kind!r} is not one of {', '.join(FUNCTION_KINDS)}")
        if colon and language not in FUNCTION_LANGUAGES:
            raise InputError(f"function {name!r}: language {language!r} is not one of {', '.join(FUNCTION_LANGUAGES)}")
        return cls(name, kind, language or "java")

    def to_dict(self) -> dict[str, str]:
        """JSON values, without the place of the declaration.

        Returns:
            The name, kind, language and definition, each a string.
        """
        return {
            "name": self.name, "kind": self.kind, "language": self.language, "definition": str(self.definition),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> FunctionDeclaration:
        """Read the values of :meth:`to_dict`; keys of a later version are ignored.

        Args:
            row: The declaration as JSON values; only the name is needed.

        Returns:
            The declaration.

        Raises:
            KeyError: The row has no name.
        """
        return cls(row["name"], **{key: row[key] for key in ("kind", "language", "definition") if key in row})


@dataclass(frozen=True)
class JobSpec:
    """One job as it is checked, deployed, stored and recomputed.

    Attributes:
        script: The text: Flink SQL, or a program of the Table API.
        settings: Settings in force before the script's own SETs.
        functions: Declarations of functions that the script only uses.
        catalog: DDL of tables that the script does not declare.
        engine: The engine whose state semantics apply; ``vvr`` by default.
        engine_version: The version of that engine; None for its default (``ENGINES``).
        source: The name of the script in messages.
        language: Language of the script: ``sql``, ``python`` or ``table``.
        variables: Values from the environment of a program, by name.
        files: The texts next to a Python program, its modules and the files it reads, by their path from its folder.

    Raises:
        InputError: A field holds an invalid value; the message contains the remedy.
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
            raise InputError(f"engine {self.engine!r} is not one of {', '.join(ENGINES)}")
        if self.engine_version is not None and not _VERSION.fullmatch(self.engine_version):
            examples = ENGINE_FACTS[self.engine].version_examples
            raise InputError(
                f"engine version {self.engine_version!r} of {self.source} is not a version of {self.engine}: "
                f"write numbers separated by points, such as {examples}"
            )
        if self.language not in LANGUAGES:
            raise InputError(f"language {self.language!r} is not one of {', '.join(LANGUAGES)}")
        if self.variables and self.language == "sql":
            raise InputError("variables belong to a program, and this job is an SQL script: leave them out")
        if self.files and self.language != "python":
            raise InputError("files belong to a Python program, and this job is not one: leave them out")

    @cached_property
    def version(self) -> str:
        """The engine version, as its first one or two numbers."""
        return ".".join((self.engine_version or ENGINES[self.engine]).split(".")[:2])

    def digest(self) -> str:
        """The SHA-256 of everything that is compared, in hex; the name of the source has no part in it.

        It proves that the deployed version is the checked one. Ledgers and summaries contain it, so its formula never
        changes.

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

        The engine is not one of them, and leading or trailing blank lines do not count. Hand-over records contain these
        digests.

        Returns:
            64 hex digits by part: ``script``, ``settings``, ``functions`` and ``catalog``.
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
        """JSON values; :meth:`from_dict` reads them.

        Returns:
            One key per field.
        """
        row = {each.name: getattr(self, each.name) for each in fields(JobSpec)}
        maps = {name: dict(row[name]) for name in ("settings", "variables", "files")}
        return {**row, **maps, "functions": [function.to_dict() for function in self.functions]}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        """Read the job that :meth:`to_dict` wrote.

        Args:
            row: Its fields; a missing one has its default, and unknown keys are ignored.

        Returns:
            The job.

        Raises:
            InputError: A field holds an invalid value.
            KeyError: The script, or the name of a function, is missing.
        """
        known = {each.name: row[each.name] for each in fields(JobSpec) if each.name in row}
        functions = tuple(FunctionDeclaration.from_dict(each) for each in row.get("functions", ()))
        return cls(**{**known, "script": row["script"], "functions": functions})


_ENCODER = json.JSONEncoder(ensure_ascii=False)


def _sha256(value: object) -> str:
    return hashlib.sha256(_ENCODER.encode(value).encode()).hexdigest()
