"""History of a deployment: redeploys with their steps, and savepoints with their successors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from airflow_flinkcompat.deploy.ledger.entries import (
    AdoptedEntry,
    DeployedEntry,
    DisposedEntry,
    FailedEntry,
    HeadEntry,
    LedgerEntry,
    MigratedEntry,
    PlannedEntry,
    RolledBackEntry,
    RollingBackEntry,
    RunEntry,
    StartedEntry,
    StartEntry,
    StepEntry,
    StoppedEntry,
)
from airflow_flinkcompat.deploy.ledger.rows import SavepointRow, last_savepoint
from airflow_flinkcompat.deploy.target import same_snapshot

End = Literal["deployed", "adopted", "rolled-back", "failed", "planned", "unfinished"]


@dataclass(frozen=True)
class RedeploySteps:
    """The steps of one redeploy, oldest first."""

    steps: tuple[StepEntry, ...]

    @property
    def end(self) -> End:
        """Outcome of the redeploy."""
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
        """The last step about the version that was to run; a way back holds the former one."""
        back = (RollingBackEntry, RolledBackEntry)
        return next((step for step in reversed(self.steps) if not isinstance(step, back)), self.steps[-1])

    @property
    def stopped(self) -> StoppedEntry | None:
        """The stop of the former job."""
        return next((step for step in self.steps if isinstance(step, StoppedEntry)), None)

    @property
    def runs_again(self) -> StepEntry | None:
        """The step that brought a job back after the stop: the last one, as earlier starts may have failed."""
        stopped = self.stopped
        if stopped is None or self.end not in ("deployed", "rolled-back"):
            return None
        if self.end == "rolled-back":
            return self.steps[-1]
        started = (step for step in reversed(self.steps) if isinstance(step, StartedEntry))
        return next(started, self.steps[-1])

    @property
    def start(self) -> StartEntry | None:
        """The last step with the job's start."""
        return next((step for step in reversed(self.steps) if isinstance(step, StartEntry)), None)

    @property
    def downtime_seconds(self) -> float | None:
        """Seconds from the end of the former job to the acceptance of the next one; None without them."""
        if self.stopped is None or self.runs_again is None:
            return None
        return (self.runs_again.written - self.stopped.written).total_seconds()


def attempts(entries: Sequence[LedgerEntry]) -> Iterator[RedeploySteps]:
    """The redeploys among a ledger's entries."""
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
    """A savepoint: ``stopped`` left it while ``left_by`` was in force, the heads ``starts`` began from it.

    ``migrated`` is the place of its rewritten form; ``disposed``: it was deleted.
    """

    savepoint: SavepointRow
    stopped: StoppedEntry
    left_by: HeadEntry | None
    starts: tuple[HeadEntry, ...]
    migrated: MigratedEntry | None
    disposed: DisposedEntry | None


def lineage(entries: Sequence[LedgerEntry]) -> Iterator[Lineage]:
    """The savepoints that stops left."""
    head: HeadEntry | None = None
    for place, entry in enumerate(entries):
        if isinstance(entry, HeadEntry):
            head = entry
        if not isinstance(entry, StoppedEntry) or not (path := entry.stop.savepoint):
            continue
        later = entries[place + 1 :]
        row = last_savepoint(_until_next_stop(entries[place:]))
        assert row is not None, "the first of them left one, and none of them deletes it"
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
    """A stop, and later entries about its savepoint."""
    for number, entry in enumerate(entries):
        if number and isinstance(entry, StoppedEntry):
            return
        if not isinstance(entry, DisposedEntry):
            yield entry
