"""Spark's workers say what this process says, and are sent what they need."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_flinkcompat.fleet.audit import spark as on_spark
from airflow_flinkcompat.fleet.audit.changed_tables import read_changed_tables
from airflow_flinkcompat.fleet.audit.document import row_document
from airflow_flinkcompat.fleet.audit.judging import audit_here
from airflow_flinkcompat.fleet.audit.spark import audit_on_spark
from airflow_flinkcompat.fleet.audit.values import AuditPair
from airflow_flinkcompat.model import InputError, install_command
from tests.support.cli.command import V1
from tests.support.fleet.audit.pairs import pairs


@pytest.mark.slow
@pytest.mark.nightly
def test_the_same_rows_in_the_same_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In several batches, of which the last one is not full."""
    monkeypatch.setattr(on_spark, "_BATCH_PAIRS", 25)
    (tmp_path / "orders.sql").write_text(V1.split(";")[0].replace("'orders'", "'other'"), encoding="utf-8")
    tables = read_changed_tables(str(tmp_path / "orders.sql"))
    asked = pairs(60)
    assert list(audit_on_spark(asked, tables, "local[2]")) == list(audit_here(asked, tables))


def test_without_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_spark, "find_spec", lambda name: None if name == "pyarrow" else object())
    with pytest.raises(InputError, match="pyarrow missing.*" + re.escape(install_command("native"))):
        next(audit_on_spark(pairs(1), (), "local[2]"))


def test_batches_are_bounded_by_number_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    def sizes(asked: Iterator[AuditPair]) -> list[int]:
        return [len(batch) for batch in on_spark._batches(asked)]

    monkeypatch.setattr(on_spark, "_BATCH_PAIRS", 4)
    assert sizes(iter(pairs(10))) == [4, 4, 2]
    assert sizes(iter(())) == []
    monkeypatch.setattr(on_spark, "_BATCH_BYTES", 1)
    assert sizes(iter(pairs(3))) == [1, 1, 1]


def test_the_workers_own_error_is_told() -> None:
    trace = (
        "Job aborted due to stage failure: Task 0 in stage 1.0 failed\n  Traceback (most recent call last):\n"
        "    File \"worker.py\", line 3, in judge\n  ModuleNotFoundError: No module named 'pyarrow'\n"
        "  at org.apache.spark.SparkError: x"
    )
    assert on_spark._reason(RuntimeError(trace)) == "ModuleNotFoundError: No module named 'pyarrow'"
    assert on_spark._reason(RuntimeError("lost the cluster\nat x")) == "lost the cluster"


DRIVER = """\
import json, sys
from airflow_flinkcompat.fleet.audit.document import row_document
from airflow_flinkcompat.fleet.audit.spark import audit_on_spark
from tests.support.fleet.audit.pairs import pairs
print(json.dumps([row_document(row) for row in audit_on_spark(pairs(10), (), sys.argv[1])]))
"""


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_workers_of_a_cluster_are_sent_the_package(tmp_path: Path) -> None:
    """What judges there is what they were sent, or nothing: a worker without that folder fails."""
    from tests.scenarios.backfill.spark_cluster import spark_cluster

    environment = {
        "PYTHONPATH": str(Path(__file__).parents[4]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": "--conf spark.executor.memory=512m pyspark-shell",
    }
    with spark_cluster(tmp_path) as cluster:
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, cluster.master],
            env={**os.environ, **environment},
            capture_output=True, text=True, timeout=540, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        assert json.loads(done.stdout.splitlines()[-1]) == [row_document(row) for row in audit_here(pairs(10))]
        assert any(cluster.applications(worker) for worker in range(2))
