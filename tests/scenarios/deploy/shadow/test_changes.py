"""Written changes of jobs over files, with the expected finding and rows of their shadow runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.rehearsal.place import Cluster
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from dev.benchmarks.shadow_changes import CHANGES, ScriptChange, Services, faults

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(300)]
NAMES = (
    "windows-calls-in-other-order",
    "windows-filter",
    "windows-another-metric-migrated",
    "groups-metrics-swapped",
    "groups-having",
    "deduplicated-unchanged",
    "deduplicated-minimum",
    "deduplicated-calls-in-other-order-migrated",
    "conflicts-unchanged",
    "conflicts-minimum",
    "forced-unchanged",
    "forced-minimum",
    "copies-in-files-calls-in-other-order-migrated",
    "copies-in-files-doubled-migrated",
    "copies-discarded-minimum",
    "joins-another-column",
)


@pytest.mark.parametrize("change", [each for each in CHANGES if each.name in NAMES], ids=lambda each: each.name)
def test_a_change(change: ScriptChange, gateway: SqlGateway, jobs: JobManager, tmp_path: Path) -> None:
    found = Services(gateway, jobs, tmp_path).shadow(change)
    assert faults(change, found) == [], "\n".join(found.lines())


def test_a_materializer_without_a_gateway(gateway: SqlGateway, jobs: JobManager, tmp_path: Path) -> None:
    """The script adds the jar of the stand-in. Without plans, the columns that the change names are unknown."""
    (found,) = (each for each in CHANGES if each.name == "deduplicated-minimum")
    change = replace(found, finding="differs", state="")
    place = Cluster(JobManagerTarget(jobs), TargetLocation("jobmanager", {"jobmanager": jobs.endpoint.url}))
    report = Services(gateway, jobs, tmp_path, place=place).shadow(change)
    assert faults(change, report) == [], "\n".join(report.lines())
