"""Decision if a proposed version needs a check, based on the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy import LedgerEntry
    from airflow_flinkcompat.deploy.ledger.entries import PlannedEntry
    from airflow_flinkcompat.model import JobSpec

# A version is not offered again if the latest entry about it is of one of these kinds.
_TURNED_DOWN = ("rejected", "failed", "unchanged")


@dataclass(frozen=True)
class Offer:
    """Decision about a proposed version, with its reason.

    ``problem`` is True if a person must fix something first.
    ``plan`` is the pending plan of this version, if any.
    """

    offered: bool
    reason: str
    problem: bool = False
    plan: PlannedEntry | None = None


def offer_of(side: JobSpec, entries: Sequence[LedgerEntry]) -> Offer:
    """Decide from the ledger's entries (oldest first) if ``side`` is offered; ignores the side's engine."""
    from airflow_flinkcompat.deploy.redeploy.planning import pending_plans

    name = side.source
    head = next((entry for entry in reversed(entries) if entry.is_head), None)
    if head is not None and _is_about(head, side):
        return Offer(False, f"{name} equals entry {head.number}, deployed at {head.at}")
    last = next((entry for entry in reversed(entries) if _reports_result(entry) and _is_about(entry, side)), None)
    if last is not None and last.kind in _TURNED_DOWN:
        return Offer(
            False,
            f"this version of {name} is not offered again ({last.kind} at {last.at}): {last.message.rstrip('.')}. "
            "Waiting until it changes",
        )
    plan = next((each for each in pending_plans(entries) if _is_about(each, side)), None)
    if plan is not None:
        reason = (
            f"this version of {name} is planned (entry {plan.number} at {plan.at}): waiting until it is carried out"
        )
        return Offer(False, reason, plan=plan)
    if head is None:
        return Offer(True, f"nothing is deployed yet: {name} is a new version")
    return Offer(True, f"{name} differs from entry {head.number}, deployed at {head.at}")


def was_checked(side: JobSpec, entries: Sequence[LedgerEntry]) -> bool:
    """True if the last check since the last deployment judged ``side``, so a run handles this version."""
    from airflow_flinkcompat.deploy.ledger.entries import CheckedEntry

    last = next((entry for entry in reversed(entries) if entry.is_head or isinstance(entry, CheckedEntry)), None)
    return isinstance(last, CheckedEntry) and _is_about(last, side)


def _reports_result(entry: LedgerEntry) -> bool:
    """True if an entry may report the result of a version; findings, such as checks, and claims do not."""
    from airflow_flinkcompat.deploy.ledger.entries import DeployingEntry, FindingEntry

    return not isinstance(entry, FindingEntry | DeployingEntry)


def _is_about(entry: LedgerEntry, side: JobSpec) -> bool:
    """True if an entry describes this version. The job's content is compared, or else the digest."""
    from airflow_flinkcompat.deploy.ledger.entries import JobVersion, StepEntry

    if isinstance(entry, StepEntry):
        return _content(entry.job) == _content(side)
    noted = JobVersion.from_dict(entry.to_dict())  # also for kinds of entries that a later version adds
    if not noted.sha256:
        return False
    as_noted = replace(side, engine=noted.engine or side.engine, engine_version=noted.engine_version)
    return as_noted.digest() == noted.sha256


def _content(side: JobSpec) -> tuple[Any, ...]:
    functions = sorted((f.name, f.kind, f.language, f.definition) for f in side.functions)
    # Jinja drops the last line break, which a script adopted on the command line still has.
    text = side.script.rstrip()
    inputs = dict(side.variables), dict(side.files), dict(side.settings)
    return side.language, text, inputs, functions, side.catalog.rstrip()
