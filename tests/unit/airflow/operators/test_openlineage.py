"""What OpenLineage is told: with its own classes where they are installed, else with ones of the same fields."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.openlineage import facet
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from airflow.sdk import DAG

from airflow_flinkcompat.airflow.operators import FlinkBackfillOperator
from tests.support.airflow.operators.fakes import Run, script
from tests.unit.airflow.operators.conftest import Site
from tests.unit.airflow.operators.test_backfill import submitted

__all__ = ["submitted"]

NAMES = (
    "ColumnLineageDatasetFacet", "Dataset", "Fields", "InputField", "SQLJobFacet", "SchemaDatasetFacet",
    "SchemaDatasetFacetFields",
)  # fmt: skip


class Facet(SimpleNamespace):
    """Any of OpenLineage's classes."""

    def with_additional_properties(self, **more: Any) -> Facet:
        return Facet(**vars(self), **more)


@pytest.fixture
def openlineage(monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("openlineage") and find_spec("airflow.providers.openlineage"):
        return
    for name in (*NAMES, "RunFacet"):
        monkeypatch.setattr(facet, name, Facet)
    for name in ("airflow.providers.openlineage", "airflow.providers.openlineage.extractors"):
        module = ModuleType(name)
        module.OperatorLineage = Facet  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)


def named(sets: Any) -> list[tuple[str, str]]:
    return [(each.namespace, each.name) for each in sets]


def columns(dataset: Any) -> dict[str, list[tuple[str, str, str]]]:
    fields = dataset.facets["columnLineage"].fields
    return {name: [(i.namespace, i.name, i.field) for i in each.inputFields] for name, each in fields.items()}


SECRET = script(size=5).replace("'/out',", "'/out', 'password' = 'hunter2hunter2',")


@pytest.mark.usefixtures("openlineage")
def test_a_deploy_tells_what_it_reads_and_writes_column_by_column(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    run.execute(tasks["restart"])
    told = tasks["restart"].get_openlineage_facets_on_complete(None)
    assert named(told.inputs) == [("file", "/in")]
    assert named(told.outputs) == [("file", "/out")]
    assert [(row.name, row.type) for row in told.outputs[0].facets["schema"].fields][1:] == [
        ("shop", "STRING"),
        ("total", "DOUBLE"),
    ]
    assert columns(told.outputs[0]) == {
        "ws": [("file", "/in", "ts")],
        "shop": [("file", "/in", "shop")],
        "total": [("file", "/in", "price")],
    }
    assert "columnLineage" not in told.inputs[0].facets
    assert told.job_facets["sql"].query == script(size=5).strip()
    facts, head = told.run_facets["flinkcompat"], deployed.ledger.head()
    assert head is not None
    assert (facts.event, facts.outcome, facts.start_mode) == ("deployed", "incompatible", "stateless")
    assert (facts.entry, facts.job_id, facts.sha256) == (head.number, head.job_id, head.sha256)
    assert not hasattr(facts, "migrated_from"), "nothing is said of what there is not"


@pytest.mark.usefixtures("openlineage")
def test_a_deploy_that_fails_tells_how_far_it_came(deployed: Site) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    assert tasks["restart"].get_openlineage_facets_on_failure(None) is None
    deployed.cluster.fail = "restore"
    with pytest.raises(AirflowFailException, match="Rolled back"):
        run.execute(tasks["restart"])
    told = tasks["restart"].get_openlineage_facets_on_failure(None)
    facts = told.run_facets["flinkcompat"]
    assert (facts.event, facts.outcome, facts.deployment) == ("failed", "incompatible", "orders")
    assert facts.step
    assert named(told.outputs) == [("file", "/out")]


@pytest.mark.usefixtures("openlineage")
def test_secrets_are_masked_in_the_job_facet(submitted: dict[str, Any]) -> None:
    from airflow_flinkcompat.airflow.tasks.assets import RunLineage, operator_lineage
    from airflow_flinkcompat.compat import Side

    told = operator_lineage(RunLineage(Side(SECRET)))
    assert "hunter2" not in told.job_facets["sql"].query
    assert "'password' = '***'" in told.job_facets["sql"].query


@pytest.mark.usefixtures("openlineage")
def test_a_backfill_tells_the_places_that_were_given(submitted: dict[str, Any]) -> None:
    submitted["result"] = {"rows_read": 7}
    with DAG("d"):
        task = FlinkBackfillOperator(
            task_id="backfill", deployment="orders", script=script(), to="2026-01-02",
            tables={"orders": "s3://lake/archive"}, sinks={"totals": "s3://lake/history"},
        )  # fmt: skip
    assert task.get_openlineage_facets_on_failure(None) is None
    Run().execute(task)
    told = task.get_openlineage_facets_on_complete(None)
    assert (named(told.inputs), named(told.outputs)) == ([("s3://lake", "archive")], [("s3://lake", "history")])
    assert columns(told.outputs[0])["total"] == [("s3://lake", "archive", "price")]
    facts = told.run_facets["flinkcompat"]
    assert (facts.event, facts.range_to, facts.rows_read) == ("backfilled", "2026-01-02", 7)


@pytest.mark.usefixtures("openlineage")
def test_a_backfill_that_fails_tells_what_it_would_have_written(submitted: dict[str, Any]) -> None:
    submitted["fail"] = True
    with DAG("d"):
        task = FlinkBackfillOperator(task_id="backfill", deployment="orders", script=script(), to="2026-01-02")
    with pytest.raises(AirflowException):
        Run().execute(task)
    told = task.get_openlineage_facets_on_failure(None)
    assert named(told.outputs) == [("file", "/out")]
    assert told.run_facets["flinkcompat"].event == "failed"


def test_without_its_provider_nothing_is_told(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage.extractors", None)
    run, tasks, _ = deployed.checked(script(size=5))
    run.execute(tasks["restart"])
    assert tasks["restart"].get_openlineage_facets_on_complete(None) is None
