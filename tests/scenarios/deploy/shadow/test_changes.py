"""Written changes of jobs over files, with the expected finding and rows of their shadow runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
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
