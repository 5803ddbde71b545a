"""Matching of the sources of two scripts by folder and topic."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.deploy.errors import CannotRehearse
from airflow_flinkcompat.deploy.shadow.sources import moved_files, source_ids, source_operators
from airflow_flinkcompat.deploy.target import JobDescription, JobVertex, SourceTable


def files(name: str, path: str) -> SourceTable:
    return SourceTable(("c", "d", name), "filesystem", {"path": path})


def topic(name: str, topic: str) -> SourceTable:
    return SourceTable(("c", "d", name), "kafka", {"topic": topic, "properties.bootstrap.servers": "b:9092"})


A, B = files("A", "/in/a"), files("B", "/in/b")


def described(*names: str) -> JobDescription:
    return JobDescription(tuple(JobVertex(f"v{number}", name, 1) for number, name in enumerate(names)))


@pytest.mark.parametrize(
    "name",
    [
        "Source: A[1] -> Calc[2]",
        "Source: A[12]",
        "Source: TableSourceScan(table=[[c, d, A]], fields=[x]) -> Calc(select=[x])",
        "Source: TableSourceScan(table=[[c, d, A, watermark=[x]]], fields=[x])",
    ],
)
def test_a_source_has_the_name_of_its_table(name: str) -> None:
    assert source_operators(described(name, "GroupAggregate[3] -> Sink: R[4]"), (A, B, files("AB", "/"))) == {"v0": A}


def test_a_source_of_a_topic_has_the_path_of_its_table() -> None:
    orders = topic("orders", "o")
    assert source_operators(described("Source: KafkaSource-c.d.orders -> Calc[9]"), (A, orders)) == {"v0": orders}


@pytest.mark.parametrize("tables", [(B,), (A, files("A", "/elsewhere"))])
def test_a_source_without_a_table_of_its_name(tables: tuple[SourceTable, ...]) -> None:
    with pytest.raises(CannotRehearse, match=r"the table of Source: A\[1\] is unknown"):
        source_operators(described("Source: A[1]"), tables)


def test_sources_that_restore_the_position_of_a_different_folder() -> None:
    old = {"v0": A, "v1": B}
    assert moved_files(old, {"v0": B, "v1": A}) == {"v0": "v1", "v1": "v0"}
    assert moved_files(old, {"v0": A, "v1": files("C", "/in/c")}) == {"v1": None}
    assert moved_files(old, {"v0": A, "v1": B, "v2": A}) == {}, "v2 has no stored position"


def test_a_table_of_a_different_name_may_read_the_same_folder() -> None:
    old = {"v0": files("A", "file:///in/a/")}
    assert moved_files(old, {"v0": files("renamed", "/in/a")}) == {}
    assert source_ids(old, {"v7": files("renamed", "file:/in/a")}, ["v0"]) == {"v7": "v0"}


@pytest.mark.parametrize(("one", "other"), [("/in", "/in/b"), ("/in/b", "/in")])
def test_a_folder_that_contains_the_other_one(one: str, other: str) -> None:
    with pytest.raises(CannotRehearse, match="one of their folders contains"):
        moved_files({"v0": files("A", one)}, {"v0": files("B", other)})


def test_topics_do_not_move() -> None:
    assert moved_files({"v0": topic("a", "a")}, {"v0": topic("b", "b")}) == {}


def test_ids_of_sources() -> None:
    old = {"v0": A, "v1": B, "v2": A}
    assert source_ids(old, {"v2": A, "v1": B, "v5": A}, ["v0", "v1", "v2"]) == {"v2": "v2", "v1": "v1", "v5": "v0"}
    with pytest.raises(CannotRehearse, match="the old script does not read C"):
        source_ids(old, {"v0": files("C", "/in/c")}, ["v0"])
    with pytest.raises(CannotRehearse, match="the table of source v9 in the savepoint is unknown"):
        source_ids(old, {"v0": A}, ["v0", "v9"])
