"""Facts about each engine, and names of Flink's recovery options by version.

Verdicts that depend on the engine are in :mod:`~airflow_flinkcompat.compat.engines`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache


def line_of(version: str | None) -> str:
    """The line of a version, such as ``1.20`` of ``1.20.3``; "" of None."""
    return ".".join((version or "").split(".")[:2])


def is_of_line(version: str | None, line: str) -> bool:
    """True if a version such as ``2.3.0`` is known and belongs to a line such as ``2.3``."""
    return f"{version}.".startswith(f"{line}.")


@lru_cache
def line_numbers(line: str) -> tuple[int, ...]:
    """The numbers of a line, by which lines are ordered. Raises ValueError for a part that is no number."""
    return tuple(map(int, line.split(".")))


@dataclass(frozen=True)
class EngineFacts:
    """Facts about an engine that do not depend on a change of a job.

    Attributes:
        default_version: The version assumed for a job without an engine version.
        version_examples: Examples of versions, for messages.
        label_has_version: True if the label that users see contains the version.
        majors: The major numbers of the engine's versions; None if any number is possible.
        flink_lines: The Flink version that each major version is based on, such as 1.17; None if the engine is
            Flink itself.
        one_deployment: True if a whole script is one deployment: settings for an added or removed query then also
            apply to all other queries. If False, each query may be a separate job.
        takes_commands: True if jobs accept Flink's own commands, either SQL of the SQL Gateway or its command
            line.
        endings_known: True if the result of a failed restore is known: a refusal, or wrong rows.
        compiles_plans: True if Flink's planner can compile the engine's scripts.
        fills_variables: True if the engine's platform replaces ``${secret_values.NAME}``, so that such a variable in
            a script is no secret.
    """

    default_version: str
    label: str
    version_examples: str
    label_has_version: bool
    majors: tuple[str, ...] | None
    flink_lines: Mapping[str, str] | None
    one_deployment: bool
    takes_commands: bool
    endings_known: bool
    compiles_plans: bool
    fills_variables: bool

    def has_version(self, version: str) -> bool:
        """True if a version with this number can exist."""
        first = version.split(".")[0]
        return self.majors is None or first in self.majors or not (first.isascii() and first.isdigit())

    def flink_line(self, version: str) -> str | None:
        """The Flink version, such as 1.20, that an engine version is equal to or based on."""
        return version if self.flink_lines is None else self.flink_lines.get(version.split(".")[0])


ENGINE_FACTS: Mapping[str, EngineFacts] = {
    "vvr": EngineFacts(
        default_version="8",
        label="VVR (Realtime Compute, Ververica)",
        version_examples="8.0.11 or 11.1",
        label_has_version=False,
        majors=None,
        flink_lines={"4": "1.13", "6": "1.15", "8": "1.17", "11": "1.20"},
        one_deployment=True,
        takes_commands=False,
        endings_known=False,
        compiles_plans=False,
        fills_variables=True,
    ),
    "flink": EngineFacts(
        default_version="2.3",
        label="open-source Flink",
        version_examples="2.3 or 1.20.3",
        label_has_version=True,
        majors=("1", "2"),
        flink_lines=None,
        one_deployment=False,
        takes_commands=True,
        endings_known=True,
        compiles_plans=True,
        fills_variables=False,
    ),
}
"""The facts about each engine, by its name."""
ENGINES: tuple[str, ...] = tuple(ENGINE_FACTS)
"""The names of all engines."""


# Flink ignores unknown options. A savepoint path under another version's name is lost, and the job starts empty.
RECOVERY_PATH = "execution.state-recovery.path"
CLAIM_MODE = "execution.state-recovery.claim-mode"
IGNORE_UNCLAIMED = "execution.state-recovery.ignore-unclaimed-state"
_BEFORE_1_20: Mapping[str, str] = {
    RECOVERY_PATH: "execution.savepoint.path",
    CLAIM_MODE: "execution.savepoint-restore-mode",
    IGNORE_UNCLAIMED: "execution.savepoint.ignore-unclaimed-state",
}
RECOVERY_PREFIXES = ("execution.state-recovery.", "execution.savepoint.", _BEFORE_1_20[CLAIM_MODE])
"""Prefixes of all recovery options in all Flink versions. Only a deployment sets them, never a script."""


def recovery_option(option: str, version: str) -> str:
    """The name of a recovery option in a version of Flink."""
    major, minor = (int(part) if part.isdecimal() else 0 for part in (*version.split("."), "0")[:2])
    return _BEFORE_1_20[option] if (major, minor) < (1, 20) else option


def in_every_spelling(options: Mapping[str, str]) -> dict[str, str]:
    """The options under both names, for any version of Flink; a version that knows both uses the new name."""
    return {**options, **{_BEFORE_1_20[option]: value for option, value in options.items()}}
