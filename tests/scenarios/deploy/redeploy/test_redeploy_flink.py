"""Deploying for real: every test runs jobs on one local Flink."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.deploy import (
    DeployRefused,
    Ledger,
    Operation,
    Options,
    Proof,
    RolledBack,
    ScriptRefused,
    Start,
    TargetError,
    deploy,
)
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, DisposedEntry, Review
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.targets import gateway
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.model import JobSpec
from dev.services.csv_job import SETTINGS, Files, Side, wait_for
from tests.support.nightly import mostly_nightly

pytestmark = pytest.mark.slow

OPTIONS = Options(settle_seconds=2, start_timeout=90)
FIRST = [("ann", 1, "00:10"), ("ann", 2, "00:20"), ("ann", 5, "01:10")]  # the last one closes minute 0, opens minute 1
SECOND = [("ann", 7, "01:20"), ("ann", 1, "02:10")]  # closes minute 1
FIRST_STEPS = ["deploying", "starting", "started", "deployed"]
MINUTE_0, MINUTE_1 = 'ann,3,"2026-01-01 00:00:00"', 'ann,12,"2026-01-01 00:01:00"'


Deploy = Callable[..., DeployedEntry]


@pytest.fixture
def run(target: SqlGatewayTarget, ledger: Ledger) -> Deploy:
    """``deploy`` with the ledger's head as the checked side, unless a test says otherwise."""

    def run(side: Side, **arguments: Any) -> DeployedEntry:
        head = ledger.head()
        given = {"checked_old_sha256": head.sha256 if head else None, "options": OPTIONS, "log": print, **arguments}
        return deploy(given.pop("target", target), ledger, side, **given)

    return run


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries()]


def first_deployment(run: Deploy, files: Files, **changes: Any) -> tuple[Side, DeployedEntry]:
    side = Side(files.script(), **changes)
    files.arrive("1.csv", FIRST)
    entry = run(side)
    wait_for(lambda: files.rows() == [MINUTE_0], "minute 0 is written")
    return side, entry


def test_resume_keeps_state_and_stateless_does_not(
    run: Deploy, files: Files, ledger: Ledger, target: SqlGatewayTarget
) -> None:
    side, first = first_deployment(run, files)
    assert (first.start.start_mode, first.start.savepoint, first.number) == ("stateless", None, 4)
    assert kinds(ledger) == FIRST_STEPS
    assert target.running(ledger.deployment) == (first.job_id,)

    resumed = run(side, review=Review("compatible", approved_by="ann"), start_mode="savepoint")
    assert kinds(ledger)[4:] == ["deploying", "stopping", "stopped", "starting", "started", "deployed"]
    assert (resumed.start.start_mode, resumed.review) == ("savepoint", Review("compatible", approved_by="ann"))
    assert resumed.start.savepoint is not None
    assert f"/{ledger.deployment}/" in resumed.start.savepoint, "each stop has a folder for itself"
    assert resumed.evidence[0] == f"restored from {resumed.start.savepoint}"
    assert any(
        re.fullmatch(r"state: [\d,]+ bytes in the first checkpoint, [1-9][\d,]* in the savepoint", line)
        for line in resumed.evidence
    )
    assert resumed.effective_settings["session"]["parallelism.default"] == "1"
    assert "execution.checkpointing.dir" in resumed.effective_settings["cluster"]
    assert target.restored_from(str(resumed.job_id)).snapshot == resumed.start.savepoint
    assert target.running(ledger.deployment) == (resumed.job_id,)
    files.arrive("2.csv", SECOND)
    # 5 + 7: rows from both sides of the savepoint; no second minute 0: the first file was not read again.
    wait_for(lambda: len(files.rows()) >= 2, "minute 1 is written")
    assert files.rows() == [MINUTE_1, MINUTE_0]

    (files.source / "1.csv").unlink()
    fresh = run(side, start_mode="stateless")
    assert fresh.start.start_mode == "stateless"
    assert fresh.start.savepoint is not None, "a stateless restart stops with a savepoint too"
    assert Path(fresh.start.savepoint.removeprefix("file:")).is_dir()
    assert target.restored_from(str(fresh.job_id)).snapshot is None
    # The second file is read again, and the 5 that only the state knew is gone.
    wait_for(lambda: 'ann,7,"2026-01-01 00:01:00"' in files.rows(), "minute 1 is written again")


@pytest.mark.nightly
def test_checkpoint_can_be_asked_for(target: SqlGatewayTarget, run: Deploy, files: Files) -> None:
    # No file is committed before the next checkpoint, an hour away: nothing to wait for but the deployment itself.
    first = run(Side(files.script(), settings={**SETTINGS, "execution.checkpointing.interval": "1 h"}))
    before = target.status(str(first.job_id))
    assert before is not None
    target.request_checkpoint(str(first.job_id))

    def one_more() -> bool:
        now = target.status(str(first.job_id))
        return now is not None and now.completed_checkpoints == before.completed_checkpoints + 1

    wait_for(one_more, "the checkpoint completes")


def test_wrong_head_is_refused_and_touches_nothing(
    run: Deploy, files: Files, ledger: Ledger, target: SqlGatewayTarget
) -> None:
    side, first = first_deployment(run, files)
    changed = replace(side, settings={**side.settings, "table.exec.mini-batch.enabled": "false"})
    with pytest.raises(DeployRefused, match=r"checked against 000000000000.* entry 4 .*Check the change again"):
        run(changed, checked_old_sha256="0" * 64)
    with pytest.raises(DeployRefused, match="while nothing was deployed"):
        run(changed, checked_old_sha256=None)
    assert kinds(ledger) == FIRST_STEPS
    assert target.running(ledger.deployment) == (first.job_id,)


@pytest.mark.nightly
def test_refused_at_submit_is_rolled_back(run: Deploy, files: Files, ledger: Ledger, target: SqlGatewayTarget) -> None:
    _, first = first_deployment(run, files)
    filtered = Side(files.script(where=" WHERE amount > 1"))
    with pytest.raises(RolledBack, match="Cannot map checkpoint/savepoint state") as caught:
        run(filtered, owner="worker")
    steps = ["deploying", "stopping", "stopped", "starting", "failed", "rolling-back", "rolled-back"]
    assert kinds(ledger)[4:] == steps
    failed = ledger.entries()[-3]
    assert failed.start.savepoint
    assert "Cannot map" in failed.message
    assert len(failed.message) < 900
    message = str(caught.value)
    assert "\tat " not in message
    assert "No task of the new job ever ran, so no row was written twice" in message
    back = ledger.head()
    assert back is not None
    assert (back.kind, back.sha256) == ("rolled-back", first.sha256)
    assert target.running(ledger.deployment) == (back.job_id,)
    assert back.start.savepoint == failed.start.savepoint == target.restored_from(str(back.job_id)).snapshot
    files.arrive("2.csv", SECOND)
    wait_for(lambda: files.rows() == [MINUTE_1, MINUTE_0], "minute 1 holds rows from before the failed change")
    assert any(line.startswith("state: ") for line in back.evidence) is False, "a way back has nothing to compare with"


@pytest.mark.parametrize("restart", mostly_nightly(["disable", "exponential-delay"]))
def test_refused_at_restore_is_rolled_back(
    restart: str, run: Deploy, files: Files, ledger: Ledger, target: SqlGatewayTarget
) -> None:
    side, first = first_deployment(run, files)
    added = Side(
        files.script(
            select="customer, SUM(amount), window_start, MAX(amount)",
            columns="customer STRING, total BIGINT, since TIMESTAMP(3), most BIGINT",
        ),
        settings={**side.settings, "restart-strategy.type": restart},
    )
    with pytest.raises(RolledBack, match="StateMigrationException"):
        run(added)
    steps = ["deploying", "stopping", "stopped", "starting", "started", "failed", "rolling-back", "rolled-back"]
    assert kinds(ledger)[4:] == steps
    failed = ledger.entries()[-3]
    status = target.status(str(failed.job_id))
    assert status is not None
    assert status.terminal, "a job that cannot restore is not left restarting"
    back = ledger.head()
    assert back is not None
    assert back.job_id not in (failed.job_id, first.job_id)
    assert target.running(ledger.deployment) == (back.job_id,)


def test_state_that_was_dropped_without_a_word_is_rolled_back(
    run: Deploy, files: Files, ledger: Ledger, target: SqlGatewayTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a cluster that is told to ignore state nobody claims: Flink starts the job, and its windows are empty."""
    first_deployment(run, files)
    monkeypatch.setattr(gateway, "state_options", partial(gateway.state_options, ignore_unclaimed=True))
    with pytest.raises(
        RolledBack, match=r"is RUNNING, but state was dropped: no operator of the new job restored the state of"
    ):
        run(Side(files.script(where=" WHERE amount > 1")))
    files.arrive("2.csv", SECOND)
    wait_for(lambda: files.rows() == [MINUTE_1, MINUTE_0], "minute 1 holds rows from before the failed change")


@pytest.mark.nightly
def test_old_savepoints_go_and_a_retained_checkpoint_is_a_start(
    run: Deploy, files: Files, ledger: Ledger, target: SqlGatewayTarget
) -> None:
    retained = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}
    side, _ = first_deployment(run, files, settings={**SETTINGS, **retained})
    options = replace(OPTIONS, keep_savepoints=1)
    old, kept = (run(side, options=options).start.savepoint for _ in range(2))
    folders = [Path(str(path).removeprefix("file:")) for path in (old, kept)]
    assert [folder.is_dir() for folder in folders] == [False, True]
    assert [entry.savepoint for entry in ledger.entries() if isinstance(entry, DisposedEntry)] == [old]

    entry = run(side, start_mode="checkpoint", review=Review("compatible"), options=options)
    assert entry.start.start_mode == "checkpoint"
    assert "/chk-" in str(entry.start.savepoint)
    assert target.restored_from(str(entry.job_id)).snapshot == entry.start.savepoint
    assert target.running(ledger.deployment) == (entry.job_id,)
    files.arrive("2.csv", SECOND)
    wait_for(lambda: files.rows() == [MINUTE_1, MINUTE_0], "minute 1 holds rows from before")


def test_sql_that_cannot_run_stops_nothing(run: Deploy, files: Files, ledger: Ledger, target: SqlGatewayTarget) -> None:
    _, first = first_deployment(run, files)
    with pytest.raises(
        TargetError, match=r"orders\.sql:7:1: .*line 8, column 22 to .*: Column 'price' not found in any table"
    ):
        run(Side(files.script(select="customer, SUM(price), window_start")))
    with pytest.raises(TargetError, match=r"orders\.sql:7:1: .*do not match"):
        run(Side(files.script(select="customer, window_start")))
    assert kinds(ledger) == FIRST_STEPS
    assert target.running(ledger.deployment) == (first.job_id,)


@pytest.mark.nightly
def test_job_that_is_not_the_ledgers_is_refused(
    run: Deploy, files: Files, ledger: Ledger, target: SqlGatewayTarget
) -> None:
    side, first = first_deployment(run, files)
    stranger = new_id()
    target.start(JobSpec(side.script, {**side.settings, "pipeline.name": ledger.deployment}), Start(), stranger)
    with pytest.raises(DeployRefused, match=f"job {stranger} named '{ledger.deployment}' runs on the cluster"):
        run(side)
    target.cancel(stranger)
    target.cancel(str(first.job_id))
    with pytest.raises(DeployRefused, match=f"job {first.job_id} .* is CANCELED"):
        run(side)
    with pytest.raises(DeployRefused, match="is CANCELED"):
        run(side, options=replace(OPTIONS, allow_ended=True), start_mode="savepoint")
    assert kinds(ledger) == FIRST_STEPS
    again = run(side, options=replace(OPTIONS, allow_ended=True), start_mode="stateless")
    assert target.running(ledger.deployment) == (again.job_id,)


class Interrupted(SqlGatewayTarget):
    """Dies like a killed worker: at ``submit``, or when the started job is verified."""

    at: str = ""

    def start(self, *arguments: Any) -> Operation:
        if self.at == "submit":
            raise KeyboardInterrupt
        return super().start(*arguments)

    def restored_from(self, job_id: str) -> Proof:
        raise KeyboardInterrupt


@pytest.mark.parametrize("at", mostly_nightly(["submit", "verify"], 0))
def test_interrupted_run_is_taken_up(
    at: str, run: Deploy, files: Files, ledger: Ledger, local_flink: LocalFlink, target: SqlGatewayTarget
) -> None:
    side, first = first_deployment(run, files)
    changed = replace(side, settings={**side.settings, "table.exec.state.ttl": "1 d"})
    with Interrupted(local_flink.gateway_url, local_flink.jobmanager_url) as dying:
        dying.at = at
        with pytest.raises(KeyboardInterrupt):
            run(changed, target=dying, owner="worker-1")
    expected = ["deploying", "stopping", "stopped", "starting", *(["started"] if at == "verify" else [])]
    assert kinds(ledger)[4:] == expected
    left_running = target.running(ledger.deployment)
    with pytest.raises(DeployRefused, match=r"worker-1 is deploying .* wait for it"):
        run(changed, owner="worker-2")

    taken_up = run(changed, owner="worker-1")
    stopped = ledger.entries()[6]
    assert (stopped.kind, stopped.job_id) == ("stopped", first.job_id)
    assert taken_up.start.savepoint == stopped.stop.savepoint == target.restored_from(str(taken_up.job_id)).snapshot
    assert target.running(ledger.deployment) == (taken_up.job_id,)
    if at == "verify":
        assert left_running == (taken_up.job_id,), "the started job is verified, not started twice"


@pytest.mark.nightly
def test_reset_in_the_script_does_not_take_the_savepoint_away(
    run: Deploy, files: Files, ledger: Ledger, target: SqlGatewayTarget
) -> None:
    before = "RESET;\nSET 'parallelism.default' = '1';\nSET 'execution.checkpointing.interval' = '500 ms';\n"
    side = Side(files.script(before=f"{before}SET 'pipeline.name' = '{ledger.deployment}';\n"))
    run(side)
    resumed = run(side)
    assert resumed.start.savepoint == target.restored_from(str(resumed.job_id)).snapshot is not None


@pytest.mark.parametrize("opening", mostly_nightly(["EXECUTE STATEMENT SET BEGIN", "BEGIN STATEMENT SET;"]))
def test_statement_set_is_one_job(
    opening: str, run: Deploy, files: Files, ledger: Ledger, target: SqlGatewayTarget
) -> None:
    sinks = "CREATE TABLE a (x STRING) WITH ('connector' = 'blackhole');CREATE TABLE b LIKE a;"
    source = "CREATE TABLE s (x STRING) WITH ('connector' = 'datagen', 'rows-per-second' = '1');"
    inserts = "INSERT INTO a SELECT x FROM s; INSERT INTO b SELECT UPPER(x) FROM s;"
    with pytest.raises(ScriptRefused, match="wrap the statements in EXECUTE STATEMENT SET"):
        run(Side(sinks + source + inserts))
    entry = run(Side(f"{sinks}{source}{opening} {inserts} END;"))
    assert target.running(ledger.deployment) == (entry.job_id,)


def test_secrets_of_connections_reach_flink_and_no_message(
    files: Files, ledger: Ledger, local_flink: LocalFlink
) -> None:
    secret = "it's-Xq7-very-private"
    script = """
    CREATE TABLE s (x STRING) WITH ('connector' = 'datagen', 'rows-per-second' = '1');
    CREATE TABLE k (x STRING) WITH ('connector' = 'blackhole', 'login' = '${conn.shop.password}');
    INSERT INTO k SELECT x FROM s;
    """
    # blackhole knows no such option: Flink's refusal echoes every option with its value.
    with (
        SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url, lookup=lambda _: secret) as target,
        pytest.raises(TargetError, match="Unsupported options") as caught,
    ):
        deploy(target, ledger, Side(script), checked_old_sha256=None)
    assert "Xq7" not in str(caught.value)
    assert ledger.entries() == ()
