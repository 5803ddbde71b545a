"""A repository of 30 jobs with a change, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.fleet.baselines import revision_baselines
from airflow_flinkcompat.fleet.review import Request, diff_fleet
from airflow_flinkcompat.fleet.values import FleetDiff
from airflow_flinkcompat.project.job_options import JobOptions
from airflow_flinkcompat.project.settings import load_project
from tests.support.fleet.repository import make_repository


@pytest.fixture(scope="session")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository; no test changes it."""
    return make_repository(tmp_path_factory.mktemp("jobs"))


@pytest.fixture(scope="session")
def fleet(jobs: Path) -> FleetDiff:
    """The change against ``origin/main``."""
    project = load_project(jobs / "flinkcompat.toml")
    with revision_baselines(project, jobs.resolve(), "origin/main") as baselines:
        return diff_fleet(Request(project, jobs.resolve(), "unknown", JobOptions(planner="never")), baselines)
