"""The SQL Gateway's target, over a scripted Gateway: what a restore beside the live job is made of."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from airflow_flinkcompat.deploy import TargetError
from airflow_flinkcompat.deploy.errors import CannotRehearse, DeployError, StateFault, StateRefused
from airflow_flinkcompat.deploy.flink.upsert_sinks import upserts_jar
from airflow_flinkcompat.deploy.target import JobRef, Operation, Snapshot, Verb
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.model import JobSpec
from tests.unit.deploy.flink.test_clients import Server, jobmanager, ok
from tests.unit.deploy.flink.test_compiled_plans import SUMS, TABLES, Scripted, gateway

JOB = JobSpec(TABLES + SUMS, {"parallelism.default": "1"}, source="job.sql")
REQUEST = "a" * 32
EXPLAINED = """\
== Abstract Syntax Tree ==
LogicalSink(table=[c.d.totals], fields=[customer, total])
+- LogicalTableScan(table=[[c, d, orders]])

== Optimized Physical Plan ==
"""


OF_UPSERTS = f"{EXPLAINED}Sink(table=[c.d.totals], fields=[customer, total], upsertMaterialize=[true])\n"


class Explaining(Scripted):
    """A Gateway that explains the job, shows its tables, and starts it under ``starts``; None: as it is asked to."""

    def __init__(self, connector: str = "datagen", starts: str | None = None, explained: str = EXPLAINED) -> None:
        super().__init__()
        self.connector, self.explained = connector, explained
        self.starts = starts

    def _result(self, statement: str) -> httpx.Response:
        if statement.startswith("EXPLAIN"):
            return self._row(self.explained)
        if found := re.match(r"SHOW CREATE TABLE `c`.`d`.`(\w+)`", statement):
            return self._row(f"CREATE TABLE `c`.`d`.`{found[1]}` (`x` INT) WITH ('connector' = '{self.connector}')")
        answer = super()._result(statement)
        if statement.startswith("INSERT") and answer.status_code == 200:
            job = self.starts or self.asked[-1][1]["$internal.pipeline.job-id"]
            return httpx.Response(200, json={"resultType": "EOS", "jobID": job, "results": {"columns": [], "data": []}})
        return answer

    @staticmethod
    def _row(text: str) -> httpx.Response:
        results = {"columns": [{"name": "result"}], "data": [{"fields": [text]}]}
        return httpx.Response(200, json={"resultType": "EOS", "results": results})


def target(server: Explaining, cluster: Server | None = None) -> SqlGatewayTarget:
    return SqlGatewayTarget(gateway(server), jobmanager(cluster or Server({})))


def test_finding_stand_ins_starts_nothing() -> None:
    server = Explaining()
    target(server).restore_test(JOB, "private")
    assert [text.split(" (")[0] for text in server.statements] == [
        "CREATE TABLE orders",
        "CREATE TABLE totals",
        "EXPLAIN INSERT INTO totals SELECT customer, SUM(amount) FROM orders GROUP BY customer",
        "SHOW CREATE TABLE `c`.`d`.`orders`",
    ]


@pytest.mark.parametrize("ignore_unclaimed", [True, False])
def test_a_test_is_started_over_stand_ins_from_the_savepoint(ignore_unclaimed: bool) -> None:
    server = Explaining()
    test = target(server).restore_test(JOB, "private")
    server.asked.clear()
    started = test.start("orders rehearsal", Snapshot("file:/s/1"), REQUEST, ignore_unclaimed=ignore_unclaimed)
    assert started == Operation(Verb.START, REQUEST, JobRef(REQUEST))
    *before, (insert, config) = server.asked
    shadows = [text.split(" (")[0] for text, _ in before if "'blackhole'" in text]
    assert shadows == ["CREATE TEMPORARY TABLE `c`.`d`.`totals`"]
    assert insert.startswith("INSERT INTO totals")
    assert config == {
        "pipeline.name": "orders rehearsal",
        "execution.state-recovery.path": "file:/s/1",
        "execution.state-recovery.claim-mode": "NO_CLAIM",
        "execution.state-recovery.ignore-unclaimed-state": str(ignore_unclaimed).lower(),
        "execution.savepoint.path": "file:/s/1",
        "execution.savepoint-restore-mode": "NO_CLAIM",
        "execution.savepoint.ignore-unclaimed-state": str(ignore_unclaimed).lower(),
        "restart-strategy.type": "disable",
        "execution.checkpointing.externalized-checkpoint-retention": "DELETE_ON_CANCELLATION",
        "table.dml-sync": "false",
        "$internal.pipeline.job-id": REQUEST,
    }


def test_a_source_of_one_reader_is_not_read_a_second_time() -> None:
    with pytest.raises(CannotRehearse, match=r"orders \(mysql-cdc\) cannot be read next to the live job"):
        target(Explaining("mysql-cdc")).restore_test(JOB, "private")


def test_what_the_gateway_refuses_and_what_nobody_knows_are_told_apart() -> None:
    server = Explaining()
    test = target(server).restore_test(JOB, "private")
    server.refused["INSERT"] = "IllegalStateException: Failed to rollback to checkpoint/savepoint s"
    with pytest.raises(StateRefused, match="checkpoint/savepoint") as refused:
        test.start("n", Snapshot("s"), REQUEST, ignore_unclaimed=False)
    assert refused.value.fault is StateFault.MISFIT
    server.refused["INSERT"] = "DuplicateJobSubmissionException: Job has already been submitted"
    assert test.start("n", Snapshot("s"), REQUEST, ignore_unclaimed=False).job == REQUEST, "it is the same start"


def test_another_job_than_the_one_asked_for_is_cancelled() -> None:
    cluster = Server(
        {
            "PATCH /jobs/r": [ok()],
            "GET /jobs/overview": [ok(jobs=[{"jid": "b" * 32, "name": "n", "state": "CANCELED"}])],
        }
    )
    test = target(Explaining(starts="b" * 32), cluster).restore_test(JOB, "private")
    with pytest.raises(TargetError, match=f"started job {'b' * 32} instead of {REQUEST}, so the job was cancelled"):
        test.start("n", Snapshot("s"), REQUEST, ignore_unclaimed=True)
    assert cluster.count(f"PATCH /jobs/{'b' * 32}") == 1


@pytest.mark.parametrize(("explained", "copied"), [(EXPLAINED, False), (OF_UPSERTS, True)])
def test_a_run_that_stores_upserts_adds_a_jar_next_to_its_state(explained: str, copied: bool, tmp_path: Path) -> None:
    server = Explaining("filesystem", explained=explained)
    jar = tmp_path / "flinkcompat-upserts.jar"
    savepoint = Snapshot(tmp_path.as_uri())
    target(server).restore_test(JOB, "private").start("orders", savepoint, REQUEST, ignore_unclaimed=True)
    assert not jar.exists(), "the savepoint of a restore test is that of the live job"
    target(server).shadow_run(JOB, "private", "file:///rows").start("orders", savepoint, REQUEST, ignore_unclaimed=True)
    assert jar.exists() is copied
    assert (f"ADD JAR '{tmp_path.as_uri()}/{jar.name}'" in [text for text, _ in server.asked]) is copied
    if copied:
        assert jar.read_bytes() == upserts_jar().read_bytes()


def test_a_jar_that_cannot_be_copied_is_the_reason(tmp_path: Path) -> None:
    run = target(Explaining("filesystem", explained=OF_UPSERTS)).shadow_run(JOB, "private", "file:///rows")
    with pytest.raises(DeployError, match=r"flinkcompat-upserts\.jar cannot be written \(FileNotFoundError\)"):
        run.start("orders", Snapshot(f"{tmp_path}/none"), REQUEST, ignore_unclaimed=True)
