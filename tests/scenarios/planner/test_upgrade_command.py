"""``flinkcompat upgrade`` with the planners of two lines: each way on which a job moves, and the written copies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.support.cli.command import Result

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("planners")]

LINES = ("--old-engine-version", "1.20", "--engine-version", "2.3")
ORDERS = """\
CREATE TABLE orders (k STRING, v BIGINT, bitmap INT, t TIMESTAMP(3), WATERMARK FOR t AS t) WITH (
  'connector' = 'filesystem', 'path' = '/nowhere', 'format' = 'json', 'source.monitor-interval' = '1 s');
"""
PLAIN = ORDERS.replace("bitmap INT, ", "")
TOTALS = "CREATE TABLE totals (k STRING, x BIGINT) WITH ('connector' = 'print');\n"
KEYED = (
    "CREATE TABLE totals (k STRING, x BIGINT, PRIMARY KEY (x) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', {});\n"
)
KAFKA = "'topic' = 't', 'properties.bootstrap.servers' = 'k:9092', 'key.format' = 'json', 'value.format' = 'json'"
FAKER = "CREATE TABLE orders (k STRING, v BIGINT) WITH ('connector' = 'faker', 'fields.k.expression' = 'a');\n"
DEVIATION = TOTALS + "INSERT INTO totals SELECT k, CAST(STDDEV_POP(v) AS BIGINT) FROM orders GROUP BY k;\n"
SCRIPTS = {
    "untouched.sql": PLAIN + TOTALS + "INSERT INTO totals SELECT k, SUM(v) FROM orders GROUP BY k;\n",
    "reserved.sql": ORDERS + TOTALS + "INSERT INTO totals SELECT k, COUNT(bitmap) FROM orders GROUP BY k;\n",
    "conflict.sql": PLAIN + KEYED.format(KAFKA) + "INSERT INTO totals SELECT k, SUM(v) FROM orders GROUP BY k;\n",
    "deviation.sql": PLAIN + DEVIATION,
    "faker.sql": FAKER + TOTALS + "INSERT INTO totals SELECT k, SUM(v) FROM orders GROUP BY k;\n",
    "faker-deviation.sql": FAKER + DEVIATION,
    "broken.sql": PLAIN + "INSERT INTO totals SELECT k, FROM orders;\n",
}


def run(*arguments: str) -> Result:
    command = [sys.executable, "-m", "airflow_flinkcompat.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COLUMNS": "100"}, check=False)
    return Result(done.returncode, done.stdout, done.stderr)


def test_each_job_has_a_way_to_the_new_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("jobs").mkdir()
    for name, script in SCRIPTS.items():
        Path("jobs", name).write_text(script, "utf-8")
    result = run("upgrade", "jobs", *LINES, "--write", "upgraded", "--output", "html=upgrade.html")
    assert result.code == 1
    assert result.out == snapshot
    assert "with edits (2)" in Path("upgrade.html").read_text("utf-8")

    written = sorted(each.name for each in Path("upgraded/jobs").iterdir())
    assert written == ["conflict.sql", "reserved.sql"]
    assert Path("jobs/conflict.sql").read_text("utf-8") == SCRIPTS["conflict.sql"]
    again = run("upgrade", "upgraded/jobs", "--old-engine-version", "2.3", "--engine-version", "2.3")
    assert (again.code, again.out.count("untouched (2)")) == (0, 1)


@pytest.mark.nightly
def test_originals_are_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("conflict.sql").write_text(SCRIPTS["conflict.sql"], "utf-8")
    result = run("upgrade", "conflict.sql", *LINES, "--write", ".")
    assert result.code == 2
    assert "would replace the original script conflict.sql" in result.err
    assert Path("conflict.sql").read_text("utf-8") == SCRIPTS["conflict.sql"]
