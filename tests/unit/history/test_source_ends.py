"""How far topics are read, by what a broker says of its offsets; of folders test_warm_start.py tells."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_flinkcompat.backfill.connectors import kafka_spark
from airflow_flinkcompat.backfill.connectors.kafka import KafkaSource, Position
from airflow_flinkcompat.backfill.connectors.registry import TableLocations
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.history.sources import ALL, TopicEnd, Until, end_of, resumable
from airflow_flinkcompat.migration import NotMigratable
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.savepoint.source_positions import PartitionRead

OPTIONS = {
    "connector": "kafka",
    "topic": "orders",
    "properties.bootstrap.servers": "broker:9092",
    "scan.startup.mode": "earliest-offset",
    "format": "json",
}
SPECIFIC = {
    "scan.startup.mode": "specific-offsets",
    "scan.startup.specific-offsets": "partition:0,offset:5;partition:1,offset:0",
}
HELD = {"earliest": (0, 0), "latest": (1200, 800), "timestamp": (700, 800)}
"""Of two partitions."""


def of_options(given: dict[str, str], places: dict[str, str] | None = None) -> KafkaSource:
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    script = f"CREATE TABLE t (a INT) WITH ({listed}); CREATE TABLE s (a INT) WITH ('connector' = 'print');"
    side = Side(f"{script} INSERT INTO s SELECT a FROM t;", engine="flink")
    (table,) = (each for each in side.program.tables if each.path[2] == "t")
    found = resumable(table, TableLocations(tables=places or {}))
    assert isinstance(found, KafkaSource)
    return found


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, int]]:
    """What the broker says, to be changed."""
    held = dict(HELD)

    def offsets(session: Any, topics: Any, position: Position) -> dict[tuple[str, int], int]:
        given = dict(position.offsets)
        return {("orders", n): given[n] if given else held[position.mode][n] for n in (0, 1)}

    monkeypatch.setattr(kafka_spark, "offsets", offsets)
    return held


def ended(until: Until, of: KafkaSource | None = None) -> TopicEnd:
    session: Any = None
    found = end_of(session, of or of_options(OPTIONS), until)
    assert isinstance(found, TopicEnd)
    return found


@pytest.mark.parametrize(
    ("until", "offsets"),
    [
        (ALL, (1200, 800)),
        (Until.of("t", "1:3,0:1200"), (1200, 3)),
        (Until.of("t", "2026-01-31T00:00:00Z"), (700, 800)),
    ],
)
def test_offsets_that_do_not_change_any_more(
    until: Until, offsets: tuple[int, int], held: dict[str, tuple[int, int]]
) -> None:
    end = ended(until)
    assert end.partitions == tuple(PartitionRead("orders", n, offset) for n, offset in enumerate(offsets))
    assert end.source.end == Position("specific", offsets=tuple(enumerate(offsets)))
    assert str(end) == f"kafka://broker:9092/orders below the offsets 0:{offsets[0]},1:{offsets[1]}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0:3", "orders has the partitions 0, 1. Write an offset for each partition"),
        ("0:3,1:3,2:3", "orders has the partitions 0, 1. Write an offset for each partition"),
        ("0:3,1:801", "partition 1 of kafka://broker:9092/orders contains the offsets from 0 to 800, not 801"),
    ],
)
def test_offsets_that_are_not_there(text: str, says: str, held: dict[str, tuple[int, int]]) -> None:
    with pytest.raises(InputError) as raised:
        ended(Until.of("t", text))
    assert says in str(raised.value)
    assert str(raised.value).startswith("--until t: ")


def test_records_that_are_gone(held: dict[str, tuple[int, int]]) -> None:
    held["earliest"] = (5, 0)
    with pytest.raises(NotMigratable, match="partition 0 now begins at offset 5, because earlier records were deleted"):
        ended(ALL)
    begins_there = of_options({**OPTIONS, **SPECIFIC})
    assert [each.offset for each in ended(ALL, begins_there).partitions] == [1200, 800]


def test_a_job_goes_on_no_sooner_than_it_begins(held: dict[str, tuple[int, int]]) -> None:
    read_before = ended(Until.of("t", "0:2,1:2"), of_options({**OPTIONS, **SPECIFIC}))
    assert [each.offset for each in read_before.partitions] == [5, 2]


@pytest.mark.parametrize(
    ("options", "places", "says"),
    [
        ({"topic": "orders;returns"}, {}, "positions cannot be written for several topics yet"),
        ({"scan.bounded.mode": "latest-offset"}, {}, "is bounded"),
        (
            {},
            {"t": "parquet:/lake/orders"},
            "positions after the rows of file:///lake",
        ),
    ],
)
def test_a_topic_that_is_not_gone_on_with(options: dict[str, str], places: dict[str, str], says: str) -> None:
    with pytest.raises(BackfillError) as raised:
        of_options({**OPTIONS, **options}, places)
    assert says in str(raised.value)
