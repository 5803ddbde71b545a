"""Windowed jobs on Flink 1.20, a Flink 2.3, and an Airflow with the DAG that moves the jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from airflow_flinkcompat.deploy import Ledger, Options, deploy
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.planner.installation import install
from dev.demo.airflow_instance import AirflowStandalone
from dev.measure.pairs import home
from dev.services.csv_job import SETTINGS, Files, Side, wait_for

DAG_ID = "flink_upgrade"
_DAG = """\
from datetime import timedelta

from airflow_flinkcompat.airflow.operators import upgrade_dag

upgrade = upgrade_dag({path!r}, default_args={{"retries": {retries}, "retry_delay": timedelta(seconds=5)}})
"""
_FILE = """\
engine = "flink"
engine_version = "1.20"
ledger = "ledger"
planner = "always"

[upgrade]
from = "1.20"
to = "2.3"
flink_conn_id = "flink_23"
{upgrade}

[defaults]
flink_conn_id = "flink_120"
deploy = {{ settle_seconds = 1, patience = 2, poll_interval = 1 }}
default_args = {{ retries = {retries}, retry_delay = 5 }}
settings = {{ {settings} }}
"""
# Flink's default parts of the memory are too small for the windows and the exchanges of many jobs.
_ROOM = {
    "taskmanager.memory.managed.size": "512m",
    "taskmanager.memory.network.min": "192m",
    "taskmanager.memory.network.max": "192m",
}
FIRST = [("ann", 1, "00:10"), ("ann", 2, "00:20"), ("ann", 5, "01:10")]  # the last one closes minute 0
SECOND = [("ann", 7, "01:20"), ("ann", 1, "02:10")]  # closes minute 1
ROWS = ['ann,12,"2026-01-01 00:01:00"', 'ann,3,"2026-01-01 00:00:00"']
"""Rows of each job after both files, if no row was lost or written twice."""


@dataclass
class UpgradeFleet:
    """Jobs by name, each with its own files; the clusters of both lines; Airflow."""

    root: Path
    names: Sequence[str]
    former: LocalFlink
    new: LocalFlink
    airflow: AirflowStandalone

    def files(self, name: str) -> Files:
        return Files(self.root / name)

    def lines(self) -> dict[str, str | None]:
        """The Flink version that runs each job, by the ledger."""
        heads = {name: Ledger(self.root / "ledger", name).head() for name in self.names}
        return {name: head.job.engine_version if head else None for name, head in heads.items()}

    def running(self) -> tuple[list[str], list[str]]:
        """Sorted names of the jobs that run on each cluster."""
        found = []
        for flink in (self.former, self.new):
            with JobManager(flink.jobmanager_url) as jobmanager:
                found.append(sorted(job.name for job in jobmanager.jobs().values() if not job.terminal))
        return found[0], found[1]

    def next_run(self, run: str) -> str | None:
        """The run that an ended run has triggered for the next wave, if any, after its begin."""
        following, client = f"{run}__next", self.airflow.client
        if following not in client.runs(DAG_ID):
            return None
        wait_for(lambda: client.run_state(DAG_ID, following) != "queued", f"{following} begins", 120)
        return following

    def finish(self, run: str, timeout: float) -> tuple[str, str]:
        """Wait for the last run of an upgrade, and return it with its state; ``timeout``: seconds of each run."""
        while True:
            state = self.airflow.client.wait_for_run(DAG_ID, run, timeout=timeout)
            if state != "success" or (following := self.next_run(run)) is None:
                return run, state
            run = following


@contextmanager
def upgrade_fleet(
    root: Path, tags: Mapping[str, str], upgrade: str, *, retries: int = 1, interval: str = "500 ms"
) -> Iterator[UpgradeFleet]:
    """Start jobs on Flink 1.20, and an Airflow with their DAG, which is not paused.

    ``tags`` contains the tag of each job by name. ``upgrade`` contains further lines of the table ``[upgrade]``.
    ``retries`` is the number of retries of a task, ``interval`` the interval of checkpoints.
    """
    for line in ("1.20", "2.3"):
        install(line)
    (root / "dags").mkdir()
    settings = {**SETTINGS, "execution.checkpointing.interval": interval}
    written = ", ".join(f'"{key}" = "{value}"' for key, value in settings.items())
    tables = (f'[deployments.{name}]\nscript = "{name}.sql"\ntags = ["{tag}"]\n' for name, tag in tags.items())
    text = "\n".join((_FILE.format(upgrade=upgrade, settings=written, retries=retries), *tables))
    (root / "flinkcompat.toml").write_text(text, encoding="utf-8")
    (root / "dags" / "upgrade.py").write_text(
        _DAG.format(path=str(root / "flinkcompat.toml"), retries=retries), encoding="utf-8"
    )
    with (
        LocalFlink(root / "flink-120", home=home("1.20"), slots=len(tags), config=_ROOM) as former,
        LocalFlink(root / "flink-23", slots=len(tags), config=_ROOM) as new,
    ):
        with SqlGatewayTarget(former.gateway_url, former.jobmanager_url) as target:
            for name in tags:
                files = Files(root / name)
                files.arrive("1.csv", FIRST)
                script = files.script()
                (root / f"{name}.sql").write_text(script, encoding="utf-8")
                side = Side(script.rstrip(), settings, engine_version="1.20.3")  # as Jinja leaves it
                ledger = Ledger(root / "ledger", name)
                deploy(target, ledger, side, checked_old_sha256=None, options=Options(settle_seconds=0), log=print)
        connections = {
            "flink_120": _connection(former, root),
            "flink_23": _connection(new, root, former_conn_id="flink_120"),
        }
        with AirflowStandalone(root / "airflow", root / "dags", connections=connections, log=print) as airflow:
            airflow.client.unpause(DAG_ID)
            yield UpgradeFleet(root, [*tags], former, new, airflow)


def _connection(flink: LocalFlink, root: Path, **extra: str) -> dict[str, object]:
    gateway = urlsplit(flink.gateway_url)
    known = {"jobmanager_url": flink.jobmanager_url, "ledger": str(root / "ledger"), **extra}
    return {"conn_type": "flink", "host": gateway.hostname, "port": gateway.port, "extra": known}
