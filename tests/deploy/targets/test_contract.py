"""The targets that are shipped keep the contract, on a real Flink."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_flinkcompat.deploy import SqlGatewayTarget
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.testing.target_contract import Connect, TargetContract

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class TestSqlGatewayTarget(TargetContract):
    """A Gateway and its JobManager."""

    settle_seconds = 0.5

    @pytest.fixture
    def connect(self, local_flink: LocalFlink) -> Iterator[Connect]:
        opened: list[SqlGatewayTarget] = []

        def connect() -> SqlGatewayTarget:
            opened.append(SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url))
            return opened[-1]

        yield connect
        for target in opened:
            target.close()


class TestJobManagerTarget(TargetContract):
    """A JobManager that runs scripts by itself."""

    settle_seconds = 0.5

    @pytest.fixture
    def connect(self, local_flink: LocalFlink) -> Iterator[Connect]:
        opened: list[JobManagerTarget] = []

        def connect() -> JobManagerTarget:
            opened.append(JobManagerTarget(local_flink.jobmanager_url))
            return opened[-1]

        yield connect
        for target in opened:
            target.close()
