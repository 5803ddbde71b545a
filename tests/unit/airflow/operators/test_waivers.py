"""The gate honours what is waived beside the script: what passes, what it still asks, what the ledger keeps."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_flinkcompat.airflow.operators.approval import RESTART
from airflow_flinkcompat.compat import Report
from airflow_flinkcompat.compat.gate import ChangeIdentity, finding_digest, is_waivable, may_restore_wrongly
from airflow_flinkcompat.deploy.ledger.entries import CheckedEntry, DecisionEntry, DeployedEntry, RejectedEntry
from airflow_flinkcompat.model import JobSpec, Waiver
from airflow_flinkcompat.project.waivers import WAIVERS_SUFFIX, with_waiver
from tests.support.airflow.operators.fakes import Run, script
from tests.support.airflow.operators.versions import AwaitingAnswer
from tests.unit.airflow.operators.conftest import Site
from tests.unit.airflow.operators.test_approval import ASKING, event, questions

__all__ = ["questions"]
PARTIAL = script().replace("SUM(price)", "SUM(price) + MAX(price)")
INCOMPATIBLE = script(size=5)
OF_VVR = {"check": {"engine": "vvr"}}


def waive(site: Site, text: str, arguments: Mapping[str, Any], until: date = date(2999, 12, 31)) -> None:
    """Check a version, and waive all that was found."""
    run, _tasks, _ = site.checked(text, **arguments)
    report = Report.from_dict(site.ledger.read_report(run.pushed["check", "report"])[0])
    head = site.ledger.head()
    assert head is not None
    change = ChangeIdentity.of(head.job, JobSpec(text))
    written = ""
    for each in filter(is_waivable, report.findings):
        digest = finding_digest(each, report.engine, change)
        said = (each.outcome.value, each.message, "counted by hand", "ann", until, change.deployed, digest, "orders")
        waiver = Waiver(each.rule, each.subject, report.engine, *said, may_restore_wrongly(each))
        written = with_waiver(written, waiver, "orders")
    (site.folder / f"orders.sql{WAIVERS_SUFFIX}").write_text(written, encoding="utf-8")


def test_a_partial_change_resumes_and_the_deploy_says_by_which_waiver(deployed_on_vvr: Site) -> None:
    _run, _tasks, skipped = deployed_on_vvr.checked(PARTIAL, **OF_VVR)
    assert "approve" not in skipped
    waive(deployed_on_vvr, PARTIAL, OF_VVR)
    run, tasks, skipped = deployed_on_vvr.checked(PARTIAL, **OF_VVR)
    assert skipped == ["approve", "first", "restart"]
    summary = run.pushed["check", "summary"]
    assert (summary["outcome"], summary["branch"], summary["policy"]) == ("partial", "resume", "approve")
    run.execute(tasks["resume"])
    entries = deployed_on_vvr.ledger.entries()
    checked = [each for each in entries if isinstance(each, CheckedEntry)][-1]
    last = entries[-1]
    assert isinstance(last, DeployedEntry)
    for review in (checked.review, last.review):
        assert [(each["by"], each["reason"], each["until"]) for each in review.waivers] == [
            ("ann", "counted by hand", "2999-12-31")
        ]
    assert last.review.approved_by is None
    # It ends with that: the same file says nothing of the next change.
    run, _tasks, _ = deployed_on_vvr.checked(script(), **OF_VVR)
    assert run.pushed["check", "summary"]["waivers"] == []
    stored, markdown = deployed_on_vvr.ledger.read_report(run.pushed["check", "report"])
    assert any("has ended: it is for a different deployed version" in each for each in stored["warnings"])
    assert "Waived by" not in markdown


def test_an_incompatible_change_still_asks_with_the_waiver_in_the_first_lines(
    deployed: Site, questions: list[dict[str, Any]]
) -> None:
    waive(deployed, INCOMPATIBLE, ASKING)
    run, tasks, skipped = deployed.checked(INCOMPATIBLE, **ASKING)
    assert skipped == ["first"]
    with pytest.raises(AwaitingAnswer):
        run.execute(tasks["approve"])
    head = "\n".join(questions[0]["body"].splitlines()[:4])
    assert "## INCOMPATIBLE" in head
    assert "Waived by ann until 2999-12-31: window-changed" in head
    run.complete(tasks["approve"], event(RESTART, {"id": "7", "name": "ben"}))
    entry = deployed.ledger.entries()[-1]
    assert isinstance(entry, DecisionEntry)
    assert (entry.review.approved_by, len(entry.review.waivers)) == ("ben", 1)


def test_a_rejection_becomes_a_question_as_long_as_it_holds(deployed: Site) -> None:
    rejecting = {"check": {"policy": {"incompatible": "reject"}}}
    waive(deployed, INCOMPATIBLE, rejecting)
    assert isinstance(deployed.ledger.entries()[-1], RejectedEntry)
    _run, _tasks, skipped = deployed.checked(INCOMPATIBLE, **rejecting)
    assert skipped == ["first"]
    waive(deployed, INCOMPATIBLE, rejecting, date(2020, 1, 1))
    run, _tasks, skipped = deployed.checked(INCOMPATIBLE, **rejecting)
    assert "approve" in skipped
    assert "expired on 2020-01-01" in deployed.ledger.read_report(run.pushed["check", "report"])[1]


def test_nothing_that_may_not_fit_is_resumed(deployed: Site) -> None:
    policy = {"check": {"policy": {"incompatible": "approve", "compatible": "resume"}}}
    waive(deployed, INCOMPATIBLE, policy)
    run, _tasks, _ = deployed.checked(INCOMPATIBLE, **policy)
    assert run.pushed["check", "summary"]["branch"] == "approve"


def test_a_file_that_cannot_be_used_fails_the_task(deployed: Site) -> None:
    waive(deployed, PARTIAL, OF_VVR)
    place = deployed.folder / f"orders.sql{WAIVERS_SUFFIX}"
    place.write_text(place.read_text("utf-8").replace("[[waiver]]", "[[waivers]]"), encoding="utf-8")
    deployed.propose(PARTIAL)
    run, tasks = Run(), deployed.tasks(**OF_VVR)
    with pytest.raises(AirflowFailException, match=r"orders\.sql\.waivers\.toml:3:3: waivers: is unknown"):
        run.execute(tasks["check"])
