"""A real target, and what one test of it has for itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from dev.services.csv_job import Files


@pytest.fixture
def target(local_flink: LocalFlink) -> Iterator[SqlGatewayTarget]:
    with SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url) as target:
        yield target


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def ledger(tmp_path: Path, target: SqlGatewayTarget, request: pytest.FixtureRequest) -> Iterator[Ledger]:
    """A ledger named after the test; its job is cancelled in the end."""
    name = re.sub(r"\W+", "-", request.node.name.removeprefix("test_"))
    yield Ledger(tmp_path / "ledger", name)
    for job_id in target.running(name):
        target.cancel(job_id)
