"""One deployment on the real operator, its files and the rows that are right, and ways to harm its redeploy."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client
from kubernetes.client.rest import RESTClientObject

from airflow_flinkcompat.deploy import DeployError, Ledger, Options, deploy
from airflow_flinkcompat.deploy.flink.polling import poll
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, HeadEntry, Review, StoppedEntry
from airflow_flinkcompat.deploy.redeploy.planning import Planned, plan_change, record_carried_out
from airflow_flinkcompat.deploy.targets.kubernetes.target import KubernetesTarget
from airflow_flinkcompat.model import JobSpec
from dev.local_kubernetes.cluster import NAMESPACE
from dev.local_kubernetes.resources import Resource
from dev.local_kubernetes.rigs import Place, Rig
from dev.services.csv_job import SETTINGS, Files, wait_for
from tests.scenarios.deploy.scenarios import FILES, SCENARIOS, TOTALS, Scenario

OPTIONS = Options(settle_seconds=0.5, start_timeout=300, stop_timeout=300)
PATIENCE = 600.0
_LOOKS = 5


def scenario(name: str) -> Scenario:
    """One of :mod:`tests.scenarios.deploy.scenarios`, by its name."""
    return next(each for each in SCENARIOS if each.name == name)


SUCCEEDS = scenario("succeeds")


@dataclass
class Stage:
    """A deployment of its own name; ``owner`` is the run whose retry takes up what it began."""

    rig: Rig
    root: Path
    name: str
    owner: str = "worker"
    looks: int = field(default=0)

    def __post_init__(self) -> None:
        self.files = Files(self.root / self.name)
        self.ledger = Ledger(self.root / "ledger", self.name)

    def target(self) -> KubernetesTarget:
        """The target, which counts how often what became of a request or a job was looked at."""
        target = self.rig.place.target()
        target.poll = self._counted(target.poll)  # type: ignore[method-assign]
        target.status = self._counted(target.status)  # type: ignore[method-assign]
        return target

    def _counted(self, look: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any) -> Any:
            self.looks += 1
            return look(*given)

        return counted

    @property
    def former(self) -> JobSpec:
        """The windowed job that runs before."""
        return self.proposed(SUCCEEDS, SETTINGS)

    def proposed(self, of: Scenario = SUCCEEDS, settings: dict[str, str] | None = None) -> JobSpec:
        """What a scenario deploys, checked for whatever Flink is there."""
        side = replace(of.proposed(self.files), engine_version=None)
        return side if settings is None else replace(side, settings=settings)

    def deploy(self, side: JobSpec, **more: Any) -> DeployedEntry:
        """One try of the run."""
        head = self.ledger.head()
        given = {
            "checked_old_sha256": head.sha256 if head else None,
            "owner": self.owner,
            "options": OPTIONS,
            "review": Review("compatible"),
            **more,
        }
        with self.target() as target:
            return deploy(target, self.ledger, side, **given)

    def created(self, side: JobSpec | None = None) -> DeployedEntry:
        """The first start, with an open window in its state."""
        self.files.arrive("before", FILES["before"])
        entry = self.deploy(side or self.former, owner="an earlier run")
        wait_for(lambda: self.files.rows() == TOTALS["before"], "minute 0 is written", PATIENCE)
        self.files.arrive("while it runs", FILES["while it runs"])
        return entry

    def resource(self) -> Resource:
        """Its resource."""
        return self.rig.kube.get(self.rig.kind, self.name)

    def fails(self, side: JobSpec, error: type[DeployError], **more: Any) -> str:
        """What a redeploy says that ends in this error."""
        try:
            entry = self.deploy(side, **more)
        except error as failed:
            said = str(failed)
            assert "\tat " not in said, said
            return said
        raise AssertionError(f"it came to {entry.kind}, not to {error.__name__}")

    def plan(self, side: JobSpec) -> Planned:
        """What a repository is to hold so that this runs; nothing is touched."""
        head = self.ledger.head()
        with self.target() as target:
            return plan_change(
                target, self.ledger, side, checked_old_sha256=head.sha256 if head else None, owner=self.owner
            )

    def merge(self, documents: str) -> None:
        """As Argo CD or Flux applies what was merged: what is there keeps whatever its repository does not name."""
        for each in yaml.safe_load_all(documents):
            if each["kind"] == "ConfigMap":
                client.CoreV1Api(self.rig.kube.api).create_namespaced_config_map(NAMESPACE, each)
            else:
                self.rig.kube.patch(each["kind"], each["metadata"]["name"], each)

    def recorded(self) -> DeployedEntry | None:
        """What the next run records of the plans; it waits for the job of one that was merged."""
        with self.target() as target:
            return record_carried_out(target, self.ledger, owner=self.owner, options=OPTIONS)

    def check(self, of: Scenario = SUCCEEDS, stops: int = 1) -> HeadEntry:
        """One job runs, from where the ledger says; no savepoint is lost, the ledger has no gap, the rows are right.

        Args:
            of: Whose rows they are.
            stops: How many stops with a savepoint there were.
        """
        entries = self.ledger.entries()
        assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
        assert not [entry for entry in entries if entry.passes_over]
        left = [entry.stop.savepoint for entry in entries if isinstance(entry, StoppedEntry)]
        assert len(left) == stops, f"{len(left)} stops"
        for savepoint in left:
            assert (Path(str(savepoint).removeprefix("file:")) / "_metadata").is_file(), f"{savepoint} is lost"
        head = self.ledger.head()
        assert head is not None
        with self.target() as target:
            assert target.running(self.name) == (head.job_id,)
            began_empty = head.start.start_mode == "stateless"
            assert target.restored_from(head.start.job_ref).snapshot == (None if began_empty else head.start.savepoint)
        jobs = self.rig.flink_jobs(self.name)
        assert len(jobs) == 1, f"{len(jobs)} jobs run by Flink's word"
        self.check_rows(of)
        return head

    def check_rows(self, of: Scenario = SUCCEEDS) -> None:
        """What the job writes from here to the end is right, and so is what was written before."""
        early = sorted(row for name, rows in of.rows.items() for row in rows if name != "after")
        late = of.rows["after"]
        self.files.arrive("while nobody deploys", FILES["while nobody deploys"])
        wait_for(lambda: len(self.files.rows()) >= len(early), "what arrived before is written", PATIENCE)
        self.files.arrive("after", FILES["after"])
        wait_for(lambda: len(self.files.rows()) >= len(early + late), "all is written", PATIENCE)
        assert self.files.rows() == sorted(early + late)

    # ---------------------------------------------------------------------------------------------------------- harm
    def without_operator(self, side: JobSpec, moment: Callable[[], bool], **more: Any) -> DeployedEntry:
        """A redeploy during which the operator is killed at a moment, and started again when the run has waited.

        Raises DeployError, as the redeploy does.
        """
        with ThreadPoolExecutor(1) as pool:
            run = pool.submit(self.deploy, side, **more)
            poll(lambda: run.done() or moment(), lambda over: not over, timeout=PATIENCE, every=0.01)
            assert not run.done(), f"the moment never came: {run.result()}"
            self.rig.kube.kill_operator()
            seen = self.looks
            wait_for(lambda: run.done() or self.looks >= seen + _LOOKS, "the run waits", PATIENCE)
            self.rig.kube.start_operator()
            return run.result(PATIENCE)

    def at_once(self, side: JobSpec, runs: int = 2) -> list[str]:
        """What so many runs come to that deploy at the same time: the kinds of entries, and classes of errors."""
        together = threading.Barrier(runs)
        head = self.ledger.head()

        def run(number: int) -> str:
            together.wait()
            try:
                checked = head.sha256 if head else None
                return self.deploy(side, owner=f"run {number}", checked_old_sha256=checked).kind
            except DeployError as error:
                return type(error).__name__

        with ThreadPoolExecutor(runs) as pool:
            return sorted(pool.map(run, range(runs)))

    def killed(self, side: JobSpec, at: Point | None, mode: str) -> tuple[Point, ...]:
        """A redeploy in a process of its own, killed (SIGKILL) at a point; the points that it went through.

        Without a point it is let be.
        """
        head = self.ledger.head()
        told = self.root / f"{self.name}.json"
        attempt = Attempt(
            self.rig.place, self.root / "ledger", self.name, side, mode, head.sha256 if head else None, self.owner
        )
        process = multiprocessing.get_context("forkserver").Process(target=attempt.run, args=(at, told))
        process.start()
        process.join(PATIENCE)
        expected = 0 if at is None else -signal.SIGKILL
        assert process.exitcode == expected, f"it ended by {process.exitcode}"
        if at is not None:
            return ()
        return tuple(Point(*row) for row in json.loads(told.read_text("utf-8")))


@dataclass(frozen=True)
class Point:
    """Before or after the ``number``-th write to the API server; ``call`` says which that is."""

    number: int
    call: str
    after: bool

    def __str__(self) -> str:
        return f"{'after' if self.after else 'before'} write {self.number}, {self.call}"


@dataclass(frozen=True)
class Attempt:
    """One call of ``deploy``, in words that another process can be given."""

    place: Place
    ledger: Path
    name: str
    side: JobSpec
    mode: str
    checked: str | None
    owner: str

    def run(self, at: Point | None, told: Path) -> None:
        """Deploy; kill this process at a point, or tell all points in a file."""
        seen: list[Point] = []

        def reach(point: Point) -> None:
            if at is not None and (point.number, point.after) == (at.number, at.after):
                os.kill(os.getpid(), signal.SIGKILL)
            seen.append(point)

        send = RESTClientObject.request

        def request(client: Any, method: str, url: str, query_params: Any = None, **more: Any) -> Any:
            if method == "GET" or "dryRun" in f"{url}{query_params}":
                return send(client, method, url, query_params=query_params, **more)
            place = url.partition("?")[0].rpartition("/namespaces/")[2].split("/")
            point = Point(len(seen) // 2 + 1, f"{method} {place[1]}", after=False)
            reach(point)
            answer = send(client, method, url, query_params=query_params, **more)
            reach(replace(point, after=True))
            return answer

        RESTClientObject.request = request
        with self.place.target() as target:
            try:
                deploy(
                    target,
                    Ledger(self.ledger, self.name),
                    self.side,
                    start_mode=self.mode,
                    checked_old_sha256=self.checked,
                    review=Review("compatible" if self.mode == "savepoint" else "incompatible"),
                    owner=self.owner,
                    options=OPTIONS,
                )
            except DeployError as error:
                print(f"{self.name}: {type(error).__name__}: {error}", flush=True)
        told.write_text(json.dumps([[each.number, each.call, each.after] for each in seen]), "utf-8")
