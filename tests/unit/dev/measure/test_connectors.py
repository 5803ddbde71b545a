"""What is measured of connectors' artifacts: tables that Flink plans, values of options, and what moves with them."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.connectors.artifacts import stored
from airflow_flinkcompat.local_flink import jars
from airflow_flinkcompat.sql import parse_script
from dev.measure import connectors
from dev.measure.connectors import Planned, Table
from dev.measure.settings import Listed, flink, listed


def option(type: str, default: str = "", description: str = "") -> Listed:
    return Listed(("table", "made-up"), "depth", type, default, (), False, ("source", "sink"), description)


def test_every_artifact_is_pinned_and_its_tables_are_told() -> None:
    read = connectors._read()
    assert len(read["artifacts"]) > 40
    assert {connectors.Artifact(**each).name for each in read["artifacts"]} == stored()["artifacts"].keys()
    for artifact in (connectors.Artifact(**each) for each in read["artifacts"]):
        assert set(artifact.tables) <= read["tables"].keys()
        for jar in (artifact.jar, *artifact.beside):
            if jar.count(":") == 2 and jar not in {each.coordinates for each in jars.pinned().values()}:
                assert len(read["pins"][jar]) == 64, jar


@pytest.mark.parametrize("use", connectors.USES)
def test_a_table_is_planned_by_statements_that_parse(use: str) -> None:
    table = Table({"path": "it's"}, keyed=True, value="f ROW<n BIGINT>", read="f.n", write="ROW({})")
    script = ";\n".join(table.script("made-up", use, table.given)) + ";"
    assert len(parse_script(script, "<script>").statements) == len(table.script("made-up", use, table.given))
    assert "'path' = 'it''s'" in script


def test_an_option_is_planned_with_every_constant_or_with_another_value_than_its_default() -> None:
    assert connectors.values(option("fast|slow|none", "none"), None) == ["fast", "slow"]
    assert connectors.values(option("bool", "true"), None) == ["false"]
    assert connectors.values(option("list:duration"), None) == ["7 s"]
    assert connectors.values(option("string"), "topic") == ["topic2"]


def test_values_with_one_plan_are_a_group() -> None:
    base = Planned(ids=(("a", 128),))
    plans = {"x": Planned(refused="x is no mode"), "fast": base, "slow": Planned(ids=(("b", 128),))}
    found = connectors.moves_of(option("string", description="fast slow"), base, lambda text, _: plans[text], None)
    assert found == {"moves": ["ids"], "groups": [["", "fast"], ["slow"]]}
    assert connectors.moves_of(option("bool"), base, lambda text, _: base, None) == "="
    refused = connectors.moves_of(option("int"), base, lambda text, _: Planned(refused="no"), None)
    assert refused == {"not planned": "no"}


def test_serializers_count_where_both_plans_were_asked_for_them() -> None:
    assert Planned(serializers=("a:1",)).moved(Planned(serializers=("a:2",))) == ("serializers",)
    assert Planned(serializers=("a:1",)).moved(Planned(serializers=None)) == ()


@pytest.mark.slow
def test_the_options_of_a_jar_are_those_that_its_factory_declares() -> None:
    artifact = next(
        connectors.Artifact(**each) for each in connectors._read()["artifacts"] if "connector-jdbc-core" in each["jar"]
    )
    with flink(artifact.line, artifact.files()) as asked:
        options, _ = listed(asked, "tables")
    declared = {each.key: connectors._option(each) for each in options if each.where == ("table", "jdbc")}
    assert declared == stored()["artifacts"][artifact.name]["connectors"]["jdbc"]["options"]
    assert declared["url"] == {"type": "string", "required": True}
