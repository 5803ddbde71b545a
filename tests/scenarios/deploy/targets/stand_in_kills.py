"""Cases of the matrix of kills over the stand-ins of the platforms, each of which has a server of its own here."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, Protocol

from airflow_flinkcompat.deploy import Options, deploy
from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry
from airflow_flinkcompat.deploy.targets import OpenTarget
from airflow_flinkcompat.deploy.targets.aws import ManagedFlinkTarget
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import Manifest
from airflow_flinkcompat.deploy.targets.kubernetes.resource import FILES
from airflow_flinkcompat.deploy.targets.realtime_compute import RealtimeComputeTarget
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.testing.target_contract import CHANGED, MISFIT, SCRIPT, SETTINGS
from tests.scenarios.deploy.kill_cases import OWNER, Case, Scenario
from tests.scenarios.deploy.kills import Attempt, Calls, Sent, Told
from tests.support.deploy.targets import realtime_compute_stand_in as realtime_compute
from tests.support.deploy.targets.aws_account import Account
from tests.support.deploy.targets.aws_stand_in import MemoryJobs, StandIn
from tests.support.deploy.targets.kubernetes_deployments import APPLICATION, SESSION, connected
from tests.support.deploy.targets.kubernetes_stand_in import Flink, FlinkJob, KubernetesStandIn, schemas, serving

OPTIONS = Options(settle_seconds=0, submit_timeout=90, start_timeout=90, stop_timeout=90)
# One that no Flink takes, with state or without.
REFUSED = SCRIPT.replace("SELECT n, COUNT(*)", "SELECT n, COUNT(*) + 2")
_REASON = "org.apache.flink.table.api.ValidationException: there is no function +"

Starts = list[tuple[str, str | None]]


@dataclass(frozen=True)
class StandInScenario(Scenario):
    """``script``: what is proposed. ``starts``: the jobs that are made of it, each with state or without.

    ``way``: in which way the platform is set up, where there are several.
    """

    script: str = CHANGED
    starts: tuple[tuple[str, bool], ...] = ((CHANGED, True),)
    way: str = ""


@dataclass(frozen=True)
class Seen:
    """What a platform has seen of a deployment.

    ``starts``: the script and the state of every job that it made, in order; ``savepoints``: every one that it took;
    ``running``: how many jobs run; ``left``: what is left over.
    """

    starts: Starts
    savepoints: list[str]
    running: int
    left: list[str]


class Platform(Protocol):
    """A stand-in of a platform, with one deployment. ``open``: opens the target of it, in any process."""

    open: Callable[[], OpenTarget]

    def seen(self) -> Seen:
        """What it has seen of the deployment."""


@dataclass
class PlatformKind:
    """A platform: how its stand-in is served for a name and a way, how its requests are named, and its engine.

    ``keeps_refused``: a script that Flink refuses is a job all the same, which has failed.
    """

    served: Callable[[str, str], AbstractContextManager[Platform]]
    calls: type[Calls]
    engine: str = "flink"
    keeps_refused: bool = False


@dataclass
class StandInCase(Case[StandInScenario, Any]):
    """A case over a stand-in of its own."""

    kind: PlatformKind = field(kw_only=True)

    @contextmanager
    def staged(self) -> Iterator[Any]:
        with self.kind.served(self.name, self.scenario.way) as self.platform, self.platform.open() as target:
            yield target

    def _job(self, script: str) -> JobSpec:
        return JobSpec(script, SETTINGS, engine=self.kind.engine, source="orders.sql")

    def deployed(self, target: Any) -> DeployedEntry | None:
        if self.scenario.first:
            return None
        script = self._job(SCRIPT)
        return deploy(target, self.ledger, script, checked_old_sha256=None, owner="an earlier run", options=OPTIONS)

    def attempt(self, first: DeployedEntry | None) -> Attempt:
        mode = self.scenario.start_mode
        return Attempt(
            self.platform.open,
            self.root / "ledger",
            self.name,
            self._job(self.scenario.script),
            mode,
            first.sha256 if first else None,
            OWNER,
            OPTIONS,
            "incompatible" if mode == "stateless" else "compatible",
            self.kind.calls,
        )

    def savepoints(self) -> list[str]:
        return self.platform.seen().savepoints

    def check_platform(self, target: Any, told: Told) -> None:
        """Just the jobs that an undisturbed run makes, each from the one savepoint or from none."""
        seen = self.platform.seen()
        before: Starts = [] if self.scenario.first else [(SCRIPT, None)]
        savepoint = seen.savepoints[0] if seen.savepoints else None
        refused = [(REFUSED, True)] * (self.kind.keeps_refused and self.scenario.script == REFUSED)
        wanted = [(script, savepoint if stateful else None) for script, stateful in (*refused, *self.scenario.starts)]
        assert seen.starts == before + wanted, f"{len(seen.starts)} jobs were made: {_short(seen.starts)}"
        assert seen.running == 1, f"{seen.running} jobs run"
        assert seen.left == [], f"left over: {seen.left}"


def _short(starts: Starts) -> str:
    names = {SCRIPT: "former", CHANGED: "changed", MISFIT: "misfit", REFUSED: "refused"}
    return ", ".join(f"{names[script]} from {savepoint}" for script, savepoint in starts)


# ---------------------------------------------------------------------------------------------------------- Kubernetes
class KubernetesCalls(Calls):
    """Of the API server, and through its proxy of a JobManager."""

    effects = r"(POST|PATCH|DELETE) (flink|configmaps|secrets)(?!.*dry run)"
    looks = r"GET (flink|configmaps)|GET JobManager /jobs/\*/checkpoints"

    def name(self, sent: Sent) -> str:
        """Method and kind, of a file what it is for; a page of the JobManager by its path."""
        path, _, query = sent.path.partition("?")
        if "/proxy/" in path:
            return f"{sent.method} JobManager {re.sub('[0-9a-f]{32}', '*', path.partition('/proxy')[2])}"
        found = re.search(r"/namespaces/[^/]+/(\w+)(?:/([^/]+))?$", path)
        assert found, path
        name = found[2] or (json.loads(sent.body())["metadata"]["name"] if sent.method == "POST" else "")
        file = " next" if name.endswith("-flinkcompat-next") else " script" if "-sql-" in name else ""
        return f"{sent.method} {found[1]}{file}{' (dry run)' if 'dryRun=All' in query else ''}"


class _Cluster(Flink):
    """Keeps every start; the script ``MISFIT`` takes no state of others."""

    def __init__(self, name: str) -> None:
        super().__init__(refuses={REFUSED: _REASON})
        self.name = name
        self.starts: Starts = []

    def submit(self, spec: Mapping[str, Any], savepoint: str | None) -> FlinkJob:
        script = self._script(spec)
        if script == MISFIT:
            self.misfits.add(self.name)
        job = super().submit(spec, savepoint)
        self.starts.append((script, savepoint))
        return job


_FILES = APPLICATION.replace("{script}", "{script_uri}").replace("--script", "--scriptUri")
_MANIFESTS = {"": {"session_cluster": "session"}, "applications": {"manifest": _FILES}}


def _open_kubernetes(url: str, way: str) -> OpenTarget:
    return connected(KubernetesStandIn(url=url), Manifest.of(_MANIFESTS[way], "the matrix"))


_READ = Lock()


class _Kubernetes:
    def __init__(self, stand_in: KubernetesStandIn, cluster: _Cluster, name: str, way: str) -> None:
        self._stand_in, self._cluster, self._name = stand_in, cluster, name
        self.open: Callable[[], OpenTarget] = partial(_open_kubernetes, stand_in.url, way)

    @classmethod
    @contextmanager
    def served(cls, name: str, way: str) -> Iterator[_Kubernetes]:
        with _READ:  # once, and not in as many threads as there are cases
            schemas("1.10")
        cluster = _Cluster(name)
        stand_in = KubernetesStandIn(flink=cluster)
        cluster.files = stand_in.objects
        stand_in.objects["flinkdeployments", "session"] = SESSION
        with serving(stand_in):
            yield cls(stand_in, cluster, name, way)

    def seen(self) -> Seen:
        own = next(each for (_, name), each in self._stand_in.objects.items() if name == self._name)
        notes = json.loads(own["metadata"]["annotations"].get(FILES, "{}")).get("names", [])
        kept = [f"{plural}/{name}" for plural, name in self._stand_in.objects if plural in ("configmaps", "secrets")]
        running = sum(job.state == "RUNNING" for job in self._cluster.jobs.values())
        left = [each for each in kept if each not in notes]
        return Seen(self._cluster.starts, self._cluster.savepoints, running, left)


# ----------------------------------------------------------------------------------------------------------------- AWS
class AwsCalls(Calls):
    """By operation."""

    effects = r"(Start|Stop|Update|Create|Delete)Application"
    looks = r"Describe|List"

    def name(self, sent: Sent) -> str:
        """The operation; of a stop also whether it is one by force."""
        operation = sent.headers["x-amz-target"].rpartition(".")[2]
        force = operation == "StopApplication" and json.loads(sent.body()).get("Force")
        return f"{operation}{' (force)' if force else ''}"


class _Applications(MemoryJobs):
    """The script ``MISFIT`` takes no state of others, and nobody takes ``REFUSED``."""

    def start(self, name: str, script: str, settings: Mapping[str, str], savepoint: str | None) -> str:
        if script == REFUSED:
            raise DeployError(_REASON)
        if script == MISFIT:
            self.refuses.add(name)
        return super().start(name, script, settings, savepoint)


def _open_aws(url: str, way: str) -> OpenTarget:
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_MAX_ATTEMPTS": "3" if way else "1",
        "AWS_RETRY_MODE": "standard",
    }
    jobs = MemoryJobs()
    return ManagedFlinkTarget.connect(Account(StandIn(jobs, url=url), jobs).access())


class _Aws:
    def __init__(self, account: Account, name: str, way: str) -> None:
        self._account, self._name = account, name
        self.open: Callable[[], OpenTarget] = partial(_open_aws, account.server.url, way)

    @classmethod
    @contextmanager
    def served(cls, name: str, way: str) -> Iterator[_Aws]:
        jobs = _Applications()
        with StandIn(jobs).serving() as server:
            account = Account(server, jobs)
            account.create(name)
            yield cls(account, name, way)

    def seen(self) -> Seen:
        app, jobs = self._account.server.apps[self._name], self._account.jobs
        names = {snap.savepoint: f"{self._name}/{snap.name}" for snap in app.snaps}
        starts = [(script, savepoint and names[savepoint]) for _, script, savepoint in jobs.started]
        running = sum(state == "running" for state in jobs.jobs.values())
        stops = [op.status for op in app.ops if op.kind == "StopApplication"]
        left = [f"StopApplication {status}" for status in stops[1:] + [each for each in stops if each == "FAILED"]]
        return Seen(starts, [*names.values()], running, left)


# ---------------------------------------------------------------------------------------------------- Realtime Compute
class RealtimeComputeCalls(Calls):
    """By action."""

    effects = r"(Create|Update|Delete)Deployment|StartJob|StopJob|CreateSavepoint"
    looks = r"Get|List|FlinkApiProxy"

    def name(self, sent: Sent) -> str:
        """The action."""
        return sent.headers["x-acs-action"]


class _Workspace(realtime_compute.InMemory):
    """The script ``MISFIT`` takes no state of others, and nobody takes ``REFUSED``."""

    def start(self, job_id: str, name: str, script: str, conf: Mapping[str, str], savepoint: str | None) -> None:
        if script == MISFIT:
            self.refuses.add(name)
        super().start(job_id, name, script, conf, savepoint)
        if script == REFUSED:
            self.jobs[job_id].seen = realtime_compute.Seen("FAILED", _REASON)


def _open_realtime_compute(url: str) -> OpenTarget:
    target = RealtimeComputeTarget.connect(realtime_compute.access(url))
    target.settle_seconds = 0.2  # its stand-in lists a savepoint at once
    return target


class _RealtimeCompute:
    def __init__(self, service: realtime_compute.Service, url: str) -> None:
        self._service = service
        self.open: Callable[[], OpenTarget] = partial(_open_realtime_compute, url)

    @classmethod
    @contextmanager
    def served(cls, name: str, way: str) -> Iterator[_RealtimeCompute]:
        service = realtime_compute.Service(_Workspace())
        with realtime_compute.serving(service) as url:
            yield cls(service, url)
        assert service.faults == []

    def seen(self) -> Seen:
        service, starts = self._service, Starts()
        for job in service.jobs.values():
            starts.append((job["artifact"]["sqlArtifact"]["sqlScript"], job["restoreStrategy"].get("savepointId")))
        states = [service.get_job(each)["status"]["currentJobStatus"] for each in service.jobs]
        running = sum(state in ("STARTING", "RUNNING") for state in states)
        left = [each["name"] for each in service.deployments.values()][1:]
        return Seen(starts, [*service.savepoints], running, left)


KINDS: Mapping[str, PlatformKind] = {
    "kubernetes": PlatformKind(_Kubernetes.served, KubernetesCalls),
    "aws": PlatformKind(_Aws.served, AwsCalls),
    "realtime-compute": PlatformKind(_RealtimeCompute.served, RealtimeComputeCalls, "vvr", keeps_refused=True),
}
