"""A backfill run twice, with native partials and without: the rows, the counts and what was said."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_flinkcompat.backfill import BackfillRequest, plan, run_backfill
from airflow_flinkcompat.backfill.duckdb.eligibility import DuckDbAccelerator
from airflow_flinkcompat.model import JobSpec
from tests.support.backfill.scripts import script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (
    "ts TIMESTAMP(3), k STRING, i INT, b BIGINT, d DECIMAL(10, 2), day DATE, at_ TIMESTAMP(6), x DOUBLE, "
    "n INT NOT NULL, WATERMARK FOR ts AS ts"
)
RESULTS = (
    "k STRING, d DECIMAL(10, 2), ws TIMESTAMP(3), we TIMESTAMP(3), n BIGINT, c BIGINT, si INT, sb BIGINT, ab BIGINT, "
    "sd DECIMAL(38, 2), lo STRING, hi INT, l DATE, h DATE, a TIMESTAMP(6), md DECIMAL(10, 2)"
)
QUERY = (
    "INSERT INTO o SELECT k, d, window_start, window_end, COUNT(*), COUNT(i), SUM(i), SUM(b), AVG(b), SUM(d), MIN(k), "
    "MAX(i), MIN(day), MAX(day), MAX(at_), MIN(d) FROM {} GROUP BY k, d, window_start, window_end"
)
WINDOWS = {
    "TUMBLE": "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE, INTERVAL '-3' MINUTE))",
    "HOP": "TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '4' MINUTE, INTERVAL '10' MINUTE))",
    "CUMULATE": "TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '20' MINUTE))",
}
FILTER = " WHERE i > -5 AND k <> 'a' OR day IS NULL AND b >= 3"
BOUNDS = ((None, None), ("1969-12-31 23:41", "1970-01-01 00:13"))


def files(place: Path, name: str, columns: str, format: str = "parquet", more: str = "") -> str:
    utc = ", 'parquet.utc-timezone' = 'true'" if format == "parquet" else ""
    return (
        f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{place}', 'format' = '{format}'"
        f"{utc}{more})"
    )


def job(folder: Path, query: str, results: str = RESULTS, source: str | None = None) -> str:
    """A script over the table ``t``, which is the parquet files in the folder unless it is declared otherwise."""
    return script(source or files(folder / "in", "t", COLUMNS), files(folder / "out", "o", results), query)


def decided(text: str) -> tuple[list[str], bool]:
    """What is said of a script's aggregation, and whether it is computed natively."""
    said: list[str] = []
    return said, DuckDbAccelerator(said.append).covers(plan(BackfillRequest(JobSpec(text, source="job.sql"))).work)


def both_ways(
    spark: SparkSession, folder: Path, text: str, bounds: tuple[str | None, str | None] = (None, None)
) -> list[str]:
    """What was said with native partials; the rows and counts of both runs are the same, and not nothing."""
    from_, to = (None if moment is None else datetime.fromisoformat(moment) for moment in bounds)
    found, said = [], {"auto": [], "off": []}  # type: ignore[var-annotated]
    for way, lines in said.items():
        place = folder / f"out-{way}"
        request = BackfillRequest(
            JobSpec(text, source="job.sql"), from_=from_, to=to, sinks={"o": str(place)}, native=way
        )
        result = run_backfill(request, lines.append)
        rows = sorted(map(repr, spark.read.parquet(str(place)).collect()))
        counts = (result.rows_read, result.rows_dropped, result.sinks[0].rows, result.sinks[0].windows)
        found.append((rows, counts))
    assert found[0] == found[1]
    assert found[0][0]
    assert found[0][1][1] > 0
    assert not any("DuckDB" in line for line in said["off"])
    return [line for line in said["auto"] if "DuckDB" in line or "own operators" in line]
