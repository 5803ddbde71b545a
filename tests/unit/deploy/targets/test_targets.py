"""Targets are found by the name of their entry point, and opened by what a connection says."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy import ApiError, DeployError, targets
from airflow_flinkcompat.deploy.target import (
    CheckpointStatistics,
    LiveSavepoints,
    OffsetStatistics,
    PlanCompiler,
    PlansChanges,
    ReadsBack,
    RestoreTests,
    RetainedCheckpoints,
    SavepointStore,
    SourceTables,
)
from airflow_flinkcompat.deploy.targets import Access, names, target_class
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from tests.support.deploy.servers import rest_server


def test_the_shipped_ones_are_found() -> None:
    assert {"jobmanager", "sql-gateway"} <= set(names())
    assert target_class("sql-gateway") is SqlGatewayTarget
    assert target_class("jobmanager") is JobManagerTarget


def test_a_name_that_is_none_is_told_with_those_there_are() -> None:
    with pytest.raises(DeployError, match=r"there is no target 'gatway'\. Installed targets: .*sql-gateway"):
        target_class("gatway")


def test_one_that_cannot_be_imported_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("mine", "no_such_package:Target", targets.GROUP)
    monkeypatch.setattr(targets, "_found", lambda: {"mine": point})
    with pytest.raises(DeployError, match=r"'mine' \(no_such_package:Target\) cannot be imported: No module named"):
        target_class("mine")


def test_a_target_is_opened_by_the_settings_and_its_secrets_are_told() -> None:
    told: list[str] = []
    with rest_server(authorization="Bearer planted-token") as server:
        access = Access(lambda _: server.url, {"password": "planted-token"}, "connection 'f'", None, told.append)
        with target_class("sql-gateway").connect(access) as target:
            assert target.engine().version == "2.3.0"
            assert target.running("orders") == ()
    assert set(told) == {"planted-token"}


def test_a_wrong_setting_is_told_with_its_place() -> None:
    access = Access(lambda _: "http://localhost:1", {"timeout": "soon"}, "connection 'f'")
    with pytest.raises(ApiError, match="connection 'f': timeout 'soon' is not a number of seconds"):
        target_class("jobmanager").connect(access)


CAPABILITIES = {
    "the running script is read before every redeploy": ReadsBack,
    "compiles plans (`explain_plan`)": PlanCompiler,
    "rehearsal next to the live job": RestoreTests,
    "choice of source offsets": SourceTables,
    "start mode `checkpoint`": RetainedCheckpoints,
    "finds, migrates and deletes savepoints": SavepointStore,
    "savepoints of running jobs": LiveSavepoints,
    "changes planned for GitOps (`plan_only`)": PlansChanges,
    "state sizes compared": CheckpointStatistics,
    "source positions compared": OffsetStatistics,
}


def test_the_table_of_targets_is_what_targets_can_do() -> None:
    lines = (Path(__file__).parents[4] / "docs" / "targets" / "README.md").read_text("utf-8").splitlines()
    head = next(place for place, line in enumerate(lines) if line.startswith("| | [`sql-gateway`]"))
    shown = [re.findall(r"`([a-z-]+)`", cell)[0] for cell in lines[head].split("|")[2:-1]]
    assert set(shown) == set(targets.names())
    rows = {
        cells[1].strip(): [cell.strip() for cell in cells[2:-1]]
        for cells in (line.split("|") for line in lines[head : head + 20])
        if len(cells) == len(shown) + 3
    }
    for words, capability in CAPABILITIES.items():
        assert rows[words] == ["yes" if issubclass(target_class(name), capability) else "no" for name in shown], words
