"""What the operator does, by its source and by recordings of a real one, and what a deployment does about it."""

from __future__ import annotations

import base64
import json
import logging
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from kubernetes import client

from airflow_flinkcompat.deploy import DeployError, DeployRefused, Options, RolledBack, StartFailed
from airflow_flinkcompat.deploy.errors import redact
from airflow_flinkcompat.deploy.flink.statements import ScriptRefused
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.target import JobRef, JobStatus, Operation, Snapshot, Start, Verb
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.kubernetes.api import KubernetesApi, connect
from airflow_flinkcompat.deploy.targets.kubernetes.resource import KEPT, FlinkResource
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.testing.target_contract import CHANGED, MISFIT, SCRIPT, SETTINGS
from tests.support.deploy.targets.kubernetes_deployments import APPLICATION, WITH_SECRET, Deployments, operator
from tests.support.deploy.targets.kubernetes_stand_in import RIGHTS, KubernetesStandIn, Lost

RECORDED = Path(__file__).parents[3] / "fixtures" / "recorded" / "operator-1.7.0"
MOUNTED = APPLICATION.replace("{script}", "{script_uri}").replace("--script", "--scriptUri")
KEY = "AbC9zz8yy7xx6ww5vv4uu3"
NEXT = ("configmaps", "orders-flinkcompat-next")
JOB = JobSpec(SCRIPT, {**SETTINGS, "pipeline.name": "orders"}, source="orders.sql")


@pytest.fixture(params=[{"session_cluster": "session"}, {"manifest": APPLICATION}], ids=["session job", "application"])
def either(stand_in: KubernetesStandIn, tmp_path: Path, request: pytest.FixtureRequest) -> Deployments:
    """A session job, or an application, that runs the first script."""
    return _running(stand_in, tmp_path, request.param)


@pytest.fixture
def application(stand_in: KubernetesStandIn, tmp_path: Path) -> Deployments:
    """An application that runs the first script."""
    return _running(stand_in, tmp_path, {"manifest": APPLICATION})


def _running(stand_in: KubernetesStandIn, folder: Path, settings: dict[str, str]) -> Deployments:
    found = Deployments(stand_in, folder, settings)
    found.deploy(SCRIPT)
    stand_in.calls.clear()
    return found


def _changed(script: str) -> str:
    return script.replace("SELECT n, COUNT(*)", "SELECT n, COUNT(*) + 1")


def _secrets(stand_in: KubernetesStandIn) -> set[str]:
    return {name for plural, name in stand_in.objects if plural == "secrets"}


def _recorded(name: str) -> FlinkResource:
    return FlinkResource(json.loads((RECORDED / f"{name}.json").read_text()))


# ----------------------------------------------------------------------------------------------------------- recordings
@pytest.mark.parametrize(
    ("name", "ended", "unaccepted"),
    [
        ("session-created", False, True),
        ("session-running", False, False),
        ("session-suspended", True, False),
        ("session-cancelled", True, False),
        ("session-running-again", False, False),
        ("session-broken-script", False, True),
        ("session-way-back-from-broken-script", False, False),
    ],
)
def test_what_a_real_operator_says(name: str, ended: bool, unaccepted: bool) -> None:
    """Recorded of operator 1.7.0: which jobs have ended, and which were never accepted."""
    found = _recorded(name)
    assert (found.ended, found.unaccepted, found.in_vain) == (ended, unaccepted, name == "session-broken-script")


def test_only_a_resource_suspended_with_a_savepoint_goes_on_from_it() -> None:
    """One that was cancelled starts empty, although its last savepoint is still the one that is wanted."""
    suspended, cancelled = _recorded("session-suspended"), _recorded("session-cancelled")
    savepoint = suspended.upgrade_savepoint
    assert savepoint is not None
    assert suspended.resumes_from(savepoint)
    assert cancelled.upgrade_savepoint == savepoint
    assert not cancelled.resumes_from(savepoint)
    assert not suspended.resumes_from(Snapshot("file:/recorded/flink/savepoints/another"))


def test_an_error_of_a_real_operator_is_one_readable_line() -> None:
    """It is JSON, which holds stack traces that are cut off."""
    assert _recorded("session-broken-script").why(redact) == (
        "ProgramInvocationException: The main method caused an error: Statement 1 of 1 failed: Cannot find table "
        "'`default_catalog`.`default_database`.`nowhere`' in any of the catalogs [default_catalog], nor as a temporary "
        "table."
    )


# --------------------------------------------------------------------------------------------- scripts that are refused
def test_a_script_that_is_refused_for_good_is_rolled_back(either: Deployments) -> None:
    """The operator would try it for ever, so its resource goes away; what it was made of does not."""
    orders = either
    orders.resource["spec"]["flinkConfiguration"]["kubernetes.operator.their.own"] = "1"
    orders.stand_in.flink.refuses[CHANGED] = "Object 'orders' not found"
    with pytest.raises(
        RolledBack, match=r"ValidationException: Object 'orders' not found(?s:.*)No task of the new job"
    ):
        orders.deploy(CHANGED, owner="second")
    (job,) = orders.runs
    assert job.restored == "file:/savepoints/savepoint-1"
    assert orders.resource["spec"]["flinkConfiguration"]["kubernetes.operator.their.own"] == "1"
    assert NEXT not in orders.stand_in.objects
    orders.stand_in.flink.refuses.clear()
    orders.deploy(CHANGED, owner="third")
    (job,) = orders.runs
    assert job.restored == "file:/savepoints/savepoint-2"


def test_a_first_script_that_is_refused_blocks_nothing(stand_in: KubernetesStandIn, tmp_path: Path) -> None:
    """Nothing of it is left, so the next one is made of the manifest again."""
    orders = Deployments(stand_in, tmp_path, {"session_cluster": "session"})
    stand_in.flink.refuses[CHANGED] = "Object 'orders' not found"
    with pytest.raises(StartFailed, match="Object 'orders' not found"):
        orders.deploy(CHANGED)
    assert ("flinksessionjobs", "orders") not in stand_in.objects
    assert NEXT not in stand_in.objects
    orders.deploy(SCRIPT, owner="second")
    assert len(orders.runs) == 1


@pytest.mark.parametrize(
    "said",
    [
        "pods orders-5d is forbidden: exceeded quota: shop, requested: limits.memory=4Gi",
        "FailedCreate: no nodes",
        "ImagePullBackOff: Back-off pulling image flink:9.9",
        "ErrImagePull: not found",
        "CrashLoopBackOff: back-off 5m0s restarting failed container",
    ],
)
def test_what_kubernetes_refuses_is_a_failure(said: str) -> None:
    """Quotas and images, by the operator's word."""
    error = json.dumps({"type": "DeploymentFailedException", "message": said, "throwableList": []})
    found = FlinkResource({"metadata": {"name": "orders"}, "spec": {"job": {}}, "status": {"error": error}})
    assert found.in_vain
    assert said in (found.why(redact) or "")


# ----------------------------------------------------------------------------------- an operator that is behind, or not
def test_an_operator_that_has_not_seen_the_failure(orders: Deployments) -> None:
    """The JobManager's word counts; what the operator believes to run is never patched, but made anew."""
    orders.stand_in.flink.misfits.add("orders")

    def lag(when: str, number: int) -> None:
        orders.stand_in.lags = number >= 1

    orders.stand_in.at = lag
    with pytest.raises(RolledBack):
        orders.deploy(MISFIT, owner="second")
    (job,) = orders.runs
    assert job.restored == "file:/savepoints/savepoint-1"
    assert orders.stand_in.calls[-2:] == ["delete flinksessionjobs", "create flinksessionjobs"]


def test_a_cancel_in_the_background_is_waited_for(orders: Deployments) -> None:
    """From 1.10 on the operator never says that it was brought about."""
    with orders.target() as target:
        (job,) = target.running("orders")
        target.cancel(job)
        status = target.status(job)
        assert isinstance(status, JobStatus)
        assert (status.state, target.running("orders")) == ("CANCELED", ())
    state = orders.resource["status"]["reconciliationStatus"]["state"]
    assert state == ("DEPLOYED" if orders.stand_in.version == "1.7" else "UPGRADING")


def test_a_start_after_a_cancel_is_given_its_savepoint(either: Deployments) -> None:
    """The operator starts a resource in the mode it was suspended with: after a cancel that is without state."""
    orders = either
    entry = orders.deploy(CHANGED, owner="second")
    savepoint = entry.start.savepoint
    with orders.target() as target:
        (job,) = target.running("orders")
        target.cancel(job)
        target.start(JOB, Start(savepoint), new_id())
        (job,) = target.running("orders")
        assert target.restored_from(job).snapshot == savepoint


def test_a_start_waits_until_the_operator_has_written_what_it_did(orders: Deployments) -> None:
    """It writes each status three times, and forgets a stop where somebody writes to the resource in between."""
    written: list[float] = []
    with orders.target() as target:
        (job,) = target.running("orders")
        target.cancel(job)

        def write_again() -> None:
            orders.resource["status"]["jobStatus"]["updateTime"] = "again"
            orders.resource["metadata"]["resourceVersion"] = orders.stand_in._version()
            written.append(time.monotonic())

        def write(when: str, number: int) -> None:
            if when == "before" and number == 1:
                written.append(time.monotonic())

        orders.stand_in.at = write
        target.quiet_seconds = dict.fromkeys(target.quiet_seconds, 0.4)
        again = threading.Timer(0.2, write_again)
        again.start()
        target.start(JOB, Start(), new_id())
        again.join()
        assert len(target.running("orders")) == 1
    status_written, resource_written = written
    assert resource_written - status_written >= 0.3


def test_no_start_leaves_a_mode_that_loses_state(orders: Deployments) -> None:
    """The next edit of anybody would start it empty."""
    assert orders.resource["spec"]["job"]["upgradeMode"] == "savepoint"
    assert orders.resource["spec"]["flinkConfiguration"].items() >= KEPT.items()
    orders.deploy(CHANGED, owner="second", start_mode="stateless")
    (job,) = orders.runs
    assert job.restored is None
    assert orders.resource["spec"]["job"]["upgradeMode"] == "savepoint"


def test_an_application_whose_jobmanager_comes_up(stand_in: KubernetesStandIn, tmp_path: Path) -> None:
    """Its service has no endpoints at first."""
    stand_in.unready = 6
    orders = Deployments(stand_in, tmp_path, {"manifest": APPLICATION})
    orders.deploy(SCRIPT, options=Options(settle_seconds=0.0, submit_timeout=3.0, start_timeout=60.0))
    assert len(orders.runs) == 1


# ------------------------------------------------------------------------------------------------------ stops that fail
def test_a_start_that_the_operator_forgot_is_made_anew(tmp_path: Path) -> None:
    """A write to its status that met the start's: it takes that for done, and nothing was started (seen on 1.7.0)."""
    with operator("1.7") as stand_in:
        orders = _running(stand_in, tmp_path, {"session_cluster": "session"})

        def forgets(when: str, number: int) -> None:
            if (when, number) == ("after", 1):
                document = orders.resource
                stand_in._deployed(document["status"], document["spec"], document["metadata"]["generation"])
                document["status"]["lifecycleState"] = "DEPLOYED"

        stand_in.at = forgets
        entry = orders.deploy(CHANGED, owner="second")
        kinds = [call.partition(" ")[0] for call in stand_in.calls]
        assert kinds == ["patch", "patch", "delete", "create"]
        assert entry.start.savepoint == "file:/savepoints/savepoint-1"
        (job,) = orders.runs
        assert job.restored == entry.start.savepoint


def test_a_stop_that_failed_is_taken_back(orders: Deployments) -> None:
    """The operator would try it for ever, and end the job when nobody looks any more."""
    orders.stand_in.flink.no_savepoints = "java.io.IOException: access denied by s3"
    with pytest.raises(StartFailed, match="access denied by s3"):
        orders.deploy(CHANGED, owner="second", options=Options(settle_seconds=0.0, stop_timeout=3.0))
    orders.stand_in.flink.no_savepoints = ""
    orders.stand_in.reconcile()
    assert len(orders.runs) == 1
    orders.deploy(CHANGED, owner="third")
    (job,) = orders.runs
    assert job.restored == "file:/savepoints/savepoint-1"


def test_a_checkpoint_is_no_savepoint_of_a_stop(orders: Deployments) -> None:
    """The job fails between our look and the stop, and the operator records the checkpoint that is left."""

    def fail(when: str, number: int) -> None:
        if (when, number) == ("before", 0):
            (job,) = orders.runs
            job.state, job.failure = "FAILED", "java.lang.OutOfMemoryError: heap"
            said = orders.resource["status"]["jobStatus"]
            said["state"] = "FAILED"
            said["upgradeSavepointPath"] = "file:/checkpoints/abc/chk-20"

    orders.stand_in.at = fail
    with pytest.raises(DeployError, match="chk-20"):
        orders.deploy(CHANGED, owner="second")
    assert orders.runs == []
    assert not any(getattr(entry, "kind", "") == "stopped" for entry in orders.ledger.entries())


def test_a_savepoint_that_the_operator_did_not_hear_of(orders: Deployments) -> None:
    """A session cluster still knows the job that ended by it."""

    def finish(when: str, number: int) -> None:
        if (when, number) == ("before", 0):
            (job,) = orders.runs
            orders.stand_in.flink.stop(job)
            said = orders.resource["status"]["jobStatus"]
            said["state"] = "FINISHED"
            said["upgradeSavepointPath"] = "file:/checkpoints/abc/chk-20"

    orders.stand_in.at = finish
    entry = orders.deploy(CHANGED, owner="second")
    assert entry.start.savepoint == "file:/savepoints/savepoint-1"


# --------------------------------------------------------------------------------------------- rights, files and copies
def test_a_script_in_the_resource_touches_no_secret(orders: Deployments) -> None:
    """Neither lists any nor writes one; a ConfigMap is written where a resource is made anew alone."""
    orders.stand_in.used.clear()
    orders.deploy(CHANGED, owner="second")
    assert len(orders.runs) == 1
    assert not any(plural == "secrets" for plural, _ in orders.stand_in.used)
    assert orders.stand_in.files_made == []


@pytest.mark.parametrize(
    ("settings", "script", "refused", "says"),
    [
        (
            {"session_cluster": "session"},
            SCRIPT,
            "configmaps/orders-flinkcompat-next",
            "a rollback stores the resource's spec",
        ),
        ({"manifest": MOUNTED}, SCRIPT, "configmaps/orders-sql-", "the start stores its script in configmaps/"),
        ({"manifest": MOUNTED}, WITH_SECRET, "secrets/orders-sql-", "requires permission to create secrets"),
    ],
)
def test_what_a_start_would_have_to_write_is_tried_before_the_stop(
    stand_in: KubernetesStandIn, tmp_path: Path, settings: dict[str, str], script: str, refused: str, says: str
) -> None:
    """A quota that is used up, or a right that is missing, is found out about while the former job runs."""
    stand_in.flink.files = stand_in.objects
    orders = _running(stand_in, tmp_path, settings)
    stand_in.refused_files = {refused: "exceeded quota: shop"}
    with pytest.raises(DeployError, match=f"exceeded quota: shop. Nothing was changed: .*{says}"):
        orders.deploy(_changed(script), owner="second")
    assert stand_in.calls == []
    assert len(orders.runs) == 1
    stand_in.refused_files = {}
    orders.deploy(_changed(script), owner="third")
    assert len(orders.runs) == 1


def test_the_secret_of_a_start_that_was_refused_goes_with_it(stand_in: KubernetesStandIn, tmp_path: Path) -> None:
    """A first one that Flink refuses, a later one, and one that the API server refuses."""
    stand_in.flink.files = stand_in.objects
    orders = Deployments(stand_in, tmp_path, {"manifest": MOUNTED})
    stand_in.flink.refuses = {WITH_SECRET: "no such table", _changed(WITH_SECRET): "no such table"}
    with pytest.raises(StartFailed, match="no such table"):
        orders.deploy(WITH_SECRET)
    assert len(stand_in.files_made) == 1
    assert _secrets(stand_in) == set()

    orders.deploy(SCRIPT, owner="second")
    with pytest.raises(RolledBack, match="no such table"):
        orders.deploy(_changed(WITH_SECRET), owner="third")
    assert len(orders.runs) == 1
    assert _secrets(stand_in) == set()

    def refuse(when: str, number: int) -> None:
        stand_in.refuses = "no changes on Fridays" if number and when == "before" else ""

    stand_in.flink.refuses = {}
    stand_in.calls.clear()
    stand_in.at = refuse
    with pytest.raises(DeployError, match="no changes on Fridays"):
        orders.deploy(_changed(WITH_SECRET), owner="fourth")
    assert len(stand_in.files_made) > 3
    assert _secrets(stand_in) == set()


def test_the_secret_of_a_start_that_may_have_landed_stays(stand_in: KubernetesStandIn, tmp_path: Path) -> None:
    """Its answer was lost: the retry finds the resource, which mounts it."""
    stand_in.flink.files = stand_in.objects
    orders = Deployments(stand_in, tmp_path, {"manifest": MOUNTED})
    job = JobSpec(WITH_SECRET, {**SETTINGS, "pipeline.name": "orders"}, source="orders.sql")

    def lose(when: str, number: int) -> None:
        if when == "after":
            raise Lost

    stand_in.at = lose
    with orders.target() as target, pytest.raises(DeployError):
        target.start(job, Start(), "1" * 32)
    assert _secrets(stand_in) == {"orders-sql-111111111111"}


@pytest.mark.slow
@pytest.mark.parametrize("placeholder", ["{script_uri}", "{statements_uri}"])
def test_a_script_too_large_for_its_file_is_refused_before_the_stop(
    stand_in: KubernetesStandIn, tmp_path: Path, placeholder: str
) -> None:
    """A ConfigMap holds 1 MiB, of all of its files: with the statements beside the script it is full earlier."""
    stand_in.flink.files = stand_in.objects
    orders = _running(stand_in, tmp_path, {"manifest": MOUNTED.replace("{script_uri}", placeholder)})
    longer = CHANGED.replace("'connector' = 'blackhole'", f"'connector' = 'blackhole', 'note' = '{'x' * 600_000}'")
    if placeholder == "{script_uri}":
        orders.deploy(longer, owner="second")
        longer = longer.replace("x" * 500_000, "x" * 1_000_000)
    stand_in.calls.clear()
    with pytest.raises(ScriptRefused, match=r"the script's file has \d{7} bytes, .* at most 1048576 \(1 MiB\)"):
        orders.deploy(longer, owner="third")
    assert stand_in.calls == []
    assert len(orders.runs) == 1


@pytest.fixture
def keyed(stand_in: KubernetesStandIn, tmp_path: Path) -> Deployments:
    """A deployment whose manifest holds a literal secret."""
    options = "spec:\n  flinkConfiguration: {s3.secret-key: " + KEY + "}"
    return _running(stand_in, tmp_path, {"manifest": APPLICATION.replace("spec:", options, 1)})


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", ["delete", "create"])
def test_a_secret_of_a_resource_never_stands_in_a_config_map(keyed: Deployments, when: str, call: str) -> None:
    """What it is made anew from is kept in a Secret, is found there by the run after, and is taken out."""
    keyed.stand_in.flink.refuses[CHANGED] = "no such table"
    lost: list[int] = []
    kept: list[str] = []

    def lose(at: str, number: int) -> None:
        kept.append(
            json.dumps([each for (plural, _), each in keyed.stand_in.objects.items() if plural == "configmaps"])
        )
        if at == when and keyed.stand_in.calls[number].startswith(call) and not lost:
            entries = keyed.stand_in.objects["secrets", "flinkcompat-next"]["data"]
            assert KEY in base64.b64decode(entries["orders"]).decode()
            lost.append(number)
            raise Lost

    keyed.stand_in.at = lose
    for _ in range(2):
        with suppress(DeployError):
            keyed.deploy(CHANGED, owner="second")
    assert lost
    assert len(keyed.runs) == 1
    assert keyed.resource["spec"]["flinkConfiguration"]["s3.secret-key"] == KEY
    assert not any(KEY in each for each in kept)
    assert keyed.stand_in.objects["secrets", "flinkcompat-next"]["data"] == {}
    assert NEXT not in keyed.stand_in.objects


def test_a_resource_with_a_secret_needs_the_right_to_keep_it(
    keyed: Deployments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the Role of a former release that is said before the stop, and the place is named."""
    former = frozenset(each for each in RIGHTS if len(each) == 2)
    monkeypatch.setattr("tests.support.deploy.targets.kubernetes_stand_in.RIGHTS", former)
    with pytest.raises(DeployError, match="permission to get, patch and create secrets") as refused:
        keyed.deploy(CHANGED, owner="second")
    assert "remove spec.flinkConfiguration.s3.secret-key from the resource" in str(refused.value)
    assert KEY not in str(refused.value)
    assert keyed.stand_in.calls == []
    assert len(keyed.runs) == 1


@pytest.mark.parametrize("misfit", [False, True])
def test_a_way_back_finds_the_former_script_where_it_is(
    stand_in: KubernetesStandIn, tmp_path: Path, misfit: bool
) -> None:
    """Its ConfigMap is named by its content, and is not written once more; a quota may be used up by then."""
    stand_in.flink.files = stand_in.objects
    orders = _running(stand_in, tmp_path, {"manifest": MOUNTED})
    (first,) = stand_in.files_made
    changed = MISFIT if misfit else CHANGED
    if misfit:
        stand_in.flink.misfits.add("orders")
    else:
        stand_in.flink.refuses[CHANGED] = "Object 'orders' not found"
    with pytest.raises(RolledBack):
        orders.deploy(changed, owner="second")
    assert len(orders.runs) == 1
    assert stand_in.files_made.count(first) == 1
    spec = orders.resource["spec"]["podTemplate"]["spec"]
    assert spec["volumes"][0]["configMap"]["name"] == first.partition("/")[2]


def test_an_old_file_that_cannot_be_deleted_is_left_over(stand_in: KubernetesStandIn, tmp_path: Path) -> None:
    """That is logged; the next deployment tries it again."""
    stand_in.flink.files = stand_in.objects
    orders = Deployments(stand_in, tmp_path, {"manifest": MOUNTED})
    orders.deploy(SCRIPT)
    orders.deploy(CHANGED, owner="second")
    (first, second) = (name for plural, name in stand_in.objects if plural == "configmaps")
    stand_in.forbidden = frozenset({"DELETE"})
    orders.deploy(CHANGED.replace("+ 1", "+ 2"), owner="third")
    assert ("configmaps", first) in stand_in.objects
    stand_in.forbidden = frozenset()
    orders.deploy(CHANGED.replace("+ 1", "+ 3"), owner="fourth")
    left = {name for plural, name in stand_in.objects if plural == "configmaps"}
    assert len(left) == 2
    assert not left & {first, second}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", ["delete", "create"])
def test_a_death_between_delete_and_create_loses_nothing(orders: Deployments, when: str, call: str) -> None:
    """What the next resource is made of is kept before."""
    orders.resource["spec"]["flinkConfiguration"]["their.own"] = "1"
    with orders.target() as target:
        (job,) = target.running("orders")
        target.cancel(job)
        lost: list[int] = []

        def lose(at: str, number: int) -> None:
            if at == when and orders.stand_in.calls[number].startswith(call) and not lost:
                lost.append(number)
                raise Lost

        orders.stand_in.at = lose
        request = new_id()
        with pytest.raises(DeployError):
            target.start(JOB, Start(), request)
    with orders.target() as target:
        target.start(JOB, Start(), request)
        assert target.running("orders") == (JobRef(f"orders/{request}"),)
    assert orders.resource["spec"]["flinkConfiguration"]["their.own"] == "1"
    assert len(orders.runs) == 1


def test_what_somebody_else_edits_is_not_deleted(orders: Deployments) -> None:
    """Neither is it taken for what the operator writes to the status."""
    with orders.target() as target:
        (job,) = target.running("orders")
        target.cancel(job)

        def touch(when: str, number: int) -> None:
            if when == "before" and len(orders.stand_in.calls) == 2:
                orders.resource["metadata"]["resourceVersion"] = "status"
            elif when == "before":
                orders.resource["metadata"] |= {"generation": 7, "resourceVersion": "edited"}

        orders.stand_in.at = touch
        with pytest.raises(DeployRefused, match="someone else changed FlinkSessionJob orders at the same time"):
            target.start(JOB, Start(), new_id())
    assert orders.stand_in.calls == ["patch flinksessionjobs", "delete flinksessionjobs", "delete flinksessionjobs"]
    assert orders.resource["metadata"]["generation"] == 7


def test_a_manifest_that_is_not_what_runs(application: Deployments) -> None:
    """The engine is told by it."""
    application.settings = {"manifest": APPLICATION.replace("v1_18", "v1_20").replace("flink:1.18", "flink:1.20")}
    with pytest.raises(DeployError, match=r"image is 'flink:1\.18' in the resource but 'flink:1\.20' in the manifest"):
        application.deploy(CHANGED, owner="second")
    assert application.stand_in.calls == []


def test_a_cluster_without_sql_driver(orders: Deployments, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flink 1.x has none: that is said before anything is stopped."""
    session = orders.stand_in.objects["flinkdeployments", "session"]
    monkeypatch.setitem(session, "status", {"clusterInfo": {"flink-version": "1.20.1"}})
    with pytest.raises(
        DeployError, match=r"Flink 1\.20\.1 has no SqlDriver\. Write a manifest with entryClass flinkcompat"
    ):
        orders.deploy(CHANGED, owner="second")
    assert orders.stand_in.calls == []


# --------------------------------------------------------------------------------------------------------------- others
@pytest.mark.parametrize(
    "patch",
    [
        {"flinkConfiguration": {"kubernetes.operator.savepoint.history.max.count": "3"}},
        {"flinkConfiguration": {"job.autoscaler.enabled": "true"}},
        {"job": {"checkpointTriggerNonce": 3}},
    ],
)
def test_what_changes_nothing_of_the_job_makes_no_other_job(orders: Deployments, patch: dict[str, Any]) -> None:
    """Options of the operator, and what its autoscaler writes."""
    with orders.target() as target:
        target._api.patch("FlinkSessionJob", "orders", {"spec": patch})
    orders.deploy(CHANGED, owner="second")
    assert len(orders.runs) == 1


@pytest.mark.parametrize("path", [(), ("jobManager",), ("taskManager",)])
def test_the_kind_of_a_pod_template_makes_no_other_job(path: tuple[str, ...]) -> None:
    """The operator writes it into an application (measured on 1.7.0); another volume is another job."""
    template = {"spec": {"volumes": [{"name": "script", "configMap": {"name": "orders-sql-1"}}]}}

    def digest(given: dict[str, Any]) -> str:
        spec: dict[str, Any] = {"podTemplate": given}
        for part in path:
            spec = {part: spec}
        return FlinkResource({"metadata": {"name": "orders"}, "spec": {"job": {"args": ["1"]}, **spec}}).digest

    assert digest(template) == digest({"apiVersion": "v1", "kind": "Pod", "metadata": {}, **template})
    assert digest(template) != digest({"spec": {"volumes": []}})


@pytest.mark.parametrize(("settings", "same"), [([], True), (["parallelism.default"], False)])
def test_a_parallelism_counts_where_it_was_deployed(settings: list[str], same: bool) -> None:
    """Else it is the autoscaler's, as the number of TaskManagers is."""

    def resource(parallelism: str, replicas: int) -> FlinkResource:
        spec = {
            "job": {},
            "flinkConfiguration": {"parallelism.default": parallelism},
            "taskManager": {"replicas": replicas},
        }
        note = json.dumps({"settings": settings})
        return FlinkResource({"metadata": {"annotations": {"flinkcompat/started": note}}, "spec": spec})

    assert (resource("1", 1).digest == resource("8", 4).digest) is same


def test_an_edit_while_a_job_is_verified(orders: Deployments) -> None:
    """It is told as one, and what was edited is left alone."""
    with orders.target() as target:
        (job,) = target.running("orders")
        assert target.status(job) is not None
        orders.stand_in.stopped = True
        target._api.patch("FlinkSessionJob", "orders", {"spec": {"job": {"parallelism": 3}}})
        with pytest.raises(DeployRefused, match="someone edited FlinkSessionJob orders while"):
            target.status(job)
    assert len(orders.runs) == 1


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({"managedFields": [{"manager": "argocd-controller"}]}, r"belongs to Argo CD.*managedFields"),
        (
            {"managedFields": [{"manager": "kubectl"}, {"manager": "helm-controller"}]},
            r"belongs to Flux.*managedFields",
        ),
        ({"labels": {"argocd.argoproj.io/instance": "shop"}}, r"belongs to Argo CD"),
        (
            {"ownerReferences": [{"controller": True, "kind": "FlinkBlueGreenDeployment", "name": "shop"}]},
            "is created and changed by FlinkBlueGreenDeployment shop",
        ),
    ],
)
def test_what_others_write_is_left_alone(metadata: dict[str, Any], says: str) -> None:
    """By whatever tells that they do."""
    document = {"kind": "FlinkDeployment", "metadata": {"name": "orders", **metadata}, "spec": {"job": {}}}
    with pytest.raises(DeployRefused, match=says):
        FlinkResource(document).require_ours()


def test_the_client_logs_no_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    """At DEBUG it would: the one of a Secret, too."""
    logger = logging.getLogger("kubernetes.client.rest")
    monkeypatch.setattr(logger, "level", logging.DEBUG)
    with pytest.raises(DeployError):
        connect(Access(lambda _: "", {"kubernetes_conn_id": "x"}, "the test"))
    assert logger.level == logging.INFO


def test_the_token_is_the_one_of_the_time() -> None:
    """A pod's token is renewed while a long verification goes on."""
    settings = client.Configuration(host="http://127.0.0.1:1")
    tokens = iter(["first", "second", "third"])

    def refresh(found: client.Configuration) -> None:
        found.api_key["BearerToken"] = f"Bearer {next(tokens)}"

    settings.refresh_api_key_hook = refresh
    with closing(KubernetesApi(client.ApiClient(settings), "default")) as api:
        endpoint = api.service("session-rest", "rest")
    assert isinstance(endpoint.auth, httpx.Auth)
    assert endpoint.secrets == {"first"}
    request = httpx.Request("GET", "http://127.0.0.1:1")
    sent = [next(endpoint.auth.auth_flow(request)).headers["Authorization"] for _ in range(2)]
    assert sent == ["Bearer second", "Bearer third"]


def test_the_name_of_a_file_tells_nothing_of_its_secret(stand_in: KubernetesStandIn, tmp_path: Path) -> None:
    """By the hash of a script anybody could try which password stands in it."""
    stand_in.flink.files = stand_in.objects
    names = set()
    for each in ("one", "two"):
        stand_in.objects.pop(("flinkdeployments", "orders"), None)
        orders = Deployments(stand_in, tmp_path / each, {"manifest": MOUNTED})
        orders.deploy(WITH_SECRET)
        names.add(json.loads(orders.resource["metadata"]["annotations"]["flinkcompat/files"])["names"][0])
    assert len(names) == 2


def test_a_copy_of_a_resource_is_not_the_job_of_its_start(orders: Deployments) -> None:
    """Somebody who copies a resource copies its labels, too."""
    head = orders.ledger.head()
    assert head is not None
    copied = json.loads(json.dumps(orders.resource))
    copied["metadata"]["name"] = "a-copy-of-orders"
    orders.stand_in.objects = {
        ("flinksessionjobs", "a-copy-of-orders"): copied,
        **orders.stand_in.objects,
    }
    with orders.target() as target:
        found = target.poll(Operation(Verb.START, str(head.request_id)))
    assert found.job == head.job_id


def test_a_resource_that_never_rests_is_started_as_it_is(
    orders: Deployments, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What it began from, its proof tells."""
    monkeypatch.setattr("airflow_flinkcompat.deploy.targets.kubernetes.target._SETTLE_SECONDS", 0.3)
    with orders.target() as target:
        (job,) = target.running("orders")
        target.cancel(job)
        target.quiet_seconds = dict.fromkeys(target.quiet_seconds, 60.0)
        target.start(JOB, Start(), new_id())
        assert len(target.running("orders")) == 1
    assert "FlinkSessionJob orders keeps changing, so it is started as it is" in caplog.text
