"""Downtime of a redeployed job, compared with raw REST calls or with the upgrade of Flink's operator.

Timed is, by the cluster's own clock, from the last row of the old job (the largest of the times that its query writes
into every row it emits, one each 20 ms) to the first checkpoint that the new one completed. Ours is ``deploy`` with
everything it does in between: the ledger's entries, the looks that make a retry possible, the stop's result. The raw
calls are a script of a few lines: stop, wait for the savepoint, a session, the statements, the job from the savepoint.
The operator's own upgrade is one patch of ``args``, with ``state: running`` and ``upgradeMode: savepoint``; ours
on Kubernetes has two phases, suspended with a savepoint and started from exactly that one. Both take turns on one
Flink, or on one local Kubernetes with the real operator, with a job of the same query each. A ratio of 1 would be a
redeploy that costs no additional downtime.
"""

from __future__ import annotations

import csv
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import as_file
from itertools import count
from pathlib import Path
from time import sleep
from typing import Any

import httpx

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy import JobRef, Ledger, Options, deploy
from airflow_flinkcompat.deploy.flink.polling import poll
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.deploy.targets.jar_run import encode_statements, runner_jar
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.model import JobSpec
from dev.local_kubernetes.flink_operator import VERSION
from dev.local_kubernetes.resources import job_spec, runs, session_job
from dev.local_kubernetes.rigs import Rig, session_rig
from dev.measure.pairs import home
from dev.tools import benchmark_parser, publish

RATIO_GOAL = 1.2
# A cumulating window emits its rows at every step, even without new rows (datagen emits once a second).
JOB = (
    "INSERT INTO totals SELECT SUM(amount), CAST(CURRENT_ROW_TIMESTAMP() AS STRING)\n"
    "FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(seen), INTERVAL '0.02' SECOND, INTERVAL '1' HOUR))\n"
    "GROUP BY window_start, window_end"
)
SETTINGS = {"parallelism.default": "1", "execution.checkpointing.interval": "1 s", "table.local-time-zone": "UTC"}
_LOOK_SECONDS = 0.02
_KIND = "FlinkSessionJob"
_SECONDS = 300.0
_NOTES = """\
Milliseconds since the last row of the old job; Flink 2.3.0 on one machine, {load}.
`make bench-downtime` makes this file.
"""
_KUBERNETES_NOTES = f"""\
Milliseconds since the last row of the old job; session jobs of Flink 1.20.3 on a local Kubernetes (API server 1.34.4)
with Flink's operator {VERSION}, on one machine, {{load}}. The operator looks every 1 to 2 s here, at once where a
resource changes; by default it looks every 15 to 60 s and at most five times in 15 s for one resource, so that the
second patch of a redeploy may wait there. `make bench-downtime BENCH_ARGS=--kubernetes` makes this file.
"""


@dataclass(frozen=True)
class Downtime:
    """Milliseconds from the old job's last row to its end, to the new job's creation and first checkpoint."""

    ended: float
    created: float
    proven: float


@dataclass(frozen=True)
class Job:
    """A script to run, with the job's name and a separate output folder."""

    name: str
    folder: Path

    @property
    def setup(self) -> tuple[str, ...]:
        return (
            "CREATE TABLE orders (amount BIGINT, seen AS PROCTIME()) WITH "
            "('connector' = 'datagen', 'rows-per-second' = '200')",
            "CREATE TABLE totals (total BIGINT, emitted STRING) WITH "
            f"('connector' = 'filesystem', 'path' = '{self.folder.as_uri()}', 'format' = 'csv')",
        )

    def last_row(self, before: float) -> float:
        """Time of the last row that was emitted before ``moment``, both in milliseconds since the epoch."""
        committed = (path for path in self.folder.iterdir() if path.is_file() and path.name[0] not in "._")
        emitted = (
            datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp() * 1000
            for path in committed
            for _, time in csv.reader(path.read_text("utf-8").splitlines())
        )
        return max(moment for moment in emitted if moment < before)


class Cluster:
    """Redeploy with raw REST calls, like a small script."""

    def __init__(self, jobmanager_url: str, gateway_url: str = "") -> None:
        self._client = httpx.Client(timeout=60, trust_env=False)
        self._jobs, self._gateway = f"{jobmanager_url}/jobs", f"{gateway_url}/v2/sessions"

    def call(self, method: str, address: str, body: Any = None) -> Any:
        return self._client.request(method, address, json=body).raise_for_status().json()

    def until(self, look: Callable[[], Any]) -> Any:
        while not (found := look()):
            sleep(_LOOK_SECONDS)
        return found

    def start(self, job: Job, savepoint: str | None = None) -> str:
        """The job's id, once it is accepted."""
        return self.submit([*job.setup, JOB], {**SETTINGS, "pipeline.name": job.name}, savepoint)

    def submit(self, statements: Sequence[str], settings: Mapping[str, str], savepoint: str | None) -> str:
        """The id of the last statement's job, once it is accepted."""
        session = f"{self._gateway}/{self.call('POST', self._gateway, {'properties': settings})['sessionHandle']}"
        config = {"execution.state-recovery.path": savepoint} if savepoint else {}
        *before, insert = statements
        for statement in before:
            self._execute(session, statement, {})
        job_id = self._execute(session, insert, config)
        self.call("DELETE", session)
        return job_id

    def _execute(self, session: str, statement: str, config: dict[str, str]) -> str:
        body = {"statement": statement, "executionConfig": config}
        operation = f"{session}/operations/{self.call('POST', f'{session}/statements', body)['operationHandle']}"

        def ready() -> Any:
            page = self.call("GET", f"{operation}/result/0?rowFormat=JSON")
            return page if page["resultType"] != "NOT_READY" else None

        return str(self.until(ready).get("jobID"))

    def stop(self, job_id: str) -> str:
        """The savepoint, once the job has ended."""
        trigger = self.call("POST", f"{self._jobs}/{job_id}/stop", {"drain": False})["request-id"]

        def completed() -> Any:
            answer = self.call("GET", f"{self._jobs}/{job_id}/savepoints/{trigger}")
            return answer["operation"] if answer["status"]["id"] == "COMPLETED" else None

        savepoint = str(self.until(completed)["location"])
        self.until(lambda: self.call("GET", f"{self._jobs}/{job_id}/status")["status"] == "FINISHED")
        return savepoint

    def first_checkpoint(self, job_id: str) -> float:
        """Completion time of the checkpoint (milliseconds since the epoch); waits for it."""

        def done() -> Any:
            history = self.call("GET", f"{self._jobs}/{job_id}/checkpoints")["history"]
            return [row for row in history if row["status"] == "COMPLETED" and not row["is_savepoint"]]

        return float(min(row["latest_ack_timestamp"] for row in self.until(done)))

    def downtime(self, job: Job, old: str, new: str) -> Downtime:
        proven = self.first_checkpoint(new)
        times = {job_id: self.call("GET", f"{self._jobs}/{job_id}")["timestamps"] for job_id in (old, new)}
        created = times[new]["CREATED"]
        last = job.last_row(created)  # the new one emits none before it is there
        return Downtime(times[old]["FINISHED"] - last, created - last, proven - last)


def in_turns(
    rounds: int, ours: Callable[[], Downtime], other: Callable[[], Downtime]
) -> Iterator[tuple[Downtime, Downtime]]:
    """Both downtimes of each round; the contenders start alternately."""
    for number in range(rounds):
        if number % 2:
            second, first = other(), ours()
        else:
            first, second = ours(), other()
        print(f"round {number + 1}: {first.proven:.0f} ms and {second.proven:.0f} ms", file=sys.stderr, flush=True)
        yield first, second


def measure(flink: LocalFlink, root: Path, rounds: int) -> Iterator[tuple[Downtime, Downtime]]:
    """Downtimes of ``deploy`` and of the raw calls, which start alternately."""
    cluster = Cluster(flink.jobmanager_url, flink.gateway_url)
    jobs = [Job(name, root / name) for name in ("ours", "raw")]
    script = ";\n".join((*jobs[0].setup, JOB)) + ";\n"
    side = Side(script, SETTINGS, engine="flink", source="orders.sql")
    ledger = Ledger(root / "ledger", "ours")
    raw = cluster.start(jobs[1])
    with SqlGatewayTarget(flink.gateway_url, flink.jobmanager_url) as target:

        def ours() -> str:
            head = ledger.head()
            checked = head.sha256 if head else None
            entry = deploy(target, ledger, side, checked_old_sha256=checked, options=Options(settle_seconds=0))
            return str(entry.job_id)

        own = ours()
        for job_id in (raw, own):
            cluster.first_checkpoint(job_id)

        def redeploy_ours() -> Downtime:
            nonlocal own
            old, own = own, ours()
            return cluster.downtime(jobs[0], old, own)

        def redeploy_raw() -> Downtime:
            nonlocal raw
            old, raw = raw, cluster.start(jobs[1], cluster.stop(raw))
            return cluster.downtime(jobs[1], old, raw)

        yield from in_turns(rounds, redeploy_ours, redeploy_raw)
        for job_id in (raw, own):
            target.cancel(JobRef(job_id))


def results(pairs: Sequence[tuple[Downtime, Downtime]], other: str = "raw calls") -> Iterator[str]:
    """The rounds as a table, then the medians and their ratio; ``other`` is what ours is held against."""
    parts = ("ended", "created", "proven")
    columns = "old job ended | new one created | its first checkpoint"
    yield f"| Round | Ours: {columns} | {other[0].upper()}{other[1:]}: {columns} |"
    yield f"|---{'|---' * 2 * len(parts)}|"
    for number, pair in enumerate(pairs, 1):
        yield _row(str(number), [getattr(each, part) for each in pair for part in parts])
    medians = [statistics.median(getattr(pair[side], part) for pair in pairs) for side in (0, 1) for part in parts]
    yield _row("Median", medians)
    ours, raw = medians[len(parts) - 1], medians[-1]
    yield ""
    yield (
        f"Downtime, last row of the old job to the first checkpoint of the new one: {ours:.0f} ms ours, "
        f"{raw:.0f} ms by {other}, ratio {ours / raw:.2f} (goal ≤ {RATIO_GOAL:g}: "
        f"{'met' if ours / raw <= RATIO_GOAL else 'missed'})."
    )


def _row(name: str, numbers: Sequence[float]) -> str:
    return f"| {name} | {' | '.join(f'{number:.0f}' for number in numbers)} |"


def _arguments(job: Job, ttl: int) -> list[str]:
    """Arguments of the SQL runner. A different ``ttl`` makes a different script with the same state."""
    return ["--statements", encode_statements([f"SET 'table.exec.state.ttl' = '{ttl} d'", *job.setup, JOB])]


def measure_on_kubernetes(rig: Rig, runner: Path, root: Path, rounds: int) -> Iterator[tuple[Downtime, Downtime]]:
    """Downtimes of ``deploy`` and of the operator's upgrade, which start alternately."""
    cluster = Cluster(rig.place.jobmanager_url)
    mine, other = (Job(name, root / name) for name in ("ours", "operators-own"))
    script = ";\n".join((*mine.setup, JOB)) + ";\n"
    side = JobSpec(script, SETTINGS, engine="flink", source="orders.sql")
    ledger = Ledger(root / "ledger", mine.name)
    body = session_job(other.name, "session", job_spec(_arguments(other, 1), runner.as_uri()))
    body["spec"]["flinkConfiguration"] |= {**SETTINGS, "pipeline.name": other.name}
    rig.kube.create(body)
    numbers = count(2)

    def job_of(name: str, former: str = "") -> str:
        """The running job with this name that replaced another job."""
        (job,) = poll(lambda: rig.flink_jobs(name), lambda seen: not seen or former in seen, timeout=_SECONDS)
        # While the job is INITIALIZING, its checkpoints are unknown.
        status = f"{rig.place.jobmanager_url}/jobs/{job}/status"
        cluster.until(lambda: cluster.call("GET", status)["status"] == "RUNNING")
        return job

    def settled() -> None:
        rig.kube.wait(_KIND, other.name, runs, "RUNNING", timeout=_SECONDS)

    def ours() -> None:
        head = ledger.head()
        with rig.place.target() as target:
            checked = head.sha256 if head else None
            deploy(target, ledger, side, checked_old_sha256=checked, options=Options(settle_seconds=0))

    def redeploy_ours() -> Downtime:
        old = job_of(mine.name)
        ours()
        return cluster.downtime(mine, old, job_of(mine.name))

    def operators_own() -> Downtime:
        old = job_of(other.name)
        patch = {"state": "running", "upgradeMode": "savepoint", "args": _arguments(other, next(numbers))}
        rig.kube.patch(_KIND, other.name, {"spec": {"job": patch}})
        found = cluster.downtime(other, old, job_of(other.name, old))
        settled()
        return found

    ours()
    settled()
    for name in (mine.name, other.name):
        cluster.first_checkpoint(job_of(name))
    yield from in_turns(rounds, redeploy_ours, operators_own)
    rig.clear()


def main() -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="redeploys of each (default: 9)")
    parser.add_argument("--kubernetes", action="store_true", help="a session job on a local Kubernetes")
    options = parser.parse_args()
    head, notes, other = "# Downtime of a redeploy", _NOTES, "raw calls"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="flinkcompat-bench-")))
        if options.kubernetes:
            head, notes, other = f"{head} on Kubernetes", _KUBERNETES_NOTES, "the operator's own upgrade"
            runner = stack.enter_context(as_file(runner_jar()))
            rig = stack.enter_context(session_rig(folder, home("1.20"), runner))
            pairs = list(measure_on_kubernetes(rig, runner, folder, options.rounds))
        else:
            flink = stack.enter_context(LocalFlink(folder / "flink"))
            pairs = list(measure(flink, folder, options.rounds))
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    publish([f"{head}, {datetime.now(UTC).date()}", "", notes.format(load=load), *results(pairs, other)], options.write)


if __name__ == "__main__":
    main()
