"""``flinkcompat deploy`` on a real Flink: first start, resumed change, and a change that waits for a decision."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

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


def test_deployments_without_airflow(
    local_flink: LocalFlink, target: SqlGatewayTarget, files: Files, ledger: Ledger, tmp_path: Path
) -> None:
    name, script = ledger.deployment, tmp_path / "orders.sql"
    file = tmp_path / "flinkcompat.toml"
    file.write_text(FILE.format(name=name), encoding="utf-8")
    given = ["--config", str(file), "--planner", "always"]
    given += ["--gateway", local_flink.gateway_url, "--jobmanager", local_flink.jobmanager_url]

    def deploy(text: str, *more: str) -> tuple[int, Result]:
        script.write_text(text, encoding="utf-8")
        result = CliRunner().invoke(cli, ["deploy", name, *given, *more])
        print(result.output)
        return result.exit_code, result

    def head() -> DeployedEntry:
        found = ledger.head()
        assert isinstance(found, DeployedEntry)
        assert target.running(name) == (found.job_id,)
        return found

    files.arrive("1.csv", FIRST)
    assert deploy(files.script())[0] == 0
    wait_for(lambda: files.rows() == ['ann,3,"2026-01-01 00:00:00"'], "minute 0 is written")
    first = head()

    resumed = files.script("customer, SUM(amount) * 100, window_start")
    assert deploy(resumed)[0] == 0
    second = head()
    assert (second.start.start_mode, second.review.outcome) == ("savepoint", "compatible")
    assert second.job_id != first.job_id
    files.arrive("2.csv", SECOND)
    rows = ['ann,1200,"2026-01-01 00:01:00"', 'ann,3,"2026-01-01 00:00:00"']
    wait_for(lambda: len(files.rows()) == 2, "minute 1 is written")
    assert files.rows() == rows, "minute 1 contains the row before the stop, and no row is written twice"
    assert deploy(f"-- a comment\n{resumed}")[0] == 0
    assert head() == second, "unchanged"

    longer = resumed.replace("'1' MINUTE", "'2' MINUTE")
    code, refused = deploy(longer)
    assert (code, head()) == (1, second)
    entry = re.search(r"--approve restart --entry (\d+)", refused.output)
    assert entry is not None
    code, _ = deploy(longer, "--approve", "restart", "--entry", entry[1], "--reason", "two minutes are enough")
    assert code == 0
    third = head()
    assert (third.start.start_mode, third.review.outcome) == ("stateless", "incompatible")
    assert third.review.reason == "two minutes are enough"
    files.arrive("3.csv", THIRD)
    wait_for(lambda: 'ben,400,"2026-01-01 00:10:00"' in files.rows(), "minutes 10 and 11 are written as one window")
    assert set(rows) < set(files.rows()), "earlier rows are kept"
