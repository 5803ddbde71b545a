"""Starting positions of a stateless start's sources, settled with the target beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from upath import UPath

from airflow_flinkcompat.compat.cutover.record import Cutover
from airflow_flinkcompat.deploy.errors import DeployRefused
from airflow_flinkcompat.deploy.ledger.entries import HeadEntry
from airflow_flinkcompat.deploy.redeploy.run import Run
from airflow_flinkcompat.deploy.redeploy.stopping import Stopped, savepoint_root
from airflow_flinkcompat.deploy.sources.choices import Offset
from airflow_flinkcompat.deploy.sources.offsets import (
    StartupOffset,
    check_startup_offsets,
    decide,
    trial,
    unknown_startup_offsets,
)
from airflow_flinkcompat.deploy.target import CANNOT_TELL, SavepointStore, Sources, SourceTable, SourceTables, Start
from airflow_flinkcompat.model import JobSpec


def planned(run: Run, head: HeadEntry | None, settings: Mapping[str, str]) -> tuple[StartupOffset, ...]:
    """Validate the script with its sources' startup options; raises DeployRefused, validation errors."""
    job = replace(run.side, settings=settings)
    seen = _sources(run, job)
    if seen.unknown and run.offsets.choices:
        raise DeployRefused(
            f"source offsets cannot be chosen, because the sources of the job are unknown: {seen.unknown}"
        )
    former: tuple[SourceTable, ...] = ()
    if any(choice.kind is Offset.AS_STORED for choice in run.offsets.choices):
        former = _former(run, head)
    record = Cutover.from_dict(run.hand_over) if run.hand_over else None
    found = unknown_startup_offsets(seen.unknown) if seen.unknown else decide(seen.tables, run.offsets, record, former)
    if record is not None:
        check_startup_offsets(record, run.offsets, found)
    if options := trial(found):
        run.validate(job, Start(tables=options))
    return found


def _former(run: Run, head: HeadEntry | None) -> tuple[SourceTable, ...]:
    """Sources of the former job, if its savepoint has their positions. Raises DeployRefused."""
    if head is None:
        raise DeployRefused(f"{_NOWHERE}: {run.ledger.deployment} was never deployed")
    _require_reach(run)
    settings = run.job_settings(head.job.settings)
    return _sources(run, replace(head.job, settings=settings, source=f"ledger entry {head.number}")).tables


def _sources(run: Run, job: JobSpec) -> Sources:
    """Validate the job and return its sources, if the target reports them."""
    if isinstance(run.target, SourceTables):
        return run.target.sources(job)
    run.validate(job, Start())
    return Sources(unknown=f"the sources of a job {CANNOT_TELL}")


def require_savepoint(
    startup_offsets: Sequence[StartupOffset], head: HeadEntry | None, stopped: Stopped | None
) -> None:
    """Raise DeployRefused if a source is to resume from a former job that ended without a savepoint."""
    ended = head is not None and stopped is not None and stopped.savepoint is None
    if head is not None and ended and any(each.stored for each in startup_offsets):
        raise DeployRefused(f"{_NOWHERE}: job {head.job_id} of ledger entry {head.number} has ended without one")


_NOWHERE = (
    "the source offsets as-stored are read from the savepoint of the former job's stop, and there is none "
    "(choose earliest, latest, a time, or script)"
)


def _require_reach(run: Run) -> None:
    """Raise DeployRefused if savepoints cannot be read from here."""
    if not isinstance(run.target, SavepointStore):
        raise DeployRefused(
            f"the source offsets as-stored are read from the savepoint, and its path {CANNOT_TELL} "
            f"({run.target}): choose earliest, latest, a time, or script"
        )
    root = savepoint_root(run)
    if root is None:
        return
    try:
        UPath(root).exists()
    except Exception as error:  # a store raises whatever its own library does
        raise DeployRefused(
            f"the source offsets as-stored are read from the savepoint, and {root} cannot be reached from "
            f"here ({type(error).__name__}: {error}): install a client for it, or choose earliest, latest, a "
            "time, or script"
        ) from None
