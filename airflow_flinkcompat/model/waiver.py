"""A waiver: a note next to the script that accepts one finding about one change until a fixed day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from enum import StrEnum
from typing import Any


@dataclass(frozen=True)
class Waiver:
    """An accepted finding. A waiver never changes the verdict, only the reaction of the gate.

    Attributes:
        subject: The subject of the finding: the path of an operator, a sink, or ``script``.
        finding: The message of the finding, with secrets masked.
        until: The last day on which the waiver is valid.
        deployed_sha256: The digest, without the engine, of the version that was deployed when the finding was
            accepted. If only one script was checked, the digest of an empty script.
        finding_sha256: The digest of the finding and of the changed parts of the script.
        deployment: The name of the deployment; "" if two scripts were compared.
        even_silently_wrong: True if the finding was accepted explicitly although the restored job may write wrong
            rows without an error.
    """

    rule: str
    subject: str
    engine: str
    outcome: str
    finding: str
    reason: str
    by: str
    until: date
    deployed_sha256: str
    finding_sha256: str
    deployment: str = ""
    even_silently_wrong: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The waiver as JSON values, for :meth:`from_dict`.

        Returns:
            A mapping with one key per field.
        """
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"until": self.until.isoformat()}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Waiver:
        """Read a waiver from the values of :meth:`to_dict`; unknown keys of later versions are ignored.

        Args:
            row: The waiver as JSON values.

        Returns:
            The waiver.

        Raises:
            KeyError: The key ``until`` is missing.
            TypeError: Another field is missing.
            ValueError: The value of ``until`` is not a date.
        """
        known = {each.name: row[each.name] for each in fields(cls) if each.name in row}
        return cls(**{**known, "until": date.fromisoformat(row["until"])})


class WaiverState(StrEnum):
    """State of a waiver when it is applied to a finding."""

    HOLDS = "holds"
    EXPIRED = "expired"
    FLAG_MISSING = "flag missing"


@dataclass(frozen=True)
class AppliedWaiver:
    """A waiver that matches a finding, with the state of the waiver."""

    waiver: Waiver
    state: WaiverState

    def to_dict(self) -> dict[str, Any]:
        """The waiver and its state as JSON values, for :meth:`from_dict`.

        Returns:
            The keys of the waiver, and ``state``.
        """
        return {**self.waiver.to_dict(), "state": self.state.value}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> AppliedWaiver:
        """Read a waiver and its state from the values of :meth:`to_dict`.

        Args:
            row: The keys of the waiver, and ``state``.

        Returns:
            The waiver with its state.
        """
        return cls(Waiver.from_dict(row), WaiverState(row["state"]))
