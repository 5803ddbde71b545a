"""Moves of deployments to another engine version, over a stand-in of Realtime Compute's OpenAPI."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.deploy import DeployError, Ledger, Options, RolledBack, TargetError, deploy
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.redeploy.way_back import move_back
from airflow_flinkcompat.deploy.targets.realtime_compute import RealtimeComputeTarget
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.testing.target_contract import CHANGED, MISFIT, SCRIPT, SETTINGS
from tests.support.deploy.targets.realtime_compute_stand_in import (
    ENGINE_VERSION,
    NEXT_VERSION,
    InMemory,
    Service,
    access,
    serving,
)

MOVE = {"engine_version": NEXT_VERSION, "former_engine_version": ENGINE_VERSION}
OPTIONS = Options(settle_seconds=0, submit_timeout=60, start_timeout=60, stop_timeout=60)


@dataclass
class Workspace:
    """The service with the deployment ``orders`` on the former version, and its ledger."""

    service: Service
    url: str
    ledger: Ledger
    backend: InMemory
    opened: ExitStack = field(default_factory=ExitStack)

    def target(self, **settings: Any) -> RealtimeComputeTarget:
        return self.opened.enter_context(RealtimeComputeTarget.connect(access(self.url, **settings)))

    def deploy(self, script: str, version: str, **settings: Any) -> DeployedEntry:
        head = self.ledger.head()
        job = JobSpec(script, SETTINGS, engine="vvr", engine_version=version, source="orders.sql")
        checked = head.sha256 if head else None
        return deploy(
            self.target(**settings), self.ledger, job, checked_old_sha256=checked, owner=new_id(), options=OPTIONS
        )

    @property
    def running(self) -> tuple[str, str, str | None]:
        """Engine version and script of the running instance, and the id of its savepoint."""
        (job,) = (each for each in self.service.jobs.values() if self.backend.look(each["jobId"]).state == "RUNNING")
        script = job["artifact"]["sqlArtifact"]["sqlScript"]
        return job["engineVersion"], script, job["restoreStrategy"].get("savepointId")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setattr(RealtimeComputeTarget, "settle_seconds", 0.2)
    service = Service(backend := InMemory())
    service.add("orders")
    with serving(service) as url:
        found = Workspace(service, url, Ledger(tmp_path, "orders"), backend)
        with found.opened:
            found.deploy(SCRIPT, "8.0.11")
            yield found
    assert service.faults == []


def test_the_engine_version_changes_with_the_script(workspace: Workspace) -> None:
    assert workspace.running[:2] == (ENGINE_VERSION, SCRIPT)
    entry = workspace.deploy(CHANGED, "11.1", **MOVE)
    assert workspace.running == (NEXT_VERSION, CHANGED, entry.start.savepoint)
    assert entry.start.savepoint in workspace.service.savepoints


def test_a_job_that_the_new_version_refuses_returns_to_the_former_version(workspace: Workspace) -> None:
    workspace.backend.refuses.add("orders")
    with pytest.raises(RolledBack):
        workspace.deploy(MISFIT, "11.1", **MOVE)
    assert workspace.running == (ENGINE_VERSION, SCRIPT, *workspace.service.savepoints)


def test_a_moved_job_moves_back_from_the_savepoint_of_its_move(workspace: Workspace) -> None:
    moved = workspace.deploy(CHANGED, "11.1", **MOVE)
    entry = move_back(workspace.target(**MOVE), workspace.ledger, owner="back", options=OPTIONS)
    assert (entry.job.script, entry.job.engine_version) == (SCRIPT, "8.0.11")
    assert workspace.running == (ENGINE_VERSION, SCRIPT, moved.start.savepoint)


def test_a_version_that_the_platform_does_not_offer_is_refused_before_the_stop(workspace: Workspace) -> None:
    with pytest.raises(TargetError, match=r"'orders' cannot move to vvr-12\.0-flink-2\.0, .* offers only vvr-8"):
        workspace.deploy(CHANGED, "12.0", **{**MOVE, "engine_version": "vvr-12.0-flink-2.0"})
    assert workspace.running[:2] == (ENGINE_VERSION, SCRIPT)
    assert "StopJob" not in workspace.service.asked


@pytest.mark.parametrize("version", [None, "vvr-8.0.9-flink-1.17"])
def test_a_move_needs_two_versions(version: str | None, workspace: Workspace) -> None:
    with pytest.raises(DeployError, match=r"former_engine_version is vvr-8\.0\.11.*set engine_version to the other"):
        workspace.target(**{**MOVE, "engine_version": version})
