"""Downtime of a redeployed session job on Kubernetes, next to the operator's own upgrade.

Timed as in :mod:`dev.benchmarks.downtime`, with the same query: by the cluster's own
clock, from the last row of the old job to the first checkpoint that the new one completed. Ours is ``deploy`` in two
phases: suspended with a savepoint, read back, started from exactly that one. The operator's own is one patch of
``args``, with ``state: running`` and ``upgradeMode: savepoint``, which it carries out in one step. Both take turns on
one local Kubernetes with the real operator, each with a job of its own on one session cluster.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import as_file
from pathlib import Path

from airflow_flinkcompat.deploy import Ledger, Options, deploy
from airflow_flinkcompat.deploy.flink.polling import poll
from airflow_flinkcompat.deploy.targets.runner import encode_statements, runner_jar
from airflow_flinkcompat.model import JobSpec
from dev.benchmarks.downtime import JOB, SETTINGS, Cluster, Downtime, Job, results
from dev.local_kubernetes.flink_operator import VERSION
from dev.local_kubernetes.resources import job_spec, runs, session_job
from dev.local_kubernetes.rigs import Rig, session_rig
from dev.measure.flink_versions import home

_KIND = "FlinkSessionJob"
_SECONDS = 300.0
_NOTES = f"""\
Milliseconds since the last row of the old job; session jobs of Flink 1.20.3 on a local Kubernetes (API server 1.34.4)
with Flink's operator {VERSION}, on one machine, {{load}}. The operator looks every 1 to 2 s here, at once where a
resource changes; by default it looks every 15 to 60 s and at most five times in 15 s for one resource, so that the
second patch of a redeploy may wait there. `make bench-kubernetes-downtime` makes this file.
"""


def _arguments(job: Job, ttl: int) -> list[str]:
    """What the runner is given; another ``ttl`` is another script for the same state."""
    return ["--statements", encode_statements([f"SET 'table.exec.state.ttl' = '{ttl} d'", *job.setup, JOB])]


def measure(rig: Rig, runner: Path, root: Path, rounds: int) -> Iterator[tuple[Downtime, Downtime]]:
    """Ours and the operator's own, taking turns at going first."""
    cluster = Cluster(rig.place.jobmanager_url)
    mine, other = (Job(name, root / name) for name in ("ours", "operators-own"))
    script = ";\n".join((*mine.setup, JOB)) + ";\n"
    side = JobSpec(script, SETTINGS, engine="flink", source="orders.sql")
    ledger = Ledger(root / "ledger", mine.name)
    body = session_job(other.name, "session", job_spec(_arguments(other, 1), runner.as_uri()))
    body["spec"]["flinkConfiguration"] |= {**SETTINGS, "pipeline.name": other.name}
    rig.kube.create(body)

    def job_of(name: str, former: str = "") -> str:
        """The job of this name that runs, after another one."""
        (job,) = poll(lambda: rig.flink_jobs(name), lambda seen: not seen or former in seen, timeout=_SECONDS)
        # While it is INITIALIZING nothing is known of its checkpoints.
        status = f"{rig.place.jobmanager_url}/jobs/{job}/status"
        cluster.until(lambda: cluster.call("GET", status)["status"] == "RUNNING")
        return job

    def settled() -> None:
        rig.kube.wait(_KIND, other.name, runs, "RUNNING", timeout=_SECONDS)

    def ours() -> Downtime | None:
        head = ledger.head()
        old = job_of(mine.name) if head else None
        checked = head.sha256 if head else None
        with rig.place.target() as target:
            deploy(target, ledger, side, checked_old_sha256=checked, options=Options(settle_seconds=0))
        return cluster.downtime(mine, old, job_of(mine.name)) if old else None

    def operators_own(number: int) -> Downtime:
        old = job_of(other.name)
        patch = {"state": "running", "upgradeMode": "savepoint", "args": _arguments(other, number)}
        rig.kube.patch(_KIND, other.name, {"spec": {"job": patch}})
        found = cluster.downtime(other, old, job_of(other.name, old))
        settled()
        return found

    ours()
    settled()
    for name in (mine.name, other.name):
        cluster.first_checkpoint(job_of(name))
    for number in range(rounds):
        if number % 2:
            second, first = operators_own(number + 2), ours()
        else:
            first, second = ours(), operators_own(number + 2)
        assert first is not None
        print(f"round {number + 1}: {first.proven:.0f} ms and {second.proven:.0f} ms", file=sys.stderr, flush=True)
        yield first, second
    rig.clear()


def main() -> None:
    """Measure, print, and write where that is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11, help="redeploys of each (default: 11)")
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the results there too")
    arguments = parser.parse_args()
    flink_home = home("1.20")
    with (
        tempfile.TemporaryDirectory(prefix="flinkcompat-kubernetes-") as folder,
        as_file(runner_jar()) as runner,
        session_rig(Path(folder), flink_home, runner) as rig,
    ):
        pairs = list(measure(rig, runner, Path(folder), arguments.rounds))
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    lines = [f"# Downtime of a redeploy on Kubernetes, {datetime.now(UTC).date()}", "", _NOTES.format(load=load)]
    lines += results(pairs, "the operator's own upgrade")
    print("\n".join(lines))
    if arguments.write:
        arguments.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
