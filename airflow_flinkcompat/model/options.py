"""Options that a user chooses; each closed list of choices is defined once, in this module.

A choice on which code branches is an enum. A literal type of the same values follows each enum, so that a type
checker finds a misspelt operator argument. A test compares each enum with its literal type.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, get_args

EngineName = Literal["vvr", "flink"]
"""The engine that runs a job: VVR (Realtime Compute, Ververica) or open-source Flink."""

Language = Literal["sql", "python", "table"]
"""Language of a job: Flink SQL, PyFlink, or the Table API notation of FLIP-11."""
LANGUAGES: tuple[Language, ...] = get_args(Language)

_LANGUAGE_OF: Mapping[str, Language] = {".py": "python", ".table": "table"}
PROGRAM_SUFFIXES = tuple(_LANGUAGE_OF)
"""File suffixes of Table API programs."""

FunctionKind = Literal["scalar", "aggregate", "table"]
FUNCTION_KINDS: tuple[FunctionKind, ...] = get_args(FunctionKind)
FunctionLanguage = Literal["java", "scala", "python"]
FUNCTION_LANGUAGES: tuple[FunctionLanguage, ...] = get_args(FunctionLanguage)


class StartMode(StrEnum):
    """The state from which a job starts.

    ``AUTO_FIRST`` starts without state if nothing is deployed yet, else from a savepoint.

    ``CHECKPOINT`` starts from the latest retained checkpoint of the former job, and the job repeats the rows that it
    wrote after that checkpoint. ``MIGRATED`` starts from a savepoint that was rewritten for the new script.
    """

    AUTO_FIRST = "auto-first"
    SAVEPOINT = "savepoint"
    CHECKPOINT = "checkpoint"
    STATELESS = "stateless"
    MIGRATED = "migrated"


StartModeName = Literal["auto-first", "savepoint", "checkpoint", "stateless", "migrated"]


class RehearsalFinding(StrEnum):
    """Result of a rehearsal, which starts the new script from the state of the live job."""

    REFUSED = "refused"
    RESTORED = "restored"
    INCONCLUSIVE = "could not tell"


RehearsalFindingName = Literal["refused", "restored", "could not tell"]

AcceptName = Literal["filter", "source-moved", "history"]
"""Consequences of a migration that a DAG may accept. A person must approve the loss of state."""
ACCEPTED: tuple[AcceptName, ...] = get_args(AcceptName)

Late = Literal["include", "drop"]
"""Handling of rows that are too late for their window by the watermark of a live job."""
LATE: tuple[Late, ...] = get_args(Late)

Native = Literal["auto", "off"]
"""Use of DuckDB in Spark tasks: ``auto`` where it surely returns the same rows as Spark, or ``off``."""
NATIVE: tuple[Native, ...] = get_args(Native)

PlannerMode = Literal["auto", "always", "never"]
"""Use of Flink's planner; ``auto`` uses the planner if it is installed for the version of Flink."""
PLANNER_MODES: tuple[PlannerMode, ...] = get_args(PlannerMode)
PlannerNetwork = Literal["allow", "refuse"]
"""Permission for connectors to open network connections while Flink's planner plans a script."""
PLANNER_NETWORKS: tuple[PlannerNetwork, ...] = get_args(PlannerNetwork)
ENGINE_VARIABLE = "FLINKCOMPAT_ENGINE"
"""Environment variable with the default engine."""
LEDGER_VARIABLE = "FLINKCOMPAT_LEDGER"
"""Environment variable with the address of the ledgers."""
PLANNER_VARIABLE = "FLINKCOMPAT_PLANNER"
"""Environment variable with the default :data:`PlannerMode`."""
NETWORK_VARIABLE = "FLINKCOMPAT_PLANNER_NETWORK"
"""Environment variable with the default :data:`PlannerNetwork`."""


def language_of(path: str | Path) -> Language:
    """Language of a script, by the suffix of its file; every unknown suffix means SQL.

    Args:
        path: The path of the file, which may not exist.

    Returns:
        ``python`` or ``table`` for a program, else ``sql``.
    """
    return _LANGUAGE_OF.get(Path(path).suffix, "sql")


def is_path(value: Any, endings: tuple[str, ...]) -> bool:
    """True if an argument is a file path with one of these suffixes, and not the text of a script.

    Args:
        value: The argument.
        endings: Suffixes of files, with their dots.

    Returns:
        True for a path, even if the file does not exist.
    """
    return isinstance(value, str) and value.endswith(endings) and "\n" not in value


def set_network(asked: PlannerNetwork | None) -> None:
    """Let connectors open connections if ``asked`` is ``allow`` and the environment variable is not set."""
    if asked == "allow":
        os.environ.setdefault(NETWORK_VARIABLE, asked)


def network_allowed() -> bool:
    """True if the user allows connectors and catalogs to open connections."""
    return os.environ.get(NETWORK_VARIABLE) == "allow"
