"""What is read behind a prepared history: all that was not in it, once; without Spark's JVM."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from airflow_flinkcompat.backfill.connectors.files import FileSource
from airflow_flinkcompat.backfill.connectors.kafka import KafkaSource, Position
from airflow_flinkcompat.backfill.protocols import BackfillSource
from airflow_flinkcompat.backfill.steps import Group, Merge, Read, Step
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.history.prepared import PreparedExecution, PreparedHistory, PreparedPart, digest_of
from airflow_flinkcompat.history.sources import HistoryLocations
from airflow_flinkcompat.history.time_boundary import BoundaryArchive
from airflow_flinkcompat.savepoint.source_positions import FileSplit, FilesRead

SCRIPT = """
CREATE TABLE files (a STRING, b INT) WITH ('connector' = 'filesystem', 'path' = '/data', 'format' = 'csv');
CREATE TABLE topic (a STRING, b INT) WITH (
  'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json'
);
CREATE TABLE sink (a STRING, b INT) WITH ('connector' = 'print');
INSERT INTO sink SELECT * FROM files UNION ALL SELECT * FROM topic;
"""
FILES, TOPIC = (
    next(table for table in Side(SCRIPT, engine="flink").program.tables if table.path[2] == name)
    for name in ("files", "topic")
)


def grouped(source: BackfillSource) -> Group:
    read = Read("orders", source, ((0, "f0"),), fields=((0, 0),))
    return Group(read, ("c0",), ((1, "count(1)"),), merge=Merge(("c0",), ((1, "sum(c1)"),)))


def files(seen: str, waiting: str = "", begun: str = "") -> FileSource:
    """Each letter is a file."""
    splits = (tuple(FileSplit(f"file:/data/{each}", 0, 9, 9, 1) for each in names) for names in (waiting, begun))
    return replace(
        FileSource.of(FILES, "file:///data"), read=FilesRead(frozenset(f"file:/data/{each}" for each in seen), *splits)
    )


def topic(**offsets: int) -> KafkaSource:
    read = tuple((int(name.removeprefix("p")), offset) for name, offset in offsets.items())
    return replace(KafkaSource.of(TOPIC), end=Position("read", offsets=read))


def read_behind(step: Step, group: PreparedPart, watermark: int | None = None) -> BackfillSource:
    prepared = PreparedHistory("/prepared", {digest_of(step): group})
    (source,) = PreparedExecution(cast(Any, None), prepared, watermark).sources(step)
    return source


def of_files(*names: str) -> PreparedPart:
    return PreparedPart({"orders": {"files": [f"file:/data/{name}" for name in names]}}, None)


def of_topic(**offsets: int) -> PreparedPart:
    return PreparedPart({"orders": {"offsets": {name.removeprefix("p"): at for name, at in offsets.items()}}}, None)


def test_what_is_computed_has_one_name_however_far_it_is_read() -> None:
    assert digest_of(grouped(files("ab"))) == digest_of(grouped(files("abc", "c")))
    assert digest_of(grouped(topic(p0=3))) == digest_of(grouped(topic(p0=9, p1=2)))
    other = replace(files("ab"), place="file:///elsewhere")
    named = {digest_of(grouped(source)) for source in (files("ab"), other, topic(p0=3))}
    assert len(named) == 3
    assert digest_of(replace(grouped(files("ab")), keys=("c1",))) not in named
    begun_later = replace(topic(p0=9), start=Position("specific", offsets=((0, 5),)))
    assert digest_of(grouped(begun_later)) not in named


def test_files_that_were_prepared_are_not_read_again() -> None:
    source = read_behind(grouped(files("abc", waiting="d", begun="c")), of_files("a", "b"))
    assert isinstance(source, FileSource)
    assert source.read is not None
    assert source.read.seen == frozenset({"file:/data/c"})
    assert [split.path for split in source.read.in_progress] == ["file:/data/c"]


def test_records_that_were_prepared_are_not_read_again() -> None:
    """A partition that came since is read from its first record."""
    source = read_behind(grouped(topic(p0=9, p1=4, p2=2)), of_topic(p0=5, p1=4))
    assert isinstance(source, KafkaSource)
    assert (source.start, source.end.mode) == (Position("after", offsets=((0, 5), (1, 4))), "read")


@pytest.mark.parametrize(
    ("step", "group"),
    [
        (grouped(files("ab")), of_files("a", "c")),
        (grouped(files("ab", begun="b")), of_files("a", "b")),
        (grouped(topic(p0=4)), of_topic(p0=5)),
        (grouped(topic(p0=4)), of_topic(p0=4, p1=1)),
    ],
)
def test_all_is_read_for_a_savepoint_that_has_read_less_than_was_prepared(step: Group, group: PreparedPart) -> None:
    """The job went back to a checkpoint since, and has not come as far again."""
    assert read_behind(step, group) == step.input.source  # type: ignore[union-attr]
    assert not PreparedHistory("/prepared", {digest_of(step): group}).covers(step, None)


def test_all_is_read_where_less_was_prepared_than_is_needed() -> None:
    """Windows were left out that had fired by a later watermark; or distinct values would have to be merged."""
    step, group = grouped(topic(p0=9)), replace(of_topic(p0=5), watermark=1000)
    for watermark, whole in ((None, True), (999, True), (1000, False)):
        assert (read_behind(step, group, watermark) == step.input.source) is whole  # type: ignore[union-attr]
    apart = replace(step, merge=None)
    assert read_behind(apart, group, 1000) == topic(p0=9)


def test_behind_a_boundary_records_are_decoded_as_before_it() -> None:
    """What lay below it was told apart when it was prepared; late rows that came since are in the topic."""
    timed = Side(
        SCRIPT.replace("topic (a STRING, b INT)", "topic (a STRING, b INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)"),
        engine="flink",
    )
    table = next(each for each in timed.program.tables if each.path[2] == "topic")
    joined = HistoryLocations({"topic": "parquet:/lake#2026-01-31"}).source(table)
    assert isinstance(joined, BoundaryArchive)
    read = replace(joined, topic=replace(joined.topic, end=Position("read", offsets=((0, 9),))))
    source = read_behind(grouped(read), of_topic(p0=3))
    assert source == replace(read, topic=replace(read.topic, start=Position("after", offsets=((0, 3),))))
    moved = replace(read, boundary=read.boundary + 1)
    assert digest_of(grouped(moved)) != digest_of(grouped(read)) != digest_of(grouped(read.topic))


@pytest.mark.parametrize(
    ("declared", "otherwise"),
    [
        ("'format' = 'json'", "'format' = 'csv'"),
        ("topic (a STRING, b INT)", "topic (b INT, a STRING)"),
        ("'format' = 'json'", "'format' = 'json', 'json.ignore-parse-errors' = 'true'"),
    ],
)
def test_rows_that_are_decoded_otherwise_have_another_name(declared: str, otherwise: str) -> None:
    def named(script: str) -> str:
        (table,) = (each for each in Side(script, engine="flink").program.tables if each.path[2] == "topic")
        return digest_of(grouped(KafkaSource.of(table)))

    assert declared in SCRIPT
    assert named(SCRIPT) != named(SCRIPT.replace(declared, otherwise))
    assert named(SCRIPT) == named(f"-- a line more\n{SCRIPT}")
