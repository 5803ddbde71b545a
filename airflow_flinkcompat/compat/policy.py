"""Policy: from outcome to branch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from airflow_flinkcompat.compat.outcome import Outcome

BRANCHES = ("resume", "restart", "approve", "reject")


@dataclass(frozen=True)
class Policy:
    """Which branch each outcome takes: resume, restart (without state), approve or reject.

    State is never thrown away unasked: an incompatible change restarts by itself only where a policy says so, or where
    history is recomputed after the restart (see :meth:`of`). Raises ValueError for any other branch, and for a policy
    that resumes an incompatible change unseen.
    """

    compatible: str = "resume"
    partial: str = "approve"
    unknown: str = "approve"
    incompatible: str = "approve"

    def __post_init__(self) -> None:
        for field in fields(self):
            branch = getattr(self, field.name)
            if branch not in BRANCHES:
                raise ValueError(f"policy: {field.name} = {branch!r} is not one of {', '.join(BRANCHES)}")
        if self.incompatible == "resume":
            raise ValueError("policy: an incompatible change is never resumed without approval")

    @staticmethod
    def of(value: Policy | Mapping[str, str] | None, *, backfill: bool = False) -> Policy:
        """A policy from a mapping of outcomes to branches; what it leaves out keeps the default.

        Args:
            value: a policy, which is taken as it is, or the branches of some outcomes.
            backfill: whether a restart is followed by a backfill, or led by a hand-over to one. An incompatible change
                restarts then, unless ``value`` says otherwise.

        Returns:
            The policy.

        Raises:
            ValueError: an outcome or branch that there is not, or an incompatible change that resumes.
        """
        if isinstance(value, Policy):
            return value
        unknown = set(value or ()) - {outcome.value for outcome in Outcome}
        if unknown:
            raise ValueError(f"policy: {', '.join(sorted(unknown))} is no outcome")
        return Policy(**{**({"incompatible": "restart"} if backfill else {}), **dict(value or {})})

    def branch_for(self, outcome: Outcome) -> str:
        """The branch an outcome takes."""
        return str(getattr(self, outcome.value))
