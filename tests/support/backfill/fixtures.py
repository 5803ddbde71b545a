"""Fixtures of a backfill that unit tests and scenarios share."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillResult, run_backfill
from tests.support.backfill.scripts import BIDS, Run, requested

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """The bids of the documentation in two files, one in a folder of its own, beside files a reader passes over."""
    place = tmp_path / "history"
    (place / "later").mkdir(parents=True)
    rows = BIDS.splitlines(keepends=True)
    (place / "a.csv").write_text("".join(rows[:4]), encoding="utf-8")
    (place / "later" / "b.csv").write_text("".join(rows[4:]), encoding="utf-8")
    (place / ".hidden").write_text("not a row", encoding="utf-8")
    (place / "_started").write_text("not a row", encoding="utf-8")
    return place


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def run(spark: SparkSession) -> Run:
    """Runs a script in the one session; times as text."""
    assert spark.getActiveSession() is spark

    def runs(text: str, from_: str | None = None, to: str | None = None, **request: object) -> BackfillResult:
        bounds = [None if moment is None else datetime.fromisoformat(moment) for moment in (from_, to)]
        return run_backfill(requested(text, **{"source": "job.sql", "from_": bounds[0], "to": bounds[1], **request}))

    return runs
