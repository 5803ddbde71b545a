"""What the target ``aws`` does and says where something is not as a redeploy needs it."""

from __future__ import annotations

import inspect
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_flinkcompat.deploy import DeployError, DeployRefused
from airflow_flinkcompat.deploy.errors import (
    SavepointFailed,
    StateFault,
    StateRefused,
    StopFailed,
    SubmissionUnknown,
    TargetError,
)
from airflow_flinkcompat.deploy.flink.statements import ScriptRefused
from airflow_flinkcompat.deploy.redeploy.run import RolledBack, StartFailed, new_id
from airflow_flinkcompat.deploy.target import (
    Deployed,
    JobRef,
    LiveSavepoints,
    MasksSecrets,
    Operation,
    Proof,
    ReadsBack,
    RetainedCheckpoints,
    SavepointStore,
    Snapshot,
    Start,
    Strength,
    Verb,
)
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.aws import ManagedFlinkTarget, service
from airflow_flinkcompat.deploy.targets.aws.properties import FormerRun, PropertyLayout, RunRecord
from airflow_flinkcompat.deploy.targets.aws.service import ManagedFlink
from airflow_flinkcompat.testing.target_contract import CHANGED, MISFIT, SCRIPT
from tests.support.deploy.targets.aws_account import Account, job
from tests.support.deploy.targets.aws_stand_in import MODEL, Refused, envelope_faults

SECRET = SCRIPT.replace("'blackhole'", "'blackhole', 'password' = '${conn.sink.password}'")
ROLLBACK = {"ApplicationSystemRollbackConfiguration": {"RollbackEnabled": True}}
NO_SNAPSHOTS = {"ApplicationSnapshotConfiguration": {"SnapshotsEnabled": False}}


def groups(account: Account) -> dict[str, dict[str, str]]:
    rows = account.orders.configuration["EnvironmentProperties"]["PropertyGroups"]
    return {row["PropertyGroupId"]: row["PropertyMap"] for row in rows}


def fails(
    account: Account, call: str, code: str, message: str = "no", *, after: bool = False, status: int = 400
) -> None:
    """Have one call fail, every time."""
    account.server.fails = lambda asked, done: (
        Refused(code, message, status) if (asked, done) == (call, after) else None
    )


# ------------------------------------------------------------------------------------------------------ what it can do
def test_it_has_the_capabilities_that_the_service_keeps(account: Account) -> None:
    target = account.target()
    assert isinstance(target, ReadsBack)
    assert isinstance(target, LiveSavepoints)
    assert isinstance(target, MasksSecrets)
    assert not isinstance(target, RetainedCheckpoints)
    assert not isinstance(target, SavepointStore)
    assert str(target) == f"AWS Managed Service for Apache Flink (eu-central-1, {account.server.url})"
    assert (target.engine().engine, target.engine().version) == ("flink", "2.3")


def test_a_start_says_which_state_and_the_service_declares_it(account: Account) -> None:
    run = account.started()
    assert account.target().restored_from(run) == Proof(None, Strength.DECLARED)
    assert account.orders.run["FlinkRunConfiguration"] == {"AllowNonRestoredState": False}
    snapshot = account.stopped(run)
    successor = account.started(Start(snapshot))
    assert account.target().restored_from(successor) == Proof(snapshot, Strength.DECLARED)
    assert account.target().restored_from(run) == Proof(None, Strength.UNKNOWN), "another one runs"
    status = account.target().status(run)
    assert status is not None
    assert (status.state, status.completed_checkpoints) == ("FINISHED", None)


def test_what_others_keep_in_the_properties_stays(account: Account) -> None:
    theirs = {"PropertyGroupId": "theirs", "PropertyMap": {"a": "b"}}
    shared = {"PropertyGroupId": "flinkcompat", "PropertyMap": {"script.1": "old", "script.2": "old", "other": "x"}}
    account.orders.configuration["EnvironmentProperties"] = {"PropertyGroups": [theirs, shared]}
    account.started()
    found = groups(account)
    assert found["theirs"] == {"a": "b"}
    assert found["flinkcompat"] == {"script.1": SCRIPT, "other": "x"}
    assert found["flinkcompat.settings"] == {"pipeline.name": "orders", "parallelism.default": "1"}


def test_a_long_script_is_read_back_whole(account: Account) -> None:
    long = f"-- {'é' * 5000}\n{SCRIPT}"
    target = account.target()
    started = target.start(job(long), Start(), new_id())
    assert [len(groups(account)["flinkcompat"][f"script.{number}"]) for number in (1, 2)] == [2048, 2048]
    settings = {"pipeline.name": "orders", "parallelism.default": "1"}
    assert target.deployed("orders") == Deployed(started.job, long, settings)


def test_a_snapshot_of_a_running_job_is_named_by_its_request(account: Account) -> None:
    run, request = account.started(), new_id()
    target = account.target()
    asked = target.savepoint(run, request, None)
    assert target.poll(asked).snapshot == f"orders/{request}"
    account.target().savepoint(run, request, None)
    assert [snap.name for snap in account.orders.snaps] == [request]
    with pytest.raises(SavepointFailed, match="does not exist"):
        target.poll(Operation(Verb.SAVEPOINT, new_id(), run))
    account.orders.snaps[0].status = "FAILED"
    with pytest.raises(SavepointFailed, match="is FAILED"):
        target.poll(asked)
    with pytest.raises(TargetError, match="does not run"):
        target.savepoint(JobRef("orders/other"), new_id(), None)


def test_a_stop_does_not_take_an_earlier_snapshot_for_its_own(account: Account) -> None:
    """What a person had taken before holds less than the stop's own snapshot."""
    run = account.started()
    account.server.create_application_snapshot("orders", "nightly")
    found = account.stopped(run)
    assert found != "orders/nightly"
    assert found.startswith("orders/auto-")


def test_a_snapshot_of_the_same_moment_as_the_stops_own_is_not_chosen_between(account: Account) -> None:
    run = account.started()
    account.server.create_application_snapshot("orders", "nightly")
    account.stopped(run)
    nightly, took = account.orders.snaps
    nightly.created = took.created
    with pytest.raises(StopFailed, match=r"nightly.* were created at the same time, .*flinkcompat ledger adopt"):
        account.target().poll(Operation(Verb.STOP, new_id(), run))


def test_a_forced_stop_leaves_no_snapshot(account: Account) -> None:
    run = account.started()
    account.server.create_application_snapshot("orders", "nightly")
    target = account.target()
    target.cancel(run)
    status = target.status(run)
    assert status is not None
    assert status.state == "CANCELED"
    with pytest.raises(StopFailed, match="without a snapshot"):
        target.poll(Operation(Verb.STOP, new_id(), run))
    target.cancel(run)
    assert account.server.calls["StopApplication"] == 1


def test_a_job_that_somebody_else_started_is_known_by_its_operation(account: Account) -> None:
    account.started()
    del account.orders.configuration["EnvironmentProperties"]["PropertyGroups"][:]
    account.orders.configuration["EnvironmentProperties"]["PropertyGroups"].append(
        {"PropertyGroupId": "flinkcompat", "PropertyMap": {"script.1": CHANGED}}
    )
    operation = next(op for op in account.orders.ops if op.kind == "StartApplication")
    run = JobRef(f"orders/{operation.id}")
    target = account.target()
    assert target.running("orders") == (run,)
    assert target.deployed("orders") == Deployed(run, CHANGED, None)
    snapshot = account.stopped(run)
    account.started(Start(snapshot))
    assert target.poll(Operation(Verb.STOP, new_id(), run)).snapshot == snapshot


def test_a_start_is_found_among_applications_of_others(account: Account) -> None:
    """Also those that the identity may not describe, and only what has changed is looked at again."""
    for number in range(5):
        account.create(f"theirs-{number}")
    run = account.started()
    describe = account.server.describe_application

    def refuses(ApplicationName: str) -> dict[str, Any]:
        if ApplicationName.startswith("theirs"):
            raise Refused("AccessDeniedException", "not yours")
        return describe(ApplicationName)

    account.server.describe_application = refuses  # type: ignore[method-assign]
    target, start = account.target(), Operation(Verb.START, run.partition("/")[2])
    assert target.poll(start).job == run
    account.server.calls.clear()
    assert target.poll(start).job == run
    assert account.server.calls["DescribeApplication"] == 1
    assert target.poll(Operation(Verb.START, new_id())).job is None
    account.server.fails = lambda call, _: (
        Refused("ServiceUnavailable", "no", 503) if call == "DescribeApplication" else None
    )
    with pytest.raises(SubmissionUnknown):
        account.target().poll(start)


# ---------------------------------------------------------------------------------------------- what it refuses before
@pytest.mark.parametrize(
    ("script", "settings", "words"),
    [
        (SECRET, {}, r"contains \$\{conn.sink.password\}, but every user who may describe .* Set script_s3"),
        (SCRIPT, {"x": "${conn.sink.password}"}, "the setting 'x' contains"),
        (SCRIPT, {"x": ""}, "the setting 'x' has 0 characters"),
        (SCRIPT, {"x": "y" * 2049}, "the setting 'x' has 2049 characters"),
        (SCRIPT, {f"k{number}": "v" for number in range(50)}, "the job has 52 settings"),
        (SCRIPT, {"pipeline.name": "my orders"}, "the job is named 'my orders'"),
        (f"-- {'x' * 102_400}\n{SCRIPT}", {}, r"a property group accepts only 102400\. Set script_s3"),
    ],
)
def test_a_job_that_the_service_cannot_hold_is_refused(
    script: str, settings: dict[str, str], words: str, account: Account
) -> None:
    with pytest.raises(ScriptRefused, match=words):
        account.target().validate(job(script, **settings), Start())
    assert account.server.calls["UpdateApplication"] == 0


@pytest.mark.parametrize(
    ("name", "runtime", "more", "words"),
    [
        ("none", None, {}, r"has no application 'none' \(the deployment's name\)\. Create the application first"),
        ("old", "FLINK-1_20", {}, "has runtime environment FLINK-1_20, but the connection names FLINK-2_3"),
        ("bare", "FLINK-2_3", NO_SNAPSHOTS, "has snapshots disabled"),
        ("back", "FLINK-2_3", ROLLBACK, "has system rollback enabled"),
    ],
)
def test_an_application_that_cannot_be_redeployed_is_refused(
    name: str, runtime: str | None, more: dict[str, Any], words: str, account: Account
) -> None:
    if runtime:
        account.create(name, runtime, **more)
    for act in (account.target().validate, lambda job, start: account.target().start(job, start, new_id())):
        with pytest.raises(TargetError, match=words):
            act(job(**{"pipeline.name": name}), Start())


def test_a_second_job_is_not_started_beside_the_first(account: Account) -> None:
    run = account.started()
    with pytest.raises(TargetError, match=rf"application orders is RUNNING and runs {run}\. Stop that job first"):
        account.target().start(job(), Start(), new_id())


@pytest.mark.parametrize(
    ("snapshot", "words"), [("orders/none", "does not exist"), ("other/x", ("is not a snapshot of"))]
)
def test_a_snapshot_that_is_none_of_the_application_is_refused(snapshot: str, words: str, account: Account) -> None:
    with pytest.raises(TargetError, match=words) as refused:
        account.target().start(job(), Start(Snapshot(snapshot)), new_id())
    assert not isinstance(refused.value, StateRefused) or refused.value.fault is StateFault.GONE
    assert account.server.calls["UpdateApplication"] == 0


# ------------------------------------------------------------------------------------------- what goes wrong on the way
def test_a_version_that_somebody_else_made_is_refused(account: Account) -> None:
    """Between the look and the update."""
    other = {"PropertyGroups": [{"PropertyGroupId": "theirs", "PropertyMap": {"a": "b"}}]}

    def meanwhile(call: str, after: bool) -> None:
        if call == "UpdateApplication" and not after:
            account.orders.token, account.orders.version = "other", 7
            account.orders.configuration["EnvironmentProperties"] = other

    account.server.fails = meanwhile
    with pytest.raises(TargetError, match=r"Someone else may have changed the application \(version 1, now 7, READY\)"):
        account.target().start(job(), Start(), new_id())
    assert account.orders.configuration["EnvironmentProperties"] == other
    assert account.server.calls["StartApplication"] == 0


def test_properties_that_are_not_those_that_were_given_stop_the_start(account: Account) -> None:
    def trims(call: str, after: bool) -> None:
        if call == "UpdateApplication" and after:
            groups(account)["flinkcompat"]["script.1"] = SCRIPT.strip()

    account.server.fails = trims
    with pytest.raises(TargetError, match="does not have the configuration that was written"):
        account.target().start(job(), Start(), new_id())
    assert account.server.calls["StartApplication"] == 0


def test_a_start_that_failed_says_why(account: Account) -> None:
    snapshot = account.stopped(account.started())
    account.jobs.refuses.add("orders")
    run = account.started(Start(snapshot))
    status = account.target().status(run)
    assert status is not None
    assert (status.state, status.fault) == ("FAILED", StateFault.MISFIT)
    assert status.failure == "StartApplication FAILED: Failed to rollback to checkpoint/savepoint"
    assert account.target().running("orders") == ()


def test_a_stop_that_failed_leaves_the_job_and_can_be_tried_again(account: Account, tmp_path: Path) -> None:
    first = account.deploy(tmp_path, SCRIPT)
    account.jobs.stop_fails = "the savepoint timed out"
    with pytest.raises(StartFailed, match=r"StopApplication FAILED: the savepoint timed out\nThe job keeps running"):
        account.deploy(tmp_path, CHANGED)
    assert account.target().running("orders") == (first.job_id,)
    account.jobs.stop_fails = ""
    assert account.deploy(tmp_path, CHANGED).start.savepoint == f"orders/{account.orders.snaps[0].name}"


def test_a_snapshot_that_failed_is_no_state_to_start_from(account: Account, tmp_path: Path) -> None:
    account.deploy(tmp_path, SCRIPT)
    account.server.snapshot_fails = True
    with pytest.raises(StartFailed, match=r"snapshot auto-\w+ of the stop is FAILED"):
        account.deploy(tmp_path, CHANGED)


def test_a_snapshot_that_is_being_written_is_waited_for(account: Account) -> None:
    run = account.started()
    target = account.target()
    asked = target.stop(run, new_id(), None)
    account.snapshot(asked)
    account.orders.snaps[-1].status = "CREATING"
    assert target.poll(asked).snapshot is None
    status = target.status(run)
    assert status is not None
    assert status.state == "CANCELLING"
    with pytest.raises(TargetError, match="Stop that job first"):
        target.start(job(), Start(), new_id())


@pytest.mark.parametrize("status", ["UPDATING", "AUTOSCALING", "MAINTENANCE", "STARTING"])
def test_only_an_application_that_runs_is_stopped(status: str, account: Account) -> None:
    run = account.started()
    account.orders.status = status
    with pytest.raises(StopFailed, match=f"is {status}, but only a RUNNING application"):
        account.target().stop(run, new_id(), None)
    seen = account.target().status(run)
    assert seen is not None
    assert (seen.tasks_running, seen.starting, seen.terminal) == (False, True, False)


def test_a_job_whose_snapshots_were_disabled_is_not_stopped(account: Account) -> None:
    run = account.started()
    account.orders.configuration.update(NO_SNAPSHOTS)
    with pytest.raises(StopFailed, match=r"would lose the state\. Enable snapshots"):
        account.target().stop(run, new_id(), None)
    assert account.server.calls["StopApplication"] == 0


@pytest.mark.parametrize("status", ["ROLLING_BACK", "ROLLED_BACK"])
def test_an_application_that_the_service_rolled_back_has_failed(status: str, account: Account) -> None:
    run = account.started()
    account.orders.status = status
    seen = account.target().status(run)
    assert seen is not None
    assert (seen.state, seen.failure) == ("FAILING", "the service rolled the application back")


def test_state_that_may_be_left_aside_is_no_proof(account: Account) -> None:
    run = account.started()
    account.orders.run["FlinkRunConfiguration"] = {"AllowNonRestoredState": True}
    with pytest.raises(TargetError, match="sets AllowNonRestoredState"):
        account.target().restored_from(run)


def test_a_restore_that_nobody_here_asked_for_is_rolled_back(account: Account, tmp_path: Path) -> None:
    """Somebody else started the application from another state in between."""
    account.deploy(tmp_path, SCRIPT)

    def otherwise(call: str, after: bool) -> None:
        if call == "StartApplication" and after and account.server.calls[call] == 2:
            account.orders.run = {
                "ApplicationRestoreConfiguration": {"ApplicationRestoreType": "SKIP_RESTORE_FROM_SNAPSHOT"}
            }

    account.server.fails = otherwise
    with pytest.raises(RolledBack, match="was restored from nothing instead of orders/auto-"):
        account.deploy(tmp_path, CHANGED)


def test_a_script_that_was_changed_on_the_platform_stops_the_redeploy(account: Account, tmp_path: Path) -> None:
    first = account.deploy(tmp_path, SCRIPT)
    groups(account)["flinkcompat"]["script.1"] = MISFIT
    with pytest.raises(DeployRefused, match=f"job {first.job_id} runs a different script than entry") as refused:
        account.deploy(tmp_path, CHANGED)
    assert "\n+INSERT INTO counts SELECT n, COUNT(DISTINCT n) FROM numbers GROUP BY n;" in str(refused.value)
    assert account.target().running("orders") == (first.job_id,)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("AccessDeniedException", "See docs/targets/aws-iam-policy.json for the required permissions"),
        ("ExpiredTokenException", "The credentials of the AWS connection have expired. Renew them"),
    ],
)
def test_what_the_account_may_not_do_names_the_remedy(code: str, words: str, account: Account) -> None:
    fails(account, "UpdateApplication", code, "User arn:x is not authorized")
    with pytest.raises(TargetError, match=rf"update_application of orders failed \({code}\)") as refused:
        account.target().start(job(), Start(), new_id())
    assert words in str(refused.value)
    assert not refused.value.unanswered


def test_a_service_that_does_not_answer_has_not_refused(account: Account) -> None:
    fails(account, "UpdateApplication", "ServiceUnavailable", status=503)
    with pytest.raises(SubmissionUnknown):
        account.target().start(job(), Start(), new_id())
    fails(account, "DescribeApplication", "ThrottlingException", "Rate exceeded")
    with pytest.raises(DeployError) as raised:
        account.target().running("orders")
    assert raised.value.unanswered
    away = ManagedFlinkTarget.connect(account.access(endpoint_url="http://127.0.0.1:9"))
    with pytest.raises(DeployError) as raised, away:
        away.engine()
    assert raised.value.unanswered


def test_credentials_that_are_missing_are_named(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.exceptions import NoCredentialsError

    def none(**_: object) -> None:
        raise NoCredentialsError

    client = SimpleNamespace(describe_application=none)
    service = ManagedFlink(client, s3=lambda: None, poll_interval=0)
    with pytest.raises(TargetError, match=r"Unable to locate credentials\. Set the AWS connection"):
        service.application("orders")


# ------------------------------------------------------------------------------------------------ how it is reached
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"runtime_environment": None}, "runtime_environment '' is not a Flink runtime"),
        ({"runtime_environment": "SQL-1_0"}, "runtime_environment 'SQL-1_0' is not a Flink runtime"),
        ({"script_property": "script"}, "script_property 'script' must have the form GROUP.KEY"),
        ({"settings_property_group": "flinkcompat"}, "settings_property_group 'flinkcompat' is not a valid group id"),
        ({"script_s3": "bucket/x"}, "script_s3 'bucket/x' must have the form"),
        ({"poll_interval": "often"}, "poll_interval 'often' is not a number"),
        ({"aws_conn_id": "aws"}, "aws_conn_id 'aws' names an Airflow connection, but this process has no connections"),
    ],
)
def test_a_wrong_setting_is_told_with_its_place(settings: dict[str, Any], words: str, account: Account) -> None:
    with pytest.raises(DeployError, match=f"connection 'aws_flink': {words}"):
        ManagedFlinkTarget.connect(account.access(**settings))


def test_a_command_takes_its_settings_of_the_environment(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = account.access().settings
    assert settings is not None
    for key, value in settings.items():
        monkeypatch.setenv(f"FLINKCOMPAT_AWS_{key.upper()}", str(value))
    with ManagedFlinkTarget.connect(Access(lambda _: "")) as target:
        assert target.running("orders") == ()


@pytest.mark.slow
def test_airflows_connection_opens_it_and_the_providers_waiter_follows_a_stop(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.providers.amazon.aws.hooks.base_aws import AwsGenericHook
    from airflow.sdk import BaseHook

    extra = {"region_name": "eu-central-1", "endpoint_url": account.server.url}
    row = {"conn_type": "aws", "login": "key", "password": "planted-secret", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_TEST", json.dumps(row))
    waited: list[str] = []
    get_waiter = AwsGenericHook.get_waiter

    def counted(self: Any, name: str, **given: Any) -> Any:
        waited.append(name)
        return get_waiter(self, name, **given)

    monkeypatch.setattr(AwsGenericHook, "get_waiter", counted)
    settings = {"aws_conn_id": "aws_test", "runtime_environment": "FLINK-2_3", "poll_interval": 0}
    access = Access(lambda _: "", settings, "connection 'f'", None, lambda _: None, BaseHook.get_hook)
    with ManagedFlinkTarget.connect(access) as target:
        run = target.start(job(), Start(), new_id()).job
        assert run is not None
        account.settle(run)
        target.cancel(run)
        assert target.running("orders") == ()
    assert waited == ["application_stop_complete"]
    with pytest.raises(DeployError, match="endpoint_url must be set in the extra of connection 'aws_test'"):
        ManagedFlinkTarget.connect(
            Access(lambda _: "", {**settings, "endpoint_url": "x"}, "connection 'f'", hook=BaseHook.get_hook)
        )


# -------------------------------------------------------------------------------------------- scripts in objects of S3
class Bucket:
    """The objects of S3."""

    def __init__(self) -> None:
        self.objects: dict[str, str] = {}
        self.read_only = False

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, ContentType: str) -> dict[str, Any]:
        from botocore.exceptions import ClientError

        if self.read_only:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "Access Denied"}}, "PutObject")
        self.objects[f"s3://{Bucket}/{Key}"] = Body.decode()
        return {}

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        from botocore.exceptions import ClientError

        if (uri := f"s3://{Bucket}/{Key}") not in self.objects:
            raise ClientError({"Error": {"Code": "NoSuchKey", "Message": "The key does not exist."}}, "GetObject")
        return {"Body": SimpleNamespace(read=self.objects[uri].encode)}


def with_bucket(account: Account) -> tuple[ManagedFlinkTarget, Bucket]:
    target, bucket = account.target(script_s3="s3://scripts/flink/"), Bucket()
    target._service._s3 = lambda: bucket
    account.server.program = lambda groups: (bucket.objects[groups["flinkcompat"]["script.uri"]], {})
    return target, bucket


def test_a_script_in_an_object_is_named_by_its_digest(account: Account) -> None:
    target, bucket = with_bucket(account)
    run = target.start(job(), Start(), new_id()).job
    ((uri, text),) = bucket.objects.items()
    assert text == SCRIPT
    assert uri == f"s3://scripts/flink/orders/{uri[-68:]}"
    assert groups(account)["flinkcompat"] == {"script.uri": uri}
    assert target.deployed("orders") == Deployed(run, SCRIPT, groups(account)["flinkcompat.settings"])
    bucket.objects.clear()
    with pytest.raises(TargetError, match=r"The application reads its script from this object\. Restore the object"):
        target.deployed("orders")


def test_a_bucket_that_takes_no_script_is_told_before_the_stop(account: Account, tmp_path: Path) -> None:
    target, bucket = with_bucket(account)
    first = account.deploy(tmp_path, SCRIPT, target)
    bucket.read_only = True
    with pytest.raises(
        DeployError, match=r"put_object of .* failed \(AccessDenied\): Access Denied. See docs/targets/aws-iam-policy"
    ):
        account.deploy(tmp_path, CHANGED, target)
    assert target.running("orders") == (first.job_id,)
    assert account.server.calls["StopApplication"] == 0


def test_the_way_back_writes_nothing_that_is_there(account: Account, tmp_path: Path) -> None:
    target, bucket = with_bucket(account)
    account.deploy(tmp_path, SCRIPT, target)
    validate = target.validate

    def validated(*given: Any) -> str:
        said = validate(*given)
        bucket.read_only = True
        return said

    target.validate = validated  # type: ignore[method-assign]
    account.jobs.refuses.add("orders")
    with pytest.raises(RolledBack):
        account.deploy(tmp_path, CHANGED, target)
    assert len(target.running("orders")) == 1


def test_placeholders_are_filled_in_in_an_object_of_the_request_alone(account: Account) -> None:
    """What is read back is the script as it was given; no property holds the secret, and no message shows it."""
    target, bucket = with_bucket(account)
    target.register_secrets(job(SECRET))
    request = new_id()
    target.start(job(SECRET), Start(), request)
    uri = groups(account)["flinkcompat"]["script.uri"]
    assert uri.endswith(f".{request}.sql")
    assert bucket.objects[uri] == SECRET.replace("${conn.sink.password}", "planted-secret-7")
    assert len(bucket.objects) == 2
    assert "planted-secret-7" not in json.dumps(account.orders.configuration)
    found = target.deployed("orders")
    assert found is not None
    assert found.script == SECRET
    fails(account, "StopApplication", "InvalidRequestException", "password planted-secret-7 is wrong")
    account.settle(JobRef(f"orders/{request}"))
    with pytest.raises(StopFailed) as refused:
        target.stop(JobRef(f"orders/{request}"), new_id(), None)
    assert "planted-secret-7" not in str(refused.value)


# ------------------------------------------------------------------------------------------------------- its record
def test_the_record_forgets_the_oldest_runs() -> None:
    record = RunRecord()
    for number in range(60):
        at = (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)).isoformat()
        record = record.followed_by(f"r{number}", "op", f"r{number - 1}", FormerRun("FINISHED", at, "snap"))
    assert len(record.former) == 40
    assert "r58" in record.former
    assert RunRecord.of({"flinkcompat.run": record.properties}) == record
    update = {"PropertyGroups": [{"PropertyGroupId": "flinkcompat.run", "PropertyMap": record.properties}]}
    assert not envelope_faults(update, MODEL.shape_for("EnvironmentPropertyUpdates"))


@pytest.mark.parametrize("value", ["FINISHED", '{"state": "FINISHED"}', "[1]"])
def test_a_record_that_somebody_else_wrote_is_told(value: str) -> None:
    with pytest.raises(
        DeployError, match=r"property 'former\.x' of group 'flinkcompat\.run' was not written by flinkcompat"
    ):
        RunRecord.of({"flinkcompat.run": {"request": "a", "after": "-", "former.x": value}})


def test_other_groups_may_leave_no_room() -> None:
    many = {f"g{number}": {"a": "b"} for number in range(50)}
    with pytest.raises(DeployError, match="52 property groups, but the service accepts only 50"):
        PropertyLayout().groups(many, {"script.1": "x"}, {}, RunRecord("r"))
    full = {"flinkcompat": {f"k{number}": "v" for number in range(50)}}
    with pytest.raises(DeployError, match="would have 51 properties"):
        PropertyLayout().groups(full, {"script.1": "x"}, {}, RunRecord("r"))


def test_the_stand_in_holds_requests_against_the_vendors_model() -> None:
    shape = MODEL.operation_model("StartApplication").input_shape
    for wrong, words in (
        ({}, "Missing required parameter"),
        ({"ApplicationName": "a b"}, "is not of"),
        ({"ApplicationName": "a" * 129}, "is not within 1 and 128"),
        ({"ApplicationName": "a", "X": 1}, "Unknown parameter"),
        (
            {
                "ApplicationName": "a",
                "RunConfiguration": {"ApplicationRestoreConfiguration": {"ApplicationRestoreType": "X"}},
            },
            "is none of",
        ),
    ):
        assert words in envelope_faults(wrong, shape)


# --------------------------------------------------------------------------------------------------- its page in docs/
def _listed(action: str | list[str]) -> list[str]:
    return [action] if isinstance(action, str) else action


DOCS = Path(__file__).parents[4] / "docs" / "targets"


def test_the_policy_allows_the_calls_of_the_target_and_no_others() -> None:
    source = inspect.getsource(service)
    calls = set(re.findall(r'_(?:call|pages)\(\s*"(\w+)"', source))
    policy = json.loads((DOCS / "aws-iam-policy.json").read_text("utf-8"))
    allowed = {action for row in policy["Statement"] for action in _listed(row["Action"])}
    assert allowed == {
        f"s3:{name}" if name in ("GetObject", "PutObject") else f"kinesisanalytics:{name}"
        for name in ("".join(word.title() for word in call.split("_")) for call in calls)
    }


@pytest.mark.slow
def test_the_dag_of_the_page_is_a_dag_of_under_40_lines() -> None:
    (text,) = [
        text
        for text in re.findall(r"```python\n(.*?)```", (DOCS / "aws.md").read_text("utf-8"), re.DOTALL)
        if "DAG(" in text
    ]
    assert len(text.splitlines()) < 40
    from airflow.sdk import DAG

    found: dict[str, Any] = {}
    exec(text.replace("):\n    gated", ") as dag:\n    gated"), found)
    assert isinstance(found["dag"], DAG)
    assert found["dag"].get_task("resume").start_timeout == 1800
