"""A type checker names a misspelt import or argument, and takes the right ones."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from airflow.sdk import BaseOperator, BaseSensorOperator

from airflow_flinkcompat.airflow.operators import deployments
from airflow_flinkcompat.airflow.tasks import arguments

REPOSITORY = Path(__file__).parents[4]
# Each line that ends in `# wrong` is an error for a type checker, and no other line is.
SNIPPET = """\
from datetime import timedelta

from airflow_flinkcompat import Policy, Side, check
from airflow_flinkcompat import chekc  # wrong
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy import Leger  # wrong
from airflow_flinkcompat.airflow.operators import Deployment, Template, gated_redeploy
from airflow_flinkcompat.airflow.operators import FlinkBackfillOperator as Backfill
from airflow_flinkcompat.airflow.operators import FlinkRestoreRehearsalOperator as Rehearsal
from airflow_flinkcompat.airflow.operators import FlinkSqlApprovalOperator
from airflow_flinkcompat.airflow.operators import FlinkSqlChangeSensor  # wrong
from airflow_flinkcompat.airflow.operators import FlinkSqlCompatibilityOperator as Check
from airflow_flinkcompat.airflow.operators import FlinkSqlDeployOperator as Deploy
from airflow_flinkcompat.airflow.sensors import FlinkSqlChangeSensor as Sensor
from airflow_flinkcompat.airflow.sensors import FlinkSqlDeployOperator  # wrong

to = {"first": "a", "resume": "b", "restart": "c", "approve": ["d", "e"]}
Check(task_id="t", deployment="d", script="s", branches=to, engine="flink", retries=3, owner="me")
Check(task_id="t", deployment="d", script="s", branches=to, engine=Template("{{ params.engine }}"))
Check(task_id="t", deployment="d", script="s", branches=to, engine="flnk")  # wrong
Check(task_id="t", deployment="d", script="s", branches=to, enginee="flink")  # wrong
Check(task_id="t", deployment="d", script="s", branches=to, policy={"partial": "resume"})
Check(task_id="t", deployment="d", script="s", branches=to, policy=Policy(incompatible="approve"))
Check(task_id="t", deployment="d", script="s", branches=to, policy={"partial": "resum"})  # wrong
Check(task_id="t", deployment="d", script="s", branches=to, policy={"partail": "resume"})  # wrong
Check(task_id="t", deployment="d", script="s", branches=to, policy={"incompatible": "resume"})  # wrong
Deploy(task_id="t", deployment="d", script="s", start_mode="savepoint", pool="p")
Deploy(task_id="t", deployment="d", script="s", start_mode="savepont")  # wrong
Deploy(task_id="t", deployment="d", script="s", setle_seconds=3)  # wrong
Deploy(task_id="t", deployment="d", script="s", language="sql")
Deploy(task_id="t", deployment="d", script="s", language="sqll")  # wrong
Rehearsal(task_id="t", deployment="d", script="s", fail_on=("refused", "could not tell"))
Rehearsal(task_id="t", deployment="d", script="s", fail_on=["refuse"])  # wrong
Backfill(task_id="t", deployment="d", script="s", late="drop", native="off", execution_timeout=timedelta(hours=1))
Backfill(task_id="t", deployment="d", script="s", late="dropp")  # wrong
Backfill(task_id="t", deployment="d", script="s", native="on")  # wrong
Sensor(task_id="t", deployment="d", script="s", timeout=60, soft_fail=True, mode="reschedule")
Sensor(task_id="t", deployment="d", script="s", softfail=True)  # wrong
Deployment(name="d", script="s", approvers=["ana", {"id": "7", "name": "Ben"}], tags=["a"], settings={"a": 1})
Deployment(name="d", script="s", check={"engine": "flink", "policy": {"partial": "approve"}, "retries": 2})
Deployment(name="d", script="s", check={"enginee": "flink"})  # wrong
Deployment(name="d", script="s", check={"engine": "flnk"})  # wrong
Deployment(name="d", script="s", check={"policy": {"partial": "resum"}})  # wrong
Deployment(name="d", script="s", changed={"poke_interval": 5, "timeout": timedelta(days=1)})
Deployment(name="d", script="s", changed={"poke_intervall": 5})  # wrong
Deployment(name="d", script="s", deploy={"settle_seconds": 30}, rehearse={"fail_on": ["refused"]}, approve={"body": ""})
Deployment(name="d", script="s", rehearse=True, backfill=False)
Deployment(name="d", script="s", rehearse={"fail_on": ["refuse"]})  # wrong
Deployment(name="d", script="s", backfill={"late": "dropp"})  # wrong
Deployment(name="d", script="s", chekc={})  # wrong
"""
_ERROR = re.compile(r"^.*\bsnippet\.py:(\d+): error: (.*)$", re.MULTILINE)
TABLES = {
    "changed": arguments.ChangedTable,
    "check": arguments.CheckTable,
    "approve": arguments.ApproveTable,
    "deploy": arguments.DeployTable,
    "migrate": arguments.MigrateTable,
    "rehearse": arguments.RehearseTable,
    "backfill": arguments.BackfillTable,
}


def keys(table: Any) -> set[str]:
    return set(table.__annotations__)


def keywords(operator: type[Any]) -> set[str]:
    parameters = inspect.signature(inspect.unwrap(operator.__init__)).parameters.values()
    return {parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.nightly
@pytest.mark.slow
def test_a_type_checker_names_what_is_misspelt(tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(SNIPPET, encoding="utf-8")
    # Of this project's settings and from its root, so that what `make lint` has read of Airflow is not read again.
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", snippet],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    found = {int(line): message for line, message in _ERROR.findall(done.stdout)}
    wrong = {number for number, line in enumerate(SNIPPET.splitlines(), 1) if line.endswith("# wrong")}
    assert done.stderr == ""
    assert set(found) == wrong, done.stdout


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_a_deployment_is_what_its_operator_takes(name: str) -> None:
    taken, told = keys(deployments._TABLES[name]), keys(TABLES[name])
    assert taken <= told, f"tell type checkers of {sorted(taken - told)}: tasks/arguments.py"
    assert told - taken <= keys(arguments.AnyTask) | keys(arguments.AnySensor)


def test_every_task_and_sensor_takes_what_airflows_do() -> None:
    # Airflow before 3.3 has none of the first, before 3.2 none of the second.
    of_later = {"retry_policy", "render_template_as_native_obj"} - keywords(BaseOperator)
    assert keys(arguments.AnyTask) - of_later == keywords(BaseOperator) - {"task_id", "dag", "task_group"}
    times = {"poke_interval", "timeout"}
    assert keys(arguments.AnySensor) == keywords(BaseSensorOperator) - keywords(BaseOperator) - times


def test_what_a_deployment_takes_is_what_it_has() -> None:
    """The signature is written for type checkers only."""
    source = inspect.getsource(deployments.Deployment)
    signature = source[source.index("def __init__") : source.index(") -> None: ...")]
    assert set(re.findall(r"^            (\w+):", signature, re.MULTILINE)) == set(deployments.Deployment.model_fields)


def test_annotations_can_be_read() -> None:
    for table in TABLES.values():
        assert get_type_hints(table, localns={"Policy": object})
