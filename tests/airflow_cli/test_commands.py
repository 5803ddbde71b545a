"""``airflow flinkcompat`` run for real: the connection names ledger and target; output and exit codes are the ledger's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from airflow_flinkcompat.cli import cli
from airflow_flinkcompat.deploy import Ledger
from tests.cli.test_ledger import FIRST, SECOND, SECRET
from tests.deploy.jobmanager_stand_in import JobManagerStandIn
from tests.deploy.object_stores import serving
from tests.deploy.redeploy.test_adopt import JOB, SCRIPT, TASKS

ROOT = Path(__file__).parents[2]
Airflow = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.slow


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "ledger", "orders")
    made.append(FIRST)
    made.append(SECOND)
    return made


@pytest.fixture
def airflow(tmp_path: Path) -> Airflow:
    """Runs ``airflow`` in a home of its own, with a connection ``flink_default`` in the environment."""
    extra = {"ledger": str(tmp_path / "ledger"), "target": "jobmanager", "jobmanager_url": "http://127.0.0.1:9"}

    def call(*arguments: str, **variables: Any) -> subprocess.CompletedProcess[str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("FLINKCOMPAT_")}
        environment = {
            **own,
            "AIRFLOW_HOME": str(tmp_path / "home"),
            "AIRFLOW_CONN_FLINK_DEFAULT": json.dumps({"conn_type": "flink", "extra": extra | variables.pop("extra", {})}),
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "200",
            **variables,
        }
        command = [sys.executable, "-m", "airflow", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

    return call


@pytest.fixture
def cluster() -> Iterator[JobManagerStandIn]:
    stand_in = JobManagerStandIn()
    with serving(stand_in):
        yield stand_in


@pytest.mark.parametrize("line", ["list", "show orders", "history orders --format json", "diff orders 1 2", "index"])
def test_it_prints_what_flinkcompat_ledger_prints(airflow: Airflow, ledger: Ledger, line: str) -> None:
    expected = CliRunner().invoke(cli, ["ledger", *line.split(), "--ledger", str(ledger.directory.parent)])
    assert expected.exit_code == 0
    done = airflow("flinkcompat", *line.split())
    assert (done.returncode, done.stdout) == (0, expected.output), done.stderr
    assert SECRET not in done.stdout + done.stderr


def test_a_job_is_adopted_through_the_connection(
    airflow: Airflow, ledger: Ledger, cluster: JobManagerStandIn, tmp_path: Path
) -> None:
    cluster.job(JOB, "order totals", *TASKS)
    (tmp_path / "totals.sql").write_text(SCRIPT, encoding="utf-8")
    given = ("flinkcompat", "adopt", "totals", "--job-id", JOB, "--script", "totals.sql", "--set", "a=b")
    done = airflow(*given, extra={"jobmanager_url": cluster.url})
    assert done.returncode == 0, done.stderr
    assert f"adopted: job {JOB} (order totals, RUNNING) as totals, entry 1" in done.stdout
    head = Ledger(ledger.directory.parent, "totals").head()
    assert head is not None
    assert (head.kind, head.job.script, head.job.settings, head.job_id) == ("adopted", SCRIPT, {"a": "b"}, JOB)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "clicks"), "flinkcompat: no entry in "),
        (("show", "orders", "--entry", "9"), "has no entry 9: the last one is 2"),
        (("show", "orders", "--conn-id", "nowhere"), "there is no Airflow connection 'nowhere': name one of type flink"),
        (("adopt", "x", "--job-id", JOB, "--script", "none.sql"), "none.sql"),
        (("adopt", "x", "--job-id", JOB, "--script", "s.sql"), "http://127.0.0.1:9"),
        (("adopt", "x", "--job-id", JOB, "--script", "s.sql", "--target", "aws"), "is of target 'jobmanager'"),
        (("show", "orders", "--ledger", "nowhere"), "is 'orders' the deployment, and nowhere its ledger?"),
    ],
)
def test_what_is_wrong_is_said_with_exit_code_2(
    airflow: Airflow, ledger: Ledger, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "s.sql").write_text(SCRIPT, encoding="utf-8")
    done = airflow("flinkcompat", *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_connection_without_a_ledger_says_what_to_set(airflow: Airflow) -> None:
    done = airflow("flinkcompat", "list", extra={"ledger": None})
    assert done.returncode == 2
    assert "no ledger is named" in done.stderr
    assert "`ledger` in the extra of connection 'flink_default'" in done.stderr


def test_a_connection_of_airflows_database(airflow: Airflow, ledger: Ledger) -> None:
    made = airflow("db", "migrate")
    assert made.returncode == 0, made.stderr
    extra = json.dumps({"ledger": str(ledger.directory.parent)})
    added = airflow("connections", "add", "of_database", "--conn-type", "flink", "--conn-extra", extra)
    assert added.returncode == 0, added.stderr
    done = airflow("flinkcompat", "list", "--conn-id", "of_database", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert [each["deployment"] for each in json.loads(done.stdout)["deployments"]] == ["orders"]


def test_the_help_of_airflow_names_the_group(airflow: Airflow) -> None:
    done = airflow("flinkcompat", "--help")
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in ("adopt", "diff", "history", "index", "list", "show"))
