"""Realtime Compute's target, over a stand-in of its OpenAPI. It was never run against the vendor's service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from airflow_flinkcompat.deploy.target import Target
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.realtime_compute import RealtimeComputeTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.testing.target_contract import Connect, TargetContract
from tests.deploy.targets.realtime_compute_stand_in import (
    KEY_ID,
    KEY_SECRET,
    NAMESPACE,
    WORKSPACE,
    InMemory,
    OnFlink,
    Service,
    serving,
)


def no_address(which: str) -> str:
    raise AssertionError(f"it is not reached by a {which}")


def access(url: str, **more: Any) -> Access:
    settings = {
        "endpoint": url,
        "workspace": WORKSPACE,
        "namespace": NAMESPACE,
        "access_key_id": KEY_ID,
        "access_key_secret": KEY_SECRET,
        "deployment_target": "default-queue",
        **more,
    }
    return Access(no_address, settings, "connection 'vvr'")


@pytest.fixture
def service() -> Service:
    return Service(InMemory())


@pytest.fixture
def url(service: Service) -> Iterator[str]:
    with serving(service) as url:
        yield url
    assert service.faults == [], "the SDK's models do not take what was sent or answered"


@pytest.fixture
def connect(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., RealtimeComputeTarget]]:
    monkeypatch.setattr(RealtimeComputeTarget, "settle_seconds", 0.2)
    with ExitStack() as opened:
        yield lambda **more: opened.enter_context(RealtimeComputeTarget.connect(access(url, **more)))


class TestRealtimeComputeTarget(TargetContract):
    """Over jobs in memory."""

    @pytest.fixture
    def connect(self, connect: Connect) -> Connect:
        return connect

    @pytest.fixture(autouse=True)
    def _service(self, service: Service) -> None:
        self.service = service

    def misfits(self, target: Target, name: str) -> None:
        """Its next start from a savepoint fails."""
        assert isinstance(self.service.backend, InMemory)
        self.service.backend.refuses.add(name)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(900)
class TestRealtimeComputeTargetOnFlink(TargetContract):
    """Over a real Flink, with real savepoints and restores."""

    settle_seconds = 0.5

    @pytest.fixture
    def connect(self, local_flink: LocalFlink) -> Iterator[Connect]:
        backend = OnFlink(local_flink.jobmanager_url)
        service = Service(backend)
        with serving(service) as url, ExitStack() as opened:
            yield lambda: opened.enter_context(RealtimeComputeTarget.connect(access(url)))
        backend.close()
        assert service.faults == []
