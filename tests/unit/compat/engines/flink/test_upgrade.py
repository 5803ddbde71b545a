"""An upgrade of Flink: only planners prove it, and each connector needs a release that reads the stored state."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files

import pytest

from airflow_flinkcompat.compat import Consequence, Outcome, Report, Side, check
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.engines.flink.upgrade import UPGRADE_FIRST, ConnectorEffect, connector_effects
from airflow_flinkcompat.connectors.registry import catalogue
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.from_compiled import QUERY_SINK
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from dev.measure import results
from dev.measure.measured import RIGHT as RESTORED_RIGHT
from dev.measure.measured import Restore, connectors, load
from tests.support.nightly import mostly_slow

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


# ------------------------------------------------------------------------------------------------- without planners
COUNTED = """
CREATE TABLE trips (rider STRING, fare BIGINT, city STRING) WITH ('connector' = 'filesystem', 'path' = 'file:///trips',
  'format' = 'csv', 'source.monitor-interval' = '1 s');
CREATE TABLE result (rider STRING, n BIGINT) WITH ('connector' = 'print');
CREATE TABLE kept (rider STRING, n BIGINT, PRIMARY KEY (rider) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO result
SELECT rider, SUM(fare) FROM trips GROUP BY rider;"""
UPGRADES = [*connectors(), *(pair for path in results.upgrades() for pair in load(str(path)))]


def read(script: str, old: str = "1.20", new: str = "2.3", changed: str = "") -> Report:
    return check(
        Side(script, engine="flink", engine_version=old), Side(changed or script, engine="flink", engine_version=new)
    )


@pytest.mark.parametrize(("old", "new"), [("1.20", "2.3"), ("2.2", "2.3"), ("2.3", "1.20"), ("1.18", "2.7")])
def test_without_planners_an_upgrade_is_unknown_and_names_the_remedy(old: str, new: str) -> None:
    report = read(COUNTED, old, new)
    (finding,) = report.findings
    assert report.outcome is Outcome.UNKNOWN
    assert finding.message == (
        f"Flink {old} to {new}: only the planners of both versions show whether the new one reads the state: "
        f"flinkcompat planner install {old}, flinkcompat planner install {new}"
    )


def test_what_the_new_version_refuses_for_sure_is_incompatible_without_planners() -> None:
    report = read(COUNTED.replace("INTO result\nSELECT rider", "INTO kept\nSELECT MAX(city)"))
    assert report.outcome is Outcome.INCOMPATIBLE
    assert Consequence.REFUSED_AT_SUBMIT in {each.consequence for each in report.findings}


@pytest.mark.parametrize(
    ("changed", "outcome"),
    [
        (COUNTED.replace("INSERT INTO result", "INSERT INTO `result` /* as before */"), Outcome.UNKNOWN),
        (COUNTED.replace("SUM(fare)", "SUM(fare) + 1"), Outcome.UNKNOWN),
        (COUNTED.replace("SUM(fare)", "MAX(fare)"), Outcome.INCOMPATIBLE),
    ],
)
def test_a_change_with_an_upgrade_is_judged_too(changed: str, outcome: Outcome) -> None:
    report = read(COUNTED, changed=changed)
    assert report.outcome is outcome
    assert ("SUM" in changed and "+" in changed) is any(
        each.message.endswith(f"or {UPGRADE_FIRST}") for each in report.deciding
    )


@pytest.mark.parametrize(
    "pair", mostly_slow([each for each in UPGRADES if each.old_version], 8), ids=lambda pair: f"{pair}"
)
def test_no_measured_upgrade_is_compatible_without_planners(pair: Restore) -> None:
    outcome = check(*pair.sides()).outcome
    assert outcome in (Outcome.UNKNOWN, Outcome.INCOMPATIBLE)
    assert outcome is Outcome.UNKNOWN or pair.outcome != RESTORED_RIGHT
