"""Columns of event time and metadata that come to a sink: operators in front of it come with them."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Outcome, check

READ = """\
CREATE TABLE k (a STRING, b INT, c STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json');
"""
FILES = """\
CREATE TABLE s (a STRING, w TIMESTAMP(3), n BIGINT) WITH ('connector' = 'filesystem', 'path' = '/x', 'format' = 'csv');
"""
PRINT = "CREATE TABLE s (a STRING, b TIMESTAMP(3), c TIMESTAMP(3)) WITH ('connector' = 'print');\n"
PLACE = "WITH ('connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json');\n"
MINUTES = """
INSERT INTO s SELECT a, {}, SUM(b) FROM TABLE(TUMBLE(TABLE k, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end, window_time;
"""
CASES = {
    "window_time into files": (
        FILES + MINUTES.format("window_start"),
        FILES + MINUTES.format("window_time"),
    ),
    "two columns of event time": (
        PRINT + "INSERT INTO s SELECT a, ts, CAST(ts AS TIMESTAMP(3)) FROM k;",
        PRINT + "INSERT INTO s SELECT a, ts, ts FROM k;",
    ),
    "metadata of a Kafka sink": tuple(
        f"CREATE TABLE s (a STRING, b INT, t TIMESTAMP(3){said}) {PLACE}"
        "INSERT INTO s SELECT a, b, CAST(ts AS TIMESTAMP(3)) FROM k;"
        for said in ("", " METADATA FROM 'timestamp'")
    ),
    "a table that is there already": (
        PRINT + "INSERT INTO s SELECT a, ts, CAST(ts AS TIMESTAMP(3)) FROM k;",
        PRINT + PRINT + "INSERT INTO s SELECT a, ts, CAST(ts AS TIMESTAMP(3)) FROM k;",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_never_compatible(name: str) -> None:
    old, new = (READ + side for side in CASES[name])
    assert check(old, new, engine="flink").outcome is not Outcome.COMPATIBLE
    assert check(old, old, engine="flink").outcome is Outcome.COMPATIBLE
