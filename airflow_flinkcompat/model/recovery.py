"""Flink's recovery options: Flink 1.20 renamed them, and an unknown option is ignored.

A job whose savepoint is set in a spelling that its Flink does not know starts empty, without any message.
"""

from __future__ import annotations

from collections.abc import Mapping

PATH = "execution.state-recovery.path"
CLAIM_MODE = "execution.state-recovery.claim-mode"
IGNORE_UNCLAIMED = "execution.state-recovery.ignore-unclaimed-state"
_BEFORE_1_20: Mapping[str, str] = {
    PATH: "execution.savepoint.path",
    CLAIM_MODE: "execution.savepoint-restore-mode",
    IGNORE_UNCLAIMED: "execution.savepoint.ignore-unclaimed-state",
}


def spelled(option: str, version: str) -> str:
    """The option as one version of Flink knows it."""
    major, minor = (int(part) if part.isdecimal() else 0 for part in (*version.split("."), "0")[:2])
    return _BEFORE_1_20[option] if (major, minor) < (1, 20) else option


def in_every_spelling(options: Mapping[str, str]) -> dict[str, str]:
    """The same options for a Flink of any version; if it knows both spellings, the new one wins."""
    return {**options, **{_BEFORE_1_20[option]: value for option, value in options.items()}}
