"""Moves of applications to another runtime environment, on the stand-in of AWS Managed Service for Apache Flink."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.deploy import DeployError, Ledger, RolledBack, deploy
from airflow_flinkcompat.deploy.errors import TargetError
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.redeploy.way_back import move_back
from airflow_flinkcompat.testing.target_contract import CHANGED, MISFIT, SCRIPT, side
from tests.support.deploy.targets.aws_account import OPTIONS, Account

MOVE = {
    "runtime_environment": "FLINK-2_2",
    "program": "s3://programs/flink-2.2/program.jar",
    "former_runtime_environment": "FLINK-1_20",
    "former_program": "s3://programs/program-1.jar",
}
BEFORE = ("FLINK-1_20", "program-1.jar")
AFTER = ("FLINK-2_2", "flink-2.2/program.jar")


def deployed(account: Account, root: Path, script: str, version: str, **settings: Any) -> DeployedEntry:
    ledger = Ledger(root, "orders")
    head = ledger.head()
    return deploy(
        account.target(**settings),
        ledger,
        replace(side(script), engine_version=version),
        checked_old_sha256=head.sha256 if head else None,
        owner=new_id(),
        options=OPTIONS,
    )


@pytest.fixture
def older(account: Account, tmp_path: Path) -> Account:
    """The application of ``orders`` runs on Flink 1.20."""
    account.orders.runtime = "FLINK-1_20"
    deployed(account, tmp_path, SCRIPT, "1.20", runtime_environment="FLINK-1_20")
    return account


def runs_on(account: Account) -> tuple[str, str]:
    return account.orders.runtime, account.orders.program["FileKeyUpdate"]


def test_runtime_and_program_change_with_the_script(older: Account, tmp_path: Path) -> None:
    assert runs_on(older) == BEFORE
    updates = older.server.calls["UpdateApplication"]
    entry = deployed(older, tmp_path, CHANGED, "2.2", **MOVE)
    assert runs_on(older) == AFTER
    assert older.orders.program["BucketARNUpdate"] == "arn:aws:s3:::programs"
    assert older.server.calls["UpdateApplication"] == updates + 1
    snapshot = older.orders.snaps[-1]
    assert entry.start.savepoint == f"orders/{snapshot.name}"
    assert older.jobs.started[-1] == ("orders", CHANGED, snapshot.savepoint)


def test_the_program_stays_if_the_connection_names_none(older: Account, tmp_path: Path) -> None:
    runtimes = {key: value for key, value in MOVE.items() if "runtime" in key}
    deployed(older, tmp_path, CHANGED, "2.2", **runtimes)
    assert runs_on(older) == ("FLINK-2_2", "program-1.jar")


def test_an_application_that_the_new_runtime_refuses_returns_to_the_former_runtime(
    older: Account, tmp_path: Path
) -> None:
    older.jobs.refuses.add("orders")
    with pytest.raises(RolledBack):
        deployed(older, tmp_path, MISFIT, "2.2", **MOVE)
    assert runs_on(older) == BEFORE
    assert older.jobs.started[-1] == ("orders", SCRIPT, older.orders.snaps[0].savepoint)


def test_a_moved_application_moves_back_from_the_snapshot_of_its_move(older: Account, tmp_path: Path) -> None:
    deployed(older, tmp_path, CHANGED, "2.2", **MOVE)
    entry = move_back(older.target(**MOVE), Ledger(tmp_path, "orders"), owner="back", options=OPTIONS)
    assert (entry.job.script, entry.job.engine_version) == (SCRIPT, "1.20")
    assert runs_on(older) == BEFORE
    assert older.jobs.started[-1] == ("orders", SCRIPT, older.orders.snaps[0].savepoint)


def test_a_runtime_that_the_service_does_not_offer_is_refused_before_the_stop(older: Account, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"cannot move from FLINK-1_20 to FLINK-2_1, .* offers only .*FLINK-1_20, "):
        deployed(older, tmp_path, CHANGED, "2.1", **{**MOVE, "runtime_environment": "FLINK-2_1"})
    assert older.orders.status == "RUNNING"
    assert older.server.calls["StopApplication"] == 0


def test_an_application_of_a_third_runtime_is_refused(older: Account, tmp_path: Path) -> None:
    older.orders.runtime = "FLINK-1_19"
    with pytest.raises(TargetError, match=r"environment FLINK-1_19, but .* FLINK-1_20 and FLINK-2_2"):
        deployed(older, tmp_path, CHANGED, "2.2", **MOVE)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"former_runtime_environment": "1.20"}, "former_runtime_environment '1.20' is not a Flink runtime"),
        ({"former_runtime_environment": "FLINK-2_2"}, "are both FLINK-2_2"),
        ({"former_runtime_environment": None}, "Set former_runtime_environment, or remove both"),
        ({"former_program": None}, "set both program and former_program, or neither"),
        ({"program": "program.jar"}, r"program 'program\.jar' must have the form s3://BUCKET/KEY"),
    ],
)
def test_a_wrong_setting_of_a_move_is_told_with_its_place(
    settings: dict[str, Any], words: str, account: Account
) -> None:
    with pytest.raises(DeployError, match=f"connection 'aws_flink': .*{words}"):
        account.target(**{**MOVE, **settings})
