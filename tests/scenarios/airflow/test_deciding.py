"""Who decides about a change, in a real Airflow: four eyes and not the author's, a page, an escalation, a time-out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from airflow_flinkcompat.airflow.operators.approval import NOBODY, REJECT, RESTART, RESUME
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import AdoptedEntry, ApprovedEntry, JobStart, RejectedEntry
from airflow_flinkcompat.model import JobSpec
from dev.demo.airflow_client import AirflowApiError, AirflowClient
from dev.demo.airflow_instance import AirflowStandalone
from dev.services.csv_job import wait_for
from tests.scenarios.airflow.pages.airflow import ApiServer
from tests.scenarios.airflow.pages.browser import browsing, require_chromium
from tests.support.airflow.operators.fakes import script
from tests.support.fleet.repository import git

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(900)]

AUTHOR = "Ada Example <ada@example.org>"
PASSWORDS = {name: f"of-{name}-for-tests" for name in ("admin", "ada", "ben", "cara")}
DAGS = """\
from datetime import datetime

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from airflow_flinkcompat.airflow.operators import Deployment, gated_redeploy


def deploy(task_id, start_mode, **more):
    return EmptyOperator(task_id=task_id, **more)


for name, approvers, approve in (
    ("orders", ["ada", "ben", "cara"], {"approvers_needed": 2, "authors": {"ada@example.org": "ada"}}),
    ("parcels", ["ben"], {"escalate_to": ["cara"], "escalate_after": 60}),
    ("shops", ["ben"], {"escalate_to": ["cara"], "escalate_after": 5, "response_timeout": 15, "defaults": "Reject"}),
):
    one = Deployment(
        name=name, script=f"{name}.sql", check={"engine": "flink", "engine_version": "2.3.0"},
        approvers=approvers, approve=approve,
    )
    with DAG(f"redeploy_{name}", schedule=None, start_date=datetime(2026, 1, 1), max_active_runs=1) as dag:
        gated_redeploy(one, watch=False, deploy=deploy)
    globals()[name] = dag
"""


@dataclass(frozen=True)
class Asked:
    """A run that asks about a deployment, and those who answer."""

    airflow: AirflowStandalone
    ledger: Ledger
    dag_id: str
    run_id: str

    def client(self, user: str) -> AirflowClient:
        return self.airflow.client_of(user, PASSWORDS[user])

    def answers(self, user: str, option: str, **form: str) -> None:
        self.client(user).respond(self.dag_id, self.run_id, "approve", option, form)

    def is_asked(self) -> None:
        self.airflow.client.wait_for_question(self.dag_id, self.run_id, "approve")

    def log(self) -> str:
        return "\n".join(self.airflow.client.log(self.dag_id, self.run_id, "approve"))

    def ended(self) -> dict[str, str | None]:
        """How the tasks ended."""
        assert self.airflow.client.wait_for_run(self.dag_id, self.run_id) == "success"
        return self.airflow.client.task_states(self.dag_id, self.run_id)


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowStandalone]:
    root = tmp_path_factory.mktemp("deciding")
    dags, home, ledger = root / "dags", root / "airflow", root / "ledger"
    home.mkdir()
    (home / "passwords.json").write_text(json.dumps(PASSWORDS), encoding="utf-8")
    dags.mkdir()
    (dags / "gates.py").write_text(DAGS, encoding="utf-8")
    deployed = JobSpec(script().strip(), engine="flink", engine_version="2.3.0")
    git(dags, "init", "--quiet")
    for name in ("orders", "parcels", "shops"):
        Ledger(ledger, name).append(AdoptedEntry(job=deployed, start=JobStart()))
        (dags / f"{name}.sql").write_text(script(size=5), encoding="utf-8")
    git(dags, "add", ".")
    who = ("-c", "user.name=Ada Example", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    git(dags, *who, "commit", "--quiet", "-m", "smaller windows")
    # No Flink: what is deployed here are tasks that do nothing.
    flink = {"conn_type": "flink", "host": "127.0.0.1", "port": 1, "extra": {"ledger": str(ledger)}}
    settings = {
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,ada:user,ben:user,cara:user",
        "AIRFLOW__FLINKCOMPAT__CONNECTIONS": "flink_default",
    }
    with AirflowStandalone(
        home, dags, connections={"flink_default": flink}, config=settings, parallelism=2, log=print
    ) as started:
        yield started


def ask(airflow: AirflowStandalone, name: str) -> Asked:
    dag_id = f"redeploy_{name}"
    airflow.client.unpause(dag_id)
    asked = Asked(airflow, Ledger(airflow.home.parent / "ledger", name), dag_id, airflow.client.trigger(dag_id))
    asked.is_asked()
    return asked


def test_two_approve_and_the_author_does_not_and_the_second_does_so_on_the_page(airflow: AirflowStandalone) -> None:
    require_chromium()
    asked = ask(airflow, "orders")
    assert asked.ledger.entries()[-1].origin.author == AUTHOR
    with pytest.raises(AirflowApiError, match=r"403.*not a respondent"):
        asked.answers("admin", RESUME)

    asked.answers("ada", RESTART, reason="it is mine, I know it")
    asked.is_asked()
    assert f"does not count: ada made this change ({AUTHOR})" in asked.log()
    asked.answers("ben", RESTART, reason="small windows are agreed")
    asked.is_asked()
    assert "The question returns until 2 people choose the same answer" in asked.log()
    assert asked.ledger.entries()[-1].kind == "checked", "half a decision is none"

    link = airflow.client.xcom(asked.dag_id, asked.run_id, "approve", "_link_FlinkChangeLink")
    assert link == f"/plugin/flink?ledger={asked.ledger.id}&deployment=orders&change=2"
    server = ApiServer(airflow.url, airflow.home, PASSWORDS)
    with browsing(server) as browser, browser.signed_in("cara") as page:
        browser.open(page, link.removeprefix("/"))
        assert "Assigned to ada, ben, cara." in page.locator(".fc-answer").inner_text()
        page.get_by_text("ben chose “Restart without state”: small windows are agreed").wait_for()
        assert "2 people have to choose the same" in page.locator(".fc-note-ask").inner_text()
        page.get_by_role("radio", name=RESTART).check()
        page.get_by_role("textbox").fill("seen with sales")
        airflow.client.wait_until_parked(asked.dag_id, asked.run_id, "approve")
        page.get_by_role("button", name="Send this answer").click()
        page.get_by_text("Approved by ben and cara").wait_for()
        shown = page.locator(".fc-note").first.inner_text()
    reason = "ben: small windows are agreed; cara: seen with sales"
    assert f"Reason: {reason}" in shown
    approved = asked.ledger.entries()[-1]
    assert isinstance(approved, ApprovedEntry)
    assert (approved.review.approved_by, approved.review.reason) == ("ben and cara", reason)
    assert "cannot be told" not in approved.message, "who the author is was said"
    states = asked.ended()
    assert (states["approve"], states["restart"], states["resume"]) == ("success", "success", "skipped")


def test_after_a_while_others_may_answer_too(airflow: AirflowStandalone) -> None:
    asked = ask(airflow, "parcels")
    asked.answers("cara", RESUME)
    asked.is_asked()
    assert "does not count: cara may answer from " in asked.log()
    wait_for(lambda: "from now on, cara may also answer" in asked.log(), "it escalates", 180)
    asked.answers("cara", RESUME, reason="on call")
    assert asked.ended()["resume"] == "success"
    approved = asked.ledger.entries()[-1]
    assert isinstance(approved, ApprovedEntry)
    assert (approved.review.approved_by, approved.review.reason) == ("cara", "on call")


def test_nobody_answers_and_the_default_rejects(airflow: AirflowStandalone) -> None:
    asked = ask(airflow, "shops")
    states = asked.ended()
    assert {states[name] for name in ("resume", "restart")} == {"skipped"}
    assert "from now on, cara may also answer" in asked.log()
    rejected = asked.ledger.entries()[-1]
    assert isinstance(rejected, RejectedEntry)
    assert rejected.message == f"{NOBODY} chose {REJECT!r}"
    question = airflow.client.question(asked.dag_id, asked.run_id, "approve")
    assert (question["chosen_options"], question["responded_by_user"]) == ([REJECT], None)
