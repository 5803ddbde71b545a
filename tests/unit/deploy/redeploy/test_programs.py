"""Programs of the Table API and the ledger: adopted as stated, never with a secret, and never run by the Gateway."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import InputError, Side
from airflow_flinkcompat.deploy import DeployRefused, Ledger, Options, ScriptRefused
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.redeploy.adopt import adopt
from airflow_flinkcompat.deploy.redeploy.sequence import deploy
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from dev.services.object_stores import serving
from tests.support.deploy.fake_cluster import FakeCluster
from tests.unit.deploy.jobmanager_stand_in import JobManagerStandIn
from tests.unit.deploy.redeploy.test_adopt import JOB, SIDE, TASKS

PROGRAM = '''\
import os
from pyflink.table import EnvironmentSettings, TableEnvironment

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.get_config().set("pipeline.name", "order totals")
t_env.execute_sql(f"""CREATE TABLE orders (customer STRING, amount BIGINT) WITH (
    'connector' = 'jdbc', 'url' = 'jdbc:x', 'table-name' = 'o', 'password' = '{os.environ["DB_PASSWORD"]}')""")
t_env.execute_sql("CREATE TABLE totals (customer STRING, total BIGINT) WITH ('connector' = 'print')")
orders = t_env.from_path("orders")
orders.select(orders.customer, orders.amount).execute_insert("totals")
'''
GIVEN = {"DB_PASSWORD": "${conn.db.password}"}
JOB_PY = Side(PROGRAM, engine="flink", source="job.py", language="python", variables=GIVEN)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path, "orders")


@pytest.fixture
def target() -> Iterator[JobManagerTarget]:
    stand_in = JobManagerStandIn()
    stand_in.job(JOB, "order totals", *TASKS)
    with serving(stand_in), JobManagerTarget(JobManager(stand_in.url, retry_wait=0.01)) as found:
        yield found


def test_a_program_is_adopted_with_its_language_and_variables(target: JobManagerTarget, ledger: Ledger) -> None:
    done = adopt(target, ledger, JOB_PY, JOB, owner="ann")
    head = ledger.head()
    assert head == done.entry
    assert head is not None
    assert (head.kind, head.job.script, head.job.language, head.job.variables) == ("adopted", PROGRAM, "python", GIVEN)
    assert done.warnings == ()
    assert done.compared == (
        "name: the script's pipeline.name is 'order totals', the job's name 'order totals'",
        "tables that the job reads: orders on the cluster, orders in the script",
        "tables that the job writes: totals on the cluster, totals in the script",
    )
    assert head.sha256 == replace(JOB_PY, engine_version=head.job.engine_version).sha256


@pytest.mark.parametrize(
    ("side", "message"),
    [
        (replace(JOB_PY, script=PROGRAM + 'password = "planted-pw"\n'), r"password at job.py:11:12"),
        (replace(JOB_PY, script=PROGRAM.replace('{os.environ["DB_PASSWORD"]}', "planted-pw")), r"password at job.py:6"),
        (replace(JOB_PY, variables={"DB_PASSWORD": "planted-pw"}), "the variable 'DB_PASSWORD' contains a secret"),
    ],
)
def test_a_secret_of_a_program_is_not_stored(
    target: JobManagerTarget, ledger: Ledger, side: Side, message: str
) -> None:
    with pytest.raises(ScriptRefused, match=message) as refused:
        adopt(target, ledger, side, JOB, owner="ann")
    assert "planted-pw" not in str(refused.value)
    assert ledger.entries() == ()


def test_a_program_without_a_query_is_not_adopted(target: JobManagerTarget, ledger: Ledger) -> None:
    with pytest.raises(InputError, match="there is nothing to check"):
        adopt(target, ledger, replace(JOB_PY, script="x = 1\n", variables={}), JOB, owner="ann")


def test_a_target_is_never_given_a_program(ledger: Ledger) -> None:
    cluster = FakeCluster()
    with pytest.raises(
        ScriptRefused,
        match=r"but pretended runs only SQL scripts.*flink run -py.*flinkcompat ledger adopt orders --job-id ID",
    ):
        deploy(cluster, ledger, JOB_PY, start_mode="stateless", checked_old_sha256=None)
    assert (ledger.entries(), cluster.calls) == ((), [])


def test_a_script_after_a_program_has_no_way_back_and_says_so(target: JobManagerTarget, ledger: Ledger) -> None:
    head = adopt(target, ledger, JOB_PY, JOB, owner="ann").entry
    cluster = FakeCluster()
    with pytest.raises(
        DeployRefused,
        match=r"entry 1 of the ledger of orders deployed a program, which pretended cannot restart .*roll_back=",
    ):
        deploy(cluster, ledger, SIDE, start_mode="savepoint", checked_old_sha256=head.sha256, options=Options())
    assert len(ledger.entries()) == 1
