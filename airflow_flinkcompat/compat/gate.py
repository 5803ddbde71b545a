"""The gate: waivers of findings with their validity today, and the DAG branch for a report.

A waiver leaves the verdict unchanged. The report still contains a waived finding with its outcome, but the gate decides
by the other findings (:attr:`Report.gate_outcome`). A waiver is bound to the deployed version and to the finding's full
text. A waiver therefore applies neither to a different change nor to a changed verdict.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from unicodedata import category

from airflow_flinkcompat.compat import single_script
from airflow_flinkcompat.compat.migration_report import MIGRATED_LINES
from airflow_flinkcompat.compat.report import REFUSALS, Finding, Report
from airflow_flinkcompat.model import AppliedWaiver, Consequence, JobSpec, Outcome, Policy, Waiver, WaiverState
from airflow_flinkcompat.model.engine import line_of
from airflow_flinkcompat.secrets import mask_secrets

_NO_RESTORE = {*REFUSALS, *(rule.code for rule in single_script.RULES)}
"""Rules whose findings mean that no savepoint is restored at all."""


@dataclass(frozen=True)
class ChangeIdentity:
    """Digests of both sides of a change, independent of the engine.

    Attributes:
        deployed: The digest of the deployed version; "" if only one script was checked.
        proposed: The digest of the proposed version.
    """

    deployed: str
    proposed: str

    @classmethod
    def of(cls, old: JobSpec | None, new: JobSpec | None) -> ChangeIdentity:
        """The identity of the change from ``old`` to ``new``."""
        return cls(*map(_side_digest, (old, new)))

    @classmethod
    def of_script(cls, side: JobSpec) -> ChangeIdentity:
        """The identity of a script that is checked alone."""
        return cls("", _side_digest(side))


def finding_digest(finding: Finding, engine: str, change: ChangeIdentity) -> str:
    """Digest of a finding. A waiver is bound to this digest and to the deployed version."""
    row = finding.to_dict()
    for span in (finding.before_span, finding.after_span):  # a changed line number must not change the digest
        row["message"] = row["message"].removeprefix(f"{span}: ")
    keys = ("rule", "outcome", "message", "before", "after", "reason", "consequence", "sink", "operator")
    whole = "" if finding.before or finding.after else change.proposed
    return _digest([engine, *(row[key] for key in keys), whole])


def may_restore_wrongly(finding: Finding) -> bool:
    """True if a job restored despite the finding may write wrong rows without an error."""
    if finding.consequence is not None:
        return finding.consequence is Consequence.SILENTLY_WRONG
    return finding.outcome is Outcome.INCOMPATIBLE and finding.rule not in _NO_RESTORE


def is_waivable(finding: Finding) -> bool:
    """True if a waiver can apply: the finding is not compatible, and the script was not deleted."""
    return finding.outcome is not Outcome.COMPATIBLE and finding.rule != single_script.REMOVED.code


@dataclass(frozen=True)
class WaivedReports:
    """Reports with their waivers, and a remark on each waiver that matches no finding."""

    reports: tuple[Report, ...]
    notes: tuple[str, ...] = ()


def apply_waivers(
    reports: Sequence[Report],
    waivers: Sequence[Waiver],
    change: ChangeIdentity,
    today: date,
    named: tuple[str, str] = ("", "NAME"),
) -> WaivedReports:
    """Apply the waivers of a script to the reports on one change."""
    own = [
        replace(each, by=_printable(each.by), reason=_printable(each.reason))
        for each in waivers
        if not (each.deployment and named[0]) or each.deployment == named[0]
    ]
    if not own:
        return WaivedReports(tuple(reports))
    if any(report.environments > 1 for report in reports):
        why = (
            "no waiver applies: the program was judged for several possible environments, and only the worst result "
            "is reported; pass --var for the values that the program reads from its environment"
        )
        return WaivedReports(tuple(reports), (why,))
    used: set[int] = set()
    found = tuple(_applied(report, own, change, today, used) for report in reports)
    engines = {report.engine for report in reports}
    ended = (each for each in own if id(each) not in used and each.engine in engines and _may_have_ended(each, change))
    return WaivedReports(found, tuple(dict.fromkeys(_note(each, found, change, named[1]) for each in ended)))


def _printable(text: str) -> str:
    """Text of a waiver with secrets masked and without terminal control characters."""
    return mask_secrets("".join("\ufffd" if category(each) == "Cc" and each not in "\t\r\n" else each for each in text))


def _applied(report: Report, waivers: Sequence[Waiver], change: ChangeIdentity, today: date, used: set[int]) -> Report:
    def waiver_of(finding: Finding) -> AppliedWaiver | None:
        if not is_waivable(finding):
            return None
        digest = finding_digest(finding, report.engine, change)
        matching = [
            each
            for each in waivers
            if (each.engine, each.finding_sha256) == (report.engine, digest)
            and change.deployed in ("", each.deployed_sha256)
        ]
        used.update(map(id, matching))
        states = [AppliedWaiver(each, _state(each, finding, today)) for each in matching]
        # Prefer a valid waiver, then the waiver that expires last.
        return max(states, key=lambda each: (each.state is WaiverState.HOLDS, each.waiver.until), default=None)

    findings = tuple(replace(finding, waiver=waiver_of(finding)) for finding in report.findings)
    waived = {finding.rule for finding in findings if finding.is_waived}
    # A waived finding no longer overrules other findings, so these become decisive again.
    return replace(
        report,
        findings=tuple(
            replace(finding, overruled_by="")
            if finding.overruled_by in waived and finding.outcome is not Outcome.COMPATIBLE
            else finding
            for finding in findings
        ),
    )


def _state(waiver: Waiver, finding: Finding, today: date) -> WaiverState:
    if waiver.until < today:
        return WaiverState.EXPIRED
    if may_restore_wrongly(finding) and not waiver.even_silently_wrong:
        return WaiverState.FLAG_MISSING
    return WaiverState.HOLDS


def _may_have_ended(waiver: Waiver, change: ChangeIdentity) -> bool:
    """True if the check of this change can decide that a waiver has ended.

    A waiver for a script without a deployed version concerns only a check of the script alone or of a new deployment.
    The check of a script alone cannot decide if a waiver of a change has ended.
    """
    if waiver.deployed_sha256 == single_script.NO_SCRIPT:
        return change.deployed in ("", single_script.NO_SCRIPT)
    return bool(change.deployed)


def _note(waiver: Waiver, reports: Iterable[Report], change: ChangeIdentity, name: str) -> str:
    """Remark about a waiver that matches no finding."""
    waived = f"the waiver of {waiver.rule} ({waiver.subject}) by {waiver.by}"
    remedy = f"remove it with: flinkcompat accept {name} {waiver.rule} --subject {shlex.quote(waiver.subject)} --remove"
    again = any(
        (finding.rule, finding.subject) == (waiver.rule, waiver.subject) and is_waivable(finding)
        for report in reports
        for finding in report.findings
    )
    if again:
        what = "change" if change.deployed else "script"
        return (
            f"{waived} does not apply: it is for a different {what}, or for a different verdict on this {what}; "
            f"{remedy}"
        )
    if not change.deployed:
        return f"{waived} has ended: the script no longer has the waived finding; {remedy}"
    if waiver.deployed_sha256 != change.deployed:
        return f"{waived} has ended: it is for a different deployed version; {remedy}"
    return f"{waived} has ended: the change no longer has the waived finding; {remedy}"


def waiver_lines(reports: Iterable[Report]) -> tuple[str, ...]:
    """Lines about waivers that follow the verdict in a report."""
    applied = [(finding, finding.waiver) for report in reports for finding in report.findings if finding.waiver]
    ordered = sorted(applied, key=lambda each: each[1].state is not WaiverState.HOLDS)
    return tuple(dict.fromkeys(_line(finding, waiver) for finding, waiver in ordered))


def _line(finding: Finding, applied: AppliedWaiver) -> str:
    waiver = applied.waiver
    waived = f"{finding.rule} ({finding.subject})"
    by, reason = (" ".join(text.split()) for text in (waiver.by, waiver.reason))
    match applied.state:
        case WaiverState.EXPIRED:
            ended = (
                f"expired on {waiver.until} and no longer applies (renew or remove the waiver with flinkcompat accept)"
            )
            return f"The waiver of {waived} by {by} {ended}: {reason}"
        case WaiverState.FLAG_MISSING:
            return (
                f"The waiver of {waived} by {by} does not apply: it lacks even_silently_wrong = true. {_wrong(finding)}"
            )
    wrong = f" {_wrong(finding)}" if may_restore_wrongly(finding) else ""
    return f"Waived by {by} until {waiver.until}: {waived}: {reason.rstrip('.')}.{wrong}"


def _wrong(finding: Finding) -> str:
    """Warning about the result of a restore."""
    if finding.consequence is Consequence.SILENTLY_WRONG:
        return "IF IT WERE RESUMED, FLINK WOULD KEEP RUNNING WITH WRONG ROWS AND NO ERROR."
    return "IF IT WERE RESUMED, IT MIGHT KEEP RUNNING WITH WRONG ROWS AND NO ERROR: the result is unknown."


def waivers_held(reports: Iterable[Report]) -> Iterator[Waiver]:
    """The waivers that are valid for a finding, each once."""
    applied = (finding.waiver for report in reports for finding in report.waived)
    yield from dict.fromkeys(each.waiver for each in applied if each is not None)


def utc_day() -> date:
    """The current day in UTC, the same for all users."""
    return datetime.now(UTC).date()


def _side_digest(side: JobSpec | None) -> str:
    return single_script.NO_SCRIPT if side is None else _digest(side.part_digests())


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


_STOPS_THE_JOB = ("resume", "migrate", "restart")
_NOT_KNOWN = "not known"


def is_unchanged(report: Report) -> bool:
    """True if no change matters to a running job."""
    return bool(report.findings) and all(finding.rule == "unchanged" for finding in report.findings)


def kept_by_migration(report: Report) -> str | None:
    """Share of the state that a migration keeps: ``whole``, ``partial``, ``none``, or None if unknown.

    If the change has parts that a migration cannot detect, the share is at most ``partial``, so that a person decides.
    """
    if report.migration is None:
        return None
    kept, line = str(report.migration.kept), line_of(report.engine_version)
    return "partial" if kept == "whole" and (report.unseen or line not in MIGRATED_LINES) else kept


def branch_of(report: Report, policy: Policy, *, migrates: bool) -> str:
    """The DAG branch for a report with changes."""
    branch = _with_waivers(report, policy, policy_branch(report, policy, migrates=migrates))
    branch = _for_empty_sinks(report, policy, branch)
    # Flink refuses the new script, so no start can succeed. A job is then stopped only after approval.
    return "approve" if report.is_refused and branch in _STOPS_THE_JOB else branch


def _with_waivers(report: Report, policy: Policy, branch: str) -> str:
    """The branch of the DAG if waivers are applied.

    A partial change only starts metrics from zero. If the findings of a partial change are waived, the other findings
    select the branch. A waiver of an incompatible finding cannot make the state fit. The waiver only turns a rejection
    into an approval by a person, who sees the waiver.
    """
    if report.gate_outcome is report.outcome:
        return branch
    without = policy.branch_for(report.gate_outcome)
    if report.outcome is Outcome.PARTIAL:
        return without
    return "approve" if branch == "reject" and without != "reject" else branch


def policy_branch(report: Report, policy: Policy, *, migrates: bool) -> str:
    """The branch by the policy alone, without waivers; same arguments as :func:`branch_of`."""
    if report.outcome is not Outcome.INCOMPATIBLE:
        return _for_empty_sinks(report, policy, str(policy.branch_for(report.outcome)))
    kept = kept_by_migration(report) or (_NOT_KNOWN if report.migration_is_unknown else "none")
    return _for_empty_sinks(report, policy, _of_incompatible(policy, kept, migrates=migrates))


def _for_empty_sinks(report: Report, policy: Policy, branch: str) -> str:
    """The branch if the policy for keyed sinks that begin without their former rows is applied."""
    asks = report.sinks_begin_empty and branch in ("resume", "migrate") and policy.sink_begins_empty != "resume"
    return policy.sink_begins_empty if asks else branch


def planner_decides(report: Report, policy: Policy, *, migrates: bool) -> bool:
    """True if the branch depends on the state that a migration keeps, and this state is still unknown."""
    branches = {_of_incompatible(policy, kept, migrates=migrates) for kept in ("whole", "partial", "none")}
    return report.migration_is_unknown and len(branches) > 1


def _of_incompatible(policy: Policy, kept: str, *, migrates: bool) -> str:
    """The branch of an incompatible change. Only an explicit policy discards state that could be kept."""
    branch = str(policy.branch_for(Outcome.INCOMPATIBLE, kept if migrates else None))
    if branch != "restart" or kept == "none":
        return branch
    of_kept = {"whole": {policy.migratable}, "partial": {policy.partly_migratable}}
    return "restart" if of_kept.get(kept, set().union(*of_kept.values())) == {"restart"} else "approve"
