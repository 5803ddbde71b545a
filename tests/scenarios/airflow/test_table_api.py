"""The example DAG of a PyFlink program in a real Airflow: the gate reads it, Flink's own client starts it."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import HeadEntry
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from dev.demo.airflow_client import AirflowClient
from dev.demo.airflow_instance import AirflowStandalone
from dev.measure.pyflink import JAVA_OPTIONS, environment
from dev.services.csv_job import wait_for
from tests.scenarios.airflow.conftest import REPOSITORY, SECRET

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1800)]

DAG_ID, DEPLOYMENT = "flink_table_api", "visits"
DAGS = REPOSITORY / "dags"


@dataclass
class Example:
    """The DAG and its program, which somebody edits; its tables are files, and the password is its sink's folder."""

    root: Path
    airflow: AirflowStandalone
    seen: list[str] = field(default_factory=list)

    @property
    def client(self) -> AirflowClient:
        return self.airflow.client

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.root / "ledger", DEPLOYMENT)

    @property
    def head(self) -> HeadEntry:
        head = self.ledger.head()
        assert head is not None
        return head

    def program(self, more: str = "", option: str = "") -> str:
        """The program of the example with files for tables; ``more`` Python and one more option of the sink."""
        text = (DAGS / "programs" / "visits.py").read_text(encoding="utf-8")
        source = f"'connector' = 'filesystem', 'path' = '{self.root}/visits', 'format' = 'csv', "
        source += "'source.monitor-interval' = '150 ms'"
        sink = f"'connector' = 'filesystem', {option}'format' = 'csv', 'path' = '{self.root}/"
        for connector, end, files in (("kafka", "'format' = 'json'", source), ("jdbc", "'password' = '", sink)):
            text, found = re.subn(rf"'connector' = '{connector}'.*?{end}", lambda _, f=files: f, text, flags=re.DOTALL)
            assert found == 1
        return text + more

    def propose(self, text: str) -> None:
        programs = self.airflow.dags / "programs"
        programs.mkdir(exist_ok=True)
        (programs / ".visits.py").write_text(text, encoding="utf-8")
        (programs / ".visits.py").rename(programs / "visits.py")

    def arrive(self, name: str, *rows: str) -> None:
        folder = self.root / "visits"
        folder.mkdir(exist_ok=True)
        (folder / f".{name}").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        (folder / f".{name}").rename(folder / name)

    def rows(self) -> list[str]:
        """What the sink has committed."""
        files = (path for path in (self.root / SECRET).glob("**/*") if path.is_file() and path.name[0] not in "._")
        return sorted(line for path in files for line in path.read_text(encoding="utf-8").splitlines())

    def run(self) -> str:
        """The run that waits for a change now."""
        wait_for(lambda: set(self.client.runs(DAG_ID)) - set(self.seen), "another run begins", 120)
        (run,) = set(self.client.runs(DAG_ID)) - set(self.seen)
        self.seen.append(run)
        return run

    def changed(self) -> str:
        """Another run, once it waits for an edit."""
        run = self.run()
        self.client.wait_for_task(DAG_ID, run, "changed", ("deferred",))
        return run

    def ended(self, run: str) -> dict[str, str | None]:
        assert self.client.wait_for_run(DAG_ID, run, timeout=600) == "success", self.client.task_states(DAG_ID, run)
        return self.client.task_states(DAG_ID, run)


@contextmanager
def example(root: Path, flink: LocalFlink) -> Iterator[Example]:
    """The DAG in an Airflow of its own beside this Flink, whose client is that of real PyFlink."""
    (root / "dags").mkdir()
    shutil.copy(DAGS / f"{DAG_ID}.py", root / "dags")
    python = environment()
    (home,) = python.parents[1].glob("lib/python*/site-packages/pyflink")
    gateway = urlsplit(flink.gateway_url)
    history = {
        "tables": {"visits": (root / "archive").as_uri()},
        "sinks": {"visits_per_page": (root / "history").as_uri()},
    }
    airflow = AirflowStandalone(
        root / "airflow",
        root / "dags",
        connections={
            "flink_default": {"conn_type": "flink", "host": gateway.hostname, "port": gateway.port,
                              "extra": {"jobmanager_url": flink.jobmanager_url, "ledger": str(root / "ledger")}},
            "spark_default": {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}},
            "warehouse": {"conn_type": "generic", "password": SECRET},
        },
        config={
            "PATH": os.pathsep.join([str(Path(shutil.which("flinkcompat") or "").parent), os.environ["PATH"],
                                     str(home / "bin")]),
            "PYFLINK_CLIENT_EXECUTABLE": str(python),
            "FLINK_CONF_DIR": str(flink.work_dir / "conf"),
            "FLINK_LOG_DIR": str(root),
            "JVM_ARGS": JAVA_OPTIONS,
            "FLINKCOMPAT_LEDGER": str(root / "ledger"),
            "FLINKCOMPAT_JOBMANAGER": flink.jobmanager_url,
            "FLINKCOMPAT_SAVEPOINTS": (root / "savepoints").as_uri(),
            "FLINKCOMPAT_HISTORY": json.dumps(history),
        },
        log=print,
    )  # fmt: skip
    with airflow:
        yield Example(root, airflow)
    with SqlGatewayTarget(flink.gateway_url, flink.jobmanager_url) as target:
        for job in target.running("visits per page"):
            target.cancel(job)


def test_a_program_from_its_first_start_to_its_backfill(tmp_path: Path, local_flink: LocalFlink) -> None:
    with example(tmp_path, local_flink) as site:
        client = site.client

        # Nothing is deployed yet: the client starts the program, and the ledger holds what was checked.
        site.propose(site.program())
        site.arrive("1.csv", "home,ann,5,2026-01-01 00:01:00", "home,ben,3,2026-01-01 00:02:00",
                    "home,ann,7,2026-01-01 00:11:00")  # fmt: skip
        client.unpause(DAG_ID)
        first = site.run()
        states = site.ended(first)
        assert (states["deploy_first"], states["resume"], states["backfill"]) == ("success", "skipped", "skipped")
        wait_for(lambda: site.rows() == ['"2026-01-01 00:00:00","2026-01-01 00:10:00",home,2,8'], "the first window")
        begun = site.head
        given = begun.job.variables["WAREHOUSE_PASSWORD"]
        assert (begun.job.language, given) == ("python", "${conn.warehouse.password}")

        # Another text that says the same leaves the job alone.
        run = site.changed()
        assert "equals entry" in "\n".join(client.log(DAG_ID, run, "changed"))
        site.propose(site.program("# nothing that counts\n"))
        states = site.ended(run)
        assert (states["resume"], states["restart"], states["approve"]) == ("skipped", "skipped", "skipped")
        assert site.head == begun

        # What nobody has measured is asked; a person lets it resume from what the first has counted.
        run = site.changed()
        site.propose(site.program(option="'partition.default-name' = 'none-8', "))
        client.wait_for_question(DAG_ID, run, "approve")
        assert "visits.py" in client.question(DAG_ID, run, "approve")["body"]
        client.answer(DAG_ID, run, "approve", "Resume from savepoint")
        states = site.ended(run)
        assert (states["resume"], states["restart"], states["backfill"]) == ("success", "skipped", "skipped")
        resumed = site.head
        assert resumed.job_id != begun.job_id
        site.arrive("2.csv", "home,cid,1,2026-01-01 00:12:00", "home,cid,1,2026-01-01 00:21:00")
        wait_for(lambda: len(site.rows()) == 2, "the second window")
        assert site.rows()[-1] == '"2026-01-01 00:10:00","2026-01-01 00:20:00",home,2,8', (
            "7 of it were in the savepoint"
        )

        # Another time the person lets it start empty, and history is recomputed up to that start.
        (tmp_path / "archive").mkdir()
        (tmp_path / "archive" / "1.csv").write_text("home,old,40,2025-12-31 23:51:00\n", encoding="utf-8")
        run = site.changed()
        site.propose(site.program(option="'partition.default-name' = 'none-9', "))
        client.wait_for_question(DAG_ID, run, "approve")
        client.answer(DAG_ID, run, "approve", "Restart with backfill")
        states = site.ended(run)
        assert (states["restart"], states["backfill"], states["resume"]) == ("success", "success", "skipped")
        history = [line for path in (tmp_path / "history").glob("**/*.csv") for line in path.read_text().splitlines()]
        assert history == ['"2025-12-31 23:50:00","2026-01-01 00:00:00",home,1,40']
        with SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url) as target:
            assert target.running("visits per page") == (site.head.job_id,), "one job, and the one that is recorded"

        kept = [path for part in ("ledger", "airflow/logs") for path in (tmp_path / part).rglob("*") if path.is_file()]
        assert [path for path in kept if SECRET in path.read_text(encoding="utf-8", errors="replace")] == []
