"""Shadow runs next to a session job of the real operator, by the command line and also killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest
import yaml

from airflow_flinkcompat.deploy import Ledger, Options, deploy
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.model import JobSpec
from dev.local_kubernetes import flink_operator
from dev.local_kubernetes.cluster import NAMESPACE
from dev.local_kubernetes.rigs import Rig
from dev.services.csv_job import SETTINGS, Files, wait_for
from tests.scenarios.deploy.faults import Result, write

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.kubernetes, pytest.mark.timeout(1800)]

NAME = "shadowed"
FIRST = [("ann", 1, "00:10"), ("ann", 5, "01:10"), ("ann", 1, "01:12")]  # minute 1 is open in the first savepoint
SECOND = [("ann", 7, "01:20"), ("ben", 1, "02:10")]
NOTES = (
    "`flinkcompat shadow --target kubernetes` next to a FlinkSessionJob on the local Kubernetes of the tests: API "
    f"server 1.34.4, operator {flink_operator.VERSION}, Flink 1.20 (the runner of this package). Right is after each: "
    "the spec and generation of the resource are unchanged, the live job runs under the same id, and no other job and "
    "no savepoint is left. `pytest tests/scenarios/local_kubernetes/test_shadow.py` makes this file."
)


class Live:
    """The live job, and the command next to it."""

    def __init__(self, rig: Rig, root: Path) -> None:
        self.rig, self.root, self.files = rig, root, Files(root)
        self.jobs = JobManager(rig.place.jobmanager_url)
        self.files.arrive("1.csv", FIRST)
        (root / "manifest.yaml").write_text(yaml.safe_dump(rig.place.manifest))
        job = JobSpec(self.files.script(), SETTINGS, engine="flink", source=f"{NAME}.sql")
        options = Options(settle_seconds=0.5, start_timeout=400)
        with closing(rig.place.target()) as target:
            deploy(
                target, Ledger(root / "ledger", NAME), job, start_mode="auto-first", owner="test", options=options,
                checked_old_sha256=None,
            )  # fmt: skip
        wait_for(lambda: len(self.files.rows()) == 1, "the live job reads the first file", 120)
        self.before, self.known = self.state(), set(self.jobs.jobs())

    def state(self) -> tuple[Any, ...]:
        """All that a shadow run must not change."""
        found = self.rig.kube.get("FlinkSessionJob", NAME)
        running = sorted((each.name, each.job_id) for each in self.jobs.jobs().values() if not each.terminal)
        return found["spec"], found["metadata"]["generation"], running, sorted(self.rig.savepoints.glob("*"))

    @contextmanager
    def command(self, **query: str) -> Iterator[subprocess.Popen[str]]:
        old, new = self.root / "old.sql", self.root / "new.sql"
        old.write_text(self.files.script())
        new.write_text(self.files.script(**query))
        place = self.rig.place
        names = {
            "NAMESPACE": NAMESPACE,
            "MANIFEST": str(self.root / "manifest.yaml"),
            "JOBMANAGER_URL": place.jobmanager_url,
        }
        environment = {
            **os.environ, **{f"FLINKCOMPAT_{key}": value for key, value in names.items()},
            "KUBECONFIG": str(place.kubeconfig),
        }  # fmt: skip
        settings = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
        command = [
            sys.executable, "-m", "airflow_flinkcompat.cli", "shadow", str(old), str(new), *settings, "--job-id", NAME,
            "--target", "kubernetes", "--for", "2s", "--format", "json", "--savepoint-directory",
            self.rig.savepoints.as_uri(),
        ]  # fmt: skip
        with subprocess.Popen(
            command, env=environment, cwd=Path(__file__).parents[3], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            yield process

    def follow(self, process: subprocess.Popen[str], until: str = "\0") -> None:
        """Read the progress up to a line, and let rows arrive between the savepoints."""
        assert process.stderr is not None
        for line in process.stderr:
            print(line, end="")
            if "waiting for" in line:
                self.files.arrive("2.csv", SECOND)
            if until in line:
                return

    def compare(self, **query: str) -> dict[str, Any]:
        with self.command(**query) as process:
            self.follow(process)
            assert process.stdout is not None
            found: dict[str, Any] = json.loads(process.stdout.read())
        assert self.state() == self.before
        return found


class TestShadowRuns:
    """One live job for each case."""

    results: ClassVar[list[Result]] = []

    @pytest.fixture
    def live(self, session_jobs: Rig, tmp_path: Path) -> Iterator[Live]:
        found = Live(session_jobs, tmp_path)
        yield found
        found.jobs.close()
        session_jobs.clear()

    @pytest.fixture(scope="class", autouse=True)
    def recorded(self) -> Iterator[None]:
        yield
        version = flink_operator.VERSION
        title = f"Shadow runs next to a session job of Flink's operator {version}"
        write(
            f"kubernetes-shadow-{version}", title, self.results, [NOTES],
            columns=("Resource", "Case", "Finding", "Seconds"),
        )  # fmt: skip

    def run(self, case: str, act: Callable[[], str]) -> None:
        began = time.monotonic()
        try:
            outcome, wrong = act(), ""
        except BaseException as error:
            outcome, wrong = "", f"{type(error).__name__}: {error}"
            raise
        finally:
            self.results.append(Result("session job", case, outcome, time.monotonic() - began, wrong))

    def test_equal_scripts(self, live: Live) -> None:
        def act() -> str:
            found = live.compare()
            assert found["finding"] == "equal", found
            return f"equal: {json.dumps(found['sinks'][0])}"

        self.run("the same script", act)

    def test_wrong_rows(self, live: Live) -> None:
        def act() -> str:
            found = live.compare(select="customer, MAX(amount), window_start")
            assert (found["finding"], found["sinks"][0]["differing"]) == ("differs", 2), found
            return "differs: 2 rows, of which Flink restores the sum of the open window as its maximum"

        self.run("SUM becomes MAX", act)

    def test_a_killed_command_leaves_nothing(self, live: Live) -> None:
        """SIGKILL while the old script is submitted: the child process cancels its job and deletes all savepoints."""

        def act() -> str:
            with live.command() as process:
                live.follow(process, "reads the rows again")
                (watcher,) = psutil.Process(process.pid).children()
                process.send_signal(signal.SIGKILL)
                process.wait()
                watcher.wait(180)
            wait_for(lambda: live.state() == live.before, "nothing is left", 60)
            came = [each.state for id_, each in live.jobs.jobs().items() if id_ not in live.known]
            return f"its job: {', '.join(came) or 'not submitted'}; its savepoints and folder are deleted"

        self.run("killed while the old script is submitted", act)
