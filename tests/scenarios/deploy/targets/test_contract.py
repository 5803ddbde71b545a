"""The targets that are shipped keep the contract, on a real Flink."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.testing.target_contract import Connect, TargetContract
from dev.measure.pairs import home

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def flink_of_1_20(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFlink]:
    """A cluster of that line."""
    with LocalFlink(tmp_path_factory.mktemp("flink"), home=home("1.20")) as flink:
        yield flink


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


@pytest.mark.nightly
class TestJobManagerTarget(TargetContract):
    """A JobManager that runs scripts by itself."""

    settle_seconds = 0.5

    @pytest.fixture
    def flink(self, local_flink: LocalFlink) -> LocalFlink:
        return local_flink

    @pytest.fixture
    def connect(self, flink: LocalFlink) -> Iterator[Connect]:
        opened: list[JobManagerTarget] = []

        def connect() -> JobManagerTarget:
            opened.append(JobManagerTarget(flink.jobmanager_url))
            return opened[-1]

        yield connect
        for target in opened:
            target.close()


@pytest.mark.nightly
class TestJobManagerTargetOn120(TestJobManagerTarget):
    """One of Flink 1.x, which has no driver of its own: the runner of this package runs scripts there."""

    @pytest.fixture
    def flink(self, flink_of_1_20: LocalFlink) -> LocalFlink:
        return flink_of_1_20
