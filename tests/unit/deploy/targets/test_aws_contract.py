"""The target ``aws`` keeps the contract over a stand-in for the service, with jobs in memory and on a real Flink."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from airflow_flinkcompat.deploy.target import Target
from airflow_flinkcompat.deploy.targets import Access, OpenTarget
from airflow_flinkcompat.deploy.targets.aws import ManagedFlinkTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.testing.aws_contract import ManagedFlinkContract
from tests.support.deploy.targets.aws_stand_in import REGION, FlinkJobs, MemoryJobs, StandIn

ROLE = "arn:aws:iam::123456789012:role/flink"


class OverStandIn(ManagedFlinkContract):
    jar = "s3://bucket/program.jar"
    role = ROLE
    step_seconds = 120.0
    server: ClassVar[StandIn]

    def open_target(self) -> OpenTarget:
        return ManagedFlinkTarget.connect(Access(lambda _: "", self.settings, "the contract"))

    @pytest.fixture(autouse=True)
    def account(self, monkeypatch: pytest.MonkeyPatch, stand_in: StandIn) -> None:
        for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(key, "testing")
        settings: dict[str, Any] = {
            "region_name": REGION,
            "endpoint_url": stand_in.url,
            "runtime_environment": "FLINK-2_3",
            "poll_interval": 0,
        }
        monkeypatch.setattr(type(self), "settings", settings)
        monkeypatch.setattr(type(self), "server", stand_in, raising=False)


class TestManagedFlinkTarget(OverStandIn):
    """Jobs in memory."""

    settle_seconds = 0.0

    @pytest.fixture
    def stand_in(self) -> Iterator[StandIn]:
        with StandIn(MemoryJobs()).serving() as server:
            yield server

    def misfits(self, target: Target, name: str) -> None:
        backend = self.server.backend
        assert isinstance(backend, MemoryJobs)
        backend.refuses.add(name)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(600)
class TestManagedFlinkTargetOverFlink(OverStandIn):
    """Jobs, savepoints and restores of a real Flink."""

    settle_seconds = 0.5

    @pytest.fixture
    def stand_in(self, local_flink: LocalFlink) -> Iterator[StandIn]:
        jobs = FlinkJobs(local_flink.jobmanager_url)
        with StandIn(jobs).serving() as server:
            yield server
        jobs.close()
