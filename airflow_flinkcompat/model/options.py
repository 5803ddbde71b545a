"""Choices of a user, with one definition for each closed list.

A choice on which code branches is an enum. Next to it is the literal type of its values, so that a type checker finds a
misspelt operator argument. A test compares the two.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, get_args

EngineName = Literal["vvr", "flink"]
"""State semantics: the vendor's (Realtime Compute, Ververica), or those of open-source Flink."""

Language = Literal["sql", "python", "table"]
"""Language of a job: Flink SQL, PyFlink, or FLIP-11's notation of the Table API."""
LANGUAGES: tuple[Language, ...] = get_args(Language)

_LANGUAGE_OF: Mapping[str, Language] = {".py": "python", ".table": "table"}
PROGRAM_SUFFIXES = tuple(_LANGUAGE_OF)
"""Suffixes of Table API programs."""

FunctionKind = Literal["scalar", "aggregate", "table"]
FUNCTION_KINDS: tuple[FunctionKind, ...] = get_args(FunctionKind)
FunctionLanguage = Literal["java", "scala", "python"]
FUNCTION_LANGUAGES: tuple[FunctionLanguage, ...] = get_args(FunctionLanguage)


class StartMode(StrEnum):
    """State from which a job starts. ``AUTO_FIRST``: empty if nothing is deployed yet, else a savepoint.

    ``CHECKPOINT``: the former job's latest retained checkpoint; later rows of that job are written again. ``MIGRATED``:
    a savepoint that was rewritten for the new script.
    """

    AUTO_FIRST = "auto-first"
    SAVEPOINT = "savepoint"
    CHECKPOINT = "checkpoint"
    STATELESS = "stateless"
    MIGRATED = "migrated"


StartModeName = Literal["auto-first", "savepoint", "checkpoint", "stateless", "migrated"]


class RehearsalFinding(StrEnum):
    """Result of starting a new script from a live job's state."""

    REFUSED = "refused"
    RESTORED = "restored"
    INCONCLUSIVE = "could not tell"


RehearsalFindingName = Literal["refused", "restored", "could not tell"]

AcceptName = Literal["filter", "source-moved", "history"]
"""Exceptions that a migration in a DAG makes on request; dropping state is left to the approver."""
ACCEPTED: tuple[AcceptName, ...] = get_args(AcceptName)

Late = Literal["include", "drop"]
"""Treatment of rows that a live job's watermark would have found too late for their window."""
LATE: tuple[Late, ...] = get_args(Late)

Native = Literal["auto", "off"]
"""Use of DuckDB inside Spark's tasks: if it certainly returns the same rows, or never."""
NATIVE: tuple[Native, ...] = get_args(Native)

PlannerMode = Literal["auto", "always", "never"]
"""Use of Flink's own planner; ``auto``: if it is installed for the version."""
PLANNER_MODES: tuple[PlannerMode, ...] = get_args(PlannerMode)
PlannerNetwork = Literal["allow", "refuse"]
"""Permission for connectors to connect while Flink's planner plans a script."""
PLANNER_NETWORKS: tuple[PlannerNetwork, ...] = get_args(PlannerNetwork)
ENGINE_VARIABLE = "FLINKCOMPAT_ENGINE"
"""The variable that holds the engine, if nothing else names one."""
LEDGER_VARIABLE = "FLINKCOMPAT_LEDGER"
"""The variable that holds the address of the ledgers."""
PLANNER_VARIABLE = "FLINKCOMPAT_PLANNER"
"""The variable that holds the mode, if nothing else names one."""
NETWORK_VARIABLE = "FLINKCOMPAT_PLANNER_NETWORK"
"""The variable that is ``allow`` if connectors and catalogs may connect while a script is planned."""


def language_of(path: str | Path) -> Language:
    """Language of a file, by its suffix; anything but a program is SQL.

    Args:
        path: The file; it need not exist.

    Returns:
        ``python`` or ``table`` for a program, else ``sql``.
    """
    return _LANGUAGE_OF.get(Path(path).suffix, "sql")


def is_path(value: Any, endings: tuple[str, ...]) -> bool:
    """True if an argument is the path of a file with one of these suffixes, and not a text.

    Args:
        value: The argument.
        endings: Suffixes of files, with their dots.

    Returns:
        True for a path; the file need not exist.
    """
    return isinstance(value, str) and value.endswith(endings) and "\n" not in value


def set_network(asked: PlannerNetwork | None) -> None:
    """Let connectors open connections if ``asked`` is ``allow`` and the environment variable is not set."""
    if asked == "allow":
        os.environ.setdefault(NETWORK_VARIABLE, asked)


def network_allowed() -> bool:
    """True if the user allows connectors and catalogs to open connections."""
    return os.environ.get(NETWORK_VARIABLE) == "allow"
