"""Rehearsing a restore beside the live job: what the new script would take over of its state, before it is stopped.

Names load on first use: the watcher, a process of its own, needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy.rehearsal.journal import Paused
    from airflow_flinkcompat.deploy.rehearsal.report import Finding, Rehearsal
    from airflow_flinkcompat.deploy.rehearsal.restoring import Patience
    from airflow_flinkcompat.deploy.rehearsal.sequence import Cluster, RehearsalOptions, abandon, rehearse

_HOMES = {
    "Cluster": "sequence",
    "Finding": "report",
    "Patience": "restoring",
    "Paused": "journal",
    "Rehearsal": "report",
    "RehearsalOptions": "sequence",
    "abandon": "sequence",
    "rehearse": "sequence",
}

__all__ = ["Cluster", "Finding", "Patience", "Paused", "Rehearsal", "RehearsalOptions", "abandon", "rehearse"]


if not TYPE_CHECKING:  # a type checker takes a module with __getattr__ to have every name

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
