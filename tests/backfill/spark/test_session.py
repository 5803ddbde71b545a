"""How a local session is tuned: only ever a matter of speed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airflow_flinkcompat.backfill.spark import session
from airflow_flinkcompat.backfill.spark.session import Effort


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
