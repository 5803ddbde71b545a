"""The Flink Kubernetes Operator as a target, against a small API server that validates by the operator's own CRDs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy import DeployError, DeployRefused, Options, RolledBack
from airflow_flinkcompat.deploy.flink.statements import ScriptRefused
from airflow_flinkcompat.deploy.redeploy.adopt import adopt
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.target import JobRef, Start, Target
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import Manifest
from airflow_flinkcompat.deploy.targets.kubernetes.target import KubernetesTarget
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.testing.target_contract import CHANGED, MISFIT, SCRIPT, Connect, TargetContract
from tests.support.deploy.targets.kubernetes_deployments import (
    APPLICATION,
    WITH_SECRET,
    Deployments,
    connected,
    operator,
)
from tests.support.deploy.targets.kubernetes_stand_in import SECRET, KubernetesStandIn, Lost, serving
from tests.support.nightly import mostly_nightly


class KubernetesContract(TargetContract):
    """The contract; a subclass says which kind of resource."""

    settings: ClassVar[dict[str, str]]

    @pytest.fixture(params=mostly_nightly(["1.10", "1.7"]))
    def stand_in(self, request: pytest.FixtureRequest) -> Iterator[KubernetesStandIn]:
        with operator(request.param) as stand_in:
            yield stand_in

    @pytest.fixture
    def connect(self, stand_in: KubernetesStandIn) -> Iterator[Connect]:
        opened: list[KubernetesTarget] = []

        def connect() -> KubernetesTarget:
            opened.append(connected(stand_in, Manifest.of(self.settings, "the test")))
            return opened[-1]

        yield connect
        for target in opened:
            target.close()

    @pytest.fixture(autouse=True)
    def _operator(self, stand_in: KubernetesStandIn) -> None:
        self.operator = stand_in

    def misfits(self, target: Target, name: str) -> None:
        """The next savepoint that a job of this name is given does not fit."""
        self.operator.flink.misfits.add(name)


class TestSessionJobs(KubernetesContract):
    """``FlinkSessionJob``."""

    settings: ClassVar = {"session_cluster": "session"}


class TestApplications(KubernetesContract):
    """``FlinkDeployment`` in application mode."""

    settings: ClassVar = {"manifest": APPLICATION}


def test_a_redeploy_is_two_patches(orders: Deployments) -> None:
    """Suspended with a savepoint, without falling back to less; then started from that very savepoint."""
    entry = orders.deploy(CHANGED, owner="second")
    assert orders.stand_in.calls == ["patch flinksessionjobs"] * 2
    (job,) = orders.runs
    assert (job.restored, entry.start.savepoint) == ("file:/savepoints/savepoint-1",) * 2
    spec = orders.resource["spec"]
    assert spec["job"]["allowNonRestoredState"] is False
    assert spec["flinkConfiguration"]["kubernetes.operator.job.upgrade.last-state-fallback.enabled"] == "false"


def test_a_job_has_its_page_in_flinks_own_ui(orders: Deployments) -> None:
    """By its id in Flink, at the JobManager of its cluster."""
    head = orders.ledger.head()
    assert head is not None
    (running,) = orders.runs
    with closing(orders.target()) as target:
        page = target.page_of(head.start.job_ref, "https://flink.example.com/{namespace}/{cluster}")
        assert page == f"https://flink.example.com/default/session/#/job/running/{running.id}/overview"
        assert target.page_of(JobRef("orders/1"), "https://flink.example.com") is None
        assert target.page_of(JobRef("others/1"), "https://flink.example.com") is None


def test_a_session_cluster_tells_of_the_state_of_a_job_that_was_stopped(orders: Deployments) -> None:
    """So that the sizes are compared; an application's JobManager goes with its job."""
    first = orders.ledger.head()
    assert first is not None
    entry = orders.deploy(CHANGED, owner="second")
    with closing(orders.target()) as target:
        left = target.snapshot_stats(first.start.job_ref, "savepoint")
        assert left is not None
        assert left.path == entry.start.savepoint
        assert target.snapshot_stats(JobRef("orders/1"), "savepoint") is None
        orders.stand_in.flink.jobs.pop(next(iter(orders.stand_in.flink.jobs)))
        assert target.snapshot_stats(first.start.job_ref, "savepoint") is None, "the cluster has forgotten it"


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_call_that_was_lost_is_found_out_about(orders: Deployments, when: str, number: int) -> None:
    """Whether the call or its answer was lost: one stop, one savepoint and one job come of the run and its retry."""
    lost = []

    def lose(at: str, call: int) -> None:
        if (at, call) == (when, number) and not lost:
            lost.append(call)
            raise Lost

    orders.stand_in.at = lose
    head = orders.ledger.head()
    assert head is not None
    with suppress(DeployError):
        orders.deploy(CHANGED, owner="second", checked_old_sha256=head.sha256)
    orders.deploy(CHANGED, owner="second", checked_old_sha256=head.sha256)
    assert lost == [number]
    (job,) = orders.runs
    assert job.restored == "file:/savepoints/savepoint-1"
    assert orders.stand_in.flink.savepoints == ["file:/savepoints/savepoint-1"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(3))
def test_a_call_that_was_lost_on_the_way_back(orders: Deployments, when: str, number: int) -> None:
    """A state that does not fit is rolled back, whichever call or answer is lost meanwhile."""
    orders.stand_in.flink.misfits.add("orders")
    lost = []

    def lose(at: str, call: int) -> None:
        if (at, call) == (when, number + 1) and not lost:
            lost.append(call)
            raise Lost

    orders.stand_in.at = lose
    with pytest.raises(DeployError):
        orders.deploy(MISFIT, owner="second")
    with pytest.raises(RolledBack):
        orders.deploy(MISFIT, owner="second")
    assert lost
    (job,) = orders.runs
    assert job.restored == "file:/savepoints/savepoint-1"
    assert ("configmaps", "orders-flinkcompat-next") not in orders.stand_in.objects, "it would be gone on from later"
    head = orders.ledger.head()
    assert head is not None
    assert (head.kind, head.job.script) == ("rolled-back", SCRIPT)


def test_a_resource_that_another_run_makes_at_this_moment_is_validated_as_it_is(
    stand_in: KubernetesStandIn, tmp_path: Path
) -> None:
    """The run that comes second is told so by the ledger, and not by an error of the API server."""
    orders = Deployments(stand_in, tmp_path, {"session_cluster": "session"})
    job = JobSpec(SCRIPT, {"pipeline.name": "orders", "parallelism.default": "1"}, source="orders.sql")
    with orders.target() as target, orders.target() as other:
        create = target._api.create

        def late(body: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
            if not stand_in.calls:
                other.start(job, Start(), "1" * 32)
            return create(body, dry_run=dry_run)

        target._api.create = late  # type: ignore[method-assign]
        assert "the API server validated the resource" in target.validate(job, Start())
    assert stand_in.calls == ["create flinksessionjobs"]


def test_what_somebody_else_edits_at_this_moment_is_not_written_over(orders: Deployments) -> None:
    """The spec that was read is not the one that would be patched any more."""

    def edit(when: str, number: int) -> None:
        if when == "before":
            orders.resource["metadata"] |= {"generation": 7, "resourceVersion": "edited"}

    orders.stand_in.at = edit
    with pytest.raises(DeployRefused, match="someone else changed FlinkSessionJob orders at the same time"):
        orders.deploy(CHANGED, owner="second")
    assert len(orders.runs) == 1
    assert orders.resource["spec"]["job"]["state"] == "running"


def test_what_the_operator_writes_meanwhile_is_no_conflict(orders: Deployments) -> None:
    """A status has another resourceVersion, and the same generation."""
    touched = []

    def touch(when: str, number: int) -> None:
        if when == "before" and len(touched) < 2:
            touched.append(number)
            orders.resource["metadata"]["resourceVersion"] = f"status-{number}"

    orders.stand_in.at = touch
    orders.deploy(CHANGED, owner="second")
    assert touched == [0, 1]
    assert len(orders.runs) == 1


def test_another_spec_is_another_job(orders: Deployments) -> None:
    """Somebody scaled it by hand: what runs is not what the ledger says, and that is refused before anything stops."""
    with orders.target() as target:
        target._api.patch("FlinkSessionJob", "orders", {"spec": {"job": {"parallelism": 3}}})
    with pytest.raises(DeployRefused, match="someone else deployed"):
        orders.deploy(CHANGED, owner="second")
    assert len(orders.runs) == 1


def test_a_nonce_that_asks_for_a_savepoint_makes_no_other_job(orders: Deployments) -> None:
    """Nor does one that restarts the same spec."""
    with orders.target() as target:
        patch = {"spec": {"restartNonce": 1, "job": {"savepointTriggerNonce": 2}}}
        target._api.patch("FlinkSessionJob", "orders", patch)
    orders.deploy(CHANGED, owner="second")
    assert len(orders.runs) == 1


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_savepoint_that_the_operator_replaced_is_not_gone_on_from(orders: Deployments, when: str) -> None:
    """Its memory is no proof: a resource is made anew that is told which, or what it did in spite of that is undone."""

    def replace(at: str, number: int) -> None:
        if (at, number) == (when, 1):
            said = orders.resource["status"]["jobStatus"]
            said["savepointInfo"]["lastSavepoint"]["location"] = "file:/checkpoints/chk-20"
            said.pop("upgradeSavepointPath", None)
            if when == "before":
                orders.resource["metadata"]["resourceVersion"] = "status"

    orders.stand_in.at = replace
    orders.stand_in.flink.savepoints.append("file:/checkpoints/chk-20")
    with nullcontext() if when == "before" else pytest.raises(RolledBack, match="chk-20 instead of"):
        orders.deploy(CHANGED, owner="second")
    (job,) = orders.runs
    assert job.restored == "file:/savepoints/savepoint-2"
    assert orders.stand_in.calls[-2:] == ["delete flinksessionjobs", "create flinksessionjobs"]


def test_an_admission_webhook_that_says_no(orders: Deployments) -> None:
    """Nothing was touched, and its words are told."""
    orders.stand_in.refuses = 'admission webhook "policy.example.com" denied the request: no changes on Fridays'
    with pytest.raises(DeployError, match="no changes on Fridays"):
        orders.deploy(CHANGED, owner="second")
    assert len(orders.runs) == 1
    assert orders.stand_in.calls == []


def test_what_gitops_owns_is_left_alone(orders: Deployments) -> None:
    """Argo CD would undo it."""
    orders.resource["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = "shop:flink.apache.org/x"
    with pytest.raises(DeployRefused, match="belongs to Argo CD"):
        orders.deploy(CHANGED, owner="second")
    assert orders.stand_in.calls == []


def test_a_script_that_flink_refuses_is_rolled_back(orders: Deployments) -> None:
    """The operator would try it for ever: its error is the failure of the start."""
    orders.stand_in.flink.refuses[CHANGED] = "Object 'orders' not found"
    with pytest.raises(RolledBack, match="Object 'orders' not found"):
        orders.deploy(CHANGED, owner="second")
    (job,) = orders.runs
    assert job.restored == "file:/savepoints/savepoint-1"


def test_an_operator_that_does_nothing(orders: Deployments) -> None:
    """The stop is waited for, and a later call goes on with it."""
    orders.stand_in.stopped = True
    with pytest.raises(DeployError, match="did not complete within 1 s and still writes"):
        orders.deploy(CHANGED, owner="second", options=Options(settle_seconds=0.0, stop_timeout=1.0))
    orders.stand_in.stopped = False
    orders.deploy(CHANGED, owner="second")
    assert orders.stand_in.flink.savepoints == ["file:/savepoints/savepoint-1"]


def test_what_the_operator_fills_in_makes_no_other_job(orders: Deployments) -> None:
    """It writes the resource once more, for its finalizer, with its own defaults of what nobody gave."""
    orders.resource["spec"]["job"]["jarURI"] = ""
    orders.deploy(CHANGED, owner="second")
    assert len(orders.runs) == 1


def test_a_job_says_its_parallelism(orders: Deployments) -> None:
    """The operator takes none without: that of the settings, else one."""
    assert orders.resource["spec"]["job"]["parallelism"] == 1
    with orders.target() as target:
        (running,) = target.running("orders")
        target.cancel(running)
        job = JobSpec(SCRIPT, {"pipeline.name": "orders", "parallelism.default": "3"}, source="orders.sql")
        target.start(job, Start(), new_id())
    assert orders.resource["spec"]["job"]["parallelism"] == 3


def test_a_setting_that_is_gone_leaves_the_resource(orders: Deployments) -> None:
    """Those of others stay."""
    orders.resource["spec"]["flinkConfiguration"]["their.own"] = "1"
    with orders.target() as target:
        job = JobSpec(SCRIPT, {"pipeline.name": "orders"}, source="orders.sql")
        (running,) = target.running("orders")
        target.cancel(running)
        target.start(job, Start(), new_id())
    kept = orders.resource["spec"]["flinkConfiguration"]
    assert "execution.checkpointing.interval" not in kept
    assert kept["their.own"] == "1"


def test_a_running_resource_is_taken_over_by_its_name(stand_in: KubernetesStandIn, tmp_path: Path) -> None:
    """Whoever made it; the ledger holds the job that it has now, and the next change goes on from its state."""
    orders = Deployments(stand_in, tmp_path, {"session_cluster": "session"})
    job = {"args": ["--script", SCRIPT], "state": "running", "upgradeMode": "last-state"}
    with orders.target() as target:
        target._api.create(
            {
                "kind": "FlinkSessionJob",
                "metadata": {"name": "orders"},
                "spec": {"deploymentName": "session", "job": job, "flinkConfiguration": {"pipeline.name": "by-hand"}},
            }
        )
        side = Side.of(JobSpec(SCRIPT, {}, source="orders.sql"))
        adopted = adopt(target, orders.ledger, side, JobRef("orders"), owner="ann")
        assert target.running("orders") == (adopted.entry.job_id,)
    assert str(adopted.entry.job_id).startswith("orders/")
    orders.deploy(CHANGED, start_mode="savepoint")
    (running,) = orders.runs
    assert running.restored == "file:/savepoints/savepoint-1"


def test_a_secret_never_stands_in_a_resource(orders: Deployments) -> None:
    """Inline it would: that is refused before anything is touched."""
    with pytest.raises(ScriptRefused, match="Pass the script as a file"):
        orders.deploy(WITH_SECRET, owner="second")
    assert orders.stand_in.calls == []


@pytest.mark.parametrize(("script", "kept_in"), [(SCRIPT, "configmaps"), (WITH_SECRET, "secrets")])
def test_a_script_travels_as_a_file(stand_in: KubernetesStandIn, tmp_path: Path, script: str, kept_in: str) -> None:
    """Mounted from a ConfigMap, named by its content; with resolved placeholders from a Secret, by its request."""
    stand_in.flink.files = stand_in.objects
    manifest = APPLICATION.replace("{script}", "{script_uri}").replace("--script", "--scriptUri")
    orders = Deployments(stand_in, tmp_path, {"manifest": manifest})
    orders.deploy(script)
    (file,) = (name for plural, name in stand_in.objects if plural == kept_in)
    assert file.startswith("orders-sql-")
    text = json.dumps(orders.resource)
    assert file in text
    assert SECRET not in text
    assert orders.resource["spec"]["job"]["args"] == ["--scriptUri", "file:///opt/flink/flinkcompat/script.sql"]
    changed = script.replace("SELECT n, COUNT(*)", "SELECT n, COUNT(*) + 1")
    orders.deploy(changed, owner="second")
    orders.deploy(script, owner="third")
    named = [each for each in stand_in.files_made if each == f"{kept_in}/{file}"]
    assert len(named) == 1
    assert (("configmaps", file) in stand_in.objects) is (kept_in == "configmaps"), "a script of before has its name"
    assert len([name for plural, name in stand_in.objects if plural == kept_in]) == 2, "the former one may be needed"
    with orders.target() as target:
        found = target.deployed("orders")
    assert found is not None
    assert found.script == (script if kept_in == "configmaps" else None)


def test_an_old_definition_is_told_apart_by_strict_validation() -> None:
    """A field that it lacks would be dropped without a word: the write is refused."""
    with serving(KubernetesStandIn("1.7")) as stand_in, closing(connected(stand_in, _session())) as target:
        body = {"kind": "FlinkSessionJob", "metadata": {"name": "x"}, "spec": {"job": {"savepointRedeployNonce": 1}}}
        with pytest.raises(DeployError, match="savepointRedeployNonce"):
            target._api.create(body)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "requires session_cluster"),
        ({"manifest": "kind: Pod\nspec: {}"}, "is not a FlinkSessionJob or FlinkDeployment"),
        (
            {"manifest": "kind: FlinkDeployment\nspec: {job: {args: [--script]}}"},
            ("must contain exactly one placeholder for the script"),
        ),
        (
            {"manifest": "kind: FlinkSessionJob\nspec: {job: {args: ['{script_uri}']}}"},
            "a FlinkSessionJob has no separate JobManager",
        ),
        ({"manifest": "/no/such/file.yaml"}, "cannot be read"),
    ],
)
def test_a_manifest_that_cannot_be_used(settings: dict[str, str], says: str) -> None:
    """The connection is named, and what to write."""
    with pytest.raises(DeployError, match=f"connection 'flink'.*{says}"):
        Manifest.of(settings, "connection 'flink'")


@pytest.mark.parametrize(
    ("placeholder", "stands"),
    [
        ("{script_path}", "/opt/flink/flinkcompat/script.sql"),
        ("{script_uri}", "file:///opt/flink/flinkcompat/script.sql"),
        ("{statements_path}", "/opt/flink/flinkcompat/statements"),
        ("{statements_uri}", "file:///opt/flink/flinkcompat/statements"),
    ],
)
def test_a_runner_is_given_the_path_or_the_uri_of_the_file(
    stand_in: KubernetesStandIn, tmp_path: Path, placeholder: str, stands: str
) -> None:
    """The SqlRunner of the operator's examples takes one argument, and opens it as a file of that very name."""
    stand_in.flink.files = stand_in.objects
    args = APPLICATION.replace('["--script", "{script}"]', f'["{placeholder}"]')
    orders = Deployments(stand_in, tmp_path, {"manifest": args})
    orders.deploy(SCRIPT)
    assert orders.resource["spec"]["job"]["args"] == [stands]
    (volume,) = orders.resource["spec"]["podTemplate"]["spec"]["volumes"]
    files = stand_in.objects["configmaps", volume["configMap"]["name"]]["data"]
    assert stands.rpartition("/")[2] in files
    assert files["script.sql"] == SCRIPT
    orders.deploy(CHANGED, owner="second")
    assert len(orders.runs) == 1


@pytest.mark.parametrize("placeholder", ["{script}", "{script_base64}"])
def test_a_script_is_read_back_as_it_was_written(placeholder: str) -> None:
    """Whatever lies around it in its argument."""
    manifest = Manifest.of({"manifest": APPLICATION.replace('"{script}"', f'"sql={placeholder};"')}, "the test")
    spec = manifest.with_script("orders-sql-1", SCRIPT, manifest.spec, secret=False)
    assert manifest.script_of(spec["job"]["args"]) == SCRIPT
    assert manifest.script_of(["--other", "x"]) is None


def _session() -> Manifest:
    return Manifest.of({"session_cluster": "session"}, "the test")


def test_what_somebody_edited_is_shown(orders: Deployments) -> None:
    """Script and settings, as the last start set them; of what else was changed that it is beside them."""
    with orders.target() as target:
        args = ["--script", CHANGED]
        settings = {"parallelism.default": "3"}
        target._api.patch(
            "FlinkSessionJob", "orders", {"spec": {"job": {"args": args}, "flinkConfiguration": settings}}
        )
    with pytest.raises(DeployRefused, match="someone else deployed") as refused:
        orders.deploy(CHANGED, owner="second")
    shown = str(refused.value).splitlines()
    assert "-INSERT INTO counts SELECT n, COUNT(*) FROM numbers GROUP BY n;" in shown
    assert "+INSERT INTO counts SELECT n, COUNT(*) + 1 FROM numbers GROUP BY n;" in shown
    assert shown[-2:] == ["-parallelism.default = 1", "+parallelism.default = 3"]
