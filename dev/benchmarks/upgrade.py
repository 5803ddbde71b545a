"""An upgrade of a fleet in waves, whose tasks are killed at random times.

Windowed jobs run on a local Flink 1.20. The DAG of the upgrade, in a local Airflow, moves them to a local Flink 2.3.
Meanwhile, the processes of random running tasks get SIGKILL, and Airflow retries the tasks. Each job has an open window
when it moves, and reads further rows afterwards. In the end, each job must run exactly once, on the new line, and its
sink must contain each row exactly once.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from dev.services.csv_job import wait_for
from dev.services.upgrade_fleet import DAG_ID, ROWS, SECOND, UpgradeFleet, upgrade_fleet
from dev.tools import benchmark_parser, publish

_UPGRADE = """\
wave = ["canary", "small", "*"]
hold = "{hold}"
"""
_CANARIES, _SMALL = 2, 8
_RETRIES = 20
_SECONDS = 4 * 3600.0


def tags(jobs: int) -> dict[str, str]:
    """The tag of each job: two canaries, eight small jobs, and others."""
    found = {}
    for number in range(jobs):
        tag = "canary" if number < _CANARIES else "small" if number < _CANARIES + _SMALL else "other"
        found[f"job{number:02d}"] = tag
    return found


def kill_tasks(fleet: UpgradeFleet, run: str, kills: int, pause: float) -> tuple[int, str]:
    """Kill random processes of tasks until the upgrade ends. Return their number and the last run."""
    done, next_kill = 0, time.monotonic() + pause
    deadline = time.monotonic() + _SECONDS
    while True:
        if fleet.airflow.client.run_state(DAG_ID, run) not in ("queued", "running"):
            if (following := fleet.next_run(run)) is None:
                return done, run
            run = following
        if time.monotonic() > deadline:
            raise TimeoutError(f"the run {run} did not end")
        if done < kills and time.monotonic() >= next_kill and (found := _task_processes(fleet)):
            with suppress(psutil.Error):
                random.choice(found).kill()
            done += 1
            next_kill = time.monotonic() + random.uniform(0.2, 2) * pause
            print(f"kill {done} of {kills}; moved: {len(moved(fleet))}", file=sys.stderr, flush=True)
        time.sleep(0.2)


def _task_processes(fleet: UpgradeFleet) -> list[psutil.Process]:
    """Processes that execute tasks, without the executor's workers that supervise them."""
    try:
        found = psutil.Process(fleet.airflow.pids["scheduler"]).children(recursive=True)
        titles = [(each, " ".join(each.cmdline())) for each in found]
    except psutil.Error:
        return []
    return [each for each, title in titles if title.startswith("airflow worker -- ") and "LocalExecutor" not in title]


def moved(fleet: UpgradeFleet) -> list[str]:
    """Names of the jobs that the new line runs, by the ledger."""
    return [name for name, version in fleet.lines().items() if version == "2.3"]


def measure(root: Path, jobs: int, kills: int, pause: float, hold: str) -> Iterator[str]:
    """Lines of the result."""
    with upgrade_fleet(root, tags(jobs), _UPGRADE.format(hold=hold), retries=_RETRIES, interval="5 s") as fleet:
        client, began = fleet.airflow.client, time.monotonic()
        run = client.trigger(DAG_ID)
        done, run = kill_tasks(fleet, run, kills, pause)
        took = time.monotonic() - began
        state = client.run_state(DAG_ID, run)
        failed = [task for task, ended in client.task_states(DAG_ID, run).items() if ended == "failed"]
        for task in failed:
            print("\n".join(client.log(DAG_ID, run, task)[-40:]), file=sys.stderr, flush=True)
        for name in fleet.names:
            fleet.files(name).arrive("2.csv", SECOND)
        former, new = fleet.running()

        def complete() -> bool:
            return all(len(fleet.files(name).rows()) >= len(ROWS) for name in fleet.names)

        try:
            wait_for(complete, "each job closes its windows", 300)
        except AssertionError as error:
            print(error, file=sys.stderr)
        rows = {name: fleet.files(name).rows() for name in fleet.names}
        lost = sum(1 for found in rows.values() for row in ROWS if row not in found)
        double = sum(len(found) - len(set(found)) for found in rows.values())
        wrong = sum(1 for found in rows.values() for row in found if row not in ROWS)
        yield "| jobs | killed tasks | run | minutes | on 1.20 | on 2.3 | rows lost | rows twice | other rows |"
        yield "|---|---|---|---|---|---|---|---|---|"
        where = f"{len(former)} | {len(new)}"
        yield f"| {jobs} | {done} | {state} | {took / 60:.0f} | {where} | {lost} | {double} | {wrong} |"


def main() -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--jobs", type=int, default=50, help="number of jobs")
    parser.add_argument("--kills", type=int, default=25, help="maximum number of killed tasks")
    parser.add_argument("--pause", type=float, default=30, help="mean seconds between two kills")
    parser.add_argument("--hold", default="30 s", help="hold of the upgrade")
    parser.add_argument("--seed", type=int, default=48, help="seed of the random kills")
    given = parser.parse_args()
    random.seed(given.seed)
    with tempfile.TemporaryDirectory(prefix="upgrade-") as folder:
        publish(measure(Path(folder), given.jobs, given.kills, given.pause, given.hold), given.write)


if __name__ == "__main__":
    main()
