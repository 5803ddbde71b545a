"""Responses of the API for one user, from rows and entries, without facts that the user may not see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from airflow_flinkcompat.airflow.plugin import models
from airflow_flinkcompat.airflow.plugin.ledgers import NamedLedger, Rights, Writer
from airflow_flinkcompat.deploy.ledger.entries import (
    AdoptedEntry,
    DeployedEntry,
    DisposedEntry,
    FailedEntry,
    HeadEntry,
    LedgerEntry,
    MigratedEntry,
    OtherEntry,
    PlannedEntry,
    RolledBackEntry,
    RollingBackEntry,
    RunEntry,
    StartedEntry,
    StartEntry,
    StepEntry,
    StoppedEntry,
)
from airflow_flinkcompat.deploy.ledger.ledger import masked_job
from airflow_flinkcompat.deploy.ledger.listing import listed, masked_values
from airflow_flinkcompat.deploy.ledger.status import DeploymentRow, EntryRow, SavepointRow, last_savepoint
from airflow_flinkcompat.deploy.ledger.store import LedgerError
from airflow_flinkcompat.deploy.redeploy.run import Options
from airflow_flinkcompat.deploy.target import same_snapshot
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.secrets import mask_secrets

# Kind and message of an entry that the user may not read.
HIDDEN_KIND = "hidden"
HIDDEN = "an entry of a DAG that you may not read"
_SUMMARIES = ("entry", "unfinished", "pending", "checked", "failed")
# Keys of a stored entry that only the history of a deployment shows.
_HISTORY = tuple(
    name for name in models.HistoryEntry.model_fields if name not in models.EntrySummary.model_fields
)  # fmt: skip


def unfinished_state(row: DeploymentRow, now: datetime) -> Literal["in flight", "interrupted"] | None:
    if row.unfinished is None:
        return None
    silent_until = datetime.fromisoformat(row.unfinished.at) + timedelta(seconds=Options().claimed(row.unfinished))
    return "in flight" if now < silent_until else "interrupted"


def _writer(owner: str, rights: Rights) -> tuple[str, models.TaskOfRun | None]:
    """Owner and task of an entry; empty if the user may not read the DAG."""
    writer = Writer.of(owner)
    if writer is None:
        return owner, None
    if not rights.reads_dag(writer.dag_id):
        return "", None
    return owner, models.TaskOfRun(**asdict(writer))


def _summary(summary: dict[str, Any] | None, owner: str, rights: Rights) -> models.EntrySummary | None:
    if summary is None:
        return None
    writer, run = _writer(owner, rights)
    return models.EntrySummary(**{**summary, "owner": mask_secrets(writer), "run": run})


def _last_savepoint(savepoint: dict[str, Any] | None, rights: Rights) -> models.LastSavepoint | None:
    if savepoint is None or not any(map(rights.reads_owner, savepoint["owners"])):
        return None
    return models.LastSavepoint(**{name: savepoint[name] for name in models.LastSavepoint.model_fields})


def deployment(
    ledger: NamedLedger, name: str, row: DeploymentRow | LedgerError, rights: Rights, now: datetime | None = None
) -> models.DeploymentItem:
    """A deployment in the list."""
    facts = listed(name, row)
    readable = row if isinstance(row, DeploymentRow) else DeploymentRow(name)
    summaries = (readable.head, readable.unfinished, readable.pending, readable.checked, readable.failed)
    origin = readable.checked or readable.head
    return models.DeploymentItem(
        ledger=ledger.id,
        deployment=name,
        **{
            key: _summary(facts[key], each.owner if each else "", rights)
            for key, each in zip(_SUMMARIES, summaries, strict=True)
        },
        unfinished_state=unfinished_state(readable, now or datetime.now(UTC)),
        savepoint=_last_savepoint(facts["savepoint"], rights),
        error=facts["error"],
        team=_text(origin.team if origin else None),
        owned_by=_text(origin.owned_by if origin else None),
        dags=list(rights.known_dags(row)),
        job_url=ledger.job_url(readable.head.job_id) if readable.head else None,
    )


def _text(text: str | None) -> str | None:
    return None if text is None else mask_secrets(text)


def history_entry(entry: LedgerEntry, rights: Rights) -> models.HistoryEntry:
    """An entry with all fields except for texts; an unreadable entry becomes a placeholder."""
    if not rights.reads_entry(entry):
        entry = OtherEntry(row={"kind": HIDDEN_KIND}, number=entry.number, at=entry.at, message=HIDDEN)
    if isinstance(entry, OtherEntry):
        # Other keys of an entry that a later release wrote are unknown.
        entry = replace(entry, row={"kind": entry.kind})
    row = entry.to_dict()
    names = (*EntryRow.__dataclass_fields__, *_HISTORY)
    facts = masked_values({name: row[name] for name in names})
    writer, run = _writer(entry.owner, rights)
    return models.HistoryEntry(**{**facts, "owner": mask_secrets(writer), "run": run})


def job_version(job: JobSpec, number: int | None = None, *, sha256: str | None = None) -> models.VersionTexts:
    texts = masked_job(JobSpec.from_dict(job.to_dict())).to_dict()
    fields = {name: texts[name] for name in models.VersionTexts.model_fields if name in texts}
    return models.VersionTexts(number=number, **{**fields, "sha256": sha256 or job.digest()})


def redeploy(attempt: RedeploySteps, rights: Rights) -> models.Redeploy:
    first, last, proposed = attempt.steps[0], attempt.steps[-1], attempt.proposed
    again, start = attempt.runs_again, attempt.start
    return models.Redeploy(
        first=first.number,
        last=last.number,
        end=attempt.end,
        steps=[models.RedeployStep(number=each.number, kind=each.kind, at=each.at) for each in attempt.steps],
        began_at=first.at,
        ended_at=last.at,
        stopped_at=attempt.stopped.at if attempt.stopped else None,
        started_at=again.at if again else None,
        downtime_seconds=attempt.downtime_seconds,
        start_mode=start.start.start_mode if start else None,
        outcome=proposed.review.outcome,
        approved_by=_text(proposed.review.approved_by),
        reason=_text(proposed.review.reason),
        sha256=proposed.sha256,
        job_id=start.start.job_id if start else None,
        message=mask_secrets(last.message),
        run=_writer(last.owner, rights)[1],
    )


def savepoint(found: Lineage, head: HeadEntry | None, rights: Rights) -> models.Savepoint:
    """A savepoint and the starts from it, as far as the user may see them; ``head`` is the present head."""
    path, migrated = found.savepoint.path, found.migrated
    return models.Savepoint(
        path=mask_secrets(path),
        bytes=found.savepoint.bytes,
        taken_at=found.savepoint.taken_at,
        stopped=found.stopped.number,
        left_by=found.left_by.number if found.left_by else None,
        migrated_to=_text(migrated.migrated_to) if migrated and rights.reads_entry(migrated) else None,
        starts=[
            models.SavepointStart(
                number=each.number,
                at=each.at,
                kind=each.kind if rights.reads_entry(each) else HIDDEN_KIND,
                job_id=each.job_id if rights.reads_entry(each) else None,
                migrated=same_snapshot(each.start.migrated_from, path),
            )
            for each in found.starts
        ],
        disposed=found.disposed.number if found.disposed else None,
        way_back=head is not None and found.disposed is None and same_snapshot(head.start.way_back, path),
    )


def deployment_page(
    ledger: NamedLedger, name: str, entries: Sequence[LedgerEntry], rights: Rights, now: datetime | None = None
) -> models.DeploymentPage:
    """A deployment with its history. A redeploy is shown only if the user may read all its steps."""
    row = DeploymentRow(name).after_all(entries)
    head = next((each for each in reversed(entries) if isinstance(each, HeadEntry)), None)
    return models.DeploymentPage(
        summary=deployment(ledger, name, row, rights, now),
        last=row.last,
        running=job_version(head.job, head.number) if head else None,
        history=[history_entry(each, rights) for each in entries],
        redeploys=[redeploy(each, rights) for each in attempts(entries) if all(map(rights.reads_entry, each.steps))],
        savepoints=[
            savepoint(each, head, rights)
            for each in lineage(entries)
            if any(map(rights.reads_entry, (each.stopped, *each.starts)))
        ],
    )


def job_held(entries: Iterable[LedgerEntry], sha256: str) -> tuple[JobSpec, int] | None:
    """The job of a version, and the last entry that contains the job; None if no entry does."""
    held = [each for each in entries if isinstance(each, StepEntry) and each.sha256 == sha256]
    return (held[-1].job, held[-1].number) if held else None


End = Literal["deployed", "adopted", "rolled-back", "failed", "planned", "unfinished"]


@dataclass(frozen=True)
class RedeploySteps:
    """The steps of one redeploy, oldest first."""

    steps: tuple[StepEntry, ...]

    @property
    def end(self) -> End:
        match self.steps[-1]:
            case DeployedEntry():
                return "deployed"
            case AdoptedEntry():
                return "adopted"
            case RolledBackEntry():
                return "rolled-back"
            case PlannedEntry():
                return "planned"
            case FailedEntry() as last if not last.is_open:
                return "failed"
        return "unfinished"

    @property
    def proposed(self) -> StepEntry:
        """The last step about the proposed version; steps of a rollback contain the former version."""
        back = (RollingBackEntry, RolledBackEntry)
        return next((step for step in reversed(self.steps) if not isinstance(step, back)), self.steps[-1])

    @property
    def stopped(self) -> StoppedEntry | None:
        return next((step for step in self.steps if isinstance(step, StoppedEntry)), None)

    @property
    def runs_again(self) -> StepEntry | None:
        """The last step that started a job after the stop; earlier starts may have failed."""
        stopped = self.stopped
        if stopped is None or self.end not in ("deployed", "rolled-back"):
            return None
        if self.end == "rolled-back":
            return self.steps[-1]
        started = (step for step in reversed(self.steps) if isinstance(step, StartedEntry))
        return next(started, self.steps[-1])

    @property
    def start(self) -> StartEntry | None:
        return next((step for step in reversed(self.steps) if isinstance(step, StartEntry)), None)

    @property
    def downtime_seconds(self) -> float | None:
        """Seconds from the end of the former job to the acceptance of the next job; None if unknown."""
        if self.stopped is None or self.runs_again is None:
            return None
        return (self.runs_again.written - self.stopped.written).total_seconds()


def attempts(entries: Sequence[LedgerEntry]) -> Iterator[RedeploySteps]:
    """Group a ledger's entries into redeploys."""
    steps: list[StepEntry] = []
    for entry in entries:
        if not isinstance(entry, StepEntry):
            continue
        steps.append(entry)
        if not (isinstance(entry, RunEntry) and entry.is_open):
            yield RedeploySteps(tuple(steps))
            steps = []
    if steps:
        yield RedeploySteps(tuple(steps))


@dataclass(frozen=True)
class Lineage:
    """A savepoint, the stop that left it, the stopped head, and the heads that started from the savepoint.

    ``migrated`` is the entry that records the rewritten savepoint, and ``disposed`` the entry that records the
    deletion.
    """

    savepoint: SavepointRow
    stopped: StoppedEntry
    left_by: HeadEntry | None
    starts: tuple[HeadEntry, ...]
    migrated: MigratedEntry | None
    disposed: DisposedEntry | None


def lineage(entries: Sequence[LedgerEntry]) -> Iterator[Lineage]:
    head: HeadEntry | None = None
    for place, entry in enumerate(entries):
        if isinstance(entry, HeadEntry):
            head = entry
        if not isinstance(entry, StoppedEntry) or not (path := entry.stop.savepoint):
            continue
        later = entries[place + 1 :]
        row = last_savepoint(_until_next_stop(entries[place:]))
        assert row is not None, "the first entry left a savepoint, and no entry deletes it"
        disposed = [e for e in later if isinstance(e, DisposedEntry) and same_snapshot(e.savepoint, path)]
        rewritten = [e for e in later if isinstance(e, MigratedEntry) and same_snapshot(e.savepoint, path)]
        starts = [e for e in later if isinstance(e, HeadEntry) and same_snapshot(e.start.way_back, path)]
        yield Lineage(
            row,
            entry,
            head,
            tuple(starts),
            rewritten[-1] if rewritten else None,
            disposed[-1] if disposed else None,
        )


def _until_next_stop(entries: Sequence[LedgerEntry]) -> Iterator[LedgerEntry]:
    """A stop and the later entries up to the next stop, without deletions."""
    for number, entry in enumerate(entries):
        if number and isinstance(entry, StoppedEntry):
            return
        if not isinstance(entry, DisposedEntry):
            yield entry
