"""The Spark application: its exit status, and that it runs as a file, as spark-submit runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_flinkcompat.backfill import BackfillRequest
from airflow_flinkcompat.backfill.job import main
from airflow_flinkcompat.model import JobSpec
from tests.support.backfill.scripts import BIDS, TUMBLE, bids, lines

SUM_COLUMNS = "window_start TIMESTAMP(3), window_end TIMESTAMP(3), total DECIMAL(38, 2)"
SUM = f"SELECT window_start, window_end, SUM(price) FROM {TUMBLE} GROUP BY window_start, window_end"


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (None, 2, "cannot be read"),
        (b"\xff\xfe", 2, "cannot be read"),
        (b"{", 2, "not valid JSON"),
        (b'{"script": "x", "form": 1}', 2, "unknown field form"),
        (b'{"script": "CREATE TABLE t (x INT)"}', 1, "has no INSERT INTO statement"),
    ],
)
def test_a_bad_request_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, status: int, words: str
) -> None:
    path = tmp_path / "request.json"
    if content is not None:
        path.write_bytes(content)
    result = tmp_path / "result.json"
    assert main(["--request", str(path), "--result", str(result)]) == status
    error = capsys.readouterr().err
    assert not result.exists() if status == 2 else words in json.loads(result.read_text(encoding="utf-8"))["error"]
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.slow
@pytest.mark.nightly
def test_it_runs_as_a_file_from_anywhere(tmp_path: Path) -> None:
    import airflow_flinkcompat.backfill.job as job

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(BIDS, encoding="utf-8")
    request = BackfillRequest(
        JobSpec(bids(SUM, SUM_COLUMNS, tmp_path / "in", tmp_path / "out"), source="job.sql"), master="local[1]"
    )
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request.to_dict()), encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, job.__file__, "--request", str(path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *progress, last = done.stdout.splitlines()
    assert json.loads(last)["rows_written"] == 2
    assert all(line.startswith("backfill: ") for line in progress)
    assert len(lines(tmp_path / "out")) == 2
