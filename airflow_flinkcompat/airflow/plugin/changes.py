"""One change: a proposed version next to the version in force, its verdict, and its result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_flinkcompat.airflow.plugin import models, views
from airflow_flinkcompat.airflow.plugin.ledgers import NamedLedger, Rights, Writer
from airflow_flinkcompat.deploy.ledger.entries import (
    ApprovedEntry,
    CheckedEntry,
    DecisionEntry,
    HeadEntry,
    LedgerEntry,
    RejectedEntry,
    RolledBackEntry,
    RollingBackEntry,
    ShadowedEntry,
    StepEntry,
    VersionEntry,
)
from airflow_flinkcompat.deploy.ledger.listing import masked_values
from airflow_flinkcompat.deploy.ledger.status import APPROVE, DeploymentRow
from airflow_flinkcompat.deploy.ledger.store import LedgerError
from airflow_flinkcompat.deploy.shadow.question import finding, headline, last_shadow_run, meaning
from airflow_flinkcompat.secrets import mask_secrets


def version_of(entry: LedgerEntry) -> str | None:
    """Digest of the version that an entry is about; None if the entry is about no version."""
    if isinstance(entry, StepEntry):
        return entry.sha256
    return entry.version.sha256 if isinstance(entry, VersionEntry) else None


@dataclass(frozen=True)
class Proposal:
    """Entries about one proposed version, from one check to the next check of the version."""

    sha256: str
    checked: CheckedEntry | None
    former: HeadEntry | None
    entries: tuple[LedgerEntry, ...]

    @classmethod
    def at(cls, entries: Sequence[LedgerEntry], number: int) -> Proposal | None:
        """The proposal to which the ledger entry with a number belongs."""
        anchor = next((each for each in entries if each.number == number), None)
        sha256 = version_of(anchor) if anchor else None
        if not sha256:
            return None
        about = [each for each in entries if version_of(each) == sha256]
        checks = [each for each in about if isinstance(each, CheckedEntry)]
        checked = next((each for each in reversed(checks) if each.number <= number), None)
        heads = [each for each in entries if isinstance(each, HeadEntry)]
        # Without a check: all entries about the version since the last head that precedes the entry.
        since = max((each.number for each in heads if each.number < number), default=0) + 1
        first = checked.number if checked else next(each.number for each in about if each.number >= since)
        end = next((each.number for each in checks if each.number > number), None)
        own = tuple(each for each in about if first <= each.number and (end is None or each.number < end))
        former = next((each for each in reversed(heads) if each.number < first), None)
        return cls(sha256, checked, former, own)

    def decision(self, entries: Sequence[LedgerEntry], name: str, rights: Rights) -> models.Decision:
        row = DeploymentRow(name).after_all(entries)
        decision = next((each for each in self.entries if isinstance(each, ApprovedEntry | RejectedEntry)), None)
        if decision is not None:
            facts = views.history_entry(decision, rights)
            return models.Decision(
                state="approved" if isinstance(decision, ApprovedEntry) else "rejected",
                number=decision.number,
                by=facts.approved_by,
                at=facts.at,
                reason=facts.reason,
                message=facts.message,
                run=facts.run,
            )
        asked = any(each.branch == APPROVE for each in self.entries if isinstance(each, CheckedEntry | ShadowedEntry))
        waits = row.pending is not None and self.checked is not None and row.pending.number == self.checked.number
        run = views.history_entry(self.checked, rights).run if self.checked else None
        nothing: dict[str, Any] = dict.fromkeys(("number", "by", "at", "reason"))
        return models.Decision(
            state="waiting" if waits else "not decided" if asked else "not asked",
            message="",
            run=run,
            **nothing,
        )


def change(
    ledger: NamedLedger, name: str, entries: Sequence[LedgerEntry], proposal: Proposal, rights: Rights
) -> models.ChangePage:
    """A change with its report and both versions, without entries that the user may not read."""
    former = proposal.former if proposal.former and rights.reads_entry(proposal.former) else None
    readable = [each for each in proposal.entries if rights.reads_entry(each)]
    report, proposed, error = _report(ledger, name, proposal.sha256, readable)
    held = views.job_held(readable, proposal.sha256)
    new = views.job_version(*held) if held else proposed
    advice = _advice(report, ledger, name, former)
    return models.ChangePage(
        ledger=ledger.id,
        deployment=name,
        number=proposal.entries[0].number,
        sha256=proposal.sha256,
        checked=views.history_entry(proposal.checked, rights) if proposal.checked else None,
        old_number=proposal.former.number if proposal.former else None,
        old=views.job_version(former.job, former.number) if former else None,
        new=new,
        report=report,
        report_error=error,
        shadow=_shadow_run(readable, proposal.sha256),
        next_steps=advice.next_steps,
        answers=advice.answers,
        if_resumed=advice.if_resumed,
        decision=proposal.decision(entries, name, rights),
        entries=[views.history_entry(each, rights) for each in proposal.entries],
    )


def _report(
    ledger: NamedLedger, name: str, sha256: str, entries: Iterable[LedgerEntry]
) -> tuple[dict[str, Any] | None, models.VersionTexts | None, str | None]:
    """The report, the version stored with it, and the error if the report cannot be read."""
    kinds = (CheckedEntry, DecisionEntry, StepEntry)
    reviews = [each.review for each in entries if isinstance(each, kinds)]
    path = next((each.report_path for each in reviews if each.report_path), None)
    if path is None:
        return None, None, None
    opened = ledger.open(name)
    try:
        report, _ = opened.read_report(path)
        stored = opened.read_proposed(path)
    except LedgerError as error:
        return None, None, mask_secrets(str(error))
    return masked_values(report), None if stored is None else views.job_version(stored, sha256=sha256), None


def _shadow_run(entries: Iterable[LedgerEntry], sha256: str) -> models.ShadowedVersion | None:
    entry = last_shadow_run(entries, sha256)
    if entry is None:
        return None
    return models.ShadowedVersion(
        number=entry.number,
        at=entry.at,
        headline=mask_secrets(headline(entry)),
        finding=finding(entry),
        meaning=meaning(entry),
        result=masked_values(entry.shadow),
    )


@dataclass(frozen=True)
class _Advice:
    """Advice from a report."""

    next_steps: list[models.NextStep] = field(default_factory=list)
    answers: list[models.AnswerItem] = field(default_factory=list)
    if_resumed: list[str] = field(default_factory=list)


def _advice(report: dict[str, Any] | None, ledger: NamedLedger, name: str, former: HeadEntry | None) -> _Advice:
    """Advice from a report and the context of its check; empty if this release cannot read the report."""
    from airflow_flinkcompat.compat import Report, ReportContext
    from airflow_flinkcompat.compat.reports.advice import if_resumed, possible_answers, steps

    if report is None:
        return _Advice()
    try:
        verdict = Report.from_dict(report)
        known = ReportContext.from_dict(report["context"]) if "context" in report else None
    except (KeyError, ValueError, TypeError):
        return _Advice()
    # Reports of earlier releases have no context.
    known = known or ReportContext(
        deployment=name,
        job_id=(former.job_id if former else None) or "",
        entry=former.number if former else 0,
        takes_commands=ledger.takes_commands,
    )
    return _Advice(
        next_steps=[
            models.NextStep(
                text=mask_secrets(each.text),
                commands=[mask_secrets(line) for line in each.commands],
                language=each.language,
            )
            for each in steps(verdict, known)
        ],
        answers=[
            models.AnswerItem(branch=each.branch, text=mask_secrets(each.text))
            for each in possible_answers(verdict, known)
        ],
        if_resumed=[mask_secrets(line) for line in if_resumed(verdict)],
    )


def proposals_of_run(
    entries: Sequence[LedgerEntry], dag_id: str, run_id: str, task_id: str | None = None
) -> tuple[Proposal, ...]:
    """The proposed versions about which a DAG run wrote ledger entries, oldest first."""
    found: dict[str, int] = {}
    for entry in entries:
        writer, sha256 = Writer.of(entry.owner), version_of(entry)
        ours = writer is not None and (writer.dag_id, writer.run_id) == (dag_id, run_id)
        if writer is None or not ours or not sha256 or task_id not in (None, writer.task_id):
            continue
        # The steps of a rollback contain the former version, which is not the subject of the run.
        if isinstance(entry, RollingBackEntry | RolledBackEntry):
            continue
        found[sha256] = entry.number
    proposals = (Proposal.at(entries, number) for number in found.values())
    return tuple(each for each in proposals if each is not None)
