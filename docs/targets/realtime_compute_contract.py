"""Runs the contract of a target against your own workspace of Realtime Compute for Apache Flink.

    pip install '.[vvr]' pytest
    export FLINKCOMPAT_REGION=eu-central-1 FLINKCOMPAT_WORKSPACE=… FLINKCOMPAT_NAMESPACE=…
    export FLINKCOMPAT_DEPLOYMENT_TARGET=default-queue   # a queue with room for two jobs of 2 CUs each
    export ALIBABA_CLOUD_ACCESS_KEY_ID=… ALIBABA_CLOUD_ACCESS_KEY_SECRET=…
    pytest realtime_compute_contract.py

It makes deployments called ``contract-`` and eight hexadecimal digits, starts and stops them, and deletes those that
were not there before, for which the user of the key needs ``stream:DeleteDeployment`` beside the policy of this folder.
Other deployments are not touched. Jobs
read generated rows and write nowhere; the queue's resources are paid for. ``-k a_stopped_job`` runs one test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from airflow_flinkcompat.deploy.targets import Access, target_class
from airflow_flinkcompat.deploy.targets.realtime_compute.openapi import OpenApi
from airflow_flinkcompat.deploy.targets.realtime_compute.settings import WorkspaceSettings
from airflow_flinkcompat.testing.installed_target import TestInstalledTarget
from airflow_flinkcompat.testing.pytest_plugin import Opens

__all__ = ["TestInstalledTarget"]
pytest_plugins = ["airflow_flinkcompat.testing.pytest_plugin"]
_PREFIX, _NAME = "contract-", re.compile(r"contract-[0-9a-f]{8}")
_ACCESS = Access(lambda which: which)


@pytest.fixture(scope="session")
def flinkcompat_open() -> Iterator[Opens]:
    """One namespace of a workspace, as the environment names it; what was made there is deleted in the end."""
    api = OpenApi(WorkspaceSettings.of(_ACCESS))
    before = {each.deployment_id for each in api.deployments(name=_PREFIX)}
    yield lambda: target_class("realtime-compute").connect(_ACCESS)
    for deployment in api.deployments(name=_PREFIX):
        if _NAME.fullmatch(deployment.name) and deployment.deployment_id not in before:
            api.call("DeleteDeployment", deployment.deployment_id, repeat=False)


@pytest.fixture(scope="session")
def flinkcompat_settle_seconds() -> float:
    """A start is watched for so long."""
    return 30.0


@pytest.fixture(scope="session")
def flinkcompat_step_seconds() -> float:
    """A start takes minutes there."""
    return 900.0
