"""What the API says of real ledgers. Its answers are the examples that the pages are built over (``__snapshots__``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fsspec
import pytest
from pydantic import BaseModel
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.plugin import changes, fleet, models, views
from airflow_flinkcompat.airflow.plugin.ledgers import FoundLedgers, LedgerConnection, NamedLedger
from airflow_flinkcompat.airflow.plugin.views import attempts, lineage
from airflow_flinkcompat.compat import ReportContext, Side, check
from airflow_flinkcompat.deploy.ledger.entries import (
    AdoptedEntry,
    CheckedEntry,
    DeployedEntry,
    DeployingEntry,
    DisposedEntry,
    FailedEntry,
    JobStart,
    JobStop,
    JobVersion,
    LedgerEntry,
    OtherEntry,
    PlannedEntry,
    RejectedEntry,
    Review,
    ShadowedEntry,
    StartedEntry,
    StartingEntry,
    StoppedEntry,
    StoppingEntry,
)
from airflow_flinkcompat.deploy.ledger.entries import JobVersion as LedgerVersion
from airflow_flinkcompat.deploy.ledger.status import DeploymentRow
from airflow_flinkcompat.deploy.ledger.store import LedgerError
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding
from airflow_flinkcompat.deploy.target import JobRef, Snapshot
from dev.benchmarks.ledgers import OnlyDags
from tests.support.airflow.plugin.ledgers import (
    SECRET,
    fill_interrupted,
    fill_orders,
    fill_rejected,
    job,
    moment,
    numbered,
    shadow_report,
    shadowed,
    wrong_state_report,
)

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


@pytest.mark.usefixtures("server")  # it has made the tables in which Airflow keeps its DAGs
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


def moved() -> list[LedgerEntry]:
    """A deployment that went from one DAG to another, which says so by nothing but its entries."""
    left = Snapshot("s3://bucket/savepoints/1")
    stop = JobStop(JobRef("a" * 32), savepoint=left)
    check = Review("partial", approved_by="former approver", reason="former reason")
    former, present = "airflow:former/run/1/deploy", "airflow:present/run/1/deploy"
    return numbered(
        DeployedEntry(job=job(1), start=JobStart("stateless", job_id=JobRef("a" * 32)), review=check, owner=former),
        CheckedEntry(version=JobVersion.of(job(2)), branch="approve", message="former message", owner=former),
        DeployingEntry(job=job(2), owner=former),
        StoppedEntry(job=job(2), stop=stop, owner=former),
        DeployedEntry(job=job(2), start=JobStart("savepoint", left), owner=present),
        CheckedEntry(version=JobVersion.of(job(1)), owner="bob@host:7"),
    )


BOTH = OnlyDags(("former", "present"), ("former", "present"))
ONE = OnlyDags(("former", "present"), ("present",))


def test_what_another_dag_wrote_is_hidden_in_a_history() -> None:
    shown = page(moved(), BOTH)
    assert shown.history[0].run == models.TaskOfRun(dag_id="former", run_id="run/1", task_id="deploy")
    assert [each.end for each in shown.redeploys] == ["deployed", "deployed"]

    shown = page(moved(), ONE)
    assert [(each.number, each.kind, each.at != "") for each in shown.history] == [
        (1, "hidden", True), (2, "hidden", True), (3, "hidden", True), (4, "hidden", True), (5, "deployed", True),
        (6, "checked", True),
    ]  # fmt: skip
    hidden = shown.history[0].model_dump(exclude={"number", "at", "kind", "message", "language"})
    assert not any(hidden.values())
    assert shown.history[0].message == "an entry of a DAG that you may not read"
    assert shown.redeploys == [], "its steps are of both"
    # It is named by the entry that started from it, too.
    assert [(each.path, each.left_by) for each in shown.savepoints] == [("s3://bucket/savepoints/1", 1)]
    shown = shown.model_copy(update={"savepoints": []})
    assert "former" not in shown.model_dump_json()
    assert "a" * 32 not in shown.model_dump_json()


def test_a_savepoint_of_another_dag_that_nothing_readable_started_from_is_hidden() -> None:
    entries = [
        replace(each, start=JobStart("stateless")) if isinstance(each, DeployedEntry) else each for each in moved()
    ]
    both, one = page(entries, BOTH), page(entries, ONE)
    assert (len(both.savepoints), both.summary.savepoint is None) == (1, False)
    assert (one.savepoints, one.summary.savepoint) == ([], None)


def test_what_started_from_a_savepoint_for_another_dag_is_told_without_its_job() -> None:
    entries = [replace(each, owner=each.owner.replace("former", "own")) for each in moved()]
    (shown,) = page(entries, OnlyDags(("own", "present"), ("own",))).savepoints
    assert [(each.number, each.kind, each.job_id) for each in shown.starts] == [(5, "hidden", None)]


def test_a_change_hides_what_another_dag_wrote_of_it(found: FoundLedgers) -> None:
    entries = moved()

    def shown(number: int, rights: OnlyDags) -> models.ChangePage:
        proposal = changes.Proposal.at(entries, number)
        assert proposal is not None
        return changes.change(found.ledgers[0], "jobs", entries, proposal, rights)

    both, one = shown(5, BOTH), shown(5, ONE)
    assert both.old is not None
    assert both.old.number == 1
    assert one.old is None
    assert (both.old_number, one.old_number) == (1, 1), "not taken for a first version"
    assert one.new is not None
    assert one.new.number == 5
    assert [each.kind for each in one.entries] == ["hidden", "hidden", "hidden", "deployed"]
    assert one.checked is not None
    assert one.checked.kind == "hidden"
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


def test_what_a_check_knew_of_its_dag_is_what_is_advised(found: FoundLedgers, tmp_path: Path) -> None:
    ledger = NamedLedger(str(tmp_path))
    report = check(Side.of(job(1)), Side.of(job(2)), engine="flink")

    def shown(**kept: Any) -> models.ChangePage:
        path = ledger.open("orders").store_report({**report.to_dict(), **kept}, "", job(2))
        entries = numbered(
            DeployedEntry(job=job(1), start=JobStart("stateless")),
            CheckedEntry(version=JobVersion.of(job(2)), review=Review("incompatible", path), branch="approve"),
        )
        proposal = changes.Proposal.at(entries, 2)
        assert proposal is not None
        return changes.change(ledger, "orders", entries, proposal, EVERYTHING)

    alone = shown()
    assert "flinkcompat migrate" in str(alone.next_steps)
    in_dag = shown(context=ReportContext(migrates=True, backfill=True, approver=True).to_dict())
    assert "flinkcompat" not in str(in_dag.next_steps)
    assert in_dag.next_steps[0].text.startswith("Do not resume. Keep the state with the branch `migrate`")
    texts = [{each.branch: each.text for each in one.answers}["restart"] for one in (alone, in_dag)]
    assert ["A backfill then" in text for text in texts] == [False, True]


@pytest.mark.parametrize(
    ("last", "state"),
    [
        (CheckedEntry(version=JobVersion.of(job(3)), branch="resume"), "not decided"),
        (FailedEntry(job=job(2), start=JobStart()), "not decided"),
        (ShadowedEntry(version=JobVersion.of(job(2)), branch="approve"), "waiting"),
        (ShadowedEntry(version=JobVersion.of(job(2)), branch="resume"), "not decided"),
    ],
)
def test_a_question_that_is_settled_otherwise_was_not_decided(last: LedgerEntry, state: str) -> None:
    entries = numbered(CheckedEntry(version=JobVersion.of(job(2)), branch="approve"), last)
    proposal = changes.Proposal.at(entries, 1)
    assert proposal is not None
    assert proposal.decision(entries, "jobs", EVERYTHING).state == state


def test_a_shadow_run_asks_about_a_change_that_the_check_resumes() -> None:
    version = JobVersion.of(job(2))
    entries = numbered(CheckedEntry(version=version, branch="resume"), ShadowedEntry(version=version, branch="approve"))
    for count, state in ((1, "not asked"), (2, "waiting")):
        proposal = changes.Proposal.at(entries[:count], 1)
        assert proposal is not None
        assert proposal.decision(entries[:count], "jobs", EVERYTHING).state == state


def test_example_shadow_run(example: SnapshotAssertion) -> None:
    version, secret = JobVersion.of(job(2)), f"'password' = '{SECRET}'"
    entries = numbered(
        CheckedEntry(version=version, branch="resume"),
        shadowed(version, Review(), shadow_report(finding=ShadowFinding.DIFFERS)),
        shadowed(version, Review(), shadow_report(secret)),
        shadowed(JobVersion.of(job(3)), Review(), shadow_report()),
    )
    proposal = changes.Proposal.at(entries, 1)
    assert proposal is not None
    shown = told(changes.change(NamedLedger(ROOT), "jobs", entries, proposal, EVERYTHING))["shadow"]
    assert SECRET not in json.dumps(shown)
    assert shown == example
    own = tuple(replace(each, owner="airflow:redeploy_orders/1/shadow") for each in proposal.entries)
    unread = OnlyDags(DAGS, (), connections=False)
    hidden = changes.change(NamedLedger(ROOT), "jobs", own, replace(proposal, entries=own), unread)
    assert hidden.shadow is None


def test_a_change_with_wrong_state_has_the_finding_and_the_rows_of_the_state() -> None:
    version = JobVersion.of(job(2))
    entries = numbered(CheckedEntry(version=version), shadowed(version, Review(), wrong_state_report()))
    proposal = changes.Proposal.at(entries, 1)
    assert proposal is not None
    shown = changes.change(NamedLedger(ROOT), "jobs", entries, proposal, EVERYTHING).shadow
    assert shown is not None
    assert (shown.finding, shown.result["finding"]) == ("differs", "equal")
    assert shown.headline == shown.result["state"]["headline"]
    assert shown.meaning.startswith("The stored state is wrong")
    assert [len(each["rows"]) for each in shown.result["state"]["sinks"]] == [2, 1, 0]


def test_a_version_that_is_proposed_again_is_another_change() -> None:
    checked = CheckedEntry(version=JobVersion.of(job(2)), branch="reject", review=Review("partial"))
    entries = numbered(checked, DeployingEntry(job=job(2)), checked, DeployingEntry(job=job(2)))
    found = [changes.Proposal.at(entries, number) for number in (1, 2, 3, 4, 5)]
    assert [None if each is None else [one.number for one in each.entries] for each in found] == [
        [1, 2], [1, 2], [3, 4], [3, 4], None,
    ]  # fmt: skip


FORMER, TWO = job(1), job(2)
START = JobStart("savepoint", Snapshot("file:///sp/1"), request_id="1" * 32, job_id=JobRef("2" * 32))
STOP = JobStop(JobRef("0" * 32), "1" * 32)
LEFT = replace(STOP, savepoint=Snapshot("file:/sp/1"))
DEPLOYED = DeployedEntry(job=FORMER, start=JobStart("stateless", job_id=JobRef("0" * 32)))


def ends(*entries: LedgerEntry) -> list[tuple[str, int, int, float | None]]:
    found = attempts(numbered(*entries))
    return [(each.end, each.steps[0].number, each.steps[-1].number, each.downtime_seconds) for each in found]


def test_each_redeploy_with_its_end_and_its_downtime() -> None:
    stopping, stopped = StoppingEntry(job=TWO, stop=STOP), StoppedEntry(job=TWO, stop=LEFT)
    starting, started = StartingEntry(job=TWO, start=START), StartedEntry(job=TWO, start=START)
    gave_up = FailedEntry(job=TWO, start=START)
    note = RejectedEntry(version=LedgerVersion.of(TWO))
    claim = DeployingEntry(job=TWO)
    assert ends(DEPLOYED, note, claim, stopping, stopped, starting, started, DeployedEntry(job=TWO, start=START)) == [
        ("deployed", 1, 1, None), ("deployed", 3, 8, 120.0),
    ]  # fmt: skip
    # A run died, another one took over: one redeploy. An earlier start that failed is no end of the downtime.
    assert ends(claim, stopping, stopped, starting, started, claim, starting, started, replace(DEPLOYED, job=TWO)) == [
        ("deployed", 1, 9, 300.0)
    ]
    assert ends(claim, gave_up, claim, stopping) == [("failed", 1, 2, None), ("unfinished", 3, 4, None)]
    # Nothing runs: the downtime has no end yet.
    assert ends(claim, stopped, starting) == [("unfinished", 1, 3, None)]
    assert ends(claim, stopped, gave_up) == [("failed", 1, 3, None)]
    assert ends(AdoptedEntry(job=FORMER, start=JobStart()), PlannedEntry(job=TWO, start=JobStart())) == [
        ("adopted", 1, 1, None), ("planned", 2, 2, None),
    ]  # fmt: skip


def test_which_start_came_from_which_savepoint() -> None:
    again = replace(STOP, savepoint=Snapshot("file:/sp/2"))
    entries = numbered(
        DEPLOYED,
        StoppedEntry(job=TWO, stop=LEFT),
        DeployedEntry(job=TWO, start=replace(START, savepoint_bytes=7)),
        StoppedEntry(job=FORMER, stop=again),
        DisposedEntry(savepoint=Snapshot("file:///sp/1/")),
    )
    first, second = lineage(entries)
    assert (first.stopped.number, first.left_by and first.left_by.number) == (2, 1)
    assert [each.number for each in first.starts] == [3]
    # The size was known only when the next job ran.
    assert (first.savepoint.bytes, first.disposed and first.disposed.number) == (7, 5)
    assert (second.savepoint.path, second.starts, second.disposed) == ("file:/sp/2", (), None)
    assert second.left_by is not None
    assert second.left_by.number == 3
