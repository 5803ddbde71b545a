"""Migrations on a real Spark: the same savepoint as this process alone makes, and the same errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_flinkcompat.migration import NotMigratable, migrate_savepoint, verify
from airflow_flinkcompat.migration.workers import LocalWorkers, Workers
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.store import read_metadata
from airflow_flinkcompat.spark_migration import SparkWorkers, migration_workers
from dev.benchmarks.generated_savepoints import entries_of, generate
from dev.measure.savepoint_fixtures import CASES, FOLDER, NOW, change
from tests.support.nightly import mostly_nightly

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def workers(spark: SparkSession) -> Iterator[SparkWorkers]:
    said: list[str] = []
    with migration_workers(str(FOLDER / CASES[0] / "old"), True, "local[2]", said.append) as workers:
        assert said[0].endswith("of state on Spark (local[2])")
        assert isinstance(workers, SparkWorkers)
        yield workers


def written(source: Path, name: str, target: Path, workers: Workers) -> Counter[object]:
    template = FOLDER / name / "template"
    migrate_savepoint(str(source), str(template), str(target), change(name), NOW, workers)
    verify(str(source), str(target), change(name))
    return entries_of(target)


@pytest.mark.parametrize("name", mostly_nightly(CASES))
def test_spark_writes_the_same_savepoint(name: str, workers: SparkWorkers, tmp_path: Path) -> None:
    source = generate(FOLDER / name / "old", 300, tmp_path / "old")
    alone = written(source, name, tmp_path / "alone", LocalWorkers())
    assert written(source, name, tmp_path / "shared", workers) == alone
    files = [each.keyed for operator in read_metadata(str(tmp_path / "shared")).operators
             for each in operator.subtasks or () if each.keyed is not None]  # fmt: skip
    assert len(files) > 1
    assert {path.name for path in (tmp_path / "shared").iterdir()} >= {"_metadata"}
    assert not (tmp_path / "shared" / "_unfinished-migration").exists()


@pytest.mark.parametrize("name", mostly_nightly(CASES, 2))
def test_what_a_task_finds_damaged_is_said_as_by_this_process(name: str, workers: SparkWorkers, tmp_path: Path) -> None:
    source = generate(FOLDER / name / "old", 300, tmp_path / "old")
    old = read_metadata(str(source))
    operators = tuple(
        replace(operator, subtasks=operator.subtasks and tuple(
            replace(each, keyed=each.keyed and replace(each.keyed, begins=(each.keyed.begins[-1] + 1,) * 2))
            for each in operator.subtasks
        ))
        for operator in old.operators
    )  # fmt: skip
    (source / "_metadata").write_bytes(replace(old, operators=operators).to_bytes())
    with pytest.raises((SavepointUnreadable, NotMigratable)):
        written(source, name, tmp_path / "new", workers)
    assert not list((tmp_path / "new").glob("*"))
