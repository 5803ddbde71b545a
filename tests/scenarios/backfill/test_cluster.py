"""The backfill on a cluster: spark-submit, one zip of the package, and executors that know nothing else of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import airflow_flinkcompat
from airflow_flinkcompat.backfill import BackfillRequest
from airflow_flinkcompat.model import JobSpec
from tests.scenarios.backfill.spark_cluster import Cluster, spark_cluster
from tests.support.backfill.scripts import BID_COLUMNS, Run, lines, script, table

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

WINDOWS = {
    "tumble": "TUMBLE(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '10' MINUTES)",
    "hop": "HOP(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '5' MINUTES, INTERVAL '20' MINUTES)",
    "cumulate": "CUMULATE(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '5' MINUTES, INTERVAL '30' MINUTES)",
}
COLUMNS = "item STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT, total DECIMAL(38, 2), m INT"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The package as one zip, and nothing beside it."""
    root, target = Path(airflow_flinkcompat.__file__).parent, tmp_path / "airflow_flinkcompat.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(root.parent))
    return target


def history(place: Path) -> str:
    """Several files, so that both workers have something to read; the script over them."""
    place.mkdir()
    begin = datetime(2026, 1, 1)
    for file in range(6):
        rows = (
            f"{begin + timedelta(seconds=(file * 37 + 269 * i) % 21600)},{i % 13}.25,{'abc'[i % 3]}\n"
            for i in range(80)
        )
        (place / f"{file}.csv").write_text("".join(rows), encoding="utf-8")
    sinks = [table(name, COLUMNS, f"/sink/{name}") for name in WINDOWS]
    query = (
        "SELECT item, window_start, window_end, COUNT(*), SUM(price), MAX(CHAR_LENGTH(UPPER(item))) "
        "FROM TABLE({}) GROUP BY item, window_start, window_end"
    )
    inserts = [f"INSERT INTO {name} {query.format(window)}" for name, window in WINDOWS.items()]
    return script(table("bid", BID_COLUMNS, place), *sinks, *inserts)


def test_two_workers_give_what_one_process_gives(cluster: Cluster, package: Path, run: Run, tmp_path: Path) -> None:
    text = history(tmp_path / "history")
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    span = ("2026-01-01 00:00:00", "2026-01-01 06:00:00")
    expected = run(text, *span, sinks={name: str(alone / name) for name in WINDOWS})

    import airflow_flinkcompat.backfill.job as job

    application = shutil.copy(job.__file__, tmp_path / "backfill_job.py")
    request = BackfillRequest(
        JobSpec(text),
        from_=datetime.fromisoformat(span[0]),
        to=datetime.fromisoformat(span[1]),
        chunk=timedelta(hours=3),
        sinks={name: str(spread / name) for name in WINDOWS},
        master=cluster.master,
    )
    (tmp_path / "request.json").write_text(json.dumps(request.to_dict()), encoding="utf-8")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.executor.memory": "512m",
        # With two executors from the start both have work.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
    }
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "SPARK_HOME")}
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("spark-submit")), "--master", cluster.master,
            *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
            "--py-files", str(package), application,
            "--request", str(tmp_path / "request.json"), "--result", str(tmp_path / "result.json"),
        ],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert [sink["rows"] for sink in result["sinks"]] == [sink.rows for sink in expected.sinks]
    assert result["windows_written"] == expected.windows_written
    for name in WINDOWS:
        assert lines(spread / name) == lines(alone / name)
        assert len(lines(spread / name)) > 90
    assert "backfill: chunk 2 of 2" in done.stdout
    assert [len(cluster.applications(worker)) for worker in range(2)] == [1, 1]
