"""One Spark and one Flink for all backfill tests of a run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillRequest, run_backfill
from airflow_flinkcompat.model import JobSpec
from tests.scenarios.backfill.engines import Both, Compare, result_types
from tests.support.backfill.fixtures import history, results, run
from tests.support.backfill.scripts import lines, script, table

__all__ = ["history", "results", "run"]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dev.services.flink_batch import FlinkBatch
    from dev.services.kafka import Broker
    from dev.services.postgres import Postgres


@pytest.fixture
def plain_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """Without what pays for many rows only (generated code, plans that change on the way): four times as fast."""
    from airflow_flinkcompat.backfill.spark import configured

    plain = {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    with configured(spark, plain):
        yield spark


@pytest.fixture(scope="session")
def flink() -> Iterator[FlinkBatch]:
    """The one Flink, with its Kafka connector beside it."""
    from airflow_flinkcompat.local_flink.jars import fetch
    from dev.services.flink_batch import flink_batch

    with flink_batch([fetch("flink-sql-connector-kafka")]) as batch:
        yield batch


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The one PostgreSQL."""
    from dev.services.postgres import postgres

    with postgres() as server:
        yield server


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The one Kafka broker."""
    from dev.services.kafka import kafka_broker

    with kafka_broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture
def both(flink: FlinkBatch, spark: SparkSession, tmp_path: Path) -> Both:
    """Runs statements that write to ``OUT`` with either engine; returns the lines of both."""
    assert spark.getActiveSession() is spark

    def run(statements: list[str], settings: dict[str, str] | None = None) -> tuple[list[str], list[str]]:
        places = [tmp_path / "by-flink", tmp_path / "by-spark"]
        for place in places:
            shutil.rmtree(place, ignore_errors=True)
        there = [[statement.replace("OUT", str(place)) for statement in statements] for place in places]
        flink.run(there[0], settings)
        batch = {"execution.runtime-mode": "batch"}
        run_backfill(
            BackfillRequest(JobSpec(script(*there[1]), source="job.sql", settings={**batch, **(settings or {})}))
        )
        return lines(places[0]), lines(places[1])

    return run


@pytest.fixture
def compare(both: Both, tmp_path: Path) -> Compare:
    """Compares expressions, or aggregates per window and key, over rows of a csv file."""

    def compares(
        columns: str,
        rows: Sequence[Sequence[str]],
        expressions: Sequence[str],
        query: str = "{} FROM t",
        settings: dict[str, str] | None = None,
    ) -> None:
        place = tmp_path / "in"
        place.mkdir(exist_ok=True)
        numbered = [f"{number},{','.join(row)}\n" for number, row in enumerate(rows)]
        (place / "rows.csv").write_text("".join(numbered), encoding="utf-8")
        source = table("t", f"nr INT, {columns}", place, csv__null_literal="NULL")
        types = result_types(source, expressions, query)
        results = table("o", ", ".join(["nr INT", *(f"v{i} {kind}" for i, kind in enumerate(types))]), "OUT")
        insert = "INSERT INTO o SELECT nr, " + query.format(", ".join(expressions))
        by_flink, by_spark = both([source, results, insert], settings)
        assert by_spark == by_flink
        assert by_flink

    return compares
