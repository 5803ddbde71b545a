"""Client for Airflow's public REST API: start and watch DAG runs, read logs, answer approvals."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

import httpx

TERMINAL_TASK = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
TERMINAL_RUN = frozenset({"success", "failed"})
AWAITING = frozenset({"awaiting_input", "deferred"})
_POLL_SECONDS = 0.5
_ANSWERS = 3
# Status codes of a server that is starting or busy.
_TRANSIENT = frozenset({500, 502, 503, 504})

T = TypeVar("T")


class AirflowApiError(Exception):
    """Airflow refused a request, or an awaited state was not reached; one readable message."""


class AirflowClient:
    """A signed-in client of one Airflow. Times are in seconds.

    Times are in seconds. ``alive`` is called while waiting and may raise. ``is_parked`` returns True if the scheduler
    knows that the worker of a task's try (by DAG, run, task and number) has ended.
    """

    def __init__(
        self,
        url: str,
        user: str,
        password: str,
        *,
        timeout: float = 30,
        alive: Callable[[], None] = lambda: None,
        is_parked: Callable[[str, str, str, int], bool] = lambda *_: True,
    ) -> None:
        self.url = url
        self._credentials = {"username": user, "password": password}
        self._alive, self._is_parked = alive, is_parked
        # Ignore the environment's proxy settings, because loopback is never behind a proxy.
        self._http = httpx.Client(base_url=url, timeout=timeout, trust_env=False)

    def close(self) -> None:
        self._http.close()

    def health(self) -> Mapping[str, Any]:
        """State of every component; empty if nothing answers."""
        try:
            return dict(self._http.get("/api/v2/monitor/health").raise_for_status().json())
        except (httpx.HTTPError, ValueError):
            return {}

    # -- DAGs and runs

    def unpause(self, dag_id: str, *, timeout: float = 60) -> None:
        """Wait until the DAG exists, then unpause it. Raises immediately on an import error of any DAG file."""
        self._until(lambda: self._dag_or_import_error(dag_id), timeout, f"DAG {dag_id!r} to be found")
        self._request("PATCH", f"/dags/{dag_id}", json={"is_paused": False})

    def is_paused(self, dag_id: str) -> bool:
        return bool(self._request("GET", f"/dags/{dag_id}")["is_paused"])

    def import_errors(self) -> list[str]:
        """Import errors of DAG files, each as ``file: message``."""
        answer = self._request("GET", "/importErrors")
        return [f"{row['filename']}: {row['stack_trace']}" for row in answer["import_errors"]]

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None, run_id: str | None = None) -> str:
        """Start a run and return its id. A busy server is asked again; the same id creates only one run."""
        made = run_id or f"manual__{uuid4()}"
        path, body = f"/dags/{dag_id}/dagRuns", {"logical_date": None, "conf": dict(conf or {}), "dag_run_id": made}
        asked = 0

        def probe() -> str | None:
            nonlocal asked
            asked += 1
            response = self._send("POST", path, json=body)
            if response.status_code in _TRANSIENT:
                return None
            if response.status_code == httpx.codes.CONFLICT and asked > 1:
                return made
            return str(_answer("POST", path, response)["dag_run_id"])

        return self._until(probe, 60, f"a run of {dag_id} to be made")

    def runs(self, dag_id: str) -> list[str]:
        """Ids of the DAG's runs, oldest first."""
        answer = self._request("GET", f"/dags/{dag_id}/dagRuns", params={"order_by": "run_after", "limit": 100})
        return [row["dag_run_id"] for row in answer["dag_runs"]]

    def run_state(self, dag_id: str, run_id: str) -> str:
        return str(self._request("GET", f"/dags/{dag_id}/dagRuns/{run_id}")["state"])

    def end_run(self, dag_id: str, run_id: str) -> None:
        """Mark a run as failed, regardless of its state."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}"

        def probe() -> bool:
            response = self._send("PATCH", path, json={"state": "failed"})
            if response.status_code in _TRANSIENT:  # SQLite was locked by the scheduler: said twice it is the same
                return False
            _answer("PATCH", path, response)
            return True

        self._until(probe, 60, f"run {run_id} of {dag_id} to be marked failed")

    def wait_for_run(self, dag_id: str, run_id: str, *, timeout: float = 180) -> str:
        """Final state of the run: ``success`` or ``failed``."""
        return self._until(
            lambda: state if (state := self.run_state(dag_id, run_id)) in TERMINAL_RUN else None,
            timeout,
            f"run {run_id} of {dag_id} to end",
            lambda: f"its tasks: {self.task_states(dag_id, run_id)}",
        )

    # -- tasks

    def task(self, dag_id: str, run_id: str, task_id: str) -> Mapping[str, Any]:
        """One task instance as the API shows it (``state``, ``try_number``, ``rendered_fields`` …)."""
        return dict(self._request("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"))

    def task_states(self, dag_id: str, run_id: str) -> dict[str, str | None]:
        """State by task id."""
        answer = self._request("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances")
        return {row["task_id"]: row["state"] for row in answer["task_instances"]}

    def wait_for_task(
        self, dag_id: str, run_id: str, task_id: str, states: Collection[str] = TERMINAL_TASK, *, timeout: float = 180
    ) -> str:
        """Wait for one of ``states`` and return it; raises if the task ends in a different state."""

        def probe() -> str | None:
            state = self.task(dag_id, run_id, task_id)["state"]
            if state in states:
                return str(state)
            if state in TERMINAL_TASK:
                raise AirflowApiError(
                    f"task {task_id} of {dag_id} ended as {state}, not as {' or '.join(sorted(states))}; its log:\n"
                    + "\n".join(self.log(dag_id, run_id, task_id)[-25:])
                )
            return None

        return self._until(
            probe,
            timeout,
            f"task {task_id} to be {' or '.join(sorted(states))}",
            lambda: f"tasks now: {self.task_states(dag_id, run_id)}",
        )

    def mark_task(self, dag_id: str, run_id: str, task_id: str, state: str) -> None:
        """Set a task's state manually, regardless of its current state."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"
        self._request("PATCH", path, json={"new_state": state})

    def clear_task(self, dag_id: str, run_id: str, task_id: str, *, downstream: bool = False) -> None:
        """Clear a task, so that it runs again."""
        body = {
            "dry_run": False, "dag_run_id": run_id, "task_ids": [task_id], "only_failed": False,
            "reset_dag_runs": True, "include_downstream": downstream,
        }  # fmt: skip
        self._request("POST", f"/dags/{dag_id}/clearTaskInstances", json=body)

    def log(self, dag_id: str, run_id: str, task_id: str, try_number: int | None = None) -> list[str]:
        """Log records of one try (by default the latest), one string each."""
        number = try_number or max(1, int(self.task(dag_id, run_id, task_id)["try_number"]))
        answer = self._request(
            "GET",
            f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{number}",
            params={"full_content": True},
            headers={"Accept": "application/json"},
        )
        return [line for record in answer["content"] for line in _log_lines(record)]

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value") -> Any:
        """The XCom value that the task pushed under ``key``."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/{key}"
        return self._request("GET", path, params={"deserialize": False})["value"]

    # -- people

    def question(self, dag_id: str, run_id: str, task_id: str) -> Mapping[str, Any]:
        """Question of a human-in-the-loop task: ``subject``, ``body``, ``options``, ``response_received`` …"""
        return dict(self._request("GET", self._hitl(dag_id, run_id, task_id)))

    def answer(
        self,
        dag_id: str,
        run_id: str,
        task_id: str,
        option: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float = 240,
    ) -> str:
        """Wait for the task's question, choose ``option``, and return the task's final state.

        Airflow can still lose the answer, and asks again in the next try: then this answers again.
        """
        for attempt in range(1, _ANSWERS + 1):
            asked = self.respond(dag_id, run_id, task_id, option, params, timeout=timeout)
            state, tried = self._until(
                partial(self._taken_or_asked_again, dag_id, run_id, task_id, asked),
                timeout,
                f"task {task_id} to take the answer {option!r}",
            )
            if state in TERMINAL_TASK and state != "failed":
                return state
            if state == "failed" or attempt == _ANSWERS:
                raise AirflowApiError(f"{task_id} did not accept the answer {option!r}: {state} in try {tried}")
        raise AssertionError("unreachable")

    def respond(
        self,
        dag_id: str,
        run_id: str,
        task_id: str,
        option: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float = 240,
    ) -> int:
        """Wait for the task's question and choose ``option``; returns the try that asked.

        The result of the task is not awaited. A task that asks again waits for its next question.
        """
        asked = self.wait_for_question(dag_id, run_id, task_id, timeout=timeout)
        self.wait_until_parked(dag_id, run_id, task_id, timeout=timeout)
        chosen = {"chosen_options": [option], "params_input": dict(params or {})}
        self._request("PATCH", self._hitl(dag_id, run_id, task_id), json=chosen)
        return asked

    def wait_for_question(self, dag_id: str, run_id: str, task_id: str, *, timeout: float = 180) -> int:
        """Number of the try with an unanswered question."""

        def probe() -> int | None:
            row = self.task(dag_id, run_id, task_id)
            if row["state"] in TERMINAL_TASK:
                raise AirflowApiError(f"task {task_id} of {dag_id} ended as {row['state']} without a question")
            if row["state"] not in AWAITING or self.question(dag_id, run_id, task_id)["response_received"]:
                return None
            return int(row["try_number"])

        return self._until(probe, timeout, f"task {task_id} to ask", lambda: str(self.task_states(dag_id, run_id)))

    def wait_until_parked(self, dag_id: str, run_id: str, task_id: str, *, timeout: float = 180) -> None:
        """Wait until the scheduler knows that the worker of a task that waits has ended.

        Airflow 3.3.2 marks the task failed if an answer or an event comes before that.
        """
        tried = int(self.task(dag_id, run_id, task_id)["try_number"])
        what = f"the scheduler to know that task {task_id} waits"
        self._until(lambda: self._is_parked(dag_id, run_id, task_id, tried), timeout, what)

    def _taken_or_asked_again(self, dag_id: str, run_id: str, task_id: str, asked: int) -> tuple[str, int] | None:
        row = self.task(dag_id, run_id, task_id)
        state, tried = str(row["state"]), int(row["try_number"])
        again = tried > asked and state in AWAITING
        return (state, tried) if state in TERMINAL_TASK or again else None

    # -- plumbing

    @staticmethod
    def _hitl(dag_id: str, run_id: str, task_id: str) -> str:
        return f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/-1/hitlDetails"

    def _dag_or_import_error(self, dag_id: str) -> bool:
        if errors := self.import_errors():
            raise AirflowApiError("a DAG file cannot be loaded:\n" + "\n".join(errors))
        return self._send("GET", f"/dags/{dag_id}").status_code == httpx.codes.OK

    def _request(self, method: str, path: str, **arguments: Any) -> Any:
        return _answer(method, path, self._send(method, path, **arguments))

    def _send(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """Send a request to the public API, signed in if needed. Repeat a safe request to a busy server."""
        for attempt in range(5):
            if "Authorization" not in self._http.headers:
                self._sign_in()
            try:
                response = self._http.request(method, f"/api/v2{path}", **arguments)
            except httpx.TransportError as error:
                self._alive()
                if method != "GET" or attempt == 4:
                    raise AirflowApiError(f"{method} {path}: no answer from {self.url} ({error})") from None
            else:
                if response.status_code == httpx.codes.UNAUTHORIZED and attempt < 4:
                    del self._http.headers["Authorization"]  # the token ran out
                    continue
                if method != "GET" or response.status_code not in _TRANSIENT or attempt == 4:
                    return response
            time.sleep(_POLL_SECONDS * 2**attempt)
        raise AssertionError("unreachable")

    def _sign_in(self) -> None:
        try:
            answer = self._http.post("/auth/token", json=self._credentials)
        except httpx.TransportError as error:
            raise AirflowApiError(f"no answer from {self.url} ({error})") from None
        if answer.is_error:
            user = self._credentials["username"]
            raise AirflowApiError(f"cannot sign in to {self.url} as {user}: {answer.status_code}")
        self._http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def _until(
        self, probe: Callable[[], T | None], timeout: float, what: str, detail: Callable[[], str] = lambda: ""
    ) -> T:
        """First truthy result of ``probe``."""
        deadline = time.monotonic() + timeout
        while True:
            self._alive()
            if result := probe():
                return result
            if time.monotonic() > deadline:
                raise AirflowApiError(f"waited {timeout:.0f} s for {what}; {detail()}".rstrip("; "))
            time.sleep(_POLL_SECONDS)


def _log_lines(record: Mapping[str, Any] | str) -> Iterable[str]:
    if isinstance(record, str):
        return record.splitlines()
    text = str(record.get("event", ""))
    details = record.get("error_detail") or []
    causes = (f"{part.get('exc_type')}: {part.get('exc_value')}" for part in details)
    return [*(text.splitlines() or [""]), *causes]


def _answer(method: str, path: str, response: httpx.Response) -> Any:
    if response.is_error:
        raise AirflowApiError(f"{method} {path}: {response.status_code} {response.text[:500]}")
    return response.json() if response.content else None
