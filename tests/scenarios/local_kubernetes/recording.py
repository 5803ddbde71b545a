"""Takes jobs through what happens to them under Flink's operator, and records what it says of each step.

``python -m tests.scenarios.local_kubernetes.recording [session|interrupted|application]`` writes the resource of each
step into ``tests/fixtures/recorded/operator-<version>/``, and the time of each into ``dev/benchmarks/results/``;
what a session job went through in between is ``session-moments.jsonl``. It takes ten minutes beside the build.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from importlib.resources import as_file
from pathlib import Path
from typing import Any

from kubernetes import client

from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.polling import poll
from airflow_flinkcompat.deploy.targets.jar_run import encode_statements, runner_jar
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.local_flink.processes import choose_ports
from dev.local_kubernetes import flink_operator
from dev.local_kubernetes.cluster import NAMESPACE, LocalKube, LocalKubernetesError
from dev.local_kubernetes.kubelet import ProcessKubelet
from dev.local_kubernetes.resources import (
    Resource,
    application,
    arguments,
    cancelled,
    job_id,
    job_spec,
    mounted_script,
    restored_from,
    runs,
    savepoint_of,
    session_job,
    statements,
    stopped,
    suspended,
)
from dev.local_kubernetes.rigs import create_session
from dev.measure.pairs import home
from dev.services.csv_job import Files
from tests.scenarios.local_kubernetes.following import followed, without
from tests.scenarios.local_kubernetes.service_proxy import behind_service, endpoints

RECORDED = Path(__file__).parents[2] / "fixtures" / "recorded"
RESULTS = Path(__file__).parents[3] / "dev" / "benchmarks" / "results"
_FACT_LENGTH = 400
# A script for the runner: long, and with paths of this machine in it.
_STATEMENTS = re.compile(r"[A-Za-z0-9+/=,]{200,}")
ROWS = [("ann", 1, "00:10"), ("ann", 2, "01:10")]


@dataclass
class Recorder:
    """Keeps resources without this machine's paths, and the seconds that led to each."""

    folder: Path
    hidden: Mapping[str, str]
    seconds: dict[str, float] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[Callable[[Resource], Resource]]:
        """A step; what is given to the value of the ``with`` is recorded, its last value under the step's name."""
        began = time.monotonic()
        last: list[Resource] = []

        def keep(resource: Resource) -> Resource:
            last.append(resource)
            return resource

        yield keep
        self.seconds[name] = time.monotonic() - began
        status = last[-1].get("status", {}) if last else {}
        print(f"{self.seconds[name]:6.1f} s  {name}: {_short(status)}", flush=True)
        if last:
            self.write(name, last[-1])

    def write(self, name: str, resource: Resource) -> None:
        """Record a resource under a name."""
        told = json.dumps(without(resource, {"managedFields"}), indent=1, sort_keys=True)
        self._keep(f"{name}.json", self._shown(told))

    def write_moments(self, name: str, resources: Sequence[Resource]) -> None:
        """Record states of resources in their order, a line each, without the spec that was stable last."""
        lines = (json.dumps(without(each, {"managedFields", "lastStableSpec"}), sort_keys=True) for each in resources)
        self._keep(f"{name}.jsonl", self._shown("\n".join(lines)))

    def _keep(self, name: str, text: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text + "\n", encoding="utf-8")

    def _shown(self, text: str) -> str:
        for hidden, shown in self.hidden.items():
            text = text.replace(hidden, shown)
        return _STATEMENTS.sub(lambda found: f"statements-{sha256(found[0].encode()).hexdigest()[:8]}", text)

    def fact(self, name: str, value: object) -> None:
        """Note what a step showed beside its resource."""
        said = str(value)
        for hidden, shown in self.hidden.items():
            said = said.replace(hidden, shown)
        self.facts[name] = said[:_FACT_LENGTH]
        print(f"          {name}: {said[:_FACT_LENGTH]}", flush=True)


def _short(status: Mapping[str, Any]) -> str:
    job = status.get("jobStatus", {})
    said = {
        "lifecycle": status.get("lifecycleState"),
        "job": job.get("state"),
        "id": job.get("jobId"),
        "manager": status.get("jobManagerDeploymentStatus"),
        "error": (status.get("error") or "")[:160],
    }
    return ", ".join(f"{key} {value}" for key, value in said.items() if value)


def failed(resource: Resource) -> bool:
    """Whether the operator tells an error of it."""
    return bool(resource.get("status", {}).get("error"))


def anything(resource: Resource) -> bool:
    """Whether there is a status: what it is, the record tells."""
    return "status" in resource


@dataclass
class SessionSteps:
    """What happens to a session job."""

    kube: LocalKube
    recorder: Recorder
    jobmanager: JobManager
    jar: str
    files: Files
    name: str = "orders"

    def patch(self, **job: Any) -> None:
        self.kube.patch("FlinkSessionJob", self.name, {"spec": {"job": job}})

    def wait(self, done: Callable[[Resource], bool], what: str, timeout: float = 120, settle: float = 1.0) -> Resource:
        return self.kube.wait("FlinkSessionJob", self.name, done, what, timeout, settle)

    def create(self, **more: Any) -> Resource:
        job = job_spec(arguments(statements(self.files)), self.jar, **more)
        return self.kube.create(session_job(self.name, "session", job))

    def restored(self, resource: Resource) -> str | None:
        return restored_from(self.jobmanager, job_id(resource))

    def stop(self, step: str) -> str:
        with self.recorder.step(step) as keep:
            self.patch(state="suspended", upgradeMode="savepoint")
            found = savepoint_of(keep(self.wait(suspended, "SUSPENDED")))
        assert found is not None
        return found

    def start(self, step: str, savepoint: str | None, **job: Any) -> None:
        with self.recorder.step(step) as keep:
            self.patch(state="running", **job)
            try:
                resource = keep(self.wait(runs, "RUNNING"))
            except LocalKubernetesError:
                resource = keep(self.kube.get("FlinkSessionJob", self.name))
        if runs(resource):
            self.recorder.fact(f"{step}: restored as asked", self.restored(resource) == savepoint)
            return
        self.recorder.fact(f"{step}: runs", False)
        # What always is a way back.
        self.kube.delete("FlinkSessionJob", self.name)
        with self.recorder.step(f"{step}-recreated") as keep:
            self.create(**({"initialSavepointPath": savepoint} if savepoint else {}))
            resource = keep(self.wait(runs, "RUNNING"))
        self.recorder.fact(f"{step}-recreated: restored as asked", self.restored(resource) == savepoint)

    def life(self) -> None:
        """Created, stopped with a savepoint, started from it, and started over from nothing."""
        self.files.arrive("1.csv", ROWS)
        with self.recorder.step("session-created") as keep:
            keep(self.create())
        with self.recorder.step("session-running") as keep:
            resource = keep(self.wait(runs, "RUNNING"))
        self.recorder.fact("session-running: restored from", self.restored(resource))
        savepoint = self.stop("session-suspended")
        self.start("session-running-again", savepoint)
        with self.recorder.step("session-cancelled") as keep:
            self.patch(state="suspended", upgradeMode="stateless")
            keep(self.wait(cancelled, "cancelled"))
        self.start("session-stateless", None, upgradeMode="stateless")
        self.patch(upgradeMode="savepoint")
        with self.recorder.step("session-mode-changed-alone") as keep:
            keep(self.wait(anything, "settled", settle=6))

    def broken(self) -> None:
        """A script that Flink refuses, a state that does not fit, a job that fails, and the way back from each."""
        good = arguments(statements(self.files))
        savepoint = self.stop("session-suspended-before-broken")
        with self.recorder.step("session-broken-script") as keep:
            self.patch(state="running", args=arguments(["INSERT INTO nowhere SELECT 1"]))
            keep(self.wait(failed, "told an error"))
        with self.recorder.step("session-broken-script-later") as keep:
            keep(self.wait(anything, "settled", 90, settle=15))
        self.start("session-way-back-from-broken-script", savepoint, args=good)
        savepoint = self.stop("session-suspended-before-misfit")
        # Another key: the savepoint's state is of an operator that keeps it by other values.
        misfit = statements(self.files, select="'ann', amount, window_start", keys="amount, window_start, window_end")
        with self.recorder.step("session-state-does-not-fit") as keep:
            self.patch(state="running", args=arguments(misfit))
            keep(self.wait(anything, "settled", 90, settle=20))
        with self.recorder.step("session-suspend-of-failed") as keep:
            self.patch(state="suspended", upgradeMode="savepoint")
            keep(self.wait(anything, "settled", 90, settle=15))
        self.start("session-way-back-from-misfit", savepoint, args=good, upgradeMode="savepoint")
        savepoint = self.stop("session-suspended-before-topology")
        plain = [each for each in statements(self.files) if "INSERT" not in each]
        plain.append("INSERT INTO totals SELECT customer, amount, CAST(ts AS TIMESTAMP(3)) FROM orders")
        with self.recorder.step("session-operators-do-not-fit") as keep:
            self.patch(state="running", args=arguments(plain))
            keep(self.wait(failed, "told an error"))
        with self.recorder.step("session-operators-do-not-fit-later") as keep:
            keep(self.wait(anything, "settled", 90, settle=20))
        self.start("session-way-back-from-operators", savepoint, args=good)

    def recreated(self) -> None:
        """Deleted, and created again from a savepoint, or from one that is not there."""
        savepoint = self.stop("session-suspended-before-recreation")
        with self.recorder.step("session-deleted"):
            self.kube.delete("FlinkSessionJob", self.name)
        with self.recorder.step("session-recreated") as keep:
            self.create(initialSavepointPath=savepoint)
            resource = keep(self.wait(runs, "RUNNING"))
        self.recorder.fact("session-recreated: restored as asked", self.restored(resource) == savepoint)
        self.kube.delete("FlinkSessionJob", self.name)
        with self.recorder.step("session-savepoint-missing") as keep:
            self.create(initialSavepointPath=f"{savepoint}-missing")
            keep(self.wait(failed, "told an error"))
        self.kube.delete("FlinkSessionJob", self.name)

    def interrupted(self) -> None:
        """Patched as soon as its stop is told, while the operator writes that down for the second and third time."""
        self.files.arrive("1.csv", ROWS)
        self.create()
        stopped_job = job_id(self.wait(runs, "RUNNING"))
        with self.recorder.step("session-stop-interrupted") as keep:
            self.patch(state="suspended", upgradeMode="savepoint")
            look = partial(self.kube.get, "FlinkSessionJob", self.name)
            poll(look, lambda seen: not suspended(seen), timeout=120, every=0.02)
            self.patch(state="running")
            resource = keep(self.wait(anything, "settled", settle=20))
        self.recorder.fact("session-stop-interrupted: runs", runs(resource))
        said = resource["status"].get("jobStatus", {}).get("jobId")
        self.recorder.fact(
            "session-stop-interrupted: the job that was stopped is taken for its own", said == stopped_job
        )

    def refusals(self) -> None:
        """What the API server itself says to a patch."""
        resource = self.create()
        version = resource["metadata"]["resourceVersion"]
        self.wait(runs, "RUNNING")
        for what, change in {
            "a stale resourceVersion": {"metadata": {"resourceVersion": version}, "spec": {"restartNonce": 1}},
            "a field that the CRD lacks": {"spec": {"job": {"savepointRedeployNonce": 1}}},
            "an unknown state": {"spec": {"job": {"state": "paused"}}},
        }.items():
            try:
                self.kube.patch("FlinkSessionJob", self.name, change)
            except client.ApiException as error:
                self.recorder.fact(f"a patch with {what}", f"HTTP {error.status}: {json.loads(error.body)['message']}")
            else:
                self.recorder.fact(f"a patch with {what}", "was taken")
        before = self.kube.get("FlinkSessionJob", self.name)["metadata"]["generation"]
        self.kube.patch("FlinkSessionJob", self.name, {"metadata": {"annotations": {"flinkcompat/run": "1"}}})
        after = self.kube.get("FlinkSessionJob", self.name)["metadata"]["generation"]
        self.recorder.fact("an annotation raises the generation", before != after)
        self.kube.delete("FlinkSessionJob", self.name)


def record_proxy(recorder: Recorder, kube: LocalKube, flink: LocalFlink, service: str) -> None:
    """What the API server's proxy says of a JobManager behind a Service."""
    core = client.CoreV1Api(kube.api)
    ports = core.read_namespaced_service(service, NAMESPACE).spec.ports
    recorder.fact("the Service's ports", [(port.name, port.port) for port in ports])

    def ask(name: str) -> str:
        try:
            answer = core.connect_get_namespaced_service_proxy_with_path(
                name, NAMESPACE, "overview", _preload_content=False
            )
        except client.ApiException as error:
            return f"HTTP {error.status}: {error.body.decode() if isinstance(error.body, bytes) else error.body}"
        return f"HTTP {answer.status}: {answer.data.decode()}"

    spelled = (f"{service}:{ports[0].name}", f"{service}:{ports[0].port}", service, f"http:{service}:{ports[0].name}")
    recorder.fact("the proxy, with nothing behind the Service", ask(spelled[0]))
    try:
        core.create_namespaced_endpoints(NAMESPACE, endpoints(core, service, "127.0.0.1", 8081, "none"))
    except client.ApiException as error:
        recorder.fact(
            "a loopback address behind the Service", f"HTTP {error.status}: {json.loads(error.body)['message']}"
        )
    with behind_service(kube, service, int(flink.jobmanager_url.rpartition(":")[2])):
        for name in spelled:
            recorder.fact(f"the proxy, to {name}", ask(name))


def record_session(recorder: Recorder, kube: LocalKube, flink: LocalFlink, jar: Path, files: Files) -> None:
    """Every step of session jobs."""
    with recorder.step("session-cluster") as keep:
        keep(create_session(kube, flink))
    record_proxy(recorder, kube, flink, "session-rest")
    with JobManager(flink.jobmanager_url) as jobmanager:
        steps = SessionSteps(kube, recorder, jobmanager, jar.as_uri(), files)
        steps.life()
        steps.broken()
        steps.recreated()
        steps.refusals()


def record_application(
    recorder: Recorder, kube: LocalKube, kubelet: ProcessKubelet, folder: Path, files: Files
) -> None:
    """Every step of an application cluster."""
    name, kind = "app", "FlinkDeployment"
    files.arrive("1.csv", ROWS)
    core = client.CoreV1Api(kube.api)
    script = {"metadata": {"name": "app-sql"}, "data": {"script": encode_statements(statements(files))}}
    core.create_namespaced_config_map(NAMESPACE, script)
    (port,) = choose_ports({"the JobManager": None}).values()
    job = job_spec(["--scriptUri", "file:///opt/flink/sql/script"], "local:///opt/flink/usrlib/runner.jar")

    def wait(done: Callable[[Resource], bool], what: str, timeout: float = 240, settle: float = 1.0) -> Resource:
        kubelet.check()
        return kube.wait(kind, name, done, what, timeout, settle)

    def patch(**changes: Any) -> None:
        kube.patch(kind, name, {"spec": {"job": changes}})

    def restored(resource: Resource) -> str | None:
        with JobManager(f"http://127.0.0.1:{port}") as jobmanager:
            return restored_from(jobmanager, job_id(resource))

    def create(**more: Any) -> Resource:
        return kube.create(
            application(name, {**job, **more}, port, folder, mounted_script("app-sql", "/opt/flink/sql"))
        )

    with recorder.step("application-created") as keep:
        keep(create())
    with recorder.step("application-running") as keep:
        resource = keep(wait(runs, "RUNNING"))
    recorder.fact("application-running: restored from", restored(resource))
    with recorder.step("application-suspended") as keep:
        patch(state="suspended", upgradeMode="savepoint")
        savepoint = savepoint_of(keep(wait(stopped, "SUSPENDED, its JobManager gone")))
    with recorder.step("application-running-again") as keep:
        patch(state="running")
        resource = keep(wait(runs, "RUNNING"))
    recorder.fact("application-running-again: restored as asked", restored(resource) == savepoint)
    with recorder.step("application-suspended-before-broken") as keep:
        patch(state="suspended")
        savepoint = savepoint_of(keep(wait(stopped, "SUSPENDED, its JobManager gone")))
    # With it, Flink submits a job that has failed in the place of a script that is refused, and stays.
    told = "execution.submit-failed-job-on-application-error"
    for step, value in (("application-broken-script", "true"), ("application-crash-loop", "false")):
        broken = {"state": "running", "args": arguments(["INSERT INTO nowhere SELECT 1"])}
        with recorder.step(step) as keep:
            kube.patch(kind, name, {"spec": {"flinkConfiguration": {told: value}, "job": broken}})
            keep(wait(lambda resource: failed(resource) or runs(resource), "told an error"))
        with recorder.step(f"{step}-suspended") as keep:
            patch(state="suspended", upgradeMode="stateless")
            keep(wait(anything, "settled", settle=10))
        with recorder.step(f"{step}-way-back") as keep:
            patch(state="running", upgradeMode="savepoint", args=arguments(statements(files)))
            resource = keep(wait(anything, "settled", settle=25))
        recorder.fact(f"{step}-way-back: runs", runs(resource))
        if runs(resource):
            recorder.fact(f"{step}-way-back: restored as asked", restored(resource) == savepoint)
        # What always is a way back.
        kube.delete(kind, name)
        with recorder.step(f"{step}-recreated") as keep:
            create(initialSavepointPath=savepoint)
            resource = keep(wait(runs, "RUNNING"))
        recorder.fact(f"{step}-recreated: restored as asked", restored(resource) == savepoint)
    with recorder.step("application-cancelled") as keep:
        patch(state="suspended", upgradeMode="stateless")
        keep(wait(stopped, "SUSPENDED, its JobManager gone"))
    with recorder.step("application-deleted"):
        kube.delete(kind, name)
    with recorder.step("application-recreated") as keep:
        create(initialSavepointPath=savepoint)
        resource = keep(wait(runs, "RUNNING"))
    recorder.fact("application-recreated: restored as asked", restored(resource) == savepoint)
    kube.delete(kind, name)


def write_results(recorder: Recorder, kind: str, version: str) -> Path:
    """The seconds of each step, and the facts, as a dated page."""
    today = datetime.now(UTC).date().isoformat()
    rows = "".join(f"| {name} | {seconds:.1f} |\n" for name, seconds in recorder.seconds.items())
    facts = "".join(f"* {name}: {value}\n" for name, value in recorder.facts.items())
    page = RESULTS / f"kubernetes-operator-{version}-{kind}-{today}.md"
    page.write_text(
        f"# Flink Kubernetes Operator {version}, {kind}, {today}\n\n"
        f"On the local Kubernetes of the tests, with Flink 1.20.3 and Python {platform.python_version()}. A step ends "
        "when the status has said so for a second; the operator looks every 1 to 2 s, not every 15 to 60 s as it does "
        f"by default.\n\n| step | seconds |\n|---|---|\n{rows}\n{facts}",
        encoding="utf-8",
    )
    return page


def main(options: Sequence[str] | None = None) -> int:
    """Record every step."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("kinds", nargs="*", choices=(*KINDS, []), default=list(KINDS), help="a part alone")
    kinds = parser.parse_args(options).kinds
    flink_home = home("1.20")
    with as_file(runner_jar()) as jar:
        for kind in kinds:
            with tempfile.TemporaryDirectory(prefix="flinkcompat-kubernetes-") as work:
                hidden = {work: "/recorded", str(jar): "/recorded/runner.jar"}
                recorder = Recorder(RECORDED / f"operator-{flink_operator.VERSION}", hidden)
                KINDS[kind](recorder, Path(work), flink_home, jar)
            print(write_results(recorder, kind, flink_operator.VERSION))
    return 0


def session(recorder: Recorder, work: Path, flink_home: Path, jar: Path) -> None:
    """Session jobs, on a Kubernetes and a Flink of their own."""
    with LocalFlink(work / "flink", home=flink_home) as flink, LocalKube(work / "kube") as kube:
        kube.start_operator()
        with followed(kube, "flinksessionjobs") as moments:
            record_session(recorder, kube, flink, jar, Files(work / "session"))
    recorder.write_moments("session-moments", moments)


def interrupted(recorder: Recorder, work: Path, flink_home: Path, jar: Path) -> None:
    """A session job whose stop is interrupted, on a Kubernetes and a Flink of its own."""
    with LocalFlink(work / "flink", home=flink_home) as flink, LocalKube(work / "kube") as kube:
        kube.start_operator()
        create_session(kube, flink)
        with JobManager(flink.jobmanager_url) as jobmanager:
            SessionSteps(kube, recorder, jobmanager, jar.as_uri(), Files(work / "session")).interrupted()


def applications(recorder: Recorder, work: Path, flink_home: Path, jar: Path) -> None:
    """Application clusters, on a Kubernetes of their own."""
    images = {"/opt/flink/usrlib/runner.jar": jar}
    with LocalKube(work / "kube", controllers=True) as kube, ProcessKubelet(kube, flink_home, images) as kubelet:
        kube.start_operator()
        record_application(recorder, kube, kubelet, work / "application", Files(work / "files"))


KINDS: Mapping[str, Callable[[Recorder, Path, Path, Path], None]] = {
    "session": session,
    "interrupted": interrupted,
    "application": applications,
}


if __name__ == "__main__":
    raise SystemExit(main())
