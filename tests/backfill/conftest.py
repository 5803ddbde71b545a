"""One Spark and one Flink for all backfill tests of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.backfill.flink_batch import FlinkBatch


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session, as a backfill itself would start it."""
    from airflow_flinkcompat.backfill.session import spark_session

    with spark_session("local[2]") as session:
        yield session


@pytest.fixture(scope="session")
def flink() -> Iterator[FlinkBatch]:
    """The one Flink in batch mode."""
    from tests.backfill.flink_batch import flink_batch

    with flink_batch() as batch:
        yield batch
