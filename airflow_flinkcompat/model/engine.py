"""The engines as data: their differences as facts, and the spelling of Flink's recovery options.

Their judgement is in :mod:`~airflow_flinkcompat.compat.engines`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class EngineFacts:
    """Facts about an engine, independent of a change.

    Attributes:
        default_version: The version that is judged by where a job names none.
        version_examples: Versions as users write them, for messages.
        label_has_version: Whether the label for readers contains the version.
        majors: The first numbers that its versions have; None: any number.
        flink_lines: The line of Flink that a version is made of, by its first number; None if a version is one of
            Flink itself.
        one_deployment: Whether a whole script is one deployment, so that settings for an added or removed query apply
            to the others too; else each query may be a job of its own.
        takes_commands: Whether Flink's own commands can be passed to a job: SQL of its Gateway, or its client's.
        tells_endings: Whether it is known how a restore ends that does not fit: refused, or with wrong rows.
        compiles_plans: Whether a planner that can be asked compiles its scripts.
        fills_variables: Whether its platform fills in ``${secret_values.NAME}``, so that such a variable is no secret.
    """

    default_version: str
    label: str
    version_examples: str
    label_has_version: bool
    majors: tuple[str, ...] | None
    flink_lines: Mapping[str, str] | None
    one_deployment: bool
    takes_commands: bool
    tells_endings: bool
    compiles_plans: bool
    fills_variables: bool

    def has_version(self, version: str) -> bool:
        """Return whether a version may be one of this engine."""
        first = version.split(".")[0]
        return self.majors is None or first in self.majors or not (first.isascii() and first.isdigit())

    def flink_line(self, version: str) -> str | None:
        """The line of Flink that a version is, or is made of."""
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
        tells_endings=False,
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
        tells_endings=True,
        compiles_plans=True,
        fills_variables=False,
    ),
}
"""One entry for each engine."""
ENGINES: Mapping[str, str] = {name: facts.default_version for name, facts in ENGINE_FACTS.items()}
"""The engines and the version each is judged by when a job names none."""


# An unknown option is ignored: a job whose savepoint is set in the spelling of another line starts empty.
RECOVERY_PATH = "execution.state-recovery.path"
CLAIM_MODE = "execution.state-recovery.claim-mode"
IGNORE_UNCLAIMED = "execution.state-recovery.ignore-unclaimed-state"
_BEFORE_1_20: Mapping[str, str] = {
    RECOVERY_PATH: "execution.savepoint.path",
    CLAIM_MODE: "execution.savepoint-restore-mode",
    IGNORE_UNCLAIMED: "execution.savepoint.ignore-unclaimed-state",
}


def recovery_option(option: str, version: str) -> str:
    """The option as one version of Flink knows it."""
    major, minor = (int(part) if part.isdecimal() else 0 for part in (*version.split("."), "0")[:2])
    return _BEFORE_1_20[option] if (major, minor) < (1, 20) else option


def in_every_spelling(options: Mapping[str, str]) -> dict[str, str]:
    """The same options for a Flink of any version; if it knows both spellings, the new one wins."""
    return {**options, **{_BEFORE_1_20[option]: value for option, value in options.items()}}
