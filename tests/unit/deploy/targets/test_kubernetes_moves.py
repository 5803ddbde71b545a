"""Moves of the Flink Kubernetes Operator's jobs to another Flink line, on the stand-in."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy import DeployError, Options, RolledBack, TargetError, deploy
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry
from airflow_flinkcompat.deploy.redeploy.way_back import move_back
from airflow_flinkcompat.deploy.targets import Access
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import DRIVER, Manifest
from airflow_flinkcompat.deploy.targets.kubernetes.target import KubernetesTarget
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.testing.target_contract import CHANGED, MISFIT, SCRIPT, SETTINGS
from tests.support.deploy.targets.kubernetes_deployments import APPLICATION, SESSION, Deployments, connected, operator
from tests.support.deploy.targets.kubernetes_stand_in import KubernetesStandIn

NEWER = APPLICATION.replace("1.18", "1.20").replace("v1_18", "v1_20")


TWO_LINES = {"manifest": NEWER, "former_manifest": APPLICATION}
OPTIONS = Options(settle_seconds=0.0, submit_timeout=3.0, start_timeout=3.0)


def newer(stand_in: KubernetesStandIn, settings: dict[str, str]) -> KubernetesTarget:
    """The target of the newer line's connection."""
    new = Manifest.of(settings, "connection 'new'")
    return connected(stand_in, new, former=Manifest.former(settings, "connection 'new'", new))


def moved(
    stand_in: KubernetesStandIn,
    orders: Deployments,
    script: str,
    settings: dict[str, str] = TWO_LINES,
    version: str = "1.20",
) -> DeployedEntry:
    """A redeploy to the newer line's manifest."""
    head = orders.ledger.head()
    assert head is not None
    job = JobSpec(script, SETTINGS, engine="flink", engine_version=version, source="orders.sql")
    with closing(newer(stand_in, settings)) as target:
        return deploy(
            target, orders.ledger, job, start_mode="savepoint", checked_old_sha256=head.sha256, options=OPTIONS
        )


def test_image_and_version_change_with_the_script(tmp_path: Path) -> None:
    """And change back if the newer line does not run the job."""
    with operator("1.10") as stand_in:
        orders = Deployments(stand_in, tmp_path, {"manifest": APPLICATION})
        orders.deploy(SCRIPT, engine_version="1.18")
        assert (orders.resource["spec"]["image"], orders.resource["spec"]["flinkVersion"]) == ("flink:1.18", "v1_18")
        entry = moved(stand_in, orders, CHANGED)
        spec = orders.resource["spec"]
        assert (spec["image"], spec["flinkVersion"], spec["serviceAccount"]) == ("flink:1.20", "v1_20", "flink")
        (job,) = orders.runs
        assert (job.restored, entry.start.savepoint) == ("file:/savepoints/savepoint-1",) * 2


def test_a_job_that_the_newer_line_refuses_runs_on_the_former_image_again(tmp_path: Path) -> None:
    with operator("1.10") as stand_in:
        orders = Deployments(stand_in, tmp_path, {"manifest": APPLICATION})
        orders.deploy(SCRIPT, engine_version="1.18")
        stand_in.flink.misfits.add("orders")
        with pytest.raises(RolledBack):
            moved(stand_in, orders, MISFIT)
        spec = orders.resource["spec"]
        assert (spec["image"], spec["flinkVersion"], len(orders.runs)) == ("flink:1.18", "v1_18", 1)


def test_a_resource_of_a_third_line_is_refused(tmp_path: Path) -> None:
    with operator("1.10") as stand_in:
        orders = Deployments(stand_in, tmp_path, {"manifest": APPLICATION})
        orders.deploy(SCRIPT, engine_version="1.18")
        older = APPLICATION.replace("1.18", "1.19").replace("v1_18", "v1_19")
        with pytest.raises(TargetError, match=r"image is 'flink:1\.18' in the resource but 'flink:1\.20' in"):
            moved(stand_in, orders, CHANGED, {"manifest": NEWER, "former_manifest": older})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("v1_18", "v1_20"),
        ("FlinkDeployment", "FlinkSessionJob"),
        ("{script}", "{script_uri}"),
        ("  flinkVersion: v1_18\n", ""),
    ],
)
def test_manifests_of_two_lines_belong_together(old: str, new: str) -> None:
    settings = {"manifest": NEWER, "former_manifest": APPLICATION.replace(old, new)}
    with pytest.raises(DeployError, match="connection 'new': former_manifest"):
        Manifest.former(settings, "connection 'new'", Manifest.of(settings, "connection 'new'"))


OLDER_SESSION = """
kind: FlinkSessionJob
spec:
  deploymentName: session
  job: {entryClass: com.example.SqlRunner, args: ["--script", "{script}"]}
"""
TWO_CLUSTERS = {"session_cluster": "session-24", "former_manifest": OLDER_SESSION}


def second_cluster(stand_in: KubernetesStandIn, version: str = "2.4.0") -> None:
    stand_in.objects["flinkdeployments", "session-24"] = {
        **SESSION,
        "metadata": {**SESSION["metadata"], "name": "session-24"},
        "status": {"clusterInfo": {"flink-version": version}},
    }


@pytest.mark.parametrize("version", ["1.7", "1.10"])
def test_a_session_job_moves_to_the_cluster_of_the_newer_line(tmp_path: Path, version: str) -> None:
    """The operator changes no cluster of a job, so that the resource is deleted and made anew."""
    with operator(version) as stand_in:
        second_cluster(stand_in)
        orders = Deployments(stand_in, tmp_path, {"manifest": OLDER_SESSION})
        orders.deploy(SCRIPT, engine_version="2.3")
        entry = moved(stand_in, orders, CHANGED, TWO_CLUSTERS, "2.4")
        spec = orders.resource["spec"]
        assert (spec["deploymentName"], spec["job"]["entryClass"]) == ("session-24", DRIVER)
        (job,) = orders.runs
        assert (job.session_cluster, job.restored) == ("session-24", entry.start.savepoint)
        assert [call for call in stand_in.calls if not call.startswith("patch")] == [
            "create flinksessionjobs",
            "delete flinksessionjobs",
            "create flinksessionjobs",
        ]


def test_a_session_job_that_the_newer_line_refuses_returns_to_its_cluster(tmp_path: Path) -> None:
    with operator("1.10") as stand_in:
        second_cluster(stand_in)
        orders = Deployments(stand_in, tmp_path, {"manifest": OLDER_SESSION})
        orders.deploy(SCRIPT, engine_version="2.3")
        stand_in.flink.misfits.add("orders")
        with pytest.raises(RolledBack):
            moved(stand_in, orders, MISFIT, TWO_CLUSTERS, "2.4")
        spec = orders.resource["spec"]
        assert (spec["deploymentName"], spec["job"]["entryClass"]) == ("session", "com.example.SqlRunner")
        (job,) = orders.runs
        assert (job.session_cluster, job.restored) == ("session", "file:/savepoints/savepoint-1")


def test_a_moved_job_moves_back_from_the_savepoint_of_its_move(tmp_path: Path) -> None:
    with operator("1.10") as stand_in:
        second_cluster(stand_in)
        orders = Deployments(stand_in, tmp_path, {"manifest": OLDER_SESSION})
        orders.deploy(SCRIPT, engine_version="2.3")
        moved(stand_in, orders, CHANGED, TWO_CLUSTERS, "2.4")
        with closing(newer(stand_in, TWO_CLUSTERS)) as target:
            entry = move_back(target, orders.ledger, owner="back", options=OPTIONS)
        assert entry.job.script == SCRIPT
        (job,) = orders.runs
        assert (job.session_cluster, job.restored) == ("session", "file:/savepoints/savepoint-1")


def test_two_session_clusters_of_one_line_are_refused(tmp_path: Path) -> None:
    with operator("1.10") as stand_in:
        second_cluster(stand_in, "2.3.1")
        orders = Deployments(stand_in, tmp_path, {"manifest": OLDER_SESSION})
        orders.deploy(SCRIPT, engine_version="2.3")
        with pytest.raises(TargetError, match=r"both run Flink 2\.3.*Remove former_manifest"):
            moved(stand_in, orders, CHANGED, TWO_CLUSTERS, "2.3")
        assert len(orders.runs) == 1


def test_two_session_jobs_need_two_clusters() -> None:
    settings = {"session_cluster": "session", "former_manifest": OLDER_SESSION}
    with pytest.raises(DeployError, match="differ in the flinkVersion of a FlinkDeployment or the deploymentName"):
        Manifest.former(settings, "connection 'new'", Manifest.of(settings, "connection 'new'"))


def test_each_session_cluster_needs_an_address_of_its_own() -> None:
    settings = {**TWO_CLUSTERS, "jobmanager_url": "http://session-rest:8081"}
    access = Access(lambda which: "", settings, "connection 'new'")
    with pytest.raises(DeployError, match=r"connection 'new': jobmanager_url .* Write \{cluster\}"):
        KubernetesTarget.connect(access)
