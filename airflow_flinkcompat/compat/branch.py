"""The branch that a gate takes for a report, for branching tasks and for previews."""

from __future__ import annotations

from airflow_flinkcompat.compat.migration_report import MIGRATED_LINES
from airflow_flinkcompat.compat.report import Report
from airflow_flinkcompat.model import Outcome, Policy

_STOPS_THE_JOB = ("resume", "migrate", "restart")
_NOT_KNOWN = "not known"


def is_unchanged(report: Report) -> bool:
    """True if nothing changed that matters to a running job."""
    return bool(report.findings) and all(finding.rule == "unchanged" for finding in report.findings)


def kept_by_migration(report: Report) -> str | None:
    """Share of the state that a migration keeps.

    Parts that a migration cannot see are left to a person, so it is never whole then.
    """
    if report.migration is None:
        return None
    kept, line = str(report.migration.kept), ".".join(report.engine_version.split(".")[:2])
    return "partial" if kept == "whole" and (report.unseen or line not in MIGRATED_LINES) else kept


def branch_of(report: Report, policy: Policy, *, migrates: bool) -> str:
    """The branch of a change that is not unchanged."""
    branch = _with_waivers(report, policy, policy_branch(report, policy, migrates=migrates))
    branch = _for_empty_sinks(report, policy, branch)
    # No start of what Flink refuses succeeds: nothing is stopped for it without a person.
    return "approve" if report.is_refused and branch in _STOPS_THE_JOB else branch


def _with_waivers(report: Report, policy: Policy, branch: str) -> str:
    """The branch of a report with waivable findings.

    A partial change only starts metrics from zero: if that is waived, the rest decides. A waiver does not make state
    fit. It lifts a rejection, and a person decides with the waiver in view.
    """
    if report.gate_outcome is report.outcome:
        return branch
    without = policy.branch_for(report.gate_outcome)
    if report.outcome is Outcome.PARTIAL:
        return without
    return "approve" if branch == "reject" and without != "reject" else branch


def policy_branch(report: Report, policy: Policy, *, migrates: bool) -> str:
    """The branch that a policy alone names; the arguments are those of :func:`branch_of`."""
    if report.outcome is not Outcome.INCOMPATIBLE:
        return _for_empty_sinks(report, policy, str(policy.branch_for(report.outcome)))
    kept = kept_by_migration(report) or (_NOT_KNOWN if report.migration_is_unknown else "none")
    return _for_empty_sinks(report, policy, _of_incompatible(policy, kept, migrates=migrates))


def _for_empty_sinks(report: Report, policy: Policy, branch: str) -> str:
    """The branch of a change after which a keyed sink lacks the keys that do not change any more."""
    asks = report.sinks_begin_empty and branch in ("resume", "migrate") and policy.sink_begins_empty != "resume"
    return policy.sink_begins_empty if asks else branch


def planner_decides(report: Report, policy: Policy, *, migrates: bool) -> bool:
    """True if the branch depends on the state that a migration keeps, which only Flink's planner knows."""
    branches = {_of_incompatible(policy, kept, migrates=migrates) for kept in ("whole", "partial", "none")}
    return report.migration_is_unknown and len(branches) > 1


def _of_incompatible(policy: Policy, kept: str, *, migrates: bool) -> str:
    """The branch of an incompatible change; keepable state is discarded only if the policy states it."""
    branch = str(policy.branch_for(Outcome.INCOMPATIBLE, kept if migrates else None))
    if branch != "restart" or kept == "none":
        return branch
    of_kept = {"whole": {policy.migratable}, "partial": {policy.partly_migratable}}
    return "restart" if of_kept.get(kept, set().union(*of_kept.values())) == {"restart"} else "approve"
