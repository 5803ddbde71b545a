"""Plans for a resource that Argo CD writes, carried out by it on the small API server and its operator."""

from __future__ import annotations

import base64
import copy
import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from airflow_flinkcompat.deploy import DeployError, DeployRefused, Options, TargetError
from airflow_flinkcompat.deploy.flink.polling import poll
from airflow_flinkcompat.deploy.flink.statements import ScriptRefused
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, DeployingEntry, PlannedEntry
from airflow_flinkcompat.deploy.ledger.ledger import LedgerConflict
from airflow_flinkcompat.deploy.redeploy.planning import (
    Planned,
    carried_out,
    pending_plans,
    plan_change,
    record_carried_out,
)
from airflow_flinkcompat.deploy.target import JobRef
from airflow_flinkcompat.deploy.targets.kubernetes.api import PLURALS
from airflow_flinkcompat.model import JobSpec, StartMode
from airflow_flinkcompat.testing.fake_target import FakeTarget
from airflow_flinkcompat.testing.target_contract import CHANGED, MISFIT, SCRIPT, SETTINGS
from tests.support.deploy.targets.kubernetes_deployments import APPLICATION, Deployments
from tests.support.deploy.targets.kubernetes_stand_in import PLACEHOLDER, SECRET, FlinkJob, KubernetesStandIn

MOUNTED = APPLICATION.replace("{script}", "{script_uri}").replace("--script", "--scriptUri")
WITH_SECRET = CHANGED.replace("'connector' = 'blackhole'", f"'connector' = 'blackhole', 'password' = '{PLACEHOLDER}'")


@pytest.fixture
def orders(stand_in: KubernetesStandIn, tmp_path: Path) -> Deployments:
    """A session job that Argo CD has taken over."""
    return owned(Deployments(stand_in, tmp_path, {"session_cluster": "session"}))


def owned(found: Deployments) -> Deployments:
    found.deploy(SCRIPT)
    found.resource["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = "shop:flink.apache.org/orders"
    found.stand_in.calls.clear()
    return found


def plan(orders: Deployments, script: str, mode: str = "auto-first", **settings: str) -> Planned:
    head = orders.ledger.head()
    job = JobSpec(script, {**SETTINGS, **settings}, engine="flink", source="orders.sql")
    checked = head.sha256 if head else None
    with orders.target() as target:
        return plan_change(target, orders.ledger, job, start_mode=mode, checked_old_sha256=checked, owner="run")


def merge(stand_in: KubernetesStandIn, documents: str) -> None:
    """As Argo CD applies what was merged: an object that is there keeps whatever its repository does not name."""
    for each in yaml.safe_load_all(documents):
        name, owner = each["metadata"]["name"], {"fieldManager": "argocd-controller"}
        if each["kind"] in PLURALS:
            place = f"{stand_in.url}/apis/flink.apache.org/v1beta1/namespaces/default/{PLURALS[each['kind']]}"
            there = (PLURALS[each["kind"]], name) in stand_in.objects
        else:
            place = f"{stand_in.url}/api/v1/namespaces/default/{each['kind'].lower()}s"
            there = False
        headers = {"Content-Type": "application/merge-patch+json" if there else "application/json"}
        verb, url = ("PATCH", f"{place}/{name}") if there else ("POST", place)
        httpx.request(verb, url, params=owner, headers=headers, content=json.dumps(each)).raise_for_status()


def recorded(orders: Deployments) -> DeployedEntry | None:
    with orders.target() as target:
        return record_carried_out(
            target, orders.ledger, owner="gate", options=Options(settle_seconds=0.0, start_timeout=3.0)
        )


def test_a_redeploy_of_what_gitops_owns_is_refused_with_both_ways_out(orders: Deployments) -> None:
    with pytest.raises(
        DeployRefused, match=r"Remove the resource from Argo CD .* Or keep it in .* \(plan_only=True of"
    ):
        orders.deploy(CHANGED, owner="second")
    assert orders.stand_in.calls == []


def test_a_plan_touches_nothing(orders: Deployments) -> None:
    before = json.dumps(orders.resource, sort_keys=True)
    planned = plan(orders, CHANGED)
    assert orders.stand_in.calls == []
    assert json.dumps(orders.resource, sort_keys=True) == before
    assert [job.restored for job in orders.runs] == [None]
    assert [each.kind for each in orders.ledger.entries()][-1] == "planned"
    assert orders.ledger.entries()[-1] == planned.entry
    assert planned.entry.message == "planned for FlinkSessionJob orders of namespace default; nothing was changed"


def test_a_plan_is_what_the_repository_should_hold_and_nothing_else(orders: Deployments) -> None:
    """Neither status nor what others set; whoever reads it sees the script as such."""
    orders.resource["spec"]["flinkConfiguration"]["kubernetes.operator.theirs"] = "1"
    planned = plan(orders, CHANGED)
    (document,) = yaml.safe_load_all(planned.plan.text)
    request = planned.entry.start.request_id
    assert document["metadata"]["name"] == "orders"
    assert document["metadata"]["namespace"] == "default"
    assert document["metadata"]["labels"] == {"flinkcompat/request": request, "flinkcompat/deployment": "orders"}
    assert set(document["metadata"]["annotations"]) == {"flinkcompat/started"}
    assert document["spec"] == {
        "flinkConfiguration": {
            **SETTINGS,
            "pipeline.name": "orders",
            "kubernetes.operator.job.upgrade.last-state-fallback.enabled": "false",
            "kubernetes.operator.savepoint.cleanup.enabled": "false",
            "kubernetes.operator.savepoint.dispose-on-delete": "false",
        },
        "job": {
            "entryClass": "org.apache.flink.table.runtime.application.SqlDriver",
            "args": ["--script", CHANGED],
            "state": "running",
            "upgradeMode": "savepoint",
            "allowNonRestoredState": False,
            "parallelism": 1,
        },
    }
    assert "      INSERT INTO counts SELECT n, COUNT(*) + 1 FROM numbers GROUP BY n;\n" in planned.plan.documents
    patch = planned.plan.patch
    assert patch is not None
    assert patch["spec"] == {"job": {"args": ["--script", CHANGED]}}
    assert [line for line in planned.plan.text.splitlines() if line.startswith("#")] == [
        "# Plan of flinkcompat for FlinkSessionJob orders of namespace default. Merge it into the manifests "
        "of the repository.",
        "# After the merge, the operator stops the job with a savepoint and starts the script from it, in one step. "
        "Nothing checks the savepoint before the start, and nothing rolls back to the former script. If the job does "
        "not run, revert the merge, and compare Flink's restore error with the savepoint.",
        "# The last-state fallback is off. If the savepoint fails, the job keeps running, and the operator tries "
        "again.",
        "# The next run of the deployment records the change when the job runs and Flink reports that it was "
        "restored from the savepoint that the operator recorded (latest.restored).",
    ]


def test_what_was_merged_is_recognised_and_proved(orders: Deployments) -> None:
    """By the request of the plan, from the savepoint of the operator's own upgrade; a redeploy then knows it."""
    planned = plan(orders, CHANGED)
    assert recorded(orders) is None, "nobody has merged it yet"
    merge(orders.stand_in, planned.plan.documents)
    with orders.target() as target:
        status = carried_out(target, orders.ledger, planned.entry)
    assert status is not None
    assert status.tasks_running
    entry = recorded(orders)
    assert entry is not None
    (job,) = orders.runs
    assert (job.restored, entry.start.savepoint) == ("file:/savepoints/savepoint-1",) * 2
    assert entry.job_id == f"orders/{planned.entry.start.request_id}"
    assert entry.evidence[0] == "restored from file:/savepoints/savepoint-1"
    assert entry.message == (
        f"RUNNING, verified; the change that entry {planned.entry.number} planned was carried out outside this "
        "deployment"
    )
    head = orders.ledger.head()
    assert head is not None
    assert (head, head.job.script) == (entry, CHANGED)
    assert recorded(orders) is None
    assert pending_plans(orders.ledger.entries()) == ()
    again = plan(orders, SCRIPT)
    merge(orders.stand_in, again.plan.documents)
    assert recorded(orders) is not None
    assert [job.restored for job in orders.runs] == ["file:/savepoints/savepoint-2"]


def test_the_patch_says_the_same_as_the_documents(orders: Deployments) -> None:
    planned = plan(orders, CHANGED)
    assert planned.plan.patch is not None
    document = {"kind": "FlinkSessionJob", **planned.plan.patch}
    document["metadata"] = {**document["metadata"], "name": "orders"}
    merge(orders.stand_in, yaml.safe_dump(document))
    entry = recorded(orders)
    assert entry is not None
    assert entry.job_id == f"orders/{planned.entry.start.request_id}"


def test_what_was_copied_without_its_annotations_is_known_by_script_and_settings(orders: Deployments) -> None:
    planned = plan(orders, CHANGED)
    (document,) = yaml.safe_load_all(planned.plan.documents)
    document["metadata"] = {"name": "orders"}
    document["spec"]["job"]["parallelism"] = 2
    merge(orders.stand_in, yaml.safe_dump(document))
    entry = recorded(orders)
    assert entry is not None
    assert entry.job_id != f"orders/{planned.entry.start.request_id}"
    with orders.target() as target:
        assert target.running("orders") == (entry.job_id,)


def test_another_script_than_was_planned_is_not_recorded(orders: Deployments) -> None:
    planned = plan(orders, CHANGED)
    merge(orders.stand_in, planned.plan.documents.replace("COUNT(*) + 1", "COUNT(*) + 2"))
    assert recorded(orders) is None
    with pytest.raises(DeployRefused, match="someone else deployed") as refused:
        plan(orders, CHANGED)
    assert "+INSERT INTO counts SELECT n, COUNT(*) + 2 FROM numbers GROUP BY n;" in str(refused.value)


def test_a_redeploy_before_it_is_recorded_says_so(orders: Deployments) -> None:
    planned = plan(orders, CHANGED)
    merge(orders.stand_in, planned.plan.documents)
    words = rf"runs the version that entry {planned.entry.number} of the ledger of orders planned, but the ledger does"
    with pytest.raises(DeployRefused, match=words):
        orders.deploy(MISFIT, owner="second")
    with pytest.raises(DeployRefused, match=words):
        plan(orders, MISFIT)


def test_the_same_version_is_the_same_plan(orders: Deployments) -> None:
    """So a retry makes no second pull request of it."""
    first, second = plan(orders, CHANGED), plan(orders, CHANGED)
    assert (second.entry, second.plan) == (first.entry, first.plan)
    third = plan(orders, MISFIT)
    assert third.entry.number == first.entry.number + 1
    merge(orders.stand_in, first.plan.documents)
    entry = recorded(orders)
    assert entry is not None
    assert entry.job.script == CHANGED, "the older one was merged"


def test_a_stateless_plan_says_what_it_leaves_behind(orders: Deployments) -> None:
    planned = plan(orders, MISFIT, "stateless")
    (document,) = yaml.safe_load_all(planned.plan.documents)
    assert document["spec"]["job"]["upgradeMode"] == "stateless"
    assert any("cancels the job WITHOUT a savepoint" in note for note in planned.plan.notes)
    assert any("upgradeMode: stateless stays in the repository" in note for note in planned.plan.notes)
    merge(orders.stand_in, planned.plan.documents)
    with orders.target() as target:  # operator 1.10 cancels in the background, and goes on at its next look
        target.status(planned.entry.job_id or target.running("orders")[0])
    entry = recorded(orders)
    assert entry is not None
    assert entry.evidence[0] == "started from an empty state"
    (job,) = orders.runs
    assert job.restored is None
    (document,) = yaml.safe_load_all(plan(orders, SCRIPT, "savepoint").plan.documents)
    assert document["spec"]["job"]["upgradeMode"] == "savepoint"


def test_a_merged_plan_whose_state_does_not_fit_is_a_failure(orders: Deployments) -> None:
    """Nobody brings the former script back: it is said how to, and the version is not taken for planned any more."""
    orders.stand_in.flink.misfits.add("orders")
    planned = plan(orders, MISFIT)
    merge(orders.stand_in, planned.plan.documents)
    with pytest.raises(
        DeployRefused, match=r"Failed to rollback to checkpoint.*Revert the merge \(the script of entry"
    ):
        recorded(orders)
    assert [each.kind for each in orders.ledger.entries()][-1] == "failed"
    assert pending_plans(orders.ledger.entries()) == ()
    head = orders.ledger.head()
    assert head is not None
    assert head.job.script == SCRIPT


def test_a_merge_that_ended_the_job_with_a_checkpoint_is_not_taken_for_a_success(orders: Deployments) -> None:
    planned = plan(orders, CHANGED)
    merge(orders.stand_in, planned.plan.documents)
    with orders.target() as target:
        target.running("orders")
    (job,) = orders.runs
    said = orders.resource["status"]["jobStatus"]
    job.restored = said["savepointInfo"]["lastSavepoint"]["location"] = "file:/checkpoints/chk-20"
    said.pop("upgradeSavepointPath", None)
    with pytest.raises(
        DeployRefused, match="from the former job's checkpoint file:/checkpoints/chk-20 instead of a savepoint"
    ):
        recorded(orders)


def refused(orders: Deployments, words: str) -> None:
    """The merge is refused with these words, and noted as a failure of its version."""
    with pytest.raises(DeployRefused, match=words):
        recorded(orders)
    assert [each.kind for each in orders.ledger.entries()][-1] == "failed"


def test_a_resource_made_anew_from_an_old_savepoint_is_not_taken_for_a_success(orders: Deployments) -> None:
    """The operator records initialSavepointPath as the savepoint that it goes on from."""
    planned = plan(orders, CHANGED)
    orders.stand_in.flink.savepoints.append("file:/savepoints/of-last-year")
    (document,) = yaml.safe_load_all(planned.plan.documents)
    document["spec"]["deploymentName"] = "session"
    document["spec"]["job"]["initialSavepointPath"] = "file:/savepoints/of-last-year"
    orders.resource["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    orders.stand_in.reconcile()
    merge(orders.stand_in, yaml.safe_dump(document))
    with orders.target() as target:
        target.running("orders")
    (job,) = orders.runs
    assert job.restored == "file:/savepoints/of-last-year"
    refused(orders, "reports no savepoint from the stop before job .*, or only a savepoint that the plan named")


@pytest.mark.parametrize("stand_in", ["1.10"], indirect=True)
def test_a_redeploy_from_an_old_savepoint_is_not_taken_for_a_success(orders: Deployments) -> None:
    """By ``savepointRedeployNonce``, which came with 1.8."""
    planned = plan(orders, CHANGED)
    orders.stand_in.flink.savepoints.append("file:/savepoints/of-last-year")
    (document,) = yaml.safe_load_all(planned.plan.documents)
    document["spec"]["job"] |= {"savepointRedeployNonce": 1, "initialSavepointPath": "file:/savepoints/of-last-year"}
    merge(orders.stand_in, yaml.safe_dump(document))
    refused(orders, "reports no savepoint from the stop before job .*, or only a savepoint that the plan named")
    (job,) = orders.runs
    assert job.restored == "file:/savepoints/of-last-year"


def test_the_savepoint_of_an_earlier_upgrade_is_not_taken_for_that_of_the_merge(orders: Deployments) -> None:
    """A job that failed leaves none: the operator goes on from what it recorded before."""
    first = plan(orders, CHANGED)
    merge(orders.stand_in, first.plan.documents)
    assert recorded(orders) is not None
    planned = plan(orders, SCRIPT)
    assert planned.entry.savepoint_before == "file:/savepoints/savepoint-1"
    (job,) = orders.runs
    job.state = "FAILED"
    orders.stand_in.reconcile()
    merge(orders.stand_in, planned.plan.documents)
    refused(
        orders,
        "took no savepoint of the job before job .* reports file:/savepoints/savepoint-1, which the former job "
        "started from",
    )
    (job,) = orders.runs
    assert job.restored == "file:/savepoints/savepoint-1"


def test_so_is_the_one_that_stood_there_when_it_was_planned(orders: Deployments) -> None:
    """Of an upgrade that the ledger does not know, as somebody suspended the resource and let it go on."""
    orders.resource["status"]["jobStatus"]["savepointInfo"] = {"lastSavepoint": {"location": "file:/savepoints/theirs"}}
    orders.stand_in.flink.savepoints.append("file:/savepoints/theirs")
    planned = plan(orders, CHANGED)
    (job,) = orders.runs
    job.state = "FAILED"
    orders.stand_in.reconcile()
    merge(orders.stand_in, planned.plan.documents)
    refused(orders, "reports file:/savepoints/theirs, which existed when this was planned")


@pytest.mark.parametrize(("merged", "other"), [("stateless", "savepoint"), ("savepoint", "stateless")])
def test_of_two_plans_of_one_script_the_one_with_the_request_was_carried_out(
    orders: Deployments, merged: str, other: str
) -> None:
    planned = plan(orders, CHANGED, merged)
    plan(orders, CHANGED, other)
    merge(orders.stand_in, planned.plan.documents)
    with orders.target() as target:  # operator 1.10 cancels in the background, and goes on at its next look
        target.running("orders")
        assert carried_out(target, orders.ledger, planned.entry) is not None
    entry = recorded(orders)
    assert entry is not None
    assert (entry.start.request_id, entry.start.start_mode) == (planned.entry.start.request_id, merged)


def test_which_of_two_plans_of_one_script_it_is_cannot_be_told_without_a_request(orders: Deployments) -> None:
    planned = plan(orders, CHANGED, "stateless")
    plan(orders, CHANGED, "savepoint")
    (document,) = yaml.safe_load_all(planned.plan.documents)
    document["metadata"] = {"name": "orders"}
    document["spec"]["job"]["parallelism"] = 2
    merge(orders.stand_in, yaml.safe_dump(document))
    with orders.target() as target:
        target.running("orders")
    assert recorded(orders) is None
    with pytest.raises(
        DeployRefused, match=r"someone else deployed\. .*flinkcompat ledger adopt orders --job-id orders/"
    ):
        plan(orders, MISFIT)


def test_what_flink_says_of_a_secret_is_masked(stand_in: KubernetesStandIn, tmp_path: Path) -> None:
    stand_in.flink.files = stand_in.objects
    orders = owned(Deployments(stand_in, tmp_path, {"manifest": MOUNTED}))
    planned = plan(orders, WITH_SECRET)
    stand_in.flink.refuses[WITH_SECRET] = f"could not connect with {SECRET} to the shop"
    merge(stand_in, f"{_kept(_secret_of(planned))}---\n{planned.plan.documents}")
    said: list[str] = []
    with (
        orders.target() as target,
        pytest.raises(DeployRefused, match=r"could not connect with .* to the shop") as error,
    ):
        record_carried_out(
            target, orders.ledger, owner="gate", options=Options(settle_seconds=0.0, start_timeout=3.0), log=said.append
        )
    failed = orders.ledger.entries()[-1]
    assert (failed.kind, "could not connect with" in failed.message) == ("failed", True)
    with orders.target() as target:
        status = carried_out(target, orders.ledger, planned.entry)
    assert SECRET not in f"{error.value}{orders.ledger.entries()}{said}{status}"


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"image": "flink:1.17"}, "image is 'flink:1.17' in the resource but 'flink:1.18' in the manifest"),
        ({"flinkVersion": "v1_17"}, "flinkVersion is 'v1_17' in the resource but 'v1_18' in the manifest"),
        (
            {"job": {"entryClass": "com.example.Other"}},
            "entryClass is 'com.example.Other' in the resource but 'com.example.SqlRu",
        ),
        (
            {"job": {"allowNonRestoredState": True}},
            "spec.job.allowNonRestoredState is true, so state may have been skipped",
        ),
    ],
)
def test_what_came_with_the_merge_beside_the_plan_is_refused(
    stand_in: KubernetesStandIn, tmp_path: Path, edit: dict[str, Any], words: str
) -> None:
    orders = owned(Deployments(stand_in, tmp_path, {"manifest": APPLICATION}))
    (document,) = yaml.safe_load_all(plan(orders, CHANGED).plan.documents)
    spec = document["spec"]
    document["spec"] = {**spec, **edit, "job": {**spec["job"], **edit.get("job", {})}}
    merge(stand_in, yaml.safe_dump(document))
    with orders.target() as target:
        target.running("orders")
    refused(orders, f"was not written as planned: {words}")


def in_place(orders: Deployments) -> DeployedEntry:
    """A job from a savepoint, by a plan."""
    merged_job(orders)
    entry = recorded(orders)
    assert entry is not None
    return entry


def test_state_that_may_be_left_aside_proves_nothing(orders: Deployments) -> None:
    """Of a redeploy, too: whoever edits the resource meanwhile changes how it starts."""
    entry = in_place(orders)
    with orders.target() as target:
        assert target.restored_from(entry.start.job_ref).snapshot == entry.start.savepoint
        orders.resource["spec"]["job"]["allowNonRestoredState"] = True
        with pytest.raises(TargetError, match=r"FlinkSessionJob orders: spec\.job\.allowNonRestoredState is true"):
            target.restored_from(entry.start.job_ref)


def test_a_plan_for_another_version_of_the_engine_is_refused(orders: Deployments) -> None:
    head = orders.ledger.head()
    assert head is not None
    job = JobSpec(CHANGED, SETTINGS, engine="flink", engine_version="2.3", source="orders.sql")
    with orders.target() as target:
        planned = plan_change(target, orders.ledger, job, checked_old_sha256=head.sha256, owner="run")
    merge(orders.stand_in, planned.plan.documents)
    session = copy.deepcopy(orders.stand_in.objects["flinkdeployments", "session"])
    session["status"]["clusterInfo"]["flink-version"] = "2.4.0"
    orders.stand_in.objects["flinkdeployments", "session"] = session
    refused(orders, r"the change was checked for flink 2\.3, but the target is flink 2\.4\.0")


def merged_job(orders: Deployments, mode: str = "savepoint") -> FlinkJob:
    """The job of a plan that was merged an hour ago."""
    planned = plan(orders, CHANGED, mode)
    merge(orders.stand_in, planned.plan.documents)
    with orders.target() as target:
        # Operator 1.10 cancels in the background, and goes on at its next look.
        poll(lambda: target.running("orders") and orders.runs, lambda runs: not runs, timeout=3.0)
    (job,) = orders.runs
    return job


def test_a_job_that_failed_after_its_settle_time_was_carried_out_right(orders: Deployments) -> None:
    job, now = merged_job(orders), time.time()
    job.state, job.failure, job.failed_at = "RESTARTING", "java.lang.Exception: TaskManager lost", now + 3600
    job.checkpoints = {118: now + 3500, 119: now + 3550}
    entry = recorded(orders)
    assert entry is not None
    assert (entry.start.savepoint, entry.start.job_id) == ("file:/savepoints/savepoint-1", orders.ledger.head().job_id)  # type: ignore[union-attr]
    assert any(line.startswith("after its settle time, the job failed 1 time, first at ") for line in entry.evidence)


def test_an_empty_start_is_proved_although_it_went_on_from_its_own_checkpoint(orders: Deployments) -> None:
    job, now = merged_job(orders, "stateless"), time.time()
    job.failure, job.failed_at = "java.lang.Exception: TaskManager lost", now + 3600
    job.restored = f"file:/checkpoints/{job.id}/chk-119"
    job.checkpoints = {118: now + 3500, 119: now + 3550, 120: now + 3610}
    entry = recorded(orders)
    assert entry is not None
    assert any("restored from its own checkpoint" in line for line in entry.evidence)


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        ({118: 3500, 120: 3610}, "its history does not prove that it started from file:/savepoints/savepoint-1"),
        (
            {900: 9000, 901: 9010},
            "the job's start time is unknown, and Flink does not show the checkpoints before the first failure",
        ),
    ],
)
def test_what_cannot_be_told_any_more_is_left_to_a_person(
    orders: Deployments, shown: dict[int, float], words: str
) -> None:
    """It is neither recorded nor noted as failed."""
    job, now = merged_job(orders), time.time()
    job.failure, job.failed_at = "java.lang.Exception: TaskManager lost", now + 3600
    job.restored = f"file:/checkpoints/{job.id}/chk-118"
    job.checkpoints = {number: now + at for number, at in shown.items()}
    with pytest.raises(DeployError, match=rf"{words}.*flinkcompat ledger adopt .*Otherwise revert the merge") as error:
        recorded(orders)
    assert not isinstance(error.value, DeployRefused)
    assert [each.kind for each in orders.ledger.entries()][-1] == "planned"
    assert len(pending_plans(orders.ledger.entries())) == 1


@pytest.mark.parametrize("moment", ["runs the version that entry", "watching the job"])
def test_a_plan_that_is_overtaken_while_it_is_verified_is_not_noted_as_failed(orders: Deployments, moment: str) -> None:
    merged_job(orders)
    other = plan_of_another(orders)

    def merge_other(line: str) -> None:
        if moment in line:
            merge(orders.stand_in, other)

    options = Options(settle_seconds=0.5, start_timeout=3.0)
    with orders.target() as target, pytest.raises(DeployError, match="was replaced or removed during its verif"):
        record_carried_out(target, orders.ledger, owner="gate", options=options, log=merge_other)
    assert "failed" not in [each.kind for each in orders.ledger.entries()]


def plan_of_another(orders: Deployments) -> str:
    """The resource of what runs, with another script."""
    spec = copy.deepcopy(orders.resource["spec"])
    spec["job"]["args"] = ["--script", CHANGED.replace("COUNT(*) + 1", "COUNT(*) + 2")]
    return yaml.safe_dump({"kind": "FlinkSessionJob", "metadata": {"name": "orders"}, "spec": spec})


def test_a_failure_is_not_noted_after_another_deployment(orders: Deployments, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.stand_in.flink.misfits.add("orders")
    planned = plan(orders, MISFIT)
    merge(orders.stand_in, planned.plan.documents)
    with orders.target() as target:
        edits = target.edits

        def meanwhile(job: JobRef) -> str | None:
            orders.ledger.append(DeployingEntry(job=JobSpec(CHANGED, SETTINGS), owner="somebody"))
            return edits(job)

        monkeypatch.setattr(target, "edits", meanwhile)
        with pytest.raises(LedgerConflict):
            record_carried_out(
                target, orders.ledger, owner="gate", options=Options(settle_seconds=0.0, start_timeout=3.0)
            )
    assert "failed" not in [each.kind for each in orders.ledger.entries()]


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ("flinkConfiguration: {s3.secret-key: hunter2hunter2}", r"spec\.flinkConfiguration\.s3\.secret-key"),
        (
            "podTemplate: {spec: {containers: [{name: main, env: [{name: DB_PASSWORD, value: hunter2hunter2}]}]}}",
            r"spec\.podTemplate\.spec\.containers\[0\]\.env\[0\]\.DB_PASSWORD",
        ),
    ],
)
def test_a_secret_of_the_manifest_is_in_no_plan(
    stand_in: KubernetesStandIn, tmp_path: Path, more: str, place: str
) -> None:
    manifest = APPLICATION.replace("  serviceAccount: flink", f"  serviceAccount: flink\n  {more}")
    orders = Deployments(stand_in, tmp_path, {"manifest": manifest})
    words = rf"everybody could read {place} in the plan\. Remove this secret from the manifest of the connection"
    with pytest.raises(DeployRefused, match=words) as error:
        plan(orders, SCRIPT)
    assert "hunter2" not in str(error.value)
    assert orders.ledger.entries() == ()


def test_what_names_a_secret_is_none(stand_in: KubernetesStandIn, tmp_path: Path) -> None:
    reference = "env: [{name: DB_PASSWORD, valueFrom: {secretKeyRef: {name: shop, key: password}}}]"
    more = f"podTemplate: {{spec: {{containers: [{{name: main, {reference}}}]}}}}"
    manifest = APPLICATION.replace("  serviceAccount: flink", f"  serviceAccount: flink\n  {more}")
    orders = Deployments(stand_in, tmp_path, {"manifest": manifest})
    assert "secretKeyRef" in plan(orders, SCRIPT).plan.text


def test_an_operator_that_is_not_there_leaves_the_plan_pending(orders: Deployments) -> None:
    orders.stand_in.stopped = True
    planned = plan(orders, CHANGED)
    merge(orders.stand_in, planned.plan.documents)
    with pytest.raises(DeployError, match=r"does not run after 3 s, so the plan is not verified yet"):
        recorded(orders)
    assert pending_plans(orders.ledger.entries()) == (planned.entry,)


def test_a_setting_that_is_gone_is_named(orders: Deployments) -> None:
    head = orders.ledger.head()
    assert head is not None
    job = JobSpec(CHANGED, {"parallelism.default": "1"}, engine="flink", source="orders.sql")
    with orders.target() as target:
        planned = plan_change(target, orders.ledger, job, checked_old_sha256=head.sha256, owner="run")
    assert "Remove from spec.flinkConfiguration: execution.checkpointing.interval." in planned.plan.notes
    assert planned.plan.patch is not None
    assert planned.plan.patch["spec"]["flinkConfiguration"] == {"execution.checkpointing.interval": None}


def test_the_first_deployment_is_a_whole_resource(stand_in: KubernetesStandIn, tmp_path: Path) -> None:
    orders = Deployments(stand_in, tmp_path, {"manifest": APPLICATION})
    planned = plan(orders, SCRIPT)
    assert ("flinkdeployments", "orders") not in stand_in.objects
    assert planned.plan.patch is None
    merge(stand_in, planned.plan.documents)
    entry = recorded(orders)
    assert entry is not None
    assert entry.start.start_mode == StartMode.STATELESS
    assert len(orders.runs) == 1


def test_a_script_that_travels_as_a_file_is_a_document_of_its_own(stand_in: KubernetesStandIn, tmp_path: Path) -> None:
    stand_in.flink.files = stand_in.objects
    orders = owned(Deployments(stand_in, tmp_path, {"manifest": MOUNTED}))
    planned = plan(orders, CHANGED)
    file, resource = yaml.safe_load_all(planned.plan.documents)
    assert (file["kind"], file["data"]["script.sql"]) == ("ConfigMap", CHANGED)
    (volume,) = resource["spec"]["podTemplate"]["spec"]["volumes"]
    assert volume["configMap"]["name"] == file["metadata"]["name"]
    merge(stand_in, planned.plan.documents)
    entry = recorded(orders)
    assert entry is not None
    assert [job.restored for job in orders.runs] == ["file:/savepoints/savepoint-1"]


def test_a_secret_is_named_and_never_in_a_plan(stand_in: KubernetesStandIn, tmp_path: Path) -> None:
    stand_in.flink.files = stand_in.objects
    orders = owned(Deployments(stand_in, tmp_path, {"manifest": MOUNTED}))
    planned = plan(orders, WITH_SECRET)
    name = _secret_of(planned)
    assert SECRET not in f"{planned}{orders.ledger.entries()}"
    assert (
        f"Before the merge, create the Secret {name} in namespace default. Its key script.sql must contain the script "
        f"with {PLACEHOLDER} filled in (for example by an ExternalSecret or a "
        "SealedSecret). No document here contains this script."
    ) in planned.plan.notes
    merge(stand_in, f"{_kept(name)}---\n{planned.plan.documents}")
    entry = recorded(orders)
    assert entry is not None
    assert entry.job_id == f"orders/{planned.entry.start.request_id}"


def _secret_of(planned: Planned) -> str:
    """The Secret that the resource of a plan mounts."""
    (resource,) = yaml.safe_load_all(planned.plan.documents)
    (volume,) = resource["spec"]["podTemplate"]["spec"]["volumes"]
    return str(volume["secret"]["secretName"])


def _kept(name: str) -> str:
    """The Secret as whoever merges the plan makes it."""
    script = base64.b64encode(WITH_SECRET.replace(PLACEHOLDER, SECRET).encode()).decode()
    return yaml.safe_dump({"kind": "Secret", "metadata": {"name": name}, "data": {"script.sql": script}})


def test_a_secret_among_statements_is_refused(stand_in: KubernetesStandIn, tmp_path: Path) -> None:
    manifest = MOUNTED.replace("{script_uri}", "{statements_uri}")
    orders = Deployments(stand_in, tmp_path, {"manifest": manifest})
    with pytest.raises(ScriptRefused, match=r"Pass the script with \{script_uri\}, from a Secret that you create"):
        plan(orders, WITH_SECRET)


def test_what_the_api_server_would_not_take_is_no_plan(orders: Deployments) -> None:
    orders.stand_in.refuses = 'admission webhook "policy.example.com" denied the request: no changes on Fridays'
    with pytest.raises(DeployError, match="no changes on Fridays"):
        plan(orders, CHANGED)
    assert [each for each in orders.ledger.entries() if isinstance(each, PlannedEntry)] == []


def test_what_another_resource_makes_cannot_be_planned(orders: Deployments) -> None:
    orders.resource["metadata"]["ownerReferences"] = [
        {"kind": "FlinkBlueGreenDeployment", "name": "orders", "controller": True}
    ]
    with pytest.raises(DeployRefused, match="is created and changed by FlinkBlueGreenDeployment orders"):
        plan(orders, CHANGED)


def test_a_job_that_ended_cannot_be_gone_on_from(orders: Deployments) -> None:
    (job,) = orders.runs
    job.state = "FAILED"
    with pytest.raises(DeployRefused, match="does not run, so the platform cannot take a savepoint of the job"):
        plan(orders, CHANGED)
    assert plan(orders, CHANGED, "stateless").entry.start.start_mode == StartMode.STATELESS


def test_a_redeploy_that_is_not_at_its_end_comes_first(orders: Deployments) -> None:
    orders.ledger.append(DeployingEntry(job=JobSpec(CHANGED, SETTINGS), owner="somebody"))
    with pytest.raises(DeployRefused, match="the redeploy of somebody is unfinished"):
        plan(orders, CHANGED)


def test_a_target_that_no_repository_writes_plans_nothing(orders: Deployments) -> None:
    job = JobSpec(SCRIPT, SETTINGS, engine="flink", source="orders.sql")
    with pytest.raises(DeployRefused, match="plan_only does not apply to the fake target"):
        plan_change(FakeTarget(), orders.ledger, job, checked_old_sha256=None, owner="run")
