"""Disposing of old savepoints: a deployment's own, never the one a way back needs."""

from __future__ import annotations

from contextlib import suppress

from airflow_flinkcompat.deploy.errors import DeployError, SnapshotGone
from airflow_flinkcompat.deploy.ledger.entries import DisposedEntry, HeadEntry, LedgerEntry, MigratedEntry, StoppedEntry
from airflow_flinkcompat.deploy.redeploy.run import Run
from airflow_flinkcompat.deploy.target import CANNOT_TELL, SavepointStore, Snapshot


def dispose_old(run: Run) -> None:
    """Delete old savepoints of this deployment's stops; failures are only logged.

    The last savepoint is the way back from the present deployment and is always kept.
    """
    keep = run.options.keep_savepoints
    if keep is None:
        return
    if not isinstance(run.target, SavepointStore):
        run.log(f"old savepoints were not deleted: their paths {CANNOT_TELL}")
        return
    try:
        for savepoint in surplus(run.ledger.entries(), keep):
            with suppress(SnapshotGone):  # an earlier run died before it wrote it down
                run.target.dispose(savepoint)
            run.append(DisposedEntry(savepoint=savepoint, owner=run.owner))
            run.log(f"deleted the savepoint {savepoint}: the latest {keep} are kept")
    except DeployError as error:
        run.log(f"old savepoints were not deleted: {error}")


def surplus(entries: tuple[LedgerEntry, ...], keep: int) -> tuple[Snapshot, ...]:
    """The savepoints that stops took and a rule of ``keep`` (at least 1) drops, oldest first.

    What a savepoint was rewritten to goes with it.
    """
    gone = {entry.savepoint for entry in entries if isinstance(entry, DisposedEntry)}
    stops = (entry.stop for entry in entries if isinstance(entry, StoppedEntry))
    taken = dict.fromkeys(stop.savepoint for stop in stops if stop.request_id and stop.savepoint)
    head = next((entry for entry in reversed(entries) if isinstance(entry, HeadEntry)), None)
    kept = {*list(taken)[-max(keep, 1) :], *((head.start.savepoint, head.start.migrated_from) if head else ())}
    migrated = [entry for entry in entries if isinstance(entry, MigratedEntry)]
    every = (
        path
        for savepoint in taken
        for path in (savepoint, *(Snapshot(each.migrated_to) for each in migrated if each.savepoint == savepoint))
        if savepoint not in kept
    )
    return tuple(path for path in every if path not in {*gone, *kept})
