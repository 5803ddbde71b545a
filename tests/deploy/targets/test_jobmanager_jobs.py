"""What a JobManager's REST API says of savepoints and restores, as a target tells it."""

from __future__ import annotations

import httpx
import pytest

from airflow_flinkcompat.deploy import DeployError, DeployRefused
from airflow_flinkcompat.deploy.errors import SavepointFailed
from airflow_flinkcompat.deploy.target import JobDescription, JobRef, JobVertex, Operation, Slots, Verb
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from tests.deploy.flink.test_clients import Server, error, jobmanager, ok

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


def test_jobs_are_described_by_their_vertices() -> None:
    vertices = [{"id": "v", "name": "Source: s[1] -> Calc[2]", "parallelism": 4}]
    gone = error(404, "org.apache.flink.runtime.messages.FlinkJobNotFoundException: no such job")
    there, server = target(**{"GET /jobs/r": [ok(vertices=vertices), ok(**{"job-type": "BATCH"}), gone]})
    assert there.describe(JOB) == JobDescription((JobVertex("v", "Source: s[1] -> Calc[2]", 4),))
    assert there.describe(JOB) == JobDescription(streaming=False)
    assert there.describe(JOB) is None
    with pytest.raises(DeployRefused, match=r"'\.\./overview' is no job id"):
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
