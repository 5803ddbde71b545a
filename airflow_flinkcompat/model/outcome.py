"""The words of a verdict: outcome, basis, consequence and the closed list of reasons for ``unknown``."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from airflow_flinkcompat.lazy import cached_property


class Outcome(StrEnum):
    """Effect of a change on stored state, from best to worst."""

    COMPATIBLE = "compatible"
    PARTIAL = "partial"
    UNKNOWN = "unknown"
    INCOMPATIBLE = "incompatible"

    @cached_property
    def rank(self) -> int:
        """0 for compatible, 3 for incompatible."""
        return _RANKS[self]

    @staticmethod
    def worst(outcomes: Iterable[Outcome]) -> Outcome:
        """The worst of the outcomes; compatible where there are none.

        Args:
            outcomes: Any number of outcomes.

        Returns:
            The one of the highest rank.
        """
        return max(outcomes, key=_RANKS.__getitem__, default=Outcome.COMPATIBLE)


_RANKS = {outcome: rank for rank, outcome in enumerate(Outcome)}


class Basis(StrEnum):
    """Evidence of a verdict."""

    DOCUMENT = "document"
    MEASURED = "measured"
    INFERRED = "inferred"


class Consequence(StrEnum):
    """End of a changed statement's start from the savepoint on open-source Flink (measured)."""

    REFUSED_AT_SUBMIT = "refused at submit"
    REFUSED_AT_RESTORE = "refused at restore"
    SILENTLY_WRONG = "silently wrong rows"


class Reason(StrEnum):
    """Reason for an ``unknown`` answer: the closed list."""

    DOCUMENTED = "the vendor's document says that the outcome is not known in advance"
    SEVERAL_CHANGES = "several things changed at once"
    VERSION = "the engine version differs or was never measured"
    NOT_READ = "a statement could not be read"
    NOT_COVERED = "no document row and no measurement covers this change"
    OPAQUE = "the check cannot see into a function or construct"
    AMBIGUOUS = "which query replaced which is not known"
    UNDECLARED = "a table's schema is not known"
