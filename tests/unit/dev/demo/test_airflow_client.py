"""The REST client of the demo and the tests, against an API in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from dev.demo import airflow_client
from dev.demo.airflow_client import AirflowApiError, AirflowClient

Handler = Callable[[httpx.Request], httpx.Response]
TASK = "/api/v2/dags/d/dagRuns/r/taskInstances/t"


def client(handler: Handler) -> AirflowClient:
    made = AirflowClient("http://127.0.0.1:1", "admin", "pw")

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/auth/token":
            return httpx.Response(201, json={"access_token": "token"})
        return handler(request)

    made._http = httpx.Client(base_url=made.url, transport=httpx.MockTransport(answer))
    return made


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(airflow_client, "_POLL_SECONDS", 0.001)


class Approval:
    """A task that asks; the first ``lost`` answers fail the try, as Airflow 3.3.2 now and then does."""

    def __init__(self, lost: int, tries: int = 3) -> None:
        self.lost, self.tries = lost, tries
        self.tried = 1
        self.answers: list[dict[str, Any]] = []
        self.states: Iterator[str] = iter(["queued", "running"])
        self.rest = "awaiting_input"

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "PATCH":
            assert self.rest == "awaiting_input"
            self.answers.append(json.loads(request.content))
            if len(self.answers) <= self.lost:
                if self.tried == self.tries:
                    self.states, self.rest = iter(["failed"]), "failed"
                else:
                    self.tried += 1
                    self.states = iter(["up_for_retry", "queued", "running"])
            else:
                self.states, self.rest = iter(["queued"]), "success"
            return httpx.Response(200, json={})
        if request.url.path.endswith("hitlDetails"):
            return httpx.Response(200, json={"response_received": False})
        return httpx.Response(200, json={"state": next(self.states, self.rest), "try_number": self.tried})


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_lost_answer_is_given_again(lost: int) -> None:
    approval = Approval(lost)
    assert client(approval).answer("d", "r", "t", "Reject", {"reason": "x"}) == "success"
    assert approval.answers == [{"chosen_options": ["Reject"], "params_input": {"reason": "x"}}] * (lost + 1)


def test_an_answer_that_failed_the_task_for_good_is_told() -> None:
    with pytest.raises(AirflowApiError, match="did not accept the answer 'Reject': failed"):
        client(Approval(2, tries=2)).answer("d", "r", "t", "Reject")


def test_a_task_that_never_asks_is_told() -> None:
    made = client(lambda _request: httpx.Response(200, json={"state": "skipped", "try_number": 0}))
    with pytest.raises(AirflowApiError, match="ended as skipped without a question"):
        made.answer("d", "r", "t", "Reject")


def test_a_token_that_ran_out_is_renewed() -> None:
    answers = iter([httpx.Response(401), httpx.Response(200, json={"state": "success"})])
    assert client(lambda _request: next(answers)).run_state("d", "r") == "success"


def test_a_busy_server_is_asked_again_but_nothing_is_done_twice() -> None:
    seen: list[str] = []

    def busy(request: httpx.Request) -> httpx.Response:
        seen.append(request.method)
        return httpx.Response(503 if len(seen) < 3 else 200, json={"state": "running", "dag_run_id": "r"})

    assert client(busy).run_state("d", "r") == "running"
    assert seen == ["GET"] * 3
    seen.clear()
    with pytest.raises(AirflowApiError, match="503"):
        client(busy).mark_task("d", "r", "t", "success")
    assert seen == ["PATCH"]


@pytest.mark.parametrize("made", [False, True], ids=["it was not made", "it was made"])
def test_a_run_is_asked_for_again_under_its_id(made: bool) -> None:
    """SQLite under a busy Airflow is locked now and then: 500, with the run made or not."""
    asked: list[str] = []

    def locked(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content)["dag_run_id"])
        if len(asked) == 1:
            return httpx.Response(500, json={"detail": {"reason": "Database error"}})
        return httpx.Response(409) if made else httpx.Response(200, json={"dag_run_id": asked[-1]})

    run = client(locked).trigger("d")
    assert asked == [run, run]


def test_a_run_that_is_there_already_is_refused() -> None:
    with pytest.raises(AirflowApiError, match="409"):
        client(lambda _: httpx.Response(409)).trigger("d", run_id="r")


def test_a_task_that_ended_otherwise_is_told_with_its_log() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if "/logs/" in request.url.path:
            return httpx.Response(200, json={"content": [{"event": "planted line"}]})
        return httpx.Response(200, json={"state": "failed", "try_number": 1})

    with pytest.raises(AirflowApiError, match=r"ended as failed, not as success(.|\n)*planted line"):
        client(handler).wait_for_task("d", "r", "t", ["success"])


def test_waiting_ends_and_says_what_for() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("taskInstances"):
            return httpx.Response(200, json={"task_instances": [{"task_id": "t", "state": "running"}]})
        return httpx.Response(200, json={"state": "running", "try_number": 1})

    with pytest.raises(AirflowApiError, match=r"waited 0 s for task t to be success; tasks now: {'t': 'running'}"):
        client(handler).wait_for_task("d", "r", "t", ["success"], timeout=0.01)


def test_a_dead_airflow_ends_the_wait() -> None:
    def dead() -> None:
        raise RuntimeError("the scheduler died")

    made = client(lambda _request: httpx.Response(200, json={"state": "running"}))
    made._alive = dead
    with pytest.raises(RuntimeError, match="the scheduler died"):
        made.wait_for_run("d", "r")


def test_a_refused_sign_in_names_no_password() -> None:
    made = AirflowClient("http://127.0.0.1:1", "admin", "planted-pw")
    made._http = httpx.Client(base_url=made.url, transport=httpx.MockTransport(lambda _request: httpx.Response(401)))
    with pytest.raises(AirflowApiError, match=r"cannot sign in .* as admin: 401") as caught:
        made.run_state("d", "r")
    assert "planted-pw" not in str(caught.value)


def test_log_records_become_lines() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if "/logs/" not in request.url.path:
            return httpx.Response(200, json={"state": "failed", "try_number": 2})
        assert request.url.path == f"{TASK}/logs/2"
        failure = {"event": "Task failed", "error_detail": [{"exc_type": "ValueError", "exc_value": "no"}]}
        return httpx.Response(200, json={"content": [{"event": "a\nb"}, "plain", failure]})

    assert client(handler).log("d", "r", "t") == ["a", "b", "plain", "Task failed", "ValueError: no"]
