"""When Spark shares a migration, and what is said of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from airflow_flinkcompat import spark_migration as workers
from airflow_flinkcompat.backfill import spark as spark_session_module
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.savepoint.store import read_metadata
from airflow_flinkcompat.spark_migration import SparkWorkers
from dev.measure.savepoint_fixtures import CASES, FOLDER

SAVEPOINT = str(FOLDER / CASES[0] / "old")


@contextmanager
def session(master: str | None, **_: object) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(sparkContext=SimpleNamespace(master=master or "local[*]", defaultParallelism=4))


@pytest.mark.parametrize(
    ("wanted", "least", "installed", "shares", "says"),
    [
        (None, 1 << 31, True, False, []),
        (None, 1, True, True, ["of state on Spark (local[*])"]),
        (None, 1, False, False, ["of state in this process only; Spark shares the work"]),
        (False, 1, True, False, []),
        (True, 1 << 31, True, True, ["of state on Spark (local[*])"]),
    ],
)
def test_spark_shares_what_is_large_or_what_it_is_asked_to(
    wanted: bool | None, least: int, installed: bool, shares: bool, says: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(workers, "SPARK_FROM", least)
    monkeypatch.setattr(workers, "find_spec", lambda _: object() if installed else None)
    monkeypatch.setattr(spark_session_module, "spark_session", session)
    with workers.migration_workers(SAVEPOINT, wanted, None, said.append) as chosen:
        assert isinstance(chosen, SparkWorkers) is shares
        assert chosen is not None or not shares
    assert len(said) == len(says)
    assert all(part in line for part, line in zip(says, said, strict=True))


def test_spark_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(master: str | None, **_: object) -> None:
        raise BackfillError("Spark is missing")

    monkeypatch.setattr(spark_session_module, "spark_session", refused)
    with (
        pytest.raises(InputError, match="Spark is missing"),
        workers.migration_workers(SAVEPOINT, True, None, print),
    ):
        pass


def test_parts_are_as_many_as_spark_has_places_for_and_more_where_they_were_large() -> None:
    context = SimpleNamespace(master="spark://h:1", defaultParallelism=4)
    made = SparkWorkers(SimpleNamespace(sparkContext=context))  # type: ignore[arg-type]
    assert made.parts(1000, 128) == 4
    assert made.parts(1 << 30, 128) == 16
    assert made.parts(1 << 40, 128) == 128
    assert made.parts(1000, 1) == 1


def test_the_size_is_that_of_keyed_state() -> None:
    metadata = read_metadata(SAVEPOINT)
    assert 0 < metadata.keyed_size < sum(each.size for each in metadata.handles())


def test_without_spark_the_core_of_a_migration_does_not_import_it() -> None:
    script = "import sys, airflow_flinkcompat.spark_migration; assert 'pyspark' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
