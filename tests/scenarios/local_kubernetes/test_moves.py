"""Moves of jobs to another Flink line, and back, by the real operator, with the rows right."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from kubernetes import config

from airflow_flinkcompat.deploy import Ledger, Options, RolledBack, deploy
from airflow_flinkcompat.deploy.flink.rest import Endpoint
from airflow_flinkcompat.deploy.ledger.entries import HeadEntry, Review
from airflow_flinkcompat.deploy.redeploy.way_back import move_back
from airflow_flinkcompat.deploy.targets.kubernetes.api import KubernetesApi
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import DRIVER, Manifest
from airflow_flinkcompat.deploy.targets.kubernetes.target import KubernetesTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.local_flink.cluster import gateway_jar
from airflow_flinkcompat.local_flink.processes import choose_ports
from airflow_flinkcompat.model import JobSpec
from dev.local_kubernetes import flink_operator
from dev.local_kubernetes.cluster import NAMESPACE, LocalKube
from dev.local_kubernetes.kubelet import ProcessKubelet
from dev.local_kubernetes.resources import Resource, application, job_spec, session_job
from dev.local_kubernetes.rigs import INLINE, MOUNTED, RUNNER, create_session
from dev.measure.pairs import home
from dev.services.csv_job import SETTINGS, Files, wait_for
from tests.scenarios.deploy.faults import Result, write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.kubernetes,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        tuple(map(int, flink_operator.VERSION.split(".")[:2])) < (1, 13),
        reason="this operator knows no flinkVersion v2_2: set FLINKCOMPAT_OPERATOR_VERSION=1.15.0",
    ),
]

OPTIONS = Options(settle_seconds=0.5, start_timeout=400, stop_timeout=300)
LINES, FLINK_VERSIONS = ("1.20", "2.2"), ("v1_20", "v2_2")
GATEWAY = "/opt/flink/opt/flink-sql-gateway.jar"
ORDERS = {
    "before": [("ann", 1, "00:10"), ("ann", 2, "00:20"), ("ann", 5, "01:10")],  # the last one ends minute 0
    "moved": [("ann", 7, "01:20"), ("ann", 1, "02:10")],
    "later": [("ann", 4, "02:20"), ("ann", 1, "03:10")],
}
MINUTES = [f'ann,{total},"2026-01-01 00:0{minute}:00"' for minute, total in enumerate((3, 12, 5))]
NOTES = (
    f"Moves by `deploy` and `move_back` on the local Kubernetes of the tests: API server 1.34.4, Flink's operator "
    f"{flink_operator.VERSION}, from Flink {LINES[0]} (the runner of this package) to Flink {LINES[1]}. Right is after "
    "each: one job of the name runs by Flink's own word, from the savepoint that the ledger names; the operator has "
    "reconciled the resource and reports no error; the rows are those of an undisturbed run. "
    "`pytest tests/scenarios/local_kubernetes/test_moves.py` makes this file."
)


@dataclass
class Move:
    """A job of its own name on the former line, and the target that moves it."""

    kube: LocalKube
    former: Resource
    new: Resource
    urls: Mapping[str, str]
    versions: tuple[str, str]
    root: Path
    name: str
    steps: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.files = Files(self.root / self.name)
        self.ledger = Ledger(self.root / "ledger", self.name)

    def target(self, moves: bool = True) -> KubernetesTarget:
        api = KubernetesApi(config.new_client_from_config(str(self.kube.kubeconfig)), NAMESPACE)
        new = Manifest.of({"manifest": self.new if moves else self.former}, "the test")
        former = Manifest.former({"former_manifest": self.former}, "the test", new) if moves else None
        url = self.urls.get
        return KubernetesTarget(
            api, new, former=former, jobmanager=lambda cluster: Endpoint(url(cluster) or url("") or "")
        )

    def deploy(self, version: str, moves: bool = True, **script: str) -> None:
        head = self.ledger.head()
        job = JobSpec(
            self.files.script(**script), SETTINGS, engine="flink", engine_version=version, source=f"{self.name}.sql"
        )
        with closing(self.target(moves)) as target:
            deploy(
                target, self.ledger, job, start_mode="savepoint" if head else "auto-first", review=Review("compatible"),
                checked_old_sha256=head.sha256 if head else None, owner="worker", options=OPTIONS, log=print,
            )  # fmt: skip

    def back(self) -> None:
        with closing(self.target()) as target:
            move_back(target, self.ledger, owner="back", options=OPTIONS, log=print)

    def arrive(self, name: str) -> None:
        self.files.arrive(name, ORDERS[name])

    def check(self, rows: list[str]) -> HeadEntry:
        """One job runs, from the savepoint of the ledger; the operator is done; the rows are right."""
        head = self.ledger.head()
        assert head is not None
        wait_for(lambda: len(self.files.rows()) >= len(rows), f"{len(rows)} rows are written", 300)
        assert self.files.rows() == sorted(rows)
        with closing(self.target()) as target:
            assert target.running(self.name) == (head.job_id,)
            assert target.restored_from(head.start.job_ref).snapshot == head.start.savepoint
        found = self.resource()
        status, spec = found["status"], found["spec"]
        said = {
            **{key: spec[key] for key in ("deploymentName", "image", "flinkVersion") if key in spec},
            "generation": found["metadata"]["generation"],
            "observedGeneration": status.get("observedGeneration"),
            "lifecycleState": status["lifecycleState"],
            "reconciliation": status["reconciliationStatus"]["state"],
            "job": status["jobStatus"]["state"],
            "flink-version": (status.get("clusterInfo") or {}).get("flink-version"),
            "upgradeSavepointPath": status["jobStatus"].get("upgradeSavepointPath"),
            "initialSavepointPath": spec["job"].get("initialSavepointPath"),
        }
        assert "error" not in status, status["error"]
        assert said["observedGeneration"] in (None, said["generation"])
        known = {key: value for key, value in said.items() if value is not None}
        self.steps.append(re.sub(r'"file:[^"]*/', '"…/', json.dumps(known)))
        return head

    def resource(self) -> Resource:
        return self.kube.get(self.former["kind"], self.name)

    def begin(self) -> None:
        """First start on the former line, with an open window in its state."""
        self.arrive("before")
        self.deploy(self.versions[0], moves=False)
        wait_for(lambda: self.files.rows() == MINUTES[:1], "minute 0 is written", 300)


class Moves:
    """The cases; a subclass says of which kind of resource."""

    what: ClassVar[str]
    results: ClassVar[list[Result]] = []

    @pytest.fixture
    def start(self) -> Callable[[str], Move]:
        raise NotImplementedError

    @pytest.fixture(scope="class", autouse=True)
    def recorded(self) -> Iterator[None]:
        yield
        version = flink_operator.VERSION
        title = f"Moves to another Flink line by Flink's operator {version}"
        columns = ("Resource", "Case", "Spec and status after each step", "Seconds")
        write(f"kubernetes-moves-{version}", title, self.results, [NOTES], columns=columns)

    def run(self, move: Move, case: str, act: Callable[[Move], None]) -> None:
        began = time.monotonic()
        try:
            act(move)
        except BaseException as error:
            self.results.append(
                Result(self.what, case, "", time.monotonic() - began, f"{type(error).__name__}: {error}")
            )
            raise
        self.results.append(Result(self.what, case, "; then ".join(move.steps), time.monotonic() - began))

    def test_a_job_moves_and_moves_back(self, start: Callable[[str], Move]) -> None:
        def act(move: Move) -> None:
            move.begin()
            move.deploy(move.versions[1])
            move.arrive("moved")
            assert move.check(MINUTES[:2]).job.engine_version == move.versions[1]
            move.back()
            assert move.ledger.entries()[-1].kind == "rolled-back"
            move.arrive("later")
            # The job reads all rows since its move again, so minute 1 is written twice.
            assert move.check([*MINUTES, MINUTES[1]]).job.engine_version == move.versions[0]

        self.run(start("moves"), "moved, then moved back", act)

    def test_a_job_that_the_new_line_refuses_runs_on_the_former_line_again(self, start: Callable[[str], Move]) -> None:
        def act(move: Move) -> None:
            move.begin()
            with pytest.raises(RolledBack, match="runs again as job"):
                move.deploy(move.versions[1], where=" WHERE amount > 1")
            move.arrive("moved")
            assert move.check(MINUTES[:2]).job.engine_version == move.versions[0]

        self.run(start("refused"), "refused by the new line, rolled back", act)


class TestApplications(Moves):
    """``FlinkDeployment`` in application mode: ``image`` and ``flinkVersion`` change in place."""

    what = "application"

    @pytest.fixture(scope="class")
    def place(
        self, kubernetes_binary: Path, runner_jar_path: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[tuple[LocalKube, Resource, Resource, str]]:
        work = tmp_path_factory.mktemp("moves")
        (port,) = choose_ports({"JobManagers": None}).values()
        former = application("any", job_spec(MOUNTED, f"local://{RUNNER}"), port, work / "state")
        new = application("any", job_spec(MOUNTED, f"local://{RUNNER}"), port, work / "state")
        new["spec"]["job"] |= {
            "jarURI": f"local://{GATEWAY}",
            "entryClass": DRIVER,
            "args": ["--scriptUri", "{script_uri}"],
        }
        for manifest, line, version in zip((former, new), LINES, FLINK_VERSIONS, strict=True):
            manifest["spec"] |= {"image": f"flink:{line}", "flinkVersion": version}
            manifest["spec"]["flinkConfiguration"]["execution.submit-failed-job-on-application-error"] = "true"
        homes = {f"flink:{line}": _with_gateway(work / f"flink-{line}", home(line)) for line in LINES}
        files = {RUNNER: runner_jar_path, GATEWAY: gateway_jar(home(LINES[1]))}
        with (
            LocalKube(work / "kube", controllers=True) as kube,
            ProcessKubelet(kube, home(LINES[0]), files, homes) as kubelet,
        ):
            kube.start_operator()
            yield kube, former, new, f"http://127.0.0.1:{port}"
            kubelet.check()

    @pytest.fixture
    def start(
        self, place: tuple[LocalKube, Resource, Resource, str], tmp_path: Path
    ) -> Iterator[Callable[[str], Move]]:
        kube, former, new, url = place
        versions = tuple(version[1:].replace("_", ".") for version in FLINK_VERSIONS)
        yield lambda name: Move(kube, former, new, {"": url}, (versions[0], versions[1]), tmp_path, name)
        for left in kube.all("FlinkDeployment"):
            kube.delete("FlinkDeployment", left["metadata"]["name"])


class TestSessionJobs(Moves):
    """``FlinkSessionJob``: deleted, and made anew on the session cluster of the other line."""

    what = "session job"

    @pytest.fixture(scope="class")
    def place(
        self, kubernetes_binary: Path, runner_jar_path: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[tuple[LocalKube, Resource, Resource, dict[str, str]]]:
        work = tmp_path_factory.mktemp("moves")
        with (
            LocalFlink(work / "former", home=home(LINES[0])) as former_flink,
            LocalFlink(work / "new", home=home(LINES[1])) as new_flink,
            LocalKube(work / "kube") as kube,
        ):
            kube.start_operator()
            create_session(kube, former_flink, "former", FLINK_VERSIONS[0])
            create_session(kube, new_flink, "new", FLINK_VERSIONS[1])
            former = session_job("any", "former", job_spec(INLINE, runner_jar_path.as_uri()))
            new = session_job("any", "new", job_spec(INLINE, runner_jar_path.as_uri()))
            new["spec"]["job"] |= {"entryClass": DRIVER, "args": ["--script", "{script}"]}
            del new["spec"]["job"]["jarURI"]
            urls = {"former": former_flink.jobmanager_url, "new": new_flink.jobmanager_url}
            yield kube, former, new, urls

    @pytest.fixture
    def start(
        self, place: tuple[LocalKube, Resource, Resource, dict[str, str]], tmp_path: Path
    ) -> Iterator[Callable[[str], Move]]:
        kube, former, new, urls = place
        yield lambda name: Move(kube, former, new, urls, LINES, tmp_path, name)
        for left in kube.all("FlinkSessionJob"):
            kube.delete("FlinkSessionJob", left["metadata"]["name"])

    def test_the_operator_changes_no_cluster_of_a_job(self, start: Callable[[str], Move]) -> None:
        def act(move: Move) -> None:
            move.begin()
            move.kube.patch("FlinkSessionJob", move.name, {"spec": {"deploymentName": "new"}})

            def refused(resource: Mapping[str, Any]) -> bool:
                return "deploymentName can't be changed" in resource["status"].get("error", "")

            found = move.kube.wait("FlinkSessionJob", move.name, refused, "refused")
            move.steps.append(f"status.error: {found['status']['error'][:200]}")

        self.run(start("patched"), "deploymentName patched by hand", act)


def _with_gateway(folder: Path, flink: Path) -> Path:
    """A Flink folder with its Gateway in ``opt``, as Flink's images have it."""
    folder.mkdir()
    for name in ("lib", "plugins"):
        (folder / name).symlink_to(flink / name)
    (folder / "opt").mkdir()
    jar = gateway_jar(flink)
    (folder / "opt" / jar.name).symlink_to(jar)
    return folder
