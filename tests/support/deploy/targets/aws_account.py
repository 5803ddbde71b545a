"""An account over the stand-in: what tests set up there, and what they look at afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_flinkcompat.deploy import Ledger, Options, deploy
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.target import JobRef, Operation, Snapshot, Start
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.aws import ManagedFlinkTarget
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.testing.target_contract import SCRIPT, side
from tests.support.deploy.targets.aws_stand_in import REGION, App, MemoryJobs, StandIn

OPTIONS = Options(settle_seconds=0, submit_timeout=20, start_timeout=20, stop_timeout=20, claim_seconds=0)


@dataclass
class Account:
    """The service, its jobs, and targets that were opened over it."""

    server: StandIn
    jobs: MemoryJobs
    opened: list[ManagedFlinkTarget] = field(default_factory=list)

    def create(self, name: str, runtime: str = "FLINK-2_3", **more: Any) -> App:
        """An application that is READY, and runs nothing."""
        configuration = {"ApplicationSnapshotConfiguration": {"SnapshotsEnabled": True}, **more}
        self.server.create_application(name, runtime, configuration)
        return self.server.apps[name]

    @property
    def orders(self) -> App:
        return self.server.apps["orders"]

    def access(self, **more: Any) -> Access:
        """As a connection opens the target."""
        settings = {
            "region_name": REGION,
            "endpoint_url": self.server.url,
            "runtime_environment": "FLINK-2_3",
            "poll_interval": 0,
        }
        given = {**settings, **more}
        return Access(lambda _: "", given, "connection 'aws_flink'", lookup=lambda _: "planted-secret-7")

    def target(self, **more: Any) -> ManagedFlinkTarget:
        """Another process's target."""
        self.opened.append(ManagedFlinkTarget.connect(self.access(**more)))
        return self.opened[-1]

    def close(self) -> None:
        for each in self.opened:
            each.close()

    def started(self, start: Start | None = None) -> JobRef:
        """A run of ``orders``."""
        target = self.target()
        found = target.start(job(), start or Start(), new_id()).job
        assert found is not None
        self.settle(found)
        return found

    def settle(self, run: JobRef) -> None:
        """Until a run is up, or has ended."""
        target = self.target()
        for _ in range(9):
            if (seen := target.status(run)) and (seen.tasks_running or seen.terminal):
                return
        raise AssertionError(f"{run} is {seen}")

    def stopped(self, run: JobRef, request: str | None = None) -> Snapshot:
        """What the stop of a run leaves."""
        target = self.target()
        asked = target.stop(run, request or new_id(), None)
        return self.snapshot(asked)

    def snapshot(self, asked: Operation) -> Snapshot:
        """What a stop leaves, once it has come to its end."""
        target = self.target()
        for _ in range(9):
            if (found := target.poll(asked).snapshot) is not None:
                return found
        raise AssertionError("the stop does not end")

    def deploy(
        self, root: Path, script: str, target: ManagedFlinkTarget | None = None, owner: str | None = None
    ) -> DeployedEntry:
        """Deploy a script as ``orders``."""
        ledger = Ledger(root, "orders")
        head = ledger.head()
        return deploy(
            target or self.target(),
            ledger,
            side(script),
            checked_old_sha256=head.sha256 if head else None,
            owner=owner or new_id(),
            options=OPTIONS,
        )


def job(script: str = SCRIPT, **settings: str) -> JobSpec:
    """A job of the deployment ``orders``."""
    return JobSpec(script, {"pipeline.name": "orders", "parallelism.default": "1", **settings}, source="orders.sql")
