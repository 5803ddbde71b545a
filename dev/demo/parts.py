"""The services of the demo, a local Flink and an Airflow that runs the DAG, and their state."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy import Ledger, LedgerEntry
from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager, JobManagerError
from airflow_flinkcompat.deploy.ledger.entries import HeadEntry, StoppedEntry
from airflow_flinkcompat.deploy.rehearsal.place import Cluster
from airflow_flinkcompat.deploy.rehearsal.report import Rehearsal
from airflow_flinkcompat.deploy.rehearsal.sequence import rehearse
from airflow_flinkcompat.deploy.target import same_snapshot
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.planner.installation import install, make_archive
from airflow_flinkcompat.sql import parse_script
from dev.demo.airflow_client import TERMINAL_RUN, AirflowClient
from dev.demo.airflow_instance import AirflowStandalone
from dev.demo.narration import LIMIT_SECONDS, DemoError, require, wait_for
from dev.demo.orders import Row
from dev.demo.world import DAG_ID, DEPLOYMENT, World, result_rows

PLANNED = "2.3"
"""The line of Flink that runs the job, and plans it for the gate."""
_EPOCH = datetime(1970, 1, 1)
_STEP_SECONDS = 5  # of processor time: a task that only sends heartbeats takes a minute for it
_READ = re.compile(r"0\.Source__orders\[\d+\]\.numRecordsOut")
# Shown in the log, and final but for "failed".
_SHOWN = {"running", "deferred", "awaiting_input", "success", "failed", "up_for_retry"}
_FAILED = {"failed", "upstream_failed"}

Entry = TypeVar("Entry", bound=LedgerEntry)


@dataclass(frozen=True)
class Ports:
    """Ports on loopback; None: a free one."""

    airflow: int | None = None
    jobmanager: int | None = None
    gateway: int | None = None


class Parts:
    """Flink and Airflow during a ``with`` block. A Flink that the caller passes keeps running afterwards."""

    def __init__(
        self, world: World, say: Callable[[str], None], *, flink: LocalFlink | None = None, ports: Ports | None = None
    ) -> None:
        self.world = world
        self._say = say
        self._given = flink
        self._ports = ports or Ports()
        self._stack = ExitStack()
        self._told: dict[str, dict[str, str | None]] = {}
        self.flink: LocalFlink
        self.airflow: AirflowStandalone
        self.jobs: JobManager

    def __enter__(self) -> Self:
        try:
            self._say(f"installing Flink's planner {PLANNED} for the gate")
            make_archive(install(PLANNED))
            self.flink = self._given or self._stack.enter_context(self._new_flink())
            self.jobs = self._stack.enter_context(JobManager(self.flink.jobmanager_url))
            self._stack.callback(self._end_jobs)
            self.airflow = self._stack.enter_context(self._new_airflow())
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _new_flink(self) -> LocalFlink:
        self._say("starting Flink: JobManager, TaskManager and SQL Gateway")
        return LocalFlink(
            self.world.root / "flink",
            slots=4,
            rest_port=self._ports.jobmanager,
            gateway_port=self._ports.gateway,
            ready_timeout=LIMIT_SECONDS,
            log=self._say,
        )

    def _new_airflow(self) -> AirflowStandalone:
        gateway_host, gateway_port = self.flink.gateway_url.rsplit(":", 1)
        return AirflowStandalone(
            self.world.root / "airflow",
            self.world.dags,
            port=self._ports.airflow,
            connections={
                "flink_default": {
                    "conn_type": "flink",
                    "host": gateway_host,
                    "port": int(gateway_port),
                    "extra": {"jobmanager_url": self.flink.jobmanager_url},
                },
                "spark_default": {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}},
            },
            config=self.world.environment(self.flink.gateway_url, self.flink.jobmanager_url),
            ready_timeout=LIMIT_SECONDS,
            log=self._say,
        )

    def _end_jobs(self) -> None:
        """End all jobs of the demo in a Flink that keeps running."""
        if self._given is not None:
            with contextlib.suppress(JobManagerError):
                for job_id in self._running():
                    self.jobs.cancel(job_id)

    def check(self) -> None:
        """Raise LocalFlinkError or AirflowError, with the last log lines, if a service died."""
        self.flink.check()
        self.airflow.check()

    def work(self) -> object:
        """Signs of a working task: sizes of logs and results, and processor time of its processes."""
        grown = tuple(_size(folder) for folder in (self.airflow.home / "logs", *self.world.results, self.world.ledger))
        return grown, int(self.airflow.task_seconds() / _STEP_SECONDS)

    def rows(self) -> object:
        """Signs of a working job: its watermark and its files, including uncommitted files."""
        return self.watermark(), tuple(_size(folder) for folder in self.world.results)

    @property
    def client(self) -> AirflowClient:
        return self.airflow.client

    # -- Flink

    def watermark(self) -> datetime | None:
        """Watermark of the running job; None if no job runs or it has no watermark yet."""
        try:
            running = self._running()
            if len(running) != 1:
                return None
            vertices = self.jobs.get(f"jobs/{running[0]}")["vertices"]
            # The first vertex is the source and has no input.
            rows = [
                row for v in vertices[1:] for row in self.jobs.get(f"jobs/{running[0]}/vertices/{v['id']}/watermarks")
            ]
        except (JobManagerError, KeyError):  # it ends or starts just now
            return None
        values = [int(row["value"]) for row in rows]
        return _EPOCH + timedelta(milliseconds=min(values)) if values and min(values) > 0 else None

    def orders_read(self, job_id: str) -> int:
        """Number of orders that this job has read since its start, by the metric of its source."""

        def look() -> str | None:
            source = self.jobs.get(f"jobs/{job_id}")["vertices"][0]["id"]
            metrics = f"jobs/{job_id}/vertices/{source}/metrics"
            name = next((row["id"] for row in self.jobs.get(metrics) if _READ.fullmatch(row["id"])), None)
            values = self.jobs.get(f"{metrics}?get={quote(name)}") if name else []
            return values[0]["value"] if values else None

        return int(wait_for("Flink's metrics of the source", look, alive=self.check))

    def _running(self) -> list[str]:
        return [job.job_id for job in self.jobs.jobs().values() if job.name == DEPLOYMENT and not job.terminal]

    def check_job(self) -> None:
        """Raise DemoError with the reason if the deployed job has failed; otherwise like ``check``."""
        self.check()
        status = self.jobs.status(str(self.deployed().job_id))
        if status is not None and status.state in ("FAILING", "FAILED", "CANCELED"):
            raise DemoError(f"job {status.job_id} is {status.state}: {status.failure or 'Flink reports no reason'}")

    def require_running(self, entry: HeadEntry) -> None:
        """Check that only the job of ``entry`` runs, restored as in the entry. Raises DemoError."""
        require(
            self._running() == [entry.job_id], f"job {entry.job_id} should run alone, but these do: {self._running()}"
        )
        restored = self.jobs.restored_from(str(entry.job_id))
        wanted = None if entry.start.start_mode == "stateless" else entry.start.savepoint
        require(
            same_snapshot(restored, wanted),
            f"job {entry.job_id} was restored from {restored or 'nothing'} instead of {wanted or 'nothing'}",
        )

    def restored_by_flink_alone(self, old: int, new: int) -> Rehearsal:
        """Rehearse version ``new`` with a savepoint of the running job of version ``old``."""
        addresses = {"gateway": self.flink.gateway_url, "jobmanager": self.flink.jobmanager_url}
        location = TargetLocation("sql-gateway", addresses)
        before, after = (Side(self.world.version(each), engine="flink", source=f"v{each}") for each in (old, new))
        with location.open() as target:
            return rehearse(Cluster(target, location), str(self.deployed().job_id), before, after, log=lambda _: None)

    # -- the ledger

    def entries(self) -> tuple[LedgerEntry, ...]:
        return Ledger(self.world.ledger.as_uri(), DEPLOYMENT).entries()

    def last(self, kind: type[Entry]) -> Entry:
        """The last entry of this kind in the ledger. Raises DemoError."""
        found = next((entry for entry in reversed(self.entries()) if isinstance(entry, kind)), None)
        if found is None:
            raise DemoError(f"the ledger contains no {kind.__name__}")
        return found

    def deployed(self) -> HeadEntry:
        """The deployed version by the ledger. Raises DemoError."""
        return self.last(HeadEntry)

    def stopped_at(self) -> float:
        """End of the former job, in seconds since the epoch."""
        return self.last(StoppedEntry).written.timestamp()

    # -- Airflow

    def run_number(self, number: int) -> str:
        """Id of the DAG's run ``number`` (from 1), once it exists."""

        def look() -> str | None:
            runs = self.client.runs(DAG_ID)
            return runs[number - 1] if len(runs) >= number else None

        return wait_for(f"run {number} of the DAG", look, moved=self.work, say=self._say, alive=self.check)

    def wait_for_task(self, run: str, task: str) -> None:
        """Wait until Airflow has read a new DAG file, and the run has this task."""
        wait_for(
            f"the run to have a task {task}",
            lambda: task in self.client.task_states(DAG_ID, run),
            moved=self.work,
            say=self._say,
            alive=self.check,
        )

    def follow(self, run: str, until: Mapping[str, str]) -> dict[str, str | None]:
        """Narrate a run until its tasks reach the states in ``until``; returns all states. Raises DemoError."""
        told = self._told.setdefault(run, {})

        def look() -> dict[str, str | None] | None:
            states = self.client.task_states(DAG_ID, run)
            for task, state in states.items():
                if state in _SHOWN and told.get(task) != state:
                    self._say(f"Airflow: task {task}: {state}")
                told[task] = state
            if failed := [task for task, state in states.items() if state in _FAILED]:
                log = "\n".join(self.client.log(DAG_ID, run, failed[0])[-25:])
                raise DemoError(f"task {failed[0]} failed; the end of its log:\n{log}")
            over = [task for task in until if states.get(task) == "skipped"]
            require(not over, f"task {', '.join(over)} was skipped: another branch was taken")
            return states if all(states.get(task) == state for task, state in until.items()) else None

        what = ", ".join(f"task {task} to become {state}" for task, state in until.items())
        return wait_for(
            what,
            look,
            moved=lambda: (self.work(), tuple(sorted(told.items(), key=str))),
            say=self._say,
            alive=self.check,
            seen=lambda: self._how_far(run),
        )

    def _how_far(self, run: str) -> str:
        """Tasks of a run, and the end of the logs of running tasks."""
        states = self.client.task_states(DAG_ID, run)
        logs = (
            f"the log of {task} ends:\n" + "\n".join(self.client.log(DAG_ID, run, task)[-12:])
            for task, state in states.items()
            if state in ("running", "up_for_retry")
        )
        return "\n".join([f"Tasks: {states}", *logs])

    def finish(self, run: str) -> dict[str, str | None]:
        """Wait until the complete run has succeeded; returns the states of its tasks."""
        state = wait_for(
            f"run {run} to end",
            lambda: ended if (ended := self.client.run_state(DAG_ID, run)) in TERMINAL_RUN else None,
            moved=self.work,
            say=self._say,
            alive=self.check,
            seen=lambda: self._how_far(run),
        )
        states = self.client.task_states(DAG_ID, run)
        require(state == "success", f"run {run} ended as {state}: {states}")
        return states

    def verdict(self, run: str) -> Mapping[str, Any]:
        """The report of a run's check."""
        return dict(self.client.xcom(DAG_ID, run, "check", "summary"))

    def rows_from_scratch(self) -> list[Row]:
        """The rows of v4 by Flink in batch mode, over archive and live folder together. Raises DemoError.

        Of the script only the folders of both tables are changed, and the source is bounded.
        """
        self._say("computing v4 from scratch with Flink in batch mode, over the archive and the live folder")
        shutil.rmtree(self.world.from_scratch, ignore_errors=True)
        *setup, insert = [
            statement.text for statement in parse_script(self.world.version(4), "orders_v4.sql").statements
        ]
        elsewhere = [
            "ALTER TABLE orders RESET ('source.monitor-interval')",
            f"ALTER TABLE orders SET ('path' = '{self.world.live.parent.as_uri()}')",
            f"ALTER TABLE totals SET ('path' = '{self.world.from_scratch.as_uri()}')",
        ]
        settings = {"execution.runtime-mode": "batch", "pipeline.name": "from scratch"}
        with SqlGateway(self.flink.gateway_url) as gateway, gateway.session(settings) as session:
            for statement in [*setup, *elsewhere]:
                session.execute(statement)
            job_id = session.execute(insert).job_id
            require(job_id, "Flink accepted the from-scratch run but named no job")
            state = self.jobs.wait_terminal(str(job_id), timeout=LIMIT_SECONDS)
        status = self.jobs.status(str(job_id))
        require(
            state == "FINISHED", f"the from-scratch run ended as {state}: {status.failure if status else 'unknown'}"
        )
        return result_rows(self.world.from_scratch)


def _size(folder: Path) -> int:
    """Number of bytes and files in a folder, including hidden files."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += 1 + Path(place, name).stat().st_size
    return total
