"""A hand-over record at a deployment: read from where it is, and held against what would start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from upath import UPath

from airflow_flinkcompat.compat.handovers.record import BoundaryError, HandOver
from airflow_flinkcompat.deploy.errors import DeployRefused


def read_hand_over(given: str | Mapping[str, Any]) -> HandOver:
    """The record: a mapping, JSON text, or the path or URI of a file. Raises :class:`BoundaryError`."""
    if isinstance(given, Mapping):
        return HandOver.from_dict(dict(given))
    if given.lstrip().startswith("{"):
        return HandOver.from_json(given)
    try:
        return HandOver.from_json(UPath(given).read_text(encoding="utf-8"))
    except (OSError, ValueError, ImportError) as error:
        if isinstance(error, BoundaryError):
            raise
        raise BoundaryError(
            f"the hand-over record {given} cannot be read ({error}); backfill --dry-run --boundary … --hand-over FILE "
            "writes it"
        ) from None


def check_hand_over(record: HandOver, sha256: Mapping[str, str], resumes: bool) -> None:
    """Raises DeployRefused where the job that would start does not go on from that backfill."""
    try:
        record.check(sha256)
    except BoundaryError as error:
        raise DeployRefused(str(error)) from None
    if resumes:
        raise DeployRefused(
            f"the hand-over at {record.boundary} is for a job that starts without state, and this one would resume "
            "from a savepoint: deploy with start mode stateless, or leave the hand-over out"
        )
