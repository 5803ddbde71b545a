"""The target keeps the contract on a real API server, with the real operator and a real Flink behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_flinkcompat.testing.target_contract import Connect, TargetContract
from tests.local_kubernetes.rigs import Rig, application_rig, session_rig

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

    @pytest.fixture(scope="class")
    def rig(
        self,
        kubernetes_binary: Path,
        flink_1_20: Path,
        runner_jar_path: Path,
        tmp_path_factory: pytest.TempPathFactory,
    ) -> Iterator[Rig]:
        """A session cluster."""
        with session_rig(tmp_path_factory.mktemp("session"), flink_1_20, runner_jar_path) as rig:
            yield rig


class TestApplications(OnTheOperator):
    """``FlinkDeployment`` in application mode, whose script is mounted from a ConfigMap."""

    @pytest.fixture(scope="class")
    def rig(
        self,
        kubernetes_binary: Path,
        flink_1_20: Path,
        runner_jar_path: Path,
        tmp_path_factory: pytest.TempPathFactory,
    ) -> Iterator[Rig]:
        """A Kubernetes whose pods are processes."""
        with application_rig(tmp_path_factory.mktemp("applications"), flink_1_20, runner_jar_path) as rig:
            yield rig
