"""Which boundaries are understood, and which tables one parts; without Spark's JVM."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.backfill import BackfillError
from airflow_flinkcompat.backfill.protocols import BackfillSource
from airflow_flinkcompat.backfill.result import Untranslatable
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.history.archived_topic import OffsetArchive
from airflow_flinkcompat.history.sources import HistoryLocations
from airflow_flinkcompat.history.time_boundary import BoundaryArchive
from airflow_flinkcompat.model import InputError
from tests.support.backfill.topics import topic_table

SECOND = 1_000_000
MIDNIGHT = 1_769_817_600 * SECOND
"""2026-01-31 in UTC."""
LOCAL, INSTANT = "ts TIMESTAMP(3)", "ts TIMESTAMP_LTZ(3)"


def source_of(
    declared: str, joined: str, watermark: str = ", WATERMARK FOR ts AS ts", topic: str = "orders", **options: str
) -> BackfillSource:
    given = {"format": "json", "scan__startup__mode": "earliest-offset", **options}
    script = topic_table("t", f"a STRING, {declared}{watermark}", topic, "broker:9092", **given)
    sink = "CREATE TABLE s (a STRING) WITH ('connector' = 'print')"
    side = Side(f"{script}; {sink}; INSERT INTO s SELECT a FROM t;", engine="flink")
    table = next(each for each in side.program.tables if each.path[2] == "t")
    return HistoryLocations({"t": f"parquet:/lake#{joined}"}).source(table)


def joined_at(declared: str, text: str) -> BoundaryArchive:
    found = source_of(declared, text)
    assert isinstance(found, BoundaryArchive)
    return found


@pytest.mark.parametrize(
    ("declared", "text", "micros"),
    [
        (INSTANT, "2026-01-31T00:00:00Z", MIDNIGHT),
        (INSTANT, "2026-01-31 01:00:00+01:00", MIDNIGHT),
        (LOCAL, "2026-01-31T00:00:00", MIDNIGHT),
        (LOCAL, "2026-01-31", MIDNIGHT),
        (LOCAL, "2026-01-31T00:00:00,250", MIDNIGHT + SECOND // 4),
    ],
)
def test_a_boundary_is_a_time_by_the_clock_of_the_event_time(declared: str, text: str, micros: int) -> None:
    assert joined_at(declared, text).boundary == micros


def test_messages_tell_instants_from_local_times() -> None:
    assert joined_at(INSTANT, "2026-01-31T00:00:00Z").place == (
        "file:///lake below 2026-01-31T00:00:00Z, then kafka://broker:9092/orders"
    )
    assert " below 2026-01-31T00:00:00, " in joined_at(LOCAL, "2026-01-31").place


@pytest.mark.parametrize(
    ("declared", "text", "says"),
    [
        (
            INSTANT,
            "2026-01-31T00:00:00",
            r"has no time zone, but ts is a TIMESTAMP_LTZ: .* as in URI#2026-01-31T00:00:00Z",
        ),
        (LOCAL, "2026-01-31T00:00:00Z", r"has a time zone, but ts is a TIMESTAMP .* as in URI#2026-01-31T00:00:00$"),
        (INSTANT, "2026-01-31T00:00:00.0005Z", "more precise than an event time"),
        (INSTANT, "2026-31-01T00:00:00Z", "2026-31-01T00:00:00Z is not a time: write it as in URI#2026-01-31T00:00"),
    ],
)
def test_what_is_no_time_of_the_table_is_bad_input(declared: str, text: str, says: str) -> None:
    with pytest.raises(InputError, match=f"history of t: the boundary .*{says}"):
        source_of(declared, text)


def test_columns_that_look_like_dates_are_written_as_in_a_script() -> None:
    with_dates = source_of(INSTANT, "`2026-01-31`,`2026-02-01`")
    assert isinstance(with_dates, OffsetArchive)
    assert [column.name for column in with_dates.stored.columns][-2:] == ["2026-01-31", "2026-02-01"]


def test_an_event_time_may_be_computed_of_stored_columns() -> None:
    computed = joined_at("n INT, e BIGINT, ts AS TO_TIMESTAMP_LTZ(e, 3)", "2026-01-31T00:00:00Z")
    assert (computed.time, computed.field) == ("timestamp_millis(c2)", None)
    stored = joined_at(f"k AS UPPER(a), n INT, {INSTANT}", "2026-01-31T00:00:00Z")
    assert (stored.time, stored.field) == ("c2", 2)


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        (f"{INSTANT} METADATA FROM 'timestamp'", "the event time ts cannot be computed from stored columns alone"),
        ("at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', ts AS at", "cannot be computed from stored columns alone"),
        (
            "e BIGINT, ts AS TO_TIMESTAMP(FROM_UNIXTIME(e))",
            "the event time ts exactly, .*FROM_UNIXTIME has no exact",
        ),
        (
            "e BIGINT, ts AS UNKNOWN_FUNCTION(e)",
            "the event time ts exactly, .*function unknown_function",
        ),
        (f"m MAP<STRING, STRING>, {INSTANT}", "are compared in all columns: table t: column m of type MAP"),
    ],
)
def test_rows_that_cannot_be_parted_or_compared(declared: str, says: str) -> None:
    with pytest.raises(Untranslatable, match=says):
        source_of(declared, "2026-01-31T00:00:00Z")


def test_a_table_without_event_time_has_no_boundary() -> None:
    with pytest.raises(Untranslatable, match="declares no WATERMARK"):
        source_of(INSTANT, "2026-01-31T00:00:00Z", watermark="")


SPECIFIC = {"scan__startup__mode": "specific-offsets", "scan__startup__specific_offsets": "partition:0,offset:5"}
TIMESTAMP = {"scan__startup__mode": "timestamp", "scan__startup__timestamp_millis": "1"}


@pytest.mark.parametrize("options", [SPECIFIC, TIMESTAMP])
def test_where_a_job_began_in_its_topic_an_archive_does_not_tell(options: dict[str, str]) -> None:
    with pytest.raises(Untranslatable, match=r"starts within its topic \(scan.startup.mode\)"):
        source_of(INSTANT, "2026-01-31T00:00:00Z", **options)


def test_several_topics_have_no_archive() -> None:
    with pytest.raises(Untranslatable, match="several topics"):
        source_of(INSTANT, "2026-01-31T00:00:00Z", topic="orders;refunds")


def test_what_is_no_topic_has_no_boundary() -> None:
    files = "CREATE TABLE t (a STRING) WITH ('connector' = 'filesystem', 'path' = '/in', 'format' = 'json')"
    sink = "CREATE TABLE s (a STRING) WITH ('connector' = 'print')"
    side = Side(f"{files}; {sink}; INSERT INTO s SELECT a FROM t;", engine="flink")
    table = next(each for each in side.program.tables if each.path[2] == "t")
    with pytest.raises(
        BackfillError, match=r"table t is not read from a Kafka topic, so parquet:/lake .* remove #2026-01-31"
    ):
        HistoryLocations({"t": "parquet:/lake#2026-01-31"}).source(table)
