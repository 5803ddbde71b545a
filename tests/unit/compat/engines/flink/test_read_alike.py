"""An aggregation over a table that is declared otherwise where the query does not read it."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Outcome, Report, Side, check

TABLE = "CREATE TABLE k ({}) WITH ('connector' = '{}', 'topic' = 't', 'format' = 'json');\n"
SINK = "CREATE TABLE s (a STRING, b BIGINT) WITH ('connector' = 'print');\nINSERT INTO s\n"
GROUP = "SELECT a, SUM(b) FROM k GROUP BY a;"
WINDOW = (
    "SELECT a, SUM(b) FROM TABLE(TUMBLE(TABLE k, DESCRIPTOR(ts), INTERVAL '1' MINUTE))\n"
    "GROUP BY a, window_start, window_end;"
)
TIME = "ts TIMESTAMP(3), WATERMARK FOR ts AS ts"
COLUMNS = f"a STRING, b BIGINT, c STRING, {TIME}"


def judged(old: str, new: str, query: str, connector: str = "kafka") -> Report:
    sides = (Side(TABLE.format(columns, connector) + SINK + query, engine="flink") for columns in (old, new))
    return check(*sides)


@pytest.mark.parametrize(
    "new",
    [
        f"a STRING, b BIGINT, c STRING, d INT, {TIME}",
        f"c INT, b BIGINT, a STRING, {TIME}",
        f"a STRING, b BIGINT, e STRING, {TIME}",
        f"a STRING, b BIGINT, c STRING, p INT METADATA FROM 'partition', {TIME}",
        f"a STRING, b BIGINT, c STRING, e AS UPPER(c), {TIME}",
    ],
)
@pytest.mark.parametrize("query", [GROUP, WINDOW])
def test_what_no_query_reads_may_be_declared_otherwise(new: str, query: str) -> None:
    report = judged(COLUMNS, new, query)
    assert report.outcome is Outcome.COMPATIBLE, report.findings
    assert all(finding.evidence for finding in report.findings)


@pytest.mark.parametrize("format", ["csv", "avro", "json"])
@pytest.mark.parametrize(
    ("new", "moved"),
    [
        (f"a STRING, b BIGINT, e INT, c STRING, {TIME}", False),
        (f"a STRING, b BIGINT, e STRING, {TIME}", False),
        (f"a STRING, e BIGINT, b BIGINT, c STRING, {TIME}", True),
        (f"b BIGINT, a STRING, c STRING, {TIME}", True),
    ],
)
def test_rows_without_names_tell_columns_by_their_place(new: str, moved: bool, format: str) -> None:
    sides = (
        Side(TABLE.replace("json", format).format(columns, "kafka") + SINK + GROUP, engine="flink")
        for columns in (COLUMNS, new)
    )
    report = check(*sides)
    doubted = moved and format != "json"
    assert report.outcome is (Outcome.UNKNOWN if doubted else Outcome.COMPATIBLE)


@pytest.mark.parametrize("query", [GROUP, WINDOW])
def test_a_calc_that_comes_above_the_source_is_refused(query: str) -> None:
    """A table that is read whole and in order has none."""
    whole = "a STRING, b BIGINT" if query == GROUP else f"a STRING, b BIGINT, {TIME}"
    assert judged(whole, whole.replace("BIGINT", "BIGINT, c STRING"), query).outcome is Outcome.INCOMPATIBLE


@pytest.mark.parametrize(
    "new",
    [
        COLUMNS.replace("b BIGINT", "b INT"),
        COLUMNS.replace("a STRING", "a STRING NOT NULL"),
        COLUMNS.replace("b BIGINT", "b AS CHAR_LENGTH(c)"),
        COLUMNS.replace("b BIGINT", "b BIGINT METADATA FROM 'offset'"),
    ],
)
@pytest.mark.parametrize("query", [GROUP, WINDOW])
def test_what_is_read_otherwise_is_not_compatible(new: str, query: str) -> None:
    assert judged(COLUMNS, new, query).outcome is not Outcome.COMPATIBLE


def test_the_event_time_of_a_window_is_read() -> None:
    moved = COLUMNS.replace("ts TIMESTAMP(3),", "ts TIMESTAMP(3) METADATA FROM 'timestamp',")
    assert judged(COLUMNS, moved, GROUP).outcome is Outcome.COMPATIBLE
    assert judged(COLUMNS, moved, WINDOW).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("connector", ["pulsar", "upsert-kafka", "nobody-knows"])
def test_other_sources_are_not_told_of(connector: str) -> None:
    new = f"a STRING, b BIGINT, c STRING, d INT, {TIME}"
    assert judged(COLUMNS, new, GROUP, connector).outcome is not Outcome.COMPATIBLE


def test_two_queries_of_one_statement_set_are_planned_together() -> None:
    other = "CREATE TABLE s2 (c STRING) WITH ('connector' = 'print');\n"
    both = f"EXECUTE STATEMENT SET BEGIN INSERT INTO s {GROUP} INSERT INTO s2 SELECT c FROM k; END;"
    sink = SINK.removesuffix("INSERT INTO s\n")
    old, new = (
        Side(TABLE.format(columns, "kafka") + sink + other + both, engine="flink")
        for columns in (COLUMNS, f"a STRING, b BIGINT, c STRING, d INT, {TIME}")
    )
    assert check(old, new).outcome is Outcome.UNKNOWN
