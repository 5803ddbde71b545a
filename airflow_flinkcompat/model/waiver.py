"""A waiver: a note next to the script that accepts one finding about one change until a stated day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from enum import StrEnum
from typing import Any


@dataclass(frozen=True)
class Waiver:
    """One accepted finding. It affects no verdict, only the gate's reaction.

    Attributes:
        subject: Subject of the finding: the path of an operator, a sink, or ``script``.
        finding: Its message, secrets masked.
        until: The last day on which it is valid.
        deployed_sha256: The digest of the version deployed then, without its engine; the digest of nothing if the
            script was read alone.
        finding_sha256: The digest of the finding and of the changed parts.
        deployment: The deployment; "" if two scripts were compared.
        even_silently_wrong: True if it was confirmed on purpose although the restore may return wrong rows without an
            error.
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
        """JSON values; :meth:`from_dict` reads them.

        Returns:
            One key per field.
        """
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"until": self.until.isoformat()}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Waiver:
        """The waiver that :meth:`to_dict` wrote; keys of a later version are ignored.

        Args:
            row: The waiver as JSON values.

        Returns:
            The waiver.

        Raises:
            KeyError: The day is missing.
            TypeError: Another field is missing.
            ValueError: The day is not a date.
        """
        known = {each.name: row[each.name] for each in fields(cls) if each.name in row}
        return cls(**{**known, "until": date.fromisoformat(row["until"])})


class WaiverState(StrEnum):
    """Validity of a waiver for its finding."""

    HOLDS = "holds"
    EXPIRED = "expired"
    FLAG_MISSING = "flag missing"


@dataclass(frozen=True)
class AppliedWaiver:
    """A waiver with its finding. ``state`` is its validity."""

    waiver: Waiver
    state: WaiverState

    def to_dict(self) -> dict[str, Any]:
        """JSON values; :meth:`from_dict` reads them.

        Returns:
            The waiver's keys, and ``state``.
        """
        return {**self.waiver.to_dict(), "state": self.state.value}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> AppliedWaiver:
        """Read the values of :meth:`to_dict`.

        Args:
            row: The keys.

        Returns:
            The waiver with its state.
        """
        return cls(Waiver.from_dict(row), WaiverState(row["state"]))
