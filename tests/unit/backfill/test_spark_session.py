"""How a local session is tuned: only ever a matter of speed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_flinkcompat.backfill import spark as session
from airflow_flinkcompat.backfill.spark import Effort

KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3"


def test_effort_is_that_of_reading_files_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b" / "deep").mkdir(parents=True)
    (tmp_path / "a b" / "deep" / "rows.csv").write_bytes(b"x" * 100)
    place = (tmp_path / "a b" / "deep").as_uri()
    assert session.effort([place]) is session.effort([]) is Effort.TINY
    assert session.effort([place, "s3a://bucket/orders"]) is Effort.MUCH
    monkeypatch.setattr(session, "_MOST_BYTES", {Effort.TINY: 99, Effort.LITTLE: 100})
    assert session.effort(iter([place])) is Effort.LITTLE
    assert session.effort([place, place]) is Effort.MUCH


def test_the_logging_that_spark_is_told_of_is_there() -> None:
    options = session.submit_configuration("local[*]")["spark.driver.extraJavaOptions"]
    (place,) = re.findall(r"configurationFile=file://(\S+)", options)
    assert "rootLogger" in Path(place).read_text(encoding="utf-8")


@pytest.mark.nightly
def test_the_first_start_on_a_machine_is_announced(tmp_path: Path) -> None:
    jars = tmp_path / ".ivy2.5.2" / "jars"
    jars.mkdir(parents=True)
    program = (
        "from airflow_flinkcompat.backfill import spark as session\n"
        "from airflow_flinkcompat.backfill.protocols import Needs\n"
        f"print(session.first_start(Needs(({KAFKA!r},))), end='')\n"
        "import pyspark"
    )

    def announced() -> str:
        environment = {
            **os.environ,
            "HOME": str(tmp_path),
            "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled"),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    fetched = f"{KAFKA} and dependencies are being downloaded from Maven Central"
    begins = "first start of Spark on this machine:"
    assert announced() == f"{begins} PySpark is being compiled to byte code and {fetched}, which happens only once"
    assert announced() == f"{begins} {fetched}, which happens only once"
    (jars / "org.apache.spark_spark-sql-kafka-0-10_2.13-4.1.3.jar").touch()
    assert announced() == ""
