"""The REST clients against a scripted server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from airflow_flinkcompat.deploy import ApiError, JobStatus
from airflow_flinkcompat.deploy.flink.gateway import GatewayError, SqlGateway
from airflow_flinkcompat.deploy.flink.job_reports import statistics_age
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager, JobManagerError
from airflow_flinkcompat.deploy.flink.rest import Endpoint
from airflow_flinkcompat.secrets.redact import Redactor

Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


class Server(httpx.MockTransport):
    """Answers each ``METHOD path`` with its answers in turn, the last one for ever; remembers what was asked."""

    def __init__(self, answers: dict[str, list[Answer]]) -> None:
        super().__init__(self.answer)
        self.answers = {key: list(row) for key, row in answers.items()}
        self.asked: list[tuple[str, Any]] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        key = f"{request.method} {request.url.path}"
        self.asked.append((key, json.loads(request.content) if request.content else None))
        row = self.answers[re.sub("[0-9a-f]{32}", "r", key)]
        answer = row.pop(0) if len(row) > 1 else row[0]
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    def count(self, key: str) -> int:
        return sum(1 for asked, _ in self.asked if asked == key)


def ok(**body: Any) -> httpx.Response:
    return httpx.Response(200, json=body)


def error(status: int, *texts: str) -> httpx.Response:
    return httpx.Response(status, json={"errors": list(texts)})


def gateway(server: Server, **more: Any) -> SqlGateway:
    return SqlGateway(Endpoint("http://gateway.test:8083", **more), transport=server, retry_wait=0.01)


def jobmanager(server: Server) -> JobManager:
    return JobManager("http://jm.test:8081", transport=server, retry_wait=0.01)


INFO = "GET /v2/info"
SESSION = {"POST /v2/sessions": [ok(sessionHandle="s")], "DELETE /v2/sessions/s": [ok(status="CLOSED")]}
STATEMENT = {
    **SESSION,
    "POST /v2/sessions/s/statements": [ok(operationHandle="o")],
    "DELETE /v2/sessions/s/operations/o/close": [ok(status="CLOSED")],
}
RESULT = "GET /v2/sessions/s/operations/o/result/0"


@pytest.mark.parametrize(
    "trouble",
    [
        httpx.ConnectError("refused"),
        httpx.ConnectTimeout("slow"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("cut"),
        error(503, "leader election"),
    ],
)
def test_reading_is_repeated(trouble: Answer) -> None:
    server = Server({INFO: [trouble, trouble, ok(productName="Apache Flink", version="2.3.0")]})
    assert gateway(server).info() == ("Apache Flink", "2.3.0")
    assert server.count(INFO) == 3


def test_repeating_ends() -> None:
    server = Server({INFO: [httpx.ConnectError("[Errno 111] Connection refused")]})
    with pytest.raises(GatewayError, match=r"the SQL Gateway at http://gateway\.test:8083 does not answer .*refused"):
        gateway(server).info()
    assert server.count(INFO) == 4


def test_statement_that_may_have_arrived_is_not_repeated() -> None:
    posts = "POST /v2/sessions/s/statements"
    server = Server({**STATEMENT, posts: [httpx.ReadTimeout("slow")]})
    with gateway(server).session() as session, pytest.raises(GatewayError, match="ReadTimeout"):
        session.execute("INSERT INTO k SELECT * FROM s")
    assert server.count(posts) == 1


def test_statement_that_never_arrived_is_repeated() -> None:
    posts = "POST /v2/sessions/s/statements"
    done = ok(resultType="EOS", results={"columns": [], "data": []})
    server = Server({**STATEMENT, posts: [httpx.ConnectError("x"), ok(operationHandle="o")], RESULT: [done]})
    with gateway(server).session() as session:
        session.execute("CREATE TABLE t (a INT)")
    assert server.count(posts) == 2


def test_client_errors_are_not_repeated() -> None:
    server = Server({INFO: [error(404, "Not found.")]})
    with pytest.raises(GatewayError, match=r"answered 404: Not found\.") as caught:
        gateway(server).info()
    assert (caught.value.status, caught.value.reason) == (404, "Not found.")
    assert server.count(INFO) == 1


def test_something_else_answers() -> None:
    with pytest.raises(GatewayError, match="with JSON"):
        gateway(Server({INFO: [httpx.Response(200, text="<html>")]})).info()
    with pytest.raises(GatewayError, match="is not a SQL Gateway"):
        gateway(Server({INFO: [httpx.Response(200, json=["x"])]})).info()


def test_result_is_read_page_by_page() -> None:
    page = "/v2/sessions/s/operations/o/result/"
    data = {"columns": [{"name": "a"}], "data": [{"kind": "INSERT", "fields": [1]}]}
    server = Server(
        {
            **STATEMENT,
            RESULT: [
                ok(resultType="NOT_READY", nextResultUri=f"{page}0"),
                ok(resultType="NOT_READY", nextResultUri=f"{page}0"),
                ok(resultType="PAYLOAD", results=data, jobID="j", nextResultUri=f"{page}1?rowFormat=JSON"),
            ],
            f"GET {page}1": [ok(resultType="PAYLOAD", results=data, nextResultUri=f"{page}2?rowFormat=JSON")],
            f"GET {page}2": [ok(resultType="EOS", results={"columns": [{"name": "a"}], "data": []})],
        }
    )
    with gateway(server).session({"k": "v"}) as session:
        result = session.execute("INSERT …", {"only": "here"})
    assert (result.columns, result.rows, result.job_id) == (("a",), ((1,), (1,)), "j")
    assert server.asked[0] == ("POST /v2/sessions", {"properties": {"k": "v"}})
    assert server.asked[1][1] == {"statement": "INSERT …", "executionConfig": {"only": "here"}}
    assert server.asked[-1][0] == "DELETE /v2/sessions/s"


def test_refusal_is_condensed_masked_and_the_session_closed() -> None:
    head = "<Exception on server side:\norg.x.SqlGatewayException: Failed to fetchResults.\n\tat a.B.c(B.java:1)\n"
    trace = (
        head * 100
        + "Caused by: o.x.ValidationException: bad 'password' = 'hunter2hunter2' of value-of-a-connection\n\t... 3 more"
    )
    server = Server({**STATEMENT, RESULT: [error(500, "Internal server error.", trace)]})
    client = gateway(server)
    client.redactor |= Redactor.of([("${conn.c.password}", "value-of-a-connection")])
    with client.session() as session, pytest.raises(GatewayError) as caught:
        session.execute("INSERT …")
    assert caught.value.reason == "ValidationException: bad 'password' = '***' of ***"
    assert server.asked[-1][0] == "DELETE /v2/sessions/s"
    assert server.count(RESULT) == 1


def test_statement_that_takes_too_long_is_cancelled() -> None:
    cancel = "POST /v2/sessions/s/operations/o/cancel"
    server = Server({**STATEMENT, RESULT: [ok(resultType="NOT_READY")], cancel: [ok(status="CANCELED")]})
    with (
        gateway(server).session() as session,
        pytest.raises(GatewayError, match="did not finish a statement within 0 s"),
    ):
        session.execute("SELECT …", timeout=0.05)
    assert server.count(cancel) == 1


def test_credentials_are_sent_and_never_shown() -> None:
    seen: list[httpx.Headers] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers)
        return error(401, "no")

    endpoint = Endpoint(
        "https://user:pass-in-url@gateway.test/flink", headers={"X-Token": "header-token"}, auth=("me", "my-password")
    )
    client = SqlGateway(endpoint, transport=httpx.MockTransport(answer))
    with pytest.raises(GatewayError, match="401") as caught:
        client.info()
    assert seen[0]["x-token"] == "header-token"
    assert seen[0]["authorization"].startswith("Basic ")
    shown = f"{caught.value} {endpoint!r} {endpoint.place}"
    assert endpoint.place == "https://gateway.test/flink"
    for secret in ("pass-in-url", "header-token", "my-password"):
        assert secret not in shown


@pytest.mark.parametrize("url", ["", "gateway:8083", "ftp://gateway", "http://"])
def test_address_that_is_none(url: str) -> None:
    with pytest.raises(ApiError, match="is not the address of a REST API"):
        Endpoint(url)


@pytest.mark.parametrize(
    ("url", "asks_proxy"), [("http://127.0.0.1:1", False), ("http://localhost:1", False), ("http://[::1]:1", False)]
)
def test_loopback_is_never_asked_of_a_proxy(url: str, asks_proxy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test:3128")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert SqlGateway(url)._client.trust_env is asks_proxy
    assert SqlGateway("http://gateway.test")._client.trust_env is True


STOP = "POST /jobs/j/stop"
STOPPING = "GET /jobs/j/savepoints/r"  # the client's own trigger id
OVERVIEW = "GET /jobs/overview"


def overview(state: str) -> httpx.Response:
    return ok(jobs=[{"jid": "j", "name": "orders", "state": state}])


def test_stop_waits_for_the_savepoint_and_the_end() -> None:
    server = Server(
        {
            STOP: [httpx.ReadTimeout("slow"), httpx.Response(202, json={"request-id": "r"})],
            STOPPING: [
                ok(status={"id": "IN_PROGRESS"}),
                ok(status={"id": "COMPLETED"}, operation={"location": "file:/sp"}),
            ],
            OVERVIEW: [overview("RUNNING"), overview("FINISHED")],
        }
    )
    assert jobmanager(server).stop_with_savepoint("j", "s3://bucket/sp") == "file:/sp"
    first, second = (body for key, body in server.asked if key == STOP)
    assert first == second, "the repeated stop is the same stop: it has the same trigger id"
    assert first["drain"] is False
    assert first["targetDirectory"] == "s3://bucket/sp"


def test_stop_that_fails() -> None:
    cause = {
        "class": "x",
        "stack-trace": "java.util.concurrent.CompletionException: a.b.CheckpointException: disk full\n",
    }
    server = Server(
        {
            STOP: [httpx.Response(202, json={"request-id": "r"})],
            STOPPING: [ok(status={"id": "COMPLETED"}, operation={"failure-cause": cause})],
        }
    )
    with pytest.raises(
        JobManagerError, match="the stop with savepoint failed: CheckpointException: disk full"
    ) as caught:
        jobmanager(server).stop_with_savepoint("j")
    assert not caught.value.unanswered, "who waits for it has nothing more to wait for"


def test_waiting_has_an_end() -> None:
    server = Server({"PATCH /jobs/j": [httpx.Response(202)], OVERVIEW: [overview("CANCELLING")]})
    with pytest.raises(JobManagerError, match="job j is still CANCELLING after 0 s"):
        jobmanager(server).cancel("j", timeout=0.05)


def test_status_of_a_job() -> None:
    answers = {
        "GET /jobs/j/status": [ok(status="RESTARTING")],
        "GET /jobs/j": [
            ok(name="orders", state="RUNNING", vertices=[{"status": "RUNNING"}, {"status": "INITIALIZING"}])
        ],
        "GET /jobs/j/exceptions": [
            ok(exceptionHistory={"entries": [{"stacktrace": "a.B: outer\nCaused by: a.StateMigrationException: no\n"}]})
        ],
        "GET /jobs/j/checkpoints": [
            ok(counts={"completed": 4}, latest={"restored": {"external_path": "file:/sp", "is_savepoint": True}})
        ],
    }
    client = jobmanager(Server(answers))
    status = client.status("j")
    assert status is not None
    assert (status.name, status.state, status.tasks_running) == ("orders", "RESTARTING", False)
    assert (status.completed_checkpoints, status.failure) == (4, "StateMigrationException: no")
    assert client.restored_from("j") == "file:/sp"


@pytest.mark.parametrize(
    ("explicit", "seconds"), [(None, 3), ("500", 0.5), ("250 ms", 0.25), ("10 s", 10), ("2 min", 120), ("PT1H", 60)]
)
def test_age_of_statistics(explicit: str | None, seconds: float) -> None:
    rows = [{"key": "rest.cache.checkpoint-statistics.timeout", "value": explicit}] if explicit else []
    answers: dict[str, list[Answer]] = {
        "GET /jobmanager/config": [httpx.Response(200, json=rows)],
        "GET /config": [ok(**{"refresh-interval": 3000})],
    }
    assert statistics_age(jobmanager(Server(answers))) == seconds


UNKNOWN = error(404, "FlinkJobNotFoundException: Could not find Flink job (j)")
RUNS = {
    "GET /jobs/j": [ok(name="orders", vertices=[{"status": "RUNNING"}])],
    "GET /jobs/j/exceptions": [ok()],
    "GET /jobs/j/checkpoints": [ok(counts={"completed": 1})],
    "GET /jobs/overview": [ok(jobs=[])],
}


def configured(**mode: str) -> dict[str, list[Answer]]:
    rows = [{"key": f"high-availability.{key}", "value": value} for key, value in mode.items()]
    return {"GET /jobmanager/config": [httpx.Response(200, json=rows)]}


@pytest.mark.parametrize("mode", [{}, {"type": "NONE"}, {"cluster-id": "orders"}])
def test_unknown_job_has_no_status(mode: dict[str, str]) -> None:
    server = Server({**configured(**mode), "GET /jobs/j/status": [error(404, "Job j not found")]})
    assert jobmanager(server).status("j") is None
    assert server.count("GET /jobs/j/status") == 1


@pytest.mark.parametrize(
    "config", [configured(type="zookeeper"), {"GET /jobmanager/config": [error(403, "not for everybody")]}]
)
def test_job_that_is_not_recovered_yet_is_waited_for(config: dict[str, list[Answer]]) -> None:
    """A JobManager that recovers may answer before it knows its jobs again."""
    server = Server({**RUNS, **config, "GET /jobs/j/status": [UNKNOWN, UNKNOWN, UNKNOWN, ok(status="RUNNING")]})
    status = jobmanager(server).status("j")
    assert status is not None
    assert status.state == "RUNNING"


@pytest.mark.parametrize("page", ["GET /jobs/j", "GET /jobs/j/exceptions", "GET /jobs/j/checkpoints"])
def test_job_that_is_initialized_has_no_more_than_a_state(page: str) -> None:
    trouble = error(
        500, "UnavailableDispatcherOperationException: Unable to get JobMasterGateway for initializing job."
    )
    overview = ok(jobs=[{"jid": "j", "name": "orders", "state": "INITIALIZING"}])
    answers = {**RUNS, "GET /jobs/j/status": [ok(status="INITIALIZING")], "GET /jobs/overview": [overview]}
    assert jobmanager(Server({**answers, page: [trouble]})).status("j") == JobStatus("j", "orders", "INITIALIZING")


def test_job_that_stays_unknown_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_flinkcompat.deploy.flink.jobmanager._RECOVERY_SECONDS", 0.1)
    server = Server({**configured(type="kubernetes"), "GET /jobs/j/status": [UNKNOWN]})
    assert jobmanager(server).status("j") is None
    assert server.count("GET /jobs/j/status") > 2


def test_cancelled_job_that_is_not_recovered_yet_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_flinkcompat.deploy.flink.jobmanager._RECOVERY_SECONDS", 0.1)
    states: list[Answer] = [UNKNOWN, ok(status="RUNNING"), ok(status="CANCELED")]
    server = Server({**RUNS, **configured(type="zookeeper"), "GET /jobs/j/status": states})
    assert jobmanager(server).wait_terminal("j", timeout=5) == "CANCELED"
