"""The target keeps the contract on a real API server, with the real operator and a real Flink behind it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_flinkcompat.testing.target_contract import Connect, TargetContract
from dev.local_kubernetes.rigs import Rig

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.kubernetes, pytest.mark.timeout(3600)]


class OnTheOperator(TargetContract):
    """The contract on the rig of a subclass."""

    settle_seconds = 0.5
    # Two JVMs come up for a start of an application, and a machine may be busy.
    step_seconds = 400.0

    @pytest.fixture
    def connect(self, rig: Rig) -> Connect:
        """Opens the target of the rig."""
        return rig.place.target

    @pytest.fixture(autouse=True)
    def nothing_is_left(self, rig: Rig) -> Iterator[None]:
        """After each test its resources are deleted."""
        yield
        rig.clear()


class TestSessionJobs(OnTheOperator):
    """``FlinkSessionJob``, whose script stands in its arguments."""

    @pytest.fixture
    def rig(self, session_jobs: Rig) -> Rig:
        """A session cluster."""
        return session_jobs


class TestApplications(OnTheOperator):
    """``FlinkDeployment`` in application mode, whose script is mounted from a ConfigMap."""

    @pytest.fixture
    def rig(self, applications: Rig) -> Rig:
        """A Kubernetes whose pods are processes."""
        return applications
