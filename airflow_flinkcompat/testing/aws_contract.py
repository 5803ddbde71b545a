"""Contract tests of the target ``aws`` against AWS Managed Service for Apache Flink in your account.

Each test creates its own applications, and deletes the applications with their snapshots. A step takes minutes and
costs as much as a running application. ``docs/targets/aws.md`` describes how to run the tests.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import pytest

from airflow_flinkcompat.deploy.target import Target
from airflow_flinkcompat.deploy.targets import Access, OpenTarget, target_class
from airflow_flinkcompat.testing.target_contract import Connect, TargetContract


class ManagedFlinkContract(TargetContract):
    """Contract tests of the target ``aws`` against the service or an emulator.

    A subclass sets three attributes. ``settings`` is the connection's extra, with access to the account. ``jar`` is the
    location (``s3://BUCKET/KEY``) of the program that runs the script. ``role`` is the service execution role of the
    applications.
    """

    settings: ClassVar[Mapping[str, Any]] = {}
    jar: ClassVar[str] = ""
    role: ClassVar[str] = ""
    settle_seconds = 30.0
    step_seconds = 1200.0

    def open_target(self) -> OpenTarget:
        return target_class("aws").connect(Access(_no_address, self.settings, "the contract"))

    @pytest.fixture
    def client(self) -> Any:
        import boto3  # type: ignore[import-untyped]

        where = {key: self.settings.get(key) for key in ("region_name", "endpoint_url")}
        return boto3.client("kinesisanalyticsv2", **where)

    @pytest.fixture
    def connect(self) -> Iterator[Connect]:
        opened: list[OpenTarget] = []

        def connect() -> Target:
            opened.append(self.open_target())
            return opened[-1].__enter__()

        yield connect
        for each in opened:
            each.__exit__(None, None, None)

    @pytest.fixture
    def name(self, connect: Callable[[], Target], client: Any) -> Iterator[str]:
        """Name of an application for one test. An application NAME-own exists for scripts that set a job name."""
        name = f"contract-{uuid.uuid4().hex[:8]}"
        names = (name, f"{name}-own")
        for each in names:
            client.create_application(**self.application(each))
        yield name
        target = connect()
        for each in names:
            for job in target.running(each):
                target.cancel(job)
            _delete(client, each, self.step_seconds)

    def application(self, name: str) -> dict[str, Any]:
        """Arguments to create an application."""
        bucket, _, key = self.jar.removeprefix("s3://").partition("/")
        one = {"ConfigurationType": "CUSTOM", "Parallelism": 1, "ParallelismPerKPU": 1, "AutoScalingEnabled": False}
        checkpoints = {"ConfigurationType": "CUSTOM", "CheckpointingEnabled": True, "CheckpointInterval": 10_000}
        location = {"BucketARN": f"arn:aws:s3:::{bucket}", "FileKey": key}
        return {
            "ApplicationName": name,
            "RuntimeEnvironment": self.settings["runtime_environment"],
            "ServiceExecutionRole": self.role,
            "ApplicationConfiguration": {
                "ApplicationCodeConfiguration": {
                    "CodeContentType": "ZIPFILE",
                    "CodeContent": {"S3ContentLocation": location},
                },
                "ApplicationSnapshotConfiguration": {"SnapshotsEnabled": True},
                "FlinkApplicationConfiguration": {
                    "CheckpointConfiguration": checkpoints,
                    "ParallelismConfiguration": one,
                },
            },
        }


def _no_address(which: str) -> str:
    raise AssertionError(f"the target aws has no {which} address")


def _delete(client: Any, name: str, seconds: float) -> None:
    """Delete an application as soon as it is READY. The service also deletes the application's snapshots."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        detail = client.describe_application(ApplicationName=name)["ApplicationDetail"]
        if detail["ApplicationStatus"] == "READY":
            client.delete_application(ApplicationName=name, CreateTimestamp=detail["CreateTimestamp"])
            return
        time.sleep(1)
    raise AssertionError(f"application {name} does not become READY. Delete the application manually")
