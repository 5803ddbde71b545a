"""Runs the contract of a target against your own workspace of Realtime Compute for Apache Flink.

    pip install 'airflow-flinkcompat[vvr]' pytest
    export FLINKCOMPAT_REGION=eu-central-1 FLINKCOMPAT_WORKSPACE=… FLINKCOMPAT_NAMESPACE=…
    export FLINKCOMPAT_DEPLOYMENT_TARGET=default-queue   # a queue with room for two jobs of 2 CUs each
    export ALIBABA_CLOUD_ACCESS_KEY_ID=… ALIBABA_CLOUD_ACCESS_KEY_SECRET=…
    pytest realtime_compute_contract.py

It makes deployments called ``contract-…``, starts and stops them, and deletes them in the end, for which the user of
the key needs ``stream:DeleteDeployment`` beside the policy of this folder. Other deployments are not touched. Jobs
read generated rows and write nowhere; the queue's resources are paid for. ``-k a_stopped_job`` runs one test.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.realtime_compute import RealtimeComputeTarget
from airflow_flinkcompat.deploy.targets.realtime_compute.openapi import OpenApi
from airflow_flinkcompat.deploy.targets.realtime_compute.settings import WorkspaceSettings
from airflow_flinkcompat.testing import target_contract
from airflow_flinkcompat.testing.target_contract import Connect, TargetContract

# A start takes minutes there.
target_contract.SECONDS = 900.0
_PREFIX = "contract-"


def _settings() -> WorkspaceSettings:
    return WorkspaceSettings.of(Access(lambda which: which))


class TestRealtimeCompute(TargetContract):
    """One namespace of a workspace, as the environment names it."""

    settle_seconds = 30.0

    @pytest.fixture
    def connect(self) -> Iterator[Connect]:
        with ExitStack() as opened:
            yield lambda: opened.enter_context(RealtimeComputeTarget(OpenApi(_settings())))

    @pytest.fixture(scope="class", autouse=True)
    def _deployments_are_deleted(self) -> Iterator[None]:
        yield
        api = OpenApi(_settings())
        for deployment in api.deployments(name=_PREFIX):
            if deployment.name.startswith(_PREFIX):
                api.call("DeleteDeployment", deployment.deployment_id, repeat=False)
