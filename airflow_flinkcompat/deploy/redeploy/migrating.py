"""Rewriting of the former job's savepoint between its stop and the start of the new job.

The ledger records the target folder before anything is written to it. A second entry records that the content of the
written savepoint was verified. If a run dies between the two entries, its retry deletes the folder and writes a new
one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from upath import UPath

from airflow_flinkcompat.deploy.errors import DeployError, DeployRefused
from airflow_flinkcompat.deploy.ledger.entries import DeployingEntry, MigratedEntry, MigratingEntry, MigrationEntry
from airflow_flinkcompat.deploy.ledger.status import Progress
from airflow_flinkcompat.deploy.redeploy.run import Run, StateMigration, new_id
from airflow_flinkcompat.deploy.target import CANNOT_TELL, SavepointStore, Snapshot, same_snapshot


class MigrationFailed(DeployError):
    """The savepoint was not migrated, so the new job cannot start. The error message names the reason."""


def prepare(run: Run, migration: StateMigration) -> str | None:
    """Check that a migration is possible. Return the folder of the prepared state. Raises DeployError."""
    if not isinstance(run.target, SavepointStore):
        raise DeployRefused(
            f"the state of {run.ledger.deployment} cannot be migrated: the path of a savepoint {CANNOT_TELL} "
            f"({run.target})"
        )
    earlier, prepared = _prepared(run), migration.prepare()
    if prepared and earlier:  # left by a call that died before the job was stopped
        _delete(earlier)
    return prepared or earlier


def migrate(run: Run, migration: StateMigration, savepoint: Snapshot) -> Snapshot:
    """Write the new job's savepoint, once for each run. Raises MigrationFailed, DeployError."""
    if not isinstance(run.target, SavepointStore):
        raise MigrationFailed(f"the savepoint was not migrated: its path {CANNOT_TELL} ({run.target})")
    earlier = [
        entry
        for entry in _earlier(run)
        if same_snapshot(entry.savepoint, savepoint) and _name(entry.migrated_to).startswith(f"{migration.writes}-")
    ]
    done = next((entry for entry in reversed(earlier) if isinstance(entry, MigratedEntry)), None)
    if done is not None:
        run.log(f"entry {done.number} migrated {savepoint} to {done.migrated_to}")
        return run.target.savepoint_at(done.migrated_to)
    for entry in earlier:
        _delete(entry.migrated_to)
    source = run.target.location(savepoint)
    folder = f"{source.rstrip('/').rpartition('/')[0]}/{migration.writes}-{new_id()}"
    run.append(MigratingEntry(**run.attempt, savepoint=savepoint, migrated_to=folder))
    run.log(f"migrating {savepoint} for {run.side.source}")
    written = run.target.savepoint_at(folder)
    try:
        kept = migration.write(source, folder, _prepared(run))
        rehearsed = migration.rehearse(written)
    except DeployError as error:
        if error.unanswered and not isinstance(error, DeployRefused):
            raise
        raise MigrationFailed(f"the savepoint was not migrated: {error}") from None
    run.append(
        MigratedEntry(**run.attempt, savepoint=savepoint, migrated_to=folder, migration=kept, evidence=(rehearsed,))
    )
    run.log(f"migrated; the state of the new job is in {folder}")
    return written


def _earlier(run: Run) -> Iterator[MigrationEntry]:
    for entry in Progress.of(run.ledger.entries()).steps:
        if isinstance(entry, MigrationEntry) and entry.sha256 == run.side.digest():
            yield entry


def _prepared(run: Run) -> str | None:
    claims = Progress.of(run.ledger.entries()).steps
    ours = (each for each in reversed(claims) if isinstance(each, DeployingEntry) and each.sha256 == run.side.digest())
    return next((each.prepared for each in ours if each.prepared), None)


def _name(folder: str) -> str:
    return folder.rstrip("/").rpartition("/")[2]


def _delete(folder: str) -> None:
    """Delete the savepoint folder of a dead run. No job or savepoint uses this folder."""
    place = UPath(re.sub(r"^file:/+", "file:///", folder))
    with suppress(Exception):  # each kind of store raises errors of its own library
        place.fs.rm(place.path, recursive=True)
