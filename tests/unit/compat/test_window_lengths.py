"""Window functions whose lengths Flink's own check turns down: never compatible, changed or not."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Side, check

TABLES = """\
CREATE TABLE o (a STRING, b BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka');
CREATE TABLE s (a STRING, n BIGINT) WITH ('connector' = 'print');
"""
QUERY = "INSERT INTO s SELECT a, SUM(b) FROM TABLE({}) GROUP BY a, window_start, window_end;"
CUMULATE = "CUMULATE(TABLE o, DESCRIPTOR(ts), INTERVAL '{}' MINUTE, INTERVAL '12' MINUTE)"
HOP = "HOP(TABLE o, DESCRIPTOR(ts), INTERVAL '{}' MINUTE, INTERVAL '12' MINUTE)"
TUMBLE = "TUMBLE(TABLE o, DESCRIPTOR(ts), INTERVAL '12' MINUTE, INTERVAL '{}' MINUTE)"


def script(window: str, engine: str, name: str) -> Side:
    return Side(TABLES + QUERY.format(window), engine=engine, source=f"{name}.sql")


@pytest.mark.parametrize("window", [CUMULATE.format(5), CUMULATE.format(0), HOP.format(0)])
def test_what_flink_refuses_is_never_compatible(window: str) -> None:
    for engine, outcome in (("flink", "incompatible"), ("vvr", "unknown")):
        report = check(script(window, engine, "old"), script(window, engine, "new"))
        assert report.outcome == outcome
        assert "program-refused" in {finding.rule for finding in report.deciding}
        said = next(finding for finding in report.findings if finding.after_span)
        assert said.message.startswith("Flink refuses the proposed script: ")
        assert said.message.endswith("; use different lengths")
        assert str(said.after_span).startswith("new.sql:3:")


@pytest.mark.parametrize("window", [CUMULATE.format(6), CUMULATE.format(12), TUMBLE.format(1), HOP.format(4)])
def test_what_flink_takes_is_unchanged(window: str) -> None:
    report = check(script(window, "flink", "old"), script(window, "flink", "new"))
    assert [finding.rule for finding in report.findings] == ["unchanged"]


def test_mending_what_was_refused_is_no_resume() -> None:
    report = check(script(CUMULATE.format(5), "vvr", "old"), script(CUMULATE.format(6), "vvr", "new"))
    assert report.outcome == "incompatible"
    assert any("Flink refuses the deployed script" in finding.message for finding in report.findings)
