"""What a JobManager's REST API says of savepoints and restores, as a target tells it."""

from __future__ import annotations

import httpx
import pytest

from airflow_flinkcompat.deploy import DeployError, DeployRefused
from airflow_flinkcompat.deploy.errors import SavepointFailed, SubmissionUnknown, TargetError
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.target import JobDescription, JobRef, JobVertex, Operation, Slots, Start, Verb
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from airflow_flinkcompat.model import JobSpec
from tests.unit.deploy.flink.test_clients import Server, error, jobmanager, ok

JOB = JobRef("a" * 32)
ASKED = Operation(Verb.SAVEPOINT, "t", JOB)
RESULT = "GET /jobs/r/savepoints/t"


def target(**answers: list[httpx.Response]) -> tuple[JobManagerTarget, Server]:
    server = Server({key: list(row) for key, row in answers.items()})
    return JobManagerTarget(jobmanager(server)), server


def test_a_savepoint_is_asked_for_under_the_requests_id() -> None:
    there, server = target(**{"POST /jobs/r/savepoints": [ok(**{"request-id": "t"})]})
    assert there.savepoint(JOB, "t", "file:/s") == Operation(Verb.SAVEPOINT, "t", JOB, directory="file:/s")
    there.savepoint(JOB, "t", None)
    common = {"cancel-job": False, "formatType": "CANONICAL", "triggerId": "t"}
    assert [body for _, body in server.asked] == [{**common, "target-directory": "file:/s"}, common]


def test_it_is_there_once_it_is_complete_whether_its_job_runs_or_not() -> None:
    done = ok(status={"id": "COMPLETED"}, operation={"location": "file:/s/1"})
    there, _ = target(**{RESULT: [ok(status={"id": "IN_PROGRESS"}), done]})
    assert there.poll(ASKED).snapshot is None
    assert there.poll(ASKED).snapshot == "file:/s/1"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (error(404, "There is no savepoint operation with triggerId=t"), "no savepoint operation"),
        (
            ok(status={"id": "COMPLETED"}, operation={"failure-cause": {"stack-trace": "java.io.IOException: full"}}),
            f"the savepoint of job {JOB} failed: IOException: full",
        ),
    ],
)
def test_one_that_failed_or_was_never_asked_for_left_nothing(answer: httpx.Response, words: str) -> None:
    there, _ = target(**{RESULT: [answer]})
    with pytest.raises(SavepointFailed, match=words):
        there.poll(ASKED)


def test_a_cluster_that_does_not_answer_has_not_said_so() -> None:
    there, _ = target(**{RESULT: [error(503, "busy")]})
    with pytest.raises(DeployError) as raised:
        there.poll(ASKED)
    assert raised.value.unanswered
    assert not isinstance(raised.value, SavepointFailed)


SCRIPT = """
CREATE TEMPORARY TABLE s (a INT) WITH ('connector' = 'datagen');
CREATE TEMPORARY TABLE k (a INT) WITH ('connector' = 'blackhole');
INSERT INTO k SELECT a FROM s;
"""


def runs_as(answer: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> tuple[JobManagerTarget, Server]:
    there, server = target(
        **{
            "GET /config": [ok(**{"flink-version": "2.3.0"})],
            "POST /jars/j/run": [ok(**answer)],
            "DELETE /jars/j": [ok()],
            "PATCH /jobs/r": [ok()],
            "GET /jobs/overview": [ok(jobs=[{"jid": "b" * 32, "name": "x", "state": "CANCELED"}])],
        }
    )
    monkeypatch.setattr(JobManager, "upload_jar", lambda *_: "j")
    return there, server


def test_the_job_that_the_answer_names_is_the_one_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    there, _ = runs_as({"jobid": JOB}, monkeypatch)
    assert there.start(JobSpec(SCRIPT), Start(), JOB) == Operation(Verb.START, JOB, JOB)


def test_another_job_than_the_one_that_was_asked_for_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    there, server = runs_as({"jobid": "b" * 32}, monkeypatch)
    with pytest.raises(TargetError, match=f"started job {'b' * 32} instead of {JOB}; it was cancelled"):
        there.start(JobSpec(SCRIPT), Start(), JOB)
    assert any(asked == f"PATCH /jobs/{'b' * 32}" for asked, _ in server.asked)


def test_an_answer_without_a_job_leaves_open_whether_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    there, _ = runs_as({}, monkeypatch)
    with pytest.raises(SubmissionUnknown, match="returned no job id"):
        there.start(JobSpec(SCRIPT), Start(), JOB)


def test_jobs_are_described_by_their_vertices() -> None:
    vertices = [{"id": "v", "name": "Source: s[1] -> Calc[2]", "parallelism": 4}]
    gone = error(404, "org.apache.flink.runtime.messages.FlinkJobNotFoundException: no such job")
    there, server = target(**{"GET /jobs/r": [ok(vertices=vertices), ok(**{"job-type": "BATCH"}), gone]})
    assert there.describe(JOB) == JobDescription((JobVertex("v", "Source: s[1] -> Calc[2]", 4),))
    assert there.describe(JOB) == JobDescription(streaming=False)
    assert there.describe(JOB) is None
    with pytest.raises(DeployRefused, match=r"'\.\./overview' is not a job id"):
        there.describe(JobRef("../overview"))
    assert len(server.asked) == 3


def test_what_a_restore_came_to_is_read_in_log_plan_and_exceptions() -> None:
    log = f"Starting job {JOB} from savepoint s\nReset the checkpoint ID of job {JOB} to 2.\n"
    plan = {"nodes": [{"description": "[1]:TableSourceScan(x)<br/>+- [2]:Sink(y)"}]}
    there, _ = target(
        **{
            "GET /jobmanager/log": [httpx.Response(200, text=log), error(404, "no log")],
            "GET /jobs/r/plan": [ok(plan=plan)],
            "GET /jobs/r/exceptions": [ok(exceptionHistory={"entries": [{"stacktrace": "StateMigrationException"}]})],
            "GET /overview": [ok(**{"slots-available": 1, "slots-total": 8})],
        }
    )
    assert there.left_aside(JOB) == frozenset()
    assert there.left_aside(JOB) is None
    assert dict(there.query(JOB)) == {":TableSourceScan(x)": 1}
    assert there.failed_at_restore(JOB)
    assert there.slots() == Slots(1, 8)


def test_a_metric_is_the_highest_of_all_subtasks() -> None:
    def rows(*found: dict[str, object]) -> httpx.Response:
        return httpx.Response(200, json=list(found))

    of_source = "Source__orders[1].pendingRecords"
    metrics = "GET /jobs/r/vertices/{}/subtasks/metrics"

    def answer(request: httpx.Request) -> httpx.Response:
        if "get" not in request.url.params:
            return rows({"id": of_source}, {"id": "Source__orders[1].pendingBytes"})
        assert dict(request.url.params) == {"get": of_source, "agg": "max"}
        return rows({"id": of_source, "max": 7.0})

    vertices = [ok(vertices=[{"id": "source"}, {"id": "sink"}])]
    there, _ = target(**{"GET /jobs/r": vertices, metrics.format("source"): [answer], metrics.format("sink"): [rows()]})
    assert there.highest_metric(JOB, "pendingRecords") == 7
    assert there.highest_metric(JOB, "pending") is None


def test_the_rows_of_sources_are_added_up() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        names = ("Source__orders[1].numRecordsIn", "Source__rates[2].numRecordsIn")
        others = ("numRecordsIn", "Calc[3].numRecordsIn", "Source__orders[1].numRecordsOut")
        if "get" not in request.url.params:
            return httpx.Response(200, json=[{"id": each} for each in (*names, *others)])
        assert dict(request.url.params) == {"get": ",".join(names), "agg": "sum"}
        return httpx.Response(
            200, json=[{"id": name, "sum": rows} for name, rows in zip(names, (7.0, 3.0), strict=True)]
        )

    metrics = "GET /jobs/r/vertices/{}/subtasks/metrics"
    there, _ = target(
        **{"GET /jobs/r": [ok(vertices=[{"id": "source"}])] * 2, metrics.format("source"): [answer, answer]}
    )
    assert there.source_rows(JOB) == 10
