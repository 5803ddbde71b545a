"""GROUPING SETS, CUBE and ROLLUP in windowed aggregations, against Flink in batch mode."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, plan
from airflow_flinkcompat.model import JobSpec
from tests.scenarios.backfill.engines import by_both
from tests.support.backfill.scripts import TUMBLE, bids, filled, table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dev.services.flink_batch import FlinkBatch


COLUMNS = "ts TIMESTAMP(3), k STRING, j INT, v INT, WATERMARK FOR ts AS ts"


def history(folder: Path) -> str:
    draw = random.Random(5)
    rows = []
    for _ in range(200):
        time = f"1970-01-01 00:{draw.randrange(4):02d}:{draw.randrange(60):02d}" if draw.random() > 0.05 else ""
        values = draw.choice(["a", "b", ""]), draw.choice(["1", "2", ""]), draw.choice(["", str(draw.randrange(-9, 9))])
        rows.append(f"{time},{','.join(values)}\n")
    return filled("t", COLUMNS, folder, rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("window", "groups"),
    mostly_nightly(
        [
            ("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)", "CUBE (k, j), window_start, window_end"),
            (
                "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
                "GROUPING SETS ((window_start, window_end, k), (window_end, window_start, j), "
                "(window_start, window_end))",
            ),
            (
                "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)",
                "window_start, window_end, ROLLUP (k, j)",
            ),
        ],
        1,
    ),
)
@pytest.mark.nightly
def test_like_flink(flink: FlinkBatch, spark: SparkSession, tmp_path: Path, window: str, groups: str) -> None:
    """Keys are aggregated as they are, also where the set leaves them out, and a NULL key is no key left out."""
    values = "SUM(v), COUNT(*), MAX(j), COUNT(DISTINCT k), GROUPING(k), GROUPING(j), GROUPING_ID(k, j)"
    sink = (
        "k STRING, j INT, ws TIMESTAMP(3), we TIMESTAMP(3), s INT, n BIGINT, m INT, d BIGINT, "
        "gk BIGINT, gj BIGINT, g BIGINT"
    )
    insert = f"INSERT INTO o SELECT k, j, window_start, window_end, {values} FROM TABLE({window}) GROUP BY {groups}"
    statements = [history(tmp_path / "in"), table("o", sink, "OUT"), insert]
    by_flink, by_spark, _ = by_both(flink, tmp_path, statements, streaming=False)
    assert by_spark == by_flink
    assert len(by_flink) > 10


SESSION = "TABLE(SESSION(TABLE bid PARTITION BY item, DESCRIPTOR(bidtime), INTERVAL '10' MINUTES))"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            f"SELECT SUM(price) FROM {TUMBLE} GROUP BY GROUPING SETS ((window_start, window_end, item), "
            "(item, window_end, window_start))",
            "a grouping set is listed twice",
        ),
        (f"SELECT SUM(price) FROM {SESSION} GROUP BY window_start, window_end, CUBE (item)", "over SESSION"),
        (
            "SELECT SUM(price) FROM bid GROUP BY TUMBLE(bidtime, INTERVAL '5' MINUTE), CUBE (item)",
            "Flink does not plan GROUPING SETS, CUBE or ROLLUP",
        ),
        (
            f"SELECT SUM(price) FROM {TUMBLE} GROUP BY GROUPING SETS ((window_start, window_end), (window_start))",
            "unless both window_start and window_end",
        ),
        (
            f"SELECT GROUPING_ID(price) FROM {TUMBLE} GROUP BY window_start, window_end, CUBE (item)",
            "the arguments of GROUPING_ID must be keys",
        ),
    ],
)
def test_what_flink_refuses_is_refused(query: str, words: str) -> None:
    text = bids(query, "v BIGINT" if "GROUPING_ID" in query else "v DECIMAL(38, 2)")
    with pytest.raises(BackfillError, match=words) as caught:
        plan(BackfillRequest(JobSpec(text, source="job.sql")))
    assert str(caught.value).startswith("job.sql:")
