"""Four eyes, never the author, and others after a while: what is asked again, and what is a decision."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from airflow.api_fastapi.execution_api.datamodels.hitl import HITLDetailRequest
from airflow.providers.standard.exceptions import HITLTimeoutError
from airflow.providers.standard.operators import hitl
from airflow.sdk import DAG

from airflow_flinkcompat.airflow.operators import FlinkSqlApprovalOperator, asking
from airflow_flinkcompat.airflow.operators.approval import NOBODY
from airflow_flinkcompat.airflow.operators.asking import REJECT
from tests.support.airflow.operators.fakes import script
from tests.support.airflow.operators.versions import SINCE_3_3, AwaitingAnswer
from tests.unit.airflow.operators.conftest import Site
from tests.unit.airflow.operators.test_approval import ASKING, RESTART, RESUME, event

pytestmark = SINCE_3_3
ADA, BEN, CARL = {"id": "7", "name": "ada"}, {"id": "9", "name": "ben"}, {"id": "11", "name": "carl"}
AUTHOR = "Ada <ada@example.com>"
TIME_OUT = {"error": "no answer", "error_type": "timeout"}


def defaulted(option: str) -> dict[str, Any]:
    """What Airflow hands over once time is up and there is a default."""
    return {**event(option, reason=None), "timedout": True}


class Question:
    """An approval of a run with some arguments, parked and answered as Airflow does."""

    def __init__(
        self, site: Site, questions: list[dict[str, Any]], author: str | None = None, **arguments: Any
    ) -> None:
        self.site, self.questions = site, questions
        self.run, tasks, _ = site.checked(script(size=5), **ASKING)
        summary = self.run.pushed["check", "summary"]
        self.run.pushed["check", "summary"] = {**summary, "origin": {**summary["origin"], "author": author}}
        old = tasks["approve"]
        self.told: list[dict[str, Any]] = []
        arguments = {"notifiers": [self._tell], "decision_notifiers": [self._tell], **arguments}
        with old.dag:
            self.task = FlinkSqlApprovalOperator(
                task_id="ask", deployment="orders", branches=dict(old.branches), ledger=str(site.folder / "ledger"),
                check_task_id="check", **arguments,
            )  # fmt: skip
        self.task >> [tasks["resume"], tasks["restart"]]
        self.parked = self._park(lambda: self.run.execute(self.task))

    def _tell(self, context: Any) -> None:
        self.told.append(context["flinkcompat"])

    def _park(self, step: Callable[[], Any]) -> AwaitingAnswer:
        with pytest.raises(AwaitingAnswer) as parked:
            step()
        return parked.value

    def _resume(self, said: dict[str, Any]) -> Any:
        context = self.run.render(self.task)
        kwargs = self.parked.kwargs or {}
        return self.run._skipped(self.task, partial(self.task.execute_complete, **kwargs), context, said)

    def asks_again(self, option: str, user: Any, **form: Any) -> None:
        before = len(self.questions)
        self.parked = self._park(lambda: self._resume(event(option, user, **form)))
        assert len(self.questions) == before + 1, "Airflow clears the answer"

    def decides(self, option: str, user: Any, **form: Any) -> Any:
        self._resume(event(option, user, **form))
        return self.run.pushed["ask", "decision"]

    def waits_on(self) -> None:
        """When a time is up; a default is what Airflow has answered then."""
        before, default = len(self.questions), self.questions[0]["defaults"]
        self.parked = self._park(lambda: self._resume(defaulted(default[0]) if default else dict(TIME_OUT)))
        cleared = len(self.questions) - before
        assert cleared == (1 if default else 0), "an answer that comes meanwhile is kept"

    @property
    def stands(self) -> Any:
        """What the page reads of it."""
        return self.run.pushed["ask", "question"]

    @property
    def events(self) -> list[str]:
        return [each["event"] for each in self.told]


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []

    def again(_ti_id: Any, **row: Any) -> None:
        HITLDetailRequest.model_validate({"ti_id": uuid4(), **row})  # as Airflow's server does
        seen.append(row)

    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **row: seen.append(row))
    monkeypatch.setattr(asking, "upsert_hitl_detail", again)
    return seen


@pytest.fixture
def ask(deployed: Site, questions: list[dict[str, Any]]) -> Callable[..., Question]:
    return lambda author=None, **arguments: Question(deployed, questions, author, **arguments)


def test_two_have_to_choose_the_same(ask: Any) -> None:
    one = ask(approvers_needed=2)
    assert "**2 people must choose the same answer.**" in one.questions[0]["body"]
    assert one.stands == {"approvers_needed": 2, "answers": [], "refused": ""}
    one.asks_again(RESTART, ADA, reason="agreed with sales")
    assert one.stands["answers"] == [{"by": "ada", "choice": RESTART, "reason": "agreed with sales"}]
    assert one.site.kinds()[-1] == "checked", "half a decision is none"
    one.asks_again(RESTART, ADA)
    one.asks_again(RESUME, BEN)
    decision = one.decides(RESTART, BEN, reason="seen")
    assert (decision["choice"], decision["by"]) == ("restart", "ada and ben")
    entry = one.site.ledger.entries()[-1]
    assert (entry.kind, entry.review.approved_by) == ("approved", "ada and ben")
    assert entry.review.reason == "ben: seen", "the last words of each"
    assert entry.message.startswith("ada and ben chose 'Restart without state'; it is unknown if ada made the change")
    assert one.events == ["asked", "asked again", "asked again", "asked again", "decided"]
    assert one.told[-1]["by"] == "ada and ben"
    assert "ada chose 'Restart without state'; ben chose 'Resume from savepoint'" in one.told[-2]["why"]


def test_one_rejection_is_enough(ask: Any) -> None:
    one = ask(approvers_needed=2)
    one.asks_again(RESUME, ADA)
    assert one.decides(REJECT, BEN, reason="not now")["by"] == "ben"
    assert one.site.ledger.entries()[-1].review.reason == "not now"


def test_the_author_is_refused_and_may_reject(ask: Any) -> None:
    one = ask(AUTHOR, author_may_approve=False)
    assert "Its author, `Ada <ada@example.com>`, may reject it but not approve it." in one.questions[0]["body"]
    one.asks_again(RESUME, ADA)
    assert "ada made this change (Ada <ada@example.com>), so a different person" in one.told[-1]["why"]
    assert one.stands == {"approvers_needed": 1, "answers": [], "refused": one.told[-1]["why"]}
    assert one.decides(REJECT, ADA)["by"] == "ada"


def test_two_are_none_of_them_the_author(ask: Any) -> None:
    one = ask(AUTHOR, approvers_needed=2, authors={"ada@example.com": "7"})
    one.asks_again(RESUME, BEN)
    one.asks_again(RESUME, ADA)
    assert one.decides(RESUME, CARL)["by"] == "ben and carl"
    assert ", is unknown" not in one.site.ledger.entries()[-1].message, "who the author is was said"


def test_who_cannot_be_told_from_the_author_is_let_through_and_it_is_said(ask: Any, logs: list[Any]) -> None:
    one = ask(AUTHOR, author_may_approve=False)
    one.decides(RESUME, BEN)
    said = "it is unknown if ben is its author, Ada <ada@example.com>"
    assert one.site.ledger.entries()[-1].message == f"ben chose 'Resume from savepoint'; {said}"
    assert said in [each["event"] % each.get("positional_args", ()) for each in logs]


def test_the_author_may_be_one_of_two_where_that_is_said(ask: Any) -> None:
    one = ask(AUTHOR, approvers_needed=2, author_may_approve=True)
    one.asks_again(RESUME, ADA)
    assert one.decides(RESUME, BEN)["by"] == "ada and ben"


def test_others_may_answer_after_a_while(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = ask(
        assigned_users=[ADA], escalate_to=[BEN, "11"], escalate_after=3600, response_timeout=timedelta(hours=3),
        defaults=REJECT,
    )  # fmt: skip
    asked = one.questions[0]
    assert [user["id"] for user in asked["assigned_users"]] == ["7", "9", "11"]
    assert asked["defaults"] == [REJECT]
    assert one.parked.timeout <= timedelta(hours=1)
    assert "Answers of `ben`, `11` apply if nobody else decides within 1:00:00." in asked["body"]
    one.asks_again(REJECT, BEN)
    assert "ben may answer from " in one.told[-1]["why"]
    one.waits_on()
    assert timedelta(hours=2) < one.parked.timeout <= timedelta(hours=3), "from the first question on"
    assert (one.told[-1]["event"], one.told[-1]["to"]) == ("escalated", ["ben", "11"])
    assert one.decides(RESTART, BEN)["by"] == "ben"


def test_the_default_is_taken_when_all_time_is_up(ask: Any) -> None:
    one = ask(
        assigned_users=[ADA], escalate_to="9", escalate_after=timedelta(hours=1), defaults=REJECT,
        response_timeout=timedelta(hours=3),
    )  # fmt: skip
    one.waits_on()
    one._resume(defaulted(REJECT))
    entry = one.site.ledger.entries()[-1]
    assert (entry.kind, entry.message) == ("rejected", f"{NOBODY} chose 'Reject'")
    assert one.told[-1]["event"] == "decided"


def test_without_a_default_the_task_fails_then(ask: Any) -> None:
    one = ask(assigned_users=[ADA], escalate_to="9", escalate_after=60, response_timeout=timedelta(minutes=2))
    one.waits_on()
    with pytest.raises(HITLTimeoutError):
        one._resume(dict(TIME_OUT))
    assert one.site.kinds()[-1] == "checked"


def test_the_time_of_an_answer_does_not_begin_anew(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = ask(approvers_needed=2, response_timeout=timedelta(hours=2))
    later = time.time() + 3600
    monkeypatch.setattr(asking.time, "time", lambda: later)
    one.asks_again(RESUME, ADA)
    assert timedelta(minutes=59) < one.parked.timeout <= timedelta(hours=1)


def test_a_notifier_that_fails_undoes_no_decision(ask: Any, logs: list[Any]) -> None:
    def fail(_context: Any) -> None:
        raise RuntimeError("no answer with 'password' = 'hunter2hunter2'")

    one = ask(decision_notifiers=fail)
    assert one.decides(RESUME, ADA)["by"] == "ada"
    (said,) = [
        each["event"] % each.get("positional_args", ()) for each in logs if each["event"].startswith("The notifier")
    ]
    assert said == "The notifier function failed at 'decided': no answer with 'password' = '***'"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"approvers_needed": 3}, "approvers_needed is 3: write 1 or 2"),
        ({"approvers_needed": 2, "assigned_users": [ADA]}, "approvers_needed is 2, and only 7 may answer"),
        ({"escalate_to": [BEN]}, "escalate_to needs escalate_after"),
        ({"escalate_after": 5}, "escalate_after needs escalate_to"),
        ({"escalate_to": [BEN], "escalate_after": 5}, "escalate_to: everybody may already answer"),
        ({"escalate_to": [{"name": "ben"}], "escalate_after": 5}, r"escalate_to: .* is not a user"),
        ({"escalate_to": "9", "escalate_after": 0, "assigned_users": [ADA]}, "escalate_after must be a time above 0"),
        (
            {
                "escalate_to": "9",
                "escalate_after": 60,
                "assigned_users": [ADA],
                "response_timeout": timedelta(seconds=60),
            },
            "escalate_after must be shorter than response_timeout",
        ),
        ({"decision_notifiers": "slack"}, "decision_notifiers: 'slack' is neither a notifier nor a function"),
    ],
)
def test_what_nobody_could_decide_by_is_named_when_the_dag_is_parsed(arguments: Any, message: str) -> None:
    branches = {"resume": "a", "restart": "b"}
    with DAG("d"), pytest.raises(ValueError, match=message):
        FlinkSqlApprovalOperator(task_id="approve", deployment="orders", branches=branches, **arguments)


def test_a_run_of_one_approver_is_asked_once(ask: Any) -> None:
    one = ask()
    assert ("ask", "question") not in one.run.pushed
    assert "people must choose" not in one.questions[0]["body"]
    assert one.parked.timeout is None
    assert one.decides(RESUME, ADA)["by"] == "ada"


def test_a_decision_of_an_earlier_airflow_is_recorded(ask: Any) -> None:
    one = ask()
    one.parked.kwargs = None
    assert one.decides(RESUME, ADA)["by"] == "ada"
