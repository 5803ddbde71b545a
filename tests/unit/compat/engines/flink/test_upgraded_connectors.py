"""Connectors in an upgrade: a release for the new line, and the state that an older release stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.engines.flink.upgraded_connectors import ConnectorEffect, connector_effects
from airflow_flinkcompat.connectors.registry import catalogue
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.from_compiled import QUERY_SINK
from airflow_flinkcompat.exec_graph.model import RestoreEffect

RIGHT, REFUSED, UNKNOWN = RestoreEffect.RIGHT, RestoreEffect.REFUSED_AT_SUBMIT, RestoreEffect.UNKNOWN


def judged(
    orders: str, totals: str = "'connector' = 'print'", lines: tuple[str, str] = ("1.20", "2.3")
) -> Sequence[ConnectorEffect]:
    script = "".join(
        f"CREATE TABLE {name} (customer STRING, amount BIGINT) WITH ({given});\n"
        for name, given in (("orders", orders), ("totals", totals))
        if given
    )
    script += "INSERT INTO totals SELECT customer, amount FROM orders;"
    old, new = (Side(script, engine="flink", engine_version=each) for each in lines)
    examples = files("airflow_flinkcompat.exec_graph").joinpath("examples.json").read_text(encoding="utf-8")
    plan = json.dumps(json.loads(examples)["plan-equal"][0]).replace(QUERY_SINK, "totals")
    return connector_effects(Change(old, new), [read_plan(plan)])


def effects(*tables: str, lines: tuple[str, str] = ("1.20", "2.3")) -> list[str]:
    return [f"{each.name}: {each.effect.name}" for each in judged(*tables, lines=lines)]


def releases(*tables: str, lines: tuple[str, str] = ("1.20", "2.3")) -> dict[str, str]:
    return {each.connector: each.release for each in judged(*tables, lines=lines)}


def connector(name: str, *options: str) -> str:
    return ", ".join((f"'connector' = '{name}'", *options))


@pytest.mark.parametrize(
    ("given", "lines", "expected"),
    [
        (connector("kafka"), ("1.20", "2.3"), RIGHT),
        (connector("datagen"), ("1.19", "2.2"), RIGHT),
        (connector("mysql-cdc"), ("1.20", "2.3"), RIGHT),
        (connector("jdbc"), ("1.20", "2.3"), RIGHT),
        (connector("hbase-2.2"), ("1.20", "2.3"), RIGHT),
        (connector("pulsar"), ("1.20", "2.3"), UNKNOWN),
        (connector("my-own"), ("1.20", "2.3"), UNKNOWN),
        (connector("faker"), ("1.20", "2.3"), REFUSED),
        (connector("faker"), ("1.19", "1.20"), RIGHT),
        (connector("faker"), ("2.2", "2.3"), RIGHT),
    ],
)
def test_sources(given: str, lines: tuple[str, str], expected: RestoreEffect) -> None:
    name = given.split("'")[3]
    assert f"orders (read, {name}): {expected.name}" in effects(given, lines=lines)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (connector("upsert-kafka"), RIGHT),
        (connector("filesystem", "'format' = 'json'"), RIGHT),
        (connector("filesystem", "'format' = 'json'", "'auto-compaction' = 'true'"), UNKNOWN),
        (connector("starrocks"), REFUSED),
        (connector("hbase-2.2"), REFUSED),
        (connector("doris"), UNKNOWN),
        (connector("mongodb"), UNKNOWN),
        (connector("elasticsearch-7"), RIGHT),
    ],
)
def test_sinks(given: str, expected: RestoreEffect) -> None:
    name = given.split("'")[3]
    assert f"totals (written, {name}): {expected.name}" in effects(connector("kafka"), given)


def test_a_table_without_a_declared_connector_has_an_assumed_one() -> None:
    assert "orders (read): RIGHT" in effects("")
    assert "orders (read): RIGHT" in effects("'topic' = 't'")


def test_a_connector_without_a_release_names_its_list_of_releases() -> None:
    for name, facts in catalogue().items():
        assert not facts.not_on_flink_2 or facts.releases, name


def test_an_upgrade_to_flink_2_replaces_the_jars_of_connectors() -> None:
    given = connector("kafka")
    assert releases(given) == {"kafka": "flink-sql-connector-kafka 5.0.0-2.2", "print": ""}
    assert releases(given, lines=("2.2", "2.3")) == {"kafka": "", "print": ""}
