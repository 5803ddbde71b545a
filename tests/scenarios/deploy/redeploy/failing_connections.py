"""Gateway and JobManager that are down, slow, half-closed or want credentials: cases of ``test_failures``."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.deploy.flink.rest import Endpoint, EndpointOrigin
from tests.scenarios.deploy.deployment_fixture import DeploymentFixture, wire
from tests.scenarios.deploy.failures import Cases
from tests.support.deploy.servers import rest_server

case = Cases("failures", "Failures around redeploys")


# ------------------------------------------------------------------------------------------------- the SQL Gateway
@case("Gateway down before the validation")
def gateway_down_before(stage: DeploymentFixture) -> str:
    with wire(stage.flink.gateway_url) as way:
        target = stage.reached_by(gateway=way.url)
        way.shut()
        kind, message = stage.fails(target)
        assert (kind.__name__, f"the SQL Gateway at {way.url} does not answer" in message) == ("GatewayError", True)
        assert "check that the server runs and that the address is correct" in message
        stage.is_untouched()
        way.open()
        assert stage.run(target).kind == "deployed"
    return message


@case("Gateway down after the stop")
def gateway_down_after(stage: DeploymentFixture) -> str:
    with wire(stage.flink.gateway_url) as way:
        target = stage.reached_by(gateway=way.url)
        target.before["start"] = way.shut
        kind, message = stage.fails(target)
        assert kind is DeployError
        starting = stage.ledger.entries()[-1]
        assert stage.kinds == ["deploying", "stopping", "stopped", "starting"]
        for part in (way.url, str(starting.job_id), str(starting.start.savepoint), "is safe in", "Run this again"):
            assert part in message
        assert stage.running == ()
        way.open()
        entry = stage.run(target)
        assert entry.job_id == starting.job_id, "the same job is submitted, not a second one"
        stage.goes_on(entry.job_id)
    return message


def _wrong_credentials(stage: DeploymentFixture, part: str, name: str, remedy: str, **given: Any) -> str:
    with rest_server(authorization="Bearer another") as server:
        _, message = stage.fails(stage.reached_by(**{part: Endpoint(server.url, **given)}))
    assert f"the {name} at {server.url} answered 401" in message
    assert remedy in message
    assert "planted" not in message
    stage.is_untouched()
    return message


@case("Gateway wants credentials")
def gateway_401(stage: DeploymentFixture) -> str:
    headers = {"Authorization": "Bearer planted-token"}
    return _wrong_credentials(stage, "gateway", "SQL Gateway", "set login and password", headers=headers)


@case("JobManager wants credentials")
def jobmanager_401(stage: DeploymentFixture) -> str:
    origin, auth = EndpointOrigin(credentials=True), ("ann", "planted-word")
    return _wrong_credentials(stage, "jobmanager", "JobManager", "check login and password", auth=auth, origin=origin)


# -------------------------------------------------------------------------------------------------------- the wire
@case("slow connections")
def slow_wires(stage: DeploymentFixture) -> str:
    with wire(stage.flink.gateway_url, delay=0.2) as slow, wire(stage.flink.jobmanager_url, delay=0.2) as slower:
        entry = stage.run(stage.reached_by(slow.url, slower.url))
    stage.goes_on(entry.job_id)
    return "deployed"


@case("answers that come after the time-out")
def answer_too_late(stage: DeploymentFixture) -> str:
    with wire(stage.flink.gateway_url) as way:
        target = stage.reached_by(gateway=Endpoint(way.url, timeout=1.5))

        def slow(piece: bytes) -> bool:
            way.delay = 4.0 if b"INSERT INTO" in piece and not way.delay else way.delay
            return False

        def late() -> None:
            way.lose = slow

        target.before["start"] = late
        with suppress(DeployError):  # after three submissions nobody has answered yet
            stage.run(target)
        way.lose, way.delay = lambda _: False, 0.0
        entry = stage.run(target)
    assert stage.jobs == {stage.first.job_id, entry.job_id}, "one id is one job, however often it is submitted"
    stage.goes_on(entry.job_id)
    return f"deployed; {stage.kinds.count('starting')} start was written down"


def _unheard_submission(stage: DeploymentFixture, how: str) -> str:
    """The answer to the new job is lost once."""
    with wire(stage.flink.gateway_url) as way:
        setattr(way, how, lambda piece: b"INSERT INTO" in piece and b"EXPLAIN" not in piece and not way.lost)
        entry = stage.run(stage.reached_by(gateway=way.url))
        assert way.lost == 1
    assert stage.jobs == {stage.first.job_id, entry.job_id}, "submitted again under the same id: one job"
    assert stage.kinds == ["deploying", "stopping", "stopped", "starting", "started", "deployed"]
    stage.goes_on(entry.job_id)
    return "deployed"


@case("connection closed after the job was sent")
def submission_without_answer(stage: DeploymentFixture) -> str:
    return _unheard_submission(stage, "lose")


@case("connection half-closed after the job was sent")
def submission_half_closed(stage: DeploymentFixture) -> str:
    return _unheard_submission(stage, "half_close")


def _unheard_stop(stage: DeploymentFixture, how: str) -> str:
    """The answer to the stop is lost twice."""
    with wire(stage.flink.jobmanager_url) as way:
        setattr(way, how, lambda piece: b"triggerId" in piece and b"drain" in piece and way.lost < 2)
        entry = stage.run(stage.reached_by(jobmanager=way.url))
        assert way.lost == 2
    assert len(stage.savepoints) == 1, "asked for three times, done once"
    stage.goes_on(entry.job_id)
    return "deployed"


@case("connection closed after the stop was asked for")
def stop_without_answer(stage: DeploymentFixture) -> str:
    return _unheard_stop(stage, "lose")


@case("connection half-closed after the stop was asked for")
def stop_half_closed(stage: DeploymentFixture) -> str:
    return _unheard_stop(stage, "half_close")


@case("JobManager that half-closes every connection, from the stop on")
def always_half_closed(stage: DeploymentFixture) -> str:
    with wire(stage.flink.jobmanager_url) as way:
        target = stage.reached_by(jobmanager=way.url)

        def half_close() -> None:
            way.half_close = lambda _: True

        target.before["stop"] = half_close
        _, message = stage.fails(target)
        assert f"the JobManager at {way.url} does not answer" in message
        assert stage.kinds == ["deploying", "stopping"]
        way.half_close = lambda _: False
        entry = stage.run(target)
    assert stage.kinds.count("stopping") == len(stage.savepoints) == 1, "the same stop, which had been asked for"
    stage.goes_on(entry.job_id)
    return message


def _no_answer(stage: DeploymentFixture, part: str, name: str, url: str) -> str:
    with wire(url, delay=3600) as way:
        _, message = stage.fails(stage.reached_by(**{part: Endpoint(way.url, timeout=1.5)}))
    assert f"the {name} at {way.url} does not answer" in message
    stage.is_untouched()
    return message


@case("SQL Gateway that reads and never answers")
def never_answers(stage: DeploymentFixture) -> str:
    return _no_answer(stage, "gateway", "SQL Gateway", stage.flink.gateway_url)


@case("JobManager that reads and never answers")
def jobmanager_never_answers(stage: DeploymentFixture) -> str:
    return _no_answer(stage, "jobmanager", "JobManager", stage.flink.jobmanager_url)
