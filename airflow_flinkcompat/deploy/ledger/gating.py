"""Entries of a gate, in a DAG and on the command line, and the status of the deployed job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from airflow_flinkcompat.deploy.ledger.entries import (
    CheckedEntry,
    DecisionEntry,
    FindingEntry,
    HeadEntry,
    JobVersion,
    LedgerEntry,
    Origin,
    RejectedEntry,
    Review,
    UnchangedEntry,
)
from airflow_flinkcompat.deploy.ledger.ledger import Ledger
from airflow_flinkcompat.deploy.ledger.status import Progress
from airflow_flinkcompat.deploy.target import JobRef

E = TypeVar("E", bound=LedgerEntry)


def record_check(
    ledger: Ledger,
    version: JobVersion,
    review: Review,
    origin: Origin,
    *,
    branch: str,
    policy: str | None,
    against: int,
    owner: str,
    notes: Sequence[str] = (),
) -> CheckedEntry:
    """Record a check and its decision, unless this run has already recorded them.

    Args:
        ledger: The ledger of the deployment.
        version: The proposed version.
        review: The outcome, report and waivers of the check.
        origin: Commit, author and owners of the version.
        branch: The chosen branch. ``unchanged`` and ``reject`` are decisions.
        policy: The branch that the policy alone chooses; None if the policy was not used.
        against: The number of the entry with the old version; 0 if nothing is deployed.
        owner: The run that writes the entries.
        notes: More sentences for the entry's message.

    Returns:
        The entry of the check.

    Raises:
        LedgerError: The ledger cannot be read or written.
    """
    words = f"{review.outcome}: against the version of entry {against}" if against else _FIRST
    message = "; ".join((words, *notes))
    entry = CheckedEntry(
        version=version, review=review, origin=origin, branch=branch, policy=policy, message=message, owner=owner
    )
    checked = _recorded(entry, ledger.in_force()) or ledger.append(entry)
    if branch in _DECISIONS:
        kind, words = _DECISIONS[branch]
        message = f"{words}: the check found it {review.outcome}"
        append_once(ledger, kind(version=version, review=review, message=message, owner=owner))
    return checked


_FIRST = "not compared: nothing is deployed yet"
_DECISIONS: dict[str, tuple[type[DecisionEntry], str]] = {
    "unchanged": (UnchangedEntry, "nothing to deploy"),
    "reject": (RejectedEntry, "rejected by the policy"),
}
"""Entry and message of the branches that need no redeploy."""


def _recorded(entry: CheckedEntry, entries: Sequence[LedgerEntry]) -> CheckedEntry | None:
    """The equal check that this run has already recorded; None if it is missing or a later step followed."""
    for other in reversed(entries):
        if isinstance(other, CheckedEntry):
            return other if _unnumbered(replace(other, message=entry.message)) == entry else None
        own = isinstance(other, DecisionEntry) and other.owner == entry.owner
        if not (own or isinstance(other, FindingEntry)):
            return None
    return None


def append_once(ledger: Ledger, entry: LedgerEntry) -> None:
    """Append an entry, unless an equal entry follows the deployed version."""
    if entry not in map(_unnumbered, ledger.in_force()):
        ledger.append(entry)


def _unnumbered(entry: E) -> E:
    return replace(entry, number=0, at="", passes_over=())


def is_in_force(ledger: Ledger, head: HeadEntry, runs: Callable[[JobRef], bool]) -> bool:
    """True if no redeploy is unfinished, and the deployed job runs according to ``runs``."""
    if Progress.of(ledger.entries()).is_interrupted:
        return False
    return not head.job_id or runs(head.job_id)
