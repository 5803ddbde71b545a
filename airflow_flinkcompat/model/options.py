"""What a user may choose, each closed list once.

Where code branches on a choice it is an enum; beside it stands the literal type of its values, by which a type checker
names a misspelt argument of an operator. Both are compared by a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, get_args

EngineName = Literal["vvr", "flink"]
"""Whose state semantics apply: the vendor's (Realtime Compute, Ververica), or those of open-source Flink."""

Language = Literal["sql", "python", "table"]
"""What a job is written in: Flink SQL, PyFlink, or FLIP-11's notation of the Table API."""
LANGUAGES: tuple[Language, ...] = get_args(Language)

_LANGUAGE_OF: Mapping[str, Language] = {".py": "python", ".table": "table"}
PROGRAM_SUFFIXES = tuple(_LANGUAGE_OF)
"""How the files of programs of the Table API end."""

FunctionKind = Literal["scalar", "aggregate", "table"]
FUNCTION_KINDS: tuple[FunctionKind, ...] = get_args(FunctionKind)
FunctionLanguage = Literal["java", "scala", "python"]
FUNCTION_LANGUAGES: tuple[FunctionLanguage, ...] = get_args(FunctionLanguage)


class StartMode(StrEnum):
    """From which state a job starts. ``AUTO_FIRST``: empty where nothing is deployed yet, else from a savepoint.

    ``CHECKPOINT``: from the former job's latest retained checkpoint; the rows it wrote after that are written again.
    ``MIGRATED``: from a savepoint that was rewritten for the new script.
    """

    AUTO_FIRST = "auto-first"
    SAVEPOINT = "savepoint"
    CHECKPOINT = "checkpoint"
    STATELESS = "stateless"
    MIGRATED = "migrated"


StartModeName = Literal["auto-first", "savepoint", "checkpoint", "stateless", "migrated"]


class RehearsalFinding(StrEnum):
    """What became of a new script that was started from a live job's state."""

    REFUSED = "refused"
    RESTORED = "restored"
    INCONCLUSIVE = "could not tell"


RehearsalFindingName = Literal["refused", "restored", "could not tell"]

AcceptName = Literal["filter", "source-moved", "history"]
"""What a migration in a DAG does on request alone; that state is dropped is for the person who approves."""
ACCEPTED: tuple[AcceptName, ...] = get_args(AcceptName)

Late = Literal["include", "drop"]
"""What a backfill does with rows that a live job's watermark would have found too late for their window."""
LATE: tuple[Late, ...] = get_args(Late)

Native = Literal["auto", "off"]
"""Whether DuckDB may aggregate files inside the tasks of Spark: where the rows are the same for certain, or never."""
NATIVE: tuple[Native, ...] = get_args(Native)

PlannerMode = Literal["auto", "always", "never"]
"""When Flink's own planner is asked; ``auto``: where it is installed for the version."""
PLANNER_MODES: tuple[PlannerMode, ...] = get_args(PlannerMode)
PlannerNetwork = Literal["allow", "refuse"]
"""Whether connectors may connect while Flink's planner plans a script."""
PLANNER_NETWORKS: tuple[PlannerNetwork, ...] = get_args(PlannerNetwork)
PLANNER_VARIABLE = "FLINKCOMPAT_PLANNER"
"""The variable that holds the mode where nothing else names one."""


def language_of(path: str | Path) -> Language:
    """What a file is written in, by its ending; anything but a program is SQL.

    Args:
        path: The file; it need not exist.

    Returns:
        ``python`` or ``table`` for a program, else ``sql``.
    """
    return _LANGUAGE_OF.get(Path(path).suffix, "sql")


def is_path(value: Any, endings: tuple[str, ...]) -> bool:
    """Whether an argument is the path of a file with one of these endings, and no text.

    Args:
        value: What was given.
        endings: Endings of files, with their points.

    Returns:
        True for a path; the file need not exist.
    """
    return isinstance(value, str) and value.endswith(endings) and "\n" not in value
