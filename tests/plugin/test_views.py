"""What the API says of real ledgers. Its answers are the examples that the pages are built over (``__snapshots__``)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import fsspec
import pytest
from pydantic import BaseModel
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from airflow_flinkcompat.hooks.flink import FlinkHook
from airflow_flinkcompat.plugin import changes, fleet, views
from airflow_flinkcompat.plugin.ledgers import FoundLedgers, LedgerConnection, NamedLedger
from tests.plugin.ledgers import SECRET, fill_interrupted, fill_orders, fill_rejected, moment
from tests.plugin.rights import OnlyDags

ROOT = "memory://pages/ledger"
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAGS = ("redeploy_orders", "redeploy_parcels", "redeploy_shared")
EVERYTHING = OnlyDags(DAGS, DAGS, connections=True)


@pytest.fixture(scope="module")
def found() -> Iterator[FoundLedgers]:
    """A ledger of four deployments that one connection names."""
    fill_orders(ROOT)
    fill_rejected(ROOT, "redeploy_parcels", "parcels")
    fill_interrupted(ROOT, "redeploy_shared", "shared")
    fill_rejected(ROOT, None, "by-hand")
    hook = FlinkHook("flink_default")
    extra = {"jobmanager_url": "http://flink:8081", "ui_url": "https://ui.example.org/flink"}
    hook.__dict__["connection"] = _Connection(extra)
    yield FoundLedgers((NamedLedger(ROOT, (LedgerConnection("flink_default", None, hook),)),))
    fsspec.filesystem("memory").rm("/pages", recursive=True)


class _Connection:
    conn_type, host, port, login, password = "flink", "gateway", None, None, None

    def __init__(self, extra: dict[str, Any]) -> None:
        self.extra_dejson = extra


def told(answer: BaseModel) -> Any:
    """As JSON, without what every release changes."""
    values = json.loads(answer.model_dump_json())
    for each in (values, *values.get("changes", ())):
        if each.get("report"):
            each["report"]["tool"] = {"name": "airflow-flinkcompat", "version": "(version)", "catalogue": "(number)"}
    return values


@pytest.fixture
def example(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(JSONSnapshotExtension)


def change(found: FoundLedgers, name: str, number: int) -> Any:
    ledger = found.ledgers[0]
    entries = ledger.entries(name)
    proposal = changes.Proposal.at(entries, number)
    assert proposal is not None
    return told(changes.change(ledger, name, entries, proposal, EVERYTHING))


def test_example_deployments(found: FoundLedgers, example: SnapshotAssertion) -> None:
    assert told(fleet.deployment_list(found, EVERYTHING, fleet.Filter(), 50, 0, NOW)) == example


def test_example_deployment(found: FoundLedgers, example: SnapshotAssertion) -> None:
    ledger = found.ledgers[0]
    page = told(views.deployment_page(ledger, "orders", ledger.entries("orders"), EVERYTHING, NOW))
    assert SECRET not in json.dumps(page)
    assert page == example


def test_example_change_that_waits(found: FoundLedgers, example: SnapshotAssertion) -> None:
    last = found.ledgers[0].entries("orders")[-1].number
    waiting = change(found, "orders", last)
    assert waiting["decision"]["state"] == "waiting"
    assert waiting["old"]["script"] != waiting["new"]["script"]
    assert SECRET not in json.dumps(waiting)
    assert waiting == example


def test_example_change_that_was_deployed(found: FoundLedgers, example: SnapshotAssertion) -> None:
    deployed = change(found, "orders", 8)
    assert deployed["decision"] | {"message": "", "run": None} == {
        "state": "approved", "number": 8, "by": "ann", "at": moment(8), "reason": "agreed in review #7",
        "message": "", "run": None,
    }  # fmt: skip
    assert deployed == example


def test_example_run(found: FoundLedgers, example: SnapshotAssertion) -> None:
    changes = fleet.changes_of_run(found, EVERYTHING, "redeploy_parcels", "manual__2", None)
    from airflow_flinkcompat.plugin.models import RunChanges

    answer = told(RunChanges(dag_id="redeploy_parcels", run_id="manual__2", changes=changes))
    assert [each["decision"]["state"] for each in answer["changes"]] == ["rejected"]
    assert answer == example
