"""The lines of Flink that are measured; :mod:`airflow_flinkcompat.planner.installation` says where their jars are."""

from __future__ import annotations

from pathlib import Path

from airflow_flinkcompat.planner.installation import RELEASES, home

__all__ = ["CACHE", "RELEASES", "VERSIONS", "home"]

CACHE = Path(__file__).parents[2] / ".measure"
"""In the checkout, ignored by git: what the last runs left behind."""
VERSIONS = {line: RELEASES[line] for line in ("2.3", "1.20")}
"""By line on which every pair is run, its release; on the others of :data:`RELEASES` the base set of pairs is run."""
