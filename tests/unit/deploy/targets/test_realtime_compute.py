"""Realtime Compute's target, over a stand-in of its OpenAPI. It was never run against the vendor's service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.deploy.errors import (
    DeployError,
    DeployRefused,
    SavepointFailed,
    StateFault,
    StateRefused,
    StopFailed,
    SubmissionUnknown,
    TargetError,
)
from airflow_flinkcompat.deploy.flink.polling import poll
from airflow_flinkcompat.deploy.flink.statements import JOB_NAME, ScriptRefused
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry
from airflow_flinkcompat.deploy.ledger.ledger import Ledger
from airflow_flinkcompat.deploy.redeploy.run import Options, new_id
from airflow_flinkcompat.deploy.redeploy.sequence import deploy
from airflow_flinkcompat.deploy.target import JobRef, Operation, Snapshot, Start, Strength, Target, Verb
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from airflow_flinkcompat.deploy.targets.realtime_compute import RealtimeComputeTarget, instances
from airflow_flinkcompat.deploy.targets.realtime_compute.openapi import OpenApi
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.testing.target_contract import CHANGED, SCRIPT, SETTINGS, Connect, TargetContract
from tests.support.deploy.targets.realtime_compute_stand_in import (
    InMemory,
    OnFlink,
    Refused,
    Seen,
    Service,
    access,
    serving,
)


@pytest.fixture
def service() -> Service:
    return Service(InMemory())


@pytest.fixture
def url(service: Service) -> Iterator[str]:
    with serving(service) as url:
        yield url
    assert service.faults == [], "the SDK's models do not take what was sent or answered"


@pytest.fixture
def connect(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., RealtimeComputeTarget]]:
    monkeypatch.setattr(RealtimeComputeTarget, "settle_seconds", 0.2)
    with ExitStack() as opened:
        yield lambda **more: opened.enter_context(RealtimeComputeTarget.connect(access(url, **more)))


@pytest.fixture
def on_flink(local_flink: LocalFlink) -> Iterator[tuple[Service, Connect]]:
    """The service in front of a real Flink, and what opens its target."""
    backend = OnFlink(local_flink.jobmanager_url)
    service = Service(backend)
    with serving(service) as url, ExitStack() as opened:
        yield service, lambda: opened.enter_context(RealtimeComputeTarget.connect(access(url)))
    backend.close()
    assert service.faults == []


class TestRealtimeComputeTarget(TargetContract):
    """Over jobs in memory."""

    @pytest.fixture
    def connect(self, connect: Connect) -> Connect:
        return connect

    @pytest.fixture(autouse=True)
    def _service(self, service: Service) -> None:
        self.service = service

    def misfits(self, target: Target, name: str) -> None:
        """Its next start from a savepoint fails."""
        assert isinstance(self.service.backend, InMemory)
        self.service.backend.refuses.add(name)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(900)
class TestRealtimeComputeTargetOnFlink(TargetContract):
    """Over a real Flink, with real savepoints and restores."""

    settle_seconds = 0.5

    @pytest.fixture
    def connect(self, on_flink: tuple[Service, Connect]) -> Connect:
        return on_flink[1]


NAME = "orders"
JOB = JobSpec(SCRIPT, {JOB_NAME: NAME, **SETTINGS}, engine="vvr", source="orders.sql")
CHANGING = ("UpdateDeployment", "StopJob", "StartJobWithParams")
"""What a redeploy changes the platform by."""

Connected = Callable[..., RealtimeComputeTarget]


@pytest.fixture
def target(connect: Connected) -> RealtimeComputeTarget:
    return connect()


def started(target: RealtimeComputeTarget, start: Start | None = None, job: JobSpec = JOB) -> JobRef:
    found = target.start(job, start or Start(), new_id()).job
    assert found is not None
    return found


def stopped(target: RealtimeComputeTarget, job: JobRef) -> Snapshot:
    asked = target.stop(job, new_id(), None)
    found = poll(lambda: target.poll(asked).snapshot, lambda seen: seen is None, timeout=10)
    assert found is not None
    return found


def deployed(target: Target, ledger: Ledger, script: str, **more: Any) -> DeployedEntry:
    head = ledger.head()
    side = JobSpec(script, SETTINGS, engine="vvr", source="orders.sql", **more)
    options = Options(settle_seconds=0, submit_timeout=60, start_timeout=60, stop_timeout=60)
    checked = head.sha256 if head else None
    return deploy(target, ledger, side, checked_old_sha256=checked, options=options, owner="worker")


def active(service: Service) -> list[str]:
    return [job for job in service.jobs if service.get_job(job)["status"]["currentJobStatus"] == "RUNNING"]


# ------------------------------------------------------------------------------------------------------------ answers
def test_an_answer_of_status_200_that_says_it_failed_is_an_error(service: Service, target: Target) -> None:
    service.fails["ListDeployments"] = Refused("990301", "the namespace is locked")
    with pytest.raises(DeployError, match="refused ListDeployments: 990301: the namesp") as raised:
        target.running(NAME)
    assert not raised.value.unanswered


@pytest.mark.parametrize(
    ("wrong", "code"),
    [({"access_key_id": "nobody"}, "InvalidAccessKeyId"), ({"access_key_secret": "planted-secret"}, "SignatureDoes")],
)
def test_a_wrong_key_names_the_connection_and_no_secret(connect: Connected, wrong: dict[str, str], code: str) -> None:
    with pytest.raises(DeployError, match=rf"{code}.*Check the access key of connection 'vvr'") as raised:
        connect(**wrong).running(NAME)
    assert "planted-secret" not in str(raised.value)


def test_a_missing_right_names_the_policy(service: Service, target: Target) -> None:
    service.denies.add("ListDeployments")
    with pytest.raises(DeployError, match=r"NoPermission.*Attach the RAM policy of docs/targets/realtime-compute\.md"):
        target.running(NAME)


def test_what_does_not_answer_has_not_said_no(connect: Connected) -> None:
    with pytest.raises(DeployError, match="does not answer ListDeployments") as raised:
        connect(endpoint="http://127.0.0.1:9").running(NAME)
    assert raised.value.unanswered


def test_a_silent_service_is_asked_again_where_that_changes_nothing(service: Service, target: Target) -> None:
    service.loses["ListDeployments"] = 2
    assert target.running(NAME) == ()
    assert service.asked.count("ListDeployments") == 3


def test_lists_are_read_to_their_end(service: Service, target: Target) -> None:
    for number in range(120):
        service.add(f"{NAME}-{number}")
    service.add(NAME)
    job = target.start(JOB, Start(), new_id()).job
    assert target.running(NAME) == (job,)


# --------------------------------------------------------------------------------------------------------- a redeploy
def dies(api: OpenApi, action: str, time: int, after: bool) -> None:
    """Have the process die around one of its calls of an action."""
    call, seen = api.call, 0

    def dying(asked: str, *given: Any, **more: Any) -> Any:
        nonlocal seen
        seen += asked == action
        if (asked, seen) != (action, time):
            return call(asked, *given, **more)
        if after:
            call(asked, *given, **more)
        raise KeyboardInterrupt

    api.call = dying  # type: ignore[method-assign]


@dataclass(frozen=True)
class Death:
    """Around which call of a redeploy the process dies."""

    action: str
    time: int
    after: bool

    def __str__(self) -> str:
        return f"{'after' if self.after else 'before'}-{self.action}-{self.time}"

    def is_survived(self, service: Service, connect: Connect, ledger: Ledger) -> None:
        """The redeploy is taken up: one stop with one savepoint, and one new job that starts from it."""
        service.add(NAME)
        first = deployed(connect(), ledger, SCRIPT)
        mortal = connect()
        assert isinstance(mortal, RealtimeComputeTarget)
        dies(mortal._api, self.action, self.time, self.after)
        with pytest.raises(KeyboardInterrupt):
            deployed(mortal, ledger, CHANGED)
        entry = deployed(connect(), ledger, CHANGED)
        assert active(service) == [entry.job_id]
        assert list(service.jobs) == [first.job_id, entry.job_id], "no third job was ever made"
        (savepoint,) = service.savepoints.values()
        assert entry.start.savepoint == savepoint["savepointId"]
        assert service.jobs[str(entry.job_id)]["restoreStrategy"] == {
            "kind": "FROM_SAVEPOINT",
            "savepointId": savepoint["savepointId"],
            "allowNonRestoredState": False,
        }


# The first update leaves the label of the stop, the second writes the script.
DEATHS = [
    Death(action, time, after)
    for action, time in (("UpdateDeployment", 1), ("StopJob", 1), ("UpdateDeployment", 2), ("StartJobWithParams", 1))
    for after in (False, True)
]


@pytest.mark.parametrize("death", DEATHS, ids=str)
def test_a_process_that_dies_around_a_change_is_taken_up(
    death: Death, service: Service, connect: Connect, tmp_path: Path
) -> None:
    death.is_survived(service, connect, Ledger(tmp_path, NAME))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("death", DEATHS, ids=str)
def test_a_process_that_dies_is_taken_up_on_flink(
    death: Death, on_flink: tuple[Service, Connect], tmp_path: Path
) -> None:
    service, connect = on_flink
    death.is_survived(service, connect, Ledger(tmp_path, NAME))
    for job in active(service):
        service.stop_job({"stopStrategy": "NONE"}, job)


@pytest.mark.parametrize("action", CHANGING)
def test_a_lost_answer_makes_no_second_stop_and_no_second_job(
    action: str,
    service: Service,
    connect: Connected,
    tmp_path: Path,
) -> None:
    service.add(NAME)
    ledger = Ledger(tmp_path, NAME)
    first = deployed(connect(), ledger, SCRIPT)
    service.loses[action] = 1
    try:
        entry = deployed(connect(), ledger, CHANGED)
    except DeployError:
        entry = deployed(connect(), ledger, CHANGED)
    assert list(service.jobs) == [first.job_id, entry.job_id]
    assert active(service) == [entry.job_id]
    assert len(service.savepoints) == 1


def test_a_deployment_whose_making_was_not_answered_is_not_made_twice(service: Service, target: Target) -> None:
    request = new_id()
    service.loses["CreateDeployment"] = 1
    with pytest.raises(DeployError) as raised:
        target.start(JOB, Start(), request)
    assert raised.value.unanswered
    assert target.start(JOB, Start(), request).job is not None
    assert len(service.deployments) == len(service.jobs) == 1


def test_an_earlier_call_that_was_at_work_still_leaves_one_job(service: Service, target: RealtimeComputeTarget) -> None:
    request = new_id()
    start = target._api.start

    def late(parameters: Any) -> Any:
        start(parameters)  # of a call whose process is gone
        return start(parameters)

    target._api.start = late  # type: ignore[method-assign]
    found = target.start(JOB, Start(), request)
    assert active(service) == [found.job] == [next(iter(service.jobs))]


def test_what_was_edited_and_restarted_in_the_console_stops_a_redeploy(
    service: Service,
    target: RealtimeComputeTarget,
    tmp_path: Path,
) -> None:
    deployment = service.add(NAME)
    ledger = Ledger(tmp_path, NAME)
    first = deployed(target, ledger, SCRIPT)
    service.stop_job({"stopStrategy": "NONE"}, first.job_id)
    deployment["artifact"]["sqlArtifact"]["sqlScript"] = CHANGED
    by_hand = service.start_job({"deploymentId": deployment["deploymentId"], "restoreStrategy": {"kind": "NONE"}})
    with pytest.raises(DeployRefused, match=f"job {by_hand['jobId']} runs under the name 'orders'.*someone") as no:
        deployed(target, ledger, CHANGED)
    assert "\n+INSERT INTO counts SELECT n, COUNT(*) + 1 FROM numbers GROUP BY n;" in str(no.value)
    assert active(service) == [by_hand["jobId"]]


def test_an_instance_on_another_version_of_the_engine_stops_a_redeploy(
    service: Service,
    target: RealtimeComputeTarget,
    tmp_path: Path,
) -> None:
    service.add(NAME)
    ledger = Ledger(tmp_path, NAME)
    first = deployed(target, ledger, SCRIPT, engine_version="8.0")
    service.jobs[first.job_id]["engineVersion"] = "vvr-11.1-flink-1.20"
    with pytest.raises(DeployRefused, match=r"runs a different engine version \(11\.1, not 8\.0\) than entry 4"):
        deployed(target, ledger, CHANGED, engine_version="8.0")


# ------------------------------------------------------------------------------------------------------------- starts
def test_a_deployment_that_is_not_there_is_made_only_where_a_queue_is_named(
    service: Service, connect: Connected
) -> None:
    target = connect(deployment_target=None)
    for refused in (lambda: target.validate(JOB, Start()), lambda: target.start(JOB, Start(), new_id())):
        with pytest.raises(TargetError, match=r"no deployment 'orders' in .*set deployment_target of connection 'vvr'"):
            refused()
    assert service.deployments == {}
    started(connect())
    (made,) = service.deployments.values()
    assert (made["name"], made["deploymentTarget"]["name"]) == (NAME, "default-queue")


def test_a_job_that_somebody_else_started_is_not_replaced(service: Service, target: RealtimeComputeTarget) -> None:
    other = started(target)
    service.asked.clear()
    with pytest.raises(
        TargetError, match=f"has a job instance that has not ended and does not belong to this start: {other}"
    ):
        started(target)
    assert not {"UpdateDeployment", "StartJobWithParams"} & set(service.asked)


def test_two_jobs_of_one_deployment_are_told(service: Service, target: RealtimeComputeTarget) -> None:
    first = started(target)
    (deployment,) = service.deployments
    second = service.start_job({"deploymentId": deployment, "restoreStrategy": {"kind": "NONE"}})["jobId"]
    assert set(target.running(NAME)) == {first, second}
    with pytest.raises(DeployRefused, match=r"several job instances that have not ended.*Stop all but one"):
        target.deployed(NAME)


def test_two_deployments_of_one_name_are_told(service: Service, target: Target) -> None:
    service.add(NAME)
    service.add(NAME)
    with pytest.raises(TargetError, match="several deployments named 'orders'"):
        target.running(NAME)


@pytest.mark.parametrize(
    ("field", "named"), [("flinkConf", "flink_conf"), ("artifact", "artifact"), ("labels", "labels")]
)
def test_what_does_not_read_back_as_written_is_not_started(
    field: str,
    named: str,
    service: Service,
    target: RealtimeComputeTarget,
) -> None:
    service.add(NAME)
    service.drops.add(field)
    with pytest.raises(TargetError, match=rf"differs from the written deployment: .*{named}.* was not started"):
        started(target)
    assert service.jobs == {}


def test_what_the_console_set_stays_and_what_a_start_set_goes_with_it(
    service: Service,
    target: RealtimeComputeTarget,
) -> None:
    variables = [{"name": "region", "value": "eu"}]
    deployment = service.add(NAME, localVariables=variables, labels={"team": "sales"}, description="by hand")
    with_ttl = replace(JOB, settings={**JOB.settings, "table.exec.state.ttl": "1 h"})
    stopped(target, started(target, job=with_ttl))
    assert deployment["flinkConf"]["table.exec.state.ttl"] == "1 h"
    job = started(target)
    assert "table.exec.state.ttl" not in deployment["flinkConf"]
    assert deployment["flinkConf"]["taskmanager.numberOfTaskSlots"] == 1
    assert deployment["labels"]["team"] == "sales"
    assert (deployment["localVariables"], deployment["description"]) == (variables, "by hand")
    assert service.jobs[job]["localVariables"] == variables
    found = target.deployed(NAME)
    assert found is not None
    assert (found.script, found.settings) == (SCRIPT, SETTINGS)
    assert found.engine == target.engine()


def test_a_jar_is_not_made_into_a_script(service: Service, target: RealtimeComputeTarget) -> None:
    service.add(
        NAME, artifact={"kind": "JAR", "jarArtifact": {"jarUri": "oss://b/a.jar", "additionalDependencies": []}}
    )
    with pytest.raises(
        TargetError, match="is of kind JAR, STREAMING, but this target only supports SQLSCRIPT, STREAMING"
    ):
        started(target)


def test_a_script_that_the_platform_does_not_plan_is_refused_with_its_place(service: Service, target: Target) -> None:
    job = replace(JOB, script=SCRIPT.replace("FROM numbers", "FROM no_such_table"))
    with pytest.raises(TargetError, match=r"orders\.sql:2:7: the platform refused the script: Object 'no_such_table'"):
        target.validate(job, Start())
    assert "validated the script" in target.validate(JOB, Start())
    assert service.deployments == {}


@pytest.mark.parametrize("state", [None, "FAILED"])
def test_a_savepoint_that_is_not_there_or_not_whole_is_refused_before_anything_is_written(
    state: str | None,
    service: Service,
    target: RealtimeComputeTarget,
) -> None:
    savepoint = stopped(target, started(target))
    if state is None:
        service.savepoints.clear()
    else:
        service.savepoints[savepoint]["status"] = {"state": state}
    service.asked.clear()
    with pytest.raises(StateRefused, match=f"the savepoint {savepoint} of") as refused:
        started(target, Start(savepoint))
    assert refused.value.fault is StateFault.GONE
    assert "UpdateDeployment" not in service.asked


def test_a_start_that_the_platform_refuses_has_started_nothing(service: Service, target: RealtimeComputeTarget) -> None:
    service.fails["StartJobWithParams"] = Refused("ResourceNotEnough", "the queue is full")
    with pytest.raises(TargetError, match=r"orders\.sql: .*ResourceNotEnough: the queue is full") as refused:
        started(target)
    assert not isinstance(refused.value, SubmissionUnknown)
    assert service.jobs == {}


# ------------------------------------------------------------------------------------------------- secrets in scripts
WITH_SECRET = SCRIPT.replace("'connector' = 'blackhole'", "'connector' = 'jdbc', 'password' = '{}'")


def test_placeholders_are_not_filled_in_on_the_platform(target: Target) -> None:
    script = WITH_SECRET.format("${conn.db.password}")
    settings = {**JOB.settings, "s3.secret-key": "${conn.s3.password}"}
    for refused in (lambda job: target.validate(job, Start()), lambda job: target.start(job, Start(), new_id())):
        with pytest.raises(ScriptRefused, match=r"conn\.db\.password.*s3.secret-key.*\$\{secret_values\.<name>\}"):
            refused(replace(JOB, script=script, settings=settings))
    with pytest.raises(ScriptRefused, match="secrets in plain text"):
        target.validate(replace(JOB, script=WITH_SECRET.format("planted")), Start())


def test_variables_of_the_namespace_are_the_platforms_and_no_secrets(
    service: Service,
    target: RealtimeComputeTarget,
    tmp_path: Path,
) -> None:
    script = WITH_SECRET.format("${secret_values.db-password}")
    entry = deployed(target, Ledger(tmp_path, NAME), script)
    assert service.jobs[str(entry.job_id)]["artifact"]["sqlArtifact"]["sqlScript"] == script
    with pytest.raises(ScriptRefused, match="secrets in plain text"):  # nothing fills them in there
        JobManagerTarget("http://localhost:1").validate(replace(JOB, script=script), Start())


# -------------------------------------------------------------------------------------------------- stops, savepoints
def test_a_stop_whose_savepoint_failed_is_told_and_the_next_one_is_another(
    service: Service,
    connect: Connected,
) -> None:
    target = connect()
    assert isinstance(service.backend, InMemory)
    job = started(target)
    service.backend.saves = False
    failed = target.stop(job, new_id(), None)
    with pytest.raises(StopFailed, match=f"savepoint of the stop of job {job} failed: the disk is full"):
        target.poll(failed)
    connect().stop(job, failed.request_id, None)
    assert service.asked.count("StopJob") == 1, "the stop that failed is not made again"
    assert target.running(NAME) == (job,)
    service.backend.saves = True
    again = target.stop(job, new_id(), None)
    assert target.poll(again).snapshot is not None
    assert service.asked.count("StopJob") == 2


def test_a_stop_that_is_at_work_is_waited_for(service: Service, target: RealtimeComputeTarget) -> None:
    assert isinstance(service.backend, InMemory)
    backend = service.backend
    job = started(target)
    save = backend.save
    backend.save = lambda job_id, stop: None  # type: ignore[method-assign]
    asked = target.stop(job, new_id(), None)
    assert target.poll(asked).snapshot is None
    target.stop(job, asked.request_id, None)
    target.stop(job, new_id(), None)
    assert service.asked.count("StopJob") == 1
    save(job, True)
    assert target.poll(asked).snapshot is not None


def test_a_job_that_ended_without_a_savepoint_left_none(target: RealtimeComputeTarget) -> None:
    job = started(target)
    target.cancel(job)
    with pytest.raises(StopFailed, match=f"job {job} is CANCELED, and .* has no savepoint from its stop"):
        target.poll(Operation(Verb.STOP, new_id(), job))


def test_a_stop_that_the_platform_refuses_is_an_error_while_the_job_runs(
    service: Service,
    target: RealtimeComputeTarget,
) -> None:
    job = started(target)
    service.fails["StopJob"] = Refused("Locked", "the deployment is locked")
    with pytest.raises(DeployError, match="refused StopJob: Locked: the deployment is locked"):
        target.stop(job, new_id(), None)


def test_a_savepoint_of_a_job_that_goes_on_may_fail(service: Service, target: RealtimeComputeTarget) -> None:
    assert isinstance(service.backend, InMemory)
    job = started(target)
    service.backend.saves = False
    asked = target.savepoint(job, new_id(), None)
    with pytest.raises(SavepointFailed, match="failed: the disk is full"):
        target.poll(asked)
    service.loses["CreateSavepoint"] = 1
    request = new_id()
    with pytest.raises(DeployError):
        target.savepoint(job, request, None)
    target.savepoint(job, request, None)
    assert service.asked.count("CreateSavepoint") == 2, "the second was made, and is found"


# -------------------------------------------------------------------------------------------------------------- proof
def test_without_the_right_to_the_proxy_the_platforms_word_is_told_as_such(
    service: Service,
    target: RealtimeComputeTarget,
) -> None:
    savepoint = stopped(target, started(target))
    service.denies.add("FlinkApiProxy")
    job = started(target, Start(savepoint))
    status = target.status(job)
    assert status is not None
    assert (status.state, status.tasks_running, status.completed_checkpoints) == ("RUNNING", True, None)
    assert target.restored_from(job).strength is Strength.DECLARED
    assert target.restored_from(job).snapshot == savepoint
    assert (target.ever_ran(job), target.source_offsets(job)) == (None, {})
    service.jobs[job]["restoreStrategy"] = {"kind": "LATEST_STATE"}
    assert target.restored_from(job).strength is Strength.UNKNOWN


def test_a_restore_from_another_state_is_seen_whatever_the_platform_declares(
    service: Service,
    target: RealtimeComputeTarget,
) -> None:
    assert isinstance(service.backend, InMemory)
    savepoint = stopped(target, started(target))
    job = started(target, Start(savepoint))
    assert target.restored_from(job).snapshot == savepoint
    service.backend.jobs[job].restored = "oss://bucket/checkpoints/chk-7"
    proof = target.restored_from(job)
    assert (proof.snapshot, proof.strength) == ("oss://bucket/checkpoints/chk-7", Strength.OBSERVED)
    assert target.job_history(job).restored == "oss://bucket/checkpoints/chk-7"
    service.backend.jobs[job].restored = None
    assert target.restored_from(job).snapshot is None
    # A savepoint, as Flink says; which one, the platform's list does not tell.
    service.backend.jobs[job].restored = "oss://elsewhere/sp-1"
    assert target.restored_from(job).strength is Strength.DECLARED


def test_a_job_that_failed_says_why(service: Service, target: RealtimeComputeTarget) -> None:
    assert isinstance(service.backend, InMemory)
    job = started(target)
    service.backend.jobs[job].seen = Seen("FAILED", "Failed to rollback to checkpoint/savepoint oss://x")
    status = target.status(job)
    assert status is not None
    assert (status.state, status.fault) == ("FAILED", StateFault.MISFIT)
    assert status.failure is not None
    assert "Failed to rollback" in status.failure


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("oss://b/x/savepoint-ab12cd-0123456789ab", "oss://b/x/savepoint-ab12cd-0123456789ab/", True),
        ("oss://b.oss-eu/x/savepoint-ab12cd-0123456789ab", "oss://b/x/savepoint-ab12cd-0123456789ab", True),
        ("https://oss/b/deployments/d/checkpoints/sp-3285", "oss://b/deployments/d/checkpoints/sp-3285", True),
        ("https://oss/b/d/checkpoints/sp-3285", "oss://b/d/checkpoints/sp-3285/savepoint-ab12cd-0123456789ab", True),
        ("https://oss/b/d/checkpoints/sp-3285", "oss://b/d/checkpoints/sp-3286", False),
        ("https://oss/b/d/checkpoints/sp-3285", "oss://b/e/checkpoints/sp-3285", False),
        ("oss://b/x/savepoint-ab12cd-0123456789ab", "oss://b/x/savepoint-ab12cd-ba9876543210", False),
        ("oss://b/1/chk-7", "oss://b/2/chk-7", False),
        (None, "oss://b/x", False),
    ],
)
def test_places_are_those_of_one_savepoint(one: str | None, other: str, same: bool) -> None:
    assert instances.same_location(one, other) is same


def test_what_goes_on_by_hand_is_told(target: RealtimeComputeTarget) -> None:
    said = target.manual_start(Snapshot("354dde66"), "the statements")
    assert all(line.startswith("  ") for line in said.splitlines()[1:])
    assert "savepoint 354dde66" in said
