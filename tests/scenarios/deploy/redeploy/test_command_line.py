"""``flinkcompat deploy`` on a real Flink: first start, resumed change, and a change that waits for a decision."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from airflow_flinkcompat.cli import cli
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from dev.services.csv_job import Files, wait_for

pytestmark = pytest.mark.slow

FIRST = [("ann", 1, "00:10"), ("ann", 2, "00:20"), ("ann", 5, "01:10")]  # minute 1 is open at the stop
SECOND = [("ann", 7, "01:20"), ("ann", 1, "02:10")]
THIRD = [("ben", 3, "10:10"), ("ben", 1, "11:10"), ("ben", 1, "20:00")]
FILE = """\
ledger = "ledger"

[deployments.{name}]
script = "orders.sql"
settings = {{ "parallelism.default" = "1", "execution.checkpointing.interval" = "500 ms" }}
deploy = {{ settle_seconds = 1 }}
"""


@dataclass
class Project:
    """A project of one deployment."""

    root: Path
    flink: LocalFlink
    target: SqlGatewayTarget
    ledger: Ledger
    planner: str = "always"

    def __post_init__(self) -> None:
        text = FILE.format(name=self.ledger.deployment)
        (self.root / "flinkcompat.toml").write_text(text, encoding="utf-8")

    def command(self, text: str, *more: str) -> list[str]:
        (self.root / "orders.sql").write_text(text, encoding="utf-8")
        given = ["--config", str(self.root / "flinkcompat.toml"), "--planner", self.planner]
        given += ["--gateway", self.flink.gateway_url, "--jobmanager", self.flink.jobmanager_url]
        return ["deploy", self.ledger.deployment, *given, *more]

    def deploy(self, text: str, *more: str) -> tuple[int, str]:
        result = CliRunner().invoke(cli, self.command(text, *more))
        print(result.output)
        return result.exit_code, result.output

    def head(self) -> DeployedEntry:
        found = self.ledger.head()
        assert isinstance(found, DeployedEntry)
        assert self.target.running(self.ledger.deployment) == (found.job_id,)
        return found


@pytest.fixture
def project(tmp_path: Path, local_flink: LocalFlink, target: SqlGatewayTarget, ledger: Ledger) -> Project:
    return Project(tmp_path, local_flink, target, ledger)


def test_deployments_without_airflow(project: Project, files: Files) -> None:
    files.arrive("1.csv", FIRST)
    assert project.deploy(files.script())[0] == 0
    wait_for(lambda: files.rows() == ['ann,3,"2026-01-01 00:00:00"'], "minute 0 is written")
    first = project.head()

    resumed = files.script("customer, SUM(amount) * 100, window_start")
    assert project.deploy(resumed)[0] == 0
    second = project.head()
    assert (second.start.start_mode, second.review.outcome) == ("savepoint", "compatible")
    assert second.job_id != first.job_id
    files.arrive("2.csv", SECOND)
    rows = ['ann,1200,"2026-01-01 00:01:00"', 'ann,3,"2026-01-01 00:00:00"']
    wait_for(lambda: len(files.rows()) == 2, "minute 1 is written")
    assert files.rows() == rows, "minute 1 contains the row before the stop, and no row is written twice"
    assert project.deploy(f"-- a comment\n{resumed}")[0] == 0
    assert project.head() == second, "unchanged"

    longer = resumed.replace("'1' MINUTE", "'2' MINUTE")
    code, refused = project.deploy(longer)
    assert (code, project.head()) == (1, second)
    entry = re.search(r"--approve restart --entry (\d+)", refused)
    assert entry is not None
    code, _ = project.deploy(longer, "--approve", "restart", "--entry", entry[1], "--reason", "two minutes are enough")
    assert code == 0
    third = project.head()
    assert (third.start.start_mode, third.review.outcome) == ("stateless", "incompatible")
    assert third.review.reason == "two minutes are enough"
    files.arrive("3.csv", THIRD)
    wait_for(lambda: 'ben,400,"2026-01-01 00:10:00"' in files.rows(), "minutes 10 and 11 are written as one window")
    assert set(rows) < set(files.rows()), "earlier rows are kept"


@pytest.mark.nightly
def test_a_killed_command_is_repeated(project: Project, files: Files) -> None:
    project.planner = "never"
    files.arrive("1.csv", FIRST)
    assert project.deploy(files.script())[0] == 0
    wait_for(lambda: files.rows() == ['ann,3,"2026-01-01 00:00:00"'], "minute 0 is written")
    resumed = files.script("customer, SUM(amount) * 100, window_start")
    _, asked = project.deploy(resumed)
    entry = re.search(r"--entry (\d+)", asked)
    assert entry is not None, "without the planner, the change is unknown"
    words = project.command(resumed, "--approve", "resume", "--entry", entry[1])
    command = [sys.executable, "-m", "airflow_flinkcompat.cli", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as killed:
        assert killed.stderr is not None
        assert any(line.startswith("stopped; its state is in") for line in killed.stderr)
        killed.kill()
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    assert "resuming the redeploy that entry" in result.output
    head = project.head()
    assert (head.start.start_mode, head.review.outcome) == ("savepoint", "unknown")
    assert head.review.approved_by is not None
    files.arrive("2.csv", SECOND)
    wait_for(lambda: len(files.rows()) == 2, "minute 1 is written")
    assert files.rows() == ['ann,1200,"2026-01-01 00:01:00"', 'ann,3,"2026-01-01 00:00:00"']
