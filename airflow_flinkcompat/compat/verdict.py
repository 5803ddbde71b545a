"""A verdict on state after a change, with its grounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_flinkcompat.compat.evidence import lines_restored_right, unknown_ids
from airflow_flinkcompat.model import Basis, Consequence, Outcome, Reason


class Remedy(StrEnum):
    """An option or clause by which a user settles a finding, or keeps state that would be lost otherwise."""

    PARALLELISM_ONE = "parallelism 1"
    RESTART_SOURCE = "restart source"
    EXPLAIN_PLAN = "explain plan"
    ON_CONFLICT = "ON CONFLICT"


UNCHANGED = ("w-unchanged", "inserts-unchanged", "sinks-unchanged", "t-unchanged")
"""Restores of unchanged jobs, the evidence for parts without an effect on any job."""


SAFE = (Outcome.COMPATIBLE, Outcome.PARTIAL)
"""Outcomes that need a measurement on the very version, for open-source Flink."""


@dataclass(frozen=True)
class Verdict:
    """A rule's answer for one engine.

    ``source`` is the document row of the verdict, or words about the measurements. ``evidence`` are the ids of its
    restores (:mod:`~airflow_flinkcompat.compat.evidence`): the versions follow from them. ``other_evidence`` are those
    that show the same where these were not run. ``remedy`` would settle an unknown, or keep the rest of the state.
    """

    outcome: Outcome
    basis: Basis
    source: str = ""
    reason: Reason | None = None
    consequence: Consequence | None = None
    evidence: tuple[str, ...] = ()
    remedy: Remedy | None = None
    other_evidence: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.outcome is Outcome.UNKNOWN) != (self.reason is not None):
            raise ValueError("an unknown verdict has a reason from the closed list, no other has one")
        if self.basis is Basis.MEASURED and not self.evidence:
            raise ValueError("a measured verdict names the restores it rests on")
        if self.evidence and self.outcome in SAFE and not self.versions:
            raise ValueError(f"{', '.join(self.evidence)}: not all restored right on one line of Flink")

    @property
    def versions(self) -> tuple[str, ...]:
        """The lines of Flink on which every restore it names ended right."""
        lines = (*lines_restored_right(self.evidence), *lines_restored_right(self.other_evidence))
        return tuple(dict.fromkeys(lines))

    @property
    def grounds(self) -> str:
        """Its evidence in words: the document row, or ids with a remark."""
        ids = ", ".join(self.evidence)
        if not ids or not self.source:
            return ids or self.source
        return f"{ids}: {self.source}" if self.basis is Basis.MEASURED else f"{self.source} ({ids})"

    def on_line(self, line: str) -> Verdict:
        """The verdict on one line of open-source Flink: nothing is safe that was not run on that line."""
        if self.outcome not in SAFE or line in lines_restored_right(self.evidence):
            return self
        if line in self.versions:
            return replace(self, evidence=self.other_evidence, other_evidence=())
        seen = f"measured on Flink {', '.join(self.versions)} only" if self.versions else "no restore confirms it"
        grounds = f"{self.grounds}: {seen}" if self.grounds else seen
        return Verdict(
            Outcome.UNKNOWN, Basis.INFERRED, grounds, Reason.VERSION if self.versions else Reason.NOT_COVERED
        )


def documented(outcome: Outcome, row: str, reason: Reason = Reason.DOCUMENTED) -> Verdict:
    """A row of the vendor's documents; an unknown one is unknown because the document states it."""
    return Verdict(outcome, Basis.DOCUMENT, row, reason if outcome is Outcome.UNKNOWN else None)


def measured(outcome: Outcome, *ids: str, note: str = "", consequence: Consequence | None = None) -> Verdict:
    """An outcome seen on a real Flink."""
    return _doubt(outcome, ids) or Verdict(outcome, Basis.MEASURED, note, None, consequence, ids)


def right(*ids: str, note: str = "") -> Verdict:
    """Compatible, as these restores were."""
    return measured(Outcome.COMPATIBLE, *ids, note=note)


def wrong(*ids: str, note: str = "", consequence: Consequence | None = Consequence.SILENTLY_WRONG) -> Verdict:
    """Incompatible, as these restores were."""
    return measured(Outcome.INCOMPATIBLE, *ids, note=note, consequence=consequence)


def refused(*ids: str, note: str = "") -> Verdict:
    """Refused at restore, for another layout of state."""
    return wrong(*ids, note=note, consequence=Consequence.REFUSED_AT_RESTORE)


def refused_at_submit(*ids: str, note: str = "") -> Verdict:
    """Refused at submit, for another topology."""
    return wrong(*ids, note=note, consequence=Consequence.REFUSED_AT_SUBMIT)


def expected(why: str, consequence: Consequence | None = Consequence.REFUSED_AT_SUBMIT) -> Verdict:
    """Incompatible by Flink's planner or the form of its state; no committed restore shows it."""
    return Verdict(Outcome.INCOMPATIBLE, Basis.INFERRED, why, consequence=consequence)


def unknown(why: str = "", reason: Reason = Reason.NOT_COVERED) -> Verdict:
    """Unknown, because no page or restore covers it unless another reason is stated."""
    return Verdict(Outcome.UNKNOWN, Basis.INFERRED, why, reason)


def inferred(
    outcome: Outcome,
    source: str = "",
    ids: tuple[str, ...] = (),
    other_evidence: tuple[str, ...] = (),
) -> Verdict:
    """An outcome without a page or measurement; unknown for lack of cover."""
    reason = Reason.NOT_COVERED if outcome is Outcome.UNKNOWN else None
    doubt = _doubt(outcome, ids) or _doubt(outcome, other_evidence)
    return doubt or Verdict(outcome, Basis.INFERRED, source, reason, evidence=ids, other_evidence=other_evidence)


def _doubt(outcome: Outcome, ids: tuple[str, ...]) -> Verdict | None:
    """The verdict that replaces one with insufficient evidence; None if it suffices."""
    why = ""
    if absent := unknown_ids(ids):
        why = f"{', '.join(absent)}: nothing was measured under this name"
    elif ids and outcome in SAFE and not lines_restored_right(ids):
        why = f"{', '.join(ids)}: not all restored right on one version"
    return unknown(why) if why else None


def compatible_engines(**verdicts: Verdict) -> tuple[str, ...]:
    """The engines whose verdict is *compatible*; a match may bring a worse one there."""
    return tuple(engine for engine, verdict in verdicts.items() if verdict.outcome is Outcome.COMPATIBLE)


def combined(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict for several: the worst; where all are as good, it holds only where each of them does."""
    every = list(verdicts)
    worst = max(every, key=lambda verdict: verdict.outcome.rank)
    alike = [verdict for verdict in every if verdict.outcome is worst.outcome]
    bare = next((verdict for verdict in alike if not verdict.evidence), None)
    if worst.outcome not in SAFE or bare is not None:
        return worst if bare is None else bare
    ids = tuple(dict.fromkeys(each for verdict in alike for each in verdict.evidence))
    others = tuple(dict.fromkeys(each for verdict in alike for each in verdict.other_evidence or verdict.evidence))
    other_evidence = others if others != ids and lines_restored_right(others) else ()
    return _doubt(worst.outcome, ids) or replace(worst, evidence=ids, other_evidence=other_evidence)
