"""Values of a verdict (outcome, basis, consequence, reason) and the policy that maps it to a branch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Literal, get_args

from airflow_flinkcompat.lazy import cached_property


class Outcome(StrEnum):
    """Effect of a change on stored state, from best to worst."""

    COMPATIBLE = "compatible"
    PARTIAL = "partial"
    UNKNOWN = "unknown"
    INCOMPATIBLE = "incompatible"

    @cached_property
    def rank(self) -> int:
        """The position in the order: 0 for compatible, 3 for incompatible."""
        return _RANKS[self]

    @staticmethod
    def worst(outcomes: Iterable[Outcome]) -> Outcome:
        """The worst of several outcomes; compatible if there are none.

        Args:
            outcomes: The outcomes to compare.

        Returns:
            The outcome with the highest rank.
        """
        return max(outcomes, key=_RANKS.__getitem__, default=Outcome.COMPATIBLE)


_RANKS = {outcome: rank for rank, outcome in enumerate(Outcome)}


class Basis(StrEnum):
    """Kind of evidence for a verdict."""

    DOCUMENT = "document"
    MEASURED = "measured"
    INFERRED = "inferred"


class Consequence(StrEnum):
    """Measured result of starting a changed statement from the savepoint on open-source Flink."""

    REFUSED_AT_SUBMIT = "refused at submit"
    REFUSED_AT_RESTORE = "refused at restore"
    SILENTLY_WRONG = "silently wrong rows"


class Reason(StrEnum):
    """Reason for the outcome ``unknown``."""

    DOCUMENTED = "the vendor's document states that the outcome is not known in advance"
    SEVERAL_CHANGES = "several things changed at once"
    VERSION = "the engine version differs or was never measured"
    NOT_READ = "a statement could not be read"
    NOT_COVERED = "no document row and no measurement covers this change"
    OPAQUE = "the check cannot see into a function or construct"
    AMBIGUOUS = "the pairing of old and new queries is unknown"
    UNDECLARED = "the schema of a table is unknown"


Branch = Literal["resume", "migrate", "restart", "approve", "reject"]
BRANCHES: tuple[Branch, ...] = get_args(Branch)
_MIGRATABLE = {"whole": "migratable", "partial": "partly_migratable"}
"""The policy field for an incompatible change, by the share of state that a migration keeps."""

_OF_EMPTY_SINKS = ("resume", "approve", "restart")


@dataclass(frozen=True)
class Policy:
    """The branch for each outcome: resume, migrate, restart (without state), approve or reject.

    ``migratable`` and ``partly_migratable`` apply to an incompatible change if a migration keeps all or part of its
    state, and only if the DAG has a branch ``migrate``. ``sink_begins_empty`` (resume, approve or restart) applies if
    a job would resume or migrate, but an updating query writes into a new keyed sink. Such a sink only receives the
    keys whose results change after the restart.

    State is never discarded without consent. An incompatible change restarts only if the policy allows it explicitly,
    or if a backfill recomputes the history (see :meth:`of`). Raises ValueError for an unknown branch, and for a
    policy that resumes an incompatible change without approval.
    """

    compatible: str = "resume"
    partial: str = "approve"
    unknown: str = "approve"
    incompatible: str = "approve"
    migratable: str = "migrate"
    partly_migratable: str = "approve"
    sink_begins_empty: str = "approve"

    def __post_init__(self) -> None:
        for field in fields(self):
            branch = getattr(self, field.name)
            if branch not in BRANCHES:
                raise ValueError(
                    f"policy: {field.name} has the unknown branch {branch!r}; choose one of {', '.join(BRANCHES)}"
                )
            if branch == "migrate" and field.name not in _MIGRATABLE.values():
                raise ValueError(
                    f"policy: {field.name} cannot have the branch 'migrate'; use it only for "
                    f"{' and '.join(_MIGRATABLE.values())}"
                )
        if self.sink_begins_empty not in _OF_EMPTY_SINKS:
            raise ValueError(
                f"policy: sink_begins_empty cannot have the branch {self.sink_begins_empty!r}; "
                f"choose one of {', '.join(_OF_EMPTY_SINKS)}"
            )
        if "resume" in (self.incompatible, self.migratable, self.partly_migratable):
            raise ValueError(
                "policy: an incompatible change must not resume without approval; choose a branch other than 'resume'"
            )

    @staticmethod
    def of(value: Policy | Mapping[str, Any] | None, *, backfill: bool = False) -> Policy:
        """A policy from a mapping of outcomes to branches; missing outcomes have default branches.

        Args:
            value: A policy, which is returned unchanged, or a mapping from outcomes to branches.
            backfill: True if a backfill follows a restart, or a hand-over to a backfill precedes the restart. The
                default for an incompatible change is then ``restart``. The branch in ``value`` for incompatible
                changes also applies to migratable changes, unless ``value`` contains separate branches.

        Returns:
            The policy.

        Raises:
            ValueError: An outcome or branch is unknown, or an incompatible change would resume.
        """
        if isinstance(value, Policy):
            return value
        known = tuple(field.name for field in fields(Policy))
        for outcome in value or ():
            if outcome not in known:
                raise ValueError(f"policy: unknown outcome {outcome!r}; choose one of {', '.join(known)}")
        given = dict(value or {})
        if "incompatible" in given:
            given = {**dict.fromkeys(_MIGRATABLE.values(), given["incompatible"]), **given}
        return Policy(**{**({"incompatible": "restart"} if backfill else {}), **given})

    def branch_for(self, outcome: Outcome, kept: str | None = None) -> str:
        """The branch for an outcome.

        Args:
            outcome: The outcome of the check.
            kept: The share of the state that a migration keeps: ``whole``, ``partial`` or ``none``; None without
                a migration.

        Returns:
            The name of the branch.
        """
        migratable = _MIGRATABLE.get(kept or "") if outcome is Outcome.INCOMPATIBLE else None
        return str(getattr(self, migratable or outcome.value))
