"""Clients of the local Flink, and a broker, for runs next to a live job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.local_flink import LocalFlink
from dev.services.kafka import Broker, kafka_broker, kafka_client


@pytest.fixture
def gateway(local_flink: LocalFlink) -> Iterator[SqlGateway]:
    with SqlGateway(local_flink.gateway_url) as gateway:
        yield gateway


@pytest.fixture
def jobs(local_flink: LocalFlink) -> Iterator[JobManager]:
    with JobManager(local_flink.jobmanager_url) as jobs:
        yield jobs


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with kafka_broker(tmp_path) as running:
        yield running


@pytest.fixture
def jvm(broker: Broker) -> Iterator[Any]:
    with kafka_client() as jvm:
        yield jvm
