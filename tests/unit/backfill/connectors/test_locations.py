"""Where tables lie, by declaration or by request."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.backfill import BackfillError
from airflow_flinkcompat.backfill.connectors.registry import TableLocations
from airflow_flinkcompat.backfill.request import nested, normalised
from airflow_flinkcompat.plan.nodes import Table


def a_table(*path: str, **options: str) -> Table:
    given = {"connector": "filesystem", "path": "/declared", "format": "csv"} | options
    parts = ("", "", *path)[-3:]
    return Table((parts[0], parts[1], parts[2]), (), (), options=tuple(sorted(given.items())))


@pytest.mark.parametrize("name", ["orders", "`orders`", "db.orders", "c.db.orders"])
def test_a_table_goes_by_every_part_of_its_name(name: str) -> None:
    assert TableLocations(tables={name: "/archive"}).source(a_table("c", "db", "orders")).place == "file:///archive"


def test_the_default_names_of_flink_may_be_written() -> None:
    places = TableLocations(tables={"default_catalog.default_database.orders": "/archive"})
    assert places.source(a_table("orders")).place == "file:///archive"


def test_another_name_leaves_the_declared_place() -> None:
    places = TableLocations(sinks={"other": "/x"})
    declared, given = places.sink(a_table("orders")), places.sink(a_table("other"))
    assert (declared.place, declared.exclusive) == ("file:///declared", False)
    assert (given.place, given.exclusive) == ("file:///x", True)


def test_names_are_case_sensitive_and_must_exist() -> None:
    with pytest.raises(BackfillError, match="--table Orders: the script reads no table with this name"):
        TableLocations(tables={"Orders": "/x"}).check([a_table("orders")], [])


def test_a_name_for_two_tables_is_ambiguous() -> None:
    with pytest.raises(BackfillError, match="--sink t matches several"):
        TableLocations(sinks={"t": "/x"}).check([], [a_table("a", "t"), a_table("b", "t")])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (a_table("t", connector="pulsar"), "connector pulsar.*--table t=URI"),
        (a_table("t", **{"source.path.regex-pattern": ".*"}), "option source.path.regex-pattern"),
        (a_table("t", path=""), "no option path"),
        (a_table("t", path="/a/*.csv"), "a pattern character"),
        (a_table("t", path="${conn.lake.host}/x"), "has no value. Set the variable"),
        (Table(("", "", "t"), (), (), declared=False), "not declared"),
    ],
)
def test_a_place_that_cannot_be_used_says_what_to_do(table: Table, words: str) -> None:
    with pytest.raises(BackfillError, match=words):
        TableLocations().source(table)


def test_a_given_place_stands_in_for_any_connector() -> None:
    assert (
        TableLocations(tables={"t": "s3a://bucket/archive/"}).source(a_table("t", connector="kafka")).place
        == "s3a://bucket/archive"
    )


def test_a_secret_in_an_option_is_masked() -> None:
    with pytest.raises(BackfillError) as caught:
        TableLocations().source(a_table("t", password="'password' = 'hunter2'"))
    assert "hunter2" not in str(caught.value)


def test_relative_places_and_blanks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert normalised("in here", "x") == (tmp_path / "in here").as_uri()
    assert normalised("file:///a%20b/", "x") == "file:///a%20b"
    with pytest.raises(BackfillError, match="the location is empty"):
        normalised(" ", "x")


@pytest.mark.parametrize(
    ("first", "second", "inside"),
    [("file:///a", "file:///a", True), ("file:///a/b", "file:///a", True), ("file:///ab", "file:///a", False)],
)
def test_nested_places(first: str, second: str, inside: bool) -> None:
    assert nested(first, second) is nested(second, first) is inside
