"""One Spark and one Flink for all backfill tests of a run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillRequest, BackfillResult, run_backfill
from tests.backfill.scripts import BIDS, Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.backfill.flink_batch import FlinkBatch
    from tests.backfill.kafka_broker import Broker
    from tests.backfill.postgres import Postgres


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session, as a backfill itself would start it."""
    from airflow_flinkcompat.backfill.session import spark_session
    from tests.backfill.packages import NEEDS

    with spark_session("local[2]", NEEDS) as session:
        yield session


@pytest.fixture(scope="session")
def flink() -> Iterator[FlinkBatch]:
    """The one Flink, with its Kafka connector beside it."""
    from airflow_flinkcompat.deploy.jars import fetch
    from tests.backfill.flink_batch import flink_batch

    with flink_batch([fetch("flink-sql-connector-kafka")]) as batch:
        yield batch


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The one PostgreSQL."""
    from tests.backfill.postgres import postgres

    with postgres() as server:
        yield server


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The one Kafka broker."""
    from tests.backfill.kafka_broker import kafka_broker

    with kafka_broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """The bids of the documentation in two files, one in a folder of its own, beside files a reader passes over."""
    place = tmp_path / "history"
    (place / "later").mkdir(parents=True)
    rows = BIDS.splitlines(keepends=True)
    (place / "a.csv").write_text("".join(rows[:4]), encoding="utf-8")
    (place / "later" / "b.csv").write_text("".join(rows[4:]), encoding="utf-8")
    (place / ".hidden").write_text("not a row", encoding="utf-8")
    (place / "_started").write_text("not a row", encoding="utf-8")
    return place


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def run(spark: SparkSession) -> Run:
    """Runs a script in the one session; times as text."""
    assert spark.getActiveSession() is spark

    def runs(text: str, from_: str | None = None, to: str | None = None, **request: object) -> BackfillResult:
        bounds = [None if moment is None else datetime.fromisoformat(moment) for moment in (from_, to)]
        return run_backfill(BackfillRequest(text, "job.sql", from_=bounds[0], to=bounds[1], **request))  # type: ignore[arg-type]

    return runs
