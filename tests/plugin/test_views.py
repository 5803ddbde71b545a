"""What the API says of real ledgers. Its answers are the examples that the pages are built over (``__snapshots__``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import fsspec
import pytest
from pydantic import BaseModel
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from airflow_flinkcompat.deploy.ledger.entries import (
    CheckedEntry,
    DeployedEntry,
    DeployingEntry,
    FailedEntry,
    JobStart,
    JobVersion,
    LedgerEntry,
    OtherEntry,
    Review,
)
from airflow_flinkcompat.deploy.ledger.rows import DeploymentRow
from airflow_flinkcompat.deploy.ledger.store import LedgerError
from airflow_flinkcompat.hooks.flink import FlinkHook
from airflow_flinkcompat.plugin import changes, fleet, models, views
from airflow_flinkcompat.plugin.ledgers import FoundLedgers, LedgerConnection, NamedLedger
from tests.plugin.ledgers import SECRET, fill_interrupted, fill_orders, fill_rejected, job, moment, numbered
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
    assert told(fleet.deployment_list(found, EVERYTHING, fleet.ListFilter(), 50, 0, NOW)) == example


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
    proposed = fleet.changes_of_run(found, EVERYTHING, "redeploy_parcels", "manual__2", None)
    answer = told(models.RunChanges(dag_id="redeploy_parcels", run_id="manual__2", changes=proposed))
    assert [each["decision"]["state"] for each in answer["changes"]] == ["rejected"]
    assert answer == example


# ------------------------------------------------------------------------------------------------------- single facts
def page(entries: Sequence[LedgerEntry], rights: OnlyDags = EVERYTHING) -> models.DeploymentPage:
    return views.deployment_page(NamedLedger(ROOT), "jobs", entries, rights, NOW)


@pytest.mark.parametrize(
    ("hour", "minute", "state"), [(9, 10, "in flight"), (9, 11, "interrupted"), (12, 0, "interrupted")]
)
def test_a_redeploy_is_in_flight_for_as_long_as_its_claim_holds(hour: int, minute: int, state: str) -> None:
    (claim,) = numbered(DeployingEntry(job=job(1), claim_seconds=570))
    row = DeploymentRow("jobs").after(claim)
    now = datetime(2026, 11, 20, hour, minute, tzinfo=UTC)
    assert views.unfinished_state(row, now) == state
    assert fleet.attention_of(row, now) == {fleet.Attention(state.replace(" ", "_"))}


def test_who_wrote_an_entry_is_shown_to_who_may_read_that_dag_alone() -> None:
    start = JobStart("stateless")
    entries = numbered(
        DeployedEntry(job=job(1), start=start, owner="airflow:former/run/1/deploy"),
        DeployedEntry(job=job(2), start=start, owner="airflow:present/run/1/deploy"),
        CheckedEntry(version=JobVersion.of(job(1)), owner="bob@host:7"),
    )
    both = page(entries, OnlyDags(("former", "present"), ("former", "present")))
    assert both.history[0].run == models.TaskOfRun(dag_id="former", run_id="run/1", task_id="deploy")
    one = page(entries, OnlyDags(("former", "present"), ("present",)))
    assert [each.owner for each in one.history] == ["", "airflow:present/run/1/deploy", "bob@host:7"]
    assert [each.run is None for each in one.history] == [True, False, True]
    assert "former" not in one.model_dump_json()


def test_what_a_later_release_wrote_is_shown_by_its_kind() -> None:
    row = {"kind": "paused", "number": 1, "counts": "many", "outcome": 7, "message": "for the night"}
    (shown,) = page(numbered(OtherEntry(row=row, message="for the night"))).history
    assert (shown.number, shown.kind, shown.message) == (1, "paused", "for the night")
    assert (shown.counts, shown.outcome) == ({}, None)


def test_a_ledger_that_cannot_be_read_has_a_row_of_its_own() -> None:
    shown = views.deployment(NamedLedger(ROOT), "jobs", LedgerError("'password' = 'hunter2hunter2'"), EVERYTHING, NOW)
    assert shown.error == "'password' = '***'"
    assert (shown.entry, shown.dags, shown.job_url, shown.unfinished_state) == (None, [], None, None)


def test_a_change_whose_report_is_lost_says_so(found: FoundLedgers) -> None:
    review = Review("partial", f"{ROOT}/parcels/reports/{'0' * 32}.json")
    entries = numbered(CheckedEntry(version=JobVersion.of(job(2)), review=review, branch="approve"))
    proposal = changes.Proposal.at(entries, 1)
    assert proposal is not None
    lost = changes.change(found.ledgers[0], "parcels", entries, proposal, EVERYTHING)
    assert lost.report is None
    assert lost.report_error is not None
    assert "cannot be read" in lost.report_error
    assert (lost.old, lost.new, lost.next_steps, lost.decision.state) == (None, None, [], "waiting")


@pytest.mark.parametrize(
    ("last", "state"),
    [
        (CheckedEntry(version=JobVersion.of(job(3)), branch="resume"), "not decided"),
        (FailedEntry(job=job(2), start=JobStart()), "not decided"),
    ],
)
def test_a_question_that_is_settled_otherwise_was_not_decided(last: LedgerEntry, state: str) -> None:
    entries = numbered(CheckedEntry(version=JobVersion.of(job(2)), branch="approve"), last)
    proposal = changes.Proposal.at(entries, 1)
    assert proposal is not None
    assert proposal.decision(entries, "jobs", EVERYTHING).state == state


def test_a_version_that_is_proposed_again_is_another_change() -> None:
    checked = CheckedEntry(version=JobVersion.of(job(2)), branch="reject", review=Review("partial"))
    entries = numbered(checked, DeployingEntry(job=job(2)), checked, DeployingEntry(job=job(2)))
    found = [changes.Proposal.at(entries, number) for number in (1, 2, 3, 4, 5)]
    assert [None if each is None else [one.number for one in each.entries] for each in found] == [
        [1, 2], [1, 2], [3, 4], [3, 4], None,
    ]  # fmt: skip
