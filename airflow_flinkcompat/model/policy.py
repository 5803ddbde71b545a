"""Policy: from outcome to branch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from airflow_flinkcompat.model.outcome import Outcome

Branch = Literal["resume", "restart", "approve", "reject"]
BRANCHES: tuple[Branch, ...] = get_args(Branch)


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
                raise ValueError(f"policy: {field.name} leads to {branch!r}; known are {', '.join(BRANCHES)}")
        if self.incompatible == "resume":
            raise ValueError("policy: an incompatible change is never resumed without approval")

    @staticmethod
    def of(value: Policy | Mapping[str, Any] | None, *, backfill: bool = False) -> Policy:
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
        for outcome in value or ():
            if outcome not in tuple(Outcome):
                raise ValueError(f"policy: unknown outcome {outcome!r}; known are {', '.join(Outcome)}")
        return Policy(**{**({"incompatible": "restart"} if backfill else {}), **dict(value or {})})

    def branch_for(self, outcome: Outcome) -> str:
        """The branch an outcome takes.

        Args:
            outcome: What the check says of a change.

        Returns:
            The name of the branch.
        """
        return str(getattr(self, outcome.value))
