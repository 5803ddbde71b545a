"""Policy: from outcome to branch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from airflow_flinkcompat.compat.outcome import Outcome

BRANCHES = ("resume", "restart", "approve", "reject")


@dataclass(frozen=True)
class Policy:
    """Which branch each outcome takes: resume, restart (stateless, with backfill), approve or reject.

    Raises ValueError for any other branch, and for a policy that resumes an incompatible change unseen.
    """

    compatible: str = "resume"
    partial: str = "approve"
    unknown: str = "approve"
    incompatible: str = "restart"

    def __post_init__(self) -> None:
        for field in fields(self):
            branch = getattr(self, field.name)
            if branch not in BRANCHES:
                raise ValueError(f"policy: {field.name} = {branch!r} is not one of {', '.join(BRANCHES)}")
        if self.incompatible == "resume":
            raise ValueError("policy: an incompatible change is never resumed without approval")

    @staticmethod
    def of(value: Policy | Mapping[str, str] | None) -> Policy:
        """A policy from a mapping of outcomes to branches; what it leaves out keeps the default."""
        if isinstance(value, Policy):
            return value
        unknown = set(value or ()) - {outcome.value for outcome in Outcome}
        if unknown:
            raise ValueError(f"policy: {', '.join(sorted(unknown))} is no outcome")
        return Policy(**dict(value or {}))

    def branch_for(self, outcome: Outcome) -> str:
        """The branch an outcome takes."""
        return str(getattr(self, outcome.value))
