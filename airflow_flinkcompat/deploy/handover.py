"""Hand-over records of backfills: read one, and check that a deployment continues from it.

A backfill with a boundary writes a record of its script and of the time at which a live job takes over. The deploy task
reads it with ``read_hand_over``. The redeploy sequence calls ``check_hand_over`` before it stops the former job.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from upath import UPath

from airflow_flinkcompat.compat.cutover.record import BoundaryError, Cutover
from airflow_flinkcompat.deploy.errors import DeployRefused
from airflow_flinkcompat.model import JobSpec


def read_hand_over(given: str | Mapping[str, Any]) -> Cutover:
    """Read the record of a backfill with a boundary.

    Args:
        given: The record as a mapping, as JSON text, or the path or URI of a file that contains it.

    Returns:
        The record.

    Raises:
        BoundaryError: The file cannot be read, or the value is not a record.
    """
    if isinstance(given, Mapping):
        return Cutover.from_dict(dict(given))
    if given.lstrip().startswith("{"):
        return Cutover.from_json(given)
    try:
        return Cutover.from_json(UPath(given).read_text(encoding="utf-8"))
    except (OSError, ValueError, ImportError) as error:
        if isinstance(error, BoundaryError):
            raise
        raise BoundaryError(
            f"the hand-over record {given} cannot be read ({error}); backfill --dry-run --boundary … --hand-over FILE "
            "writes it"
        ) from None


def check_hand_over(record: Cutover, job: JobSpec, resumes: bool) -> None:
    """Raises DeployRefused if the job to start does not continue from that backfill."""
    try:
        record.check(job)
    except BoundaryError as error:
        raise DeployRefused(str(error)) from None
    if resumes:
        raise DeployRefused(
            f"the hand-over at {record.boundary} is for a job that starts without state, and this one "
            "resumes from a savepoint: deploy with start mode stateless, or omit the hand-over"
        )
