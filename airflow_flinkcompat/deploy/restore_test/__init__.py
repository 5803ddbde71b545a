"""Rehearsal of a restore next to the live job: the state that the new script would take over.

Names load on first use: the watcher, a process of its own, needs none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_flinkcompat.lazy import lazy_names

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy.restore_test.place import Cluster
    from airflow_flinkcompat.deploy.restore_test.report import Rehearsal
    from airflow_flinkcompat.deploy.restore_test.restoring import Paused, Timeouts
    from airflow_flinkcompat.deploy.restore_test.sequence import RehearsalOptions, abandon, rehearse
    from airflow_flinkcompat.deploy.restore_test.template import kept_template, options_of, take_template
    from airflow_flinkcompat.model import RehearsalFinding

_HOMES = {
    ".report": ("Rehearsal",),
    ".restoring": ("Paused", "Timeouts"),
    ".sequence": ("RehearsalOptions", "abandon", "rehearse"),
    ".place": ("Cluster",),
    ".template": ("kept_template", "options_of", "take_template"),
    "airflow_flinkcompat.model": ("RehearsalFinding",),
}

__all__ = [
    "Cluster",
    "Paused",
    "Rehearsal",
    "RehearsalFinding",
    "RehearsalOptions",
    "Timeouts",
    "abandon",
    "kept_template",
    "options_of",
    "rehearse",
    "take_template",
]


if not TYPE_CHECKING:  # a type checker takes a module with __getattr__ to have every name
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
