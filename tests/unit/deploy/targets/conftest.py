"""Applications of the stand-in for AWS, and session jobs of the one for Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_flinkcompat.testing.target_contract import SCRIPT
from tests.support.deploy.targets.aws_account import Account
from tests.support.deploy.targets.aws_stand_in import MemoryJobs, StandIn
from tests.support.deploy.targets.kubernetes_deployments import Deployments, operator
from tests.support.deploy.targets.kubernetes_stand_in import KubernetesStandIn
from tests.support.nightly import mostly_nightly


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """An account with the application ``orders``; no client repeats a call."""
    for key, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(key, value)
    jobs = MemoryJobs()
    with StandIn(jobs).serving() as server:
        found = Account(server, jobs)
        found.create("orders")
        yield found
        found.close()


@pytest.fixture(params=mostly_nightly(["1.10", "1.7"]))
def stand_in(request: pytest.FixtureRequest) -> Iterator[KubernetesStandIn]:
    """The API server with an operator of either line."""
    with operator(request.param) as stand_in:
        yield stand_in


@pytest.fixture
def orders(stand_in: KubernetesStandIn, tmp_path: Path) -> Deployments:
    """A session job that runs the first script."""
    found = Deployments(stand_in, tmp_path, {"session_cluster": "session"})
    found.deploy(SCRIPT)
    stand_in.calls.clear()
    return found
