"""The verdict on stored state after a change, with its evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_flinkcompat.compat.evidence import lines_restored_right, unknown_ids
from airflow_flinkcompat.model import Basis, Consequence, Outcome, Reason


class Remedy(StrEnum):
    """An option or clause that settles a finding, or keeps state that would otherwise be lost."""

    PARALLELISM_ONE = "parallelism 1"
    RESTART_SOURCE = "restart source"
    EXPLAIN_PLAN = "explain plan"
    ON_CONFLICT = "ON CONFLICT"


UNCHANGED = ("w-unchanged", "inserts-unchanged", "sinks-unchanged", "t-unchanged")
"""Ids of restores of unchanged jobs: the evidence for parts that affect no job."""


SAFE = (Outcome.COMPATIBLE, Outcome.PARTIAL)
"""Outcomes that, for open-source Flink, require a measurement on the job's own version."""


@dataclass(frozen=True)
class Verdict:
    """A rule's answer for one engine.

    ``source`` names the row of the vendor's document, or describes the measurements. ``evidence`` contains the ids of
    restores (:mod:`~airflow_flinkcompat.compat.evidence`), which determine the versions. ``other_evidence`` contains
    restores with the same result, for versions on which the restores in ``evidence`` were not run. ``remedy`` settles
    an unknown verdict, or keeps the rest of the state.
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
            raise ValueError("an unknown verdict must have a reason, and other verdicts must have none")
        if self.basis is Basis.MEASURED and not self.evidence:
            raise ValueError("a measured verdict must name its restores")
        if self.evidence and self.outcome in SAFE and not self.versions:
            raise ValueError(f"{', '.join(self.evidence)}: no line of Flink restored all of them right")

    @property
    def versions(self) -> tuple[str, ...]:
        """The lines of Flink on which every restore of the evidence was right."""
        lines = (*lines_restored_right(self.evidence), *lines_restored_right(self.other_evidence))
        return tuple(dict.fromkeys(lines))

    @property
    def grounds(self) -> str:
        """Description of the evidence: the document row, or the ids of restores with a remark."""
        ids = ", ".join(self.evidence)
        if not ids or not self.source:
            return ids or self.source
        return f"{ids}: {self.source}" if self.basis is Basis.MEASURED else f"{self.source} ({ids})"

    def on_line(self, line: str) -> Verdict:
        """The verdict on one line of open-source Flink: unknown without a safe restore on that line."""
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
    """A verdict from a row of the vendor's documents; ``reason`` is only for a documented unknown."""
    return Verdict(outcome, Basis.DOCUMENT, row, reason if outcome is Outcome.UNKNOWN else None)


def measured(outcome: Outcome, *ids: str, note: str = "", consequence: Consequence | None = None) -> Verdict:
    """A verdict that was measured on a real Flink."""
    return _doubt(outcome, ids) or Verdict(outcome, Basis.MEASURED, note, None, consequence, ids)


def right(*ids: str, note: str = "") -> Verdict:
    """Compatible, as measured in these restores."""
    return measured(Outcome.COMPATIBLE, *ids, note=note)


def wrong(*ids: str, note: str = "", consequence: Consequence | None = Consequence.SILENTLY_WRONG) -> Verdict:
    """Incompatible, as measured in these restores."""
    return measured(Outcome.INCOMPATIBLE, *ids, note=note, consequence=consequence)


def refused(*ids: str, note: str = "") -> Verdict:
    """Refused at restore because the state layout differs."""
    return wrong(*ids, note=note, consequence=Consequence.REFUSED_AT_RESTORE)


def refused_at_submit(*ids: str, note: str = "") -> Verdict:
    """Refused at submit because the topology differs."""
    return wrong(*ids, note=note, consequence=Consequence.REFUSED_AT_SUBMIT)


def expected(why: str, consequence: Consequence | None = Consequence.REFUSED_AT_SUBMIT) -> Verdict:
    """Incompatible by reasoning about Flink's planner or state; no committed restore shows the result."""
    return Verdict(Outcome.INCOMPATIBLE, Basis.INFERRED, why, consequence=consequence)


def unknown(why: str = "", reason: Reason = Reason.NOT_COVERED) -> Verdict:
    """An unknown verdict. The default reason is that no document and no restore covers the case."""
    return Verdict(Outcome.UNKNOWN, Basis.INFERRED, why, reason)


def inferred(
    outcome: Outcome,
    source: str = "",
    ids: tuple[str, ...] = (),
    other_evidence: tuple[str, ...] = (),
) -> Verdict:
    """A verdict without a document or measurement. An unknown outcome has the reason *not covered*."""
    reason = Reason.NOT_COVERED if outcome is Outcome.UNKNOWN else None
    doubt = _doubt(outcome, ids) or _doubt(outcome, other_evidence)
    return doubt or Verdict(outcome, Basis.INFERRED, source, reason, evidence=ids, other_evidence=other_evidence)


def _doubt(outcome: Outcome, ids: tuple[str, ...]) -> Verdict | None:
    """The unknown verdict that replaces an outcome with too little evidence; None for enough evidence."""
    why = ""
    if absent := unknown_ids(ids):
        why = f"{', '.join(absent)}: no restore has this id"
    elif ids and outcome in SAFE and not lines_restored_right(ids):
        why = f"{', '.join(ids)}: no version restored all of them right"
    return unknown(why) if why else None


def compatible_engines(**verdicts: Verdict) -> tuple[str, ...]:
    """Engines on which a rule's verdict is *compatible*; the verdict on a single match may be worse."""
    return tuple(engine for engine, verdict in verdicts.items() if verdict.outcome is Outcome.COMPATIBLE)


def combined(verdicts: Iterable[Verdict]) -> Verdict:
    """Combine verdicts into the worst. Safe verdicts remain safe only on lines where all of them are safe."""
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
